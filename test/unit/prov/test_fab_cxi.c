/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fab_cxi.c - what programs for CXI rely on beyond libfabric's interface:
 * counters' trigger pages, and what CXI refuses.
 */
#include "fab_work.h"

#include <stdbool.h> /* fi_cxi_ext.h uses it */
#include <rdma/fi_cxi_ext.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Offsets of the trigger page */
enum {
    CXI_ADD_SUCCESS   = 0,
    CXI_ADD_FAILURE   = 64,
    CXI_RESET_SUCCESS = 128,
    CXI_RESET_FAILURE = 192
};

#define ONLY_CXI "of CXI's interface only"


static struct fi_cxi_cntr_ops *counter_ops(struct fid_cntr *cntr)
{
    struct fi_cxi_cntr_ops *ops = NULL;

    FAB_EQUAL(fi_open_ops(&cntr->fid, FI_CXI_COUNTER_OPS, 0, (void**)&ops,
                          NULL), 0);
    FAB_REQUIRE(ops != NULL);
    return ops;
}

static volatile uint64_t *doorbell(struct fid_cntr *cntr, size_t offset)
{
    void *address = NULL;
    size_t length = 0;

    FAB_EQUAL(counter_ops(cntr)->get_mmio_addr(&cntr->fid, &address, &length),
              0);
    FAB_REQUIRE(address != NULL);
    FAB_EQUAL(length, 8);
    return (volatile uint64_t*)((char*)address + offset);
}

/* As a device stores: one store at a time, the next when it was taken */
static void store(volatile uint64_t *address, uint64_t value)
{
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
}

FAB_CASE(page_offsets, .sockets = ONLY_CXI)
{
    struct fid_cntr *cntr = fab_cntr(me);

    store(doorbell(cntr, CXI_ADD_SUCCESS), 5);
    fab_reads(me, cntr, 5);
    store(doorbell(cntr, CXI_ADD_SUCCESS), 2);
    fab_reads(me, cntr, 7);
    store(doorbell(cntr, CXI_ADD_FAILURE), 3);
    fab_reads_errors(me, cntr, 3);
    FAB_EQUAL(fi_cntr_read(cntr), 7);
    store(doorbell(cntr, CXI_RESET_FAILURE), 1);
    fab_reads_errors(me, cntr, 0);
    store(doorbell(cntr, CXI_RESET_SUCCESS), 1);
    fab_reads(me, cntr, 0);
    fab_cntr_close(cntr);
}

/* What programs for CXI do: the value of a reset says nothing */
FAB_CASE(reset_by_zero, .sockets = ONLY_CXI)
{
    struct fid_cntr *cntr = fab_cntr(me);

    FAB_EQUAL(fi_cntr_add(cntr, 9), 0);
    fab_reads(me, cntr, 9);
    store(doorbell(cntr, CXI_RESET_SUCCESS), 0);
    fab_reads(me, cntr, 0);
    FAB_EQUAL(fi_cntr_adderr(cntr, 2), 0);
    fab_reads_errors(me, cntr, 2);
    store(doorbell(cntr, CXI_RESET_FAILURE), 0);
    fab_reads_errors(me, cntr, 0);
    fab_cntr_close(cntr);
}

static int is_trapped(void)
{
    return getenv("FI_CXIEMU_TRAP") != NULL;
}

typedef struct ringer {
    fab_side_t        *me;
    volatile uint64_t *page;
} ringer_t;

/* Several threads at one page: atomic additions are exact; with the trap plain
 * stores are */
static void *ring_often(void *arg)
{
    ringer_t *ringer = arg;
    unsigned i;

    for (i = 0; i < 500; ++i) {
        if (is_trapped()) {
            store(ringer->page, 1);
        } else {
            __atomic_fetch_add(ringer->page, 1, __ATOMIC_ACQ_REL);
        }
    }
    return NULL;
}

FAB_CASE(exact_rings, .sockets = ONLY_CXI)
{
    enum { THREADS = 4 };
    struct fid_cntr *cntr = fab_cntr(me);
    ringer_t ringer       = {.me = me, .page = doorbell(cntr, 0)};

    fab_threads(THREADS, ring_often, &ringer, 0);
    fab_reads(me, cntr, THREADS * 500);
    fab_cntr_close(cntr);
}

