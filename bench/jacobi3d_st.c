/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jacobi3d_st.c - faces of blocks in stream order. Each block's messages are an
 * exchange of MPIX, or single requests.
 *
 * All blocks of a rank are on one stream, and the host enqueues all iterations.
 * With S(b,i) and W(b,i) the start and the wait of block b in iteration i the
 * stream runs
 *
 *     for each i:
 *         for each b:  pack  S(b,i)
 *         for each b:  W(b,i)  compute
 *
 * So a rank has started all its blocks before it waits for one of them:
 * messages between its own blocks go as others do, and exchanges may be
 * coupled.
 *
 * Ready sends are those of faces_st.c, with its proof: each block's receives
 * are started an iteration ahead, into two sets of requests and buffers.
 */
#include "jacobi3d.h"

#include <stdlib.h>
#include <string.h>


/* Enqueues the start of a block's iteration, or the wait for it. */
typedef void (*j3_enqueue_t)(j3_block_t *block, int iter);


/* Of a message: its set, the block of the rank that sends it, from which side.
 */
static int j3_st_tag(const j3_app_t *app, int set, int block, int side)
{
    return ((block % app->num_blocks) * J3_SIDES + side) * J3_SETS + set;
}

/* The neighbour sends from its opposite side what comes at this one. */
static void j3_st_init_side(j3_side_t *side, int number, int set,
                            bench_send_init_t send_init, MPI_Request *requests)
{
    const j3_app_t *app = side->block->app;
    const int rank      = side->neighbour / app->num_blocks;
    const int count     = (int)(side->length / sizeof(double));

    bench_check(MPI_Recv_init(side->faces[set].in, count, MPI_DOUBLE, rank,
                              j3_st_tag(app, set, side->neighbour, number ^ 1),
                              MPI_COMM_WORLD, &requests[0]), "MPI_Recv_init");
    bench_check(send_init(side->out, count, MPI_DOUBLE, rank,
                          j3_st_tag(app, set, side->block->index, number),
                          MPI_COMM_WORLD,
                          &requests[side->block->num_messages]), "send init");
}

static void j3_st_init_block(j3_block_t *block, bench_send_init_t send_init)
{
    int number, set, n;

    block->num_messages = 0;
    for (number = 0; number < J3_SIDES; ++number) {
        block->num_messages += (block->sides[number].neighbour >= 0);
    }
    for (set = 0; set < (int)block->app->num_sets; ++set) {
        n                 = 0;
        block->all[set]   = MPI_REQUEST_NULL;
        block->sends[set] = MPI_REQUEST_NULL;
        for (number = 0; number < J3_SIDES; ++number) {
            if (block->sides[number].neighbour >= 0) {
                j3_st_init_side(&block->sides[number], number, set, send_init,
                                &block->requests[set][n++]);
            }
        }
    }
}

static void j3_st_init_common(j3_app_t *app, bench_send_init_t send_init)
{
    int i;

    bench_check(MPIX_Host_stream_create(&app->stream),
                "MPIX_Host_stream_create");
    bench_check(MPIX_Queue_init(MPIX_QUEUE_HOST, app->stream, &app->queue),
                "MPIX_Queue_init");
    for (i = 0; i < app->num_blocks; ++i) {
        j3_st_init_block(&app->blocks[i], send_init);
    }
}

/* Matches requests of all blocks in one call, as messages to oneself need both
 * halves there. 'get' copies a block's to an array and returns how many. */
static void j3_st_match(j3_app_t *app,
                        int (*get)(j3_block_t *block, MPI_Request *requests))
{
    MPI_Request *requests = bench_alloc((size_t)app->num_blocks * 2 * J3_SIDES *
                                        sizeof(*requests));
    int count             = 0;
    int i;

    for (i = 0; i < app->num_blocks; ++i) {
        count += get(&app->blocks[i], &requests[count]);
    }
    bench_matchall(count, requests);
    free(requests);
}

static int j3_st_get(j3_block_t *block, MPI_Request *requests)
{
    bench_exchange_init(2 * block->num_messages, block->requests[0],
                        &block->all[0]);
    requests[0] = block->all[0];
    return 1;
}

static int j3_st_ready_get(j3_block_t *block, MPI_Request *requests)
{
    const int count = block->num_messages;
    int set;

    for (set = 0; set < J3_SETS; ++set) {
        bench_exchange_init(count, block->requests[set], &block->all[set]);
        bench_exchange_init(count, &block->requests[set][count],
                            &block->sends[set]);
        requests[2 * set]     = block->all[set];
        requests[2 * set + 1] = block->sends[set];
    }
    return 2 * J3_SETS;
}

static int j3_st_single_get(j3_block_t *block, MPI_Request *requests)
{
    memcpy(requests, block->requests[0],
           2 * block->num_messages * sizeof(*requests));
    return 2 * block->num_messages;
}

static void j3_st_init(j3_app_t *app)
{
    j3_st_init_common(app, MPI_Send_init);
    j3_st_match(app, j3_st_get);
}

