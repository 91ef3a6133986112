/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_util.h - what tests of the emulated NIC's insides have in common.
 */
#ifndef CXIEMU_UTIL_H_
#define CXIEMU_UTIL_H_

#include "st_cunit.h"

#include "run/cxiemu_progress.h"


static inline cxiemu_nic_t *nic_create(void)
{
    cxiemu_nic_t *nic = NULL;

    CU_ASSERT_FATAL(cxiemu_nic_create(&nic) == 0);
    CU_ASSERT_FATAL(nic != NULL);
    return nic;
}

/** What its thread does: CXIEMU_THREAD_*. */
static inline uint32_t nic_thread(const cxiemu_nic_t *nic)
{
    return __atomic_load_n(&nic->shm->thread, __ATOMIC_SEQ_CST);
}

#endif
