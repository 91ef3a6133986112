/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_fuzz.c - what other processes write, drawn at random (fuzz_util.h):
 * addresses, keys, control messages and offers of all lanes, messages of
 * service threads, and shared memory of lane direct. Whatever comes, nothing
 * ends the process, each operation ends, and another pair of the same worker
 * goes on. What was found so is in test_st_peer_bad.c.
 */
#include "fuzz_util.h"
#include "st_cunit.h"
#include "st_fake.h"
#include "st_far.h"
#include "st_hook.h"
#include "st_near.h"
#include "uct_errors.h"

#include "core/st_op.h"
#include "ctrl/st_net.h"

#include <ucs/sys/math.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT  1000
#define LONGER (256ul << 10) /* mapped by lane direct */
#define MEMORY 4096          /* registered, with as much around it */
#define TURNS  16            /* rounds between two uses of the good pair */
#define TAG    5

/** What all loops have: a good pair, of which A is the target of a bad peer. */
typedef struct {
    fuzz_t        fuzz;
    ucp_st_lane_t lane;
    near_t        near;
    st_side_t     *target;
    st_side_t     *other;   /* the good one */
    st_fake_t     fake;
    ucp_st_peer_h peer;     /* the bad one, of this round */
    ucp_st_op_h   op;       /* with it */
    uint8_t       *buffer;  /* of that */
    uint8_t       *memory;  /* of one-sided operations, of A and of B */
    ucp_st_mem_h  memh[2];
    void          *key[2];  /* packed */
    size_t        key_length[2];
    int           is_alone; /* the good pair's memory is not good any more */
    unsigned      matches;  /* rounds in which the operation was matched */
    unsigned      failures; /* ... in which the queue was in error */
} bad_loop_t;

static void loop_memory(bad_loop_t *loop)
{
    int i;

    loop->memory = malloc(6 * MEMORY);
    memset(loop->memory, ST_SPOILED, 6 * MEMORY);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL_FATAL(ucp_st_mem_reg(loop->near.pair.side[i].worker,
                                             loop->memory +
                                             (((3 * i) + 1) * MEMORY), MEMORY,
                                             &loop->memh[i]), UCS_OK);
        CU_ASSERT_EQUAL_FATAL(ucp_st_rkey_pack(loop->memh[i], &loop->key[i],
                                               &loop->key_length[i]), UCS_OK);
    }
}

static void loop_init(bad_loop_t *loop, const char *lane, uint64_t rounds)
{
    const char *const env[] = {
        "UCX_ST_LANES", lane, "UCX_TLS",
        strcmp(lane, "trig") ? "posix,self" : "cxi_trig,posix,self",
        "UCX_ST_DIRECT_SIZE", "1m", NULL
    };
    char *before[NEAR_MAX_ENV];

    memset(loop, 0, sizeof(*loop));
    near_env_set(env, before);
    near_init(&loop->near, env, SHORT);
    loop->target = &loop->near.pair.side[ST_A];
    loop->other  = &loop->near.pair.side[ST_B];
    st_fake_init(&loop->fake, loop->target);
    near_env_restore(env, before);
    loop->lane = !strcmp(lane, "direct") ? UCP_ST_LANE_DIRECT :
                 !strcmp(lane, "host")   ? UCP_ST_LANE_HOST :
                                           UCP_ST_LANE_TRIG;
    loop->buffer = calloc(1, LONGER);
    loop_memory(loop);
    near_use(&loop->near, 0);
    uct_errors_begin();
    fuzz_begin(&loop->fuzz, rounds);
}

/* The other pair goes on */
static void loop_turn(bad_loop_t *loop)
{
    if (!loop->is_alone && ((loop->fuzz.round % TURNS) == 0)) {
        near_use(&loop->near, loop->fuzz.round);
    }
}

