/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_ledger.h - how much of something scarce each process of the node
 * has: the deferred-work entries of a NIC's service.
 *
 * The NIC does not enforce the number of entries: one too many, and its queue
 * of commands stalls, with all that is behind it. So a process asks here before
 * it uses any. A memory file of the node, named by user, NIC and service, has a
 * row for each process. Its owner has a lock on the byte of the row's number,
 * which the kernel drops when the process ends, however that happens: rows of
 * the dead are found, and free again.
 *
 * To take entries a process adds them to its row, then looks at the sum of all
 * rows, and gives them back if that is too much. So the sum is never exceeded,
 * and no lock is held: a process that is stopped or killed keeps nobody
 * waiting. Two that ask for the last ones at the same time may both get none.
 */
#ifndef UCT_CXI_TRIG_LEDGER_H_
#define UCT_CXI_TRIG_LEDGER_H_

#include <ucs/type/status.h>

#include <stdint.h>

/** Longest name of a file, with the final zero. */
#define UCT_CXI_TRIG_LEDGER_NAME_MAX 96


/** A process's part. Calls from several threads are the caller's to order, but
 *  for those that say otherwise. */
typedef struct uct_cxi_trig_ledger {
    int      fd;
    uint32_t *rows;  /**< Of all processes */
    uint32_t *own;
    char     name[UCT_CXI_TRIG_LEDGER_NAME_MAX];
} uct_cxi_trig_ledger_t;


/** Take part in what @a key names; UCS_OK, or UCS_ERR_IO_ERROR after a message
 *  at level diag. */
ucs_status_t uct_cxi_trig_ledger_open(uct_cxi_trig_ledger_t *ledger,
                                      const char *key);

/** Leave: what the process has is free. */
void uct_cxi_trig_ledger_close(uct_cxi_trig_ledger_t *ledger);

/** Take @a count, if all processes then have @a max at most: UCS_OK, or
 *  UCS_ERR_NO_RESOURCE. */
ucs_status_t uct_cxi_trig_ledger_take(uct_cxi_trig_ledger_t *ledger,
                                      unsigned count, unsigned max);

/** Give so many back. Any thread. */
void uct_cxi_trig_ledger_give(uct_cxi_trig_ledger_t *ledger, unsigned count);

/** Processes that take part, this one as well. Any thread. */
unsigned uct_cxi_trig_ledger_users(const uct_cxi_trig_ledger_t *ledger);

#endif
