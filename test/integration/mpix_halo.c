/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_halo.c - exchanges with all neighbours: in grids of 1 to 3 dimensions,
 * periodic or not, with and without corners, with listed neighbours, and
 * between the ghost cells of a field.
 */
#include "mpix_test.h"

#include <string.h>

#define MAX_SIDES 26
#define WORDS     20
#define STEPS     10
#define GHOSTS    2  /* Cells on each side of a field */
#define MAX_CELLS 24 /* In a dimension, with ghosts */


/* A halo with its buffers. The stream fills and checks them. */
typedef struct exchange {
    int            count;
    MPIX_Halo_side sides[MAX_SIDES];
    int            ranks[MAX_SIDES];    /* Expected; MPI_PROC_NULL: none */
    int            opposite[MAX_SIDES]; /* Side of the neighbour */
    int            send[MAX_SIDES][WORDS];
    int            recv[MAX_SIDES][WORDS];
    int            step;
    int            wrong;
    MPIX_Halo      halo;
} exchange_t;

static exchange_t ex;


static int word(int rank, int side, int step, int index)
{
    return (((rank * MAX_SIDES + side) * STEPS + step) * WORDS) + index;
}

/* Kernel: fills all send buffers. */
static void fill(void *arg)
{
    int i, j;

    for (i = 0; i < ex.count; ++i) {
        for (j = 0; j < WORDS; ++j) {
            ex.send[i][j] = word(mpix_test.rank, i, ex.step, j);
        }
    }
}

/* Kernel: checks what came from each neighbour, or that nothing came. */
static void verify(void *arg)
{
    int i, j, expected;

    for (i = 0; i < ex.count; ++i) {
        for (j = 0; j < WORDS; ++j) {
            expected  = (ex.ranks[i] == MPI_PROC_NULL) ?
                                -1 :
                                word(ex.ranks[i], ex.opposite[i], ex.step, j);
            ex.wrong += (ex.recv[i][j] != expected);
        }
    }
    ++ex.step;
}

static void exchange_init(int count)
{
    int i;

    memset(&ex, 0, sizeof(ex));
    memset(ex.recv, -1, sizeof(ex.recv));
    ex.count = count;
    for (i = 0; i < count; ++i) {
        ex.sides[i] = (MPIX_Halo_side){
            .sendbuf   = ex.send[i],
            .sendcount = WORDS,
            .sendtype  = MPI_INT,
            .recvbuf   = ex.recv[i],
            .recvcount = WORDS,
            .recvtype  = MPI_INT
        };
    }
}

/* Runs all steps without a wait of the host. */
static void exchange_run(const char *what)
{
    int i;

    for (i = 0; i < STEPS; ++i) {
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, fill, NULL));
        MPIX_OK(MPIX_Halo_start(ex.halo));
        MPIX_OK(MPIX_Halo_wait(ex.halo));
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, verify, NULL));
    }
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    MPIX_OK(MPIX_Halo_free(&ex.halo));
    MPIX_CHECK(ex.halo == MPIX_HALO_NULL, "the handle is still there");
    MPIX_CHECK((ex.wrong == 0) && (ex.step == STEPS), "%s: %d wrong words",
               what, ex.wrong);
}

/* The neighbour at an offset, computed in another way than the library. */
static int neighbour(MPI_Comm cart, int num_dims, const int *offset)
{
    int size[3], periodic[3], coord[3];
    int rank = 0;
    int dim;

    MPI_Cart_get(cart, num_dims, size, periodic, coord);
    for (dim = 0; dim < num_dims; ++dim) {
        coord[dim] += offset[dim];
        if (!periodic[dim] && ((coord[dim] < 0) || (coord[dim] >= size[dim]))) {
            return MPI_PROC_NULL;
        }
        rank = (rank * size[dim]) + ((coord[dim] + size[dim]) % size[dim]);
    }
    return rank;
}

/* Sides of faces: two for each dimension. */
static void expect_faces(MPI_Comm cart, int num_dims)
{
    int i;

    exchange_init(2 * num_dims);
    for (i = 0; i < ex.count; ++i) {
        int offset[3] = {0, 0, 0};

        offset[i / 2]  = (i % 2) ? 1 : -1;
        ex.ranks[i]    = neighbour(cart, num_dims, offset);
        ex.opposite[i] = i ^ 1;
    }
}

