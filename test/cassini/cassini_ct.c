/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_ct.c - counters and triggered operations.
 *
 * A trigger is armed with its counter until the counter reaches the threshold;
 * then it is ripe, and carried out soon. Until then it takes an entry (TLE) of
 * the service's pool, which all processes share. Without a free one the queue
 * waits at the command.
 */
#include "cassini_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static cassini_trig_t *cassini_ripe;


static cassini_ct_obj_t *cassini_ct_at(unsigned ctn)
{
    return (ctn < CASSINI_NUM_CTS) ? cassini_nic.cts[ctn] : NULL;
}

void cassini_ct_write_back(const cassini_ct_obj_t *ct)
{
    cassini_ct_back_t back;

    memset(&back, 0, sizeof(back));
    back.success = ct->success;
    back.failure = ct->failure;
    back.valid   = 1;
    if (ct->pub.back != NULL) {
        cassini_trap_copy(ct->pub.back, &back, sizeof(back));
    }
}

/* Move what is ripe to the end of the list of all that is. */
static void cassini_ct_check(cassini_ct_obj_t *ct)
{
    cassini_trig_t **end;
    cassini_trig_t *trig;

    for (end = &cassini_ripe; *end != NULL; end = &(*end)->next) {
    }
    while (((trig = ct->trigs) != NULL) && (trig->threshold <= ct->success)) {
        ct->trigs  = trig->next;
        trig->next = NULL;
        *end       = trig;
        end        = &trig->next;
    }
}

void cassini_ct_add(unsigned ctn, uint64_t success, unsigned failure)
{
    cassini_ct_obj_t *ct = cassini_ct_at(ctn);

    if (ct == NULL) {
        return;
    }
    ct->success = (ct->success + success) & CASSINI_SUCCESS_MASK;
    if (failure != 0) {
        ct->failure += failure;
        if (ct->failure > CASSINI_FAILURE_MAX) {
            ct->failure = CASSINI_FAILURE_MAX;
        }
        cassini_ct_write_back(ct);
    }
    cassini_ct_check(ct);
}

static void cassini_ct_set(const cassini_ct_cmd_t *cmd)
{
    cassini_ct_obj_t *ct = cassini_ct_at(cmd->ct);

    if (ct == NULL) {
        return;
    }
    if (cmd->set_success) {
        ct->success = cmd->success;
    }
    if (cmd->set_failure) {
        ct->failure = cmd->failure;
        cassini_ct_write_back(ct);
    }
    cassini_ct_check(ct);
}

unsigned cassini_ct_take_stores(void)
{
    unsigned done = 0;
    cassini_trapped_t trapped;
    cassini_ct_obj_t *ct;
    unsigned i;

    for (i = 1; i < CASSINI_NUM_CTS; ++i) {
        ct = cassini_nic.cts[i];
        if ((ct == NULL) || !cassini_trap_take(i, &trapped)) {
            continue;
        }
        if (trapped.reset) {
            ct->success = 0;
        }
        if (trapped.reset_failure) {
            ct->failure = 0;
        }
        if (trapped.reset || trapped.reset_failure) {
            cassini_ct_write_back(ct);
        }
        cassini_ct_add(i, trapped.success, (unsigned)trapped.failure);
        ++done;
    }
    return done;
}

static void cassini_ct_cancel(unsigned ctn)
{
    cassini_ct_obj_t *ct = cassini_ct_at(ctn);
    cassini_trig_t *trig;

    while ((ct != NULL) && ((trig = ct->trigs) != NULL)) {
        ct->trigs = trig->next;
        cassini_dir_give(trig->svc, CASSINI_RSRC_TLE, 1);
        --cassini_nic.open[CASSINI_OPEN_TRIGGER];
        free(trig);
    }
}