/* Equal stores after each other count each, if each was taken */
FAB_CASE(equal_stores, .sockets = ONLY_CXI)
{
    struct fid_cntr *cntr = fab_cntr(me);
    uint64_t i;

    for (i = 1; i <= 200; ++i) {
        store(doorbell(cntr, CXI_ADD_SUCCESS), 1);
        fab_reads(me, cntr, i);
    }
    fab_cntr_close(cntr);
}

/* A store fires deferred work, and nobody else need do anything */
FAB_CASE(store_fires, .sockets = ONLY_CXI)
{
    struct fid_cntr *trigger = fab_cntr(me), *done = fab_cntr(me);
    uint64_t value           = 4;
    fab_work_t *work         = fab_works(me, 20);
    char byte                = 'x';
    unsigned i;

    for (i = 0; i < 20; ++i) {
        fab_work_write(me, &work[i], &value, 8, fab_there(me, 8 * i));
        FAB_EQUAL(fab_queue(me, &work[i], fab_at(trigger, i + 1, done)), 0);
        store(doorbell(trigger, CXI_ADD_SUCCESS), 1);
        if (me->index == 0) {
            fab_word(me, me->window + (8 * i), 4);
            fab_put(me, &byte, 1);
        } else {
            /* The initiator sleeps: its NIC watches the page */
            fab_get_asleep(me, &byte, 1);
        }
        fab_count(me, done, i + 1);
    }
    fab_barrier(me);
    fab_cntr_close(trigger);
    fab_cntr_close(done);
    free(work);
}

FAB_CASE(many_pages, .sockets = ONLY_CXI)
{
    enum { COUNT = 100 };
    struct fid_cntr *cntrs[COUNT];
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        cntrs[i] = fab_cntr(me);
        store(doorbell(cntrs[i], CXI_ADD_SUCCESS), i + 1);
    }
    for (i = 0; i < COUNT; ++i) {
        fab_reads(me, cntrs[i], i + 1);
        fab_cntr_close(cntrs[i]);
    }
}

/* Where the device reads it: written back with the host's progress */
FAB_CASE(writeback_buffer, .sockets = ONLY_CXI)
{
    struct fid_cntr *cntr       = fab_cntr(me);
    struct fi_cxi_cntr_ops *ops = counter_ops(cntr);
    uint64_t *buffer = NULL, since = 0;

    FAB_REQUIRE(posix_memalign((void**)&buffer, 64, 64) == 0);
    memset(buffer, 0, 64);
    FAB_CHECK(ops->set_wb_buffer(&cntr->fid, buffer, 4) != 0);
    FAB_EQUAL(ops->set_wb_buffer(&cntr->fid, buffer, 8), 0);
    FAB_EQUAL(fi_cntr_add(cntr, 12), 0);
    while ((__atomic_load_n(buffer, __ATOMIC_ACQUIRE) & ((1ull << 48) - 1)) !=
           12) {
        fi_cntr_read(cntr);
        fab_turn(me, &since);
    }
    fab_cntr_close(cntr);
    free(buffer);
}

FAB_CASE(unknown_ops, .sockets = ONLY_CXI)
{
    struct fid_cntr *cntr = fab_cntr(me);
    void *ops             = NULL;

    FAB_CHECK(fi_open_ops(&cntr->fid, "no_such_ops", 0, &ops, NULL) < 0);
    FAB_CHECK(fi_open_ops(&me->domain->fid, "no_such_ops", 0, &ops, NULL) < 0);
    fab_cntr_close(cntr);
}

/* As in CXI's rdma/fi_cxi_ext.h, which distributions leave out */
struct cxi_dom_ops {
    int (*cntr_read)(struct fid *fid, unsigned int cntr, uint64_t *value,
                     struct timespec *ts);
    int (*topology)(struct fid *fid, unsigned int *group_id,
                    unsigned int *switch_id, unsigned int *port_id);
    int (*enable_hybrid_mr_desc)(struct fid *fid, bool enable);
    size_t (*ep_get_unexp_msgs)(struct fid_ep *ep,
                                struct fi_cq_tagged_entry *entry, size_t count,
                                fi_addr_t *src_addr, size_t *ux_count);
    int (*get_dwq_depth)(struct fid *fid, size_t *depth);
    int (*enable_mr_match_events)(struct fid *fid, bool enable);
    int (*enable_optimized_mrs)(struct fid *fid, bool enable);
};

static struct cxi_dom_ops *domain_ops(fab_side_t *me)
{
    struct cxi_dom_ops *ops = NULL;

