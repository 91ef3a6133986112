/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cassini_move.c - the emulated Cassini: commands that move data, what
 * they report, and the entries that they find. One process, to itself. */
#include "cassini_user.h"

#include <string.h>

#define LENGTH  1000
#define BITS    0x1122334455667788ull
#define HEADER  0x99aabbccddeeff00ull
#define CONTEXT 0x1234567890ull


/* Source and destination: the two halves of the user's memory */
static uint8_t *source(const cassini_user_t *user)
{
    return user->memory;
}

static uint8_t *target(const cassini_user_t *user)
{
    return user->memory + (CASSINI_USER_MEMORY / 2);
}

/** A user with an entry over the second half of its memory. */
static void open_entry(cassini_user_t *user)
{
    cassini_command_t entry;
    size_t i;

    cassini_user_open(user, CASSINI_PID_ANY);
    for (i = 0; i < (CASSINI_USER_MEMORY / 2); ++i) {
        source(user)[i] = (uint8_t)(i * 7 + 1);
    }
    entry = cassini_entry(user, CASSINI_PRIORITY, target(user),
                          CASSINI_USER_MEMORY / 2, BITS);
    cassini_append(user, &entry);
}

static void close_entry(cassini_user_t *user)
{
    cassini_unlink(user, CASSINI_PRIORITY, 77);
    CU_ASSERT(!cassini_event_is_there(user, 0));
    cassini_user_close(user);
}

static void expect_init(const cassini_user_t *user, uint64_t context,
                        size_t length)
{
    CU_ASSERT(user->event.init.user == context);
    CU_ASSERT(user->event.init.length == length);
    CU_ASSERT(user->event.init.list == CASSINI_PRIORITY);
    CU_ASSERT(!user->event.init.rdzv);
    CU_ASSERT(!user->event.init.tgt_error);
}

static void expect_tgt(const cassini_user_t *user, uint64_t offset,
                       size_t length)
{
    const cassini_ev_tgt_t *tgt = &user->event.tgt;

    CU_ASSERT(tgt->match_bits == BITS);
    CU_ASSERT(tgt->initiator == user->domain->pid);
    CU_ASSERT(tgt->pte == user->pte->ptn);
    CU_ASSERT(tgt->list == CASSINI_PRIORITY);
    CU_ASSERT(tgt->buffer_id == 77);
    CU_ASSERT(tgt->vni == CASSINI_USER_VNI);
    CU_ASSERT(tgt->length == length);
    CU_ASSERT(tgt->rlength == length);
    CU_ASSERT(tgt->offset == offset);
    CU_ASSERT(tgt->start == user->md->iova + (target(user) - user->memory) +
                            offset);
    CU_ASSERT(!tgt->unlinked);
}

/* The target's event is there before the initiator's: both are on one ring */
static void expect_both(cassini_user_t *user, unsigned tgt_type,
                        unsigned init_type, size_t length)
{
    cassini_event_rc(user, tgt_type, CASSINI_RC_OK);
    expect_tgt(user, 16, length);
    cassini_event_rc(user, init_type, CASSINI_RC_OK);
    expect_init(user, CONTEXT, length);
}

ST_CASE_WITH(put, cassini_user_t, user, open_entry(user), close_entry(user))
{
    cassini_command_t cmd = cassini_dma(user, CASSINI_OP_PUT,
                                        user->domain->pid, source(user),
                                        LENGTH);

    cmd.dma.no_send     = 1;
    cmd.dma.offset      = 16;
    cmd.dma.match_bits  = BITS;
    cmd.dma.header_data = HEADER;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    expect_both(user, CASSINI_EV_PUT, CASSINI_EV_ACK, LENGTH);
    CU_ASSERT(memcmp(target(user) + 16, source(user), LENGTH) == 0);
    CU_ASSERT(target(user)[15] == 0);
    CU_ASSERT(target(user)[16 + LENGTH] == 0);
}

/* The target sees what the initiator sends along */
ST_CASE_WITH(header_data, cassini_user_t, user, open_entry(user),
             close_entry(user))
{
    cassini_command_t cmd = cassini_dma(user, CASSINI_OP_PUT,
                                        user->domain->pid, source(user), 0);

    cmd.dma.no_send     = 1;
    cmd.dma.match_bits  = BITS;
    cmd.dma.header_data = HEADER;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.header_data == HEADER);
    CU_ASSERT(user->event.tgt.length == 0);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
}

