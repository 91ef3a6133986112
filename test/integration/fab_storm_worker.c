/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_storm_worker.c - one of the processes.
 *
 * To each other process, as long as it lives, it has one message, one write and
 * one deferred write under way at any time. Messages have random lengths and
 * are checked. Whatever is under way to a process that is killed must end, and
 * nothing else may fail.
 */
#include "fab_storm.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STORM_LARGEST 400000
#define STORM_KEY     5


/** A thing under way; libfabric hands its address back. */
typedef struct storm_op {
    struct fi_context context;
    struct storm_peer *peer;
    int               busy;
} storm_op_t;

typedef struct storm_peer {
    int                     index;
    int                     dead;     /**< An operation told so */
    fi_addr_t               addr;
    uint64_t                key;
    storm_op_t              send;
    storm_op_t              recv;
    storm_op_t              write;
    unsigned                sent;
    unsigned                received;
    uint64_t                out_state; /**< Of the messages' lengths */
    uint64_t                in_state;
    size_t                  in_length;
    uint8_t                 *out;
    uint8_t                 *in;
    uint64_t                word;
    struct fid_cntr         *trigger;
    struct fid_cntr         *fired;
    uint64_t                queued;
    struct fi_deferred_work work;
    struct fi_op_rma        rma;
    struct iovec            iov;
    struct fi_rma_iov       rma_iov;
} storm_peer_t;

typedef struct storm_worker {
    storm_board_t     *board;
    int               index;
    struct fi_info    *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av     *av;
    struct fid_cq     *cq;
    struct fid_ep     *ep;
    struct fid_cntr   *counts[2];
    struct fid_mr     *mr;
    uint64_t          window[8 * STORM_WORKERS];
    storm_peer_t      peers[STORM_WORKERS];
    int               failed;
} storm_worker_t;


static void complain(storm_worker_t *worker, const char *format, ...)
{
    storm_card_t *card = &worker->board->cards[worker->index];
    va_list ap;

    if (!worker->failed) {
        va_start(ap, format);
        vsnprintf(card->complaint, sizeof(card->complaint), format, ap);
        va_end(ap);
    }
    worker->failed = 1;
}

static int get(const int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set(int *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static int must(storm_worker_t *worker, const char *what, int ret)
{
    if (ret != 0) {
        complain(worker, "%s: %s", what, fi_strerror(-ret));
    }
    return ret;
}

static int open_queue(storm_worker_t *worker)
{
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 1024};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cntr_attr attr  = {.events = FI_CNTR_EVENTS_COMP};

    return must(worker, "fi_cq_open", fi_cq_open(worker->domain, &cq_attr,
                                                 &worker->cq, NULL)) ||
           must(worker, "fi_av_open", fi_av_open(worker->domain, &av_attr,
                                                 &worker->av, NULL)) ||
           must(worker, "fi_cntr_open",
                fi_cntr_open(worker->domain, &attr, &worker->counts[0],
                             NULL)) ||
           must(worker, "fi_cntr_open",
                fi_cntr_open(worker->domain, &attr, &worker->counts[1], NULL));
}

static int open_endpoint(storm_worker_t *worker)
{
    uint64_t flags = FI_TRANSMIT | FI_RECV;

    return must(worker, "fi_endpoint", fi_endpoint(worker->domain,
                                                   worker->info, &worker->ep,
                                                   NULL)) ||
           must(worker, "bind cq", fi_ep_bind(worker->ep, &worker->cq->fid,
                                              flags)) ||
           must(worker, "bind av", fi_ep_bind(worker->ep, &worker->av->fid,
                                              0)) ||
           must(worker, "bind write",
                fi_ep_bind(worker->ep, &worker->counts[0]->fid, FI_WRITE)) ||
           must(worker, "bind read",
                fi_ep_bind(worker->ep, &worker->counts[1]->fid, FI_READ)) ||
           must(worker, "fi_enable", fi_enable(worker->ep)) ||
           must(worker, "fi_mr_reg",
                fi_mr_reg(worker->domain, worker->window,
                          sizeof(worker->window), FI_REMOTE_WRITE, 0,
                          STORM_KEY, 0, &worker->mr, NULL)) ||
           must(worker, "bind mr", fi_mr_bind(worker->mr, &worker->ep->fid,
                                              0)) ||
           must(worker, "fi_mr_enable", fi_mr_enable(worker->mr));
}

static int open_all(storm_worker_t *worker)
{
    storm_card_t *card    = &worker->board->cards[worker->index];
    struct fi_info *hints = fi_allocinfo();
    int ret;

    hints->fabric_attr->prov_name = strdup("cxiemu");
    hints->ep_attr->type          = FI_EP_RDM;
    hints->caps                   = FI_TAGGED | FI_RMA | FI_TRIGGER;
    hints->domain_attr->mr_mode   = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
    ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &worker->info);
    fi_freeinfo(hints);
    if (must(worker, "fi_getinfo", ret) ||
        must(worker, "fi_fabric", fi_fabric(worker->info->fabric_attr,
                                            &worker->fabric, NULL)) ||
        must(worker, "fi_domain", fi_domain(worker->fabric, worker->info,
                                            &worker->domain, NULL)) ||
        open_queue(worker) || open_endpoint(worker)) {
        return -1;
    }

    card->length = sizeof(card->name);
    if (must(worker, "fi_getname", fi_getname(&worker->ep->fid, card->name,
                                              &card->length)) != 0) {
        return -1;
    }
    card->key = fi_mr_key(worker->mr);
    set(&card->ready);
    return 0;
}

