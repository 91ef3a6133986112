/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_far.c - another process, which runs the same program as this one.
 */
#include "st_far.h"

#include <CUnit/CUnit.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* "FD TASK" in the environment of the second process */
#define ST_FAR_ENV "ST_FAR_TASK"

/* Messages beside addresses, which are longer */
#define ST_FAR_HERE 'h'
#define ST_FAR_PART 'p'


void st_far_start(st_far_t *far, const char *task)
{
    char text[64];
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    /* Or the other process would keep it open when this one closes it */
    CU_ASSERT_EQUAL(fcntl(fds[0], F_SETFD, FD_CLOEXEC), 0);
    snprintf(text, sizeof(text), "%d %s", fds[1], task);
    setenv(ST_FAR_ENV, text, 1);
    (void)fflush(NULL);
    far->fd  = fds[0];
    far->pid = fork();
    if (far->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/proc/self/exe", "other", NULL);
        _exit(EXIT_FAILURE);
    }
    CU_ASSERT_FATAL(far->pid > 0);
    unsetenv(ST_FAR_ENV);
    close(fds[1]);
}

void st_far_stop(st_far_t *far)
{
    int status;

    CU_ASSERT_EQUAL(kill(far->pid, SIGSTOP), 0);
    CU_ASSERT_EQUAL(waitpid(far->pid, &status, WUNTRACED), far->pid);
    CU_ASSERT_TRUE(WIFSTOPPED(status));
}

void st_far_kill(st_far_t *far)
{
    int status;

    CU_ASSERT_EQUAL(kill(far->pid, SIGKILL), 0);
    CU_ASSERT_EQUAL(waitpid(far->pid, &status, 0), far->pid);
    CU_ASSERT_TRUE(WIFSIGNALED(status));
    close(far->fd);
    far->fd = -1;
}

void st_far_end(st_far_t *far)
{
    int status = -1;

    CU_ASSERT_EQUAL(waitpid(far->pid, &status, 0), far->pid);
    CU_ASSERT_EQUAL(status, 0);
}

int st_far_is_death(ucs_status_t status)
{
    return (status == UCS_ERR_ENDPOINT_TIMEOUT) ||
           (status == UCS_ERR_CONNECTION_RESET);
}

const char *st_far_task(st_far_t *far)
{
    const char *text = getenv(ST_FAR_ENV);

    if (text == NULL) {
        return NULL;
    }
    far->fd  = atoi(text);
    far->pid = -1;
    return strchr(text, ' ') + 1;
}

ucs_status_t st_far_tell(const st_far_t *far, ucp_st_worker_h worker)
{
    ucs_status_t status;
    size_t length;
    void *address;

    status = ucp_st_worker_get_address(worker, &address, &length);
    if (status == UCS_OK) {
        (void)send(far->fd, address, length, MSG_NOSIGNAL);
        ucp_st_worker_release_address(worker, address);
    }
    return status;
}

/* A message of the other process; that it parts stays there to be seen again.
 * Its length, 0 for that. */
size_t st_far_hear(const st_far_t *far, void *message)
{
    ssize_t length = recv(far->fd, message, ST_FAR_ADDRESS, MSG_PEEK);

    if ((length <= 0) || ((length == 1) && (*(char*)message == ST_FAR_PART))) {
        return 0;
    }
    return (size_t)read(far->fd, message, ST_FAR_ADDRESS);
}

ucs_status_t st_far_connect(const st_far_t *far, ucp_st_worker_h worker,
                            ucp_st_peer_h *peer_p)
{
    ucs_status_t status = st_far_tell(far, worker);
    uint8_t address[ST_FAR_ADDRESS];
    size_t length;

    if (status != UCS_OK) {
        return status;
    }
    length = st_far_hear(far, address);
    return (length == 0) ? UCS_ERR_CANCELED :
                           ucp_st_peer_create(worker, address, length, peer_p);
}

static int st_far_say(const st_far_t *far, char message)
{
    return send(far->fd, &message, 1, MSG_NOSIGNAL) == 1;
}

int st_far_meet(const st_far_t *far)
{
    char message[ST_FAR_ADDRESS];

    return st_far_say(far, ST_FAR_HERE) && (st_far_hear(far, message) > 0);
}

void st_far_part(const st_far_t *far)
{
    (void)st_far_say(far, ST_FAR_PART);
}

void st_far_rejoin(const st_far_t *far)
{
    char message[ST_FAR_ADDRESS];

    while (st_far_hear(far, message) > 0) {
        /* said before */
    }
    (void)read(far->fd, message, sizeof(message));
}
