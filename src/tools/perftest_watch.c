/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_watch.c - ends a program that hangs after the other side went. */
#include "perftest_watch.h"
#include "perftest_log.h"
#include "perftest_test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>


static int perftest_watch_poll(struct pollfd *fds, int count, int timeout_ms)
{
    int ret;

    do {
        ret = poll(fds, count, timeout_ms);
    } while ((ret < 0) && (errno == EINTR));
    return ret;
}

static void *perftest_watch_main(void *arg)
{
    perftest_watch_t *watch = arg;
    struct pollfd fds[]     = {
        {.fd = watch->stop_fd, .events = POLLIN},
        {.fd = watch->fd, .events = POLLRDHUP}
    };
    uint64_t now;

    (void)perftest_watch_poll(fds, 2, -1);
    if (fds[0].revents != 0) {
        return NULL;
    }
    now = perftest_now();
    __atomic_store_n(&watch->gone_ns, now, __ATOMIC_RELEASE);
    if (perftest_watch_poll(fds, 1, (int)(watch->limit * 1e3)) != 0) {
        return NULL;
    }

    /* Destructors would hang where the main thread does */
    fprintf(stderr, "ucx_st_perftest: peer failed %.1f s ago, and this side "
            "has not come to an end since (%s)\n", watch->limit,
            __atomic_load_n(&watch->what, __ATOMIC_ACQUIRE));
    _exit(PERFTEST_BROKEN);
}

int perftest_watch_start(perftest_watch_t *watch, int fd, double limit)
{
    watch->fd      = fd;
    watch->limit   = limit;
    watch->gone_ns = 0;
    watch->what    = "setting up";
    watch->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (watch->stop_fd < 0) {
        return -1;
    }
    if (pthread_create(&watch->thread, NULL, perftest_watch_main, watch) != 0) {
        close(watch->stop_fd);
        return -1;
    }
    return 0;
}

void perftest_watch_stop(perftest_watch_t *watch)
{
    (void)eventfd_write(watch->stop_fd, 1);
    (void)pthread_join(watch->thread, NULL);
    close(watch->stop_fd);
}

void perftest_watch_set(perftest_watch_t *watch, const char *what)
{
    __atomic_store_n(&watch->what, what, __ATOMIC_RELEASE);
}

double perftest_watch_gone(const perftest_watch_t *watch)
{
    uint64_t gone = __atomic_load_n(&watch->gone_ns, __ATOMIC_ACQUIRE);

    return (gone == 0) ? -1 : (double)(perftest_now() - gone) / 1e9;
}
