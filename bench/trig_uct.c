/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trig_uct.c - the transport's side of st_trig, on UCT's interface.
 *
 * Step by step what trig_fab.c does with the provider alone: posted before the
 * clock starts, reaped after it has stopped; in between a trigger and a word.
 */
#include "trig_uct.h"

#include <uct/api/uct.h>

#include "uct_trig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIG_UCT_TL     "cxi_trig"
#define TRIG_UCT_SOURCE 2048u /* Words that go, in the region of the word */

_Static_assert(TRIG_UCT_SOURCE + (TRIG_BATCH * 8) <= TRIG_WORDS,
               "the words that go need more room");


/** What the other rank must know. */
typedef struct trig_uct_card {
    uint8_t device[TRIG_NAME_MAX];
    uint8_t iface[TRIG_NAME_MAX];
    uint8_t data_key[UCT_TRIG_RKEY_PACKED_LEN];
    uint8_t word_key[UCT_TRIG_RKEY_PACKED_LEN];
} trig_uct_card_t;

_Static_assert(sizeof(trig_uct_card_t) <= TRIG_CARD_MAX, "it is too long");

/* A write that a counter triggers, and an atomic when it is done */
typedef struct trig_uct_pair {
    uct_trig_cntr_h trigger;
    uct_trig_cntr_h written;
    uct_trig_op_h   write;
    uct_trig_op_h   word;
} trig_uct_pair_t;

struct trig_uct {
    trig_rank_t         *me;
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_component_h     component;
    uct_md_h            md;
    uct_iface_h         iface;
    uct_ep_h            self;
    uct_ep_h            peer;
    uct_trig_cntr_h     trigger;
    uct_trig_cntr_h     done;
    uct_trig_cntr_h     words;
    uct_trig_cntr_h     landed;    /* Writes to data */
    uint8_t             *data;     /* That comes, then that goes */
    uint8_t             *word_page;
    uct_trig_mem_h      data_mem;
    uct_trig_mem_h      word_mem;
    uct_trig_rkey_t     data_rkey; /* Of the other side */
    uct_trig_rkey_t     word_rkey;
    uct_trig_rkey_t     self_rkey; /* One's own word */
    uint64_t            fired;
    uint64_t            writes;    /* That have landed */
    uint64_t            word;      /* Last value of the word sent */
    uint64_t            posted;
    uint64_t            over;      /* Of those */
    trig_uct_pair_t     pairs[TRIG_BATCH]; /* Of trig_uct_post() */
    unsigned            num_pairs;
    unsigned            num_posted;        /* The last time */
    uint64_t            posts;     /* Its calls */
};


static void trig_uct_must(trig_uct_t *uct, const char *what,
                          ucs_status_t status)
{
    trig_need(uct->me, what, status);
}

/* Posts that are refused are made so often again */
#define TRIG_UCT_TRIES 1000000

/* A post that has an entry. The provider may have no room for it now: then it
 * is made again. What has completed is reaped meanwhile. */
#define TRIG_UCT_POST(_uct, _name, _call) \
    do { \
        unsigned trig_uct_tries = 0; \
        ucs_status_t trig_uct_status; \
        while (((trig_uct_status = (_call)) == UCS_ERR_NO_RESOURCE) && \
               (++trig_uct_tries < TRIG_UCT_TRIES)) { \
            uct_worker_progress((_uct)->worker); \
        } \
        trig_uct_must(_uct, _name, trig_uct_status); \
    } while (0)

static uct_component_h trig_uct_find_component(trig_uct_t *uct)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME
    };
    uct_component_h found     = NULL;
    uct_component_h *components;
    unsigned num_components, i;

    trig_uct_must(uct, "uct_query_components",
                  uct_query_components(&components, &num_components));
    for (i = 0; i < num_components; ++i) {
        if ((uct_component_query(components[i], &attr) == UCS_OK) &&
            !strcmp(attr.name, TRIG_UCT_TL)) {
            found = components[i];
        }
    }
    uct_release_component_list(components);
    if (found == NULL) {
        trig_give_up(uct->me, "to find the transport " TRIG_UCT_TL, 0);
    }
    return found;
}

