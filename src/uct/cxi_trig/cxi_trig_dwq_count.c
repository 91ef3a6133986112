/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_dwq_count.c - deferred work of providers that report only failures
 * in the completion queue (sockets).
 *
 * Each operation completes a counter of its own, its slot's, on which two
 * deferred additions wait:
 *
 *   operation --done--> slot's counter --+--add 1--> user's counter, if any
 *                                        +--add 1--> counter of all completions
 *
 * They run in this order: once the last one has moved, the user's counter has
 * moved, and nothing of the slot is in use. A failed operation leaves its
 * additions behind: its slot is retired, as they cannot be cancelled.
 *
 * An operation that fires when there is no connection to its peer is dropped by
 * the provider without an error. It is given up once the peer is lost.
 *
 * To sleep, a message to the interface itself is deferred until the counter of
 * all completions moves; its arrival is an entry in the completion queue.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_dwq.h"
#include "cxi_trig_addr.h"
#include "cxi_trig_cntr.h"
#include "cxi_trig_cntr_pool.h"
#include "cxi_trig_iface.h"
#include "cxi_trig_peer.h"
#include "cxi_trig_proto.h"
#include "cxi_trig_rx.h"
#include "cxi_trig_status.h"

#include <ucs/arch/cpu.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

/* Uses of a slot before its counter comes near 32 bits */
#define UCT_CXI_TRIG_SLOT_USES UCS_BIT(30)

/* Where the count of all completions is compared, as the provider does */
#define UCT_CXI_TRIG_COUNT_MASK UCS_MASK(31)


/* A deferred addition. */
typedef struct uct_cxi_trig_dwq_add {
    struct fi_deferred_work work;
    struct fi_op_cntr       op;
} uct_cxi_trig_dwq_add_t;


/* What one operation uses while it is pending. */
typedef struct uct_cxi_trig_dwq_slot {
    ucs_list_link_t        list;   /* On the free or the retired list */
    struct fid_cntr        *cntr;
    uint64_t               target; /* Value once the operation is over */
    uct_cxi_trig_dwq_add_t user;
    uct_cxi_trig_dwq_add_t all;
} uct_cxi_trig_dwq_slot_t;


/* The message that ends a sleep. */
typedef struct uct_cxi_trig_dwq_wake {
    struct fi_deferred_work work;
    struct fi_op_msg        op;
    struct iovec            iov;
    uct_cxi_trig_msg_t      msg;
    struct fid_cntr         *sent;    /* How many have left */
    uint64_t                target;   /* Of sent, once all have */
    uct_cxi_trig_peer_t     *self;    /* This interface; NULL: not yet */
} uct_cxi_trig_dwq_wake_t;


typedef struct uct_cxi_trig_dwq_count {
    struct fid_cntr         *all;    /* Of all completions */
    struct fid_cntr         *trash;  /* Takes what nobody waits for any more */
    uint64_t                seen;    /* Its value when last looked at */
    ucs_list_link_t         pending; /* Operations with a slot */
    ucs_list_link_t         free;    /* Slots */
    ucs_list_link_t         retired;
    uct_cxi_trig_dwq_wake_t wake;
} uct_cxi_trig_dwq_count_t;


