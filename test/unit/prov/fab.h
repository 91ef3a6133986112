/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab.h - scenarios of two parties on libfabric's public interface.
 *
 * A suite's program runs under the name PROGRAM.SUBJECT, a link to it; the
 * subject is what is judged by the same cases:
 *
 *   strict   cxiemu, FI_CXIEMU_MODE=strict
 *   fast     cxiemu, FI_CXIEMU_MODE=fast
 *   sockets  libfabric's own provider, so that cxiemu is not its own judge
 *   cxi      HPE's provider, which cxiemu emulates; see test/cassini
 *
 * A scenario is a function that both parties run, told apart by me->index. It
 * is run with the parties as two threads with a domain each (the thread
 * sanitizer sees both sides), and again as two processes. FAB_PARTIES in the
 * environment (threads, processes) chooses one of them; FAB_NO_SKIP runs what
 * sockets cannot all the same.
 *
 * Scenarios check with FAB_CHECK (goes on) and FAB_REQUIRE (ends both parties),
 * from any thread that fab_adopt() was called in; the case fails if any did.
 */
#ifndef FAB_H_
#define FAB_H_

#include "st_cunit.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#include <stddef.h>
#include <stdint.h>

#define FAB_KIB 1024ul
#define FAB_MIB (1024 * FAB_KIB)

/** The largest payload of the suites */
#ifdef __SANITIZE_THREAD__
#define FAB_LARGEST FAB_MIB
#else
#define FAB_LARGEST (8 * FAB_MIB)
#endif

/** Longest address of an endpoint. */
#define FAB_NAME_MAX 128


typedef enum {
    FAB_STRICT,
    FAB_FAST,
    FAB_SOCKETS,
    FAB_CXI
} fab_subject_t;

/** What the two parties are. */
enum {
    FAB_THREADS   = 1u << 0,
    FAB_PROCESSES = 1u << 1,
    FAB_BOTH      = FAB_THREADS | FAB_PROCESSES
};

/** What each party opens; zeros ask for the defaults. */
typedef struct fab_config {
    size_t            window;      /**< Bytes of registered memory; 64 KiB */
    enum fi_cq_format format;      /**< FI_CQ_FORMAT_TAGGED */
    enum fi_wait_obj  wait;        /**< Of queues; FI_WAIT_NONE */
    enum fi_av_type   av_type;     /**< FI_AV_TABLE */
    uint64_t          caps;        /**< Beside the usual ones */
    uint64_t          msg_order;
    size_t            tx_size;
    int               mr_mode;     /**< Beside FI_MR_ENDPOINT, _ALLOCATED */
    int               selective;   /**< FI_SELECTIVE_COMPLETION */
    int               no_window;   /**< Register nothing */
} fab_config_t;

/** A completion queue, with entries that were reaped and not yet asked for. */
typedef struct fab_cq {
    struct fid_cq             *cq;
    struct fi_cq_tagged_entry *stash;
    size_t                    head;
    size_t                    count;
    size_t                    size;
} fab_cq_t;

/** What a peer says of itself. */
typedef struct fab_card {
    char     name[FAB_NAME_MAX];
    size_t   name_length;
    uint64_t key;
    uint64_t base; /**< Remote address of the window's first byte */
    uint64_t pid;
} fab_card_t;

struct fab_world;

/** A party. Its threads may use it at the same time where libfabric's objects
 *  may; the stash of a queue may not. */
typedef struct fab_side {
    int                  index;    /**< 0 or 1 */
    int                  threads;  /**< The parties are threads */
    int                  victim;   /**< Party 1 does not come to its end */
    int                  oob;      /**< Socket to the other party */
    struct fab_world     *world;
    const fab_config_t   *config;
    struct fi_info       *info;
    struct fid_fabric    *fabric;
    struct fid_domain    *domain;
    struct fid_av        *av;
    struct fid_ep        *ep;
    fab_cq_t             tx;
    fab_cq_t             rx;
    struct fid_cntr      *send;    /**< The endpoint's counters */
    struct fid_cntr      *recv;
    struct fid_cntr      *write;
    struct fid_cntr      *read;
    struct fid_cntr      *landed;  /**< Remote writes to the window */
    struct fid_mr        *mr;
    uint8_t              *window;
    size_t               length;
    fab_card_t           mine;
    fab_card_t           theirs;
    fi_addr_t            self;
    fi_addr_t            peer;
} fab_side_t;

typedef void (*fab_scenario_t)(fab_side_t *me);

