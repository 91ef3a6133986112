/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_worker.c - st workers: creation, teardown.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_worker.h"
#include "st_ctrl.h"
#include "st_fork.h"
#include "st_lane.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_op.h"
#include "st_peer.h"
#include "st_process.h"
#include "st_stats.h"
#include "st_ucp.h"
#include "st_watch.h"

#include <ucs_trace.h>

#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>

/* How long teardown waits for UCP to deliver messages, seconds */
#define UCP_ST_WORKER_SEND_TIME 5.0

/* And for peers that do not answer: so long, and so many rounds, each with a
 * yield, which count where the peers share a busy processor */
#define UCP_ST_WORKER_ANSWER_TIME   0.2
#define UCP_ST_WORKER_ANSWER_ROUNDS 1000

/* Rounds between questions about peers that are gone */
#define UCP_ST_WORKER_ASK_ROUNDS 50

/* What messages of batches need, and to sleep until there is something */
#define UCP_ST_WORKER_FEATURES \
    (UCP_FEATURE_AM | UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP)

/* A context and a worker for what the library does by itself */
static ucs_status_t ucp_st_worker_own_ucp(ucp_st_worker_h worker)
{
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_MULTI
    };
    ucs_status_t status;

    worker->ucp_features = UCP_ST_WORKER_FEATURES;
    status               = ucp_st_ucp_context_create(worker->ucp_features, 0,
                                                     "ucp_st",
                                                     &worker->own_context);
    if (status != UCS_OK) {
        ucs_error("failed to make a UCP context: %s",
                  ucs_status_string(status));
        return status;
    }
    status = ucp_worker_create(worker->own_context, &worker_params,
                               &worker->ucp_worker);
    if (status != UCS_OK) {
        ucs_error("failed to make a UCP worker: %s", ucs_status_string(status));
        ucp_cleanup(worker->own_context);
    }
    return status;
}

static ucs_status_t ucp_st_worker_ucp_init(ucp_st_worker_h worker,
                                           const ucp_st_worker_params_t *params)
{
    uint64_t mask = params->field_mask;

    worker->am_id = (mask & UCP_ST_WORKER_PARAM_FIELD_AM_ID) ?
                    params->am_id : UCP_ST_AM_ID_DEFAULT;
    if (mask & UCP_ST_WORKER_PARAM_FIELD_UCP_FEATURES) {
        worker->ucp_features = params->ucp_features;
    }
    if (mask & UCP_ST_WORKER_PARAM_FIELD_UCP_WORKER) {
        worker->ucp_worker = params->ucp_worker;
        return (params->ucp_worker == NULL) ? UCS_ERR_INVALID_PARAM : UCS_OK;
    }
    return ucp_st_worker_own_ucp(worker);
}

static void ucp_st_worker_ucp_cleanup(ucp_st_worker_h worker)
{
    if (worker->own_context != NULL) {
        ucp_worker_destroy(worker->ucp_worker);
        ucp_cleanup(worker->own_context);
    }
}

static void ucp_st_worker_lists_init(ucp_st_worker_h worker)
{
    ucs_list_head_init(&worker->peers);
    ucs_list_head_init(&worker->ops);
    ucs_list_head_init(&worker->limbo);
    ucs_list_head_init(&worker->zombies);
    ucs_list_head_init(&worker->queues);
    kh_init_inplace(ucp_st_ops, &worker->op_table);
    ucp_st_batch_init(&worker->batch);
    ucp_st_rma_init(worker);
}

