/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_storm_rank.c - one of the ranks of fab_storm, on libfabric alone.
 *
 * To each other rank, as long as it lives, it has one message, one write and
 * one deferred write under way at any time. Messages have random lengths and
 * are checked. Whatever is under way to a rank that is killed must end, and
 * nothing else may fail. While a rank is stopped, the others go on.
 */
#include "st_storm.h"
#include "st_bytes.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STORM_ROUNDS  40
#define STORM_LARGEST 400000
#define STORM_KEY     5
#define STORM_NAME    128

/* The card's return code: the address has no portal entry */
#define STORM_GONE 26

/* How far a rank is: through with all but the victim, with all, and with
 * nothing under way */
enum {
    PHASE_MOST = STORM_PHASE_OTHERS,
    PHASE_ALL,
    PHASE_QUIET
};

/** What a rank's card has in the place of an address. */
typedef struct {
    char     name[STORM_NAME];
    uint64_t key;
} storm_address_t;


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
    uint64_t          window[8 * STORM_MAX_RANKS];
    storm_peer_t      peers[STORM_MAX_RANKS];
} storm_worker_t;


#define COMPLAIN(_worker, ...) \
    storm_complain(&(_worker)->board->card[(_worker)->index], __VA_ARGS__)

static void must(storm_worker_t *worker, const char *what, int ret)
{
    if (ret != 0) {
        COMPLAIN(worker, "%s: %s", what, fi_strerror(-ret));
    }
}

/* A step, which may be the one that ends the victim. One that is stopped must
 * have told its name: the others wait for that, as they should. */
static void at(storm_worker_t *worker, const char *where, int is_open)
{
    if (is_open || !worker->board->stops) {
        storm_at(worker->board, worker->index, where);
    }
}

static void open_queue(storm_worker_t *worker)
{
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 1024};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cntr_attr attr  = {.events = FI_CNTR_EVENTS_COMP};
    int i;

    must(worker, "fi_cq_open",
         fi_cq_open(worker->domain, &cq_attr, &worker->cq, NULL));
    must(worker, "fi_av_open",
         fi_av_open(worker->domain, &av_attr, &worker->av, NULL));
    for (i = 0; i < 2; ++i) {
        must(worker, "fi_cntr_open",
             fi_cntr_open(worker->domain, &attr, &worker->counts[i], NULL));
    }
}

static void open_endpoint(storm_worker_t *worker)
{
    must(worker, "fi_endpoint",
         fi_endpoint(worker->domain, worker->info, &worker->ep, NULL));
    must(worker, "bind cq",
         fi_ep_bind(worker->ep, &worker->cq->fid, FI_TRANSMIT | FI_RECV));
    must(worker, "bind av", fi_ep_bind(worker->ep, &worker->av->fid, 0));
    must(worker, "bind write",
         fi_ep_bind(worker->ep, &worker->counts[0]->fid, FI_WRITE));
    must(worker, "bind read",
         fi_ep_bind(worker->ep, &worker->counts[1]->fid, FI_READ));
    must(worker, "fi_enable", fi_enable(worker->ep));
    must(worker, "fi_mr_reg",
         fi_mr_reg(worker->domain, worker->window, sizeof(worker->window),
                   FI_REMOTE_WRITE, 0, STORM_KEY, 0, &worker->mr, NULL));
    must(worker, "bind mr", fi_mr_bind(worker->mr, &worker->ep->fid, 0));
    must(worker, "fi_mr_enable", fi_mr_enable(worker->mr));
}

static void open_all(storm_worker_t *worker)
{
    storm_card_t *card       = &worker->board->card[worker->index];
    storm_address_t *address = (storm_address_t*)card->address;
    struct fi_info *hints    = fi_allocinfo();
    size_t length            = sizeof(address->name);

    hints->fabric_attr->prov_name = strdup("cxiemu");
    hints->ep_attr->type          = FI_EP_RDM;
    hints->caps                   = FI_TAGGED | FI_RMA | FI_TRIGGER;
    hints->domain_attr->mr_mode   = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
    at(worker, "opening", 0);
    must(worker, "fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0,
                                          hints, &worker->info));
    fi_freeinfo(hints);
    must(worker, "fi_fabric",
         fi_fabric(worker->info->fabric_attr, &worker->fabric, NULL));
    must(worker, "fi_domain",
         fi_domain(worker->fabric, worker->info, &worker->domain, NULL));
    at(worker, "opening its endpoint", 0);
    open_queue(worker);
    open_endpoint(worker);
    must(worker, "fi_getname",
         fi_getname(&worker->ep->fid, address->name, &length));
    address->key = fi_mr_key(worker->mr);
    at(worker, "telling its name", 0);
    storm_publish(worker->board, worker->index, length);
}

