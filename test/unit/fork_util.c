/* SPDX-License-Identifier: BSD-3-Clause */
/* fork_util.c - children that are forked while other threads have locks. */
#include "fork_util.h"
#include "st_cunit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORK_MAX_USERS 16


/* A thread that calls a function until it is stopped; atomic */
typedef struct {
    void      (*func)(void);
    pthread_t thread;
    int       is_running;
    int       is_stopped;
} fork_user_t;


static void *fork_user_main(void *arg)
{
    fork_user_t *user = arg;

    do {
        user->func();
        __atomic_store_n(&user->is_running, 1, __ATOMIC_RELEASE);
    } while (!__atomic_load_n(&user->is_stopped, __ATOMIC_ACQUIRE));
    return NULL;
}

int fork_one(int (*child)(void))
{
    int status = -1;
    pid_t pid;
    int line;

#if defined(__SANITIZE_THREAD__)
    st_cunit_skip("TSan has no threads in a child of a process with threads");
    return 0;
#endif
    (void)fflush(NULL); /* The child's exit writes what it has */
    pid = fork();
    if (pid == 0) {
        (void)alarm(st_cunit_limit() / 2); /* before the parent's case */
        line = child();
        if (line != 0) {
            fprintf(stderr, "child: line %d\n", line);
        }
#if defined(__SANITIZE_ADDRESS__)
        _exit(line != 0); /* What the parent has would count as leaks */
#else
        exit(line != 0);
#endif
    }
    CU_ASSERT_FATAL(pid > 0);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_EQUAL(status, 0);
    return status == 0;
}

void fork_among(void (*const *users)(void), size_t count, int (*child)(void))
{
    fork_user_t threads[FORK_MAX_USERS] = {{NULL}};
    int i                               = 0;
    size_t j;

#if defined(__SANITIZE_ADDRESS__)
    /* Seen in gdb: a child that waits for the lock of GCC 12's allocator, which
     * another thread had at the fork */
    st_cunit_skip("ASan's allocator may be locked in a child of a process "
                  "whose threads use it");
    return;
#endif
    CU_ASSERT_FATAL(count <= FORK_MAX_USERS);
    for (j = 0; j < count; ++j) {
        threads[j].func = users[j];
        CU_ASSERT_FATAL(pthread_create(&threads[j].thread, NULL, fork_user_main,
                                       &threads[j]) == 0);
        while (!__atomic_load_n(&threads[j].is_running, __ATOMIC_ACQUIRE)) {
            (void)usleep(100);
        }
    }
    while ((i < FORK_CHILDREN) && fork_one(child)) {
        ++i;
    }
    for (j = 0; j < count; ++j) {
        __atomic_store_n(&threads[j].is_stopped, 1, __ATOMIC_RELEASE);
        (void)pthread_join(threads[j].thread, NULL);
    }
}
