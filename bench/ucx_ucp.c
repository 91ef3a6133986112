/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_ucp.c - st_ucx's messages by UCP. */
#include "ucx_bench.h"

#include <ucp/api/ucp.h>

#include <stdlib.h>
#include <string.h>

#define UCX_UCP_TAG 2


typedef struct ucx_ucp {
    ucx_way_t     super;  /* Must be first */
    trig_rank_t   *me;
    ucp_context_h context;
    ucp_worker_h  worker;
    ucp_ep_h      ep;
    ucp_mem_h     memh;   /* Of `word` */
    ucp_rkey_h    rkey;   /* Of the other side's */
    uint64_t      far;    /* Where that is */
    uint64_t      *word;
    uint64_t      value;  /* That goes there */
    uint8_t       *in;    /* TRIG_MAX_SIZE each */
    uint8_t       *out;
    void          *requests[UCX_WINDOW];
} ucx_ucp_t;

/* What each side tells the other one, in the page's data */
typedef struct ucx_ucp_card {
    size_t   address_length;
    size_t   rkey_length;
    uint64_t word;
    uint8_t  bytes[]; /* Address, then key */
} ucx_ucp_card_t;


static void way_must(ucx_ucp_t *ucp, const char *what, ucs_status_t status)
{
    trig_need(ucp->me, what, status);
}

static void way_turn(ucx_ucp_t *ucp, unsigned *turns)
{
    if (ucp_worker_progress(ucp->worker) == 0) {
        trig_turn(ucp->me, turns);
    }
}

/* Until the operation is complete, which may be over already */
static void way_end(ucx_ucp_t *ucp, const char *what, void *request)
{
    unsigned turns = 0;

    if (UCS_PTR_IS_ERR(request)) {
        way_must(ucp, what, UCS_PTR_STATUS(request));
    }
    if (request == NULL) {
        return;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        way_turn(ucp, &turns);
    }
    way_must(ucp, what, ucp_request_check_status(request));
    ucp_request_free(request);
}

static void *way_recv(ucx_ucp_t *ucp, size_t size)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL
    };

    return ucp_tag_recv_nbx(ucp->worker, ucp->in, size, UCX_UCP_TAG,
                            UINT64_MAX, &param);
}

static void *way_send(ucx_ucp_t *ucp, size_t size)
{
    static const ucp_request_param_t param;

    return ucp_tag_send_nbx(ucp->ep, ucp->out, size, UCX_UCP_TAG, &param);
}

static void way_check(ucx_ucp_t *ucp, size_t size, uint64_t word)
{
    uint64_t first;

    memcpy(&first, ucp->in, sizeof(first));
    if ((first != word) ||
        !trig_is_filled(ucp->in + 8, size - 8, 1 + !ucp->me->rank)) {
        ucp->me->page->verified[ucp->me->rank] = 0;
    }
}

static void way_start(ucx_ucp_t *ucp, size_t size)
{
    trig_fill(ucp->out + 8, size - 8, 1 + ucp->me->rank);
    memset(ucp->in, 0, size);
}

/* A barrier that does not keep the other side waiting for this one's answers */
static void way_meet(ucx_ucp_t *ucp)
{
    uint32_t step  = trig_arrive(ucp->me);
    unsigned turns = 0;

    while (!trig_is_met(ucp->me, step)) {
        way_turn(ucp, &turns);
    }
}

static double way_tag(ucx_way_t *way, size_t size, unsigned count)
{
    ucx_ucp_t *ucp = (ucx_ucp_t*)way;
    void *recv, *send;
    double start;
    uint64_t i;

    way_start(ucp, size);
    way_meet(ucp);
    start = trig_now();
    for (i = 1; i <= count; ++i) {
        recv = way_recv(ucp, size);
        if (ucp->me->rank == 1) {
            way_end(ucp, "ucp_tag_recv_nbx", recv);
        }
        memcpy(ucp->out, &i, sizeof(i));
        send = way_send(ucp, size);
        if (ucp->me->rank == 0) {
            way_end(ucp, "ucp_tag_recv_nbx", recv);
        }
        way_end(ucp, "ucp_tag_send_nbx", send);
    }
    start = trig_now() - start;
    way_check(ucp, size, count);
    way_meet(ucp);
    return start / (2.0 * count);
}

