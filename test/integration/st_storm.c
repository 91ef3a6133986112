/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_storm.c - kills one of 2 to 4 ranks that send to each other, again and
 * again, each time at another step of theirs; or stops it, until the others are
 * through with each other. What the others must do is told in st_storm_rank.c
 * and, for the programs ucx_storm and fab_storm, in ucx_storm_rank.c and
 * fab_storm_rank.c. Each storm starts anew, and the last one kills nobody: what
 * was killed before is in nobody's way.
 */
#include "st_storm.h"
#include "st_bytes.h"
#include "st_world.h"

#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STORM_LIMIT 300.0 /* seconds; on a busy machine */


typedef struct storm {
    uint64_t      seed;
    unsigned      kills;
    unsigned      first;  /* number of the first storm */
    uint64_t      steps[STORM_MAX_RANKS + 1]; /* of a storm that kills nobody,
                                                 by ranks */
    unsigned      errors; /* queues or endpoints that ended */
    unsigned      late;   /* storms whose step nobody made */
    int           stops;  /* the victims, and kills none */
    storm_board_t *board;
    pid_t         pids[STORM_MAX_RANKS]; /* 0: it has ended */
} storm_t;


void storm_step(storm_board_t *board)
{
    storm_card_t *victim = &board->card[board->victim];

    if ((__atomic_fetch_add(&board->steps, 1, __ATOMIC_ACQ_REL) ==
         board->moment) && !__atomic_load_n(&victim->done, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(board->stops ? &board->stopped : &board->killed, 1,
                         __ATOMIC_RELEASE);
        (void)kill(victim->pid, board->stops ? SIGSTOP : SIGKILL);
    }
}

void storm_at(storm_board_t *board, int index, const char *where)
{
    storm_card_t *card = &board->card[index];

    (void)snprintf(card->where, sizeof(card->where), "%s", where);
    storm_step(board);
}

int storm_is_killed(const storm_board_t *board, int index)
{
    return (index == board->victim) &&
           __atomic_load_n(&board->killed, __ATOMIC_ACQUIRE);
}

void storm_reach(storm_board_t *board, int index, uint32_t phase)
{
    __atomic_store_n(&board->card[index].phase, phase, __ATOMIC_RELEASE);
}

int storm_have_reached(const storm_board_t *board, uint32_t phase)
{
    int i;

    for (i = 0; i < board->ranks; ++i) {
        if (!storm_is_killed(board, i) &&
            (__atomic_load_n(&board->card[i].phase, __ATOMIC_ACQUIRE) <
             phase)) {
            return 0;
        }
    }
    return 1;
}

void storm_publish(storm_board_t *board, int index, size_t length)
{
    __atomic_store_n(&board->card[index].length, (uint32_t)length,
                     __ATOMIC_RELEASE);
}

int storm_is_published(const storm_board_t *board, int index)
{
    return __atomic_load_n(&board->card[index].length, __ATOMIC_ACQUIRE) != 0;
}

int storm_end(storm_board_t *board, int index)
{
    __atomic_store_n(&board->card[index].done, 1, __ATOMIC_RELEASE);
    return EXIT_SUCCESS;
}

void storm_complain(storm_card_t *card, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(card->complaint, sizeof(card->complaint), format, ap);
    va_end(ap);
    (void)fflush(NULL);
    _exit(EXIT_FAILURE);
}

static int start(storm_t *storm, int *alive)
{
    storm_board_t *board = storm->board;
    int i;

    (void)fflush(NULL);
    for (i = 0; i < board->ranks; ++i) {
        storm->pids[i] = fork();
        if (storm->pids[i] < 0) {
            storm->pids[i] = 0;
            perror("fork");
            return -1;
        }
        if (storm->pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (!__atomic_load_n(&board->go, __ATOMIC_ACQUIRE)) {
                st_world_sleep(&board->go, 0, 1000);
            }
            exit(storm_rank_main(board, i));
        }
        board->card[i].pid = storm->pids[i];
        ++*alive;
    }
    __atomic_store_n(&board->go, 1, __ATOMIC_RELEASE);
    st_world_wake(&board->go);
    return 0;
}

/* 0 if a rank has ended as it should */
static int judge(const storm_board_t *board, int index, int status)
{
    if ((WIFEXITED(status) && (WEXITSTATUS(status) == EXIT_SUCCESS)) ||
        (WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL) &&
         board->killed && (index == board->victim))) {
        return 0;
    }
    printf("rank %d, %s, ended with status %#x: %s\n", index,
           board->card[index].where, status, board->card[index].complaint);
    return -1;
}

/* What hangs, or is left by a failure */
static void kill_all(storm_t *storm)
{
    int i;

    for (i = 0; i < STORM_MAX_RANKS; ++i) {
        if (storm->pids[i] > 0) {
            printf("rank %d is killed, %s\n", i, storm->board->card[i].where);
            (void)kill(storm->pids[i], SIGKILL);
            (void)waitpid(storm->pids[i], NULL, 0);
            storm->pids[i] = 0;
        }
    }
}

/* One that is stopped goes on when nobody waits for anything else */
static void resume(storm_t *storm)
{
    storm_board_t *board = storm->board;
    int i;

    for (i = 0; i < board->ranks; ++i) {
        if ((i != board->victim) &&
            (__atomic_load_n(&board->card[i].phase, __ATOMIC_ACQUIRE) <
             STORM_PHASE_OTHERS)) {
            return;
        }
    }
    if (storm->pids[board->victim] > 0) {
        (void)kill(storm->pids[board->victim], SIGCONT);
    }
}

