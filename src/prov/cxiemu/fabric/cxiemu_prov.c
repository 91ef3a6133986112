/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_prov.c - the provider, and its entry without libfabric's loader. */
#include "cxiemu.h"
#include "fabric/cxiemu_domain.h"
#include "fabric/cxiemu_info.h"
#include "fabric/cxiemu_log.h"

#include <rdma/fi_errno.h>

#include <string.h>

/* All there is belongs to domains. */
static void cxiemu_prov_cleanup(void)
{
}

struct fi_provider cxiemu_provider = {
    .version    = CXIEMU_PROV_VERSION,
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .name       = CXIEMU_PROV_NAME,
    .getinfo    = cxiemu_info_get,
    .fabric     = cxiemu_fabric,
    .cleanup    = cxiemu_prov_cleanup
};

/* Atomic */
static const cxiemu_hooks_t *cxiemu_prov_hooks;


void cxiemu_set_hooks(const cxiemu_hooks_t *hooks)
{
    __atomic_store_n(&cxiemu_prov_hooks, hooks, __ATOMIC_RELEASE);
}

const cxiemu_hooks_t *cxiemu_hooks(void)
{
    return __atomic_load_n(&cxiemu_prov_hooks, __ATOMIC_ACQUIRE);
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
