/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_box.c - boxes of cells, their faces and their neighbours. */
#include "bench_box.h"
#include "bench_util.h"

#include <stdlib.h>
#include <string.h>


void bench_box_init(bench_box_t *box)
{
    box->cells = bench_alloc(bench_box_bytes(box));
    box->next  = bench_alloc(bench_box_bytes(box));
}

void bench_box_cleanup(bench_box_t *box)
{
    free(box->cells);
    free(box->next);
}

void bench_box_swap(bench_box_t *box)
{
    double *cells = box->cells;

    box->cells = box->next;
    box->next  = cells;
}

size_t bench_box_face_length(const bench_box_t *box, int side)
{
    size_t length = sizeof(double);
    int dim;

    for (dim = 0; dim < BENCH_BOX_DIMS; ++dim) {
        length *= (dim == side / 2) ? 1 : box->size[dim];
    }
    return length;
}

void bench_box_copy_face(bench_box_t *box, int side, int is_inside,
                         double *face)
{
    int dim                  = side / 2;
    int from[BENCH_BOX_DIMS] = {1, 1, 1};
    int to[BENCH_BOX_DIMS];
    int x, y, z;

    memcpy(to, box->size, sizeof(to));
    from[dim] = (side % 2) ? box->size[dim] + !is_inside : is_inside;
    to[dim]   = from[dim];
    for (x = from[0]; x <= to[0]; ++x) {
        for (y = from[1]; y <= to[1]; ++y) {
            for (z = from[2]; z <= to[2]; ++z, ++face) {
                if (is_inside) {
                    *face = box->cells[bench_box_at(box, x, y, z)];
                } else {
                    box->cells[bench_box_at(box, x, y, z)] = *face;
                }
            }
        }
    }
}

void bench_box_place(const int *grid, int rank, int *place)
{
    place[2] = rank % grid[2];
    place[1] = rank / grid[2] % grid[1];
    place[0] = rank / grid[2] / grid[1];
}

int bench_box_neighbour(const int *grid, int rank, int side, int is_periodic)
{
    const int dim = side / 2;
    int place[BENCH_BOX_DIMS];

    bench_box_place(grid, rank, place);
    place[dim] += (side % 2) ? 1 : -1;
    if ((place[dim] < 0) || (place[dim] >= grid[dim])) {
        if (!is_periodic) {
            return -1;
        }
        place[dim] = (place[dim] + grid[dim]) % grid[dim];
    }
    return (place[0] * grid[1] + place[1]) * grid[2] + place[2];
}
