/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_av.c - address vectors.
 */
#include "obj/cxiemu_av.h"
#include "nic/cxiemu_link.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>

#define CXIEMU_AV_MIN 16


static size_t *cxiemu_av_bucket(const cxiemu_av_t *av, uint64_t nonce,
                                uint16_t ep)
{
    /* The nonce is random already */
    return &av->buckets[(nonce + ep) & (av->num_buckets - 1)];
}

cxiemu_av_entry_t *cxiemu_av_entry(cxiemu_av_t *av, fi_addr_t fi_addr)
{
    if ((av == NULL) || (fi_addr >= av->fresh) || !av->entries[fi_addr].used) {
        return NULL;
    }
    return &av->entries[fi_addr];
}

fi_addr_t cxiemu_av_find(const cxiemu_av_t *av, uint64_t nonce, uint16_t ep)
{
    const cxiemu_av_entry_t *entry;
    size_t next;

    if ((av == NULL) || (av->num_buckets == 0)) {
        return FI_ADDR_NOTAVAIL;
    }

    for (next = *cxiemu_av_bucket(av, nonce, ep); next != 0;
         next = entry->next) {
        entry = &av->entries[next - 1];
        if ((entry->addr.nonce == nonce) && (entry->addr.ep == ep)) {
            return next - 1;
        }
    }
    return FI_ADDR_NOTAVAIL;
}

/* Append it to its bucket: of two endpoints that differ in what the bucket does
 * not look at, the first is found. */
static void cxiemu_av_hash(cxiemu_av_t *av, size_t index)
{
    cxiemu_av_entry_t *entry = &av->entries[index];
    size_t *next             = cxiemu_av_bucket(av, entry->addr.nonce,
                                                entry->addr.ep);

    while (*next != 0) {
        next = &av->entries[*next - 1].next;
    }
    entry->next = 0;
    *next       = index + 1;
}

static int cxiemu_av_grow(cxiemu_av_t *av, size_t count)
{
    cxiemu_av_entry_t *entries;
    size_t *buckets;
    size_t i;

    entries = realloc(av->entries, count * sizeof(*entries));
    if (entries == NULL) {
        return -FI_ENOMEM;
    }
    memset(entries + av->count, 0, (count - av->count) * sizeof(*entries));
    av->entries = entries;

    buckets = calloc(count, sizeof(*buckets));
    if (buckets == NULL) {
        return -FI_ENOMEM;
    }
    free(av->buckets);
    av->buckets     = buckets;
    av->num_buckets = count;
    av->count       = count;
    for (i = 0; i < av->fresh; ++i) {
        if (av->entries[i].used) {
            cxiemu_av_hash(av, i);
        }
    }
    return 0;
}

/* An address that is there has its number: it counts how often it came */
static int cxiemu_av_add(cxiemu_av_t *av, const cxiemu_addr_t *addr,
                         fi_addr_t *fi_addr)
{
    cxiemu_av_entry_t *entry;
    size_t index;
    int ret;

    if (addr->version != CXIEMU_ADDR_VERSION) {
        return -FI_EINVAL;
    }
    index = cxiemu_av_find(av, addr->nonce, addr->ep);
    if ((index != FI_ADDR_NOTAVAIL) &&
        !memcmp(&av->entries[index].addr, addr, sizeof(*addr))) {
        ++av->entries[index].used;
        *fi_addr = index;
        return 0;
    }

    if (av->free != 0) {
        index    = av->free - 1;
        av->free = av->entries[index].next;
    } else {
        if (av->fresh == av->count) {
            ret = cxiemu_av_grow(av, av->count * 2);
            if (ret != 0) {
                return ret;
            }
        }
        index = av->fresh++;
    }

    entry       = &av->entries[index];
    entry->addr = *addr;
    entry->link = NULL;
    entry->used = 1;
    cxiemu_av_hash(av, index);
    *fi_addr = index;
    return 0;
}

