/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_buffer.c - the buffer of a persistent request.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_buffer.h"

#include <stdint.h>
#include <stdlib.h>

/* Elements of a block, where there are more than an int counts */
#define MPIX_BUFFER_BLOCK (1 << 30)


int mpix_buffer_large_type(MPI_Count count, MPI_Datatype datatype,
                           MPI_Datatype *type_p)
{
    const MPI_Count blocks = count / MPIX_BUFFER_BLOCK;
    int lengths[2]         = {blocks, count % MPIX_BUFFER_BLOCK};
    MPI_Datatype types[2]  = {MPI_DATATYPE_NULL, datatype};
    MPI_Aint displs[2]     = {0, 0};
    MPI_Aint lb, extent;
    int rc;

    rc = PMPI_Type_get_extent(datatype, &lb, &extent);
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Type_contiguous(MPIX_BUFFER_BLOCK, datatype, &types[0]);
    }
    if (rc == MPI_SUCCESS) {
        displs[1] = blocks * MPIX_BUFFER_BLOCK * extent;
        rc = PMPI_Type_create_struct(2, lengths, displs, types, type_p);
        PMPI_Type_free(&types[0]);
    }
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Type_commit(type_p);
    }
    return rc;
}

int mpix_buffer_create(const void *address, MPI_Count count,
                       MPI_Datatype datatype, mpix_buffer_t **buffer_p)
{
    mpix_buffer_t *buffer = calloc(1, sizeof(*buffer));
    ptrdiff_t disp;
    int rc;

    if (buffer == NULL) {
        return MPI_ERR_NO_MEM;
    }

    rc = mpix_typemap_create(count, datatype, &buffer->map);
    if (rc != MPI_SUCCESS) {
        free(buffer);
        return rc;
    }

    buffer->refs    = 1;
    buffer->address = (void*)address;
    buffer->length  = mpix_typemap_size(buffer->map);
    buffer->actual  = buffer->length;
    if (mpix_typemap_is_contig(buffer->map, &disp)) {
        mpix_typemap_destroy(buffer->map);
        buffer->map   = NULL;
        buffer->start = (buffer->length == 0) ?
                                NULL :
                                (void*)((uintptr_t)address + disp);
    }
    *buffer_p = buffer;
    return MPI_SUCCESS;
}

int mpix_buffer_is_contig(const void *address, MPI_Count count,
                          MPI_Datatype datatype, void **start_p,
                          size_t *length_p)
{
    mpix_buffer_t *buffer;
    int is_contig;

    if (mpix_buffer_create(address, count, datatype, &buffer) != MPI_SUCCESS) {
        return 0;
    }

    is_contig = (buffer->map == NULL);
    *start_p  = buffer->start;
    *length_p = buffer->length;
    mpix_buffer_put(buffer);
    return is_contig;
}

ucs_status_t mpix_buffer_stage(mpix_buffer_t *buffer)
{
    if ((buffer->map != NULL) && (buffer->start == NULL)) {
        buffer->start = malloc(buffer->length);
        if (buffer->start == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    return UCS_OK;
}

void mpix_buffer_put(void *arg)
{
    mpix_buffer_t *buffer = arg;

    if (__atomic_sub_fetch(&buffer->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }

    if (buffer->map != NULL) {
        mpix_typemap_destroy(buffer->map);
        free(buffer->start);
    }
    free(buffer);
}

void mpix_buffer_pack(void *arg)
{
    mpix_buffer_t *buffer = arg;

    mpix_typemap_pack(buffer->map, buffer->address, buffer->start);
}

void mpix_buffer_unpack(void *arg)
{
    mpix_buffer_t *buffer = arg;

    mpix_typemap_unpack(buffer->map, buffer->address, buffer->start,
                        buffer->actual);
}
