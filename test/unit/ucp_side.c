/* SPDX-License-Identifier: BSD-3-Clause */
/* ucp_side.c - workers of UCP over the transport. */
#include "ucp_side.h"
#include "st_cunit.h"


ucs_status_t ucp_side_open(ucp_side_t *side, const char *transports,
                           uint64_t features, uint64_t flags)
{
    ucp_params_t params               = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_AM | features
    };
    ucp_worker_params_t worker_params = {
        .field_mask = 0
    };
    ucp_config_t *config;
    ucs_status_t status;

    CU_ASSERT_FATAL(ucp_config_read(NULL, NULL, &config) == UCS_OK);
    CU_ASSERT_FATAL(ucp_config_modify(config, "TLS", transports) == UCS_OK);
    status = ucp_init(&params, config, &side->context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        return status;
    }

    CU_ASSERT_FATAL(ucp_worker_create(side->context, &worker_params,
                                      &side->worker) == UCS_OK);
    side->attr.field_mask    = UCP_WORKER_ATTR_FIELD_ADDRESS |
                               UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
    side->attr.address_flags = flags;
    CU_ASSERT_FATAL(ucp_worker_query(side->worker, &side->attr) == UCS_OK);
    return UCS_OK;
}

void ucp_side_close(ucp_side_t *side)
{
    ucp_worker_release_address(side->worker, side->attr.address);
    ucp_worker_destroy(side->worker);
    ucp_cleanup(side->context);
}

ucp_ep_h ucp_side_connect(ucp_side_t *side, const ucp_side_t *peer)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = peer->attr.address
    };
    ucp_ep_h ep;

    CU_ASSERT_FATAL(ucp_ep_create(side->worker, &params, &ep) == UCS_OK);
    return ep;
}

ucs_status_t ucp_side_wait(ucp_side_t *side, ucp_side_t *other,
                           ucs_status_ptr_t request)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(side->worker);
        if (other != NULL) {
            ucp_worker_progress(other->worker);
        }
    }
    ucp_request_free(request);
    return status;
}

void ucp_side_close_ep(ucp_side_t *side, ucp_ep_h ep)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE
    };

    (void)ucp_side_wait(side, NULL, ucp_ep_close_nbx(ep, &param));
}
