/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_channel_move.c - ends of channels that are moved between PEs: nothing
 * is lost, doubled, or out of order.
 *
 * An object is an end with what it has sent and received. Its messages have
 * numbers, and it sends and receives at random times.
 */
#include "st_cunit.h"
#include "st_pair.h"
#include "st_pe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ID        7
#define LONG      200000 /* Bytes: beyond what UCX sends at once */
#define OBJECTS   12     /* Pairs of them, in random runs */
#define STEPS     3000
#define MAX_AHEAD 6      /* Operations of one kind that an object has */
#define MAX_COUNT 4096   /* Messages of an object */


typedef struct object object_t;

/** A send or a receive of an object. */
typedef struct {
    object_t *object; /* NULL: none */
    uint64_t number;  /* Of a receive */
    size_t   length;
    uint8_t  *data;
} work_t;

struct object {
    st_pes_t         *pes;
    unsigned         at;       /* PE */
    unsigned         told;     /* PE of the other one, as it was told */
    unsigned         index;    /* Of its pair */
    unsigned         side;
    object_t         *other;
    ucp_st_channel_h end;      /* NULL: on its way, or not made */
    uint64_t         sent;     /* Messages whose send was not cancelled */
    uint64_t         received;
    uint8_t          seen[MAX_COUNT];
    work_t           sends[MAX_AHEAD];
    work_t           recvs[MAX_AHEAD];
    int              is_quiet;
    int              is_moving;
    unsigned         moves;    /* That are over */
    unsigned         known;    /* ... of the other one, that it was told */
    unsigned         bad;
};


/* Messages of a pair and direction: length and content by number */
static uint64_t seed_of(const object_t *sender, uint64_t number)
{
    return ((uint64_t)sender->index << 40) + ((uint64_t)sender->side << 39) +
           number;
}

static size_t length_of(uint64_t seed)
{
    return (seed % 11 == 0) ? 0 : (seed % 7 == 0) ? LONG : 8 + (seed % 100);
}

static work_t *work_get(object_t *object, work_t *works)
{
    int i;

    for (i = 0; i < MAX_AHEAD; ++i) {
        if (works[i].object == NULL) {
            works[i].object = object;
            works[i].data   = malloc(LONG);
            return &works[i];
        }
    }
    return NULL;
}

static void work_put(work_t *work)
{
    work->object = NULL;
    free(work->data);
}

/* A send that was cancelled is not one: it was the last, or one of the last */
static void on_sent(void *arg, ucs_status_t status, size_t length)
{
    work_t *work     = arg;
    object_t *object = work->object;

    if (status == UCS_ERR_CANCELED) {
        --object->sent;
    } else {
        object->bad += (status != UCS_OK) || (length != work->length);
    }
    work_put(work);
}

/* A message is known by its content; short ones overtake long ones */
static void check_received(work_t *work, ucs_status_t status, size_t length)
{
    object_t *object = work->object;
    uint64_t seed    = seed_of(object->other, work->number);

    if ((status != UCS_OK) || (length != length_of(seed)) ||
        !st_check(work->data, length, seed) || object->seen[work->number]) {
        ++object->bad;
        fprintf(stderr, "pair %u side %u: message %lu of %zu bytes, not %zu: "
                "%s\n", object->index, object->side,
                (unsigned long)work->number, length, length_of(seed),
                ucs_status_string(status));
    }
    object->seen[work->number] = 1;
    ++object->received;
}

static void on_received(void *arg, ucs_status_t status, size_t length)
{
    work_t *work = arg;

    if (status != UCS_ERR_CANCELED) {
        check_received(work, status, length);
    }
    work_put(work);
}

static void object_send(object_t *object)
{
    work_t *work  = work_get(object, object->sends);
    uint64_t seed = seed_of(object, object->sent);
    ucs_status_t status;

    if (work == NULL) {
        return;
    }
    work->length = length_of(seed);
    st_fill(work->data, work->length, seed);
    status = ucp_st_channel_send(
            object->end, ST_PE_MSG(work->data, work->length, on_sent, work));
    if (status == UCS_INPROGRESS) {
        ++object->sent;
        return;
    }
    object->sent += (status == UCS_OK);
    object->bad  += (status != UCS_OK) && (status != UCS_ERR_BUSY);
    work_put(work);
}

