/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_card.c - cards that are there and cannot be had: what is said, and
 * what is used. See fab_card.h.
 */
#include "fab_card.h"
#include "st_cunit.h"
#include "ucp_side.h"
#include "uct_domain.h"

#include <cxi_trig_cassini.h>
#include <cxi_trig_md.h>
#include <cxi_trig_prov.h>
#include <uct_trig.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


/* The provider "cxi" for a traffic class; the list is freed by the caller */
static ucs_status_t find(unsigned traffic_class, struct fi_info **info_p)
{
    static unsigned number; /* The last question is not asked again */
    uct_cxi_trig_prov_want_t want = {
        .name          = (char*)"cxi",
        .traffic_class = traffic_class,
        .ordering      = (++number % 2) ? UCT_CXI_TRIG_ORDERING_RELAXED :
                                          UCT_CXI_TRIG_ORDERING_DEFAULT
    };
    const uct_cxi_trig_prov_t *prov;

    return uct_cxi_trig_prov_find(&want, &prov, info_p);
}

/* There is none, one error says so, and has all of some texts */
static void check_off(unsigned traffic_class, const char *const *texts)
{
    char reason[UCT_TRIG_REASON_MAX];
    struct fi_info *info;

    uct_errors_begin();
    CU_ASSERT(find(traffic_class, &info) != UCS_OK);
    CU_ASSERT(uct_errors_end() == 1);
    uct_trig_off_reason(reason, sizeof(reason));
    for (; *texts != NULL; ++texts) {
        if (strstr(reason, *texts) == NULL) {
            printf("\"%s\" is not in \"%s\"\n", *texts, reason);
            CU_FAIL("a text is missing");
        }
    }
}

#define CHECK_OFF(_class, ...) \
    check_off(_class, (const char *const[]) {__VA_ARGS__, NULL})

/* Describing a card is not having it: one named is opened, as one of "auto" */
ST_CASE(closed)
{
    fab_card_set(FAB_CARD_CLOSED);
    fab_card_refuse(FI_EINVAL, NULL);
    CHECK_OFF(0, "opens none", "domain cxiemu0", fi_strerror(FI_EINVAL),
              "service 1", "VNI 10", "cxi_service", "FI_LOG_LEVEL",
              "transport cxi_trig is off");
}

ST_CASE(no_service)
{
    fab_card_set(FAB_CARD_CLOSED);
    fab_card_refuse(FI_ENOSYS, NULL);
    fab_card_set_service(0);
    CHECK_OFF(0, "opens none", "no service", "SLINGSHOT_SVC_IDS",
              "cxi_service");
    fab_card_set_service(1);
}

/* A domain that opens, and has nothing to give: a VNI that its service lacks,
 * or no counter left */
ST_CASE(no_counter)
{
    fab_card_set(FAB_CARD_OPEN);
    fab_card_refuse_counters(FI_ENOSPC);
    CHECK_OFF(0, "opens none", fi_strerror(FI_ENOSPC), "be none for VNI 10",
              "SLINGSHOT_");
    fab_card_refuse_counters(FI_EDOMAIN);
    CHECK_OFF(0, "opens none", fi_strerror(FI_EDOMAIN), "service 1",
              "no counter left", "--network=res_cts=N");
    fab_card_refuse_counters(0);
}

ST_CASE(gone)
{
    fab_card_set(FAB_CARD_CLOSED);
    fab_card_refuse(FI_ENODEV, NULL);
    CHECK_OFF(0, "opens none", "it is gone");
}

/* A folder with a file of a name */
static void make_card(char *folder, char *device, size_t max, const char *name)
{
    FILE *file;

    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
    snprintf(device, max, "%s/%s", folder, name);
    file = fopen(device, "w");
    CU_ASSERT_FATAL(file != NULL);
    CU_ASSERT(fclose(file) == 0);
    uct_cxi_trig_cassini_devices = folder;
    uct_cxi_trig_cassini_files   = folder;
}

static void remove_card(const char *folder, const char *device)
{
    CU_ASSERT(unlink(device) == 0);
    CU_ASSERT(rmdir(folder) == 0);
    uct_cxi_trig_cassini_devices = "/nonexistent";
    uct_cxi_trig_cassini_files   = "/nonexistent";
}

/* The driver refuses the service of a card that is there, and the provider says
 * the same as of one that is gone */
ST_CASE(service_refused)
{
    char folder[] = "/tmp/uct_card.XXXXXX";
    char device[64];

    make_card(folder, device, sizeof(device), "cxiemu0");
    fab_card_set(FAB_CARD_CLOSED);
    fab_card_refuse(FI_ENODEV, NULL);
    CHECK_OFF(0, "opens none", "service 1", "VNI 10", "cxi_service",
              "the link be down");
    remove_card(folder, device);
}