    FAB_EQUAL(fi_open_ops(&me->domain->fid, "dom_ops_v6", 0, (void**)&ops,
                          NULL), 0);
    FAB_REQUIRE(ops != NULL);
    return ops;
}

FAB_CASE(domain_ops, .sockets = ONLY_CXI)
{
    struct fid *fid         = &me->domain->fid;
    struct cxi_dom_ops *ops = domain_ops(me);
    size_t depth            = 0;

    FAB_EQUAL(ops->get_dwq_depth(fid, &depth), 0);
    FAB_CHECK(depth > 0);
    FAB_EQUAL(ops->get_dwq_depth(&me->ep->fid, &depth), -FI_EINVAL);
    FAB_EQUAL(ops->enable_hybrid_mr_desc(fid, true), 0);
    FAB_EQUAL(ops->enable_mr_match_events(fid, true), 0);
    /* It is for keys that the provider chooses */
    FAB_EQUAL(ops->enable_optimized_mrs(fid, false), -FI_EINVAL);
}

FAB_CASE(of_the_device, .sockets = ONLY_CXI,
         .cxi = "cxi has a device that can be asked")
{
    struct fid *fid         = &me->domain->fid;
    struct cxi_dom_ops *ops = domain_ops(me);
    size_t depth            = 0;
    unsigned group, at, port;
    uint64_t value;

    FAB_EQUAL(ops->cntr_read(fid, 0, &value, NULL), -FI_ENOSYS);
    FAB_EQUAL(ops->topology(fid, &group, &at, &port), -FI_ENOSYS);
    FAB_EQUAL(ops->ep_get_unexp_msgs(me->ep, NULL, 0, NULL, &depth),
              (size_t)-FI_ENOSYS);
}

static int queue_flags(fab_side_t *me, struct fid_cntr *trigger,
                       uint64_t flags)
{
    struct fid_cntr *done = fab_cntr(me);
    static fab_work_t works[2];
    fab_work_t *work = &works[me->index];
    uint64_t value = 1;
    int ret;

    fab_work_write(me, work, &value, 8, fab_there(me, 0));
    work->op.rma.flags = flags;
    ret = fab_queue(me, work, fab_at(trigger, 1, done));
    fab_cntr_close(done);
    return ret;
}

FAB_CASE(refused_flags, .sockets = ONLY_CXI)
{
    struct fid_cntr *trigger = fab_cntr(me);

    FAB_EQUAL(queue_flags(me, trigger, FI_FENCE), -FI_EINVAL);
    FAB_EQUAL(queue_flags(me, trigger, FI_INJECT), -FI_EINVAL);
    FAB_EQUAL(queue_flags(me, trigger, FI_REMOTE_CQ_DATA), -FI_EINVAL);
    FAB_EQUAL(queue_flags(me, trigger, 1ull << 60), -FI_EINVAL); /* CXI_HRP */
    fab_barrier(me);
    fab_cntr_close(trigger);
}

FAB_CASE(refused_work, .sockets = ONLY_CXI)
{
    struct fid_cntr *trigger = fab_cntr(me), *done = fab_cntr(me);
    fab_work_t *work         = fab_works(me, 1);
    struct iovec two[2];
    uint64_t word            = 0;

    /* Receives above threshold 0 */
    fab_work_recv(me, work, &word, 8);
    FAB_CHECK(fab_queue(me, work, fab_at(trigger, 1, done)) < 0);
    fab_work_trecv(me, work, &word, 8, 1);
    FAB_CHECK(fab_queue(me, work, fab_at(trigger, 1, done)) < 0);
    /* A completion counter of work that counts */
    fab_work_count(work, FI_OP_CNTR_ADD, done, 1);
    FAB_CHECK(fab_queue(me, work, fab_at(trigger, 1, done)) < 0);
    /* No trigger */
    fab_work_write(me, work, &word, 8, fab_there(me, 0));
    FAB_CHECK(fab_queue(me, work, fab_at(NULL, 1, done)) < 0);
    /* More than one piece */
    memset(two, 0, sizeof(two));
    fab_work_write(me, work, &word, 8, fab_there(me, 0));
    work->op.rma.msg.msg_iov   = two;
    work->op.rma.msg.iov_count = 2;
    FAB_CHECK(fab_queue(me, work, fab_at(trigger, 1, done)) < 0);
    /* One entry cannot be taken back */
    fab_work_write(me, work, &word, 8, fab_there(me, 0));
    FAB_EQUAL(fab_queue(me, work, fab_at(trigger, 1, done)), 0);
    FAB_CHECK(fi_control(&me->domain->fid, FI_CANCEL_WORK, &work->work) < 0);
    FAB_EQUAL(fi_control(&me->domain->fid, FI_FLUSH_WORK, NULL), 0);
    FAB_EQUAL(fi_cntr_add(trigger, 1), 0);
    fab_linger(me);
    FAB_EQUAL(fi_cntr_read(done), 0);
    fab_barrier(me);
    FAB_EQUAL(fi_cntr_read(me->landed), 0);
    fab_cntr_close(trigger);
    fab_cntr_close(done);
    free(work);
}

