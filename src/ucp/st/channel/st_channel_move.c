/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_channel_move.c - ends that migrate.
 *
 * An end E that is to be moved tells the other one, P, to stop, and how many
 * messages it has sent (STOP). P answers with the number of its own (STOPPED),
 * and puts off what it sends from then on. So E knows which messages are still
 * under way to it: it receives them into memory of its own, and takes them
 * along (kept). When its sends are over, too, nothing is under way, and E is
 * quiet.
 *
 *     E            STOP(sent)                P
 *     MOVING  ------------------------->   stopped: sends are put off
 *       |     <-------------------------
 *       |          STOPPED(sent)
 *     receives and keeps up to that
 *     number; its sends end
 *       |
 *     QUIET, packed, unpacked elsewhere    rebind: sends what was put off
 *
 * Both may be moved at once: a STOP that meets a MOVING end is an answer. An
 * end that was stopped cannot begin before rebind, as it does not know where
 * the other one is. After a move E may be moved again, and its STOP come before
 * P was told where E is: the answer waits for rebind (asked), by the numbers
 * of moves. P receives all the time: E sends from its new place with the tags
 * of before.
 *
 * Posted receives of E are cancelled, and their numbers are given to messages
 * that are kept, or again after the move. UCP matches in the order of arrival,
 * so the cancelled ones are mostly the last; it does not matter.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "channel/st_channel.h"
#include "core/st_log.h"

#include <ucs/type/status.h>

#include <stdlib.h>
#include <string.h>

/* The first bytes of a packed end, and the version of the rest */
#define ST_CHANNEL_PACK_MAGIC 0x55535443
#define ST_CHANNEL_PACK       2


/** A packed end; its kept messages follow, each as number, length, data. */
typedef struct st_channel_packed {
    uint32_t magic;
    uint32_t version;
    uint32_t end;
    uint32_t is_stopped;
    uint32_t id_width;
    uint32_t counter_width;
    uint64_t id;
    uint64_t sent;
    uint64_t received;
    uint64_t moves;
    uint64_t bound;
    uint64_t asked;
    uint64_t num_kept;
} st_channel_packed_t;

typedef struct st_channel_packed_msg {
    uint64_t number;
    uint64_t length;
} st_channel_packed_msg_t;


static void st_channel_move_ended(ucp_st_channel_h channel, ucs_status_t status)
{
    ucp_st_channel_cb_t cb = channel->quiet_cb;

    ucs_list_del(&channel->moving);
    st_channel_waits_end(channel);
    channel->state = (status == UCS_OK) ? ST_CHANNEL_QUIET : ST_CHANNEL_OPEN;
    if (cb != NULL) {
        cb(channel->quiet_arg, status, 0);
    }
}

/* The other end was told to stop, or cannot be. The channel may be destroyed.
 * A stop of the other end that was taken for an answer still waits for one. */
static void st_channel_move_stop_sent(void *arg, ucs_status_t status,
                                      size_t length)
{
    ucp_st_channel_h channel = arg;

    (void)length;
    if ((status != UCS_OK) && (channel->state == ST_CHANNEL_MOVING)) {
        channel->quiet_status = status;
        channel->is_told      = 0;
        --channel->moves;
        if (channel->is_stopped) {
            channel->asked = channel->bound + 1;
        }
    }
    st_channel_release(channel);
}

static void st_channel_move_answered(ucp_st_channel_h channel,
                                     ucs_status_t status)
{
    if (status != UCS_OK) {
        ucs_error("channel %lu: its end %u cannot be told to go on moving: %s",
                  (unsigned long)channel->id, !channel->end,
                  ucs_status_string(status));
    }
}

static void st_channel_move_answer_sent(void *arg, ucs_status_t status,
                                        size_t length)
{
    ucp_st_channel_h channel = arg;

    (void)length;
    st_channel_move_answered(channel, status);
    st_channel_release(channel);
}

/* Tells the other end, with the number of the first message that UCP was not
 * given */
