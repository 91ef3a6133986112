/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patterns_bfs.c - breadth-first search, level by level, in a random graph
 * whose vertices are divided among the ranks: the case in which streams do not
 * help.
 *
 * What a rank has found of another one's vertices is a list, or a map of bits
 * where that is shorter: the length is known when the kernel has run. The host
 * sends as much as there is; what a stream sends was matched with the length of
 * a map. After each level the host must see the sum of what is new.
 */
#include "patterns.h"

#include <stdlib.h>
#include <string.h>

#define BFS_DEGREE 8
#define BFS_MAP    UINT64_MAX /* In the place of a count: a map follows */


typedef struct bfs_head {
    uint64_t length;
    uint64_t count;
} bfs_head_t;


static struct {
    uint64_t      size;     /* Vertices of a rank */
    int           rank;
    int           ranks;
    size_t        words;    /* Of a map */
    int           searches; /* Begun so far: each has a root of its own */
    int32_t       level;
    int32_t       *levels;  /* Of own vertices; below 0: not found */
    uint32_t      *border;  /* Those of this level */
    uint32_t      *next;
    uint64_t      num_border;
    uint64_t      num_next;
    uint64_t      *told;    /* Maps of all vertices: those that their ranks were
                               told of, */
    uint64_t      *news;    /* and those that they are to be told of now */
    uint64_t      found;    /* At all ranks, on this level */
    pt_exchange_t *exchange;
    int32_t       *reference; /* Of all vertices; NULL: not yet computed */
} bfs;


static uint64_t bfs_total(void)
{
    return bfs.size * bfs.ranks;
}

static uint64_t bfs_root(int search)
{
    return pt_hash((uint64_t)search, 1) % bfs_total();
}

static uint64_t bfs_edge(uint64_t vertex, int i)
{
    return pt_hash(vertex, 2 + (uint64_t)i) % bfs_total();
}

static void bfs_visit(uint64_t vertex, int32_t level)
{
    if (bfs.levels[vertex] < 0) {
        bfs.levels[vertex]       = level;
        bfs.next[bfs.num_next++] = (uint32_t)vertex;
    }
}

/* What was found is the border of the next level. */
static void bfs_advance(void)
{
    uint32_t *border = bfs.border;

    bfs.border     = bfs.next;
    bfs.num_border = bfs.num_next;
    bfs.next       = border;
    bfs.num_next   = 0;
}

static void bfs_begin(void *arg)
{
    const uint64_t root = bfs_root(bfs.searches++);

    (void)arg;
    bfs.level = 0;
    memset(bfs.levels, 0xff, bfs.size * sizeof(*bfs.levels));
    memset(bfs.told, 0, bfs_total() / 8);
    bfs.num_next = 0;
    if (root / bfs.size == (uint64_t)bfs.rank) {
        bfs_visit(root % bfs.size, 0);
    }
    bfs_advance();
}

/* A list or a map, whichever is shorter. */
static void bfs_write(bfs_head_t *head, const uint64_t *news)
{
    const size_t map = bfs.words * sizeof(*news);
    uint32_t *list   = (uint32_t*)(head + 1);
    uint64_t count   = 0;
    uint64_t left;
    size_t i;

    for (i = 0; i < bfs.words; ++i) {
        count += (uint64_t)__builtin_popcountll(news[i]);
    }
    if (count * sizeof(*list) >= map) {
        head->count  = BFS_MAP;
        head->length = sizeof(*head) + map;
        memcpy(list, news, map);
        return;
    }
    head->count  = count;
    head->length = sizeof(*head) + count * sizeof(*list);
    for (i = 0; i < bfs.words; ++i) {
        for (left = news[i]; left != 0; left &= left - 1) {
            *list++ = (uint32_t)(64 * i + (size_t)__builtin_ctzll(left));
        }
    }
}

static void bfs_expand(void *arg)
{
    uint64_t vertex, bit, n;
    int i;

    (void)arg;
    memset(bfs.news, 0, bfs_total() / 8);
    for (n = 0; n < bfs.num_border; ++n) {
        for (i = 0; i < BFS_DEGREE; ++i) {
            vertex = bfs_edge(bfs.size * bfs.rank + bfs.border[n], i);
            bit    = 1ull << (vertex % 64);

            bfs.news[vertex / 64] |= bit & ~bfs.told[vertex / 64];
            bfs.told[vertex / 64] |= bit;
        }
    }
    for (i = 0; i < bfs.exchange->num; ++i) {
        bfs_write(bfs.exchange->messages[i].out,
                  &bfs.news[bfs.words * bfs.exchange->messages[i].peer]);
    }
}