/* What is left out is refused, at once and without harm */
FAB_CASE(left_out, .sockets = ONLY_CXI)
{
    struct fi_info *hints;
    struct fid_ep *ep   = NULL;
    struct fid_stx *stx = NULL;
    uint64_t word       = 1;

    FAB_EQUAL(fi_stx_context(me->domain, NULL, &stx, NULL), -FI_ENOSYS);
    FAB_CHECK(fi_srx_context(me->domain, NULL, &ep, NULL) < 0);
    FAB_CHECK(fi_scalable_ep(me->domain, me->info, &ep, NULL) < 0);
    if (fab_is_strict()) {
        FAB_CHECK(fi_writedata(me->ep, &word, 8, NULL, 1, me->peer,
                               me->theirs.base, me->theirs.key, NULL) < 0);
    }
    hints = fab_hints(me->config);
    hints->ep_attr->type = FI_EP_MSG;
    FAB_CHECK(fab_getinfo(hints) == NULL);
    hints->ep_attr->type = FI_EP_DGRAM;
    FAB_CHECK(fab_getinfo(hints) == NULL);
    fi_freeinfo(hints);
    FAB_CHECK(fab_is_empty(me, &me->tx));
}

/* Of fi_info: the name is its own, the ways are CXI's */
FAB_CASE(information, .sockets = ONLY_CXI)
{
    struct fi_info *info;

    FAB_EQUAL(strcmp(me->info->fabric_attr->prov_name, fab_provider()), 0);
    FAB_EQUAL(me->info->addr_format, FI_ADDR_CXI);
    FAB_CHECK(me->info->src_addr != NULL);
    FAB_EQUAL(me->info->src_addrlen, me->mine.name_length);
    FAB_EQUAL(me->info->ep_attr->type, FI_EP_RDM);
    FAB_CHECK(me->info->domain_attr->mr_mode & FI_MR_ENDPOINT);
    FAB_CHECK(!(me->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR));
    FAB_EQUAL(me->info->domain_attr->data_progress,
              fab_is_strict() ? FI_PROGRESS_MANUAL :
                                              FI_PROGRESS_AUTO);
    FAB_EQUAL(me->info->tx_attr->inject_size, 192);
    FAB_EQUAL(me->info->tx_attr->iov_limit, 1);
    FAB_CHECK(me->info->ep_attr->max_msg_size >= (1ull << 32) - 1);
    for (info = me->info; info != NULL; info = info->next) {
        FAB_EQUAL(strcmp(info->fabric_attr->prov_name, "cxi") == 0,
                  fab_subject() == FAB_CXI);
        FAB_EQUAL(strncmp(info->domain_attr->name, "cxi0", 4) == 0,
                  fab_subject() == FAB_CXI);
    }
}

/* How many there are, each found by its name alone, and opened */
FAB_CASE(devices, .sockets = ONLY_CXI,
         .cxi = "the names and the number are those of the cards")
{
    const char *setting   = getenv("FI_CXIEMU_DEVICES");
    unsigned count        = (setting == NULL) ? 1 : atoi(setting);
    struct fi_info *hints = fab_hints(me->config);
    struct fid_domain *domain;
    struct fi_info *all, *info, *one;
    unsigned found = 0;
    char name[32];

    all = fab_getinfo(hints);
    for (info = all; info != NULL; info = info->next) {
        snprintf(name, sizeof(name), "cxiemu%u", found++);
        FAB_EQUAL(strcmp(info->domain_attr->name, name), 0);
        FAB_EQUAL(strcmp(info->nic->device_attr->name, name), 0);
        FAB_EQUAL(strcmp(info->fabric_attr->prov_name, "cxiemu"), 0);
        FAB_EQUAL(fi_domain(me->fabric, info, &domain, NULL), 0);
        FAB_EQUAL(fi_close(&domain->fid), 0);

        hints->domain_attr->name = name;
        one                      = fab_getinfo(hints);
        FAB_REQUIRE(one != NULL);
        FAB_EQUAL(strcmp(one->domain_attr->name, name), 0);
        FAB_CHECK(one->next == NULL);
        fi_freeinfo(one);
    }
    FAB_EQUAL(found, count);

    snprintf(name, sizeof(name), "cxiemu%u", found);
    hints->domain_attr->name = name;
    FAB_CHECK(fab_getinfo(hints) == NULL);
    hints->domain_attr->name = NULL;
    fi_freeinfo(hints);
    fi_freeinfo(all);
}

