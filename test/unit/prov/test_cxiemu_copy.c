/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cxiemu_copy.c - how much is copied at a time, which is how long other
 * threads wait for the NIC's lock.
 */
#include "cxiemu_util.h"
#include "cxiemu.h"
#include "fabric/cxiemu_domain.h"
#include "nic/cxiemu_wait.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>

#include <sched.h>
#include <stdlib.h>

/* Shares of a long write, read or message */
#define SHARES 64
#define LENGTH ((size_t)SHARES * CXIEMU_COPY_SHARE)

/* What lands at once in strict mode is an eighth of a share */
#define PIECE  (CXIEMU_COPY_SHARE / 8)

#define KEY 5


/* An endpoint that talks to itself */
typedef struct {
    struct fi_info    *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av     *av;
    struct fid_cq     *cq;
    struct fid_ep     *ep;
    struct fid_mr     *mr;
    fi_addr_t         self;
    cxiemu_nic_t      *nic;
    uint8_t           *from;
    uint8_t           *to;
} self_t;

static void self_open_ep(self_t *self)
{
    struct fi_av_attr av = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
    uint8_t name[64];
    size_t length = sizeof(name);

    CU_ASSERT_FATAL(fi_av_open(self->domain, &av, &self->av, NULL) == 0);
    CU_ASSERT_FATAL(fi_cq_open(self->domain, &cq, &self->cq, NULL) == 0);
    CU_ASSERT_FATAL(fi_endpoint(self->domain, self->info, &self->ep, NULL) ==
                    0);
    CU_ASSERT_FATAL(fi_ep_bind(self->ep, &self->av->fid, 0) == 0);
    CU_ASSERT_FATAL(fi_ep_bind(self->ep, &self->cq->fid,
                               FI_TRANSMIT | FI_RECV) == 0);
    CU_ASSERT_FATAL(fi_enable(self->ep) == 0);
    CU_ASSERT_FATAL(fi_getname(&self->ep->fid, name, &length) == 0);
    CU_ASSERT_FATAL(fi_av_insert(self->av, name, 1, &self->self, 0, NULL) == 1);
}

static void self_open(self_t *self)
{
    struct fi_info *hints = fi_allocinfo();
    size_t i;

    CU_ASSERT_FATAL(hints != NULL);
    hints->caps                 = FI_MSG | FI_TAGGED | FI_RMA;
    hints->ep_attr->type        = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
    CU_ASSERT_FATAL(cxiemu_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints,
                                   &self->info) == 0);
    fi_freeinfo(hints);
    CU_ASSERT_FATAL(cxiemu_fabric(self->info->fabric_attr, &self->fabric,
                                  NULL) == 0);
    CU_ASSERT_FATAL(fi_domain(self->fabric, self->info, &self->domain, NULL) ==
                    0);
    self->nic = container_of(self->domain, cxiemu_domain_t, fid)->nic;
    cxiemu_thread_stop(self->nic); /* The test makes all progress */
    self_open_ep(self);

    self->from = malloc(LENGTH);
    self->to   = calloc(1, LENGTH);
    CU_ASSERT_FATAL((self->from != NULL) && (self->to != NULL));
    for (i = 0; i < LENGTH; ++i) {
        self->from[i] = 1 + (i % 251);
    }
    CU_ASSERT_FATAL(fi_mr_reg(self->domain, self->to, LENGTH, FI_REMOTE_WRITE,
                              0, KEY, 0, &self->mr, NULL) == 0);
    CU_ASSERT_FATAL(fi_mr_bind(self->mr, &self->ep->fid, 0) == 0);
    CU_ASSERT_FATAL(fi_mr_enable(self->mr) == 0);
}

static void self_close(self_t *self)
{
    CU_ASSERT(fi_close(&self->mr->fid) == 0);
    CU_ASSERT(fi_close(&self->ep->fid) == 0);
    CU_ASSERT(fi_close(&self->cq->fid) == 0);
    CU_ASSERT(fi_close(&self->av->fid) == 0);
    CU_ASSERT(fi_close(&self->domain->fid) == 0);
    CU_ASSERT(fi_close(&self->fabric->fid) == 0);
    fi_freeinfo(self->info);
    free(self->from);
    free(self->to);
}

/* Pieces whose last byte is there */
static unsigned self_landed(const self_t *self)
{
    unsigned count = 0;
    size_t i;

    for (i = PIECE; i <= LENGTH; i += PIECE) {
        count += (self->to[i - 1] != 0);
    }
    return count;
}

/* Progress until all is there: each time a share, and a record that begins
 * within it */
static void self_run(self_t *self, unsigned num_entries)
{
    cxiemu_nic_t *nic = self->nic;
    struct fi_cq_tagged_entry entry;
    unsigned before, landed;
    size_t i;

    do {
        cxiemu_nic_lock(nic);
        before = self_landed(self);
        (void)cxiemu_nic_progress(nic);
        landed = self_landed(self);
        cxiemu_nic_unlock(nic);
        CU_ASSERT(landed - before <= 2 * 8);
    } while (landed < SHARES * 8);
    while (num_entries > 0) {
        if (fi_cq_read(self->cq, &entry, 1) == 1) {
            --num_entries;
        }
        sched_yield();
    }
    for (i = 0; (i < LENGTH) && (self->to[i] == self->from[i]); ++i) {
    }
    CU_ASSERT(i == LENGTH);
}

ST_CASE(write)
{
    self_t self = {NULL};

    self_open(&self);
    CU_ASSERT(fi_write(self.ep, self.from, LENGTH, NULL, self.self, 0, KEY,
                       NULL) == 0);
    self_run(&self, 1);
    self_close(&self);
}

ST_CASE(message)
{
    self_t self = {NULL};

    self_open(&self);
    CU_ASSERT(fi_recv(self.ep, self.to, LENGTH, NULL, FI_ADDR_UNSPEC, NULL) ==
              0);
    CU_ASSERT(fi_send(self.ep, self.from, LENGTH, NULL, self.self, NULL) == 0);
    self_run(&self, 2);
    self_close(&self);
}

ST_SUITE("cxiemu_copy")
