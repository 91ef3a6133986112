/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_typemap.c - where the bytes of an MPI buffer are, in the order in which
 * MPI sends them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_typemap.h"
#include "mpix_typemap_decode.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>


mpix_typemap_node_t *mpix_typemap_node(mpix_typemap_t *map, size_t max)
{
    mpix_typemap_node_t *node = NULL;

    if (max <= ((SIZE_MAX / 2) / sizeof(*node->parts))) {
        node = malloc(sizeof(*node) + (max * sizeof(*node->parts)));
    }
    if (node == NULL) {
        map->rc = MPI_ERR_NO_MEM;
        return NULL;
    }

    node->next  = map->nodes;
    map->nodes  = node;
    node->size  = 0;
    node->count = 0;
    return node;
}

/* The only run of a node; NULL if it has something else. */
static const mpix_typemap_part_t *
mpix_typemap_only_run(const mpix_typemap_node_t *node)
{
    return ((node->count == 1) && (node->parts[0].child == NULL)) ?
                   &node->parts[0] :
                   NULL;
}

/* Writes a part, that begins 'disp' bytes behind the buffer, in the shortest
 * way. */
static mpix_typemap_part_t mpix_typemap_reduce(const mpix_typemap_rep_t *rep,
                                               ptrdiff_t disp)
{
    const mpix_typemap_node_t *child = rep->child;
    const mpix_typemap_part_t *only  = (child->count == 1) ? &child->parts[0] :
                                                             NULL;
    mpix_typemap_part_t part         = {
        .disp = disp, .count = rep->count, .stride = rep->stride, .child = child
    };

    if ((only != NULL) && (rep->count == 1)) {
        part       = *only;
        part.disp += disp;
    } else if ((only != NULL) && (only->child == NULL) &&
               (rep->stride == (ptrdiff_t)only->count)) {
        /* Runs that touch each other are one */
        part.disp  += only->disp;
        part.count *= only->count;
        part.child  = NULL;
    } else if ((only != NULL) && (only->child != NULL) &&
               (rep->stride == (ptrdiff_t)only->count * only->stride)) {
        /* The next row begins where the last one's next element would be */
        part.disp   += only->disp;
        part.count  *= only->count;
        part.stride  = only->stride;
        part.child   = only->child;
    }
    return part;
}

void mpix_typemap_add(mpix_typemap_node_t *node, const mpix_typemap_rep_t *rep,
                      ptrdiff_t disp)
{
    mpix_typemap_part_t part, *last;

    if ((rep->count == 0) || (rep->child->size == 0)) {
        return;
    }

    part        = mpix_typemap_reduce(rep, disp);
    last        = (node->count == 0) ? NULL : &node->parts[node->count - 1];
    node->size += rep->count * rep->child->size;
    if ((part.child == NULL) && (last != NULL) && (last->child == NULL) &&
        (part.disp == (last->disp + (ptrdiff_t)last->count))) {
        last->count += part.count;
    } else {
        node->parts[node->count++] = part;
    }
}

void mpix_typemap_add_run(mpix_typemap_node_t *node, ptrdiff_t disp,
                          size_t length)
{
    node->parts[node->count++] = (mpix_typemap_part_t){
        .disp = disp, .count = length
    };
    node->size += length;
}

int mpix_typemap_create(MPI_Count count, MPI_Datatype datatype,
                        mpix_typemap_t **map_p)
{
    mpix_typemap_t *map = calloc(1, sizeof(*map));
    mpix_typemap_rep_t rep;
    MPI_Aint lb;

    if (map == NULL) {
        return MPI_ERR_NO_MEM;
    }

    rep.count = (size_t)count;
    rep.child = mpix_typemap_decode(map, datatype);
    map->root = mpix_typemap_node(map, 1);
    if ((rep.child == NULL) || (map->root == NULL)) {
        const int rc = map->rc;

        mpix_typemap_destroy(map);
        return rc;
    }

    PMPI_Type_get_extent(datatype, &lb, &rep.stride);
    mpix_typemap_add(map->root, &rep, 0);
    *map_p = map;
    return MPI_SUCCESS;
}

void mpix_typemap_destroy(mpix_typemap_t *map)
{
    mpix_typemap_node_t *node;

    while (map->nodes != NULL) {
        node       = map->nodes;
        map->nodes = node->next;
        free(node);
    }
    free(map);
}