static const fab_config_t with_hmem = {.caps = FI_HMEM, .mr_mode = FI_MR_HMEM};

/* Memory of GPUs is none of its own */
FAB_CASE(memory_of_devices, .config = &with_hmem, .sockets = ONLY_CXI,
         .cxi = "cxi looks at the kind of memory only if it needs to")
{
    uint64_t word[2]         = {7, 0};
    struct iovec iov         = {.iov_base = word, .iov_len = sizeof(word)};
    struct fi_mr_attr attr   = {.mr_iov        = &iov,
                                .iov_count     = 1,
                                .access        = FI_REMOTE_WRITE,
                                .requested_key = 70,
                                .iface         = FI_HMEM_CUDA};
    struct fid_mr *mr        = NULL;

    FAB_EQUAL(fi_mr_regattr(me->domain, &attr, 0, &mr), -FI_EOPNOTSUPP);
}

/* The hints of programs that may have memory of GPUs: the host's will do */
FAB_CASE(memory_of_hosts, .config = &with_hmem, .sockets = ONLY_CXI)
{
    uint64_t word[2]         = {7, 0};
    struct iovec iov         = {.iov_base = word, .iov_len = sizeof(word)};
    struct fi_mr_attr attr   = {.mr_iov        = &iov,
                                .iov_count     = 1,
                                .access        = FI_REMOTE_WRITE,
                                .requested_key = 70,
                                .iface         = FI_HMEM_SYSTEM};
    struct fid_mr *mr        = NULL;

    FAB_CHECK(me->info->caps & FI_HMEM);
    FAB_EQUAL(fi_mr_regattr(me->domain, &attr, 0, &mr), 0);
    FAB_EQUAL(fi_close(&mr->fid), 0);
    FAB_MUST(me, fi_write(me->ep, word, 8, NULL, me->peer, me->theirs.base,
                          me->theirs.key, NULL));
    fab_entry(me, &me->tx);
    fab_count(me, me->landed, 1);
    FAB_EQUAL(fab_load(me->window), 7);
    fab_barrier(me);
}

/* Bound when the endpoint is enabled already, a counter counts from then on */
FAB_CASE(late_counter, .sockets = ONLY_CXI)
{
    struct fid_ep *ep     = fab_endpoint(me);
    struct fid_cntr *cntr = fab_cntr(me);
    uint64_t word         = 1;

    FAB_EQUAL(fi_ep_bind(ep, &cntr->fid, FI_WRITE), 0);
    FAB_CHECK(fi_ep_bind(ep, &cntr->fid, FI_WRITE) != 0);
    FAB_MUST(me, fi_write(ep, &word, 8, NULL, me->peer, me->theirs.base,
                          me->theirs.key, NULL));
    fab_count(me, cntr, 1);
    fab_entry(me, &me->tx);
    fab_barrier(me);
    FAB_EQUAL(fi_close(&ep->fid), 0);
    fab_cntr_close(cntr);
}

/* Flags of registration that CXI does not look at */
FAB_CASE(ignored_flags, .sockets = ONLY_CXI)
{
    struct fid_mr *mr = NULL;
    uint64_t word     = 0;

    FAB_EQUAL(fi_mr_reg(me->domain, &word, 8, FI_REMOTE_WRITE, 0, 71,
                        FI_MR_ALLOCATED, &mr, NULL), 0);
    FAB_REQUIRE(mr != NULL);
    FAB_EQUAL(fi_close(&mr->fid), 0);
}

/* An endpoint without FI_ATOMIC refuses atomics, but for deferred ones. Those
 * need a counter of writes that it is bound to */
