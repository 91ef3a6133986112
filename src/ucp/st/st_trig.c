/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig.c - the trig lane: counters, regions and deferred work of one
 * operation. The protocol is described in st_trig.h.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig.h"
#include "st_lane.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_op.h"
#include "st_peer.h"
#include "st_worker.h"

#include <string.h>

/* A standard receive sends a clear-to-send, a ready one does not; a send always
 * puts its data. */
static int ucp_st_trig_has_put(const ucp_st_op_t *op)
{
    return (op->dir == UCP_ST_DIR_SEND) || (op->mode == UCP_ST_MODE_STANDARD);
}

static int ucp_st_trig_has_local_mem(const ucp_st_op_t *op)
{
    return (op->dir == UCP_ST_DIR_SEND) &&
           (op->worker->trig.attr.flags & UCT_TRIG_IFACE_FLAG_LOCAL_MEM);
}

/* Bytes that go over the network: empty sends write one, because a write of 0
 * bytes is not counted everywhere */
static size_t ucp_st_trig_wire_length(size_t length)
{
    return (length == 0) ? 1 : length;
}

/* The region that the peer writes: a send's clear-to-send word, counted by the
 * counter that starts the send; a receive's buffer, counted by D */
static ucs_status_t ucp_st_trig_region_reg(ucp_st_op_t *op,
                                           ucp_st_trig_region_t *region)
{
    ucp_st_trig_op_t *trig = &op->trig;
    uct_iface_h iface      = op->worker->trig.iface;
    void *address          = (void*)&trig->slot->pad;
    size_t length          = sizeof(trig->slot->pad);
    uct_trig_cntr_h cntr   = trig->start;
    ucs_status_t status;

    if (op->dir == UCP_ST_DIR_RECV) {
        /* An empty send writes a byte, which is not for the user's buffer */
        cntr = trig->data;
        if (op->msg_length > 0) {
            address = op->buffer;
            length  = op->length;
        }
    }
    status = uct_trig_mem_reg(iface, address, length, cntr, &trig->mem);
    if (status == UCS_OK) {
        region->address = (uintptr_t)address;
        uct_trig_mem_pack(trig->mem, region->rkey);
    }
    return status;
}

static ucs_status_t ucp_st_trig_local_reg(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = &op->trig;
    int empty              = (op->length == 0);

    trig->local = NULL;
    if (!ucp_st_trig_has_local_mem(op)) {
        return UCS_OK;
    }
    return uct_trig_mem_reg(op->worker->trig.iface,
                            empty ? (void*)&trig->slot->pad : op->buffer,
                            empty ? sizeof(trig->slot->pad) : op->length, NULL,
                            &trig->local);
}

static ucs_status_t ucp_st_trig_cntrs_create(ucp_st_op_t *op)
{
    uct_iface_h iface = op->worker->trig.iface;
    ucs_status_t status;

    status = uct_trig_cntr_create(iface, &op->trig.start);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_trig_cntr_create(iface, &op->trig.data);
    if (status != UCS_OK) {
        (void)uct_trig_cntr_destroy(op->trig.start);
    }
    return status;
}

static void ucp_st_trig_cntrs_destroy(ucp_st_op_t *op)
{
    (void)uct_trig_cntr_destroy(op->trig.data);
    (void)uct_trig_cntr_destroy(op->trig.start);
}

/* One entry of each kind, so that the next use can always be posted whatever
 * the other operations hold (protocol-rules, rule 6) */
static ucs_status_t ucp_st_trig_reserve(ucp_st_op_t *op)
{
    uct_iface_h iface = op->worker->trig.iface;
    ucs_status_t status;

    status = uct_trig_iface_reserve(iface, 1,
                                    &op->trig.resv[UCP_ST_TRIG_ENTRY_PUT]);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_trig_iface_reserve(iface, 1,
                                    &op->trig.resv[UCP_ST_TRIG_ENTRY_WORD]);
    if (status != UCS_OK) {
        (void)uct_trig_iface_unreserve(iface,
                                       &op->trig.resv[UCP_ST_TRIG_ENTRY_PUT]);
    }
    return status;
}

