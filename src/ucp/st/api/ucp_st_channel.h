/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st_channel.h - channels between objects, for runtimes with message-driven
 * objects.
 *
 * A channel has two ends that count their messages, so that no message needs
 * metadata: the n-th receive of an end gets the n-th send of the other one.
 * Channels use a UCP worker and endpoints that the runtime owns, and tagged
 * messages of their own kinds (@ref ucp_st_tag_layout_t). With them the runtime
 * may use the worker as before.
 *
 *     end 0                                end 1
 *     ucp_st_channel_create(end 0)         ucp_st_channel_create(end 1)
 *     ucp_st_channel_send(c, a, ...)       ucp_st_channel_recv(c, b, ...)
 *     ucp_worker_progress()                ucp_worker_progress()
 *       the callback of the send             the callback of the receive
 *
 * An object that migrates takes its end with it:
 *
 *     the end that moves, on PE A        the other end, on PE B
 *     ucp_st_channel_quiesce(c, done)
 *     ucp_st_channel_progress(ctx)       ucp_st_channel_progress(ctx)
 *       done: nothing is under way         sends are put off from here on
 *     ucp_st_channel_pack(c)
 *     ucp_st_channel_destroy(c)
 *     on PE C: ucp_st_channel_unpack()   ucp_st_channel_rebind(c, to C)
 *
 * Channels have no thread and no lock, and no call blocks. UCS_OK is returned
 * for what is done, without a callback; UCS_INPROGRESS for what calls back
 * exactly once, later. Callbacks may call everything here but
 * ucp_st_channel_ctx_destroy() and ucp_st_channel_progress(). A call that
 * fails has no effect, and uses up no number, unless stated. Every call may
 * return UCS_ERR_INVALID_PARAM for a NULL handle or pointer, unless NULL is
 * legal, and UCS_ERR_NO_MEMORY.
 *
 * Threads: all calls on a context and its channels, and those that progress the
 * UCP worker, come from one thread at a time.
 */
#ifndef UCP_ST_CHANNEL_H_
#define UCP_ST_CHANNEL_H_

#include <ucp_st_def.h>
#include <ucp/api/ucp.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A UCP worker with channels. */
typedef struct ucp_st_channel_ctx *ucp_st_channel_ctx_h;

/** One end of a channel. */
typedef struct ucp_st_channel *ucp_st_channel_h;


/** Bits of a tag. */
typedef struct ucp_st_tag_field {
    unsigned first; /**< Number of the lowest one */
    unsigned width; /**< How many */
} ucp_st_tag_field_t;


/**
 * Where things are in a tag of 64 bits, the same at all processes. The fields
 * of a kind of message do not overlap; bits in none of them are 0. The highest
 * bit of @a id tells which end has sent: ids have one bit less.
 */
typedef struct ucp_st_tag_layout {
    ucp_st_tag_field_t type;         /**< Of all messages; 1 to 16 bits */
    ucp_st_tag_field_t id;           /**< Of a channel, with the direction; 2
                                          bits or more */
    ucp_st_tag_field_t counter;      /**< Of messages of a channel; 8 bits or
                                          more */
    ucp_st_tag_field_t pe;           /**< Of ucp_st_msg.h: the sender's */
    ucp_st_tag_field_t msg_counter;  /**< The same: messages sent; as counter */
    unsigned           channel_type; /**< Types: of channels, */
    unsigned           msg_type;     /**< data of ucp_st_msg.h, */
    unsigned           control_type; /**< and what this library tells itself;
                                          all three different, and used for
                                          nothing else on the worker */
} ucp_st_tag_layout_t;


/** The layout of the paper (docs/channel.md): the type in the highest 4 bits,
 *  then 28 of id and 32 of counter, or 32 of PE and 28 of counter. */
extern const ucp_st_tag_layout_t ucp_st_tag_layout_paper;

/** The layout of Charm++'s UCX machine layer: the type in the lowest 4 bits, 4
 *  for data and 8 for channels, then id or PE, and the counter above. */
extern const ucp_st_tag_layout_t ucp_st_tag_layout_charm;


