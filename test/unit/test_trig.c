/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_trig.c - triggered operations: when they fire, what they count; counters
 * that are set back, and those that host streams add to by a store to the
 * trigger page.
 */
#include "gstream_util.h"
#include "trig_util.h"
#include "uct_errors.h"

#include <cxi_trig_cntr.h>
#include <ucs_gstream_memory.h>

#include <ucs/sys/sys.h>

#include <sched.h>
#include <string.h>

/* Where thresholds of a counter count from that is set back */
#define BASE 1000000

#define STREAMS 4
#define STORES  500


TRIG_CASE(fires_at_threshold, NULL)
{
    trig_put(trig, 0, 2);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    trig_barrier(trig);
    CU_ASSERT(trig->done == 0);
    CU_ASSERT(!trig_arrived(trig, 0));
    CU_ASSERT(trig_count(trig, trig->completion) == 0);

    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_arrived(trig, 0));
    CU_ASSERT(trig_count(trig, trig->completion) == 1);
    CU_ASSERT(trig->status == UCS_OK);
}

/* What nobody counts is done all the same, or failed */
TRIG_CASE(no_completion, NULL)
{
    uct_trig_deferred_t deferred;
    uct_trig_put_t put;

    deferred            = trig_deferred(trig, trig->trigger, 1);
    deferred.completion = NULL;
    put                 = trig_describe_put(trig, 0);
    CU_ASSERT(TRIG_POST(
            uct_trig_ep_put(trig->pair.a.peer, &put, &deferred)) == UCS_OK);
    deferred.threshold = 2;
    put                = trig_describe_put(trig, 1);
    ++put.rkey.key; /* There is no such key */
    CU_ASSERT(TRIG_POST(
            uct_trig_ep_put(trig->pair.a.peer, &put, &deferred)) == UCS_OK);

    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_arrived(trig, 0));
    CU_ASSERT(trig->status == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 2);
    CU_ASSERT(!trig_arrived(trig, 1));
    CU_ASSERT(trig->status != UCS_OK);
    CU_ASSERT(trig_count(trig, trig->completion) == 0);
}

TRIG_CASE(zero_add, NULL)
{
    trig_put(trig, 0, 1);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 0) == UCS_OK);
    trig_barrier(trig);
    CU_ASSERT(trig->done == 0);
    CU_ASSERT(trig_count(trig, trig->trigger) == 0);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
}

/* put -> completion counter -> atomic on a local word */
TRIG_CASE(chain, NULL)
{
    unsigned k;

    for (k = 1; k <= 20; ++k) {
        memset(trig->b_buffer, 0, sizeof(trig->b_buffer));
        trig_put(trig, k % TRIG_SLOTS, k);
        trig_add_word(trig, trig->completion, k);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->a_word, k);
        CU_ASSERT(trig_arrived(trig, k % TRIG_SLOTS));
        CU_ASSERT(trig->a_word == k);
        uct_pair_wait(&trig->pair, &trig->done, 2 * k);
    }
}

/* The region's counter at B counts A's puts, and triggers B's own atomic */
TRIG_CASE(remote_write_triggers, NULL)
{
    unsigned k;

    for (k = 1; k <= 20; ++k) {
        memset(trig->b_buffer, 0, sizeof(trig->b_buffer));
        trig_b_add_word(trig, trig->b_writes, k);
        trig_put(trig, k % TRIG_SLOTS, k);
        CU_ASSERT(trig->b_word == k - 1);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->b_word, k);
        CU_ASSERT(trig_arrived(trig, k % TRIG_SLOTS));
        uct_pair_wait(&trig->pair, &trig->done, 2 * k);
        CU_ASSERT(trig_count(trig, trig->b_writes) == k);
    }
}

/* The standard send: the host's add and the peer's write, in any order, make
 * two; one is not enough */
