/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_assert.c - what a communicator asserts of messages that are used once.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_assert.h"
#include "mpix_fifo.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"

#include <string.h>

#define MPIX_ASSERT_SOURCE "mpi_assert_no_any_source"
#define MPIX_ASSERT_TAG    "mpi_assert_no_any_tag"
#define MPIX_ASSERT_LENGTH "mpi_assert_exact_length"

/* Bits of a communicator's asserts */
enum {
    MPIX_ASSERT_NO_ANY_SOURCE = 1u << 0,
    MPIX_ASSERT_NO_ANY_TAG    = 1u << 1,
    MPIX_ASSERT_EXACT_LENGTH  = 1u << 2
};

static const struct {
    const char *key;
    unsigned   bit;
} mpix_assert_keys[] = {
    {MPIX_ASSERT_SOURCE, MPIX_ASSERT_NO_ANY_SOURCE},
    {MPIX_ASSERT_TAG, MPIX_ASSERT_NO_ANY_TAG},
    {MPIX_ASSERT_LENGTH, MPIX_ASSERT_EXACT_LENGTH}
};


int mpix_assert_keep(const char *func, MPI_Comm handle, MPI_Info info)
{
    unsigned named = 0, set = 0, i;
    mpix_comm_t *comm;
    char value[8];
    int flag;

    for (i = 0; (info != MPI_INFO_NULL) && (i < 3); ++i) {
        flag = 0;
        PMPI_Info_get(info, mpix_assert_keys[i].key, sizeof(value) - 1, value,
                      &flag);
        if (flag) {
            named |= mpix_assert_keys[i].bit;
            set   |= strcmp(value, "true") ? 0 : mpix_assert_keys[i].bit;
        }
    }
    if (named == 0) {
        return MPI_SUCCESS;
    }

    if (mpix_comm_get(handle, &comm) != MPI_SUCCESS) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for a communicator");
    }
    mpix_lock();
    comm->asserts = (comm->asserts & ~named) | set;
    mpix_unlock();
    mpix_comm_drop(comm);
    return MPI_SUCCESS;
}

/* Why a receive has no wildcard, if it is for this assertion */
static const char *mpix_assert_why(const mpix_comm_t *comm, unsigned bit,
                                   const char *key)
{
    return (comm->asserts & bit) ? key :
           mpix_only_is(comm)    ? "mpix_queue_only" : NULL;
}

int mpix_assert_check(const mpix_msg_args_t *args, const mpix_comm_t *comm)
{
    const char *tag_why    = mpix_assert_why(comm, MPIX_ASSERT_NO_ANY_TAG,
                                             MPIX_ASSERT_TAG);
    const char *source_why = mpix_assert_why(comm, MPIX_ASSERT_NO_ANY_SOURCE,
                                             MPIX_ASSERT_SOURCE);

    if (!args->is_recv || (args->rank == MPI_PROC_NULL)) {
        return MPI_SUCCESS;
    } else if ((args->tag == MPI_ANY_TAG) && (tag_why != NULL)) {
        return mpix_fail(args->func, MPI_ERR_TAG, "MPI_ANY_TAG: the info of "
                         "the communicator says that receives name their tag "
                         "(%s)", tag_why);
    } else if ((args->rank == MPI_ANY_SOURCE) && (source_why != NULL)) {
        return mpix_fail(args->func, MPI_ERR_RANK, "MPI_ANY_SOURCE: the info "
                         "of the communicator says that receives name their "
                         "source (%s)", source_why);
    }
    return MPI_SUCCESS;
}

int mpix_assert_is_exact(const mpix_msg_t *msg, uint64_t length)
{
    return !msg->is_recv || msg->is_null || (length == msg->room) ||
           !(msg->comm->asserts & MPIX_ASSERT_EXACT_LENGTH);
}
