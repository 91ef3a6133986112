/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_gpu.h - streams of GPUs, over a table of the runtime's functions.
 *
 * CUDA's driver and HIP have nearly the same functions: those of one shape are
 * in gstream_gpu_calls_t, found by their names; where the two differ is what
 * gstream_cuda.c and gstream_hip.c give. Nothing of a runtime is needed to
 * build, and a runtime is opened when it is first needed.
 */
#ifndef GSTREAM_GPU_H_
#define GSTREAM_GPU_H_

#include "gstream.h"
#include "api/ucs_gstream_ipc.h"

#include <stddef.h>
#include <stdint.h>

/** Results of both runtimes. */
enum {
    GSTREAM_GPU_OK            = 0,
    GSTREAM_GPU_INVALID       = 1,
    GSTREAM_GPU_NO_MEMORY     = 2,
    GSTREAM_GPU_NO_DEVICE     = 100,
    GSTREAM_GPU_NOT_READY     = 600,
    GSTREAM_GPU_PEER_ENABLED  = 704, /**< It is, already */
    GSTREAM_GPU_NOT_SUPPORTED = 801,
    GSTREAM_GPU_CAPTURE_FIRST = 900,
    GSTREAM_GPU_CAPTURE_LAST  = 909
};

/** Attributes of devices: that the host reaches managed memory while they work,
 *  and others. */
enum {
    GSTREAM_GPU_CONCURRENT_CUDA = 89,
    GSTREAM_GPU_CONCURRENT_HIP  = 9,
    GSTREAM_GPU_THREADS_CUDA    = 1,  /**< Of a block, at most */
    GSTREAM_GPU_THREADS_HIP     = 56,
    GSTREAM_GPU_PROCESSORS_CUDA = 16, /**< That run blocks */
    GSTREAM_GPU_PROCESSORS_HIP  = 63
};

/** Attributes of pointers, of both runtimes. */
enum {
    GSTREAM_GPU_POINTER_TYPE    = 2,
    GSTREAM_GPU_POINTER_DEVICE  = 3, /**< Its address for the device */
    GSTREAM_GPU_POINTER_MANAGED = 8,
    GSTREAM_GPU_POINTER_ORDINAL = 9
};

/** Operations of a batch, and flags; of both runtimes. */
enum {
    GSTREAM_GPU_OP_WAIT32       = 1,
    GSTREAM_GPU_OP_WRITE32      = 2,
    GSTREAM_GPU_OP_WAIT64       = 4,
    GSTREAM_GPU_OP_WRITE64      = 5,
    GSTREAM_GPU_WAIT_GEQ        = 0, /**< The next two: ucs_gstream_cmp_t */
    GSTREAM_GPU_WAIT_FLUSH      = 1 << 30,
    GSTREAM_GPU_REGISTER_ALL    = 1, /**< For all contexts */
    GSTREAM_GPU_REGISTER_MAP    = 2,
    GSTREAM_GPU_NON_BLOCKING    = 1, /**< Of a stream: apart from the default
                                          one */
    GSTREAM_GPU_NO_TIMING       = 2  /**< Of an event */
};


/** How a thread lets captures forbid calls of its: not at all */
#define GSTREAM_GPU_CAPTURE_RELAXED 2


/** Flags that runtimes or versions have other numbers for; 0: there is none. */
typedef enum gstream_gpu_flag {
    GSTREAM_GPU_REGISTER_IO, /**< The memory is registers of a device */
    GSTREAM_GPU_IPC_PEER,    /**< Let devices reach each other when memory is
                                  opened */
    GSTREAM_GPU_NO_BARRIER,  /**< Of a store: not behind all that the stream did
                                  before, for the whole system */
    GSTREAM_GPU_FLAG_LAST
} gstream_gpu_flag_t;


/** Handles of default streams are 0 to this one, of both runtimes. */
#define GSTREAM_GPU_LAST_DEFAULT 2


