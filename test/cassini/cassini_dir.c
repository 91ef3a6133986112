/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_dir.c - the node: a directory in shared memory.
 *
 * The file is locked by record locks: one byte for changes of the directory,
 * one for each process. They end with their process, are not inherited by a
 * child, and are lost if any descriptor of the file is closed: it stays open.
 */
#include "cassini_dir.h"
#include "cassini_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CASSINI_BYTE_CHANGE = 0, /**< Locked during a change */
    CASSINI_BYTE_SLOT   = 64 /**< First byte of slots */
};

cassini_dir_t *cassini_dir;
unsigned cassini_dir_self;
uint32_t cassini_dir_gen;

static int cassini_dir_fd = -1;
static char cassini_dir_path[256];


static int cassini_dir_record(int cmd, short type, off_t byte,
                              struct flock *record)
{
    int ret;

    memset(record, 0, sizeof(*record));
    record->l_type   = type;
    record->l_whence = SEEK_SET;
    record->l_start  = byte;
    record->l_len    = 1;
    do {
        ret = fcntl(cassini_dir_fd, cmd, record);
    } while ((ret != 0) && (errno == EINTR));
    return ret;
}

void cassini_dir_lock(void)
{
    struct flock record;

    cassini_dir_record(F_SETLKW, F_WRLCK, CASSINI_BYTE_CHANGE, &record);
}

void cassini_dir_unlock(void)
{
    struct flock record;

    cassini_dir_record(F_SETLK, F_UNLCK, CASSINI_BYTE_CHANGE, &record);
}

/* A number in use: bit 63, then slot, generation, virtual network, number. */
static uint64_t cassini_dir_entry(unsigned slot, uint32_t gen, unsigned vni,
                                  unsigned pid)
{
    return (1ull << 63) | ((uint64_t)slot << 57) |
           ((uint64_t)(gen & 0xffff) << 32) | (vni << 9) | pid;
}

static uint64_t cassini_dir_entry_key(uint64_t entry)
{
    return entry & ((1ull << 32) - 1);
}

static unsigned cassini_dir_entry_slot(uint64_t entry)
{
    return (entry >> 57) & (CASSINI_SLOTS - 1);
}

/* With the directory's lock. Whoever has the slot next goes on with the rings
 * where they are. */
static void cassini_dir_clear(unsigned slot)
{
    cassini_slot_t *place = &cassini_dir->slots[slot];
    uint64_t entry;
    unsigned i;

    for (i = 0; i < CASSINI_DOMAINS; ++i) {
        entry = cassini_dir->domains[i];
        if ((entry != 0) && (cassini_dir_entry_slot(entry) == slot)) {
            __atomic_store_n(&cassini_dir->domains[i], 0, __ATOMIC_RELEASE);
        }
    }
    memset(place->used, 0, sizeof(place->used));
    __atomic_store_n(&place->pid, 0, __ATOMIC_RELEASE);
}

static int cassini_dir_slot_is_locked(unsigned slot)
{
    struct flock record;

    return (cassini_dir_record(F_GETLK, F_WRLCK, CASSINI_BYTE_SLOT + slot,
                               &record) != 0) ||
           (record.l_type != F_UNLCK);
}

/* With the directory's lock. How many others live. */
static unsigned cassini_dir_sweep_locked(void)
{
    unsigned alive = 0;
    unsigned i;

    for (i = 0; i < CASSINI_SLOTS; ++i) {
        if ((cassini_dir->slots[i].pid == 0) ||
            (i == cassini_dir_self)) {
            continue;
        }
        if (cassini_dir_slot_is_locked(i)) {
            ++alive;
        } else {
            cassini_dir_clear(i);
        }
    }
    return alive;
}

void cassini_dir_sweep(void)
{
    cassini_dir_lock();
    cassini_dir_sweep_locked();
    cassini_dir_unlock();
}

/* With the directory's lock. */
static int cassini_dir_take_slot(void)
{
    struct flock record;
    cassini_slot_t *place;
    unsigned i;

    cassini_dir_self = CASSINI_SLOTS;
    cassini_dir_sweep_locked();
    for (i = 0; i < CASSINI_SLOTS; ++i) {
        place = &cassini_dir->slots[i];
        if (place->pid != 0) {
            continue;
        }
        if (cassini_dir_record(F_SETLK, F_WRLCK, CASSINI_BYTE_SLOT + i,
                               &record) != 0) {
            return -errno;
        }
        cassini_dir_self = i;
        cassini_dir_gen  = __atomic_add_fetch(&place->gen, 1, __ATOMIC_ACQ_REL);
        memset(place->used, 0, sizeof(place->used));
        place->asleep = 0;
        __atomic_store_n(&place->pid, (uint32_t)getpid(), __ATOMIC_RELEASE);
        return 0;
    }
    return -ENOSPC;
}