/** A case: a scenario and what it needs. */
typedef struct fab_case {
    const char         *name;
    fab_scenario_t     scenario;
    const fab_config_t *config;  /**< NULL: all defaults */
    unsigned           parties;  /**< FAB_*; 0: FAB_BOTH */
    const char         *sockets; /**< Why sockets cannot; NULL: it can */
    const char         *cxi;     /**< Why it does not hold for cxi; NULL: it
                                      does */
    int                victim;   /**< Party 1 is killed (processes only) */
    const char         *env;     /**< Only where this variable is set */
} fab_case_t;


/** Run a case for the subject of this program. */
void fab_run(const fab_case_t *fcase);

/**
 * A case: the head of its scenario, whose argument is "me".
 *
 *     FAB_CASE(fence, .config = &large, .sockets = "cannot")
 *     {
 *         FAB_CHECK(...);
 *     }
 */
#define FAB_CASE(_name, ...) \
    static void fab_scenario_##_name(fab_side_t *me); \
    ST_CASE_CALL(_name, fab_run(&(const fab_case_t){ \
                                .name     = #_name, \
                                .scenario = fab_scenario_##_name, \
                                ##__VA_ARGS__})) \
    static void fab_scenario_##_name(fab_side_t *me)

/** A case that is one call. */
#define FAB_CASE_CALL(_name, _call, ...) \
    FAB_CASE(_name, ##__VA_ARGS__) \
    { \
        _call; \
    }

/** Non-zero if what was waited for since then, a time of fab_now(), is lost:
 *  half of what a case may take is over. */
int fab_is_lost(uint64_t since);

/** main() of a suite. Finds the subject in the program's name. */
int fab_main(const char *suite, int argc, char **argv);

#define FAB_SUITE(_name) \
    int main(int argc, char **argv) \
    { \
        return fab_main(_name, argc, argv); \
    }

fab_subject_t fab_subject(void);

/** libfabric's name of the subject's provider. */
const char *fab_provider(void);

/** The subject is cxi, or the emulation of it. */
static inline int fab_is_cassini(void)
{
    return fab_subject() != FAB_SOCKETS;
}

/** The subject allows what cxi does, and no more. */
static inline int fab_is_strict(void)
{
    return (fab_subject() == FAB_STRICT) || (fab_subject() == FAB_CXI);
}

/** cxi as it was before libfabric 2. */
static inline int fab_is_old_cxi(void)
{
    return (fab_subject() == FAB_CXI) && (FI_MAJOR(fi_version()) < 2);
}

/** It waits by itself, which cxi does since libfabric 2: no cq_signal(), and
 *  event queues poll. Before, these are libfabric's own. */
static inline int fab_waits_as_cxi(void)
{
    return fab_is_strict() && !fab_is_old_cxi();
}

/** This run's random sequence; the seed is printed, and taken from FAB_SEED. */
uint64_t fab_random(uint64_t *state);
uint64_t fab_seed(void);


/* --- checks --- */

/** Threads that a scenario starts say whose they are. */
void fab_adopt(fab_side_t *me);

/** Run threads to their ends, each with its element of an array; with size 0
 *  all with the same one. */
void fab_threads(unsigned count, void *(*func)(void *arg), void *args,
                 size_t size);

int fab_check_at(int ok, const char *file, int line, const char *text);
void fab_require_at(int ok, const char *file, int line, const char *text);

#define FAB_CHECK(_cond) \
    fab_check_at(!!(_cond), __FILE__, __LINE__, #_cond)

#define FAB_REQUIRE(_cond) \
    fab_require_at(!!(_cond), __FILE__, __LINE__, #_cond)

/** Two numbers are equal; both are shown when not. */
void fab_equal_at(uint64_t a, uint64_t b, const char *file, int line,
                  const char *text);
#define FAB_EQUAL(_a, _b) \
    fab_equal_at((uint64_t)(_a), (uint64_t)(_b), __FILE__, __LINE__, \
                 #_a " == " #_b)


/* --- opening --- */

/** Hints for the subject, its caps and modes; free with fi_freeinfo(). */
struct fi_info *fab_hints(const fab_config_t *config);

/** The first fi_info that the subject gives for the hints, or NULL. */
struct fi_info *fab_getinfo(struct fi_info *hints);

/** Open what the configuration says, without a peer. */
void fab_open(fab_side_t *me);

/** Tell each other's addresses and keys. */
void fab_connect(fab_side_t *me);

void fab_close(fab_side_t *me);

/** A counter, without or with a wait object. */
struct fid_cntr *fab_cntr(fab_side_t *me);
void fab_cntr_close(struct fid_cntr *cntr);

/** Register memory with an optional counter of remote writes. */
struct fid_mr *fab_register(fab_side_t *me, void *buffer, size_t length,
                            uint64_t key, struct fid_cntr *cntr);

/** Register with the given access only. */
struct fid_mr *fab_register_access(fab_side_t *me, void *buffer, size_t length,
                                   uint64_t key, uint64_t access);

/** What a peer names as address of the first byte of registered memory. */
uint64_t fab_base(const fab_side_t *me, const void *buffer);

/** A second endpoint of the domain with the party's queues; enabled. */
struct fid_ep *fab_endpoint(fab_side_t *me);


/* --- between the parties --- */

void fab_put(fab_side_t *me, const void *data, size_t length);

/** Progresses the party's endpoint meanwhile. */
void fab_get(fab_side_t *me, void *data, size_t length);

/** Give and take the same amount. */
void fab_swap(fab_side_t *me, const void *mine, void *theirs, size_t length);

/** Both have come here. */
void fab_barrier(fab_side_t *me);

/** As fab_get(), asleep in the kernel: no progress by this party. */
void fab_get_asleep(fab_side_t *me, void *data, size_t length);


/* --- waiting --- */

/** Reap queues and look at counters. */
void fab_progress(fab_side_t *me);

/** For loops: progress, and fail if it takes too long. *since starts at 0. */
void fab_turn(fab_side_t *me, uint64_t *since);

/** Next entry of a queue; an error entry fails the scenario. */
struct fi_cq_tagged_entry fab_entry(fab_side_t *me, fab_cq_t *cq);

/** Wait for @a count entries. */
void fab_entries(fab_side_t *me, fab_cq_t *cq, unsigned count);

/** Next entry, which must be an error. */
struct fi_cq_err_entry fab_error(fab_side_t *me, fab_cq_t *cq);

/** No entry is there, after a little progress. */
int fab_is_empty(fab_side_t *me, fab_cq_t *cq);

/** A counter has come to at least @a value; errors fail the scenario. */
void fab_count(fab_side_t *me, struct fid_cntr *cntr, uint64_t value);

/** It, or its failures, have come to this very value. A read is of the last
 *  writeback: it comes to the value with progress. */
void fab_reads(fab_side_t *me, struct fid_cntr *cntr, uint64_t value);
void fab_reads_errors(fab_side_t *me, struct fid_cntr *cntr, uint64_t value);

/** Its failures have. */
void fab_count_errors(fab_side_t *me, struct fid_cntr *cntr, uint64_t value);

/** A word in memory has come to at least @a value. */
void fab_word(fab_side_t *me, const void *word, uint64_t value);

/** A word that a peer's NIC may have written as a whole. */
static inline uint64_t fab_load(const void *word)
{
    return __atomic_load_n((const uint64_t*)word, __ATOMIC_ACQUIRE);
}

/** Progress until something is so; fail if it takes too long. */
#define FAB_UNTIL(_me, _cond) \
    do { \
        uint64_t fab_since = 0; \
        while (!(_cond)) { \
            fab_turn(_me, &fab_since); \
        } \
    } while (0)

/** A little progress, as time for what must not happen. */
void fab_linger(fab_side_t *me);

/** Call until it is not -FI_EAGAIN; the queue is reaped meanwhile. */
#define FAB_POST(_me, _call) \
    ({ \
        uint64_t fab_since = 0; \
        ssize_t  fab_ret; \
        while ((fab_ret = (_call)) == -FI_EAGAIN) { \
            fab_turn(_me, &fab_since); \
        } \
        fab_ret; \
    })

/** The same, and it must succeed. */
#define FAB_MUST(_me, _call) FAB_EQUAL(FAB_POST(_me, _call), 0)


/* --- data --- */

/** A sequence that depends on the seed at every byte. */
void fab_fill(void *buffer, size_t length, uint64_t seed);

/** Memory that is there; to be released with free(). */
uint8_t *fab_alloc(size_t length);

/** Offset of the first byte that differs from it; @a length if none does. */
size_t fab_differs(const void *buffer, size_t length, uint64_t seed);

/** What the other party has filled for a message is there, in full. */
#define FAB_FILLED(_me, _buffer, _length, _number) \
    FAB_EQUAL(fab_differs(_buffer, _length, \
                          fab_tint(!(_me)->index, _number)), _length)

/** Seeds that differ by sender and message. */
static inline uint64_t fab_tint(int index, uint64_t number)
{
    return (number * 2) + (uint64_t)index + 1;
}

/** Nanoseconds, monotonic. */
uint64_t fab_now(void);

#endif