/* Sides all around: as loops over the offsets come to them. */
static void expect_all(MPI_Comm cart, int num_dims)
{
    int count = (num_dims == 2) ? 8 : 26;
    int i     = 0;
    int first = (num_dims == 2) ? 0 : -1;
    int last  = (num_dims == 2) ? 0 : 1;
    int x, y, z;

    exchange_init(count);
    for (x = first; x <= last; ++x) {
        for (y = -1; y <= 1; ++y) {
            for (z = -1; z <= 1; ++z) {
                const int offset[3] = {x, y, z};

                if (x || y || z) {
                    ex.ranks[i]    = neighbour(cart, num_dims,
                                               &offset[3 - num_dims]);
                    ex.opposite[i] = count - 1 - i;
                    ++i;
                }
            }
        }
    }
}

/* One grid, with each set of periodic dimensions; the communicator is freed
 * before its halo is used. */
static void run_grid(int num_dims, int with_corners)
{
    int sets[3], size[3], i, set;
    char what[64];
    MPI_Comm cart;

    for (set = 0; set < (1 << num_dims); ++set) {
        for (i = 0; i < num_dims; ++i) {
            sets[i] = (set >> i) & 1;
            size[i] = 0;
        }
        MPIX_OK(MPI_Dims_create(mpix_test.size, num_dims, size));
        MPIX_OK(MPI_Cart_create(MPI_COMM_WORLD, num_dims, size, sets, 0,
                                &cart));
        snprintf(what, sizeof(what), "%d dimensions, set %d", num_dims, set);
        if (with_corners) {
            expect_all(cart, num_dims);
        } else {
            expect_faces(cart, num_dims);
        }
        MPIX_OK(MPIX_Halo_init(cart, ex.count, ex.sides, mpix_test.queue,
                               &ex.halo));
        MPIX_OK(MPI_Comm_free(&cart));
        exchange_run(what);
    }
}

static void run_faces(void)
{
    run_grid(1, 0);
    run_grid(2, 0);
    run_grid(3, 0);
}

static void run_corners(void)
{
    run_grid(2, 1);
    run_grid(3, 1);
}

/* A ring: the left neighbour twice and none once, with tags; then without. */
static void run_list(void)
{
    const int ranks[]    = {mpix_test.left, MPI_PROC_NULL, mpix_test.right,
                            mpix_test.left, mpix_test.right};
    const int sendtags[] = {1, 0, 2, 3, 4};
    const int recvtags[] = {2, 0, 1, 4, 3};

    exchange_init(5);
    memcpy(ex.ranks, ranks, sizeof(ranks));
    memcpy(ex.opposite, (int[]){2, 0, 0, 4, 3}, sizeof(ranks));
    MPIX_OK(MPIX_Halo_init_list(MPI_COMM_WORLD, 5, ranks, sendtags, recvtags,
                                ex.sides, mpix_test.queue, &ex.halo));
    exchange_run("list with tags");

    /* Between two ranks, or with itself, the n-th meets the n-th */
    exchange_init(2);
    ex.ranks[0]    = mpix_test.left;
    ex.ranks[1]    = mpix_test.right;
    ex.opposite[0] = (mpix_test.size > 2);
    ex.opposite[1] = (mpix_test.size <= 2);
    MPIX_OK(MPIX_Halo_init_list(MPI_COMM_WORLD, 2, ex.ranks, NULL, NULL,
                                ex.sides, mpix_test.queue, &ex.halo));
    exchange_run("list without tags");

    exchange_init(0);
    MPIX_OK(MPIX_Halo_init_list(MPI_COMM_WORLD, 0, NULL, NULL, NULL, NULL,
                                mpix_test.queue, &ex.halo));
    exchange_run("no sides");
}

/* Ranks 1 and 2 have requests of their own, which rank 2 starts once rank 1 has
 * its message: that does not wait for rank 2. */
