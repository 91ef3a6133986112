/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_gen_draw.c - random programs: the steps, in one order of all that happens.
 */
#include "st_gen.h"

#include <string.h>


/** Where an operation is. */
typedef enum {
    ST_GEN_NEW,       /* Not given to match */
    ST_GEN_GIVEN,
    ST_GEN_IDLE,
    ST_GEN_STARTED,
    ST_GEN_UNCHECKED, /* A receive's data has not been looked at */
    ST_GEN_END
} st_gen_state_t;

typedef struct {
    st_gen_state_t state;
    unsigned       started;
    unsigned       waited;
    int            queue;    /* -1: not used yet */
    int            is_fixed; /* To its queue */
    int            is_clean; /* Nothing is in a receive's buffer */
    int            is_full;  /* The next payload is in a send's */
} st_gen_op_t;

/** State of the drawing. */
typedef struct {
    st_prog_t           *prog;
    uint64_t            *random;
    const st_gen_plan_t *plan;
    uint8_t             asks[ST_PROG_MAX_MSGS]; /* The message, plus 1, whose
                                                   token this one is */
    st_gen_op_t         ops[ST_PROG_MAX_OPS];
} st_gen_t;


static unsigned st_gen_pick(st_gen_t *gen, unsigned limit)
{
    return st_gen_below(gen->random, limit);
}

static int st_gen_may(st_gen_t *gen, unsigned percent)
{
    return st_gen_chance(gen->random, percent);
}

/* The same for what makes the host wait */
static int st_gen_host_may(st_gen_t *gen, unsigned percent)
{
    return !gen->plan->is_ahead && st_gen_may(gen, percent);
}

static st_prog_rank_t *st_gen_part(st_gen_t *gen, int op)
{
    return &gen->prog->ranks[st_prog_rank_of(gen->prog, op)];
}

static void st_gen_add(st_gen_t *gen, st_step_type_t type, int op)
{
    (void)st_prog_add_op(gen->prog, st_prog_rank_of(gen->prog, op), type,
                         (gen->ops[op].queue < 0) ? 0 : gen->ops[op].queue, op);
}

/* A step about a queue alone */
static void st_gen_add_queue(st_gen_t *gen, st_step_type_t type, int rank,
                             int queue)
{
    (void)st_prog_add_op(gen->prog, rank, type, queue, -1);
}

static int st_gen_random_queue(st_gen_t *gen, int op)
{
    return (int)st_gen_pick(gen, st_gen_part(gen, op)->num_queues);
}

/* Messages of a token and what it asks for stay on a queue each, of one stream
 * at either rank */
static void st_gen_fix_queues(st_gen_t *gen)
{
    int msg, ask, side, queue;

    for (msg = 0; msg < gen->prog->num_msgs; ++msg) {
        if (gen->plan->token[msg] == 0) {
            continue;
        }
        ask            = gen->plan->token[msg] - 1;
        gen->asks[ask] = (uint8_t)(msg + 1);
        for (side = 0; side < 2; ++side) {
            queue = st_gen_random_queue(gen, 2 * msg + side);
            gen->ops[2 * msg + side].queue    = queue;
            gen->ops[2 * msg + side].is_fixed = 1;
            gen->ops[ST_PROG_PEER(2 * ask + side)].queue    = queue;
            gen->ops[ST_PROG_PEER(2 * ask + side)].is_fixed = 1;
        }
    }
}

/* Not late, and of no token */
static int st_gen_may_join(const st_gen_t *gen, int op)
{
    int msg = ST_PROG_MSG(op);

    return !gen->prog->msgs[msg].is_late &&
           !gen->prog->msgs[msg].is_once && (gen->plan->token[msg] == 0) &&
           (gen->asks[msg] == 0) && !gen->ops[op].is_fixed;
}

