/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_group.h - threads that host streams of MPI programs share.
 */
#ifndef MPIX_GROUP_H_
#define MPIX_GROUP_H_

#include "mpix_host_group.h"

#include <ucs_gstream_group.h>


/* The group of a handle of any value; NULL if it is none. Takes the lock. */
ucs_gstream_group_h mpix_group_get(MPIX_Host_group group);

/* Raise that a handle is no group; returns the code. */
int mpix_group_refuse(const char *func, const void *group);

#endif
