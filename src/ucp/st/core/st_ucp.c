/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ucp.c - contexts, endpoints and handlers of UCP.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_ucp.h"
#include "core/st_config.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_worker.h"

#include <ucs_backoff.h>

#include <ucs/sys/math.h>
#include <uct/api/uct.h>

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* UCP has room for so many kinds of active messages at least */
#define UCP_ST_UCP_MIN_IDS 64u

/* Of the transport tcp: before UCX 1.17 a program names it without a prefix */
#if UCP_API_VERSION >= UCP_VERSION(1, 17)
#define UCP_ST_UCP_CONN_NB "TCP_CONN_NB"
#else
#define UCP_ST_UCP_CONN_NB "CONN_NB"
#endif

/* UCX_TLS leaves one of the transports. NULL ends the names. */
static int ucp_st_ucp_tls_allows(const char *const *names)
{
    const char *tls = getenv("UCX_TLS");

    while ((*names != NULL) && !ucp_st_config_list_allows(tls, *names)) {
        ++names;
    }
    return *names != NULL;
}

int ucp_st_ucp_has_shm(void)
{
    static const char *const names[] = {"posix", "sysv", "xpmem", "mm", "sm",
                                        "shm", NULL};

    return ucp_st_ucp_tls_allows(names);
}

/* UCX has loaded a component, and it has found its devices */
static int ucp_st_ucp_has_component(const char *name)
{
    int is_there = 0;
    uct_component_h *components;
    uct_component_attr_t attr;
    unsigned count, i;

    if (uct_query_components(&components, &count) != UCS_OK) {
        return 0;
    }
    for (i = 0; (i < count) && !is_there; ++i) {
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        if ((uct_component_query(components[i], &attr) != UCS_OK) ||
            strcmp(attr.name, name)) {
            continue;
        }
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        is_there        = (uct_component_query(components[i], &attr) ==
                           UCS_OK) && (attr.md_resource_count > 0);
    }
    uct_release_component_list(components);
    return is_there;
}

/* ucp_context_query() does not tell: it names all types of memory that UCX
 * tells apart, also those that nothing copies */
int ucp_st_ucp_copies(ucs_gstream_type_t type)
{
    static const char *const hip_names[]  = {"rocm_copy", "rocm_cpy", "rocm",
                                             NULL};
    static const char *const cuda_names[] = {"cuda_copy", "cuda_cpy", "cuda",
                                             NULL};
    const char *const *names              = (type == UCS_GSTREAM_TYPE_HIP) ?
                                                    hip_names :
                                                    cuda_names;

    return ucp_st_ucp_tls_allows(names) && ucp_st_ucp_has_component(names[1]);
}

/* Set what all transports of shared memory have, if they are there and the user
 * has not set it for one of them */
static ucs_status_t ucp_st_ucp_set_shm(ucp_config_t *config, const char *name,
                                       const char *value)
{
    static const char *const prefixes[] = {"MM", "POSIX", "SYSV", "XPMEM"};
    char text[64];
    unsigned i;

    if (!ucp_st_ucp_has_shm()) {
        return UCS_OK;
    }
    for (i = 0; i < ucs_static_array_size(prefixes); ++i) {
        snprintf(text, sizeof(text), "UCX_%s_%s", prefixes[i], name);
        if (getenv(text) != NULL) {
            return UCS_OK;
        }
    }
    snprintf(text, sizeof(text), "MM_%s", name);
    return ucp_config_modify(config, text, value);
}

/* Whether UCX opens its transport tcp; it warns of a setting of one that it
 * does not open */
static int ucp_st_ucp_has_tcp(void)
{
    static const char *const names[] = {"tcp", NULL};
    const char *devices              = getenv("UCX_NET_DEVICES");
    int is_there                     = 0;
    char *copy, *name, *rest;

    if (!ucp_st_ucp_tls_allows(names)) {
        return 0;
    }
    if ((devices == NULL) || !strcmp(devices, "all")) {
        return 1;
    }
    copy = strdup(devices);
    name = (copy == NULL) ? NULL : strtok_r(copy, ",", &rest);
    while (!is_there && (name != NULL)) {
        is_there = (if_nametoindex(name) != 0);
        name     = strtok_r(NULL, ",", &rest);
    }
    free(copy);
    return is_there;
}

ucs_status_t ucp_st_ucp_context_create(uint64_t features, int is_sleeper,
                                       const char *name,
                                       ucp_context_h *context_p)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME,
        .features   = features,
        .name       = name
    };
    ucp_config_t *config;
    ucs_status_t status;

    status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }
    /* UCX 1.13 crashes if its keepalive is due just when it has read a message
     * of a dead process in shared memory; it skips endpoints that were never
     * answered; and it fills the queues of processes that do not read. The
     * library asks by itself. */
    if (getenv("UCX_KEEPALIVE_INTERVAL") == NULL) {
        status = ucp_config_modify(config, "KEEPALIVE_INTERVAL", "inf");
    }
    /* By default transports of shared memory do not notice dead peers, and UCP
     * does not use them where errors are to be handled */
    if (status == UCS_OK) {
        status = ucp_st_ucp_set_shm(config, "ERROR_HANDLING", "y");
    }
    /* Such transports take memory for receives 512 buffers at a time, 4.3 MB of
     * a container's /dev/shm; few are in use at once, and more come as
     * needed */
    if (status == UCS_OK) {
        status = ucp_st_ucp_set_shm(config, "RX_BUFS_GROW", "64");
    }
    /* UCP leaves interfaces without endpoints to its own thread, whose signal
     * that something has come does not wake a thread that sleeps */
    if ((status == UCS_OK) && is_sleeper) {
        status = ucp_config_modify(config, "ADAPTIVE_PROGRESS", "n");
    }
    /* By default tcp waits in connect(). For a node that is gone that takes two
     * minutes, in which the thread would serve no peer */
    if ((status == UCS_OK) && is_sleeper &&
        (getenv("UCX_TCP_CONN_NB") == NULL) && ucp_st_ucp_has_tcp()) {
        status = ucp_config_modify(config, UCP_ST_UCP_CONN_NB, "y");
    }
    if (status == UCS_OK) {
        status = ucp_init(&params, config, context_p);
    }
    ucp_config_release(config);
    return status;
}

