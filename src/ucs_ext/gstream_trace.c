/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_trace.c - what streams record of their commands. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_trace.h"


const ucs_trace_kind_t gstream_trace_kernel = {
    .category = "kernel",
    .type     = UCS_TRACE_SPAN,
    .values   = {{"function", UCS_TRACE_VALUE_CODE}}
};

/* Named after how it ended */
const ucs_trace_kind_t gstream_trace_wait = {
    .category = "word",
    .type     = UCS_TRACE_SPAN,
    .values   = {{"ended", UCS_TRACE_VALUE_TEXT},
                 {"address", UCS_TRACE_VALUE_HEX},
                 {"value", UCS_TRACE_VALUE_NUMBER}}
};

const ucs_trace_kind_t gstream_trace_copy = {
    .name     = "copy",
    .category = "copy",
    .type     = UCS_TRACE_SPAN,
    .values   = {{"bytes", UCS_TRACE_VALUE_NUMBER}}
};
