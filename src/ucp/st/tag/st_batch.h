/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_batch.h - messages that are used once. A stream starts them; the service
 * thread gives them to the worker's UCP worker and progresses it.
 *
 *   ENQUEUED ---> STARTED ---> POSTED ---> DONE
 *      |  its start  |  the stream  |  UCP     ^
 *      |  is a       |  was there,  |  says so |
 *      |  command    |  UCP has it  |          |
 *      +-------------+--------------+----------+
 *        cancelled, or its queue or peer is gone or in error
 *
 * UCP's callbacks may run in any thread that progresses the UCP worker, also
 * before the call that posts the message returns. While the service thread is
 * in a call of UCP for the message `is_calling` is set: then that thread frees
 * UCP's request, else the callback does. It is set, too, while a FIFO has to
 * keep a message that is complete (st_fifo_nic.c).
 */
#ifndef UCP_ST_BATCH_H_INTERNAL_
#define UCP_ST_BATCH_H_INTERNAL_

#include <ucp_st.h>

#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_stack.h"
#include "core/st_worker.h"
#include "ctrl/st_service.h"

#include <ucs_gstream_gate.h>

#include <ucs/datastruct/list.h>

#include <pthread.h>

struct ucp_st_fifo_msg;

typedef enum {
    UCP_ST_REQ_ENQUEUED,
    UCP_ST_REQ_STARTED,
    UCP_ST_REQ_POSTED,
    UCP_ST_REQ_DONE
} ucp_st_req_state_t;

/**
 * A message. Protected by the worker's lock, but for what is constant from the
 * creation on, and what says otherwise. `state` is stored with the lock held; a
 * thread that reads UCP_ST_REQ_DONE without it sees `info`.
 */
typedef struct ucp_st_req {
    ucs_list_link_t     list;       /* ENQUEUED: in the queue's, of the thread
                                       that calls for it; then in the worker's
                                       work or posted */
    struct ucp_st_req   *next;      /* of the same start */
    ucp_st_stack_item_t begun_item; /* first of a start: in the worker's begun
                                     */
    ucp_st_worker_h     worker;
    ucp_st_queue_h      queue;      /* NULL once it is gone */
    ucp_st_peer_h       peer;       /* or NULL, or UCP_ST_PEER_ANY */
    ucp_st_dir_t        dir;
    void                *buffer;
    size_t              length;
    void                *stage;     /* memory of the host that UCP is given in
                                       the buffer's place, if that lies in a
                                       device (core/st_stage.h); or NULL */
    ucs_gstream_memory_attr_t memory; /* of the buffer */
    uint64_t            *actual;    /* or NULL */
    ucp_tag_t           tag;
    ucp_tag_t           tag_mask;
    struct ucp_st_fifo_msg *msg;    /* of one of a FIFO, until it is complete */
    ucs_gstream_gate_t  *gate;      /* of a wait for some messages, this one of
                                       them; or NULL */
    int                 is_fifo;    /* in no list here, and not counted by the
                                       queue's word */
    ucp_st_req_state_t  state;
    ucp_st_req_info_t   info;       /* once DONE */
    int                 is_freed;   /* by the user */
    int                 is_calling; /* see above */
    int                 is_cancelled;
    int                 is_cancelling; /* UCP was told */
    ucs_status_t        cause;      /* of the cancellation */
    ucp_st_look_t       look;       /* while UCP has it */
    void                *request;   /* UCP's, while POSTED and known */
} ucp_st_req_t;

/** A worker's private data. Protected by its lock but for what says
 *  otherwise. */
typedef struct ucp_st_batch {
    pthread_mutex_t         ready_lock; /* one thread makes it ready */
    int                     is_ready;   /* atomic */
    ucp_st_stack_t          begun;      /* starts that streams have reached;
                                           atomic */
    ucs_list_link_t         work;       /* ucp_st_req_t to give to UCP */
    ucs_list_link_t         posted;     /* that UCP has */
    unsigned                handles;    /* that the user has */
    unsigned                cancels;    /* posted, UCP is to be told */
    int                     fd;         /* UCP's; -1 if it cannot sleep */
    unsigned                idle;       /* rounds with nothing to do; the
                                           thread's */
    ucp_st_service_client_t service;    /* its own */
} ucp_st_batch_t;

