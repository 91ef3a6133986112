/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin.h - what the stand-ins of GPU runtimes have in common.
 *
 * standin.c         settings, devices, contexts, entry to a call
 * standin_stream.c  streams, hardware queues, capture
 * standin_enqueue.c what is put into streams
 * standin_event.c   events
 * standin_cmd.c     what a queue's thread does for each command
 * standin_module.c  modules, and kernels that run on threads
 * standin_mem.c     device memory, pinned and registered memory, IPC handles
 * standin_cuda.c    the names of CUDA's driver, with standin_cuda_mem.c
 * standin_hip.c     the names of HIP's runtime, with standin_hip_mem.c
 *
 * One lock protects all. A call of a runtime takes it by standin_enter() or a
 * relative of that, and gives it back by standin_leave(). A queue's thread
 * gives it back for the time of a delay, a sleep, a copy, a kernel or a host
 * function.
 */
#ifndef STANDIN_H_
#define STANDIN_H_

#include "standin_control.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Both runtimes have these numbers, but for the exceptions named */
enum {
    STANDIN_OK                  = 0,
    STANDIN_ERR_INVALID         = 1,
    STANDIN_ERR_NO_MEMORY       = 2,
    STANDIN_ERR_NOT_INITIALIZED = 3,
    STANDIN_ERR_NO_DEVICE       = 100,
    STANDIN_ERR_BAD_DEVICE      = 101,
    STANDIN_ERR_CONTEXT         = 201,
    STANDIN_ERR_MAP             = 205,
    STANDIN_ERR_IMAGE           = 200,
    STANDIN_ERR_NO_BINARY       = 209,
    STANDIN_ERR_NO_PEER         = 217,
    STANDIN_ERR_PTX             = 218,
    STANDIN_ERR_HANDLE          = 400,
    STANDIN_ERR_STATE           = 401,
    STANDIN_ERR_NOT_FOUND       = 500,
    STANDIN_ERR_NOT_READY       = 600,
    STANDIN_ERR_ADDRESS         = 700,
    STANDIN_ERR_PEER_ENABLED    = 704,
    STANDIN_ERR_REGISTERED      = 712,
    STANDIN_ERR_NOT_REGISTERED  = 713,
    STANDIN_ERR_LOST            = 719,
    STANDIN_ERR_NOT_PERMITTED   = 800, /* CUDA only */
    STANDIN_ERR_UNSUPPORTED     = 801,
    STANDIN_ERR_CAPTURE         = 900,
    STANDIN_ERR_INVALIDATED     = 901,
    STANDIN_ERR_UNMATCHED       = 903,
    STANDIN_ERR_ISOLATION       = 905,
    STANDIN_ERR_IMPLICIT        = 906,
    STANDIN_ERR_CAPTURED        = 907
};

/* Versions from which on something is there, or is otherwise */
#define STANDIN_CUDA_11_3 11030
#define STANDIN_CUDA_11_7 11070
#define STANDIN_CUDA_12   12000
#define STANDIN_HIP_5_1   50100000
#define STANDIN_HIP_5_2   50200000
#define STANDIN_HIP_5_3   50300000
#define STANDIN_HIP_5_6   50600000
#define STANDIN_HIP_6     60000000
#define STANDIN_HIP_6_1   60100000
#define STANDIN_HIP_6_2   60200000
#define STANDIN_HIP_6_4   60400000
#define STANDIN_HIP_7     70000000
#define STANDIN_HIP_7_2   70200000

/* Where the runtimes differ */
typedef struct {
    const char *name;
    int        is_hip;         /* A thread has a device, not a context, and
                                * the first call initialises */
    int        version;        /* Unless STANDIN_VERSION says otherwise */
    int        callback_error; /* Of a call by a host function */
    const char *queues_name;   /* Variable with the number of hardware queues */
    int        queues;         /* Of them, without that variable */
} standin_kind_t;

