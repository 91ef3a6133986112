/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_info.c - which binding is used, what waits, and how programs that load
 * this library late get a binding.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "binding/mpix_binding.h"
#include "binding/mpix_comm.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "mpix_init.h"

#include <ucs/sys/math.h>

#include <stdio.h>
#include <string.h>

_Static_assert(UCP_ST_LANE_LAST <= MPIX_QUEUE_MAX_LANES,
               "there is room for all lanes");

static const char *const mpix_info_lanes[UCP_ST_LANE_LAST] = {
    [UCP_ST_LANE_TRIG]   = "trig",
    [UCP_ST_LANE_DIRECT] = "direct",
    [UCP_ST_LANE_HOST]   = "host"
};


static int mpix_info_attach(const char *func, MPI_Comm comm)
{
    const char *cause;

    if ((mpix_binding() == NULL) && (comm != MPI_COMM_WORLD)) {
        return mpix_fail(func, MPI_ERR_COMM,
                         "MPI_COMM_WORLD has to be attached first");
    }

    if (mpix_global_bind(1, &cause) != UCS_OK) {
        return mpix_fail(func, MPI_ERR_UNSUPPORTED_OPERATION, "%s", cause);
    }
    return (mpix_binding_needs_ids() && mpix_comm_is_foreign(comm)) ?
                   mpix_comm_foreign_error(func) :
                   mpix_comm_agree(comm);
}

int MPIX_Queue_attach(MPI_Comm comm)
{
    static const char func[] = "MPIX_Queue_attach";
    int rc                   = mpix_check_comm(func, comm);

    return (rc == MPI_SUCCESS) ?
                   mpix_raise(comm, mpix_info_attach(func, comm)) :
                   rc;
}

static void mpix_info_fill_mpi(MPIX_Queue_info *info)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    PMPI_Query_thread(&info->thread_level);
    PMPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    snprintf(info->mpi_library, sizeof(info->mpi_library), "%.*s",
             (int)sizeof(info->mpi_library) - 1, version);
}

static void mpix_info_fill_worker(MPIX_Queue_info *info,
                                  const ucp_st_worker_attr_t *attr)
{
    unsigned i;

    info->num_lanes = attr->num_lanes;
    for (i = 0; i < attr->num_lanes; ++i) {
        snprintf(info->lanes[i], sizeof(info->lanes[i]), "%s",
                 mpix_info_lanes[attr->lanes[i]]);
    }
    snprintf(info->provider, sizeof(info->provider), "%s", attr->provider);
    snprintf(info->device, sizeof(info->device), "%s", attr->device);
    snprintf(info->tier_reason, sizeof(info->tier_reason), "%s",
             attr->tier_reason);
}

int MPIX_Queue_get_info(MPIX_Queue_info *info)
{
    static const char func[]  = "MPIX_Queue_get_info";
    ucp_st_worker_attr_t attr = {.tier_reason = ""};
    int rc;

    if (info == NULL) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_ARG, "NULL argument"));
    }

    memset(info, 0, sizeof(*info));
    rc = mpix_check_comm(func, MPI_COMM_WORLD);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    mpix_lock();
    if (mpix_global.state == MPIX_STATE_READY) {
        ucp_st_worker_query(mpix_global.st_worker, &attr);
    }
    mpix_unlock();

    mpix_info_fill_mpi(info);
    mpix_info_fill_worker(info, &attr);
    snprintf(info->reason, sizeof(info->reason), "%s", mpix_binding_reason());
    if (mpix_binding() != NULL) {
        snprintf(info->binding, sizeof(info->binding), "%s",
                 mpix_binding()->name);
    }
    info->num_waits = ucp_st_waits_get(info->waits_for,
                                       sizeof(info->waits_for));
    info->waits_for[strcspn(info->waits_for, "\n")] = '\0';
    return MPI_SUCCESS;
}
