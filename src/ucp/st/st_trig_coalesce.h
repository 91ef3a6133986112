/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_coalesce.h - the trig lane: small messages that start together go to
 * their peer as one.
 *
 * On a card that is emulated, a deferred operation costs the processors of the
 * node more than a small message is worth: to post, to trigger, to carry out
 * and to reap. So several sends that one call starts for the first time are
 * joined: from then on the stream that starts them hands their data to the
 * transport, as one active message for all to one peer that start together, and
 * the peer's lane puts what comes into the inboxes, as eager-ahead puts would
 * have done (st_trig.h). Nothing else is different for a receive.
 *
 *   sender                                      receiver
 *   stream:  start: copy the data to a
 *            message, add 1 to each    ------>  whoever makes progress: copy
 *            word                               each to place k % N of its
 *                                               inbox, add 1 to its word
 *   stream:  wait for word >= k                 stream:  wait for word >= k,
 *                                                        copy it to the buffer;
 *                                                        2k = jN: fence, send a
 *            whoever makes progress:   <------           clear-to-send
 *            there is room for N/2
 *            more uses; send the one
 *            that waits for it
 *
 * A use for which the inbox has no room yet is parked: the stream goes on, and
 * who takes the clear-to-send, under the worker's lock as starts are, sends it.
 * So a use goes once it is started and cleared, whichever comes last, as one
 * that a NIC carries does.
 *
 * Clear-to-sends are messages for all eager-ahead sends of such a pair of
 * workers. For one that is not joined, and goes by the NIC, a clear-to-send is
 * added to T.
 *
 * An operation is joined for good, before its first use: no use of it goes by
 * the NIC, and C and D count nothing. Messages of an endpoint arrive in order.
 *
 * Receives that one call starts are joined likewise, whatever the peer does:
 * the stream tells how often each was started. The data of a use that was goes
 * to the buffer, not the inbox, and `direct`, which is stored before the word,
 * tells the stream that it has nothing to copy. Nobody else writes the buffer
 * between start and wait, and the next use is started behind that: see
 * inbox.direct of the models. Streams of devices copy with a command of their
 * own; what they start is not told, and goes to the inbox.
 *
 * Ready sends are joined as well: their data goes to the buffer of the receive,
 * whose start has come first, and nothing clears them.
 *
 * A stream waits for no lock that a host may hold. It hands its sends over if
 * the worker's lock is free. If it is not, it pushes them to a stack, and tries
 * again; who holds the lock hands them over when it lets go: the push comes
 * before the failed try, the release before the look at the stack, both with a
 * full fence between. What is handed over is put in chains, one for each
 * endpoint, and sent from there as far as there is room. A worker's messages to
 * itself are copied there and then.
 *
 * A send is complete when its data is in the message. A worker goes only when
 * the transport has delivered what it was handed; its peer counts what has come
 * before it believes that the worker has gone (`uses_landed`, st_lane.h).
 */
#ifndef UCP_ST_TRIG_COALESCE_H_
#define UCP_ST_TRIG_COALESCE_H_

#include <ucp_st.h>

#include "st_op.h"
#include "st_trig.h"

#include <ucs/sys/math.h>

#include <stddef.h>

/** Behind the last one of a list of parts, linked by `next`; what is in no list
 *  has NULL there. */
#define UCP_ST_TRIG_COALESCE_END ((ucp_st_trig_part_t*)1)

/** More sends go into several messages. */
#define UCP_ST_TRIG_COALESCE_MAX 64

/** Data begins where any type may. */
#define UCP_ST_TRIG_COALESCE_ALIGN sizeof(uint64_t)

/** Bytes that data takes in a message. */
static inline size_t ucp_st_trig_coalesce_padded(size_t length)
{
    return ucs_div_round_up(length, UCP_ST_TRIG_COALESCE_ALIGN) *
           UCP_ST_TRIG_COALESCE_ALIGN;
}

/** Non-zero if the data of a receive's use, the last one that has landed, is in
 *  the buffer. The word of the use was seen. */
static inline int
ucp_st_trig_coalesce_is_direct(const ucp_st_trig_part_t *part, uint64_t use)
{
    return part->is_told &&
           (__atomic_load_n(&part->direct, __ATOMIC_RELAXED) == use);
}

/** Take such messages. Interfaces are open, streams drive their NICs. No other
 *  thread uses the worker. */
ucs_status_t ucp_st_trig_coalesce_open(ucp_st_worker_h worker);

/** Join sends, and receives, that one call starts, some for the first time. The
 *  lock is held. */
void ucp_st_trig_coalesce_join(const ucp_st_op_h *ops, size_t count);

/** Command that starts the next use of joined sends, of each the part: how
 *  many, 0 or 1. `parts` may be where the queue's next items are, for which
 *  there is room: see ucp_st_queue_add_call(). The lock is held. */
size_t ucp_st_trig_coalesce_start_cmds(ucp_st_queue_h queue, void **parts,
                                       size_t count, ucs_gstream_cmd_t *cmd);

/** The same for joined receives. */
size_t ucp_st_trig_coalesce_begin_cmds(ucp_st_queue_h queue, void **parts,
                                       size_t count, ucs_gstream_cmd_t *cmd);

/** Start uses of joined sends, or clear-to-sends, of a list of parts that NULL
 *  ends. Runs on the stream. */
void ucp_st_trig_coalesce_start_all(ucp_st_trig_part_t **list);

/** The operation ends: what waits for room is not sent any more. The lock is
 *  held. */
void ucp_st_trig_coalesce_unpark(struct ucp_st_op *op);

/** Have the messages sent that streams have started, here if the lock is free.
 */
void ucp_st_trig_coalesce_hand_over(ucp_st_worker_h worker);

/** Send them, and what had no room before. The lock is held. */
void ucp_st_trig_coalesce_send(ucp_st_worker_h worker);

/** There may be room now for the use of a joined send that waits for it. The
 *  lock is held. */
void ucp_st_trig_coalesce_resume(ucp_st_trig_part_t *part);

/** A use of each is complete: let its wait pass. The lock is held. */
void ucp_st_trig_coalesce_count(ucp_st_trig_part_t **parts, unsigned count);

/** Put the data of an item where its receive wants it, which is still to be
 *  counted, or take a clear-to-send. NULL: nothing is to be counted. The lock
 *  is held. */
ucp_st_trig_part_t *
ucp_st_trig_coalesce_accept(ucp_st_worker_h worker,
                            const ucp_st_trig_item_t *item, const void *data);

/** Count what was accepted. The lock is held. */
void ucp_st_trig_coalesce_landed(ucp_st_trig_part_t **parts, unsigned count);

/** uct_am_callback_t of the messages; called from progress, with the lock
 *  held. */
ucs_status_t ucp_st_trig_coalesce_handle(void *arg, void *data, size_t length,
                                         unsigned flags);

/** UCS_OK once all is delivered, or never will be; UCS_INPROGRESS: not yet. The
 *  lock is held. */
ucs_status_t ucp_st_trig_coalesce_flush(ucp_st_worker_h worker);

#endif
