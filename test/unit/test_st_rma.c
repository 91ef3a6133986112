/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_rma.c - one-sided operations: what they move, in which order, and
 * what wakes a stream that waits for a signal.
 */
#include "st_cunit.h"
#include "st_stream.h"
#include "st_window.h"

#include <stdlib.h>
#include <string.h>

#define LEN    4096
#define ROUNDS 60

/* The largest is above what UCP sends at once */
static const size_t lengths[] = {0, 1, 8, 1000, 65536, 1u << 20};

static void check_lane(const st_window_t *window)
{
    ucp_st_rkey_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_rkey_query(window->rkey, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.lane, st_lane());
    CU_ASSERT(attr.length > window->length);
}

static void run_sizes(int is_library, int is_get)
{
    st_window_t windows[2];
    st_window_t *from, *to;
    st_pair_t pair;
    size_t i;

    st_pair_init(&pair);
    st_windows_init(&pair, windows, (1u << 20) + 1, is_library);
    from = &windows[is_get ? ST_B : ST_A];
    to   = &windows[is_get ? ST_A : ST_B];
    if (is_library) {
        check_lane(&windows[ST_A]);
    }
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        st_fill(from->memory, lengths[i], i);
        memset(to->memory, 0xee, lengths[i] + 1);
        (is_get ? st_get : st_put)(&windows[ST_A], 0, lengths[i], 0);
        st_quiet(&windows[ST_A]);
        st_sync(&pair.side[ST_A]);
        CU_ASSERT_TRUE(st_check(to->memory, lengths[i], i));
        CU_ASSERT_EQUAL(to->memory[lengths[i]], 0xee);
    }
    st_windows_cleanup(windows);
    st_pair_cleanup(&pair);
}

ST_CASE(put)
{
    run_sizes(1, 0);
    run_sizes(0, 0);
}

ST_CASE(get)
{
    run_sizes(1, 1);
    run_sizes(0, 1);
}

/* The stream reads a put's source when it comes to it, not before, and has what
 * it got behind the quiet */
ST_PAIR_CASE(stream_order)
{
    st_window_t windows[2];
    st_work_t fill, check;
    int errors = 0;

    st_windows_init(pair, windows, LEN, 1);
    fill  = (st_work_t){.buffer = windows[ST_A].memory, .length = LEN,
                        .seed = 3};
    check = (st_work_t){windows[ST_A].memory, LEN, 3, &errors};
    st_launch(a, st_fill_func, &fill);
    st_put(&windows[ST_A], 0, LEN, 0);
    st_quiet(&windows[ST_A]);
    st_launch(a, st_check_func, &check); /* spoils it */
    st_get(&windows[ST_A], 0, LEN, 0);
    st_quiet(&windows[ST_A]);
    st_launch(a, st_check_func, &check);
    st_quiet(&windows[ST_A]); /* nothing is left to wait for */
    st_sync(a);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(a->stream), UCS_OK);
    CU_ASSERT_EQUAL(errors, 0);
    CU_ASSERT_TRUE(st_check(windows[ST_B].memory, LEN, 3));
    st_windows_cleanup(windows);
}

/* Both sides' streams wait for the other one's signal, again and again: the
 * data is there with it, and nobody asks the host. Long data must not be
 * overtaken. */
static void run_ping_pong(size_t length)
{
    static st_work_t fill[2][ROUNDS], check[2][ROUNDS];
    int errors = 0;
    st_window_t windows[2];
    st_window_t *window;
    st_pair_t pair;
    int k, i, side;

    st_pair_init(&pair);
    st_windows_init(&pair, windows, length, 1);
    for (k = 0; k < ROUNDS; ++k) {
        for (i = 0; i < 2; ++i) {
            side           = (i == 0) ? ST_A : ST_B;
            window         = &windows[side];
            fill[side][k]  = (st_work_t){.buffer = window->memory,
                                         .length = length,
                                         .seed   = (2 * k) + side};
            check[side][k] = (st_work_t){window->memory, length,
                                         (2 * k) + 1 - side, &errors};
            if (side == ST_B) {
                st_wait_signal(window, 0, k + 1);
                st_launch(window->side, st_check_func, &check[side][k]);
            }
            st_launch(window->side, st_fill_func, &fill[side][k]);
            st_put_signal(window, length, 0, k + 1);
            if (side == ST_A) {
                st_wait_signal(window, 0, k + 1);
                st_launch(window->side, st_check_func, &check[side][k]);
            }
        }
    }
    for (i = 0; i < 2; ++i) {
        st_quiet(&windows[i]);
        st_sync(&pair.side[i]);
    }
    CU_ASSERT_EQUAL(errors, 0);
    st_windows_cleanup(windows);
    st_pair_cleanup(&pair);
}

