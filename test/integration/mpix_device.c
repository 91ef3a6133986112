/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_device.c - messages from and to the memory of a device.
 *
 * What a stream receives is compared, with all around it, to what MPI_Sendrecv
 * receives of the same in memory of the host.
 */
#include "mpix_gpu.h"
#include "st_any.h"

#include "compat/stream-triggering.h"

#include <mpix_queue_device.h>

#include <ucs_gstream_memory.h>

#include <stdlib.h>
#include <string.h>

#define TAG       11
#define BYTES     (1 << 16) /* Of a buffer; elements are around its middle */
#define USES      2
#define UNTOUCHED 0x5a

#define ARRAY_SIZE(_array) (sizeof(_array) / sizeof((_array)[0]))


/* Buffers of the host: what is sent, what comes, and what should. */
static char out_image[BYTES], in_image[BYTES], expected[BYTES];


/* Elements of a datatype, at the application's address */
typedef struct part {
    char         *address;
    int          count;
    MPI_Datatype type;
} part_t;

/* Sends to the right what comes from the left */
typedef void (*way_t)(const part_t *out, const part_t *in);

static void init_pair(const part_t *out, const part_t *in,
                      MPI_Request requests[2])
{
    MPIX_OK(MPI_Recv_init(in->address, in->count, in->type, mpix_test.left, TAG,
                          MPI_COMM_WORLD, &requests[0]));
    MPIX_OK(MPI_Send_init(out->address, out->count, out->type, mpix_test.right,
                          TAG, MPI_COMM_WORLD, &requests[1]));
}

static void free_pair(MPI_Request requests[2])
{
    MPIX_OK(MPI_Request_free(&requests[0]));
    MPIX_OK(MPI_Request_free(&requests[1]));
}

static void mode_queue(const part_t *out, const part_t *in)
{
    MPI_Request requests[2];
    int i;

    init_pair(out, in, requests);
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < USES; ++i) {
        MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
        MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
    }
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    free_pair(requests);
}

static void mode_host(const part_t *out, const part_t *in)
{
    MPI_Request requests[2];
    int i;

    init_pair(out, in, requests);
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < USES; ++i) {
        MPIX_OK(MPI_Startall(2, requests));
        MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    free_pair(requests);
}

static void mode_once(const part_t *out, const part_t *in)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int got, size;

    MPIX_OK(MPIX_Enqueue_recv(in->address, in->count, in->type, mpix_test.left,
                              TAG, MPI_COMM_WORLD, mpix_test.queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(out->address, out->count, out->type,
                              mpix_test.right, TAG, MPI_COMM_WORLD,
                              mpix_test.queue, &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue));
    MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPI_Waitall(2, requests, statuses));
    MPI_Type_size(out->type, &size);
    MPI_Get_elements(&statuses[0], MPI_BYTE, &got);
    MPIX_CHECK(got == (size * out->count), "%d bytes", got);
}

static const way_t modes[] = {mode_queue, mode_host, mode_once};

/* Where an application's buffer begins in memory of BYTES. */
static part_t part_in(char *memory, int count, MPI_Datatype type)
{
    return (part_t){memory + (BYTES / 2), count, type};
}