static void object_recv(object_t *object)
{
    work_t *work  = work_get(object, object->recvs);
    size_t length = 0;
    ucp_st_channel_attr_t attr;
    ucs_status_t status;

    if (work == NULL) {
        return;
    }
    CU_ASSERT_EQUAL(ucp_st_channel_query(object->end, &attr), UCS_OK);
    work->number = attr.received;
    status       = ucp_st_channel_recv(
            object->end, ST_PE_MSG(work->data, LONG, on_received, work),
            &length);
    if (status == UCS_INPROGRESS) {
        return;
    }
    if (status == UCS_OK) {
        check_received(work, status, length);
    }
    object->bad += (status != UCS_OK) && (status != UCS_ERR_BUSY);
    work_put(work);
}

static void on_quiet(void *arg, ucs_status_t status, size_t length)
{
    object_t *object = arg;

    object->bad      += (status != UCS_OK) || (length != 0);
    object->is_quiet  = 1;
}

/* Begins to move it; whether it could */
static int object_leave(object_t *object)
{
    ucs_status_t status = ucp_st_channel_quiesce(object->end, on_quiet, object);

    CU_ASSERT((status == UCS_INPROGRESS) || (status == UCS_ERR_BUSY));
    object->is_moving = (status == UCS_INPROGRESS);
    return object->is_moving;
}

static void object_told(object_t *object, unsigned at)
{
    st_pes_rebind(object->pes, object->end, object->at, at);
    object->told = at;
    ++object->known;
}

/* It is quiet: packs it, and makes it on another PE, or on the same one */
static void object_arrive(object_t *object, unsigned at)
{
    size_t length;
    void *bytes = st_pe_pack(object->end, &length);

    object->end = st_pes_unpack(object->pes, at, object->told, bytes, length);
    free(bytes);
    object->at        = at;
    object->is_quiet  = 0;
    object->is_moving = 0;
    ++object->moves;
}

static void pair_init(st_pes_t *pes, object_t pair[2], unsigned index,
                      unsigned at0, unsigned at1)
{
    const unsigned at[2] = {at0, at1};
    int i;

    memset(pair, 0, 2 * sizeof(*pair));
    for (i = 0; i < 2; ++i) {
        pair[i].pes   = pes;
        pair[i].at    = at[i];
        pair[i].told  = at[!i];
        pair[i].index = index;
        pair[i].side  = i;
        pair[i].other = &pair[!i];
        pair[i].end   = st_pes_channel(pes, at[i], at[!i], ID + index, i);
    }
}

/* Until both have received all, and nothing is left */
static void pair_finish(st_pes_t *pes, object_t pair[2])
{
    ucp_st_channel_attr_t attr;
    int i;

    for (i = 0; i < 2; ++i) {
        while (pair[i].received < pair[!i].sent) {
            object_recv(&pair[i]);
            st_pes_progress(pes);
        }
        CU_ASSERT_EQUAL(pair[i].received, pair[!i].sent);
    }
    for (i = 0; i < 2; ++i) {
        do {
            st_pes_progress(pes);
            CU_ASSERT_EQUAL(ucp_st_channel_query(pair[i].end, &attr), UCS_OK);
        } while (attr.num_sends > 0);
        CU_ASSERT_EQUAL(attr.num_kept, 0);
        CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[i].end), UCS_OK);
        CU_ASSERT_EQUAL(pair[i].bad, 0);
    }
}

static void await_quiet(st_pes_t *pes, object_t *object)
{
    while (!object->is_quiet) {
        st_pes_progress(pes);
    }
}

static void progress_some(st_pes_t *pes)
{
    int i;

    for (i = 0; i < 100; ++i) {
        st_pes_progress(pes);
    }
}

