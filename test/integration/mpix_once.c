/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_once.c - an error is raised once, by the code that the call returns:
 * what is refused, and what fails where the library finds no memory. For one
 * rank.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "mpix_test.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* Sanitizers have their own functions */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#  define CAN_FAIL 0
#else
#  define CAN_FAIL 1
#endif

/* The error must be raised once, and its text must have a word. */
#define ONCE(_class, _word, _call) \
    do { \
        raised = 0; \
        once((_class), (_word), (_call), MPIX_HERE, #_call); \
    } while (0)


/* What a function that may find no memory leaves. */
static struct {
    MPIX_Queue  queue;
    MPIX_Halo   halo;
    MPI_Request request;
    MPI_Comm    comm;
    int         in[16];
    int         out[16];
} made;

static int raised;           /* Errors */
static int last_code;        /* Of those */
static MPI_Comm last_comm;
static pthread_t last_thread;
static MPI_Errhandler errhandler;
static int is_leaving;       /* The handler's next call does not return */
static jmp_buf leave_to;

/* Allocations of this thread, by the library, that succeed until one fails, or
 * all from there on. */
static __thread int allocs_left = INT_MAX;
static __thread int is_for_ever;
static __thread int has_failed;


#if CAN_FAIL
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);

static int fails(const void *caller)
{
    Dl_info info;

    if ((allocs_left == INT_MAX) || (dladdr(caller, &info) == 0) ||
        ((strstr(info.dli_fname, "libmpix_queue") == NULL) &&
         (strstr(info.dli_fname, "libucs_ext") == NULL))) {
        return 0;
    }

    if (allocs_left > 0) {
        --allocs_left;
        return 0;
    }
    has_failed  = 1;
    allocs_left = is_for_ever ? 0 : INT_MAX;
    return 1;
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL :
                                                __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL :
                                                __libc_realloc(block, size);
}
#endif

static void handler(MPI_Comm *comm, int *code, ...)
{
    ++raised;
    last_code   = *code;
    last_comm   = *comm;
    last_thread = pthread_self();
    if (is_leaving) {
        is_leaving = 0;
        longjmp(leave_to, 1);
    }
}

static void once(int class, const char *word, int code, const char *where,
                 const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    mpix_test_code(code, class, where, what);
    MPI_Error_string(code, text, &length);
    mpix_test_check(raised == 1, where, what, "raised %d times", raised);
    mpix_test_check(last_code == code, where, what, "raised %d, returned %d",
                    last_code, code);
#ifndef MPICH_VERSION /* It has strings of its own */
    mpix_test_check(strstr(text, word) != NULL, where, what,
                    "\"%s\" does not say \"%s\"", text, word);
#endif
}

/* Calls a function again and again, with one allocation failing each time,
 * until all have failed once. */
static void sweep(const char *name, int (*call)(void), void (*undo)(void))
{
    int rc, count;

    for (count = 0; CAN_FAIL; ++count) {
        raised      = 0;
        has_failed  = 0;
        allocs_left = count;
        rc          = call();
        allocs_left = INT_MAX;
        MPIX_CHECK(raised == (rc != MPI_SUCCESS),
                   "%s, allocation %d: returned %d, raised %d times", name,
                   count, rc, raised);
        MPIX_CHECK((rc == MPI_SUCCESS) || (rc == last_code),
                   "%s, allocation %d: returned %d, raised %d", name, count, rc,
                   last_code);
        if (rc == MPI_SUCCESS) {
            undo();
        }
        if (!has_failed) {
            MPIX_OK(rc);
            break;
        }
    }
    MPIX_CHECK((count > 0) || !CAN_FAIL, "%s: nothing was allocated", name);
}

