/* SPDX-License-Identifier: BSD-3-Clause */
/* fab_open.c - opens and closes what a party has. */
#include "fab_world.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAB_WINDOW     (64 * FAB_KIB)
#define FAB_WINDOW_KEY 11u
#define FAB_CAPS \
    (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_TRIGGER | FI_RMA_EVENT | \
     FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE)


struct fi_info *fab_hints(const fab_config_t *config)
{
    struct fi_info *hints = fi_allocinfo();

    FAB_REQUIRE(hints != NULL);
    hints->fabric_attr->prov_name     = strdup(fab_provider());
    hints->ep_attr->type              = FI_EP_RDM;
    hints->caps                       = FAB_CAPS | config->caps;
    hints->mode                       = FI_CONTEXT;
    hints->domain_attr->mr_mode       = FI_MR_ENDPOINT | FI_MR_ALLOCATED |
                                        config->mr_mode;
    hints->domain_attr->threading     = FI_THREAD_SAFE;
    hints->tx_attr->size              = config->tx_size;
    hints->tx_attr->msg_order         = config->msg_order;
    hints->rx_attr->msg_order         = config->msg_order;
    return hints;
}

struct fi_info *fab_getinfo(struct fi_info *hints)
{
    struct fi_info *info = NULL;
    int ret;

    ret = fab_is_cassini() ?
          fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) :
          fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints,
                     &info);
    return (ret == 0) ? info : NULL;
}

static void fab_open_cq(fab_side_t *me, fab_cq_t *cq)
{
    struct fi_cq_attr attr = {
        .size     = 4096,
        .format   = (me->config->format != FI_CQ_FORMAT_UNSPEC) ?
                    me->config->format : FI_CQ_FORMAT_TAGGED,
        .wait_obj = me->config->wait
    };

    FAB_EQUAL(fi_cq_open(me->domain, &attr, &cq->cq, NULL), 0);
    FAB_REQUIRE(cq->cq != NULL);
}

struct fid_cntr *fab_cntr(fab_side_t *me)
{
    struct fi_cntr_attr attr = {
        .events   = FI_CNTR_EVENTS_COMP,
        .wait_obj = FI_WAIT_UNSPEC
    };
    struct fid_cntr *cntr    = NULL;

    FAB_EQUAL(fi_cntr_open(me->domain, &attr, &cntr, NULL), 0);
    FAB_REQUIRE(cntr != NULL);
    return cntr;
}

void fab_cntr_close(struct fid_cntr *cntr)
{
    FAB_EQUAL(fi_close(&cntr->fid), 0);
}

static void fab_bind_cq(fab_side_t *me, struct fid_ep *ep)
{
    uint64_t flags = me->config->selective ? FI_SELECTIVE_COMPLETION : 0;

    FAB_EQUAL(fi_ep_bind(ep, &me->tx.cq->fid, FI_TRANSMIT | flags), 0);
    FAB_EQUAL(fi_ep_bind(ep, &me->rx.cq->fid, FI_RECV | flags), 0);
    FAB_EQUAL(fi_ep_bind(ep, &me->av->fid, 0), 0);
}

/* CXI's deferred atomics need the counters of writes and reads to be there. */
static void fab_open_ep(fab_side_t *me)
{
    FAB_EQUAL(fi_endpoint(me->domain, me->info, &me->ep, me), 0);
    FAB_REQUIRE(me->ep != NULL);
    fab_bind_cq(me, me->ep);
    me->send  = fab_cntr(me);
    me->recv  = fab_cntr(me);
    me->write = fab_cntr(me);
    me->read  = fab_cntr(me);
    FAB_EQUAL(fi_ep_bind(me->ep, &me->send->fid, FI_SEND), 0);
    FAB_EQUAL(fi_ep_bind(me->ep, &me->recv->fid, FI_RECV), 0);
    FAB_EQUAL(fi_ep_bind(me->ep, &me->write->fid, FI_WRITE), 0);
    FAB_EQUAL(fi_ep_bind(me->ep, &me->read->fid, FI_READ), 0);
    FAB_EQUAL(fi_enable(me->ep), 0);
}

struct fid_ep *fab_endpoint(fab_side_t *me)
{
    struct fid_ep *ep = NULL;

    FAB_EQUAL(fi_endpoint(me->domain, me->info, &ep, me), 0);
    FAB_REQUIRE(ep != NULL);
    fab_bind_cq(me, ep);
    FAB_EQUAL(fi_enable(ep), 0);
    return ep;
}

static int fab_tolerates(int ret, int code)
{
    return (ret == 0) || ((fab_subject() == FAB_SOCKETS) && (ret == code));
}

