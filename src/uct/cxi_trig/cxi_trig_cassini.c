/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cassini.c - the cxi provider, as its sources from libfabric 1.21 on
 * have it. Its own header, rdma/fi_cxi_ext.h, is left out by distributions.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_cassini.h"


#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Operations on a domain, from version 5 on */
#define UCT_CXI_TRIG_CASSINI_DOM_OPS "dom_ops_v5"

/* Commands of fi_control() */
#define UCT_CXI_TRIG_CASSINI_CONTROL (-(0xccc << 16))
#define UCT_CXI_TRIG_CASSINI_GET_OPTIMIZED (UCT_CXI_TRIG_CASSINI_CONTROL + 6)
#define UCT_CXI_TRIG_CASSINI_GET_KEY_CACHE (UCT_CXI_TRIG_CASSINI_CONTROL + 8)

/* Flag of a counter; versions that have no use for it keep it, too */
#define UCT_CXI_TRIG_CASSINI_CNTR_CACHED (1ULL << 32)

typedef struct uct_cxi_trig_cassini_dom_ops {
    void (*others[4])(void); /* Of no use here */
    int  (*get_dwq_depth)(struct fid *fid, size_t *depth);
} uct_cxi_trig_cassini_dom_ops_t;

/* Return codes of the NIC, which the provider gives as prov_errno */
enum {
    UCT_CXI_TRIG_CASSINI_UNDELIVERABLE    = 2,
    UCT_CXI_TRIG_CASSINI_ENTRY_NOT_FOUND  = 18,
    UCT_CXI_TRIG_CASSINI_NO_TARGET_CONN   = 19,
    UCT_CXI_TRIG_CASSINI_NO_TARGET_MST    = 20,
    UCT_CXI_TRIG_CASSINI_NO_TARGET_TRS    = 21,
    UCT_CXI_TRIG_CASSINI_NO_MATCHING_CONN = 23,
    UCT_CXI_TRIG_CASSINI_VNI_NOT_FOUND    = 25,
    UCT_CXI_TRIG_CASSINI_PTLTE_NOT_FOUND  = 26,
    UCT_CXI_TRIG_CASSINI_CONN_CLOSED      = 53,
    UCT_CXI_TRIG_CASSINI_CANCELED         = 54
};


const char *uct_cxi_trig_cassini_devices = "/sys/class/cxi";
const char *uct_cxi_trig_cassini_files   = "/dev";
const char *uct_cxi_trig_cassini_pci     = "/sys/bus/pci/devices";


const uct_cxi_trig_cassini_nic_t *
uct_cxi_trig_cassini_nic(const struct fi_info *info)
{
    const uct_cxi_trig_cassini_nic_t *nic =
            (info->nic == NULL) ? NULL : info->nic->prov_attr;

    return ((nic == NULL) || (nic->version == 0)) ? NULL : nic;
}

static int uct_cxi_trig_cassini_access(const char *folder, const char *device,
                                       int mode)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, device);
    return (access(path, mode) == 0) ? 0 : errno;
}

static int uct_cxi_trig_cassini_is_listed(const char *device)
{
    return uct_cxi_trig_cassini_access(uct_cxi_trig_cassini_devices, device,
                                       F_OK) == 0;
}

/* What is wrong with a card's file. One that the driver does not list has
 * none. */
static int uct_cxi_trig_cassini_is_closed(const char *device, char *text,
                                          size_t max)
{
    int err = uct_cxi_trig_cassini_access(uct_cxi_trig_cassini_files, device,
                                          R_OK | W_OK);

    if ((err == ENOENT) && uct_cxi_trig_cassini_is_listed(device)) {
        snprintf(text, max, "%s/%s is not there (a container must be given it)",
                 uct_cxi_trig_cassini_files, device);
        return 1;
    }
    if ((err != 0) && (err != ENOENT)) {
        snprintf(text, max, "this user may not open %s/%s",
                 uct_cxi_trig_cassini_files, device);
        return 1;
    }
    return 0;
}

/* Whether a function finds entries of a folder to be cards. The last of these
 * is in @a text. */
static int
uct_cxi_trig_cassini_find(const char *folder,
                          int (*is_card)(const char *name, char *text,
                                         size_t max),
                          char *text, size_t max)
{
    DIR *dir   = opendir(folder);
    int result = 0;
    struct dirent *entry;

    if (dir == NULL) {
        return 0;
    }
    while ((entry = readdir(dir)) != NULL) {
        result |= (entry->d_name[0] != '.') &&
                  is_card(entry->d_name, text, max);
    }
    closedir(dir);
    return result;
}

/* All that the driver lists */
static int uct_cxi_trig_cassini_is_device(const char *name, char *text,
                                          size_t max)
{
    (void)uct_cxi_trig_cassini_is_closed(name, text, max);
    return 1;
}