/* The first device; but "lo" where there is one, as trig_open.c asks for it */
static void trig_uct_open_md(trig_uct_t *uct, char *device, size_t length)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    uct_md_config_t *config;
    unsigned i, best = 0;

    trig_uct_must(uct, "uct_component_query",
                  uct_component_query(uct->component, &attr));
    if (attr.md_resource_count == 0) {
        trig_give_up(uct->me, "to find a device of " TRIG_UCT_TL, 0);
    }
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count,
                               sizeof(*attr.md_resources));
    trig_uct_must(uct, "uct_component_query",
                  uct_component_query(uct->component, &attr));
    for (i = 0; i < attr.md_resource_count; ++i) {
        if (!strcmp(attr.md_resources[i].md_name, "lo")) {
            best = i;
        }
    }
    snprintf(device, length, "%s", attr.md_resources[best].md_name);
    free(attr.md_resources);
    trig_uct_must(uct, "uct_md_config_read",
                  uct_md_config_read(uct->component, NULL, NULL, &config));
    trig_uct_must(uct, "uct_md_open", uct_md_open(uct->component, device,
                                                  config, &uct->md));
    uct_config_release(config);
}

static void trig_uct_open_iface(trig_uct_t *uct, const char *device)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = TRIG_UCT_TL,
        .mode.device.dev_name = device
    };
    uct_iface_config_t *config;

    trig_uct_must(uct, "uct_md_iface_config_read",
                  uct_md_iface_config_read(uct->md, TRIG_UCT_TL, NULL, NULL,
                                           &config));
    trig_uct_must(uct, "uct_iface_open",
                  uct_iface_open(uct->md, uct->worker, &params, config,
                                 &uct->iface));
    uct_config_release(config);
    uct_iface_progress_enable(uct->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

/* It must be the provider that the other variants use, with the same limits. */
static void trig_uct_check(trig_uct_t *uct, const char *provider)
{
    uct_trig_iface_attr_t attr;

    trig_uct_must(uct, "uct_trig_iface_query",
                  uct_trig_iface_query(uct->iface, &attr));
    if (strcmp(attr.provider, provider)) {
        fprintf(stderr, "the transport uses provider %s, not %s\n",
                attr.provider, provider);
        trig_give_up(uct->me, "uct_trig's choice of a provider", 0);
    }
    if ((attr.max_put < TRIG_MAX_SIZE) ||
        (attr.free_entries < 2 * TRIG_BATCH)) {
        fprintf(stderr, "device %s: puts to %zu bytes, %u free "
                "entries; needed are %lu, %u\n", attr.device, attr.max_put,
                attr.free_entries, TRIG_MAX_SIZE, 2 * TRIG_BATCH);
        trig_give_up(uct->me, "uct_trig's limits", 0);
    }
}

static void trig_uct_open_memory(trig_uct_t *uct, trig_uct_card_t *card)
{
    uct_trig_cntr_h *const cntrs[] = {&uct->trigger, &uct->done, &uct->words,
                                      &uct->landed};
    unsigned i;

    for (i = 0; i < sizeof(cntrs) / sizeof(cntrs[0]); ++i) {
        trig_uct_must(uct, "uct_trig_cntr_create",
                      uct_trig_cntr_create(uct->iface, cntrs[i]));
    }
    if ((posix_memalign((void**)&uct->data, 4096, 2 * TRIG_MAX_SIZE) != 0) ||
        (posix_memalign((void**)&uct->word_page, 4096, TRIG_WORDS) != 0)) {
        trig_give_up(uct->me, "posix_memalign", 0);
    }
    memset(uct->data, 0, 2 * TRIG_MAX_SIZE);
    memset(uct->word_page, 0, TRIG_WORDS);
    trig_uct_must(uct, "uct_trig_mem_reg",
                  uct_trig_mem_reg(uct->iface, uct->data, 2 * TRIG_MAX_SIZE,
                                   uct->landed, &uct->data_mem));
    trig_uct_must(uct, "uct_trig_mem_reg",
                  uct_trig_mem_reg(uct->iface, uct->word_page, TRIG_WORDS,
                                   NULL, &uct->word_mem));
    uct_trig_mem_pack(uct->data_mem, card->data_key);
    uct_trig_mem_pack(uct->word_mem, card->word_key);
}

static void trig_uct_write_card(trig_uct_t *uct, trig_uct_card_t *card)
{
    uct_iface_attr_t attr;

    trig_uct_must(uct, "uct_iface_query", uct_iface_query(uct->iface, &attr));
    if ((attr.device_addr_len > sizeof(card->device)) ||
        (attr.iface_addr_len > sizeof(card->iface))) {
        trig_give_up(uct->me, "to fit UCT's addresses in", 0);
    }
    trig_uct_must(uct, "uct_iface_get_device_address",
                  uct_iface_get_device_address(uct->iface,
                                               (uct_device_addr_t*)
                                               card->device));
    trig_uct_must(uct, "uct_iface_get_address",
                  uct_iface_get_address(uct->iface,
                                        (uct_iface_addr_t*)card->iface));
    trig_uct_open_memory(uct, card);
}

static uct_ep_h trig_uct_connect(trig_uct_t *uct, const trig_uct_card_t *card)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = uct->iface,
        .dev_addr   = (const uct_device_addr_t*)card->device,
        .iface_addr = (const uct_iface_addr_t*)card->iface
    };
    uct_ep_h ep;

    trig_uct_must(uct, "uct_ep_create", uct_ep_create(&params, &ep));
    return ep;
}

