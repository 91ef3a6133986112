/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_memfd.h
 * Files of memory that the processes of a user share. Not installed; it needs
 * nothing but the C library, as the emulated card has it, too.
 */
#ifndef UCS_EXT_MEMFD_H_
#define UCS_EXT_MEMFD_H_

#include <stddef.h>

#pragma GCC visibility push(hidden)

/**
 * How long a file may be: the kernel ends a process that makes one longer than
 * RLIMIT_FSIZE.
 *
 * Threads: any.
 *
 * @return Bytes, in whole pages.
 */
size_t ucs_memfd_max(void);

/**
 * Make a file of zeroed memory without a name: of mode 0600, not inherited by
 * exec, sealed against other lengths. Memory is taken as it is written to.
 *
 * Ownership: the caller closes the descriptor.
 * Threads: any.
 *
 * @param [in] label  What /proc shows as its name.
 * @param [in] length Bytes.
 *
 * @return A descriptor; or the negative of an errno, not logged: -EFBIG for
 *         more than ucs_memfd_max().
 */
int ucs_memfd_create(const char *label, size_t length);

/**
 * Whether the kernel gives out no more memory than it has
 * (vm.overcommit_memory is 2). A write for which none is left is a signal then,
 * so that memory is to be taken before.
 *
 * Threads: any.
 *
 * @return Non-zero if so.
 */
int ucs_memfd_is_strict(void);

/**
 * Take memory for a part of a file.
 *
 * Threads: any.
 *
 * @param [in] fd     The file.
 * @param [in] offset Where the part begins, bytes.
 * @param [in] length Bytes.
 *
 * @return 0, or the negative of an errno.
 */
int ucs_memfd_take(int fd, size_t offset, size_t length);

#pragma GCC visibility pop

#endif
