/* SPDX-License-Identifier: BSD-3-Clause */
/* faces_grid.c - the periodic grid of ranks and its 26 directions. */
#include "faces.h"

#include <stdio.h>


/* Directions are numbered x first, from (-1,-1,-1) to (1,1,1), without 0. */
int faces_dir(int dir, int dim)
{
    static const int power[] = {1, 3, 9};
    int index                = (dir < FACES_NUM_DIRS / 2) ? dir : dir + 1;

    return ((index / power[dim]) % 3) - 1;
}

int faces_opposite(int dir)
{
    return FACES_NUM_DIRS - 1 - dir;
}

int faces_grid_rank(const faces_grid_t *grid, const int coord[3])
{
    int rank = 0;
    int dim, wrapped;

    for (dim = 2; dim >= 0; --dim) {
        wrapped = (coord[dim] + grid->size[dim]) % grid->size[dim];
        rank    = rank * grid->size[dim] + wrapped;
    }
    return rank;
}

static int faces_grid_parse(faces_grid_t *grid, const char *text, int ranks)
{
    int *size = grid->size;
    char end;

    if ((sscanf(text, "%dx%dx%d%c", &size[0], &size[1], &size[2], &end) != 3) ||
        (size[0] < 1) || (size[1] < 1) || (size[2] < 1)) {
        bench_error("--grid: '%s' is not of the form 4x2x1\n", text);
        return -1;
    }

    if ((size[0] > ranks) || (size[1] > ranks) || (size[2] > ranks) ||
        ((long)size[0] * size[1] * size[2] != ranks)) {
        bench_error("--grid: %s does not make %d ranks\n", text, ranks);
        return -1;
    }
    return 0;
}

static void faces_grid_locate(faces_grid_t *grid, int rank)
{
    int coord[3];
    int dir, dim;

    grid->coord[0] = rank % grid->size[0];
    grid->coord[1] = (rank / grid->size[0]) % grid->size[1];
    grid->coord[2] = rank / (grid->size[0] * grid->size[1]);

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        for (dim = 0; dim < 3; ++dim) {
            coord[dim] = grid->coord[dim] + faces_dir(dir, dim);
        }
        grid->neighbour[dir] = faces_grid_rank(grid, coord);
    }
}

int faces_grid_init(faces_grid_t *grid, const char *text, int rank, int ranks)
{
    int dim;

    if (text != NULL) {
        if (faces_grid_parse(grid, text, ranks) != 0) {
            return -1;
        }
    } else {
        for (dim = 0; dim < 3; ++dim) {
            grid->size[dim] = 0;
        }
        bench_check(MPI_Dims_create(ranks, 3, grid->size), "MPI_Dims_create");
    }

    faces_grid_locate(grid, rank);
    return 0;
}
