/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_far.c - the direct lane: whether the processors of the two sides
 * are far from each other.
 *
 * Where they share no cache each line that one side wrote last takes several
 * times as long to come to the other, and to be stored to again. A mapped
 * message takes lines of both buffers there and back, one that goes through
 * slots those of the slots alone. No system tells reliably which processors
 * share what, least of all a virtual one; so loads are timed that must have
 * waited for a line of the other side's, as they find a new value there.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_direct.h"
#include "st_direct_dev.h"
#include "st_op.h"
#include "st_peer.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

/* A load that takes so long, ns, the clock included, comes from afar */
#define UCP_ST_DIRECT_FAR_TIME 100

/* What a load is taken to need at most, ns: whoever is preempted meanwhile does
 * not change much */
#define UCP_ST_DIRECT_FAR_TIME_MAX 500

/* Of a difference so many parts are learned, so that some loads may find the
 * line in the own cache, where an earlier one has brought it to */
#define UCP_ST_DIRECT_FAR_RISE 4
#define UCP_ST_DIRECT_FAR_FALL 16

/* Several streams may do so at once: one load that is not counted does not
 * matter. Fractions are kept: a fall of less than 16 is none. */
static void ucp_st_direct_far_learn(uint32_t *time_p, double taken)
{
    int32_t time  = __atomic_load_n(time_p, __ATOMIC_RELAXED);
    int32_t now   = ucs_min(taken * 1e9, UCP_ST_DIRECT_FAR_TIME_MAX) *
                    UCP_ST_DIRECT_FAR_UNIT;
    int32_t parts = (now > time) ? UCP_ST_DIRECT_FAR_RISE :
                                   UCP_ST_DIRECT_FAR_FALL;

    __atomic_store_n(time_p, time + ((now - time) / parts), __ATOMIC_RELAXED);
}

uint64_t ucp_st_direct_far_load(const ucp_st_direct_op_t *direct,
                                const volatile uint64_t *word, uint64_t old)
{
    double begin   = ucp_st_worker_now();
    uint64_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);

    /* The clock is read once the value is there: what follows depends on it */
    if (value != old) {
        ucp_st_direct_far_learn(&direct->op->peer->direct.line_time,
                                ucp_st_worker_now() - begin);
    }
    return value;
}

int ucp_st_direct_is_far(const ucp_st_direct_peer_t *peer)
{
    return __atomic_load_n(&peer->line_time, __ATOMIC_RELAXED) >
           (UCP_ST_DIRECT_FAR_TIME * UCP_ST_DIRECT_FAR_UNIT);
}