/* The NULL communicator is none of MPI's, and not MPI_COMM_NULL. */
static void test_refused(void)
{
    const MPI_Comm none = (MPI_Comm)0;
    const int ranks[1]  = {0};
    MPIX_Halo_side side = {
        made.out, 1, MPI_INT, made.in, -1, MPI_INT
    };
    const MPIX_Halo unset = (MPIX_Halo)&side;
    MPIX_Queue queue      = mpix_test.queue;

    ONCE(MPI_ERR_COMM, "", MPIX_Create_queue(none, mpix_test.stream,
                                             &made.queue));
    ONCE(MPI_ERR_COMM, "", MPIX_Barrier_init(none, MPI_INFO_NULL,
                                             &made.request));
    ONCE(MPI_ERR_COMM, "", MPIX_Halo_init(none, 0, NULL, queue, &made.halo));
    ONCE(MPI_ERR_COMM, "", MPIX_Queue_attach(none));

    ONCE(MPI_ERR_TYPE, "", MPIX_Alltoall_init(made.in, 1, MPI_DATATYPE_NULL,
                                              made.out, 1, MPI_INT, made.comm,
                                              MPI_INFO_NULL, &made.request));
    ONCE(MPI_ERR_TYPE, "", MPIX_Allgather_init(MPI_IN_PLACE, 1, MPI_INT,
                                               made.out, 1, MPI_DATATYPE_NULL,
                                               made.comm, MPI_INFO_NULL,
                                               &made.request));

    ONCE(MPI_ERR_COUNT, "side 0", MPIX_Halo_init_list(made.comm, 1, ranks, NULL,
                                                      NULL, &side, queue,
                                                      &made.halo));
    side.recvcount = 1;
    side.sendtype  = MPI_DATATYPE_NULL;
    ONCE(MPI_ERR_TYPE, "side 0", MPIX_Halo_init_list(made.comm, 1, ranks, NULL,
                                                     NULL, &side, queue,
                                                     &made.halo));
    ONCE(MPI_ERR_ARG, "MPIX_Halo_start", MPIX_Halo_start(unset));
    ONCE(MPI_ERR_ARG, "MPIX_Halo_wait", MPIX_Halo_wait(unset));

    side.sendtype = MPI_INT;
    MPIX_OK(MPIX_Halo_init_list(made.comm, 1, ranks, NULL, NULL, &side, queue,
                                &made.halo));
    ONCE(MPI_ERR_REQUEST, "MPIX_Halo_wait: the request",
         MPIX_Halo_wait(made.halo));
    MPIX_OK(MPIX_Halo_free(&made.halo));
}

static int make_queue(void)
{
    return MPIX_Queue_init(mpix_test.queue_type, mpix_test.stream, &made.queue);
}

static int make_batch_queue(void)
{
    return MPIX_Create_queue(made.comm, mpix_test.stream, &made.queue);
}

static void free_queue(void)
{
    MPIX_OK(MPIX_Queue_free(&made.queue));
}

static int make_send(void)
{
    return MPI_Send_init(made.out, 1, MPI_INT, 0, 0, made.comm, &made.request);
}

static int make_bcast(void)
{
    return MPIX_Bcast_init(made.out, 1, MPI_INT, 0, made.comm, MPI_INFO_NULL,
                           &made.request);
}

static int make_alltoall(void)
{
    return MPIX_Alltoall_init(MPI_IN_PLACE, 0, MPI_INT, made.out, 1, MPI_INT,
                              made.comm, MPI_INFO_NULL, &made.request);
}

static int make_allreduce(void)
{
    return MPIX_Allreduce_init(made.in, made.out, 1, MPI_INT, MPI_SUM,
                               made.comm, MPI_INFO_NULL, &made.request);
}

static void free_request(void)
{
    MPIX_OK(MPI_Request_free(&made.request));
}

static int make_halo(void)
{
    static const int ranks[2]       = {0, 0};
    const MPIX_Halo_side sides[2] = {
        {made.out, 1, MPI_INT, made.in, 1, MPI_INT},
        {made.out + 1, 1, MPI_INT, made.in + 1, 1, MPI_INT}
    };

    return MPIX_Halo_init_list(made.comm, 2, ranks, NULL, NULL, sides,
                               mpix_test.queue, &made.halo);
}

static void free_halo(void)
{
    MPIX_OK(MPIX_Halo_free(&made.halo));
}

