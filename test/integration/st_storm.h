/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_storm.h - ranks that send to each other while one of them is killed.
 */
#ifndef ST_STORM_H_
#define ST_STORM_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STORM_MAX_RANKS 4
#define STORM_ADDRESS   4096
#define STORM_USES      60
#define STORM_NEVER     UINT64_MAX

/** The phase of a rank that waits for nothing but the victim. */
#define STORM_PHASE_OTHERS 1


/** What a rank tells, in memory that all share. Atomic accesses, but for the
 *  address, which `length` announces. */
typedef struct storm_card {
    pid_t    pid;
    uint32_t length;           /**< Of its worker's address */
    uint8_t  address[STORM_ADDRESS];
    uint32_t done;             /**< Its number is anybody's from now on */
    uint32_t errors;           /**< Queues or endpoints that the victim's end
                                    has ended */
    uint32_t phase;            /**< How far it is, where others wait for that */
    char     where[64];        /**< What it is at */
    char     complaint[320];   /**< What is wrong */
} storm_card_t;

/** One storm. Constant from `go` on where nothing else is said. */
typedef struct storm_board {
    uint64_t     seed;
    int          ranks;
    int          victim;
    uint64_t     moment;  /**< The step that kills it; or STORM_NEVER */
    uint64_t     steps;   /**< That all ranks have made; atomic */
    uint32_t     go;      /**< All have been forked; atomic, slept on */
    uint32_t     killed;  /**< Set before that; atomic */
    int          stops;   /**< The victim is stopped, in place of that */
    uint32_t     stopped; /**< Set before that; atomic */
    storm_card_t card[STORM_MAX_RANKS];
} storm_board_t;


/** A rank's life: its exit status. Of the program that is linked with it. A
 *  victim that was stopped goes on once all others are at
 *  STORM_PHASE_OTHERS. */
int storm_rank_main(storm_board_t *board, int index);

/** A step of a rank, which may be the one that kills the victim. Any thread. */
void storm_step(storm_board_t *board);

/** A step, with what the rank begins now. */
void storm_at(storm_board_t *board, int index, const char *where);

/** Non-zero if a rank is the victim, and may be dead. */
int storm_is_killed(const storm_board_t *board, int index);

/** Tell how far a rank is. */
void storm_reach(storm_board_t *board, int index, uint32_t phase);

/** Non-zero if all ranks are as far as that, or dead. */
int storm_have_reached(const storm_board_t *board, uint32_t phase);

/** Tell that the rank's address is on its card. */
void storm_publish(storm_board_t *board, int index, size_t length);

/** Non-zero if a rank's address is on its card. */
int storm_is_published(const storm_board_t *board, int index);

/** The end of a rank's life; its exit status. */
int storm_end(storm_board_t *board, int index);

/** Say what is wrong, and end the rank. */
void __attribute__((noreturn, format(printf, 2, 3)))
storm_complain(storm_card_t *card, const char *format, ...);

#endif
