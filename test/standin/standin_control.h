/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_control.h - what a stand-in for a GPU's runtime has for tests alone.
 * Each library has these functions; dlsym() tells them apart.
 */
#ifndef STANDIN_CONTROL_H_
#define STANDIN_CONTROL_H_

#include <stddef.h>
#include <stdint.h>

#define STANDIN_API __attribute__((visibility("default")))

/** A memory operation of a batch, of either runtime; fields of a flush or
 *  barrier are not used. */
typedef struct {
    uint32_t op;
    uint32_t op_flags;
    uint64_t address;
    uint64_t value;
    uint32_t flags;
    uint32_t reserved;
    uint64_t alias;
    uint64_t more;
} standin_batch_op_t;

/** An IPC handle of either runtime. */
typedef struct {
    char reserved[64];
} standin_handle_t;

/** What the runtime was asked for since the process began. */
typedef struct {
    unsigned long calls;      /**< Of the runtime, all together */
    unsigned long writes;     /**< Also those in batches */
    unsigned long barriers;   /**< Of these, behind all that came before */
    unsigned long waits;      /**< Also those in batches */
    unsigned long batches;
    unsigned long copies;
    unsigned long pageable;   /**< Copies that made the caller wait: of memory
                                   that is neither registered nor a device's */
    unsigned long registers;  /**< Calls that register memory */
    unsigned long kernels;
    unsigned long modules;    /**< That were loaded */
    unsigned long host_funcs; /**< Callbacks, too */
    unsigned long full;       /**< Calls that waited for room in a queue */
    unsigned long opens;      /**< IPC handles, with success */
    unsigned long closes;     /**< The same */
    unsigned long held;       /**< By standin_hold() */
} standin_counts_t;

/** How a device's memory is kept from the host. */
enum {
    STANDIN_PROTECT_NONE,   /**< It is not: STANDIN_PROTECT=0 */
    STANDIN_PROTECT_WINDOW, /**< It is while no kernel runs */
    STANDIN_PROTECT_KEYS    /**< It is, by the processor's protection keys */
};

/** All are 0 on a GPU, which HIP over CUDA's driver may have below it. */
STANDIN_API void standin_counts(standin_counts_t *counts);

/** Of HIP over CUDA's driver only: whether that is a GPU's, not the
 *  stand-in. */
STANDIN_API int standin_is_real(void);

STANDIN_API int standin_has_protection(void);

/** Where an emulated NIC of this process has device memory, as a real one has
 *  it by peer access: the application's address is refused. NULL: it is no
 *  device memory, or not all of it. Valid until the memory is freed. */
STANDIN_API void *standin_dma(const void *address, size_t size);

/** From now on every call that needs the device fails; what its streams have
 *  not done is dropped. */
STANDIN_API void standin_lose_device(int device);

/** From now on a hardware queue has room for so many calls, and one that finds
 *  none waits; 0: for any number. STANDIN_DEPTH, at any time. */
STANDIN_API void standin_set_depth(unsigned depth);

/** Whether waits are for signal memory only: STANDIN_SIGNAL, at any time. */
STANDIN_API void standin_set_signal(int is_signal);

/** What standin_hold() holds. */
enum {
    STANDIN_HOLD_REGISTER = 1, /**< Calls that register memory */
    STANDIN_HOLD_OPEN     = 2, /**< Calls that open an IPC handle */
    STANDIN_HOLD_COPY     = 4  /**< Streams, before a copy */
};

/** From now on these are held until a call does not name them. */
STANDIN_API void standin_hold(unsigned what);

/** Have calls with a stream fail with an error, which they do at once: after
 *  @a skip of them the next @a count. */
STANDIN_API void standin_fail_calls(unsigned skip, unsigned count, int error);

#endif
