/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_fi_mr.c - memory regions, as libfabric has them.
 *
 *   registered -> (bind endpoint, bind counter) -> enabled -> closed
 *
 * A key that the user chose is taken at registration, so that a second one of
 * its kind is refused there; a key of the provider's is made when the region is
 * enabled. Peers reach enabled regions alone. All that a peer may do wrong is
 * one error to it, as CXI has it: FI_EIO.
 *
 * The provider's keys are CXI's in strict mode, with all that they do not
 * protect from. A region that counts nothing has a *cached* key, unless the
 * domain was told otherwise: it is an address, and good for all memory of the
 * process as long as the endpoint lives. Other keys have a number, which is
 * used again, and a sequence number. The first few numbers are *optimized*:
 * their sequence number is not looked at.
 *
 * A region of a GPU's memory is accessed through a mapping of its own
 * (cxiemu_dma.h), and never has a cached key: that would be the address.
 */
#include "fabric/cxiemu_fabric.h"
#include "base/cxiemu_log.h"
#include "op/cxiemu_mr.h"
#include "run/cxiemu_progress.h"

#include <ucs_gpu.h>

#include <rdma/fi_errno.h>

#include <stdlib.h>

#define CXIEMU_MR_USER_KEYS ((1ull << 32) - 1)
#define CXIEMU_MR_NUM_OPTIMIZED 92
#define CXIEMU_MR_REMOTE    (FI_REMOTE_READ | FI_REMOTE_WRITE)


static cxiemu_domain_t *cxiemu_mr_domain(const cxiemu_mr_t *mr)
{
    return mr->bound ? mr->ep->domain : mr->domain;
}

/* A key unlikely to be one of an earlier region, or a guess */
static uint64_t cxiemu_mr_key_fast(cxiemu_domain_t *domain)
{
    uint64_t salt = cxiemu_nic_random(domain->nic) & 0x1fffffff;

    return CXIEMU_MR_PROV_KEY | (salt << 32) |
           (domain->next_key++ & CXIEMU_MR_USER_KEYS);
}

/* The region's endpoint takes cached keys from now on */
static int cxiemu_mr_cache(cxiemu_mr_t *mr)
{
    cxiemu_ep_t *ep = mr->ep;

    if (ep->cached == NULL) {
        ep->cached = calloc(1, sizeof(*ep->cached));
        if (ep->cached == NULL) {
            return -FI_ENOMEM;
        }
        ep->cached->ep    = ep;
        ep->cached->bound = 1;
    }
    mr->fid.key = CXIEMU_MR_PROV_KEY | CXIEMU_MR_CACHED |
                  ((uintptr_t)mr->address & CXIEMU_MR_ADDRESS);
    return 0;
}

/* The lowest number that is free */
static int cxiemu_mr_number(cxiemu_domain_t *domain, uint64_t *number_p)
{
    size_t i, bit;

    for (i = 0; i < CXIEMU_MR_NUMBER_WORDS; ++i) {
        if (domain->numbers[i] != UINT64_MAX) {
            bit                 = (size_t)__builtin_ctzll(~domain->numbers[i]);
            domain->numbers[i] |= 1ull << bit;
            *number_p           = (i * 64) + bit;
            return 0;
        }
    }
    return -FI_ENOSPC;
}

static void cxiemu_mr_free_number(cxiemu_domain_t *domain, uint64_t key)
{
    uint64_t number = key & CXIEMU_MR_ID;

    domain->numbers[number / 64] &= ~(1ull << (number % 64));
}

static int cxiemu_mr_make_key(cxiemu_mr_t *mr)
{
    cxiemu_domain_t *domain = mr->ep->domain;
    uint64_t number, key;
    int ret;

    if (!cxiemu_param()->strict) {
        cxiemu_mr_list(domain->nic, mr, cxiemu_mr_key_fast(domain));
        return 0;
    }
    if (domain->caches_keys && (mr->cntr == NULL) && !mr->has_event &&
        !mr->is_gpus) {
        return cxiemu_mr_cache(mr);
    }
    ret = cxiemu_mr_number(domain, &number);
    if (ret != 0) {
        return ret;
    }
    key = CXIEMU_MR_PROV_KEY | number |
          ((++domain->next_key << 16) & CXIEMU_MR_SEQUENCE);
    if (domain->optimizes_keys && (number < CXIEMU_MR_NUM_OPTIMIZED)) {
        key |= CXIEMU_MR_OPTIMIZED;
    }
    cxiemu_mr_list(domain->nic, mr, key);
    return 0;
}

