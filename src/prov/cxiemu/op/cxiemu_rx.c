/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_rx.c - receives, and their matching with messages.
 *
 *   receive: posted -> (matched: active, if data is still to come) -> over
 *   message: arrived -> matched | unexpected [-> claimed] -> matched
 *
 * A multi-receive buffer stays posted while it has room; each message that it
 * takes has a receive of its own, a child.
 */
#include "op/cxiemu_rx.h"
#include "base/cxiemu_dma.h"
#include "base/cxiemu_error.h"
#include "base/cxiemu_log.h"
#include "op/cxiemu_ep.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>


/* A receive, as matching has it. */
typedef struct cxiemu_recv {
    TAILQ_ENTRY(cxiemu_recv) list;
    cxiemu_rx_t              *rx;
    uint8_t                  *buffer;   /* Where the card has it */
    cxiemu_dma_t             *dma;      /* A GPU's memory; or NULL */
    size_t                   length;
    uint64_t                 tag;
    uint64_t                 ignore;
    uint64_t                 flags;     /* As cxiemu_recv_req_t's */
    void                     *context;
    cxiemu_cntr_t            *completion;
    int                      any;       /* From anybody; else from: */
    uint64_t                 peer;
    uint16_t                 src_ep;
    /* Multi-receive */
    struct cxiemu_recv       *parent;
    size_t                   used;      /* Bytes that children have */
    unsigned                 children;  /* Not over */
    int                      closed;    /* Takes no more */
    int                      canceled;
    /* Matched */
    int                      is_active; /* In rx->active */
    int                      is_pulled; /* In nic->pulled, to be gone on with */
    TAILQ_ENTRY(cxiemu_recv) pulled;
    uint32_t                 id;        /* For DATA records */
    uint64_t                 total;     /* Bytes of the message */
    uint64_t                 done;      /* Bytes that have come */
    cxiemu_arrival_t         arrival;
} cxiemu_recv_t;

/* A message that nobody waits for. */
typedef struct cxiemu_unexp {
    TAILQ_ENTRY(cxiemu_unexp) list;
    cxiemu_arrival_t          arrival;
    uint8_t                   data[];
} cxiemu_unexp_t;


void cxiemu_rx_init(cxiemu_rx_t *rx, cxiemu_ep_t *ep, int is_tagged)
{
    rx->ep        = ep;
    rx->is_tagged = is_tagged;
    TAILQ_INIT(&rx->posted);
    TAILQ_INIT(&rx->active);
    TAILQ_INIT(&rx->unexpected);
    TAILQ_INIT(&rx->claimed);
}


static cxiemu_recv_t *cxiemu_recv_get(cxiemu_rx_t *rx)
{
    cxiemu_recv_t *recv = rx->spare;

    if (recv == NULL) {
        recv = malloc(sizeof(*recv));
        if (recv == NULL) {
            return NULL;
        }
    } else {
        rx->spare = recv->parent;
    }

    *recv = (cxiemu_recv_t){.rx = rx};
    return recv;
}

static void cxiemu_recv_put(cxiemu_recv_t *recv)
{
    if ((recv->completion != NULL) && (recv->parent == NULL)) {
        --recv->completion->refs;
    }
    cxiemu_dma_put(recv->dma);
    recv->dma       = NULL;
    recv->parent    = recv->rx->spare;
    recv->rx->spare = recv;
}

/* Bytes of a message, of which not all need be here. */
static uint64_t cxiemu_rx_total(const cxiemu_arrival_t *arrival)
{
    return (arrival->rec.type == CXIEMU_REC_RTS) ? arrival->rec.addr :
                                                   arrival->rec.length;
}

/* Bytes of its message that it has room for. */
static size_t cxiemu_recv_taken(const cxiemu_recv_t *recv)
{
    return (recv->total < recv->length) ? recv->total : recv->length;
}


static void cxiemu_recv_count(const cxiemu_recv_t *recv, int err)
{
    cxiemu_cntr_t *cntr = (recv->completion != NULL) ? recv->completion :
                                                       recv->rx->ep->rx_cntr;

    if (cntr != NULL) {
        cxiemu_cntr_count(cntr, err == 0, err != 0);
    }
}

