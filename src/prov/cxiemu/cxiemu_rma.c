/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_rma.c - remote reads and writes.
 */
#include "cxiemu_ep.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>


/* CXI has no remote completion data with writes; fast mode has. */
static uint64_t cxiemu_rma_allowed(cxiemu_op_kind_t kind)
{
    if (kind == CXIEMU_OP_READ) {
        return CXIEMU_OP_FLAGS;
    }
    return CXIEMU_OP_FLAGS | FI_INJECT |
           (cxiemu_param()->strict ? 0 : FI_REMOTE_CQ_DATA);
}

static int cxiemu_rma_check(const cxiemu_ep_t *ep, const struct fi_msg_rma *msg,
                            uint64_t flags, cxiemu_op_kind_t kind)
{
    uint64_t cap = FI_RMA | ((kind == CXIEMU_OP_READ) ? FI_READ : FI_WRITE);
    int ret;

    if ((msg == NULL) || (msg->msg_iov == NULL) || (msg->rma_iov == NULL) ||
        (msg->iov_count != 1) || (msg->rma_iov_count != 1)) {
        return -FI_EINVAL;
    }

    ret = cxiemu_op_check(ep, cap, flags, cxiemu_rma_allowed(kind));
    if (ret != 0) {
        return ret;
    }

    if ((msg->msg_iov->iov_len > CXIEMU_MAX_MSG) ||
        ((flags & FI_INJECT) && (msg->msg_iov->iov_len > CXIEMU_INJECT))) {
        return -FI_EMSGSIZE;
    }
    if (((msg->msg_iov->iov_base == NULL) && (msg->msg_iov->iov_len > 0)) ||
        (msg->rma_iov->addr + msg->msg_iov->iov_len < msg->rma_iov->addr)) {
        return -FI_EINVAL;
    }
    return 0;
}

int cxiemu_op_from_rma(cxiemu_ep_t *ep, const struct fi_msg_rma *msg,
                       uint64_t flags, cxiemu_op_t *op)
{
    cxiemu_op_kind_t kind = op->kind;
    int ret               = cxiemu_rma_check(ep, msg, flags, kind);

    if (ret != 0) {
        return ret;
    }

    *op = (cxiemu_op_t){
        .kind    = kind,
        .ep      = ep,
        .flags   = flags | (ep->tx_selective ? 0 : FI_COMPLETION),
        .context = msg->context,
        .dest    = msg->addr,
        .buffer  = msg->msg_iov->iov_base,
        .length  = msg->msg_iov->iov_len,
        .data    = msg->data,
        .addr    = msg->rma_iov->addr,
        .key     = msg->rma_iov->key
    };
    return 0;
}

/* The endpoint's default flags as far as these operations take them. */
static uint64_t cxiemu_rma_defaults(const cxiemu_ep_t *ep,
                                    cxiemu_op_kind_t kind)
{
    return ep->tx_flags &
           ((CXIEMU_OP_FLAGS & ~FI_FENCE) |
            ((kind == CXIEMU_OP_WRITE) ? FI_INJECT : 0));
}

/* Without FI_COMPLETION: what was injected leaves no entry unless it fails. */
static ssize_t cxiemu_rma_post(struct fid_ep *fid, const struct fi_msg_rma *msg,
                               cxiemu_op_kind_t kind, uint64_t flags,
                               uint64_t without)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);
    cxiemu_op_t op  = {.kind = kind};
    int ret;

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }

    ret = cxiemu_op_from_rma(ep, msg, flags, &op);
    if (ret != 0) {
        return ret;
    }

    op.flags &= ~without;
    return cxiemu_ep_post(&op);
}

/* One of the calls without flags: the endpoint's own ones, and these. The
 * length is the buffer's at both ends. */
static ssize_t cxiemu_rma_vector(struct fid_ep *fid, struct fi_msg_rma *msg,
                                 cxiemu_op_kind_t kind, uint64_t flags)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }
    return cxiemu_rma_post(fid, msg, kind,
                           cxiemu_rma_defaults(ep, kind) | flags, 0);
}

static ssize_t cxiemu_rma_readv(struct fid_ep *fid, const struct iovec *iov,
                                void **desc, size_t count, fi_addr_t src,
                                uint64_t addr, uint64_t key, void *context)
{
    struct fi_rma_iov rma = {.addr = addr, .key = key};
    struct fi_msg_rma msg = {
        .msg_iov       = iov,
        .desc          = desc,
        .iov_count     = count,
        .addr          = src,
        .rma_iov       = &rma,
        .rma_iov_count = 1,
        .context       = context
    };

    return cxiemu_rma_vector(fid, &msg, CXIEMU_OP_READ, 0);
}

