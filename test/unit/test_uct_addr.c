/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_addr.c - addresses and keys that are not those of a peer: of other
 * versions, too short, of other providers, or just bytes.
 */
#include "fuzz_util.h"
#include "st_cunit.h"
#include "uct_region.h"

#include <cxi_trig_addr.h>

#include <ucs/debug/log_def.h>
#include <ucs/sys/uid.h>
#include <uct/api/v2/uct_v2.h>
#include <uct/api/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GARBAGE 20000

/* Of the last message that was logged as a warning or worse, and how many */
static char logged[256];
static unsigned num_logged;

static uct_cxi_trig_dev_addr_t dev;
static uct_cxi_trig_iface_addr_t own;


static ucs_log_func_rc_t
keep_message(const char *file, unsigned line, const char *function,
             ucs_log_level_t level,
             const ucs_log_component_config_t *component, const char *message,
             va_list args)
{
    if (level > UCS_LOG_LEVEL_WARN) {
        return UCS_LOG_FUNC_RC_CONTINUE;
    }
    vsnprintf(logged, sizeof(logged), message, args);
    ++num_logged;
    return UCS_LOG_FUNC_RC_STOP;
}

static void open_pair(uct_pair_t *pair)
{
    CU_ASSERT_FATAL(uct_pair_create(pair, NULL) == 0);
    CU_ASSERT_FATAL(pair->b.attr.device_addr_len == sizeof(dev));
    CU_ASSERT_FATAL(pair->b.attr.iface_addr_len == sizeof(own));
    memcpy(&dev, pair->b.dev_addr, sizeof(dev));
    memcpy(&own, pair->b.iface_addr, sizeof(own));
    logged[0]  = '\0';
    num_logged = 0;
    ucs_log_push_handler(keep_message);
}

static void close_pair(uct_pair_t *pair)
{
    ucs_log_pop_handler();
    uct_pair_destroy(pair);
}

#define PAIR_CASE(_name) \
    ST_CASE_WITH(_name, uct_pair_t, pair, open_pair(pair), close_pair(pair))

static int is_reachable(uct_pair_t *pair)
{
    return uct_iface_is_reachable(pair->a.iface, (uct_device_addr_t*)&dev,
                                  (uct_iface_addr_t*)&own);
}

/* An endpoint is refused, and the error says so: both texts are in it */
static void check_refused(uct_pair_t *pair, const char *first,
                          const char *second)
{
    uct_ep_h ep;

    CU_ASSERT(!is_reachable(pair));
    logged[0] = '\0';
    CU_ASSERT(uct_pair_connect(pair->a.iface, (uct_device_addr_t*)&dev,
                               (uct_iface_addr_t*)&own, &ep) ==
              UCS_ERR_UNREACHABLE);
    CU_ASSERT(strstr(logged, first) != NULL);
    CU_ASSERT(strstr(logged, second) != NULL);
}

/* What is said of a format of which there is only a part; the part has memory
 * of its own, so that tools see it when more is read */
static void check_prefixes(const void *format, size_t length)
{
    char expected[64];
    const char *fault;
    uint8_t *part;
    size_t avail;

    for (avail = 0; avail < length; ++avail) {
        part = malloc(avail);
        CU_ASSERT_FATAL((part != NULL) || (avail == 0));
        memcpy(part, format, avail);
        fault = uct_cxi_trig_proto_check(part, length, avail);
        free(part);
        snprintf(expected, sizeof(expected), "truncated: %zu of %zu bytes",
                 avail, length);
        CU_ASSERT_FATAL(fault != NULL);
        CU_ASSERT(strstr(fault, expected) != NULL);
    }
    CU_ASSERT(uct_cxi_trig_proto_check(format, length, length) == NULL);
}

PAIR_CASE(prefixes)
{
    uint8_t key[UCT_TRIG_RKEY_PACKED_LEN];
    uct_region_t region;

    check_prefixes(&dev, sizeof(dev));
    check_prefixes(&own, sizeof(own));

    uct_region_open(&region, pair, 4096);
    CU_ASSERT(uct_md_mkey_pack(pair->b.md, region.memh, key) == UCS_OK);
    check_prefixes(key, sizeof(key));
    uct_region_close(&region);
}

/* Of our formats: both versions are named, to the caller, once an interface */
PAIR_CASE(other_version)
{
    char ours[32], theirs[32];
    int version;

    snprintf(ours, sizeof(ours), "ours is %d", UCT_CXI_TRIG_PROTO_VERSION);
    for (version = 0; version <= UINT8_MAX; ++version) {
        if (version == UCT_CXI_TRIG_PROTO_VERSION) {
            continue;
        }
        snprintf(theirs, sizeof(theirs), "of version %d of", version);
        dev.head.version = (uint8_t)version;
        check_refused(pair, theirs, ours);
        dev.head.version = UCT_CXI_TRIG_PROTO_VERSION;
        own.head.version = (uint8_t)version;
        check_refused(pair, theirs, ours);
        own.head.version = UCT_CXI_TRIG_PROTO_VERSION;
    }
    /* One for each endpoint, and one for all questions */
    CU_ASSERT(num_logged == 2 * UINT8_MAX + 1);
    CU_ASSERT(is_reachable(pair));
}

