/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg_util.h - what the suites of ucp_st_msg.h share: messages from PE 0 to the
 * last PE, and a function that notes the metadata it is called for.
 */
#ifndef MSG_UTIL_H_
#define MSG_UTIL_H_

#include "st_pe.h"

#include <ucp_st_msg.h>

/** The number of the sender. */
#define MSG_PE 5

/** A length that UCP sends when it is received, bytes. */
#define MSG_LONG (1 << 20)

/** Lengths that are worth a test. */
#define MSG_LENGTHS 6
extern const size_t msg_lengths[MSG_LENGTHS];

/** A header: bytes and their number. */
#define MSG_HEADER(...) (&(const ucp_st_msg_header_t){__VA_ARGS__})

/** Have all arrive that the PEs have sent before: a message goes behind it on
 *  each endpoint. Not from a callback. */
void settle(st_pes_t *pes);

/** One message, with its buffers. */
typedef struct {
    st_pes_t          *pes;
    size_t            length;
    uint8_t           *sbuf;
    uint8_t           *rbuf;
    ucp_st_msg_meta_t meta;
    ucs_status_t      sent;
    said_t            said; /* Of the send */
} one_t;

/** The context that receives it. */
ucp_st_channel_ctx_h one_receiver(const one_t *one);

/** Begin to send it. Asserts. */
void one_send(one_t *one, st_pes_t *pes, size_t length, uint64_t seed);

/** The same, to a function of the receiver's. Asserts. */
void one_send_post(one_t *one, st_pes_t *pes, const ucp_st_msg_header_t *header,
                   size_t length, uint64_t seed);

/** Receive it; its send ends, too. Asserts. */
void one_recv(one_t *one, uint64_t seed);

/** The same, where the receive has begun with this status. Asserts. */
void one_received(one_t *one, ucs_status_t status, said_t *said, size_t got,
                  uint64_t seed);

void one_free(one_t *one);

#define INBOX_MAX 64

/** What a receiver's function is called for. */
typedef struct {
    ucp_st_channel_ctx_h ctx;
    unsigned             count;
    int                  depth;
    unsigned             stop; /* Take itself away at so many calls */
    ucp_st_msg_meta_t    meta[INBOX_MAX];
    size_t               length[INBOX_MAX];
    uint8_t              header[INBOX_MAX][UCP_ST_MSG_HEADER_MAX];
} inbox_t;

/** For the last PE; to be freed by free(). */
inbox_t *inbox_new(st_pes_t *pes);

/** Set the function. Asserts. */
void inbox_set(inbox_t *inbox);

#endif