static void ucp_st_trig_unreserve(ucp_st_op_t *op)
{
    unsigned i;

    for (i = 0; i < UCP_ST_TRIG_ENTRY_LAST; ++i) {
        (void)uct_trig_iface_unreserve(op->worker->trig.iface,
                                       &op->trig.resv[i]);
    }
}

static ucs_status_t ucp_st_trig_offer(ucp_st_op_t *op, void *blob,
                                      size_t *length_p)
{
    ucp_st_trig_op_t *trig = &op->trig;
    ucs_status_t status;

    memset(trig, 0, sizeof(*trig));
    status = ucp_st_trig_slot_get(op->worker, &trig->slot, &trig->slot_rkey);
    if (status != UCS_OK) {
        goto err;
    }
    status = ucp_st_trig_cntrs_create(op);
    if (status != UCS_OK) {
        goto err_slot;
    }
    status = ucp_st_trig_reserve(op);
    if (status != UCS_OK) {
        goto err_cntrs;
    }
    status = ucp_st_trig_local_reg(op);
    if (status != UCS_OK) {
        goto err_resv;
    }
    status = ucp_st_trig_region_reg(op, blob);
    if (status != UCS_OK) {
        goto err_local;
    }
    uct_trig_cntr_doorbell(trig->start, &trig->doorbell);
    trig->active = 1;
    *length_p    = sizeof(ucp_st_trig_region_t);
    return UCS_OK;

err_local:
    if (trig->local != NULL) {
        (void)uct_trig_mem_dereg(trig->local);
    }
err_resv:
    ucp_st_trig_unreserve(op);
err_cntrs:
    ucp_st_trig_cntrs_destroy(op);
err_slot:
    ucp_st_trig_slot_put(op->worker, trig->slot);
err:
    return status;
}

static void ucp_st_trig_late_del(ucp_st_trig_op_t *trig)
{
    if (trig->is_late) {
        ucs_list_del(&trig->late_list);
        trig->is_late = 0;
    }
}

static void ucp_st_trig_release(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = &op->trig;

    if (!trig->active) {
        return;
    }
    ucp_st_trig_late_del(trig);
    if (trig->mem != NULL) {
        (void)uct_trig_mem_dereg(trig->mem);
    }
    if (trig->local != NULL) {
        (void)uct_trig_mem_dereg(trig->local);
    }
    ucp_st_trig_unreserve(op);
    ucp_st_trig_cntrs_destroy(op);
    ucp_st_trig_slot_put(op->worker, trig->slot);
    trig->active = 0;
}

static ucs_status_t ucp_st_trig_bind(ucp_st_op_t *op, const void *blob,
                                     size_t length)
{
    const ucp_st_trig_region_t *region = blob;

    if (length != sizeof(*region)) {
        return UCS_ERR_INVALID_PARAM;
    }
    op->trig.remote_address = region->address;
    return uct_trig_rkey_unpack(region->rkey, sizeof(region->rkey),
                                &op->trig.remote_rkey);
}

static uint64_t ucp_st_trig_uses_done(const ucp_st_op_t *op)
{
    uint64_t word;

    if (!op->trig.active) {
        return 0;
    }
    word = __atomic_load_n(&op->trig.slot->word, __ATOMIC_ACQUIRE);
    return (word < UCP_ST_TRIG_RELEASE) ? word : 0;
}

/* Count a finished entry; what hung on it may go on */
static void ucp_st_trig_entry_done(ucp_st_op_t *op, ucp_st_trig_entry_t entry,
                                   ucs_status_t status)
{
    ++op->trig.done[entry];
    if (status != UCS_OK) {
        ucp_st_op_fail(op, status);
    }
    ucp_st_op_reap(op);
}

/* The NIC says that the peer cannot be reached, not that this put is wrong */
static int ucp_st_trig_is_loss(ucs_status_t status)
{
    return (status == UCS_ERR_UNREACHABLE) ||
           (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_ENDPOINT_TIMEOUT);
}

static void ucp_st_trig_put_done(void *arg, ucs_status_t status)
{
    ucp_st_op_t *op       = arg;
    ucp_st_stats_t *stats = &op->worker->stats;

    if (status == UCS_OK) {
        if (op->dir == UCP_ST_DIR_SEND) {
            ++stats->writes_fired;
        } else {
            ++stats->cts_fired;
        }
    } else if (status == UCS_ERR_INVALID_ADDR) {
        /* The key was good at match: the peer has closed its region since, and
         * its message that says so is on the way */
        status = UCS_ERR_CANCELED;
    } else if (ucp_st_trig_is_loss(status)) {
        /* The operation fails with the peer */
        ucp_st_leave_lost(op->peer, status);
        status = UCS_OK;
    }
    ucp_st_trig_entry_done(op, UCP_ST_TRIG_ENTRY_PUT, status);
}

