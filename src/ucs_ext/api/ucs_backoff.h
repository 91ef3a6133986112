/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_backoff.h
 * Loops that wait for something which wakes nobody: another thread, another
 * process or a device. Not installed; it needs nothing but the C library, as
 * the emulated card has it, too.
 */
#ifndef UCS_EXT_BACKOFF_H_
#define UCS_EXT_BACKOFF_H_

#pragma GCC visibility push(hidden)

/**
 * Pass a little time between two looks at what the caller waits for. The first
 * rounds return at once, the next ones yield the processor, and all others
 * sleep for 50 us and the kernel's slack.
 *
 * Threads: any.
 *
 * @param [in,out] rounds_p Rounds so far, which this counts. The caller's; 0 at
 *                          first, and again once something has happened.
 */
void ucs_backoff(unsigned *rounds_p);

#pragma GCC visibility pop

#endif