static ucs_status_t st_channel_move_tell(ucp_st_channel_h channel,
                                         st_channel_kind_t kind, uint64_t moves)
{
    const st_channel_control_t control = {
        .kind  = kind,
        .end   = channel->end,
        .id    = channel->id,
        .count = ucs_list_is_empty(&channel->put_off) ?
                         channel->sent :
                         ucs_list_head(&channel->put_off, st_channel_op_t,
                                       link)->number,
        .moves = moves
    };
    const ucp_st_channel_msg_t none = {
        .cb  = (kind == ST_CHANNEL_STOP) ? st_channel_move_stop_sent :
                                           st_channel_move_answer_sent,
        .arg = channel
    };
    ucs_status_t status;

    st_channel_hold(channel);
    status = st_channel_ctrl_send(channel->ctx, channel->ep, &control, &none);
    if (status != UCS_OK) {
        st_channel_release(channel);
    }
    return status;
}

/* Answers a stop that came from where the endpoint leads */
static void st_channel_move_answer(ucp_st_channel_h channel)
{
    uint64_t moves = channel->asked;

    if ((moves == 0) || (moves != channel->bound + 1) ||
        (channel->ep == NULL)) {
        return;
    }
    channel->is_stopped = 1;
    channel->asked      = 0;
    st_channel_move_answered(channel,
                             st_channel_move_tell(channel, ST_CHANNEL_STOPPED,
                                                  moves));
}

void st_channel_move_told(ucp_st_channel_h channel,
                          const st_channel_control_t *control)
{
    if ((control->kind == ST_CHANNEL_STOPPED) &&
        ((channel->state != ST_CHANNEL_MOVING) ||
         (control->moves != channel->moves))) {
        return; /* Of a move that was given up */
    }
    channel->count      = control->count;
    channel->is_counted = 1;
    if (control->kind == ST_CHANNEL_STOPPED) {
        return;
    }
    channel->is_stopped = 1;
    if ((channel->state != ST_CHANNEL_MOVING) || !channel->is_told) {
        channel->asked = control->moves;
    } /* else it has told its number itself */
    if (channel->state == ST_CHANNEL_OPEN) {
        st_channel_move_answer(channel);
    }
}

ucs_status_t st_channel_move_again(ucp_st_channel_h channel, uint64_t number)
{
    size_t i = channel->num_again;
    uint64_t *again;

    again = realloc(channel->again, (i + 1) * sizeof(*again));
    if (again == NULL) {
        channel->quiet_status = UCS_ERR_NO_MEMORY;
        return UCS_ERR_NO_MEMORY;
    }
    for (; (i > 0) && (again[i - 1] > number); --i) {
        again[i] = again[i - 1];
    }
    again[i]       = number;
    channel->again = again;
    ++channel->num_again;
    return UCS_OK;
}

