/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fake.h - a peer that speaks the protocol of st workers by hand, so that it
 * can say anything. Its messages are this process's. Its shared memory is a
 * child process's, which does nothing: so the side that is tested takes it for
 * another process.
 */
#ifndef ST_FAKE_H_
#define ST_FAKE_H_

#include "st_pair.h"

#include "core/st_proto.h"
#include "direct/st_direct_proto.h"
#include "rma/st_rma_proto.h"

#include <ucp/api/ucp.h>

/** Bytes of its segment, and where its pair and a mapped buffer are there. */
#define ST_FAKE_MEMORY (1ul << 20)
#define ST_FAKE_PAIR   (16ul << 10)
#define ST_FAKE_BUFFER (512ul << 10)

/** Longest message that it sends, bytes. */
#define ST_FAKE_MAX 2048

/** The peer, and the side that is tested, its target. */
typedef struct {
    ucp_context_h        context;
    ucp_worker_h         worker;
    ucp_address_t        *address;
    size_t               address_length;
    st_side_t            *target;
    ucp_ep_h             ep;      /* to its service thread */
    int                  is_new;  /* `ep` is an earlier peer's */
    uint8_t              *shared; /* its segment */
    size_t               shared_length;
    uint64_t             target_uuid;
    ucp_st_place_t       place;
    uint64_t             uuid;
    uint32_t             seq;    /* of its next frame */

    /* What the target has told since st_fake_renew() */
    ucp_st_ctrl_match_t  match;  /* the last of them */
    unsigned             num_matches;
    ucp_st_direct_blob_t blob;   /* lane direct's offer */
    unsigned             num_binds;
    unsigned             num_unmatches;
    ucp_st_rma_request_t request;
    unsigned             num_requests;
} st_fake_t;

/** A message of the peer's. */
typedef struct {
    size_t  data_length; /* bytes that come with it, of st_fake_memory() */
    size_t  length;
    uint8_t data[ST_FAKE_MAX];
} st_fake_msg_t;

/** What it offers for a pair. */
typedef struct {
    ucp_st_lane_t lane;
    size_t        length;
    const void    *data;
} st_fake_offer_t;

/** To be called first in main(): starts the child process. */
void st_fake_fork(void);

/** The segment of the child. */
uint8_t *st_fake_memory(void);

/** Set a peer up for a target, with the UCX of the environment. Asserts. */
void st_fake_init(st_fake_t *fake, st_side_t *target);

/** Undo that. */
void st_fake_cleanup(st_fake_t *fake);

/** Become another peer, whose memory is empty. */
void st_fake_renew(st_fake_t *fake);

/** The address of the peer as a worker with one lane: its length. Lane trig:
 *  that of a worker `like`. `data` has room for ST_FAR_ADDRESS bytes. */
size_t st_fake_address(const st_fake_t *fake, ucp_st_lane_t lane,
                       const st_side_t *like, void *data);

/** Make it the target's peer, with that address; asserts. */
ucp_st_peer_h st_fake_peer(st_fake_t *fake, ucp_st_lane_t lane,
                           const st_side_t *like);

/** Begin a frame, and add a message, with its head. */
void st_fake_frame(st_fake_msg_t *frame);
void st_fake_add(st_fake_msg_t *frame, uint8_t type, const void *msg,
                 size_t length);

/** Make its head what it should be. */
void st_fake_fix(st_fake_t *fake, st_fake_msg_t *frame);

/** The announcement that is the other half of the target's. */
void st_fake_answer(const st_fake_t *fake, ucp_st_lane_t lane,
                    ucp_st_ctrl_match_t *match);

/** What lane direct offers for a message. From 64k on it is mapped. */
void st_fake_blob(size_t length, ucp_st_direct_blob_t *blob);

/** Send a frame; the target has most likely handled it when this returns. */
void st_fake_send(st_fake_t *fake, const st_fake_msg_t *frame);

/** Send the header of an active message, with data. */
void st_fake_send_am(st_fake_t *fake, unsigned id, const st_fake_msg_t *msg);

/** Make progress of both for a while. */
void st_fake_progress(st_fake_t *fake);

/** Give the target's operation to match, and make the frame that answers it as
 *  the protocol has it, but for st_fake_fix(). */
void st_fake_bind(st_fake_t *fake, ucp_st_op_h op, const st_fake_offer_t *offer,
                  st_fake_msg_t *frame);

/** Do so, and send it. How the target's match has ended. */
ucs_status_t st_fake_match(st_fake_t *fake, ucp_st_op_h op,
                           const st_fake_offer_t *offer);

/** End the half of the target's operation, for a reason: the target has heard
 *  it when this returns. */
void st_fake_unmatch(st_fake_t *fake, int32_t status);

/** Have the target declare the peer gone. */
void st_fake_end(st_fake_t *fake);

#endif
