/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_channel.h - contexts and channels inside.
 *
 * All of it belongs to the thread that makes the calls. In a context with an st
 * worker a thread of the library may progress the UCP worker: then what UCP
 * completes is pushed to a stack, which ucp_st_channel_progress() empties.
 */
#ifndef UCP_ST_CHANNEL_INT_H_
#define UCP_ST_CHANNEL_INT_H_

#include "core/st_stack.h"

#include <ucp_st_msg.h>

#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/list.h>

#define ST_CHANNEL_BUCKETS 256

/* The longest message that the library tells itself, and how many receives of
 * them are posted */
#define ST_CHANNEL_CONTROL_MAX 4096
#define ST_CHANNEL_CONTROLS    4

typedef struct st_channel_op st_channel_op_t;

/** What finds a matched buffer of a channel. */
typedef struct st_channel_pair_key {
    uintptr_t buffer;
    size_t    length;
    int       is_send;
} st_channel_pair_key_t;

static inline khint_t st_channel_pair_hash(st_channel_pair_key_t key)
{
    return kh_int64_hash_func((key.buffer * 0x9e3779b97f4a7c15ul) +
                              (2 * key.length) + key.is_send);
}

static inline int st_channel_pair_equal(st_channel_pair_key_t a,
                                        st_channel_pair_key_t b)
{
    return (a.buffer == b.buffer) && (a.length == b.length) &&
           (a.is_send == b.is_send);
}

struct st_channel_pair;

KHASH_INIT(st_channel_pairs, st_channel_pair_key_t, struct st_channel_pair*, 1,
           st_channel_pair_hash, st_channel_pair_equal)

/** UCP is done with an operation, whose status and length are set. The
 *  operation is out of all lists and its function frees it. */
typedef void (*st_channel_done_t)(st_channel_op_t *op);

/** Where an operation is that UCP gets. */
enum {
    ST_CHANNEL_OP_GIVEN,    /* The call to UCP has not returned */
    ST_CHANNEL_OP_POSTED,   /* It has */
    ST_CHANNEL_OP_COMPLETED /* UCP has called back */
};

/** An operation under way: from the call to its callback. */
struct st_channel_op {
    ucp_st_stack_item_t  item;     /* In the context's stack, or list of free
                                      ones */
    ucs_list_link_t      link;     /* In a list of the channel, or context */
    ucp_st_channel_ctx_h ctx;
    ucp_st_channel_h     channel;  /* NULL: none, or destroyed */
    void                 *request; /* UCP's; NULL while UCP has none */
    int                  stage;    /* Atomic */
    st_channel_done_t    done;
    ucp_st_channel_msg_t msg;      /* Its length is at last what was received */
    uint64_t             tag;
    uint64_t             number;
    ucs_status_t         status;
};

/** A message that came while its end was moved. */
typedef struct st_channel_kept {
    ucs_list_link_t link; /* In the order of the numbers */
    uint64_t        number;
    size_t          length;
    int             is_here; /* UCP has written all of it */
    uint8_t         data[];
} st_channel_kept_t;

/** Kinds of control messages. */
typedef enum {
    ST_CHANNEL_STOP,    /* An end is to be moved: put off sends */
    ST_CHANNEL_STOPPED, /* The answer */
    ST_CHANNEL_META     /* Of ucp_st_msg.h */
} st_channel_kind_t;

/** The first bytes of a control message, in the byte order of the machine. */
typedef struct st_channel_control {
    uint32_t kind;
    uint32_t end;   /* That sends it */
    uint64_t id;    /* ST_CHANNEL_META: the tag */
    uint64_t count; /* The number of its next send; ST_CHANNEL_META: the
                       length */
    uint64_t moves; /* How often it was to be moved, this one included */
} st_channel_control_t;

/** A control message of a channel that is not there yet. */
typedef struct st_channel_early {
    ucs_list_link_t      link;
    st_channel_control_t control;
} st_channel_early_t;

