/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cassini.h - what the cxi provider, and the emulated card as it, tell
 * of a Cassini NIC beyond libfabric's interface; what errors of it mean.
 */
#ifndef UCT_CXI_TRIG_CASSINI_H_
#define UCT_CXI_TRIG_CASSINI_H_

#include <ucs/sys/compiler_def.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <stddef.h>
#include <stdint.h>

/** Sizes of an endpoint's queues; the provider refuses longer ones. */
#define UCT_CXI_TRIG_CASSINI_MAX_TX 16384
#define UCT_CXI_TRIG_CASSINI_MAX_RX 15360


/** What an operation's failure means. */
typedef enum {
    UCT_CXI_TRIG_CASSINI_FAULT, /**< Of the operation alone */
    UCT_CXI_TRIG_CASSINI_LOSS   /**< The peer, or the way to it, is gone */
} uct_cxi_trig_cassini_cause_t;


/** Of a device, as fi_getinfo() has it in nic->prov_attr. */
typedef struct uct_cxi_trig_cassini_nic {
    uint32_t version; /**< Of this format, from 1 on */
    unsigned address;
    unsigned service; /**< That this process uses; 0: none is for it */
    unsigned vni;     /**< Of that service: peers have the same */
} uct_cxi_trig_cassini_nic_t;


/** Where the driver lists the cards, their device files, and the kernel's list
 *  of PCI devices; not settings, but tests have folders of their own. */
extern const char *uct_cxi_trig_cassini_devices;
extern const char *uct_cxi_trig_cassini_files;
extern const char *uct_cxi_trig_cassini_pci;


/** What a device of such a provider tells of itself; NULL: nothing. */
const uct_cxi_trig_cassini_nic_t *
uct_cxi_trig_cassini_nic(const struct fi_info *info);

/** Whether the machine has cards of its own, with a driver or without. If so,
 *  @a fault says what is wrong with one, or is empty. */
int uct_cxi_trig_cassini_has_cards(char *fault, size_t max);

/** Write the traffic class into descriptions of devices. */
void uct_cxi_trig_cassini_set_class(struct fi_info *list, uint32_t tclass);

/** What a completion's error means. @a flags: of the entry. */
uct_cxi_trig_cassini_cause_t
uct_cxi_trig_cassini_cause(int err, int prov_errno, uint64_t flags);

/** Say what a domain, or an endpoint on it, may lack that did not open with
 *  -FI_E @a ret, and what to do. */
void uct_cxi_trig_cassini_advise(const struct fi_info *info, int ret,
                                 char *text, size_t max);

/** Entries of the deferred-work queue, of all processes of the service;
 *  SIZE_MAX where that is not told. */
size_t uct_cxi_trig_cassini_depth(struct fid_domain *domain);

/** Whether the provider gives the same key for the same memory, and whether
 *  keys are optimized; -1: not told. */
int uct_cxi_trig_cassini_caches_keys(struct fid_domain *domain);
int uct_cxi_trig_cassini_optimizes_keys(struct fid_domain *domain);

/** Have reads of a counter give what the NIC has written back last, as versions
 *  before 2.3 do: later ones wait for the NIC, however long that takes. */
void uct_cxi_trig_cassini_read_cached(struct fid_cntr *cntr);

/** Longest message that the provider sends at once. The receiver fetches a
 *  longer one. A fetched message completes after shorter ones that follow it,
 *  and never completes if its receiver dies first. */
size_t uct_cxi_trig_cassini_max_eager(void);

/** What FI_MR_CACHE_MONITOR is set to; "default" if it is not. */
const char *uct_cxi_trig_cassini_monitor(void);

#endif
