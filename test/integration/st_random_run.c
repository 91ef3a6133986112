/* SPDX-License-Identifier: BSD-3-Clause */
/* st_random_run.c - runs random programs on groups of ranks. */
#include "st_random.h"
#include "st_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ST_RANDOM_GROUP 250 /* Programs that the same processes run */


/** What the ranks of a group and the watching process share. Rank 0 writes it
 *  between two barriers, but for what is said to be atomic. */
typedef struct {
    st_prog_t          prog;
    st_exec_shared_t   exec;
    int                is_over; /* No more programs */
    st_random_counts_t counts;  /* `exec` is atomic */
} st_random_shared_t;

/** What a rank is given. */
typedef struct {
    const st_random_options_t *options;
    uint64_t                  seed;
    unsigned                  count;
    double                    until; /* st_world_now(); 0: for ever */
} st_random_group_t;


static void st_random_next(st_random_shared_t *shared, st_sim_t *sim,
                           const st_random_group_t *group, unsigned number)
{
    const st_random_options_t *options = group->options;
    int i;

    shared->is_over = (number == group->count) ||
                      ((group->until > 0) && (st_world_now() > group->until));
    if (shared->is_over) {
        return;
    }
    shared->exec.no_lane = 0;
    st_gen_program(&shared->prog, sim, group->seed + number, &options->gen,
                   &shared->counts.gen);
    ++shared->counts.programs;
    shared->counts.messages += shared->prog.num_msgs;
    for (i = 0; i < shared->prog.num_msgs; ++i) {
        shared->counts.ready += shared->prog.msgs[i].is_ready;
    }
    if (options->verbose) {
        st_prog_print(&shared->prog);
        (void)fflush(stdout);
    }
}

static void st_random_one(st_rank_t *me, st_random_shared_t *shared, int some,
                          st_exec_counts_t *counts)
{
    int was_run = 1;

    if (me->index < shared->prog.num_ranks) {
        was_run = st_exec_run(me, &shared->prog, some ? &shared->exec : NULL,
                              counts);
    } else if (some) {
        st_rank_barrier(me); /* Whether the others go on */
    }
    if ((me->index == 0) && !was_run) {
        ++shared->counts.left_out;
    }
    st_rank_settle(me, &me->node);
}

static void st_random_add(uint64_t *sum, uint64_t value)
{
    __atomic_add_fetch(sum, value, __ATOMIC_RELAXED);
}

static void st_random_main(st_rank_t *me)
{
    const st_random_group_t *group = me->arg;
    st_random_shared_t *shared     = me->shared;
    st_exec_counts_t counts        = {0};
    st_sim_t *sim                  = NULL;
    /* Where ranks share no memory each makes the same program */
    int makes                      = (me->index == 0) ||
                                     (st_world_runs != NULL);
    unsigned number;

    if (makes) {
        sim = st_sim_create();
        ST_CHECK(me, sim != NULL);
    }
    for (number = 0; ; ++number) {
        if (makes) {
            st_random_next(shared, sim, group, number);
        }
        st_rank_at(me, "the barrier before program %lu", group->seed + number);
        st_rank_barrier(me);
        if (shared->is_over) {
            break;
        }
        st_random_one(me, shared, group->options->some, &counts);
    }
    st_random_add(&shared->counts.exec.uses, counts.uses);
    st_random_add(&shared->counts.exec.bytes, counts.bytes);
    st_random_add(&shared->counts.exec.host, counts.host);
    st_sim_destroy(sim);
}

/* Settings that make a difference */
static void st_random_print_env(const char *lanes)
{
    static const char *const prefixes[] = {
        "UCX_TLS=", "UCX_NET_DEVICES=", "UCX_CXI_TRIG_", "UCX_ST_", "FI_CXIEMU_"
    };
    char **entry;
    unsigned i;

    for (entry = environ; *entry != NULL; ++entry) {
        for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); ++i) {
            if (!strncmp(*entry, prefixes[i], strlen(prefixes[i])) &&
                ((lanes == NULL) || strncmp(*entry, "UCX_ST_LANES=", 13))) {
                printf("%s ", *entry);
            }
        }
    }
    if (lanes != NULL) {
        printf("UCX_ST_LANES=%s ", lanes);
    }
}

static void st_random_print_replay(const st_random_options_t *options,
                                   uint64_t seed)
{
    const st_gen_options_t defaults = ST_GEN_DEFAULTS;
    const st_gen_options_t *gen     = &options->gen;
    const char *folder              = getenv("ST_BUILDDIR");

    printf("to run it again: ");
    st_random_print_env(options->lanes);
    printf("contrib/ucx-st-run %s/test/integration/st_random --seed %lu "
           "--count 1", (folder == NULL) ? "build" : folder, seed);
    if (options->as_threads) {
        printf(" --threads");
    }
    if (options->some) {
        printf(" --some");
    }
    if (gen->ranks != defaults.ranks) {
        printf(" --ranks %d", gen->ranks);
    }
    if (gen->max_size != defaults.max_size) {
        printf(" --max-size %u", gen->max_size);
    }
    if (gen->max_uses != defaults.max_uses) {
        printf(" --max-uses %u", gen->max_uses);
    }
    if (gen->no_late) {
        printf(" --no-late");
    }
    if (gen->once != 0) {
        printf(" --once %u", gen->once);
    }
    printf("\n");
}

