/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_typemap_decode.c - how maps are made of what MPI tells about a datatype.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_typemap_decode.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* Datatypes of a struct are often the same as one of the last few */
#define MPIX_TYPEMAP_LOOK_BACK 8

#if MPI_VERSION >= 4
typedef MPI_Count mpix_typemap_int_t;
#  define mpix_typemap_type_size PMPI_Type_size_c
#else
typedef int mpix_typemap_int_t;
#  define mpix_typemap_type_size PMPI_Type_size_x
#endif

/* How many arguments a datatype was made of. */
typedef struct mpix_typemap_envelope {
    int                combiner;
    mpix_typemap_int_t ints;
    mpix_typemap_int_t addrs;
    mpix_typemap_int_t counts; /* Of MPI 4's calls with large counts */
    mpix_typemap_int_t types;
} mpix_typemap_envelope_t;

/* What a datatype was made of. */
typedef struct mpix_typemap_args {
    int                       combiner;
    MPI_Count                 *nums;  /* Integers, then addresses */
    size_t                    count;  /* Of types */
    MPI_Datatype              *types;
    MPI_Aint                  *extents;
    const mpix_typemap_node_t **nodes; /* Of types */
} mpix_typemap_args_t;


static void mpix_typemap_get_envelope(MPI_Datatype datatype,
                                      mpix_typemap_envelope_t *env)
{
#if MPI_VERSION >= 4
    PMPI_Type_get_envelope_c(datatype, &env->ints, &env->addrs, &env->counts,
                             &env->types, &env->combiner);
#else
    env->counts = 0;
    PMPI_Type_get_envelope(datatype, &env->ints, &env->addrs, &env->types,
                           &env->combiner);
#endif
}

static int mpix_typemap_is_predefined(int combiner)
{
    return (combiner == MPI_COMBINER_NAMED) ||
           (combiner == MPI_COMBINER_F90_REAL) ||
           (combiner == MPI_COMBINER_F90_COMPLEX) ||
           (combiner == MPI_COMBINER_F90_INTEGER);
}

const char *mpix_typemap_kind(MPI_Datatype datatype)
{
    mpix_typemap_envelope_t env;

    mpix_typemap_get_envelope(datatype, &env);
    switch (env.combiner) {
    case MPI_COMBINER_DUP:            return "duplicated";
    case MPI_COMBINER_CONTIGUOUS:     return "contiguous";
    case MPI_COMBINER_VECTOR:         return "vector";
    case MPI_COMBINER_HVECTOR:        return "hvector";
    case MPI_COMBINER_INDEXED:        return "indexed";
    case MPI_COMBINER_HINDEXED:       return "hindexed";
    case MPI_COMBINER_INDEXED_BLOCK:  return "indexed_block";
    case MPI_COMBINER_HINDEXED_BLOCK: return "hindexed_block";
    case MPI_COMBINER_STRUCT:         return "struct";
    case MPI_COMBINER_SUBARRAY:       return "subarray";
    case MPI_COMBINER_DARRAY:         return "darray";
    case MPI_COMBINER_RESIZED:        return "resized";
    default:
        return mpix_typemap_is_predefined(env.combiner) ? NULL : "derived";
    }
}

/* Datatypes that MPI defines with holes in them. */
#define MPIX_TYPEMAP_PAIR(_datatype, _type) \
    {_datatype, sizeof(_type), \
     ucs_offsetof(struct { _type value; int index; }, index)}

static const struct {
    MPI_Datatype datatype;
    size_t       size;  /* Of the value */
    size_t       index; /* Its place */
} mpix_typemap_pairs[] = {
    MPIX_TYPEMAP_PAIR(MPI_FLOAT_INT, float),
    MPIX_TYPEMAP_PAIR(MPI_DOUBLE_INT, double),
    MPIX_TYPEMAP_PAIR(MPI_LONG_INT, long),
    MPIX_TYPEMAP_PAIR(MPI_2INT, int),
    MPIX_TYPEMAP_PAIR(MPI_SHORT_INT, short),
    MPIX_TYPEMAP_PAIR(MPI_LONG_DOUBLE_INT, long double)
};

