/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_libmp.c - a program for LibMP. C and C++. For any number of ranks,
 * which send around a ring; one alone to itself.
 */
#include "mp.h"
#include "mpix_gpu.h"
#include "mpix_test.h"

#include <ucs_gstream.h>
#include <ucs_gstream_memory.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define COUNT  1000
#define ROUNDS 20
#define MANY   8
#define BYTES  (COUNT * (int)sizeof(int))

#define GOOD(_call) MPIX_CHECK((_call) == MP_SUCCESS, "%s", "")
#define BAD(_call)  MPIX_CHECK((_call) == MP_FAILURE, "%s", "")

static mp_reg_t no_reg; /* Messages do without */
static cudaStream_t stream;
static int out[MANY][COUNT], in[MANY][COUNT];


static void fill(int i, int seed)
{
    int k;

    for (k = 0; k < COUNT; ++k) {
        out[i][k] = (1000 * mpix_test.rank) + (7 * i) + seed + k;
        in[i][k]  = -1;
    }
}

/* What comes from a rank that has filled its buffer so */
static void check(const int *place, int rank, int i, int seed)
{
    int first = (1000 * rank) + (7 * i) + seed;

    MPIX_CHECK((place[0] == first) && (place[COUNT - 1] == (first + COUNT - 1)),
               "%d and %d for %d", place[0], place[COUNT - 1], first);
}

static void synchronize(void)
{
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
}

static int init(void)
{
    int peers[2] = {mpix_test.left, mpix_test.right};

    return mp_init(MPI_COMM_WORLD, peers, 2, MP_INIT_WQ_ON_GPU, 0);
}

/* The stream sends, waits for what the host has posted, and has it then */
static void test_streams(void)
{
    mp_request_t requests[2];
    int k, on_host;

    for (k = 0; k < ROUNDS; ++k) {
        on_host = k % 2;
        fill(0, k);
        GOOD(mp_irecv(in[0], BYTES, mpix_test.left, &no_reg, &requests[0]));
        GOOD(mp_isend_on_stream(out[0], BYTES, mpix_test.right, &no_reg,
                                &requests[1], stream));
        if (on_host) {
            GOOD(mp_wait_on_stream(&requests[0], stream));
            GOOD(mp_wait_on_stream(&requests[1], stream));
            GOOD(mp_wait_all(2, requests));
        } else {
            GOOD(mp_wait_all_on_stream(2, requests, stream));
            synchronize();
        }
        check(in[0], mpix_test.left, 0, k);
        if (!on_host) {
            MPIX_CHECK(mp_progress_all(2, requests) == 2, "%s", "");
            GOOD(mp_wait(&requests[0]));
            GOOD(mp_wait(&requests[1]));
        }
        MPIX_CHECK((requests[0] == NULL) && (requests[1] == NULL), "%s", "");
    }
}

/* In the order of the posts, whoever waits for them in which order */
static void test_host(void)
{
    mp_request_t sends[MANY], recvs[MANY];
    int i, num;

    for (i = 0; i < MANY; ++i) {
        fill(i, 3);
        GOOD(mp_irecv(in[i], BYTES, mpix_test.left, NULL, &recvs[i]));
    }
    for (i = 0; i < MANY; ++i) {
        GOOD(mp_isend(out[i], (i == 2) ? 0 : BYTES, mpix_test.right, NULL,
                      &sends[i]));
    }
    do {
        num = mp_progress_all(MANY, recvs);
    } while (num < MANY);
    GOOD(mp_wait(&recvs[MANY - 1]));
    MPIX_CHECK(mp_progress_all(MANY, recvs) == MANY, "%s", "");
    GOOD(mp_wait_all(MANY - 1, recvs));
    GOOD(mp_wait_all(MANY, sends));
    for (i = 0; i < MANY; ++i) {
        if (i != 2) {
            check(in[i], mpix_test.left, i, 3);
        } else {
            MPIX_CHECK(in[i][0] == -1, "%d", in[i][0]);
        }
    }
}

