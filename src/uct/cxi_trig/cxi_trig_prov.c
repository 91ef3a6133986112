/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_prov.c - choice of the libfabric provider.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_prov.h"
#include "cxi_trig_cassini.h"
#include "cxi_trig_emu.h"
#include "cxi_trig_node.h"
#include "cxi_trig_probe.h"
#include "cxi_trig_status.h"

#include <uct_trig.h>

#include <ucs/debug/log.h>
#include <ucs/sys/compiler.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UCT_CXI_TRIG_PROV_AUTO "auto"
#define UCT_CXI_TRIG_PROV_CXI  "cxi"

/* Memory of GPUs is named by a file descriptor from libfabric 1.20 on */
#ifdef FI_MR_DMABUF
#define UCT_CXI_TRIG_PROV_API FI_VERSION(1, 20)
#else
#define UCT_CXI_TRIG_PROV_API FI_VERSION(1, 17)
#endif

/* What UCX counts on, what else Cassini can keep in order, and what only some
 * versions of its provider do: 2.1 began with reads, and went without some
 * kinds of atomics until 2.3 */
#define UCT_CXI_TRIG_PROV_ORDER FI_ORDER_SAS
#define UCT_CXI_TRIG_PROV_ORDER_SOME \
    (FI_ORDER_RMA_RAR | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_RAW)
#define UCT_CXI_TRIG_PROV_ORDER_STRICT \
    (UCT_CXI_TRIG_PROV_ORDER | FI_ORDER_WAW | FI_ORDER_RMA_WAW | \
     FI_ORDER_ATOMIC_WAW | FI_ORDER_ATOMIC_RAR | UCT_CXI_TRIG_PROV_ORDER_SOME)


const char *uct_cxi_trig_prov_orderings[] = {
    [UCT_CXI_TRIG_ORDERING_RELAXED] = "relaxed",
    [UCT_CXI_TRIG_ORDERING_DEFAULT] = "default",
    [UCT_CXI_TRIG_ORDERING_STRICT]  = "strict",
    NULL
};

const char *uct_cxi_trig_prov_traffic_classes[] = {
    "default", "best_effort", "low_latency", "dedicated_access", "bulk_data",
    "scavenger", "network_ctrl", NULL
};

/* libfabric's values of these names */
static const uint32_t uct_cxi_trig_prov_tclasses[] = {
    FI_TC_UNSPEC, FI_TC_BEST_EFFORT, FI_TC_LOW_LATENCY, FI_TC_DEDICATED_ACCESS,
    FI_TC_BULK_DATA, FI_TC_SCAVENGER, FI_TC_NETWORK_CTRL
};

/* Found by libfabric's loader */
static const uct_cxi_trig_prov_ops_t uct_cxi_trig_prov_libfabric = {
    .getinfo = fi_getinfo,
    .fabric  = fi_fabric
};

/* The last row is for providers that are not known by name. */
static const uct_cxi_trig_prov_t uct_cxi_trig_provs[] = {
    {
        /* Entries: the default pool of a service, less what is always free;
         * the domain tells what this service has. Counters: number 0 is the
         * card's own. Version: the first one that has the provider, whose
         * predecessors are HPE's own and differ */
        .name        = UCT_CXI_TRIG_PROV_CXI,
        .ops         = &uct_cxi_trig_prov_libfabric,
        .id          = 1,
        .local       = 0,
        .eio_is_loss = 0,
        .is_cassini  = 1,
        .opens_late  = 1,
        .fetches     = 1,
        .has_monitor = 1,
        .revokes     = 1,
        .done        = UCT_CXI_TRIG_DONE_CQ,
        .max_entries = 504,
        .max_cntrs   = 2047,
        .max_tx      = UCT_CXI_TRIG_CASSINI_MAX_TX,
        .max_rx      = UCT_CXI_TRIG_CASSINI_MAX_RX,
        .min_version = FI_VERSION(1, 21),
        .max_count   = UCS_MASK(48),
        .max_put     = UINT32_MAX,
        .latency     = 2e-6,
        .bandwidth   = 25e9,
        .overhead    = 200e-9
    }, {
        /* Entries: more than 2,000 at one trigger get stuck; put: lengths are
         * kept in an int inside; it has no code of its own for a broken
         * connection; a write whose key was good when it began to arrive goes
         * on when the region is closed; latency, overhead: of a program that
         * polls, as UCX's do, and more than UCX says of its tcp, which is much
         * faster */
        .name        = "sockets",
        .ops         = &uct_cxi_trig_prov_libfabric,
        .id          = 2,
        .local       = 0,
        .eio_is_loss = 1,
        .revokes     = 0,
        .done        = UCT_CXI_TRIG_DONE_CNTR,
        .max_entries = 1900,
        .max_cntrs   = 16384,
        .max_count   = INT32_MAX,
        .max_put     = UCS_BIT(30),
        .latency     = 100e-6,
        .bandwidth   = 1e9,
        .overhead    = 60e-6
    }, {
        .name        = NULL,
        .ops         = &uct_cxi_trig_prov_libfabric,
        .id          = 3,
        .local       = 0,
        .eio_is_loss = 0,
        .revokes     = 0,
        .done        = UCT_CXI_TRIG_DONE_CQ,
        .max_entries = 504,
        .max_cntrs   = 2000,
        .max_count   = INT32_MAX,
        .max_put     = UCS_BIT(30),
        .latency     = 5e-6,
        .bandwidth   = 5e9,
        .overhead    = 1e-6
    }
};

