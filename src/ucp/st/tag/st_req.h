/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_req.h - a message that is used once.
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
 * in a call of UCP for the message `is_calling` is set: then that thread gives
 * UCP's request back, else the callback does.
 */
#ifndef UCP_ST_REQ_H_
#define UCP_ST_REQ_H_

#include <ucp_st.h>

#include "core/st_op.h"
#include "core/st_stack.h"

#include <ucs/datastruct/list.h>

typedef enum {
    UCP_ST_REQ_ENQUEUED,
    UCP_ST_REQ_STARTED,
    UCP_ST_REQ_POSTED,
    UCP_ST_REQ_DONE
} ucp_st_req_state_t;

/**
 * Protected by the worker's lock, but for what is constant from the creation
 * on, and what says otherwise. `state` is stored with the lock held; a thread
 * that reads UCP_ST_REQ_DONE without it sees `info`.
 */
typedef struct ucp_st_req {
    ucs_list_link_t    list;       /* ENQUEUED: in the queue's, of the thread
                                      that calls for it; then in the worker's
                                      work or posted */
    struct ucp_st_req  *next;      /* of the same start */
    ucp_st_stack_item_t begun_item; /* first of a start: in the worker's
                                       begun */
    ucp_st_worker_h    worker;
    ucp_st_queue_h     queue;      /* NULL once it is gone */
    ucp_st_peer_h      peer;       /* or NULL, or UCP_ST_PEER_ANY */
    ucp_st_dir_t       dir;
    void               *buffer;
    size_t             length;
    ucp_tag_t          tag;
    ucp_tag_t          tag_mask;
    ucp_st_req_state_t state;
    ucp_st_req_info_t  info;       /* once DONE */
    int                is_freed;   /* by the user */
    int                is_calling; /* see above */
    int                is_cancelled;
    int                is_cancelling; /* UCP was told */
    ucs_status_t       cause;      /* of the cancellation */
    void               *request;   /* UCP's, while POSTED and known */
} ucp_st_req_t;

/** Non-zero if it names a peer that messages can be sent to. */
int ucp_st_req_has_peer(const ucp_st_req_t *req);

/** Change the state along an edge of the diagram. The lock is held. */
void ucp_st_req_set_state(ucp_st_req_t *req, ucp_st_req_state_t state);

/**
 * The message is complete: tell the queue, if its start was enqueued. The lock
 * is held.
 */
void ucp_st_req_done(ucp_st_req_t *req, const ucp_st_req_info_t *info);

/**
 * Put a message's queue in error: cancel its receives, and let its waits pass
 * once there are none. The lock is held.
 */
void ucp_st_req_fail_queue(ucp_st_req_t *req, ucs_status_t status);

/** Have the service thread cancel a message. The lock is held. */
void ucp_st_req_abort(ucp_st_req_t *req, ucs_status_t cause);

#endif
