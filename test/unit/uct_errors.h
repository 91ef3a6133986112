/* SPDX-License-Identifier: BSD-3-Clause */
/* uct_errors.h - what UCX logs as an error, for tests. One thread. */
#ifndef UCT_ERRORS_H_
#define UCT_ERRORS_H_

/** Count what is logged as an error from now on, and show nothing. */
void uct_errors_begin(void);

/** End that; how many. */
unsigned uct_errors_end(void);

/** The last one since it began; empty if there was none. */
const char *uct_errors_last(void);

#endif