struct ucp_st_channel_ctx {
    ucp_worker_h        worker;
    ucp_st_worker_h     st_worker; /* Or NULL */
    ucp_st_tag_layout_t layout;
    ucp_st_stack_t      completed; /* Operations; with an st worker */
    ucp_st_stack_item_t *unused;   /* Operations */
    size_t              num_ops;   /* That are used, */
    size_t              num_controls; /* ... for receives of control messages */
    size_t              num_channels;
    ucs_list_link_t     channels[ST_CHANNEL_BUCKETS];
    ucs_list_link_t     orphans;   /* Operations of destroyed channels, of
                                      messages, and of control messages */
    ucs_list_link_t     moving;    /* Channels that become quiet */
    ucs_list_link_t     uses;      /* Operations on streams */
    ucs_list_link_t     pairs;     /* That are being matched, or freed */
    ucs_list_link_t     early;
    uint64_t            num_msgs;  /* Messages that were sent */
    ucs_list_link_t     drops;     /* Receives of messages to throw away */
    ucs_list_link_t     told;      /* Metadata to be handed over, */
    ucp_st_msg_post_t   post;      /* ... to this; or NULL, */
    void                *post_arg;
    int                 is_posting; /* ... which is being done */
    st_channel_op_t     *controls[ST_CHANNEL_CONTROLS]; /* Receives */
    int                 is_closing;
    unsigned            idle;      /* Rounds of progress that found nothing */
    double              look_time; /* Of the last look for what waits, s */
};

/** What an end does about its being moved. */
typedef enum {
    ST_CHANNEL_OPEN,
    ST_CHANNEL_MOVING, /* Becomes quiet */
    ST_CHANNEL_QUIET
} st_channel_state_t;

struct ucp_st_channel {
    ucs_list_link_t      link;       /* In its bucket */
    ucp_st_channel_ctx_h ctx;
    ucp_ep_h             ep;         /* Or NULL */
    ucp_st_peer_h        peer;       /* Or NULL */
    uint64_t             id;
    unsigned             end;
    uint64_t             tags[2];    /* Of what ends 0 and 1 send, without the
                                        number */
    uint64_t             sent;       /* Number of the next send; numbers wrap
                                        in tags alone */
    uint64_t             received;   /* Of the next receive behind `kept` */
    ucs_list_link_t      sends;      /* Operations that UCP has */
    ucs_list_link_t      recvs;
    ucs_list_link_t      put_off;    /* Sends, in the order of their numbers */
    ucs_list_link_t      kept;
    size_t               num_kept;
    int                  is_explicit; /* Numbers were the caller's */
    khash_t(st_channel_pairs) pairs; /* Matched buffers */
    uint64_t             num_pairs[2]; /* Receives and sends that were given to
                                          match */
    size_t               num_uses;   /* Operations on streams under way */
    unsigned             holds;      /* Calls that use it behind callbacks */
    int                  is_dead;    /* Destroyed, and held */

    st_channel_state_t   state;
    ucs_list_link_t      moving;     /* In the context's list */
    ucp_st_channel_cb_t  quiet_cb;
    void                 *quiet_arg;
    ucs_status_t         quiet_status; /* Of telling the other end */
    uint64_t             *again;     /* Numbers whose receives were
                                        cancelled, */
    size_t               num_again;  /* ascending */
    size_t               drains;     /* Messages that are being kept */
    uint64_t             moves;      /* Of this end */
    uint64_t             bound;      /* Of the other one, that rebind told */
    int                  is_stopped; /* The other end is being moved */
    int                  is_counted; /* `count` is known */
    int                  is_told;    /* The other end, of this move, or will
                                        be */
    uint64_t             asked;      /* The other one's move that waits for an
                                        answer; 0: none */
    uint64_t             count;      /* The other end's next number */
    double               waits_since; /* For the other end, s; 0: it does not */
    uint64_t             waits_number; /* Which of its waits that is */
    int                  is_noted;   /* A note of it was made, or tried */
    ucp_st_note_h        note;       /* That one; or NULL */
};


/* st_channel.c */

/** The largest value of a field of a layout that was checked. */
static inline uint64_t st_channel_mask(const ucp_st_tag_field_t *field)
{
    return (1ull << field->width) - 1;
}

static inline uint64_t st_channel_put(const ucp_st_tag_field_t *field,
                                      uint64_t value)
{
    return value << field->first;
}

/** Create an end, as ucp_st_channel_create(), whose early messages are then
 *  taken. */
ucs_status_t st_channel_make(ucp_st_channel_ctx_h ctx,
                             const ucp_st_channel_params_t *params,
                             ucp_st_channel_h *channel_p);
void st_channel_take_early(ucp_st_channel_h channel);

