/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_request.h - persistent requests and their st operations.
 */
#ifndef MPIX_REQUEST_H_
#define MPIX_REQUEST_H_

#include "mpix_comm.h"
#include "mpix_peer.h"

#include <ucp_st.h>
#include <mpi.h>

#include <stddef.h>
#include <stdint.h>


typedef enum {
    MPIX_REQ_SEND,
    MPIX_REQ_RECV,
    MPIX_REQ_OTHER, /* Persistent, but can not be matched */
    MPIX_REQ_COLL   /* A collective */
} mpix_req_kind_t;


/*
 *         Match, Imatch         the peer's address came
 *   IDLE --------------> PENDING ----------------------> MATCHING ---> MATCHED
 *    ^                      |                                |
 *    |                      +--- the peer is no good ---+    |
 *    |                                                  v    v
 *    +--- no resources ------------------------------- (error) ---> FAILED
 */
typedef enum {
    MPIX_REQ_IDLE,     /* MPI's own: MPI_Start may be called */
    MPIX_REQ_PENDING,  /* Waits for the peer's address */
    MPIX_REQ_MATCHING, /* Given to the st worker */
    MPIX_REQ_MATCHED,  /* Started on queues only */
    MPIX_REQ_FAILED    /* Can only be freed */
} mpix_req_state_t;


/* Scope of the messages of collectives, with the context's bits beside it. */
#define MPIX_REQ_SCOPE_COLL (1ull << 63)


struct mpix_coll;

/* Protected by the lock. What MPI_*_init was given never changes. */
typedef struct mpix_req {
    ucs_list_link_t  list;       /* In a list while PENDING or MATCHING */
    MPI_Request      handle;
    const char       *maker;     /* MPI function that made it */
    mpix_req_kind_t  kind;
    ucp_st_mode_t    mode;
    void             *buffer;    /* First byte, if contiguous */
    size_t           length;     /* In bytes */
    int              is_contig;
    int              rank;       /* Destination or source */
    int              tag;
    mpix_comm_t      *comm;
    mpix_peer_t      *peer;      /* NULL until needed, and for MPI_PROC_NULL */
    ucp_st_op_h      op;         /* While MATCHING, MATCHED */
    mpix_req_state_t state;
    int              code;       /* How the last matching ended */
    size_t           actual;     /* Bytes a use moves, once MATCHED */
    int              is_marked;  /* In the array that is being checked */
    uint64_t         scope;      /* 0, or of messages of a collective */
    struct mpix_coll *coll;      /* Of MPIX_REQ_COLL */
} mpix_req_t;


/* Leave a record of a collective's request that MPI has made. Returns an MPI
 * code, which has been raised. Takes the lock. */
int mpix_request_made_coll(struct mpix_coll *coll, MPI_Comm comm,
                           MPI_Request handle);

/* Look a handle up; NULL if it is no persistent request. Needs the lock. */
mpix_req_t *mpix_request_find(MPI_Request handle);

/* The request that owns an operation, or NULL. Needs the lock. */
mpix_req_t *mpix_request_find_op(ucp_st_op_h op);

/* What a message shows of a request: "send of 8 bytes to rank 1, tag 5". Writes
 * to 'buffer' and returns it. */
const char *mpix_request_str(const mpix_req_t *req, char *buffer, size_t max);

/* Communicator whose error handler is for these requests: that of the first one
 * that is known; MPI_COMM_NULL if there is none. Takes the lock. */
MPI_Comm mpix_request_comm(int count, const MPI_Request *requests);

/* The communicator is about to go: find the peers of its requests as long as
 * that is possible. Needs the lock. */
void mpix_request_resolve_peers(mpix_comm_t *comm);

/* Free all operations and records; warns of operations in use. Needs the
 * lock. */
void mpix_request_cleanup(void);

#define MPIX_REQ_STR_MAX 96

#endif
