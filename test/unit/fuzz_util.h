/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_util.h - tests of parsers with inputs that are drawn at random: valid
 * ones that are changed a little.
 *
 *     fuzz_t fuzz;
 *     fuzz_input_t input = {.data = data, .room = sizeof(data)};
 *
 *     fuzz_begin(&fuzz, 10000);
 *     while (fuzz_next(&fuzz)) {
 *         fuzz_set(&input, valid, sizeof(valid));
 *         fuzz_mutate(&fuzz, &input);
 *         parse(input.data, input.length);
 *     }
 *
 * Each round draws from a sequence of its own, so that one round can be
 * repeated alone. A program that dies in a round says which one. Environment:
 *
 * ST_FUZZ_SEED     Of all sequences; it is printed. The default never changes,
 *                  so that a run repeats the one before.
 * ST_FUZZ_ROUNDS   How many rounds a loop has, in place of its own number.
 * ST_FUZZ_SECONDS  How long a loop lasts, in place of a number of rounds.
 * ST_FUZZ_FIRST    Number of the first round; default 0.
 */
#ifndef FUZZ_UTIL_H_
#define FUZZ_UTIL_H_

#include <stddef.h>
#include <stdint.h>


/** A loop. */
typedef struct fuzz {
    uint64_t seed;
    uint64_t round; /**< The one that runs, from 1 */
    uint64_t last;
    double   end;   /**< When it ends, in place of `last`, or 0 */
    uint64_t state; /**< Of the round's sequence */
} fuzz_t;


/** An input of a parser. */
typedef struct fuzz_input {
    uint8_t *data;
    size_t  length; /**< Of the input, bytes */
    size_t  room;   /**< At `data`, bytes */
} fuzz_input_t;


/** Begin a loop of so many rounds, and print its seed. One at a time. */
void fuzz_begin(fuzz_t *fuzz, uint64_t rounds);

/** Begin a round; zero when the loop is over. */
int fuzz_next(fuzz_t *fuzz);

/** A number below a bound; any one if that is 0. */
uint64_t fuzz_random(fuzz_t *fuzz, uint64_t bound);

/** A number that parsers often treat wrongly: 0, powers of 2 and their
 *  neighbours, those near the largest ones; or any. */
uint64_t fuzz_number(fuzz_t *fuzz);

/** Make an input the same as a valid one, for which there is room. */
void fuzz_set(fuzz_input_t *input, const void *valid, size_t length);

/** Change an input in one to four places: flip bits, store numbers of 1 to 8
 *  bytes, copy a part of it to another place; and now and then cut it off, or
 *  make it longer. */
void fuzz_mutate(fuzz_t *fuzz, fuzz_input_t *input);

/** The same without a change of the length. */
void fuzz_scribble(fuzz_t *fuzz, void *data, size_t length);

/** Put a part of another input in place of a part of this one, or between its
 *  bytes. */
void fuzz_splice(fuzz_t *fuzz, fuzz_input_t *input, const void *other,
                 size_t length);

#endif
