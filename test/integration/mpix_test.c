/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_test.c - what the MPI test programs share.
 */
#include "mpix_test.h"

#include "st_any.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MPIX_TEST_GUARD_WORD 0x6775617264677561ull
#define MPIX_TEST_MAX_PRINT  20

mpix_test_t mpix_test;


void mpix_test_check(int ok, const char *where, const char *what,
                     const char *fmt, ...)
{
    char text[256];
    va_list ap;

    if (ok || (++mpix_test.failed > MPIX_TEST_MAX_PRINT)) {
        return;
    }

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    printf("FAILED rank %d %s: %s: %s\n", mpix_test.rank, where, what, text);
    fflush(stdout);
}

void mpix_test_code(int code, int expected, const char *where,
                    const char *what)
{
    char text[MPI_MAX_ERROR_STRING], want[MPI_MAX_ERROR_STRING];
    int class = code;
    int length;

    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    MPI_Error_string(expected, want, &length);
    mpix_test_check(class == expected, where, what,
                    "returned \"%s\", expected \"%s\"", text, want);
}

int mpix_test_text(int code, int class, char *text)
{
    int length;

    MPIX_IS(class, code);
#ifdef MPICH_VERSION
    if (code == class) {
        return 0;
    }
#endif
    MPIX_OK(MPI_Error_string(code, text, &length));
    return 1;
}

void mpix_test_init(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    mpix_test_start();
}

void mpix_test_init_thread(int *argc, char ***argv, int level)
{
    int provided;

    MPI_Init_thread(argc, argv, level, &provided);
    mpix_test_start();
}

/* Streams of GPUs run what MPIX_Host_stream_launch() gives them as functions of
 * the host */
int mpix_test_stream(void **stream)
{
    static const int types[UCS_GSTREAM_TYPE_LAST] = {
        [UCS_GSTREAM_TYPE_HOST] = MPIX_QUEUE_HOST,
        [UCS_GSTREAM_TYPE_HIP]  = MPIX_QUEUE_HIP,
        [UCS_GSTREAM_TYPE_CUDA] = MPIX_QUEUE_CUDA
    };

    mpix_test.queue_type = types[st_any_type()];
    if (mpix_test.queue_type == MPIX_QUEUE_HOST) {
        return MPIX_Host_stream_create(stream);
    }
    return (st_any_stream((ucs_gstream_h*)stream) == UCS_OK) ? MPI_SUCCESS :
                                                               MPI_ERR_OTHER;
}

void mpix_test_start(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int code, length;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpix_test.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpix_test.size);
    mpix_test.right = (mpix_test.rank + 1) % mpix_test.size;
    mpix_test.left  = (mpix_test.rank + mpix_test.size - 1) % mpix_test.size;

    code = mpix_test_stream(&mpix_test.stream);
    if (code == MPI_SUCCESS) {
        code = MPIX_Queue_init(mpix_test.queue_type, mpix_test.stream,
                               &mpix_test.queue);
    }
    if (code != MPI_SUCCESS) {
        MPI_Error_string(code, text, &length);
        printf("FAILED rank %d: no queue: %s\n", mpix_test.rank, text);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

void *mpix_test_past(const char *name)
{
    Dl_info info;
    void *mpi;

    /* The library has no function of this name */
    if ((dladdr((void*)MPI_Get_version, &info) == 0) ||
        ((mpi = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)) == NULL)) {
        printf("FAILED: MPI's library was not found\n");
        exit(1);
    }
    return dlsym(mpi, name);
}

