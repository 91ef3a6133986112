/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_worker.c - st workers: creation, teardown.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_worker.h"
#include "core/st_lane.h"
#include "core/st_leave.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_process.h"
#include "core/st_progress.h"
#include "core/st_ucp.h"
#include "core/st_watch.h"
#include "ctrl/st_ctrl.h"

#include <ucs_gstream_memory.h>
#include <ucs_trace.h>

#include <ucs/sys/math.h>
#include <ucs/type/param.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* How long teardown waits for UCP to deliver messages, seconds */
#define UCP_ST_WORKER_SEND_TIME 5.0

/* How long teardown waits for peers that do not answer: at least so long, and
 * so many rounds with a yield each, as peers may share a busy processor */
#define UCP_ST_WORKER_ANSWER_TIME   0.2
#define UCP_ST_WORKER_ANSWER_ROUNDS 1000

/* Rounds between two looks after peers that may be gone */
#define UCP_ST_WORKER_ASK_ROUNDS 50

#define UCP_ST_WORKER_PARAM(_params, _name, _FLAG, _default) \
    UCS_PARAM_VALUE(UCP_ST_WORKER_PARAM_FIELD, _params, _name, _FLAG, _default)

/* What messages used once need, and to sleep until there is something */
#define UCP_ST_WORKER_FEATURES (UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP)

/* Kinds of streams that the user names must be there */
static ucs_status_t
ucp_st_worker_set_types(ucp_st_worker_h worker,
                        const ucp_st_worker_params_t *params)
{
    uint64_t types      = UCP_ST_WORKER_PARAM(params, stream_types,
                                              STREAM_TYPES, 0);
    ucs_status_t status = UCS_OK;
    ucs_gstream_type_attr_t attr;
    unsigned type;

    if ((types >= UCS_BIT(UCS_GSTREAM_TYPE_LAST)) ||
        ((types == 0) && (params->field_mask &
                          UCP_ST_WORKER_PARAM_FIELD_STREAM_TYPES))) {
        ucs_error("kinds of streams 0x%lx: there are %u", types,
                  UCS_GSTREAM_TYPE_LAST);
        return UCS_ERR_INVALID_PARAM;
    }
    worker->stream_types = types;
    worker->refuse_level = (UCP_ST_WORKER_PARAM(params, flags, FLAGS, 0) &
                            UCP_ST_WORKER_FLAG_QUIET) ?
                                   UCS_LOG_LEVEL_DEBUG :
                                   UCS_LOG_LEVEL_ERROR;
    ucs_for_each_bit(type, types) {
        status = ucs_gstream_query_type((ucs_gstream_type_t)type, &attr);
        if (status != UCS_OK) {
            ucp_st_lane_refuse(worker, UCP_ST_LANE_NONE,
                               "no streams of %s: %s", attr.name, attr.reason);
            return status;
        }
    }
    return status;
}

/* Take the user's UCP worker, or make a context and a worker */
static ucs_status_t ucp_st_worker_ucp_init(ucp_st_worker_h worker,
                                           const ucp_st_worker_params_t *params)
{
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_MULTI
    };
    ucs_status_t status;

    worker->ucp_features = UCP_ST_WORKER_PARAM(params, ucp_features,
                                               UCP_FEATURES, 0);
    if (params->field_mask & UCP_ST_WORKER_PARAM_FIELD_UCP_WORKER) {
        worker->ucp_worker = params->ucp_worker;
        return (params->ucp_worker == NULL) ? UCS_ERR_INVALID_PARAM : UCS_OK;
    }
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

static void ucp_st_worker_ucp_cleanup(ucp_st_worker_h worker)
{
    if (worker->own_context != NULL) {
        ucp_worker_destroy(worker->ucp_worker);
        ucp_cleanup(worker->own_context);
    }
}

/* Stop the first `count` components */
static void ucp_st_worker_stop(ucp_st_worker_h worker, unsigned count)
{
    while (count > 0) {
        ucp_st_components[--count]->worker.stop(worker);
    }
}

static void ucp_st_worker_close(ucp_st_worker_h worker, unsigned count)
{
    while (count > 0) {
        ucp_st_components[--count]->worker.close(worker);
    }
}

/* All or none of the components */
static ucs_status_t ucp_st_worker_start(ucp_st_worker_h worker)
{
    ucs_status_t status;
    unsigned opened;

    for (opened = 0; opened < UCP_ST_NUM_COMPONENTS; ++opened) {
        status = ucp_st_components[opened]->worker.open(worker);
        if (status != UCS_OK) {
            ucp_st_worker_stop(worker, opened);
            ucp_st_worker_close(worker, opened);
            return status;
        }
    }
    return UCS_OK;
}