ucs_status_t ucp_st_channel_quiesce(ucp_st_channel_h channel,
                                    ucp_st_channel_cb_t cb, void *arg)
{
    ucs_status_t status;

    if (channel == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (channel->is_explicit) {
        return UCS_ERR_UNSUPPORTED;
    }
    if ((channel->state != ST_CHANNEL_OPEN) || channel->is_dead ||
        channel->is_stopped || (channel->asked != 0) ||
        (channel->num_uses > 0) || (kh_size(&channel->pairs) > 0)) {
        return UCS_ERR_BUSY;
    }
    if (channel->ep == NULL) {
        return UCS_ERR_NOT_CONNECTED;
    }
    /* Before it is told: to the own PE, the answer comes in the call */
    ++channel->moves;
    channel->is_counted   = 0;
    channel->is_told      = 1;
    channel->quiet_cb     = cb;
    channel->quiet_arg    = arg;
    channel->quiet_status = UCS_OK;
    channel->state        = ST_CHANNEL_MOVING;
    ucs_list_add_tail(&channel->ctx->moving, &channel->moving);
    status = st_channel_move_tell(channel, ST_CHANNEL_STOP, channel->moves);
    if (status != UCS_OK) {
        ucs_list_del(&channel->moving);
        channel->state = ST_CHANNEL_OPEN;
        --channel->moves;
        return status;
    }
    st_channel_hold(channel);
    st_channel_cancel(channel);
    st_channel_release(channel);
    return UCS_INPROGRESS;
}

/* A message is kept, or lost with its endpoint, or with its channel */
static void st_channel_move_kept(st_channel_op_t *op)
{
    ucp_st_channel_h channel = op->channel;
    st_channel_kept_t *kept  = op->msg.arg;

    if (channel == NULL) {
        free(kept);
    } else {
        --channel->drains;
        kept->is_here = 1;
        if (op->status != UCS_OK) {
            ucs_list_del(&kept->link);
            --channel->num_kept;
            free(kept);
            channel->quiet_status = op->status;
        }
    }
    st_channel_op_put(op);
}

/* Receives a message that has come */
static ucs_status_t st_channel_move_keep(ucp_st_channel_h channel,
                                         uint64_t number, uint64_t tag,
                                         size_t length)
{
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;
    st_channel_kept_t *kept  = malloc(sizeof(*kept) + length);
    ucp_st_channel_msg_t msg = {.length = length, .arg = kept};
    st_channel_op_t *op      = st_channel_op_get(channel->ctx, channel, &msg);
    ucs_status_t status;

    if ((kept == NULL) || (op == NULL)) {
        free(kept);
        if (op != NULL) {
            st_channel_op_put(op);
        }
        return UCS_ERR_NO_MEMORY;
    }
    kept->number   = number;
    kept->length   = length;
    kept->is_here  = 0;
    op->msg.buffer = kept->data;
    op->done       = st_channel_move_kept;
    ucs_list_add_tail(&channel->kept, &kept->link);
    ++channel->num_kept;
    ++channel->drains;
    /* Once there is memory for it, the message leaves UCP */
    message = ucp_tag_probe_nb(channel->ctx->worker, tag, UINT64_MAX, 1, &info);
    status  = st_channel_op_recv_message(op, &channel->recvs, message);
    if (status != UCS_INPROGRESS) {
        op->channel = channel->is_dead ? NULL : channel;
        op->status  = status;
        st_channel_move_kept(op);
    }
    return UCS_OK;
}

void st_channel_move_took(ucp_st_channel_h channel)
{
    --channel->num_again;
    memmove(channel->again, channel->again + 1,
            channel->num_again * sizeof(*channel->again));
}

/* Looks for the next message that is under way: of the numbers whose receives
 * were cancelled, then of those behind `received`. Whether one has come. */
static int st_channel_move_drain(ucp_st_channel_h channel)
{
    int is_again    = (channel->num_again > 0);
    uint64_t number = is_again ? channel->again[0] : channel->received;
    uint64_t tag    = st_channel_tag(channel, !channel->end, number);
    ucp_tag_recv_info_t info;
    ucs_status_t status;

    if (ucp_tag_probe_nb(channel->ctx->worker, tag, UINT64_MAX, 0, &info) ==
        NULL) {
        return 0;
    }
    status = st_channel_move_keep(channel, number, tag, info.length);
    if (status != UCS_OK) {
        channel->quiet_status = status;
        return 0;
    }
    if (channel->is_dead) {
        return 0; /* A callback has destroyed it */
    }
    if (is_again) {
        st_channel_move_took(channel);
    } else {
        ++channel->received;
    }
    return 1;
}

/* Whether messages are under way that did not come */
static int st_channel_move_expects(ucp_st_channel_h channel)
{
    return ((channel->num_again > 0) &&
            (channel->count > channel->again[0])) ||
           (channel->count > channel->received);
}

/* The channel is held. Receives that were cancelled may end later than in the
 * call: none is looked for before. */
unsigned st_channel_move_progress(ucp_st_channel_h channel)
{
    unsigned count = 0;

    if (channel->is_counted &&
        (ucs_list_length(&channel->recvs) == channel->drains)) {
        while (!channel->is_dead && (channel->quiet_status == UCS_OK) &&
               st_channel_move_expects(channel) &&
               st_channel_move_drain(channel)) {
            ++count;
        }
    }
    if (channel->is_dead) { /* By a callback */
        return count;
    }
    if (channel->quiet_status != UCS_OK) {
        st_channel_move_ended(channel, channel->quiet_status);
        return count + 1;
    }
    if (!channel->is_counted || st_channel_move_expects(channel) ||
        !ucs_list_is_empty(&channel->recvs) ||
        !ucs_list_is_empty(&channel->sends)) {
        return count;
    }
    /* What was cancelled and not sent is next again */
    channel->received  = channel->count;
    channel->num_again = 0;
    st_channel_move_ended(channel, UCS_OK);
    return count + 1;
}

void st_channel_move_cleanup(ucp_st_channel_h channel)
{
    st_channel_kept_t *kept, *next;

    ucs_list_for_each_safe(kept, next, &channel->kept, link) {
        if (kept->is_here) {
            free(kept);
        } /* else it is its operation's */
    }
    free(channel->again);
}

static size_t st_channel_pack_length(ucp_st_channel_h channel)
{
    size_t length = sizeof(st_channel_packed_t);
    const st_channel_kept_t *kept;

    ucs_list_for_each(kept, &channel->kept, link) {
        length += sizeof(st_channel_packed_msg_t) + kept->length;
    }
    return length;
}

ucs_status_t ucp_st_channel_pack(ucp_st_channel_h channel, void *buffer,
                                 size_t *length_p)
{
    const ucp_st_tag_layout_t *layout;
    st_channel_packed_msg_t message;
    const st_channel_kept_t *kept;
    st_channel_packed_t packed;
    uint8_t *place = buffer;
    size_t length, room;

    if ((channel == NULL) || (length_p == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (channel->state != ST_CHANNEL_QUIET) {
        return UCS_ERR_BUSY;
    }
    room      = *length_p;
    length    = st_channel_pack_length(channel);
    *length_p = length;
    if (buffer == NULL) {
        return UCS_OK;
    }
    if (room < length) {
        return UCS_ERR_BUFFER_TOO_SMALL;
    }
    layout = &channel->ctx->layout;
    packed = (st_channel_packed_t){
        .magic         = ST_CHANNEL_PACK_MAGIC,
        .version       = ST_CHANNEL_PACK,
        .end           = channel->end,
        .is_stopped    = (uint32_t)channel->is_stopped,
        .id_width      = layout->id.width,
        .counter_width = layout->counter.width,
        .id            = channel->id,
        .sent          = channel->sent,
        .received      = channel->received,
        .moves         = channel->moves,
        .bound         = channel->bound,
        .asked         = channel->asked,
        .num_kept      = channel->num_kept
    };
    memcpy(place, &packed, sizeof(packed));
    place += sizeof(packed);
    ucs_list_for_each(kept, &channel->kept, link) {
        message = (st_channel_packed_msg_t){kept->number, kept->length};
        memcpy(place, &message, sizeof(message));
        memcpy(place + sizeof(message), kept->data, kept->length);
        place += sizeof(message) + kept->length;
    }
    return UCS_OK;
}

/* The kept messages of a packed end */
static ucs_status_t st_channel_unpack_kept(ucp_st_channel_h channel,
                                           const uint8_t *place, size_t length,
                                           size_t count)
{
    st_channel_packed_msg_t message;
    st_channel_kept_t *kept;

    for (; count > 0; --count) {
        if (length < sizeof(message)) {
            return UCS_ERR_INVALID_PARAM;
        }
        memcpy(&message, place, sizeof(message));
        place  += sizeof(message);
        length -= sizeof(message);
        if (message.length > length) {
            return UCS_ERR_INVALID_PARAM;
        }
        kept = malloc(sizeof(*kept) + message.length);
        if (kept == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        kept->number  = message.number;
        kept->length  = message.length;
        kept->is_here = 1;
        memcpy(kept->data, place, message.length);
        place  += message.length;
        length -= message.length;
        ucs_list_add_tail(&channel->kept, &kept->link);
        ++channel->num_kept;
    }
    return (length == 0) ? UCS_OK : UCS_ERR_INVALID_PARAM;
}

/* Whether bytes begin as a packed end of a context's layout does */
static int st_channel_is_packed(ucp_st_channel_ctx_h ctx,
                                const ucp_st_channel_params_t *params,
                                const st_channel_packed_t *packed)
{
    return (packed->magic == ST_CHANNEL_PACK_MAGIC) &&
           (packed->version == ST_CHANNEL_PACK) &&
           (packed->id_width == ctx->layout.id.width) &&
           (packed->counter_width == ctx->layout.counter.width) &&
           (!(params->field_mask & UCP_ST_CHANNEL_PARAM_FIELD_ID) ||
            (params->id == packed->id)) &&
           (!(params->field_mask & UCP_ST_CHANNEL_PARAM_FIELD_END) ||
            (params->end == packed->end));
}

ucs_status_t ucp_st_channel_unpack(ucp_st_channel_ctx_h ctx,
                                   const ucp_st_channel_params_t *params,
                                   const void *buffer, size_t length,
                                   ucp_st_channel_h *channel_p)
{
    ucp_st_channel_params_t all;
    st_channel_packed_t packed;
    ucp_st_channel_h channel;
    ucs_status_t status;

    if ((ctx == NULL) || (params == NULL) || (buffer == NULL) ||
        (channel_p == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (length >= sizeof(packed)) {
        memcpy(&packed, buffer, sizeof(packed));
    }
    if ((length < sizeof(packed)) ||
        !st_channel_is_packed(ctx, params, &packed)) {
        ucs_error("%zu bytes are no end of a channel that was packed with this "
                  "layout", length);
        return UCS_ERR_INVALID_PARAM;
    }
    /* What is not set may not be there, in a program of an older header */
    all = (ucp_st_channel_params_t){
        .field_mask = params->field_mask | UCP_ST_CHANNEL_PARAM_FIELD_ID |
                      UCP_ST_CHANNEL_PARAM_FIELD_END,
        .id         = packed.id,
        .end        = packed.end
    };
    if (params->field_mask & UCP_ST_CHANNEL_PARAM_FIELD_EP) {
        all.ep = params->ep;
    }
    if (params->field_mask & UCP_ST_CHANNEL_PARAM_FIELD_PEER) {
        all.peer = params->peer;
    }
    status = st_channel_make(ctx, &all, &channel);
    if (status != UCS_OK) {
        return status;
    }
    channel->sent     = packed.sent;
    channel->received = packed.received;
    channel->moves    = packed.moves;
    channel->bound    = packed.bound;
    channel->asked    = packed.asked;
    status = st_channel_unpack_kept(channel,
                                    (const uint8_t*)buffer + sizeof(packed),
                                    length - sizeof(packed), packed.num_kept);
    if (status != UCS_OK) {
        ucs_error("channel %lu: its packed messages are cut off",
                  (unsigned long)packed.id);
        (void)ucp_st_channel_destroy(channel);
        return status;
    }
    channel->is_stopped = (packed.is_stopped != 0);
    *channel_p          = channel;
    st_channel_take_early(channel);
    return UCS_OK;
}

ucs_status_t ucp_st_channel_rebind(ucp_st_channel_h channel,
                                   const ucp_st_channel_params_t *params)
{
    if ((channel == NULL) || (params == NULL) ||
        !(params->field_mask & UCP_ST_CHANNEL_PARAM_FIELD_EP) ||
        (params->ep == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (channel->state == ST_CHANNEL_MOVING) {
        return UCS_ERR_BUSY;
    }
    channel->ep = params->ep;
    if (params->field_mask & UCP_ST_CHANNEL_PARAM_FIELD_PEER) {
        channel->peer = params->peer;
    }
    channel->state = ST_CHANNEL_OPEN;
    /* Unless the other end was not moved yet, and only wants to be */
    if (channel->is_stopped && (channel->asked != channel->bound + 1)) {
        ++channel->bound;
        channel->is_stopped = 0;
    }
    st_channel_hold(channel);
    st_channel_send_put_off(channel);
    if (!channel->is_dead) {
        st_channel_move_answer(channel);
    }
    st_channel_release(channel);
    return UCS_OK;
}
