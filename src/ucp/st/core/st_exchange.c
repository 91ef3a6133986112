/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_exchange.c - exchanges: made of operations that are not matched yet, then
 * started and waited for by one call each.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_exchange.h"
#include "core/st_log.h"
#include "core/st_progress.h"
#include "core/st_queue.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

#include <stdlib.h>

#define UCP_ST_EXCHANGE_FLAGS_ALL UCP_ST_EXCHANGE_FLAG_COUPLED

/* Thresholds of uses are counted with all operations */
static ucs_status_t ucp_st_exchange_check_new(ucp_st_exchange_h exchange)
{
    const ucp_st_op_t *op;

    if (exchange->has_failed) {
        return UCS_ERR_CANCELED;
    }
    ucp_st_exchange_for_each(op, exchange) {
        if (op->started > 0) {
            ucs_error("exchange %p was started, and takes no more operations",
                      exchange);
            return UCS_ERR_BUSY;
        }
    }
    return UCS_OK;
}

static ucs_status_t ucp_st_exchange_check_op(ucp_st_queue_h queue,
                                             const ucp_st_op_t *op)
{
    if ((op->state != UCP_ST_OP_INIT) || (op->exchange != NULL)) {
        ucs_error("operation %p is %s, and cannot be made part of an exchange",
                  op, (op->exchange != NULL) ? "of an exchange already" :
                  "given to match already");
        return UCS_ERR_BUSY;
    }
    return UCS_OK;
}

/* Whether operations can be made part of it; the lock is held */
static ucs_status_t ucp_st_exchange_check(ucp_st_exchange_h exchange,
                                          const ucp_st_op_h *ops, size_t count)
{
    ucs_status_t status = ucp_st_exchange_check_new(exchange);

    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }
    status = ucp_st_op_check_all(ops, count, ucp_st_exchange_check_op, NULL);
    if ((status == UCS_OK) && (ops[0]->worker != exchange->worker)) {
        ucs_error("the operations of an exchange belong to another worker");
        return UCS_ERR_INVALID_PARAM;
    }
    return status;
}

/* Room for more operations */
static ucs_status_t ucp_st_exchange_grow(ucp_st_exchange_h exchange,
                                         size_t count)
{
    ucp_st_op_h *ops;

    if (count > ((SIZE_MAX / sizeof(*ops)) - exchange->count)) {
        return UCS_ERR_NO_MEMORY;
    }
    if (count == 0) {
        return UCS_OK;
    }
    ops = realloc(exchange->ops, (exchange->count + count) * sizeof(*ops));
    if (ops == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    exchange->ops = ops;
    return UCS_OK;
}

ucs_status_t ucp_st_exchange_add(ucp_st_exchange_h exchange,
                                 const ucp_st_op_h *ops, size_t count)
{
    ucs_status_t status;
    size_t i;

    status = ucp_st_check_call((exchange != NULL) &&
                               ((ops != NULL) || (count == 0)));
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(exchange->worker);
    status = ucp_st_exchange_check(exchange, ops, count);
    if (status == UCS_OK) {
        status = ucp_st_exchange_grow(exchange, count);
    }
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        ops[i]->exchange                 = exchange;
        ops[i]->exchange_index           = exchange->count;
        exchange->ops[exchange->count++] = ops[i];
        ++exchange->refs;
    }
    ucp_st_worker_unlock(exchange->worker);
    return status;
}

