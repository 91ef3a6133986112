/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_tagged.c - tagged messages.
 */
#include "cxiemu_ep.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>


static int cxiemu_tagged_iov(const struct fi_msg_tagged *msg, struct iovec *iov)
{
    if ((msg == NULL) || (msg->iov_count > 1) ||
        ((msg->iov_count == 1) && (msg->msg_iov == NULL))) {
        return -FI_EINVAL;
    }

    *iov = (msg->iov_count == 1) ? msg->msg_iov[0] : (struct iovec){NULL, 0};
    if ((iov->iov_base == NULL) && (iov->iov_len > 0)) {
        return -FI_EINVAL;
    }
    return (iov->iov_len > CXIEMU_MAX_MSG) ? -FI_EMSGSIZE : 0;
}

/* Both kinds of messages: op->kind says which. */
int cxiemu_op_from_tagged(cxiemu_ep_t *ep, const struct fi_msg_tagged *msg,
                          uint64_t flags, cxiemu_op_t *op)
{
    cxiemu_op_kind_t kind = op->kind;
    uint64_t cap          = FI_SEND | ((kind == CXIEMU_OP_TSEND) ? FI_TAGGED :
                                                                   FI_MSG);
    struct iovec iov;
    int ret;

    ret = cxiemu_tagged_iov(msg, &iov);
    if (ret != 0) {
        return ret;
    }
    ret = cxiemu_op_check(ep, cap, flags,
                          CXIEMU_OP_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA);
    if (ret != 0) {
        return ret;
    }
    if (msg->tag & ~CXIEMU_TAG_MASK) {
        return -FI_EINVAL;
    }
    if ((flags & FI_INJECT) && (iov.iov_len > CXIEMU_INJECT)) {
        return -FI_EMSGSIZE;
    }

    *op = (cxiemu_op_t){
        .kind    = kind,
        .ep      = ep,
        .flags   = flags | (ep->tx_selective ? 0 : FI_COMPLETION),
        .context = msg->context,
        .dest    = msg->addr,
        .buffer  = iov.iov_base,
        .length  = iov.iov_len,
        .tag     = msg->tag,
        .data    = msg->data
    };
    return 0;
}

int cxiemu_rx_from_tagged(cxiemu_ep_t *ep, const struct fi_msg_tagged *msg,
                          uint64_t flags, cxiemu_recv_req_t *req)
{
    struct iovec iov;
    int ret;

    if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
        return -FI_ENOSYS;
    }
    ret = cxiemu_tagged_iov(msg, &iov);
    if (ret != 0) {
        return ret;
    }
    ret = cxiemu_op_check(ep, FI_RECV | FI_TAGGED, flags, CXIEMU_RECV_FLAGS);
    if (ret != 0) {
        return ret;
    }
    if (msg->tag & ~CXIEMU_TAG_MASK) {
        return -FI_EINVAL;
    }

    *req = (cxiemu_recv_req_t){
        .buffer  = iov.iov_base,
        .length  = iov.iov_len,
        .src     = msg->addr,
        .tag     = msg->tag,
        .ignore  = msg->ignore,
        .flags   = (flags & FI_COMPLETION) |
                   (ep->rx_selective ? 0 : FI_COMPLETION),
        .context = msg->context
    };
    return 0;
}

static ssize_t cxiemu_tagged_post(struct fid_ep *fid,
                                  const struct fi_msg_tagged *msg,
                                  uint64_t flags, uint64_t without)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);
    cxiemu_op_t op  = {.kind = CXIEMU_OP_TSEND};
    int ret;

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }

    ret = cxiemu_op_from_tagged(ep, msg, flags, &op);
    if (ret != 0) {
        return ret;
    }

    op.flags &= ~without;
    return cxiemu_ep_post(&op);
}

/* One of the calls without flags: the endpoint's own ones, and these. */
static ssize_t cxiemu_tagged_vector(struct fid_ep *fid,
                                    const struct fi_msg_tagged *msg,
                                    uint64_t flags)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }
    flags |= ep->tx_flags & ((CXIEMU_OP_FLAGS & ~FI_FENCE) | FI_INJECT);
    return cxiemu_tagged_post(fid, msg, flags, 0);
}

static ssize_t cxiemu_tagged_sendmsg(struct fid_ep *fid,
                                     const struct fi_msg_tagged *msg,
                                     uint64_t flags)
{
    return cxiemu_tagged_post(fid, msg, flags, 0);
}

