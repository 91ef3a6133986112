/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_world.h - what the parties of a running case share.
 */
#ifndef FAB_WORLD_H_
#define FAB_WORLD_H_

#include "fab.h"

#define FAB_FAILURES     16
#define FAB_FAILURE_TEXT 256


/** In memory that processes share; atomic accesses. */
typedef struct fab_world {
    int      ended;                /**< A party has given up */
    unsigned failures;
    char     text[FAB_FAILURES][FAB_FAILURE_TEXT];
} fab_world_t;


/** Give the running thread's party up. Does not return. */
void fab_give_up(fab_side_t *me) __attribute__((noreturn));

#endif
