/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_le.c - portal entries: their lists, their states.
 */
#include "cassini_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Number of drops that fits always. */
#define CASSINI_DROPS_ANY ((1u << 24) - 1)


void cassini_pte_post(const cassini_pte_obj_t *pte, cassini_ev_tgt_t *event,
                      int type, int rc)
{
    event->pte  = pte->pub.ptn;
    event->size = CASSINI_EV_64B;
    event->type = type;
    event->rc   = rc;
    if (pte->eqn != 0) {
        cassini_eq_post(pte->eqn, event);
    }
}

static void cassini_pte_post_state(const cassini_pte_obj_t *pte, int why,
                                   int by_nic, int rc)
{
    cassini_state_bits_t bits = {.bits = 0};
    cassini_ev_tgt_t event;

    bits.f.state  = pte->state;
    bits.f.why    = why;
    bits.f.by_nic = by_nic;
    memset(&event, 0, sizeof(event));
    event.initiator = bits.bits;
    cassini_pte_post(pte, &event, CASSINI_EV_STATE_CHANGE, rc);
}

void cassini_pte_change(cassini_pte_obj_t *pte, int state, int why)
{
    cassini_trace("portal entry %u: state %d to %d, reason %d", pte->pub.ptn,
                  pte->state, state, why);
    pte->state = state;
    pte->drops = 0;
    cassini_pte_post_state(pte, why, 1, CASSINI_RC_OK);
}

void cassini_pte_rendezvous(cassini_pte_obj_t *pte, const cassini_tgt_cmd_t *le,
                            const cassini_ev_tgt_t *event,
                            const cassini_place_t *place)
{
    unsigned pid           = event->initiator >> (32 - CASSINI_PID_BITS);
    uint64_t fits          = event->rlength;
    cassini_ev_tgt_t copy  = *event;
    cassini_rdzv_bits_t bits;
    cassini_rdzv_user_t user;
    cassini_rdzv_get_t get;

    bits.bits        = 0;
    bits.f.rdzv_id   = event->rdzv_id;
    bits.f.user_bits = event->match_bits >> 48;
    copy.match_bits  = bits.bits;
    /* The address of the source: number of the process and portal index */
    copy.initiator = (CASSINI_NID << 12) | pid |
                     ((CASSINI_RDZV_INDEX >> CASSINI_INDEX_BITS)
                      << CASSINI_PID_BITS);
    copy.buffer_id  = le->buffer_id;
    copy.list       = CASSINI_PRIORITY;
    copy.start      = place->start + event->length;
    copy.offset     = event->offset + event->length;
    copy.get_issued = cassini_settings.rdzv_get &&
                      (cassini_temper_draw(4) != 1);
    cassini_pte_post(pte, &copy, CASSINI_EV_RENDEZVOUS, CASSINI_RC_OK);
    if (!copy.get_issued) {
        return;
    }
    if (fits > place->room) {
        fits = place->room;
    }
    user.bits        = 0;
    user.f.nid       = CASSINI_NID;
    user.f.pid       = pid;
    user.f.pte       = pte->pub.ptn;
    user.f.rdzv_id   = event->rdzv_id;
    user.f.buffer_id = le->buffer_id;
    memset(&get, 0, sizeof(get));
    get.vni    = event->vni;
    get.nid    = CASSINI_NID;
    get.pid    = pid;
    get.bits   = bits.bits;
    get.offset = copy.offset;
    get.local  = copy.start;
    get.length = (fits > event->length) ? (uint32_t)(fits - event->length) : 0;
    get.lac    = le->lac;
    get.eqn    = pte->eqn;
    get.user   = user.bits;
    cassini_tx_rdzv_get(&get);
}

/* An initiator: number of the process, and NIC or rank. Each may be any. */
static int cassini_le_admits(uint32_t match_id, uint32_t initiator)
{
    uint32_t ranks = (1u << (32 - CASSINI_PID_BITS)) - 1;
    uint32_t same  = match_id ^ initiator;

    return (((match_id | ranks) == CASSINI_MATCH_ANY) || !(same & ~ranks)) &&
           (((match_id & ranks) == ranks) || !(same & ranks));
}

