/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_write.h - recorded events as Chrome's trace format. */
#ifndef TRACE_WRITE_H_
#define TRACE_WRITE_H_

#include <stdint.h>
#include <stdio.h>


/** Write all events of all threads; `lost` were not recorded for want of
 *  memory. Errors are those of the stream: see ferror(). */
void trace_write(FILE *file, uint64_t lost);

#endif