/* Sends elements around, from and to memory of a device or not. */
static void exchange(way_t mode, part_t out, part_t in, int places)
{
    char *outer = mpix_place_get(places & 1, BYTES);
    char *inner = mpix_place_get(places & 2, BYTES);
    part_t outs = part_in(out_image, out.count, out.type);
    part_t ins  = part_in(expected, in.count, in.type);
    int i;

    for (i = 0; i < BYTES; ++i) {
        out_image[i] = (char)(i * 7 + i / 256 + mpix_test.rank);
    }
    memset(in_image, UNTOUCHED, BYTES);
    memset(expected, UNTOUCHED, BYTES);
    MPI_Sendrecv(outs.address, outs.count, outs.type, mpix_test.right, TAG,
                 ins.address, ins.count, ins.type, mpix_test.left, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    mpix_gpu_copy(&mpix_gpu, outer, out_image, BYTES);
    mpix_gpu_copy(&mpix_gpu, inner, in_image, BYTES);
    out = part_in(outer, out.count, out.type);
    in  = part_in(inner, in.count, in.type);
    mode(&out, &in);
    mpix_gpu_copy(&mpix_gpu, in_image, inner, BYTES);
    MPIX_CHECK(!memcmp(in_image, expected, BYTES), "from %d to %d", places & 1,
               places & 2);
    mpix_place_put(places & 1, outer);
    mpix_place_put(places & 2, inner);
}

static void exchange_all(part_t out, part_t in)
{
    unsigned i;
    int places;

    for (i = 0; i < ARRAY_SIZE(modes); ++i) {
        for (places = 1; places < 4; ++places) {
            exchange(modes[i], out, in, places);
        }
    }
}

static void test_contiguous(void)
{
    static const int counts[] = {0, 1, 100, 7000};
    MPI_Datatype shifted;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(counts); ++i) {
        exchange_all((part_t){NULL, counts[i], MPI_INT},
                     (part_t){NULL, counts[i] + 3, MPI_INT});
    }

    /* The bytes begin before the buffer */
    {
        const int length    = 10;
        const MPI_Aint disp = -40;

        MPI_Type_create_hindexed(1, &length, &disp, MPI_INT, &shifted);
    }
    MPI_Type_commit(&shifted);
    exchange_all((part_t){NULL, 1, shifted}, (part_t){NULL, 1, shifted});
    MPI_Type_free(&shifted);
}

/* More than a message of UCX takes at once */
static void test_large(void)
{
    const size_t size = 3000000;
    char *image       = malloc(2 * size);
    unsigned i;
    size_t k;
    part_t out, in;

    for (i = 0; i < ARRAY_SIZE(modes); ++i) {
        out = (part_t){mpix_gpu_alloc(&mpix_gpu, size), (int)size, MPI_BYTE};
        in  = (part_t){mpix_gpu_alloc(&mpix_gpu, size), (int)size, MPI_BYTE};
        for (k = 0; k < size; ++k) {
            image[k] = (char)(k * 5 + k / 4096 + i);
        }
        mpix_gpu_copy(&mpix_gpu, out.address, image, size);
        modes[i](&out, &in);
        mpix_gpu_copy(&mpix_gpu, image + size, in.address, size);
        MPIX_CHECK(!memcmp(image, image + size, size), "mode %u", i);
        mpix_gpu_free(&mpix_gpu, out.address);
        mpix_gpu_free(&mpix_gpu, in.address);
    }
    free(image);
}

/* Datatypes that are blocks at equal distances */

static void make_vector(MPI_Datatype *type)
{
    MPI_Type_vector(40, 2, 5, MPI_INT, type);
}

static void make_hvector(MPI_Datatype *type)
{
    MPI_Type_create_hvector(17, 3, 13, MPI_CHAR, type);
}

static void make_subarray(MPI_Datatype *type)
{
    const int sizes[] = {20, 30}, subsizes[] = {10, 7}, starts[] = {3, 11};

    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT,
                             type);
}

/* Whole rows of planes */
static void make_subarray_flat(MPI_Datatype *type)
{
    const int sizes[] = {4, 6, 9}, subsizes[] = {4, 3, 9}, starts[] = {0, 2, 0};

    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT,
                             type);
}

static void make_equal_indexed(MPI_Datatype *type)
{
    const int places[] = {9, 12, 15, 18};

    MPI_Type_create_indexed_block(4, 2, places, MPI_LONG, type);
}

