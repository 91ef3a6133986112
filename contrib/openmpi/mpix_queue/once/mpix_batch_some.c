/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_batch_some.c - waits of a stream for some of its messages that are used
 * once, as interfaces have them whose waits name requests.
 *
 * A wait that names all that was started and not waited for is the queue's. Any
 * other one has a gate of the batch for what MPI has, and a wait of the st
 * worker for the rest.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_error.h"
#include "mpix_batch.h"
#include "mpix_fifo.h"
#include "request/mpix_queues.h"


/* Tells whether nothing else was started since the last wait for all. No
 * message is there twice. */
static int mpix_some_is_all(const mpix_batch_t *batch, mpix_msg_t *const msgs[],
                            int count)
{
    int i;

    if ((batch->started - batch->waited - batch->left) != (uint64_t)count) {
        return 0;
    }
    for (i = 0; i < count; ++i) {
        if (msgs[i]->number <= batch->waited) {
            return 0;
        }
    }
    return 1;
}

static int mpix_some_wait_mpi(const char *func, struct mpix_queue *queue,
                              mpix_msg_t *const msgs[], int count)
{
    ucs_gstream_cmd_t cmds[2] = {
        {.type = UCS_GSTREAM_CMD_WAIT64}, {.type = UCS_GSTREAM_CMD_WRITE64}
    };
    mpix_batch_t *batch       = queue->batch;
    int num_mpi               = 0;
    ucs_gstream_gate_t *gate;
    int rc, i;

    for (i = 0; i < count; ++i) {
        num_mpi += !msgs[i]->is_fifo;
    }
    if (num_mpi == 0) {
        return MPI_SUCCESS;
    }

    gate = mpix_batch_hold(batch, msgs, count);
    if (gate == NULL) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory");
    }
    cmds[0].u.word.address = batch->gates.word;
    cmds[0].u.word.value   = batch->gates.count;
    cmds[1].u.word.address = batch->passed;
    cmds[1].u.word.value   = batch->commands + 1;
    rc                     = mpix_batch_command(func, queue, cmds, 2);
    mpix_batch_hold_end(gate, msgs, count, rc);
    return rc;
}

/* Has MPI's messages store their results, or stores those of messages that are
 * over. */
static void mpix_some_set_results(mpix_msg_t *const msgs[],
                                  MPI_Status *const results[], int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        if (!msgs[i]->is_fifo && (results[i] != NULL) &&
            !mpix_msg_set_result(msgs[i], results[i])) {
            mpix_msg_get_result(msgs[i], results[i]);
        }
    }
}

int mpix_batch_wait_some(const char *func, struct mpix_queue *queue,
                         mpix_msg_t *const msgs[], MPI_Status *const results[],
                         int count)
{
    const int is_all = mpix_some_is_all(queue->batch, msgs, count);
    int rc, i;

    mpix_some_set_results(msgs, results, count);
    rc = is_all ? mpix_batch_wait_all(func, queue) :
                  mpix_some_wait_mpi(func, queue, msgs, count);
    rc = (rc == MPI_SUCCESS) ? mpix_fifo_wait_some(func, queue, msgs, results,
                                                   count, is_all) :
                               rc;
    for (i = 0; i < count; ++i) {
        if (rc == MPI_SUCCESS) {
            queue->batch->left += (msgs[i]->number > queue->batch->waited);
            mpix_msg_leave(msgs[i]);
        } else if (!msgs[i]->is_fifo) {
            (void)mpix_msg_set_result(msgs[i], NULL);
        }
    }
    return rc;
}