static int uct_cxi_trig_cassini_is_file(const char *name, char *text,
                                        size_t max)
{
    if (strncmp(name, "cxi", 3) || !isdigit((unsigned char)name[3])) {
        return 0;
    }
    snprintf(text, max, "%s/%s is there, but %s lists no card",
             uct_cxi_trig_cassini_files, name, uct_cxi_trig_cassini_devices);
    return 1;
}

/* A number of a PCI device; 0 if it cannot be read. */
static unsigned uct_cxi_trig_cassini_pci_number(const char *device,
                                                const char *name)
{
    unsigned number = 0;
    char path[320];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s/%s", uct_cxi_trig_cassini_pci, device,
             name);
    file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%x", &number) != 1) {
            number = 0;
        }
        fclose(file);
    }
    return number;
}

/* Cassini 1 of Cray; Cassini 2 of HPE, and what a virtual machine has of it */
static int uct_cxi_trig_cassini_is_pci(const char *name, char *text, size_t max)
{
    unsigned vendor = uct_cxi_trig_cassini_pci_number(name, "vendor");
    unsigned device;

    if ((vendor != 0x17db) && (vendor != 0x1590)) {
        return 0;
    }
    device = uct_cxi_trig_cassini_pci_number(name, "device");
    if ((vendor == 0x17db) ? (device != 0x0501) :
                             ((device != 0x0371) && (device != 0x0372))) {
        return 0;
    }
    snprintf(text, max, "PCI device %s has no driver that lists it in %s", name,
             uct_cxi_trig_cassini_devices);
    return 1;
}

/* Names of interfaces and modules tell nothing: other cards are called hsn0,
 * too, and a module may be loaded where no card is. */
int uct_cxi_trig_cassini_has_cards(char *fault, size_t max)
{
    fault[0] = '\0';
    return uct_cxi_trig_cassini_find(uct_cxi_trig_cassini_devices,
                                     uct_cxi_trig_cassini_is_device, fault,
                                     max) ||
           uct_cxi_trig_cassini_find(uct_cxi_trig_cassini_files,
                                     uct_cxi_trig_cassini_is_file, fault,
                                     max) ||
           uct_cxi_trig_cassini_find(uct_cxi_trig_cassini_pci,
                                     uct_cxi_trig_cassini_is_pci, fault, max);
}

/* The provider takes the class of what a domain and an endpoint are opened
 * with, but leaves what hints ask for out of what it describes. Both are the
 * same: deferred work has the domain's, and refuses that of another one. */
void uct_cxi_trig_cassini_set_class(struct fi_info *list, uint32_t tclass)
{
    for (; list != NULL; list = list->next) {
        list->domain_attr->tclass = tclass;
        list->tx_attr->tclass     = tclass;
    }
}

/*
 * libfabric's code tells little: it is EHOSTUNREACH for UNDELIVERABLE,
 * ENOTCONN for VNI_NOT_FOUND, and EIO for all others.
 *
 * PTLTE_NOT_FOUND: the portal table of the address has no entry for messages,
 * or for regions. All regions whose keys the provider makes lie behind entries
 * that live as long as their endpoint. When a process dies, the driver empties
 * its table before it frees anything else. So the endpoint is gone, and never a
 * region alone; nor has a dying process entries without their regions.
 *
 * ENTRY_NOT_FOUND: the endpoint is there, and the region is not: its owner has
 * closed it, or the key never was one. That is no loss of the peer. A process
 * that leaves in good order closes its regions, and then its endpoint: what
 * comes between has used a key that was taken back, and what comes later finds
 * the endpoint gone. Messages have a list to be put on as long as their
 * endpoint lives: one without has met an endpoint that is being closed.
 *
 * The others are those of connections between NICs, when the retry handler has
 * given up: no node, none of its connections to be had, or the state of one
 * lost. What has happened to the operation is unknown then.
 */
uct_cxi_trig_cassini_cause_t
uct_cxi_trig_cassini_cause(int err, int prov_errno, uint64_t flags)
{
    if ((err != FI_EIO) && (err != FI_EHOSTUNREACH) && (err != FI_ENOTCONN)) {
        return UCT_CXI_TRIG_CASSINI_FAULT; /* No return code */
    }

    switch (prov_errno) {
    case UCT_CXI_TRIG_CASSINI_UNDELIVERABLE:
    case UCT_CXI_TRIG_CASSINI_NO_TARGET_CONN:
    case UCT_CXI_TRIG_CASSINI_NO_TARGET_MST:
    case UCT_CXI_TRIG_CASSINI_NO_TARGET_TRS:
    case UCT_CXI_TRIG_CASSINI_NO_MATCHING_CONN:
    case UCT_CXI_TRIG_CASSINI_VNI_NOT_FOUND:
    case UCT_CXI_TRIG_CASSINI_PTLTE_NOT_FOUND:
    case UCT_CXI_TRIG_CASSINI_CONN_CLOSED:
    case UCT_CXI_TRIG_CASSINI_CANCELED:
        return UCT_CXI_TRIG_CASSINI_LOSS;
    case UCT_CXI_TRIG_CASSINI_ENTRY_NOT_FOUND:
        return (flags & FI_SEND) ? UCT_CXI_TRIG_CASSINI_LOSS :
                                   UCT_CXI_TRIG_CASSINI_FAULT;
    default:
        return UCT_CXI_TRIG_CASSINI_FAULT;
    }
}

