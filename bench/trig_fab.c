/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trig_fab.c - the provider's side of st_trig, on libfabric's interface.
 *
 * A deferred write of 8 bytes writes the word that the other side waits for.
 * Larger ones may land in any order: the region's counter, at the target,
 * triggers an atomic there on the word.
 */
#include "trig_bench.h"

#include <cxiemu.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIG_BATCH   200u /* Operations queued at once; entries are 504 */
#define TRIG_PENDING 500u
#define TRIG_WORD    64u   /* Offset of the word that is waited for */
#define TRIG_SCRATCH 1024u /* Where pending operations would write */
#define TRIG_WORDS   4096u


typedef struct trig_work {
    struct fi_deferred_work work;
    struct iovec            iov;
    struct fi_rma_iov       rma_iov;
    struct fi_ioc           ioc;
    struct fi_rma_ioc       rma_ioc;
    struct fi_op_rma        rma;
    struct fi_op_atomic     atomic;
    uint64_t                operand;
} trig_work_t;

/* A registered buffer with its counter of remote writes */
typedef struct trig_region {
    uint8_t         *base;
    struct fid_mr   *mr;
    struct fid_cntr *landed;
    uint64_t        writes;  /* That have landed */
    uint64_t        key;     /* Of the other side */
} trig_region_t;

struct trig_fab {
    trig_rank_t                 *me;
    struct fi_info              *info;
    struct fid_fabric           *fabric;
    struct fid_domain           *domain;
    struct fid_av               *av;
    struct fid_cq               *cq;
    struct fid_ep               *ep;
    struct fid_cntr             *bound[2];
    struct fid_cntr             *trigger;
    struct fid_cntr             *done;
    struct fid_cntr             *words;
    struct fid_cntr             *never;
    struct fi_cxiemu_domain_ops *ops;     /* NULL for other providers */
    fi_addr_t                   self;
    fi_addr_t                   peer;
    trig_region_t               regions[2]; /* Private, mapped: data that
                                               comes, then data that goes */
    struct fid_mr               *word_mr;
    uint8_t                     *word_page;
    uint64_t                    word_key;  /* Of the other side */
    trig_work_t                 *works;
    uint64_t                    fired;
    uint64_t                    held;     /* Pending ones that fired */
    uint64_t                    extra;    /* Their completions */
    uint64_t                    owed;     /* Completions to be counted */
    uint64_t                    word;     /* Last value of the word sent */
    uint64_t                    *source;  /* Words to be written */
};


static void trig_must(trig_fab_t *fab, const char *what, ssize_t ret)
{
    if (ret != 0) {
        trig_give_up(fab->me, what, (int)ret);
    }
}

static void trig_getinfo(trig_fab_t *fab, const char *provider)
{
    struct fi_info *hints = fi_allocinfo();
    int ret;

    hints->fabric_attr->prov_name = strdup(provider);
    hints->ep_attr->type          = FI_EP_RDM;
    hints->caps                   = FI_TAGGED | FI_RMA | FI_ATOMIC |
                                    FI_TRIGGER | FI_RMA_EVENT;
    hints->domain_attr->mr_mode   = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
    if (!strcmp(provider, CXIEMU_PROV_NAME)) {
        ret = cxiemu_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints,
                             &fab->info);
        trig_must(fab, "cxiemu_getinfo", ret);
        ret = cxiemu_fabric(fab->info->fabric_attr, &fab->fabric, NULL);
    } else {
        ret = fi_getinfo(FI_VERSION(1, 17), strcmp(provider, "sockets") ?
                         NULL : "127.0.0.1", NULL,
                         strcmp(provider, "sockets") ? 0 : FI_SOURCE, hints,
                         &fab->info);
        trig_must(fab, "fi_getinfo", ret);
        ret = fi_fabric(fab->info->fabric_attr, &fab->fabric, NULL);
    }
    trig_must(fab, "fi_fabric", ret);
    fi_freeinfo(hints);
}