static void bfs_take_map(const uint64_t *map)
{
    uint64_t left;
    size_t i;

    for (i = 0; i < bfs.words; ++i) {
        for (left = map[i]; left != 0; left &= left - 1) {
            bfs_visit(64 * i + (size_t)__builtin_ctzll(left), bfs.level + 1);
        }
    }
}

static void bfs_take(void *arg)
{
    const bfs_head_t *head;
    uint64_t n;
    int i;

    (void)arg;
    bfs_take_map(&bfs.news[bfs.words * bfs.rank]);
    for (i = 0; i < bfs.exchange->num; ++i) {
        head = pt_in(bfs.exchange, i);
        if (head->count == BFS_MAP) {
            bfs_take_map((const uint64_t*)(head + 1));
            continue;
        }
        for (n = 0; n < head->count; ++n) {
            bfs_visit(((const uint32_t*)(head + 1))[n], bfs.level + 1);
        }
    }
    ++bfs.exchange->taken;
    ++bfs.level;
    bfs_advance();
}

static int bfs_open(pt_plan_t *plan, const pt_options_t *opts)
{
    pt_sum_t *sum;
    int i;

    bfs.words    = ((size_t)opts->size + 63) / 64;
    bfs.size     = 64 * bfs.words;
    bfs.rank     = opts->rank;
    bfs.ranks    = opts->ranks;
    bfs.levels   = bench_alloc(bfs.size * sizeof(*bfs.levels));
    bfs.border   = bench_alloc(bfs.size * sizeof(*bfs.border));
    bfs.next     = bench_alloc(bfs.size * sizeof(*bfs.next));
    bfs.told     = bench_alloc(bfs_total() / 8);
    bfs.news     = bench_alloc(bfs_total() / 8);
    bfs.exchange = pt_add_exchange(plan, bfs.ranks - 1);
    for (i = 0; i < bfs.ranks; ++i) {
        if (i != bfs.rank) {
            pt_set_message(bfs.exchange, i - (i > bfs.rank), i,
                           sizeof(bfs_head_t) + bfs.words * sizeof(uint64_t));
        }
    }
    bfs.exchange->varies = 1;
    sum                  = pt_add_sum(plan, &(const pt_sum_t){
        .part  = &bfs.num_border,
        .sum   = &bfs.found,
        .count = 1,
        .type  = MPI_UINT64_T
    });
    pt_add_kernel(plan, bfs_begin, NULL);
    pt_add_kernel(plan, bfs_expand, NULL);
    pt_add(plan, PT_EXCHANGE, bfs.exchange);
    pt_add_kernel(plan, bfs_take, NULL);
    pt_add(plan, PT_SUM_START, sum);
    pt_add(plan, PT_SUM_WAIT, sum);
    pt_add(plan, PT_AGAIN, &bfs.found);
    return 0;
}

static void bfs_reset(void)
{
    bfs.searches = 0;
}

/* All vertices by one queue. */
static void bfs_search(uint64_t root)
{
    uint64_t *queue = bench_alloc(bfs_total() * sizeof(*queue));
    uint64_t first  = 0;
    uint64_t last   = 0;
    uint64_t vertex, other;
    int i;

    bfs.reference = bench_alloc(bfs_total() * sizeof(*bfs.reference));
    memset(bfs.reference, 0xff, bfs_total() * sizeof(*bfs.reference));
    bfs.reference[root] = 0;
    queue[last++]       = root;
    while (first < last) {
        vertex = queue[first++];
        for (i = 0; i < BFS_DEGREE; ++i) {
            other = bfs_edge(vertex, i);
            if (bfs.reference[other] < 0) {
                bfs.reference[other] = bfs.reference[vertex] + 1;
                queue[last++]        = other;
            }
        }
    }
    free(queue);
}

/* Vertices with another level in the last search. */
static uint64_t bfs_check(int count)
{
    uint64_t wrong = 0;
    uint64_t i;

    if (bfs.reference == NULL) {
        bfs_search(bfs_root(count - 1));
    }
    for (i = 0; i < bfs.size; ++i) {
        wrong += bfs.levels[i] != bfs.reference[bfs.size * bfs.rank + i];
    }
    return wrong;
}

/* Ready sends would need to know which level is the last one. */
const pt_pattern_t pt_bfs = {
    .name     = "bfs",
    .variants = BENCH_VARIANT_MPI | BENCH_VARIANT_ST,
    .size     = 16384,
    .open     = bfs_open,
    .reset    = bfs_reset,
    .check    = bfs_check
};