ST_CASE(signal)
{
    run_ping_pong(64);
    run_ping_pong(100000);
}

/* Streams that have slept for long are woken; equality, and addition */
ST_PAIR_CASE(sleepers)
{
    ucp_st_signal_params_t signal;
    ucp_st_wait_signal_params_t wait;
    ucp_st_rma_params_t params;
    st_window_t windows[2];
    int done = 0;
    int i;

    st_windows_init(pair, windows, LEN, 1);
    wait             = st_wait_params(&windows[ST_B], 3, 15);
    wait.field_mask |= UCP_ST_WAIT_SIGNAL_PARAM_FIELD_CMP |
                       UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER;
    wait.cmp         = UCP_ST_SIGNAL_EQ;
    wait.peer        = b->peer;
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(b->queue, &wait), UCS_OK);
    st_launch(b, st_raise_func, &done);
    params             = st_rma_params(&windows[ST_A], 0, 0);
    signal             = st_signal_params(&windows[ST_A], 3, 5);
    signal.field_mask |= UCP_ST_SIGNAL_PARAM_FIELD_OP;
    signal.op          = UCP_ST_SIGNAL_ADD;
    for (i = 0; i < 3; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(b->stream, 0.02),
                        UCS_INPROGRESS);
        CU_ASSERT_EQUAL(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
        CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(a->queue, &params, &signal),
                        UCS_OK);
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(b->stream), UCS_OK);
    CU_ASSERT_EQUAL(done, 1);
    CU_ASSERT_EQUAL(*st_signal(&windows[ST_B], 3), 15);
    st_quiet(&windows[ST_A]);
    st_pair_sync(pair);
    st_windows_cleanup(windows);
}

/* Strict puts to one place: the last one stays, and a strict signal alone says
 * that all of them are there */
ST_PAIR_CASE(strict)
{
    ucp_st_rma_params_t params;
    ucp_st_signal_params_t signal;
    uint64_t *source, *place;
    st_window_t windows[2];
    int errors = 0;
    uint64_t k;
    int i;

    st_windows_init(pair, windows, 2 * LEN, 1);
    source = (uint64_t*)(windows[ST_A].memory + LEN);
    place  = (uint64_t*)windows[ST_B].memory;
    for (k = 1; k <= ROUNDS; ++k) {
        for (i = 0; i < 2; ++i) {
            source[i] = (2 * k) + i;
            params             = st_rma_params(&windows[ST_A],
                                               LEN + (i * sizeof(*source)),
                                               sizeof(*source));
            params.remote_offset = 0;
            params.field_mask |= UCP_ST_RMA_PARAM_FIELD_FLAGS;
            params.flags       = UCP_ST_RMA_FLAG_STRICT;
            CU_ASSERT_EQUAL(ucp_st_enqueue_put(a->queue, &params), UCS_OK);
        }
        signal        = st_signal_params(&windows[ST_A], 0, k);
        params.length = 0;
        CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(a->queue, &params, &signal),
                        UCS_OK);
        st_wait_signal(&windows[ST_B], 0, k);
        st_sync(b);
        errors += (*place != (2 * k) + 1);
        st_quiet(&windows[ST_A]);
        st_sync(a);
    }
    CU_ASSERT_EQUAL(errors, 0);
    st_windows_cleanup(windows);
}

