/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_gstream_pair.h
 * Two streams of devices of which the second one to start copies. Not
 * installed.
 *
 * A pair has a send's and a receive's side, in two processes or one, and uses
 * that are numbered from 1. A start is a kernel (UCS_GSTREAM_CMD_PAIRS). The
 * kernel that starts a use second copies from the send's buffer to the
 * receive's and stores the use's number to the words of both sides, for which
 * their streams wait. No kernel waits for one of the other side that has not
 * begun to run, so it does not matter which one runs when, or whether they run
 * at the same time. Devices need no atomics between them, or with the host.
 *
 * A use may be shorter than the pair's length, if a kernel of the application
 * starts its send, by ucp_st_device.h.
 *
 * A side starts no use before it has waited for the last one. To end a pair
 * from the host: store to `halted` of both records, with a fence behind that;
 * load `begun` of each, and look until `ended` is no less: a start that begins
 * later does nothing. From then on no kernel uses either side's buffer, or
 * stores to a word. A side whose device is lost halts, and stores the largest
 * number to its own `ended`.
 *
 * docs/protocols.md, "Tier K", argues that this is sound, and
 * test/model/gpu_pair.pml is its model.
 */
#ifndef UCS_GSTREAM_PAIR_H_
#define UCS_GSTREAM_PAIR_H_

#include <ucs_gstream.h>
#include <ucs/type/status.h>

#include "ucs_gstream_pair_device.h"

#include <stdint.h>

/** Most starts of one command. */
#define UCS_GSTREAM_PAIRS_MAX 56


/** What a side has in memory of the host, which the streams of both sides
 *  reach (@ref ucs_gstream_memory_add). All is 0 at first. */
typedef struct ucs_gstream_pair_record {
    volatile uint64_t word;   /**< Uses that are complete */
    volatile uint64_t begun;  /**< Uses that its stream has begun to start */
    volatile uint64_t ended;  /**< ... and whose kernels have ended */
    volatile uint64_t halted; /**< Not 0: starts have no effect */
    volatile uint64_t decided; /**< For the kernels */
    volatile uint64_t opened; /**< For the users: the other side is ready */
    volatile uint64_t length; /**< For the kernels: of a use, bytes */
    volatile uint64_t key;    /**< The cell's; 0 before the record is another
                                   pair's */
    /* A cache line of this side alone: kernels of the application */
    volatile uint64_t first;  /**< ... may start the uses from this one */
    volatile uint64_t posted; /**< ... to this one */
    volatile uint64_t waited; /**< ... and have waited for this one */
    uint64_t          reserved[5]; /**< The rest of the line */
} ucs_gstream_pair_record_t;


/** What a side has in memory of its device, where kernels alone look. */
typedef struct ucs_gstream_cell *ucs_gstream_cell_h;


/** How the bytes of a message lie in a buffer: in rows or, if `width` is 0, one
 *  behind the other. */
typedef struct ucs_gstream_rows {
    uint32_t width; /**< Bytes of a row */
    uint32_t pitch; /**< From one to the next, bytes; no less */
} ucs_gstream_rows_t;


/** The start of one use. */
typedef struct ucs_gstream_pair {
    int        is_send; /**< Non-zero: this side is the send's */
    uint64_t   cell;    /**< This side's, @ref ucs_gstream_cell_address */
    ucs_gstream_pair_record_t *record; /**< This side's */
    ucs_gstream_pair_record_t *other;  /**< The other one's */
    void       *dst;    /**< The receive's buffer, as this device has it:
                             memory of a device, or of the host */
    const void *src;    /**< The send's; apart from @a dst */
    uint64_t   length;  /**< In bytes; may be 0. A receive's: at most */
    uint64_t   use;     /**< From 1 */
    ucs_gstream_rows_t dst_rows; /**< Of @a dst */
    ucs_gstream_rows_t src_rows; /**< Of @a src */
} ucs_gstream_pair_t;


/**
 * Load what a device needs for pairs, if that is not there: takes long.
 *
 * @param [in] type   The runtime, not the host.
 * @param [in] device The number of the device.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED if the device has no kernels of this
 *         library, as @ref ucs_gstream_query_type tells; UCS_ERR_NO_MEMORY;
 *         UCS_ERR_IO_ERROR if the runtime fails, which was logged.
 *
 * Threads: any, but not a host function of a device's stream.
 */
ucs_status_t ucs_gstream_pair_prepare(ucs_gstream_type_t type, int device);


/**
 * Have kernels of a device reach the memory of another one in this process.
 * That lasts.
 *
 * @param [in] type   The runtime.
 * @param [in] device The number of the device.
 * @param [in] other  That of the other one, which it can reach.
 *
 * @return UCS_OK; UCS_ERR_UNREACHABLE, logged.
 *
 * Threads: any, but not a host function of a device's stream.
 */
ucs_status_t ucs_gstream_pair_reach(ucs_gstream_type_t type, int device,
                                    int other);


/**
 * Get a cell of a device, which was prepared.
 *
 * @param [in]  type   The runtime.
 * @param [in]  device The number of the device.
 *
 * @return The cell; NULL if there is none now: @ref ucs_gstream_pair_prepare
 *         makes more.
 *
 * Ownership: the caller's, until @ref ucs_gstream_cell_put.
 * Threads: any, but not a host function of a device's stream.
 */
ucs_gstream_cell_h ucs_gstream_cell_get(ucs_gstream_type_t type, int device);