/* A worker that has nothing but its memory, lists and settings */
static ucs_status_t ucp_st_worker_alloc(ucp_st_worker_h *worker_p)
{
    const ucp_st_component_t *component;
    ucp_st_worker_h worker;
    ucs_status_t status;

    worker = ucp_st_object_alloc(UCP_ST_OBJECT_WORKER, sizeof(*worker),
                                 offsetof(struct ucp_st_worker, priv));
    if (worker == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_st_config_read(&worker->config);
    if (status != UCS_OK) {
        free(worker);
        return status;
    }
    ucs_list_head_init(&worker->peers);
    ucs_list_head_init(&worker->ops);
    ucs_list_head_init(&worker->on_stream);
    ucs_list_head_init(&worker->deferred);
    ucs_list_head_init(&worker->queues);
    kh_init_inplace(ucp_st_peers, &worker->peer_table);
    kh_init_inplace(ucp_st_ops, &worker->op_table);
    (void)pthread_mutex_init(&worker->lock, NULL);
    (void)pthread_mutex_init(&worker->connect_lock, NULL);
    ucp_st_for_each_component(component) {
        component->worker.init(worker);
    }
    *worker_p = worker;
    return UCS_OK;
}

static void ucp_st_worker_free(ucp_st_worker_h worker)
{
    const ucp_st_component_t *component;

    ucp_st_for_each_component(component) {
        component->worker.cleanup(worker);
    }
    (void)pthread_mutex_destroy(&worker->connect_lock);
    (void)pthread_mutex_destroy(&worker->lock);
    kh_destroy_inplace(ucp_st_ops, &worker->op_table);
    kh_destroy_inplace(ucp_st_peers, &worker->peer_table);
    ucp_st_config_release(&worker->config);
    free(worker);
}

/* Tells `attr`, if it is given, of the lanes that cannot be opened */
static ucs_status_t ucp_st_worker_open(const ucp_st_worker_params_t *params,
                                       ucp_st_lanes_attr_t *attr,
                                       ucp_st_worker_h *worker_p)
{
    ucp_st_worker_h worker;
    ucs_status_t status;
    const char *name;
    unsigned type;

    status = ucp_st_fork_enter();
    if (status != UCS_OK) {
        return status;
    }
    status = ucs_trace_open();
    if (status != UCS_OK) {
        goto err_fork;
    }
    status = ucp_st_worker_alloc(&worker);
    if (status != UCS_OK) {
        goto err_fork;
    }
    worker->lanes_attr = attr;
    name = UCP_ST_WORKER_PARAM(params, name, NAME, "");
    snprintf(worker->name, sizeof(worker->name), "%s", name ? name : "");
    if (getrandom(&worker->uuid, sizeof(worker->uuid), 0) !=
        sizeof(worker->uuid)) {
        ucs_error("getrandom() failed: %m");
        status = UCS_ERR_IO_ERROR;
        goto err_free;
    }
    ucp_st_process_get_place(&worker->place);
    status = ucp_st_lanes_check_names(worker);
    if (status != UCS_OK) {
        goto err_free;
    }
    status = ucp_st_worker_set_types(worker, params);
    if (status != UCS_OK) {
        goto err_free;
    }
    status = ucp_st_worker_ucp_init(worker, params);
    if (status != UCS_OK) {
        goto err_free;
    }
    status = ucp_st_net_open(worker);
    if (status != UCS_OK) {
        goto err_ucp;
    }
    status = ucp_st_lanes_open(worker);
    if (status != UCS_OK) {
        goto err_ucp;
    }
    status = ucp_st_worker_start(worker);
    if (status != UCS_OK) {
        goto err_lanes;
    }
    ucp_st_stats_add_worker(worker);
    ucs_for_each_bit(type, worker->stream_types) {
        ucp_st_lanes_prepare_type(worker, (ucs_gstream_type_t)type);
    }
    *worker_p = worker;
    return UCS_OK;

err_lanes:
    ucp_st_lanes_close(worker);
err_ucp:
    ucp_st_worker_ucp_cleanup(worker);
err_free:
    ucp_st_worker_free(worker);
err_fork:
    ucp_st_fork_leave();
    return status;
}

ucs_status_t ucp_st_worker_create(const ucp_st_worker_params_t *params,
                                  ucp_st_worker_h *worker_p)
{
    ucs_status_t status = ucp_st_check_call((params != NULL) &&
                                            (worker_p != NULL));

    if (status != UCS_OK) {
        return status;
    }
    return ucp_st_worker_open(params, NULL, worker_p);
}

ucs_status_t ucp_st_lanes_query(const ucp_st_worker_params_t *params,
                                ucp_st_lanes_attr_t *attr)
{
    ucp_st_lane_attr_t *lane;
    ucp_st_worker_h worker;
    ucs_status_t status;
    unsigned id, i;

    status = ucp_st_check_call((params != NULL) && (attr != NULL));
    if (status != UCS_OK) {
        return status;
    }
    memset(attr, 0, sizeof(*attr));
    for (id = UCP_ST_LANE_NONE + 1; id < UCP_ST_LANE_LAST; ++id) {
        lane       = &attr->lanes[attr->count++];
        lane->lane = (ucp_st_lane_t)id;
        snprintf(lane->name, sizeof(lane->name), "%s",
                 ucp_st_lane_table[id]->name);
    }
    status = ucp_st_worker_open(params, attr, &worker);
    if (status != UCS_OK) {
        ucp_st_lanes_attr_set(attr, UCP_ST_LANE_NONE,
                              ucs_status_string(status));
        return status;
    }
    for (i = 0; i < worker->num_lanes; ++i) {
        id = worker->lanes[i]->id;
        attr->lanes[id - UCP_ST_LANE_NONE - 1].is_open = 1;
    }
    return ucp_st_worker_destroy(worker);
}

/* Tell whether components and freed operations still wait for the NIC, UCP, or
 * peers. The lock is held. */
static ucp_st_drain_t ucp_st_worker_get_drain(ucp_st_worker_h worker)
{
    ucp_st_drain_t drain = (ucs_list_is_empty(&worker->on_stream) &&
                            ucs_list_is_empty(&worker->deferred)) ?
                           UCP_ST_DRAIN_DONE : UCP_ST_DRAIN_ANSWERS;
    const ucp_st_component_t *component;

    ucp_st_for_each_component(component) {
        drain = ucs_max(drain, component->worker.drain(worker));
    }
    return drain;
}

/* Give peers a bounded time to answer. One that does not is slow or gone: it
 * finds the BYE when it looks, and what is still held for it is freed when
 * the device is closed. */
static void ucp_st_worker_drain(ucp_st_worker_h worker)
{
    double start    = ucp_st_worker_now();
    unsigned rounds = 0;
    unsigned idle   = 0;
    ucp_st_drain_t drain;
    unsigned progressed;
    int is_late;
    double time;

    worker->send_end = start + UCP_ST_WORKER_SEND_TIME;
    do {
        progressed = ucp_st_progress(worker);
        ucp_st_worker_lock(worker);
        ucp_st_lanes_progress_all(worker);
        ucp_st_op_reap_freed(worker);
        /* After the calls that may find a peer gone, so that it is told */
        (void)ucp_st_watch_ask(worker,
                               (++rounds % UCP_ST_WORKER_ASK_ROUNDS) == 0);
        drain = ucp_st_worker_get_drain(worker);
        ucp_st_worker_unlock(worker);
        ucp_st_progress_pause(&idle, progressed);
        time    = ucp_st_worker_now() - start;
        is_late = (time >= UCP_ST_WORKER_ANSWER_TIME) &&
                  (rounds >= UCP_ST_WORKER_ANSWER_ROUNDS);
    } while (((drain == UCP_ST_DRAIN_SENDS) &&
              (time < UCP_ST_WORKER_SEND_TIME)) ||
             ((drain == UCP_ST_DRAIN_ANSWERS) &&
              (!is_late || ucp_st_leave_is_worth_waiting(worker, time))));
}

ucs_status_t ucp_st_worker_destroy(ucp_st_worker_h worker)
{
    const ucp_st_component_t *component;
    ucs_status_t status;
    int is_used;

    status = ucp_st_check_call(worker != NULL);
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(worker);
    is_used = !ucs_list_is_empty(&worker->queues) ||
              !ucs_list_is_empty(&worker->ops);
    ucp_st_for_each_component(component) {
        is_used |= component->worker.is_used(worker);
    }
    ucp_st_worker_unlock(worker);
    if (is_used) {
        return UCS_ERR_BUSY;
    }

    ucp_st_for_each_component(component) {
        component->worker.leave(worker);
    }
    ucp_st_leave_say_bye(worker);
    ucp_st_worker_drain(worker);
    ucp_st_stats_remove_worker(worker);
    ucp_st_worker_stop(worker, UCP_ST_NUM_COMPONENTS);
    ucp_st_worker_lock(worker);
    worker->is_ending = 1;
    ucp_st_lanes_cancel(worker);
    ucp_st_op_drop_all(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_peers_cleanup(worker);
    ucp_st_worker_close(worker, UCP_ST_NUM_COMPONENTS);
    ucp_st_lanes_close(worker);
    ucp_st_worker_ucp_cleanup(worker);
    ucp_st_worker_free(worker);
    ucp_st_fork_leave();
    (void)ucs_trace_flush(); /* logged; the exit tries again */
    return UCS_OK;
}
