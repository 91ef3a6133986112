/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ledger.c - how much of something scarce each process of the node has.
 */
#include <ucs_ledger.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Processes; more than a node has processors find no row */
#define UCS_LEDGER_ROWS 1024
#define UCS_LEDGER_SIZE (UCS_LEDGER_ROWS * sizeof(ucs_ledger_row_t))

/* The file may be removed whenever it is opened. So many tries take 10 ms: each
 * sleeps, from the first one on */
#define UCS_LEDGER_TRIES 100

/* How often the dead are looked for. That takes a system call for each row, and
 * a process that was refused asks again and again */
#define UCS_LEDGER_REAP_NS 100000000ull

/* Where memory files are, and how many digits end a name */
#define UCS_LEDGER_DIR    "/dev/shm"
#define UCS_LEDGER_DIGITS 16


/* FNV-1a: a key of any length, and with any letters, is a file's */
static void ucs_ledger_set_name(ucs_ledger_t *ledger, const char *label,
                                const char *key)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    for (; *key != '\0'; ++key) {
        hash = (hash ^ (uint8_t)*key) * 0x100000001b3ull;
    }
    snprintf(ledger->name, sizeof(ledger->name), "/%.*s-%u-%0*llx",
             UCS_LEDGER_LABEL_MAX, label, (unsigned)geteuid(),
             UCS_LEDGER_DIGITS, (unsigned long long)hash);
}

/* Lock rows or, with F_UNLCK, unlock them; whether that was possible. Locks are
 * of the open file: a process that opens it elsewhere does not lose them. */
static int ucs_ledger_lock(int fd, short type, unsigned row, unsigned count)
{
    struct flock lock = {
        .l_type   = type,
        .l_whence = SEEK_SET,
        .l_start  = row,
        .l_len    = count
    };

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* An open file may have lost its name, which may be another one's now; or it
 * was made by another user. 0, or an errno. */
static int ucs_ledger_check(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return errno;
    }
    return (st.st_uid != geteuid()) ? EACCES : (st.st_nlink == 0) ? EAGAIN : 0;
}

/* Close a file, and remove it if nobody has a row. Files lose their names under
 * the lock of all rows alone: with it, a file that has one has this one. */
static void ucs_ledger_close_file(int fd, const char *name)
{
    if (ucs_ledger_lock(fd, F_WRLCK, 0, 0) && (ucs_ledger_check(fd) == 0)) {
        shm_unlink(name);
    }
    close(fd);
}

/* Processes that were killed, and nobody after them, have left their files
 * behind. One process of those that share something looks, as a look is at all
 * files of the node, which has some of each process. */
