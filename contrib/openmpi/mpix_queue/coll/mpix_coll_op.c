/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_coll_op.c - reductions that a stream runs.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_coll_op.h"
#include "request/mpix_typemap.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* The function of an operation on a C type. 'a' is the left operand. */
#define MPIX_OP_FUNC(_op, _name, _type, _expr) \
    static void mpix_op_##_op##_##_name(const void *in, void *inout, \
                                        size_t count) \
    { \
        const _type *x = in; \
        _type *y       = inout; \
        size_t i; \
        \
        for (i = 0; i < count; ++i) { \
            const _type a = x[i]; \
            const _type b = y[i]; \
            \
            y[i] = (_type)(_expr); \
        } \
    }

#define MPIX_OP_FUNCS_ARITH(_name, _type) \
    MPIX_OP_FUNC(max, _name, _type, (a > b) ? a : b) \
    MPIX_OP_FUNC(min, _name, _type, (a < b) ? a : b) \
    MPIX_OP_FUNC(sum, _name, _type, a + b) \
    MPIX_OP_FUNC(prod, _name, _type, a * b)

#define MPIX_OP_FUNCS_LOGICAL(_name, _type) \
    MPIX_OP_FUNC(land, _name, _type, a && b) \
    MPIX_OP_FUNC(lor, _name, _type, a || b) \
    MPIX_OP_FUNC(lxor, _name, _type, !a != !b)

#define MPIX_OP_FUNCS_BITS(_name, _type) \
    MPIX_OP_FUNC(band, _name, _type, a & b) \
    MPIX_OP_FUNC(bor, _name, _type, a | b) \
    MPIX_OP_FUNC(bxor, _name, _type, a ^ b)

/* Sums and products of integers wrap around: they are computed unsigned and, as
 * the narrow ones are promoted to int, at least as wide as unsigned. */
#define MPIX_OP_FUNCS_INTEGER(_name, _type, _wide) \
    MPIX_OP_FUNC(max, _name, _type, (a > b) ? a : b) \
    MPIX_OP_FUNC(min, _name, _type, (a < b) ? a : b) \
    MPIX_OP_FUNC(sum, _name, _type, (_wide)a + (_wide)b) \
    MPIX_OP_FUNC(prod, _name, _type, (_wide)a * (_wide)b) \
    MPIX_OP_FUNCS_LOGICAL(_name, _type) \
    MPIX_OP_FUNCS_BITS(_name, _type)

MPIX_OP_FUNCS_INTEGER(i8, int8_t, uint32_t)
MPIX_OP_FUNCS_INTEGER(i16, int16_t, uint32_t)
MPIX_OP_FUNCS_INTEGER(i32, int32_t, uint32_t)
MPIX_OP_FUNCS_INTEGER(i64, int64_t, uint64_t)
MPIX_OP_FUNCS_INTEGER(u8, uint8_t, uint32_t)
MPIX_OP_FUNCS_INTEGER(u16, uint16_t, uint32_t)
MPIX_OP_FUNCS_INTEGER(u32, uint32_t, uint32_t)
MPIX_OP_FUNCS_INTEGER(u64, uint64_t, uint64_t)
MPIX_OP_FUNCS_ARITH(f32, float)
MPIX_OP_FUNCS_ARITH(f64, double)
MPIX_OP_FUNCS_ARITH(flong, long double)
MPIX_OP_FUNCS_LOGICAL(logic, bool)


/* Kinds of elements; integers in the order of their sizes. */
typedef enum {
    MPIX_ELEM_I8,
    MPIX_ELEM_I16,
    MPIX_ELEM_I32,
    MPIX_ELEM_I64,
    MPIX_ELEM_U8,
    MPIX_ELEM_U16,
    MPIX_ELEM_U32,
    MPIX_ELEM_U64,
    MPIX_ELEM_F32,
    MPIX_ELEM_F64,
    MPIX_ELEM_FLONG,
    MPIX_ELEM_BOOL,
    MPIX_ELEM_LAST
} mpix_elem_t;

#define MPIX_OP_ROW_BITS(_op) \
    { \
        mpix_op_##_op##_i8, mpix_op_##_op##_i16, mpix_op_##_op##_i32, \
        mpix_op_##_op##_i64, mpix_op_##_op##_u8, mpix_op_##_op##_u16, \
        mpix_op_##_op##_u32, mpix_op_##_op##_u64, NULL, NULL, NULL, NULL \
    }

