/* SPDX-License-Identifier: BSD-3-Clause */
/* st_sim.c - runs a program on paper. */
#include "st_sim.h"

#include <stdlib.h>
#include <string.h>

/* Hosts and streams */
#define ST_SIM_AGENTS  (ST_PROG_MAX_RANKS * (1 + ST_PROG_MAX_STREAMS))
#define ST_SIM_NOWHERE (-1)


/** What is in an operation's buffer. */
typedef enum {
    ST_SIM_CLEAN,   /* Nothing, as at first */
    ST_SIM_PAYLOAD, /* Of the next or of the last use */
    ST_SIM_SPOILT
} st_sim_content_t;

/** A vector clock: of each agent, how many of its commands came before. */
typedef struct {
    uint16_t count[ST_SIM_AGENTS];
} st_clock_t;

typedef struct {
    uint8_t          is_given;
    uint8_t          is_matched; /* ... and the host knows */
    uint8_t          is_freed;
    st_sim_content_t content;
    unsigned         started;    /* By the host */
    unsigned         waited;
    unsigned         ran;        /* Starts that the stream has run */
    int              queue;      /* Of the last start */
    unsigned         seq;        /* Of its queue: last command that names it */
    int              stream;     /* Which accesses the buffer last */
    unsigned         place;      /* Of that command in the stream, from 1 */
    uint16_t         start_step[ST_PROG_MAX_USES];
} st_sim_op_t;

typedef struct {
    unsigned seq;   /* Commands enqueued */
    unsigned seen;  /* Of those, the host knows that they have run */
    unsigned place; /* Of the last one in the stream */
} st_sim_queue_t;

typedef struct {
    unsigned   enqueued;
    unsigned   ran;
    unsigned   seen; /* The host knows that so many have run */
    st_clock_t clock;
    uint16_t   steps[ST_PROG_MAX_STEPS];
} st_sim_stream_t;

typedef struct {
    unsigned        step;
    st_clock_t      clock;
    st_sim_queue_t  queues[ST_PROG_MAX_QUEUES];
    st_sim_stream_t streams[ST_PROG_MAX_STREAMS];
    /* Of a command: of the host, and once it has run of the stream */
    st_clock_t      clocks[ST_PROG_MAX_STEPS];
} st_sim_rank_t;

struct st_sim {
    const st_prog_t *prog;
    const char      *misuse; /* What it is, for a debugger; NULL: none */
    uint8_t         is_late[ST_PROG_MAX_MSGS]; /* Not on time, of ready sends */
    st_sim_op_t     ops[ST_PROG_MAX_OPS];
    st_sim_rank_t   ranks[ST_PROG_MAX_RANKS];
};


st_sim_t *st_sim_create(void)
{
    return calloc(1, sizeof(st_sim_t));
}

void st_sim_destroy(st_sim_t *sim)
{
    free(sim);
}

static unsigned st_sim_agent(int rank, int stream)
{
    return (unsigned)(rank * (1 + ST_PROG_MAX_STREAMS) + 1 + stream);
}

static void st_clock_join(st_clock_t *clock, const st_clock_t *other)
{
    unsigned i;

    for (i = 0; i < ST_SIM_AGENTS; ++i) {
        if (clock->count[i] < other->count[i]) {
            clock->count[i] = other->count[i];
        }
    }
}

static void st_sim_reset(st_sim_t *sim, const st_prog_t *prog)
{
    st_sim_rank_t *rank;
    int i;

    sim->prog   = prog;
    sim->misuse = NULL;
    memset(sim->is_late, 0, sizeof(sim->is_late));
    memset(sim->ops, 0, sizeof(sim->ops));
    for (i = 0; i < ST_PROG_MAX_OPS; ++i) {
        sim->ops[i].queue  = ST_SIM_NOWHERE;
        sim->ops[i].stream = ST_SIM_NOWHERE;
    }
    for (i = 0; i < prog->num_ranks; ++i) {
        /* All but the clocks of the steps */
        rank       = &sim->ranks[i];
        rank->step = 0;
        memset(&rank->clock, 0, sizeof(rank->clock));
        memset(rank->queues, 0, sizeof(rank->queues));
        memset(rank->streams, 0, sizeof(rank->streams));
    }
    for (i = 0; i < ST_PROG_MAX_OPS; ++i) {
        if ((ST_PROG_MSG(i) < prog->num_msgs) &&
            !prog->msgs[ST_PROG_MSG(i)].is_late) {
            sim->ops[i].is_given   = 1;
            sim->ops[i].is_matched = 1;
        }
    }
}

