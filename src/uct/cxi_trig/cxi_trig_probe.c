/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_probe.c - domains are opened for a trial.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_probe.h"
#include "cxi_trig_cassini.h"
#include "cxi_trig_device.h"

#include <uct_trig.h>

#include <ucs/debug/log.h>

#include <rdma/fi_domain.h>

#include <stdio.h>


/* Whether a counter can be opened: 0, or -FI_E. The provider opens a domain
 * with a VNI that the service lacks, or without a counter left, and refuses the
 * first counter. UCX gives up all transports if an interface of a domain that
 * was found does not open. */
static int uct_cxi_trig_probe_domain(struct fid_domain *domain)
{
    struct fid_cntr *cntr;
    int ret;

    ret = uct_cxi_trig_device_open_cntr(domain, NULL, &cntr);
    if (ret == 0) {
        fi_close(&cntr->fid);
    }
    return ret;
}

/* 0, or -FI_E */
static int uct_cxi_trig_probe_one(const uct_cxi_trig_prov_t *prov,
                                  struct fi_info *info)
{
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    int ret;

    ret = prov->ops->fabric(info->fabric_attr, &fabric, NULL);
    if (ret != 0) {
        return ret;
    }

    ret = fi_domain(fabric, info, &domain, NULL);
    if (ret == 0) {
        ret = uct_cxi_trig_probe_domain(domain);
        fi_close(&domain->fid);
    }
    fi_close(&fabric->fid);
    return ret;
}

static void uct_cxi_trig_probe_explain(const struct fi_info *info, int ret,
                                       char *text, size_t max)
{
    char advice[UCT_TRIG_REASON_MAX];

    uct_cxi_trig_cassini_advise(info, ret, advice, sizeof(advice));
    snprintf(text, max, "domain %.32s: %.64s: %.380s", info->domain_attr->name,
             fi_strerror(-ret), advice);
}

void uct_cxi_trig_probe(const uct_cxi_trig_prov_t *prov, struct fi_info **list,
                        char *fault, size_t max)
{
    struct fi_info **info_p = list;
    char text[UCT_TRIG_REASON_MAX];
    struct fi_info *info;
    int ret;

    fault[0] = '\0';
    while ((info = *info_p) != NULL) {
        ret = uct_cxi_trig_probe_one(prov, info);
        if (ret == 0) {
            info_p = &info->next;
            continue;
        }

        uct_cxi_trig_probe_explain(info, ret, text, sizeof(text));
        ucs_diag("libfabric provider '%s' does not open %s",
                 info->fabric_attr->prov_name, text);
        if (fault[0] == '\0') {
            snprintf(fault, max, "%s", text);
        }
        *info_p    = info->next;
        info->next = NULL;
        fi_freeinfo(info);
    }
}
