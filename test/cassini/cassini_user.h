/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_user.h - a program that writes commands to the emulated Cassini and
 * reads its events, as libfabric's provider does.
 *
 * cassini_user_open() gives a process (or one of several users of a process) an
 * endpoint of the NIC: queues, a matching portal entry, and memory that is
 * mapped. Suites use the main thread, but for the trigger pages. A program's
 * main() is CASSINI_SUITE(): it has a NIC of its own, which its children share.
 */
#ifndef CASSINI_USER_H_
#define CASSINI_USER_H_

#include "cassini_lib.h"
#include "st_cunit.h"

#include <sys/types.h>

#define CASSINI_USER_VNI    10
#define CASSINI_USER_INDEX  5     /* Of the portal entry */
#define CASSINI_USER_MEMORY 65536 /* Bytes of each user */
#define CASSINI_USER_RING   65536

/** An event, any kind. */
typedef union cassini_event {
    cassini_ev_init_t init;
    cassini_ev_tgt_t  tgt;
    cassini_ev_fail_t fail;
    cassini_ev_trig_t trig;
    uint8_t           bytes[CASSINI_SLOT];
} cassini_event_t;

/** A command, any kind. */
typedef union cassini_command {
    cassini_head_t          head;
    cassini_idc_t           idc;
    cassini_idc_msg_t       msg;
    cassini_idc_amo_t       amo;
    cassini_idc_small_amo_t small_amo;
    cassini_cstate_t        cstate;
    cassini_dma_t           dma;
    cassini_dma_amo_t       dma_amo;
    cassini_ct_cmd_t        ct;
    cassini_cq_cmd_t        cq;
    cassini_tgt_cmd_t       tgt;
    cassini_setstate_t      setstate;
    uint64_t                words[32];
} cassini_command_t;

/** A counter of the NIC, and where it is written back. */
typedef struct cassini_user_ct {
    cassini_ct_t      *ct;
    volatile uint64_t *back;
} cassini_user_ct_t;

typedef struct cassini_user {
    cassini_dev_t     *dev;
    cassini_lni_t     *lni;
    cassini_cp_t      *cp;
    cassini_cp_t      *trig_cp;
    cassini_domain_t  *domain;
    cassini_eq_t      *eq;
    cassini_cq_t      *tx;
    cassini_cq_t      *trig; /**< Of triggered operations */
    cassini_cq_t      *tgt;
    cassini_pte_t     *pte;
    cassini_pte_map_t *map;
    cassini_md_t      *ring_md;
    cassini_md_t      *md;
    uint8_t           *ring;
    uint8_t           *memory;
    cassini_event_t   event; /**< The last one */
} cassini_user_t;


/** Open an endpoint; a process number of 511 takes any. Fails the case, and
 *  ends the program, if that cannot be. The portal entry is enabled. */
void cassini_user_open(cassini_user_t *user, unsigned pid);

/** Close it, in the provider's order. */
void cassini_user_close(cassini_user_t *user);

/** The same up to the service's interface alone. */
void cassini_user_open_lni(cassini_user_t *user);
void cassini_user_close_lni(cassini_user_t *user);

/** Make a portal entry of an index that is enabled. */
cassini_pte_t *cassini_user_pte(cassini_user_t *user, unsigned index,
                                int is_matching, cassini_pte_map_t **map_p);

/** The same with options. */
cassini_pte_t *cassini_user_pte_opts(cassini_user_t *user, unsigned index,
                                     cassini_pte_opts_t opts,
                                     cassini_pte_map_t **map_p);

/** Set the state of a portal entry, and take the event that says so. */
void cassini_user_set_state(cassini_user_t *user, cassini_pte_t *pte,
                            unsigned state);

/** A command of a type and an operation; all else is 0. */
cassini_command_t cassini_command(unsigned type, unsigned op);

/** Write a command of so many bytes into a queue, and tell the NIC. */
void cassini_emit(cassini_cq_t *cq, const cassini_command_t *cmd,
                  size_t length);

