/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_wait.h - how a thread that runs a host stream waits for words. */
#ifndef GSTREAM_WAIT_H_
#define GSTREAM_WAIT_H_

#include "api/ucs_gstream.h"
#include "gstream_pace.h"

#include <stddef.h>


/** Whether a command is a wait. */
static inline int gstream_wait_is_one(const ucs_gstream_cmd_t *cmd)
{
    return (cmd->type == UCS_GSTREAM_CMD_WAIT64) ||
           (cmd->type == UCS_GSTREAM_CMD_HELP64);
}

/** Whether a stream may pass a wait now. Acquire: what was done before the
 *  word's store has been done then. */
static inline int gstream_wait_is_met(const ucs_gstream_cmd_t *wait)
{
    return __atomic_load_n(wait->u.word.address, __ATOMIC_ACQUIRE) >=
           wait->u.word.value;
}

/** Who helps a wait; NULL if nobody does. */
static inline const ucs_gstream_helper_t *
gstream_wait_helper(const ucs_gstream_cmd_t *wait)
{
    return (wait->type == UCS_GSTREAM_CMD_HELP64) ? wait->u.word.helper : NULL;
}

/** Wait as the first command says, and pass those behind it that are met
 *  already: a stream tells what it has done once for all of them. Returns how
 *  many, of 'count' commands. */
size_t gstream_wait_run(const gstream_pace_config_t *config,
                        gstream_pace_memory_t *memory,
                        const ucs_gstream_cmd_t *cmds, size_t count);

#endif
