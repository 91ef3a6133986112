/* SPDX-License-Identifier: BSD-3-Clause */
/* st_world.c - forks a group of ranks and watches it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* setns() */
#endif

#include "st_rank.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Time for the processes of a hanging group to say what they wait for, ms */
#define ST_WORLD_REPORT_TIME 5000


/** The watching process. */
typedef struct {
    const st_world_params_t *params;
    st_world_t              *world;
    int                     count;                    /* Processes */
    pid_t                   pids[ST_WORLD_MAX_RANKS];
    int                     node;                     /* Its /proc, or -1 */
    struct pollfd           ends[ST_WORLD_MAX_RANKS]; /* -1: it has ended */
    int                     report[2];                /* Closed at a hang */
} st_group_t;

/** One process of the group. */
typedef struct {
    st_group_t *group;
    int        first;    /* Its ranks */
    int        last;
    st_rank_t  *ranks;
    int        stop[2];  /* Closed at the end */
    pthread_t  reporter;
} st_process_t;


double st_world_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (1e-9 * (double)ts.tv_nsec);
}

void st_world_sleep(const uint32_t *word, uint32_t value, unsigned ms)
{
    struct timespec ts = {
        .tv_sec  = ms / 1000,
        .tv_nsec = (long)(ms % 1000) * 1000000
    };

    (void)syscall(SYS_futex, word, FUTEX_WAIT, value, &ts, NULL, 0);
}

void st_world_wake(const uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Of a thread that has gone meanwhile: it does not run either */
static int st_world_thread_is_stopped(pid_t pid, const char *thread)
{
    char text[512];
    const char *state;
    FILE *file;
    size_t length;

    snprintf(text, sizeof(text), "/proc/%d/task/%s/stat", (int)pid, thread);
    file = fopen(text, "r");
    if (file == NULL) {
        return 1;
    }
    length       = fread(text, 1, sizeof(text) - 1, file);
    text[length] = '\0';
    (void)fclose(file);
    state = strrchr(text, ')');
    return (state == NULL) || (state[2] == 'T');
}

int st_world_is_stopped(pid_t pid)
{
    int is_stopped = 1;
    char name[64];
    struct dirent *entry;
    DIR *dir;

    snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
    dir = opendir(name);
    if (dir == NULL) {
        return 0;
    }
    while (is_stopped && ((entry = readdir(dir)) != NULL)) {
        is_stopped = (entry->d_name[0] == '.') ||
                     st_world_thread_is_stopped(pid, entry->d_name);
    }
    (void)closedir(dir);
    return is_stopped;
}

/* UCX's memory hooks call intercepted functions from threads that are past the
 * end of the thread sanitizer's own state, and crash there. UCX reads the
 * setting in its constructor, so it must be there from the start. */
void st_world_prepare(char **argv)
{
#if defined(__SANITIZE_THREAD__)
    if (getenv("UCX_MEM_MMAP_HOOK_MODE") == NULL) {
        setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
        execv("/proc/self/exe", argv);
        perror("execv");
    }
#else
    (void)argv;
#endif
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("FI_CXIEMU_LEAKS", "y", 0); /* of whoever opens an emulated NIC */
}

static void *st_process_reporter(void *arg)
{
    st_process_t *process    = arg;
    st_group_t *group        = process->group;
    struct pollfd waitfor[2] = {
        {.fd = group->report[0]}, {.fd = process->stop[0]}
    };
    int i;

    while ((poll(waitfor, 2, -1) < 0) && (errno == EINTR)) {
        /* again */
    }
    if (waitfor[0].revents == 0) {
        return NULL;
    }
    for (i = process->first; i < process->last; ++i) {
        if (group->params->report != NULL) {
            group->params->report(&process->ranks[i]);
        }
    }
    (void)fflush(stdout);
    __atomic_add_fetch(&group->world->reported, 1, __ATOMIC_RELEASE);
    st_world_wake(&group->world->reported);
    return NULL;
}

static void *st_process_rank(void *arg)
{
    st_rank_run(arg);
    return NULL;
}

static void st_process_require(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        _exit(EXIT_FAILURE);
    }
}

static void st_process_ranks_init(st_process_t *process)
{
    st_group_t *group = process->group;
    st_rank_t *rank;
    int i;

    process->ranks = calloc(ST_WORLD_MAX_RANKS, sizeof(*process->ranks));
    st_process_require(process->ranks != NULL, "calloc");
    for (i = process->first; i < process->last; ++i) {
        rank         = &process->ranks[i];
        rank->index  = i;
        rank->count  = group->params->count;
        rank->params = group->params;
        rank->world  = group->world;
        rank->shared = group->params->shared;
        rank->arg    = group->params->arg;
    }
}

