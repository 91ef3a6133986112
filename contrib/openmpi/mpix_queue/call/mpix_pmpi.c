/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_pmpi.c - the functions of MPI that this library has, as PMPI_X.
 */
#include "binding/mpix_next.h"

/* MPI_X is this library's own: it is linked with -Bsymbolic-functions. PMPI_X
 * is a macro here. */
#define MPIX_NEXT_PMPI(_name, _params, _args) \
    int mpix_next_##_name _params __asm__("PMPI_" #_name); \
    \
    int mpix_next_##_name _params \
    { \
        int rc; \
        \
        ++mpix_next_depth; \
        rc = MPI_##_name _args; \
        --mpix_next_depth; \
        return rc; \
    }

MPIX_NEXT_LIST(MPIX_NEXT_PMPI)
