/* SPDX-License-Identifier: BSD-3-Clause */
/* st_progress_run.c - the table of the programs, and how they are run. */
#include "st_any.h"
#include "st_progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word of 64 bits for each pair of ranks */
#define ST_PROGRESS_SHARED (ST_WORLD_MAX_RANKS * sizeof(uint64_t))


/** What a rank is given. */
typedef struct {
    const st_progress_case_t    *pcase;
    const st_progress_options_t *options;
} st_progress_arg_t;

const st_progress_case_t st_progress_cases[] = {
    {"p1", 2, 0, st_p1, NULL},
    {"p2", 2, 0, st_p2, NULL},
    {"p3_one_side", 2, 0, st_p3_one_side, NULL},
    {"p3_both_sides", 2, 0, st_p3_both_sides, NULL},
    {"p3_idle_queue", 2, 0, st_p3_idle_queue, NULL},
    {"p3_compute", 2, 0, st_p3_compute, NULL},
    {"p3_poll", 2, 0, st_p3_poll, NULL},
    {"p4_sends", 2, 0, st_p4_sends, NULL},
    {"p4_recvs", 2, 0, st_p4_recvs, NULL},
    {"p4_second", 2, 0, st_p4_second, NULL},
    {"p5", 4, 0, st_p5, NULL},
    {"p7_ready", 2, 0, st_p7_ready, NULL},
    {"p7_standard", 2, 0, st_p7_standard, NULL},
    {"p8", 2, 0, st_p8, NULL},
    {"p8_fallback", 2, 0, st_p8_fallback, NULL},
    {"p9_stop", 2,
     ST_PROGRESS_PROCESSES | ST_PROGRESS_PAIR | ST_PROGRESS_NODE, st_p9_stop,
     "50ms"},
    {"p9_many", 8, ST_PROGRESS_PROCESSES | ST_PROGRESS_NODE, st_p9_many,
     "50ms"},
    {"p10_halo", 4, 0, st_p10_halo, NULL},
    {"p10_idle", 2, ST_PROGRESS_NODE, st_p10_idle, NULL},
    {"p10_held", 2, ST_PROGRESS_PAIR | ST_PROGRESS_NODE | ST_PROGRESS_FUNCS,
     st_p10_held, NULL},
    {NULL, 0, 0, NULL, NULL}
};

const st_progress_options_t *st_progress_options(const st_rank_t *me)
{
    return ((const st_progress_arg_t*)me->arg)->options;
}

int st_progress_iterations(const st_rank_t *me, int iterations)
{
    int result = (int)(((long)iterations * st_progress_options(me)->percent) /
                       100);

    return (result < 2) ? 2 : result;
}

int st_progress_partner(const st_rank_t *me)
{
    int partner = me->index ^ 1;

    return (partner < me->count) ? partner : -1;
}

void st_progress_pair(st_rank_t *me, st_msg_t *msg, int from, uint64_t tag)
{
    st_msg_params_t params = {
        .is_send = ((me->index % 2) == from),
        .peer    = st_progress_partner(me),
        .tag     = tag,
        .length  = 1000 + (size_t)tag,
        .extra   = (size_t)tag % 3
    };

    st_msg_init(me, msg, &params);
}

void st_progress_matched(st_rank_t *me)
{
    if (me->params->as_threads) {
        st_rank_at(me, "the barrier after matching");
        st_rank_barrier(me);
    }
}

static void st_progress_main(st_rank_t *me)
{
    const st_progress_arg_t *arg = me->arg;

    arg->pcase->main(me);
    st_rank_settle(me, &me->node);
}

static void st_progress_print(const st_progress_case_t *pcase, int result,
                              const st_world_params_t *params,
                              const char *reason)
{
    printf("%s st_progress.%s (%d %s)%s%s\n",
           (result == ST_WORLD_SKIP) ? "SKIP" : (result == 0) ? "PASS" : "FAIL",
           pcase->name, params->count,
           params->as_threads ? "threads" : "processes",
           (result == 0) ? "" : ": ", (result == 0) ? "" : reason);
}

/* Why a program cannot be run so; NULL: it can */
static const char *st_progress_why_not(const st_progress_case_t *pcase,
                                       const st_world_params_t *params)
{
    if (params->as_threads && (pcase->flags & ST_PROGRESS_PROCESSES)) {
        return "a thread cannot be stopped alone";
    }
    if (params->as_threads && (pcase->flags & ST_PROGRESS_FUNCS) &&
        (st_any_type() != UCS_GSTREAM_TYPE_HOST)) {
        return "on GPUs functions of a process may run one after the other";
    }
    if ((params->count != 2) && (pcase->flags & ST_PROGRESS_PAIR)) {
        return "it is a program of 2 ranks";
    }
    if (!st_world_is_one_node() && (pcase->flags & ST_PROGRESS_NODE)) {
        return "its ranks must be on one node";
    }
    return NULL;
}

static int st_progress_run_case(const st_progress_case_t *pcase,
                                const st_progress_options_t *options)
{
    const char *env[]        = {"UCX_ST_PING_INTERVAL", pcase->ping, NULL};
    st_progress_arg_t arg    = {pcase, options};
    st_world_params_t params = {
        .count      = (options->ranks > 0) ? options->ranks : pcase->ranks,
        .as_threads = options->as_threads,
        .limit      = options->limit,
        .shared     = st_world_alloc(ST_PROGRESS_SHARED),
        .env        = (pcase->ping != NULL) ? env : NULL,
        .arg        = &arg,
        .main       = st_progress_main
    };
    char reason[ST_WORLD_REASON];
    const char *why;
    int result;

    why = st_progress_why_not(pcase, &params);
    if (why != NULL) {
        snprintf(reason, sizeof(reason), "%s", why);
        result = ST_WORLD_SKIP;
    } else {
        result = st_world_run(&params, reason);
    }
    st_world_free(params.shared, ST_PROGRESS_SHARED);
    st_progress_print(pcase, result, &params, reason);
    return result;
}

static int st_progress_is_wanted(const char *name, const char *wanted)
{
    size_t length = (wanted == NULL) ? 0 : strlen(wanted);

    return (wanted == NULL) ||
           (!strncmp(name, wanted, length) &&
            ((name[length] == '\0') || (name[length] == '_')));
}

int st_progress_run(const char *name, const st_progress_options_t *options)
{
    const st_progress_case_t *pcase;
    int passed  = 0;
    int failed  = 0;
    int skipped = 0;
    int result;

    for (pcase = st_progress_cases; pcase->name != NULL; ++pcase) {
        if (st_progress_is_wanted(pcase->name, name)) {
            result   = st_progress_run_case(pcase, options);
            skipped += (result == ST_WORLD_SKIP);
            passed  += (result == 0);
            failed  += (result != ST_WORLD_SKIP) && (result != 0);
        }
    }
    if ((passed + failed + skipped) == 0) {
        printf("there is no program \"%s\"\n", name);
        return EXIT_FAILURE;
    }
    return (failed > 0) ? EXIT_FAILURE : (passed > 0) ? 0 : ST_WORLD_SKIP;
}
