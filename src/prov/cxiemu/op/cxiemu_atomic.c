/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_atomic.c - atomics: which there are, and how they are posted.
 *
 * One element each, as Cassini has them.
 */
#include "fabric/cxiemu_fabric.h"
#include "op/cxiemu_atomic.h"
#include "op/cxiemu_ep.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include <string.h>

#define CXIEMU_BIT(_n) (1u << (_n))

#define CXIEMU_PLAIN_OPS \
    (CXIEMU_BIT(FI_MIN) | CXIEMU_BIT(FI_MAX) | CXIEMU_BIT(FI_SUM) | \
     CXIEMU_BIT(FI_LOR) | CXIEMU_BIT(FI_LAND) | CXIEMU_BIT(FI_BOR) | \
     CXIEMU_BIT(FI_BAND) | CXIEMU_BIT(FI_LXOR) | CXIEMU_BIT(FI_BXOR) | \
     CXIEMU_BIT(FI_ATOMIC_WRITE))
#define CXIEMU_FETCH_OPS (CXIEMU_PLAIN_OPS | CXIEMU_BIT(FI_ATOMIC_READ))
#define CXIEMU_COMPARE_OPS \
    (CXIEMU_BIT(FI_CSWAP) | CXIEMU_BIT(FI_CSWAP_NE) | \
     CXIEMU_BIT(FI_CSWAP_LE) | CXIEMU_BIT(FI_CSWAP_LT) | \
     CXIEMU_BIT(FI_CSWAP_GE) | CXIEMU_BIT(FI_CSWAP_GT) | \
     CXIEMU_BIT(FI_MSWAP))


size_t cxiemu_atomic_size(enum fi_datatype datatype)
{
    switch (datatype) {
    case FI_INT32:
    case FI_UINT32:
        return sizeof(uint32_t);
    case FI_INT64:
    case FI_UINT64:
        return sizeof(uint64_t);
    default:
        return 0;
    }
}

int cxiemu_atomic_valid(cxiemu_op_kind_t kind, enum fi_datatype datatype,
                        enum fi_op op)
{
    unsigned ops;

    /* Types of 128 bits come behind FI_DATATYPE_LAST: no type is invalid */
    if ((unsigned)op >= FI_ATOMIC_OP_LAST) {
        return -FI_EINVAL;
    }

    ops = (kind == CXIEMU_OP_ATOMIC)       ? CXIEMU_PLAIN_OPS :
          (kind == CXIEMU_OP_FETCH_ATOMIC) ? CXIEMU_FETCH_OPS :
                                             CXIEMU_COMPARE_OPS;
    if (!(ops & CXIEMU_BIT(op)) || (cxiemu_atomic_size(datatype) == 0)) {
        return -FI_EOPNOTSUPP;
    }
    return 0;
}


/* Compares words as numbers of their datatype: less than 0, 0, or more. */
static int cxiemu_atomic_order(enum fi_datatype datatype, uint64_t a,
                               uint64_t b)
{
    switch (datatype) {
    case FI_INT32:
        return ((int32_t)a > (int32_t)b) - ((int32_t)a < (int32_t)b);
    case FI_INT64:
        return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
    default: /* Those of 32 bits have no others */
        return (a > b) - (a < b);
    }
}

static uint64_t cxiemu_atomic_result(const cxiemu_atomic_t *atomic,
                                     uint64_t old)
{
    uint64_t operand = atomic->operand;
    uint64_t compare = atomic->compare;
    int by_operand   = cxiemu_atomic_order(atomic->datatype, operand, old);
    /* The given value is compared with the target's */
    int order        = cxiemu_atomic_order(atomic->datatype, compare, old);

    switch (atomic->op) {
    case FI_MIN:
        return (by_operand < 0) ? operand : old;
    case FI_MAX:
        return (by_operand > 0) ? operand : old;
    case FI_SUM:
        return old + operand;
    case FI_LOR:
        return old || operand;
    case FI_LAND:
        return old && operand;
    case FI_LXOR:
        return !old != !operand;
    case FI_BOR:
        return old | operand;
    case FI_BAND:
        return old & operand;
    case FI_BXOR:
        return old ^ operand;
    case FI_ATOMIC_READ:
        return old;
    case FI_ATOMIC_WRITE:
        return operand;
    case FI_CSWAP:
        return (order == 0) ? operand : old;
    case FI_CSWAP_NE:
        return (order != 0) ? operand : old;
    case FI_CSWAP_LE:
        return (order <= 0) ? operand : old;
    case FI_CSWAP_LT:
        return (order < 0) ? operand : old;
    case FI_CSWAP_GE:
        return (order >= 0) ? operand : old;
    case FI_CSWAP_GT:
        return (order > 0) ? operand : old;
    default: /* FI_MSWAP */
        return (operand & compare) | (old & ~compare);
    }
}

uint64_t cxiemu_atomic_apply(const cxiemu_atomic_t *atomic, void *address)
{
    cxiemu_atomic_t narrow = *atomic;
    int reads              = (atomic->op == FI_ATOMIC_READ);
    uint32_t *half         = address;
    uint64_t *word         = address;
    uint64_t old, next;
    uint32_t old_half;

    if (cxiemu_atomic_size(atomic->datatype) == sizeof(*half)) {
        narrow.operand = (uint32_t)narrow.operand;
        narrow.compare = (uint32_t)narrow.compare;
        old_half       = __atomic_load_n(half, __ATOMIC_ACQUIRE);
        do {
            next = cxiemu_atomic_result(&narrow, old_half);
        } while (!reads && !__atomic_compare_exchange_n(
                                   half, &old_half, (uint32_t)next, 0,
                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
        return old_half;
    }
    if (atomic->op == FI_SUM) {
        return __atomic_fetch_add(word, atomic->operand, __ATOMIC_ACQ_REL);
    }
    old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    do {
        next = cxiemu_atomic_result(atomic, old);
    } while (!reads &&
             !__atomic_compare_exchange_n(word, &old, next, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return old;
}


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