/* Columns of a matrix, as one of columns */
static void make_column(MPI_Datatype *type)
{
    MPI_Datatype column;

    MPI_Type_vector(30, 1, 40, MPI_DOUBLE, &column);
    MPI_Type_create_hvector(2, 1, 30 * 40 * sizeof(double), column, type);
    MPI_Type_free(&column);
}

/* A vector of vectors that goes on at the same distance */
static void make_nested(MPI_Datatype *type)
{
    MPI_Datatype inner;

    MPI_Type_vector(3, 1, 4, MPI_INT, &inner);
    MPI_Type_create_hvector(5, 1, 3 * 4 * sizeof(int), inner, type);
    MPI_Type_free(&inner);
}

/* The gaps are between elements */
static void make_even_pair(MPI_Datatype *type)
{
    MPI_Type_dup(MPI_DOUBLE_INT, type);
}

/* Others */

static void make_indexed(MPI_Datatype *type)
{
    const int lengths[] = {2, 1, 3}, places[] = {7, 1, 20};

    MPI_Type_indexed(3, lengths, places, MPI_INT, type);
}

static void make_back(MPI_Datatype *type)
{
    MPI_Type_vector(4, 2, -3, MPI_DOUBLE, type);
}

static void make_uneven(MPI_Datatype *type)
{
    MPI_Datatype inner;

    MPI_Type_vector(3, 1, 4, MPI_INT, &inner);
    MPI_Type_create_hvector(5, 1, 100, inner, type);
    MPI_Type_free(&inner);
}

/* Blocks that are further apart than a copy takes; all of it need not be there
 * to be refused */
static void make_far(MPI_Datatype *type)
{
    MPI_Type_create_hvector(2, 1, (MPI_Aint)3 << 30, MPI_INT, type);
}

static void make_pair(MPI_Datatype *type)
{
    MPI_Type_dup(MPI_SHORT_INT, type);
}

typedef void (*make_t)(MPI_Datatype *type);

static const make_t blocks[] = {
    make_vector, make_hvector, make_subarray, make_subarray_flat,
    make_equal_indexed, make_column, make_nested, make_even_pair
};

static const make_t others[] = {
    make_indexed, make_back, make_uneven, make_far, make_pair
};

static void test_blocks(void)
{
    MPI_Datatype type, flat;
    int size, count;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(blocks); ++i) {
        blocks[i](&type);
        MPI_Type_commit(&type);
        MPI_Type_size(type, &size);
        MPI_Type_contiguous(size, MPI_BYTE, &flat);
        MPI_Type_commit(&flat);
        count = (blocks[i] == make_even_pair) ? 9 : 1;
        exchange_all((part_t){NULL, count, type}, (part_t){NULL, count, type});
        exchange_all((part_t){NULL, count, type}, (part_t){NULL, count, flat});
        exchange_all((part_t){NULL, count, flat}, (part_t){NULL, count, type});
        MPI_Type_free(&flat);
        MPI_Type_free(&type);
    }
}

/* A receive gets a part of its blocks, and of one of them */
static void test_part(void)
{
    MPI_Datatype type;

    make_vector(&type);
    MPI_Type_commit(&type);
    exchange_all((part_t){NULL, 33, MPI_INT}, (part_t){NULL, 1, type});
    exchange_all((part_t){NULL, 1, MPI_INT}, (part_t){NULL, 1, type});
    MPI_Type_free(&type);
}

/* What cannot be moved is refused where it is matched, and by a message that is
 * used once; not if there is nobody to move it to */