/* One that is killed before it could tell its name is dead from the start */
static void meet(storm_worker_t *worker, storm_peer_t *peer)
{
    storm_card_t *card       = &worker->board->cards[peer->index];
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};

    while (!get(&card->ready)) {
        if (get(&card->killed)) {
            peer->dead = 1;
            return;
        }
        fi_cq_read(worker->cq, NULL, 0);
        usleep(100);
    }
    if (fi_av_insert(worker->av, card->name, 1, &peer->addr, 0, NULL) != 1) {
        peer->dead = 1;
        return;
    }
    peer->key        = card->key;
    peer->out_state  = worker->board->seed + (worker->index * 16) +
                       peer->index;
    peer->in_state   = worker->board->seed + (peer->index * 16) +
                       worker->index;
    peer->out        = malloc(STORM_LARGEST);
    peer->in         = malloc(STORM_LARGEST);
    peer->send.peer  = peer;
    peer->recv.peer  = peer;
    peer->write.peer = peer;
    must(worker, "fi_cntr_open", fi_cntr_open(worker->domain, &attr,
                                              &peer->trigger, NULL));
    must(worker, "fi_cntr_open", fi_cntr_open(worker->domain, &attr,
                                              &peer->fired, NULL));
}

static size_t next_length(uint64_t *state)
{
    uint64_t x = storm_random(state);

    return (x >> 8) % ((x & 7) ? 3000 : STORM_LARGEST);
}

static uint8_t byte_of(int from, unsigned number, size_t i)
{
    return (uint8_t)((from * 77) + (number * 31) + (i * 7) + (i >> 9));
}

/* Whether the call was accepted; one to a dead peer says so */
static int accepted(storm_worker_t *worker, storm_peer_t *peer, ssize_t ret)
{
    if (ret == -FI_EHOSTUNREACH) {
        peer->dead = 1;
    } else if ((ret != 0) && (ret != -FI_EAGAIN)) {
        complain(worker, "posting to %d: %s", peer->index, fi_strerror(-ret));
    }
    return ret == 0;
}

static void send_next(storm_worker_t *worker, storm_peer_t *peer)
{
    uint64_t state = peer->out_state;
    size_t length  = next_length(&state);
    size_t i;

    for (i = 0; i < length; ++i) {
        peer->out[i] = byte_of(worker->index, peer->sent, i);
    }
    if (accepted(worker, peer,
                 fi_tsend(worker->ep, peer->out, length, NULL, peer->addr,
                          worker->index, &peer->send))) {
        peer->out_state = state;
        peer->send.busy = 1;
        ++peer->sent;
    }
}

static void recv_next(storm_worker_t *worker, storm_peer_t *peer)
{
    if (accepted(worker, peer,
                 fi_trecv(worker->ep, peer->in, STORM_LARGEST, NULL,
                          FI_ADDR_UNSPEC, peer->index, 0, &peer->recv))) {
        peer->in_length = next_length(&peer->in_state);
        peer->recv.busy = 1;
    }
}

