/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_service.c - what the processes of a service share of the device.
 *
 * A memory file of the node has a row for each process. Its owner has a lock on
 * the byte of the row's number: the kernel drops it when the process ends,
 * however that happens. To take something a process adds to its row, then looks
 * whether all rows together have too much, and if so gives it back: no lock is
 * held, so that a process that is stopped or killed keeps nobody waiting.
 */
#include "nic/cxiemu_service.h"
#include "cxiemu.h"
#include "fabric/cxiemu_log.h"
#include "fabric/cxiemu_param.h"
#include "nic/cxiemu_nic.h"

#include <rdma/fi_errno.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CXIEMU_SERVICE_ROWS  512
#define CXIEMU_SERVICE_TRIES 100

/* How often dead processes are looked for */
#define CXIEMU_SERVICE_REAP_NS 100000000ull

#define CXIEMU_SERVICE_DIR   "/dev/shm"
#define CXIEMU_SERVICE_LABEL "st-service-%u-"

typedef struct cxiemu_service_row {
    uint32_t used[CXIEMU_SERVICE_LAST]; /**< Atomic */
} cxiemu_service_row_t;

/** The part of this process: of all its domains. */
static struct {
    pthread_mutex_t      lock;   /**< For opening, closing, and dead rows */
    unsigned             refs;
    int                  fd;     /**< Of the file, or -1 */
    cxiemu_service_row_t *rows;  /**< Of all processes; NULL: not shared */
    cxiemu_service_row_t *own;   /**< The row of this process */
    cxiemu_service_row_t alone;  /**< That, where it is not shared */
    char                 name[128];
} cxiemu_service = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .fd   = -1,
    .own  = &cxiemu_service.alone
};


const char *cxiemu_service_name(void)
{
    static char name[96];
    const char *job = cxiemu_param()->service;

    if (!cxiemu_param()->strict || !strcmp(job, "own")) {
        return "";
    }
    if (job[0] == '\0') {
        /* A launcher's job; else what a shell, or a test, takes for one */
        job = getenv("PMIX_NAMESPACE");
    }
    if (job == NULL) {
        snprintf(name, sizeof(name), "group-%d", (int)getpgrp());
    } else {
        snprintf(name, sizeof(name), "%s", job);
    }
    return name;
}

/* A name for the memory file: of a user's service. */
static void cxiemu_service_path(char *path, size_t size, const char *service)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    for (; *service != '\0'; ++service) {
        hash = (hash ^ (uint8_t)*service) * 0x100000001b3ull;
    }
    snprintf(path, size, "/" CXIEMU_SERVICE_LABEL "%016llx",
             (unsigned)getuid(), (unsigned long long)hash);
}

