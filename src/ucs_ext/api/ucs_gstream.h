/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucs_gstream.h - one interface to host, HIP and CUDA streams.
 *
 * A stream runs commands one after the other in the order in which they were
 * enqueued (FIFO). Commands are plain functions, kernels (functions with their
 * arguments copied in), stores, waits for words and copies.
 * Enqueueing never waits for the stream.
 *
 * The commands of a host stream are run by a thread of this process: by one of
 * its own, or by the threads of a group (ucs_gstream_group.h). Such a thread
 * yields for a short time when it has nothing to do, and then sleeps.
 */
#ifndef UCS_GSTREAM_H_
#define UCS_GSTREAM_H_

#include <ucs_gstream_group.h>
#include <ucs_gstream_word.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest arguments of a kernel, in bytes. */
#define UCS_GSTREAM_ARGS_MAX 4096

/** Most words that one command waits for. */
#define UCS_GSTREAM_WORDS_MAX 256


/** A stream. Created by @ref ucs_gstream_create. */
typedef struct ucs_gstream *ucs_gstream_h;


/** What executes the commands of a stream. */
typedef enum {
    UCS_GSTREAM_TYPE_HOST, /**< Threads of this process */
    UCS_GSTREAM_TYPE_HIP,  /**< A hipStream_t of the application */
    UCS_GSTREAM_TYPE_CUDA, /**< A cudaStream_t of the application */
    UCS_GSTREAM_TYPE_LAST
} ucs_gstream_type_t;


/** Fields of @ref ucs_gstream_params_t that are set. */
enum ucs_gstream_params_field {
    UCS_GSTREAM_PARAM_FIELD_TYPE     = 1u << 0,
    UCS_GSTREAM_PARAM_FIELD_NATIVE   = 1u << 1,
    UCS_GSTREAM_PARAM_FIELD_GROUP    = 1u << 2,
    UCS_GSTREAM_PARAM_FIELD_PRIORITY = 1u << 3,
    UCS_GSTREAM_PARAM_FIELD_CPUS     = 1u << 4
};


/** Parameters of @ref ucs_gstream_create. */
typedef struct ucs_gstream_params {
    /** Mask of @ref ucs_gstream_params_field; other fields are ignored. */
    uint64_t            field_mask;
    /** What executes the commands; host if not set. */
    ucs_gstream_type_t  type;
    /** The application's hipStream_t, cudaStream_t or CUstream, which may be a
     *  default stream (NULL, or the runtime's two other handles), and then is
     *  that of the context or device that is the caller's current one; the
     *  one of each thread is used by the thread that has created this alone.
     *  It outlives the stream. If not set, a stream of the runtime is made at
     *  the caller's current device, apart from the default stream. Not used by
     *  host streams. */
    void                *native;
    /** Whose threads run a host stream; a thread of its own if not set. */
    ucs_gstream_group_h group;
    /** Of a host stream, in the range of @ref ucs_gstream_priority_range; 0 if
     *  not set. It orders streams of a group; a stream with a thread of its own
     *  has the same whatever it is, as the kernel schedules that thread. Of a
     *  stream that is made in a runtime, by its rules. Not with @a native. */
    int                 priority;
    /** The thread of a host stream's own runs on one of these processors, of
     *  which those are ignored that the process cannot use; where the caller
     *  may if not set. Not with a group, whose threads have theirs. */
    ucs_gstream_cpus_t  cpus;
} ucs_gstream_params_t;


/** A function that a stream runs. */
typedef void (*ucs_gstream_func_t)(void *arg);


/** Kinds of stream commands. */
typedef enum {
    UCS_GSTREAM_CMD_FUNC,    /**< Run a host function */
    UCS_GSTREAM_CMD_WRITE64, /**< Store a 64-bit word */
    UCS_GSTREAM_CMD_WAIT64,  /**< Wait until a 64-bit word is >= a value */
    UCS_GSTREAM_CMD_COPY,    /**< Copy bytes */
    UCS_GSTREAM_CMD_HELP64,  /**< As WAIT64, and help meanwhile */
    UCS_GSTREAM_CMD_WRITE32, /**< Store a 32-bit word */
    UCS_GSTREAM_CMD_WAIT32,  /**< Wait until a 32-bit word has a value */
    UCS_GSTREAM_CMD_LAUNCH,  /**< Run a host function on a copy of its
                                  arguments */
    UCS_GSTREAM_CMD_WAITALL, /**< As a WAIT64 or HELP64 for each of several
                                  words */
    UCS_GSTREAM_CMD_COPY2D,  /**< Copy rows of bytes */
    UCS_GSTREAM_CMD_PAIRS,   /**< The library's own, of streams of devices:
                                  start uses of pairs of streams */
    UCS_GSTREAM_CMD_MOVE     /**< The same: copy by a kernel, with a store
                                  behind it */
} ucs_gstream_cmd_type_t;


