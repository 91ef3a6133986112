/* SPDX-License-Identifier: BSD-3-Clause */
/* storm_left.h - what killed processes have left in the file system. */
#ifndef STORM_LEFT_H_
#define STORM_LEFT_H_

/** Look in /dev/shm and /tmp for files whose names begin with one of `parts`,
 *  which NULL ends; print them. Non-zero if there are some. */
int storm_left_behind(const char *const *parts);

#endif
