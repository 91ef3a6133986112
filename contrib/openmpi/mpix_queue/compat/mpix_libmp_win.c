/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_libmp_win.c - the calls of compat/mp.h: registered memory, windows, puts
 * and gets.
 *
 * Behind the puts and gets of a call the stream waits until they are over, and
 * tells so. Then they are in order with all that follows on it, and a wait for
 * one need not ask the stream.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "compat/mpix_libmp.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_handle.h"

#include <ucs_backoff.h>
#include <ucs_gstream.h>
#include <ucs_gstream_memory.h>

#include <stdlib.h>
#include <string.h>

/* How long a call tries to give back what a peer's last operation has, or to
 * enqueue one for which a lane has no room, seconds */
#define MPIX_LIBMP_TRY_TIME 5.0


/* Registered memory */

int MPIX_Mp_register(void *addr, size_t length, mp_reg_t *reg_t)
{
    static const char func[] = "mp_register";
    int rc                   = mpix_libmp_check_init(func);
    struct mp_reg *reg;

    if (rc != MP_SUCCESS) {
        return rc;
    }
    if ((addr == NULL) || (length == 0) || (reg_t == NULL)) {
        return mpix_libmp_fail(func, "%zu bytes at %p, the registration at %p",
                               length, addr, (void*)reg_t);
    }
    reg = calloc(1, sizeof(*reg));
    if (reg == NULL) {
        return mpix_libmp_fail(func, "no memory");
    }
    reg->addr   = addr;
    reg->length = length;
    ucs_list_add_tail(&mpix_libmp.regs, &reg->list);
    *reg_t = reg;
    return MP_SUCCESS;
}

/* A call that is tried again; all 0 at first. */
typedef struct mpix_libmp_try {
    double   end;
    unsigned spins;
} mpix_libmp_try_t;


/* Whether to call again what has returned a status. Passes a little time. */
static int mpix_libmp_again(mpix_libmp_try_t *try, ucs_status_t status)
{
    double now = mpix_now();

    if ((status != UCS_ERR_BUSY) && (status != UCS_ERR_NO_RESOURCE)) {
        return 0;
    }
    if (try->end == 0) {
        try->end = (mpix_libmp.end != 0) ? mpix_libmp.end :
                                           (now + MPIX_LIBMP_TRY_TIME);
    }
    if (now >= try->end) {
        return 0;
    }
    ucp_st_worker_progress(mpix_global.st_worker);
    ucs_backoff(&try->spins);
    return 1;
}

ucs_status_t mpix_libmp_dereg(ucp_st_mem_h memh)
{
    mpix_libmp_try_t try = {0};
    ucs_status_t status;

    do {
        status = ucp_st_mem_dereg(memh);
    } while (mpix_libmp_again(&try, status));
    return status;
}

static void mpix_libmp_drop_key(ucp_st_rkey_h rkey)
{
    mpix_libmp_try_t try = {0};

    while (mpix_libmp_again(&try, ucp_st_rkey_destroy(rkey))) {
    }
}

int mpix_libmp_rma_is_over(const struct mp_request *req)
{
    return __atomic_load_n(req->done, __ATOMIC_ACQUIRE) != 0;
}

/* Whether a request is not over and uses memory, or a window; NULL: none */
static int mpix_libmp_uses(const struct mp_request *req,
                           const struct mp_reg *reg,
                           const struct mp_window *window)
{
    return (((reg != NULL) && (req->reg == reg)) ||
            ((window != NULL) && (req->window == window))) &&
           ((req->state != MPIX_LIBMP_POSTED) || !mpix_libmp_rma_is_over(req));
}

/* Whether any does. */
static int mpix_libmp_is_used(const struct mp_reg *reg,
                              const struct mp_window *window)
{
    struct mp_request *req;

    kh_foreach_key(&mpix_libmp.requests, req, {
        if (mpix_libmp_uses(req, reg, window)) {
            return 1;
        }
    })
    ucs_list_for_each(req, &mpix_libmp.dropped, list) {
        if (mpix_libmp_uses(req, reg, window)) {
            return 1;
        }
    }
    return 0;
}

