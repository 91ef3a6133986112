/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_svc.c - services: the users, virtual networks and resources of each.
 */
#include "cassini_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the NIC has of each resource. */
static const unsigned cassini_svc_total[CASSINI_RSRC_LAST] = {
    [CASSINI_RSRC_PTE] = 2047, [CASSINI_RSRC_TXQ] = 1024,
    [CASSINI_RSRC_TGQ] = 512,  [CASSINI_RSRC_EQ] = 2047,
    [CASSINI_RSRC_CT] = 2047,  [CASSINI_RSRC_LE] = 16384,
    [CASSINI_RSRC_TLE] = 2048, [CASSINI_RSRC_AC] = 1022
};


void cassini_svc_init(void)
{
    cassini_dir_svc_t *entry = &cassini_dir->svcs[0];
    cassini_svc_t *svc       = &entry->svc;
    unsigned i;

    cassini_dir->next_svc = CASSINI_SVC_DEFAULT + 1;
    entry->live           = strcmp(cassini_settings.service, "none") != 0;
    entry->owner          = 0;
    svc->svc_id           = CASSINI_SVC_DEFAULT;
    svc->enabled          = strcmp(cassini_settings.service, "off") != 0;
    svc->restricted_vnis  = 1;
    svc->num_vnis         = 2;
    svc->vnis[0]          = (uint16_t)cassini_settings.vni;
    svc->vnis[1]          = 1;
    svc->limited          = 1;
    if (strcmp(cassini_settings.service, "denied") == 0) {
        svc->restricted_members = 1;
        svc->members[0].type    = CASSINI_MEMBER_UID;
        svc->members[0].id      = geteuid() + 1;
    }
    for (i = 0; i < CASSINI_TC_LAST; ++i) {
        svc->tcs[i] = 1;
    }
    for (i = 0; i < CASSINI_RSRC_LAST; ++i) {
        svc->limits[i].max = (uint16_t)cassini_svc_total[i];
    }
    svc->limits[CASSINI_RSRC_TLE].max      = (uint16_t)cassini_settings.tles;
    svc->limits[CASSINI_RSRC_TLE].reserved = (uint16_t)cassini_settings.tles;
    svc->limits[CASSINI_RSRC_CT].max       = (uint16_t)cassini_settings.cts;
    svc->limits[CASSINI_RSRC_LE].max       = (uint16_t)cassini_settings.les;
}

/* With the lock, or the directory's. */
static cassini_dir_svc_t *cassini_svc_by_id(unsigned svc_id)
{
    unsigned i;

    for (i = 0; (cassini_dir != NULL) && (i < CASSINI_SVCS); ++i) {
        if (cassini_dir->svcs[i].live &&
            (cassini_dir->svcs[i].svc.svc_id == svc_id)) {
            return &cassini_dir->svcs[i];
        }
    }
    return NULL;
}

static int cassini_svc_admits(const cassini_svc_t *svc)
{
    unsigned i;

    for (i = 0; i < CASSINI_SVC_MEMBERS; ++i) {
        if (((svc->members[i].type == CASSINI_MEMBER_UID) &&
             (svc->members[i].id == geteuid())) ||
            ((svc->members[i].type == CASSINI_MEMBER_GID) &&
             (svc->members[i].id == getegid()))) {
            return 1;
        }
    }
    return !svc->restricted_members;
}

int cassini_svc_enter(unsigned svc_id)
{
    const cassini_dir_svc_t *entry = cassini_svc_by_id(svc_id);

    if (entry == NULL) {
        return -EINVAL;
    }
    if (!entry->svc.enabled) {
        return -EKEYREVOKED;
    }
    if (!cassini_svc_admits(&entry->svc)) {
        return -EPERM;
    }
    return (int)(entry - cassini_dir->svcs);
}

int cassini_svc_has_vni(int svc, unsigned vni)
{
    const cassini_dir_svc_t *entry;
    unsigned i;

    if (cassini_dir == NULL) {
        return 0;
    }
    entry = &cassini_dir->svcs[svc];
    if (entry->ranged) {
        return (vni >= entry->first) && (vni <= entry->last);
    }
    if (!entry->svc.restricted_vnis) {
        return 1;
    }
    for (i = 0; i < entry->svc.num_vnis; ++i) {
        if (entry->svc.vnis[i] == vni) {
            return 1;
        }
    }
    return 0;
}