void uct_cxi_trig_cassini_advise(const struct fi_info *info, int ret,
                                 char *text, size_t max)
{
    const uct_cxi_trig_cassini_nic_t *nic = uct_cxi_trig_cassini_nic(info);
    const char *device                    = info->domain_attr->name;

    if (uct_cxi_trig_cassini_is_closed(device, text, max)) {
        return;
    }
    if (ret == -EFBIG) {
        snprintf(text, max, "files of memory that processes share may not be "
                 "as long as the emulated card needs ('ulimit -f')");
        return;
    }
    /* The provider says so as well where the driver refuses the service */
    if ((ret == -FI_ENODEV) && !uct_cxi_trig_cassini_is_listed(device)) {
        snprintf(text, max, "it is gone (\"cxi_stat\")");
    } else if ((nic != NULL) && (nic->service == 0)) {
        snprintf(text, max, "no service of the card is for this user: start "
                 "the program by a launcher that makes one, and sets "
                 "SLINGSHOT_SVC_IDS, _VNIS and _DEVICES, or have one made "
                 "(\"cxi_service\")");
    } else if ((nic != NULL) && (ret == -FI_EDOMAIN)) {
        snprintf(text, max, "service %u has no counter left for this process "
                 "(more: srun --network=res_cts=N)", nic->service);
    } else if (nic != NULL) {
        snprintf(text, max, "service %u may be closed to this user, be none "
                 "for VNI %u, or have nothing left, or the link be down "
                 "(\"cxi_service list\", \"cxi_stat\", SLINGSHOT_*, Slurm's "
                 "--network); FI_LOG_LEVEL=warn tells more", nic->service,
                 nic->vni);
    } else {
        snprintf(text, max, "FI_LOG_LEVEL=warn tells more");
    }
}

size_t uct_cxi_trig_cassini_depth(struct fid_domain *domain)
{
    uct_cxi_trig_cassini_dom_ops_t *ops = NULL;
    size_t depth;

    if ((fi_open_ops(&domain->fid, UCT_CXI_TRIG_CASSINI_DOM_OPS, 0,
                     (void**)&ops, NULL) != 0) || (ops == NULL) ||
        (ops->get_dwq_depth(&domain->fid, &depth) != 0)) {
        return SIZE_MAX;
    }
    /* An int of the provider's: negative if the service has fewer than those
     * that are kept free */
    return ((int)depth < 0) ? 0 : depth;
}

static int uct_cxi_trig_cassini_get(struct fid_domain *domain, int command)
{
    bool value = false;

    return (fi_control(&domain->fid, command, &value) == 0) ? value : -1;
}

int uct_cxi_trig_cassini_caches_keys(struct fid_domain *domain)
{
    return uct_cxi_trig_cassini_get(domain, UCT_CXI_TRIG_CASSINI_GET_KEY_CACHE);
}

int uct_cxi_trig_cassini_optimizes_keys(struct fid_domain *domain)
{
    return uct_cxi_trig_cassini_get(domain, UCT_CXI_TRIG_CASSINI_GET_OPTIMIZED);
}

void uct_cxi_trig_cassini_read_cached(struct fid_cntr *cntr)
{
    uint64_t flags = UCT_CXI_TRIG_CASSINI_CNTR_CACHED;

    (void)fi_control(&cntr->fid, FI_SETOPSFLAG, &flags);
}

/* What a setting of libfabric was set to. Not by fi_getparams(), which has no
 * more than the environment: this provider adds to its list when a domain is
 * opened, without a lock. */
static const char *uct_cxi_trig_cassini_setting(const char *name,
                                                const char *preset)
{
    const char *value = getenv(name);

    return (value != NULL) ? value : preset;
}

const char *uct_cxi_trig_cassini_monitor(void)
{
    return uct_cxi_trig_cassini_setting("FI_MR_CACHE_MONITOR", "default");
}

size_t uct_cxi_trig_cassini_max_eager(void)
{
    const char *preset = FI_VERSION_LT(fi_version(), FI_VERSION(2, 2)) ?
                         "2048" : "16384";
    const char *threshold, *get_min;

    threshold = uct_cxi_trig_cassini_setting("FI_CXI_RDZV_THRESHOLD", preset);
    get_min   = uct_cxi_trig_cassini_setting("FI_CXI_RDZV_GET_MIN", "2049");
    return strtoul(threshold, NULL, 0) + strtoul(get_min, NULL, 0);
}