static void cxiemu_recv_event(const cxiemu_recv_t *recv, int err,
                              uint64_t flags)
{
    const cxiemu_rx_t *rx = recv->rx;
    cxiemu_ep_t *ep       = rx->ep;
    cxiemu_cq_event_t *event;

    if ((ep->rx_cq == NULL) ||
        ((err == 0) && !(recv->flags & FI_COMPLETION) &&
         !(flags & FI_MULTI_RECV))) {
        return;
    }

    event                   = cxiemu_cq_next(ep->rx_cq);
    event->entry.op_context = recv->context;
    event->entry.flags      = flags | FI_RECV |
                              (rx->is_tagged ? FI_TAGGED : FI_MSG);
    cxiemu_error_set(&event->entry, err);
    event->entry.buf        = cxiemu_dma_user(recv->dma, recv->buffer);
    if (err != FI_ECANCELED) {
        event->entry.len = cxiemu_recv_taken(recv);
        event->entry.tag = rx->is_tagged ? recv->arrival.rec.tag : 0;
        if (recv->arrival.rec.flags & CXIEMU_REC_CQ_DATA) {
            event->entry.flags |= FI_REMOTE_CQ_DATA;
            event->entry.data   = recv->arrival.rec.data;
        }
        if (err == FI_ETRUNC) {
            event->entry.olen = recv->total - recv->length;
        }
        if (ep->caps & FI_SOURCE) {
            event->src = cxiemu_av_find(ep->av, recv->arrival.peer,
                                        recv->arrival.rec.src_ep);
        }
    }
    cxiemu_cq_push(ep->rx_cq, event);
}

static void cxiemu_recv_cancel(cxiemu_recv_t *recv)
{
    cxiemu_recv_count(recv, FI_ECANCELED);
    cxiemu_recv_event(recv, FI_ECANCELED, recv->flags & FI_MULTI_RECV);
    cxiemu_recv_put(recv);
}

/* A child is over; whether the buffer is the user's again with it. */
static int cxiemu_recv_leave(cxiemu_recv_t *parent)
{
    return (--parent->children == 0) && parent->closed;
}

static void cxiemu_recv_unpull(cxiemu_recv_t *recv)
{
    if (recv->is_pulled) {
        recv->is_pulled = 0;
        TAILQ_REMOVE(&recv->rx->ep->domain->nic->pulled, recv, pulled);
    }
}

static void cxiemu_recv_finish(cxiemu_recv_t *recv, int err)
{
    cxiemu_recv_t *parent = recv->parent;
    int last              = (parent != NULL) && cxiemu_recv_leave(parent);
    int canceled          = last && parent->canceled;

    cxiemu_recv_unpull(recv);
    if (recv->is_active) {
        TAILQ_REMOVE(&recv->rx->active, recv, list);
    }
    if ((err == 0) && (recv->total > recv->length)) {
        err = FI_ETRUNC;
    }
    cxiemu_recv_count(recv, err);
    cxiemu_recv_event(recv, err, (last && !canceled) ? FI_MULTI_RECV : 0);
    cxiemu_recv_put(recv);

    if (canceled) {
        cxiemu_recv_cancel(parent);
    } else if (last) {
        cxiemu_recv_put(parent);
    }
}


static int cxiemu_rx_fits(const cxiemu_recv_t *recv,
                          const cxiemu_arrival_t *arrival)
{
    const cxiemu_rec_t *rec = &arrival->rec;

    if (recv->rx->is_tagged &&
        (((rec->tag ^ recv->tag) & ~recv->ignore) != 0)) {
        return 0;
    }
    return recv->any || ((recv->peer == arrival->peer) &&
                         (recv->src_ep == rec->src_ep));
}

/* Fetches the next share of a message; whether that was all. */
static int cxiemu_recv_pull(cxiemu_recv_t *recv)
{
    size_t taken = cxiemu_recv_taken(recv);
    size_t share = taken - recv->done;
    int err;

    share = (share < CXIEMU_COPY_SHARE) ? share : CXIEMU_COPY_SHARE;
    err   = cxiemu_link_fetch(&recv->arrival, recv->done,
                              recv->buffer + recv->done, share);
    recv->done += share;
    if ((err == 0) && (recv->done < taken)) {
        return 0;
    }

    cxiemu_link_answer(&recv->arrival, CXIEMU_ACK_DONE, err, taken);
    cxiemu_recv_finish(recv, err);
    return 1;
}