/* Those that open are used */
ST_CASE(one_of_two)
{
    struct fi_info *info;

    fab_card_set(FAB_CARD_CLOSED);
    fab_card_refuse(FI_ENODEV, "cxiemu0");
    CU_ASSERT_FATAL(find(0, &info) == UCS_OK);
    CU_ASSERT(strcmp(info->domain_attr->name, "cxiemu1") == 0);
    CU_ASSERT(info->next == NULL);
    fi_freeinfo(info);
}

ST_CASE(old_libfabric)
{
    fab_card_set(FAB_CARD_OPEN);
    fab_card_set_version(FI_VERSION(1, 15));
    CHECK_OFF(0, "libfabric 1.15 is too old", "1.21 or later",
              "LD_LIBRARY_PATH");
    fab_card_set_version(FI_VERSION(1, 21));
}

/* Files that cannot be opened; root may open all, but for what is no file. */
ST_CASE(no_permission)
{
    char folder[] = "/tmp/uct_card.XXXXXX";
    char device[64];

    make_card(folder, device, sizeof(device), "cxi0");
    fab_card_set(FAB_CARD_NONE);
    /* Without the provider, that is what is missing */
    CHECK_OFF(0, "has Cassini cards", "links must be up", "fi_info -p cxi");

    uct_cxi_trig_cassini_files = "/nonexistent";
    CHECK_OFF(0, "has Cassini cards", "/nonexistent/cxi0 is not there",
              "container");

    uct_cxi_trig_cassini_files = folder;
    CU_ASSERT(unlink(device) == 0);
    CU_ASSERT_FATAL(symlink(device, device) == 0);
    CHECK_OFF(0, "has Cassini cards", "this user may not open", device);
    remove_card(folder, device);
}

/* The class is written into what is opened, as no answer has it */
ST_CASE(classes)
{
    static const uint32_t tclasses[] = {
        FI_TC_UNSPEC, FI_TC_BEST_EFFORT, FI_TC_LOW_LATENCY,
        FI_TC_DEDICATED_ACCESS, FI_TC_BULK_DATA, FI_TC_SCAVENGER
    };
    struct fi_info *info, *entry;
    unsigned i;

    fab_card_set(FAB_CARD_OPEN);
    for (i = 0; i < ST_CUNIT_COUNT(tclasses); ++i) {
        CU_ASSERT_FATAL(find(i, &info) == UCS_OK);
        CU_ASSERT(fab_card_domain_class() == tclasses[i]);
        CU_ASSERT(fab_card_tx_class() == tclasses[i]);
        for (entry = info; entry != NULL; entry = entry->next) {
            CU_ASSERT(entry->domain_attr->tclass == tclasses[i]);
            CU_ASSERT(entry->tx_attr->tclass == tclasses[i]);
        }
        fi_freeinfo(info);
    }
    CHECK_OFF(i, "no traffic class network_ctrl",
              "UCX_CXI_TRIG_TRAFFIC_CLASS", "scavenger");
}

/* Versions of cxi before 2.3 keep less in order: strict is what there is */
ST_CASE(orders)
{
    static const uint64_t least =
            FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_RMA_WAW |
            FI_ORDER_ATOMIC_WAW | FI_ORDER_ATOMIC_RAR;
    uint64_t sets[]               = {
        least | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_RAW, /* to 2.0 */
        least | FI_ORDER_RMA_RAR,
        least | FI_ORDER_RMA_RAR | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_RAW
    };
    uct_cxi_trig_prov_want_t want = {
        .name     = (char*)"cxi",
        .ordering = UCT_CXI_TRIG_ORDERING_STRICT
    };
    const uct_cxi_trig_prov_t *prov;
    struct fi_info *info;
    unsigned i;

    fab_card_set(FAB_CARD_OPEN);
    for (i = 0; i < ST_CUNIT_COUNT(sets); ++i) {
        fab_card_set_orders(sets[i]);
        CU_ASSERT_FATAL(uct_cxi_trig_prov_find(&want, &prov, &info) == UCS_OK);
        CU_ASSERT(info->tx_attr->msg_order == sets[i]);
        fi_freeinfo(info);
        /* Another question, so that the next one is asked */
        CU_ASSERT_FATAL(find(0, &info) == UCS_OK);
        fi_freeinfo(info);
    }

    /* Without order of puts there is none */
    fab_card_set_orders(FI_ORDER_SAS);
    uct_errors_begin();
    CU_ASSERT(uct_cxi_trig_prov_find(&want, &prov, &info) != UCS_OK);
    CU_ASSERT(uct_errors_end() == 1);
    CU_ASSERT(strstr(uct_errors_last(), "ORDERING=strict") != NULL);
    fab_card_set_orders(0);
}

/* What a provider says of its service's entries */
static int depth;

static int tell_depth(struct fid *fid, size_t *depth_p)
{
    *depth_p = depth;
    return 0;
}

static int open_ops(struct fid *fid, const char *name, uint64_t flags,
                    void **ops, void *context)
{
    static struct {
        void (*others[4])(void);
        int  (*get_dwq_depth)(struct fid *fid, size_t *depth_p);
    } table = {.get_dwq_depth = tell_depth};

    *ops = &table;
    return 0;
}

