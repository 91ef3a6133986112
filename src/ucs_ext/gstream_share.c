/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_share.c - streams that share the hardware queues of a device.
 *
 * A runtime puts the commands of its streams into a few queues of the device. A
 * stream that waits for a word holds up all streams of its queue. If these are
 * what its word comes from, or what copies for it, none of them ever goes on.
 * Priorities do not change that. So the streams that this library has are
 * counted, and the user is told once a runtime.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_fork.h"
#include "gstream_gpu.h"

#include <ucs/debug/log_def.h>

#include <pthread.h>
#include <stdlib.h>

/* The most queues that a device can be asked for */
#define GSTREAM_SHARE_MAX 32

/* Queues that are taken otherwise: by the default stream, and by ours for
 * copies */
#define GSTREAM_SHARE_TAKEN 2


/* All streams; under the lock, as the rest */
static struct {
    pthread_mutex_t lock;
    gstream_share_t *list;
    int             is_told[UCS_GSTREAM_TYPE_LAST];
} gstream_share = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


/* The list stays: it is of streams that are refused */
void gstream_share_forked(void)
{
    pthread_mutex_init(&gstream_share.lock, NULL);
}

/* Hardware queues of a device of a runtime */
static unsigned gstream_share_queues(const gstream_gpu_t *gpu)
{
    const char *value = getenv(gpu->queues_name);
    long queues       = (value == NULL) ? 0 : strtol(value, NULL, 0);

    return ((queues > 0) && (queues <= GSTREAM_SHARE_MAX)) ?
                   (unsigned)queues :
           (queues > 0) ? GSTREAM_SHARE_MAX : gpu->num_queues;
}

/* How many streams of the runtime there are on a device. The lock is held. */
static unsigned gstream_share_count(const gstream_gpu_t *gpu, int device)
{
    const gstream_share_t *share;
    unsigned count = 0;

    for (share = gstream_share.list; share != NULL; share = share->next) {
        count += share->is_counted && (share->gpu == gpu) &&
                 (share->device == device);
    }
    return count;
}

/* Another one of the same stream of the runtime, or NULL. The lock is held. */
static gstream_share_t *gstream_share_other(const gstream_share_t *share)
{
    gstream_share_t *other = gstream_share.list;

    while ((other != NULL) &&
           ((other == share) || (other->gpu != share->gpu) ||
            (other->native != share->native))) {
        other = other->next;
    }
    return other;
}

void gstream_share_add(gstream_share_t *share)
{
    const gstream_gpu_t *gpu = share->gpu;
    unsigned queues          = gstream_share_queues(gpu);
    unsigned count           = 0;
    int is_told              = 1;

    pthread_mutex_lock(&gstream_share.lock);
    share->is_counted  = ((uintptr_t)share->native >
                          GSTREAM_GPU_LAST_DEFAULT) &&
                         (gstream_share_other(share) == NULL);
    share->next        = gstream_share.list;
    gstream_share.list = share;
    if (!gstream_share.is_told[gpu->type]) {
        count   = gstream_share_count(gpu, share->device);
        is_told = (count + GSTREAM_SHARE_TAKEN <= queues);

        gstream_share.is_told[gpu->type] = !is_told;
    }
    pthread_mutex_unlock(&gstream_share.lock);

    if (!is_told) {
        ucs_warn("%s: device %d has %u hardware queues, and %u streams of this "
                 "program are used with this library, beside those for the "
                 "default stream and for copies: streams that share one may "
                 "wait for each other for ever; set %s, at most %d, before the "
                 "program starts, or use fewer streams", gpu->name,
                 share->device, queues, count, gpu->queues_name,
                 GSTREAM_SHARE_MAX);
    }
}

/* Streams whose last waits had no mark are not known to have passed them */
int gstream_share_is_quiet(void)
{
    const gstream_share_t *share;

    pthread_mutex_lock(&gstream_share.lock);
    share = gstream_share.list;
    while ((share != NULL) &&
           (__atomic_load_n(&share->waits, __ATOMIC_SEQ_CST) ==
            __atomic_load_n(share->passed, __ATOMIC_ACQUIRE))) {
        share = share->next;
    }
    pthread_mutex_unlock(&gstream_share.lock);
    return share == NULL;
}

void gstream_share_remove(gstream_share_t *share)
{
    gstream_share_t **share_p = &gstream_share.list;
    gstream_share_t *other;

    pthread_mutex_lock(&gstream_share.lock);
    while (*share_p != share) {
        share_p = &(*share_p)->next;
    }
    *share_p = share->next;
    other    = share->is_counted ? gstream_share_other(share) : NULL;
    if (other != NULL) {
        other->is_counted = 1;
    }
    pthread_mutex_unlock(&gstream_share.lock);
}