int cassini_le_matches(const cassini_pte_obj_t *pte,
                       const cassini_tgt_cmd_t *le, uint64_t bits,
                       uint32_t initiator, uint32_t length)
{
    if (!pte->opts.matching) {
        return 1;
    }
    return (((bits ^ le->match_bits) & ~le->ignore_bits) == 0) &&
           cassini_le_admits(le->match_id, initiator) &&
           (!le->no_truncate || (length <= le->length));
}

void cassini_le_remove(cassini_pte_obj_t *pte, int list, cassini_le_t *le)
{
    cassini_le_t **place;

    for (place = &pte->lists[list]; *place != le; place = &(*place)->next) {
    }
    *place = le->next;
    if (le->next == NULL) {
        pte->ends[list] = place;
    }
    free(le);
    --pte->les;
    cassini_dir_give(pte->lni->svc, CASSINI_RSRC_LE, 1);
}

static void cassini_le_drop(cassini_pte_obj_t *pte,
                            cassini_unexpected_t **place)
{
    cassini_unexpected_t *kept = *place;

    *place = kept->next;
    if (kept->next == NULL) {
        pte->unexpected_end = place;
    }
    free(kept);
    --pte->les;
    cassini_dir_give(pte->lni->svc, CASSINI_RSRC_LE, 1);
}

void cassini_le_clear(cassini_pte_obj_t *pte)
{
    unsigned i;

    for (i = 0; i < 3; ++i) {
        while (pte->lists[i] != NULL) {
            cassini_le_remove(pte, (int)i, pte->lists[i]);
        }
    }
    while (pte->unexpected != NULL) {
        cassini_le_drop(pte, &pte->unexpected);
    }
}

static void cassini_le_answer(const cassini_pte_obj_t *pte,
                              const cassini_tgt_cmd_t *cmd, int type, int rc)
{
    cassini_ev_tgt_t event;

    memset(&event, 0, sizeof(event));
    event.buffer_id = cmd->buffer_id;
    event.list      = cmd->list;
    cassini_pte_post(pte, &event, type, rc);
}

/* First unexpected message from *place on that a command takes. */
static cassini_unexpected_t **cassini_le_find(const cassini_pte_obj_t *pte,
                                              const cassini_tgt_cmd_t *cmd,
                                              cassini_unexpected_t **place)
{
    const cassini_ev_tgt_t *event;

    for (; *place != NULL; place = &(*place)->next) {
        event = &(*place)->event;
        if (cassini_le_matches(pte, cmd, event->match_bits, event->initiator,
                               event->rlength)) {
            return place;
        }
    }
    return NULL;
}

/* A message that came before its entry: the entry takes it. Whether that uses
 * the entry up. */
static int cassini_le_take(cassini_pte_obj_t *pte, cassini_le_t *le,
                           cassini_unexpected_t **place)
{
    const cassini_tgt_cmd_t *cmd = &le->cmd;
    cassini_ev_tgt_t event       = (*place)->event;
    cassini_place_t where        = {.start = cmd->start + le->used,
                                    .room  = cmd->length - le->used};
    cassini_ev_tgt_t overflow;
    int unlinked;

    if (cmd->manage_local) {
        le->used += (event.rlength < where.room) ? event.rlength : where.room;
    }
    unlinked = cmd->use_once ||
               (cmd->manage_local && (cmd->min_free != 0) &&
                (cmd->length - le->used < cmd->min_free));
    cassini_le_drop(pte, place);
    overflow           = event;
    overflow.buffer_id = cmd->buffer_id;
    overflow.list      = CASSINI_PRIORITY;
    overflow.unlinked  = unlinked;
    cassini_pte_post(pte, &overflow, CASSINI_EV_PUT_OVERFLOW + event.type,
                     CASSINI_RC_OK);
    if (event.rdzv) {
        cassini_pte_rendezvous(pte, cmd, &event, &where);
    }
    return unlinked;
}

