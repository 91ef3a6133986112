/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st_msg.h - messages between objects whose metadata comes first, for
 * runtimes with message-driven objects.
 *
 * The sender begins to send the data and makes their metadata, which are a tag
 * and a length. Only with these the receiver can receive the data, so it
 * chooses a buffer when it learns of them. The runtime carries the metadata in
 * a message of its own:
 *
 *     PE 0                                     PE 1
 *     ucp_st_msg_send(ctx, ep, 0, a, &meta)
 *     the runtime's message with meta     ->   finds meta, chooses b
 *                                              ucp_st_msg_recv(ctx, &meta, b)
 *     ucp_worker_progress()                    ucp_worker_progress()
 *       the callback of the send                 the callback of the receive
 *
 * or leaves that to the library, together with a header of its own:
 *
 *                                              ucp_st_msg_set_post(ctx, post)
 *     ucp_st_msg_send_post(ctx, ep, 0, header, a)
 *                                              ucp_worker_progress()
 *                                                post(meta, header): chooses b
 *                                                ucp_st_msg_recv(ctx, meta, b)
 *
 * Contexts, layouts of tags and callbacks are those of ucp_st_channel.h, and so
 * are the rules: no thread, no lock, and no call blocks; UCS_OK is returned for
 * what is done, without a callback, and UCS_INPROGRESS for what calls back
 * exactly once. Callbacks may call everything here. Every call may return
 * UCS_ERR_INVALID_PARAM for a NULL handle or pointer, unless NULL is legal, and
 * UCS_ERR_NO_MEMORY.
 *
 * A message to the own PE may arrive within the call that sends it, as UCX has
 * it: callbacks of receives, and a post function, are then called in there.
 *
 * Threads: as ucp_st_channel.h.
 */
#ifndef UCP_ST_MSG_H_
#define UCP_ST_MSG_H_

#include <ucp_st_channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The longest header of @ref ucp_st_msg_send_post, in bytes. */
#define UCP_ST_MSG_HEADER_MAX 4096


/** What the receiver has to know of a message. Plain data, to be copied and
 *  sent as the runtime likes, in the byte order of the machine. */
typedef struct ucp_st_msg_meta {
    uint64_t tag;    /**< Of the data */
    uint64_t length; /**< Of the data, in bytes */
} ucp_st_msg_meta_t;


/** A receive under way: from @ref ucp_st_msg_recv to its callback. */
typedef struct ucp_st_msg *ucp_st_msg_h;


/**
 * Begin to send the data of a message.
 *
 * @param [in]  ctx    The context.
 * @param [in]  ep     To the worker that is to receive them, which may be the
 *                     own one.
 * @param [in]  pe     The number of the sender, which it alone uses. It makes
 *                     the tag together with a count of the messages of the
 *                     context, which begins again behind the largest one that
 *                     the layout has. What was sent so long ago must have been
 *                     received.
 * @param [in]  msg    What is sent; copied.
 * @param [out] meta   Filled on success only: for the receiver.
 *
 * @return UCS_OK: the buffer may be reused; UCS_INPROGRESS: once it was called
 *         back, which may be only when the data are received or dropped;
 *         UCS_ERR_OUT_OF_RANGE for a number of a PE that does not fit into the
 *         layout; an error of ucp_tag_send_nbx(), such as that of a failed
 *         endpoint.
 */
ucs_status_t ucp_st_msg_send(ucp_st_channel_ctx_h ctx, ucp_ep_h ep, uint64_t pe,
                             const ucp_st_channel_msg_t *msg,
                             ucp_st_msg_meta_t *meta);


/**
 * Receive the data of a message, once: they may have come, or come later.
 *
 * @param [in]  ctx      The context.
 * @param [in]  meta     What the sender has made; copied.
 * @param [in]  msg      Where to; copied.
 * @param [out] length_p Filled on UCS_OK with the bytes received; may be NULL.
 * @param [out] req_p    Filled on UCS_INPROGRESS only, for
 *                       @ref ucp_st_msg_cancel; may be NULL.
 *
 * @return UCS_OK: they are there; UCS_INPROGRESS: once it was called back;
 *         UCS_ERR_MESSAGE_TRUNCATED: they are longer than the room, and can be
 *         received by another call; UCS_ERR_INVALID_PARAM if the tag is none of
 *         a message; an error of ucp_tag_recv_nbx().
 *
 * If the sender dies, long data that are under way may never be over: UCX 1.13
 * keeps their receive, and the context then cannot be destroyed.
 *
 * Ownership: *req_p is the library's, and gone when the callback is called.
 */
ucs_status_t ucp_st_msg_recv(ucp_st_channel_ctx_h ctx,
                             const ucp_st_msg_meta_t *meta,
                             const ucp_st_channel_msg_t *msg, size_t *length_p,
                             ucp_st_msg_h *req_p);


/**
 * Cancel a receive. If no data have come it calls back UCS_ERR_CANCELED, in
 * this call, or from ucp_st_channel_progress() if the context has an st worker;
 * its data can then be received by another call. Otherwise it goes on and calls
 * back as it would have.
 *
 * @param [in] req The receive, which has not called back.
 *
 * @return UCS_OK.
 */
ucs_status_t ucp_st_msg_cancel(ucp_st_msg_h req);


