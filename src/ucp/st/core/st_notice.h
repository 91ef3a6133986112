/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_notice.h - service threads tell each other of failures.
 *
 * Control messages need calls of both hosts. A failure that the service thread
 * of one side finds would reach streams of the other side only then. So that
 * thread also sends it to the service thread of the peer, over the UCP worker
 * that it drives (st_svc.h):
 *
 *   UNMATCH      as the control message of that name, which comes as well: of
 *                an operation that failed; of one that was freed only if the
 *                peer's host does not confirm that soon
 *   UNMATCH_ACK  as the control message
 *   GONE         the peer was declared gone here, and can reach nothing of this
 *                side any more. It declares this side gone in turn, and sends
 *                GONE, too
 *   PING         a stream waits for the peer. If the peer has lost this side it
 *                decides that, and sends GONE again if that did not arrive
 *   BYE          as the control message, which the peer's host does not answer
 *   BYE_ACK      ... the peer's host may read it later: from now on nothing is
 *                sent to the leaver
 *
 * A notice may overtake control messages and data of other operations, may come
 * twice, and may not come at all. So its effects can be repeated, and its
 * content stays true. Numbers of workers and operations are never used twice;
 * each notice has those of both sides.
 */
#ifndef UCP_ST_NOTICE_H_
#define UCP_ST_NOTICE_H_

#include "core/st_peer.h"

/** Types of notices. */
typedef enum {
    UCP_ST_NOTICE_UNMATCH,     /**< A matched operation was freed, or failed */
    UCP_ST_NOTICE_UNMATCH_ACK, /**< ... and its peer's region is closed */
    UCP_ST_NOTICE_GONE,        /**< The receiver was declared gone, and no
                                    region is open to it any more */
    UCP_ST_NOTICE_PING,        /**< A stream waits for the receiver */
    UCP_ST_NOTICE_BYE,         /**< The worker is being destroyed */
    UCP_ST_NOTICE_BYE_ACK,     /**< ... and is sent nothing any more */
    UCP_ST_NOTICE_LAST
} ucp_st_notice_type_t;

/** A notice: the header of an active message without data. Fields that a type
 *  does not need are 0. */
typedef struct ucp_st_notice_msg {
    uint8_t  type;      /**< @ref ucp_st_notice_type_t */
    uint8_t  reserved[3];
    int32_t  status;    /**< UNMATCH: why, for the receiver */
    uint64_t src;       /**< Sender's uuid */
    uint64_t dst;       /**< Receiver's uuid */
    uint64_t op_id;     /**< Receiver's operation */
    uint64_t src_op_id; /**< Sender's operation */
    uint64_t uses;      /**< UNMATCH: uses that will still complete */
} __attribute__((packed)) ucp_st_notice_msg_t;

_Static_assert(sizeof(ucp_st_notice_msg_t) == 48, "wire format");

/** Post the notices that a peer needs and was not sent yet. In any thread, with
 *  the lock held; `now` is the time. */
void ucp_st_notice_look(ucp_st_peer_t *peer, double now);

/** Send BYE; zero if that is not possible. The lock is held, as for the next
 *  ones. */
int ucp_st_notice_bye(ucp_st_peer_t *peer);

/** Answer the peer's BYE, if that is due, and nothing is under way to it. */
void ucp_st_notice_answer_bye(ucp_st_peer_t *peer);

/** Non-zero if a peer that is gone is still to be told that. The lock is
 *  held. */
int ucp_st_notice_is_wanted(const ucp_st_peer_t *peer);

/** Non-zero while notices to the peer have not left. */
int ucp_st_notice_is_sending(ucp_st_peer_h peer);

/** Ask whether the peer is there, and close the endpoint of one that is gone.
 */
void ucp_st_notice_check(ucp_st_peer_t *peer);

/** No notice reaches the peer any more. */
void ucp_st_notice_lost(ucp_st_peer_t *peer, ucs_status_t status);

/** Take a notice, after a check. In the service thread. */
void ucp_st_notice_receive(ucp_st_worker_h worker, const void *data,
                           size_t length);

/** Have the service thread send notices. No other thread uses the worker, as
 *  for the next one, and the lock is not held. */
void ucp_st_notice_init(ucp_st_worker_h worker);

/** Drop notices that UCP was not given. */
void ucp_st_notice_cleanup(ucp_st_worker_h worker);

#endif