ucs_status_t ucp_st_exchange_create(ucp_st_worker_h worker,
                                    const ucp_st_op_h *ops, size_t count,
                                    uint64_t flags,
                                    ucp_st_exchange_h *exchange_p)
{
    ucp_st_exchange_t *exchange;
    ucs_status_t status;

    status = ucp_st_check_call((worker != NULL) && (exchange_p != NULL));
    if (status != UCS_OK) {
        return status;
    }
    if (flags & ~(uint64_t)UCP_ST_EXCHANGE_FLAGS_ALL) {
        ucs_error("unknown flags 0x%lx of an exchange", flags);
        return UCS_ERR_INVALID_PARAM;
    }
    exchange = calloc(1, sizeof(*exchange));
    if (exchange == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    exchange->worker     = worker;
    exchange->is_coupled = !!(flags & UCP_ST_EXCHANGE_FLAG_COUPLED);
    exchange->refs       = 1;
    status               = ucp_st_exchange_add(exchange, ops, count);
    if (status != UCS_OK) {
        free(exchange);
        return status;
    }
    *exchange_p = exchange;
    return UCS_OK;
}

static ucs_status_t ucp_st_exchange_matchall(const ucp_st_op_h *ops,
                                             size_t count)
{
    return ucp_st_matchall(ops, count, NULL);
}

/* Gives those to match that are not matched, which may be tried again */
static ucs_status_t
ucp_st_exchange_give(ucp_st_exchange_h exchange,
                     ucs_status_t (*match)(const ucp_st_op_h *ops,
                                           size_t count))
{
    ucs_status_t status = ucp_st_check_call(exchange != NULL);
    size_t count        = 0;
    ucp_st_op_h *ops;
    ucp_st_op_t *op;

    if (status != UCS_OK) {
        return status;
    }
    ops = malloc(ucs_max(exchange->count, 1) * sizeof(*ops));
    if (ops == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    ucp_st_worker_lock(exchange->worker);
    ucp_st_exchange_for_each(op, exchange) {
        if (op->state != UCP_ST_OP_MATCHED) {
            ops[count++] = op;
        }
    }
    ucp_st_worker_unlock(exchange->worker);
    status = match(ops, count);
    free(ops);
    return status;
}

ucs_status_t ucp_st_exchange_match(ucp_st_exchange_h exchange)
{
    unsigned idle = 0;
    ucs_status_t status;

    status = ucp_st_exchange_give(exchange, ucp_st_exchange_matchall);
    /* Those that were given before may still be opening what they need */
    while ((status == UCS_OK) &&
           (ucp_st_exchange_match_test(exchange) == UCS_INPROGRESS)) {
        ucp_st_progress_pause(&idle, ucp_st_progress(exchange->worker));
    }
    return status;
}

ucs_status_t ucp_st_exchange_imatch(ucp_st_exchange_h exchange)
{
    return ucp_st_exchange_give(exchange, ucp_st_imatchall);
}

/* The more of two answers: an error, else that one is in progress, else that
 * one is complete and was not waited for */
static ucs_status_t ucp_st_exchange_worse(ucs_status_t a, ucs_status_t b)
{
    if ((a == UCS_OK) || ((b != UCS_OK) && (a == UCS_ERR_NO_MESSAGE)) ||
        ((b < UCS_OK) && (b != UCS_ERR_NO_MESSAGE) && (a == UCS_INPROGRESS))) {
        return b;
    }
    return a;
}

static ucs_status_t
ucp_st_exchange_ask(ucp_st_exchange_h exchange,
                    ucs_status_t (*ask)(ucp_st_op_h op))
{
    ucs_status_t result = ucp_st_check_call(exchange != NULL);
    size_t i;

    if (result != UCS_OK) {
        return result;
    }
    for (i = 0; i < exchange->count; ++i) {
        result = ucp_st_exchange_worse(result, ask(exchange->ops[i]));
    }
    return result;
}

ucs_status_t ucp_st_exchange_match_test(ucp_st_exchange_h exchange)
{
    return ucp_st_exchange_ask(exchange, ucp_st_match_test);
}

ucs_status_t ucp_st_exchange_test(ucp_st_exchange_h exchange)
{
    return ucp_st_exchange_ask(exchange, ucp_st_op_test);
}

static ucs_status_t
ucp_st_exchange_enqueue(ucp_st_queue_h queue, ucp_st_exchange_h exchange,
                        ucs_status_t (*enqueue)(ucp_st_queue_h queue,
                                                const ucp_st_op_h *ops,
                                                size_t count))
{
    ucs_status_t status = ucp_st_check_call((queue != NULL) &&
                                            (exchange != NULL));

    if (status == UCS_OK) {
        queue->exchange = exchange;
        status          = enqueue(queue, exchange->ops, exchange->count);
        queue->exchange = NULL;
    }
    return status;
}

ucs_status_t ucp_st_enqueue_exchange_start(ucp_st_queue_h queue,
                                           ucp_st_exchange_h exchange)
{
    return ucp_st_exchange_enqueue(queue, exchange, ucp_st_enqueue_startall);
}

ucs_status_t ucp_st_enqueue_exchange_wait(ucp_st_queue_h queue,
                                          ucp_st_exchange_h exchange)
{
    return ucp_st_exchange_enqueue(queue, exchange, ucp_st_enqueue_waitall);
}

ucs_status_t ucp_st_exchange_free(ucp_st_exchange_h exchange)
{
    ucs_status_t status = ucp_st_check_call(exchange != NULL);
    ucp_st_worker_h worker;
    ucp_st_op_t *op;

    if (status != UCS_OK) {
        return status;
    }
    worker = exchange->worker;
    ucp_st_worker_lock(worker);
    ucp_st_exchange_for_each(op, exchange) {
        if (ucp_st_op_free_begin(op) != UCS_OK) {
            status = UCS_ERR_BUSY;
        }
    }
    if (status == UCS_OK) {
        ucp_st_exchange_for_each(op, exchange) {
            ucp_st_op_free_end(op);
        }
        ucp_st_exchange_put(exchange);
    }
    ucp_st_worker_unlock(worker);
    return status;
}