static struct fid_cntr *trig_cntr(trig_fab_t *fab)
{
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    struct fid_cntr *cntr    = NULL;

    trig_must(fab, "fi_cntr_open", fi_cntr_open(fab->domain, &attr, &cntr,
                                                NULL));
    return cntr;
}

static void trig_open_ep(trig_fab_t *fab)
{
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 4096};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    uint64_t flags            = FI_TRANSMIT | FI_RECV;

    trig_must(fab, "fi_domain", fi_domain(fab->fabric, fab->info, &fab->domain,
                                          NULL));
    trig_must(fab, "fi_av_open", fi_av_open(fab->domain, &av_attr, &fab->av,
                                            NULL));
    trig_must(fab, "fi_cq_open", fi_cq_open(fab->domain, &cq_attr, &fab->cq,
                                            NULL));
    trig_must(fab, "fi_endpoint", fi_endpoint(fab->domain, fab->info, &fab->ep,
                                              NULL));
    trig_must(fab, "fi_ep_bind", fi_ep_bind(fab->ep, &fab->cq->fid, flags));
    trig_must(fab, "fi_ep_bind", fi_ep_bind(fab->ep, &fab->av->fid, 0));
    fab->bound[0] = trig_cntr(fab);
    fab->bound[1] = trig_cntr(fab);
    trig_must(fab, "fi_ep_bind", fi_ep_bind(fab->ep, &fab->bound[0]->fid,
                                            FI_WRITE));
    trig_must(fab, "fi_ep_bind", fi_ep_bind(fab->ep, &fab->bound[1]->fid,
                                            FI_READ));
    trig_must(fab, "fi_enable", fi_enable(fab->ep));
    fab->trigger = trig_cntr(fab);
    fab->done    = trig_cntr(fab);
    fab->words   = trig_cntr(fab);
    fab->never   = trig_cntr(fab);
}

static struct fid_mr *trig_register(trig_fab_t *fab, void *base, size_t length,
                                    uint64_t key, struct fid_cntr *cntr)
{
    uint64_t access   = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    struct fid_mr *mr = NULL;

    memset(base, 0, length);
    trig_must(fab, "fi_mr_reg",
              fi_mr_reg(fab->domain, base, length, access, 0, key,
                        (cntr != NULL) ? FI_RMA_EVENT : 0, &mr, NULL));
    if (cntr != NULL) {
        trig_must(fab, "fi_mr_bind", fi_mr_bind(mr, &cntr->fid,
                                                FI_REMOTE_WRITE));
    }
    /* sockets has no such binding */
    if (fi_mr_bind(mr, &fab->ep->fid, 0) == 0) {
        trig_must(fab, "fi_mr_enable", fi_mr_enable(mr));
    }
    return mr;
}

static uint64_t trig_open_region(trig_fab_t *fab, trig_region_t *region,
                                 int mapped)
{
    size_t length = 2 * TRIG_MAX_SIZE;
    void *base    = NULL;

    if (mapped && (fab->ops != NULL)) {
        trig_must(fab, "mem_alloc", fab->ops->mem_alloc(fab->domain, length,
                                                        &base));
    } else {
        trig_must(fab, "posix_memalign", posix_memalign(&base, 4096, length));
    }
    region->base   = base;
    region->landed = trig_cntr(fab);
    region->mr     = trig_register(fab, base, length, 10 + mapped,
                                   region->landed);
    return fi_mr_key(region->mr);
}

static void trig_open_memory(trig_fab_t *fab)
{
    trig_page_t *page = fab->me->page;
    int rank          = fab->me->rank;

    trig_must(fab, "posix_memalign",
              posix_memalign((void**)&fab->word_page, 4096, TRIG_WORDS));
    fab->word_mr           = trig_register(fab, fab->word_page, TRIG_WORDS, 12,
                                           NULL);
    page->key_word[rank]   = fi_mr_key(fab->word_mr);
    page->key[rank]        = trig_open_region(fab, &fab->regions[0], 0);
    page->key_mapped[rank] = trig_open_region(fab, &fab->regions[1], 1);
}

