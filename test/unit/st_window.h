/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_window.h - memory of two sides that each can reach of the other, for the
 * cases about one-sided operations.
 */
#ifndef ST_WINDOW_H_
#define ST_WINDOW_H_

#include "st_pair.h"

/** Where signals are in a window: behind the data. */
#define ST_WINDOW_SIGNALS 64

/** Of one side: registered memory, and the key of the other side's. */
typedef struct {
    st_side_t     *side;
    uint8_t       *memory;
    size_t        length;  /* without the signals */
    int           is_library;
    ucp_st_mem_h  memh;
    ucp_st_rkey_h rkey;
} st_window_t;

/** Make both sides' windows, in memory of the library or of malloc(), all
 *  zero; asserts. */
void st_windows_init(st_pair_t *pair, st_window_t windows[2], size_t length,
                     int is_library);

/** Give them back, when nothing is under way; asserts. */
void st_windows_cleanup(st_window_t windows[2]);

/** Make one window without a key, and give one back; asserts. */
void st_window_init(st_side_t *side, st_window_t *window, size_t length,
                    int is_library);
void st_window_cleanup(st_window_t *window);

/** The key of `owner`'s memory for `peer` of the side; asserts. */
ucp_st_rkey_h st_window_key(ucp_st_peer_h peer, const st_window_t *owner);

/** Parameters of an operation: `length` bytes at the same offset on both
 *  sides. */
ucp_st_rma_params_t st_rma_params(const st_window_t *window, size_t offset,
                                  size_t length);

/** Of signal number `index`. */
ucp_st_signal_params_t st_signal_params(const st_window_t *window,
                                        unsigned index, uint64_t value);
ucp_st_wait_signal_params_t st_wait_params(const st_window_t *window,
                                           unsigned index, uint64_t value);

/** Where a signal is. */
uint64_t *st_signal(const st_window_t *window, unsigned index);

/** Enqueue; assert. Of put and get `is_strict` makes the flag. */
void st_put(st_window_t *window, size_t offset, size_t length, int is_strict);
void st_get(st_window_t *window, size_t offset, size_t length, int is_strict);
void st_put_signal(st_window_t *window, size_t length, unsigned index,
                   uint64_t value);
void st_wait_signal(st_window_t *window, unsigned index, uint64_t value);
void st_quiet(st_window_t *window);

#endif
