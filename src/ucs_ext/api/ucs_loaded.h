/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_loaded.h
 * Libraries that the process has loaded. Not installed; it needs nothing but
 * the C library, as the emulated card has it, too.
 */
#ifndef UCS_EXT_LOADED_H_
#define UCS_EXT_LOADED_H_

#include <stdint.h>

#pragma GCC visibility push(hidden)

/**
 * Open a library if the process has loaded it.
 *
 * @param [in] name Of the library, or where it is.
 *
 * @return For dlsym() and dlclose(); NULL if it is not loaded.
 *
 * Threads: any.
 */
void *ucs_loaded_open(const char *name);

/**
 * Whether libraries were loaded since the last question: to ask for one that
 * was not there searches folders, and is of use only then.
 *
 * @param [in,out] count_p Libraries that had been loaded; 0 at first. The
 *                         caller's.
 *
 * @return Non-zero if so, or if it is not known.
 *
 * Threads: one at a time for a count.
 */
int ucs_loaded_has_new(uint64_t *count_p);

#pragma GCC visibility pop

#endif