static void ucp_st_trig_release_waits(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = &op->trig;

    if (!trig->active) {
        return;
    }
    ucp_st_trig_late_del(trig);
    __atomic_store_n(&trig->released, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&trig->slot->word, UCP_ST_TRIG_RELEASE, __ATOMIC_RELEASE);
    ucs_gstream_wake(&trig->slot->word);
}

static void ucp_st_trig_word_done(void *arg, ucs_status_t status)
{
    ucp_st_op_t *op = arg;

    if (status == UCS_OK) {
        ++op->worker->stats.atomics_fired;
        ucs_gstream_wake(&op->trig.slot->word);
        ucp_st_op_complete_use(op);
    }
    if (op->trig.released) {
        /* A NIC's addition that was under way may have read the word before the
         * release was stored and written it after: each such addition ends up
         * here, so the last one to finish is followed by this store. */
        ucp_st_trig_release_waits(op);
    }
    ucp_st_trig_entry_done(op, UCP_ST_TRIG_ENTRY_WORD, status);
}

/* The same for entries that were not the operation's own */
static void ucp_st_trig_ahead_put_done(void *arg, ucs_status_t status)
{
    ucp_st_op_t *op = arg;

    --op->worker->trig.ahead;
    ucp_st_trig_put_done(arg, status);
}

static void ucp_st_trig_ahead_word_done(void *arg, ucs_status_t status)
{
    ucp_st_op_t *op = arg;

    --op->worker->trig.ahead;
    ucp_st_trig_word_done(arg, status);
}

static ucs_status_t ucp_st_trig_post_put(ucp_st_op_t *op, uint64_t use,
                                         uct_trig_deferred_t *deferred)
{
    ucp_st_trig_op_t *trig = &op->trig;
    int is_send            = (op->dir == UCP_ST_DIR_SEND);
    int two_count          = is_send && (op->mode == UCP_ST_MODE_STANDARD);
    int from_pad           = !is_send || (op->msg_length == 0);
    uct_trig_put_t put     = {
        .buffer      = from_pad ? (const void*)&trig->slot->pad : op->buffer,
        .length      = is_send ? ucp_st_trig_wire_length(op->msg_length) :
                                 sizeof(trig->slot->pad),
        .local       = trig->local,
        .remote_addr = trig->remote_address,
        .rkey        = trig->remote_rkey
    };

    deferred->trigger    = trig->start;
    deferred->threshold  = two_count ? (2 * use) : use;
    deferred->completion = is_send ? trig->data : op->worker->trig.sink;
    deferred->done       = (deferred->resv != NULL) ?
                           ucp_st_trig_put_done : ucp_st_trig_ahead_put_done;
    return uct_trig_ep_put(op->peer->trig_ep, &put, deferred);
}

static ucs_status_t ucp_st_trig_post_word(ucp_st_op_t *op, uint64_t use,
                                          uct_trig_deferred_t *deferred)
{
    ucp_st_trig_op_t *trig   = &op->trig;
    uct_trig_atomic_t atomic = {
        .value       = 1,
        .remote_addr = (uintptr_t)&trig->slot->word,
        .rkey        = trig->slot_rkey
    };

    deferred->trigger    = trig->data;
    deferred->threshold  = use;
    deferred->completion = op->worker->trig.sink;
    deferred->done       = (deferred->resv != NULL) ?
                           ucp_st_trig_word_done : ucp_st_trig_ahead_word_done;
    return uct_trig_ep_atomic_add64(op->worker->trig.self_ep, &atomic,
                                    deferred);
}

