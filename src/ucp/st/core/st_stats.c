/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_stats.c - what a worker has counted: by call, and at its end.
 *
 * At exit other threads still run, and one of them may be inside a call for
 * ever, with a lock: nobody is waited for longer than a moment.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_queue.h"
#include "core/st_waits.h"
#include "core/st_worker.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long an exit waits for a lock, seconds */
#define UCP_ST_STATS_EXIT_TIME 1

/* Protects the list. Taken before a worker's lock. */
static pthread_mutex_t ucp_st_stats_lock = PTHREAD_MUTEX_INITIALIZER;
static UCS_LIST_HEAD(ucp_st_stats_workers); /* that are told at exit */
static unsigned        ucp_st_stats_count;  /* workers made; atomic */
static pthread_once_t  ucp_st_stats_once = PTHREAD_ONCE_INIT;

/* The worker's lock is held */
static ucs_status_t ucp_st_stats_get(ucp_st_worker_h worker,
                                     ucp_st_worker_attr_t *attr)
{
    ucp_st_worker_attr_t result = {.num_lanes = 0};
    ucs_status_t status         = UCS_OK;
    ucp_st_queue_h queue;
    unsigned i;

    ucp_st_lanes_progress_all(worker); /* so that complete uses are counted */
    result.stats       = worker->stats;
    result.tier_reason = (worker->tier_reason == NULL) ? "" :
                                                         worker->tier_reason;
    /* Starts and waits are counted by their queues: see ucp_st_queue_count() */
    ucs_list_for_each(queue, &worker->queues, list) {
        ucp_st_queue_add_counts(queue, &result.stats);
    }
    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        result.stats.starts += result.stats.lanes[i].starts;
        result.stats.waits  += result.stats.lanes[i].waits;
    }
    for (i = 0; (i < worker->num_lanes) && (status == UCS_OK); ++i) {
        result.lanes[result.num_lanes++] = worker->lanes[i]->id;
        status = worker->lanes[i]->worker.query(worker, &result);
    }
    if (status == UCS_OK) {
        *attr = result;
    }
    return status;
}

/** What is written of a worker. */
typedef struct ucp_st_stats_report {
    ucp_st_worker_attr_t attr;
    char                 waits[UCP_ST_WAITS_WARN_SIZE];
} ucp_st_stats_report_t;

/* The worker's lock is held */
static ucs_status_t ucp_st_stats_get_report(ucp_st_worker_h worker,
                                            ucp_st_stats_report_t *report)
{
    ucp_st_waits_t waits;

    ucp_st_waits_init(&waits, report->waits, sizeof(report->waits), 0);
    ucp_st_waits_look(worker, &waits);
    return ucp_st_stats_get(worker, &report->attr);
}

ucs_status_t ucp_st_worker_query(ucp_st_worker_h worker,
                                 ucp_st_worker_attr_t *attr)
{
    ucs_status_t status;

    status = ucp_st_check_call((worker != NULL) && (attr != NULL));
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(worker);
    status = ucp_st_stats_get(worker, attr);
    ucp_st_worker_unlock(worker);
    return status;
}

/* One line in words: what a user asks first */
static void ucp_st_stats_summarize(const ucp_st_worker_attr_t *attr,
                                   FILE *stream)
{
    const ucp_st_stats_t *stats = &attr->stats;
    uint64_t msgs               = 0;
    unsigned i;

    fprintf(stream, "summary: %lu starts", stats->starts);
    for (i = 0; i < attr->num_lanes; ++i) {
        fprintf(stream, "%s lane %s %lu", (i == 0) ? ":" : ",",
                ucp_st_lane_table[attr->lanes[i]]->name,
                stats->lanes[attr->lanes[i]].starts);
    }
    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        msgs += stats->lanes[i].msgs;
    }
    if (msgs > 0) {
        fprintf(stream, "; %lu messages used once: %lu by NICs alone, by a "
                "host's put %lu of memory of a device and %lu without a "
                "counter, %lu by UCP without lane trig to the peer, %lu by UCP "
                "as tagged ones", msgs, stats->fifo_nic,
                stats->fifo_put_device, stats->fifo_put_cntr, stats->fifo_ucp,
                msgs - stats->fifo_nic - stats->fifo_put_device -
                stats->fifo_put_cntr - stats->fifo_ucp);
    }
    fprintf(stream, "; %lu with a thread of the host on the way; %lu matches "
            "not on the lane of first choice; %lu errors\n", stats->proxied,
            stats->fallbacks, stats->errors);
    if (stats->tier_kernel + stats->tier_service > 0) {
        fprintf(stream, "tiers: lane direct has kernels move %lu matches, and "
                "threads %lu with a buffer that a device reaches%s%s\n",
                stats->tier_kernel, stats->tier_service,
                (*attr->tier_reason == '\0') ? "" : ": ", attr->tier_reason);
    }
}

