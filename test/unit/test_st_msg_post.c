/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_msg_post.c - messages whose metadata the library carries, with a
 * header, to a function of the receiver's.
 */
#include "msg_util.h"
#include "st_cunit.h"
#include "st_pair.h"

#include <ucp_st_msg.h>

#include <stdlib.h>
#include <string.h>

#define LONG MSG_LONG
#define PE   MSG_PE

/* The examples of the header */
#include "st_msg_examples.h"


/* Each length with headers of several; the metadata are used later */
static void post_all(unsigned num, const ucp_st_tag_layout_t *layout,
                     int is_set_first)
{
    static const size_t headers[] = {0, 1, 48, UCP_ST_MSG_HEADER_MAX};
    uint8_t             header[UCP_ST_MSG_HEADER_MAX];
    inbox_t            *inbox;
    unsigned            i, k;
    st_pes_t            pes;
    one_t               one;

    st_pes_init(&pes, num, layout);
    inbox = inbox_new(&pes);
    for (i = 0; i < MSG_LENGTHS * 4; ++i) {
        k = i % 4;
        if (is_set_first) {
            inbox_set(inbox);
        }
        st_fill(header, sizeof(header), i);
        one_send_post(&one, &pes,
                      MSG_HEADER((headers[k] > 0) ? header : NULL, headers[k]),
                      msg_lengths[i / 4], i);
        st_fill(header, sizeof(header), i + 1); /* It was copied */
        if (!is_set_first) {
            settle(&pes);
            CU_ASSERT_EQUAL(inbox->count, i);
            inbox_set(inbox);
        }
        while (inbox->count == i) {
            st_pes_progress(&pes);
        }
        st_fill(header, sizeof(header), i);
        CU_ASSERT_EQUAL_FATAL(inbox->length[i], headers[k]);
        CU_ASSERT_EQUAL(memcmp(inbox->header[i], header, headers[k]), 0);
        CU_ASSERT_EQUAL(inbox->meta[i].length, msg_lengths[i / 4]);
        one.meta = inbox->meta[i];
        CU_ASSERT_EQUAL(ucp_st_msg_set_post(inbox->ctx, NULL, NULL), UCS_OK);
        one_recv(&one, i);
        one_free(&one);
    }
    st_pes_cleanup(&pes);
    free(inbox);
}

ST_CASE_CALL(post, post_all(2, NULL, 1))
ST_CASE_CALL(post_charm, post_all(2, &ucp_st_tag_layout_charm, 1))
ST_CASE_CALL(post_late, post_all(2, NULL, 0))
ST_CASE_CALL(post_one_pe, post_all(1, NULL, 1))
ST_CASE_CALL(post_one_pe_late, post_all(1, NULL, 0))

/* Metadata that come before the function are handed over in order; the function
 * goes away in between */
static void run_early(unsigned num)
{
    const unsigned count = 20;
    inbox_t       *inbox;
    one_t          one[20];
    uint64_t       i;
    st_pes_t       pes;

    st_pes_init(&pes, num, NULL);
    inbox = inbox_new(&pes);
    for (i = 0; i < count; ++i) {
        one_send_post(&one[i], &pes, MSG_HEADER(&i, sizeof(i)), 100, i);
    }
    settle(&pes);
    CU_ASSERT_EQUAL(inbox->count, 0);
    inbox->stop = 5;
    inbox_set(inbox);
    settle(&pes);
    CU_ASSERT_EQUAL(inbox->count, 5);
    inbox_set(inbox);
    CU_ASSERT_EQUAL(inbox->count, count);
    for (i = 0; i < count; ++i) {
        CU_ASSERT_EQUAL(inbox->length[i], sizeof(i));
        CU_ASSERT_EQUAL(memcmp(inbox->header[i], &i, sizeof(i)), 0);
        one[i].meta = inbox->meta[i];
        one_recv(&one[i], i);
        one_free(&one[i]);
    }
    st_pes_cleanup(&pes);
    free(inbox);
}

ST_CASE_CALL(post_early, run_early(2))
ST_CASE_CALL(post_early_one_pe, run_early(1))

