/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_pending.c - interfaces with next to no room: whoever waits for it
 * gets it in turn, however many others wait, and nobody waits for ever. An
 * operation that has ended gives its room back before its user hears of it.
 */
#include "st_cunit.h"
#include "uct_errors.h"
#include "uct_region.h"

#include <string.h>

#define AM_ID   5
#define MANY    2000
#define HELD    8000
#define IDLE    100000
#define FEW     50
#define NUM_EPS 8

struct sender;

/* One operation that waits for its turn */
typedef struct {
    uct_pending_req_t req;
    struct sender     *sender;
    uint64_t          number;
} job_t;

/* What is sent by an endpoint, in order */
typedef struct sender {
    uct_ep_h ep;
    unsigned index;
    uint64_t total;
    uint64_t started;
    job_t    jobs[MANY];
} sender_t;

static sender_t senders[NUM_EPS];

/* By the index of their sender */
static struct {
    uint64_t count;
    unsigned disorder;
} inboxes[NUM_EPS];


static ucs_status_t keep(void *arg, void *data, size_t length, unsigned flags)
{
    uint64_t words[2];

    memcpy(words, data, sizeof(words));
    inboxes[words[0]].disorder += (words[1] != inboxes[words[0]].count);
    ++inboxes[words[0]].count;
    return UCS_OK;
}

static ucs_status_t job_run(uct_pending_req_t *req)
{
    job_t *job       = ucs_container_of(req, job_t, req);
    sender_t *sender = job->sender;
    ucs_status_t status;

    status = uct_ep_am_short(sender->ep, AM_ID, sender->index, &job->number,
                             sizeof(job->number));
    sender->started += (status == UCS_OK);
    return status;
}

/* Sends, or queues what there is no room for */
static void job_submit(sender_t *sender, uint64_t number)
{
    job_t *job = &sender->jobs[number];
    ucs_status_t status;

    job->sender   = sender;
    job->number   = number;
    job->req.func = job_run;
    do {
        status = job_run(&job->req);
        if (status == UCS_OK) {
            return;
        }
        CU_ASSERT_FATAL(status == UCS_ERR_NO_RESOURCE);
        status = uct_ep_pending_add(sender->ep, &job->req, 0);
    } while (status == UCS_ERR_BUSY);
    CU_ASSERT_FATAL(status == UCS_OK);
}

static void submit(sender_t *sender, uct_ep_h ep, uint64_t total)
{
    uint64_t number;

    memset(sender, 0, sizeof(*sender));
    sender->ep    = ep;
    sender->index = (unsigned)(sender - senders);
    sender->total = total;
    for (number = 0; number < total; ++number) {
        job_submit(sender, number);
    }
}

static void open_pair(uct_pair_t *pair, const char *const *settings)
{
    CU_ASSERT_FATAL(uct_pair_create(pair, settings) == 0);
    memset(inboxes, 0, sizeof(inboxes));
    CU_ASSERT(uct_iface_set_am_handler(pair->a.iface, AM_ID, keep, NULL, 0) ==
              UCS_OK);
    CU_ASSERT(uct_iface_set_am_handler(pair->b.iface, AM_ID, keep, NULL, 0) ==
              UCS_OK);
}

static void finish(uct_pair_t *pair, unsigned num_senders)
{
    unsigned i;

    for (i = 0; i < num_senders; ++i) {
        uct_pair_wait(pair, &inboxes[i].count, senders[i].total);
        CU_ASSERT(inboxes[i].disorder == 0);
        CU_ASSERT(senders[i].started == senders[i].total);
    }
}

/* One endpoint has thousands of requests waiting when the others come: they get
 * as many turns as it has, and not what it leaves */
static void check_fair(const char *const *settings)
{
    uct_ep_h eps[NUM_EPS];
    uint64_t before;
    uct_pair_t pair;
    unsigned i;

    open_pair(&pair, settings);
    submit(&senders[0], pair.a.peer, MANY);
    before = senders[0].started;
    for (i = 1; i < NUM_EPS; ++i) {
        CU_ASSERT_FATAL(uct_pair_connect(pair.a.iface, pair.b.dev_addr,
                                         pair.b.iface_addr, &eps[i]) ==
                        UCS_OK);
        submit(&senders[i], eps[i], FEW);
    }
    while (senders[1].started < FEW) {
        uct_pair_progress(&pair);
        /* One more: the sender that begins a round */
        CU_ASSERT_FATAL(senders[0].started <= before + senders[1].started + 1);
    }
    for (i = 1; i < NUM_EPS; ++i) {
        CU_ASSERT(senders[i].started >= FEW - 1);
    }
    finish(&pair, NUM_EPS);
    for (i = 1; i < NUM_EPS; ++i) {
        uct_ep_destroy(eps[i]);
    }
    uct_pair_destroy(&pair);
}

ST_CASE(fair)
{
    static const char *const settings[] = {"TX_QUEUE_LEN", "4", NULL};

    check_fair(settings);
}

ST_CASE(fair_one)
{
    static const char *const settings[] = {"TX_QUEUE_LEN", "1",
                                           "RX_QUEUE_LEN", "1", NULL};

    check_fair(settings);
}

static void count_purged(uct_pending_req_t *req, void *arg)
{
    ++*(unsigned*)arg;
}

ST_CASE(purge)
{
    static const char *const settings[] = {"TX_QUEUE_LEN", "4", NULL};
    unsigned purged                     = 0;
    uct_pair_t pair;

    open_pair(&pair, settings);
    submit(&senders[0], pair.a.peer, FEW);
    CU_ASSERT(uct_ep_flush(pair.a.peer, 0, NULL) == UCS_ERR_NO_RESOURCE);
    uct_ep_pending_purge(pair.a.peer, count_purged, &purged);
    CU_ASSERT(purged == FEW - 4);
    CU_ASSERT(uct_pair_flush(&pair, pair.a.peer) == UCS_OK);
    uct_pair_destroy(&pair);
}

