/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_host.h - streams that a thread of this process executes. */
#ifndef GSTREAM_HOST_H_
#define GSTREAM_HOST_H_

#include "gstream.h"


/** The back end of UCS_GSTREAM_TYPE_HOST. */
extern const gstream_ops_t gstream_host_ops;

#endif
