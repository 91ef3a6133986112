/* SPDX-License-Identifier: BSD-3-Clause */
/* trig_fab.h - what st_trig has of a provider. */
#ifndef TRIG_FAB_H_
#define TRIG_FAB_H_

#include "trig_bench.h"

#include <cxiemu.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

/* Of each of two processes, which share the 504 entries of a service */
#define TRIG_PENDING 200u


typedef struct trig_work {
    struct fi_deferred_work work;
    struct iovec            iov;
    struct fi_rma_iov       rma_iov;
    struct fi_ioc           ioc;
    struct fi_rma_ioc       rma_ioc;
    struct fi_op_rma        rma;
    struct fi_op_atomic     atomic;
    uint64_t                operand;
} trig_work_t;

/* A registered buffer with its counter of remote writes */
typedef struct trig_region {
    uint8_t         *base;
    struct fid_mr   *mr;
    struct fid_cntr *landed;
    uint64_t        writes;  /* That have landed */
    uint64_t        key;     /* Of the other side */
} trig_region_t;

struct trig_fab {
    trig_rank_t                 *me;
    struct fi_info              *info;
    struct fid_fabric           *fabric;
    struct fid_domain           *domain;
    struct fid_av               *av;
    struct fid_cq               *cq;
    struct fid_ep               *ep;
    struct fid_cntr             *bound[2];
    struct fid_cntr             *trigger;
    struct fid_cntr             *done;
    struct fid_cntr             *words;
    struct fid_cntr             *never;
    fi_addr_t                   self;
    fi_addr_t                   peer;
    trig_region_t               region;    /* Data that comes, then data that
                                              goes */
    struct fid_mr               *word_mr;
    uint8_t                     *word_page;
    uint64_t                    word_key;  /* Of the other side */
    trig_work_t                 *works;
    uint64_t                    fired;
    uint64_t                    held;     /* Pending ones that fired */
    uint64_t                    extra;    /* Their completions */
    uint64_t                    owed;     /* Completions to be counted */
    uint64_t                    word;     /* Last value of the word sent */
    uint64_t                    *source;  /* Words to be written */
    struct fid_cntr             *pairs[TRIG_BATCH][2]; /* Of trig_fab_post() */
    uint64_t                    posts;    /* Its calls */
    unsigned                    num_posted; /* By the last one */
};


/** Opens a counter. */
struct fid_cntr *trig_cntr(trig_fab_t *fab);

/** Gives up unless 'ret' is 0. */
void trig_must(trig_fab_t *fab, const char *what, ssize_t ret);

#endif
