/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_init.h - how the library begins and ends in a process.
 */
#ifndef MPIX_INIT_H_
#define MPIX_INIT_H_

#include <ucs/type/status.h>


/* Make the st worker if there is none. 'func' is named in messages. Returns an
 * MPI code. Takes the lock. */
int mpix_global_init(const char *func);

/* Choose a binding, if there is none, and be told of MPI_Finalize. A sentence
 * with the cause if there can be none. Collective over MPI_COMM_WORLD if
 * is_collective. Needs MPI; takes the lock. */
ucs_status_t mpix_global_bind(int is_collective, const char **cause_p);

/* In a child that was forked. */
void mpix_init_forked(void);

#endif
