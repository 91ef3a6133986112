/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_gate.c - gates that a stream passes in their order.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <ucs_gstream.h>
#include <ucs_gstream_gate.h>

#include <stdlib.h>

void ucs_gstream_gates_init(ucs_gstream_gates_t *gates, volatile uint64_t *word)
{
    gates->word  = word;
    gates->count = 0;
    ucs_list_head_init(&gates->list);
}

void ucs_gstream_gates_cleanup(ucs_gstream_gates_t *gates)
{
    ucs_gstream_gate_t *gate;

    while (!ucs_list_is_empty(&gates->list)) {
        gate        = ucs_list_extract_head(&gates->list, ucs_gstream_gate_t,
                                            list);
        gate->gates = NULL;
        if (gate->holds == 0) {
            free(gate);
        }
    }
}

ucs_status_t ucs_gstream_gate_create(ucs_gstream_gates_t *gates,
                                     ucs_gstream_gate_t **gate_p)
{
    ucs_gstream_gate_t *gate = malloc(sizeof(*gate));

    if (gate == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    gate->gates = gates;
    gate->holds = 1;
    ucs_list_add_tail(&gates->list, &gate->list);
    ++gates->count;
    *gate_p = gate;
    return UCS_OK;
}

void ucs_gstream_gate_hold(ucs_gstream_gate_t *gate)
{
    ++gate->holds;
}

void ucs_gstream_gate_drop(ucs_gstream_gate_t *gate)
{
    ucs_gstream_gates_t *gates = gate->gates;
    uint64_t passed            = 0;

    if (--gate->holds > 0) {
        return;
    }
    if (gates == NULL) {
        free(gate);
        return;
    }
    while (!ucs_list_is_empty(&gates->list)) {
        gate = ucs_list_head(&gates->list, ucs_gstream_gate_t, list);
        if (gate->holds > 0) {
            break;
        }
        ucs_list_del(&gate->list);
        free(gate);
        ++passed;
    }
    if (passed > 0) {
        /* Pairs with the acquire load of the stream's wait */
        (void)__atomic_fetch_add(gates->word, passed, __ATOMIC_RELEASE);
        ucs_gstream_wake(gates->word);
    }
}

void ucs_gstream_gate_cancel(ucs_gstream_gate_t *gate)
{
    --gate->gates->count;
    ucs_list_del(&gate->list);
    free(gate);
}
