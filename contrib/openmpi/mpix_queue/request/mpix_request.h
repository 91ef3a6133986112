/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_request.h - persistent requests and their st operations.
 */
#ifndef MPIX_REQUEST_H_
#define MPIX_REQUEST_H_

#include "binding/mpix_comm.h"
#include "binding/mpix_peer.h"
#include "binding/mpix_waits.h"
#include "mpix_buffer.h"

#include <ucp_st.h>
#include <ucs/sys/compiler_def.h>
#include <mpi.h>

#include <stddef.h>
#include <stdint.h>


typedef enum {
    MPIX_REQ_SEND,
    MPIX_REQ_RECV,
    MPIX_REQ_OTHER, /* Persistent, but can not be matched */
    MPIX_REQ_COLL,  /* A collective */
    MPIX_REQ_EXCHANGE /* Of others: mpix_joint.h */
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
    MPIX_REQ_IDLE,     /* MPI's own */
    MPIX_REQ_PENDING,  /* Waits for the peer's address */
    MPIX_REQ_MATCHING, /* Given to the st worker */
    MPIX_REQ_MATCHED,  /* Started on queues, or by MPI_Start */
    MPIX_REQ_FAILED    /* Can only be freed */
} mpix_req_state_t;


struct mpix_coll;
struct mpix_joint;

/* Protected by the lock. What MPI_*_init was given never changes. */
typedef struct mpix_req {
    ucs_list_link_t  list;       /* In a list while PENDING or MATCHING */
    MPI_Request      handle;
    const char       *maker;     /* MPI function that made it */
    mpix_req_kind_t  kind;
    ucp_st_mode_t    mode;
    const char       *type;      /* Kind of its datatype; or NULL: */
    MPI_Datatype     datatype;   /* one of MPI's own, which lives as long */
    mpix_buffer_t    *buffer;    /* NULL if the datatype is not known */
    int              is_in_place; /* The buffer is MPI_IN_PLACE */
    int              rank;       /* Destination or source */
    int              tag;
    mpix_comm_t      *comm;
    mpix_peer_t      *peer;      /* NULL until needed, and for MPI_PROC_NULL */
    ucp_st_op_h      op;         /* While MATCHING, MATCHED */
    mpix_req_state_t state;
    ucs_status_t     match_status; /* How the last matching ended */
    mpix_waits_t     waits;      /* While PENDING */
    uint64_t         told;       /* Uses whose end the host was told of */
    int              is_on_host; /* Last started by MPI_Start */
    int              is_marked;  /* In the array that is being checked */
    uint64_t         scope;      /* 0, or of messages of a collective */
    struct mpix_coll *coll;      /* Of MPIX_REQ_COLL */
    int              is_stand_in; /* Of a collective of an MPI that has none:
                                    a receive from nobody */
    struct mpix_joint *joint;    /* Of MPIX_REQ_EXCHANGE; or the one that it is
                                    a member of, or NULL */
} mpix_req_t;


#define MPIX_REQ_FILTER_BITS 10

/* Requests that are given (mpix_request_is_given()), or of messages that are
 * used once; and how many of them have a hash. Atomic: read by each call of MPI
 * that takes requests. A request is not given to two such calls at a time. */
extern unsigned mpix_request_given;
extern unsigned mpix_request_filter[1 << MPIX_REQ_FILTER_BITS];

static inline unsigned mpix_request_hash(MPI_Request handle)
{
    return ((uintptr_t)handle * 0x9e3779b97f4a7c15ull) >>
           (64 - MPIX_REQ_FILTER_BITS);
}

static inline int mpix_request_none_given(void)
{
    return ucs_likely(__atomic_load_n(&mpix_request_given, __ATOMIC_RELAXED) ==
                      0);
}

static inline int mpix_request_is_hash_given(MPI_Request handle)
{
    return __atomic_load_n(&mpix_request_filter[mpix_request_hash(handle)],
                           __ATOMIC_RELAXED) != 0;
}

/* Whether a request may be counted: if not, it is MPI's. */
static inline int mpix_request_may_be_given(const MPI_Request *request)
{
    return !mpix_request_none_given() && (request != NULL) &&
           mpix_request_is_hash_given(*request);
}

