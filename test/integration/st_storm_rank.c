/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_storm_rank.c - one of the ranks.
 *
 * It has a send and a receive for each other rank, and uses them often, all of
 * them on one stream. A set of them is used by one call: those of one other
 * rank, or, in some storms, all; it may be an exchange. Each set has a queue.
 *
 * Each step that it makes is counted; the one that the storm has chosen kills
 * the victim. From then on what the rank has to do with the victim, and nothing
 * else, may fail: with an error that tells so and which operation it was, or
 * not at all. Where all operations of a rank are one set, all of it may fail,
 * and then what others have to do with that rank. What is said to be complete
 * is complete.
 */
#include "st_place.h"
#include "st_storm.h"
#include "st_any.h"
#include "st_bytes.h"
#include "st_world.h"

#include <ucp_st.h>

#include <stdlib.h>

#define SEND      0
#define RECV      1
#define MAX_AHEAD 8

/* What ranks draw, beside uses */
#define DRAW_JOINT    2000 /* whether all that a rank has is one set */
#define DRAW_EXCHANGE 2001 /* of these numbers, one for each set */

struct rank;

/** What a rank has to do with another one. Of the host, but for the counts,
 *  which are the stream's until it was waited for. */
typedef struct link {
    struct rank   *rank;
    int           other;
    int           is_mem[2]; /* others can map the buffer */
    size_t        length[2];
    st_place_t    place[2]; /* of a buffer */
    ucp_st_peer_h peer;
    ucp_st_op_h   op[2];
    uint64_t      filled;    /* uses */
    uint64_t      checked;
    uint64_t      first_bad; /* use with wrong data; 0: none */
} link_t;

/** What is used together. */
typedef struct set {
    struct rank       *rank;
    int               is_dead;  /* nothing is begun with it any more */
    int               is_over;  /* and the host has waited for its queue */
    int               num_links;
    link_t            *links[STORM_MAX_RANKS];
    ucp_st_op_h       ops[2 * STORM_MAX_RANKS];
    ucp_st_exchange_h exchange; /* NULL: it is none */
    ucp_st_queue_h    queue;
} set_t;

typedef struct rank {
    storm_board_t   *board;
    int             index;
    int             is_joint;
    uint64_t        state;   /* of random numbers */
    ucp_st_worker_h worker;
    ucs_gstream_h   stream;
    link_t          links[STORM_MAX_RANKS];
    int             num_sets;
    set_t           sets[STORM_MAX_RANKS];
} rank_t;

static const size_t lengths[] = {0, 8, 56, 1000, 16384, 20000, 100000, 300000};

/* Any thread */
static void step(rank_t *rank)
{
    storm_step(rank->board);
}

static void at(rank_t *rank, const char *where)
{
    storm_at(rank->board, rank->index, where);
}

static storm_card_t *card_of(const rank_t *rank)
{
    return &rank->board->card[rank->index];
}

static int is_victim(const link_t *link)
{
    return storm_is_killed(link->rank->board, link->other);
}

/* Non-zero if the victim's death may end this */
static int is_excused(const link_t *link)
{
    const storm_board_t *board = link->rank->board;

    return link->rank->is_joint ? storm_is_killed(board, board->victim) :
                                  is_victim(link);
}

static int is_death(ucs_status_t status)
{
    return (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_ENDPOINT_TIMEOUT) ||
           (status == UCS_ERR_UNREACHABLE) || (status == UCS_ERR_CANCELED);
}

/* Non-zero if a call did what it should; it may have failed for the victim's
 * sake */
static int is_good(const link_t *link, ucs_status_t status, const char *what)
{
    if ((status != UCS_OK) && (!is_excused(link) || !is_death(status))) {
        storm_complain(card_of(link->rank),
                       "%s with rank %d, which is %s: %s", what, link->other,
                       is_victim(link) ? "dead" : "alive",
                       ucs_status_string(status));
    }
    return status == UCS_OK;
}

/* The same of a set */
static void judge(set_t *set, ucs_status_t status, const char *what)
{
    if (!is_good(set->links[0], status, what)) {
        set->is_dead = 1;
    }
}