static void run_depends(void)
{
    const int is_last = (mpix_test.rank == 2);
    int sent[WORDS] = {0}, got[WORDS], token = 0;
    MPI_Request requests[2];
    int i;

    if ((mpix_test.size < 3) || (mpix_test.rank > 2)) {
        return;
    }
    if (mpix_test.rank == 0) {
        exchange_init(2);
        fill(NULL);
        MPIX_OK(MPIX_Halo_init_list(MPI_COMM_WORLD, 2, (int[]){1, 2},
                                    (int[]){1, 1}, (int[]){2, 2}, ex.sides,
                                    mpix_test.queue, &ex.halo));
        MPIX_OK(MPIX_Halo_start(ex.halo));
        MPIX_OK(MPIX_Halo_wait(ex.halo));
        mpix_test_queue_wait();
        MPIX_OK(MPIX_Halo_free(&ex.halo));
        return;
    }

    MPI_Recv_init(got, WORDS, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(sent, WORDS, MPI_INT, 0, 2, MPI_COMM_WORLD, &requests[1]);
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    if (is_last) {
        MPI_Recv(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
    mpix_test_queue_wait();
    if (!is_last) {
        MPI_Send(&token, 1, MPI_INT, 2, 3, MPI_COMM_WORLD);
    }
    for (i = 0; i < WORDS; ++i) {
        MPIX_CHECK(got[i] == word(0, is_last, 0, i), "word %d is %d", i,
                   got[i]);
    }
    MPIX_OK(MPI_Request_free(&requests[0]));
    MPIX_OK(MPI_Request_free(&requests[1]));
}

/* A part of a field that is spread over a grid, with ghost cells all around. At
 * (x, y) of the grid it has 4 + x by 3 + y cells of its own. */
typedef struct field {
    MPI_Comm cart;
    int      with_corners;
    int      coord[2];
    int      size[2]; /* Without ghosts */
    int      is_periodic[2];
    int      grid[2];
    int      step;
    int      wrong;
    int      cells[MAX_CELLS][MAX_CELLS];
} field_t;

static field_t field;


/* Cells of its own that a rank has. */
static int cells_of(int dim, int coord)
{
    return 4 - dim + coord;
}

/* What the owner has in a cell, which is counted without its ghosts. */
static int field_value(const int coord[2], int i, int j)
{
    int rank = (coord[0] * field.grid[1]) + coord[1];

    return (((field.step * 64) + rank) * MAX_CELLS + i) * MAX_CELLS + j;
}

/* Kernel: computes the own cells. */
static void field_fill(void *arg)
{
    int i, j;

    for (i = 0; i < field.size[0]; ++i) {
        for (j = 0; j < field.size[1]; ++j) {
            field.cells[GHOSTS + i][GHOSTS + j] = field_value(field.coord, i,
                                                              j);
        }
    }
}

/* The neighbour that has a cell, in one dimension, and which of its cells that
 * is. Returns 0 beyond the border. */
static int field_owner(int dim, int place, int *coord, int *cell)
{
    int offset = (place < GHOSTS)                      ? -1 :
                 (place >= (GHOSTS + field.size[dim])) ? 1 :
                                                         0;
    int there  = field.coord[dim] + offset;

    if (!field.is_periodic[dim] &&
        ((there < 0) || (there >= field.grid[dim]))) {
        return 0;
    }

    *coord = (there + field.grid[dim]) % field.grid[dim];
    *cell  = (offset < 0) ? cells_of(dim, *coord) - GHOSTS + place :
             (offset > 0) ? place - GHOSTS - field.size[dim] :
                            place - GHOSTS;
    return 1;
}

/* What has to be in a cell, own or ghost: -1 if nothing came. */
static int field_expected(int i, int j)
{
    int is_ghost_row    = (i < GHOSTS) || (i >= (GHOSTS + field.size[0]));
    int is_ghost_column = (j < GHOSTS) || (j >= (GHOSTS + field.size[1]));
    int coord[2], cell[2];

    if ((is_ghost_row && is_ghost_column && !field.with_corners) ||
        !field_owner(0, i, &coord[0], &cell[0]) ||
        !field_owner(1, j, &coord[1], &cell[1])) {
        return -1;
    }
    return field_value(coord, cell[0], cell[1]);
}

/* Kernel: checks all cells. */
static void field_verify(void *arg)
{
    int i, j;

    for (i = 0; i < (field.size[0] + 2 * GHOSTS); ++i) {
        for (j = 0; j < (field.size[1] + 2 * GHOSTS); ++j) {
            field.wrong += (field.cells[i][j] != field_expected(i, j));
        }
    }
    ++field.step;
}

/* The part of the field at an offset: own cells, or ghosts. */
static MPI_Datatype field_type(int x, int y, int is_ghost)
{
    const int whole[2]  = {MAX_CELLS, MAX_CELLS};
    const int offset[2] = {x, y};
    int size[2], start[2], dim;
    MPI_Datatype type;

    for (dim = 0; dim < 2; ++dim) {
        size[dim]  = (offset[dim] == 0) ? field.size[dim] : GHOSTS;
        start[dim] = (offset[dim] == 1) ? field.size[dim] : GHOSTS;
        if (is_ghost) {
            start[dim] += offset[dim] * GHOSTS;
        }
    }
    MPI_Type_create_subarray(2, whole, size, start, MPI_ORDER_C, MPI_INT,
                             &type);
    MPI_Type_commit(&type);
    return type;
}

static MPIX_Halo_side field_side(int x, int y)
{
    return (MPIX_Halo_side){
        .sendbuf   = field.cells,
        .sendcount = 1,
        .sendtype  = field_type(x, y, 0),
        .recvbuf   = field.cells,
        .recvcount = 1,
        .recvtype  = field_type(x, y, 1)
    };
}

/* The sides, in the order of MPIX_Halo_init; returns how many. */
static int field_sides(MPIX_Halo_side *sides)
{
    int count = 0;
    int x, y;

    if (!field.with_corners) {
        sides[count++] = field_side(-1, 0);
        sides[count++] = field_side(1, 0);
        sides[count++] = field_side(0, -1);
        sides[count++] = field_side(0, 1);
        return count;
    }

    for (x = -1; x <= 1; ++x) {
        for (y = -1; y <= 1; ++y) {
            if (x || y) {
                sides[count++] = field_side(x, y);
            }
        }
    }
    return count;
}

/* Makes the halo of a field; its types are gone when it is used. */
static void field_halo_init(MPIX_Halo *halo)
{
    MPIX_Halo_side sides[8];
    int i, count;

    count = field_sides(sides);
    MPIX_OK(MPIX_Halo_init(field.cart, count, sides, mpix_test.queue, halo));
    for (i = 0; i < count; ++i) {
        MPI_Type_free(&sides[i].sendtype);
        MPI_Type_free(&sides[i].recvtype);
    }
}

static void field_init(int set, int with_corners)
{
    int dim;

    memset(&field, 0, sizeof(field));
    memset(field.cells, -1, sizeof(field.cells));
    field.with_corners   = with_corners;
    field.is_periodic[0] = set & 1;
    field.is_periodic[1] = set >> 1;
    MPIX_OK(MPI_Dims_create(mpix_test.size, 2, field.grid));
    MPIX_OK(MPI_Cart_create(MPI_COMM_WORLD, 2, field.grid, field.is_periodic, 0,
                            &field.cart));
    MPI_Cart_coords(field.cart, mpix_test.rank, 2, field.coord);
    for (dim = 0; dim < 2; ++dim) {
        field.size[dim] = cells_of(dim, field.coord[dim]);
    }
}

/* Ghost cells come from where they are, without a buffer of the application. */
static void run_field(void)
{
    int set, i;
    MPIX_Halo halo;

    for (set = 0; set < 8; ++set) {
        field_init(set & 3, set >> 2);
        field_halo_init(&halo);
        for (i = 0; i < STEPS; ++i) {
            MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, field_fill,
                                            NULL));
            MPIX_OK(MPIX_Halo_start(halo));
            MPIX_OK(MPIX_Halo_wait(halo));
            MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, field_verify,
                                            NULL));
        }
        MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
        MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
        MPIX_OK(MPIX_Halo_free(&halo));
        MPIX_CHECK((field.wrong == 0) && (field.step == STEPS),
                   "field, set %d: %d wrong cells", set, field.wrong);
        MPI_Comm_free(&field.cart);
    }
}

