/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cassini_entry.c - the emulated Cassini: portal entries that change their
 * state, each for one reason, and what their options add. */
#include "cassini_user.h"

#include <string.h>

#define BITS   0x41
#define INDEX  9 /* Of the portal entry with options */
#define LENGTH 64


/** A user with a second portal entry. */
typedef struct {
    cassini_user_t    user;
    cassini_pte_t     *pte;
    cassini_pte_map_t *map;
} portal_t;

static void open_portal(portal_t *portal, cassini_pte_opts_t opts)
{
    cassini_user_open(&portal->user, CASSINI_PID_ANY);
    portal->pte = cassini_user_pte_opts(&portal->user, INDEX, opts,
                                        &portal->map);
}

static void close_portal(portal_t *portal)
{
    CU_ASSERT(!cassini_event_is_there(&portal->user, 0));
    CU_ASSERT(cxil_unmap_pte(portal->map) == 0);
    CU_ASSERT(cxil_destroy_pte(portal->pte) == 0);
    cassini_user_close(&portal->user);
}

/* As the provider makes those that messages come to */
static const cassini_pte_opts_t flow = {.matching = 1, .flow_control = 1};
static const cassini_pte_opts_t hybrid = {.matching = 1, .flow_control = 1,
                                          .software = 1};
static const cassini_pte_opts_t matches = {.matching = 1, .match_event = 1};
static const cassini_pte_opts_t plain;

#define PORTAL_CASE(_name, _opts) \
    ST_CASE_WITH(_name, portal_t, portal, open_portal(portal, _opts), \
                 close_portal(portal))

static uint8_t *room_of(const portal_t *portal)
{
    return portal->user.memory + 4096;
}

/* An entry of the second portal entry: of the other lists it takes all, and
 * hands its memory out piece by piece */
static cassini_command_t entry_of(const portal_t *portal, unsigned list)
{
    int is_room           = (list != CASSINI_PRIORITY);
    cassini_command_t cmd = cassini_entry(&portal->user, list, is_room ?
                                          room_of(portal) :
                                          portal->user.memory + 1024,
                                          is_room ? 4096 : LENGTH, BITS);

    cmd.tgt.pte       = portal->pte->ptn;
    cmd.tgt.no_unlink = 1;
    if (is_room) {
        cmd.tgt.manage_local = 1;
        cmd.tgt.ignore_bits  = UINT64_MAX;
    }
    return cmd;
}

static cassini_command_t put_of(const portal_t *portal)
{
    const cassini_user_t *user = &portal->user;
    cassini_command_t cmd      = cassini_dma(user, CASSINI_OP_PUT,
                                             user->domain->pid, user->memory,
                                             LENGTH);

    cmd.dma.index      = INDEX;
    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    return cmd;
}

static void put(portal_t *portal)
{
    cassini_command_t cmd = put_of(portal);

    cassini_emit(portal->user.tx, &cmd, sizeof(cmd.dma));
}

/* Both sides are told of a put that went into an entry of a list */
static void expect_put(portal_t *portal, unsigned list)
{
    cassini_event_rc(&portal->user, CASSINI_EV_PUT, CASSINI_RC_OK);
    CU_ASSERT(portal->user.event.tgt.list == list);
    CU_ASSERT(portal->user.event.tgt.pte == portal->pte->ptn);
    cassini_event_rc(&portal->user, CASSINI_EV_ACK, CASSINI_RC_OK);
    CU_ASSERT(portal->user.event.init.list == list);
}

/* The NIC says that it changed the state, and why */
static void expect_state(portal_t *portal, unsigned state, unsigned why)
{
    cassini_pte_status_t status = {0};
    cassini_state_bits_t bits;

    cassini_event_rc(&portal->user, CASSINI_EV_STATE_CHANGE, CASSINI_RC_OK);
    bits.bits = portal->user.event.tgt.initiator;
    CU_ASSERT(portal->user.event.tgt.pte == portal->pte->ptn);
    CU_ASSERT(bits.f.by_nic);
    CU_ASSERT(bits.f.state == state);
    CU_ASSERT(bits.f.why == why);
    CU_ASSERT(cxil_pte_status(portal->pte, &status) == 0);
    CU_ASSERT(status.state == state);
    CU_ASSERT(status.drops == 0);
}