/** One operation of a batch: a union of this size in both runtimes. */
typedef struct gstream_gpu_op {
    uint32_t operation;
    uint64_t address; /**< The device's */
    uint64_t value;
    uint32_t flags;
    uint64_t alias;   /**< The driver's */
    uint64_t pad;
} gstream_gpu_op_t;


/** A handle that names an allocation to other processes: hipIpcMemHandle_t and
 *  CUipcMemHandle, which are passed by value. */
typedef struct gstream_gpu_ipc_handle {
    uint8_t bytes[UCS_GSTREAM_IPC_HANDLE];
} gstream_gpu_ipc_handle_t;


/** Functions for memory of other processes, and for telling devices; as the
 *  next ones. */
typedef struct gstream_gpu_ipc_calls {
    int (*get_pci)(char *text, int length, int device);
    int (*get_uuid)(uint8_t *uuid, int device); /* 16 bytes; may be NULL */
    int (*can_access)(int *can_p, int device, int peer);
    int (*get_allocation)(uint64_t *start_p, size_t *length_p,
                          uint64_t address);
    int (*get_handle)(gstream_gpu_ipc_handle_t *handle, uint64_t address);
    int (*open)(uint64_t *address_p, gstream_gpu_ipc_handle_t handle,
                unsigned flags);
    int (*close)(uint64_t address);
} gstream_gpu_ipc_calls_t;


/** Functions of one shape in both runtimes; they return a result of theirs.
 *  Those with a remark may be NULL. */
typedef struct gstream_gpu_calls {
    int (*init)(unsigned flags);
    int (*get_version)(int *version_p);
    int (*get_count)(int *count_p);
    int (*get_attribute)(int *value_p, int attribute, int device);
    int (*create)(void **stream_p, unsigned flags, int priority);
    int (*destroy)(void *stream);
    int (*get_range)(int *least_p, int *greatest_p);
    int (*write64)(void *stream, uint64_t address, uint64_t value,
                   unsigned flags);
    int (*write32)(void *stream, uint64_t address, uint32_t value,
                   unsigned flags);
    int (*batch)(void *stream, unsigned count, gstream_gpu_op_t *ops,
                 unsigned flags); /* Or NULL */
    int (*query)(void *stream);
    int (*synchronize)(void *stream);
    int (*event_create)(void **event_p, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*is_capturing)(void *stream, int *status_p);
    int (*exchange_mode)(int *mode_p); /* Or NULL: the thread's, for captures */
    int (*memory_register)(void *start, size_t length, unsigned flags);
    int (*memory_unregister)(void *start);
    int (*memory_device)(uint64_t *device_p, void *host, unsigned flags);
    int (*pointer)(void *value, int attribute, uint64_t address);
    int (*allocate)(uint64_t *address_p, size_t length);
    int (*load_module)(void **module_p, const void *image);
    int (*get_function)(void **function_p, void *module, const char *name);
    int (*launch_kernel)(void *function, unsigned grid_x, unsigned grid_y,
                         unsigned grid_z, unsigned block_x, unsigned block_y,
                         unsigned block_z, unsigned shared, void *stream,
                         void **params, void **extra);
    int (*last)(void);  /* The thread's last error. Or NULL: it has none */
    int (*clear)(void); /* The same, and forgets it; with `last` */
    gstream_gpu_ipc_calls_t ipc; /* One without a remark NULL: there is none
                                    of it */
    void *special[13]; /**< Functions that only this runtime's file calls */
} gstream_gpu_calls_t;


/** Names that a function may have. */
#define GSTREAM_GPU_MAX_NAMES 2


/** The place of a function in the table, and its names, the newest first. */
typedef struct gstream_gpu_name {
    size_t     offset;
    const char *names[GSTREAM_GPU_MAX_NAMES];
    int        is_optional;
} gstream_gpu_name_t;


typedef struct gstream_gpu gstream_gpu_t;


/** Where commands of a stream go: a CUcontext, or the number of a device. */
typedef struct gstream_gpu_place {
    void *context; /* CUDA's */
    int  device;
    int  mode;     /* the thread's before, for captures: gstream_gpu_relax() */
} gstream_gpu_place_t;


