/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_channel.c - messages of channels: order, lengths, direction, numbers,
 * callbacks, and errors.
 */
#include "st_cunit.h"
#include "st_pe.h"
#include "st_pair.h"

#include <stdlib.h>
#include <string.h>

#define ID   7
#define LONG (1 << 20)
#define MANY 600


/* An operation that has begun is over */
static void ended(st_pes_t *pes, ucs_status_t status, said_t *said)
{
    CU_ASSERT_FALSE_FATAL(UCS_STATUS_IS_ERR(status));
    (void)await(pes, status, said);
}

/* PEs and the two ends of a channel, on one of them or two */
static void ends_init(st_pes_t *pes, unsigned num,
                      const ucp_st_tag_layout_t *layout,
                      ucp_st_channel_h end[2])
{
    unsigned i;

    st_pes_init(pes, num, layout);
    for (i = 0; i < 2; ++i) {
        end[i] = st_pes_channel(pes, i % num, (i + 1) % num, ID, i);
    }
}

static void ends_cleanup(st_pes_t *pes, ucp_st_channel_h end[2])
{
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end[0]), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end[1]), UCS_OK);
    st_pes_cleanup(pes);
}

/* One message from an end to the other one; the receive is first if the seed is
 * odd */
static void exchange(st_pes_t *pes, ucp_st_channel_h from, ucp_st_channel_h to,
                     size_t length, uint64_t seed)
{
    int is_recv_first = (seed & 1) != 0;
    uint8_t *sbuf    = (length > 0) ? malloc(length) : NULL;
    uint8_t *rbuf    = (length > 0) ? calloc(1, length) : NULL;
    said_t said[2]   = {{0}};
    size_t got       = SIZE_MAX;
    ucs_status_t status[2];
    int i, is_recv;

    if (length > 0) {
        st_fill(sbuf, length, seed);
    }
    for (i = 0; i < 2; ++i) {
        is_recv         = (i == 0) == is_recv_first;
        status[is_recv] =
                is_recv ? ucp_st_channel_recv(
                                  to, ST_PE_MSG(rbuf, length, hear, &said[1]),
                                  &got)
                        : ucp_st_channel_send(from, ST_PE_MSG(sbuf, length,
                                                              hear, &said[0]));
    }
    ended(pes, status[0], &said[0]);
    ended(pes, status[1], &said[1]);
    CU_ASSERT_EQUAL((status[1] == UCS_OK) ? got : said[1].length, length);
    if (length > 0) {
        CU_ASSERT_TRUE(st_check(rbuf, length, seed));
    }
    free(sbuf);
    free(rbuf);
}

static void exchange_all(unsigned num, const ucp_st_tag_layout_t *layout)
{
    static const size_t lengths[] = {0, 1, 8, 1000, 70000, LONG};
    ucp_st_channel_h end[2];
    st_pes_t pes;
    unsigned i, k;

    ends_init(&pes, num, layout, end);
    for (i = 0; i < (sizeof(lengths) / sizeof(lengths[0])); ++i) {
        for (k = 0; k < 4; ++k) {
            exchange(&pes, end[k / 2], end[!(k / 2)], lengths[i], (i * 4) + k);
        }
    }
    ends_cleanup(&pes, end);
}

ST_CASE_CALL(exchange, exchange_all(2, NULL))
ST_CASE_CALL(exchange_charm, exchange_all(2, &ucp_st_tag_layout_charm))

/* Both ends on one worker: each gets what the other one sent */
ST_CASE_CALL(one_pe, exchange_all(1, NULL))