static int cxiemu_av_insert(struct fid_av *fid, const void *addr, size_t count,
                            fi_addr_t *fi_addr, uint64_t flags, void *context)
{
    cxiemu_av_t *av     = container_of(fid, cxiemu_av_t, fid);
    int *errors         = (flags & FI_SYNC_ERR) ? context : NULL;
    const uint8_t *next = addr;
    int inserted        = 0;
    cxiemu_addr_t one;
    fi_addr_t index;
    size_t i;
    int ret;

    if ((flags & ~(FI_MORE | FI_SYNC_ERR)) || ((addr == NULL) && (count > 0))) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(av->domain->nic);
    for (i = 0; i < count; ++i, next += sizeof(one)) {
        index = FI_ADDR_NOTAVAIL;
        memcpy(&one, next, sizeof(one)); /* May lie anywhere */
        ret       = cxiemu_av_add(av, &one, &index);
        inserted += (ret == 0);
        if (errors != NULL) {
            errors[i] = -ret;
        }
        if (fi_addr != NULL) {
            fi_addr[i] = index;
        }
    }
    cxiemu_nic_unlock(av->domain->nic);
    return inserted;
}

/* The node is an address as fi_av_straddr() writes it. */
static int cxiemu_av_insertsvc(struct fid_av *fid, const char *node,
                               const char *service, fi_addr_t *fi_addr,
                               uint64_t flags, void *context)
{
    cxiemu_addr_t addr;
    int ret;

    if (node == NULL) {
        return -FI_EINVAL;
    }

    ret = cxiemu_addr_parse(node, &addr);
    if (ret != 0) {
        return ret;
    }
    return cxiemu_av_insert(fid, &addr, 1, fi_addr, flags, context);
}

CXIEMU_NO_CALL(cxiemu_av_insertsym, struct fid_av *fid, const char *node,
               size_t nodecnt, const char *service, size_t svccnt,
               fi_addr_t *fi_addr, uint64_t flags, void *context)

static void cxiemu_av_forget(cxiemu_av_t *av, size_t index)
{
    cxiemu_av_entry_t *entry = &av->entries[index];
    size_t *next             = cxiemu_av_bucket(av, entry->addr.nonce,
                                                entry->addr.ep);

    while (*next != index + 1) {
        next = &av->entries[*next - 1].next;
    }
    *next = entry->next;
    if (entry->link != NULL) {
        cxiemu_link_put(entry->link);
        entry->link = NULL;
    }
    entry->used = 0;
    entry->next = av->free;
    av->free    = index + 1;
}

static int cxiemu_av_remove(struct fid_av *fid, fi_addr_t *fi_addr,
                            size_t count, uint64_t flags)
{
    cxiemu_av_t *av = container_of(fid, cxiemu_av_t, fid);
    int ret         = 0;
    cxiemu_av_entry_t *entry;
    size_t i;

    if (flags || ((fi_addr == NULL) && (count > 0))) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(av->domain->nic);
    for (i = 0; i < count; ++i) {
        entry = cxiemu_av_entry(av, fi_addr[i]);
        if (entry == NULL) {
            ret = -FI_EINVAL;
        } else if (--entry->used == 0) {
            cxiemu_av_forget(av, fi_addr[i]);
        }
    }
    cxiemu_nic_unlock(av->domain->nic);
    return ret;
}

static int cxiemu_av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr,
                            size_t *addrlen)
{
    cxiemu_av_t *av = container_of(fid, cxiemu_av_t, fid);
    cxiemu_av_entry_t *entry;
    size_t length;

    if (addrlen == NULL) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(av->domain->nic);
    entry = cxiemu_av_entry(av, fi_addr);
    if (entry != NULL) {
        length = (*addrlen < sizeof(entry->addr)) ? *addrlen :
                                                    sizeof(entry->addr);
        memcpy(addr, &entry->addr, length);
        *addrlen = sizeof(entry->addr);
    }
    cxiemu_nic_unlock(av->domain->nic);
    return (entry == NULL) ? -FI_EINVAL : 0;
}