static int cxiemu_mr_enable(cxiemu_mr_t *mr)
{
    int ret;

    if (!mr->bound) {
        cxiemu_warn(MR, "a region must be bound to an endpoint first\n");
        return -FI_EINVAL;
    }
    if (mr->enabled || (mr->access == 0)) {
        return 0;
    }

    if (!mr->listed) {
        ret = cxiemu_mr_make_key(mr);
        if (ret != 0) {
            return ret;
        }
    }
    mr->enabled = 1;
    return 0;
}

static int cxiemu_mr_bind_ep(cxiemu_mr_t *mr, struct fid *bfid)
{
    cxiemu_ep_t *ep = cxiemu_ep_handle(bfid)->ep;

    if ((ep->domain != cxiemu_mr_domain(mr)) || mr->enabled || mr->bound ||
        !ep->enabled) {
        return -FI_EINVAL;
    }
    if (mr->has_event && !(ep->caps & FI_RMA_EVENT)) {
        cxiemu_warn(MR, "a region with FI_RMA_EVENT needs an endpoint that has "
                    "it, too\n");
        return -FI_EINVAL;
    }

    mr->ep    = ep;
    mr->bound = 1;
    ++ep->refs;
    return 0;
}

static int cxiemu_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
    cxiemu_mr_t *mr   = container_of(fid, cxiemu_mr_t, fid.fid);
    cxiemu_nic_t *nic = cxiemu_mr_domain(mr)->nic;
    int ret           = -FI_EINVAL;
    cxiemu_cntr_t *cntr;

    cxiemu_nic_lock(nic);
    if (bfid->fclass == FI_CLASS_CNTR) {
        cntr = container_of(bfid, cxiemu_cntr_t, fid.fid);
        /* One counter a region; a counter may have several regions */
        if ((cntr->domain == cxiemu_mr_domain(mr)) && !mr->enabled &&
            (mr->cntr == NULL) && (flags & FI_REMOTE_WRITE)) {
            mr->cntr = cntr;
            ++cntr->refs;
            ret = 0;
        }
    } else if (bfid->fclass == FI_CLASS_EP) {
        ret = cxiemu_mr_bind_ep(mr, bfid);
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

static int cxiemu_mr_control(struct fid *fid, int command, void *arg)
{
    cxiemu_mr_t *mr   = container_of(fid, cxiemu_mr_t, fid.fid);
    cxiemu_nic_t *nic = cxiemu_mr_domain(mr)->nic;
    int ret;

    switch (command) {
    case FI_ENABLE:
        cxiemu_nic_lock(nic);
        ret = cxiemu_mr_enable(mr);
        cxiemu_nic_unlock(nic);
        return ret;
    case FI_REFRESH:
        return -FI_ENOSYS;
    default:
        return -FI_EINVAL;
    }
}

static void cxiemu_mr_free(cxiemu_mr_t *mr)
{
    cxiemu_mr_gpu_t *gpu = (cxiemu_mr_gpu_t*)mr;

    if (mr->is_gpus) {
        cxiemu_dma_unlist(gpu->dma);
        cxiemu_dma_put(gpu->dma);
    }
    free(mr);
}

static int cxiemu_mr_close(struct fid *fid)
{
    cxiemu_mr_t *mr         = container_of(fid, cxiemu_mr_t, fid.fid);
    cxiemu_domain_t *domain = cxiemu_mr_domain(mr);
    cxiemu_nic_t *nic       = domain->nic;

    cxiemu_nic_lock(nic);
    if (mr->enabled) {
        cxiemu_nic_drain(nic);
    }
    if (mr->listed) {
        cxiemu_mr_unlist(nic, mr);
        if (domain->prov_key && cxiemu_param()->strict) {
            cxiemu_mr_free_number(domain, mr->fid.key);
        }
    }
    if (mr->cntr != NULL) {
        --mr->cntr->refs;
    }
    if (mr->bound) {
        --mr->ep->refs;
    }
    --domain->refs;
    cxiemu_open_del(CXIEMU_OPEN_MR);
    cxiemu_nic_unlock(nic);
    cxiemu_mr_free(mr);
    return 0;
}

static struct fi_ops cxiemu_mr_fid_ops = {
    .size     = sizeof(struct fi_ops),
    .close    = cxiemu_mr_close,
    .bind     = cxiemu_mr_bind,
    .control  = cxiemu_mr_control,
    .ops_open = cxiemu_no_ops_open
};


/* Lock held. */
static int cxiemu_mr_take_key(cxiemu_mr_t *mr, uint64_t key)
{
    mr->fid.key = FI_KEY_NOTAVAIL;
    if (mr->domain->prov_key || (mr->access == 0)) {
        return 0;
    }

    if (key > CXIEMU_MR_USER_KEYS) {
        return -FI_EKEYREJECTED;
    }
    if (cxiemu_mr_lookup(mr->domain->nic, key) != NULL) {
        return -FI_ENOKEY; /* CXI's word for one that is there already */
    }
    cxiemu_mr_list(mr->domain->nic, mr, key);
    return 0;
}

/* A region without a key. Whose memory it is, the runtimes are asked, as CXI's
 * provider does; what the program says must be true. */
static int cxiemu_mr_alloc(const cxiemu_domain_t *domain,
                           const struct fi_mr_attr *attr, cxiemu_mr_t **mr_p)
{
    const struct iovec *iov = &attr->mr_iov[0];
    cxiemu_dma_t *dma       = NULL;
    cxiemu_mr_gpu_t *gpu;
    int ret;

    /* Programs older than the field have no such memory either */
    if (domain->info->caps & FI_HMEM) {
        (void)ucs_gpu_loaded();
        ret = cxiemu_dma_open(iov->iov_base, iov->iov_len, 1, &dma);
        if (ret != 0) {
            return ret;
        }
        if ((dma == NULL) && (attr->iface != FI_HMEM_SYSTEM)) {
            cxiemu_warn(MR, "memory at %p: no runtime of GPUs that gives "
                        "dma-bufs knows it\n", iov->iov_base);
            return -FI_EOPNOTSUPP;
        }
    }

    gpu = calloc(1, (dma != NULL) ? sizeof(*gpu) : sizeof(gpu->mr));
    if (gpu == NULL) {
        if (dma != NULL) {
            cxiemu_dma_unlist(dma);
        }
        cxiemu_dma_put(dma);
        return -FI_ENOMEM;
    }
    if (dma != NULL) {
        gpu->dma        = dma;
        gpu->mr.is_gpus = 1;
    }
    gpu->mr.address = cxiemu_dma_at(dma, iov->iov_base);
    gpu->mr.length  = iov->iov_len;
    *mr_p           = &gpu->mr;
    return 0;
}

static int cxiemu_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
                             uint64_t flags, struct fid_mr **mr_p)
{
    cxiemu_domain_t *domain = container_of(fid, cxiemu_domain_t, fid.fid);
    cxiemu_mr_t *mr;
    int ret;

    if ((fid->fclass != FI_CLASS_DOMAIN) || (attr == NULL) ||
        (attr->iov_count == 0) || (attr->mr_iov == NULL)) {
        return -FI_EINVAL;
    }
    if (attr->iov_count != 1) {
        return -FI_ENOSYS;
    }
    ret = cxiemu_mr_alloc(domain, attr, &mr);
    if (ret != 0) {
        return ret;
    }

    mr->domain          = domain;
    mr->access          = (uint16_t)(attr->access & CXIEMU_MR_REMOTE);
    mr->has_event       = (flags & FI_RMA_EVENT) != 0;
    mr->fid.fid.fclass  = FI_CLASS_MR;
    mr->fid.fid.context = attr->context;
    mr->fid.fid.ops     = &cxiemu_mr_fid_ops;
    mr->fid.mem_desc    = mr;

    cxiemu_nic_lock(domain->nic);
    ret            = cxiemu_mr_take_key(mr, attr->requested_key);
    domain->refs  += (ret == 0);
    cxiemu_nic_unlock(domain->nic);
    if (ret != 0) {
        cxiemu_mr_free(mr);
        return ret;
    }
    cxiemu_open_add(CXIEMU_OPEN_MR);
    *mr_p = &mr->fid;
    return 0;
}

