/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uct_settings.c - the provider that settings choose; their list. */
#include "fab_card.h"
#include "trig_util.h"
#include "uct_errors.h"
#include "uct_region.h"

#include <cxi_trig_cassini.h>
#include <cxi_trig_prov.h>

#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AM_ID      5
#define ROUNDS     20
#define PLAIN_PUTS 400


/* The name of what "auto" takes; empty if it takes nothing */
static const char *ask_auto(char name[16])
{
    static unsigned number; /* The last question is not asked again */
    uct_cxi_trig_prov_want_t want = {
        .name     = (char*)"auto",
        .ordering = (++number % 2) ? UCT_CXI_TRIG_ORDERING_RELAXED :
                                     UCT_CXI_TRIG_ORDERING_DEFAULT
    };
    const uct_cxi_trig_prov_t *prov;
    struct fi_info *info;

    name[0] = '\0';
    if (uct_cxi_trig_prov_find(&want, &prov, &info) == UCS_OK) {
        snprintf(name, 16, "%s", prov->name);
        fi_freeinfo(info);
    }
    return name;
}

/* The same; there is one error if there is no provider */
static const char *find_auto(char name[16])
{
    uct_errors_begin();
    ask_auto(name);
    CU_ASSERT(uct_errors_end() == (name[0] == '\0'));
    return name;
}

static void check_off(const char *cause)
{
    char reason[UCT_TRIG_REASON_MAX];

    uct_trig_off_reason(reason, sizeof(reason));
    CU_ASSERT(strstr(reason, "has Cassini cards") != NULL);
    CU_ASSERT(strstr(reason, cause) != NULL);
}

/* What is said of the emulated card when interfaces of it open, which a
 * provider's name has led to, in an environment with a variable */
static unsigned count_told(const char *provider, const char *name,
                           const char *value)
{
    char *before[] = {st_env_set("UCX_CXI_TRIG_PROVIDER", provider),
                      st_env_set("ST_DEVICE", "cxiemu0"),
                      st_env_set(name, value)};
    uct_pair_t pair;
    unsigned count;

    uct_errors_begin_text(UCS_LOG_LEVEL_WARN, "runs on an emulated one");
    CU_ASSERT_FATAL(uct_pair_create(&pair, NULL) == 0);
    uct_pair_destroy(&pair);
    count = uct_errors_end();
    st_env_restore(name, before[2]);
    st_env_restore("ST_DEVICE", before[1]);
    st_env_restore("UCX_CXI_TRIG_PROVIDER", before[0]);
    return count;
}

static void hide_cards(void)
{
    uct_cxi_trig_cassini_devices = "/nonexistent";
    uct_cxi_trig_cassini_files   = "/nonexistent";
    uct_cxi_trig_cassini_pci     = "/nonexistent";
    fab_card_set(FAB_CARD_NONE);
}

/* Whoever has not asked for the emulated card is told once that it is used;
 * in a job, one process of a node */
ST_CASE(auto_is_told)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_LOCAL_RANK",
                                        "SLURM_LOCALID", "PMIX_RANK"};
    char *before                     = st_env_set("UCX_NET_DEVICES", NULL);
    unsigned i;

    hide_cards();
    CU_ASSERT(count_told("cxiemu", "ST_DEVICE", "cxiemu0") == 0);
    CU_ASSERT(count_told("auto", "UCX_NET_DEVICES", "eth0,cxiemu0") == 0);
    for (i = 0; i < ST_CUNIT_COUNT(ranks); ++i) {
        CU_ASSERT(count_told("auto", ranks[i], "1") == 0);
    }
    CU_ASSERT(count_told("auto", ranks[0], "0") == 1);
    CU_ASSERT(count_told("auto", ranks[0], "0") == 0);
    st_env_restore("UCX_NET_DEVICES", before);
    fab_card_reset();
}

/* A folder in a folder, if @a is_there, or none */
static void set_folder(const char *folder, const char *name, int is_there)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    CU_ASSERT_FATAL((is_there ? mkdir(path, 0700) : rmdir(path)) == 0);
}

