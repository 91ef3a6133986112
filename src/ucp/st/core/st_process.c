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

#include "core/st_process.h"

#include <ucs/sys/uid.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Read from /proc when a process was started, and the letter of its state. Zero
 * if that fails. */
static int ucp_st_process_stat(const char *pid, uint32_t *start_p,
                               char *state_p)
{
    char line[1024];
    unsigned long long start;
    const char *rest;
    ssize_t length;
    int fd;

    snprintf(line, sizeof(line), "/proc/%s/stat", pid);
    fd = open(line, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    length = read(fd, line, sizeof(line) - 1);
    close(fd);
    if (length <= 0) {
        return 0;
    }
    line[length] = '\0';
    /* The name, in parentheses, may hold anything */
    rest = strrchr(line, ')');
    if ((rest == NULL) ||
        (sscanf(rest, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u "
                "%*d %*d %*d %*d %*d %*d %llu", state_p, &start) != 2)) {
        return 0;
    }
    *start_p = (uint32_t)start;
    return 1;
}

void ucp_st_process_get_place(ucp_st_place_t *place)
{
    uint32_t start = 0;
    struct stat st;
    char state;

    memset(place, 0, sizeof(*place));
    place->system = ucs_get_system_id();
    place->pid    = getpid();
    (void)ucp_st_process_stat("self", &start, &state);
    place->start  = start;
    if (stat("/proc/self/ns/pid", &st) == 0) {
        place->pid_ns = (uint32_t)st.st_ino;
    }
    if (stat("/proc/self/ns/user", &st) == 0) {
        place->user_ns = (uint32_t)st.st_ino;
    }
}

int ucp_st_process_is_lost(const ucp_st_place_t *place)
{
    return place->pid_ns == 0;
}

/* Non-zero if it is certain that the number is another process's by now, or
 * that the process has ended and its parent has not waited for it yet */
static int ucp_st_process_is_other(const ucp_st_process_t *process)
{
    uint32_t start;
    char pid[16];
    char state;

    snprintf(pid, sizeof(pid), "%u", process->pid);
    if (!ucp_st_process_stat(pid, &start, &state)) {
        return 0;
    }
    return (state == 'Z') || (state == 'X') ||
           ((process->start != 0) && (start != process->start));
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
    process->start   = place->start;
    process->is_near = (place->pid == own->pid);
    process->is_open = (place->user_ns == own->user_ns);
    process->fd      = process->is_near ?
                       -1 : (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (process->fd >= 0) {
        /* The descriptor may be that of another process with the same number */
        process->was_dead = ucp_st_process_is_other(process);
    }
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
        return process->was_dead || (poll(&fd, 1, 0) > 0);
    }
    return ((kill((pid_t)process->pid, 0) != 0) && (errno == ESRCH)) ||
           ucp_st_process_is_other(process);
}

int ucp_st_process_is_dead(ucp_st_process_t *process)
{
    if (ucp_st_process_is_here(process) && !process->is_near &&
        !process->is_dead) {
        process->is_dead = ucp_st_process_has_ended(process);
    }
    return process->is_dead;
}