ST_CASE_WITH(get, cassini_user_t, user, open_entry(user), close_entry(user))
{
    cassini_command_t cmd = cassini_dma(user, CASSINI_OP_GET,
                                        user->domain->pid, source(user),
                                        LENGTH);

    memset(target(user), 0x5a, 2 * LENGTH);
    target(user)[16] = 0x77;
    cmd.dma.no_send    = 1;
    cmd.dma.offset     = 16;
    cmd.dma.match_bits = BITS;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    expect_both(user, CASSINI_EV_GET, CASSINI_EV_REPLY, LENGTH);
    CU_ASSERT(source(user)[0] == 0x77);
    CU_ASSERT(source(user)[LENGTH - 1] == 0x5a);
    CU_ASSERT(source(user)[LENGTH] == (uint8_t)(LENGTH * 7 + 1));
}

/* The source may be used again before the target has it all */
ST_CASE_WITH(send_event, cassini_user_t, user, open_entry(user),
             close_entry(user))
{
    cassini_command_t cmd = cassini_dma(user, CASSINI_OP_PUT,
                                        user->domain->pid, source(user), 8);
    unsigned seen         = 0;
    unsigned type;
    int i;

    cmd.dma.match_bits = BITS;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    for (i = 0; i < 3; ++i) {
        CU_ASSERT_FATAL(cassini_event_is_there(user, 30000));
        type = (user->eq->events[user->eq->read + 14] >> 2) & 0x1f;
        cassini_event_rc(user, type, CASSINI_RC_OK);
        seen |= 1u << type;
    }
    CU_ASSERT(seen == ((1u << CASSINI_EV_PUT) | (1u << CASSINI_EV_SEND) |
                       (1u << CASSINI_EV_ACK)));
}

/* Success makes no events, where that is said on both sides */
ST_CASE_WITH(no_events, cassini_user_t, user, cassini_user_open(user, 40),
             cassini_user_close(user))
{
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            target(user), LENGTH, BITS);
    cassini_command_t cmd   = cassini_dma(user, CASSINI_OP_PUT,
                                          user->domain->pid, source(user), 8);

    entry.tgt.no_link    = 1;
    entry.tgt.no_unlink  = 1;
    entry.tgt.no_success = 1;
    entry.tgt.use_once   = 1;
    cassini_emit(user->tgt, &entry, sizeof(entry.tgt));
    CU_ASSERT(cassini_drained(user->tgt, 30000));
    source(user)[0]    = 99;
    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    cmd.dma.no_success = 1;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    /* The entry has gone, which is an error, which makes some */
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_refused(user, CASSINI_EV_PUT, CASSINI_EV_ACK,
                    CASSINI_RC_ENTRY_NOT_FOUND);
    CU_ASSERT(target(user)[0] == 99);
}

/* An entry may want to be told of nothing, not even of errors */
ST_CASE_WITH(silent_entry, cassini_user_t, user, cassini_user_open(user, 39),
             cassini_user_close(user))
{
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            target(user), LENGTH, BITS);
    cassini_command_t cmd   = cassini_dma(user, CASSINI_OP_PUT,
                                          user->domain->pid, source(user), 8);

    entry.tgt.no_comm = 1;
    cassini_append(user, &entry);
    source(user)[0]    = 8;
    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    cmd.dma.restricted = 1;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    CU_ASSERT(memcmp(target(user), source(user), 8) == 0);
    cmd.dma.op = CASSINI_OP_GET;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_REPLY, CASSINI_RC_OK);
    cmd.dma.offset = LENGTH + 1;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    (void)cassini_event(user, CASSINI_EV_REPLY);
    CU_ASSERT(cassini_event_code(&user->event) != CASSINI_RC_OK);
    cassini_unlink(user, CASSINI_PRIORITY, 77);
}

