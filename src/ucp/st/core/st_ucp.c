/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ucp.c - UCP contexts of the library's own.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_ucp.h"
#include "core/st_config.h"
#include "core/st_log.h"
#include "core/st_worker.h"

#include <uct/api/uct.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What ucp_context_query() says of types of memory is another thing: it names
 * those that one of the context's parts tells apart, if none copies them, too
 */
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
    /* They take memory for receives 512 buffers at a time, 4.3 MB of a
     * container's /dev/shm; few are in use at once, and more come as needed */
    if (status == UCS_OK) {
        status = ucp_st_ucp_set_shm(config, "RX_BUFS_GROW", "64");
    }
    /* UCP leaves interfaces without endpoints to its own thread, whose signal
     * that something has come does not wake a thread that sleeps */
    if ((status == UCS_OK) && is_sleeper) {
        status = ucp_config_modify(config, "ADAPTIVE_PROGRESS", "n");
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

void ucp_st_ucp_ep_close(ucp_worker_h ucp_worker, ucp_ep_h ep, unsigned flags,
                         double end)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = flags
    };
    ucs_status_t status       = UCS_INPROGRESS;
    ucs_status_ptr_t request;

    if (ep == NULL) {
        return;
    }
    request = ucp_ep_close_nbx(ep, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        return;
    }
    /* A forced close waits for nothing remote, and takes a few calls */
    while ((status == UCS_INPROGRESS) && (ucp_st_worker_now() < end)) {
        ucp_worker_progress(ucp_worker);
        status = ucp_request_check_status(request);
    }
    if (status == UCS_INPROGRESS) {
        ucs_warn("UCP has not closed an endpoint in time: it stays open");
    }
    ucp_request_free(request);
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
