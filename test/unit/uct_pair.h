/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uct_pair.h - two interfaces of the transport in one process, for tests.
 */
#ifndef UCT_PAIR_H_
#define UCT_PAIR_H_

#include <uct/api/uct.h>
#include <uct/api/version.h>

#include "uct_trig.h"

#include <stddef.h>
#include <stdint.h>

/** uct_ep_invalidate() without anything else; from 1.21 on it has parameters
 *  instead of flags. */
#if UCT_API >= UCT_VERSION(1, 21)
#define uct_pair_invalidate(_ep) \
    uct_ep_invalidate(_ep, &(uct_ep_invalidate_params_t){0})
#else
#define uct_pair_invalidate(_ep) uct_ep_invalidate(_ep, 0)
#endif

/** Device that all tests use: ST_DEVICE, else the emulated NIC's. */
const char *uct_pair_device(void);

/** Change a setting, named without the transport's prefix; later versions of
 *  UCX want it with the prefix. */
ucs_status_t uct_pair_set(void *config, const char *name, const char *value);


/** One side: an interface with endpoints to itself and to the other side. */
typedef struct {
    uct_md_h          md;
    uct_iface_h       iface;
    uct_iface_attr_t  attr;
    uct_device_addr_t *dev_addr;
    uct_iface_addr_t  *iface_addr;
    uct_ep_h          self; /**< To this interface */
    uct_ep_h          peer; /**< To the other one */
    ucs_status_t      error;  /**< What the error handler was told */
    unsigned          errors; /**< How often */
} uct_pair_side_t;


/** Both sides. One thread. */
typedef struct {
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_component_h     component;
    uct_pair_side_t     a;
    uct_pair_side_t     b;
} uct_pair_t;


/**
 * Make everything; returns 0, or -1 after a message. @a settings of the
 * interfaces are names and values in turn, ended by NULL; or NULL.
 */
int uct_pair_create(uct_pair_t *pair, const char *const *settings);

/** Close side b, and open it anew with neither endpoints nor progress; the
 *  other side's endpoint is made anew. */
ucs_status_t uct_pair_reopen_idle(uct_pair_t *pair);

/** Undo it, endpoints that are NULL left out. */
void uct_pair_destroy(uct_pair_t *pair);

/** A case on "pair". */
#define UCT_PAIR_CASE(_name) \
    ST_CASE_WITH(_name, uct_pair_t, pair, \
                 CU_ASSERT_FATAL(uct_pair_create(pair, NULL) == 0), \
                 uct_pair_destroy(pair))

/** Close one side, which may be closed already. */
void uct_pair_close_side(uct_pair_side_t *side);

/** Progress both sides once. */
void uct_pair_progress(uct_pair_t *pair);

/** Progress until *value >= target; the program's time limit bounds it. */
void uct_pair_wait(uct_pair_t *pair, const volatile uint64_t *value,
                   uint64_t target);

/** Progress until nothing of an endpoint is in flight. */
ucs_status_t uct_pair_flush(uct_pair_t *pair, uct_ep_h ep);

/** Make an endpoint from addresses. */
ucs_status_t uct_pair_connect(uct_iface_h iface,
                              const uct_device_addr_t *dev_addr,
                              const uct_iface_addr_t *iface_addr,
                              uct_ep_h *ep_p);

/** Entries of a side that are taken by what is armed. */
typedef struct {
    uct_trig_cntr_h cntr;
    uct_trig_mem_h  mem;
    uint64_t        word;
    uint64_t        posted;
    uint64_t        done;
} uct_pair_hold_t;

/** Take so many entries of side a: UCS_OK, or UCS_ERR_NO_RESOURCE and none is
 *  taken; 0 is legal. */
ucs_status_t uct_pair_hold(uct_pair_t *pair, unsigned count,
                           uct_pair_hold_t *hold);

/** Give them back, if there are any. */
void uct_pair_unhold(uct_pair_t *pair, uct_pair_hold_t *hold);

/** What a handler of messages has seen. */
typedef struct {
    volatile uint64_t count;
    size_t            length; /**< Of the last one */
    uint8_t           data[65536];
} uct_inbox_t;

/** Keep the messages with this id that an interface gets; or fail the running
 *  case. */
void uct_inbox_open(uct_inbox_t *inbox, uct_iface_h iface, uint8_t id);

/** How many devices UCX is told of. */
unsigned uct_pair_count_devices(void);

/** Find the component; NULL if the transport is not loaded. */
uct_component_h uct_pair_find_component(void);

#endif
