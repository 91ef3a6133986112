/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_process.c - processes, by numbers, and their files. */
#include "base/cxiemu_process.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_param.h"

#include <ucs_fork.h>

#include <rdma/fi_errno.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define CXIEMU_PROCESS_LOCKS "processes"

/* Numbers are drawn at random, and the first one behind that is free is taken:
 * peers of a process that is gone look at its number for a while, and another
 * one's files, which are being removed, have its own */
#define CXIEMU_PROCESS_NUMBERS (1u << 30)
#define CXIEMU_PROCESS_TRIES   65536

/** This process in the directory. */
static struct {
    pthread_mutex_t lock;
    uint32_t        number; /**< 0: none yet */
    int             fd;     /**< Has the lock; open if there is a number */
} cxiemu_process = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


int cxiemu_process_is_pid(void)
{
    return cxiemu_param()->dir < 0;
}

/* Takes, gives back or looks at the locks of numbers, a length of 0 is all from
 * there on; whether nobody else has one. Locks are of the open file: a process
 * that closes another one keeps them. */
static int cxiemu_process_lock(int command, short type, uint32_t number,
                               uint32_t length)
{
    struct flock lock = {
        .l_type   = type,
        .l_whence = SEEK_SET,
        .l_start  = number,
        .l_len    = length
    };

    return (fcntl(cxiemu_process.fd, command, &lock) == 0) &&
           ((command != F_OFD_GETLK) || (lock.l_type == F_UNLCK));
}

static void cxiemu_process_name(char *name, size_t size, uint32_t number,
                                uint32_t fd)
{
    snprintf(name, size, "%u.%u", number, fd);
}

/* Removes files of processes that are gone. No process takes such a number
 * while its files are removed. */
static void cxiemu_process_sweep(void)
{
    int fd   = openat(cxiemu_param()->dir, ".", O_RDONLY | O_CLOEXEC);
    DIR *dir = (fd < 0) ? NULL : fdopendir(fd);
    struct dirent *entry;
    char name[32];
    uint32_t number, file;

    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        if (sscanf(entry->d_name, "%u.%u", &number, &file) != 2) {
            continue;
        }
        cxiemu_process_name(name, sizeof(name), number, file);
        if (!strcmp(name, entry->d_name) &&
            cxiemu_process_lock(F_OFD_SETLK, F_WRLCK, number, 1)) {
            (void)unlinkat(cxiemu_param()->dir, name, 0);
            (void)cxiemu_process_lock(F_OFD_SETLK, F_UNLCK, number, 1);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* Lock held. The first process of several removes what earlier ones left. */
static int cxiemu_process_take_number(void)
{
    unsigned tries = 0;
    uint32_t number;
    int err;

    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number)) {
        number = (uint32_t)getpid();
    }
    number = 1 + (number % CXIEMU_PROCESS_NUMBERS);

    cxiemu_process.fd = openat(cxiemu_param()->dir, CXIEMU_PROCESS_LOCKS,
                               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
                               O_NONBLOCK, S_IRUSR | S_IWUSR);
    if (cxiemu_process.fd < 0) {
        return errno;
    }
    if (cxiemu_process_lock(F_OFD_GETLK, F_WRLCK, 0, 0)) {
        cxiemu_process_sweep();
    }
    while (!cxiemu_process_lock(F_OFD_SETLK, F_WRLCK, number + tries, 1)) {
        err = errno;
        if (((err != EAGAIN) && (err != EACCES)) ||
            (++tries == CXIEMU_PROCESS_TRIES)) {
            close(cxiemu_process.fd);
            return err;
        }
    }
    cxiemu_process.number = number + tries;
    return 0;
}

uint32_t cxiemu_process_self(void)
{
    uint32_t number;
    int err;

    if (cxiemu_process_is_pid()) {
        return (uint32_t)getpid();
    }
    pthread_mutex_lock(&cxiemu_process.lock);
    if (cxiemu_process.number == 0) {
        err = cxiemu_process_take_number();
        if (err != 0) {
            cxiemu_warn(FABRIC, "no number in the directory FI_CXIEMU_DIR, by "
                        "its file " CXIEMU_PROCESS_LOCKS ": %s\n",
                        strerror(err));
        }
    }
    number = cxiemu_process.number;
    pthread_mutex_unlock(&cxiemu_process.lock);
    return number;
}

int cxiemu_process_is_gone(uint32_t number)
{
    if (cxiemu_process_is_pid()) {
        return (kill((pid_t)number, 0) != 0) && (errno == ESRCH);
    }
    return (number != cxiemu_process_self()) &&
           cxiemu_process_lock(F_OFD_GETLK, F_WRLCK, number, 1);
}


int cxiemu_process_create_file(size_t length)
{
    uint32_t number = cxiemu_process_self();
    char path[32], name[32];
    int fd, err;

    if (number == 0) {
        return -FI_EACCES;
    }
    /* It gets its name, which has the descriptor, as it is complete */
    fd = openat(cxiemu_param()->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC,
                S_IRUSR | S_IWUSR);
    if (fd < 0) {
        err = errno;
        goto err_log;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    cxiemu_process_name(name, sizeof(name), number, (uint32_t)fd);
    if ((ftruncate(fd, (off_t)length) != 0) ||
        (linkat(AT_FDCWD, path, cxiemu_param()->dir, name,
                AT_SYMLINK_FOLLOW) != 0)) {
        err = errno;
        goto err_close;
    }
    return fd;

err_close:
    close(fd);
err_log:
    cxiemu_warn(FABRIC, "no file in the directory FI_CXIEMU_DIR: %s\n",
                strerror(err));
    return -err;
}

int cxiemu_process_open_file(uint32_t number, uint32_t fd)
{
    char name[32];

    cxiemu_process_name(name, sizeof(name), number, fd);
    return openat(cxiemu_param()->dir, name,
                  O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

void cxiemu_process_remove_file(int fd)
{
    char name[32];

    if (!cxiemu_process_is_pid()) {
        cxiemu_process_name(name, sizeof(name), cxiemu_process_self(),
                            (uint32_t)fd);
        (void)unlinkat(cxiemu_param()->dir, name, 0);
    }
}


void cxiemu_process_fork_begin(void)
{
    ucs_fork_lock(&cxiemu_process.lock);
}

void cxiemu_process_fork_end(int is_child)
{
    if (is_child && (cxiemu_process.number != 0)) {
        /* The parent has it open, too, and so its lock */
        close(cxiemu_process.fd);
        cxiemu_process.number = 0;
    }
    ucs_fork_unlock(&cxiemu_process.lock, is_child);
}