static void cassini_le_append_fails(cassini_pte_obj_t *pte,
                                    const cassini_tgt_cmd_t *cmd)
{
    int rc = CASSINI_RC_NO_SPACE;

    if (cmd->list == CASSINI_PRIORITY) {
        pte->append_failed = 1;
        if (pte->opts.software && (pte->state == CASSINI_PTE_ENABLED)) {
            cassini_pte_change(pte, CASSINI_PTE_SOFTWARE,
                               CASSINI_WHY_SW_APPEND_FAIL);
        }
        if (pte->state == CASSINI_PTE_SOFTWARE) {
            rc = CASSINI_RC_PTE_SOFTWARE;
        }
    }
    cassini_le_answer(pte, cmd, CASSINI_EV_LINK, rc);
}

static void cassini_le_append(cassini_pte_obj_t *pte,
                              const cassini_tgt_cmd_t *cmd)
{
    cassini_unexpected_t **place = &pte->unexpected;
    cassini_le_t *le;

    if (cmd->restart_seq) {
        pte->append_failed = 0;
    }
    if ((cmd->list == CASSINI_PRIORITY) &&
        (pte->append_failed || (pte->state == CASSINI_PTE_SOFTWARE))) {
        cassini_le_append_fails(pte, cmd);
        return;
    }
    le = calloc(1, sizeof(*le));
    if ((le == NULL) ||
        (cassini_dir_take(pte->lni->svc, CASSINI_RSRC_LE) != 0)) {
        free(le);
        cassini_le_append_fails(pte, cmd);
        return;
    }
    le->cmd               = *cmd;
    *pte->ends[cmd->list] = le;
    pte->ends[cmd->list]  = &le->next;
    ++pte->les;
    while ((cmd->list == CASSINI_PRIORITY) &&
           ((place = cassini_le_find(pte, cmd, place)) != NULL)) {
        if (cassini_le_take(pte, le, place)) {
            cassini_le_remove(pte, CASSINI_PRIORITY, le);
            return;
        }
    }
    if (!cmd->no_link) {
        cassini_le_answer(pte, cmd, CASSINI_EV_LINK, CASSINI_RC_OK);
    }
}

static void cassini_le_search(cassini_pte_obj_t *pte,
                              const cassini_tgt_cmd_t *cmd, int remove)
{
    cassini_unexpected_t **place = &pte->unexpected;
    cassini_ev_tgt_t event;

    while ((place = cassini_le_find(pte, cmd, place)) != NULL) {
        event           = (*place)->event;
        event.buffer_id = cmd->buffer_id;
        event.list      = CASSINI_UNEXPECTED;
        if (remove) {
            cassini_le_drop(pte, place);
        } else {
            place = &(*place)->next;
        }
        cassini_pte_post(pte, &event,
                         remove ? CASSINI_EV_PUT_OVERFLOW + event.type :
                                  CASSINI_EV_SEARCH, CASSINI_RC_OK);
        if (cmd->use_once) {
            return;
        }
    }
    cassini_le_answer(pte, cmd, CASSINI_EV_SEARCH, CASSINI_RC_NO_MATCH);
}

static void cassini_le_unlink(cassini_pte_obj_t *pte,
                              const cassini_tgt_cmd_t *cmd)
{
    cassini_le_t *le;

    for (le = pte->lists[cmd->list]; le != NULL; le = le->next) {
        if (le->cmd.buffer_id == cmd->buffer_id) {
            cassini_le_remove(pte, cmd->list, le);
            cassini_le_answer(pte, cmd, CASSINI_EV_UNLINK, CASSINI_RC_OK);
            return;
        }
    }
    cassini_le_answer(pte, cmd, CASSINI_EV_UNLINK, CASSINI_RC_ENTRY_NOT_FOUND);
}

