/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hiprtc.c - kernels that are compiled at run time for a device that the build
 * had no code object for.
 *
 * hipRTC is a library of its own since ROCm 5.3, and in HIP's library, too,
 * before ROCm 7. Without an option that names one it compiles for the device
 * that is current.
 */
#ifdef HAVE_CONFIG_H
#  include "ucx_st_config.h"
#endif

#include "ucs_hiprtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Its functions, which return 0 for success */
typedef struct ucs_hiprtc {
    int (*create)(void **program_p, const char *source, const char *name,
                  int num_headers, const char **headers, const char **names);
    int (*compile)(void *program, int num_options, const char **options);
    int (*get_size)(void *program, size_t *size_p);
    int (*get_code)(void *program, char *code);
    int (*destroy)(void **program_p);
} ucs_hiprtc_t;

static const struct {
    size_t     offset;
    const char *name;
} ucs_hiprtc_names[] = {
    {offsetof(ucs_hiprtc_t, create), "hiprtcCreateProgram"},
    {offsetof(ucs_hiprtc_t, compile), "hiprtcCompileProgram"},
    {offsetof(ucs_hiprtc_t, get_size), "hiprtcGetCodeSize"},
    {offsetof(ucs_hiprtc_t, get_code), "hiprtcGetCode"},
    {offsetof(ucs_hiprtc_t, destroy), "hiprtcDestroyProgram"}
};

#define UCS_HIPRTC_COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))


/* 0 if a library that is open has not all of it */
static int ucs_hiprtc_find(void *library, ucs_hiprtc_t *rtc)
{
    void *func;
    size_t i;

    for (i = 0; i < UCS_HIPRTC_COUNT(ucs_hiprtc_names); ++i) {
        func = dlsym(library, ucs_hiprtc_names[i].name);
        if (func == NULL) {
            return 0;
        }
        memcpy((char*)rtc + ucs_hiprtc_names[i].offset, &func,
               sizeof(func));
    }
    return 1;
}

/* The library stays open: what it has compiled with may have threads */
static int ucs_hiprtc_open(const char *hip, ucs_hiprtc_t *rtc)
{
    const char *const names[] = {
        hip,
#ifdef ST_ROCM_PREFIX
        ST_ROCM_PREFIX "/lib/libhiprtc.so",
        ST_ROCM_PREFIX "/lib64/libhiprtc.so",
#endif
        "libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5"
    };
    void *library;
    size_t i;

    for (i = 0; i < UCS_HIPRTC_COUNT(names); ++i) {
        library = dlopen(names[i], RTLD_LAZY);
        if ((library != NULL) && ucs_hiprtc_find(library, rtc)) {
            return 1;
        }
        if (library != NULL) {
            (void)dlclose(library);
        }
    }
    return 0;
}

void *ucs_hiprtc_compile(const char *hip, const char *source, char *reason,
                         size_t size)
{
    void *program = NULL;
    char *code    = NULL;
    size_t length = 0;
    ucs_hiprtc_t rtc;
    int result;

    if (!ucs_hiprtc_open(hip, &rtc)) {
        snprintf(reason, size, "the build has no code for the device, and "
                 "there is no hipRTC (libhiprtc.so) to compile it");
        return NULL;
    }
    result = rtc.create(&program, source, "kernels.cu", 0, NULL, NULL);
    if (result == 0) {
        result = rtc.compile(program, 0, NULL);
        if ((result == 0) &&
            ((result = rtc.get_size(program, &length)) == 0)) {
            code   = malloc(length);
            result = (code != NULL) ? rtc.get_code(program, code) : 0;
        }
        (void)rtc.destroy(&program);
    }
    if (result != 0) {
        snprintf(reason, size, "the build has no code for the device, and "
                 "hipRTC does not compile it: error %d", result);
        free(code);
        code = NULL;
    }
    return code;
}
