/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_storm.c - kills one of several processes that talk all to all, at random
 * moments; or stops one, and demands that the others go on.
 */
#include "fab_storm.h"
#include "storm_left.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STORM_LIMIT_MS 30000


typedef struct storm {
    uint64_t      seed;
    uint64_t      state;
    unsigned      kills;
    unsigned      span_us; /**< The moment is at most this late */
    int           stop;
    storm_board_t *board;
    pid_t         pids[STORM_WORKERS];
    unsigned      early;   /**< Killed before its name was known */
    unsigned      late;    /**< Killed when it was through */
} storm_t;


static uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ((uint64_t)ts.tv_sec * 1000) + ((uint64_t)ts.tv_nsec / 1000000);
}

static int start(storm_t *storm)
{
    int i;

    fflush(NULL);
    memset(storm->board, 0, sizeof(*storm->board));
    storm->board->seed = storm_random(&storm->state);
    for (i = 0; i < STORM_WORKERS; ++i) {
        storm->pids[i] = fork();
        if (storm->pids[i] < 0) {
            perror("fork");
            return -1;
        }
        if (storm->pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(storm_work(storm->board, i));
        }
    }
    return 0;
}

/* Wait for one, for a limited time; 0 if it ended well or by our signal */
static int finish(storm_t *storm, int index)
{
    storm_card_t *card = &storm->board->cards[index];
    uint64_t end       = now_ms() + STORM_LIMIT_MS;
    int status;
    pid_t ret;

    while ((ret = waitpid(storm->pids[index], &status, WNOHANG)) == 0) {
        if (now_ms() > end) {
            printf("process %d hangs\n", index);
            kill(storm->pids[index], SIGKILL);
            waitpid(storm->pids[index], &status, 0);
            return -1;
        }
        usleep(500);
    }
    if ((ret == storm->pids[index]) && WIFEXITED(status) &&
        (WEXITSTATUS(status) == 0)) {
        return 0;
    }
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL) && card->killed) {
        return 0;
    }
    printf("process %d ended with status %#x: %s\n", index, status,
           card->complaint);
    return -1;
}

static unsigned taken(storm_t *storm, int to, int from)
{
    return __atomic_load_n(&storm->board->cards[to].received[from],
                           __ATOMIC_ACQUIRE);
}

/* The two that run talk to their end though the third one is stopped */
static int others_go_on(storm_t *storm, int victim)
{
    int a        = (victim + 1) % STORM_WORKERS;
    int b        = (victim + 2) % STORM_WORKERS;
    uint64_t end = now_ms() + STORM_LIMIT_MS;

    while ((taken(storm, a, b) < STORM_ROUNDS) ||
           (taken(storm, b, a) < STORM_ROUNDS)) {
        if (now_ms() > end) {
            printf("with %d stopped, %d has %u messages of %d, and %d has %u\n",
                   victim, a, taken(storm, a, b), b, b, taken(storm, b, a));
            return -1;
        }
        usleep(500);
    }
    return 0;
}

/* Before all have opened, a process that is stopped is one whose name nobody
 * knows: then the others wait for it, as they should. */
static void wait_until_ready(storm_t *storm)
{
    uint64_t end = now_ms() + STORM_LIMIT_MS;
    int i;

    for (i = 0; i < STORM_WORKERS; ++i) {
        while (!__atomic_load_n(&storm->board->cards[i].ready,
                                __ATOMIC_ACQUIRE) && (now_ms() < end)) {
            usleep(200);
        }
    }
}

static int strike(storm_t *storm, int victim)
{
    storm_card_t *card = &storm->board->cards[victim];
    int ret            = 0;

    /* Opening takes longest: have most moments in what comes then */
    if (storm->stop || (storm_random(&storm->state) % 8 != 0)) {
        wait_until_ready(storm);
    }
    usleep((useconds_t)(storm_random(&storm->state) % storm->span_us));
    storm->early += !__atomic_load_n(&card->ready, __ATOMIC_ACQUIRE);
    storm->late  += __atomic_load_n(&card->done, __ATOMIC_ACQUIRE);
    if (storm->stop) {
        kill(storm->pids[victim], SIGSTOP);
        ret = others_go_on(storm, victim);
        kill(storm->pids[victim], SIGCONT);
    } else {
        __atomic_store_n(&card->killed, 1, __ATOMIC_RELEASE);
        kill(storm->pids[victim], SIGKILL);
    }
    __atomic_store_n(&storm->board->calm, 1, __ATOMIC_RELEASE);
    return ret;
}

static int once(storm_t *storm)
{
    int victim, i, ret;

    if (start(storm) != 0) {
        return -1;
    }
    victim = (int)(storm_random(&storm->state) % STORM_WORKERS);
    ret    = strike(storm, victim);
    for (i = 0; i < STORM_WORKERS; ++i) {
        ret |= finish(storm, i);
    }
    return ret;
}

static int parse(storm_t *storm, int argc, char **argv)
{
    static const struct option options[] = {
        {"kills", required_argument, NULL, 'k'},
        {"mode", required_argument, NULL, 'm'},
        {"seed", required_argument, NULL, 's'},
        {"span", required_argument, NULL, 't'},
        {"stop", no_argument, NULL, 'p'},
        {NULL}
    };
    int opt;

    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (opt) {
        case 'k':
            storm->kills = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'm':
            setenv("FI_CXIEMU_MODE", optarg, 1);
            break;
        case 's':
            storm->seed = strtoull(optarg, NULL, 0);
            break;
        case 't':
            storm->span_us = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'p':
            storm->stop = 1;
            break;
        default:
            printf("usage: fab_storm [--kills N] [--mode strict|fast] "
                   "[--seed N] [--span MICROSECONDS] [--stop]\n");
            return -1;
        }
    }
    return (storm->span_us > 0) ? 0 : -1;
}

int main(int argc, char **argv)
{
    storm_t storm = {
        .kills   = 200,
        .span_us = 20000,
        .seed    = (uint64_t)time(NULL) ^ ((uint64_t)getpid() << 20)
    };
    unsigned i;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (parse(&storm, argc, argv) != 0) {
        return 2;
    }
    setenv("FI_PROVIDER_PATH", FAB_MODULE_DIR, 0);
    setenv("FI_PROVIDER", "cxiemu", 1);
    storm.board = mmap(NULL, sizeof(*storm.board), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (storm.board == MAP_FAILED) {
        perror("mmap");
        return EXIT_FAILURE;
    }

    printf("seed %llu\n", (unsigned long long)storm.seed);
    storm.state = storm.seed;
    for (i = 0; i < storm.kills; ++i) {
        if (once(&storm) != 0) {
            printf("failed in storm %u of seed %llu\n", i,
                   (unsigned long long)storm.seed);
            return EXIT_FAILURE;
        }
    }
    if (storm_left_behind((const char*[]){"cxiemu", NULL})) {
        return EXIT_FAILURE;
    }
    printf("%u storms (%u before the victim had a name, %u when it was "
           "through): nothing hangs, nothing is wrong\n", storm.kills,
           storm.early, storm.late);
    return EXIT_SUCCESS;
}