/** What the runtimes differ in. All are called with the runtime open. */
typedef struct gstream_gpu_ops {
    /** The place of an application's stream, or for NULL of a new one: the
     *  caller's current one. A result of the runtime. */
    int (*find_place)(const gstream_gpu_t *gpu, void *native,
                      gstream_gpu_place_t *place);

    /** A place on the device of another one that lasts: memory is registered
     *  there for all places. */
    int (*make_home)(const gstream_gpu_t *gpu, const gstream_gpu_place_t *place,
                     gstream_gpu_place_t *home);

    /** Make the place the caller's current one. `*last` is what leave() needs
     *  to restore. */
    int (*enter)(const gstream_gpu_t *gpu, const gstream_gpu_place_t *place,
                 gstream_gpu_place_t *last);
    void (*leave)(const gstream_gpu_t *gpu, const gstream_gpu_place_t *last);

    int (*wait64)(const gstream_gpu_t *gpu, void *native, uint64_t address,
                  uint64_t value, unsigned flags);
    int (*wait32)(const gstream_gpu_t *gpu, void *native, uint64_t address,
                  uint32_t value, unsigned flags);

    /** Enqueue a UCS_GSTREAM_CMD_COPY, not empty, or a UCS_GSTREAM_CMD_COPY2D
     *  of two rows or more. gstream_gpu_copy() calls it. */
    int (*copy)(const gstream_gpu_t *gpu, void *native,
                const ucs_gstream_cmd_t *cmd);

    /** Have kernels of the caller's current place reach another one's memory. A
     *  result of the runtime. */
    int (*enable_peer)(const gstream_gpu_t *gpu,
                       const gstream_gpu_place_t *peer);

    /** Enqueue gstream_gpu_run_func() with this argument. */
    int (*launch)(const gstream_gpu_t *gpu, void *native, void *arg);

    /** Load the library's kernels in the caller's current place. A result of
     *  the runtime; may fill in why it failed. */
    int (*load)(const gstream_gpu_t *gpu, void **module_p,
                char reason[UCS_GSTREAM_TEXT_MAX]);

    /** Whether a handle can be a stream of the runtime; any value. */
    int (*is_stream)(const gstream_gpu_t *gpu, void *handle);

    /** The number of a flag; 0 if there is none. */
    unsigned (*flag)(const gstream_gpu_t *gpu, gstream_gpu_flag_t flag);

    /** Whether memory type `type` of the runtime is in a device. */
    int (*is_device_type)(const gstream_gpu_t *gpu, int type);

    /** Name of a result. */
    const char *(*result_name)(const gstream_gpu_t *gpu, int result);

    /** Why a device has no memory operations of 64 bits, and what to set; NULL
     *  if it has them. */
    const char *(*check_device)(const gstream_gpu_t *gpu, int device);

    /** Try whether a stream, of a device that was found good and whose place is
     *  the caller's, waits for the words of this library; it may enqueue a wait
     *  that passes. UCS_ERR_UNSUPPORTED, with the reason logged, if not. */
    ucs_status_t (*try_wait)(const gstream_gpu_t *gpu, void *native,
                             int device);

    /** Flags of waits, so that what others wrote to a device's memory is
     *  visible behind them. */
    unsigned (*wait_flags)(const gstream_gpu_t *gpu, int device);

    /** As ucs_gstream_memory_remote_fault() */
    const char *(*check_remote)(const gstream_gpu_t *gpu, int device,
                                int is_written);

    /** As ucs_gstream_memory_kernel_fault() */
    const char *(*check_kernel)(const gstream_gpu_t *gpu, int device);
} gstream_gpu_ops_t;


/** A runtime. Constant but for what opening it finds, which is written once
 *  under the lock of gstream_gpu.c before `is_open` is stored. */
struct gstream_gpu {
    ucs_gstream_type_t       type;
    const char               *name;
    const char *const        *libraries; /* NULL behind the last */
    int                      is_off;     /* by configure: never opened */
    int                      has_kernels; /* of this library to wait by, as its
                                own waits are kernels, too, one a word */
    const gstream_gpu_name_t *names;
    size_t                   num_names;
    const gstream_gpu_ops_t  *ops;
    const char               *queues_name; /* variable of the environment that
                                says how many hardware queues a device has */
    unsigned                 num_queues;   /* without it */

