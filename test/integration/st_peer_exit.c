/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_peer_exit.c - a peer process that dies. No MPI: the program forks first,
 * and the two processes exchange addresses over a socket pair. The first
 * argument tells where the peer dies:
 *
 *   match    while the other side is blocked in a match with it
 *   rematch  the same with a second match, behind one that went well
 *   start    after the match, while the other side's stream waits for its send
 *   receive  the same with a receive
 *   compute  the same, and the other side's host makes no call meanwhile
 *   batch    the same, and the receive is a message that is used once
 *   moving   while a message is being moved to the other side's buffer; before
 *            that it is stopped for a while, which is no reason to give it up
 *
 * The second argument "used": the peer has sent a message before, so that UCP
 * has connected the two in both directions. UCX 1.13 aborts a process now and
 * then whose peer dies while its transport tcp connects them (an assertion in
 * tcp_ep.c).
 *
 * The surviving side's call must return the error of a dead peer, its queue and
 * operations must be freeable, and a new pair of another peer must still work.
 */
#include "st_any.h"

#include <ucp_st.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN        131072 /* more than is sent ahead of its receive */
#define MOVING_LEN (256ul << 20)

/** What is to happen. */
typedef enum {
    MODE_MATCH,
    MODE_REMATCH,
    MODE_START,
    MODE_RECEIVE,
    MODE_COMPUTE,
    MODE_BATCH,
    MODE_MOVING,
    MODE_LAST
} exit_mode_t;

static const char *const mode_names[MODE_LAST] = {
    [MODE_MATCH]   = "match",
    [MODE_REMATCH] = "rematch",
    [MODE_START]   = "start",
    [MODE_RECEIVE] = "receive",
    [MODE_COMPUTE] = "compute",
    [MODE_BATCH]   = "batch",
    [MODE_MOVING]  = "moving"
};

#define CHECK(_cond) \
    ((_cond) ? (void)0 : fail(#_cond, __LINE__))

static void fail(const char *what, int line)
{
    fprintf(stderr, "line %d: not true: %s\n", line, what);
    (void)fflush(NULL); /* the library's messages */
    _exit(1);
}

/** One process' objects. */
typedef struct {
    ucp_st_worker_h worker;
    ucs_gstream_h   stream;
    ucp_st_queue_h  queue;
    ucp_st_peer_h   peer;
} side_t;

static void side_init(side_t *side)
{
    ucp_st_worker_params_t params      = {.field_mask = 0};
    ucp_st_queue_params_t queue_params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };

    CHECK(st_any_stream(&side->stream) == UCS_OK);
    CHECK(ucp_st_worker_create(&params, &side->worker) == UCS_OK);
    queue_params.stream = side->stream;
    CHECK(ucp_st_queue_create(side->worker, &queue_params, &side->queue) ==
          UCS_OK);
}

/* Swap addresses with the process at the other end of the socket */
static void side_connect(side_t *side, int fd)
{
    char buffer[4096];
    size_t length;
    void *address;
    ssize_t ret;

    CHECK(ucp_st_worker_get_address(side->worker, &address, &length) == UCS_OK);
    CHECK(write(fd, address, length) == (ssize_t)length);
    ucp_st_worker_release_address(side->worker, address);
    ret = read(fd, buffer, sizeof(buffer));
    CHECK(ret > 0);
    CHECK(ucp_st_peer_create(side->worker, buffer, ret, &side->peer) == UCS_OK);
}

static ucp_st_op_h make_op_of(side_t *side, ucp_st_peer_h peer, int is_send,
                              void *buffer, size_t length)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER,
        .buffer     = buffer,
        .length     = length,
        .peer       = peer
    };
    ucp_st_op_h op;

    CHECK((is_send ? ucp_st_send_init : ucp_st_recv_init)(side->worker, &params,
                                                          &op) == UCS_OK);
    return op;
}

static ucp_st_op_h make_op(side_t *side, ucp_st_peer_h peer, int is_send,
                           void *buffer)
{
    return make_op_of(side, peer, is_send, buffer, LEN);
}

static int is_death(ucs_status_t status)
{
    return (status == UCS_ERR_ENDPOINT_TIMEOUT) ||
           (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_REJECTED) || (status == UCS_ERR_CANCELED);
}

