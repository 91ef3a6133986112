/* SPDX-License-Identifier: BSD-3-Clause */
/* info_process.c - what waits in a running process, for ucx_st_info. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* struct ucred */
#endif

#include "st_info.h"

#include <ucp_st.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* How long a process may take to answer, milliseconds: its thread does it */
#define INFO_PROCESS_TIME 5000


/* Connects to the process's socket; -1 after printing why not */
static int info_process_connect(int pid)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd                     = socket(AF_UNIX, SOCK_STREAM, 0);
    struct ucred cred          = {.pid = 0};
    socklen_t cred_length      = sizeof(cred);
    struct timeval limit       = {.tv_sec = INFO_PROCESS_TIME / 1000};
    int length;

    /* A process that is stopped does not accept */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                      UCP_ST_SOCKET_NAME, pid);
    if ((fd < 0) || (connect(fd, (const struct sockaddr*)&address,
                             offsetof(struct sockaddr_un, sun_path) + 1 +
                             length) != 0)) {
        if (errno == EAGAIN) {
            fprintf(stderr, "ucx_st_info: process %d accepts no connection: it "
                    "is stopped\n", pid);
        } else if ((kill(pid, 0) != 0) && (errno == ESRCH)) {
            fprintf(stderr, "ucx_st_info: there is no process %d\n", pid);
        } else {
            fprintf(stderr, "ucx_st_info: process %d does not listen: it has "
                    "no worker of UCX-ST, or is in another network "
                    "namespace\n", pid);
        }
        goto err;
    }
    /* Any process may take the name */
    if ((getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_length) != 0) ||
        (cred.pid != pid)) {
        fprintf(stderr, "ucx_st_info: process %d listens in place of process "
                "%d\n", (int)cred.pid, pid);
        goto err;
    }
    return fd;

err:
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

int info_process(int pid)
{
    struct pollfd pollfd = {.fd     = info_process_connect(pid),
                            .events = POLLIN};
    size_t length        = 0;
    char text[4096];
    ssize_t ret;

    if (pollfd.fd < 0) {
        return 0;
    }
    do {
        if (poll(&pollfd, 1, INFO_PROCESS_TIME) <= 0) {
            fprintf(stderr, "ucx_st_info: process %d has not answered for %d "
                    "s: it is stopped\n", pid, INFO_PROCESS_TIME / 1000);
            length = 0;
            break;
        }
        ret = read(pollfd.fd, text, sizeof(text));
        if (ret > 0) {
            fwrite(text, 1, (size_t)ret, stdout);
            length += (size_t)ret;
        } else if (length == 0) {
            fprintf(stderr, "ucx_st_info: process %d does not answer: it is "
                    "another user's\n", pid);
        }
    } while (ret > 0);
    close(pollfd.fd);
    return length > 0;
}