static ssize_t cxiemu_rma_read(struct fid_ep *fid, void *buf, size_t len,
                               void *desc, fi_addr_t src, uint64_t addr,
                               uint64_t key, void *context)
{
    struct iovec iov = {.iov_base = buf, .iov_len = len};

    return cxiemu_rma_readv(fid, &iov, &desc, 1, src, addr, key, context);
}

static ssize_t cxiemu_rma_readmsg(struct fid_ep *fid,
                                  const struct fi_msg_rma *msg, uint64_t flags)
{
    return cxiemu_rma_post(fid, msg, CXIEMU_OP_READ, flags, 0);
}

static ssize_t cxiemu_rma_writev(struct fid_ep *fid, const struct iovec *iov,
                                 void **desc, size_t count, fi_addr_t dest,
                                 uint64_t addr, uint64_t key, void *context)
{
    struct fi_rma_iov rma = {.addr = addr, .key = key};
    struct fi_msg_rma msg = {
        .msg_iov       = iov,
        .desc          = desc,
        .iov_count     = count,
        .addr          = dest,
        .rma_iov       = &rma,
        .rma_iov_count = 1,
        .context       = context
    };

    return cxiemu_rma_vector(fid, &msg, CXIEMU_OP_WRITE, 0);
}

static ssize_t cxiemu_rma_write(struct fid_ep *fid, const void *buf, size_t len,
                                void *desc, fi_addr_t dest, uint64_t addr,
                                uint64_t key, void *context)
{
    struct iovec iov = {.iov_base = (void*)buf, .iov_len = len};

    return cxiemu_rma_writev(fid, &iov, &desc, 1, dest, addr, key, context);
}

static ssize_t cxiemu_rma_writemsg(struct fid_ep *fid,
                                   const struct fi_msg_rma *msg, uint64_t flags)
{
    return cxiemu_rma_post(fid, msg, CXIEMU_OP_WRITE, flags, 0);
}

static ssize_t cxiemu_rma_writedata(struct fid_ep *fid, const void *buf,
                                    size_t len, void *desc, uint64_t data,
                                    fi_addr_t dest, uint64_t addr, uint64_t key,
                                    void *context)
{
    struct iovec iov      = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_rma_iov rma = {.addr = addr, .len = len, .key = key};
    struct fi_msg_rma msg = {
        .msg_iov       = &iov,
        .desc          = &desc,
        .iov_count     = 1,
        .addr          = dest,
        .rma_iov       = &rma,
        .rma_iov_count = 1,
        .context       = context,
        .data          = data
    };

    if (cxiemu_param()->strict) {
        return -FI_ENOSYS;
    }
    return cxiemu_rma_vector(fid, &msg, CXIEMU_OP_WRITE, FI_REMOTE_CQ_DATA);
}

static ssize_t cxiemu_rma_injectdata(struct fid_ep *fid, const void *buf,
                                     size_t len, uint64_t data, fi_addr_t dest,
                                     uint64_t addr, uint64_t key)
{
    struct iovec iov      = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_rma_iov rma = {.addr = addr, .len = len, .key = key};
    struct fi_msg_rma msg = {
        .msg_iov       = &iov,
        .iov_count     = 1,
        .addr          = dest,
        .rma_iov       = &rma,
        .rma_iov_count = 1,
        .data          = data
    };

    if (cxiemu_param()->strict) {
        return -FI_ENOSYS;
    }
    return cxiemu_rma_post(fid, &msg, CXIEMU_OP_WRITE,
                           FI_INJECT | FI_REMOTE_CQ_DATA, FI_COMPLETION);
}

static ssize_t cxiemu_rma_inject(struct fid_ep *fid, const void *buf,
                                 size_t len, fi_addr_t dest, uint64_t addr,
                                 uint64_t key)
{
    struct iovec iov      = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_rma_iov rma = {.addr = addr, .len = len, .key = key};
    struct fi_msg_rma msg = {
        .msg_iov       = &iov,
        .iov_count     = 1,
        .addr          = dest,
        .rma_iov       = &rma,
        .rma_iov_count = 1
    };

    return cxiemu_rma_post(fid, &msg, CXIEMU_OP_WRITE, FI_INJECT,
                           FI_COMPLETION);
}

struct fi_ops_rma cxiemu_rma_ops = {
    .size       = sizeof(struct fi_ops_rma),
    .read       = cxiemu_rma_read,
    .readv      = cxiemu_rma_readv,
    .readmsg    = cxiemu_rma_readmsg,
    .write      = cxiemu_rma_write,
    .writev     = cxiemu_rma_writev,
    .writemsg   = cxiemu_rma_writemsg,
    .inject     = cxiemu_rma_inject,
    .writedata  = cxiemu_rma_writedata,
    .injectdata = cxiemu_rma_injectdata
};
