/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_wakeup.c - sleeping until something comes: whatever the order of a
 * message and of the preparation to sleep, no wakeup is lost. Nothing here
 * polls for what it waits for: what is not woken sleeps until the time limit.
 */
#include "st_cunit.h"
#include "ucp_side.h"
#include "uct_region.h"

#include <uct/base/uct_iface.h>

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 1000
#define TAG    0x77

/* When the message of a round is sent */
typedef enum {
    SEND_BEFORE_ARM,
    SEND_AFTER_ARM,
    SEND_ANY_TIME,
    SEND_LAST
} moment_t;

typedef struct {
    ucp_side_t sleeper;
    ucp_side_t sender;
    ucp_ep_h   ep;       /* Of the sender */
    moment_t   moment[ROUNDS];
    size_t     length[ROUNDS];
    sem_t      may_send; /* The round's message */
    sem_t      has_sent; /* It has left */
} wakeup_t;

static uint8_t sent[100000], received[100000];


/* The sender's thread: it alone uses its worker */
static void *sender_main(void *arg)
{
    wakeup_t *wakeup          = arg;
    ucp_request_param_t param = {.op_attr_mask = 0};
    unsigned i;
    void *request;

    for (i = 0; i < ROUNDS; ++i) {
        (void)sem_wait(&wakeup->may_send);
        request = ucp_tag_send_nbx(wakeup->ep, sent, wakeup->length[i], TAG,
                                   &param);
        if (ucp_side_wait(&wakeup->sender, NULL, request) != UCS_OK) {
            abort(); /* The other one would wait for ever */
        }
        (void)sem_post(&wakeup->has_sent);
    }
    return NULL;
}

/* Sleeps until there is something to do, and does it; posts `armed`, if there
 * is one, in between */
static void sleep_once(ucp_side_t *side, int fd, sem_t *armed)
{
    struct pollfd pollfd = {
        .fd     = fd,
        .events = POLLIN
    };

    if (armed == NULL) {
        CU_ASSERT(ucp_worker_wait(side->worker) == UCS_OK);
    } else {
        while (ucp_worker_arm(side->worker) == UCS_ERR_BUSY) {
            ucp_worker_progress(side->worker);
        }
        (void)sem_post(armed);
        CU_ASSERT(poll(&pollfd, 1, -1) == 1);
    }
    while (ucp_worker_progress(side->worker) > 0) {
    }
}

static void run_round(wakeup_t *wakeup, int fd, unsigned i)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    int is_eager              = (wakeup->length[i] <= 1000);
    void *request;

    memset(received, 0, wakeup->length[i]);
    request = ucp_tag_recv_nbx(wakeup->sleeper.worker, received,
                               wakeup->length[i], TAG, UINT64_MAX, &param);
    CU_ASSERT_FATAL(UCS_PTR_IS_PTR(request));
    if (wakeup->moment[i] == SEND_AFTER_ARM) {
        sleep_once(&wakeup->sleeper, fd, &wakeup->may_send);
    } else {
        (void)sem_post(&wakeup->may_send);
        /* A long one does not leave before the sleeper has answered */
        if ((wakeup->moment[i] == SEND_BEFORE_ARM) && is_eager) {
            (void)sem_wait(&wakeup->has_sent);
        }
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        sleep_once(&wakeup->sleeper, fd, NULL);
    }
    CU_ASSERT(ucp_request_check_status(request) == UCS_OK);
    ucp_request_free(request);
    CU_ASSERT(memcmp(sent, received, wakeup->length[i]) == 0);

    /* The sender may need an answer, to a rendezvous, that has not left */
    if ((wakeup->moment[i] == SEND_BEFORE_ARM) && is_eager) {
        return;
    }
    while (sem_trywait(&wakeup->has_sent) != 0) {
        ucp_worker_progress(wakeup->sleeper.worker);
    }
}

