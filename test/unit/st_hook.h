/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_hook.h - calls of the project's libraries that a case looks at or changes:
 * those by which a thread gives its processor away, the clock, and what UCP
 * does for addresses, endpoints and active messages. The program's own
 * functions stand in front of the libraries'.
 */
#ifndef ST_HOOK_H_
#define ST_HOOK_H_

#include <ucs/type/status.h>

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/** Zero if the clock and what gives the processor away cannot be looked at, as
 *  a sanitizer stands there itself. */
int st_hook_has_clock(void);

/** Count the calls that yield or sleep while the calling thread holds this
 *  mutex; NULL ends that. */
void st_hook_watch(pthread_mutex_t *mutex);

/** How many there were since st_hook_watch(). */
uint64_t st_hook_violations(void);

/** Have UCP's addresses of workers be so many bytes long from now on: those
 *  behind the end are not looked at by UCP; 0 ends that. */
void st_hook_address(size_t length);

/** Call this, in the calling thread, before UCP makes an endpoint: what it
 *  returns is how that fails, unless it is UCS_OK. NULL ends that. */
void st_hook_ep_create(ucs_status_t (*func)(void));

/** Call this, in the calling thread, after UCP has begun a flush, which is then
 *  complete in UCP's progress. NULL ends that. */
void st_hook_ep_flush(void (*func)(void));

/** Endpoints that UCP made since st_hook_ep_create(). */
unsigned st_hook_num_eps(void);

/** Whether closing an endpoint takes longer than anybody waits, from now on. A
 *  question whether it is done moves the clock on by a millisecond. The
 *  `limit`-th question is answered with yes, so that a test ends. */
void st_hook_slow_close(int is_slow, uint64_t limit);

/** Closes since then, and questions. */
unsigned st_hook_num_closes(void);
uint64_t st_hook_num_questions(void);

/** Have UCP end the close whose callback has this argument not at once but in
 *  the next progress of the thread that asked for it; NULL ends that. */
void st_hook_late_close(const void *arg);

/** Non-zero once the callback has given back the request of that close. */
int st_hook_is_late_close_over(void);

/** Call this, in the calling thread, before UCP sends an active message, whose
 *  header it may change: what it returns is how the send fails at once, unless
 *  it is UCS_OK. NULL ends that. */
void st_hook_am_send(ucs_status_t (*func)(unsigned id, void *header));

/** Have control messages of one worker to another one, or to all if that is 0,
 *  stay where they are: UCP has no memory for them. Until
 *  st_hook_am_send(NULL). */
void st_hook_hold(uint64_t src, uint64_t dst);

#endif
