/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cassini_ct.c - the emulated Cassini: counters, their pages, triggered
 * operations, wait objects, and what there is little of. */
#include "cassini_user.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define BITS    0x55
#define ADDS    100000
#define FEW     8
#define SUCCESS ((1ull << 48) - 1)


/** A user with an entry over its memory, and two counters. */
typedef struct {
    cassini_user_t    user;
    cassini_user_ct_t a;
    cassini_user_ct_t b;
} counted_t;

static void open_counted(counted_t *c)
{
    cassini_command_t entry;

    cassini_user_open(&c->user, CASSINI_PID_ANY);
    cassini_ct_open(&c->user, &c->a);
    cassini_ct_open(&c->user, &c->b);
    entry = cassini_entry(&c->user, CASSINI_PRIORITY, c->user.memory, 4096,
                          BITS);
    entry.tgt.no_success = 1;
    cassini_append(&c->user, &entry);
}

static void close_counted(counted_t *c)
{
    cassini_unlink(&c->user, CASSINI_PRIORITY, 77);
    cassini_ct_close(&c->b);
    cassini_ct_close(&c->a);
    cassini_user_close(&c->user);
}

/* A put of 8 bytes, whose success is counted alone */
static cassini_command_t put(counted_t *c, const cassini_user_ct_t *ct)
{
    cassini_command_t cmd = cassini_dma(&c->user, CASSINI_OP_PUT,
                                        c->user.domain->pid,
                                        c->user.memory + 4096, 8);

    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    cmd.dma.no_success = 1;
    if (ct != NULL) {
        cmd.dma.ct     = ct->ct->ctn;
        cmd.dma.ct_ack = 1;
    }
    return cmd;
}

static void set(counted_t *c, const cassini_user_ct_t *ct, uint64_t success,
                int failure)
{
    cassini_command_t cmd = cassini_command(CASSINI_CT, CASSINI_CT_SET);

    cmd.ct.ct          = ct->ct->ctn;
    cmd.ct.success     = success;
    cmd.ct.set_success = 1;
    if (failure >= 0) {
        cmd.ct.failure     = (unsigned)failure;
        cmd.ct.set_failure = 1;
    }
    cassini_emit(c->user.trig, &cmd, sizeof(cmd.ct));
}

/* A command that waits for a count */
static cassini_command_t trigger(const cassini_user_ct_t *ct,
                                 uint64_t threshold, unsigned op)
{
    cassini_command_t cmd = cassini_command(CASSINI_CT, op);

    cmd.ct.trig_ct   = ct->ct->ctn;
    cmd.ct.threshold = threshold;
    return cmd;
}

static void trigger_put(counted_t *c, const cassini_user_ct_t *ct,
                        uint64_t threshold, const cassini_command_t *dma)
{
    cassini_command_t cmd = trigger(ct, threshold, CASSINI_CT_TRIG_DMA);

    memcpy((uint8_t*)&cmd + sizeof(cmd.ct), &dma->dma, sizeof(dma->dma));
    ((cassini_head_t*)((uint8_t*)&cmd + sizeof(cmd.ct)))->size = CASSINI_64B;
    cassini_emit(c->user.trig, &cmd, sizeof(cmd.ct) + sizeof(dma->dma));
}

static void trigger_count(counted_t *c, const cassini_user_ct_t *ct,
                          uint64_t threshold, const cassini_user_ct_t *other,
                          unsigned count)
{
    cassini_command_t cmd = trigger(ct, threshold, CASSINI_CT_TRIG_INC);

    cmd.ct.ct      = other->ct->ctn;
    cmd.ct.success = count;
    cassini_emit(c->user.trig, &cmd, sizeof(cmd.ct));
}

/* A store into a counter's page, as software has it */
static void store(const cassini_user_ct_t *ct, unsigned word, uint64_t value)
{
    *(volatile uint64_t*)((uint8_t*)ct->ct->page + word) = value;
}

