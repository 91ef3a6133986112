/* SPDX-License-Identifier: BSD-3-Clause */
/* cg_data.c - the vectors, the kernels and the check. */
#include "cg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What rounding may do in some hundred iterations, of vectors' lengths */
#define CG_TOLERANCE 1e-9

/* What the check sums up over all ranks */
enum {
    CG_SUM_DIFF,     /* Square of the difference of b - A x and r */
    CG_SUM_B,        /* Square of b */
    CG_SUM_P,        /* Square of p */
    CG_SUM_Q,        /* Square of q, which is A times the p before */
    CG_SUM_PQ,       /* Their product */
    CG_SUM_DESCENT,  /* x (b + r): by how much the energy is below that of 0,
                        twice */
    CG_SUM_LAST
};


static size_t cg_length(const cg_data_t *data)
{
    return (size_t)(data->rows + 2) * data->width;
}

int cg_data_init(cg_data_t *data, int width, int height)
{
    double **const vectors[] = {&data->x, &data->b, &data->r, &data->p,
                                &data->q};
    int i, ranks, rank = bench_rank();
    size_t j;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (height < ranks) {
        bench_error("%d rows are too few for %d ranks\n", height, ranks);
        return -1;
    }

    data->width = width;
    data->rows  = (int)((long)height * (rank + 1) / ranks) -
                  (int)((long)height * rank / ranks);
    data->up    = (rank > 0) ? rank - 1 : MPI_PROC_NULL;
    data->down  = (rank < ranks - 1) ? rank + 1 : MPI_PROC_NULL;
    for (i = 0; i < 5; ++i) {
        *vectors[i] = bench_alloc(cg_length(data) * sizeof(double));
    }
    for (j = width; j < cg_length(data) - width; ++j) {
        data->b[j] = 1 + (double)((j * 7 + rank * 3) % 11);
    }
    return 0;
}

void cg_data_cleanup(cg_data_t *data)
{
    free(data->x);
    free(data->b);
    free(data->r);
    free(data->p);
    free(data->q);
}

/* The part of u*v of this rank's rows. */
static double cg_dot(const cg_data_t *data, const double *u, const double *v)
{
    double sum = 0;
    size_t i;

    for (i = data->width; i < cg_length(data) - data->width; ++i) {
        sum += u[i] * v[i];
    }
    return sum;
}

/* y = A u: the five-point difference, with zeros around the grid. */
static void cg_multiply(const cg_data_t *data, const double *u, double *y)
{
    const int width = data->width;
    const double *row;
    int i, j;

    for (j = 1; j <= data->rows; ++j) {
        row = &u[(size_t)j * width];
        for (i = 0; i < width; ++i) {
            y[(size_t)j * width + i] = 4 * row[i] - row[i - width] -
                                       row[i + width] -
                                       ((i > 0) ? row[i - 1] : 0) -
                                       ((i < width - 1) ? row[i + 1] : 0);
        }
    }
}

void cg_data_reset(cg_data_t *data)
{
    const size_t size = cg_length(data) * sizeof(double);

    memset(data->x, 0, size);
    memset(data->p, 0, size);
    memcpy(data->r, data->b, size);
    memcpy(data->p, data->b, size);
    data->rr = cg_dot(data, data->b, data->b);
    bench_check(MPI_Allreduce(MPI_IN_PLACE, &data->rr, 1, MPI_DOUBLE, MPI_SUM,
                              MPI_COMM_WORLD), "MPI_Allreduce");
}

void cg_kernel_apply(void *arg)
{
    cg_data_t *data = arg;

    cg_multiply(data, data->p, data->q);
    data->part[0] = cg_dot(data, data->p, data->q);
}

void cg_kernel_update(void *arg)
{
    cg_data_t *data    = arg;
    const double alpha = (data->sum[0] > 0) ? data->rr / data->sum[0] : 0;
    size_t i;

    for (i = data->width; i < cg_length(data) - data->width; ++i) {
        data->x[i] += alpha * data->p[i];
        data->r[i] -= alpha * data->q[i];
    }
    data->part[1] = cg_dot(data, data->r, data->r);
}

void cg_kernel_direction(void *arg)
{
    cg_data_t *data   = arg;
    const double beta = (data->rr > 0) ? data->sum[1] / data->rr : 0;
    size_t i;

    for (i = data->width; i < cg_length(data) - data->width; ++i) {
        data->p[i] = data->r[i] + beta * data->p[i];
    }
    data->rr = data->sum[1];
}

uint64_t cg_check(cg_data_t *data)
{
    const int width          = data->width;
    double sums[CG_SUM_LAST] = {0};
    double value;
    size_t i;

    sums[CG_SUM_P]  = cg_dot(data, data->p, data->p);
    sums[CG_SUM_Q]  = cg_dot(data, data->q, data->q);
    sums[CG_SUM_PQ] = cg_dot(data, data->p, data->q);
    bench_check(MPI_Sendrecv(&data->x[width], width, MPI_DOUBLE, data->up, 1,
                             &data->x[(size_t)(data->rows + 1) * width], width,
                             MPI_DOUBLE, data->down, 1, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE), "MPI_Sendrecv");
    bench_check(MPI_Sendrecv(&data->x[(size_t)data->rows * width], width,
                             MPI_DOUBLE, data->down, 2, data->x, width,
                             MPI_DOUBLE, data->up, 2, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE), "MPI_Sendrecv");
    cg_multiply(data, data->x, data->q);
    for (i = width; i < cg_length(data) - width; ++i) {
        value                 = data->b[i] - data->q[i] - data->r[i];
        sums[CG_SUM_DIFF]    += value * value;
        sums[CG_SUM_B]       += data->b[i] * data->b[i];
        sums[CG_SUM_DESCENT] += data->x[i] * (data->b[i] + data->r[i]);
    }
    bench_check(MPI_Allreduce(MPI_IN_PLACE, sums, CG_SUM_LAST, MPI_DOUBLE,
                              MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
    return !((sqrt(sums[CG_SUM_DIFF]) <=
              (CG_TOLERANCE * sqrt(sums[CG_SUM_B]))) &&
             (fabs(sums[CG_SUM_PQ]) <=
              (CG_TOLERANCE * sqrt(sums[CG_SUM_P] * sums[CG_SUM_Q]))) &&
             (sums[CG_SUM_DESCENT] > 0));
}