/* Metadata that nobody took are gone with the context */
PES_CASE(post_never, 2)
{
    one_t    one;

    one_send_post(&one, pes, MSG_HEADER("x", 1), 8, 1);
    settle(pes);
    CU_ASSERT_EQUAL(await(pes, one.sent, &one.said), UCS_OK);
    one_free(&one);
}

/* A context whose metadata are just arriving is destroyed when they are
 * there */
PES_CASE(post_arriving, 2)
{
    static const uint8_t header[UCP_ST_MSG_HEADER_MAX];
    char                *thresh = st_env_set("UCX_RNDV_THRESH", "1000");
    said_t               said   = {0};
    ucs_status_t         status;
    one_t                one;

    st_env_restore("UCX_RNDV_THRESH", thresh);
    one_send(&one, pes, LONG, 1); /* The endpoint is ready then */
    one_recv(&one, 1);
    one_free(&one);
    settle(pes);
    status = ucp_st_msg_send_post(pes->pe[0].ctx, pes->pe[0].eps[1], PE,
                                  MSG_HEADER(header, sizeof(header)),
                                  ST_PE_MSG(NULL, 0, hear, &said));
    CU_ASSERT_FALSE_FATAL(UCS_STATUS_IS_ERR(status));
    settle(pes); /* They have matched, and may be under way still */
    while ((status = ucp_st_channel_ctx_destroy(pes->pe[1].ctx)) ==
           UCS_ERR_BUSY) {
        st_pes_progress(pes);
    }
    CU_ASSERT_EQUAL(status, UCS_OK);
    pes->pe[1].ctx = NULL;
}


/* --- Callbacks that go on */

#define ROUNDS 200

/** A PE that sends a value back, more by one. */
typedef struct {
    st_pes_t *pes;
    unsigned  pe;
    int       depth;
    unsigned  count;
    unsigned  bad;
    unsigned  next; /* Of the following */
    uint64_t  in[ROUNDS + 1];
    uint64_t  out[ROUNDS + 1];
    unsigned  under_way; /* Sends */
} player_t;

static void on_served(void *arg, ucs_status_t status, size_t length)
{
    player_t *player = arg;

    player->bad += (status != UCS_OK) || (length != 8);
    --player->under_way;
}

static void serve(player_t *player, uint64_t value)
{
    unsigned     other = player->pes->num - 1 - player->pe;
    unsigned     place = player->next++ % ROUNDS;
    ucs_status_t status;

    player->out[place] = value;
    ++player->under_way;
    status = ucp_st_msg_send_post(
            player->pes->pe[player->pe].ctx,
            player->pes->pe[player->pe].eps[other], player->pe,
            MSG_HEADER(&value, sizeof(value)),
            ST_PE_MSG(&player->out[place], 8, on_served, player));
    if (status != UCS_INPROGRESS) {
        on_served(player, status, 8);
    }
}

static void on_ball(void *arg, ucs_status_t status, size_t length)
{
    player_t *player = arg;
    uint64_t  value  = player->in[player->count];

    player->bad += (status != UCS_OK) || (length != 8);
    if (++player->count < ROUNDS) {
        serve(player, value + 1);
    }
}

static void on_serve(void *arg, const ucp_st_msg_meta_t *meta,
                     const void *header, size_t header_length)
{
    player_t    *player = arg;
    size_t       length = 0;
    ucs_status_t status;

    player->bad += (header_length != 8) || (player->depth++ != 0);
    player->bad += *(const uint64_t *)header > 2 * ROUNDS;
    status = ucp_st_msg_recv(
            player->pes->pe[player->pe].ctx, meta,
            ST_PE_MSG(&player->in[player->count], 8, on_ball, player), &length,
            NULL);
    if (status != UCS_INPROGRESS) {
        on_ball(player, status, length);
    }
    --player->depth;
}

