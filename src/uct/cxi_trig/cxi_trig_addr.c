/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_addr.c - device and interface addresses.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_addr.h"
#include "cxi_trig_mr.h"
#include "cxi_trig_status.h"

#include <ucs/algorithm/crc.h>
#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>
#include <ucs/sys/uid.h>

#include <rdma/fi_errno.h>

#include <string.h>

/* How often an address is tried to be inserted */
#define UCT_CXI_TRIG_ADDR_TRIES 10


static void uct_cxi_trig_addr_device(const uct_cxi_trig_iface_t *iface,
                                     uct_cxi_trig_dev_addr_t *addr)
{
    const uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(iface);
    const char *fabric          = md->info->fabric_attr->name;
    const uct_cxi_trig_cassini_nic_t *nic = uct_cxi_trig_md_nic(md);

    memset(addr, 0, sizeof(*addr));
    addr->provider  = md->prov->id;
    addr->flags     = md->loopback ? UCT_CXI_TRIG_DEV_ADDR_LOOPBACK : 0;
    addr->ucx_major = UCT_CXI_TRIG_BUILT_MAJOR;
    addr->ucx_minor = UCT_CXI_TRIG_BUILT_MINOR;
    addr->fabric    = ucs_crc32(0, fabric, strlen(fabric));
    addr->machine   = ucs_get_system_id();
    addr->vni       = (nic == NULL) ? 0 : nic->vni;
    if (md->prov->local) {
        /* Processes open each other's files, in most cases by their PIDs */
        addr->space      = md->prov->ops->space();
        addr->user_space = (uint32_t)ucs_sys_get_ns(UCS_SYS_NS_TYPE_USER);
    } else if (md->loopback) {
        addr->space = (uint32_t)ucs_sys_get_ns(UCS_SYS_NS_TYPE_NET);
    }
    uct_cxi_trig_proto_seal(&addr->head, sizeof(*addr));
}

ucs_status_t uct_cxi_trig_addr_get_device(uct_iface_h uct_iface,
                                          uct_device_addr_t *address)
{
    uct_cxi_trig_dev_addr_t addr;

    uct_cxi_trig_addr_device(ucs_derived_of(uct_iface, uct_cxi_trig_iface_t),
                             &addr);
    memcpy(address, &addr, sizeof(addr));
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_addr_get_iface(uct_iface_h uct_iface,
                                         uct_iface_addr_t *address)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(uct_iface,
                                                 uct_cxi_trig_iface_t);
    const uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(iface);
    uint64_t word               = (uintptr_t)&iface->probe.word;
    uct_cxi_trig_iface_addr_t addr;

    memset(&addr, 0, sizeof(addr));
    memcpy(addr.names, iface->net.name, iface->net.name_length);
    if (md->target != NULL) {
        /* It fits: uct_cxi_trig_addr_fits() */
        memcpy(addr.names + iface->net.name_length, md->target->name,
               md->target->name_length);
        addr.target_length = md->target->name_length;
    }
    addr.provider    = md->prov->id;
    addr.name_length = iface->net.name_length;
    addr.seg_size    = iface->max_am;
    addr.probe_key   = fi_mr_key(iface->probe.mr);
    if (!uct_cxi_trig_mr_has_offsets(md)) {
        memcpy(addr.names + iface->net.name_length + addr.target_length, &word,
               sizeof(word));
    }
    uct_cxi_trig_proto_seal(&addr.head, sizeof(addr));
    memcpy(address, &addr, sizeof(addr));
    return UCS_OK;
}

/* Whether the names leave room for the address of the probe word */
static int uct_cxi_trig_addr_has_room(const uct_cxi_trig_md_t *md,
                                      size_t names_length)
{
    return names_length + (uct_cxi_trig_mr_has_offsets(md) ?
                           0 : sizeof(uint64_t)) <= UCT_CXI_TRIG_NAME_BLOB_MAX;
}

int uct_cxi_trig_addr_fits(const uct_cxi_trig_iface_t *iface)
{
    const uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(iface);
    size_t target_length        = (md->target == NULL) ?
                                  0 : md->target->name_length;

    return uct_cxi_trig_addr_has_room(md, iface->net.name_length +
                                          target_length) &&
           (fi_mr_key(iface->probe.mr) <= UINT32_MAX);
}

uint64_t uct_cxi_trig_addr_probe(const uct_cxi_trig_iface_t *iface,
                                 const uct_cxi_trig_iface_addr_t *peer)
{
    uint64_t word = 0;

    if (!uct_cxi_trig_mr_has_offsets(uct_cxi_trig_iface_md(iface))) {
        memcpy(&word, peer->names + peer->name_length + peer->target_length,
               sizeof(word));
    }
    return word;
}