ST_CASE_WITH(set, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_ct_expect(&c->user, &c->a, 0, 0);
    set(c, &c->a, 1234567, 5);
    cassini_ct_expect(&c->user, &c->a, 1234567, 5);
    set(c, &c->a, SUCCESS, -1);
    cassini_ct_expect(&c->user, &c->a, SUCCESS, 5);
    cassini_ct_expect(&c->user, &c->b, 0, 0);
}

ST_CASE_WITH(page, counted_t, c, open_counted(c), close_counted(c))
{
    store(&c->a, CASSINI_CT_ADD, 1);
    store(&c->a, CASSINI_CT_ADD, 1000000);
    store(&c->a, CASSINI_CT_ADD_FAILURE, 3);
    cassini_ct_expect(&c->user, &c->a, 1000001, 3);
    store(&c->a, CASSINI_CT_RESET, 0);
    cassini_ct_expect(&c->user, &c->a, 0, 3);
    store(&c->a, CASSINI_CT_ADD, 7);
    store(&c->a, CASSINI_CT_RESET_FAILURE, 0);
    cassini_ct_expect(&c->user, &c->a, 7, 0);
}

/* Successes begin anew behind 48 bits, failures stay at 127 */
ST_CASE_WITH(limits, counted_t, c, open_counted(c), close_counted(c))
{
    int i;

    set(c, &c->a, SUCCESS, 0);
    cassini_ct_expect(&c->user, &c->a, SUCCESS, 0);
    store(&c->a, CASSINI_CT_ADD, 3);
    for (i = 0; i < 200; ++i) {
        store(&c->a, CASSINI_CT_ADD_FAILURE, 1);
    }
    cassini_ct_expect(&c->user, &c->a, 2, CASSINI_FAILURE_MAX);
}

typedef struct {
    const cassini_user_ct_t *a;
    const cassini_user_ct_t *b;
} adder_t;

static void *add_many(void *arg)
{
    const adder_t *adder = arg;
    int i;

    for (i = 0; i < (ADDS / 2); ++i) {
        store(adder->a, CASSINI_CT_ADD, 1);
        if ((i % 100) == 0) {
            store(adder->b, CASSINI_CT_ADD, 3);
        }
    }
    return NULL;
}

/* Two adds are never one: 100,000 by two threads, to one counter, and some to
 * another one meanwhile */
ST_CASE_WITH(adds, counted_t, c, open_counted(c), close_counted(c))
{
    adder_t adder = {&c->a, &c->b};
    pthread_t thread;

    CU_ASSERT_FATAL(pthread_create(&thread, NULL, add_many, &adder) == 0);
    (void)add_many(&adder);
    pthread_join(thread, NULL);
    cassini_ct_expect(&c->user, &c->a, ADDS, 0);
    cassini_ct_expect(&c->user, &c->b, 3 * (ADDS / 100), 0);
}

/* Each add fires what waits for it, however close it comes behind another */
ST_CASE_WITH(adds_fire, counted_t, c, open_counted(c), close_counted(c))
{
    adder_t adder = {&c->a, &c->b};
    pthread_t thread;
    int i;

    for (i = 1; i <= 100; ++i) {
        trigger_count(c, &c->a, (uint64_t)i * (ADDS / 100), &c->b, 1);
    }
    CU_ASSERT(cassini_drained(c->user.trig, 30000));
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, add_many, &adder) == 0);
    (void)add_many(&adder);
    pthread_join(thread, NULL);
    cassini_ct_expect(&c->user, &c->b, (3 * (ADDS / 100)) + 100, 0);
}

/* A command that adds fires what waits for it */
ST_CASE_WITH(increment, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_command_t cmd = cassini_command(CASSINI_CT, CASSINI_CT_INC);

    set(c, &c->a, 5, 1);
    trigger_count(c, &c->a, 8, &c->b, 1);
    cmd.ct.ct      = c->a.ct->ctn;
    cmd.ct.success = 2;
    cassini_emit(c->user.trig, &cmd, sizeof(cmd.ct));
    cassini_ct_expect(&c->user, &c->a, 7, 1);
    cassini_ct_expect(&c->user, &c->b, 0, 0);
    cmd.ct.success = 1;
    cmd.ct.failure = 2;
    cassini_emit(c->user.trig, &cmd, sizeof(cmd.ct));
    cassini_ct_expect(&c->user, &c->a, 8, 3);
    cassini_ct_expect(&c->user, &c->b, 1, 0);
}

