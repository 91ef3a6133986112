/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_prov.h - libfabric providers: which one is used, what it has.
 */
#ifndef UCT_CXI_TRIG_PROV_H_
#define UCT_CXI_TRIG_PROV_H_

#include <ucs/config/types.h>
#include <ucs/type/status.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include <stddef.h>
#include <stdint.h>


/** How the completion of a deferred operation is learnt. */
typedef enum {
    /** By an entry in the completion queue. */
    UCT_CXI_TRIG_DONE_CQ,
    /** By a counter; only failures have an entry in the queue. */
    UCT_CXI_TRIG_DONE_CNTR
} uct_cxi_trig_done_t;


/** What the provider keeps in order, from an endpoint to another. It is asked
 *  of the sending side. What the receiving side has is left alone: on Cassini
 *  the order of a region's writes to the host's memory follows it. */
typedef enum {
    /** Messages, which UCX counts on, and nothing else. */
    UCT_CXI_TRIG_ORDERING_RELAXED,
    /** Messages, and what the provider keeps in order unasked: on Cassini
     *  nothing. */
    UCT_CXI_TRIG_ORDERING_DEFAULT,
    /** Messages, and writes, reads and atomics, each among themselves; reads,
     *  and atomics of different kinds, where the provider can. */
    UCT_CXI_TRIG_ORDERING_STRICT
} uct_cxi_trig_ordering_t;


/** What the settings ask of a provider. */
typedef struct uct_cxi_trig_prov_want {
    char     *name;         /**< A provider's, or "auto" */
    unsigned ordering;      /**< @ref uct_cxi_trig_ordering_t */
    unsigned traffic_class; /**< Of uct_cxi_trig_prov_traffic_classes */
    ucs_ternary_auto_value_t gpu_memory; /**< UCS_YES: a must (FI_HMEM) */
    uint64_t orders_less;   /**< Set inside: what a strict order goes without */
} uct_cxi_trig_prov_want_t;


/** Entry points of a provider. */
typedef struct uct_cxi_trig_prov_ops {
    int (*getinfo)(uint32_t version, const char *node, const char *service,
                   uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
                  void *context);
    /** The name of the service whose entries processes share, or "" if they are
     *  the process's; NULL: by the launcher's variables. */
    const char *(*service)(void);
    /** What processes have in common that a local card reaches; NULL for
     *  others. */
    uint32_t (*space)(void);
} uct_cxi_trig_prov_ops_t;


/** What libfabric does not tell about a provider. Constant. */
typedef struct uct_cxi_trig_prov {
    const char          *name;       /**< libfabric's; NULL: any other */
    const uct_cxi_trig_prov_ops_t *ops;
    uint8_t             id;          /**< In addresses */
    uint8_t             local;       /**< Reaches its own machine only */
    uint8_t             eio_is_loss; /**< FI_EIO and FI_ENOENT tell a broken
                                          connection */
    uint8_t             is_cassini;  /**< See cxi_trig_cassini.h */
    uint8_t             opens_late;  /**< Describes domains that do not open */
    uint8_t             fetches;     /**< Receivers fetch long messages: see
                                          uct_cxi_trig_cassini_max_eager() */
    uint8_t             has_monitor; /**< libfabric keeps its registrations, and
                                          watches what is unmapped */
    uint8_t             revokes;     /**< No peer reaches a region any more
                                          once fi_close() of it returns */
    uct_cxi_trig_done_t done;
    unsigned            max_entries; /**< Deferred operations pending at once,
                                          in a process; of an interface by
                                          default */
    unsigned            max_cntrs;   /**< Counters of the NIC: processes share
                                          them, to open one may fail earlier;
                                          0: as the provider tells */
    unsigned            max_tx;      /**< Longest transmit and ... */
    unsigned            max_rx;      /**< ... receive queue; 0: any */
    uint32_t            min_version; /**< Of libfabric */
    uint64_t            max_count;   /**< Largest value of a counter */
    size_t              max_put;     /**< Largest put and get, bytes */
    double              latency;     /**< Seconds, one way */
    double              bandwidth;   /**< Bytes per second */
    double              overhead;    /**< Seconds of CPU per message */
} uct_cxi_trig_prov_t;


/** Names of orderings and of traffic classes, for the settings; NULL ends. */
extern const char *uct_cxi_trig_prov_orderings[];
extern const char *uct_cxi_trig_prov_traffic_classes[];


/**
 * Find a provider that can serve the transport, and its devices.
 *
 * No other one than that of @a want is ever taken instead, and "auto" is
 * decided by what is there alone: cxi where a domain of it opens; the emulated
 * card on a machine without Cassini cards; else none. One that has not got what
 * is wanted is refused, but for memory of GPUs that is only to be tried
 * (UCS_TRY). The list has one entry a domain that opens, loop-back domains
 * last; free it with fi_freeinfo(). Failures are logged once. Any thread may
 * call this.
 */
ucs_status_t uct_cxi_trig_prov_find(const uct_cxi_trig_prov_want_t *want,
                                    const uct_cxi_trig_prov_t **prov_p,
                                    struct fi_info **info_p);

/** Why there was no provider when it was looked for last, for
 *  uct_trig_off_reason(). Any thread. */
void uct_cxi_trig_prov_reason(char *text, size_t max);

/** In a child of a fork, where no other thread is: the lock is free. */
void uct_cxi_trig_prov_forked(void);

/** Whether a provider is the emulated card, and no setting names it. @a name:
 *  what uct_cxi_trig_prov_find() was asked for. */
int uct_cxi_trig_prov_is_unasked(const uct_cxi_trig_prov_t *prov,
                                 const char *name);

/** Say that the transport runs on the emulated card: once a process, and by one
 *  process of a job's node alone. Any thread. */
void uct_cxi_trig_prov_warn(const uct_cxi_trig_prov_t *prov);

/** libfabric's name of a provider that an address names. */
const char *uct_cxi_trig_prov_name(uint8_t id);

/** Whether memory of GPUs can be registered with a device. */
static inline int uct_cxi_trig_prov_has_gpu_memory(const struct fi_info *info)
{
    return (info->caps & FI_HMEM) != 0;
}

/** Whether a device reaches its own machine only. */
int uct_cxi_trig_prov_is_local(const uct_cxi_trig_prov_t *prov,
                               const struct fi_info *info);

/** Convert a libfabric code of an operation with a peer; as
 *  uct_cxi_trig_status(), but for what the provider means by it. */
ucs_status_t uct_cxi_trig_prov_status(const uct_cxi_trig_prov_t *prov,
                                      long fi_code);

/** The same for an error that a completion queue tells of. */
ucs_status_t
uct_cxi_trig_prov_entry_status(const uct_cxi_trig_prov_t *prov,
                               const struct fi_cq_err_entry *entry);

#endif