int MPIX_Mp_deregister(mp_reg_t *reg)
{
    static const char func[] = "mp_deregister";
    ucs_status_t status      = UCS_OK;

    if ((reg == NULL) || !mpix_handle_is_valid(&mpix_libmp.regs, *reg)) {
        return mpix_libmp_fail(func, "%p is no registration",
                               (reg == NULL) ? NULL : (void*)*reg);
    }
    if (mpix_libmp_is_used(*reg, NULL)) {
        return mpix_libmp_fail(func, "puts or gets of the memory are not over");
    }
    if ((*reg)->memh != NULL) {
        status = mpix_libmp_dereg((*reg)->memh);
    }
    if (status != UCS_OK) {
        return mpix_libmp_fail(func, "%s", ucs_status_string(status));
    }
    ucs_list_del(&(*reg)->list);
    free(*reg);
    *reg = NULL;
    return MP_SUCCESS;
}

/* Windows */

static void mpix_libmp_window_free(struct mp_window *window)
{
    int rank;

    for (rank = 0; rank < mpix_libmp.size; ++rank) {
        if (window->rkeys[rank] != NULL) {
            mpix_libmp_drop_key(window->rkeys[rank]);
        }
    }
    if (window->memh != NULL) {
        (void)mpix_libmp_dereg(window->memh);
    }
    ucs_list_del(&window->list);
    free(window);
}

/* Keys of all ranks, one behind the other. */
typedef struct mpix_libmp_keys {
    int  *lengths; /* By rank; 0: its part is empty */
    int  *offsets;
    char *bytes;
} mpix_libmp_keys_t;

static void mpix_libmp_keys_free(mpix_libmp_keys_t *keys)
{
    free(keys->lengths);
    free(keys->offsets);
    free(keys->bytes);
}

/* All tell all their keys. */
static int mpix_libmp_keys_gather(const char *func, const void *key, int length,
                                  mpix_libmp_keys_t *keys)
{
    int total = 0;
    int rc    = MP_SUCCESS;
    int rank;

    keys->lengths = calloc(mpix_libmp.size, sizeof(*keys->lengths));
    keys->offsets = calloc(mpix_libmp.size, sizeof(*keys->offsets));
    if ((keys->lengths == NULL) || (keys->offsets == NULL)) {
        rc = mpix_libmp_fail(func, "no memory");
    }
    rc = mpix_libmp_all(func, rc);
    if (rc != MP_SUCCESS) {
        return rc;
    }
    rc = mpix_libmp_code(PMPI_Allgather(&length, 1, MPI_INT, keys->lengths, 1,
                                        MPI_INT, mpix_libmp.handle));
    if (rc != MP_SUCCESS) {
        return rc;
    }
    for (rank = 0; rank < mpix_libmp.size; ++rank) {
        keys->offsets[rank] = total;
        total              += keys->lengths[rank];
    }
    keys->bytes = malloc((size_t)total + 1);
    rc          = mpix_libmp_all(func, (keys->bytes != NULL) ?
                                               MP_SUCCESS :
                                               mpix_libmp_fail(func,
                                                               "no memory"));
    return (rc != MP_SUCCESS) ?
                   rc :
                   mpix_libmp_code(PMPI_Allgatherv(
                           key, length, MPI_BYTE, keys->bytes, keys->lengths,
                           keys->offsets, MPI_BYTE, mpix_libmp.handle));
}

static int mpix_libmp_keys_unpack(const char *func,
                                  const mpix_libmp_keys_t *keys,
                                  struct mp_window *window)
{
    ucp_st_peer_h peer;
    ucs_status_t status;
    int rank;

    for (rank = 0; rank < mpix_libmp.size; ++rank) {
        peer = mpix_libmp.peers[rank].peer;
        if ((peer == NULL) || (keys->lengths[rank] == 0)) {
            continue;
        }
        status = ucp_st_rkey_unpack(peer, keys->bytes + keys->offsets[rank],
                                    keys->lengths[rank], &window->rkeys[rank]);
        if (status != UCS_OK) {
            return mpix_libmp_fail(func, "the part of rank %d is not to be "
                                         "reached: %s", rank,
                                   ucs_status_string(status));
        }
    }
    return MP_SUCCESS;
}

/* The own part. */
static int mpix_libmp_window_reg(const char *func, struct mp_window *window,
                                 void *addr, size_t size)
{
    ucs_status_t status = UCS_OK;

    if (window == NULL) {
        return mpix_libmp_fail(func, "no memory");
    }
    if (size > 0) {
        status = ucp_st_mem_reg(mpix_global.st_worker, addr, size,
                                &window->memh);
    }
    return (status == UCS_OK) ?
                   MP_SUCCESS :
                   mpix_libmp_fail(func, "%zu bytes at %p cannot be "
                                         "registered: %s", size, addr,
                                   ucs_status_string(status));
}