/* Many relaxed puts and gets at once, all of which a quiet waits for */
ST_PAIR_CASE(many)
{
    st_window_t windows[2];
    int i;

    st_windows_init(pair, windows, 2 * ROUNDS * 64, 1);
    st_fill(windows[ST_A].memory, ROUNDS * 64, 1);
    st_fill(windows[ST_B].memory + (ROUNDS * 64), ROUNDS * 64, 2);
    for (i = 0; i < ROUNDS; ++i) {
        st_put(&windows[ST_A], i * 64, 64, (i % 7) == 3);
        st_get(&windows[ST_A], (ROUNDS + i) * 64, 64, (i % 5) == 3);
    }
    st_quiet(&windows[ST_A]);
    st_sync(a);
    CU_ASSERT_TRUE(st_check(windows[ST_B].memory, ROUNDS * 64, 1));
    CU_ASSERT_TRUE(st_check(windows[ST_A].memory + (ROUNDS * 64), ROUNDS * 64,
                            2));
    st_windows_cleanup(windows);
}

/* S7: to oneself */
ST_PAIR_CASE(self)
{
    st_window_t window;
    ucp_st_rma_params_t params;

    st_window_init(a, &window, 2 * LEN, 1);
    window.rkey = st_window_key(a->self, &window);
    st_fill(window.memory, LEN, 5);
    params               = st_rma_params(&window, 0, LEN);
    params.remote_offset = LEN;
    CU_ASSERT_EQUAL(ucp_st_enqueue_put(a->queue, &params), UCS_OK);
    st_quiet(&window);
    st_put_signal(&window, 0, 0, 1);
    st_wait_signal(&window, 0, 1);
    st_quiet(&window);
    st_sync(a);
    CU_ASSERT_TRUE(st_check(window.memory + LEN, LEN, 5));
    st_window_cleanup(&window);
}

/* P10: both hosts compute, and make no call until their streams are through */
ST_PAIR_CASE(compute)
{
    int done[2] = {0, 0};
    st_window_t windows[2];
    int i;

    st_windows_init(pair, windows, LEN, 1);
    for (i = 0; i < 2; ++i) {
        st_fill(windows[i].memory, LEN / 2, i);
    }
    for (i = 0; i < 2; ++i) {
        ucp_st_rma_params_t params    = st_rma_params(&windows[i], 0, LEN / 2);
        ucp_st_signal_params_t signal = st_signal_params(&windows[i], 0, 1);

        params.remote_offset = LEN / 2;
        CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(pair->side[i].queue, &params,
                                                  &signal),
                        UCS_OK);
        st_wait_signal(&windows[i], 0, 1);
        st_quiet(&windows[i]);
        st_launch(&pair->side[i], st_raise_func, &done[i]);
    }
    st_compute_until(done);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_TRUE(st_check(windows[i].memory + (LEN / 2), LEN / 2, 1 - i));
        st_sync(&pair->side[i]);
    }
    st_windows_cleanup(windows);
}

/** A side of two streams that have one thread. */
typedef struct {
    st_side_t           side[2]; /* the same, with each stream */
    ucs_gstream_group_h group;
} party_t;

static void party_init(party_t *party, const st_side_t *side)
{
    ucs_gstream_group_params_t group = {
        .field_mask  = UCS_GSTREAM_GROUP_PARAM_FIELD_NUM_THREADS,
        .num_threads = 1
    };
    ucs_gstream_params_t params      = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_GROUP
    };
    int i;

    CU_ASSERT_EQUAL_FATAL(ucs_gstream_group_create(&group, &party->group),
                          UCS_OK);
    params.group = party->group;
    for (i = 0; i < 2; ++i) {
        party->side[i] = *side;
        CU_ASSERT_EQUAL_FATAL(ucs_gstream_create(&params,
                                                 &party->side[i].stream),
                              UCS_OK);
        party->side[i].queue = st_queue(&party->side[i],
                                        party->side[i].stream);
    }
}

static void party_cleanup(party_t *party)
{
    st_more_cleanup(&party->side[0]);
    st_more_cleanup(&party->side[1]);
    CU_ASSERT_EQUAL(ucs_gstream_group_destroy(party->group), UCS_OK);
}

/* Two streams of one thread wait for signals, the first one for the one that
 * comes last; each is woken by its own */
