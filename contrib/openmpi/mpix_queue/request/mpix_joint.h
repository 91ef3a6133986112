/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_joint.h - requests that are matched, started and waited for together:
 * those of MPIX_Exchange_init and of halos. (mpix_exchange.h has messages with
 * addresses.)
 *
 * The application has a request of kind MPIX_REQ_EXCHANGE: a receive from
 * nobody that MPI has made, all calls on which end here. Its record and those
 * of the members point to the joint. A member becomes an operation of the
 * joint's ucp_st_exchange when the address of its peer is there, and is matched
 * as it would be alone.
 */
#ifndef MPIX_JOINT_H_
#define MPIX_JOINT_H_

#include "mpix_queues.h"
#include "mpix_request.h"

#include <ucp_st.h>
#include <ucs/datastruct/list.h>

#include <mpi.h>

#include <stddef.h>
#include <stdint.h>


/* Protected by the lock, but for what is constant. */
typedef struct mpix_joint {
    ucs_list_link_t   matching;   /* In the list of those; else alone */
    mpix_req_t        *req;       /* The application's; constant */
    ucp_st_exchange_h st;         /* NULL until a member has an operation, or
                                     without members all are matched */
    int               is_coupled; /* Constant */
    int               is_started; /* And not waited for; of the thread that
                                     calls for its queue, as is: */
    uint64_t          started;    /* Uses */
    const mpix_req_t  *failed;    /* Whose matching has failed; or NULL */
    int               count;
    mpix_req_t        *members[];
} mpix_joint_t;


/* Make a request of others, none of which is MPI_REQUEST_NULL. Returns an MPI
 * code that is not raised. Takes the lock. */
int mpix_joint_create(const char *func, MPI_Comm comm, int count,
                      const MPI_Request *requests, int is_coupled,
                      MPI_Request *request);

/* Give the members back, which are not matched then, and free it. May be NULL.
 * Needs the lock. */
void mpix_joint_free(mpix_joint_t *joint);

/* A request of ours, or one of its members, is gone behind this library's back:
 * as mpix_joint_cancel(), and it can only be freed. Needs the lock. */
ucs_status_t mpix_joint_forget(mpix_req_t *req);

/* Non-zero for a member. */
static inline int mpix_joint_is_member(const mpix_req_t *req)
{
    return (req->joint != NULL) && (req->kind != MPIX_REQ_EXCHANGE);
}

/* Refuse what a call would do with a member alone. Returns an MPI code. */
int mpix_joint_refuse(const mpix_where_t *where);


/* The matching. With the lock. */

/* Call a function for each member, until one returns an error. Returns that MPI
 * code. */
int mpix_joint_for_each(const mpix_where_t *where, const mpix_joint_t *joint,
                        int (*func)(const mpix_where_t *where,
                                    mpix_req_t *req));

/* Begin to match those that are not matched. */
void mpix_joint_push(mpix_req_t *req);

/* Make a member's operation, which is new, part of the st exchange. */
ucs_status_t mpix_joint_add(mpix_req_t *member);

/* Look which ones are matched; returns their number. */
unsigned mpix_joint_progress(void);

/* As mpix_match_cancel(). */
ucs_status_t mpix_joint_cancel(mpix_req_t *req);

/* What to say of a failed matching: which member, and why. */
const char *mpix_joint_cause(const mpix_joint_t *joint, char *buffer,
                             size_t max);


/* The calls that enqueue. */

/* What mpix_enqueue_requests() finds where there is one. */
#define MPIX_JOINT_FOUND (-2)

/* Start or wait for requests of which some are exchanges. Returns an MPI code
 * that is not raised. Takes the lock. */
int mpix_joint_enqueue(const mpix_enqueue_call_t *call);

/* The same for one on an st queue. */
ucs_status_t mpix_joint_start(ucp_st_queue_h queue, mpix_joint_t *joint);
ucs_status_t mpix_joint_wait(ucp_st_queue_h queue, mpix_joint_t *joint);

/* The st queue of the last start; NULL if there was none, or it was freed. */
ucp_st_queue_h mpix_joint_queue(const mpix_joint_t *joint);

#endif