int MPIX_Mp_window_create(void *addr, size_t size, mp_window_t *window_t)
{
    static const char func[] = "mp_window_create";
    mpix_libmp_keys_t keys   = {NULL};
    void *key                = NULL;
    size_t length            = 0;
    int rc                   = mpix_libmp_check_init(func);
    struct mp_window *window;

    if (rc != MP_SUCCESS) {
        return rc;
    }
    window = calloc(1, sizeof(*window) +
                               (mpix_libmp.size * sizeof(window->rkeys[0])));
    if (window != NULL) {
        window->rkeys = (ucp_st_rkey_h*)(window + 1);
        ucs_list_add_tail(&mpix_libmp.windows, &window->list);
    }
    if ((window_t == NULL) || ((addr == NULL) && (size > 0))) {
        rc = mpix_libmp_fail(func, "%zu bytes at %p, the window at %p", size,
                             addr, (void*)window_t);
    } else {
        rc = mpix_libmp_window_reg(func, window, addr, size);
    }
    if ((rc == MP_SUCCESS) && (window->memh != NULL) &&
        (ucp_st_rkey_pack(window->memh, &key, &length) != UCS_OK)) {
        rc = mpix_libmp_fail(func, "no memory");
    }
    rc = mpix_libmp_all(func, rc);
    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_keys_gather(func, key, (int)length, &keys);
    }
    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_all(func, mpix_libmp_keys_unpack(func, &keys, window));
    }
    ucp_st_rkey_buffer_release(key);
    mpix_libmp_keys_free(&keys);
    if (rc == MP_SUCCESS) {
        *window_t = window;
    } else if (window != NULL) {
        mpix_libmp_window_free(window);
    }
    return rc;
}

static int mpix_libmp_window_check(const char *func, const mp_window_t *window)
{
    if ((window == NULL) ||
        !mpix_handle_is_valid(&mpix_libmp.windows, *window)) {
        return mpix_libmp_fail(func, "%p is no window",
                               (window == NULL) ? NULL : (void*)*window);
    }
    return MP_SUCCESS;
}

int MPIX_Mp_window_destroy(mp_window_t *window_t)
{
    static const char func[] = "mp_window_destroy";
    int rc                   = mpix_libmp_window_check(func, window_t);

    if (rc != MP_SUCCESS) {
        return rc;
    }
    mpix_libmp_reap();
    if (mpix_libmp_is_used(NULL, *window_t)) {
        return mpix_libmp_fail(func, "puts or gets of the window are not over");
    }
    mpix_libmp_window_free(*window_t);
    *window_t = NULL;
    return MP_SUCCESS;
}

void mpix_libmp_windows_cleanup(void)
{
    struct mp_reg *reg;

    while (!ucs_list_is_empty(&mpix_libmp.windows)) {
        mpix_libmp_window_free(ucs_list_head(&mpix_libmp.windows,
                                             struct mp_window, list));
    }
    while (!ucs_list_is_empty(&mpix_libmp.regs)) {
        reg = ucs_list_extract_head(&mpix_libmp.regs, struct mp_reg, list);
        if (reg->memh != NULL) {
            (void)mpix_libmp_dereg(reg->memh);
        }
        free(reg);
    }
}

/* Puts and gets */

/* What one is made of. */
typedef struct mpix_libmp_rma {
    const char  *func;
    void        *buf;
    int         size;
    mp_reg_t    *reg;
    int         peer;
    size_t      displ;
    mp_window_t *window;
    int         flags;
} mpix_libmp_rma_t;


/* Whether the bytes are there, here and at the peer. */
static int mpix_libmp_rma_check(const mpix_libmp_rma_t *args)
{
    ucp_st_rkey_attr_t attr = {.length = 0};
    const struct mp_reg *reg;
    ucp_st_rkey_h rkey;
    size_t offset;

    if ((args->reg == NULL) ||
        !mpix_handle_is_valid(&mpix_libmp.regs, *args->reg)) {
        return mpix_libmp_fail(args->func, "%p is no registration",
                               (args->reg == NULL) ? NULL : (void*)*args->reg);
    }
    reg    = *args->reg;
    offset = (uintptr_t)args->buf - (uintptr_t)reg->addr; /* Or very large */
    if ((args->size < 0) || (offset > reg->length) ||
        ((size_t)args->size > (reg->length - offset))) {
        return mpix_libmp_fail(args->func, "%d bytes at %p are not in the "
                               "registration of %zu at %p", args->size,
                               args->buf, reg->length, reg->addr);
    }
    if (args->flags & ~(MP_PUT_INLINE | MP_PUT_NOWAIT)) {
        return mpix_libmp_fail(args->func, "unknown flags 0x%x", args->flags);
    }
    rkey = (*args->window)->rkeys[args->peer];
    if (rkey != NULL) {
        (void)ucp_st_rkey_query(rkey, &attr);
    }
    if ((args->displ > attr.length) ||
        ((size_t)args->size > (attr.length - args->displ))) {
        return mpix_libmp_fail(args->func, "%d bytes from %zu on are not in "
                               "rank %d's part of %zu bytes", args->size,
                               args->displ, args->peer, attr.length);
    }
    return MP_SUCCESS;
}