static void trig_uct_unpack(trig_uct_t *uct, const uint8_t *key,
                            uct_trig_rkey_t *rkey)
{
    trig_uct_must(uct, "uct_trig_rkey_unpack",
                  uct_trig_rkey_unpack(key, UCT_TRIG_RKEY_PACKED_LEN, rkey));
}

static void trig_uct_meet(trig_uct_t *uct)
{
    trig_uct_card_t *mine   = (void*)uct->me->page->card[uct->me->rank];
    trig_uct_card_t *theirs = (void*)uct->me->page->card[!uct->me->rank];

    trig_uct_write_card(uct, mine);
    trig_barrier(uct->me);
    uct->self = trig_uct_connect(uct, mine);
    uct->peer = trig_uct_connect(uct, theirs);
    trig_uct_unpack(uct, mine->word_key, &uct->self_rkey);
    trig_uct_unpack(uct, theirs->word_key, &uct->word_rkey);
    trig_uct_unpack(uct, theirs->data_key, &uct->data_rkey);
}

trig_uct_t *trig_uct_open(trig_rank_t *me, const char *provider)
{
    trig_uct_t *uct = calloc(1, sizeof(*uct));
    char device[UCT_TRIG_NAME_MAX];

    /* The option decides, as it does for the provider alone: a ratio is one of
     * two ways to the same NIC */
    if ((uct == NULL) || (setenv("UCX_CXI_TRIG_PROVIDER", provider, 1) != 0)) {
        trig_give_up(me, "malloc", 0);
    }
    uct->me        = me;
    uct->component = trig_uct_find_component(uct);
    trig_uct_must(uct, "ucs_async_context_create",
                  ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                           &uct->async));
    trig_uct_must(uct, "uct_worker_create",
                  uct_worker_create(uct->async, UCS_THREAD_MODE_SINGLE,
                                    &uct->worker));
    trig_uct_open_md(uct, device, sizeof(device));
    trig_uct_open_iface(uct, device);
    trig_uct_check(uct, provider);
    trig_uct_meet(uct);
    return uct;
}

void trig_uct_close(trig_uct_t *uct)
{
    const uct_trig_cntr_h cntrs[] = {uct->trigger, uct->done, uct->words,
                                     uct->landed};
    unsigned i;

    /* The other one may still be writing here */
    trig_barrier(uct->me);
    for (i = 0; i < uct->num_pairs; ++i) {
        trig_uct_must(uct, "uct_trig_op_destroy",
                      uct_trig_op_destroy(uct->pairs[i].write));
        trig_uct_must(uct, "uct_trig_op_destroy",
                      uct_trig_op_destroy(uct->pairs[i].word));
    }
    uct_ep_destroy(uct->self);
    uct_ep_destroy(uct->peer);
    trig_uct_must(uct, "uct_trig_mem_dereg", uct_trig_mem_dereg(uct->data_mem));
    trig_uct_must(uct, "uct_trig_mem_dereg", uct_trig_mem_dereg(uct->word_mem));
    for (i = 0; i < sizeof(cntrs) / sizeof(cntrs[0]); ++i) {
        trig_uct_must(uct, "uct_trig_cntr_destroy",
                      uct_trig_cntr_destroy(cntrs[i]));
    }
    for (i = 0; i < uct->num_pairs; ++i) {
        trig_uct_must(uct, "uct_trig_cntr_destroy",
                      uct_trig_cntr_destroy(uct->pairs[i].trigger));
        trig_uct_must(uct, "uct_trig_cntr_destroy",
                      uct_trig_cntr_destroy(uct->pairs[i].written));
    }
    uct_iface_close(uct->iface);
    uct_md_close(uct->md);
    uct_worker_destroy(uct->worker);
    ucs_async_context_destroy(uct->async);
    free(uct->data);
    free(uct->word_page);
    free(uct);
}

