/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hip_runtime.h - in place of HIP's own header: what examples/gpu uses of the
 * runtime, for a compiler that is not HIP's, on the stand-in. Kernels are those
 * of test_kernels.so, by their names.
 */
#ifndef HIP_RUNTIME_H_
#define HIP_RUNTIME_H_

extern "C" {
#include "standin_hip.h"
}

#include <stdio.h>
#include <string.h>

typedef void *hipStream_t;
typedef int  hipError_t;

#define hipStreamNonBlocking  1
#define hipHostMallocMapped   2
#define hipMemcpyHostToDevice 1
#define hipMemcpyDeviceToHost 2

/* name<<<blocks, threads, 0, stream>>>(args), a structure */
#define STANDIN_LAUNCH(_name, _blocks, _threads, _stream, _args) \
    do { \
        const standin_launch_t launch = {#_name, _blocks, _threads, _stream}; \
        standin_launch(&launch, &(_args), sizeof(_args)); \
    } while (0)

typedef struct standin_launch {
    const char  *name;
    unsigned    blocks;
    unsigned    threads;
    hipStream_t stream;
} standin_launch_t;

/* HIP keeps what it is given, and hands out an error by the next call for it */
static inline void standin_launch(const standin_launch_t *launch, void *args,
                                  size_t size)
{
    static char text[2][64];
    static void *kernels[2];
    int i         = (text[0][0] != '\0') &&
                    (strstr(text[0], launch->name) == NULL);
    void *module  = NULL;
    void *extra[] = {(void*)1, args, (void*)2, &size, (void*)3};

    if (kernels[i] == NULL) {
        snprintf(text[i], sizeof(text[i]), "hipRTC of the stand-in\n%s",
                 launch->name);
        if ((hipModuleLoadData(&module, text[i]) != 0) ||
            (hipModuleGetFunction(&kernels[i], module, launch->name) != 0)) {
            return;
        }
    }
    (void)hipModuleLaunchKernel((void (*)(void*))kernels[i], launch->blocks, 1,
                                1, launch->threads, 1, 1, 0, launch->stream,
                                NULL, extra);
}

#endif
