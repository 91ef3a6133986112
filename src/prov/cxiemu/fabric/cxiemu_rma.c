/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_rma.c - remote reads and writes.
 */
#include "fabric/cxiemu_fabric.h"
#include "fabric/cxiemu_info.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>


int cxiemu_op_from_rma(cxiemu_ep_t *ep, const struct fi_msg_rma *msg,
                       uint64_t flags, cxiemu_op_t *op)
{
    cxiemu_op_kind_t kind = op->kind;
    int reads             = (kind == CXIEMU_OP_READ);
    uint64_t allowed      = CXIEMU_OP_FLAGS;
    int ret;

    if ((msg == NULL) || (msg->msg_iov == NULL) || (msg->rma_iov == NULL) ||
        (msg->iov_count != 1) || (msg->rma_iov_count != 1)) {
        return -FI_EINVAL;
    }

    if (!reads) {
        /* CXI has no remote completion data with writes; fast mode has */
        allowed |= FI_INJECT | (cxiemu_param()->strict ? 0 : FI_REMOTE_CQ_DATA);
    }
    ret = cxiemu_op_check(ep, FI_RMA | (reads ? FI_READ : FI_WRITE), flags,
                          allowed);
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
    return cxiemu_op_map(op, CXIEMU_OP_BUFFER, op->length,
                         (void**)&op->buffer);
}

static ssize_t cxiemu_rma_post(struct fid_ep *fid, cxiemu_op_kind_t kind,
                               const struct fi_msg_rma *msg, uint64_t flags,
                               cxiemu_call_t call)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);
    cxiemu_op_t op  = {.kind = kind};
    int ret;

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }
    ret = cxiemu_op_from_rma(ep, msg, cxiemu_op_flags(fid, kind, call, flags),
                             &op);
    return (ret != 0) ? ret : cxiemu_ep_post(&op, call);
}

/* The length is the buffer's at both ends. */
static struct fi_msg_rma
cxiemu_rma_msg(const struct iovec *iov, size_t count, fi_addr_t peer,
               const struct fi_rma_iov *rma, void *context)
{
    return (struct fi_msg_rma){
        .msg_iov       = iov,
        .iov_count     = count,
        .addr          = peer,
        .rma_iov       = rma,
        .rma_iov_count = 1,
        .context       = context
    };
}

static ssize_t cxiemu_rma_readv(struct fid_ep *fid, const struct iovec *iov,
                                void **desc, size_t count, fi_addr_t src,
                                uint64_t addr, uint64_t key, void *context)
{
    struct fi_rma_iov rma = {.addr = addr, .key = key};
    struct fi_msg_rma msg = cxiemu_rma_msg(iov, count, src, &rma, context);

    return cxiemu_rma_post(fid, CXIEMU_OP_READ, &msg, 0, CXIEMU_CALL_PLAIN);
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
    return cxiemu_rma_post(fid, CXIEMU_OP_READ, msg, flags, CXIEMU_CALL_FLAGS);
}

static ssize_t cxiemu_rma_writev(struct fid_ep *fid, const struct iovec *iov,
                                 void **desc, size_t count, fi_addr_t dest,
                                 uint64_t addr, uint64_t key, void *context)
{
    struct fi_rma_iov rma = {.addr = addr, .key = key};
    struct fi_msg_rma msg = cxiemu_rma_msg(iov, count, dest, &rma, context);

    return cxiemu_rma_post(fid, CXIEMU_OP_WRITE, &msg, 0, CXIEMU_CALL_PLAIN);
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
    return cxiemu_rma_post(fid, CXIEMU_OP_WRITE, msg, flags, CXIEMU_CALL_FLAGS);
}

static ssize_t cxiemu_rma_writedata(struct fid_ep *fid, const void *buf,
                                    size_t len, void *desc, uint64_t data,
                                    fi_addr_t dest, uint64_t addr, uint64_t key,
                                    void *context)
{
    struct iovec iov      = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_rma_iov rma = {.addr = addr, .key = key};
    struct fi_msg_rma msg = cxiemu_rma_msg(&iov, 1, dest, &rma, context);

    if (cxiemu_param()->strict) {
        return -FI_ENOSYS;
    }
    msg.data = data;
    return cxiemu_rma_post(fid, CXIEMU_OP_WRITE, &msg, FI_REMOTE_CQ_DATA,
                           CXIEMU_CALL_PLAIN);
}

static ssize_t cxiemu_rma_injectdata(struct fid_ep *fid, const void *buf,
                                     size_t len, uint64_t data, fi_addr_t dest,
                                     uint64_t addr, uint64_t key)
{
    struct iovec iov      = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_rma_iov rma = {.addr = addr, .key = key};
    struct fi_msg_rma msg = cxiemu_rma_msg(&iov, 1, dest, &rma, NULL);

    if (cxiemu_param()->strict) {
        return -FI_ENOSYS;
    }
    msg.data = data;
    return cxiemu_rma_post(fid, CXIEMU_OP_WRITE, &msg, FI_REMOTE_CQ_DATA,
                           CXIEMU_CALL_INJECT);
}

static ssize_t cxiemu_rma_inject(struct fid_ep *fid, const void *buf,
                                 size_t len, fi_addr_t dest, uint64_t addr,
                                 uint64_t key)
{
    struct iovec iov      = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_rma_iov rma = {.addr = addr, .key = key};
    struct fi_msg_rma msg = cxiemu_rma_msg(&iov, 1, dest, &rma, NULL);

    return cxiemu_rma_post(fid, CXIEMU_OP_WRITE, &msg, 0, CXIEMU_CALL_INJECT);
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
