/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cxiemu_copy.c - how much is copied at a time, which is how long other
 * threads wait for the NIC's lock.
 */
#include "cxiemu_side.h"
#include "st_cunit.h"
#include "obj/cxiemu_domain.h"
#include "run/cxiemu_wait.h"

#include <rdma/fi_rma.h>

#include <sched.h>
#include <stdlib.h>

/* Shares of a long write, read or message */
#define SHARES 64
#define LENGTH ((size_t)SHARES * CXIEMU_COPY_SHARE)

/* What lands at once in strict mode is an eighth of a share */
#define PIECE  (CXIEMU_COPY_SHARE / 8)


static uint8_t *from;

static void copy_open(cxiemu_side_t *self)
{
    size_t i;

    CU_ASSERT_FATAL(cxiemu_side_open(self, LENGTH) == 0);
    CU_ASSERT_FATAL(cxiemu_side_set_peer(self, self->name) == 0);
    cxiemu_thread_stop(self->nic); /* The test makes all progress */
    from = malloc(LENGTH);
    CU_ASSERT_FATAL(from != NULL);
    for (i = 0; i < LENGTH; ++i) {
        from[i] = 1 + (i % 251);
    }
}

static void copy_close(cxiemu_side_t *self)
{
    CU_ASSERT(cxiemu_side_close(self) == 0);
    free(from);
}

/* From it to itself */
#define COPY_CASE(_name) \
    ST_CASE_WITH(_name, cxiemu_side_t, self, copy_open(self), copy_close(self))

/* Pieces whose last byte is there */
static unsigned copy_landed(const cxiemu_side_t *self)
{
    unsigned count = 0;
    size_t i;

    for (i = PIECE; i <= LENGTH; i += PIECE) {
        count += (self->memory[i - 1] != 0);
    }
    return count;
}

/* Progress until all is there: each time a share, and a record that begins
 * within it */
static void copy_run(cxiemu_side_t *self, unsigned num_entries)
{
    cxiemu_nic_t *nic = self->nic;
    struct fi_cq_tagged_entry entry;
    unsigned before, landed;
    size_t i;

    do {
        cxiemu_nic_lock(nic);
        before = copy_landed(self);
        (void)cxiemu_nic_progress(nic);
        landed = copy_landed(self);
        cxiemu_nic_unlock(nic);
        CU_ASSERT(landed - before <= 2 * 8);
    } while (landed < SHARES * 8);
    while (num_entries > 0) {
        if (fi_cq_read(self->cq, &entry, 1) == 1) {
            --num_entries;
        }
        sched_yield();
    }
    for (i = 0; (i < LENGTH) && (self->memory[i] == from[i]); ++i) {
    }
    CU_ASSERT(i == LENGTH);
}

COPY_CASE(write)
{
    CU_ASSERT(fi_write(self->ep, from, LENGTH, NULL, self->peer, 0,
                       CXIEMU_SIDE_KEY, NULL) == 0);
    copy_run(self, 1);
}

COPY_CASE(message)
{
    CU_ASSERT(fi_recv(self->ep, self->memory, LENGTH, NULL, FI_ADDR_UNSPEC,
                      NULL) == 0);
    CU_ASSERT(fi_send(self->ep, from, LENGTH, NULL, self->peer, NULL) == 0);
    copy_run(self, 2);
}

ST_SUITE("cxiemu_copy")