static void trig_uct_on_done(void *arg, ucs_status_t status)
{
    trig_uct_t *uct = arg;

    trig_uct_must(uct, "a deferred operation", status);
    ++uct->over;
}

/* The count: of triggers before this one */
static void trig_uct_put(trig_uct_t *uct, const trig_step_t *step,
                         unsigned count)
{
    uint64_t *source             = (void*)(uct->word_page + TRIG_UCT_SOURCE);
    uct_trig_deferred_t deferred = {
        .trigger    = uct->trigger,
        .threshold  = uct->fired + count + 1,
        .completion = uct->done,
        .done       = trig_uct_on_done,
        .arg        = uct
    };
    uct_trig_put_t put           = {
        .length = step->size
    };

    if (step->size == 8) {
        source[count]   = uct->word + count + 1;
        put.buffer      = &source[count];
        put.local       = uct->word_mem;
        put.rkey        = uct->word_rkey;
        put.remote_addr = uct->word_rkey.address + TRIG_WORD;
    } else {
        put.buffer      = uct->data + TRIG_MAX_SIZE;
        put.local       = uct->data_mem;
        put.rkey        = uct->data_rkey;
        put.remote_addr = uct->data_rkey.address;
    }
    TRIG_UCT_POST(uct, "uct_trig_ep_put",
                  uct_trig_ep_put(uct->peer, &put, &deferred));
    ++uct->posted;
}

/* Adds 1 to one's own word when the region's counter says so */
static void trig_uct_add_word(trig_uct_t *uct, unsigned count)
{
    uct_trig_deferred_t deferred = {
        .trigger    = uct->landed,
        .threshold  = uct->writes + count + 1,
        .completion = uct->words,
        .done       = trig_uct_on_done,
        .arg        = uct
    };
    uct_trig_atomic_t atomic     = {
        .value       = 1,
        .remote_addr = uct->self_rkey.address + TRIG_WORD,
        .rkey        = uct->self_rkey
    };

    TRIG_UCT_POST(uct, "uct_trig_ep_atomic_add64",
                  uct_trig_ep_atomic_add64(uct->self, &atomic, &deferred));
    ++uct->posted;
}

/* Every entry is free before a batch: one that is refused is an error. */
static void trig_uct_prepare(trig_uct_t *uct, const trig_step_t *step,
                             unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        if (step->size != 8) {
            trig_uct_add_word(uct, i);
        }
        trig_uct_put(uct, step, i);
    }
}

static void trig_uct_await_word(trig_uct_t *uct, uint64_t value)
{
    const uint64_t *word = (uint64_t*)(uct->word_page + TRIG_WORD);
    unsigned turns       = 0;

    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
        uct_worker_progress(uct->worker);
        trig_turn(uct->me, &turns);
    }
}

static void trig_uct_reap(trig_uct_t *uct)
{
    unsigned turns = 0;

    while (uct->over < uct->posted) {
        uct_worker_progress(uct->worker);
        trig_turn(uct->me, &turns);
    }
}