static void trig_meet(trig_fab_t *fab)
{
    trig_page_t *page = fab->me->page;
    int rank          = fab->me->rank;

    page->name_length[rank] = TRIG_NAME_MAX;
    trig_must(fab, "fi_getname", fi_getname(&fab->ep->fid, page->name[rank],
                                            &page->name_length[rank]));
    trig_open_memory(fab);
    trig_barrier(fab->me);
    fab->regions[0].key = page->key[!rank];
    fab->regions[1].key = page->key_mapped[!rank];
    fab->word_key       = page->key_word[!rank];
    if ((fi_av_insert(fab->av, page->name[rank], 1, &fab->self, 0, NULL) !=
         1) ||
        (fi_av_insert(fab->av, page->name[!rank], 1, &fab->peer, 0, NULL) !=
         1)) {
        trig_give_up(fab->me, "fi_av_insert", 0);
    }
}

trig_fab_t *trig_fab_open(trig_rank_t *me, const char *provider)
{
    trig_fab_t *fab = calloc(1, sizeof(*fab));

    fab->me     = me;
    fab->works  = calloc(TRIG_BATCH * 2 + TRIG_PENDING, sizeof(*fab->works));
    fab->source = calloc(TRIG_BATCH, sizeof(*fab->source));
    trig_getinfo(fab, provider);
    trig_open_ep(fab);
    if (fi_open_ops(&fab->domain->fid, FI_CXIEMU_DOMAIN_OPS, 0,
                    (void**)&fab->ops, NULL) != 0) {
        fab->ops = NULL;
    }
    trig_meet(fab);
    return fab;
}

static void trig_close_region(trig_fab_t *fab, trig_region_t *region,
                              int mapped)
{
    fi_close(&region->mr->fid);
    fi_close(&region->landed->fid);
    if (mapped && (fab->ops != NULL)) {
        fab->ops->mem_free(fab->domain, region->base);
    } else {
        free(region->base);
    }
}

void trig_fab_close(trig_fab_t *fab)
{
    trig_close_region(fab, &fab->regions[0], 0);
    trig_close_region(fab, &fab->regions[1], 1);
    fi_close(&fab->word_mr->fid);
    free(fab->word_page);
    fi_close(&fab->ep->fid);
    fi_close(&fab->bound[0]->fid);
    fi_close(&fab->bound[1]->fid);
    fi_close(&fab->trigger->fid);
    fi_close(&fab->done->fid);
    fi_close(&fab->words->fid);
    fi_close(&fab->never->fid);
    fi_close(&fab->cq->fid);
    fi_close(&fab->av->fid);
    fi_close(&fab->domain->fid);
    fi_close(&fab->fabric->fid);
    fi_freeinfo(fab->info);
    free(fab->works);
    free(fab->source);
    free(fab);
}

const char *trig_fab_path(const trig_fab_t *fab)
{
    return (fab->ops != NULL) ? fab->ops->data_path(fab->domain) : "";
}

int trig_fab_can_sleep(const trig_fab_t *fab)
{
    return fab->ops != NULL;
}

/* Completions are of no interest, but the queue must be emptied */
static void trig_reap(trig_fab_t *fab)
{
    struct fi_cq_tagged_entry entries[16];
    ssize_t ret;

    ret = fi_cq_read(fab->cq, entries, 16);
    if ((ret < 0) && (ret != -FI_EAGAIN)) {
        trig_give_up(fab->me, "fi_cq_read", (int)ret);
    }
}