/** Fields of @ref ucp_st_channel_ctx_params_t that are set. */
enum ucp_st_channel_ctx_params_field {
    UCP_ST_CHANNEL_CTX_PARAM_FIELD_UCP_WORKER = 1u << 0,
    UCP_ST_CHANNEL_CTX_PARAM_FIELD_LAYOUT     = 1u << 1,
    UCP_ST_CHANNEL_CTX_PARAM_FIELD_ST_WORKER  = 1u << 2
};


/** Parameters of @ref ucp_st_channel_ctx_create. */
typedef struct ucp_st_channel_ctx_params {
    /** Mask of @ref ucp_st_channel_ctx_params_field. */
    uint64_t            field_mask;
    /** Carries all messages; must be set, have UCP_FEATURE_TAG, and outlive the
     *  context. Its request size and callbacks stay the runtime's. */
    ucp_worker_h        ucp_worker;
    /** ucp_st_tag_layout_paper if not set. */
    ucp_st_tag_layout_t layout;
    /** For channels on streams: made with this UCP worker, which then is of
     *  UCS_THREAD_MODE_MULTI, as a thread of the library may progress it.
     *  Callbacks then come from @ref ucp_st_channel_progress, and from calls
     *  that say so. */
    ucp_st_worker_h     st_worker;
} ucp_st_channel_ctx_params_t;


/** What is called once an operation is over.
 *
 * @param [in] arg    As it was given.
 * @param [in] status UCS_OK; UCS_ERR_CANCELED; UCS_ERR_MESSAGE_TRUNCATED; or
 *                    the error of the endpoint or of UCP.
 * @param [in] length Bytes received; of a send, its length.
 */
typedef void (*ucp_st_channel_cb_t)(void *arg, ucs_status_t status,
                                    size_t length);


/** A message. Its buffer may lie in a GPU's memory where ucp_tag_send_nbx()
 *  takes that: UCX has to have been built for the GPU. It is not asked here,
 *  message by message, and UCX takes other such memory for the host's. On
 *  streams it may as in ucp_st_send_init(). */
typedef struct ucp_st_channel_msg {
    void                *buffer; /**< What is sent, which is not changed, or
                                      where it is received; NULL is legal
                                      without a length */
    size_t              length;  /**< In bytes; of a receive: room */
    ucp_st_channel_cb_t cb;      /**< Called if the call returns
                                      UCS_INPROGRESS; may be NULL */
    void                *arg;    /**< Its argument */
} ucp_st_channel_msg_t;


/**
 * Create a context. A UCP worker has one at a time, which is not checked.
 *
 * @param [in]  params Parameters; copied.
 * @param [out] ctx_p  Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM, logged, for a layout whose fields
 *         overlap or do not fit; an error of ucp_tag_recv_nbx().
 *
 * Ownership: the caller's until @ref ucp_st_channel_ctx_destroy.
 */
ucs_status_t
ucp_st_channel_ctx_create(const ucp_st_channel_ctx_params_t *params,
                          ucp_st_channel_ctx_h *ctx_p);


/**
 * Destroy a context, before its worker.
 *
 * @param [in] ctx The context.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while it has a channel, or UCP
 *         an operation of one or of ucp_st_msg.h; UCS_ERR_BUSY while something
 *         that another context tells it is arriving, or data that
 *         ucp_st_msg_drop() throws away, too: then progress the worker and
 *         destroy it again.
 */
ucs_status_t ucp_st_channel_ctx_destroy(ucp_st_channel_ctx_h ctx);


/**
 * Carry on with ends that are to be moved and with operations on streams, and
 * call back what is over of them. Where there are neither there is nothing to
 * do: callbacks of other operations come from ucp_worker_progress(), unless the
 * context has an st worker. Progresses the UCP worker only where operations on
 * streams are there, which it asks for.
 *
 * @param [in] ctx The context.
 *
 * @return Non-zero if something was done.
 */
unsigned ucp_st_channel_progress(ucp_st_channel_ctx_h ctx);


