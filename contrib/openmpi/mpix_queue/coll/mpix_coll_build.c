/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_coll_build.c - the algorithms, as steps.
 *
 * Barrier: dissemination (D. Hensgen, R. Finkel, U. Manber: Two Algorithms for
 * Barrier Synchronization, 1988). Bcast, Reduce: binomial trees. Allreduce:
 * recursive doubling for short vectors, for long ones a ring of reductions and
 * one of copies (P. Patarasuk, X. Yuan: Bandwidth Optimal All-reduce Algorithms
 * for Clusters of Workstations, 2009). Allgather: ring. Alltoall: all at once
 * for few ranks, else pairwise exchange. A Barrier, and an Allreduce of a few
 * words, of few ranks in one node: each rank sends to all others, and reduces
 * all itself. For those, and the order of operands where an operation is not
 * commutative, see R. Thakur, R. Rabenseifner, W. Gropp: Optimization of
 * Collective Communication Operations in MPICH, 2005.
 *
 * A reduction combines neighbouring ranges of ranks, of which the left operand
 * is the lower one, unless the operation is commutative: this is MPI's
 * canonical order.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_comm.h"
#include "mpix_coll.h"
#include "request/mpix_buffer.h"

#include <stdlib.h>

/* From so many bytes on an Allreduce is a ring */
#define MPIX_COLL_RING_MIN 65536

/* Up to so many ranks an Alltoall is one round */
#define MPIX_COLL_ALLTOALL_MAX 16

/* Up to so many bytes, and within a node so many ranks if the environment does
 * not say it, an Allreduce is one round */
#define MPIX_COLL_FLAT_LENGTH 1024
#define MPIX_COLL_FLAT_MAX    16


static size_t mpix_coll_extent(MPI_Datatype datatype)
{
    MPI_Aint lb, extent;

    PMPI_Type_get_extent(datatype, &lb, &extent);
    return extent;
}

static void *mpix_coll_at(const void *buffer, size_t index, size_t size)
{
    return (char*)buffer + index * size;
}

static int mpix_coll_rank_at(const mpix_coll_t *coll, int distance)
{
    return (int)(((int64_t)coll->rank + distance + coll->size) % coll->size);
}

/* Adds a copy from a buffer of the application to another one: a message to
 * oneself where one is not contiguous. */
static void mpix_coll_move(mpix_coll_t *coll, void *dst, const void *src,
                           const mpix_coll_args_t *args)
{
    size_t length, dst_length;
    void *from, *to;

    if (dst == src) {
        return;
    }

    if (!mpix_buffer_is_contig(src, args->sendcount, args->sendtype, &from,
                                 &length) ||
        !mpix_buffer_is_contig(dst, args->recvcount, args->recvtype, &to,
                                 &dst_length)) {
        mpix_coll_send(coll, src, args->sendcount, args->sendtype, coll->rank);
        mpix_coll_recv(coll, dst, args->recvcount, args->recvtype, coll->rank);
        mpix_coll_end_round(coll);
        return;
    }
    mpix_coll_copy(coll, to, from, (length < dst_length) ? length : dst_length);
}

/* Whether each rank is to have a message from each other one: if there are few,
 * and all are in one node. The answer is the same on all ranks. */
static int mpix_coll_is_flat(const mpix_coll_t *coll)
{
    const char *value = getenv("MPIX_QUEUE_FLAT_MAX");
    const long max    = ((value == NULL) || (*value == '\0')) ?
                                MPIX_COLL_FLAT_MAX :
                                strtol(value, NULL, 10);

    return (coll->size <= max) && mpix_comm_is_in_node(coll->comm);
}

static void mpix_coll_barrier_flat(mpix_coll_t *coll)
{
    int i;

    for (i = 1; i < coll->size; ++i) {
        mpix_coll_recv(coll, NULL, 0, MPI_BYTE, mpix_coll_rank_at(coll, -i));
        mpix_coll_send(coll, NULL, 0, MPI_BYTE, mpix_coll_rank_at(coll, i));
    }
    mpix_coll_end_round(coll);
}