PAIR_CASE(other_ucx)
{
    char ours[32], theirs[32];

    snprintf(ours, sizeof(ours), "ours is %u.%u", dev.ucx_major,
             dev.ucx_minor);
    snprintf(theirs, sizeof(theirs), "of UCX %u.%u,", dev.ucx_major,
             dev.ucx_minor + 1u);
    ++dev.ucx_minor;
    uct_cxi_trig_proto_seal(&dev.head, sizeof(dev));
    check_refused(pair, theirs, ours);
    CU_ASSERT(num_logged == 2);
}

#if UCT_API >= UCT_VERSION(1, 16)
/* Whether an endpoint is one to these addresses, rather than to some that could
 * be reached: UCP keeps a lane by that */
PAIR_CASE(is_connected)
{
    uct_ep_is_connected_params_t params = {
        .field_mask  = UCT_EP_IS_CONNECTED_FIELD_DEVICE_ADDR |
                       UCT_EP_IS_CONNECTED_FIELD_IFACE_ADDR,
        .device_addr = pair->b.dev_addr,
        .iface_addr  = pair->b.iface_addr
    };

    CU_ASSERT(uct_ep_is_connected(pair->a.peer, &params));
    CU_ASSERT(!uct_ep_is_connected(pair->a.self, &params));
    CU_ASSERT(uct_ep_is_connected(pair->b.self, &params));
    CU_ASSERT(!uct_ep_is_connected(pair->b.peer, &params));
    dev.ucx_minor ^= 1;
    uct_cxi_trig_proto_seal(&dev.head, sizeof(dev));
    params.device_addr = (const uct_device_addr_t*)&dev;
    CU_ASSERT(!uct_ep_is_connected(pair->a.peer, &params));
}
#endif

PAIR_CASE(other_provider)
{
    dev.provider = (dev.provider == 1) ? 2 : 1;
    uct_cxi_trig_proto_seal(&dev.head, sizeof(dev));
    check_refused(pair,
                  (dev.provider == 1) ? "provider cxi," : "provider sockets,",
                  "ours is ");
    dev.provider = 200;
    uct_cxi_trig_proto_seal(&dev.head, sizeof(dev));
    check_refused(pair, "another one", "ours is ");

    memcpy(&dev, pair->b.dev_addr, sizeof(dev));
    own.provider = (own.provider == 1) ? 2 : 1;
    uct_cxi_trig_proto_seal(&own.head, sizeof(own));
    check_refused(pair, "of libfabric provider ", "ours is ");
}

/* A job has a network of its own, which others do not reach */
PAIR_CASE(other_job)
{
    char ours[64];

    CU_ASSERT(is_reachable(pair));
    snprintf(ours, sizeof(ours), "VNI is %u, ours is %u", dev.vni + 1u,
             dev.vni);
    ++dev.vni;
    uct_cxi_trig_proto_seal(&dev.head, sizeof(dev));
    check_refused(pair, "another job", ours);
}

/* Processes of one boot reach each other whatever they call the machine: each
 * container has a host name of its own, and two machines may have the same */
PAIR_CASE(other_host_name)
{
    CU_ASSERT(dev.machine == ucs_get_system_id());
}

/* Namespaces keep processes of one machine apart: those of PIDs and users from
 * the emulated card, those of networks from the loop-back device. One message
 * of an interface of the card says so. */
PAIR_CASE(other_container)
{
    int is_emulated = !strncmp(uct_pair_device(), "cxiemu", 6);

    CU_ASSERT((dev.user_space != 0) == is_emulated);
    CU_ASSERT((dev.space != 0) == (is_emulated ||
                                   !strcmp(uct_pair_device(), "lo")));
    ++dev.space;
    uct_cxi_trig_proto_seal(&dev.head, sizeof(dev));
    check_refused(pair, "in another", is_emulated ? "PID" : "network");
    ++dev.user_space;
    uct_cxi_trig_proto_seal(&dev.head, sizeof(dev));
    check_refused(pair, "in another", "user");
    --dev.space;
    --dev.user_space;
    uct_cxi_trig_proto_seal(&dev.head, sizeof(dev));
    CU_ASSERT(is_reachable(pair));
    /* An error of each endpoint, and one warning */
    CU_ASSERT(num_logged == 2u + is_emulated);
}

/* A format with changes, and with a checksum that is right in most cases */
static void change(fuzz_t *fuzz, void *data, const void *valid, size_t length)
{
    memcpy(data, valid, length);
    fuzz_scribble(fuzz, data, length);
    if (fuzz_random(fuzz, 8) != 0) {
        uct_cxi_trig_proto_seal(data, length);
    }
}