/* Lock, or with F_UNLCK unlock, rows of the file; whether that was possible. */
static int cxiemu_service_lock(int fd, short type, unsigned row,
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

static int cxiemu_service_is_empty(const cxiemu_service_row_t *row)
{
    unsigned used = 0;
    unsigned i;

    for (i = 0; i < CXIEMU_SERVICE_LAST; ++i) {
        used |= __atomic_load_n(&row->used[i], __ATOMIC_SEQ_CST);
    }
    return used == 0;
}

/* Rows of processes that have died are free. The mutex is held. */
static void cxiemu_service_reap(void)
{
    cxiemu_service_row_t *row;
    unsigned i, j;

    for (i = 0; i < CXIEMU_SERVICE_ROWS; ++i) {
        row = &cxiemu_service.rows[i];
        if ((row == cxiemu_service.own) || cxiemu_service_is_empty(row) ||
            !cxiemu_service_lock(cxiemu_service.fd, F_WRLCK, i, 1)) {
            continue;
        }
        for (j = 0; j < CXIEMU_SERVICE_LAST; ++j) {
            __atomic_store_n(&row->used[j], 0, __ATOMIC_SEQ_CST);
        }
        (void)cxiemu_service_lock(cxiemu_service.fd, F_UNLCK, i, 1);
    }
}

/* A row of an open file, or -1. The file may be one that its last user removes
 * at this moment: that has no name any more. */
static int cxiemu_service_find_row(int fd)
{
    struct stat st;
    int i;

    for (i = 0; i < CXIEMU_SERVICE_ROWS; ++i) {
        if (cxiemu_service_lock(fd, F_WRLCK, (unsigned)i, 1)) {
            return ((fstat(fd, &st) == 0) && (st.st_nlink > 0)) ? i : -1;
        }
    }
    return -1;
}

static int cxiemu_service_map(const char *path)
{
    size_t size = CXIEMU_SERVICE_ROWS * sizeof(cxiemu_service_row_t);
    int fd      = shm_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *rows;
    int row;

    if (fd < 0) {
        return 0;
    }
    row  = cxiemu_service_find_row(fd);
    rows = ((row < 0) || (ftruncate(fd, (off_t)size) != 0)) ?
                   MAP_FAILED :
                   mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (rows == MAP_FAILED) {
        close(fd);
        return 0;
    }
    cxiemu_service.fd   = fd;
    cxiemu_service.rows = rows;
    cxiemu_service.own  = &cxiemu_service.rows[row];
    memset(cxiemu_service.own, 0, sizeof(*cxiemu_service.own));
    cxiemu_service_reap();
    return 1;
}

/* Processes that were killed have left files behind: remove those in which
 * nobody has a row. */
static void cxiemu_service_sweep(void)
{
    DIR *dir = opendir(CXIEMU_SERVICE_DIR);
    char prefix[32], path[NAME_MAX + 2];
    struct dirent *entry;
    int fd;

    snprintf(prefix, sizeof(prefix), CXIEMU_SERVICE_LABEL, (unsigned)getuid());
    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        if (strncmp(entry->d_name, prefix, strlen(prefix))) {
            continue;
        }
        snprintf(path, sizeof(path), "/%s", entry->d_name);
        fd = shm_open(path, O_RDWR | O_CLOEXEC, 0);
        if (fd >= 0) {
            if (cxiemu_service_lock(fd, F_WRLCK, 0, 0)) {
                shm_unlink(path);
            }
            close(fd);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

void cxiemu_service_open(void)
{
    const char *name = cxiemu_service_name();
    unsigned tries   = 0;

    pthread_mutex_lock(&cxiemu_service.lock);
    if ((cxiemu_service.refs++ == 0) && (name[0] != '\0')) {
        cxiemu_service_sweep();
        cxiemu_service_path(cxiemu_service.name, sizeof(cxiemu_service.name),
                            name);
        while (!cxiemu_service_map(cxiemu_service.name) &&
               (++tries < CXIEMU_SERVICE_TRIES)) {
            usleep(100);
        }
        if (cxiemu_service.rows == NULL) {
            cxiemu_warn(DOMAIN, "no part in service %s: %s\n", name,
                        strerror(errno));
        }
    }
    pthread_mutex_unlock(&cxiemu_service.lock);
}

void cxiemu_service_close(void)
{
    size_t size = CXIEMU_SERVICE_ROWS * sizeof(cxiemu_service_row_t);

    pthread_mutex_lock(&cxiemu_service.lock);
    if ((--cxiemu_service.refs == 0) && (cxiemu_service.rows != NULL)) {
        memset(cxiemu_service.own, 0, sizeof(*cxiemu_service.own));
        (void)cxiemu_service_lock(cxiemu_service.fd, F_UNLCK, 0, 0);
        /* Possible if nobody has a row */
        if (cxiemu_service_lock(cxiemu_service.fd, F_WRLCK, 0, 0)) {
            shm_unlink(cxiemu_service.name);
        }
        munmap(cxiemu_service.rows, size);
        close(cxiemu_service.fd);
        cxiemu_service.fd   = -1;
        cxiemu_service.rows = NULL;
        cxiemu_service.own  = &cxiemu_service.alone;
        memset(cxiemu_service.own, 0, sizeof(*cxiemu_service.own));
    }
    pthread_mutex_unlock(&cxiemu_service.lock);
}

static size_t cxiemu_service_sum(cxiemu_resource_t resource)
{
    const cxiemu_service_row_t *rows = cxiemu_service.rows;
    unsigned count                   = CXIEMU_SERVICE_ROWS;
    size_t sum                       = 0;
    unsigned i;

    if (rows == NULL) {
        rows  = &cxiemu_service.alone;
        count = 1;
    }
    for (i = 0; i < count; ++i) {
        sum += __atomic_load_n(&rows[i].used[resource], __ATOMIC_SEQ_CST);
    }
    return sum;
}

/* It takes system calls, and a stalled queue asks again and again */
static int cxiemu_service_reap_due(void)
{
    static uint64_t next;
    uint64_t now = cxiemu_nic_now();
    uint64_t due = __atomic_load_n(&next, __ATOMIC_RELAXED);

    return (now >= due) &&
           __atomic_compare_exchange_n(&next, &due,
                                       now + CXIEMU_SERVICE_REAP_NS, 0,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

int cxiemu_service_take(cxiemu_resource_t resource, size_t count, size_t max)
{
    uint32_t *own = &cxiemu_service.own->used[resource];

    __atomic_fetch_add(own, (uint32_t)count, __ATOMIC_SEQ_CST);
    if (cxiemu_service_sum(resource) <= max) {
        return 0;
    }
    if ((cxiemu_service.rows != NULL) && cxiemu_service_reap_due()) {
        pthread_mutex_lock(&cxiemu_service.lock);
        cxiemu_service_reap();
        pthread_mutex_unlock(&cxiemu_service.lock);
        if (cxiemu_service_sum(resource) <= max) {
            return 0;
        }
    }
    __atomic_fetch_sub(own, (uint32_t)count, __ATOMIC_SEQ_CST);
    return -FI_ENOSPC;
}

void cxiemu_service_give(cxiemu_resource_t resource, size_t count)
{
    __atomic_fetch_sub(&cxiemu_service.own->used[resource], (uint32_t)count,
                       __ATOMIC_SEQ_CST);
}

size_t cxiemu_service_own(cxiemu_resource_t resource)
{
    return __atomic_load_n(&cxiemu_service.own->used[resource],
                           __ATOMIC_RELAXED);
}