/* A machine with cards runs on them, or says why not; one without, on the
 * emulated one */
ST_CASE(auto)
{
    char folder[] = "/tmp/uct_settings.XXXXXX";
    char name[16];

    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
    hide_cards();
    CU_ASSERT(strcmp(find_auto(name), "cxiemu") == 0);
    uct_cxi_trig_cassini_files   = folder;
    uct_cxi_trig_cassini_devices = folder;
    CU_ASSERT(strcmp(find_auto(name), "cxiemu") == 0);

    set_folder(folder, "cxi0", 1);
    CU_ASSERT(strcmp(find_auto(name), "") == 0);
    check_off("links must be up");
    fab_card_set(FAB_CARD_CLOSED);
    CU_ASSERT(strcmp(find_auto(name), "") == 0);
    check_off(fi_strerror(FI_EACCES));
    fab_card_set(FAB_CARD_OPEN);
    CU_ASSERT(strcmp(find_auto(name), "cxi") == 0);

    /* A card that is listed is one, too */
    hide_cards();
    fab_card_set(FAB_CARD_OPEN);
    CU_ASSERT(strcmp(find_auto(name), "cxi") == 0);
    fab_card_set(FAB_CARD_CLOSED);
    CU_ASSERT(strcmp(find_auto(name), "") == 0);
    check_off(fi_strerror(FI_EACCES));

    hide_cards();
    CU_ASSERT(strcmp(find_auto(name), "cxiemu") == 0);
    set_folder(folder, "cxi0", 0);
    CU_ASSERT(rmdir(folder) == 0);
    fab_card_reset();
}

/* The device file alone: what a container sees of a card */
ST_CASE(auto_file)
{
    char folder[] = "/tmp/uct_settings.XXXXXX";
    char name[16];

    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
    hide_cards();
    uct_cxi_trig_cassini_files = folder;
    set_folder(folder, "cxi_other", 1);
    CU_ASSERT(strcmp(find_auto(name), "cxiemu") == 0);
    set_folder(folder, "cxi12", 1);
    CU_ASSERT(strcmp(find_auto(name), "") == 0);
    check_off("/cxi12 is there");
    set_folder(folder, "cxi12", 0);
    set_folder(folder, "cxi_other", 0);
    CU_ASSERT(rmdir(folder) == 0);
    fab_card_reset();
}

/* What the kernel tells of a PCI device, and what "auto" takes then */
static void set_pci(const char *device, const char *vendor, const char *number,
                    char name[16])
{
    const char *const texts[][2] = {{"vendor", vendor}, {"device", number}};
    char path[128];
    unsigned i;
    FILE *file;

    for (i = 0; i < ST_CUNIT_COUNT(texts); ++i) {
        snprintf(path, sizeof(path), "%s/%s", device, texts[i][0]);
        file = fopen(path, "w");
        CU_ASSERT_FATAL(file != NULL);
        CU_ASSERT(fprintf(file, "%s\n", texts[i][1]) > 0);
        CU_ASSERT(fclose(file) == 0);
    }
    find_auto(name);
    for (i = 0; i < ST_CUNIT_COUNT(texts); ++i) {
        snprintf(path, sizeof(path), "%s/%s", device, texts[i][0]);
        CU_ASSERT(unlink(path) == 0);
    }
}

/* A card whose driver was not loaded */
ST_CASE(auto_pci)
{
    static const char *const cards[][2] = {
        {"0x17db", "0x0501"}, {"0x1590", "0x0371"}, {"0x1590", "0x0372"}
    };
    char folder[] = "/tmp/uct_settings.XXXXXX";
    char device[64], name[16];
    unsigned i;

    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
    snprintf(device, sizeof(device), "%s/0000:21:00.0", folder);
    hide_cards();
    uct_cxi_trig_cassini_pci = folder;
    set_folder(folder, "0000:21:00.0", 1);
    CU_ASSERT(strcmp(find_auto(name), "cxiemu") == 0);
    set_pci(device, "0x1590", "0x0501", name);
    CU_ASSERT(strcmp(name, "cxiemu") == 0);
    for (i = 0; i < ST_CUNIT_COUNT(cards); ++i) {
        set_pci(device, cards[i][0], cards[i][1], name);
        CU_ASSERT(strcmp(name, "") == 0);
        check_off("PCI device 0000:21:00.0");
        check_off("driver");
    }
    CU_ASSERT(rmdir(device) == 0);
    CU_ASSERT(rmdir(folder) == 0);
    hide_cards();
    fab_card_reset();
}