static void loop_cleanup(bad_loop_t *loop)
{
    unsigned errors = uct_errors_end();
    int i;

    printf("%lu rounds: %u matches, %u failures, %u errors logged\n",
           (unsigned long)loop->fuzz.round, loop->matches, loop->failures,
           errors);
    loop->fuzz.round = 0;
    loop_turn(loop);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_TRUE(st_is_spoiled(loop->memory + (3 * i * MEMORY), MEMORY));
        CU_ASSERT_TRUE(st_is_spoiled(loop->memory + (((3 * i) + 2) * MEMORY),
                                     MEMORY));
        ucp_st_rkey_buffer_release(loop->key[i]);
        while (ucp_st_mem_dereg(loop->memh[i]) == UCS_ERR_BUSY) {
            st_fake_progress(&loop->fake);
        }
    }
    near_cleanup(&loop->near);
    st_fake_cleanup(&loop->fake);
    free(loop->memory);
    free(loop->buffer);
}

#define LOOP_CASE(_name, _lane, _rounds) \
    ST_CASE_WITH(_name, bad_loop_t, loop, loop_init(loop, _lane, _rounds), \
                 loop_cleanup(loop))

/* A bad peer that the target has an operation with */
static void round_begin(bad_loop_t *loop)
{
    static const size_t lengths[] = {0, 1, 8, 56, 57, SHORT, 16ul << 10,
                                     (64ul << 10) - 1, 64ul << 10, LONGER};
    ucp_st_op_params_t params     = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG,
        .buffer     = loop->buffer,
        .length     = lengths[fuzz_random(&loop->fuzz,
                                          ST_CUNIT_COUNT(lengths))],
        .tag        = TAG
    };

    st_fake_renew(&loop->fake);
    loop->peer  = st_fake_peer(&loop->fake, loop->lane, loop->other);
    params.peer = loop->peer;
    loop->op    = st_op(loop->target, (int)fuzz_random(&loop->fuzz, 2),
                        &params);
}

/* What is claimed in shared memory and not copied would be waited for, as long
 * as the bad peer's process lives; and data of uses that it has said it has
 * sent, without end (docs/security.md): they come */
static void round_keep_word(bad_loop_t *loop)
{
    const ucp_st_direct_blob_t *blob = &loop->fake.blob;
    ucp_st_direct_pair_t *pair;
    int i;

    memset(st_fake_memory() + ST_FAKE_PAIR, 0, sizeof(ucp_st_direct_pair_t));
    if ((loop->fake.shared != NULL) && (loop->fake.num_binds > 0) &&
        (blob->pair != 0)) {
        pair = (ucp_st_direct_pair_t*)(loop->fake.shared + blob->pair);
        memset(pair, 0, sizeof(*pair));
        for (i = 0; i < UCP_ST_DIRECT_NUM_SLOTS; ++i) {
            __atomic_store_n(&pair->slots[i].seq, UINT64_MAX, __ATOMIC_RELEASE);
        }
    }
}

/* Its end: the operation fails with the peer, if not before */
static void round_end(bad_loop_t *loop)
{
    ucs_status_t status;

    st_fake_unmatch(&loop->fake, UCS_ERR_CANCELED);
    st_fake_end(&loop->fake);
    round_keep_word(loop);
    status = ucp_st_queue_wait(loop->target->queue, NULL);
    loop->failures += (status != UCS_OK);
    while (ucp_st_op_free(loop->op) == UCS_ERR_BUSY) {
        st_fake_progress(&loop->fake);
    }
    if (status != UCS_OK) { /* it stays in error */
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(loop->target->queue), UCS_OK);
        loop->target->queue = st_queue(loop->target, loop->target->stream);
    }
    loop_turn(loop);
}

/* Start and wait once, if it is matched */
static int round_use(bad_loop_t *loop)
{
    ucs_status_t status = ucp_st_match_test(loop->op);

    if (status != UCS_OK) {
        CU_ASSERT_NOT_EQUAL(status, UCS_ERR_NOT_CONNECTED);
        return 0;
    }
    ++loop->matches;
    return (ucp_st_enqueue_start(loop->target->queue, loop->op) == UCS_OK) &&
           (ucp_st_enqueue_wait(loop->target->queue, loop->op) == UCS_OK);
}

/* A good offer of the lane; of lane trig with a key of the good peer's memory
 */