/* The last answer: asking libfabric costs milliseconds, and UCX asks often.
 * Protected by its mutex; the list lives as long as the process. */
static struct {
    pthread_mutex_t           mutex;
    uct_cxi_trig_prov_want_t  want;   /* Of the question; its name: a copy */
    ucs_status_t              status;
    const uct_cxi_trig_prov_t *prov;
    struct fi_info            *info;
    char                      reason[UCT_TRIG_REASON_MAX]; /* of an error */
} uct_cxi_trig_prov_cache = {
    .mutex = PTHREAD_MUTEX_INITIALIZER
};


/* A thread of the parent may have been about to change it: asked anew */
void uct_cxi_trig_prov_forked(void)
{
    pthread_mutex_init(&uct_cxi_trig_prov_cache.mutex, NULL);
    uct_cxi_trig_prov_cache.want.name = NULL;
    uct_cxi_trig_prov_cache.info      = NULL;
}

static const uct_cxi_trig_prov_t *uct_cxi_trig_prov_row(const char *name)
{
    const uct_cxi_trig_prov_t *prov = uct_cxi_trig_provs;

    if ((uct_cxi_trig_emu != NULL) &&
        !strcmp(uct_cxi_trig_emu->name, name)) {
        return uct_cxi_trig_emu;
    }
    while ((prov->name != NULL) && (strcmp(prov->name, name) != 0)) {
        ++prov;
    }
    return prov;
}

const char *uct_cxi_trig_prov_name(uint8_t id)
{
    const uct_cxi_trig_prov_t *prov = uct_cxi_trig_provs;

    if (id == UCT_CXI_TRIG_EMU_ID) {
        return UCT_CXI_TRIG_EMU_NAME;
    }
    while ((prov->name != NULL) && (prov->id != id)) {
        ++prov;
    }
    return (prov->name == NULL) ? "another one" : prov->name;
}

static uint64_t uct_cxi_trig_prov_order(const uct_cxi_trig_prov_want_t *want)
{
    return (want->ordering == UCT_CXI_TRIG_ORDERING_STRICT) ?
           (UCT_CXI_TRIG_PROV_ORDER_STRICT & ~want->orders_less) :
           UCT_CXI_TRIG_PROV_ORDER;
}

static uint32_t uct_cxi_trig_prov_tclass(const uct_cxi_trig_prov_want_t *want)
{
    return uct_cxi_trig_prov_tclasses[want->traffic_class];
}

