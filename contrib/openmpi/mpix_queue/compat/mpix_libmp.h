/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_libmp.h - what lies behind the calls of compat/mp.h.
 *
 * Messages are those of FIFOs of the st worker (ucp_st_batch.h): one FIFO for
 * each pair of processes and direction. Each stream that a call names gets a
 * queue, and what the host posts goes over a queue on a stream of this
 * library's own, which waits for puts and gets alone. A request has words where
 * streams tell how far they are.
 *
 *   PREPARED --add--> ADDED --post--> POSTED --wait of the host--> gone
 *       |               (to a queue of commands) |
 *       +----------------- post -----------------+
 *
 * One thread at a time calls all of this.
 */
#ifndef MPIX_LIBMP_H_
#define MPIX_LIBMP_H_

#include "compat/mp.h"
#include "binding/mpix_comm.h"
#include "call/mpix_stream_queue.h"

#include <ucp_st.h>
#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/list.h>


typedef enum {
    MPIX_LIBMP_SEND,
    MPIX_LIBMP_RECV,
    MPIX_LIBMP_PUT,
    MPIX_LIBMP_GET
} mpix_libmp_kind_t;

typedef enum {
    MPIX_LIBMP_PREPARED,
    MPIX_LIBMP_ADDED,
    MPIX_LIBMP_POSTED
} mpix_libmp_state_t;


/* A request. */
struct mp_request {
    ucs_list_link_t    list; /* Of those that were dropped */
    mpix_libmp_kind_t  kind;
    mpix_libmp_state_t state;
    int                peer;
    uint64_t           number;     /* Of a prepared send, among those to the
                                      peer; else 0 */
    void               *buffer;    /* NULL where there are blocks */
    size_t             length;
    struct iovec       *blocks;    /* Copied; or NULL */
    int                num_blocks;
    void               *stage;     /* The blocks' data in one piece, or that of
                                      MP_PUT_INLINE; or NULL */
    struct mp_reg      *reg;       /* Of a put or get; NULL: the stage's */
    ucp_st_mem_h       stage_memh; /* Or NULL */
    struct mp_window   *window;    /* Of a put or get */
    size_t             displ;
    int                is_nowait;  /* MP_PUT_NOWAIT */
    int                is_filled;  /* The host has filled the blocks */
    struct mpix_queue  *queue;     /* Where it was posted */
    ucp_st_req_h       st_req;     /* Of a message that was posted */
    int                is_failed;  /* It, or a wait for it, was not enqueued
                                      whole: its memory is kept */
    volatile uint64_t  *done;      /* The queue's stream stores 1 when a put or
                                      get is over, or the blocks to send are
                                      copied; or NULL */
    uint64_t           call;       /* The last call of a wait that named it */
    int                is_waited;  /* By a stream; or that was added */
    struct mpix_queue  *waiter;    /* Whose stream waits; or NULL */
    volatile uint64_t  *passed;    /* That stream stores 1 behind its wait */
};

/* Handles of requests. These lie at equal distances, which khash's own function
 * makes long chains of. */
#define mpix_libmp_hash(_req) \
    ((khint32_t)(((uintptr_t)(_req) * 0x9e3779b97f4a7c15ull) >> 32))
KHASH_INIT(mpix_libmp, struct mp_request*, char, 0, mpix_libmp_hash,
           kh_int64_hash_equal)

/* Registered memory; the st worker's part is made when it is needed. */
struct mp_reg {
    ucs_list_link_t list; /* First: mpix_handle.h */
    void            *addr;
    size_t          length;
    ucp_st_mem_h    memh; /* Or NULL */
};

/* A window. */
struct mp_window {
    ucs_list_link_t list;    /* As above */
    ucp_st_mem_h    memh;    /* NULL: the own part is empty */
    ucp_st_rkey_h   *rkeys;  /* By rank; NULL: no peer, or an empty part */
};

/* A rank of the communicator. */
typedef struct mpix_libmp_peer {
    ucp_st_peer_h peer;     /* NULL: it was not named */
    uint64_t      prepared; /* Sends, so far */
    uint64_t      posted;   /* Of these */
} mpix_libmp_peer_t;

/* A stream that has a queue, which stays until mp_finalize. */
typedef struct mpix_libmp_stream {
    ucs_list_link_t     list;
    mpix_stream_queue_t *entry;
} mpix_libmp_stream_t;

/* A page of the host's memory that devices reach, for a word there. */
typedef struct mpix_libmp_page {
    ucs_list_link_t list;
    void            *start;
} mpix_libmp_page_t;

/* What mp_init makes. */
typedef struct mpix_libmp {
    MPI_Comm          handle; /* Own duplicate; MPI_COMM_NULL: not there */
    mpix_comm_t       *comm;
    int               size;
    mpix_libmp_peer_t *peers;   /* By rank */
    uint64_t          scope;    /* Of the messages */
    struct mpix_queue *host;    /* For what the host posts */
    ucs_list_link_t   streams;
    ucs_list_link_t   pages;
    khash_t(mpix_libmp) requests; /* All but the next ones */
    ucs_list_link_t   dropped;  /* Posted MP_PUT_NOWAIT */
    ucs_list_link_t   regs;
    ucs_list_link_t   windows;
    ucs_list_link_t   dqs;
    double            end;      /* Until when mp_finalize waits; 0: before it */
} mpix_libmp_t;

