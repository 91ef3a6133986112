/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucs_gstream_gate.h - waits of a stream for some of many things that go on,
 * whatever their order of ending is.
 *
 * A gate is held by each thing that it is for. Gates of one place are passed in
 * the order in which they were made: a word counts those in front of which no
 * gate is held. The stream waits for that word.
 *
 * Threads: the caller's lock protects the gates of a place.
 */
#ifndef UCS_GSTREAM_GATE_H_
#define UCS_GSTREAM_GATE_H_

#include <ucs/datastruct/list.h>
#include <ucs/type/status.h>

#include <stdint.h>

/** A place for gates. */
typedef struct ucs_gstream_gates {
    volatile uint64_t *word; /**< Counts the gates that may be passed */
    uint64_t          count; /**< Gates so far: what the stream waits for behind
                                  the last one */
    ucs_list_link_t   list;  /**< @ref ucs_gstream_gate_t, oldest first */
} ucs_gstream_gates_t;

/** A gate. */
typedef struct ucs_gstream_gate {
    ucs_list_link_t     list;   /**< In the place's */
    ucs_gstream_gates_t *gates; /**< NULL: the place has ended */
    unsigned            holds;  /**< By those that it is for */
} ucs_gstream_gate_t;


/**
 * Begin a place.
 *
 * @param [out] gates The place.
 * @param [in]  word  Its word, which is 0, and the caller's.
 */
void ucs_gstream_gates_init(ucs_gstream_gates_t *gates,
                            volatile uint64_t *word);


/**
 * End a place, whose word is not touched any more. What holds a gate still has
 * to drop it.
 *
 * @param [in] gates The place.
 */
void ucs_gstream_gates_cleanup(ucs_gstream_gates_t *gates);


/**
 * Make a gate behind those that there are. The caller holds it.
 *
 * @param [in]  gates  The place.
 * @param [out] gate_p Filled on success only.
 *
 * @return UCS_OK, UCS_ERR_NO_MEMORY.
 *
 * Ownership: it goes when it is passed, or else with its last hold.
 */
ucs_status_t ucs_gstream_gate_create(ucs_gstream_gates_t *gates,
                                     ucs_gstream_gate_t **gate_p);


/**
 * Hold a gate once more.
 *
 * @param [in] gate One that is held.
 */
void ucs_gstream_gate_hold(ucs_gstream_gate_t *gate);


/**
 * Hold a gate once less: the word is counted up if gates may be passed now.
 * What was stored before is seen behind the wait of the stream.
 *
 * @param [in] gate The gate; gone on return if this was the last hold.
 */
void ucs_gstream_gate_drop(ucs_gstream_gate_t *gate);


/**
 * Take back the last gate of its place: the stream does not wait for it.
 *
 * @param [in] gate The gate, which the caller alone holds any more; gone on
 *                  return.
 */
void ucs_gstream_gate_cancel(ucs_gstream_gate_t *gate);

#endif
