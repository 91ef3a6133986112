/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_parts.h - what the parts of the emulated NIC offer each other.
 */
#ifndef CASSINI_PARTS_H_
#define CASSINI_PARTS_H_

#include "cassini_dir.h"
#include "cassini_net.h"

/* cassini_trap.c: pages whose stores are noticed; memory that may be gone */

/** Install the handler of faults and reserve the pages: 0 or a negative errno.
 *  Once a process. */
int cassini_trap_start(void);

/** In a child: its queues' pages are its own, not those of the parent. */
void cassini_trap_forget(void);

/** Page of counter @a ctn: each store to it is an event. */
uint64_t *cassini_trap_counter(unsigned ctn);

/** Take what was stored: the resets, then what was added after them. 0: nothing
 *  was. */
typedef struct cassini_trapped {
    int      reset;
    int      reset_failure;
    uint64_t success;
    uint64_t failure;
} cassini_trapped_t;

int cassini_trap_take(unsigned ctn, cassini_trapped_t *trapped);
int cassini_trap_has(unsigned ctn);

/** Page of a write pointer, by number below CASSINI_QUEUES; set back. */
uint64_t *cassini_trap_queue(int page);

/** The first store to a write pointer wakes the engine (on), or none does. */
void cassini_trap_watch(int on);

/** memcpy() of memory of which parts may be gone: 0 or -1. Aligned words are
 *  stored in one piece. */
int cassini_trap_copy(void *to, const void *from, size_t length);

/* cassini_eq.c: event queues */

/** Write an event of 16 or 64 bytes; without a free slot it is dropped. */
void cassini_eq_post(unsigned eqn, const void *event);

/** Whether a message may make @a count events. */
int cassini_eq_has_room(unsigned eqn, unsigned count);

/** Event of an initiator. */
void cassini_eq_post_init(unsigned eqn, const cassini_ev_init_t *event);

/* cassini_ct.c: counters */

void cassini_ct_add(unsigned ctn, uint64_t success, unsigned failure);

/** Apply what was stored to the counters' pages. */
unsigned cassini_ct_take_stores(void);

/** Execute a counter command: CASSINI_RC_OK, an error, or CASSINI_RC_NONE if
 *  there is no free entry for a triggered operation. */
int cassini_ct_execute(cassini_queue_t *queue, const void *cmd);

/** Carry out the triggered operations that are ripe. How many. */
unsigned cassini_ct_fire(void);
int cassini_ct_has_ripe(void);

/** Forget those that are ripe: after a fork. */
void cassini_ct_forget(void);

/** Write a counter to where its owner reads it. */
void cassini_ct_write_back(const cassini_ct_obj_t *ct);

/** The queue is closed; what it armed stays. */
void cassini_ct_forget_queue(const cassini_queue_t *queue);

/* cassini_cq.c: command queues */

/** Read the write pointers. */
void cassini_cq_look(void);

/** Execute commands up to the write pointers as read. How many. */
unsigned cassini_cq_progress(void);

/** Whether a queue has commands that can be executed. */
int cassini_cq_has(void);

/** Whether a queue waits for a free entry of a triggered operation, which
 *  another process may have. */
int cassini_cq_is_stalled(void);

/* cassini_tx.c: the initiator */

/** Execute a DMA command, an IDC command (with the queue's state). An error of
 *  the command itself, else CASSINI_RC_OK. */
int cassini_tx_dma(cassini_queue_t *queue, const void *cmd, unsigned vni);
int cassini_tx_idc(cassini_queue_t *queue, const void *cmd, unsigned vni);

/** Get the rest of a rendezvous' data, as the target's NIC does. */
typedef struct cassini_rdzv_get {
    unsigned vni;
    unsigned nid; /**< Of the source */
    unsigned pid;
    uint64_t bits;
    uint64_t offset;
    uint64_t local;
    uint32_t length;
    unsigned lac;
    unsigned eqn;
    uint64_t user;
} cassini_rdzv_get_t;

void cassini_tx_rdzv_get(const cassini_rdzv_get_t *get);

void cassini_tx_response(const cassini_packet_t *packet);

/** Complete the operations whose target died. How many. */
unsigned cassini_tx_reap(void);

/** Operations without an answer yet. */
unsigned cassini_tx_pending(void);

/** An event queue, a counter, a queue is closed: nothing is reported there. */
void cassini_tx_forget_eq(unsigned eqn);
void cassini_tx_forget_ct(unsigned ctn);
void cassini_tx_forget_queue(const cassini_queue_t *queue);

/** Forget all operations: after a fork. */
void cassini_tx_forget(void);

/* cassini_tgt.c: the target */