/* Entries that do not match: the first one takes all */
ST_CASE_WITH(no_match, cassini_user_t, user, cassini_user_open(user, 41),
             cassini_user_close(user))
{
    cassini_pte_map_t *map = NULL;
    cassini_pte_t *pte     = cassini_user_pte(user, 9, 0, &map);
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            target(user), LENGTH, 0);
    cassini_command_t cmd  = cassini_dma(user, CASSINI_OP_PUT,
                                         user->domain->pid, source(user), 8);

    entry.tgt.pte     = pte->ptn;
    entry.tgt.no_comm = 1;
    cassini_append(user, &entry);
    source(user)[0]    = 3;
    cmd.dma.match_bits = 12345;
    cmd.dma.index      = 9;
    cmd.dma.no_send    = 1;
    cmd.dma.restricted = 1;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    CU_ASSERT(target(user)[0] == 3);
    CU_ASSERT(cxil_unmap_pte(map) == 0);
    CU_ASSERT(cxil_destroy_pte(pte) == 0);
}

/* Data within the command */
ST_CASE_WITH(idc_put, cassini_user_t, user, cassini_user_open(user, 42),
             cassini_user_close(user))
{
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            target(user), LENGTH, 0);
    cassini_command_t state = cassini_cstate(user, 4711);
    cassini_command_t cmd   = cassini_command(CASSINI_IDC, CASSINI_OP_PUT);
    size_t length;

    cassini_append(user, &entry);
    state.cstate.no_send = 1;
    cassini_emit(user->tx, &state, sizeof(state.cstate));
    for (length = 1; length <= 192; length += 13) {
        cmd.idc.length = sizeof(cmd.idc) + length;
        cmd.idc.ep     = cassini_ep(user->domain->pid, CASSINI_USER_INDEX);
        cmd.idc.nid    = user->dev->info.nid;
        cmd.idc.offset = 2 * length;
        memset((uint8_t*)&cmd + sizeof(cmd.idc), (int)length, length);
        cassini_emit(user->tx, &cmd, sizeof(cmd.idc) + length);
        cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
        CU_ASSERT(user->event.tgt.length == length);
        CU_ASSERT(user->event.tgt.offset == 2 * length);
        cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
        CU_ASSERT(user->event.init.user == 4711);
        CU_ASSERT(target(user)[2 * length] == length);
        CU_ASSERT(target(user)[(3 * length) - 1] == length);
    }
    cassini_unlink(user, CASSINI_PRIORITY, 77);
}

ST_CASE_WITH(idc_message, cassini_user_t, user, open_entry(user),
             close_entry(user))
{
    cassini_command_t state = cassini_cstate(user, 1);
    cassini_command_t cmd   = cassini_command(CASSINI_IDC,
                                              CASSINI_OP_SMALL_MSG);

    state.cstate.no_send = 1;
    cassini_emit(user->tx, &state, sizeof(state.cstate));
    cmd.msg.length      = sizeof(cmd.msg) + 100;
    cmd.msg.ep          = cassini_ep(user->domain->pid, CASSINI_USER_INDEX);
    cmd.msg.nid         = user->dev->info.nid;
    cmd.msg.match_bits  = BITS;
    cmd.msg.header_data = HEADER;
    cmd.msg.user        = CONTEXT;
    memset((uint8_t*)&cmd + sizeof(cmd.msg), 0x42, 100);
    cassini_emit(user->tx, &cmd, sizeof(cmd.msg) + 100);
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    expect_tgt(user, 0, 100);
    CU_ASSERT(user->event.tgt.header_data == HEADER);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    expect_init(user, CONTEXT, 100);
    CU_ASSERT(target(user)[99] == 0x42);
    CU_ASSERT(target(user)[100] == 0);
}

/* An entry that hands out its memory piece by piece, until little is left */
ST_CASE_WITH(local_offset, cassini_user_t, user, cassini_user_open(user, 43),
             cassini_user_close(user))
{
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            target(user), 1000, BITS);
    cassini_command_t cmd   = cassini_dma(user, CASSINI_OP_PUT,
                                          user->domain->pid, source(user),
                                          300);
    int i;

    entry.tgt.manage_local = 1;
    entry.tgt.min_free     = 200;
    cassini_append(user, &entry);
    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    for (i = 0; i < 3; ++i) {
        cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
        if (i == 2) {
            cassini_event_rc(user, CASSINI_EV_UNLINK, CASSINI_RC_OK);
            CU_ASSERT(user->event.tgt.unlinked);
        }
        cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
        CU_ASSERT(user->event.tgt.start == entry.tgt.start + (i * 300));
        CU_ASSERT(user->event.tgt.unlinked == (i == 2));
        cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    }
}

