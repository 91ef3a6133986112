/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common.pml - what the models share: properties that have names.
 */

/* Where the condition does not hold the model is broken, and the checker says
 * "assertion violated ( !(property)||...": run-models.sh tells properties apart
 * by that, and wants to see each one violated by a broken variant.
 * IGNORE=property looks for what else goes wrong, and goes wrong without it. */
#define CHECK(property, condition) \
    if \
    :: (condition) \
    :: else -> property = true; assert(!property || IGNORE) \
    fi

#ifndef IGNORE
#define IGNORE false
#endif

/* A run got to its end. A sound model in which no run does would be sound for
 * the wrong reason; run-models.sh refuses it. */
bool finished;
#define FINISH finished = true