static void mpix_coll_barrier(mpix_coll_t *coll, const mpix_coll_args_t *args)
{
    int64_t distance;

    if (mpix_coll_is_flat(coll)) {
        mpix_coll_barrier_flat(coll);
        return;
    }

    for (distance = 1; distance < coll->size; distance *= 2) {
        mpix_coll_recv(coll, NULL, 0, MPI_BYTE,
                       mpix_coll_rank_at(coll, -(int)distance));
        mpix_coll_send(coll, NULL, 0, MPI_BYTE,
                       mpix_coll_rank_at(coll, (int)distance));
        mpix_coll_end_round(coll);
    }
}

static void mpix_coll_bcast(mpix_coll_t *coll, const mpix_coll_args_t *args)
{
    const int place = mpix_coll_rank_at(coll, -args->root);
    int64_t mask    = 1;

    for (; (mask < coll->size) && !(place & mask); mask *= 2) {
    }
    if (place != 0) {
        mpix_coll_recv(coll, args->recvbuf, args->recvcount, args->recvtype,
                       mpix_coll_rank_at(coll, -(int)mask));
        mpix_coll_end_round(coll);
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        if ((place + mask) < coll->size) {
            mpix_coll_send(coll, args->recvbuf, args->recvcount, args->recvtype,
                           mpix_coll_rank_at(coll, (int)mask));
        }
    }
    mpix_coll_end_round(coll);
}

/* What a reduction needs, and what this process puts in. */
static const void *mpix_coll_reduce_begin(mpix_coll_t *coll,
                                          const mpix_coll_args_t *args,
                                          int has_result)
{
    const int is_in_place = has_result && (args->sendbuf == MPI_IN_PLACE);
    const void *input     = is_in_place ? args->recvbuf : args->sendbuf;
    const char *refusal;

    refusal = mpix_coll_op_init(&coll->op, args->op, args->recvtype);
    if (refusal != NULL) {
        mpix_coll_refuse(coll, refusal);
    }
    return input;
}

/* A binomial tree. It ends at rank 0, which sends to the root, where the order
 * matters: there places in the tree are ranks. A rank's sum is in the buffer
 * that the last child's came to. */
static void mpix_coll_reduce_tree(mpix_coll_t *coll,
                                  const mpix_coll_args_t *args)
{
    const int is_root = (coll->rank == args->root);
    const void *acc   = mpix_coll_reduce_begin(coll, args, is_root);
    const int top     = coll->op.is_commutative ? args->root : 0;
    const int place   = mpix_coll_rank_at(coll, -top);
    const size_t size = args->recvcount * coll->op.size;
    void *buffers[2]  = {NULL, NULL};
    unsigned child    = 0;
    int64_t mask;
    void *buffer;

    for (mask = 1; (mask < coll->size) && !(place & mask); mask *= 2) {
        if ((place + mask) >= coll->size) {
            continue;
        }
        if (child < 2) {
            buffers[child] = mpix_coll_tmp(coll, size);
        }
        buffer = buffers[child++ % 2];
        mpix_coll_recv(coll, buffer, args->recvcount, args->recvtype,
                       mpix_coll_rank_at(coll, (int)mask));
        mpix_coll_end_round(coll);
        mpix_coll_reduce(coll, acc, buffer, args->recvcount);
        acc = buffer;
    }

    if (place != 0) {
        mpix_coll_send(coll, acc, args->recvcount, args->recvtype,
                       mpix_coll_rank_at(coll, -(int)mask));
    } else if (!is_root) {
        mpix_coll_send(coll, acc, args->recvcount, args->recvtype, args->root);
    } else {
        mpix_coll_move(coll, args->recvbuf, acc, args);
    }
    mpix_coll_end_round(coll);
    if (is_root && (place != 0)) {
        mpix_coll_recv(coll, args->recvbuf, args->recvcount, args->recvtype,
                       top);
        mpix_coll_end_round(coll);
    }
}

/* The sum of this process and what comes from a rank: 'acc' and 'other' change
 * places where the own one is the left operand. */
static void mpix_coll_combine(mpix_coll_t *coll, void **acc, void **other,
                              int rank, MPI_Count count)
{
    void *left = *acc;

    if (coll->op.is_commutative || (rank < coll->rank)) {
        mpix_coll_reduce(coll, *other, *acc, count);
    } else {
        mpix_coll_reduce(coll, *acc, *other, count);
        *acc   = *other;
        *other = left;
    }
}

