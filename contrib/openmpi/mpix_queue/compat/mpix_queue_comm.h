/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue_comm.h - the form of HPE's calls in which the communicator is the
 * queue's: MPIX_Create_queue(comm, stream, &queue), and MPIX_Enqueue_send and
 * MPIX_Enqueue_recv without one. The number of arguments tells the forms apart
 * in mpix_queue.h, so that this is all there is to it.
 */
#ifndef MPIX_COMPAT_MPIX_QUEUE_COMM_H_
#define MPIX_COMPAT_MPIX_QUEUE_COMM_H_

#include <mpix_queue.h>

#endif
