/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_hook.c - calls of the project's libraries that a case looks at or changes.
 */
#include "st_hook.h"
#include "st_real.h"

#include "core/st_proto.h"
#include "ctrl/st_net.h"

#include <ucp/api/ucp.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ST_HOOK_SANITIZED 1
#else
#define ST_HOOK_SANITIZED 0
#endif

#define ATOMIC_GET(_word)         __atomic_load_n(&(_word), __ATOMIC_SEQ_CST)
#define ATOMIC_SET(_word, _value) \
    __atomic_store_n(&(_word), _value, __ATOMIC_SEQ_CST)
#define ATOMIC_ADD(_word, _value) \
    __atomic_add_fetch(&(_word), _value, __ATOMIC_SEQ_CST)

/* All of it is atomic */
static pthread_mutex_t *watched;
static uint64_t        violations;
static size_t          address_length;
static ucs_status_t    (*before_create)(void);
static void            (*before_flush)(void);
static unsigned        num_eps;
static int             is_slow_close;
static unsigned        num_closes;
static uint64_t        num_questions;
static uint64_t        max_questions;
static int64_t         clock_ahead; /* milliseconds */
static const void      *late_close_arg;
static int             is_late_close_over;
static ucs_status_t    (*before_am_send)(unsigned id, void *header);

/* Of a flush that is to be told later */
static ucp_send_nbx_callback_t late_cb; /* atomic */
static void                    *late_arg;
static ucs_status_t            late_status;

/* Of a close that is to be told later, in this thread */
static __thread ucp_send_nbx_callback_t late_close_cb;
static __thread void                    *late_close_cb_arg;
static __thread ucs_status_t            late_close_status;

/* In place of UCP's requests */
static char own_request, own_close_request;

int st_hook_has_clock(void)
{
    return !ST_HOOK_SANITIZED;
}

void st_hook_watch(pthread_mutex_t *mutex)
{
    ATOMIC_SET(violations, 0);
    ATOMIC_SET(watched, mutex);
}

uint64_t st_hook_violations(void)
{
    return ATOMIC_GET(violations);
}

void st_hook_address(size_t length)
{
    ATOMIC_SET(address_length, length);
}

void st_hook_ep_create(ucs_status_t (*func)(void))
{
    ATOMIC_SET(num_eps, 0);
    ATOMIC_SET(before_create, func);
}

void st_hook_ep_flush(void (*func)(void))
{
    ATOMIC_SET(before_flush, func);
}

unsigned st_hook_num_eps(void)
{
    return ATOMIC_GET(num_eps);
}

void st_hook_slow_close(int is_slow, uint64_t limit)
{
    ATOMIC_SET(num_closes, 0);
    ATOMIC_SET(num_questions, 0);
    ATOMIC_SET(max_questions, limit);
    ATOMIC_SET(is_slow_close, is_slow);
}

unsigned st_hook_num_closes(void)
{
    return ATOMIC_GET(num_closes);
}

uint64_t st_hook_num_questions(void)
{
    return ATOMIC_GET(num_questions);
}

void st_hook_late_close(const void *arg)
{
    ATOMIC_SET(is_late_close_over, 0);
    ATOMIC_SET(late_close_arg, arg);
}

int st_hook_is_late_close_over(void)
{
    return ATOMIC_GET(is_late_close_over);
}

void st_hook_am_send(ucs_status_t (*func)(unsigned id, void *header))
{
    ATOMIC_SET(before_am_send, func);
}

/* UCP frees what malloc() gave */
ucs_status_t ucp_worker_get_address(ucp_worker_h worker,
                                    ucp_address_t **address_p, size_t *length_p)
{
    size_t length = ATOMIC_GET(address_length);
    ucs_status_t status;
    void *longer;

    status = ST_REAL(ucp_worker_get_address)(worker, address_p, length_p);
    if ((status != UCS_OK) || (length <= *length_p)) {
        return status;
    }
    longer = calloc(1, length);
    memcpy(longer, *address_p, *length_p);
    ucp_worker_release_address(worker, *address_p);
    *address_p = longer;
    *length_p  = length;
    return UCS_OK;
}

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params,
                           ucp_ep_h *ep_p)
{
    ucs_status_t (*func)(void) = ATOMIC_GET(before_create);
    ucs_status_t status;

    ATOMIC_ADD(num_eps, 1);
    status = (func == NULL) ? UCS_OK : func();
    return (status != UCS_OK) ? status :
           ST_REAL(ucp_ep_create)(worker, params, ep_p);
}

