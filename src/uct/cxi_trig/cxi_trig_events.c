/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_events.c - UCX's events of memory, asked for and given back.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_events.h"

#include <ucm/api/ucm.h>

#include <dlfcn.h>
#include <stddef.h>

typedef __typeof__(&ucm_set_event_handler)   uct_cxi_trig_events_set_t;
typedef __typeof__(&ucm_unset_event_handler) uct_cxi_trig_events_unset_t;


static void uct_cxi_trig_events_ignore(ucm_event_type_t type,
                                       ucm_event_t *event, void *arg)
{
}

/* This library is not linked with UCX's for events, but UCX is. */
int uct_cxi_trig_events_work(void)
{
    uct_cxi_trig_events_set_t set     = (uct_cxi_trig_events_set_t)
            dlsym(RTLD_DEFAULT, "ucm_set_event_handler");
    uct_cxi_trig_events_unset_t unset = (uct_cxi_trig_events_unset_t)
            dlsym(RTLD_DEFAULT, "ucm_unset_event_handler");

    if ((set == NULL) || (unset == NULL) ||
        (set(UCM_EVENT_VM_UNMAPPED, 0, uct_cxi_trig_events_ignore, NULL) !=
         UCS_OK)) {
        return 0;
    }
    unset(UCM_EVENT_VM_UNMAPPED, uct_cxi_trig_events_ignore, NULL);
    return 1;
}