static void pair_run(void (*body)(st_pes_t *pes, object_t *pair), unsigned num)
{
    object_t pair[2];
    st_pes_t pes;

    st_pes_init(&pes, num, NULL);
    pair_init(&pes, pair, 0, 0, 1);
    body(&pes, pair);
    st_pes_cleanup(&pes);
}

/* A case on so many PEs, the first two of which have an end each */
#define PAIR_CASE(_name, _num) \
    static void st_body_##_name(st_pes_t *pes, object_t *pair); \
    ST_CASE_CALL(_name, pair_run(st_body_##_name, _num)) \
    static void st_body_##_name(st_pes_t *pes, object_t *pair)

/* Messages of all lengths are under way in both directions */
PAIR_CASE(one_moves, 3)
{
    int i;

    for (i = 0; i < MAX_AHEAD; ++i) {
        object_send(&pair[0]);
        object_send(&pair[1]);
        object_recv(&pair[0]);
        object_recv(&pair[1]);
    }
    for (i = 0; i < 3; ++i) { /* These wait for receives */
        object_send(&pair[1]);
    }
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    CU_ASSERT_EQUAL(
            ucp_st_channel_send(pair[0].end, ST_PE_MSG(NULL, 0, NULL, NULL)),
            UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_channel_recv(pair[0].end,
                                        ST_PE_MSG(NULL, 0, NULL, NULL), NULL),
                    UCS_ERR_BUSY);
    while (!pair[0].is_quiet) {
        object_recv(&pair[1]);
        st_pes_progress(pes);
    }
    /* The other end puts off, and cannot be moved */
    object_send(&pair[1]);
    CU_ASSERT_FALSE(object_leave(&pair[1]));
    object_arrive(&pair[0], 2);
    object_send(&pair[0]);
    progress_some(pes);
    object_told(&pair[1], 2);
    object_send(&pair[1]);
    pair_finish(pes, pair);
}

/* Messages that nobody has received go along, twice */
PAIR_CASE(kept, 3)
{
    ucp_st_channel_attr_t attr;
    unsigned k;

    for (k = 0; k < 4; ++k) {
        object_send(&pair[1]);
        progress_some(pes);
        CU_ASSERT_TRUE(object_leave(&pair[0]));
        await_quiet(pes, &pair[0]);
        object_arrive(&pair[0], (k & 1) ? 0 : 2);
        object_told(&pair[1], pair[0].at);
        CU_ASSERT_EQUAL(ucp_st_channel_query(pair[0].end, &attr), UCS_OK);
        CU_ASSERT_EQUAL(attr.num_kept, k + 1);
        CU_ASSERT_EQUAL(attr.received, 0);
    }
    pair_finish(pes, pair);
}

/* Both are moved at once, also such that they change places */
static void both_move(unsigned to0, unsigned to1)
{
    object_t pair[2];
    st_pes_t pes;
    int i;

    st_pes_init(&pes, 4, NULL);
    pair_init(&pes, pair, 0, 0, 1);
    for (i = 0; i < 3; ++i) {
        object_send(&pair[0]);
        object_send(&pair[1]);
        object_recv(&pair[1]);
    }
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    CU_ASSERT_TRUE(object_leave(&pair[1]));
    await_quiet(&pes, &pair[0]);
    await_quiet(&pes, &pair[1]);
    object_arrive(&pair[0], to0);
    object_arrive(&pair[1], to1);
    for (i = 0; i < 2; ++i) {
        object_send(&pair[i]);
        object_told(&pair[i], pair[!i].at);
        object_send(&pair[i]);
    }
    pair_finish(&pes, pair);
    st_pes_cleanup(&pes);
}

ST_CASE_CALL(both_move, both_move(2, 3))
ST_CASE_CALL(change_places, both_move(1, 0))

/* An end is moved on before the other one was told where it is */
PAIR_CASE(moves_on, 3)
{
    object_send(&pair[1]);
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    await_quiet(pes, &pair[0]);
    object_arrive(&pair[0], 2);
    object_send(&pair[0]);
    object_send(&pair[1]); /* Put off */
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    progress_some(pes);
    CU_ASSERT_FALSE(pair[0].is_quiet);
    object_told(&pair[1], 2);
    while (!pair[0].is_quiet) {
        object_recv(&pair[1]);
        st_pes_progress(pes);
    }
    object_arrive(&pair[0], 0);
    object_told(&pair[1], 0);
    pair_finish(pes, pair);
}

/* An end that was to be moved stays */
PAIR_CASE(stays, 2)
{
    int i;

    object_recv(&pair[0]);
    object_send(&pair[1]);
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    await_quiet(pes, &pair[0]);
    for (i = 0; i < 2; ++i) {
        object_told(&pair[i], !i);
        object_send(&pair[i]);
    }
    pair_finish(pes, pair);
}

/* The other end is not made yet when this one wants to be moved */
PAIR_CASE(other_comes_late, 3)
{
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[1].end), UCS_OK);
    object_send(&pair[0]);
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    progress_some(pes);
    CU_ASSERT_FALSE(pair[0].is_quiet);
    pair[1].end = st_pes_channel(pes, 1, 0, ID, 1);
    await_quiet(pes, &pair[0]);
    object_arrive(&pair[0], 2);
    object_told(&pair[1], 2);
    pair_finish(pes, pair);
}