static struct fi_info *
uct_cxi_trig_prov_hints(const char *name, const uct_cxi_trig_prov_want_t *want)
{
    struct fi_info *hints = fi_allocinfo();

    if (hints == NULL) {
        return NULL;
    }

    hints->fabric_attr->prov_name = strdup(name);
    if (hints->fabric_attr->prov_name == NULL) {
        fi_freeinfo(hints);
        return NULL;
    }

    hints->caps                    = FI_MSG | FI_RMA | FI_ATOMIC | FI_TRIGGER |
                                     FI_RMA_EVENT;
    hints->mode                    = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type           = FI_EP_RDM;
    hints->domain_attr->threading  = FI_THREAD_SAFE;
    hints->domain_attr->mr_mode    = FI_MR_ENDPOINT | FI_MR_ALLOCATED |
                                     FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
                                     FI_MR_RMA_EVENT;
    if (want->gpu_memory == UCS_YES) {
        hints->caps                 |= FI_HMEM;
        hints->domain_attr->mr_mode |= FI_MR_HMEM;
    }
    hints->domain_attr->tclass     = uct_cxi_trig_prov_tclass(want);
    hints->tx_attr->tclass         = uct_cxi_trig_prov_tclass(want);
    hints->tx_attr->msg_order      = uct_cxi_trig_prov_order(want);
    hints->rx_attr->msg_order      = uct_cxi_trig_prov_order(want);
    return hints;
}

static int uct_cxi_trig_prov_is_loopback(const struct fi_info *info)
{
    const struct sockaddr_in *sin   = info->src_addr;
    const struct sockaddr_in6 *sin6 = info->src_addr;

    switch (info->addr_format) {
    case FI_SOCKADDR_IN:
        return (sin != NULL) && ((ntohl(sin->sin_addr.s_addr) >> 24) == 127);
    case FI_SOCKADDR_IN6:
        return (sin6 != NULL) && IN6_IS_ADDR_LOOPBACK(&sin6->sin6_addr);
    default:
        return 0;
    }
}

int uct_cxi_trig_prov_is_local(const uct_cxi_trig_prov_t *prov,
                               const struct fi_info *info)
{
    return prov->local || uct_cxi_trig_prov_is_loopback(info);
}

/* Several addresses of one device: the one with the lower rank is taken. */
static int uct_cxi_trig_prov_rank(const struct fi_info *info)
{
    return (info->addr_format == FI_SOCKADDR_IN6) +
           (uct_cxi_trig_prov_is_loopback(info) * 2);
}

static int uct_cxi_trig_prov_listed(const struct fi_info *list,
                                    const char *domain)
{
    for (; list != NULL; list = list->next) {
        if (!strcmp(list->domain_attr->name, domain)) {
            return 1;
        }
    }
    return 0;
}

/* One entry a domain, in order of rank */
static struct fi_info *uct_cxi_trig_prov_select(const struct fi_info *all,
                                                const char *name)
{
    struct fi_info *list  = NULL;
    struct fi_info **tail = &list;
    const struct fi_info *info;
    int rank;

    for (rank = 0; rank <= 3; ++rank) {
        for (info = all; info != NULL; info = info->next) {
            if ((uct_cxi_trig_prov_rank(info) != rank) ||
                strcmp(info->fabric_attr->prov_name, name) ||
                uct_cxi_trig_prov_listed(list, info->domain_attr->name)) {
                continue;
            }
            *tail = fi_dupinfo(info);
            if (*tail == NULL) {
                return list;
            }
            tail = &(*tail)->next;
        }
    }
    return list;
}

/* Some providers drop what they have not got from the hints. */
static int uct_cxi_trig_prov_grants(const struct fi_info *info,
                                    const uct_cxi_trig_prov_want_t *want)
{
    uint64_t order = uct_cxi_trig_prov_order(want);

    return ucs_test_all_flags(info->tx_attr->msg_order, order) &&
           ucs_test_all_flags(info->rx_attr->msg_order, order) &&
           (info->tx_attr->tclass == uct_cxi_trig_prov_tclass(want));
}

/* No message: "auto" may try another one. */
static ucs_status_t
uct_cxi_trig_prov_query(const uct_cxi_trig_prov_t *prov, const char *name,
                        const uct_cxi_trig_prov_want_t *want,
                        struct fi_info **info_p)
{
    struct fi_info *hints = uct_cxi_trig_prov_hints(name, want);
    struct fi_info *all   = NULL;
    int ret;

