/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_tgt.c - the target: requests find an entry, and are carried out.
 */
#include "cassini_parts.h"

#include <stdlib.h>
#include <string.h>


int cassini_md_covers(uint64_t address, uint64_t length, unsigned lac,
                      unsigned access)
{
    const cassini_md_obj_t *md;

    if (length == 0) {
        return 1;
    }
    for (md = cassini_nic.mds; md != NULL; md = md->next) {
        if ((md->pub.lac == lac) && ((md->flags & access) == access) &&
            (address >= md->pub.iova) &&
            (address + length <= md->pub.iova + md->pub.length)) {
            return 1;
        }
    }
    return 0;
}

static void cassini_tgt_respond(const cassini_packet_t *packet,
                                const cassini_response_t *response,
                                const void *data, size_t length)
{
    cassini_packet_t *answer = cassini_net_new(CASSINI_RESPONSE, length);

    if (answer == NULL) {
        return;
    }
    answer->to       = packet->from;
    answer->to_gen   = packet->from_gen;
    answer->op       = packet->op;
    answer->op_seq   = packet->op_seq;
    answer->response = *response;
    if (length != 0) {
        memcpy(cassini_packet_data(answer), data, length);
    }
    cassini_net_send(answer);
}

static void cassini_tgt_refuse(const cassini_packet_t *packet, int rc)
{
    cassini_response_t response = {.rc = (uint8_t)rc};

    cassini_tgt_respond(packet, &response, NULL, 0);
}

static cassini_pte_obj_t *cassini_tgt_pte(const cassini_request_t *request)
{
    const struct cassini_pte_map *map;

    for (map = cassini_nic.maps; map != NULL; map = map->next) {
        if ((map->vni == request->vni) && (map->pid == request->pid) &&
            (map->index == request->index)) {
            return map->pte;
        }
    }
    return NULL;
}

static void cassini_tgt_describe(const cassini_request_t *request,
                                 cassini_ev_tgt_t *event)
{
    memset(event, 0, sizeof(*event));
    event->header_data = request->header_data;
    event->initiator   = request->initiator;
    event->rdzv        = request->rdzv && (request->kind == CASSINI_EV_PUT);
    event->match_bits  = request->match_bits;
    event->vni         = request->vni;
    event->rlength     = request->length;
    event->offset      = request->offset;
    event->amo_type    = request->amo_type;
    event->amo_op      = request->amo_op;
    event->cswap       = request->cswap;
    event->rdzv_id     = request->rdzv_id;
}

static int cassini_tgt_moves_in(int kind)
{
    return kind != CASSINI_EV_GET;
}

static int cassini_tgt_moves_out(int kind)
{
    return (kind == CASSINI_EV_GET) || (kind == CASSINI_EV_FETCH_ATOMIC);
}

/* A message that the portal entry cannot take. */
static int cassini_tgt_overrun(cassini_pte_obj_t *pte,
                               const cassini_request_t *request, int why)
{
    cassini_ev_tgt_t event;

    if (pte->opts.flow_control) {
        /* The message that stops the entry is not counted as dropped */
        cassini_pte_change(pte, CASSINI_PTE_DISABLED, why);
        return CASSINI_RC_PT_DISABLED;
    }
    if (why == CASSINI_WHY_NO_MATCH) { /* Lost where there is no room */
        cassini_tgt_describe(request, &event);
        cassini_pte_post(pte, &event, request->kind,
                         CASSINI_RC_ENTRY_NOT_FOUND);
    }
    return CASSINI_RC_ENTRY_NOT_FOUND;
}

static cassini_le_t *cassini_tgt_search(const cassini_pte_obj_t *pte, int list,
                                        const cassini_request_t *request)
{
    uint32_t length = request->length;
    cassini_le_t *le;

    /* Of what the receiver fetches, the rest has no place in the NIC's lists */
    if (request->rdzv && (request->kind == CASSINI_EV_PUT) &&
        (list != CASSINI_PRIORITY)) {
        length = request->eager;
    }
    for (le = pte->lists[list]; le != NULL; le = le->next) {
        if (cassini_le_matches(pte, &le->cmd, request->match_bits,
                               request->initiator, length)) {
            return le;
        }
    }
    return NULL;
}

