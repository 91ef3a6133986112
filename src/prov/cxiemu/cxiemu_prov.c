/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_prov.c - the provider, and its entry without libfabric's loader. */
#include "cxiemu.h"
#include "cxiemu_fabric.h"
#include "cxiemu_info.h"
#include "cxiemu_log.h"

#include <rdma/fi_errno.h>

#include <string.h>

static void cxiemu_prov_cleanup(void);

struct fi_provider cxiemu_provider = {
    .version    = CXIEMU_PROV_VERSION,
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .name       = CXIEMU_PROV_NAME,
    .getinfo    = cxiemu_info_get,
    .fabric     = cxiemu_fabric_open,
    .cleanup    = cxiemu_prov_cleanup
};


/* All there is belongs to domains. */
static void cxiemu_prov_cleanup(void)
{
}

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

int cxiemu_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
                  void *context)
{
    return cxiemu_fabric_open(attr, fabric, context);
}