/** Longest distance from one row to the next, in bytes: what devices of CUDA
 *  take (CU_DEVICE_ATTRIBUTE_MAX_PITCH). */
#define UCS_GSTREAM_PITCH_MAX 2147483647


/** Rows of bytes that are copied, at equal distances on each side. */
typedef struct ucs_gstream_rect {
    size_t dst_pitch; /**< From one row to the next, in bytes: @a width to
                           UCS_GSTREAM_PITCH_MAX. Not looked at for one row */
    size_t src_pitch; /**< The same */
    size_t width;     /**< Bytes of a row; may be 0 */
    size_t height;    /**< How many rows; may be 0 */
} ucs_gstream_rect_t;


/**
 * What a thread sleeps on until it is notified, in memory that other processes
 * may have mapped. All bytes are 0 at first.
 */
typedef struct ucs_gstream_notify {
    uint32_t calls;    /**< Counts the notifications; a futex */
    uint32_t sleepers; /**< Threads that sleep on it, or are about to */
} ucs_gstream_notify_t;


/** When a helper is called. */
typedef enum {
    UCS_GSTREAM_HELP_POLL,  /**< The stream waits, and looks again soon */
    UCS_GSTREAM_HELP_SLEEP, /**< The stream sleeps until it is notified, if
                                the word is still too small after this */
    UCS_GSTREAM_HELP_PARK,  /**< The stream is of a group whose threads run
                                other streams or sleep, and are not notified:
                                it is woken by @ref ucs_gstream_wake alone */
    UCS_GSTREAM_HELP_END    /**< The word is large enough: the stream goes on */
} ucs_gstream_help_t;


/**
 * Makes progress of what the stream waits for: called by a host stream again
 * and again while a UCS_GSTREAM_CMD_HELP64 or UCS_GSTREAM_CMD_WAITALL of it
 * waits, also after each time that it slept, and then with
 * UCS_GSTREAM_HELP_END: once, or in a group once for each word that it had to
 * wait for. Not called at all if the words are large enough when the stream
 * comes to them.
 *
 * The function returns soon and calls no function of this header but
 * @ref ucs_gstream_wake and @ref ucs_gstream_notify.
 *
 * @param [in] arg  As in @ref ucs_gstream_helper_t.
 * @param [in] when What the stream does after this.
 *
 * @return With UCS_GSTREAM_HELP_POLL and UCS_GSTREAM_HELP_SLEEP, whether it has
 *         moved something, so that more can be expected soon: the time after
 *         which the stream sleeps starts anew. Streams of groups take no
 *         notice.
 */
typedef int (*ucs_gstream_help_func_t)(void *arg, ucs_gstream_help_t when);


/** What makes progress of something that a stream waits for. */
typedef struct ucs_gstream_helper {
    ucs_gstream_help_func_t func;    /**< What to call */
    void                    *arg;    /**< Passed to @a func */
    ucs_gstream_notify_t    *notify; /**< The stream sleeps on this */
} ucs_gstream_helper_t;


/** A word that a stream waits for. */
typedef struct ucs_gstream_word {
    volatile uint64_t *address; /**< Naturally aligned */
    uint64_t          value;    /**< Smallest one that lets the stream pass */
} ucs_gstream_word_t;


