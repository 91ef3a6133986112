/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_intercept.c - what the transport asks of libfabric.
 *
 * The program's uct_cxi_trig_prov_find() stands in front of the transport's and
 * gives it a fabric whose operations are those of this file, and so on for all
 * that is opened by it. Objects are the provider's own; only their tables are
 * copies, one for each class, with some functions replaced.
 */
#include "fab_intercept.h"
#include "st_intercept.h"
#include "st_real.h"

#include <cxi_trig_prov.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define FAB_MAX_CLASSES   64
#define FAB_MAX_ENDPOINTS 32
#define FAB_MAX_CQS       32
#define FAB_MAX_NAME      64

#define ATOMIC_ADD(_word, _value) \
    __atomic_add_fetch(&(_word), _value, __ATOMIC_SEQ_CST)
#define ATOMIC_GET(_word)         __atomic_load_n(&(_word), __ATOMIC_SEQ_CST)
#define ATOMIC_SET(_word, _value) \
    __atomic_store_n(&(_word), _value, __ATOMIC_SEQ_CST)

/* Of the function that it stands in */
#define CALLER __builtin_return_address(0)

/* All atomic */
static int        fail_number = -1;
static int        fail_code;
static fab_call_t fail_call = FAB_CALL_LAST; /* the next ones of these */
static uint64_t   fail_left;
static uint64_t   pass_left; /* before those fail */
static fab_call_t failed_call = FAB_CALL_LAST;
static const void *failed_caller;
static uint64_t   counts[FAB_CALL_LAST];
static int64_t    num_open;
static void       *deferred_write;
static void       *report_context; /* NULL: nothing to report */
static int        report_code;
static int        broken_code;
static int        is_cq_reversed;

/* The stand-in for memory of GPUs. One thread. */
static int          takes_gpu_memory;
static int          wants_gpu_desc;
static fab_region_t last_region;
static void         *last_desc;

static const char *const names[FAB_CALL_LAST] = {
    [FAB_CALL_FABRIC]     = "fi_fabric",
    [FAB_CALL_DOMAIN]     = "fi_domain",
    [FAB_CALL_CQ]         = "fi_cq_open",
    [FAB_CALL_AV]         = "fi_av_open",
    [FAB_CALL_CNTR]       = "fi_cntr_open",
    [FAB_CALL_EP]         = "fi_endpoint",
    [FAB_CALL_MR]         = "fi_mr_regattr",
    [FAB_CALL_BIND]       = "fi_bind",
    [FAB_CALL_ENABLE]     = "fi_enable",
    [FAB_CALL_GETWAIT]    = "fi_control(FI_GETWAIT)",
    [FAB_CALL_GETNAME]    = "fi_getname",
    [FAB_CALL_INSERT]     = "fi_av_insert",
    [FAB_CALL_SEND]       = "fi_send",
    [FAB_CALL_RECV]       = "fi_recv",
    [FAB_CALL_WRITE]      = "fi_writemsg",
    [FAB_CALL_READ]       = "fi_readmsg",
    [FAB_CALL_QUEUE_WORK] = "fi_control(FI_QUEUE_WORK)",
    [FAB_CALL_CNTR_ADD]   = "fi_cntr_add"
};

/* The one provider's operations and their replacements. Written once, with the
 * lock held, before there is an object that has them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct fi_ops *real_fid_ops[FAB_MAX_CLASSES];
static struct fi_ops fid_ops[FAB_MAX_CLASSES];

#define TABLE(_type, _name) \
    static struct _type *real_##_name; \
    static struct _type my_##_name;

TABLE(fi_ops_fabric, fabric)
TABLE(fi_ops_domain, domain)
TABLE(fi_ops_mr, mr)
TABLE(fi_ops_cm, cm)
TABLE(fi_ops_msg, msg)
TABLE(fi_ops_rma, rma)
TABLE(fi_ops_av, av)
TABLE(fi_ops_cntr, cntr)
TABLE(fi_ops_cq, cq)

static const uct_cxi_trig_prov_ops_t *real_prov;

/* Endpoints that are open, and what was posted to them; with the lock held */
static struct {
    const struct fid_ep *ep;
    char                device[FAB_MAX_NAME];
    uint64_t            caps;
    uint64_t            posted;
} endpoints[FAB_MAX_ENDPOINTS];

