/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uct_cxi_trig.c - messages, puts, flush, addresses. */
#include "fab_intercept.h"
#include "st_cunit.h"
#include "uct_region.h"

#include <ucs_ext_config.h>
#include <uct/api/v2/uct_v2.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define AM_ID     5
#define AM_HEADER 0x0123456789abcdefull

#define REGION_LENGTH 16384

/* As in src/uct/cxi_trig/cxi_trig_guard.h */
int uct_cxi_trig_guard_accepts(unsigned built_major, unsigned built_minor,
                               unsigned major, unsigned minor);
void uct_cxi_trig_guard_fill(void *ops, size_t size);


typedef struct {
    const uint8_t *data;
    size_t        length;
} packet_t;

static size_t pack(void *dest, void *arg)
{
    const packet_t *packet = arg;

    memcpy(dest, packet->data, packet->length);
    return packet->length;
}

static uct_inbox_t inbox;
static uint8_t payload[65536];


static void open_pair(uct_pair_t *pair)
{
    CU_ASSERT_FATAL(uct_pair_create(pair, NULL) == 0);
    uct_inbox_open(&inbox, pair->a.iface, AM_ID);
    uct_inbox_open(&inbox, pair->b.iface, AM_ID);
}

#define PAIR_CASE(_name) \
    ST_CASE_WITH(_name, uct_pair_t, pair, open_pair(pair), \
                 uct_pair_destroy(pair))

PAIR_CASE(am_short)
{
    size_t lengths[] = {0, 1, 8, 1000, 0};
    uint64_t header  = AM_HEADER;
    unsigned i;

    lengths[4] = pair->a.attr.cap.am.max_short - sizeof(header);
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        uct_region_fill(payload, lengths[i], i);
        CU_ASSERT(uct_ep_am_short(pair->a.peer, AM_ID, header, payload,
                                  lengths[i]) == UCS_OK);
        uct_pair_wait(pair, &inbox.count, i + 1);
        CU_ASSERT(inbox.length == lengths[i] + sizeof(header));
        CU_ASSERT(memcmp(inbox.data, &header, sizeof(header)) == 0);
        CU_ASSERT(memcmp(inbox.data + sizeof(header), payload, lengths[i]) ==
                  0);
    }
}

static struct {
    volatile uint64_t count;
    unsigned          disorder; /* Messages that came too early or too late */
} order;

static ucs_status_t order_handler(void *arg, void *data, size_t length,
                                  unsigned flags)
{
    uint64_t number;

    memcpy(&number, data, sizeof(number));
    order.disorder += (number != order.count);
    ++order.count;
    return UCS_OK;
}

/* Messages come in the order in which they were sent, whatever the provider
 * completes first: large ones after small ones, on cxi */
static void check_order(uct_pair_t *pair, int is_reversed)
{
    size_t large = pair->a.attr.cap.am.max_short - sizeof(uint64_t);
    uint64_t i;

    memset(&order, 0, sizeof(order));
    CU_ASSERT_FATAL(uct_iface_set_am_handler(pair->b.iface, AM_ID,
                                             order_handler, NULL, 0) == UCS_OK);
    fab_intercept_reverse(is_reversed);
    for (i = 0; i < 40; ++i) {
        while (uct_ep_am_short(pair->a.peer, AM_ID, i, payload,
                               (i % 3) ? (i % 8) : large) != UCS_OK) {
            uct_pair_progress(pair);
        }
    }
    uct_pair_wait(pair, &order.count, i);
    fab_intercept_reverse(0);
    CU_ASSERT(order.disorder == 0);
}

PAIR_CASE(am_order)
{
    check_order(pair, 0);
    if (!strncmp(uct_pair_device(), "cxi", 3)) {
        check_order(pair, 1);
    }
}

PAIR_CASE(am_short_iov)
{
    uct_iov_t iov[] = {
        {.buffer = payload, .length = 10, .count = 1},
        {.buffer = payload + 10, .length = 0, .count = 1},
        {.buffer = payload + 10, .length = 90, .count = 1}
    };

    uct_region_fill(payload, 100, 9);
    CU_ASSERT(uct_ep_am_short_iov(pair->a.peer, AM_ID, iov, 3) == UCS_OK);
    uct_pair_wait(pair, &inbox.count, 1);
    CU_ASSERT(inbox.length == 100);
    CU_ASSERT(memcmp(inbox.data, payload, 100) == 0);
}

PAIR_CASE(am_bcopy)
{
    size_t lengths[] = {0, 1, 64, 0};
    packet_t packet;
    unsigned i;

    lengths[3] = pair->a.attr.cap.am.max_bcopy;
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        uct_region_fill(payload, lengths[i], 3 * i);
        packet = (packet_t){payload, lengths[i]};
        CU_ASSERT(uct_ep_am_bcopy(pair->a.peer, AM_ID, pack, &packet, 0) ==
                  (ssize_t)lengths[i]);
        uct_pair_wait(pair, &inbox.count, i + 1);
        CU_ASSERT(inbox.length == lengths[i]);
        CU_ASSERT(memcmp(inbox.data, payload, lengths[i]) == 0);
    }
}