static void check_message(storm_worker_t *worker, storm_peer_t *peer,
                          size_t length)
{
    size_t i;

    if (length != peer->in_length) {
        complain(worker, "message %u of %d has %zu bytes, not %zu",
                 peer->received, peer->index, length, peer->in_length);
        return;
    }
    for (i = 0; i < length; ++i) {
        if (peer->in[i] != byte_of(peer->index, peer->received, i)) {
            complain(worker, "message %u of %d is wrong at byte %zu of %zu",
                     peer->received, peer->index, i, length);
            return;
        }
    }
}

static void write_next(storm_worker_t *worker, storm_peer_t *peer)
{
    ++peer->word;
    peer->write.busy =
        accepted(worker, peer,
                 fi_write(worker->ep, &peer->word, 8, NULL, peer->addr,
                          64 * worker->index, peer->key, &peer->write));
}

static void defer_next(storm_worker_t *worker, storm_peer_t *peer)
{
    struct fi_msg_rma msg = {
        .msg_iov       = &peer->iov,
        .iov_count     = 1,
        .addr          = peer->addr,
        .rma_iov       = &peer->rma_iov,
        .rma_iov_count = 1,
        .context       = &peer->work.context
    };

    peer->iov.iov_base         = &peer->word;
    peer->iov.iov_len          = 8;
    peer->rma_iov.addr         = (64 * worker->index) + 8;
    peer->rma_iov.len          = 8;
    peer->rma_iov.key          = peer->key;
    peer->rma.ep               = worker->ep;
    peer->rma.msg              = msg;
    peer->work.op_type         = FI_OP_WRITE;
    peer->work.op.rma          = &peer->rma;
    peer->work.triggering_cntr = peer->trigger;
    peer->work.completion_cntr = peer->fired;
    peer->work.threshold       = peer->queued + 1;
    if (accepted(worker, peer, fi_control(&worker->domain->fid, FI_QUEUE_WORK,
                                          &peer->work))) {
        ++peer->queued;
        must(worker, "fi_cntr_add", fi_cntr_add(peer->trigger, 1));
    }
}

static int defer_is_over(storm_peer_t *peer)
{
    if (fi_cntr_readerr(peer->fired) > 0) {
        peer->dead = 1;
        return 1;
    }
    return fi_cntr_read(peer->fired) == peer->queued;
}

static int is_deferred(storm_worker_t *worker, const void *context)
{
    int i;

    for (i = 0; i < STORM_WORKERS; ++i) {
        if (context == &worker->peers[i].work.context) {
            return 1;
        }
    }
    return 0;
}

static void completed(storm_worker_t *worker,
                      const struct fi_cq_tagged_entry *entry)
{
    storm_card_t *card = &worker->board->cards[worker->index];
    storm_op_t *op     = entry->op_context;
    storm_peer_t *peer;

    if (is_deferred(worker, op)) {
        return;
    }
    peer     = op->peer;
    op->busy = 0;
    if (op == &peer->recv) {
        check_message(worker, peer, entry->len);
        ++peer->received;
        __atomic_store_n(&card->received[peer->index], peer->received,
                         __ATOMIC_RELEASE);
    }
}

static void failed(storm_worker_t *worker)
{
    struct fi_cq_err_entry err = {0};
    storm_op_t *op;

    if (fi_cq_readerr(worker->cq, &err, 0) != 1) {
        return;
    }
    /* Deferred work says it by its counter, too */
    if ((err.op_context == NULL) || is_deferred(worker, err.op_context)) {
        return;
    }
    op       = err.op_context;
    op->busy = 0;
    if (err.err == FI_ECANCELED) {
        return;
    }
    op->peer->dead = 1;
    if (err.err != FI_EHOSTUNREACH) {
        complain(worker, "an operation with %d failed: %s", op->peer->index,
                 fi_strerror(err.err));
    }
}

static void reap(storm_worker_t *worker)
{
    struct fi_cq_tagged_entry entry;
    ssize_t ret;

    do {
        ret = fi_cq_read(worker->cq, &entry, 1);
        if (ret == -FI_EAVAIL) {
            failed(worker);
        } else if (ret == 1) {
            completed(worker, &entry);
        } else if (ret != -FI_EAGAIN) {
            complain(worker, "fi_cq_read: %zd", ret);
        }
    } while (ret != -FI_EAGAIN && !worker->failed);
}

