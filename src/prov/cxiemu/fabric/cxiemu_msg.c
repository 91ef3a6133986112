/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_msg.c - messages, with tags and without.
 *
 * Those without are described as those with a tag, of 0.
 */
#include "fabric/cxiemu_fabric.h"
#include "fabric/cxiemu_info.h"
#include "base/cxiemu_dma.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>


const struct fi_msg_tagged *cxiemu_msg_widen(const struct fi_msg *msg,
                                             struct fi_msg_tagged *tagged)
{
    if (msg == NULL) {
        return NULL;
    }
    *tagged = (struct fi_msg_tagged){
        .msg_iov   = msg->msg_iov,
        .iov_count = msg->iov_count,
        .addr      = msg->addr,
        .context   = msg->context,
        .data      = msg->data
    };
    return tagged;
}

static int cxiemu_msg_iov(const struct fi_msg_tagged *msg, struct iovec *iov)
{
    if ((msg == NULL) || (msg->iov_count > 1) ||
        ((msg->iov_count == 1) && (msg->msg_iov == NULL))) {
        return -FI_EINVAL;
    }

    *iov = (msg->iov_count == 1) ? msg->msg_iov[0] : (struct iovec){NULL, 0};
    return ((iov->iov_base == NULL) && (iov->iov_len > 0)) ? -FI_EINVAL : 0;
}

int cxiemu_op_from_tagged(cxiemu_ep_t *ep, const struct fi_msg_tagged *msg,
                          uint64_t flags, cxiemu_op_t *op)
{
    cxiemu_op_kind_t kind = op->kind;
    uint64_t cap          = FI_SEND | ((kind == CXIEMU_OP_TSEND) ? FI_TAGGED :
                                                                   FI_MSG);
    struct iovec iov;
    int ret;

    ret = cxiemu_msg_iov(msg, &iov);
    if (ret != 0) {
        return ret;
    }
    if (iov.iov_len > CXIEMU_MAX_MSG) {
        return -FI_EMSGSIZE;
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
    return cxiemu_op_map(op, CXIEMU_OP_BUFFER, op->length,
                         (void**)&op->buffer);
}

int cxiemu_rx_from_tagged(cxiemu_rx_t *rx, const struct fi_msg_tagged *msg,
                          uint64_t flags, cxiemu_recv_req_t *req)
{
    cxiemu_ep_t *ep = rx->ep;
    uint64_t search = rx->is_tagged ? FI_PEEK | FI_CLAIM : 0;
    uint64_t kept   = FI_COMPLETION | (rx->is_tagged ? search : FI_MULTI_RECV);
    struct iovec iov;
    int ret;

    /* A peek has no buffer: what is said of one is not looked at */
    if (flags & search & FI_PEEK) {
        iov = (struct iovec){NULL, 0};
        ret = (msg == NULL) ? -FI_EINVAL : 0;
    } else {
        ret = cxiemu_msg_iov(msg, &iov);
    }
    if (ret != 0) {
        return ret;
    }
    if (rx->is_tagged && (iov.iov_len > CXIEMU_MAX_MSG)) {
        return -FI_EMSGSIZE;
    }
    ret = cxiemu_op_check(ep, FI_RECV | (rx->is_tagged ? FI_TAGGED : FI_MSG),
                          flags, CXIEMU_RECV_FLAGS | search);
    if (ret != 0) {
        return ret;
    }
    if (((msg->tag | msg->ignore) & ~CXIEMU_TAG_MASK) ||
        ((flags & FI_CLAIM) && (msg->context == NULL)) ||
        ((flags & kept & FI_MULTI_RECV) && (iov.iov_len == 0))) {
        return -FI_EINVAL;
    }

    *req = (cxiemu_recv_req_t){
        .buffer  = iov.iov_base,
        .length  = iov.iov_len,
        .src     = msg->addr,
        .tag     = msg->tag,
        .ignore  = msg->ignore,
        .flags   = (flags & kept) | (ep->rx_selective ? 0 : FI_COMPLETION),
        .context = msg->context
    };
    if (!(ep->domain->info->caps & FI_HMEM)) {
        return 0;
    }
    ret = cxiemu_dma_open(req->buffer, req->length, 0, &req->dma);
    if (ret == 0) {
        req->buffer = cxiemu_dma_at(req->dma, req->buffer);
    }
    return ret;
}


static ssize_t cxiemu_msg_post(struct fid_ep *fid, cxiemu_op_kind_t kind,
                               const struct fi_msg_tagged *msg, uint64_t flags,
                               cxiemu_call_t call)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);
    cxiemu_op_t op  = {.kind = kind};
    int ret;

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }
    ret = cxiemu_op_from_tagged(ep, msg,
                                cxiemu_op_flags(fid, kind, call, flags), &op);
    return (ret != 0) ? ret : cxiemu_ep_post(&op, call);
}

static ssize_t cxiemu_msg_receive(struct fid_ep *fid, int is_tagged,
                                  const struct fi_msg_tagged *msg,
                                  uint64_t flags, cxiemu_call_t call)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);
    cxiemu_recv_req_t req;
    cxiemu_rx_t *rx;
    int ret;

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }
    if (call == CXIEMU_CALL_PLAIN) {
        flags |= cxiemu_ep_handle(&fid->fid)->rx_flags &
                 (FI_COMPLETION | FI_MULTI_RECV);
    }
    rx  = is_tagged ? &ep->tagged : &ep->msg;
    ret = cxiemu_rx_from_tagged(rx, msg, flags, &req);
    return (ret != 0) ? ret : cxiemu_ep_post_recv(rx, &req);
}