static int cassini_ct_arm(cassini_queue_t *queue, const cassini_ct_cmd_t *cmd)
{
    cassini_ct_obj_t *ct = cassini_ct_at(cmd->trig_ct);
    cassini_trig_t **place;
    cassini_trig_t *trig;

    if (ct == NULL) {
        return (cassini_nic.closed[cmd->trig_ct] != NULL) ?
               CASSINI_RC_OK : CASSINI_RC_CMD_INVALID_ARG;
    }
    if (cassini_dir_take(queue->lni->svc, CASSINI_RSRC_TLE) != 0) {
        return CASSINI_RC_NONE;
    }
    trig = calloc(1, sizeof(*trig));
    if (trig == NULL) {
        cassini_dir_give(queue->lni->svc, CASSINI_RSRC_TLE, 1);
        return CASSINI_RC_NONE;
    }
    trig->threshold = cmd->threshold;
    trig->vni       = (uint16_t)queue->lni->cps[queue->lcid]->pub.vni;
    trig->svc       = queue->lni->svc;
    trig->queue     = queue;
    memcpy(trig->cmd, cmd, 32u << cmd->size);
    for (place = &ct->trigs;
         (*place != NULL) && ((*place)->threshold <= trig->threshold);
         place = &(*place)->next) {
    }
    trig->next = *place;
    *place     = trig;
    ++cassini_nic.open[CASSINI_OPEN_TRIGGER];
    cassini_ct_check(ct);
    return CASSINI_RC_OK;
}

int cassini_ct_execute(cassini_queue_t *queue, const void *raw)
{
    const cassini_ct_cmd_t *cmd = raw;
    cassini_ct_obj_t *ct;

    switch (cmd->op) {
    case CASSINI_CT_NOOP:
        break;
    case CASSINI_CT_SET:
        cassini_ct_set(cmd);
        break;
    case CASSINI_CT_GET:
        ct = cassini_ct_at(cmd->ct);
        if (ct != NULL) {
            cassini_ct_write_back(ct);
        }
        break;
    case CASSINI_CT_INC:
        cassini_ct_add(cmd->ct, cmd->success, cmd->failure);
        break;
    case CASSINI_CT_CANCEL:
        cassini_ct_cancel(cmd->ct);
        break;
    case CASSINI_CT_TRIG_DMA:
        if (cmd->size != CASSINI_128B) {
            return CASSINI_RC_CMD_INVALID_ARG;
        }
        return cassini_ct_arm(queue, cmd);
    case CASSINI_CT_TRIG_SET:
    case CASSINI_CT_TRIG_INC:
    case CASSINI_CT_TRIG_EVENT:
        if (cmd->size != CASSINI_64B) {
            return CASSINI_RC_CMD_INVALID_ARG;
        }
        return cassini_ct_arm(queue, cmd);
    default:
        return CASSINI_RC_ILLEGAL_OP;
    }
    return CASSINI_RC_OK;
}

static void cassini_ct_event(const cassini_ct_cmd_t *cmd)
{
    const cassini_ct_obj_t *ct = cassini_ct_at(cmd->trig_ct);
    cassini_ev_trig_t event;

    if (cmd->eq == 0) {
        if (ct != NULL) {
            cassini_ct_write_back(ct);
        }
        return;
    }
    memset(&event, 0, sizeof(event));
    event.threshold = cmd->threshold;
    event.ct        = cmd->trig_ct;
    event.size      = CASSINI_EV_16B;
    event.type      = CASSINI_EV_TRIGGERED_OP;
    event.rc        = CASSINI_RC_OK;
    cassini_eq_post(cmd->eq, &event);
}

static void cassini_ct_carry_out(cassini_trig_t *trig)
{
    const cassini_ct_cmd_t *cmd = (const cassini_ct_cmd_t*)trig->cmd;

    cassini_trace("counter %u: operation %u of threshold %llu", cmd->trig_ct,
                  cmd->op, (unsigned long long)trig->threshold);
    switch (cmd->op) {
    case CASSINI_CT_TRIG_DMA:
        cassini_tx_dma(trig->queue, cmd + 1, trig->vni);
        break;
    case CASSINI_CT_TRIG_SET:
        cassini_ct_set(cmd);
        break;
    case CASSINI_CT_TRIG_INC:
        cassini_ct_add(cmd->ct, cmd->success, cmd->failure);
        break;
    default:
        cassini_ct_event(cmd);
        break;
    }
}