static void st_process_run_ranks(st_process_t *process)
{
    pthread_t threads[ST_WORLD_MAX_RANKS];
    int i;

    if (!process->group->params->as_threads) {
        st_rank_run(&process->ranks[process->first]);
        return;
    }
    for (i = process->first; i < process->last; ++i) {
        st_process_require(pthread_create(&threads[i], NULL, st_process_rank,
                                          &process->ranks[i]) == 0, "thread");
    }
    for (i = process->first; i < process->last; ++i) {
        pthread_join(threads[i], NULL);
    }
}

static void st_process_setenv(const char *const *env)
{
    for (; (env != NULL) && (env[0] != NULL); env += 2) {
        setenv(env[0], env[1], 1);
    }
}

/* Opens the /proc of a node of contrib/own-nodes.sh, in turn, and has the next
 * process be of its PID namespace. -1: there are no nodes. */
static int st_node_open(int index)
{
    const char *nodes = getenv("ST_NODES");
    const char *next  = nodes;
    char path[32];
    int node, spaces;

    if ((nodes == NULL) || (strchr(nodes, '=') == NULL)) {
        return -1;
    }
    for (; index >= 0; --index) {
        next = strchr(next, '=');
        next = (next == NULL) ? strchr(nodes, '=') + 1 : next + 1;
    }
    snprintf(path, sizeof(path), "/proc/%d/ns", atoi(next));
    node   = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    spaces = openat(node, "pid_for_children", O_RDONLY | O_CLOEXEC);
    st_process_require(setns(spaces, CLONE_NEWPID) == 0, "setns");
    close(spaces);
    return node;
}

/* Enters the other namespaces of a node */
static void st_node_enter(int node)
{
    static const char *const names[] = {"net", "uts", "ipc", "mnt"};
    char folder[4096];
    size_t i;
    int fd;

    st_process_require(getcwd(folder, sizeof(folder)) != NULL, "getcwd");
    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        fd = openat(node, names[i], O_RDONLY | O_CLOEXEC);
        st_process_require(setns(fd, 0) == 0, names[i]);
        close(fd);
    }
    st_process_require(chdir(folder) == 0, "chdir");
}

/* Exits in order: a sanitizer looks for leaks then */
static void st_process_main(st_process_t *process)
{
    const st_world_params_t *params = process->group->params;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (process->group->node >= 0) {
        st_node_enter(process->group->node);
    }
    st_process_setenv(params->env);
    if (process->first == 0) {
        st_process_setenv(params->env_first);
    }
    st_process_require(pipe(process->stop) == 0, "pipe");
    st_process_ranks_init(process);
    st_process_require(pthread_create(&process->reporter, NULL,
                                      st_process_reporter, process) == 0,
                       "thread");
    st_process_run_ranks(process);
    close(process->stop[1]);
    pthread_join(process->reporter, NULL);
    free(process->ranks);
    exit(EXIT_SUCCESS);
}

/* The processes that were forked before keep the same ends of pipes open as
 * this one, but for the one whose closing tells that this one has ended */
static int st_group_fork(st_group_t *group, int index)
{
    st_process_t process = {.group = group, .first = index, .last = index + 1};
    int end[2];

    if (group->params->as_threads) {
        process.last = group->params->count;
    }
    if (pipe(end) != 0) {
        return -1;
    }
    group->node        = st_node_open(index);
    group->pids[index] = fork();
    if (group->pids[index] == 0) {
        close(end[0]);
        close(group->report[1]);
        st_process_main(&process);
    }
    close(end[1]);
    if (group->node >= 0) {
        close(group->node);
    }
    if (group->pids[index] < 0) {
        close(end[0]);
        return -1;
    }
    group->ends[index].fd     = end[0];
    group->ends[index].events = 0;
    ++group->count;
    return 0;
}

/* Processes that have not ended */
static int st_group_alive(const st_group_t *group)
{
    int alive = 0;
    int i;

    for (i = 0; i < group->count; ++i) {
        alive += (group->ends[i].fd >= 0);
    }
    return alive;
}

static uint32_t st_group_end(const st_group_t *group)
{
    return __atomic_load_n(&group->world->end, __ATOMIC_ACQUIRE);
}

/* A rank's own reason is the better one, but whoever was to write it may have
 * been killed */
static void st_group_note(st_group_t *group, const char *text)
{
    if (st_group_end(group) < ST_WORLD_FAILED) {
        snprintf(group->world->reason, ST_WORLD_REASON, "%s", text);
        __atomic_store_n(&group->world->end, ST_WORLD_FAILED, __ATOMIC_RELEASE);
    }
}

