/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_work.h - deferred work of one NIC of the trig lane: what triggers it,
 * what counts it, and how it is posted when there are entries. Operations and
 * one-sided operations do it this way. The worker's lock is held for all of it,
 * unless a function or field says otherwise.
 */
#ifndef UCP_ST_TRIG_WORK_H_
#define UCP_ST_TRIG_WORK_H_

#include "core/st_queue.h"
#include "trig/st_trig_rail.h"

#include <ucs/datastruct/list.h>

/** A counter that streams add to, for work to fire. They use what is read-only
 *  or atomic. All zero before init(). */
typedef struct ucp_st_trig_trigger {
    ucp_st_trig_rail_t *rail;       /* read-only, as are: */
    uct_trig_cntr_h    cntr;
    volatile uint64_t  *doorbell;   /* NULL: it is added to by a call */
    uint64_t           base;        /* of the thresholds */
    uint64_t           weight;      /* what a start adds */
    ucs_list_link_t    list;        /* in the lane's triggers */
    void (*fail)(struct ucp_st_trig_trigger *trigger, unsigned count); /* so
                                       many starts could not add; read-only */
    unsigned           untriggered; /* these; atomic */
    uint8_t            is_halted;   /* starts do nothing any more; atomic */
    uint8_t            is_fired;    /* what was armed */
} ucp_st_trig_trigger_t;

/** Make the counter; `fail` is set. What there is on errors is given back by
 *  cleanup(). */
ucs_status_t ucp_st_trig_trigger_init(ucp_st_trig_trigger_t *trigger,
                                      ucp_st_trig_rail_t *rail);

/** Give it back; nothing is armed. */
void ucp_st_trig_trigger_cleanup(ucp_st_trig_trigger_t *trigger);

/** Write the stream command that adds to it: how many commands, which is 1. */
size_t ucp_st_trig_trigger_cmd(ucp_st_trig_trigger_t *trigger,
                               ucp_st_queue_h queue, ucs_gstream_cmd_t *cmd);

/** Starts have no effect any more, from before the next word is released. On
 *  errors, which are not logged, they have. */
ucs_status_t ucp_st_trig_trigger_halt(ucp_st_trig_trigger_t *trigger);

/** Fire what is armed up to a threshold, which counts from the base. The
 *  counter may have been halted. */
void ucp_st_trig_trigger_fire(ucp_st_trig_trigger_t *trigger,
                              uint64_t threshold);

/** Streams could not add to some triggers: call their fail(). */
void ucp_st_trig_fail_untriggered(ucp_st_worker_h worker);

/** A counter of what is done, and memory that the NIC reads or writes then: of
 *  a word, mostly one that streams wait on. All zero before init(). */
typedef struct ucp_st_trig_tally {
    uct_trig_cntr_h     cntr;
    volatile uint64_t   *word;
    ucp_st_trig_piece_t piece; /* that has it */
} ucp_st_trig_tally_t;

/** Make it; the word is 0. What there is on errors is given back by cleanup().
 */
ucs_status_t ucp_st_trig_tally_init(ucp_st_trig_tally_t *tally,
                                    ucp_st_trig_rail_t *rail);

/** Give it back; nothing is armed. */
void ucp_st_trig_tally_cleanup(ucp_st_trig_tally_t *tally,
                               ucp_st_trig_rail_t *rail);

/** What a NIC is to do, and when. */
typedef struct ucp_st_trig_work {
    enum {
        UCP_ST_TRIG_WORK_PUT,
        UCP_ST_TRIG_WORK_GET,
        UCP_ST_TRIG_WORK_ADD,
        UCP_ST_TRIG_WORK_OWN  /* what was described once, for another use */
    } type;
    uct_ep_h              ep;       /* but of that one */
    union {
        uct_trig_put_t    put;
        uct_trig_get_t    get;
        uct_trig_atomic_t add;
        struct {
            uct_trig_op_h op;
            size_t        offset; /* of a put's destination */
        } own;
    };
    uct_trig_deferred_t   deferred; /* its done() calls ucp_st_trig_line_over();
                                       all of WORK_OWN's but the trigger,
                                       threshold and is_due is given already */
} ucp_st_trig_work_t;

/** Describe an addition to the tally's word by its counter, but for the
 *  threshold and what is called. */
void ucp_st_trig_tally_fill(const ucp_st_trig_tally_t *tally,
                            const ucp_st_trig_rail_t *rail, uint64_t value,
                            ucp_st_trig_work_t *work);

/** Work of one owner, which is posted in order. */
typedef struct ucp_st_trig_line {
    uint64_t posted;   /* of it */
    uint32_t pending;  /* of that, neither done nor failed */
    unsigned refusals; /* of the next one, so far */
} ucp_st_trig_line_t;

/**
 * Post the next work; if no entry is free for it, again and again, as a
 * provider may refuse for a moment for want of something else, have the NIC
 * carry it out now if it is due, and count it as proxied. UCS_ERR_NO_RESOURCE
 * if neither can be, or the provider has no room; UCS_ERR_BUSY for WORK_OWN
 * that is posted.
 *
 * Behind pending work, of the line or (`is_behind`) another one of its owner's,
 * it is not due, or will be tried again when that is over. Else the service
 * thread tries it again soon.
 */
ucs_status_t ucp_st_trig_line_post(ucp_st_trig_line_t *line,
                                   ucp_st_trig_rail_t *rail,
                                   ucp_st_trig_work_t *work, int is_behind);

/** Work of the line is done, or has failed. */
void ucp_st_trig_line_over(ucp_st_trig_line_t *line, ucp_st_trig_rail_t *rail);

/** Have the next ucp_st_trig_cancel() cancel the work that waits for a counter.
 *  UCS_OK, UCS_ERR_NO_MEMORY. */
ucs_status_t ucp_st_trig_cancel_add(ucp_st_trig_rail_t *rail,
                                    uct_trig_cntr_h cntr);

/** Cancel the work that waits for the counters that were added, as
 *  uct_trig_iface_cancel(): that costs the same for one counter and for many.
 *  In the service thread. */
ucs_status_t ucp_st_trig_cancel(ucp_st_trig_rail_t *rail);

/** An owner of work that found no entry. All zero but for `post` at first. */
typedef struct ucp_st_trig_late {
    ucs_list_link_t list;    /* in the lane's late */
    int             is_late; /* it is in there */
    void (*post)(struct ucp_st_trig_late *late); /* as far as entries allow;
                                                    when it is late no more it
                                                    is taken from the list */
} ucp_st_trig_late_t;

/** Have post() called whenever entries may be free, unless that is so. */
void ucp_st_trig_late_add(ucp_st_worker_h worker, ucp_st_trig_late_t *late);

/** Have it called no more. */
void ucp_st_trig_late_del(ucp_st_trig_late_t *late);

/** Call it for all of them. */
void ucp_st_trig_post_late(ucp_st_worker_h worker);

#endif
