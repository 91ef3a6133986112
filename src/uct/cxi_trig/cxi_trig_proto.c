/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_proto.c - sealing and checking of the wire formats.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_proto.h"

#include <ucs/algorithm/crc.h>

#include <string.h>

/* The longest format */
#define UCT_CXI_TRIG_PROTO_MAX 64


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

const char *uct_cxi_trig_proto_check(const void *data, size_t length,
                                     size_t avail)
{
    uct_cxi_trig_proto_head_t head;

    if (avail < length) {
        return "it is truncated";
    }
    memcpy(&head, data, sizeof(head));
    if (head.version != UCT_CXI_TRIG_PROTO_VERSION) {
        return "it is of another version of the transport";
    }
    if (head.length != length) {
        return "its length is wrong";
    }
    if (head.crc != uct_cxi_trig_proto_crc(data, length)) {
        return "it is damaged";
    }
    return NULL;
}
