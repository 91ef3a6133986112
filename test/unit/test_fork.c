/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fork.c - children that are forked while other threads have locks: they
 * make contexts and streams of their own, and are refused those of the parent.
 */
#include "st_cunit.h"
#include "fork_util.h"
#include "gstream_util.h"
#include "ucp_side.h"
#include "cxi_trig_credit.h"

#include <ucs_gstream.h>
#include <ucs_gstream_event.h>
#include <ucs_gstream_group.h>
#include <ucs_gstream_memory.h>

#include <string.h>

#define TAG 7

/* What the parent has */
static struct {
    ucs_gstream_h       stream;
    ucs_gstream_h       asleep; /* Waits for the word */
    ucs_gstream_h       member; /* Of the group */
    ucs_gstream_group_h group;
    ucs_gstream_event_h event;
    volatile uint64_t   word;
} parent;


static void store_nowhere(void *arg, uint64_t offset, uint64_t value)
{
}

static int poll_nothing(void *arg)
{
    return 0;
}

static void use_registry(void)
{
    int local;

    (void)ucs_gstream_is_valid((ucs_gstream_h)&local);
}

static void use_devices(void)
{
    uint64_t page;

    (void)ucs_gstream_device_add(&page, sizeof(page), store_nowhere, NULL);
    (void)ucs_gstream_device_remove(&page);
}

static void use_pollers(void)
{
    const ucs_gstream_poller_t poller = {
        .poll = poll_nothing
    };

    (void)ucs_gstream_poller_add(&poller);
    (void)ucs_gstream_poller_remove(&poller);
}

static void use_memory(void)
{
    ucs_gstream_word_put(ucs_gstream_word_get());
}

static void use_sleepers(void)
{
    ucs_gstream_wake(&parent.word);
}

static void use_credits(void)
{
    const uct_cxi_trig_credit_params_t params = {
        .key = "test",
        .max = 1
    };
    uct_cxi_trig_credit_pool_t *pool;

    if (uct_cxi_trig_credit_pool_get(&params, &pool) == UCS_OK) {
        uct_cxi_trig_credit_pool_put(pool);
    }
}

static void (*const users[])(void) = {use_registry, use_devices, use_pollers,
                                      use_memory, use_sleepers, use_credits};

/* A message from one context to another one */
static int child_send(ucp_side_t *from, ucp_side_t *to)
{
    static const char text[]        = "from a child";
    const ucp_request_param_t param = {.op_attr_mask = 0};
    char buffer[sizeof(text)]       = "";
    ucp_ep_h ep                     = ucp_side_connect(from, to);
    ucs_status_ptr_t recv, send;

    recv = ucp_tag_recv_nbx(to->worker, buffer, sizeof(buffer), TAG, UINT64_MAX,
                            &param);
    send = ucp_tag_send_nbx(ep, text, sizeof(text), TAG, &param);
    if ((ucp_side_wait(from, to, send) != UCS_OK) ||
        (ucp_side_wait(to, from, recv) != UCS_OK) ||
        memcmp(buffer, text, sizeof(text))) {
        return __LINE__;
    }
    ucp_side_close_ep(from, ep);
    return 0;
}

static int child_context(void)
{
    ucp_side_t from, to;
    int line;

    if ((ucp_side_open(&from, "cxi_trig", 0, 0) != UCS_OK) ||
        (ucp_side_open(&to, "cxi_trig", 0, 0) != UCS_OK)) {
        return __LINE__;
    }
    line = child_send(&from, &to);
    ucp_side_close(&to);
    ucp_side_close(&from);
    return line;
}

static void count(void *arg)
{
    ++*(int*)arg;
}

static int child_stream(void)
{
    ucs_gstream_params_t params = {.field_mask = 0};
    volatile uint64_t *word     = ucs_gstream_word_get();
    int runs                    = 0;
    ucs_gstream_event_h event;
    ucs_gstream_h stream;

    if ((word == NULL) ||
        (ucs_gstream_create(&params, &stream) != UCS_OK) ||
        (ucs_gstream_event_create(&event) != UCS_OK)) {
        return __LINE__;
    }
    if ((ucs_gstream_enqueue_wait64(stream, word, 1) != UCS_OK) ||
        (ucs_gstream_enqueue_func(stream, count, &runs) != UCS_OK) ||
        (ucs_gstream_enqueue_record(stream, event) != UCS_OK)) {
        return __LINE__;
    }
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    ucs_gstream_wake(word);
    if ((ucs_gstream_event_synchronize(event) != UCS_OK) ||
        (ucs_gstream_synchronize(stream) != UCS_OK) || (runs != 1)) {
        return __LINE__;
    }
    if ((ucs_gstream_event_destroy(event) != UCS_OK) ||
        (ucs_gstream_destroy(stream) != UCS_OK)) {
        return __LINE__;
    }
    ucs_gstream_word_put(word);
    use_devices();
    use_pollers();
    return 0;
}