/** Fields of @ref ucp_st_channel_params_t that are set. */
enum ucp_st_channel_params_field {
    UCP_ST_CHANNEL_PARAM_FIELD_EP   = 1u << 0,
    UCP_ST_CHANNEL_PARAM_FIELD_ID   = 1u << 1,
    UCP_ST_CHANNEL_PARAM_FIELD_END  = 1u << 2,
    UCP_ST_CHANNEL_PARAM_FIELD_PEER = 1u << 3
};


/** Parameters of @ref ucp_st_channel_create. */
typedef struct ucp_st_channel_params {
    /** Mask of @ref ucp_st_channel_params_field. */
    uint64_t      field_mask;
    /** Of the context's UCP worker, to the worker that has the other end, which
     *  may be the own one; neither is checked. Outlives the channel's
     *  operations. If not set, sends are put off until
     *  @ref ucp_st_channel_rebind. */
    ucp_ep_h      ep;
    /** Of the channel, the same at both ends; 0 if not set. */
    uint64_t      id;
    /** 0 and 1, different at the two ends; 0 if not set. */
    unsigned      end;
    /** The same worker as @a ep, for operations on streams. */
    ucp_st_peer_h peer;
} ucp_st_channel_params_t;


/**
 * Create an end of a channel. Local: the other end may send before.
 *
 * @param [in]  ctx       The context.
 * @param [in]  params    Parameters; copied.
 * @param [out] channel_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_OUT_OF_RANGE for an id that does not fit into the
 *         layout; UCS_ERR_INVALID_PARAM for another end than 0 and 1;
 *         UCS_ERR_ALREADY_EXISTS if this end is here.
 *
 * Ownership: the caller's until @ref ucp_st_channel_destroy.
 */
ucs_status_t ucp_st_channel_create(ucp_st_channel_ctx_h ctx,
                                   const ucp_st_channel_params_t *params,
                                   ucp_st_channel_h *channel_p);


/**
 * Destroy an end. Operations that are under way call back UCS_ERR_CANCELED:
 * receives, and sends that were put off, in this call; sends that UCP has, and
 * receives that have matched, when UCP is done with their buffers. What the
 * other end has sent and nobody received stays in the UCP worker: take an id
 * for one channel only. A move that has not ended, and buffers that are being
 * matched, call back UCS_ERR_CANCELED in this call.
 *
 * @param [in] channel The end; NULL is legal.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while an operation on a stream
 *         is under way.
 *
 * Ownership: the handle is gone.
 */
ucs_status_t ucp_st_channel_destroy(ucp_st_channel_h channel);


/**
 * Send the next message.
 *
 * @param [in] channel The end.
 * @param [in] msg     What is sent; copied.
 *
 * @return UCS_OK: the buffer may be reused; UCS_INPROGRESS: once it was called
 *         back; UCS_ERR_BUSY while the end is to be moved; an error of
 *         ucp_tag_send_nbx(), such as that of a failed endpoint.
 */
ucs_status_t ucp_st_channel_send(ucp_st_channel_h channel,
                                 const ucp_st_channel_msg_t *msg);


/**
 * Receive the next message.
 *
 * @param [in]  channel  The end.
 * @param [in]  msg      Where to; copied.
 * @param [out] length_p Filled on UCS_OK with the bytes received; may be NULL.
 *
 * @return UCS_OK: it is there; UCS_INPROGRESS: once it was called back;
 *         UCS_ERR_MESSAGE_TRUNCATED: it was there and longer than the room, and
 *         is gone with its number; UCS_ERR_BUSY while the end is to be moved;
 *         an error of ucp_tag_recv_nbx().
 */
ucs_status_t ucp_st_channel_recv(ucp_st_channel_h channel,
                                 const ucp_st_channel_msg_t *msg,
                                 size_t *length_p);


/**
 * Send the message of a number, for runtimes that count themselves. Numbers
 * begin at any value and are followed by 0 behind the largest one that the
 * layout has. A number is free again once its message was received. The ends
 * of a channel use either these calls or those that count; with these they
 * cannot be moved.
 *
 * @param [in] channel The end.
 * @param [in] number  The number.
 * @param [in] msg     As in @ref ucp_st_channel_send.
 *
 * @return As @ref ucp_st_channel_send; UCS_ERR_OUT_OF_RANGE for a number that
 *         does not fit.
 */
