/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_kernel.c - one-sided operations on lane direct that a GPU's stream
 * carries out itself, by a kernel of the library each (ucs_gstream_move.h).
 *
 * The kernels have a way of their own, as the service thread carries out the
 * others of the lane for such a stream, late: a strict operation waits for
 * these. Nothing waits for kernels, which are in the order of their stream. An
 * operation has ended when the stream has passed its submission. What it holds
 * is given back later: at the queue's next one, or when memory or a key is to
 * go.
 *
 * A kernel notifies no thread of its signal. So the owner of the word says in
 * its key that its service thread looks for signals, while a stream sleeps that
 * does not look itself. It does so if the process has loaded a GPU's runtime:
 * others have host streams alone, which notifications wake sooner.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma.h"
#include "core/st_log.h"

#include <ucs_gstream_move.h>

#include <ucs/sys/math.h>

/** An operation that was enqueued. */
typedef struct ucp_st_rma_kernel_op {
    ucs_list_link_t    list; /* in the queue's, or unused */
    uint64_t           seq;  /* its submission */
    ucp_st_rma_t       rma;
    ucs_gstream_move_t move; /* what its command names */
} ucp_st_rma_kernel_op_t;

/* How long a call waits for memory to be registered, seconds: it may be some
 * that another thread's call keeps from ending. Then threads do the operations
 * until it is. */
#define UCP_ST_RMA_REGISTER_TIME 1

/* Where streams of devices have some memory; NULL if it is being registered */
static void *ucp_st_rma_place_ask(const ucp_st_rma_place_t *place,
                                  ucs_gstream_h stream)
{
    ucs_gstream_type_t type = ucs_gstream_type(stream);
    int device              = ucs_gstream_pair_device(stream);
    void *start             = NULL;
    ucs_status_t status     = UCS_ERR_UNREACHABLE;

    if (place->map != NULL) {
        status = ucp_st_direct_map_reach(place->map, type, place->address,
                                         UCP_ST_RMA_REGISTER_TIME, &start);
    } else if (device >= 0) {
        status = ucs_gstream_pair_address(type, device, place->address,
                                          place->length, &start);
    }
    return UCS_STATUS_IS_ERR(status) ? UCP_ST_RMA_PLACE_NONE : start;
}

void *ucp_st_rma_place_find(ucp_st_rma_place_t *place, ucs_gstream_h stream)
{
    ucs_gstream_type_t type = ucs_gstream_type(stream);
    void *start             = __atomic_load_n(&place->starts[type],
                                              __ATOMIC_RELAXED);
    void *none              = NULL;

    if (start == NULL) {
        start = ucp_st_rma_place_ask(place, stream);
        /* The first answer of several threads stays */
        if ((start != NULL) &&
            !__atomic_compare_exchange_n(&place->starts[type], &none, start, 0,
                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            start = none;
        }
    }
    return (start == UCP_ST_RMA_PLACE_NONE) ? NULL : start;
}

/* Where the queue's kernels have a byte of some memory, which was found */
static void *ucp_st_rma_kernel_address(ucp_st_queue_h queue,
                                       const ucp_st_rma_place_t *place,
                                       size_t offset)
{
    return UCS_PTR_BYTE_OFFSET(
            __atomic_load_n(&place->starts[ucs_gstream_type(queue->stream)],
                            __ATOMIC_RELAXED), offset);
}

/* Whether the queue's stream runs kernels of the library */
static int ucp_st_rma_kernel_prepare(ucp_st_queue_h queue)
{
    ucp_st_queue_rma_t *rma = ucp_st_queue_rma(queue);

    if (!ucp_st_queue_is_gpu(queue) ||
        (queue->worker->config.direct_gpu_tier ==
         UCP_ST_DIRECT_TIER_SERVICE)) {
        return 0;
    }
    if (!rma->has_asked) {
        rma->has_asked = 1;
        (void)ucs_gstream_move_prepare(queue->stream, &rma->cell);
    }
    return rma->cell != NULL;
}

static int ucp_st_rma_kernel_reaches(ucp_st_queue_h queue, ucp_st_rkey_t *rkey)
{
    return (rkey->way == UCP_ST_LANE_DIRECT) &&
           (ucp_st_rma_place_find(&rkey->place, queue->stream) != NULL);
}

unsigned ucp_st_rma_kernel_parts(const ucp_st_rma_t *rma)
{
    ucp_st_queue_h queue = rma->queue;
    unsigned parts       = 0;

    if ((rma->type == UCP_ST_RMA_ADD) || !ucp_st_rma_kernel_prepare(queue)) {
        return 0;
    }
    if ((rma->length > 0) && ucp_st_rma_kernel_reaches(queue, rma->rkey) &&
        (ucp_st_rma_place_find(&rma->mem->place, queue->stream) != NULL)) {
        parts |= UCP_ST_RMA_KERNEL_DATA;
    }
    if ((rma->signal != NULL) && (rma->signal_op == UCP_ST_SIGNAL_SET) &&
        rma->signal->is_looked && ucp_st_rma_kernel_reaches(queue,
                                                            rma->signal)) {
        parts |= UCP_ST_RMA_KERNEL_SIGNAL;
    }
    return parts;
}

void ucp_st_rma_kernel_reap(ucp_st_queue_h queue)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(queue->worker);
    ucs_list_link_t *ops  = &ucp_st_queue_rma(queue)->kernels;
    ucp_st_rma_kernel_op_t *op;

    while (!ucs_list_is_empty(ops)) {
        op = ucs_list_head(ops, ucp_st_rma_kernel_op_t, list);
        if (ucp_st_queue_passed(queue) < op->seq) {
            return;
        }
        ucp_st_rma_drop(&op->rma);
        ucs_list_del(&op->list);
        ucs_list_add_head(&dev->free_kernel_ops, &op->list);
    }
}

