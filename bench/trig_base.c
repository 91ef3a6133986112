/* SPDX-License-Identifier: BSD-3-Clause */
/* trig_base.c - lock step, and what the machine itself can do. */
#include "trig_bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>


double trig_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ((double)ts.tv_sec * 1e6) + ((double)ts.tv_nsec / 1e3);
}

void trig_give_up(trig_rank_t *me, const char *what, int ret)
{
    fprintf(stderr, "%s, rank %d: %s failed (%d)\n",
            program_invocation_short_name, me->rank, what, ret);
    __atomic_store_n(&me->page->broken, 1, __ATOMIC_RELEASE);
    exit(EXIT_FAILURE);
}

void trig_need(trig_rank_t *me, const char *what, ucs_status_t status)
{
    char text[160];

    if (status != UCS_OK) {
        snprintf(text, sizeof(text), "%s: %s:", what,
                 ucs_status_string(status));
        trig_give_up(me, text, status);
    }
}

void trig_turn(trig_rank_t *me, unsigned *turns)
{
    if (++*turns % 256 != 0) {
        __builtin_ia32_pause();
        return;
    }
    if (__atomic_load_n(&me->page->broken, __ATOMIC_ACQUIRE)) {
        exit(EXIT_FAILURE);
    }
    sched_yield();
}

uint32_t trig_arrive(trig_rank_t *me)
{
    uint32_t step = me->page->barrier[me->rank] + 1;

    __atomic_store_n(&me->page->barrier[me->rank], step, __ATOMIC_RELEASE);
    return step;
}

int trig_is_met(const trig_rank_t *me, uint32_t step)
{
    return (int32_t)(__atomic_load_n(&me->page->barrier[!me->rank],
                                     __ATOMIC_ACQUIRE) - step) >= 0;
}

void trig_barrier(trig_rank_t *me)
{
    uint32_t step  = trig_arrive(me);
    unsigned turns = 0;

    while (!trig_is_met(me, step)) {
        trig_turn(me, &turns);
    }
}

static double trig_cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           ((double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
}

void trig_idle(trig_rank_t *me, double seconds)
{
    double start;

    trig_barrier(me);
    /* Let the threads see that nobody polls */
    usleep(TRIG_CALM_US);
    start = trig_cpu_seconds();
    usleep((useconds_t)(seconds * 1e6));
    me->page->cpu[me->rank] = (trig_cpu_seconds() - start) / seconds;
    trig_barrier(me);
}

static uint8_t trig_byte(unsigned seed, size_t i)
{
    return (uint8_t)(seed + (i * 7) + (i >> 8));
}

void trig_fill(uint8_t *data, size_t size, unsigned seed)
{
    size_t i;

    for (i = 0; i < size; ++i) {
        data[i] = trig_byte(seed, i);
    }
}

int trig_is_filled(const uint8_t *data, size_t size, unsigned seed)
{
    size_t i;

    for (i = 0; (i < size) && (data[i] == trig_byte(seed, i)); ++i);
    return i == size;
}

static void trig_wait_flag(trig_rank_t *me, const uint64_t *flag,
                           uint64_t value)
{
    unsigned turns = 0;

    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < value) {
        trig_turn(me, &turns);
    }
}

double trig_copy(trig_rank_t *me, size_t size, unsigned count)
{
    trig_page_t *page = me->page;
    unsigned i;
    double start;

    __atomic_store_n(&page->flag[me->rank], 0, __ATOMIC_RELEASE);
    trig_barrier(me);
    start = trig_now();
    for (i = 1; i <= count; ++i) {
        if (me->rank == 1) {
            trig_wait_flag(me, &page->flag[0], i);
        }
        memcpy(page->data[me->rank], me->user, size);
        __atomic_store_n(&page->flag[me->rank], i, __ATOMIC_RELEASE);
        if (me->rank == 0) {
            trig_wait_flag(me, &page->flag[1], i);
        }
    }
    start = trig_now() - start;
    trig_barrier(me);
    return start / (2.0 * count);
}

double trig_attach(trig_rank_t *me, size_t size, unsigned count)
{
    trig_page_t *page  = me->page;
    struct iovec local = {.iov_base = me->user, .iov_len = size};
    struct iovec remote;
    ssize_t ret = 0;
    unsigned i;
    double start;

    remote.iov_base = (void*)(uintptr_t)page->user[!me->rank];
    remote.iov_len  = size;
    __atomic_store_n(&page->flag[me->rank], 0, __ATOMIC_RELEASE);
    trig_barrier(me);
    start = trig_now();
    for (i = 1; i <= count; ++i) {
        if (me->rank == 1) {
            trig_wait_flag(me, &page->flag[0], i);
        }
        ret = process_vm_readv(page->pid[!me->rank], &local, 1, &remote, 1, 0);
        __atomic_store_n(&page->flag[me->rank], i, __ATOMIC_RELEASE);
        if (me->rank == 0) {
            trig_wait_flag(me, &page->flag[1], i);
        }
    }
    start = trig_now() - start;
    trig_barrier(me);
    return (ret == (ssize_t)size) ? start / (2.0 * count) : -1;
}
