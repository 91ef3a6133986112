/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_ext.c - operations of a domain beyond libfabric's interface.
 */
#include "cxiemu.h"
#include "cxiemu_cntr.h"
#include "cxiemu_cq.h"
#include "cxiemu_ext.h"
#include "cxiemu_mr.h"

#include <rdma/fi_errno.h>

#include <stdbool.h>
#include <string.h>
#include <time.h>

/* CXI's names for its own operations: "dom_ops_v1" to "dom_ops_v6", each the
 * start of the next */
#define CXIEMU_CXI_DOM_OPS     "dom_ops_v"
#define CXIEMU_CXI_DOM_OPS_MAX 6


typedef struct cxiemu_word_wait {
    const uint64_t *word;
    uint64_t       value;
} cxiemu_word_wait_t;

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


static cxiemu_nic_t *cxiemu_ext_nic(struct fid_domain *fid)
{
    return container_of(fid, cxiemu_domain_t, fid)->nic;
}

static unsigned cxiemu_ext_progress(struct fid_domain *fid)
{
    return cxiemu_nic_poll(cxiemu_ext_nic(fid));
}

static unsigned cxiemu_ext_yield(struct fid_domain *fid)
{
    return cxiemu_nic_poll_shared(cxiemu_ext_nic(fid));
}

static unsigned cxiemu_ext_rest(struct fid_domain *fid)
{
    cxiemu_nic_t *nic = cxiemu_ext_nic(fid);
    unsigned count;

    cxiemu_nic_lock(nic);
    count = cxiemu_nic_rest(nic);
    cxiemu_nic_unlock(nic);
    return count;
}

/* Acquire: pairs with the release, or the order, of the store that counts. */
static int cxiemu_ext_word_ready(void *arg)
{
    const cxiemu_word_wait_t *wait = arg;

    return __atomic_load_n(wait->word, __ATOMIC_ACQUIRE) >= wait->value;
}

static int cxiemu_ext_wait_word(struct fid_domain *fid, const uint64_t *word,
                                uint64_t value, int timeout_ms)
{
    cxiemu_word_wait_t wait = {.word = word, .value = value};
    cxiemu_nic_t *nic       = cxiemu_ext_nic(fid);
    int ret;

    if (cxiemu_ext_word_ready(&wait)) {
        return 0;
    }

    cxiemu_nic_lock(nic);
    ret = cxiemu_nic_wait(nic, cxiemu_ext_word_ready, &wait, timeout_ms);
    cxiemu_nic_unlock(nic);
    return (ret == -FI_EAGAIN) ? -FI_ETIMEDOUT : ret;
}

static void cxiemu_ext_wake(struct fid_domain *fid)
{
    cxiemu_nic_t *nic = cxiemu_ext_nic(fid);

    cxiemu_nic_lock(nic);
    cxiemu_nic_wake_waiters(nic);
    cxiemu_nic_unlock(nic);
}

/* The lock is held from a store to the call that tells of it: who has it here
 * has seen the end of the last call of the one before. */
static int cxiemu_ext_on_store(struct fid_domain *fid,
                               cxiemu_store_func_t func, void *arg)
{
    cxiemu_nic_t *nic = cxiemu_ext_nic(fid);

    cxiemu_nic_lock(nic);
    nic->on_store     = func;
    nic->on_store_arg = arg;
    cxiemu_nic_unlock(nic);
    return 0;
}

static int cxiemu_ext_cntr_add_all(struct fid_domain *fid,
                                   struct fid_cntr *const *cntrs,
                                   const uint64_t *values, size_t count)
{
    return cxiemu_cntr_add_all(cxiemu_ext_nic(fid), cntrs, values, count);
}

static int cxiemu_ext_cntr_mirror(struct fid_domain *fid,
                                  struct fid_cntr *cntr, uint64_t *word)
{
    cxiemu_nic_t *nic = cxiemu_ext_nic(fid);

    cxiemu_nic_lock(nic);
    cxiemu_cntr_mirror(container_of(cntr, cxiemu_cntr_t, fid), word);
    cxiemu_nic_unlock(nic);
    return 0;
}

static int cxiemu_ext_cq_has_recv(struct fid_cq *cq)
{
    return cxiemu_cq_has_recv(container_of(cq, cxiemu_cq_t, fid));
}

static const char *cxiemu_ext_data_path(struct fid_domain *fid)
{
    return cxiemu_ext_nic(fid)->may_attach ? "mapped+cma" : "bounce";
}

static size_t cxiemu_ext_max_entries(struct fid_domain *fid)
{
    (void)fid;
    return cxiemu_param()->max_entries;
}

static struct fi_cxiemu_domain_ops cxiemu_ext_ops = {
    .size         = sizeof(struct fi_cxiemu_domain_ops),
    .mem_alloc    = cxiemu_mem_alloc,
    .mem_free     = cxiemu_mem_free,
    .progress     = cxiemu_ext_progress,
    .yield        = cxiemu_ext_yield,
    .rest         = cxiemu_ext_rest,
    .wait_word    = cxiemu_ext_wait_word,
    .wake         = cxiemu_ext_wake,
    .on_store     = cxiemu_ext_on_store,
    .cntr_add_all = cxiemu_ext_cntr_add_all,
    .cntr_mirror  = cxiemu_ext_cntr_mirror,
    .cq_has_recv  = cxiemu_ext_cq_has_recv,
    .data_path    = cxiemu_ext_data_path,
    .max_entries  = cxiemu_ext_max_entries
};


static int cxiemu_ext_cntr_read(struct fid *fid, unsigned int cntr,
                                uint64_t *value, struct timespec *ts)
{
    (void)fid;
    (void)cntr;
    (void)value;
    (void)ts;
    return -FI_ENOSYS;
}

static int cxiemu_ext_topology(struct fid *fid, unsigned int *group_id,
                               unsigned int *switch_id, unsigned int *port_id)
{
    (void)fid;
    (void)group_id;
    (void)switch_id;
    (void)port_id;
    return -FI_ENOSYS;
}

/* What has no cost here is always as it is wanted. */
static int cxiemu_ext_hint(struct fid *fid, bool enable)
{
    (void)fid;
    (void)enable;
    return 0;
}

static size_t cxiemu_ext_unexp_msgs(struct fid_ep *ep,
                                    struct fi_cq_tagged_entry *entry,
                                    size_t count, fi_addr_t *src_addr,
                                    size_t *ux_count)
{
    (void)ep;
    (void)entry;
    (void)count;
    (void)src_addr;
    (void)ux_count;
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
    .enable_optimized_mrs   = cxiemu_ext_hint
};

static int cxiemu_ext_is_cxi(const char *name)
{
    size_t length = strlen(CXIEMU_CXI_DOM_OPS);

    return !strncmp(name, CXIEMU_CXI_DOM_OPS, length) &&
           (name[length] >= '1') &&
           (name[length] <= '0' + CXIEMU_CXI_DOM_OPS_MAX) &&
           (name[length + 1] == '\0');
}

int cxiemu_ext_open(struct fid *fid, const char *name, uint64_t flags,
                    void **ops, void *context)
{
    (void)fid;
    (void)flags;
    (void)context;
    if ((name == NULL) || (ops == NULL)) {
        return -FI_EINVAL;
    }

    if (!strcmp(name, FI_CXIEMU_DOMAIN_OPS)) {
        *ops = &cxiemu_ext_ops;
    } else if (cxiemu_ext_is_cxi(name)) {
        *ops = &cxiemu_ext_cxi_ops;
    } else {
        return -FI_EINVAL;
    }
    return 0;
}
