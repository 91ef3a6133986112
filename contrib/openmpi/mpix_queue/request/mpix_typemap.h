/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_typemap.h - where the bytes of an MPI buffer are, in the order in which
 * MPI sends them.
 *
 * A map is a tree: a node has parts, one behind the other in the message. Each
 * is a run of bytes, or another node repeated at equal distances. What is
 * contiguous in memory and in the message is one run, so that the map is seldom
 * larger than the arguments that the datatype was made of, and large counts
 * cost nothing.
 *
 * Once made, a map is read only, and needs MPI no more: any thread packs and
 * unpacks.
 */
#ifndef MPIX_TYPEMAP_H_
#define MPIX_TYPEMAP_H_

#include <mpi.h>

#include <stddef.h>


/* The map of a buffer. */
typedef struct mpix_typemap mpix_typemap_t;


/* Make the map of 'count' elements of a datatype. MPI_ERR_TYPE for a datatype
 * that is not known; MPI_ERR_NO_MEM. */
int mpix_typemap_create(MPI_Count count, MPI_Datatype datatype,
                        mpix_typemap_t **map_p);

void mpix_typemap_destroy(mpix_typemap_t *map);

/* Bytes of a message. */
size_t mpix_typemap_size(const mpix_typemap_t *map);

/* Non-zero if the bytes are one after the other in memory, in the order in
 * which MPI sends them; then 'disp_p' is filled with the first one's place in
 * the buffer. No bytes are contiguous. */
int mpix_typemap_is_contig(const mpix_typemap_t *map, ptrdiff_t *disp_p);

/* Blocks of bytes. */
typedef struct mpix_typemap_blocks {
    ptrdiff_t disp;   /* Of the first one, behind the buffer, bytes */
    size_t    block;  /* Of one, bytes */
    size_t    count;
    ptrdiff_t stride; /* From one to the next, bytes */
} mpix_typemap_blocks_t;

/* Non-zero if the bytes lie in blocks of one length, each of which begins at
 * the same distance behind the one before: the blocks do not overlap, and their
 * order is that of a message. No bytes are no blocks. */
int mpix_typemap_is_blocks(const mpix_typemap_t *map,
                           mpix_typemap_blocks_t *blocks);

/* Call a function with the place of the first byte of each part of the map,
 * once for all repetitions, until it returns other than 0; what it returned
 * last. */
int mpix_typemap_find(const mpix_typemap_t *map,
                      int (*func)(void *arg, ptrdiff_t disp), void *arg);

/* Call a function with each run of bytes, in the order of a message, until it
 * returns other than 0; what it returned last. */
int mpix_typemap_walk(const mpix_typemap_t *map,
                      int (*func)(void *arg, ptrdiff_t disp, size_t length),
                      void *arg);

/* Copy the bytes of a buffer to 'packed', which has room for all. */
void mpix_typemap_pack(const mpix_typemap_t *map, const void *buffer,
                       void *packed);

/* Copy the first 'length' bytes of a message to a buffer. */
void mpix_typemap_unpack(const mpix_typemap_t *map, void *buffer,
                         const void *packed, size_t length);

/* What a message calls a datatype: "vector", "struct"; NULL for one of MPI's
 * own, which has a name and is never freed. */
const char *mpix_typemap_kind(MPI_Datatype datatype);

#endif
