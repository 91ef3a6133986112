/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_map.c - memory files, shared between processes. */
#include "base/cxiemu_map.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_param.h"
#include "base/cxiemu_process.h"

#include <ucs_fork.h>
#include <ucs_memfd.h>

#include <rdma/fi_errno.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define CXIEMU_MAP_LABEL "cxiemu-"

#define CXIEMU_MAP_BUCKETS 1024

/* One call of the kernel copies so much at most (it stops below 2 GiB anyway),
 * so that a copy does not keep a signal waiting for long. */
#define CXIEMU_MAP_PIECE (256ul << 20)

/** A mapping and what the table needs of it. Protected by the table's lock, but
 *  for map, which is constant until the last reference is gone. */
typedef struct cxiemu_map_entry {
    cxiemu_map_t                map; /* First: handed out */
    LIST_ENTRY(cxiemu_map_entry) list;
    dev_t                       dev;
    ino_t                       ino;
    unsigned                    refs;
} cxiemu_map_entry_t;

static pthread_mutex_t cxiemu_map_lock = PTHREAD_MUTEX_INITIALIZER;

/* By the number of the file: each peer has two */
static LIST_HEAD(cxiemu_map_list, cxiemu_map_entry)
        cxiemu_map_table[CXIEMU_MAP_BUCKETS];


void cxiemu_map_fork_begin(void)
{
    ucs_fork_lock(&cxiemu_map_lock);
}

void cxiemu_map_fork_end(int is_child)
{
    if (is_child && !ucs_fork_has(&cxiemu_map_lock)) {
        memset(cxiemu_map_table, 0, sizeof(cxiemu_map_table));
    }
    ucs_fork_unlock(&cxiemu_map_lock, is_child);
}

static struct cxiemu_map_list *cxiemu_map_bucket(ino_t ino)
{
    return &cxiemu_map_table[ino % CXIEMU_MAP_BUCKETS];
}

/* Maps a file and enters it in the table; takes fd if keep_fd. Lock held. */
static int cxiemu_map_add(int fd, const struct stat *st, int keep_fd,
                          cxiemu_map_t **map_p)
{
    cxiemu_map_entry_t *entry;
    int err;

    entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        return -FI_ENOMEM;
    }
    entry->map.length  = (size_t)st->st_size;
    entry->map.address = mmap(NULL, entry->map.length, PROT_READ | PROT_WRITE,
                              MAP_SHARED, fd, 0);
    if (entry->map.address == MAP_FAILED) {
        err = -errno;
        free(entry);
        return err;
    }
    /* What peers share is of no use in a core file, and the kernel would write
     * pages that nobody has touched, too */
    (void)madvise(entry->map.address, entry->map.length, MADV_DONTDUMP);
    entry->map.fd = keep_fd ? fd : -1;
    entry->dev    = st->st_dev;
    entry->ino    = st->st_ino;
    entry->refs   = 1;
    LIST_INSERT_HEAD(cxiemu_map_bucket(entry->ino), entry, list);
    *map_p = &entry->map;
    return 0;
}

int cxiemu_map_check_limit(size_t length)
{
    size_t max = ucs_memfd_max();

    if (length <= max) {
        return 0;
    }
    cxiemu_warn(FABRIC, "a file of memory needs %zu bytes, and 'ulimit -f' "
                "allows %zu\n", length, max);
    return -EFBIG;
}

static void cxiemu_map_close_file(int fd)
{
    cxiemu_process_remove_file(fd);
    close(fd);
}

int cxiemu_map_create(const char *label, size_t length, cxiemu_map_t **map_p)
{
    struct stat st;
    char name[64];
    int fd, ret;

    ret = cxiemu_map_check_limit(length);
    if (ret != 0) {
        return ret;
    }
    snprintf(name, sizeof(name), CXIEMU_MAP_LABEL "%s", label);
    fd = cxiemu_process_is_pid() ? ucs_memfd_create(name, length) :
                                   cxiemu_process_create_file(length);
    if (fd < 0) {
        return fd;
    }
    /* A directory's file system may be full: that is told here */
    if (ucs_memfd_is_strict() || !cxiemu_process_is_pid()) {
        ret = ucs_memfd_take(fd, 0, length);
    }
    if (ret == 0) {
        ret = (fstat(fd, &st) == 0) ? 0 : -errno;
    }
    if (ret == 0) {
        pthread_mutex_lock(&cxiemu_map_lock);
        ret = cxiemu_map_add(fd, &st, 1, map_p);
        pthread_mutex_unlock(&cxiemu_map_lock);
    }
    if (ret != 0) {
        cxiemu_map_close_file(fd);
    }
    return ret;
}

/* What went wrong when looking at another process. */
static int cxiemu_map_error(int err)
{
    switch (err) {
    case ENOENT:
    case ESRCH:
    case ENOTDIR:
        return -FI_EHOSTUNREACH;
    case EPERM:
    case EACCES:
        return -FI_EACCES;
    default:
        return -err;
    }
}

/* Opens one of our memory files in a process. The link's text is looked at
 * first, as opening another kind of file might have effects. */