static void st_group_reap(st_group_t *group, int index)
{
    char text[ST_WORLD_TEXT];
    int status = 0;

    (void)waitpid(group->pids[index], &status, 0);
    close(group->ends[index].fd);
    group->ends[index].fd = -1;
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != EXIT_SUCCESS)) {
        snprintf(text, sizeof(text), "the process of %s %d ended with %s %d",
                 group->params->as_threads ? "all ranks, from" : "rank", index,
                 WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        st_group_note(group, text);
    }
}

static void st_group_report_hang(st_group_t *group)
{
    const st_world_t *world = group->world;
    double deadline         = st_world_now() + 1e-3 * ST_WORLD_REPORT_TIME;
    char text[ST_WORLD_REASON];
    uint32_t reported;
    size_t length;
    int i;

    length = (size_t)snprintf(text, sizeof(text), "time limit of %u s",
                              group->params->limit);
    for (i = 0; i < group->params->count; ++i) {
        printf("  rank %d is at %s\n", i, world->rank[i].where);
        length += (size_t)snprintf(text + length, sizeof(text) - length,
                                   "; rank %d: %.40s", i, world->rank[i].where);
    }
    st_group_note(group, text);
    (void)fflush(stdout);
    close(group->report[1]);
    group->report[1] = -1;
    while (st_world_now() < deadline) {
        reported = __atomic_load_n(&world->reported, __ATOMIC_ACQUIRE);
        if (reported >= (uint32_t)st_group_alive(group)) {
            break;
        }
        st_world_sleep(&world->reported, reported, 100);
    }
}

/* Until all processes have ended, one has failed, or nothing goes on */
static void st_group_watch(st_group_t *group)
{
    double limit       = group->params->limit;
    double deadline    = st_world_now() + limit;
    uint32_t epoch     = 0;
    st_world_t *world  = group->world;
    uint32_t now_epoch;
    double left;
    int i;

    while ((st_group_alive(group) > 0) &&
           (st_group_end(group) < ST_WORLD_FAILED)) {
        left = deadline - st_world_now();
        (void)poll(group->ends, group->count,
                   (left > 0) ? 1 + (int)(1e3 * left) : 0);
        for (i = 0; i < group->count; ++i) {
            if ((group->ends[i].fd >= 0) && (group->ends[i].revents != 0)) {
                st_group_reap(group, i);
            }
        }
        now_epoch = __atomic_load_n(&world->epoch, __ATOMIC_ACQUIRE);
        if (now_epoch != epoch) {
            epoch    = now_epoch;
            deadline = st_world_now() + limit;
        } else if (st_world_now() >= deadline) {
            st_group_report_hang(group);
        }
    }
}

static void st_group_kill(st_group_t *group)
{
    int i;

    for (i = 0; i < group->count; ++i) {
        if (group->ends[i].fd >= 0) {
            (void)kill(group->pids[i], SIGKILL);
            (void)waitpid(group->pids[i], NULL, 0);
            close(group->ends[i].fd);
            group->ends[i].fd = -1;
        }
    }
    close(group->report[0]);
    if (group->report[1] >= 0) {
        close(group->report[1]);
    }
}

static int st_group_result(const st_group_t *group, char *reason)
{
    const st_world_t *world = group->world;

    uint32_t end            = st_group_end(group);

    snprintf(reason, ST_WORLD_REASON, "%s", world->reason);
    return (end == ST_WORLD_FAILED) ? EXIT_FAILURE :
           (end == ST_WORLD_SKIPPED) ? ST_WORLD_SKIP : EXIT_SUCCESS;
}

int (*st_world_runs)(const st_world_params_t *params, char *reason);

int st_world_is_one_node(void)
{
    return (st_world_runs == NULL) && (getenv("ST_NODES") == NULL);
}

void *st_world_alloc(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return (memory == MAP_FAILED) ? NULL : memory;
}

void st_world_free(void *memory, size_t size)
{
    if (memory != NULL) {
        (void)munmap(memory, size);
    }
}

int st_world_run(const st_world_params_t *params, char *reason)
{
    st_group_t group = {.params = params};
    int processes    = params->as_threads ? 1 : params->count;
    int result, i;

    if (st_world_runs != NULL) {
        return st_world_runs(params, reason);
    }
    group.world = st_world_alloc(sizeof(*group.world));
    if ((group.world == NULL) || (pipe(group.report) != 0)) {
        snprintf(reason, ST_WORLD_REASON, "no memory or pipe: %m");
        st_world_free(group.world, sizeof(*group.world));
        return EXIT_FAILURE;
    }
    (void)fflush(NULL);
    for (i = 0; i < processes; ++i) {
        if (st_group_fork(&group, i) != 0) {
            st_group_note(&group, "a process could not be forked");
        }
    }
    st_group_watch(&group);
    st_group_kill(&group);
    result = st_group_result(&group, reason);
    st_world_free(group.world, sizeof(*group.world));
    return result;
}
