/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_memory.h - ranges of memory that devices reach.
 */
#ifndef GSTREAM_MEMORY_H_
#define GSTREAM_MEMORY_H_

#include "api/ucs_gstream_memory.h"
#include "gstream_gpu.h"

/** The device's address of a word in a range that was added, which is
 *  registered with the runtime first if it is not yet. UCS_ERR_NO_ELEM if the
 *  word is in no range; UCS_ERR_UNSUPPORTED if the runtime does not take the
 *  range, which was logged once. */
ucs_status_t gstream_memory_map(const gstream_gpu_t *gpu,
                                const volatile uint64_t *word,
                                uint64_t *address_p);

#endif
