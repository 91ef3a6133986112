/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uct_stats.c - what interfaces and memory domains count. */
#include "st_cunit.h"
#include "trig_util.h"
#include "uct_domain.h"
#include "uct_region.h"
#include "uct_trig_stats.h"

#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>
#include <uct/api/version.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AM_ID 5


static uct_inbox_t inbox;

static size_t pack_100(void *dest, void *arg)
{
    memset(dest, 1, 100);
    return 100;
}

static void unpack_none(void *arg, const void *data, size_t length)
{
}

static void open_pair(uct_pair_t *pair, const char *const *settings)
{
    CU_ASSERT_FATAL(uct_pair_create(pair, settings) == 0);
    uct_inbox_open(&inbox, pair->b.iface, AM_ID);
}

#define PAIR_CASE(_name) \
    ST_CASE_WITH(_name, uct_pair_t, pair, open_pair(pair, NULL), \
                 uct_pair_destroy(pair))

static uct_trig_iface_stats_t stats_of(uct_iface_h iface)
{
    uct_trig_iface_stats_t stats;

    memset(&stats, 0xff, sizeof(stats));
    CU_ASSERT_FATAL(uct_trig_iface_stats(iface, &stats) == UCS_OK);
    return stats;
}

static uint64_t count_of(uct_iface_h iface, uct_trig_stats_kind_t kind)
{
    return stats_of(iface).ops[kind].count;
}

static uint64_t bytes_of(uct_iface_h iface, uct_trig_stats_kind_t kind)
{
    return stats_of(iface).ops[kind].bytes;
}

PAIR_CASE(nothing)
{
    static const uct_trig_iface_stats_t zeros;
    uct_trig_iface_stats_t stats;

    stats = stats_of(pair->a.iface);
    CU_ASSERT(memcmp(&stats, &zeros, sizeof(stats)) == 0);
}

PAIR_CASE(messages)
{
    uct_trig_iface_stats_t stats;

    CU_ASSERT(uct_ep_am_short(pair->a.peer, AM_ID, 1, "abc", 3) == UCS_OK);
    CU_ASSERT(uct_ep_am_bcopy(pair->a.peer, AM_ID, pack_100, NULL, 0) == 100);
    CU_ASSERT(uct_ep_check(pair->b.peer, 0, NULL) == UCS_OK);
    uct_pair_wait(pair, &inbox.count, 2);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->b.peer) == UCS_OK);

    stats = stats_of(pair->a.iface);
    CU_ASSERT(stats.ops[UCT_TRIG_STATS_AM].count == 2);
    CU_ASSERT(stats.ops[UCT_TRIG_STATS_AM].bytes == 111);
    CU_ASSERT(stats.completed == 2);
    CU_ASSERT(stats.failed == 0);
    CU_ASSERT(stats.received.count == 0);
    stats = stats_of(pair->b.iface);
    CU_ASSERT(stats.ops[UCT_TRIG_STATS_AM].count == 0);
    CU_ASSERT(stats.ops[UCT_TRIG_STATS_PROBE].count == 1);
    CU_ASSERT(stats.received.count == 2);
    CU_ASSERT(stats.received.bytes == 111);
}

PAIR_CASE(memory)
{
    static uint8_t buffer[64];
    uct_iov_t iov = {
        .buffer = buffer,
        .length = sizeof(buffer),
        .count  = 1
    };
    uct_region_t region;
    uct_done_t done;
    uct_iface_h a;

    uct_region_open(&region, pair, 4096);
    a = pair->a.iface;
    CU_ASSERT(uct_ep_put_short(pair->a.peer, buffer, 8,
                               uct_region_at(&region, 0),
                               region.rkey.rkey) == UCS_OK);
    uct_done_init(&done, 4);
    CU_ASSERT(uct_ep_put_zcopy(pair->a.peer, &iov, 1, uct_region_at(&region, 0),
                               region.rkey.rkey, &done.comp) == UCS_INPROGRESS);
    CU_ASSERT(uct_ep_get_zcopy(pair->a.peer, &iov, 1, uct_region_at(&region, 0),
                               region.rkey.rkey, &done.comp) == UCS_INPROGRESS);
    CU_ASSERT(uct_ep_get_bcopy(pair->a.peer, unpack_none, NULL, 24,
                               uct_region_at(&region, 0), region.rkey.rkey,
                               &done.comp) == UCS_INPROGRESS);
    CU_ASSERT(uct_ep_atomic64_fetch(pair->a.peer, UCT_ATOMIC_OP_ADD, 1,
                                    (uint64_t*)buffer,
                                    uct_region_at(&region, 0), region.rkey.rkey,
                                    &done.comp) == UCS_INPROGRESS);
    CU_ASSERT(uct_done_wait(&done, pair) == UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);

    CU_ASSERT(count_of(a, UCT_TRIG_STATS_PUT) == 1);
    CU_ASSERT(bytes_of(a, UCT_TRIG_STATS_PUT) == 8);
    CU_ASSERT(count_of(a, UCT_TRIG_STATS_PUT_ZCOPY) == 1);
    CU_ASSERT(bytes_of(a, UCT_TRIG_STATS_PUT_ZCOPY) == sizeof(buffer));
    CU_ASSERT(count_of(a, UCT_TRIG_STATS_GET_ZCOPY) == 1);
    CU_ASSERT(bytes_of(a, UCT_TRIG_STATS_GET_ZCOPY) == sizeof(buffer));
    CU_ASSERT(count_of(a, UCT_TRIG_STATS_GET) == 1);
    CU_ASSERT(bytes_of(a, UCT_TRIG_STATS_GET) == 24);
    CU_ASSERT(count_of(a, UCT_TRIG_STATS_ATOMIC) == 1);
    CU_ASSERT(bytes_of(a, UCT_TRIG_STATS_ATOMIC) == 8);
    CU_ASSERT(stats_of(a).completed == 5);
    uct_region_close(&region);
}