static void test_prepared(void)
{
    mp_request_t sends[MANY], recvs[MANY];
    int i;

    for (i = 0; i < MANY; ++i) {
        fill(i, 5);
        GOOD(mp_irecv(in[i], BYTES, mpix_test.left, &no_reg, &recvs[i]));
        GOOD(mp_send_prepare(out[i], BYTES, mpix_test.right, &no_reg,
                             &sends[i]));
    }
    BAD(mp_isend_post_on_stream(&sends[1], stream)); /* In front of 0 */
    BAD(mp_isend(out[0], 4, mpix_test.right, &no_reg, &sends[MANY - 1]));
    BAD(mp_wait(&sends[0]));
    BAD(mp_wait_on_stream(&sends[0], stream));
    BAD(mp_iput_post_on_stream(&sends[0], stream));
    MPIX_CHECK(mp_progress_all(1, sends) == 0, "%s", "");
    GOOD(mp_isend_post_on_stream(&sends[0], stream));
    BAD(mp_isend_post_on_stream(&sends[0], stream)); /* Twice */
    GOOD(mp_send_post_on_stream(&sends[1], stream));
    GOOD(mp_isend_post_all_on_stream(2, &sends[2], stream));
    GOOD(mp_send_post_all_on_stream(MANY - 4, &sends[4], stream));
    BAD(mp_wait_on_stream(&sends[4], stream)); /* It waits already */
    GOOD(mp_wait_all_on_stream(MANY, recvs, stream));
    synchronize();
    for (i = 0; i < MANY; ++i) {
        check(in[i], mpix_test.left, i, 5);
    }
    GOOD(mp_wait_all(MANY, recvs));
    GOOD(mp_wait_all(MANY, sends));
    GOOD(mp_send_post_all_on_stream(0, NULL, stream));
}

/* Blocks that are one message, cut differently on both sides; with memory of a
 * device among them where there is one */
static void test_vectors(void)
{
    int is_device = (mpix_test.queue_type != MPIX_QUEUE_HOST);
    struct iovec from[3], to[2];
    mp_request_t requests[2];
    char *place;
    int k;

    if (is_device) {
        mpix_gpu_load(&mpix_gpu, mpix_test.queue_type == MPIX_QUEUE_HIP);
    }
    place = mpix_place_get(is_device, BYTES);
    for (k = 0; k < 6; ++k) {
        fill(0, k);
        from[0].iov_base = out[0];
        from[0].iov_len  = 400;
        from[1].iov_base = NULL;
        from[1].iov_len  = 0;
        from[2].iov_base = &out[0][100];
        from[2].iov_len  = BYTES - 400;
        to[0].iov_base   = in[0];
        to[0].iov_len    = 1200;
        to[1].iov_base   = place;
        to[1].iov_len    = BYTES - 1200;
        GOOD(mp_irecvv(to, 2, mpix_test.left, &no_reg, &requests[0]));
        if (k % 3 == 0) {
            GOOD(mp_isendv(from, 3, mpix_test.right, &no_reg, &requests[1]));
        } else if (k % 3 == 1) {
            GOOD(mp_isendv_on_stream(from, 3, mpix_test.right, &no_reg,
                                     &requests[1], stream));
        } else {
            GOOD(mp_sendv_prepare(from, 3, mpix_test.right, &no_reg,
                                  &requests[1]));
            GOOD(mp_isend_post_on_stream(&requests[1], stream));
        }
        memset(to, 0, sizeof(to));
        if (k % 2) {
            GOOD(mp_wait_on_stream(&requests[0], stream));
        }
        GOOD(mp_wait_all(2, requests));
        MPIX_CHECK(ucs_gstream_memory_copy(&in[0][300], place, BYTES - 1200) ==
                   UCS_OK, "%s", "");
        check(in[0], mpix_test.left, 0, k);
    }
    mpix_place_put(is_device, place);
    GOOD(mp_irecvv(NULL, 0, mpix_test.left, &no_reg, &requests[0]));
    GOOD(mp_isendv(NULL, 0, mpix_test.right, &no_reg, &requests[1]));
    GOOD(mp_wait_all(2, requests));
}

/* Blocks that have room for more than what comes: the rest stays */
static void test_short(void)
{
    struct iovec to[2] = {{in[0], 400}, {&in[0][100], BYTES - 400}};
    mp_request_t requests[2];
    int k, num;

    for (k = 0; k < 2; ++k) {
        fill(0, k);
        GOOD(mp_irecvv(to, 2, mpix_test.left, &no_reg, &requests[0]));
        GOOD(mp_isend(out[0], 4, mpix_test.right, &no_reg, &requests[1]));
        if (k == 1) {
            GOOD(mp_wait_on_stream(&requests[0], stream));
        }
        do {
            num = mp_progress_all(1, requests);
        } while (num < 1);
        MPIX_CHECK((in[0][0] == ((1000 * mpix_test.left) + k)) &&
                   (in[0][1] == -1) && (in[0][COUNT - 1] == -1),
                   "%d, %d and %d", in[0][0], in[0][1], in[0][COUNT - 1]);
        GOOD(mp_wait_all(2, requests));
    }
}

