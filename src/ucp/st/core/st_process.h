/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_process.h - where the processes of workers are, and whether those of this
 * node have ended. Not all transports notice that: UCX 1.13 does not notice a
 * peer in shared memory that died before it had answered its first message.
 */
#ifndef UCP_ST_PROCESS_H_
#define UCP_ST_PROCESS_H_

#include "core/st_proto.h"

/** A peer's process. Read-only, but for what says otherwise. */
typedef struct ucp_st_process {
    uint32_t pid;     /* 0: it is not of this node, or not known */
    uint32_t start;   /* as in ucp_st_place_t */
    int      is_near; /* it is this process */
    int      is_open; /* its files can be opened */
    int      fd;      /* pidfd; or -1: the kernel has none */
    int      was_dead;/* when `fd` was opened */
    int      is_dead; /* protected by the worker's lock */
} ucp_st_process_t;

/** Where this process is. */
void ucp_st_process_get_place(ucp_st_place_t *place);

/** Non-zero if the PID namespace is not known. */
int ucp_st_process_is_lost(const ucp_st_place_t *place);

/** Find the process at a place, from a process at another one. */
void ucp_st_process_open(ucp_st_process_t *process, const ucp_st_place_t *place,
                         const ucp_st_place_t *own);

/** Non-zero if the process is on this node, where its end is noticed. */
static inline int ucp_st_process_is_here(const ucp_st_process_t *process)
{
    return process->pid != 0;
}

/** Undo ucp_st_process_open(). */
void ucp_st_process_close(ucp_st_process_t *process);

/** Non-zero if it is certain that the process has ended. The worker's lock is
 *  held. */
int ucp_st_process_is_dead(ucp_st_process_t *process);

/** Non-zero if it is certain that another process of this node has ended. Needs
 *  no lock. */
int ucp_st_process_has_ended(const ucp_st_process_t *process);

#endif