static ucs_status_t never_called(uct_pending_req_t *self)
{
    return UCS_OK;
}

static void forget(uct_pending_req_t *self, void *arg)
{
}

/* One descriptor: the second call waits for it, and says so */
ST_CASE(waits)
{
    static const char *const settings[] = {"TX_QUEUE_LEN", "1", NULL};
    uct_pending_req_t request = {
        .func = never_called
    };
    uct_trig_iface_stats_t stats;
    uct_pair_t pair;

    open_pair(&pair, settings);
    CU_ASSERT(uct_ep_am_short(pair.a.peer, AM_ID, 1, "abc", 3) == UCS_OK);
    CU_ASSERT(uct_ep_am_short(pair.a.peer, AM_ID, 1, "abc", 3) ==
              UCS_ERR_NO_RESOURCE);
    CU_ASSERT(uct_ep_pending_add(pair.a.peer, &request, 0) == UCS_OK);
    stats = stats_of(pair.a.iface);
    CU_ASSERT(stats.no_descriptor == 1);
    CU_ASSERT(stats.pending == 1);
    CU_ASSERT(stats.ops[UCT_TRIG_STATS_AM].count == 1);
    uct_ep_pending_purge(pair.a.peer, forget, NULL);
    uct_pair_wait(&pair, &inbox.count, 1);
    uct_pair_destroy(&pair);
}

static void on_done(void *arg, ucs_status_t status)
{
    ++*(uint64_t*)arg;
}

PAIR_CASE(deferred)
{
    static uint64_t word;
    uint64_t done                = 0;
    uct_trig_atomic_t atomic     = {
        .value       = 1,
        .remote_addr = (uintptr_t)&word
    };
    uct_trig_deferred_t deferred = {
        .threshold = 1,
        .done      = on_done,
        .arg       = &done
    };
    uct_pair_hold_t all;
    uct_trig_iface_attr_t attr;
    uint64_t before;
    uct_trig_mem_h mem;
    uint8_t key[UCT_TRIG_RKEY_PACKED_LEN];

    CU_ASSERT_FATAL(uct_trig_mem_reg(pair->b.iface, &word, sizeof(word), NULL,
                                     &mem) == UCS_OK);
    uct_trig_mem_pack(mem, key);
    CU_ASSERT_FATAL(uct_trig_rkey_unpack(key, sizeof(key), &atomic.rkey) ==
                    UCS_OK);
    CU_ASSERT_FATAL(uct_trig_cntr_create(pair->a.iface, &deferred.trigger) ==
                    UCS_OK);
    CU_ASSERT_FATAL(TRIG_POST(
            uct_trig_ep_atomic_add64(pair->a.peer, &atomic,
                                     &deferred)) == UCS_OK);
    CU_ASSERT(stats_of(pair->a.iface).deferred == 1);
    CU_ASSERT(stats_of(pair->a.iface).deferred_done == 0);
    CU_ASSERT(uct_trig_cntr_add(deferred.trigger, 1) == UCS_OK);
    uct_pair_wait(pair, &done, 1);
    CU_ASSERT(stats_of(pair->a.iface).deferred_done == 1);
    CU_ASSERT(stats_of(pair->a.iface).deferred_failed == 0);

    CU_ASSERT(uct_trig_iface_query(pair->a.iface, &attr) == UCS_OK);
    CU_ASSERT_FATAL(uct_pair_hold(pair, attr.free_entries, &all) == UCS_OK);
    CU_ASSERT(stats_of(pair->a.iface).no_entry == 0);
    before = stats_of(pair->a.iface).deferred;
    CU_ASSERT(uct_trig_ep_atomic_add64(pair->a.peer, &atomic, &deferred) ==
              UCS_ERR_NO_RESOURCE);
    CU_ASSERT(stats_of(pair->a.iface).no_entry == 1);
    CU_ASSERT(stats_of(pair->a.iface).deferred == before);
    uct_pair_unhold(pair, &all);
    CU_ASSERT(uct_trig_cntr_destroy(deferred.trigger) == UCS_OK);
    CU_ASSERT(uct_trig_mem_dereg(mem) == UCS_OK);
}

