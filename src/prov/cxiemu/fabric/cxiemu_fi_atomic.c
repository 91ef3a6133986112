/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_fi_atomic.c - how atomics are described and posted.
 */
#include "fabric/cxiemu_fabric.h"
#include "op/cxiemu_atomic.h"

#include <rdma/fi_errno.h>

#include <string.h>


static int cxiemu_atomic_ioc(const struct fi_ioc *ioc, size_t count)
{
    return ((count != 1) || (ioc == NULL) || (ioc->count != 1) ||
            (ioc->addr == NULL)) ? -FI_EINVAL : 0;
}

static uint64_t cxiemu_atomic_load(const void *address, size_t size)
{
    uint64_t value = 0;

    memcpy(&value, address, size);
    return value;
}

int cxiemu_op_set_result(cxiemu_op_t *op, const struct fi_ioc *result,
                         size_t count)
{
    if (cxiemu_atomic_ioc(result, count) != 0) {
        return -FI_EINVAL;
    }

    op->result = result->addr;
    return cxiemu_op_map(op, CXIEMU_OP_RESULT, op->length, &op->result);
}

int cxiemu_op_set_compare(cxiemu_op_t *op, const struct fi_ioc *compare,
                          size_t count)
{
    int ret;

    if (cxiemu_atomic_ioc(compare, count) != 0) {
        return -FI_EINVAL;
    }

    op->other = compare->addr;
    ret       = cxiemu_op_map(op, CXIEMU_OP_OTHER, op->length,
                              (void**)&op->other);
    if (ret == 0) {
        op->compare = cxiemu_atomic_load(op->other, op->length);
    }
    return ret;
}

int cxiemu_op_from_atomic(cxiemu_ep_t *ep, const struct fi_msg_atomic *msg,
                          uint64_t flags, cxiemu_op_t *op)
{
    cxiemu_op_kind_t kind = op->kind;
    size_t size;
    int ret;

    if ((msg == NULL) || (msg->rma_iov == NULL) || (msg->rma_iov_count != 1) ||
        (msg->rma_iov->count != 1)) {
        return -FI_EINVAL;
    }
    /* What is only read needs no operand, but Cassini's provider wants one */
    if (((msg->op != FI_ATOMIC_READ) || cxiemu_param()->strict) &&
        (cxiemu_atomic_ioc(msg->msg_iov, msg->iov_count) != 0)) {
        return -FI_EINVAL;
    }

    ret = cxiemu_atomic_valid(kind, msg->datatype, msg->op);
    if (ret != 0) {
        return ret;
    }
    ret = cxiemu_op_check(ep, 0, flags, CXIEMU_OP_FLAGS | FI_INJECT);
    if (ret != 0) {
        return ret;
    }

    size = cxiemu_atomic_size(msg->datatype);
    *op  = (cxiemu_op_t){
        .kind     = kind,
        .ep       = ep,
        .flags    = flags | (ep->tx_selective ? 0 : FI_COMPLETION),
        .context  = msg->context,
        .dest     = msg->addr,
        .length   = size,
        .addr     = msg->rma_iov->addr,
        .key      = msg->rma_iov->key,
        .op       = msg->op,
        .datatype = msg->datatype
    };
    if (cxiemu_atomic_ioc(msg->msg_iov, msg->iov_count) != 0) {
        return 0;
    }
    op->buffer = msg->msg_iov->addr;
    ret        = cxiemu_op_map(op, CXIEMU_OP_BUFFER, size, (void**)&op->buffer);
    if ((ret == 0) && (msg->op != FI_ATOMIC_READ)) {
        op->operand = cxiemu_atomic_load(op->buffer, size);
    }
    return ret;
}


/* What the calls add to libfabric's message. */
typedef struct cxiemu_atomic_call {
    cxiemu_op_kind_t    kind;
    const struct fi_ioc *result;
    size_t              result_count;
    const struct fi_ioc *compare;
    size_t              compare_count;
    uint64_t            flags;
    cxiemu_call_t       call;
} cxiemu_atomic_call_t;

static ssize_t cxiemu_atomic_post(struct fid_ep *fid,
                                  const struct fi_msg_atomic *msg,
                                  const cxiemu_atomic_call_t *call)
{
    cxiemu_ep_t *ep = cxiemu_ep_from(fid);
    cxiemu_op_t op  = {.kind = call->kind};
    uint64_t cap    = FI_ATOMIC |
                      ((call->kind == CXIEMU_OP_ATOMIC) ? FI_WRITE : FI_READ);
    int ret;

    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }
    /* Deferred ones are not asked for it, as with CXI */
    if ((ep->caps & cap) != cap) {
        return -FI_ENOSYS;
    }

    ret = cxiemu_op_from_atomic(
            ep, msg, cxiemu_op_flags(fid, call->kind, call->call, call->flags),
            &op);
    if ((ret == 0) && (call->kind != CXIEMU_OP_ATOMIC)) {
        ret = cxiemu_op_set_result(&op, call->result, call->result_count);
    }
    if ((ret == 0) && (call->kind == CXIEMU_OP_COMPARE_ATOMIC)) {
        ret = cxiemu_op_set_compare(&op, call->compare, call->compare_count);
    }
    if (ret != 0) {
        cxiemu_op_unmap(&op);
        return ret;
    }
    return cxiemu_ep_post(&op, call->call);
}

