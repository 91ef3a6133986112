/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_proto.h - the message that carries an st address to a peer, or tells it
 * that there will be none.
 *
 * It travels on pml/ucx's worker and endpoint, with a tag like those of MPI:
 * the sender's rank and the context of the communicator, the top bit of the
 * context set, and a constant in place of the MPI tag. One message goes each
 * way per communicator and rank, when the first request between the two is
 * matched. A process in MPI_Finalize answers such a message by one without an
 * address. It may not ask MPI for the way any more: the address of the asking
 * PML's worker is in the message.
 */
#ifndef MPIX_PROTO_H_
#define MPIX_PROTO_H_

#include "mpix_capture.h"

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

#define MPIX_PROTO_MAGIC   0x71787069u
#define MPIX_PROTO_VERSION 2u
#define MPIX_PROTO_TAG     0x4d5158ull


typedef struct mpix_proto_address {
    uint32_t magic;
    uint32_t version;
    int32_t  world_rank; /* Of the sender, in its MPI_COMM_WORLD */
    int32_t  dest_rank;  /* Of the receiver, in the communicator */
    uint32_t length;     /* Of the st address that follows, bytes; 0: none, the
                            sender is in MPI_Finalize */
    uint32_t pml_length; /* Of the UCP address of the sender's PML's worker,
                            behind the st address */
} UCS_S_PACKED mpix_proto_address_t;

_Static_assert(sizeof(mpix_proto_address_t) == 24,
               "the header has no holes");


/* What all these messages' tags have in common, and where. */
#define MPIX_PROTO_TAG_VALUE \
    ((MPIX_PROTO_TAG << MPIX_TAG_SHIFT) | MPIX_TAG_CONTEXT_BIT)
#define MPIX_PROTO_TAG_MASK \
    ((UINT64_MAX << MPIX_TAG_SHIFT) | MPIX_TAG_CONTEXT_BIT)


/* Tag of the message that 'rank' of the communicator with 'context' sends. */
static inline uint64_t mpix_proto_tag(int rank, uint64_t context)
{
    return MPIX_PROTO_TAG_VALUE | ((uint64_t)rank << MPIX_TAG_RANK_SHIFT) |
           context;
}

#endif
