/* SPDX-License-Identifier: BSD-3-Clause */
/* info_lanes.c - lanes and streams for ucx_st_info. */
#include "st_info.h"
#include "st_stream.h"

#include <ucp_st.h>
#include <ucs_gstream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static void info_print(const char *what, const char *name, int is_there,
                       const char *reason)
{
    printf("# %s %s: %s%s\n", what, name, is_there ? "on" : "off: ", reason);
}

/* Fills in what is known once there is a stream; 0 if there is none */
static int info_query(ucs_gstream_type_t type, ucs_gstream_type_attr_t *attr)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = type
    };
    ucs_gstream_h stream;
    ucs_status_t status;

    if (ucs_gstream_create(&params, &stream) != UCS_OK) {
        return 0;
    }
    status = ucs_gstream_query_type(type, attr);
    (void)ucs_gstream_destroy(stream);
    return status == UCS_OK;
}

/* How lane direct moves messages between buffers that devices of a runtime
 * reach */
static void info_print_tier(const ucs_gstream_type_attr_t *attr)
{
    const char *tier = getenv("UCX_ST_DIRECT_GPU_TIER");
    int has_kernels  = !strcmp(attr->kernels, "loaded");
    int is_service   = (tier != NULL) && !strcmp(tier, "service");

    printf("#   between buffers that %s's devices reach: by %s%s\n", attr->name,
           is_service  ? "threads, as UCX_ST_DIRECT_GPU_TIER=service" :
           has_kernels ? "kernels" :
                         "threads, as no kernels of the library: ",
           (is_service || has_kernels) ? "" : attr->kernels);
}

static void info_tiers(void)
{
    ucs_gstream_type_attr_t attr;
    unsigned type;

    for (type = 0; type < UCS_GSTREAM_TYPE_LAST; ++type) {
        if ((type != UCS_GSTREAM_TYPE_HOST) &&
            (ucs_gstream_query_type((ucs_gstream_type_t)type, &attr) ==
             UCS_OK) &&
            info_query((ucs_gstream_type_t)type, &attr)) {
            info_print_tier(&attr);
        }
    }
}

unsigned info_lanes(void)
{
    const ucp_st_worker_params_t params = {.field_mask = 0};
    ucp_st_lanes_attr_t attr            = {.count = 0};
    unsigned found                      = 0;
    unsigned i;

    (void)ucp_st_lanes_query(&params, &attr); /* each lane says why */
    for (i = 0; i < attr.count; ++i) {
        info_print("Lane", attr.lanes[i].name, attr.lanes[i].is_open,
                   attr.lanes[i].reason);
        if (attr.lanes[i].is_open && !strcmp(attr.lanes[i].name, "direct")) {
            info_tiers();
        }
        found += (attr.lanes[i].is_open != 0);
    }
    return found;
}

/* The worker's lanes in its order, but lane trig last unless a card carries it
 * out; then the lanes that are off. */
static void info_print_line(const ucp_st_worker_attr_t *attr)
{
    static const char *const names[UCP_ST_LANE_LAST] = {
        [UCP_ST_LANE_DIRECT] = "direct",
        [UCP_ST_LANE_TRIG]   = "trig",
        [UCP_ST_LANE_HOST]   = "host"
    };
    int is_card      = !strcmp(attr->provider, "cxi");
    unsigned is_open = 0;
    unsigned count   = 0;
    unsigned lane, i;

    printf("lanes:");
    for (i = 0; i < attr->num_lanes; ++i) {
        lane     = attr->lanes[i];
        is_open |= 1u << lane;
        if ((lane != UCP_ST_LANE_TRIG) || is_card) {
            printf("%s %s", (count++ > 0) ? "," : "", names[lane]);
        }
    }
    if ((is_open & (1u << UCP_ST_LANE_TRIG)) && !is_card) {
        printf("%s trig on ", (count > 0) ? ";" : "");
        if (!strcmp(attr->provider, "cxiemu")) {
            printf("an emulated card");
        } else {
            printf("the provider %s", attr->provider);
        }
    }
    for (count = 0, lane = UCP_ST_LANE_NONE + 1; lane < UCP_ST_LANE_LAST;
         ++lane) {
        if (!(is_open & (1u << lane))) {
            printf("%s %s", (count++ > 0) ? "," : "; off:", names[lane]);
        }
    }
    printf("%s\n", (count > 0) ? " (ucx_st_info -l says why)" : "");
}

unsigned info_lanes_line(void)
{
    const ucp_st_worker_params_t params = {.field_mask = 0};
    unsigned found                      = 0;
    ucp_st_worker_h worker;
    ucp_st_worker_attr_t attr;

    if (ucp_st_worker_create(&params, &worker) != UCS_OK) {
        printf("lanes: none (ucx_st_info -l says why)\n");
        return 0;
    }
    if (ucp_st_worker_query(worker, &attr) == UCS_OK) {
        info_print_line(&attr);
        found = attr.num_lanes;
    }
    (void)ucp_st_worker_destroy(worker);
    return found;
}

/* What is known once there is a stream */
static void info_kernels(ucs_gstream_type_t type)
{
    ucs_gstream_type_attr_t attr;

    if (!info_query(type, &attr)) {
        return;
    }
    printf("#   kernels of the library: %s\n", attr.kernels);
    if (attr.waits[0] != '\0') {
        printf("#   waits for several words: %s\n", attr.waits);
    }
}

unsigned info_streams(void)
{
    unsigned found = 0;
    ucs_gstream_type_attr_t attr;
    ucs_status_t status;
    unsigned type;
    char name[96];

    for (type = 0; type < UCS_GSTREAM_TYPE_LAST; ++type) {
        status = ucs_gstream_query_type((ucs_gstream_type_t)type, &attr);
        info_print("Streams:", attr.name, status == UCS_OK, attr.reason);
        if (attr.num_devices > 0) {
            st_stream_device((ucs_gstream_type_t)type, name, sizeof(name));
            printf("#   library: %s\n#   version: %d\n#   devices: %d\n"
                   "#   first device: %s\n#   stores and waits: %s\n",
                   attr.library, attr.version, attr.num_devices, name,
                   attr.has_batches ? "several a call" : "one a call");
            info_kernels((ucs_gstream_type_t)type);
        }
        found += (status == UCS_OK);
    }
    return found;
}
