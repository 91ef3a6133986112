/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fork.c - processes that were forked from one that has st workers.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_fork.h"
#include "core/st_log.h"

#include <pthread.h>

/*
 * Between fork and exec a child may run code of the parent's that calls here,
 * typically a destructor or a library that does not know of the fork. What such
 * a call would wait for is in the parent; a lock may have been held by a thread
 * that the child does not have.
 */
int ucp_st_fork_is_child = 0;

static unsigned       ucp_st_fork_users; /* atomic */
static pthread_once_t ucp_st_fork_once = PTHREAD_ONCE_INIT;
static ucs_status_t   ucp_st_fork_status;

/* In the child, before fork() returns there: there is no other thread */
static void ucp_st_fork_in_child(void)
{
    if (__atomic_load_n(&ucp_st_fork_users, __ATOMIC_RELAXED) > 0) {
        ucp_st_fork_is_child = 1;
    }
}

static void ucp_st_fork_install(void)
{
    if (pthread_atfork(NULL, NULL, ucp_st_fork_in_child) != 0) {
        ucp_st_fork_status = UCS_ERR_NO_MEMORY;
    }
}

ucs_status_t ucp_st_fork_enter(void)
{
    (void)pthread_once(&ucp_st_fork_once, ucp_st_fork_install);
    if (ucp_st_fork_status == UCS_OK) {
        __atomic_fetch_add(&ucp_st_fork_users, 1, __ATOMIC_RELAXED);
    }
    return ucp_st_fork_status;
}

void ucp_st_fork_leave(void)
{
    __atomic_fetch_sub(&ucp_st_fork_users, 1, __ATOMIC_RELAXED);
}

ucs_status_t ucp_st_fork_refuse(void)
{
    static int is_logged = 0;

    if (!is_logged) {
        is_logged = 1;
        ucs_error("this process was forked from one that uses ucp_st: it may "
                  "use ucp_st only after exec");
    }
    return UCS_ERR_UNSUPPORTED;
}
