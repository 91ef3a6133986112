/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_api.c - devices, interfaces, profiles, domains, regions.
 */
#include "cassini_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CASSINI_PAGE_SIZE 4096ull

/* Kernels have these since 5.14. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum {
    CASSINI_CNTR_RESTRICTED = 1178, /**< Telemetry counters */
    CASSINI_CNTR_FLUSHES    = 1305
};


static void cassini_api_describe(cassini_info_t *info)
{
    memset(info, 0, sizeof(*info));
    strcpy(info->device_name, "cxi0");
    strcpy(info->driver_name, "cxi_ss1");
    strcpy(info->fru, "emulated");
    info->nid             = CASSINI_NID;
    info->pid_bits        = CASSINI_PID_BITS;
    info->pid_count       = CASSINI_PID_ANY;
    info->pid_granule     = 256;
    info->rdzv_get_idx    = CASSINI_RDZV_INDEX;
    info->vendor_id       = 0x17db;
    info->device_id       = 0x0501;
    info->device_rev      = 2;
    info->device_platform = CASSINI_PLATFORM_SIM;
    info->num_ptes        = 2047;
    info->num_txqs        = CASSINI_NUM_TXQS;
    info->num_tgqs        = CASSINI_NUM_TGQS;
    info->num_eqs         = 2047;
    info->num_cts         = 2047;
    info->num_acs         = 1022;
    info->num_tles        = CASSINI_NUM_TLES;
    info->num_les         = 16384;
    info->pci_bus         = 0x3b;
    info->link_mtu        = 9000;
    info->link_speed      = 200000;
    info->link_state      = 1;
    info->pct_eq          = 1;
    info->version         = CASSINI_VERSION_1_1;
    info->system_type     = 1;
}

int cxil_get_device_list(cassini_dev_list_t **list_p)
{
    cassini_dev_list_t *list;

    list = calloc(1, sizeof(*list) + sizeof(list->info[0]));
    if (list == NULL) {
        return -ENOMEM;
    }
    list->count = 1;
    cassini_api_describe(&list->info[0]);
    *list_p = list;
    return 0;
}

void cxil_free_device_list(cassini_dev_list_t *list)
{
    free(list);
}

int cxil_open_device(uint32_t dev_id, cassini_dev_t **dev_p)
{
    cassini_dev_t *dev;
    int ret;

    if (dev_id != 0) {
        return -ENODEV;
    }
    dev = calloc(1, sizeof(*dev));
    if (dev == NULL) {
        return -ENOMEM;
    }
    cassini_api_describe(&dev->info);
    ret = cassini_nic_start();
    if (ret != 0) {
        free(dev);
        return ret;
    }
    if ((cassini_settings.file != NULL) &&
        (access(cassini_settings.file, R_OK | W_OK) != 0)) {
        ret = -errno;
        cxil_close_device(dev);
        return ret;
    }
    *dev_p = dev;
    return 0;
}

void cxil_close_device(cassini_dev_t *dev)
{
    cassini_nic_lock();
    --cassini_nic.open[CASSINI_OPEN_DEV];
    cassini_nic_unlock();
    free(dev);
    cassini_nic_stop();
}

/* The driver's property, where a test has put one in place: the atomic that the
 * card carries out as an addition on the PCIe bus; -1: none */
int cxil_get_amo_remap_to_pcie_fadd(cassini_dev_t *dev, int *op_p)
{
    FILE *file = fopen("/sys/class/cxi/cxi0/device/properties/"
                       "amo_remap_to_pcie_fadd", "r");
    int op     = -1;

    (void)dev;
    if (file != NULL) {
        if (fscanf(file, "%d", &op) != 1) {
            op = -1;
        }
        fclose(file);
    }
    cassini_nic_lock();
    cassini_nic.pcie_fadd = op + 1;
    cassini_nic_unlock();
    *op_p = op;
    return 0;
}

int cxil_read_cntr(cassini_dev_t *dev, unsigned cntr, uint64_t *value_p,
                   struct timespec *time_p)
{
    (void)dev;
    cassini_nic_lock();
    *value_p = (cntr == CASSINI_CNTR_FLUSHES)    ? cassini_nic.flushes :
               (cntr == CASSINI_CNTR_RESTRICTED) ? cassini_nic.restricted :
                                                   0;
    cassini_nic_unlock();
    if (time_p != NULL) {
        clock_gettime(CLOCK_REALTIME, time_p);
    }
    return 0;
}

bool cxil_is_copy_on_fork(void)
{
    return true;
}

int cxil_map_csr(cassini_dev_t *dev)
{
    (void)dev;
    return -EPERM;
}

int cxil_read_csr(cassini_dev_t *dev, unsigned csr, void *value, size_t length)
{
    (void)dev;
    (void)csr;
    (void)value;
    (void)length;
    return -EPERM;
}