/* A line for each thing that waits */
static void ucp_st_stats_print_waits(const char *waits, FILE *stream)
{
    size_t length;

    for (; waits[0] != '\0'; waits += length + (waits[length] != '\0')) {
        length = strcspn(waits, "\n");
        fprintf(stream, "waits_for %.*s\n", (int)length, waits);
    }
}

static void ucp_st_stats_print(const ucp_st_stats_report_t *report,
                               FILE *stream)
{
    const ucp_st_worker_attr_t *attr = &report->attr;
    const ucp_st_stats_t *stats      = &attr->stats;
    const ucp_st_lane_stats_t *lane;
    const char *name;
    unsigned i;

    ucp_st_stats_summarize(attr, stream);
    ucp_st_stats_print_waits(report->waits, stream);
    if (attr->provider[0] != '\0') {
        fprintf(stream, "provider %s\ndevice %s\n", attr->provider,
                attr->device);
    }
    fprintf(stream, "starts %lu\nwaits %lu\nmatches %lu\nfallbacks %lu\n",
            stats->starts, stats->waits, stats->matches, stats->fallbacks);
    for (i = 0; i < attr->num_lanes; ++i) {
        name = ucp_st_lane_table[attr->lanes[i]]->name;
        lane = &stats->lanes[attr->lanes[i]];
        fprintf(stream, "%s_starts %lu\n%s_waits %lu\n%s_matches %lu\n"
                "%s_rmas %lu\n%s_msgs %lu\n", name, lane->starts, name,
                lane->waits, name, lane->matches, name, lane->rmas, name,
                lane->msgs);
    }
    fprintf(stream, "writes_posted %lu\nwrites_fired %lu\n",
            stats->writes_posted, stats->writes_fired);
    fprintf(stream, "chunks %lu\neager %lu\n", stats->chunks,
            stats->eager);
    fprintf(stream, "cts_fired %lu\natomics_fired %lu\nbridges_fired %lu\n",
            stats->cts_fired, stats->atomics_fired, stats->bridges_fired);
    fprintf(stream, "fifos %lu\nfifo_nic %lu\nfifo_put_device %lu\n"
            "fifo_put_cntr %lu\nfifo_ucp %lu\n", stats->fifos, stats->fifo_nic,
            stats->fifo_put_device, stats->fifo_put_cntr, stats->fifo_ucp);
    fprintf(stream, "copies %lu\nstaged %lu\n", stats->copies, stats->staged);
    fprintf(stream, "puts %lu\ngets %lu\nsignals %lu\n", stats->puts,
            stats->gets, stats->signals);
    fprintf(stream, "signal_waits %lu\nquiets %lu\n", stats->signal_waits,
            stats->quiets);
    fprintf(stream, "late_posts %lu\nproxied %lu\nerrors %lu\n",
            stats->late_posts, stats->proxied, stats->errors);
    fprintf(stream, "start_cmds %lu\nwait_words %lu\nlaunches %lu\n"
            "wakeups %lu\ntier_kernel %lu\ntier_service %lu\n",
            stats->start_cmds, stats->wait_words, stats->launches,
            stats->wakeups, stats->tier_kernel, stats->tier_service);
    fprintf(stream, "ops %lu\nfreed %lu\nentries %lu\ncntrs %lu\n", stats->ops,
            stats->freed, stats->entries, stats->cntrs);
}

