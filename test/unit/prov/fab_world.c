/* SPDX-License-Identifier: BSD-3-Clause */
/* fab_world.c - runs scenarios as threads and as processes; checks. */
#include "fab_world.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>


static __thread fab_side_t *fab_current;
static fab_scenario_t      fab_scenario;

void fab_adopt(fab_side_t *me)
{
    fab_current = me;
}

void fab_threads(unsigned count, void *(*func)(void *arg), void *args,
                 size_t size)
{
    pthread_t threads[count];
    unsigned i;

    for (i = 0; i < count; ++i) {
        FAB_REQUIRE(pthread_create(&threads[i], NULL, func,
                                   (char*)args + (i * size)) == 0);
    }
    for (i = 0; i < count; ++i) {
        pthread_join(threads[i], NULL);
    }
}

static void fab_note(const char *format, ...)
{
    fab_world_t *world = fab_current->world;
    va_list ap;
    unsigned i;

    i = __atomic_fetch_add(&world->failures, 1, __ATOMIC_RELAXED);
    if (i < FAB_FAILURES) {
        va_start(ap, format);
        vsnprintf(world->text[i], FAB_FAILURE_TEXT, format, ap);
        va_end(ap);
    }
}

int fab_check_at(int ok, const char *file, int line, const char *text)
{
    if (!ok) {
        fab_note("party %d %s, %s:%d: %s", fab_current->index,
                 fab_current->threads ? "(thread)" : "(process)", file, line,
                 text);
    }
    return ok;
}

void fab_require_at(int ok, const char *file, int line, const char *text)
{
    if (!fab_check_at(ok, file, line, text)) {
        fab_give_up(fab_current);
    }
}

void fab_equal_at(uint64_t a, uint64_t b, const char *file, int line,
                  const char *text)
{
    char buffer[FAB_FAILURE_TEXT];

    if (a != b) {
        snprintf(buffer, sizeof(buffer), "%.128s (%lld, %lld)", text,
                 (long long)a, (long long)b);
        fab_check_at(0, file, line, buffer);
    }
}

/* The other party learns of it by the flag, or by its socket's end. What was
 * opened stays open: the case has failed anyway. */
void fab_give_up(fab_side_t *me)
{
    __atomic_store_n(&me->world->ended, 1, __ATOMIC_RELEASE);
    shutdown(me->oob, SHUT_RDWR);
    if (me->threads) {
        pthread_exit(NULL);
    }
    _exit(EXIT_SUCCESS);
}

static void *fab_party(void *arg)
{
    fab_side_t *me = arg;

    fab_adopt(me);
    fab_open(me);
    fab_connect(me);
    fab_scenario(me);
    if (!me->victim) {
        fab_barrier(me);
    }
    fab_close(me);
    return NULL;
}

static void fab_as_threads(fab_side_t *sides)
{
    pthread_t threads[2];
    int i;

    for (i = 0; i < 2; ++i) {
        sides[i].threads = 1;
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, fab_party,
                                       &sides[i]) == 0);
    }
    for (i = 0; i < 2; ++i) {
        pthread_join(threads[i], NULL);
    }
}

static void fab_child(fab_side_t *sides, int index)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(0);
    close(sides[!index].oob);
    fab_party(&sides[index]);
    fflush(NULL);
    _exit(EXIT_SUCCESS);
}

static void fab_reap(pid_t pid, int victim)
{
    int status;

    CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0)) {
        return;
    }
    if (victim && WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL)) {
        return;
    }
    printf("a party ended with status %#x\n", status);
    CU_FAIL("a party crashed");
}

static void fab_as_processes(fab_side_t *sides)
{
    pid_t pids[2];
    int i;

    fflush(NULL);
    for (i = 0; i < 2; ++i) {
        pids[i] = fork();
        CU_ASSERT_FATAL(pids[i] >= 0);
        if (pids[i] == 0) {
            fab_child(sides, i);
        }
    }
    for (i = 0; i < 2; ++i) {
        close(sides[i].oob);
        sides[i].oob = -1;
    }
    fab_reap(pids[0], 0);
    if (sides[1].victim) {
        /* It may be stopped */
        kill(pids[1], SIGKILL);
    }
    fab_reap(pids[1], sides[1].victim);
}

static void fab_report(const fab_world_t *world)
{
    unsigned i;

    for (i = 0; (i < world->failures) && (i < FAB_FAILURES); ++i) {
        printf("  %s\n", world->text[i]);
    }
    if (world->ended && (world->failures == 0)) {
        printf("  a party gave up\n");
    }
    CU_ASSERT(world->failures == 0);
    CU_ASSERT(!world->ended);
}

static void fab_run_as(const fab_case_t *fcase, unsigned parties)
{
    static const fab_config_t defaults;
    fab_side_t sides[2];
    fab_world_t *world;
    int pair[2], i;

    world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(world != MAP_FAILED);
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ==
                    0);
    memset(sides, 0, sizeof(sides));
    for (i = 0; i < 2; ++i) {
        sides[i].index  = i;
        sides[i].oob    = pair[i];
        sides[i].world  = world;
        sides[i].victim = fcase->victim;
        sides[i].config = (fcase->config != NULL) ? fcase->config : &defaults;
    }

    fab_scenario = fcase->scenario;
    if (parties == FAB_THREADS) {
        fab_as_threads(sides);
    } else {
        fab_as_processes(sides);
    }
    for (i = 0; i < 2; ++i) {
        if (sides[i].oob >= 0) {
            close(sides[i].oob);
        }
    }
    fab_report(world);
    munmap(world, sizeof(*world));
}

static unsigned fab_parties(void)
{
    const char *value = getenv("FAB_PARTIES");

    if (value == NULL) {
        return FAB_BOTH;
    }
    return strcmp(value, "threads") ? FAB_PROCESSES : FAB_THREADS;
}

void fab_run(const fab_case_t *fcase)
{
    static char reason[80]; /* kept until the case has ended */
    unsigned parties = fcase->victim ? FAB_PROCESSES :
                       (fcase->parties != 0) ? fcase->parties : FAB_BOTH;

    if ((fab_subject() == FAB_SOCKETS) && (fcase->sockets != NULL) &&
        (getenv("FAB_NO_SKIP") == NULL)) {
        st_cunit_skip(fcase->sockets);
        return;
    }

    if ((fab_subject() == FAB_CXI) && (fcase->cxi != NULL) &&
        (getenv("FAB_NO_SKIP") == NULL)) {
        st_cunit_skip(fcase->cxi);
        return;
    }

    if ((fcase->env != NULL) && (getenv(fcase->env) == NULL)) {
        snprintf(reason, sizeof(reason), "%s is not set", fcase->env);
        st_cunit_skip(reason);
        return;
    }

    parties &= fab_parties();
    if (parties == 0) {
        st_cunit_skip("not with FAB_PARTIES as it is");
        return;
    }
    if (parties & FAB_THREADS) {
        fab_run_as(fcase, FAB_THREADS);
    }
    if (parties & FAB_PROCESSES) {
        fab_run_as(fcase, FAB_PROCESSES);
    }
}
