/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_log.h - UCX's log macros from its installed headers alone.
 */
#ifndef UCP_ST_LOG_H_
#define UCP_ST_LOG_H_

#include <ucs/config/types.h>

/* Part of UCX's private config.h; only filters messages at compile time. */
#ifndef UCS_MAX_LOG_LEVEL
#define UCS_MAX_LOG_LEVEL UCS_LOG_LEVEL_DEBUG
#endif

#include <ucs/debug/log_def.h>

#endif
