/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cxiemu_peer.c - processes of which the system keeps one from the other,
 * or gives less than usual.
 */
#include "cxiemu_side.h"
#include "st_cunit.h"
#include "st_real.h"

#include <rdma/fi_rma.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

/* Goes by cross-memory attach, where that is possible */
#define LENGTH (1ul << 20)

/* Of this process: whether it may attach to others, and how often it has */
static int      may_attach = 1;
static unsigned num_attached;

/* How often all processes of the user were allowed to trace this one */
static unsigned num_allowed;

ssize_t process_vm_readv(pid_t pid, const struct iovec *here,
                         unsigned long num_here, const struct iovec *there,
                         unsigned long num_there, unsigned long flags)
{
    if (pid != getpid()) {
        if (!may_attach) {
            errno = EPERM;
            return -1;
        }
        num_attached += (there->iov_len >= LENGTH / 16);
    }
    return ST_REAL(process_vm_readv)(pid, here, num_here, there, num_there,
                                     flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *here,
                          unsigned long num_here, const struct iovec *there,
                          unsigned long num_there, unsigned long flags)
{
    if ((pid != getpid()) && !may_attach) {
        errno = EPERM;
        return -1;
    }
    num_attached += (there->iov_len >= LENGTH / 16);
    return ST_REAL(process_vm_writev)(pid, here, num_here, there, num_there,
                                      flags);
}

int prctl(int option, ...)
{
    unsigned long arg[4];
    va_list args;
    int i;

    va_start(args, option);
    for (i = 0; i < 4; ++i) {
        arg[i] = va_arg(args, unsigned long);
    }
    va_end(args);
    num_allowed += (option == PR_SET_PTRACER);
    return ST_REAL(prctl)(option, arg[0], arg[1], arg[2], arg[3]);
}


static void fill(uint8_t *memory, unsigned tint)
{
    size_t i;

    for (i = 0; i < LENGTH; ++i) {
        memory[i] = (uint8_t)((i * 7) + (i >> 9) + tint);
    }
}

static int is_filled(const uint8_t *memory, unsigned tint)
{
    uint8_t *wanted = malloc(LENGTH);
    int result;

    CXIEMU_MUST(wanted != NULL);
    fill(wanted, tint);
    result = !memcmp(memory, wanted, LENGTH);
    free(wanted);
    return result;
}

static void meet(int socket, cxiemu_side_t *side)
{
    char byte = 0;

    /* What is under way gets on meanwhile: by the domain's thread */
    (void)side;
    cxiemu_role_swap(socket, &byte, &byte, sizeof(byte));
}

/* Long payload by all ways, which both roles go: a write, a read, a message */
static void exchange(int socket, cxiemu_side_t *side)
{
    uint8_t *data = malloc(2 * LENGTH);

    CXIEMU_MUST(data != NULL);
    fill(data, 1);
    meet(socket, side);
    CXIEMU_MUST(fi_write(side->ep, data, LENGTH, NULL, side->peer, 0,
                         CXIEMU_SIDE_KEY, NULL) == 0);
    CXIEMU_MUST(cxiemu_side_wait(side) == 0);
    memset(data, 0, LENGTH);
    CXIEMU_MUST(fi_read(side->ep, data, LENGTH, NULL, side->peer, 0,
                        CXIEMU_SIDE_KEY, NULL) == 0);
    CXIEMU_MUST(cxiemu_side_wait(side) == 0);
    CXIEMU_MUST(is_filled(data, 1));
    meet(socket, side);
    CXIEMU_MUST(is_filled(side->memory, 1));

    fill(data, 2);
    CXIEMU_MUST(fi_recv(side->ep, data + LENGTH, LENGTH, NULL,
                        FI_ADDR_UNSPEC, NULL) == 0);
    CXIEMU_MUST(fi_send(side->ep, data, LENGTH, NULL, side->peer, NULL) == 0);
    CXIEMU_MUST(cxiemu_side_wait(side) == 0);
    CXIEMU_MUST(cxiemu_side_wait(side) == 0);
    CXIEMU_MUST(is_filled(data + LENGTH, 2));
    meet(socket, side);
    free(data);
}

/* Who may attach to the other one: bit 0, the first, bit 1, the second */
static void attach_role(int socket, unsigned allowed, unsigned self)
{
    cxiemu_side_t side;

    may_attach = (allowed >> self) & 1;
    cxiemu_role_connect(socket, &side, LENGTH);
    exchange(socket, &side);
    exchange(socket, &side);
    CXIEMU_MUST((num_attached > 0) == may_attach);
    CXIEMU_MUST(num_allowed == 0);
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

static void attach_first(int socket, const void *arg)
{
    attach_role(socket, *(const unsigned*)arg, 0);
}

static void attach_second(int socket, const void *arg)
{
    attach_role(socket, *(const unsigned*)arg, 1);
}

/* As Yama has it with ptrace_scope=1: parents may attach to their children and
 * not the other way round, and brothers not at all */
ST_CASE(attach)
{
    unsigned allowed;

    for (allowed = 0; allowed < 4; ++allowed) {
        CU_ASSERT(cxiemu_role_run(attach_first, attach_second, &allowed) == 0);
    }
}

static void allow_role(int socket, const void *arg)
{
    cxiemu_side_t side;

    CXIEMU_MUST(setenv("FI_CXIEMU_PTRACER", "yes", 1) == 0);
    cxiemu_role_connect(socket, &side, LENGTH);
    CXIEMU_MUST(num_allowed == 1);
    exchange(socket, &side);
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

/* Only where it is asked for are all processes allowed to trace this one */
ST_CASE(allow)
{
    CU_ASSERT(cxiemu_role_run(allow_role, allow_role, NULL) == 0);
}

ST_SUITE("cxiemu_peer")