static void trig_reach(trig_fab_t *fab, struct fid_cntr *cntr, uint64_t value)
{
    unsigned turns = 0;

    while (fi_cntr_read(cntr) < value) {
        if (fi_cntr_readerr(cntr) != 0) {
            trig_give_up(fab->me, "a deferred operation", 0);
        }
        trig_reap(fab);
        trig_turn(fab->me, &turns);
    }
}

static void trig_queue(trig_fab_t *fab, trig_work_t *work,
                       struct fid_cntr *trigger, uint64_t threshold,
                       struct fid_cntr *completion)
{
    unsigned turns = 0;
    int ret;

    work->work.triggering_cntr = trigger;
    work->work.threshold       = threshold;
    work->work.completion_cntr = completion;
    while ((ret = fi_control(&fab->domain->fid, FI_QUEUE_WORK, &work->work)) ==
           -FI_EAGAIN) {
        trig_reap(fab);
        trig_turn(fab->me, &turns);
    }
    trig_must(fab, "FI_QUEUE_WORK", ret);
}

static void trig_describe_write(trig_fab_t *fab, trig_work_t *work,
                                const void *from, size_t size, uint64_t to)
{
    memset(work, 0, sizeof(*work));
    work->iov.iov_base = (void*)from;
    work->iov.iov_len  = size;
    work->rma_iov.addr = to;
    work->rma_iov.len  = size;
    work->rma.ep       = fab->ep;
    work->rma.msg      = (struct fi_msg_rma) {
        .msg_iov       = &work->iov,
        .iov_count     = 1,
        .addr          = fab->peer,
        .rma_iov       = &work->rma_iov,
        .rma_iov_count = 1,
        .context       = &work->work.context
    };
    work->work.op_type = FI_OP_WRITE;
    work->work.op.rma  = &work->rma;
}

/* Adds 1 to one's own word when the region's counter says so */
static void trig_describe_word(trig_fab_t *fab, trig_work_t *work)
{
    memset(work, 0, sizeof(*work));
    work->operand       = 1;
    work->ioc.addr      = &work->operand;
    work->ioc.count     = 1;
    work->rma_ioc.addr  = TRIG_WORD;
    work->rma_ioc.count = 1;
    work->rma_ioc.key   = fi_mr_key(fab->word_mr);
    work->atomic.ep     = fab->ep;
    work->atomic.msg    = (struct fi_msg_atomic) {
        .msg_iov       = &work->ioc,
        .iov_count     = 1,
        .addr          = fab->self,
        .rma_iov       = &work->rma_ioc,
        .rma_iov_count = 1,
        .datatype      = FI_UINT64,
        .op            = FI_SUM,
        .context       = &work->work.context
    };
    work->work.op_type   = FI_OP_ATOMIC;
    work->work.op.atomic = &work->atomic;
}

/* Queue what a batch fires: the word counts up by 1 each time. */
static void trig_prepare(trig_fab_t *fab, const trig_step_t *step,
                         unsigned count)
{
    trig_region_t *region = &fab->regions[step->mapped];
    unsigned i;

    for (i = 0; i < count; ++i) {
        trig_work_t *work = &fab->works[2 * i];

        if (step->size == 8) {
            fab->source[i] = fab->word + i + 1;
            trig_describe_write(fab, work, &fab->source[i], 8, TRIG_WORD);
            work->rma_iov.key = fab->word_key;
        } else {
            trig_describe_write(fab, work, region->base + TRIG_MAX_SIZE,
                                step->size, 0);
            work->rma_iov.key = region->key;
            trig_describe_word(fab, work + 1);
            trig_queue(fab, work + 1, region->landed, region->writes + i + 1,
                       fab->words);
        }
        trig_queue(fab, work, fab->trigger, fab->fired + i + 1, fab->done);
    }
}

static void trig_await_word(trig_fab_t *fab, uint64_t value)
{
    const uint64_t *word = (uint64_t*)(fab->word_page + TRIG_WORD);
    unsigned turns       = 0;

    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
        if (fab->ops != NULL) {
            fab->ops->progress(fab->domain);
        } else {
            fi_cq_read(fab->cq, NULL, 0);
        }
        trig_turn(fab->me, &turns);
    }
}

