/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_exchange.h - the messages that carry st addresses.
 *
 * A binding sends and receives them. All functions are to be called with the
 * lock held.
 */
#ifndef MPIX_EXCHANGE_H_
#define MPIX_EXCHANGE_H_

#include "mpix_proto.h"

#include <mpi.h>
#include <ucp/api/ucp.h>
#include <ucs/datastruct/list.h>

#include <stddef.h>
#include <stdint.h>


/* Where a message goes: the members of a binding. */
typedef struct mpix_route {
    ucp_ep_h ep;         /* ucx */
    int      world_rank; /* mpi */
} mpix_route_t;


/* What is in flight, sent or received. */
typedef struct mpix_exchange_msg {
    ucs_list_link_t list;
    void            *ucp_request; /* NULL if it completed at once */
    MPI_Request     mpi_request;
    int             done;         /* Release-stored, last; pairs with the
                                     acquire in mpix_exchange_is_done() */
    ucs_status_t    status;
} mpix_exchange_msg_t;


typedef struct mpix_exchange_out {
    mpix_exchange_msg_t  msg;
    mpix_route_t         route;
    mpix_proto_address_t header;
    uint8_t              address[];
} mpix_exchange_out_t;


/* The binding says what it knows of where a message comes from; it is not in
 * the header of another version. */
typedef struct mpix_exchange_in {
    mpix_exchange_msg_t  msg;
    int                  world_rank; /* Of the sender, or -1 */
    int                  rank;       /* In the communicator, or -1: any */
    uint64_t             context;    /* Not valid if rank is -1 */
    size_t               length;     /* Of header and addresses; 0: too long,
                                        there is no room for it */
    mpix_proto_address_t header;
    uint8_t              address[];
} mpix_exchange_in_t;


struct mpix_peer;

/* Send the own address to a peer. Returns UCS_OK once it is on its way. */
ucs_status_t mpix_exchange_send(const struct mpix_peer *peer,
                                const mpix_route_t *route);

/* Answer an address that this process has none to give. */
ucs_status_t mpix_exchange_refuse(const mpix_exchange_in_t *in);

/* Bytes of a message, from the header on. */
size_t mpix_exchange_out_length(const mpix_exchange_out_t *out);

/* Make room for a message of so many bytes, as its sender says; NULL if there
 * is no memory, of which it warns. Takes no lock. */
mpix_exchange_in_t *mpix_exchange_in_create(size_t length);

/* Put it behind those that have arrived, or will. */
void mpix_exchange_arrived(mpix_exchange_in_t *in);

/* Whether a message's header is of this version, its lengths are right, and its
 * ranks may be some. Takes no lock. */
ucs_status_t mpix_exchange_check(const mpix_exchange_in_t *in);

/* Set when a message is done, by any thread. */
static inline void mpix_exchange_done(mpix_exchange_msg_t *msg,
                                      ucs_status_t status)
{
    msg->status = status;
    __atomic_store_n(&msg->done, 1, __ATOMIC_RELEASE);
}

static inline int mpix_exchange_is_done(const mpix_exchange_msg_t *msg)
{
    return __atomic_load_n(&msg->done, __ATOMIC_ACQUIRE);
}

/* A message is out, or could not be sent, of which it warns: free it. Takes no
 * lock. */
void mpix_exchange_out_free(mpix_exchange_out_t *out);

/* Get the address that arrived from a rank of the communicator with 'context',
 * the process with 'world_rank' in MPI_COMM_WORLD (-1: any); another process's,
 * left over from a communicator that had the same context, is passed over. The
 * caller owns what is returned; NULL if it is not there yet. */
mpix_exchange_in_t *mpix_exchange_take(int rank, uint64_t context,
                                       int world_rank);

/* Get any message that has arrived, the oldest first. */
mpix_exchange_in_t *mpix_exchange_take_any(void);

/* The address in a message. UCS_ERR_CANCELED if the sender is in MPI_Finalize
 * and gives none, UCS_ERR_UNSUPPORTED if its library is of another version,
 * UCS_ERR_INVALID_ADDR if the bytes are no address or too many, or the status
 * of the receive. */
ucs_status_t mpix_exchange_in_address(const mpix_exchange_in_t *in,
                                      const void **address_p, size_t *length_p);

void mpix_exchange_in_free(mpix_exchange_in_t *in);

/* Drop what has arrived. */
void mpix_exchange_cleanup(void);

#endif