int cxil_write_csr(cassini_dev_t *dev, unsigned csr, const void *value,
                   size_t length)
{
    (void)dev;
    (void)csr;
    (void)value;
    (void)length;
    return -EPERM;
}

int cxil_alloc_lni(cassini_dev_t *dev, cassini_lni_t **lni_p, unsigned svc_id)
{
    cassini_lni_obj_t *lni;
    int svc;

    (void)dev;
    lni = calloc(1, sizeof(*lni));
    if (lni == NULL) {
        return -ENOMEM;
    }
    cassini_nic_lock();
    svc = cassini_svc_enter(svc_id);
    if (svc >= 0) {
        lni->epoch  = cassini_nic.epoch;
        lni->svc    = svc;
        lni->pub.id = __atomic_add_fetch(&cassini_dir->next_lni, 1,
                                         __ATOMIC_RELAXED);
        ++cassini_nic.open[CASSINI_OPEN_LNI];
    }
    cassini_nic_unlock();
    if (svc < 0) {
        free(lni);
        return svc;
    }
    *lni_p = &lni->pub;
    return 0;
}

int cxil_destroy_lni(cassini_lni_t *pub)
{
    cassini_lni_obj_t *lni = (cassini_lni_obj_t*)pub;
    unsigned i;

    if (!cassini_is_mine(lni)) {
        return 0;
    }
    cassini_nic_lock();
    for (i = 0; i < CASSINI_NUM_CTS; ++i) {
        if (cassini_nic.closed[i] == lni) {
            cassini_nic.closed[i] = NULL;
        }
    }
    cassini_dir_give(lni->svc, CASSINI_RSRC_CT, lni->closed_cts);
    --cassini_nic.open[CASSINI_OPEN_LNI];
    cassini_nic_unlock();
    free(lni);
    return 0;
}

int cxil_alloc_trig_cp(cassini_lni_t *pub, unsigned vni, unsigned tc,
                       unsigned tc_type, unsigned kind, cassini_cp_t **cp_p)
{
    cassini_lni_obj_t *lni = (cassini_lni_obj_t*)pub;
    unsigned first         = (kind == CASSINI_CP_PLAIN) ? 1 : 0;
    unsigned last          = (kind == CASSINI_CP_TRIG) ? 1 : CASSINI_NUM_LCIDS;
    cassini_cp_obj_t *cp;
    unsigned i;
    int ret = -ENOSPC;

    if (tc >= CASSINI_TC_LAST) {
        return -EINVAL;
    }
    cp = calloc(1, sizeof(*cp));
    if (cp == NULL) {
        return -ENOMEM;
    }
    cassini_nic_lock();
    if (!cassini_svc_has_vni(lni->svc, vni)) {
        ret = -EINVAL;
        last = 0;
    }
    for (i = first; i < last; ++i) {
        if (lni->cps[i] == NULL) {
            cp->epoch       = cassini_nic.epoch;
            cp->lni         = lni;
            cp->pub.vni     = vni;
            cp->pub.tc      = tc;
            cp->pub.tc_type = tc_type;
            cp->pub.lcid    = i;
            lni->cps[i]     = cp;
            ++cassini_nic.open[CASSINI_OPEN_CP];
            ret = 0;
            break;
        }
    }
    cassini_nic_unlock();
    if (ret != 0) {
        free(cp);
        return ret;
    }
    *cp_p = &cp->pub;
    return 0;
}

int cxil_alloc_cp(cassini_lni_t *lni, unsigned vni, unsigned tc,
                  unsigned tc_type, cassini_cp_t **cp_p)
{
    return cxil_alloc_trig_cp(lni, vni, tc, tc_type, CASSINI_CP_ANY, cp_p);
}

int cxil_modify_cp(cassini_lni_t *pub, cassini_cp_t *cp, unsigned vni)
{
    cassini_lni_obj_t *lni = (cassini_lni_obj_t*)pub;
    int ret                = -EINVAL;

    cassini_nic_lock();
    if (cassini_svc_has_vni(lni->svc, vni)) {
        cp->vni = vni;
        ret     = 0;
    }
    cassini_nic_unlock();
    return ret;
}

int cxil_destroy_cp(cassini_cp_t *pub)
{
    cassini_cp_obj_t *cp = (cassini_cp_obj_t*)pub;

    if (!cassini_is_mine(cp)) {
        return 0;
    }
    cassini_nic_lock();
    cp->lni->cps[cp->pub.lcid] = NULL;
    --cassini_nic.open[CASSINI_OPEN_CP];
    cassini_nic_unlock();
    free(cp);
    return 0;
}