static void cassini_le_set_state(cassini_pte_obj_t *pte,
                                 const cassini_setstate_t *cmd)
{
    if ((pte->state == CASSINI_PTE_DISABLED) &&
        (cmd->state != CASSINI_PTE_DISABLED) &&
        (cmd->drops != CASSINI_DROPS_ANY) && (cmd->drops != pte->drops)) {
        cassini_pte_post_state(pte, 0, 0, CASSINI_RC_NO_MATCH);
        return;
    }
    pte->state = cmd->state;
    pte->drops = 0;
    cassini_pte_post_state(pte, 0, 0, CASSINI_RC_OK);
}

static cassini_pte_obj_t *cassini_le_pte(unsigned ptn)
{
    return (ptn < CASSINI_NUM_PTES) ? cassini_nic.ptes[ptn] : NULL;
}

int cassini_le_execute(const void *raw)
{
    const cassini_tgt_cmd_t *cmd  = raw;
    const cassini_setstate_t *set = raw;
    cassini_pte_obj_t *pte;

    pte = cassini_le_pte((cmd->op == CASSINI_TGT_SETSTATE) ? set->pte :
                                                             cmd->pte);
    if (pte == NULL) {
        return CASSINI_RC_CMD_INVALID_ARG;
    }
    switch (cmd->op) {
    case CASSINI_TGT_APPEND:
        if (cmd->list > CASSINI_REQUEST) {
            return CASSINI_RC_CMD_INVALID_ARG;
        }
        cassini_le_append(pte, cmd);
        break;
    case CASSINI_TGT_SEARCH:
    case CASSINI_TGT_SEARCH_DELETE:
        cassini_le_search(pte, cmd, cmd->op == CASSINI_TGT_SEARCH_DELETE);
        break;
    case CASSINI_TGT_UNLINK:
        if (cmd->list > CASSINI_REQUEST) {
            return CASSINI_RC_CMD_INVALID_ARG;
        }
        cassini_le_unlink(pte, cmd);
        break;
    case CASSINI_TGT_SETSTATE:
        cassini_le_set_state(pte, set);
        break;
    default:
        return CASSINI_RC_ILLEGAL_OP;
    }
    return CASSINI_RC_OK;
}

int cxil_alloc_pte(cassini_lni_t *lni, cassini_eq_t *eq,
                   cassini_pte_opts_t *opts, cassini_pte_t **pte_p)
{
    cassini_lni_obj_t *owner = (cassini_lni_obj_t*)lni;
    cassini_pte_obj_t *pte;
    int i, ret;

    pte = calloc(1, sizeof(*pte));
    if (pte == NULL) {
        return -ENOMEM;
    }
    pte->lni   = owner;
    pte->opts  = *opts;
    pte->eqn   = (eq == NULL) ? 0 : eq->eqn;
    pte->state = CASSINI_PTE_DISABLED;
    for (i = 0; i < 3; ++i) {
        pte->ends[i] = &pte->lists[i];
    }
    pte->unexpected_end = &pte->unexpected;
    cassini_nic_lock();
    ret = cassini_dir_take(owner->svc, CASSINI_RSRC_PTE);
    if (ret != 0) {
        cassini_nic_unlock();
        free(pte);
        return ret;
    }
    do {
        cassini_nic.next_pte = cassini_nic.next_pte % (CASSINI_NUM_PTES - 1) +
                               1;
    } while (cassini_nic.ptes[cassini_nic.next_pte] != NULL);
    pte->epoch                     = cassini_nic.epoch;
    pte->pub.ptn                   = cassini_nic.next_pte;
    cassini_nic.ptes[pte->pub.ptn] = pte;
    ++cassini_nic.open[CASSINI_OPEN_PTE];
    cassini_nic_unlock();
    *pte_p = &pte->pub;
    return 0;
}

