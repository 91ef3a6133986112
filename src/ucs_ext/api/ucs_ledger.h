/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_ledger.h
 * How much of something scarce each process of the node has: what the processes
 * of a NIC's service share. Not installed; it needs nothing but the C library,
 * as the emulated card has it, too.
 *
 * A memory file of the node has a row for each process. The row's owner has a
 * lock on the byte of the row's number, which the kernel drops when the process
 * ends, however that happens: rows of the dead are found, and free again.
 *
 * To take something a process adds to its row, then looks at the sum of all
 * rows, and gives it back if that is too much. So the sum is never exceeded,
 * and no lock is held: a process that is stopped or killed keeps nobody
 * waiting. Two that ask for the last ones at the same time may both get none.
 *
 * A file is a user's own: what others may write to is nothing to rely on. So
 * users that share something do not see what the others have.
 */
#ifndef UCS_LEDGER_H_
#define UCS_LEDGER_H_

#include <pthread.h>
#include <stdint.h>

/** Numbers of a row. */
#define UCS_LEDGER_NUMBERS 2

/** Longest name of a file, with the final zero. */
#define UCS_LEDGER_NAME_MAX 64

/** Longest label, without it. */
#define UCS_LEDGER_LABEL_MAX 24


/** What a process has. Atomic. */
typedef struct ucs_ledger_row {
    uint32_t is_used;                     /**< A process takes part */
    uint32_t numbers[UCS_LEDGER_NUMBERS]; /**< Of each thing */
} ucs_ledger_row_t;

/** A process's part. */
typedef struct ucs_ledger {
    int              fd;        /**< Of the file; -1: there is none */
    ucs_ledger_row_t *rows;     /**< Of all processes */
    unsigned         num_rows;  /**< How many */
    ucs_ledger_row_t *own;      /**< That of this process */
    ucs_ledger_row_t alone;     /**< The same, without a file */
    pthread_mutex_t  lock;      /**< Of the search for the dead */
    uint64_t         next_reap; /**< When to look again, ns */
    char             name[UCS_LEDGER_NAME_MAX]; /**< Of the file */
} ucs_ledger_t;


/**
 * Take part in what a key names. What processes have left behind that were
 * killed is removed by the first one.
 *
 * Ownership: the ledger is the caller's to close.
 * Threads: any, but one at a time for a ledger.
 *
 * @param [out] ledger What is opened; its name is set in any case.
 * @param [in]  label  Start of the file's name, that files for other things do
 *                     not have.
 * @param [in]  key    What is shared; any text.
 *
 * @return 0, or an errno: EAGAIN if there is no row left, EACCES if the file is
 *         another user's.
 */
int ucs_ledger_open(ucs_ledger_t *ledger, const char *label, const char *key);

/**
 * Open one that this process has for itself.
 *
 * Ownership: the ledger is the caller's to close.
 * Threads: any, but one at a time for a ledger.
 *
 * @param [out] ledger What is opened.
 */
void ucs_ledger_open_alone(ucs_ledger_t *ledger);

/**
 * Leave: what the process has is free. The last one removes the file.
 *
 * Ownership: the ledger is the caller's again.
 * Threads: any, when no other one uses the ledger.
 *
 * @param [in] ledger An open one.
 */
void ucs_ledger_close(ucs_ledger_t *ledger);

/**
 * In a child that was forked: the row is the parent's, and the ledger is one
 * that the child has for itself, as @ref ucs_ledger_open_alone, with the same
 * numbers.
 *
 * Ownership: the ledger is the caller's to close.
 * Threads: there is one.
 *
 * @param [in] ledger An open one of the parent.
 */
void ucs_ledger_forked(ucs_ledger_t *ledger);

/**
 * Take some, if all processes together then have no more than a maximum. What
 * a process had that was killed can be taken a tenth of a second later at most.
 *
 * Ownership: what was taken is the process's until it is given back.
 * Threads: any.
 *
 * @param [in] ledger An open one.
 * @param [in] number Which of the row's numbers.
 * @param [in] count  How many.
 * @param [in] max    How many all may have.
 *
 * @return Non-zero if they were taken.
 */
int ucs_ledger_take(ucs_ledger_t *ledger, unsigned number, uint32_t count,
                    uint64_t max);

/**
 * Give some back.
 *
 * Ownership: they are nobody's.
 * Threads: any.
 *
 * @param [in] ledger An open one.
 * @param [in] number Which of the row's numbers.
 * @param [in] count  How many.
 */
void ucs_ledger_give(ucs_ledger_t *ledger, unsigned number, uint32_t count);

/**
 * What this process has.
 *
 * Ownership: none.
 * Threads: any.
 *
 * @param [in] ledger An open one.
 * @param [in] number Which of the row's numbers.
 *
 * @return How many.
 */
uint32_t ucs_ledger_own(const ucs_ledger_t *ledger, unsigned number);

/**
 * How many processes take part.
 *
 * Ownership: none.
 * Threads: any.
 *
 * @param [in] ledger An open one.
 *
 * @return That number, 1 at least; with those that were killed in the last
 *         tenth of a second.
 */
unsigned ucs_ledger_users(ucs_ledger_t *ledger);

#endif