/* A put with a stale key fails */
PAIR_CASE(failures)
{
    uint64_t value = 0;
    uct_region_t region;

    uct_region_open(&region, pair, 4096);
    uct_region_dereg(&region);
    CU_ASSERT(uct_ep_put_short(pair->a.peer, &value, sizeof(value),
                               uct_region_at(&region, 0),
                               region.rkey.rkey) == UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) != UCS_OK);
    CU_ASSERT(stats_of(pair->a.iface).failed == 1);
    CU_ASSERT(stats_of(pair->a.iface).completed == 0);
    uct_region_close(&region);
}

/* Registers the same memory twice, and gives it back */
static uct_trig_md_stats_t count_registrations(uct_md_h md)
{
    static uint8_t buffer[4096] __attribute__((aligned(4096)));
    uct_trig_md_stats_t stats;
    uct_mem_h memh;
    int i;

    for (i = 0; i < 2; ++i) {
        CU_ASSERT_FATAL(uct_md_mem_reg(md, buffer, sizeof(buffer),
                                       UCT_MD_MEM_ACCESS_ALL, &memh) == UCS_OK);
        CU_ASSERT(uct_md_mem_dereg(md, memh) == UCS_OK);
    }
    CU_ASSERT(uct_md_mem_reg(md, (void*)4096, 1, UCT_MD_MEM_ACCESS_ALL |
                             UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh) ==
              UCS_ERR_INVALID_ADDR);
    CU_ASSERT(uct_trig_md_stats(md, &stats) == UCS_OK);
    return stats;
}

ST_CASE(registrations)
{
    uct_trig_md_stats_t stats;
    uct_domain_t domain;

    CU_ASSERT_FATAL(uct_domain_try_uncached(&domain) == UCS_OK);
    stats = count_registrations(domain.md);
    CU_ASSERT(stats.registered.count == 2);
    CU_ASSERT(stats.registered.bytes == 8192);
    CU_ASSERT(stats.deregistered == 2);
    CU_ASSERT(stats.refused == 1);
    CU_ASSERT(stats.cache_hits == 0);
    CU_ASSERT(stats.cache_misses == 0);
    uct_domain_close(&domain);
}

ST_CASE(cache)
{
    uct_trig_md_stats_t stats;
    uct_domain_t domain;

    if (uct_domain_try(&domain, uct_pair_device(), "RCACHE", "y") != UCS_OK) {
        st_cunit_skip("no cache of registrations here: UCX cannot tell that "
                      "memory is unmapped, or caches itself");
        return;
    }
    stats = count_registrations(domain.md);
    CU_ASSERT(stats.registered.count == 1);
    CU_ASSERT(stats.deregistered == 0);
    CU_ASSERT(stats.cache_hits == 1);
    CU_ASSERT(stats.cache_misses == 2); /* One was refused */
    CU_ASSERT(stats.refused >= 1);
    uct_domain_close(&domain);
}

/* A line for each count */
ST_CASE(printed)
{
    const uct_trig_iface_stats_t iface = {
        .received = {.count = 2, .bytes = 100},
        .no_entry = 3
    };
    const uct_trig_md_stats_t md       = {.registered = {.count = 4},
                                          .cache_misses = 5};
    char *text                         = NULL;
    size_t length;
    FILE *stream;

    stream = open_memstream(&text, &length);
    CU_ASSERT_FATAL(stream != NULL);
    uct_trig_iface_stats_print(&iface, stream);
    uct_trig_md_stats_print(&md, stream);
    CU_ASSERT(fclose(stream) == 0);
    CU_ASSERT(strstr(text, "\nreceived 2\nreceived_bytes 100\n") != NULL);
    CU_ASSERT(strstr(text, "\nno_entry 3\nregistered 4\n") != NULL);
    CU_ASSERT(strstr(text, "\ncache_misses 5\n") != NULL);
    free(text);
}