/* The use of a wait is over, as far as the streams have got: both sides have
 * started it, and what its data waits for beside */
static int st_sim_is_over(const st_sim_t *sim, int op, unsigned use)
{
    const st_prog_msg_t *msg = &sim->prog->msgs[ST_PROG_MSG(op)];
    int send                 = ST_PROG_IS_RECV(op) ? ST_PROG_PEER(op) : op;
    int other;

    if (sim->ops[op].ran < use) {
        return 0;
    }
    if (msg->is_ready && !ST_PROG_IS_RECV(op)) {
        return 1;
    }
    for (other = 0; other < 2 * sim->prog->num_msgs; ++other) {
        if (st_prog_waits_for(sim->prog, send, other) &&
            (sim->ops[ST_PROG_PEER(other)].ran < use)) {
            return 0;
        }
    }
    return sim->ops[ST_PROG_PEER(op)].ran >= use;
}

/* The clock of an operation's start when it ran */
static const st_clock_t *st_sim_start_clock(const st_sim_t *sim, int op,
                                            unsigned use)
{
    int rank = st_prog_rank_of(sim->prog, op);

    return &sim->ranks[rank].clocks[sim->ops[op].start_step[use - 1]];
}

/* The stream that an operation's use was started on */
static int st_sim_start_stream(const st_sim_t *sim, int op, unsigned use)
{
    const st_prog_rank_t *part = &sim->prog->ranks[st_prog_rank_of(sim->prog,
                                                                   op)];

    return part->stream[part->steps[sim->ops[op].start_step[use - 1]].queue];
}

/* A send's use is started at a time: its receive must have been before */
static void st_sim_note_time(st_sim_t *sim, int op, unsigned use,
                             const st_clock_t *clock)
{
    int recv = ST_PROG_PEER(op);
    unsigned agent;

    if (sim->ops[recv].ran >= use) {
        agent = st_sim_agent(st_prog_rank_of(sim->prog, recv),
                             st_sim_start_stream(sim, recv, use));
        if (clock->count[agent] >=
            st_sim_start_clock(sim, recv, use)->count[agent]) {
            return;
        }
    }
    sim->is_late[ST_PROG_MSG(op)] = 1;
}

static void st_sim_stream_start(st_sim_t *sim, const st_step_t *step,
                                const st_clock_t *clock)
{
    unsigned i;

    /* Those of one call are started in any order */
    for (i = 0; i < step->count; ++i) {
        if (!ST_PROG_IS_RECV(step->ops[i])) {
            st_sim_note_time(sim, step->ops[i], sim->ops[step->ops[i]].ran + 1,
                             clock);
        }
    }
    for (i = 0; i < step->count; ++i) {
        ++sim->ops[step->ops[i]].ran;
    }
}

/* Non-zero if the stream passes; the use of a wait is that of the last start
 * before it, which has run */
static int st_sim_stream_wait(st_sim_t *sim, const st_step_t *step,
                              st_clock_t *clock)
{
    unsigned i, use;

    for (i = 0; i < step->count; ++i) {
        if (!st_sim_is_over(sim, step->ops[i], sim->ops[step->ops[i]].ran)) {
            return 0;
        }
    }
    for (i = 0; i < step->count; ++i) {
        use = sim->ops[step->ops[i]].ran;
        if (ST_PROG_IS_RECV(step->ops[i])) {
            st_clock_join(clock,
                          st_sim_start_clock(sim, ST_PROG_PEER(step->ops[i]),
                                             use));
        }
    }
    return 1;
}