static void st_random_sum(st_random_counts_t *sum,
                          const st_random_counts_t *counts)
{
    uint64_t *to         = (uint64_t*)sum;
    const uint64_t *from = (const uint64_t*)counts;
    size_t i;

    for (i = 0; i < sizeof(*sum) / sizeof(*to); ++i) {
        to[i] += from[i];
    }
}

/* Run one group; the number of programs that it has run, or -1 */
static int st_random_run_group(const st_random_group_t *group,
                               st_random_counts_t *counts)
{
    const st_random_options_t *options = group->options;
    const char *env[]                  = {"UCX_ST_LANES", options->lanes, NULL};
    st_random_shared_t *shared         = st_world_alloc(sizeof(*shared));
    st_world_params_t params           = {
        .count      = (options->gen.ranks > 0) ? options->gen.ranks :
                                                 ST_PROG_MAX_RANKS,
        .as_threads = options->as_threads,
        .limit      = options->limit,
        .shared     = shared,
        .env        = (options->lanes == NULL) ? NULL : env,
        .arg        = group,
        .main       = st_random_main,
        .report     = st_exec_report
    };
    char reason[ST_WORLD_REASON];
    int programs;

    if (shared == NULL) {
        printf("FAIL st_random: no memory\n");
        return -1;
    }
    if (st_world_run(&params, reason) == 0) {
        programs = (int)shared->counts.programs;
        st_random_sum(counts, &shared->counts);
    } else {
        programs = -1;
        printf("FAIL st_random, program %lu: %s\n", shared->prog.seed, reason);
        st_random_print_replay(options, shared->prog.seed);
    }
    st_world_free(shared, sizeof(*shared));
    return programs;
}

static void st_random_nothing(st_rank_t *me)
{
    (void)me;
}

/* Which lists of lanes the library takes; how many there are */
static unsigned st_random_find_lanes(const char *found[])
{
    static const char *const lists[] = {
        "trig", "host", "trig,host", "host,trig"
    };
    const char *env[]        = {"UCX_ST_LANES", NULL, NULL};
    st_world_params_t params = {
        .count = 1,
        .limit = 300,
        .env   = env,
        .main  = st_random_nothing
    };
    char reason[ST_WORLD_REASON];
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < sizeof(lists) / sizeof(lists[0]); ++i) {
        env[1] = lists[i];
        if (st_world_run(&params, reason) == 0) {
            printf("lanes: %s\n", lists[i]);
            found[count++] = lists[i];
        }
    }
    return count;
}

/* Another kind of programs for each group */
static void st_random_vary(st_random_options_t *options, uint64_t *random,
                           const char *const *lanes, unsigned num_lanes)
{
    static const unsigned sizes[] = {64, 1 << 10, 8 << 10, 100 << 10, 1 << 20};
    static const unsigned uses[]  = {2, 12, ST_PROG_MAX_USES};

    options->gen.max_size = sizes[st_gen_below(random, 5)];
    options->gen.max_uses = uses[st_gen_below(random, 3)];
    if (num_lanes > 0) {
        options->lanes = lanes[st_gen_below(random, num_lanes)];
    }
}

static int st_random_soak(const st_random_options_t *options,
                          st_random_counts_t *counts)
{
    st_random_options_t varied = *options;
    uint64_t random            = options->seed;
    st_random_group_t group    = {
        .options = &varied,
        .seed    = options->seed,
        .count   = ST_RANDOM_GROUP,
        .until   = st_world_now() + options->time
    };
    const char *lanes[4];
    unsigned num_lanes;
    int programs;

    num_lanes = st_random_find_lanes(lanes);
    while (st_world_now() < group.until) {
        st_random_vary(&varied, &random, lanes, num_lanes);
        programs = st_random_run_group(&group, counts);
        if (programs < 0) {
            return EXIT_FAILURE;
        }
        group.seed += (uint64_t)programs;
    }
    return EXIT_SUCCESS;
}

int st_random_run(const st_random_options_t *options,
                  st_random_counts_t *counts)
{
    st_random_group_t group = {.options = options, .seed = options->seed};
    unsigned left;

    if (options->time > 0) {
        return st_random_soak(options, counts);
    }
    for (left = options->count; left > 0; left -= group.count) {
        group.count = (left < ST_RANDOM_GROUP) ? left : ST_RANDOM_GROUP;
        if (st_random_run_group(&group, counts) < 0) {
            return EXIT_FAILURE;
        }
        group.seed += group.count;
    }
    return EXIT_SUCCESS;
}
