/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_types.c - messages of all kinds of datatypes.
 *
 * What a stream receives is compared, with all around it, to what MPI_Sendrecv
 * receives of the same.
 */
#include "mpix_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG   11
#define BYTES (1 << 16) /* Of a buffer; elements are around its middle */
#define UNTOUCHED 0x5a

typedef void (*make_t)(MPI_Datatype *type);


static void make_int(MPI_Datatype *type)
{
    MPI_Type_dup(MPI_INT, type);
}

static void make_contiguous(MPI_Datatype *type)
{
    MPI_Type_contiguous(5, MPI_SHORT, type);
}

static void make_vector(MPI_Datatype *type)
{
    MPI_Type_vector(4, 2, 5, MPI_INT, type);
}

static void make_vector_back(MPI_Datatype *type)
{
    MPI_Type_vector(4, 2, -3, MPI_DOUBLE, type);
}

static void make_hvector(MPI_Datatype *type)
{
    MPI_Type_create_hvector(7, 3, 13, MPI_SHORT, type);
}

static void make_indexed(MPI_Datatype *type)
{
    const int lengths[] = {2, 0, 1, 3}, places[] = {7, 1, -4, 20};

    MPI_Type_indexed(4, lengths, places, MPI_INT, type);
}

static void make_hindexed(MPI_Datatype *type)
{
    const int lengths[]     = {3, 1, 2};
    const MPI_Aint places[] = {101, -17, 40};

    MPI_Type_create_hindexed(3, lengths, places, MPI_CHAR, type);
}

static void make_indexed_block(MPI_Datatype *type)
{
    const int places[] = {9, 3, 0, 15};

    MPI_Type_create_indexed_block(4, 2, places, MPI_LONG, type);
}

static void make_hindexed_block(MPI_Datatype *type)
{
    const MPI_Aint places[] = {64, 0, 33};

    MPI_Type_create_hindexed_block(3, 4, places, MPI_FLOAT, type);
}

static void make_struct(MPI_Datatype *type)
{
    const int lengths[]        = {1, 3, 2, 1};
    const MPI_Aint places[]    = {16, 0, 40, 70};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT,
                                  MPI_CHAR};

    MPI_Type_create_struct(4, lengths, places, types, type);
}

static void make_resized(MPI_Datatype *type)
{
    MPI_Type_create_resized(MPI_INT, -4, 20, type);
}

static void make_subarray(MPI_Datatype *type)
{
    const int sizes[] = {6, 5, 7}, subsizes[] = {2, 3, 4}, starts[] = {3, 1, 2};

    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT,
                             type);
}

static void make_subarray_fortran(MPI_Datatype *type)
{
    const int sizes[] = {6, 5, 7}, subsizes[] = {6, 5, 4}, starts[] = {0, 0, 2};

    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_FORTRAN,
                             MPI_SHORT, type);
}

static void make_darray_of(int order, MPI_Datatype *type)
{
    const int sizes[]    = {11, 9, 4}, procs[] = {2, 3, 1};
    const int distribs[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK,
                            MPI_DISTRIBUTE_NONE};
    const int args[]     = {2, MPI_DISTRIBUTE_DFLT_DARG,
                            MPI_DISTRIBUTE_DFLT_DARG};

    MPI_Type_create_darray(6, 4, 3, sizes, distribs, args, procs, order,
                           MPI_INT, type);
}

static void make_darray(MPI_Datatype *type)
{
    make_darray_of(MPI_ORDER_C, type);
}

static void make_darray_fortran(MPI_Datatype *type)
{
    make_darray_of(MPI_ORDER_FORTRAN, type);
}

static void make_f90(MPI_Datatype *type)
{
    MPI_Datatype real;

    MPI_Type_create_f90_real(12, MPI_UNDEFINED, &real);
    MPI_Type_vector(3, 1, 2, real, type);
}

static void make_float_int(MPI_Datatype *type)
{
    MPI_Type_dup(MPI_FLOAT_INT, type);
}

static void make_double_int(MPI_Datatype *type)
{
    MPI_Type_dup(MPI_DOUBLE_INT, type);
}

static void make_long_int(MPI_Datatype *type)
{
    MPI_Type_dup(MPI_LONG_INT, type);
}

static void make_short_int(MPI_Datatype *type)
{
    MPI_Type_contiguous(3, MPI_SHORT_INT, type);
}

