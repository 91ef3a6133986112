/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ucp.c - UCP contexts of the library's own.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_ucp.h"
#include "st_config.h"

#include <stdlib.h>

static int ucp_st_ucp_is_set(const char *const *names)
{
    for (; *names != NULL; ++names) {
        if (getenv(*names) != NULL) {
            return 1;
        }
    }
    return 0;
}

int ucp_st_ucp_has_shm(void)
{
    static const char *const names[] = {"posix", "sysv", "xpmem", "mm", "sm",
                                        "shm", NULL};
    const char *tls                  = getenv("UCX_TLS");
    unsigned i;

    for (i = 0; names[i] != NULL; ++i) {
        if (ucp_st_config_list_allows(tls, names[i])) {
            return 1;
        }
    }
    return 0;
}

/* Transports of shared memory do not look after peers unless told to, and are
 * then of no use where errors are to be handled */
static ucs_status_t ucp_st_ucp_config_shm(ucp_config_t *config)
{
    static const char *const names[] = {"UCX_MM_ERROR_HANDLING",
                                        "UCX_POSIX_ERROR_HANDLING",
                                        "UCX_SYSV_ERROR_HANDLING",
                                        "UCX_XPMEM_ERROR_HANDLING", NULL};

    if (!ucp_st_ucp_has_shm() || ucp_st_ucp_is_set(names)) {
        return UCS_OK;
    }
    return ucp_config_modify(config, "MM_ERROR_HANDLING", "y");
}

/* UCX 1.13 crashes if it looks after its endpoints just when it has read what a
 * process in shared memory said that is dead; does not look after those that
 * were never answered; and fills the queues of who does not read. The library
 * asks by itself. */
static ucs_status_t ucp_st_ucp_config_keepalive(ucp_config_t *config)
{
    if (getenv("UCX_KEEPALIVE_INTERVAL") != NULL) {
        return UCS_OK;
    }
    return ucp_config_modify(config, "KEEPALIVE_INTERVAL", "inf");
}

/* A worker that sleeps until somebody sends to it for the first time: UCP
 * leaves interfaces without endpoints to its own thread, whose word that
 * something has come does not reach who is asleep */
static ucs_status_t ucp_st_ucp_config_sleeper(ucp_config_t *config)
{
    return ucp_config_modify(config, "ADAPTIVE_PROGRESS", "n");
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
    status = ucp_st_ucp_config_keepalive(config);
    if (status == UCS_OK) {
        status = ucp_st_ucp_config_shm(config);
    }
    if (status == UCS_OK) {
        status = is_sleeper ? ucp_st_ucp_config_sleeper(config) : UCS_OK;
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