/* From the operation's own entry if it is free, else from the common ones */
static ucs_status_t ucp_st_trig_post_entry(ucp_st_op_t *op,
                                           ucp_st_trig_entry_t entry,
                                           uint64_t use)
{
    ucp_st_trig_dev_t *dev       = &op->worker->trig;
    uct_trig_resv_t *resv        = &op->trig.resv[entry];
    uct_trig_deferred_t deferred = {
        .resv = (resv->used < resv->total) ? resv : NULL,
        .arg  = op
    };
    ucs_status_t status;

    if ((deferred.resv == NULL) && (dev->ahead >= dev->max_ahead)) {
        return UCS_ERR_NO_RESOURCE;
    }
    status = (entry == UCP_ST_TRIG_ENTRY_PUT) ?
             ucp_st_trig_post_put(op, use, &deferred) :
             ucp_st_trig_post_word(op, use, &deferred);
    if ((status == UCS_OK) && (deferred.resv == NULL)) {
        ++dev->ahead;
    }
    return status;
}

/* Post one kind of entry up to use number `uses` */
static ucs_status_t ucp_st_trig_post_kind(ucp_st_op_t *op,
                                          ucp_st_trig_entry_t entry,
                                          uint64_t uses)
{
    uint64_t *posted = &op->trig.posted[entry];
    ucs_status_t status;

    if ((entry == UCP_ST_TRIG_ENTRY_PUT) && !ucp_st_trig_has_put(op)) {
        return UCS_OK;
    }
    while (*posted < uses) {
        status = ucp_st_trig_post_entry(op, entry, *posted + 1);
        if (status != UCS_OK) {
            return status;
        }
        ++*posted;
        if ((entry == UCP_ST_TRIG_ENTRY_PUT) && (op->dir == UCP_ST_DIR_SEND)) {
            ++op->worker->stats.writes_posted;
        }
    }
    return UCS_OK;
}

static ucs_status_t ucp_st_trig_try_post(ucp_st_op_t *op, uint64_t uses)
{
    ucs_status_t status, word_status;

    status      = ucp_st_trig_post_kind(op, UCP_ST_TRIG_ENTRY_PUT, uses);
    word_status = ucp_st_trig_post_kind(op, UCP_ST_TRIG_ENTRY_WORD, uses);
    if ((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE)) {
        status = (word_status == UCS_OK) ? status : word_status;
    }
    return status;
}

