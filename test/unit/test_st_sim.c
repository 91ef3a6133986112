/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_sim.c - what judges random programs: known programs that are legal,
 * their illegal twins, and the generator.
 *
 * Programs are written as text, one for each rank. "s1" and "r1" start message
 * 1, "w1" waits for it ("v1" for the receive of one to oneself), on queue 0;
 * "s1@2" on queue 2. "f1" fills (as "s1" does before the start), "c1" checks,
 * "n1" finds it clean, "d1" reads, "p1" spoils; "F1" and "C1" are the host's
 * fill and check. "m1" gives to match and "M1" waits for that; "h@2" and "y@2"
 * are the host's waits for a queue and for its stream; "x1" frees. Of "ab ca",
 * message 0 goes from the first rank to the second, 1 from the third to the
 * first.
 */
#include "st_cunit.h"
#include "../integration/st_gen.h"

#include <stdlib.h>
#include <string.h>

static st_prog_t prog;
static st_sim_t *sim;

/* Three queues on two streams each: 0 and 2 on the first one */
static void setup(const char *messages, int num_ranks)
{
    st_prog_msg_t *msg;
    int i;

    memset(&prog, 0, sizeof(prog));
    prog.num_ranks = (uint8_t)num_ranks;
    for (i = 0; i < num_ranks; ++i) {
        prog.ranks[i].num_streams = 2;
        prog.ranks[i].num_queues  = 3;
        prog.ranks[i].stream[1]   = 1;
    }
    for (; *messages != '\0'; messages += 1 + (messages[1] != '\0') +
                                           (messages[2] == ' ')) {
        msg          = &prog.msgs[prog.num_msgs++];
        msg->rank[0] = (uint8_t)(messages[0] - 'a');
        msg->rank[1] = (uint8_t)(messages[1] - 'a');
        msg->length  = 8;
        msg->space   = 8;
    }
}

/* The operation of a message that is the rank's; the send of a message to
 * oneself, unless it is asked for by 'r' */
static int op_of(int rank, int msg, char what)
{
    int is_recv = (prog.msgs[msg].rank[0] != rank);

    if (prog.msgs[msg].rank[0] == prog.msgs[msg].rank[1]) {
        is_recv = (what == 'r');
    }
    return 2 * msg + is_recv;
}

static st_step_type_t type_of(char what)
{
    static const struct {
        char           what;
        st_step_type_t type;
    } types[] = {
        {'s', ST_STEP_START}, {'r', ST_STEP_START}, {'w', ST_STEP_WAIT},
        {'v', ST_STEP_WAIT}, {'f', ST_STEP_FILL}, {'c', ST_STEP_CHECK},
        {'m', ST_STEP_MATCH}, {'M', ST_STEP_MATCHED}, {'h', ST_STEP_HOST_WAIT},
        {'y', ST_STEP_HOST_SYNC}, {'F', ST_STEP_HOST_FILL},
        {'C', ST_STEP_HOST_CHECK}, {'x', ST_STEP_FREE}, {'n', ST_STEP_CLEAN},
        {'d', ST_STEP_READ}, {'p', ST_STEP_SPOIL}
    };
    size_t i;

    for (i = 0; types[i].what != what; ++i) {
        /* it is there */
    }
    return types[i].type;
}

/* One step, "w12@1" or "h@1"; a start of a send fills before */
static void add_step(int rank, const char *word)
{
    const char *at = strchr(word, '@');
    int queue      = (at == NULL) ? 0 : atoi(at + 1);
    int op         = -1;
    char what      = word[0];

    if ((word[1] != '@') && (word[1] != '\0')) {
        op = op_of(rank, atoi(word + 1), (what == 'v') ? 'r' : what);
    }
    if (what == 's') {
        CU_ASSERT_TRUE(st_prog_add_op(&prog, rank, ST_STEP_FILL, queue, op));
        ++prog.msgs[ST_PROG_MSG(op)].uses;
    }
    CU_ASSERT_TRUE(st_prog_add_op(&prog, rank, type_of(what), queue, op));
}