TRIG_CASE(two_counts, NULL)
{
    unsigned k, i;
    int is_add;

    for (k = 1; k <= 10; ++k) {
        trig_b_add_word(trig, trig->b_writes, 2 * k);
        for (i = 1; i <= 2; ++i) {
            is_add = (i % 2) == (k % 2);
            if (is_add) {
                CU_ASSERT(uct_trig_cntr_add(trig->b_writes, 1) == UCS_OK);
            } else {
                trig_put(trig, 0, k);
                CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
                uct_pair_wait(&trig->pair, &trig->done, (2 * k) - 1);
            }
            if (i == 1) {
                trig_barrier(trig);
                CU_ASSERT(trig_count(trig, trig->b_writes) == (2 * k) - 1);
                CU_ASSERT(trig->b_word == k - 1);
            }
        }
        uct_pair_wait(&trig->pair, &trig->b_word, k);
        uct_pair_wait(&trig->pair, &trig->done, 2 * k);
    }
}

/* An atomic from the peer counts like a put */
TRIG_CASE(atomic_counts_at_region, NULL)
{
    uct_trig_deferred_t deferred = trig_deferred(trig, trig->trigger, 0);
    uct_trig_atomic_t atomic     = {
        .value       = 7,
        .remote_addr = (uintptr_t)trig->b_buffer,
        .rkey        = trig->b_rkey
    };

    CU_ASSERT_FATAL(TRIG_POST(
            uct_trig_ep_atomic_add64(trig->pair.a.peer, &atomic,
                                     &deferred)) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_count(trig, trig->b_writes) == 1);
    CU_ASSERT(*(uint64_t*)trig->b_buffer == 7);
}

TRIG_CASE(large_put, NULL)
{
    enum {
        LENGTH = 3000000
    };
    static uint8_t source[LENGTH], target[LENGTH];
    uct_trig_deferred_t deferred = trig_deferred(trig, trig->trigger, 0);
    uct_trig_put_t put           = {
        .buffer      = source,
        .length      = LENGTH,
        .remote_addr = (uintptr_t)target
    };
    uct_trig_mem_h mem;
    unsigned i;

    memset(target, 0, sizeof(target));
    for (i = 0; i < LENGTH; ++i) {
        source[i] = (uint8_t)(i * 31 + i / 255 + 1);
    }
    put.rkey = trig_reg(trig->pair.b.iface, target, LENGTH, NULL, &mem);
    CU_ASSERT_FATAL(TRIG_POST(
            uct_trig_ep_put(trig->pair.a.peer, &put, &deferred)) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(uct_trig_mem_dereg(mem) == UCS_OK);
    CU_ASSERT(memcmp(source, target, LENGTH) == 0);
}

TRIG_CASE(get, NULL)
{
    uct_trig_deferred_t deferred;
    uct_trig_mem_h mem;
    uct_trig_get_t get;
    int i;

    memset(trig->b_buffer, 0x11, sizeof(trig->b_buffer));
    get = (uct_trig_get_t){
        .buffer      = trig->a_buffer,
        .length      = TRIG_LENGTH,
        .remote_addr = (uintptr_t)trig->b_buffer + TRIG_LENGTH,
        .rkey        = trig_reg(trig->pair.b.iface, trig->b_buffer,
                                sizeof(trig->b_buffer), NULL, &mem)
    };
    for (i = 1; i <= 3; ++i) {
        deferred = trig_deferred(trig, trig->trigger, i);
        CU_ASSERT(TRIG_POST(
                uct_trig_ep_get(trig->pair.a.peer, &get, &deferred)) == UCS_OK);
        trig_barrier(trig);
        CU_ASSERT(trig->done == (uint64_t)(i - 1));
        memset(trig->b_buffer + TRIG_LENGTH, 0x20 + i, TRIG_LENGTH);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->done, i);
        CU_ASSERT(trig->status == UCS_OK);
        CU_ASSERT(trig_count(trig, trig->completion) == (uint64_t)i);
        CU_ASSERT(memcmp(trig->a_buffer, trig->b_buffer + TRIG_LENGTH,
                         TRIG_LENGTH) == 0);
    }
    get.remote_addr += sizeof(trig->b_buffer);
    CU_ASSERT(uct_trig_ep_get(trig->pair.a.peer, &get, &deferred) ==
              UCS_ERR_INVALID_PARAM);
    CU_ASSERT(uct_trig_mem_dereg(mem) == UCS_OK);
}

