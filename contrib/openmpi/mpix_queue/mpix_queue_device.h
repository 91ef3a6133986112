/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue_device.h - matched requests that kernels start and wait for: a
 * part of mpix_queue.h's interface that programs include by itself, also where
 * their kernels are. ucp_st_device.h has what a kernel calls.
 *
 *     MPI_Send_init(...), MPIX_Match(&request, MPI_STATUS_IGNORE)
 *     MPIX_Request_device(request, &handle)
 *     MPIX_Post_ahead(queue, request, 100)
 *     kernels on the queue's stream, with the handle:
 *         ucp_st_device_start(handle, UCP_ST_DEVICE_BLOCK)
 *         ucp_st_device_wait(handle, UCP_ST_DEVICE_BLOCK)
 *     MPI_Request_free(&request)
 */
#ifndef MPIX_QUEUE_DEVICE_H_
#define MPIX_QUEUE_DEVICE_H_

#include "mpix_queue.h"

#include <ucp_st_device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A request for kernels. */
typedef ucp_st_device_op_t MPIX_Device_handle;


/**
 * Get a handle of a matched request for kernels. Local. The same one each time.
 *
 * GPUs of one node reach both buffers, and the message goes by kernels
 * (docs/gpu.md, tier K); or the request's is in memory of a GPU, a card moves
 * it (lane trig), and the GPU reaches the card's trigger pages. The kernels run
 * on the GPU that has the request's buffer; if that is the host's, on the one
 * that has the process's queues.
 *
 * @param [in]  request A matched request.
 * @param [out] handle  Filled on success only. Good until the request is freed;
 *                      from then on kernels are told so.
 *
 * @return MPI_SUCCESS; MPI_ERR_REQUEST if the request is not matched;
 *         MPI_ERR_UNSUPPORTED_OPERATION if kernels cannot start it, with the
 *         lane or what else is missing in the log; MPI_ERR_ARG; MPI_ERR_OTHER
 *         if it has failed.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Request_device(MPI_Request request, MPIX_Device_handle *handle);


/**
 * Post uses ahead: the next ones, so many, are started and waited for by
 * kernels, one after the other, on the queue's stream or behind it. Enqueues
 * nothing. To post more adds to what is there.
 *
 * Until kernels have waited for the last one a start of the request is refused.
 * Uses that no kernel has started when the request is freed are taken back.
 *
 * @param [in] queue   The queue.
 * @param [in] request A matched request.
 * @param [in] uses    How many; 0 is legal.
 *
 * @return MPI_SUCCESS; as @ref MPIX_Request_device; MPI_ERR_REQUEST also if the
 *         request is started and not waited for; MPI_ERR_COUNT;
 *         MPI_ERR_UNSUPPORTED_OPERATION also if the queue's stream is not of
 *         the GPU that has the buffer.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Post_ahead(MPIX_Queue queue, MPI_Request request, int uses);

#ifdef __cplusplus
}
#endif

#endif