static st_fake_offer_t round_offer(bad_loop_t *loop, void *data)
{
    st_fake_offer_t offer = {.lane = loop->lane, .data = data};
    ucp_st_direct_blob_t blob;

    if (loop->lane == UCP_ST_LANE_DIRECT) {
        st_fake_blob(loop->op->length, &blob);
        memcpy(data, &blob, sizeof(blob));
        offer.length = sizeof(blob);
    } else if (loop->lane == UCP_ST_LANE_TRIG) {
        offer.length = loop->key_length[ST_B] - sizeof(ucp_st_rkey_hdr_t) -
                       sizeof(ucp_st_address_lane_t);
        memcpy(data, (uint8_t*)loop->key[ST_B] + sizeof(ucp_st_rkey_hdr_t) +
                     sizeof(ucp_st_address_lane_t), offer.length);
    }
    return offer;
}

/* Any control message about the operation, mostly without a fault */
static void round_more(bad_loop_t *loop, st_fake_msg_t *frame)
{
    fuzz_t *fuzz         = &loop->fuzz;
    int is_free          = (loop->lane != UCP_ST_LANE_TRIG);
    ucp_st_ctrl_op_t msg = {
        .op_id     = loop->fake.match.op_id,
        .src_op_id = 77,
        .uses      = is_free ? fuzz_random(fuzz, 3) : 0,
        .status    = (int32_t)fuzz_number(fuzz)
    };

    /* On lane trig no data can be made to come: see round_keep_word() */
    if (is_free && (fuzz_random(fuzz, 2) == 0)) {
        fuzz_scribble(fuzz, &msg, sizeof(msg));
    }
    st_fake_add(frame, (uint8_t)fuzz_random(fuzz, UCP_ST_CTRL_LAST + 1), &msg,
                sizeof(msg));
}

/* A frame that was changed. Its head is good, or nothing else is looked at. */
static void round_send(bad_loop_t *loop, st_fake_msg_t *frame, int is_changed)
{
    fuzz_input_t input = {
        .data   = frame->data,
        .length = frame->length,
        .room   = ST_FAKE_MAX
    };

    if (is_changed) {
        fuzz_mutate(&loop->fuzz, &input);
        frame->length = input.length;
    }
    if (!is_changed || (fuzz_random(&loop->fuzz, 8) > 0)) {
        st_fake_fix(&loop->fake, frame);
    }
    st_fake_send(&loop->fake, frame);
}

/* Matches whose second half is changed, and messages behind that */
static void loop_control(bad_loop_t *loop)
{
    uint8_t data[UCP_ST_PROTO_MAX_BLOB] = {0};
    st_fake_offer_t offer;
    st_fake_msg_t frame;
    uint64_t i;

    while (fuzz_next(&loop->fuzz)) {
        round_begin(loop);
        offer = round_offer(loop, data);
        if (fuzz_random(&loop->fuzz, 2) == 0) {
            fuzz_scribble(&loop->fuzz, data, offer.length);
        }
        st_fake_bind(&loop->fake, loop->op, &offer, &frame);
        round_send(loop, &frame, fuzz_random(&loop->fuzz, 3) == 0);
        (void)round_use(loop);
        for (i = fuzz_random(&loop->fuzz, 3); i > 0; --i) {
            st_fake_frame(&frame);
            round_more(loop, &frame);
            round_send(loop, &frame, (loop->lane != UCP_ST_LANE_TRIG) &&
                                     (fuzz_random(&loop->fuzz, 4) == 0));
        }
        round_end(loop);
    }
    CU_ASSERT((loop->matches > 0) || (loop->fuzz.round < 10));
}

LOOP_CASE(control_direct, "direct", 400)
{
    loop_control(loop);
}

LOOP_CASE(control_host, "host", 400)
{
    loop_control(loop);
}

LOOP_CASE(control_trig, "trig", 100)
{
    loop_control(loop);
}

/* The target's messages of FIFOs with the bad peer: some that are started, and
 * waited for. Where the peer is gone already there are none. */