/* A region that counts is not for gets: Cassini's counter would count them. One
 * that is refused may be counted there, as a failure. */
TRIG_CASE(get_counted, NULL)
{
    int is_cxi = (strncmp(uct_pair_device(), "cxi", 3) == 0) &&
                 (strncmp(uct_pair_device(), "cxiemu", 6) != 0);
    uct_trig_deferred_t deferred;
    uct_trig_get_t get;
    uint64_t count;

    get      = (uct_trig_get_t){
        .buffer      = trig->a_buffer,
        .length      = TRIG_LENGTH,
        .remote_addr = (uintptr_t)trig->b_buffer,
        .rkey        = trig->b_rkey
    };
    deferred = trig_deferred(trig, trig->trigger, 1);
    CU_ASSERT(TRIG_POST(
            uct_trig_ep_get(trig->pair.a.peer, &get, &deferred)) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig->status != UCS_OK);
    count = trig_count(trig, trig->b_writes);
    CU_ASSERT((count == 0) || (is_cxi && (count == UINT64_MAX)));
}

/* What is armed waits for all of its threshold again; what has fired has */
TRIG_CASE(reset, NULL)
{
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, BASE) == UCS_OK);
    trig_put(trig, 0, BASE + 1);
    trig_put(trig, 1, BASE + 2);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);

    CU_ASSERT(uct_trig_cntr_reset(trig->trigger) == UCS_OK);
    CU_ASSERT(trig_count(trig, trig->trigger) == 0);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, BASE - 1) == UCS_OK);
    CU_ASSERT(trig_count(trig, trig->trigger) == BASE - 1);
    CU_ASSERT(trig_count(trig, trig->completion) == 1);
    CU_ASSERT(!trig_arrived(trig, 1));

    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 3) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 2);
    CU_ASSERT(trig_arrived(trig, 1));
}

/* What was added before a reset does not count for the limit */
TRIG_CASE(reset_limit, NULL)
{
    uct_trig_iface_attr_t attr;

    CU_ASSERT_FATAL(uct_trig_iface_query(trig->pair.a.iface, &attr) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->words, attr.max_count) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->words, 1) == UCS_ERR_EXCEEDS_LIMIT);
    CU_ASSERT(uct_trig_cntr_reset(trig->words) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->words, attr.max_count) == UCS_OK);
    CU_ASSERT(trig_count(trig, trig->words) == attr.max_count);
}

/* A counter as cxi has it before libfabric 2.3: a read gives what was written
 * back last, and asks for the next, which comes some reads later. So does what
 * sets it back. */
static struct {
    struct fi_ops_cntr ops;
    uint64_t           value;
    uint64_t           written;
    unsigned           reads;
    unsigned           set_at; /* When it becomes 0; 0: not asked */
    int                is_stuck; /* It is not set back */
} late;

static uint64_t late_read(struct fid_cntr *fid)
{
    ++late.reads;
    if (late.reads == late.set_at) {
        late.value  = 0;
        late.set_at = 0;
    }
    if ((late.reads % 4) == 0) {
        late.written = late.value;
    }
    return late.written;
}

static uint64_t late_readerr(struct fid_cntr *fid)
{
    return 0;
}

static int late_add(struct fid_cntr *fid, uint64_t value)
{
    if (late.set_at != 0) {
        late.value  = 0;
        late.set_at = 0;
    }
    late.value += value;
    return 0;
}

static int late_set(struct fid_cntr *fid, uint64_t value)
{
    late.set_at = late.is_stuck ? 0 : (late.reads + 10);
    return 0;
}