static void way_end_window(ucx_ucp_t *ucp)
{
    unsigned i;

    for (i = 0; i < UCX_WINDOW; ++i) {
        way_end(ucp, "a message of a window", ucp->requests[i]);
    }
}

static void way_recv_window(ucx_ucp_t *ucp, size_t size)
{
    unsigned i;

    for (i = 0; i < UCX_WINDOW; ++i) {
        ucp->requests[i] = way_recv(ucp, size);
    }
}

static void way_send_windows(ucx_ucp_t *ucp, size_t size, unsigned windows)
{
    void *answer;
    unsigned i, k;

    for (i = 0; i < windows; ++i) {
        answer = way_recv(ucp, 8);
        for (k = 0; k < UCX_WINDOW; ++k) {
            ucp->requests[k] = way_send(ucp, size);
        }
        way_end_window(ucp);
        way_end(ucp, "ucp_tag_recv_nbx", answer);
    }
}

static void way_recv_windows(ucx_ucp_t *ucp, size_t size, unsigned windows)
{
    unsigned i;

    for (i = 1; i <= windows; ++i) {
        way_end_window(ucp);
        if (i < windows) {
            way_recv_window(ucp, size);
        }
        way_end(ucp, "ucp_tag_send_nbx", way_send(ucp, 8));
    }
}

static double way_window(ucx_way_t *way, size_t size, unsigned windows)
{
    ucx_ucp_t *ucp = (ucx_ucp_t*)way;
    double start;

    way_start(ucp, size);
    memset(ucp->out, 0, 8);
    if (ucp->me->rank == 1) {
        way_recv_window(ucp, size);
    }
    way_meet(ucp);
    start = trig_now();
    if (ucp->me->rank == 0) {
        way_send_windows(ucp, size, windows);
    } else {
        way_recv_windows(ucp, size, windows);
    }
    start = trig_now() - start;
    if (ucp->me->rank == 1) {
        way_check(ucp, size, 0);
    }
    way_meet(ucp);
    return start / (windows * (double)UCX_WINDOW);
}

static void way_wait_word(ucx_ucp_t *ucp, uint64_t value)
{
    unsigned turns = 0;

    while (__atomic_load_n(ucp->word, __ATOMIC_ACQUIRE) != value) {
        way_turn(ucp, &turns);
    }
}

static double way_put(ucx_way_t *way, unsigned count)
{
    static const ucp_request_param_t param;
    ucx_ucp_t *ucp = (ucx_ucp_t*)way;
    double start;
    uint64_t i;
    void *put;

    *ucp->word = 0;
    way_meet(ucp);
    start = trig_now();
    for (i = 1; i <= count; ++i) {
        if (ucp->me->rank == 1) {
            way_wait_word(ucp, i);
        }
        ucp->value = i;
        put        = ucp_put_nbx(ucp->ep, &ucp->value, sizeof(i), ucp->far,
                                 ucp->rkey, &param);
        if (ucp->me->rank == 0) {
            way_wait_word(ucp, i);
        }
        way_end(ucp, "ucp_put_nbx", put);
    }
    start = trig_now() - start;
    way_meet(ucp);
    return start / (2.0 * count);
}

static void way_close(ucx_way_t *way)
{
    static const ucp_request_param_t param;
    ucx_ucp_t *ucp = (ucx_ucp_t*)way;

    ucp_rkey_destroy(ucp->rkey);
    way_end(ucp, "ucp_ep_close_nbx", ucp_ep_close_nbx(ucp->ep, &param));
    way_meet(ucp);
    ucp_worker_destroy(ucp->worker);
    way_must(ucp, "ucp_mem_unmap", ucp_mem_unmap(ucp->context, ucp->memh));
    ucp_cleanup(ucp->context);
    free(ucp->word);
    free(ucp->in);
    free(ucp->out);
    free(ucp);
}