    if (hints == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    if (prov->is_cassini) {
        /* Keys that the provider would choose protect less */
        hints->domain_attr->mr_mode &= ~FI_MR_PROV_KEY;
    }
    ret = prov->ops->getinfo(UCT_CXI_TRIG_PROV_API, NULL, NULL, 0, hints,
                             &all);
    fi_freeinfo(hints);
    if (ret != 0) {
        ucs_debug("libfabric provider '%s': %s", name, fi_strerror(-ret));
        return uct_cxi_trig_status(ret);
    }

    *info_p = uct_cxi_trig_prov_select(all, name);
    fi_freeinfo(all);
    return (*info_p == NULL) ? UCS_ERR_NO_DEVICE : UCS_OK;
}

/* Say why there is no provider, and keep it for uct_cxi_trig_prov_reason().
 * The mutex is held. */
static void UCS_F_PRINTF(1, 2)
uct_cxi_trig_prov_complain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(uct_cxi_trig_prov_cache.reason,
              sizeof(uct_cxi_trig_prov_cache.reason), format, args);
    va_end(args);
    ucs_error("%s", uct_cxi_trig_prov_cache.reason);
}

/* libfabric describes a card also where no service of it is for this user, and
 * one whose device fails later: only opening it tells. */
static ucs_status_t uct_cxi_trig_prov_open(const uct_cxi_trig_prov_t *prov,
                                           struct fi_info **info_p)
{
    char fault[UCT_TRIG_REASON_MAX];

    if (!prov->opens_late) {
        return UCS_OK;
    }

    uct_cxi_trig_probe(prov, info_p, fault, sizeof(fault));
    if (*info_p != NULL) {
        return UCS_OK;
    }
    uct_cxi_trig_prov_complain(
            "this machine has Cassini cards, but libfabric's provider '%s' "
            "opens none: %s: transport cxi_trig is off, and no other provider "
            "is taken unless UCX_CXI_TRIG_PROVIDER names it", prov->name,
            fault);
    return UCS_ERR_NO_DEVICE;
}

/* What is asked of any provider at first */
static const uct_cxi_trig_prov_want_t uct_cxi_trig_prov_least = {
    .ordering = UCT_CXI_TRIG_ORDERING_DEFAULT
};

/* The provider is older than what is known of it. */
static int uct_cxi_trig_prov_is_old(const uct_cxi_trig_prov_t *prov)
{
    uint32_t version = fi_version();

    if (FI_VERSION_GE(version, prov->min_version)) {
        return 0;
    }
    uct_cxi_trig_prov_complain(
            "libfabric %u.%u is too old for its provider '%s', which must be "
            "of %u.%u or later (LD_LIBRARY_PATH may name another libfabric): "
            "transport cxi_trig is off", FI_MAJOR(version), FI_MINOR(version),
            prov->name, FI_MAJOR(prov->min_version),
            FI_MINOR(prov->min_version));
    return 1;
}

/* The card, on a machine that has one. */
static ucs_status_t
uct_cxi_trig_prov_lookup_card(const uct_cxi_trig_prov_t **prov_p,
                              struct fi_info **info_p)
{
    char fault[UCT_TRIG_REASON_MAX / 2];
    ucs_status_t status;

    *prov_p = uct_cxi_trig_prov_row(UCT_CXI_TRIG_PROV_CXI);
    status  = uct_cxi_trig_prov_query(*prov_p, UCT_CXI_TRIG_PROV_CXI,
                                      &uct_cxi_trig_prov_least, info_p);
    if ((status != UCS_OK) &&
        uct_cxi_trig_cassini_has_cards(fault, sizeof(fault))) {
        uct_cxi_trig_prov_complain(
                "this machine has Cassini cards, but libfabric sees none: %s: "
                "transport cxi_trig is off, and no other provider is taken "
                "unless UCX_CXI_TRIG_PROVIDER names it",
                (fault[0] != '\0') ? fault :
                        "its links must be up, and libfabric's provider 'cxi' "
                        "be there, see \"fi_info -p cxi\"");
    }
    return status;
}

static ucs_status_t
uct_cxi_trig_prov_lookup_auto(const uct_cxi_trig_prov_t **prov_p,
                              struct fi_info **info_p)
{
    ucs_status_t status;

    status = uct_cxi_trig_prov_lookup_card(prov_p, info_p);
    if ((status == UCS_OK) || (uct_cxi_trig_prov_cache.reason[0] != '\0')) {
        return status;
    }