static int round_fifo(bad_loop_t *loop, ucp_st_req_h reqs[4])
{
    ucp_st_msg_params_t params = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER |
                      UCP_ST_MSG_PARAM_FIELD_TAG | UCP_ST_MSG_PARAM_FIELD_SCOPE,
        .buffer     = loop->buffer,
        .length     = SHORT,
        .peer       = loop->peer,
        .tag        = TAG,
        .scope      = 1
    };
    int i;

    for (i = 0; i < 4; ++i) {
        reqs[i] = NULL;
        if (((i % 2) ? ucp_st_enqueue_recv : ucp_st_enqueue_send)(
                    loop->target->queue, &params, &reqs[i]) != UCS_OK) {
            reqs[i] = NULL;
        }
    }
    return (ucp_st_enqueue_batch_start(loop->target->queue) == UCS_OK) &&
           (ucp_st_enqueue_batch_wait(loop->target->queue) == UCS_OK);
}

/* What the bad peer says of them, with keys of the good peer's memory, and what
 * it sends as their data */
static void round_fifo_send(bad_loop_t *loop)
{
    fuzz_t *fuzz            = &loop->fuzz;
    ucp_st_ctrl_fifo_t ctrl = {
        .what   = (uint8_t)fuzz_random(fuzz, UCP_ST_FIFO_LAST + 1),
        .dir    = (uint8_t)fuzz_random(fuzz, 2),
        .way    = (uint8_t)fuzz_random(fuzz, 4),
        .status = (int32_t)fuzz_number(fuzz),
        .tag    = TAG,
        .scope  = 1,
        .number = fuzz_random(fuzz, 4),
        .length = fuzz_random(fuzz, 2 * SHORT)
    };
    ucp_st_fifo_hdr_t hdr   = {
        .src    = loop->fake.uuid,
        .tag    = TAG,
        .scope  = 1,
        .number = fuzz_random(fuzz, 3)
    };
    st_fake_msg_t frame;

    if (fuzz_random(fuzz, 4) == 0) {
        st_fake_frame(&frame);
        memcpy(frame.data, &hdr, sizeof(hdr));
        frame.length      = sizeof(hdr) - (fuzz_random(fuzz, 8) == 0);
        frame.data_length = fuzz_random(fuzz, 2) ? SHORT :
                            fuzz_random(fuzz, 64ul << 10);
        st_fake_send_am(&loop->fake, UCP_ST_NET_AM_FIFO, &frame);
        return;
    }
    if (loop->lane == UCP_ST_LANE_TRIG) {
        memcpy(ctrl.keys, (uint8_t*)loop->key[ST_B] +
                          sizeof(ucp_st_rkey_hdr_t) +
                          sizeof(ucp_st_address_lane_t), UCP_ST_PROTO_KEY);
        memcpy(ctrl.keys[1], ctrl.keys[0], UCP_ST_PROTO_KEY);
    }
    if (fuzz_random(fuzz, 4) == 0) {
        fuzz_scribble(fuzz, &ctrl, sizeof(ctrl));
    }
    st_fake_frame(&frame);
    st_fake_add(&frame, UCP_ST_CTRL_FIFO, &ctrl, sizeof(ctrl));
    round_send(loop, &frame, fuzz_random(fuzz, 8) == 0);
}

/* Whatever the peer says, messages end with it, at the latest */
static void loop_fifo(bad_loop_t *loop)
{
    ucp_st_req_h reqs[4];
    ucs_status_t status;
    uint64_t i;

    while (fuzz_next(&loop->fuzz)) {
        st_fake_renew(&loop->fake);
        loop->peer     = st_fake_peer(&loop->fake, loop->lane, loop->other);
        loop->matches += round_fifo(loop, reqs);
        for (i = fuzz_random(&loop->fuzz, 6); i > 0; --i) {
            round_fifo_send(loop);
        }
        st_fake_end(&loop->fake);
        status = ucp_st_queue_wait(loop->target->queue, NULL);
        loop->failures += (status != UCS_OK);
        for (i = 0; i < 4; ++i) {
            while ((reqs[i] != NULL) &&
                   (ucp_st_req_test(reqs[i], NULL) == UCS_INPROGRESS)) {
                st_fake_progress(&loop->fake);
            }
            CU_ASSERT_EQUAL(ucp_st_req_free(reqs[i]), UCS_OK);
        }
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(loop->target->queue), UCS_OK);
        loop->target->queue = st_queue(loop->target, loop->target->stream);
        loop_turn(loop);
    }
}