unsigned cassini_svc_limit(int svc, int rsrc)
{
    const cassini_svc_t *desc = &cassini_dir->svcs[svc].svc;

    return desc->limited ? desc->limits[rsrc].max : cassini_svc_total[rsrc];
}

int cassini_svc_pool(int svc, int rsrc)
{
    /* Without entries of its own a service uses those of the default one */
    return ((rsrc == CASSINI_RSRC_TLE) &&
            (cassini_dir->svcs[svc].svc.limits[rsrc].max == 0)) ? 0 : svc;
}

int cxil_get_svc(cassini_dev_t *dev, unsigned svc_id, cassini_svc_t *svc)
{
    const cassini_dir_svc_t *entry;

    (void)dev;
    cassini_nic_lock();
    entry = cassini_svc_by_id(svc_id);
    if (entry != NULL) {
        *svc = entry->svc;
    }
    cassini_nic_unlock();
    return (entry == NULL) ? -EINVAL : 0;
}

int cxil_get_svc_list(cassini_dev_t *dev, cassini_svc_list_t **list_p)
{
    cassini_svc_list_t *list;
    unsigned i;

    (void)dev;
    list = calloc(1, sizeof(*list) + CASSINI_SVCS * sizeof(list->svcs[0]));
    if (list == NULL) {
        return -ENOMEM;
    }
    cassini_nic_lock();
    for (i = 0; (cassini_dir != NULL) && (i < CASSINI_SVCS); ++i) {
        if (cassini_dir->svcs[i].live) {
            list->svcs[list->count++] = cassini_dir->svcs[i].svc;
        }
    }
    cassini_nic_unlock();
    *list_p = list;
    return 0;
}

void cxil_free_svc_list(cassini_svc_list_t *list)
{
    free(list);
}

int cxil_get_svc_rsrc_use(cassini_dev_t *dev, unsigned svc_id,
                          cassini_svc_use_t *use)
{
    const cassini_dir_svc_t *entry;
    int i, svc;

    (void)dev;
    memset(use, 0, sizeof(*use));
    cassini_nic_lock();
    entry = cassini_svc_by_id(svc_id);
    if (entry == NULL) {
        cassini_nic_unlock();
        return -EINVAL;
    }
    svc         = (int)(entry - cassini_dir->svcs);
    use->svc_id = svc_id;
    for (i = 0; i < CASSINI_RSRC_LAST; ++i) {
        use->in_use[i] = (uint16_t)cassini_dir_used(cassini_svc_pool(svc, i),
                                                    i);
    }
    cassini_nic_unlock();
    return 0;
}

static int cassini_svc_check(const cassini_svc_t *svc)
{
    unsigned i;

    if (geteuid() != 0) {
        return -EPERM;
    }
    if ((svc->num_vnis > CASSINI_SVC_VNIS) ||
        (svc->restricted_vnis && (svc->num_vnis == 0))) {
        return -EINVAL;
    }
    for (i = 0; i < CASSINI_SVC_MEMBERS; ++i) {
        if (svc->members[i].type > CASSINI_MEMBER_GID + 1) {
            return -EINVAL;
        }
    }
    return 0;
}

int cxil_alloc_svc(cassini_dev_t *dev, const cassini_svc_t *svc,
                   cassini_svc_fail_t *fail)
{
    int ret = cassini_svc_check(svc);
    cassini_dir_svc_t *entry;
    unsigned i;

    (void)dev;
    (void)fail;
    if (ret != 0) {
        return ret;
    }
    ret = -ENOSPC;
    cassini_nic_lock();
    cassini_dir_lock();
    for (i = 1; i < CASSINI_SVCS; ++i) {
        entry = &cassini_dir->svcs[i];
        if (!entry->live) {
            memset(entry, 0, sizeof(*entry));
            entry->svc         = *svc;
            entry->svc.svc_id  = cassini_dir->next_svc++;
            entry->svc.enabled = 1;
            entry->owner       = geteuid();
            entry->live        = 1;
            ret                = (int)entry->svc.svc_id;
            break;
        }
    }
    cassini_dir_unlock();
    cassini_nic_unlock();
    return ret;
}