/* One that is killed before it could tell its name is dead from the start */
static void meet(storm_worker_t *worker, storm_peer_t *peer)
{
    storm_card_t *card             = &worker->board->card[peer->index];
    const storm_address_t *address = (const storm_address_t*)card->address;
    struct fi_cntr_attr attr       = {.events = FI_CNTR_EVENTS_COMP};

    at(worker, "meeting others", 0);
    while (!storm_is_published(worker->board, peer->index)) {
        if (storm_is_killed(worker->board, peer->index)) {
            peer->dead = 1;
            return;
        }
        fi_cq_read(worker->cq, NULL, 0);
        usleep(100);
    }
    if (fi_av_insert(worker->av, address->name, 1, &peer->addr, 0, NULL) != 1) {
        peer->dead = 1;
        return;
    }
    peer->key        = address->key;
    peer->out_state  = worker->board->seed + (worker->index * 16) +
                       peer->index;
    peer->in_state   = worker->board->seed + (peer->index * 16) +
                       worker->index;
    peer->out        = malloc(STORM_LARGEST);
    peer->in         = malloc(STORM_LARGEST);
    peer->send.peer  = peer;
    peer->recv.peer  = peer;
    peer->write.peer = peer;
    must(worker, "fi_cntr_open",
         fi_cntr_open(worker->domain, &attr, &peer->trigger, NULL));
    must(worker, "fi_cntr_open",
         fi_cntr_open(worker->domain, &attr, &peer->fired, NULL));
}

static size_t next_length(uint64_t *state)
{
    uint64_t x = st_bytes_random(state);

    return (x >> 8) % ((x & 7) ? 3000 : STORM_LARGEST);
}

static uint64_t seed_of(int from, unsigned number)
{
    return st_bytes_mix((uint64_t)from, number);
}

/* Whether the call was accepted, as one to a dead peer is */
static int accepted(storm_worker_t *worker, storm_peer_t *peer, ssize_t ret)
{
    at(worker, "posting", 1);
    if ((ret != 0) && (ret != -FI_EAGAIN)) {
        COMPLAIN(worker, "posting to %d: %s", peer->index,
                 fi_strerror((int)-ret));
    }
    return ret == 0;
}

static void send_next(storm_worker_t *worker, storm_peer_t *peer)
{
    uint64_t state = peer->out_state;
    size_t length  = next_length(&state);

    st_bytes_fill(peer->out, length, seed_of(worker->index, peer->sent));
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
    size_t bad;

    if (length != peer->in_length) {
        COMPLAIN(worker, "message %u of %d has %zu bytes, not %zu",
                 peer->received, peer->index, length, peer->in_length);
    }
    bad = st_bytes_check(peer->in, length,
                         seed_of(peer->index, peer->received));
    if (bad != ST_BYTES_NONE) {
        COMPLAIN(worker, "message %u of %d is wrong at byte %zu of %zu",
                 peer->received, peer->index, bad, length);
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

    for (i = 0; i < worker->board->ranks; ++i) {
        if (context == &worker->peers[i].work.context) {
            return 1;
        }
    }
    return 0;
}

static void completed(storm_worker_t *worker,
                      const struct fi_cq_tagged_entry *entry)
{
    storm_op_t *op = entry->op_context;
    storm_peer_t *peer;

    at(worker, "reaping", 1);
    if (is_deferred(worker, op)) {
        return;
    }
    peer     = op->peer;
    op->busy = 0;
    if (op == &peer->recv) {
        check_message(worker, peer, entry->len);
        ++peer->received;
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
    if ((err.err != FI_EIO) || (err.prov_errno != STORM_GONE)) {
        COMPLAIN(worker, "an operation with %d failed: %s", op->peer->index,
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
            COMPLAIN(worker, "fi_cq_read: %zd", ret);
        }
    } while (ret != -FI_EAGAIN);
}

/* Returns whether nothing is left to be done with this peer */
static int serve(storm_worker_t *worker, storm_peer_t *peer)
{
    if (peer->dead) {
        if (!storm_is_killed(worker->board, peer->index)) {
            COMPLAIN(worker, "%d is called dead and was not killed",
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

static void talk(storm_worker_t *worker)
{
    int i, most, all, through;

    do {
        reap(worker);
        for (i = 0, most = 1, all = 1; i < worker->board->ranks; ++i) {
            if (i != worker->index) {
                through = serve(worker, &worker->peers[i]);
                all    &= through;
                most   &= through || (i == worker->board->victim);
            }
        }
        storm_reach(worker->board, worker->index,
                    all ? PHASE_ALL : most ? PHASE_MOST : 0);
        sched_yield();
    } while (!(all && storm_have_reached(worker->board, PHASE_ALL)));
}

/* Nobody closes what another one may still write to: what is under way ends
 * first, everywhere */
static void part(storm_worker_t *worker)
{
    storm_peer_t *peer;
    int i, quiet;

    do {
        reap(worker);
        for (i = 0, quiet = 1; i < worker->board->ranks; ++i) {
            peer   = &worker->peers[i];
            quiet &= (i == worker->index) || peer->dead ||
                     (!peer->write.busy && defer_is_over(peer));
        }
        if (quiet) {
            storm_reach(worker->board, worker->index, PHASE_QUIET);
        }
        sched_yield();
    } while (!storm_have_reached(worker->board, PHASE_QUIET));
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
    for (i = 0; i < worker->board->ranks; ++i) {
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

int storm_rank_main(storm_board_t *board, int index)
{
    static storm_worker_t worker;
    int i;

    setenv("FI_PROVIDER_PATH", FAB_MODULE_DIR, 1);
    setenv("FI_PROVIDER", "cxiemu", 1);
    worker.board = board;
    worker.index = index;
    open_all(&worker);
    for (i = 0; i < board->ranks; ++i) {
        worker.peers[i].index = i;
        if (i != index) {
            meet(&worker, &worker.peers[i]);
        }
    }
    talk(&worker);
    part(&worker);
    at(&worker, "closing", 1);
    close_all(&worker);
    return storm_end(board, index);
}
