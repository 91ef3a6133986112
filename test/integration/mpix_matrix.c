/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_matrix.c - every pairing of how a message is sent and received with
 * every kind of datatype, length and communicator. Lane, binding, thread level
 * and number of ranks come from outside: see tests.list.
 *
 * usage: mpix_matrix [single | funneled | serialized | multiple]
 *
 * Each rank sends to the next one. The receiver makes the sender's buffer anew,
 * sends it to itself where it expects the message, and compares all
 * bytes, those between the elements included.
 */
#include "mpix_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 40

/* Bytes of a buffer: the longest message, its gaps and guards */
#define ROOM  (1 << 19)
#define START (1 << 18) /* Types with negative strides begin here */


typedef enum {
    PAIR_ONCE_ONCE,      /* Messages that are used once, on both sides */
    PAIR_ONCE_PLAIN,     /* To MPI_Recv */
    PAIR_PLAIN_ONCE,     /* From MPI_Isend */
    PAIR_MATCHED,        /* Persistent requests, matched */
    PAIR_MATCHED_READY,  /* The same with MPI_Rsend_init */
    PAIR_LAST
} pair_t;

typedef enum {
    TYPE_DOUBLE,
    TYPE_VECTOR,
    TYPE_BACKWARD,
    TYPE_INDEXED,
    TYPE_RESIZED,
    TYPE_PAIR,
    TYPE_SUBARRAY,
    TYPE_ABSOLUTE,  /* From MPI_BOTTOM */
    TYPE_LAST
} type_t;

typedef enum {
    COMM_WORLD,
    COMM_DUP,
    COMM_REVERSED,
    COMM_INTER,
    COMM_SELF,
    COMM_FREED,
    COMM_LAST
} comm_t;

static const char *const pair_names[] = {
    "once-once", "once-plain", "plain-once", "matched", "matched-ready"
};
static const char *const type_names[] = {
    "double", "vector", "backward", "indexed", "resized", "pair", "subarray",
    "absolute"
};
static const char *const comm_names[] = {
    "world", "dup", "reversed", "inter", "self", "freed"
};

static const int counts[] = {0, 1, 5, 300, 2000};

/* One exchange. */
typedef struct exchange {
    pair_t   pair;
    type_t   type;
    comm_t   kind;
    int      count;
    MPI_Comm comm;
    int      dest;    /* Ranks of comm */
    int      source;
    int      sender;  /* Rank of MPI_COMM_WORLD behind source */
} exchange_t;

static char *out, *in, *expected, *packed;

/* Thread level allows messages that are used once. */
static int has_once;


/* A buffer's address and type, as seen from a call of MPI. */
typedef struct place {
    void         *address;
    MPI_Datatype type;
} place_t;


static place_t make_place(type_t kind, char *buffer)
{
    const int lengths[] = {2, 1, 3}, places[] = {5, 0, 9};
    const int sizes[] = {4, 6}, parts[] = {2, 3}, starts[] = {1, 2};
    place_t place = {buffer + START, MPI_DATATYPE_NULL};
    MPI_Datatype type;
    MPI_Aint address;

    switch (kind) {
    case TYPE_VECTOR:
        MPI_Type_vector(3, 2, 4, MPI_SHORT, &place.type);
        break;
    case TYPE_BACKWARD:
        MPI_Type_create_hvector(4, 1, -12, MPI_INT, &type);
        MPI_Type_create_resized(type, -36, 48, &place.type);
        MPI_Type_free(&type);
        break;
    case TYPE_INDEXED:
        MPI_Type_indexed(3, lengths, places, MPI_CHAR, &place.type);
        break;
    case TYPE_RESIZED:
        MPI_Type_create_resized(MPI_INT, -4, 20, &place.type);
        break;
    case TYPE_PAIR:
        MPI_Type_dup(MPI_DOUBLE_INT, &place.type);
        break;
    case TYPE_SUBARRAY:
        MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN,
                                 MPI_FLOAT, &place.type);
        break;
    case TYPE_ABSOLUTE:
        MPI_Get_address(place.address, &address);
        MPI_Type_create_hindexed_block(1, 2, &address, MPI_LONG, &place.type);
        place.address = MPI_BOTTOM;
        break;
    default:
        MPI_Type_dup(MPI_DOUBLE, &place.type);
        break;
    }
    MPI_Type_commit(&place.type);
    return place;
}

/* Bytes on each side of START that a message may reach, and more. */
static size_t reach(const exchange_t *ex)
{
    const size_t bytes = 128 * ((size_t)ex->count + 2);

    return (bytes < START) ? bytes : START;
}

