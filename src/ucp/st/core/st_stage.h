/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_stage.h - buffers that a lane does not reach, as memory of devices; and
 * those whose bytes lie in blocks.
 *
 * Such a buffer is staged: the lane moves host memory in its place, which
 * devices reach. The stream copies a send's data to there before it starts it,
 * and a receive's data from there once it has waited for it. So it is all in
 * the order of the stream, and a lane knows nothing of it. A use ends before
 * the next one starts: one block of memory serves all uses of an operation.
 */
#ifndef UCP_ST_STAGE_H_
#define UCP_ST_STAGE_H_

#include "core/st_op.h"
#include "core/st_queue.h"

#include <ucs_gstream_memory.h>

struct ucp_st_lane_ops;

/** Commands that copy a use's data, at most */
#define UCP_ST_STAGE_MAX_CMDS 2

/** Ask the runtimes whose memory the buffer lies in, before it is matched. */
void ucp_st_stage_query(const void *buffer, size_t length,
                        ucs_gstream_memory_attr_t *attr);

/** The buffer lies in memory of a device, or in one that moves to devices. */
static inline int ucp_st_stage_is_device(const ucs_gstream_memory_attr_t *attr)
{
    return attr->type != UCS_GSTREAM_TYPE_HOST;
}

/** The lane moves other memory in place of the buffer. */
static inline int ucp_st_stage_is_used(const ucp_st_op_t *op)
{
    return (op->stage != NULL) && (op->data == op->stage);
}

/** Set the operation's `data` to what a lane is to move. UCS_ERR_NO_MEMORY. The
 *  worker's lock is held, as it is for the next one. */
ucs_status_t ucp_st_stage_set(ucp_st_op_t *op,
                              const struct ucp_st_lane_ops *lane);

/** Give back the memory in place of the buffer, which no lane uses any more. */
static inline void ucp_st_stage_release(ucp_st_op_t *op)
{
    ucs_gstream_memory_put(op->stage, op->stage_length);
    op->stage = NULL;
}

/** A host stream could not copy from or to memory of a device: the operation or
 *  its queue fails. Runs on the stream; takes the worker's lock. */
void ucp_st_stage_failed(ucp_st_op_t *op, ucs_status_t status);

/** Before a start is checked, without a lock: ask the runtime whether the
 *  buffers of operations are still there. Operations may be NULL. */
void ucp_st_stage_look(const ucp_st_op_h *ops, size_t count);

/** A start on the queue: UCS_ERR_UNSUPPORTED, logged, if its stream cannot copy
 *  the buffer; UCS_ERR_INVALID_PARAM, logged, if that was gone. */
ucs_status_t ucp_st_stage_check(ucp_st_queue_h queue, const ucp_st_op_t *op);

/** Write to `cmds` the copy of a use's data to or from the memory in its place,
 *  if the buffer is staged and the operation of this direction: how many
 *  commands, at most UCP_ST_STAGE_MAX_CMDS. */
size_t ucp_st_stage_copy(ucp_st_op_t *op, ucp_st_queue_h queue,
                         ucp_st_dir_t dir, ucs_gstream_cmd_t *cmds);

#endif
