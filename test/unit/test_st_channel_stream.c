/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_channel_stream.c - messages of channels that a stream starts and
 * waits for, of matched buffers and others.
 */
#include "st_cunit.h"
#include "st_pair.h"
#include "st_pe.h"
#include "st_stream.h"

#include <ucs_gstream.h>

#include <math.h>
#include <string.h>

#define ID     7
#define LENGTH 1000
#define USES   10


/** Two ends, on the sides of a pair. */
typedef struct {
    st_pair_t            pair;
    ucp_ep_h             ep[2];
    ucp_st_channel_ctx_h ctx[2];
    ucp_st_channel_h     end[2];
} ends_t;

typedef struct {
    unsigned     calls;
    unsigned     bad;
    ucs_status_t status;
    size_t       length;
} told_t;

static void note(void *arg, ucs_status_t status, size_t length)
{
    told_t *said = arg;

    ++said->calls;
    said->bad   += (status != UCS_OK);
    said->status = status;
    said->length = length;
}

static void ends_init(ends_t *ends)
{
    ucp_st_channel_ctx_params_t ctx_params = {
        .field_mask = UCP_ST_CHANNEL_CTX_PARAM_FIELD_UCP_WORKER |
                      UCP_ST_CHANNEL_CTX_PARAM_FIELD_ST_WORKER
    };
    ucp_st_channel_params_t params = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_EP |
                      UCP_ST_CHANNEL_PARAM_FIELD_PEER |
                      UCP_ST_CHANNEL_PARAM_FIELD_ID |
                      UCP_ST_CHANNEL_PARAM_FIELD_END,
        .id         = ID
    };
    ucp_address_t *address;
    size_t length;
    int i;

    memset(ends, 0, sizeof(*ends));
    st_pair_init_user(&ends->pair,
                      UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL_FATAL(ucp_worker_get_address(
                                      ends->pair.side[!i].ucp_worker, &address,
                                      &length), UCS_OK);
        ends->ep[i] = st_pe_connect(ends->pair.side[i].ucp_worker, address);
        ucp_worker_release_address(ends->pair.side[!i].ucp_worker, address);
        ctx_params.ucp_worker = ends->pair.side[i].ucp_worker;
        ctx_params.st_worker  = ends->pair.side[i].worker;
        CU_ASSERT_EQUAL_FATAL(ucp_st_channel_ctx_create(&ctx_params,
                                                        &ends->ctx[i]), UCS_OK);
        params.ep   = ends->ep[i];
        params.peer = ends->pair.side[i].peer;
        params.end  = i;
        CU_ASSERT_EQUAL_FATAL(ucp_st_channel_create(ends->ctx[i], &params,
                                                    &ends->end[i]), UCS_OK);
    }
}

static void progress(ends_t *ends)
{
    int i;

    for (i = 0; i < 2; ++i) {
        (void)ucp_st_worker_progress(ends->pair.side[i].worker);
        if (ends->ctx[i] != NULL) {
            (void)ucp_st_channel_progress(ends->ctx[i]);
        }
    }
}

static void until(ends_t *ends, const told_t *said, unsigned calls)
{
    while (said->calls < calls) {
        progress(ends);
    }
    CU_ASSERT_EQUAL(said->calls, calls);
    CU_ASSERT_EQUAL(said->bad, 0);
}

static void ends_cleanup(ends_t *ends)
{
    ucs_status_t status;
    int i;

    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_channel_destroy(ends->end[i]), UCS_OK);
    }
    for (i = 0; i < 2; ++i) {
        while ((status = ucp_st_channel_ctx_destroy(ends->ctx[i])) ==
               UCS_ERR_BUSY) {
            progress(ends);
        }
        CU_ASSERT_EQUAL(status, UCS_OK);
        ends->ctx[i] = NULL;
    }
    for (i = 0; i < 2; ++i) {
        ucp_side_t side = {.worker = ends->pair.side[i].ucp_worker};

        ucp_side_close_ep(&side, ends->ep[i]);
    }
    st_pair_cleanup(&ends->pair);
}

/* The stream passes all that it has, and no call of the library helps */
static void pass(ends_t *ends, int i)
{
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(ends->pair.side[i].stream), UCS_OK);
}

static void send_on(ends_t *ends, int i, void *buffer, size_t length,
                    told_t *said)
{
    CU_ASSERT_EQUAL(
            ucp_st_channel_send_stream(ends->end[i], ends->pair.side[i].queue,
                                       ST_PE_MSG(buffer, length, note, said)),
            UCS_INPROGRESS);
}

static void recv_on(ends_t *ends, int i, void *buffer, size_t length,
                    told_t *said)
{
    CU_ASSERT_EQUAL(
            ucp_st_channel_recv_stream(ends->end[i], ends->pair.side[i].queue,
                                       ST_PE_MSG(buffer, length, note, said)),
            UCS_INPROGRESS);
}

