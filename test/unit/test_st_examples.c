/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_examples.c - the examples of ucp_st.h and of what it includes, as one
 * program of two ranks. Their text is taken from the headers.
 */
#include "st_cunit.h"

#include <ucp_st.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int peer_socket;

static int send_all(const void *buffer, size_t length)
{
    return write(peer_socket, buffer, length) == (ssize_t)length;
}

static int recv_all(void *buffer, size_t length)
{
    return recv(peer_socket, buffer, length, MSG_WAITALL) == (ssize_t)length;
}

/* The application's part of an example */
static ucs_status_t swap_addresses(const void *mine, size_t length,
                                   void **theirs_p, size_t *their_length_p)
{
    if (!send_all(&length, sizeof(length)) || !send_all(mine, length) ||
        !recv_all(their_length_p, sizeof(*their_length_p))) {
        return UCS_ERR_IO_ERROR;
    }
    *theirs_p = malloc(*their_length_p);
    if (*theirs_p == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    if (!recv_all(*theirs_p, *their_length_p)) {
        free(*theirs_p);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

/* An example that nothing here calls is an unused function, and no program */
#include "st_examples.h"

/** A rank, as the examples leave it. */
typedef struct {
    ucp_st_worker_h worker;
    ucp_st_peer_h   peer;
    ucs_gstream_h   stream;
    ucp_st_queue_h  queue;
} rank_t;

static void rank_check(int condition, const char *text)
{
    if (!condition) {
        fprintf(stderr, "process %d: not so: %s\n", (int)getpid(), text);
        _exit(EXIT_FAILURE);
    }
}

#define RANK_CHECK(condition) rank_check((condition), #condition)

static void rank_init(rank_t *rank)
{
    RANK_CHECK(make_worker(NULL, &rank->worker) == UCS_OK);
    RANK_CHECK(make_peer(rank->worker, &rank->peer) == UCS_OK);
    RANK_CHECK(make_queue(rank->worker, &rank->stream, &rank->queue) == UCS_OK);
}

/* Neither rank goes on before the other one is here */
static void rank_meet(rank_t *rank)
{
    char byte = 0;
    ssize_t ret;

    RANK_CHECK(send_all(&byte, 1));
    while ((ret = recv(peer_socket, &byte, 1, MSG_DONTWAIT)) != 1) {
        RANK_CHECK(ret != 0); /* it is there */
        (void)ucp_st_worker_progress(rank->worker);
    }
}

static void rank_cleanup(rank_t *rank)
{
    RANK_CHECK(ucp_st_queue_destroy(rank->queue) == UCS_OK);
    ucp_st_peer_destroy(rank->peer);
    rank_meet(rank);
    RANK_CHECK(ucp_st_worker_destroy(rank->worker) == UCS_OK);
    RANK_CHECK(ucs_gstream_synchronize(rank->stream) == UCS_OK);
    RANK_CHECK(ucs_gstream_destroy(rank->stream) == UCS_OK);
}

/* What has come, and one more */
static void add_one(void *arg)
{
    double *value = arg;

    value[0] = value[1] + 1;
}

static void run_ops(rank_t *rank, int index)
{
    int is_mappable;
    double *value = get_buffer(2 * sizeof(*value), &is_mappable);
    ucp_st_op_h ops[2];

    RANK_CHECK(value != NULL);
    value[0] = 0;
    value[1] = index;
    RANK_CHECK(make_ops(rank->worker, rank->peer, value, ops) == UCS_OK);
    RANK_CHECK(iterate(rank->queue, rank->stream, ops, add_one, value) ==
               UCS_OK);
    RANK_CHECK(finish(rank->worker, rank->queue, ops) == UCS_OK);
    RANK_CHECK(ucs_gstream_synchronize(rank->stream) == UCS_OK);
    /* It went to the other rank and back, each time one more */
    RANK_CHECK(value[1] == (100 + index));
    RANK_CHECK(print_fallbacks(rank->worker) == UCS_OK);
    print_lanes();
    put_buffer(value, is_mappable);
}

/* Rank 1 frees its halves; rank 0 waits for one more use, and is told */
static void run_error(rank_t *rank, int index)
{
    double value[2] = {0, 0};
    ucp_st_op_h ops[2];

    RANK_CHECK(make_ops(rank->worker, rank->peer, value, ops) == UCS_OK);
    if (index == 0) {
        RANK_CHECK(ucp_st_enqueue_startall(rank->queue, ops, 2) == UCS_OK);
        RANK_CHECK(ucp_st_enqueue_waitall(rank->queue, ops, 2) == UCS_OK);
    }
    rank_meet(rank); /* a start would be refused once the halves are freed */
    RANK_CHECK(finish(rank->worker, rank->queue, ops) ==
               ((index == 0) ? UCS_ERR_CANCELED : UCS_OK));
}

static void run_batch(rank_t *rank, int index)
{
    uint64_t value[2] = {10 + index, 0};
    size_t length     = 0;

    RANK_CHECK(swap_once(rank->queue, rank->peer, value, &length) == UCS_OK);
    RANK_CHECK(value[1] == (uint64_t)(11 - index));
    RANK_CHECK(length == sizeof(value[1]));
    RANK_CHECK(ucp_st_queue_wait(rank->queue, NULL) == UCS_OK);
}

/* Words of the example's memory, and how often it runs */
#define RMA_WORDS 4
#define RMA_USES  500

/* Kernels of one put; the count of wrong numbers is the stream's */
typedef struct {
    uint64_t *memory;
    uint64_t count;
    int      index;
    int      *num_wrong;
} rma_args_t;

static void rma_write(void *arg)
{
    const rma_args_t *args = arg;

    args->memory[0] = (10 * args->count) + args->index;
}

/* Stored by the peer's put as a whole: the thread sanitizer does not see the
 * order that goes through its process */
static void rma_read(void *arg)
{
    const rma_args_t *args = arg;
    const uint64_t *slot   = &args->memory[1 + (args->count % 2)];

    *args->num_wrong += __atomic_load_n(slot, __ATOMIC_ACQUIRE) !=
                        ((10 * args->count) + 1 - args->index);
}

/* The hosts enqueue all of it: no rank waits for the other one but by the
 * example's signals */
static void run_rma(rank_t *rank, int index)
{
    int num_wrong   = 0;
    rma_args_t args = {.index = index, .num_wrong = &num_wrong};
    int is_mappable;
    ucp_st_mem_h memh;
    ucp_st_rkey_h rkey;
    ucs_status_t status;

    args.memory = get_buffer(RMA_WORDS * sizeof(*args.memory), &is_mappable);
    RANK_CHECK(args.memory != NULL);
    memset(args.memory, 0, RMA_WORDS * sizeof(*args.memory));
    RANK_CHECK(ucp_st_mem_reg(rank->worker, args.memory,
                              RMA_WORDS * sizeof(*args.memory),
                              &memh) == UCS_OK);
    RANK_CHECK(swap_keys(rank->peer, memh, &rkey) == UCS_OK);
    for (args.count = 1; args.count <= RMA_USES; ++args.count) {
        RANK_CHECK(ucs_gstream_enqueue_launch(rank->stream, rma_write, &args,
                                              sizeof(args)) == UCS_OK);
        RANK_CHECK(put_once(rank->queue, memh, rkey, args.count) == UCS_OK);
        RANK_CHECK(ucs_gstream_enqueue_launch(rank->stream, rma_read, &args,
                                              sizeof(args)) == UCS_OK);
    }
    RANK_CHECK(ucp_st_queue_wait(rank->queue, NULL) == UCS_OK);
    RANK_CHECK(ucs_gstream_synchronize(rank->stream) == UCS_OK);
    RANK_CHECK(num_wrong == 0);
    RANK_CHECK(ucp_st_rkey_destroy(rkey) == UCS_OK);
    rank_meet(rank);
    while ((status = ucp_st_mem_dereg(memh)) == UCS_ERR_BUSY) {
        (void)ucp_st_worker_progress(rank->worker); /* lane host, a moment */
    }
    RANK_CHECK(status == UCS_OK);
    put_buffer(args.memory, is_mappable);
}

typedef void (*run_func_t)(rank_t *rank, int index);

/* Two processes, of which none has used the library before */
static void run_ranks(run_func_t run)
{
    int sockets[2], status, i;
    rank_t rank;
    pid_t child[2];

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    for (i = 0; i < 2; ++i) {
        child[i] = fork();
        CU_ASSERT_NOT_EQUAL_FATAL(child[i], -1);
        if (child[i] == 0) {
            peer_socket = sockets[i];
            (void)close(sockets[1 - i]);
            alarm(st_cunit_limit());
            rank_init(&rank);
            run(&rank, i);
            rank_cleanup(&rank);
            _exit(EXIT_SUCCESS);
        }
    }
    for (i = 0; i < 2; ++i) {
        (void)close(sockets[i]);
        CU_ASSERT_EQUAL(waitpid(child[i], &status, 0), child[i]);
        CU_ASSERT_EQUAL(status, 0);
    }
}

ST_CASE_CALL(ops, run_ranks(run_ops))
ST_CASE_CALL(error, run_ranks(run_error))
ST_CASE_CALL(batch, run_ranks(run_batch))
ST_CASE_CALL(rma, run_ranks(run_rma))

ST_SUITE("st_examples")
