/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_raw.c - st_ucx's messages by the provider itself. */
#include "trig_fab.h"
#include "ucx_bench.h"

#include <stdlib.h>
#include <string.h>

#define UCX_RAW_TAG 2


typedef struct ucx_raw {
    ucx_way_t   super;  /* Must be first */
    trig_rank_t *me;
    trig_fab_t  *fab;
    uint8_t     *in;    /* TRIG_MAX_SIZE each */
    uint8_t     *out;
    uint64_t    posted; /* Sends that will complete */
    uint64_t    sent;   /* Of them */
    uint64_t    received;
} ucx_raw_t;


static void raw_poll(ucx_raw_t *raw)
{
    struct fi_cq_tagged_entry entries[16];
    ssize_t ret, i;

    ret = fi_cq_read(raw->fab->cq, entries, 16);
    if ((ret < 0) && (ret != -FI_EAGAIN)) {
        trig_give_up(raw->me, "fi_cq_read", (int)ret);
    }
    for (i = 0; i < ret; ++i) {
        if (entries[i].flags & FI_RECV) {
            ++raw->received;
        } else {
            ++raw->sent;
        }
    }
}

static void raw_wait(ucx_raw_t *raw, const uint64_t *count, uint64_t value)
{
    unsigned turns = 0;

    for (raw_poll(raw); *count < value; raw_poll(raw)) {
        trig_turn(raw->me, &turns);
    }
}

/* The provider had no room, or cannot */
static void raw_again(ucx_raw_t *raw, const char *what, ssize_t ret)
{
    trig_must(raw->fab, what, (ret == -FI_EAGAIN) ? 0 : ret);
    raw_poll(raw);
}

static void raw_recv(ucx_raw_t *raw, size_t size)
{
    ssize_t ret;

    while ((ret = fi_trecv(raw->fab->ep, raw->in, size, NULL, raw->fab->peer,
                           UCX_RAW_TAG, 0, NULL)) != 0) {
        raw_again(raw, "fi_trecv", ret);
    }
}

static void raw_send(ucx_raw_t *raw, size_t size)
{
    trig_fab_t *fab = raw->fab;
    ssize_t ret;

    if (size <= fab->info->tx_attr->inject_size) {
        while ((ret = fi_tinject(fab->ep, raw->out, size, fab->peer,
                                 UCX_RAW_TAG)) != 0) {
            raw_again(raw, "fi_tinject", ret);
        }
        return;
    }
    while ((ret = fi_tsend(fab->ep, raw->out, size, NULL, fab->peer,
                           UCX_RAW_TAG, NULL)) != 0) {
        raw_again(raw, "fi_tsend", ret);
    }
    ++raw->posted;
}

static void raw_check(ucx_raw_t *raw, size_t size, uint64_t word)
{
    uint64_t first;

    memcpy(&first, raw->in, sizeof(first));
    if ((first != word) ||
        !trig_is_filled(raw->in + 8, size - 8, 1 + !raw->me->rank)) {
        raw->me->page->verified[raw->me->rank] = 0;
    }
}

static void raw_start(ucx_raw_t *raw, size_t size)
{
    trig_fill(raw->out + 8, size - 8, 1 + raw->me->rank);
    memset(raw->in, 0, size);
    raw->received = 0;
}

static double raw_tag(ucx_way_t *way, size_t size, unsigned count)
{
    ucx_raw_t *raw = (ucx_raw_t*)way;
    uint64_t i;
    double start;

    raw_start(raw, size);
    trig_barrier(raw->me);
    start = trig_now();
    for (i = 1; i <= count; ++i) {
        raw_recv(raw, size);
        if (raw->me->rank == 1) {
            raw_wait(raw, &raw->received, i);
        }
        memcpy(raw->out, &i, sizeof(i));
        raw_send(raw, size);
        raw_wait(raw, &raw->sent, raw->posted);
        raw_wait(raw, &raw->received, i);
    }
    start = trig_now() - start;
    raw_check(raw, size, count);
    trig_barrier(raw->me);
    return start / (2.0 * count);
}

