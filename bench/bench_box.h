/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_box.h - cells of a box in three dimensions with a layer of others
 * around them, and its faces as messages. Side 2 d is below in dimension d,
 * 2 d + 1 above. Callers protect a box.
 */
#ifndef BENCH_BOX_H_
#define BENCH_BOX_H_

#include <stddef.h>

#define BENCH_BOX_DIMS  3
#define BENCH_BOX_SIDES 6


/* The last dimension is contiguous. */
typedef struct bench_box {
    int    size[BENCH_BOX_DIMS]; /* Without the layer */
    double *cells;
    double *next;                /* Of the next iteration */
} bench_box_t;


/* Index of a cell, counted with the layer. */
static inline size_t bench_box_at(const bench_box_t *box, int x, int y, int z)
{
    return ((size_t)x * (box->size[1] + 2) + y) * (box->size[2] + 2) + z;
}

/* Bytes of all cells. */
static inline size_t bench_box_bytes(const bench_box_t *box)
{
    return bench_box_at(box, box->size[0] + 2, 0, 0) * sizeof(double);
}

/* Allocates both sets of cells, zeroed; the size is set. */
void bench_box_init(bench_box_t *box);
void bench_box_cleanup(bench_box_t *box);

/* Has the next cells be the cells. */
void bench_box_swap(bench_box_t *box);

/* Bytes of a face. */
size_t bench_box_face_length(const bench_box_t *box, int side);

/* Copies a layer of cells: the box's own ones at a side to a buffer with
 * 'is_inside', else a buffer to those around it. */
void bench_box_copy_face(bench_box_t *box, int side, int is_inside,
                         double *face);

/* The rank at a side of one in a grid of ranks, or whatever is numbered so;
 * -1 at the edge of the grid, or the one at its other end. */
int bench_box_neighbour(const int *grid, int rank, int side, int is_periodic);

/* Where a rank is in the grid. */
void bench_box_place(const int *grid, int rank, int *place);

#endif