/* The provider for some settings; the caller frees the list */
static ucs_status_t find(unsigned ordering, unsigned traffic_class,
                         struct fi_info **info_p)
{
    char *name                    = getenv("UCX_CXI_TRIG_PROVIDER");
    uct_cxi_trig_prov_want_t want = {
        .name          = (name == NULL) ? "auto" : name,
        .ordering      = ordering,
        .traffic_class = traffic_class
    };
    const uct_cxi_trig_prov_t *prov;

    return uct_cxi_trig_prov_find(&want, &prov, info_p);
}

/* Cassini, emulated or not */
static int is_cassini(void)
{
    struct fi_info *info;
    int result;

    CU_ASSERT_FATAL(find(UCT_CXI_TRIG_ORDERING_DEFAULT, 0, &info) == UCS_OK);
    result = !strncmp(info->fabric_attr->prov_name, "cxi", 3);
    fi_freeinfo(info);
    return result;
}

ST_CASE(orderings)
{
    struct fi_info *info;

    CU_ASSERT_FATAL(find(UCT_CXI_TRIG_ORDERING_RELAXED, 0, &info) == UCS_OK);
    CU_ASSERT(info->tx_attr->msg_order == FI_ORDER_SAS);
    /* Left alone: with less, Cassini lets a word pass its payload on the way
     * into the host's memory */
    CU_ASSERT(info->rx_attr->msg_order & FI_ORDER_WAW);
    fi_freeinfo(info);

    CU_ASSERT_FATAL(find(UCT_CXI_TRIG_ORDERING_DEFAULT, 0, &info) == UCS_OK);
    CU_ASSERT(info->tx_attr->msg_order & FI_ORDER_SAS);
    /* Cassini keeps no more than is asked for; sockets cannot help it */
    CU_ASSERT((info->tx_attr->msg_order == FI_ORDER_SAS) == is_cassini());
    CU_ASSERT(info->rx_attr->msg_order & FI_ORDER_WAW);
    fi_freeinfo(info);

    CU_ASSERT_FATAL(find(UCT_CXI_TRIG_ORDERING_STRICT, 0, &info) == UCS_OK);
    CU_ASSERT(info->tx_attr->msg_order & FI_ORDER_SAS);
    CU_ASSERT(info->tx_attr->msg_order & FI_ORDER_WAW);
    CU_ASSERT((info->tx_attr->msg_order & FI_ORDER_ATOMIC_WAW) != 0);
    fi_freeinfo(info);
}

/* Cassini has no class above scavenger. sockets takes the hint, and does
 * nothing with it: that is a refusal. */
ST_CASE(traffic_classes)
{
    static const uint32_t tclasses[] = {
        FI_TC_UNSPEC, FI_TC_BEST_EFFORT, FI_TC_LOW_LATENCY,
        FI_TC_DEDICATED_ACCESS, FI_TC_BULK_DATA, FI_TC_SCAVENGER,
        FI_TC_NETWORK_CTRL
    };
    int cassini = is_cassini();
    char reason[UCT_TRIG_REASON_MAX];
    struct fi_info *info;
    ucs_status_t status;
    unsigned i;

    for (i = 0; uct_cxi_trig_prov_traffic_classes[i] != NULL; ++i) {
        uct_errors_begin();
        status = find(UCT_CXI_TRIG_ORDERING_DEFAULT, i, &info);
        CU_ASSERT(uct_errors_end() == (status != UCS_OK));
        CU_ASSERT((status == UCS_OK) ==
                  ((cassini && (tclasses[i] <= FI_TC_SCAVENGER)) || (i == 0)));
        if (status == UCS_OK) {
            CU_ASSERT(info->tx_attr->tclass == tclasses[i]);
            CU_ASSERT(info->domain_attr->tclass == tclasses[i]);
            fi_freeinfo(info);
            continue;
        }

        CU_ASSERT(status == UCS_ERR_UNSUPPORTED);
        CU_ASSERT(strstr(uct_errors_last(),
                         uct_cxi_trig_prov_traffic_classes[i]) != NULL);
        uct_trig_off_reason(reason, sizeof(reason));
        CU_ASSERT(strcmp(reason, uct_errors_last()) == 0);
        /* Said once */
        uct_errors_begin();
        CU_ASSERT(find(UCT_CXI_TRIG_ORDERING_DEFAULT, i, &info) == status);
        CU_ASSERT(uct_errors_end() == 0);
    }
    CU_ASSERT(i == ST_CUNIT_COUNT(tclasses));
}