void mpix_test_cases(const mpix_test_case_t *cases, int argc, char **argv)
{
    for (; cases->name != NULL; ++cases) {
        if ((argc < 2) || !strcmp(argv[1], cases->name)) {
            cases->func();
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

/* A thread that is none of the application's blocks its signals, but not those
 * that it causes itself: the kernel would end the process without a word. */
static void mpix_test_check_thread(const char *id)
{
    const uint64_t others = (1ul << (SIGTERM - 1)) | (1ul << (SIGUSR1 - 1)) |
                            (1ul << (SIGCHLD - 1));
#if defined(__SANITIZE_THREAD__)
    const uint64_t own    = 0; /* The sanitizer's own thread blocks all */
#else
    const uint64_t own    = (1ul << (SIGSEGV - 1)) | (1ul << (SIGBUS - 1)) |
                            (1ul << (SIGFPE - 1)) | (1ul << (SIGILL - 1));
#endif
    const uint64_t libc   = 3ul << 31; /* Its own two signals */
    char path[512], line[512], name[64] = "";
    unsigned long blocked;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%s/status", id);
    do { /* libc blocks all for a moment where a thread begins or ends */
        blocked = 0;
        file    = fopen(path, "r");
        while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
            (void)sscanf(line, "Name: %63s", name);
            (void)sscanf(line, "SigBlk: %lx", &blocked);
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    } while ((blocked & libc) == libc);
    MPIX_CHECK(((blocked & others) != others) || !(blocked & own),
               "thread %s blocks %lx", name, blocked);
}

static void mpix_test_check_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;

    MPIX_CHECK(dir != NULL, "no /proc/self/task");
    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        if (entry->d_name[0] != '.') {
            mpix_test_check_thread(entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

int mpix_test_end(const char *name)
{
    int total = 0;

    mpix_test_check_threads();
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Queue_free(&mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_free(&mpix_test.stream));

    MPI_Allreduce(&mpix_test.failed, &total, 1, MPI_INT, MPI_SUM,
                  MPI_COMM_WORLD);
    if (mpix_test.rank == 0) {
        printf("%s: %d ranks, %d checks failed\n", name, mpix_test.size, total);
    }
    MPI_Finalize();
    return (total == 0) ? 0 : 1;
}

/* Differs in all arguments. */
static uint64_t mpix_test_word(const mpix_test_msg_t *msg, size_t index)
{
    uint64_t word = (uint64_t)msg->source;

    word = (word * 0x9e3779b97f4a7c15ull) + (uint64_t)msg->dest + 1;
    word = (word * 0x9e3779b97f4a7c15ull) + (uint64_t)msg->channel + 1;
    word = (word * 0x9e3779b97f4a7c15ull) + msg->use + 1;
    word = (word * 0x9e3779b97f4a7c15ull) + index + 1;
    return word ^ (word >> 29);
}

void mpix_test_fill(void *arg)
{
    mpix_test_msg_t *msg = arg;
    size_t i;

    for (i = 0; i < msg->actual; ++i) {
        msg->words[i] = mpix_test_word(msg, i);
    }
    ++msg->use;
}

void mpix_test_verify(void *arg)
{
    mpix_test_msg_t *msg = arg;
    size_t i;

    for (i = 0; i < msg->actual; ++i) {
        msg->wrong += (msg->words[i] != mpix_test_word(msg, i));
    }
    for (; i < (msg->count + MPIX_TEST_GUARD); ++i) {
        msg->wrong += (msg->words[i] != MPIX_TEST_GUARD_WORD);
    }
    ++msg->use;
}

void mpix_test_hold(void *arg)
{
    while (!__atomic_load_n((int*)arg, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
}

void mpix_test_msg_init(mpix_test_msg_t *msg, size_t count, int source,
                        int dest, int channel)
{
    size_t i;

    *msg = (mpix_test_msg_t){
        .words   = malloc((count + MPIX_TEST_GUARD) * sizeof(uint64_t)),
        .count   = count,
        .actual  = count,
        .source  = source,
        .dest    = dest,
        .channel = channel,
        .request = MPI_REQUEST_NULL
    };

    if (msg->words == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (i = 0; i < (count + MPIX_TEST_GUARD); ++i) {
        msg->words[i] = MPIX_TEST_GUARD_WORD;
    }
}

void mpix_test_send_init(mpix_test_msg_t *msg, size_t count, int dest, int tag,
                         int channel)
{
    mpix_test_msg_init(msg, count, mpix_test.rank, dest, channel);
    MPIX_OK(MPI_Send_init(msg->words, count, MPI_UINT64_T, dest, tag,
                          MPI_COMM_WORLD, &msg->request));
}

void mpix_test_recv_init(mpix_test_msg_t *msg, size_t count, int source,
                         int tag, int channel)
{
    mpix_test_msg_init(msg, count, source, mpix_test.rank, channel);
    MPIX_OK(MPI_Recv_init(msg->words, count, MPI_UINT64_T, source, tag,
                          MPI_COMM_WORLD, &msg->request));
}

void mpix_test_send_init_comm(mpix_test_msg_t *msg, size_t count,
                              const int peer[2], int tag, MPI_Comm comm)
{
    mpix_test_msg_init(msg, count, mpix_test.rank, peer[1], tag);
    MPIX_OK(MPI_Send_init(msg->words, count, MPI_UINT64_T, peer[0], tag, comm,
                          &msg->request));
}

void mpix_test_recv_init_comm(mpix_test_msg_t *msg, size_t count,
                              const int peer[2], int tag, MPI_Comm comm)
{
    mpix_test_msg_init(msg, count, peer[1], mpix_test.rank, tag);
    MPIX_OK(MPI_Recv_init(msg->words, count, MPI_UINT64_T, peer[0], tag, comm,
                          &msg->request));
}

void mpix_test_msg_free(mpix_test_msg_t *msg)
{
    MPIX_CHECK(msg->wrong == 0,
               "%llu wrong words of %llu uses from %d to %d, channel %d",
               (unsigned long long)msg->wrong, (unsigned long long)msg->use,
               msg->source, msg->dest, msg->channel);
    if (msg->request != MPI_REQUEST_NULL) {
        MPIX_OK(MPI_Request_free(&msg->request));
    }
    free(msg->words);
    msg->words = NULL;
}

void mpix_test_run(mpix_test_msg_t *sends, int num_sends,
                   mpix_test_msg_t *recvs, int num_recvs)
{
    int i;

    for (i = 0; i < num_sends; ++i) {
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill,
                                        &sends[i]));
    }
    for (i = 0; i < num_recvs; ++i) {
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &recvs[i].request));
    }
    for (i = 0; i < num_sends; ++i) {
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &sends[i].request));
    }
    for (i = 0; i < num_recvs; ++i) {
        MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &recvs[i].request));
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                        &recvs[i]));
    }
    for (i = 0; i < num_sends; ++i) {
        MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &sends[i].request));
    }
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
}