ST_PAIR_CASE(group)
{
    ucp_st_wait_signal_params_t wait;
    st_window_t windows[2];
    party_t party;
    int i, k;

    st_windows_init(pair, windows, LEN, 1);
    party_init(&party, b);
    for (k = 1; k <= 5; ++k) {
        for (i = 0; i < 2; ++i) {
            wait = st_wait_params(&windows[ST_B], i, k);
            CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(party.side[i].queue,
                                                       &wait), UCS_OK);
        }
        for (i = 1; i >= 0; --i) {
            CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(
                                    party.side[i].stream, 0.01),
                            UCS_INPROGRESS);
            st_put_signal(&windows[ST_A], 8, i, k);
            CU_ASSERT_EQUAL(ucs_gstream_synchronize(party.side[i].stream),
                            UCS_OK);
        }
    }
    st_quiet(&windows[ST_A]);
    st_sync(a);
    st_sync(&party.side[0]);
    st_sync(&party.side[1]);
    party_cleanup(&party);
    st_windows_cleanup(windows);
}

/* A wait for several signals passes with the last one, whichever that is; its
 * word is one */
ST_PAIR_CASE(signals)
{
    ucp_st_wait_signal_params_t waits[3];
    const ucp_st_wait_signal_params_t *const places[] = {
        &waits[0], &waits[1], &waits[2], NULL
    };
    st_window_t windows[2];
    int done = 0;
    unsigned i;

    st_windows_init(pair, windows, LEN, 1);
    for (i = 0; i < 3; ++i) {
        waits[i]             = st_wait_params(&windows[ST_B], i, 1);
        waits[i].field_mask |= UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER;
        waits[i].peer        = (i == 1) ? NULL : b->peer;
    }
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signals(b->queue, NULL, 0), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signals(b->queue, places, 3), UCS_OK);
    st_launch(b, st_raise_func, &done);
    for (i = 3; i-- > 0;) {
        CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(b->stream, 0.02),
                        UCS_INPROGRESS);
        CU_ASSERT_EQUAL(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
        st_put_signal(&windows[ST_A], (i == 0) ? 8 : 0, i, 1);
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(b->stream), UCS_OK);
    CU_ASSERT_EQUAL(done, 1);
    CU_ASSERT_EQUAL(st_stats(b).signal_waits, 1);
    st_quiet(&windows[ST_A]);
    st_pair_sync(pair);

    waits[2].offset += 4;
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signals(b->queue, places, 3),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signals(b->queue, &places[3], 1),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signals(b->queue, NULL, 1),
                    UCS_ERR_INVALID_PARAM);
    st_windows_cleanup(windows);
}

/* Numbers that are written, or added, to memory here. It need not be
 * aligned. */
#define ADD_CHECK(_type, _number) \
    do { \
        const _type ones[] = {(_type)1, (_type)2, (_type)-3}; \
        _type sums[3]; \
        \
        memcpy(windows[ST_A].memory, ones, sizeof(ones)); \
        memcpy(windows[ST_B].memory + 1, ones, sizeof(ones)); \
        params               = st_rma_params(&windows[ST_A], 0, sizeof(ones)); \
        params.remote_offset = 1; \
        CU_ASSERT_EQUAL(ucp_st_enqueue_add(a->queue, &params, _number), \
                        UCS_OK); \
        CU_ASSERT_EQUAL(ucp_st_enqueue_add(a->queue, &params, _number), \
                        UCS_OK); \
        st_quiet(&windows[ST_A]); \
        st_sync(a); \
        memcpy(sums, windows[ST_B].memory + 1, sizeof(sums)); \
        CU_ASSERT_EQUAL(sums[0], (_type)3); \
        CU_ASSERT_EQUAL(sums[1], (_type)6); \
        CU_ASSERT_EQUAL(sums[2], (_type)-9); \
    } while (0)