unsigned cxiemu_rx_pull(cxiemu_nic_t *nic)
{
    unsigned count = 0;
    cxiemu_recv_t *recv;

    while (((recv = TAILQ_FIRST(&nic->pulled)) != NULL) &&
           ((count == 0) || (nic->copied < CXIEMU_COPY_SHARE))) {
        ++count;
        if (!cxiemu_recv_pull(recv)) {
            /* Others have their turn */
            TAILQ_REMOVE(&nic->pulled, recv, pulled);
            TAILQ_INSERT_TAIL(&nic->pulled, recv, pulled);
        }
    }
    return count;
}

static void cxiemu_rx_rendezvous(cxiemu_recv_t *recv)
{
    cxiemu_rx_t *rx           = recv->rx;
    cxiemu_nic_t *nic         = rx->ep->domain->nic;
    const cxiemu_link_t *link = recv->arrival.link;

    if ((link == NULL) || (link->state != CXIEMU_LINK_UP)) {
        cxiemu_recv_finish(recv, FI_EHOSTUNREACH);
        return;
    }

    TAILQ_INSERT_TAIL(&rx->active, recv, list);
    recv->is_active = 1;
    if (!link->same_process &&
        (!link->may_attach ||
         (recv->arrival.rec.addr < cxiemu_param()->cma_min))) {
        /* It cannot be fetched from here, or should not */
        recv->id = rx->next_id++;
        cxiemu_link_answer(&recv->arrival, CXIEMU_ACK_GO, 0, recv->id);
        /* That was the answer. A second one, if the endpoint is closed now,
         * would be taken for that to a later operation: the data tells of
         * it. */
        recv->arrival.rec.flags &= ~CXIEMU_REC_ACK;
    } else if ((nic->copied >= CXIEMU_COPY_SHARE) || !cxiemu_recv_pull(recv)) {
        recv->is_pulled = 1;
        TAILQ_INSERT_TAIL(&nic->pulled, recv, pulled);
    }
}

/* Give a message to a receive that has been taken from the posted ones. */
static void cxiemu_rx_take(cxiemu_recv_t *recv, const cxiemu_arrival_t *arrival)
{
    int err;

    recv->arrival = *arrival;
    recv->total   = cxiemu_rx_total(arrival);
    if (arrival->rec.type == CXIEMU_REC_RTS) {
        recv->arrival.payload = NULL;
        cxiemu_rx_rendezvous(recv);
        return;
    }

    err = cxiemu_link_fetch(arrival, 0, recv->buffer,
                            cxiemu_recv_taken(recv));
    cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, err, cxiemu_recv_taken(recv));
    cxiemu_recv_finish(recv, err);
}

/* Part of a multi-receive buffer for one message; the rest stays, if there is
 * enough of it. */
static cxiemu_recv_t *cxiemu_rx_split(cxiemu_recv_t *parent,
                                      const cxiemu_arrival_t *arrival)
{
    cxiemu_rx_t *rx      = parent->rx;
    uint64_t total       = cxiemu_rx_total(arrival);
    cxiemu_recv_t *child = cxiemu_recv_get(rx);
    size_t rest          = parent->length - parent->used;

    if (child == NULL) {
        return NULL;
    }

    child->buffer      = parent->buffer + parent->used;
    child->dma         = cxiemu_dma_get(parent->dma);
    child->length      = rest;
    child->flags       = parent->flags & ~FI_MULTI_RECV;
    child->context     = parent->context;
    child->completion  = parent->completion;
    child->parent      = parent;
    parent->used      += (total < rest) ? total : rest;
    ++parent->children;
    rest = parent->length - parent->used;
    if ((rest == 0) ||
        (rest < __atomic_load_n(&rx->ep->min_multi_recv, __ATOMIC_RELAXED))) {
        parent->closed = 1;
        TAILQ_REMOVE(&rx->posted, parent, list);
    }
    return child;
}

/* Match a message with a posted receive; whether it was taken. */
static int cxiemu_rx_match(cxiemu_rx_t *rx, const cxiemu_arrival_t *arrival)
{
    cxiemu_recv_t *recv;

    TAILQ_FOREACH(recv, &rx->posted, list) {
        if (cxiemu_rx_fits(recv, arrival)) {
            break;
        }
    }
    if (recv == NULL) {
        return 0;
    }

    if (recv->flags & FI_MULTI_RECV) {
        recv = cxiemu_rx_split(recv, arrival);
        if (recv == NULL) {
            return 0;
        }
    } else {
        TAILQ_REMOVE(&rx->posted, recv, list);
    }
    cxiemu_rx_take(recv, arrival);
    return 1;
}


