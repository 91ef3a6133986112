/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_progress.c - the programs of st_progress and st_random between the ranks
 * of an MPI program, which may be on several nodes. Only what those do by
 * memory that ranks share is done by MPI here: addresses and barriers.
 */
#include "st_progress.h"
#include "st_random.h"
#include "st_rank.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: mpirun -n RANKS mpix_progress [--percent N] PROGRAM...\n"
    "       mpix_progress --list\n"
    "\n"
    "Runs programs that must not deadlock, of 2 to 8 ranks; p6 are 200 random\n"
    "ones of up to 6.\n"
    "\n"
    "  --list       print their names\n"
    "  --percent N  of the iterations\n";


/** What goes from each rank to all. */
typedef struct progress_card {
    uint32_t length;
    uint8_t  address[ST_WORLD_ADDRESS];
} progress_card_t;

static struct {
    int             rank;
    int             size;
    int             is_under_way; /* A meeting */
    MPI_Request     request;
    progress_card_t own;
    progress_card_t cards[ST_WORLD_MAX_RANKS];
} progress;


static int progress_meet(st_rank_t *me)
{
    st_world_t *world = me->world;
    int is_done       = 0;
    int i;

    if (!progress.is_under_way) {
        progress.own.length = world->rank[me->index].length;
        memcpy(progress.own.address, world->rank[me->index].address,
               ST_WORLD_ADDRESS);
        MPI_Iallgather(&progress.own, sizeof(progress.own), MPI_BYTE,
                       progress.cards, sizeof(progress.own), MPI_BYTE,
                       MPI_COMM_WORLD, &progress.request);
        progress.is_under_way = 1;
    }
    MPI_Test(&progress.request, &is_done, MPI_STATUS_IGNORE);
    if (!is_done) {
        return 0;
    }
    for (i = 0; i < me->count; ++i) {
        world->rank[i].length = progress.cards[i].length;
        memcpy(world->rank[i].address, progress.cards[i].address,
               ST_WORLD_ADDRESS);
    }
    progress.is_under_way = 0;
    return 1;
}

static void progress_end(st_rank_t *me)
{
    int is_skipped = (me->world->end == ST_WORLD_SKIPPED);

    printf("%s: %s\n", is_skipped ? "SKIP" : "FAIL", me->world->reason);
    (void)fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, is_skipped ? ST_WORLD_SKIP : EXIT_FAILURE);
}

static int progress_run(const st_world_params_t *params, char *reason)
{
    st_world_params_t own = *params;
    st_rank_t me          = {
        .index  = progress.rank,
        .count  = progress.size,
        .params = &own,
        .shared = params->shared,
        .arg    = params->arg
    };

    own.meet = progress_meet;
    own.end  = progress_end;
    me.world = st_world_alloc(sizeof(*me.world));
    if (me.world == NULL) {
        snprintf(reason, ST_WORLD_REASON, "no memory");
        return EXIT_FAILURE;
    }
    if (params->env != NULL) {
        setenv(params->env[0], params->env[1], 1);
    }
    st_rank_run(&me);
    if (params->env != NULL) {
        unsetenv(params->env[0]);
    }
    st_world_free(me.world, sizeof(*me.world));
    return 0;
}

static int usage(int result)
{
    fputs(usage_text, (result == EXIT_SUCCESS) ? stdout : stderr);
    return result;
}

static int list(void)
{
    const st_progress_case_t *pcase;

    for (pcase = st_progress_cases; pcase->name != NULL; ++pcase) {
        puts(pcase->name);
    }
    puts("p6");
    return EXIT_SUCCESS;
}

static int run_random(unsigned percent)
{
    st_random_options_t options = ST_RANDOM_DEFAULTS;
    st_random_counts_t counts   = {0};
    int result;

    options.count     = 2 * percent;
    options.seed      = 40000;
    options.gen.ranks = (progress.size < ST_PROG_MAX_RANKS) ?
                        progress.size : ST_PROG_MAX_RANKS;
    result            = st_random_run(&options, &counts);
    printf("%s st_random, rank %d: %lu programs, %lu uses, %lu bytes\n",
           (result == 0) ? "PASS" : "FAIL", progress.rank, counts.programs,
           counts.exec.uses, counts.exec.bytes);
    return result;
}

/* The status of the worst program */
static int run(const st_progress_options_t *options, char **names)
{
    int result = ST_WORLD_SKIP;
    int one;

    for (; *names != NULL; ++names) {
        one    = !strcmp(*names, "p6") ? run_random(options->percent) :
                                         st_progress_run(*names, options);
        result = (one == ST_WORLD_SKIP) ? result :
                 (one == 0) ? (result == ST_WORLD_SKIP ? 0 : result) : one;
    }
    return result;
}

int main(int argc, char **argv)
{
    st_progress_options_t options = ST_PROGRESS_DEFAULTS;
    int result, provided;

    if ((argc == 2) && !strcmp(argv[1], "--list")) {
        return list();
    }
    if ((argc == 2) && !strcmp(argv[1], "--help")) {
        return usage(EXIT_SUCCESS);
    }
    ++argv;
    if ((argc > 2) && !strcmp(argv[0], "--percent")) {
        options.percent = (unsigned)atoi(argv[1]);
        argv           += 2;
    }
    if ((*argv == NULL) || (**argv == '-')) {
        return usage(2);
    }

    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &progress.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &progress.size);
    if ((progress.size < 2) || (progress.size > ST_WORLD_MAX_RANKS)) {
        fprintf(stderr, "mpix_progress: %d ranks, not 2 to %d\n", progress.size,
                ST_WORLD_MAX_RANKS);
        MPI_Finalize();
        return 2;
    }
    options.ranks = progress.size;
    st_world_runs = progress_run;
    result        = run(&options, argv);
    MPI_Finalize();
    return result;
}
