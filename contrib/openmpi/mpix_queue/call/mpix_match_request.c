/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_match_request.c - matching that is begun, with a request of MPI that is
 * complete when it is done: a generalized request, which calls that wait or
 * test find here.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "mpix_matchall.h"
#include "request/mpix_wait_set.h"

#include <ucs/sys/compiler_def.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Of the thread that calls for the request, but for the list. */
typedef struct mpix_match_request {
    ucs_list_link_t list;  /* Of those that are not complete */
    int             is_listed; /* There; protected by the same lock */
    const char      *func; /* That has made it */
    MPI_Request     outer;
    mpix_comm_t     *comm; /* Of the first message, a reference; or NULL */
    int             class; /* With which matching has failed; or MPI_SUCCESS */
    char            text[MPI_MAX_ERROR_STRING + 16];
    int             count;
    MPI_Request     requests[];
} mpix_match_request_t;

/* The lock protects the list. No other one is taken with it. */
static struct {
    pthread_mutex_t lock;
    ucs_list_link_t list;
} mpix_match_requests = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .list = UCS_LIST_INITIALIZER(&mpix_match_requests.list,
                                 &mpix_match_requests.list)
};


void mpix_match_request_forked(void)
{
    pthread_mutex_init(&mpix_match_requests.lock, NULL);
}

static void mpix_match_request_unlist(mpix_match_request_t *match)
{
    pthread_mutex_lock(&mpix_match_requests.lock);
    if (match->is_listed) {
        ucs_list_del(&match->list);
        match->is_listed = 0;
    }
    pthread_mutex_unlock(&mpix_match_requests.lock);
}

static mpix_match_request_t *mpix_match_request_find(MPI_Request request)
{
    mpix_match_request_t *match, *found = NULL;

    pthread_mutex_lock(&mpix_match_requests.lock);
    ucs_list_for_each(match, &mpix_match_requests.list, list) {
        if (match->outer == request) {
            found = match;
            break;
        }
    }
    pthread_mutex_unlock(&mpix_match_requests.lock);
    return found;
}

static void mpix_match_request_destroy(mpix_match_request_t *match)
{
    if (match->comm != NULL) {
        mpix_comm_drop(match->comm);
    }
    free(match);
}

static int mpix_match_request_query(void *arg, MPI_Status *status)
{
    const mpix_match_request_t *match = arg;

    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG    = MPI_ANY_TAG;
    if ((match->class == MPI_SUCCESS) ||
        mpix_wait_set_take(match->outer, match->comm, match->class,
                           match->text)) {
        return MPI_SUCCESS;
    }
    return mpix_fail(match->func, match->class, "a request %s", match->text);
}

static int mpix_match_request_free(void *arg)
{
    mpix_match_request_t *match = arg;

    mpix_request_count(match->outer, -1);
    mpix_match_request_unlist(match); /* MPICH 4.0 frees at once */
    mpix_match_request_destroy(match);
    return MPI_SUCCESS;
}

static int mpix_match_request_cancel(void *arg, int is_complete)
{
    static const char text[]          = "of a match cannot be cancelled";
    const mpix_match_request_t *match = arg;

    if (is_complete || mpix_wait_set_take(match->outer, match->comm,
                                          MPI_ERR_REQUEST, text)) {
        return MPI_SUCCESS;
    }
    return mpix_fail("MPI_Cancel", MPI_ERR_REQUEST, "a request %s", text);
}

/* Completes a request whose match is over. */
static void mpix_match_request_end(mpix_match_request_t *match, int code)
{
    MPI_Request outer                = match->outer;
    char cause[MPI_MAX_ERROR_STRING] = "unknown error";
    int length;

    if (code != MPI_SUCCESS) {
        match->class = MPI_ERR_OTHER;
        PMPI_Error_class(code, &match->class);
        PMPI_Error_string(code, cause, &length);
        snprintf(match->text, sizeof(match->text), "of a match: %s", cause);
    }
    mpix_match_request_unlist(match);
    PMPI_Grequest_complete(outer);
}

