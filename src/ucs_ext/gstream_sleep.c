/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_sleep.c - sleeping on a word of memory. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_sleep.h"
#include "gstream_fork.h"
#include "gstream_futex.h"

#include <ucs/datastruct/list.h>

#include <pthread.h>

#define GSTREAM_SLEEP_BUCKETS 64


/* Sleepers on the words of one hash value. The list is protected by the table's
 * lock; count, its length, is read without it. */
typedef struct gstream_sleep_bucket {
    _Atomic uint32_t count;
    ucs_hlist_head_t sleepers;
} gstream_sleep_bucket_t;


static struct {
    pthread_mutex_t        lock;
    _Atomic uint32_t       count; /* of all buckets together */
    gstream_sleep_bucket_t buckets[GSTREAM_SLEEP_BUCKETS];
} gstream_sleep_table = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


static gstream_sleep_bucket_t *
gstream_sleep_bucket(const volatile uint64_t *address)
{
    uintptr_t word = (uintptr_t)address / sizeof(*address);

    return &gstream_sleep_table.buckets[(word ^ (word >> 6) ^ (word >> 12)) %
                                        GSTREAM_SLEEP_BUCKETS];
}

void gstream_sleep_forked(void)
{
    unsigned i;

    pthread_mutex_init(&gstream_sleep_table.lock, NULL);
    atomic_store(&gstream_sleep_table.count, 0);
    for (i = 0; i < GSTREAM_SLEEP_BUCKETS; ++i) {
        atomic_store(&gstream_sleep_table.buckets[i].count, 0);
        gstream_sleep_table.buckets[i].sleepers.ptr = NULL;
    }
}

void gstream_sleeper_add(gstream_sleeper_t *sleeper)
{
    gstream_sleep_bucket_t *bucket = gstream_sleep_bucket(sleeper->address);

    pthread_mutex_lock(&gstream_sleep_table.lock);
    ucs_hlist_add_tail(&bucket->sleepers, &sleeper->link);
    atomic_fetch_add(&bucket->count, 1);
    atomic_fetch_add(&gstream_sleep_table.count, 1);
    pthread_mutex_unlock(&gstream_sleep_table.lock);
}

void gstream_sleeper_remove(gstream_sleeper_t *sleeper)
{
    gstream_sleep_bucket_t *bucket = gstream_sleep_bucket(sleeper->address);

    pthread_mutex_lock(&gstream_sleep_table.lock);
    ucs_hlist_del(&bucket->sleepers, &sleeper->link);
    atomic_fetch_sub(&bucket->count, 1);
    atomic_fetch_sub(&gstream_sleep_table.count, 1);
    pthread_mutex_unlock(&gstream_sleep_table.lock);
}

void gstream_sleep_until(const volatile uint64_t *address, uint64_t value,
                         unsigned how, const ucs_gstream_helper_t *helper)
{
    ucs_gstream_notify_t own     = {0}; /* without a helper */
    ucs_gstream_notify_t *notify = (helper != NULL) ? helper->notify : &own;
    gstream_sleeper_t sleeper    = {
        .address = address,
        .notify  = notify
    };
    uint64_t nsec = GSTREAM_SLEEP_NSEC_MIN;
    uint32_t calls;

    gstream_sleeper_add(&sleeper);
    __atomic_fetch_add(&notify->sleepers, 1, __ATOMIC_SEQ_CST);
    gstream_sleep_fence(); /* pairs with the wakers' one */

    for (;;) {
        /* Before the look at the word, and at what the helper moves: a call
         * that comes after it makes the futex refuse to sleep */
        calls = __atomic_load_n(&notify->calls, __ATOMIC_SEQ_CST);
        if ((helper != NULL) &&
            helper->func(helper->arg, UCS_GSTREAM_HELP_SLEEP)) {
            break;
        }
        if (gstream_sleep_is_met(address, value, how)) {
            break;
        }

        gstream_futex_wait_shared(&notify->calls, calls, nsec);
        nsec = gstream_sleep_next(nsec);
    }

    __atomic_fetch_sub(&notify->sleepers, 1, __ATOMIC_SEQ_CST);
    gstream_sleeper_remove(&sleeper);
}

void gstream_sleep_notify(ucs_gstream_notify_t *notify)
{
    if (__atomic_load_n(&notify->sleepers, __ATOMIC_RELAXED) > 0) {
        __atomic_fetch_add(&notify->calls, 1, __ATOMIC_SEQ_CST);
        gstream_futex_wake_shared(&notify->calls);
    }
}

static void gstream_sleeper_wake(gstream_sleeper_t *sleeper)
{
    if (sleeper->notify != NULL) {
        gstream_sleep_notify(sleeper->notify);
    } else {
        atomic_fetch_add(sleeper->calls, 1);
        gstream_futex_wake(sleeper->calls, 1);
    }
}

void gstream_sleep_wake(const volatile uint64_t *address)
{
    gstream_sleep_bucket_t *bucket = gstream_sleep_bucket(address);
    gstream_sleeper_t *sleeper;

    if (atomic_load_explicit(&bucket->count, memory_order_relaxed) == 0) {
        return;
    }

    /* Woken under the lock, because the sleeper is gone once it got the lock */
    pthread_mutex_lock(&gstream_sleep_table.lock);
    ucs_hlist_for_each(sleeper, &bucket->sleepers, link) {
        if (sleeper->address == address) {
            gstream_sleeper_wake(sleeper);
        }
    }
    pthread_mutex_unlock(&gstream_sleep_table.lock);
}

void gstream_sleep_wake_all(const volatile uint64_t *const *addresses,
                            size_t count)
{
    size_t i;

    if (atomic_load_explicit(&gstream_sleep_table.count,
                             memory_order_relaxed) == 0) {
        return;
    }
    for (i = 0; i < count; ++i) {
        gstream_sleep_wake(addresses[i]);
    }
}