static void match(ends_t *ends, int sender, void *from, void *to, size_t length)
{
    told_t said[2] = {{0}};

    CU_ASSERT_EQUAL(
            ucp_st_channel_match(ends->end[sender], 1,
                                 ST_PE_MSG(from, length, note, &said[0])),
            UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucp_st_channel_match(ends->end[!sender], 0,
                                         ST_PE_MSG(to, length, note, &said[1])),
                    UCS_INPROGRESS);
    until(ends, &said[0], 1);
    until(ends, &said[1], 1);
}

/* Back and forth, by the lane, and then by numbers with other buffers */
static void run_both_ways(int is_matched)
{
    static uint8_t out[2][LENGTH], in[2][LENGTH];
    ucp_st_channel_attr_t attr;
    told_t said[4] = {{0}};
    uint64_t k;
    ends_t ends;
    int i;

    ends_init(&ends);
    for (i = 0; (i < 2) && is_matched; ++i) {
        match(&ends, i, out[i], in[!i], LENGTH);
    }
    for (k = 0; k < USES; ++k) {
        for (i = 0; i < 2; ++i) {
            st_fill(out[i], LENGTH, (2 * k) + i);
        }
        for (i = 0; i < 2; ++i) {
            recv_on(&ends, i, in[i], LENGTH, &said[i]);
            send_on(&ends, !i, out[!i], LENGTH, &said[2 + i]);
        }
        pass(&ends, 0);
        pass(&ends, 1);
        for (i = 0; i < 2; ++i) {
            CU_ASSERT_TRUE(st_check(in[i], LENGTH, (2 * k) + !i));
            until(&ends, &said[i], k + 1);
            until(&ends, &said[2 + i], k + 1);
            CU_ASSERT_EQUAL(said[i].length, LENGTH);
            CU_ASSERT_EQUAL(said[2 + i].length, LENGTH);
        }
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(st_stats(&ends.pair.side[i]).lanes[st_lane()].starts,
                        is_matched ? 2 * USES : 0);
        CU_ASSERT_EQUAL(ucp_st_channel_query(ends.end[i], &attr), UCS_OK);
        CU_ASSERT_EQUAL(attr.sent, 0);
        CU_ASSERT_EQUAL(attr.received, 0);
    }
    ends_cleanup(&ends);
}

ST_CASE_CALL(matched, run_both_ways(1))
ST_CASE_CALL(not_matched, run_both_ways(0))

/* Messages on streams and those of hosts have an order each */
ST_CASE(two_orders)
{
    uint64_t out[2] = {1, 2}, in[2] = {0, 0};
    told_t said[4]  = {{0}};
    ucs_status_t status[2];
    ends_t ends;

    ends_init(&ends);
    recv_on(&ends, 1, &in[0], sizeof(in[0]), &said[0]);
    status[1] = ucp_st_channel_recv(
            ends.end[1], ST_PE_MSG(&in[1], sizeof(in[1]), note, &said[1]),
            NULL);
    status[0] = ucp_st_channel_send(
            ends.end[0], ST_PE_MSG(&out[1], sizeof(out[1]), note, &said[3]));
    send_on(&ends, 0, &out[0], sizeof(out[0]), &said[2]);
    until(&ends, &said[0], 1);
    until(&ends, &said[1], status[1] == UCS_INPROGRESS);
    until(&ends, &said[2], 1);
    until(&ends, &said[3], status[0] == UCS_INPROGRESS);
    CU_ASSERT_EQUAL(in[0], 1);
    CU_ASSERT_EQUAL(in[1], 2);
    memset(said, 0, sizeof(said));
    recv_on(&ends, 0, NULL, 0, &said[0]);
    send_on(&ends, 1, NULL, 0, &said[1]);
    until(&ends, &said[0], 1);
    CU_ASSERT_EQUAL(said[0].length, 0);
    until(&ends, &said[1], 1);
    ends_cleanup(&ends);
}

/* P1 to P3 for channels, whose calls start and wait. No host makes a call until
 * the streams are through. `apart`: what answers is on another stream of the
 * sides that this names. */