int cxil_alloc_domain(cassini_lni_t *pub, unsigned vni, unsigned pid,
                      cassini_domain_t **domain_p)
{
    cassini_lni_obj_t *lni = (cassini_lni_obj_t*)pub;
    cassini_domain_obj_t *domain;
    int ret;

    if (pid > CASSINI_PID_ANY) {
        return -EINVAL;
    }
    domain = calloc(1, sizeof(*domain));
    if (domain == NULL) {
        return -ENOMEM;
    }
    cassini_nic_lock();
    ret = cassini_svc_has_vni(lni->svc, vni) ? cassini_dir_add(vni, &pid) :
                                               -EINVAL;
    if (ret == 0) {
        domain->epoch   = cassini_nic.epoch;
        domain->pub.vni = vni;
        domain->pub.pid = pid;
        ++cassini_nic.open[CASSINI_OPEN_DOMAIN];
    }
    cassini_nic_unlock();
    if (ret != 0) {
        free(domain);
        return ret;
    }
    *domain_p = &domain->pub;
    return 0;
}

int cxil_destroy_domain(cassini_domain_t *pub)
{
    cassini_domain_obj_t *domain = (cassini_domain_obj_t*)pub;

    if (!cassini_is_mine(domain)) {
        return 0;
    }
    cassini_nic_lock();
    cassini_dir_remove(domain->pub.vni, domain->pub.pid);
    --cassini_nic.open[CASSINI_OPEN_DOMAIN];
    cassini_nic_unlock();
    free(domain);
    return 0;
}

/* An old kernel cannot tell whether pages are there. */
static int cassini_api_is_blind(void)
{
    static char page[2 * CASSINI_PAGE_SIZE];
    uintptr_t inside = (uintptr_t)page + CASSINI_PAGE_SIZE - 1;

    inside -= inside % CASSINI_PAGE_SIZE;
    return madvise((void*)inside, CASSINI_PAGE_SIZE, MADV_POPULATE_READ) != 0;
}

/* The driver pins pages: they have to be there, with these rights, which a
 * device's memory has not. Only the first and the last are looked at, to save
 * memory. */
static int cassini_api_pin(uint64_t first, uint64_t length, uint32_t flags)
{
    uint64_t last = first + length - CASSINI_PAGE_SIZE;
    void *page;
    int i;

    for (i = 0; i < 2; ++i) {
        page = (void*)(uintptr_t)((i == 0) ? first : last);
        if (madvise(page, CASSINI_PAGE_SIZE, MADV_POPULATE_READ) != 0) {
            return (errno == EINVAL) && cassini_api_is_blind();
        }
        if ((flags & CASSINI_MAP_WRITE) &&
            (madvise(page, CASSINI_PAGE_SIZE, MADV_POPULATE_WRITE) != 0)) {
            return 0;
        }
    }
    return 1;
}

int cxil_map(cassini_lni_t *lni, void *va, size_t length, uint32_t flags,
             cassini_md_hints_t *hints, cassini_md_t **md_p)
{
    uint64_t first = (uint64_t)(uintptr_t)va & ~(CASSINI_PAGE_SIZE - 1);
    uint64_t end   = (uint64_t)(uintptr_t)va + length;
    uint64_t last  = (end + CASSINI_PAGE_SIZE - 1) & ~(CASSINI_PAGE_SIZE - 1);
    cassini_md_obj_t *md;

    (void)lni;
    (void)hints;
    if ((flags & CASSINI_MAP_ATS) || (length == 0)) {
        return -EINVAL;
    }
    if (!cassini_api_pin(first, last - first, flags)) {
        return -EINVAL;
    }
    md = calloc(1, sizeof(*md));
    if (md == NULL) {
        return -ENOMEM;
    }
    md->flags          = flags;
    md->pub.iova       = first;
    md->pub.va         = first;
    md->pub.length     = last - first;
    md->pub.page_shift = 12;
    md->pub.huge_shift = 21;
    cassini_nic_lock();
    md->epoch       = cassini_nic.epoch;
    md->pub.id      = ++cassini_nic.next_md;
    md->next        = cassini_nic.mds;
    cassini_nic.mds = md;
    ++cassini_nic.open[CASSINI_OPEN_MD];
    cassini_nic_unlock();
    *md_p = &md->pub;
    return 0;
}

int cxil_unmap(cassini_md_t *pub)
{
    cassini_md_obj_t *md = (cassini_md_obj_t*)pub;
    cassini_md_obj_t **place;

    if (!cassini_is_mine(md)) {
        return 0;
    }
    cassini_nic_lock();
    cassini_temper_progress(1);
    for (place = &cassini_nic.mds; *place != NULL; place = &(*place)->next) {
        if (*place == md) {
            *place = md->next;
            --cassini_nic.open[CASSINI_OPEN_MD];
            break;
        }
    }
    cassini_nic_unlock();
    free(md);
    return 0;
}
