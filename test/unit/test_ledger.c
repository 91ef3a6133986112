/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ledger.c - files in which processes have what they share: of a name,
 * never are two in use. Each open ledger is as that of a process of its own.
 */
#include "st_cunit.h"

#include <ucs_ledger.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "a key"
#define MAX 10


static char label[UCS_LEDGER_LABEL_MAX + 1];

/* What comes between two calls of the ledger's: behind the next one that opens
 * the first ledger's file to see whether anybody is there, or that unlocks all
 * rows; once */
static void (*behind_look)(void);
static void (*behind_unlock)(void);

static int      removes;     /* Files lose their names when they are opened */
static int      is_full;     /* There is no memory */
static int      is_foreign;  /* Files are another user's */
static unsigned num_locks;   /* Calls of fcntl() */
static unsigned num_opens;   /* Calls of shm_open() */

static ucs_ledger_t first, second, third;

int __real_shm_open(const char *name, int flags, mode_t mode);
int __real_fcntl(int fd, int command, ...);
int __real_fstat(int fd, struct stat *st);
int __real_posix_fallocate(int fd, off_t offset, off_t length);


static void call_once(void (**func_p)(void))
{
    void (*func)(void) = *func_p;

    *func_p = NULL;
    if (func != NULL) {
        func();
    }
}

int __wrap_shm_open(const char *name, int flags, mode_t mode)
{
    int fd = __real_shm_open(name, flags, mode);

    if (removes) {
        shm_unlink(name);
    }
    ++num_opens;
    if (!(flags & O_CREAT) && !strcmp(name, first.name)) {
        call_once(&behind_look);
    }
    return fd;
}

int __wrap_fcntl(int fd, int command, ...)
{
    struct flock *lock;
    va_list args;
    int ret;

    va_start(args, command);
    lock = va_arg(args, struct flock*);
    va_end(args);
    ++num_locks;
    ret = __real_fcntl(fd, command, lock);
    if ((lock->l_type == F_UNLCK) && (lock->l_len == 0)) {
        call_once(&behind_unlock);
    }
    return ret;
}

int __wrap_fstat(int fd, struct stat *st)
{
    int ret = __real_fstat(fd, st);

    st->st_uid += is_foreign;
    return ret;
}

int __wrap_posix_fallocate(int fd, off_t offset, off_t length)
{
    return is_full ? ENOSPC : __real_posix_fallocate(fd, offset, length);
}

static void open_ledger(ucs_ledger_t *ledger)
{
    CU_ASSERT_FATAL(ucs_ledger_open(ledger, label, KEY) == 0);
}

/* Whether there is a file of the name that a ledger had last */
static int has_file(const ucs_ledger_t *ledger)
{
    char path[128];

    snprintf(path, sizeof(path), "/dev/shm%s", ledger->name);
    return access(path, F_OK) == 0;
}

/* They see each other */
static void check_same(ucs_ledger_t *a, ucs_ledger_t *b)
{
    CU_ASSERT(ucs_ledger_users(a) == 2);
    CU_ASSERT(ucs_ledger_users(b) == 2);
    CU_ASSERT(ucs_ledger_take(a, 0, MAX, MAX));
    CU_ASSERT(!ucs_ledger_take(b, 0, 1, MAX));
    ucs_ledger_give(a, 0, MAX);
}

ST_CASE(counts)
{
    open_ledger(&first);
    open_ledger(&second);
    check_same(&first, &second);
    CU_ASSERT(ucs_ledger_take(&first, 0, MAX - 1, MAX));
    CU_ASSERT(!ucs_ledger_take(&second, 0, 2, MAX));
    CU_ASSERT(ucs_ledger_take(&second, 0, 1, MAX));
    CU_ASSERT(ucs_ledger_take(&second, 1, 2, MAX));
    CU_ASSERT(ucs_ledger_own(&first, 0) == MAX - 1);
    CU_ASSERT(ucs_ledger_own(&second, 0) == 1);
    CU_ASSERT(ucs_ledger_own(&second, 1) == 2);
    ucs_ledger_close(&first);
    CU_ASSERT(ucs_ledger_users(&second) == 1);
    CU_ASSERT(ucs_ledger_take(&second, 0, MAX - 1, MAX));
    CU_ASSERT(has_file(&second));
    ucs_ledger_close(&second);
    CU_ASSERT(!has_file(&second));
}

ST_CASE(alone)
{
    ucs_ledger_open_alone(&first);
    CU_ASSERT(ucs_ledger_users(&first) == 1);
    CU_ASSERT(ucs_ledger_take(&first, 1, MAX, MAX));
    CU_ASSERT(!ucs_ledger_take(&first, 1, 1, MAX));
    CU_ASSERT(ucs_ledger_own(&first, 1) == MAX);
    ucs_ledger_close(&first);
}

/* The last one leaves, and removes the file; the next one makes another */
static void replace_first(void)
{
    ucs_ledger_close(&first);
    open_ledger(&second);
}

/* That comes between opening a file to see whether anybody is there, and the
 * lock that tells it: the name is not that file's any more */
