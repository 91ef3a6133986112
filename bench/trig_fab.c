/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trig_fab.c - the provider's side of st_trig, on libfabric's interface.
 *
 * A deferred write of 8 bytes writes the word that the other side waits for.
 * Larger ones may land in any order: the region's counter, at the target,
 * triggers an atomic there on the word.
 */
#include "trig_fab.h"

#include <string.h>


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
    trig_region_t *region = &fab->region;
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
        fi_cq_read(fab->cq, NULL, 0);
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
        fab->region.writes += count;
        fab->owed                         += count;
        trig_reach(fab, fab->words, fab->owed);
    }
    trig_barrier(fab->me);
    return start;
}

/* These fire at the end, after the measurement */
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
    trig_region_t *region = &fab->region;
    unsigned batch        = step->pending ? 1 : TRIG_BATCH;
    unsigned left, count;
    double total          = 0;

    trig_fill(region->base + TRIG_MAX_SIZE, step->size, 1 + fab->me->rank);
    memset(region->base, 0, step->size);
    trig_hold(fab, step->pending);
    /* Warms up: what ran before has driven this out of the caches */
    (void)trig_batch(fab, step, trig_min(step->count, batch));
    for (left = step->count; left > 0; left -= count) {
        count  = trig_min(left, batch);
        total += trig_batch(fab, step, count);
    }
    trig_release(fab, step->pending);
    if ((step->size != 8) &&
        !trig_is_filled(region->base, step->size, 1 + !fab->me->rank)) {
        fab->me->page->verified[fab->me->rank] = 0;
    }
    return total / (2.0 * step->count);
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
    trig_must(fab, "posting", (ret == -FI_EAGAIN) ? 0 : ret);
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
    trig_region_t *region = &fab->region;
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

static void trig_open_pairs(trig_fab_t *fab, unsigned count)
{
    unsigned i;

    for (i = 0; (i < count) && (fab->posts == 0); ++i) {
        fab->pairs[i][0] = trig_cntr(fab);
        fab->pairs[i][1] = trig_cntr(fab);
    }
}

double trig_fab_post(trig_fab_t *fab, size_t size, unsigned count)
{
    trig_region_t *region = &fab->region;
    double start, end;
    trig_work_t *work;
    unsigned i;

    trig_open_pairs(fab, count);
    for (i = 0; i < count; ++i) {
        work = &fab->works[2 * i];
        trig_describe_write(fab, work, region->base + TRIG_MAX_SIZE, size, 0);
        work->rma_iov.key = region->key;
        trig_describe_word(fab, work + 1);
        work[1].rma_ioc.addr = TRIG_SCRATCH;
    }
    trig_barrier(fab->me);
    ++fab->posts;
    start = trig_now();
    for (i = 0; i < count; ++i) {
        trig_queue(fab, &fab->works[2 * i], fab->pairs[i][0], fab->posts,
                   fab->pairs[i][1]);
    }
    for (i = 0; i < count; ++i) {
        trig_queue(fab, &fab->works[2 * i + 1], fab->pairs[i][1], fab->posts,
                   fab->words);
    }
    end             = trig_now();
    fab->num_posted = count;
    return (end - start) / count;
}

void trig_fab_fire(void *arg)
{
    trig_fab_t *fab = arg;
    unsigned i;

    for (i = 0; i < fab->num_posted; ++i) {
        trig_must(fab, "fi_cntr_add", fi_cntr_add(fab->pairs[i][0], 1));
    }
    fab->region.writes += fab->num_posted;
    fab->owed              += fab->num_posted;
    trig_reach(fab, fab->words, fab->owed);
}