ucs_status_t ucp_st_channel_send_at(ucp_st_channel_h channel, uint64_t number,
                                    const ucp_st_channel_msg_t *msg);


/**
 * Receive the message of a number, as @ref ucp_st_channel_send_at sends it.
 *
 * @param [in]  channel  The end.
 * @param [in]  number   The number.
 * @param [in]  msg      As in @ref ucp_st_channel_recv.
 * @param [out] length_p The same.
 *
 * @return As @ref ucp_st_channel_recv; UCS_ERR_OUT_OF_RANGE for a number that
 *         does not fit.
 */
ucs_status_t ucp_st_channel_recv_at(ucp_st_channel_h channel, uint64_t number,
                                    const ucp_st_channel_msg_t *msg,
                                    size_t *length_p);


/** What @ref ucp_st_channel_query tells. */
typedef struct ucp_st_channel_attr {
    uint64_t id;        /**< As it was created */
    unsigned end;       /**< The same */
    uint64_t sent;      /**< Number of the next send */
    uint64_t received;  /**< Number of the next receive */
    size_t   num_sends; /**< That are under way, put off or not */
    size_t   num_recvs; /**< That are under way */
    size_t   num_kept;  /**< Messages that came while it was moved, and wait to
                             be received */
    int      is_quiet;  /**< Nothing is under way: it may be packed */
    int      is_put_off; /**< Sends wait for @ref ucp_st_channel_rebind */
} ucp_st_channel_attr_t;


/**
 * Tell the state of an end.
 *
 * @param [in]  channel The end.
 * @param [out] attr    Filled on success only.
 *
 * @return UCS_OK.
 */
ucs_status_t ucp_st_channel_query(ucp_st_channel_h channel,
                                  ucp_st_channel_attr_t *attr);


/**
 * Bring an end to a state in which it can be moved. Receives that have not
 * matched, and sends that were put off, call back UCS_ERR_CANCELED in this
 * call; their numbers are free again, so they are to be given once more
 * afterwards. The other end is told to put off its sends. What it has sent
 * before is received and kept. Both contexts must be progressed
 * (@ref ucp_st_channel_progress), and their UCP workers. Long sends end only
 * once the other end receives them.
 *
 * @param [in] channel The end.
 * @param [in] cb      Called with UCS_OK once nothing is under way, from
 *                     @ref ucp_st_channel_progress, or with the error of the
 *                     endpoint: the end is then as before, but for what was
 *                     cancelled. The other end may have put off its sends until
 *                     @ref ucp_st_channel_rebind.
 * @param [in] arg     Its argument.
 *
 * @return UCS_INPROGRESS; UCS_ERR_BUSY if it is being moved already, if the
 *         other end is (@ref ucp_st_channel_rebind comes first), or while
 *         operations on streams are there; UCS_ERR_UNSUPPORTED if numbers were
 *         given explicitly; UCS_ERR_NOT_CONNECTED without an endpoint.
 */
ucs_status_t ucp_st_channel_quiesce(ucp_st_channel_h channel,
                                    ucp_st_channel_cb_t cb, void *arg);


/**
 * Write the state of an end that is quiet. Destroy it afterwards.
 *
 * @param [in]    channel  The end.
 * @param [out]   buffer   Filled; NULL to ask for the length.
 * @param [inout] length_p Room, in bytes; set to what is needed.
 *
 * @return UCS_OK; UCS_ERR_BUFFER_TOO_SMALL, with the length set; UCS_ERR_BUSY
 *         if the end is not quiet.
 */
ucs_status_t ucp_st_channel_pack(ucp_st_channel_h channel, void *buffer,
                                 size_t *length_p);


/**
 * Make an end of a packed one, in this or another process. Its messages go on
 * where they were.
 *
 * @param [in]  ctx       The context.
 * @param [in]  params    The endpoint and the peer, from here; id and end are
 *                        those that were packed, and must be equal if set.
 * @param [in]  buffer    What @ref ucp_st_channel_pack wrote.
 * @param [in]  length    Its length, bytes.
 * @param [out] channel_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM, logged, if the bytes are no end, or of
 *         another version or layout; as @ref ucp_st_channel_create.
 */