static void make_long_double_int(MPI_Datatype *type)
{
    MPI_Type_dup(MPI_LONG_DOUBLE_INT, type);
}

static void make_2int(MPI_Datatype *type)
{
    MPI_Type_vector(2, 1, 3, MPI_2INT, type);
}

/* A plane of a cube that is perpendicular to the fastest dimension, of columns
 * that are made one after the other; the inner types are freed at once. */
static void make_nested(MPI_Datatype *type)
{
    MPI_Datatype column, resized, list;
    const int places[] = {0, 2, 9}, lengths[] = {2, 1, 1};

    MPI_Type_vector(6, 1, 11, MPI_FLOAT, &column);
    MPI_Type_create_resized(column, 0, sizeof(float), &resized);
    MPI_Type_indexed(3, lengths, places, resized, &list);
    MPI_Type_create_hvector(2, 1, 1000, list, type);
    MPI_Type_free(&column);
    MPI_Type_free(&resized);
    MPI_Type_free(&list);
}

static void make_empty(MPI_Datatype *type)
{
    MPI_Type_contiguous(0, MPI_INT, type);
}

/* What is on one side only, or on both. */
typedef struct side {
    char         *bytes;
    char         *place; /* In the middle, where elements lie */
    MPI_Datatype type;
    int          count;
} side_t;

static void side_init(side_t *side, int count)
{
    side->bytes = malloc(BYTES);
    side->place = side->bytes + (BYTES / 2);
    side->count = count;
}

static void fill(side_t *side, int seed)
{
    int i;

    for (i = 0; i < BYTES; ++i) {
        side->bytes[i] = (char)((i * 7) + (i >> 8) * 3 + seed);
    }
}

/* Runs a message that is matched already, and compares it to MPI's. */
static void use(side_t *out, side_t *in, MPI_Request requests[2], int seed)
{
    char *expected = malloc(BYTES);

    fill(out, seed + mpix_test.rank);
    memset(expected, UNTOUCHED, BYTES);
    memset(in->bytes, UNTOUCHED, BYTES);
    MPIX_OK(MPI_Sendrecv(out->place, out->count, out->type, mpix_test.right,
                         TAG, expected + (BYTES / 2), in->count, in->type,
                         mpix_test.left, TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE));

    MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_CHECK(memcmp(in->bytes, expected, BYTES) == 0, "use %d", seed);
    free(expected);
}

static void init(side_t *out, side_t *in, MPI_Request requests[2])
{
    MPIX_OK(MPI_Send_init(out->place, out->count, out->type, mpix_test.right,
                          TAG, MPI_COMM_WORLD, &requests[0]));
    MPIX_OK(MPI_Recv_init(in->place, in->count, in->type, mpix_test.left, TAG,
                          MPI_COMM_WORLD, &requests[1]));
}

/* Basic elements of a message. MPICH 4.0 divides by 0 for pairs of numbers. */
static MPI_Count get_elements(const MPI_Status *status, MPI_Datatype type)
{
    MPI_Count count = 0;

#ifdef MPICH_VERSION
    type = MPI_BYTE;
#endif
    MPI_Get_elements_x((MPI_Status*)status, type, &count);
    return count;
}

/* Sends elements of one type and receives those of another, the same bytes. */
static void exchange(side_t *out, side_t *in, MPI_Count elements)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Count got;

    init(out, in, requests);
    MPIX_OK(MPIX_Matchall(2, requests, statuses));
    got = get_elements(&statuses[1], in->type);
    MPIX_CHECK(got == elements, "%lld of %lld elements", (long long)got,
               (long long)elements);
    use(out, in, requests, 1);
    use(out, in, requests, 2);
    MPIX_OK(MPI_Request_free(&requests[0]));
    MPIX_OK(MPI_Request_free(&requests[1]));
}

/* Basic elements that a message of these has. */
static MPI_Count count_elements(side_t *out, side_t *in)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];

    MPI_Irecv(in->place, in->count, in->type, mpix_test.left, TAG,
              MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out->place, out->count, out->type, mpix_test.right, TAG,
              MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    return get_elements(&statuses[0], in->type);
}

