/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_any.c - streams of tests, of the host or of a GPU's runtime.
 */
#include "st_any.h"

#include <ucs_gstream_memory.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Uses that a stream of a GPU has room for while it waits, each with functions
 * of the test before its start and behind its wait: calls found room behind 55
 * functions of the host, with CUDA 13.0 on an H200 */
#define ROOM 25

/* Gates of a program, by the place of their variable */
#define MAX_GATES 64

/* A variable, and the word that streams of GPUs wait for in its place: they
 * reach no other memory. Words stay for the life of the program. */
typedef struct {
    uint64_t          *gate;
    volatile uint64_t *word;
} gate_t;

static gate_t gates[MAX_GATES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

ucs_gstream_type_t st_any_type(void)
{
    const char *name = getenv("ST_TEST_STREAM");

    if (name == NULL) {
        return UCS_GSTREAM_TYPE_HOST;
    }
    return !strcmp(name, "hip")  ? UCS_GSTREAM_TYPE_HIP :
           !strcmp(name, "cuda") ? UCS_GSTREAM_TYPE_CUDA :
                                   UCS_GSTREAM_TYPE_HOST;
}

ucs_status_t st_any_stream(ucs_gstream_h *stream_p)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = st_any_type()
    };

    return ucs_gstream_create(&params, stream_p);
}

unsigned st_any_ahead(unsigned uses)
{
    return ((st_any_type() == UCS_GSTREAM_TYPE_HOST) || (uses < ROOM)) ? uses :
                                                                         ROOM;
}

/* The stand-in has a variable of its own. One queue is for the default stream,
 * and one for copies. */
int st_any_apart(unsigned streams)
{
    int is_cuda       = (st_any_type() == UCS_GSTREAM_TYPE_CUDA);
    const char *value = getenv("STANDIN_QUEUES");

    if (value == NULL) {
        value = getenv(is_cuda ? "CUDA_DEVICE_MAX_CONNECTIONS" :
                                 "GPU_MAX_HW_QUEUES");
    }
    return (st_any_type() == UCS_GSTREAM_TYPE_HOST) ||
           (streams + 2 <= ((value != NULL) ? strtoul(value, NULL, 0) :
                            is_cuda ? 8ul : 4ul));
}

/* The word of a gate, which is made if there is none; NULL without room. The
 * lock is held. */
static volatile uint64_t *find_word(uint64_t *gate)
{
    int i = 0;

    while ((i < MAX_GATES) && (gates[i].gate != gate) &&
           (gates[i].gate != NULL)) {
        ++i;
    }
    if (i == MAX_GATES) {
        return NULL;
    }
    if (gates[i].gate == NULL) {
        gates[i].word = ucs_gstream_word_get();
        gates[i].gate = (gates[i].word == NULL) ? NULL : gate;
    }
    return gates[i].word;
}

ucs_status_t st_any_hold(ucs_gstream_h stream, uint64_t *gate)
{
    volatile uint64_t *word = gate;

    if (ucs_gstream_type(stream) != UCS_GSTREAM_TYPE_HOST) {
        pthread_mutex_lock(&lock);
        word = find_word(gate);
        if (word != NULL) {
            __atomic_store_n(word, __atomic_load_n(gate, __ATOMIC_ACQUIRE),
                             __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&lock);
    }
    return (word == NULL) ? UCS_ERR_NO_MEMORY :
                            ucs_gstream_enqueue_wait64(stream, word, 1);
}

void st_any_open(uint64_t *gate)
{
    int i;

    pthread_mutex_lock(&lock);
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
    for (i = 0; (i < MAX_GATES) && (gates[i].gate != NULL); ++i) {
        if (gates[i].gate == gate) {
            __atomic_store_n(gates[i].word, 1, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&lock);
    ucs_gstream_wake(gate);
}