/**
 * Give a cell back. The pair was ended, or its last start has ended.
 *
 * @param [in] cell The cell, or NULL.
 *
 * Threads: any, but not a host function of a device's stream.
 */
void ucs_gstream_cell_put(ucs_gstream_cell_h cell);


/**
 * Tell the device's address of a cell.
 *
 * @param [in] cell The cell.
 *
 * @return The address.
 *
 * Threads: any.
 */
uint64_t ucs_gstream_cell_address(ucs_gstream_cell_h cell);


/**
 * Tell whether a stream can start a use of a pair whose buffer is in a device.
 *
 * @param [in] stream A live stream.
 * @param [in] type   The runtime of the buffer's device.
 * @param [in] device The number of that device.
 *
 * @return Non-zero if so: the stream is of the device's primary context.
 *
 * Threads: any.
 */
int ucs_gstream_pair_serves(ucs_gstream_h stream, ucs_gstream_type_t type,
                            int device);


/**
 * Tell the device whose pairs a stream can start.
 *
 * @param [in] stream A live stream.
 *
 * @return Its number in the stream's runtime; -1 if there is none, as for a
 *         stream of the host.
 *
 * Threads: any.
 */
int ucs_gstream_pair_device(ucs_gstream_h stream);


/**
 * Find memory of the host, or managed memory, for kernels of a device: if the
 * runtime knows it, as it was allocated by it or registered with it.
 *
 * @param [in]  type      The runtime.
 * @param [in]  device    The number of the device.
 * @param [in]  memory    The memory; never dereferenced.
 * @param [in]  length    In bytes, not 0.
 * @param [out] address_p Set on success: where the device has it.
 *
 * @return UCS_OK; UCS_ERR_UNREACHABLE if kernels do not reach all of it, or it
 *         is managed and the host has to keep out while a device works.
 *
 * Ownership: the address is good until the memory is freed or unregistered.
 * Threads: any, but not a host function of a device's stream.
 */
ucs_status_t ucs_gstream_pair_address(ucs_gstream_type_t type, int device,
                                      const void *memory, size_t length,
                                      void **address_p);


/**
 * Have kernels of the application start uses of a side: write to its cell what
 * they need. Once for a cell.
 *
 * @param [in]  type   The runtime.
 * @param [in]  device The number of the buffer's device.
 * @param [in]  pair   The side; `use` is not looked at.
 * @param [out] key_p  Set to a number that the cell has from now on until it is
 *                     given back, and no other one ever has.
 *
 * @return UCS_OK; UCS_ERR_NO_MEMORY; or why the runtime refuses, which was
 *         logged.
 *
 * Threads: any, but not a host function of a device's stream.
 */
ucs_status_t ucs_gstream_pair_describe(ucs_gstream_type_t type, int device,
                                       const ucs_gstream_pair_t *pair,
                                       uint64_t *key_p);


/** An operation that NICs move, in some parts. */
typedef struct ucs_gstream_nics {
    int        is_send;   /**< Non-zero: it is a send */
    unsigned   num_parts; /**< From 1 to UCS_GSTREAM_PARTS_MAX */
    uint64_t   cell;      /**< @ref ucs_gstream_cell_address */
    ucs_gstream_pair_record_t *record; /**< Of memory that devices reach; `word`
                                            is not used */
    uint64_t   length;    /**< Of each use, bytes */
    uint64_t   weight;    /**< What a start adds to each counter, not 0 */
    volatile uint64_t *pages[UCS_GSTREAM_PARTS_MAX]; /**< Trigger pages; NULL: a
                                            start adds nothing */
    volatile uint64_t *words[UCS_GSTREAM_PARTS_MAX]; /**< Uses that are complete
                                            */
} ucs_gstream_nics_t;


/**
 * The same for an operation that NICs move. To end it from the host: store to
 * `halted` of its record, with a fence behind that; set the counters back; look
 * until `ended` is no less than `begun`. From then on no kernel stores to a
 * trigger page.
 *
 * @param [in]  type   The runtime.
 * @param [in]  device The number of the buffer's device.
 * @param [in]  nics   The operation.
 * @param [out] key_p  As @ref ucs_gstream_pair_describe.
 *
 * @return As @ref ucs_gstream_pair_describe; UCS_ERR_UNREACHABLE if the device
 *         does not reach a page or a word.
 *
 * Threads: any, but not a host function of a device's stream.
 */
ucs_status_t ucs_gstream_nics_describe(ucs_gstream_type_t type, int device,
                                       const ucs_gstream_nics_t *nics,
                                       uint64_t *key_p);


/**
 * Start a use by a stream of the library, in which nothing ever waits, for a
 * stream that cannot.
 *
 * @param [in] type   The runtime.
 * @param [in] device The number of the buffer's device.
 * @param [in] pair   What to start.
 *
 * @return UCS_OK, or why the runtime refuses, which was logged.
 *
 * Threads: any, but not a host function of a device's stream.
 */
ucs_status_t ucs_gstream_pair_start(ucs_gstream_type_t type, int device,
                                    const ucs_gstream_pair_t *pair);


/**
 * Look after the stream that makes such starts.
 *
 * @param [in] type   The runtime.
 * @param [in] device The number of the device.
 *
 * @return UCS_OK if it has nothing to do; UCS_INPROGRESS; UCS_ERR_IO_ERROR,
 *         logged, if the device is lost: what was started never ends.
 *
 * Threads: any, but not a host function of a device's stream.
 */
ucs_status_t ucs_gstream_pair_look(ucs_gstream_type_t type, int device);

#endif