/* Keeps a copy of the data of MP_PUT_INLINE. */
static ucs_status_t mpix_libmp_rma_copy(struct mp_request *req)
{
    ucs_status_t status;

    req->reg   = NULL;
    req->stage = ucs_gstream_memory_get(req->length);
    if (req->stage == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucs_gstream_memory_copy(req->stage, req->buffer, req->length);
    return (status == UCS_OK) ? ucp_st_mem_reg(mpix_global.st_worker,
                                               req->stage, req->length,
                                               &req->stage_memh) :
                                status;
}

/* A put or get that is not posted; NULL, which was printed, if that makes no
 * sense. */
static struct mp_request *mpix_libmp_rma_new(mpix_libmp_kind_t kind,
                                             const mpix_libmp_rma_t *args,
                                             const mp_request_t *req_p)
{
    struct mp_request *req = mpix_libmp_request_new(args->func, kind,
                                                    args->peer);
    ucs_status_t status    = UCS_OK;

    if (req == NULL) {
        return NULL;
    }
    if (req_p == NULL) {
        mpix_libmp_fail(args->func, "NULL argument");
        goto err;
    }
    if ((mpix_libmp_window_check(args->func, args->window) != MP_SUCCESS) ||
        (mpix_libmp_rma_check(args) != MP_SUCCESS)) {
        goto err;
    }
    req->buffer    = args->buf;
    req->length    = args->size;
    req->reg       = *args->reg;
    req->window    = *args->window;
    req->displ     = args->displ;
    req->is_nowait = !!(args->flags & MP_PUT_NOWAIT);
    req->done      = ucs_gstream_word_get();
    if (req->done == NULL) {
        status = UCS_ERR_NO_MEMORY;
    } else if ((args->flags & MP_PUT_INLINE) && (req->length > 0)) {
        status = mpix_libmp_rma_copy(req);
    } else if (req->reg->memh == NULL) {
        status = ucp_st_mem_reg(mpix_global.st_worker, req->reg->addr,
                                req->reg->length, &req->reg->memh);
    }
    if (status == UCS_OK) {
        return req;
    }
    mpix_libmp_fail(args->func, "the memory cannot be registered: %s",
                    ucs_status_string(status));

err:
    mpix_libmp_request_free(req, 0);
    return NULL;
}

static ucs_status_t mpix_libmp_rma_try(struct mpix_queue *queue,
                                       const ucp_st_rma_params_t *params,
                                       mpix_libmp_kind_t kind)
{
    switch (kind) {
    case MPIX_LIBMP_PUT:
        return ucp_st_enqueue_put(queue->st_queue, params);
    case MPIX_LIBMP_GET:
        return ucp_st_enqueue_get(queue->st_queue, params);
    default:
        return ucp_st_enqueue_quiet(queue->st_queue);
    }
}

/* Calls again while a lane has no room. */
static ucs_status_t mpix_libmp_rma_call(struct mpix_queue *queue,
                                        const ucp_st_rma_params_t *params,
                                        mpix_libmp_kind_t kind)
{
    mpix_libmp_try_t try = {0};
    ucs_status_t status;

    do {
        status = mpix_libmp_rma_try(queue, params, kind);
    } while (mpix_libmp_again(&try, status));
    return status;
}

/* Those to one peer take effect in their order, as in LibMP. */
ucs_status_t mpix_libmp_rma_enqueue(struct mpix_queue *queue,
                                    struct mp_request *req)
{
    ucp_st_rma_params_t params = {
        .field_mask    = UCP_ST_RMA_PARAM_FIELD_MEMH |
                         UCP_ST_RMA_PARAM_FIELD_OFFSET |
                         UCP_ST_RMA_PARAM_FIELD_LENGTH |
                         UCP_ST_RMA_PARAM_FIELD_RKEY |
                         UCP_ST_RMA_PARAM_FIELD_REMOTE_OFFSET |
                         UCP_ST_RMA_PARAM_FIELD_FLAGS,
        .memh          = req->stage_memh,
        .length        = req->length,
        .rkey          = req->window->rkeys[req->peer],
        .remote_offset = req->displ,
        .flags         = UCP_ST_RMA_FLAG_STRICT
    };

    if (req->length == 0) {
        return UCS_OK;
    }
    if (req->reg != NULL) {
        params.memh   = req->reg->memh;
        params.offset = (uintptr_t)req->buffer - (uintptr_t)req->reg->addr;
    }
    return mpix_libmp_rma_call(queue, &params, req->kind);
}

ucs_status_t mpix_libmp_rma_finish(struct mpix_queue *queue, uint32_t count,
                                   const mp_request_t *reqs)
{
    ucs_status_t status;
    uint32_t i;

    status = mpix_libmp_rma_call(queue, NULL, MPIX_LIBMP_SEND); /* a quiet */
    for (i = 0; i < count; ++i) {
        status = mpix_libmp_tell_done(queue, reqs[i], status);
    }
    return status;
}

void mpix_libmp_reap(void)
{
    struct mp_request *req, *next;

    ucs_list_for_each_safe(req, next, &mpix_libmp.dropped, list) {
        if (mpix_libmp_rma_is_over(req)) {
            mpix_libmp_request_free(req, 0);
        }
    }
}

static int mpix_libmp_rma(mpix_libmp_kind_t kind, const mpix_libmp_rma_t *args,
                          struct mpix_queue *queue, mp_request_t *req_p)
{
    struct mp_request *req = mpix_libmp_rma_new(kind, args, req_p);

    return (req == NULL) ? MP_FAILURE :
                           mpix_libmp_post_new(args->func, queue, req, req_p);
}

static int mpix_libmp_rma_on(mpix_libmp_kind_t kind,
                             const mpix_libmp_rma_t *args, cudaStream_t stream,
                             mp_request_t *req_p)
{
    struct mpix_queue *queue;
    int rc;

    rc = mpix_libmp_get_queue(args->func, stream, &queue);
    return (rc == MP_SUCCESS) ? mpix_libmp_rma(kind, args, queue, req_p) : rc;
}

int MPIX_Mp_iput(void *src, int size, mp_reg_t *src_reg, int peer, size_t displ,
                 mp_window_t *dst_window_t, mp_request_t *req, int flags)
{
    const mpix_libmp_rma_t args = {"mp_iput", src, size, src_reg, peer, displ,
                                   dst_window_t, flags};

    mpix_libmp_reap();
    return mpix_libmp_rma(MPIX_LIBMP_PUT, &args, mpix_libmp.host, req);
}

int MPIX_Mp_iget(void *dst, int size, mp_reg_t *dst_reg, int peer, size_t displ,
                 mp_window_t *src_window_t, mp_request_t *req)
{
    const mpix_libmp_rma_t args = {"mp_iget", dst, size, dst_reg, peer, displ,
                                   src_window_t, 0};

    return mpix_libmp_rma(MPIX_LIBMP_GET, &args, mpix_libmp.host, req);
}

int MPIX_Mp_iput_on_stream(void *src, int size, mp_reg_t *src_reg, int peer,
                           size_t displ, mp_window_t *dst_window_t,
                           mp_request_t *req, int flags, cudaStream_t stream)
{
    const mpix_libmp_rma_t args = {"mp_iput_on_stream", src, size, src_reg,
                                   peer, displ, dst_window_t, flags};

    return mpix_libmp_rma_on(MPIX_LIBMP_PUT, &args, stream, req);
}

int MPIX_Mp_iget_on_stream(void *dst, int size, mp_reg_t *dst_reg, int peer,
                           size_t displ, mp_window_t *src_window_t,
                           mp_request_t *req, cudaStream_t stream)
{
    const mpix_libmp_rma_t args = {"mp_iget_on_stream", dst, size, dst_reg,
                                   peer, displ, src_window_t, 0};

    return mpix_libmp_rma_on(MPIX_LIBMP_GET, &args, stream, req);
}

int MPIX_Mp_put_prepare(void *src, int size, mp_reg_t *src_reg, int peer,
                        size_t displ, mp_window_t *dst_window_t,
                        mp_request_t *req_p, int flags)
{
    const mpix_libmp_rma_t args = {"mp_put_prepare", src, size, src_reg, peer,
                                   displ, dst_window_t, flags};
    struct mp_request *req;

    req = mpix_libmp_rma_new(MPIX_LIBMP_PUT, &args, req_p);
    if (req == NULL) {
        return MP_FAILURE;
    }
    *req_p = req;
    return MP_SUCCESS;
}