/** One stream command. */
typedef struct ucs_gstream_cmd {
    ucs_gstream_cmd_type_t type; /**< Which member of @a u is valid */
    union {
        struct {
            ucs_gstream_func_t func; /**< Runs in stream order */
            void               *arg; /**< Passed to @a func */
        } func;
        struct {
            volatile uint64_t *address; /**< Naturally aligned word */
            uint64_t          value;    /**< Stored, or waited for */
            const ucs_gstream_helper_t *helper; /**< HELP64 only */
        } word;
        struct {
            volatile uint32_t *address; /**< Naturally aligned word */
            uint32_t          value;    /**< Stored, or compared with */
            ucs_gstream_cmp_t cmp;      /**< WAIT32 only */
        } word32;
        struct {
            void       *dst;   /**< At least @a length bytes */
            const void *src;   /**< At least @a length bytes */
            size_t     length; /**< In bytes; may be 0 */
        } copy;
        struct {
            void       *dst;   /**< The first row */
            const void *src;   /**< The first row */
            const ucs_gstream_rect_t *rect; /**< Copied */
        } copy2d;
        struct {
            ucs_gstream_func_t func; /**< Runs in stream order */
            const void         *args; /**< At least @a size bytes; copied */
            size_t             size; /**< At most UCS_GSTREAM_ARGS_MAX; may be
                                          0 */
        } launch;
        struct {
            const ucs_gstream_word_t *words; /**< Copied */
            size_t count; /**< 1 to UCS_GSTREAM_WORDS_MAX */
            const ucs_gstream_helper_t *helper; /**< Or NULL */
        } waitall;
        struct {
            const struct ucs_gstream_pair *pairs; /**< Copied */
            size_t count; /**< From 1 on */
        } pairs;
        const struct ucs_gstream_move *move; /**< Copied */
    } u; /**< Arguments of the command */
} ucs_gstream_cmd_t;


/**
 * Create a stream.
 *
 * @param [in]  params   What to create.
 * @param [out] stream_p Filled with the stream on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM for an unknown type, a NULL argument or
 *         group, a priority out of range, processors of which the process can
 *         use none or that come with a group, or a setting that cannot be read;
 *         UCS_ERR_UNSUPPORTED where the type's runtime is not there;
 *         UCS_ERR_NO_MEMORY; UCS_ERR_NO_RESOURCE if no thread can be started;
 *         an error of ucs_trace_open().
 *
 * Ownership: the caller owns the stream until @ref ucs_gstream_destroy. Its
 *            group stays the caller's and must live until then.
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_create(const ucs_gstream_params_t *params,
                                ucs_gstream_h *stream_p);


/** Longest text of @ref ucs_gstream_type_attr_t, with the final zero. */
#define UCS_GSTREAM_TEXT_MAX 192


/** What @ref ucs_gstream_query_type tells. */
typedef struct ucs_gstream_type_attr {
    char name[UCS_GSTREAM_TEXT_MAX];   /**< Of the type */
    char reason[UCS_GSTREAM_TEXT_MAX]; /**< Why no stream of it can be created,
                                            and what to set; empty if one can */
    char library[UCS_GSTREAM_TEXT_MAX]; /**< Where its runtime was found; empty
                                            where none was, and for the host */
    int  version;     /**< The runtime's own number; 0 as above */
    int  num_devices; /**< Devices of the runtime; 0 as above */
    int  has_batches; /**< Several stores and waits are one call */
    char waits[UCS_GSTREAM_TEXT_MAX]; /**< What waits for several words at once,
                                            as far as streams were created: a
                                            kernel, or why none does. Empty
                                            where it is none of the library's */
    char kernels[UCS_GSTREAM_TEXT_MAX]; /**< "loaded", or why a device has none
                                            of the library's kernels, as far as
                                            streams were created; empty for the
                                            host */
} ucs_gstream_type_attr_t;


/**
 * Tell whether streams of a type can be created.
 *
 * @param [in]  type The type.
 * @param [out] attr Filled, also on UCS_ERR_UNSUPPORTED.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED if they cannot, with the reason;
 *         UCS_ERR_INVALID_PARAM for an unknown type or a NULL argument.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_query_type(ucs_gstream_type_t type,
                                    ucs_gstream_type_attr_t *attr);


/**
 * Destroy a stream that has run all its commands. One that was made on a stream
 * of the application may be destroyed at any time at which no recording of an
 * event is pending there: that stream runs what it has.
 *
 * @param [in] stream The stream.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while commands are pending,
 *         while a queue or something else uses it (@ref ucs_gstream_get), or
 *         when called from a command of this stream;
 *         UCS_ERR_INVALID_PARAM if @a stream is not a live stream.
 *
 * Ownership: on UCS_OK the handle is gone.
 * Threads: no other call on this stream may run at the same time.
 */