/* Memory that is touched only as far as it is used */
static char *big_buffer(void)
{
    void *buffer = mmap(NULL, MOVING_LEN, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(buffer != MAP_FAILED);
    return buffer;
}

/* A message from the peer to the survivor that goes well */
static void use_once(side_t *side, int is_send)
{
    static char buffer[LEN];
    ucp_st_op_h op = make_op(side, side->peer, is_send, buffer);

    CHECK(ucp_st_match(op) == UCS_OK);
    CHECK(ucp_st_enqueue_start(side->queue, op) == UCS_OK);
    CHECK(ucp_st_enqueue_wait(side->queue, op) == UCS_OK);
    CHECK(ucp_st_queue_wait(side->queue, NULL) == UCS_OK);
    CHECK(ucp_st_op_free(op) == UCS_OK);
}

/* The sender of a message that is never through: killed by the survivor */
static void peer_send(side_t *side)
{
    char *buffer = big_buffer();
    ucp_st_op_h op;

    memset(buffer, 0x5a, MOVING_LEN);
    op = make_op_of(side, side->peer, 1, buffer, MOVING_LEN);
    CHECK(ucp_st_match(op) == UCS_OK);
    CHECK(ucp_st_enqueue_start(side->queue, op) == UCS_OK);
    for (;;) {
        pause();
    }
}

/* Never calls a destructor: this is a crash */
static void peer_process(int fd, exit_mode_t mode, int is_used)
{
    static char buffer[LEN];
    ucp_st_op_h op;
    side_t side;
    char c;

    side_init(&side);
    side_connect(&side, fd);
    if (is_used) {
        use_once(&side, 1);
    }
    if (mode == MODE_MOVING) {
        peer_send(&side);
    }
    if (mode != MODE_MATCH) {
        op = make_op(&side, side.peer, mode != MODE_START, buffer);
        CHECK(ucp_st_match(op) == UCS_OK);
    }
    CHECK(read(fd, &c, 1) == 1);
    if (mode <= MODE_REMATCH) {
        /* Let the survivor block first, as far as one can tell: its message has
         * come or will never be answered; either way its match must end */
        ucp_st_worker_progress(side.worker);
    }
    _exit(0);
}

/* A peer for messages to oneself */
static ucp_st_peer_h self_peer(side_t *side)
{
    ucp_st_peer_h self;
    size_t length;
    void *address;

    CHECK(ucp_st_worker_get_address(side->worker, &address, &length) == UCS_OK);
    CHECK(ucp_st_peer_create(side->worker, address, length, &self) == UCS_OK);
    ucp_st_worker_release_address(side->worker, address);
    return self;
}

/* What does not involve the dead peer goes on: a message to oneself */
static void check_self_message(side_t *side)
{
    static char sbuf[LEN], rbuf[LEN];
    ucp_st_queue_params_t params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM,
        .stream     = side->stream
    };
    ucp_st_peer_h self = self_peer(side);
    ucp_st_queue_h queue;
    ucp_st_op_h ops[2];

    CHECK(ucp_st_queue_create(side->worker, &params, &queue) == UCS_OK);
    ops[0] = make_op(side, self, 1, sbuf);
    ops[1] = make_op(side, self, 0, rbuf);
    memset(sbuf, 0x5a, LEN);
    CHECK(ucp_st_matchall(ops, 2, NULL) == UCS_OK);
    CHECK(ucp_st_enqueue_startall(queue, ops, 2) == UCS_OK);
    CHECK(ucp_st_enqueue_waitall(queue, ops, 2) == UCS_OK);
    CHECK(ucp_st_queue_wait(queue, NULL) == UCS_OK);
    CHECK(!memcmp(sbuf, rbuf, LEN));
    CHECK(ucp_st_op_free(ops[0]) == UCS_OK);
    CHECK(ucp_st_op_free(ops[1]) == UCS_OK);
    CHECK(ucp_st_queue_destroy(queue) == UCS_OK);
    ucp_st_peer_destroy(self);
}

static void raise_func(void *arg)
{
    __atomic_store_n((int*)arg, 1, __ATOMIC_RELEASE);
}

