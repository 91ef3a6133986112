/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_emit.h - how operations travel: which way, and in which records.
 *
 * All functions are called with the NIC's lock held.
 */
#ifndef CXIEMU_EMIT_H_
#define CXIEMU_EMIT_H_

#include "op/cxiemu_txop.h"


/** Ways of an operation's payload. */
typedef enum {
    CXIEMU_PATH_INLINE,    /**< In records, or back in acknowledgements */
    CXIEMU_PATH_SLOTS,     /**< In slots of the link, chunk by chunk */
    CXIEMU_PATH_DIRECT,    /**< The target accesses the initiator's memory */
    CXIEMU_PATH_RENDEZVOUS /**< Message: announced, then as the target wants */
} cxiemu_path_t;

/** Choose an operation's way; before its first record. */
void cxiemu_emit_route(cxiemu_txop_t *txop);

/** Write records as far as there is room; whether all are written. */
int cxiemu_emit(cxiemu_txop_t *txop);

/** The record of a write that brings its payload, or of an atomic, which goes
 *  through no ring. */
void cxiemu_emit_local(const cxiemu_op_t *op, uint16_t dst_ep,
                       cxiemu_rec_t *rec);

#endif