ST_PAIR_CASE(add)
{
    ucp_st_rma_params_t params;
    st_window_t windows[2];

    st_windows_init(pair, windows, LEN, 1);
    ADD_CHECK(uint8_t, UCP_ST_NUMBER_INT8);
    ADD_CHECK(int16_t, UCP_ST_NUMBER_INT16);
    ADD_CHECK(uint32_t, UCP_ST_NUMBER_INT32);
    ADD_CHECK(int64_t, UCP_ST_NUMBER_INT64);
    ADD_CHECK(float, UCP_ST_NUMBER_FLOAT);
    ADD_CHECK(double, UCP_ST_NUMBER_DOUBLE);
    CU_ASSERT_EQUAL(st_stats(a).lanes[UCP_ST_LANE_HOST].rmas, 12);

    /* Part of a number, no such kind, and bytes that are not there */
    params.length = sizeof(double) + 1;
    CU_ASSERT_EQUAL(ucp_st_enqueue_add(a->queue, &params,
                                       UCP_ST_NUMBER_DOUBLE),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_add(a->queue, &params,
                                       (ucp_st_number_t)6),
                    UCS_ERR_INVALID_PARAM);
    params.length = 2 * LEN;
    CU_ASSERT_EQUAL(ucp_st_enqueue_add(a->queue, &params, UCP_ST_NUMBER_INT8),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_add(a->queue, NULL, UCP_ST_NUMBER_INT8),
                    UCS_ERR_INVALID_PARAM);
    st_windows_cleanup(windows);
}

/* Two queues add to the same memory, many numbers and few in turn. A strict
 * signal behind the additions comes behind them, whatever its lane is. */
ST_PAIR_CASE(add_two)
{
    enum { NUMBERS = 10000, ADDITIONS = 20 };
    ucp_st_rma_params_t params, none;
    ucp_st_signal_params_t signal;
    ucp_st_wait_signal_params_t waits[2];
    const ucp_st_wait_signal_params_t *const places[] = {&waits[0], &waits[1]};
    st_window_t windows[2];
    party_t party;
    double *ones, *sums;
    int errors = 0;
    int i, k;

    st_windows_init(pair, windows, NUMBERS * sizeof(double), 1);
    ones = (double*)windows[ST_A].memory;
    sums = (double*)windows[ST_B].memory;
    for (i = 0; i < NUMBERS; ++i) {
        ones[i] = 1;
    }
    party_init(&party, a);
    none             = st_rma_params(&windows[ST_A], 0, 0);
    none.field_mask |= UCP_ST_RMA_PARAM_FIELD_FLAGS;
    none.flags       = UCP_ST_RMA_FLAG_STRICT;
    for (k = 0; k < 2 * ADDITIONS; ++k) {
        params = st_rma_params(&windows[ST_A], 0,
                               ((k & 2) ? NUMBERS : 8) * sizeof(double));
        CU_ASSERT_EQUAL(ucp_st_enqueue_add(party.side[k % 2].queue, &params,
                                           UCP_ST_NUMBER_DOUBLE), UCS_OK);
    }
    for (k = 0; k < 2; ++k) {
        signal   = st_signal_params(&windows[ST_A], k, 1);
        waits[k] = st_wait_params(&windows[ST_B], k, 1);
        CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(party.side[k].queue, &none,
                        &signal), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_quiet(party.side[k].queue), UCS_OK);
    }
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signals(b->queue, places, 2), UCS_OK);
    st_sync(b);
    for (i = 0; i < NUMBERS; ++i) {
        errors += (sums[i] != ((i < 8) ? 2 * ADDITIONS : ADDITIONS));
    }
    CU_ASSERT_EQUAL(errors, 0);
    st_sync(&party.side[0]);
    st_sync(&party.side[1]);
    party_cleanup(&party);
    st_windows_cleanup(windows);
}

/* Memory is spread over the cards: data and signal may come over two of them;
 * additions to a signal, by both sides, over one, if both have as many. */
