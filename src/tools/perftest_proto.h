/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_proto.h - what the client and the server of ucx_st_perftest say to
 * each other over TCP. Numbers are in network byte order.
 *
 *     client                                server
 *     HELLO version, shared options  --->
 *                                    <---   ACCEPT version, or REFUSE text
 *     ADDRESS                        <-->   ADDRESS
 *     KEYS                           <-->   KEYS            (one-sided tests)
 *     STEP                           <-->   STEP            (again and again)
 *     COUNTS                         <-->   COUNTS
 *
 * REFUSE may come from either side at any time, in place of what is due.
 */
#ifndef PERFTEST_PROTO_H_
#define PERFTEST_PROTO_H_

#include <assert.h>
#include <stdint.h>

#define PERFTEST_PROTO_MAGIC   0x55735074u /* "UsPt" */
#define PERFTEST_PROTO_VERSION 3
/* Longest content; an address is some hundred bytes */
#define PERFTEST_PROTO_MAX     (1u << 20)

typedef enum {
    PERFTEST_MSG_HELLO,
    PERFTEST_MSG_ACCEPT,
    PERFTEST_MSG_REFUSE, /* Text */
    PERFTEST_MSG_ADDRESS,
    PERFTEST_MSG_STEP,
    PERFTEST_MSG_COUNTS, /* Text */
    PERFTEST_MSG_KEYS,   /* Of a run: each behind its length */
    PERFTEST_MSG_LAST
} perftest_msg_type_t;


/* Before each message. */
typedef struct perftest_msg_hdr {
    uint32_t magic;
    uint32_t type;
    uint32_t length; /* Of what follows */
} __attribute__((packed)) perftest_msg_hdr_t;


/* HELLO and ACCEPT; in all versions the same. The options of HELLO follow, as
 * lines "NAME=VALUE". */
typedef struct perftest_msg_hello {
    uint32_t proto;
    char     version[28]; /* Of the program, with a final zero */
} __attribute__((packed)) perftest_msg_hello_t;


/* ADDRESS. Both addresses follow. */
typedef struct perftest_msg_address {
    uint32_t ucp_length;
    uint32_t st_length; /* 0 without ucp_st */
} __attribute__((packed)) perftest_msg_address_t;


/* STEP: this side has come so far. */
typedef struct perftest_msg_step {
    uint32_t number;     /* Of the step; both count */
    uint32_t zero;
    uint64_t elapsed_ns; /* What this side has measured */
    uint64_t errors;     /* Wrong messages that this side has found in all */
} __attribute__((packed)) perftest_msg_step_t;

static_assert(sizeof(perftest_msg_hdr_t) == 12, "wire format");
static_assert(sizeof(perftest_msg_hello_t) == 32, "wire format");
static_assert(sizeof(perftest_msg_address_t) == 8, "wire format");
static_assert(sizeof(perftest_msg_step_t) == 24, "wire format");

#endif