LOOP_CASE(fifo_host, "host", 200)
{
    loop_fifo(loop);
}

LOOP_CASE(fifo_trig, "trig", 200)
{
    loop_fifo(loop);
}

/* A good pair first */
static int round_match(bad_loop_t *loop)
{
    uint8_t data[UCP_ST_PROTO_MAX_BLOB] = {0};
    st_fake_offer_t offer;

    round_begin(loop);
    offer = round_offer(loop, data);
    return (st_fake_match(&loop->fake, loop->op, &offer) == UCS_OK) &&
           round_use(loop);
}

/* One word of what is shared, which a stream looks at meanwhile */
static void scribble_word(fuzz_t *fuzz, uint8_t *memory, size_t length)
{
    uint64_t *words = (uint64_t*)memory;
    uint64_t index  = fuzz_random(fuzz, length / sizeof(*words));
    uint64_t value  = fuzz_number(fuzz);

    if (fuzz_random(fuzz, 4) == 0) {
        value = __atomic_load_n(&words[index], __ATOMIC_RELAXED) ^
                (1ull << fuzz_random(fuzz, 64));
    } else if (fuzz_random(fuzz, 2) == 0) {
        value = fuzz_random(fuzz, 8); /* as it may be */
    }
    __atomic_store_n(&words[index], value, __ATOMIC_RELEASE);
}

/* The peer's segment, and the pair in the target's */
LOOP_CASE(memory, "direct", 300)
{
    const size_t pair = sizeof(ucp_st_direct_pair_t) +
                        (UCP_ST_DIRECT_NUM_SLOTS *
                         sizeof(ucp_st_direct_slot_t));
    fuzz_t *fuzz      = &loop->fuzz;
    uint64_t i;

    while (fuzz_next(fuzz)) {
        (void)round_match(loop);
        for (i = fuzz_random(fuzz, 60); i > 0; --i) {
            if (fuzz_random(fuzz, 4) == 0) {
                scribble_word(fuzz, st_fake_memory(),
                              sizeof(ucp_st_direct_segment_t));
            } else if ((loop->fake.num_binds > 0) &&
                       (loop->fake.blob.pair != 0) &&
                       (fuzz_random(fuzz, 2) == 0)) {
                scribble_word(fuzz, loop->fake.shared + loop->fake.blob.pair,
                              pair);
            } else {
                scribble_word(fuzz, st_fake_memory() + ST_FAKE_PAIR, pair);
            }
            if (fuzz_random(fuzz, 4) == 0) {
                ucp_st_worker_progress(loop->target->worker);
            }
        }
        round_end(loop);
    }
}

/* All of the target's segment: uses may end too early, or fail */
LOOP_CASE(segment, "direct", 300)
{
    uint64_t i;

    loop->is_alone = 1;
    while (fuzz_next(&loop->fuzz)) {
        (void)round_match(loop);
        for (i = fuzz_random(&loop->fuzz, 60); i > 0; --i) {
            scribble_word(&loop->fuzz, loop->fake.shared,
                          fuzz_random(&loop->fuzz, 4) ?
                                  (64ul << 10) : loop->fake.shared_length);
        }
        round_end(loop);
    }
}

