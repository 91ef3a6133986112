/* SPDX-License-Identifier: BSD-3-Clause */
/* st_gen_plan.c - random programs: ranks, queues, messages, matching. */
#include "st_gen.h"

#include <string.h>

#define ST_GEN_LATE_TAG  1000
#define ST_GEN_TOKEN_TAG 2000
#define ST_GEN_USES      90   /* Of the operations of a rank; a use has at most
                                 nine steps there */


static void st_gen_plan_ranks(st_prog_t *prog, uint64_t *random,
                              const st_gen_options_t *options)
{
    st_prog_rank_t *part;
    int i, j;

    prog->num_ranks = (uint8_t)((options->ranks > 0) ?
                                options->ranks :
                                2 + (int)st_gen_below(random, 5));
    for (i = 0; i < prog->num_ranks; ++i) {
        part              = &prog->ranks[i];
        part->num_streams = (uint8_t)(1 + st_gen_below(random,
                                                       ST_PROG_MAX_STREAMS));
        part->num_queues  = (uint8_t)(part->num_streams +
                                      st_gen_below(random, 3));
        for (j = 0; j < part->num_queues; ++j) {
            /* A stream without a queue would be of no use */
            part->stream[j] = (uint8_t)((j < part->num_streams) ?
                              j : (int)st_gen_below(random, part->num_streams));
        }
    }
}

static unsigned st_gen_size(uint64_t *random, unsigned max_size)
{
    static const unsigned limits[] = {0, 1, 64, 64, 64, 64, 1024, 1024, 1024,
                                      8192, 8192, UINT32_MAX};
    unsigned limit = limits[st_gen_below(random, 12)];
    unsigned size;

    limit = (limit > max_size) ? max_size : limit;
    size  = (limit == 0) ? 0 : 1 + st_gen_below(random, limit);
    if ((size > 2) && st_gen_chance(random, 25)) {
        /* Next to a power of 2 */
        size = (1u << (31 - __builtin_clz(size))) - 1 + st_gen_below(random, 3);
        size = (size > max_size) ? max_size : size;
    }
    return size;
}

/* Uses of a message that its ranks have room for */
static unsigned st_gen_room(const st_prog_t *prog, const st_prog_msg_t *msg)
{
    unsigned uses = ST_PROG_MAX_USES;
    unsigned sum, side;
    int i;

    for (side = 0; side < 2; ++side) {
        sum = 0;
        for (i = 0; i < prog->num_msgs; ++i) {
            sum += ((prog->msgs[i].rank[0] == msg->rank[side]) +
                    (prog->msgs[i].rank[1] == msg->rank[side])) *
                   prog->msgs[i].uses;
        }
        sum  = (sum < ST_GEN_USES) ? (ST_GEN_USES - sum) / 2 : 0;
        uses = (uses > sum) ? sum : uses;
    }
    return uses;
}

/* Uses of a message: few, or in so many of 100 cases up to many */
static unsigned st_gen_uses(const st_prog_t *prog, uint64_t *random,
                            const st_prog_msg_t *msg, unsigned max_uses,
                            unsigned percent)
{
    unsigned uses = 1 + st_gen_below(random, st_gen_chance(random, percent) ?
                                     max_uses : 4);
    unsigned room = st_gen_room(prog, msg);

    uses = (uses > max_uses) ? max_uses : uses;
    return (uses > room) ? room : uses;
}

/* Add a message, unless its ranks have no room for a use */
static int st_gen_add_msg(st_prog_t *prog, const st_prog_msg_t *msg)
{
    if ((msg->uses == 0) || (prog->num_msgs == ST_PROG_MAX_MSGS)) {
        return 0;
    }
    prog->msgs[prog->num_msgs++] = *msg;
    return 1;
}

/* The message that lets another one be sent; the same number of uses */
static void st_gen_plan_token(st_prog_t *prog, uint64_t *random,
                              uint8_t token[ST_PROG_MAX_MSGS])
{
    int index          = prog->num_msgs - 1;
    st_prog_msg_t *msg = &prog->msgs[index];
    st_prog_msg_t ask  = {
        .rank = {msg->rank[1], msg->rank[0]},
        .uses = msg->uses,
        .tag  = ST_GEN_TOKEN_TAG + (uint32_t)index
    };

    msg->is_late = 0;
    ask.is_once  = msg->is_once;
    ask.length   = st_gen_below(random, 9);
    ask.space    = ask.length;
    if ((st_gen_room(prog, &ask) >= ask.uses) && st_gen_add_msg(prog, &ask)) {
        token[index] = (uint8_t)prog->num_msgs;
    }
}

