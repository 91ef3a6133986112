/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_shared.h - what parts of operations have on a NIC, each for itself or
 * all of an exchange together: a counter that starts add to, and a counter of
 * what is done, with the word that the stream waits on.
 *
 *                                    counter             threshold of use k
 *   standard send                      T, of starts and    2k
 *                                      clear-to-sends
 *   ready send                         T                   k
 *   clear-to-send of a receive         R                   k
 *   exchange: ready sends, and         one R               k
 *             clear-to-sends
 *             standard sends           a T each            2k
 *   coupled:  its m standard sends     one T               k (1 + m)
 *
 * The completion counter F of an exchange counts all that its sends complete
 * and all that lands in its receives, n a use; F >= k n fires the addition to
 * the one word. Nothing counts for use k + 1 before the wait of use k has run
 * here, as all are waited for together. test/model/exchange.pml has the
 * argument, and what breaks it. The data of receives ahead would count before
 * that wait, so that no operation of an exchange, nor its counterpart, has an
 * inbox.
 *
 * An error of one operation of an exchange fails all. What is armed is fired
 * once all that wait for a counter may be disposed of: to add to a counter
 * fires the others, too. Likewise the word is released when no put of the
 * exchange reads any more.
 */
#ifndef UCP_ST_TRIG_SHARED_H_
#define UCP_ST_TRIG_SHARED_H_

#include <ucp_st.h>

#include "trig/st_trig_work.h"

#include <ucs/datastruct/list.h>

struct ucp_st_op;
struct ucp_st_trig_part;

/** A counter that starts add to. Protected by the worker's lock, but for what
 *  streams use of the trigger. */
typedef struct ucp_st_trig_start {
    ucp_st_trig_trigger_t trigger;
    uint64_t           num_clears; /* clear-to-sends that the puts of a use wait
                                      for; of eager-ahead sends 0 */
    ucs_list_link_t    parts;      /* that have it; the first one's start is
                                      that of all */
    uint32_t           num_parts;
    uint32_t           num_disposed; /* of them */
    struct ucp_st_trig_start **home; /* an exchange's pointer to it, or NULL */
} ucp_st_trig_start_t;

/** A counter of what is done, and the word. Protected by the worker's lock, but
 *  streams wait on the word. */
typedef struct ucp_st_trig_done {
    ucp_st_trig_rail_t  *rail;
    ucp_st_trig_tally_t tally;
    ucp_st_trig_line_t  line;      /* of additions to the word */
    uint64_t            num_puts;  /* counted for a use */
    uint64_t            words;     /* that were reaped */
    uct_trig_op_h       word_add;
    ucs_list_link_t     parts;
    uint32_t            num_parts;
    uint32_t            num_released; /* of them, whose waits may pass */
    uint32_t            num_settled;  /* whose additions nobody waits for */
    struct ucp_st_trig_done **home;
} ucp_st_trig_done_t;

/** What the operations of an exchange share on one NIC; NULL where none of them
 *  has it. */
typedef struct ucp_st_trig_set {
    ucp_st_trig_start_t *ready; /* of ready sends and of clear-to-sends */
    ucp_st_trig_start_t *sends; /* of standard sends, if it is coupled */
    ucp_st_trig_done_t  *done;
} ucp_st_trig_set_t;

/** Give a part its counters and its word: of its own, or of the operation's
 *  exchange. What it has on errors is given back by ucp_st_trig_shared_put().
 *  The lock is held, here and below. */
ucs_status_t ucp_st_trig_shared_get(struct ucp_st_trig_part *part);

/** The part's operation has its lane: describe the addition to the word, and
 *  count in thresholds what a use of the part counts. */
ucs_status_t ucp_st_trig_shared_bind(struct ucp_st_trig_part *part);

/** Give them back; nothing is posted. */
void ucp_st_trig_shared_put(struct ucp_st_trig_part *part);

/** Describe the addition to the word, without a threshold. */
void ucp_st_trig_done_fill(ucp_st_trig_done_t *done, ucp_st_trig_work_t *work);

/** What is added to the counter for one use, at most. */
uint64_t ucp_st_trig_start_max(const ucp_st_trig_start_t *start);

/** The part may be disposed of: once that holds for all that share its counter,
 *  what is armed is fired. */
void ucp_st_trig_shared_dispose(struct ucp_st_trig_part *part);

/** The waits of the part may pass: once that holds for all, the release is
 *  stored to the word. */
void ucp_st_trig_shared_release(struct ucp_st_trig_part *part);

/** Nobody waits for the part's additions to the word any more: once that holds
 *  for all, they are fired. */
void ucp_st_trig_shared_settle(struct ucp_st_trig_part *part);

/** If it was released: store the release again, where an addition of the NIC
 *  may have been between its load and its store. */
void ucp_st_trig_done_store(ucp_st_trig_done_t *done);

#endif
