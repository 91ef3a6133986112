/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_peer_bad.c - peers that say what no peer can mean, each in one place:
 * it is refused, and the operation or the peer fails.
 */
#include "st_cunit.h"
#include "st_fake.h"
#include "st_near.h"

#include "core/st_op.h"
#include "core/st_queue.h"
#include "ctrl/st_net.h"
#include "direct/st_direct.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHORT  1000
#define MAPPED (256ul << 10)

/** A bad peer, and the side that it meets. */
typedef struct {
    st_side_t     side;
    st_fake_t     fake;
    ucp_st_peer_h peer;
    uint8_t       *buffer;
    ucp_st_op_h   op;
} bad_t;

static void bad_init(bad_t *bad, const char *lane)
{
    const char *const env[] = {"UCX_TLS", "posix,self", "UCX_ST_LANES", lane,
                               "UCX_ST_DIRECT_SIZE", "1m", NULL};
    char *before[NEAR_MAX_ENV];

    near_env_set(env, before);
    st_side_init(&bad->side);
    st_fake_init(&bad->fake, &bad->side);
    near_env_restore(env, before);
    bad->buffer = calloc(1, MAPPED);
    bad->op     = NULL;
}

/* Meet the peer with an operation of the own side */
static void bad_meet(bad_t *bad, ucp_st_lane_t lane, int is_send, size_t length)
{
    bad->peer      = st_fake_peer(&bad->fake, lane, NULL);
    bad->side.peer = bad->peer;
    bad->op        = (is_send ? st_send : st_recv)(&bad->side, bad->buffer,
                                                   length, 1);
}

/* Match it over lane direct; NULL: with a good offer */
static ucs_status_t bad_match(bad_t *bad, const ucp_st_direct_blob_t *blob)
{
    ucp_st_direct_blob_t good;
    st_fake_offer_t offer = {
        .lane   = UCP_ST_LANE_DIRECT,
        .length = sizeof(good),
        .data   = (blob == NULL) ? &good : blob
    };

    st_fake_blob(bad->op->length, &good);
    return st_fake_match(&bad->fake, bad->op, &offer);
}

static void bad_cleanup(bad_t *bad)
{
    st_fake_end(&bad->fake);
    (void)ucp_st_queue_wait(bad->side.queue, NULL);
    if (bad->op != NULL) {
        st_free(bad->op);
    }
    st_side_cleanup(&bad->side);
    st_fake_cleanup(&bad->fake);
    free(bad->buffer);
}

#define BAD_CASE(_name, _lane) \
    ST_CASE_WITH(_name, bad_t, bad, bad_init(bad, _lane), bad_cleanup(bad))

/* A good one, so that the others show what they are to show */
BAD_CASE(good, "direct")
{
    ucp_st_direct_pair_t *pair = (ucp_st_direct_pair_t*)(st_fake_memory() +
                                                         ST_FAKE_PAIR);

    bad_meet(bad, UCP_ST_LANE_DIRECT, 1, SHORT);
    st_fill(bad->buffer, SHORT, 1);
    CU_ASSERT_EQUAL_FATAL(bad_match(bad, NULL), UCS_OK);
    st_use(&bad->side, bad->op);
    st_sync(&bad->side);
    CU_ASSERT_EQUAL(pair->slots[0].seq, 1);
    CU_ASSERT_TRUE(st_check(&pair->slots[UCP_ST_DIRECT_NUM_SLOTS], SHORT, 1));
}

/* Pieces so long that the size of a pair wraps around, and other places that no
 * pair is at */
static void run_offer(uint64_t offset, uint64_t piece)
{
    ucp_st_direct_blob_t blob;
    bad_t bad;

    bad_init(&bad, "direct");
    bad_meet(&bad, UCP_ST_LANE_DIRECT, 1, SHORT);
    st_fake_blob(SHORT, &blob);
    blob.pair  = offset;
    blob.piece = piece;
    CU_ASSERT_EQUAL(bad_match(&bad, &blob), UCS_ERR_INVALID_PARAM);
    bad_cleanup(&bad);
}

