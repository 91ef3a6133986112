/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_fifo_calls.c - messages for queues only: no thread of the library calls
 * MPI for them; queues of several threads; thousands of tags; and a duplicate
 * of which not all ranks say the same.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "mpix_fifo.h"
#include "mpix_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#define TAGS    3000
#define THREADS 2
#define USES    30
#define TAG     20

/* Calls of MPI by threads other than the program's; atomic. */
static unsigned num_calls;
static pthread_t caller; /* The program's */
static int is_counting;  /* Atomic */

/* In front of MPI's functions, for the library, which calls these. */
static void count_call(void)
{
    if (__atomic_load_n(&is_counting, __ATOMIC_ACQUIRE) &&
        !pthread_equal(pthread_self(), caller)) {
        __atomic_add_fetch(&num_calls, 1, __ATOMIC_RELAXED);
    }
}

#define COUNTED(_name, _params, ...) \
    int _name _params \
    { \
        static int (*next) _params; \
        \
        if (next == NULL) { \
            *(void**)&next = dlsym(RTLD_NEXT, #_name); \
        } \
        count_call(); \
        return next(__VA_ARGS__); \
    }

COUNTED(PMPI_Isend, (const void *buf, int count, MPI_Datatype type, int rank,
                     int tag, MPI_Comm comm, MPI_Request *request),
        buf, count, type, rank, tag, comm, request)
COUNTED(PMPI_Irecv, (void *buf, int count, MPI_Datatype type, int rank, int tag,
                     MPI_Comm comm, MPI_Request *request),
        buf, count, type, rank, tag, comm, request)
COUNTED(PMPI_Start, (MPI_Request *request), request)
COUNTED(PMPI_Test, (MPI_Request *request, int *flag, MPI_Status *status),
        request, flag, status)
COUNTED(PMPI_Testsome, (int incount, MPI_Request *requests, int *outcount,
                        int *indices, MPI_Status *statuses),
        incount, requests, outcount, indices, statuses)
COUNTED(PMPI_Iprobe, (int rank, int tag, MPI_Comm comm, int *flag,
                      MPI_Status *status), rank, tag, comm, flag, status)
COUNTED(PMPI_Grequest_complete, (MPI_Request request), request)

static int is_multiple(void)
{
    int level;

    MPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
}

/* One int around the ring on a communicator, dropped and waited for. */
static void pass_ring(MPI_Comm comm)
{
    int out = mpix_test.rank, in = -1;
    MPI_Request requests[2];
    MPIX_Queue queue;

    MPIX_OK(MPIX_Create_queue_comm(comm, mpix_test.stream, &queue));
    MPIX_OK(MPIX_Enqueue_recv(&in, 1, MPI_INT, mpix_test.left, TAG, queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(&out, 1, MPI_INT, mpix_test.right, TAG, queue,
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    MPIX_OK(MPIX_Queue_wait(queue));
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_CHECK(in == mpix_test.left, "%d", in);
    MPIX_OK(MPIX_Free_queue(queue));
}

void test_calls(void)
{
    MPI_Comm comms[2];
    int i;

    caller   = pthread_self();
    comms[0] = make_only("true");
    comms[1] = make_only("false");
    __atomic_store_n(&is_counting, 1, __ATOMIC_RELEASE);
    for (i = 0; i < 10; ++i) {
        pass_ring(comms[0]);
    }
    MPIX_CHECK(__atomic_load_n(&num_calls, __ATOMIC_RELAXED) == 0,
               "%u calls of MPI by other threads", num_calls);
    if (is_multiple() && (getenv("MPIX_QUEUE_ONLY") == NULL)) {
        pass_ring(comms[1]); /* They are seen where there are some */
        MPIX_CHECK(__atomic_load_n(&num_calls, __ATOMIC_RELAXED) > 0,
                   "no call is seen");
    }
    __atomic_store_n(&is_counting, 0, __ATOMIC_RELEASE);
    for (i = 0; i < 2; ++i) {
        MPI_Comm_free(&comms[i]);
    }
}

/* Their counters are there for others afterwards */
void test_many_tags(void)
{
    MPI_Comm comm         = make_only("true");
    MPI_Request *requests = malloc(2 * TAGS * sizeof(*requests));
    int *words            = malloc(2 * TAGS * sizeof(*words));
    MPIX_Queue queue;
    int i;

    MPIX_OK(MPIX_Create_queue_comm(comm, mpix_test.stream, &queue));
    for (i = 0; i < TAGS; ++i) {
        words[i]        = -1;
        words[TAGS + i] = (mpix_test.rank * TAGS) + i;
        MPIX_OK(MPIX_Enqueue_recv(&words[i], 1, MPI_INT, mpix_test.left, i,
                                  queue, &requests[i]));
    }
    for (i = TAGS - 1; i >= 0; --i) {
        MPIX_OK(MPIX_Enqueue_send(&words[TAGS + i], 1, MPI_INT, mpix_test.right,
                                  i, queue, &requests[TAGS + i]));
    }
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    MPIX_OK(MPI_Waitall(2 * TAGS, requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < TAGS; ++i) {
        MPIX_CHECK(words[i] == ((mpix_test.left * TAGS) + i), "tag %d: %d", i,
                   words[i]);
    }
    MPIX_OK(MPIX_Free_queue(queue));
    pass_ring(comm);
    MPI_Comm_free(&comm);
    free(requests);
    free(words);
}

/* A thread with a stream and a queue of its own. */
typedef struct {
    int       index;
    MPI_Comm  comm;
    pthread_t thread;
    int       seen[THREADS * USES]; /* By what has come */
} user_t;

static void *use_queue(void *arg)
{
    user_t *user = arg;
    MPI_Request requests[2];
    MPIX_Queue queue;
    int out, in, k;
    void *stream;

    MPIX_OK(mpix_test_stream(&stream));
    MPIX_OK(MPIX_Create_queue_comm(user->comm, stream, &queue));
    for (k = 0; k < USES; ++k) {
        out = (user->index * USES) + k;
        in  = -1;
        MPIX_OK(MPIX_Enqueue_recv(&in, 1, MPI_INT, mpix_test.left, TAG, queue,
                                  &requests[0]));
        MPIX_OK(MPIX_Enqueue_send(&out, 1, MPI_INT, mpix_test.right, TAG, queue,
                                  &requests[1]));
        MPIX_OK(MPIX_Enqueue_start(queue));
        MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        if ((in >= 0) && (in < (THREADS * USES))) {
            ++user->seen[in];
        }
    }
    MPIX_OK(MPIX_Free_queue(queue));
    MPIX_OK(MPIX_Host_stream_free(&stream));
    return NULL;
}

/* Queues of two threads have messages of one rank and tag. Which of them meets
 * which is not said here; each comes once. */
void test_queue_threads(void)
{
    static user_t users[THREADS];
    MPI_Comm comm;
    int i, k;

    if (!is_multiple()) {
        return;
    }
    comm = make_only("true");
    for (i = 0; i < THREADS; ++i) {
        users[i] = (user_t){.index = i, .comm = comm};
        (void)pthread_create(&users[i].thread, NULL, use_queue, &users[i]);
    }
    for (i = 0; i < THREADS; ++i) {
        (void)pthread_join(users[i].thread, NULL);
    }
    for (k = 0; k < (THREADS * USES); ++k) {
        MPIX_CHECK((users[0].seen[k] + users[1].seen[k]) == 1,
                   "message %d came %d times", k,
                   users[0].seen[k] + users[1].seen[k]);
    }
    MPI_Comm_free(&comm);
}

/* One rank says so of a duplicate, and the others do not */
void test_some_say_so(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info info;

    if (mpix_test.size == 1) {
        return;
    }
    MPI_Info_create(&info);
    if (mpix_test.rank == 1) {
        MPI_Info_set(info, "mpix_queue_only", "true");
    }
    MPIX_IS(MPI_ERR_INFO_VALUE, MPI_Comm_dup_with_info(MPI_COMM_WORLD, info,
                                                       &comm));
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}
