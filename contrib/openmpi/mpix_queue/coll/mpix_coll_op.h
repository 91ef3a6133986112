/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_coll_op.h - reductions that a stream runs.
 *
 * The thread of a stream may not call MPI, unless MPI was initialised with
 * MPI_THREAD_MULTIPLE. So predefined operations on integers and floating-point
 * numbers are functions of this library; others go through MPI_Reduce_local.
 */
#ifndef MPIX_COLL_OP_H_
#define MPIX_COLL_OP_H_

#include <mpi.h>
#include <ucp_st.h>

#include <stddef.h>


/* inout[i] = in[i] op inout[i] */
typedef void (*mpix_coll_op_func_t)(const void *in, void *inout, size_t count);

/* Constant. */
typedef struct mpix_coll_op {
    mpix_coll_op_func_t func;        /* NULL: by MPI */
    MPI_Op              op;
    MPI_Datatype        datatype;
    size_t              size;        /* Of an element, with its gaps */
    int                 is_commutative;
} mpix_coll_op_t;


/* Find out how to reduce elements of a datatype. Returns NULL, or why a stream
 * cannot. */
const char *mpix_coll_op_init(mpix_coll_op_t *op, MPI_Op handle,
                              MPI_Datatype datatype);

/* Find out of what numbers of one kind a datatype is made. Returns 0 if it is
 * made of others, or of several kinds. */
int mpix_coll_op_number(MPI_Datatype datatype, ucp_st_number_t *number_p);

/* Reduce so many elements. */
void mpix_coll_op_run(const mpix_coll_op_t *op, const void *in, void *inout,
                      size_t count);

#endif