static void j3_st_ready_init(j3_app_t *app)
{
    j3_st_init_common(app, MPI_Rsend_init);
    j3_st_match(app, j3_st_ready_get);
}

static void j3_st_single_init(j3_app_t *app)
{
    j3_st_init_common(app, MPI_Send_init);
    j3_st_match(app, j3_st_single_get);
}

static void j3_st_launch(j3_block_t *block, MPIX_Host_func kernel)
{
    bench_check(MPIX_Host_stream_launch(block->app->stream, kernel, block),
                "MPIX_Host_stream_launch");
}

static void j3_st_synchronize(j3_app_t *app)
{
    bench_check(MPIX_Host_stream_synchronize(app->stream),
                "MPIX_Host_stream_synchronize");
}

static void j3_st_start(j3_block_t *block, int iter)
{
    (void)iter;
    bench_startall(block->app->queue, 1, block->all);
}

static void j3_st_wait(j3_block_t *block, int iter)
{
    (void)iter;
    bench_waitall(block->app->queue, 1, block->all);
}

static void j3_st_single_start(j3_block_t *block, int iter)
{
    (void)iter;
    bench_startall(block->app->queue, 2 * block->num_messages,
                   block->requests[0]);
}

static void j3_st_single_wait(j3_block_t *block, int iter)
{
    (void)iter;
    bench_waitall(block->app->queue, 2 * block->num_messages,
                  block->requests[0]);
}

/* The last iteration starts no receives, so that every start has its message.
 */
static void j3_st_ready_start(j3_block_t *block, int iter)
{
    if (iter + 1 < block->app->iters) {
        bench_startall(block->app->queue, 1, &block->all[(iter + 1) % J3_SETS]);
    }
    bench_startall(block->app->queue, 1, &block->sends[iter % J3_SETS]);
}

static void j3_st_ready_wait(j3_block_t *block, int iter)
{
    bench_waitall(block->app->queue, 1, &block->all[iter % J3_SETS]);
    bench_waitall(block->app->queue, 1, &block->sends[iter % J3_SETS]);
}

static void j3_st_prepare(j3_app_t *app)
{
    (void)app;
}

static void j3_st_ready_prepare(j3_app_t *app)
{
    int i;

    for (i = 0; i < app->num_blocks; ++i) {
        bench_startall(app->queue, 1, &app->blocks[i].all[0]);
    }
    j3_st_synchronize(app);
}

static void j3_st_run_by(j3_app_t *app, j3_enqueue_t start, j3_enqueue_t wait)
{
    int iter, i;

    for (iter = 0; iter < app->iters; ++iter) {
        for (i = 0; i < app->num_blocks; ++i) {
            j3_st_launch(&app->blocks[i], j3_kernel_pack);
            start(&app->blocks[i], iter);
            app->messages += app->blocks[i].num_messages;
        }
        for (i = 0; i < app->num_blocks; ++i) {
            wait(&app->blocks[i], iter);
            j3_st_launch(&app->blocks[i], j3_kernel_compute);
        }
    }
    bench_check(MPIX_Queue_wait(app->queue), "MPIX_Queue_wait");
    j3_st_synchronize(app);
}

static void j3_st_run(j3_app_t *app)
{
    j3_st_run_by(app, j3_st_start, j3_st_wait);
}

static void j3_st_ready_run(j3_app_t *app)
{
    j3_st_run_by(app, j3_st_ready_start, j3_st_ready_wait);
}

static void j3_st_single_run(j3_app_t *app)
{
    j3_st_run_by(app, j3_st_single_start, j3_st_single_wait);
}

/* Members are the application's again once their exchange is freed. */
static void j3_st_free_block(j3_block_t *block)
{
    const int num_sets = (int)block->app->num_sets;
    int set;

    bench_freeall(num_sets, block->all);
    bench_freeall(num_sets, block->sends);
    for (set = 0; set < num_sets; ++set) {
        bench_freeall(2 * block->num_messages, block->requests[set]);
    }
}

void j3_st_cleanup(j3_app_t *app)
{
    int i;

    for (i = 0; i < app->num_blocks; ++i) {
        j3_st_free_block(&app->blocks[i]);
    }
    bench_check(MPIX_Queue_free(&app->queue), "MPIX_Queue_free");
    bench_check(MPIX_Host_stream_free(&app->stream), "MPIX_Host_stream_free");
}

const j3_st_t j3_st = {
    .num_sets = 1,
    .init     = j3_st_init,
    .prepare  = j3_st_prepare,
    .run      = j3_st_run
};

const j3_st_t j3_st_ready = {
    .num_sets = J3_SETS,
    .init     = j3_st_ready_init,
    .prepare  = j3_st_ready_prepare,
    .run      = j3_st_ready_run
};

const j3_st_t j3_st_single = {
    .num_sets = 1,
    .init     = j3_st_single_init,
    .prepare  = j3_st_prepare,
    .run      = j3_st_single_run
};
