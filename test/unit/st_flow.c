/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_flow.c - one matched pair of operations between two workers.
 */
#include "st_cunit.h"
#include "st_flow.h"
#include "st_stream.h"

#include <stdlib.h>
#include <string.h>

const proto_t flow_protos[FLOW_NUM_PROTOS] = {
    {"standard", FLOW_EAGER_MAX + 8, 0, 0, 1, NULL, NULL},
    {"eager-ahead", FLOW_EAGER_MAX - 7, 0, 4, 1, NULL, NULL},
    {"eager-ahead", 3500, 0, 8, 1, NULL, NULL},
    {"eager-ahead", 1, 0, 32, 1, "2", NULL},
    {"ready", 512, 1, 0, 1, NULL, NULL},
    {"chunked", FLOW_EAGER_MAX + 8, 0, 0, 9, NULL, "1000"},
    {"chunked", 4000, 1, 0, 4, NULL, "1000"},
    {"chunked-2", FLOW_EAGER_MAX + 8, 0, 0, 2, "2", NULL},
    {"chunked-4", 5 * FLOW_EAGER_MAX, 0, 0, 44, "4", "1000"},
    {"chunked-3", 4 * FLOW_EAGER_MAX, 1, 0, 3, "3", NULL}
};

void flow_match(flow_t *flow, size_t length, int is_ready)
{
    flow->length = length;
    flow->send   = (is_ready ? st_rsend : st_send)(&flow->pair.side[ST_A],
                                                   flow->sbuf, length, 1);
    flow->recv   = st_recv(&flow->pair.side[ST_B], flow->rbuf, length + 64, 1);
    memset(flow->rbuf, ST_SPOILED, length + 64);
    st_match_ok(flow->send, flow->recv);
}

unsigned flow_count_devices(ucp_st_worker_h worker)
{
    ucp_st_worker_attr_t attr = {.num_lanes = 0};
    unsigned count            = 1;
    const char *p;

    CU_ASSERT_EQUAL(ucp_st_worker_query(worker, &attr), UCS_OK);
    for (p = strchr(attr.device, ','); p != NULL; p = strchr(p + 1, ',')) {
        ++count;
    }
    return count;
}

static void set_or_not(const char *name, const char *value)
{
    if (value == NULL) {
        unsetenv(name);
    } else {
        setenv(name, value, 1);
    }
}

/* Parts of half of what is sent ahead are enough for a device */
void flow_set_chunks(const char *devices, const char *chunk_max)
{
    set_or_not("UCX_ST_TRIG_DEVICES", devices);
    set_or_not("UCX_ST_CHUNK_MIN", (devices == NULL) ? NULL : "4096");
    set_or_not("UCX_ST_CHUNK_MAX", chunk_max);
}

static int flow_begin(flow_t *flow, size_t length)
{
    flow->sbuf = malloc(length + 1);
    flow->rbuf = malloc(length + 64);
    return st_pair_init(&flow->pair);
}

int flow_init(flow_t *flow, size_t length, int is_ready)
{
    if (!flow_begin(flow, length)) {
        return 0;
    }
    flow_match(flow, length, is_ready);
    return 1;
}

void flow_free(flow_t *flow)
{
    free(flow->sbuf);
    free(flow->rbuf);
}

void flow_cleanup(flow_t *flow)
{
    st_free2(flow->send, flow->recv);
    st_pair_cleanup(&flow->pair);
    flow_free(flow);
}

void flow_run(flow_body_t body, size_t length, int is_ready)
{
    flow_t flow;

    if (flow_init(&flow, length, is_ready)) {
        body(&flow, &flow.pair.side[ST_A], &flow.pair.side[ST_B]);
        flow_cleanup(&flow);
    }
}

int flow_init_proto(flow_t *flow, const proto_t *proto)
{
    unsigned devices = (proto->devices == NULL) ? 1 : atoi(proto->devices);
    int has_begun;

    flow_set_chunks(proto->devices, proto->chunk_max);
    has_begun = flow_begin(flow, proto->length);
    flow_set_chunks(NULL, NULL);
    if (!has_begun) {
        return 0;
    }
    if (flow_count_devices(flow->pair.side[ST_A].worker) < devices) {
        st_pair_cleanup(&flow->pair);
        flow_free(flow);
        st_cunit_skip("the provider has too few devices for all of it");
        return 0;
    }
    flow_match(flow, proto->length, proto->is_ready);
    return 1;
}

void flow_check_protocol(ucp_st_op_h op, const char *name, size_t length)
{
    ucp_st_op_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_op_query(op, &attr), UCS_OK);
    CU_ASSERT_STRING_EQUAL(attr.protocol, name);
    CU_ASSERT_EQUAL(attr.length, length);
    CU_ASSERT_EQUAL(attr.lane, UCP_ST_LANE_TRIG);
}

/* One use, host and stream in step: the receive first, for ready sends */
void flow_use(flow_t *flow, uint64_t seed)
{
    st_fill(flow->sbuf, flow->length, seed);
    st_start(&flow->pair.side[ST_B], flow->recv);
    st_sync(&flow->pair.side[ST_B]);
    st_use(&flow->pair.side[ST_A], flow->send);
    st_wait(&flow->pair.side[ST_B], flow->recv);
    st_pair_sync(&flow->pair);
    CU_ASSERT_TRUE(st_check(flow->rbuf, flow->length, seed));
    CU_ASSERT_TRUE(st_is_spoiled(flow->rbuf + flow->length, 64));
}

/** What a stream function works on. */
typedef struct {
    flow_t   *flow;
    uint64_t seed;
    int      *errors;
} work_t;

static void fill_func(void *arg)
{
    work_t *work = arg;

    st_fill(work->flow->sbuf, work->flow->length, work->seed);
}

/* Check, then spoil: a second look at stale data must not pass */
static void check_func(void *arg)
{
    work_t *work = arg;
    flow_t *flow = work->flow;

    if (!st_check(flow->rbuf, flow->length, work->seed) ||
        !st_is_spoiled(flow->rbuf + flow->length, 64)) {
        __atomic_fetch_add(work->errors, 1, __ATOMIC_RELAXED);
    }
    memset(flow->rbuf, ST_SPOILED, flow->length);
}

/* The hosts enqueue all uses before one can run: the streams wait for a gate */
void flow_run_ahead(flow_t *flow, unsigned uses)
{
    work_t *fill   = calloc(uses, sizeof(*fill));
    work_t *check  = calloc(uses, sizeof(*check));
    st_side_t *a   = &flow->pair.side[ST_A];
    st_side_t *b   = &flow->pair.side[ST_B];
    uint64_t gate  = 0;
    int errors     = 0;
    unsigned k;

    st_hold(a, &gate);
    st_hold(b, &gate);
    for (k = 0; k < uses; ++k) {
        fill[k] = (work_t){.flow = flow, .seed = k};
        st_launch(a, fill_func, &fill[k]);
        st_use(a, flow->send);
        check[k] = (work_t){flow, k, &errors};
        st_use(b, flow->recv);
        st_launch(b, check_func, &check[k]);
    }
    st_let_go(&gate);
    st_sync(a);
    st_sync(b);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(b->stream), UCS_OK);
    CU_ASSERT_EQUAL(errors, 0);
    free(fill);
    free(check);
}

void flow_query(st_side_t *side, uint64_t eager, ucp_st_worker_attr_t *attr)
{
    do {
        CU_ASSERT_EQUAL(ucp_st_worker_query(side->worker, attr), UCS_OK);
    } while (attr->stats.eager < eager);
}