/* Reads a file in UCX's tree of objects */
static uint64_t read_vfs(const char *path)
{
    ucs_string_buffer_t strb = UCS_STRING_BUFFER_INITIALIZER;
    uint64_t value           = UINT64_MAX;

    CU_ASSERT(ucs_vfs_path_read_file(path, &strb) == UCS_OK);
    CU_ASSERT(sscanf(ucs_string_buffer_cstr(&strb), "%" SCNu64, &value) == 1);
    ucs_string_buffer_cleanup(&strb);
    return value;
}

static void ignore_name(const char *name, void *arg)
{
    ++*(unsigned*)arg;
}

ST_CASE(vfs)
{
    unsigned count = 0;
    char path[256];
    uct_pair_t pair;

    open_pair(&pair, NULL);
    CU_ASSERT(uct_ep_am_bcopy(pair.a.peer, AM_ID, pack_100, NULL, 0) == 100);
    uct_pair_wait(&pair, &inbox.count, 1);

    /* To be looked at brings it up to date */
    snprintf(path, sizeof(path), "/uct/worker/%p/iface/%p", pair.worker,
             pair.a.iface);
    CU_ASSERT(ucs_vfs_path_list_dir(path, ignore_name, &count) == UCS_OK);
    CU_ASSERT(count > 0);
    strcat(path, "/counts/am_bytes");
    CU_ASSERT(read_vfs(path) == 100);
    snprintf(path, sizeof(path), "/uct/component/cxi_trig/memory_domain/%s/"
             "counts/registered", uct_pair_device());
    CU_ASSERT(read_vfs(path) == 1); /* what peers ask by */
    uct_pair_destroy(&pair);
    CU_ASSERT(ucs_vfs_path_list_dir("/uct/component/cxi_trig/memory_domain",
                                    ignore_name, &count) != UCS_OK);
}

/* Runs a pair's life with the standard error output in a file; what is there */
static char *told(const char *setting)
{
    FILE *file = tmpfile();
    int saved  = dup(STDERR_FILENO);
    char *text = calloc(1, 65536);
    uct_pair_t pair;

    CU_ASSERT_FATAL((file != NULL) && (saved >= 0) && (text != NULL));
    CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_STATS", setting, 1) == 0);
    CU_ASSERT_FATAL(dup2(fileno(file), STDERR_FILENO) >= 0);
    open_pair(&pair, NULL);
    CU_ASSERT(uct_ep_am_bcopy(pair.a.peer, AM_ID, pack_100, NULL, 0) == 100);
    uct_pair_wait(&pair, &inbox.count, 1);
    uct_pair_destroy(&pair);
    CU_ASSERT_FATAL(dup2(saved, STDERR_FILENO) >= 0);
    CU_ASSERT_FATAL(unsetenv("UCX_CXI_TRIG_STATS") == 0);
    rewind(file);
    CU_ASSERT(fread(text, 1, 65535, file) < 65535);
    fclose(file);
    close(saved);
    return text;
}

static unsigned occurrences(const char *text, const char *word)
{
    unsigned count = 0;

    while ((text = strstr(text, word)) != NULL) {
        ++count;
        ++text;
    }
    return count;
}

ST_CASE(told)
{
    char *text = told("y");

    CU_ASSERT(occurrences(text, "--- cxi_trig counts: ") == 4);
    CU_ASSERT(occurrences(text, " 1\nam_bytes 100\n") == 1);
    CU_ASSERT(occurrences(text, "\nreceived 1\nreceived_bytes 100\n") == 1);
    CU_ASSERT(occurrences(text, "\nregistered 1\n") == 2);
    CU_ASSERT(occurrences(text, "\n---\n") == 4);
    free(text);
    text = told("n");
    CU_ASSERT(occurrences(text, "cxi_trig counts") == 0);
    free(text);
}

/* Others' objects are refused */
ST_CASE(others)
{
    uct_component_h *components;
    uct_component_attr_t attr;
    uct_md_config_t *config;
    uct_trig_md_stats_t stats;
    unsigned count, i, others = 0;
    uct_md_h md;

    CU_ASSERT_FATAL(uct_query_components(&components, &count) == UCS_OK);
    for (i = 0; i < count; ++i) {
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        CU_ASSERT(uct_component_query(components[i], &attr) == UCS_OK);
        if (strcmp(attr.name, "self") ||
            (uct_md_config_read(components[i], NULL, NULL, &config) !=
             UCS_OK)) {
            continue;
        }
        CU_ASSERT_FATAL(uct_md_open(components[i], attr.name, config, &md) ==
                        UCS_OK);
        CU_ASSERT(uct_trig_md_stats(md, &stats) == UCS_ERR_UNSUPPORTED);
        ++others;
        uct_md_close(md);
        uct_config_release(config);
    }
    CU_ASSERT(others == 1);
    uct_release_component_list(components);
}

ST_SUITE("uct_stats")
