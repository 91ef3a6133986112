/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_work.h - deferred work, as scenarios queue it.
 */
#ifndef FAB_WORK_H_
#define FAB_WORK_H_

#include "fab.h"


/** When it fires, and what counts then. */
typedef struct fab_when {
    struct fid_cntr *trigger;
    uint64_t        threshold;
    struct fid_cntr *completion; /**< May be NULL but for sockets */
} fab_when_t;

/** Deferred work with all that its description refers to; in place until the
 *  work is done. */
typedef struct fab_work {
    struct fi_deferred_work work;
    struct iovec            iov;
    struct fi_rma_iov       rma_iov;
    struct fi_ioc           ioc;
    struct fi_ioc           compare_ioc;
    struct fi_ioc           result_ioc;
    struct fi_rma_ioc       rma_ioc;
    union {
        struct fi_op_msg            msg;
        struct fi_op_tagged         tagged;
        struct fi_op_rma            rma;
        struct fi_op_atomic         atomic;
        struct fi_op_fetch_atomic   fetch;
        struct fi_op_compare_atomic compare;
        struct fi_op_cntr           cntr;
    } op;
    uint64_t                operand;
    uint64_t                compare;
    uint64_t                result;
} fab_work_t;

/** A target in the peer's window or, by its index, in one's own. */
typedef struct fab_place {
    fi_addr_t addr;
    uint64_t  remote;
    uint64_t  key;
} fab_place_t;


/** Place at an offset of the peer's window; of one's own window. */
fab_place_t fab_there(const fab_side_t *me, uint64_t offset);
fab_place_t fab_here(const fab_side_t *me, uint64_t offset);

/** A zeroed array of work. */
fab_work_t *fab_works(fab_side_t *me, size_t count);

/* Describe work; fab_queue() hands it over. */
void fab_work_write(fab_side_t *me, fab_work_t *work, const void *data,
                    size_t length, fab_place_t to);
void fab_work_read(fab_side_t *me, fab_work_t *work, void *data, size_t length,
                   fab_place_t from);
void fab_work_add(fab_side_t *me, fab_work_t *work, uint64_t operand,
                  fab_place_t to);
void fab_work_fetch_add(fab_side_t *me, fab_work_t *work, uint64_t operand,
                        fab_place_t to);
void fab_work_swap(fab_side_t *me, fab_work_t *work, uint64_t compare,
                   uint64_t operand, fab_place_t to);
void fab_work_send(fab_side_t *me, fab_work_t *work, const void *data,
                   size_t length);
void fab_work_tsend(fab_side_t *me, fab_work_t *work, const void *data,
                    size_t length, uint64_t tag);
void fab_work_recv(fab_side_t *me, fab_work_t *work, void *data,
                   size_t length);
void fab_work_trecv(fab_side_t *me, fab_work_t *work, void *data,
                    size_t length, uint64_t tag);
void fab_work_count(fab_work_t *work, enum fi_op_type type,
                    struct fid_cntr *cntr, uint64_t value);

/** Queue it; what fi_control() returns. */
/** Hand work over. A provider may refuse it at times, and take it at once when
 *  it is asked again: as often, with FI_EAGAIN, until it is said here. */
#define FAB_QUEUE_TRIES 32
int fab_queue(fab_side_t *me, fab_work_t *work, fab_when_t when);

/** The usual: counters of a scenario. */
fab_when_t fab_at(struct fid_cntr *trigger, uint64_t threshold,
                  struct fid_cntr *completion);

#endif
