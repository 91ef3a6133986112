/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_far_life.c - the life of an st worker and of one in another process.
 */
#include "st_far_life.h"
#include "st_far.h"
#include "st_life.h"
#include "st_pair.h"

#include <CUnit/CUnit.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LENGTH (1ul << 20) /* a file of its own */
#define USES   3

/** One of the two processes. */
typedef struct {
    const st_far_t  *far; /* the other one */
    int             is_send;
    ucs_gstream_h   stream;
    ucp_st_worker_h worker;
    ucp_st_queue_h  queue;
    ucp_st_peer_h   peer;
    ucp_st_op_h     op;
    void            *buffer;
} life_t;

/* Its pid is 0 where there is none */
static st_far_t other;


/* The other process does not come where it has failed. That it has not
 * connected nobody would find out on the way. */
static ucs_status_t life_connect(life_t *life)
{
    ucs_status_t status = st_far_connect(life->far, life->worker, &life->peer);

    if ((status == UCS_OK) && !st_far_meet(life->far)) {
        return UCS_ERR_CANCELED;
    }
    return status;
}

static ucs_status_t life_match(life_t *life)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG,
        .length     = LENGTH,
        .peer       = life->peer,
        .tag        = 1
    };
    ucs_status_t status;

    status = ucp_st_mem_alloc(LENGTH, &life->buffer);
    if (status != UCS_OK) {
        return status;
    }
    params.buffer = life->buffer;
    status = (life->is_send ? ucp_st_send_init : ucp_st_recv_init)(
            life->worker, &params, &life->op);
    return (status == UCS_OK) ? ucp_st_match(life->op) : status;
}

static ucs_status_t life_use(life_t *life, unsigned use)
{
    ucs_status_t status;

    if (life->is_send) {
        st_fill(life->buffer, LENGTH, use);
    }
    status = ucp_st_enqueue_start(life->queue, life->op);
    if (status == UCS_OK) {
        status = ucp_st_enqueue_wait(life->queue, life->op);
    }
    if (status == UCS_OK) {
        status = ucp_st_queue_wait(life->queue, NULL);
    }
    CU_ASSERT_TRUE((status != UCS_OK) || st_check(life->buffer, LENGTH, use));
    return status;
}

/* Where the wait could not be enqueued, it is now */
static void life_free_op(life_t *life)
{
    ucs_status_t status = ucp_st_op_free(life->op);

    if (status == UCS_ERR_BUSY) {
        (void)ucp_st_enqueue_wait(life->queue, life->op);
    }
    while (status == UCS_ERR_BUSY) {
        (void)ucp_st_worker_progress(life->worker);
        (void)sched_yield();
        status = ucp_st_op_free(life->op);
    }
    CU_ASSERT_EQUAL(status, UCS_OK);
}

/* The other process is not to wait for what does not come */
static void life_close(life_t *life)
{
    st_far_part(life->far);
    if (life->op != NULL) {
        life_free_op(life);
    }
    if (life->queue != NULL) {
        (void)ucp_st_queue_wait(life->queue, NULL);
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(life->queue), UCS_OK);
    }
    if (life->worker != NULL) {
        CU_ASSERT_EQUAL(ucp_st_worker_destroy(life->worker), UCS_OK);
    }
    if (life->buffer != NULL) {
        CU_ASSERT_EQUAL(ucp_st_mem_free(life->buffer), UCS_OK);
    }
    if (life->stream != NULL) {
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(life->stream), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_destroy(life->stream), UCS_OK);
    }
    st_far_rejoin(life->far);
}

static ucs_status_t life_run(const st_far_t *far, int is_send)
{
    life_t life         = {.far = far, .is_send = is_send};
    ucs_status_t status = st_life_open(&life.stream, &life.worker,
                                       &life.queue);
    unsigned i;

    if (status == UCS_OK) {
        status = life_connect(&life);
    }
    if (status == UCS_OK) {
        status = life_match(&life);
    }
    for (i = 0; (i < USES) && (status == UCS_OK); ++i) {
        status = life_use(&life, i);
    }
    life_close(&life);
    return status;
}

ucs_status_t st_far_life(int is_send)
{
    if (other.pid == 0) {
        st_far_start(&other, is_send ? "recv" : "send");
    }
    CU_ASSERT_TRUE_FATAL(st_far_meet(&other));
    return life_run(&other, is_send);
}

void st_far_life_end(void)
{
    close(other.fd);
    st_far_end(&other);
    other.pid = 0;
}

void st_far_life_other(void)
{
    int is_send = !strcmp(st_far_task(&other), "send");
    ucs_status_t status;

    while (st_far_meet(&other)) {
        status = life_run(&other, is_send);
        if ((status != UCS_OK) && !st_life_is_fair(status)) {
            printf("the other process: %s\n", ucs_status_string(status));
            CU_FAIL("not a fair error");
        }
    }
}
