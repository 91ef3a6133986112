/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_dir.h - the node: a directory in shared memory.
 *
 * Holds a slot for each process, the owner of each process number of a virtual
 * network, the services with their limits, and a ring for the packets of each
 * ordered pair of processes. A process holds a file lock as long as it lives;
 * any process that notices clears the slots of those that died.
 */
#ifndef CASSINI_DIR_H_
#define CASSINI_DIR_H_

#include "cassini_lib.h"

enum {
    CASSINI_SLOTS      = 64,   /**< Processes */
    CASSINI_DOMAINS    = 1024,
    CASSINI_SVCS       = 16,
    CASSINI_RING_BYTES = 128 * 1024
};

/** Where the producer of a ring writes, and the consumer reads. Bytes that ever
 *  went through. */
typedef struct cassini_ring {
    uint64_t head; /**< Atomic; the consumer's */
    uint64_t pad0[7];
    uint64_t tail; /**< Atomic; the producer's */
    uint64_t pad1[7];
    uint8_t  data[CASSINI_RING_BYTES];
} cassini_ring_t;

typedef struct cassini_slot {
    uint32_t pid; /**< Atomic: process; 0: free */
    uint32_t gen; /**< Atomic: counts the processes that had this slot */
    uint32_t wakes; /**< Atomic, futex: counts the reasons to wake */
    uint32_t asleep; /**< Atomic: the engine sleeps */
    uint64_t inbox; /**< Atomic: bit of each ring that may hold packets */
    uint32_t used[CASSINI_SVCS][CASSINI_RSRC_LAST]; /**< Atomic */
} cassini_slot_t;

typedef struct cassini_dir_svc {
    int           live;
    int           ranged; /**< VNIs from first to last */
    uint16_t      first;
    uint16_t      last;
    uint32_t      owner; /**< May destroy it */
    cassini_svc_t svc;
} cassini_dir_svc_t;

typedef struct cassini_dir {
    uint32_t          version; /**< 0: not set up yet */
    uint32_t          next_svc;
    uint32_t          next_lni; /**< Atomic */
    cassini_dir_svc_t svcs[CASSINI_SVCS];
    uint64_t          domains[CASSINI_DOMAINS]; /**< Atomic */
    cassini_slot_t    slots[CASSINI_SLOTS];
    cassini_ring_t    rings[CASSINI_SLOTS][CASSINI_SLOTS]; /**< [from][to] */
} cassini_dir_t;

/** The directory, and this process's place; NULL before attach. */
extern cassini_dir_t *cassini_dir;
extern unsigned cassini_dir_self;
extern uint32_t cassini_dir_gen;

/** 0 or a negative errno. */
int cassini_dir_attach(void);

/** The last process removes the directory. */
void cassini_dir_detach(void);

/** Forget the directory, which is the parent's: after a fork. */
void cassini_dir_forget(void);

/** Changes by more than one store are made between these. */
void cassini_dir_lock(void);
void cassini_dir_unlock(void);

/** Take a process number; CASSINI_PID_ANY in *pid_p is replaced by a free one.
 *  0, -EEXIST, -ENOSPC. */
int cassini_dir_add(unsigned vni, unsigned *pid_p);
void cassini_dir_remove(unsigned vni, unsigned pid);

/** Whose a process number is: CASSINI_RC_OK, or why nobody's. */
int cassini_dir_find(unsigned vni, unsigned pid, unsigned *slot_p,
                     uint32_t *gen_p);

/** Whether the process lives that had this place. If not, it is cleared. */
int cassini_dir_alive(unsigned slot, uint32_t gen);

/** Clear the slots of all processes that died. */
void cassini_dir_sweep(void);

/** Take one of a service's resources: 0 or -ENOSPC. */
int cassini_dir_take(int svc, int rsrc);
void cassini_dir_give(int svc, int rsrc, unsigned count);
unsigned cassini_dir_used(int svc, int rsrc);

#endif