static const char *uct_cxi_trig_addr_other_provider(uint8_t peer, uint8_t own)
{
    return uct_cxi_trig_proto_text("it is of libfabric provider %s, ours is %s",
                                   uct_cxi_trig_prov_name(peer),
                                   uct_cxi_trig_prov_name(own));
}

/* Namespaces of the system that keep processes of one machine apart */
static const char *
uct_cxi_trig_addr_refuse_space(const uct_cxi_trig_dev_addr_t *own,
                               const uct_cxi_trig_dev_addr_t *peer)
{
    const char *name = (peer->user_space != own->user_space) ? "user" :
                       (peer->space == own->space)           ? NULL :
                       (own->user_space != 0)                ? "PID" :
                                                               "network";

    return (name == NULL) ? NULL :
           uct_cxi_trig_proto_text("its process is in another %s namespace "
                                   "(a container's?)", name);
}

static const char *
uct_cxi_trig_addr_refuse_device(const uct_cxi_trig_iface_t *iface,
                                const uct_device_addr_t *dev_addr)
{
    uct_cxi_trig_dev_addr_t own, peer;
    const char *fault;

    fault = uct_cxi_trig_proto_check(dev_addr, sizeof(peer), sizeof(peer));
    if (fault != NULL) {
        return fault;
    }

    memcpy(&peer, dev_addr, sizeof(peer));
    uct_cxi_trig_addr_device(iface, &own);
    if ((peer.ucx_major != own.ucx_major) ||
        (peer.ucx_minor != own.ucx_minor)) {
        return uct_cxi_trig_proto_text("it is of UCX %u.%u, ours is %u.%u",
                                       peer.ucx_major, peer.ucx_minor,
                                       own.ucx_major, own.ucx_minor);
    }
    if (peer.provider != own.provider) {
        return uct_cxi_trig_addr_other_provider(peer.provider, own.provider);
    }
    if (peer.fabric != own.fabric) {
        return "it is on another network";
    }
    if (peer.vni != own.vni) {
        return uct_cxi_trig_proto_text("it is of another job: its VNI is %u, "
                                       "ours is %u", peer.vni, own.vni);
    }
    if (((peer.flags | own.flags) & UCT_CXI_TRIG_DEV_ADDR_LOOPBACK) &&
        (peer.machine != own.machine)) {
        return "it is the loop-back device of another machine";
    }
    return uct_cxi_trig_addr_refuse_space(&own, &peer);
}

static const char *
uct_cxi_trig_addr_refuse_iface(const uct_cxi_trig_iface_t *iface,
                               const uct_iface_addr_t *iface_addr)
{
    uct_cxi_trig_iface_addr_t peer;
    const char *fault;

    fault = uct_cxi_trig_proto_check(iface_addr, sizeof(peer), sizeof(peer));
    if (fault != NULL) {
        return fault;
    }

    memcpy(&peer, iface_addr, sizeof(peer));
    if (peer.provider != uct_cxi_trig_iface_md(iface)->prov->id) {
        return uct_cxi_trig_addr_other_provider(
                peer.provider, uct_cxi_trig_iface_md(iface)->prov->id);
    }
    /* The names of a provider have one length, which fi_av_insert() reads */
    if ((peer.name_length != iface->net.name_length) ||
        ((peer.target_length != 0) &&
         (peer.target_length != iface->net.name_length)) ||
        !uct_cxi_trig_addr_has_room(uct_cxi_trig_iface_md(iface),
                                    (size_t)peer.name_length +
                                    peer.target_length)) {
        return "its name is damaged";
    }
    if (peer.seg_size < iface->max_am) {
        return "the peer's UCX_CXI_TRIG_SEG_SIZE is smaller than ours";
    }
    return NULL;
}

const char *uct_cxi_trig_addr_refusal(const uct_cxi_trig_iface_t *iface,
                                      const uct_device_addr_t *dev_addr,
                                      const uct_iface_addr_t *iface_addr)
{
    const char *fault;

    if (dev_addr == NULL) {
        return "there is no device address";
    }

    fault = uct_cxi_trig_addr_refuse_device(iface, dev_addr);
    if ((fault == NULL) && (iface_addr != NULL)) {
        fault = uct_cxi_trig_addr_refuse_iface(iface, iface_addr);
    }
    return fault;
}

/* Whether an address comes from other software, or from a process of this
 * machine that is kept apart from the emulated card, rather than elsewhere: a
 * loop-back device is beside others, which may reach. */
