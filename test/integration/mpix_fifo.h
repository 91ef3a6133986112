/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_fifo.h - what the sources of the program mpix_fifo share.
 */
#ifndef MPIX_FIFO_H_
#define MPIX_FIFO_H_

#include <mpi.h>


/* A duplicate of MPI_COMM_WORLD with this value of mpix_queue_only, or, if it
 * is NULL, without the key. */
MPI_Comm make_only(const char *value);

/* The case random. */
void test_random(void);

/* Of mpix_fifo_calls.c. */
void test_calls(void);
void test_many_tags(void);
void test_queue_threads(void);
void test_some_say_so(void);

#endif
