/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_domain.c - domains: each has an emulated NIC. */
#include "fabric/cxiemu_fabric.h"
#include "fabric/cxiemu_info.h"
#include "base/cxiemu_service.h"
#include "obj/cxiemu_av.h"
#include "run/cxiemu_progress.h"

#include <ucs_gpu.h>

#include <rdma/fi_errno.h>

#include <stdlib.h>


static int cxiemu_domain_close(struct fid *fid)
{
    cxiemu_domain_t *domain = container_of(fid, cxiemu_domain_t, fid.fid);
    unsigned refs;

    cxiemu_nic_lock(domain->nic);
    refs = domain->refs;
    cxiemu_nic_unlock(domain->nic);
    if (refs > 0) {
        return -FI_EBUSY;
    }
    cxiemu_nic_destroy(domain->nic);
    cxiemu_service_give(CXIEMU_SERVICE_CNTRS, domain->kept_cntrs);
    cxiemu_service_close();
    __atomic_sub_fetch(&domain->fabric->refs, 1, __ATOMIC_RELEASE);
    cxiemu_open_del(CXIEMU_OPEN_DOMAIN);
    fi_freeinfo(domain->info);
    free(domain);
    return 0;
}

static struct fi_ops cxiemu_domain_fid_ops = {
    .size     = sizeof(struct fi_ops),
    .close    = cxiemu_domain_close,
    .bind     = cxiemu_no_bind,
    .control  = cxiemu_dwq_control,
    .ops_open = cxiemu_ext_open
};


static int cxiemu_domain_endpoint2(struct fid_domain *domain,
                                   struct fi_info *info, struct fid_ep **ep,
                                   uint64_t flags, void *context)
{
    return (flags != 0) ? -FI_ENOSYS :
                          cxiemu_ep_open(domain, info, ep, context);
}

CXIEMU_NO_CALL(cxiemu_domain_no_scalable, struct fid_domain *domain,
               struct fi_info *info, struct fid_ep **sep, void *context)

CXIEMU_NO_CALL(cxiemu_domain_no_poll, struct fid_domain *domain,
               struct fi_poll_attr *attr, struct fid_poll **pollset)

CXIEMU_NO_CALL(cxiemu_domain_no_stx, struct fid_domain *domain,
               struct fi_tx_attr *attr, struct fid_stx **stx, void *context)

CXIEMU_NO_CALL(cxiemu_domain_no_srx, struct fid_domain *domain,
               struct fi_rx_attr *attr, struct fid_ep **rx_ep, void *context)

CXIEMU_NO_CALL(cxiemu_domain_no_collective, struct fid_domain *domain,
               enum fi_collective_op coll, struct fi_collective_attr *attr,
               uint64_t flags)

static struct fi_ops_domain cxiemu_domain_ops = {
    .size             = sizeof(struct fi_ops_domain),
    .av_open          = cxiemu_av_open,
    .cq_open          = cxiemu_cq_open,
    .endpoint         = cxiemu_ep_open,
    .scalable_ep      = cxiemu_domain_no_scalable,
    .cntr_open        = cxiemu_cntr_open,
    .poll_open        = cxiemu_domain_no_poll,
    .stx_ctx          = cxiemu_domain_no_stx,
    .srx_ctx          = cxiemu_domain_no_srx,
    .query_atomic     = cxiemu_query_atomic,
    .query_collective = cxiemu_domain_no_collective,
    .endpoint2        = cxiemu_domain_endpoint2
};

int cxiemu_domain_open(struct fid_fabric *fabric, struct fi_info *info,
                       struct fid_domain **domain_p, void *context)
{
    cxiemu_domain_t *domain;
    int ret;

    if ((info == NULL) || (info->domain_attr == NULL)) {
        return -FI_EINVAL;
    }
    if (!cxiemu_device_exists(info->domain_attr->name)) {
        return -FI_ENODEV;
    }
    ret = cxiemu_domain_check(info, info->domain_attr->tclass);
    if (ret != 0) {
        return ret;
    }
    domain = calloc(1, sizeof(*domain));
    if (domain == NULL) {
        return -FI_ENOMEM;
    }
    domain->info = fi_dupinfo(info);
    if (domain->info == NULL) {
        ret = -FI_ENOMEM;
        goto err_free;
    }
    ret = cxiemu_nic_create(&domain->nic);
    if (ret != 0) {
        goto err_info;
    }
    cxiemu_service_open();
    (void)ucs_gpu_loaded(); /* what endpoints send is looked at in these */
    domain->fid.fid.fclass  = FI_CLASS_DOMAIN;
    domain->fid.fid.context = context;
    domain->fid.fid.ops     = &cxiemu_domain_fid_ops;
    domain->fid.ops         = &cxiemu_domain_ops;
    domain->fid.mr          = &cxiemu_mr_domain_ops;
    domain->tclass          = cxiemu_tclass(info->domain_attr->tclass,
                                            FI_TC_BEST_EFFORT);
    domain->prov_key        = !!(info->domain_attr->mr_mode & FI_MR_PROV_KEY);
    domain->caches_keys     = domain->prov_key;
    domain->optimizes_keys  = domain->prov_key;
    domain->fabric          = container_of(fabric, cxiemu_fabric_t, fid);
    __atomic_add_fetch(&domain->fabric->refs, 1, __ATOMIC_RELAXED);
    cxiemu_open_add(CXIEMU_OPEN_DOMAIN);
    *domain_p = &domain->fid;
    return 0;

err_info:
    fi_freeinfo(domain->info);
err_free:
    free(domain);
    return ret;
}
