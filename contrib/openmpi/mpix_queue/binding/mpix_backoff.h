/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_backoff.h - loops that wait for something which wakes nobody.
 */
#ifndef MPIX_BACKOFF_H_
#define MPIX_BACKOFF_H_

/* Wait a little because nothing happened, longer from call to call; 'spins' is
 * the caller's, 0 at first. */
void mpix_backoff(unsigned *spins);

/* Seconds since some time, for such loops. */
double mpix_now(void);

#endif
