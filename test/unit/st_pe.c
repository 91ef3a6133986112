/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_pe.c - PEs of a runtime in one process.
 */
#include "st_pe.h"
#include "st_cunit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>


void st_pe_open(ucp_side_t *side)
{
    const char *transports = getenv("UCX_TLS");

    CU_ASSERT_EQUAL_FATAL(ucp_side_open(side, (transports != NULL) ?
                                                      transports : "all", 0, 0),
                          UCS_OK);
}

/* What is under way ends with an error without that */
static void st_pe_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    (void)status;
}

ucp_ep_h st_pe_connect(ucp_worker_h worker, const void *address)
{
    const ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address         = address,
        .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = st_pe_failed
    };
    ucp_ep_h ep;

    CU_ASSERT_EQUAL_FATAL(ucp_ep_create(worker, &params, &ep), UCS_OK);
    return ep;
}

void st_pes_init(st_pes_t *pes, unsigned num, const ucp_st_tag_layout_t *layout)
{
    ucp_st_channel_ctx_params_t params = {
        .field_mask = UCP_ST_CHANNEL_CTX_PARAM_FIELD_UCP_WORKER
    };
    unsigned i, j;

    memset(pes, 0, sizeof(*pes));
    pes->num = num;
    for (i = 0; i < num; ++i) {
        st_pe_open(&pes->pe[i].side);
        pes->pe[i].worker = pes->pe[i].side.worker;
    }
    for (i = 0; i < num; ++i) {
        for (j = 0; j < num; ++j) {
            /* UCX's transport to the own worker knows no dead peers, and has a
             * message arrive in the call that sends it */
            pes->pe[i].eps[j] =
                    (i == j) ? ucp_side_connect(&pes->pe[i].side,
                                                &pes->pe[i].side) :
                               st_pe_connect(pes->pe[i].worker,
                                             pes->pe[j].side.attr.address);
        }
    }
    if (layout != NULL) {
        params.field_mask |= UCP_ST_CHANNEL_CTX_PARAM_FIELD_LAYOUT;
        params.layout      = *layout;
    }
    for (i = 0; i < num; ++i) {
        params.ucp_worker = pes->pe[i].worker;
        CU_ASSERT_EQUAL_FATAL(ucp_st_channel_ctx_create(&params,
                                                        &pes->pe[i].ctx),
                              UCS_OK);
    }
}

void st_pes_cleanup(st_pes_t *pes)
{
    ucs_status_t status;
    unsigned i, j, k;

    for (i = 0; i < pes->num; ++i) {
        status = UCS_OK;
        for (k = 0; (k < 1000000) && (pes->pe[i].ctx != NULL); ++k) {
            /* Sends that UCP has */
            status = ucp_st_channel_ctx_destroy(pes->pe[i].ctx);
            if (status != UCS_ERR_BUSY) {
                break;
            }
            st_pes_progress(pes);
        }
        CU_ASSERT_EQUAL(status, UCS_OK);
        pes->pe[i].ctx = NULL;
    }
    for (i = 0; i < pes->num; ++i) {
        for (j = 0; j < pes->num; ++j) {
            ucp_side_close_ep(&pes->pe[i].side, pes->pe[i].eps[j]);
        }
    }
    for (i = 0; i < pes->num; ++i) {
        ucp_side_close(&pes->pe[i].side);
    }
}

void st_pes_init_far(st_pes_t *pes, const st_far_t *far)
{
    uint8_t theirs[ST_FAR_ADDRESS];
    const ucp_worker_attr_t *attr = &pes->pe[0].side.attr;

    st_pes_init(pes, 1, NULL);
    CU_ASSERT_EQUAL_FATAL(send(far->fd, attr->address, attr->address_length, 0),
                          (ssize_t)attr->address_length);
    CU_ASSERT_FATAL(recv(far->fd, theirs, sizeof(theirs), 0) > 0);
    pes->pe[0].eps[1] = st_pe_connect(pes->pe[0].worker, theirs);
}

void st_pes_cleanup_far(st_pes_t *pes)
{
    ucp_side_close_ep(&pes->pe[0].side, pes->pe[0].eps[1]);
    st_pes_cleanup(pes);
}

void st_pes_progress(st_pes_t *pes)
{
    unsigned i;

    for (i = 0; i < pes->num; ++i) {
        (void)ucp_worker_progress(pes->pe[i].worker);
        if (pes->pe[i].ctx != NULL) {
            (void)ucp_st_channel_progress(pes->pe[i].ctx);
        }
    }
}

void hear(void *arg, ucs_status_t status, size_t length)
{
    said_t *said = arg;

    ++said->calls;
    said->status = status;
    said->length = length;
}

ucs_status_t await(st_pes_t *pes, ucs_status_t status, said_t *said)
{
    while ((status == UCS_INPROGRESS) && (said->calls == 0)) {
        st_pes_progress(pes);
    }
    CU_ASSERT_EQUAL(said->calls, (status == UCS_INPROGRESS));
    return (status == UCS_INPROGRESS) ? said->status : status;
}

ucp_st_channel_h st_pes_channel(st_pes_t *pes, unsigned at, unsigned other,
                                uint64_t id, unsigned end)
{
    const ucp_st_channel_params_t params = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_EP |
                      UCP_ST_CHANNEL_PARAM_FIELD_ID |
                      UCP_ST_CHANNEL_PARAM_FIELD_END,
        .ep         = pes->pe[at].eps[other],
        .id         = id,
        .end        = end
    };
    ucp_st_channel_h channel = NULL;

    CU_ASSERT_EQUAL_FATAL(ucp_st_channel_create(pes->pe[at].ctx, &params,
                                                &channel), UCS_OK);
    return channel;
}

void *st_pe_pack(ucp_st_channel_h end, size_t *length_p)
{
    void *bytes;

    *length_p = 0;
    CU_ASSERT_EQUAL(ucp_st_channel_pack(end, NULL, length_p), UCS_OK);
    bytes = malloc(*length_p);
    CU_ASSERT_EQUAL(ucp_st_channel_pack(end, bytes, length_p), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end), UCS_OK);
    return bytes;
}

ucp_st_channel_h st_pes_unpack(st_pes_t *pes, unsigned at, unsigned other,
                               const void *bytes, size_t length)
{
    const ucp_st_channel_params_t params = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_EP,
        .ep         = pes->pe[at].eps[other]
    };
    ucp_st_channel_h end = NULL;

    CU_ASSERT_EQUAL_FATAL(ucp_st_channel_unpack(pes->pe[at].ctx, &params, bytes,
                                                length, &end), UCS_OK);
    return end;
}

void st_pes_rebind(st_pes_t *pes, ucp_st_channel_h end, unsigned at,
                   unsigned other)
{
    const ucp_st_channel_params_t params = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_EP,
        .ep         = pes->pe[at].eps[other]
    };

    CU_ASSERT_EQUAL(ucp_st_channel_rebind(end, &params), UCS_OK);
}
