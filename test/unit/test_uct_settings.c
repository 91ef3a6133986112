/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uct_settings.c - the provider that settings choose; their list. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig_util.h"
#include "uct_errors.h"

#include <cxi_trig_prov.h>

#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AM_ID 5

#define ROUNDS 20


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

static int is_emulated(void)
{
    struct fi_info *info;
    int emulated;

    CU_ASSERT_FATAL(find(UCT_CXI_TRIG_ORDERING_DEFAULT, 0, &info) == UCS_OK);
    emulated = !strcmp(info->fabric_attr->prov_name, "cxiemu");
    fi_freeinfo(info);
    return emulated;
}

static void test_orderings(void)
{
    struct fi_info *info;

    CU_ASSERT_FATAL(find(UCT_CXI_TRIG_ORDERING_RELAXED, 0, &info) == UCS_OK);
    CU_ASSERT(info->tx_attr->msg_order == FI_ORDER_SAS);
    CU_ASSERT(info->rx_attr->msg_order == FI_ORDER_SAS);
    fi_freeinfo(info);

    CU_ASSERT_FATAL(find(UCT_CXI_TRIG_ORDERING_DEFAULT, 0, &info) == UCS_OK);
    CU_ASSERT(info->tx_attr->msg_order & FI_ORDER_SAS);
    /* Cassini is asked for no more, as it costs; sockets cannot help it */
    CU_ASSERT(((info->tx_attr->msg_order & FI_ORDER_WAW) == 0) ==
              is_emulated());
    fi_freeinfo(info);

    CU_ASSERT_FATAL(find(UCT_CXI_TRIG_ORDERING_STRICT, 0, &info) == UCS_OK);
    CU_ASSERT(info->tx_attr->msg_order & FI_ORDER_SAS);
    CU_ASSERT(info->tx_attr->msg_order & FI_ORDER_WAW);
    CU_ASSERT((info->tx_attr->msg_order & FI_ORDER_ATOMIC_WAW) != 0);
    fi_freeinfo(info);
}

/* sockets takes the hint, and does nothing with it: that is a refusal */
static void test_traffic_classes(void)
{
    static const uint32_t tclasses[] = {
        FI_TC_UNSPEC, FI_TC_BEST_EFFORT, FI_TC_LOW_LATENCY,
        FI_TC_DEDICATED_ACCESS, FI_TC_BULK_DATA, FI_TC_SCAVENGER,
        FI_TC_NETWORK_CTRL
    };
    int emulated = is_emulated();
    char reason[UCT_TRIG_REASON_MAX];
    struct fi_info *info;
    ucs_status_t status;
    unsigned i;

    for (i = 0; uct_cxi_trig_prov_traffic_classes[i] != NULL; ++i) {
        uct_errors_begin();
        status = find(UCT_CXI_TRIG_ORDERING_DEFAULT, i, &info);
        CU_ASSERT(uct_errors_end() == (status != UCS_OK));
        CU_ASSERT((status == UCS_OK) == (emulated || (i == 0)));
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
static void test_refused_is_off(void)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    uct_component_h component = uct_pair_find_component();
    int emulated              = is_emulated();

    CU_ASSERT_FATAL(component != NULL);
    CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_TRAFFIC_CLASS", "bulk_data", 1) == 0);
    uct_errors_begin();
    CU_ASSERT(uct_component_query(component, &attr) == UCS_OK);
    CU_ASSERT(uct_errors_end() == !emulated);
    CU_ASSERT((attr.md_resource_count > 0) == emulated);
    CU_ASSERT_FATAL(unsetenv("UCX_CXI_TRIG_TRAFFIC_CLASS") == 0);
    CU_ASSERT(uct_component_query(component, &attr) == UCS_OK);
    CU_ASSERT(attr.md_resource_count > 0);
}

static void test_unknown_values(void)
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


static volatile uint64_t num_messages;

static ucs_status_t count_message(void *arg, void *data, size_t length,
                                  unsigned flags)
{
    ++num_messages;
    return UCS_OK;
}

/* Messages go through whatever is asked for */
static void test_messages(void)
{
    uct_pair_t pair;
    unsigned i;

    for (i = 0; uct_cxi_trig_prov_orderings[i] != NULL; ++i) {
        CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_ORDERING",
                               uct_cxi_trig_prov_orderings[i], 1) == 0);
        CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_TRAFFIC_CLASS",
                               is_emulated() ? "low_latency" : "default",
                               1) == 0);
        CU_ASSERT_FATAL(uct_pair_create(&pair, NULL) == 0);
        num_messages = 0;
        CU_ASSERT_FATAL(uct_iface_set_am_handler(pair.b.iface, AM_ID,
                                                 count_message, NULL, 0) ==
                        UCS_OK);
        CU_ASSERT(uct_ep_am_short(pair.a.peer, AM_ID, 0, NULL, 0) == UCS_OK);
        uct_pair_wait(&pair, &num_messages, 1);
        uct_pair_destroy(&pair);
    }
    CU_ASSERT_FATAL(unsetenv("UCX_CXI_TRIG_ORDERING") == 0);
    CU_ASSERT_FATAL(unsetenv("UCX_CXI_TRIG_TRAFFIC_CLASS") == 0);
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
        CU_ASSERT_FATAL(uct_trig_ep_put(trig->pair.a.peer, &put, &deferred) ==
                        UCS_OK);
    }
    for (i = 0; i < TRIG_SLOTS; ++i) {
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    }
    uct_pair_wait(&trig->pair, &trig->done, (round + 1) * TRIG_SLOTS);
    trig_barrier(trig);
}

static void test_strict_order_of_puts(void)
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

static void test_manual(void)
{
    uct_component_h component = uct_pair_find_component();
    char *manual              = read_manual();
    uct_tl_t *tl;

    CU_ASSERT(check_table(component->md_config.table, manual) >= 3);
    ucs_list_for_each(tl, &component->tl_list, list) {
        CU_ASSERT(check_table(tl->config.table, manual) >= 6);
    }
    free(manual);
}

int main(int argc, char **argv)
{
    static const st_cunit_case_t cases[] = {
        {"orderings", test_orderings},
        {"traffic_classes", test_traffic_classes},
        {"refused_is_off", test_refused_is_off},
        {"unknown_values", test_unknown_values},
        {"messages", test_messages},
        {"strict_order_of_puts", test_strict_order_of_puts},
        {"manual", test_manual}
    };

    return st_cunit_main("uct_settings", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