static void add_steps(int rank, const char *text)
{
    char copy[512], *word, *rest;

    strcpy(copy, text);
    for (word = strtok_r(copy, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        add_step(rank, word);
    }
}

/* The verdict on a program of two ranks, or three */
static st_sim_result_t judge3(const char *messages, const char *a,
                              const char *b, const char *c)
{
    setup(messages, (c == NULL) ? 2 : 3);
    add_steps(0, a);
    add_steps(1, b);
    if (c != NULL) {
        add_steps(2, c);
    }
    return st_sim_run(sim, &prog);
}

static st_sim_result_t judge(const char *messages, const char *a, const char *b)
{
    return judge3(messages, a, b, NULL);
}

#define LEGAL(_judge)    CU_ASSERT_EQUAL(_judge, ST_SIM_LEGAL)
#define DEADLOCK(_judge) CU_ASSERT_EQUAL(_judge, ST_SIM_DEADLOCK)
#define MISUSE(_judge)   CU_ASSERT_EQUAL(_judge, ST_SIM_MISUSE)

/* P1 and P2, and what is wrong with them if one step is in another place */
ST_CASE(p1_p2)
{
    LEGAL(judge("ab ab", "s0 w0 s1 w1", "r0 r1 w1 c1 w0 c0"));
    DEADLOCK(judge("ab ab", "s0 w0 s1 w1", "r1 w1 r0 w0"));
    CU_ASSERT_EQUAL(st_sim_stream_step(sim, 0, 0), 2);
    CU_ASSERT_EQUAL(st_sim_stream_step(sim, 0, 1), -1);
    CU_ASSERT_EQUAL(st_sim_stream_step(sim, 1, 0), 1);
    CU_ASSERT_EQUAL(st_sim_host_step(sim, 0), 6);
    LEGAL(judge("ab ab", "s0 w0 s1 w1", "r1@1 w1@1 r0 w0"));
    LEGAL(judge("ab ab", "s0 s1 w0 w1", "r1 w1 r0 w0"));

    LEGAL(judge("ab ba", "s0 r1 w1 w0", "r0 w0 s1 w1"));
    DEADLOCK(judge("ab ba", "r1 w1 s0 w0", "r0 w0 s1 w1"));
    LEGAL(judge("ab ba", "s0 w0 r1 w1", "r0 w0 s1 w1"));
    DEADLOCK(judge("ab ba", "s0 w0 r1 w1", "s1 w1 r0 w0"));
    LEGAL(judge("ab ba", "s0 w0 r1 w1", "s1 r0 w0 w1"));
}

/* A third rank, and rings */
ST_CASE(rings)
{
    LEGAL(judge3("ab bc ca", "s0 r2 w0 w2", "s1 r0 w1 w0", "s2 r1 w2 w1"));
    DEADLOCK(judge3("ab bc ca", "s0 w0 r2 w2", "s1 w1 r0 w0", "s2 w2 r1 w1"));
    LEGAL(judge3("ab bc ca", "s0 w0 r2 w2", "r0 s1 w1 w0", "s2 r1 w1 w2"));
    DEADLOCK(judge3("ab bc ca", "r2 w2 s0 w0", "r0 w0 s1 w1", "r1 w1 s2 w2"));
    LEGAL(judge("aa", "s0 r0 w0 v0", ""));
    DEADLOCK(judge("aa", "s0 w0 r0 v0", ""));
    LEGAL(judge("aa", "s0 w0 r0@1 v0@1", ""));
}

/* The first rank's sends are of a coupled exchange: they wait for both
 * receives, of which one may be started when the other's rank has sent on */
static st_sim_result_t judge_coupled(int is_coupled, const char *c)
{
    setup("ab ac bc", 3);
    prog.exchange[0]   = prog.exchange[2] = 1;
    prog.is_coupled[1] = (uint8_t)is_coupled;
    add_steps(0, "s0 s1 w0 w1");
    add_steps(1, "r0 w0 s2 w2");
    add_steps(2, c);
    return st_sim_run(sim, &prog);
}

ST_CASE(coupled)
{
    LEGAL(judge_coupled(0, "r2 w2 r1 w1"));
    DEADLOCK(judge_coupled(1, "r2 w2 r1 w1"));
    LEGAL(judge_coupled(1, "r2 r1 w2 w1"));
    LEGAL(judge_coupled(1, "r1 w1 r2 w2"));
}

/* Hosts that wait hold up what they enqueue later */
ST_CASE(hosts)
{
    LEGAL(judge("ab ba", "s0 h r1 w1 w0", "s1 r0 w0 w1"));
    LEGAL(judge("ab ba", "s0 w0 h r1 w1", "r0 s1 w1 w0"));
    DEADLOCK(judge("ab ba", "s0 w0 h r1@1 w1@1", "s1 w1 h r0@1 w0@1"));
    LEGAL(judge("ab ba", "s0 w0 h@1 r1@1 w1@1", "s1 w1 h@1 r0@1 w0@1"));
    DEADLOCK(judge("ab ba", "s0 w0 y r1@1 w1@1", "s1 w1 y r0@1 w0@1"));
    /* The host wait is for the queue, not for the stream: the wait on the
     * stream's other queue is behind */
    LEGAL(judge("ab ba", "s0 r1@2 w1@2 h w0", "r0 w0 s1 w1"));
    DEADLOCK(judge("ab ba", "r1@2 w1@2 s0 h w0", "r0 w0 s1 w1"));
    DEADLOCK(judge("ab ba", "r1@2 w1@2 h@2 s0 w0", "r0 w0 s1 w1"));
    LEGAL(judge("ab ba", "r1@1 w1@1 s0 h w0", "r0 w0 s1 w1"));
}

/* Matched by steps: both hosts have to get there */
ST_CASE(late_match)
{
    setup("ab", 2);
    prog.msgs[0].is_late = 1;
    add_steps(0, "m0 M0 s0 w0");
    add_steps(1, "m0 M0 r0 w0");
    LEGAL(st_sim_run(sim, &prog));
    setup("ab", 2);
    prog.msgs[0].is_late = 1;
    add_steps(0, "m0 s0 w0");
    add_steps(1, "m0 M0 r0 w0");
    MISUSE(st_sim_run(sim, &prog)); /* not known to be matched */
    setup("ab ba", 2);
    prog.msgs[0].is_late = 1;
    add_steps(0, "m0 M0 s0 w0 r1 w1");
    add_steps(1, "s1 w1 h m0 M0 r0 w0");
    DEADLOCK(st_sim_run(sim, &prog));
}

/* What the library refuses, and what the program must not do to its buffers */
ST_CASE(misuse)
{
    LEGAL(judge("ab", "s0 w0 s0 w0", "r0 w0 r0 w0"));
    MISUSE(judge("ab", "s0 s0 w0", "r0 w0 r0 w0"));
    MISUSE(judge("ab", "s0 w0 w0", "r0 w0"));
    MISUSE(judge("ab", "s0 w0@1", "r0 w0"));
    MISUSE(judge("ab", "s0 w0", "r0"));       /* no wait */
    DEADLOCK(judge("ab", "s0 w0 s0 w0", "r0 w0")); /* a use less */
    /* On another queue only after the host has seen the wait pass */
    MISUSE(judge("ab", "s0 w0 s0@2 w0@2", "r0 w0 r0 w0"));
    LEGAL(judge("ab", "s0 w0 h s0@2 w0@2", "r0 w0 r0 w0"));
    LEGAL(judge("ab", "s0 w0 h s0@1 w0@1", "r0 w0 r0 w0"));
    MISUSE(judge("ab", "s0 w0 y s0@1 w0@1", "r0 w0 r0 w0"));
    MISUSE(judge("ab", "s0 w0 h@1 s0@1 w0@1", "r0 w0 r0 w0"));
    /* The function is on the first stream still */
    MISUSE(judge("ab", "s0 w0 s0 w0", "r0 w0 c0 h r0@1 w0@1"));
    LEGAL(judge("ab", "s0 w0 s0 w0", "r0 w0 c0 h y r0@1 w0@1"));
    MISUSE(judge("ab", "s0 f0 w0", "r0 w0"));
    MISUSE(judge("ab", "s0 p0 w0", "r0 w0"));
    LEGAL(judge("ab", "s0 d0 w0 p0", "n0 r0 w0 c0"));
    MISUSE(judge("ab", "s0 w0", "r0 n0 w0 c0"));
    MISUSE(judge("ab", "s0 w0", "r0 c0 w0"));
    MISUSE(judge("ab", "s0 w0 s0 w0", "r0 w0 n0 r0 w0"));
    LEGAL(judge("ab", "s0 w0", "r0 w0 h C0"));
    MISUSE(judge("ab", "s0 w0", "r0 w0 C0"));
    MISUSE(judge("ab", "s0 w0 F0", "r0 w0"));
    LEGAL(judge("ab", "s0 w0 h x0", "r0 w0 h x0"));
    MISUSE(judge("ab", "s0 w0 x0", "r0 w0"));
    MISUSE(judge("ab", "s0 w0 h x0 s0 w0", "r0 w0 r0 w0"));
}

/* Whether a message's sends are on time for a ready send */
static int on_time(st_sim_result_t result, int msg)
{
    CU_ASSERT_EQUAL(result, ST_SIM_LEGAL);
    return st_sim_is_on_time(sim, msg);
}

ST_CASE(ready)
{
    /* P7: a message the other way, after the receive was started */
    CU_ASSERT_TRUE(on_time(judge("ab ba", "r1 w1 s0 w0", "r0 s1 w1 w0"), 0));
    /* ... or before, or another stream's, or the wait is behind */
    CU_ASSERT_FALSE(on_time(judge("ab ba", "r1 w1 s0 w0", "s1 r0 w1 w0"), 0));
    CU_ASSERT_FALSE(on_time(judge("ab ba", "r1 w1 s0 w0",
                                  "r0 s1@1 w1@1 w0"), 0));
    CU_ASSERT_FALSE(on_time(judge("ab ba", "r1 s0 w1 w0", "r0 s1 w1 w0"), 0));
    CU_ASSERT_FALSE(on_time(judge("ab ba", "r1@1 w1@1 s0 w0",
                                  "r0 s1 w1 w0"), 0));
    /* The hosts carry it from stream to stream */
    CU_ASSERT_TRUE(on_time(judge("ab ba", "r1@1 w1@1 h@1 s0 w0",
                                 "r0 h s1@1 w1@1 w0"), 0));
    /* The end of a send does not tell that its receive was started */
    CU_ASSERT_FALSE(on_time(judge("ab ab", "s1 w1 s0 w0", "r0 r1 w1 w0"), 0));
    /* To oneself: in the order of the stream, but not in one call */
    CU_ASSERT_TRUE(on_time(judge("aa", "r0 s0 w0 v0", ""), 0));
    CU_ASSERT_FALSE(on_time(judge("aa", "s0 r0 w0 v0", ""), 0));
    CU_ASSERT_FALSE(on_time(judge("aa", "r0@1 s0 w0 v0@1", ""), 0));
    /* Every use must be */
    CU_ASSERT_FALSE(on_time(judge("ab ba", "r1 w1 s0 w0 s0 w0",
                                  "r0 s1 w1 w0 r0 w0"), 0));
    /* By way of a third rank */
    CU_ASSERT_TRUE(on_time(judge3("ab bc ca", "r2 w2 s0 w0", "r0 s1 w1 w0",
                                  "r1 w1 s2 w2"), 0));
    /* A ready send that may be early is not legal */
    (void)judge("ab", "s0 w0", "r0 w0");
    prog.msgs[0].is_ready = 1;
    MISUSE(st_sim_run(sim, &prog));
}

/* The n-th send of a key at one rank is the n-th receive of it at the other */
static int match_agrees(const st_prog_t *p, int op)
{
    const st_prog_msg_t *msg = &p->msgs[ST_PROG_MSG(op)];
    const st_prog_msg_t *other;
    const st_prog_rank_t *part;
    unsigned before[2] = {0, 0};
    unsigned side, i;

    for (side = 0; side < 2; ++side) {
        part = &p->ranks[msg->rank[side]];
        for (i = 0; part->match[i] != 2 * ST_PROG_MSG(op) + side; ++i) {
            other         = &p->msgs[ST_PROG_MSG(part->match[i])];
            before[side] += (ST_PROG_IS_RECV(part->match[i]) == (int)side) &&
                            (other->rank[0] == msg->rank[0]) &&
                            (other->rank[1] == msg->rank[1]) &&
                            (other->tag == msg->tag) &&
                            (other->scope == msg->scope);
        }
    }
    return before[0] == before[1];
}

/* Random programs are legal, both sides pair the same operations, and the same
 * seed gives the same program */
ST_CASE(generator)
{
    st_gen_options_t options = ST_GEN_DEFAULTS;
    st_gen_counts_t counts   = {0};
    st_prog_t *again         = malloc(sizeof(*again));
    unsigned ready = 0, shared_keys = 0, coupled = 0;
    int seed, op;

    CU_ASSERT_PTR_NOT_NULL_FATAL(again);
    for (seed = 0; seed < 60; ++seed) {
        st_gen_program(&prog, sim, (uint64_t)seed, &options, &counts);
        CU_ASSERT_EQUAL(st_sim_run(sim, &prog), ST_SIM_LEGAL);
        for (op = 0; op < 2 * prog.num_msgs; ++op) {
            ready   += prog.msgs[ST_PROG_MSG(op)].is_ready;
            coupled += (prog.exchange[op] != 0) &&
                       prog.is_coupled[prog.exchange[op]];
            if (!prog.msgs[ST_PROG_MSG(op)].is_late) {
                CU_ASSERT_TRUE(match_agrees(&prog, op));
            }
            shared_keys += (op >= 2) && (prog.msgs[op / 2].tag < 2) &&
                           (prog.msgs[op / 2].tag == prog.msgs[0].tag) &&
                           (prog.msgs[op / 2].rank[0] == prog.msgs[0].rank[0]);
        }
        st_gen_program(again, sim, (uint64_t)seed, &options, &counts);
        CU_ASSERT_EQUAL(memcmp(again, &prog, sizeof(prog)), 0);
    }
    /* Hardly one is drawn in vain, and the judge has something to say */
    CU_ASSERT(counts.drawn < 125);
    CU_ASSERT(counts.deadlocks > 50);
    CU_ASSERT(counts.moves > 500);
    CU_ASSERT(ready > 20);
    CU_ASSERT(shared_keys > 20);
    CU_ASSERT(coupled > 20);
    free(again);
}

/* Drawn in one order of things they are legal before any move; with the waits
 * of each rank put first, hardly one is */
ST_CASE(spoilt)
{
    st_gen_options_t options = ST_GEN_DEFAULTS;
    st_gen_counts_t counts   = {0};
    unsigned illegal         = 0;
    st_prog_rank_t *part;
    st_step_t step;
    unsigned i, seed;

    options.moves = 0;
    for (seed = 0; seed < 50; ++seed) {
        st_gen_program(&prog, sim, seed, &options, &counts);
        part = &prog.ranks[0];
        /* The last step that starts something comes after all others */
        for (i = part->num_steps; (i > 0) &&
                                  (part->steps[i - 1].type != ST_STEP_START);
             --i) {
            /* search */
        }
        if (i == 0) {
            continue;
        }
        step = part->steps[i - 1];
        memmove(&part->steps[i - 1], &part->steps[i],
                (part->num_steps - i) * sizeof(step));
        part->steps[part->num_steps - 1] = step;
        illegal += (st_sim_run(sim, &prog) != ST_SIM_LEGAL);
    }
    CU_ASSERT(illegal > 40);
}

int main(int argc, char **argv)
{
    int status = EXIT_FAILURE;

    sim = st_sim_create();
    if (sim != NULL) {
        status = st_cunit_main("st_sim", argc, argv);
        st_sim_destroy(sim);
    }
    return status;
}