typedef struct {
    int          devices;
    int          version;
    int          memops;   /* 0, 1, or -1: as the version has them */
    int          queues;   /* Hardware queues a device */
    int          offset;   /* Registered memory has an address of its own */
    int          iomemory; /* Memory of devices can be registered */
    int          peer;     /* Devices reach each other */
    int          signal;   /* Waits are for signal memory only */
    int          mig;      /* Devices share a PCI address */
    int          managed;  /* The host reaches managed memory at all times */
    int          ordered;  /* Devices keep remote writes in order */
    int          dmabuf;   /* Device memory has a file descriptor */
    int          protect;
    int          modules;  /* Are loaded */
    int          sm;       /* CUDA: what devices are, 90 for sm_90 */
    int          ipc;      /* Memory has handles for other processes */
    int          turns;    /* File whose lock is a process's turn; -1: none */
    unsigned     sms;      /* Blocks that run at the same time; 0: any number */
    unsigned     depth;    /* Calls in a hardware queue; 0: any number */
    unsigned     delay_us; /* Longest delay before a command */
    unsigned     seed;
    size_t       memory;   /* Bytes a device has; 0: no limit */
} standin_settings_t;

/* Calls that fail as a test has said */
typedef struct {
    unsigned skip;
    unsigned count;
    int      error;
} standin_fail_t;

#define STANDIN_MAX_DEVICES 16
#define STANDIN_MAX_PITCH   2147483647
#define STANDIN_MAX_THREADS 4 /* Of a block: each is a thread here */
#define STANDIN_PROCESSORS  4
#define STANDIN_MAX_QUEUES  32

typedef struct standin_cmd    standin_cmd_t;
typedef struct standin_ctx    standin_ctx_t;
typedef struct standin_event  standin_event_t;
typedef struct standin_graph  standin_graph_t;
typedef struct standin_func   standin_func_t;
typedef struct standin_module standin_module_t;
typedef struct standin_queue  standin_queue_t;
typedef struct standin_range  standin_range_t;
typedef struct standin_stream standin_stream_t;

typedef struct {
    int             error; /* Not 0: the device is lost */
    size_t          used;
    unsigned        peers; /* Bits of the devices that it may reach */
    unsigned        blocked; /* Kernels and copies that wait for room */
    unsigned        closing; /* Calls that close IPC handles */
    unsigned        resident; /* Blocks that run */
    standin_ctx_t   *primary;
    unsigned        primary_refs;
    standin_queue_t *queues[STANDIN_MAX_QUEUES];
} standin_device_t;

struct standin_ctx {
    standin_ctx_t    *next;
    int              device;
    standin_stream_t *legacy; /* Default stream */
};

/* Values of standin_stream_t::kind */
enum {
    STANDIN_STREAM_BLOCKING, /* In order with the legacy default stream */
    STANDIN_STREAM_NON_BLOCKING,
    STANDIN_STREAM_LEGACY,
    STANDIN_STREAM_THREAD    /* Default stream of a thread, blocking */
};

/* Values of standin_stream_t::capture, numbers of the runtimes */
enum {
    STANDIN_CAPTURE_NONE,
    STANDIN_CAPTURE_ACTIVE,
    STANDIN_CAPTURE_INVALIDATED
};

/* A stream is in the list until it is destroyed, and lives as long as commands
 * and events hold it. Its commands are numbered from 1. */
struct standin_stream {
    standin_stream_t *next;
    standin_ctx_t    *ctx;
    standin_queue_t  *queue;
    int              device;
    unsigned         refs;
    int              kind;
    int              priority;
    int              is_dead; /* Its context is gone: nothing runs any more */
    uint64_t         owner;   /* Number of the thread */
    uint64_t         enqueued;
    uint64_t         done;
    unsigned         blocked; /* Calls that wait for room */
    int              capture;
    int              capture_mode;
    uint64_t         capture_owner; /* Number of the thread that began it */
    size_t           nodes;   /* Commands captured */
};

struct standin_graph {
    size_t nodes;
};

/* Values of standin_range_t::kind */
enum {
    STANDIN_DEVICE,
    STANDIN_PINNED,     /* The host's, by the runtime */
    STANDIN_SIGNAL,     /* The same, by hipExtMallocWithFlags() */
    STANDIN_MANAGED,    /* The same; called a device's */
    STANDIN_REGISTERED, /* The host's, by the application */
    STANDIN_IPC         /* Device memory of another process */
};

/* Memory that streams may use. A pointer into it is found by the address that
 * the host has or by the device's. */