int cxil_destroy_pte(cassini_pte_t *pub)
{
    cassini_pte_obj_t *pte = (cassini_pte_obj_t*)pub;

    if (!cassini_is_mine(pte)) {
        return 0;
    }
    cassini_nic_lock();
    cassini_temper_progress(1);
    cassini_nic.ptes[pte->pub.ptn] = NULL;
    cassini_le_clear(pte);
    cassini_dir_give(pte->lni->svc, CASSINI_RSRC_PTE, 1);
    --cassini_nic.open[CASSINI_OPEN_PTE];
    cassini_nic_unlock();
    free(pte);
    return 0;
}

int cxil_map_pte(cassini_pte_t *pub, cassini_domain_t *domain, unsigned index,
                 bool multicast, cassini_pte_map_t **map_p)
{
    struct cassini_pte_map *map;

    if (multicast) {
        return -EOPNOTSUPP;
    }
    map = calloc(1, sizeof(*map));
    if (map == NULL) {
        return -ENOMEM;
    }
    cassini_nic_lock();
    map->epoch = cassini_nic.epoch;
    map->vni   = domain->vni;
    map->pid   = domain->pid;
    map->index = index;
    map->pte   = (cassini_pte_obj_t*)pub;
    for (map->next = cassini_nic.maps; map->next != NULL;
         map->next = map->next->next) {
        if ((map->next->vni == map->vni) && (map->next->pid == map->pid) &&
            (map->next->index == index)) {
            cassini_nic_unlock();
            free(map);
            return -EEXIST;
        }
    }
    map->next        = cassini_nic.maps;
    cassini_nic.maps = map;
    ++cassini_nic.open[CASSINI_OPEN_MAP];
    cassini_nic_unlock();
    *map_p = map;
    return 0;
}

int cxil_unmap_pte(cassini_pte_map_t *map)
{
    struct cassini_pte_map **place;

    if (!cassini_is_mine(map)) {
        return 0;
    }
    cassini_nic_lock();
    for (place = &cassini_nic.maps; *place != NULL; place = &(*place)->next) {
        if (*place == map) {
            *place = map->next;
            --cassini_nic.open[CASSINI_OPEN_MAP];
            break;
        }
    }
    cassini_nic_unlock();
    free(map);
    return 0;
}

int cxil_invalidate_pte_le(cassini_pte_t *pte, unsigned buffer_id,
                           unsigned list)
{
    (void)pte;
    (void)buffer_id;
    (void)list;
    /* Nothing is in flight but what was put off */
    cassini_nic_lock();
    cassini_temper_progress(1);
    cassini_nic_unlock();
    return 0;
}

int cxil_pte_status(cassini_pte_t *pub, cassini_pte_status_t *status)
{
    cassini_pte_obj_t *pte = (cassini_pte_obj_t*)pub;
    const cassini_unexpected_t *kept;
    unsigned count = 0;

    if (!cassini_is_mine(pte)) {
        return -EINVAL;
    }
    cassini_nic_lock();
    for (kept = pte->unexpected; kept != NULL; kept = kept->next) {
        if ((status->offsets != NULL) && (count < status->count)) {
            status->offsets[count] = kept->offset;
        }
        ++count;
    }
    status->count         = (uint16_t)count;
    status->drops         = pte->drops;
    status->state         = (uint8_t)pte->state;
    status->les_allocated = (uint16_t)pte->les;
    status->les_max       = (uint16_t)cassini_svc_limit(pte->lni->svc,
                                                        CASSINI_RSRC_LE);
    status->les_reserved  = status->les_max;
    cassini_nic_unlock();
    return 0;
}

int cxil_pte_transition_sm(cassini_pte_t *pub, unsigned drops)
{
    cassini_pte_obj_t *pte = (cassini_pte_obj_t*)pub;
    int ret                = 0;

    cassini_nic_lock();
    if (pte->state != CASSINI_PTE_DISABLED) {
        ret = -EINVAL;
    } else if ((pte->drops != drops) && (drops != CASSINI_DROPS_ANY)) {
        ret = -EAGAIN;
    } else {
        pte->state = CASSINI_PTE_SOFTWARE;
        pte->drops = 0;
    }
    cassini_nic_unlock();
    return ret;
}
