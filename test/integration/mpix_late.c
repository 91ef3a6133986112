/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_late.c - a program of MPI that loads this library when MPI runs already,
 * as a module of Python does. Arguments: the library, and the binding; it is
 * ucx only where the library is there before MPI, and MPI's calls pass it.
 */
#include <mpix_queue.h>

#include <mpi.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define TAG   7
#define WORDS 100

/* The library's function of this name: this program is not linked to it */
#define LIB(_name) ((__typeof__(&_name))dlsym(library, #_name))

static void *library;
static int failed;


static void check(int ok, const char *what)
{
    if (!ok) {
        printf("FAILED: %s\n", what);
        ++failed;
    }
}

static int class_of(int code)
{
    int class = code;

    MPI_Error_class(code, &class);
    return class;
}

/* A call that must return a code of this class. */
#define IS(_class, _call) check(class_of(_call) == (_class), #_call)

static int make_requests(MPI_Comm comm, int (*words)[WORDS],
                         MPI_Request *requests)
{
    int rank, size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    IS(MPI_SUCCESS, LIB(MPI_Send_init)(words[0], WORDS, MPI_INT,
                                       (rank + 1) % size, TAG, comm,
                                       &requests[0]));
    IS(MPI_SUCCESS, LIB(MPI_Recv_init)(words[1], WORDS, MPI_INT,
                                       (rank + size - 1) % size, TAG, comm,
                                       &requests[1]));
    return (rank + size - 1) % size;
}

static void use(MPIX_Queue queue, MPI_Comm comm)
{
    static int words[2][WORDS];
    MPI_Request requests[2];
    int left, rank, i;

    MPI_Comm_rank(comm, &rank);
    left = make_requests(comm, words, requests);
    for (i = 0; i < WORDS; ++i) {
        words[0][i] = (1000 * rank) + i;
    }

    IS(MPI_SUCCESS, LIB(MPIX_Matchall)(2, requests, MPI_STATUSES_IGNORE));
    IS(MPI_SUCCESS, LIB(MPIX_Enqueue_startall)(queue, 2, requests));
    IS(MPI_SUCCESS, LIB(MPIX_Enqueue_waitall)(queue, 2, requests));
    IS(MPI_SUCCESS, LIB(MPIX_Queue_wait)(queue));
    check((words[1][0] == (1000 * left)) &&
          (words[1][WORDS - 1] == ((1000 * left) + WORDS - 1)), "the words");
    for (i = 0; i < 2; ++i) {
        IS(MPI_SUCCESS, LIB(MPI_Request_free)(&requests[i]));
    }
}

/* A communicator that was made past the library */
static void use_other(MPIX_Queue queue)
{
    static int words[2][WORDS];
    MPI_Request requests[2];
    MPI_Comm comm;
    int i;

    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    make_requests(comm, words, requests);
    IS(MPI_ERR_COMM, LIB(MPIX_Match)(&requests[0], MPI_STATUS_IGNORE));
    for (i = 0; i < 2; ++i) {
        IS(MPI_SUCCESS, LIB(MPI_Request_free)(&requests[i]));
    }

    IS(MPI_SUCCESS, LIB(MPIX_Queue_attach)(comm));
    use(queue, comm);
    MPI_Comm_free(&comm);
}

/* What the library cannot know */
static void use_unknown(void)
{
    MPI_Request request;
    int word;

    MPI_Recv_init(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
    IS(MPI_ERR_REQUEST, LIB(MPIX_Match)(&request, MPI_STATUS_IGNORE));
    MPI_Request_free(&request);
}

/* Nothing is matched before the program has said that it calls the library. */
static void attach(void *stream, int is_bound)
{
    MPIX_Queue queue = MPIX_QUEUE_NULL;

    IS(is_bound ? MPI_ERR_OTHER : MPI_ERR_UNSUPPORTED_OPERATION,
       LIB(MPIX_Queue_init)(MPIX_QUEUE_HOST, stream, &queue));
    if (!is_bound) {
        IS(MPI_ERR_COMM, LIB(MPIX_Queue_attach)(MPI_COMM_SELF));
    }
    IS(MPI_SUCCESS, LIB(MPIX_Queue_attach)(MPI_COMM_WORLD));
    IS(MPI_SUCCESS, LIB(MPIX_Queue_attach)(MPI_COMM_WORLD));
}

static void run(const char *binding)
{
    const int is_ucx = !strcmp(binding, "ucx");

    MPIX_Queue queue = MPIX_QUEUE_NULL;
    MPIX_Queue_info info;
    void *stream;

    IS(MPI_SUCCESS, LIB(MPIX_Host_stream_create)(&stream));
    attach(stream, is_ucx);
    IS(MPI_SUCCESS, LIB(MPIX_Queue_init)(MPIX_QUEUE_HOST, stream, &queue));
    IS(MPI_SUCCESS, LIB(MPIX_Queue_get_info)(&info));
    check(!strcmp(info.binding, binding), "the binding");

    use(queue, MPI_COMM_WORLD);
    if (!is_ucx) {
        use_other(queue); /* Only ids of our own can lack there */
    }
    use_unknown();
    IS(MPI_SUCCESS, LIB(MPIX_Queue_free)(&queue));
    IS(MPI_SUCCESS, LIB(MPIX_Host_stream_free)(&stream));
}

int main(int argc, char **argv)
{
    int level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    library = dlopen((argc > 1) ? argv[1] : "libmpix_queue.so.0",
                     RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("FAILED: %s\n", dlerror());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    run((argc > 2) ? argv[2] : "mpi");
    /* Its threads run on, and MPI calls what it has attached */
    check(dlclose(library) == 0, "dlclose");
    MPI_Finalize();
    printf("mpix_late: %d checks failed\n", failed);
    return (failed == 0) ? 0 : 1;
}