/* The first entry that matches: bits, those that do not count, and initiator */
ST_CASE_WITH(matching, cassini_user_t, user, cassini_user_open(user, 44),
             cassini_user_close(user))
{
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            target(user), LENGTH, 0xf0);
    cassini_command_t cmd   = cassini_dma(user, CASSINI_OP_PUT,
                                          user->domain->pid, source(user), 8);

    entry.tgt.match_id = user->domain->pid + 1;
    cassini_append(user, &entry);
    entry.tgt.match_id    = user->domain->pid;
    entry.tgt.ignore_bits = 0x0f;
    entry.tgt.buffer_id   = 2;
    cassini_append(user, &entry);
    entry.tgt.match_id  = CASSINI_MATCH_ANY;
    entry.tgt.buffer_id = 3;
    cassini_append(user, &entry);
    cmd.dma.match_bits = 0xf7;
    cmd.dma.no_send    = 1;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.buffer_id == 2);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    cmd.dma.match_bits = 0x1f7;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_refused(user, CASSINI_EV_PUT, CASSINI_EV_ACK,
                    CASSINI_RC_ENTRY_NOT_FOUND);
    cassini_unlink(user, CASSINI_PRIORITY, 77);
    cassini_unlink(user, CASSINI_PRIORITY, 2);
    cassini_unlink(user, CASSINI_PRIORITY, 3);
}

/* A message that is there before its entry: in the overflow list, found by a
 * search, and taken by the entry once that comes */
ST_CASE_WITH(unexpected, cassini_user_t, user, cassini_user_open(user, 45),
             cassini_user_close(user))
{
    cassini_command_t room   = cassini_entry(user, CASSINI_OVERFLOW,
                                             target(user), 4096, 0);
    cassini_command_t search = cassini_command(CASSINI_CQ, CASSINI_TGT_SEARCH);
    cassini_command_t entry  = cassini_entry(user, CASSINI_PRIORITY,
                                             source(user), LENGTH, BITS);
    cassini_command_t cmd    = cassini_dma(user, CASSINI_OP_PUT,
                                           user->domain->pid, source(user),
                                           64);

    room.tgt.ignore_bits  = UINT64_MAX;
    room.tgt.manage_local = 1;
    cassini_append(user, &room);
    search.tgt            = entry.tgt;
    search.tgt.op         = CASSINI_TGT_SEARCH;
    search.tgt.list       = CASSINI_UNEXPECTED;
    search.tgt.use_once   = 1;
    cassini_emit(user->tgt, &search, sizeof(search.tgt));
    cassini_event_rc(user, CASSINI_EV_SEARCH, CASSINI_RC_NO_MATCH);

    cmd.dma.match_bits  = BITS;
    cmd.dma.header_data = HEADER;
    cmd.dma.no_send     = 1;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.list == CASSINI_OVERFLOW);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    CU_ASSERT(user->event.init.list == CASSINI_OVERFLOW);

    cassini_emit(user->tgt, &search, sizeof(search.tgt));
    cassini_event_rc(user, CASSINI_EV_SEARCH, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.match_bits == BITS);

    entry.tgt.use_once  = 1;
    entry.tgt.buffer_id = 5;
    cassini_emit(user->tgt, &entry, sizeof(entry.tgt));
    cassini_event_rc(user, CASSINI_EV_PUT_OVERFLOW, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.buffer_id == 5);
    CU_ASSERT(user->event.tgt.length == 64);
    CU_ASSERT(user->event.tgt.header_data == HEADER);
    CU_ASSERT(user->event.tgt.start == room.tgt.start);
    cassini_unlink(user, CASSINI_OVERFLOW, 77);
}

ST_CASE_WITH(search_delete, cassini_user_t, user, cassini_user_open(user, 46),
             cassini_user_close(user))
{
    cassini_command_t room   = cassini_entry(user, CASSINI_OVERFLOW,
                                             target(user), 4096, 0);
    cassini_command_t search = cassini_entry(user, CASSINI_UNEXPECTED,
                                             source(user), 0, BITS);
    cassini_command_t cmd    = cassini_dma(user, CASSINI_OP_PUT,
                                           user->domain->pid, source(user),
                                           64);

    room.tgt.ignore_bits  = UINT64_MAX;
    room.tgt.manage_local = 1;
    cassini_append(user, &room);
    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    search.tgt.op       = CASSINI_TGT_SEARCH_DELETE;
    search.tgt.use_once = 1;
    cassini_emit(user->tgt, &search, sizeof(search.tgt));
    cassini_event_rc(user, CASSINI_EV_PUT_OVERFLOW, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.match_bits == BITS);
    search.tgt.op = CASSINI_TGT_SEARCH;
    cassini_emit(user->tgt, &search, sizeof(search.tgt));
    cassini_event_rc(user, CASSINI_EV_SEARCH, CASSINI_RC_NO_MATCH);
    cassini_unlink(user, CASSINI_OVERFLOW, 77);
}

