/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_mem.c - memory regions of the trigger extension.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_mem.h"
#include "cxi_trig_addr.h"
#include "cxi_trig_cntr.h"
#include "cxi_trig_iface.h"
#include "cxi_trig_mr.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>


static ucs_status_t uct_cxi_trig_mem_check(void *address, size_t length)
{
    return ((address == NULL) || (length == 0)) ? UCS_ERR_INVALID_PARAM :
                                                  UCS_OK;
}

/* Memory that is longer than the field is not there */
static ucs_status_t uct_cxi_trig_mem_open(uct_trig_mem_h mem, size_t length)
{
    uct_cxi_trig_iface_t *iface     = mem->iface;
    uct_cxi_trig_mr_params_t params = {
        .address = mem->address,
        .length  = length,
        .ep      = iface->net.ep,
        .cntr    = (mem->cntr == NULL) ? NULL : mem->cntr->cntr,
        .level   = UCS_LOG_LEVEL_ERROR
    };

    return uct_cxi_trig_mr_open(uct_cxi_trig_iface_md(iface), &params,
                                &mem->mr);
}

ucs_status_t uct_trig_mem_reg(uct_iface_h uct_iface, void *address,
                              size_t length, uct_trig_cntr_h cntr,
                              uct_trig_mem_h *mem_p)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_iface_from_uct(uct_iface);
    uct_trig_mem_h mem;
    ucs_status_t status;

    if (iface == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_cxi_trig_mem_check(address, length);
    if (status != UCS_OK) {
        return status;
    }

    mem = ucs_calloc(1, sizeof(*mem), "uct_trig_mem");
    if (mem == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    mem->iface   = iface;
    mem->address = address;
    mem->cntr    = cntr;
    status       = uct_cxi_trig_mem_open(mem, length);
    if (status != UCS_OK) {
        ucs_free(mem);
        return status;
    }

    mem->length = length;
    if (cntr != NULL) {
        ++cntr->refs;
    }
    ucs_list_add_tail(&iface->mems, &mem->list);
    *mem_p = mem;
    return UCS_OK;
}

ucs_status_t uct_trig_mem_check(uct_iface_h uct_iface, void *address,
                                size_t length, char *reason, size_t max)
{
    uct_cxi_trig_iface_t *iface     = uct_cxi_trig_iface_from_uct(uct_iface);
    char text[UCT_TRIG_REASON_MAX]  = "";
    uct_cxi_trig_mr_params_t params = {
        .address  = address,
        .length   = length,
        .level    = UCS_LOG_LEVEL_DEBUG,
        .reason   = text,
        .is_trial = 1
    };
    uct_cxi_trig_md_t *md;
    ucs_status_t status;
    struct fid_mr *mr;

    if (iface == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_cxi_trig_mem_check(address, length);
    if (status == UCS_OK) {
        md     = uct_cxi_trig_iface_md(iface);
        status = uct_cxi_trig_mr_open(md, &params, &mr);
        if (status == UCS_OK) {
            uct_cxi_trig_mr_close(md, mr);
        }
    }
    if (reason != NULL) {
        ucs_snprintf_zero(reason, max, "%s", text);
    }
    return status;
}

static void uct_cxi_trig_mem_close(uct_trig_mem_h mem)
{
    if (mem->mr != NULL) {
        uct_cxi_trig_mr_close(uct_cxi_trig_iface_md(mem->iface), mem->mr);
        mem->mr = NULL;
    }
}

static void uct_cxi_trig_mem_free(uct_trig_mem_h mem)
{
    uct_cxi_trig_mem_close(mem);
    if (mem->cntr != NULL) {
        --mem->cntr->refs;
    }
    ucs_list_del(&mem->list);
    ucs_free(mem);
}

ucs_status_t uct_trig_mem_dereg(uct_trig_mem_h mem)
{
    if (mem->refs > 0) {
        return UCS_ERR_BUSY;
    }

    uct_cxi_trig_mem_free(mem);
    return UCS_OK;
}

void uct_cxi_trig_mem_close_all(uct_cxi_trig_iface_t *iface)
{
    uct_trig_mem_h mem;

    ucs_list_for_each(mem, &iface->mems, list) {
        ucs_warn("interface %p is closed with memory region %p", iface, mem);
        uct_cxi_trig_mem_close(mem);
    }
}

void uct_cxi_trig_mem_cleanup(uct_cxi_trig_iface_t *iface)
{
    uct_trig_mem_h mem, tmp;

    ucs_list_for_each_safe(mem, tmp, &iface->mems, list) {
        uct_cxi_trig_mem_free(mem);
    }
}

void uct_trig_mem_pack(uct_trig_mem_h mem, void *buffer)
{
    uct_cxi_trig_mr_pack(uct_cxi_trig_iface_md(mem->iface), mem->mr,
                         mem->address, mem->length, buffer);
}