static int cxiemu_mr_regv(struct fid *fid, const struct iovec *iov,
                          size_t count, uint64_t access, uint64_t offset,
                          uint64_t requested_key, uint64_t flags,
                          struct fid_mr **mr, void *context)
{
    struct fi_mr_attr attr = {
        .mr_iov        = iov,
        .iov_count     = count,
        .access        = access,
        .offset        = offset,
        .requested_key = requested_key,
        .context       = context,
        .iface         = FI_HMEM_SYSTEM
    };

    return cxiemu_mr_regattr(fid, &attr, flags, mr);
}

static int cxiemu_mr_reg(struct fid *fid, const void *buf, size_t len,
                         uint64_t access, uint64_t offset,
                         uint64_t requested_key, uint64_t flags,
                         struct fid_mr **mr, void *context)
{
    struct iovec iov = {.iov_base = (void*)buf, .iov_len = len};

    return cxiemu_mr_regv(fid, &iov, 1, access, offset, requested_key, flags,
                          mr, context);
}

struct fi_ops_mr cxiemu_mr_domain_ops = {
    .size    = sizeof(struct fi_ops_mr),
    .reg     = cxiemu_mr_reg,
    .regv    = cxiemu_mr_regv,
    .regattr = cxiemu_mr_regattr
};
