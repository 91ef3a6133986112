/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_pair.h - two st workers in one process, with a stream and a queue each,
 * that know each other: the ground on which the ucp_st cases stand.
 */
#ifndef ST_PAIR_H_
#define ST_PAIR_H_

#include <ucp_st.h>

#define ST_A 0
#define ST_B 1

/** One of the two. */
typedef struct {
    ucp_st_worker_h worker;
    ucs_gstream_h   stream;
    ucp_st_queue_h  queue;
    ucp_st_peer_h   peer; /* the other one */
    ucp_st_peer_h   self;
    ucp_context_h   context;    /* of the test; or NULL */
    ucp_worker_h    ucp_worker; /* the same */
} st_side_t;

typedef struct {
    st_side_t side[2];
} st_pair_t;

/** Longer than what any lane sends ahead of its receive, bytes. */
#define ST_LONG (128u << 10)

/** The lane that pairs are to take: ST_LANE of the environment, or trig. */
ucp_st_lane_t st_lane(void);

/** Make both sides; asserts that it works, else the case ends. Returns 1. */
int st_pair_init(st_pair_t *pair);

/** The same on UCP workers of the test that several threads may use. */
int st_pair_init_user(st_pair_t *pair, uint64_t features);

/** Free both sides; asserts that nothing is left over. */
void st_pair_cleanup(st_pair_t *pair);

/** Run the body of a case between the two. */
typedef void (*st_pair_body_t)(st_pair_t *pair, st_side_t *a, st_side_t *b);
void st_pair_run(st_pair_body_t body);

/** A case on "pair", whose sides are "a" and "b". */
#define ST_PAIR_CASE(_name) \
    static void st_body_##_name(st_pair_t *pair, st_side_t *a, st_side_t *b); \
    ST_CASE_CALL(_name, st_pair_run(st_body_##_name)) \
    static void st_body_##_name(st_pair_t *pair, st_side_t *a, st_side_t *b)

/** Make one side without peers; the same. */
int st_side_init(st_side_t *side);

/** The same on a UCP worker of the test, with these features. */
int st_side_init_user(st_side_t *side, uint64_t features,
                      ucs_thread_mode_t mode);

/** Free one side; asserts. */
void st_side_cleanup(st_side_t *side);

/** Free one side while the other makes calls, without which some transports do
 *  not deliver the goodbye; asserts. */
void st_side_leave(st_side_t *side, st_side_t *other);

/** Make a queue of the side on a stream; asserts. */
ucp_st_queue_h st_queue(st_side_t *side, ucs_gstream_h stream);

/** Make `more` the same side with a further stream and queue; asserts. */
void st_more_init(st_side_t *more, const st_side_t *side);

/** The same with a stream of the host, whatever others are. */
void st_more_init_host(st_side_t *more, const st_side_t *side);

/** Destroy both, when all has run, also if the queue is in error; asserts. */
void st_more_cleanup(st_side_t *more);

/** Make `from`'s peer for `to`; asserts. */
ucp_st_peer_h st_side_peer(st_side_t *from, st_side_t *to);

/** Make an operation; asserts. */
ucp_st_op_h st_send(st_side_t *side, void *buffer, size_t length, uint64_t tag);
ucp_st_op_h st_rsend(st_side_t *side, void *buffer, size_t length,
                     uint64_t tag);
ucp_st_op_h st_recv(st_side_t *side, void *buffer, size_t length, uint64_t tag);

/** As st_send() and st_recv(), with all parameters given. */
ucp_st_op_h st_op(st_side_t *side, int is_send,
                  const ucp_st_op_params_t *params);

/** Give both to match and progress both sides until both have ended; the two
 *  outcomes. */
void st_match2(ucp_st_op_h op_a, ucp_st_op_h op_b, ucs_status_t *status_a,
               ucs_status_t *status_b);

/** As st_match2(), and assert that both matched. */
void st_match_ok(ucp_st_op_h op_a, ucp_st_op_h op_b);

/** Progress until `op` has left the state of being matched; its outcome. */
ucs_status_t st_match_end(ucp_st_op_h op);

/** Progress both sides until a start of `op` gives `status`; non-zero if so. */
int st_start_becomes(st_pair_t *pair, st_side_t *side, ucp_st_op_h op,
                     ucs_status_t status);

/** Start or wait, asserting success. */
void st_start(st_side_t *side, ucp_st_op_h op);
void st_wait(st_side_t *side, ucp_st_op_h op);

/** Start and wait once. */
void st_use(st_side_t *side, ucp_st_op_h op);

/** Host wait, asserting success. */
void st_sync(st_side_t *side);

/** Host waits of both sides. */
void st_pair_sync(st_pair_t *pair);

/** Non-zero once the operation has failed, or its peer has freed the other half
 *  and this side knows. */
int st_op_is_ended(ucp_st_op_h op);

/** Free both halves, asserting success. */
void st_free2(ucp_st_op_h op_a, ucp_st_op_h op_b);

/** What a side has counted. */
ucp_st_stats_t st_stats(const st_side_t *side);

/** Progress both sides until neither holds an entry of the NIC or a part of an
 *  operation: all were freed, and what they left behind is gone. */
void st_drain(st_pair_t *pair);

/** Free, asserting success. */
void st_free(ucp_st_op_h op);

/** Bytes of a buffer that nobody has written to. */
#define ST_SPOILED 0xee

/** Non-zero if nothing else is there. */
int st_is_spoiled(const void *buffer, size_t length);

/** Bytes that differ for every seed. */
void st_fill(void *buffer, size_t length, uint64_t seed);

/** Non-zero if the buffer holds them. */
int st_check(const void *buffer, size_t length, uint64_t seed);

#endif