ST_CASE(one_pe_both_send)
{
    uint64_t sent[2] = {1, 2}, got[2] = {0, 0};
    said_t said[4]   = {{0}};
    ucs_status_t status[4];
    ucp_st_channel_h end[2];
    st_pes_t pes;
    int i;

    ends_init(&pes, 1, NULL, end);
    for (i = 0; i < 2; ++i) {
        status[i] = ucp_st_channel_send(end[i],
                                        ST_PE_MSG(&sent[i], 8, hear, &said[i]));
    }
    for (i = 0; i < 2; ++i) {
        status[2 + i] = ucp_st_channel_recv(
                end[i], ST_PE_MSG(&got[i], 8, hear, &said[2 + i]), NULL);
    }
    for (i = 0; i < 4; ++i) {
        ended(&pes, status[i], &said[i]);
    }
    CU_ASSERT_EQUAL(got[0], sent[1]);
    CU_ASSERT_EQUAL(got[1], sent[0]);
    ends_cleanup(&pes, end);
}

/* Numbers wrap: more messages than there are, some of which wait */
static void run_many(int is_recv_first, unsigned ahead)
{
    static uint64_t sent[MANY], got[MANY];
    static said_t said[2][MANY];
    ucp_st_tag_layout_t layout = ucp_st_tag_layout_paper;
    ucs_status_t status[2][MANY];
    ucp_st_channel_h end[2];
    unsigned i, k, n;
    int j, is_recv;
    st_pes_t pes;

    memset(said, 0, sizeof(said));
    memset(got, 0, sizeof(got));
    layout.counter.width = 8;
    ends_init(&pes, 2, &layout, end);
    for (k = 0; k < MANY; k += ahead) {
        for (j = 0; j < 2; ++j) {
            is_recv = (j == 0) == is_recv_first;
            for (i = k; (i < k + ahead) && (i < MANY); ++i) {
                sent[i]            = i + 1;
                status[is_recv][i] =
                        is_recv ? ucp_st_channel_recv(end[1],
                                                      ST_PE_MSG(&got[i], 8,
                                                                hear,
                                                                &said[1][i]),
                                                      NULL)
                                : ucp_st_channel_send(
                                          end[0], ST_PE_MSG(&sent[i], 8, hear,
                                                            &said[0][i]));
            }
        }
        n = i;
        for (i = k; i < n; ++i) {
            ended(&pes, status[0][i], &said[0][i]);
            ended(&pes, status[1][i], &said[1][i]);
            CU_ASSERT_EQUAL(got[i], i + 1);
        }
    }
    ends_cleanup(&pes, end);
}

ST_CASE_CALL(wrap_send_first, run_many(0, 200))
ST_CASE_CALL(wrap_recv_first, run_many(1, 200))
ST_CASE_CALL(wrap_by_one, run_many(0, 1))

/* The tags of the two layouts, as others have them */
static void check_tag(const ucp_st_tag_layout_t *layout, uint64_t tag)
{
    uint64_t sent = 5, got = 0;
    const ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request;
    said_t said = {0};
    ucs_status_t status;
    ucp_st_channel_h end;
    st_pes_t pes;

    st_pes_init(&pes, 2, layout);
    end = st_pes_channel(&pes, 0, 1, ID, 1);
    ended(&pes, ucp_st_channel_send(end, ST_PE_MSG(&sent, 8, hear, &said)),
          &said);
    request = ucp_tag_recv_nbx(pes.pe[1].worker, &got, 8, tag, UINT64_MAX,
                               &param);
    CU_ASSERT_FALSE_FATAL(UCS_PTR_IS_ERR(request));
    do {
        st_pes_progress(&pes);
        status = (request == NULL) ? UCS_OK : ucp_request_check_status(request);
    } while (status == UCS_INPROGRESS);
    CU_ASSERT_EQUAL(got, sent);
    if (request != NULL) {
        ucp_request_free(request);
    }
    (void)ucp_st_channel_destroy(end);
    st_pes_cleanup(&pes);
}

ST_CASE_CALL(tag_paper,
             check_tag(NULL, 0x8ull << 60 | 0x8000000ull << 32 |
                             (uint64_t)ID << 32))
ST_CASE_CALL(tag_charm,
             check_tag(&ucp_st_tag_layout_charm,
                       8 | (uint64_t)ID << 4 | 1ull << 31))