static void test_refused(void)
{
    char *device = mpix_gpu_alloc(&mpix_gpu, BYTES);
    MPI_Request request;
    MPI_Datatype type;
    part_t out;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(others); ++i) {
        others[i](&type);
        MPI_Type_commit(&type);
        out = part_in(device, 4, type);
        MPIX_OK(MPI_Send_init(out.address, out.count, type, mpix_test.right,
                              TAG, MPI_COMM_WORLD, &request));
        mpix_check_refused(MPIX_Match(&request, MPI_STATUS_IGNORE),
                           MPI_ERR_TYPE, "have a kernel pack it");
        mpix_check_refused(MPIX_Imatch(&request), MPI_ERR_TYPE,
                           "have a kernel pack it");
        MPIX_OK(MPI_Request_free(&request));

        request = MPI_REQUEST_NULL;
        mpix_check_refused(MPIX_Enqueue_send(out.address, out.count, type,
                                             mpix_test.right, TAG,
                                             MPI_COMM_WORLD, mpix_test.queue,
                                             &request),
                           MPI_ERR_TYPE, "have a kernel pack it");
        MPIX_CHECK(request == MPI_REQUEST_NULL, "a request");

        MPIX_OK(MPI_Recv_init(out.address, out.count, type, MPI_PROC_NULL, TAG,
                              MPI_COMM_WORLD, &request));
        MPIX_OK(MPIX_Match(&request, MPI_STATUS_IGNORE));
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &request));
        MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &request));
        MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
        MPIX_OK(MPI_Request_free(&request));
        MPI_Type_free(&type);
    }
    mpix_gpu_free(&mpix_gpu, device);
}

/* Of absolute addresses: a part in the device, the rest not */
static void test_absolute(void)
{
    int lengths[]       = {1, 1};
    char *device        = mpix_gpu_alloc(&mpix_gpu, BYTES);
    int word            = 0;
    MPI_Aint places[2];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type;

    MPI_Get_address(&word, &places[0]);
    MPI_Get_address(device, &places[1]);
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    mpix_check_refused(MPIX_Enqueue_recv(MPI_BOTTOM, 1, type, mpix_test.left,
                                         TAG, MPI_COMM_WORLD, mpix_test.queue,
                                         &request),
                       MPI_ERR_TYPE, "have a kernel pack it");
    MPIX_OK(MPI_Recv_init(MPI_BOTTOM, 1, type, mpix_test.left, TAG,
                          MPI_COMM_WORLD, &request));
    mpix_check_refused(MPIX_Match(&request, MPI_STATUS_IGNORE), MPI_ERR_TYPE,
                       "have a kernel pack it");
    MPIX_OK(MPI_Request_free(&request));
    MPI_Type_free(&type);
    mpix_gpu_free(&mpix_gpu, device);
}

/* Memory of the other runtime: the queue's stream does not copy it, one of the
 * host does */
static void test_foreign(void)
{
    mpix_gpu_t other;
    char *out, *in;
    int word = 1000 + mpix_test.rank;
    MPI_Request requests[2];

    if ((getenv("ST_HIP_DIR") != NULL) || (getenv("ST_CUDA_DIR") != NULL)) {
        printf("left out: a machine has GPUs of one vendor\n");
        return;
    }
    mpix_gpu_load(&other, !mpix_gpu.is_hip);
    out = mpix_gpu_alloc(&other, sizeof(int));
    in  = mpix_gpu_alloc(&mpix_gpu, sizeof(int));
    mpix_gpu_copy(&other, out, &word, sizeof(int));
    init_pair(&(part_t){out, 1, MPI_INT}, &(part_t){in, 1, MPI_INT}, requests);
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    mpix_check_refused(MPIX_Enqueue_start_req(mpix_test.queue, &requests[1]),
                       MPI_ERR_OTHER, "does not copy");
    MPIX_OK(MPI_Startall(2, requests));
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    mpix_gpu_copy(&mpix_gpu, &word, in, sizeof(int));
    MPIX_CHECK(word == (1000 + mpix_test.left), "%d", word);
    free_pair(requests);
    mpix_gpu_free(&other, out);
    mpix_gpu_free(&mpix_gpu, in);
}

