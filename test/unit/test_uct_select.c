/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uct_select.c - devices that UCX is told of, and what it chooses. */
#include "st_cunit.h"
#include "ucp_side.h"
#include "uct_errors.h"
#include "uct_pair.h"

#include <cxi_trig_device.h>

#include <uct/api/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* What UCX says of an endpoint; the caller frees it */
static char *print_ep(ucp_ep_h ep)
{
    char *text = NULL;
    size_t length;
    FILE *stream;

    stream = open_memstream(&text, &length);
    CU_ASSERT_FATAL(stream != NULL);
    ucp_ep_print_info(ep, stream);
    fclose(stream);
    return text;
}

/* Whether the lane of a line is that of messages: "am" is one of its words */
static int is_am_lane(const char *line)
{
    const char *am = strstr(line, " am");

    while ((am != NULL) && (am[3] != ' ') && (am[3] != '\0')) {
        am = strstr(am + 1, " am");
    }
    return am != NULL;
}

/* Whether messages go over a transport: "lane[0]: 3:TRANSPORT/DEVICE... am" */
static int sends_over(ucp_ep_h ep, const char *transport)
{
    char *text = print_ep(ep);
    int found  = 0;
    char *line, *rest, *name;

    for (line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        name = strstr(line, "lane[");
        name = (name == NULL) ? NULL : strstr(name + 8, ":");
        if ((name != NULL) && is_am_lane(line)) {
            found = !strncmp(name + 1, transport, strlen(transport));
            if (!found) {
                printf("not %s, but %s\n", transport, line);
            }
        }
    }
    free(text);
    return found;
}

static void check_choice(const char *transports, uint64_t flags,
                         const char *transport)
{
    ucp_side_t side, peer;
    ucp_ep_h ep;

    CU_ASSERT_FATAL(ucp_side_open(&side, transports, 0, 0) == UCS_OK);
    CU_ASSERT_FATAL(ucp_side_open(&peer, transports, 0, flags) == UCS_OK);
    ep = ucp_side_connect(&side, &peer);
    CU_ASSERT(sends_over(ep, transport));
    ucp_side_close_ep(&side, ep);
    ucp_side_close(&peer);
    ucp_side_close(&side);
}

ST_CASE(own_worker)
{
    ucp_side_t side;
    ucp_ep_h ep;

    CU_ASSERT_FATAL(ucp_side_open(&side, "posix,self,cxi_trig", 0, 0) ==
                    UCS_OK);
    ep = ucp_side_connect(&side, &side);
    CU_ASSERT(sends_over(ep, "self/"));
    ucp_side_close_ep(&side, ep);
    ucp_side_close(&side);
}

ST_CASE_CALL(same_node, check_choice("posix,self,cxi_trig", 0, "posix/"))

/* From 1.18 on UCX asks devices, and leaves those that do not out of what it
 * tells other nodes */
static int reaches_other_nodes(void)
{
#if UCT_API >= UCT_VERSION(1, 18)
    uct_pair_t pair;
    int reaches;

    CU_ASSERT_FATAL(uct_pair_create(&pair, NULL) == 0);
    reaches = !!(pair.a.attr.cap.flags & UCT_IFACE_FLAG_INTER_NODE);
    uct_pair_destroy(&pair);
    return reaches;
#else
    return 1;
#endif
}

static void check_unreachable(const char *transports, uint64_t flags)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
    };
    ucp_side_t side, peer;
    ucp_ep_h ep;

    CU_ASSERT_FATAL(ucp_side_open(&side, transports, 0, 0) == UCS_OK);
    CU_ASSERT_FATAL(ucp_side_open(&peer, transports, 0, flags) == UCS_OK);
    params.address = peer.attr.address;
    uct_errors_begin();
    CU_ASSERT(ucp_ep_create(side.worker, &params, &ep) != UCS_OK);
    CU_ASSERT(uct_errors_end() > 0);
    ucp_side_close(&peer);
    ucp_side_close(&side);
}