extern mpix_libmp_t mpix_libmp;


/* Print a failure of a call, in one line. Returns MP_FAILURE. */
int mpix_libmp_fail(const char *func, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));

/* The same of a code of mpix_fail(); MP_SUCCESS for MPI_SUCCESS. */
int mpix_libmp_code(int rc);

/* Refuse a call without mp_init. */
int mpix_libmp_check_init(const char *func);

/* Whether no process of the communicator has failed. Collective over it, also
 * for one that has, whose code is given. Prints what is not its own. */
int mpix_libmp_all(const char *func, int rc);

/* Get the queue of a stream of the application, made for its first call. */
int mpix_libmp_get_queue(const char *func, cudaStream_t stream,
                         struct mpix_queue **queue_p);

/* Enqueue commands on a queue's stream. A word of 32 bits may be in any memory
 * of the host. */
int mpix_libmp_command(const char *func, const struct mpix_queue *queue,
                       const ucs_gstream_cmd_t *cmds, size_t count);

/* Have the host wait until a stream has stored to a word. UCS_ERR_IO_ERROR if
 * the stream is lost. */
ucs_status_t mpix_libmp_wait_word(const struct mpix_queue *queue,
                                  const volatile uint64_t *word);

/* Why a queue takes nothing: its own error, or what a call has returned. */
ucs_status_t mpix_libmp_cause(const struct mpix_queue *queue,
                              ucs_status_t status);


/* A request of this peer, which is not posted; NULL, which was printed, without
 * memory or for a peer that is not one. */
struct mp_request *mpix_libmp_request_new(const char *func,
                                          mpix_libmp_kind_t kind, int peer);

/* Free a request and what it has. What a device, or the st worker, may still
 * use of it is kept for ever if it 'is_busy'. */
void mpix_libmp_request_free(struct mp_request *req, int is_busy);

/* Whether a handle, of any value, is a live request. */
int mpix_libmp_is_valid(mp_request_t req);

/* Whether 'req' names a live request, or an array live ones, after mp_init;
 * prints it if not. */
int mpix_libmp_request_check(const char *func, const mp_request_t *req);
int mpix_libmp_request_check_all(const char *func, uint32_t count,
                                 const mp_request_t *reqs);

/* What a request is, in front of its rank, and whether it is a message. */
const char *mpix_libmp_name(const struct mp_request *req);
int mpix_libmp_is_msg(const struct mp_request *req);

/* Copy from the blocks of a message to the memory that stands for them, or
 * back: by a queue's stream in its order, or for the host's queue at once. */
ucs_status_t mpix_libmp_copy(const struct mpix_queue *queue,
                             const struct mp_request *req, int is_back);

/* Post requests of one sort on a queue, which mpix_libmp_post_check has found
 * to be good. Those of MP_PUT_NOWAIT are set to NULL. */
int mpix_libmp_post_check(const char *func, uint32_t count,
                          const mp_request_t *reqs);
int mpix_libmp_post(const char *func, struct mpix_queue *queue, uint32_t count,
                    mp_request_t *reqs);

/* The same of a request that is new, which *req_p is set to if it is posted;
 * else it is freed. */
int mpix_libmp_post_new(const char *func, struct mpix_queue *queue,
                        struct mp_request *req, mp_request_t *req_p);

/* Have a queue's stream wait for requests. */
int mpix_libmp_stream_wait(const char *func, struct mpix_queue *queue,
                           uint32_t count, const mp_request_t *reqs);

/* Whether a put or get has ended; whether a stream has yet to come to what
 * names memory of a request that was posted. */
int mpix_libmp_rma_is_over(const struct mp_request *req);
int mpix_libmp_is_busy(const struct mp_request *req);

/* Have a queue's stream store to a request's word 'done', if all before has
 * 'status' UCS_OK. If not, the host stores, and the request has failed. */
ucs_status_t mpix_libmp_tell_done(const struct mpix_queue *queue,
                                  struct mp_request *req, ucs_status_t status);

/* Enqueue a put or get on a queue, and behind several of them what tells their
 * ends. Return a status, with nothing printed. */
ucs_status_t mpix_libmp_rma_enqueue(struct mpix_queue *queue,
                                    struct mp_request *req);
ucs_status_t mpix_libmp_rma_finish(struct mpix_queue *queue, uint32_t count,
                                   const mp_request_t *reqs);

/* Deregister memory that a peer, or the worker, may use for a moment.
 * mp_finalize has one time for all. */
ucs_status_t mpix_libmp_dereg(ucp_st_mem_h memh);

/* Give back all windows and registrations, or queues of commands. */
void mpix_libmp_windows_cleanup(void);
void mpix_libmp_dqs_cleanup(void);

/* Take back what ended of MP_PUT_NOWAIT. */
void mpix_libmp_reap(void);

#endif