void mpix_test_use_up(mpix_test_msg_t *sends, mpix_test_msg_t *recvs,
                      int count, int uses)
{
    int i;

    for (i = 0; i < uses; ++i) {
        mpix_test_run(sends, count, recvs, count);
    }
    for (i = 0; i < count; ++i) {
        mpix_test_msg_free(&sends[i]);
        mpix_test_msg_free(&recvs[i]);
    }
}

void mpix_test_exchange_init(int count, MPI_Request *requests,
                             const char *coupled, MPI_Request *exchange)
{
    MPI_Info info = MPI_INFO_NULL;

    if (coupled != NULL) {
        MPIX_OK(MPI_Info_create(&info));
        MPIX_OK(MPI_Info_set(info, "mpix_coupled", coupled));
    }
    MPIX_OK(MPIX_Exchange_init(count, requests, info, exchange));
    if (coupled != NULL) {
        MPIX_OK(MPI_Info_free(&info));
    }
}

void mpix_test_match(mpix_test_msg_t *sends, int num_sends,
                     mpix_test_msg_t *recvs, int num_recvs)
{
    int count             = num_sends + num_recvs;
    MPI_Request *requests = malloc((count + 1) * sizeof(*requests));
    int i;

    if (requests == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (i = 0; i < count; ++i) {
        requests[i] = (i < num_sends) ? sends[i].request :
                                        recvs[i - num_sends].request;
    }
    MPIX_OK(MPIX_Matchall(count, requests, MPI_STATUSES_IGNORE));
    free(requests);
}
