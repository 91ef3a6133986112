/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_device.h - what ucs_gstream_device.h names, of a device that is a
 * stand-in: its memory is looked up for each access. A source of kernels that
 * is built for the host with it, as a shared object, is what a stand-in runs:
 *
 *     #include "standin_device.h"
 *     #include "my_kernels.cu"
 *
 *     STANDIN_KERNEL(my_kernel, my_args_t)
 *
 *     const standin_kernel_t standin_kernels[] = {
 *         STANDIN_KERNEL_ENTRY(my_kernel, my_args_t), {NULL}
 *     };
 *
 * A kernel has one argument, a structure. What it calls is of the stand-in that
 * runs it: a process may have two.
 */
#ifndef STANDIN_DEVICE_H_
#define STANDIN_DEVICE_H_

#include <stddef.h>

/** What a kernel calls. */
typedef struct standin_calls {
    unsigned           (*thread)(void);
    unsigned           (*block)(void);
    unsigned           (*threads)(void); /**< Of a block */
    unsigned long long (*load)(unsigned long long address);
    void               (*store)(unsigned long long address,
                                unsigned long long value);
    unsigned long long (*add)(unsigned long long address,
                              unsigned long long value);
    void               (*get)(void *to, unsigned long long address,
                              size_t size);
    void               (*put)(unsigned long long address, const void *from,
                              size_t size);
    void               (*sync)(void);
    unsigned long long (*share)(unsigned long long value);
    void               (*pause)(void);
} standin_calls_t;

/** A kernel. */
typedef struct standin_kernel {
    const char *name; /**< NULL: behind the last one */
    size_t     size;  /**< Of its argument */
    void       (*run)(const standin_calls_t *calls, const void *args);
} standin_kernel_t;

/** Those of a shared object, which has this symbol. */
extern const standin_kernel_t standin_kernels[];

/* Of the thread of a kernel */
static __thread const standin_calls_t *standin_calls
        __attribute__((unused));

#define STANDIN_KERNEL(_name, _type) \
    static void standin_run_##_name(const standin_calls_t *calls, \
                                    const void *args) \
    { \
        standin_calls = calls; \
        _name(*(const _type*)args); \
    }

#define STANDIN_KERNEL_ENTRY(_name, _type) \
    {#_name, sizeof(_type), standin_run_##_name}

#define UCS_GSTREAM_FUNC static inline
#define UCS_GSTREAM_KERNEL static void
#define UCS_GSTREAM_THREAD() standin_calls->thread()
#define UCS_GSTREAM_BLOCK() standin_calls->block()
#define UCS_GSTREAM_RANK() standin_calls->thread()
#define UCS_GSTREAM_SIZE() standin_calls->threads()
#define UCS_GSTREAM_LOAD(_address) standin_calls->load(_address)
#define UCS_GSTREAM_STORE(_address, _value) \
    standin_calls->store(_address, _value)
#define UCS_GSTREAM_ADD(_address, _value) standin_calls->add(_address, _value)
#define UCS_GSTREAM_GET(_type, _address) \
    ({ _type _got; standin_calls->get(&_got, _address, sizeof(_got)); _got; })
#define UCS_GSTREAM_PUT(_type, _address, _value) \
    ({ _type _put = (_value); \
       standin_calls->put(_address, &_put, sizeof(_put)); })
#define UCS_GSTREAM_FENCE() __sync_synchronize()
#define UCS_GSTREAM_SYNC() standin_calls->sync()
#define UCS_GSTREAM_PAUSE() standin_calls->pause()
#define ucs_gstream_share(_value) standin_calls->share(_value)

#endif
