/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_mr.c - registration with libfabric, and remote keys.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_mr.h"
#include "cxi_trig_gpu.h"
#include "cxi_trig_proto.h"
#include "cxi_trig_status.h"

#include <ucs/arch/atomic.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <string.h>
#include <sys/mman.h>

/* Keys 0-99 are special on Cassini: the region that such a key had before is
 * not told from the one that has it now */
#define UCT_CXI_TRIG_MR_FIRST_KEY 100

/* Keys of ours that may be taken by others of the domain before giving up */
#define UCT_CXI_TRIG_MR_KEY_TRIES 64


/* Asynchronous msync() does nothing, but fails where nothing is mapped. */
static int uct_cxi_trig_mr_is_mapped(const uct_cxi_trig_mr_params_t *params)
{
    uintptr_t start = uct_cxi_trig_mr_page(params->address);
    uintptr_t end   = (uintptr_t)params->address + params->length;

    return msync((void*)start, end - start, MS_ASYNC) == 0;
}

static int uct_cxi_trig_mr_is_inside(const uct_cxi_trig_mr_params_t *params,
                                     const uct_cxi_trig_gpu_mem_t *gpu)
{
    size_t offset = (uintptr_t)params->address - gpu->start;

    return (gpu->length == 0) || /* It was not told */
           ((offset <= gpu->length) &&
            (params->length <= gpu->length - offset));
}

/* Of memory that is a GPU's, but not known as one: why that is */
static const char *uct_cxi_trig_mr_unseen(const uct_cxi_trig_md_t *md)
{
    return md->sees_gpus ?
           "the runtime of GPUs whose memory it is is not loaded as "
           "libcuda.so.1 or libhsa-runtime64.so.1" :
           "UCX_CXI_TRIG_GPU_MEMORY=n has memory of GPUs taken for the host's";
}

/* Whose memory it is; not all providers look. UCS_OK, or a fault. */
static ucs_status_t
uct_cxi_trig_mr_locate(const uct_cxi_trig_md_t *md,
                       const uct_cxi_trig_mr_params_t *params,
                       uct_cxi_trig_gpu_mem_t *gpu, const char **fault_p)
{
    if (!uct_cxi_trig_mr_is_range(params->address, params->length)) {
        *fault_p = "there are no such addresses";
        return UCS_ERR_INVALID_ADDR;
    }

    if (!md->sees_gpus || !uct_cxi_trig_gpu_find(params->address, gpu)) {
        gpu->type  = UCS_MEMORY_TYPE_HOST;
        gpu->iface = FI_HMEM_SYSTEM;
        if (params->is_trial) {
            *fault_p = uct_cxi_trig_mr_unseen(md);
            return UCS_ERR_UNSUPPORTED;
        }
        *fault_p   = "there is no memory at all of these addresses";
        return uct_cxi_trig_mr_is_mapped(params) ?
               UCS_OK : UCS_ERR_INVALID_ADDR;
    }

    if (!uct_cxi_trig_prov_has_gpu_memory(md->info)) {
        *fault_p = "it is a GPU's memory, and the libfabric provider takes "
                   "none (FI_HMEM), or was asked before the GPU's runtime was "
                   "loaded (see UCX_CXI_TRIG_GPU_MEMORY)";
        return UCS_ERR_UNSUPPORTED;
    }
    *fault_p = "the GPU's memory of these addresses is smaller";
    return uct_cxi_trig_mr_is_inside(params, gpu) ?
           UCS_OK : UCS_ERR_INVALID_ADDR;
}

/* Memory that a processor could reach as well is left to the provider. */
static uint64_t uct_cxi_trig_mr_flags(const uct_cxi_trig_mr_params_t *params,
                                      const uct_cxi_trig_gpu_mem_t *gpu)
{
    int is_gpus = (gpu->type == UCS_MEMORY_TYPE_CUDA) ||
                  (gpu->type == UCS_MEMORY_TYPE_ROCM);

    return ((params->cntr == NULL) ? 0 : FI_RMA_EVENT) |
           (is_gpus ? FI_HMEM_DEVICE_ONLY : 0);
}

/* A counter that is to count writes counts reads as well, on Cassini: nobody is
 * to read there. */
static uint64_t uct_cxi_trig_mr_access(const uct_cxi_trig_mr_params_t *params)
{
    return FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_WRITE |
           ((params->cntr == NULL) ? FI_REMOTE_READ : 0);
}

/* A key is not used again, so that a late write of a peer cannot hit a region
 * that came after; or where they are short, as on cxi, after 4 billion others,
 * and not while it is in use (FI_ENOKEY). */
static uint64_t uct_cxi_trig_mr_next_key(uct_cxi_trig_md_t *md)
{
    size_t size    = md->info->domain_attr->mr_key_size;
    uint64_t count = (size < sizeof(uint64_t)) ?
                     (UCS_BIT(8 * size) - UCT_CXI_TRIG_MR_FIRST_KEY) :
                     UINT64_MAX;

    return UCT_CXI_TRIG_MR_FIRST_KEY +
           (ucs_atomic_fadd64(&md->next_key, 1) % count);
}