/* An endpoint with requests that wait: they are dropped, and others go on */
ST_CASE(destroy)
{
    static const char *const settings[] = {"TX_QUEUE_LEN", "4", NULL};
    uct_pair_t pair;

    open_pair(&pair, settings);
    submit(&senders[0], pair.a.peer, FEW);
    uct_errors_begin();
    uct_ep_destroy(pair.a.peer);
    CU_ASSERT(uct_errors_end() == 0);
    CU_ASSERT_FATAL(uct_pair_connect(pair.a.iface, pair.b.dev_addr,
                                     pair.b.iface_addr, &pair.a.peer) ==
                    UCS_OK);
    uct_pair_wait(&pair, &inboxes[0].count, 4);
    submit(&senders[1], pair.a.peer, FEW);
    uct_pair_wait(&pair, &inboxes[1].count, FEW);
    CU_ASSERT((inboxes[0].count == 4) && (senders[0].started == 4));
    CU_ASSERT((inboxes[0].disorder == 0) && (inboxes[1].disorder == 0));
    uct_pair_destroy(&pair);
}

/* All to all, with room for one message each way: nobody waits for ever */
ST_CASE(no_deadlock)
{
    static const char *const settings[] = {"TX_QUEUE_LEN", "1",
                                           "RX_QUEUE_LEN", "1", NULL};
    uct_pair_t pair;

    open_pair(&pair, settings);
    submit(&senders[0], pair.a.peer, MANY / 2);
    submit(&senders[1], pair.b.peer, MANY / 2);
    submit(&senders[2], pair.a.self, MANY / 4);
    submit(&senders[3], pair.b.self, MANY / 4);
    finish(&pair, 4);
    CU_ASSERT(uct_pair_flush(&pair, pair.a.peer) == UCS_OK);
    CU_ASSERT(uct_pair_flush(&pair, pair.b.peer) == UCS_OK);
    uct_pair_destroy(&pair);
}

/* The receiver makes no progress while the sender sends all that the network
 * takes: many more than the receiver has posted receives for. On Cassini, a
 * queue of events that runs over ends the process now and then. */
ST_CASE(slow_receiver)
{
    unsigned idle   = 0;
    uint64_t number = 0;
    ucs_status_t status;
    uct_pair_t pair;

    open_pair(&pair, NULL);
    while (number < HELD) {
        status = uct_ep_am_short(pair.a.peer, AM_ID, 0, &number,
                                 sizeof(number));
        if (status == UCS_OK) {
            ++number;
            idle = (idle < IDLE) ? 0 : IDLE;
        } else if (idle < IDLE) {
            CU_ASSERT_FATAL(status == UCS_ERR_NO_RESOURCE);
            ++idle;
            (void)uct_iface_progress(pair.a.iface);
        } else {
            uct_pair_progress(&pair); /* the network takes no more */
        }
    }
    uct_pair_wait(&pair, &inboxes[0].count, HELD);
    CU_ASSERT(inboxes[0].disorder == 0);
    uct_pair_destroy(&pair);
}

/* A completion that sends a message */
typedef struct {
    uct_completion_t comp;
    uct_ep_h         ep;
    ucs_status_t     status; /* Of the message */
    uint64_t         calls;
} answer_t;

static void answer_send(uct_completion_t *comp)
{
    answer_t *answer = ucs_container_of(comp, answer_t, comp);
    uint64_t number  = 0;

    answer->status = uct_ep_am_short(answer->ep, AM_ID, 0, &number,
                                     sizeof(number));
    ++answer->calls;
}

static void answer_init(answer_t *answer, uct_ep_h ep)
{
    memset(answer, 0, sizeof(*answer));
    answer->ep         = ep;
    answer->comp.func  = answer_send;
    answer->comp.count = 1;
}

/* All descriptors but that of the operation which has just ended are in use:
 * UCP sends what it owes the peer from the completion, and takes any error but
 * a lack of room for final */
static void check_answer(int is_flush)
{
    static const char *const settings[] = {"TX_QUEUE_LEN", "1", NULL};
    static uint64_t word;
    uct_iov_t iov = {
        .buffer = &word,
        .length = sizeof(word),
        .memh   = UCT_MEM_HANDLE_NULL,
        .count  = 1
    };
    uct_region_t region;
    answer_t answer;
    uct_pair_t pair;

    open_pair(&pair, settings);
    uct_region_open(&region, &pair, sizeof(word));
    answer_init(&answer, pair.a.peer);
    CU_ASSERT_FATAL(uct_ep_get_zcopy(pair.a.peer, &iov, 1,
                                     uct_region_at(&region, 0),
                                     region.rkey.rkey,
                                     is_flush ? NULL : &answer.comp) ==
                    UCS_INPROGRESS);
    if (is_flush) {
        CU_ASSERT_FATAL(uct_ep_flush(pair.a.peer, 0, &answer.comp) ==
                        UCS_INPROGRESS);
    }
    uct_pair_wait(&pair, &answer.calls, 1);
    CU_ASSERT_FATAL(answer.status == UCS_OK);
    uct_pair_wait(&pair, &inboxes[0].count, 1);
    CU_ASSERT(uct_pair_flush(&pair, pair.a.peer) == UCS_OK);
    uct_region_close(&region);
    uct_pair_destroy(&pair);
}

ST_CASE_CALL(answer, check_answer(0))
ST_CASE_CALL(answer_flush, check_answer(1))

ST_SUITE("uct_pending")
