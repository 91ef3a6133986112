/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_info.h - what fi_getinfo() says, and what hints may ask for.
 */
#ifndef CXIEMU_INFO_H_
#define CXIEMU_INFO_H_

#include "obj/cxiemu_domain.h"

#include <rdma/fabric.h>

/** Limits that fi_info tells. */
#define CXIEMU_MAX_MSG  (4ull << 30)
#define CXIEMU_MAX_TX   16384
#define CXIEMU_MAX_RX   15360
#define CXIEMU_INJECT   192
#define CXIEMU_TAG_MASK ((1ull << 48) - 1)

#define CXIEMU_FABRIC_NAME  "cxiemu"
#define CXIEMU_DEVICE_NAME  "cxiemu" /**< A number follows */
/** Its length, with the final zero. */
#define CXIEMU_DEVICE_NAME_MAX 16
#define CXIEMU_PROV_VERSION FI_VERSION(0, 1)

/** Capabilities, as libfabric divides them: the first kind is only given if it
 *  is asked for; of the second what costs something. */
#define CXIEMU_CAPS_WAYS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | \
                          FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CXIEMU_CAPS_PRIMARY \
    (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_HMEM | \
     CXIEMU_CAPS_WAYS)
#define CXIEMU_CAPS_COSTLY (FI_SOURCE | FI_RMA_EVENT)
#define CXIEMU_CAPS_FREE \
    (FI_MULTI_RECV | FI_FENCE | FI_TRIGGER | FI_LOCAL_COMM)
#define CXIEMU_CAPS_ALL \
    (CXIEMU_CAPS_PRIMARY | CXIEMU_CAPS_COSTLY | CXIEMU_CAPS_FREE)

/** Those that concern one direction only are left out for the other. */
#define CXIEMU_CAPS_TX \
    (CXIEMU_CAPS_ALL & ~(FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | \
                         FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | \
                         FI_RMA_EVENT))
#define CXIEMU_CAPS_RX \
    (CXIEMU_CAPS_ALL & ~(FI_SEND | FI_READ | FI_WRITE | FI_FENCE))

/** Orders that can be asked for, as with CXI. */
#define CXIEMU_MSG_ORDER \
    (FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAR | \
     FI_ORDER_ATOMIC_WAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_RAW | \
     FI_ORDER_ATOMIC_RAR)

#define CXIEMU_TX_OP_FLAGS \
    (FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
     FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define CXIEMU_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

/** Modes that registration of remote memory asks the application for. */
#define CXIEMU_MR_MODE (FI_MR_ENDPOINT | FI_MR_ALLOCATED)


/** Capabilities with all ways of what has none: modifiers narrow. */
static inline uint64_t cxiemu_caps_ways(uint64_t caps)
{
    if ((caps & (FI_MSG | FI_TAGGED)) && !(caps & (FI_SEND | FI_RECV))) {
        caps |= FI_SEND | FI_RECV;
    }
    if ((caps & (FI_RMA | FI_ATOMIC)) &&
        !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE))) {
        caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    }
    return caps;
}

static inline uint32_t cxiemu_tclass(uint32_t tclass, uint32_t otherwise)
{
    return (tclass == FI_TC_UNSPEC) ? otherwise : tclass;
}

/** Whether traffic class and queues' sizes are those of CXI: 0, or
 *  -FI_EINVAL. */
int cxiemu_domain_check(const struct fi_info *info, uint32_t tclass);

/** Whether a domain's name, which may be NULL, is that of a device: of this
 *  one, or any. The settings have been read. */
int cxiemu_device_is_named(unsigned number, const char *name);
int cxiemu_device_exists(const char *name);

/** Whether the hints can be met: 0, or -FI_ENODATA, with a log message. */
int cxiemu_hints_check(uint32_t version, const struct fi_info *hints);

/** Narrow a new description to what the hints, which can be met, ask for. */
void cxiemu_hints_apply(const struct fi_info *hints, struct fi_info *info);

/** fi_getinfo() but for the provider's name, which libfabric adds if it has
 *  loaded the provider. */
int cxiemu_info_get(uint32_t version, const char *node, const char *service,
                    uint64_t flags, const struct fi_info *hints,
                    struct fi_info **info);

#endif