static void play(unsigned num)
{
    player_t *player = calloc(2, sizeof(*player));
    st_pes_t  pes;
    unsigned  i;

    st_pes_init(&pes, num, NULL);
    for (i = 0; i < num; ++i) {
        player[i].pes = &pes;
        player[i].pe  = i;
        CU_ASSERT_EQUAL(
                ucp_st_msg_set_post(pes.pe[i].ctx, on_serve, &player[i]),
                UCS_OK);
    }
    serve(&player[0], 1);
    for (i = 0; i < num; ++i) {
        /* The one that was served to is over first, and does not answer */
        while ((player[num - 1].count < ROUNDS) || (player[i].under_way > 0)) {
            st_pes_progress(&pes);
        }
        CU_ASSERT_EQUAL(player[i].bad, 0);
    }
    CU_ASSERT_EQUAL(player[num - 1].in[ROUNDS - 1], (num * ROUNDS) - num + 1);
    st_pes_cleanup(&pes);
    free(player);
}

ST_CASE_CALL(callbacks_go_on, play(2))
ST_CASE_CALL(callbacks_go_on_one_pe, play(1))

/* A message that is sent from the function comes behind those that wait */
typedef struct {
    st_pes_t *pes;
    unsigned  count;
    uint64_t  values[4];
    unsigned  bad;
} order_t;

static void on_order(void *arg, const ucp_st_msg_meta_t *meta,
                     const void *header, size_t header_length)
{
    const uint64_t more  = 3;
    order_t       *order = arg;
    const st_pe_t *pe    = &order->pes->pe[0];

    order->bad += (header_length != 8) || (order->count == 4);
    memcpy(&order->values[order->count++], header, 8);
    if (order->count == 1) {
        order->bad += UCS_STATUS_IS_ERR(ucp_st_msg_send_post(
                pe->ctx, pe->eps[0], PE, MSG_HEADER(&more, 8),
                ST_PE_MSG(NULL, 0, NULL, NULL)));
        st_pes_progress(order->pes);
        order->bad += (order->count != 1);
    }
    order->bad += (ucp_st_msg_drop(pe->ctx, meta) != UCS_OK);
}

PES_CASE(post_sends, 1)
{
    order_t  order = {0};
    uint64_t i;

    order.pes = pes;
    for (i = 0; i < 3; ++i) {
        CU_ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_st_msg_send_post(
                pes->pe[0].ctx, pes->pe[0].eps[0], PE, MSG_HEADER(&i, 8),
                ST_PE_MSG(NULL, 0, NULL, NULL))));
    }
    settle(pes);
    CU_ASSERT_EQUAL(ucp_st_msg_set_post(pes->pe[0].ctx, on_order, &order),
                    UCS_OK);
    while (order.count < 4) {
        st_pes_progress(pes);
    }
    for (i = 0; i < 4; ++i) {
        CU_ASSERT_EQUAL(order.values[i], i);
    }
    CU_ASSERT_EQUAL(order.bad, 0);
}

/* The examples */
static void run_example(size_t length)
{
    uint8_t     *sbuf       = malloc(length);
    object_t     objects[2] = {{0}};
    said_t       said       = {0};
    ucs_status_t status;
    st_pes_t     pes;

    st_fill(sbuf, length, 8);
    st_pes_init(&pes, 2, NULL);
    objects[0].ctx = objects[1].ctx = pes.pe[1].ctx;
    CU_ASSERT_EQUAL(ucp_st_msg_set_post(pes.pe[1].ctx, on_meta, objects),
                    UCS_OK);
    status = send_to(pes.pe[0].ctx, pes.pe[0].eps[1], 1,
                     ST_PE_MSG(sbuf, length, hear, &said));
    while (!objects[1].is_done) {
        st_pes_progress(&pes);
    }
    CU_ASSERT_EQUAL(await(&pes, status, &said), UCS_OK);
    CU_ASSERT_EQUAL(objects[1].status, UCS_OK);
    CU_ASSERT_EQUAL_FATAL(objects[1].length, length);
    CU_ASSERT_TRUE(st_check(objects[1].buffer, length, 8));
    CU_ASSERT_FALSE(objects[0].is_done);
    st_pes_cleanup(&pes);
    free(objects[1].buffer);
    free(sbuf);
}

ST_CASE_CALL(example, run_example(1000))
ST_CASE_CALL(example_long, run_example(LONG))

ST_SUITE("st_msg_post")
