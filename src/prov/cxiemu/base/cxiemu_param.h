/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_param.h - settings, read once from the environment (FI_CXIEMU_*).
 */
#ifndef CXIEMU_PARAM_H_
#define CXIEMU_PARAM_H_

#include <stddef.h>
#include <stdint.h>


/** Most devices that can be asked for. */
#define CXIEMU_MAX_DEVICES 8

/** How closely writes of one endpoint to another keep their order. */
typedef enum {
    CXIEMU_ORDER_RELAXED, /**< None, but for fences */
    CXIEMU_ORDER_DEFAULT, /**< What the endpoint's msg_order asks for */
    CXIEMU_ORDER_STRICT   /**< All operations to a peer are in order */
} cxiemu_order_t;


/** Settings of the process. Constant after cxiemu_param_init(). */
typedef struct cxiemu_param {
    int            strict;      /**< FI_CXIEMU_MODE=strict, else fast */
    uint64_t       seed;        /**< FI_CXIEMU_SEED; printed where random */
    cxiemu_order_t order;       /**< FI_CXIEMU_ORDER */
    size_t         max_entries; /**< FI_CXIEMU_DWQ_ENTRIES, of the service */
    size_t         max_cntrs;   /**< FI_CXIEMU_CNTRS, of the service */
    char           service[64]; /**< FI_CXIEMU_SERVICE: "own", a name, or ""
                                     for the job's */
    size_t         devices;     /**< FI_CXIEMU_DEVICES, that are offered */
    size_t         tx_size;     /**< FI_CXIEMU_TX_SIZE, default of endpoints */
    int            cma;         /**< FI_CXIEMU_CMA: 0 never, 1 where possible */
    size_t         cma_min;     /**< FI_CXIEMU_CMA_MIN, bytes */
    int            dir;         /**< FI_CXIEMU_DIR, opened; -1: there is none */
    int            ptracer;     /**< FI_CXIEMU_PTRACER: let all processes of the
                                     user attach */
    int            trap;        /**< FI_CXIEMU_TRAP: decode stores to
                                     trigger pages */
    size_t         poll_us;     /**< FI_CXIEMU_DOORBELL_POLL, microseconds */
    size_t         delay_us;    /**< FI_CXIEMU_DELAY: of each operation */
    size_t         fail_every;  /**< FI_CXIEMU_FAIL: one in that many; 0 none */
    int            leaks;       /**< FI_CXIEMU_LEAKS: an error at exit */
    size_t         again_every; /**< FI_CXIEMU_AGAIN: one piece of deferred
                                     work in that many is refused; 0 none */
    unsigned       vni;         /**< SLINGSHOT_VNIS: the first of them */
    size_t         vanish;      /**< FI_CXIEMU_VANISH: the link to a peer is
                                     lost after that many operations; 0 never */
} cxiemu_param_t;


/** Read the environment; any thread, any number of times. 0, or -FI_EINVAL for
 *  a value that makes no sense, which is logged. */
int cxiemu_param_init(void);

/** FI_CXIEMU_LEAKS as it is now: a child may have set it after a fork(). */
int cxiemu_param_leaks_now(void);

/** The settings; cxiemu_param_init() has been called. */
const cxiemu_param_t *cxiemu_param(void);

/** Tell libfabric of the settings, for `fi_info -e`. Only for the module:
 *  libfabric's table of settings exists once it has looked for providers. */
void cxiemu_param_define(void);

#endif