/* The entry is stopped: the put that did it is refused, and is not counted */
static void expect_stopped(portal_t *portal, unsigned why)
{
    expect_state(portal, CASSINI_PTE_DISABLED, why);
    cassini_event_rc(&portal->user, CASSINI_EV_ACK, CASSINI_RC_PT_DISABLED);
}

/* With flow control a message that no entry waits for stops the portal entry;
 * software has to know how many were dropped to start it again */
PORTAL_CASE(no_match, flow)
{
    cassini_user_t *user    = &portal->user;
    cassini_command_t entry = entry_of(portal, CASSINI_PRIORITY);
    cassini_command_t cmd   = cassini_command(CASSINI_CQ,
                                              CASSINI_TGT_SETSTATE);

    put(portal);
    expect_stopped(portal, CASSINI_WHY_NO_MATCH);
    put(portal);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_PT_DISABLED);
    cmd.setstate.state = CASSINI_PTE_ENABLED;
    cmd.setstate.pte   = portal->pte->ptn;
    cassini_emit(user->tgt, &cmd, sizeof(cmd.setstate));
    cassini_event_rc(user, CASSINI_EV_STATE_CHANGE, CASSINI_RC_NO_MATCH);
    cassini_append(user, &entry);
    cassini_user_set_state(user, portal->pte, CASSINI_PTE_ENABLED);
    put(portal);
    expect_put(portal, CASSINI_PRIORITY);
}

/* The library's way to software that matches: it has to know the drops, too */
PORTAL_CASE(transition, flow)
{
    cassini_user_t *user    = &portal->user;
    cassini_command_t entry = entry_of(portal, CASSINI_REQUEST);

    CU_ASSERT(cxil_pte_transition_sm(portal->pte, 0) < 0);
    put(portal);
    expect_stopped(portal, CASSINI_WHY_NO_MATCH);
    put(portal);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_PT_DISABLED);
    CU_ASSERT(cxil_pte_transition_sm(portal->pte, 0) < 0);
    CU_ASSERT(cxil_pte_transition_sm(portal->pte, 1) == 0);
    cassini_append(user, &entry);
    put(portal);
    expect_put(portal, CASSINI_REQUEST);
}

/* The request list is full, too: software matches nothing more */
PORTAL_CASE(request_full, flow)
{
    cassini_user_t *user    = &portal->user;
    cassini_command_t entry = entry_of(portal, CASSINI_REQUEST);

    entry.tgt.use_once = 1;
    cassini_append(user, &entry);
    cassini_user_set_state(user, portal->pte, CASSINI_PTE_SOFTWARE);
    put(portal);
    expect_put(portal, CASSINI_REQUEST);
    put(portal);
    expect_stopped(portal, CASSINI_WHY_REQUEST_FULL);
}

/* Take all entries of lists but so many; they are given back when the portal
 * entry is closed */
static void take_entries(portal_t *portal, unsigned left)
{
    cassini_svc_use_t use   = {0};
    cassini_command_t entry = entry_of(portal, CASSINI_PRIORITY);
    cassini_user_t *user    = &portal->user;
    cassini_svc_t svc;

    CU_ASSERT(cxil_get_svc(user->dev, CASSINI_SVC_DEFAULT, &svc) == 0);
    entry.tgt.match_bits = BITS + 1;
    entry.tgt.buffer_id  = 1;
    entry.tgt.pte        = user->pte->ptn;
    for (;;) {
        CU_ASSERT(cxil_get_svc_rsrc_use(user->dev, svc.svc_id, &use) == 0);
        if (use.in_use[CASSINI_RSRC_LE] + left >=
            svc.limits[CASSINI_RSRC_LE].max) {
            return;
        }
        cassini_append(user, &entry);
    }
}

/* A portal entry with one entry in each of these lists. A first message has
 * taken the last free list entry of the service; a second one finds none. */
static void open_short(portal_t *portal, cassini_pte_opts_t opts,
                       const unsigned *lists, unsigned num_lists)
{
    cassini_command_t room;
    unsigned i;

    open_portal(portal, opts);
    for (i = 0; i < num_lists; ++i) {
        room = entry_of(portal, lists[i]);
        cassini_append(&portal->user, &room);
    }
    take_entries(portal, 1);
    put(portal);
    expect_put(portal, CASSINI_OVERFLOW);
    put(portal);
}

