/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_typemap_decode.h - how maps are made of what MPI tells about a datatype.
 */
#ifndef MPIX_TYPEMAP_DECODE_H_
#define MPIX_TYPEMAP_DECODE_H_

#include "mpix_typemap.h"

struct mpix_typemap_node;

typedef struct mpix_typemap_part {
    ptrdiff_t                      disp;   /* Behind the node's place, bytes */
    size_t                         count;  /* Of repetitions; of bytes */
    ptrdiff_t                      stride; /* From one to the next, bytes */
    const struct mpix_typemap_node *child; /* NULL: a run of bytes */
} mpix_typemap_part_t;

typedef struct mpix_typemap_node {
    struct mpix_typemap_node *next; /* In the list of all of the map */
    size_t                   size;  /* In a message, bytes */
    size_t                   count; /* Of parts */
    mpix_typemap_part_t      parts[];
} mpix_typemap_node_t;

struct mpix_typemap {
    mpix_typemap_node_t *root;
    mpix_typemap_node_t *nodes; /* All; some may be in no tree */
    int                 rc;     /* Why one could not be made */
};

/* A node to be repeated. */
typedef struct mpix_typemap_rep {
    size_t                    count;
    MPI_Aint                  stride; /* In bytes */
    const mpix_typemap_node_t *child;
} mpix_typemap_rep_t;


/* Make a node with room for so many parts. NULL if there is no memory. */
mpix_typemap_node_t *mpix_typemap_node(mpix_typemap_t *map, size_t max);

/* Add a part to a node that has room, unless it has no bytes; 'disp' is that of
 * the first repetition. */
void mpix_typemap_add(mpix_typemap_node_t *node, const mpix_typemap_rep_t *rep,
                      ptrdiff_t disp);

/* Add a run of bytes to a node that has room. */
void mpix_typemap_add_run(mpix_typemap_node_t *node, ptrdiff_t disp,
                          size_t length);

/* Make the node of one element of a datatype. NULL on an error, which is in the
 * map. */
const mpix_typemap_node_t *mpix_typemap_decode(mpix_typemap_t *map,
                                               MPI_Datatype datatype);

#endif
