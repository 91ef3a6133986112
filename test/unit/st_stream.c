/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_stream.c - what the cases have their streams do beside messages.
 */
#include "st_stream.h"
#include "st_cunit.h"
#include "../integration/st_any.h"

#include <CUnit/CUnit.h>

#include <core/st_queue.h>
#include <gstream.h>

#include <sched.h>
#include <string.h>

void st_fill_func(void *arg)
{
    st_work_t *work = arg;

    st_fill(work->buffer, work->length, work->seed);
}

void st_check_func(void *arg)
{
    st_work_t *work = arg;

    if (!st_check(work->buffer, work->length, work->seed)) {
        __atomic_fetch_add(work->errors, 1, __ATOMIC_RELAXED);
    }
    memset(work->buffer, 0xcc, work->length);
}

void st_raise_func(void *arg)
{
    __atomic_store_n((int*)arg, 1, __ATOMIC_RELEASE);
}

void st_compute_until(const int done[2])
{
    volatile double x = 1;
    int i;

    for (i = 0; i < 2; ++i) {
        while (!__atomic_load_n(&done[i], __ATOMIC_ACQUIRE)) {
            x = (x * 1.5) + 1 / x;
        }
    }
}

void st_launch(st_side_t *side, ucs_gstream_func_t func, void *arg)
{
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_func(side->stream, func, arg), UCS_OK);
}

static gstream_ops_t capturing_ops;
static const gstream_ops_t *real_ops;

static ucs_status_t refuse(ucs_gstream_h stream, const ucs_gstream_cmd_t *cmds,
                           size_t count)
{
    (void)stream;
    (void)cmds;
    (void)count;
    return UCS_ERR_UNSUPPORTED;
}

/* Host streams know no capture, and streams of devices are not there yet: a
 * host stream is made to refuse as the contract of their back ends says
 * (gstream.h) */
void st_capture_begin(st_side_t *side)
{
    real_ops              = side->stream->ops;
    capturing_ops         = *real_ops;
    capturing_ops.enqueue = refuse;
    side->stream->ops     = &capturing_ops;
}

void st_capture_end(st_side_t *side)
{
    side->stream->ops = real_ops;
}

void st_begun(st_side_t *side)
{
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(side->stream), UCS_OK);
    while (ucp_st_queue_passed(side->queue) < side->queue->seq) {
        (void)sched_yield(); /* the service thread runs them */
    }
}

int st_needs_host(void)
{
    if (st_any_type() == UCS_GSTREAM_TYPE_HOST) {
        return 0;
    }
    st_cunit_skip("streams of the host are meant");
    return 1;
}

void st_hold(st_side_t *side, uint64_t *gate)
{
    CU_ASSERT_EQUAL(st_any_hold(side->stream, gate), UCS_OK);
}

void st_let_go(uint64_t *gate)
{
    st_any_open(gate);
}
