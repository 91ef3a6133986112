/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_storm_rank.c - one of the ranks.
 *
 * It has a queue for each other rank, with a send and a receive, all of them on
 * one stream, and uses them often. Each step that it makes is counted; the one
 * that the storm has chosen kills the victim. From then on what the rank has to
 * do with the victim, and nothing else, may fail: with an error that tells so
 * and which operation it was, or not at all. What is said to be complete is
 * complete.
 */
#include "st_storm.h"
#include "st_any.h"
#include "st_bytes.h"
#include "st_world.h"

#include <ucp_st.h>

#include <stdlib.h>

#define SEND      0
#define RECV      1
#define MAX_AHEAD 8

struct rank;

/** What a rank has to do with another one. Of the host, but for the counts,
 *  which are the stream's until it was waited for. */
typedef struct link {
    struct rank    *rank;
    int            other;
    int            is_dead;   /* nothing is begun with it any more */
    int            is_over;   /* and the host has waited for its queue */
    int            is_mem[2]; /* others can map the buffer */
    size_t         length[2];
    uint8_t        *buffer[2];
    ucp_st_peer_h  peer;
    ucp_st_queue_h queue;
    ucp_st_op_h    op[2];
    uint64_t       filled;    /* uses */
    uint64_t       checked;
    uint64_t       first_bad; /* use with wrong data; 0: none */
} link_t;

