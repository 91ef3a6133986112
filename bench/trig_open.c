/* SPDX-License-Identifier: BSD-3-Clause */
/* trig_open.c - opens and closes the provider for st_trig. */
#include "trig_fab.h"

#include <stdlib.h>
#include <string.h>


void trig_must(trig_fab_t *fab, const char *what, ssize_t ret)
{
    if (ret != 0) {
        trig_give_up(fab->me, what, (int)ret);
    }
}

#ifndef HAVE_CXIEMU
/* A build without the emulated card: libfabric's loader may find a module */
#define cxiemu_getinfo fi_getinfo
#define cxiemu_fabric  fi_fabric
#endif

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

struct fid_cntr *trig_cntr(trig_fab_t *fab)
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

static uint64_t trig_open_region(trig_fab_t *fab, trig_region_t *region)
{
    size_t length = 2 * TRIG_MAX_SIZE;
    void *base    = NULL;

    trig_must(fab, "posix_memalign", posix_memalign(&base, 4096, length));
    region->base   = base;
    region->landed = trig_cntr(fab);
    region->mr     = trig_register(fab, base, length, 10, region->landed);
    return fi_mr_key(region->mr);
}

static void trig_open_memory(trig_fab_t *fab)
{
    trig_page_t *page = fab->me->page;
    int rank          = fab->me->rank;

    trig_must(fab, "posix_memalign",
              posix_memalign((void**)&fab->word_page, 4096, TRIG_WORDS));
    fab->word_mr         = trig_register(fab, fab->word_page, TRIG_WORDS, 12,
                                         NULL);
    page->key_word[rank] = fi_mr_key(fab->word_mr);
    page->key[rank]      = trig_open_region(fab, &fab->region);
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
    fab->region.key = page->key[!rank];
    fab->word_key   = page->key_word[!rank];
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
    trig_meet(fab);
    return fab;
}

static void trig_close_pairs(trig_fab_t *fab)
{
    unsigned i;

    for (i = 0; (i < TRIG_BATCH) && (fab->pairs[i][0] != NULL); ++i) {
        fi_close(&fab->pairs[i][0]->fid);
        fi_close(&fab->pairs[i][1]->fid);
    }
}

void trig_fab_close(trig_fab_t *fab)
{
    fi_close(&fab->region.mr->fid);
    fi_close(&fab->region.landed->fid);
    free(fab->region.base);
    fi_close(&fab->word_mr->fid);
    free(fab->word_page);
    fi_close(&fab->ep->fid);
    trig_close_pairs(fab);
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