static const mpix_typemap_node_t *
mpix_typemap_decode_predefined(mpix_typemap_t *map, MPI_Datatype datatype)
{
    mpix_typemap_node_t *node = mpix_typemap_node(map, 2);
    MPI_Aint true_lb, true_extent;
    MPI_Count size;
    size_t i;

    if (node == NULL) {
        return NULL;
    }

    mpix_typemap_type_size(datatype, &size);
    PMPI_Type_get_true_extent(datatype, &true_lb, &true_extent);
    if (size == 0) {
        return node;
    } else if (size == true_extent) {
        mpix_typemap_add_run(node, true_lb, size);
        return node;
    }

    for (i = 0; i < ucs_static_array_size(mpix_typemap_pairs); ++i) {
        if (datatype == mpix_typemap_pairs[i].datatype) {
            mpix_typemap_add_run(node, 0, mpix_typemap_pairs[i].size);
            mpix_typemap_add_run(node, mpix_typemap_pairs[i].index,
                                 sizeof(int));
            return node;
        }
    }
    map->rc = MPI_ERR_TYPE;
    return NULL;
}

/* Puts all numbers into one array, in the order in which MPI 3.1 has them;
 * those of MPI 4's calls with large counts stand where the integers would. */
static int mpix_typemap_get_contents(MPI_Datatype datatype,
                                     const mpix_typemap_envelope_t *env,
                                     mpix_typemap_args_t *args)
{
    int *ints       = malloc((env->ints + 1) * sizeof(*ints));
    MPI_Aint *addrs = malloc((env->addrs + 1) * sizeof(*addrs));
    MPI_Count *num  = args->nums;
    int rc          = MPI_ERR_NO_MEM;
    mpix_typemap_int_t i, head;

    if ((ints == NULL) || (addrs == NULL)) {
        goto out;
    }

    head = (env->counts == 0) ? env->ints :
           (env->combiner == MPI_COMBINER_SUBARRAY) ? 1 :
           (env->combiner == MPI_COMBINER_DARRAY) ? 3 : 0;
#if MPI_VERSION >= 4
    rc = PMPI_Type_get_contents_c(datatype, env->ints, env->addrs, env->counts,
                                  env->types, ints, addrs, &args->nums[head],
                                  args->types);
#else
    rc = PMPI_Type_get_contents(datatype, env->ints, env->addrs, env->types,
                                ints, addrs, args->types);
#endif
    for (i = 0; (i < env->ints) && (rc == MPI_SUCCESS); ++i) {
        num[i + ((i < head) ? 0 : env->counts)] = ints[i];
    }
    for (i = 0; (i < env->addrs) && (rc == MPI_SUCCESS); ++i) {
        num[env->ints + env->counts + i] = addrs[i];
    }

out:
    free(addrs);
    free(ints);
    return rc;
}

/* The datatypes that MPI has handed out are ours to free. */
static void mpix_typemap_args_release(mpix_typemap_args_t *args)
{
    mpix_typemap_envelope_t env;
    size_t i;

    for (i = 0; i < args->count; ++i) {
        mpix_typemap_get_envelope(args->types[i], &env);
        if (!mpix_typemap_is_predefined(env.combiner)) {
            PMPI_Type_free(&args->types[i]);
        }
    }
}

static void mpix_typemap_args_free(mpix_typemap_args_t *args)
{
    free(args->nodes);
    free(args->extents);
    free(args->types);
    free(args->nums);
}

/* Gets what a datatype was made of, and decodes the datatypes among it. */
static int mpix_typemap_args_get(mpix_typemap_t *map, MPI_Datatype datatype,
                                 const mpix_typemap_envelope_t *env,
                                 mpix_typemap_args_t *args)
{
    MPI_Aint lb;
    size_t i, j;

    args->combiner = env->combiner;
    args->count    = 0;
    args->nums     = malloc((env->ints + env->addrs + env->counts + 1) *
                            sizeof(*args->nums));
    args->types    = malloc((env->types + 1) * sizeof(*args->types));
    args->extents  = malloc((env->types + 1) * sizeof(*args->extents));
    args->nodes    = calloc(env->types + 1, sizeof(*args->nodes));
    if ((args->nums == NULL) || (args->types == NULL) ||
        (args->extents == NULL) || (args->nodes == NULL)) {
        return MPI_ERR_NO_MEM;
    }

    map->rc = mpix_typemap_get_contents(datatype, env, args);
    if (map->rc != MPI_SUCCESS) {
        return map->rc;
    }

    args->count = env->types;
    for (i = 0; (i < args->count) && (map->rc == MPI_SUCCESS); ++i) {
        for (j = i - ucs_min(i, MPIX_TYPEMAP_LOOK_BACK);
             (j < i) && (args->types[j] != args->types[i]); ++j) {
        }
        args->nodes[i] = (j < i) ? args->nodes[j] :
                                   mpix_typemap_decode(map, args->types[i]);
        PMPI_Type_get_extent(args->types[i], &lb, &args->extents[i]);
    }
    return map->rc;
}