struct standin_range {
    standin_range_t *next;
    int             kind;
    int             is_io;
    uint64_t        dev;
    uint64_t        host;   /* 0: none */
    char            *inner; /* Where the runtime's own threads have it */
    size_t          size;
    size_t          mapped; /* Bytes of its mappings */
    int             device;
    standin_ctx_t   *ctx;
    unsigned        flags;
    unsigned        users;  /* Commands that are at work in it */
    unsigned        opens;  /* IPC handle: how often */
    int             fd;     /* Of device memory, else -1 */
    uint64_t        id;
    uint64_t        inode;
};

/* Values of standin_op_t::op, numbers of both runtimes */
enum {
    STANDIN_OP_WAIT32  = 1,
    STANDIN_OP_WRITE32 = 2,
    STANDIN_OP_FLUSH   = 3,
    STANDIN_OP_WAIT64  = 4,
    STANDIN_OP_WRITE64 = 5,
    STANDIN_OP_BARRIER = 6
};

/* A memory operation */
typedef struct {
    int      op;
    unsigned flags;
    uint64_t address;
    uint64_t value;
    uint64_t mask;
} standin_op_t;

/* Flags of a wait */
#define STANDIN_WAIT_GEQ   0u
#define STANDIN_WAIT_EQ    1u
#define STANDIN_WAIT_AND   2u
#define STANDIN_WAIT_NOR   3u
#define STANDIN_WAIT_FLUSH (1u << 30)

/* A copy of rows. An address is of the host or a device; one that is known has
 * to be in a range. */
typedef struct {
    uint64_t dst, src;
    size_t   dpitch, spitch;
    size_t   width, height;
    int      is_dst_known, is_src_known;
} standin_copy_t;

typedef struct {
    uint64_t dst;
    size_t   size;
    uint8_t  value;
} standin_fill_t;

/* Of a runtime's IPC handle, which has 64 bytes */
typedef struct {
    uint64_t magic;
    uint64_t inode;
    uint64_t size;
    uint64_t offset; /* Of the pointer in its allocation */
    int      pid;
    int      fd;
    int      device;
    int      reserved[5];
} standin_ipc_t;

/* Answers about a pointer; what all commands need of one */
typedef struct {
    int           kind;
    int           device;
    unsigned      flags;
    standin_ctx_t *ctx;
    uint64_t      dev;   /* Of the pointer itself */
    uint64_t      host;  /* 0: none */
    uint64_t      start; /* Of the device's addresses of its range */
    uint64_t      size;
    uint64_t      id;
} standin_info_t;

/* Values of standin_cmd_t::type */
enum {
    STANDIN_CMD_OPS,
    STANDIN_CMD_COPY,
    STANDIN_CMD_FILL,
    STANDIN_CMD_KERNEL,
    STANDIN_CMD_HOST,     /* Called only while the device is well */
    STANDIN_CMD_CALLBACK, /* Called in any case, with the result */
    STANDIN_CMD_RECORD,
    STANDIN_CMD_AFTER     /* Wait for another stream's command */
};

/* Values of standin_cmd_t::room: what a command takes until it is done */
enum {
    STANDIN_ROOM_NONE,   /* A host function */
    STANDIN_ROOM_CALL,
    STANDIN_ROOM_CHANGE  /* The same, and of what host functions leave */
};

typedef void (*standin_host_func_t)(void *arg);
typedef void (*standin_callback_t)(void *stream, int status, void *arg);

struct standin_cmd {
    standin_cmd_t    *next;
    standin_stream_t *stream;
    uint64_t         seq;
    int              type;
    int              room;
    union {
        standin_copy_t copy;
        standin_fill_t fill;
        size_t         op_count;
        struct {
            void (*func)(void *args);
            const standin_func_t *device; /* Or NULL: func */
            unsigned blocks;
            unsigned threads; /* Of a block */
        } kernel;
        struct {
            standin_host_func_t func;
            standin_callback_t  callback;
            void                *handle;
            void                *arg;
        } host;
        standin_event_t *event;
        struct {
            standin_stream_t *stream;
            uint64_t         seq;
        } after;
    };
    /* Operations or a kernel's arguments */
    _Alignas(max_align_t) char data[];
};

