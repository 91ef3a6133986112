/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fifo.h - FIFOs: messages that are used once, of a peer, a scope and a tag,
 * which hosts match by their numbers while the streams are on the way to them.
 *
 *   receiver                                         sender
 *   enqueues the start of receive i
 *   RECV: room, where its data goes  ------------->  enqueues that of send i
 *                                    <-------------  SEND: length, way, where
 *                                                    clear-to-send goes
 *
 * A message is numbered when its start is enqueued. Until then nothing is known
 * of it elsewhere. Messages of one direction are in order, as control messages
 * are.
 *
 * BY_NIC: where lane trig reaches the peer both sides post deferred work now,
 * and no host takes part when the streams come to it (st_fifo_nic.h).
 *
 * BY_PUT, BY_UCP: without that lane, or a counter for the send, or if a buffer
 * lies in a device that the NIC does not reach, the hosts move the message. The
 * receiver's thread says READY when its stream has come to it; the sender's has
 * the data put, or gives it to UCP, when both have. Data in a device goes by
 * way of other memory, to and from which the threads copy it; to such a receive
 * the sender says DONE behind a put. So no message waits for counters that
 * others hold.
 *
 * The end. A sender learns from its NIC or UCP that a message is over. A
 * receiver's NIC counts all messages of a queue together: it learns that from
 * the wait of the queue, or asks the sender if the host wants to know before
 * (ASK, DONE).
 *
 * Errors. A message that fails fails its queue, and with it all messages of the
 * queue that are not over. Each says CANCEL to its other half, behind which
 * nothing of it can be written any more. The other half fails as well, closes
 * what it has, and says CLOSED. When a message's other half is closed what is
 * armed for it is fired, and reaches nothing; a peer that was only declared
 * gone may have it open. If that takes too long what is armed is cancelled, as
 * that of operations (trig/st_trig_end.c). The waits of the queue pass when
 * nothing reads or writes its buffers any more; or nothing but what is on the
 * way, read by the NIC or UCP, to a peer that does not take it.
 */
#ifndef UCP_ST_FIFO_H_
#define UCP_ST_FIFO_H_

#include "tag/st_batch.h"
#include "core/st_key.h"
#include "trig/st_trig_rma.h"

#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/list.h>

/** A counter T of a send, and memory that counts there. */
typedef struct ucp_st_fifo_slot {
    ucs_list_link_t     list; /* in the worker's free ones */
    uct_trig_cntr_h     cntr;
    ucp_st_trig_piece_t pad;  /* the first word is for the bridge, the second
                                 one for clear-to-send */
    uct_trig_mem_h      mem;  /* of the pad; NULL: nobody writes there */
    uct_trig_rkey_t     rkey;
    uint64_t            uses; /* that it was lent for */
} ucp_st_fifo_slot_t;

struct ucp_st_fifo_nic;

/** Messages of a queue that the next wait is for. */
typedef struct ucp_st_fifo_group {
    struct ucp_st_fifo_nic *nic;
    ucs_list_link_t list;      /* in the queue's */
    ucs_list_link_t msgs;      /* ucp_st_fifo_msg_t that are not over */
    uint64_t        puts;      /* counted for those that are paired */
    unsigned        unpaired;
    int             is_closed; /* the wait was enqueued */
    int             is_posted; /* the addition to the word */
    int             is_over;   /* it is over */
} ucp_st_fifo_group_t;

