/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_plain.c - a program of plain MPI, which knows nothing of this project: it
 * finds the transport because UCX does. All data is checked.
 *
 * usage: mpi_plain MODE [SECONDS [SEED]]
 *   p2p      messages of all lengths, expected or not, from any source
 *   coll     collectives
 *   rma      windows: puts, gets, accumulates, atomics, locks
 *   empty    windows without memory, flushed again and again
 *   threads  threads that send at the same time, MPI_THREAD_MULTIPLE
 *   window   the same with windows of long messages under way
 *   mixed    all of these in random order for so long
 */
#include <mpi.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_WORDS      (1u << 17) /* 1 MiB */
#define WINDOW_THREADS 4
#define WINDOW_LENGTH  32
#define WINDOW_WORDS   (1u << 13) /* of a long message, at least */

#define EMPTY_WINDOWS 4
#define EMPTY_FLUSHES 100


static struct {
    int        rank;
    int        size;
    int        level;
    unsigned   failed;
    uint64_t   *in;   /* MAX_WORDS for each rank */
    uint64_t   *out;
} plain;


#ifdef __SANITIZE_ADDRESS__
/* OpenMPI unloads its components before the process ends: whose memory a leak
 * is could not be told any more. Of any thread. */
int dlclose(void *handle)
{
    (void)handle;
    return 0;
}
#endif

static void check(int ok, const char *what)
{
    if (!ok) {
        ++plain.failed;
        fprintf(stderr, "rank %d: %s\n", plain.rank, what);
    }
}

/* What the sender, the tag and the place make */
static uint64_t word_of(int source, int tag, size_t i)
{
    return ((uint64_t)source << 48) ^ ((uint64_t)tag << 32) ^
           (i * 0x9e3779b97f4a7c15ull);
}

static void fill(uint64_t *words, size_t count, int tag)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        words[i] = word_of(plain.rank, tag, i);
    }
}

static int is_filled(const uint64_t *words, size_t count, int source, int tag)
{
    size_t i;

    for (i = 0; (i < count) && (words[i] == word_of(source, tag, i)); ++i);
    return i == count;
}

static uint64_t *in_of(int rank)
{
    return plain.in + ((size_t)rank * MAX_WORDS);
}

static void all_to_all(size_t count, int tag, int late)
{
    MPI_Request *requests = malloc(2 * plain.size * sizeof(*requests));
    int i;

    fill(plain.out, count, tag);
    for (i = 0; i < plain.size; ++i) {
        MPI_Isend(plain.out, (int)count, MPI_UINT64_T, i, tag, MPI_COMM_WORLD,
                  &requests[plain.size + i]);
    }
    if (late) {
        MPI_Barrier(MPI_COMM_WORLD); /* All that came is unexpected */
    }
    for (i = 0; i < plain.size; ++i) {
        memset(in_of(i), 0, count * sizeof(uint64_t));
        MPI_Irecv(in_of(i), (int)count, MPI_UINT64_T, i, tag, MPI_COMM_WORLD,
                  &requests[i]);
    }
    MPI_Waitall(2 * plain.size, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < plain.size; ++i) {
        check(is_filled(in_of(i), count, i, tag), "message");
    }
    free(requests);
}

/* From whoever comes, of a length that the probe tells */
static void any_source(int tag)
{
    size_t count   = 1 + ((size_t)plain.rank * 1000);
    int right      = (plain.rank + 1) % plain.size;
    MPI_Request request;
    MPI_Status status;
    int found, i;

    fill(plain.out, count, tag);
    MPI_Isend(plain.out, (int)count, MPI_UINT64_T, right, tag, MPI_COMM_WORLD,
              &request);
    MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_UINT64_T, &found);
    i = status.MPI_SOURCE;
    check(found == (1 + (i * 1000)), "probed length");
    MPI_Recv(in_of(i), found, MPI_UINT64_T, i, tag, MPI_COMM_WORLD, &status);
    check(is_filled(in_of(i), (size_t)found, i, tag), "probed message");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void test_p2p(unsigned seed)
{
    int tag = (int)(seed % 1000);
    size_t count;

    for (count = 0; count <= MAX_WORDS; count = (count * 4) + 1) {
        all_to_all(count, tag, 0);
        all_to_all(count, tag + 1, 1);
    }
    any_source(tag + 2);
}

