/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_wait_set.c - the requests of a call that tests them or waits for them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_wait_set.h"


/* The call that this thread is in; NULL if it is in none. */
static __thread mpix_wait_set_t *mpix_wait_call
        __attribute__((tls_model("initial-exec")));


void mpix_wait_set_enter(mpix_wait_set_t *set)
{
    set->outer     = mpix_wait_call;
    mpix_wait_call = set;
}

void mpix_wait_set_leave(mpix_wait_set_t *set)
{
    mpix_wait_call = set->outer;
}

void mpix_wait_set_fail(mpix_wait_set_t *set, int index, mpix_comm_t *comm,
                        int code)
{
    set->codes[index] = code;
    if ((set->failed == MPI_SUCCESS) && (code != MPI_SUCCESS)) {
        set->failed = code;
        set->comm   = comm;
        if (comm != NULL) {
            mpix_comm_ref(comm);
        }
    }
}

int mpix_wait_set_take(MPI_Request request, mpix_comm_t *comm, int class,
                       const char *text)
{
    mpix_wait_set_t *set = mpix_wait_call;
    mpix_where_t where   = {.req = NULL};
    int i;

    if (set == NULL) {
        return 0;
    }

    for (i = 0; i < set->count; ++i) {
        if (set->requests[i] == request) {
            where.func  = set->func;
            where.count = set->count;
            where.index = i;
            mpix_wait_set_fail(set, i, comm,
                               mpix_request_fail(&where, class, "%s", text));
            return 1;
        }
    }
    return 0;
}