ST_CASE(race_of_sweep)
{
    static ucs_ledger_t other;

    open_ledger(&first);
    behind_look = replace_first;
    CU_ASSERT_FATAL(ucs_ledger_open(&other, label, "another key") == 0);
    CU_ASSERT(behind_look == NULL);
    open_ledger(&third);
    check_same(&second, &third);
    ucs_ledger_close(&second);
    ucs_ledger_close(&third);
    ucs_ledger_close(&other);
}

static void replace_second(void)
{
    ucs_ledger_close(&second);
    open_ledger(&third);
}

/* It comes while another one leaves */
ST_CASE(race_of_close)
{
    open_ledger(&first);
    open_ledger(&second);
    behind_unlock = replace_second;
    ucs_ledger_close(&first);
    open_ledger(&first);
    check_same(&first, &third);
    ucs_ledger_close(&first);
    ucs_ledger_close(&third);
    CU_ASSERT(!has_file(&third));
}

/* Each file is removed before there is a row: it is tried again, and then the
 * reason is told */
ST_CASE(no_name)
{
    removes = 1;
    errno   = 0;
    CU_ASSERT(ucs_ledger_open(&first, label, KEY) == EAGAIN);
    removes = 0;
}

/* What is not there is told now, not by a signal when it is used */
ST_CASE(no_memory)
{
    is_full = 1;
    CU_ASSERT(ucs_ledger_open(&first, label, KEY) == ENOSPC);
    is_full = 0;
    CU_ASSERT(!has_file(&first));
}

static void end_by_limit(void)
{
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};

    _exit((setrlimit(RLIMIT_FSIZE, &limit) == 0) &&
          (ucs_ledger_open(&first, label, KEY) == EFBIG) ? 0 : 1);
}

/* Nor does a file that may not be so long end the process */
ST_CASE(file_limit)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        end_by_limit();
    }
    CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
    CU_ASSERT(WIFEXITED(status) && (WEXITSTATUS(status) == 0));
}

/* Another user's file is neither used nor removed */
ST_CASE(other_user)
{
    is_foreign = 1;
    CU_ASSERT(ucs_ledger_open(&first, label, KEY) == EACCES);
    is_foreign = 0;
    CU_ASSERT(has_file(&first));
    open_ledger(&first);
    ucs_ledger_close(&first);
    CU_ASSERT(!has_file(&first));
}

/* A process that takes all, says so, and waits for its end */
static pid_t start_taker(void)
{
    pid_t pid;
    int fds[2];
    char byte;

    CU_ASSERT_FATAL(pipe(fds) == 0);
    pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        if ((ucs_ledger_open(&first, label, KEY) == 0) &&
            ucs_ledger_take(&first, 0, MAX, MAX) &&
            (write(fds[1], "", 1) == 1)) {
            pause();
        }
        _exit(1);
    }
    close(fds[1]);
    CU_ASSERT_FATAL(read(fds[0], &byte, 1) == 1);
    close(fds[0]);
    return pid;
}

/* What a killed process had can be had soon; but whoever is refused again and
 * again does not look each time */
ST_CASE(killed)
{
    pid_t pid = start_taker();
    unsigned i;

    open_ledger(&second);
    CU_ASSERT(ucs_ledger_users(&second) == 2);
    num_locks = 0;
    for (i = 0; i < 1000; ++i) {
        CU_ASSERT(!ucs_ledger_take(&second, 0, 1, MAX));
    }
    CU_ASSERT(num_locks < 100);
    kill(pid, SIGKILL);
    CU_ASSERT(waitpid(pid, NULL, 0) == pid);
    while (!ucs_ledger_take(&second, 0, MAX, MAX)) {
        sched_yield();
    }
    CU_ASSERT(ucs_ledger_users(&second) == 1);
    ucs_ledger_close(&second);
    CU_ASSERT(!has_file(&second));
}

/* Files of others are not looked at by each process, but by the first one of a
 * file */
ST_CASE(looks)
{
    CU_ASSERT_FATAL(ucs_ledger_open(&third, label, "another key") == 0);
    num_opens = 0;
    open_ledger(&first);
    CU_ASSERT(num_opens == 3);
    num_opens = 0;
    open_ledger(&second);
    CU_ASSERT(num_opens == 1);
    ucs_ledger_close(&second);
    ucs_ledger_close(&first);
    ucs_ledger_close(&third);
}

/* All of them were killed: the next one that opens any file removes theirs */
ST_CASE(left_behind)
{
    pid_t pid = start_taker();

    open_ledger(&second);
    CU_ASSERT_FATAL(ucs_ledger_open(&third, label, "another key") == 0);
    ucs_ledger_close(&third);
    CU_ASSERT(has_file(&second));
    kill(pid, SIGKILL);
    CU_ASSERT(waitpid(pid, NULL, 0) == pid);
    ucs_ledger_close(&second);
    CU_ASSERT(!has_file(&second));

    pid = start_taker();
    kill(pid, SIGKILL);
    CU_ASSERT(waitpid(pid, NULL, 0) == pid);
    CU_ASSERT(has_file(&second));
    CU_ASSERT_FATAL(ucs_ledger_open(&third, label, "another key") == 0);
    CU_ASSERT(!has_file(&second));
    ucs_ledger_close(&third);
}

int main(int argc, char **argv)
{
    snprintf(label, sizeof(label), "st-test-%d", (int)getpid());
    return st_cunit_main("ledger", argc, argv);
}
