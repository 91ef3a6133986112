/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_answer.h - the process tells what waits in it: another process that
 * asks, and the log, of notes (ucp_st_note_begin()).
 */
#ifndef UCP_ST_ANSWER_H_
#define UCP_ST_ANSWER_H_

#include <ucp_st.h>

/** Tell of this worker, too, from now on. The lock is not held, nor for the
 *  next one. */
ucs_status_t ucp_st_answer_add(ucp_st_worker_h worker);

/** Undo ucp_st_answer_add(). On return no thread looks at the worker for an
 *  answer. */
void ucp_st_answer_remove(ucp_st_worker_h worker);

#endif