static int late_seterr(struct fid_cntr *fid, uint64_t value)
{
    return 0;
}

/* Make a counter such a one. Its own functions. */
static struct fi_ops_cntr *late_begin(uct_trig_cntr_h cntr)
{
    struct fi_ops_cntr *ops = cntr->cntr->ops;

    memset(&late, 0, sizeof(late));
    late.ops         = *ops;
    late.ops.read    = late_read;
    late.ops.readerr = late_readerr;
    late.ops.add     = late_add;
    late.ops.set     = late_set;
    late.ops.seterr  = late_seterr;
    cntr->cntr->ops  = &late.ops;
    return ops;
}

/* The 0 that is read first is from before the addition */
TRIG_CASE(reset_late, NULL)
{
    struct fi_ops_cntr *ops = late_begin(trig->words);

    CU_ASSERT(uct_trig_cntr_add(trig->words, 3) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_reset(trig->words) == UCS_OK);
    CU_ASSERT((late.value == 0) && (late.set_at == 0));
    trig->words->cntr->ops = ops;
}

/* The NIC does not answer for a while: calls end, and succeed again later */
TRIG_CASE(reset_stuck, NULL)
{
    struct fi_ops_cntr *ops = late_begin(trig->words);
    unsigned i;

    late.is_stuck = 1;
    uct_errors_begin_text(UCS_LOG_LEVEL_ERROR, "does not reset");
    for (i = 0; i < 3; ++i) {
        CU_ASSERT(uct_trig_cntr_add(trig->words, 3) == UCS_OK);
        CU_ASSERT(uct_trig_cntr_reset(trig->words) == UCS_ERR_IO_ERROR);
    }
    CU_ASSERT(uct_errors_end() == i);
    late.is_stuck = 0;
    CU_ASSERT(uct_trig_cntr_add(trig->words, 3) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_reset(trig->words) == UCS_OK);
    CU_ASSERT((late.value == 0) && (late.set_at == 0));
    trig->words->cntr->ops = ops;
}

/* Reads do not wait for a NIC either (FI_CXI_CNTR_CACHED) */
TRIG_CASE(reads_cached, NULL)
{
    uint64_t flags = 0;

    if (strncmp(uct_pair_device(), "cxi", 3) != 0) {
        st_cunit_skip("only cxi has reads that wait");
        return;
    }
    CU_ASSERT(fi_control(&trig->words->cntr->fid, FI_GETOPSFLAG, &flags) == 0);
    CU_ASSERT(flags == (UINT64_C(1) << 32));
}

/* A counter that is used again is at 0, whatever is read first */
TRIG_CASE(pool_late, NULL)
{
    struct fi_ops_cntr *ops = late_begin(trig->words);

    late.value = 3; /* Counted by the NIC */
    CU_ASSERT(uct_trig_cntr_destroy(trig->words) == UCS_OK);
    CU_ASSERT_FATAL(uct_trig_cntr_create(trig->pair.a.iface, &trig->words) ==
                    UCS_OK);
    if (trig->words->cntr->ops != &late.ops) {
        st_cunit_skip("counters are not used again");
    } else {
        CU_ASSERT((late.value == 0) && (late.set_at == 0));
        trig->words->cntr->ops = ops;
    }
}

/* Run the body of a case, where counters have trigger pages */
static void doorbell_run(void (*body)(trig_t *trig,
                                      volatile uint64_t *doorbell))
{
    volatile uint64_t *doorbell;
    trig_t trig;

    CU_ASSERT_FATAL(trig_create(&trig, NULL) == 0);
    doorbell = uct_trig_cntr_doorbell(trig.trigger);
    if (doorbell != NULL) {
        body(&trig, doorbell);
    } else {
        st_cunit_skip("the provider has no trigger page");
    }
    trig_destroy(&trig);
}

