/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_stats.c - our own counts: told at the end, and in UCX's tree of
 * objects.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_stats.h"
#include "cxi_trig_md.h"

#include <ucs/debug/log.h>
#include <ucs/vfs/base/vfs_cb.h>
#include <ucs/vfs/base/vfs_obj.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>


/** A count: its name, and where it is. */
typedef struct uct_cxi_trig_stats_field {
    const char *name;
    size_t     offset;
} uct_cxi_trig_stats_field_t;


#define UCT_CXI_TRIG_STATS_OP(_kind, _name) \
    {_name, offsetof(uct_trig_iface_stats_t, \
                     ops[UCT_TRIG_STATS_##_kind].count)}, \
    {_name "_bytes", offsetof(uct_trig_iface_stats_t, \
                              ops[UCT_TRIG_STATS_##_kind].bytes)}

#define UCT_CXI_TRIG_STATS_IFACE(_field) \
    {#_field, offsetof(uct_trig_iface_stats_t, _field)}

#define UCT_CXI_TRIG_STATS_MD(_field) \
    {#_field, offsetof(uct_trig_md_stats_t, _field)}

static const uct_cxi_trig_stats_field_t uct_cxi_trig_stats_iface_fields[] = {
    UCT_CXI_TRIG_STATS_OP(AM, "am"),
    UCT_CXI_TRIG_STATS_OP(AM_ZCOPY, "am_zcopy"),
    UCT_CXI_TRIG_STATS_OP(PUT, "put"),
    UCT_CXI_TRIG_STATS_OP(PUT_ZCOPY, "put_zcopy"),
    UCT_CXI_TRIG_STATS_OP(GET, "get"),
    UCT_CXI_TRIG_STATS_OP(GET_ZCOPY, "get_zcopy"),
    UCT_CXI_TRIG_STATS_OP(ATOMIC, "atomic"),
    {"probe", offsetof(uct_trig_iface_stats_t,
                       ops[UCT_TRIG_STATS_PROBE].count)},
    UCT_CXI_TRIG_STATS_IFACE(completed),
    UCT_CXI_TRIG_STATS_IFACE(failed),
    UCT_CXI_TRIG_STATS_IFACE(no_descriptor),
    UCT_CXI_TRIG_STATS_IFACE(no_room),
    UCT_CXI_TRIG_STATS_IFACE(resends),
    UCT_CXI_TRIG_STATS_IFACE(held),
    UCT_CXI_TRIG_STATS_IFACE(pending),
    {"received", offsetof(uct_trig_iface_stats_t, received.count)},
    {"received_bytes", offsetof(uct_trig_iface_stats_t, received.bytes)},
    UCT_CXI_TRIG_STATS_IFACE(deferred),
    UCT_CXI_TRIG_STATS_IFACE(deferred_done),
    UCT_CXI_TRIG_STATS_IFACE(deferred_failed),
    UCT_CXI_TRIG_STATS_IFACE(no_entry),
    {NULL}
};

static const uct_cxi_trig_stats_field_t uct_cxi_trig_stats_md_fields[] = {
    {"registered", offsetof(uct_trig_md_stats_t, registered.count)},
    {"registered_bytes", offsetof(uct_trig_md_stats_t, registered.bytes)},
    UCT_CXI_TRIG_STATS_MD(deregistered),
    UCT_CXI_TRIG_STATS_MD(refused),
    UCT_CXI_TRIG_STATS_MD(cache_hits),
    UCT_CXI_TRIG_STATS_MD(cache_misses),
    {NULL}
};


static void uct_cxi_trig_stats_print(const uct_cxi_trig_stats_field_t *field,
                                     const void *stats, FILE *stream)
{
    for (; field->name != NULL; ++field) {
        fprintf(stream, "%s %" PRIu64 "\n", field->name,
                *(const uint64_t*)UCS_PTR_BYTE_OFFSET(stats, field->offset));
    }
}

void uct_trig_iface_stats_print(const uct_trig_iface_stats_t *stats,
                                FILE *stream)
{
    uct_cxi_trig_stats_print(uct_cxi_trig_stats_iface_fields, stats, stream);
}

void uct_trig_md_stats_print(const uct_trig_md_stats_t *stats, FILE *stream)
{
    uct_cxi_trig_stats_print(uct_cxi_trig_stats_md_fields, stats, stream);
}

/* In one call, so that blocks of several processes stay whole */
static void uct_cxi_trig_stats_write(const char *text, size_t length)
{
    ssize_t ret;

    do {
        ret = write(STDERR_FILENO, text, length);
    } while ((ret < 0) && (errno == EINTR));
    if (ret != (ssize_t)length) {
        ucs_warn("the counts of UCX_CXI_TRIG_STATS could not be written: %m");
    }
}

static void uct_cxi_trig_stats_tell(const uct_cxi_trig_md_t *md,
                                    const char *what, const void *object,
                                    const uct_cxi_trig_stats_field_t *fields,
                                    const void *stats)
{
    char host[HOST_NAME_MAX + 1] = "?";
    char *text                   = NULL;
    size_t length                = 0;
    FILE *stream;

    if (!md->tells_stats) {
        return;
    }

    stream = open_memstream(&text, &length);
    if (stream == NULL) {
        ucs_warn("no memory for the counts of UCX_CXI_TRIG_STATS");
        return;
    }
    (void)gethostname(host, sizeof(host) - 1);
    fprintf(stream, "--- cxi_trig counts: %s:%d (%s), %s %p of device %s\n",
            host, (int)getpid(), program_invocation_short_name, what, object,
            md->info->domain_attr->name);
    uct_cxi_trig_stats_print(fields, stats, stream);
    fprintf(stream, "---\n");
    if (fclose(stream) == 0) {
        uct_cxi_trig_stats_write(text, length);
    }
    free(text);
}

void uct_cxi_trig_stats_tell_iface(const uct_cxi_trig_md_t *md,
                                   const void *iface,
                                   const uct_trig_iface_stats_t *stats)
{
    uct_cxi_trig_stats_tell(md, "interface", iface,
                            uct_cxi_trig_stats_iface_fields, stats);
}

void uct_cxi_trig_stats_tell_md(const uct_cxi_trig_md_t *md)
{
    uct_cxi_trig_stats_tell(md, "memory domain", md,
                            uct_cxi_trig_stats_md_fields, &md->stats);
}

static void uct_cxi_trig_stats_vfs(void *object,
                                   const uct_cxi_trig_stats_field_t *field,
                                   void *stats)
{
    for (; field->name != NULL; ++field) {
        (void)ucs_vfs_obj_add_ro_file(object, ucs_vfs_show_primitive,
                                      UCS_PTR_BYTE_OFFSET(stats, field->offset),
                                      UCS_VFS_TYPE_ULONG, "counts/%s",
                                      field->name);
    }
}

void uct_cxi_trig_stats_vfs_iface(void *iface, uct_trig_iface_stats_t *stats)
{
    uct_cxi_trig_stats_vfs(iface, uct_cxi_trig_stats_iface_fields, stats);
}

void uct_cxi_trig_stats_vfs_md(uct_cxi_trig_md_t *md)
{
    uct_cxi_trig_stats_vfs(md, uct_cxi_trig_stats_md_fields, &md->stats);
}