    *prov_p = uct_cxi_trig_emu;
    if (*prov_p == NULL) {
        /* No fault: whoever wants the transport asks for the reason */
        ucs_snprintf_zero(
                uct_cxi_trig_prov_cache.reason,
                sizeof(uct_cxi_trig_prov_cache.reason),
                "there is no Cassini card, and this build has no emulated one "
                "(it was configured with --without-cxiemu): transport cxi_trig "
                "is off unless UCX_CXI_TRIG_PROVIDER names another provider");
        ucs_diag("%s", uct_cxi_trig_prov_cache.reason);
        return UCS_ERR_NO_DEVICE;
    }

    status = uct_cxi_trig_prov_query(*prov_p, (*prov_p)->name,
                                     &uct_cxi_trig_prov_least, info_p);
    if (status != UCS_OK) {
        uct_cxi_trig_prov_complain(
                "there is no Cassini card, and the emulated one refuses a "
                "setting FI_CXIEMU_* (FI_LOG_LEVEL=warn names it): transport "
                "cxi_trig is off");
    }
    return status;
}

/* Whether the provider is there at all. */
static ucs_status_t
uct_cxi_trig_prov_lookup(const char *name, const uct_cxi_trig_prov_t **prov_p,
                         struct fi_info **info_p)
{
    ucs_status_t status;

    if (!strcmp(name, UCT_CXI_TRIG_PROV_AUTO)) {
        return uct_cxi_trig_prov_lookup_auto(prov_p, info_p);
    }
    if (!strcmp(name, UCT_CXI_TRIG_EMU_NAME) &&
        (uct_cxi_trig_emu == NULL)) {
        uct_cxi_trig_prov_complain(
                "libfabric provider '%s' (UCX_CXI_TRIG_PROVIDER) was left out "
                "of this build (configure --without-cxiemu): transport "
                "cxi_trig is off", name);
        return UCS_ERR_NO_DEVICE;
    }

    if (!strcmp(name, UCT_CXI_TRIG_PROV_CXI)) {
        status = uct_cxi_trig_prov_lookup_card(prov_p, info_p);
    } else {
        *prov_p = uct_cxi_trig_prov_row(name);
        status  = uct_cxi_trig_prov_query(*prov_p, name,
                                          &uct_cxi_trig_prov_least, info_p);
    }
    if ((status != UCS_OK) && (uct_cxi_trig_prov_cache.reason[0] == '\0')) {
        uct_cxi_trig_prov_complain(
                "libfabric provider '%s' (UCX_CXI_TRIG_PROVIDER) is not there "
                "or has no deferred work (see \"fi_info -l\"): transport "
                "cxi_trig is off", name);
    }
    return status;
}

/* Cassini's classes need no question: they are written into the answer. */
static ucs_status_t
uct_cxi_trig_prov_set_class(const uct_cxi_trig_prov_want_t *want,
                            const uct_cxi_trig_prov_t *prov,
                            struct fi_info *info)
{
    uint32_t tclass = uct_cxi_trig_prov_tclass(want);

    if (!prov->is_cassini) {
        return UCS_OK;
    }
    if (tclass > FI_TC_SCAVENGER) {
        uct_cxi_trig_prov_complain(
                "libfabric provider '%s' has no traffic class %s "
                "(UCX_CXI_TRIG_TRAFFIC_CLASS), but those from best_effort to "
                "scavenger: transport cxi_trig is off", prov->name,
                uct_cxi_trig_prov_traffic_classes[want->traffic_class]);
        return UCS_ERR_UNSUPPORTED;
    }
    uct_cxi_trig_cassini_set_class(info, tclass);
    return UCS_OK;
}

/* Replaces the devices by descriptions of them that have what is wanted, but
 * for memory of GPUs. */
static ucs_status_t
uct_cxi_trig_prov_refine(const uct_cxi_trig_prov_want_t *want,
                         const uct_cxi_trig_prov_t *prov,
                         struct fi_info **info_p)
{
    const char *name              = (*info_p)->fabric_attr->prov_name;
    struct fi_info *info          = NULL;
    uct_cxi_trig_prov_want_t less = *want;
    ucs_status_t status;

