/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_fabric.c - the provider and its fabrics. */
#include "cxiemu.h"
#include "fabric/cxiemu_fabric.h"
#include "fabric/cxiemu_info.h"
#include "base/cxiemu_log.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>

static int cxiemu_fabric_close(struct fid *fid)
{
    cxiemu_fabric_t *fabric = container_of(fid, cxiemu_fabric_t, fid.fid);

    if (__atomic_load_n(&fabric->refs, __ATOMIC_ACQUIRE) > 0) {
        return -FI_EBUSY;
    }
    cxiemu_open_del(CXIEMU_OPEN_FABRIC);
    free(fabric);
    return 0;
}

static int cxiemu_fabric_domain2(struct fid_fabric *fabric,
                                 struct fi_info *info,
                                 struct fid_domain **domain, uint64_t flags,
                                 void *context)
{
    return (flags != 0) ? -FI_ENOSYS :
                          cxiemu_domain_open(fabric, info, domain, context);
}

CXIEMU_NO_CALL(cxiemu_fabric_no_passive, struct fid_fabric *fabric,
               struct fi_info *info, struct fid_pep **pep, void *context)

CXIEMU_NO_CALL(cxiemu_fabric_no_wait, struct fid_fabric *fabric,
               struct fi_wait_attr *attr, struct fid_wait **waitset)

static int cxiemu_fabric_trywait(struct fid_fabric *fabric, struct fid **fids,
                                 int count)
{
    int i, ret = 0;

    for (i = 0; (i < count) && (ret == 0); ++i) {
        switch (fids[i]->fclass) {
        case FI_CLASS_CQ:
            ret = cxiemu_cq_trywait(fids[i]);
            break;
        case FI_CLASS_EQ:
            ret = cxiemu_eq_trywait(fids[i]);
            break;
        case FI_CLASS_CNTR:
            ret = cxiemu_cntr_trywait(fids[i]);
            break;
        default:
            ret = -FI_EINVAL;
        }
    }
    return ret;
}

static struct fi_ops cxiemu_fabric_fid_ops = {
    .size     = sizeof(struct fi_ops),
    .close    = cxiemu_fabric_close,
    .bind     = cxiemu_no_bind,
    .control  = cxiemu_no_control,
    .ops_open = cxiemu_no_ops_open
};

static struct fi_ops_fabric cxiemu_fabric_ops = {
    .size       = sizeof(struct fi_ops_fabric),
    .domain     = cxiemu_domain_open,
    .passive_ep = cxiemu_fabric_no_passive,
    .eq_open    = cxiemu_eq_open,
    .wait_open  = cxiemu_fabric_no_wait,
    .trywait    = cxiemu_fabric_trywait,
    .domain2    = cxiemu_fabric_domain2
};


int cxiemu_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric_p,
                  void *context)
{
    cxiemu_fabric_t *fabric;
    int ret;

    if ((attr == NULL) || (fabric_p == NULL)) {
        return -FI_EINVAL;
    }
    if ((attr->name != NULL) && strcmp(attr->name, CXIEMU_FABRIC_NAME)) {
        return -FI_ENODATA;
    }
    ret = cxiemu_init();
    if (ret != 0) {
        return ret;
    }
    fabric = calloc(1, sizeof(*fabric));
    if (fabric == NULL) {
        return -FI_ENOMEM;
    }
    fabric->fid.fid.fclass  = FI_CLASS_FABRIC;
    fabric->fid.fid.context = context;
    fabric->fid.fid.ops     = &cxiemu_fabric_fid_ops;
    fabric->fid.ops         = &cxiemu_fabric_ops;
    fabric->fid.api_version = attr->api_version;
    cxiemu_open_add(CXIEMU_OPEN_FABRIC);
    *fabric_p               = &fabric->fid;
    return 0;
}


/* Without a function that cleans up: all there is belongs to domains. */
struct fi_provider cxiemu_provider = {
    .version    = CXIEMU_PROV_VERSION,
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .name       = CXIEMU_PROV_NAME,
    .getinfo    = cxiemu_info_get,
    .fabric     = cxiemu_fabric
};

int cxiemu_getinfo(uint32_t version, const char *node, const char *service,
                   uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info)
{
    struct fi_info *entry;
    int ret;

    if ((hints != NULL) && (hints->fabric_attr != NULL) &&
        (hints->fabric_attr->prov_name != NULL) &&
        strcmp(hints->fabric_attr->prov_name, CXIEMU_PROV_NAME)) {
        return -FI_ENODATA;
    }
    ret = cxiemu_info_get(version, node, service, flags, hints, info);
    if (ret != 0) {
        return ret;
    }
    for (entry = *info; entry != NULL; entry = entry->next) {
        entry->fabric_attr->prov_name = strdup(CXIEMU_PROV_NAME);
        if (entry->fabric_attr->prov_name == NULL) {
            fi_freeinfo(*info);
            *info = NULL;
            return -FI_ENOMEM;
        }
    }
    return 0;
}