static void fab_enable(fab_side_t *me, struct fid_mr *mr,
                       struct fid_cntr *cntr)
{
    if (cntr != NULL) {
        FAB_EQUAL(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
    }
    FAB_CHECK(fab_tolerates(fi_mr_bind(mr, &me->ep->fid, 0), -FI_EINVAL));
    FAB_CHECK(fab_tolerates(fi_mr_enable(mr), -FI_ENOSYS));
}

struct fid_mr *fab_register_access(fab_side_t *me, void *buffer, size_t length,
                                   uint64_t key, uint64_t access)
{
    struct fid_mr *mr = NULL;

    FAB_EQUAL(fi_mr_reg(me->domain, buffer, length, access, 0, key, 0, &mr,
                        NULL), 0);
    FAB_REQUIRE(mr != NULL);
    fab_enable(me, mr, NULL);
    return mr;
}

struct fid_mr *fab_register(fab_side_t *me, void *buffer, size_t length,
                            uint64_t key, struct fid_cntr *cntr)
{
    uint64_t access   = FI_READ | FI_WRITE | FI_SEND | FI_RECV |
                        FI_REMOTE_READ | FI_REMOTE_WRITE;
    struct fid_mr *mr = NULL;

    FAB_EQUAL(fi_mr_reg(me->domain, buffer, length, access, 0, key,
                        (cntr != NULL) ? FI_RMA_EVENT : 0, &mr, NULL), 0);
    FAB_REQUIRE(mr != NULL);
    fab_enable(me, mr, cntr);
    return mr;
}

uint64_t fab_base(const fab_side_t *me, const void *buffer)
{
    return (me->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) ?
           (uintptr_t)buffer : 0;
}

static void fab_open_window(fab_side_t *me)
{
    me->length = (me->config->window != 0) ? me->config->window : FAB_WINDOW;
    FAB_REQUIRE(posix_memalign((void**)&me->window, 4096, me->length) == 0);
    memset(me->window, 0, me->length);
    me->landed    = fab_cntr(me);
    me->mr        = fab_register(me, me->window, me->length, FAB_WINDOW_KEY,
                                 me->landed);
    me->mine.key  = fi_mr_key(me->mr);
    me->mine.base = fab_base(me, me->window);
}

void fab_open(fab_side_t *me)
{
    struct fi_info *hints  = fab_hints(me->config);
    struct fi_av_attr attr = {
        .type  = (me->config->av_type != FI_AV_UNSPEC) ? me->config->av_type :
                                                         FI_AV_TABLE,
        .count = 16
    };

    me->info = fab_getinfo(hints);
    fi_freeinfo(hints);
    FAB_REQUIRE(me->info != NULL);
    FAB_REQUIRE(fi_fabric(me->info->fabric_attr, &me->fabric, NULL) == 0);
    FAB_REQUIRE(fi_domain(me->fabric, me->info, &me->domain, NULL) == 0);
    FAB_REQUIRE(fi_av_open(me->domain, &attr, &me->av, NULL) == 0);
    fab_open_cq(me, &me->tx);
    fab_open_cq(me, &me->rx);
    fab_open_ep(me);
    if (!me->config->no_window) {
        fab_open_window(me);
    }
    me->mine.pid         = (uint64_t)getpid();
    me->mine.name_length = FAB_NAME_MAX;
    FAB_REQUIRE(fi_getname(&me->ep->fid, me->mine.name,
                           &me->mine.name_length) == 0);
}

void fab_connect(fab_side_t *me)
{
    fab_swap(me, &me->mine, &me->theirs, sizeof(me->mine));
    FAB_REQUIRE(fi_av_insert(me->av, me->mine.name, 1, &me->self, 0, NULL) ==
                1);
    FAB_REQUIRE(fi_av_insert(me->av, me->theirs.name, 1, &me->peer, 0,
                             NULL) == 1);
}

static void fab_shut(struct fid *fid)
{
    FAB_EQUAL(fi_close(fid), 0);
}

void fab_close(fab_side_t *me)
{
    if (me->mr != NULL) {
        fab_shut(&me->mr->fid);
        fab_shut(&me->landed->fid);
    }
    fab_shut(&me->ep->fid);
    fab_shut(&me->send->fid);
    fab_shut(&me->recv->fid);
    fab_shut(&me->write->fid);
    fab_shut(&me->read->fid);
    fab_shut(&me->tx.cq->fid);
    fab_shut(&me->rx.cq->fid);
    fab_shut(&me->av->fid);
    fab_shut(&me->domain->fid);
    fab_shut(&me->fabric->fid);
    fi_freeinfo(me->info);
    free(me->window);
    free(me->tx.stash);
    free(me->rx.stash);
}
