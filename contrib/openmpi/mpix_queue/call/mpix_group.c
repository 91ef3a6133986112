/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_group.c - threads that host streams of MPI programs share.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_group.h"
#include "binding/mpix_error.h"
#include "binding/mpix_handle.h"
#include "mpix_stream.h"

/* Live groups. Protected by the lock. */
static UCS_LIST_HEAD(mpix_groups);


ucs_gstream_group_h mpix_group_get(MPIX_Host_group group)
{
    return mpix_handle_object(&mpix_groups, group);
}

int mpix_group_refuse(const char *func, const void *group)
{
    return mpix_handle_refuse(func, group, "group of MPIX_Host_group_create");
}

static ucs_status_t mpix_group_create(const ucs_gstream_group_params_t *params,
                                      MPIX_Host_group *group_p)
{
    ucs_gstream_group_h object;
    MPIX_Host_group group;
    ucs_status_t status;

    status = ucs_gstream_group_create(params, &object);
    if (status != UCS_OK) {
        return status;
    }

    group = mpix_handle_create(&mpix_groups, object);
    if (group == NULL) {
        (void)ucs_gstream_group_destroy(object);
        return UCS_ERR_NO_MEMORY;
    }

    *group_p = group;
    return UCS_OK;
}

int MPIX_Host_group_create(int threads, int count, const unsigned cpus[],
                           MPIX_Host_group *group)
{
    static const char func[] = "MPIX_Host_group_create";
    const ucs_gstream_group_params_t params = {
        .field_mask  = ((threads > 0) ?
                                UCS_GSTREAM_GROUP_PARAM_FIELD_NUM_THREADS :
                                0) |
                       ((count > 0) ? UCS_GSTREAM_GROUP_PARAM_FIELD_CPUS : 0),
        .num_threads = (unsigned)threads,
        .cpus        = {cpus, (size_t)count}
    };

    if ((threads < 0) || (count < 0)) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_ARG,
                                    "%d threads on %d processors: neither "
                                    "may be negative", threads, count));
    }
    if (group == NULL) {
        return mpix_stream_return(func, UCS_ERR_INVALID_PARAM);
    }
    return mpix_stream_return(func, mpix_group_create(&params, group));
}

int MPIX_Host_group_free(MPIX_Host_group *group)
{
    static const char func[] = "MPIX_Host_group_free";
    ucs_gstream_group_h object;
    ucs_status_t status;

    object = (group == NULL) ? NULL : mpix_group_get(*group);
    if (object == NULL) {
        return mpix_group_refuse(func, (group == NULL) ? NULL : *group);
    }

    status = ucs_gstream_group_destroy(object);
    if (status == UCS_OK) {
        mpix_handle_destroy(*group);
        *group = MPIX_HOST_GROUP_NULL;
    }
    return mpix_stream_return(func, status);
}

int MPIX_Host_priority_range(int *least, int *greatest)
{
    return mpix_stream_return("MPIX_Host_priority_range",
                              ucs_gstream_priority_range(least, greatest));
}