static const struct {
    const char *name;
    make_t     make;
} kinds[] = {
    {"int", make_int},
    {"contiguous", make_contiguous},
    {"vector", make_vector},
    {"vector_back", make_vector_back},
    {"hvector", make_hvector},
    {"indexed", make_indexed},
    {"hindexed", make_hindexed},
    {"indexed_block", make_indexed_block},
    {"hindexed_block", make_hindexed_block},
    {"struct", make_struct},
    {"resized", make_resized},
    {"subarray", make_subarray},
    {"subarray_fortran", make_subarray_fortran},
    {"darray", make_darray},
    {"darray_fortran", make_darray_fortran},
    {"f90", make_f90},
    {"float_int", make_float_int},
    {"double_int", make_double_int},
    {"long_int", make_long_int},
    {"short_int", make_short_int},
    {"long_double_int", make_long_double_int},
    {"2int", make_2int},
    {"nested", make_nested},
    {"empty", make_empty}
};

/* The same type on both sides: of as many elements, and of more in the
 * receive. */
static void test_kinds(void)
{
    static const int counts[][2] = {{0, 0}, {1, 1}, {3, 3}, {0, 2}, {2, 5}};
    side_t out, in;
    int failed;
    size_t i, j;

    for (i = 0; i < (sizeof(kinds) / sizeof(kinds[0])); ++i) {
        failed = mpix_test.failed;
        for (j = 0; j < (sizeof(counts) / sizeof(counts[0])); ++j) {
            side_init(&out, counts[j][0]);
            side_init(&in, counts[j][1]);
            kinds[i].make(&out.type);
            MPI_Type_commit(&out.type);
            in.type = out.type;
            exchange(&out, &in, count_elements(&out, &in));
            MPI_Type_free(&out.type);
            free(out.bytes);
            free(in.bytes);
        }
        if (mpix_test.failed > failed) {
            printf("FAILED rank %d: type %s\n", mpix_test.rank, kinds[i].name);
        }
    }
}

/* Of each type to bytes that are contiguous, and from there to another type;
 * the message may end within an element. */
static void test_mixed(void)
{
    side_t out, in;
    int length;

    side_init(&out, 5);
    side_init(&in, 3000);
    make_vector(&out.type);
    MPI_Type_commit(&out.type);
    in.type = MPI_INT;
    exchange(&out, &in, count_elements(&out, &in));
    MPI_Type_free(&out.type);

    for (length = 1; length < 30; length += 4) {
        out.count = length;
        out.type  = MPI_INT;
        in.count  = 4;
        make_indexed(&in.type);
        if (length > (4 * 6)) {
            in.count = 20;
        }
        MPI_Type_commit(&in.type);
        exchange(&out, &in, count_elements(&out, &in));
        MPI_Type_free(&in.type);
    }
    free(out.bytes);
    free(in.bytes);
}

/* A sender may send bytes more than once. */
static void test_overlap(void)
{
    const int places[] = {0, 1, 1, 0, -2};
    side_t out, in;

    side_init(&out, 3);
    side_init(&in, 30);
    MPI_Type_create_indexed_block(5, 2, places, MPI_INT, &out.type);
    MPI_Type_commit(&out.type);
    in.type = MPI_INT;
    exchange(&out, &in, count_elements(&out, &in));
    MPI_Type_free(&out.type);
    free(out.bytes);
    free(in.bytes);
}

/* MPI_BOTTOM with addresses, of types that are freed before the match. */
static void test_bottom(void)
{
    const int lengths[] = {1, 2};
    int out[2][3]       = {{0}}, in[2][3] = {{0}};
    MPI_Request requests[2];
    MPI_Aint places[2];
    MPI_Datatype type;
    int i;

    for (i = 0; i < 2; ++i) {
        MPI_Get_address(i ? &in[1][0] : &out[0][2], &places[0]);
        MPI_Get_address(i ? &in[0][1] : &out[1][0], &places[1]);
        MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
        MPI_Type_commit(&type);
        if (i == 0) {
            MPIX_OK(MPI_Send_init(MPI_BOTTOM, 1, type, mpix_test.right, TAG,
                                  MPI_COMM_WORLD, &requests[0]));
        } else {
            MPIX_OK(MPI_Recv_init(MPI_BOTTOM, 1, type, mpix_test.left, TAG,
                                  MPI_COMM_WORLD, &requests[1]));
        }
        MPI_Type_free(&type);
    }
    out[0][2] = 1000 + mpix_test.rank;
    out[1][0] = 2000 + mpix_test.rank;
    out[1][1] = 3000 + mpix_test.rank;
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_CHECK((in[1][0] == (1000 + mpix_test.left)) &&
               (in[0][1] == (2000 + mpix_test.left)) &&
               (in[0][2] == (3000 + mpix_test.left)), "%d %d %d", in[1][0],
               in[0][1], in[0][2]);
    MPIX_CHECK((in[0][0] == 0) && (in[1][1] == 0) && (in[1][2] == 0),
               "%d %d %d", in[0][0], in[1][1], in[1][2]);
    MPIX_OK(MPI_Request_free(&requests[0]));
    MPIX_OK(MPI_Request_free(&requests[1]));
}