/* Entry for a request; fills work->list. */
static cassini_le_t *cassini_tgt_match(const cassini_pte_obj_t *pte,
                                       const cassini_request_t *request,
                                       cassini_work_t *work)
{
    cassini_le_t *le;

    if (pte->state == CASSINI_PTE_SOFTWARE) {
        work->list = CASSINI_REQUEST;
        return cassini_tgt_search(pte, CASSINI_REQUEST, request);
    }
    work->list = CASSINI_PRIORITY;
    le         = cassini_tgt_search(pte, CASSINI_PRIORITY, request);
    if (le == NULL) {
        work->list = CASSINI_OVERFLOW;
        le         = cassini_tgt_search(pte, CASSINI_OVERFLOW, request);
    }
    return le;
}

/* Where in the entry: fills place, length. */
static int cassini_tgt_locate(const cassini_pte_obj_t *pte,
                              const cassini_le_t *le,
                              const cassini_request_t *request,
                              cassini_work_t *work)
{
    const cassini_tgt_cmd_t *cmd = &le->cmd;
    uint64_t offset = cmd->manage_local ? le->used : request->offset;
    uint32_t length = (request->rdzv && (request->kind == CASSINI_EV_PUT)) ?
                      request->eager : request->length;

    if ((cassini_tgt_moves_in(request->kind) && !cmd->op_put) ||
        (cassini_tgt_moves_out(request->kind) && !cmd->op_get)) {
        return CASSINI_RC_OP_VIOLATION;
    }
    if (offset > cmd->length) {
        if (!cmd->manage_local) {
            return CASSINI_RC_PERM_VIOLATION;
        }
        offset = cmd->length;
    }
    work->headers     = (work->list == CASSINI_REQUEST) ? CASSINI_WIRE_BYTES :
                                                          0;
    length           += work->headers;
    work->place.start = cmd->start + offset;
    work->place.room  = cmd->length - offset;
    if (length > work->place.room) {
        if (!pte->opts.matching || !cmd->manage_local) {
            return CASSINI_RC_NO_SPACE;
        }
        length = (uint32_t)work->place.room;
    }
    work->length = length;
    return cassini_md_covers(work->place.start, length, cmd->lac,
                             cassini_tgt_moves_in(request->kind) ?
                             CASSINI_MAP_WRITE : CASSINI_MAP_READ) ?
           CASSINI_RC_OK : CASSINI_RC_NO_TRANSLATION;
}

/* Keep that a message was not expected: 0, or -1 if there is no entry left. */
static int cassini_tgt_keep(cassini_pte_obj_t *pte, const cassini_work_t *work)
{
    const cassini_request_t *request = &work->packet->request;
    cassini_unexpected_t *kept;

    if (cassini_dir_take(pte->lni->svc, CASSINI_RSRC_LE) != 0) {
        return -1;
    }
    kept = calloc(1, sizeof(*kept));
    if (kept == NULL) {
        cassini_dir_give(pte->lni->svc, CASSINI_RSRC_LE, 1);
        return -1;
    }
    cassini_tgt_describe(request, &kept->event);
    kept->event.type     = request->kind;
    kept->event.length   = work->length;
    kept->event.start    = work->place.start;
    kept->offset         = request->offset;
    *pte->unexpected_end = kept;
    pte->unexpected_end  = &kept->next;
    ++pte->les;
    return 0;
}

/* Account for what a message takes of its entry, and unlink that. */
static void cassini_tgt_consume(cassini_pte_obj_t *pte, cassini_le_t *le,
                                cassini_work_t *work)
{
    const cassini_request_t *request = &work->packet->request;
    cassini_ev_tgt_t event;
    uint64_t take = work->length;

    if (le->cmd.manage_local) {
        if (request->rdzv && (work->list == CASSINI_PRIORITY)) {
            take = (request->length < work->place.room) ? request->length :
                                                          work->place.room;
        }
        le->used += take;
    }
    work->unlinked = le->cmd.use_once ||
                     (le->cmd.manage_local && (le->cmd.min_free != 0) &&
                      (le->cmd.length - le->used < le->cmd.min_free));
    if (!work->unlinked) {
        return;
    }
    if (!le->cmd.no_unlink) {
        memset(&event, 0, sizeof(event));
        event.buffer_id = le->cmd.buffer_id;
        event.list      = work->list;
        event.unlinked  = 1;
        cassini_pte_post(pte, &event, CASSINI_EV_UNLINK, CASSINI_RC_OK);
    }
    cassini_le_remove(pte, work->list, le);
}