void mpix_match_request_poll(int count, const MPI_Request *requests)
{
    mpix_match_request_t *match;
    int i, code;

    for (i = 0; i < count; ++i) {
        match = mpix_request_may_be_given(&requests[i]) ?
                        mpix_match_request_find(requests[i]) :
                        NULL;
        if ((match != NULL) &&
            mpix_matchall_look(match->func, match->count, match->requests,
                               &code)) {
            mpix_match_request_end(match, code);
        }
    }
}

void mpix_match_request_release(MPI_Request request)
{
    mpix_match_request_t *match = mpix_request_may_be_given(&request) ?
                                          mpix_match_request_find(request) :
                                          NULL;

    if (match != NULL) {
        mpix_match_request_end(match, MPI_SUCCESS); /* Nobody asks any more */
    }
}

/* A reference to the communicator of the first message, which the application
 * may have freed; or NULL. */
static mpix_comm_t *mpix_match_request_comm(int count,
                                            const MPI_Request *requests)
{
    mpix_comm_t *comm = NULL;
    mpix_req_t *req;
    int i;

    mpix_lock();
    for (i = 0; (i < count) && (comm == NULL); ++i) {
        req = mpix_request_find(requests[i]);
        if (req != NULL) {
            comm = req->comm;
            mpix_comm_ref(comm);
        }
    }
    mpix_unlock();
    return comm;
}

/* Errors are raised. */
static int mpix_match_request_make(const char *func, int count,
                                   const MPI_Request *requests,
                                   mpix_match_request_t **match_p)
{
    MPI_Comm comm = mpix_request_comm(count, requests);
    mpix_match_request_t *match;
    int rc;

    match = calloc(1, sizeof(*match) + (count * sizeof(*requests)));
    if (match == NULL) {
        return mpix_raise(comm, mpix_fail(func, MPI_ERR_NO_MEM,
                                          "no memory for %d requests", count));
    }

    match->func  = func;
    match->count = count;
    memcpy(match->requests, requests, count * sizeof(*requests));
    match->comm = mpix_match_request_comm(count, requests);
    rc          = PMPI_Grequest_start(mpix_match_request_query,
                                      mpix_match_request_free,
                                      mpix_match_request_cancel, match,
                                      &match->outer);
    if (rc != MPI_SUCCESS) {
        mpix_match_request_destroy(match);
        return rc;
    }
    *match_p = match;
    return MPI_SUCCESS;
}

static int mpix_match_request_begin(const char *func, int count,
                                    MPI_Request *requests, MPI_Request *request)
{
    mpix_match_request_t *match = NULL;
    int rc;

    if (request == NULL) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_ARG, "NULL argument"));
    }

    rc = MPIX_Imatchall(count, requests);
    if (rc == MPI_SUCCESS) {
        rc = mpix_match_request_make(func, count, requests, &match);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    mpix_request_count(match->outer, 1);
    pthread_mutex_lock(&mpix_match_requests.lock);
    ucs_list_add_tail(&mpix_match_requests.list, &match->list);
    match->is_listed = 1;
    pthread_mutex_unlock(&mpix_match_requests.lock);
    *request = match->outer;
    return MPI_SUCCESS;
}

int MPIX_Imatch_request(MPI_Request *request, MPI_Request *match)
{
    static const char func[] = "MPIX_Imatch_request";

    if ((request == NULL) || (*request == MPI_REQUEST_NULL)) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_REQUEST, "the request is %s",
                                    (request == NULL) ? "NULL" :
                                                        "MPI_REQUEST_NULL"));
    }
    return mpix_match_request_begin(func, 1, request, match);
}

int MPIX_Imatchall_request(int count, MPI_Request requests[],
                           MPI_Request *match)
{
    return mpix_match_request_begin("MPIX_Imatchall_request", count, requests,
                                    match);
}
