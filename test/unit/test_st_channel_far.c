/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_channel_far.c - channels between two processes: messages, an end that
 * is moved to the other process and back, and a process that dies.
 */
#include "st_cunit.h"
#include "st_far.h"
#include "st_pair.h"
#include "st_pe.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ID    7
#define LONG  (1 << 20)
#define AHEAD 12  /* Messages of which some are received before a move */
#define PIECE 60000 /* Bytes of what is told at a time */


/* One of the two processes, with its end; the other process is PE 1 */
typedef struct {
    st_far_t         far;
    st_pes_t         pes;
    ucp_st_channel_h end;
    unsigned         side;
} life_t;

static void life_init(life_t *life, unsigned side)
{
    life->side = side;
    st_pes_init_far(&life->pes, &life->far);
    life->end = st_pes_channel(&life->pes, 0, 1, ID, side);
}

static void life_cleanup(life_t *life)
{
    (void)ucp_st_channel_destroy(life->end);
    st_pes_cleanup_far(&life->pes);
}

static size_t length_of(unsigned number)
{
    static const size_t lengths[] = {8, 0, 1000, LONG};

    return lengths[number % (sizeof(lengths) / sizeof(lengths[0]))];
}

/* Content of the messages that an end sends */
static uint64_t seed_of(unsigned side, unsigned number)
{
    return (2 * (uint64_t)number) + side;
}

static void recv_one(life_t *life, ucp_st_channel_h end, unsigned from,
                     unsigned number)
{
    uint8_t *buffer = malloc(LONG);
    size_t length   = SIZE_MAX;
    said_t said     = {0};
    ucs_status_t status;

    status = ucp_st_channel_recv(end, ST_PE_MSG(buffer, LONG, hear, &said),
                                 &length);
    CU_ASSERT_EQUAL(await(&life->pes, status, &said), UCS_OK);
    length = (status == UCS_OK) ? length : said.length;
    CU_ASSERT_EQUAL(length, length_of(number));
    CU_ASSERT_TRUE(st_check(buffer, length, seed_of(from, number)));
    free(buffer);
}

/* Messages of all lengths to the other process, and from there. The last ones
 * are short: what UCP still has to do for long ones needs progress. */
static void talk(life_t *life, unsigned first)
{
    uint8_t *buffer = malloc(LONG);
    ucs_status_t status;
    said_t said;
    unsigned i;

    for (i = first; i <= first + 96; ++i) {
        said = (said_t){0};
        st_fill(buffer, length_of(i), seed_of(life->side, i));
        status = ucp_st_channel_send(
                life->end, ST_PE_MSG(buffer, length_of(i), hear, &said));
        recv_one(life, life->end, !life->side, i);
        CU_ASSERT_EQUAL(await(&life->pes, status, &said), UCS_OK);
    }
    free(buffer);
}

ST_CASE(far)
{
    life_t life;

    st_far_start(&life.far, "talk");
    life_init(&life, 0);
    talk(&life, 0);
    CU_ASSERT_TRUE(st_far_meet(&life.far));
    st_far_end(&life.far);
    life_cleanup(&life);
}

