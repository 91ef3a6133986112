/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_proto.h - the message that carries an st address to a peer, or tells it
 * that there will be none.
 *
 * How it travels is a matter of the binding. One message goes each way per
 * communicator and rank, when the first request between the two is matched. A
 * process in MPI_Finalize answers such a message by one without an address. It
 * may not ask MPI for the way any more: what it needs is in the message.
 */
#ifndef MPIX_PROTO_H_
#define MPIX_PROTO_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

#define MPIX_PROTO_MAGIC   0x71787069u
#define MPIX_PROTO_VERSION 3u

/* No message has more bytes: an st address has less than 17 MiB by its format,
 * and what an answer needs is far shorter */
#define MPIX_PROTO_MAX_LENGTH (32ul << 20)


/* Magic and version stay in front, in all versions. */
typedef struct mpix_proto_address {
    uint32_t magic;
    uint32_t version;
    uint64_t context;      /* Of the communicator, the same at all ranks */
    int32_t  world_rank;   /* Of the sender, in its MPI_COMM_WORLD */
    int32_t  source_rank;  /* Of the sender, in the communicator */
    int32_t  dest_rank;    /* Of the receiver, in the communicator */
    uint32_t length;       /* Of the st address that follows, bytes; 0: none,
                              the sender is in MPI_Finalize */
    uint32_t reply_length; /* Of what the binding needs for an answer, behind
                              the st address: the UCP address of the sender's
                              PML's worker with `ucx`, nothing with `mpi` */
} UCS_S_PACKED mpix_proto_address_t;

_Static_assert(sizeof(mpix_proto_address_t) == 36,
               "the header has no holes");

#endif