typedef struct rank {
    storm_board_t   *board;
    int             index;
    uint64_t        state;   /* of random numbers */
    ucp_st_worker_h worker;
    ucs_gstream_h   stream;
    link_t          links[STORM_MAX_RANKS];
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

static int is_death(ucs_status_t status)
{
    return (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_ENDPOINT_TIMEOUT) ||
           (status == UCS_ERR_UNREACHABLE) || (status == UCS_ERR_CANCELED);
}

/* Non-zero if a call did what it should; it may have failed for the victim's
 * sake */
static int is_good(link_t *link, ucs_status_t status, const char *what)
{
    if (status == UCS_OK) {
        return 1;
    }
    if (!is_victim(link) || !is_death(status)) {
        storm_complain(card_of(link->rank),
                       "%s with rank %d, which is %s: %s", what, link->other,
                       is_victim(link) ? "dead" : "alive",
                       ucs_status_string(status));
    }
    link->is_dead = 1;
    return 0;
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
    st_bytes_fill(link->buffer[SEND], link->length[SEND],
                  st_bytes_mix(draw(link, SEND), link->filled));
}

/* Whether a wait has passed because of an error is found out later */
static void check_func(void *arg)
{
    link_t *link = arg;

    step(link->rank);
    ++link->checked;
    if ((st_bytes_check(link->buffer[RECV], link->length[RECV],
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

static void *get_buffer(link_t *link, int dir)
{
    void *buffer;

    link->is_mem[dir] = (int)(st_bytes_random(&link->rank->state) % 2);
    if (link->is_mem[dir]) {
        require(link->rank, ucp_st_mem_alloc(link->length[dir] + 1, &buffer),
                "memory");
        return buffer;
    }
    return malloc(link->length[dir] + 1);
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
    link->buffer[dir] = get_buffer(link, dir);
    params.buffer     = link->buffer[dir];
    params.length     = link->length[dir];
    require(link->rank, ((dir == SEND) ? ucp_st_send_init : ucp_st_recv_init)(
                                link->rank->worker, &params, &link->op[dir]),
            "operation");
}

static void open_link(link_t *link)
{
    rank_t *rank                 = link->rank;
    const storm_card_t *card     = &rank->board->card[link->other];
    ucp_st_queue_params_t params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM,
        .stream     = rank->stream
    };

    link->is_dead = !await_address(link);
    if (link->is_dead ||
        !is_good(link, ucp_st_peer_create(rank->worker, card->address,
                                          card->length, &link->peer),
                 "connecting")) {
        return;
    }
    step(rank);
    require(rank, ucp_st_queue_create(rank->worker, &params, &link->queue),
            "queue");
    make_op(link, SEND);
    make_op(link, RECV);
    (void)is_good(link, ucp_st_imatchall(link->op, 2), "imatchall");
    step(rank);
}

static void match_link(link_t *link)
{
    ucs_status_t status;
    int dir;

    for (dir = 0; (dir < 2) && !link->is_dead; ++dir) {
        while ((status = ucp_st_match_test(link->op[dir])) == UCS_INPROGRESS) {
            st_world_sleep(&link->rank->board->go, 1, 1);
        }
        (void)is_good(link, status, "matching");
        step(link->rank);
    }
}

/* The stream goes on behind a wait that an error has let pass */
static void enqueue_use(link_t *link)
{
    rank_t *rank = link->rank;

    require(rank, ucs_gstream_enqueue_func(rank->stream, fill_func, link),
            "fill");
    if (!is_good(link, ucp_st_enqueue_startall(link->queue, link->op, 2),
                 "start")) {
        return;
    }
    step(rank);
    if (!is_good(link, ucp_st_enqueue_waitall(link->queue, link->op, 2),
                 "wait")) {
        return;
    }
    require(rank, ucs_gstream_enqueue_func(rank->stream, check_func, link),
            "check");
    step(rank);
}

/* The host is told, with the operation; what was received before is right */
static void wait_link(link_t *link)
{
    ucp_st_queue_error_t error = {0};
    rank_t *rank               = link->rank;
    ucp_st_op_attr_t attr;
    ucs_status_t status;

    status = ucp_st_queue_wait(link->queue, &error);
    if (!is_good(link, status, "queue")) {
        ++card_of(rank)->errors;
        if ((error.status != status) ||
            ((error.op != link->op[SEND]) && (error.op != link->op[RECV]))) {
            storm_complain(card_of(rank),
                           "queue for rank %d: error without its operation",
                           link->other);
        }
    }
    require(rank, ucs_gstream_synchronize(rank->stream), "stream");
    require(rank, ucp_st_op_query(link->op[RECV], &attr), "query");
    if ((link->first_bad > 0) &&
        (!link->is_dead || (link->first_bad <= attr.completed))) {
        storm_complain(card_of(rank),
                       "use %lu from rank %d is wrong, %lu are complete",
                       link->first_bad, link->other, attr.completed);
    }
    link->is_over = link->is_dead;
    step(rank);
}

static void use_links(rank_t *rank)
{
    unsigned ahead, uses, i;
    link_t *link;
    int other;

    for (uses = 0; uses < STORM_USES; uses += ahead) {
        /* All ranks draw the same number: each use has its other half */
        ahead = 1 + (unsigned)(st_bytes_mix(rank->board->seed, 1000 + uses) %
                               MAX_AHEAD);
        for (other = 0; other < rank->board->ranks; ++other) {
            link = &rank->links[other];
            for (i = 0; (i < ahead) && (other != rank->index) &&
                        !link->is_dead; ++i) {
                enqueue_use(link);
            }
        }
        for (other = 0; other < rank->board->ranks; ++other) {
            link = &rank->links[other];
            if ((link->queue != NULL) && !link->is_over) {
                wait_link(link);
            }
        }
    }
}

static void close_link(link_t *link)
{
    ucs_status_t status;
    int dir;

    for (dir = 0; dir < 2; ++dir) {
        if (link->op[dir] == NULL) {
            continue;
        }
        do {
            (void)ucp_st_worker_progress(link->rank->worker);
            status = ucp_st_op_free(link->op[dir]);
        } while (status == UCS_ERR_BUSY);
        require(link->rank, status, "free");
        step(link->rank);
    }
    if (link->queue != NULL) {
        require(link->rank, ucp_st_queue_destroy(link->queue), "queue's end");
    }
}

static void free_buffers(link_t *link)
{
    int dir;

    for (dir = 0; dir < 2; ++dir) {
        if (link->is_mem[dir]) {
            require(link->rank, ucp_st_mem_free(link->buffer[dir]), "memory");
        } else {
            free(link->buffer[dir]);
        }
    }
}

/* All that is to be done with each of the others */
static void for_others(rank_t *rank, void (*func)(link_t *link))
{
    int other;

    for (other = 0; other < rank->board->ranks; ++other) {
        if (other != rank->index) {
            func(&rank->links[other]);
        }
    }
}

int storm_rank_main(storm_board_t *board, int index)
{
    rank_t rank = {
        .board = board,
        .index = index,
        .state = board->seed + index
    };
    int other;

    for (other = 0; other < board->ranks; ++other) {
        rank.links[other].rank  = &rank;
        rank.links[other].other = other;
    }
    open_worker(&rank);
    for_others(&rank, open_link);
    at(&rank, "matching");
    for_others(&rank, match_link);
    at(&rank, "using");
    use_links(&rank);
    at(&rank, "freeing");
    for_others(&rank, close_link);
    at(&rank, "destroying its worker");
    require(&rank, ucp_st_worker_destroy(rank.worker), "worker's end");
    at(&rank, "destroying its stream");
    require(&rank, ucs_gstream_destroy(rank.stream), "stream's end");
    for_others(&rank, free_buffers);
    return storm_end(board, index);
}