/* One that is not complete at once: the caller is told by UCP's progress. The
 * function is called last, so that the caller does nothing after it. */
ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    void (*func)(void) = ATOMIC_GET(before_flush);
    ucs_status_ptr_t request;

    request = ST_REAL(ucp_ep_flush_nbx)(ep, param);
    if (func == NULL) {
        return request;
    }
    if (!UCS_PTR_IS_PTR(request)) {
        late_arg    = param->user_data;
        late_status = UCS_PTR_STATUS(request);
        request     = &own_request;
        ATOMIC_SET(late_cb, param->cb.send);
    }
    func();
    return request;
}

static void tell_late_close(void)
{
    ucp_send_nbx_callback_t cb = late_close_cb;

    if (cb != NULL) {
        late_close_cb = NULL;
        cb(&own_close_request, late_close_status, late_close_cb_arg);
    }
}

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    ucp_send_nbx_callback_t cb;

    cb = __atomic_exchange_n(&late_cb, NULL, __ATOMIC_SEQ_CST);
    if (cb != NULL) {
        cb(&own_request, late_status, late_arg);
    }
    tell_late_close();
    return ST_REAL(ucp_worker_progress)(worker);
}

ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    ucs_status_ptr_t request;

    request = ST_REAL(ucp_ep_close_nbx)(ep, param);
    if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) &&
        (param->user_data == ATOMIC_GET(late_close_arg)) &&
        !UCS_PTR_IS_PTR(request)) {
        late_close_status = UCS_PTR_STATUS(request);
        late_close_cb_arg = param->user_data;
        late_close_cb     = param->cb.send;
        return &own_close_request;
    }
    if (!ATOMIC_GET(is_slow_close)) {
        return request;
    }
    ATOMIC_ADD(num_closes, 1);
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    return &own_request;
}

ucs_status_t ucp_request_check_status(void *request)
{
    if (request != &own_request) {
        return ST_REAL(ucp_request_check_status)(request);
    }
    ATOMIC_ADD(clock_ahead, 1);
    return (ATOMIC_ADD(num_questions, 1) < ATOMIC_GET(max_questions)) ?
           UCS_INPROGRESS : UCS_OK;
}

void ucp_request_free(void *request)
{
    if (request == &own_close_request) {
        ATOMIC_SET(is_late_close_over, 1);
    } else if (request != &own_request) {
        ST_REAL(ucp_request_free)(request);
    }
}

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header,
                                 size_t header_length, const void *buffer,
                                 size_t count,
                                 const ucp_request_param_t *param)
{
    ucs_status_t (*func)(unsigned id, void *header) =
            ATOMIC_GET(before_am_send);
    ucs_status_t status                             =
            (func == NULL) ? UCS_OK : func(id, (void*)header);

    return (status != UCS_OK) ? UCS_STATUS_PTR(status) :
           ST_REAL(ucp_am_send_nbx)(ep, id, header, header_length, buffer,
                                    count, param);
}

#if !ST_HOOK_SANITIZED

/* The owner of a mutex is where glibc has it */
static void look(void)
{
    pthread_mutex_t *mutex = ATOMIC_GET(watched);

    if ((mutex != NULL) && (ATOMIC_GET(mutex->__data.__owner) == gettid())) {
        ATOMIC_ADD(violations, 1);
    }
}

int sched_yield(void)
{
    look();
    return ST_REAL(sched_yield)();
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    look();
    return ST_REAL(nanosleep)(time, left);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                    struct timespec *left)
{
    look();
    return ST_REAL(clock_nanosleep)(clock, flags, time, left);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int64_t ahead = ATOMIC_GET(clock_ahead);
    int ret;

    ret = ST_REAL(clock_gettime)(clock, time);
    time->tv_sec += ahead / 1000;
    return ret;
}

#endif

static uint64_t hook_held_src, hook_held_dst;

static ucs_status_t hook_hold_frame(unsigned id, void *header)
{
    const ucp_st_frame_t *frame = header;

    return ((id == UCP_ST_NET_AM_CTRL) && (frame->src == hook_held_src) &&
            ((hook_held_dst == 0) || (frame->dst == hook_held_dst))) ?
           UCS_ERR_NO_MEMORY : UCS_OK;
}

void st_hook_hold(uint64_t src, uint64_t dst)
{
    hook_held_src = src;
    hook_held_dst = dst;
    st_hook_am_send(hook_hold_frame);
}
