/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_fuzz_channel.c - packed ends of channels, and the messages that
 * contexts tell each other, drawn at random (fuzz_util.h): an error or an end,
 * and another channel goes on.
 */
#include "fuzz_util.h"
#include "st_cunit.h"
#include "st_pair.h"
#include "st_pe.h"
#include "uct_errors.h"

#include "channel/st_channel.h"

#include <ucp_st_msg.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAD    7
#define GOOD   9
#define LENGTH 100
#define TURNS  16

/** A good channel between the two PEs. */
typedef struct {
    fuzz_t           fuzz;
    st_pes_t         pes;
    ucp_st_channel_h good[2];
    unsigned         ends;  /* that were unpacked */
    unsigned         metas; /* that have come */
} loop_t;

static void loop_init(loop_t *loop, uint64_t rounds)
{
    int i;

    memset(loop, 0, sizeof(*loop));
    st_pes_init(&loop->pes, 2, NULL);
    for (i = 0; i < 2; ++i) {
        loop->good[i] = st_pes_channel(&loop->pes, i, !i, GOOD, i);
    }
    uct_errors_begin();
    fuzz_begin(&loop->fuzz, rounds);
}

/* A message of channel ends on PE 0 and 1, from 1 */
static void exchange(loop_t *loop, ucp_st_channel_h const *ends)
{
    said_t sent = {0}, said = {0};
    uint8_t from[LENGTH], to[LENGTH];
    ucs_status_t status;

    st_fill(from, LENGTH, loop->fuzz.round);
    memset(to, 0, LENGTH);
    status = ucp_st_channel_send(ends[1], ST_PE_MSG(from, LENGTH, hear, &sent));
    CU_ASSERT_EQUAL(await(&loop->pes,
                          ucp_st_channel_recv(ends[0],
                                              ST_PE_MSG(to, LENGTH, hear,
                                                        &said), NULL), &said),
                    UCS_OK);
    CU_ASSERT_EQUAL(await(&loop->pes, status, &sent), UCS_OK);
    CU_ASSERT_TRUE(st_check(to, LENGTH, loop->fuzz.round));
}

static void loop_turn(loop_t *loop)
{
    if ((loop->fuzz.round % TURNS) == 0) {
        exchange(loop, loop->good);
    }
}

static void loop_cleanup(loop_t *loop)
{
    unsigned errors = uct_errors_end();
    int i;

    printf("%lu rounds: %u ends, %u metadata, %u errors logged\n",
           (unsigned long)loop->fuzz.round, loop->ends, loop->metas, errors);
    exchange(loop, loop->good);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_channel_destroy(loop->good[i]), UCS_OK);
    }
    st_pes_cleanup(&loop->pes);
}

#define LOOP_CASE(_name, _rounds) \
    ST_CASE_WITH(_name, loop_t, loop, loop_init(loop, _rounds), \
                 loop_cleanup(loop))

/* The bytes of an end with two messages that nobody has received; its other end
 * is there */
static void *make_packed(loop_t *loop, ucp_st_channel_h *other, size_t *length)
{
    ucp_st_channel_h end = st_pes_channel(&loop->pes, 0, 1, BAD, 0);
    said_t said          = {0};
    uint8_t data[LENGTH] = {1};
    int i;

    *other = st_pes_channel(&loop->pes, 1, 0, BAD, 1);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_st_channel_send(
                *other, ST_PE_MSG(data, LENGTH, NULL, NULL))));
    }
    CU_ASSERT_EQUAL(await(&loop->pes,
                          ucp_st_channel_quiesce(end, hear, &said), &said),
                    UCS_OK);
    return st_pe_pack(end, length);
}

/* What is kept comes first; what is not there is cancelled */
static void use_end(loop_t *loop, ucp_st_channel_h end)
{
    static uint8_t data[2 * LENGTH];
    size_t length = 0;
    ucs_status_t status;
    int i;

    for (i = 0; i < 3; ++i) {
        memset(data, ST_SPOILED, sizeof(data));
        status = ucp_st_channel_recv(end, ST_PE_MSG(data, LENGTH, NULL, NULL),
                                     &length);
        CU_ASSERT_TRUE((status != UCS_OK) || (length <= LENGTH));
        CU_ASSERT_TRUE(st_is_spoiled(data + LENGTH, LENGTH));
    }
    st_pes_progress(&loop->pes);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end), UCS_OK);
}

