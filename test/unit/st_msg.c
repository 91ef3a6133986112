/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_msg.c - messages that are used once.
 */
#include "st_msg.h"

#include <CUnit/CUnit.h>

#define SCOPE 77

uint64_t st_fifo_actual;


ucp_st_msg_params_t st_msg_params(ucp_st_peer_h peer, void *buffer,
                                  size_t length, ucp_tag_t tag)
{
    ucp_st_msg_params_t params = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER | UCP_ST_MSG_PARAM_FIELD_TAG,
        .buffer     = buffer,
        .length     = length,
        .peer       = peer,
        .tag        = tag
    };

    return params;
}

ucp_st_req_h st_msg_send(st_side_t *side, ucp_st_peer_h peer, void *buffer,
                             size_t length, ucp_tag_t tag)
{
    ucp_st_msg_params_t params = st_msg_params(peer, buffer, length, tag);
    ucp_st_req_h req           = NULL;

    CU_ASSERT_EQUAL(ucp_st_enqueue_send(side->queue, &params, &req), UCS_OK);
    return req;
}

ucp_st_req_h st_msg_recv(st_side_t *side, void *buffer, size_t length,
                             ucp_tag_t tag)
{
    ucp_st_msg_params_t params = st_msg_params(UCP_ST_PEER_ANY, buffer, length,
                                            tag);
    ucp_st_req_h req           = NULL;

    CU_ASSERT_EQUAL(ucp_st_enqueue_recv(side->queue, &params, &req), UCS_OK);
    return req;
}

/* A message that nobody asks about: to the side's peer, or from anywhere */
void st_enqueue(st_side_t *side, int is_send, void *buffer, size_t length,
                    ucp_tag_t tag)
{
    ucp_st_msg_params_t params = st_msg_params(is_send ? side->peer :
                                                      UCP_ST_PEER_ANY,
                                            buffer, length, tag);

    CU_ASSERT_EQUAL((is_send ? ucp_st_enqueue_send : ucp_st_enqueue_recv)(
                            side->queue, &params, NULL), UCS_OK);
}

void st_batch_start(st_side_t *side)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(side->queue), UCS_OK);
}

void st_batch_wait(st_side_t *side)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_wait(side->queue), UCS_OK);
}

void st_batch_run(st_side_t *side)
{
    st_batch_start(side);
    st_batch_wait(side);
}

ucp_st_req_h st_fifo_req(st_side_t *side, int is_send, void *buffer,
                         size_t length, ucp_tag_t tag)
{
    ucp_st_msg_params_t params = st_msg_params(side->peer, buffer, length, tag);
    ucp_st_req_h req           = NULL;

    params.field_mask |= UCP_ST_MSG_PARAM_FIELD_SCOPE |
                         (is_send ? 0 : UCP_ST_MSG_PARAM_FIELD_ACTUAL);
    params.scope       = SCOPE;
    params.actual      = &st_fifo_actual;
    CU_ASSERT_EQUAL((is_send ? ucp_st_enqueue_send : ucp_st_enqueue_recv)(
                            side->queue, &params, &req), UCS_OK);
    return req;
}

void st_fifo(st_side_t *side, int is_send, void *buffer, size_t length,
             ucp_tag_t tag)
{
    CU_ASSERT_EQUAL(ucp_st_req_free(st_fifo_req(side, is_send, buffer, length,
                                                tag)), UCS_OK);
}

/* Its start is enqueued with it, so that it is dropped behind that */
void st_fifo_run(st_side_t *side, int is_send, void *buffer, size_t length,
                 ucp_tag_t tag)
{
    ucp_st_req_h req = st_fifo_req(side, is_send, buffer, length, tag);

    st_batch_run(side);
    CU_ASSERT_EQUAL(ucp_st_req_free(req), UCS_OK);
}

void st_some_wait(st_side_t *side, const ucp_st_req_h *reqs, size_t count)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_req_waitall(side->queue, reqs, count),
                    UCS_OK);
}

/* B sends message 3 behind its receive of 2, to which A's send of 1 has to
 * wait. B's stream passes its waits for 2, for 1 and 2 again, and then for what
 * is complete already. */
void st_some_run(st_pair_t *pair, st_req_func_t req)
{
    static uint64_t sent[4] = {0, 11, 12, 13}, got[4];
    st_side_t *a            = &pair->side[ST_A];
    st_side_t *b            = &pair->side[ST_B];
    ucp_st_req_h sends[4], recvs[4];
    int i;

    for (i = 1; i <= 3; ++i) {
        got[i] = 0;
    }
    recvs[1] = req(b, 0, &got[1], 8, 1);
    recvs[2] = req(b, 0, &got[2], 8, 2);
    st_batch_start(b);
    st_some_wait(b, &recvs[2], 1);
    sends[3] = req(b, 1, &sent[3], 8, 3);
    st_batch_start(b);
    st_some_wait(b, &recvs[1], 2);

    recvs[3] = req(a, 0, &got[3], 8, 3);
    sends[2] = req(a, 1, &sent[2], 8, 2);
    st_batch_start(a);
    st_some_wait(a, &recvs[3], 1);
    sends[1] = req(a, 1, &sent[1], 8, 1);
    st_batch_start(a);
    st_some_wait(a, &sends[1], 2);
    st_pair_sync(pair);
    st_some_wait(a, &sends[1], 2);
    st_some_wait(a, NULL, 0);
    st_pair_sync(pair);
    for (i = 1; i <= 3; ++i) {
        CU_ASSERT_EQUAL(got[i], sent[i]);
        CU_ASSERT_EQUAL(st_msg_end(recvs[i], UCS_OK), 8);
        CU_ASSERT_EQUAL(st_msg_end(sends[i], UCS_OK), 8);
    }
}

/* Wait for a message and give it back; its length */
size_t st_msg_end(ucp_st_req_h req, ucs_status_t status)
{
    ucp_st_req_info_t info = {.length = 0};

    CU_ASSERT_EQUAL(ucp_st_req_wait(req, &info), status);
    CU_ASSERT_EQUAL(info.status, status);
    CU_ASSERT_EQUAL(ucp_st_req_free(req), UCS_OK);
    return info.length;
}

/* One that is complete already, as the stream has passed the wait */
void st_msg_is_done(ucp_st_req_h req, size_t length, ucp_tag_t tag)
{
    ucp_st_req_info_t info = {.length = 0};

    CU_ASSERT_EQUAL(ucp_st_req_test(req, &info), UCS_OK);
    CU_ASSERT_EQUAL(info.length, length);
    CU_ASSERT((tag == 0) || (info.sender_tag == tag));
    CU_ASSERT_EQUAL(ucp_st_req_free(req), UCS_OK);
}