static void run_program(int is_matched, size_t length, unsigned apart)
{
    static uint8_t one[2][ST_LONG], other[2][ST_LONG];
    told_t said[4] = {{0}};
    st_side_t more[2];
    ucp_st_queue_h queue[2];
    ends_t ends;
    int i;

    ends_init(&ends);
    for (i = 0; i < 2; ++i) {
        st_more_init(&more[i], &ends.pair.side[i]);
        queue[i] = (apart & (1u << i)) ? more[i].queue :
                                         ends.pair.side[i].queue;
    }
    if (is_matched) {
        match(&ends, 0, one[0], one[1], length);
        match(&ends, 1, other[1], other[0], length);
    }
    st_fill(one[0], length, 1);
    st_fill(other[1], length, 2);
    /* A: s(1), r(Y). B: r(1), s(Y). */
    send_on(&ends, 0, one[0], length, &said[0]);
    CU_ASSERT_EQUAL(ucp_st_channel_recv_stream(
                            ends.end[0], queue[0],
                            ST_PE_MSG(other[0], length, note, &said[1])),
                    UCS_INPROGRESS);
    recv_on(&ends, 1, one[1], length, &said[2]);
    CU_ASSERT_EQUAL(ucp_st_channel_send_stream(
                            ends.end[1], queue[1],
                            ST_PE_MSG(other[1], length, note, &said[3])),
                    UCS_INPROGRESS);
    for (i = 0; i < 2; ++i) {
        pass(&ends, i);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(more[i].stream), UCS_OK);
    }
    CU_ASSERT_TRUE(st_check(one[1], length, 1));
    CU_ASSERT_TRUE(st_check(other[0], length, 2));
    for (i = 0; i < 4; ++i) {
        CU_ASSERT_EQUAL(said[i].calls, 0); /* Not before progress */
    }
    for (i = 0; i < 4; ++i) {
        until(&ends, &said[i], 1);
    }
    st_more_cleanup(&more[0]);
    st_more_cleanup(&more[1]);
    ends_cleanup(&ends);
}

ST_CASE_CALL(p1_matched, run_program(1, 8, 0))
ST_CASE_CALL(p1_not_matched, run_program(0, 8, 0))
ST_CASE_CALL(p2_matched, run_program(1, ST_LONG, 0))
ST_CASE_CALL(p3_matched_one, run_program(1, ST_LONG, 1))
ST_CASE_CALL(p3_matched_both, run_program(1, ST_LONG, 3))
ST_CASE_CALL(p3_not_matched, run_program(0, 8, 3))

/* What is refused, and has no effect */
ST_CASE(refuse)
{
    static uint8_t out[LENGTH], in[LENGTH];
    const ucp_st_channel_params_t lone = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_ID,
        .id         = ID + 1
    };
    told_t said = {0};
    ucp_st_channel_h end;
    ucp_st_queue_h queue;
    ends_t ends;

    ends_init(&ends);
    queue = ends.pair.side[0].queue;
    CU_ASSERT_EQUAL(ucp_st_channel_create(ends.ctx[0], &lone, &end), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_channel_send_stream(
                            end, queue, ST_PE_MSG(out, LENGTH, note, &said)),
                    UCS_ERR_NOT_CONNECTED);
    CU_ASSERT_EQUAL(
            ucp_st_channel_match(end, 1, ST_PE_MSG(out, LENGTH, note, &said)),
            UCS_ERR_NOT_CONNECTED);
    CU_ASSERT_EQUAL(ucp_st_channel_send_stream(ends.end[0], queue,
                                               ST_PE_MSG(NULL, 1, note, &said)),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_channel_recv_stream(NULL, queue,
                                               ST_PE_MSG(in, 1, note, &said)),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_channel_recv_stream(ends.end[0], NULL,
                                               ST_PE_MSG(in, 1, note, &said)),
                    UCS_ERR_INVALID_PARAM);
    match(&ends, 0, out, in, LENGTH);
    CU_ASSERT_EQUAL(ucp_st_channel_match(ends.end[0], 1,
                                         ST_PE_MSG(out, LENGTH, note, &said)),
                    UCS_ERR_ALREADY_EXISTS);
    CU_ASSERT_EQUAL(ucp_st_channel_quiesce(ends.end[0], note, &said),
                    UCS_ERR_BUSY);
    recv_on(&ends, 1, in, LENGTH, &said);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(ends.end[1]), UCS_ERR_BUSY);
    send_on(&ends, 0, out, LENGTH, &said);
    until(&ends, &said, 2);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end), UCS_OK);
    ends_cleanup(&ends);
}

/* The two ends do not agree: the send is longer than the receive */
ST_CASE(too_long)
{
    static uint8_t out[LENGTH], in[LENGTH];
    told_t said[2] = {{0}};
    ends_t ends;

    ends_init(&ends);
    CU_ASSERT_EQUAL(
            ucp_st_channel_match(ends.end[0], 1,
                                 ST_PE_MSG(out, LENGTH, note, &said[0])),
            UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucp_st_channel_match(ends.end[1], 0,
                                         ST_PE_MSG(in, 1, note, &said[1])),
                    UCS_INPROGRESS);
    while ((said[0].calls == 0) || (said[1].calls == 0)) {
        progress(&ends);
    }
    CU_ASSERT_EQUAL(said[0].status, UCS_ERR_MESSAGE_TRUNCATED);
    CU_ASSERT_EQUAL(said[1].status, UCS_ERR_MESSAGE_TRUNCATED);
    match(&ends, 0, out, in, LENGTH); /* Agreed */
    ends_cleanup(&ends);
}

ST_SUITE("st_channel_stream")
