/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fab_card.c - what CXI grants and refuses when it is opened, and what its
 * errors say.
 */
#include "fab_work.h"

#include <stdlib.h>
#include <string.h>

#define ONLY_CXI "CXI's own ways"

/* Return codes of the card */
#define ENTRY_NOT_FOUND 18
#define PTLTE_NOT_FOUND 26

/* CXI's prov_attr of a device */
typedef struct {
    uint32_t version;
    unsigned address;
    unsigned service;
    unsigned vni;
} card_nic_t;


static struct fi_info *dup_info(const fab_side_t *me)
{
    struct fi_info *info = fi_dupinfo(me->info);

    FAB_REQUIRE(info != NULL);
    return info;
}

static int try_domain(fab_side_t *me, struct fi_info *info)
{
    struct fid_domain *domain;
    int ret = fi_domain(me->fabric, info, &domain, NULL);

    if (ret == 0) {
        FAB_EQUAL(fi_close(&domain->fid), 0);
    }
    return ret;
}

static int try_endpoint(fab_side_t *me, struct fi_info *info)
{
    struct fid_ep *ep;
    int ret = fi_endpoint(me->domain, info, &ep, NULL);

    if (ret == 0) {
        FAB_EQUAL(fi_close(&ep->fid), 0);
    }
    return ret;
}

/* No answer has it: the program writes it into the description */
FAB_CASE(class_is_not_granted, .sockets = ONLY_CXI)
{
    struct fi_info *hints = fab_hints(me->config);
    struct fi_info *info;

    hints->domain_attr->tclass = FI_TC_LOW_LATENCY;
    hints->tx_attr->tclass     = FI_TC_LOW_LATENCY;
    info                       = fab_getinfo(hints);
    FAB_REQUIRE(info != NULL);
    FAB_EQUAL(info->domain_attr->tclass, FI_TC_UNSPEC);
    FAB_EQUAL(info->tx_attr->tclass, FI_TC_UNSPEC);
    fi_freeinfo(info);
    fi_freeinfo(hints);
}

FAB_CASE(classes, .sockets = ONLY_CXI)
{
    static const uint32_t good[] = {FI_TC_UNSPEC, FI_TC_BEST_EFFORT,
                                    FI_TC_LOW_LATENCY, FI_TC_SCAVENGER};
    static const uint32_t bad[]  = {FI_TC_LABEL - 1, FI_TC_NETWORK_CTRL};
    struct fi_info *info         = dup_info(me);
    unsigned i;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
        info->domain_attr->tclass = good[i];
        info->tx_attr->tclass     = good[i];
        FAB_EQUAL(try_domain(me, info), 0);
        FAB_EQUAL(try_endpoint(me, info), 0);
    }
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        info->domain_attr->tclass = bad[i];
        info->tx_attr->tclass     = bad[i];
        FAB_EQUAL(try_domain(me, info), -FI_EINVAL);
        FAB_EQUAL(try_endpoint(me, info), -FI_EINVAL);
    }
    fi_freeinfo(info);
}

