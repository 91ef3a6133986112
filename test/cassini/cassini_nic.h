/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_nic.h - an emulated Cassini NIC: its objects and its parts.
 *
 * Each process has a NIC of its own that executes what is addressed to it, all
 * under one lock; a thread of it, the engine, does the work. The NICs of a
 * node find each other in a directory in shared memory (cassini_dir.h) and
 * exchange packets (cassini_net.h). Functions that a comment does not except
 * are called with the lock held.
 */
#ifndef CASSINI_NIC_H_
#define CASSINI_NIC_H_

#include "cassini_lib.h"

#include <pthread.h>

enum {
    CASSINI_NID     = 0x12, /**< Of the node */
    CASSINI_RDZV_INDEX = 255, /**< Portal index of the gets of rendezvous */
    CASSINI_QUEUES  = 256,  /**< Command queues of a process */
    CASSINI_VERSION = 1
};

/** What is told as left open at exit. */
enum {
    CASSINI_OPEN_DEV,
    CASSINI_OPEN_LNI,
    CASSINI_OPEN_CP,
    CASSINI_OPEN_DOMAIN,
    CASSINI_OPEN_QUEUE,
    CASSINI_OPEN_EQ,
    CASSINI_OPEN_WAIT,
    CASSINI_OPEN_CT,
    CASSINI_OPEN_TRIGGER,
    CASSINI_OPEN_MD,
    CASSINI_OPEN_PTE,
    CASSINI_OPEN_MAP,
    CASSINI_OPEN_LAST
};

/* An object holds the epoch of its NIC: after a fork, the child's NIC has
 * another one and none of the parent's objects. */

typedef struct cassini_lni_obj {
    cassini_lni_t          pub;
    unsigned               epoch;
    int                    svc; /**< Index of its service */
    unsigned               closed_cts; /**< Counters closed, still allocated */
    struct cassini_cp_obj  *cps[CASSINI_NUM_LCIDS];
} cassini_lni_obj_t;

typedef struct cassini_cp_obj {
    cassini_cp_t      pub;
    unsigned          epoch;
    cassini_lni_obj_t *lni;
} cassini_cp_obj_t;

typedef struct cassini_domain_obj {
    cassini_domain_t pub;
    unsigned         epoch;
} cassini_domain_obj_t;

struct cassini_wait {
    unsigned epoch;
    int      fds[2]; /**< The user polls the first */
    int      raised;
};

typedef struct cassini_eq_obj {
    cassini_eq_t     pub;
    unsigned         epoch;
    uint64_t         ack; /**< Software stores a cassini_eq_ack_t */
    unsigned         slots; /**< Of the ring, status included */
    unsigned         write; /**< Slot */
    unsigned         reserved; /**< Slots that messages cannot use */
    unsigned         room; /**< Slots that messages may use at all */
    unsigned         fill; /**< Status is written from so many slots on */
    int              filled; /**< The level was reached */
    cassini_wait_t   *wait;
    cassini_lni_obj_t *lni;
} cassini_eq_obj_t;

/** A triggered operation that is armed, or ripe. */
typedef struct cassini_trig {
    struct cassini_trig  *next;
    uint64_t             threshold;
    uint16_t             vni;
    int                  svc;
    struct cassini_queue *queue; /**< NULL once it is closed */
    uint8_t              cmd[128]; /**< As it was in the queue */
} cassini_trig_t;

typedef struct cassini_ct_obj {
    cassini_ct_t      pub;
    unsigned          epoch;
    cassini_lni_obj_t *lni;
    uint64_t          success;
    unsigned          failure;
    cassini_trig_t    *trigs; /**< Armed, by threshold, first come first */
} cassini_ct_obj_t;