static ucs_status_t uct_cxi_trig_dwq_count_init(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(iface);
    uct_cxi_trig_dwq_count_t *count;
    int ret;

    count = ucs_calloc(1, sizeof(*count), "cxi_trig_dwq_count");
    if (count == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    ret = uct_cxi_trig_cntr_pool_open(md, NULL, &count->all);
    if (ret != 0) {
        goto err_free;
    }

    ret = uct_cxi_trig_cntr_pool_open(md, NULL, &count->trash);
    if (ret != 0) {
        goto err_close_all;
    }

    ret = uct_cxi_trig_cntr_pool_open(md, NULL, &count->wake.sent);
    if (ret != 0) {
        goto err_close_trash;
    }

    ucs_list_head_init(&count->pending);
    ucs_list_head_init(&count->free);
    ucs_list_head_init(&count->retired);
    iface->dwq.priv = count;
    return UCS_OK;

err_close_trash:
    fi_close(&count->trash->fid);
err_close_all:
    fi_close(&count->all->fid);
err_free:
    ucs_free(count);
    ucs_error("cannot open the counters of deferred work: %s",
              fi_strerror(-ret));
    return uct_cxi_trig_status(ret);
}

static void uct_cxi_trig_dwq_count_close_slots(ucs_list_link_t *list)
{
    uct_cxi_trig_dwq_slot_t *slot;

    while (!ucs_list_is_empty(list)) {
        slot = ucs_list_extract_head(list, uct_cxi_trig_dwq_slot_t, list);
        fi_close(&slot->cntr->fid);
        ucs_free(slot);
    }
}

static void uct_cxi_trig_dwq_count_cleanup(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_dwq_count_t *count = iface->dwq.priv;

    uct_cxi_trig_dwq_count_close_slots(&count->free);
    uct_cxi_trig_dwq_count_close_slots(&count->retired);
    if (count->wake.self != NULL) {
        uct_cxi_trig_peer_put(count->wake.self);
    }
    fi_close(&count->wake.sent->fid);
    fi_close(&count->trash->fid);
    fi_close(&count->all->fid);
    ucs_free(count);
}

static void uct_cxi_trig_dwq_count_setup_add(uct_cxi_trig_dwq_slot_t *slot,
                                             uct_cxi_trig_dwq_add_t *add,
                                             struct fid_cntr *cntr)
{
    add->op.cntr              = cntr;
    add->op.value             = 1;
    add->work.op_type         = FI_OP_CNTR_ADD;
    add->work.op.cntr         = &add->op;
    add->work.triggering_cntr = slot->cntr;
    add->work.completion_cntr = NULL;
    add->work.threshold       = slot->target;
}

static int uct_cxi_trig_dwq_count_get_slot(uct_cxi_trig_iface_t *iface,
                                           uct_cxi_trig_dwq_slot_t **slot_p)
{
    uct_cxi_trig_dwq_count_t *count = iface->dwq.priv;
    uct_cxi_trig_dwq_slot_t *slot;
    int ret;

    if (!ucs_list_is_empty(&count->free)) {
        *slot_p = ucs_list_extract_head(&count->free, uct_cxi_trig_dwq_slot_t,
                                        list);
        return 0;
    }

    slot = ucs_calloc(1, sizeof(*slot), "cxi_trig_dwq_slot");
    if (slot == NULL) {
        return -FI_ENOMEM;
    }

    ret = uct_cxi_trig_cntr_pool_open(uct_cxi_trig_iface_md(iface), NULL,
                                      &slot->cntr);
    if (ret != 0) {
        ucs_free(slot);
        return ret;
    }
    *slot_p = slot;
    return 0;
}

static int uct_cxi_trig_dwq_count_post(uct_cxi_trig_iface_t *iface,
                                       uct_cxi_trig_dwq_op_t *op)
{
    uct_cxi_trig_dwq_count_t *count = iface->dwq.priv;
    uct_cxi_trig_dwq_slot_t *slot;
    struct fid *domain;
    int ret;

    ret = uct_cxi_trig_dwq_count_get_slot(iface, &slot);
    if (ret != 0) {
        return ret;
    }

    domain                       = &uct_cxi_trig_iface_md(iface)->domain->fid;
    op->slot                     = slot;
    ucs_list_add_tail(&count->pending, &op->list);
    op->req.work.completion_cntr = slot->cntr;
    ++slot->target;
    uct_cxi_trig_dwq_count_setup_add(slot, &slot->all, count->all);
    if (op->deferred.completion != NULL) {
        uct_cxi_trig_dwq_count_setup_add(slot, &slot->user,
                                         op->deferred.completion->cntr);
        ret = fi_control(domain, FI_QUEUE_WORK, &slot->user.work);
    }
    if (ret == 0) {
        ret = fi_control(domain, FI_QUEUE_WORK, &slot->all.work);
    }
    if (ret == 0) {
        ret = fi_control(domain, FI_QUEUE_WORK, &op->req.work);
    }
    return ret;
}

static void uct_cxi_trig_dwq_count_release(uct_cxi_trig_iface_t *iface,
                                           uct_cxi_trig_dwq_op_t *op,
                                           ucs_status_t status)
{
    uct_cxi_trig_dwq_count_t *count = iface->dwq.priv;

    if (op->slot == NULL) {
        return;
    }

    if ((status == UCS_OK) && (op->slot->target < UCT_CXI_TRIG_SLOT_USES)) {
        ucs_list_add_head(&count->free, &op->slot->list);
    } else {
        ucs_list_add_tail(&count->retired, &op->slot->list);
    }
    ucs_list_del(&op->list);
    op->slot = NULL;
}

/*
 * Whether an operation is over, additions and all. Its count may have moved
 * while the thread that moved it has yet to run the additions, which read the
 * slot: adding 0 waits for that thread, or runs them here.
 */
static int uct_cxi_trig_dwq_count_is_over(const uct_cxi_trig_dwq_op_t *op)
{
    if (fi_cntr_read(op->slot->cntr) < op->slot->target) {
        return 0;
    }
    fi_cntr_add(op->slot->cntr, 0);
    return 1;
}

/* Whether an operation has fired at a lost peer, and nothing came of it. */
static int uct_cxi_trig_dwq_count_is_lost(const uct_cxi_trig_dwq_op_t *op)
{
    struct fid_cntr *trigger = op->deferred.trigger->cntr;

    if ((op->peer->lost == UCS_OK) ||
        (fi_cntr_read(trigger) < op->req.work.threshold)) {
        return 0;
    }
    fi_cntr_add(trigger, 0); /* Waits for whoever is firing it now */
    return !uct_cxi_trig_dwq_count_is_over(op);
}

static unsigned uct_cxi_trig_dwq_count_poll_lost(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_dwq_count_t *count = iface->dwq.priv;
    unsigned given_up               = 0;
    uct_cxi_trig_dwq_op_t *op, *tmp;

    ucs_list_for_each_safe(op, tmp, &count->pending, list) {
        if (uct_cxi_trig_dwq_count_is_lost(op)) {
            /* The user may destroy its counter: nothing may add to it */
            op->slot->user.op.cntr = count->trash;
            uct_cxi_trig_dwq_abandon(iface, op, op->peer->lost);
            ++given_up;
        }
    }
    return given_up;
}

static unsigned uct_cxi_trig_dwq_count_poll(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_dwq_count_t *count = iface->dwq.priv;
    uint64_t value                  = fi_cntr_read(count->all);
    unsigned completed              = 0;
    uct_cxi_trig_dwq_op_t *op, *tmp;

    if (ucs_unlikely(iface->dwq.lost_peers > 0)) {
        completed = uct_cxi_trig_dwq_count_poll_lost(iface);
    }
    if (ucs_likely(value == count->seen)) {
        return completed;
    }

    /* Pairs with the provider's lock: what moved the counter came before */
    ucs_memory_cpu_load_fence();
    count->seen = value;
    ucs_list_for_each_safe(op, tmp, &count->pending, list) {
        if (uct_cxi_trig_dwq_count_is_over(op)) {
            uct_cxi_trig_dwq_complete(iface, &op->req, 0, UCS_OK);
            ++completed;
        }
    }
    return completed;
}

static ucs_status_t
uct_cxi_trig_dwq_count_find_self(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_dwq_count_t *count = iface->dwq.priv;
    uct_cxi_trig_iface_addr_t addr;
    ucs_status_t status;

    if (count->wake.self != NULL) {
        return UCS_OK;
    }

    status = uct_cxi_trig_addr_get_iface(&iface->super.super,
                                         (uct_iface_addr_t*)&addr);
    if (status != UCS_OK) {
        return status;
    }
    return uct_cxi_trig_peer_create(iface, (uct_iface_addr_t*)&addr,
                                    &count->wake.self);
}

static ucs_status_t uct_cxi_trig_dwq_count_wake(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_dwq_count_t *count = iface->dwq.priv;
    uct_cxi_trig_dwq_wake_t *wake   = &count->wake;
    int ret;

    wake->msg                    = (uct_cxi_trig_msg_t){
        .type = UCT_CXI_TRIG_MSG_WAKE
    };
    wake->iov.iov_base           = &wake->msg;
    wake->iov.iov_len            = sizeof(wake->msg);
    wake->op.ep                  = iface->net.ep;
    wake->op.flags               = 0;
    wake->op.msg                 = (struct fi_msg){
        .msg_iov   = &wake->iov,
        .iov_count = 1,
        .addr      = wake->self->addr,
        .context   = &wake->work.context
    };
    wake->work.op_type           = FI_OP_SEND;
    wake->work.op.msg            = &wake->op;
    wake->work.triggering_cntr   = count->all;
    wake->work.completion_cntr   = wake->sent;
    wake->work.threshold         = (count->seen + 1) & UCT_CXI_TRIG_COUNT_MASK;

    ret = fi_control(&uct_cxi_trig_iface_md(iface)->domain->fid, FI_QUEUE_WORK,
                     &wake->work);
    if (ret != 0) {
        ucs_diag("cannot defer a message to this interface: %s",
                 fi_strerror(-ret));
        return UCS_ERR_BUSY; /* The user polls on */
    }

    ++wake->target;
    iface->dwq.has_wake = 1;
    return UCS_OK;
}

/* The provider leaves work behind whose trigger moved while its send queue was
 * full, until the trigger is touched again. The queue drains by completions,
 * each of which ends a sleep: looking before every sleep is enough. */
static void uct_cxi_trig_dwq_count_refire(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_dwq_count_t *count = iface->dwq.priv;
    const uct_cxi_trig_dwq_op_t *op;

    ucs_list_for_each(op, &count->pending, list) {
        if ((fi_cntr_read(op->deferred.trigger->cntr) >=
             op->req.work.threshold) &&
            (fi_cntr_read(op->slot->cntr) < op->slot->target)) {
            fi_cntr_add(op->deferred.trigger->cntr, 0);
        }
    }
}

static ucs_status_t uct_cxi_trig_dwq_count_arm(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_dwq_count_t *count = iface->dwq.priv;
    ucs_status_t status;

    uct_cxi_trig_dwq_count_refire(iface);
    if (fi_cntr_read(count->all) != count->seen) {
        return UCS_ERR_BUSY;
    }
    /* Also with nothing pending: it may be posted while the user sleeps */
    if ((iface->num_cntrs == 0) || iface->dwq.has_wake) {
        return UCS_OK;
    }
    if (fi_cntr_read(count->wake.sent) != count->wake.target) {
        return UCS_ERR_BUSY; /* The last message is still the provider's */
    }

    status = uct_cxi_trig_dwq_count_find_self(iface);
    if (status != UCS_OK) {
        return UCS_ERR_BUSY; /* The user polls on, and asks again */
    }

    uct_cxi_trig_rx_enable(iface); /* The message must be received */
    return uct_cxi_trig_dwq_count_wake(iface);
}

const uct_cxi_trig_dwq_ops_t uct_cxi_trig_dwq_count_ops = {
    .init    = uct_cxi_trig_dwq_count_init,
    .cleanup = uct_cxi_trig_dwq_count_cleanup,
    .post    = uct_cxi_trig_dwq_count_post,
    .run     = uct_cxi_trig_dwq_count_post, /* fires at once; entries are not of
                                               a NIC */
    .release = uct_cxi_trig_dwq_count_release,
    .poll    = uct_cxi_trig_dwq_count_poll,
    .arm     = uct_cxi_trig_dwq_count_arm
};
