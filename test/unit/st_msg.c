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
