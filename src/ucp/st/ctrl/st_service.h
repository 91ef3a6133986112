/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_service.h - the process's service thread. It reaps, posts late operations,
 * moves lane host's data, and releases streams whose peers are lost, all
 * without calls of the host. It sleeps while there is nothing to do.
 */
#ifndef UCP_ST_SERVICE_H_
#define UCP_ST_SERVICE_H_

#include <ucs/datastruct/list.h>
#include <ucs/type/status.h>

/** File descriptors that one client may have. */
#define UCP_ST_SERVICE_MAX_FDS 8

/** Result of serve(): call it again after a time that is short for another
 *  process, but lets other threads run. */
#define UCP_ST_SERVICE_SOON (-2)

/**
 * A client. The owner fills in `serve`, `arg` and `fds`, and adds it; the
 * rest is the service's.
 *
 * serve() does what there is to do. It returns after how many milliseconds it
 * is to be called again: 0 at once, UCP_ST_SERVICE_SOON after some
 * microseconds, -1 not before one of `fds` is readable or ucp_st_service_wake()
 * was called. Both also end any other time early. Only the service thread calls
 * it; it does not sleep, and must not add or remove clients.
 */
typedef struct ucp_st_service_client {
    int             (*serve)(void *arg);
    void            *arg;
    int             fds[UCP_ST_SERVICE_MAX_FDS];
    unsigned        num_fds;

    ucs_list_link_t list;      /* the service's */
    int             woken;     /* atomic: call it whatever its time is */
    double          due;       /* when to call it, seconds; the thread's */
} ucp_st_service_client_t;

/**
 * Have the thread serve a client; the first one starts the thread. serve() is
 * called soon.
 *
 * Threads: any, but not from serve(), nor with a lock that serve() takes.
 */
ucs_status_t ucp_st_service_add(ucp_st_service_client_t *client);

/**
 * Undo ucp_st_service_add(). On return serve() is not running; the last one
 * ends the thread.
 *
 * Threads: as ucp_st_service_add().
 */
void ucp_st_service_remove(ucp_st_service_client_t *client);

/**
 * Have serve() called soon. Makes no system call while the thread is awake.
 *
 * Threads: any, also with locks that serve() takes.
 */
void ucp_st_service_wake(ucp_st_service_client_t *client);

/** Non-zero in the service thread. */
int ucp_st_service_is_self(void);

#endif
