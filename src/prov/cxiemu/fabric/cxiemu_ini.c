/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_ini.c - the module's entry for libfabric's loader. */
#include "fabric/cxiemu_fabric.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_param.h"

FI_EXT_INI
{
    cxiemu_param_define();
    /* A setting that makes no sense has been logged; fi_getinfo() says so, too:
     * a provider that does not load would only be missing */
    (void)cxiemu_init();
    return &cxiemu_provider;
}
