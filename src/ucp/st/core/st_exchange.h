/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_exchange.h - operations that are started together, waited for together,
 * and fail together. What a lane shares between them is in `priv`.
 */
#ifndef UCP_ST_EXCHANGE_H_
#define UCP_ST_EXCHANGE_H_

#include <ucp_st.h>

#include "core/st_op.h"

/** Protected by the worker's lock, except for what is read-only. It is there as
 *  long as one of its operations, or the user's handle. */
typedef struct ucp_st_exchange {
    ucp_st_worker_h worker;     /* read-only */
    size_t          count;      /* of `ops` */
    uint8_t         is_coupled; /* read-only: see ucp_st_exchange.h */
    uint8_t         has_failed;
    size_t          refs;
    void            *priv[UCP_ST_LANE_LAST]; /* malloc()ed by lanes, or NULL */
    ucp_st_op_h     *ops;       /* read-only once it was started, but for
                                   those that have gone: NULL */
} ucp_st_exchange_t;

/** For each operation that is there. */
#define ucp_st_exchange_for_each(_op, _exchange) \
    for (size_t _op##_i = 0; _op##_i < (_exchange)->count; ++_op##_i) \
        if (((_op) = (_exchange)->ops[_op##_i]) != NULL)

/** What the peer is told of an operation. */
static inline ucp_st_shares_t ucp_st_exchange_shares(const ucp_st_op_t *op)
{
    return (op->exchange == NULL)    ? UCP_ST_SHARES_NONE :
           op->exchange->is_coupled ? UCP_ST_SHARES_COUPLED :
                                      UCP_ST_SHARES_EXCHANGE;
}

/** A reference goes: with the last one, the exchange. The lock is held, as for
 *  the next one. */
void ucp_st_exchange_put(ucp_st_exchange_t *exchange);

/** An operation goes, whether it is of an exchange or not. */
void ucp_st_exchange_leave(ucp_st_op_t *op);

#endif