/* Deferred work has the class of the domain, and takes no other */
FAB_CASE(class_of_deferred_work, .sockets = ONLY_CXI)
{
    struct fid_cntr *trigger = fab_cntr(me);
    struct fid_cntr *done    = fab_cntr(me);
    fab_work_t *work         = fab_works(me, 1);
    struct fi_info *info     = dup_info(me);
    struct fid_ep *own       = me->ep;
    struct fid_ep *other;
    uint64_t word            = 7;

    info->tx_attr->tclass = FI_TC_BULK_DATA;
    FAB_EQUAL(fi_endpoint(me->domain, info, &other, NULL), 0);
    FAB_EQUAL(fi_ep_bind(other, &me->tx.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    FAB_EQUAL(fi_ep_bind(other, &me->av->fid, 0), 0);
    FAB_EQUAL(fi_enable(other), 0);
    fab_barrier(me);
    me->ep = other;
    fab_work_write(me, work, &word, 8, fab_there(me, 0));
    FAB_EQUAL(fab_queue(me, work, fab_at(trigger, 1, done)), -FI_EINVAL);
    me->ep = own;
    fab_work_write(me, work, &word, 8, fab_there(me, 0));
    FAB_EQUAL(fab_queue(me, work, fab_at(trigger, 1, done)), 0);
    FAB_EQUAL(fi_cntr_add(trigger, 1), 0);
    fab_count(me, done, 1);
    fab_barrier(me);
    FAB_EQUAL(fi_close(&other->fid), 0);
    fab_cntr_close(trigger);
    fab_cntr_close(done);
    fi_freeinfo(info);
    free(work);
}

FAB_CASE(queue_sizes, .sockets = ONLY_CXI)
{
    static const struct {
        size_t tx;
        size_t rx;
        int    ret;
    } rows[]             = {{16384, 15360, 0},
                            {16385, 1024, -FI_EINVAL},
                            {1024, 15361, -FI_EINVAL}};
    struct fi_info *info = dup_info(me);
    unsigned i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        info->tx_attr->size = rows[i].tx;
        info->rx_attr->size = rows[i].rx;
        FAB_EQUAL(try_domain(me, info), rows[i].ret);
        FAB_EQUAL(try_endpoint(me, info), rows[i].ret);
    }
    fi_freeinfo(info);
}

/* Of the transmitting side what is asked for, of the other one all */
FAB_CASE(orders, .sockets = ONLY_CXI)
{
    struct fi_info *hints = fab_hints(me->config);
    struct fi_info *info;

    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    info                      = fab_getinfo(hints);
    FAB_REQUIRE(info != NULL);
    FAB_EQUAL(info->tx_attr->msg_order, FI_ORDER_SAS);
    FAB_CHECK(info->rx_attr->msg_order & FI_ORDER_WAW);
    FAB_CHECK(info->rx_attr->msg_order & FI_ORDER_RMA_WAW);
    fi_freeinfo(info);
    fi_freeinfo(hints);
}

FAB_CASE(network, .sockets = ONLY_CXI)
{
    const card_nic_t *nic = me->info->nic->prov_attr;

    FAB_REQUIRE(nic != NULL);
    FAB_CHECK(nic->version >= 1);
    FAB_CHECK(nic->service > 0);
    FAB_CHECK(nic->vni > 0);
}

/* An endpoint that lends its address to memory alone */
FAB_CASE(memory_alone, .sockets = ONLY_CXI)
{
    uint64_t caps        = FI_RMA | FI_ATOMIC | FI_REMOTE_READ |
                           FI_REMOTE_WRITE | FI_RMA_EVENT;
    struct fi_info *info = dup_info(me);
    uint64_t key, word   = 3;
    struct fid_ep *ep;
    struct fid_mr *mr;
    char name[FAB_NAME_MAX];
    size_t length        = sizeof(name);
    fi_addr_t addr;

    info->caps          &= caps;
    info->rx_attr->caps &= caps;
    info->tx_attr->caps  = 0;
    FAB_EQUAL(fi_endpoint(me->domain, info, &ep, NULL), 0);
    FAB_EQUAL(fi_ep_bind(ep, &me->tx.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    FAB_EQUAL(fi_ep_bind(ep, &me->av->fid, 0), 0);
    FAB_EQUAL(fi_enable(ep), 0);
    FAB_EQUAL(fi_getname(&ep->fid, name, &length), 0);
    FAB_EQUAL(fi_av_insert(me->av, name, 1, &addr, 0, NULL), 1);
    FAB_EQUAL(fi_mr_reg(me->domain, me->window, 4096, FI_REMOTE_WRITE, 0, 77, 0,
                        &mr, NULL), 0);
    FAB_EQUAL(fi_mr_bind(mr, &ep->fid, 0), 0);
    FAB_EQUAL(fi_mr_enable(mr), 0);
    key = fi_mr_key(mr);
    FAB_EQUAL(fi_write(me->ep, &word, 8, NULL, addr, 0, key, NULL), 0);
    fab_entry(me, &me->tx);
    /* It is complete before it is seen */
    FAB_UNTIL(me, fab_load(me->window) == 3);
    FAB_EQUAL(fi_close(&mr->fid), 0);
    FAB_EQUAL(fi_close(&ep->fid), 0);
    fi_freeinfo(info);
}


static void check_error(fab_side_t *me, int err, int code)
{
    struct fi_cq_err_entry entry = fab_error(me, &me->tx);

    FAB_EQUAL(entry.err, err);
    FAB_EQUAL(entry.prov_errno, code);
}

/* All kinds of access end with the same */
static void check_access(fab_side_t *me, fi_addr_t addr, uint64_t key, int code)
{
    uint64_t word = 1, result = 0;

    FAB_MUST(me, fi_write(me->ep, &word, 8, NULL, addr, 0, key, NULL));
    check_error(me, FI_EIO, code);
    FAB_MUST(me, fi_read(me->ep, &word, 8, NULL, addr, 0, key, NULL));
    check_error(me, FI_EIO, code);
    FAB_MUST(me, fi_atomic(me->ep, &word, 1, NULL, addr, 0, key, FI_UINT64,
                           FI_SUM, NULL));
    check_error(me, FI_EIO, code);
    FAB_MUST(me, fi_fetch_atomic(me->ep, &word, 1, NULL, &result, NULL, addr, 0,
                                 key, FI_UINT64, FI_SUM, NULL));
    check_error(me, FI_EIO, code);
}

/* A key that is none is told from an endpoint that is none */
FAB_CASE(causes, .sockets = ONLY_CXI)
{
    struct fid_ep *ep = fab_endpoint(me);
    char name[FAB_NAME_MAX];
    size_t length     = sizeof(name);
    uint64_t word     = 0;
    fi_addr_t addr;

    check_access(me, me->self, 0x1234, ENTRY_NOT_FOUND);
    FAB_EQUAL(fi_getname(&ep->fid, name, &length), 0);
    FAB_EQUAL(fi_av_insert(me->av, name, 1, &addr, 0, NULL), 1);
    FAB_EQUAL(fi_close(&ep->fid), 0);
    check_access(me, addr, me->mine.key, PTLTE_NOT_FOUND);
    FAB_MUST(me, fi_send(me->ep, &word, 8, NULL, addr, NULL));
    check_error(me, FI_EIO, PTLTE_NOT_FOUND);
    fab_barrier(me);
}

FAB_SUITE("fab_card")