/* Keep a message that nobody waits for. Its payload is copied, and then it is
 * acknowledged, unless its sender wants to know that it was delivered. */
static void cxiemu_rx_keep(cxiemu_rx_t *rx, const cxiemu_arrival_t *arrival)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    size_t length           = (rec->type == CXIEMU_REC_SEND) ? rec->length : 0;
    cxiemu_unexp_t *unexp   = malloc(sizeof(*unexp) + length);
    int err;

    if (unexp == NULL) {
        cxiemu_warn(EP_DATA, "no memory for a message of %zu bytes\n", length);
        cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, FI_ENOMEM, 0);
        return;
    }

    unexp->arrival         = *arrival;
    unexp->arrival.payload = NULL;
    if (rec->type == CXIEMU_REC_SEND) {
        err = cxiemu_link_fetch(arrival, 0, unexp->data, length);
        if ((err != 0) || !(rec->flags & CXIEMU_REC_DELIVERY)) {
            cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, err, length);
            unexp->arrival.rec.flags &= ~CXIEMU_REC_ACK;
        }
        if (err != 0) {
            free(unexp);
            return;
        }
        unexp->arrival.payload = unexp->data;
    }
    TAILQ_INSERT_TAIL(&rx->unexpected, unexp, list);
}

/* A chunk of a message that was asked for. */
static void cxiemu_rx_data(cxiemu_rx_t *rx, const cxiemu_arrival_t *arrival)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_recv_t *recv;
    size_t length;
    int err = 0;

    TAILQ_FOREACH(recv, &rx->active, list) {
        if ((recv->arrival.link == arrival->link) && (recv->id == rec->tag) &&
            (recv->arrival.rec.op == rec->op)) {
            break;
        }
    }
    if ((recv == NULL) || (rec->offset != recv->done) ||
        (rec->length > recv->total - recv->done)) {
        cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, FI_EINVAL, 0);
        return;
    }

    if (rec->offset < recv->length) {
        length = recv->length - rec->offset;
        length = (length < rec->length) ? length : rec->length;
        err    = cxiemu_link_fetch(arrival, 0, recv->buffer + rec->offset,
                                   length);
    }
    recv->done += rec->length;
    cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, err, cxiemu_recv_taken(recv));
    if ((err != 0) || (rec->flags & CXIEMU_REC_LAST)) {
        cxiemu_recv_finish(recv, (recv->done < recv->total) ? FI_EIO : err);
    }
}

void cxiemu_rx_arrived(const cxiemu_arrival_t *arrival)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_nic_t *nic       = arrival->link->nic;
    cxiemu_ep_t *ep         = (rec->dst_ep < CXIEMU_MAX_EPS) ?
                                      nic->eps[rec->dst_ep] :
                                      NULL;
    cxiemu_rx_t *rx;

    if ((ep == NULL) || !ep->enabled) {
        cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, FI_EHOSTUNREACH, 0);
        return;
    }

    rx = (rec->flags & CXIEMU_REC_TAGGED) ? &ep->tagged : &ep->msg;
    if (rec->type == CXIEMU_REC_DATA) {
        cxiemu_rx_data(rx, arrival);
    } else if (!cxiemu_rx_match(rx, arrival)) {
        cxiemu_rx_keep(rx, arrival);
    }
}


/* The source that a receive takes messages from. */
static int cxiemu_rx_set_source(cxiemu_recv_t *recv, fi_addr_t src)
{
    cxiemu_ep_t *ep = recv->rx->ep;
    cxiemu_av_entry_t *entry;

    recv->any = (src == FI_ADDR_UNSPEC) || !(ep->caps & FI_DIRECTED_RECV);
    if (recv->any) {
        return 0;
    }

    entry = cxiemu_av_entry(ep->av, src);
    if (entry == NULL) {
        return -FI_EINVAL;
    }
    recv->peer   = entry->addr.nonce;
    recv->src_ep = entry->addr.ep;
    return 0;
}