/* Of a rendezvous that nobody waits for the first part is there, and what tells
 * the target how to get the rest */
ST_CASE_WITH(rendezvous, cassini_user_t, user, cassini_user_open(user, 47),
             cassini_user_close(user))
{
    cassini_command_t room = cassini_entry(user, CASSINI_OVERFLOW,
                                           target(user), 4096, 0);
    cassini_command_t cmd  = cassini_dma(user, CASSINI_OP_RDZV_PUT,
                                         user->domain->pid, source(user),
                                         10000);

    room.tgt.ignore_bits  = UINT64_MAX;
    room.tgt.manage_local = 1;
    cassini_append(user, &room);
    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    cmd.dma.eager      = 256;
    cmd.dma.rdzv_id    = 17;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.rdzv);
    CU_ASSERT(user->event.tgt.rdzv_id == 17);
    CU_ASSERT(user->event.tgt.length == 256);
    CU_ASSERT(user->event.tgt.rlength == 10000);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    CU_ASSERT(user->event.init.rdzv);
    cassini_unlink(user, CASSINI_OVERFLOW, 77);
}

/* What is not there cannot be unlinked */
ST_CASE_WITH(unlink_absent, cassini_user_t, user, cassini_user_open(user, 48),
             cassini_user_close(user))
{
    cassini_command_t cmd = cassini_command(CASSINI_CQ, CASSINI_TGT_UNLINK);

    cmd.tgt.list      = CASSINI_PRIORITY;
    cmd.tgt.pte       = user->pte->ptn;
    cmd.tgt.buffer_id = 123;
    cassini_emit(user->tgt, &cmd, sizeof(cmd.tgt));
    cassini_event_rc(user, CASSINI_EV_UNLINK, CASSINI_RC_ENTRY_NOT_FOUND);
    CU_ASSERT(user->event.tgt.buffer_id == 123);
}

/* Commands to a queue itself make no events; the queue goes on behind them, and
 * past its end */
ST_CASE_WITH(queue, cassini_user_t, user, open_entry(user), close_entry(user))
{
    cassini_command_t cmd = cassini_dma(user, CASSINI_OP_PUT,
                                        user->domain->pid, source(user), 8);
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            target(user), 64, BITS + 1);
    cassini_command_t own;
    uint64_t last         = 0;
    unsigned i;

    cmd.dma.match_bits = BITS + 1; /* Of another entry, which is silent */
    cmd.dma.no_send    = 1;
    entry.tgt.no_comm  = 1;
    entry.tgt.buffer_id = 2;
    cassini_append(user, &entry);
    for (i = 0; i < 2000; ++i) {
        own         = cassini_command(CASSINI_CQ, i % 3);
        own.cq.lcid = user->cp->lcid;
        cassini_emit(user->tx, &own, sizeof(own.cq));
        cmd.dma.user = i;
        cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
        if ((i % 50) == 49) {
            for (; last <= i; ++last) {
                cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
                CU_ASSERT(user->event.init.user == last);
            }
        }
    }
    CU_ASSERT(cassini_drained(user->tx, 30000));
    cassini_unlink(user, CASSINI_PRIORITY, 2);
}

/* Events of many puts: the ring goes round */
ST_CASE_WITH(ring, cassini_user_t, user, open_entry(user), close_entry(user))
{
    cassini_command_t cmd = cassini_dma(user, CASSINI_OP_PUT,
                                        user->domain->pid, source(user), 8);
    uint64_t i;

    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    for (i = 0; i < 5000; ++i) {
        cmd.dma.user = i;
        cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
        cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
        cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
        if (user->event.init.user != i) {
            CU_FAIL("events in another order");
            break;
        }
    }
}

static const cassini_part_t parts[] = {{NULL, NULL}};

CASSINI_SUITE("cassini_move", parts)
