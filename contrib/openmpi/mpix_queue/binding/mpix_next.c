/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_next.c - what lies behind the functions of MPI that this library has.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_next.h"

#include <dlfcn.h>
#include <stddef.h>

mpix_next_t mpix_next_mpi;
mpix_next_t mpix_next_pmpi;

__thread int mpix_next_depth __attribute__((tls_model("initial-exec")));


/* A program may have linked MPI in front of this library. */
static void *mpix_next_find(const char *name)
{
    void *func = dlsym(RTLD_NEXT, name);

    return (func != NULL) ? func : dlsym(RTLD_DEFAULT, name);
}

#define MPIX_NEXT_LOAD(_name, _params, _args) \
    mpix_next_mpi._name  = mpix_next_find("MPI_" #_name); \
    mpix_next_pmpi._name = mpix_next_find("PMPI_" #_name);

static void __attribute__((constructor)) mpix_next_load(void)
{
    MPIX_NEXT_LIST(MPIX_NEXT_LOAD)
}
