/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_far_life.h - the life of an st worker and of one in another process: they
 * are made, match and use a message in memory that both map, and are destroyed.
 * Something on the way may fail here.
 */
#ifndef ST_FAR_LIFE_H_
#define ST_FAR_LIFE_H_

#include <ucp_st.h>

/** Live it once; the first time, start the other process. Asserts that data is
 *  right and that in the end all can be freed; the first error, or UCS_OK. */
ucs_status_t st_far_life(int is_send);

/** End the other process; asserts that it has fared well. */
void st_far_life_end(void);

/** The other process's part, until it is ended. */
void st_far_life_other(void);

#endif