ucs_status_t ucs_gstream_destroy(ucs_gstream_h stream);


/**
 * Use a stream: it is not destroyed until @ref ucs_gstream_put, however often
 * it is used. Queues do so with theirs.
 *
 * @param [in] stream Handle to use; any pointer value, which is looked up.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if @a stream is not a live stream.
 *
 * Ownership: the stream stays that of its creator.
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_get(ucs_gstream_h stream);


/**
 * End a use of a stream.
 *
 * @param [in] stream A stream that the caller has got.
 *
 * Ownership: the stream may be gone on return.
 * Threads: may be called from any thread.
 */
void ucs_gstream_put(ucs_gstream_h stream);


/**
 * Tell whether a handle is a live stream of this library. Any pointer value may
 * be given; it is looked up, never dereferenced.
 *
 * @param [in] stream Handle to check.
 *
 * @return Non-zero if @a stream was created and not yet destroyed.
 *
 * Threads: may be called from any thread.
 */
int ucs_gstream_is_valid(ucs_gstream_h stream);


/**
 * Type of a stream.
 *
 * @param [in] stream A live stream.
 *
 * @return Its type.
 *
 * Threads: may be called from any thread.
 */
ucs_gstream_type_t ucs_gstream_type(ucs_gstream_h stream);


/**
 * Enqueue several commands: all of them, in order and with nothing of other
 * threads in between, or none.
 *
 * A wait passes when the word is >= the value (unsigned), or as a WAIT32 says:
 * @ref ucs_gstream_enqueue_wait64 tells when a stream looks. Stores that came
 * before the word's store are visible to the commands after the wait. A store
 * by a command is visible to whoever acquires it only with all that the stream
 * did before.
 *
 * Streams of devices wait without their helpers.
 *
 * @param [in] stream The stream.
 * @param [in] cmds   The commands; they, arguments of kernels, arrays of words
 *                    and rectangles are copied and may be reused on return.
 * @param [in] count  How many; 0 is legal.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM for an unknown command, a misaligned or
 *         NULL word, a NULL function, a NULL address with a length, arguments
 *         longer than UCS_GSTREAM_ARGS_MAX, a WAITALL for no words or more than
 *         UCS_GSTREAM_WORDS_MAX, an unknown comparison, a helper without @a
 *         func or @a notify, or rows whose distance is less than their width,
 *         or above UCS_GSTREAM_PITCH_MAX, and if a device's runtime refuses
 *         what the first command names; UCS_ERR_UNSUPPORTED while a device
 *         stream is being captured into a graph; UCS_ERR_NO_MEMORY. Nothing is
 *         enqueued on these errors. UCS_ERR_IO_ERROR if a device stream has
 *         failed: a first part of the commands may be enqueued, and the stream
 *         takes no more. It runs what it has if its device works.
 *
 * Ownership: memory that the commands name stays the caller's and must live
 *            until they have run.
 * Threads: may be called from any thread, also from a command of this stream.
 */
ucs_status_t ucs_gstream_enqueue(ucs_gstream_h stream,
                                 const ucs_gstream_cmd_t *cmds,
                                 size_t count);


/**
 * Enqueue a function.
 *
 * @param [in] stream The stream.
 * @param [in] func   Runs in stream order; must not wait for this stream, nor
 *                    for another one of its group.
 * @param [in] arg    Passed to @a func.
 *
 * @return As @ref ucs_gstream_enqueue.
 *
 * Ownership: @a arg stays the caller's and must live until @a func has run.
 * Threads: as @ref ucs_gstream_enqueue.
 */
ucs_status_t ucs_gstream_enqueue_func(ucs_gstream_h stream,
                                      ucs_gstream_func_t func, void *arg);


