/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_buffer.h - the buffer of a persistent request.
 *
 * One that is contiguous in memory is sent from, or received into, where it is.
 * Another one is packed into memory of the library's by a command of the
 * stream, in each start of a send, and unpacked from there in each wait for a
 * receive: by a function of the host, or, if it lies in the memory of a device,
 * which the host does not touch, by one copy of blocks at equal distances.
 */
#ifndef MPIX_BUFFER_H_
#define MPIX_BUFFER_H_

#include "mpix_typemap.h"

#include <ucs_gstream_memory.h>
#include <ucs/type/status.h>


/* Constant but for what is noted. */
typedef struct mpix_buffer {
    int            refs;     /* The request's and its operation's; atomic */
    void           *address; /* The application's */
    void           *start;   /* What is sent or received; NULL for one that is
                                to be packed, until it is staged */
    void           *packed;  /* That memory, or NULL */
    size_t         length;   /* In bytes */
    size_t         actual;   /* Of a receive: what comes; set before the first
                                use */
    mpix_typemap_t *map;     /* NULL if it is contiguous */

    ucs_gstream_type_t    memory; /* Whose it was when mpix_buffer_check() was
                                called last; the lock */
    mpix_typemap_blocks_t blocks; /* In a device, and not contiguous; else the
                                     count is 0 */
} mpix_buffer_t;


/* Make a datatype, committed, of more elements than an int counts. Returns an
 * MPI code, which MPI has raised. */
int mpix_buffer_large_type(MPI_Count count, MPI_Datatype datatype,
                           MPI_Datatype *type_p);

/* Describe a buffer of so many elements. Returns an MPI code: MPI_ERR_TYPE for
 * a datatype that is not known. */
int mpix_buffer_create(const void *address, MPI_Count count,
                       MPI_Datatype datatype, mpix_buffer_t **buffer_p);

/* Where a buffer is in memory. Returns 0 if it is not contiguous, or nothing is
 * known of it. */
int mpix_buffer_is_contig(const void *address, MPI_Count count,
                          MPI_Datatype datatype, void **start_p,
                          size_t *length_p);

/* Look whose memory a buffer lies in. NULL, or why the library cannot move its
 * data, as the end of a sentence. */
const char *mpix_buffer_check(mpix_buffer_t *buffer);

/* Tell whether an application's buffer lies in the memory of a device, by its
 * first byte. */
int mpix_buffer_is_device(const void *address, MPI_Datatype datatype);

/* Copy the first 'length' bytes of a message from a buffer of a device to
 * memory, or the other way: called by a thread, not by a stream of a device. */
ucs_status_t mpix_buffer_copy(const mpix_buffer_t *buffer, void *memory,
                              size_t length, int is_pack);

/* Allocate what a buffer is packed into, if it needs that. */
ucs_status_t mpix_buffer_stage(mpix_buffer_t *buffer);

/* Drop a reference. From any thread. */
void mpix_buffer_put(void *buffer);

/* For the stream. */
void mpix_buffer_pack(void *buffer);
void mpix_buffer_unpack(void *buffer);

#endif