/* Returns whether nothing is left to be done with this peer */
static int serve(storm_worker_t *worker, storm_peer_t *peer)
{
    if (peer->dead) {
        if (!get(&worker->board->cards[peer->index].killed)) {
            complain(worker, "%d is called dead and was not killed",
                     peer->index);
        }
        if (peer->recv.busy) {
            fi_cancel(&worker->ep->fid, &peer->recv);
        }
        return !peer->send.busy && !peer->recv.busy && !peer->write.busy;
    }
    if (!peer->send.busy && (peer->sent < STORM_ROUNDS)) {
        send_next(worker, peer);
    }
    if (!peer->dead && !peer->recv.busy && (peer->received < STORM_ROUNDS)) {
        recv_next(worker, peer);
    }
    if (!peer->dead && !peer->write.busy) {
        write_next(worker, peer);
    }
    if (!peer->dead && defer_is_over(peer) && !peer->dead) {
        defer_next(worker, peer);
    }
    return (peer->received == STORM_ROUNDS) && (peer->sent == STORM_ROUNDS) &&
           !peer->send.busy;
}

/* Whether all that live have set the flag at this place of their cards */
static int all_have(storm_worker_t *worker, size_t field)
{
    const storm_card_t *card;
    int i;

    for (i = 0; i < STORM_WORKERS; ++i) {
        card = &worker->board->cards[i];
        if (!get(&card->killed) && !get((const int*)((char*)card + field))) {
            return 0;
        }
    }
    return 1;
}

static void talk(storm_worker_t *worker)
{
    int i, through;

    do {
        reap(worker);
        for (i = 0, through = 1; i < STORM_WORKERS; ++i) {
            if (i != worker->index) {
                through &= serve(worker, &worker->peers[i]);
            }
        }
        if (through) {
            set(&worker->board->cards[worker->index].done);
        }
        sched_yield();
    } while (!worker->failed &&
             !(through && get(&worker->board->calm) &&
               all_have(worker, offsetof(storm_card_t, done))));
}

/* Nobody closes what another one may still write to: what is under way ends
 * first, everywhere */
static void part(storm_worker_t *worker)
{
    storm_peer_t *peer;
    int i, quiet;

    do {
        reap(worker);
        for (i = 0, quiet = 1; i < STORM_WORKERS; ++i) {
            peer   = &worker->peers[i];
            quiet &= (i == worker->index) || peer->dead ||
                     (!peer->write.busy && defer_is_over(peer));
        }
        if (quiet || worker->failed) {
            set(&worker->board->cards[worker->index].quiet);
        }
        sched_yield();
    } while (!worker->failed &&
             !all_have(worker, offsetof(storm_card_t, quiet)));
}

static void drop(storm_worker_t *worker, struct fid *fid)
{
    if (fid != NULL) {
        must(worker, "fi_close", fi_close(fid));
    }
}

static void close_all(storm_worker_t *worker)
{
    int i;

    drop(worker, &worker->mr->fid);
    drop(worker, &worker->ep->fid);
    for (i = 0; i < STORM_WORKERS; ++i) {
        if (worker->peers[i].out != NULL) {
            drop(worker, &worker->peers[i].trigger->fid);
            drop(worker, &worker->peers[i].fired->fid);
        }
        free(worker->peers[i].out);
        free(worker->peers[i].in);
    }
    drop(worker, &worker->counts[0]->fid);
    drop(worker, &worker->counts[1]->fid);
    drop(worker, &worker->cq->fid);
    drop(worker, &worker->av->fid);
    drop(worker, &worker->domain->fid);
    drop(worker, &worker->fabric->fid);
    fi_freeinfo(worker->info);
}

int storm_work(storm_board_t *board, int index)
{
    storm_worker_t worker = {.board = board, .index = index};
    int i;

    if (open_all(&worker) != 0) {
        return EXIT_FAILURE;
    }
    for (i = 0; i < STORM_WORKERS; ++i) {
        worker.peers[i].index = i;
        if (i != index) {
            meet(&worker, &worker.peers[i]);
        }
    }
    talk(&worker);
    part(&worker);
    close_all(&worker);
    return worker.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
