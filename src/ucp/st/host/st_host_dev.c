/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_dev.c - what the service thread does for the host lane.
 *
 * Streams hand over the operations that they start on a stack (st_stack.h). An
 * operation is there at most once: `queued` is set by the stream that pushes
 * it, and cleared by the service thread before it looks at what the operation
 * has to do, both by read-modify-write, so that a stream that finds it set
 * knows that its start will be seen.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "host/st_host_dev.h"
#include "host/st_host.h"
#include "core/st_lane.h"
#include "ctrl/st_ctrl.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_worker.h"

#include <stdlib.h>
#include <string.h>

void ucp_st_host_dev_push(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);
    ucp_st_host_dev_t *dev = ucp_st_host_dev(op->worker);

    if (!__atomic_exchange_n(&host->queued, 1, __ATOMIC_ACQ_REL)) {
        ucp_st_stack_push(&dev->begun, &host->begun_item);
        ucp_st_service_wake(&ucp_st_svc(op->worker)->service);
    }
}

void ucp_st_host_dev_add(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);
    ucp_st_host_dev_t *dev = ucp_st_host_dev(op->worker);

    if ((host != NULL) && !host->is_listed) {
        host->is_listed = 1;
        ucs_list_add_tail(&dev->work, &host->list);
        ucp_st_svc_wake(ucp_st_svc(op->worker));
    }
}

void ucp_st_host_dev_drop(ucp_st_worker_h worker, ucp_st_host_msg_t *msg)
{
    ucs_list_add_tail(&ucp_st_host_dev(worker)->trash, &msg->list);
    ucp_st_svc_wake(ucp_st_svc(worker));
}

/* What streams have pushed becomes work. An operation counts as busy all the
 * time: the lock is held. */
static void ucp_st_host_dev_take_begun(ucp_st_host_dev_t *dev)
{
    ucp_st_stack_item_t *item = ucp_st_stack_take(&dev->begun);
    ucp_st_host_op_t *host;

    while (item != NULL) {
        host = ucs_container_of(item, ucp_st_host_op_t, begun_item);
        item = item->next;
        ucp_st_host_dev_add(host->op);
        (void)__atomic_exchange_n(&host->queued, 0, __ATOMIC_ACQ_REL);
    }
}

/* Give back to UCP what nobody wants; the lock is held, and released meanwhile
 */
static unsigned ucp_st_host_dev_empty_trash(ucp_st_worker_h worker)
{
    ucp_st_host_dev_t *dev = ucp_st_host_dev(worker);
    unsigned count         = 0;
    ucp_st_host_msg_t *msg;

    while (!ucs_list_is_empty(&dev->trash)) {
        msg = ucs_list_extract_head(&dev->trash, ucp_st_host_msg_t, list);
        ucp_st_worker_unlock(worker);
        ucp_am_data_release(ucp_st_svc(worker)->ucp_worker, msg->data);
        free(msg);
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
    return ucp_st_svc(worker)->is_served; /* operations and peers still exist */
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

/* While the lock was not held others may have added to the lists without a
 * wake: that counts, too. */
static unsigned ucp_st_host_dev_work(ucp_st_worker_h worker)
{
    ucp_st_host_dev_t *dev = ucp_st_host_dev(worker);
    unsigned count;

    ucp_st_host_dev_take_begun(dev);
    count  = ucp_st_host_dev_run_ops(dev);
    count += ucp_st_host_dev_empty_trash(worker);
    return count + (!ucs_list_is_empty(&dev->work) ||
                    !ucs_list_is_empty(&dev->trash));
}

static int ucp_st_host_dev_is_used(ucp_st_peer_t *peer)
{
    ucp_st_host_op_t *host;
    ucp_st_op_t *op;

    ucs_list_for_each(op, &peer->ops, peer_list) {
        host = ucp_st_host_op(op);
        if ((host != NULL) && (host->is_moving || host->is_sending)) {
            return 1;
        }
    }
    return 0;
}

ucs_status_t ucp_st_host_dev_open(ucp_st_worker_h worker)
{
    static const ucp_st_svc_client_t client = {
        .work    = ucp_st_host_dev_work,
        .is_used = ucp_st_host_dev_is_used
    };
    ucp_st_host_dev_t *dev                  = ucp_st_host_dev(worker);
    ucs_status_t status;

    ucs_list_head_init(&dev->work);
    ucs_list_head_init(&dev->trash);
    status = ucp_st_svc_open(worker);
    if (status == UCS_OK) {
        status = ucp_st_svc_set_handler(worker, UCP_ST_SVC_AM_DATA,
                                        UCP_AM_FLAG_PERSISTENT_DATA,
                                        ucp_st_host_data_am_handler);
    }
    if (status == UCS_OK) {
        status = ucp_st_svc_set_handler(worker, UCP_ST_SVC_AM_ACK, 0,
                                        ucp_st_host_ack_am_handler);
    }
    if (status != UCS_OK) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_HOST,
                           "lane 'host': no UCP worker that can sleep: %s",
                           ucs_status_string(status));
        ucp_st_svc_close(worker);
        return status;
    }
    ucp_st_svc_add_client(ucp_st_svc(worker), &client);
    return UCS_OK;
}

void ucp_st_host_dev_close(ucp_st_worker_h worker)
{
    ucp_st_worker_lock(worker);
    (void)ucp_st_host_dev_empty_trash(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_svc_close(worker);
}
