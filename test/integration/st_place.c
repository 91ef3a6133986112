/* SPDX-License-Identifier: BSD-3-Clause */
/* st_place.c - a buffer of a test, in a device perhaps. */
#include "st_place.h"
#include "st_any.h"

#include <ucp_st.h>
#include <ucs_gstream_memory.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* What ST_TEST_MEMORY says; the empty text without streams of a GPU */
static const char *st_place_name(void)
{
    const char *name = getenv("ST_TEST_MEMORY");

    return ((name != NULL) && (st_any_type() != UCS_GSTREAM_TYPE_HOST)) ? name :
                                                                          "";
}

int st_place_is_set(void)
{
    return *st_place_name() != '\0';
}

/* A function of the runtime, which a stream has loaded */
static void *st_place_func(const char *hip, const char *cuda)
{
    int is_hip    = (st_any_type() == UCS_GSTREAM_TYPE_HIP);
    void *library = dlopen(is_hip ? "libamdhip64.so" : "libcuda.so.1",
                           RTLD_NOW | RTLD_LOCAL);

    return (library == NULL) ? NULL : dlsym(library, is_hip ? hip : cuda);
}

/* In the device's own context, whichever the caller's is */
static int st_place_enter(void)
{
    const ucs_gstream_memory_attr_t attr = {.type = st_any_type()};

    return ucs_gstream_memory_enter(&attr) == UCS_OK;
}

static ucs_status_t st_place_get_device(st_place_t *place)
{
    int (*get)(void **address, size_t length);

    *(void**)&get = st_place_func("hipMalloc", "cuMemAlloc_v2");
    return ((get != NULL) && st_place_enter() &&
            (get(&place->device, place->length) == 0)) ? UCS_OK :
                                                         UCS_ERR_NO_MEMORY;
}

static ucs_status_t st_place_get_shared(st_place_t *place)
{
    void *host          = NULL;
    ucs_status_t status = ucp_st_mem_alloc(place->length, &host);

    place->host = host;
    return status;
}

ucs_status_t st_place_get(st_place_t *place, size_t length)
{
    static unsigned turns;
    const char *name = st_place_name();

    place->device    = NULL;
    place->length    = length;
    place->is_shared = !strcmp(name, "shared") ||
                       (!strcmp(name, "mixed") &&
                        (__atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED) % 2));
    if (place->is_shared) {
        return st_place_get_shared(place);
    }
    if (!st_place_is_set()) {
        place->host = malloc(length);
        return (place->host == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
    }
    place->host = ucs_gstream_memory_get(length);
    return (place->host == NULL) ? UCS_ERR_NO_MEMORY :
                                   st_place_get_device(place);
}

void st_place_put(st_place_t *place)
{
    int (*put)(void *address);

    if (place->is_shared) {
        (void)ucp_st_mem_free(place->host);
    } else if (place->device == NULL) {
        free(place->host);
    } else {
        *(void**)&put = st_place_func("hipFree", "cuMemFree_v2");
        (void)st_place_enter();
        (void)put(place->device);
        ucs_gstream_memory_put(place->host, place->length);
    }
    memset(place, 0, sizeof(*place));
}

ucs_status_t st_place_fill(const st_place_t *place)
{
    return (place->device == NULL) ? UCS_OK :
           ucs_gstream_memory_copy(place->device, place->host, place->length);
}

ucs_status_t st_place_empty(const st_place_t *place)
{
    return (place->device == NULL) ? UCS_OK :
           ucs_gstream_memory_copy(place->host, place->device, place->length);
}

ucs_status_t st_place_store(const st_place_t *place, ucs_gstream_h stream)
{
    return (place->device == NULL) ? UCS_OK :
           ucs_gstream_enqueue_copy(stream, place->device, place->host,
                                    place->length);
}

ucs_status_t st_place_load(const st_place_t *place, ucs_gstream_h stream)
{
    return (place->device == NULL) ? UCS_OK :
           ucs_gstream_enqueue_copy(stream, place->host, place->device,
                                    place->length);
}