/* The same for any of several. */
static inline int mpix_request_any_given(int count, const MPI_Request *requests)
{
    int i;

    if (mpix_request_none_given() || (requests == NULL)) {
        return 0;
    }

    for (i = 0; i < count; ++i) {
        if (mpix_request_is_hash_given(requests[i])) {
            return 1;
        }
    }
    return 0;
}

/* Non-zero if the request is not MPI's: it was given to match, is of an
 * exchange or is one, or is a collective of an MPI that has none. */
int mpix_request_is_given(const mpix_req_t *req);

/* Count a request, as above, by 1 or -1. */
void mpix_request_count(MPI_Request handle, int change);

/* Change the state. Needs the lock. */
void mpix_request_set_state(mpix_req_t *req, mpix_req_state_t state);

/* Make it a member of an exchange, or of none: NULL. Needs the lock. */
void mpix_request_set_joint(mpix_req_t *req, struct mpix_joint *joint);

/* Fill what MPI_Recv would fill, and for a send what MPI_Send's request has,
 * but for the error. */
void mpix_request_fill_status(const mpix_req_t *req, int code,
                              MPI_Status *status);

/* Fill the status of a request that nothing was done with. */
void mpix_request_empty_status(MPI_Status *status, int code);

/* What a request is made of. */
typedef struct mpix_req_args {
    const char        *maker;
    mpix_req_kind_t   kind;
    ucp_st_mode_t     mode;
    const void        *buffer;
    MPI_Count         count;
    MPI_Datatype      datatype;
    int               rank;
    int               tag;
    MPI_Comm          comm;
    struct mpix_coll  *coll;
    int               is_stand_in;
    struct mpix_joint *joint;
    mpix_req_t        **req_p; /* Where the record goes; or NULL */
} mpix_req_args_t;

/* Leave a record of a request that MPI has made. Returns an MPI code that is
 * not raised. Takes the lock. */
int mpix_request_record(const mpix_req_args_t *args, MPI_Request handle);

/* Free a record that is in no table. Needs the lock. */
void mpix_request_destroy(mpix_req_t *req);

/* Take the record of a request that was cancelled out of the table and free it.
 * An exchange gives its members back. Needs the lock. */
void mpix_request_remove(mpix_req_t *req);

/* MPI_Request_free() for this library's own messages and exchanges, which were
 * cancelled or never matched. Takes the lock. */
void mpix_request_free(MPI_Request *request);

/* Look a handle up; NULL if it is no persistent request. Needs the lock. */
mpix_req_t *mpix_request_find(MPI_Request handle);

/* The request that owns an operation, or NULL. Needs the lock. */
mpix_req_t *mpix_request_find_op(ucp_st_op_h op);

/* What a message shows of a request: "send of 8 bytes (vector) to rank 1, tag
 * 5". Writes to 'buffer' and returns it. */
const char *mpix_request_str(const mpix_req_t *req, char *buffer, size_t max);

/* The same with its peer's rank in MPI_COMM_WORLD, if that is another one, and
 * of a collective's message: what warnings call its operation. */
const char *mpix_request_name(const mpix_req_t *req, char *buffer, size_t max);

/* What to say of a use that has failed. */
const char *mpix_request_cause(ucs_status_t status);

/* A request of a call. */
typedef struct mpix_where {
    const char       *func;
    int              count; /* Of the array; 1: the call takes one request */
    int              index;
    const mpix_req_t *req;  /* NULL if it is not known */
} mpix_where_t;

/* As mpix_fail(), of a request: the message begins with what it is, and goes on
 * with the given words, as "is not matched". */
int mpix_request_fail(const mpix_where_t *where, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Communicator whose error handler is for these requests: that of the first one
 * that is known; MPI_COMM_NULL if there is none. Takes the lock. */
MPI_Comm mpix_request_comm(int count, const MPI_Request *requests);

/* The communicator is about to go: find the peers of its requests as long as
 * that is possible. Needs the lock. */
void mpix_request_resolve_peers(mpix_comm_t *comm);

/* Free all operations and records, when collectives are gone; warns of
 * operations in use. Needs the lock. */
void mpix_request_cleanup(void);

#define MPIX_REQ_STR_MAX  112
#define MPIX_REQ_NAME_MAX 168

#endif
