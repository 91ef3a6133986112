/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_trig_share.c - processes that share the deferred-work entries of a
 * service: their shares, and what becomes of those of the dead.
 */
#include "st_cunit.h"
#include "uct_pair.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the service, for all processes */
#define ENTRIES 96
#define MAX_RANKS 4


/* A process with an interface, which does what it is told: to take entries, if
 * the number is positive; to give back what it has, if it is 0; else to tell
 * its share. It answers with a status, or that number. */
typedef struct {
    pid_t pid;
    int   fd;
} rank_t;


static int rank_serve(uct_pair_t *pair, int count, uct_pair_hold_t *hold)
{
    uct_trig_iface_attr_t attr;

    if (count >= 0) {
        uct_pair_unhold(pair, hold);
        return uct_pair_hold(pair, (unsigned)count, hold);
    }
    return (uct_trig_iface_query(pair->a.iface, &attr) == UCS_OK) ?
           (int)attr.max_entries : -1;
}

static void rank_main(int fd, const char *const *settings)
{
    uct_pair_hold_t hold = {.posted = 0};
    uct_pair_t pair;
    int value;

    if (uct_pair_create(&pair, settings) != 0) {
        _exit(1);
    }
    while (read(fd, &value, sizeof(value)) == sizeof(value)) {
        value = rank_serve(&pair, value, &hold);
        if (write(fd, &value, sizeof(value)) != sizeof(value)) {
            _exit(1);
        }
    }
    uct_pair_unhold(&pair, &hold);
    uct_pair_destroy(&pair);
    _exit(0);
}

static void entries_set(void)
{
    char text[32];

    snprintf(text, sizeof(text), "%d", ENTRIES);
    setenv("FI_CXIEMU_DWQ_ENTRIES", text, 1);
}

static void ranks_start(rank_t *ranks, unsigned count,
                        const char *const *settings)
{
    unsigned i, j;
    int fds[2];

    for (i = 0; i < count; ++i) {
        CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
        ranks[i].pid = fork();
        CU_ASSERT_FATAL(ranks[i].pid >= 0);
        if (ranks[i].pid == 0) {
            for (j = 0; j < i; ++j) {
                close(ranks[j].fd);
            }
            close(fds[0]);
            rank_main(fds[1], settings);
        }
        close(fds[1]);
        ranks[i].fd = fds[0];
    }
}

static int rank_ask(const rank_t *rank, int value)
{
    CU_ASSERT_FATAL(write(rank->fd, &value, sizeof(value)) == sizeof(value));
    CU_ASSERT_FATAL(read(rank->fd, &value, sizeof(value)) == sizeof(value));
    return value;
}

static void rank_kill(const rank_t *rank)
{
    kill(rank->pid, SIGKILL);
    waitpid(rank->pid, NULL, 0);
    close(rank->fd);
}

static void rank_end(const rank_t *rank)
{
    int status = -1;

    close(rank->fd);
    CU_ASSERT(waitpid(rank->pid, &status, 0) == rank->pid);
    CU_ASSERT(status == 0);
}

/* Their number is known: each has an equal part, whoever asks first */
ST_CASE(equal_parts)
{
    static const char *const settings[] = {"NODE_PROCESSES", "4", NULL};
    int share                           = ENTRIES / 4;
    rank_t ranks[MAX_RANKS];
    int i;

    ranks_start(ranks, 4, settings);
    for (i = 0; i < 4; ++i) {
        CU_ASSERT(rank_ask(&ranks[i], -1) == share);
        CU_ASSERT(rank_ask(&ranks[i], share + 1) == UCS_ERR_NO_RESOURCE);
        CU_ASSERT(rank_ask(&ranks[i], share) == UCS_OK);
    }
    for (i = 0; i < 4; ++i) {
        CU_ASSERT(rank_ask(&ranks[i], 0) == UCS_OK);
        rank_end(&ranks[i]);
    }
}

/* The launcher tells */
ST_CASE(launcher)
{
    static const struct {
        const char *name;
        const char *value;
    } launchers[] = {
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
        {"MPI_LOCALNRANKS", "3"},
        {"PALS_LOCAL_SIZE", "3"},
        {"SLURM_STEP_TASKS_PER_NODE", "1,3(x2),2"}
    };
    rank_t rank;
    unsigned i;

    for (i = 0; i < ST_CUNIT_COUNT(launchers); ++i) {
        setenv(launchers[i].name, launchers[i].value, 1);
        ranks_start(&rank, 1, NULL);
        unsetenv(launchers[i].name);
        CU_ASSERT(rank_ask(&rank, -1) == ENTRIES / 3);
        rank_end(&rank);
    }
}

/* It is not known: the first one takes what it needs, eight at a time, and
 * later has its part. What is taken is nobody else's; never are there more than
 * all */
