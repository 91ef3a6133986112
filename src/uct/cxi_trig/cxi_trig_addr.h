/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_addr.h - device and interface addresses.
 */
#ifndef UCT_CXI_TRIG_ADDR_H_
#define UCT_CXI_TRIG_ADDR_H_

#include "cxi_trig_iface.h"
#include "cxi_trig_proto.h"


/** Write the device address, sizeof(uct_cxi_trig_dev_addr_t) bytes. */
ucs_status_t uct_cxi_trig_addr_get_device(uct_iface_h iface,
                                          uct_device_addr_t *address);

/** Ours, or NULL if @a iface is of another transport: no other one gives
 *  addresses of ours. */
static inline uct_cxi_trig_iface_t *
uct_cxi_trig_iface_from_uct(uct_iface_h iface)
{
    return (iface->ops.iface_get_device_address ==
            uct_cxi_trig_addr_get_device) ?
           ucs_derived_of(iface, uct_cxi_trig_iface_t) : NULL;
}

/** Write the interface address, sizeof(uct_cxi_trig_iface_addr_t) bytes. */
ucs_status_t uct_cxi_trig_addr_get_iface(uct_iface_h iface,
                                         uct_iface_addr_t *address);

/** Whether all that the interface's address is to have fits it. */
int uct_cxi_trig_addr_fits(const uct_cxi_trig_iface_t *iface);

/** Where a peer's probe word is, as the provider wants it, by the peer's
 *  checked address. */
uint64_t uct_cxi_trig_addr_probe(const uct_cxi_trig_iface_t *iface,
                                 const uct_cxi_trig_iface_addr_t *peer);

/**
 * Check a peer's addresses and whether they can be reached from here. Returns
 * NULL if so, or why not, until the thread's next text. @a iface_addr may be
 * NULL.
 */
const char *uct_cxi_trig_addr_refusal(const uct_cxi_trig_iface_t *iface,
                                      const uct_device_addr_t *dev_addr,
                                      const uct_iface_addr_t *iface_addr);

/** The same where UCT asks; the first peer is told of that is of another
 *  version, or of this machine and in another container. */
const char *uct_cxi_trig_addr_unreachable(const uct_iface_h iface,
                                          const uct_device_addr_t *dev_addr,
                                          const uct_iface_addr_t *iface_addr);

/** Whether both checked addresses are of one interface; that of its memory is
 *  there once something was registered. */
int uct_cxi_trig_addr_is_same(const uct_cxi_trig_iface_addr_t *own,
                              const uct_iface_addr_t *iface_addr);

/**
 * Insert the endpoints of a checked interface address into the vector: the one
 * for messages and the one for memory, which may be the same.
 */
ucs_status_t uct_cxi_trig_addr_insert(uct_cxi_trig_iface_t *iface,
                                      const uct_iface_addr_t *iface_addr,
                                      fi_addr_t *addr_p, fi_addr_t *memory_p);

/** Undo uct_cxi_trig_addr_insert(); a failure is logged. */
void uct_cxi_trig_addr_remove(uct_cxi_trig_iface_t *iface, fi_addr_t addr,
                              fi_addr_t memory);

#endif