/* Dead ranks are taken note of at once, as elsewhere: before that they exist */
static int finish(storm_t *storm, int alive)
{
    const storm_board_t *board = storm->board;
    double end                 = st_world_now() + STORM_LIMIT;
    int ret                    = 0;
    int status, i;
    pid_t pid;

    while ((alive > 0) && (ret == 0) && (st_world_now() < end)) {
        pid = waitpid(-1, &status, WNOHANG);
        for (i = 0; (i < STORM_MAX_RANKS) && (pid > 0); ++i) {
            if (storm->pids[i] == pid) {
                storm->pids[i] = 0;
                ret           |= judge(storm->board, i, status);
                --alive;
            }
        }
        if (pid == 0) {
            if (__atomic_load_n(&board->stopped, __ATOMIC_ACQUIRE)) {
                resume(storm);
            }
            (void)usleep(500);
        }
    }
    kill_all(storm);
    return (alive == 0) ? ret : -1;
}

/* One storm, of a number that says all about it */
static int run(storm_t *storm, unsigned number, int ranks, int is_calm)
{
    storm_board_t *board = storm->board;
    uint64_t state       = st_bytes_mix(storm->seed, number);
    int alive            = 0;
    int ret, i;

    memset(board, 0, sizeof(*board));
    board->seed   = st_bytes_random(&state);
    board->ranks  = ranks;
    board->stops  = storm->stops;
    board->victim = (int)(st_bytes_random(&state) % (uint64_t)ranks);
    board->moment = is_calm ? STORM_NEVER :
                    (st_bytes_random(&state) % storm->steps[ranks]);
    ret           = start(storm, &alive);
    ret          |= finish(storm, alive);
    if (ret != 0) {
        printf("failed: storm %u of seed %llu, %d ranks, rank %d killed at "
               "step %lld\n", number, (unsigned long long)storm->seed, ranks,
               board->victim, (long long)board->moment);
        return -1;
    }
    if (is_calm) {
        storm->steps[ranks] = board->steps;
    } else {
        storm->late += !(board->killed || board->stopped);
    }
    for (i = 0; i < ranks; ++i) {
        storm->errors += board->card[i].errors;
    }
    return 0;
}

/* Whether files of the kinds that libraries here could leave are there: ours
 * begin so, files of others may have such a word somewhere */
static int left_in(const char *path)
{
    static const char *const parts[] = {"cxiemu", "ucp-st"};
    DIR *dir  = opendir(path);
    int found = 0;
    struct dirent *entry;
    size_t i;

    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        for (i = 0; i < (sizeof(parts) / sizeof(parts[0])); ++i) {
            if (strncmp(entry->d_name, parts[i], strlen(parts[i])) == 0) {
                printf("left behind: %s/%s\n", path, entry->d_name);
                found = 1;
            }
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return found;
}

static int run_all(storm_t *storm)
{
    unsigned number;
    int ranks;

    for (ranks = 2; ranks <= STORM_MAX_RANKS; ++ranks) {
        if (run(storm, 0, ranks, 1) != 0) {
            return -1;
        }
    }
    for (number = storm->first; number < (storm->first + storm->kills);
         ++number) {
        ranks = 2 + (int)(number % (STORM_MAX_RANKS - 1));
        if (run(storm, number, ranks, 0) != 0) {
            return -1;
        }
    }
    if (storm->errors > 0) {
        printf("the victims' ends were seen %u times\n", storm->errors);
    }
    return run(storm, 0, STORM_MAX_RANKS, 1) | left_in("/dev/shm") |
           left_in("/tmp");
}

static int parse(storm_t *storm, int argc, char **argv)
{
    static const struct option options[] = {
        {"kills", required_argument, NULL, 'k'},
        {"lanes", required_argument, NULL, 'l'},
        {"seed", required_argument, NULL, 's'},
        {"stop", no_argument, NULL, 'p'},
        {"storm", required_argument, NULL, 'n'},
        {NULL}
    };
    int opt;

    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (opt) {
        case 'k':
            storm->kills = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'l':
            setenv("UCX_ST_LANES", optarg, 1);
            break;
        case 's':
            storm->seed = strtoull(optarg, NULL, 0);
            break;
        case 'p':
            storm->stops = 1;
            break;
        case 'n':
            storm->first = (unsigned)strtoul(optarg, NULL, 0);
            break;
        default:
            printf("usage: %s [--kills N] [--lanes LANES] [--seed N] "
                   "[--stop] [--storm FIRST]\n", argv[0]);
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    storm_t storm = {
        .kills = 200,
        .seed  = (uint64_t)time(NULL) ^ ((uint64_t)getpid() << 20)
    };
    int ret;

    st_world_prepare(argv);
    if (parse(&storm, argc, argv) != 0) {
        return 2;
    }
    storm.board = st_world_alloc(sizeof(*storm.board));
    if (storm.board == NULL) {
        perror("memory");
        return EXIT_FAILURE;
    }
    printf("seed %llu\n", (unsigned long long)storm.seed);
    ret = run_all(&storm);
    st_world_free(storm.board, sizeof(*storm.board));
    if (ret != 0) {
        return EXIT_FAILURE;
    }
    printf("%u storms, %u of them over too early: nothing hangs, nothing is "
           "wrong\n", storm.kills, storm.late);
    return EXIT_SUCCESS;
}