/* Completion queues that are open and were not read; with the lock held */
static const struct fid *unread[FAB_MAX_CQS];

/* Have an object use the copy of a table, in which a function is replaced */
#define REPLACE(_ops_p, _name, _slot, _func) \
    do { \
        (void)pthread_mutex_lock(&lock); \
        if (real_##_name == NULL) { \
            real_##_name = *(_ops_p); \
            my_##_name   = *real_##_name; \
        } \
        if (my_##_name._slot != _func) { \
            my_##_name._slot = _func; \
        } \
        *(_ops_p) = &my_##_name; \
        (void)pthread_mutex_unlock(&lock); \
    } while (0)


void fab_intercept_fail(int number, int code)
{
    memset(counts, 0, sizeof(counts));
    ATOMIC_SET(failed_call, FAB_CALL_LAST);
    ATOMIC_SET(fail_code, code);
    ATOMIC_SET(fail_number, number);
}

void fab_intercept_fail_next(fab_call_t call, uint64_t count, int code)
{
    ATOMIC_SET(fail_call, FAB_CALL_LAST);
    ATOMIC_SET(fail_code, code);
    ATOMIC_SET(pass_left, 0);
    ATOMIC_SET(fail_left, count);
    ATOMIC_SET(fail_call, call);
}

void fab_intercept_fail_after(fab_call_t call, uint64_t count, int code)
{
    fab_intercept_fail_next(FAB_CALL_LAST, UINT64_MAX, code);
    ATOMIC_SET(pass_left, count);
    ATOMIC_SET(fail_call, call);
}

void fab_intercept_fail_all(fab_call_t call, int code)
{
    fab_intercept_fail_next(call, UINT64_MAX, code);
}

uint64_t fab_intercept_left(void)
{
    return ATOMIC_GET(fail_left);
}

fab_call_t fab_intercept_failed(void)
{
    return ATOMIC_GET(failed_call);
}

const char *fab_intercept_name(fab_call_t call)
{
    return (call < FAB_CALL_LAST) ? names[call] : "none";
}

const void *fab_intercept_failed_caller(void)
{
    return ATOMIC_GET(failed_caller);
}

uint64_t fab_intercept_count(fab_call_t call)
{
    return ATOMIC_GET(counts[call]);
}

