/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_help.c - the trig lane: what host streams that wait do for emulated
 * NICs, and for uses that found no entry.
 *
 * A waiting stream makes such a NIC's progress, and the NIC wakes it by its
 * stores. Meanwhile the service thread takes its time, and does not ask the NIC
 * to be woken (ucp_st_trig_dev_t.polled). While something is late the stream
 * reaps and posts as well, where the lock is free; where messages come
 * (st_trig_coalesce.h) it reaps when there is one. A stream that goes to sleep
 * leaves it all to the thread, and the NIC's progress to that one's; where that
 * finds that a message of many parts comes, it wakes the streams to take it in.
 *
 * Only what the thread does, too, is done here, with the same lock; it calls no
 * function of a stream that could wait for this one.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_help.h"
#include "st_log.h"
#include "st_worker.h"

/* Where only messages are waited for, so many polls in vain come before one
 * that reaps all the same: the interface may have put something off */
#define UCP_ST_TRIG_HELP_POLLS 64

static int ucp_st_trig_help_has_message(ucp_st_trig_dev_t *dev)
{
    unsigned polls = __atomic_load_n(&dev->polls, __ATOMIC_RELAXED) + 1;
    unsigned i;

    __atomic_store_n(&dev->polls, polls, __ATOMIC_RELAXED);
    for (i = 0; i < dev->num_rails; ++i) {
        if (uct_trig_iface_has_message(dev->rails[i].iface)) {
            return 1;
        }
    }
    return (polls % UCP_ST_TRIG_HELP_POLLS) == 0;
}

/* Reap, and post what is late, instead of the thread */
static void ucp_st_trig_help_reap(ucp_st_worker_h worker, int is_late)
{
    if ((is_late || ucp_st_trig_help_has_message(&worker->trig)) &&
        ucp_st_worker_trylock(worker)) {
        (void)ucp_st_trig_dev_reap(worker);
        ucp_st_worker_unlock(worker);
    }
}

/* The thread looks at it every now and then */
static void ucp_st_trig_help_mark(ucp_st_trig_dev_t *dev, int is_polled)
{
    if (__atomic_load_n(&dev->polled, __ATOMIC_RELAXED) != is_polled) {
        __atomic_store_n(&dev->polled, is_polled, __ATOMIC_RELAXED);
    }
}

/* What the NIC is to know of what the thread does next */
static const uct_trig_poll_t ucp_st_trig_help_next[] = {
    [UCS_GSTREAM_POLL_SPIN]  = UCT_TRIG_POLL_SPIN,
    [UCS_GSTREAM_POLL_YIELD] = UCT_TRIG_POLL_YIELD,
    [UCS_GSTREAM_POLL_LAST]  = UCT_TRIG_POLL_LAST
};

static int ucp_st_trig_help_poll(void *arg, ucs_gstream_poll_t next)
{
    ucp_st_worker_h worker = arg;
    ucp_st_trig_dev_t *dev = &worker->trig;
    unsigned count         = 0;
    int is_late;
    unsigned i;

    for (i = 0; i < dev->num_rails; ++i) {
        count += uct_trig_iface_progress_nic(dev->rails[i].iface,
                                             ucp_st_trig_help_next[next]);
    }
    ucp_st_trig_help_mark(dev, next != UCS_GSTREAM_POLL_LAST);
    is_late = __atomic_load_n(&dev->is_late, __ATOMIC_RELAXED);
    if (!is_late && !__atomic_load_n(&dev->is_coalescing, __ATOMIC_RELAXED)) {
        return count > 0;
    }
    if (next == UCS_GSTREAM_POLL_LAST) {
        ucp_st_trig_dev_wake(worker);
    } else {
        ucp_st_trig_help_reap(worker, is_late);
    }
    return count > 0;
}

static void ucp_st_trig_help_stored(void *arg, const void *const *addresses,
                                    size_t count)
{
    if (count == 0) {
        ucs_gstream_rouse(); /* they take in what the NIC's thread would */
        return;
    }
    ucs_gstream_wake_all((const volatile uint64_t *const*)addresses, count);
    ucp_st_rma_signaled(arg); /* one may be a signal */
}

void ucp_st_trig_help_start(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    unsigned i;

    dev->helped = 1;
    for (i = 0; i < dev->num_rails; ++i) {
        dev->helped &= !!(dev->rails[i].attr.flags &
                          UCT_TRIG_IFACE_FLAG_EMULATED);
    }
    if (dev->helped &&
        (ucs_gstream_poller_add(ucp_st_trig_help_poll, worker) != UCS_OK)) {
        ucs_diag("host streams do not drive emulated NICs: there are too many");
        dev->helped = 0;
    }
    for (i = 0; dev->helped && (i < dev->num_rails); ++i) {
        (void)uct_trig_iface_on_store(dev->rails[i].iface,
                                      ucp_st_trig_help_stored, worker);
    }
}

void ucp_st_trig_help_stop(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    unsigned i;

    if (!dev->helped) {
        return;
    }
    for (i = 0; i < dev->num_rails; ++i) {
        (void)uct_trig_iface_on_store(dev->rails[i].iface, NULL, NULL);
    }
    (void)ucs_gstream_poller_remove(ucp_st_trig_help_poll, worker);
}