ST_CASE_CALL(piece_wraps, run_offer(ST_FAKE_PAIR, 1ull << 62))
ST_CASE_CALL(piece_wraps_all, run_offer(ST_FAKE_PAIR, UINT64_MAX))
ST_CASE_CALL(piece_none, run_offer(ST_FAKE_PAIR, 0))
ST_CASE_CALL(piece_long, run_offer(ST_FAKE_PAIR, 8ul << 20))
ST_CASE_CALL(pair_outside, run_offer(ST_FAKE_MEMORY, 56))
ST_CASE_CALL(pair_at_end, run_offer(ST_FAKE_MEMORY - 64, 56))
ST_CASE_CALL(pair_odd, run_offer(ST_FAKE_PAIR + 4, 56))

/* The wait record of the peer's stream is said to lie elsewhere */
static void run_record(uint64_t offset)
{
    ucp_st_direct_segment_t *segment = (ucp_st_direct_segment_t*)
            st_fake_memory();
    ucp_st_direct_pair_t *pair       = (ucp_st_direct_pair_t*)
            (st_fake_memory() + ST_FAKE_PAIR);
    bad_t bad;

    bad_init(&bad, "direct");
    bad_meet(&bad, UCP_ST_LANE_DIRECT, 1, SHORT);
    CU_ASSERT_EQUAL(bad_match(&bad, NULL), UCS_OK);
    segment->sleepers                     = 1;
    pair->side[UCP_ST_DIR_RECV].record    = offset;
    pair->side[UCP_ST_DIR_RECV].begun     = 1;
    st_use(&bad.side, bad.op);
    st_sync(&bad.side);
    bad_cleanup(&bad);
}

ST_CASE_CALL(record_far, run_record(1ull << 40))
ST_CASE_CALL(record_at_end, run_record(ST_FAKE_MEMORY))
ST_CASE_CALL(record_odd, run_record(ST_FAKE_MEMORY / 2 + 1))

/* Pieces that a message does not have are said to be claimed */
static void run_claim(uint64_t claim)
{
    ucp_st_direct_pair_t *pair = (ucp_st_direct_pair_t*)(st_fake_memory() +
                                                         ST_FAKE_PAIR);
    bad_t bad;

    bad_init(&bad, "direct");
    bad_meet(&bad, UCP_ST_LANE_DIRECT, 1, MAPPED);
    CU_ASSERT_EQUAL(bad_match(&bad, NULL), UCS_OK);
    pair->side[UCP_ST_DIR_RECV].begun = 1;
    pair->claim                       = claim;
    st_use(&bad.side, bad.op);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(bad.side.queue, NULL), UCS_ERR_IO_ERROR);
    bad_cleanup(&bad);
}

#define CLAIM(_use, _low, _high) \
    (((uint64_t)(_use) << 25) | ((uint64_t)(_low) << 12) | (_high))

ST_CASE_CALL(claim_behind, run_claim(CLAIM(1, 8, 4000)))
ST_CASE_CALL(claim_backwards, run_claim(CLAIM(1, 6, 2)))
ST_CASE_CALL(claim_later, run_claim(CLAIM(3, 0, 8)))

/* What the target's segment says of free pieces, which peers can write to: the
 * second one that is taken is said to lie elsewhere */
BAD_CASE(free_piece, "direct")
{
    ucp_st_op_h op;

    bad_meet(bad, UCP_ST_LANE_DIRECT, 0, SHORT);
    CU_ASSERT_EQUAL(bad_match(bad, NULL), UCS_OK);
    st_fake_unmatch(&bad->fake, UCS_ERR_CANCELED);
    st_free(bad->op);
    st_fake_end(&bad->fake);
    *(uint64_t*)(bad->fake.shared + bad->fake.blob.pair) = 1ull << 40;
    st_fake_renew(&bad->fake);
    bad_meet(bad, UCP_ST_LANE_DIRECT, 0, SHORT);
    CU_ASSERT_EQUAL(bad_match(bad, NULL), UCS_OK);
    op                    = bad->op;
    bad->op               = st_recv(&bad->side, bad->buffer, SHORT, 2);
    bad->fake.num_matches = 0;
    CU_ASSERT_EQUAL(bad_match(bad, NULL), UCS_OK);
    st_free(op);
}