/* A good address with other bytes in it: it is refused, or there is an
 * endpoint, to which messages fail or go; what follows is as before */
ST_CASE_IF(changed_addresses, !strncmp(uct_pair_device(), "cxiemu", 6),
           "changed addresses are those of other machines")
{
    uct_pair_t pair;
    uct_ep_h ep;
    fuzz_t fuzz;

    open_pair(&pair);
    fuzz_begin(&fuzz, 2000);
    while (fuzz_next(&fuzz)) {
        change(&fuzz, &dev, pair.b.dev_addr, sizeof(dev));
        change(&fuzz, &own, pair.b.iface_addr, sizeof(own));
        (void)is_reachable(&pair);
        if (fuzz_random(&fuzz, 4) != 0) {
            memcpy(&dev, pair.b.dev_addr, sizeof(dev));
        }
        if (uct_pair_connect(pair.a.iface, (uct_device_addr_t*)&dev,
                             (uct_iface_addr_t*)&own, &ep) == UCS_OK) {
            (void)uct_ep_am_short(ep, 5, 0, NULL, 0);
            uct_pair_progress(&pair);
            uct_ep_destroy(ep);
        }
    }
    CU_ASSERT(uct_pair_flush(&pair, pair.a.peer) == UCS_OK);
    close_pair(&pair);
}

/* Keys: no more than what is in them is read, and each is refused or has the
 * numbers that stand there */
ST_CASE(changed_keys)
{
    uint8_t valid[UCT_TRIG_RKEY_PACKED_LEN];
    uint8_t *key;
    uct_region_t region;
    uct_trig_rkey_t rkey;
    uct_pair_t pair;
    size_t length;
    fuzz_t fuzz;

    open_pair(&pair);
    uct_region_open(&region, &pair, 4096);
    CU_ASSERT(uct_md_mkey_pack(pair.b.md, region.memh, valid) == UCS_OK);
    fuzz_begin(&fuzz, 20000);
    while (fuzz_next(&fuzz)) {
        /* Memory of its own, so that tools see it when more is read */
        length = (fuzz_random(&fuzz, 4) != 0) ?
                 sizeof(valid) : fuzz_random(&fuzz, sizeof(valid));
        key    = malloc(sizeof(valid));
        CU_ASSERT_FATAL(key != NULL);
        change(&fuzz, key, valid, sizeof(valid));
        key = realloc(key, (length == 0) ? 1 : length);
        CU_ASSERT_FATAL(key != NULL);
        if ((uct_trig_rkey_unpack(key, length, &rkey) == UCS_OK)) {
            CU_ASSERT(length == sizeof(valid));
        }
        free(key);
    }
    uct_region_close(&region);
    close_pair(&pair);
}

static void fill(void *data, size_t length, unsigned *seed_p)
{
    uint8_t *bytes = data;
    size_t i;

    for (i = 0; i < length; ++i) {
        bytes[i] = (uint8_t)rand_r(seed_p);
    }
}

/* Bytes, and bytes whose checksum is right: nothing is read beyond them, and
 * nobody is reached */
ST_CASE(garbage)
{
    const char *given = getenv("ST_SEED");
    unsigned seed     = (given != NULL) ? (unsigned)atoi(given) :
                                          (unsigned)time(NULL);
    uint8_t key[UCT_TRIG_RKEY_PACKED_LEN];
    uct_trig_rkey_t rkey;
    uct_pair_t pair;
    unsigned i;

    printf("seed %u (ST_SEED)\n", seed);
    open_pair(&pair);
    for (i = 0; i < GARBAGE; ++i) {
        fill(&dev, sizeof(dev), &seed);
        fill(&own, sizeof(own), &seed);
        CU_ASSERT(!is_reachable(&pair));
        uct_cxi_trig_proto_seal(&dev.head, sizeof(dev));
        CU_ASSERT(!is_reachable(&pair));

        /* With a good address of the device, a name that is too long */
        memcpy(&dev, pair.b.dev_addr, sizeof(dev));
        own.provider      = dev.provider;
        own.name_length  |= UCT_CXI_TRIG_NAME_BLOB_MAX;
        own.target_length = (uint8_t)(own.target_length | 1u);
        uct_cxi_trig_proto_seal(&own.head, sizeof(own));
        CU_ASSERT(!is_reachable(&pair));

        /* Names that the provider would read beyond the end of */
        memcpy(&own, pair.b.iface_addr, sizeof(own));
        own.name_length   = UCT_CXI_TRIG_NAME_BLOB_MAX - sizeof(uint64_t) - 1;
        own.target_length = 1;
        uct_cxi_trig_proto_seal(&own.head, sizeof(own));
        CU_ASSERT(!is_reachable(&pair));

        fill(key, sizeof(key), &seed);
        CU_ASSERT(uct_trig_rkey_unpack(key, sizeof(key), &rkey) ==
                  UCS_ERR_INVALID_PARAM);
    }
    close_pair(&pair);
}

ST_SUITE("uct_addr")
