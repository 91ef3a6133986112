/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg_util.c - what the suites of ucp_st_msg.h share.
 */
#include "msg_util.h"
#include "st_cunit.h"
#include "st_pair.h"

#include <stdlib.h>
#include <string.h>


const size_t msg_lengths[MSG_LENGTHS] = {0, 1, 8, 1000, 70000, MSG_LONG};

/* Of messages of the tests, in all layouts of tags */
#define MARK_TAG ((14ull << 60) | 14)

/* A message from each PE to each one, behind all others of its endpoint */
static void settle_pair(st_pes_t *pes, unsigned from, unsigned to)
{
    const ucp_request_param_t param = {.op_attr_mask = 0};
    uint64_t tag                    = MARK_TAG | (from << 16) | (to << 8);
    uint64_t out                    = 1;
    uint64_t in                     = 0;
    ucs_status_ptr_t requests[2];
    int i;

    requests[0] = ucp_tag_recv_nbx(pes->pe[to].worker, &in, sizeof(in), tag,
                                   UINT64_MAX, &param);
    requests[1] = ucp_tag_send_nbx(pes->pe[from].eps[to], &out, sizeof(out),
                                   tag, &param);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_FALSE_FATAL(UCS_PTR_IS_ERR(requests[i]));
        while ((requests[i] != NULL) &&
               (ucp_request_check_status(requests[i]) == UCS_INPROGRESS)) {
            st_pes_progress(pes);
        }
        if (requests[i] != NULL) {
            ucp_request_free(requests[i]);
        }
    }
}

void settle(st_pes_t *pes)
{
    unsigned from, to;

    for (from = 0; from < pes->num; ++from) {
        for (to = 0; to < pes->num; ++to) {
            settle_pair(pes, from, to);
        }
    }
}

ucp_st_channel_ctx_h one_receiver(const one_t *one)
{
    return one->pes->pe[one->pes->num - 1].ctx;
}

void one_send(one_t *one, st_pes_t *pes, size_t length, uint64_t seed)
{
    *one = (one_t){.pes    = pes,
                   .length = length,
                   .sbuf   = (length > 0) ? malloc(length) : NULL,
                   .rbuf   = (length > 0) ? calloc(1, length) : NULL};
    if (length > 0) {
        st_fill(one->sbuf, length, seed);
    }
    one->sent = ucp_st_msg_send(
            pes->pe[0].ctx, pes->pe[0].eps[pes->num - 1], MSG_PE,
            ST_PE_MSG(one->sbuf, length, hear, &one->said), &one->meta);
    CU_ASSERT_FALSE_FATAL(UCS_STATUS_IS_ERR(one->sent));
    CU_ASSERT_EQUAL(one->meta.length, length);
}

void one_received(one_t *one, ucs_status_t status, said_t *said, size_t got,
                  uint64_t seed)
{
    CU_ASSERT_EQUAL(await(one->pes, status, said), UCS_OK);
    CU_ASSERT_EQUAL((status == UCS_OK) ? got : said->length, one->length);
    if (one->length > 0) {
        CU_ASSERT_TRUE(st_check(one->rbuf, one->length, seed));
    }
    CU_ASSERT_EQUAL(await(one->pes, one->sent, &one->said), UCS_OK);
    if (one->sent == UCS_INPROGRESS) {
        CU_ASSERT_EQUAL(one->said.length, one->length);
    }
}

void one_recv(one_t *one, uint64_t seed)
{
    said_t       said = {0};
    size_t       got  = SIZE_MAX;
    ucs_status_t status;

    status = ucp_st_msg_recv(one_receiver(one), &one->meta,
                             ST_PE_MSG(one->rbuf, one->length, hear, &said),
                             &got, NULL);
    one_received(one, status, &said, got, seed);
}

void one_free(one_t *one)
{
    free(one->sbuf);
    free(one->rbuf);
}

static void on_inbox(void *arg, const ucp_st_msg_meta_t *meta,
                     const void *header, size_t header_length)
{
    inbox_t *inbox = arg;

    CU_ASSERT_EQUAL(++inbox->depth, 1);
    CU_ASSERT_FATAL(inbox->count < INBOX_MAX);
    CU_ASSERT_FATAL(header_length <= UCP_ST_MSG_HEADER_MAX);
    CU_ASSERT_EQUAL((uintptr_t)header % 16, 0);
    inbox->meta[inbox->count]   = *meta;
    inbox->length[inbox->count] = header_length;
    memcpy(inbox->header[inbox->count], header, header_length);
    if (++inbox->count == inbox->stop) {
        CU_ASSERT_EQUAL(ucp_st_msg_set_post(inbox->ctx, NULL, NULL), UCS_OK);
    }
    --inbox->depth;
}

void one_send_post(one_t *one, st_pes_t *pes, const ucp_st_msg_header_t *header,
                   size_t length, uint64_t seed)
{
    *one = (one_t){.pes    = pes,
                   .length = length,
                   .sbuf   = (length > 0) ? malloc(length) : NULL,
                   .rbuf   = (length > 0) ? calloc(1, length) : NULL};
    if (length > 0) {
        st_fill(one->sbuf, length, seed);
    }
    one->sent = ucp_st_msg_send_post(
            pes->pe[0].ctx, pes->pe[0].eps[pes->num - 1], MSG_PE, header,
            ST_PE_MSG(one->sbuf, length, hear, &one->said));
    CU_ASSERT_FALSE_FATAL(UCS_STATUS_IS_ERR(one->sent));
}

inbox_t *inbox_new(st_pes_t *pes)
{
    inbox_t *inbox = calloc(1, sizeof(*inbox));

    inbox->ctx = pes->pe[pes->num - 1].ctx;
    return inbox;
}

void inbox_set(inbox_t *inbox)
{
    CU_ASSERT_EQUAL(ucp_st_msg_set_post(inbox->ctx, on_inbox, inbox), UCS_OK);
}
