/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucs_gstream_memory.h - memory that streams of devices reach: words that they
 * store to and wait for, and whose memory an address is.
 *
 * A GPU reaches only those words of the host's memory that are registered with
 * its runtime. They are registered here once, and with each runtime when a
 * stream of it first has a command that names one.
 */
#ifndef UCS_GSTREAM_MEMORY_H_
#define UCS_GSTREAM_MEMORY_H_

#include <ucs_gstream.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of memory that @ref ucs_gstream_memory_add takes. */
typedef enum {
    UCS_GSTREAM_MEMORY_HOST, /**< Memory of this process */
    UCS_GSTREAM_MEMORY_IO    /**< A device's registers, such as doorbells */
} ucs_gstream_memory_kind_t;


/**
 * Have streams of devices reach a range of memory. Streams of the host need no
 * such call.
 *
 * @param [in] start  The range, @a length bytes; apart from other ranges by
 *                    whole pages, as pages are what is registered.
 * @param [in] length In bytes, not 0.
 * @param [in] kind   What is there.
 *
 * @return UCS_OK, also if the same range was added before;
 *         UCS_ERR_INVALID_PARAM for a NULL or empty range or an unknown kind;
 *         UCS_ERR_ALREADY_EXISTS if a page of it is in another range;
 *         UCS_ERR_NO_MEMORY. Whether a device can reach it is known when a
 *         command first names it: @ref ucs_gstream_enqueue then fails.
 *
 * Ownership: the memory stays the caller's and must live until
 *            @ref ucs_gstream_memory_remove.
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_memory_add(void *start, size_t length,
                                    ucs_gstream_memory_kind_t kind);


/**
 * Undo @ref ucs_gstream_memory_add. No command that names the range is pending.
 * If a device reached it, the runtime waits until the device has done all that
 * its streams have: none may wait for the caller.
 *
 * @param [in] start As it was added.
 *
 * @return UCS_OK; UCS_ERR_NO_ELEM if it is not there.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_memory_remove(void *start);


/**
 * Get memory of the host that streams of all types reach, and copy to and from
 * without blocking the host.
 *
 * @param [in] length In bytes.
 *
 * @return The memory, of undefined content, in cache lines of its own; NULL
 *         without memory.
 *
 * Ownership: the caller owns the memory until @ref ucs_gstream_memory_put. What
 *            is given back is kept for later calls, and registered memory is
 *            not unregistered. It is not there in processes that are forked.
 * Threads: may be called from any thread.
 */
void *ucs_gstream_memory_get(size_t length);


/**
 * Give memory back that no command names any more.
 *
 * @param [in] start  From @ref ucs_gstream_memory_get, or NULL.
 * @param [in] length As it was given there.
 *
 * Threads: may be called from any thread.
 */
void ucs_gstream_memory_put(void *start, size_t length);


/**
 * Copy between memory of the host and of devices, each way and within a device.
 * The call returns once that is done. It waits for no stream of the
 * application, the default ones included.
 *
 * @param [out] dst    Where to.
 * @param [in]  src    Where from; apart from @a dst.
 * @param [in]  length In bytes.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED if the two are of different runtimes;
 *         UCS_ERR_NO_MEMORY; UCS_ERR_IO_ERROR if the runtime fails, which logs
 *         why.
 *
 * Threads: may be called from any thread, but not from a host function of a
 *          device's stream.
 */
ucs_status_t ucs_gstream_memory_copy(void *dst, const void *src, size_t length);


/**
 * The same for rows.
 *
 * @param [out] dst  The first row of the destination.
 * @param [in]  src  The first row of the source; apart from @a dst.
 * @param [in]  rect The rows.
 *
 * @return As @ref ucs_gstream_memory_copy; UCS_ERR_INVALID_PARAM, logged, for
 *         rows that @ref ucs_gstream_enqueue refuses.
 *
 * Threads: as @ref ucs_gstream_memory_copy.
 */
ucs_status_t ucs_gstream_memory_copy2d(void *dst, const void *src,
                                       const ucs_gstream_rect_t *rect);


/**
 * Get a word that streams of all types reach: 0 at first, in a cache line of
 * its own.
 *
 * @return The word; NULL without memory.
 *
 * Ownership: the caller owns the word until @ref ucs_gstream_word_put.
 * Threads: may be called from any thread.
 */
volatile uint64_t *ucs_gstream_word_get(void);


/**
 * Give a word back that no command names any more.
 *
 * @param [in] word From @ref ucs_gstream_word_get, or NULL.
 *
 * Threads: may be called from any thread.
 */
void ucs_gstream_word_put(volatile uint64_t *word);