PES_CASE(out_of_range, 1)
{
    const uint64_t most            = (1ull << 27) - 1;
    ucp_st_channel_params_t params = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_ID |
                      UCP_ST_CHANNEL_PARAM_FIELD_END |
                      UCP_ST_CHANNEL_PARAM_FIELD_EP,
        .id         = most
    };
    ucp_st_channel_h end, other;
    uint8_t byte = 0;

    params.ep = pes->pe[0].eps[0];
    CU_ASSERT_EQUAL(ucp_st_channel_create(pes->pe[0].ctx, &params, &end),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_channel_create(pes->pe[0].ctx, &params, &other),
                    UCS_ERR_ALREADY_EXISTS);
    params.id = most + 1;
    CU_ASSERT_EQUAL(ucp_st_channel_create(pes->pe[0].ctx, &params, &other),
                    UCS_ERR_OUT_OF_RANGE);
    params.id  = 1;
    params.end = 2;
    CU_ASSERT_EQUAL(ucp_st_channel_create(pes->pe[0].ctx, &params, &other),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_channel_create(NULL, &params, &other),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_channel_create(pes->pe[0].ctx, NULL, &other),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_channel_create(pes->pe[0].ctx, &params, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_channel_send(NULL, ST_PE_MSG(&byte, 1, NULL, NULL)),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(
            ucp_st_channel_recv(NULL, ST_PE_MSG(&byte, 1, NULL, NULL), NULL),
            UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_channel_send_at(end, 1ull << 32,
                                           ST_PE_MSG(&byte, 1, NULL, NULL)),
                    UCS_ERR_OUT_OF_RANGE);
    CU_ASSERT_EQUAL(ucp_st_channel_recv_at(end, 1ull << 32,
                                           ST_PE_MSG(&byte, 1, NULL, NULL),
                                           NULL),
                    UCS_ERR_OUT_OF_RANGE);
    CU_ASSERT_EQUAL(ucp_st_channel_ctx_destroy(pes->pe[0].ctx), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(NULL), UCS_OK);
}

/* A layout that cannot be is refused */
ST_CASE(layouts)
{
    ucp_st_channel_ctx_params_t params = {
        .field_mask = UCP_ST_CHANNEL_CTX_PARAM_FIELD_UCP_WORKER |
                      UCP_ST_CHANNEL_CTX_PARAM_FIELD_LAYOUT
    };
    ucp_st_tag_layout_t bad[9];
    ucp_st_channel_ctx_h ctx;
    ucp_side_t side;
    unsigned i;

    for (i = 0; i < 9; ++i) {
        bad[i] = ucp_st_tag_layout_paper;
    }
    bad[0].id.first     = 31;
    bad[1].type.width   = 5;
    bad[2].msg_type     = bad[2].channel_type;
    bad[3].control_type = 16;
    bad[4].counter.width = 0;
    bad[5].pe.first     = 27;
    bad[6].id.first     = 200;
    bad[7].type.width   = 100;
    bad[8].type.first   = 100;
    st_pe_open(&side);
    params.ucp_worker = side.worker;
    for (i = 0; i < 9; ++i) {
        params.layout = bad[i];
        CU_ASSERT_EQUAL(ucp_st_channel_ctx_create(&params, &ctx),
                        UCS_ERR_INVALID_PARAM);
    }
    params.field_mask = 0;
    CU_ASSERT_EQUAL(ucp_st_channel_ctx_create(&params, &ctx),
                    UCS_ERR_INVALID_PARAM);
    ucp_side_close(&side);
}

/* A call that fails uses up no number, nor does one that is too early */
ST_CASE(no_number)
{
    ucp_st_channel_attr_t attr;
    ucp_st_channel_h end[2];
    uint8_t byte = 1;
    st_pes_t pes;

    ends_init(&pes, 2, NULL, end);
    CU_ASSERT_EQUAL(ucp_st_channel_send(end[0], ST_PE_MSG(NULL, 1, NULL, NULL)),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(
            ucp_st_channel_recv(end[1], ST_PE_MSG(NULL, 1, NULL, NULL), NULL),
            UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_channel_query(end[0], &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.sent, 0);
    exchange(&pes, end[0], end[1], sizeof(byte), 4);
    CU_ASSERT_EQUAL(ucp_st_channel_query(end[0], &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.sent, 1);
    CU_ASSERT_EQUAL(attr.id, ID);
    CU_ASSERT_EQUAL(ucp_st_channel_query(end[1], &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.received, 1);
    CU_ASSERT_EQUAL(attr.end, 1);
    ends_cleanup(&pes, end);
}

/* Numbers of the caller's, in any order */
ST_CASE(explicit)
{
    static const uint64_t numbers[] = {UINT32_MAX, 0, 17, 5};
    uint64_t sent[4], got[4] = {0};
    said_t said[8] = {{0}};
    ucs_status_t status[8];
    ucp_st_channel_h end[2];
    st_pes_t pes;
    int i;

    ends_init(&pes, 2, NULL, end);
    for (i = 0; i < 4; ++i) {
        sent[i]   = numbers[i];
        status[i] = ucp_st_channel_send_at(
                end[0], numbers[i], ST_PE_MSG(&sent[i], 8, hear, &said[i]));
    }
    for (i = 3; i >= 0; --i) {
        status[4 + i] = ucp_st_channel_recv_at(
                end[1], numbers[i], ST_PE_MSG(&got[i], 8, hear, &said[4 + i]),
                NULL);
    }
    for (i = 0; i < 8; ++i) {
        ended(&pes, status[i], &said[i]);
    }
    for (i = 0; i < 4; ++i) {
        CU_ASSERT_EQUAL(got[i], numbers[i]);
    }
    CU_ASSERT_EQUAL(ucp_st_channel_quiesce(end[0], NULL, NULL),
                    UCS_ERR_UNSUPPORTED);
    ends_cleanup(&pes, end);
}

/* What came is longer than the room */
static void run_truncated(int is_recv_first)
{
    uint64_t sent[2] = {1, 2}, got = 0;
    said_t said[2]   = {{0}};
    ucp_st_channel_h end[2];
    ucs_status_t status;
    st_pes_t pes;

    ends_init(&pes, 2, NULL, end);
    status = UCS_INPROGRESS;
    if (is_recv_first) {
        status = ucp_st_channel_recv(end[1], ST_PE_MSG(&got, 8, hear, &said[1]),
                                     NULL);
        CU_ASSERT_EQUAL(status, UCS_INPROGRESS);
    }
    ended(&pes,
          ucp_st_channel_send(end[0], ST_PE_MSG(sent, 16, hear, &said[0])),
          &said[0]);
    if (!is_recv_first) {
        status = ucp_st_channel_recv(end[1], ST_PE_MSG(&got, 8, hear, &said[1]),
                                     NULL);
    }
    if (status == UCS_INPROGRESS) {
        ended(&pes, status, &said[1]);
        status = said[1].status;
    }
    CU_ASSERT_EQUAL(status, UCS_ERR_MESSAGE_TRUNCATED);
    exchange(&pes, end[0], end[1], 8, 9); /* The next one is as always */
    ends_cleanup(&pes, end);
}

ST_CASE_CALL(truncated, run_truncated(1))
ST_CASE_CALL(truncated_late, run_truncated(0))

/** Two ends that answer each other from their callbacks. */
typedef struct player {
    ucp_st_channel_h end;
    uint64_t         value;
    unsigned         count;
    unsigned         bad;
} player_t;

static void play(player_t *player);

static void on_ball(void *arg, ucs_status_t status, size_t length)
{
    player_t *player = arg;
    uint64_t out;

    player->bad += (status != UCS_OK) || (length != 8);
    ++player->count;
    out = player->value + 1;
    if (player->count < 100) {
        play(player);
    }
    player->bad += UCS_STATUS_IS_ERR(
            ucp_st_channel_send(player->end, ST_PE_MSG(&out, 8, NULL, NULL)));
}

/* Short sends are over at once, so that their buffer may go */
static void play(player_t *player)
{
    size_t length;

    if (ucp_st_channel_recv(player->end,
                            ST_PE_MSG(&player->value, 8, on_ball, player),
                            &length) == UCS_OK) {
        on_ball(player, UCS_OK, length);
    }
}

static void run_callbacks(unsigned num)
{
    player_t player[2] = {{0}};
    uint64_t first     = 1;
    st_pes_t pes;
    unsigned i;

    st_pes_init(&pes, num, NULL);
    for (i = 0; i < 2; ++i) {
        player[i].end = st_pes_channel(&pes, i % num, (i + 1) % num, ID, i);
        play(&player[i]);
    }
    CU_ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_st_channel_send(
            player[0].end, ST_PE_MSG(&first, 8, NULL, NULL))));
    while ((player[0].count < 100) || (player[1].count < 100)) {
        st_pes_progress(&pes);
    }
    CU_ASSERT_EQUAL(player[0].bad, 0);
    CU_ASSERT_EQUAL(player[1].bad, 0);
    CU_ASSERT_EQUAL(player[0].value, 200);
    (void)ucp_st_channel_destroy(player[0].end);
    (void)ucp_st_channel_destroy(player[1].end);
    st_pes_cleanup(&pes);
}

ST_CASE_CALL(callbacks_go_on, run_callbacks(2))

/* They may come within the call that sends */
ST_CASE_CALL(callbacks_go_on_one_pe, run_callbacks(1))

/* Receives are cancelled in the call; a send that is under way once UCP is done
 * with it */
ST_CASE(destroy)
{
    uint8_t *sbuf  = malloc(8 * LONG);
    uint8_t *rbuf  = malloc(8 * LONG);
    said_t said[4] = {{0}};
    ucs_status_t status;
    ucp_st_channel_h end[2];
    st_pes_t pes;
    int i;

    st_fill(sbuf, 8 * LONG, 4);
    ends_init(&pes, 2, NULL, end);
    status = ucp_st_channel_send(end[0],
                                 ST_PE_MSG(sbuf, 8 * LONG, hear, &said[0]));
    for (i = 1; i < 4; ++i) {
        CU_ASSERT_EQUAL(ucp_st_channel_recv(end[0],
                                            ST_PE_MSG(rbuf, 8, hear, &said[i]),
                                            NULL),
                        UCS_INPROGRESS);
    }
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end[0]), UCS_OK);
    for (i = 1; i < 4; ++i) {
        CU_ASSERT_EQUAL(said[i].calls, 1);
        CU_ASSERT_EQUAL(said[i].status, UCS_ERR_CANCELED);
    }
    if (status == UCS_INPROGRESS) {
        CU_ASSERT_EQUAL(said[0].calls, 0);
    }
    said[1].calls = 0;
    ended(&pes,
          ucp_st_channel_recv(end[1], ST_PE_MSG(rbuf, 8 * LONG, hear, &said[1]),
                              NULL),
          &said[1]);
    CU_ASSERT_TRUE(st_check(rbuf, 8 * LONG, 4));
    ended(&pes, status, &said[0]);
    if (status == UCS_INPROGRESS) {
        CU_ASSERT_EQUAL(said[0].status, UCS_ERR_CANCELED);
    }
    (void)ucp_st_channel_destroy(end[1]);
    st_pes_cleanup(&pes);
    free(sbuf);
    free(rbuf);
}

/* A callback destroys its channel, which has more to cancel */
typedef struct {
    ucp_st_channel_h end;
    unsigned         calls;
} ender_t;

static void on_end(void *arg, ucs_status_t status, size_t length)
{
    ender_t *ender       = arg;
    ucp_st_channel_h end = ender->end;

    (void)status;
    (void)length;
    ++ender->calls;
    ender->end = NULL;
    (void)ucp_st_channel_destroy(end);
}

PES_CASE(destroy_in_callback, 2)
{
    uint64_t sent = 1, got[3];
    ender_t ender = {0};
    ucp_st_channel_h end;
    int i;

    end       = st_pes_channel(pes, 0, 1, ID, 0);
    ender.end = st_pes_channel(pes, 1, 0, ID, 1);
    for (i = 0; i < 3; ++i) {
        CU_ASSERT_EQUAL(
                ucp_st_channel_recv(
                        ender.end, ST_PE_MSG(&got[i], 8, on_end, &ender), NULL),
                UCS_INPROGRESS);
    }
    CU_ASSERT_FALSE(UCS_STATUS_IS_ERR(
            ucp_st_channel_send(end, ST_PE_MSG(&sent, 8, NULL, NULL))));
    while (ender.calls < 3) {
        st_pes_progress(pes);
    }
    CU_ASSERT_EQUAL(ender.calls, 3);
    (void)ucp_st_channel_destroy(end);
}

/* ... which is sending: a message to the own PE arrives in the call */
PES_CASE(destroy_in_send, 1)
{
    uint64_t sent = 1, got;
    ender_t ender = {0};
    said_t said   = {0};
    ucs_status_t status;
    ucp_st_channel_h end;

    ender.end = st_pes_channel(pes, 0, 0, ID, 0); /* That sends */
    end       = st_pes_channel(pes, 0, 0, ID, 1);
    CU_ASSERT_EQUAL(ucp_st_channel_recv(end, ST_PE_MSG(&got, 8, on_end, &ender),
                                        NULL), UCS_INPROGRESS);
    status = ucp_st_channel_send(ender.end, ST_PE_MSG(&sent, 8, hear, &said));
    CU_ASSERT_FALSE(UCS_STATUS_IS_ERR(status));
    while (ender.calls < 1) {
        st_pes_progress(pes);
    }
    CU_ASSERT_EQUAL(got, sent);
    (void)ucp_st_channel_destroy(end);
}

/* Sends before there is an endpoint */
ST_CASE(put_off)
{
    const ucp_st_channel_params_t none = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_ID,
        .id         = ID
    };
    ucp_st_channel_params_t there = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_EP
    };
    uint64_t sent[3] = {1, 2, 3}, got;
    said_t said[3]   = {{0}};
    said_t heard;
    ucp_st_channel_attr_t attr;
    ucp_st_channel_h end[2];
    st_pes_t pes;
    int i;

    st_pes_init(&pes, 2, NULL);
    CU_ASSERT_EQUAL(ucp_st_channel_create(pes.pe[0].ctx, &none, &end[0]),
                    UCS_OK);
    end[1] = st_pes_channel(&pes, 1, 0, ID, 1);
    for (i = 0; i < 3; ++i) {
        CU_ASSERT_EQUAL(ucp_st_channel_send(
                                end[0], ST_PE_MSG(&sent[i], 8, hear, &said[i])),
                        UCS_INPROGRESS);
    }
    CU_ASSERT_EQUAL(ucp_st_channel_quiesce(end[0], NULL, NULL),
                    UCS_ERR_NOT_CONNECTED);
    CU_ASSERT_EQUAL(ucp_st_channel_query(end[0], &attr), UCS_OK);
    CU_ASSERT_TRUE(attr.is_put_off);
    CU_ASSERT_EQUAL(attr.num_sends, 3);
    CU_ASSERT_EQUAL(ucp_st_channel_rebind(end[0], &there),
                    UCS_ERR_INVALID_PARAM);
    there.ep = pes.pe[0].eps[1];
    CU_ASSERT_EQUAL(ucp_st_channel_rebind(end[0], &there), UCS_OK);
    for (i = 0; i < 3; ++i) {
        memset(&heard, 0, sizeof(heard));
        ended(&pes,
              ucp_st_channel_recv(end[1], ST_PE_MSG(&got, 8, hear, &heard),
                                  NULL),
              &heard);
        CU_ASSERT_EQUAL(got, sent[i]);
        ended(&pes, UCS_INPROGRESS, &said[i]);
        CU_ASSERT_EQUAL(said[i].status, UCS_OK);
    }
    ends_cleanup(&pes, end);
}

ST_SUITE("st_channel")
