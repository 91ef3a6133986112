/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_target.c - the endpoint by which peers reach a memory domain's
 * regions.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_target.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

#include <rdma/fi_eq.h>

#include <pthread.h>


/* Taken by the first caller that needs a domain's; of all domains */
static pthread_mutex_t uct_cxi_trig_target_lock = PTHREAD_MUTEX_INITIALIZER;


void uct_cxi_trig_target_forked(void)
{
    (void)pthread_mutex_init(&uct_cxi_trig_target_lock, NULL);
}

static ucs_status_t uct_cxi_trig_target_make(uct_cxi_trig_md_t *md,
                                             uct_cxi_trig_net_t **net_p)
{
    static const uct_cxi_trig_net_params_t params = {
        .passive = 1
    };
    uct_cxi_trig_net_t *net;
    ucs_status_t status;

    net = ucs_calloc(1, sizeof(*net), "cxi_trig_target");
    if (net == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_cxi_trig_net_open(net, md, &params);
    if (status != UCS_OK) {
        ucs_free(net);
        return status;
    }

    *net_p = net;
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_target_open(uct_cxi_trig_md_t *md)
{
    ucs_status_t status = UCS_OK;

    if (!(md->info->domain_attr->mr_mode & FI_MR_ENDPOINT)) {
        return UCS_OK;
    }

    (void)pthread_mutex_lock(&uct_cxi_trig_target_lock);
    if (md->target == NULL) {
        status = uct_cxi_trig_target_make(md, &md->target);
    }
    (void)pthread_mutex_unlock(&uct_cxi_trig_target_lock);
    return status;
}

ucs_status_t uct_cxi_trig_target_reg(uct_cxi_trig_md_t *md,
                                     uct_cxi_trig_mr_params_t *params,
                                     struct fid_mr **mr_p)
{
    ucs_status_t status = uct_cxi_trig_target_open(md);

    if (status != UCS_OK) {
        return status;
    }
    params->ep = (md->target == NULL) ? NULL : md->target->ep;
    return uct_cxi_trig_mr_open(md, params, mr_p);
}

void uct_cxi_trig_target_progress(uct_cxi_trig_md_t *md)
{
    struct fi_cq_msg_entry entry;

    /* Nothing is posted to it: there is no completion */
    (void)fi_cq_read(md->target->cq, &entry, 1);
}

void uct_cxi_trig_target_close(uct_cxi_trig_md_t *md)
{
    if (md->target != NULL) {
        uct_cxi_trig_net_close_ep(md->target);
        uct_cxi_trig_net_close(md->target);
        ucs_free(md->target);
    }
}