/* The n-th datatype of an array of arguments, repeated. */
static mpix_typemap_rep_t mpix_typemap_block(const mpix_typemap_args_t *args,
                                             size_t n, MPI_Count count)
{
    return (mpix_typemap_rep_t){
        .count = count, .stride = args->extents[n], .child = args->nodes[n]
    };
}

/* One node repeated: of a block of equal elements, say. */
static const mpix_typemap_node_t *
mpix_typemap_repeat(mpix_typemap_t *map, const mpix_typemap_rep_t *rep,
                    ptrdiff_t disp)
{
    mpix_typemap_node_t *node = mpix_typemap_node(map, 1);

    if (node != NULL) {
        mpix_typemap_add(node, rep, disp);
    }
    return node;
}

static const mpix_typemap_node_t *
mpix_typemap_decode_vector(mpix_typemap_t *map, const mpix_typemap_args_t *args)
{
    const MPI_Aint unit = (args->combiner == MPI_COMBINER_VECTOR) ?
                                  args->extents[0] :
                                  1;
    mpix_typemap_rep_t rep = mpix_typemap_block(args, 0, args->nums[1]);

    rep.child  = mpix_typemap_repeat(map, &rep, 0);
    rep.count  = args->nums[0];
    rep.stride = args->nums[2] * unit;
    return (rep.child == NULL) ? NULL : mpix_typemap_repeat(map, &rep, 0);
}

/* Blocks of any place and length: of all "indexed" ones, and of a struct. */
static const mpix_typemap_node_t *
mpix_typemap_decode_list(mpix_typemap_t *map, const mpix_typemap_args_t *args)
{
    const int is_block = (args->combiner == MPI_COMBINER_INDEXED_BLOCK) ||
                         (args->combiner == MPI_COMBINER_HINDEXED_BLOCK);
    const int is_struct    = (args->combiner == MPI_COMBINER_STRUCT);
    const MPI_Aint unit    = ((args->combiner == MPI_COMBINER_INDEXED) ||
                              (args->combiner == MPI_COMBINER_INDEXED_BLOCK)) ?
                                     args->extents[0] :
                                     1;
    const size_t count     = args->nums[0];
    const MPI_Count *lens  = &args->nums[1];
    const MPI_Count *disps = is_block ? &args->nums[2] : &lens[count];
    mpix_typemap_node_t *node;
    mpix_typemap_rep_t rep;
    size_t i;

    node = mpix_typemap_node(map, count);
    for (i = 0; (i < count) && (node != NULL); ++i) {
        rep = mpix_typemap_block(args, is_struct ? i : 0,
                                 is_block ? lens[0] : lens[i]);
        mpix_typemap_add(node, &rep, disps[i] * unit);
    }
    return node;
}

static const mpix_typemap_node_t *
mpix_typemap_decode_subarray(mpix_typemap_t *map,
                             const mpix_typemap_args_t *args)
{
    const MPI_Count dims      = args->nums[0];
    const MPI_Count *sizes    = &args->nums[1];
    const MPI_Count *subsizes = &sizes[dims];
    const MPI_Count *starts   = &subsizes[dims];
    const int is_c            = (starts[dims] == MPI_ORDER_C);
    mpix_typemap_rep_t rep    = mpix_typemap_block(args, 0, 1);
    MPI_Count i, dim;

    /* The dimension whose elements are neighbours comes first */
    for (i = 0; (i < dims) && (rep.child != NULL); ++i) {
        dim         = is_c ? (dims - 1 - i) : i;
        rep.count   = subsizes[dim];
        rep.child   = mpix_typemap_repeat(map, &rep, starts[dim] * rep.stride);
        rep.stride *= sizes[dim];
    }
    return rep.child;
}

/* A dimension of a distributed array. */
typedef struct mpix_typemap_dim {
    MPI_Count size;  /* Of the whole array */
    MPI_Count block; /* Elements of a block */
    MPI_Count procs;
    MPI_Count coord; /* Of the process */
} mpix_typemap_dim_t;