/* A completion counts: success, bytes, failure */
ST_CASE_WITH(completions, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_command_t cmd = put(c, &c->a);

    cassini_emit(c->user.tx, &cmd, sizeof(cmd.dma));
    cassini_ct_expect(&c->user, &c->a, 1, 0);
    cmd.dma.ct_bytes = 1;
    cassini_emit(c->user.tx, &cmd, sizeof(cmd.dma));
    cassini_ct_expect(&c->user, &c->a, 9, 0);
    cmd.dma.match_bits = BITS + 1;
    cassini_emit(c->user.tx, &cmd, sizeof(cmd.dma));
    cassini_refused(&c->user, CASSINI_EV_PUT, CASSINI_EV_ACK,
                    CASSINI_RC_ENTRY_NOT_FOUND);
    cassini_ct_expect(&c->user, &c->a, 9, 1);
}

/* A get counts its reply */
ST_CASE_WITH(replies, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_command_t cmd = put(c, &c->a);

    cmd.dma.op       = CASSINI_OP_GET;
    cmd.dma.ct_ack   = 0;
    cmd.dma.ct_reply = 1;
    cassini_emit(c->user.tx, &cmd, sizeof(cmd.dma));
    cassini_ct_expect(&c->user, &c->a, 1, 0);
}

/* An entry counts what comes in, gets as well */
ST_CASE_WITH(entry_counts, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_command_t entry = cassini_entry(&c->user, CASSINI_PRIORITY,
                                            c->user.memory, 64, BITS + 1);
    cassini_command_t cmd   = put(c, NULL);

    entry.tgt.buffer_id  = 2;
    entry.tgt.ct         = c->a.ct->ctn;
    entry.tgt.ct_comm    = 1;
    entry.tgt.no_success = 1;
    cassini_append(&c->user, &entry);
    cmd.dma.match_bits = BITS + 1;
    cassini_emit(c->user.tx, &cmd, sizeof(cmd.dma));
    cassini_ct_expect(&c->user, &c->a, 1, 0);
    cmd.dma.op = CASSINI_OP_GET;
    cassini_emit(c->user.tx, &cmd, sizeof(cmd.dma));
    cassini_ct_expect(&c->user, &c->a, 2, 0);
    cassini_unlink(&c->user, CASSINI_PRIORITY, 2);
}

/* A put that waits for a count does nothing before it, and is done once */
ST_CASE_WITH(triggered_put, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_command_t cmd = put(c, &c->b);

    c->user.memory[4096] = 11;
    trigger_put(c, &c->a, 3, &cmd);
    CU_ASSERT(cassini_drained(c->user.trig, 30000));
    store(&c->a, CASSINI_CT_ADD, 2);
    cassini_ct_expect(&c->user, &c->a, 2, 0);
    CU_ASSERT(c->user.memory[0] == 0);
    store(&c->a, CASSINI_CT_ADD, 1);
    cassini_ct_expect(&c->user, &c->b, 1, 0);
    CU_ASSERT(c->user.memory[0] == 11);
    store(&c->a, CASSINI_CT_ADD, 5);
    cassini_ct_expect(&c->user, &c->a, 8, 0);
    cassini_ct_expect(&c->user, &c->b, 1, 0);
}

