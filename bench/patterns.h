/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patterns.h - communication of applications as a list of steps, which the
 * host drives, or a stream.
 *
 * A pattern makes a rank's data, and a plan: kernels, exchanges of messages
 * with other ranks, and sums over all ranks. An iteration is all steps of the
 * plan. A variant carries them out in its way (patterns_run.c).
 *
 * All of it is there until the program ends. Data is used by the main thread
 * or, in kernels, by the stream; the stream's order and its synchronisation
 * with the host protect it. Plans are the main thread's, but for what kernels
 * count.
 */
#ifndef PATTERNS_H_
#define PATTERNS_H_

#include "bench_box.h"
#include "bench_util.h"

#define PT_MAX_STEPS     256
#define PT_MAX_EXCHANGES 16
#define PT_MAX_SUMS      64
#define PT_SETS          2


/* A message each way between this rank and another, or this one. */
typedef struct pt_message {
    int    peer;
    int    tag;         /* Of what is sent, below PT_TAGS */
    int    back_tag;    /* Of what is received */
    size_t length;      /* Bytes, at most */
    void   *out;
    void   *in[PT_SETS];
} pt_message_t;

#define PT_TAGS 8


/* Messages that are started together, and waited for together. */
typedef struct pt_exchange {
    int          number;     /* In the plan */
    int          num;        /* Messages each way */
    pt_message_t *messages;
    int          varies;     /* The first word of a message is its length: the
                                host sends no more, streams all there may be */
    unsigned     num_sets;   /* Buffers of receives that are used in turn */
    unsigned     taken;      /* Uses whose messages a kernel has taken */
    unsigned     started;
    unsigned     total;      /* Uses of a run */
    MPI_Request  *requests[PT_SETS]; /* Receives, then sends */
    MPI_Request  all[PT_SETS];       /* MPIX exchange of these; of st-ready of
                                        receives */
    MPI_Request  sends[PT_SETS];     /* The same of its sends */
} pt_exchange_t;


/* A sum over all ranks. */
typedef struct pt_sum {
    void         *part;
    void         *sum;
    int          count;
    MPI_Datatype type;
    MPI_Request  request;
} pt_sum_t;


typedef enum {
    PT_KERNEL,
    PT_EXCHANGE,
    PT_SUM_START,
    PT_SUM_WAIT,
    PT_AGAIN      /* Go back to the second step, unless a word is 0 */
} pt_what_t;

typedef struct pt_step {
    pt_what_t      what;
    MPIX_Host_func kernel;
    void           *arg;   /* Of the kernel; the exchange, sum or word */
} pt_step_t;

typedef struct pt_plan {
    pt_step_t     steps[PT_MAX_STEPS];
    int           num_steps;
    pt_exchange_t exchanges[PT_MAX_EXCHANGES];
    int           num_exchanges;
    pt_sum_t      sums[PT_MAX_SUMS];
    int           num_sums;
    unsigned      variant;  /* BENCH_VARIANT_*; with the next ones in use */
    MPI_Comm      comm;
    void          *stream;
    MPIX_Queue    queue;
    uint64_t      messages; /* Sends of exchanges that queues started so far */
} pt_plan_t;


typedef struct pt_options {
    bench_options_t common;
    const char      *name;   /* Of the pattern */
    int             size;
    int             buckets;
    int             iters;
    int             rank;
    int             ranks;
    int             grid[3]; /* Of ranks, periodic */
} pt_options_t;


typedef struct pt_pattern {
    const char *name;
    unsigned   variants;
    int        size;     /* Of --size by default */
    /* Makes this rank's data, and adds to its plan. Returns 0, or -1 after
     * printing why it cannot be. */
    int        (*open)(pt_plan_t *plan, const pt_options_t *opts);
    /* Data as before the first iteration. */
    void       (*reset)(void);
    /* What is wrong after so many, the same number each time. Collective. */
    uint64_t   (*check)(int count);
} pt_pattern_t;

extern const pt_pattern_t pt_vcycle;
extern const pt_pattern_t pt_particles;
extern const pt_pattern_t pt_bfs;
extern const pt_pattern_t pt_buckets;


/* Add to a plan; they end the job if there are too many. */
void pt_add(pt_plan_t *plan, pt_what_t what, void *arg);
void pt_add_kernel(pt_plan_t *plan, MPIX_Host_func kernel, void *arg);
pt_exchange_t *pt_add_exchange(pt_plan_t *plan, int num);
pt_sum_t *pt_add_sum(pt_plan_t *plan, const pt_sum_t *sum);

/* Sets a message of an exchange to one with a peer, and allocates its buffers.
 */
void pt_set_message(pt_exchange_t *exchange, int i, int peer, size_t length);

/* The same of messages with both neighbours in a dimension of the grid: numbers
 * 'first' and the next one. */
void pt_set_sides(pt_exchange_t *exchange, int first,
                  const pt_options_t *opts, int dim, size_t length);

/* What has come by a message, for a kernel. */
static inline void *pt_in(const pt_exchange_t *exchange, int i)
{
    return exchange->messages[i].in[exchange->taken % exchange->num_sets];
}

/* Random, but the same each time. */
static inline uint64_t pt_hash(uint64_t a, uint64_t b)
{
    uint64_t word = (a + 1) * 0x9e3779b97f4a7c15ull + b;

    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
    return word ^ (word >> 31);
}


/* Makes and matches requests of the plan's variant. Collective. */
void pt_init(pt_plan_t *plan);

/* Brings it to the start of so many iterations; not timed. A barrier follows.
 */
void pt_prepare(pt_plan_t *plan, int count);

/* Runs them and blocks until they are done. Timed. */
void pt_run(pt_plan_t *plan, int count);

/* Releases what pt_init() made. */
void pt_cleanup(pt_plan_t *plan);

#endif