static int uct_cxi_trig_addr_is_foreign(const uct_cxi_trig_iface_t *iface,
                                        const uct_device_addr_t *dev_addr,
                                        const uct_iface_addr_t *iface_addr)
{
    uct_cxi_trig_dev_addr_t own, peer;

    if ((*(const uint8_t*)dev_addr != UCT_CXI_TRIG_PROTO_VERSION) ||
        ((iface_addr != NULL) &&
         (*(const uint8_t*)iface_addr != UCT_CXI_TRIG_PROTO_VERSION))) {
        return 1;
    }
    memcpy(&peer, dev_addr, sizeof(peer));
    uct_cxi_trig_addr_device(iface, &own);
    return (peer.ucx_major != own.ucx_major) ||
           (peer.ucx_minor != own.ucx_minor) ||
           ((peer.provider == own.provider) && (peer.machine == own.machine) &&
            (own.user_space != 0) &&
            (uct_cxi_trig_addr_refuse_space(&own, &peer) != NULL));
}

/* That a peer is elsewhere is no fault, and UCX asks often. Of one of another
 * version, or of another container, UCX says that there is no way, and no more:
 * the first is told of. */
static void uct_cxi_trig_addr_tell(uct_cxi_trig_iface_t *iface,
                                   const char *fault, int is_foreign)
{
    ucs_log_level_t level = UCS_LOG_LEVEL_DEBUG;

    if (is_foreign && !iface->has_told) {
        iface->has_told = 1;
        level           = UCS_LOG_LEVEL_WARN;
    }
    ucs_log(level, "address of a peer refused by cxi_trig on %s: %s",
            uct_cxi_trig_iface_md(iface)->info->domain_attr->name, fault);
}

const char *uct_cxi_trig_addr_unreachable(const uct_iface_h uct_iface,
                                          const uct_device_addr_t *dev_addr,
                                          const uct_iface_addr_t *iface_addr)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(uct_iface,
                                                 uct_cxi_trig_iface_t);
    const char *fault           = uct_cxi_trig_addr_refusal(iface, dev_addr,
                                                            iface_addr);

    if (fault != NULL) {
        uct_cxi_trig_addr_tell(iface, fault,
                               (dev_addr != NULL) &&
                               uct_cxi_trig_addr_is_foreign(iface, dev_addr,
                                                            iface_addr));
    }
    return fault;
}

int uct_cxi_trig_addr_is_same(const uct_cxi_trig_iface_addr_t *own,
                              const uct_iface_addr_t *iface_addr)
{
    uct_cxi_trig_iface_addr_t other;

    memcpy(&other, iface_addr, sizeof(other));
    return (other.name_length == own->name_length) &&
           !memcmp(other.names, own->names, own->name_length);
}

static ucs_status_t uct_cxi_trig_addr_insert_name(uct_cxi_trig_iface_t *iface,
                                                  const uint8_t *name,
                                                  fi_addr_t *fi_addr_p)
{
    unsigned tries = 0;
    int ret;

    /* Where UCP answers a peer that connects it drops an error, and the peer
     * waits for ever: a short lack of resources must not be an error */
    do {
        ret = fi_av_insert(iface->net.av, name, 1, fi_addr_p, 0, NULL);
    } while ((ret != 1) && (++tries < UCT_CXI_TRIG_ADDR_TRIES));
    if (ret != 1) {
        ucs_error("cannot insert the address of a peer on %s: %s",
                  uct_cxi_trig_iface_md(iface)->info->domain_attr->name,
                  fi_strerror((ret < 0) ? -ret : FI_EINVAL));
        return (ret < 0) ? uct_cxi_trig_status(ret) : UCS_ERR_INVALID_ADDR;
    }
    return UCS_OK;
}

static void uct_cxi_trig_addr_remove_one(uct_cxi_trig_iface_t *iface,
                                         fi_addr_t addr)
{
    int ret = fi_av_remove(iface->net.av, &addr, 1, 0);

    if (ret != 0) {
        ucs_diag("cannot remove the address of a peer: %s", fi_strerror(-ret));
    }
}

ucs_status_t uct_cxi_trig_addr_insert(uct_cxi_trig_iface_t *iface,
                                      const uct_iface_addr_t *iface_addr,
                                      fi_addr_t *addr_p, fi_addr_t *memory_p)
{
    uct_cxi_trig_iface_addr_t packed;
    ucs_status_t status;

    memcpy(&packed, iface_addr, sizeof(packed));
    status = uct_cxi_trig_addr_insert_name(iface, packed.names, addr_p);
    if (status != UCS_OK) {
        return status;
    }

    if (packed.target_length == 0) {
        *memory_p = *addr_p;
        return UCS_OK;
    }

    status = uct_cxi_trig_addr_insert_name(iface,
                                           packed.names + packed.name_length,
                                           memory_p);
    if (status != UCS_OK) {
        uct_cxi_trig_addr_remove_one(iface, *addr_p);
    }
    return status;
}

void uct_cxi_trig_addr_remove(uct_cxi_trig_iface_t *iface, fi_addr_t addr,
                              fi_addr_t memory)
{
    if (memory != addr) {
        uct_cxi_trig_addr_remove_one(iface, memory);
    }
    uct_cxi_trig_addr_remove_one(iface, addr);
}
