/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uct_trig.h - triggered operations of a UCT interface.
 *
 * An interface of the cxi_trig transport can be given operations ahead of time
 * that its NIC carries out when a counter reaches a threshold, with no host
 * thread on the way. This header is the extension's whole API; the interface,
 * its endpoints and its addresses are those of <uct/api/uct.h>.
 *
 * Vocabulary (libfabric's): a deferred operation waits for a trigger counter to
 * reach its threshold (level-triggered: one that is already met fires at once),
 * is carried out once, and then adds 1 to its completion counter.
 *
 * Source: libfabric fi_trigger(3) deferred work; HPE Slingshot triggered
 * operations.
 */
#ifndef UCT_TRIG_H_
#define UCT_TRIG_H_

#include <uct/api/uct.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A counter: 64 bits here, at least 31 in any NIC (see max_count). */
typedef struct uct_trig_cntr *uct_trig_cntr_h;

/** A deferred operation that is described once and posted many times. */
typedef struct uct_trig_op *uct_trig_op_h;

/** A registered memory region that remote NICs may read and write. */
typedef struct uct_trig_mem *uct_trig_mem_h;

/** Length of a packed remote key, bytes. */
#define UCT_TRIG_RKEY_PACKED_LEN 32

/** Length of provider and device names, with the final zero. */
#define UCT_TRIG_NAME_MAX 64


/** What a remote key unpacks to. Plain data: copy it, nothing to release. */
typedef struct uct_trig_rkey {
    uint64_t key;     /**< Provider's key */
    uint64_t address; /**< First byte of the region, owner's virtual address */
    uint64_t length;  /**< Of the region, bytes */
    uint64_t base;    /**< What to subtract from a virtual address to get what
                           the provider wants: 0, or @a address */
} uct_trig_rkey_t;


/** Properties of the provider; @ref uct_trig_iface_attr_t.flags. */
enum uct_trig_iface_flags {
    /** The source of a put must be registered, and given as @a local, if it is
     *  a GPU's memory. */
    UCT_TRIG_IFACE_FLAG_LOCAL_MEM  = 1u << 0
};


/** Limits and state of the trigger extension of one interface. */
typedef struct uct_trig_iface_attr {
    uint64_t flags;        /**< @ref uct_trig_iface_flags */
    size_t   max_put;      /**< Largest deferred put, bytes */
    uint64_t max_count;    /**< Largest value that a counter may reach */
    unsigned max_entries;  /**< Deferred operations pending at once */
    unsigned free_entries; /**< Of those, not in use now by any interface of the
                                process */
    unsigned used_entries; /**< In use by this interface */
    unsigned max_cntrs;    /**< Counters of the NIC. Processes share them, so
                                that there may be none left before */
    unsigned num_cntrs;    /**< Counters that exist now */
    char     provider[UCT_TRIG_NAME_MAX]; /**< libfabric provider */
    char     device[UCT_TRIG_NAME_MAX];   /**< Device, as in UCX_NET_DEVICES */
    unsigned nic_entries;   /**< Of all processes that share the NIC's service;
                                 of this one if there are no others */
    unsigned share_entries; /**< Of those, this process's share now */
    unsigned share_cntrs;   /**< An equal part of max_cntrs for each of these
                                 processes; nobody keeps the others from having
                                 more */
} uct_trig_iface_attr_t;


/**
 * Called from uct_iface_progress() when a deferred operation has completed and
 * its entry is free again.
 *
 * @param [in] arg    As given when the operation was posted.
 * @param [in] status UCS_OK, or why the NIC could not carry it out; then its
 *                    completion counter was not incremented.
 */
typedef void (*uct_trig_done_func_t)(void *arg, ucs_status_t status);


/** When a deferred operation fires, and what happens then. */
typedef struct uct_trig_deferred {
    uct_trig_cntr_h      trigger;    /**< Fires when this counter ... */
    uint64_t             threshold;  /**< ... is >= this */
    uct_trig_cntr_h      completion; /**< Gets 1 added when done; NULL: none */
    int                  is_due;     /**< Non-zero: the caller has seen that
                                          @a trigger is there. It is carried out
                                          at once, and takes no entry */
    uct_trig_done_func_t done;       /**< May be NULL */
    void                 *arg;       /**< Passed to @a done */
} uct_trig_deferred_t;


/** A deferred put. */
typedef struct uct_trig_put {
    const void      *buffer;     /**< Source; read when the operation fires */
    size_t          length;      /**< In bytes, >= 1 */
    uct_trig_mem_h  local;       /**< Region of @a buffer, or NULL where the
                                      interface does not ask for one */
    uint64_t        remote_addr; /**< Destination, owner's virtual address */
    uct_trig_rkey_t rkey;        /**< Region that holds it */
} uct_trig_put_t;


/**
 * Tell whether an interface has the trigger extension.
 *
 * @param [in] iface Any UCT interface.
 *
 * @return Non-zero if the other calls may be used on @a iface.
 *
 * Threads: may be called from any thread.
 */
int uct_trig_iface_is_supported(uct_iface_h iface);


/** Longest text of @ref uct_trig_off_reason, with the final zero. */
#define UCT_TRIG_REASON_MAX 512


/**
 * Tell why the transport has no device, as it was logged when UCX looked for
 * devices last.
 *
 * @param [out] text Filled with the reason; empty if there is a provider, or
 *                   nobody has looked yet.
 * @param [in]  max  Bytes at @a text, >= 1; longer texts are cut.
 *
 * Threads: may be called from any thread.
 */
void uct_trig_off_reason(char *text, size_t max);


/**
 * Query limits and state.
 *
 * @param [in]  iface Interface with the extension.
 * @param [out] attr  Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED for any other interface.
 *
 * Threads: the interface's rule: one thread at a time.
 */
ucs_status_t uct_trig_iface_query(uct_iface_h iface,
                                  uct_trig_iface_attr_t *attr);


/** A property of a NIC that its provider does not tell. */
#define UCT_TRIG_NOT_TOLD (-1)

/** What a NIC's provider tells of it beyond libfabric's interface; see
 *  UCT_TRIG_NOT_TOLD. */
typedef struct uct_trig_nic_attr {
    int     service;        /**< Cassini's service that the process uses */
    int     vni;            /**< Number of the job's network */
    int64_t service_entries; /**< Deferred operations that may be pending at
                                  once, of all processes of the service */
    int     caches_keys;    /**< Non-zero: keys that the provider chooses are
                                 good until the interface is closed; the
                                 transport chooses its keys itself */
    int     optimizes_keys; /**< Non-zero: keys that the provider chooses are
                                 optimized */
    char    monitor[UCT_TRIG_NAME_MAX]; /**< libfabric's way to notice that
                                 memory is unmapped, as FI_MR_CACHE_MONITOR;
                                 "default" if that is not set; empty if the
                                 provider uses none */
    int     ucx_notices;    /**< Non-zero: UCX does, and can keep registrations
                                 of memory */
} uct_trig_nic_attr_t;


/**
 * Query what the provider tells of a NIC.
 *
 * @param [in]  iface Interface with the extension.
 * @param [out] attr  Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED for any other interface.
 *
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_iface_query_nic(uct_iface_h iface,
                                      uct_trig_nic_attr_t *attr);


/**
 * Cancel deferred operations that still wait for their trigger.
 *
 * Operations that have fired complete; those that were cancelled end with
 * UCS_ERR_CANCELED; all of that before this call returns. Their done() is
 * called, so this must not be called from one. A NIC drops all that waits in
 * its domain: what waits for other triggers is queued again, which is not seen
 * but for the time that this takes (on Cassini a second).
 *
 * @param [in] iface    Interface with the extension.
 * @param [in] triggers Counters whose operations are cancelled.
 * @param [in] count    How many of these; 0: of all counters.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, if what has fired does not
 *         complete now; UCS_ERR_UNSUPPORTED, with no effect, if the provider
 *         cannot, the memory domain has other interfaces that are open, or for
 *         any other interface.
 *
 * Threads: one thread at a time. Streams may add to the counters meanwhile.
 */
ucs_status_t uct_trig_iface_cancel(uct_iface_h iface,
                                   const uct_trig_cntr_h *triggers,
                                   unsigned count);


/**
 * Create a counter with value 0.
 *
 * @param [in]  iface  Interface with the extension.
 * @param [out] cntr_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_NO_RESOURCE if the NIC has none left;
 *         UCS_ERR_NO_MEMORY; UCS_ERR_UNSUPPORTED for any other interface;
 *         UCS_ERR_IO_ERROR if the provider failed.
 *
 * Ownership: the caller's until @ref uct_trig_cntr_destroy, which must come
 *            before the interface is closed.
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_cntr_create(uct_iface_h iface, uct_trig_cntr_h *cntr_p);


/**
 * Destroy a counter.
 *
 * @param [in] cntr The counter.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while a pending operation or a
 *         memory region uses it.
 *
 * Threads: one thread at a time; no @ref uct_trig_cntr_add may be running.
 */
ucs_status_t uct_trig_cntr_destroy(uct_trig_cntr_h cntr);


/**
 * Tell where a stream adds to a counter by itself: each 64-bit store of n to
 * that address, which is in a page of the NIC, adds n.
 *
 * @param [in] cntr The counter.
 *
 * @return The address; NULL if the provider has none, and
 *         @ref uct_trig_cntr_add must be called instead.
 *
 * Ownership: the address is good until the counter is destroyed.
 * Threads: may be called from any thread.
 */
volatile uint64_t *uct_trig_cntr_doorbell(uct_trig_cntr_h cntr);


/**
 * Add to a counter from the host and fire what it triggers.
 *
 * @param [in] cntr  The counter.
 * @param [in] value What to add.
 *
 * @return UCS_OK; UCS_ERR_EXCEEDS_LIMIT, with no effect, if what this host has
 *         added would pass max_count; UCS_ERR_IO_ERROR if the provider failed.
 *
 * Threads: may be called from any thread, at the same time as anything but
 *          destroying the counter.
 */
ucs_status_t uct_trig_cntr_add(uct_trig_cntr_h cntr, uint64_t value);


/**
 * Set a counter back to 0: what is armed fires once the counter has come to its
 * threshold again.
 *
 * If uct_trig_cntr_add() had added to it, it is done when this returns: the
 * counter has been read as less than that. So what a stream adds once it has
 * seen a store of this thread that comes later is added to 0, also if a GPU has
 * a shorter way to the NIC.
 *
 * @param [in] cntr The counter.
 *
 * @return UCS_OK; UCS_ERR_IO_ERROR if the provider failed, or that was not read
 *         within a tenth of a second: the NIC does not answer, or others have
 *         added as much again.
 *
 * Threads: may be called from any thread, at the same time as anything but
 *          destroying the counter.
 */
ucs_status_t uct_trig_cntr_reset(uct_trig_cntr_h cntr);


/**
 * Read a counter. Not for the fast path: on some NICs it costs a round trip
 * over the bus, and is only as fresh as the last uct_iface_progress().
 *
 * The value is one that the counter has had, and not older than the one read
 * before, but it need not be the newest: libfabric's cxi gives what the NIC has
 * written back last, and asks for the next. What has been counted is seen if
 * this is called again and again.
 *
 * @param [in]  cntr    The counter.
 * @param [out] value_p Filled with the success count in any case.
 *
 * @return UCS_OK; UCS_ERR_IO_ERROR if operations that count here have failed.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t uct_trig_cntr_read(uct_trig_cntr_h cntr, uint64_t *value_p);


/**
 * Register memory for deferred puts, gets and atomics.
 *
 * @param [in]  iface   Interface with the extension.
 * @param [in]  address First byte.
 * @param [in]  length  In bytes, >= 1.
 * @param [in]  cntr    Gets 1 added for every put or atomic from a peer (or
 *                      from this interface itself) that has landed in the
 *                      region; may be NULL. Several regions may have one
 *                      counter. A region with a counter cannot be read by
 *                      peers: a get fails.
 * @param [out] mem_p   Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM for a NULL address or length 0;
 *         UCS_ERR_INVALID_ADDR if the memory is not mapped;
 *         UCS_ERR_NO_RESOURCE; UCS_ERR_NO_MEMORY; UCS_ERR_UNSUPPORTED, also for
 *         memory of a GPU that the provider does not take; UCS_ERR_IO_ERROR if
 *         the provider failed.
 *
 * Ownership: the region is the caller's until @ref uct_trig_mem_dereg; the
 *            memory stays the caller's and must live as long.
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_mem_reg(uct_iface_h iface, void *address, size_t length,
                              uct_trig_cntr_h cntr, uct_trig_mem_h *mem_p);


/**
 * Tell whether memory of a GPU can be registered, by doing so for a moment.
 *
 * @param [in]  iface   Interface with the extension.
 * @param [in]  address First byte, of memory of a GPU.
 * @param [in]  length  In bytes, >= 1.
 * @param [out] reason  Why not, with what to set where that helps; empty if it
 *                      can be. NULL: it is not asked for.
 * @param [in]  max     Bytes at @a reason; UCT_TRIG_REASON_MAX are enough.
 *
 * @return As @ref uct_trig_mem_reg; UCS_ERR_UNSUPPORTED also where the
 *         interface does not tell memory of GPUs from the host's, which it
 *         would take it for. Nothing is logged as an error.
 *
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_mem_check(uct_iface_h iface, void *address, size_t length,
                                char *reason, size_t max);


/**
 * Deregister memory. Later accesses by peers fail there.
 *
 * @param [in] mem The region.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while a pending operation
 *         posted here names it as @a local.
 *
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_mem_dereg(uct_trig_mem_h mem);


/**
 * Pack a remote key of a region, to be carried to the peers.
 *
 * @param [in]  mem    The region.
 * @param [out] buffer UCT_TRIG_RKEY_PACKED_LEN bytes.
 *
 * Threads: may be called from any thread.
 */
void uct_trig_mem_pack(uct_trig_mem_h mem, void *buffer);


/**
 * Unpack a remote key.
 *
 * @param [in]  buffer What @ref uct_trig_mem_pack wrote at the peer.
 * @param [in]  length Bytes at @a buffer.
 * @param [out] rkey   Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if the bytes are no key of this
 *         version.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t uct_trig_rkey_unpack(const void *buffer, size_t length,
                                  uct_trig_rkey_t *rkey);


/**
 * Post a deferred put: when it fires, @a length bytes go to the peer's memory;
 * they are visible there before the completion counter and the region's counter
 * count it.
 *
 * @param [in] ep       Endpoint to the owner of the region (may be a
 *                      loop-back).
 * @param [in] put      What to write; copied.
 * @param [in] deferred When, and what then; copied.
 *
 * @return UCS_OK; UCS_ERR_NO_RESOURCE, with no effect, if no entry is free;
 *         UCS_ERR_INVALID_PARAM for a range outside the region, length 0 or a
 *         missing counter; UCS_ERR_EXCEEDS_LIMIT for a length above max_put or
 *         a threshold above max_count; UCS_ERR_UNSUPPORTED;
 *         UCS_ERR_IO_ERROR if the provider failed; why @a ep has failed.
 *
 * Ownership: source, regions and counters must live until @a done was called,
 *            or the interface closed, which drops what is pending and does not
 *            call @a done. @a ep may go before.
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_ep_put(uct_ep_h ep, const uct_trig_put_t *put,
                             const uct_trig_deferred_t *deferred);


/** A deferred get. */
typedef struct uct_trig_get {
    void            *buffer;     /**< Destination; written when the operation
                                      has fired */
    size_t          length;      /**< In bytes, >= 1 */
    uct_trig_mem_h  local;       /**< Region of @a buffer, or NULL where the
                                      interface does not ask for one */
    uint64_t        remote_addr; /**< Source, owner's virtual address */
    uct_trig_rkey_t rkey;        /**< Region that holds it */
} uct_trig_get_t;


/**
 * Post a deferred get: when it fires, @a length bytes come from the peer's
 * memory; they are visible here before the completion counter counts it.
 *
 * @param [in] ep       Endpoint to the owner of the region (may be a
 *                      loop-back).
 * @param [in] get      What to read; copied.
 * @param [in] deferred When, and what then; copied.
 *
 * @return As @ref uct_trig_ep_put; max_put is the limit here, too.
 *
 * Ownership: as @ref uct_trig_ep_put, for the destination.
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_ep_get(uct_ep_h ep, const uct_trig_get_t *get,
                             const uct_trig_deferred_t *deferred);


/** A deferred 64-bit atomic addition. */
typedef struct uct_trig_atomic {
    uint64_t        value;       /**< What to add */
    uint64_t        remote_addr; /**< Naturally aligned word, owner's address */
    uct_trig_rkey_t rkey;        /**< Region that holds it */
} uct_trig_atomic_t;


/**
 * Post a deferred atomic addition to a 64-bit word.
 *
 * @param [in] ep       Endpoint to the owner of the word (may be a loop-back).
 * @param [in] atomic   What to add, and where; copied.
 * @param [in] deferred When, and what then; copied.
 *
 * @return As @ref uct_trig_ep_put; UCS_ERR_INVALID_PARAM also for a misaligned
 *         word.
 *
 * Ownership: as @ref uct_trig_ep_put.
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_ep_atomic_add64(uct_ep_h ep,
                                      const uct_trig_atomic_t *atomic,
                                      const uct_trig_deferred_t *deferred);


/**
 * Describe a deferred put that is posted many times: to post it again costs
 * less than to post another one, and does not allocate.
 *
 * @param [in]  ep       As in @ref uct_trig_ep_put.
 * @param [in]  put      What to write; copied.
 * @param [in]  deferred What then; copied. The threshold is not looked at, nor
 *                       is @a is_due.
 * @param [out] op_p     The operation, not posted, which has no entry; written
 *                       on success only.
 *
 * @return As @ref uct_trig_ep_put.
 *
 * Ownership: the caller destroys the operation; source, regions and counters
 *            must live until then. @a ep may go before. The interface
 *            destroys, with a warning, what is left when it is closed.
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_op_create_put(uct_ep_h ep, const uct_trig_put_t *put,
                                    const uct_trig_deferred_t *deferred,
                                    uct_trig_op_h *op_p);


/**
 * Describe a deferred atomic addition that is posted many times, as @ref
 * uct_trig_op_create_put does a put.
 *
 * @param [in]  ep       As in @ref uct_trig_ep_atomic_add64.
 * @param [in]  atomic   What to add, and where; copied.
 * @param [in]  deferred As in @ref uct_trig_op_create_put.
 * @param [out] op_p     The operation, not posted; written on success only.
 *
 * @return As @ref uct_trig_ep_atomic_add64.
 *
 * Ownership: as @ref uct_trig_op_create_put.
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_op_create_add64(uct_ep_h ep,
                                      const uct_trig_atomic_t *atomic,
                                      const uct_trig_deferred_t *deferred,
                                      uct_trig_op_h *op_p);


/**
 * Post an operation. It is over when its done() is called, and may be posted
 * again from there on. It has an entry until then.
 *
 * @param [in] op        The operation.
 * @param [in] threshold Fires when the trigger counter is >= this.
 * @param [in] offset    Bytes to add to the destination of a put; 0 for an
 *                       atomic.
 * @param [in] is_due    As in @ref uct_trig_deferred_t.
 *
 * @return UCS_OK; with no effect: UCS_ERR_BUSY while it is posted, or since the
 *         provider has lost it; UCS_ERR_NO_RESOURCE if no entry is free, or the
 *         provider has no room now; UCS_ERR_INVALID_PARAM for a range outside
 *         the region; UCS_ERR_EXCEEDS_LIMIT for a threshold above max_count;
 *         UCS_ERR_IO_ERROR if the provider failed; why its endpoint, or its
 *         peer, has failed.
 *
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_op_post(uct_trig_op_h op, uint64_t threshold,
                              size_t offset, int is_due);


/**
 * Destroy an operation.
 *
 * @param [in] op The operation.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while it is posted.
 *
 * Threads: one thread at a time.
 */
ucs_status_t uct_trig_op_destroy(uct_trig_op_h op);

#ifdef __cplusplus
}
#endif

#endif