static int child_all(void)
{
    int line = child_context();

    return (line != 0) ? line : child_stream();
}

/* All of the parent's is refused, and nothing waits */
static int child_refused(void)
{
    ucs_gstream_h streams[] = {parent.stream, parent.asleep, parent.member};
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_GROUP,
        .group      = parent.group
    };
    ucs_gstream_h stream;
    double seconds;
    int runs = 0;
    size_t i;

    gstream_util_quiet(1);
    for (i = 0; i < ST_CUNIT_COUNT(streams); ++i) {
        stream = streams[i];
        if ((ucs_gstream_synchronize(stream) != UCS_ERR_UNSUPPORTED) ||
            (ucs_gstream_query(stream) != UCS_ERR_UNSUPPORTED) ||
            (ucs_gstream_enqueue_func(stream, count, &runs) !=
             UCS_ERR_UNSUPPORTED) ||
            (ucs_gstream_enqueue_wait64(stream, &parent.word, 1) !=
             UCS_ERR_UNSUPPORTED) ||
            (ucs_gstream_enqueue_record(stream, parent.event) !=
             UCS_ERR_UNSUPPORTED) ||
            (ucs_gstream_destroy(stream) != UCS_ERR_UNSUPPORTED)) {
            return __LINE__;
        }
    }
    if ((ucs_gstream_event_query(parent.event) != UCS_ERR_UNSUPPORTED) ||
        (ucs_gstream_event_synchronize(parent.event) != UCS_ERR_UNSUPPORTED) ||
        (ucs_gstream_event_elapsed(parent.event, parent.event, &seconds) !=
         UCS_ERR_UNSUPPORTED) ||
        (ucs_gstream_event_destroy(parent.event) != UCS_ERR_UNSUPPORTED)) {
        return __LINE__;
    }
    if ((ucs_gstream_group_destroy(parent.group) != UCS_ERR_UNSUPPORTED) ||
        (ucs_gstream_create(&params, &stream) != UCS_ERR_UNSUPPORTED)) {
        return __LINE__;
    }
    gstream_util_quiet(0);
    return child_stream();
}

static void parent_open(void)
{
    gstream_util_sleepy(1);
    parent.word   = 0;
    parent.group  = gstream_util_group(1);
    parent.stream = gstream_util_create();
    parent.asleep = gstream_util_create();
    parent.member = gstream_util_create_on(parent.group, 0);
    gstream_util_sleepy(0);
    CU_ASSERT_FATAL(ucs_gstream_event_create(&parent.event) == UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(parent.stream, parent.event),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(parent.stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(parent.asleep, &parent.word, 1),
                    UCS_OK);
}

static void parent_close(void)
{
    __atomic_store_n(&parent.word, 1, __ATOMIC_RELEASE);
    ucs_gstream_wake(&parent.word);
    gstream_util_finish(parent.asleep);
    gstream_util_finish(parent.member);
    gstream_util_finish(parent.stream);
    gstream_util_group_finish(parent.group);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(parent.event), UCS_OK);
}

ST_CASE(locks)
{
    parent_open();
    fork_among(users, ST_CUNIT_COUNT(users), child_all);
    parent_close();
}

/* A worker with an endpoint. No more: in a child of a process that has workers,
 * UCX's own thread for events is missing, and without it no endpoint of any
 * transport gets connected (seen with UCX 1.13). */
static int child_connect(void)
{
    ucp_side_t side;
    ucp_ep_h ep;

    if (ucp_side_open(&side, "cxi_trig", 0, 0) != UCS_OK) {
        return __LINE__;
    }
    ep = ucp_side_connect(&side, &side);
    (void)ucp_worker_progress(side.worker);
    ucp_side_close_ep(&side, ep);
    ucp_side_close(&side);
    return 0;
}

/* The parent has contexts, too, whose card has threads */
ST_CASE_IF(beside_context, !st_env_has_provider("cxi"),
           "the provider keeps what the emulated Cassini has not in a child")
{
    ucp_side_t from, to;

    CU_ASSERT_FATAL(ucp_side_open(&from, "cxi_trig", 0, 0) == UCS_OK);
    CU_ASSERT_FATAL(ucp_side_open(&to, "cxi_trig", 0, 0) == UCS_OK);
    CU_ASSERT_EQUAL(child_send(&from, &to), 0);
    fork_among(users, ST_CUNIT_COUNT(users), child_connect);
    CU_ASSERT_EQUAL(child_send(&from, &to), 0);
    ucp_side_close(&to);
    ucp_side_close(&from);
}

ST_CASE(refused)
{
    parent_open();
    (void)fork_one(child_refused);
    parent_close();
}

ST_SUITE("fork")