    less.gpu_memory = UCS_NO;
    status          = uct_cxi_trig_prov_query(prov, name, &less, &info);
    if ((status == UCS_OK) && !uct_cxi_trig_prov_grants(info, want)) {
        fi_freeinfo(info);
        info   = NULL;
        status = UCS_ERR_UNSUPPORTED;
    }
    if (status != UCS_OK) {
        uct_cxi_trig_prov_complain(
                "libfabric provider '%s' has not got what is asked for by "
                "UCX_CXI_TRIG_ORDERING=%s and UCX_CXI_TRIG_TRAFFIC_CLASS=%s: "
                "transport cxi_trig is off", name,
                uct_cxi_trig_prov_orderings[want->ordering],
                uct_cxi_trig_prov_traffic_classes[want->traffic_class]);
    }
    fi_freeinfo(*info_p);
    *info_p = info;
    return status;
}

/* The same for memory of GPUs. */
static ucs_status_t
uct_cxi_trig_prov_add_gpu_memory(const uct_cxi_trig_prov_want_t *want,
                                 const uct_cxi_trig_prov_t *prov,
                                 struct fi_info **info_p)
{
    const char *name              = (*info_p)->fabric_attr->prov_name;
    struct fi_info *info          = NULL;
    uct_cxi_trig_prov_want_t more = *want;
    ucs_status_t status;

    more.gpu_memory = UCS_YES;
    status          = uct_cxi_trig_prov_query(prov, name, &more, &info);
    if ((status == UCS_OK) && !uct_cxi_trig_prov_has_gpu_memory(info)) {
        fi_freeinfo(info);
        info   = NULL;
        status = UCS_ERR_UNSUPPORTED;
    }
    if ((status != UCS_OK) && (want->gpu_memory == UCS_TRY)) {
        ucs_diag("libfabric provider '%s' takes no memory of GPUs: %s", name,
                 ucs_status_string(status));
        return UCS_OK;
    }
    if (status != UCS_OK) {
        uct_cxi_trig_prov_complain(
                "libfabric provider '%s' takes no memory of GPUs (FI_HMEM), "
                "which UCX_CXI_TRIG_GPU_MEMORY=y asks for: transport cxi_trig "
                "is off", name);
    }
    fi_freeinfo(*info_p);
    *info_p = info;
    return status;
}

static void uct_cxi_trig_prov_relax(struct fi_info *info)
{
    for (; info != NULL; info = info->next) {
        info->tx_attr->msg_order &= UCT_CXI_TRIG_PROV_ORDER;
    }
}

static ucs_status_t
uct_cxi_trig_prov_ask(const uct_cxi_trig_prov_want_t *want,
                      const uct_cxi_trig_prov_t **prov_p,
                      struct fi_info **info_p)
{
    uct_cxi_trig_prov_want_t asked = *want;
    ucs_status_t status;

    status = uct_cxi_trig_prov_lookup(want->name, prov_p, info_p);
    if (status != UCS_OK) {
        return status;
    }
    if (uct_cxi_trig_prov_is_old(*prov_p)) {
        return UCS_ERR_UNSUPPORTED;
    }

    if ((*prov_p)->is_cassini) {
        asked.traffic_class = 0;
    }
    /* The receiving side has all that there is */
    asked.orders_less = UCT_CXI_TRIG_PROV_ORDER_SOME &
                        ~(*info_p)->rx_attr->msg_order;
    if ((asked.ordering == UCT_CXI_TRIG_ORDERING_STRICT) ||
        (asked.traffic_class != 0)) {
        status = uct_cxi_trig_prov_refine(&asked, *prov_p, info_p);
    }
    if ((status == UCS_OK) && (asked.gpu_memory != UCS_NO)) {
        status = uct_cxi_trig_prov_add_gpu_memory(&asked, *prov_p, info_p);
    }
    if (status == UCS_OK) {
        status = uct_cxi_trig_prov_set_class(want, *prov_p, *info_p);
    }
    if (status == UCS_OK) {
        status = uct_cxi_trig_prov_open(*prov_p, info_p);
    }
    if (want->ordering == UCT_CXI_TRIG_ORDERING_RELAXED) {
        uct_cxi_trig_prov_relax(*info_p);
    }
    return status;
}

static void uct_cxi_trig_prov_update(const uct_cxi_trig_prov_want_t *want)
{
    uct_cxi_trig_prov_want_t *last = &uct_cxi_trig_prov_cache.want;

    if ((last->name != NULL) && !strcmp(last->name, want->name) &&
        (last->ordering == want->ordering) &&
        (last->traffic_class == want->traffic_class) &&
        (last->gpu_memory == want->gpu_memory)) {
        return;
    }

    free(last->name);
    fi_freeinfo(uct_cxi_trig_prov_cache.info);
    uct_cxi_trig_prov_cache.reason[0] = '\0';
    uct_cxi_trig_prov_cache.info   = NULL;
    *last                          = *want;
    last->name                     = strdup(want->name);
    uct_cxi_trig_prov_cache.status =
            uct_cxi_trig_prov_ask(want, &uct_cxi_trig_prov_cache.prov,
                                  &uct_cxi_trig_prov_cache.info);
}

