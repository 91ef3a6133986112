/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_exchange_init.c - makes exchanges of the application's requests.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "binding/mpix_error.h"
#include "request/mpix_joint.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>


/* The value of the info's key: 0 if there is none. */
static int mpix_exchange_init_coupled(const char *func, MPI_Info info,
                                      int *is_coupled)
{
    char value[8] = "";
    int flag      = 0;

    *is_coupled = 0;
    if (info == MPI_INFO_NULL) {
        return MPI_SUCCESS;
    }

    PMPI_Info_get(info, "mpix_coupled", sizeof(value) - 1, value, &flag);
    if (!flag || !strcmp(value, "false")) {
        return MPI_SUCCESS;
    }
    if (strcmp(value, "true")) {
        return mpix_fail(func, MPI_ERR_INFO_VALUE,
                         "mpix_coupled is \"%s\", not \"true\" or \"false\"",
                         value);
    }
    *is_coupled = 1;
    return MPI_SUCCESS;
}

/* Passes over those that are MPI_REQUEST_NULL. */
static int mpix_exchange_init(const char *func, MPI_Comm comm, int count,
                              const MPI_Request *requests, int is_coupled,
                              MPI_Request *exchange)
{
    MPI_Request *members = malloc(ucs_max(count, 1) * sizeof(*members));
    int num_members      = 0;
    int rc, i;

    if (members == NULL) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for %d requests",
                         count);
    }
    for (i = 0; i < count; ++i) {
        if (requests[i] != MPI_REQUEST_NULL) {
            members[num_members++] = requests[i];
        }
    }
    rc = mpix_joint_create(func, comm, num_members, members, is_coupled,
                           exchange);
    free(members);
    return rc;
}

int MPIX_Exchange_init(int count, MPI_Request requests[], MPI_Info info,
                       MPI_Request *exchange)
{
    const char *func = "MPIX_Exchange_init";
    int is_coupled   = 0;
    MPI_Comm comm;
    int rc;

    rc = mpix_check_comm(func, MPI_COMM_WORLD);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    comm = mpix_request_comm(count, requests);
    comm = (comm == MPI_COMM_NULL) ? MPI_COMM_WORLD : comm;
    if ((count < 0) || ((count > 0) && (requests == NULL))) {
        rc = mpix_fail(func, (count < 0) ? MPI_ERR_COUNT : MPI_ERR_REQUEST,
                       "invalid array of %d requests", count);
    } else if (exchange == NULL) {
        rc = mpix_fail(func, MPI_ERR_ARG, "the place for the exchange is NULL");
    } else {
        rc = mpix_exchange_init_coupled(func, info, &is_coupled);
    }
    if (rc == MPI_SUCCESS) {
        rc = mpix_exchange_init(func, comm, count, requests, is_coupled,
                                exchange);
    }
    return mpix_raise(comm, rc);
}
