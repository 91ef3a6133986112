/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_log.h - messages, through libfabric's log.
 */
#ifndef CXIEMU_LOG_H_
#define CXIEMU_LOG_H_

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

extern struct fi_provider cxiemu_provider;

#define cxiemu_warn(_subsys, ...) \
    FI_WARN(&cxiemu_provider, FI_LOG_##_subsys, __VA_ARGS__)
#define cxiemu_info(_subsys, ...) \
    FI_INFO(&cxiemu_provider, FI_LOG_##_subsys, __VA_ARGS__)

#endif
