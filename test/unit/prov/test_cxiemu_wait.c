/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cxiemu_wait.c - when a peer wakes a NIC's thread, and when that sleeps.
 *
 * Bits are set for a port that has no link: the owner takes them, and finds
 * nothing behind.
 */
#include "cxiemu_util.h"
#include "run/cxiemu_wait.h"

#include <rdma/fi_errno.h>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of a link that never comes */
#define PORT 7

#define ROUNDS 200


static uint64_t nic_summary(const cxiemu_nic_t *nic)
{
    return __atomic_load_n(&nic->shm->summary, __ATOMIC_SEQ_CST);
}

static void nic_until(const cxiemu_nic_t *nic, uint32_t state)
{
    while (nic_thread(nic) != state) {
        sched_yield();
    }
}

/* What the kernel says of the NIC's thread; 0: it has not started yet */
static char thread_state(void)
{
    DIR *dir   = opendir("/proc/self/task");
    char state = 0, path[280], name[16];
    struct dirent *entry;
    FILE *file;

    while ((dir != NULL) && (state == 0) && ((entry = readdir(dir)) != NULL)) {
        snprintf(path, sizeof(path), "/proc/self/task/%s/stat", entry->d_name);
        file = fopen(path, "r");
        if (file == NULL) {
            continue;
        }
        if ((fscanf(file, "%*d (%15[^)]) %c", name, &state) != 2) ||
            (strcmp(name, "cxiemu") != 0)) {
            state = 0;
        }
        fclose(file);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return state;
}

/* Until it sleeps: before that it says ASLEEP, and looks a last time */
static void nic_until_asleep(const cxiemu_nic_t *nic)
{
    do {
        nic_until(nic, CXIEMU_THREAD_ASLEEP);
    } while (thread_state() != 'S');
}

/* It reads a queue, so to speak */
static void nic_read(cxiemu_nic_t *nic)
{
    while (!cxiemu_nic_read_begin(nic)) {
    }
    cxiemu_nic_unlock(nic);
}

/* Nobody polls: the thread takes each bit, however often it falls asleep */
ST_CASE(asleep)
{
    cxiemu_nic_t *nic = nic_create();
    int i;

    for (i = 0; i < ROUNDS; ++i) {
        nic_until(nic, CXIEMU_THREAD_ASLEEP);
        cxiemu_nic_notify(nic->shm, PORT);
        while (nic_summary(nic) != 0) {
            sched_yield();
        }
    }
    cxiemu_nic_destroy(nic);
}

/* A thread that polls is trusted to look, and looks a last time when it ceases
 * to, as nobody else has been woken */
ST_CASE(polled)
{
    cxiemu_nic_t *nic = nic_create();
    int i;

    for (i = 0; i < ROUNDS; ++i) {
        nic_until_asleep(nic);
        cxiemu_poll_begin(nic);
        cxiemu_nic_notify(nic->shm, PORT);
        CU_ASSERT(nic_thread(nic) == CXIEMU_THREAD_ASLEEP);
        CU_ASSERT(nic_summary(nic) != 0);
        cxiemu_poll_end(nic);
        CU_ASSERT(nic_summary(nic) == 0);
    }
    cxiemu_nic_destroy(nic);
}

/* One of two that poll ceases to: the other one still looks */
ST_CASE(pollers)
{
    cxiemu_nic_t *nic = nic_create();

    nic_until_asleep(nic);
    cxiemu_poll_begin(nic);
    cxiemu_poll_begin(nic);
    cxiemu_poll_end(nic);
    cxiemu_nic_notify(nic->shm, PORT);
    CU_ASSERT(nic_thread(nic) == CXIEMU_THREAD_ASLEEP);
    cxiemu_poll_end(nic);
    CU_ASSERT(nic_summary(nic) == 0);
    cxiemu_nic_destroy(nic);
}

/* Reads until the thread has seen it */
static void nic_until_timed(cxiemu_nic_t *nic)
{
    while (nic_thread(nic) != CXIEMU_THREAD_TIMED) {
        nic_read(nic);
        cxiemu_nic_wake_thread(nic);
        sched_yield();
    }
}

/* Where queues are read its sleep is timed: nobody wakes it, it looks itself.
 * It sleeps once nothing is read any more, or the program has said that it is
 * about to sleep */
ST_CASE(timed)
{
    cxiemu_nic_t *nic = nic_create();

    nic_until_timed(nic);
    cxiemu_nic_notify(nic->shm, PORT);
    while (nic_summary(nic) != 0) {
        sched_yield();
    }
    nic_until(nic, CXIEMU_THREAD_ASLEEP);

    nic_until_timed(nic);
    cxiemu_nic_lock(nic);
    cxiemu_nic_arm(nic);
    cxiemu_nic_unlock(nic);
    nic_until(nic, CXIEMU_THREAD_ASLEEP);
    cxiemu_nic_destroy(nic);
}

/* A peer that sends, and threads that poll now and then: nothing is left lying,
 * whoever ceases to look at what moment */
static void *poll_now_and_then(void *arg)
{
    cxiemu_nic_t *nic = arg;
    int i, j;

    for (i = 0; i < ROUNDS; ++i) {
        cxiemu_poll_begin(nic);
        for (j = 0; j < i % 4; ++j) {
            nic_read(nic);
        }
        cxiemu_poll_end(nic);
        sched_yield();
    }
    return NULL;
}

ST_CASE(races)
{
    cxiemu_nic_t *nic = nic_create();
    pthread_t threads[2];
    int i;

    for (i = 0; i < 2; ++i) {
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, poll_now_and_then,
                                       nic) == 0);
    }
    for (i = 0; i < ROUNDS; ++i) {
        cxiemu_nic_notify(nic->shm, PORT);
        while (nic_summary(nic) != 0) {
            sched_yield();
        }
    }
    for (i = 0; i < 2; ++i) {
        pthread_join(threads[i], NULL);
    }
    CU_ASSERT(nic->shm->pollers == 0);
    cxiemu_nic_destroy(nic);
}

