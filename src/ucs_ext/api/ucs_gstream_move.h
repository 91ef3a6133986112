/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_gstream_move.h
 * One-sided copies by kernels of the library, each with a store behind it. Not
 * installed.
 *
 * A stream of a device comes to a move (UCS_GSTREAM_CMD_MOVE): its kernel looks
 * at the word `failed`. If that is 0 it copies and, if the word is 0 still,
 * stores `value` to the word `signal`. All that was copied is visible to a
 * thread that acquires what was stored, and behind the next store of the
 * stream. Nothing waits.
 */
#ifndef UCS_GSTREAM_MOVE_H_
#define UCS_GSTREAM_MOVE_H_

#include <ucs_gstream.h>
#include <ucs/type/status.h>

#include "ucs_gstream_pair.h"

#include <stdint.h>


/** A move. */
typedef struct ucs_gstream_move {
    uint64_t          cell;    /**< @ref ucs_gstream_cell_address of a cell that
                                    the moves of one stream have */
    volatile uint64_t *failed; /**< Set by the host, and never to 0 again */
    void              *dst;    /**< As the device has it */
    const void        *src;    /**< The same; apart from @a dst */
    uint64_t          length;  /**< In bytes; may be 0 */
    void              *signal; /**< As the device has it; NULL: there is none */
    uint64_t          value;   /**< Stored there */
} ucs_gstream_move_t;


/**
 * Get ready for moves of a stream: takes long at first.
 *
 * @param [in]  stream A live stream.
 * @param [out] cell_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED for a stream of the host, or one whose
 *         device or context has no kernels of this library; UCS_ERR_NO_MEMORY;
 *         UCS_ERR_IO_ERROR if the runtime fails, which was logged.
 *
 * Ownership: the cell is the caller's, until @ref ucs_gstream_cell_put.
 * Threads: any, but not a host function of a device's stream.
 */
ucs_status_t ucs_gstream_move_prepare(ucs_gstream_h stream,
                                      ucs_gstream_cell_h *cell_p);


/**
 * Tell whether the process may have streams of devices.
 *
 * @return Non-zero if it has loaded a runtime, none of which is loaded for this
 *         call.
 *
 * Threads: any.
 */
int ucs_gstream_move_is_likely(void);

#endif
