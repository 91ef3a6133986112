/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fork.h - processes that were forked from one that has st workers: they
 * have neither its threads nor its NIC, so that all calls are refused there.
 */
#ifndef UCP_ST_FORK_H_
#define UCP_ST_FORK_H_

#include <ucs/type/status.h>

/** Non-zero in such a process; set once, before its code runs on. What users
 *  call looks at it first. */
extern int ucp_st_fork_is_child;

/** There is one worker more in this process; from now on forks are noticed. */
ucs_status_t ucp_st_fork_enter(void);

/** There is one less. */
void ucp_st_fork_leave(void);

/** UCS_ERR_UNSUPPORTED, logged once. */
ucs_status_t ucp_st_fork_refuse(void);

/** What a call of the user's begins with: UCS_ERR_UNSUPPORTED in such a
 *  process, UCS_ERR_INVALID_PARAM if its handles and pointers are not good. */
static inline ucs_status_t ucp_st_check_call(int is_good)
{
    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    return is_good ? UCS_OK : UCS_ERR_INVALID_PARAM;
}

#endif
