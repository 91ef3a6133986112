/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_rtc.h - a stand-in for hipRTC, which HIP's library has before ROCm 7.
 * It takes a source that needs no other file, and compiles nothing.
 */
#ifndef STANDIN_RTC_H_
#define STANDIN_RTC_H_

#include <stddef.h>

/* Results; STANDIN_RTC=0 has each program fail */
enum {
    STANDIN_RTC_INVALID = 3,
    STANDIN_RTC_FAILED  = 6
};

/* Before the source, in what has been compiled; on CUDA's driver that is PTX
 * text of the library's or the benchmarks' kernels in its place */
#define STANDIN_RTC_BEGIN "hipRTC of the stand-in\n"

int standin_rtc_create(void **program, const char *source, const char *name,
                       int num_headers, const char **headers,
                       const char **names);
int standin_rtc_compile(void *program, int num_options, const char **options);
int standin_rtc_size(void *program, size_t *size);
int standin_rtc_code(void *program, char *code);
int standin_rtc_destroy(void **program);

/* The functions that are found in a library: RTC(name, function) */
#define STANDIN_RTC_FUNCS(RTC) \
    RTC(hiprtcCreateProgram, standin_rtc_create) \
    RTC(hiprtcCompileProgram, standin_rtc_compile) \
    RTC(hiprtcGetCodeSize, standin_rtc_size) \
    RTC(hiprtcGetCode, standin_rtc_code) \
    RTC(hiprtcDestroyProgram, standin_rtc_destroy)

#endif
