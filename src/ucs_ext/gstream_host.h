/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_host.h - streams that a thread of this process executes. */
#ifndef GSTREAM_HOST_H_
#define GSTREAM_HOST_H_

#include "gstream.h"
#include "gstream_sched.h"


/** The back end of UCS_GSTREAM_TYPE_HOST. */
extern const gstream_ops_t gstream_host_ops;

/** The same for streams of a process that this one was forked from: they refuse
 *  all. */
extern const gstream_ops_t gstream_host_forked_ops;


/** Run a stream's commands until there are none, or one waits for a word, or
 *  'nsec' have passed; the calling thread has taken the stream's task. */
gstream_turn_t gstream_host_run_turn(gstream_task_t *task, uint64_t nsec);

#endif