/** A queue's part, made for its first message of a FIFO. */
typedef struct ucp_st_fifo_nic {
    ucs_list_link_t       list;     /* in the worker's */
    ucp_st_worker_h       worker;
    ucp_st_queue_h        queue;    /* NULL: it has left */
    volatile uint64_t     *word;    /* that streams wait on */
    uint64_t              begun;    /* without a NIC: starts that the stream has
                                       come to; atomic, by streams */
    uint64_t              arrived;  /* the same: in place of C */
    ucp_st_trig_rail_t    *rail;    /* the NIC; NULL: there is none, nor any of
                                       the next five */
    ucp_st_trig_trigger_t start;    /* S */
    ucp_st_trig_tally_t   done;     /* C, and the word */
    ucp_st_trig_line_t    words;    /* additions to it */
    ucp_st_trig_piece_t   pad;      /* what empty messages are written to, and
                                       what they and clear-to-sends read */
    uct_trig_mem_h        pad_mem;  /* counted by C */
    ucs_list_link_t       enqueued; /* ucp_st_fifo_msg_t that are not started;
                                       of the thread that calls for the queue,
                                       as are: */
    uint64_t              num_enqueued;
    uint64_t              starts;   /* enqueued; with the lock as well */
    uint64_t              waits;
    ucs_list_link_t       groups;   /* oldest first; the last one may be open */
    ucs_list_link_t       todo;     /* ucp_st_fifo_msg_t with work that is not
                                       posted */
    uint64_t              counted;  /* C when the groups with `is_posted`, and
                                       those before, are over */
    uint64_t              expected; /* C when all that are paired are over */
    ucp_st_trig_late_t    late;
    unsigned              reading;  /* messages whose buffers are read, or
                                       written by the thread or UCP */
    unsigned              holds;    /* groups and messages are gone through:
                                       neither they nor this are freed */
    uint8_t               is_failing;
    uint8_t               is_fired; /* S */
    uint8_t               is_released; /* the word */
    uint8_t               is_settled; /* C was fired, for additions that nobody
                                       waits for */
} ucp_st_fifo_nic_t;

/** A FIFO of this side. */
typedef struct ucp_st_fifo {
    ucs_list_link_t list;    /* in the peer's, while it has messages */
    ucp_st_peer_t   *peer;
    ucp_st_key_id_t id;
    ucp_st_dir_t    dir;
    int             rank;    /* by what the program knows the peer, for texts;
                                with the next one */
    const char      *words;  /* the user's; or NULL */
    uint64_t        count;   /* messages numbered so far */
    ucs_list_link_t msgs;    /* ucp_st_fifo_msg_t, by number */
    ucs_list_link_t heard;   /* ucp_st_fifo_heard_t of later numbers, in their
                                order */
} ucp_st_fifo_t;

/** What a peer has said of a message that is not numbered here yet. */
typedef struct ucp_st_fifo_heard {
    ucs_list_link_t    list;
    ucp_st_ctrl_fifo_t ctrl;
} ucp_st_fifo_heard_t;

/** A message. Made when it is enqueued; goes when the NIC has no part of it any
 *  more and its other half is closed. */
typedef struct ucp_st_fifo_msg {
    ucs_list_link_t     list;     /* in the queue's enqueued, then in the
                                     FIFO's */
    ucs_list_link_t     group_list;
    ucs_list_link_t     todo_list; /* while it is_todo */
    ucs_list_link_t     handed_list; /* in the worker's handed, while it is
                                     is_handed */
    ucs_list_link_t     limit_list; /* in the worker's limited, while it
                                     is_limited */
    ucp_st_fifo_t       *fifo;
    ucp_st_fifo_nic_t   *nic;
    ucp_st_fifo_group_t *group;   /* once it is started */
    ucp_st_req_t        *req;     /* NULL: it is complete */
    uint64_t            number;   /* in the FIFO, from 1 */
    uint64_t            start;    /* of the queue, from 1 */
    size_t              length;   /* in bytes; of a receive its room, until it
                                     is paired */
    void                *data;    /* what is moved; the buffer, or other memory
                                     of the host */
    uint8_t             is_paired;
    uint8_t             way;      /* once it is: ucp_st_fifo_way_t */
    uint8_t             is_todo;
    uint8_t             is_handed; /* hosts move it */
    uint8_t             is_staged;
    uint8_t             is_reached; /* handed: the stream is at the start, and
                                       READY was said, or the data copied */
    uint8_t             is_ready; /* handed: the other half's stream is, too, or
                                     the data of a staged receive is there */
    uint8_t             is_moving; /* the thread copies it, without the lock, or
                                     UCP moves it */
    uint8_t             is_rndv;  /* `came` only tells where the data is */
    uint8_t             is_copied; /* the thread has */
    uint8_t             is_given; /* the send, to UCP */
    uint8_t             is_asked; /* by this side's host */
    uint8_t             is_awaited; /* a wait for some messages has to learn
                                       that a receive is over */
    uint8_t             must_tell;/* the peer's host waits for DONE */
    uint8_t             is_ended; /* not in the regular way */
    uint8_t             is_closed;/* then: nothing of the peer's half can be
                                     written any more */
    uint8_t             is_fired; /* then: T, or nothing waits for it */
    uint8_t             is_limited; /* there is a deadline */
    uint8_t             is_retried; /* then: it was over before */
    ucs_status_t        status;   /* then: why */
    ucs_status_t        doubt;    /* not UCS_OK: a put has failed, and it may be
                                     that the peer has closed its half */
    double              deadline; /* when the doubt is over, or once it has
                                     ended it holds up the queue no longer;
                                     seconds */
    ucp_st_req_t        *left;    /* not NULL: it does not, and what the NIC or
                                     UCP still has to read holds this */
    ucp_st_fifo_slot_t  *slot;    /* of a send that is not handed */
    uct_trig_mem_h      mem;      /* what the peer writes; or of a send its
                                     data, where it must be given */
    uct_trig_rkey_t     remote;   /* where to put */
    void                *came;    /* by UCP, and is not in the buffer yet:
                                     UCP's; or NULL */
    ucp_st_fifo_hdr_t   header;   /* while UCP has the send */
    uint64_t            num_puts; /* of the data */
    uint64_t            num_done; /* of those, without an error */
    ucp_st_trig_line_t  bridge;
    ucp_st_trig_line_t  puts;     /* of the data, or of a clear-to-send */
} ucp_st_fifo_msg_t;

