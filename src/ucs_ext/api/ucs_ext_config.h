/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucs_ext_config.h - reading of settings, with every version of UCX. Not
 * installed.
 */
#ifndef UCS_EXT_CONFIG_H_
#define UCS_EXT_CONFIG_H_

#include <ucs/config/parser.h>

/* Where UCX has this, its parser takes the entry that it stands for; before it
 * took that entry's parts */
#ifdef UCS_CONFIG_GET_TABLE
#  define UCS_EXT_CONFIG_PARTS(_entry) _entry, UCS_DEFAULT_ENV_PREFIX
#else
#  define UCS_EXT_CONFIG_PARTS(_entry) \
    (_entry)->table, UCS_DEFAULT_ENV_PREFIX, (_entry)->prefix
#  define UCS_CONFIG_GET_TABLE(_table) (&_table##_config_entry)
#endif


/**
 * Read the settings of a table from the environment and UCX's files.
 * UCS_CONFIG_GET_TABLE() names the entry of a table that was declared.
 */
static inline ucs_status_t
ucs_ext_config_fill(void *values, ucs_config_global_list_entry_t *entry,
                    int ignore_errors)
{
    return ucs_config_parser_fill_opts(values, UCS_EXT_CONFIG_PARTS(entry),
                                       ignore_errors);
}

#endif