#define DOORBELL_CASE(_name) \
    static void st_body_##_name(trig_t *trig, volatile uint64_t *doorbell); \
    ST_CASE_CALL(_name, doorbell_run(st_body_##_name)) \
    static void st_body_##_name(trig_t *trig, volatile uint64_t *doorbell)

/* The stream starts one operation */
static void start(ucs_gstream_h stream, volatile uint64_t *doorbell)
{
    CU_ASSERT(ucs_gstream_enqueue_write64(stream, doorbell, 1) == UCS_OK);
}

/* Operations that are started one by one, with nothing in between */
DOORBELL_CASE(one_by_one)
{
    ucs_gstream_h stream;
    unsigned i;

    stream = gstream_util_create();
    for (i = 0; i < TRIG_SLOTS; ++i) {
        trig_put(trig, i, 1 + i);
    }
    for (i = 0; i < TRIG_SLOTS; ++i) {
        start(stream, doorbell);
    }
    gstream_util_finish(stream);
    uct_pair_wait(&trig->pair, &trig->done, TRIG_SLOTS);
    for (i = 0; i < TRIG_SLOTS; ++i) {
        CU_ASSERT(trig_arrived(trig, i));
    }
    CU_ASSERT(trig_count(trig, trig->trigger) == TRIG_SLOTS);
}

static void *page_start(volatile uint64_t *doorbell)
{
    return (void*)((uintptr_t)doorbell & ~((uintptr_t)ucs_get_page_size() - 1));
}

/* The page stays as it is when its counter is free: to end that would make a
 * runtime wait for streams of devices */
DOORBELL_CASE(page_stays)
{
    size_t size = ucs_get_page_size();
    uct_trig_cntr_h cntr;
    void *page;

    CU_ASSERT(uct_trig_cntr_create(trig->pair.a.iface, &cntr) == UCS_OK);
    page = page_start(uct_trig_cntr_doorbell(cntr));
    CU_ASSERT_PTR_NOT_EQUAL(page, page_start(doorbell));
    CU_ASSERT(uct_trig_cntr_destroy(cntr) == UCS_OK);
    CU_ASSERT(ucs_gstream_memory_remove(page) == UCS_OK);
    CU_ASSERT(ucs_gstream_memory_add(page, size, UCS_GSTREAM_MEMORY_IO) ==
              UCS_OK);
}

DOORBELL_CASE(streams)
{
    ucs_gstream_h streams[STREAMS];
    int i, j;

    trig_put(trig, 0, STREAMS * STORES);
    for (i = 0; i < STREAMS; ++i) {
        streams[i] = gstream_util_create();
    }
    for (j = 0; j < STORES; ++j) {
        for (i = 0; i < STREAMS; ++i) {
            start(streams[i], doorbell);
        }
    }
    for (i = 0; i < STREAMS; ++i) {
        gstream_util_finish(streams[i]);
    }
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_count(trig, trig->trigger) == STREAMS * STORES);
}

/* A stream goes on when what it started is complete, with no call of the host
 * in between: a chained atomic writes the word that it waits for */
DOORBELL_CASE(doorbell_chain)
{
    ucs_gstream_h stream;
    unsigned i;

    stream = gstream_util_create();
    for (i = 0; i < TRIG_SLOTS; ++i) {
        trig_put(trig, i, 1 + i);
        trig_add_word(trig, trig->completion, 1 + i);
    }
    for (i = 0; i < TRIG_SLOTS; ++i) {
        start(stream, doorbell);
        CU_ASSERT(ucs_gstream_enqueue_wait64(stream, &trig->a_word, 1 + i) ==
                  UCS_OK);
    }
    CU_ASSERT(ucs_gstream_synchronize(stream) == UCS_OK);
    CU_ASSERT(trig->a_word == TRIG_SLOTS);
    for (i = 0; i < TRIG_SLOTS; ++i) {
        CU_ASSERT(trig_arrived(trig, i));
    }
    uct_pair_wait(&trig->pair, &trig->done, 2 * TRIG_SLOTS);
    gstream_util_finish(stream);
}

static void compute_until(void *arg)
{
    const trig_t *trig = arg;

    while (__atomic_load_n(&trig->a_word, __ATOMIC_ACQUIRE) < 2) {
        sched_yield();
    }
}

/* The cards of both sides go on while the stream computes, which has just
 * waited and so polled for them, and no thread of the host calls anything */
DOORBELL_CASE(computes)
{
    ucs_gstream_h stream;
    unsigned i;

    stream = gstream_util_create();
    for (i = 0; i < 2; ++i) {
        trig_put(trig, i, 1 + i);
        trig_add_word(trig, trig->completion, 1 + i);
    }
    start(stream, doorbell);
    CU_ASSERT(ucs_gstream_enqueue_wait64(stream, &trig->a_word, 1) == UCS_OK);
    start(stream, doorbell);
    CU_ASSERT(ucs_gstream_enqueue_func(stream, compute_until, trig) == UCS_OK);
    CU_ASSERT(ucs_gstream_synchronize(stream) == UCS_OK);
    CU_ASSERT(trig_arrived(trig, 1));
    uct_pair_wait(&trig->pair, &trig->done, 4);
    gstream_util_finish(stream);
}

/* Work waits for a store that does not come: stores of streams are told of, and
 * nobody looks for them meanwhile */
DOORBELL_CASE(idle)
{
    unsigned long sleeps;

    trig_put(trig, 0, 1);
    gstream_util_pass_time(100);
    sleeps = st_cunit_sleeps("cxiemu");
    gstream_util_pass_time(1000);
    CU_ASSERT(st_cunit_sleeps("cxiemu") - sleeps <= 30);
    uct_trig_cntr_add(trig->trigger, 1);
    uct_pair_wait(&trig->pair, &trig->done, 1);
}

/* Deferred operations are cancelled for one counter alone. The others wait on,
 * and so does what waits for what has been cancelled. */
TRIG_CASE(cancel, NULL)
{
    ucs_status_t status;

    trig_put(trig, 0, 1);
    trig_put(trig, 1, 2);
    trig_add_word(trig, trig->completion, 1);
    trig_add_word(trig, trig->completion, 2);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    status = uct_trig_iface_cancel(trig->pair.a.iface, &trig->trigger, 1);
    if (status == UCS_ERR_UNSUPPORTED) {
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->done, 4);
        st_cunit_skip("the provider does not cancel");
        return;
    }
    CU_ASSERT(status == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 3);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 9) == UCS_OK);
    trig_barrier(trig);
    CU_ASSERT(trig_arrived(trig, 0));
    CU_ASSERT(!trig_arrived(trig, 1));
    CU_ASSERT(trig->a_word == 1);
    CU_ASSERT(trig->done == 3);

    /* All the rest */
    CU_ASSERT(uct_trig_iface_cancel(trig->pair.a.iface, NULL, 0) == UCS_OK);
    CU_ASSERT(trig->done == 4);
    CU_ASSERT(trig->status == UCS_ERR_CANCELED);
}

/* With all that it has, and work that waits: nothing stays open (see
 * FI_CXIEMU_LEAKS), and what waited is not carried out */
ST_CASE(closed_in_use)
{
    static trig_t trig;
    unsigned warnings;

    CU_ASSERT_FATAL(trig_create(&trig, NULL) == 0);
    trig_put(&trig, 0, 1);
    trig_add_word(&trig, trig.completion, 1);
    uct_errors_begin_text(UCS_LOG_LEVEL_WARN, "cannot close");
    uct_pair_close_side(&trig.pair.a);
    warnings = uct_errors_end();
    CU_ASSERT(warnings == 0);
    CU_ASSERT(!trig_arrived(&trig, 0));
    trig_destroy_b(&trig);
    uct_pair_destroy(&trig.pair);
}

ST_SUITE("trig")