/** What finds a FIFO. */
typedef struct ucp_st_fifo_key {
    uint64_t        uuid; /* the peer's */
    ucp_st_key_id_t id;
    ucp_st_dir_t    dir;
} ucp_st_fifo_key_t;

static inline khint_t ucp_st_fifo_key_hash(ucp_st_fifo_key_t key)
{
    return ucp_st_key_hash(key.id) +
           kh_int64_hash_func((key.uuid * 2) + key.dir);
}

static inline int ucp_st_fifo_key_equal(ucp_st_fifo_key_t a,
                                        ucp_st_fifo_key_t b)
{
    return ucp_st_key_equal(a.id, b.id) && (a.uuid == b.uuid) &&
           (a.dir == b.dir);
}

KHASH_INIT(ucp_st_fifos, ucp_st_fifo_key_t, ucp_st_fifo_t*, 1,
           ucp_st_fifo_key_hash, ucp_st_fifo_key_equal)

/** A worker's private data. Protected by its lock. */
typedef struct ucp_st_fifos {
    khash_t(ucp_st_fifos)   table;
    ucs_list_link_t         nics;   /* ucp_st_fifo_nic_t */
    ucs_list_link_t         slots;  /* free ones, so many: */
    unsigned                num_slots;
    ucs_list_link_t         handed; /* ucp_st_fifo_msg_t, as in the next one */
    ucs_list_link_t         limited;
    int                     is_served;
    ucp_st_service_client_t service; /* of those; its own */
} ucp_st_fifos_t;

/** A peer's private data. */
typedef struct ucp_st_fifo_peer {
    ucs_list_link_t list; /* of FIFOs that have messages */
} ucp_st_fifo_peer_t;

/** A queue's private data. */
typedef struct ucp_st_fifo_queue {
    ucp_st_fifo_nic_t *nic; /* or NULL; set by the thread that calls for the
                               queue, with the lock */
} ucp_st_fifo_queue_t;

extern const ucp_st_component_t ucp_st_fifo_component;

static inline ucp_st_fifos_t *ucp_st_fifos(ucp_st_worker_h worker)
{
    return worker->priv[UCP_ST_PRIV_FIFO];
}

static inline ucp_st_fifo_peer_t *ucp_st_fifo_peer(ucp_st_peer_h peer)
{
    return peer->priv[UCP_ST_PRIV_FIFO];
}

static inline ucp_st_fifo_queue_t *ucp_st_fifo_queue(ucp_st_queue_h queue)
{
    return queue->priv[UCP_ST_PRIV_FIFO];
}

static inline int ucp_st_fifo_is_send(const ucp_st_fifo_msg_t *msg)
{
    return msg->fifo->dir == UCP_ST_DIR_SEND;
}