/* A large count of a type costs no time and memory before it is used, and the
 * numbers of bytes are not those of an int. */
static void test_large_count(void)
{
    MPI_Datatype row, plane;
    MPI_Request request;
    int word;

    MPI_Type_vector(1 << 20, 1, 2, MPI_DOUBLE, &row);
    MPI_Type_contiguous(1 << 20, row, &plane);
    MPI_Type_commit(&plane);
    MPIX_OK(MPI_Send_init(&word, 1 << 20, plane, MPI_PROC_NULL, TAG,
                          MPI_COMM_WORLD, &request));
    MPIX_OK(MPI_Request_free(&request));
    MPI_Type_free(&plane);
    MPI_Type_free(&row);
}

#if MPI_VERSION >= 4
/* The functions for large counts make the same requests. */
static void test_large_makers(void)
{
    int in[2][4] = {{0}}, out[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    MPI_Request requests[4], other[2];
    MPI_Status statuses[4];
    int count, i;

    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPI_Recv_init_c(in[i], 4, MPI_INT, mpix_test.left, TAG + i,
                                MPI_COMM_WORLD, &requests[i]));
    }
    MPIX_OK(MPI_Send_init_c(out[0], 4, MPI_INT, mpix_test.right, TAG,
                            MPI_COMM_WORLD, &requests[2]));
    MPIX_OK(MPI_Rsend_init_c(out[1], 3, MPI_INT, mpix_test.right, TAG + 1,
                             MPI_COMM_WORLD, &requests[3]));
    MPIX_OK(MPIX_Matchall(4, requests, statuses));
    MPI_Get_count(&statuses[1], MPI_INT, &count);
    MPIX_CHECK(count == 3, "%d", count);
    MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 3, requests));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    MPI_Barrier(MPI_COMM_WORLD);
    MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &requests[3]));
    MPIX_OK(MPI_Waitall(4, requests, statuses));
    MPIX_CHECK((in[0][3] == 4) && (in[1][2] == 7) && (in[1][3] == 0),
               "%d %d %d", in[0][3], in[1][2], in[1][3]);

    MPIX_OK(MPI_Ssend_init_c(out, 1, MPI_INT, mpix_test.right, TAG,
                             MPI_COMM_WORLD, &other[0]));
    MPIX_OK(MPI_Bsend_init_c(out, 1, MPI_INT, mpix_test.right, TAG,
                             MPI_COMM_WORLD, &other[1]));
    for (i = 0; i < 2; ++i) {
        MPIX_IS(MPI_ERR_REQUEST, MPIX_Match(&other[i], MPI_STATUS_IGNORE));
        MPIX_OK(MPI_Request_free(&other[i]));
    }
    for (i = 0; i < 4; ++i) {
        MPIX_OK(MPI_Request_free(&requests[i]));
    }
}
#endif

/* Random types of random types. What is received must not overlap: blocks are
 * apart by the extents of their elements, at least. */