/* The oldest message that nobody waited for and that fits, or NULL. */
static cxiemu_unexp_t *cxiemu_rx_find_unexpected(const cxiemu_recv_t *recv)
{
    cxiemu_unexp_t *unexp;

    TAILQ_FOREACH(unexp, &recv->rx->unexpected, list) {
        if (cxiemu_rx_fits(recv, &unexp->arrival)) {
            break;
        }
    }
    return unexp;
}

/* A receive has taken a message that was kept in a list: free it, and let its
 * sender know. */
static void cxiemu_rx_taken(struct cxiemu_unexp_list *list,
                            cxiemu_unexp_t *unexp)
{
    cxiemu_link_t *link = unexp->arrival.link;

    TAILQ_REMOVE(list, unexp, list);
    free(unexp);
    if ((link != NULL) && !link->nic->in_progress) {
        cxiemu_link_flush(link);
    }
}

/* The oldest unexpected message that fits a posted receive is given to it;
 * whether there was one. */
static int cxiemu_rx_match_unexpected(cxiemu_recv_t *recv)
{
    cxiemu_rx_t *rx       = recv->rx;
    cxiemu_unexp_t *unexp = cxiemu_rx_find_unexpected(recv);

    /* No older receive fits it, else it would not be here */
    if ((unexp == NULL) || !cxiemu_rx_match(rx, &unexp->arrival)) {
        return 0;
    }
    cxiemu_rx_taken(&rx->unexpected, unexp);
    return 1;
}

/* FI_PEEK: tell of the message that a receive would take now. With FI_CLAIM no
 * other receive takes it from now on; the context, a struct fi_context as CXI
 * asks for, names it. */
static void cxiemu_rx_peek(cxiemu_recv_t *recv)
{
    cxiemu_rx_t *rx       = recv->rx;
    cxiemu_unexp_t *unexp = cxiemu_rx_find_unexpected(recv);

    if (unexp == NULL) {
        recv->arrival.rec.tag = recv->tag; /* CXI's entry has that */
        cxiemu_recv_finish(recv, FI_ENOMSG);
        return;
    }

    if (recv->flags & FI_CLAIM) {
        TAILQ_REMOVE(&rx->unexpected, unexp, list);
        TAILQ_INSERT_TAIL(&rx->claimed, unexp, list);
        ((struct fi_context*)recv->context)->internal[0] = unexp;
    }
    recv->arrival = unexp->arrival;
    recv->total   = cxiemu_rx_total(&unexp->arrival);
    recv->length  = recv->total; /* Nothing is cut off */
    cxiemu_recv_finish(recv, 0);
}

/* FI_CLAIM: receive the message that the context names. The context may hold
 * anything: it is only compared. 0, -FI_EINVAL if nothing is claimed by it, or
 * -FI_ENOMSG if tag or source are another's, as CXI. */
static int cxiemu_rx_claim(cxiemu_recv_t *recv)
{
    cxiemu_rx_t *rx            = recv->rx;
    struct fi_context *context = recv->context;
    cxiemu_unexp_t *unexp;

    TAILQ_FOREACH(unexp, &rx->claimed, list) {
        if (unexp == context->internal[0]) {
            break;
        }
    }
    if ((unexp == NULL) || !cxiemu_rx_fits(recv, &unexp->arrival)) {
        cxiemu_recv_put(recv);
        return (unexp == NULL) ? -FI_EINVAL : -FI_ENOMSG;
    }

    context->internal[0] = NULL;
    cxiemu_rx_take(recv, &unexp->arrival);
    cxiemu_rx_taken(&rx->claimed, unexp);
    return 0;
}

int cxiemu_rx_post(cxiemu_rx_t *rx, const cxiemu_recv_req_t *req)
{
    cxiemu_recv_t *recv = cxiemu_recv_get(rx);
    int multi           = !!(req->flags & FI_MULTI_RECV);
    int ret;

    if (recv == NULL) {
        return -FI_ENOMEM;
    }

    recv->buffer     = req->buffer;
    recv->dma        = cxiemu_dma_get(req->dma);
    recv->length     = req->length;
    recv->tag        = req->tag;
    recv->ignore     = req->ignore;
    recv->flags      = req->flags;
    recv->context    = req->context;
    recv->completion = req->completion;
    if (recv->completion != NULL) {
        ++recv->completion->refs;
    }
    ret = cxiemu_rx_set_source(recv, req->src);
    if (ret != 0) {
        cxiemu_recv_put(recv);
        return ret;
    }

    if (req->flags & FI_PEEK) {
        cxiemu_rx_peek(recv);
        return 0;
    }
    if (req->flags & FI_CLAIM) {
        return cxiemu_rx_claim(recv);
    }

    TAILQ_INSERT_TAIL(&rx->posted, recv, list);
    /* A multi-receive buffer takes all that it has room for. It is the last of
     * the posted ones as long as it is one of them. */
    while (cxiemu_rx_match_unexpected(recv) && multi &&
           (TAILQ_LAST(&rx->posted, cxiemu_recv_list) == recv)) {
    }
    return 0;
}