static void fill(char *buffer, int rank, const exchange_t *ex)
{
    uint64_t word = 1 + rank + 100 * (uint64_t)ex->pair + 1000 * ex->type +
                    10000 * ex->kind + 100000 * (uint64_t)ex->count;
    size_t i;

    for (i = START - reach(ex); i < START + reach(ex); i += sizeof(word)) {
        word = word * 0x9e3779b97f4a7c15ull + 1;
        memcpy(buffer + i, &word, sizeof(word));
    }
}

/* What the receive's buffer has to be. MPICH's MPI_Pack has no MPI_BOTTOM. */
static void expect(const exchange_t *ex)
{
    MPI_Status status;
    place_t place;
    int size;

    fill(expected, ex->sender, ex);
    place = make_place(ex->type, expected);
    MPI_Sendrecv(place.address, ex->count, place.type, 0, TAG, packed, ROOM,
                 MPI_PACKED, 0, TAG, MPI_COMM_SELF, &status);
    MPI_Get_count(&status, MPI_PACKED, &size);
    memset(expected + START - reach(ex), 0x5a, 2 * reach(ex));
    MPI_Sendrecv(packed, size, MPI_PACKED, 0, TAG, place.address, ex->count,
                 place.type, 0, TAG, MPI_COMM_SELF, &status);
    MPI_Type_free(&place.type);
}

static void check_status(const exchange_t *ex, MPI_Status *status,
                         MPI_Datatype type)
{
    int count;

    MPI_Get_count(status, type, &count);
    MPIX_CHECK((status->MPI_SOURCE == ex->source) && (status->MPI_TAG == TAG) &&
               (count == ex->count), "%s %s %s %d: source %d tag %d count %d",
               pair_names[ex->pair], type_names[ex->type],
               comm_names[ex->kind], ex->count, status->MPI_SOURCE,
               status->MPI_TAG, count);
}

static void free_comm(exchange_t *ex)
{
    if (ex->kind == COMM_FREED) {
        MPI_Comm_free(&ex->comm);
    }
}

/* Messages that are used once on one side or both. */
static void run_once(exchange_t *ex, const place_t *from, const place_t *to)
{
    const int sends_once = (ex->pair != PAIR_PLAIN_ONCE);
    const int recvs_once = (ex->pair != PAIR_ONCE_PLAIN);
    MPI_Request requests[2];
    MPI_Status statuses[2];

    if (recvs_once) {
        MPIX_OK(MPIX_Enqueue_recv(to->address, ex->count, to->type, ex->source,
                                  TAG, ex->comm, mpix_test.queue,
                                  &requests[1]));
    } else {
        MPIX_OK(MPI_Irecv(to->address, ex->count, to->type, ex->source, TAG,
                          ex->comm, &requests[1]));
    }
    if (sends_once) {
        MPIX_OK(MPIX_Enqueue_send(from->address, ex->count, from->type,
                                  ex->dest, TAG, ex->comm, mpix_test.queue,
                                  &requests[0]));
    } else {
        MPIX_OK(MPI_Isend(from->address, ex->count, from->type, ex->dest, TAG,
                          ex->comm, &requests[0]));
    }
    free_comm(ex);
    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue));
    MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue));
    MPIX_OK(MPI_Waitall(2, requests, statuses));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    check_status(ex, &statuses[1], to->type);
}

/* A ready send is started when its receive has been on the other side. */
static void run_matched(exchange_t *ex, const place_t *from, const place_t *to)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];

    if (ex->pair == PAIR_MATCHED_READY) {
        MPIX_OK(MPI_Rsend_init(from->address, ex->count, from->type, ex->dest,
                               TAG, ex->comm, &requests[0]));
    } else {
        MPIX_OK(MPI_Send_init(from->address, ex->count, from->type, ex->dest,
                              TAG, ex->comm, &requests[0]));
    }
    MPIX_OK(MPI_Recv_init(to->address, ex->count, to->type, ex->source, TAG,
                          ex->comm, &requests[1]));
    free_comm(ex);
    MPIX_OK(MPIX_Matchall(2, requests, statuses));
    check_status(ex, &statuses[1], to->type);

    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, &requests[1]));
    if (ex->pair == PAIR_MATCHED_READY) {
        MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, &requests[0]));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPI_Request_free(&requests[0]));
    MPIX_OK(MPI_Request_free(&requests[1]));
}

