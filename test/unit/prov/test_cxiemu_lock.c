/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cxiemu_lock.c - the lock of a NIC. */
#include "st_cunit.h"

#include "cxiemu_lock.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 4
#define TURNS   5000


static cxiemu_lock_t lock;
static unsigned long sum; /* with the lock */


static void test_states(void)
{
    cxiemu_lock_t own = {0};

    CU_ASSERT(cxiemu_lock_try(&own));
    CU_ASSERT(!cxiemu_lock_try(&own));
    cxiemu_lock_give(&own);
    cxiemu_lock_take(&own);
    CU_ASSERT(!cxiemu_lock_try(&own));
    cxiemu_lock_give(&own);
    CU_ASSERT(own.state == CXIEMU_LOCK_FREE);
}

/* Others go to sleep where the processor is given away with the lock held */
static void *add(void *arg)
{
    unsigned long old;
    int i;

    for (i = 0; i < TURNS; ++i) {
        if ((i % 3 != 0) || !cxiemu_lock_try(&lock)) {
            cxiemu_lock_take(&lock);
        }
        old = sum;
        if (i % 64 == 0) {
            sched_yield();
        }
        sum = old + 1;
        cxiemu_lock_give(&lock);
    }
    return arg;
}

/* Nobody comes in between, and nobody sleeps for ever */
static void test_threads(void)
{
    pthread_t threads[THREADS];
    int i;

    for (i = 0; i < THREADS; ++i) {
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, add, NULL) == 0);
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    CU_ASSERT(sum == THREADS * TURNS);
    CU_ASSERT(lock.state == CXIEMU_LOCK_FREE);
}

/* Keeps the lock until somebody sleeps for it */
static void *wait_for_sleeper(void *arg)
{
    while (__atomic_load_n(&lock.state, __ATOMIC_RELAXED) !=
           CXIEMU_LOCK_AWAITED) {
        sched_yield();
    }
    ++sum;
    cxiemu_lock_give(&lock);
    return arg;
}

static void test_sleeper(void)
{
    pthread_t thread;

    sum = 0;
    cxiemu_lock_take(&lock);
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, wait_for_sleeper, NULL) == 0);
    cxiemu_lock_take(&lock);
    CU_ASSERT(sum == 1);
    cxiemu_lock_give(&lock);
    pthread_join(thread, NULL);
}

static const st_cunit_case_t cases[] = {
    {"states", test_states},
    {"threads", test_threads},
    {"sleeper", test_sleeper}
};

int main(int argc, char **argv)
{
    return st_cunit_main("cxiemu_lock", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
