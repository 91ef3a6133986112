/* SPDX-License-Identifier: BSD-3-Clause */
/* info_devices.c - devices of the transport cxi_trig for ucx_st_info. */
#include "st_info.h"

#include <uct/api/uct.h>

#include <uct_trig.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INFO_TL "cxi_trig"

/* Counters of a process that are none of its operations': of the interfaces of
 * MPI or of the program's own UCX, of the library's UCX, and of lane trig; and
 * the one that lane trig asks streams about */
#define INFO_OWN_CNTRS 4

/* Neighbours of a halo in three dimensions, all around */
#define INFO_HALO 26


/* What interfaces are opened on, and how many there were. */
typedef struct info_context {
    ucs_async_context_t *async;
    uct_worker_h        worker;
    unsigned            found;
} info_context_t;


/* A line of a device. The text goes on behind it. */
static void info_label(const char *label)
{
    printf("# %21s: ", label);
}

/* Another line of a text */
static void info_more(const char *text)
{
    printf("# %21s  %s\n", "", text);
}

/* How many requests of a kind a process can have matched at once by its
 * counters, and how many of them in use by its entries, if each takes so many
 * (docs/protocols.md) */
static void info_print_room(const char *what, unsigned cntrs, unsigned entries,
                            const uct_trig_iface_attr_t *attr)
{
    unsigned room    = (attr->share_cntrs > INFO_OWN_CNTRS) ?
                       attr->share_cntrs - INFO_OWN_CNTRS : 0;
    unsigned matched = room / cntrs;
    unsigned used    = attr->max_entries / entries;

    info_label(what);
    printf("%u matched, %u of them in use at a time\n", matched,
           (used < matched) ? used : matched);
}

static void info_print_device(const uct_trig_iface_attr_t *attr)
{
    int is_emulated = !strcmp(attr->provider, "cxiemu");

    printf("#   Device: %s\n", attr->device);
    info_label("provider");
    printf("%s%s\n", attr->provider, is_emulated ? " (emulated)" : "");
    info_label("deferred entries");
    printf("%u, %u of them free\n", attr->max_entries, attr->free_entries);
    if (attr->nic_entries > attr->share_entries) {
        info_label("the job's entries");
        printf("%u, this process's share %u\n", attr->nic_entries,
               attr->share_entries);
    }
    info_label("counters");
    printf("%u, each up to %" PRIu64 "\n", attr->max_cntrs, attr->max_count);
    if (attr->max_cntrs > attr->share_cntrs) {
        info_label("a process's counters");
        printf("%u\n", attr->share_cntrs);
    }
    info_label("deferred write");
    printf("<= %zu bytes%s\n", attr->max_put,
           (attr->flags & UCT_TRIG_IFACE_FLAG_LOCAL_MEM) ?
                   ", from registered memory" : "");
}

static void info_print_rooms(const uct_trig_iface_attr_t *attr)
{
    printf("#   A process has room on lane trig for either of:\n");
    info_print_room("single requests", 2, 2, attr);
    info_print_room("halos, 26 neighbours", 3, 2 * INFO_HALO + 1, attr);
    info_print_room("those with MPI_Rsend", 2, INFO_HALO + 1, attr);
}

/* A number, or that there is none */
static const char *info_number(int64_t number, char text[24])
{
    if (number == UCT_TRIG_NOT_TOLD) {
        return "not told";
    }
    snprintf(text, 24, "%" PRId64, number);
    return text;
}

static const char *info_switch(int state)
{
    return (state == UCT_TRIG_NOT_TOLD) ? "not told" : state ? "on" : "off";
}

static void info_print_memory(const char *monitor, int has_events)
{
    info_label("memory monitor");
    printf("%s%s\n", (monitor[0] == '\0') ? "none" : monitor,
           !strcmp(monitor, "default") ?
                   " of libfabric, which is memhooks unless it was built with "
                   "another" : "");
    info_label("UCX's memory cache");
    printf("%s\n", has_events ? "can work" :
                                "off: UCX does not notice that memory is "
                                "unmapped");
    if (!has_events) {
        info_more("Each message without a copy registers its memory anew:");
        info_more("microseconds, and more for each page.");
    }
    if (!has_events && (monitor[0] != '\0')) {
        info_more("FI_MR_CACHE_MONITOR=disabled, or kdreg2 where its kernel");
        info_more("module is loaded, lets UCX's cache work.");
    }
}

