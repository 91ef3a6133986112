/* SPDX-License-Identifier: BSD-3-Clause */
/* uct_errors.c - what UCX logs as an error. */
#include "uct_errors.h"

#include <ucs/debug/log_def.h>

#include <stdio.h>
#include <string.h>


/* What is counted: errors, or messages of a level with a text */
static ucs_log_level_t wanted_level;
static const char      *wanted_text;

/* Those since the handler was pushed, and the last one */
static unsigned num_errors;
static char last_error[512];

static ucs_log_func_rc_t
keep_error(const char *file, unsigned line, const char *function,
           ucs_log_level_t level, const ucs_log_component_config_t *component,
           const char *message, va_list args)
{
    char text[sizeof(last_error)];

    if ((wanted_text == NULL) ? (level > wanted_level) :
                                (level != wanted_level)) {
        return UCS_LOG_FUNC_RC_STOP;
    }
    vsnprintf(text, sizeof(text), message, args);
    if ((wanted_text == NULL) || (strstr(text, wanted_text) != NULL)) {
        ++num_errors;
        strcpy(last_error, text);
    }
    return UCS_LOG_FUNC_RC_STOP;
}

void uct_errors_begin_text(ucs_log_level_t level, const char *text)
{
    wanted_level  = level;
    wanted_text   = text;
    num_errors    = 0;
    last_error[0] = '\0';
    ucs_log_push_handler(keep_error);
}

void uct_errors_begin(void)
{
    uct_errors_begin_text(UCS_LOG_LEVEL_ERROR, NULL);
}

unsigned uct_errors_count(void)
{
    return num_errors;
}

unsigned uct_errors_end(void)
{
    ucs_log_pop_handler();
    return num_errors;
}

const char *uct_errors_last(void)
{
    return last_error;
}