/* The ranks beyond the largest power of two that there is leave the exchange to
 * neighbours: of the first 2 * 'extra' ranks only the odd ones take part. */
static void mpix_coll_allreduce_doubling(mpix_coll_t *coll,
                                         const mpix_coll_args_t *args,
                                         const void *input)
{
    const size_t size  = args->recvcount * coll->op.size;
    void *acc          = args->recvbuf;
    void *other        = mpix_coll_tmp(coll, size);
    int power          = 1;
    const int rank     = coll->rank;
    int mask, extra, place, peer;

    while (power <= (coll->size / 2)) {
        power *= 2;
    }
    extra = coll->size - power;

    mpix_coll_move(coll, acc, input, args);
    if ((rank < (2 * extra)) && (rank % 2 == 0)) {
        mpix_coll_send(coll, acc, args->recvcount, args->recvtype, rank + 1);
        mpix_coll_end_round(coll);
        mpix_coll_recv(coll, acc, args->recvcount, args->recvtype, rank + 1);
        mpix_coll_end_round(coll);
        return;
    }
    if (rank < (2 * extra)) {
        mpix_coll_recv(coll, other, args->recvcount, args->recvtype, rank - 1);
        mpix_coll_end_round(coll);
        mpix_coll_combine(coll, &acc, &other, rank - 1, args->recvcount);
    }

    place = (rank < (2 * extra)) ? rank / 2 : rank - extra;
    for (mask = 1; mask < power; mask *= 2) {
        peer = place ^ mask;
        peer = (peer < extra) ? 2 * peer + 1 : peer + extra;
        mpix_coll_recv(coll, other, args->recvcount, args->recvtype, peer);
        mpix_coll_send(coll, acc, args->recvcount, args->recvtype, peer);
        mpix_coll_end_round(coll);
        mpix_coll_combine(coll, &acc, &other, peer, args->recvcount);
    }

    if (rank < (2 * extra)) {
        mpix_coll_send(coll, acc, args->recvcount, args->recvtype, rank - 1);
        mpix_coll_end_round(coll);
    }
    mpix_coll_move(coll, args->recvbuf, acc, args);
}

/* All ranks reduce the same in the same order, from the last rank's part down:
 * that of another rank comes to the place where the sums are to be. In place,
 * the own part is where the result goes, and is sent from there. */
static void mpix_coll_allreduce_flat(mpix_coll_t *coll,
                                     const mpix_coll_args_t *args,
                                     const void *input)
{
    const size_t size = args->recvcount * coll->op.size;
    const int last    = coll->size - 1;
    void *parts       = mpix_coll_tmp(coll, size * coll->size);
    void *sum         = ((input == args->recvbuf) && (coll->rank != last)) ?
                                mpix_coll_at(parts, last, size) :
                                args->recvbuf;
    int i, rank;

    if (coll->rank == last) {
        mpix_coll_move(coll, sum, input, args);
    }
    for (i = 1; i < coll->size; ++i) {
        rank = mpix_coll_rank_at(coll, -i);
        mpix_coll_recv(coll,
                       (rank == last) ? sum : mpix_coll_at(parts, rank, size),
                       args->recvcount, args->recvtype, rank);
        mpix_coll_send(coll, input, args->recvcount, args->recvtype,
                       mpix_coll_rank_at(coll, i));
    }
    mpix_coll_end_round(coll);

    for (rank = last - 1; rank >= 0; --rank) {
        mpix_coll_reduce(coll,
                         (rank == coll->rank) ? input :
                                                mpix_coll_at(parts, rank, size),
                         sum, args->recvcount);
    }
    mpix_coll_move(coll, args->recvbuf, sum, args);
}

/* First element of a rank's part of a vector. */
static MPI_Count mpix_coll_part(const mpix_coll_t *coll, MPI_Count count,
                                int rank)
{
    return count / coll->size * rank + count % coll->size * rank / coll->size;
}