/* Open the file under its lock: not one that was removed meanwhile. */
static int cassini_dir_open(void)
{
    struct stat opened, there;

    for (;;) {
        cassini_dir_fd = open(cassini_dir_path, O_RDWR | O_CREAT | O_CLOEXEC,
                              0600);
        if (cassini_dir_fd < 0) {
            return -errno;
        }
        cassini_dir_lock();
        if ((fstat(cassini_dir_fd, &opened) == 0) &&
            (stat(cassini_dir_path, &there) == 0) &&
            (opened.st_ino == there.st_ino)) {
            return 0;
        }
        close(cassini_dir_fd);
    }
}

int cassini_dir_attach(void)
{
    int ret;

    snprintf(cassini_dir_path, sizeof(cassini_dir_path),
             "/dev/shm/cassini.%u.%s", (unsigned)getuid(),
             cassini_settings.name);
    ret = cassini_dir_open();
    if (ret != 0) {
        return ret;
    }
    if (ftruncate(cassini_dir_fd, sizeof(*cassini_dir)) != 0) {
        ret = -errno;
        goto err_close;
    }
    cassini_dir = mmap(NULL, sizeof(*cassini_dir), PROT_READ | PROT_WRITE,
                       MAP_SHARED, cassini_dir_fd, 0);
    if (cassini_dir == MAP_FAILED) {
        ret = -errno;
        goto err_close;
    }
    if (cassini_dir->version == 0) {
        cassini_svc_init();
        cassini_dir->version = CASSINI_VERSION;
        cassini_temper_tell(); /* Not each of the node's processes */
    } else if (cassini_dir->version != CASSINI_VERSION) {
        ret = -EPROTO;
        goto err_unmap;
    }
    ret = cassini_dir_take_slot();
    if (ret != 0) {
        goto err_unmap;
    }
    cassini_dir_unlock();
    return 0;

err_unmap:
    munmap(cassini_dir, sizeof(*cassini_dir));
err_close:
    close(cassini_dir_fd);
    cassini_dir_fd = -1;
    cassini_dir    = NULL;
    return ret;
}

void cassini_dir_detach(void)
{
    if (cassini_dir == NULL) {
        return;
    }
    cassini_dir_lock();
    cassini_dir_clear(cassini_dir_self);
    if (cassini_dir_sweep_locked() == 0) {
        unlink(cassini_dir_path);
    }
    munmap(cassini_dir, sizeof(*cassini_dir));
    cassini_dir = NULL;
    close(cassini_dir_fd); /* Ends the locks */
    cassini_dir_fd = -1;
}

void cassini_dir_forget(void)
{
    if (cassini_dir != NULL) {
        munmap(cassini_dir, sizeof(*cassini_dir));
        close(cassini_dir_fd);
        cassini_dir    = NULL;
        cassini_dir_fd = -1;
    }
}

static uint64_t cassini_dir_search(unsigned vni, unsigned pid, int *has_vni_p)
{
    uint64_t key = (vni << 9) | pid;
    uint64_t entry;
    unsigned i;

    *has_vni_p = 0;
    for (i = 0; i < CASSINI_DOMAINS; ++i) {
        entry = __atomic_load_n(&cassini_dir->domains[i], __ATOMIC_ACQUIRE);
        if (entry == 0) {
            continue;
        }
        if (cassini_dir_entry_key(entry) == key) {
            return entry;
        }
        *has_vni_p |= (cassini_dir_entry_key(entry) >> 9) == vni;
    }
    return 0;
}