ST_CASE(unknown_number)
{
    rank_t ranks[MAX_RANKS];

    ranks_start(ranks, 3, NULL);
    CU_ASSERT(rank_ask(&ranks[0], -1) == ENTRIES);
    CU_ASSERT(rank_ask(&ranks[0], ENTRIES - 8) == UCS_OK);
    CU_ASSERT(rank_ask(&ranks[1], 9) == UCS_ERR_NO_RESOURCE);
    CU_ASSERT(rank_ask(&ranks[1], 8) == UCS_OK);
    CU_ASSERT(rank_ask(&ranks[2], 1) == UCS_ERR_NO_RESOURCE);
    CU_ASSERT(rank_ask(&ranks[0], 0) == UCS_OK);
    CU_ASSERT(rank_ask(&ranks[0], -1) == ENTRIES / 3);
    CU_ASSERT(rank_ask(&ranks[0], (ENTRIES / 3) + 1) == UCS_ERR_NO_RESOURCE);
    CU_ASSERT(rank_ask(&ranks[2], ENTRIES / 3) == UCS_OK);
    CU_ASSERT(rank_ask(&ranks[0], ENTRIES / 3) == UCS_OK);
    rank_end(&ranks[0]);
    rank_end(&ranks[1]);
    rank_end(&ranks[2]);
}

/* Ask until it is no more refused: a process's end is noticed soon */
static void rank_ask_on(const rank_t *rank, int value)
{
    int status;

    while ((status = rank_ask(rank, value)) == UCS_ERR_NO_RESOURCE) {
        sched_yield();
    }
    CU_ASSERT(status == UCS_OK);
}

/* A process that is killed gives all back; one that is stopped keeps what it
 * has, and nobody waits for it */
ST_CASE(death)
{
    rank_t ranks[MAX_RANKS];

    ranks_start(ranks, 2, NULL);
    CU_ASSERT(rank_ask(&ranks[0], ENTRIES) == UCS_OK);
    kill(ranks[0].pid, SIGSTOP);
    CU_ASSERT(rank_ask(&ranks[1], 1) == UCS_ERR_NO_RESOURCE);
    rank_kill(&ranks[0]);
    rank_ask_on(&ranks[1], ENTRIES / 2);
    rank_end(&ranks[1]);
}

/* It does so, too, if the others have their parts and may have no more */
ST_CASE(death_of_one)
{
    rank_t ranks[MAX_RANKS];

    ranks_start(ranks, 2, NULL);
    CU_ASSERT(rank_ask(&ranks[0], ENTRIES / 2) == UCS_OK);
    CU_ASSERT(rank_ask(&ranks[1], ENTRIES / 2) == UCS_OK);
    CU_ASSERT(rank_ask(&ranks[1], 0) == UCS_OK);
    CU_ASSERT(rank_ask(&ranks[1], ENTRIES) == UCS_ERR_NO_RESOURCE);
    rank_kill(&ranks[0]);
    rank_ask_on(&ranks[1], ENTRIES);
    rank_end(&ranks[1]);
}

/* Shares that are too large by a wrong number are no more than there is */
ST_CASE(wrong_number)
{
    static const char *const settings[] = {"NODE_PROCESSES", "1", NULL};
    rank_t ranks[MAX_RANKS];

    ranks_start(ranks, 2, settings);
    CU_ASSERT(rank_ask(&ranks[0], ENTRIES) == UCS_OK);
    CU_ASSERT(rank_ask(&ranks[1], 1) == UCS_ERR_NO_RESOURCE);
    rank_end(&ranks[0]);
    CU_ASSERT(rank_ask(&ranks[1], ENTRIES) == UCS_OK);
    rank_end(&ranks[1]);
}

/* Very many: an interface has as many as its queue has room for, less one */
ST_CASE(very_many)
{
    static const char *const numbers[] = {"20000", "65536", "1048576"};
    const char *settings[]             = {"NODE_PROCESSES", "1",
                                          "DEFERRED_ENTRIES", NULL, NULL};
    int max                            = 16384 - 64 - 1;
    rank_t rank;
    unsigned i;

    if (strcmp(uct_pair_device(), "cxiemu0")) {
        st_cunit_skip("no card has as many");
        return;
    }
    for (i = 0; i < ST_CUNIT_COUNT(numbers); ++i) {
        setenv("FI_CXIEMU_DWQ_ENTRIES", numbers[i], 1);
        settings[3] = numbers[i];
        ranks_start(&rank, 1, settings);
        CU_ASSERT(rank_ask(&rank, -1) == max);
        CU_ASSERT(rank_ask(&rank, max + 1) == UCS_ERR_NO_RESOURCE);
        CU_ASSERT(rank_ask(&rank, max) == UCS_OK);
        rank_end(&rank);
    }
    entries_set();
}

int main(int argc, char **argv)
{
    char text[32];

    snprintf(text, sizeof(text), "test-%d", (int)getpid());
    setenv("FI_CXIEMU_SERVICE", text, 1);
    entries_set();
    snprintf(text, sizeof(text), "%d", ENTRIES + 8); /* which cxi keeps */
    setenv("CASSINI_TLES", text, 1);
    return st_cunit_main("trig_share", argc, argv);
}