/* A message behind puts comes behind their data */
static void announce(cudaStream_t on)
{
    mp_request_t requests[2];

    GOOD(mp_irecv(NULL, 0, mpix_test.left, &no_reg, &requests[0]));
    if (on == stream) {
        GOOD(mp_isend_on_stream(NULL, 0, mpix_test.right, &no_reg, &requests[1],
                                on));
    } else {
        GOOD(mp_isend(NULL, 0, mpix_test.right, &no_reg, &requests[1]));
    }
    GOOD(mp_wait_all(2, requests));
    MPI_Barrier(MPI_COMM_WORLD); /* What is put has been read by gets */
}

/* A put for which nobody waits and that is not posted: a window does not stay
 * for it */
static void test_unposted(mp_reg_t *reg, mp_window_t *window)
{
    mp_request_t request, copy;
    mp_desc_queue_t dq;

    GOOD(mp_desc_queue_alloc(&dq));
    GOOD(mp_put_prepare(out[0], 4, reg, mpix_test.right, 0, window, &request,
                        MP_PUT_NOWAIT));
    copy = request;
    GOOD(mp_desc_queue_add_send(&dq, &request));
    MPIX_CHECK(request == NULL, "%s", "");
    BAD(mp_desc_queue_add_wait_send(&dq, &copy));
    BAD(mp_window_destroy(window));
    GOOD(mp_desc_queue_free(&dq));
    BAD(mp_iput_post_on_stream(&copy, stream));
}

