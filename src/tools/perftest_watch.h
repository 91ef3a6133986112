/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_watch.h - a sleeping thread that ends the program when it hangs
 * after the other side has gone.
 *
 * It is the connection's end that tells it. From then on there is a time limit
 * for whatever the program does; the libraries under test keep theirs or not.
 */
#ifndef PERFTEST_WATCH_H_
#define PERFTEST_WATCH_H_

#include <pthread.h>
#include <stdint.h>

typedef struct perftest_watch {
    int        fd;      /* Connection */
    int        stop_fd; /* Ends the thread */
    double     limit;   /* Seconds */
    const char *what;   /* What the program does; atomic */
    uint64_t   gone_ns; /* When the other side went, 0: not yet; atomic */
    pthread_t  thread;
} perftest_watch_t;


/* Starts the thread. Returns 0, or -1 if there is none. */
int perftest_watch_start(perftest_watch_t *watch, int fd, double limit);

/* Ends it. */
void perftest_watch_stop(perftest_watch_t *watch);

/* Says what the program does from now on; the text must stay. */
void perftest_watch_set(perftest_watch_t *watch, const char *what);

/* Seconds since the other side went, below 0 if it is there. */
double perftest_watch_gone(const perftest_watch_t *watch);

#endif