#define MPIX_OP_ROW_LOGICAL(_op) \
    { \
        mpix_op_##_op##_i8, mpix_op_##_op##_i16, mpix_op_##_op##_i32, \
        mpix_op_##_op##_i64, mpix_op_##_op##_u8, mpix_op_##_op##_u16, \
        mpix_op_##_op##_u32, mpix_op_##_op##_u64, NULL, NULL, NULL, \
        mpix_op_##_op##_logic \
    }

#define MPIX_OP_ROW_ARITH(_op) \
    { \
        mpix_op_##_op##_i8, mpix_op_##_op##_i16, mpix_op_##_op##_i32, \
        mpix_op_##_op##_i64, mpix_op_##_op##_u8, mpix_op_##_op##_u16, \
        mpix_op_##_op##_u32, mpix_op_##_op##_u64, mpix_op_##_op##_f32, \
        mpix_op_##_op##_f64, mpix_op_##_op##_flong, NULL \
    }


/* Handles need not be constants: NULL if the operation has no function here. */
static const mpix_coll_op_func_t *mpix_coll_op_row(MPI_Op op)
{
    static const mpix_coll_op_func_t rows[][MPIX_ELEM_LAST] = {
        MPIX_OP_ROW_ARITH(max),    MPIX_OP_ROW_ARITH(min),
        MPIX_OP_ROW_ARITH(sum),    MPIX_OP_ROW_ARITH(prod),
        MPIX_OP_ROW_LOGICAL(land), MPIX_OP_ROW_LOGICAL(lor),
        MPIX_OP_ROW_LOGICAL(lxor), MPIX_OP_ROW_BITS(band),
        MPIX_OP_ROW_BITS(bor),     MPIX_OP_ROW_BITS(bxor)
    };
    const MPI_Op ops[] = {
        MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_LOR, MPI_LXOR,
        MPI_BAND, MPI_BOR, MPI_BXOR
    };
    size_t i;

    for (i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i) {
        if (ops[i] == op) {
            return rows[i];
        }
    }
    return NULL;
}

static int mpix_coll_op_is_one_of(MPI_Datatype datatype,
                                  const MPI_Datatype *datatypes)
{
    for (; *datatypes != MPI_DATATYPE_NULL; ++datatypes) {
        if (*datatypes == datatype) {
            return 1;
        }
    }
    return 0;
}

static mpix_elem_t mpix_coll_op_elem(MPI_Datatype datatype, size_t size)
{
    const MPI_Datatype ints[] = {
        MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG,
        MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_AINT,
        MPI_OFFSET, MPI_COUNT, MPI_INTEGER, MPI_DATATYPE_NULL
    };
    const MPI_Datatype unsigneds[] = {
        MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
        MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T,
        MPI_UINT64_T, MPI_BYTE, MPI_DATATYPE_NULL
    };
    const MPI_Datatype reals[] = {
        MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION,
        MPI_DATATYPE_NULL
    };
    unsigned log2size = (size >= 8) ? 3 : (size >= 4) ? 2 : (size >= 2);

    if (size == (1u << log2size)) {
        if (mpix_coll_op_is_one_of(datatype, ints)) {
            return MPIX_ELEM_I8 + log2size;
        } else if (mpix_coll_op_is_one_of(datatype, unsigneds)) {
            return MPIX_ELEM_U8 + log2size;
        } else if (mpix_coll_op_is_one_of(datatype, reals)) {
            return (size == sizeof(float)) ? MPIX_ELEM_F32 : MPIX_ELEM_F64;
        }
    }
    if ((datatype == MPI_LONG_DOUBLE) && (size == sizeof(long double))) {
        return MPIX_ELEM_FLONG;
    }
    return (datatype == MPI_C_BOOL) ? MPIX_ELEM_BOOL : MPIX_ELEM_LAST;
}

