/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_guard.c - comparison of UCX versions, and the library's constructor.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_guard.h"
#include "cxi_trig_iface.h"
#include "cxi_trig_md.h"

#include <ucp/api/ucp.h>
#include <ucs/debug/log.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/stubs.h>

static int uct_cxi_trig_registered;


int uct_cxi_trig_guard_accepts(unsigned built_major, unsigned built_minor,
                               unsigned major, unsigned minor)
{
    if ((built_major == major) && (built_minor == minor)) {
        return 1;
    }

    ucs_warn("transport cxi_trig was built for UCX %u.%u and is off in this "
             "UCX %u.%u", built_major, built_minor, major, minor);
    return 0;
}

int uct_cxi_trig_guard_is_registered(void)
{
    return uct_cxi_trig_registered;
}

void uct_cxi_trig_guard_fill(void *ops, size_t size)
{
    ucs_status_t (**op)(void) = ops;
    size_t i;

    for (i = 0; i < size / sizeof(*op); ++i) {
        if (op[i] == NULL) {
            op[i] = ucs_empty_function_return_unsupported;
        }
    }
}

static void UCS_F_CTOR uct_cxi_trig_init(void)
{
    unsigned major, minor, release;

    ucp_get_version(&major, &minor, &release);
    if (!uct_cxi_trig_guard_accepts(UCT_CXI_TRIG_BUILT_MAJOR,
                                    UCT_CXI_TRIG_BUILT_MINOR, major, minor)) {
        return;
    }

    uct_cxi_trig_guard_fill(&uct_cxi_trig_md_ops, sizeof(uct_cxi_trig_md_ops));
    uct_cxi_trig_guard_fill(&uct_cxi_trig_iface_internal_ops,
                            sizeof(uct_cxi_trig_iface_internal_ops));
    uct_component_register(&uct_cxi_trig_component);
    uct_tl_register(&uct_cxi_trig_component, &UCT_TL_NAME(cxi_trig));
    uct_cxi_trig_registered = 1;
}

static void UCS_F_DTOR uct_cxi_trig_cleanup(void)
{
    if (uct_cxi_trig_registered) {
        uct_tl_unregister(&UCT_TL_NAME(cxi_trig));
        uct_component_unregister(&uct_cxi_trig_component);
    }
}
