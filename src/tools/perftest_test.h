/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_test.h - the tests there are, and what the two engines that run them
 * have in common: runs, channels and their buffers.
 *
 * A run is one test with messages of one size. It is created once, which makes
 * requests and matches them, and then repeated: every trial has a warm-up and a
 * timed part. A run has channels, which work at the same time:
 *
 *   latency         each channel is a ping-pong of one message
 *   bandwidth       each channel sends from the client to the server, with
 *                   'slots' messages under way
 *   both directions the second half of the channels sends the other way
 *   one side        the client puts or gets one message after the other
 *
 * Main thread only, but for stamps, which streams write.
 */
#ifndef PERFTEST_TEST_H_
#define PERFTEST_TEST_H_

#include "perftest_buffer.h"
#include "perftest_log.h"

#include <ucp_st.h>

#include <stddef.h>
#include <stdint.h>

/* What a channel does on this side. */
typedef enum {
    PERFTEST_ROLE_PING,
    PERFTEST_ROLE_PONG,
    PERFTEST_ROLE_SENDER,
    PERFTEST_ROLE_RECEIVER
} perftest_role_t;

typedef enum {
    PERFTEST_PATTERN_LAT,
    PERFTEST_PATTERN_BW,
    PERFTEST_PATTERN_BIBW,
    PERFTEST_PATTERN_ONE  /* One side does it all */
} perftest_pattern_t;

/* What is done with memory of the other side. */
typedef enum {
    PERFTEST_RMA_NONE,
    PERFTEST_RMA_PUT,
    PERFTEST_RMA_GET,
    PERFTEST_RMA_SIGNAL /* A put with a signal, there and back */
} perftest_rma_kind_t;

typedef struct perftest_side perftest_side_t;
typedef struct perftest_run perftest_run_t;


/* What moves the messages. All slots are filled. */
typedef struct perftest_engine {
    /* Makes what the channels need, and matches it. run->channels is made. */
    perftest_ret_t (*create)(perftest_run_t *run);
    /* Starts the receives that the other side may send to at once. */
    perftest_ret_t (*prepare)(perftest_run_t *run);
    /* Runs 'total' iterations of each channel, and writes the stamps. */
    perftest_ret_t (*run)(perftest_run_t *run);
    /* Releases what create() made, also of a run that failed or was not
     * created to its end. */
    perftest_ret_t (*destroy)(perftest_run_t *run);
    /* Name of the lane, for the report; valid until destroy(). */
    const char     *(*lane)(const perftest_run_t *run);
} perftest_engine_t;

extern const perftest_engine_t perftest_st_engine;
extern const perftest_engine_t perftest_tag_engine;


typedef struct perftest_test {
    const char              *name;
    const char              *baseline; /* Name of the test to compare with */
    const perftest_engine_t *engine;
    perftest_pattern_t      pattern;
    ucp_st_mode_t           mode;
    perftest_rma_kind_t     rma;
    const char              *text;     /* For the list of tests */
} perftest_test_t;

#define PERFTEST_NUM_TESTS 11
extern const perftest_test_t perftest_tests[PERFTEST_NUM_TESTS];


/* One flow of messages. */
typedef struct perftest_channel {
    perftest_run_t    *run;
    unsigned          index;
    perftest_role_t   role;
    unsigned          slots;     /* Messages under way at once */
    unsigned          group;     /* Messages that one acknowledgement is for; 0:
                                    all of a part */
    perftest_buffer_t *send;     /* Of each slot; NULL if it does not send */
    perftest_buffer_t *recv;     /* Of each slot; NULL if it does not receive */
    size_t            next;      /* Iteration that comes next */
    size_t            part;      /* First iteration of this part */
    uint64_t          stamps[2]; /* Nanoseconds, begin and end of the timed
                                    part; 0 if this side does not measure */
    void              *engine;   /* What the engine keeps of it */
} perftest_channel_t;


struct perftest_run {
    perftest_side_t       *side;
    const perftest_test_t *test;
    size_t                size;
    size_t                warmup;       /* Iterations of this repetition */
    size_t                total;        /* The same, with the timed ones */
    uint64_t              seed;         /* Of its payload */
    int                   is_wrong;     /* Some was wrong */
    unsigned              num_channels;
    perftest_channel_t    *channels;
    void                  *engine;      /* What the engine keeps of it */
};


/* Runs it once: 'count' timed iterations behind the warm-up. With a check, data
 * is new before and compared after. '*elapsed_ns' is the longer time of the two
 * sides, and '*errors' grows by the wrong messages of both. */
perftest_ret_t perftest_run_repeat(perftest_run_t *run, size_t warmup,
                                   size_t count, uint64_t *elapsed_ns,
                                   uint64_t *errors);

/* The test of that name, of 'length' characters; -1 if there is none. */
int perftest_test_find(const char *name, size_t length);

/* True if it uses ucp_st. */
int perftest_test_is_st(const perftest_test_t *test);

/* Makes channels with buffers, and calls the engine. What was made is gone if
 * it fails. */
perftest_ret_t perftest_run_create(perftest_side_t *side,
                                   const perftest_test_t *test, size_t size,
                                   perftest_run_t **run_p);

/* Releases a run. */
perftest_ret_t perftest_run_destroy(perftest_run_t *run);

/* Channels that a run of a test has. */
unsigned perftest_run_num_channels(const perftest_side_t *side,
                                   const perftest_test_t *test);

/* Bytes that a run's buffers take at each side. */
size_t perftest_run_memory(const perftest_side_t *side,
                           const perftest_test_t *test, size_t size);

/* Iteration at which the part ends that iteration channel->next belongs to:
 * that of the warm-up's end, or the last. */
size_t perftest_channel_part_end(const perftest_channel_t *channel);

/* Nanoseconds of the clock of stamps. */
uint64_t perftest_now(void);

#endif
