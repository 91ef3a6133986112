/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cxiemu_fuzz.c - whatever another process may write: addresses, ports of
 * a NIC, records and acknowledgements of a link. Nothing of it reaches memory
 * that was not given to peers, and afterwards the card works.
 *
 * The endpoint is its own peer. What its link takes as coming from elsewhere is
 * written by the test; memory that records name as the initiator's is that of a
 * child, which does nothing.
 */
#include "cxiemu_side.h"
#include "fuzz_util.h"
#include "st_cunit.h"
#include "base/cxiemu_addr.h"
#include "fabric/cxiemu_fabric.h"
#include "nic/cxiemu_link.h"
#include "nic/cxiemu_peer.h"
#include "nic/cxiemu_proto.h"
#include "run/cxiemu_wait.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENGTH   (64u << 10)
#define GUARD    4096u
#define BUFFERS  8
#define RECORDS  8

/* That no record has: neither small nor near a power of two */
#define LAST_TAG 0x3a7c51d29b64ul

/** Buffers of receives and operations, with bytes around them that nothing may
 *  change. */
typedef struct {
    cxiemu_side_t side;
    pid_t         child;
    uint8_t       *memory;
} target_t;

static uint8_t *target_buffer(target_t *target, unsigned i)
{
    return target->memory + GUARD + (i * (LENGTH + GUARD));
}

/* So many bytes at its end: the guard is behind them */
static uint8_t *target_end(target_t *target, unsigned i, size_t length)
{
    return target_buffer(target, i) + LENGTH - length;
}

static void target_open(target_t *target)
{
    size_t length = GUARD + (BUFFERS * (LENGTH + GUARD));

    CU_ASSERT_FATAL(cxiemu_side_open(&target->side, LENGTH) == 0);
    CU_ASSERT_FATAL(cxiemu_side_set_peer(&target->side,
                                         target->side.name) == 0);
    cxiemu_thread_stop(target->side.nic);
    target->memory = malloc(length);
    CU_ASSERT_FATAL(target->memory != NULL);
    memset(target->memory, 0xa5, length);
    target->child = fork();
    if (target->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pause();
        }
    }
    CU_ASSERT_FATAL(target->child > 0);
}

static void target_check(target_t *target)
{
    unsigned i, k;

    for (i = 0; i <= BUFFERS; ++i) {
        for (k = 0; k < GUARD; ++k) {
            CU_ASSERT_FATAL(target_buffer(target, i)[-(int)GUARD + (int)k] ==
                            0xa5);
        }
    }
}

static void target_drain(target_t *target)
{
    struct fi_cq_err_entry error = {0};
    struct fi_cq_tagged_entry entry;
    ssize_t ret;

    while ((ret = fi_cq_read(target->side.cq, &entry, 1)) != -FI_EAGAIN) {
        if (ret == -FI_EAVAIL) {
            (void)fi_cq_readerr(target->side.cq, &error, 0);
        }
    }
}

/* All links end, and the peer is one that was never sent to */
static void target_reset(target_t *target)
{
    cxiemu_nic_t *nic = target->side.nic;
    cxiemu_link_t *link;

    cxiemu_nic_lock(nic);
    while ((link = TAILQ_FIRST(&nic->links)) != NULL) {
        cxiemu_link_lose(link);
        (void)cxiemu_nic_progress(nic);
    }
    cxiemu_nic_unlock(nic);
    target_drain(target);
    CU_ASSERT(fi_av_remove(target->side.av, &target->side.peer, 1, 0) == 0);
    CU_ASSERT(cxiemu_side_set_peer(&target->side, target->side.name) == 0);
}

/* The link from this NIC to itself, as one of its ends has it; made anew if
 * what came has ended it */
static cxiemu_link_t *target_link(target_t *target, int is_tx)
{
    cxiemu_nic_t *nic = target->side.nic;
    cxiemu_link_t *link;

    for (;;) {
        TAILQ_FOREACH(link, &nic->links, list) {
            if ((link->is_tx == is_tx) && (link->peer == nic->nonce)) {
                return link;
            }
        }
        target_reset(target);
        CU_ASSERT_FATAL(fi_inject(target->side.ep, target->memory, 8,
                                  target->side.peer) == 0);
        target_drain(target);
    }
}

