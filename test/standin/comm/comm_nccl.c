/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm_nccl.c - a stand-in for NCCL's ncclSend() and ncclRecv(): copies of the
 * stream to and from memory that the processes share, with words to wait for.
 * Messages are short. What a group has begun is enqueued at its end, the sends
 * first.
 */
#include "comm.h"
#include "standin_cuda.h"

#include <stdlib.h>
#include <string.h>

#define COMM_MAX_OPS   256
#define COMM_BYTE      1
#define COMM_INVALID   4 /* ncclInvalidArgument */
#define COMM_NO_SYSTEM 2 /* ncclSystemError */

typedef struct {
    char bytes[128];
} comm_id_t;

typedef struct {
    int      is_send;
    uint64_t address;
    size_t   size;
    int      peer;
    void     *stream;
} comm_op_t;

/* The process's. Main thread only. */
static comm_t comm_self;
static comm_op_t comm_ops[COMM_MAX_OPS];
static unsigned comm_num_ops, comm_is_group;
static uint64_t comm_sent[COMM_MAX_RANKS], comm_received[COMM_MAX_RANKS];


STANDIN_API const char *ncclGetErrorString(int result)
{
    return (result == 0) ? "no error" : "an error of the stand-in";
}

STANDIN_API int ncclGetUniqueId(comm_id_t *id)
{
    return (comm_make(id->bytes) == 0) ? 0 : COMM_NO_SYSTEM;
}

STANDIN_API int ncclCommInitRank(void **comm, int ranks, comm_id_t id, int rank)
{
    if (comm_join(&comm_self, id.bytes, rank, ranks) != 0) {
        return COMM_NO_SYSTEM;
    }
    *comm = &comm_self;
    return cuMemHostRegister_v2(comm_self.job->pipes,
                                sizeof(comm_self.job->pipes), 3);
}

STANDIN_API int ncclCommDestroy(void *comm)
{
    int result = cuMemHostUnregister(comm_self.job->pipes);

    comm_leave(comm);
    return result;
}

/* As the device addresses memory of the host */
static uint64_t comm_address(void *host)
{
    uint64_t address;

    if (cuMemHostGetDevicePointer_v2(&address, host, 0) != 0) {
        abort();
    }
    return address;
}

static int comm_send(const comm_op_t *op)
{
    comm_pipe_t *pipe = &comm_self.job->pipes[comm_self.rank][op->peer];
    uint64_t count    = comm_sent[op->peer]++;
    uint64_t room     = (count < COMM_NUM_SLOTS) ? 0 :
                                                   count + 1 - COMM_NUM_SLOTS;

    return cuStreamWaitValue64_v2(op->stream, comm_address(&pipe->received),
                                  room, 0) |
           cuMemcpyAsync(comm_address(pipe->slots[count % COMM_NUM_SLOTS]),
                         op->address, op->size, op->stream) |
           cuStreamWriteValue64_v2(op->stream, comm_address(&pipe->sent),
                                   count + 1, 0);
}

static int comm_recv(const comm_op_t *op)
{
    comm_pipe_t *pipe = &comm_self.job->pipes[op->peer][comm_self.rank];
    uint64_t count    = comm_received[op->peer]++;

    return cuStreamWaitValue64_v2(op->stream, comm_address(&pipe->sent),
                                  count + 1, 0) |
           cuMemcpyAsync(op->address,
                         comm_address(pipe->slots[count % COMM_NUM_SLOTS]),
                         op->size, op->stream) |
           cuStreamWriteValue64_v2(op->stream, comm_address(&pipe->received),
                                   count + 1, 0);
}

STANDIN_API int ncclGroupStart(void)
{
    comm_is_group = 1;
    return 0;
}

STANDIN_API int ncclGroupEnd(void)
{
    int result = 0;
    int is_send;
    unsigned i;

    for (is_send = 1; is_send >= 0; --is_send) {
        for (i = 0; i < comm_num_ops; ++i) {
            if (comm_ops[i].is_send == is_send) {
                result |= is_send ? comm_send(&comm_ops[i]) :
                                    comm_recv(&comm_ops[i]);
            }
        }
    }
    comm_num_ops  = 0;
    comm_is_group = 0;
    return result;
}

static int comm_add(comm_op_t op, int type)
{
    if ((type != COMM_BYTE) || (op.size > COMM_SLOT_SIZE) || !comm_is_group ||
        (op.peer >= comm_self.ranks) || (comm_num_ops == COMM_MAX_OPS)) {
        return COMM_INVALID;
    }
    comm_ops[comm_num_ops++] = op;
    return 0;
}

STANDIN_API int ncclSend(const void *message, size_t count, int type, int peer,
                         void *comm, void *stream)
{
    (void)comm;
    return comm_add((comm_op_t){1, (uintptr_t)message, count, peer, stream},
                    type);
}

STANDIN_API int ncclRecv(void *message, size_t count, int type, int peer,
                         void *comm, void *stream)
{
    (void)comm;
    return comm_add((comm_op_t){0, (uintptr_t)message, count, peer, stream},
                    type);
}
