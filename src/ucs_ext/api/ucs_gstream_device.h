/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_gstream_device.h
 * What code for devices needs of a target: for nvcc, for clang with CUDA or HIP
 * (hipcc), for hipRTC, and for the stand-ins of the tests. Other compilers get
 * nothing. It includes nothing of the system.
 *
 * Addresses are numbers of 64 bits. A word (64 bits) is loaded, stored and
 * added to whole, for the whole system.
 */
#ifndef UCS_GSTREAM_DEVICE_H_
#define UCS_GSTREAM_DEVICE_H_

#if defined(UCS_GSTREAM_FUNC)

/* The stand-ins of the tests have said what follows */

#elif defined(__CUDACC__) || defined(__HIP__) || defined(__AMDGCN__) || \
      (defined(__CUDA__) && defined(__clang__))

/** In front of a function of devices. */
#  define UCS_GSTREAM_FUNC __attribute__((device, always_inline)) static inline
/** In front of the name of a kernel. */
#  define UCS_GSTREAM_KERNEL extern "C" __attribute__((global)) void
/** Loads data, or stores it. */
#  define UCS_GSTREAM_GET(_type, _address) (*(const _type*)(_address))
#  define UCS_GSTREAM_PUT(_type, _address, _value) \
    (*(_type*)(_address) = (_value))

#  if defined(__HIP__) || defined(__AMDGCN__)
/** A thread's number in its block, and a block's number, where both have one
 *  dimension. */
#    define UCS_GSTREAM_THREAD() __builtin_amdgcn_workitem_id_x()
#    define UCS_GSTREAM_BLOCK() __builtin_amdgcn_workgroup_id_x()
/** A thread's number in its block of any dimensions, and how many that has. */
#    define UCS_GSTREAM_RANK() \
    (__builtin_amdgcn_workitem_id_x() + \
     __builtin_amdgcn_workgroup_size_x() * \
             (__builtin_amdgcn_workitem_id_y() + \
              __builtin_amdgcn_workgroup_size_y() * \
                      __builtin_amdgcn_workitem_id_z()))
#    define UCS_GSTREAM_SIZE() \
    ((unsigned)__builtin_amdgcn_workgroup_size_x() * \
     __builtin_amdgcn_workgroup_size_y() * __builtin_amdgcn_workgroup_size_z())
/** Loads a word, stores it, adds to it; the last one gives what was there
 *  before. */
#    define UCS_GSTREAM_LOAD(_address) \
    __atomic_load_n((const unsigned long long*)(_address), __ATOMIC_RELAXED)
#    define UCS_GSTREAM_STORE(_address, _value) \
    __atomic_store_n((unsigned long long*)(_address), _value, __ATOMIC_RELAXED)
#    define UCS_GSTREAM_ADD(_address, _value) \
    __atomic_fetch_add((unsigned long long*)(_address), _value, \
                       __ATOMIC_RELAXED)
/** Orders what a thread does before and behind it for the whole system. */
#    define UCS_GSTREAM_FENCE() __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "")
/** Waits for all threads of the block, and orders what they do for the block.
 */
#    define UCS_GSTREAM_SYNC() \
    (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), \
     __builtin_amdgcn_s_barrier(), \
     __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
/** Between two looks at a word. */
#    define UCS_GSTREAM_PAUSE() __builtin_amdgcn_s_sleep(1)
#  else
#    define UCS_GSTREAM_LOAD(_address) \
    (*(const volatile unsigned long long*)(_address))
#    define UCS_GSTREAM_STORE(_address, _value) \
    (*(volatile unsigned long long*)(_address) = (_value))
#    define UCS_GSTREAM_PAUSE() ((void)0)
#    define UCS_GSTREAM_SYNC() __syncthreads()
#    if defined(__clang__)
#      define UCS_GSTREAM_THREAD() ((unsigned)__nvvm_read_ptx_sreg_tid_x())
#      define UCS_GSTREAM_BLOCK() ((unsigned)__nvvm_read_ptx_sreg_ctaid_x())
#      define UCS_GSTREAM_RANK() \
    ((unsigned)(__nvvm_read_ptx_sreg_tid_x() + \
                __nvvm_read_ptx_sreg_ntid_x() * \
                        (__nvvm_read_ptx_sreg_tid_y() + \
                         __nvvm_read_ptx_sreg_ntid_y() * \
                                 __nvvm_read_ptx_sreg_tid_z())))
#      define UCS_GSTREAM_SIZE() \
    ((unsigned)(__nvvm_read_ptx_sreg_ntid_x() * \
                __nvvm_read_ptx_sreg_ntid_y() * __nvvm_read_ptx_sreg_ntid_z()))
#      define UCS_GSTREAM_ADD(_address, _value) \
    ((unsigned long long)__nvvm_atom_sys_add_gen_ll( \
            (long long*)(_address), _value))
#      define UCS_GSTREAM_FENCE() __nvvm_membar_sys()
#    else
#      define UCS_GSTREAM_THREAD() threadIdx.x
#      define UCS_GSTREAM_BLOCK() blockIdx.x
#      define UCS_GSTREAM_RANK() \
    (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))
#      define UCS_GSTREAM_SIZE() (blockDim.x * blockDim.y * blockDim.z)
#      define UCS_GSTREAM_ADD(_address, _value) \
    atomicAdd_system((unsigned long long*)(_address), \
                     (unsigned long long)(_value))
#      define UCS_GSTREAM_FENCE() __threadfence_system()
#    endif
#  endif

/** A value of the thread of a block whose number is 0, for all of them. They
 *  wait for each other, twice. */
UCS_GSTREAM_FUNC unsigned long long ucs_gstream_share(unsigned long long value)
{
    static __attribute__((shared)) unsigned long long shared;

    if (UCS_GSTREAM_RANK() == 0) {
        shared = value;
    }
    UCS_GSTREAM_SYNC();
    value = shared;
    UCS_GSTREAM_SYNC();
    return value;
}

#endif

#if defined(UCS_GSTREAM_FUNC)
/** 16 bytes. */
#  if defined(__CUDACC__) && !defined(__clang__)
typedef ulonglong2 ucs_gstream_wide_t;
#  else
typedef unsigned long long ucs_gstream_wide_t __attribute__((vector_size(16)));
#  endif
#endif

#endif