/** Command queue. */
typedef struct cassini_queue {
    cassini_cq_t      pub;
    unsigned          epoch;
    cassini_lni_obj_t *lni;
    unsigned          flags; /**< CASSINI_QUEUE_TX and others */
    unsigned          number; /**< Of its kind */
    int               page; /**< Of its write pointer */
    unsigned          eqn; /**< Command failures go there */
    unsigned          write; /**< Slot, as read last */
    unsigned          read32; /**< Next command, in units of 32 bytes */
    unsigned          lcid;
    unsigned          pending; /**< Operations without answer */
    int               failed;
    int               stalled; /**< Waits for a triggered operation's entry */
    int               blocked; /**< Waits at a command, for whatever reason */
    cassini_cstate_t  cstate;
} cassini_queue_t;

/** Entry of a list of a portal entry. */
typedef struct cassini_le {
    struct cassini_le *next;
    cassini_tgt_cmd_t cmd;
    uint64_t          used; /**< Offset that the NIC manages, bytes */
} cassini_le_t;

/** Message that no entry of the priority list was there for. */
typedef struct cassini_unexpected {
    struct cassini_unexpected *next;
    cassini_ev_tgt_t          event; /**< What is known; type: of the request */
    uint64_t                  offset; /**< The sender's */
} cassini_unexpected_t;

typedef struct cassini_pte_obj {
    cassini_pte_t        pub;
    unsigned             epoch;
    cassini_lni_obj_t    *lni;
    cassini_pte_opts_t   opts;
    unsigned             eqn;
    int                  state;
    int                  append_failed; /**< Appends fail until a restart */
    unsigned             drops;
    unsigned             les;
    cassini_le_t         *lists[3];
    cassini_le_t         **ends[3]; /**< Where the next one is linked */
    cassini_unexpected_t *unexpected;
    cassini_unexpected_t **unexpected_end;
} cassini_pte_obj_t;

struct cassini_pte_map {
    struct cassini_pte_map *next;
    unsigned               epoch;
    unsigned               vni;
    unsigned               pid;
    unsigned               index;
    cassini_pte_obj_t      *pte;
};

typedef struct cassini_md_obj {
    cassini_md_t          pub;
    unsigned              epoch;
    struct cassini_md_obj *next;
    uint32_t              flags;
} cassini_md_obj_t;

/** The NIC of this process. */
typedef struct cassini_nic {
    pthread_mutex_t   lock;
    int               waiting; /**< Atomic: threads that want the lock */
    unsigned          epoch; /**< Changes in the child of a fork */
    int               attached;
    pthread_t         engine;
    int               stop; /**< Atomic */
    cassini_eq_obj_t  *eqs[CASSINI_NUM_EQS];
    cassini_ct_obj_t  *cts[CASSINI_NUM_CTS];
    cassini_lni_obj_t *closed[CASSINI_NUM_CTS]; /**< Owner of a counter that is
                                                     closed and not yet free */
    cassini_pte_obj_t *ptes[CASSINI_NUM_PTES];
    cassini_queue_t   *queues[CASSINI_QUEUES];
    struct cassini_pte_map *maps;
    cassini_md_obj_t  *mds;
    unsigned          next_eq; /**< Numbers are used again late */
    unsigned          next_pte;
    unsigned          next_md;
    uint64_t          flushes; /**< Telemetry: of puts, of restricted packets */
    uint64_t          restricted;
    int               pcie_fadd; /**< 1 + the atomic that is an addition;
                                      0: none */
    long              open[CASSINI_OPEN_LAST];
} cassini_nic_t;

extern cassini_nic_t cassini_nic;

/** A device is opened: set up the NIC if there is none yet (directory, traps,
 *  engine). 0 or a negative errno. Without the lock. */
int cassini_nic_start(void);

/** Leave the node if nothing is open any more. Without the lock. */
void cassini_nic_stop(void);

/** Take the lock, ahead of the engine. */
void cassini_nic_lock(void);
void cassini_nic_unlock(void);

/** The engine has something to do. Async-signal-safe, without the lock. */
void cassini_nic_wake(void);

/** Do what there is to do now. How much was done; 0: nothing was. */
unsigned cassini_nic_step(void);

/** Whether an object belongs to this process's NIC. */
#define cassini_is_mine(_obj) ((_obj)->epoch == cassini_nic.epoch)

/** Messages of CASSINI_VERBOSE=2, and those that are always told. */
void cassini_trace(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
void cassini_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
