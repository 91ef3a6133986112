/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_intercept.h - what the transport asks of libfabric: refused on demand,
 * whatever the provider. The operations of the objects that it opens stand in
 * front of the provider's; what a provider does inside passes through.
 */
#ifndef FAB_INTERCEPT_H_
#define FAB_INTERCEPT_H_

#include <stddef.h>
#include <stdint.h>

/** Calls that may be refused. */
typedef enum fab_call {
    FAB_CALL_FABRIC,
    FAB_CALL_DOMAIN,
    FAB_CALL_CQ,
    FAB_CALL_AV,
    FAB_CALL_CNTR,
    FAB_CALL_EP,
    FAB_CALL_MR,
    FAB_CALL_BIND,
    FAB_CALL_ENABLE,
    FAB_CALL_GETWAIT,
    FAB_CALL_GETNAME,
    FAB_CALL_INSERT,
    FAB_CALL_SEND,
    FAB_CALL_RECV,
    FAB_CALL_WRITE,
    FAB_CALL_READ,
    FAB_CALL_QUEUE_WORK,
    FAB_CALL_CNTR_ADD,
    FAB_CALL_LAST
} fab_call_t;


/** Have call number `number` (from 0) from now on fail with -`code`; a negative
 *  number ends that. */
void fab_intercept_fail(int number, int code);

/** Have the next `count` calls of a kind fail with -`code`. */
void fab_intercept_fail_next(fab_call_t call, uint64_t count, int code);

/** How many of them are left. */
uint64_t fab_intercept_left(void);

/** Have all calls of a kind fail with -`code`; FAB_CALL_LAST ends that. */
void fab_intercept_fail_all(fab_call_t call, int code);

/** The same, but for the next `count`. */
void fab_intercept_fail_after(fab_call_t call, uint64_t count, int code);

/** Which call was refused; FAB_CALL_LAST: none so far. */
fab_call_t fab_intercept_failed(void);

/** Its name. */
const char *fab_intercept_name(fab_call_t call);

/** Where it was made: an address in the transport's code. */
const void *fab_intercept_failed_caller(void);

/** How often a call was made since fab_intercept_fail(). */
uint64_t fab_intercept_count(fab_call_t call);

/** Messages, writes and reads that were posted to a device's endpoints that are
 *  open. */
uint64_t fab_intercept_posted(const char *device);

/** Completion queues that are open and were never read. */
unsigned fab_intercept_unread_cqs(void);

/** Endpoints that are open and have one of some capabilities. */
unsigned fab_intercept_endpoints(uint64_t caps);

/** Have completion queues tell of nothing but this error; 0 ends that. */
void fab_intercept_break(int code);

/** Have what a queue tells in one call come in the opposite order, or not. */
void fab_intercept_reverse(int is_reversed);

/** The context of the deferred write that the transport queued last. */
void *fab_intercept_deferred_write(void);

/** Have the transport read from a completion queue, next, that an operation
 *  with this context has failed with `code`. */
void fab_intercept_report(void *context, int code);

/** A memory region as the transport wants it. */
typedef struct fab_region {
    const void *address;
    size_t     length;
    int        iface;  /**< enum fi_hmem_iface */
    int        device;
    uint64_t   flags;
    void       *desc;  /**< Of the region that it became */
} fab_region_t;


/**
 * Have domains that are opened from now on take memory of GPUs (FI_HMEM), and
 * want descriptors of it (FI_MR_HMEM). It is a stand-in: the provider is given
 * that memory as the host's.
 */
void fab_intercept_gpu_memory(int is_taken, int wants_desc);

/** The region that was registered last. */
fab_region_t fab_intercept_region(void);

/** The descriptor of the first piece of what fi_writemsg() was given last. */
void *fab_intercept_write_desc(void);

/** Objects that were opened and not closed. */
int64_t fab_intercept_open(void);

#endif
