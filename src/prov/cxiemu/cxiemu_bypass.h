/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_bypass.h - copies to slots of a link, past the processor's caches
 * where that is faster.
 *
 * The lines of a slot are in the cache of the processor that emptied it last.
 * Where the two sides' processors share no cache ordinary stores wait for each
 * of them, and so do the other side's loads later; non-temporal stores go to
 * memory. Where they share one that is slower. Both are timed, as nobody tells
 * which is the case.
 */
#ifndef CXIEMU_BYPASS_H_
#define CXIEMU_BYPASS_H_

#include <stddef.h>
#include <stdint.h>


struct cxiemu_link;

/** Operations that are told apart, by how many slots they take. */
typedef enum {
    CXIEMU_BYPASS_ONE,     /**< One: the other side's copy comes behind */
    CXIEMU_BYPASS_SEVERAL, /**< Several: it is made meanwhile */
    CXIEMU_BYPASS_LONG,    /**< So many that slots leave the other side's own
                                cache before they are filled again */
    CXIEMU_BYPASS_KINDS
} cxiemu_bypass_kind_t;

/** Whether copies to slots pass the caches; the first two as a bool says. */
typedef enum {
    CXIEMU_BYPASS_NO  = 0,
    CXIEMU_BYPASS_YES = 1,
    CXIEMU_BYPASS_TRY = 2  /**< What is faster */
} cxiemu_bypass_mode_t;

/** What a side of a link knows. Protected by the NIC's lock. */
typedef struct cxiemu_bypass {
    struct {
        uint32_t time[2]; /**< A byte takes, ps: ordinary stores, others */
        uint32_t turn;    /**< Copies that were timed */
    }        kinds[CXIEMU_BYPASS_KINDS];
    uint32_t used;        /**< Slots that this side has filled; bit mask */
} cxiemu_bypass_t;


/** Fill @a length bytes of a slot, for an operation of @a whole bytes. What is
 *  stored next by the caller comes behind it. The NIC's lock is held. */
void cxiemu_bypass_fill(struct cxiemu_link *link, uint32_t slot,
                        const void *from, size_t length, size_t whole);

#endif
