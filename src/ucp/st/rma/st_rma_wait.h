/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_wait.h - a stream that waits for signals.
 */
#ifndef UCP_ST_RMA_WAIT_H_
#define UCP_ST_RMA_WAIT_H_

#include "rma/st_rma.h"

/** A signal that a wait is for. Read-only. */
typedef struct ucp_st_rma_awaited {
    ucp_st_memh_t       *mem;    /* held */
    ucp_st_peer_h       peer;    /* or NULL */
    uint64_t            *signal;
    uint64_t            value;
    ucp_st_signal_cmp_t cmp;
    int                 may_store; /* to `signal`, once the queue has failed */
    const char          *name;   /* or NULL */
} ucp_st_rma_awaited_t;

/** A wait. Read-only unless a field says otherwise. */
typedef struct ucp_st_rma_wait {
    ucs_list_link_t      list;       /* in the worker's; wait_lock */
    ucp_st_queue_h       queue;
    size_t               count;      /* signals */
    ucp_st_rma_awaited_t *signals;   /* room for `max`; these and the word stay
                                        when the wait is unused */
    size_t               max;
    volatile uint64_t    *word;      /* 1: it passes; atomic */
    uint64_t             seq;        /* of its submission, if the stream waits
                                        for the signals itself: then nothing
                                        wakes it, and `word` is not used */
    uint8_t              is_streams; /* it does */
    uint8_t              has_peer;   /* some signal has */
    uint8_t              is_helped;  /* the stream calls `helper` */
    uint8_t              is_listed;  /* the stream's */
    uint8_t              is_asleep;  /* counted as a sleeper; the stream's */
    ucp_st_look_t        look;       /* wait_lock */
    ucs_gstream_helper_t helper;
    ucs_gstream_notify_t notify;     /* if the queue's helper has none; the
                                        stream's */
} ucp_st_rma_wait_t;

/** Why signals in some memory mean nothing, UCS_OK if they do. */
static inline ucs_status_t ucp_st_rma_mem_status(const ucp_st_memh_t *mem)
{
    return __atomic_load_n(&mem->status, __ATOMIC_RELAXED);
}

/** A signal has come. */
static inline int ucp_st_rma_awaited_is_met(const ucp_st_rma_awaited_t *awaited)
{
    /* Pairs with the release of the signal: the data is there; or with that of
     * ucp_st_rma_wait_release(): the memory's status is */
    uint64_t signal = __atomic_load_n(awaited->signal, __ATOMIC_ACQUIRE);

    if (ucp_st_rma_mem_status(awaited->mem) != UCS_OK) {
        return 0;
    }
    return (awaited->cmp == UCP_ST_SIGNAL_EQ) ? (signal == awaited->value) :
                                                (signal >= awaited->value);
}

/** The first signal of a wait that has not come, NULL if all have. */
static inline const ucp_st_rma_awaited_t *
ucp_st_rma_wait_first(const ucp_st_rma_wait_t *wait)
{
    size_t i;

    for (i = 0; i < wait->count; ++i) {
        if (!ucp_st_rma_awaited_is_met(&wait->signals[i])) {
            return &wait->signals[i];
        }
    }
    return NULL;
}

/** The stream has passed a wait that it does itself. */
static inline int ucp_st_rma_wait_is_over(const ucp_st_rma_wait_t *wait)
{
    return wait->is_streams &&
           (ucp_st_queue_passed(wait->queue) >= wait->seq);
}

/** Why signals of a wait mean nothing, UCS_OK if all do. */
static inline ucs_status_t
ucp_st_rma_wait_mem_status(const ucp_st_rma_wait_t *wait)
{
    ucs_status_t status = UCS_OK;
    size_t i;

    for (i = 0; (i < wait->count) && (status == UCS_OK); ++i) {
        status = ucp_st_rma_mem_status(wait->signals[i].mem);
    }
    return status;
}

#endif