static ucs_status_t ucp_st_trig_post(ucp_st_op_t *op, uint64_t uses)
{
    unsigned per_use = (ucp_st_trig_has_put(op) && (op->dir == UCP_ST_DIR_SEND))
                       ? 2 : 1;
    ucs_status_t status;

    if (uses > (op->worker->trig.attr.max_count / per_use)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    status = ucp_st_trig_try_post(op, uses);
    if (status != UCS_ERR_NO_RESOURCE) {
        return status;
    }
    if (!op->trig.is_late) {
        op->trig.is_late = 1;
        if (op->worker->trig.helped &&
            ucs_list_is_empty(&op->worker->trig.late)) {
            /* The thread takes its time while nobody is late */
            ucp_st_trig_dev_wake(op->worker);
        }
        ucs_list_add_tail(&op->worker->trig.late, &op->trig.late_list);
    }
    return UCS_OK;
}

void ucp_st_trig_post_late(ucp_st_worker_h worker)
{
    ucp_st_op_t *op, *tmp;
    ucs_status_t status;
    uint64_t before;

    /* All of them, not only the first: each has entries of its own, and the
     * first may wait for what a later one does (protocol-rules: a common
     * first-in-first-out list deadlocks) */
    ucs_list_for_each_safe(op, tmp, &worker->trig.late, trig.late_list) {
        before = op->trig.posted[UCP_ST_TRIG_ENTRY_WORD];
        status = ucp_st_trig_try_post(op, op->started);
        worker->stats.late_posts += op->trig.posted[UCP_ST_TRIG_ENTRY_WORD] -
                                    before;
        if (status == UCS_ERR_NO_RESOURCE) {
            continue;
        }
        ucp_st_trig_late_del(&op->trig);
        if (status != UCS_OK) {
            ucp_st_op_fail(op, status);
        }
    }
}

/* Runs on the stream, where the NIC has no trigger address */
static void ucp_st_trig_start_func(void *arg)
{
    ucp_st_op_t *op = arg;

    /* Pairs with the release store in ucp_st_trig_release_waits(): a stream
     * that passed a released wait starts nothing any more */
    if (__atomic_load_n(&op->trig.released, __ATOMIC_ACQUIRE)) {
        return;
    }
    if (uct_trig_cntr_add(op->trig.start, 1) != UCS_OK) {
        ucs_error("operation %p: failed to trigger the NIC", op);
    }
}

static size_t ucp_st_trig_start_cmds(ucp_st_op_t *op, uint64_t use,
                                     ucs_gstream_cmd_t *cmd)
{
    const uct_trig_doorbell_t *doorbell = &op->trig.doorbell;

    if (doorbell->mode == UCT_TRIG_DOORBELL_CALL) {
        cmd->type        = UCS_GSTREAM_CMD_FUNC;
        cmd->u.func.func = ucp_st_trig_start_func;
        cmd->u.func.arg  = op;
        return 1;
    }
    cmd->type           = UCS_GSTREAM_CMD_WRITE64;
    cmd->u.word.address = doorbell->address;
    cmd->u.word.value   = (doorbell->mode == UCT_TRIG_DOORBELL_ADD) ? 1 : use;
    return 1;
}

static size_t ucp_st_trig_wait_cmds(ucp_st_op_t *op, uint64_t use,
                                    ucs_gstream_cmd_t *cmd)
{
    cmd->type           = UCS_GSTREAM_CMD_WAIT64;
    cmd->u.word.address = &op->trig.slot->word;
    cmd->u.word.value   = use;
    return 1;
}

static void ucp_st_trig_revoke(ucp_st_op_t *op)
{
    if (op->trig.active && (op->trig.mem != NULL)) {
        (void)uct_trig_mem_dereg(op->trig.mem);
        op->trig.mem = NULL;
    }
}

static int ucp_st_trig_is_busy(const ucp_st_op_t *op)
{
    const ucp_st_trig_op_t *trig = &op->trig;
    unsigned i;

    for (i = 0; i < UCP_ST_TRIG_ENTRY_LAST; ++i) {
        if (trig->done[i] < trig->posted[i]) {
            return 1;
        }
    }
    return 0;
}

/* Fire what is still armed. The region that the puts name is closed, so they
 * fail and write nothing; entries cannot be cancelled one by one. */
static void ucp_st_trig_dispose(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = &op->trig;
    uint64_t puts  = trig->posted[UCP_ST_TRIG_ENTRY_PUT] -
                     trig->done[UCP_ST_TRIG_ENTRY_PUT];
    uint64_t words = trig->posted[UCP_ST_TRIG_ENTRY_WORD] -
                     trig->done[UCP_ST_TRIG_ENTRY_WORD];

    if (!trig->active) {
        return;
    }
    if (puts > 0) {
        (void)uct_trig_cntr_add(trig->start, 2 * puts);
    }
    if (words > 0) {
        (void)uct_trig_cntr_add(trig->data, words);
    }
}

static const char *ucp_st_trig_protocol(const ucp_st_op_t *op)
{
    return (op->mode == UCP_ST_MODE_READY) ? "ready" : "standard";
}

const ucp_st_lane_ops_t ucp_st_trig_lane_ops = {
    .name           = "trig",
    .id             = UCP_ST_LANE_TRIG,
    .open           = ucp_st_trig_dev_init,
    .close          = ucp_st_trig_dev_cleanup,
    .address_length = ucp_st_trig_dev_address_length,
    .address_pack   = ucp_st_trig_dev_address_pack,
    .progress       = ucp_st_trig_dev_progress,
    .query          = ucp_st_trig_dev_query,
    .connect        = ucp_st_trig_dev_connect,
    .disconnect     = ucp_st_trig_dev_disconnect,
    .check          = ucp_st_trig_dev_check,
    .offer          = ucp_st_trig_offer,
    .bind           = ucp_st_trig_bind,
    .post           = ucp_st_trig_post,
    .start_cmds     = ucp_st_trig_start_cmds,
    .wait_cmds      = ucp_st_trig_wait_cmds,
    .uses_done      = ucp_st_trig_uses_done,
    .release_waits  = ucp_st_trig_release_waits,
    .revoke         = ucp_st_trig_revoke,
    .dispose        = ucp_st_trig_dispose,
    .is_busy        = ucp_st_trig_is_busy,
    .release        = ucp_st_trig_release,
    .protocol       = ucp_st_trig_protocol
};