/* A message of lane host or of one-sided operations */
static unsigned service_make(bad_loop_t *loop, st_fake_msg_t *msg)
{
    fuzz_t *fuzz                 = &loop->fuzz;
    st_fake_t *bad               = &loop->fake;
    uint64_t data[3]             = {bad->match.op_id, 1 + fuzz_random(fuzz, 2),
                                    bad->uuid};
    ucp_st_rma_request_t request = {
        .type          = (uint8_t)fuzz_random(fuzz, 3),
        .has_signal    = (uint8_t)fuzz_random(fuzz, 2),
        .src           = bad->uuid,
        .dst           = bad->target_uuid,
        .mem_id        = 1,
        .length        = fuzz_random(fuzz, 2 * MEMORY),
        .signal_mem_id = 1,
        .signal_offset = 8 * fuzz_random(fuzz, MEMORY / 4)
    };
    ucp_st_rma_reply_t reply     = {
        .src    = bad->uuid,
        .dst    = bad->target_uuid,
        .status = (int32_t)fuzz_number(fuzz)
    };
    const struct {
        unsigned   id;
        const void *data;
        size_t     length;
    } kinds[] = {
        {UCP_ST_NET_AM_DATA, data, sizeof(data)},
        {UCP_ST_NET_AM_ACK, data, sizeof(data)},
        {UCP_ST_NET_AM_RMA, &request, sizeof(request)},
        {UCP_ST_NET_AM_RMA_REPLY, &reply, sizeof(reply)}
    };
    size_t kind = fuzz_random(fuzz, ST_CUNIT_COUNT(kinds));

    msg->length = kinds[kind].length;
    memcpy(msg->data, kinds[kind].data, msg->length);
    switch (fuzz_random(fuzz, 3)) {
    case 0:
        msg->data_length = fuzz_random(fuzz, 2 * MEMORY);
        break;
    case 1:
        msg->data_length = 0;
        break;
    default:
        msg->data_length = (kinds[kind].id != UCP_ST_NET_AM_RMA) ?
                                   ucs_min(loop->op->length, MEMORY) :
                           (request.type == UCP_ST_RMA_PUT) ? request.length :
                                                              0;
        break;
    }
    return kinds[kind].id;
}

LOOP_CASE(service, "host", 400)
{
    st_fake_msg_t msg  = {.length = 0};
    fuzz_input_t input = {.data = msg.data, .room = ST_FAKE_MAX};
    unsigned id;
    uint64_t i;

    while (fuzz_next(&loop->fuzz)) {
        (void)round_match(loop);
        for (i = 1 + fuzz_random(&loop->fuzz, 8); i > 0; --i) {
            id = service_make(loop, &msg);
            if (fuzz_random(&loop->fuzz, 2) == 0) {
                input.length = msg.length;
                fuzz_mutate(&loop->fuzz, &input);
                msg.length = input.length;
            }
            st_fake_send_am(&loop->fake, id, &msg);
        }
        round_end(loop);
    }
}

static ucs_status_t no_endpoint(void)
{
    return UCS_ERR_INVALID_ADDR;
}

/* All of an address but what is UCP's, which UCP believes */
static void loop_addresses(bad_loop_t *loop)
{
    static uint8_t data[2 * ST_FAR_ADDRESS];
    static uint8_t valid[ST_FAR_ADDRESS];
    fuzz_input_t input = {.data = data, .room = sizeof(data)};
    ucp_st_peer_h peer;
    ucs_status_t status;
    size_t length;

    st_hook_ep_create(no_endpoint);
    while (fuzz_next(&loop->fuzz)) {
        st_fake_renew(&loop->fake);
        length = st_fake_address(&loop->fake, loop->lane, loop->other, valid);
        fuzz_set(&input, valid, length);
        if (fuzz_random(&loop->fuzz, 4) == 0) {
            fuzz_splice(&loop->fuzz, &input, valid, length);
        }
        fuzz_mutate(&loop->fuzz, &input);
        /* Bytes behind its end are not looked at */
        length = input.length;
        memmove(data + sizeof(data) - length, data, length);
        status = ucp_st_peer_create(loop->target->worker,
                                    data + sizeof(data) - length, length,
                                    &peer);
        /* UCS_OK: that of a peer that is known already */
        CU_ASSERT_TRUE((status == UCS_OK) || UCS_STATUS_IS_ERR(status));
        loop_turn(loop);
    }
    st_hook_ep_create(NULL);
}

LOOP_CASE(addresses_direct, "direct", 3000)
{
    loop_addresses(loop);
}

LOOP_CASE(addresses_trig, "trig", 1500)
{
    loop_addresses(loop);
}