static void raw_recv_window(ucx_raw_t *raw, size_t size)
{
    unsigned i;

    for (i = 0; i < UCX_WINDOW; ++i) {
        raw_recv(raw, size);
    }
}

static void raw_send_windows(ucx_raw_t *raw, size_t size, unsigned windows)
{
    unsigned i, k;

    for (i = 1; i <= windows; ++i) {
        raw_recv(raw, 8);
        for (k = 0; k < UCX_WINDOW; ++k) {
            raw_send(raw, size);
        }
        raw_wait(raw, &raw->sent, raw->posted);
        raw_wait(raw, &raw->received, i);
    }
}

static void raw_recv_windows(ucx_raw_t *raw, size_t size, unsigned windows)
{
    unsigned i;

    for (i = 1; i <= windows; ++i) {
        raw_wait(raw, &raw->received, (uint64_t)i * UCX_WINDOW);
        if (i < windows) {
            raw_recv_window(raw, size);
        }
        raw_send(raw, 8);
        raw_wait(raw, &raw->sent, raw->posted);
    }
}

static double raw_window(ucx_way_t *way, size_t size, unsigned windows)
{
    ucx_raw_t *raw = (ucx_raw_t*)way;
    double start;

    raw_start(raw, size);
    memset(raw->out, 0, 8);
    if (raw->me->rank == 1) {
        raw_recv_window(raw, size);
    }
    trig_barrier(raw->me);
    start = trig_now();
    if (raw->me->rank == 0) {
        raw_send_windows(raw, size, windows);
    } else {
        raw_recv_windows(raw, size, windows);
    }
    start = trig_now() - start;
    if (raw->me->rank == 1) {
        raw_check(raw, size, 0);
    }
    trig_barrier(raw->me);
    return start / (windows * (double)UCX_WINDOW);
}

static void raw_wait_word(ucx_raw_t *raw, const uint64_t *word, uint64_t value)
{
    unsigned turns = 0;

    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
        raw_poll(raw);
        trig_turn(raw->me, &turns);
    }
}

static double raw_put(ucx_way_t *way, unsigned count)
{
    ucx_raw_t *raw  = (ucx_raw_t*)way;
    trig_fab_t *fab = raw->fab;
    uint64_t *word  = (uint64_t*)(fab->word_page + TRIG_WORD);
    uint64_t i;
    double start;
    ssize_t ret;

    *word = 0;
    trig_barrier(raw->me);
    start = trig_now();
    for (i = 1; i <= count; ++i) {
        if (raw->me->rank == 1) {
            raw_wait_word(raw, word, i);
        }
        while ((ret = fi_inject_write(fab->ep, &i, sizeof(i), fab->peer,
                                      TRIG_WORD, fab->word_key)) != 0) {
            raw_again(raw, "fi_inject_write", ret);
        }
        if (raw->me->rank == 0) {
            raw_wait_word(raw, word, i);
        }
    }
    start = trig_now() - start;
    trig_barrier(raw->me);
    return start / (2.0 * count);
}

static void raw_close(ucx_way_t *way)
{
    free(way);
}

ucx_way_t *ucx_raw_open(trig_rank_t *me, trig_fab_t *fab)
{
    static const ucx_way_t ways = {
        .tag    = raw_tag,
        .window = raw_window,
        .put    = raw_put,
        .close  = raw_close
    };
    ucx_raw_t *raw = calloc(1, sizeof(*raw));

    if (raw == NULL) {
        trig_give_up(me, "calloc", 0);
    }
    raw->super = ways;
    raw->me    = me;
    raw->fab   = fab;
    raw->in    = fab->region.base;
    raw->out   = fab->region.base + TRIG_MAX_SIZE;
    return &raw->super;
}