void cassini_tgt_request(const cassini_packet_t *packet);

/** Where a message goes, and how much of it fits. */
typedef struct cassini_place {
    uint64_t start;
    uint64_t room;
} cassini_place_t;

/** What matched and is not carried out yet. */
typedef struct cassini_work {
    struct cassini_work *next;
    cassini_packet_t    *packet; /**< A copy, or the packet itself */
    unsigned            ptn;
    cassini_tgt_cmd_t   le;
    cassini_place_t     place;
    uint32_t            length; /**< With the headers */
    uint32_t            headers; /**< Bytes of them, for the request list */
    int                 list;
    int                 unlinked;
} cassini_work_t;

/** Carry out: move the data, count, report, answer. */
void cassini_tgt_carry_out(const cassini_work_t *work);

/** Whether all of a range is mapped, for CASSINI_MAP_READ or _WRITE. */
int cassini_md_covers(uint64_t address, uint64_t length, unsigned lac,
                      unsigned access);

/* cassini_le.c: lists of portal entries */

/** Execute a command of a target queue: CASSINI_RC_OK or an error. */
int cassini_le_execute(const void *cmd);

/** Whether an entry takes a message. */
int cassini_le_matches(const cassini_pte_obj_t *pte,
                       const cassini_tgt_cmd_t *le, uint64_t bits,
                       uint32_t initiator, uint32_t length);

/** Remove an entry from its list and free it. */
void cassini_le_remove(cassini_pte_obj_t *pte, int list, cassini_le_t *le);

/** Free all entries and unexpected messages. */
void cassini_le_clear(cassini_pte_obj_t *pte);

/** Change a portal entry's state, and report it. */
void cassini_pte_change(cassini_pte_obj_t *pte, int state, int why);

/** Report an event of a portal entry. */
void cassini_pte_post(const cassini_pte_obj_t *pte, cassini_ev_tgt_t *event,
                      int type, int rc);

/** The message of a rendezvous matched @a le: start the get of the rest, or
 *  leave it to software, and report it. @a event describes the message. */
void cassini_pte_rendezvous(cassini_pte_obj_t *pte, const cassini_tgt_cmd_t *le,
                            const cassini_ev_tgt_t *event,
                            const cassini_place_t *place);

/* cassini_amo.c: atomics */

extern const uint8_t cassini_amo_size[16];

/** Execute on memory of this process: a return code. */
int cassini_amo_execute(const cassini_request_t *request, void *memory,
                        uint64_t fetched[2]);

/* cassini_temper.c: settings, and what is drawn at random */

enum {
    CASSINI_LATE_NS = 500000 /**< What is late comes, if no request does */
};

typedef struct cassini_settings {
    const char *name;
    uint64_t   seed;
    unsigned   tles;
    unsigned   cts;
    unsigned   les;
    unsigned   eq_slots;
    int        exact;    /**< Command queues are as long as asked for */
    unsigned   inject_rc;
    uint64_t   inject_at;
    uint64_t   down_at;
    uint64_t   vanish_at;
    unsigned   gone_rc;
    const char *service;
    const char *file;    /**< Has to be open to the user; NULL: none has */
    unsigned   vni;
    int        rdzv_get;
    const char *leaks;
    int        verbose;
} cassini_settings_t;

extern cassini_settings_t cassini_settings;

void cassini_temper_read(void);

/** Say which seed it is, if there is one: once a process and its children. */
void cassini_temper_tell(void);

/** A number below @a bound; always 0 without a seed. */
unsigned cassini_temper_draw(unsigned bound);

/** Return code that this operation, the next one, ends with whatever happens;
 *  CASSINI_RC_OK: what happens. */
int cassini_temper_next_op(void);

/** Whether to put off work whose payload may come late; takes it if so. */
int cassini_temper_put_off(const cassini_work_t *work);

/** Carry out some of what was put off, or all. How much. */
unsigned cassini_temper_progress(int all);

/** Whether something was, and will be due without anything else to do. */
int cassini_temper_has(void);

/** Forget what was put off: after a fork. */
void cassini_temper_forget(void);

/* cassini_svc.c: services */

void cassini_svc_init(void); /**< Of a new directory */

/** Index of a service that this process may use: or a negative errno. */
int cassini_svc_enter(unsigned svc_id);

/** Whether a service has a virtual network. */
int cassini_svc_has_vni(int svc, unsigned vni);

/** Limit of a service for a resource. */
unsigned cassini_svc_limit(int svc, int rsrc);

/** The service out of whose pool one with this index takes a resource. */
int cassini_svc_pool(int svc, int rsrc);

#endif