static void *way_get_memory(ucx_ucp_t *ucp, size_t size)
{
    void *memory = NULL;

    if (posix_memalign(&memory, 4096, size) != 0) {
        trig_give_up(ucp->me, "posix_memalign", 0);
    }
    memset(memory, 0, size);
    return memory;
}

static void way_open_worker(ucx_ucp_t *ucp, const char *tls,
                            const char *devices)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_RMA
    };
    const ucp_worker_params_t worker_params = {.field_mask = 0};
    ucp_config_t *config;

    way_must(ucp, "ucp_config_read", ucp_config_read(NULL, NULL, &config));
    way_must(ucp, "UCX_TLS", ucp_config_modify(config, "TLS", tls));
    if (devices != NULL) {
        way_must(ucp, "UCX_NET_DEVICES",
                 ucp_config_modify(config, "NET_DEVICES", devices));
    }
    way_must(ucp, "ucp_init", ucp_init(&params, config, &ucp->context));
    ucp_config_release(config);
    way_must(ucp, "ucp_worker_create",
             ucp_worker_create(ucp->context, &worker_params, &ucp->worker));
}

static void way_map(ucx_ucp_t *ucp)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .length     = TRIG_WORDS
    };

    ucp->in        = way_get_memory(ucp, TRIG_MAX_SIZE);
    ucp->out       = way_get_memory(ucp, TRIG_MAX_SIZE);
    ucp->word      = way_get_memory(ucp, TRIG_WORDS);
    params.address = ucp->word;
    way_must(ucp, "ucp_mem_map",
             ucp_mem_map(ucp->context, &params, &ucp->memh));
}

/* Leave what the other side needs in the page */
static void way_tell(ucx_ucp_t *ucp)
{
    ucx_ucp_card_t *card = (ucx_ucp_card_t*)ucp->me->page->data[ucp->me->rank];
    ucp_address_t *address;
    void *rkey;

    way_must(ucp, "ucp_worker_get_address",
             ucp_worker_get_address(ucp->worker, &address,
                                    &card->address_length));
    way_must(ucp, "ucp_rkey_pack",
             ucp_rkey_pack(ucp->context, ucp->memh, &rkey, &card->rkey_length));
    card->word = (uintptr_t)ucp->word;
    memcpy(card->bytes, address, card->address_length);
    memcpy(card->bytes + card->address_length, rkey, card->rkey_length);
    ucp_rkey_buffer_release(rkey);
    ucp_worker_release_address(ucp->worker, address);
}

static void way_connect(ucx_ucp_t *ucp)
{
    const ucx_ucp_card_t *card = (const ucx_ucp_card_t*)
            ucp->me->page->data[!ucp->me->rank];
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (const ucp_address_t*)card->bytes
    };

    way_must(ucp, "ucp_ep_create", ucp_ep_create(ucp->worker, &params,
                                                 &ucp->ep));
    way_must(ucp, "ucp_ep_rkey_unpack",
             ucp_ep_rkey_unpack(ucp->ep, card->bytes + card->address_length,
                                &ucp->rkey));
    ucp->far = card->word;
}

ucx_way_t *ucx_ucp_open(trig_rank_t *me, const char *tls, const char *devices)
{
    static const ucx_way_t ways = {
        .tag    = way_tag,
        .window = way_window,
        .put    = way_put,
        .close  = way_close
    };
    ucx_ucp_t *ucp = calloc(1, sizeof(*ucp));

    if (ucp == NULL) {
        trig_give_up(me, "calloc", 0);
    }
    ucp->super = ways;
    ucp->me    = me;
    way_open_worker(ucp, tls, devices);
    way_map(ucp);
    way_tell(ucp);
    way_meet(ucp);
    way_connect(ucp);
    way_meet(ucp); /* The page may have another use from here on */
    return &ucp->super;
}
