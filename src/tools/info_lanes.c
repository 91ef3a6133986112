/* SPDX-License-Identifier: BSD-3-Clause */
/* info_lanes.c - lanes and streams for ucx_st_info. */
#include "st_info.h"
#include "st_stream.h"

#include <ucp_st.h>
#include <ucs_gstream.h>

#include <stdio.h>


static void info_print(const char *what, const char *name, int is_there,
                       const char *reason)
{
    printf("# %s %s: %s%s\n", what, name, is_there ? "on" : "off: ", reason);
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
        found += (attr.lanes[i].is_open != 0);
    }
    return found;
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
        }
        found += (status == UCS_OK);
    }
    return found;
}