/* No entry is left to note an unexpected message in */
static void part_unexpected_fail(void)
{
    static const unsigned lists[] = {CASSINI_OVERFLOW};
    portal_t object, *portal      = &object;

    open_short(portal, flow, lists, 1);
    expect_stopped(portal, CASSINI_WHY_UNEXPECTED_FAIL);
    close_portal(portal);
}

/* Where software may match, it does from then on: that message is the first
 * one of the request list */
static void part_software_unexpected(void)
{
    static const unsigned lists[] = {CASSINI_OVERFLOW, CASSINI_REQUEST};
    portal_t object, *portal      = &object;

    open_short(portal, hybrid, lists, 2);
    expect_state(portal, CASSINI_PTE_SOFTWARE,
                 CASSINI_WHY_SW_UNEXPECTED_FAIL);
    expect_put(portal, CASSINI_REQUEST);
    put(portal);
    expect_put(portal, CASSINI_REQUEST);
    close_portal(portal);
}

/* The same if an entry cannot be appended: it and later ones are refused */
static void part_software_append(void)
{
    portal_t object, *portal = &object;
    cassini_command_t room, entry;

    open_portal(portal, hybrid);
    room = entry_of(portal, CASSINI_REQUEST);
    cassini_append(&portal->user, &room);
    take_entries(portal, 0);
    entry = entry_of(portal, CASSINI_PRIORITY);
    cassini_emit(portal->user.tgt, &entry, sizeof(entry.tgt));
    expect_state(portal, CASSINI_PTE_SOFTWARE, CASSINI_WHY_SW_APPEND_FAIL);
    cassini_event_rc(&portal->user, CASSINI_EV_LINK, CASSINI_RC_PTE_SOFTWARE);
    cassini_emit(portal->user.tgt, &entry, sizeof(entry.tgt));
    cassini_event_rc(&portal->user, CASSINI_EV_LINK, CASSINI_RC_PTE_SOFTWARE);
    put(portal);
    expect_put(portal, CASSINI_REQUEST);
    close_portal(portal);
}

ST_CASE(no_list_entries)
{
    CU_ASSERT(cassini_child_wait(cassini_child("unexpected_fail",
                                               "CASSINI_LES=8")) == 0);
    CU_ASSERT(cassini_child_wait(cassini_child("software_unexpected",
                                               "CASSINI_LES=8")) == 0);
    CU_ASSERT(cassini_child_wait(cassini_child("software_append",
                                               "CASSINI_LES=8")) == 0);
}

/* The target is told of a match ahead of the data */
PORTAL_CASE(match, matches)
{
    cassini_user_t *user          = &portal->user;
    const cassini_ev_tgt_t *event = &user->event.tgt;
    cassini_command_t entry       = entry_of(portal, CASSINI_PRIORITY);

    cassini_append(user, &entry);
    put(portal);
    cassini_event_rc(user, CASSINI_EV_MATCH, CASSINI_RC_OK);
    CU_ASSERT(event->buffer_id == 77);
    CU_ASSERT(event->pte == portal->pte->ptn);
    CU_ASSERT(event->match_bits == BITS);
    CU_ASSERT(event->list == CASSINI_PRIORITY);
    CU_ASSERT(event->length == LENGTH);
    CU_ASSERT(event->rlength == LENGTH);
    CU_ASSERT(event->start == entry.tgt.start);
    expect_put(portal, CASSINI_PRIORITY);
    entry.tgt.no_comm     = 1;
    entry.tgt.match_bits  = BITS + 1;
    cassini_append(user, &entry);
    entry                = put_of(portal);
    entry.dma.match_bits = BITS + 1;
    cassini_emit(user->tx, &entry, sizeof(entry.dma));
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
}

