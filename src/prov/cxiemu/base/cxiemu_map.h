/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_map.h - memory files, shared between processes.
 */
#ifndef CXIEMU_MAP_H_
#define CXIEMU_MAP_H_

#include <stddef.h>
#include <stdint.h>


/**
 * A mapping. Each file is mapped once a process, however many objects use it,
 * so that tools see the memory of a process that is its own peer at one
 * address. Mappings have references; the table of them has a lock of its own.
 */
typedef struct cxiemu_map {
    void   *address;
    size_t length;
    int    fd;   /**< Of the owner; -1 in other processes */
    uint64_t target; /**< For the owner of a link's memory: nonce of the NIC
                          that it is for; else 0. Peers cannot change it */
} cxiemu_map_t;


/** Whether this process may make a file of so many bytes (RLIMIT_FSIZE): 0, or
 *  -EFBIG, logged. */
int cxiemu_map_check_limit(size_t length);

/** Make zeroed memory of @a length bytes: a memory file without a name that is
 *  sealed against shrinking, or with FI_CXIEMU_DIR a file there; of mode 0600,
 *  not inherited by exec, in no core file. 0, or -FI_E*; -EFBIG as above. */
int cxiemu_map_create(const char *label, size_t length, cxiemu_map_t **map_p);

/**
 * Map the file @a fd of process @a pid (cxiemu_process_self()); checks that it
 * is one of this user, as made above, and has at least @a length bytes (0:
 * whatever it has). 0, or -FI_E*: FI_EHOSTUNREACH if the process or its
 * descriptor is gone, FI_EACCES if this process may not have it.
 */
int cxiemu_map_open(uint32_t pid, uint32_t fd, size_t length,
                    cxiemu_map_t **map_p);

/** Nobody else is to open the owner's file any more: give its descriptor back.
 *  The mapping stays. */
void cxiemu_map_close_fd(cxiemu_map_t *map);

/** Give one reference back; unmaps and closes with the last. NULL is fine. */
void cxiemu_map_put(cxiemu_map_t *map);

/** Whether this process's kernel lets it read and write memory of @a pid, which
 *  belongs to this user, and settings do not forbid it; for its own number,
 *  whether it can be done at all. Asks the kernel: keep the answer. */
int cxiemu_map_may_attach(uint32_t pid);

/** Copy by cross-memory attach to another process if @a is_store, else from it;
 *  0, or -FI_E*. */
int cxiemu_map_copy(uint32_t pid, void *local, uint64_t remote, size_t length,
                    int is_store);

/** Before a fork, and behind it in both processes: no other thread has the lock
 *  meanwhile. What it protects is as it was. */
void cxiemu_map_fork_begin(void);
void cxiemu_map_fork_end(int is_child);

#endif
