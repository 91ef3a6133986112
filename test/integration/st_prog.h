/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_prog.h - a program for several ranks, as data: messages, and what each
 * rank's host does, step by step. Has no pointers, so that processes can share
 * it.
 *
 * An operation is one side of a message: its number is twice that of the
 * message, plus 1 for the receive. Steps that are commands go to a queue or, as
 * functions, to the queue's stream, and run there when those before them have
 * run.
 */
#ifndef ST_PROG_H_
#define ST_PROG_H_

#include <stddef.h>
#include <stdint.h>

#define ST_PROG_MAX_RANKS   6
#define ST_PROG_MAX_STREAMS 4   /* of a rank */
#define ST_PROG_MAX_QUEUES  6   /* of a rank */
#define ST_PROG_MAX_MSGS    40
#define ST_PROG_MAX_OPS     (2 * ST_PROG_MAX_MSGS)
#define ST_PROG_MAX_USES    40  /* of a message */
#define ST_PROG_MAX_STEPS   1000 /* of a rank */
#define ST_PROG_MAX_BATCH   8   /* operations of a step */

#define ST_PROG_RECV(_msg)   (2 * (_msg) + 1)
#define ST_PROG_MSG(_op)     ((_op) / 2)
#define ST_PROG_IS_RECV(_op) ((_op) % 2)
#define ST_PROG_PEER(_op)    ((_op) ^ 1)


/** What a step does. */
typedef enum {
    ST_STEP_MATCH,      /**< Give to match */
    ST_STEP_MATCHED,    /**< Wait until they are matched */
    ST_STEP_START,      /**< Commands */
    ST_STEP_WAIT,
    ST_STEP_FILL,       /**< Functions: write the next payload of a send */
    ST_STEP_READ,       /**< A started send's payload must be unchanged */
    ST_STEP_SPOIL,      /**< Write over the payload of a send that is over */
    ST_STEP_CLEAN,      /**< Nothing may be in a receive's buffer yet */
    ST_STEP_CHECK,      /**< Check what was received, and clean the buffer */
    ST_STEP_WORK,       /**< Compute */
    ST_STEP_HOST_FILL,  /**< The same by the host */
    ST_STEP_HOST_CHECK,
    ST_STEP_HOST_WORK,
    ST_STEP_HOST_WAIT,  /**< Block until the queue's commands have run */
    ST_STEP_HOST_QUERY, /**< The same by asking again and again */
    ST_STEP_HOST_SYNC,  /**< Block until the queue's stream has run all */
    ST_STEP_PROGRESS,   /**< Progress the worker once */
    ST_STEP_FREE,       /**< Free an operation after its last use */
    ST_STEP_LAST
} st_step_type_t;


/** A step of a host. */
typedef struct st_step {
    uint8_t type;  /**< st_step_type_t */
    uint8_t queue; /**< Of the rank */
    uint8_t count; /**< Of `ops` */
    uint8_t ops[ST_PROG_MAX_BATCH];
} st_step_t;


/** A message. */
typedef struct st_prog_msg {
    uint8_t  rank[2]; /**< Of the send and of the receive */
    uint8_t  is_ready;
    uint8_t  is_late; /**< Matched by steps, not before the first one */
    uint8_t  is_once; /**< Each use is a message of a FIFO */
    uint16_t uses;
    uint32_t tag;
    uint32_t scope;
    uint32_t length;  /**< Of the send */
    uint32_t space;   /**< Of the receive's buffer */
} st_prog_msg_t;


/** A rank's part. */
typedef struct st_prog_rank {
    uint8_t   num_streams;
    uint8_t   num_queues;
    uint8_t   stream[ST_PROG_MAX_QUEUES]; /**< Of each queue */
    uint8_t   match_part;                 /**< Operations that are given to
                                               match at once; 0: all of them,
                                               by a blocking call */
    uint8_t   num_match;
    uint8_t   match[ST_PROG_MAX_OPS];     /**< In the order of matching */
    uint16_t  num_steps;
    st_step_t steps[ST_PROG_MAX_STEPS];
} st_prog_rank_t;


/** A program. */
typedef struct st_prog {
    uint64_t       seed;
    uint8_t        num_ranks;
    uint8_t        num_msgs;
    st_prog_msg_t  msgs[ST_PROG_MAX_MSGS];
    uint8_t        exchange[ST_PROG_MAX_OPS]; /**< That an operation is of,
                                                   from 1; 0: of none. All its
                                                   steps are of all of it */
    uint8_t        is_coupled[ST_PROG_MAX_OPS + 1]; /**< Exchanges */
    st_prog_rank_t ranks[ST_PROG_MAX_RANKS];
} st_prog_t;


/** The rank that an operation belongs to. */
int st_prog_rank_of(const st_prog_t *prog, int op);

/** Non-zero if a send waits for the counterpart of another one: both are of a
 *  coupled exchange, and neither is a ready one. */
int st_prog_waits_for(const st_prog_t *prog, int send, int other);

/** Append a step; its operations are still to be set. NULL if there is no room
 *  for it. */
st_step_t *st_prog_add(st_prog_t *prog, int rank, st_step_type_t type,
                       int queue);

/** Append a step with one operation, or with none (-1). Non-zero if there was
 *  room. */
int st_prog_add_op(st_prog_t *prog, int rank, st_step_type_t type, int queue,
                   int op);

/** Non-zero for a step that a stream carries out. */
int st_step_is_command(const st_step_t *step);

/** Write what a step of a rank does. */
void st_prog_step_text(const st_prog_t *prog, int rank, unsigned step,
                       char *text, size_t size);

/** Print a program. */
void st_prog_print(const st_prog_t *prog);

#endif
