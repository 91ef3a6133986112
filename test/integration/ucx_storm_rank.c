/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_storm_rank.c - one of the ranks of ucx_storm: a plain user of UCP, in the
 * mode in which a peer's failure is an error.
 *
 * In each use, and with each other rank, it sends and receives a tagged and an
 * active message, puts, gets and adds at the same time, waits for all of that,
 * and gets back what it has put. Lengths are drawn, so that messages are sent
 * with and without a copy and by rendezvous. When the victim is dead, what a
 * rank has to do with it, and nothing else, fails, with an error that tells of
 * a death. Everything ends one way or the other.
 *
 * Two things are UCP's, over any transport, and left out. No rank dies before
 * all have exchanged long messages once: a rank that waits for the answer to
 * UCP's connection request, with nothing under way, is not told of a death by
 * UCX 1.13, as that asks only peers that have answered (its
 * ucp_wireup_ep_check()). And no message has several parts that are sent
 * eagerly: of a receive that has some of them UCP neither tells that it has
 * failed, nor can it be cancelled. A transport's messages may have no more than
 * 4 KiB (cxi_trig's, on libfabric 1.21 to 2.1).
 */
#include "ucx_storm.h"
#include "st_bytes.h"
#include "st_world.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define USES 20


/* How a rank is reached; on its card, the addresses behind it */
typedef struct contact {
    uint64_t memory;
    uint32_t worker_length;
    uint32_t rkey_length;
    uint8_t  data[];
} contact_t;


static void require(storm_rank_t *rank, ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        storm_complain(rank->card, "%s: %s", what, ucs_status_string(status));
    }
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    storm_link_t *link = arg;

    ++link->rank->card->errors;
    ucx_storm_fail(link, status, "error handler");
}

static void open_context(storm_rank_t *rank)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64 |
                      UCP_FEATURE_AM
    };
    ucp_config_t *config;

    require(rank, ucp_config_read(NULL, NULL, &config), "settings");
    /* A rank that only receives from the victim sees its end by this */
    require(rank, ucp_config_modify(config, "KEEPALIVE_INTERVAL", "50ms"),
            "keepalive");
    require(rank, ucp_config_modify(config, "RNDV_THRESH", "7000"),
            "rendezvous");
    require(rank, ucp_init(&params, config, &rank->context), "context");
    ucp_config_release(config);
}

static void open_worker(storm_rank_t *rank)
{
    ucp_worker_params_t worker_params = {.field_mask = 0};
    ucp_am_handler_param_t am         = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id         = UCX_STORM_AM_ID,
        .cb         = ucx_storm_am_handler,
        .arg        = rank
    };

    ucx_storm_at(rank, "opening its worker");
    open_context(rank);
    require(rank, ucp_worker_create(rank->context, &worker_params,
                                    &rank->worker), "worker");
    require(rank, ucp_worker_set_am_recv_handler(rank->worker, &am),
            "handler");
}

static void open_memory(storm_rank_t *rank)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .length     = sizeof(storm_memory_t)
    };

    rank->memory = calloc(1, sizeof(storm_memory_t));
    if (rank->memory == NULL) {
        storm_complain(rank->card, "no memory");
    }
    st_bytes_fill(rank->memory->constant, UCX_STORM_LENGTH,
                  ucx_storm_constant(rank, rank->index));
    params.address = rank->memory;
    require(rank, ucp_mem_map(rank->context, &params, &rank->memh), "memory");
}

static void tell_contact(storm_rank_t *rank)
{
    contact_t *contact = (contact_t*)rank->card->address;
    size_t worker_length, rkey_length;
    ucp_address_t *address;
    void *rkey;

    require(rank, ucp_worker_get_address(rank->worker, &address,
                                         &worker_length), "address");
    require(rank, ucp_rkey_pack(rank->context, rank->memh, &rkey, &rkey_length),
            "key");
    if (sizeof(*contact) + worker_length + rkey_length > STORM_ADDRESS) {
        storm_complain(rank->card, "the address is too long");
    }
    contact->memory        = (uintptr_t)rank->memory;
    contact->worker_length = (uint32_t)worker_length;
    contact->rkey_length   = (uint32_t)rkey_length;
    memcpy(contact->data, address, worker_length);
    memcpy(contact->data + worker_length, rkey, rkey_length);
    ucp_rkey_buffer_release(rkey);
    ucp_worker_release_address(rank->worker, address);
    storm_publish(rank->board, rank->index, worker_length);
    ucx_storm_at(rank, "waiting for addresses");
}

