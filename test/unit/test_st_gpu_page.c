/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_page.c - lane trig on streams of a GPU: whether these reach the
 * card's trigger pages is first asked without the worker's lock, as a runtime
 * may then register a page, and wait. Stand-ins for the runtimes; functions of
 * this file in place of the library's.
 */
#include "st_cunit.h"
#include "st_gpu.h"
#include "st_stream.h"
#include "st_window.h"

#include <ucs_gstream_memory.h>

#include "core/st_worker.h"

#include <dlfcn.h>
#include <string.h>

#define REAL(_name) ((__typeof__(&_name))dlsym(RTLD_NEXT, #_name))
#define LENGTH      70000 /* not sent ahead */
#define MAX_PAGES   64


static uint8_t sent[LENGTH], received[LENGTH];

/** Pages that were asked for, and how often the first question came with the
 *  lock of the worker held that is looked at. Of the case's thread. */
static const volatile uint64_t *pages[MAX_PAGES];
static unsigned num_pages, num_locked;
static ucp_st_worker_h worker;

static void note(const volatile uint64_t *page)
{
    unsigned i = 0;

    while ((i < num_pages) && (pages[i] != page)) {
        ++i;
    }
    if ((worker == NULL) || (i < num_pages)) {
        return;
    }
    CU_ASSERT_FATAL(num_pages < MAX_PAGES);
    pages[num_pages++] = page;
    if (pthread_mutex_trylock(&worker->lock) != 0) {
        ++num_locked;
    } else {
        (void)pthread_mutex_unlock(&worker->lock);
    }
}

int ucs_gstream_reaches(ucs_gstream_h stream, const volatile uint64_t *word)
{
    note(word);
    return REAL(ucs_gstream_reaches)(stream, word);
}

int ucs_gstream_type_reaches(ucs_gstream_type_t type,
                             const volatile uint64_t *word)
{
    note(word);
    return REAL(ucs_gstream_type_reaches)(type, word);
}

static void run_page(gpu_t *gpu)
{
    st_side_t *a = &gpu->side[ST_A];
    st_side_t *b = &gpu->side[ST_B];
    ucp_st_op_h op[2];
    st_side_t more;
    uint64_t k;
    int i;

    num_pages = num_locked = 0;
    worker    = a->worker;
    st_more_init(&more, a); /* a queue, and its stream */
    CU_ASSERT_EQUAL(num_pages, 1);
    op[ST_A] = st_send(a, sent, LENGTH, 0);
    op[ST_B] = st_recv(b, received, LENGTH, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    for (k = 0; k < 3; ++k) {
        st_fill(sent, LENGTH, k);
        for (i = 0; i < 2; ++i) {
            worker = gpu->side[i].worker;
            st_use(&gpu->side[i], op[i]);
        }
        st_pair_sync(&gpu->pair);
        CU_ASSERT_TRUE(st_check(received, LENGTH, k));
    }
    worker = NULL;
    CU_ASSERT(num_pages > 1);
    CU_ASSERT_EQUAL(num_locked, 0);
    st_free2(op[ST_A], op[ST_B]);
    st_more_cleanup(&more);
}

GPU_CASES(page, "trig", run_page)

/* A queue's one-sided operations have a page of their own */
static void run_put(gpu_t *gpu)
{
    st_window_t windows[2];
    uint64_t k;

    st_windows_init(&gpu->pair, windows, LENGTH, 0);
    num_pages = num_locked = 0;
    worker    = gpu->side[ST_A].worker;
    for (k = 0; k < 3; ++k) {
        st_fill(windows[ST_A].memory, LENGTH, k);
        st_put(&windows[ST_A], 0, LENGTH, 0);
        st_quiet(&windows[ST_A]);
        st_sync(&gpu->side[ST_A]);
        CU_ASSERT_TRUE(st_check(windows[ST_B].memory, LENGTH, k));
    }
    worker = NULL;
    CU_ASSERT_EQUAL(num_pages, 1);
    CU_ASSERT_EQUAL(num_locked, 0);
    st_windows_cleanup(windows);
}

GPU_CASES(put, "trig", run_put)

ST_SUITE("st_gpu_page")