/* The other side's word of this batch, and this side's trigger, by turns */
static double trig_batch(trig_fab_t *fab, const trig_step_t *step,
                         unsigned count)
{
    uint64_t base = fab->word;
    double start;
    unsigned i;

    trig_prepare(fab, step, count);
    trig_barrier(fab->me);
    start = trig_now();
    for (i = 1; i <= count; ++i) {
        if (fab->me->rank == 1) {
            trig_await_word(fab, base + i);
        }
        trig_must(fab, "fi_cntr_add", fi_cntr_add(fab->trigger, 1));
        if (fab->me->rank == 0) {
            trig_await_word(fab, base + i);
        }
    }
    start       = trig_now() - start;
    fab->word  += count;
    fab->fired += count;
    trig_reach(fab, fab->done, fab->fired + fab->extra);
    if (step->size != 8) {
        fab->regions[step->mapped].writes += count;
        fab->owed                         += count;
        trig_reach(fab, fab->words, fab->owed);
    }
    trig_barrier(fab->me);
    return start;
}

static void trig_fill(uint8_t *data, size_t size, unsigned seed)
{
    size_t i;

    for (i = 0; i < size; ++i) {
        data[i] = (uint8_t)(seed + (i * 7) + (i >> 8));
    }
}

static int trig_is_filled(const uint8_t *data, size_t size, unsigned seed)
{
    size_t i;

    for (i = 0; (i < size) && (data[i] == (uint8_t)(seed + (i * 7) +
                                                    (i >> 8))); ++i);
    return i == size;
}

/* Operations that fire at the end, after the measurement */
static void trig_hold(trig_fab_t *fab, unsigned count)
{
    trig_work_t *works = fab->works + (2 * TRIG_BATCH);
    unsigned i;

    for (i = 0; i < count; ++i) {
        trig_describe_write(fab, &works[i], fab->source, 8, TRIG_SCRATCH);
        works[i].rma_iov.key = fab->word_key;
        trig_queue(fab, &works[i], fab->never, fab->held + i + 1, fab->done);
    }
}

static void trig_release(trig_fab_t *fab, unsigned count)
{
    if (count > 0) {
        trig_must(fab, "fi_cntr_add", fi_cntr_add(fab->never, count));
        fab->held  += count;
        fab->extra += count;
        trig_reach(fab, fab->done, fab->fired + fab->extra);
    }
}

double trig_fab_write(trig_fab_t *fab, const trig_step_t *step)
{
    trig_region_t *region = &fab->regions[step->mapped];
    unsigned batch        = step->pending ? 1 : TRIG_BATCH;
    unsigned left, count;
    double total          = 0;

    trig_fill(region->base + TRIG_MAX_SIZE, step->size, 1 + fab->me->rank);
    memset(region->base, 0, step->size);
    trig_hold(fab, step->pending);
    for (left = step->count; left > 0; left -= count) {
        count  = (left < batch) ? left : batch;
        total += trig_batch(fab, step, count);
    }
    trig_release(fab, step->pending);
    if ((step->size != 8) &&
        !trig_is_filled(region->base, step->size, 1 + !fab->me->rank)) {
        fab->me->page->verified[fab->me->rank] = 0;
    }
    return total / (2.0 * step->count);
}