static void ucs_ledger_sweep(const ucs_ledger_t *ledger)
{
    size_t length = strlen(ledger->name + 1) - UCS_LEDGER_DIGITS;
    DIR *dir      = opendir(UCS_LEDGER_DIR);
    char name[NAME_MAX + 2];
    struct dirent *entry;
    int fd;

    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        if (strncmp(entry->d_name, ledger->name + 1, length)) {
            continue;
        }
        snprintf(name, sizeof(name), "/%s", entry->d_name);
        fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
        if (fd >= 0) {
            ucs_ledger_close_file(fd, name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static void ucs_ledger_clear(ucs_ledger_row_t *row)
{
    unsigned i;

    for (i = 0; i < UCS_LEDGER_NUMBERS; ++i) {
        __atomic_store_n(&row->numbers[i], 0, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&row->is_used, 0, __ATOMIC_SEQ_CST);
}

/* Rows of processes that have died are free again. Whether it was time to look:
 * of one process, one thread does. */
static int ucs_ledger_reap(ucs_ledger_t *ledger)
{
    struct timespec ts;
    uint64_t now;
    unsigned i;
    int is_due;

    if (pthread_mutex_trylock(&ledger->lock) != 0) {
        return 0;
    }
    clock_gettime(CLOCK_MONOTONIC, &ts);
    now    = ((uint64_t)ts.tv_sec * 1000000000ull) + (uint64_t)ts.tv_nsec;
    is_due = (now >= ledger->next_reap);
    if (is_due) {
        ledger->next_reap = now + UCS_LEDGER_REAP_NS;
    }
    for (i = 0; is_due && (i < ledger->num_rows); ++i) {
        if ((&ledger->rows[i] != ledger->own) &&
            __atomic_load_n(&ledger->rows[i].is_used, __ATOMIC_SEQ_CST) &&
            ucs_ledger_lock(ledger->fd, F_WRLCK, i, 1)) {
            ucs_ledger_clear(&ledger->rows[i]);
            (void)ucs_ledger_lock(ledger->fd, F_UNLCK, i, 1);
        }
    }
    pthread_mutex_unlock(&ledger->lock);
    return is_due;
}

static void ucs_ledger_init(ucs_ledger_t *ledger, ucs_ledger_row_t *rows,
                            unsigned num_rows, unsigned own)
{
    ledger->rows      = rows;
    ledger->num_rows  = num_rows;
    ledger->own       = &rows[own];
    ledger->next_reap = 0;
    pthread_mutex_init(&ledger->lock, NULL);
    ucs_ledger_clear(ledger->own);
    __atomic_store_n(&ledger->own->is_used, 1, __ATOMIC_SEQ_CST);
}

static int ucs_ledger_map(ucs_ledger_t *ledger)
{
    unsigned row = 0;
    void *rows   = MAP_FAILED;
    struct rlimit limit;
    int ret;

    /* The kernel ends a process that makes a longer file */
    if ((getrlimit(RLIMIT_FSIZE, &limit) == 0) &&
        (limit.rlim_cur < UCS_LEDGER_SIZE)) {
        return EFBIG;
    }
    ledger->fd = shm_open(ledger->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (ledger->fd < 0) {
        return errno;
    }
    while ((row < UCS_LEDGER_ROWS) &&
           !ucs_ledger_lock(ledger->fd, F_WRLCK, row, 1)) {
        ++row;
    }
    ret = (row == UCS_LEDGER_ROWS) ? EAGAIN : ucs_ledger_check(ledger->fd);
    if (ret == 0) {
        /* Memory that is not there is found here, not by a signal later */
        ret = posix_fallocate(ledger->fd, 0, UCS_LEDGER_SIZE);
    }
    if (ret == 0) {
        rows = mmap(NULL, UCS_LEDGER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
                    ledger->fd, 0);
        ret  = (rows == MAP_FAILED) ? errno : 0;
    }
    if (ret != 0) {
        ucs_ledger_close_file(ledger->fd, ledger->name);
        return ret;
    }
    ucs_ledger_init(ledger, rows, UCS_LEDGER_ROWS, row);
    (void)ucs_ledger_reap(ledger);
    if (row == 0) {
        ucs_ledger_sweep(ledger);
    }
    return 0;
}

int ucs_ledger_open(ucs_ledger_t *ledger, const char *label, const char *key)
{
    unsigned tries = 0;
    int ret;

    ucs_ledger_set_name(ledger, label, key);
    while ((((ret = ucs_ledger_map(ledger)) == EAGAIN) || (ret == EINTR)) &&
           (++tries < UCS_LEDGER_TRIES)) {
        usleep(100);
    }
    return ret;
}

void ucs_ledger_open_alone(ucs_ledger_t *ledger)
{
    ledger->fd = -1;
    ucs_ledger_init(ledger, &ledger->alone, 1, 0);
}

void ucs_ledger_close(ucs_ledger_t *ledger)
{
    ucs_ledger_clear(ledger->own);
    if (ledger->fd >= 0) {
        munmap(ledger->rows, UCS_LEDGER_SIZE);
        /* Of two that leave at a time, the second one finds nobody */
        (void)ucs_ledger_lock(ledger->fd, F_UNLCK, 0, 0);
        ucs_ledger_close_file(ledger->fd, ledger->name);
    }
    pthread_mutex_destroy(&ledger->lock);
}

void ucs_ledger_forked(ucs_ledger_t *ledger)
{
    unsigned i;

    pthread_mutex_init(&ledger->lock, NULL);
    if (ledger->fd < 0) {
        return;
    }
    for (i = 0; i < UCS_LEDGER_NUMBERS; ++i) {
        ledger->alone.numbers[i] = ucs_ledger_own(ledger, i);
    }
    ledger->alone.is_used = 1;
    munmap(ledger->rows, UCS_LEDGER_SIZE);
    close(ledger->fd); /* the parent has it open, too, and so its lock */
    ledger->fd       = -1;
    ledger->rows     = &ledger->alone;
    ledger->num_rows = 1;
    ledger->own      = &ledger->alone;
}

static uint64_t ucs_ledger_sum(const ucs_ledger_t *ledger, unsigned number)
{
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < ledger->num_rows; ++i) {
        sum += __atomic_load_n(&ledger->rows[i].numbers[number],
                               __ATOMIC_SEQ_CST);
    }
    return sum;
}

int ucs_ledger_take(ucs_ledger_t *ledger, unsigned number, uint32_t count,
                    uint64_t max)
{
    /* Before the sum: of two processes one at least sees both */
    __atomic_fetch_add(&ledger->own->numbers[number], count, __ATOMIC_SEQ_CST);
    if ((ucs_ledger_sum(ledger, number) <= max) ||
        (ucs_ledger_reap(ledger) && (ucs_ledger_sum(ledger, number) <= max))) {
        return 1;
    }
    ucs_ledger_give(ledger, number, count);
    return 0;
}

void ucs_ledger_give(ucs_ledger_t *ledger, unsigned number, uint32_t count)
{
    __atomic_fetch_sub(&ledger->own->numbers[number], count, __ATOMIC_SEQ_CST);
}

uint32_t ucs_ledger_own(const ucs_ledger_t *ledger, unsigned number)
{
    return __atomic_load_n(&ledger->own->numbers[number], __ATOMIC_RELAXED);
}

unsigned ucs_ledger_users(ucs_ledger_t *ledger)
{
    unsigned count = 0;
    unsigned i;

    (void)ucs_ledger_reap(ledger);
    for (i = 0; i < ledger->num_rows; ++i) {
        count += __atomic_load_n(&ledger->rows[i].is_used, __ATOMIC_RELAXED);
    }
    return count;
}
