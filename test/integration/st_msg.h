/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_msg.h - one side of a message: a persistent operation, its buffer and its
 * payload, which differs in the source, the destination, the tag and the use.
 *
 * Payloads are written and checked by functions of a stream, which count the
 * uses; so the host may enqueue any number ahead. What goes wrong ends the
 * group, as st_rank.h has it.
 */
#ifndef ST_MSG_H_
#define ST_MSG_H_

#include "st_place.h"
#include "st_rank.h"


/** A side of a message. */
typedef struct st_msg {
    st_rank_t   *me;
    ucp_st_op_h op;
    st_place_t  place;   /**< Its buffer, with a guard behind */
    size_t      length;  /**< Of the send */
    size_t      space;   /**< Of the buffer, without its guard */
    uint64_t    seed;    /**< The same on both sides */
    uint64_t    use;     /**< Payloads written or checked; by the stream */
    uint64_t    started; /**< Starts enqueued; by the host */
    int         is_send;
} st_msg_t;


/** What a side is made from. */
typedef struct st_msg_params {
    st_node_t     *node;  /**< NULL: the rank's own */
    int           is_send;
    int           peer;   /**< Rank */
    uint64_t      tag;
    size_t        length; /**< Of the send */
    size_t        extra;  /**< By so much is the receive's buffer larger */
    ucp_st_mode_t mode;
} st_msg_params_t;


/** Make a side; to be matched. */
void st_msg_init(st_rank_t *me, st_msg_t *msg, const st_msg_params_t *params);

/** Free it; its uses are over. */
void st_msg_free(st_msg_t *msg);

/** Match several sides in one blocking call. */
void st_msg_match(st_rank_t *me, st_msg_t *msgs, size_t count);

/** The same; pairs that find no lane are freed, and those that do are moved to
 *  the front. How many they are; the counterparts are the same at the peers. */
size_t st_msg_match_some(st_rank_t *me, st_msg_t *msgs, size_t count);

void st_msg_start(st_msg_t *msg, ucp_st_queue_h queue);
void st_msg_wait(st_msg_t *msg, ucp_st_queue_h queue);

/** Start or wait for several. */
void st_msg_startall(st_msg_t *msgs, size_t count, ucp_st_queue_h queue);
void st_msg_waitall(st_msg_t *msgs, size_t count, ucp_st_queue_h queue);

/** Enqueue: a send's next payload is written, a receive's is checked. */
void st_msg_work(st_msg_t *msg, ucs_gstream_h stream);

/** Enqueue the first half of a use: a send's payload, and the start. */
void st_msg_begin(st_msg_t *msg, ucp_st_queue_h queue, ucs_gstream_h stream);

/** The other half: the wait, and the check of a receive's payload. */
void st_msg_end(st_msg_t *msg, ucp_st_queue_h queue, ucs_gstream_h stream);

/** Enqueue a use, both halves. */
void st_msg_use(st_msg_t *msg, ucp_st_queue_h queue, ucs_gstream_h stream);

/** The uses that have completed, without a wait. */
uint64_t st_msg_completed(const st_msg_t *msg);

/** Block until all commands of a queue have run, without an error. */
void st_msg_sync(st_rank_t *me, ucp_st_queue_h queue);

/** The same for the stream, with the functions behind. */
void st_msg_sync_stream(st_rank_t *me, ucp_st_queue_h queue,
                        ucs_gstream_h stream);

#endif