    gstream_gpu_calls_t      calls;
    char                     library[UCS_GSTREAM_TEXT_MAX]; /* where found */
    int                      version;
    int                      num_devices;
    char                     reason[UCS_GSTREAM_TEXT_MAX]; /* why it cannot be
                                used; empty if it can */
    int                      is_open;   /* atomic: `calls` is complete */
    int                      is_forked; /* in a child of the process that has
                                           opened it: nothing is called */
    int                      is_useless;/* it is there, and finds no device; as
                                           the next one under the lock */
    uint64_t                 loads;     /* libraries that had been loaded when
                                           it was looked for */
    gstream_gpu_place_t      home;      /* of registered memory; written once
                                           under the lock, before the first
                                           stream is there */
    int                      has_home;
};

extern gstream_gpu_t gstream_cuda;
extern gstream_gpu_t gstream_hip;

extern const gstream_ops_t gstream_cuda_ops;
extern const gstream_ops_t gstream_hip_ops;

/** Run a function of a stream; called by a thread of the runtime. The argument
 *  is gone then, which free() otherwise releases. */
void gstream_gpu_run_func(void *arg);

/** Open a runtime, once: with `is_loaded` only if the process has loaded it.
 *  NULL if it cannot be used; `reason` says why, if the runtime is there. */
const gstream_gpu_t *gstream_gpu_open(ucs_gstream_type_t type, int is_loaded);

/** Say, where a place is the caller's current one, that the calls to come are
 *  for no graph: of memory, and of streams that are not captured. While another
 *  stream is, of whichever thread, they fail and spoil that capture, unless the
 *  thread's mode is GSTREAM_GPU_CAPTURE_RELAXED. */
void gstream_gpu_relax(const gstream_gpu_t *gpu, gstream_gpu_place_t *last);

/** Make a place the caller's current one for such calls. A result of the
 *  runtime. */
int gstream_gpu_begin(const gstream_gpu_t *gpu,
                      const gstream_gpu_place_t *place,
                      gstream_gpu_place_t *last);

/** Undo both. */
void gstream_gpu_end(const gstream_gpu_t *gpu, gstream_gpu_place_t *last);

/** Enqueue a copy that is not empty: one row, whose pitch may be anything, as a
 *  plain copy. A result of the runtime. */
int gstream_gpu_copy(const gstream_gpu_t *gpu, void *native,
                     const ucs_gstream_cmd_t *cmd);

/** As gstream_gpu_status(), of such a copy. */
ucs_status_t gstream_gpu_copy_status(const gstream_gpu_t *gpu, int result,
                                     const ucs_gstream_cmd_t *cmd);

/** Whether a copy is between two places of the host's memory, so that a host
 *  function does it: the runtime would do it at once, or wait for the stream.
 *  Refused, with the reason logged, where it would block the caller for memory
 *  that is not pinned. */
ucs_status_t gstream_gpu_check_copy(const gstream_gpu_t *gpu,
                                    const ucs_gstream_cmd_t *cmd,
                                    int *is_host_p);

/** Fill in what a runtime says of itself; UCS_ERR_UNSUPPORTED, with the reason,
 *  if it cannot be used. */
ucs_status_t gstream_gpu_query_type(ucs_gstream_type_t type,
                                    ucs_gstream_type_attr_t *attr);

/** ucs_gstream_detect(), for a handle that is not a stream of this library. */
ucs_status_t gstream_gpu_detect(void *handle, ucs_gstream_type_t *type_p);

/** Have memory be registered at the device of a stream, if it is the first one
 *  of the runtime. */
ucs_status_t gstream_gpu_set_home(ucs_gstream_type_t type,
                                  const gstream_gpu_place_t *place);

/** Register memory of the host, or registers of a device, with a runtime; the
 *  device's address goes to `*device_p` on success. A result of the runtime;
 *  the reason of a failure is logged. */