static const char *cxiemu_av_straddr(struct fid_av *fid, const void *addr,
                                     char *buf, size_t *len)
{
    cxiemu_addr_t copy;

    memcpy(&copy, addr, sizeof(copy));
    *len = (size_t)cxiemu_addr_print(&copy, buf, *len) + 1;
    return buf;
}

CXIEMU_NO_CALL(cxiemu_av_set, struct fid_av *fid, struct fi_av_set_attr *attr,
               struct fid_av_set **set, void *context)

static int cxiemu_av_close(struct fid *fid)
{
    cxiemu_av_t *av   = container_of(fid, cxiemu_av_t, fid.fid);
    cxiemu_nic_t *nic = av->domain->nic;
    size_t i;

    cxiemu_nic_lock(nic);
    if (av->refs > 0) {
        cxiemu_nic_unlock(nic);
        return -FI_EBUSY;
    }
    for (i = 0; i < av->fresh; ++i) {
        if (av->entries[i].used) {
            cxiemu_av_forget(av, i);
        }
    }
    --av->domain->refs;
    cxiemu_open_del(CXIEMU_OPEN_AV);
    cxiemu_nic_unlock(nic);

    free(av->buckets);
    free(av->entries);
    free(av);
    return 0;
}

static struct fi_ops cxiemu_av_fid_ops = {
    .size     = sizeof(struct fi_ops),
    .close    = cxiemu_av_close,
    .bind     = cxiemu_no_bind,
    .control  = cxiemu_no_control,
    .ops_open = cxiemu_no_ops_open
};

static struct fi_ops_av cxiemu_av_ops = {
    .size      = sizeof(struct fi_ops_av),
    .insert    = cxiemu_av_insert,
    .insertsvc = cxiemu_av_insertsvc,
    .insertsym = cxiemu_av_insertsym,
    .remove    = cxiemu_av_remove,
    .lookup    = cxiemu_av_lookup,
    .straddr   = cxiemu_av_straddr,
    .av_set    = cxiemu_av_set
};


int cxiemu_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr,
                   struct fid_av **av_p, void *context)
{
    cxiemu_domain_t *domain = container_of(domain_fid, cxiemu_domain_t, fid);
    size_t size             = CXIEMU_AV_MIN;
    cxiemu_av_t *av;
    int ret;

    if (attr == NULL) {
        return -FI_EINVAL;
    }
    /* Shared vectors and asynchronous insertion are not there */
    if ((attr->name != NULL) || (attr->rx_ctx_bits != 0) ||
        (attr->flags & (FI_READ | FI_EVENT | FI_AV_USER_ID))) {
        return -FI_ENOSYS;
    }

    av = calloc(1, sizeof(*av));
    if (av == NULL) {
        return -FI_ENOMEM;
    }

    av->domain = domain;
    av->type   = (attr->type == FI_AV_UNSPEC) ? FI_AV_TABLE : attr->type;
    /* The count is a hint only: it is not worth more */
    while ((size < attr->count) && (size < (1u << 16))) {
        size *= 2;
    }
    ret = cxiemu_av_grow(av, size);
    if (ret != 0) {
        free(av->entries);
        free(av);
        return ret;
    }

    attr->type          = av->type;
    av->fid.fid.fclass  = FI_CLASS_AV;
    av->fid.fid.context = context;
    av->fid.fid.ops     = &cxiemu_av_fid_ops;
    av->fid.ops         = &cxiemu_av_ops;
    cxiemu_nic_lock(domain->nic);
    ++domain->refs;
    cxiemu_open_add(CXIEMU_OPEN_AV);
    cxiemu_nic_unlock(domain->nic);
    *av_p = &av->fid;
    return 0;
}