size_t mpix_typemap_size(const mpix_typemap_t *map)
{
    return map->root->size;
}

int mpix_typemap_is_contig(const mpix_typemap_t *map, ptrdiff_t *disp_p)
{
    const mpix_typemap_part_t *run = mpix_typemap_only_run(map->root);

    if (map->root->count == 0) {
        *disp_p = 0;
        return 1;
    } else if (run == NULL) {
        return 0;
    }
    *disp_p = run->disp;
    return 1;
}

/* The blocks of a part, if it has such. */
static int mpix_typemap_part_blocks(const mpix_typemap_part_t *part,
                                    mpix_typemap_blocks_t *blocks);

/* Puts blocks behind others. */
static int mpix_typemap_join_blocks(mpix_typemap_blocks_t *blocks,
                                    const mpix_typemap_blocks_t *more)
{
    const ptrdiff_t last = (ptrdiff_t)(blocks->count - 1) * blocks->stride;
    const ptrdiff_t step = more->disp - blocks->disp - last;

    if ((more->block != blocks->block) ||
        ((blocks->count > 1) && (step != blocks->stride)) ||
        ((more->count > 1) && (step != more->stride))) {
        return 0;
    }
    blocks->stride = step;
    blocks->count += more->count;
    return 1;
}

static int mpix_typemap_node_blocks(const mpix_typemap_node_t *node,
                                    mpix_typemap_blocks_t *blocks)
{
    mpix_typemap_blocks_t more;
    size_t i;

    if ((node->count == 0) ||
        !mpix_typemap_part_blocks(&node->parts[0], blocks)) {
        return 0;
    }
    for (i = 1; i < node->count; ++i) {
        if (!mpix_typemap_part_blocks(&node->parts[i], &more) ||
            !mpix_typemap_join_blocks(blocks, &more)) {
            return 0;
        }
    }
    return 1;
}

static int mpix_typemap_part_blocks(const mpix_typemap_part_t *part,
                                    mpix_typemap_blocks_t *blocks)
{
    if (part->child == NULL) {
        *blocks = (mpix_typemap_blocks_t){
            .disp = part->disp, .block = part->count, .count = 1
        };
        return 1;
    }

    if (!mpix_typemap_node_blocks(part->child, blocks)) {
        return 0;
    }
    blocks->disp += part->disp;
    if (part->count == 1) {
        return 1;
    }
    if (blocks->count == 1) {
        blocks->stride = part->stride;
    } else if (part->stride != ((ptrdiff_t)blocks->count * blocks->stride)) {
        return 0;
    }
    blocks->count *= part->count;
    return 1;
}

int mpix_typemap_is_blocks(const mpix_typemap_t *map,
                           mpix_typemap_blocks_t *blocks)
{
    return mpix_typemap_node_blocks(map->root, blocks) &&
           ((blocks->count == 1) ||
            (blocks->stride >= (ptrdiff_t)blocks->block));
}

/* As mpix_typemap_find(), of a node that begins there. */
static int mpix_typemap_find_node(const mpix_typemap_node_t *node,
                                  ptrdiff_t disp,
                                  int (*func)(void *arg, ptrdiff_t disp),
                                  void *arg)
{
    int found = 0;
    const mpix_typemap_part_t *part;

    for (part = node->parts; (part < (node->parts + node->count)) && !found;
         ++part) {
        found = (part->child == NULL) ?
                        func(arg, disp + part->disp) :
                        mpix_typemap_find_node(part->child, disp + part->disp,
                                               func, arg);
    }
    return found;
}

int mpix_typemap_find(const mpix_typemap_t *map,
                      int (*func)(void *arg, ptrdiff_t disp), void *arg)
{
    return mpix_typemap_find_node(map->root, 0, func, arg);
}

/* As mpix_typemap_walk(), of a node that begins there. */
static int mpix_typemap_walk_node(const mpix_typemap_node_t *node,
                                  ptrdiff_t disp,
                                  int (*func)(void *arg, ptrdiff_t disp,
                                              size_t length),
                                  void *arg)
{
    const mpix_typemap_part_t *part;
    int found = 0;
    size_t i;

    for (part = node->parts; (part < (node->parts + node->count)) && !found;
         ++part) {
        if (part->child == NULL) {
            found = func(arg, disp + part->disp, part->count);
            continue;
        }
        for (i = 0; (i < part->count) && !found; ++i) {
            found = mpix_typemap_walk_node(part->child,
                                           disp + part->disp +
                                           ((ptrdiff_t)i * part->stride),
                                           func, arg);
        }
    }
    return found;
}