/**
 * Tell whether a stream reaches a word, before it is named in a command.
 * Registers the word's range if need be.
 *
 * @param [in] stream A live stream.
 * @param [in] word   The word; naturally aligned.
 *
 * @return Non-zero if it does: always for a stream of the host, except if NULL.
 *         A stream of a device does not reach the registers of an emulated
 *         device (@ref ucs_gstream_device_add), nor what its runtime does not
 *         take.
 *
 * Threads: may be called from any thread.
 */
int ucs_gstream_reaches(ucs_gstream_h stream, const volatile uint64_t *word);


/**
 * The same for streams of a type, of which there need not be one yet: on the
 * device that memory is registered at, or else the caller's current one.
 *
 * @param [in] type The type.
 * @param [in] word The word; naturally aligned.
 *
 * @return As @ref ucs_gstream_reaches; 0 where the type's runtime is not there.
 *
 * Threads: may be called from any thread.
 */
int ucs_gstream_type_reaches(ucs_gstream_type_t type,
                             const volatile uint64_t *word);


/** What @ref ucs_gstream_memory_query tells. */
typedef struct ucs_gstream_memory_attr {
    /** Whose memory it is: UCS_GSTREAM_TYPE_HOST if the host reaches it and no
     *  runtime says that it lies in a device. */
    ucs_gstream_type_t type;
    /** The device's number in its runtime; 0 for the host's memory. */
    int                device;
    /** The runtime moves it between host and device, which both reach it. */
    int                is_managed;
    /** The host reaches it, also while streams run: its own memory, and managed
     *  memory of devices that have it so. */
    int                is_hosts;
    /** A runtime knows it: it is in a device, or was registered or allocated
     *  for devices, so that copies of streams do not block the host. */
    int                is_pinned;
} ucs_gstream_memory_attr_t;


/**
 * Tell whose memory an address is. A process that has no runtime of GPUs loaded
 * has memory of the host only, and none is loaded for this call.
 *
 * @param [in]  address Any address; never dereferenced.
 * @param [out] attr    Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if @a attr is NULL.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_memory_query(const void *address,
                                      ucs_gstream_memory_attr_t *attr);


/**
 * Tell why another device, such as a NIC, is not to use a device's memory in
 * the order of a stream of that device: the memory may lack what the stream did
 * before a store that starts the other device; or the stream may not see,
 * behind a wait that the other device ends, what that has written.
 *
 * @param [in] attr       Of memory in a device, as queried.
 * @param [in] is_written The other device writes; else it reads.
 *
 * @return The reason; NULL if there is none.
 *
 * Threads: may be called from any thread.
 */
const char *
ucs_gstream_memory_remote_fault(const ucs_gstream_memory_attr_t *attr,
                                int is_written);


/**
 * Tell why a kernel that waits for a word, which another device writes behind
 * its data, may not see that data in memory of its own device.
 *
 * @param [in] attr Of memory in the kernel's device, as queried.
 *
 * @return The reason; NULL if there is none.
 *
 * Threads: may be called from any thread.
 */
const char *
ucs_gstream_memory_kernel_fault(const ucs_gstream_memory_attr_t *attr);


/**
 * Copy as @ref ucs_gstream_memory_copy does, where the caller knows a device
 * that reaches both sides: nothing is asked of the runtime.
 *
 * @param [in]  attr   `type` and `device` say which device's stream copies; not
 *                     the host.
 * @param [out] dst    Where to.
 * @param [in]  src    Where from; apart from @a dst.
 * @param [in]  length In bytes, not 0.
 *
 * @return As @ref ucs_gstream_memory_copy; UCS_ERR_NO_DEVICE if the runtime is
 *         not loaded.
 *
 * Threads: as @ref ucs_gstream_memory_copy.
 */
ucs_status_t ucs_gstream_memory_copy_by(const ucs_gstream_memory_attr_t *attr,
                                        void *dst, const void *src,
                                        size_t length);


/**
 * Make the device of such memory the calling thread's current one, for calls of
 * other libraries that work on what is current: CUDA's primary context of the
 * device, or HIP's device. It stays so until the thread calls this again.
 *
 * @param [in] attr `type` and `device` say which; not the host.
 *
 * @return UCS_OK; UCS_ERR_NO_DEVICE if the runtime is not loaded;
 *         UCS_ERR_IO_ERROR if it fails, which logs why.
 *
 * Threads: for threads of the library alone: what was current before comes
 *          back with the next call at the earliest.
 */
ucs_status_t ucs_gstream_memory_enter(const ucs_gstream_memory_attr_t *attr);

#ifdef __cplusplus
}
#endif

#endif
