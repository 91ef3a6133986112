/* SPDX-License-Identifier: BSD-3-Clause */
/* trig_uct.h - what st_trig has of the transport cxi_trig. */
#ifndef TRIG_UCT_H_
#define TRIG_UCT_H_

#include "trig_bench.h"


typedef struct trig_uct trig_uct_t;


/** Both ranks; over the libfabric provider of this name, and no other one. */
trig_uct_t *trig_uct_open(trig_rank_t *me, const char *provider);

/** Both ranks, when nothing is deferred any more. */
void trig_uct_close(trig_uct_t *uct);

/** Deferred writes, back and forth: as trig_fab_write(), but nothing of the
 *  step is pending. */
double trig_uct_write(trig_uct_t *uct, const trig_step_t *step);

/** As trig_fab_post(), with operations that are described once. */
double trig_uct_post(trig_uct_t *uct, size_t size, unsigned count);

/** As trig_fab_fire(). */
void trig_uct_fire(void *arg);

#endif
