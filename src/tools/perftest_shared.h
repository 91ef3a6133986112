/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_shared.h - one by one, the options that both sides share. */
#ifndef PERFTEST_SHARED_H_
#define PERFTEST_SHARED_H_

#include "perftest_options.h"

/* Sets all shared options to their defaults. */
void perftest_shared_init(perftest_options_t *options);

/* Sets one from the command line, and marks it as given. */
perftest_ret_t perftest_shared_parse(perftest_options_t *options,
                                     const char *name, const char *text);

#endif