/* The card is as it was: a message arrives */
static void target_close(target_t *target)
{
    uint64_t sent = 4711;

    target_reset(target);
    target_check(target);
    *(uint64_t*)target_buffer(target, 0) = 0;
    CU_ASSERT(fi_trecv(target->side.ep, target_buffer(target, 0), 8, NULL,
                       FI_ADDR_UNSPEC, LAST_TAG, 0, &sent) == 0);
    CU_ASSERT(fi_tsend(target->side.ep, &sent, sizeof(sent), NULL,
                       target->side.peer, LAST_TAG, NULL) == 0);
    while (*(volatile uint64_t*)target_buffer(target, 0) != sent) {
        target_drain(target);
    }
    CU_ASSERT(kill(target->child, SIGKILL) == 0);
    CU_ASSERT(waitpid(target->child, NULL, 0) == target->child);
    CU_ASSERT(cxiemu_side_close(&target->side) == 0);
    free(target->memory);
}

#define TARGET_CASE(_name) \
    ST_CASE_WITH(_name, target_t, target, target_open(target), \
                 target_close(target))


static int one_in(fuzz_t *fuzz, unsigned count)
{
    return fuzz_random(fuzz, count) == 0;
}

/* Something that is mostly in bounds */
static uint64_t near(fuzz_t *fuzz, uint64_t bound)
{
    return one_in(fuzz, 32) ? fuzz_number(fuzz) : fuzz_random(fuzz, bound + 2);
}

/* A chunk of one of the last messages that was asked for */
static void draw_chunk(fuzz_t *fuzz, const target_t *target, cxiemu_rec_t *rec)
{
    const cxiemu_ep_t *ep = cxiemu_ep_handle(&target->side.ep->fid)->ep;
    const cxiemu_rx_t *rx = (rec->flags & CXIEMU_REC_TAGGED) ? &ep->tagged :
                                                               &ep->msg;

    rec->tag = rx->next_id - fuzz_random(fuzz, 3);
    if (!one_in(fuzz, 4)) {
        rec->data = 0;
    }
}

static void draw_record(fuzz_t *fuzz, const target_t *target,
                        cxiemu_rec_t *rec, uint32_t rest)
{
    int is_read;

    memset(rec, 0, sizeof(*rec));
    rec->type   = (uint8_t)fuzz_random(fuzz, CXIEMU_REC_ATOMIC + 1);
    rec->cells  = (uint8_t)(1 + fuzz_random(fuzz, (rest < 34) ? rest : 34));
    is_read     = (rec->type == CXIEMU_REC_READ);
    rec->flags  = (uint16_t)(fuzz_random(fuzz, 512) & ~CXIEMU_REC_SLOT);
    rec->op     = (uint32_t)near(fuzz, 0);
    rec->dst_ep = one_in(fuzz, 32) ? (uint16_t)fuzz_number(fuzz) : 0;
    rec->tag    = one_in(fuzz, 2) ? CXIEMU_SIDE_KEY : near(fuzz, 4);
    rec->length = (uint32_t)near(fuzz, LENGTH);
    rec->addr   = near(fuzz, LENGTH);
    rec->code   = CXIEMU_ATOMIC_CODE(fuzz_random(fuzz, 4),
                                     fuzz_random(fuzz, 20),
                                     fuzz_random(fuzz, 20));
    rec->source = near(fuzz, LENGTH);
    rec->data   = near(fuzz, LENGTH);
    if (cxiemu_rec_brings(rec->type) || is_read) {
        /* Mostly as long as there is room for */
        rec->length = (uint32_t)near(fuzz, cxiemu_rec_room(rec) - 2);
        if (one_in(fuzz, 2)) {
            rec->flags |= CXIEMU_REC_SLOT;
            rec->source = fuzz_random(fuzz, CXIEMU_SLOTS);
            rec->length = (uint32_t)near(fuzz, CXIEMU_SLOT_SIZE - 2);
        }
    }
    if (rec->type == CXIEMU_REC_DATA) {
        draw_chunk(fuzz, target, rec);
    }
    if (one_in(fuzz, 16)) {
        fuzz_scribble(fuzz, rec, sizeof(*rec));
    }
}

/* Receives that records may find: some are longer than a message */
static void post_receives(fuzz_t *fuzz, target_t *target)
{
    unsigned i = (unsigned)fuzz_random(fuzz, BUFFERS);
    size_t max = (size_t)fuzz_random(fuzz, LENGTH + 1);
    void *data = target_end(target, i, max);

    if (one_in(fuzz, 2)) {
        (void)fi_recv(target->side.ep, data, max, NULL, FI_ADDR_UNSPEC, NULL);
    } else {
        (void)fi_trecv(target->side.ep, data, max, NULL, FI_ADDR_UNSPEC,
                       fuzz_random(fuzz, 4), 0, NULL);
    }
}

