/* SPDX-License-Identifier: BSD-3-Clause */
/* uct_errors.h - what UCX logs as an error, for tests. One thread. */
#ifndef UCT_ERRORS_H_
#define UCT_ERRORS_H_

#include <ucs/config/types.h>

/** Count what is logged as an error from now on, and show nothing. */
void uct_errors_begin(void);

/** The same for what is logged at this level and has this text in it. */
void uct_errors_begin_text(ucs_log_level_t level, const char *text);

/** How many so far. */
unsigned uct_errors_count(void);

/** End that; how many. */
unsigned uct_errors_end(void);

/** The last one since it began; empty if there was none. */
const char *uct_errors_last(void);

#endif
