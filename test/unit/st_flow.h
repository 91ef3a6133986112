/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_flow.h - one matched pair of operations between two workers, in each of
 * the trig lane's protocols.
 */
#ifndef ST_FLOW_H_
#define ST_FLOW_H_

#include "st_pair.h"

#define FLOW_EAGER_MAX 8192

/** A protocol, and what pair has it. */
typedef struct {
    const char *name;
    size_t     length;
    int        is_ready;
    int        ahead;    /* uses of a send that need no receive */
    unsigned   writes;   /* of a use */
    const char *devices; /* settings, where they are not as usual */
    const char *chunk_max;
} proto_t;

/** All protocols. */
#define FLOW_NUM_PROTOS 10
extern const proto_t flow_protos[FLOW_NUM_PROTOS];

/** A pair with a matched send on A and receive on B. */
typedef struct {
    st_pair_t   pair;
    size_t      length;
    uint8_t     *sbuf;
    uint8_t     *rbuf; /* 64 bytes more, spoiled */
    ucp_st_op_h send;
    ucp_st_op_h recv;
} flow_t;

/** Match a send and a receive of two sides that are there. */
void flow_match(flow_t *flow, size_t length, int is_ready);

/** Make two sides, and match. Non-zero if it worked. */
int flow_init(flow_t *flow, size_t length, int is_ready);

/** The same with the settings that a protocol needs; zero also if there are too
 *  few devices for it, and then the case is skipped, in part. */
int flow_init_proto(flow_t *flow, const proto_t *proto);

/** Free both operations and sides. */
void flow_cleanup(flow_t *flow);

/** Run the body of a case between the two. */
typedef void (*flow_body_t)(flow_t *flow, st_side_t *a, st_side_t *b);
void flow_run(flow_body_t body, size_t length, int is_ready);

/** A case on "flow", whose sides are "a" and "b". */
#define FLOW_CASE(_name, _length, _is_ready) \
    static void st_body_##_name(flow_t *flow, st_side_t *a, st_side_t *b); \
    ST_CASE_CALL(_name, flow_run(st_body_##_name, _length, _is_ready)) \
    static void st_body_##_name(flow_t *flow, st_side_t *a, st_side_t *b)

/** Free the buffers alone. */
void flow_free(flow_t *flow);

/** Settings of a worker: devices, where parts of half of what is sent ahead are
 *  enough for one, and the longest write; NULL: as usual. */
void flow_set_chunks(const char *devices, const char *chunk_max);

/** Devices that a worker has. */
unsigned flow_count_devices(ucp_st_worker_h worker);

/** Assert an operation's protocol. */
void flow_check_protocol(ucp_st_op_h op, const char *name, size_t length);

/** One use, host and stream in step: the receive first, for ready sends. */
void flow_use(flow_t *flow, uint64_t seed);

/** The hosts enqueue all uses before one can run: the streams wait for a gate.
 *  All data is checked. */
void flow_run_ahead(flow_t *flow, unsigned uses);

/** What a side has counted once so many uses that went ahead are: a stream may
 *  pass a use before its completion is reaped. */
void flow_query(st_side_t *side, uint64_t eager, ucp_st_worker_attr_t *attr);

#endif