static void test_memory(void)
{
    sweep("MPIX_Queue_init", make_queue, free_queue);
    sweep("MPIX_Create_queue", make_batch_queue, free_queue);
    sweep("MPI_Send_init", make_send, free_request);
    sweep("MPIX_Bcast_init", make_bcast, free_request);
    sweep("MPIX_Alltoall_init", make_alltoall, free_request);
    sweep("MPIX_Allreduce_init", make_allreduce, free_request);
    sweep("MPIX_Halo_init_list", make_halo, free_halo);
}

/* The first start makes a stream and a queue. */
static void sweep_start(void)
{
    int rc, count;

    for (count = 0; CAN_FAIL; ++count) {
        MPIX_OK(make_allreduce());
        MPIX_OK(MPIX_Match(&made.request, MPI_STATUS_IGNORE));
        made.in[0]  = count + 1;
        raised      = 0;
        has_failed  = 0;
        allocs_left = count;
        rc          = MPIX_Enqueue_start(mpix_test.queue, &made.request);
        allocs_left = INT_MAX;
        MPIX_CHECK(raised == (rc != MPI_SUCCESS), "allocation %d: raised %d",
                   count, raised);
        if (rc == MPI_SUCCESS) {
            MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue, &made.request));
            MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
            MPIX_CHECK(made.out[0] == (count + 1), "%d", made.out[0]);
        }
        MPIX_OK(MPI_Request_free(&made.request));
        if (!has_failed) {
            MPIX_OK(rc);
            break;
        }
    }
}

/* Again, as the queue keeps some of its memory. */
static void test_start(void)
{
    sweep_start();
    sweep_start();
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Starts a collective where the application's stream has no room: nothing is
 * done then, nor by the request's end. */
static void start_on_full(void)
{
    int go = 0;

    made.in[0]  = 5;
    made.out[0] = -1;
    MPIX_OK(make_allreduce());
    MPIX_OK(MPIX_Match(&made.request, MPI_STATUS_IGNORE));
    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, &made.request));
    MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue, &made.request));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_CHECK(made.out[0] == 5, "%d", made.out[0]);

    made.out[0] = -1;
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold, &go));
    is_for_ever = 1;
    allocs_left = 0;
    while (MPIX_Host_stream_launch(mpix_test.stream, nothing, NULL) ==
           MPI_SUCCESS) {
    }
    ONCE(MPI_ERR_NO_MEM, "MPIX_Enqueue_start",
         MPIX_Enqueue_start(mpix_test.queue, &made.request));
    is_for_ever = 0;
    allocs_left = INT_MAX;

    MPIX_OK(MPI_Request_free(&made.request));
    MPIX_CHECK(made.out[0] == -1, "the use has run: %d", made.out[0]);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    MPIX_CHECK(made.out[0] == -1, "the use has run: %d", made.out[0]);
}

/* A message to the process itself, which is packed and unpacked. */
static int make_spaced(void)
{
    MPI_Datatype spaced;
    int rc;

    MPI_Type_vector(3, 1, 2, MPI_INT, &spaced);
    MPI_Type_commit(&spaced);
    rc = MPIX_Alltoall_init(made.in, 1, spaced, made.out, 1, spaced, made.comm,
                            MPI_INFO_NULL, &made.request);
    MPI_Type_free(&spaced);
    return rc;
}

/* Starts a collective ahead until a stream has no room; returns what was
 * refused: 0 a start, 1 a wait. */