int ucp_st_ucp_is_local(ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_UNSUPPORTED:
    case UCS_ERR_MESSAGE_TRUNCATED:
    case UCS_ERR_EXCEEDS_LIMIT:
        return 1;
    default:
        return 0;
    }
}

ucs_status_t ucp_st_ucp_connect_status(ucs_status_t status)
{
    return (ucp_st_ucp_is_local(status) ||
            (status == UCS_ERR_UNREACHABLE)) ? status :
                                               UCS_ERR_CONNECTION_RESET;
}

/* Wait until `end` at most, and release the request */
static ucs_status_t ucp_st_ucp_wait(ucp_worker_h ucp_worker,
                                    ucs_status_ptr_t request, double end)
{
    unsigned rounds = 0;
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_RAW_STATUS(request);
    }
    status = ucp_request_check_status(request);
    while ((status == UCS_INPROGRESS) && (ucp_st_worker_now() < end)) {
        ucp_worker_progress(ucp_worker);
        ucs_backoff(&rounds);
        status = ucp_request_check_status(request);
    }
    ucp_request_free(request);
    return status;
}

void ucp_st_ucp_ep_flush(ucp_worker_h ucp_worker, ucp_ep_h ep, double end)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    (void)ucp_st_ucp_wait(ucp_worker, ucp_ep_flush_nbx(ep, &param), end);
}

void ucp_st_ucp_ep_close(ucp_worker_h ucp_worker, ucp_ep_h ep, unsigned flags,
                         double end)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = flags
    };

    if ((ep != NULL) &&
        (ucp_st_ucp_wait(ucp_worker, ucp_ep_close_nbx(ep, &param), end) ==
         UCS_INPROGRESS)) {
        ucs_warn("UCP has not closed an endpoint in time: it stays open");
    }
}

static void ucp_st_ucp_closed_cb(void *request, ucs_status_t status, void *arg)
{
    unsigned *count = arg;

    --*count;
    ucp_request_free(request);
}

void ucp_st_ucp_ep_close_later(ucp_ep_h ep, unsigned *count)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE,
        .cb.send      = ucp_st_ucp_closed_cb,
        .user_data    = count
    };

    *count += UCS_PTR_IS_PTR(ucp_ep_close_nbx(ep, &param));
}

ucs_status_t ucp_st_ucp_set_handler(ucp_worker_h ucp_worker, unsigned id,
                                    unsigned flags, ucp_am_recv_callback_t cb,
                                    void *arg)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id         = id,
        .flags      = UCP_AM_FLAG_WHOLE_MSG | flags,
        .cb         = cb,
        .arg        = arg
    };

    return ucp_worker_set_am_recv_handler(ucp_worker, &param);
}

/* UCP 1.13 calls what its memory holds where no handler was set, also behind
 * the largest number if there is room. There is no room if the largest number
 * is set first, and is not small. */
ucs_status_t ucp_st_ucp_drop_all(ucp_worker_h ucp_worker, unsigned count)
{
    ucs_status_t status = UCS_OK;

    count = ucs_max(count, UCP_ST_UCP_MIN_IDS);
    while ((count > 0) && (status == UCS_OK)) {
        status = ucp_st_ucp_set_handler(ucp_worker, --count, 0, NULL, NULL);
    }
    return status;
}

ucs_status_t ucp_st_ucp_ep_create(ucp_worker_h ucp_worker, const void *address,
                                  ucp_err_handler_cb_t cb, ucp_st_peer_t *peer,
                                  ucp_ep_h *ep_p)
{
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .address         = address,
        .err_mode        = UCP_ERR_HANDLING_MODE_NONE,
        .err_handler.cb  = cb,
        .err_handler.arg = peer
    };
    int is_dead;

    ucp_st_worker_lock(peer->worker);
    is_dead = ucp_st_process_is_dead(&peer->process);
    ucp_st_worker_unlock(peer->worker);
    if (is_dead) {
        /* UCX would log that it cannot connect, and aborts later from 1.14 on
         * where the peer in shared memory is dead */
        return UCS_ERR_CONNECTION_RESET;
    }
    if (!peer->is_self) {
        /* Some transports for messages to oneself cannot report errors */
        params.err_mode    = UCP_ERR_HANDLING_MODE_PEER;
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
    }
    return ucp_ep_create(ucp_worker, &params, ep_p);
}