int ucp_st_rma_kernel_is_behind(ucp_st_queue_h queue, ucp_st_peer_h peer)
{
    ucp_st_rma_kernel_op_t *op;

    ucp_st_rma_kernel_reap(queue);
    ucs_list_for_each(op, &ucp_st_queue_rma(queue)->kernels, list) {
        if (op->rma.peer == peer) {
            return 1;
        }
    }
    return 0;
}

static ucs_status_t ucp_st_rma_kernel_start(const ucp_st_rma_t *rma,
                                            ucp_st_rma_flow_t *flow,
                                            ucs_gstream_cmd_t *cmd)
{
    ucp_st_queue_h queue    = rma->queue;
    ucp_st_queue_rma_t *own = ucp_st_queue_rma(queue);
    ucp_st_rma_kernel_op_t *op;
    void *near, *far;

    ucp_st_rma_kernel_reap(queue);
    op = ucp_st_rma_obj_get(&ucp_st_rma_dev(queue->worker)->free_kernel_ops,
                            sizeof(*op));
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    op->seq         = queue->seq + 1;
    op->rma         = *rma;
    op->move.cell   = ucs_gstream_cell_address(own->cell);
    op->move.failed = queue->marks[UCP_ST_QUEUE_WORD_FAILED];
    op->move.length = rma->length;
    if (rma->length > 0) {
        near = ucp_st_rma_kernel_address(
                queue, &rma->mem->place,
                UCS_PTR_BYTE_DIFF(rma->mem->address, rma->buffer));
        far  = ucp_st_rma_kernel_address(queue, &rma->rkey->place, rma->offset);
        op->move.dst = (rma->type == UCP_ST_RMA_PUT) ? far : near;
        op->move.src = (rma->type == UCP_ST_RMA_PUT) ? near : far;
    }
    if (rma->signal != NULL) {
        op->move.signal = ucp_st_rma_kernel_address(queue, &rma->signal->place,
                                                    rma->signal_offset);
        op->move.value  = rma->signal_value;
    }
    ucs_list_add_tail(&own->kernels, &op->list);
    cmd->type   = UCS_GSTREAM_CMD_MOVE;
    cmd->u.move = &op->move;
    return UCS_OK;
}

static void ucp_st_rma_kernel_undo(const ucp_st_rma_t *rma,
                                   ucp_st_rma_flow_t *flow)
{
    ucp_st_queue_rma_t *own    = ucp_st_queue_rma(rma->queue);
    ucp_st_rma_kernel_op_t *op = ucs_list_tail(&own->kernels,
                                               ucp_st_rma_kernel_op_t, list);

    ucs_list_del(&op->list);
    ucs_list_add_head(&ucp_st_rma_dev(rma->queue->worker)->free_kernel_ops,
                      &op->list);
}

/* But for these it is as lane direct, whose keys it uses */
const ucp_st_rma_lane_ops_t ucp_st_rma_kernel_ops = {
    .id         = UCP_ST_LANE_DIRECT,
    .is_orderly = 1,
    .prepare    = ucp_st_rma_prepare_none,
    .start      = ucp_st_rma_kernel_start,
    .undo       = ucp_st_rma_kernel_undo
};