/* Bytes that are no end, or cut off */
ST_CASE(bad_bytes)
{
    ucp_st_channel_params_t params = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_EP
    };
    ucp_st_tag_layout_t layout = ucp_st_tag_layout_paper;
    ucp_st_channel_h end       = NULL;
    size_t length              = 0;
    size_t cut;
    uint8_t *bytes;
    object_t pair[2];
    st_pes_t pes, narrow;

    layout.counter.width = 16;
    st_pes_init(&narrow, 1, &layout);
    st_pes_init(&pes, 2, NULL);
    pair_init(&pes, pair, 0, 0, 1);
    CU_ASSERT_EQUAL(ucp_st_channel_pack(pair[0].end, NULL, &length),
                    UCS_ERR_BUSY);
    object_send(&pair[1]);
    object_send(&pair[1]);
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    await_quiet(&pes, &pair[0]);
    CU_ASSERT_EQUAL(ucp_st_channel_pack(pair[0].end, NULL, &length), UCS_OK);
    bytes = malloc(length);
    cut   = length - 1;
    CU_ASSERT_EQUAL(ucp_st_channel_pack(pair[0].end, bytes, &cut),
                    UCS_ERR_BUFFER_TOO_SMALL);
    CU_ASSERT_EQUAL(cut, length);
    CU_ASSERT_EQUAL(ucp_st_channel_pack(pair[0].end, bytes, &length), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_channel_unpack(pes.pe[0].ctx, &params, bytes, length,
                                          &end), UCS_ERR_ALREADY_EXISTS);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[0].end), UCS_OK);
    for (cut = 0; cut < length; ++cut) {
        CU_ASSERT_EQUAL(ucp_st_channel_unpack(pes.pe[0].ctx, &params, bytes,
                                              cut, &end),
                        UCS_ERR_INVALID_PARAM);
    }
    CU_ASSERT_EQUAL(ucp_st_channel_unpack(narrow.pe[0].ctx, &params, bytes,
                                          length, &end), UCS_ERR_INVALID_PARAM);
    params.field_mask |= UCP_ST_CHANNEL_PARAM_FIELD_END;
    params.end         = 1;
    CU_ASSERT_EQUAL(ucp_st_channel_unpack(pes.pe[0].ctx, &params, bytes, length,
                                          &end), UCS_ERR_INVALID_PARAM);
    params.end = 0;
    params.ep  = pes.pe[0].eps[1];
    CU_ASSERT_EQUAL(ucp_st_channel_unpack(pes.pe[0].ctx, &params, bytes, length,
                                          &pair[0].end), UCS_OK);
    object_told(&pair[1], 0);
    pair_finish(&pes, pair);
    free(bytes);
    st_pes_cleanup(&pes);
    st_pes_cleanup(&narrow);
}

