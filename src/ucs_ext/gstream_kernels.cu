/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_kernels.cu - the library's kernels for GPUs, in plain C that is C++,
 * too, without headers of the system.
 *
 * clang makes PTX text of it (gstream_kernels.ptx, contrib/check-kernels.sh),
 * and code objects for AMD's devices (gstream_images.sh). hipRTC compiles it at
 * run time, and test/standin runs it on threads of the host. A kernel uses no
 * memory of a thread's own, and no printf().
 */
#include "gstream_kernels.h"

/* What a target names in its own way. A word is loaded and stored whole, for
 * the whole system; GSTREAM_FENCE() orders what a thread does before and
 * behind it for the whole system; GSTREAM_SYNC() waits for all threads of the
 * block. */
#if defined(__NVPTX__)

#  define GSTREAM_FUNC __attribute__((device, always_inline)) static inline
#  define GSTREAM_KERNEL extern "C" __attribute__((global)) void
#  define GSTREAM_THREAD() ((unsigned)__nvvm_read_ptx_sreg_tid_x())
#  define GSTREAM_LOAD(_address) \
    (*(const volatile unsigned long long*)(_address))
#  define GSTREAM_STORE(_address, _value) \
    (*(volatile unsigned long long*)(_address) = (_value))
#  define GSTREAM_FENCE() __nvvm_membar_sys()
#  define GSTREAM_SYNC() __syncthreads()
#  define GSTREAM_PAUSE() ((void)0)

#elif defined(__AMDGCN__)

#  define GSTREAM_FUNC __attribute__((device, always_inline)) static inline
#  define GSTREAM_KERNEL extern "C" __attribute__((global)) void
#  define GSTREAM_THREAD() __builtin_amdgcn_workitem_id_x()
#  define GSTREAM_LOAD(_address) \
    __atomic_load_n((const unsigned long long*)(_address), __ATOMIC_RELAXED)
#  define GSTREAM_STORE(_address, _value) \
    __atomic_store_n((unsigned long long*)(_address), _value, __ATOMIC_RELAXED)
#  define GSTREAM_FENCE() __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "")
#  define GSTREAM_SYNC() __builtin_amdgcn_s_barrier()
#  define GSTREAM_PAUSE() __builtin_amdgcn_s_sleep(1)

#else /* The stand-ins: what they run it by */

#  define GSTREAM_FUNC static inline
#  define GSTREAM_KERNEL static void
#  define GSTREAM_THREAD() standin_thread()
#  define GSTREAM_LOAD(_address) standin_kernel_load(_address)
#  define GSTREAM_STORE(_address, _value) standin_kernel_store(_address, _value)
#  define GSTREAM_FENCE() ((void)0) /* The others are locked */
#  define GSTREAM_SYNC() standin_sync()
#  define GSTREAM_PAUSE() standin_kernel_pause()

#endif

/* Each thread waits for its share of the words, so that their loads, which
 * cross the bus, overlap; the first one then stores. */
GSTREAM_FUNC void gstream_waits(const gstream_kernel_head_t *head,
                                const gstream_kernel_op_t *ops)
{
    unsigned i;

    for (i = GSTREAM_THREAD(); i < head->num_waits; i += head->num_threads) {
        while (GSTREAM_LOAD(ops[i].address) < ops[i].value) {
            GSTREAM_PAUSE();
        }
    }
    GSTREAM_FENCE();
    GSTREAM_SYNC();
    if (GSTREAM_THREAD() == 0) {
        GSTREAM_FENCE(); /* The stores come behind all threads' waits */
        for (i = 0; i < head->num_stores; ++i) {
            GSTREAM_STORE(ops[head->num_waits + i].address,
                          ops[head->num_waits + i].value);
        }
    }
}

GSTREAM_KERNEL ucs_gstream_waits_few(gstream_kernel_few_t args)
{
    gstream_waits(&args.head, args.ops);
}

GSTREAM_KERNEL ucs_gstream_waits_many(gstream_kernel_many_t args)
{
    gstream_waits(&args.head, args.ops);
}
