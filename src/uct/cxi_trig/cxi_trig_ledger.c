/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_ledger.c - how much of something scarce each process of the node
 * has.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_ledger.h"

#include <ucs/debug/log.h>
#include <ucs/sys/string.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Processes; more than a node has processors find no row */
#define UCT_CXI_TRIG_LEDGER_ROWS 1024

/* Set in the row of a process that takes part */
#define UCT_CXI_TRIG_LEDGER_USER 0x80000000u

#define UCT_CXI_TRIG_LEDGER_SIZE \
    (UCT_CXI_TRIG_LEDGER_ROWS * sizeof(uint32_t))

/* Somebody may remove the file whenever it is opened */
#define UCT_CXI_TRIG_LEDGER_TRIES 100

#define UCT_CXI_TRIG_LEDGER_DIR   "/dev/shm"
#define UCT_CXI_TRIG_LEDGER_LABEL "ucx-st-%u-"


/* FNV-1a: a name of any length, and with any letters, is a file's */
static void uct_cxi_trig_ledger_set_name(uct_cxi_trig_ledger_t *ledger,
                                         const char *key)
{
    uint64_t hash = 0xcbf29ce484222325ul;

    for (; *key != '\0'; ++key) {
        hash = (hash ^ (uint8_t)*key) * 0x100000001b3ul;
    }
    ucs_snprintf_zero(ledger->name, sizeof(ledger->name),
                      "/" UCT_CXI_TRIG_LEDGER_LABEL "%016lx",
                      (unsigned)getuid(), (unsigned long)hash);
}

/* Lock rows or, with F_UNLCK, unlock them; whether that was possible. Locks are
 * of the open file: a process that opens it elsewhere does not lose them. */
static int uct_cxi_trig_ledger_lock(int fd, short type, unsigned row,
                                    unsigned count)
{
    struct flock lock = {
        .l_type   = type,
        .l_whence = SEEK_SET,
        .l_start  = row,
        .l_len    = count
    };

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Processes that were killed, and nobody after them, have left their files
 * behind: remove those in which nobody has a row. */
static void uct_cxi_trig_ledger_sweep(void)
{
    DIR *dir = opendir(UCT_CXI_TRIG_LEDGER_DIR);
    char prefix[32], path[NAME_MAX + 2];
    struct dirent *entry;
    int fd;

    if (dir == NULL) {
        return;
    }
    ucs_snprintf_zero(prefix, sizeof(prefix), UCT_CXI_TRIG_LEDGER_LABEL,
                      (unsigned)getuid());
    while ((entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, prefix, strlen(prefix))) {
            continue;
        }
        ucs_snprintf_zero(path, sizeof(path), "/%s", entry->d_name);
        fd = shm_open(path, O_RDWR | O_CLOEXEC, 0);
        if (fd >= 0) {
            if (uct_cxi_trig_ledger_lock(fd, F_WRLCK, 0, 0)) {
                shm_unlink(path);
            }
            close(fd);
        }
    }
    closedir(dir);
}

/* Rows of processes that have died are free again. */
static void uct_cxi_trig_ledger_reap(uct_cxi_trig_ledger_t *ledger)
{
    uint32_t *row;
    unsigned i;

    for (i = 0; i < UCT_CXI_TRIG_LEDGER_ROWS; ++i) {
        row = &ledger->rows[i];
        if ((row != ledger->own) &&
            (__atomic_load_n(row, __ATOMIC_SEQ_CST) != 0) &&
            uct_cxi_trig_ledger_lock(ledger->fd, F_WRLCK, i, 1)) {
            __atomic_store_n(row, 0, __ATOMIC_SEQ_CST);
            (void)uct_cxi_trig_ledger_lock(ledger->fd, F_UNLCK, i, 1);
        }
    }
}

/* A row of an open file, or -1. A file that its last user removes at this
 * moment has no name any more: a later process would find another one. */
static int uct_cxi_trig_ledger_find_row(int fd)
{
    struct stat st;
    int i;

    for (i = 0; i < UCT_CXI_TRIG_LEDGER_ROWS; ++i) {
        if (uct_cxi_trig_ledger_lock(fd, F_WRLCK, i, 1)) {
            return ((fstat(fd, &st) == 0) && (st.st_nlink > 0)) ? i : -1;
        }
    }
    errno = EAGAIN;
    return -1;
}