/* A receive of that peer's message, from now on in the stream */
static void start_message(side_t *side)
{
    static char buffer[LEN];
    ucp_st_msg_params_t params = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER,
        .buffer     = buffer,
        .length     = LEN,
        .peer       = side->peer
    };

    CHECK(ucp_st_enqueue_recv(side->queue, &params, NULL) == UCS_OK);
    CHECK(ucp_st_enqueue_batch_start(side->queue) == UCS_OK);
    CHECK(ucp_st_enqueue_batch_wait(side->queue) == UCS_OK);
}

/* A use that the peer will not take part in; what the host wait returns */
static ucs_status_t use_in_vain(side_t *side, int fd, ucp_st_op_h op,
                                exit_mode_t mode)
{
    ucp_st_queue_error_t error = {0};
    int done                   = 0;
    int is_batch               = (mode == MODE_BATCH);
    volatile double x          = 1;
    ucs_status_t status;

    CHECK(ucp_st_match(op) == UCS_OK);
    if (is_batch) {
        start_message(side);
    } else {
        CHECK(ucp_st_enqueue_start(side->queue, op) == UCS_OK);
        CHECK(ucp_st_enqueue_wait(side->queue, op) == UCS_OK);
    }
    CHECK(ucs_gstream_enqueue_func(side->stream, raise_func, &done) == UCS_OK);
    CHECK(write(fd, "", 1) == 1);
    while (((mode == MODE_COMPUTE) || is_batch) &&
           !__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        x = (x * 1.5) + 1 / x;
    }
    status = ucp_st_queue_wait(side->queue, &error);
    CHECK(error.op == (is_batch ? NULL : op));
    CHECK((error.req != NULL) == is_batch);
    CHECK(error.status == status);
    return status;
}

/* Wait for the first byte of the message, and stop the peer then. The last one
 * must not be there yet. */
static void stop_peer(const volatile char *buffer, pid_t pid)
{
    while (buffer[0] == 0) {
        /* it comes without a call of this thread */
    }
    CHECK(kill(pid, SIGSTOP) == 0);
    (void)usleep(500000); /* what is in the network arrives */
    CHECK(buffer[MOVING_LEN - 1] == 0);
}

/* A receive under way. No sleep here synchronises: each gives time in which
 * something wrong would happen. The queue is in error before the peer dies,
 * because of a message to oneself: the buffer is still not given back. */
static ucs_status_t receive_in_vain(side_t *side, ucp_st_op_h op,
                                    const char *buffer, pid_t pid)
{
    static char small[2][LEN];
    ucp_st_queue_error_t error = {0};
    char *copy                 = big_buffer();
    ucp_st_peer_h self         = self_peer(side);
    ucp_st_op_attr_t attr;
    ucp_st_op_h both[2];
    ucs_status_t status;

    both[0] = make_op(side, self, 1, small[0]);
    both[1] = make_op(side, self, 0, small[1]);
    CHECK(ucp_st_matchall(both, 2, NULL) == UCS_OK);
    CHECK(ucp_st_match(op) == UCS_OK);
    CHECK(ucp_st_enqueue_start(side->queue, both[1]) == UCS_OK);
    CHECK(ucp_st_enqueue_start(side->queue, op) == UCS_OK);
    CHECK(ucp_st_enqueue_wait(side->queue, op) == UCS_OK);
    CHECK(ucp_st_enqueue_wait(side->queue, both[1]) == UCS_OK);
    stop_peer(buffer, pid);
    (void)usleep(2000000);
    CHECK(ucp_st_queue_query(side->queue, NULL) == UCS_INPROGRESS);
    CHECK(ucp_st_op_free(op) == UCS_ERR_BUSY);
    CHECK(ucp_st_op_free(both[0]) == UCS_OK);
    do {
        ucp_st_worker_progress(side->worker);
        CHECK(ucp_st_op_query(both[1], &attr) == UCS_OK);
    } while (attr.status == UCS_OK);
    CHECK(ucp_st_enqueue_wait(side->queue, op) == UCS_ERR_CANCELED);
    CHECK(ucp_st_op_free(op) == UCS_ERR_BUSY);
    CHECK(kill(pid, SIGKILL) == 0);
    status = ucp_st_queue_wait(side->queue, &error);
    CHECK(error.op == both[1]);
    memcpy(copy, buffer, MOVING_LEN);
    (void)usleep(200000);
    CHECK(!memcmp(copy, buffer, MOVING_LEN));
    munmap(copy, MOVING_LEN);
    CHECK(ucp_st_op_free(both[1]) == UCS_OK);
    ucp_st_peer_destroy(self);
    return status;
}

