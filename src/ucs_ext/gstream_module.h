/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_module.h - the library's kernels in a device. */
#ifndef GSTREAM_MODULE_H_
#define GSTREAM_MODULE_H_

#include "gstream_gpu.h"

/** What runtimes load: PTX text; code objects for several devices of AMD's, or
 *  an empty string where the build had no compiler for them; the source for
 *  hipRTC. Each ends with a zero. */
extern const unsigned char gstream_image_ptx[];
extern const unsigned char gstream_image_objects[];
extern const unsigned char gstream_image_source[];

/** Kernels that wait for words: functions of the runtime. */
typedef struct gstream_kernels {
    const gstream_gpu_t *gpu;
    void *few;
    void *many;
} gstream_kernels_t;

/** The kernels in the device of a stream's place, which are loaded once and
 *  stay; NULL if there are none, and the reason is logged once a device at
 *  level info. May take as long as a compiler. Any thread. */
const gstream_kernels_t *gstream_kernels_get(const gstream_gpu_t *gpu,
                                             const gstream_gpu_place_t *place);

/** How the streams that were made wait for several words: by such kernels, or
 *  why not; empty if there is no stream yet. */
void gstream_kernels_tell(const gstream_gpu_t *gpu,
                          char text[UCS_GSTREAM_TEXT_MAX]);

/** Enqueue one kernel that waits for the first ops, `num_waits`, and then does
 *  the stores that follow; both together GSTREAM_KERNEL_MANY at most. The
 *  stream's place is the caller's. A result of the runtime. */
int gstream_kernels_wait(const gstream_kernels_t *kernels, void *native,
                         const gstream_gpu_op_t *ops, size_t num_waits,
                         size_t num_stores);

/** Have hipRTC compile the kernels for the caller's current device. The code is
 *  the caller's, to free(); NULL if it cannot, with the reason but where memory
 *  is short. */
void *gstream_hip_compile(const gstream_gpu_t *gpu,
                          char reason[UCS_GSTREAM_TEXT_MAX]);

#endif