/* The calls that have no message; parameters as theirs. */
static ssize_t
cxiemu_atomic_vector(struct fid_ep *fid, const struct fi_ioc *iov, size_t count,
                     fi_addr_t dest, uint64_t addr, uint64_t key,
                     enum fi_datatype datatype, enum fi_op op, void *context,
                     const cxiemu_atomic_call_t *call)
{
    struct fi_rma_ioc rma    = {.addr = addr, .count = 1, .key = key};
    struct fi_msg_atomic msg = {
        .msg_iov       = iov,
        .iov_count     = count,
        .addr          = dest,
        .rma_iov       = &rma,
        .rma_iov_count = 1,
        .datatype      = datatype,
        .op            = op,
        .context       = context
    };

    return cxiemu_atomic_post(fid, &msg, call);
}

static ssize_t cxiemu_atomic_writemsg(struct fid_ep *fid,
                                      const struct fi_msg_atomic *msg,
                                      uint64_t flags)
{
    cxiemu_atomic_call_t call = {.kind = CXIEMU_OP_ATOMIC, .flags = flags};

    return cxiemu_atomic_post(fid, msg, &call);
}

static ssize_t cxiemu_atomic_writev(struct fid_ep *fid,
                                    const struct fi_ioc *iov, void **desc,
                                    size_t count, fi_addr_t dest, uint64_t addr,
                                    uint64_t key, enum fi_datatype datatype,
                                    enum fi_op op, void *context)
{
    cxiemu_atomic_call_t call = {
        .kind = CXIEMU_OP_ATOMIC,
        .call = CXIEMU_CALL_PLAIN
    };

    return cxiemu_atomic_vector(fid, iov, count, dest, addr, key, datatype, op,
                                context, &call);
}

static ssize_t cxiemu_atomic_write(struct fid_ep *fid, const void *buf,
                                   size_t count, void *desc, fi_addr_t dest,
                                   uint64_t addr, uint64_t key,
                                   enum fi_datatype datatype, enum fi_op op,
                                   void *context)
{
    struct fi_ioc ioc = {.addr = (void*)buf, .count = count};

    return cxiemu_atomic_writev(fid, &ioc, &desc, 1, dest, addr, key, datatype,
                                op, context);
}

static ssize_t cxiemu_atomic_inject(struct fid_ep *fid, const void *buf,
                                    size_t count, fi_addr_t dest, uint64_t addr,
                                    uint64_t key, enum fi_datatype datatype,
                                    enum fi_op op)
{
    struct fi_ioc ioc         = {.addr = (void*)buf, .count = count};
    cxiemu_atomic_call_t call = {
        .kind = CXIEMU_OP_ATOMIC,
        .call = CXIEMU_CALL_INJECT
    };

    return cxiemu_atomic_vector(fid, &ioc, 1, dest, addr, key, datatype, op,
                                NULL, &call);
}

static ssize_t cxiemu_atomic_readwritemsg(struct fid_ep *fid,
                                          const struct fi_msg_atomic *msg,
                                          struct fi_ioc *result,
                                          void **result_desc,
                                          size_t result_count, uint64_t flags)
{
    cxiemu_atomic_call_t call = {
        .kind         = CXIEMU_OP_FETCH_ATOMIC,
        .result       = result,
        .result_count = result_count,
        .flags        = flags
    };

    return cxiemu_atomic_post(fid, msg, &call);
}

static ssize_t
cxiemu_atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov,
                         void **desc, size_t count, struct fi_ioc *result,
                         void **result_desc, size_t result_count,
                         fi_addr_t dest, uint64_t addr, uint64_t key,
                         enum fi_datatype datatype, enum fi_op op,
                         void *context)
{
    cxiemu_atomic_call_t call = {
        .kind         = CXIEMU_OP_FETCH_ATOMIC,
        .result       = result,
        .result_count = result_count,
        .call         = CXIEMU_CALL_PLAIN
    };

    return cxiemu_atomic_vector(fid, iov, count, dest, addr, key, datatype, op,
                                context, &call);
}

static ssize_t
cxiemu_atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count,
                        void *desc, void *result, void *result_desc,
                        fi_addr_t dest, uint64_t addr, uint64_t key,
                        enum fi_datatype datatype, enum fi_op op, void *context)
{
    struct fi_ioc ioc  = {.addr = (void*)buf, .count = count};
    struct fi_ioc into = {.addr = result, .count = count};

    return cxiemu_atomic_readwritev(fid, &ioc, &desc, 1, &into, &result_desc, 1,
                                    dest, addr, key, datatype, op, context);
}