PAIR_CASE(am_to_self)
{
    CU_ASSERT(uct_ep_am_short(pair->b.self, AM_ID, AM_HEADER, NULL, 0) ==
              UCS_OK);
    uct_pair_wait(pair, &inbox.count, 1);
    CU_ASSERT(inbox.length == sizeof(uint64_t));
}

static uct_region_t region;

/* What the transport does not offer is refused */
ST_CASE(unsupported)
{
    uct_ep_attr_t attr = {0};
    uct_pair_t pair;
    void *pointer;
    uct_cm_h cm;

    open_pair(&pair);
    uct_region_open(&region, &pair, REGION_LENGTH);
    CU_ASSERT(uct_ep_query(pair.a.peer, &attr) == UCS_ERR_UNSUPPORTED);
    CU_ASSERT(uct_rkey_ptr(pair.component, &region.rkey,
                           (uintptr_t)region.data, &pointer) ==
              UCS_ERR_UNSUPPORTED);
    CU_ASSERT(uct_cm_open(pair.component, pair.worker, NULL, &cm) ==
              UCS_ERR_UNSUPPORTED);
    uct_region_close(&region);
    uct_pair_destroy(&pair);
}

PAIR_CASE(put_short)
{
    uct_region_open(&region, pair, REGION_LENGTH);
    uct_region_fill(payload, 1000, 77);
    CU_ASSERT(uct_ep_put_short(pair->a.peer, payload, 1000,
                               (uintptr_t)region.data + 5,
                               region.rkey.rkey) == UCS_OK);
    CU_ASSERT(uct_ep_put_short(pair->a.peer, payload, 0, (uintptr_t)region.data,
                               region.rkey.rkey) == UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    /* A flush is over only when the data is there */
    CU_ASSERT(memcmp(region.data + 5, payload, 1000) == 0);
    CU_ASSERT(region.data[4] == 0);
    CU_ASSERT(region.data[1005] == 0);
    uct_region_close(&region);
}

PAIR_CASE(put_bcopy)
{
    packet_t packet;

    uct_region_open(&region, pair, REGION_LENGTH);
    packet = (packet_t){payload, pair->a.attr.cap.put.max_bcopy};
    uct_region_fill(payload, packet.length, 78);
    CU_ASSERT(uct_ep_put_bcopy(pair->a.peer, pack, &packet,
                               (uintptr_t)region.data,
                               region.rkey.rkey) == (ssize_t)packet.length);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    CU_ASSERT(memcmp(region.data, payload, packet.length) == 0);
    uct_region_close(&region);
}

static void on_flushed(uct_completion_t *self)
{
}

PAIR_CASE(flush_completion)
{
    uct_completion_t comp = {
        .func   = on_flushed,
        .count  = 2,
        .status = UCS_OK
    };

    uct_region_open(&region, pair, REGION_LENGTH);
    CU_ASSERT(uct_ep_flush(pair->a.peer, 0, NULL) == UCS_OK);
    CU_ASSERT(uct_ep_put_short(pair->a.peer, payload, 8, (uintptr_t)region.data,
                               region.rkey.rkey) == UCS_OK);
    CU_ASSERT(uct_iface_flush(pair->a.iface, 0, NULL) == UCS_INPROGRESS);
    if (uct_ep_flush(pair->a.peer, 0, &comp) == UCS_INPROGRESS) {
        while (comp.count == 2) {
            uct_pair_progress(pair);
        }
    }
    CU_ASSERT(comp.status == UCS_OK);
    CU_ASSERT(memcmp(region.data, payload, 8) == 0);
    CU_ASSERT(uct_iface_flush(pair->a.iface, 0, NULL) == UCS_OK);
    uct_region_close(&region);
}

/* Every single byte of an address is protected, its version first of all */
PAIR_CASE(refused_addresses)
{
    uct_ep_h ep;
    uint8_t *byte;
    size_t i;

    CU_ASSERT(uct_iface_is_reachable(pair->a.iface, pair->b.dev_addr,
                                     pair->b.iface_addr));
    CU_ASSERT(uct_iface_is_reachable(pair->a.iface, pair->b.dev_addr, NULL));
    for (i = 0; i < pair->b.attr.device_addr_len; ++i) {
        byte   = (uint8_t*)pair->b.dev_addr + i;
        *byte ^= 0x22;
        CU_ASSERT(!uct_iface_is_reachable(pair->a.iface, pair->b.dev_addr,
                                          NULL));
        *byte ^= 0x22;
    }
    for (i = 0; i < pair->b.attr.iface_addr_len; ++i) {
        byte   = (uint8_t*)pair->b.iface_addr + i;
        *byte ^= 0x22;
        CU_ASSERT(!uct_iface_is_reachable(pair->a.iface, pair->b.dev_addr,
                                          pair->b.iface_addr));
        *byte ^= 0x22;
    }
    *(uint8_t*)pair->b.iface_addr ^= 0x01;
    CU_ASSERT(uct_pair_connect(pair->a.iface, pair->b.dev_addr,
                               pair->b.iface_addr, &ep) == UCS_ERR_UNREACHABLE);
}

/* Nothing was ever sent to it, and a put of nothing asks: as long as nobody was
 * told, it is taken */
PAIR_CASE(put_to_gone)
{
    ucs_status_t status;

    uct_pair_close_side(&pair->b);
    while (pair->a.errors == 0) {
        status = uct_ep_put_short(pair->a.peer, NULL, 0, 0, UCT_INVALID_RKEY);
        CU_ASSERT((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
        uct_pair_progress(pair);
    }
    CU_ASSERT(pair->a.error == UCS_ERR_ENDPOINT_TIMEOUT);
    CU_ASSERT(uct_ep_put_short(pair->a.peer, NULL, 0, 0, UCT_INVALID_RKEY) ==
              UCS_ERR_ENDPOINT_TIMEOUT);
}

/* UCP arms an interface that it has never made progress on. */
PAIR_CASE(first_message_wakes)
{
    struct pollfd pollfd = {
        .events = POLLIN
    };

    CU_ASSERT_FATAL(uct_pair_reopen_idle(pair) == UCS_OK);
    uct_inbox_open(&inbox, pair->b.iface, AM_ID);
    CU_ASSERT_FATAL(uct_iface_event_fd_get(pair->b.iface, &pollfd.fd) ==
                    UCS_OK);
    while (uct_iface_event_arm(pair->b.iface, UCT_EVENT_RECV) != UCS_OK) {
        uct_iface_progress(pair->b.iface);
    }
    CU_ASSERT(uct_ep_am_short(pair->a.peer, AM_ID, 0, NULL, 0) == UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    CU_ASSERT(poll(&pollfd, 1, -1) == 1);
    while (inbox.count == 0) {
        uct_iface_progress(pair->b.iface);
    }
}

ST_CASE(close_in_flight)
{
    uct_pair_t pair;
    unsigned i;

    open_pair(&pair);
    for (i = 0; i < 50; ++i) {
        CU_ASSERT(uct_ep_am_short(pair.a.peer, AM_ID, i, NULL, 0) == UCS_OK);
    }
    uct_pair_destroy(&pair); /* Descriptors and peers are accounted for */
}

ST_CASE(refused_settings)
{
    static const char *const too_short[] = {"SEG_SIZE", "100", NULL};
    static const char *const too_long[]  = {"SEG_SIZE", "16385", NULL};
    static const char *const no_queue[]  = {"TX_QUEUE_LEN", "0", NULL};
    uct_pair_t pair;

    CU_ASSERT(uct_pair_create(&pair, too_short) != 0);
    CU_ASSERT(uct_pair_create(&pair, too_long) != 0);
    CU_ASSERT(uct_pair_create(&pair, no_queue) != 0);
}

ST_CASE(unknown_provider)
{
    const char *provider = getenv("UCX_CXI_TRIG_PROVIDER");
    char *before         = strdup((provider == NULL) ? "auto" : provider);

    CU_ASSERT_FATAL(before != NULL);
    CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_PROVIDER", "nosuch", 1) == 0);
    CU_ASSERT(uct_pair_count_devices() == 0);
    CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_PROVIDER", before, 1) == 0);
    CU_ASSERT(uct_pair_count_devices() > 0);
    free(before);
}

ST_CASE(version_guard)
{
    CU_ASSERT(uct_cxi_trig_guard_accepts(1, 13, 1, 13));
    CU_ASSERT(!uct_cxi_trig_guard_accepts(1, 13, 1, 14));
    CU_ASSERT(!uct_cxi_trig_guard_accepts(1, 13, 1, 12));
    CU_ASSERT(!uct_cxi_trig_guard_accepts(1, 13, 2, 13));
}

/* Tables of settings outlive neither of the changes that UCX made to them */
ST_CASE(config_layout)
{
    CU_ASSERT(ucs_ext_config_fits());
    CU_ASSERT(ucs_ext_config_layout(1, 13) == ucs_ext_config_layout(1, 14));
    CU_ASSERT(ucs_ext_config_layout(1, 14) != ucs_ext_config_layout(1, 15));
    CU_ASSERT(ucs_ext_config_layout(1, 15) == ucs_ext_config_layout(1, 16));
    CU_ASSERT(ucs_ext_config_layout(1, 16) != ucs_ext_config_layout(1, 17));
    CU_ASSERT(ucs_ext_config_layout(1, 17) == ucs_ext_config_layout(1, 23));
    CU_ASSERT(ucs_ext_config_layout(1, 23) == ucs_ext_config_layout(2, 0));
}

static ucs_status_t named_op(void)
{
    return UCS_ERR_REJECTED;
}

ST_CASE(guard_fill)
{
    ucs_status_t (*ops[])(void) = {NULL, named_op, NULL};

    uct_cxi_trig_guard_fill(ops, 2 * sizeof(*ops));
    CU_ASSERT((ops[0] != NULL) && (ops[0]() == UCS_ERR_UNSUPPORTED));
    CU_ASSERT(ops[1] == named_op);
    CU_ASSERT(ops[2] == NULL);
}

ST_SUITE("uct_cxi_trig")