LOOP_CASE(packed, 4000)
{
    ucp_st_channel_params_t params = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_EP,
        .ep         = loop->pes.pe[0].eps[1]
    };
    size_t length                  = 0;
    ucp_st_channel_h other, end;
    uint8_t *valid;
    fuzz_input_t input;

    valid      = make_packed(loop, &other, &length);
    input.room = 2 * length;
    input.data = malloc(input.room);
    while (fuzz_next(&loop->fuzz)) {
        fuzz_set(&input, valid, length);
        if (fuzz_random(&loop->fuzz, 4) == 0) {
            fuzz_splice(&loop->fuzz, &input, valid, length);
        }
        fuzz_mutate(&loop->fuzz, &input);
        if (ucp_st_channel_unpack(loop->pes.pe[0].ctx, &params, input.data,
                                  input.length, &end) == UCS_OK) {
            ++loop->ends;
            use_end(loop, end);
        }
        loop_turn(loop);
    }
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(other), UCS_OK);
    free(input.data);
    free(valid);
}

static void on_meta(void *arg, const ucp_st_msg_meta_t *meta,
                    const void *header, size_t length)
{
    loop_t *loop = arg;

    ++loop->metas;
    if ((length > 0) && (((const uint8_t*)header)[length - 1] == 0) &&
        (loop->metas % 64 == 0)) {
        CU_ASSERT_EQUAL(ucp_st_msg_drop(loop->pes.pe[0].ctx, meta), UCS_OK);
    }
}

/* Tell the context of PE 0 */
static void tell(loop_t *loop, const void *data, size_t length)
{
    const ucp_st_tag_layout_t *layout = &loop->pes.pe[0].ctx->layout;
    ucp_request_param_t param         = {.op_attr_mask = 0};
    ucs_status_ptr_t request;

    request = ucp_tag_send_nbx(loop->pes.pe[1].eps[0], data, length,
                               st_channel_put(&layout->type,
                                              layout->control_type), &param);
    while (UCS_PTR_IS_PTR(request) &&
           (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        st_pes_progress(&loop->pes);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    st_pes_progress(&loop->pes);
    st_pes_progress(&loop->pes);
}

LOOP_CASE(control, 4000)
{
    const ucp_st_tag_layout_t *layout = &loop->pes.pe[0].ctx->layout;
    fuzz_t *fuzz                      = &loop->fuzz;
    uint8_t data[sizeof(st_channel_control_t) + 300];
    fuzz_input_t input                = {.data = data, .room = sizeof(data)};
    ucp_st_channel_h end              = st_pes_channel(&loop->pes, 0, 1, BAD,
                                                       0);
    st_channel_control_t control;

    CU_ASSERT_EQUAL(ucp_st_msg_set_post(loop->pes.pe[0].ctx, on_meta, loop),
                    UCS_OK);
    while (fuzz_next(fuzz)) {
        control = (st_channel_control_t){
            .kind  = (uint32_t)fuzz_random(fuzz, ST_CHANNEL_META + 2),
            .end   = 1,
            .id    = BAD,
            .count = fuzz_random(fuzz, 3),
            .moves = fuzz_random(fuzz, 3)
        };
        if (control.kind == ST_CHANNEL_META) {
            control.id = st_channel_put(&layout->type, layout->msg_type);
        }
        fuzz_set(&input, &control, sizeof(control));
        fuzz_splice(fuzz, &input, &control, sizeof(control));
        if (fuzz_random(fuzz, 4) > 0) {
            fuzz_set(&input, &control, sizeof(control));
        }
        fuzz_mutate(fuzz, &input);
        memcpy(&control, data, sizeof(control));
        if (control.id != GOOD) { /* it would be stopped, as asked */
            tell(loop, data, input.length);
        }
        if ((loop->fuzz.round % 64) == 0) {
            CU_ASSERT_EQUAL(ucp_st_channel_destroy(end), UCS_OK);
            end = st_pes_channel(&loop->pes, 0, 1, BAD, 0);
        }
        loop_turn(loop);
    }
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end), UCS_OK);
}

ST_SUITE("st_fuzz_channel")