/* Use a key if it is one; what it reaches is the peer's memory */
static void key_use(bad_loop_t *loop, ucp_st_rkey_h rkey)
{
    ucp_st_rkey_attr_t attr    = {.length = 0};
    ucp_st_rma_params_t params = {
        .field_mask    = UCP_ST_RMA_PARAM_FIELD_MEMH |
                         UCP_ST_RMA_PARAM_FIELD_LENGTH |
                         UCP_ST_RMA_PARAM_FIELD_RKEY |
                         UCP_ST_RMA_PARAM_FIELD_REMOTE_OFFSET,
        .memh          = loop->memh[ST_A],
        .length        = fuzz_random(&loop->fuzz, MEMORY),
        .rkey          = rkey,
        .remote_offset = fuzz_random(&loop->fuzz, 2) ?
                                 fuzz_random(&loop->fuzz, MEMORY) :
                                 fuzz_number(&loop->fuzz)
    };
    ucp_st_queue_h queue       = loop->target->queue;
    ucs_status_t status;

    CU_ASSERT_EQUAL(ucp_st_rkey_query(rkey, &attr), UCS_OK);
    status = ucp_st_enqueue_put(queue, &params);
    if (status != UCS_OK) {
        CU_ASSERT_TRUE((params.length > attr.length) ||
                       (params.remote_offset > (attr.length - params.length)));
        return;
    }
    (void)ucp_st_enqueue_quiet(queue);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(queue, NULL), UCS_OK);
    ++loop->matches;
}

/* A key of the bad peer's memory: as lane direct has it */
static size_t key_make(bad_loop_t *loop, uint8_t *key)
{
    struct {
        ucp_st_rkey_hdr_t     hdr;
        ucp_st_address_lane_t lane;
        ucp_st_direct_file_t  file;
        uint64_t              offset;
        uint8_t               is_mappable;
        uint8_t               reserved[7];
    } __attribute__((packed)) made = {
        .hdr         = {.magic     = UCP_ST_RKEY_MAGIC,
                        .version   = UCP_ST_PROTO_VERSION,
                        .num_lanes = 1,
                        .uuid      = loop->fake.uuid,
                        .address   = 4096,
                        .length    = ST_FAKE_MEMORY - ST_FAKE_BUFFER},
        .lane        = {.lane = UCP_ST_LANE_DIRECT, .length = 40},
        .offset      = ST_FAKE_BUFFER,
        .is_mappable = 1
    };
    ucp_st_direct_blob_t blob;

    st_fake_blob(0, &blob);
    made.file = blob.file;
    memcpy(key, &made, sizeof(made));
    return sizeof(made);
}

/* Keys of the bad peer's, or of the good one's, which are not used where they
 * are raw addresses */
static void loop_keys(bad_loop_t *loop)
{
    uint8_t data[512], valid[512];
    fuzz_input_t input = {.data = data, .room = sizeof(data)};
    int is_far         = (loop->lane == UCP_ST_LANE_DIRECT);
    ucp_st_peer_h peer = is_far ? st_fake_peer(&loop->fake, loop->lane, NULL) :
                                  loop->target->peer;
    ucp_st_rkey_h rkey;
    size_t length;

    length = is_far ? key_make(loop, valid) : loop->key_length[ST_B];
    if (!is_far) {
        memcpy(valid, loop->key[ST_B], length);
    }
    while (fuzz_next(&loop->fuzz)) {
        fuzz_set(&input, valid, length);
        if (fuzz_random(&loop->fuzz, 4) == 0) {
            fuzz_splice(&loop->fuzz, &input, valid, length);
        }
        if (fuzz_random(&loop->fuzz, 16) > 0) {
            fuzz_mutate(&loop->fuzz, &input);
        }
        if (ucp_st_rkey_unpack(peer, data, input.length, &rkey) == UCS_OK) {
            if (is_far) {
                key_use(loop, rkey);
            }
            CU_ASSERT_EQUAL(ucp_st_rkey_destroy(rkey), UCS_OK);
        }
        loop_turn(loop);
    }
    if (is_far) {
        st_fake_end(&loop->fake);
    }
}

LOOP_CASE(keys_direct, "direct", 5000)
{
    loop_keys(loop);
}

LOOP_CASE(keys_host, "host", 5000)
{
    loop_keys(loop);
}

LOOP_CASE(keys_trig, "trig", 5000)
{
    loop_keys(loop);
}

int main(int argc, char **argv)
{
    st_fake_fork();
    return st_cunit_main("st_fuzz", argc, argv);
}