int cassini_dir_add(unsigned vni, unsigned *pid_p)
{
    unsigned pid = *pid_p;
    int ret      = 0;
    int has_vni;
    unsigned i, first;

    cassini_dir_lock();
    cassini_dir_sweep_locked();
    if (pid == CASSINI_PID_ANY) {
        first = cassini_temper_draw(CASSINI_PID_ANY);
        for (i = 0; i < CASSINI_PID_ANY; ++i) {
            pid = (first + i) % CASSINI_PID_ANY;
            if (cassini_dir_search(vni, pid, &has_vni) == 0) {
                break;
            }
        }
        ret = (i == CASSINI_PID_ANY) ? -ENOSPC : 0;
    } else if (cassini_dir_search(vni, pid, &has_vni) != 0) {
        ret = -EEXIST;
    }
    for (i = 0; (ret == 0) && (i < CASSINI_DOMAINS); ++i) {
        if (cassini_dir->domains[i] == 0) {
            __atomic_store_n(&cassini_dir->domains[i],
                             cassini_dir_entry(cassini_dir_self,
                                               cassini_dir_gen, vni, pid),
                             __ATOMIC_RELEASE);
            *pid_p = pid;
            break;
        }
    }
    if (i == CASSINI_DOMAINS) {
        ret = -ENOSPC;
    }
    cassini_dir_unlock();
    return ret;
}

void cassini_dir_remove(unsigned vni, unsigned pid)
{
    uint64_t key = (vni << 9) | pid;
    unsigned i;

    cassini_dir_lock();
    for (i = 0; i < CASSINI_DOMAINS; ++i) {
        if ((cassini_dir->domains[i] != 0) &&
            (cassini_dir_entry_key(cassini_dir->domains[i]) == key)) {
            __atomic_store_n(&cassini_dir->domains[i], 0, __ATOMIC_RELEASE);
        }
    }
    cassini_dir_unlock();
}

int cassini_dir_find(unsigned vni, unsigned pid, unsigned *slot_p,
                     uint32_t *gen_p)
{
    uint64_t entry;
    int has_vni;
    uint32_t gen;

    entry = cassini_dir_search(vni, pid, &has_vni);
    if (entry == 0) {
        return has_vni ? CASSINI_RC_PTE_NOT_FOUND : CASSINI_RC_VNI_NOT_FOUND;
    }
    *slot_p = cassini_dir_entry_slot(entry);
    gen     = __atomic_load_n(&cassini_dir->slots[*slot_p].gen,
                              __ATOMIC_ACQUIRE);
    *gen_p  = gen;
    return ((gen & 0xffff) == ((entry >> 32) & 0xffff)) ?
           CASSINI_RC_OK : CASSINI_RC_PTE_NOT_FOUND;
}

int cassini_dir_alive(unsigned slot, uint32_t gen)
{
    const cassini_slot_t *place = &cassini_dir->slots[slot];
    int alive;

    if (slot == cassini_dir_self) {
        return 1;
    }
    alive = (__atomic_load_n(&place->gen, __ATOMIC_ACQUIRE) == gen) &&
            (__atomic_load_n(&place->pid, __ATOMIC_ACQUIRE) != 0) &&
            cassini_dir_slot_is_locked(slot);
    if (!alive) {
        cassini_dir_sweep();
    }
    return alive;
}

unsigned cassini_dir_used(int svc, int rsrc)
{
    unsigned sum = 0;
    unsigned i;

    for (i = 0; i < CASSINI_SLOTS; ++i) {
        sum += __atomic_load_n(&cassini_dir->slots[i].used[svc][rsrc],
                               __ATOMIC_ACQUIRE);
    }
    return sum;
}

int cassini_dir_take(int svc, int rsrc)
{
    uint32_t *used;

    if (cassini_dir == NULL) {
        return -ENODEV;
    }
    svc  = cassini_svc_pool(svc, rsrc);
    used = &cassini_dir->slots[cassini_dir_self].used[svc][rsrc];
    /* Count first: of two that are too many, both find that, never neither */
    __atomic_add_fetch(used, 1, __ATOMIC_SEQ_CST);
    if (cassini_dir_used(svc, rsrc) > cassini_svc_limit(svc, rsrc)) {
        __atomic_sub_fetch(used, 1, __ATOMIC_SEQ_CST);
        return -ENOSPC;
    }
    return 0;
}

void cassini_dir_give(int svc, int rsrc, unsigned count)
{
    if (cassini_dir == NULL) {
        return;
    }
    svc = cassini_svc_pool(svc, rsrc);
    __atomic_sub_fetch(&cassini_dir->slots[cassini_dir_self].used[svc][rsrc],
                       count, __ATOMIC_SEQ_CST);
}
