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
 *            word; k = jN: bring C up           each to place k % N of its
 *            to it                              inbox, add 1 to its word; k =
 *   stream:  wait for word >= k                 jN: bring D up to it
 *                                               stream:  wait for word >= k
 *
 * Only the first use of a round of N waits for a clear-to-send, for all of the
 * round. For rounds but the very first one that use goes by the NIC, as without
 * this: T gets 2 for it alone, so that T = 2g + c with g rounds started and c
 * clear-to-sends come, of which neither exceeds j before use jN+1 has gone;
 * T >= 3j is both. The uses behind it have room once it is complete.
 *
 * Words follow their counters, which count puts, and C and D fall behind as
 * messages are counted in the words alone. They are brought up before the last
 * use of a round is seen to be complete, so before a put can count again.
 *
 * An operation is joined for good, before its first use: no use that a put
 * carries is under way beside one that a message carries, so that uses are
 * counted in their order. Put jN+1 was visible and counted before message jN+2
 * was handed over, and all up to jN were in the inbox, and copied out of it,
 * before the clear-to-send for jN+1. Messages of an endpoint arrive in order.
 *
 * Ready sends are joined as well: their data goes to the buffer of the receive,
 * whose start has come first, and none of their uses is a put.
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

#include "st_trig.h"

#include <stddef.h>

/** Behind the last one of a list of parts, linked by `next`; what is in no list
 *  has NULL there. */
#define UCP_ST_TRIG_COALESCE_END ((ucp_st_trig_part_t*)1)

/** Take such messages. Interfaces are open, streams drive their NICs. No other
 *  thread uses the worker. */
ucs_status_t ucp_st_trig_coalesce_open(ucp_st_worker_h worker);

/** Join sends that one call starts, some for the first time. The lock is
 *  held. */
void ucp_st_trig_coalesce_join(const ucp_st_op_h *ops, size_t count);

/** Command that starts the next use of joined sends, of each the part: how
 *  many, 0 or 1. `parts` may be where the queue's next items are, for which
 *  there is room: see ucp_st_queue_add_call(). The lock is held. */
size_t ucp_st_trig_coalesce_start_cmds(ucp_st_queue_h queue, void **parts,
                                       size_t count, ucs_gstream_cmd_t *cmd);

/** Have the messages sent that streams have started, here if the lock is free.
 */
void ucp_st_trig_coalesce_hand_over(ucp_st_worker_h worker);

/** Send them, and what had no room before. The lock is held. */
void ucp_st_trig_coalesce_send(ucp_st_worker_h worker);

/** UCS_OK once all is delivered, or never will be; UCS_INPROGRESS: not yet. The
 *  lock is held. */
ucs_status_t ucp_st_trig_coalesce_flush(ucp_st_worker_h worker);

#endif
