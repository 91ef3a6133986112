/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_gpu.h
 * Whether an address is in a GPU's memory. Not installed; it needs nothing but
 * the C library, as the emulated card has it, too.
 *
 * A program that has memory of a GPU has loaded the runtime that gave it: that
 * one is found by its name, and nothing else is ever loaded.
 */
#ifndef UCS_GPU_H_
#define UCS_GPU_H_

#include <stddef.h>
#include <stdint.h>

/** Runtimes that know addresses. */
enum {
    UCS_GPU_CUDA, /**< CUDA's driver */
    UCS_GPU_ROCM, /**< ROCr, which knows HIP's memory, too */
    UCS_GPU_LAST
};

/** An allocation. */
typedef struct ucs_gpu_memory {
    unsigned  runtime;    /**< Whose it is */
    int       is_managed; /**< CUDA moves it between host and GPU */
    int       device;     /**< Number of the GPU, of CUDA; else 0 */
    void      *context;   /**< CUDA's that it was allocated in, or NULL */
    uintptr_t start;      /**< Of the whole allocation */
    size_t    length;     /**< The same, in bytes */
} ucs_gpu_memory_t;


/**
 * Look which runtimes the program has loaded by now.
 *
 * @return Bits of them. @ref ucs_gpu_find asks these.
 *
 * Threads: any.
 */
unsigned ucs_gpu_loaded(void);

/**
 * Look after what is kept here in a child that was forked: each library that
 * has this calls it before fork() returns there.
 *
 * Threads: there is one.
 */
void ucs_gpu_forked(void);

/**
 * Find the memory of an address.
 *
 * @param [in]  address Any address.
 * @param [out] memory  Set if it is in a GPU's memory.
 *
 * @return Non-zero if it is.
 *
 * Threads: any.
 */
int ucs_gpu_find(const void *address, ucs_gpu_memory_t *memory);

/**
 * Find another function of a runtime that was found.
 *
 * @param [in] runtime Which one.
 * @param [in] name    Of the function.
 *
 * @return The function; NULL if it has none of this name.
 *
 * Threads: any.
 */
void *ucs_gpu_function(unsigned runtime, const char *name);

#endif