/* Numbers of uses that no longer fit into a claim */
ST_CASE(claim_wraps)
{
    const uint64_t uses = (1ull << 39) - 2;
    ucp_st_direct_op_t *direct;
    near_t near;
    uint64_t k;
    int i;

    near_init(&near, NULL, MAPPED);
    near_use(&near, 1);
    for (i = 0; i < 2; ++i) {
        near.op[i]->started   = uses;
        near.op[i]->waited    = uses;
        near.op[i]->completed = uses;
        direct                = near.op[i]->priv[UCP_ST_LANE_DIRECT];
        direct->begun         = uses;
        direct->mine->begun   = uses;
        direct->mine->count   = (i == ST_A) ? 0 : (uses * direct->num_pieces);
        *direct->word         = uses;
        direct->pair->claim   = CLAIM(uses, 0, 0);
    }
    for (k = 0; k < 5; ++k) {
        near_use(&near, k);
    }
    near_cleanup(&near);
}

/* The peer says of its end that it is under way, or no error at all */
static void run_status(int32_t status, ucs_status_t result)
{
    ucp_st_queue_error_t error = {.status = UCS_OK};
    bad_t bad;

    bad_init(&bad, "direct");
    bad_meet(&bad, UCP_ST_LANE_DIRECT, 0, SHORT);
    CU_ASSERT_EQUAL(bad_match(&bad, NULL), UCS_OK);
    st_use(&bad.side, bad.op);
    st_fake_unmatch(&bad.fake, status);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(bad.side.queue, &error), result);
    CU_ASSERT_EQUAL(error.status, result);
    bad_cleanup(&bad);
}

ST_CASE_CALL(status_in_progress, run_status(UCS_INPROGRESS, UCS_ERR_IO_ERROR))
ST_CASE_CALL(status_none, run_status(UCS_OK, UCS_ERR_CANCELED))
ST_CASE_CALL(status_unknown, run_status(-100000, UCS_ERR_IO_ERROR))
ST_CASE_CALL(status_good, run_status(UCS_ERR_NO_MEMORY, UCS_ERR_NO_MEMORY))

/* An answer that nobody has asked for */
static void run_answer(uint8_t type, int is_matched)
{
    ucp_st_ctrl_op_t msg = {.src_op_id = 77};
    st_fake_msg_t frame;
    bad_t bad;

    bad_init(&bad, "direct");
    bad_meet(&bad, UCP_ST_LANE_DIRECT, 0, SHORT);
    if (is_matched) {
        CU_ASSERT_EQUAL(bad_match(&bad, NULL), UCS_OK);
    } else {
        CU_ASSERT_EQUAL(ucp_st_imatchall(&bad.op, 1), UCS_OK);
        st_fake_progress(&bad.fake);
    }
    msg.op_id = bad.op->id;
    st_fake_frame(&frame);
    st_fake_add(&frame, type, &msg, sizeof(msg));
    st_fake_fix(&bad.fake, &frame);
    st_fake_send(&bad.fake, &frame);
    CU_ASSERT_EQUAL(ucp_st_match_test(bad.op), is_matched ? UCS_OK :
                                                            UCS_INPROGRESS);
    bad_cleanup(&bad);
}

ST_CASE_CALL(answer_cancel, run_answer(UCP_ST_CTRL_CANCEL_ACK, 0))
ST_CASE_CALL(answer_unmatch, run_answer(UCP_ST_CTRL_UNMATCH_ACK, 0))
ST_CASE_CALL(answer_matched, run_answer(UCP_ST_CTRL_UNMATCH_ACK, 1))

/* Messages that only other lanes take, and none */
BAD_CASE(unknown, "direct")
{
    st_fake_msg_t msg = {.length = 24};
    unsigned id;

    bad->peer = st_fake_peer(&bad->fake, UCP_ST_LANE_DIRECT, NULL);
    for (id = 0; id < (UCP_ST_NET_AM_LAST + 3); ++id) {
        st_fake_send_am(&bad->fake, id, &msg);
    }
}

/* A message for another worker, which has had the address before */
BAD_CASE(other_worker, "direct")
{
    st_fake_msg_t frame;
    ucp_st_frame_t *head = (ucp_st_frame_t*)frame.data;

    bad_meet(bad, UCP_ST_LANE_DIRECT, 0, SHORT);
    st_fake_frame(&frame);
    frame.data[frame.length++] = 0xff; /* no head of a message */
    st_fake_fix(&bad->fake, &frame);
    ++head->dst;
    --bad->fake.seq;
    st_fake_send(&bad->fake, &frame);
    CU_ASSERT_EQUAL(bad_match(bad, NULL), UCS_OK);
}