ucs_status_t ucp_st_channel_unpack(ucp_st_channel_ctx_h ctx,
                                   const ucp_st_channel_params_t *params,
                                   const void *buffer, size_t length,
                                   ucp_st_channel_h *channel_p);


/**
 * Say where the other end is now, once each time that it was moved; or go on
 * with an own end that is quiet and was not moved, whose other end says the
 * same. Sends that were put off begin.
 *
 * @param [in] channel The end.
 * @param [in] params  The endpoint and the peer; the rest is not looked at.
 *
 * @return UCS_OK; UCS_ERR_BUSY while the own end is becoming quiet;
 *         UCS_ERR_INVALID_PARAM without an endpoint.
 */
ucs_status_t ucp_st_channel_rebind(ucp_st_channel_h channel,
                                   const ucp_st_channel_params_t *params);

/**
 * Send the next message when a stream comes to it. The stream starts the send
 * and goes on once the buffer may be reused. The context must have an st
 * worker, and the channel a peer.
 *
 * Messages on streams have an order of their own: the other end receives each
 * on a stream, and neither has a number. Where buffer and length were matched
 * (@ref ucp_st_channel_match) the message goes over the lanes of matched pairs,
 * and the other end receives it with the buffer that it has matched. Else it is
 * of a FIFO (ucp_st_batch.h), one for each direction: on lane trig the NICs
 * move it.
 *
 * @param [in] channel The end.
 * @param [in] queue   Of the stream; of the context's st worker.
 * @param [in] msg     What is sent; copied. Its callback comes from
 *                     @ref ucp_st_channel_progress once it is sent.
 *
 * @return UCS_INPROGRESS: the stream has it; UCS_ERR_BUSY while the end is to
 *         be moved; UCS_ERR_NOT_CONNECTED without a peer or an st worker; an
 *         error of ucp_st_enqueue_start(), of ucp_st_enqueue_send() or
 *         ucp_st_enqueue_batch_start(): there is no message. An error of
 *         ucp_st_enqueue_wait() or ucp_st_enqueue_batch_wait(): the stream has
 *         the start and no wait, and the callback comes all the same.
 */
ucs_status_t ucp_st_channel_send_stream(ucp_st_channel_h channel,
                                        ucp_st_queue_h queue,
                                        const ucp_st_channel_msg_t *msg);


/**
 * Receive the next message when a stream comes to it, which goes on once the
 * message is there; the rest is as in @ref ucp_st_channel_send_stream.
 *
 * @param [in]  channel The end.
 * @param [in]  queue   Of the stream; of the context's st worker.
 * @param [in]  msg     Where to; copied. Its callback comes from
 *                      @ref ucp_st_channel_progress once it is there.
 *
 * @return As @ref ucp_st_channel_send_stream.
 */
ucs_status_t ucp_st_channel_recv_stream(ucp_st_channel_h channel,
                                        ucp_st_queue_h queue,
                                        const ucp_st_channel_msg_t *msg);


/**
 * Agree with the other end on a buffer, for operations on streams. The two ends
 * match as many sends and receives, in the same order. A channel with matched
 * buffers cannot be moved; they are released with it.
 *
 * @param [in] channel The end.
 * @param [in] is_send Non-zero: what is sent; zero: where it is received.
 * @param [in] msg     The buffer, which must live as long as the channel. The
 *                     callback comes from @ref ucp_st_channel_progress once it
 *                     is matched, with UCS_OK, or with the error of
 *                     ucp_st_match().
 *
 * @return UCS_INPROGRESS; UCS_ERR_ALREADY_EXISTS if it was matched; as
 *         @ref ucp_st_channel_send_stream; an error of ucp_st_send_init(),
 *         ucp_st_recv_init() or ucp_st_imatchall().
 */
ucs_status_t ucp_st_channel_match(ucp_st_channel_h channel, int is_send,
                                  const ucp_st_channel_msg_t *msg);

#ifdef __cplusplus
}
#endif

#endif