/* A kernel of a module */
struct standin_func {
    standin_func_t              *next; /* Of its module */
    const struct standin_kernel *kernel; /* Of standin_device.h */
    standin_ctx_t               *ctx;
    size_t                      size;  /* Of the argument, as the module says */
};

/* A launch */
typedef struct {
    void       (*func)(void *args); /* Or a function of a module */
    unsigned   blocks;
    unsigned   threads;
    const void *args;
    size_t     size;
} standin_launch_t;

/* A store to memory of a device, on its way */
typedef struct {
    uint64_t address;
    uint64_t value;
    size_t   size;
} standin_post_t;

#define STANDIN_MAX_POSTS 16

struct standin_queue {
    int            device;
    unsigned       streams; /* That share it */
    unsigned       length;  /* Commands that take room, not done */
    unsigned       changes; /* The same, behind a host function */
    int            has_thread;
    pthread_cond_t cond;
    standin_cmd_t  *head;
    standin_cmd_t  *tail;
    unsigned       rng;
    unsigned       post_count;
    standin_post_t posts[STANDIN_MAX_POSTS];
};

struct standin_event {
    standin_event_t  *next;
    standin_ctx_t    *ctx;
    int              device;
    int              has_time;
    int              is_captured;
    unsigned         refs;
    standin_stream_t *stream; /* Where it was recorded last; NULL: nowhere */
    uint64_t         seq;
    uint64_t         time_ns;
};


/* Given by each shim */
extern const standin_kind_t standin_kind;

extern standin_settings_t standin_set;
extern standin_device_t standin_devices[STANDIN_MAX_DEVICES];
extern standin_counts_t standin_count; /* Under the lock */
extern standin_fail_t standin_fail;    /* Likewise */
extern unsigned standin_holds;         /* Likewise, as standin_hold() says */
extern pthread_mutex_t standin_lock;
extern pthread_cond_t standin_done;    /* A command or the use of a range ended,
                                        * or a device was lost */
extern __thread int standin_in_callback;


/* standin.c */

/* Read the settings, once. */
void standin_settings(void);

/* Initialise; counts as a call. */
int standin_init(void);

/* The function ends with what a call returns that is not STANDIN_OK */
#define STANDIN_TRY(_call) \
    do { \
        int standin_err = (_call); \
        if (standin_err != STANDIN_OK) { \
            return standin_err; \
        } \
    } while (0)

/* A call begins: takes the lock if it returns STANDIN_OK. _ctx: with a context
 * that is current and whose device is well; _any: the same, but the device may
 * be lost (for what gives something back). */
int standin_enter(void);
int standin_enter_ctx(standin_ctx_t **ctx_p);
int standin_enter_any(standin_ctx_t **ctx_p);

/* Gives back the lock, and the error. */
int standin_leave(int err);

/* With the lock: wait as long as a test holds this. */
void standin_wait_held(unsigned what);

/* Contexts. A current context is of a thread. */
int standin_ctx_create(int device, void **handle);
int standin_ctx_destroy(void *handle);
int standin_ctx_retain(int device, void **handle);
int standin_ctx_release(int device);
int standin_ctx_push(void *handle);
int standin_ctx_pop(void **handle);
int standin_ctx_set(void *handle);
int standin_ctx_get(void **handle);
int standin_ctx_device(void *handle, int *device);

/* The current device of a thread, for HIP. */
int standin_device_set(int device);
int standin_device_get(int *device);

/* Whether there is that device. */
int standin_device_check(int device);

/* Whether the version that is played has what came with @a version. */
int standin_has_version(int version);

