/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_gstream_ipc.h
 * Memory of devices that processes of one node give to each other, by the
 * handles that runtimes have for it. Not installed.
 *
 * A process asks for a key of its memory and sends it to another one, which
 * opens it: it has an address then that copies of its own device's streams may
 * use. Devices are told by where they are on the node's PCI buses, and their
 * UUIDs, as their numbers differ between processes.
 */
#ifndef UCS_GSTREAM_IPC_H_
#define UCS_GSTREAM_IPC_H_

#include <ucs_gstream_memory.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/** Bytes of a runtime's handle. */
#define UCS_GSTREAM_IPC_HANDLE 64

/** Devices of a runtime that are told, at most: of others nothing is known. */
#define UCS_GSTREAM_IPC_DEVICES 32


/** What names memory of a device to other processes. Little-endian. */
typedef struct ucs_gstream_ipc_key {
    uint8_t  type;        /**< Whose memory it is, of type
                               @ref ucs_gstream_type_t */
    uint8_t  is_given;    /**< The handle is there */
    uint8_t  reserved[2]; /**< 0 */
    uint32_t device;      /**< That it is in; 0: it is not known */
    uint64_t offset;      /**< Of the memory in what the handle names, bytes */
    uint8_t  handle[UCS_GSTREAM_IPC_HANDLE]; /**< The runtime's */
} ucs_gstream_ipc_key_t;

/** Memory of another process that is open. */
typedef struct ucs_gstream_ipc *ucs_gstream_ipc_h;


/**
 * Get the key of memory. Its fields `type` and `device` are filled in for all
 * memory of devices, and the others where the runtime has a handle for it: not
 * for managed memory, nor for that of pools.
 *
 * @param [in]  address  Of the memory.
 * @param [in]  length   Of it, in bytes.
 * @param [in]  attr     What @ref ucs_gstream_memory_query says of it.
 * @param [in]  is_given Ask for a handle.
 * @param [out] key      The key; always set.
 *
 * Ownership: the handle names the memory until it is freed. It needs not be
 *            given back.
 * Threads: may be called from any thread.
 */
void ucs_gstream_ipc_get_key(const void *address, size_t length,
                             const ucs_gstream_memory_attr_t *attr,
                             int is_given, ucs_gstream_ipc_key_t *key);


/**
 * Tell which devices' memory this process may open. Loads no runtime.
 *
 * @param [in]  type    The runtime.
 * @param [in]  device  The number of the device that is to reach their memory,
 *                      itself among them; -1 for all that the process has.
 * @param [out] devices Set to those, as a key names them.
 * @param [in]  max     How many fit there, at most 32.
 *
 * @return How many there are in @a devices: 0 for the host, and if the runtime
 *         is not loaded or has no handles for memory.
 *
 * Threads: may be called from any thread.
 */
unsigned ucs_gstream_ipc_reach(ucs_gstream_type_t type, int device,
                               uint32_t *devices, unsigned max);


/**
 * Find the number that a device has in this process.
 *
 * @param [in] type   The runtime.
 * @param [in] device As a key names it.
 *
 * @return The number; -1 if the process does not have the device.
 *
 * Threads: may be called from any thread.
 */
int ucs_gstream_ipc_find(ucs_gstream_type_t type, uint32_t device);


/**
 * Have memory of another process be opened, by a thread of its own: the runtime
 * takes long, and may wait for calls of other threads. Memory that is open
 * already gets one more user: runtimes may refuse to open it twice.
 *
 * @param [in]  key    Of @ref ucs_gstream_ipc_get_key in that process.
 * @param [in]  device The number of the device whose streams shall copy it.
 * @param [out] ipc_p  What to look at, and to close; set on success only.
 *
 * @return UCS_OK; UCS_ERR_NO_MEMORY; UCS_ERR_NO_RESOURCE without a thread;
 *         UCS_ERR_UNSUPPORTED if the key has no handle, or the runtime cannot
 *         do it. Logged.
 *
 * Ownership: the caller closes it. The memory stays the other process's. A
 *            runtime may keep it after that process has freed it or ended.
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_ipc_open(const ucs_gstream_ipc_key_t *key, int device,
                                  ucs_gstream_ipc_h *ipc_p);


/** Memory of the host, which devices of a runtime are to reach. */
typedef struct ucs_gstream_ipc_host {
    ucs_gstream_type_t type;  /**< The runtime */
    void               *start; /**< Pages that no range of
                                    @ref ucs_gstream_memory_add has */
    size_t             length; /**< Bytes */
    void               (*closed)(void *arg); /**< It is not used any more */
    void               *arg;  /**< The argument of that */
} ucs_gstream_ipc_host_t;


/**
 * Have memory of the host be registered with a runtime by the thread that opens
 * memory of other processes, as that takes long, too. Once for the memory,
 * before it is closed.
 *
 * @param [in]  host  The memory. A thread calls `closed` once it is closed.
 * @param [out] ipc_p What to look at, and to close; set on success only.
 *
 * @return UCS_OK; UCS_ERR_NO_MEMORY; UCS_ERR_NO_RESOURCE without a thread;
 *         UCS_ERR_UNSUPPORTED without the runtime. `closed` is not called then.
 *
 * Ownership: the memory stays the caller's, and is there until `closed`.
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_ipc_open_host(const ucs_gstream_ipc_host_t *host,
                                       ucs_gstream_ipc_h *ipc_p);


/**
 * Give memory one more user, which closes it, too. What could not be registered
 * is tried again: the cause may have passed.
 *
 * @param [in] ipc Of @ref ucs_gstream_ipc_open_host, not closed.
 *
 * Threads: may be called from any thread.
 */
void ucs_gstream_ipc_hold(ucs_gstream_ipc_h ipc);


/**
 * Look whether memory is open.
 *
 * @param [in]  ipc       Of @ref ucs_gstream_ipc_open, or _open_host.
 * @param [out] address_p Set on success only: where the allocation begins that
 *                        the key's `offset` is in; or where the device has the
 *                        memory of the host.
 * @param [out] length_p  The same: how many bytes it has; UINT64_MAX if the
 *                        runtime does not know.
 *
 * @return UCS_OK; UCS_INPROGRESS; UCS_ERR_IO_ERROR if it fails, as when the
 *         memory is gone, or what else it is. Logged.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_ipc_look(ucs_gstream_ipc_h ipc, void **address_p,
                                  uint64_t *length_p);


/**
 * Close memory that no copy uses any more, open or not yet. With the last user
 * it is closed soon, by a thread of its own: the runtime may wait there for
 * streams of the application, and so for what the caller does next.
 *
 * @param [in] ipc Of @ref ucs_gstream_ipc_open or _open_host, or NULL.
 *
 * Threads: may be called from any thread.
 */
void ucs_gstream_ipc_close(ucs_gstream_ipc_h ipc);

#endif
