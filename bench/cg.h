/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cg.h - conjugate gradients (Hestenes and Stiefel, 1952) for Poisson's
 * equation on a grid whose rows are divided among the ranks: a halo of two
 * neighbours and two sums over all ranks in each iteration.
 *
 *     halo       the rows at the borders of p
 *     apply      q = A p; the rank's part of p*q
 *     sum        p*q
 *     update     x += a p, r -= a q, with a = r*r / p*q; the part of r*r
 *     sum        r*r
 *     direction  p = r + b p, with b = new r*r / old r*r
 *
 * Used by the main thread or, in kernels, by the stream; the stream's order and
 * its synchronisation with the host protect it.
 */
#ifndef CG_H_
#define CG_H_

#include "bench_util.h"


/* Data of one rank. The kernels' argument. */
typedef struct cg_data {
    int    width;      /* Nodes in a row */
    int    rows;       /* Own rows */
    int    up;         /* Neighbours, or MPI_PROC_NULL */
    int    down;
    double *x;         /* (rows + 2) * width, as all vectors: the first and the
                          last row are the neighbours', or 0 */
    double *b;
    double *r;
    double *p;
    double *q;
    double part[2];    /* Of the two sums, this rank's */
    double sum[2];     /* Of all ranks: p*q, r*r */
    double rr;         /* r*r of the iteration before */
} cg_data_t;


typedef struct cg_ops cg_ops_t;

/* What a solver works with; made by ops->init(). */
typedef struct cg_solver {
    const cg_ops_t *ops;
    cg_data_t      *data;
    void           *stream;
    MPIX_Queue     queue;
    MPI_Request    halo[4];
    MPI_Request    sum[2];
    uint64_t       messages; /* Sends to neighbours that were started */
} cg_solver_t;


/* A variant. All slots are filled. */
struct cg_ops {
    const char *name;
    /* Makes and matches requests. Collective. */
    void       (*init)(cg_solver_t *cg);
    /* Runs 'count' iterations and blocks until they are done. Timed. */
    void       (*run)(cg_solver_t *cg, int count);
    /* Releases what init() made. */
    void       (*cleanup)(cg_solver_t *cg);
};

extern const cg_ops_t cg_mpi_ops;
extern const cg_ops_t cg_st_ops;


/* Divides the rows; returns 0, or -1 after printing why that cannot be. */
int cg_data_init(cg_data_t *data, int width, int height);

void cg_data_cleanup(cg_data_t *data);

/* Begins with x = 0. Collective. */
void cg_data_reset(cg_data_t *data);

/* Kernels; the argument is a cg_data_t. */
void cg_kernel_apply(void *arg);
void cg_kernel_update(void *arg);
void cg_kernel_direction(void *arg);

/* Computes b - A x anew. Returns 1 on every rank if that is not the r of the
 * iterations, if the next direction is not conjugate to the last one, or if
 * nothing was solved. Collective. */
uint64_t cg_check(cg_data_t *data);

#endif
