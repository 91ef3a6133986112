/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_ring.c - the events of one thread. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* pthread_getname_np() */
#endif

#include "trace_ring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>


/* All of them; they stay when their threads end. */
static _Atomic(trace_ring_t *) trace_rings;


static void trace_ring_publish(trace_ring_t *ring)
{
    ring->next = atomic_load(&trace_rings);
    while (!atomic_compare_exchange_weak(&trace_rings, &ring->next, ring)) {
    }
}

trace_ring_t *trace_ring_create(size_t bytes)
{
    trace_ring_t *ring;

    /* So much memory is taken from the system as it is written to */
    ring = calloc(1, bytes);
    if (ring == NULL) {
        return NULL;
    }

    ring->size = (bytes - sizeof(*ring)) / sizeof(trace_event_t);
    ring->tid  = (int)syscall(SYS_gettid);
    if (pthread_getname_np(pthread_self(), ring->name,
                           sizeof(ring->name)) != 0) {
        snprintf(ring->name, sizeof(ring->name), "%d", ring->tid);
    }
    atomic_init(&ring->begun, 0);
    atomic_init(&ring->count, 0);
    trace_ring_publish(ring);
    return ring;
}

trace_ring_t *trace_ring_first(void)
{
    return atomic_load(&trace_rings);
}

static _Atomic uint64_t *trace_ring_slot(trace_ring_t *ring, uint64_t index)
{
    return &ring->words[(index % ring->size) * TRACE_RING_WORDS];
}

void trace_ring_add(trace_ring_t *ring, const trace_event_t *event)
{
    uint64_t index = atomic_load_explicit(&ring->count, memory_order_relaxed);
    _Atomic uint64_t *slot = trace_ring_slot(ring, index);
    uint64_t words[TRACE_RING_WORDS];
    size_t i;

    memcpy(words, event, sizeof(words));
    atomic_store_explicit(&ring->begun, index + 1, memory_order_relaxed);
    for (i = 0; i < TRACE_RING_WORDS; ++i) {
        /* Pairs with the acquire load in trace_ring_read(): what sees a word
         * sees `begun` */
        atomic_store_explicit(&slot[i], words[i], memory_order_release);
    }
    atomic_store_explicit(&ring->count, index + 1, memory_order_release);
}

int trace_ring_read(trace_ring_t *ring, uint64_t index, trace_event_t *event)
{
    _Atomic uint64_t *slot = trace_ring_slot(ring, index);
    uint64_t words[TRACE_RING_WORDS];
    size_t i;

    for (i = 0; i < TRACE_RING_WORDS; ++i) {
        words[i] = atomic_load_explicit(&slot[i], memory_order_acquire);
    }
    memcpy(event, words, sizeof(words));
    return atomic_load_explicit(&ring->begun, memory_order_relaxed) <=
           (index + ring->size);
}

uint64_t trace_ring_oldest(const trace_ring_t *ring, uint64_t count)
{
    return (count > ring->size) ? (count - ring->size) : 0;
}
