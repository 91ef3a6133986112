/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_side.c - endpoints of the emulated NIC, and processes with one. */
#include "cxiemu_side.h"
#include "cxiemu.h"
#include "obj/cxiemu_domain.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROLE_SKIPS   77
#define ROLE_SECONDS 60


static int open_ep(cxiemu_side_t *side)
{
    struct fi_av_attr av = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
    size_t length        = sizeof(side->name);
    int ret;

    ret = fi_av_open(side->domain, &av, &side->av, NULL);
    ret = ret ? ret : fi_cq_open(side->domain, &cq, &side->cq, NULL);
    ret = ret ? ret : fi_endpoint(side->domain, side->info, &side->ep, NULL);
    ret = ret ? ret : fi_ep_bind(side->ep, &side->av->fid, 0);
    ret = ret ? ret : fi_ep_bind(side->ep, &side->cq->fid,
                                 FI_TRANSMIT | FI_RECV);
    ret = ret ? ret : fi_enable(side->ep);
    return ret ? ret : fi_getname(&side->ep->fid, side->name, &length);
}

static int open_memory(cxiemu_side_t *side, size_t length)
{
    int ret;

    side->length = length;
    side->memory = calloc(1, length);
    if (side->memory == NULL) {
        return -FI_ENOMEM;
    }
    ret = fi_mr_reg(side->domain, side->memory, length,
                    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, CXIEMU_SIDE_KEY, 0,
                    &side->mr, NULL);
    ret = ret ? ret : fi_mr_bind(side->mr, &side->ep->fid, 0);
    return ret ? ret : fi_mr_enable(side->mr);
}

static int get_info(struct fi_info **info_p)
{
    struct fi_info *hints = fi_allocinfo();
    int ret;

    if (hints == NULL) {
        return -FI_ENOMEM;
    }
    hints->caps                 = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    hints->ep_attr->type        = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
    ret = cxiemu_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, info_p);
    fi_freeinfo(hints);
    return ret;
}

int cxiemu_side_open(cxiemu_side_t *side, size_t length)
{
    int ret;

    memset(side, 0, sizeof(*side));
    ret = get_info(&side->info);
    ret = ret ? ret : cxiemu_fabric(side->info->fabric_attr, &side->fabric,
                                    NULL);
    ret = ret ? ret : fi_domain(side->fabric, side->info, &side->domain, NULL);
    ret = ret ? ret : open_ep(side);
    ret = ret ? ret : open_memory(side, length);
    if (ret != 0) {
        (void)cxiemu_side_close(side);
        return ret;
    }
    side->nic = container_of(side->domain, cxiemu_domain_t, fid)->nic;
    return 0;
}

#define CLOSE(_object) (((_object) == NULL) ? 0 : fi_close(&(_object)->fid))

int cxiemu_side_close(cxiemu_side_t *side)
{
    int results[] = {CLOSE(side->mr), CLOSE(side->ep), CLOSE(side->cq),
                     CLOSE(side->av), CLOSE(side->domain),
                     CLOSE(side->fabric)};
    int ret       = 0;
    size_t i;

    for (i = 0; i < sizeof(results) / sizeof(results[0]); ++i) {
        ret = ret ? ret : results[i];
    }
    fi_freeinfo(side->info);
    free(side->memory);
    return ret;
}

int cxiemu_side_set_peer(cxiemu_side_t *side, const void *name)
{
    return (fi_av_insert(side->av, name, 1, &side->peer, 0, NULL) == 1) ?
           0 : -FI_EINVAL;
}

int cxiemu_side_wait(cxiemu_side_t *side)
{
    struct fi_cq_err_entry error = {0};
    struct fi_cq_tagged_entry entry;
    ssize_t ret;

    while ((ret = fi_cq_read(side->cq, &entry, 1)) == -FI_EAGAIN) {
        sched_yield();
    }
    if (ret == -FI_EAVAIL) {
        return (fi_cq_readerr(side->cq, &error, 0) == 1) ? error.err : FI_EIO;
    }
    return (ret == 1) ? 0 : FI_EIO;
}


void cxiemu_role_fail(const char *file, int line, const char *text)
{
    printf("%s:%d: %s\n", file, line, text);
    fflush(stdout);
    _exit(1);
}

void cxiemu_role_skip(void)
{
    _exit(ROLE_SKIPS);
}

static pid_t start_role(cxiemu_role_t role, int socket, int other,
                        const void *arg)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(ROLE_SECONDS);
        close(other);
        role(socket, arg);
        fflush(stdout);
        _exit(0);
    }
    return pid;
}

int cxiemu_role_run(cxiemu_role_t first, cxiemu_role_t second, const void *arg)
{
    int failures = 0;
    int skips    = 0;
    int sockets[2], status, i;
    pid_t pids[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) {
        return 2;
    }
    pids[0] = start_role(first, sockets[0], sockets[1], arg);
    pids[1] = start_role(second, sockets[1], sockets[0], arg);
    close(sockets[0]);
    close(sockets[1]);
    for (i = 0; i < 2; ++i) {
        if ((pids[i] < 0) || (waitpid(pids[i], &status, 0) != pids[i])) {
            ++failures;
        } else if (WIFSIGNALED(status)) {
            printf("role %d: ended by signal %d\n", i, WTERMSIG(status));
            ++failures;
        } else {
            skips    += (WEXITSTATUS(status) == ROLE_SKIPS);
            failures += (WEXITSTATUS(status) == 1);
        }
    }
    return (skips > 0) ? -1 : failures;
}

void cxiemu_role_swap(int socket, const void *out, void *in, size_t length)
{
    ssize_t count;

    CXIEMU_MUST(send(socket, out, length, MSG_NOSIGNAL) == (ssize_t)length);
    count = recv(socket, in, length, MSG_WAITALL);
    if (count == 0) {
        _exit(2); /* The other one has said why */
    }
    CXIEMU_MUST(count == (ssize_t)length);
}

void cxiemu_role_connect(int socket, cxiemu_side_t *side, size_t length)
{
    uint8_t name[sizeof(side->name)];

    CXIEMU_MUST(cxiemu_side_open(side, length) == 0);
    cxiemu_role_swap(socket, side->name, name, sizeof(name));
    CXIEMU_MUST(cxiemu_side_set_peer(side, name) == 0);
}