/* A service that this process may change, with the lock; NULL and *ret_p. */
static cassini_dir_svc_t *cassini_svc_owned(unsigned svc_id, int *ret_p)
{
    cassini_dir_svc_t *entry = cassini_svc_by_id(svc_id);

    *ret_p = 0;
    if (entry == NULL) {
        *ret_p = -EINVAL;
    } else if (geteuid() != 0) {
        *ret_p = -EPERM;
        entry  = NULL;
    }
    return entry;
}

int cxil_destroy_svc(cassini_dev_t *dev, unsigned svc_id)
{
    cassini_dir_svc_t *entry;
    int i, svc, ret;

    (void)dev;
    cassini_nic_lock();
    entry = cassini_svc_owned(svc_id, &ret);
    if (entry != NULL) {
        svc = (int)(entry - cassini_dir->svcs);
        for (i = 0; i < CASSINI_RSRC_LAST; ++i) {
            if (cassini_dir_used(svc, i) != 0) {
                ret = -EBUSY;
            }
        }
        if (ret == 0) {
            entry->live = 0;
        }
    }
    cassini_nic_unlock();
    return ret;
}

int cxil_update_svc(cassini_dev_t *dev, const cassini_svc_t *svc,
                    cassini_svc_fail_t *fail)
{
    cassini_dir_svc_t *entry;
    int ret;

    (void)dev;
    (void)fail;
    cassini_nic_lock();
    entry = cassini_svc_owned(svc->svc_id, &ret);
    if (entry != NULL) {
        entry->svc = *svc;
    }
    cassini_nic_unlock();
    return ret;
}

int cxil_svc_enable(cassini_dev_t *dev, unsigned svc_id, bool on)
{
    cassini_dir_svc_t *entry;
    int ret;

    (void)dev;
    cassini_nic_lock();
    entry = cassini_svc_owned(svc_id, &ret);
    if (entry != NULL) {
        entry->svc.enabled = on;
    }
    cassini_nic_unlock();
    return ret;
}

int cxil_svc_set_exclusive_cp(cassini_dev_t *dev, unsigned svc_id, bool on)
{
    int ret;

    (void)dev;
    (void)on;
    cassini_nic_lock();
    cassini_svc_owned(svc_id, &ret);
    cassini_nic_unlock();
    return ret;
}

int cxil_svc_set_vni_range(cassini_dev_t *dev, unsigned svc_id, uint16_t first,
                           uint16_t last)
{
    unsigned size = (unsigned)last - first + 1;
    cassini_dir_svc_t *entry;
    int ret;

    (void)dev;
    /* A range is a mask of the hardware */
    if ((last < first) || ((size & (size - 1)) != 0) || (first % size != 0)) {
        return -EINVAL;
    }
    cassini_nic_lock();
    entry = cassini_svc_owned(svc_id, &ret);
    if ((entry != NULL) && entry->svc.restricted_vnis) {
        ret = -EINVAL;
    } else if (entry != NULL) {
        entry->ranged = 1;
        entry->first  = first;
        entry->last   = last;
    }
    cassini_nic_unlock();
    return ret;
}

int cxil_svc_get_vni_range(cassini_dev_t *dev, unsigned svc_id,
                           uint16_t *first_p, uint16_t *last_p)
{
    const cassini_dir_svc_t *entry;
    int ret = -EINVAL;

    (void)dev;
    cassini_nic_lock();
    entry = cassini_svc_by_id(svc_id);
    if ((entry != NULL) && entry->ranged) {
        *first_p = entry->first;
        *last_p  = entry->last;
        ret      = 0;
    } else if ((entry != NULL) && !entry->svc.restricted_vnis) {
        *first_p = 1;
        *last_p  = UINT16_MAX;
        ret      = 0;
    }
    cassini_nic_unlock();
    return ret;
}

int cxil_svc_get_netns(cassini_dev_t *dev, unsigned svc_id, unsigned *netns_p)
{
    (void)dev;
    (void)svc_id;
    (void)netns_p;
    return -EINVAL;
}
