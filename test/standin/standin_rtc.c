/* SPDX-License-Identifier: BSD-3-Clause */
/* standin_rtc.c - a stand-in for hipRTC. */
#include "standin_rtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int  is_compiled;
    char source[];
} standin_program_t;

#ifdef STANDIN_FORWARD
static const char standin_rtc_ptx[] =
#include "forward_ptx.h"
;
#endif


int standin_rtc_create(void **handle, const char *source, const char *name,
                       int num_headers, const char **headers,
                       const char **names)
{
    standin_program_t *program;

    (void)name;
    (void)headers;
    (void)names;
    if (num_headers != 0) {
        return STANDIN_RTC_INVALID;
    }
    program = calloc(1, sizeof(*program) + strlen(source) + 1);
    if (program == NULL) {
        return STANDIN_RTC_INVALID;
    }
    strcpy(program->source, source);
    *handle = program;
    return 0;
}

/* There are no files that a source could include */
int standin_rtc_compile(void *handle, int num_options, const char **options)
{
    standin_program_t *program = handle;
    const char *value          = getenv("STANDIN_RTC");

    (void)options;
    if ((num_options != 0) || (strstr(program->source, "#include") != NULL) ||
        ((value != NULL) && (strcmp(value, "0") == 0))) {
        return STANDIN_RTC_FAILED;
    }
    program->is_compiled = 1;
    return 0;
}

int standin_rtc_size(void *handle, size_t *size)
{
    const standin_program_t *program = handle;

#ifdef STANDIN_FORWARD
    *size = sizeof(standin_rtc_ptx);
#else
    *size = sizeof(STANDIN_RTC_BEGIN) + strlen(program->source);
#endif
    return program->is_compiled ? 0 : STANDIN_RTC_INVALID;
}

int standin_rtc_code(void *handle, char *code)
{
    const standin_program_t *program = handle;
    size_t size;

    if (standin_rtc_size(handle, &size) != 0) {
        return STANDIN_RTC_INVALID;
    }
#ifdef STANDIN_FORWARD
    (void)program;
    memcpy(code, standin_rtc_ptx, size);
#else
    snprintf(code, size, "%s%s", STANDIN_RTC_BEGIN, program->source);
#endif
    return 0;
}

int standin_rtc_destroy(void **handle)
{
    free(*handle);
    *handle = NULL;
    return 0;
}

#ifdef STANDIN_FORWARD
#  define STANDIN_RTC(_name, _func) \
    __attribute__((visibility("default"), alias(#_func))) \
    __typeof__(_func) _name;
STANDIN_RTC_FUNCS(STANDIN_RTC)
#endif
