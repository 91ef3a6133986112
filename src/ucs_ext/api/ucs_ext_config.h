/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_ext_config.h
 * Reading of settings, with every version of UCX. Not installed.
 *
 * A library has tables that UCX reads as it was built to. In a UCX that lays
 * them out otherwise than the one that the library was built for they are
 * neither listed nor read: whoever loads such a library keeps running.
 */
#ifndef UCS_EXT_CONFIG_H_
#define UCS_EXT_CONFIG_H_

#include <ucs/config/parser.h>
#include <ucs/debug/log_def.h>

/** How the tables of the UCX that this is compiled for are laid out. */
#if defined(UCS_CONFIG_TYPE_KEY_VALUE)
#  define UCS_EXT_CONFIG_LAYOUT 2 /* Fields grew in 1.17 */
#elif defined(UCS_CONFIG_GET_TABLE)
#  define UCS_EXT_CONFIG_LAYOUT 1 /* Entries grew in 1.15 */
#else
#  define UCS_EXT_CONFIG_LAYOUT 0
#endif

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

/** Declare a table and its entry, and list it among UCX's own ones. It is read
 *  once when the library is loaded: when UCX makes a context it warns of
 *  settings that nobody has read, which may be before the first stream. */
#define UCS_EXT_CONFIG_REGISTER_TABLE(_table, _name, _prefix, _type) \
    UCS_CONFIG_DECLARE_TABLE(_table, _name, _prefix, _type) \
    static int _table##_is_listed; \
    \
    UCS_STATIC_INIT { \
        _type values; \
    \
        if (ucs_ext_config_fits()) { \
            UCS_CONFIG_ADD_TABLE(_table, &ucs_config_global_list); \
            _table##_is_listed = 1; \
            ucs_ext_config_announce(&values, UCS_CONFIG_GET_TABLE(_table), \
                                    _table); \
        } \
    } \
    \
    UCS_STATIC_CLEANUP { \
        if (_table##_is_listed) { \
            UCS_CONFIG_REMOVE_TABLE(_table); \
        } \
    }


/**
 * UCX's own; NULL in a process that uses streams alone.
 *
 * @param [out] major   1 in all versions so far.
 * @param [out] minor   The version's second number.
 * @param [out] release Its third one.
 */
BEGIN_C_DECLS
extern void ucp_get_version(unsigned *major, unsigned *minor,
                            unsigned *release) __attribute__((weak));
END_C_DECLS


/** The layout that a version of UCX has. */
static inline int ucs_ext_config_layout(unsigned major, unsigned minor)
{
    if ((major == 1) && (minor < 17)) {
        return (minor < 15) ? 0 : 1;
    }
    return 2;
}


/** Whether the tables are laid out as this UCX reads them. */
static inline int ucs_ext_config_fits(void)
{
    unsigned major, minor, release;

    if (ucp_get_version == NULL) {
        return 1;
    }

    ucp_get_version(&major, &minor, &release);
    return ucs_ext_config_layout(major, minor) == UCS_EXT_CONFIG_LAYOUT;
}


/**
 * Read the settings of a table from the environment and UCX's files.
 *
 * @param [out] values        Where they go, to be released with
 *                            ucs_config_parser_release_opts().
 * @param [in]  entry         The table's entry: UCS_CONFIG_GET_TABLE().
 * @param [in]  ignore_errors Say nothing of values that are wrong.
 *
 * @return UCS_OK, what UCX's parser finds wrong, or UCS_ERR_UNSUPPORTED in a
 *         UCX that the table does not fit.
 */
static inline ucs_status_t
ucs_ext_config_fill(void *values, ucs_config_global_list_entry_t *entry,
                    int ignore_errors)
{
    if (!ucs_ext_config_fits()) {
        if (!ignore_errors) {
            ucs_error("UCX-ST was built for another version of UCX: build it "
                      "for this one");
        }
        return UCS_ERR_UNSUPPORTED;
    }
    return ucs_config_parser_fill_opts(values, UCS_EXT_CONFIG_PARTS(entry),
                                       ignore_errors);
}


/** Read a table into memory that is not used, for UCX to see that it is. */
static inline void
ucs_ext_config_announce(void *values, ucs_config_global_list_entry_t *entry,
                        ucs_config_field_t *table)
{
    if (ucs_ext_config_fill(values, entry, 1) == UCS_OK) {
        ucs_config_parser_release_opts(values, table);
    }
}

#endif