/** The end of a channel that is here, or NULL. */
ucp_st_channel_h st_channel_find(ucp_st_channel_ctx_h ctx, uint64_t id,
                                 unsigned end);

/** The tag of a message that an end sends. */
uint64_t st_channel_tag(ucp_st_channel_h channel, unsigned end,
                        uint64_t number);

/** Begin all sends that were put off. */
void st_channel_send_put_off(ucp_st_channel_h channel);

/** Cancel receives that have not matched, and sends that were put off. The
 *  channel is held. */
void st_channel_cancel(ucp_st_channel_h channel);

/** Have a channel live through callbacks, in which it may be destroyed. */
void st_channel_hold(ucp_st_channel_h channel);
void st_channel_release(ucp_st_channel_h channel);


/* st_channel_op.c: operations that UCP has */

/** Get an operation for a message; NULL without memory. */
st_channel_op_t *st_channel_op_get(ucp_st_channel_ctx_h ctx,
                                   ucp_st_channel_h channel,
                                   const ucp_st_channel_msg_t *msg);

void st_channel_op_put(st_channel_op_t *op);

/** Put one back, and call back for it. */
void st_channel_op_tell(st_channel_op_t *op, ucs_status_t status);

/** UCP is done with an operation, which is in a list. */
void st_channel_op_end(st_channel_op_t *op);

/** Give a send, or a receive, or one of a message that was probed, to UCP, with
 *  what `msg` and `tag` say. UCS_OK and errors give the operation back to the
 *  caller. UCS_INPROGRESS: it is in the list until its `done` is called. */
ucs_status_t st_channel_op_send(st_channel_op_t *op, ucs_list_link_t *list,
                                ucp_ep_h ep);
ucs_status_t st_channel_op_recv(st_channel_op_t *op, ucs_list_link_t *list,
                                uint64_t mask);
ucs_status_t st_channel_op_recv_message(st_channel_op_t *op,
                                        ucs_list_link_t *list,
                                        ucp_tag_message_h message);


/* st_channel_ctrl.c: control messages */

ucs_status_t st_channel_ctrl_init(ucp_st_channel_ctx_h ctx);
void st_channel_ctrl_cleanup(ucp_st_channel_ctx_h ctx);

/** Send one, with the bytes of a message behind it, which are copied. Its
 *  callback is called in any case but that of an error that is returned. */
ucs_status_t st_channel_ctrl_send(ucp_st_channel_ctx_h ctx, ucp_ep_h ep,
                                  const st_channel_control_t *control,
                                  const ucp_st_channel_msg_t *more);


/* st_msg.c: messages whose metadata comes first */

/** Metadata have come, with a header. */
void st_msg_take(ucp_st_channel_ctx_h ctx, const st_channel_control_t *control,
                 const void *header, size_t length);

/** Cancel the receives of messages to throw away that have not come. */
void st_msg_give_up(ucp_st_channel_ctx_h ctx);

/** Forget metadata that nobody took. */
void st_msg_cleanup(ucp_st_channel_ctx_h ctx);


/* st_channel_move.c: migration */

/** A control message of the other end. */
void st_channel_move_told(ucp_st_channel_h channel,
                          const st_channel_control_t *control);

/** A receive was cancelled while the end becomes quiet: its number is free. */
ucs_status_t st_channel_move_again(ucp_st_channel_h channel, uint64_t number);

/** The first of these numbers is given to a receive, or message. */
void st_channel_move_took(ucp_st_channel_h channel);

/** Carry on with an end that becomes quiet. Non-zero if something was done. */
unsigned st_channel_move_progress(ucp_st_channel_h channel);

/** Forget what a channel has of it. */
void st_channel_move_cleanup(ucp_st_channel_h channel);


/* st_channel_waits.c: what waits for other ends */

/** A round of progress found nothing: look now and then. */
void st_channel_waits_progress(ucp_st_channel_ctx_h ctx);

/** What a channel waited for is over. */
void st_channel_waits_end(ucp_st_channel_h channel);


/* st_channel_stream.c: operations on streams */

/** Carry on with them. Non-zero if something was done. */
unsigned st_channel_stream_progress(ucp_st_channel_ctx_h ctx);

/** Release the pairs of a channel that is destroyed. */
void st_channel_stream_cleanup(ucp_st_channel_h channel);


#endif