/* It is an int: fewer than the provider keeps free are a negative number */
ST_CASE(entries)
{
    static const int depths[] = {-8, -1, 0, 1, 65536, 1 << 20};
    struct fi_ops ops         = {.size = sizeof(ops), .ops_open = open_ops};
    struct fid_domain domain  = {.fid.ops = &ops};
    unsigned i;

    for (i = 0; i < ST_CUNIT_COUNT(depths); ++i) {
        depth = depths[i];
        CU_ASSERT(uct_cxi_trig_cassini_depth(&domain) ==
                  ((depth < 0) ? 0 : (size_t)depth));
    }
}

/* What the card's service, by the provider, has for its key; no ledger of it
 * is open */
static void service_key(unsigned service, uct_cxi_trig_credit_params_t *params)
{
    uct_domain_t domain;
    struct fi_info *info;

    fab_card_set_service(service);
    CU_ASSERT_FATAL(find(1, &info) == UCS_OK); /* Another question */
    fi_freeinfo(info);
    CU_ASSERT_FATAL(uct_domain_try(&domain, "cxiemu0", "PROVIDER", "cxi") ==
                    UCS_OK);
    uct_cxi_trig_md_credit_params(
            ucs_derived_of(domain.md, uct_cxi_trig_md_t), params);
    uct_domain_close(&domain);
    fab_card_set_service(1);
    CU_ASSERT(params->is_shared);
}

/* Processes of a service share its entries, wherever the provider has the
 * service from; it takes the launcher's only if that has a VNI, too */
ST_CASE(services)
{
    uct_cxi_trig_credit_params_t params[3];

    fab_card_set(FAB_CARD_OPEN);
    service_key(1, &params[0]);
    setenv("SLINGSHOT_SVC_IDS", "5", 1);
    service_key(1, &params[1]);
    unsetenv("SLINGSHOT_SVC_IDS");
    service_key(2, &params[2]);
    CU_ASSERT(strcmp(params[0].key, params[1].key) == 0);
    CU_ASSERT(strcmp(params[0].key, params[2].key) != 0);
}

/* A process that cannot see what others use takes its part, and says which file
 * it is that it cannot have */
ST_CASE(no_ledger)
{
    uct_cxi_trig_credit_pool_t *pool;
    uct_cxi_trig_credit_params_t params;
    uct_cxi_trig_credit_t credit;
    ucs_ledger_t ledger;
    unsigned i;
    char path[128];

    fab_card_set(FAB_CARD_OPEN);
    service_key(1, &params);
    params.num_procs = 2;
    CU_ASSERT_FATAL(ucs_ledger_open(&ledger, "ucx-st", params.key) == 0);
    ucs_ledger_close(&ledger);
    snprintf(path, sizeof(path), "/dev/shm%s", ledger.name);
    CU_ASSERT_FATAL(symlink(path, path) == 0);

    CU_ASSERT_FATAL(uct_cxi_trig_credit_pool_get(&params, &pool) == UCS_OK);
    uct_cxi_trig_credit_init(&credit, pool, params.max);
    uct_errors_begin_text(UCS_LOG_LEVEL_WARN, "UCX_CXI_TRIG_NODE_PROCESSES");
    for (i = 0; i < params.max / 2; ++i) {
        CU_ASSERT(uct_cxi_trig_credit_take(&credit) == UCS_OK);
    }
    CU_ASSERT(uct_cxi_trig_credit_take(&credit) == UCS_ERR_NO_RESOURCE);
    CU_ASSERT(uct_errors_end() == 1);
    CU_ASSERT(strstr(uct_errors_last(), path) != NULL);
    CU_ASSERT(strstr(uct_errors_last(), strerror(ELOOP)) != NULL);
    uct_cxi_trig_credit_cleanup(&credit);
    CU_ASSERT(unlink(path) == 0);
}

/* With nothing else it is an error; else UCX goes on */
ST_CASE(ucx_goes_on)
{
    ucp_side_t side;
    ucp_ep_h ep;

    CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_PROVIDER", "cxi", 1) == 0);
    fab_card_set(FAB_CARD_CLOSED);
    fab_card_refuse(FI_EINVAL, NULL);
    uct_errors_begin();
    CU_ASSERT(ucp_side_open(&side, "cxi_trig", 0, 0) == UCS_ERR_NO_DEVICE);
    CU_ASSERT(uct_errors_end() >= 1);
    uct_errors_begin();
    CU_ASSERT_FATAL(ucp_side_open(&side, "cxi_trig,self", 0, 0) == UCS_OK);
    (void)uct_errors_end();
    ep = ucp_side_connect(&side, &side);
    ucp_side_close_ep(&side, ep);
    ucp_side_close(&side);
    CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_PROVIDER", "cxiemu", 1) == 0);
}

int main(int argc, char **argv)
{
    setenv("FI_CXIEMU_DEVICES", "2", 1);
    unsetenv("SLINGSHOT_VNIS");
    return st_cunit_main("uct_card", argc, argv);
}