static void require(rank_t *rank, ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        storm_complain(card_of(rank), "%s: %s", what,
                       ucs_status_string(status));
    }
}

/* A pair of ranks draws the same numbers, for each direction */
static uint64_t draw(const link_t *link, int dir)
{
    int from = (dir == SEND) ? link->rank->index : link->other;
    int to   = (dir == SEND) ? link->other : link->rank->index;

    return st_bytes_mix(link->rank->board->seed, (from * STORM_MAX_RANKS) + to);
}

static void fill_func(void *arg)
{
    link_t *link = arg;

    step(link->rank);
    ++link->filled;
    st_bytes_fill(link->place[SEND].host, link->length[SEND],
                  st_bytes_mix(draw(link, SEND), link->filled));
}

/* Whether a wait has passed because of an error is found out later */
static void check_func(void *arg)
{
    link_t *link = arg;

    step(link->rank);
    ++link->checked;
    if ((st_bytes_check(link->place[RECV].host, link->length[RECV],
                        st_bytes_mix(draw(link, RECV), link->checked)) !=
         ST_BYTES_NONE) && (link->first_bad == 0)) {
        link->first_bad = link->checked;
    }
}

static void open_worker(rank_t *rank)
{
    ucp_st_worker_params_t params      = {.field_mask = 0};
    storm_card_t *card                 = card_of(rank);
    size_t length, i;
    void *address;

    at(rank, "opening its worker");
    require(rank, st_any_stream(&rank->stream), "stream");
    require(rank, ucp_st_worker_create(&params, &rank->worker), "worker");
    require(rank, ucp_st_worker_get_address(rank->worker, &address, &length),
            "address");
    for (i = 0; i < length; ++i) {
        card->address[i] = ((uint8_t*)address)[i];
    }
    ucp_st_worker_release_address(rank->worker, address);
    storm_publish(rank->board, rank->index, length);
    at(rank, "waiting for addresses");
}

/* Non-zero once it is there; it never is if the victim dies early */
static int await_address(link_t *link)
{
    const storm_board_t *board = link->rank->board;

    while (!storm_is_published(board, link->other)) {
        if (is_victim(link)) {
            return 0;
        }
        st_world_sleep(&board->card[link->other].length, 0, 1);
    }
    return 1;
}

static void get_buffer(link_t *link, int dir)
{
    st_place_t *place = &link->place[dir];
    size_t length     = link->length[dir] + 1;
    int is_mem        = (int)(st_bytes_random(&link->rank->state) % 2);
    void *buffer;

    link->is_mem[dir] = is_mem && !st_place_is_set();
    if (link->is_mem[dir]) {
        require(link->rank, ucp_st_mem_alloc(length, &buffer), "memory");
        place->host = buffer;
    } else {
        require(link->rank, st_place_get(place, length), "memory");
    }
}

static void make_op(link_t *link, int dir)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER,
        .peer       = link->peer
    };

    link->length[dir] = lengths[draw(link, dir) %
                                (sizeof(lengths) / sizeof(lengths[0]))];
    get_buffer(link, dir);
    params.buffer     = st_place_buffer(&link->place[dir]);
    params.length     = link->length[dir];
    require(link->rank, ((dir == SEND) ? ucp_st_send_init : ucp_st_recv_init)(
                                link->rank->worker, &params, &link->op[dir]),
            "operation");
}

static uint64_t draw_rank(const rank_t *rank, unsigned what)
{
    return st_bytes_mix(st_bytes_mix(rank->board->seed, what), rank->index);
}

/* Non-zero if there is somebody */
static int open_link(link_t *link)
{
    rank_t *rank             = link->rank;
    const storm_card_t *card = &rank->board->card[link->other];

    if (!await_address(link) ||
        !is_good(link, ucp_st_peer_create(rank->worker, card->address,
                                          card->length, &link->peer),
                 "connecting")) {
        return 0;
    }
    step(rank);
    make_op(link, SEND);
    make_op(link, RECV);
    return 1;
}

