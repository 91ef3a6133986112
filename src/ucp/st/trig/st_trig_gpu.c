/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_gpu.c - memory of devices on lane trig.
 *
 * The NIC reads and writes it itself: no host thread copies, and no memory of
 * the host is in between. Where it cannot be registered, the operation is given
 * memory of the host in its place (st_stage.h), and it is said why.
 *
 * What makes it visible, by the documents of those who make the parts:
 *
 *   - A kernel's stores to the NIC's read. The doorbell is a store of the
 *     stream, which comes after all that the stream did before, for the whole
 *     system (gstream_gpu.c), or the buffer is staged. Where the service thread
 *     stores it, that thread saw a store of the stream first, for which the
 *     same holds.
 *   - The NIC's data to what the stream does behind the wait. Each write asks
 *     for FI_DELIVERY_COMPLETE, and the word is written behind the data. But
 *     the two lie in different places, the word in memory of the host. So
 *     behind the wait the device must not have older data in a cache, nor the
 *     new one in a buffer: it keeps remote writes in order, or the wait flushes
 *     them, or remote writes invalidate what is cached. Which it is depends on
 *     the device (ucs_gstream_memory_remote_fault(); its sources are in
 *     gstream_cuda.c and gstream_hip.c). A device that has none of it gets its
 *     data by way of the host, whose copies are in order.
 *   - That the data is at the device when the word is in memory of the host:
 *     PCIe orders nothing between two targets. See docs/protocols.md, "Data in
 *     a GPU": unproved, and it never ran on such a NIC.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig.h"
#include "core/st_log.h"
#include "core/st_queue.h"
#include "core/st_stage.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>


/* All NICs that may get a share */
int ucp_st_trig_takes(ucp_st_worker_h worker, void *address, size_t length,
                      const ucs_gstream_memory_attr_t *memory, int is_written)
{
    const ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    const char *fault            = ucs_gstream_memory_remote_fault(memory,
                                                                   is_written);
    char reason[UCT_TRIG_REASON_MAX];
    unsigned i;

    for (i = 0; (i < dev->num_rails) && (fault == NULL); ++i) {
        if (uct_trig_mem_check(dev->rails[i].iface, address, length, reason,
                               sizeof(reason)) != UCS_OK) {
            fault = reason;
        }
    }
    if (fault != NULL) {
        ucs_diag("lane 'trig' does not reach memory %p of device %d of %s: %s",
                 address, memory->device, ucs_gstream_type_name(memory->type),
                 fault);
    }
    return fault == NULL;
}

/* Asked again when the operation is bound: as it was offered */
int ucp_st_trig_reaches(const ucp_st_op_t *op)
{
    const ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    if (trig != NULL) {
        return trig->reaches;
    }
    if (!ucp_st_stage_is_device(&op->memory) || (op->msg_length == 0)) {
        return 1;
    }
    return ucp_st_trig_takes(op->worker, op->buffer, op->msg_length,
                             &op->memory, op->dir == UCP_ST_DIR_RECV);
}

/* Runs on a stream of the host, with operations and the places in their inboxes
 */
static void ucp_st_trig_landing_func(void *arg)
{
    void *const *item = arg;
    ucp_st_op_t *op;
    ucs_status_t status;

    for (; (op = item[0]) != NULL; item += 2) {
        status = ucs_gstream_memory_copy_by(&op->memory, op->data, item[1],
                                            op->msg_length);
        if (status != UCS_OK) {
            ucp_st_stage_failed(op, status);
        }
    }
}

size_t ucp_st_trig_landing_cmd(ucp_st_op_t *op, ucs_gstream_cmd_t *cmd)
{
    void *place   = UCS_PTR_BYTE_OFFSET(ucp_st_trig_op(op)->parts->inbox,
                                        ucp_st_trig_inbox_offset(op,
                                                                 op->started));
    void *items[] = {op, place};

    if (!ucp_st_stage_is_used(op) && ucp_st_stage_is_device(&op->memory) &&
        !ucp_st_queue_is_gpu(op->queue)) {
        return ucp_st_queue_add_launch(op->queue, ucp_st_trig_landing_func,
                                       items, 2, cmd);
    }
    cmd->type          = UCS_GSTREAM_CMD_COPY;
    cmd->u.copy.dst    = op->data;
    cmd->u.copy.src    = place;
    cmd->u.copy.length = op->msg_length;
    return 1;
}
