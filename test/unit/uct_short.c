/* SPDX-License-Identifier: BSD-3-Clause */
/* uct_short.c - the functions of UCX by which the transport has its memory,
 * with ours in front of them. */
#include "uct_short.h"
#include "st_intercept.h"

#include <ucs/debug/memtrack_int.h>

#include <stdlib.h>

int uct_short_left = -1;


static int is_failing(const void *caller)
{
    return (uct_short_left >= 0) &&
           (st_intercept_library(caller) & ST_INTERCEPT_TRIG) &&
           (uct_short_left-- == 0);
}

void *ucs_malloc(size_t size, const char *name)
{
    return is_failing(__builtin_return_address(0)) ? NULL : malloc(size);
}

void *ucs_calloc(size_t count, size_t size, const char *name)
{
    return is_failing(__builtin_return_address(0)) ? NULL :
                                                     calloc(count, size);
}
