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


/** Told of words that the NIC has stored to, in order; @a count: of these. */
typedef void (*cxiemu_store_func_t)(void *arg, const void *const *addresses,
                                    size_t count);

/** Name for fi_open_ops() of a domain. */
#define FI_CXIEMU_DOMAIN_OPS "cxiemu_domain_ops_v1"

/** What the emulated NIC offers beyond libfabric's interface. */
struct fi_cxiemu_domain_ops {
    size_t size;

    /**
     * Allocate zeroed memory that peers can map, so that payload is copied
     * once, but for long writes. @a length: bytes, rounded up to pages. 0, or
     * -FI_ENOMEM.
     * Ownership: the caller's, until mem_free(); after that no peer reaches it.
     * Threads: any.
     */
    int (*mem_alloc)(struct fid_domain *domain, size_t length, void **address);

    /** Free memory of mem_alloc(); no operation uses it. 0, or -FI_EINVAL. */
    int (*mem_free)(struct fid_domain *domain, void *address);

    /**
     * Make progress of the NIC, as polling a completion queue does but without
     * reading one. Returns how many things were done. Threads: any.
     */
    unsigned (*progress)(struct fid_domain *domain);

    /**
     * As progress(), for a thread that polls until something has come but lets
     * others run in between, because they need its processor: peers do not have
     * the NIC's own thread woken for some milliseconds. Threads: any.
     */
    unsigned (*yield)(struct fid_domain *domain);

    /**
     * As progress(), for a thread that has polled and is about to sleep: from
     * now on the NIC's own thread is woken for what comes. Threads: any.
     */
    unsigned (*rest)(struct fid_domain *domain);

    /**
     * Sleep until the 64-bit word at @a word, which the NIC or a thread of this
     * process writes, is at least @a value; the NIC's own stores wake the
     * sleeper. Threads that store to it call wake().
     * @a timeout_ms: milliseconds, < 0 for ever. 0, or -FI_ETIMEDOUT.
     */
    int (*wait_word)(struct fid_domain *domain, const uint64_t *word,
                     uint64_t value, int timeout_ms);

    /** Have the sleepers of wait_word() look again. Threads: any. */
    void (*wake)(struct fid_domain *domain);

    /**
     * Have a function called whenever the NIC has stored 8 bytes or fewer to
     * memory of this process by a write or an atomic; NULL to end that. And,
     * with no address, when the NIC's thread takes in parts of a longer
     * message, as nobody polls: who does so now spares it that.
     * It is told of several stores together, soon after the first one, and
     * runs with the NIC's lock held: it returns soon and calls nothing of
     * the domain. On return from this the function before is not running.
     * Threads: any.
     */
    int (*on_store)(struct fid_domain *domain, cxiemu_store_func_t func,
                    void *arg);

    /**
     * Add to counters of the domain, in order, as fi_cntr_add() does to one;
     * what is triggered is carried out together behind it.
     * 0, or -FI_EINVAL, with no effect, for a value out of range.
     * Threads: any.
     */
    int (*cntr_add_all)(struct fid_domain *domain,
                        struct fid_cntr *const *cntrs, const uint64_t *values,
                        size_t count);

    /**
     * Have a 64-bit word of this process follow a counter's successes, without
     * a wait for a writeback, from their value of now on; NULL: none any more.
     * The function of on_store() is told of each store. What was the word
     * before is not written any more when this returns. 0. Threads: any.
     */
    int (*cntr_mirror)(struct fid_domain *domain, struct fid_cntr *cntr,
                       uint64_t *word);

    /**
     * Whether a completion queue of the domain has an entry of a receive,
     * without a look at what has come: progress() looks. Cheap; a thread that
     * asks again and again is told of one soon. Threads: any.
     */
    int (*cq_has_recv)(struct fid_cq *cq);

    /** Name of the data path in use, for reports: "mapped+cma" or "bounce". */
    const char *(*data_path)(struct fid_domain *domain);

    /** The process's entries for deferred work (FI_CXIEMU_DWQ_ENTRIES). */
    size_t (*max_entries)(struct fid_domain *domain);
};

#ifdef __cplusplus
}
#endif

#endif
