/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_assert.h - what the info of a communicator asserts of the messages that
 * this process receives there (MPI 4): mpi_assert_no_any_source,
 * mpi_assert_no_any_tag and mpi_assert_exact_length.
 *
 * mpi_assert_allow_overtaking is not read: messages stay in order all the same.
 */
#ifndef MPIX_ASSERT_H_
#define MPIX_ASSERT_H_

#include "mpix_batch.h"


/* Keep what info asserts; what it does not name stays as it is. Local, as the
 * assertions are. Returns an MPI code that is not raised. Takes the lock. */
int mpix_assert_keep(const char *func, MPI_Comm handle, MPI_Info info);

/* Refuse a receive with a wildcard where none is to be. Returns an MPI code
 * that is not raised. */
int mpix_assert_check(const mpix_msg_args_t *args, const mpix_comm_t *comm);

/* Whether a message that is for queues only may have this length: a receive
 * that asserts its own has no other. */
int mpix_assert_is_exact(const mpix_msg_t *msg, uint64_t length);

#endif
