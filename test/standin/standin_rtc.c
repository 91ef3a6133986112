/* SPDX-License-Identifier: BSD-3-Clause */
/* standin_rtc.c - a stand-in for hipRTC. */
#include "standin_rtc.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int  is_compiled;
    char *source; /* Behind what stands in front of it when it is compiled */
    char text[];
} standin_program_t;

#ifdef STANDIN_FORWARD
/* PTX text of a source that has such a kernel */
static const struct {
    const char *kernel;
    const char *text;
} standin_rtc_ptx[] = {
    {"ucs_gstream_waits_few",
#include "forward_ptx.h"
    },
    {"bench_pp_pack",
#include "forward_bench_ptx.h"
    }
};
#endif


/* What a program is compiled to */
static const char *standin_rtc_text(const standin_program_t *program)
{
#ifdef STANDIN_FORWARD
    size_t i;

    for (i = 0; i < sizeof(standin_rtc_ptx) / sizeof(standin_rtc_ptx[0]);
         ++i) {
        if (strstr(program->source, standin_rtc_ptx[i].kernel) != NULL) {
            return standin_rtc_ptx[i].text;
        }
    }
    return "";
#else
    return program->text;
#endif
}


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
    program = calloc(1, sizeof(*program) + sizeof(STANDIN_RTC_BEGIN) +
                        strlen(source));
    if (program == NULL) {
        return STANDIN_RTC_INVALID;
    }
    program->source = stpcpy(program->text, STANDIN_RTC_BEGIN);
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

    *size = strlen(standin_rtc_text(program)) + 1;
    return program->is_compiled ? 0 : STANDIN_RTC_INVALID;
}

int standin_rtc_code(void *handle, char *code)
{
    const standin_program_t *program = handle;

    if (!program->is_compiled) {
        return STANDIN_RTC_INVALID;
    }
    strcpy(code, standin_rtc_text(program));
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
