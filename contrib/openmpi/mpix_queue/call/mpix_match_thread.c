/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_match_thread.c - a thread that matches while the application is in MPI.
 *
 * It sleeps while nothing is being matched, but for a look at the st worker now
 * and then, which may have something to tell a peer.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_match_thread.h"
#include "binding/mpix_global.h"
#include "coll/mpix_coll.h"
#include "request/mpix_match.h"

#include <ucs_backoff.h>
#include <ucs_thread.h>

#include <pthread.h>
#include <time.h>

#define MPIX_MATCH_THREAD_SLEEP_NS 10000000l /* While nothing is matched */


/* Protected by its lock, but for the thread. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t  cond;
    pthread_t       thread;
    int             is_running;
    int             is_stopping;
} mpix_match_thread = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .cond = PTHREAD_COND_INITIALIZER
};


void mpix_match_thread_forked(void)
{
    pthread_mutex_init(&mpix_match_thread.lock, NULL);
}

static unsigned mpix_match_thread_progress(void)
{
    unsigned count = 0;

    mpix_lock();
    if (mpix_global.state == MPIX_STATE_READY) {
        count = mpix_match_is_active() ?
                        mpix_coll_progress() :
                        ucp_st_worker_progress(mpix_global.st_worker);
    }
    mpix_unlock();
    return count;
}

/* Returns 0 once the thread is to end. */
static int mpix_match_thread_sleep(void)
{
    struct timespec end;
    int is_stopping;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += MPIX_MATCH_THREAD_SLEEP_NS;
    end.tv_sec  += end.tv_nsec / 1000000000l;
    end.tv_nsec %= 1000000000l;

    pthread_mutex_lock(&mpix_match_thread.lock);
    if (!mpix_match_is_active() && !mpix_match_thread.is_stopping) {
        pthread_cond_timedwait(&mpix_match_thread.cond,
                               &mpix_match_thread.lock, &end);
    }
    is_stopping = mpix_match_thread.is_stopping;
    pthread_mutex_unlock(&mpix_match_thread.lock);
    return !is_stopping;
}

static void *mpix_match_thread_run(void *arg)
{
    unsigned spins = 0;

    while (mpix_match_thread_sleep()) {
        if (mpix_match_thread_progress() > 0) {
            spins = 0;
        } else if (mpix_match_is_active()) {
            ucs_backoff(&spins);
        }
    }
    return arg;
}

static int mpix_match_thread_start(void)
{
    return ucs_thread_create(&mpix_match_thread.thread, NULL,
                             mpix_match_thread_run, NULL) == 0;
}

void mpix_match_thread_wake(void)
{
    int level;

    PMPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) {
        return; /* MPI lets no other thread in */
    }

    pthread_mutex_lock(&mpix_match_thread.lock);
    if (mpix_match_thread.is_running) {
        pthread_cond_signal(&mpix_match_thread.cond);
    } else if (!mpix_match_thread.is_stopping) {
        mpix_match_thread.is_running = mpix_match_thread_start();
    }
    pthread_mutex_unlock(&mpix_match_thread.lock);
}

void mpix_match_thread_stop(void)
{
    int is_running;

    pthread_mutex_lock(&mpix_match_thread.lock);
    is_running                     = mpix_match_thread.is_running;
    mpix_match_thread.is_running   = 0;
    mpix_match_thread.is_stopping  = 1;
    pthread_cond_signal(&mpix_match_thread.cond);
    pthread_mutex_unlock(&mpix_match_thread.lock);
    if (is_running) {
        pthread_join(mpix_match_thread.thread, NULL);
    }
}