static void test_reduce(size_t count)
{
    size_t i;
    int rank;

    fill(plain.out, count, 1);
    MPI_Allreduce(plain.out, plain.in, (int)count, MPI_UINT64_T, MPI_BXOR,
                  MPI_COMM_WORLD);
    for (i = 0; i < count; ++i) {
        for (rank = 0; rank < plain.size; ++rank) {
            plain.in[i] ^= word_of(rank, 1, i);
        }
        if (plain.in[i] != 0) {
            check(0, "allreduce");
            break;
        }
    }
}

static void test_coll(unsigned seed)
{
    size_t count = 1 + (seed % 5000);
    int root     = (int)(seed % (unsigned)plain.size);
    int i;

    test_reduce(count);
    fill(plain.out, count, 2);
    MPI_Allgather(plain.out, (int)count, MPI_UINT64_T, plain.in, (int)count,
                  MPI_UINT64_T, MPI_COMM_WORLD);
    for (i = 0; i < plain.size; ++i) {
        check(is_filled(plain.in + (i * count), count, i, 2), "allgather");
    }
    for (i = 0; i < plain.size; ++i) {
        fill(plain.out + (i * count), count, 3 + i);
    }
    MPI_Alltoall(plain.out, (int)count, MPI_UINT64_T, plain.in, (int)count,
                 MPI_UINT64_T, MPI_COMM_WORLD);
    for (i = 0; i < plain.size; ++i) {
        check(is_filled(plain.in + (i * count), count, i, 3 + plain.rank),
              "alltoall");
    }
    fill(plain.out, count, 4);
    MPI_Bcast(plain.out, (int)count, MPI_UINT64_T, root, MPI_COMM_WORLD);
    check(is_filled(plain.out, count, root, 4), "bcast");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Puts to the right and gets from the left between fences */
static void test_fence(MPI_Win win, uint64_t *base, size_t count)
{
    int right = (plain.rank + 1) % plain.size;
    int left  = (plain.rank + plain.size - 1) % plain.size;

    fill(plain.out, count, 5);
    MPI_Win_fence(0, win);
    MPI_Put(plain.out, (int)count, MPI_UINT64_T, right, 0, (int)count,
            MPI_UINT64_T, win);
    MPI_Win_fence(0, win);
    check(is_filled(base, count, left, 5), "put");
    MPI_Get(plain.in, (int)count, MPI_UINT64_T, left, 0, (int)count,
            MPI_UINT64_T, win);
    MPI_Win_fence(0, win);
    check(is_filled(plain.in, count, (left + plain.size - 1) % plain.size, 5),
          "get");
    MPI_Win_fence(0, win);
}

/* Everybody adds to words of rank 0, and swaps for one */
static void test_atomics(MPI_Win win, uint64_t *base)
{
    uint64_t one = 1, old = 0, sum = 0, expected = 0, mine, swapped;
    uint64_t before[2] = {0, 0};
    int i, won = 0, winners = 0;

    if (plain.rank == 0) {
        memcpy(base, before, sizeof(before));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = 0; i < 20; ++i) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, 0, 0, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        check(old < (20u * (unsigned)plain.size), "fetched sum");
    }
    mine = 1 + (uint64_t)plain.rank;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Compare_and_swap(&mine, &expected, &swapped, MPI_UINT64_T, 0, 1, win);
    MPI_Win_unlock(0, win);
    won = (swapped == 0);
    MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(winners == 1, "compare and swap");
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&sum, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win);
    MPI_Win_unlock(0, win);
    check(sum == (20u * (unsigned)plain.size), "sum");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_rma(unsigned seed)
{
    size_t count = 2 + (seed % 20000);
    uint64_t *base;
    MPI_Win win;

    MPI_Win_allocate((MPI_Aint)(count * sizeof(*base)), sizeof(*base),
                     MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    memset(base, 0, count * sizeof(*base));
    test_fence(win, base, count);
    test_atomics(win, base);
    MPI_Win_free(&win);
}

static void check_mpi(int code, const char *what)
{
    check(code == MPI_SUCCESS, what);
}

/* Nothing is moved: each flush only asks whether the peers are there */
static void test_empty(unsigned seed)
{
    MPI_Win wins[EMPTY_WINDOWS];
    int i, j;

    (void)seed;
    for (i = 0; i < EMPTY_WINDOWS; ++i) {
        check_mpi(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                                 &wins[i]), "empty window");
        MPI_Win_set_errhandler(wins[i], MPI_ERRORS_RETURN);
        check_mpi(MPI_Win_lock_all(0, wins[i]), "lock of an empty window");
    }
    for (i = 0; i < EMPTY_FLUSHES; ++i) {
        for (j = 0; j < EMPTY_WINDOWS; ++j) {
            check_mpi(MPI_Win_flush_all(wins[j]), "flush of an empty window");
        }
    }
    for (i = 0; i < EMPTY_WINDOWS; ++i) {
        check_mpi(MPI_Win_unlock_all(wins[i]), "unlock of an empty window");
        MPI_Win_free(&wins[i]);
    }
}