static int start_until_full(int *go)
{
    int is_started, rc;

    *go         = 0;
    made.in[0]  = 7;
    made.in[4]  = 8;
    made.out[0] = -1;
    made.out[4] = -1;
    MPIX_OK(make_spaced());
    MPIX_OK(MPIX_Match(&made.request, MPI_STATUS_IGNORE));
    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, &made.request));
    MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue, &made.request));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold, go));

    is_for_ever = 1;
    allocs_left = 0;
    do {
        raised     = 0;
        rc         = MPIX_Enqueue_start(mpix_test.queue, &made.request);
        is_started = (rc == MPI_SUCCESS);
        if (is_started) {
            rc = MPIX_Enqueue_wait(mpix_test.queue, &made.request);
        }
    } while (rc == MPI_SUCCESS);
    is_for_ever = 0;
    allocs_left = INT_MAX;
    MPIX_IS(MPI_ERR_NO_MEM, rc);
    MPIX_CHECK(raised == 1, "raised %d times", raised);
    MPIX_IS(MPI_ERR_PENDING, MPI_Request_free(&made.request));
    return is_started;
}

/* On the queue's own stream what was refused can be called again */
static void start_again(void)
{
    int refused = 0;
    int go, ahead, is_started, i;

    for (ahead = 0; ahead < 6; ++ahead) {
        for (i = 0; i < ahead; ++i) {
            MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, nothing, NULL));
        }
        is_started = start_until_full(&go);
        refused   |= 1 << is_started;
        if (!is_started) {
            MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, &made.request));
        }
        MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue, &made.request));
        __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
        MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
        MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
        MPIX_CHECK((made.out[0] == 7) && (made.out[4] == 8), "%d %d",
                   made.out[0], made.out[4]);
        MPIX_OK(MPI_Request_free(&made.request));
    }
    MPIX_CHECK(refused == 3, "not both were refused: %d", refused);
}

static void test_full(void)
{
    if (CAN_FAIL) {
        start_on_full();
        if (mpix_test.queue_type == MPIX_QUEUE_HOST) {
            start_again();
        }
    }
}

/* How a program learns that a message has failed: the class of what the call
 * returns, and the request's own code. There are a good message's request
 * before and a null one behind it. */
typedef int (*learn_t)(MPI_Request *requests, int *code);

static int learn_wait(MPI_Request *requests, int *code)
{
    *code = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    return *code;
}

static int learn_test(MPI_Request *requests, int *code)
{
    int flag = 0;

    do {
        *code = MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
    } while (!flag && (*code == MPI_SUCCESS));
    return *code;
}

static int learn_get_status(MPI_Request *requests, int *code)
{
    int flag = 0;

    do {
        *code = MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE);
    } while (!flag && (*code == MPI_SUCCESS));
    MPI_Request_free(&requests[1]);
    return *code;
}

static int learn_waitany(MPI_Request *requests, int *code)
{
    int index;

    *code = MPI_Waitany(2, &requests[1], &index, MPI_STATUS_IGNORE);
    MPIX_CHECK(index == 0, "index %d", index);
    return *code;
}

static int learn_testany(MPI_Request *requests, int *code)
{
    int index = MPI_UNDEFINED, flag = 0;

    do {
        *code = MPI_Testany(2, &requests[1], &index, &flag, MPI_STATUS_IGNORE);
    } while (!flag && (*code == MPI_SUCCESS));
    MPIX_CHECK(index == 0, "index %d", index);
    return *code;
}

static int learn_waitall(MPI_Request *requests, int *code)
{
    MPI_Status statuses[3];
    int rc = MPI_Waitall(3, requests, statuses);

    MPIX_IS(MPI_SUCCESS, statuses[0].MPI_ERROR);
    MPIX_IS(MPI_SUCCESS, statuses[2].MPI_ERROR);
    *code = statuses[1].MPI_ERROR;
    return rc;
}

static int learn_testall(MPI_Request *requests, int *code)
{
    MPI_Status statuses[3];
    int rc, flag = 0;

    do {
        rc = MPI_Testall(3, requests, &flag, statuses);
    } while (!flag && (rc == MPI_SUCCESS));
    *code = statuses[1].MPI_ERROR;
    return rc;
}

/* All are complete. */
static int learn_some(int rc, int count, const int *indices,
                      const MPI_Status *statuses, int *code)
{
    int i;

    MPIX_CHECK(count == 2, "%d are complete", count);
    for (i = 0; i < count; ++i) {
        if (indices[i] == 1) {
            *code = statuses[i].MPI_ERROR;
        } else {
            MPIX_IS(MPI_SUCCESS, statuses[i].MPI_ERROR);
        }
    }
    return rc;
}

