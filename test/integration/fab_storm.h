/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_storm.h - processes that talk all to all while one of them is killed.
 */
#ifndef FAB_STORM_H_
#define FAB_STORM_H_

#include <stddef.h>
#include <stdint.h>

#define STORM_WORKERS  3
#define STORM_NAME_MAX 128
#define STORM_ROUNDS   40


/** What a worker tells, in memory that all share. Atomic accesses. */
typedef struct storm_card {
    int      ready;   /**< Name and key are there */
    int      killed;  /**< Set by the parent before it kills */
    int      done;    /**< Is through with all that live */
    int      quiet;   /**< Has nothing under way and begins nothing */
    unsigned received[STORM_WORKERS]; /**< Messages taken, by sender */
    char     name[STORM_NAME_MAX];
    size_t   length;
    uint64_t key;
    char     complaint[256];
} storm_card_t;

typedef struct storm_board {
    uint64_t     seed;   /**< Of this storm */
    int          calm;   /**< Nobody is going to be killed */
    storm_card_t cards[STORM_WORKERS];
} storm_board_t;


/** splitmix64 */
static inline uint64_t storm_random(uint64_t *state)
{
    uint64_t x;

    x = (*state += 0x9e3779b97f4a7c15ull);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/** A worker's life; returns its exit status. */
int storm_work(storm_board_t *board, int index);

#endif