/** What a thread sends and receives, use by use. */
typedef struct window {
    pthread_t thread;
    int       number;
    int       uses;
    int       length; /* Messages under way together */
    size_t    count;  /* Words of a message */
    uint64_t  *words; /* Of what goes out, then of what comes in */
    unsigned  wrong;
} window_t;

/* All messages are under way together, and threads wait at the same time; one
 * alone goes by a blocking call */
static void exchange_window(window_t *window, int use)
{
    int right     = (plain.rank + 1) % plain.size;
    int left      = (plain.rank + plain.size - 1) % plain.size;
    int tag       = window->number * WINDOW_LENGTH;
    int count     = (int)window->count;
    size_t length = window->length * window->count;
    uint64_t *out = window->words;
    uint64_t *in  = out + length;
    MPI_Request requests[2 * WINDOW_LENGTH];
    int i;

    memset(in, 0, length * sizeof(*in));
    for (i = 0; i < window->length; ++i) {
        fill(out + (i * window->count), window->count, tag + i + use);
    }
    if (window->length == 1) {
        MPI_Sendrecv(out, count, MPI_UINT64_T, right, tag, in, count,
                     MPI_UINT64_T, left, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    } else {
        for (i = 0; i < window->length; ++i) {
            MPI_Irecv(in + (i * window->count), count, MPI_UINT64_T, left,
                      tag + i, MPI_COMM_WORLD, &requests[2 * i]);
            MPI_Isend(out + (i * window->count), count, MPI_UINT64_T, right,
                      tag + i, MPI_COMM_WORLD, &requests[(2 * i) + 1]);
        }
        MPI_Waitall(2 * window->length, requests, MPI_STATUSES_IGNORE);
    }
    for (i = 0; i < window->length; ++i) {
        window->wrong += !is_filled(in + (i * window->count), window->count,
                                    left, tag + i + use);
    }
}

static void *run_window(void *arg)
{
    window_t *window = arg;
    int use;

    for (use = 0; use < window->uses; ++use) {
        exchange_window(window, use);
    }
    return NULL;
}

static void run_windows(int uses, int length, size_t count)
{
    window_t windows[WINDOW_THREADS] = {0};
    double start                     = MPI_Wtime();
    int i;

    for (i = 0; i < WINDOW_THREADS; ++i) {
        windows[i].number = i;
        windows[i].uses   = uses;
        windows[i].length = length;
        windows[i].count  = count;
        windows[i].words  = malloc(2 * length * count * sizeof(uint64_t));
        if (windows[i].words == NULL) {
            MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        }
        pthread_create(&windows[i].thread, NULL, run_window, &windows[i]);
    }
    for (i = 0; i < WINDOW_THREADS; ++i) {
        pthread_join(windows[i].thread, NULL);
        check(windows[i].wrong == 0, "a thread's messages");
        free(windows[i].words);
    }
    if (plain.rank == 0) {
        printf("%d threads, %d messages of %zu bytes: %.2f s\n",
               WINDOW_THREADS, WINDOW_THREADS * uses * length,
               count * sizeof(uint64_t), MPI_Wtime() - start);
    }
}

static void test_threads(unsigned seed)
{
    (void)seed;
    run_windows(100, 1, 64);
}

/* Messages of 64 to 128 KiB */
static void test_window(unsigned seed)
{
    run_windows(10, WINDOW_LENGTH, WINDOW_WORDS + (seed % WINDOW_WORDS));
}

typedef struct plain_mode {
    const char *name;
    void       (*func)(unsigned seed);
} plain_mode_t;

static const plain_mode_t modes[] = {
    {"p2p", test_p2p},
    {"coll", test_coll},
    {"rma", test_rma},
    {"threads", test_threads},
    {"window", test_window},
    {"empty", test_empty}
};
#define NUM_MODES (sizeof(modes) / sizeof(modes[0]))

/* Rank 0 draws what comes next, and when it is over */
static unsigned draw_next(unsigned *seed, double end)
{
    unsigned next;

    *seed = (*seed * 1103515245u) + 12345u;
    next  = (MPI_Wtime() < end) ? (*seed >> 8) + 1 : 0;
    MPI_Bcast(&next, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    return next;
}

static void run_mixed(unsigned seed, double seconds)
{
    double end = MPI_Wtime() + seconds;
    unsigned counts[NUM_MODES] = {0};
    unsigned next;
    size_t i;

    while ((next = draw_next(&seed, end)) != 0) {
        i = next % NUM_MODES;
        modes[i].func(next / NUM_MODES);
        ++counts[i];
    }
    for (i = 0; (plain.rank == 0) && (i < NUM_MODES); ++i) {
        printf("%s %u\n", modes[i].name, counts[i]);
    }
}

static int run_mode(const char *name, double seconds, unsigned seed)
{
    size_t i;

    if (!strcmp(name, "mixed")) {
        run_mixed(seed, seconds);
        return 0;
    }
    for (i = 0; i < NUM_MODES; ++i) {
        if (!strcmp(name, modes[i].name)) {
            modes[i].func(seed);
            modes[i].func(seed / 7);
            return 0;
        }
    }
    fprintf(stderr, "mpi_plain: there is no mode '%s'\n", name);
    return -1;
}

int main(int argc, char **argv)
{
    const char *name = (argc > 1) ? argv[1] : "p2p";
    double seconds   = (argc > 2) ? atof(argv[2]) : 1;
    unsigned seed    = (argc > 3) ? (unsigned)atoi(argv[3]) :
                       (unsigned)time(NULL);
    unsigned failed  = 0;
    size_t length;
    int ret;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &plain.level);
    MPI_Comm_rank(MPI_COMM_WORLD, &plain.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &plain.size);
    MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    if (plain.level < MPI_THREAD_MULTIPLE) {
        check(0, "MPI has no MPI_THREAD_MULTIPLE");
    }
    length    = (size_t)plain.size * MAX_WORDS;
    plain.in  = malloc(length * sizeof(uint64_t));
    plain.out = malloc(length * sizeof(uint64_t));
    if ((plain.in == NULL) || (plain.out == NULL)) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    if (plain.rank == 0) {
        printf("mpi_plain %s, %d ranks, seed %u\n", name, plain.size, seed);
    }
    ret = run_mode(name, seconds, seed);
    MPI_Allreduce(&plain.failed, &failed, 1, MPI_UNSIGNED, MPI_SUM,
                  MPI_COMM_WORLD);
    free(plain.in);
    free(plain.out);
    if (plain.rank == 0) {
        printf("mpi_plain: %u checks failed\n", failed);
    }
    MPI_Finalize();
    return ((ret == 0) && (failed == 0)) ? EXIT_SUCCESS : EXIT_FAILURE;
}