int mpix_typemap_walk(const mpix_typemap_t *map,
                      int (*func)(void *arg, ptrdiff_t disp, size_t length),
                      void *arg)
{
    return mpix_typemap_walk_node(map->root, 0, func, arg);
}

/* A copy that is under way. Places are numbers: MPI_BOTTOM is no address of an
 * object, nor is what lies between the strides. */
typedef struct mpix_typemap_copy {
    char   *packed; /* Next byte */
    size_t left;    /* Bytes that are still to be copied */
    int    is_pack; /* To 'packed', else from there */
} mpix_typemap_copy_t;

static void mpix_typemap_copy_run(mpix_typemap_copy_t *copy, uintptr_t place,
                                  size_t length)
{
    if (length > copy->left) {
        length = copy->left;
    }

    if (copy->is_pack) {
        memcpy(copy->packed, (void*)place, length);
    } else {
        memcpy((void*)place, copy->packed, length);
    }
    copy->packed += length;
    copy->left   -= length;
}

/* Copies 'count' runs of a length that the compiler knows, at equal
 * distances. */
static inline void mpix_typemap_copy_fixed(mpix_typemap_copy_t *copy,
                                           uintptr_t place,
                                           const mpix_typemap_part_t *part,
                                           const size_t length)
{
    char *packed = copy->packed;
    size_t i;

    if (copy->is_pack) {
        for (i = 0; i < part->count; ++i) {
            memcpy(packed + (i * length), (void*)place, length);
            place += part->stride;
        }
    } else {
        for (i = 0; i < part->count; ++i) {
            memcpy((void*)place, packed + (i * length), length);
            place += part->stride;
        }
    }
    copy->packed += part->count * length;
    copy->left   -= part->count * length;
}

/* The same of any length. */
static void mpix_typemap_copy_runs(mpix_typemap_copy_t *copy, uintptr_t place,
                                   const mpix_typemap_part_t *part,
                                   size_t length)
{
    size_t i;

    if (copy->left >= (part->count * length)) {
        switch (length) {
        case 4:
            mpix_typemap_copy_fixed(copy, place, part, 4);
            return;
        case 8:
            mpix_typemap_copy_fixed(copy, place, part, 8);
            return;
        case 16:
            mpix_typemap_copy_fixed(copy, place, part, 16);
            return;
        }
    }

    for (i = 0; (i < part->count) && (copy->left > 0); ++i) {
        mpix_typemap_copy_run(copy, place, length);
        place += part->stride;
    }
}

/* The tree is as deep as datatypes were made of each other. */
static void mpix_typemap_copy_node(mpix_typemap_copy_t *copy, uintptr_t buffer,
                                   const mpix_typemap_node_t *node)
{
    const mpix_typemap_part_t *part, *run;
    uintptr_t place;
    size_t i;

    for (part = node->parts;
         (part < (node->parts + node->count)) && (copy->left > 0); ++part) {
        place = buffer + part->disp;
        if (part->child == NULL) {
            mpix_typemap_copy_run(copy, place, part->count);
            continue;
        }

        run = mpix_typemap_only_run(part->child);
        if (run != NULL) {
            mpix_typemap_copy_runs(copy, place + run->disp, part, run->count);
            continue;
        }

        for (i = 0; (i < part->count) && (copy->left > 0); ++i) {
            mpix_typemap_copy_node(copy, place, part->child);
            place += part->stride;
        }
    }
}

void mpix_typemap_pack(const mpix_typemap_t *map, const void *buffer,
                       void *packed)
{
    mpix_typemap_copy_t copy = {
        .packed = packed, .left = map->root->size, .is_pack = 1
    };

    mpix_typemap_copy_node(&copy, (uintptr_t)buffer, map->root);
}

void mpix_typemap_unpack(const mpix_typemap_t *map, void *buffer,
                         const void *packed, size_t length)
{
    mpix_typemap_copy_t copy = {
        .packed = (char*)packed,
        .left   = (length < map->root->size) ? length : map->root->size
    };

    mpix_typemap_copy_node(&copy, (uintptr_t)buffer, map->root);
}