/* A message of one buffer. */
static struct fi_msg_tagged
cxiemu_msg_of(const struct iovec *iov, fi_addr_t dest, uint64_t tag,
              uint64_t data, void *context)
{
    return (struct fi_msg_tagged){
        .msg_iov   = iov,
        .iov_count = 1,
        .addr      = dest,
        .tag       = tag,
        .context   = context,
        .data      = data
    };
}


static ssize_t cxiemu_msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
                                  uint64_t flags)
{
    struct fi_msg_tagged tagged;

    return cxiemu_msg_post(fid, CXIEMU_OP_SEND, cxiemu_msg_widen(msg, &tagged),
                           flags, CXIEMU_CALL_FLAGS);
}

static ssize_t cxiemu_msg_sendv(struct fid_ep *fid, const struct iovec *iov,
                                void **desc, size_t count, fi_addr_t dest,
                                void *context)
{
    struct fi_msg_tagged msg = cxiemu_msg_of(iov, dest, 0, 0, context);

    msg.iov_count = count;
    return cxiemu_msg_post(fid, CXIEMU_OP_SEND, &msg, 0, CXIEMU_CALL_PLAIN);
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
    struct iovec iov         = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg_tagged msg = cxiemu_msg_of(&iov, dest, 0, data, context);

    return cxiemu_msg_post(fid, CXIEMU_OP_SEND, &msg, FI_REMOTE_CQ_DATA,
                           CXIEMU_CALL_PLAIN);
}

static ssize_t cxiemu_msg_injectdata(struct fid_ep *fid, const void *buf,
                                     size_t len, uint64_t data, fi_addr_t dest)
{
    struct iovec iov         = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg_tagged msg = cxiemu_msg_of(&iov, dest, 0, data, NULL);

    return cxiemu_msg_post(fid, CXIEMU_OP_SEND, &msg, FI_REMOTE_CQ_DATA,
                           CXIEMU_CALL_INJECT);
}

static ssize_t cxiemu_msg_inject(struct fid_ep *fid, const void *buf,
                                 size_t len, fi_addr_t dest)
{
    struct iovec iov         = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg_tagged msg = cxiemu_msg_of(&iov, dest, 0, 0, NULL);

    return cxiemu_msg_post(fid, CXIEMU_OP_SEND, &msg, 0, CXIEMU_CALL_INJECT);
}

static ssize_t cxiemu_msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
                                  uint64_t flags)
{
    struct fi_msg_tagged tagged;

    return cxiemu_msg_receive(fid, 0, cxiemu_msg_widen(msg, &tagged), flags,
                              CXIEMU_CALL_FLAGS);
}

static ssize_t cxiemu_msg_recvv(struct fid_ep *fid, const struct iovec *iov,
                                void **desc, size_t count, fi_addr_t src,
                                void *context)
{
    struct fi_msg_tagged msg = cxiemu_msg_of(iov, src, 0, 0, context);

    msg.iov_count = count;
    return cxiemu_msg_receive(fid, 0, &msg, 0, CXIEMU_CALL_PLAIN);
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


static ssize_t cxiemu_tagged_sendmsg(struct fid_ep *fid,
                                     const struct fi_msg_tagged *msg,
                                     uint64_t flags)
{
    return cxiemu_msg_post(fid, CXIEMU_OP_TSEND, msg, flags, CXIEMU_CALL_FLAGS);
}

static ssize_t cxiemu_tagged_sendv(struct fid_ep *fid, const struct iovec *iov,
                                   void **desc, size_t count, fi_addr_t dest,
                                   uint64_t tag, void *context)
{
    struct fi_msg_tagged msg = cxiemu_msg_of(iov, dest, tag, 0, context);

    msg.iov_count = count;
    return cxiemu_msg_post(fid, CXIEMU_OP_TSEND, &msg, 0, CXIEMU_CALL_PLAIN);
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
    struct fi_msg_tagged msg = cxiemu_msg_of(&iov, dest, tag, data, context);

    return cxiemu_msg_post(fid, CXIEMU_OP_TSEND, &msg, FI_REMOTE_CQ_DATA,
                           CXIEMU_CALL_PLAIN);
}

static ssize_t cxiemu_tagged_injectdata(struct fid_ep *fid, const void *buf,
                                        size_t len, uint64_t data,
                                        fi_addr_t dest, uint64_t tag)
{
    struct iovec iov         = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg_tagged msg = cxiemu_msg_of(&iov, dest, tag, data, NULL);

    return cxiemu_msg_post(fid, CXIEMU_OP_TSEND, &msg, FI_REMOTE_CQ_DATA,
                           CXIEMU_CALL_INJECT);
}

static ssize_t cxiemu_tagged_inject(struct fid_ep *fid, const void *buf,
                                    size_t len, fi_addr_t dest, uint64_t tag)
{
    struct iovec iov         = {.iov_base = (void*)buf, .iov_len = len};
    struct fi_msg_tagged msg = cxiemu_msg_of(&iov, dest, tag, 0, NULL);

    return cxiemu_msg_post(fid, CXIEMU_OP_TSEND, &msg, 0, CXIEMU_CALL_INJECT);
}

static ssize_t cxiemu_tagged_recvmsg(struct fid_ep *fid,
                                     const struct fi_msg_tagged *msg,
                                     uint64_t flags)
{
    return cxiemu_msg_receive(fid, 1, msg, flags, CXIEMU_CALL_FLAGS);
}

static ssize_t cxiemu_tagged_recvv(struct fid_ep *fid, const struct iovec *iov,
                                   void **desc, size_t count, fi_addr_t src,
                                   uint64_t tag, uint64_t ignore, void *context)
{
    struct fi_msg_tagged msg = cxiemu_msg_of(iov, src, tag, 0, context);

    msg.iov_count = count;
    msg.ignore    = ignore;
    return cxiemu_msg_receive(fid, 1, &msg, 0, CXIEMU_CALL_PLAIN);
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
