/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_wait.h - how a thread that runs a host stream waits for words. */
#ifndef GSTREAM_WAIT_H_
#define GSTREAM_WAIT_H_

#include "api/ucs_gstream.h"
#include "gstream_pace.h"
#include "gstream_sleep.h"

#include <stddef.h>


/** What is left of a wait. */
typedef struct gstream_wait {
    const ucs_gstream_word_t   *words; /**< The next one to look at */
    size_t                     count;  /**< How many are left */
    const ucs_gstream_helper_t *helper; /**< Or NULL */
    unsigned                   how;    /**< The words are compared */
    ucs_gstream_word_t         own;     /**< Of a command with one word */
} gstream_wait_t;


/** Whether a command is a wait. */
static inline int gstream_wait_is_one(const ucs_gstream_cmd_t *cmd)
{
    return (cmd->type == UCS_GSTREAM_CMD_WAIT64) ||
           (cmd->type == UCS_GSTREAM_CMD_HELP64) ||
           (cmd->type == UCS_GSTREAM_CMD_WAITALL) ||
           (cmd->type == UCS_GSTREAM_CMD_WAIT32);
}

/** Begin a wait of which 'num_met' words are met; it must not be copied. */
static inline void gstream_wait_begin(gstream_wait_t *wait,
                                      const ucs_gstream_cmd_t *cmd,
                                      size_t num_met)
{
    wait->how = GSTREAM_SLEEP_64;
    if (cmd->type == UCS_GSTREAM_CMD_WAITALL) {
        wait->words  = cmd->u.waitall.words + num_met;
        wait->count  = cmd->u.waitall.count - num_met;
        wait->helper = cmd->u.waitall.helper;
    } else if (cmd->type == UCS_GSTREAM_CMD_WAIT32) {
        wait->how = GSTREAM_SLEEP_32 + cmd->u.word32.cmp;
        wait->own = (ucs_gstream_word_t){
            .address = (volatile uint64_t*)cmd->u.word32.address,
            .value   = cmd->u.word32.value
        };
        wait->words  = &wait->own;
        wait->count  = 1 - num_met;
        wait->helper = NULL;
    } else {
        wait->own.address = cmd->u.word.address;
        wait->own.value   = cmd->u.word.value;
        wait->words       = &wait->own;
        wait->count       = 1 - num_met;
        wait->helper      = (cmd->type == UCS_GSTREAM_CMD_HELP64) ?
                                    cmd->u.word.helper :
                                    NULL;
    }
}

/** Whether a stream may pass a wait now, but for words that were met before.
 *  Acquire: what was done before a word's store has been done then. */
static inline int gstream_wait_is_met(gstream_wait_t *wait)
{
    for (; wait->count > 0; ++wait->words, --wait->count) {
        if (!gstream_sleep_is_met(wait->words->address, wait->words->value,
                                  wait->how)) {
            return 0;
        }
    }
    return 1;
}

/** Wait as the first command says, and pass those behind it that are met
 *  already: a stream tells what it has done once for all of them. Returns how
 *  many slots they take, of 'count'. */
size_t gstream_wait_run(const gstream_pace_config_t *config,
                        const ucs_gstream_cmd_t *cmds, size_t count);

#endif
