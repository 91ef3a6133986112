/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_proto.c - sealing and checking of the wire formats.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_proto.h"

#include <ucs/algorithm/crc.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The longest format */
#define UCT_CXI_TRIG_PROTO_MAX 64

/* Of what is wrong */
#define UCT_CXI_TRIG_PROTO_TEXT 128

_Static_assert(offsetof(uct_cxi_trig_proto_head_t, version) == 0,
               "the version is looked at before anything else");


static uint16_t uct_cxi_trig_proto_crc(const void *head, size_t length)
{
    uint8_t copy[UCT_CXI_TRIG_PROTO_MAX];

    memcpy(copy, head, length);
    memset(copy + offsetof(uct_cxi_trig_proto_head_t, crc), 0,
           sizeof(uint16_t));
    return ucs_crc16(copy, length);
}

void uct_cxi_trig_proto_seal(uct_cxi_trig_proto_head_t *head, size_t length)
{
    head->version = UCT_CXI_TRIG_PROTO_VERSION;
    head->length  = length;
    head->crc     = uct_cxi_trig_proto_crc(head, length);
}

const char *uct_cxi_trig_proto_text(const char *format, ...)
{
    static __thread char text[UCT_CXI_TRIG_PROTO_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return text;
}

const char *uct_cxi_trig_proto_check(const void *data, size_t length,
                                     size_t avail)
{
    uct_cxi_trig_proto_head_t head;

    /* Another version may be shorter */
    if ((avail > 0) &&
        (*(const uint8_t*)data != UCT_CXI_TRIG_PROTO_VERSION)) {
        return uct_cxi_trig_proto_text("it is of version %u of the transport's "
                                       "formats, ours is %u",
                                       *(const uint8_t*)data,
                                       UCT_CXI_TRIG_PROTO_VERSION);
    }
    if (avail < length) {
        return uct_cxi_trig_proto_text("it is truncated: %zu of %zu bytes",
                                       avail, length);
    }
    memcpy(&head, data, sizeof(head));
    if (head.length != length) {
        return "its length is wrong";
    }
    if (head.crc != uct_cxi_trig_proto_crc(data, length)) {
        return "it is damaged";
    }
    return NULL;
}