static void info_print_nic(const uct_trig_nic_attr_t *attr)
{
    char service[24], vni[24], entries[24];

    info_label("service");
    printf("%s, VNI: %s\n", info_number(attr->service, service),
           info_number(attr->vni, vni));
    info_label("service entries");
    printf("%s\n", info_number(attr->service_entries, entries));
    info_label("key cache");
    printf("%s, optimized keys: %s%s\n", info_switch(attr->caches_keys),
           info_switch(attr->optimizes_keys),
           (attr->caches_keys == UCT_TRIG_NOT_TOLD) ? "" :
                   "; the transport's own keys use neither");
    info_print_memory(attr->monitor, attr->ucx_notices);
}

static ucs_status_t info_query(uct_iface_h iface)
{
    uct_trig_iface_attr_t attr;
    uct_trig_nic_attr_t nic;
    ucs_status_t status;

    status = uct_trig_iface_query(iface, &attr);
    if (status != UCS_OK) {
        return status;
    }

    info_print_device(&attr);
    status = uct_trig_iface_query_nic(iface, &nic);
    if (status == UCS_OK) {
        info_print_nic(&nic);
    }
    info_print_rooms(&attr);
    return status;
}

static ucs_status_t info_open_iface(info_context_t *context, uct_md_h md,
                                    const uct_tl_resource_desc_t *tl)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = tl->tl_name,
        .mode.device.dev_name = tl->dev_name
    };
    uct_iface_config_t *config;
    ucs_status_t status;
    uct_iface_h iface;

    status = uct_md_iface_config_read(md, tl->tl_name, NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_iface_open(md, context->worker, &params, config, &iface);
    uct_config_release(config);
    if (status != UCS_OK) {
        return status;
    }
    status = info_query(iface);
    uct_iface_close(iface);
    return status;
}

static ucs_status_t info_md(info_context_t *context, uct_md_h md)
{
    uct_tl_resource_desc_t *tls;
    ucs_status_t status;
    unsigned count, i;

    status = uct_md_query_tl_resources(md, &tls, &count);
    if (status != UCS_OK) {
        return status;
    }
    for (i = 0; i < count; ++i) {
        status = info_open_iface(context, md, &tls[i]);
        if (status != UCS_OK) {
            printf("#   Device: %s: cannot be opened: %s\n", tls[i].dev_name,
                   ucs_status_string(status));
        } else {
            ++context->found;
        }
    }
    uct_release_tl_resource_list(tls);
    return UCS_OK;
}

static ucs_status_t info_open_md(info_context_t *context,
                                 uct_component_h component, const char *name)
{
    uct_md_config_t *config;
    ucs_status_t status;
    uct_md_h md;

    status = uct_md_config_read(component, NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_md_open(component, name, config, &md);
    uct_config_release(config);
    if (status != UCS_OK) {
        return status;
    }
    status = info_md(context, md);
    uct_md_close(md);
    return status;
}

static ucs_status_t info_component(info_context_t *context,
                                   uct_component_h component)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    ucs_status_t status;
    unsigned i, count;

    status = uct_component_query(component, &attr);
    if ((status != UCS_OK) || (strcmp(attr.name, INFO_TL) != 0) ||
        (attr.md_resource_count == 0)) {
        return UCS_OK;
    }

    {
        uct_md_resource_desc_t mds[attr.md_resource_count];

        /* It looks for them again, and may find fewer */
        count             = attr.md_resource_count;
        attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT |
                            UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = mds;
        status            = uct_component_query(component, &attr);
        count             = (attr.md_resource_count < count) ?
                            attr.md_resource_count : count;
        for (i = 0; (i < count) && (status == UCS_OK); ++i) {
            status = info_open_md(context, component, mds[i].md_name);
        }
    }
    return status;
}

static ucs_status_t info_components(info_context_t *context)
{
    uct_component_h *components;
    ucs_status_t status;
    unsigned count, i;

    status = uct_query_components(&components, &count);
    if (status != UCS_OK) {
        return status;
    }
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        status = info_component(context, components[i]);
    }
    uct_release_component_list(components);
    return status;
}

static ucs_status_t info_open(info_context_t *context)
{
    ucs_status_t status;

    status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                      &context->async);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_worker_create(context->async, UCS_THREAD_MODE_SINGLE,
                               &context->worker);
    if (status == UCS_OK) {
        status = info_components(context);
        uct_worker_destroy(context->worker);
    }
    ucs_async_context_destroy(context->async);
    return status;
}

unsigned info_devices(void)
{
    info_context_t context = {.found = 0};
    char reason[UCT_TRIG_REASON_MAX];
    ucs_status_t status;

    printf("# Transport: " INFO_TL "\n");
    status = info_open(&context);
    if (status != UCS_OK) {
        printf("#   failed: %s\n", ucs_status_string(status));
    } else if (context.found == 0) {
        uct_trig_off_reason(reason, sizeof(reason));
        printf("#   no device%s%s\n", (reason[0] == '\0') ? "" : ": ", reason);
    }
    return context.found;
}