/* What an initiator writes: records in its ring, and the words beside it */
TARGET_CASE(records)
{
    cxiemu_nic_t *nic = target->side.nic;
    cxiemu_link_t *link;
    cxiemu_rec_t *rec;
    unsigned i, count;
    uint32_t head;
    fuzz_t fuzz;

    fuzz_begin(&fuzz, 8000);
    while (fuzz_next(&fuzz)) {
        link               = target_link(target, 0);
        link->same_process = 0;
        link->may_attach   = (int)fuzz_random(&fuzz, 2);
        link->pid          = (uint32_t)target->child;
        post_receives(&fuzz, target);
        cxiemu_nic_lock(nic);
        head  = link->head;
        count = 1 + (unsigned)fuzz_random(&fuzz, RECORDS);
        for (i = 0; i < count; ++i) {
            rec = (cxiemu_rec_t*)&link->shm->cells[(head % CXIEMU_CELLS) *
                                                   CXIEMU_CELL_SIZE];
            draw_record(&fuzz, target, rec,
                        CXIEMU_CELLS - (head % CXIEMU_CELLS));
            rec->seq = head + 1;
            head    += rec->cells;
        }
        if (one_in(&fuzz, 16)) {
            fuzz_scribble(&fuzz, &link->shm->stalled, sizeof(uint32_t));
            fuzz_scribble(&fuzz, &link->shm->ack_head, sizeof(uint32_t));
        }
        (void)cxiemu_link_drain(nic, link->port, 64);
        (void)cxiemu_nic_progress(nic);
        cxiemu_nic_unlock(nic);
        target_drain(target);
        if (one_in(&fuzz, 256)) {
            target_check(target);
        }
    }
}

static void draw_ack(fuzz_t *fuzz, cxiemu_ack_t *ack)
{
    *ack = (cxiemu_ack_t){
        .type   = (uint16_t)fuzz_random(fuzz, 3),
        .status = one_in(fuzz, 3) ? (uint16_t)fuzz_number(fuzz) : 0,
        .op     = (uint32_t)near(fuzz, 16),
        .slot   = one_in(fuzz, 2) ? (uint32_t)near(fuzz, CXIEMU_SLOTS) :
                                    UINT32_MAX,
        .value  = fuzz_number(fuzz)
    };
    if (one_in(fuzz, 4)) {
        fuzz_scribble(fuzz, ack, sizeof(*ack));
    }
}

/* Operations for what comes back to be taken for */
static void start_operations(fuzz_t *fuzz, target_t *target)
{
    unsigned i    = (unsigned)fuzz_random(fuzz, BUFFERS);
    size_t length = (size_t)fuzz_random(fuzz, one_in(fuzz, 2) ? 16 : LENGTH);
    uint8_t *data = target_end(target, i, (length < 8) ? 8 : length);
    cxiemu_side_t *side = &target->side;

    switch (fuzz_random(fuzz, 4)) {
    case 0:
        (void)fi_read(side->ep, data, length, NULL, side->peer, 0,
                      CXIEMU_SIDE_KEY, NULL);
        break;
    case 1:
        (void)fi_write(side->ep, data, length, NULL, side->peer, 0,
                       CXIEMU_SIDE_KEY, NULL);
        break;
    case 2:
        (void)fi_tsend(side->ep, data, length, NULL, side->peer, 1, NULL);
        break;
    default:
        (void)fi_fetch_atomic(side->ep, data, 1, NULL, data, NULL, side->peer,
                              0, CXIEMU_SIDE_KEY, FI_UINT64, FI_SUM, NULL);
        break;
    }
}

