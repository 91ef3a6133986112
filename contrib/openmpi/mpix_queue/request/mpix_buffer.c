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

static ucs_gstream_type_t mpix_buffer_type_at(uintptr_t place)
{
    ucs_gstream_memory_attr_t attr = {.type = UCS_GSTREAM_TYPE_HOST};

    (void)ucs_gstream_memory_query((const void*)place, &attr);
    return attr.type;
}

/* Keeps whose memory a part lies in; non-zero, to end the search, if it is a
 * device's. */
static int mpix_buffer_look(void *arg, ptrdiff_t disp)
{
    mpix_buffer_t *buffer = arg;

    buffer->memory = mpix_buffer_type_at((uintptr_t)buffer->address + disp);
    return buffer->memory != UCS_GSTREAM_TYPE_HOST;
}

const char *mpix_buffer_check(mpix_buffer_t *buffer)
{
    buffer->memory       = UCS_GSTREAM_TYPE_HOST;
    buffer->blocks.count = 0;
    if (buffer->length == 0) {
        return NULL;
    }
    if (buffer->map == NULL) {
        buffer->memory = mpix_buffer_type_at((uintptr_t)buffer->start);
        return NULL;
    }
    if (!mpix_typemap_find(buffer->map, mpix_buffer_look, buffer)) {
        return NULL;
    }
    if (!mpix_typemap_is_blocks(buffer->map, &buffer->blocks)) {
        buffer->blocks.count = 0;
        return "with gaps that are not equal: have a kernel pack it, or send "
               "equal blocks";
    }
    if (buffer->blocks.stride > UCS_GSTREAM_PITCH_MAX) {
        buffer->blocks.count = 0;
        return "with blocks more than 2147483647 bytes apart: have a kernel "
               "pack it";
    }
    return NULL;
}

int mpix_buffer_is_device(const void *address, MPI_Datatype datatype)
{
    MPI_Aint lb, extent;

    if ((datatype == MPI_DATATYPE_NULL) || (address == MPI_IN_PLACE) ||
        (PMPI_Type_get_true_extent(datatype, &lb, &extent) != MPI_SUCCESS)) {
        return 0;
    }
    return mpix_buffer_type_at((uintptr_t)address + lb) !=
           UCS_GSTREAM_TYPE_HOST;
}

/* One copy to or from the buffer, at a place. */
static ucs_status_t mpix_buffer_copy_run(uintptr_t place, void *memory,
                                         size_t length, int is_pack)
{
    return is_pack ?
                   ucs_gstream_memory_copy(memory, (void*)place, length) :
                   ucs_gstream_memory_copy((void*)place, memory, length);
}

ucs_status_t mpix_buffer_copy(const mpix_buffer_t *buffer, void *memory,
                              size_t length, int is_pack)
{
    const mpix_typemap_blocks_t *blocks = &buffer->blocks;
    const size_t count                  = (blocks->count == 0) ?
                                                  0 :
                                                  length / blocks->block;
    uintptr_t place                     = (uintptr_t)buffer->start;
    ucs_gstream_rect_t rect;
    ucs_status_t status;

    if (blocks->count == 0) {
        return mpix_buffer_copy_run(place, memory, length, is_pack);
    }

    place          = (uintptr_t)buffer->address + blocks->disp;
    rect.dst_pitch = is_pack ? blocks->block : (size_t)blocks->stride;
    rect.src_pitch = is_pack ? (size_t)blocks->stride : blocks->block;
    rect.width     = blocks->block;
    rect.height    = count;
    status         = is_pack ?
                             ucs_gstream_memory_copy2d(memory, (void*)place,
                                                       &rect) :
                             ucs_gstream_memory_copy2d((void*)place, memory,
                                                       &rect);
    if (status != UCS_OK) {
        return status;
    }

    /* Of a receive: a part of the next block */
    return mpix_buffer_copy_run(place + (count * blocks->stride),
                                (char*)memory + (count * blocks->block),
                                length % blocks->block, is_pack);
}

ucs_status_t mpix_buffer_stage(mpix_buffer_t *buffer)
{
    if (buffer->map == NULL) {
        return UCS_OK;
    }
    if (buffer->blocks.count > 0) {
        buffer->start = (void*)((uintptr_t)buffer->address +
                                buffer->blocks.disp);
        return UCS_OK;
    }
    if (buffer->packed == NULL) {
        buffer->packed = malloc(buffer->length);
    }
    buffer->start = buffer->packed;
    return (buffer->packed == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void mpix_buffer_put(void *arg)
{
    mpix_buffer_t *buffer = arg;

    if (__atomic_sub_fetch(&buffer->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }

    if (buffer->map != NULL) {
        mpix_typemap_destroy(buffer->map);
        free(buffer->packed);
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
