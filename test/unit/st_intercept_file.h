/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_intercept_file.h - calls by which libucp_st makes and finds memory and
 * pipes, refused on demand. As st_intercept.h has it, not together with
 * a sanitizer.
 */
#ifndef ST_INTERCEPT_FILE_H_
#define ST_INTERCEPT_FILE_H_

/** To be called first in main(): UCX puts functions of its own in front of
 *  mmap() unless the environment forbids it when the program begins, so that
 *  the program is begun once more. */
void st_intercept_file_init(char **argv);

/** Have call number `number` (from 0) from now on fail; a negative number ends
 *  that. */
void st_intercept_file_fail(int number);

/** The name of the function that has failed since then; NULL if none has. */
const char *st_intercept_file_failed(void);

#endif