/** Takes note of the peer's end, as another process would: as long as nobody
 *  does, a dead process still exists. */
typedef struct {
    pid_t     pid;
    int       wstatus;
    pthread_t thread;
} reaper_t;

static void *reaper_main(void *arg)
{
    reaper_t *reaper = arg;

    CHECK(waitpid(reaper->pid, &reaper->wstatus, 0) == reaper->pid);
    return NULL;
}

static void reaper_end(reaper_t *reaper, int is_killed)
{
    CHECK(pthread_join(reaper->thread, NULL) == 0);
    if (is_killed) {
        CHECK(WIFSIGNALED(reaper->wstatus));
    } else {
        CHECK(WIFEXITED(reaper->wstatus) && !WEXITSTATUS(reaper->wstatus));
    }
}

static void survivor(int fd, exit_mode_t mode, int is_used, pid_t pid)
{
    reaper_t reaper    = {.pid = pid};
    int is_moving      = (mode == MODE_MOVING);
    int is_send        = (mode == MODE_MATCH) || (mode == MODE_START);
    static char small[LEN];
    char *buffer       = is_moving ? big_buffer() : small;
    ucp_st_op_h first  = NULL;
    ucs_status_t status;
    ucp_st_op_h op;
    side_t side;

    CHECK(pthread_create(&reaper.thread, NULL, reaper_main, &reaper) == 0);
    side_init(&side);
    side_connect(&side, fd);
    if (is_used) {
        use_once(&side, 0);
    }
    if (mode == MODE_REMATCH) {
        first = make_op(&side, side.peer, is_send, small);
        CHECK(ucp_st_match(first) == UCS_OK);
    }
    op = make_op_of(&side, side.peer, is_send, buffer,
                    is_moving ? MOVING_LEN : LEN);
    if (mode <= MODE_REMATCH) {
        CHECK(write(fd, "", 1) == 1);
        status = ucp_st_match(op);
    } else if (is_moving) {
        status = receive_in_vain(&side, op, buffer, pid);
    } else {
        status = use_in_vain(&side, fd, op, mode);
    }
    fprintf(stderr, "the call returned: %s\n", ucs_status_string(status));
    CHECK(is_death(status));
    CHECK(ucp_st_op_free(op) == UCS_OK);
    CHECK((first == NULL) || (ucp_st_op_free(first) == UCS_OK));
    reaper_end(&reaper, is_moving);
    check_self_message(&side);
    CHECK(ucp_st_queue_destroy(side.queue) == UCS_OK);
    ucp_st_peer_destroy(side.peer);
    CHECK(ucp_st_worker_destroy(side.worker) == UCS_OK);
    CHECK(ucs_gstream_destroy(side.stream) == UCS_OK);
}

static exit_mode_t mode_of(const char *name)
{
    unsigned i;

    for (i = 0; (i < MODE_LAST) && strcmp(mode_names[i], name); ++i) {
        /* look on */
    }
    return (exit_mode_t)i;
}

int main(int argc, char **argv)
{
    exit_mode_t mode = (argc > 1) ? mode_of(argv[1]) : MODE_LAST;
    int is_used      = (argc == 3) && !strcmp(argv[2], "used");
    int fds[2];
    pid_t pid;

    if ((mode == MODE_LAST) || (argc != (2 + is_used))) {
        fprintf(stderr, "usage: %s match|rematch|start|receive|compute|batch|"
                "moving [used]\n", argv[0]);
        return 2;
    }
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        peer_process(fds[1], mode, is_used);
    }
    close(fds[1]);
    survivor(fds[0], mode, is_used, pid);
    return 0;
}