/* Coupled is right: each rank starts the uses of all its operations at once, or
 * there is one other rank */
static void open_set(set_t *set)
{
    rank_t *rank                 = set->rank;
    uint64_t drawn               = draw_rank(rank, DRAW_EXCHANGE +
                                                   rank->num_sets);
    ucp_st_queue_params_t params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM,
        .stream     = rank->stream
    };

    ++rank->num_sets;
    require(rank, ucp_st_queue_create(rank->worker, &params, &set->queue),
            "queue");
    if (drawn & 1) {
        require(rank,
                ucp_st_exchange_create(rank->worker, set->ops,
                                       2 * set->num_links, (drawn & 2) ?
                                       UCP_ST_EXCHANGE_FLAG_COUPLED : 0,
                                       &set->exchange), "exchange");
    }
    judge(set, (set->exchange == NULL) ?
               ucp_st_imatchall(set->ops, 2 * set->num_links) :
               ucp_st_exchange_imatch(set->exchange), "imatchall");
    step(rank);
}

static void open_sets(rank_t *rank)
{
    set_t *set;
    int other, i;

    for (other = 0; other < rank->board->ranks; ++other) {
        set       = &rank->sets[rank->num_sets];
        set->rank = rank;
        if ((other == rank->index) || !open_link(&rank->links[other])) {
            continue;
        }
        for (i = 0; i < 2; ++i) {
            set->ops[(2 * set->num_links) + i] = rank->links[other].op[i];
        }
        set->links[set->num_links++] = &rank->links[other];
        if (!rank->is_joint) {
            open_set(set);
        }
    }
    if (rank->is_joint && (rank->sets[0].num_links > 0)) {
        open_set(&rank->sets[0]);
    }
}

static void match_set(set_t *set)
{
    ucs_status_t status;
    int i;

    for (i = 0; (i < 2 * set->num_links) && !set->is_dead; ++i) {
        while ((status = ucp_st_match_test(set->ops[i])) == UCS_INPROGRESS) {
            st_world_sleep(&set->rank->board->go, 1, 1);
        }
        judge(set, status, "matching");
        step(set->rank);
    }
}

static void for_links(set_t *set, ucs_gstream_func_t func, int dir)
{
    ucs_gstream_h stream = set->rank->stream;
    link_t *link;
    int i;

    for (i = 0; i < set->num_links; ++i) {
        link = set->links[i];
        if (dir == RECV) {
            require(set->rank, st_place_load(&link->place[dir], stream),
                    "copy");
        }
        require(set->rank, ucs_gstream_enqueue_func(stream, func, link),
                "function");
        if (dir == SEND) {
            require(set->rank, st_place_store(&link->place[dir], stream),
                    "copy");
        }
    }
}

/* The stream goes on behind a wait that an error has let pass */
static void enqueue_use(set_t *set)
{
    for_links(set, fill_func, SEND);
    judge(set, (set->exchange == NULL) ?
               ucp_st_enqueue_startall(set->queue, set->ops,
                                       2 * set->num_links) :
               ucp_st_enqueue_exchange_start(set->queue, set->exchange),
          "start");
    if (set->is_dead) {
        return;
    }
    step(set->rank);
    judge(set, (set->exchange == NULL) ?
               ucp_st_enqueue_waitall(set->queue, set->ops,
                                      2 * set->num_links) :
               ucp_st_enqueue_exchange_wait(set->queue, set->exchange),
          "wait");
    if (set->is_dead) {
        return;
    }
    for_links(set, check_func, RECV);
    step(set->rank);
}

static int has_op(const set_t *set, ucp_st_op_h op)
{
    int i;

    for (i = 0; i < 2 * set->num_links; ++i) {
        if (set->ops[i] == op) {
            return 1;
        }
    }
    return 0;
}

/* What was received before an error is right */
static void check_link(const set_t *set, const link_t *link)
{
    ucp_st_op_attr_t attr;

    require(set->rank, ucp_st_op_query(link->op[RECV], &attr), "query");
    if ((link->first_bad > 0) &&
        (!set->is_dead || (link->first_bad <= attr.completed))) {
        storm_complain(card_of(set->rank),
                       "use %lu from rank %d is wrong, %lu are complete",
                       link->first_bad, link->other, attr.completed);
    }
}