void ucp_st_worker_print_stats(ucp_st_worker_h worker, FILE *stream)
{
    ucp_st_stats_report_t report;
    ucs_status_t status;

    status = ucp_st_check_call((worker != NULL) && (stream != NULL));
    if (status != UCS_OK) {
        return;
    }
    ucp_st_worker_lock(worker);
    status = ucp_st_stats_get_report(worker, &report);
    ucp_st_worker_unlock(worker);
    if (status == UCS_OK) {
        ucp_st_stats_print(&report, stream);
    }
}

static void ucp_st_stats_tell(ucp_st_worker_h worker,
                              const ucp_st_stats_report_t *report,
                              const char *when)
{
    char host[HOST_NAME_MAX + 1] = "?";
    char *text                   = NULL;
    size_t length                = 0;
    ssize_t ret;
    FILE *stream;

    stream = open_memstream(&text, &length);
    if (stream == NULL) {
        ucs_warn("no memory for the counts of UCX_ST_STATS");
        return;
    }
    (void)gethostname(host, sizeof(host) - 1);
    fprintf(stream, "--- ucp_st counts: %s:%d (%s), worker %u, at %s\n", host,
            (int)getpid(), program_invocation_short_name, worker->number,
            when);
    ucp_st_stats_print(report, stream);
    fprintf(stream, "---\n");
    if (fclose(stream) == 0) {
        /* In one call, so that blocks of several processes stay whole */
        do {
            ret = write(STDERR_FILENO, text, length);
        } while ((ret < 0) && (errno == EINTR));
        if (ret != (ssize_t)length) {
            ucs_warn("the counts of UCX_ST_STATS could not be written: %m");
        }
    }
    free(text);
}

/* 0 if it is taken */
static int ucp_st_stats_lock_soon(pthread_mutex_t *mutex)
{
    struct timespec limit;

    (void)clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += UCP_ST_STATS_EXIT_TIME;
    return pthread_mutex_timedlock(mutex, &limit);
}

static void ucp_st_stats_at_exit(void)
{
    ucp_st_stats_report_t report;
    ucp_st_worker_h worker;
    ucs_status_t status;

    /* In a forked child the workers are the parent's, as are the locks */
    if (ucp_st_fork_is_child ||
        (ucp_st_stats_lock_soon(&ucp_st_stats_lock) != 0)) {
        return;
    }
    ucs_list_for_each(worker, &ucp_st_stats_workers, stats_list) {
        if (ucp_st_stats_lock_soon(&worker->lock) != 0) {
            ucs_warn("worker %u is busy: its counts are not written",
                     worker->number);
            continue;
        }
        status = ucp_st_stats_get_report(worker, &report);
        ucp_st_worker_unlock(worker);
        if (status == UCS_OK) {
            ucp_st_stats_tell(worker, &report, "exit");
        }
    }
    (void)pthread_mutex_unlock(&ucp_st_stats_lock);
}

/* After the libraries below were loaded, so that it runs before they clean up
 */
static void ucp_st_stats_install(void)
{
    if (atexit(ucp_st_stats_at_exit) != 0) {
        ucs_warn("atexit() failed: UCX_ST_STATS tells only of workers that are "
                 "destroyed");
    }
}

void ucp_st_stats_add_worker(ucp_st_worker_h worker)
{
    worker->number = __atomic_fetch_add(&ucp_st_stats_count, 1,
                                        __ATOMIC_RELAXED);
    if (!worker->config.stats) {
        return;
    }
    (void)pthread_once(&ucp_st_stats_once, ucp_st_stats_install);
    (void)pthread_mutex_lock(&ucp_st_stats_lock);
    ucs_list_add_tail(&ucp_st_stats_workers, &worker->stats_list);
    (void)pthread_mutex_unlock(&ucp_st_stats_lock);
}

void ucp_st_stats_remove_worker(ucp_st_worker_h worker)
{
    ucp_st_stats_report_t report = {.waits = ""}; /* It has ended */

    if (!worker->config.stats) {
        return;
    }
    (void)pthread_mutex_lock(&ucp_st_stats_lock);
    ucs_list_del(&worker->stats_list);
    (void)pthread_mutex_unlock(&ucp_st_stats_lock);
    if (ucp_st_worker_query(worker, &report.attr) == UCS_OK) {
        ucp_st_stats_tell(worker, &report, "its end");
    }
}
