/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_test.h - what the MPI test programs share.
 *
 * A program counts failed checks and prints each; it exits with 0 if all ranks
 * had none, else with 1. Payloads are made of (source, destination, channel,
 * use, place), so that data of another message, use or place is seen as wrong.
 */
#ifndef MPIX_TEST_H_
#define MPIX_TEST_H_

#include <mpix_queue.h>

#include <mpi.h>

#include <stddef.h>
#include <stdint.h>

#define MPIX_STR_(_x) #_x
#define MPIX_STR(_x)  MPIX_STR_(_x)
#define MPIX_HERE     __FILE__ ":" MPIX_STR(__LINE__)

/* Count and print a failed condition. */
#define MPIX_CHECK(_cond, ...) \
    mpix_test_check(!!(_cond), MPIX_HERE, #_cond, __VA_ARGS__)

/* A call that must succeed. */
#define MPIX_OK(_call) \
    mpix_test_code((_call), MPI_SUCCESS, MPIX_HERE, #_call)

/* A call that must return an error of this class. */
#define MPIX_IS(_class, _call) \
    mpix_test_code((_call), (_class), MPIX_HERE, #_call)

/* Words behind each buffer that no message may touch. */
#define MPIX_TEST_GUARD 4


/* The process, filled by mpix_test_init(). */
typedef struct mpix_test {
    int        rank;
    int        size;
    int        left;    /* Rank before this one, in a ring */
    int        right;   /* Rank after this one */
    int        failed;  /* Checks */
    void       *stream;
    int        queue_type; /* MPIX_QUEUE_*: ST_TEST_STREAM of the environment */
    MPIX_Queue queue;   /* On stream */
} mpix_test_t;

extern mpix_test_t mpix_test;


/* One direction of a channel: a buffer and what is in it. The stream changes
 * and reads it by the functions below; 'use' counts on the stream. */
typedef struct mpix_test_msg {
    uint64_t    *words;
    size_t      count;   /* Words of the buffer, without the guard */
    size_t      actual;  /* Words that the message has */
    int         source;  /* Ranks in MPI_COMM_WORLD */
    int         dest;
    int         channel;
    uint64_t    use;
    uint64_t    wrong;   /* Words that were not as expected */
    MPI_Request request;
} mpix_test_msg_t;


/* Initialises MPI, asking for a thread level, a stream and a queue; errors are
 * returned. */
void mpix_test_init_thread(int *argc, char ***argv, int level);

/* The same by MPI_Init, whose level the library raises. */
void mpix_test_init(int *argc, char ***argv);

/* What is left to do where the program has called MPI_Init itself. */
void mpix_test_start(void);

/* Makes a stream as ST_TEST_STREAM asks for: host (default), hip or cuda, on
 * which MPIX_Host_stream_*() work, too; sets the type of queues. */
int mpix_test_stream(void **stream);

/* MPI's own function of this name, past the library's. */
void *mpix_test_past(const char *name);

/* A case of a program that has several. */
typedef struct mpix_test_case {
    const char *name;
    void       (*func)(void);
} mpix_test_case_t;

/* Runs all cases up to one without a name or, with an argument, the one that it
 * names; all ranks meet behind each. */
void mpix_test_cases(const mpix_test_case_t *cases, int argc, char **argv);

/* Frees what mpix_test_init() made, adds the failures of all ranks and prints
 * one line; returns the exit status. */
int mpix_test_end(const char *name);

void mpix_test_check(int ok, const char *where, const char *what,
                     const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

void mpix_test_code(int code, int expected, const char *where,
                    const char *what);

/* Checks the class of an error, and gets its text, of MPI_MAX_ERROR_STRING
 * bytes. Zero on MPICH if the code is the class: the text went to stderr. */
int mpix_test_text(int code, int error_class, char *text);

/* Makes the persistent send of 'count' words to 'dest', a rank of
 * MPI_COMM_WORLD. */
void mpix_test_send_init(mpix_test_msg_t *msg, size_t count, int dest, int tag,
                         int channel);

/* Makes the receive of 'count' words; 'actual' words will come. */
void mpix_test_recv_init(mpix_test_msg_t *msg, size_t count, int source,
                         int tag, int channel);

/* As the two above, on another communicator: 'peer' is the rank there, 'world'
 * that in MPI_COMM_WORLD. */
void mpix_test_send_init_comm(mpix_test_msg_t *msg, size_t count,
                              const int peer[2], int tag, MPI_Comm comm);
void mpix_test_recv_init_comm(mpix_test_msg_t *msg, size_t count,
                              const int peer[2], int tag, MPI_Comm comm);

/* Only allocates the buffer and sets the fields, without a request. */
void mpix_test_msg_init(mpix_test_msg_t *msg, size_t count, int source,
                        int dest, int channel);

/* Frees the request and the buffer, and checks what 'wrong' says. */
void mpix_test_msg_free(mpix_test_msg_t *msg);

/* Functions for the stream; the argument is a mpix_test_msg_t. */
void mpix_test_fill(void *arg);
void mpix_test_verify(void *arg);

/* Another one: blocks the stream until the host stores something else than 0 to
 * the int that is the argument. */
void mpix_test_hold(void *arg);

/* Runs one use of matched sends and receives and waits for it on the host. */
void mpix_test_run(mpix_test_msg_t *sends, int num_sends,
                   mpix_test_msg_t *recvs, int num_recvs);

/* Runs so many uses of 'count' pairs that are matched, and frees them. */
void mpix_test_use_up(mpix_test_msg_t *sends, mpix_test_msg_t *recvs,
                      int count, int uses);

/* Makes an exchange; 'coupled' is the info's value, or NULL for no info. */
void mpix_test_exchange_init(int count, MPI_Request *requests,
                             const char *coupled, MPI_Request *exchange);

/* Matches all requests of both arrays in one blocking call. */
void mpix_test_match(mpix_test_msg_t *sends, int num_sends,
                     mpix_test_msg_t *recvs, int num_recvs);

/* Messages that are used once. The send goes behind a function of the stream
 * that fills it; its request is the message's. */
void mpix_test_once_send(mpix_test_msg_t *msg, int tag, MPI_Comm comm);
void mpix_test_once_recv(mpix_test_msg_t *msg, int source, int tag,
                            MPI_Comm comm);
void mpix_test_once_start(void);
void mpix_test_once_wait(void);

/* Waits on the host for the queue, and for the stream. */
void mpix_test_queue_wait(void);

/* Checks what a message of 64-bit words has brought. */
void mpix_test_status(const MPI_Status *status, int source, int tag,
                      size_t words);

/* Frees a message whose request is gone, which is checked. */
void mpix_test_msg_drop(mpix_test_msg_t *msg);

#endif