/* The other side's word of this batch, and this side's trigger, by turns */
static double trig_uct_batch(trig_uct_t *uct, const trig_step_t *step,
                             unsigned count)
{
    uint64_t base = uct->word;
    double start;
    unsigned i;

    trig_uct_prepare(uct, step, count);
    trig_barrier(uct->me);
    start = trig_now();
    for (i = 1; i <= count; ++i) {
        if (uct->me->rank == 1) {
            trig_uct_await_word(uct, base + i);
        }
        trig_uct_must(uct, "uct_trig_cntr_add",
                      uct_trig_cntr_add(uct->trigger, 1));
        if (uct->me->rank == 0) {
            trig_uct_await_word(uct, base + i);
        }
    }
    start       = trig_now() - start;
    uct->word  += count;
    uct->fired += count;
    if (step->size != 8) {
        uct->writes += count;
    }
    trig_uct_reap(uct);
    trig_barrier(uct->me);
    return start;
}

double trig_uct_write(trig_uct_t *uct, const trig_step_t *step)
{
    trig_rank_t *me = uct->me;
    double total    = 0;
    unsigned left, count;

    trig_fill(uct->data + TRIG_MAX_SIZE, step->size, 1 + me->rank);
    memset(uct->data, 0, step->size);
    /* Warms up, as trig_fab_write() does */
    (void)trig_uct_batch(uct, step, trig_min(step->count, TRIG_BATCH));
    for (left = step->count; left > 0; left -= count) {
        count  = trig_min(left, TRIG_BATCH);
        total += trig_uct_batch(uct, step, count);
    }
    if ((step->size != 8) &&
        !trig_is_filled(uct->data, step->size, 1 + !me->rank)) {
        me->page->verified[me->rank] = 0;
    }
    return total / (2.0 * step->count);
}

static void trig_uct_open_pair(trig_uct_t *uct, size_t size,
                               trig_uct_pair_t *pair)
{
    uct_trig_deferred_t deferred = {
        .done = trig_uct_on_done,
        .arg  = uct
    };
    uct_trig_put_t put           = {
        .buffer      = uct->data + TRIG_MAX_SIZE,
        .length      = size,
        .local       = uct->data_mem,
        .remote_addr = uct->data_rkey.address,
        .rkey        = uct->data_rkey
    };
    uct_trig_atomic_t atomic     = {
        .value       = 1,
        .remote_addr = uct->self_rkey.address + TRIG_SCRATCH,
        .rkey        = uct->self_rkey
    };

    trig_uct_must(uct, "uct_trig_cntr_create",
                  uct_trig_cntr_create(uct->iface, &pair->trigger));
    trig_uct_must(uct, "uct_trig_cntr_create",
                  uct_trig_cntr_create(uct->iface, &pair->written));
    deferred.trigger    = pair->trigger;
    deferred.completion = pair->written;
    trig_uct_must(uct, "uct_trig_op_create_put",
                  uct_trig_op_create_put(uct->peer, &put, &deferred,
                                         &pair->write));
    deferred.trigger    = pair->written;
    deferred.completion = uct->words;
    trig_uct_must(uct, "uct_trig_op_create_add64",
                  uct_trig_op_create_add64(uct->self, &atomic, &deferred,
                                           &pair->word));
}

double trig_uct_post(trig_uct_t *uct, size_t size, unsigned count)
{
    double start, end;
    unsigned i;

    for (; uct->num_pairs < count; ++uct->num_pairs) {
        trig_uct_open_pair(uct, size, &uct->pairs[uct->num_pairs]);
    }
    trig_barrier(uct->me);
    ++uct->posts;
    start = trig_now();
    for (i = 0; i < count; ++i) {
        TRIG_UCT_POST(uct, "uct_trig_op_post",
                      uct_trig_op_post(uct->pairs[i].write, uct->posts, 0, 0));
    }
    for (i = 0; i < count; ++i) {
        TRIG_UCT_POST(uct, "uct_trig_op_post",
                      uct_trig_op_post(uct->pairs[i].word, uct->posts, 0, 0));
    }
    end             = trig_now();
    uct->posted    += 2 * count;
    uct->num_posted = count;
    return (end - start) / count;
}

void trig_uct_fire(void *arg)
{
    trig_uct_t *uct = arg;
    unsigned i;

    for (i = 0; i < uct->num_posted; ++i) {
        trig_uct_must(uct, "uct_trig_cntr_add",
                      uct_trig_cntr_add(uct->pairs[i].trigger, 1));
    }
    uct->writes += uct->num_posted;
    trig_uct_reap(uct);
}