static void run_exchange(exchange_t *ex)
{
    place_t from, to;

    fill(out, mpix_test.rank, ex);
    memset(in + START - reach(ex), 0x5a, 2 * reach(ex));
    from = make_place(ex->type, out);
    to   = make_place(ex->type, in);
    if (ex->pair < PAIR_MATCHED) {
        run_once(ex, &from, &to);
    } else {
        run_matched(ex, &from, &to);
    }
    MPI_Type_free(&from.type);
    MPI_Type_free(&to.type);

    expect(ex);
    MPIX_CHECK(!memcmp(in + START - reach(ex), expected + START - reach(ex),
                       2 * reach(ex)), "%s %s %s %d: wrong bytes",
               pair_names[ex->pair], type_names[ex->type],
               comm_names[ex->kind], ex->count);
}

/* An intercommunicator between the even and the odd ranks. */
static MPI_Comm make_inter(void)
{
    const int is_odd = mpix_test.rank % 2;
    MPI_Comm local, inter;

    MPI_Comm_split(MPI_COMM_WORLD, is_odd, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - is_odd, 0, &inter);
    MPI_Comm_free(&local);
    return inter;
}

/* Fills in the communicator and the ranks; returns 0 where this rank is left
 * over. */
static int make_comm(exchange_t *ex)
{
    const int last = mpix_test.size - 1;

    ex->dest   = mpix_test.right;
    ex->source = mpix_test.left;
    ex->sender = mpix_test.left;
    switch (ex->kind) {
    case COMM_REVERSED:
        MPI_Comm_split(MPI_COMM_WORLD, 0, -mpix_test.rank, &ex->comm);
        ex->dest   = last - mpix_test.right;
        ex->source = last - mpix_test.left;
        break;
    case COMM_INTER:
        ex->comm   = make_inter();
        ex->dest   = mpix_test.rank / 2;
        ex->source = mpix_test.rank / 2;
        ex->sender = mpix_test.rank ^ 1;
        return ex->sender < mpix_test.size;
    case COMM_SELF:
        MPI_Comm_dup(MPI_COMM_SELF, &ex->comm);
        ex->dest   = 0;
        ex->source = 0;
        ex->sender = mpix_test.rank;
        break;
    default:
        MPI_Comm_dup(MPI_COMM_WORLD, &ex->comm);
        break;
    }
    return 1;
}

/* All exchanges on one communicator. A barrier of all ranks is in each of the
 * ready ones, of which intercommunicators have none where a rank is left
 * over. */
static void run_comm(comm_t kind)
{
    exchange_t ex = {.kind = kind};
    int is_member = make_comm(&ex);
    MPI_Comm comm = ex.comm;
    size_t i;

    for (ex.pair = 0; ex.pair < PAIR_LAST; ++ex.pair) {
        if (((ex.pair < PAIR_MATCHED) && !has_once) ||
            ((ex.pair == PAIR_MATCHED_READY) && (kind == COMM_INTER))) {
            continue;
        }
        for (ex.type = 0; ex.type < TYPE_LAST; ++ex.type) {
            for (i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
                ex.count = (ex.type == TYPE_ABSOLUTE) ? (counts[i] > 0) :
                                                        counts[i];
                ex.comm  = comm;
                if (kind == COMM_FREED) {
                    MPI_Comm_dup(comm, &ex.comm);
                }
                if (is_member) {
                    run_exchange(&ex);
                }
            }
        }
    }
    MPI_Comm_free(&comm);
}

static int level_of(const char *name)
{
    static const char *const names[] = {
        "single", "funneled", "serialized", "multiple"
    };
    static const int levels[] = {
        MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
        MPI_THREAD_MULTIPLE
    };
    int i;

    for (i = 0; i < 3; ++i) {
        if (!strcmp(name, names[i])) {
            return levels[i];
        }
    }
    return MPI_THREAD_MULTIPLE;
}

int main(int argc, char **argv)
{
    comm_t kind;
    int level;

    mpix_test_init_thread(&argc, &argv,
                          level_of((argc > 1) ? argv[1] : "multiple"));
    MPI_Query_thread(&level);
    has_once = (level == MPI_THREAD_MULTIPLE);
    out      = malloc(ROOM);
    in       = malloc(ROOM);
    expected = malloc(ROOM);
    packed   = malloc(ROOM);
    for (kind = 0; kind < COMM_LAST; ++kind) {
        run_comm(kind);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(out);
    free(in);
    free(expected);
    free(packed);
    return mpix_test_end("mpix_matrix");
}