/* A function that dlsym() finds from a version on: the resolver decides. */
#define STANDIN_SINCE(_name, _func, _version) \
    __attribute__((used)) \
    static __typeof__(_func) *standin_resolve_##_name(void) \
    { \
        return standin_has_version(_version) ? _func : NULL; \
    } \
    __typeof__(_func) _name \
        __attribute__((ifunc("standin_resolve_" #_name)))

/* A function that dlsym() finds before a version. */
#define STANDIN_BEFORE(_name, _func, _version) \
    __attribute__((used)) \
    static __typeof__(_func) *standin_resolve_##_name(void) \
    { \
        return standin_has_version(_version) ? NULL : _func; \
    } \
    __typeof__(_func) _name \
        __attribute__((visibility("default"), \
                       ifunc("standin_resolve_" #_name)))

/* A call of CUDA that is one of what is common. */
#define CUDA(_name, _params, _result) \
    int _name _params \
    { \
        return _result; \
    }

/* An attribute of a table, and how long its value is. */
typedef struct {
    int        attribute;
    const void *value;
    size_t     size;
} standin_attribute_t;

#define STANDIN_INT(_attribute, _value) \
    {_attribute, &(const int){_value}, sizeof(int)}

/* Copy the value of an attribute of a table that ends with one whose value is
 * NULL. */
int standin_tell(const standin_attribute_t *table, int attribute, void *value);

/* A string of a table. */
typedef struct {
    int        err;
    const char *name;
} standin_name_t;

const char *standin_name(const standin_name_t *names, int err);

/* @a peer of the current device. */
int standin_peer_can(int device, int peer, int *can);
int standin_peer_enable(int peer);


/* standin_stream.c */

int standin_stream_create(int is_blocking, int priority, void **handle);
int standin_stream_destroy(void *handle);
int standin_stream_query(void *handle);
int standin_stream_sync(void *handle);
int standin_stream_ctx(void *handle, void **ctx);
int standin_stream_device(void *handle, int *device);
int standin_stream_priority(void *handle, int *priority);
int standin_stream_capture(void *handle, int *status);
int standin_ctx_sync(void);

int standin_capture_begin(void *handle, int mode);
int standin_capture_exchange(int *mode);
int standin_capture_end(void *handle, void **graph);

/* The rest is called with the lock. */

/* A call that captures may forbid: of this thread, or of another one */
int standin_capture_check(void);

/* Of a new context. */
int standin_stream_legacy(standin_ctx_t *ctx);

/* All streams and events of a context that ends. */
void standin_stream_end_ctx(standin_ctx_t *ctx);

/* The stream of a handle; a default stream is the context's or the thread's. */
int standin_stream_find(void *handle, standin_ctx_t *ctx,
                        standin_stream_t **stream_p);

/* The same, and waits while a call waits for room in that stream. */
int standin_stream_get(void *handle, standin_ctx_t *ctx,
                       standin_stream_t **stream_p);

/* Whether the device is lost, or what a test has said of the next call with a
 * stream; the lock is held. */
int standin_stream_fails(const standin_stream_t *stream);

/* A call with a stream begins: takes the lock if it returns STANDIN_OK. */
int standin_enter_stream(void *handle, standin_stream_t **stream_p);

/* A command that holds its stream, with @a size bytes of data; NULL: no
 * memory. */
standin_cmd_t *standin_cmd_new(standin_stream_t *stream, int type,
                               size_t size);

/* Wait while kernels or copies wait for room in a stream of a device. */
void standin_wait_launches(int device);

/* Wait while an IPC handle of a device is closed. */
void standin_wait_closing(int device);

/* Put a command into its stream, or free it. */
int standin_enqueue(standin_cmd_t *cmd);

/* Put a wait for another stream's command into a stream. */
int standin_push_after(standin_stream_t *stream, standin_stream_t *other,
                       uint64_t seq);

/* Put the waits that keep the order with the legacy default stream. */
int standin_push_order(standin_stream_t *stream);

/* Wait until a stream has done a command; the device's error, if any. */
int standin_wait(standin_stream_t *stream, uint64_t seq);

/* Wait until a device, or one context of it, has done what it has by now. */
int standin_stream_idle(int device, const standin_ctx_t *ctx);

void standin_stream_put(standin_stream_t *stream);

/* Wake all threads, to see that a device is lost. */
void standin_stream_wake(void);


/* standin_enqueue.c */

int standin_enqueue_ops(void *handle, const standin_op_t *ops, size_t count,
                        int is_batch);
int standin_enqueue_batch(void *handle, unsigned count,
                          standin_batch_op_t *ops, unsigned flags);
int standin_enqueue_copy(void *handle, standin_copy_t *copy,
                         int is_synchronous);
int standin_enqueue_fill(void *handle, const standin_fill_t *fill);
int standin_enqueue_kernel(void *handle, const standin_launch_t *launch);
/* The arguments of a launch, from its list of names and values. */
int standin_launch_args(void **extra, uintptr_t end, standin_launch_t *launch);
int standin_enqueue_host(void *handle, standin_host_func_t func,
                         standin_callback_t callback, void *arg);


/* standin_event.c */

int standin_event_create(int has_time, void **handle);
int standin_event_destroy(void *handle);
int standin_event_record(void *handle, void *stream);
int standin_event_query(void *handle);
int standin_event_sync(void *handle);
int standin_event_time(void *start, void *end, float *ms);
int standin_stream_wait_event(void *stream, void *handle);

/* With the lock. */
void standin_event_put(standin_event_t *event);

void standin_event_end_ctx(const standin_ctx_t *ctx);


/* standin_cmd.c */

/* Main function of a queue's thread. */
void *standin_queue_main(void *arg);

/* Do the stores that are on their way. */
void standin_queue_post(standin_queue_t *queue);

/* The rest is called with the lock. */

/* Whether nothing of a stream is to run any more */
int standin_is_over(const standin_stream_t *stream);

/* Room for a block of a stream's device; of what is over there is always some.
 */
void standin_sm_get(const standin_stream_t *stream);
void standin_sm_put(const standin_stream_t *stream);

/* Have the process's turn while a command runs; see standin_cmd.c. */
void standin_turn_get(void);
void standin_turn_put(void);

/* Between two looks at a word, without a turn; the lock is given back
 * meanwhile. */
void standin_pause(unsigned round);

/* A range that has these bytes, used, so that it stays while the lock is not
 * held; NULL: there is none, of which NULL is given back, too. */
standin_range_t *standin_use(uint64_t address, size_t size, int is_dev);
void standin_unuse(standin_range_t *range);

void standin_store(char *address, uint64_t value, size_t size);
uint64_t standin_load(const char *address, size_t size);

/* Give back what a command holds, and itself. */
void standin_cmd_free(standin_cmd_t *cmd);


/* standin_module.c */

int standin_module_load(void **handle, const void *image);
int standin_module_function(void **handle, void *module, const char *name);

/* The rest is called with the lock. */

/* The kernel of a handle that standin_module_function() gave, or NULL. */
const standin_func_t *standin_module_find(const void *handle);

/* Run a kernel of a module until its last thread ends; the lock is given back
 * meanwhile. */
void standin_kernel_run(const standin_cmd_t *cmd);


/* standin_mem.c */

int standin_mem_alloc(size_t size, int kind, unsigned flags, uint64_t *dev);
int standin_mem_free(uint64_t address, int is_host);
int standin_mem_register(void *host, size_t size, int is_io, unsigned flags);
int standin_mem_unregister(void *host);
int standin_mem_device_pointer(void *host, uint64_t *dev);
int standin_mem_info(uint64_t address, standin_info_t *info);
/* A file descriptor of whole pages of device memory. */
int standin_mem_export(uint64_t address, size_t size, int *fd);
/* The same of any part, and where that is in the descriptor. */
int standin_mem_share(uint64_t address, size_t size, int *fd, uint64_t *offset);
int standin_mem_ipc_get(uint64_t address, standin_ipc_t *handle);
int standin_mem_ipc_open(const standin_ipc_t *handle, uint64_t *dev);
int standin_mem_ipc_close(uint64_t address);

/* The rest is called with the lock. */

/* The range that has an address; by the device's address alone if @a is_dev. */
standin_range_t *standin_mem_find(uint64_t address, int is_dev);

/* Whether @a size bytes from an address on are in its range. */
int standin_mem_holds(const standin_range_t *range, uint64_t address,
                      size_t size);

/* An address as the runtime's own threads use it. */
char *standin_mem_inner(const standin_range_t *range, uint64_t address);

/* Of a context that ends. */
void standin_mem_end_ctx(standin_ctx_t *ctx);

/* A kernel runs on the calling thread: it may use the addresses of devices. */
void standin_mem_kernel_begin(void);
void standin_mem_kernel_end(void);

/* The calling thread is a queue's. */
void standin_mem_thread_begin(void);

#endif