/* Run the stream's next command, if there is one and it does not block */
static int st_sim_stream_run(st_sim_t *sim, int index, int number)
{
    st_sim_rank_t *rank     = &sim->ranks[index];
    st_sim_stream_t *stream = &rank->streams[number];
    const st_step_t *step;
    st_clock_t clock;
    unsigned i;

    if (stream->ran == stream->enqueued) {
        return 0;
    }
    i     = stream->steps[stream->ran];
    step  = &sim->prog->ranks[index].steps[i];
    clock = stream->clock;
    st_clock_join(&clock, &rank->clocks[i]);
    if ((step->type == ST_STEP_WAIT) &&
        !st_sim_stream_wait(sim, step, &clock)) {
        return 0;
    }
    ++clock.count[st_sim_agent(index, number)];
    if (step->type == ST_STEP_START) {
        st_sim_stream_start(sim, step, &clock);
    }
    rank->clocks[i] = clock;
    stream->clock   = clock;
    ++stream->ran;
    return 1;
}

static void st_sim_fail(st_sim_t *sim, const char *misuse)
{
    if (sim->misuse == NULL) {
        sim->misuse = misuse;
    }
}

static void st_sim_require(st_sim_t *sim, int ok, const char *misuse)
{
    if (!ok) {
        st_sim_fail(sim, misuse);
    }
}

/* The stream may access the buffer: it did so last, or the host knows that what
 * did has run. ST_SIM_NOWHERE stands for the host. */
static void st_sim_access(st_sim_t *sim, const st_sim_rank_t *rank, int op,
                          int stream)
{
    const st_sim_op_t *o = &sim->ops[op];

    st_sim_require(sim, (o->stream == ST_SIM_NOWHERE) ||
                        (o->stream == stream) ||
                        (rank->streams[o->stream].seen >= o->place),
                   "a buffer is accessed while another stream may be at it");
}

/* What functions do with a buffer */
static void st_sim_function(st_sim_t *sim, st_sim_op_t *op, int type)
{
    int is_idle = (op->started == op->waited);

    switch (type) {
    case ST_STEP_FILL:
    case ST_STEP_HOST_FILL:
        st_sim_require(sim, is_idle, "a send's buffer is written");
        op->content = ST_SIM_PAYLOAD;
        break;
    case ST_STEP_SPOIL:
        st_sim_require(sim, is_idle, "a send's buffer is spoilt");
        op->content = ST_SIM_SPOILT;
        break;
    case ST_STEP_READ:
        st_sim_require(sim, op->content == ST_SIM_PAYLOAD, "nothing to read");
        break;
    case ST_STEP_CLEAN:
        st_sim_require(sim, is_idle && (op->content == ST_SIM_CLEAN),
                       "a receive's buffer is not clean");
        break;
    default: /* check */
        st_sim_require(sim, is_idle && (op->content == ST_SIM_PAYLOAD),
                       "nothing to check");
        op->content = ST_SIM_CLEAN;
        break;
    }
}

static void st_sim_start(st_sim_t *sim, const st_sim_rank_t *rank, int op,
                         int queue)
{
    const st_prog_msg_t *msg = &sim->prog->msgs[ST_PROG_MSG(op)];
    st_sim_op_t *o           = &sim->ops[op];

    st_sim_require(sim, o->is_matched && !o->is_freed,
                   "start of what is not matched");
    st_sim_require(sim, o->started == o->waited, "started twice");
    st_sim_require(sim, (o->queue == ST_SIM_NOWHERE) || (o->queue == queue) ||
                        (rank->queues[o->queue].seen >= o->seq),
                   "start on another queue, unseen wait");
    st_sim_require(sim, o->started < msg->uses, "too many uses");
    if (ST_PROG_IS_RECV(op)) {
        o->content = ST_SIM_PAYLOAD;
    } else {
        st_sim_require(sim, o->content == ST_SIM_PAYLOAD, "nothing to send");
    }
    if (sim->misuse == NULL) {
        o->start_step[o->started++] = (uint16_t)rank->step;
        o->queue                    = queue;
    }
}

static void st_sim_wait(st_sim_t *sim, int op, int queue)
{
    st_sim_op_t *o = &sim->ops[op];

    st_sim_require(sim, o->started > o->waited, "wait for what is not started");
    st_sim_require(sim, o->queue == queue, "wait on another queue");
    o->waited = o->started;
    if (!ST_PROG_IS_RECV(op)) {
        /* The old payload is still there, but another one is due */
        o->content = ST_SIM_SPOILT;
    }
}

