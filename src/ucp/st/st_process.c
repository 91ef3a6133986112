/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_process.c - where the processes of workers are, and whether they have
 * ended.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* syscall() */
#endif

#include "st_process.h"

#include <ucs/sys/uid.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void ucp_st_process_get_place(ucp_st_place_t *place)
{
    struct stat st;

    memset(place, 0, sizeof(*place));
    place->system = ucs_get_system_id();
    place->pid    = getpid();
    if (stat("/proc/self/ns/pid", &st) == 0) {
        place->pid_ns = st.st_ino;
    }
}

int ucp_st_process_is_lost(const ucp_st_place_t *place)
{
    return place->pid_ns == 0;
}

void ucp_st_process_open(ucp_st_process_t *process, const ucp_st_place_t *place,
                         const ucp_st_place_t *own)
{
    memset(process, 0, sizeof(*process));
    if (ucp_st_process_is_lost(own) || (place->system != own->system) ||
        (place->pid_ns != own->pid_ns)) {
        return;
    }
    process->pid     = place->pid;
    process->is_near = (place->pid == own->pid);
    process->fd      = process->is_near ?
                       -1 : (int)syscall(SYS_pidfd_open, process->pid, 0);
}

void ucp_st_process_close(ucp_st_process_t *process)
{
    if (ucp_st_process_is_here(process) && (process->fd >= 0)) {
        close(process->fd);
    }
    process->pid = 0;
}

int ucp_st_process_has_ended(const ucp_st_process_t *process)
{
    struct pollfd fd = {.fd = process->fd, .events = POLLIN};

    if (process->fd >= 0) {
        return poll(&fd, 1, 0) > 0;
    }
    return (kill((pid_t)process->pid, 0) != 0) && (errno == ESRCH);
}

int ucp_st_process_is_dead(ucp_st_process_t *process)
{
    if (ucp_st_process_is_here(process) && !process->is_near &&
        !process->is_dead) {
        process->is_dead = ucp_st_process_has_ended(process);
    }
    return process->is_dead;
}
