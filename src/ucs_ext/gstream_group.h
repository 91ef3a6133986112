/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_group.h - groups of threads, as their streams see them. */
#ifndef GSTREAM_GROUP_H_
#define GSTREAM_GROUP_H_

#include "gstream_sched.h"


/** What the streams of a group submit their commands to. */
gstream_sched_t *gstream_group_sched(ucs_gstream_group_h group);


/** UCS_ERR_UNSUPPORTED, which is logged, if the group is of a process that this
 *  one was forked from. */
ucs_status_t gstream_group_check(ucs_gstream_group_h group);

#endif