/* Of what came unexpected the entry that takes it says what it was */
PORTAL_CASE(overflow_kinds, flow)
{
    static const unsigned ops[] = {CASSINI_OP_PUT, CASSINI_OP_GET,
                                   CASSINI_OP_ATOMIC, CASSINI_OP_FETCH_ATOMIC};
    cassini_user_t *user    = &portal->user;
    cassini_command_t entry = entry_of(portal, CASSINI_PRIORITY);
    cassini_command_t room  = entry_of(portal, CASSINI_OVERFLOW);
    cassini_command_t cmd;
    unsigned i;

    cassini_append(user, &room);
    entry.tgt.use_once = 1;
    for (i = 0; i < ST_CUNIT_COUNT(ops); ++i) {
        cmd                  = put_of(portal);
        cmd.dma.op           = ops[i];
        cmd.dma.length       = 8;
        cmd.dma_amo.amo_op   = CASSINI_AMO_SUM;
        cmd.dma_amo.amo_type = CASSINI_UINT64;
        cassini_emit(user->tx, &cmd, (ops[i] < CASSINI_OP_ATOMIC) ?
                     sizeof(cmd.dma) : sizeof(cmd.dma_amo));
        cassini_event_rc(user, CASSINI_EV_PUT + i, CASSINI_RC_OK);
        CU_ASSERT(user->event.tgt.list == CASSINI_OVERFLOW);
        cassini_event_rc(user, ((i % 2) == 0) ? CASSINI_EV_ACK :
                         CASSINI_EV_REPLY, CASSINI_RC_OK);
        cassini_emit(user->tgt, &entry, sizeof(entry.tgt));
        cassini_event_rc(user, CASSINI_EV_PUT_OVERFLOW + i, CASSINI_RC_OK);
        CU_ASSERT(user->event.tgt.length == 8);
    }
}

/* Behind the end of an entry: the initiator alone is told */
PORTAL_CASE(perm_violation, plain)
{
    cassini_user_t *user    = &portal->user;
    cassini_command_t entry = entry_of(portal, CASSINI_PRIORITY);
    cassini_command_t cmd   = put_of(portal);

    cassini_append(user, &entry);
    cmd.dma.offset = LENGTH + 1;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_PERM_VIOLATION);
    CU_ASSERT(user->event.init.tgt_error);
    cmd.dma.op = CASSINI_OP_GET;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_REPLY, CASSINI_RC_PERM_VIOLATION);
    /* At its end there is no room, but for nothing */
    cmd.dma.offset = LENGTH;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_REPLY, CASSINI_RC_NO_SPACE);
    cmd.dma.length = 0;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_GET, CASSINI_RC_OK);
    cassini_event_rc(user, CASSINI_EV_REPLY, CASSINI_RC_OK);
}

/* Commands of 32 bytes, restricted: no match bits, no word of the user */
PORTAL_CASE(no_match_commands, plain)
{
    cassini_user_t *user    = &portal->user;
    cassini_command_t entry = entry_of(portal, CASSINI_PRIORITY);
    cassini_command_t cmd   = put_of(portal);
    uint8_t *target         = user->memory + 1024;

    cassini_append(user, &entry);
    memset(user->memory, 0x77, LENGTH);
    cmd.dma.op         = CASSINI_OP_NOMATCH_PUT;
    cmd.dma.restricted = 1;
    cmd.dma.length     = 8;
    cmd.dma.offset     = 16;
    cassini_emit(user->tx, &cmd, 32);
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.match_bits == 0);
    CU_ASSERT(user->event.tgt.length == 8);
    CU_ASSERT(user->event.tgt.offset == 16);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    CU_ASSERT(user->event.init.user == 0);
    CU_ASSERT(target[15] == 0);
    CU_ASSERT(target[16] == 0x77);
    CU_ASSERT(target[23] == 0x77);
    CU_ASSERT(target[24] == 0);

    target[30]     = 0x31;
    cmd.dma.op     = CASSINI_OP_NOMATCH_GET;
    cmd.dma.offset = 24;
    cassini_emit(user->tx, &cmd, 32);
    cassini_event_rc(user, CASSINI_EV_GET, CASSINI_RC_OK);
    cassini_event_rc(user, CASSINI_EV_REPLY, CASSINI_RC_OK);
    CU_ASSERT(user->memory[0] == 0);
    CU_ASSERT(user->memory[6] == 0x31);
    CU_ASSERT(user->memory[8] == 0x77);
}

static const cassini_part_t parts[] = {
    {"unexpected_fail", part_unexpected_fail},
    {"software_unexpected", part_software_unexpected},
    {"software_append", part_software_append},
    {NULL, NULL}
};

CASSINI_SUITE("cassini_entry", parts)