/* Both neighbours, with columns of a matrix */
static void test_halo(void)
{
    int size           = mpix_test.size;
    int is_periodic    = 1;
    char *device       = mpix_gpu_alloc(&mpix_gpu, BYTES);
    double *matrix     = (double*)(void*)out_image;
    MPIX_Halo_side sides[2];
    MPI_Datatype column;
    MPIX_Halo halo;
    MPI_Comm comm;
    int i;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &is_periodic, 0, &comm);
    MPI_Type_vector(10, 1, 8, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (i = 0; i < 80; ++i) {
        matrix[i] = 100 * mpix_test.rank + i;
    }
    mpix_gpu_copy(&mpix_gpu, device, matrix, 80 * sizeof(*matrix));
    for (i = 0; i < 2; ++i) { /* columns 1 and 6 go, 0 and 7 come */
        sides[i] = (MPIX_Halo_side){
            device + (i ? 6 : 1) * sizeof(*matrix), 1, column,
            device + (i ? 7 : 0) * sizeof(*matrix), 1, column
        };
    }
    MPIX_OK(MPIX_Halo_init(comm, 2, sides, mpix_test.queue, &halo));
    MPIX_OK(MPIX_Halo_start(halo));
    MPIX_OK(MPIX_Halo_wait(halo));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Halo_free(&halo));
    mpix_gpu_copy(&mpix_gpu, matrix, device, 80 * sizeof(*matrix));
    for (i = 0; i < 80; ++i) {
        MPIX_CHECK(matrix[i] == ((i % 8 == 0) ? 100 * mpix_test.left + i + 6 :
                                 (i % 8 == 7) ? 100 * mpix_test.right + i - 6 :
                                                100 * mpix_test.rank + i),
                   "%d: %g", i, matrix[i]);
    }
    MPI_Type_free(&column);
    MPI_Comm_free(&comm);
    mpix_gpu_free(&mpix_gpu, device);
}


/* Memory of the runtime, as programs of MPI Advance's library ask for it. */
static int *alloc_mpis(void)
{
    ucs_gstream_memory_attr_t attr = {.type = UCS_GSTREAM_TYPE_HOST};
    void *place                    = NULL;
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_memory_alloc_kinds",
                 (st_any_type() == UCS_GSTREAM_TYPE_HIP) ?
                         "rocm:device:coarse" : "cuda:device");
    MPIX_OK(MPIS_Alloc_mem(sizeof(int), info, &place));
    MPI_Info_free(&info);
    ucs_gstream_memory_query(place, &attr);
    MPIX_CHECK(attr.type == st_any_type(), "%p is memory of type %d", place,
               (int)attr.type);
    return place;
}

/* Their queues on a stream of the runtime's own, by its place, of each type. */
static void test_mpis(void)
{
    static const MPIS_Queue_type types[] = {GPU_MEM_OPS, CXI, THREAD};
    void *native = ucs_gstream_native(mpix_test.stream);
    int *in      = alloc_mpis();
    int *out     = alloc_mpis();
    MPIS_Request requests[2];
    MPIS_Queue queue;
    int i, value;

    for (i = 0; i < 3; ++i) {
        value = 100 * i + mpix_test.rank;
        mpix_gpu_copy(&mpix_gpu, out, &value, sizeof(value));
        MPIX_OK(MPIS_Queue_init(&queue, types[i], &native));
        MPIS_Recv_init(in, 1, MPI_INT, mpix_test.left, i, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &requests[0]);
        MPIS_Send_init(out, 1, MPI_INT, mpix_test.right, i, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &requests[1]);
        MPIX_OK(MPIS_Matchall(2, requests, MPI_STATUSES_IGNORE));
        MPIX_OK(MPIS_Enqueue_startall(queue, 2, requests));
        MPIX_OK(MPIS_Enqueue_waitall(queue));
        MPIX_OK(MPIS_Queue_wait(queue));
        mpix_gpu_copy(&mpix_gpu, &value, in, sizeof(value));
        MPIX_CHECK(value == (100 * i + mpix_test.left), "%d", value);
        MPIS_Request_freeall(2, requests);
        MPIX_OK(MPIS_Queue_free(&queue));
    }
    MPIX_OK(MPIS_Free_mem(in));
    MPIX_OK(MPIS_Free_mem(out));
}


