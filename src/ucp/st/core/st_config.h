/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_config.h - settings of ucp_st, and what UCX's own settings mean for it.
 */
#ifndef UCP_ST_CONFIG_H_
#define UCP_ST_CONFIG_H_

#include <ucp_st.h>

#include <ucs/type/status.h>
#include <ucs/config/types.h>

/** Settings; see the table in st_config.c for units and defaults. */
typedef struct ucp_st_config {
    ucs_config_names_array_t lanes;
    double                   ping_interval;
    size_t                   eager_max;
    double                   err_timeout;
    unsigned                 trig_devices;
    size_t                   chunk_min;
    size_t                   chunk_max;
    size_t                   direct_size;
    size_t                   direct_piece;
    size_t                   direct_nt_min;
    size_t                   direct_map_min;
    size_t                   direct_attach_min;
    unsigned                 direct_gpu_tier; /* ucp_st_direct_tier_t */
    size_t                   host_gpu_min;
    int                      stats;
    double                   warn_time;
} ucp_st_config_t;

/**
 * Read the settings from the environment. Release with ucp_st_config_release().
 */
ucs_status_t ucp_st_config_read(ucp_st_config_t *config);

/** Release what ucp_st_config_read() allocated. */
void ucp_st_config_release(ucp_st_config_t *config);

/**
 * Tell whether a comma-separated list in UCX's syntax ("all", "a,b", "^a,b")
 * allows a name. NULL allows everything.
 */
int ucp_st_config_list_allows(const char *list, const char *name);

#endif