int cxiemu_rx_cancel(cxiemu_rx_t *rx, void *context)
{
    cxiemu_recv_t *recv;

    TAILQ_FOREACH(recv, &rx->posted, list) {
        if (recv->context == context) {
            break;
        }
    }
    if (recv == NULL) {
        return 0;
    }

    TAILQ_REMOVE(&rx->posted, recv, list);
    if (recv->children > 0) {
        /* Its buffer is the user's again when they are over */
        recv->closed   = 1;
        recv->canceled = 1;
    } else {
        cxiemu_recv_cancel(recv);
    }
    return 1;
}


static void cxiemu_rx_free_list(struct cxiemu_recv_list *list)
{
    cxiemu_recv_t *recv;

    while ((recv = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, recv, list);
        if ((recv->parent != NULL) && cxiemu_recv_leave(recv->parent)) {
            cxiemu_recv_put(recv->parent);
        }
        cxiemu_recv_put(recv);
    }
}

void cxiemu_rx_cleanup(cxiemu_rx_t *rx)
{
    cxiemu_recv_t *recv;
    cxiemu_unexp_t *unexp;

    TAILQ_FOREACH(recv, &rx->active, list) {
        cxiemu_recv_unpull(recv);
        cxiemu_link_answer(&recv->arrival, CXIEMU_ACK_DONE, FI_EHOSTUNREACH, 0);
    }
    cxiemu_rx_free_list(&rx->active);
    cxiemu_rx_free_list(&rx->posted);
    TAILQ_CONCAT(&rx->unexpected, &rx->claimed, list);
    while ((unexp = TAILQ_FIRST(&rx->unexpected)) != NULL) {
        TAILQ_REMOVE(&rx->unexpected, unexp, list);
        cxiemu_link_answer(&unexp->arrival, CXIEMU_ACK_DONE, FI_EHOSTUNREACH,
                           0);
        free(unexp);
    }
    while ((recv = rx->spare) != NULL) {
        rx->spare = recv->parent;
        free(recv);
    }
}

static void cxiemu_rx_lose(cxiemu_rx_t *rx, cxiemu_link_t *link)
{
    cxiemu_recv_t *recv, *next;
    cxiemu_unexp_t *unexp, *next_unexp;

    for (recv = TAILQ_FIRST(&rx->active); recv != NULL; recv = next) {
        next = TAILQ_NEXT(recv, list);
        if (recv->arrival.link == link) {
            cxiemu_recv_finish(recv, FI_EHOSTUNREACH);
        }
    }
    for (unexp = TAILQ_FIRST(&rx->unexpected); unexp != NULL;
         unexp = next_unexp) {
        next_unexp = TAILQ_NEXT(unexp, list);
        if (unexp->arrival.link != link) {
            continue;
        }
        unexp->arrival.link = NULL;
        if (unexp->arrival.rec.type == CXIEMU_REC_RTS) {
            TAILQ_REMOVE(&rx->unexpected, unexp, list);
            free(unexp);
        }
    }
    /* Contexts name the claimed ones: a receive of one fails */
    TAILQ_FOREACH(unexp, &rx->claimed, list) {
        if (unexp->arrival.link == link) {
            unexp->arrival.link = NULL;
        }
    }
}

void cxiemu_rx_lost(cxiemu_link_t *link)
{
    cxiemu_nic_t *nic = link->nic;
    unsigned i;

    for (i = 0; i < CXIEMU_MAX_EPS; ++i) {
        if (nic->eps[i] != NULL) {
            cxiemu_rx_lose(&nic->eps[i]->msg, link);
            cxiemu_rx_lose(&nic->eps[i]->tagged, link);
        }
    }
}