static unsigned cassini_tgt_events(const cassini_pte_obj_t *pte,
                                   const cassini_le_t *le,
                                   const cassini_request_t *request)
{
    unsigned count = 0;

    if (!le->cmd.no_comm) {
        count = !le->cmd.no_success + pte->opts.match_event +
                (request->rdzv ? 2 : 0);
    }
    return count + !le->cmd.no_unlink;
}

static void cassini_tgt_report_match(const cassini_pte_obj_t *pte,
                                     const cassini_work_t *work)
{
    cassini_ev_tgt_t event;

    if (pte->opts.match_event && !work->le.no_comm) {
        cassini_tgt_describe(&work->packet->request, &event);
        event.buffer_id = work->le.buffer_id;
        event.list      = work->list;
        event.length    = work->length;
        event.start     = work->place.start;
        cassini_pte_post(pte, &event, CASSINI_EV_MATCH, CASSINI_RC_OK);
    }
}

/* Match a request: CASSINI_RC_OK with all of work filled in. */
static int cassini_tgt_accept(cassini_pte_obj_t *pte, cassini_work_t *work)
{
    const cassini_request_t *request = &work->packet->request;
    cassini_le_t *le;
    int rc;

    le = cassini_tgt_match(pte, request, work);
    if (le == NULL) {
        return cassini_tgt_overrun(pte, request,
                                   (pte->state == CASSINI_PTE_SOFTWARE) ?
                                   CASSINI_WHY_REQUEST_FULL :
                                   CASSINI_WHY_NO_MATCH);
    }
    if (!cassini_eq_has_room(pte->eqn, cassini_tgt_events(pte, le, request))) {
        return cassini_tgt_overrun(pte, request, CASSINI_WHY_EQ_FULL);
    }
    rc = cassini_tgt_locate(pte, le, request, work);
    if (rc != CASSINI_RC_OK) {
        /* No event, as with HPE's simulator of the NIC */
        if (le->cmd.ct_comm) {
            cassini_ct_add(le->cmd.ct, 0, 1);
        }
        return rc;
    }
    if ((work->list == CASSINI_OVERFLOW) && pte->opts.matching &&
        !le->cmd.no_header && (cassini_tgt_keep(pte, work) != 0)) {
        if (!pte->opts.software) {
            return cassini_tgt_overrun(pte, request,
                                       CASSINI_WHY_UNEXPECTED_FAIL);
        }
        cassini_pte_change(pte, CASSINI_PTE_SOFTWARE,
                           CASSINI_WHY_SW_UNEXPECTED_FAIL);
        return cassini_tgt_accept(pte, work);
    }
    work->le  = le->cmd;
    work->ptn = pte->pub.ptn;
    cassini_tgt_report_match(pte, work);
    cassini_tgt_consume(pte, le, work);
    return CASSINI_RC_OK;
}

/* The packet's headers, as far as software reads them. */
static int cassini_tgt_put_headers(const cassini_work_t *work)
{
    const cassini_request_t *request = &work->packet->request;
    uint8_t wire[CASSINI_WIRE_BYTES];
    int i;

    memset(wire, 0, sizeof(wire));
    wire[CASSINI_WIRE_VER]     = 0x45;
    wire[CASSINI_WIRE_VNI]     = (uint8_t)(request->vni >> 8);
    wire[CASSINI_WIRE_VNI + 1] = (uint8_t)request->vni;
    wire[CASSINI_WIRE_TYPE]    = 0x80;
    for (i = 0; i < 7; ++i) {
        wire[CASSINI_WIRE_OFFSET + i] =
                (uint8_t)(request->offset >> (8 * (6 - i)));
    }
    return cassini_trap_copy((void*)(uintptr_t)work->place.start, wire,
                             work->headers);
}

/* The data of a put. */
static int cassini_tgt_put(const cassini_work_t *work)
{
    const cassini_packet_t *packet = work->packet;
    uint32_t length                = work->length - work->headers;
    uint8_t *memory = (uint8_t*)(uintptr_t)work->place.start + work->headers;

    if ((work->headers != 0) && (cassini_tgt_put_headers(work) != 0)) {
        return -1;
    }
    return (packet->data >= length) ?
           cassini_trap_copy(memory, cassini_packet_data(packet), length) :
           cassini_net_read(packet->from, memory, packet->request.address,
                            length);
}