static int is_set(void *arg)
{
    return *(int*)arg;
}

static void *set_soon(void *arg)
{
    cxiemu_nic_t *nic = ((void**)arg)[0];

    cxiemu_nic_lock(nic);
    while (nic->waiters == 0) {
        cxiemu_nic_unlock(nic);
        sched_yield();
        cxiemu_nic_lock(nic);
    }
    *(int*)((void**)arg)[1] = 1;
    cxiemu_nic_wake_waiters(nic);
    cxiemu_nic_unlock(nic);
    return NULL;
}

/* How often the thread looks in a second and a quarter, a hundred times at
 * most */
static unsigned long nic_looks(void)
{
    unsigned long sleeps = st_cunit_sleeps("cxiemu");
    unsigned long looks  = 0;
    int i;

    for (i = 0; (i < 25) && (looks < 100); ++i) {
        usleep(50000);
        looks = st_cunit_sleeps("cxiemu") - sleeps;
    }
    return looks;
}

/* While it watches a page that is memory it looks as often as is set, however
 * long nothing was found there; else it sleeps */
ST_CASE(watches)
{
    cxiemu_nic_t *nic;

    CU_ASSERT_FATAL(cxiemu_param_init() == 0);
    nic = nic_create();
    nic_until_asleep(nic);
    CU_ASSERT(nic_looks() <= 2);
    cxiemu_nic_lock(nic);
    nic->num_plain = 1;
    cxiemu_nic_wake_thread(nic);
    cxiemu_nic_unlock(nic);
    usleep(250000);
    CU_ASSERT(nic_looks() >= 100);
    cxiemu_nic_lock(nic);
    nic->num_plain = 0;
    cxiemu_nic_unlock(nic);
    nic_until_asleep(nic);
    CU_ASSERT(nic_looks() <= 2);
    cxiemu_nic_destroy(nic);
}

/* Threads that sleep in the NIC are woken, or give up */
ST_CASE(waiter)
{
    cxiemu_nic_t *nic = nic_create();
    int value         = 0;
    void *args[2]     = {nic, &value};
    pthread_t thread;

    cxiemu_nic_lock(nic);
    CU_ASSERT(cxiemu_nic_wait(nic, is_set, &value, 0) == -FI_EAGAIN);
    CU_ASSERT(cxiemu_nic_wait(nic, is_set, &value, 1) == -FI_ETIMEDOUT);
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, set_soon, args) == 0);
    CU_ASSERT(cxiemu_nic_wait(nic, is_set, &value, -1) == 0);
    cxiemu_nic_unlock(nic);
    pthread_join(thread, NULL);
    CU_ASSERT(nic->shm->pollers == 0);
    cxiemu_nic_destroy(nic);
}

/* It ends whatever its thread does at that moment */
ST_CASE(ends)
{
    int i, j;

    for (i = 0; i < 10 * ROUNDS; ++i) {
        cxiemu_nic_t *nic = nic_create();

        for (j = 0; j < i % 8; ++j) {
            sched_yield();
        }
        cxiemu_nic_destroy(nic);
    }
}

ST_SUITE("cxiemu_wait")