static void mpix_coll_allreduce_ring(mpix_coll_t *coll,
                                     const mpix_coll_args_t *args,
                                     const void *input)
{
    const size_t size     = coll->op.size;
    const int right       = mpix_coll_rank_at(coll, 1);
    const int left        = mpix_coll_rank_at(coll, -1);
    const MPI_Count count = args->recvcount;
    void *tmp = mpix_coll_tmp(coll, (count / coll->size + 1) * size);
    MPI_Count in_first, out_first, in_count, out_count;
    int i, in, out;
    void *to;

    /* Sums go around, then results */
    mpix_coll_move(coll, args->recvbuf, input, args);
    for (i = 0; i < 2 * (coll->size - 1); ++i) {
        out       = mpix_coll_rank_at(coll, (i < (coll->size - 1)) ?
                                                    -i :
                                                    coll->size - i);
        in        = (out + coll->size - 1) % coll->size;
        out_first = mpix_coll_part(coll, count, out);
        out_count = mpix_coll_part(coll, count, out + 1) - out_first;
        in_first  = mpix_coll_part(coll, count, in);
        in_count  = mpix_coll_part(coll, count, in + 1) - in_first;
        to        = mpix_coll_at(args->recvbuf, in_first, size);

        mpix_coll_recv(coll, (i < (coll->size - 1)) ? tmp : to, in_count,
                       args->recvtype, left);
        mpix_coll_send(coll, mpix_coll_at(args->recvbuf, out_first, size),
                       out_count, args->recvtype, right);
        mpix_coll_end_round(coll);
        if (i < (coll->size - 1)) {
            mpix_coll_reduce(coll, tmp, to, in_count);
        }
    }
}

static void mpix_coll_allreduce(mpix_coll_t *coll, const mpix_coll_args_t *args)
{
    const void *input = mpix_coll_reduce_begin(coll, args, 1);

    if ((args->recvcount >= coll->size) && coll->op.is_commutative &&
        ((args->recvcount * coll->op.size) >= MPIX_COLL_RING_MIN)) {
        mpix_coll_allreduce_ring(coll, args, input);
    } else if (((args->recvcount * coll->op.size) <= MPIX_COLL_FLAT_LENGTH) &&
               mpix_coll_is_flat(coll)) {
        mpix_coll_allreduce_flat(coll, args, input);
    } else {
        mpix_coll_allreduce_doubling(coll, args, input);
    }
}

/* A reduction. The host reduces: what lies in the memory of a device is moved
 * to memory of the host first, and the result back. */
static void mpix_coll_reduction(mpix_coll_t *coll, const mpix_coll_args_t *args)
{
    const int is_all      = (args->kind == MPIX_COLL_ALLREDUCE);
    const int has_result  = is_all || (coll->rank == args->root);
    const int is_in_place = has_result && (args->sendbuf == MPI_IN_PLACE);
    const size_t length   = args->recvcount * mpix_coll_extent(args->recvtype);
    mpix_coll_args_t host = *args;
    void *tmp;

    if (!is_in_place && mpix_buffer_is_device(args->sendbuf, args->recvtype)) {
        tmp          = mpix_coll_tmp(coll, length);
        host.sendbuf = tmp;
        mpix_coll_move(coll, tmp, args->sendbuf, args);
    }
    if (has_result && mpix_buffer_is_device(args->recvbuf, args->recvtype)) {
        host.recvbuf = mpix_coll_tmp(coll, length);
    }
    if (is_in_place) {
        mpix_coll_move(coll, host.recvbuf, args->recvbuf, args);
    }

    if (is_all) {
        mpix_coll_allreduce(coll, &host);
    } else {
        mpix_coll_reduce_tree(coll, &host);
    }
    mpix_coll_move(coll, args->recvbuf, host.recvbuf, args);
}

static void mpix_coll_allgather(mpix_coll_t *coll, const mpix_coll_args_t *args)
{
    const size_t size = args->recvcount * mpix_coll_extent(args->recvtype);
    int i, out;

    if (args->sendbuf != MPI_IN_PLACE) {
        mpix_coll_move(coll, mpix_coll_at(args->recvbuf, coll->rank, size),
                       args->sendbuf, args);
    }
    for (i = 0; i < (coll->size - 1); ++i) {
        out = mpix_coll_rank_at(coll, -i);
        mpix_coll_recv(coll,
                       mpix_coll_at(args->recvbuf,
                                    (out + coll->size - 1) % coll->size, size),
                       args->recvcount, args->recvtype,
                       mpix_coll_rank_at(coll, -1));
        mpix_coll_send(coll, mpix_coll_at(args->recvbuf, out, size),
                       args->recvcount, args->recvtype,
                       mpix_coll_rank_at(coll, 1));
        mpix_coll_end_round(coll);
    }
}