static void st_gen_plan_msgs(st_prog_t *prog, uint64_t *random,
                             const st_gen_options_t *options,
                             st_gen_plan_t *plan)
{
    unsigned count = 2 + st_gen_below(random, 5u * prog->num_ranks);
    unsigned tags  = 1 + st_gen_below(random, 3);
    st_prog_msg_t msg;
    unsigned i;

    for (i = 0; i < count; ++i) {
        memset(&msg, 0, sizeof(msg));
        msg.rank[0] = (uint8_t)st_gen_below(random, prog->num_ranks);
        msg.rank[1] = (uint8_t)st_gen_below(random, prog->num_ranks);
        msg.tag     = st_gen_below(random, tags);
        msg.scope   = st_gen_chance(random, 25);
        msg.length  = st_gen_size(random, options->max_size);
        msg.space   = msg.length + (st_gen_chance(random, 20) ?
                                    1 + st_gen_below(random, 100) : 0);
        msg.uses    = (uint16_t)st_gen_uses(prog, random, &msg,
                                            options->max_uses,
                                            plan->is_ahead ? 80 : 15);
        msg.is_late = st_gen_chance(random, 8) && !options->no_late;
        if (msg.is_late) {
            msg.tag = ST_GEN_LATE_TAG + i; /* Its order is open */
        } else if (options->once > 0) {
            msg.is_once = st_gen_chance(random, options->once);
        }
        if (st_gen_add_msg(prog, &msg) && st_gen_chance(random, 20)) {
            st_gen_plan_token(prog, random, plan->token);
        }
    }
}

static int st_gen_same_key(const st_prog_msg_t *a, const st_prog_msg_t *b)
{
    return (a->rank[0] == b->rank[0]) && (a->rank[1] == b->rank[1]) &&
           (a->tag == b->tag) && (a->scope == b->scope);
}

/* Of operations with one key, let the first be that of the first message, and
 * so on: in this way both sides agree */
static void st_gen_sort_keys(const st_prog_t *prog, st_prog_rank_t *part)
{
    uint8_t *ops = part->match;
    uint8_t op;
    int i, j;

    for (i = 0; i < part->num_match; ++i) {
        for (j = i + 1; j < part->num_match; ++j) {
            if ((ST_PROG_IS_RECV(ops[i]) == ST_PROG_IS_RECV(ops[j])) &&
                (ops[i] > ops[j]) &&
                st_gen_same_key(&prog->msgs[ST_PROG_MSG(ops[i])],
                                &prog->msgs[ST_PROG_MSG(ops[j])])) {
                op     = ops[i];
                ops[i] = ops[j];
                ops[j] = op;
            }
        }
    }
}

static void st_gen_plan_match(st_prog_t *prog, uint64_t *random, int rank)
{
    st_prog_rank_t *part = &prog->ranks[rank];
    unsigned i, j;
    uint8_t op;

    for (i = 0; i < 2u * prog->num_msgs; ++i) {
        if ((st_prog_rank_of(prog, (int)i) == rank) &&
            !prog->msgs[ST_PROG_MSG(i)].is_late) {
            part->match[part->num_match++] = (uint8_t)i;
        }
    }
    for (i = part->num_match; i > 1; --i) {
        j                  = st_gen_below(random, i);
        op                 = part->match[j];
        part->match[j]     = part->match[i - 1];
        part->match[i - 1] = op;
    }
    st_gen_sort_keys(prog, part);
    part->match_part = (uint8_t)(st_gen_chance(random, 50) ?
                                 0 : 1 + st_gen_below(random, 5));
}

void st_gen_plan(st_prog_t *prog, uint64_t *random,
                 const st_gen_options_t *options, st_gen_plan_t *plan)
{
    int i;

    plan->is_ahead = st_gen_chance(random, 30);
    st_gen_plan_ranks(prog, random, options);
    st_gen_plan_msgs(prog, random, options, plan);
    for (i = 0; i < prog->num_ranks; ++i) {
        st_gen_plan_match(prog, random, i);
    }
}
