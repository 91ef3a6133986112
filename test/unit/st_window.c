/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_window.c - memory of two sides that each can reach of the other.
 */
#include "st_window.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>
#include <string.h>

static size_t st_window_begin_of_signals(size_t length)
{
    return (length + 7) & ~(size_t)7;
}

static size_t st_window_size(size_t length)
{
    return st_window_begin_of_signals(length) +
           (ST_WINDOW_SIGNALS * sizeof(uint64_t));
}

void st_window_init(st_side_t *side, st_window_t *window, size_t length,
                    int is_library)
{
    size_t size  = st_window_size(length);
    void *memory = NULL;

    if (is_library) {
        CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(size, &memory), UCS_OK);
    } else {
        memory = malloc(size);
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
    memset(memory, 0, size);
    window->side       = side;
    window->memory     = memory;
    window->length     = length;
    window->is_library = is_library;
    window->rkey       = NULL;
    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_reg(side->worker, memory, size,
                                         &window->memh), UCS_OK);
}

/* On lane host the answer to a peer's get may be under way for a moment more
 * when the peer has it */
static void st_window_dereg(st_window_t *window)
{
    ucs_status_t status;

    while ((status = ucp_st_mem_dereg(window->memh)) == UCS_ERR_BUSY) {
        (void)ucp_st_worker_progress(window->side->worker);
    }
    CU_ASSERT_EQUAL(status, UCS_OK);
}

void st_window_cleanup(st_window_t *window)
{
    if (window->rkey != NULL) {
        CU_ASSERT_EQUAL(ucp_st_rkey_destroy(window->rkey), UCS_OK);
    }
    st_window_dereg(window);
    if (window->is_library) {
        CU_ASSERT_EQUAL(ucp_st_mem_free(window->memory), UCS_OK);
    } else {
        free(window->memory);
    }
}

ucp_st_rkey_h st_window_key(ucp_st_peer_h peer, const st_window_t *owner)
{
    ucp_st_rkey_h rkey = NULL;
    void *buffer       = NULL;
    size_t length      = 0;

    CU_ASSERT_EQUAL_FATAL(ucp_st_rkey_pack(owner->memh, &buffer, &length),
                          UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_st_rkey_unpack(peer, buffer, length, &rkey),
                          UCS_OK);
    ucp_st_rkey_buffer_release(buffer);
    return rkey;
}

void st_windows_init(st_pair_t *pair, st_window_t windows[2], size_t length,
                     int is_library)
{
    int i;

    for (i = 0; i < 2; ++i) {
        st_window_init(&pair->side[i], &windows[i], length, is_library);
    }
    for (i = 0; i < 2; ++i) {
        windows[i].rkey = st_window_key(pair->side[i].peer, &windows[1 - i]);
    }
}

void st_windows_cleanup(st_window_t windows[2])
{
    st_window_cleanup(&windows[ST_A]);
    st_window_cleanup(&windows[ST_B]);
}

ucp_st_rma_params_t st_rma_params(const st_window_t *window, size_t offset,
                                  size_t length)
{
    ucp_st_rma_params_t params = {
        .field_mask    = UCP_ST_RMA_PARAM_FIELD_MEMH |
                         UCP_ST_RMA_PARAM_FIELD_OFFSET |
                         UCP_ST_RMA_PARAM_FIELD_LENGTH |
                         UCP_ST_RMA_PARAM_FIELD_RKEY |
                         UCP_ST_RMA_PARAM_FIELD_REMOTE_OFFSET,
        .memh          = window->memh,
        .offset        = offset,
        .length        = length,
        .rkey          = window->rkey,
        .remote_offset = offset
    };

    return params;
}

ucp_st_signal_params_t st_signal_params(const st_window_t *window,
                                        unsigned index, uint64_t value)
{
    ucp_st_signal_params_t params = {
        .field_mask = UCP_ST_SIGNAL_PARAM_FIELD_RKEY |
                      UCP_ST_SIGNAL_PARAM_FIELD_OFFSET |
                      UCP_ST_SIGNAL_PARAM_FIELD_VALUE,
        .rkey       = window->rkey,
        .offset     = st_window_begin_of_signals(window->length) +
                      (index * sizeof(uint64_t)),
        .value      = value
    };

    return params;
}

ucp_st_wait_signal_params_t st_wait_params(const st_window_t *window,
                                           unsigned index, uint64_t value)
{
    ucp_st_wait_signal_params_t params = {
        .field_mask = UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_OFFSET |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_VALUE,
        .memh       = window->memh,
        .offset     = st_window_begin_of_signals(window->length) +
                      (index * sizeof(uint64_t)),
        .value      = value
    };

    return params;
}

uint64_t *st_signal(const st_window_t *window, unsigned index)
{
    return (uint64_t*)(window->memory +
                       st_window_begin_of_signals(window->length)) + index;
}

static ucp_st_rma_params_t st_rma_ordered(const st_window_t *window,
                                          size_t offset, size_t length,
                                          int is_strict)
{
    ucp_st_rma_params_t params = st_rma_params(window, offset, length);

    if (is_strict) {
        params.field_mask |= UCP_ST_RMA_PARAM_FIELD_FLAGS;
        params.flags       = UCP_ST_RMA_FLAG_STRICT;
    }
    return params;
}

void st_put(st_window_t *window, size_t offset, size_t length, int is_strict)
{
    ucp_st_rma_params_t params = st_rma_ordered(window, offset, length,
                                                is_strict);

    CU_ASSERT_EQUAL(ucp_st_enqueue_put(window->side->queue, &params), UCS_OK);
}

void st_get(st_window_t *window, size_t offset, size_t length, int is_strict)
{
    ucp_st_rma_params_t params = st_rma_ordered(window, offset, length,
                                                is_strict);

    CU_ASSERT_EQUAL(ucp_st_enqueue_get(window->side->queue, &params), UCS_OK);
}

void st_put_signal(st_window_t *window, size_t length, unsigned index,
                   uint64_t value)
{
    ucp_st_rma_params_t params    = st_rma_params(window, 0, length);
    ucp_st_signal_params_t signal = st_signal_params(window, index, value);

    CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(window->side->queue, &params,
                                              &signal), UCS_OK);
}

void st_wait_signal(st_window_t *window, unsigned index, uint64_t value)
{
    ucp_st_wait_signal_params_t params = st_wait_params(window, index, value);

    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(window->side->queue, &params),
                    UCS_OK);
}

void st_quiet(st_window_t *window)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_quiet(window->side->queue), UCS_OK);
}
