/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fork.h - how calls of the application begin: not in a forked process.
 */
#ifndef UCP_ST_FORK_H_
#define UCP_ST_FORK_H_

#include <ucs/type/status.h>

/** Non-zero in a process that was forked from one with st workers: it has
 *  neither their threads nor their NIC, so that all calls are refused. Set
 *  once, before its code runs on. */
extern int ucp_st_fork_is_child;

/** Refuse a call in a forked process: UCS_ERR_UNSUPPORTED, logged once. */
ucs_status_t ucp_st_fork_refuse(void);

/** There is one worker more, or something else that has the library's thread:
 *  until ucp_st_fork_leave() children are refused. UCS_ERR_NO_MEMORY if forks
 *  cannot be noticed. */
ucs_status_t ucp_st_fork_enter(void);

void ucp_st_fork_leave(void);

/** How a call of the application begins: UCS_ERR_UNSUPPORTED in a forked
 *  process, UCS_ERR_INVALID_PARAM if its handles and pointers are not good. */
static inline ucs_status_t ucp_st_check_call(int is_good)
{
    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    return is_good ? UCS_OK : UCS_ERR_INVALID_PARAM;
}

#endif