/* The number that a datatype of MPI's own is. */
static int mpix_coll_op_named_number(MPI_Datatype datatype,
                                     ucp_st_number_t *number_p)
{
    static const ucp_st_number_t numbers[] = {
        [MPIX_ELEM_I8]  = UCP_ST_NUMBER_INT8,
        [MPIX_ELEM_I16] = UCP_ST_NUMBER_INT16,
        [MPIX_ELEM_I32] = UCP_ST_NUMBER_INT32,
        [MPIX_ELEM_I64] = UCP_ST_NUMBER_INT64,
        [MPIX_ELEM_U8]  = UCP_ST_NUMBER_INT8,
        [MPIX_ELEM_U16] = UCP_ST_NUMBER_INT16,
        [MPIX_ELEM_U32] = UCP_ST_NUMBER_INT32,
        [MPIX_ELEM_U64] = UCP_ST_NUMBER_INT64,
        [MPIX_ELEM_F32] = UCP_ST_NUMBER_FLOAT,
        [MPIX_ELEM_F64] = UCP_ST_NUMBER_DOUBLE
    };
    mpix_elem_t elem;
    int size;

    PMPI_Type_size(datatype, &size);
    elem = mpix_coll_op_elem(datatype, size);
    if ((elem > MPIX_ELEM_F64) || (datatype == MPI_BYTE)) {
        return 0;
    }
    *number_p = numbers[elem];
    return 1;
}

/* What one datatype was made of. */
static int mpix_coll_op_inner_number(MPI_Datatype datatype, int num_ints,
                                     int num_aints, int num_datatypes,
                                     ucp_st_number_t *number_p)
{
    int *ints               = malloc((num_ints + 1) * sizeof(*ints));
    MPI_Aint *aints         = malloc((num_aints + 1) * sizeof(*aints));
    MPI_Datatype *datatypes = malloc((num_datatypes + 1) * sizeof(*datatypes));
    int is_good             = (ints != NULL) && (aints != NULL) &&
                              (datatypes != NULL) && (num_datatypes > 0);
    ucp_st_number_t number  = UCP_ST_NUMBER_INT8;
    int i;

    if (is_good) {
        PMPI_Type_get_contents(datatype, num_ints, num_aints, num_datatypes,
                               ints, aints, datatypes);
        for (i = 0; i < num_datatypes; ++i) {
            is_good   = is_good && mpix_coll_op_number(datatypes[i], &number) &&
                        ((i == 0) || (number == *number_p));
            *number_p = number;
            if (mpix_typemap_kind(datatypes[i]) != NULL) {
                PMPI_Type_free(&datatypes[i]); /* It is none of MPI's own */
            }
        }
    }
    free(ints);
    free(aints);
    free(datatypes);
    return is_good;
}

int mpix_coll_op_number(MPI_Datatype datatype, ucp_st_number_t *number_p)
{
    int num_ints, num_aints, num_datatypes, combiner;

    PMPI_Type_get_envelope(datatype, &num_ints, &num_aints, &num_datatypes,
                           &combiner);
    return (mpix_typemap_kind(datatype) == NULL) ?
                   mpix_coll_op_named_number(datatype, number_p) :
                   mpix_coll_op_inner_number(datatype, num_ints, num_aints,
                                             num_datatypes, number_p);
}

const char *mpix_coll_op_init(mpix_coll_op_t *op, MPI_Op handle,
                              MPI_Datatype datatype)
{
    const mpix_coll_op_func_t *row = mpix_coll_op_row(handle);
    MPI_Aint lb, extent, true_lb, true_extent;
    mpix_elem_t elem;
    int level;

    PMPI_Type_get_extent(datatype, &lb, &extent);
    PMPI_Type_get_true_extent(datatype, &true_lb, &true_extent);
    PMPI_Op_commutative(handle, &op->is_commutative);
    op->op       = handle;
    op->datatype = datatype;
    op->size     = extent;
    if ((lb != 0) || (true_lb < 0) || ((true_lb + true_extent) > extent)) {
        return "the elements of a datatype are not one behind the other";
    }

    elem     = mpix_coll_op_elem(datatype, extent);
    op->func = ((row != NULL) && (elem != MPIX_ELEM_LAST)) ? row[elem] : NULL;
    if (op->func == NULL) {
        PMPI_Query_thread(&level);
        if (level < MPI_THREAD_MULTIPLE) {
            return "a stream calls MPI for this operation on this datatype, "
                   "which needs MPI_THREAD_MULTIPLE: call MPI_Init_thread";
        }
    }
    return NULL;
}

void mpix_coll_op_run(const mpix_coll_op_t *op, const void *in, void *inout,
                      size_t count)
{
    int part;

    if (op->func != NULL) {
        op->func(in, inout, count);
        return;
    }

    for (; count > 0; count -= part) {
        part = (count < INT_MAX) ? (int)count : INT_MAX;
        PMPI_Reduce_local(in, inout, part, op->datatype, op->op);
        in    = (const char*)in + part * op->size;
        inout = (char*)inout + part * op->size;
    }
}
