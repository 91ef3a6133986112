/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_mpis_mem.c - the calls of compat/stream-triggering.h for memory: of the
 * host, or of a device, which its runtime gives.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "compat/stream-triggering.h"
#include "binding/mpix_error.h"

#include <ucs_gstream.h>
#include <ucs_gstream_memory.h>

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define MPIX_MPIS_FINE "rocm:device:fine"


/* A runtime: both functions return 0 for success. */
typedef struct mpix_mpis_runtime {
    const char *kind;         /* Of memory, in front of a colon or the end */
    const char *libraries[5]; /* In this order, up to NULL */
    const char *alloc;        /* int (void **address, size_t size) */
    const char *free;         /* int (void *address) */
} mpix_mpis_runtime_t;

static const mpix_mpis_runtime_t mpix_mpis_runtimes[UCS_GSTREAM_TYPE_LAST] = {
    [UCS_GSTREAM_TYPE_HIP]  = {"rocm:device",
                               {"libamdhip64.so", "libamdhip64.so.7",
                                "libamdhip64.so.6", "libamdhip64.so.5", NULL},
                               "hipMalloc", "hipFree"},
    [UCS_GSTREAM_TYPE_CUDA] = {"cuda:device", {"libcuda.so.1", NULL},
                               "cuMemAlloc_v2", "cuMemFree_v2"}
};


/* A runtime's function; NULL if it is not there. It stays loaded: its memory
 * does, too. */
static void *mpix_mpis_find(const mpix_mpis_runtime_t *runtime,
                            const char *name)
{
    void *library = NULL;
    unsigned i;

    for (i = 0; (library == NULL) && (runtime->libraries[i] != NULL); ++i) {
        library = dlopen(runtime->libraries[i], RTLD_LAZY);
    }
    return (library == NULL) ? NULL : dlsym(library, name);
}

/* The runtime of a kind; that of the host if it is no device's. "coarse" is
 * what such memory is by default. */
static ucs_gstream_type_t mpix_mpis_type(const char *kind)
{
    const char *name, *rest;
    unsigned type;

    for (type = 0; type < UCS_GSTREAM_TYPE_LAST; ++type) {
        name = mpix_mpis_runtimes[type].kind;
        if ((name == NULL) || strncmp(kind, name, strlen(name))) {
            continue;
        }
        rest = kind + strlen(name);
        if ((*rest == '\0') || !strcmp(rest, ":coarse") ||
            !strcmp(kind, MPIX_MPIS_FINE)) {
            return (ucs_gstream_type_t)type;
        }
    }
    return UCS_GSTREAM_TYPE_HOST;
}

static int mpix_mpis_alloc_device(ucs_gstream_type_t type, const char *kind,
                                  size_t size, void **base_p)
{
    static const char func[]           = "MPIS_Alloc_mem";
    const mpix_mpis_runtime_t *runtime = &mpix_mpis_runtimes[type];
    int is_fine                        = !strcmp(kind, MPIX_MPIS_FINE);
    const char *name                   = is_fine ? "hipExtMallocWithFlags" :
                                                   runtime->alloc;
    int (*alloc)(void**, size_t)       = NULL;
    void *base                         = NULL;
    int (*alloc_fine)(void**, size_t, unsigned);
    ucs_gstream_type_attr_t attr;
    int result;

    if (ucs_gstream_query_type(type, &attr) == UCS_OK) {
        *(void**)&alloc = mpix_mpis_find(runtime, name);
    }
    if (alloc == NULL) {
        mpix_print_error(func, "no memory of kind \"%s\": %s", kind,
                         attr.reason);
        return MPIS_UNSUPPORTED_BEHAVIOR;
    }

    *(void**)&alloc_fine = *(void**)&alloc;
    result = is_fine ? alloc_fine(&base, size, 1) : /* FINEGRAINED */
                       alloc(&base, size);
    if (result != 0) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_NO_MEM,
                                    "%zu bytes of kind \"%s\": %s returns %d",
                                    size, kind, name, result));
    }
    *base_p = base;
    return MPIS_SUCCESS;
}

int MPIS_Alloc_mem(MPI_Aint size, MPI_Info info, void **baseptr)
{
    char kind[MPI_MAX_INFO_VAL] = "";
    ucs_gstream_type_t type;
    int flag = 0;

    if (info != MPI_INFO_NULL) {
        PMPI_Info_get(info, "mpi_memory_alloc_kinds", sizeof(kind) - 1, kind,
                      &flag);
    }
    if (!flag || !strcmp(kind, "system") || !strcmp(kind, "mpi")) {
        return MPI_Alloc_mem(size, MPI_INFO_NULL, baseptr);
    }

    type = mpix_mpis_type(kind);
    if (type == UCS_GSTREAM_TYPE_HOST) {
        mpix_print_error("MPIS_Alloc_mem",
                         "memory of kind \"%s\" is not supported, only "
                         "\"system\", \"mpi\", \"rocm:device\", "
                         "\"rocm:device:coarse\", \"" MPIX_MPIS_FINE "\" and "
                         "\"cuda:device\"", kind);
        return MPIS_UNSUPPORTED_BEHAVIOR;
    }
    return mpix_mpis_alloc_device(type, kind, (size_t)size, baseptr);
}

int MPIS_Free_mem(void *base)
{
    ucs_gstream_memory_attr_t attr = {.type = UCS_GSTREAM_TYPE_HOST};
    int (*release)(void*)          = NULL;
    int result;

    (void)ucs_gstream_memory_query(base, &attr);
    if (attr.type != UCS_GSTREAM_TYPE_HOST) {
        *(void**)&release = mpix_mpis_find(&mpix_mpis_runtimes[attr.type],
                                           mpix_mpis_runtimes[attr.type].free);
    }
    if (release == NULL) {
        return MPI_Free_mem(base);
    }

    result = release(base);
    return (result == 0) ?
                   MPIS_SUCCESS :
                   mpix_raise(MPI_COMM_NULL,
                              mpix_fail("MPIS_Free_mem", MPI_ERR_OTHER,
                                        "%s returns %d",
                                        mpix_mpis_runtimes[attr.type].free,
                                        result));
}
