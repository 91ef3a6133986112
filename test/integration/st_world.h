/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_world.h - a group of 1 to 8 ranks, as processes or as threads of one
 * process, without MPI.
 *
 * st_world_run() forks before anybody calls UCX and is not a rank itself: it
 * watches. The first rank that fails ends the group with its reason, and so
 * does a process that dies; a group in which nothing goes on for `limit`
 * seconds is reported with what each rank waits for, and ended. No wait of a
 * rank is longer than that.
 *
 * What a rank may do is in st_rank.h.
 */
#ifndef ST_WORLD_H_
#define ST_WORLD_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ST_WORLD_MAX_RANKS 8
#define ST_WORLD_TEXT      256
#define ST_WORLD_REASON    640
#define ST_WORLD_ADDRESS   4096
#define ST_WORLD_SKIP      77 /* exit status of a test that cannot run */

struct st_rank;


/** What to run. */
typedef struct st_world_params {
    int               count;       /**< Ranks */
    int               as_threads;  /**< In one process */
    unsigned          limit;       /**< Seconds without st_rank_alive() or a
                                        barrier */
    void              *shared;     /**< As the ranks' `shared`: NULL, or of
                                        st_world_alloc() */
    const char *const *env;        /**< NAME, VALUE, ..., NULL; or NULL */
    const char *const *env_first;  /**< The same, of the first process alone */
    const void        *arg;        /**< As the ranks' `arg` */

    /** The rank's program; has a worker that all others are peers of. */
    void              (*main)(struct st_rank *me);
    /** Where ranks share no memory: asked again and again by a rank that is to
     *  meet the others, until it is not 0: all have come, and each has the
     *  addresses of all. NULL: they meet in `world`. */
    int               (*meet)(struct st_rank *me);
    /** Where nobody watches: ends the group, for the reason in `world`. */
    void              (*end)(struct st_rank *me);
    /** Prints what the rank waits for; called by another thread when the group
     *  hangs. May be NULL. */
    void              (*report)(struct st_rank *me);
} st_world_params_t;


/** Why a group ends before its time. */
typedef enum {
    ST_WORLD_GOES_ON,
    ST_WORLD_CLAIMED,  /**< Somebody is writing the reason */
    ST_WORLD_FAILED,
    ST_WORLD_SKIPPED
} st_world_end_t;


/** What ranks share. Atomic accesses, but for what the barriers order. */
typedef struct st_world {
    uint32_t end;        /**< st_world_end_t: why the group ends */
    char     reason[ST_WORLD_REASON]; /**< By the rank that claimed `end` */
    uint32_t epoch;      /**< Goes up while the group gets on */
    uint32_t arrived;    /**< At the barrier */
    uint32_t generation; /**< Of the barrier; ranks sleep on it */
    uint32_t reported;   /**< Processes that have answered to a hang */
    struct {
        pid_t    pid;
        char     where[ST_WORLD_TEXT];
        uint32_t length;  /**< Of the worker's address */
        uint8_t  address[ST_WORLD_ADDRESS];
    } rank[ST_WORLD_MAX_RANKS];
} st_world_t;


/** Run a group. 0: passed; 1: failed; ST_WORLD_SKIP; the latter two with a
 *  reason, of up to ST_WORLD_REASON bytes. Prints what the ranks of a hanging
 *  group are at. */
int st_world_run(const st_world_params_t *params, char *reason);

/** What st_world_run() does where ranks are processes that something else has
 *  started, such as mpirun; NULL: it forks them. */
extern int (*st_world_runs)(const st_world_params_t *params, char *reason);

/** Non-zero if all ranks share memory and see each other's processes. */
int st_world_is_one_node(void);

/** Memory that the caller and the ranks share, zeroed; NULL if none is left. */
void *st_world_alloc(size_t size);

void st_world_free(void *memory, size_t size);

/** To be called first in main(): settings that UCX reads when it is loaded. */
void st_world_prepare(char **argv);

/** Sleep until a word differs from `value`, is woken, or some time is over.
 *  The word may be in memory that processes share. */
void st_world_sleep(const uint32_t *word, uint32_t value, unsigned ms);

/** Wake the threads that sleep on a word. */
void st_world_wake(const uint32_t *word);

/** Non-zero if all threads of a process are stopped, and not on their way
 *  there. */
int st_world_is_stopped(pid_t pid);

/** Seconds of a clock that only goes forward. */
double st_world_now(void);

#endif
