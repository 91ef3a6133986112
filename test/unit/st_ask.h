/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ask.h - what a process answers that is asked what waits in it.
 */
#ifndef ST_ASK_H_
#define ST_ASK_H_

#include <sys/types.h>

/** Its answer, until the next call; "" if there is none. */
const char *st_ask(pid_t pid);

#endif
