/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_map.h - files of memory without names that processes of one node
 * share. Nothing of them is left when the last process that has them is gone.
 *
 * Each file is mapped once in a process, whatever uses it there, so that tools
 * see both ends of a process's talk with itself at one address.
 */
#ifndef UCP_ST_DIRECT_MAP_H_
#define UCP_ST_DIRECT_MAP_H_

#include "direct/st_direct_proto.h"

#include <ucs/type/status.h>

#include <stddef.h>

/** A mapped file; constant until the last reference is given back. */
typedef struct ucp_st_direct_map {
    void                 *address;
    size_t               length;
    ucp_st_direct_file_t file; /* in this process, if it made it */
} ucp_st_direct_map_t;

/**
 * Make a file of zeroed memory: of this user alone, not inherited by exec,
 * sealed against shrinking. Memory is taken as it is written to. UCS_OK,
 * UCS_ERR_NO_MEMORY, or UCS_ERR_IO_ERROR where the kernel makes none; not
 * logged.
 */
ucs_status_t ucp_st_direct_map_create(size_t length,
                                      ucp_st_direct_map_t **map_p);

/**
 * Map a file of another process of this node, or take a reference on the
 * mapping that is there. UCS_ERR_UNREACHABLE if that process or its file is
 * gone, or it is none of ucp_st_direct_map_create(), or not this user's.
 */
ucs_status_t ucp_st_direct_map_open(const ucp_st_direct_file_t *file,
                                    ucp_st_direct_map_t **map_p);

/** Give one reference back. NULL is fine. */
void ucp_st_direct_map_put(ucp_st_direct_map_t *map);

/**
 * The mapping, of ucp_st_direct_map_create(), that all of a buffer lies in,
 * with a reference; NULL if there is none.
 */
ucp_st_direct_map_t *ucp_st_direct_map_find(const void *buffer, size_t length);

/** Name a descriptor of this process to others: UCS_OK, or UCS_ERR_IO_ERROR. */
ucs_status_t ucp_st_direct_file_get(int fd, ucp_st_direct_file_t *file);

/** Open what a process of this node has named, if its link in /proc begins with
 *  `prefix`; -1 if that is gone or something else. */
int ucp_st_direct_file_open(const ucp_st_direct_file_t *file,
                            const char *prefix, int flags);

#endif