static MPI_Datatype make_random(unsigned *seed, int depth)
{
    static const MPI_Datatype basic[] = {
        MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_DOUBLE_INT, MPI_SHORT_INT
    };
    int i, count = 1 + (rand_r(seed) % 3), lengths[3], places[3];
    MPI_Aint lb, extent, bytes[3];
    MPI_Datatype type, inner[3];

    if (depth == 0) {
        MPI_Type_dup(basic[rand_r(seed) % 6], &type);
        return type;
    }

    inner[0] = make_random(seed, depth - 1);
    inner[1] = inner[2] = inner[0];
    MPI_Type_get_extent(inner[0], &lb, &extent);
    for (i = 0; i < 3; ++i) {
        /* OpenMPI does not know the bounds of a type without elements */
        lengths[i] = (i == 0) ? 1 : (rand_r(seed) % 3);
        places[i]  = ((2 - i) * 3) + (rand_r(seed) % 2);
        bytes[i]   = places[i] * extent;
    }
    switch (rand_r(seed) % 7) {
    case 0:
        MPI_Type_contiguous(count, inner[0], &type);
        break;
    case 1:
        MPI_Type_vector(count, 1 + (rand_r(seed) % 2), 2 + (rand_r(seed) % 2),
                        inner[0], &type);
        break;
    case 2:
        MPI_Type_create_hvector(count, 2, -(2 * extent) - (count * 8), inner[0],
                                &type);
        break;
    case 3:
        MPI_Type_indexed(3, lengths, places, inner[0], &type);
        break;
    case 4:
        MPI_Type_create_struct(3, lengths, bytes, inner, &type);
        break;
    case 5:
        MPI_Type_create_resized(inner[0], lb - 8, extent + 16, &type);
        break;
    default:
        MPI_Type_create_hindexed_block(3, 2, bytes, inner[0], &type);
        break;
    }
    MPI_Type_free(&inner[0]);
    return type;
}

static void test_random(void)
{
    MPI_Aint lb, extent;
    unsigned i, seed;
    side_t out, in;
    int failed;

    side_init(&out, 2);
    side_init(&in, 2);
    for (i = 0; i < 150; ++i) {
        failed   = mpix_test.failed;
        seed     = i;
        out.type = make_random(&seed, 1 + (i % 4));
        in.type  = out.type;
        MPI_Type_commit(&out.type);
        MPI_Type_get_true_extent(out.type, &lb, &extent);
        if ((extent < (BYTES / 8)) && (labs(lb) < (BYTES / 8))) {
            exchange(&out, &in, count_elements(&out, &in));
        }
        MPI_Type_free(&out.type);
        if (mpix_test.failed > failed) {
            printf("FAILED rank %d: random type %u\n", mpix_test.rank, i);
        }
    }
    free(out.bytes);
    free(in.bytes);
}

/* One element of more than 2^31 - 1 bytes, of 2,300 MiB: on its own in
 * tests.list, as two ranks need 4.5 GiB for it. */
static void test_big(void)
{
    const size_t words = ((size_t)2300 << 20) / sizeof(uint64_t);
    MPI_Datatype mib, type;
    mpix_test_msg_t msg;
    MPI_Status status;
    MPI_Count count = 0;

    MPI_Type_contiguous(1 << 20, MPI_BYTE, &mib);
    MPI_Type_contiguous(2300, mib, &type);
    MPI_Type_commit(&type);
    mpix_test_msg_init(&msg, words, 0, 1, 1);
    if (mpix_test.rank == 0) {
#if MPI_VERSION >= 4
        MPIX_OK(MPI_Send_init_c(msg.words, (MPI_Count)2300 << 20, MPI_BYTE, 1,
                                TAG, MPI_COMM_WORLD, &msg.request));
#else
        MPIX_OK(MPI_Send_init(msg.words, 1, type, 1, TAG, MPI_COMM_WORLD,
                              &msg.request));
#endif
        mpix_test_fill(&msg);
    } else {
        MPIX_OK(MPI_Recv_init(msg.words, 1, type, 0, TAG, MPI_COMM_WORLD,
                              &msg.request));
    }
    MPIX_OK(MPIX_Match(&msg.request, &status));
    MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &msg.request));
    MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &msg.request));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    if (mpix_test.rank == 1) {
        mpix_test_verify(&msg);
        MPI_Get_elements_x(&status, type, &count);
        MPIX_CHECK(count == ((MPI_Count)2300 << 20), "%lld", (long long)count);
    }
    mpix_test_msg_free(&msg);
    MPI_Type_free(&type);
    MPI_Type_free(&mib);
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"kinds", test_kinds},
        {"mixed", test_mixed},
        {"overlap", test_overlap},
        {"bottom", test_bottom},
        {"large_count", test_large_count},
#if MPI_VERSION >= 4
        {"large_makers", test_large_makers},
#endif
        {"random", test_random},
        {NULL}
    };
    static const mpix_test_case_t big[] = {{"big", test_big}, {NULL}};

    mpix_test_init(&argc, &argv);
    if ((argc > 1) && !strcmp(argv[1], "big")) {
        mpix_test_cases(big, argc, argv);
    } else {
        mpix_test_cases(cases, argc, argv);
    }
    return mpix_test_end("mpix_types");
}
