/* SPDX-License-Identifier: BSD-3-Clause */
/* st_number.h - numbers of a command line. */
#ifndef ST_NUMBER_H_
#define ST_NUMBER_H_

#include <stddef.h>

/* Reads a decimal number from 'min' to 'max'; k, m, g behind it multiply it by
 * powers of 1024. Returns 0, or -1 with '*number_p' as it was. */
int st_number_parse(const char *text, size_t min, size_t max, size_t *number_p);

/* The same of the argument that getopt_long() has found for an option; prints
 * what is wrong with it. */
int st_number_option(const char *name, size_t min, size_t max,
                     size_t *number_p);

#endif