static void open_link(storm_link_t *link)
{
    storm_rank_t *rank             = link->rank;
    storm_card_t *card       = &rank->board->card[link->other];
    const contact_t *contact = (const contact_t*)card->address;
    ucp_ep_params_t params   = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address         = (const ucp_address_t*)contact->data,
        .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = on_error,
        .err_handler.arg = link
    };

    while (!storm_is_published(rank->board, link->other)) {
        (void)ucp_worker_progress(rank->worker);
        st_world_sleep(&card->length, 0, 1);
    }
    link->memory = contact->memory;
    require(rank, ucp_ep_create(rank->worker, &params, &link->ep), "endpoint");
    require(rank, ucp_ep_rkey_unpack(link->ep,
                                     contact->data + contact->worker_length,
                                     &link->rkey), "key");
    ucx_storm_step(rank);
}

static void wait_all(storm_rank_t *rank, const char *where)
{
    int other = 0;

    ucx_storm_at(rank, where);
    while (other < rank->board->ranks) {
        if (ucx_storm_is_busy(&rank->links[other])) {
            (void)ucp_worker_progress(rank->worker);
            other = 0;
        } else {
            ++other;
        }
    }
}

/* All that is to be done with each of the others that lives */
static void for_living(storm_rank_t *rank, void (*func)(storm_link_t *link))
{
    int other;

    for (other = 0; other < rank->board->ranks; ++other) {
        if ((other != rank->index) && !rank->links[other].is_dead) {
            func(&rank->links[other]);
        }
    }
}

/* All others have come as far, or are dead; they may need this one */
static void meet(storm_rank_t *rank, uint32_t phase)
{
    ucx_storm_at(rank, "waiting for others");
    storm_reach(rank->board, rank->index, phase);
    while (!storm_have_reached(rank->board, phase)) {
        (void)ucp_worker_progress(rank->worker);
    }
}

static void use_links(storm_rank_t *rank)
{
    for (rank->use = 0; rank->use < USES; ++rank->use) {
        if (rank->use == 1) {
            meet(rank, 1);
            rank->is_connected = 1;
        }
        for_living(rank, ucx_storm_exchange);
        ++rank->expected;
        wait_all(rank, "exchanging");
        for_living(rank, ucx_storm_check_exchange);
        for_living(rank, ucx_storm_flush);
        wait_all(rank, "flushing");
        for_living(rank, ucx_storm_get_back);
        wait_all(rank, "getting back");
        for_living(rank, ucx_storm_check_back);
    }
}

static void get_buffers(storm_link_t *link)
{
    link->sent        = malloc(2 * UCX_STORM_LENGTH);
    link->received    = malloc(UCX_STORM_LENGTH);
    link->am_received = malloc(UCX_STORM_LENGTH);
    link->put         = malloc(UCX_STORM_LENGTH);
    link->got         = malloc(UCX_STORM_LENGTH);
    if ((link->sent == NULL) || (link->received == NULL) ||
        (link->am_received == NULL) || (link->put == NULL) ||
        (link->got == NULL)) {
        storm_complain(link->rank->card, "no memory");
    }
}

static void free_buffers(storm_link_t *link)
{
    free(link->sent);
    free(link->received);
    free(link->am_received);
    free(link->put);
    free(link->got);
}

static void init_links(storm_rank_t *rank)
{
    int other, kind;
    storm_link_t *link;

    for (other = 0; other < rank->board->ranks; ++other) {
        link        = &rank->links[other];
        link->rank  = rank;
        link->other = other;
        for (kind = 0; kind < OP_LAST; ++kind) {
            link->op[kind].link = link;
            link->op[kind].kind = kind;
        }
        get_buffers(link);
    }
}

static void close_all(storm_rank_t *rank)
{
    int other;

    for (other = 0; other < rank->board->ranks; ++other) {
        ucx_storm_close(&rank->links[other]);
    }
    wait_all(rank, "closing");
    meet(rank, 3);
    ucx_storm_at(rank, "destroying its worker");
    require(rank, ucp_mem_unmap(rank->context, rank->memh), "memory's end");
    ucp_worker_destroy(rank->worker);
    ucp_cleanup(rank->context);
    for (other = 0; other < rank->board->ranks; ++other) {
        free_buffers(&rank->links[other]);
    }
    free(rank->memory);
}

static int count_files(void)
{
    DIR *dir  = opendir("/proc/self/fd");
    int count = 0;

    while ((dir != NULL) && (readdir(dir) != NULL)) {
        ++count;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

int storm_rank_main(storm_board_t *board, int index)
{
    storm_rank_t rank = {
        .board = board,
        .card  = &board->card[index],
        .index = index
    };
    int files;

    /* libfabric keeps some of what its first use opens */
    open_context(&rank);
    ucp_cleanup(rank.context);
    files = count_files();
    init_links(&rank);
    open_worker(&rank);
    open_memory(&rank);
    tell_contact(&rank);
    for_living(&rank, open_link);
    use_links(&rank);
    meet(&rank, 2);
    close_all(&rank);
    if (count_files() != files) {
        storm_complain(rank.card, "files were %d, are %d", files,
                       count_files());
    }
    return storm_end(board, index);
}
