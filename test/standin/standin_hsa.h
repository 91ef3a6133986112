/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_hsa.h - functions of ROCr that a stand-in has, in plain types.
 */
#ifndef STANDIN_HSA_H_
#define STANDIN_HSA_H_

#include "standin_control.h"

#include <stddef.h>
#include <stdint.h>

/** hsa_amd_pointer_info_t; programs tell how much of it they know. */
typedef struct {
    uint32_t size;
    int      type;
    void     *agent_base;
    void     *host_base;
    size_t   length;
    void     *user_data;
    uint64_t owner;
    uint32_t global_flags;
} standin_hsa_info_t;

STANDIN_API int hsa_init(void);
STANDIN_API int hsa_iterate_agents(int (*func)(uint64_t agent, void *data),
                                   void *data);
STANDIN_API int hsa_amd_pointer_info(const void *address,
                                     standin_hsa_info_t *info,
                                     void *(*alloc)(size_t size),
                                     uint32_t *num_agents, uint64_t **agents);
STANDIN_API int hsa_agent_get_info(uint64_t agent, int attribute, void *value);
STANDIN_API int hsa_amd_portable_export_dmabuf(const void *address, size_t size,
                                               int *fd, uint64_t *offset);

/* Of HIP's stand-in, for that library: */

/** Whether an address is in a device's memory, and in which allocation. */
STANDIN_API int standin_hsa_find(uint64_t address, uint64_t *start,
                                 size_t *size);

/** A file descriptor for an allocation, and where in it the address is; 0, or a
 *  STANDIN_ERR_*. */
STANDIN_API int standin_hsa_share(uint64_t address, size_t size, int *fd,
                                  uint64_t *offset);

#endif