static void open_wakeup(wakeup_t *wakeup)
{
    const char *given = getenv("ST_SEED");
    unsigned seed     = (given != NULL) ? (unsigned)atoi(given) :
                                          (unsigned)time(NULL);
    unsigned i;

    printf("seed %u (ST_SEED)\n", seed);
    uct_region_fill(sent, sizeof(sent), seed);
    for (i = 0; i < ROUNDS; ++i) {
        wakeup->moment[i] = rand_r(&seed) % SEND_LAST;
        wakeup->length[i] = (rand_r(&seed) % 8 == 0) ? sizeof(sent) :
                            (size_t)(rand_r(&seed) % 1000) + 1;
    }
    CU_ASSERT_FATAL(ucp_side_open(&wakeup->sleeper, "cxi_trig",
                                  UCP_FEATURE_WAKEUP, 0) == UCS_OK);
    CU_ASSERT_FATAL(ucp_side_open(&wakeup->sender, "cxi_trig",
                                  UCP_FEATURE_WAKEUP, 0) == UCS_OK);
    wakeup->ep = ucp_side_connect(&wakeup->sender, &wakeup->sleeper);
    CU_ASSERT_FATAL(sem_init(&wakeup->may_send, 0, 0) == 0);
    CU_ASSERT_FATAL(sem_init(&wakeup->has_sent, 0, 0) == 0);
}

/* The message comes before the receiver is armed, after it, or at any time */
ST_CASE(receiver_sleeps)
{
    static wakeup_t wakeup;
    pthread_t thread;
    unsigned i;
    int fd;

    open_wakeup(&wakeup);
    CU_ASSERT_FATAL(ucp_worker_get_efd(wakeup.sleeper.worker, &fd) == UCS_OK);
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, sender_main, &wakeup) == 0);
    for (i = 0; i < ROUNDS; ++i) {
        run_round(&wakeup, fd, i);
    }
    (void)pthread_join(thread, NULL);
    ucp_side_close_ep(&wakeup.sender, wakeup.ep);
    ucp_side_close(&wakeup.sender);
    ucp_side_close(&wakeup.sleeper);
    (void)sem_destroy(&wakeup.may_send);
    (void)sem_destroy(&wakeup.has_sent);
}

/* Operations that are over wake their thread: those without a copy, and
 * those that bring something back */
UCT_PAIR_CASE(completion_wakes)
{
    struct pollfd pollfd = {
        .events = POLLIN
    };
    uint64_t old = 0;
    uct_region_t region;
    ucs_status_t status;
    uct_done_t done;
    unsigned i;

    uct_region_open(&region, pair, 4096);
    CU_ASSERT_FATAL(uct_iface_event_fd_get(pair->a.iface, &pollfd.fd) ==
                    UCS_OK);
    for (i = 0; i < ROUNDS / 5; ++i) {
        uct_done_init(&done, 1);
        CU_ASSERT_FATAL(uct_ep_atomic64_fetch(
                                pair->a.peer, UCT_ATOMIC_OP_ADD, 1, &old,
                                uct_region_at(&region, 0), region.rkey.rkey,
                                &done.comp) == UCS_INPROGRESS);
        while (done.calls == 0) {
            status = uct_iface_event_arm(pair->a.iface, UCT_EVENT_SEND_COMP);
            if (status == UCS_OK) {
                CU_ASSERT(poll(&pollfd, 1, -1) == 1);
            }
            uct_iface_progress(pair->a.iface);
        }
        CU_ASSERT((done.status == UCS_OK) && (old == i));
    }
    uct_region_close(&region);
}

/* What is to be told of an endpoint keeps an interface from sleeping */
UCT_PAIR_CASE(failure_is_told)
{
    while (uct_iface_event_arm(pair->a.iface, UCT_EVENT_RECV) != UCS_OK) {
        uct_iface_progress(pair->a.iface);
    }
    CU_ASSERT(uct_pair_invalidate(pair->a.peer) == UCS_OK);
    CU_ASSERT(uct_iface_event_arm(pair->a.iface, UCT_EVENT_RECV) ==
              UCS_ERR_BUSY);
    uct_iface_progress(pair->a.iface);
    CU_ASSERT(pair->a.errors == 1);
}

ST_SUITE("uct_wakeup")