static void run_cards(const char *devices_a, const char *devices_b)
{
    enum { WINDOWS = 4 };
    const char *devices[2] = {devices_a, devices_b};
    const int is_equal     = !strcmp(devices_a, devices_b);
    const uint64_t sum     = is_equal ? 2 * 5 * WINDOWS : 0;
    ucp_st_signal_params_t signal;
    ucp_st_rma_params_t params, none;
    st_window_t windows[WINDOWS][2];
    ucp_st_rkey_h own;
    st_pair_t pair;
    st_side_t *a, *b;
    char *old;
    int i, k;

    for (i = 0; i < 2; ++i) {
        old = st_env_set("UCX_ST_TRIG_DEVICES", devices[i]);
        CU_ASSERT_FATAL(st_side_init(&pair.side[i]));
        st_env_restore("UCX_ST_TRIG_DEVICES", old);
    }
    for (i = 0; i < 2; ++i) {
        pair.side[i].peer = st_side_peer(&pair.side[i], &pair.side[1 - i]);
    }
    a = &pair.side[ST_A];
    b = &pair.side[ST_B];
    for (i = 0; i < WINDOWS; ++i) {
        st_windows_init(&pair, windows[i], LEN, 1);
        st_fill(windows[i][ST_A].memory, LEN, i);
    }
    own  = st_window_key(st_side_peer(b, b), &windows[0][ST_B]);
    none = st_rma_params(&windows[0][ST_A], 0, 0);
    for (k = 1; k <= 5; ++k) {
        for (i = 0; i < WINDOWS; ++i) {
            params = st_rma_params(&windows[i][ST_A], 0, LEN);
            signal = st_signal_params(&windows[(i + k) % WINDOWS][ST_A], 0, k);
            CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(a->queue, &params,
                                                      &signal), UCS_OK);
            st_wait_signal(&windows[(i + k) % WINDOWS][ST_B], 0, k);
            if (!is_equal) {
                continue;
            }
            signal             = st_signal_params(&windows[0][ST_A], 1, 1);
            signal.field_mask |= UCP_ST_SIGNAL_PARAM_FIELD_OP;
            signal.op          = UCP_ST_SIGNAL_ADD;
            CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(a->queue, &none,
                                                      &signal), UCS_OK);
            none.rkey   = own;
            signal.rkey = own;
            CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(b->queue, &none,
                                                      &signal), UCS_OK);
            none.rkey = windows[0][ST_A].rkey;
        }
        st_quiet(&windows[0][ST_A]); /* or the next round may overtake it */
    }
    st_wait_signal(&windows[0][ST_B], 1, sum);
    st_quiet(&windows[0][ST_B]);
    st_pair_sync(&pair);
    CU_ASSERT_EQUAL(*st_signal(&windows[0][ST_B], 1), sum);
    CU_ASSERT_EQUAL(ucp_st_rkey_destroy(own), UCS_OK);
    for (i = 0; i < WINDOWS; ++i) {
        CU_ASSERT_TRUE(st_check(windows[i][ST_B].memory, LEN, i));
        st_windows_cleanup(windows[i]);
    }
    st_pair_cleanup(&pair);
}

ST_CASE(cards)
{
    run_cards("2", "2");
    run_cards("1", "2");
    run_cards("2", "1");
}

/* What is counted */
ST_PAIR_CASE(stats)
{
    ucp_st_stats_t stats;
    st_window_t windows[2];

    st_windows_init(pair, windows, LEN, 1);
    st_put(&windows[ST_A], 0, LEN, 0);
    st_get(&windows[ST_A], 0, LEN, 1);
    st_put_signal(&windows[ST_A], 8, 0, 1);
    st_put_signal(&windows[ST_A], 0, 1, 1);
    st_wait_signal(&windows[ST_B], 1, 1);
    st_quiet(&windows[ST_A]);
    st_pair_sync(pair);
    stats = st_stats(a);
    CU_ASSERT_EQUAL(stats.puts, 2);
    CU_ASSERT_EQUAL(stats.gets, 1);
    CU_ASSERT_EQUAL(stats.signals, 2);
    CU_ASSERT_EQUAL(stats.quiets, 1);
    CU_ASSERT_EQUAL(stats.signal_waits, 0);
    CU_ASSERT_EQUAL(stats.errors, 0);
    CU_ASSERT_EQUAL(stats.lanes[st_lane()].rmas, 4);
    stats = st_stats(b);
    CU_ASSERT_EQUAL(stats.signal_waits, 1);
    CU_ASSERT_EQUAL(stats.puts, 0);
    st_windows_cleanup(windows);
}

int main(int argc, char **argv)
{
    setenv("FI_CXIEMU_DEVICES", "2", 0);
    return st_cunit_main("st_rma", argc, argv);
}
