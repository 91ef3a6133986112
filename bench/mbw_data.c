/* SPDX-License-Identifier: BSD-3-Clause */
/* mbw_data.c - content of the windows, and its check. */
#include "mbw.h"

#include <stdio.h>
#include <string.h>


/* Depends on sender, use, message and place. */
static uint8_t mbw_byte(int rank, unsigned use, size_t i)
{
    return (uint8_t)(i * 13 + (i >> 8) * 7 + (i >> 16) * 3 + use * 31 +
                     rank * 101 + 1);
}

void mbw_data_init(mbw_data_t *data, size_t max_size)
{
    int set;

    data->length = data->window * max_size;
    data->send   = bench_message_alloc(data->length, data->by_mpi);
    for (set = 0; set < MBW_NUM_SETS; ++set) {
        data->recv[set] = bench_message_alloc(data->length, data->by_mpi);
    }
}

void mbw_data_cleanup(mbw_data_t *data)
{
    int set;

    for (set = 0; set < MBW_NUM_SETS; ++set) {
        bench_message_free(data->recv[set], data->by_mpi);
    }
    bench_message_free(data->send, data->by_mpi);
}

void mbw_data_reset(mbw_data_t *data)
{
    size_t length = data->window * data->size;
    size_t i;
    int set;

    ++data->use;
    for (i = 0; i < length; ++i) {
        data->send[i] = mbw_byte(data->rank, data->use, i);
    }
    for (set = 0; set < MBW_NUM_SETS; ++set) {
        /* No byte is right */
        for (i = 0; i < length; ++i) {
            data->recv[set][i] = ~mbw_byte(data->peer, data->use, i);
        }
    }
}

static int mbw_is_wrong(const mbw_data_t *data, int set, size_t message)
{
    size_t i;

    for (i = message * data->size; i < (message + 1) * data->size; ++i) {
        if (data->recv[set][i] != mbw_byte(data->peer, data->use, i)) {
            return 1;
        }
    }
    return 0;
}

uint64_t mbw_data_check(const mbw_data_t *data, int set)
{
    uint64_t errors = 0;
    int i;

    for (i = 0; i < data->window; ++i) {
        errors += mbw_is_wrong(data, set, i);
    }
    if (errors > 0) {
        fprintf(stderr, "rank %d: %zu bytes: %llu of %d messages are wrong\n",
                data->rank, data->size, (unsigned long long)errors,
                data->window);
    }
    return errors;
}
