/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_hiprtc.c - the library's kernels, compiled at run time for a device
 * that the build had no code object for.
 *
 * hipRTC is a library of its own since ROCm 5.3, and in HIP's library, too,
 * before ROCm 7. Without an option that names one it compiles for the device
 * that is current.
 */
#ifdef HAVE_CONFIG_H
#  include "ucx_st_config.h"
#endif

#include "gstream_module.h"

#include <ucs/sys/preprocessor.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Its functions, which return 0 for success */
typedef struct gstream_hiprtc {
    int (*create)(void **program_p, const char *source, const char *name,
                  int num_headers, const char **headers, const char **names);
    int (*compile)(void *program, int num_options, const char **options);
    int (*get_size)(void *program, size_t *size_p);
    int (*get_code)(void *program, char *code);
    int (*destroy)(void **program_p);
} gstream_hiprtc_t;

static const gstream_gpu_name_t gstream_hiprtc_names[] = {
    {ucs_offsetof(gstream_hiprtc_t, create), {"hiprtcCreateProgram"}},
    {ucs_offsetof(gstream_hiprtc_t, compile), {"hiprtcCompileProgram"}},
    {ucs_offsetof(gstream_hiprtc_t, get_size), {"hiprtcGetCodeSize"}},
    {ucs_offsetof(gstream_hiprtc_t, get_code), {"hiprtcGetCode"}},
    {ucs_offsetof(gstream_hiprtc_t, destroy), {"hiprtcDestroyProgram"}}
};


/* 0 if a library that is open has not all of it */
static int gstream_hiprtc_find(void *library, gstream_hiprtc_t *rtc)
{
    void *func;
    size_t i;

    for (i = 0; i < ucs_static_array_size(gstream_hiprtc_names); ++i) {
        func = dlsym(library, gstream_hiprtc_names[i].names[0]);
        if (func == NULL) {
            return 0;
        }
        memcpy((char*)rtc + gstream_hiprtc_names[i].offset, &func,
               sizeof(func));
    }
    return 1;
}

/* The library stays open: what it has compiled with may have threads */
static int gstream_hiprtc_open(const gstream_gpu_t *gpu, gstream_hiprtc_t *rtc)
{
    const char *const names[] = {
        gpu->library,
#ifdef ST_ROCM_PREFIX
        ST_ROCM_PREFIX "/lib/libhiprtc.so",
        ST_ROCM_PREFIX "/lib64/libhiprtc.so",
#endif
        "libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5"
    };
    void *library;
    size_t i;

    for (i = 0; i < ucs_static_array_size(names); ++i) {
        library = dlopen(names[i], RTLD_LAZY);
        if ((library != NULL) && gstream_hiprtc_find(library, rtc)) {
            return 1;
        }
        if (library != NULL) {
            (void)dlclose(library);
        }
    }
    return 0;
}

void *gstream_hip_compile(const gstream_gpu_t *gpu,
                          char reason[UCS_GSTREAM_TEXT_MAX])
{
    void *program = NULL;
    char *code    = NULL;
    size_t size   = 0;
    gstream_hiprtc_t rtc;
    int result;

    if (!gstream_hiprtc_open(gpu, &rtc)) {
        snprintf(reason, UCS_GSTREAM_TEXT_MAX, "the build has no code for the "
                 "device, and there is no hipRTC (libhiprtc.so) to compile it");
        return NULL;
    }
    result = rtc.create(&program, (const char*)gstream_image_source,
                        "gstream_kernels.cu", 0, NULL, NULL);
    if (result == 0) {
        result = rtc.compile(program, 0, NULL);
        if ((result == 0) && ((result = rtc.get_size(program, &size)) == 0)) {
            code   = malloc(size);
            result = (code != NULL) ? rtc.get_code(program, code) : 0;
        }
        (void)rtc.destroy(&program);
    }
    if (result != 0) {
        snprintf(reason, UCS_GSTREAM_TEXT_MAX, "the build has no code for the "
                 "device, and hipRTC does not compile it: error %d", result);
        free(code);
        code = NULL;
    }
    return code;
}