/* Parameters of which a program with an older header has the mask alone */
PAIR_CASE(short_params, 2)
{
    size_t size = sysconf(_SC_PAGESIZE);
    uint8_t *pages;
    uint64_t *mask;
    size_t length;
    void *bytes;

    pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_NOT_EQUAL_FATAL((void*)pages, MAP_FAILED);
    CU_ASSERT_EQUAL(mprotect(pages + size, size, PROT_NONE), 0);
    mask  = (uint64_t*)(pages + size) - 1;
    *mask = 0;
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    await_quiet(pes, &pair[0]);
    bytes = st_pe_pack(pair[0].end, &length);
    CU_ASSERT_EQUAL(ucp_st_channel_unpack(pes->pe[0].ctx, (void*)mask, bytes,
                                          length, &pair[0].end), UCS_OK);
    free(bytes);
    CU_ASSERT_EQUAL(munmap(pages, 2 * size), 0);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[0].end), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[1].end), UCS_OK);
}

/* An end is destroyed while it becomes quiet */
PAIR_CASE(destroyed, 2)
{
    object_recv(&pair[0]);
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[0].end), UCS_OK);
    CU_ASSERT_TRUE(pair[0].is_quiet); /* It was called back, once, */
    CU_ASSERT_EQUAL(pair[0].bad, 1);  /* with an error */
    progress_some(pes);
    CU_ASSERT_EQUAL(pair[0].bad, 1);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[1].end), UCS_OK);
}

/* ... by the callback of a send that ends when its message is kept */
static void on_sent_destroy(void *arg, ucs_status_t status, size_t length)
{
    object_t *object = arg;

    (void)status;
    (void)length;
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(object->end), UCS_OK);
    object->end = NULL;
}

ST_CASE(destroyed_by_kept)
{
    uint8_t *data  = calloc(1, LONG);
    char *thresh   = st_env_set("UCX_RNDV_THRESH", "1000");
    object_t pair[2];
    st_pes_t pes;

    st_pes_init(&pes, 1, NULL);
    st_env_restore("UCX_RNDV_THRESH", thresh);
    pair_init(&pes, pair, 0, 0, 0);
    CU_ASSERT_EQUAL(ucp_st_channel_send(pair[1].end,
                                        ST_PE_MSG(data, LONG, on_sent_destroy,
                                                  &pair[0])), UCS_INPROGRESS);
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    while (pair[0].end != NULL) {
        st_pes_progress(&pes);
    }
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[1].end), UCS_OK);
    st_pes_cleanup(&pes);
    free(data);
}

/* The other end has no endpoint yet, and sends wait for it */
PAIR_CASE(other_has_no_way, 3)
{
    const ucp_st_channel_params_t none = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_ID |
                      UCP_ST_CHANNEL_PARAM_FIELD_END,
        .id         = ID,
        .end        = 1
    };

    CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[1].end), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_channel_create(pes->pe[1].ctx, &none, &pair[1].end),
                    UCS_OK);
    object_send(&pair[1]);
    object_send(&pair[1]);
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    progress_some(pes);
    CU_ASSERT_FALSE(pair[0].is_quiet);
    object_told(&pair[1], 0);
    await_quiet(pes, &pair[0]);
    object_arrive(&pair[0], 2);
    object_told(&pair[1], 2);
    pair_finish(pes, pair);
}

/* An end that stays is told to stop before it goes on itself */
PAIR_CASE(stays_and_other_moves, 3)
{
    object_send(&pair[1]);
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    await_quiet(pes, &pair[0]);
    object_told(&pair[1], 0);
    CU_ASSERT_TRUE(object_leave(&pair[1]));
    progress_some(pes);
    CU_ASSERT_FALSE(pair[1].is_quiet);
    object_told(&pair[0], 1); /* It goes on, and answers */
    await_quiet(pes, &pair[1]);
    object_arrive(&pair[1], 2);
    object_told(&pair[0], 2);
    object_send(&pair[0]);
    pair_finish(pes, pair);
}

