/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_svc.c - the UCP worker that the service thread drives.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ctrl/st_svc.h"
#include "ctrl/st_ctrl.h"
#include "ctrl/st_notice.h"
#include "core/st_log.h"
#include "core/st_ucp.h"
#include "core/st_worker.h"

#include <string.h>

/* Rounds until other clients of the service thread have their turn */
#define UCP_ST_SVC_MAX_ROUNDS 64

/* Times that UCP says it must not sleep, with nothing to do, until it is looked
 * at only every millisecond: a transport waits for a peer that does not read */
#define UCP_ST_SVC_MAX_IDLE 100

/* How long the end of a worker waits until all that was sent has left, seconds
 */
#define UCP_ST_SVC_FLUSH_TIME 5.0

void ucp_st_svc_init(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);

    ucs_list_head_init(&svc->closing);
    ucs_list_head_init(&svc->notices);
    svc->status = UCS_ERR_UNSUPPORTED;
}

void ucp_st_svc_wake(ucp_st_svc_t *svc)
{
    if (!svc->is_awake) {
        ucp_st_service_wake(&svc->service);
    }
}

/* Close the endpoints of peers that are gone, which ends what UCP still does
 * for them; the lock is held, and released meanwhile */
static unsigned ucp_st_svc_close_eps(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);
    unsigned count    = 0;
    ucp_st_svc_ep_t *sep;
    ucp_ep_h ep;

    while (!ucs_list_is_empty(&svc->closing)) {
        sep = ucs_list_extract_head(&svc->closing, ucp_st_svc_ep_t, list);
        sep->closing = 0;
        ep           = sep->ep;
        sep->ep      = NULL;
        ucp_st_worker_unlock(worker);
        ucp_st_ucp_ep_close_later(ep, &svc->num_closes);
        ++count;
        ucp_st_worker_lock(worker);
    }
    return count;
}

/* While the lock was not held others may have added to the lists without a
 * wake: clients count that, too. */
unsigned ucp_st_svc_work(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);
    unsigned count, i;

    ucp_st_worker_lock(worker);
    svc->is_awake = 1;
    ucp_st_worker_unlock(worker);
    count = ucp_worker_progress(svc->ucp_worker);

    ucp_st_worker_lock(worker);
    count += ucp_st_svc_close_eps(worker);
    count += ucp_st_notice_send_all(worker);
    for (i = 0; i < svc->num_clients; ++i) {
        count += svc->clients[i]->work(worker);
    }
    count += !ucs_list_is_empty(&svc->closing) ||
             !ucs_list_is_empty(&svc->notices);
    svc->is_awake = (count > 0);
    ucp_st_worker_unlock(worker);
    return count;
}

/* In the service thread. UCP is armed after a round that found nothing: what
 * comes later makes its descriptor readable, or wakes the client. */
static int ucp_st_svc_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_svc_t *svc      = ucp_st_svc(worker);
    unsigned rounds        = 0;
    ucs_status_t status;

    while (ucp_st_svc_work(worker) > 0) {
        svc->idle = 0;
        if (++rounds == UCP_ST_SVC_MAX_ROUNDS) {
            return 0;
        }
    }
    if (svc->num_closes > 0) {
        return 1; /* nothing may tell of their end */
    }
    status = ucp_worker_arm(svc->ucp_worker);
    if (status == UCS_OK) {
        svc->idle = 0;
        return -1;
    }
    return (++svc->idle < UCP_ST_SVC_MAX_IDLE) ? 0 : 1;
}

ucs_status_t ucp_st_svc_set_handler(ucp_st_worker_h worker, unsigned id,
                                    unsigned flags, ucp_am_recv_callback_t cb)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id         = id,
        .flags      = UCP_AM_FLAG_WHOLE_MSG | flags,
        .cb         = cb,
        .arg        = worker
    };

    return ucp_worker_set_am_recv_handler(ucp_st_svc(worker)->ucp_worker,
                                          &param);
}

void ucp_st_svc_add_client(ucp_st_svc_t *svc,
                           const ucp_st_svc_client_t *client)
{
    svc->clients[svc->num_clients++] = client;
}

static ucs_status_t ucp_st_svc_create(ucp_st_svc_t *svc)
{
    ucp_worker_params_t params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED
    };
    ucs_status_t status;

    status = ucp_st_ucp_context_create(UCP_FEATURE_AM | UCP_FEATURE_WAKEUP, 1,
                                       "ucp_st_host", &svc->context);
    if (status != UCS_OK) {
        goto err;
    }
    status = ucp_worker_create(svc->context, &params, &svc->ucp_worker);
    if (status != UCS_OK) {
        goto err_context;
    }
    status = ucp_worker_get_efd(svc->ucp_worker, &svc->service.fds[0]);
    if (status != UCS_OK) {
        goto err_worker;
    }
    status = ucp_worker_get_address(svc->ucp_worker, &svc->address,
                                    &svc->address_length);
    if (status != UCS_OK) {
        goto err_worker;
    }
    return UCS_OK;

err_worker:
    ucp_worker_destroy(svc->ucp_worker);
err_context:
    ucp_cleanup(svc->context);
err:
    return status;
}

ucs_status_t ucp_st_svc_open(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);

    if (svc->refs++ == 0) {
        svc->status = ucp_st_svc_create(svc);
    }
    return svc->status;
}

ucs_status_t ucp_st_svc_start(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);
    ucs_status_t status;

    if (svc->status != UCS_OK) {
        return UCS_OK; /* it is without */
    }
    svc->service.serve   = ucp_st_svc_serve;
    svc->service.arg     = worker;
    svc->service.num_fds = 1;
    svc->is_served       = 1;
    status               = ucp_st_service_add(&svc->service);
    if (status != UCS_OK) {
        svc->is_served = 0;
    }
    return status;
}

void ucp_st_svc_stop(ucp_st_svc_t *svc)
{
    if (svc->is_served) {
        ucp_st_service_remove(&svc->service);
        svc->is_served = 0;
        svc->stop_time = ucp_st_worker_now() + UCP_ST_SVC_FLUSH_TIME;
    }
}

void ucp_st_svc_close(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);

    ucp_st_svc_stop(svc);
    if ((--svc->refs > 0) || (svc->status != UCS_OK)) {
        return;
    }
    ucp_st_notice_cleanup(worker);
    ucp_worker_release_address(svc->ucp_worker, svc->address);
    ucp_worker_destroy(svc->ucp_worker);
    ucp_cleanup(svc->context);
    svc->status = UCS_ERR_UNSUPPORTED;
}

size_t ucp_st_svc_address_length(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);

    return (svc->status == UCS_OK) ? svc->address_length : 0;
}

void ucp_st_svc_address_pack(ucp_st_worker_h worker, void *buffer)
{
    memcpy(buffer, ucp_st_svc(worker)->address,
           ucp_st_svc_address_length(worker));
}