/* Move the data; what a small get brings goes to @a data. */
static int cassini_tgt_move(const cassini_work_t *work,
                            cassini_response_t *response, uint8_t *data)
{
    const cassini_packet_t *packet   = work->packet;
    const cassini_request_t *request = &packet->request;
    void *memory = (void*)(uintptr_t)work->place.start;
    int ret;

    switch (request->kind) {
    case CASSINI_EV_PUT:
        ret = cassini_tgt_put(work);
        break;
    case CASSINI_EV_GET:
        ret = (work->length <= CASSINI_INLINE) ?
              cassini_trap_copy(data, memory, work->length) :
              cassini_net_write(packet->from, memory, request->address,
                                work->length);
        break;
    default:
        return cassini_amo_execute(request, memory, response->fetched);
    }
    return (ret == 0) ? CASSINI_RC_OK : CASSINI_RC_NO_TRANSLATION;
}

static void cassini_tgt_report(cassini_pte_obj_t *pte,
                               const cassini_work_t *work, int rc)
{
    const cassini_request_t *request = &work->packet->request;
    const cassini_tgt_cmd_t *le      = &work->le;
    cassini_ev_tgt_t event;

    if (le->no_comm || ((rc == CASSINI_RC_OK) && le->no_success)) {
        return;
    }
    cassini_tgt_describe(request, &event);
    event.buffer_id = le->buffer_id;
    event.list      = work->list;
    event.unlinked  = work->unlinked;
    event.length    = work->length;
    event.start     = work->place.start;
    cassini_pte_post(pte, &event, request->kind, rc);
    if (event.rdzv && (rc == CASSINI_RC_OK) &&
        (work->list == CASSINI_PRIORITY)) {
        cassini_pte_rendezvous(pte, le, &event, &work->place);
    }
}

void cassini_tgt_carry_out(const cassini_work_t *work)
{
    cassini_pte_obj_t *pte      = cassini_nic.ptes[work->ptn];
    const cassini_tgt_cmd_t *le = &work->le;
    cassini_response_t response = {.list   = (uint8_t)work->list,
                                   .length = work->length - work->headers};
    uint8_t data[CASSINI_INLINE];
    size_t length = 0;

    response.rc = (uint8_t)cassini_tgt_move(work, &response, data);
    if (le->ct_comm && ((work->list != CASSINI_OVERFLOW) || le->ct_overflow)) {
        if (response.rc == CASSINI_RC_OK) {
            cassini_ct_add(le->ct, le->ct_bytes ? work->length : 1, 0);
        } else {
            cassini_ct_add(le->ct, 0, 1);
        }
    }
    if (pte != NULL) {
        cassini_tgt_report(pte, work, response.rc);
    }
    if ((work->packet->request.kind == CASSINI_EV_GET) &&
        (work->length <= CASSINI_INLINE) && (response.rc == CASSINI_RC_OK)) {
        length = work->length;
    }
    cassini_tgt_respond(work->packet, &response, data, length);
}

void cassini_tgt_request(const cassini_packet_t *packet)
{
    cassini_work_t work = {.packet = (cassini_packet_t*)packet};
    cassini_pte_obj_t *pte;
    int rc;

    pte = cassini_tgt_pte(&packet->request);
    if (pte == NULL) {
        cassini_tgt_refuse(packet, CASSINI_RC_PTE_NOT_FOUND);
        return;
    }
    if ((pte->state != CASSINI_PTE_ENABLED) &&
        (pte->state != CASSINI_PTE_SOFTWARE)) {
        ++pte->drops;
        cassini_tgt_refuse(packet, CASSINI_RC_PT_DISABLED);
        return;
    }
    cassini_nic.flushes    += packet->request.flush;
    cassini_nic.restricted += packet->request.restricted;
    rc = cassini_tgt_accept(pte, &work);
    cassini_trace("request %u from %u to index %u bits %llx: code %d list %d",
                  packet->request.kind, packet->from, packet->request.index,
                  (unsigned long long)packet->request.match_bits, rc,
                  work.list);
    if (rc != CASSINI_RC_OK) {
        cassini_tgt_refuse(packet, rc);
    } else if (!cassini_temper_put_off(&work)) {
        cassini_tgt_carry_out(&work);
    }
}