/* Sends an end to the other process, with messages that it has kept */
static void leave(life_t *life, ucp_st_channel_h end)
{
    said_t said = {0};
    size_t length, offset, piece;
    uint8_t *bytes;

    CU_ASSERT_EQUAL(ucp_st_channel_quiesce(end, hear, &said), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(await(&life->pes, UCS_INPROGRESS, &said), UCS_OK);
    bytes = st_pe_pack(end, &length);
    CU_ASSERT_EQUAL(send(life->far.fd, &length, sizeof(length), 0),
                    (ssize_t)sizeof(length));
    for (offset = 0; offset < length; offset += piece) {
        piece = ((length - offset) < PIECE) ? (length - offset) : PIECE;
        CU_ASSERT_EQUAL_FATAL(send(life->far.fd, bytes + offset, piece, 0),
                              (ssize_t)piece);
    }
    free(bytes);
}

/* Takes an end that the other process sends; its other end is on PE `other` */
static ucp_st_channel_h arrive(life_t *life, unsigned other)
{
    size_t offset = 0;
    ucp_st_channel_h end;
    size_t length;
    uint8_t *bytes;
    ssize_t got;

    do {
        st_pes_progress(&life->pes);
        got = recv(life->far.fd, &length, sizeof(length), MSG_DONTWAIT);
    } while ((got < 0) && (errno == EAGAIN));
    CU_ASSERT_EQUAL_FATAL(got, (ssize_t)sizeof(length));
    bytes = malloc(length);
    while (offset < length) {
        got = recv(life->far.fd, bytes + offset, length - offset, 0);
        CU_ASSERT_FATAL(got > 0);
        offset += (size_t)got;
    }
    end = st_pes_unpack(&life->pes, 0, other, bytes, length);
    free(bytes);
    return end;
}

/* The end that stays sends some messages, of which the other process receives
 * a part before it leaves. So the rest goes along, or is sent again. */
static void stay(life_t *life)
{
    uint8_t *buffer[AHEAD];
    said_t said[AHEAD] = {{0}};
    ucs_status_t status[AHEAD];
    ucp_st_channel_h end;
    unsigned i;

    for (i = 0; i < AHEAD; ++i) {
        buffer[i] = malloc(LONG);
        st_fill(buffer[i], length_of(i), seed_of(0, i));
        status[i] = ucp_st_channel_send(
                life->end,
                ST_PE_MSG(buffer[i], length_of(i), hear, &said[i]));
    }
    end = arrive(life, 0);
    st_pes_rebind(&life->pes, life->end, 0, 0);
    for (i = AHEAD / 2; i < AHEAD; ++i) {
        recv_one(life, end, 0, i);
    }
    for (i = 0; i < AHEAD; ++i) {
        CU_ASSERT_EQUAL(await(&life->pes, status[i], &said[i]), UCS_OK);
        free(buffer[i]);
    }
    leave(life, end);
    st_pes_rebind(&life->pes, life->end, 0, 1);
    talk(life, AHEAD);
}

ST_CASE(moves)
{
    life_t life;

    st_far_start(&life.far, "move");
    life_init(&life, 0);
    stay(&life);
    CU_ASSERT_TRUE(st_far_meet(&life.far));
    st_far_end(&life.far);
    life_cleanup(&life);
}

/* In the other process: */
static void move(life_t *life)
{
    unsigned i;

    for (i = 0; i < AHEAD / 2; ++i) {
        recv_one(life, life->end, 0, i);
    }
    leave(life, life->end);
    life->end = arrive(life, 1);
    talk(life, AHEAD);
}

/* The other process dies: a long send ends with an error, and a receive with
 * its channel */
ST_CASE(dies)
{
    uint8_t *buffer = malloc(64 * LONG);
    said_t said[2]  = {{0}};
    ucs_status_t status;
    uint64_t got;
    life_t life;
    /* How often UCP looks whether a process that it shares memory with lives */
    char *interval = st_env_set("UCX_KEEPALIVE_INTERVAL", "1s");

    st_fill(buffer, 64 * LONG, 1);
    st_far_start(&life.far, "die");
    life_init(&life, 0);
    talk(&life, 0);
    st_far_kill(&life.far);
    CU_ASSERT_EQUAL(ucp_st_channel_recv(
                            life.end, ST_PE_MSG(&got, 8, hear, &said[1]), NULL),
                    UCS_INPROGRESS);
    do {
        said[0] = (said_t){0};
        status  = ucp_st_channel_send(
                 life.end, ST_PE_MSG(buffer, 64 * LONG, hear, &said[0]));
        status  = await(&life.pes, status, &said[0]);
    } while (status == UCS_OK);
    CU_ASSERT_EQUAL(said[1].calls, 0);
    life_cleanup(&life);
    CU_ASSERT_EQUAL(said[1].calls, 1);
    CU_ASSERT_EQUAL(said[1].status, UCS_ERR_CANCELED);
    st_env_restore("UCX_KEEPALIVE_INTERVAL", interval);
    free(buffer);
}

/* In the other process */
static void run_process(void)
{
    life_t life;
    const char *what = st_far_task(&life.far);

    life_init(&life, 1);
    if (!strcmp(what, "move")) {
        move(&life);
    } else {
        talk(&life, 0);
    }
    while (!strcmp(what, "die")) {
        st_pes_progress(&life.pes);
        (void)sched_yield();
    }
    /* Messages that are sent may still be on their way, and end with it */
    CU_ASSERT_TRUE(st_far_meet(&life.far));
    life_cleanup(&life);
}

ST_FAR_SUITE("st_channel_far", run_process)
