/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_halves.c - operations of two sides, in exchanges or not.
 */
#include "st_halves.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>

size_t half_count(const half_t *half)
{
    return half->sends + half->recvs;
}

/* Tags of side A's sends are even, those of B's odd */
void half_init(half_t *half, st_side_t *side, int index, const shape_t *shape)
{
    int sends    = (index == ST_A) ? shape->sends : shape->recvs;
    int recvs    = (index == ST_A) ? shape->recvs : shape->sends;
    int is_ready = (index == ST_A) && shape->is_ready;
    int i;

    *half = (half_t){.side = side, .sends = sends, .recvs = recvs};
    half->sbuf = calloc(sends + 1, HALF_LEN);
    half->rbuf = calloc(recvs + 1, HALF_LEN);
    half->ops  = calloc(sends + recvs + 1, sizeof(*half->ops));
    CU_ASSERT_FATAL((half->sbuf != NULL) && (half->rbuf != NULL) &&
                    (half->ops != NULL));
    for (i = 0; i < sends; ++i) {
        half->ops[i] = (is_ready ? st_rsend : st_send)(side, half->sbuf[i],
                                                       HALF_LEN,
                                                       (2 * i) + index);
    }
    for (i = 0; i < recvs; ++i) {
        half->ops[sends + i] = st_recv(side, half->rbuf[i], HALF_LEN,
                                       (2 * i) + !index);
    }
}

void half_join(half_t *half, uint64_t flags)
{
    CU_ASSERT_EQUAL_FATAL(ucp_st_exchange_create(half->side->worker, half->ops,
                                                 half_count(half), flags,
                                                 &half->exchange), UCS_OK);
}

void half_start(half_t *half)
{
    CU_ASSERT_EQUAL((half->exchange == NULL) ?
                    ucp_st_enqueue_startall(half->side->queue, half->ops,
                                            half_count(half)) :
                    ucp_st_enqueue_exchange_start(half->side->queue,
                                                  half->exchange), UCS_OK);
}

void half_wait(half_t *half)
{
    CU_ASSERT_EQUAL((half->exchange == NULL) ?
                    ucp_st_enqueue_waitall(half->side->queue, half->ops,
                                           half_count(half)) :
                    ucp_st_enqueue_exchange_wait(half->side->queue,
                                                 half->exchange), UCS_OK);
}

void half_cleanup(half_t *half)
{
    size_t i;

    if (half->exchange != NULL) {
        CU_ASSERT_EQUAL(ucp_st_exchange_free(half->exchange), UCS_OK);
    }
    for (i = 0; (half->exchange == NULL) && (i < half_count(half)); ++i) {
        st_free(half->ops[i]);
    }
    free(half->ops);
    free(half->sbuf);
    free(half->rbuf);
}

void halves_match(half_t halves[2])
{
    size_t i;
    int k;

    for (k = 0; k < 2; ++k) {
        CU_ASSERT_EQUAL((halves[k].exchange == NULL) ?
                        ucp_st_imatchall(halves[k].ops,
                                         half_count(&halves[k])) :
                        ucp_st_exchange_imatch(halves[k].exchange), UCS_OK);
    }
    for (k = 0; k < 2; ++k) {
        for (i = 0; i < half_count(&halves[k]); ++i) {
            while (ucp_st_match_test(halves[k].ops[i]) == UCS_INPROGRESS) {
                ucp_st_worker_progress(halves[!k].side->worker);
            }
            CU_ASSERT_EQUAL(ucp_st_match_test(halves[k].ops[i]), UCS_OK);
        }
        if (halves[k].exchange != NULL) {
            CU_ASSERT_EQUAL(ucp_st_exchange_match_test(halves[k].exchange),
                            UCS_OK);
        }
    }
}

void half_fill(half_t *half, uint64_t use)
{
    int i;

    for (i = 0; i < half->sends; ++i) {
        st_fill(half->sbuf[i], HALF_LEN, (use * 1000) + i);
    }
}

void half_check(const half_t *half, uint64_t use)
{
    int i;

    for (i = 0; i < half->recvs; ++i) {
        CU_ASSERT_TRUE(st_check(half->rbuf[i], HALF_LEN, (use * 1000) + i));
    }
}

void halves_use(half_t halves[2], st_pair_t *pair, uint64_t use)
{
    half_fill(&halves[ST_A], use);
    half_fill(&halves[ST_B], use);
    half_start(&halves[ST_B]);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(pair->side[ST_B].stream), UCS_OK);
    half_start(&halves[ST_A]);
    half_wait(&halves[ST_A]);
    half_wait(&halves[ST_B]);
    st_pair_sync(pair);
    half_check(&halves[ST_A], use);
    half_check(&halves[ST_B], use);
}
