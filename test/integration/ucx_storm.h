/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_storm.h - the ranks of ucx_storm, and what they do with each other.
 */
#ifndef UCX_STORM_H_
#define UCX_STORM_H_

#include "st_storm.h"

#include <ucp/api/ucp.h>

#define UCX_STORM_LENGTH 200000 /* of a message, and of a piece of memory */
#define UCX_STORM_AM_ID  7


/** What is under way with a rank at once. */
typedef enum {
    OP_RECV,
    OP_SEND,
    OP_AM_SEND,
    OP_AM_DATA, /* an active message that comes by rendezvous */
    OP_PUT,
    OP_GET,
    OP_ADD,
    OP_FLUSH,
    OP_CLOSE,
    OP_LAST
} storm_kind_t;

struct link;

/** One of these. */
typedef struct op {
    struct link  *link;
    storm_kind_t kind;
    int          is_active;
    int          is_ok;    /* when it was last over */
    void         *request;
} storm_op_t;

/** Of a rank's memory, what others reach: data that does not change, and for
 *  each rank a piece to write and a word to count with. */
typedef struct memory {
    uint64_t count[STORM_MAX_RANKS];
    uint8_t  constant[UCX_STORM_LENGTH];
    uint8_t  piece[STORM_MAX_RANKS][UCX_STORM_LENGTH];
} storm_memory_t;

struct rank;

/** What a rank has to do with another one. */
typedef struct link {
    struct rank *rank;
    int         other;
    int         is_dead;
    ucp_ep_h    ep;
    ucp_rkey_h  rkey;
    uint64_t    memory;      /* the other one's */
    storm_op_t  op[OP_LAST];
    uint64_t    am_header;   /* of the one that is sent */
    uint64_t    am_arrived;  /* messages, whole */
    uint64_t    added;
    uint64_t    one;
    uint64_t    old;
    uint8_t     *sent;
    uint8_t     *received;
    uint8_t     *am_received;
    uint8_t     *put;
    uint8_t     *got;
} storm_link_t;

/** A rank. One thread. */
typedef struct rank {
    storm_board_t  *board;
    storm_card_t   *card;
    int            index;
    int            is_connected; /* as are all others */
    uint64_t       use;
    uint64_t       expected; /* active messages of each of the others */
    ucp_context_h  context;
    ucp_worker_h   worker;
    storm_memory_t *memory;
    ucp_mem_h      memh;
    storm_link_t   links[STORM_MAX_RANKS];
} storm_rank_t;


/** A step of a rank, which counts once all ranks are connected. */
void ucx_storm_step(storm_rank_t *rank);

/** The same, with what the rank begins. */
void ucx_storm_at(storm_rank_t *rank, const char *where);

/** Something of a link has failed: only the victim's end may have caused this,
 *  and nothing is begun with it then. */
void ucx_storm_fail(storm_link_t *link, ucs_status_t status, const char *what);

/** UCP's handler of active messages; @a arg is the rank. */
ucs_status_t ucx_storm_am_handler(void *arg, const void *header,
                                  size_t header_length, void *data,
                                  size_t length,
                                  const ucp_am_recv_param_t *info);

/** The seed of a rank's constant data. */
uint64_t ucx_storm_constant(const storm_rank_t *rank, int index);

/** Begin all that a use consists of, or what is still possible. */
void ucx_storm_exchange(storm_link_t *link);

/** When it is over, check what has come. */
void ucx_storm_check_exchange(storm_link_t *link);

/** Begin a flush. */
void ucx_storm_flush(storm_link_t *link);

/** Begin to get what was put in this use. */
void ucx_storm_get_back(storm_link_t *link);

/** When that is over, check it. */
void ucx_storm_check_back(storm_link_t *link);

/** Begin to close the endpoint, if there is one. */
void ucx_storm_close(storm_link_t *link);

/** Non-zero while something is under way or expected. */
int ucx_storm_is_busy(storm_link_t *link);

#endif
