/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_mr.c - registration with libfabric, and remote keys.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_mem.h"
#include "cxi_trig_proto.h"
#include "cxi_trig_status.h"

#include <ucs/arch/atomic.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <string.h>
#include <sys/mman.h>

/* Keys of ours that may be taken by others of the domain before giving up */
#define UCT_CXI_TRIG_MR_KEY_TRIES 64


/* Asynchronous msync() does nothing, but fails where nothing is mapped. */
int uct_cxi_trig_mr_is_mapped(const void *address, size_t length)
{
    uintptr_t start = ucs_align_down_pow2((uintptr_t)address,
                                          ucs_get_page_size());
    uintptr_t end   = (uintptr_t)address + length;

    return (end > (uintptr_t)address) &&
           (msync((void*)start, end - start, MS_ASYNC) == 0);
}

static int uct_cxi_trig_mr_reg(uct_cxi_trig_md_t *md,
                               const uct_cxi_trig_mr_params_t *params,
                               struct fid_mr **mr_p)
{
    uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
                      FI_REMOTE_WRITE;
    uint64_t flags  = (params->cntr == NULL) ? 0 : FI_RMA_EVENT;
    int tries       = UCT_CXI_TRIG_MR_KEY_TRIES;
    uint64_t key;
    int ret;

    do {
        /* A key is never used again, so that a late write of a peer cannot hit
         * a region that came after */
        key = ucs_atomic_fadd64(&md->next_key, 1);
        ret = fi_mr_reg(md->domain, params->address, params->length, access, 0,
                        key, flags, mr_p, NULL);
    } while ((ret == -FI_ENOKEY) && (--tries > 0));
    return ret;
}

/* Binding comes before enabling: Cassini takes the counter over then. */
static int uct_cxi_trig_mr_bind(uct_cxi_trig_md_t *md, struct fid_mr *mr,
                                const uct_cxi_trig_mr_params_t *params)
{
    int ret;

    if (params->cntr != NULL) {
        ret = fi_mr_bind(mr, &params->cntr->fid, FI_REMOTE_WRITE);
        if (ret != 0) {
            return ret;
        }
    }

    if (!(md->info->domain_attr->mr_mode & FI_MR_ENDPOINT)) {
        return 0;
    }

    ret = fi_mr_bind(mr, &params->ep->fid, 0);
    if (ret != 0) {
        return ret;
    }
    return fi_mr_enable(mr);
}

ucs_status_t uct_cxi_trig_mr_open(uct_cxi_trig_md_t *md,
                                  const uct_cxi_trig_mr_params_t *params,
                                  struct fid_mr **mr_p)
{
    struct fid_mr *mr;
    int ret;

    ret = uct_cxi_trig_mr_reg(md, params, &mr);
    if (ret != 0) {
        goto err;
    }

    ret = uct_cxi_trig_mr_bind(md, mr, params);
    if (ret != 0) {
        goto err_close;
    }

    *mr_p = mr;
    return UCS_OK;

err_close:
    uct_cxi_trig_mr_close(mr);
err:
    ucs_log(params->level, "cannot register %zu bytes at %p on device %s: %s",
            params->length, params->address, md->info->domain_attr->name,
            fi_strerror(-ret));
    return uct_cxi_trig_status(ret);
}

void uct_cxi_trig_mr_close(struct fid_mr *mr)
{
    int ret = fi_close(&mr->fid);

    if (ret != 0) {
        ucs_warn("cannot deregister memory region %p: %s", mr,
                 fi_strerror(-ret));
    }
}

void uct_cxi_trig_mr_pack(uct_cxi_trig_md_t *md, struct fid_mr *mr,
                          const void *address, size_t length, void *buffer)
{
    uct_cxi_trig_rkey_t packed;

    memset(&packed, 0, sizeof(packed));
    packed.key     = fi_mr_key(mr);
    packed.address = (uintptr_t)address;
    packed.length  = length;
    if (!(md->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)) {
        packed.flags = UCT_CXI_TRIG_RKEY_OFFSET;
    }
    uct_cxi_trig_proto_seal(&packed.head, sizeof(packed));
    memcpy(buffer, &packed, sizeof(packed));
}

ucs_status_t uct_trig_rkey_unpack(const void *buffer, size_t length,
                                  uct_trig_rkey_t *rkey)
{
    uct_cxi_trig_rkey_t packed;
    const char *fault;

    fault = uct_cxi_trig_proto_check(buffer, sizeof(packed), length);
    if (fault != NULL) {
        ucs_error("remote key of cxi_trig refused: %s", fault);
        return UCS_ERR_INVALID_PARAM;
    }

    memcpy(&packed, buffer, sizeof(packed));
    rkey->key     = packed.key;
    rkey->address = packed.address;
    rkey->length  = packed.length;
    rkey->base    = (packed.flags & UCT_CXI_TRIG_RKEY_OFFSET) ?
                    packed.address : 0;
    return UCS_OK;
}
