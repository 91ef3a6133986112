/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_exchange.h - sends and receives st addresses over pml/ucx's worker.
 *
 * All functions are to be called with the lock held, by a thread that may call
 * MPI.
 */
#ifndef MPIX_EXCHANGE_H_
#define MPIX_EXCHANGE_H_

#include <ucp/api/ucp.h>

#include <stddef.h>
#include <stdint.h>


/* An address that arrived. */
typedef struct mpix_exchange_in mpix_exchange_in_t;


/* Send the own address to the other end of 'ep', which has 'dest_rank' in the
 * communicator. Returns UCS_OK once it is on its way. */
ucs_status_t mpix_exchange_send(ucp_ep_h ep, uint64_t tag, int dest_rank);

/* Answer an address that this process has none to give. Does not call MPI. */
ucs_status_t mpix_exchange_refuse(const mpix_exchange_in_t *in);

/* Take out what has arrived, up to so many messages a call, and drop what has
 * been sent. Returns the number of messages handled. */
unsigned mpix_exchange_progress(void);

/* Get the address that arrived with 'tag' from the process with 'world_rank' in
 * MPI_COMM_WORLD (-1: any); another process's, left over from a communicator
 * that had the same context, is passed over. The caller owns what is returned;
 * NULL if it is not there yet. */
mpix_exchange_in_t *mpix_exchange_take(uint64_t tag, int world_rank);

/* Get any message that has arrived, the oldest first. */
mpix_exchange_in_t *mpix_exchange_take_any(void);

/* The address in a message. UCS_ERR_CANCELED if the sender is in MPI_Finalize
 * and gives none, UCS_ERR_UNSUPPORTED if its library is of another version,
 * UCS_ERR_INVALID_ADDR if the bytes are no address, or the status of the
 * receive. */
ucs_status_t mpix_exchange_in_address(const mpix_exchange_in_t *in,
                                      const void **address_p, size_t *length_p);

void mpix_exchange_in_free(mpix_exchange_in_t *in);

/* The PML's worker goes: progress it once, and what was sent. Returns non-zero
 * once all of that is out. */
int mpix_exchange_drain(void);

/* Drop what has arrived. Warns of what is not sent. */
void mpix_exchange_cleanup(void);

#endif
