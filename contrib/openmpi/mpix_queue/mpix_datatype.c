/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_datatype.c - where the bytes of an MPI buffer are.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_datatype.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>


/* A type without holes may still send its bytes in another order, or some of
 * them twice: pack one item whose bytes are known. Neighbouring bytes differ,
 * and so do neighbouring blocks of 256. */
static int mpix_datatype_packs_in_order(MPI_Datatype datatype, MPI_Aint true_lb,
                                        size_t size)
{
    int is_same = 0;
    int position = 0;
    uint8_t *in, *out;
    size_t i;

    in  = malloc(size);
    out = malloc(size);
    if ((in != NULL) && (out != NULL) && (size <= INT_MAX)) {
        for (i = 0; i < size; ++i) {
            in[i] = i + (i >> 8) * 7 + (i >> 16) * 11;
        }

        is_same = (PMPI_Pack(in - true_lb, 1, datatype, out, size, &position,
                             MPI_COMM_SELF) == MPI_SUCCESS) &&
                  ((size_t)position == size) && !memcmp(in, out, size);
    }

    free(out);
    free(in);
    return is_same;
}

static int mpix_datatype_is_named(MPI_Datatype datatype)
{
    int integers, addresses, datatypes, combiner;

    PMPI_Type_get_envelope(datatype, &integers, &addresses, &datatypes,
                           &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

int mpix_datatype_is_contig(const void *buffer, int count,
                            MPI_Datatype datatype, void **start_p,
                            size_t *length_p)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Count size;

    mpix_datatype_size(datatype, &size);
    PMPI_Type_get_extent(datatype, &lb, &extent);
    PMPI_Type_get_true_extent(datatype, &true_lb, &true_extent);

    if ((count == 0) || (size == 0)) {
        *start_p  = NULL;
        *length_p = 0;
        return 1;
    }

    if ((size != true_extent) || ((count > 1) && (size != extent)) ||
        (!mpix_datatype_is_named(datatype) &&
         !mpix_datatype_packs_in_order(datatype, true_lb, size))) {
        return 0;
    }

    *start_p  = (char*)buffer + true_lb;
    *length_p = (size_t)size * count;
    return 1;
}