FAB_CASE(deferred_atomic, .sockets = ONLY_CXI)
{
    struct fid_cntr *trigger = fab_cntr(me);
    struct fid_cntr *done    = fab_cntr(me);
    struct fid_cntr *writes  = fab_cntr(me);
    struct fi_info *info     = fi_dupinfo(me->info);
    struct fi_info *all      = me->info;
    fab_work_t *work         = fab_works(me, 1);
    uint64_t one             = 1;
    struct fid_ep *ep;

    FAB_REQUIRE(info != NULL);
    info->caps          &= ~FI_ATOMIC;
    info->tx_attr->caps &= ~FI_ATOMIC;
    me->info             = info;
    ep                   = fab_endpoint(me);
    me->info             = all;
    FAB_EQUAL(fi_ep_bind(ep, &writes->fid, FI_WRITE), 0);
    FAB_EQUAL(fi_atomic(ep, &one, 1, NULL, me->peer, me->theirs.base,
                        me->theirs.key, FI_UINT64, FI_SUM, NULL), -FI_ENOSYS);

    fab_work_add(me, work, 5, fab_there(me, 0));
    work->op.atomic.ep = ep;
    FAB_EQUAL(fi_cntr_add(trigger, 1), 0);
    FAB_EQUAL(fab_queue(me, work, (fab_when_t){trigger, 1, done}), 0);
    fab_count(me, done, 1);
    fab_count(me, me->landed, 1);
    FAB_EQUAL(fab_load(me->window), 5);
    fab_barrier(me);
    FAB_EQUAL(fi_close(&ep->fid), 0);
    fab_cntr_close(trigger);
    fab_cntr_close(done);
    fab_cntr_close(writes);
    fi_freeinfo(info);
    free(work);
}

/* Deferred work has an entry if its flags say so, and for a failure */
FAB_CASE(deferred_entries, .sockets = ONLY_CXI)
{
    struct fid_cntr *trigger = fab_cntr(me);
    struct fid_cntr *done    = fab_cntr(me);
    fab_work_t *works        = fab_works(me, 4);
    fab_place_t bad          = fab_there(me, 0);
    uint64_t value           = 9;
    uint64_t in              = 0;

    bad.key = 999;
    FAB_EQUAL(fi_cntr_add(trigger, 1), 0);
    fab_work_recv(me, &works[0], &in, 8);
    FAB_EQUAL(fab_queue(me, &works[0], (fab_when_t){trigger, 0, done}), 0);
    fab_barrier(me);
    fab_work_write(me, &works[1], &value, 8, fab_there(me, 0));
    FAB_EQUAL(fab_queue(me, &works[1], (fab_when_t){trigger, 1, done}), 0);
    fab_work_send(me, &works[2], &value, 8);
    FAB_EQUAL(fab_queue(me, &works[2], (fab_when_t){trigger, 1, done}), 0);
    fab_count(me, done, 3);
    FAB_CHECK(fab_is_empty(me, &me->tx));
    FAB_CHECK(fab_is_empty(me, &me->rx));

    fab_work_write(me, &works[1], &value, 8, fab_there(me, 0));
    works[1].op.rma.flags = FI_COMPLETION;
    FAB_EQUAL(fab_queue(me, &works[1], (fab_when_t){trigger, 1, done}), 0);
    FAB_CHECK(fab_entry(me, &me->tx).op_context == &works[1].work.context);
    fab_work_write(me, &works[3], &value, 8, bad);
    FAB_EQUAL(fab_queue(me, &works[3], (fab_when_t){trigger, 1, NULL}), 0);
    FAB_CHECK(fab_error(me, &me->tx).op_context == &works[3].work.context);
    fab_barrier(me);
    fab_cntr_close(trigger);
    fab_cntr_close(done);
    free(works);
}

/* Of atomics, the types of 128 bits, which libfabric has from 1.20 on */
FAB_CASE(wide_atomics, .sockets = ONLY_CXI)
{
    enum fi_datatype wide = (enum fi_datatype)FI_DATATYPE_LAST;
    size_t count;

    FAB_CHECK(fi_atomicvalid(me->ep, wide, FI_SUM, &count) < 0);
    FAB_CHECK(fi_fetch_atomicvalid(me->ep, wide, FI_SUM, &count) < 0);
}

FAB_SUITE("fab_cxi")
