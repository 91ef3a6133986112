/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_plan.h - how the trig lane moves the message of a pair: by which
 * protocol, over which NICs, in how many writes.
 */
#ifndef UCP_ST_TRIG_PLAN_H_
#define UCP_ST_TRIG_PLAN_H_

#include <ucp_st.h>

#include <stddef.h>

/** See st_trig.h. */
typedef enum {
    UCP_ST_TRIG_READY,
    UCP_ST_TRIG_STANDARD,
    UCP_ST_TRIG_EAGER
} ucp_st_trig_proto_t;

/** What both sides of a pair can do: the smaller one's. */
typedef struct ucp_st_trig_limits {
    unsigned num_rails; /**< NICs */
    size_t   eager_max; /**< Longest eager-ahead message, bytes */
} ucp_st_trig_limits_t;

/** What a pair is, known to both sides once it was made. */
typedef struct ucp_st_trig_facts {
    ucp_st_mode_t        mode;   /**< Of the send */
    size_t               length; /**< Of the message, bytes */
    uint64_t             id;     /**< Of the send, in its worker */
    ucp_st_trig_limits_t limits; /**< From both addresses */
} ucp_st_trig_facts_t;

typedef struct ucp_st_trig_plan {
    ucp_st_trig_proto_t proto;
    unsigned            rail;   /**< That it goes over */
    unsigned            depth;  /**< Uses that an inbox has room for */
    size_t              stride; /**< Bytes from one's data to the next one's */
} ucp_st_trig_plan_t;

/**
 * Make the plan of a pair. Both sides make the same one, although they do not
 * talk about it: it is a function of its argument alone.
 */
void ucp_st_trig_plan_make(const ucp_st_trig_facts_t *facts,
                           ucp_st_trig_plan_t *plan);

#endif