static ssize_t
cxiemu_atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
                           const struct fi_ioc *compare, void **compare_desc,
                           size_t compare_count, struct fi_ioc *result,
                           void **result_desc, size_t result_count,
                           uint64_t flags)
{
    cxiemu_atomic_call_t call = {
        .kind          = CXIEMU_OP_COMPARE_ATOMIC,
        .result        = result,
        .result_count  = result_count,
        .compare       = compare,
        .compare_count = compare_count,
        .flags         = flags
    };

    return cxiemu_atomic_post(fid, msg, &call);
}

static ssize_t
cxiemu_atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov,
                         void **desc, size_t count,
                         const struct fi_ioc *compare, void **compare_desc,
                         size_t compare_count, struct fi_ioc *result,
                         void **result_desc, size_t result_count,
                         fi_addr_t dest, uint64_t addr, uint64_t key,
                         enum fi_datatype datatype, enum fi_op op,
                         void *context)
{
    cxiemu_atomic_call_t call = {
        .kind          = CXIEMU_OP_COMPARE_ATOMIC,
        .result        = result,
        .result_count  = result_count,
        .compare       = compare,
        .compare_count = compare_count,
        .call          = CXIEMU_CALL_PLAIN
    };

    return cxiemu_atomic_vector(fid, iov, count, dest, addr, key, datatype, op,
                                context, &call);
}

static ssize_t
cxiemu_atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count,
                        void *desc, const void *compare, void *compare_desc,
                        void *result, void *result_desc, fi_addr_t dest,
                        uint64_t addr, uint64_t key, enum fi_datatype datatype,
                        enum fi_op op, void *context)
{
    struct fi_ioc ioc  = {.addr = (void*)buf, .count = count};
    struct fi_ioc with = {.addr = (void*)compare, .count = count};
    struct fi_ioc into = {.addr = result, .count = count};

    return cxiemu_atomic_compwritev(fid, &ioc, &desc, 1, &with, &compare_desc,
                                    1, &into, &result_desc, 1, dest, addr, key,
                                    datatype, op, context);
}


static int cxiemu_atomic_count(cxiemu_op_kind_t kind, enum fi_datatype datatype,
                               enum fi_op op, size_t *count)
{
    int ret = cxiemu_atomic_valid(kind, datatype, op);

    if ((ret == 0) && (count != NULL)) {
        *count = 1;
    }
    return ret;
}

static int cxiemu_atomic_writevalid(struct fid_ep *ep,
                                    enum fi_datatype datatype, enum fi_op op,
                                    size_t *count)
{
    return cxiemu_atomic_count(CXIEMU_OP_ATOMIC, datatype, op, count);
}

static int cxiemu_atomic_readwritevalid(struct fid_ep *ep,
                                        enum fi_datatype datatype,
                                        enum fi_op op, size_t *count)
{
    return cxiemu_atomic_count(CXIEMU_OP_FETCH_ATOMIC, datatype, op, count);
}

static int cxiemu_atomic_compwritevalid(struct fid_ep *ep,
                                        enum fi_datatype datatype,
                                        enum fi_op op, size_t *count)
{
    return cxiemu_atomic_count(CXIEMU_OP_COMPARE_ATOMIC, datatype, op, count);
}

int cxiemu_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
                        enum fi_op op, struct fi_atomic_attr *attr,
                        uint64_t flags)
{
    cxiemu_op_kind_t kind = (flags & FI_COMPARE_ATOMIC) ?
                                    CXIEMU_OP_COMPARE_ATOMIC :
                            (flags & FI_FETCH_ATOMIC) ? CXIEMU_OP_FETCH_ATOMIC :
                                                        CXIEMU_OP_ATOMIC;
    int ret;

    if ((attr == NULL) ||
        ((flags & FI_COMPARE_ATOMIC) && (flags & FI_FETCH_ATOMIC))) {
        return -FI_EINVAL;
    }

    ret = cxiemu_atomic_valid(kind, datatype, op);
    if (ret == 0) {
        attr->count = 1;
        attr->size  = cxiemu_atomic_size(datatype);
    }
    return ret;
}

struct fi_ops_atomic cxiemu_atomic_ops = {
    .size           = sizeof(struct fi_ops_atomic),
    .write          = cxiemu_atomic_write,
    .writev         = cxiemu_atomic_writev,
    .writemsg       = cxiemu_atomic_writemsg,
    .inject         = cxiemu_atomic_inject,
    .readwrite      = cxiemu_atomic_readwrite,
    .readwritev     = cxiemu_atomic_readwritev,
    .readwritemsg   = cxiemu_atomic_readwritemsg,
    .compwrite      = cxiemu_atomic_compwrite,
    .compwritev     = cxiemu_atomic_compwritev,
    .compwritemsg   = cxiemu_atomic_compwritemsg,
    .writevalid     = cxiemu_atomic_writevalid,
    .readwritevalid = cxiemu_atomic_readwritevalid,
    .compwritevalid = cxiemu_atomic_compwritevalid
};
