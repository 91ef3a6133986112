/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_plan.h - how the trig lane moves the message of a pair: by which
 * protocol, over which NICs, in how many writes.
 */
#ifndef UCP_ST_TRIG_PLAN_H_
#define UCP_ST_TRIG_PLAN_H_

#include <ucp_st.h>

#include <stddef.h>
#include <stdint.h>

/** So many of the longest messages fit into an inbox. */
#define UCP_ST_TRIG_DEPTH_MIN 4

/** Longest message that an inbox is for, bytes. */
#define UCP_ST_TRIG_EAGER_MAX (1ul << 20)

/** See st_trig.h. */
typedef enum {
    UCP_ST_TRIG_READY,
    UCP_ST_TRIG_STANDARD,
    UCP_ST_TRIG_EAGER
} ucp_st_trig_proto_t;

/** Limits of both sides of a pair. */
typedef struct ucp_st_trig_limits {
    unsigned num_rails; /**< NICs; 1 at least */
    size_t   eager_max; /**< Longest eager-ahead message, bytes */
    size_t   share_min; /**< Shortest share of a rail, bytes */
    size_t   put_max;   /**< Longest write, bytes; 1 at least */
} ucp_st_trig_limits_t;

/** What a pair is, known to both sides once it was made. */
typedef struct ucp_st_trig_facts {
    ucp_st_mode_t        mode;   /**< Of the send */
    size_t               length; /**< Of the message, bytes */
    uint64_t             id;     /**< Of the send, in its worker */
    int                  shares; /**< One of the two is of an exchange */
    ucp_st_trig_limits_t limits; /**< From both addresses */
} ucp_st_trig_facts_t;

typedef struct ucp_st_trig_plan {
    uint8_t  proto;      /**< ucp_st_trig_proto_t */
    uint8_t  num_shares; /**< Rails that it goes over */
    uint8_t  rail;       /**< The first of them */
    uint8_t  num_rails;  /**< Behind the last one comes rail 0 */
    uint16_t depth;      /**< Uses that an inbox has room for: even */
    size_t   length;     /**< Of the message, bytes */
    size_t   share;      /**< Of a rail but the last, bytes */
    size_t   put_max;    /**< Longest write, bytes */
    size_t   stride;     /**< From one's data to the next one's */
} ucp_st_trig_plan_t;

/** Uses of an inbox that one clear-to-send is for, half of all: a sender that
 *  is not as far ahead of its receiver waits for none. */
static inline uint64_t ucp_st_trig_plan_round(const ucp_st_trig_plan_t *plan)
{
    return plan->depth / 2;
}

/** Clear-to-sends that a use of an inbox needs, of all that there were. */
static inline uint64_t ucp_st_trig_plan_clears(const ucp_st_trig_plan_t *plan,
                                               uint64_t use)
{
    return (use <= plan->depth) ?
           0 : (((use - 1) / ucp_st_trig_plan_round(plan)) - 1);
}

/** What goes over one rail. */
typedef struct ucp_st_trig_share {
    unsigned rail;
    size_t   offset; /**< In the message, bytes */
    size_t   length; /**< In bytes */
    size_t   puts;   /**< Writes; an empty message has one as well */
} ucp_st_trig_share_t;

/**
 * Make the plan of a pair. Both sides make the same one, without a message: it
 * is a function of its argument alone, which is the same on both. Mode, length
 * and id come from the two announcements, which both sides have. The limits are
 * the smaller ones of the two workers' addresses; of `share_min` the larger.
 */
void ucp_st_trig_plan_make(const ucp_st_trig_facts_t *facts,
                           ucp_st_trig_plan_t *plan);

/** One of the plan's shares, which together are the message. */
void ucp_st_trig_plan_share(const ucp_st_trig_plan_t *plan, unsigned index,
                            ucp_st_trig_share_t *share);

#endif
