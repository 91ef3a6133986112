/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_stack.h - a stack by which streams hand items to the service thread. A
 * stream pushes with one compare-and-swap; the thread takes all items at once.
 * Neither waits for the other, and no single item is popped, so that an item
 * cannot come back while another thread looks at it.
 */
#ifndef UCP_ST_STACK_H_
#define UCP_ST_STACK_H_

#include <stddef.h>

/** Part of the object that is handed over. It is in one stack at a time, and
 *  belongs to the thread that has taken it. */
typedef struct ucp_st_stack_item {
    struct ucp_st_stack_item *next;
} ucp_st_stack_item_t;

/** Zeroed at first. */
typedef struct ucp_st_stack {
    ucp_st_stack_item_t *top; /* atomic */
} ucp_st_stack_t;

/** Hand an item over. The release of the swap pairs with the acquire of
 *  ucp_st_stack_take(): what the stream did before is in the memory. */
static inline void ucp_st_stack_push(ucp_st_stack_t *stack,
                                     ucp_st_stack_item_t *item)
{
    ucp_st_stack_item_t *top = __atomic_load_n(&stack->top, __ATOMIC_RELAXED);

    do {
        item->next = top;
    } while (!__atomic_compare_exchange_n(&stack->top, &top, item, 1,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/** Take all items: a list of them in the order in which they were pushed, or
 *  NULL. */
static inline ucp_st_stack_item_t *ucp_st_stack_take(ucp_st_stack_t *stack)
{
    ucp_st_stack_item_t *first = NULL;
    ucp_st_stack_item_t *item, *next;

    item = __atomic_exchange_n(&stack->top, NULL, __ATOMIC_ACQUIRE);
    for (; item != NULL; item = next) {
        next       = item->next;
        item->next = first;
        first      = item;
    }
    return first;
}

#endif