uint64_t fab_intercept_posted(const char *device)
{
    uint64_t posted = 0;
    unsigned i;

    (void)pthread_mutex_lock(&lock);
    for (i = 0; i < FAB_MAX_ENDPOINTS; ++i) {
        if (!strcmp(endpoints[i].device, device)) {
            posted += endpoints[i].posted;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return posted;
}

/* Takes a place for an endpoint, or gives up that of one */
static void set_endpoint(const void *before, const struct fid_ep *after,
                         const char *device, uint64_t caps)
{
    unsigned i = 0;

    (void)pthread_mutex_lock(&lock);
    while ((i < FAB_MAX_ENDPOINTS - 1) && (endpoints[i].ep != before)) {
        ++i;
    }
    endpoints[i].ep     = after;
    endpoints[i].caps   = caps;
    endpoints[i].posted = 0;
    (void)snprintf(endpoints[i].device, FAB_MAX_NAME, "%s", device);
    (void)pthread_mutex_unlock(&lock);
}

/* The same for a queue that was not read */
static void set_unread(const void *before, const struct fid *after)
{
    unsigned i = 0;

    (void)pthread_mutex_lock(&lock);
    while ((i < FAB_MAX_CQS) && (unread[i] != before)) {
        ++i;
    }
    if (i < FAB_MAX_CQS) {
        unread[i] = after;
    }
    (void)pthread_mutex_unlock(&lock);
}

unsigned fab_intercept_unread_cqs(void)
{
    unsigned i, count = 0;

    (void)pthread_mutex_lock(&lock);
    for (i = 0; i < FAB_MAX_CQS; ++i) {
        count += (unread[i] != NULL);
    }
    (void)pthread_mutex_unlock(&lock);
    return count;
}

unsigned fab_intercept_endpoints(uint64_t caps)
{
    unsigned i, count = 0;

    (void)pthread_mutex_lock(&lock);
    for (i = 0; i < FAB_MAX_ENDPOINTS; ++i) {
        count += (endpoints[i].ep != NULL) && (endpoints[i].caps & caps);
    }
    (void)pthread_mutex_unlock(&lock);
    return count;
}

static void count_posted(const struct fid_ep *ep)
{
    unsigned i;

    (void)pthread_mutex_lock(&lock);
    for (i = 0; i < FAB_MAX_ENDPOINTS; ++i) {
        endpoints[i].posted += (endpoints[i].ep == ep);
    }
    (void)pthread_mutex_unlock(&lock);
}

void *fab_intercept_deferred_write(void)
{
    return ATOMIC_GET(deferred_write);
}

void fab_intercept_report(void *context, int code)
{
    ATOMIC_SET(report_code, code);
    ATOMIC_SET(report_context, context);
}

void fab_intercept_break(int code)
{
    ATOMIC_SET(broken_code, code);
}

void fab_intercept_reverse(int is_reversed)
{
    ATOMIC_SET(is_cq_reversed, is_reversed);
}

int64_t fab_intercept_open(void)
{
    return ATOMIC_GET(num_open);
}

void fab_intercept_gpu_memory(int is_taken, int wants_desc)
{
    takes_gpu_memory = is_taken;
    wants_gpu_desc   = wants_desc;
}

fab_region_t fab_intercept_region(void)
{
    return last_region;
}

void *fab_intercept_write_desc(void)
{
    return last_desc;
}

/* A copy without what the provider has not got; NULL: no memory */
static struct fi_info *without_gpu_memory(const struct fi_info *info)
{
    struct fi_info *plain = fi_dupinfo(info);

    if (plain != NULL) {
        plain->caps                 &= ~FI_HMEM;
        plain->domain_attr->mr_mode &= ~FI_MR_HMEM;
    }
    return plain;
}

static void add_gpu_memory(struct fi_info *info)
{
    for (; takes_gpu_memory && (info != NULL); info = info->next) {
        info->caps |= FI_HMEM;
        if (wants_gpu_desc) {
            info->domain_attr->mr_mode |= FI_MR_HMEM;
        }
    }
}

/* Take one, if any is left */
static int take(uint64_t *left_p)
{
    uint64_t left = ATOMIC_GET(*left_p);

    while ((left > 0) &&
           !__atomic_compare_exchange_n(left_p, &left, left - 1, 0,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return left > 0;
}

/* 0, or what the call is to return */
static int refuse(fab_call_t call, const void *caller)
{
    if (st_intercept_library(caller) != ST_INTERCEPT_TRIG) {
        return 0; /* the provider itself */
    }
    ATOMIC_ADD(counts[call], 1);
    if ((ATOMIC_GET(fail_call) == call) && !take(&pass_left) &&
        take(&fail_left)) {
        return -ATOMIC_GET(fail_code);
    }
    if ((ATOMIC_GET(fail_number) < 0) || (ATOMIC_ADD(fail_number, -1) != -1)) {
        return 0;
    }
    ATOMIC_SET(failed_caller, caller);
    ATOMIC_SET(failed_call, call);
    return -ATOMIC_GET(fail_code);
}

static int hook_close(struct fid *fid)
{
    size_t class = fid->fclass;
    int ret      = real_fid_ops[class]->close(fid);

    if (ret == 0) {
        ATOMIC_ADD(num_open, -1);
    }
    if ((ret == 0) && (class == FI_CLASS_EP)) {
        set_endpoint(fid, NULL, "", 0);
    }
    if ((ret == 0) && (class == FI_CLASS_CQ)) {
        set_unread(fid, NULL);
    }
    return ret;
}

static int hook_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    int ret = refuse(FAB_CALL_BIND, CALLER);

    return (ret != 0) ? ret :
                        real_fid_ops[fid->fclass]->bind(fid, other, flags);
}

static void note_work(struct fi_deferred_work *work)
{
    if (work->op_type == FI_OP_WRITE) {
        ATOMIC_SET(deferred_write, &work->context);
    }
}

static void hook_enabled(struct fid_ep *ep);

static int hook_control(struct fid *fid, int command, void *arg)
{
    int ret = 0;

    switch (command) {
    case FI_QUEUE_WORK:
        ret = refuse(FAB_CALL_QUEUE_WORK, CALLER);
        note_work(arg);
        break;
    case FI_ENABLE:
        ret = refuse(FAB_CALL_ENABLE, CALLER);
        break;
    case FI_GETWAIT:
        ret = refuse(FAB_CALL_GETWAIT, CALLER);
        break;
    }
    if (ret == 0) {
        ret = real_fid_ops[fid->fclass]->control(fid, command, arg);
    }
    if ((ret == 0) && (command == FI_ENABLE) && (fid->fclass == FI_CLASS_EP)) {
        hook_enabled((struct fid_ep*)fid); /* its first field */
    }
    return ret;
}

/* A new object; the same for all classes */
static void hook_fid(struct fid *fid)
{
    struct fi_ops *ops = &fid_ops[fid->fclass];

    (void)pthread_mutex_lock(&lock);
    if (ops->size == 0) {
        real_fid_ops[fid->fclass] = fid->ops;

        *ops         = *fid->ops;
        ops->close   = hook_close;
        ops->bind    = hook_bind;
        ops->control = hook_control;
    }
    fid->ops = ops;
    (void)pthread_mutex_unlock(&lock);
    ATOMIC_ADD(num_open, 1);
}

static void reverse(struct fi_cq_msg_entry *entries, ssize_t count)
{
    struct fi_cq_msg_entry entry;
    ssize_t i;

    for (i = 0; i < (count / 2); ++i) {
        entry                  = entries[i];
        entries[i]             = entries[count - 1 - i];
        entries[count - 1 - i] = entry;
    }
}

static ssize_t hook_cq_read(struct fid_cq *cq, void *entries, size_t count)
{
    int code = ATOMIC_GET(broken_code);
    ssize_t ret;

    set_unread(&cq->fid, NULL);
    if (code != 0) {
        return -code;
    }
    ret = (ATOMIC_GET(report_context) != NULL) ?
          -FI_EAVAIL : real_cq->read(cq, entries, count);
    if (ATOMIC_GET(is_cq_reversed)) {
        reverse(entries, ret); /* The transport's queues have this format */
    }
    return ret;
}

static ssize_t hook_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry,
                               uint64_t flags)
{
    void *context = __atomic_exchange_n(&report_context, NULL,
                                        __ATOMIC_SEQ_CST);

    if (context == NULL) {
        return real_cq->readerr(cq, entry, flags);
    }
    entry->op_context = context;
    entry->err        = ATOMIC_GET(report_code);
    return 1;
}

static int hook_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
                        struct fid_cq **cq, void *context)
{
    int ret = refuse(FAB_CALL_CQ, CALLER);

    if (ret == 0) {
        ret = real_domain->cq_open(domain, attr, cq, context);
    }
    if (ret == 0) {
        hook_fid(&(*cq)->fid);
        set_unread(NULL, &(*cq)->fid);
        REPLACE(&(*cq)->ops, cq, read, hook_cq_read);
        REPLACE(&(*cq)->ops, cq, readerr, hook_cq_readerr);
    }
    return ret;
}

static int hook_insert(struct fid_av *av, const void *address, size_t count,
                       fi_addr_t *fi_addr, uint64_t flags, void *context)
{
    int ret = refuse(FAB_CALL_INSERT, CALLER);

    return (ret != 0) ? ret : real_av->insert(av, address, count, fi_addr,
                                              flags, context);
}

static int hook_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
                        struct fid_av **av, void *context)
{
    int ret = refuse(FAB_CALL_AV, CALLER);