/* Freed too early, it cannot be started any more and is freed later. */
static void run_early_free(void)
{
    static int is_released;

    exchange_init(1);
    ex.ranks[0] = mpix_test.size - 1 - mpix_test.rank;
    MPIX_OK(MPIX_Halo_init_list(MPI_COMM_WORLD, 1, ex.ranks, NULL, NULL,
                                ex.sides, mpix_test.queue, &ex.halo));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Halo_wait(ex.halo));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold,
                                    &is_released));
    MPIX_OK(MPIX_Halo_start(ex.halo));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Halo_start(ex.halo));
    MPIX_OK(MPIX_Halo_wait(ex.halo));
    MPIX_IS(MPI_ERR_PENDING, MPIX_Halo_free(&ex.halo));
    MPIX_CHECK(ex.halo != MPIX_HALO_NULL, "the handle is gone");
    MPIX_IS(MPI_ERR_ARG, MPIX_Halo_start(ex.halo));

    __atomic_store_n(&is_released, 1, __ATOMIC_RELEASE);
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Halo_free(&ex.halo));
}

/* All of these make no halo, and leave no request behind for others. */
static void run_refused(void)
{
    const MPIX_Halo unset = (MPIX_Halo)&ex;
    int size[2] = {0}, periods[2] = {1, 1}, ranks[2] = {0, 0};
    MPIX_Queue queue      = mpix_test.queue;
    MPI_Comm cart;
    MPIX_Halo halo;

    MPI_Dims_create(mpix_test.size, 2, size);
    MPI_Cart_create(MPI_COMM_WORLD, 2, size, periods, 0, &cart);
    MPI_Comm_set_errhandler(cart, MPI_ERRORS_RETURN);
    expect_faces(cart, 2);
    ex.halo = unset;

    MPIX_IS(MPI_ERR_TOPOLOGY, MPIX_Halo_init(MPI_COMM_WORLD, 4, ex.sides, queue,
                                             &ex.halo));
    MPIX_IS(MPI_ERR_COUNT, MPIX_Halo_init(cart, 6, ex.sides, queue, &ex.halo));
    MPIX_IS(MPI_ERR_COUNT, MPIX_Halo_init(cart, -1, ex.sides, queue, &ex.halo));
    MPIX_IS(MPI_ERR_COMM, MPIX_Halo_init(MPI_COMM_NULL, 4, ex.sides, queue,
                                         &ex.halo));
    MPIX_IS(MPI_ERR_ARG, MPIX_Halo_init(cart, 4, NULL, queue, &ex.halo));
    MPIX_IS(MPI_ERR_ARG, MPIX_Halo_init(cart, 4, ex.sides, queue, NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Halo_init(cart, 4, ex.sides, (MPIX_Queue)&ex,
                                        &ex.halo));
    MPIX_IS(MPI_ERR_ARG, MPIX_Halo_init_list(cart, 2, NULL, NULL, NULL,
                                             ex.sides, queue, &ex.halo));
    ranks[1] = mpix_test.size;
    MPIX_IS(MPI_ERR_RANK, MPIX_Halo_init_list(cart, 2, ranks, NULL, NULL,
                                              ex.sides, queue, &ex.halo));
    ex.sides[3].sendcount = -1;
    MPIX_IS(MPI_ERR_COUNT, MPIX_Halo_init(cart, 4, ex.sides, queue, &ex.halo));
    ex.sides[3].sendcount = WORDS + 1; /* All ranks: all receives are short */
    MPIX_IS(MPI_ERR_TRUNCATE, MPIX_Halo_init(cart, 4, ex.sides, queue,
                                             &ex.halo));
    MPIX_CHECK(ex.halo == unset, "the handle was written");

    halo = unset;
    MPIX_IS(MPI_ERR_ARG, MPIX_Halo_start(halo));
    MPIX_IS(MPI_ERR_ARG, MPIX_Halo_wait(MPIX_HALO_NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Halo_free(&halo));
    MPIX_IS(MPI_ERR_ARG, MPIX_Halo_free(NULL));

    expect_faces(cart, 2);
    MPIX_OK(MPIX_Halo_init(cart, 4, ex.sides, queue, &ex.halo));
    exchange_run("after errors");
    MPI_Comm_free(&cart);
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"faces", run_faces},
        {"corners", run_corners},
        {"list", run_list},
        {"depends", run_depends},
        {"field", run_field},
        {"early_free", run_early_free},
        {"refused", run_refused},
        {NULL, NULL}
    };

    mpix_test_init(&argc, &argv);
    mpix_test_cases(cases, argc, argv);
    return mpix_test_end("mpix_halo");
}