static int cxiemu_map_open_file(uint32_t pid, uint32_t fd)
{
    static const char prefix[] = "/memfd:" CXIEMU_MAP_LABEL;
    char path[64], text[sizeof(prefix)];
    ssize_t count;
    int file;

    if (!cxiemu_process_is_pid()) {
        file = cxiemu_process_open_file(pid, fd);
        return (file < 0) ? cxiemu_map_error(errno) : file;
    }
    snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, fd);
    count = readlink(path, text, sizeof(text));
    if (count < 0) {
        return cxiemu_map_error(errno);
    }
    if (((size_t)count < sizeof(prefix) - 1) ||
        memcmp(text, prefix, sizeof(prefix) - 1)) {
        return -FI_EHOSTUNREACH;
    }
    file = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return (file < 0) ? cxiemu_map_error(errno) : file;
}

/* What cxiemu_map_create() makes is of this user, for nobody else, and never to
 * shrink, or else its mapping could be made to fault. A file in a directory
 * cannot be sealed. */
static int cxiemu_map_is_sound(int file, struct stat *st)
{
    int seals = fcntl(file, F_GET_SEALS);

    return (fstat(file, st) == 0) && S_ISREG(st->st_mode) &&
           (st->st_uid == geteuid()) && !(st->st_mode & (S_IRWXG | S_IRWXO)) &&
           (!cxiemu_process_is_pid() ||
            ((seals >= 0) && (seals & F_SEAL_SHRINK)));
}

int cxiemu_map_open(uint32_t pid, uint32_t fd, size_t length,
                    cxiemu_map_t **map_p)
{
    cxiemu_map_entry_t *entry;
    struct stat st;
    int file, ret;

    file = cxiemu_map_open_file(pid, fd);
    if (file < 0) {
        return file;
    }
    if (!cxiemu_map_is_sound(file, &st)) {
        ret = -FI_EACCES;
    } else if ((st.st_size <= 0) || ((size_t)st.st_size < length)) {
        ret = -FI_EINVAL;
    } else {
        pthread_mutex_lock(&cxiemu_map_lock);
        LIST_FOREACH(entry, cxiemu_map_bucket(st.st_ino), list) {
            if ((entry->dev == st.st_dev) && (entry->ino == st.st_ino)) {
                break;
            }
        }
        if (entry != NULL) {
            ++entry->refs;
            *map_p = &entry->map;
            ret    = 0;
        } else {
            ret = cxiemu_map_add(file, &st, 0, map_p);
        }
        pthread_mutex_unlock(&cxiemu_map_lock);
    }
    close(file);
    return ret;
}

void cxiemu_map_close_fd(cxiemu_map_t *map)
{
    pthread_mutex_lock(&cxiemu_map_lock);
    if (map->fd >= 0) {
        cxiemu_map_close_file(map->fd);
        map->fd = -1;
    }
    pthread_mutex_unlock(&cxiemu_map_lock);
}

void cxiemu_map_put(cxiemu_map_t *map)
{
    cxiemu_map_entry_t *entry = (cxiemu_map_entry_t*)map;
    int last;

    if (map == NULL) {
        return;
    }
    pthread_mutex_lock(&cxiemu_map_lock);
    last = (--entry->refs == 0);
    if (last) {
        LIST_REMOVE(entry, list);
    }
    pthread_mutex_unlock(&cxiemu_map_lock);
    if (last) {
        munmap(map->address, map->length);
        if (map->fd >= 0) {
            cxiemu_map_close_file(map->fd);
        }
        free(entry);
    }
}


int cxiemu_map_copy(uint32_t pid, void *local, uint64_t remote, size_t length,
                    int is_store)
{
    struct iovec here, there;
    ssize_t count;

    while (length > 0) {
        here.iov_base  = local;
        here.iov_len   = (length < CXIEMU_MAP_PIECE) ? length :
                                                       CXIEMU_MAP_PIECE;
        there.iov_base = (void*)(uintptr_t)remote;
        there.iov_len  = here.iov_len;
        count          = is_store ?
                                 process_vm_writev((pid_t)pid, &here, 1, &there,
                                                   1, 0) :
                                 process_vm_readv((pid_t)pid, &here, 1, &there,
                                                  1, 0);
        if ((count < 0) && (errno == EINTR)) {
            continue;
        }
        if (count <= 0) {
            return (count < 0) ? cxiemu_map_error(errno) : -FI_EFAULT;
        }
        local   = (char*)local + count;
        remote += (uint64_t)count;
        length -= (size_t)count;
    }
    return 0;
}

int cxiemu_map_may_attach(uint32_t pid)
{
    int scope = 0;
    FILE *file;
    char byte;
    int ret;

    if (!cxiemu_param()->cma || !cxiemu_process_is_pid()) {
        return 0;
    }
    /* Yama's scopes 2 and 3 forbid attaching whatever a process may say */
    file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file != NULL) {
        if (fscanf(file, "%d", &scope) != 1) {
            scope = 0;
        }
        fclose(file);
    }
    if ((scope >= 2) && (geteuid() != 0)) {
        return 0;
    }
    /* No process has memory at 0. The kernel looks at permission first, so a
     * fault says that there is permission; a filter of system calls or a
     * security module says something else. */
    ret = cxiemu_map_copy(pid, &byte, 0, sizeof(byte), 0);
    return (ret == 0) || (ret == -FI_EFAULT);
}
