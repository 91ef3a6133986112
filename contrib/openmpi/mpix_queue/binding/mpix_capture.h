/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_capture.h - endpoints, worker and tags that pml/ucx uses.
 *
 * The library defines UCP's tag calls, which pml/ucx calls, and passes them on.
 * While a thread captures, a call of its own is recorded and not carried out.
 * That is how the endpoint behind (communicator, rank) becomes known without
 * reading private structures of OpenMPI.
 *
 * pml/ucx's tags have 24 bits of MPI tag, 20 of rank and 20 of context id.
 */
#ifndef MPIX_CAPTURE_H_
#define MPIX_CAPTURE_H_

#include <mpi.h>
#include <ucp/api/ucp.h>

#include <stdint.h>

#define MPIX_TAG_RANK_SHIFT  20
#define MPIX_TAG_SHIFT       40
#define MPIX_TAG_FIELD_MASK  0xfffffull  /* Of rank and of context */

/* Contexts of MPI stay below this bit; with it set, no receive of MPI takes a
 * message, not even one of any source and tag. */
#define MPIX_TAG_CONTEXT_BIT (1ull << 19)


/* UCP's own functions, found behind this library. Written before main(). */
typedef struct mpix_real {
    __typeof__(&ucp_tag_send_nb)       tag_send_nb;
    __typeof__(&ucp_tag_send_nbx)      tag_send_nbx;
    __typeof__(&ucp_tag_send_sync_nb)  tag_send_sync_nb;
    __typeof__(&ucp_tag_send_sync_nbx) tag_send_sync_nbx;
    __typeof__(&ucp_tag_recv_nb)       tag_recv_nb;
    __typeof__(&ucp_tag_recv_nbx)      tag_recv_nbx;
    __typeof__(&ucp_worker_progress)   worker_progress;
    __typeof__(&ucp_worker_destroy)    worker_destroy;
} mpix_real_t;

extern mpix_real_t mpix_real;


/* Check that MPI runs over pml/ucx, that calls are captured and that tags are
 * as described above. Needs two communicators of this process alone that nobody
 * else uses. On UCS_OK the PML's worker is filled in; UCS_ERR_NO_ELEM if calls
 * are not captured, UCS_ERR_UNSUPPORTED if tags are something else. */
ucs_status_t mpix_capture_check(MPI_Comm self, MPI_Comm other,
                                ucp_worker_h *worker_p);

/* Find the endpoint of a rank of a communicator, and the context id. Nothing is
 * sent. Only after mpix_capture_check() was successful. */
ucs_status_t mpix_capture_peer(MPI_Comm comm, int rank, ucp_ep_h *ep_p,
                               uint64_t *context_p);

#endif
