/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loaded.c - libraries that the process has loaded.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* dl_iterate_phdr(), dlmopen() */
#endif

#include "ucs_loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>


/* UCX replaces dlopen() once it has a module for ROCm. Its own looks for a name
 * in folders first, and a file there hides the library of that name which was
 * loaded from elsewhere. It leaves dlmopen() alone. */
void *ucs_loaded_open(const char *name)
{
    return dlmopen(LM_ID_BASE, name, RTLD_LAZY | RTLD_NOLOAD);
}

static int ucs_loaded_count(struct dl_phdr_info *info, size_t size, void *arg)
{
    uint64_t *count_p = arg;

    if (size >= (offsetof(struct dl_phdr_info, dlpi_adds) +
                 sizeof(info->dlpi_adds))) {
        *count_p = info->dlpi_adds;
    }
    return 1; /* The first library knows it */
}

int ucs_loaded_has_new(uint64_t *count_p)
{
    uint64_t last = *count_p;

    *count_p = 0;
    (void)dl_iterate_phdr(ucs_loaded_count, count_p);
    return (*count_p == 0) || (*count_p != last);
}