/* By a file descriptor, if there is one. A provider that takes none, though
 * libfabric has the word, makes one itself from the address. */
static int uct_cxi_trig_mr_call(uct_cxi_trig_md_t *md,
                                const uct_cxi_trig_mr_params_t *params,
                                struct fi_mr_attr *attr, uint64_t flags,
                                struct fid_mr **mr_p)
{
    struct iovec iov = {
        .iov_base = params->address,
        .iov_len  = params->length
    };

#if UCT_CXI_TRIG_HAS_DMABUF
    if (params->dmabuf != NULL) {
        struct fi_mr_dmabuf dmabuf = {
            .fd        = params->dmabuf->fd,
            .offset    = params->dmabuf->offset,
            .len       = params->length,
            .base_addr = UCS_PTR_BYTE_OFFSET(params->address,
                                             -params->dmabuf->offset)
        };
        int ret;

        attr->dmabuf = &dmabuf;
        ret          = fi_mr_regattr(md->domain, attr, flags | FI_MR_DMABUF,
                                     mr_p);
        if ((ret == 0) || (ret == -FI_ENOKEY)) {
            return ret;
        }
        ucs_debug("cannot register memory by a file descriptor: %s",
                  fi_strerror(-ret));
    }
#endif
    attr->mr_iov = &iov;
    return fi_mr_regattr(md->domain, attr, flags, mr_p);
}

static int uct_cxi_trig_mr_reg(uct_cxi_trig_md_t *md,
                               const uct_cxi_trig_mr_params_t *params,
                               const uct_cxi_trig_gpu_mem_t *gpu,
                               struct fid_mr **mr_p)
{
    uint64_t flags         = uct_cxi_trig_mr_flags(params, gpu);
    int tries              = UCT_CXI_TRIG_MR_KEY_TRIES;
    struct fi_mr_attr attr = {
        .iov_count = 1,
        .access    = uct_cxi_trig_mr_access(params),
        .iface     = gpu->iface
    };
    int ret;

    if (gpu->iface == FI_HMEM_CUDA) {
        attr.device.cuda = gpu->device;
    }
    do {
        attr.requested_key = uct_cxi_trig_mr_next_key(md);
        ret                = uct_cxi_trig_mr_call(md, params, &attr, flags,
                                                  mr_p);
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

static void uct_cxi_trig_mr_close_fid(struct fid_mr *mr)
{
    int ret = fi_close(&mr->fid);

    if (ret != 0) {
        ucs_warn("cannot deregister memory region %p: %s", mr,
                 fi_strerror(-ret));
    }
}

ucs_status_t uct_cxi_trig_mr_open(uct_cxi_trig_md_t *md,
                                  const uct_cxi_trig_mr_params_t *params,
                                  struct fid_mr **mr_p)
{
    uct_cxi_trig_gpu_mem_t gpu;
    struct fid_mr *mr;
    const char *fault;
    ucs_status_t status;
    int ret;

    status = uct_cxi_trig_mr_locate(md, params, &gpu, &fault);
    if (status != UCS_OK) {
        goto err;
    }

    ret = uct_cxi_trig_mr_reg(md, params, &gpu, &mr);
    if (ret != 0) {
        goto err_fabric;
    }

    ret = params->is_trial ? 0 : uct_cxi_trig_mr_bind(md, mr, params);
    if (ret != 0) {
        goto err_close;
    }

    uct_cxi_trig_stats_atomic(&md->stats.registered.count, 1);
    uct_cxi_trig_stats_atomic(&md->stats.registered.bytes, params->length);
    *mr_p = mr;
    return UCS_OK;

err_close:
    uct_cxi_trig_mr_close_fid(mr);
err_fabric:
    fault  = fi_strerror(-ret);
    status = uct_cxi_trig_status(ret);
err:
    uct_cxi_trig_stats_atomic(&md->stats.refused, 1);
    ucs_log(params->level, "cannot register %zu bytes at %p on device %s: %s",
            params->length, params->address, md->info->domain_attr->name,
            fault);
    if (params->reason != NULL) {
        ucs_snprintf_zero(params->reason, UCT_TRIG_REASON_MAX,
                          "device %s: %s", md->info->domain_attr->name, fault);
    }
    return status;
}

void uct_cxi_trig_mr_close(uct_cxi_trig_md_t *md, struct fid_mr *mr)
{
    uct_cxi_trig_stats_atomic(&md->stats.deregistered, 1);
    uct_cxi_trig_mr_close_fid(mr);
}

void uct_cxi_trig_mr_pack(uct_cxi_trig_md_t *md, struct fid_mr *mr,
                          const void *address, size_t length, void *buffer)
{
    uct_cxi_trig_rkey_t packed;

    memset(&packed, 0, sizeof(packed));
    packed.key     = fi_mr_key(mr);
    packed.address = (uintptr_t)address;
    packed.length  = length;
    if (uct_cxi_trig_mr_has_offsets(md)) {
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