/**
 * Enqueue a kernel: a function with its arguments copied in.
 *
 * @param [in] stream The stream.
 * @param [in] func   Runs in stream order; must not wait for this stream, nor
 *                    for another one of its group. It is passed a copy of the
 *                    arguments, which it may change and which is gone when it
 *                    returns, aligned as for malloc(); if @a size is 0, NULL.
 * @param [in] args   The arguments; copied, may be reused on return. May be
 *                    NULL if @a size is 0.
 * @param [in] size   Bytes of the arguments, at most UCS_GSTREAM_ARGS_MAX.
 *
 * @return As @ref ucs_gstream_enqueue.
 *
 * Ownership: what the arguments point to stays the caller's and must live until
 *            @a func has run.
 * Threads: as @ref ucs_gstream_enqueue.
 */
ucs_status_t ucs_gstream_enqueue_launch(ucs_gstream_h stream,
                                        ucs_gstream_func_t func,
                                        const void *args, size_t size);


/**
 * Enqueue a store of a 64-bit word.
 *
 * @param [in] stream  The stream.
 * @param [in] address Naturally aligned word; also a NIC's doorbell.
 * @param [in] value   Stored with release order; sleeping waiters are woken.
 *
 * @return As @ref ucs_gstream_enqueue.
 *
 * Ownership: the word stays the caller's and must live until the command ran.
 * Threads: as @ref ucs_gstream_enqueue.
 */
ucs_status_t ucs_gstream_enqueue_write64(ucs_gstream_h stream,
                                         volatile uint64_t *address,
                                         uint64_t value);


/**
 * Enqueue a wait until a 64-bit word is >= a value (unsigned).
 *
 * A sleeping stream sees a change at once when the writer is a stream command
 * or calls @ref ucs_gstream_wake, and otherwise within 50 ms. One of a group
 * sees it so, too, or when a thread of the group gets to the end of a turn.
 *
 * @param [in] stream  The stream.
 * @param [in] address Naturally aligned word.
 * @param [in] value   Smallest value that lets the stream pass.
 *
 * @return As @ref ucs_gstream_enqueue.
 *
 * Ownership: the word stays the caller's and must live until the command ran.
 * Threads: as @ref ucs_gstream_enqueue.
 */
ucs_status_t ucs_gstream_enqueue_wait64(ucs_gstream_h stream,
                                        volatile uint64_t *address,
                                        uint64_t value);


/**
 * Enqueue a copy.
 *
 * @param [in] stream The stream.
 * @param [in] dst    Destination, at least @a length bytes.
 * @param [in] src    Source, not overlapping @a dst.
 * @param [in] length In bytes; 0 is legal.
 *
 * @return As @ref ucs_gstream_enqueue.
 *
 * Ownership: both buffers stay the caller's and must live until the copy ran.
 * Threads: as @ref ucs_gstream_enqueue.
 */
ucs_status_t ucs_gstream_enqueue_copy(ucs_gstream_h stream, void *dst,
                                      const void *src, size_t length);


/**
 * Enqueue a copy of rows.
 *
 * @param [in] stream The stream.
 * @param [in] dst    The first row of the destination.
 * @param [in] src    The first row of the source, which does not overlap.
 * @param [in] rect   The rows; copied, may be reused on return.
 *
 * @return As @ref ucs_gstream_enqueue.
 *
 * Ownership: both buffers stay the caller's and must live until the copy ran.
 * Threads: as @ref ucs_gstream_enqueue.
 */
ucs_status_t ucs_gstream_enqueue_copy2d(ucs_gstream_h stream, void *dst,
                                        const void *src,
                                        const ucs_gstream_rect_t *rect);


/**
 * Wake the streams that sleep on a word, after storing to it. Cheap when none
 * sleeps. Host streams only; streams of devices poll.
 *
 * @param [in] address The word that was stored to.
 *
 * Threads: may be called from any thread.
 */
void ucs_gstream_wake(const volatile uint64_t *address);


/**
 * The same for several words, which costs little more than one.
 *
 * @param [in] addresses The words that were stored to.
 * @param [in] count     Number of @a addresses; 0 is legal.
 *
 * Threads: may be called from any thread.
 */
void ucs_gstream_wake_all(const volatile uint64_t *const *addresses,
                          size_t count);


/**
 * Notify the streams that sleep on something, of whatever process, after
 * storing what their helpers look at. Cheap when none sleeps.
 *
 * @param [in] notify What they sleep on, at its address in this process.
 *
 * Threads: may be called from any thread.
 */
