/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_bench.h - the ways that st_ucx sends messages by: the provider itself,
 * and UCP over one transport.
 */
#ifndef UCX_BENCH_H_
#define UCX_BENCH_H_

#include "trig_bench.h"

#define UCX_WINDOW 32u /* Messages that are sent before the answer */


/** A way. Both processes call the same; data is checked. */
typedef struct ucx_way {
    /** Tagged messages, back and forth; microseconds of a half round trip. */
    double (*tag)(struct ucx_way *way, size_t size, unsigned count);

    /** Windows of tagged messages to rank 1; microseconds of one message. */
    double (*window)(struct ucx_way *way, size_t size, unsigned windows);

    /** Puts of 8 bytes into a word that the other one polls, back and forth;
     *  microseconds of a half round trip. */
    double (*put)(struct ucx_way *way, unsigned count);

    void   (*close)(struct ucx_way *way);
} ucx_way_t;


/** The provider that `fab` has open. */
ucx_way_t *ucx_raw_open(trig_rank_t *me, trig_fab_t *fab);

/** UCP with this UCX_TLS, and, unless it is NULL, this UCX_NET_DEVICES. */
ucx_way_t *ucx_ucp_open(trig_rank_t *me, const char *tls, const char *devices);

#endif