/* A step that is a command goes to its stream */
static void st_sim_enqueue(st_sim_t *sim, st_sim_rank_t *rank,
                           const st_prog_rank_t *part, const st_step_t *step)
{
    int number              = part->stream[step->queue];
    st_sim_stream_t *stream = &rank->streams[number];
    st_sim_queue_t *queue   = &rank->queues[step->queue];
    unsigned i;
    int op;

    stream->steps[stream->enqueued++] = (uint16_t)rank->step;
    rank->clocks[rank->step]          = rank->clock;
    if ((step->type == ST_STEP_START) || (step->type == ST_STEP_WAIT)) {
        ++queue->seq;
        queue->place = stream->enqueued;
    }
    for (i = 0; i < step->count; ++i) {
        op = step->ops[i];
        st_sim_access(sim, rank, op, number);
        if (step->type == ST_STEP_START) {
            st_sim_start(sim, rank, op, step->queue);
        } else if (step->type == ST_STEP_WAIT) {
            st_sim_wait(sim, op, step->queue);
        } else {
            st_sim_function(sim, &sim->ops[op], step->type);
        }
        sim->ops[op].stream = number;
        sim->ops[op].place  = stream->enqueued;
        if ((step->type == ST_STEP_START) || (step->type == ST_STEP_WAIT)) {
            sim->ops[op].seq = queue->seq;
        }
    }
}

/* The host has seen the stream get so far */
static void st_sim_see(st_sim_rank_t *rank, st_sim_stream_t *stream,
                       unsigned place)
{
    if (place > stream->seen) {
        stream->seen = place;
    }
    if (place > 0) {
        st_clock_join(&rank->clock, &rank->clocks[stream->steps[place - 1]]);
    }
}

/* Non-zero if the host's wait for a queue, or for its stream, is over */
static int st_sim_host_wait(st_sim_rank_t *rank, const st_prog_rank_t *part,
                            const st_step_t *step)
{
    st_sim_stream_t *stream = &rank->streams[part->stream[step->queue]];
    st_sim_queue_t *queue   = &rank->queues[step->queue];
    unsigned place          = (step->type == ST_STEP_HOST_SYNC) ?
                              stream->enqueued : queue->place;

    if (stream->ran < place) {
        return 0;
    }
    st_sim_see(rank, stream, place);
    if (step->type != ST_STEP_HOST_SYNC) {
        queue->seen = queue->seq;
    }
    return 1;
}

static void st_sim_free(st_sim_t *sim, const st_sim_rank_t *rank, int op)
{
    st_sim_op_t *o = &sim->ops[op];

    st_sim_require(sim, (o->started == o->waited) && !o->is_freed &&
                        ((o->queue == ST_SIM_NOWHERE) ||
                         (rank->queues[o->queue].seen >= o->seq)),
                   "free of what is in use");
    st_sim_require(sim, o->started == sim->prog->msgs[ST_PROG_MSG(op)].uses,
                   "free before the last use");
    o->is_freed = 1;
}

/* Non-zero if the other sides of all have been given to match */
static int st_sim_host_matched(st_sim_t *sim, const st_step_t *step)
{
    unsigned i;

    for (i = 0; i < step->count; ++i) {
        st_sim_require(sim, sim->ops[step->ops[i]].is_given, "never matched");
        if (!sim->ops[ST_PROG_PEER(step->ops[i])].is_given) {
            return 0;
        }
    }
    for (i = 0; i < step->count; ++i) {
        sim->ops[step->ops[i]].is_matched = 1;
    }
    return 1;
}

/* A host's own work; non-zero if it is done with it */
static int st_sim_host_own(st_sim_t *sim, st_sim_rank_t *rank,
                           const st_prog_rank_t *part, const st_step_t *step)
{
    switch (step->type) {
    case ST_STEP_MATCH:
        st_sim_require(sim, !sim->ops[step->ops[0]].is_given, "matched twice");
        sim->ops[step->ops[0]].is_given = 1;
        return 1;
    case ST_STEP_MATCHED:
        return st_sim_host_matched(sim, step);
    case ST_STEP_HOST_FILL:
    case ST_STEP_HOST_CHECK:
        st_sim_access(sim, rank, step->ops[0], ST_SIM_NOWHERE);
        st_sim_function(sim, &sim->ops[step->ops[0]], step->type);
        sim->ops[step->ops[0]].stream = ST_SIM_NOWHERE;
        return 1;
    case ST_STEP_HOST_WAIT:
    case ST_STEP_HOST_QUERY:
    case ST_STEP_HOST_SYNC:
        return st_sim_host_wait(rank, part, step);
    case ST_STEP_FREE:
        st_sim_free(sim, rank, step->ops[0]);
        return 1;
    default:
        return 1;
    }
}

