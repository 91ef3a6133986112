/* SPDX-License-Identifier: BSD-3-Clause */
/* uct_short.h - memory that runs short in the transport, for tests. One thread.
 */
#ifndef UCT_SHORT_H_
#define UCT_SHORT_H_

/** Allocations of the transport until one fails; negative, as at first: none
 *  does. */
extern int uct_short_left;

#endif
