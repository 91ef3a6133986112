/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_gpu.h - memory of devices, of the stand-ins for the runtimes: these
 * refuse the host such memory, so that a library that touches it dies.
 */
#ifndef MPIX_GPU_H_
#define MPIX_GPU_H_

#include "mpix_test.h"

/* A runtime. */
typedef struct mpix_gpu {
    void *library;
    int  is_hip;
} mpix_gpu_t;

/* That of the test's stream: ST_TEST_STREAM of the environment */
extern mpix_gpu_t mpix_gpu;


void mpix_gpu_load(mpix_gpu_t *gpu, int is_hip);
char *mpix_gpu_alloc(const mpix_gpu_t *gpu, size_t size);
void mpix_gpu_free(const mpix_gpu_t *gpu, char *place);

/* Copies between any memory, past the library. */
void mpix_gpu_copy(const mpix_gpu_t *gpu, void *dst, const void *src,
                   size_t size);

/* Memory of the device, or of the host. */
char *mpix_place_get(int is_device, size_t size);
void mpix_place_put(int is_device, char *place);

/* Checks that a code is of this class, and its text says where the buffer is,
 * and more. */
void mpix_check_refused(int code, int error_class, const char *more);

/* A program of such cases; its exit status. */
int mpix_gpu_main(const mpix_test_case_t *cases, const char *name, int argc,
                  char **argv);

#endif