    if (ret == 0) {
        ret = real_domain->av_open(domain, attr, av, context);
    }
    if (ret == 0) {
        hook_fid(&(*av)->fid);
        REPLACE(&(*av)->ops, av, insert, hook_insert);
    }
    return ret;
}

/* Adding 0 is a way to wait for the provider, and cannot fail */
static int hook_cntr_add(struct fid_cntr *cntr, uint64_t value)
{
    int ret = (value == 0) ? 0 : refuse(FAB_CALL_CNTR_ADD, CALLER);

    return (ret != 0) ? ret : real_cntr->add(cntr, value);
}

static int hook_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
                          struct fid_cntr **cntr, void *context)
{
    int ret = refuse(FAB_CALL_CNTR, CALLER);

    if (ret == 0) {
        ret = real_domain->cntr_open(domain, attr, cntr, context);
    }
    if (ret == 0) {
        hook_fid(&(*cntr)->fid);
        REPLACE(&(*cntr)->ops, cntr, add, hook_cntr_add);
    }
    return ret;
}

static int hook_getname(struct fid *fid, void *address, size_t *length)
{
    int ret = refuse(FAB_CALL_GETNAME, CALLER);

    return (ret != 0) ? ret : real_cm->getname(fid, address, length);
}

static ssize_t hook_send(struct fid_ep *ep, const void *buffer, size_t length,
                         void *desc, fi_addr_t address, void *context)
{
    int ret = refuse(FAB_CALL_SEND, CALLER);

    count_posted(ep);
    return (ret != 0) ? ret : real_msg->send(ep, buffer, length, desc, address,
                                             context);
}