/* An address without the part that UCP needs */
BAD_CASE(address_empty, "direct")
{
    uint8_t address[4096];
    ucp_st_address_hdr_t *hdr = (ucp_st_address_hdr_t*)address;
    size_t length = st_fake_address(&bad->fake, UCP_ST_LANE_DIRECT, NULL,
                                    address);
    size_t left   = length - sizeof(*hdr) - hdr->ucp_length;
    ucp_st_peer_h peer;

    memmove(hdr + 1, (uint8_t*)(hdr + 1) + hdr->ucp_length, left);
    hdr->ucp_length = 0;
    CU_ASSERT_EQUAL(ucp_st_peer_create(bad->side.worker, address,
                                       sizeof(*hdr) + left, &peer),
                    UCS_ERR_INVALID_ADDR);
}

/* A process that says it is this one, whose addresses would be believed */
BAD_CASE(address_near, "direct")
{
    uint8_t address[4096];
    ucp_st_address_hdr_t *hdr = (ucp_st_address_hdr_t*)address;
    size_t length = st_fake_address(&bad->fake, UCP_ST_LANE_DIRECT, NULL,
                                    address);
    ucp_st_peer_h peer;

    hdr->place.pid = (uint32_t)getpid();
    CU_ASSERT_EQUAL(ucp_st_peer_create(bad->side.worker, address, length,
                                       &peer), UCS_ERR_UNREACHABLE);
}

/* A get whose answer is no answer */
BAD_CASE(reply_in_progress, "host")
{
    ucp_st_rkey_hdr_t key         = {
        .magic     = UCP_ST_RKEY_MAGIC,
        .version   = UCP_ST_PROTO_VERSION,
        .num_lanes = 1,
        .uuid      = bad->fake.uuid,
        .length    = SHORT
    };
    ucp_st_address_lane_t head    = {.lane = UCP_ST_LANE_HOST};
    ucp_st_rma_reply_t reply      = {.status = UCS_INPROGRESS};
    st_fake_msg_t msg             = {.length = sizeof(reply)};
    ucp_st_rma_params_t params    = {
        .field_mask = UCP_ST_RMA_PARAM_FIELD_MEMH |
                      UCP_ST_RMA_PARAM_FIELD_LENGTH |
                      UCP_ST_RMA_PARAM_FIELD_RKEY,
        .length     = SHORT
    };
    uint8_t bytes[sizeof(key) + sizeof(head)];
    ucp_st_mem_h memh;

    memcpy(bytes, &key, sizeof(key));
    memcpy(bytes + sizeof(key), &head, sizeof(head));
    bad->peer = st_fake_peer(&bad->fake, UCP_ST_LANE_HOST, NULL);
    CU_ASSERT_EQUAL(ucp_st_mem_reg(bad->side.worker, bad->buffer, SHORT, &memh),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_rkey_unpack(bad->peer, bytes, sizeof(bytes),
                                       &params.rkey), UCS_OK);
    params.memh = memh;
    CU_ASSERT_EQUAL(ucp_st_enqueue_get(bad->side.queue, &params), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_quiet(bad->side.queue), UCS_OK);
    while (bad->fake.num_requests == 0) {
        st_fake_progress(&bad->fake);
    }
    reply.src = bad->fake.uuid;
    reply.dst = bad->fake.target_uuid;
    reply.id  = bad->fake.request.id;
    memcpy(msg.data, &reply, sizeof(reply));
    st_fake_send_am(&bad->fake, UCP_ST_NET_AM_RMA_REPLY, &msg);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(bad->side.queue, NULL),
                    UCS_ERR_IO_ERROR);
    while (ucp_st_rkey_destroy(params.rkey) == UCS_ERR_BUSY) {
        st_fake_progress(&bad->fake);
    }
    while (ucp_st_mem_dereg(memh) == UCS_ERR_BUSY) {
        st_fake_progress(&bad->fake);
    }
}

int main(int argc, char **argv)
{
    st_fake_fork();
    return st_cunit_main("st_peer_bad", argc, argv);
}