/** Give a request to its FIFO. The lock is not held. */
ucs_status_t ucp_st_fifo_enqueue(ucp_st_req_t *req, ucp_st_queue_h queue,
                                 const ucp_st_msg_params_t *params);

/** A request that is not started goes. */
void ucp_st_fifo_withdraw(ucp_st_req_t *req);

/** Write the command that starts what is enqueued: how many commands, 0 if
 *  nothing is. UCS_ERR_EXCEEDS_LIMIT. The lock is not held, nor for the next
 *  ones. */
ucs_status_t ucp_st_fifo_start(ucp_st_queue_h queue, ucs_gstream_cmd_t *cmd,
                               size_t *count_p);

/** The stream has that command: number the messages and tell the peers. */
void ucp_st_fifo_started(ucp_st_queue_h queue);

/** Write the command that waits for what was started and not waited for: how
 *  many commands. */
size_t ucp_st_fifo_wait(ucp_st_queue_h queue, ucs_gstream_cmd_t *cmd);

/** The stream has that command, if there was one. */
void ucp_st_fifo_waited(ucp_st_queue_h queue);

/** The host wants to know whether the request, which is started, is over. */
void ucp_st_fifo_ask(ucp_st_req_t *req);

/** A wait for some messages is enqueued, this one of them, which is started.
 *  The lock is held, as for the next ones. */
void ucp_st_fifo_await(ucp_st_req_t *req);

/** Cancel a request that is started; one that is matched goes on. */
void ucp_st_fifo_cancel(ucp_st_req_t *req, ucs_status_t status);

/* For the other files of FIFOs; the lock is held */

/** Find a FIFO, or NULL. */
ucp_st_fifo_t *ucp_st_fifo_known(ucp_st_peer_h peer, ucp_st_dir_t dir,
                                 ucp_st_key_id_t id);

/** Find a FIFO, or make it: NULL without memory. */
ucp_st_fifo_t *ucp_st_fifo_get(ucp_st_peer_h peer, ucp_st_dir_t dir,
                               ucp_st_key_id_t id);

/** The message of a number, also one that is over here, while the peer may
 *  still write there; or NULL. */
ucp_st_fifo_msg_t *ucp_st_fifo_find(const ucp_st_fifo_t *fifo,
                                    uint64_t number);

/** The message has its number: it is in the FIFO, and on its list, until it is
 *  taken off. */
void ucp_st_fifo_add(ucp_st_fifo_msg_t *msg);
void ucp_st_fifo_del(ucp_st_fifo_msg_t *msg);

/** What the peer has said of a message that was not numbered then, or NULL; to
 *  be freed. */
ucp_st_fifo_heard_t *ucp_st_fifo_heard_take(ucp_st_fifo_t *fifo,
                                            uint64_t number);

/** The message is matched: count which way it goes, and record it in the trace.
 *  A buffer of one of the sides may be staged. */
void ucp_st_fifo_note(const ucp_st_fifo_msg_t *msg, int is_staged);

/** Say RECV or SEND. */
void ucp_st_fifo_announce(ucp_st_fifo_msg_t *msg);

/** The peer has said something of a message that is under way, which may be
 *  gone on return. */
void ucp_st_fifo_receive(ucp_st_fifo_msg_t *msg,
                         const ucp_st_ctrl_fifo_t *ctrl);

/** The data of a receive is here. The message may be gone on return. */
void ucp_st_fifo_arrived(ucp_st_fifo_msg_t *msg);

/** Have the service thread move what hosts are to move. The lock is not
 *  held. */
ucs_status_t ucp_st_fifo_open(ucp_st_worker_h worker);

/** What came by UCP, for messages that have ended, goes back. No other thread
 *  uses the worker, and the lock is not held. */
void ucp_st_fifo_drop_came(ucp_st_worker_h worker);

/** The message is over, its buffer is the user's; with an error its queue has
 *  failed. */
void ucp_st_fifo_complete(ucp_st_fifo_msg_t *msg, ucs_status_t status);

/** The message fails, and its queue. It may be gone on return. */
void ucp_st_fifo_fail(ucp_st_fifo_msg_t *msg, ucs_status_t status);

/** Tell the other half. */
void ucp_st_fifo_tell(ucp_st_fifo_msg_t *msg, ucp_st_fifo_what_t what);

#endif