static int learn_waitsome(MPI_Request *requests, int *code)
{
    MPI_Status statuses[3];
    int rc, count, indices[3];

    rc = MPI_Waitsome(3, requests, &count, indices, statuses);
    return learn_some(rc, count, indices, statuses, code);
}

static int learn_testsome(MPI_Request *requests, int *code)
{
    MPI_Status statuses[3];
    int rc, count, indices[3];

    rc = MPI_Testsome(3, requests, &count, indices, statuses);
    return learn_some(rc, count, indices, statuses, code);
}

/* A way to learn of it. */
typedef struct {
    const char *name;
    learn_t    learn;
    const char *place;   /* Of the message's request in the call's array */
    int        is_array; /* Of statuses */
} way_t;

/* The text of the message's error is there, with a place or "", and nobody else
 * was told. */
static void check_failed(const char *name, const char *place, int code,
                         int times)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    const char *words[] = {name, place, "MPIX_Enqueue_recv", "rank 0", "tag 7",
                           "truncate"};
    unsigned i;
    int length;

    MPI_Error_string(code, text, &length);
    for (i = 0; i < sizeof(words) / sizeof(*words); ++i) {
        MPIX_CHECK(strcasestr(text, words[i]) != NULL,
                   "\"%s\" does not say \"%s\"", text, words[i]);
    }
    MPIX_CHECK(raised == times, "%s: raised %d times", name, raised);
    if ((times > 0) && (raised > 0)) {
        MPIX_CHECK(last_comm == made.comm, "%s: not the message's communicator",
                   name);
        MPIX_CHECK(pthread_equal(last_thread, pthread_self()),
                   "%s: raised in another thread", name);
    }
}

/* Receives that have ended: of a message that is right and, where 'length' is
 * 2, of one that is too long. */