unsigned cassini_ct_fire(void)
{
    unsigned done = 0;
    cassini_trig_t **place;
    cassini_trig_t *trig;
    unsigned count, skip;

    while (cassini_ripe != NULL) {
        count = 0;
        for (trig = cassini_ripe; trig != NULL; trig = trig->next) {
            ++count;
        }
        skip = cassini_temper_draw(count);
        for (place = &cassini_ripe; skip > 0; --skip) {
            place = &(*place)->next;
        }
        trig   = *place;
        *place = trig->next;
        cassini_ct_carry_out(trig);
        cassini_dir_give(trig->svc, CASSINI_RSRC_TLE, 1);
        --cassini_nic.open[CASSINI_OPEN_TRIGGER];
        free(trig);
        ++done;
    }
    return done;
}

int cassini_ct_has_ripe(void)
{
    return cassini_ripe != NULL;
}

void cassini_ct_forget(void)
{
    cassini_ripe = NULL;
}

void cassini_ct_forget_queue(const cassini_queue_t *queue)
{
    cassini_trig_t *trig;
    unsigned i;

    for (i = 0; i < CASSINI_NUM_CTS; ++i) {
        trig = (cassini_nic.cts[i] != NULL) ? cassini_nic.cts[i]->trigs : NULL;
        for (; trig != NULL; trig = trig->next) {
            trig->queue = (trig->queue == queue) ? NULL : trig->queue;
        }
    }
    for (trig = cassini_ripe; trig != NULL; trig = trig->next) {
        trig->queue = (trig->queue == queue) ? NULL : trig->queue;
    }
}

int cxil_alloc_ct(cassini_lni_t *lni, void *back, cassini_ct_t **ct_p)
{
    cassini_lni_obj_t *owner = (cassini_lni_obj_t*)lni;
    cassini_ct_obj_t *ct;
    unsigned i;
    int ret;

    ct = calloc(1, sizeof(*ct));
    if (ct == NULL) {
        return -ENOMEM;
    }
    cassini_nic_lock();
    ret = cassini_dir_take(owner->svc, CASSINI_RSRC_CT);
    for (i = 1; (ret == 0) && (i < CASSINI_NUM_CTS); ++i) {
        if ((cassini_nic.cts[i] == NULL) && (cassini_nic.closed[i] == NULL)) {
            break;
        }
    }
    if ((ret == 0) && (i == CASSINI_NUM_CTS)) {
        cassini_dir_give(owner->svc, CASSINI_RSRC_CT, 1);
        ret = -ENOSPC;
    }
    if (ret != 0) {
        cassini_nic_unlock();
        free(ct);
        return ret;
    }
    ct->epoch          = cassini_nic.epoch;
    ct->lni            = owner;
    ct->pub.page       = cassini_trap_counter(i);
    ct->pub.ctn        = i;
    ct->pub.back       = back;
    cassini_nic.cts[i] = ct;
    ++cassini_nic.open[CASSINI_OPEN_CT];
    cassini_nic_unlock();
    *ct_p = &ct->pub;
    return 0;
}

int cxil_ct_wb_update(cassini_ct_t *pub, void *back)
{
    cassini_nic_lock();
    pub->back = back;
    cassini_nic_unlock();
    return 0;
}

/* As with the driver, the counter is allocated until its interface closes. */
int cxil_destroy_ct(cassini_ct_t *pub)
{
    cassini_ct_obj_t *ct = (cassini_ct_obj_t*)pub;

    if (!cassini_is_mine(ct)) {
        return 0;
    }
    cassini_nic_lock();
    cassini_temper_progress(1);
    cassini_nic_step();
    cassini_ct_cancel(ct->pub.ctn);
    cassini_tx_forget_ct(ct->pub.ctn);
    cassini_nic.cts[ct->pub.ctn]    = NULL;
    cassini_nic.closed[ct->pub.ctn] = ct->lni;
    ++ct->lni->closed_cts;
    --cassini_nic.open[CASSINI_OPEN_CT];
    cassini_nic_unlock();
    free(ct);
    return 0;
}