ucs_status_t uct_cxi_trig_prov_find(const uct_cxi_trig_prov_want_t *want,
                                    const uct_cxi_trig_prov_t **prov_p,
                                    struct fi_info **info_p)
{
    ucs_status_t status;

    pthread_mutex_lock(&uct_cxi_trig_prov_cache.mutex);
    uct_cxi_trig_prov_update(want);
    status = uct_cxi_trig_prov_cache.status;
    if (status == UCS_OK) {
        *prov_p = uct_cxi_trig_prov_cache.prov;
        *info_p = uct_cxi_trig_prov_select(
                uct_cxi_trig_prov_cache.info,
                uct_cxi_trig_prov_cache.info->fabric_attr->prov_name);
        status  = (*info_p == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
    }
    pthread_mutex_unlock(&uct_cxi_trig_prov_cache.mutex);
    return status;
}

int uct_cxi_trig_prov_is_unasked(const uct_cxi_trig_prov_t *prov,
                                 const char *name)
{
    const char *devices = getenv("UCX_NET_DEVICES");

    return (prov->id == UCT_CXI_TRIG_EMU_ID) &&
           !strcmp(name, UCT_CXI_TRIG_PROV_AUTO) &&
           ((devices == NULL) ||
            (strstr(devices, UCT_CXI_TRIG_EMU_NAME) == NULL));
}

void uct_cxi_trig_prov_warn(const uct_cxi_trig_prov_t *prov)
{
    static int is_said = 0;

    if (!uct_cxi_trig_node_is_first() ||
        __atomic_exchange_n(&is_said, 1, __ATOMIC_RELAXED)) {
        return;
    }
    ucs_warn("this machine has no Slingshot card: transport cxi_trig runs on "
             "an emulated one (libfabric provider '%s'), which reaches this "
             "machine only. Shared memory is faster, and taken where UCX_TLS "
             "has it. With UCX_CXI_TRIG_PROVIDER=%s there is no such warning.",
             prov->name, prov->name);
}

void uct_cxi_trig_prov_reason(char *text, size_t max)
{
    pthread_mutex_lock(&uct_cxi_trig_prov_cache.mutex);
    snprintf(text, max, "%s", uct_cxi_trig_prov_cache.reason);
    pthread_mutex_unlock(&uct_cxi_trig_prov_cache.mutex);
}

/* sockets has EIO in the queue, and ENOENT where an operation is posted. */
static int uct_cxi_trig_prov_is_loss(const uct_cxi_trig_prov_t *prov,
                                     long fi_code)
{
    switch (labs(fi_code)) {
    case FI_EHOSTUNREACH:
        return 1;
    case FI_EIO:
    case FI_ENOENT:
        return prov->eio_is_loss;
    default:
        return uct_cxi_trig_status_is_peer(uct_cxi_trig_status(fi_code));
    }
}

ucs_status_t uct_cxi_trig_prov_status(const uct_cxi_trig_prov_t *prov,
                                      long fi_code)
{
    /* UCP ends with this status what is sent to a failed endpoint later: its
     * users expect that of the failure */
    return uct_cxi_trig_prov_is_loss(prov, fi_code) ?
           UCS_ERR_ENDPOINT_TIMEOUT : uct_cxi_trig_status(fi_code);
}

ucs_status_t
uct_cxi_trig_prov_entry_status(const uct_cxi_trig_prov_t *prov,
                               const struct fi_cq_err_entry *entry)
{
    if (prov->is_cassini &&
        (uct_cxi_trig_cassini_cause(entry->err, entry->prov_errno,
                                    entry->flags) ==
         UCT_CXI_TRIG_CASSINI_LOSS)) {
        return UCS_ERR_ENDPOINT_TIMEOUT;
    }
    return uct_cxi_trig_prov_status(prov, entry->err ? entry->err : FI_EIO);
}
