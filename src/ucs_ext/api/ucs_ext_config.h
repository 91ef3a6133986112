/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_ext_config.h
 * Reading of settings, with every version of UCX. Not installed.
 */
#ifndef UCS_EXT_CONFIG_H_
#define UCS_EXT_CONFIG_H_

#include <ucs/config/parser.h>

#ifdef UCS_CONFIG_GET_TABLE
/** What the parser of this UCX takes for an entry: the entry itself. */
#  define UCS_EXT_CONFIG_PARTS(_entry) _entry, UCS_DEFAULT_ENV_PREFIX
#else
/** What the parser of this UCX takes for an entry: its parts. */
#  define UCS_EXT_CONFIG_PARTS(_entry) \
    (_entry)->table, UCS_DEFAULT_ENV_PREFIX, (_entry)->prefix
/** The entry of a table that was declared, as later versions of UCX name it. */
#  define UCS_CONFIG_GET_TABLE(_table) (&_table##_config_entry)
#endif


/**
 * Read the settings of a table from the environment and UCX's files.
 *
 * @param [out] values        Where they go, to be released with
 *                            ucs_config_parser_release_opts().
 * @param [in]  entry         The table's entry: UCS_CONFIG_GET_TABLE().
 * @param [in]  ignore_errors Say nothing of values that are wrong.
 *
 * @return UCS_OK, or what UCX's parser finds wrong.
 */
static inline ucs_status_t
ucs_ext_config_fill(void *values, ucs_config_global_list_entry_t *entry,
                    int ignore_errors)
{
    return ucs_config_parser_fill_opts(values, UCS_EXT_CONFIG_PARTS(entry),
                                       ignore_errors);
}

#endif