double trig_fab_wake(trig_fab_t *fab, unsigned count)
{
    trig_step_t step    = {.size = 8};
    trig_page_t *page   = fab->me->page;
    uint64_t *word      = (uint64_t*)(fab->word_page + TRIG_WORD);
    unsigned i;

    page->elapsed = 0;
    trig_barrier(fab->me);
    for (i = 1; i <= count; ++i) {
        if (fab->me->rank == 0) {
            trig_prepare(fab, &step, 1);
            ++fab->fired;
            trig_let_sleep(fab->me);
            page->sent = trig_now();
            trig_must(fab, "fi_cntr_add", fi_cntr_add(fab->trigger, 1));
            trig_reach(fab, fab->done, fab->fired + fab->extra);
        } else {
            trig_barrier(fab->me);
            trig_must(fab, "wait_word",
                      fab->ops->wait_word(fab->domain, word, fab->word + 1,
                                          TRIG_WAIT_S * 1000));
            page->elapsed += trig_now() - page->sent;
        }
        ++fab->word;
        trig_barrier(fab->me);
    }
    /* The other direction's word is where it was: both count alike */
    __atomic_store_n(word, fab->word, __ATOMIC_RELEASE);
    trig_barrier(fab->me);
    return page->elapsed / count;
}

static void trig_take(trig_fab_t *fab, unsigned count)
{
    struct fi_cq_tagged_entry entry;
    unsigned turns = 0;
    ssize_t ret;

    while (count > 0) {
        ret = fi_cq_read(fab->cq, &entry, 1);
        if (ret == 1) {
            count -= !!(entry.flags & FI_RECV);
        } else if (ret == -FI_EAGAIN) {
            trig_turn(fab->me, &turns);
        } else {
            trig_give_up(fab->me, "fi_cq_read", (int)ret);
        }
    }
}

static void trig_again(trig_fab_t *fab, ssize_t ret)
{
    if (ret != -FI_EAGAIN) {
        trig_must(fab, "posting", ret);
    }
    trig_reap(fab);
}

double trig_fab_tagged(trig_fab_t *fab, unsigned count)
{
    uint64_t in = 0, out;
    double start;
    unsigned i;
    ssize_t ret;

    trig_barrier(fab->me);
    start = trig_now();
    for (i = 1; i <= count; ++i) {
        while ((ret = fi_trecv(fab->ep, &in, 8, NULL, fab->peer, 1, 0,
                               NULL)) != 0) {
            trig_again(fab, ret);
        }
        if (fab->me->rank == 1) {
            trig_take(fab, 1);
        }
        out = i;
        while ((ret = fi_tinject(fab->ep, &out, 8, fab->peer, 1)) != 0) {
            trig_again(fab, ret);
        }
        if (fab->me->rank == 0) {
            trig_take(fab, 1);
        }
        if (in != i) {
            fab->me->page->verified[fab->me->rank] = 0;
        }
    }
    return (trig_now() - start) / (2.0 * count);
}

/* Of rank 0; rank 1 serves until the last one has landed */
double trig_fab_stream(trig_fab_t *fab, const trig_step_t *step)
{
    trig_region_t *region = &fab->regions[step->mapped];
    uint64_t target       = region->writes + step->count;
    uint64_t written      = fi_cntr_read(fab->bound[0]);
    unsigned turns        = 0, i;
    double start;
    ssize_t ret;

    trig_fill(region->base + TRIG_MAX_SIZE, step->size, 1 + fab->me->rank);
    memset(region->base, 0, step->size);
    trig_barrier(fab->me);
    start = trig_now();
    if (fab->me->rank == 0) {
        for (i = 0; i < step->count; ++i) {
            while ((ret = fi_write(fab->ep, region->base + TRIG_MAX_SIZE,
                                   step->size, NULL, fab->peer, 0, region->key,
                                   NULL)) != 0) {
                trig_again(fab, ret);
                trig_turn(fab->me, &turns);
            }
        }
        trig_reach(fab, fab->bound[0], written + step->count);
    } else {
        trig_reach(fab, region->landed, target);
        region->writes = target;
        if (!trig_is_filled(region->base, step->size, 1)) {
            fab->me->page->verified[1] = 0;
        }
    }
    start = trig_now() - start;
    trig_barrier(fab->me);
    return start / step->count;
}