/** Wait until the NIC has taken all commands of a queue. Zero if it has not
 *  within some ms. */
int cassini_drained(const cassini_cq_t *cq, unsigned ms);

/** Wait for the next event, keep it as the user's, and let the NIC have its
 *  slot. Ends the case as failed if it is of another type, or none comes. */
const cassini_event_t *cassini_event(cassini_user_t *user, unsigned type);

/** The same, and the code must be this one. */
const cassini_event_t *cassini_event_rc(cassini_user_t *user, unsigned type,
                                        unsigned rc);

/** A command that the target refuses; both sides are told. */
void cassini_refused(cassini_user_t *user, unsigned tgt_type,
                     unsigned init_type, unsigned rc);

/** The code of an event. */
unsigned cassini_event_code(const cassini_event_t *event);

/** Non-zero if an event is there, for which it waits some ms. */
int cassini_event_is_there(const cassini_user_t *user, unsigned ms);

/** A put, get or rendezvous of DMA to the portal entry of a process on the own
 *  NIC: all events, match bits 0. */
cassini_command_t cassini_dma(const cassini_user_t *user, unsigned op,
                              unsigned pid, const void *local, size_t length);

/** Address of a process's portal index for commands: the bits of ep. */
unsigned cassini_ep(unsigned pid, unsigned index);

/** An entry of a list over memory of the user: puts and gets are allowed, bits
 *  must match, the initiator gives the offset. */
cassini_command_t cassini_entry(const cassini_user_t *user, unsigned list,
                                void *start, size_t length, uint64_t bits);

/** Append it and take the event that says so. */
void cassini_append(cassini_user_t *user, const cassini_command_t *cmd);

/** Unlink the entry of a buffer number and take the event. */
void cassini_unlink(cassini_user_t *user, unsigned list, unsigned buffer_id);

/** State of the TX queue for IDC commands: all events, the user's portal index
 *  as the target's. */
cassini_command_t cassini_cstate(const cassini_user_t *user, uint64_t context);

/** A counter; its page takes adds. */
void cassini_ct_open(cassini_user_t *user, cassini_user_ct_t *ct);
void cassini_ct_close(cassini_user_ct_t *ct);

/** Have the NIC write the counter back until its successes and failures are so
 *  many; fails the case if they do not get there. */
void cassini_ct_expect(cassini_user_t *user, cassini_user_ct_t *ct,
                       uint64_t success, unsigned failure);

/** The counter as it is now. */
cassini_ct_back_t cassini_ct_read(cassini_user_t *user, cassini_user_ct_t *ct);

/** What waits may take, s. */
double cassini_limit(void);
double cassini_now(void);


/** Run this program again as a child that only calls a function of the suite's
 *  table, on the same NIC; or, with settings NAME=VALUE, one a line, on a NIC
 *  of its own. Its number, for waitpid(). */
pid_t cassini_child(const char *name, const char *settings);

/** A child is ready; its parent waits until the last child is. */
void cassini_ready(void);
void cassini_child_await(void);

/** Wait for its end: the exit status, or the signal + 256. */
int cassini_child_wait(pid_t pid);

/** What a child may be. */
typedef struct cassini_part {
    const char *name;
    void       (*func)(void);
} cassini_part_t;

/** main(): the cases, or one part. */
int cassini_main(const char *suite, const cassini_part_t *parts, int argc,
                 char **argv);

#define CASSINI_SUITE(_name, _parts) \
    int main(int argc, char **argv) \
    { \
        return cassini_main(_name, _parts, argc, argv); \
    }

/** Ends a child with status 1 and a line if a condition does not hold. */
#define CASSINI_REQUIRE(_cond) \
    ((_cond) ? (void)0 : cassini_require_failed(__FILE__, __LINE__, #_cond))

void cassini_require_failed(const char *file, int line, const char *what);

#endif
