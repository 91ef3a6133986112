/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_process.c - whether a peer's process has ended, with and without
 * pidfd.
 */
#include "st_cunit.h"
#include "st_intercept.h"

#include "core/st_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/** A child that does nothing, and where it is. */
typedef struct {
    pid_t          pid;
    ucp_st_place_t place;
} child_t;

static void child_begin(child_t *child)
{
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
    child->pid = fork();
    CU_ASSERT_FATAL(child->pid >= 0);
    if (child->pid == 0) {
        ucp_st_process_get_place(&child->place);
        (void)!write(fds[1], &child->place, sizeof(child->place));
        for (;;) {
            pause();
        }
    }
    CU_ASSERT_EQUAL(read(fds[0], &child->place, sizeof(child->place)),
                    sizeof(child->place));
    close(fds[0]);
    close(fds[1]);
}

static void child_reap(const child_t *child)
{
    CU_ASSERT_EQUAL(waitpid(child->pid, NULL, 0), child->pid);
}

/* It is not waited for: its number stays */
static void child_kill(const child_t *child)
{
    siginfo_t info;

    CU_ASSERT_EQUAL(kill(child->pid, SIGKILL), 0);
    CU_ASSERT_EQUAL(waitid(P_PID, child->pid, &info, WEXITED | WNOWAIT), 0);
}

static void open_child(ucp_st_process_t *process, const child_t *child)
{
    ucp_st_place_t own;

    ucp_st_process_get_place(&own);
    ucp_st_process_open(process, &child->place, &own);
}

/* It lives; it has ended and nobody has waited for it; it is gone */
static void run_end(void)
{
    ucp_st_process_t process;
    child_t child;

    child_begin(&child);
    open_child(&process, &child);
    CU_ASSERT_FALSE(ucp_st_process_has_ended(&process));
    child_kill(&child);
    CU_ASSERT_TRUE(ucp_st_process_has_ended(&process));
    child_reap(&child);
    CU_ASSERT_TRUE(ucp_st_process_has_ended(&process));
    CU_ASSERT_TRUE(ucp_st_process_is_dead(&process));
    ucp_st_process_close(&process);
}

/* One of another user namespace is here, and its files are not to be had */
ST_CASE(other_users)
{
    ucp_st_process_t process;
    child_t child;

    child_begin(&child);
    open_child(&process, &child);
    CU_ASSERT_TRUE(process.is_open);
    ucp_st_process_close(&process);
    ++child.place.user_ns;
    open_child(&process, &child);
    CU_ASSERT_TRUE(ucp_st_process_is_here(&process));
    CU_ASSERT_FALSE(process.is_open);
    child_kill(&child);
    CU_ASSERT_TRUE(ucp_st_process_has_ended(&process));
    child_reap(&child);
    ucp_st_process_close(&process);
}

/* Another process has the number of the one whose place it was, before it was
 * looked for or after that */
static void run_reuse(void)
{
    ucp_st_process_t process;
    child_t child[2];
    int i;

    child_begin(&child[0]);
    do { /* until the time of its start is another one */
        child_begin(&child[1]);
        if (child[1].place.start != child[0].place.start) {
            break;
        }
        child_kill(&child[1]);
        child_reap(&child[1]);
    } while (1);
    child[0].place.pid = child[1].pid;
    open_child(&process, &child[0]);
    CU_ASSERT_TRUE(ucp_st_process_has_ended(&process));
    ucp_st_process_close(&process);
    for (i = 0; i < 2; ++i) {
        child_kill(&child[i]);
        child_reap(&child[i]);
    }
}

ST_CASE(pidfd)
{
    run_end();
    run_reuse();
}

ST_CASE_IF(no_pidfd, st_intercept_is_possible(), "nothing can be intercepted")
{
    st_intercept_no_pidfd(1);
    run_end();
    run_reuse();
    st_intercept_no_pidfd(0);
}

ST_SUITE("st_process")
