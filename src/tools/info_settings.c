/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info_settings.c - settings of the project's libraries for ucx_st_info.
 *
 * Each library has put its tables into UCX's list when it was loaded; those of
 * UCX itself are there as well.
 */
#include "st_info.h"

#include <ucs_ext_config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static int info_is_ours(const ucs_config_global_list_entry_t *entry)
{
    static const char *const prefixes[] = {"CXI_TRIG_", "GSTREAM_", "ST_"};
    unsigned i;

    for (i = 0; i < (sizeof(prefixes) / sizeof(prefixes[0])); ++i) {
        if ((entry->prefix != NULL) &&
            (strcmp(entry->prefix, prefixes[i]) == 0)) {
            return 1;
        }
    }
    return 0;
}

/* What a setting means, as a comment */
static void info_doc(const ucs_config_field_t *field)
{
    const char *line = field->doc;
    char syntax[256] = "";
    size_t length;

    printf("#\n");
    while (line[0] != '\0') {
        length = strcspn(line, "\n");
        printf("# %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    field->parser.help(syntax, sizeof(syntax) - 1, field->parser.arg);
    printf("#\n# syntax: %s\n# default: %s\n#\n", syntax, field->dfl_value);
}

static void info_value(const char *prefix, const ucs_config_field_t *field,
                       const void *value)
{
    char text[1024] = "";

    field->parser.write(text, sizeof(text) - 1, value, field->parser.arg);
    printf(UCS_DEFAULT_ENV_PREFIX "%s%s=%s\n", prefix, field->name, text);
}

/* The settings of a table, and of the tables that it contains */
static void info_fields(const char *prefix, const ucs_config_field_t *fields,
                        const void *values, int is_full)
{
    const ucs_config_field_t *field;
    const void *value;

    for (field = fields; field->name != NULL; ++field) {
        if (field->offset == UCS_CONFIG_DEPRECATED_FIELD_OFFSET) {
            continue;
        }
        value = (const char*)values + field->offset;
        if (field->parser.read == ucs_config_sscanf_table) {
            info_fields(prefix, field->parser.arg, value, is_full);
            continue;
        }
        if (is_full) {
            info_doc(field);
        }
        info_value(prefix, field, value);
    }
}

static void info_table(ucs_config_global_list_entry_t *entry, int is_full)
{
    void *values = calloc(1, entry->size);

    printf("#\n# %s\n#\n", entry->name);
    if ((values == NULL) ||
        (ucs_ext_config_fill(values, entry, 1) != UCS_OK)) {
        printf("# cannot be read\n");
    } else {
        info_fields(entry->prefix, entry->table, values, is_full);
        ucs_config_parser_release_opts(values, entry->table);
    }
    printf("\n");
    free(values);
}

void info_settings(int is_full)
{
    ucs_config_global_list_entry_t *entry;

    ucs_list_for_each(entry, &ucs_config_global_list, list) {
        if (info_is_ours(entry)) {
            info_table(entry, is_full);
        }
    }
}