/* Make exchanges of operations of a rank. They are used equally often. */
static void st_gen_join(st_gen_t *gen)
{
    unsigned num_ops = 2 * gen->prog->num_msgs;
    uint8_t next     = 0;
    unsigned room, op;
    int rank;

    for (op = 0; op < num_ops; ++op) {
        if (st_gen_may_join(gen, (int)op)) {
            gen->prog->msgs[ST_PROG_MSG(op)].uses = gen->prog->msgs[0].uses;
        }
    }
    for (rank = 0; rank < gen->prog->num_ranks; ++rank) {
        room = 0;
        for (op = 0; op < num_ops; ++op) {
            if ((st_prog_rank_of(gen->prog, (int)op) != rank) ||
                !st_gen_may_join(gen, (int)op) || st_gen_may(gen, 25)) {
                continue;
            }
            if (room == 0) {
                room = 1 + st_gen_pick(gen, ST_PROG_MAX_BATCH);
                ++next;
                gen->prog->is_coupled[next] = st_gen_may(gen, 40);
            }
            gen->prog->exchange[op] = next;
            --room;
        }
    }
}

static void st_gen_init(st_gen_t *gen)
{
    int op;

    for (op = 0; op < 2 * gen->prog->num_msgs; ++op) {
        gen->ops[op].state    = gen->prog->msgs[ST_PROG_MSG(op)].is_late ?
                                ST_GEN_NEW : ST_GEN_IDLE;
        gen->ops[op].queue    = -1;
        gen->ops[op].is_clean = 1;
    }
    st_gen_fix_queues(gen);
    if (st_gen_may(gen, 40)) {
        st_gen_join(gen);
    }
}

/* The host sees all that was done to an operation's buffer */
static void st_gen_see(st_gen_t *gen, int op)
{
    static const st_step_type_t waits[] = {
        ST_STEP_HOST_WAIT, ST_STEP_HOST_WAIT, ST_STEP_HOST_QUERY
    };

    int rank = st_prog_rank_of(gen->prog, op);

    st_gen_add_queue(gen, waits[st_gen_pick(gen, 3)], rank,
                     gen->ops[op].queue);
    st_gen_add_queue(gen, ST_STEP_HOST_SYNC, rank, gen->ops[op].queue);
}

/* A queue for the next use, mostly the one before */
static void st_gen_choose_queue(st_gen_t *gen, int op)
{
    st_gen_op_t *o = &gen->ops[op];

    if (o->is_fixed) {
        return;
    }
    if (o->queue < 0) {
        o->queue = st_gen_random_queue(gen, op);
    } else if (st_gen_host_may(gen, 12)) {
        st_gen_see(gen, op);
        o->queue = st_gen_random_queue(gen, op);
    }
}

static int st_gen_can_start(const st_gen_t *gen, int op)
{
    const st_gen_op_t *o = &gen->ops[op];
    int msg              = ST_PROG_MSG(op);
    int token            = gen->plan->token[msg];

    if ((o->state != ST_GEN_IDLE) ||
        (o->started == gen->prog->msgs[msg].uses)) {
        return 0;
    }
    if (ST_PROG_IS_RECV(op)) {
        return 1;
    }
    if (gen->asks[msg] != 0) {
        /* A token is sent when the receive that it is about was started */
        return gen->ops[ST_PROG_RECV(gen->asks[msg] - 1)].started > o->started;
    }
    /* ... and what it asks for when it has come */
    return (token == 0) ||
           (gen->ops[ST_PROG_RECV(token - 1)].waited > o->started);
}

/* What has to be in a buffer before its next use; or is to be looked at */
static void st_gen_prepare(st_gen_t *gen, int op)
{
    st_gen_op_t *o = &gen->ops[op];

    if (ST_PROG_IS_RECV(op)) {
        if (o->is_clean && st_gen_may(gen, 40)) {
            st_gen_add(gen, ST_STEP_CLEAN, op);
        }
        o->is_clean = 0;
    } else if (!o->is_full) {
        if (st_gen_host_may(gen, 10)) {
            if (o->started > 0) {
                st_gen_see(gen, op);
            }
            st_gen_add(gen, ST_STEP_HOST_FILL, op);
        } else {
            st_gen_add(gen, ST_STEP_FILL, op);
        }
    }
    o->is_full = 0;
}

/* The first one of its exchange, or of none */
static int st_gen_leads(const st_gen_t *gen, int op)
{
    int i;

    for (i = 0; i < op; ++i) {
        if ((gen->prog->exchange[op] != 0) &&
            (gen->prog->exchange[i] == gen->prog->exchange[op])) {
            return 0;
        }
    }
    return 1;
}

/* All of the exchange that `first` leads, on its queue; 0 if that cannot be of
 * one of them */
