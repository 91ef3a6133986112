/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_place.h - a buffer of a test that fills and checks it on the host. With
 * streams of a GPU, and ST_TEST_MEMORY
 *
 * - `device`, it has another one in device 0, which is sent from and received
 *   to; the stream copies between the two;
 * - `shared`, it is of ucp_st_mem_alloc();
 * - `mixed`, it is one or the other in turns.
 */
#ifndef ST_PLACE_H_
#define ST_PLACE_H_

#include <ucs_gstream.h>

#include <stddef.h>

/** A buffer. */
typedef struct st_place {
    uint8_t *host;
    void    *device; /**< NULL: there is none */
    size_t  length;
    int     is_shared; /**< `host` is of ucp_st_mem_alloc() */
} st_place_t;

/** Whether ST_TEST_MEMORY says where buffers are. */
int st_place_is_set(void);

/** Get one; UCS_ERR_NO_MEMORY. What is on the host is not touched. */
ucs_status_t st_place_get(st_place_t *place, size_t length);

/** Give it back; or nothing, if it is all 0. */
void st_place_put(st_place_t *place);

/** What an operation is made with. */
static inline void *st_place_buffer(const st_place_t *place)
{
    return (place->device != NULL) ? place->device : place->host;
}

/** Copy what is on the host to the device now, or back. */
ucs_status_t st_place_fill(const st_place_t *place);
ucs_status_t st_place_empty(const st_place_t *place);

/** Have a stream copy what is on the host to the device, or back; nothing
 *  without a device. */
ucs_status_t st_place_store(const st_place_t *place, ucs_gstream_h stream);
ucs_status_t st_place_load(const st_place_t *place, ucs_gstream_h stream);

#endif