void ucs_gstream_notify(ucs_gstream_notify_t *notify);


/**
 * Makes progress of something that streams wait for. The threads of host
 * streams call it again and again while they wait for a word and do not sleep.
 *
 * No function of a poller waits for anything. They may run in several threads
 * at once, and call no function of this header but @ref ucs_gstream_wake and
 * @ref ucs_gstream_wake_all.
 */
typedef struct ucs_gstream_poller {
    /**
     * Makes progress. Returns how many things it has done: if that is not 0 a
     * stream that waits starts anew to count the time after which it sleeps.
     */
    int  (*poll)(void *arg);
    /** Or NULL: a thread calls @a poll from now on. */
    void (*begin)(void *arg);
    /** Or NULL: that thread calls @a poll no more, as its wait is over or it is
     *  about to sleep. */
    void (*end)(void *arg);
    /** Passed to all three. */
    void *arg;
} ucs_gstream_poller_t;


/**
 * Have all host streams of the process call a poller while they wait for a
 * word: for NICs that the waiting processor drives.
 *
 * @param [in] poller What to call; copied.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if @a poller or its @a poll is NULL;
 *         UCS_ERR_NO_RESOURCE if there are 16 already.
 *
 * Ownership: @a poller->arg stays the caller's and must live until
 *            @ref ucs_gstream_poller_remove.
 * Threads: may be called from any thread, but not from a poller.
 */
ucs_status_t ucs_gstream_poller_add(const ucs_gstream_poller_t *poller);


/**
 * Undo @ref ucs_gstream_poller_add. On return each thread that had begun to
 * call @a poll has ended that, and no stream runs any function of the poller.
 *
 * @param [in] poller With @a poll and @a arg as it was added.
 *
 * @return UCS_OK; UCS_ERR_NO_ELEM if it is not there; UCS_ERR_INVALID_PARAM if
 *         @a poller or its @a poll is NULL.
 *
 * Threads: may be called from any thread, but not from a poller or helper, nor
 *          with a lock that one of them takes.
 */
ucs_status_t ucs_gstream_poller_remove(const ucs_gstream_poller_t *poller);


/**
 * Takes a store of a stream to a range of @ref ucs_gstream_device_add, in the
 * thread that would have stored. It returns soon, may run in several threads at
 * once, and enqueues nothing.
 *
 * @param [in] arg    As given to @ref ucs_gstream_device_add.
 * @param [in] offset Of the word in the range, in bytes.
 * @param [in] value  What the stream stores.
 */
typedef void (*ucs_gstream_device_func_t)(void *arg, size_t offset,
                                          uint64_t value);


/**
 * Have a function take what host streams store (UCS_GSTREAM_CMD_WRITE64) to a
 * range of addresses, instead of memory: for emulated devices, to which each
 * store is an event. Memory would only keep the last one.
 *
 * @param [in] start  The range, @a length bytes; apart from other ranges. Other
 *                    writers, and streams of devices, still write to memory.
 * @param [in] length Not 0.
 * @param [in] func   The function.
 * @param [in] arg    Passed to @a func.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM; UCS_ERR_NO_MEMORY.
 *
 * Ownership: @a arg stays the caller's and must live until
 *            @ref ucs_gstream_device_remove.
 * Threads: may be called from any thread, but not from such a function.
 */
ucs_status_t ucs_gstream_device_add(void *start, size_t length,
                                    ucs_gstream_device_func_t func, void *arg);


/**
 * Undo @ref ucs_gstream_device_add. On return no stream runs the function.
 *
 * @param [in] start As it was added.
 *
 * @return UCS_OK; UCS_ERR_NO_ELEM if it is not there; UCS_ERR_INVALID_PARAM if
 *         @a start is NULL.
 *
 * Threads: may be called from any thread, but not from such a function.
 */
ucs_status_t ucs_gstream_device_remove(void *start);