/* Do the host's next step, if there is one and it does not block */
static int st_sim_host_run(st_sim_t *sim, int index)
{
    const st_prog_rank_t *part = &sim->prog->ranks[index];
    st_sim_rank_t *rank        = &sim->ranks[index];
    const st_step_t *step      = &part->steps[rank->step];

    if (rank->step == part->num_steps) {
        return 0;
    }
    if (st_step_is_command(step)) {
        st_sim_enqueue(sim, rank, part, step);
    } else if (!st_sim_host_own(sim, rank, part, step)) {
        return 0;
    }
    if (sim->misuse == NULL) {
        ++rank->step;
    }
    return 1;
}

/* Let a rank go as far as it gets; the steps it has done */
static unsigned st_sim_rank_run(st_sim_t *sim, int index)
{
    unsigned done = 0;
    int i;

    while ((sim->misuse == NULL) && st_sim_host_run(sim, index)) {
        ++done;
    }
    for (i = 0; (i < ST_PROG_MAX_STREAMS) && (sim->misuse == NULL); ++i) {
        while (st_sim_stream_run(sim, index, i)) {
            ++done;
        }
    }
    return done;
}

static st_sim_result_t st_sim_result(const st_sim_t *sim)
{
    int rank, stream;

    if (sim->misuse != NULL) {
        return ST_SIM_MISUSE;
    }
    for (rank = 0; rank < sim->prog->num_ranks; ++rank) {
        if (sim->ranks[rank].step < sim->prog->ranks[rank].num_steps) {
            return ST_SIM_DEADLOCK;
        }
        for (stream = 0; stream < ST_PROG_MAX_STREAMS; ++stream) {
            if (st_sim_stream_step(sim, rank, stream) >= 0) {
                return ST_SIM_DEADLOCK;
            }
        }
    }
    return ST_SIM_LEGAL;
}

/* Each operation is given to match, used as often as its message, and its last
 * use is waited for */
static void st_sim_check_end(st_sim_t *sim)
{
    const st_sim_op_t *op;
    int i;

    for (i = 0; i < 2 * sim->prog->num_msgs; ++i) {
        op = &sim->ops[i];
        st_sim_require(sim, op->is_matched &&
                            (op->started == sim->prog->msgs[i / 2].uses) &&
                            (op->waited == op->started),
                       "a use is missing at the end");
    }
}

st_sim_result_t st_sim_run(st_sim_t *sim, const st_prog_t *prog)
{
    st_sim_result_t result;
    unsigned done;
    int i;

    st_sim_reset(sim, prog);
    do {
        done = 0;
        for (i = 0; i < prog->num_ranks; ++i) {
            done += st_sim_rank_run(sim, i);
        }
    } while ((done > 0) && (sim->misuse == NULL));
    result = st_sim_result(sim);
    if (result == ST_SIM_LEGAL) {
        st_sim_check_end(sim);
        result = st_sim_result(sim);
    }
    for (i = 0; (i < prog->num_msgs) && (result == ST_SIM_LEGAL); ++i) {
        if (prog->msgs[i].is_ready && sim->is_late[i]) {
            st_sim_fail(sim, "a ready send may be started before its receive");
            result = ST_SIM_MISUSE;
        }
    }
    return result;
}

int st_sim_is_on_time(const st_sim_t *sim, int msg)
{
    return !sim->is_late[msg];
}

unsigned st_sim_host_step(const st_sim_t *sim, int rank)
{
    return sim->ranks[rank].step;
}

int st_sim_stream_step(const st_sim_t *sim, int rank, int stream)
{
    const st_sim_stream_t *s = &sim->ranks[rank].streams[stream];

    return (s->ran == s->enqueued) ? -1 : s->steps[s->ran];
}