/* UCX is given no device then */
ST_CASE(refused_is_off)
{
    int cassini = is_cassini();

    CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_TRAFFIC_CLASS", "bulk_data", 1) == 0);
    uct_errors_begin();
    CU_ASSERT((uct_pair_count_devices() > 0) == cassini);
    CU_ASSERT(uct_errors_end() == !cassini);
    CU_ASSERT_FATAL(unsetenv("UCX_CXI_TRIG_TRAFFIC_CLASS") == 0);
    CU_ASSERT(uct_pair_count_devices() > 0);
}

ST_CASE(unknown_values)
{
    static const char *const names[] = {"ORDERING", "TRAFFIC_CLASS"};
    uct_md_config_t *config;
    unsigned i;

    CU_ASSERT_FATAL(uct_md_config_read(uct_pair_find_component(), NULL, NULL,
                                       &config) == UCS_OK);
    for (i = 0; i < ST_CUNIT_COUNT(names); ++i) {
        uct_errors_begin();
        CU_ASSERT(uct_pair_set(config, names[i], "sideways") != UCS_OK);
        CU_ASSERT(uct_errors_end() > 0);
    }
    uct_config_release(config);
}


static uct_inbox_t inbox;

/* Messages go through whatever is asked for */
ST_CASE(messages)
{
    uct_pair_t pair;
    unsigned i;

    for (i = 0; uct_cxi_trig_prov_orderings[i] != NULL; ++i) {
        CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_ORDERING",
                               uct_cxi_trig_prov_orderings[i], 1) == 0);
        CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_TRAFFIC_CLASS",
                               is_cassini() ? "low_latency" : "default",
                               1) == 0);
        CU_ASSERT_FATAL(uct_pair_create(&pair, NULL) == 0);
        uct_inbox_open(&inbox, pair.b.iface, AM_ID);
        CU_ASSERT(uct_ep_am_short(pair.a.peer, AM_ID, 0, NULL, 0) == UCS_OK);
        uct_pair_wait(&pair, &inbox.count, 1);
        uct_pair_destroy(&pair);
    }
    CU_ASSERT_FATAL(unsetenv("UCX_CXI_TRIG_ORDERING") == 0);
    CU_ASSERT_FATAL(unsetenv("UCX_CXI_TRIG_TRAFFIC_CLASS") == 0);
}

/* An emulated NIC below cxi that draws at random fires what is ripe in any
 * order: a trigger that is far ahead makes all of them ripe */
static int fires_in_order(void)
{
    const char *seed = getenv("CASSINI_SEED");

    return (seed == NULL) || (strtoull(seed, NULL, 0) == 0);
}

/* All puts go to one word: what is there in the end is the last one */
static void put_round(trig_t *trig, uint64_t round)
{
    uct_trig_deferred_t deferred;
    uct_trig_put_t put;
    uint64_t value;
    unsigned i;

    for (i = 0; i < TRIG_SLOTS; ++i) {
        value           = (round * TRIG_SLOTS) + i + 1;
        deferred        = trig_deferred(trig, trig->trigger, value);
        put             = trig_describe_put(trig, i);
        put.length      = sizeof(value);
        put.remote_addr = (uintptr_t)trig->b_buffer;
        memcpy(trig->a_buffer + (i * TRIG_LENGTH), &value, sizeof(value));
        CU_ASSERT_FATAL(TRIG_POST(
                uct_trig_ep_put(trig->pair.a.peer, &put, &deferred)) == UCS_OK);
    }
    for (i = 0; i < TRIG_SLOTS; ++i) {
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        if (!fires_in_order()) {
            uct_pair_wait(&trig->pair, &trig->done,
                          (round * TRIG_SLOTS) + i + 1);
        }
    }
    uct_pair_wait(&trig->pair, &trig->done, (round + 1) * TRIG_SLOTS);
    trig_barrier(trig);
}