/**
 * Block the caller until all commands enqueued before this call have run.
 *
 * @param [in] stream The stream.
 *
 * @return UCS_OK; UCS_ERR_BUSY when called from a command of this stream, which
 *         could never return, or of another one of its group, which holds one
 *         of the threads that this stream needs; UCS_ERR_IO_ERROR if a device
 *         stream failed.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_synchronize(ucs_gstream_h stream);


/**
 * As @ref ucs_gstream_synchronize, for at most a given time. A stream of a
 * device is waited for until it is idle.
 *
 * @param [in] stream  The stream.
 * @param [in] timeout In seconds; 0 only tests.
 *
 * @return As @ref ucs_gstream_synchronize; UCS_INPROGRESS if commands enqueued
 *         before this call are still pending when the time is over.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_synchronize_timeout(ucs_gstream_h stream,
                                             double timeout);


/**
 * Name of a type of streams, for messages.
 *
 * @param [in] type The type.
 *
 * @return "host", "HIP" or "CUDA"; "?" for an unknown type.
 *
 * Threads: may be called from any thread.
 */
const char *ucs_gstream_type_name(ucs_gstream_type_t type);


/** What a stream can do, as bits. */
enum ucs_gstream_cap {
    UCS_GSTREAM_CAP_WRITE = 1u << 0, /**< Store words */
    UCS_GSTREAM_CAP_WAIT  = 1u << 1, /**< Wait for words */
    UCS_GSTREAM_CAP_COPY  = 1u << 2, /**< Copy bytes */
    UCS_GSTREAM_CAP_FUNC  = 1u << 3, /**< Run host functions; kernels as
                                          UCS_GSTREAM_CMD_LAUNCH, too */
    UCS_GSTREAM_CAP_CHEAP = 1u << 4, /**< Host functions cost it no more than
                                          stores: no other processor has to wake
                                          up for them */
    UCS_GSTREAM_CAP_HELP  = 1u << 5, /**< Call helpers while it waits */
    UCS_GSTREAM_CAP_WAKE  = 1u << 6  /**< Its stores wake host streams that
                                          sleep on the word */
};


/**
 * What a stream can do. Callers ask this, not the type.
 *
 * @param [in] stream A live stream.
 *
 * @return Mask of @ref ucs_gstream_cap.
 *
 * Threads: may be called from any thread.
 */
unsigned ucs_gstream_caps(ucs_gstream_h stream);


/**
 * What streams of a type can do, whether or not there are any.
 *
 * @param [in] type The type.
 *
 * @return Mask of @ref ucs_gstream_cap; 0 for an unknown type.
 *
 * Threads: may be called from any thread.
 */
unsigned ucs_gstream_type_caps(ucs_gstream_type_t type);


/**
 * The runtime's stream, for kernels of the application.
 *
 * @param [in] stream A live stream.
 *
 * @return The hipStream_t or CUstream; NULL for a stream of the host. A default
 *         stream of CUDA may be NULL, too.
 *
 * Threads: may be called from any thread.
 */
void *ucs_gstream_native(ucs_gstream_h stream);


/**
 * Count the kernels of this library that a stream was given. One of them waits
 * for all words of a @ref UCS_GSTREAM_CMD_WAITALL.
 *
 * @param [in] stream A live stream.
 *
 * @return Their number; 0 for a stream of the host.
 *
 * Threads: may be called from any thread.
 */
uint64_t ucs_gstream_launches(ucs_gstream_h stream);


/**
 * Tell what kind of stream a handle of the application is: a stream of this
 * library, a hipStream_t or a cudaStream_t.
 *
 * @param [in]  handle The handle. NULL is the default stream of the runtime
 *                     that the process has loaded.
 * @param [out] type_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM, after an error in the log that says
 *         why, if it is none of them, or NULL in a process that has loaded
 *         both runtimes or none. CUDA's driver looks into what it takes for a
 *         stream: other memory may make it fault.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_detect(void *handle, ucs_gstream_type_t *type_p);


/**
 * Tell whether a stream has run everything. Does not wait; but the runtime of a
 * GPU does while another thread's call waits for room in that stream.
 *
 * @param [in] stream The stream.
 *
 * @return UCS_OK if it is idle; UCS_INPROGRESS if commands are pending;
 *         UCS_ERR_IO_ERROR if a device stream failed; UCS_ERR_UNSUPPORTED while
 *         it is being captured; UCS_ERR_BUSY from a host function of another
 *         stream of its runtime.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_query(ucs_gstream_h stream);

#ifdef __cplusplus
}
#endif

#endif
