/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cxiemu_bell.c - whom peers wake when they ring, by what the owner of a
 * NIC has said of its polling.
 */
#include "cxiemu_util.h"
#include "cxiemu_wait.h"

#include <sched.h>
#include <stdint.h>

/* Of a link that never comes */
#define PORT 7

/* Polls until the clock is read at least once */
#define POLLS 64

/* More than pollers make until they wake the thread */
#define POLLS_TO_WAKE 256

/* How often the thread falls asleep while nobody polls */
#define ROUNDS 50


static void nic_rest(cxiemu_nic_t *nic)
{
    cxiemu_nic_lock(nic);
    (void)cxiemu_nic_rest(nic);
    cxiemu_nic_unlock(nic);
}

static void nic_spin(cxiemu_nic_t *nic)
{
    int i;

    for (i = 0; i < POLLS; ++i) {
        cxiemu_nic_lock(nic); /* a poll leaves an occupied lock alone */
        cxiemu_nic_polled(nic, 0);
        cxiemu_nic_unlock(nic);
    }
}

static void nic_share(cxiemu_nic_t *nic)
{
    cxiemu_nic_lock(nic);
    cxiemu_nic_polled(nic, 1);
    cxiemu_nic_unlock(nic);
}

/* Peers are told for how long to expect another poll: for longer where the
 * processor is shared, and no less because the next wait is a short one */
static void test_promise(void)
{
    cxiemu_nic_t *nic = nic_create();
    uint64_t begin    = cxiemu_nic_now();

    CU_ASSERT(nic_until(nic) == 0);
    nic_spin(nic);
    CU_ASSERT(nic_until(nic) >= begin + CXIEMU_SPINS_NS);
    CU_ASSERT(nic_until(nic) <= cxiemu_nic_now() + CXIEMU_SPINS_NS);
    begin = cxiemu_nic_now();
    nic_share(nic);
    CU_ASSERT(nic_until(nic) >= begin + CXIEMU_YIELDS_NS);
    nic_spin(nic);
    CU_ASSERT(nic_until(nic) >= begin + CXIEMU_YIELDS_NS);
    nic_rest(nic);
    CU_ASSERT(nic_until(nic) == 0);
    cxiemu_nic_destroy(nic);
}

/* The thread is awake: the application polls, and has told it so */
static void nic_until_awake(cxiemu_nic_t *nic)
{
    while (nic_thread(nic) != CXIEMU_THREAD_AWAKE) {
        (void)cxiemu_nic_poll_shared(nic);
        sched_yield();
    }
}

/* Pollers wake the thread as often as it falls asleep: also if it was awake and
 * fell asleep again between two of their polls */
static void test_again(void)
{
    cxiemu_nic_t *nic = nic_create();
    uint32_t kicks;
    int i, j;

    for (i = 0; i < ROUNDS; ++i) {
        nic_until_awake(nic);
        while (nic_thread(nic) == CXIEMU_THREAD_AWAKE) {
            sched_yield();
        }
        kicks = nic_kicks(nic);
        for (j = 0; j < POLLS_TO_WAKE; ++j) {
            (void)cxiemu_nic_poll_shared(nic);
        }
        CU_ASSERT_FATAL((nic_kicks(nic) != kicks) ||
                        (nic_thread(nic) == CXIEMU_THREAD_AWAKE));
    }
    cxiemu_nic_destroy(nic);
}

/* A thread that waits for its turn is not helped by one more that does */
static void test_shared(void)
{
    cxiemu_nic_t *nic = nic_create();
    uint32_t kicks;

    do {
        nic_until_awake(nic);
        nic_share(nic);
        kicks = nic_kicks(nic);
        cxiemu_nic_ring(nic->shm, PORT, 1);
        kicks = nic_kicks(nic) - kicks;
        /* Once more if this thread was kept from running in between */
    } while ((cxiemu_nic_now() > nic_until(nic)) ||
             (nic_thread(nic) != CXIEMU_THREAD_AWAKE));
    CU_ASSERT(kicks == 0);
    cxiemu_nic_destroy(nic);
}

/* Who rests has its thread woken, at once and for anything */
static void test_rests(void)
{
    cxiemu_nic_t *nic = nic_create();
    uint32_t kicks;

    nic_share(nic);
    nic_rest(nic);
    kicks = nic_kicks(nic);
    cxiemu_nic_ring(nic->shm, PORT, 0);
    CU_ASSERT(nic_kicks(nic) == kicks + 1);
    cxiemu_nic_destroy(nic);
}

static const st_cunit_case_t cases[] = {
    {"promise", test_promise},
    {"again", test_again},
    {"shared", test_shared},
    {"rests", test_rests}
};

int main(int argc, char **argv)
{
    return st_cunit_main("cxiemu_bell", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