/* A peer of another node gives the addresses of its networks alone */
ST_CASE(other_node)
{
    if (reaches_other_nodes()) {
        check_choice("posix,self,cxi_trig", UCP_WORKER_ADDRESS_FLAG_NET_ONLY,
                     "cxi_trig/");
    } else {
        check_unreachable("posix,self,cxi_trig",
                          UCP_WORKER_ADDRESS_FLAG_NET_ONLY);
    }
}

/* A network card is faster than tcp, and sockets is not */
ST_CASE(beside_tcp)
{
    const char *provider = getenv("UCX_CXI_TRIG_PROVIDER");
    int is_sockets       = (provider != NULL) && !strcmp(provider, "sockets");

    check_choice("tcp,self,cxi_trig", 0, is_sockets ? "tcp/" : "cxi_trig/");
}

ST_CASE_CALL(alone, check_choice("cxi_trig,self", 0, "cxi_trig/"))


/* The devices of the domains that UCX is told of, at most 8 */
static unsigned list_devices(char names[8][UCT_MD_NAME_MAX])
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    uct_component_h component = uct_pair_find_component();
    uct_md_resource_desc_t resources[8];
    unsigned i;

    CU_ASSERT_FATAL(component != NULL);
    CU_ASSERT_FATAL(uct_component_query(component, &attr) == UCS_OK);
    CU_ASSERT_FATAL(attr.md_resource_count <= 8);
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = resources;
    CU_ASSERT_FATAL(uct_component_query(component, &attr) == UCS_OK);
    for (i = 0; i < attr.md_resource_count; ++i) {
        strcpy(names[i], resources[i].md_name);
    }
    return attr.md_resource_count;
}

/* Each domain has one device, of its name, which reaches a network */
ST_CASE(devices)
{
    uct_component_h component = uct_pair_find_component();
    char names[8][UCT_MD_NAME_MAX];
    uct_tl_resource_desc_t *devices;
    unsigned i, count, num_devices, mine = 0;
    uct_md_config_t *config;
    uct_md_h md;

    count = list_devices(names);
    CU_ASSERT(count >= 1);
    CU_ASSERT_FATAL(uct_md_config_read(component, NULL, NULL, &config) ==
                    UCS_OK);
    for (i = 0; i < count; ++i) {
        mine += !strcmp(names[i], uct_pair_device());
        CU_ASSERT_FATAL(uct_md_open(component, names[i], config, &md) ==
                        UCS_OK);
        CU_ASSERT_FATAL(uct_md_query_tl_resources(md, &devices, &num_devices) ==
                        UCS_OK);
        CU_ASSERT_FATAL(num_devices == 1);
        CU_ASSERT(strcmp(devices[0].tl_name, "cxi_trig") == 0);
        CU_ASSERT(strcmp(devices[0].dev_name, names[i]) == 0);
        CU_ASSERT(devices[0].dev_type == UCT_DEVICE_TYPE_NET);
        /* Those that are no cards have no place */
        CU_ASSERT((devices[0].sys_device == UCS_SYS_DEVICE_ID_UNKNOWN) ||
                  !strcmp(names[i], "cxi0"));
        uct_release_tl_resource_list(devices);
        uct_md_close(md);
    }
    uct_config_release(config);
    CU_ASSERT(mine == 1);
}

static int prints_device(ucp_context_h context, const char *name)
{
    char *text = NULL;
    size_t length;
    FILE *stream;
    int found;

    stream = open_memstream(&text, &length);
    CU_ASSERT_FATAL(stream != NULL);
    ucp_context_print_info(context, stream);
    fclose(stream);
    found = (strstr(text, name) != NULL);
    free(text);
    return found;
}

/* UCX uses the devices that the setting names; one that is not there is none,
 * and UCX says so itself */