/* The blocks of one process, and what there is of its last one. */
static const mpix_typemap_node_t *
mpix_typemap_decode_dim(mpix_typemap_t *map, const mpix_typemap_dim_t *dim,
                        mpix_typemap_rep_t rep)
{
    const MPI_Count cycle = ucs_max(1, dim->block * dim->procs);
    const MPI_Count first = dim->coord * dim->block;
    const MPI_Count whole = dim->size / cycle;
    const MPI_Count rest  = dim->size - (whole * cycle) - first;
    const MPI_Aint stride = rep.stride;
    mpix_typemap_node_t *node;
    mpix_typemap_rep_t all;

    node      = mpix_typemap_node(map, 2);
    rep.count = dim->block;
    all.child = mpix_typemap_repeat(map, &rep, 0);
    if ((node == NULL) || (all.child == NULL)) {
        return NULL;
    }

    all.count  = whole;
    all.stride = cycle * stride;
    mpix_typemap_add(node, &all, first * stride);

    rep.count = ucs_max(0, ucs_min(rest, dim->block));
    mpix_typemap_add(node, &rep, (first + (whole * cycle)) * stride);
    return node;
}

static MPI_Count mpix_typemap_dim_block(MPI_Count distribution, MPI_Count arg,
                                        const mpix_typemap_dim_t *dim)
{
    if (distribution == MPI_DISTRIBUTE_NONE) {
        return dim->size;
    } else if (arg != MPI_DISTRIBUTE_DFLT_DARG) {
        return arg;
    }
    return (distribution == MPI_DISTRIBUTE_CYCLIC) ?
                   1 :
                   ((dim->size + dim->procs - 1) / dim->procs);
}

static const mpix_typemap_node_t *
mpix_typemap_decode_darray(mpix_typemap_t *map, const mpix_typemap_args_t *args)
{
    const MPI_Count dims       = args->nums[2];
    const MPI_Count *sizes     = &args->nums[3];
    const MPI_Count *distribs  = &sizes[dims];
    const MPI_Count *dist_args = &distribs[dims];
    const MPI_Count *procs     = &dist_args[dims];
    const int is_c             = (procs[dims] == MPI_ORDER_C);
    mpix_typemap_rep_t rep     = mpix_typemap_block(args, 0, 1);
    mpix_typemap_dim_t dim;
    MPI_Count i, j, n, before;

    for (i = 0; (i < dims) && (rep.child != NULL); ++i) {
        n = is_c ? (dims - 1 - i) : i;

        /* Processes are in the order of C, whatever that of the array is */
        for (before = 1, j = n + 1; j < dims; ++j) {
            before *= procs[j];
        }
        dim.size  = sizes[n];
        dim.procs = procs[n];
        dim.coord = (args->nums[1] / before) % procs[n];
        dim.block = mpix_typemap_dim_block(distribs[n], dist_args[n], &dim);

        rep.child   = mpix_typemap_decode_dim(map, &dim, rep);
        rep.stride *= sizes[n];
    }
    return rep.child;
}

static const mpix_typemap_node_t *
mpix_typemap_decode_args(mpix_typemap_t *map, const mpix_typemap_args_t *args)
{
    mpix_typemap_rep_t rep;

    switch (args->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return args->nodes[0];
    case MPI_COMBINER_CONTIGUOUS:
        rep = mpix_typemap_block(args, 0, args->nums[0]);
        return mpix_typemap_repeat(map, &rep, 0);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
        return mpix_typemap_decode_vector(map, args);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
    case MPI_COMBINER_STRUCT:
        return mpix_typemap_decode_list(map, args);
    case MPI_COMBINER_SUBARRAY:
        return mpix_typemap_decode_subarray(map, args);
    case MPI_COMBINER_DARRAY:
        return mpix_typemap_decode_darray(map, args);
    default:
        map->rc = MPI_ERR_TYPE;
        return NULL;
    }
}

const mpix_typemap_node_t *mpix_typemap_decode(mpix_typemap_t *map,
                                               MPI_Datatype datatype)
{
    const mpix_typemap_node_t *node = NULL;
    mpix_typemap_envelope_t env;
    mpix_typemap_args_t args;

    mpix_typemap_get_envelope(datatype, &env);
    if (mpix_typemap_is_predefined(env.combiner)) {
        return mpix_typemap_decode_predefined(map, datatype);
    }

    if (mpix_typemap_args_get(map, datatype, &env, &args) == MPI_SUCCESS) {
        node = mpix_typemap_decode_args(map, &args);
    } else if (map->rc == MPI_SUCCESS) {
        map->rc = MPI_ERR_NO_MEM;
    }
    mpix_typemap_args_release(&args);
    mpix_typemap_args_free(&args);
    return node;
}