/* What a target writes: acknowledgements, and the words beside them */
TARGET_CASE(acks)
{
    cxiemu_nic_t *nic = target->side.nic;
    cxiemu_link_t *link;
    cxiemu_ack_t *ack;
    unsigned i, count;
    fuzz_t fuzz;

    fuzz_begin(&fuzz, 10000);
    while (fuzz_next(&fuzz)) {
        link = target_link(target, 1);
        if (link->same_process) {
            link->same_process = 0; /* Slots are used, too */
        }
        cxiemu_nic_lock(nic);
        nic->in_progress = 1; /* Nothing is taken meanwhile */
        cxiemu_nic_unlock(nic);
        start_operations(&fuzz, target);
        cxiemu_nic_lock(nic);
        nic->in_progress = 0;
        count = (unsigned)fuzz_random(&fuzz, 4);
        for (i = 0; i < count; ++i) {
            ack = &link->shm->acks[(link->ack_next + i) % CXIEMU_ACKS];
            draw_ack(&fuzz, ack);
            ack->seq = link->ack_next + i + 1;
        }
        if (one_in(&fuzz, 16)) {
            fuzz_scribble(&fuzz, &link->shm->head, sizeof(uint32_t));
            fuzz_scribble(&fuzz, &link->shm->attached, sizeof(uint32_t));
        }
        (void)cxiemu_link_drain(nic, link->port, 64);
        if (one_in(&fuzz, 32)) {
            cxiemu_link_lose(link);
            (void)cxiemu_nic_progress(nic);
        }
        cxiemu_nic_unlock(nic);
        target_drain(target);
        if (one_in(&fuzz, 256)) {
            target_check(target);
        }
    }
}

/* What a process writes that has mapped a NIC's memory: ports, bits of those
 * that are ready, and what stands in a link that is announced */
TARGET_CASE(ports)
{
    cxiemu_nic_t *nic = target->side.nic;
    cxiemu_link_t *link;
    cxiemu_port_t *port;
    cxiemu_link_id_t id;
    fuzz_t fuzz;

    fuzz_begin(&fuzz, 5000);
    while (fuzz_next(&fuzz)) {
        link = target_link(target, 1);
        id   = link->shm->id;
        port = &nic->shm->ports[fuzz_random(&fuzz, CXIEMU_PORTS)];
        if (nic->ports[port - nic->shm->ports] != NULL) {
            continue;
        }
        *port = (cxiemu_port_t){
            .owner = cxiemu_port_owner(nic->nonce, (uint32_t)getpid()),
            .link  = id.nonce,
            .fd    = (uint32_t)nic->map->fd
        };
        if (!one_in(&fuzz, 4)) {
            fuzz_scribble(&fuzz, port, sizeof(*port));
        }
        fuzz_scribble(&fuzz, &link->shm->id, sizeof(id));
        cxiemu_nic_notify(nic->shm, (uint32_t)(port - nic->shm->ports));
        fuzz_scribble(&fuzz, nic->shm->ready, sizeof(nic->shm->ready));
        nic->shm->summary |= fuzz_number(&fuzz);
        cxiemu_nic_lock(nic);
        (void)cxiemu_nic_progress(nic);
        cxiemu_port_sweep(nic);
        cxiemu_nic_unlock(nic);
        target_drain(target);
        link = target_link(target, 1);
        link->shm->id = id;
        if (nic->ports[port - nic->shm->ports] == NULL) {
            memset(port, 0, sizeof(*port));
        }
    }
}

/* Addresses that came as bytes, and as text */
TARGET_CASE(addresses)
{
    cxiemu_side_t *side = &target->side;
    fuzz_input_t input;
    uint8_t data[512];
    cxiemu_addr_t addr;
    fi_addr_t index;
    char text[128];
    size_t length;
    fuzz_t fuzz;

    input = (fuzz_input_t){.data = data, .room = sizeof(data) - 1};
    fuzz_begin(&fuzz, 5000);
    while (fuzz_next(&fuzz)) {
        memcpy(&addr, side->name, sizeof(addr));
        length = (size_t)cxiemu_addr_print(&addr, text, sizeof(text));
        fuzz_set(&input, text, length);
        fuzz_mutate(&fuzz, &input);
        data[input.length] = '\0';
        (void)cxiemu_addr_parse((char*)data, &addr);

        memcpy(&addr, side->name, sizeof(addr));
        fuzz_scribble(&fuzz, &addr, sizeof(addr));
        if (fi_av_insert(side->av, &addr, 1, &index, 0, NULL) != 1) {
            continue;
        }
        length = sizeof(text);
        (void)fi_av_straddr(side->av, &addr, text, &length);
        if (one_in(&fuzz, 2)) {
            (void)fi_inject(side->ep, target->memory, 8, index);
            target_drain(target);
        }
        CU_ASSERT(fi_av_remove(side->av, &index, 1, 0) == 0);
    }
}

ST_SUITE("cxiemu_fuzz")