/** A peer's private data. */
typedef struct ucp_st_batch_peer {
    ucp_ep_h ep; /* or NULL; made by the service thread, and stored with the
                    worker's lock */
} ucp_st_batch_peer_t;

/** A queue's private data. Of the thread that calls for the queue, but for what
 *  says otherwise. The queue's word for batches counts complete messages, or is
 *  released: the stream waits on it; stored with the worker's lock. */
typedef struct ucp_st_queue_batch {
    ucs_list_link_t   enqueued; /* ucp_st_req_t that are not started */
    uint64_t          started;  /* messages */
    uint64_t          waited;   /* of these, the stream waits for */
    uint64_t          done;     /* complete without error; worker's lock */
    unsigned          receives; /* that UCP has; worker's lock */
    int               is_failing; /* worker's lock */
    ucs_gstream_gates_t gates;    /* of waits for some messages; worker's
                                     lock */
} ucp_st_queue_batch_t;

extern const ucp_st_component_t ucp_st_tag_component;

static inline ucp_st_batch_t *ucp_st_batch(ucp_st_worker_h worker)
{
    return worker->priv[UCP_ST_PRIV_TAG];
}

static inline ucp_st_batch_peer_t *ucp_st_batch_peer(ucp_st_peer_h peer)
{
    return peer->priv[UCP_ST_PRIV_TAG];
}

static inline ucp_st_queue_batch_t *ucp_st_queue_batch(ucp_st_queue_h queue)
{
    return queue->priv[UCP_ST_PRIV_TAG];
}

/** Have the service thread serve the worker, which the first message needs.
 *  UCS_ERR_UNSUPPORTED, logged, if its UCP worker cannot serve. The lock is not
 *  held. */
ucs_status_t ucp_st_batch_make_ready(ucp_st_worker_h worker);

/** Change the state along an edge of the diagram. The lock is held, as it is
 *  for the next ones. */
void ucp_st_req_set_state(ucp_st_req_t *req, ucp_st_req_state_t state);

/** The message is complete: tell the queue, if its start was enqueued. The
 *  message is gone if the user has freed it. */
void ucp_st_req_finish(ucp_st_req_t *req, const ucp_st_req_info_t *info);

/** So many bytes are received: for the stream, before a wait passes. */
static inline void ucp_st_req_set_actual(const ucp_st_req_t *req,
                                         uint64_t length)
{
    if (req->actual != NULL) {
        /* Before the word that the stream waits on is counted up */
        __atomic_store_n(req->actual, length, __ATOMIC_RELEASE);
    }
}

/** A wait for some messages does not wait for this one any more. */
void ucp_st_req_drop_gate(ucp_st_req_t *req);

/** A message failed: put its queue in error, cancel the queue's receives, and
 *  let its waits pass once there are none. */
void ucp_st_req_fail_queue(ucp_st_req_t *req, ucs_status_t status);

/** The message has ended before UCP got it: tell the queue, if its start was
 *  enqueued. The message is gone if the user has freed it. */
void ucp_st_req_finish_status(ucp_st_req_t *req, ucs_status_t status);

/** UCS_OK unless the message's peer is gone; the same for a receive from one
 *  that has left in order: what it has sent before that is received. */
ucs_status_t ucp_st_req_peer_status(const ucp_st_req_t *req);

/** Free a message. */
void ucp_st_req_release(ucp_st_req_t *req);

/** What the message's `is_calling` was set for is over: free the message if it
 *  is complete and the user has freed it. */
void ucp_st_req_called(ucp_st_req_t *req);

/** Have the service thread cancel a message. */
void ucp_st_req_abort(ucp_st_req_t *req, ucs_status_t cause);

/* st_batch_ep.c */

/** How long the end of a worker waits for UCP, each time, seconds. */
#define UCP_ST_BATCH_STOP_TIME 1.0

/** The endpoint to a peer, which the first message makes. In the service
 *  thread, without the lock. */
ucs_status_t ucp_st_batch_ep_get(ucp_st_peer_h peer, ucp_ep_h *ep_p);

/** Have what UCP has taken leave: it comes before the peer hears that this side
 *  leaves, which goes another way. The lock is not held, nor for the next
 *  one. */
void ucp_st_batch_eps_flush(ucp_st_worker_h worker);

/** Close them. No other thread uses the worker. */
void ucp_st_batch_eps_close(ucp_st_worker_h worker);

#endif
