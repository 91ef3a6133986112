/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_msg.c - messages without tags.
 */
#include "cxiemu_ep.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>


int cxiemu_op_from_msg(cxiemu_ep_t *ep, const struct fi_msg *msg,
                       uint64_t flags, cxiemu_op_t *op)
{
    struct fi_msg_tagged tagged;

    if (msg == NULL) {
        return -FI_EINVAL;
    }

    tagged = (struct fi_msg_tagged){
        .msg_iov   = msg->msg_iov,
        .desc      = msg->desc,
        .iov_count = msg->iov_count,
        .addr      = msg->addr,
        .context   = msg->context,
        .data      = msg->data
    };
    return cxiemu_op_from_tagged(ep, &tagged, flags, op);
}

int cxiemu_rx_from_msg(cxiemu_ep_t *ep, const struct fi_msg *msg,
                       uint64_t flags, cxiemu_recv_req_t *req)
{
    const struct iovec *iov;
    int ret;

    if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
        return -FI_ENOSYS;
    }
    if ((msg == NULL) || (msg->iov_count > 1) ||
        ((msg->iov_count == 1) && (msg->msg_iov == NULL))) {
        return -FI_EINVAL;
    }
    ret = cxiemu_op_check(ep, FI_RECV | FI_MSG, flags, CXIEMU_RECV_FLAGS);
    if (ret != 0) {
        return ret;
    }
    iov = (msg->iov_count == 1) ? msg->msg_iov : &(struct iovec){NULL, 0};
    if (((iov->iov_base == NULL) && (iov->iov_len > 0)) ||
        ((flags & FI_MULTI_RECV) && (iov->iov_len == 0))) {
        return -FI_EINVAL;
    }

    *req = (cxiemu_recv_req_t){
        .buffer  = iov->iov_base,
        .length  = iov->iov_len,
        .src     = msg->addr,
        .flags   = (flags & (FI_COMPLETION | FI_MULTI_RECV)) |
                   (ep->rx_selective ? 0 : FI_COMPLETION),
        .context = msg->context
    };
    return 0;
}

static ssize_t cxiemu_msg_post(struct fid_ep *fid, const struct fi_msg *msg,
                               uint64_t flags, uint64_t without)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);
    cxiemu_op_t op  = {.kind = CXIEMU_OP_SEND};
    int ret;

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }

    ret = cxiemu_op_from_msg(ep, msg, flags, &op);
    if (ret != 0) {
        return ret;
    }

    op.flags &= ~without;
    return cxiemu_ep_post(&op);
}

/* One of the calls without flags: the endpoint's own ones, and these. */
static ssize_t cxiemu_msg_vector(struct fid_ep *fid, const struct fi_msg *msg,
                                 uint64_t flags)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }
    flags |= ep->tx_flags & ((CXIEMU_OP_FLAGS & ~FI_FENCE) | FI_INJECT);
    return cxiemu_msg_post(fid, msg, flags, 0);
}

static ssize_t cxiemu_msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
                                  uint64_t flags)
{
    return cxiemu_msg_post(fid, msg, flags, 0);
}

static ssize_t cxiemu_msg_sendv(struct fid_ep *fid, const struct iovec *iov,
                                void **desc, size_t count, fi_addr_t dest,
                                void *context)
{
    struct fi_msg msg = {
        .msg_iov   = iov,
        .desc      = desc,
        .iov_count = count,
        .addr      = dest,
        .context   = context
    };

    return cxiemu_msg_vector(fid, &msg, 0);
}

static ssize_t cxiemu_msg_send(struct fid_ep *fid, const void *buf, size_t len,
                               void *desc, fi_addr_t dest, void *context)
{
    struct iovec iov = {.iov_base = (void*)buf, .iov_len = len};

    return cxiemu_msg_sendv(fid, &iov, &desc, 1, dest, context);
}

static ssize_t cxiemu_msg_senddata(struct fid_ep *fid, const void *buf,
                                   size_t len, void *desc, uint64_t data,
                                   fi_addr_t dest, void *context)
{
    struct iovec iov  = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg msg = {
        .msg_iov   = &iov,
        .desc      = &desc,
        .iov_count = 1,
        .addr      = dest,
        .context   = context,
        .data      = data
    };

    return cxiemu_msg_vector(fid, &msg, FI_REMOTE_CQ_DATA);
}

static ssize_t cxiemu_msg_injectdata(struct fid_ep *fid, const void *buf,
                                     size_t len, uint64_t data, fi_addr_t dest)
{
    struct iovec iov  = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg msg = {
        .msg_iov   = &iov,
        .iov_count = 1,
        .addr      = dest,
        .data      = data
    };

    return cxiemu_msg_post(fid, &msg, FI_INJECT | FI_REMOTE_CQ_DATA,
                           FI_COMPLETION);
}

static ssize_t cxiemu_msg_inject(struct fid_ep *fid, const void *buf,
                                 size_t len, fi_addr_t dest)
{
    struct iovec iov  = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = dest};

    return cxiemu_msg_post(fid, &msg, FI_INJECT, FI_COMPLETION);
}

static ssize_t cxiemu_msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
                                  uint64_t flags)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);
    cxiemu_recv_req_t req;
    int ret;

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }

    ret = cxiemu_rx_from_msg(ep, msg, flags, &req);
    return (ret != 0) ? ret : cxiemu_ep_post_recv(&ep->msg, &req);
}

static ssize_t cxiemu_msg_recvv(struct fid_ep *fid, const struct iovec *iov,
                                void **desc, size_t count, fi_addr_t src,
                                void *context)
{
    cxiemu_ep_t *ep   = cxiemu_ep_from(fid);
    struct fi_msg msg = {
        .msg_iov   = iov,
        .desc      = desc,
        .iov_count = count,
        .addr      = src,
        .context   = context
    };

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }
    return cxiemu_msg_recvmsg(fid, &msg,
                              ep->rx_flags & (FI_COMPLETION | FI_MULTI_RECV));
}

static ssize_t cxiemu_msg_recv(struct fid_ep *fid, void *buf, size_t len,
                               void *desc, fi_addr_t src, void *context)
{
    struct iovec iov = {.iov_base = buf, .iov_len = len};

    return cxiemu_msg_recvv(fid, &iov, &desc, 1, src, context);
}

struct fi_ops_msg cxiemu_msg_ops = {
    .size       = sizeof(struct fi_ops_msg),
    .recv       = cxiemu_msg_recv,
    .recvv      = cxiemu_msg_recvv,
    .recvmsg    = cxiemu_msg_recvmsg,
    .send       = cxiemu_msg_send,
    .sendv      = cxiemu_msg_sendv,
    .sendmsg    = cxiemu_msg_sendmsg,
    .inject     = cxiemu_msg_inject,
    .senddata   = cxiemu_msg_senddata,
    .injectdata = cxiemu_msg_injectdata
};