static ucs_status_t uct_cxi_trig_ledger_map(uct_cxi_trig_ledger_t *ledger)
{
    void *rows = MAP_FAILED;
    int row;

    ledger->fd = shm_open(ledger->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (ledger->fd < 0) {
        return UCS_ERR_IO_ERROR;
    }
    row = uct_cxi_trig_ledger_find_row(ledger->fd);
    if ((row >= 0) &&
        (ftruncate(ledger->fd, UCT_CXI_TRIG_LEDGER_SIZE) == 0)) {
        rows = mmap(NULL, UCT_CXI_TRIG_LEDGER_SIZE, PROT_READ | PROT_WRITE,
                    MAP_SHARED, ledger->fd, 0);
    }
    if (rows == MAP_FAILED) {
        close(ledger->fd);
        return UCS_ERR_IO_ERROR;
    }
    ledger->rows = rows;
    ledger->own  = &ledger->rows[row];
    __atomic_store_n(ledger->own, UCT_CXI_TRIG_LEDGER_USER, __ATOMIC_SEQ_CST);
    uct_cxi_trig_ledger_reap(ledger);
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_ledger_open(uct_cxi_trig_ledger_t *ledger,
                                      const char *key)
{
    unsigned tries = 0;
    ucs_status_t status;

    uct_cxi_trig_ledger_set_name(ledger, key);
    uct_cxi_trig_ledger_sweep();
    while (((status = uct_cxi_trig_ledger_map(ledger)) != UCS_OK) &&
           (++tries < UCT_CXI_TRIG_LEDGER_TRIES)) {
        usleep(100);
    }
    if (status != UCS_OK) {
        ucs_diag("cannot open shared memory %s: %s", ledger->name,
                 strerror(errno));
    }
    return status;
}

void uct_cxi_trig_ledger_close(uct_cxi_trig_ledger_t *ledger)
{
    __atomic_store_n(ledger->own, 0, __ATOMIC_SEQ_CST);
    (void)uct_cxi_trig_ledger_lock(ledger->fd, F_UNLCK, 0, 0);
    /* Possible if nobody has a row */
    if (uct_cxi_trig_ledger_lock(ledger->fd, F_WRLCK, 0, 0)) {
        shm_unlink(ledger->name);
    }
    munmap(ledger->rows, UCT_CXI_TRIG_LEDGER_SIZE);
    close(ledger->fd);
}

static unsigned uct_cxi_trig_ledger_sum(const uct_cxi_trig_ledger_t *ledger)
{
    unsigned sum = 0;
    unsigned i;

    for (i = 0; i < UCT_CXI_TRIG_LEDGER_ROWS; ++i) {
        sum += __atomic_load_n(&ledger->rows[i], __ATOMIC_SEQ_CST) &
               ~UCT_CXI_TRIG_LEDGER_USER;
    }
    return sum;
}

ucs_status_t uct_cxi_trig_ledger_take(uct_cxi_trig_ledger_t *ledger,
                                      unsigned count, unsigned max)
{
    /* Before the sum: of two processes one at least sees both */
    __atomic_fetch_add(ledger->own, count, __ATOMIC_SEQ_CST);
    if (uct_cxi_trig_ledger_sum(ledger) <= max) {
        return UCS_OK;
    }

    uct_cxi_trig_ledger_reap(ledger);
    if (uct_cxi_trig_ledger_sum(ledger) <= max) {
        return UCS_OK;
    }
    uct_cxi_trig_ledger_give(ledger, count);
    return UCS_ERR_NO_RESOURCE;
}

void uct_cxi_trig_ledger_give(uct_cxi_trig_ledger_t *ledger, unsigned count)
{
    __atomic_fetch_sub(ledger->own, count, __ATOMIC_SEQ_CST);
}

unsigned uct_cxi_trig_ledger_users(const uct_cxi_trig_ledger_t *ledger)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < UCT_CXI_TRIG_LEDGER_ROWS; ++i) {
        count += (__atomic_load_n(&ledger->rows[i], __ATOMIC_RELAXED) &
                  UCT_CXI_TRIG_LEDGER_USER) != 0;
    }
    return count;
}