/* The count is there already; one of 32 bytes; an atomic */
ST_CASE_WITH(triggered_now, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_command_t put_cmd = put(c, &c->b);
    cassini_command_t cmd     = trigger(&c->a, 5, CASSINI_CT_TRIG_DMA);
    cassini_dma_amo_t amo     = {.dma = put_cmd.dma};

    set(c, &c->a, 10, 0);
    trigger_put(c, &c->a, 10, &put_cmd);
    cassini_ct_expect(&c->user, &c->b, 1, 0);
    amo.dma.op     = CASSINI_OP_ATOMIC;
    amo.dma.size   = CASSINI_128B;
    amo.dma.length = 8;
    amo.dma.offset = 8;
    amo.amo_op     = CASSINI_AMO_SUM;
    amo.amo_type   = CASSINI_UINT64;
    memset(c->user.memory + 4096, 0, 8);
    c->user.memory[4096] = 5;
    memcpy((uint8_t*)&cmd + sizeof(cmd.ct), &amo, sizeof(amo));
    cassini_emit(c->user.trig, &cmd, sizeof(cmd.ct) + sizeof(amo));
    cassini_ct_expect(&c->user, &c->b, 2, 0);
    CU_ASSERT(c->user.memory[8] == 5);
}

/* One counter counts another, which sets the first: a chain */
ST_CASE_WITH(triggered_counts, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_command_t cmd = trigger(&c->b, 4, CASSINI_CT_TRIG_SET);

    trigger_count(c, &c->a, 1, &c->b, 1);
    trigger_count(c, &c->a, 2, &c->b, 3);
    cmd.ct.ct          = c->a.ct->ctn;
    cmd.ct.success     = 100;
    cmd.ct.set_success = 1;
    cassini_emit(c->user.trig, &cmd, sizeof(cmd.ct));
    CU_ASSERT(cassini_drained(c->user.trig, 30000));
    store(&c->a, CASSINI_CT_ADD, 1);
    cassini_ct_expect(&c->user, &c->b, 1, 0);
    store(&c->a, CASSINI_CT_ADD, 1);
    cassini_ct_expect(&c->user, &c->b, 4, 0);
    cassini_ct_expect(&c->user, &c->a, 100, 0);
}

/* A counter is written back when it gets there, without being asked */
ST_CASE_WITH(triggered_event, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_command_t cmd = trigger(&c->a, 2, CASSINI_CT_TRIG_EVENT);
    double end            = cassini_now() + cassini_limit();
    cassini_ct_back_t back;
    uint64_t word;

    cmd.ct.ct = c->a.ct->ctn;
    __atomic_store_n(c->a.back, 0, __ATOMIC_RELEASE);
    cassini_emit(c->user.trig, &cmd, sizeof(cmd.ct));
    store(&c->a, CASSINI_CT_ADD, 2);
    do {
        word = __atomic_load_n(c->a.back, __ATOMIC_ACQUIRE);
        memcpy(&back, &word, sizeof(back));
    } while (!back.valid && (cassini_now() < end));
    CU_ASSERT(back.valid);
    CU_ASSERT(back.success == 2);
}

/* With an event queue there is an event in place of that */
ST_CASE_WITH(triggered_op, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_command_t cmd         = trigger(&c->a, 2, CASSINI_CT_TRIG_EVENT);
    const cassini_ev_trig_t *trig = &c->user.event.trig;

    cmd.ct.eq = c->user.eq->eqn;
    cassini_emit(c->user.trig, &cmd, sizeof(cmd.ct));
    store(&c->a, CASSINI_CT_ADD, 1);
    cassini_ct_expect(&c->user, &c->a, 1, 0);
    CU_ASSERT(!cassini_event_is_there(&c->user, 0));
    __atomic_store_n(c->a.back, 0, __ATOMIC_RELEASE);
    store(&c->a, CASSINI_CT_ADD, 5);
    cassini_event_rc(&c->user, CASSINI_EV_TRIGGERED_OP, CASSINI_RC_OK);
    CU_ASSERT(trig->ct == c->a.ct->ctn);
    CU_ASSERT(trig->threshold == 2);
    CU_ASSERT(*c->a.back == 0);
    cassini_ct_expect(&c->user, &c->a, 6, 0);
}