static ssize_t hook_recv(struct fid_ep *ep, void *buffer, size_t length,
                         void *desc, fi_addr_t address, void *context)
{
    int ret = refuse(FAB_CALL_RECV, CALLER);

    return (ret != 0) ? ret : real_msg->recv(ep, buffer, length, desc, address,
                                             context);
}

static ssize_t hook_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
                             uint64_t flags)
{
    int ret = refuse(FAB_CALL_WRITE, CALLER);

    count_posted(ep);
    last_desc = (msg->desc == NULL) ? NULL : msg->desc[0];
    return (ret != 0) ? ret : real_rma->writemsg(ep, msg, flags);
}

static ssize_t hook_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
                            uint64_t flags)
{
    int ret = refuse(FAB_CALL_READ, CALLER);

    count_posted(ep);
    return (ret != 0) ? ret : real_rma->readmsg(ep, msg, flags);
}

static int takes_messages(const struct fid_ep *ep)
{
    int result = 0;
    unsigned i;

    (void)pthread_mutex_lock(&lock);
    for (i = 0; i < FAB_MAX_ENDPOINTS; ++i) {
        result |= (endpoints[i].ep == ep) && (endpoints[i].caps & FI_MSG);
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

/* cxi's endpoints have their operations from now on, and those that are for
 * memory alone have other ones */
static void hook_enabled(struct fid_ep *ep)
{
    if (takes_messages(ep)) {
        REPLACE(&ep->msg, msg, send, hook_send);
        REPLACE(&ep->msg, msg, recv, hook_recv);
        REPLACE(&ep->rma, rma, writemsg, hook_writemsg);
        REPLACE(&ep->rma, rma, readmsg, hook_readmsg);
    }
}

static int hook_ep_open(struct fid_domain *domain, struct fi_info *info,
                        struct fid_ep **ep, void *context)
{
    struct fi_info *plain = without_gpu_memory(info);
    int ret               = refuse(FAB_CALL_EP, CALLER);

    if (ret == 0) {
        ret = (plain == NULL) ? -FI_ENOMEM :
              real_domain->endpoint(domain, plain, ep, context);
    }
    fi_freeinfo(plain);
    if (ret == 0) {
        hook_fid(&(*ep)->fid);
        REPLACE(&(*ep)->cm, cm, getname, hook_getname);
        set_endpoint(NULL, *ep, info->domain_attr->name, info->caps);
    }
    return ret;
}

static int hook_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
                           uint64_t flags, struct fid_mr **mr)
{
    struct fi_mr_attr plain = *attr;
    int ret                 = refuse(FAB_CALL_MR, CALLER);

    plain.iface           = FI_HMEM_SYSTEM;
    plain.device.reserved = 0;
    if (ret == 0) {
        ret = real_mr->regattr(fid, &plain, flags & ~FI_HMEM_DEVICE_ONLY, mr);
    }
    if (ret == 0) {
        hook_fid(&(*mr)->fid);
        (void)pthread_mutex_lock(&lock);
        last_region = (fab_region_t){
            .address = attr->mr_iov[0].iov_base,
            .length  = attr->mr_iov[0].iov_len,
            .iface   = attr->iface,
            .device  = attr->device.cuda,
            .flags   = flags,
            .desc    = (*mr)->mem_desc
        };
        (void)pthread_mutex_unlock(&lock);
    }
    return ret;
}

static int hook_domain_open(struct fid_fabric *fabric, struct fi_info *info,
                            struct fid_domain **domain, void *context)
{
    struct fi_info *plain = without_gpu_memory(info);
    int ret               = refuse(FAB_CALL_DOMAIN, CALLER);

    if (ret == 0) {
        ret = (plain == NULL) ? -FI_ENOMEM :
              real_fabric->domain(fabric, plain, domain, context);
    }
    fi_freeinfo(plain);
    if (ret == 0) {
        hook_fid(&(*domain)->fid);
        REPLACE(&(*domain)->ops, domain, cq_open, hook_cq_open);
        REPLACE(&(*domain)->ops, domain, av_open, hook_av_open);
        REPLACE(&(*domain)->ops, domain, cntr_open, hook_cntr_open);
        REPLACE(&(*domain)->ops, domain, endpoint, hook_ep_open);
        REPLACE(&(*domain)->mr, mr, regattr, hook_mr_regattr);
    }
    return ret;
}

static int hook_fabric_open(struct fi_fabric_attr *attr,
                            struct fid_fabric **fabric, void *context)
{
    int ret = refuse(FAB_CALL_FABRIC, CALLER);

    if (ret == 0) {
        ret = real_prov->fabric(attr, fabric, context);
    }
    if (ret == 0) {
        hook_fid(&(*fabric)->fid);
        REPLACE(&(*fabric)->ops, fabric, domain, hook_domain_open);
    }
    return ret;
}

/* In front of the transport's function: the same row with our way in */
ucs_status_t uct_cxi_trig_prov_find(const uct_cxi_trig_prov_want_t *want,
                                    const uct_cxi_trig_prov_t **prov_p,
                                    struct fi_info **info_p)
{
    static uct_cxi_trig_prov_ops_t my_ops;
    static uct_cxi_trig_prov_t my_prov;
    uct_cxi_trig_prov_want_t asked = *want;
    ucs_status_t status;

    (void)pthread_mutex_lock(&lock);
    if (takes_gpu_memory) {
        asked.gpu_memory = UCS_NO;
    }
    status = ST_REAL(uct_cxi_trig_prov_find)(&asked, prov_p, info_p);
    if ((status == UCS_OK) && (real_prov == NULL)) {
        real_prov     = (*prov_p)->ops;
        my_ops        = *real_prov;
        my_ops.fabric = hook_fabric_open;
        my_prov       = **prov_p;
        my_prov.ops   = &my_ops;
    }
    if (status == UCS_OK) {
        if (want->gpu_memory != UCS_NO) {
            add_gpu_memory(*info_p);
        }
        *prov_p = &my_prov;
    }
    (void)pthread_mutex_unlock(&lock);
    return status;
}