static void use_queue(int length, MPIX_Queue *queue, MPI_Request *requests)
{
    static const int words[2] = {1, 2};
    static int in[2];

    memset(in, 0, sizeof(in));
    MPIX_OK(MPIX_Create_queue(mpix_test.stream, queue));
    MPIX_OK(MPIX_Enqueue_recv(&in[0], 1, MPI_INT, 0, 6, made.comm, *queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_recv(&in[1], 1, MPI_INT, 0, 7, made.comm, *queue,
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(*queue));
    MPIX_OK(MPIX_Enqueue_wait(*queue));
    MPI_Send(words, 1, MPI_INT, 0, 6, made.comm);
    MPI_Send(words, length, MPI_INT, 0, 7, made.comm);
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    MPIX_CHECK(in[0] == 1, "received %d", in[0]);
    MPIX_CHECK((length > 1) || (in[1] == 1), "received %d", in[1]);
}

/* A message that is too long: 'times' 1 if its communicator's handler counts, 0
 * if it returns. */
static void fail_once(const way_t *way, int times)
{
    MPI_Request requests[3] = {
        MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL
    };
    int code                = MPI_SUCCESS;
    MPIX_Queue queue;
    int rc;

    use_queue(2, &queue, requests);
    raised = 0;
    rc     = way->learn(requests, &code);
    mpix_test_code(rc, way->is_array ? MPI_ERR_IN_STATUS : MPI_ERR_TRUNCATE,
                   MPIX_HERE, way->name);
    MPIX_IS(MPI_ERR_TRUNCATE, code);
    check_failed(way->name, way->place, code, times);
    MPIX_CHECK(requests[1] == MPI_REQUEST_NULL, "%s: a request", way->name);

    raised = 0;
    code   = MPIX_Enqueue_start(queue);
    MPIX_IS(MPI_ERR_OTHER, code);
    check_failed("MPIX_Enqueue_start", "", code, times);
    raised = 0;
    code   = MPIX_Queue_wait(queue);
    MPIX_IS(MPI_ERR_OTHER, code);
    check_failed("MPIX_Queue_wait", "", code, times);
    raised = 0;
    MPIX_OK(MPIX_Free_queue(queue));
    MPIX_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    MPIX_CHECK(raised == 0, "%s: raised %d times", way->name, raised);
}

/* Makes a call whose error's handler does not return; zero if it did. */
static int leaves(learn_t learn, MPI_Request *requests)
{
    int code;

    if (setjmp(leave_to) != 0) {
        return 1;
    }
    is_leaving = 1;
    learn(requests, &code);
    is_leaving = 0;
    return 0;
}

/* Of a queue whose message has failed. */
static int learn_start(MPI_Request *requests, int *code)
{
    (void)requests;
    *code = MPIX_Enqueue_start(made.queue);
    return *code;
}

static int learn_queue_wait(MPI_Request *requests, int *code)
{
    (void)requests;
    *code = MPIX_Queue_wait(made.queue);
    return *code;
}

/* The handler leaves the call, and the calls of the queue behind it. The
 * program goes on with other messages. */
static void leave_once(const way_t *way)
{
    MPI_Request requests[3] = {
        MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL
    };

    use_queue(2, &made.queue, requests);
    raised = 0;
    MPIX_CHECK(leaves(way->learn, requests), "%s: the handler was not called",
               way->name);
    MPIX_CHECK(leaves(learn_start, NULL), "the handler was not called");
    MPIX_CHECK(leaves(learn_queue_wait, NULL), "the handler was not called");
    MPIX_CHECK(raised == 3, "%s: raised %d times", way->name, raised);
    if (way->learn == learn_get_status) {
        MPIX_OK(MPI_Request_free(&requests[1]));
    }
    MPIX_CHECK(requests[1] == MPI_REQUEST_NULL, "%s: a request", way->name);
    MPIX_OK(MPIX_Free_queue(made.queue));
    MPIX_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));

    use_queue(1, &made.queue, requests);
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Queue_wait(made.queue));
    MPIX_OK(MPIX_Free_queue(made.queue));
    MPIX_CHECK(raised == 3, "%s: raised %d times", way->name, raised);
}

/* Every way to learn of it, with a handler of the message's communicator, which
 * returns or does not, and with none where that of MPI_COMM_WORLD would end the
 * job. */
static void test_failed(void)
{
    static const way_t ways[] = {
        {"MPI_Wait", learn_wait, "", 0},
        {"MPI_Test", learn_test, "", 0},
        {"MPI_Request_get_status", learn_get_status, "", 0},
        {"MPI_Waitany", learn_waitany, "requests[0]", 0},
        {"MPI_Testany", learn_testany, "requests[0]", 0},
        {"MPI_Waitall", learn_waitall, "requests[1]", 1},
        {"MPI_Testall", learn_testall, "requests[1]", 1},
        {"MPI_Waitsome", learn_waitsome, "requests[1]", 1},
        {"MPI_Testsome", learn_testsome, "requests[1]", 1}
    };
    unsigned i;

#ifdef MPICH_VERSION /* Raises on MPI_COMM_WORLD, in the thread */
    return;
#endif
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    for (i = 0; i < sizeof(ways) / sizeof(*ways); ++i) {
        MPI_Comm_set_errhandler(made.comm, errhandler);
        fail_once(&ways[i], 1);
        leave_once(&ways[i]);
        MPI_Comm_set_errhandler(made.comm, MPI_ERRORS_RETURN);
        fail_once(&ways[i], 0);
    }
    MPI_Comm_set_errhandler(made.comm, errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"refused", test_refused},
        {"memory", test_memory},
        {"start", test_start},
        {"full", test_full},
        {"failed", test_failed},
        {NULL, NULL}
    };

    mpix_test_init_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    MPI_Comm_dup(MPI_COMM_WORLD, &made.comm);
    mpix_test_cases(cases, argc, argv);
    MPI_Comm_free(&made.comm);
    MPI_Errhandler_free(&errhandler);
    return mpix_test_end("mpix_once");
}