int gstream_gpu_register(const gstream_gpu_t *gpu, void *start, size_t length,
                         int is_io, uint64_t *device_p);

/** Whether a runtime knows an address; its type of memory, and whether that is
 *  managed, if it does. */
int gstream_gpu_knows(const gstream_gpu_t *gpu, const void *address,
                      int *type_p, int *is_managed_p);

/** Where the current device has a byte that the runtime knows; 0 if it has it
 *  nowhere. */
uint64_t gstream_gpu_address(const gstream_gpu_t *gpu, const void *memory);

/** Whether the host reaches a device's managed memory while that works. */
int gstream_gpu_is_hosts(const gstream_gpu_t *gpu, int device);

/** Undo gstream_gpu_register(). */
void gstream_gpu_unregister(ucs_gstream_type_t type, void *start);

/** Copies of a stream that nobody waits for, under way at a time: far fewer
 *  than it has room for, as a call that finds none waits. */
#define GSTREAM_COPY_MAX 64

/** A device's stream for copies by the host. */
typedef struct gstream_copy_stream {
    void                *native; /* NULL: not there yet; atomic */
    gstream_gpu_place_t place;   /* constant once it is there */
    uint64_t            busy;    /* a bit for each of the events that a copy
                                    has; atomic */
    void                *events[GSTREAM_COPY_MAX]; /* NULL: not there yet; the
                                                      copy's that has it */
} gstream_copy_stream_t;

/** Find a device's stream, or make it. It stays. Any thread. */
ucs_status_t gstream_copy_get(const gstream_gpu_t *gpu, int device,
                              gstream_copy_stream_t **stream_p);

/** Ask whether such a stream is idle: UCS_OK; UCS_INPROGRESS; an error, logged,
 *  if it has failed. */
ucs_status_t gstream_copy_query(const gstream_gpu_t *gpu,
                                const gstream_copy_stream_t *stream);

/** A stream as one of those that share a device's hardware queues. */
typedef struct gstream_share {
    struct gstream_share *next;      /* As is_counted under a lock */
    const gstream_gpu_t  *gpu;       /* This and the next ones: by the caller */
    int                  device;
    void                 *native;
    uint64_t             *passed;    /* The last mark that it has come to */
    int                  is_counted; /* The first one of its stream */
    uint64_t             waits;      /* Calls with waits that it was given;
                                        atomic */
} gstream_share_t;

/** Count a stream while it is there. Warns, once a runtime, of more streams
 *  than its device has queues for. Any thread. */
void gstream_share_add(gstream_share_t *share);
void gstream_share_remove(gstream_share_t *share);

/** Whether all streams are known to have passed all waits. Any thread. */
int gstream_share_is_quiet(void);

/** A stream is about to be given waits: the number that it stores to `passed`
 *  behind them, or 0 if nobody asks for it. Waits while memory of another
 *  process is being closed. One thread a stream. */
uint64_t gstream_ipc_begin_waits(gstream_share_t *share);

/** Whether a call of ours succeeded. If not, the application does not see that
 *  when it asks for its last error; an error of its own it still sees. */
static inline int gstream_gpu_is_ok(const gstream_gpu_t *gpu, int result)
{
    if ((result != GSTREAM_GPU_OK) && (gpu->calls.last != NULL) &&
        (gpu->calls.last() == result)) {
        (void)gpu->calls.clear();
    }
    return result == GSTREAM_GPU_OK;
}

/** Whether a call of ours failed as a capture forbids it, of this stream or of
 *  another one. */
static inline int gstream_gpu_is_capture(int result)
{
    return (result >= GSTREAM_GPU_CAPTURE_FIRST) &&
           (result <= GSTREAM_GPU_CAPTURE_LAST);
}

/** Log a result of a runtime, as an error: "HIP: <what>: <name>"; UCS_OK for
 *  success, and else the status that it stands for. */
ucs_status_t gstream_gpu_status(const gstream_gpu_t *gpu, int result,
                                const char *what);

#endif
