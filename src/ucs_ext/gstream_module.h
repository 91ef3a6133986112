/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_module.h - the library's kernels in a device. */
#ifndef GSTREAM_MODULE_H_
#define GSTREAM_MODULE_H_

#include "gstream_gpu.h"
#include "gstream_kernels.h"
#include "api/ucs_gstream_move.h"
#include "api/ucs_gstream_pair.h"

/** What runtimes load: PTX text; code objects for several devices of AMD's, or
 *  an empty string where the build had no compiler for them; the source for
 *  hipRTC. Each ends with a zero. */
extern const unsigned char gstream_image_ptx[];
extern const unsigned char gstream_image_objects[];
extern const unsigned char gstream_image_source[];

/** Kernels in a device: functions of the runtime. */
typedef struct gstream_kernels {
    const gstream_gpu_t *gpu;
    void     *waits_few;
    void     *waits_many;
    void     *pairs_few;
    void     *pairs_many;
    void     *move;
    unsigned max_threads;    /* of a block of the device */
    unsigned num_processors; /* that run blocks */
} gstream_kernels_t;

/** The kernels in the device of a stream's place, which are loaded once and
 *  stay; NULL if there are none, and the reason is logged once a device at
 *  level info. May take as long as a compiler. Any thread. */
const gstream_kernels_t *gstream_kernels_get(const gstream_gpu_t *gpu,
                                             const gstream_gpu_place_t *place);

/** How the streams that were made wait for several words, and whether their
 *  devices have kernels: as in ucs_gstream_type_attr_t. */
void gstream_kernels_tell(const gstream_gpu_t *gpu,
                          char waits[UCS_GSTREAM_TEXT_MAX],
                          char kernels[UCS_GSTREAM_TEXT_MAX]);

/** A launch. */
typedef struct gstream_launch {
    void     *function;
    unsigned blocks;
    unsigned threads; /* of a block */
    void     *args;   /* copied */
    size_t   size;    /* of those, in bytes */
} gstream_launch_t;

/** Launch a kernel. The stream's place is the caller's, as for the next one. A
 *  result of the runtime. */
int gstream_kernels_launch(const gstream_gpu_t *gpu, void *native,
                           const gstream_launch_t *launch);

/** Enqueue one kernel that waits for the first ops, `num_waits`, and then does
 *  the stores that follow; both together GSTREAM_KERNEL_MANY at most. */
int gstream_kernels_wait(const gstream_kernels_t *kernels, void *native,
                         const gstream_gpu_op_t *ops, size_t num_waits,
                         size_t num_stores);

/** Whether the device reaches what starts of pairs name; registers it. */
ucs_status_t gstream_pairs_check(const gstream_gpu_t *gpu,
                                 const ucs_gstream_pair_t *pairs, size_t count);

/** Enqueue one kernel that starts pairs, UCS_GSTREAM_PAIRS_MAX at most. */
int gstream_pairs_launch(const gstream_kernels_t *kernels, void *native,
                         const ucs_gstream_pair_t *pairs, size_t count);

/** Threads and blocks of a kernel for the longest of its messages. */
void gstream_pair_size(const gstream_kernels_t *kernels, uint64_t length,
                       gstream_kernel_pair_head_t *head);

/** A kernel's arguments of a move, but for its `head`. Registers the words'
 *  memory. */
ucs_status_t gstream_move_set(const gstream_gpu_t *gpu,
                              const ucs_gstream_move_t *move,
                              gstream_kernel_move_t *args);

/** Enqueue the kernel of a move. */
int gstream_move_launch(const gstream_kernels_t *kernels, void *native,
                        const ucs_gstream_move_t *move);

#endif