/* Tells `attr`, if it is given, of the lanes that cannot be opened */
static ucs_status_t ucp_st_worker_open(const ucp_st_worker_params_t *params,
                                       ucp_st_lanes_attr_t *attr,
                                       ucp_st_worker_h *worker_p)
{
    ucp_st_worker_h worker;
    ucs_status_t status;

    worker = calloc(1, sizeof(*worker));
    if (worker == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    worker->lanes_attr = attr;
    ucp_st_worker_lists_init(worker);
    if (getrandom(&worker->uuid, sizeof(worker->uuid), 0) !=
        sizeof(worker->uuid)) {
        ucs_error("getrandom() failed: %m");
        status = UCS_ERR_IO_ERROR;
        goto err_free;
    }
    ucp_st_process_get_place(&worker->place);
    (void)pthread_mutex_init(&worker->lock, NULL);

    status = ucp_st_config_read(&worker->config);
    if (status != UCS_OK) {
        goto err_lock;
    }
    status = ucp_st_config_check_names(worker);
    if (status != UCS_OK) {
        goto err_config;
    }
    status = ucp_st_worker_ucp_init(worker, params);
    if (status != UCS_OK) {
        goto err_config;
    }
    status = ucp_st_lanes_open(worker);
    if (status != UCS_OK) {
        goto err_ucp;
    }
    if (ucp_st_host_dev_open(worker) != UCS_OK) {
        ucs_warn("no UCP worker that can sleep (%s): failures reach peers only "
                 "when both hosts make calls",
                 ucs_status_string(worker->host.status));
    }
    status = ucp_st_ctrl_init(worker);
    if (status != UCS_OK) {
        goto err_lanes;
    }
    status = ucp_st_watch_start(worker);
    if (status != UCS_OK) {
        goto err_ctrl;
    }
    status = ucp_st_rma_serve_start(worker);
    if (status != UCS_OK) {
        goto err_watch;
    }
    ucp_st_stats_add_worker(worker);
    *worker_p = worker;
    return UCS_OK;

err_watch:
    ucp_st_watch_stop(worker);
err_ctrl:
    ucp_st_ctrl_cleanup(worker);
err_lanes:
    ucp_st_host_dev_close(worker);
    ucp_st_lanes_close(worker);
err_ucp:
    ucp_st_worker_ucp_cleanup(worker);
err_config:
    ucp_st_config_release(&worker->config);
err_lock:
    ucp_st_rma_cleanup(worker);
    ucp_st_batch_cleanup(worker);
    (void)pthread_mutex_destroy(&worker->lock);
err_free:
    free(worker);
    return status;
}

static ucs_status_t ucp_st_worker_make(const ucp_st_worker_params_t *params,
                                       ucp_st_lanes_attr_t *attr,
                                       ucp_st_worker_h *worker_p)
{
    ucs_status_t status;

    status = ucp_st_fork_enter();
    if (status != UCS_OK) {
        return status;
    }
    status = ucs_trace_open();
    if (status == UCS_OK) {
        status = ucp_st_worker_open(params, attr, worker_p);
    }
    if (status != UCS_OK) {
        ucp_st_fork_leave();
    }
    return status;
}

ucs_status_t ucp_st_worker_create(const ucp_st_worker_params_t *params,
                                  ucp_st_worker_h *worker_p)
{
    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    if ((params == NULL) || (worker_p == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    return ucp_st_worker_make(params, NULL, worker_p);
}

ucs_status_t ucp_st_lanes_query(const ucp_st_worker_params_t *params,
                                ucp_st_lanes_attr_t *attr)
{
    ucp_st_worker_h worker;
    ucs_status_t status;

    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    if ((params == NULL) || (attr == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_st_lanes_attr_init(attr);
    status = ucp_st_worker_make(params, attr, &worker);
    if (status != UCS_OK) {
        ucp_st_lanes_attr_fail(status, attr);
        return status;
    }
    ucp_st_lanes_attr_fill(worker, attr);
    return ucp_st_worker_destroy(worker);
}

/* Non-zero if teardown goes on waiting after so many seconds and rounds: while
 * messages are on their way, peers have not answered, or freed operations wait
 * for the NIC or for their peers' word */
static int ucp_st_worker_is_draining(ucp_st_worker_h worker, double time,
                                     unsigned rounds)
{
    ucp_st_lanes_progress_all(worker);
    ucp_st_op_reap_limbo(worker);
    /* After what may find a peer gone, which is to be told that */
    (void)ucp_st_watch_ask(worker, (rounds % UCP_ST_WORKER_ASK_ROUNDS) == 0);
    if ((worker->sends > 0) || ucp_st_batch_is_sending(worker)) {
        return time < UCP_ST_WORKER_SEND_TIME;
    }
    return (ucp_st_leave_is_waiting(worker) ||
            (worker->host.num_notices > 0) ||
            !ucs_list_is_empty(&worker->limbo) ||
            !ucs_list_is_empty(&worker->zombies) ||
            !ucs_list_is_empty(&worker->rma.trigs)) &&
           ((time < UCP_ST_WORKER_ANSWER_TIME) ||
            (rounds < UCP_ST_WORKER_ANSWER_ROUNDS));
}

/* Give peers a bounded time to answer. One that does not is slow or gone: it
 * finds the goodbye when it looks, and what it holds up is left to the device's
 * cleanup. */
static void ucp_st_worker_drain(ucp_st_worker_h worker)
{
    double start    = ucp_st_worker_now();
    unsigned rounds = 0;
    int draining;

    do {
        ucp_st_ctrl_progress(worker);
        ucp_st_worker_lock(worker);
        draining = ucp_st_worker_is_draining(worker,
                                             ucp_st_worker_now() - start,
                                             ++rounds);
        ucp_st_worker_unlock(worker);
        (void)sched_yield();
    } while (draining);
}

/* What is complete reaches the peers before they hear that this side goes. A
 * peer that cannot be reached in time loses it, and the rest of it all. */
static void ucp_st_worker_flush(ucp_st_worker_h worker)
{
    double start = ucp_st_worker_now();
    ucs_status_t status;

    do {
        ucp_st_worker_lock(worker);
        ucp_st_lanes_progress_all(worker);
        status = ucp_st_lanes_flush(worker);
        ucp_st_worker_unlock(worker);
        (void)sched_yield();
    } while ((status == UCS_INPROGRESS) &&
             ((ucp_st_worker_now() - start) < UCP_ST_WORKER_SEND_TIME));
}

ucs_status_t ucp_st_worker_destroy(ucp_st_worker_h worker)
{
    int busy;

    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    if (worker == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_st_worker_lock(worker);
    busy = !ucs_list_is_empty(&worker->queues) ||
           !ucs_list_is_empty(&worker->ops) || (worker->batch.handles > 0) ||
           (kh_size(&worker->rma.mems) > 0) || (worker->rma.num_rkeys > 0);
    ucp_st_worker_unlock(worker);
    if (busy) {
        return UCS_ERR_BUSY;
    }

    ucp_st_worker_flush(worker);
    ucp_st_leave_say_bye(worker);
    ucp_st_worker_drain(worker);
    ucp_st_stats_remove_worker(worker);
    ucp_st_rma_serve_stop(worker);
    ucp_st_watch_stop(worker);
    ucp_st_batch_stop(worker);
    ucp_st_ctrl_cleanup(worker);
    ucp_st_worker_lock(worker);
    worker->is_ending = 1;
    ucp_st_op_drop_all(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_peers_cleanup(worker);
    ucp_st_batch_cleanup(worker);
    ucp_st_host_dev_close(worker);
    ucp_st_lanes_close(worker);
    ucp_st_worker_ucp_cleanup(worker);
    ucp_st_rma_cleanup(worker);
    kh_destroy_inplace(ucp_st_ops, &worker->op_table);
    ucp_st_config_release(&worker->config);
    (void)pthread_mutex_destroy(&worker->lock);
    free(worker);
    ucp_st_fork_leave();
    (void)ucs_trace_flush(); /* logged; the exit tries again */
    return UCS_OK;
}

unsigned ucp_st_worker_progress(ucp_st_worker_h worker)
{
    return ((worker == NULL) || ucp_st_fork_is_child) ?
           0 : ucp_st_ctrl_progress(worker);
}