/* A failure is written back as well */
ST_CASE_WITH(failure_back, counted_t, c, open_counted(c), close_counted(c))
{
    double end = cassini_now() + cassini_limit();
    cassini_ct_back_t back;
    uint64_t word;

    __atomic_store_n(c->a.back, 0, __ATOMIC_RELEASE);
    store(&c->a, CASSINI_CT_ADD_FAILURE, 1);
    do {
        word = __atomic_load_n(c->a.back, __ATOMIC_ACQUIRE);
        memcpy(&back, &word, sizeof(back));
    } while (!back.valid && (cassini_now() < end));
    CU_ASSERT(back.valid);
    CU_ASSERT(back.failure == 1);
}

/* What waits for a counter is taken back, and its entries are free */
ST_CASE_WITH(cancel, counted_t, c, open_counted(c), close_counted(c))
{
    cassini_command_t cmd = cassini_command(CASSINI_CT, CASSINI_CT_CANCEL);
    cassini_svc_use_t use = {0};
    int i;

    for (i = 0; i < 20; ++i) {
        trigger_count(c, &c->a, 10 + i, &c->b, 1);
    }
    CU_ASSERT(cassini_drained(c->user.trig, 30000));
    CU_ASSERT(cxil_get_svc_rsrc_use(c->user.dev, 1, &use) == 0);
    CU_ASSERT(use.in_use[CASSINI_RSRC_TLE] >= 20);
    cmd.ct.ct = c->a.ct->ctn;
    cassini_emit(c->user.trig, &cmd, sizeof(cmd.ct));
    CU_ASSERT(cassini_drained(c->user.trig, 30000));
    CU_ASSERT(cxil_get_svc_rsrc_use(c->user.dev, 1, &use) == 0);
    CU_ASSERT(use.in_use[CASSINI_RSRC_TLE] == 0);
    store(&c->a, CASSINI_CT_ADD, 100);
    cassini_ct_expect(&c->user, &c->a, 100, 0);
    cassini_ct_expect(&c->user, &c->b, 0, 0);
}

/* An object that threads sleep on: it is readable behind an event, until it is
 * cleared, and where interrupts are on */
ST_CASE_WITH(wait_object, cassini_user_t, user, cassini_user_open(user, 80),
             cassini_user_close(user))
{
    cassini_eq_attr_t attr = {.length = 4096};
    cassini_wait_t *wait   = NULL;
    cassini_eq_t *eq       = NULL;
    cassini_md_t *md       = NULL;
    cassini_command_t cmd  = cassini_dma(user, CASSINI_OP_PUT,
                                         user->domain->pid, user->memory, 8);
    struct pollfd fd;

    attr.queue = aligned_alloc(4096, 4096);
    CU_ASSERT_FATAL(attr.queue != NULL);
    memset(attr.queue, 0, 4096);
    CU_ASSERT_FATAL(cxil_map(user->lni, attr.queue, 4096, CASSINI_MAP_PIN |
                             CASSINI_MAP_WRITE, NULL, &md) == 0);
    CU_ASSERT_FATAL(cxil_alloc_wait_obj(user->lni, &wait) == 0);
    CU_ASSERT_FATAL(cxil_alloc_evtq(user->lni, md, &attr, wait, NULL, &eq) ==
                    0);
    fd.fd     = cxil_get_wait_obj_fd(wait);
    fd.events = POLLPRI;
    CU_ASSERT(poll(&fd, 1, 0) == 0);
    cmd.dma.eq         = eq->eqn;
    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    CU_ASSERT(poll(&fd, 1, 30000) == 1);
    cxil_clear_wait_obj(wait);
    CU_ASSERT(poll(&fd, 1, 0) == 0);
    CU_ASSERT((((eq->events[eq->read + 14]) >> 2) & 0x1f) == CASSINI_EV_ACK);
    CU_ASSERT(cxil_destroy_evtq(eq) == 0);
    CU_ASSERT(cxil_destroy_wait_obj(wait) == 0);
    CU_ASSERT(cxil_unmap(md) == 0);
    free(attr.queue);
}

