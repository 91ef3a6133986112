/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_most.c - as many matched operations, or halos, as the card is said to
 * carry for a process: the ranks, two and two, match that many, and not one
 * more. Lane trig alone. The first argument is operations, coupled or ready.
 */
#include "mpix_test.h"

#include <stdlib.h>
#include <string.h>

#define MOST_HALO 26 /* Neighbours, which are all one rank here */


/* A message in each direction: the requests are not started. */
static struct {
    int sent;
    int received;
} words[MOST_HALO];


/* The receive and the send of a message with a tag. */
static void init_message(int i, int tag, int is_ready, MPI_Request *recv,
                         MPI_Request *send)
{
    int peer = mpix_test.rank ^ 1;

    MPIX_OK(MPI_Recv_init(&words[i].received, 1, MPI_INT, peer, tag,
                          MPI_COMM_WORLD, recv));
    MPIX_OK((is_ready ? MPI_Rsend_init : MPI_Send_init)(
            &words[i].sent, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, send));
}

/* A half of a pair: the lower rank sends every other one. */
static void init_operation(int number, MPI_Request *request)
{
    MPI_Request pair[2]; /* A receive, a send */
    int is_send = ((number ^ mpix_test.rank) & 1);

    init_message(0, 0, 0, &pair[0], &pair[1]);
    MPIX_OK(MPI_Request_free(&pair[!is_send]));
    *request = pair[is_send];
}

static void init_halo(int is_ready, MPI_Request *members, MPI_Request *exchange)
{
    int i;

    for (i = 0; i < MOST_HALO; ++i) {
        init_message(i, i, is_ready, &members[i], &members[MOST_HALO + i]);
    }
    mpix_test_exchange_init(2 * MOST_HALO, members, "true", exchange);
}

/* So many of MPI_REQUEST_NULL. */
static MPI_Request *make_requests(int count)
{
    MPI_Request *requests = malloc(((size_t)count + 1) * sizeof(*requests));
    int i;

    if (requests == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (i = 0; i < count; ++i) {
        requests[i] = MPI_REQUEST_NULL;
    }
    return requests;
}

static void free_requests(int count, MPI_Request *requests)
{
    int i;

    for (i = 0; i < count; ++i) {
        if (requests[i] != MPI_REQUEST_NULL) {
            MPIX_OK(MPI_Request_free(&requests[i]));
        }
    }
    free(requests);
}

/* How many ranks can match what they have. */
static int match(MPI_Request *request)
{
    int is_matched = (MPIX_Match(request, MPI_STATUS_IGNORE) == MPI_SUCCESS);

    MPI_Allreduce(MPI_IN_PLACE, &is_matched, 1, MPI_INT, MPI_SUM,
                  MPI_COMM_WORLD);
    return is_matched;
}

static void check_most(const char *what, int most)
{
    int is_halo           = (strcmp(what, "operations") != 0);
    int num_members       = is_halo ? 2 * MOST_HALO : 0;
    MPI_Request *requests = make_requests(most + 1);
    MPI_Request *members  = make_requests((most + 1) * num_members);
    int i, matched;

    for (i = 0; i <= most; ++i) {
        if (is_halo) {
            init_halo(strcmp(what, "ready") == 0, &members[i * num_members],
                      &requests[i]);
        } else {
            init_operation(i, &requests[i]);
        }
        matched = match(&requests[i]);
        if ((i < most) != (matched == mpix_test.size)) {
            MPIX_CHECK(0, "%d of %d ranks have matched number %d of %d",
                       matched, mpix_test.size, i + 1, most);
            break;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free_requests(most + 1, requests);
    free_requests((most + 1) * num_members, members);
}

int main(int argc, char **argv)
{
    mpix_test_init(&argc, &argv);
    if (argc != 3) {
        fprintf(stderr, "usage: %s operations|coupled|ready NUMBER\n", argv[0]);
        return 2;
    }
    check_most(argv[1], atoi(argv[2]));
    return mpix_test_end("mpix_most");
}
