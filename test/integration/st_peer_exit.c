/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_peer_exit.c - a peer process that dies. No MPI: the program forks first,
 * and the two processes exchange addresses over a socket pair. One argument,
 * where the peer dies:
 *
 *   match   while the other side is blocked in a match with it
 *   start   after the match, while the other side's stream waits for it
 *
 * The surviving side's call must return the error of a dead peer, its queue and
 * operations must be freeable, and a new pair of another peer must still work.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <ucp_st.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN 16384 /* more than is sent ahead of its receive */

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
    ucs_gstream_params_t stream_params = {.field_mask = 0};
    ucp_st_worker_params_t params      = {.field_mask = 0};
    ucp_st_queue_params_t queue_params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };

    CHECK(ucs_gstream_create(&stream_params, &side->stream) == UCS_OK);
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

static ucp_st_op_h make_op(side_t *side, ucp_st_peer_h peer, int is_send,
                           void *buffer)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER,
        .buffer     = buffer,
        .length     = LEN,
        .peer       = peer
    };
    ucp_st_op_h op;

    CHECK((is_send ? ucp_st_send_init : ucp_st_recv_init)(side->worker, &params,
                                                          &op) == UCS_OK);
    return op;
}

static int is_death(ucs_status_t status)
{
    return (status == UCS_ERR_ENDPOINT_TIMEOUT) ||
           (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_REJECTED) || (status == UCS_ERR_CANCELED);
}

/* Never calls a destructor: this is a crash */
static void peer_process(int fd, int in_match)
{
    static char buffer[LEN];
    ucp_st_op_h op;
    side_t side;
    char c;

    side_init(&side);
    side_connect(&side, fd);
    if (!in_match) {
        op = make_op(&side, side.peer, 0, buffer);
        CHECK(ucp_st_match(op) == UCS_OK);
    }
    CHECK(read(fd, &c, 1) == 1);
    if (in_match) {
        /* Let the survivor block first, as far as one can tell: its message has
         * come or will never be answered; either way its match must end */
        ucp_st_worker_progress(side.worker);
    }
    _exit(0);
}

/* What does not involve the dead peer goes on: a message to oneself */
static void check_self_message(side_t *side)
{
    static char sbuf[LEN], rbuf[LEN];
    ucp_st_queue_params_t params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM,
        .stream     = side->stream
    };
    ucp_st_queue_h queue;
    ucp_st_peer_h self;
    ucp_st_op_h ops[2];
    size_t length;
    void *address;

    CHECK(ucp_st_worker_get_address(side->worker, &address, &length) == UCS_OK);
    CHECK(ucp_st_peer_create(side->worker, address, length, &self) == UCS_OK);
    ucp_st_worker_release_address(side->worker, address);
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

static void survivor(int fd, int in_match, pid_t pid)
{
    static char buffer[LEN];
    ucp_st_queue_error_t error = {0};
    ucs_status_t status;
    ucp_st_op_h op;
    side_t side;
    int wstatus;

    side_init(&side);
    side_connect(&side, fd);
    op = make_op(&side, side.peer, 1, buffer);
    if (in_match) {
        CHECK(write(fd, "", 1) == 1);
        status = ucp_st_match(op);
    } else {
        CHECK(ucp_st_match(op) == UCS_OK);
        CHECK(ucp_st_enqueue_start(side.queue, op) == UCS_OK);
        CHECK(ucp_st_enqueue_wait(side.queue, op) == UCS_OK);
        CHECK(write(fd, "", 1) == 1);
        status = ucp_st_queue_wait(side.queue, &error);
        CHECK(error.op == op);
        CHECK(error.status == status);
    }
    fprintf(stderr, "the call returned: %s\n", ucs_status_string(status));
    CHECK(is_death(status));
    CHECK(ucp_st_op_free(op) == UCS_OK);
    CHECK(waitpid(pid, &wstatus, 0) == pid);
    CHECK(WIFEXITED(wstatus) && (WEXITSTATUS(wstatus) == 0));

    check_self_message(&side);
    CHECK(ucp_st_queue_destroy(side.queue) == UCS_OK);
    ucp_st_peer_destroy(side.peer);
    CHECK(ucp_st_worker_destroy(side.worker) == UCS_OK);
    CHECK(ucs_gstream_destroy(side.stream) == UCS_OK);
}

int main(int argc, char **argv)
{
    int in_match = (argc == 2) && !strcmp(argv[1], "match");
    int fds[2];
    pid_t pid;

    if (!in_match && ((argc != 2) || strcmp(argv[1], "start"))) {
        fprintf(stderr, "usage: %s match|start\n", argv[0]);
        return 2;
    }
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        peer_process(fds[1], in_match);
    }
    close(fds[1]);
    survivor(fds[0], in_match, pid);
    return 0;
}