/* The host is told, with the operation */
static void wait_set(set_t *set)
{
    ucp_st_queue_error_t error = {0};
    rank_t *rank               = set->rank;
    ucs_status_t status;
    int i;

    status = ucp_st_queue_wait(set->queue, &error);
    judge(set, status, "queue");
    if (status != UCS_OK) {
        ++card_of(rank)->errors;
        if ((error.status != status) || !has_op(set, error.op)) {
            storm_complain(card_of(rank),
                           "queue for rank %d: error without its operation",
                           set->links[0]->other);
        }
    }
    require(rank, ucs_gstream_synchronize(rank->stream), "stream");
    for (i = 0; i < set->num_links; ++i) {
        check_link(set, set->links[i]);
    }
    set->is_over = set->is_dead;
    step(rank);
}

static void use_sets(rank_t *rank)
{
    unsigned ahead, uses, i;
    set_t *set;

    for (uses = 0; uses < STORM_USES; uses += ahead) {
        /* All ranks draw the same number: each use has its other half */
        ahead = 1 + (unsigned)(st_bytes_mix(rank->board->seed, 1000 + uses) %
                               MAX_AHEAD);
        for (set = rank->sets; set < &rank->sets[rank->num_sets]; ++set) {
            for (i = 0; (i < ahead) && !set->is_dead; ++i) {
                enqueue_use(set);
            }
        }
        for (set = rank->sets; set < &rank->sets[rank->num_sets]; ++set) {
            if (!set->is_over) {
                wait_set(set);
            }
        }
    }
}

/* Until it is not busy */
static void free_ops(set_t *set, int first)
{
    ucs_status_t status;

    do {
        (void)ucp_st_worker_progress(set->rank->worker);
        status = (set->exchange == NULL) ? ucp_st_op_free(set->ops[first]) :
                                           ucp_st_exchange_free(set->exchange);
    } while (status == UCS_ERR_BUSY);
    require(set->rank, status, "free");
    step(set->rank);
}

static void close_set(set_t *set)
{
    int i;

    for (i = 0; i < ((set->exchange == NULL) ? 2 * set->num_links : 1); ++i) {
        free_ops(set, i);
    }
    require(set->rank, ucp_st_queue_destroy(set->queue), "queue's end");
}

static void free_buffers(link_t *link)
{
    int dir;

    for (dir = 0; dir < 2; ++dir) {
        if (link->is_mem[dir]) {
            require(link->rank, ucp_st_mem_free(link->place[dir].host),
                    "memory");
        } else {
            st_place_put(&link->place[dir]);
        }
    }
}

static void for_sets(rank_t *rank, void (*func)(set_t *set))
{
    int i;

    for (i = 0; i < rank->num_sets; ++i) {
        func(&rank->sets[i]);
    }
}

int storm_rank_main(storm_board_t *board, int index)
{
    rank_t rank = {
        .board    = board,
        .index    = index,
        .is_joint = (st_bytes_mix(board->seed, DRAW_JOINT) % 3) == 0,
        .state    = board->seed + index
    };
    int other;

    for (other = 0; other < board->ranks; ++other) {
        rank.links[other].rank  = &rank;
        rank.links[other].other = other;
    }
    open_worker(&rank);
    open_sets(&rank);
    at(&rank, "matching");
    for_sets(&rank, match_set);
    at(&rank, "using");
    use_sets(&rank);
    at(&rank, "freeing");
    for_sets(&rank, close_set);
    at(&rank, "destroying its worker");
    require(&rank, ucp_st_worker_destroy(rank.worker), "worker's end");
    at(&rank, "destroying its stream");
    require(&rank, ucs_gstream_destroy(rank.stream), "stream's end");
    for (other = 0; other < board->ranks; ++other) {
        free_buffers(&rank.links[other]);
    }
    return storm_end(board, index);
}
