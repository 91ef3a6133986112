/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_open.c - what is opened on a device: how large, for what, and what
 * is said where the device has too little.
 */
#include "fab_intercept.h"
#include "st_cunit.h"
#include "uct_errors.h"
#include "uct_pair.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>


static int is_cassini(void)
{
    if (!strncmp(uct_pair_device(), "cxi", 3)) {
        return 1;
    }
    st_cunit_skip("only Cassini has such limits");
    return 0;
}

static void check_refused_call(fab_call_t call, int code, const char *what,
                               const char *why)
{
    uct_pair_t pair;

    fab_intercept_fail_all(call, code);
    uct_errors_begin();
    CU_ASSERT(uct_pair_create(&pair, NULL) != 0);
    CU_ASSERT(uct_errors_end() > 0);
    CU_ASSERT(strstr(uct_errors_last(), what) != NULL);
    CU_ASSERT(strstr(uct_errors_last(), "service ") != NULL);
    CU_ASSERT(strstr(uct_errors_last(), why) != NULL);
    CU_ASSERT(strstr(uct_errors_last(), "--network") != NULL);
    fab_intercept_fail_all(FAB_CALL_LAST, 0);
}

/* A service that has too little for an endpoint, or another VNI */
ST_CASE(scarce)
{
    if (!is_cassini()) {
        return;
    }
    check_refused_call(FAB_CALL_CNTR, FI_EDOMAIN, "cannot open an endpoint",
                       "has no counter left");
    check_refused_call(FAB_CALL_ENABLE, FI_ENOSPC, "cannot open an endpoint",
                       "VNI ");
    check_refused_call(FAB_CALL_DOMAIN, FI_EINVAL, "cannot open domain",
                       "VNI ");
}

/* Longer queues than the card's are those of the card */
ST_CASE(long_queues)
{
    static const char *const settings[] = {
        "TX_QUEUE_LEN", "65535", "RX_QUEUE_LEN", "65535", NULL
    };
    static uct_inbox_t inbox;
    uct_pair_t pair;

    /* Two such interfaces need more list entries than a card has */
    CU_ASSERT_FATAL(setenv("CASSINI_LES", "32767", 1) == 0);
    CU_ASSERT_FATAL(uct_pair_create(&pair, settings) == 0);
    uct_inbox_open(&inbox, pair.b.iface, 3);
    CU_ASSERT(uct_ep_am_short(pair.a.peer, 3, 0, NULL, 0) == UCS_OK);
    uct_pair_wait(&pair, &inbox.count, 1);
    uct_pair_destroy(&pair);
    CU_ASSERT_FATAL(unsetenv("CASSINI_LES") == 0);
}

/* No message is one that its receiver fetches, by the provider's defaults */
ST_CASE_IF(no_rendezvous, strcmp(uct_pair_device(), "cxi0") == 0,
           "only cxi fetches messages")
{
    static const char *const settings[] = {"SEG_SIZE", "16384", NULL};
    size_t max                          = FI_VERSION_LT(fi_version(),
                                                        FI_VERSION(2, 2)) ?
                                          (2048 + 2049) : (16384 + 2049);
    uct_pair_t pair;

    CU_ASSERT_FATAL(uct_pair_create(&pair, settings) == 0);
    CU_ASSERT(pair.a.attr.cap.am.max_bcopy + 8 <= max);
    CU_ASSERT(pair.a.attr.cap.am.max_bcopy > 4000);
    uct_pair_destroy(&pair);
}

/* All queues of the process are read, also that of the endpoint which only
 * lends its address to memory: on Cassini an overflow of its events aborts */
ST_CASE(all_queues_are_read)
{
    uct_pair_t pair;
    unsigned i;

    CU_ASSERT_FATAL(uct_pair_create(&pair, NULL) == 0);
    CU_ASSERT(fab_intercept_unread_cqs() > 0);
    for (i = 0; i < 100; ++i) {
        uct_pair_progress(&pair);
    }
    CU_ASSERT(fab_intercept_unread_cqs() == 0);
    uct_pair_destroy(&pair);
}

/* That endpoint takes no messages: their buffers would be 36 MiB of pinned
 * memory */
ST_CASE(passive_endpoint)
{
    uct_pair_t pair;

    if (!is_cassini()) {
        return;
    }
    CU_ASSERT_FATAL(uct_pair_create(&pair, NULL) == 0);
    CU_ASSERT(fab_intercept_endpoints(FI_MSG) == 2);
    CU_ASSERT(fab_intercept_endpoints(FI_RMA) == 4);
    uct_pair_destroy(&pair);
}

/* What a card tells of itself */
ST_CASE(nic)
{
    int is_cxi = !strncmp(uct_pair_device(), "cxi", 3);
    uct_trig_nic_attr_t attr;
    uct_pair_t pair;

    CU_ASSERT_FATAL(uct_pair_create(&pair, NULL) == 0);
    CU_ASSERT_FATAL(uct_trig_iface_query_nic(pair.a.iface, &attr) == UCS_OK);
    CU_ASSERT(is_cxi == (attr.service != UCT_TRIG_NOT_TOLD));
    CU_ASSERT(is_cxi == (attr.vni != UCT_TRIG_NOT_TOLD));
    CU_ASSERT(is_cxi == (attr.service_entries != UCT_TRIG_NOT_TOLD));
    /* Only where libfabric keeps registrations */
    CU_ASSERT((attr.monitor[0] != '\0') == !strcmp(uct_pair_device(), "cxi0"));
    uct_pair_destroy(&pair);
}

/* A device that goes in the midst: its endpoints fail, which is said once */
ST_CASE(device_gone)
{
    uct_pair_t pair;
    unsigned i;

    CU_ASSERT_FATAL(uct_pair_create(&pair, NULL) == 0);
    CU_ASSERT(uct_ep_am_short(pair.a.peer, 3, 0, NULL, 0) == UCS_OK);
    fab_intercept_break(FI_EIO);
    uct_errors_begin_text(UCS_LOG_LEVEL_ERROR, "cannot be used any more");
    for (i = 0; i < 100; ++i) {
        uct_pair_progress(&pair);
    }
    CU_ASSERT(uct_errors_end() == 2); /* Each interface */
    CU_ASSERT((pair.a.errors == 1) && (pair.b.errors == 0));
    CU_ASSERT(pair.a.error == UCS_ERR_ENDPOINT_TIMEOUT);
    CU_ASSERT(uct_ep_am_short(pair.a.peer, 3, 0, NULL, 0) == pair.a.error);
    /* What is started later fails, too */
    CU_ASSERT(uct_ep_am_short(pair.a.self, 3, 0, NULL, 0) == UCS_OK);
    uct_pair_progress(&pair);
    CU_ASSERT(pair.a.errors == 2);
    uct_pair_destroy(&pair);
    fab_intercept_break(0);
}

ST_SUITE("uct_open")
