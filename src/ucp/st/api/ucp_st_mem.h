/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st_mem.h - memory that messages go to and come from faster; ucp_st.h
 * includes it.
 */
#ifndef UCP_ST_MEM_H_
#define UCP_ST_MEM_H_

#include <ucs/type/status.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Allocate memory that other processes of this user and node can map. Between
 * two of them long messages are copied once instead of twice if one of the two
 * buffers lies in such memory, and by both sides together if both do. For all
 * else it is memory like any other, with these exceptions.
 *
 * - A child that fork() makes shares it with its parent: it has no copy, and
 *   what one of the two writes the other one reads.
 * - Each block of 1 MiB or more has a file descriptor. All of them together
 *   have at most a quarter of those that the process may have (ulimit -n).
 * - A core file has all of such a block, also pages that nobody has written to.
 * - Where a GPU is to reach it for a message, the library registers it with the
 *   runtime (cuMemHostRegister(), hipHostRegister()): all of its file, whose
 *   memory is taken then, also that of other blocks below 1 MiB. A program that
 *   registers a block itself does so before it makes an operation on any, and
 *   unregisters it before it frees it.
 *
 * @code
 * static void *get_buffer(size_t length, int *is_mappable_p)
 * {
 *     void *buffer;
 *
 *     *is_mappable_p = (ucp_st_mem_alloc(length, &buffer) == UCS_OK);
 *     return *is_mappable_p ? buffer : malloc(length);
 * }
 *
 * static void put_buffer(void *buffer, int is_mappable)
 * {
 *     if (is_mappable) {
 *         (void)ucp_st_mem_free(buffer);
 *     } else {
 *         free(buffer);
 *     }
 * }
 * @endcode
 *
 * @param [in]  length    Bytes, not 0. Its contents are undefined; memory is
 *                        taken as it is written to.
 * @param [out] address_p Filled, on success only, with its address: a multiple
 *                        of 64, of the page's size from 1 MiB on.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM also for length 0; UCS_ERR_NO_MEMORY,
 *         also where a file may not be so long (ulimit -f);
 *         UCS_ERR_NO_RESOURCE for one block too many with a descriptor;
 *         UCS_ERR_IO_ERROR if the system has no such memory, or no descriptor
 *         for it. Memory of malloc() serves as well then, more slowly.
 *
 * Ownership: the caller's, until @ref ucp_st_mem_free; it may outlive workers.
 * Threads: any.
 */
ucs_status_t ucp_st_mem_alloc(size_t length, void **address_p);

/**
 * Free memory of @ref ucp_st_mem_alloc.
 *
 * @param [in] address The address; no operation that uses it exists any more.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if it is not from there, or was freed
 *         before.
 *
 * Threads: any.
 */
ucs_status_t ucp_st_mem_free(void *address);

#ifdef __cplusplus
}
#endif

#endif
