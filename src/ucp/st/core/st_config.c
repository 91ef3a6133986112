/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_config.c - settings of ucp_st, and what UCX's own settings mean for it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_config.h"

#include <ucs_ext_config.h>

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/preprocessor.h>

#include <string.h>

/* In the order of ucp_st_direct_tier_t */
static const char *ucp_st_config_tiers[] = {"auto", "kernel", "service", NULL};

static ucs_config_field_t ucp_st_config_table[] = {
    {"LANES", "direct,trig,host",
     "Data lanes that a matched pair may use, in order of preference.\n"
     "  direct - streams of one node copy through shared memory (UCX_TLS\n"
     "           must allow one of UCX's transports of shared memory)\n"
     "  trig - operations triggered by the NIC (transport cxi_trig)\n"
     "  host - messages of UCP, sent by the library's thread (any transport)",
     ucs_offsetof(ucp_st_config_t, lanes), UCS_CONFIG_TYPE_STRING_ARRAY},

    {"PING_INTERVAL", "500ms",
     "How often peers are asked whether they are alive. A host that waits\n"
     "asks all; the service thread asks those that streams wait for.",
     ucs_offsetof(ucp_st_config_t, ping_interval), UCS_CONFIG_TYPE_TIME},

    {"EAGER_MAX", "8k",
     "Longest message of a standard send that lane trig sends ahead, before\n"
     "its receive is started. It goes to memory of the library, from where\n"
     "the receive's wait copies it. A receive has room for four of this\n"
     "length, or for at most 32 shorter ones. 0: none; at most 1m. The\n"
     "smaller value of both sides counts.",
     ucs_offsetof(ucp_st_config_t, eager_max), UCS_CONFIG_TYPE_MEMUNITS},

    {"ERR_TIMEOUT", "10s",
     "Longest time from the moment a peer is known to be dead until the\n"
     "streams that wait for it are released. The end of a worker waits so\n"
     "long at most for a peer that is stopped.",
     ucs_offsetof(ucp_st_config_t, err_timeout), UCS_CONFIG_TYPE_TIME},

    {"TRIG_DEVICES", "1",
     "NICs that lane trig uses: the first ones that UCX_NET_DEVICES allows,\n"
     "at most 4. Operations are spread over those that both sides have. With\n"
     "several processes on a node one NIC each is best: a process takes\n"
     "counters and entries, which are scarce, of all NICs that it uses.",
     ucs_offsetof(ucp_st_config_t, trig_devices), UCS_CONFIG_TYPE_UINT},

    {"CHUNK_MIN", "64k",
     "Shortest share of a message that lane trig gives to one of several\n"
     "NICs: a message is split over as many NICs as this allows. The larger\n"
     "value of both sides counts.",
     ucs_offsetof(ucp_st_config_t, chunk_min), UCS_CONFIG_TYPE_MEMUNITS},

    {"CHUNK_MAX", "inf",
     "Longest write of lane trig: a NIC's share is split into writes of this\n"
     "length. At most what the NIC can write at once. The smaller value of\n"
     "both sides counts.",
     ucs_offsetof(ucp_st_config_t, chunk_max), UCS_CONFIG_TYPE_MEMUNITS},

    {"DIRECT_SIZE", "4g",
     "Room for lane direct's slots in a worker's shared memory. Memory is\n"
     "taken as it is used. 64k to 1t.",
     ucs_offsetof(ucp_st_config_t, direct_size), UCS_CONFIG_TYPE_MEMUNITS},

    {"DIRECT_PIECE", "16k",
     "Longest piece of a message that lane direct copies through a slot. A\n"
     "longer message goes through four slots: one side copies in while the\n"
     "other copies out. From 16 pieces on a piece is four times as long. 1k\n"
     "to 1m. The value of the receive's side counts.",
     ucs_offsetof(ucp_st_config_t, direct_piece), UCS_CONFIG_TYPE_MEMUNITS},

    {"DIRECT_NT_MIN", "4m",
     "Shortest message that lane direct copies with non-temporal stores, past\n"
     "the processor's caches; inf: none. x86-64 only. The value of the side\n"
     "that copies counts.",
     ucs_offsetof(ucp_st_config_t, direct_nt_min), UCS_CONFIG_TYPE_MEMUNITS},

    {"DIRECT_MAP_MIN", "64k",
     "Shortest message that lane direct copies straight to its place where\n"
     "one side has the other's buffer mapped: memory of ucp_st_mem_alloc(),\n"
     "or of the same process, or memory of a GPU. The larger value of both\n"
     "sides counts.",
     ucs_offsetof(ucp_st_config_t, direct_map_min), UCS_CONFIG_TYPE_MEMUNITS},

    {"DIRECT_ATTACH_MIN", "inf",
     "Shortest message that lane direct copies straight to its place where\n"
     "no side has the other's buffer mapped, if the kernel lets one side at\n"
     "least read and write the other's memory (cross-memory attach); inf:\n"
     "none. The larger value of both sides counts.",
     ucs_offsetof(ucp_st_config_t, direct_attach_min),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"DIRECT_GPU_TIER", "auto",
     "How lane direct moves messages whose two buffers devices reach.\n"
     "  kernel  - the stream that starts a use second copies, in a kernel: no\n"
     "            thread of the host is on the way\n"
     "  service - threads of the host have copies made\n"
     "  auto    - the first of these that the pair can\n"
     "A pair that cannot what is asked for fails, but one of two buffers of\n"
     "the host that no device reaches. \"service\" on one side is enough.",
     ucs_offsetof(ucp_st_config_t, direct_gpu_tier),
     UCS_CONFIG_TYPE_ENUM(ucp_st_config_tiers)},

    {"HOST_GPU_MIN", "64k",
     "Shortest message from or to memory of a GPU that lane host leaves to\n"
     "UCX as it is, where UCX has a transport that copies such memory\n"
     "(cuda_copy, rocm_copy); inf: none. Others are staged. Each side has its\n"
     "own.",
     ucs_offsetof(ucp_st_config_t, host_gpu_min), UCS_CONFIG_TYPE_MEMUNITS},

    {"STATS", "n",
     "Write the counts of each st worker to the standard error output when it\n"
     "is destroyed, or at the exit of the process.",
     ucs_offsetof(ucp_st_config_t, stats), UCS_CONFIG_TYPE_BOOL},

    {"WARN_TIME", "10s",
     "How long something waits for a peer until a warning says so, once: what\n"
     "it waits for, and what the peer has done so far. 0: never. At any time\n"
     "\"ucx_st_info -p PID\" tells the same of a running process.",
     ucs_offsetof(ucp_st_config_t, warn_time), UCS_CONFIG_TYPE_TIME},

    {NULL}
};
UCS_EXT_CONFIG_REGISTER_TABLE(ucp_st_config_table, "Stream-triggered messages",
                              "ST_", ucp_st_config_t)

ucs_status_t ucp_st_config_read(ucp_st_config_t *config)
{
    return ucs_ext_config_fill(config,
                               UCS_CONFIG_GET_TABLE(ucp_st_config_table), 0);
}

void ucp_st_config_release(ucp_st_config_t *config)
{
    ucs_config_parser_release_opts(config, ucp_st_config_table);
}

int ucp_st_config_list_allows(const char *list, const char *name)
{
    size_t length = strlen(name);
    int found     = 0;
    int negate;
    const char *item;
    size_t item_length;

    if (list == NULL) {
        return 1;
    }

    negate = (list[0] == '^');
    for (item = list + negate; *item != '\0'; item += item_length) {
        item       += (*item == ',');
        item_length = strcspn(item, ",");
        if (((item_length == length) && !strncmp(item, name, length)) ||
            ((item_length == 3) && !strncmp(item, "all", 3))) {
            found = 1;
        }
    }
    return found != negate;
}
