/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_dev.c - the UCP worker that the service thread drives, and what that
 * does with it.
 *
 * Streams hand over the operations that they start on a stack: a stream pushes
 * with one compare-and-swap, the service thread takes all that is there at
 * once, so that neither waits for the other and no node is popped while another
 * thread looks at it. An operation is in the stack at most once: `queued` is
 * set by who pushes it and cleared by the service thread before it looks at
 * what the operation has to do, both by read-modify-write, so that a stream
 * that finds it set knows that its start will be seen.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_host_dev.h"
#include "st_host.h"
#include "st_lane.h"
#include "st_log.h"
#include "st_notice.h"
#include "st_op.h"
#include "st_peer.h"
#include "st_rma_host.h"
#include "st_ucp.h"
#include "st_worker.h"

#include <stdlib.h>
#include <string.h>

/* Rounds until other clients of the service thread have their turn */
#define UCP_ST_HOST_MAX_ROUNDS 64

/* Times that UCP says it must not sleep, with nothing to do, until it is looked
 * at only every millisecond: a transport waits for a peer that does not read */
#define UCP_ST_HOST_MAX_IDLE 100

/* How long the end of a worker waits until all that was sent has left, seconds
 */
#define UCP_ST_HOST_FLUSH_TIME 5.0

void ucp_st_host_dev_push(ucp_st_op_t *op)
{
    ucp_st_host_dev_t *dev = &op->worker->host;
    ucp_st_op_t *head;

    if (__atomic_exchange_n(&op->host->queued, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    head = __atomic_load_n(&dev->begun, __ATOMIC_RELAXED);
    do {
        op->host->next = head;
    } while (!__atomic_compare_exchange_n(&dev->begun, &head, op, 1,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    ucp_st_service_wake(&dev->service);
}

void ucp_st_host_dev_wake(ucp_st_host_dev_t *dev)
{
    if (!dev->is_awake) {
        ucp_st_service_wake(&dev->service);
    }
}

void ucp_st_host_dev_add(ucp_st_op_t *op)
{
    ucp_st_host_dev_t *dev = &op->worker->host;

    if ((op->host != NULL) && !op->host->is_listed) {
        op->host->is_listed = 1;
        ucs_list_add_tail(&dev->work, &op->host->list);
        ucp_st_host_dev_wake(dev);
    }
}

void ucp_st_host_dev_drop(ucp_st_worker_h worker, ucp_st_host_msg_t *msg)
{
    ucs_list_add_tail(&worker->host.trash, &msg->list);
    ucp_st_host_dev_wake(&worker->host);
}

/* What streams have pushed becomes work. An operation counts as busy all the
 * time: the lock is held. */
static void ucp_st_host_dev_take_begun(ucp_st_host_dev_t *dev)
{
    ucp_st_op_t *op, *next;

    op = __atomic_exchange_n(&dev->begun, NULL, __ATOMIC_ACQUIRE);
    for (; op != NULL; op = next) {
        next = op->host->next;
        ucp_st_host_dev_add(op);
        (void)__atomic_exchange_n(&op->host->queued, 0, __ATOMIC_ACQ_REL);
    }
}

/* Give back to UCP what nobody wants; the lock is held, and released meanwhile
 */
static unsigned ucp_st_host_dev_empty_trash(ucp_st_worker_h worker)
{
    ucp_st_host_dev_t *dev = &worker->host;
    unsigned count         = 0;
    ucp_st_host_msg_t *msg;

    while (!ucs_list_is_empty(&dev->trash)) {
        msg = ucs_list_extract_head(&dev->trash, ucp_st_host_msg_t, list);
        ucp_st_worker_unlock(worker);
        ucp_am_data_release(dev->ucp_worker, msg->data);
        free(msg);
        ++count;
        ucp_st_worker_lock(worker);
    }
    return count;
}

/* Close the endpoints of peers that are gone, which ends what UCP still does
 * for them; the lock is held, and released meanwhile */
static unsigned ucp_st_host_dev_close_eps(ucp_st_worker_h worker)
{
    ucp_st_host_dev_t *dev = &worker->host;
    unsigned count         = 0;
    ucp_st_host_ep_t *hep;
    ucp_ep_h ep;

    while (!ucs_list_is_empty(&dev->closing)) {
        hep = ucs_list_extract_head(&dev->closing, ucp_st_host_ep_t, list);
        hep->closing = 0;
        ep           = hep->ep;
        hep->ep      = NULL;
        ucp_st_worker_unlock(worker);
        ucp_st_ep_close(dev->ucp_worker, ep, UCP_EP_CLOSE_FLAG_FORCE);
        ++count;
        ucp_st_worker_lock(worker);
    }
    return count;
}

/* Run the operations that have something to do; how many. What comes up
 * meanwhile is for the next round. The lock is held, and released meanwhile. */
static unsigned ucp_st_host_dev_run_ops(ucp_st_host_dev_t *dev)
{
    unsigned count = 0;
    ucp_st_host_op_t *host;
    ucs_list_link_t work;

    ucs_list_head_init(&work);
    ucs_list_splice_tail(&work, &dev->work);
    ucs_list_head_init(&dev->work);
    while (!ucs_list_is_empty(&work)) {
        host = ucs_list_extract_head(&work, ucp_st_host_op_t, list);
        host->is_listed = 0;
        ucp_st_host_run(host->op);
        ++count;
    }
    return count;
}

/* While the lock was not held others may have added to the lists without a
 * wake: that counts, too. */
unsigned ucp_st_host_dev_work(ucp_st_worker_h worker)
{
    ucp_st_host_dev_t *dev = &worker->host;
    unsigned count;

    ucp_st_worker_lock(worker);
    dev->is_awake = 1;
    ucp_st_worker_unlock(worker);
    count = ucp_worker_progress(dev->ucp_worker);

    ucp_st_worker_lock(worker);
    ucp_st_host_dev_take_begun(dev);
    count += ucp_st_host_dev_run_ops(dev);
    count += ucp_st_host_dev_empty_trash(worker);
    count += ucp_st_host_dev_close_eps(worker);
    count += ucp_st_notice_send_all(worker);
    count += ucp_st_rma_host_work(worker);
    count += !ucs_list_is_empty(&dev->work) || !ucs_list_is_empty(&dev->trash);
    dev->is_awake = (count > 0);
    ucp_st_worker_unlock(worker);
    return count;
}

/* In the service thread. UCP is armed after a round that found nothing: what
 * comes later makes its descriptor readable, or wakes the client. */
static int ucp_st_host_dev_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_host_dev_t *dev = &worker->host;
    unsigned rounds        = 0;
    ucs_status_t status;

    while (ucp_st_host_dev_work(worker) > 0) {
        dev->idle = 0;
        if (++rounds == UCP_ST_HOST_MAX_ROUNDS) {
            return 0;
        }
    }
    status = ucp_worker_arm(dev->ucp_worker);
    if (status == UCS_OK) {
        dev->idle = 0;
        return -1;
    }
    return (++dev->idle < UCP_ST_HOST_MAX_IDLE) ? 0 : 1;
}

/* What came from the network; zero if it is no message of this lane. The lock
 * is held. */
static int ucp_st_host_dev_header(ucp_st_worker_h worker, const void *data,
                                  size_t length, ucp_st_host_hdr_t *header)
{
    if (length != sizeof(*header)) {
        ucs_error("dropped a message with a header of %zu bytes", length);
        return 0;
    }
    memcpy(header, data, sizeof(*header));
    return worker->host.is_served; /* operations and peers still exist */
}

static ucs_status_t
ucp_st_host_data_am_handler(void *arg, const void *header, size_t header_length,
                            void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    int is_taken           = 0;
    ucp_st_host_msg_t *msg = malloc(sizeof(*msg));
    ucp_st_host_hdr_t hdr;

    if (msg != NULL) {
        msg->data    = data;
        msg->is_rndv = !!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    }
    ucp_st_worker_lock(worker);
    if (ucp_st_host_dev_header(worker, header, header_length, &hdr)) {
        is_taken = ucp_st_host_handle_data(worker, &hdr, msg, length);
    }
    ucp_st_worker_unlock(worker);
    if (!is_taken) {
        free(msg);
    }
    return is_taken ? UCS_INPROGRESS : UCS_OK;
}

static ucs_status_t
ucp_st_host_ack_am_handler(void *arg, const void *header, size_t header_length,
                           void *data, size_t length,
                           const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    ucp_st_host_hdr_t hdr;

    (void)data;
    (void)length;
    (void)param;
    ucp_st_worker_lock(worker);
    if (ucp_st_host_dev_header(worker, header, header_length, &hdr)) {
        ucp_st_host_handle_ack(worker, &hdr);
    }
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

static ucs_status_t
ucp_st_host_notice_am_handler(void *arg, const void *header,
                              size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    ucp_st_notice_msg_t msg;

    (void)data;
    (void)length;
    (void)param;
    if (header_length != sizeof(msg)) {
        ucs_error("dropped a notice of %zu bytes", header_length);
        return UCS_OK;
    }
    memcpy(&msg, header, sizeof(msg));
    ucp_st_worker_lock(worker);
    if (worker->host.is_served) { /* operations and peers still exist */
        ucp_st_notice_handle(worker, &msg);
    }
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

static ucs_status_t ucp_st_host_dev_set_handler(ucp_st_worker_h worker,
                                                unsigned id, unsigned flags,
                                                ucp_am_recv_callback_t cb)
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

    return ucp_worker_set_am_recv_handler(worker->host.ucp_worker, &param);
}

static ucs_status_t ucp_st_host_dev_worker(ucp_st_worker_h worker)
{
    ucp_st_host_dev_t *dev     = &worker->host;
    ucp_worker_params_t params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED
    };
    ucs_status_t status;

    status = ucp_worker_create(dev->context, &params, &dev->ucp_worker);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_worker_get_address(dev->ucp_worker, &dev->address,
                                    &dev->address_length);
    if (status != UCS_OK) {
        goto err;
    }
    status = ucp_st_host_dev_set_handler(worker, UCP_ST_HOST_AM_DATA,
                                         UCP_AM_FLAG_PERSISTENT_DATA,
                                         ucp_st_host_data_am_handler);
    if (status == UCS_OK) {
        status = ucp_st_host_dev_set_handler(worker, UCP_ST_HOST_AM_ACK, 0,
                                             ucp_st_host_ack_am_handler);
    }
    if (status == UCS_OK) {
        status = ucp_st_host_dev_set_handler(worker, UCP_ST_HOST_AM_NOTICE, 0,
                                             ucp_st_host_notice_am_handler);
    }
    if (status == UCS_OK) {
        status = ucp_st_host_dev_set_handler(worker, UCP_ST_HOST_AM_RMA, 0,
                                             ucp_st_rma_request_am_handler);
    }
    if (status == UCS_OK) {
        status = ucp_st_host_dev_set_handler(worker, UCP_ST_HOST_AM_RMA_REPLY,
                                             0, ucp_st_rma_reply_am_handler);
    }
    if (status != UCS_OK) {
        goto err_address;
    }
    return UCS_OK;

err_address:
    ucp_worker_release_address(dev->ucp_worker, dev->address);
err:
    ucp_worker_destroy(dev->ucp_worker);
    return status;
}

static ucs_status_t ucp_st_host_dev_serve_start(ucp_st_worker_h worker)
{
    ucp_st_host_dev_t *dev = &worker->host;
    ucs_status_t status;

    dev->service.serve   = ucp_st_host_dev_serve;
    dev->service.arg     = worker;
    dev->service.num_fds = 1;
    status = ucp_worker_get_efd(dev->ucp_worker, &dev->service.fds[0]);
    if (status == UCS_OK) {
        dev->is_served = 1;
        status         = ucp_st_service_add(&dev->service);
    }
    return status;
}

static ucs_status_t ucp_st_host_dev_init(ucp_st_worker_h worker)
{
    ucp_st_host_dev_t *dev = &worker->host;
    ucs_status_t status;

    ucs_list_head_init(&dev->work);
    ucs_list_head_init(&dev->trash);
    ucs_list_head_init(&dev->closing);
    ucs_list_head_init(&dev->notices);
    status = ucp_st_ucp_context_create(UCP_FEATURE_AM | UCP_FEATURE_WAKEUP, 1,
                                       "ucp_st_host", &dev->context);
    if (status != UCS_OK) {
        goto err;
    }
    status = ucp_st_host_dev_worker(worker);
    if (status != UCS_OK) {
        goto err_context;
    }
    status = ucp_st_host_dev_serve_start(worker);
    if (status != UCS_OK) {
        goto err_worker;
    }
    return UCS_OK;

err_worker:
    ucp_worker_release_address(dev->ucp_worker, dev->address);
    ucp_worker_destroy(dev->ucp_worker);
err_context:
    ucp_cleanup(dev->context);
err:
    return status;
}

ucs_status_t ucp_st_host_dev_open(ucp_st_worker_h worker)
{
    ucp_st_host_dev_t *dev = &worker->host;

    if (!dev->is_tried) {
        dev->is_tried = 1;
        dev->status   = ucp_st_host_dev_init(worker);
    }
    return dev->status;
}

void ucp_st_host_dev_stop(ucp_st_host_dev_t *dev)
{
    if (dev->is_served) {
        ucp_st_service_remove(&dev->service);
        dev->is_served = 0;
        dev->stop_time = ucp_st_worker_now() + UCP_ST_HOST_FLUSH_TIME;
    }
}

void ucp_st_host_dev_close(ucp_st_worker_h worker)
{
    ucp_st_host_dev_t *dev = &worker->host;

    if (!dev->is_tried || (dev->status != UCS_OK)) {
        return;
    }
    ucp_st_host_dev_stop(dev);
    ucp_st_worker_lock(worker);
    (void)ucp_st_host_dev_empty_trash(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_notice_cleanup(worker);
    ucp_worker_release_address(dev->ucp_worker, dev->address);
    ucp_worker_destroy(dev->ucp_worker);
    ucp_cleanup(dev->context);
}

size_t ucp_st_host_dev_address_length(ucp_st_worker_h worker)
{
    return (worker->host.status == UCS_OK) ? worker->host.address_length : 0;
}

void ucp_st_host_dev_address_pack(ucp_st_worker_h worker, void *buffer)
{
    memcpy(buffer, worker->host.address,
           ucp_st_host_dev_address_length(worker));
}
