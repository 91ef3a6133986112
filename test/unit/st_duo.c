/* SPDX-License-Identifier: BSD-3-Clause */
/* st_duo.c - a send and a receive that kernels of the application start. */
#include "st_duo.h"

void duo_match(duo_t *duo)
{
    st_side_t *side = duo->gpu->side;

    duo->ops[ST_A] = (duo->is_ready ? st_rsend : st_send)(
            &side[ST_A], duo->places[ST_A].buffer, DUO_LENGTH, 1);
    duo->ops[ST_B] = st_recv(&side[ST_B], duo->places[ST_B].buffer, DUO_LENGTH,
                             1);
    st_match_ok(duo->ops[ST_A], duo->ops[ST_B]);
    duo->handles[ST_A] = st_kernel_handle(duo->ops[ST_A]);
    if (!duo->is_ahead) { /* its receive is for no kernel */
        duo->handles[ST_B] = st_kernel_handle(duo->ops[ST_B]);
    }
}

void duo_init_as(duo_t *duo, gpu_t *gpu)
{
    int i;

    duo->gpu = gpu;
    gpu_set_device(gpu, 0);
    for (i = 0; i < 2; ++i) {
        st_kernel_init(&duo->kernel[i], gpu->rt, &gpu->side[i]);
        gpu_place_get(gpu, &duo->places[i], duo->at[i], DUO_LENGTH, 0);
    }
    duo_match(duo);
}

void duo_init(duo_t *duo, gpu_t *gpu)
{
    duo->at[ST_A]  = 0;
    duo->at[ST_B]  = 0;
    duo->is_ready  = 0;
    duo->is_ahead  = 0;
    duo_init_as(duo, gpu);
}

void duo_free(duo_t *duo)
{
    st_free2(duo->ops[ST_A], duo->ops[ST_B]);
    st_drain(&duo->gpu->pair);
}

void duo_end(duo_t *duo)
{
    int i;

    for (i = 0; i < 2; ++i) {
        st_kernel_cleanup(&duo->kernel[i]);
        gpu_place_put(duo->gpu, &duo->places[i]);
    }
}

void duo_cleanup(duo_t *duo)
{
    duo_free(duo);
    duo_end(duo);
}

void duo_post(duo_t *duo, int side, uint64_t uses)
{
    CU_ASSERT_EQUAL(ucp_st_op_post_ahead(duo->ops[side],
                                         duo->kernel[side].queue, uses),
                    UCS_OK);
}

test_kernel_op_t duo_does(const duo_t *duo, int side, unsigned what)
{
    return (test_kernel_op_t){
        .op     = duo->handles[side],
        .what   = what,
        .buffer = RT_U64(duo->places[side].buffer)
    };
}

void duo_launch(duo_t *duo, int side, unsigned what, uint64_t rounds,
                       unsigned threads)
{
    test_kernel_op_t args = duo_does(duo, side, what);

    args.rounds = rounds;
    st_kernel_launch(&duo->kernel[side], args, threads);
}

test_kernel_result_t duo_run(duo_t *duo, int side, unsigned what)
{
    return st_kernel_run(&duo->kernel[side], duo_does(duo, side, what));
}

void duo_check(duo_t *duo, int side, uint64_t rounds)
{
    test_kernel_result_t result = st_kernel_end(&duo->kernel[side]);

    CU_ASSERT_EQUAL(result.start, UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(result.wait, UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(result.rounds, rounds);
    CU_ASSERT_EQUAL(ucp_st_op_test(duo->ops[side]), UCS_OK);
}

void duo_enqueue(duo_t *duo, int side)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(duo->kernel[side].queue,
                                         duo->ops[side]), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(duo->kernel[side].queue,
                                        duo->ops[side]), UCS_OK);
}

void duo_check_enqueued(duo_t *duo, int side)
{
    CU_ASSERT_EQUAL(ucp_st_queue_wait(duo->kernel[side].queue, NULL), UCS_OK);
}
