/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_intercept_file.h - calls by which libucp_st makes and finds memory and
 * pipes, refused on demand. As st_intercept.h has it, not together with
 * a sanitizer.
 */
#ifndef ST_INTERCEPT_FILE_H_
#define ST_INTERCEPT_FILE_H_

#include <stdint.h>

/** To be called first in main(): UCX puts functions of its own in front of
 *  mmap() unless the environment forbids it when the program begins, so that
 *  the program is begun once more. */
void st_intercept_file_init(char **argv);

/** Have call number `number` (from 0) from now on fail; a negative number ends
 *  that. */
void st_intercept_file_fail(int number);

/** Kernels that refuse more, or know less. */
typedef enum {
    ST_INTERCEPT_KERNEL_OURS,   /**< The one that is there */
    ST_INTERCEPT_KERNEL_NOEXEC, /**< vm.memfd_noexec=2 */
    ST_INTERCEPT_KERNEL_OLD,    /**< It knows no MFD_NOEXEC_SEAL */
    ST_INTERCEPT_KERNEL_STRICT  /**< vm.overcommit_memory=2 */
} st_intercept_kernel_t;

/** Have the calls find such a kernel from now on. */
void st_intercept_file_kernel(st_intercept_kernel_t kernel);

/** Bytes that were taken for files in advance since then. */
uint64_t st_intercept_file_allocated(void);

/** The name of the function that has failed since then; NULL if none has. */
const char *st_intercept_file_failed(void);

#endif