ST_CASE(net_devices)
{
    char *before = st_env_set("UCX_NET_DEVICES", NULL);
    char names[8][UCT_MD_NAME_MAX], resource[160];
    unsigned i, k, count;
    ucp_side_t side;

    count = list_devices(names);
    for (i = 0; i < count; ++i) {
        CU_ASSERT_FATAL(setenv("UCX_NET_DEVICES", names[i], 1) == 0);
        CU_ASSERT_FATAL(ucp_side_open(&side, "cxi_trig,self", 0, 0) == UCS_OK);
        for (k = 0; k < count; ++k) {
            snprintf(resource, sizeof(resource), "cxi_trig/%s", names[k]);
            CU_ASSERT(prints_device(side.context, resource) == (i == k));
        }
        ucp_side_close(&side);
    }

    CU_ASSERT_FATAL(setenv("UCX_NET_DEVICES", "nosuch0", 1) == 0);
    uct_errors_begin_text(UCS_LOG_LEVEL_WARN, "'nosuch0' is not available");
    CU_ASSERT_FATAL(ucp_side_open(&side, "cxi_trig,self", 0, 0) == UCS_OK);
    CU_ASSERT(uct_errors_end() == 1);
    CU_ASSERT(!prints_device(side.context, "cxi_trig/"));
    ucp_side_close(&side);
    st_env_restore("UCX_NET_DEVICES", before);
}

/* Estimates: of one that knows them, and in the order that choices rest on */
UCT_PAIR_CASE(estimates)
{
    /* Slower than what UCX says of shared memory */
    CU_ASSERT(pair->a.attr.latency.c > 100e-9);
    CU_ASSERT(pair->a.attr.latency.c < 1e-3);
    CU_ASSERT(pair->a.attr.overhead > 0);
    CU_ASSERT(pair->a.attr.overhead < pair->a.attr.latency.c);
    CU_ASSERT(pair->a.attr.bandwidth.shared > 1e8);
    CU_ASSERT(pair->a.attr.bandwidth.shared < 1e11);
    CU_ASSERT(pair->a.attr.bandwidth.dedicated == 0);
}

/* What a card tells goes first, and is asked for only where it means itself */
ST_CASE(link)
{
    struct fi_link_attr link      = {.speed = 400000000000ull};
    struct fi_bus_attr bus        = {.bus_type = FI_BUS_PCI};
    struct fid_nic nic            = {.bus_attr = &bus, .link_attr = &link};
    struct fi_domain_attr domain  = {.name = (char*)"card"};
    struct fi_info info           = {.domain_attr = &domain};
    uct_cxi_trig_prov_t prov      = {.bandwidth = 1e9};
    ucs_sys_device_t sys_dev;
    ucs_sys_bus_id_t bus_id;

    CU_ASSERT(uct_cxi_trig_device_bandwidth(&prov, &info) == 1e9);
    CU_ASSERT(uct_cxi_trig_device_sys(&info) == UCS_SYS_DEVICE_ID_UNKNOWN);
    info.nic = &nic;
    CU_ASSERT(uct_cxi_trig_device_bandwidth(&prov, &info) == 50e9);
    prov.local = 1;
    CU_ASSERT(uct_cxi_trig_device_bandwidth(&prov, &info) == 1e9);
    prov.local = 0;
    link.speed = 0;
    CU_ASSERT(uct_cxi_trig_device_bandwidth(&prov, &info) == 1e9);

    bus.attr.pci.bus_id      = 0xc1;
    bus.attr.pci.device_id   = 0x1e;
    bus.attr.pci.function_id = 3;
    sys_dev                  = uct_cxi_trig_device_sys(&info);
    CU_ASSERT_FATAL(sys_dev != UCS_SYS_DEVICE_ID_UNKNOWN);
    CU_ASSERT(ucs_topo_get_device_bus_id(sys_dev, &bus_id) == UCS_OK);
    CU_ASSERT((bus_id.domain == 0) && (bus_id.bus == 0xc1));
    CU_ASSERT((bus_id.slot == 0x1e) && (bus_id.function == 3));
    bus.bus_type = FI_BUS_UNKNOWN;
    CU_ASSERT(uct_cxi_trig_device_sys(&info) == UCS_SYS_DEVICE_ID_UNKNOWN);
}

int main(int argc, char **argv)
{
    /* Several, where they are emulated */
    setenv("FI_CXIEMU_DEVICES", "3", 0);
    return st_cunit_main("uct_select", argc, argv);
}