ST_CASE(strict_order_of_puts)
{
    uint64_t value;
    unsigned i;
    trig_t trig;

    CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_ORDERING", "strict", 1) == 0);
    CU_ASSERT_FATAL(trig_create(&trig, NULL) == 0);
    CU_ASSERT_FATAL(unsetenv("UCX_CXI_TRIG_ORDERING") == 0);
    for (i = 0; i < ROUNDS; ++i) {
        put_round(&trig, i);
        memcpy(&value, trig.b_buffer, sizeof(value));
        CU_ASSERT(value == (i + 1) * TRIG_SLOTS);
    }
    trig_destroy(&trig);
}


/* The same by puts that are started at once, to memory of the domain */
ST_CASE(strict_order_of_plain_puts)
{
    static const char *const settings[] = {NULL};
    uct_region_t region;
    uct_pair_t pair;
    uint64_t value;

    CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_ORDERING", "strict", 1) == 0);
    uct_region_open_pair(&region, &pair, settings, sizeof(value));
    CU_ASSERT_FATAL(unsetenv("UCX_CXI_TRIG_ORDERING") == 0);
    for (value = 1; value <= PLAIN_PUTS; ++value) {
        while (uct_ep_put_short(pair.a.peer, &value, sizeof(value),
                                uct_region_at(&region, 0),
                                region.rkey.rkey) == UCS_ERR_NO_RESOURCE) {
            uct_pair_progress(&pair);
        }
    }
    CU_ASSERT(uct_pair_flush(&pair, pair.a.peer) == UCS_OK);
    memcpy(&value, region.data, sizeof(value));
    CU_ASSERT(value == PLAIN_PUTS);
    uct_region_close_pair(&region, &pair);
}


/* The manual's text; the caller frees it */
static char *read_manual(void)
{
    const char *srcdir = getenv("srcdir");
    char path[512];
    char *text;
    size_t length;
    FILE *file;

    snprintf(path, sizeof(path), "%s/../../docs/settings.md",
             (srcdir == NULL) ? "." : srcdir);
    file = fopen(path, "r");
    CU_ASSERT_FATAL(file != NULL);
    text = calloc(1, 65536);
    CU_ASSERT_FATAL(text != NULL);
    length = fread(text, 1, 65535, file);
    CU_ASSERT(length > 1000);
    fclose(file);
    return text;
}

/* Each row of a table that is ours has help and stands in the manual */
static unsigned check_table(const ucs_config_field_t *field, const char *manual)
{
    unsigned count = 0;
    char name[128];

    for (; field->name != NULL; ++field) {
        if (field->name[0] == '\0') {
            continue; /* A table of UCX */
        }
        snprintf(name, sizeof(name), "| `UCX_CXI_TRIG_%s` |", field->name);
        if (strstr(manual, name) == NULL) {
            printf("%s is missing in docs/settings.md\n", name);
            CU_FAIL("a setting is missing in the manual");
        }
        CU_ASSERT((field->doc != NULL) && (strlen(field->doc) > 10));
        CU_ASSERT(field->dfl_value != NULL);
        ++count;
    }
    return count;
}

ST_CASE(manual)
{
    uct_component_h component = uct_pair_find_component();
    char *manual              = read_manual();
    uct_tl_t *tl;

    CU_ASSERT(check_table(component->md_config.table, manual) >= 3);
    ucs_list_for_each(tl, &component->tl_list, list) {
        CU_ASSERT(check_table(tl->config.table, manual) >= 4);
    }
    free(manual);
}

ST_SUITE("uct_settings")
