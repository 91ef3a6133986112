/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ahead.h - uses that kernels of the application start and wait for
 * (ucp_st_device.h): the host has posted them ahead.
 *
 * They count as started and waited for when they are posted. Until kernels have
 * waited for the last one the operation is "ahead". A use that no kernel has
 * begun is nothing that fails: it is taken back when the operation is freed, or
 * its peer's half is. But as a kernel may still come to it, what it would look
 * at then is not given back.
 */
#ifndef UCP_ST_AHEAD_H_
#define UCP_ST_AHEAD_H_

#include "core/st_lane.h"
#include "core/st_op.h"
#include "core/st_queue.h"

/** Non-zero while kernels have not waited for a use. Once one has it touches
 *  nothing more in it. */
static inline int ucp_st_ahead_is_open(const ucs_gstream_pair_record_t *record,
                                       uint64_t use)
{
    return (__atomic_load_n(&record->waited, __ATOMIC_ACQUIRE) < use) ||
           (__atomic_load_n(&record->ended, __ATOMIC_ACQUIRE) < use);
}

/** Non-zero while kernels have not waited for the last use that was posted. Of
 *  a failed operation, and on a lost device, they need not. The lock is held,
 *  as for what follows. */
static inline int ucp_st_op_is_ahead(const ucp_st_op_t *op)
{
    return (op->ahead > 0) && (op->state == UCP_ST_OP_MATCHED) &&
           ((op->queue == NULL) || !op->queue->is_lost) &&
           ucp_st_ahead_is_open(op->lane->op.ahead->record(op), op->ahead);
}

/** Non-zero while a kernel has begun a use and not waited for it. */
int ucp_st_ahead_is_in_use(const ucp_st_op_t *op);

/** Take back what no kernel has begun. */
void ucp_st_ahead_take_back(ucp_st_op_t *op);

/** A queue is to be destroyed: UCS_ERR_BUSY while an operation of it is ahead,
 *  unless the queue is in error. */
ucs_status_t ucp_st_ahead_leave(ucp_st_queue_h queue);

#endif