/* Of two messages' size */
static void run_windows(int (*memory)[COUNT])
{
    int is_self = (mpix_test.size == 1);
    mp_request_t requests[MANY], other;
    mp_window_t window, empty;
    cudaStream_t second;
    void *made = NULL;
    mp_reg_t reg;
    int i, k;

    GOOD(mp_register(out, sizeof(out), &reg));
    GOOD(mp_window_create(memory, 2 * BYTES, &window));
    GOOD(mp_window_create(NULL, 0, &empty));
    MPIX_OK(MPIX_Host_stream_create(&made));
    second = (cudaStream_t)made;
    for (k = 0; k < 3; ++k) {
        fill(0, k);
        fill(1, k);
        memset(memory, 0, 2 * BYTES);
        MPI_Barrier(MPI_COMM_WORLD);
        if (k == 0) { /* By the host */
            GOOD(mp_iput(out[0], BYTES, &reg, mpix_test.right, 0, &window,
                         &requests[0], 0));
            GOOD(mp_iput(out[1], BYTES, &reg, mpix_test.right, BYTES, &window,
                         &requests[1], MP_PUT_NOWAIT));
            MPIX_CHECK(requests[1] == NULL, "%s", "");
            BAD(mp_wait(&requests[1]));
            GOOD(mp_wait_on_stream(&requests[0], second)); /* Of another one */
            GOOD(mp_wait(&requests[0]));
            announce(second);
        } else if (k == 1) { /* By the stream */
            GOOD(mp_iput_on_stream(out[0], BYTES, &reg, mpix_test.right, 0,
                                   &window, &requests[0], MP_PUT_INLINE,
                                   stream));
            memset(out[0], 0, BYTES);
            GOOD(mp_iput_on_stream(out[1], BYTES, &reg, mpix_test.right, BYTES,
                                   &window, &requests[1],
                                   MP_PUT_INLINE | MP_PUT_NOWAIT, stream));
            memset(out[1], 0, BYTES);
            GOOD(mp_wait_on_stream(&requests[0], stream));
            announce(stream);
            GOOD(mp_wait(&requests[0]));
        } else { /* Prepared, and only the last one waited for by the stream */
            for (i = 0; i < MANY; ++i) {
                GOOD(mp_put_prepare(out[(4 * i) / MANY / 2],
                                    BYTES, &reg, mpix_test.right,
                                    ((4 * i) / MANY / 2) * BYTES, &window,
                                    &requests[i], 0));
            }
            BAD(mp_window_destroy(&window));
            BAD(mp_deregister(&reg));
            GOOD(mp_iput_post_on_stream(&requests[0], stream));
            GOOD(mp_iput_post_all_on_stream(MANY - 1, &requests[1], stream));
            GOOD(mp_wait_on_stream(&requests[MANY - 1], stream));
            announce(stream);
            GOOD(mp_wait_all(MANY, requests));
        }
        check(memory[0], mpix_test.left, 0, k);
        check(memory[1], mpix_test.left, 1, k);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* Gets what the left one's window has now: what its left one has put */
    GOOD(mp_iget(out[2], BYTES, &reg, mpix_test.left, 0, &window,
                 &requests[0]));
    GOOD(mp_iget_on_stream(out[3], BYTES, &reg, mpix_test.left, BYTES, &window,
                           &requests[1], stream));
    GOOD(mp_wait_all(2, requests));
    i = is_self ? 0 :
                  (mpix_test.rank + (2 * mpix_test.size) - 2) % mpix_test.size;
    check(out[2], i, 0, 2);
    check(out[3], i, 1, 2);

    BAD(mp_iput(in[0], 4, &reg, mpix_test.right, 0, &window, &other, 0));
    BAD(mp_iput(out[0], 4, &no_reg, mpix_test.right, 0, &window, &other, 0));
    BAD(mp_iput(out[0], -1, &reg, mpix_test.right, 0, &window, &other, 0));
    BAD(mp_iput(out[0], 4, &reg, mpix_test.right, 0, &empty, &other, 0));
    BAD(mp_iput(out[0], 4, &reg, mpix_test.right, (2 * BYTES) - 3, &window,
                &other, 0));
    BAD(mp_iput(out[0], 4, &reg, mpix_test.right, 0, &window, &other, 64));
    BAD(mp_iget(out[0], 4, &reg, mpix_test.size, 0, &window, &other));
    BAD(mp_iget(out[0], 4, &reg, mpix_test.right, 0, NULL, &other));
    BAD(mp_iget(out[0], 4, &reg, mpix_test.right, 0, &window, NULL));
    test_unposted(&reg, &window);
    /* One rank's bad arguments fail all */
    BAD(mp_window_create((mpix_test.rank == 0) ? NULL : memory, 8, &empty));
    MPI_Barrier(MPI_COMM_WORLD);
    GOOD(mp_window_destroy(&window));
    GOOD(mp_window_destroy(&empty));
    GOOD(mp_deregister(&reg));
    BAD(mp_window_destroy(&window));
    BAD(mp_deregister(&reg));
    MPIX_CHECK(MPIX_Host_stream_synchronize(made) == MPI_SUCCESS, "%s", "");
}

static void test_windows(void)
{
    const char *lanes = getenv("UCX_ST_LANES");
    void *memory;

    MPIX_OK(MPI_Alloc_mem(2 * BYTES, MPI_INFO_NULL, &memory));
    run_windows((int(*)[COUNT])memory);
    MPIX_OK(MPI_Free_mem(memory));
    if ((lanes == NULL) || strcmp(lanes, "direct")) {
        memory = ucs_gstream_memory_get(2 * BYTES);
        run_windows((int(*)[COUNT])memory);
        ucs_gstream_memory_put(memory, 2 * BYTES);
    } /* Else no lane reaches such memory */
}

static void test_words(void)
{
    static const struct {
        int      flags;
        uint32_t before;
        uint32_t after;
    } waits[] = {
        {MP_WAIT_GEQ, 4, 6}, {MP_WAIT_EQ, 6, 5}, {MP_WAIT_AND, 8, 4}
    };
    static uint32_t plain; /* Nothing has registered it */
    uint32_t *words = (uint32_t*)ucs_gstream_memory_get(3 * sizeof(*words));
    mp_desc_queue_t dq;
    unsigned i;

    GOOD(mp_desc_queue_alloc(&dq));
    for (i = 0; i < 3; ++i) {
        words[0] = 0;
        words[1] = waits[i].before;
        words[2] = 0;
        GOOD(mp_desc_queue_add_write_value32(&dq, &words[0], 1));
        GOOD(mp_desc_queue_add_wait_value32(&dq, &words[1], 5, waits[i].flags));
        GOOD(mp_desc_queue_add_write_value32(&dq, &words[2], 1));
        GOOD(mp_desc_queue_post_on_stream(stream, &dq, 0));
        GOOD(mp_wait32(&words[0], 1, MP_WAIT_EQ));
        MPIX_CHECK(words[2] == 0, "%u", words[2]);
        __atomic_store_n(&words[1], waits[i].after, __ATOMIC_RELEASE);
        GOOD(mp_wait32(&words[1], 5, waits[i].flags));
        GOOD(mp_wait32(&words[2], 1, MP_WAIT_GEQ));
        GOOD(mp_wait32_on_stream(&words[1], 5, waits[i].flags, stream));
        synchronize();
    }
    GOOD(mp_wait_dword_geq_on_stream(&words[2], 1, stream));
    GOOD(mp_wait_dword_eq_on_stream(&words[2], 1, stream));
    synchronize();
    plain = 1;
    GOOD(mp_wait_dword_eq_on_stream(&plain, 1, stream));
    synchronize();
    BAD(mp_wait32(&words[0], 1, 3));
    BAD(mp_wait32(NULL, 1, MP_WAIT_EQ));
    BAD(mp_wait32_on_stream((uint32_t*)((char*)words + 2), 1, MP_WAIT_EQ,
                            stream));
    BAD(mp_desc_queue_add_wait_value32(&dq, words, 1, -1));
    BAD(mp_desc_queue_add_write_value32(&dq, NULL, 1));
    GOOD(mp_desc_queue_free(&dq));
    BAD(mp_desc_queue_free(&dq));
    BAD(mp_desc_queue_add_write_value32(&dq, words, 1));
    BAD(mp_desc_queue_alloc(NULL));
    ucs_gstream_memory_put(words, 3 * sizeof(*words));
}

/* A queue of commands of all five kinds: it does nothing before it is posted,
 * and then in its order */
static void test_descs(void)
{
    uint32_t *words = (uint32_t*)ucs_gstream_memory_get(3 * sizeof(*words));
    mp_request_t send, recv, other;
    mp_desc_queue_t dq;
    int k;

    GOOD(mp_desc_queue_alloc(&dq));
    for (k = 0; k < ROUNDS; ++k) {
        fill(0, k);
        memset(words, 0, 3 * sizeof(*words));
        GOOD(mp_irecv(in[0], BYTES, mpix_test.left, &no_reg, &recv));
        GOOD(mp_send_prepare(out[0], BYTES, mpix_test.right, &no_reg, &send));
        GOOD(mp_desc_queue_add_write_value32(&dq, &words[0], 1));
        GOOD(mp_desc_queue_add_wait_value32(&dq, &words[1], 1, MP_WAIT_EQ));
        BAD(mp_desc_queue_add_wait_send(&dq, &send)); /* Not added */
        BAD(mp_desc_queue_add_wait_send(&dq, &recv));
        GOOD(mp_desc_queue_add_send(&dq, &send));
        BAD(mp_desc_queue_add_send(&dq, &send));
        BAD(mp_desc_queue_add_send(&dq, &recv));
        GOOD(mp_desc_queue_add_wait_send(&dq, &send));
        BAD(mp_desc_queue_add_wait_send(&dq, &send));
        BAD(mp_desc_queue_add_wait_recv(&dq, &send));
        GOOD(mp_desc_queue_add_wait_recv(&dq, &recv));
        BAD(mp_wait(&recv));
        GOOD(mp_desc_queue_add_write_value32(&dq, &words[2], 1));
        BAD(mp_wait(&send));
        GOOD(mp_desc_queue_post_on_stream(stream, &dq, 0));
        GOOD(mp_wait32(&words[0], 1, MP_WAIT_EQ));
        MPIX_CHECK(words[2] == 0, "%u", words[2]);
        __atomic_store_n(&words[1], 1, __ATOMIC_RELEASE);
        GOOD(mp_wait32(&words[2], 1, MP_WAIT_EQ));
        check(in[0], mpix_test.left, 0, k);
        GOOD(mp_wait(&send));
        GOOD(mp_wait(&recv));
        GOOD(mp_desc_queue_post_on_stream(stream, &dq, 0)); /* Empty */
    }
    /* What is not posted stays, and the send can still be posted */
    GOOD(mp_irecv(in[0], BYTES, mpix_test.left, &no_reg, &recv));
    GOOD(mp_send_prepare(out[0], BYTES, mpix_test.right, &no_reg, &send));
    GOOD(mp_send_prepare(out[1], 4, mpix_test.right, &no_reg, &other));
    GOOD(mp_desc_queue_add_send(&dq, &other));
    BAD(mp_desc_queue_post_on_stream(stream, &dq, 0)); /* In front of send */
    GOOD(mp_isend_post_on_stream(&send, stream));
    GOOD(mp_desc_queue_free(&dq));
    GOOD(mp_wait(&recv));
    GOOD(mp_irecv(in[1], 4, mpix_test.left, &no_reg, &recv));
    GOOD(mp_isend_post_on_stream(&other, stream));
    GOOD(mp_wait(&recv));
    GOOD(mp_wait(&other));
    GOOD(mp_wait(&send));
    ucs_gstream_memory_put(words, 3 * sizeof(*words));
}

static void test_refuse(void)
{
    mp_request_t request = NULL, copies[2];
    int size             = mpix_test.size;
    int no_rank          = size;
    int value            = 0;
    mp_reg_t reg;

    BAD(init()); /* Twice */
    GOOD(mp_query_param(MP_PARAM_VERSION, &value));
    MPIX_CHECK(MP_API_VERSION_COMPATIBLE(value), "%x", value);
    BAD(mp_query_param(MP_NUM_PARAMS, &value));
    BAD(mp_query_param(MP_PARAM_VERSION, NULL));
    BAD(mp_register(NULL, 4, &reg));
    BAD(mp_register(out, 0, &reg));
    BAD(mp_isend(out, 4, no_rank, &no_reg, &request));
    BAD(mp_isend(out, 4, -1, &no_reg, &request));
    if (size > 3) { /* Neither left nor right */
        BAD(mp_irecv(in, 4, (mpix_test.rank + 2) % size, &no_reg, &request));
    }
    BAD(mp_irecv(in, -1, mpix_test.left, &no_reg, &request));
    BAD(mp_irecv(NULL, 4, mpix_test.left, &no_reg, &request));
    BAD(mp_irecv(in, 4, mpix_test.left, &no_reg, NULL));
    BAD(mp_isendv(NULL, 2, mpix_test.right, &no_reg, &request));
    BAD(mp_isendv(NULL, -1, mpix_test.right, &no_reg, &request));
    BAD(mp_wait(&request));
    BAD(mp_wait(NULL));
    BAD(mp_wait_all(1, NULL));
    MPIX_CHECK(mp_progress_all(1, NULL) == -1, "%s", "");
    GOOD(mp_wait_all(0, NULL));
    GOOD(mp_wait_all_on_stream(0, NULL, stream));

    GOOD(mp_irecv(in[0], 4, mpix_test.left, &no_reg, &request));
    copies[0] = copies[1] = request;
    BAD(mp_wait_all(2, copies));
    BAD(mp_wait_all_on_stream(2, copies, stream));
    BAD(mp_isend_post_on_stream(&request, stream));
    GOOD(mp_wait_on_stream(&request, stream));
    BAD(mp_wait_on_stream(&request, stream));
    GOOD(mp_isend(out[0], 4, mpix_test.right, &no_reg, &copies[1]));
    GOOD(mp_wait(&request));
    BAD(mp_wait(&request));
    BAD(mp_wait(&copies[0]));
    GOOD(mp_wait(&copies[1]));
}

/* A message of a stream fails before that has come to blocks behind it: they
 * are the message's until then. What is refused has no part on the stream. */
static void test_cancelled(void)
{
    uint32_t *word     = (uint32_t*)ucs_gstream_memory_get(sizeof(*word));
    struct iovec block = {out[1], BYTES};
    mp_request_t recv, send, vector, other;

    *word = 0;
    GOOD(mp_wait32_on_stream(word, 1, MP_WAIT_EQ, stream));
    GOOD(mp_isend_on_stream(out[0], BYTES, mpix_test.right, &no_reg, &send,
                            stream));
    GOOD(mp_isendv_on_stream(&block, 1, mpix_test.right, &no_reg, &vector,
                             stream));
    MPI_Barrier(MPI_COMM_WORLD);
    GOOD(mp_irecv(in[0], 4, mpix_test.left, &no_reg, &recv));
    BAD(mp_wait(&send));
    BAD(mp_isendv_on_stream(&block, 1, mpix_test.right, &no_reg, &other,
                            stream));
    MPIX_CHECK(mp_progress_all(1, &vector) == 0, "%s", "");
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    BAD(mp_wait(&vector));
    synchronize();
    /* A wait that is refused leaves the request as it was */
    BAD(mp_wait_on_stream(&recv, stream));
    while (mp_progress_all(1, &recv) == 0) {
    }
    BAD(mp_wait(&recv));
    mp_finalize();
    ucs_gstream_memory_put(word, sizeof(*word));
    GOOD(init());
}

/* The last rank sends to the first one: both fail, and the stream that waits
 * goes on. What their hosts post then fails as well. */
static void test_truncation(void)
{
    int is_receiver = (mpix_test.rank == 0);
    int is_sender   = (mpix_test.rank == (mpix_test.size - 1));
    mp_request_t send, recv;

    if (is_receiver) {
        GOOD(mp_irecv(in[0], 4, mpix_test.left, &no_reg, &recv));
        GOOD(mp_wait_on_stream(&recv, stream));
    }
    if (is_sender) {
        GOOD(mp_isend(out[0], BYTES, mpix_test.right, &no_reg, &send));
        BAD(mp_wait(&send));
    }
    if (is_receiver) {
        synchronize();
        BAD(mp_wait(&recv));
    }
    if (is_receiver || is_sender) {
        BAD(mp_isend(out[0], 4, mpix_test.right, &no_reg, &send));
    }
}

/* What is left goes, and all can begin anew */
static void test_finalize(void)
{
    mp_request_t requests[3], other;
    mp_desc_queue_t dq;
    mp_window_t window;
    mp_reg_t reg;
    int none = -1;
    void *memory;
    int k;

    mp_finalize();
    mp_finalize();
    MPIX_CHECK(mp_progress_all(0, NULL) == -1, "%s", "");
    BAD(mp_irecv(in[0], 4, mpix_test.left, &no_reg, &requests[0]));
    BAD(mp_wait(&requests[0]));
    BAD(mp_wait32_on_stream((uint32_t*)out, 0, MP_WAIT_GEQ, stream));
    BAD(mp_desc_queue_alloc(&dq));
    BAD(mp_register(out, 4, &reg));
    BAD(mp_window_create(out, 4, &window));
    BAD(mp_init(MPI_COMM_NULL, NULL, 0, 0, 0));
    BAD(mp_init(MPI_COMM_WORLD, NULL, 1, 0, 0));
    BAD(mp_init(MPI_COMM_WORLD, NULL, 0, 0, -1));
    BAD(mp_init(MPI_COMM_WORLD, &none, (mpix_test.rank == 0), 0, 0));

    GOOD(init());
    test_host();
    GOOD(mp_register(out, 4, &reg));
    MPIX_OK(MPI_Alloc_mem(4, MPI_INFO_NULL, &memory));
    GOOD(mp_window_create(memory, 4, &window));
    GOOD(mp_irecv(in[0], 4, mpix_test.left, &no_reg, &requests[0]));
    GOOD(mp_send_prepare(out[0], 4, mpix_test.right, &no_reg, &requests[1]));
    GOOD(mp_send_prepare(out[0], 4, mpix_test.right, &no_reg, &requests[2]));
    GOOD(mp_desc_queue_alloc(&dq));
    GOOD(mp_desc_queue_add_send(&dq, &requests[1]));
    for (k = 0; (k < ROUNDS) && (mpix_test.rank == 0); ++k) {
        GOOD(mp_iget(out[0], 4, &reg, mpix_test.right, 0, &window, &other));
        GOOD(mp_wait(&other)); /* The others are in mp_finalize */
    }
    mp_finalize();
    MPIX_OK(MPI_Free_mem(memory));
    GOOD(init());
    test_streams();
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"streams", test_streams},
        {"host", test_host},
        {"prepared", test_prepared},
        {"vectors", test_vectors},
        {"short", test_short},
        {"windows", test_windows},
        {"words", test_words},
        {"descs", test_descs},
        {"refuse", test_refuse},
        {"cancelled", test_cancelled},
        {"truncation", test_truncation},
        {"finalize", test_finalize},
        {NULL, NULL}
    };

    mpix_test_init(&argc, &argv);
    stream = (cudaStream_t)((mpix_test.queue_type == MPIX_QUEUE_HOST) ?
                                    mpix_test.stream :
                                    ucs_gstream_native((ucs_gstream_h)
                                                       mpix_test.stream));
    GOOD(init());
    mpix_test_cases(cases, argc, argv);
    mp_finalize();
    return mpix_test_end("compat_libmp");
}