/* With 8 entries: the ninth command and all behind it wait until one is free */
static void part_few_entries(void)
{
    counted_t c;
    int i;

    open_counted(&c);
    for (i = 0; i < FEW; ++i) {
        trigger_count(&c, &c.a, 1 + i, &c.b, 1);
    }
    CASSINI_REQUIRE(cassini_drained(c.user.trig, 30000));
    trigger_count(&c, &c.a, 100, &c.b, 1000);
    trigger_count(&c, &c.b, 1, &c.b, 1000);
    CASSINI_REQUIRE(!cassini_drained(c.user.trig, 300));
    store(&c.a, CASSINI_CT_ADD, 2);
    CASSINI_REQUIRE(cassini_drained(c.user.trig, 30000));
    store(&c.a, CASSINI_CT_ADD, 98);
    cassini_ct_expect(&c.user, &c.b, FEW + 2000, 0);
    close_counted(&c);
}

ST_CASE(few_entries)
{
    CU_ASSERT(cassini_child_wait(cassini_child("few_entries",
                                               "CASSINI_TLES=8")) == 0);
}

/* A counter that is closed stays taken until its interface is closed */
static void part_few_counters(void)
{
    cassini_user_ct_t ct;
    cassini_user_t user;
    cassini_ct_t *more = NULL;
    int i, k;

    for (k = 0; k < 2; ++k) {
        cassini_user_open_lni(&user);
        for (i = 0; i < FEW; ++i) {
            cassini_ct_open(&user, &ct);
            cassini_ct_close(&ct);
        }
        ct.back = calloc(1, 64);
        CASSINI_REQUIRE(cxil_alloc_ct(user.lni, (void*)ct.back, &more) ==
                        -ENOSPC);
        free((void*)ct.back);
        cassini_user_close_lni(&user);
    }
}

ST_CASE(few_counters)
{
    CU_ASSERT(cassini_child_wait(cassini_child("few_counters",
                                               "CASSINI_CTS=8")) == 0);
}

/* No more entries of lists than there are */
static void part_few_list_entries(void)
{
    cassini_command_t entry;
    cassini_user_t user;
    unsigned i;

    cassini_user_open(&user, CASSINI_PID_ANY);
    for (i = 0; i < FEW; ++i) {
        entry               = cassini_entry(&user, CASSINI_PRIORITY,
                                            user.memory, 64, i);
        entry.tgt.buffer_id = i + 1;
        cassini_append(&user, &entry);
    }
    entry.tgt.buffer_id = 100;
    cassini_emit(user.tgt, &entry, sizeof(entry.tgt));
    cassini_event_rc(&user, CASSINI_EV_LINK, CASSINI_RC_NO_SPACE);
    CASSINI_REQUIRE(user.event.tgt.buffer_id == 100);
    /* Nor are those behind it, until software says so */
    cassini_unlink(&user, CASSINI_PRIORITY, 1);
    cassini_emit(user.tgt, &entry, sizeof(entry.tgt));
    cassini_event_rc(&user, CASSINI_EV_LINK, CASSINI_RC_NO_SPACE);
    entry.tgt.restart_seq = 1;
    cassini_append(&user, &entry);
    cassini_user_close(&user);
}

ST_CASE(few_list_entries)
{
    CU_ASSERT(cassini_child_wait(cassini_child("few_list_entries",
                                               "CASSINI_LES=8")) == 0);
}

/* The thread that adds has blocked all signals */
static void part_blocked(void)
{
    sigset_t all;
    counted_t c;
    int i;

    open_counted(&c);
    sigfillset(&all);
    CASSINI_REQUIRE(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    for (i = 0; i < 1000; ++i) {
        store(&c.a, CASSINI_CT_ADD, 1);
    }
    cassini_ct_expect(&c.user, &c.a, 1000, 0);
    close_counted(&c);
}

ST_CASE(signals_blocked)
{
    CU_ASSERT(cassini_child_wait(cassini_child("blocked", NULL)) == 0);
}

static const cassini_part_t parts[] = {
    {"few_entries", part_few_entries},
    {"few_counters", part_few_counters},
    {"few_list_entries", part_few_list_entries},
    {"blocked", part_blocked},
    {NULL, NULL}
};

CASSINI_SUITE("cassini_ct", parts)
