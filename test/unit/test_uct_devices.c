/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_devices.c - several devices in one process: which ones UCP takes,
 * and that all of those it takes carry data.
 */
#include "fab_intercept.h"
#include "st_cunit.h"
#include "ucp_side.h"
#include "uct_pair.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH (1 << 20)
#define TAG    0x1234

/* Of the emulated card, which offers several */
static const char *const devices[] = {"cxiemu0", "cxiemu1"};

static uint8_t sent[LENGTH], received[LENGTH];


static int has_devices(void)
{
    if (!strncmp(uct_pair_device(), "cxiemu", 6)) {
        return 1;
    }
    st_cunit_skip("only the emulated card offers several devices");
    return 0;
}

static void set(const char *name, const char *value)
{
    CU_ASSERT_FATAL(((value == NULL) ? unsetenv(name) :
                     setenv(name, value, 1)) == 0);
}

static void open_side(ucp_side_t *side, const char *net_devices)
{
    set("UCX_NET_DEVICES", net_devices);
    CU_ASSERT_FATAL(ucp_side_open(side, "cxi_trig,self", 0, 0) == UCS_OK);
    set("UCX_NET_DEVICES", NULL);
}

static void transfer(ucp_side_t *from, ucp_ep_h ep, ucp_side_t *to,
                     size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    void *recv_request, *send_request;
    size_t i;

    for (i = 0; i < length; ++i) {
        sent[i] = (uint8_t)(sent[i] + (i * 7) + 1);
    }
    recv_request = ucp_tag_recv_nbx(to->worker, received, length, TAG,
                                    UINT64_MAX, &param);
    send_request = ucp_tag_send_nbx(ep, sent, length, TAG, &param);
    CU_ASSERT(ucp_side_wait(from, to, send_request) == UCS_OK);
    CU_ASSERT(ucp_side_wait(to, from, recv_request) == UCS_OK);
    CU_ASSERT(memcmp(sent, received, length) == 0);
}

/* What each device has had to do for a message each way */
static void transfer_counted(const char *devices_a, const char *devices_b,
                             size_t length, uint64_t posted[2])
{
    ucp_side_t a, b;
    ucp_ep_h ab, ba;
    unsigned i;

    open_side(&a, devices_a);
    open_side(&b, devices_b);
    ab = ucp_side_connect(&a, &b);
    ba = ucp_side_connect(&b, &a);
    transfer(&a, ab, &b, LENGTH); /* Connects */
    transfer(&b, ba, &a, LENGTH);
    for (i = 0; i < 2; ++i) {
        posted[i] = fab_intercept_posted(devices[i]);
    }
    transfer(&a, ab, &b, length);
    transfer(&b, ba, &a, length);
    for (i = 0; i < 2; ++i) {
        posted[i] = fab_intercept_posted(devices[i]) - posted[i];
    }
    ucp_side_close_ep(&a, ab);
    ucp_side_close_ep(&b, ba);
    ucp_side_close(&a);
    ucp_side_close(&b);
}

/* A long message goes over both, by rendezvous and, in parts, eagerly */
static void check_rails(const char *threshold, const char *proto)
{
    uint64_t posted[2];

    if (!has_devices()) {
        return;
    }
    set("UCX_MAX_RNDV_RAILS", "2");
    set("UCX_MAX_EAGER_RAILS", "2");
    set("UCX_RNDV_THRESH", threshold);
    set("UCX_PROTO_ENABLE", proto);
    transfer_counted("cxiemu0,cxiemu1", "cxiemu1,cxiemu0", LENGTH, posted);
    CU_ASSERT((posted[0] > 0) && (posted[1] > 0));
    set("UCX_MAX_RNDV_RAILS", NULL);
    set("UCX_MAX_EAGER_RAILS", NULL);
    set("UCX_RNDV_THRESH", NULL);
    set("UCX_PROTO_ENABLE", NULL);
}

ST_CASE_CALL(rails_rndv, check_rails("8k", "n"))
ST_CASE_CALL(rails_rndv_proto, check_rails("8k", "y"))
ST_CASE_CALL(rails_eager, check_rails("inf", "n"))

/* What is not asked for carries nothing */
ST_CASE(one)
{
    uint64_t posted[2];
    unsigned i;

    if (!has_devices()) {
        return;
    }
    for (i = 0; i < 2; ++i) {
        transfer_counted(devices[i], devices[i], LENGTH, posted);
        CU_ASSERT((posted[i] > 0) && (posted[1 - i] == 0));
    }
}

/* Any device reaches any other one of the same network */
ST_CASE(different)
{
    uint64_t posted[2];

    if (!has_devices()) {
        return;
    }
    transfer_counted(devices[0], devices[1], LENGTH, posted);
    CU_ASSERT((posted[0] > 0) && (posted[1] > 0));
    transfer_counted(devices[1], "cxiemu0,cxiemu1", 8, posted);
    CU_ASSERT(posted[0] + posted[1] > 0);
}

/* Where nothing else is allowed, it is an error */
ST_CASE(none)
{
    ucp_side_t side;

    set("UCX_NET_DEVICES", "nosuch0");
    CU_ASSERT(ucp_side_open(&side, "cxi_trig", 0, 0) == UCS_ERR_NO_DEVICE);
    set("UCX_NET_DEVICES", NULL);
}

int main(int argc, char **argv)
{
    setenv("FI_CXIEMU_DEVICES", "2", 1);
    return st_cunit_main("uct_devices", argc, argv);
}
