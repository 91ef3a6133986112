/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_shm.h - memory that processes of one node share: files without
 * names, and an allocator in such a file. Nothing of a file is left when the
 * last process that has it open is gone.
 *
 * Each file is mapped once in a process, whatever uses it there, so that tools
 * see the memory of a process that is its own peer at one address.
 */
#ifndef UCP_ST_DIRECT_SHM_H_
#define UCP_ST_DIRECT_SHM_H_

#include "direct/st_direct_proto.h"

#include <ucs/datastruct/list.h>
#include <ucs/type/status.h>

#include <stddef.h>

/** A mapped file. */
typedef struct ucp_st_direct_map {
    void                 *address; /* this and the next two: read-only */
    size_t               length;
    ucp_st_direct_file_t file; /* in this process, if it made it */
    ucs_list_link_t      list; /* of all of them; its lock, as the next
                                  four */
    unsigned             refs;
    unsigned             num_registered; /* of the next ones */
    ucs_gstream_ipc_h    registered[UCS_GSTREAM_TYPE_LAST]; /* with runtimes, or
                                  NULL */
    int                  fd;   /* -1: another process made it; read-only */
    int                  is_strict; /* see ucp_st_direct_map_commit() */
} ucp_st_direct_map_t;

/**
 * Make a file of memory (ucs_memfd_create()). A core file has none of it.
 * UCS_OK, UCS_ERR_NO_MEMORY, also for more than ucs_memfd_max(), or
 * UCS_ERR_IO_ERROR where the kernel makes none; not logged.
 */
ucs_status_t ucp_st_direct_map_create(size_t length,
                                      ucp_st_direct_map_t **map_p);

/** Non-zero if this process has made the file. */
static inline int ucp_st_direct_map_is_own(const ucp_st_direct_map_t *map)
{
    return map->fd >= 0;
}

/** Take memory for a part of a file that this process has made, where the
 *  kernel gives out no more than it has (vm.overcommit_memory=2): there a write
 *  for which no memory is left is a fault. UCS_OK, UCS_ERR_NO_MEMORY. */
ucs_status_t ucp_st_direct_map_commit(const ucp_st_direct_map_t *map,
                                      size_t offset, size_t length);

/** Have a part of a mapping in core files, too. */
void ucp_st_direct_map_dump(const ucp_st_direct_map_t *map, size_t offset,
                            size_t length);

/**
 * Map a file of another process of this node, or take a reference on the
 * mapping that is there. UCS_ERR_UNREACHABLE if that process or its file is
 * gone, or it is none of ucp_st_direct_map_create(), or not this user's.
 */
ucs_status_t ucp_st_direct_map_open(const ucp_st_direct_file_t *file,
                                    ucp_st_direct_map_t **map_p);

/**
 * Have devices of a runtime, one of which is in use, reach a mapping of a
 * user's memory: `ipc_p` is to be looked at, and to be closed. It stays
 * registered as long as it is mapped, as each time takes long. What
 * ucs_gstream_ipc_open_host() returns.
 */
ucs_status_t ucp_st_direct_map_register(ucp_st_direct_map_t *map,
                                        ucs_gstream_type_t type,
                                        ucs_gstream_ipc_h *ipc_p);

/**
 * The same for `address` in the mapping, and wait, `limit` seconds at most:
 * where kernels of the runtime's devices have it. UCS_INPROGRESS if it takes
 * longer; else what registering it returns. No lock is held.
 */
ucs_status_t ucp_st_direct_map_reach(ucp_st_direct_map_t *map,
                                     ucs_gstream_type_t type,
                                     const void *address, double limit,
                                     void **start_p);

/** How many files of this process have no user any more, and are open until no
 *  stream waits. */
unsigned ucp_st_direct_maps_ending(void);

/** Give one reference back. NULL is fine. One that is registered is unmapped
 *  later, when no stream waits. */
void ucp_st_direct_map_put(ucp_st_direct_map_t *map);

/**
 * The mapping, of ucp_st_direct_map_create(), that all of a buffer lies in,
 * with a reference; NULL if there is none.
 */
ucp_st_direct_map_t *ucp_st_direct_map_find(const void *buffer, size_t length);

/** ucs_fork_lock() and ucs_fork_unlock() for the lock of the mappings; whether
 *  no other thread was about to change these. */
void ucp_st_direct_maps_fork_begin(void);
int ucp_st_direct_maps_fork_end(int is_child);

/** Name a descriptor of this process to others: UCS_OK, or UCS_ERR_IO_ERROR. */
ucs_status_t ucp_st_direct_file_get(int fd, ucp_st_direct_file_t *file);

/** Open what a process of this node has named, if its link in /proc begins with
 *  `prefix`; -1 if that is gone or something else. */
int ucp_st_direct_file_open(const ucp_st_direct_file_t *file,
                            const char *prefix, int flags);

/** Sizes of blocks: powers of 2 from this one on. */
#define UCP_ST_DIRECT_BLOCK_MIN     256
#define UCP_ST_DIRECT_BLOCK_CLASSES 32

/** The allocator of a segment. Protected by its user's lock. */
typedef struct ucp_st_direct_seg {
    ucp_st_direct_map_t *map;
    size_t              used; /* bytes handed out at least once */
    uint64_t            free[UCP_ST_DIRECT_BLOCK_CLASSES]; /* offsets of the
                                 first ones; 0: none */
    uint64_t            records;/* the same of free records */
} ucp_st_direct_seg_t;

/** Make the segment of a worker, or of memory for the user. UCS_ERR_NO_MEMORY,
 *  UCS_ERR_IO_ERROR. */
ucs_status_t ucp_st_direct_seg_init(ucp_st_direct_seg_t *seg, size_t length,
                                    uint64_t uuid);

/** Give it back. Peers may still have it mapped. */
void ucp_st_direct_seg_cleanup(ucp_st_direct_seg_t *seg);

/** Get a block; NULL if there is no room. Its bytes are what they were. */
void *ucp_st_direct_seg_get(ucp_st_direct_seg_t *seg, size_t length);

/** Give a block back, with the length that it was got with. */
void ucp_st_direct_seg_put(ucp_st_direct_seg_t *seg, void *block,
                           size_t length);

/** Get a record; NULL if there is no room. */
ucp_st_direct_record_t *ucp_st_direct_seg_get_record(ucp_st_direct_seg_t *seg);

/** Give a record back. */
void ucp_st_direct_seg_put_record(ucp_st_direct_seg_t *seg,
                                  ucp_st_direct_record_t *record);

#endif
