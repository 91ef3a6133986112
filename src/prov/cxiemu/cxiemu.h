/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu.h - the emulated Cassini NIC, entered without libfabric's loader.
 */
#ifndef CXIEMU_H_
#define CXIEMU_H_

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CXIEMU_PROV_NAME "cxiemu"

/** As fi_getinfo(); free the list with fi_freeinfo(). Any thread. */
int cxiemu_getinfo(uint32_t version, const char *node, const char *service,
                   uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info);

/** As fi_fabric(), for the fabric_attr of cxiemu_getinfo(). Any thread. */
int cxiemu_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
                  void *context);


/** A store to a trigger page: @a offset in its window, in bytes. */
typedef void (*cxiemu_store_func_t)(void *arg, size_t offset, uint64_t value);

/** What threads that wait for a NIC do for it. Any thread, without locks that
 *  a caller of the provider may hold. */
typedef struct cxiemu_poller {
    int  (*poll)(void *arg);  /**< Make progress; how many things were done */
    void (*begin)(void *arg); /**< The thread calls poll() from now on */
    void (*end)(void *arg);   /**< It does so no more */
    void *arg;
} cxiemu_poller_t;

/**
 * What a program that has streams of its own does for the NICs, which would
 * need no help if they were real ones.
 */
typedef struct cxiemu_hooks {
    /**
     * Call a function for each store of a stream to a window of trigger pages,
     * instead of storing: to a NIC it is an event, and of two stores to memory
     * the first one is lost. Stores of others are then looked for seldom, twice
     * a second. 0, or -FI_E*: there are no trigger pages then.
     */
    int  (*window_add)(void *start, size_t length, cxiemu_store_func_t func,
                       void *arg);

    /** On return nothing of that runs any more. */
    void (*window_remove)(void *start);

    /** Have the threads of streams that wait call a poller, which is copied. 0,
     *  or -FI_E*: the NIC's own thread does it then. */
    int  (*poller_add)(const cxiemu_poller_t *poller);

    /** On return nothing of that runs any more. */
    void (*poller_remove)(const cxiemu_poller_t *poller);
} cxiemu_hooks_t;

/** Set the hooks, which live as long as the process; before a domain is opened
 *  for which they are to count. Any thread. */
void cxiemu_set_hooks(const cxiemu_hooks_t *hooks);

/** The name of the service whose entries and counters the process shares with
 *  others, or "" if they are its own. A domain has been opened. */
const char *cxiemu_service_name(void);

/** A number that processes have in common that reach each other: those of one
 *  boot, and of one namespace of PIDs and one of users, or one FI_CXIEMU_DIR.
 *  cxiemu_getinfo() has found something. Any thread. */
uint32_t cxiemu_space(void);

/** Whether the program has loaded a runtime of GPUs whose memory the card can
 *  reach: one that gives file descriptors (dma-buf). Any thread. */
int cxiemu_reaches_gpus(void);

#ifdef __cplusplus
}
#endif

#endif
