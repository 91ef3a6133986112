/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_real.h - the function behind one that a test program puts in its place.
 */
#ifndef ST_REAL_H_
#define ST_REAL_H_

#include <dlfcn.h>
#include <stddef.h>

/** The next function of this name behind the program's own. It is looked up by
 *  the first call; threads that do so at once find the same (relaxed: nothing
 *  else is read by way of it). */
static inline void *st_real_find(void **func_p, const char *name)
{
    void *func = __atomic_load_n(func_p, __ATOMIC_RELAXED);

    if (func == NULL) {
        func = dlsym(RTLD_NEXT, name);
        __atomic_store_n(func_p, func, __ATOMIC_RELAXED);
    }
    return func;
}

/** That function, to be called with the arguments of the program's own. */
#define ST_REAL(_name) \
    ({ \
        static void *_name##_func; \
        (__typeof__(&_name))st_real_find(&_name##_func, #_name); \
    })

#endif