/* The exchange, out of place. */
static void mpix_coll_alltoall_run(mpix_coll_t *coll,
                                   const mpix_coll_args_t *args)
{
    const size_t out_size = args->sendcount * mpix_coll_extent(args->sendtype);
    const size_t in_size  = args->recvcount * mpix_coll_extent(args->recvtype);
    const int is_at_once  = (coll->size <= MPIX_COLL_ALLTOALL_MAX);
    int i, to, from;

    mpix_coll_move(coll, mpix_coll_at(args->recvbuf, coll->rank, in_size),
                   mpix_coll_at(args->sendbuf, coll->rank, out_size), args);
    for (i = 1; i < coll->size; ++i) {
        to   = mpix_coll_rank_at(coll, i);
        from = mpix_coll_rank_at(coll, -i);
        mpix_coll_recv(coll, mpix_coll_at(args->recvbuf, from, in_size),
                       args->recvcount, args->recvtype, from);
        mpix_coll_send(coll, mpix_coll_at(args->sendbuf, to, out_size),
                       args->sendcount, args->sendtype, to);
        if (!is_at_once) {
            mpix_coll_end_round(coll);
        }
    }
    mpix_coll_end_round(coll);
}

/* In place, blocks are sent from memory that they are packed into first: with
 * gaps, they may reach beyond their extents. */
static void mpix_coll_alltoall(mpix_coll_t *coll, const mpix_coll_args_t *args)
{
    const size_t block      = args->recvcount *
                              mpix_coll_extent(args->recvtype);
    mpix_coll_args_t pack   = *args;
    mpix_coll_args_t packed = *args;
    MPI_Datatype bytes;
    int i, size;
    void *tmp;

    if (args->sendbuf != MPI_IN_PLACE) {
        mpix_coll_alltoall_run(coll, args);
        return;
    }

    PMPI_Type_size(args->recvtype, &size);
    if (size == MPI_UNDEFINED) {
        mpix_coll_refuse(coll, "in place, and an element has over 2 GiB");
        return;
    }

    PMPI_Type_contiguous(size, MPI_BYTE, &bytes);
    PMPI_Type_commit(&bytes);
    tmp = mpix_coll_tmp(coll, (size_t)coll->size * args->recvcount * size);

    pack.sendcount = args->recvcount;
    pack.sendtype  = args->recvtype;
    pack.recvtype  = bytes;
    for (i = 0; i < coll->size; ++i) {
        mpix_coll_move(coll,
                       mpix_coll_at(tmp, i, (size_t)args->recvcount * size),
                       mpix_coll_at(args->recvbuf, i, block), &pack);
    }

    packed.sendbuf   = tmp;
    packed.sendcount = args->recvcount;
    packed.sendtype  = bytes;
    mpix_coll_alltoall_run(coll, &packed);
    PMPI_Type_free(&bytes);
}

int mpix_coll_build(mpix_coll_t *coll, const mpix_coll_args_t *args)
{
    static void (*const build[])(mpix_coll_t *coll,
                                 const mpix_coll_args_t *args) = {
        [MPIX_COLL_BARRIER]            = mpix_coll_barrier,
        [MPIX_COLL_BCAST]              = mpix_coll_bcast,
        [MPIX_COLL_ALLREDUCE]          = mpix_coll_reduction,
        [MPIX_COLL_REDUCE]             = mpix_coll_reduction,
        [MPIX_COLL_ALLGATHER]          = mpix_coll_allgather,
        [MPIX_COLL_ALLTOALL]           = mpix_coll_alltoall,
        [MPIX_COLL_NEIGHBOR_ALLTOALL]  = mpix_coll_build_neighbor,
        [MPIX_COLL_NEIGHBOR_ALLTOALLV] = mpix_coll_build_neighbor
    };
    int is_inter;

    coll->comm = args->comm;
    PMPI_Comm_rank(args->comm, &coll->rank);
    PMPI_Comm_size(args->comm, &coll->size);
    PMPI_Comm_test_inter(args->comm, &is_inter);
    if (is_inter) {
        mpix_coll_refuse(coll, "its communicator is an intercommunicator");
    } else {
        build[args->kind](coll, args);
    }
    return coll->code;
}