/* Requests for kernels: which ones are, and what the host may do with them.
 * What kernels do is test_st_gpu_device's. */
static void test_kernels(void)
{
    char *device              = mpix_gpu_alloc(&mpix_gpu, 2 * sizeof(int));
    const char *lanes         = getenv("UCX_ST_LANES");
    int is_direct             = (lanes != NULL) && !strcmp(lanes, "direct");
    MPI_Request null          = MPI_REQUEST_NULL;
    MPIX_Device_handle handle = {.key = 0}, again;
    MPI_Request requests[2];
    int rc, class;

    init_pair(&(part_t){device, 1, MPI_INT},
              &(part_t){device + sizeof(int), 1, MPI_INT}, requests);
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Request_device(requests[1], &handle));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Request_device(null, &handle));
    MPIX_IS(MPI_ERR_ARG, MPIX_Request_device(requests[1], NULL));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Post_ahead(mpix_test.queue, requests[1], 1));
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_IS(MPI_ERR_COUNT, MPIX_Post_ahead(mpix_test.queue, requests[1], -1));
    MPIX_IS(MPI_ERR_ARG, MPIX_Post_ahead(MPIX_QUEUE_NULL, requests[1], 1));
    rc = MPIX_Request_device(requests[1], &handle);
    MPI_Error_class(rc, &class);
    if (is_direct || (rc == MPI_SUCCESS)) {
        MPIX_OK(rc);
        MPIX_OK(MPIX_Request_device(requests[1], &again));
        MPIX_CHECK((handle.key != 0) && (again.key == handle.key), "%llu",
                   handle.key);
        MPIX_OK(MPIX_Post_ahead(mpix_test.queue, requests[1], 3));
        MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_start_req(mpix_test.queue,
                                                        &requests[1]));
    } else {
        MPIX_CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION, "class %d", class);
        MPIX_IS(MPI_ERR_UNSUPPORTED_OPERATION,
                MPIX_Post_ahead(mpix_test.queue, requests[1], 1));
    }
    MPI_Barrier(MPI_COMM_WORLD); /* else a peer's half is gone before that */
    free_pair(requests); /* no kernel comes to these uses: taken back */
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    mpix_gpu_free(&mpix_gpu, device);
}


/* Why threads move what kernels do not is told, if there is any such */
static void test_tier(void)
{
    unsigned long count = 0;
    char *text          = NULL;
    size_t size         = 0;
    MPIX_Queue_info info;
    const char *line;
    FILE *file;

    file = open_memstream(&text, &size);
    MPIX_OK(MPIX_Queue_print_stats(file));
    fclose(file);
    line = strstr(text, "\ntier_service ");
    MPIX_CHECK((line != NULL) &&
               (sscanf(line, "\ntier_service %lu", &count) == 1), "%s", text);
    MPIX_OK(MPIX_Queue_get_info(&info));
    MPIX_CHECK((count > 0) == (info.tier_reason[0] != '\0'),
               "%lu operations: '%s'", count, info.tier_reason);
    MPIX_CHECK(strstr(text, info.tier_reason) != NULL, "%s", text);
    free(text);
}


static const mpix_test_case_t cases[] = {
    {"contiguous", test_contiguous},
    {"large", test_large},
    {"blocks", test_blocks},
    {"part", test_part},
    {"refused", test_refused},
    {"absolute", test_absolute},
    {"halo", test_halo},
    {"foreign", test_foreign},
    {"mpis", test_mpis},
    {"kernels", test_kernels},
    {"tier", test_tier},
    {NULL, NULL}
};

int main(int argc, char **argv)
{
    return mpix_gpu_main(cases, "mpix_device", argc, argv);
}