static ssize_t cxiemu_tagged_sendv(struct fid_ep *fid, const struct iovec *iov,
                                   void **desc, size_t count, fi_addr_t dest,
                                   uint64_t tag, void *context)
{
    struct fi_msg_tagged msg = {
        .msg_iov   = iov,
        .desc      = desc,
        .iov_count = count,
        .addr      = dest,
        .tag       = tag,
        .context   = context
    };

    return cxiemu_tagged_vector(fid, &msg, 0);
}

static ssize_t cxiemu_tagged_send(struct fid_ep *fid, const void *buf,
                                  size_t len, void *desc, fi_addr_t dest,
                                  uint64_t tag, void *context)
{
    struct iovec iov = {.iov_base = (void*)buf, .iov_len = len};

    return cxiemu_tagged_sendv(fid, &iov, &desc, 1, dest, tag, context);
}

static ssize_t cxiemu_tagged_senddata(struct fid_ep *fid, const void *buf,
                                      size_t len, void *desc, uint64_t data,
                                      fi_addr_t dest, uint64_t tag,
                                      void *context)
{
    struct iovec iov         = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg_tagged msg = {
        .msg_iov   = &iov,
        .desc      = &desc,
        .iov_count = 1,
        .addr      = dest,
        .tag       = tag,
        .context   = context,
        .data      = data
    };

    return cxiemu_tagged_vector(fid, &msg, FI_REMOTE_CQ_DATA);
}

static ssize_t cxiemu_tagged_injectdata(struct fid_ep *fid, const void *buf,
                                        size_t len, uint64_t data,
                                        fi_addr_t dest, uint64_t tag)
{
    struct iovec iov         = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg_tagged msg = {
        .msg_iov   = &iov,
        .iov_count = 1,
        .addr      = dest,
        .tag       = tag,
        .data      = data
    };

    return cxiemu_tagged_post(fid, &msg, FI_INJECT | FI_REMOTE_CQ_DATA,
                              FI_COMPLETION);
}

static ssize_t cxiemu_tagged_inject(struct fid_ep *fid, const void *buf,
                                    size_t len, fi_addr_t dest, uint64_t tag)
{
    struct iovec iov         = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg_tagged msg = {
        .msg_iov   = &iov,
        .iov_count = 1,
        .addr      = dest,
        .tag       = tag
    };

    return cxiemu_tagged_post(fid, &msg, FI_INJECT, FI_COMPLETION);
}

static ssize_t cxiemu_tagged_recvmsg(struct fid_ep *fid,
                                     const struct fi_msg_tagged *msg,
                                     uint64_t flags)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);
    cxiemu_recv_req_t req;
    int ret;

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }

    ret = cxiemu_rx_from_tagged(ep, msg, flags, &req);
    return (ret != 0) ? ret : cxiemu_ep_post_recv(&ep->tagged, &req);
}

static ssize_t cxiemu_tagged_recvv(struct fid_ep *fid, const struct iovec *iov,
                                   void **desc, size_t count, fi_addr_t src,
                                   uint64_t tag, uint64_t ignore, void *context)
{
    cxiemu_ep_t *ep          = cxiemu_ep_from(fid);
    struct fi_msg_tagged msg = {
        .msg_iov   = iov,
        .desc      = desc,
        .iov_count = count,
        .addr      = src,
        .tag       = tag,
        .ignore    = ignore,
        .context   = context
    };

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }
    return cxiemu_tagged_recvmsg(fid, &msg, ep->rx_flags & FI_COMPLETION);
}

static ssize_t cxiemu_tagged_recv(struct fid_ep *fid, void *buf, size_t len,
                                  void *desc, fi_addr_t src, uint64_t tag,
                                  uint64_t ignore, void *context)
{
    struct iovec iov = {.iov_base = buf, .iov_len = len};

    return cxiemu_tagged_recvv(fid, &iov, &desc, 1, src, tag, ignore, context);
}

struct fi_ops_tagged cxiemu_tagged_ops = {
    .size       = sizeof(struct fi_ops_tagged),
    .recv       = cxiemu_tagged_recv,
    .recvv      = cxiemu_tagged_recvv,
    .recvmsg    = cxiemu_tagged_recvmsg,
    .send       = cxiemu_tagged_send,
    .sendv      = cxiemu_tagged_sendv,
    .sendmsg    = cxiemu_tagged_sendmsg,
    .inject     = cxiemu_tagged_inject,
    .senddata   = cxiemu_tagged_senddata,
    .injectdata = cxiemu_tagged_injectdata
};