static unsigned st_gen_collect_exchange(st_gen_t *gen, int first, uint8_t *ops,
                                        int (*can)(const st_gen_t *gen, int op))
{
    unsigned count = 0;
    int op;

    for (op = first; op < 2 * gen->prog->num_msgs; ++op) {
        if (gen->prog->exchange[op] == gen->prog->exchange[first]) {
            if (!can(gen, op)) {
                return 0;
            }
            ops[count++] = (uint8_t)op;
        }
    }
    for (op = 0; op < (int)count; ++op) {
        gen->ops[ops[op]].queue = gen->ops[first].queue;
    }
    return count;
}

/* Make a step of operations that share a rank, a queue and a condition with the
 * first one. They are collected before the step is there, as their preparation
 * comes before it. */
static unsigned st_gen_collect(st_gen_t *gen, int first, uint8_t *ops,
                               int (*can)(const st_gen_t *gen, int op))
{
    unsigned limit = st_gen_may(gen, 40) ?
                     1 + st_gen_pick(gen, ST_PROG_MAX_BATCH) : 1;
    unsigned count = 0;
    int queue      = gen->ops[first].queue;
    int i, op;

    if (gen->prog->exchange[first] != 0) {
        return st_gen_collect_exchange(gen, first, ops, can);
    }
    ops[count++] = (uint8_t)first;
    for (i = 1; (i < 2 * gen->prog->num_msgs) && (count < limit); ++i) {
        op = (first + i) % (2 * gen->prog->num_msgs);
        if ((st_prog_rank_of(gen->prog, op) ==
             st_prog_rank_of(gen->prog, first)) &&
            ((gen->ops[op].queue == queue) || (gen->ops[op].queue < 0)) &&
            (gen->prog->exchange[op] == 0) && can(gen, op)) {
            gen->ops[op].queue = queue;
            ops[count++]       = (uint8_t)op;
        }
    }
    return count;
}

static void st_gen_add_all(st_gen_t *gen, st_step_type_t type,
                           const uint8_t *ops, unsigned count)
{
    st_step_t *step = st_prog_add(gen->prog,
                                  st_prog_rank_of(gen->prog, ops[0]), type,
                                  gen->ops[ops[0]].queue);

    if (step != NULL) {
        memcpy(step->ops, ops, count);
        step->count = (uint8_t)count;
    }
}

static void st_gen_start(st_gen_t *gen, int op)
{
    uint8_t ops[ST_PROG_MAX_BATCH];
    unsigned count, i;

    if ((gen->prog->exchange[op] != 0) &&
        (st_gen_collect_exchange(gen, op, ops, st_gen_can_start) == 0)) {
        return;
    }
    st_gen_choose_queue(gen, op);
    count = st_gen_collect(gen, op, ops, st_gen_can_start);
    for (i = 0; i < count; ++i) {
        st_gen_prepare(gen, ops[i]);
    }
    st_gen_add_all(gen, ST_STEP_START, ops, count);
    for (i = 0; i < count; ++i) {
        ++gen->ops[ops[i]].started;
        gen->ops[ops[i]].state = ST_GEN_STARTED;
    }
}

/* The use is over in this order of things */
static int st_gen_can_wait(const st_gen_t *gen, int op)
{
    unsigned use = gen->ops[op].started;
    int send     = ST_PROG_IS_RECV(op) ? ST_PROG_PEER(op) : op;
    int other;

    for (other = 0; other < 2 * gen->prog->num_msgs; ++other) {
        if (st_prog_waits_for(gen->prog, send, other) &&
            (gen->ops[ST_PROG_PEER(other)].started < use)) {
            return 0;
        }
    }
    return (gen->ops[op].state == ST_GEN_STARTED) &&
           (gen->ops[ST_PROG_PEER(op)].started >= use);
}

static void st_gen_wait(st_gen_t *gen, int op)
{
    uint8_t ops[ST_PROG_MAX_BATCH];
    unsigned count, i;

    if (!ST_PROG_IS_RECV(op) && st_gen_may(gen, 15)) {
        st_gen_add(gen, ST_STEP_READ, op);
    }
    count = st_gen_collect(gen, op, ops, st_gen_can_wait);
    if (count == 0) {
        return;
    }
    st_gen_add_all(gen, ST_STEP_WAIT, ops, count);
    for (i = 0; i < count; ++i) {
        ++gen->ops[ops[i]].waited;
        gen->ops[ops[i]].state = ST_PROG_IS_RECV(ops[i]) ? ST_GEN_UNCHECKED :
                                                           ST_GEN_IDLE;
        if (!ST_PROG_IS_RECV(ops[i]) && st_gen_may(gen, 25)) {
            st_gen_add(gen, ST_STEP_SPOIL, ops[i]);
        }
    }
}