/**
 * Throw away the data of a message instead of receiving them, now or when they
 * come, so that the sender's operation ends and they take up no memory.
 *
 * @param [in] ctx  The context. ucp_st_channel_ctx_destroy() gives up what has
 *                  not come until then.
 * @param [in] meta What the sender has made; copied.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if the tag is none of a message; an
 *         error of ucp_tag_recv_nbx().
 */
ucs_status_t ucp_st_msg_drop(ucp_st_channel_ctx_h ctx,
                             const ucp_st_msg_meta_t *meta);


/** Called for a message of @ref ucp_st_msg_send_post, at its receiver: it calls
 *  @ref ucp_st_msg_recv or @ref ucp_st_msg_drop in there, or later with a copy
 *  of the metadata. It is not called while it runs: what arrives meanwhile
 *  comes next.
 *
 * @param [in] arg           As it was given.
 * @param [in] meta          The metadata; valid in the call.
 * @param [in] header        The sender's header; valid in the call, and aligned
 *                           to 16 bytes.
 * @param [in] header_length In bytes.
 */
typedef void (*ucp_st_msg_post_t)(void *arg, const ucp_st_msg_meta_t *meta,
                                  const void *header, size_t header_length);


/**
 * Set the function that is called when metadata arrive, from
 * ucp_worker_progress() or, if the context has an st worker, from
 * ucp_st_channel_progress(). Metadata that have come while there was none are
 * kept, and handed over in this call in the order in which they have come.
 * Metadata that nobody took are gone with the context; their data then stay in
 * the UCP worker.
 *
 * @code
 * typedef struct {
 *     ucp_st_channel_ctx_h ctx;
 *     void                 *buffer;
 *     size_t               length;
 *     ucs_status_t         status;
 *     int                  is_done;
 * } object_t;
 *
 * static void on_data(void *arg, ucs_status_t status, size_t length)
 * {
 *     object_t *object = arg;
 *
 *     object->status  = status;
 *     object->length  = length;
 *     object->is_done = 1;
 * }
 *
 * static void on_meta(void *arg, const ucp_st_msg_meta_t *meta,
 *                     const void *header, size_t header_length)
 * {
 *     object_t *objects        = arg;
 *     ucp_st_channel_msg_t msg = {.length = meta->length, .cb = on_data};
 *     size_t length            = 0;
 *     object_t *object;
 *     ucs_status_t status;
 *
 *     if (header_length != sizeof(uint32_t)) {
 *         (void)ucp_st_msg_drop(objects->ctx, meta);
 *         return;
 *     }
 *     object         = &objects[*(const uint32_t*)header];
 *     object->buffer = malloc(meta->length);
 *     msg.buffer     = object->buffer;
 *     msg.arg        = object;
 *     status         = (msg.buffer == NULL) ?
 *                              UCS_ERR_NO_MEMORY :
 *                              ucp_st_msg_recv(object->ctx, meta, &msg,
 *                                              &length, NULL);
 *     if (status != UCS_INPROGRESS) {
 *         on_data(object, status, length);
 *     }
 * }
 * @endcode
 *
 * @param [in] ctx  The context.
 * @param [in] post The function; NULL: keep them again.
 * @param [in] arg  Its argument.
 *
 * @return UCS_OK.
 */
ucs_status_t ucp_st_msg_set_post(ucp_st_channel_ctx_h ctx,
                                 ucp_st_msg_post_t post, void *arg);


/** The runtime's bytes of a message whose metadata the library carries. */
typedef struct ucp_st_msg_header {
    const void *data;  /**< NULL is legal without a length */
    size_t     length; /**< In bytes; UCP_ST_MSG_HEADER_MAX at most */
} ucp_st_msg_header_t;


/**
 * Send a message whose metadata the library carries, to where
 * @ref ucp_st_msg_set_post was or will be called. Metadata from one PE may
 * overtake each other: their order is not kept.
 *
 * @code
 * static ucs_status_t send_to(ucp_st_channel_ctx_h ctx, ucp_ep_h ep,
 *                             uint32_t object, const ucp_st_channel_msg_t *msg)
 * {
 *     const ucp_st_msg_header_t header = {
 *         .data   = &object,
 *         .length = sizeof(object)
 *     };
 *     const uint64_t my_pe             = 0;
 *
 *     return ucp_st_msg_send_post(ctx, ep, my_pe, &header, msg);
 * }
 * @endcode
 *
 * @param [in] ctx    The context.
 * @param [in] ep     As in @ref ucp_st_msg_send.
 * @param [in] pe     The same.
 * @param [in] header For the function that is called at the receiver; copied,
 *                    with its bytes.
 * @param [in] msg    As in @ref ucp_st_msg_send. It calls back when its buffer
 *                    may be reused.
 *
 * @return As @ref ucp_st_msg_send; UCS_ERR_OUT_OF_RANGE for a header that is
 *         too long, too. After an error of ucp_tag_send_nbx() the receiver may
 *         have the metadata, and no data come: the endpoint is of no more use.
 */
ucs_status_t ucp_st_msg_send_post(ucp_st_channel_ctx_h ctx, ucp_ep_h ep,
                                  uint64_t pe,
                                  const ucp_st_msg_header_t *header,
                                  const ucp_st_channel_msg_t *msg);

#ifdef __cplusplus
}
#endif

#endif