/* ... while a long message is being kept: it is received, and goes with it */
PAIR_CASE(destroyed_in_keeping, 2)
{
    ucp_st_channel_attr_t attr;

    while (pair[1].sent < 8) { /* The seventh is a long one */
        object_send(&pair[1]);
        st_pes_progress(pes);
    }
    CU_ASSERT_TRUE(object_leave(&pair[0]));
    do {
        st_pes_progress(pes);
        CU_ASSERT_EQUAL(ucp_st_channel_query(pair[0].end, &attr), UCS_OK);
    } while (attr.num_kept < 8);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[0].end), UCS_OK);
    do {
        st_pes_progress(pes);
        CU_ASSERT_EQUAL(ucp_st_channel_query(pair[1].end, &attr), UCS_OK);
    } while (attr.num_sends > 0);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(pair[1].end), UCS_OK);
}

/* What an object that is moved does next; the other one is told later, at
 * random */
static void random_move(st_pes_t *pes, object_t *object, unsigned random)
{
    if (object->is_quiet) {
        object_arrive(object, random % pes->num);
    } else if (!object->is_moving && ((random >> 8) % 16 == 0)) {
        (void)object_leave(object);
    }
    if ((object->known < object->other->moves) && !object->is_moving &&
        ((random >> 12) % 4 == 0)) {
        object_told(object, object->other->at);
    }
}

/* One object does something */
static void random_step(st_pes_t *pes, object_t *object, unsigned random)
{
    if (object->is_moving && !object->is_quiet) {
        return;
    }
    switch (random & 3) {
    case 0:
        object_send(object);
        break;
    case 1:
        object_recv(object);
        break;
    default:
        random_move(pes, object, random >> 2);
        break;
    }
}

/* All moves end, and all messages come; then the pair is made anew or not */
static void random_finish(st_pes_t *pes, object_t pair[2])
{
    int i;

    do {
        for (i = 0; i < 2; ++i) {
            if (pair[i].is_quiet) {
                object_arrive(&pair[i], random() % pes->num);
            }
            if (!pair[i].is_moving && (pair[i].known < pair[!i].moves)) {
                object_told(&pair[i], pair[!i].at);
            }
            if (!pair[i].is_moving) {
                object_recv(&pair[i]);
            }
        }
        st_pes_progress(pes);
    } while (pair[0].is_moving || pair[1].is_moving ||
             (pair[0].known < pair[1].moves) ||
             (pair[1].known < pair[0].moves));
    pair_finish(pes, pair);
}

static void run_random(unsigned num)
{
    static object_t pairs[OBJECTS][2];
    const char *text = getenv("ST_SEED");
    unsigned seed    = (text != NULL) ? (unsigned)strtoul(text, NULL, 0) :
                                        20261127u + num;
    unsigned moves   = 0;
    unsigned next    = 0;
    unsigned i, k;
    st_pes_t pes;

    printf("ST_SEED=%u\n", seed);
    srandom(seed);
    st_pes_init(&pes, num, NULL);
    for (i = 0; i < OBJECTS; ++i) {
        pair_init(&pes, pairs[i], next++, random() % num, random() % num);
    }
    for (k = 0; k < STEPS; ++k) {
        i = random() % OBJECTS;
        random_step(&pes, &pairs[i][random() & 1], (unsigned)random());
        if (random() % 200 == 0) {
            random_finish(&pes, pairs[i]);
            moves += pairs[i][0].moves + pairs[i][1].moves;
            pair_init(&pes, pairs[i], next++, random() % num, random() % num);
        }
        if (k % 4 == 0) {
            st_pes_progress(&pes);
        }
    }
    for (i = 0; i < OBJECTS; ++i) {
        moves += pairs[i][0].moves + pairs[i][1].moves;
    }
    printf("%u moves\n", moves);
    CU_ASSERT(moves > 0);
    for (i = 0; i < OBJECTS; ++i) {
        random_finish(&pes, pairs[i]);
    }
    st_pes_cleanup(&pes);
}

ST_CASE_CALL(random_2, run_random(2))
ST_CASE_CALL(random_5, run_random(5))
ST_CASE_CALL(random_8, run_random(8))

ST_SUITE("st_channel_move")
