/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_ext.c - operations of a domain beyond libfabric's interface.
 */
#include "fabric/cxiemu_fabric.h"

#include <rdma/fi_errno.h>

#include <stdbool.h>
#include <string.h>
#include <time.h>

/* CXI's names for its own operations: "dom_ops_v1" to "dom_ops_v6", each the
 * start of the next */
#define CXIEMU_CXI_DOM_OPS     "dom_ops_v"
#define CXIEMU_CXI_DOM_OPS_MAX 6

/* CXI's commands for fi_control() of a domain; each takes a bool */
enum {
    CXIEMU_CXI_SET_MATCH_EVENTS = -(0xccc << 16) + 3,
    CXIEMU_CXI_GET_MATCH_EVENTS,
    CXIEMU_CXI_SET_OPTIMIZED_MRS,
    CXIEMU_CXI_GET_OPTIMIZED_MRS,
    CXIEMU_CXI_SET_KEY_CACHE,
    CXIEMU_CXI_GET_KEY_CACHE
};


/* As in CXI's rdma/fi_cxi_ext.h, which distributions leave out. */
struct cxiemu_cxi_dom_ops {
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


CXIEMU_NO_CALL(cxiemu_ext_cntr_read, struct fid *fid, unsigned int cntr,
               uint64_t *value, struct timespec *ts)

CXIEMU_NO_CALL(cxiemu_ext_topology, struct fid *fid, unsigned int *group_id,
               unsigned int *switch_id, unsigned int *port_id)

/* What has no cost here is always as it is wanted. */
static int cxiemu_ext_hint(struct fid *fid, bool enable)
{
    return 0;
}

/* Of keys that the provider chooses. */
static int cxiemu_ext_set(const cxiemu_domain_t *domain, int *option,
                          bool value)
{
    if (!domain->prov_key) {
        return -FI_EINVAL;
    }
    *option = value;
    return 0;
}

int cxiemu_ext_control(cxiemu_domain_t *domain, int command, void *arg)
{
    bool *value = arg;

    switch (command) {
    case CXIEMU_CXI_SET_MATCH_EVENTS:
        return 0;
    case CXIEMU_CXI_GET_MATCH_EVENTS:
        *value = false;
        return 0;
    case CXIEMU_CXI_SET_OPTIMIZED_MRS:
        return cxiemu_ext_set(domain, &domain->optimizes_keys, *value);
    case CXIEMU_CXI_GET_OPTIMIZED_MRS:
        *value = domain->optimizes_keys;
        return 0;
    case CXIEMU_CXI_SET_KEY_CACHE:
        return cxiemu_ext_set(domain, &domain->caches_keys, *value);
    case CXIEMU_CXI_GET_KEY_CACHE:
        *value = domain->caches_keys;
        return 0;
    default:
        return -FI_EINVAL;
    }
}

static int cxiemu_ext_optimized_mrs(struct fid *fid, bool enable)
{
    return (fid->fclass == FI_CLASS_DOMAIN) ?
           cxiemu_ext_control(container_of(fid, cxiemu_domain_t, fid.fid),
                              CXIEMU_CXI_SET_OPTIMIZED_MRS, &enable) :
           -FI_EINVAL;
}

static size_t cxiemu_ext_unexp_msgs(struct fid_ep *ep,
                                    struct fi_cq_tagged_entry *entry,
                                    size_t count, fi_addr_t *src_addr,
                                    size_t *ux_count)
{
    return (size_t)-FI_ENOSYS;
}

static int cxiemu_ext_dwq_depth(struct fid *fid, size_t *depth)
{
    if (fid->fclass != FI_CLASS_DOMAIN) {
        return -FI_EINVAL;
    }

    *depth = cxiemu_param()->max_entries;
    return 0;
}

static struct cxiemu_cxi_dom_ops cxiemu_ext_cxi_ops = {
    .cntr_read              = cxiemu_ext_cntr_read,
    .topology               = cxiemu_ext_topology,
    .enable_hybrid_mr_desc  = cxiemu_ext_hint,
    .ep_get_unexp_msgs      = cxiemu_ext_unexp_msgs,
    .get_dwq_depth          = cxiemu_ext_dwq_depth,
    .enable_mr_match_events = cxiemu_ext_hint,
    .enable_optimized_mrs   = cxiemu_ext_optimized_mrs
};

int cxiemu_ext_open(struct fid *fid, const char *name, uint64_t flags,
                    void **ops, void *context)
{
    size_t length = strlen(CXIEMU_CXI_DOM_OPS);

    if ((name == NULL) || (ops == NULL) ||
        strncmp(name, CXIEMU_CXI_DOM_OPS, length) || (name[length] < '1') ||
        (name[length] > '0' + CXIEMU_CXI_DOM_OPS_MAX) ||
        (name[length + 1] != '\0')) {
        return -FI_EINVAL;
    }
    *ops = &cxiemu_ext_cxi_ops;
    return 0;
}