static void st_gen_check(st_gen_t *gen, int op)
{
    st_gen_op_t *o = &gen->ops[op];
    int is_last    = (o->started == gen->prog->msgs[ST_PROG_MSG(op)].uses);

    o->state = ST_GEN_IDLE;
    if (!is_last && st_gen_may(gen, 15)) {
        return; /* The next use is started right behind */
    }
    if (st_gen_host_may(gen, 15)) {
        st_gen_see(gen, op);
        st_gen_add(gen, ST_STEP_HOST_CHECK, op);
    } else {
        st_gen_add(gen, ST_STEP_CHECK, op);
    }
    o->is_clean = 1;
}

/* After the last use */
static void st_gen_end(st_gen_t *gen, int op)
{
    if ((gen->prog->exchange[op] == 0) && st_gen_host_may(gen, 15)) {
        st_gen_add_queue(gen, ST_STEP_HOST_WAIT,
                         st_prog_rank_of(gen->prog, op), gen->ops[op].queue);
        st_gen_add(gen, ST_STEP_FREE, op);
    }
    gen->ops[op].state = ST_GEN_END;
}

/* Let something happen to an operation; it may be that nothing can */
static void st_gen_advance(st_gen_t *gen, int op)
{
    st_gen_op_t *o = &gen->ops[op];

    switch (o->state) {
    case ST_GEN_NEW:
        st_gen_add(gen, ST_STEP_MATCH, op);
        o->state = ST_GEN_GIVEN;
        break;
    case ST_GEN_GIVEN:
        if (gen->ops[ST_PROG_PEER(op)].state != ST_GEN_NEW) {
            st_gen_add(gen, ST_STEP_MATCHED, op);
            o->state = ST_GEN_IDLE;
        }
        break;
    case ST_GEN_IDLE:
        if (o->started == gen->prog->msgs[ST_PROG_MSG(op)].uses) {
            st_gen_end(gen, op);
        } else if (st_gen_can_start(gen, op) && st_gen_leads(gen, op)) {
            st_gen_start(gen, op);
        }
        break;
    case ST_GEN_STARTED:
        if (st_gen_can_wait(gen, op) && st_gen_leads(gen, op)) {
            st_gen_wait(gen, op);
        }
        break;
    case ST_GEN_UNCHECKED:
        st_gen_check(gen, op);
        break;
    default:
        break;
    }
}

/* A step that is of no operation */
static void st_gen_noise(st_gen_t *gen)
{
    static const st_step_type_t types[] = {
        ST_STEP_WORK, ST_STEP_WORK, ST_STEP_HOST_WORK, ST_STEP_HOST_WAIT,
        ST_STEP_HOST_QUERY, ST_STEP_HOST_SYNC, ST_STEP_PROGRESS
    };
    int rank = (int)st_gen_pick(gen, gen->prog->num_ranks);

    st_gen_add_queue(gen, types[st_gen_pick(gen, gen->plan->is_ahead ? 3 : 7)],
                     rank,
                     (int)st_gen_pick(gen, gen->prog->ranks[rank].num_queues));
}

void st_gen_steps(st_prog_t *prog, uint64_t *random, const st_gen_plan_t *plan)
{
    st_gen_t gen   = {.prog = prog, .random = random, .plan = plan};
    unsigned noise = st_gen_pick(&gen, 8);
    unsigned count, i;
    uint8_t alive[ST_PROG_MAX_OPS];

    st_gen_init(&gen);
    do {
        count = 0;
        for (i = 0; i < 2u * prog->num_msgs; ++i) {
            if (gen.ops[i].state != ST_GEN_END) {
                alive[count++] = (uint8_t)i;
            }
        }
        if (count > 0) {
            st_gen_advance(&gen, alive[st_gen_pick(&gen, count)]);
        }
        if (st_gen_may(&gen, noise)) {
            st_gen_noise(&gen);
        }
    } while (count > 0);
}
