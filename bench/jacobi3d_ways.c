/* SPDX-License-Identifier: BSD-3-Clause */
/* jacobi3d_ways.c - faces by channels, with metadata first, and by MPI from and
 * to staging buffers, as of a host whose GPU has the faces. */
#include "jacobi3d.h"

#include <stdlib.h>
#include <string.h>


void j3_must(ucs_status_t status, const char *what)
{
    if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        fprintf(stderr, "rank %d: %s: %s\n", bench_rank(), what,
                ucs_status_string(status));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

static unsigned way_progress(j3_app_t *app)
{
    return ucp_worker_progress(app->worker);
}

/* All operations of blocks; status is also that which calls return */
static void way_done(void *arg, ucs_status_t status, size_t length)
{
    (void)length;
    j3_must(status, "a face");
    if (status != UCS_INPROGRESS) {
        j3_block_done(arg);
    }
}

static void way_channel_send(j3_side_t *side)
{
    const ucp_st_channel_msg_t msg = {
        .buffer = side->out,
        .length = side->length,
        .cb     = way_done,
        .arg    = side->block
    };

    way_done(side->block, ucp_st_channel_send(side->channel, &msg), 0);
}

static void way_channel_recv(j3_side_t *side)
{
    const ucp_st_channel_msg_t msg = {
        .buffer = side->faces[side->block->iteration % 2].in,
        .length = side->length,
        .cb     = way_done,
        .arg    = side->block
    };

    way_done(side->block, ucp_st_channel_recv(side->channel, &msg, NULL), 0);
}

const j3_way_t j3_channel = {
    .send     = way_channel_send,
    .recv     = way_channel_recv,
    .progress = way_progress
};

static int way_side_number(const j3_side_t *side)
{
    return (int)(side - side->block->sides);
}

static void way_msg_send(j3_side_t *side)
{
    j3_app_t *app                    = side->block->app;
    const j3_header_t place          = {
        .block  = (uint32_t)side->neighbour,
        .side   = (uint16_t)(way_side_number(side) ^ 1),
        .parity = (uint16_t)(side->block->iteration % 2)
    };
    const ucp_st_msg_header_t header = {
        .data   = &place,
        .length = sizeof(place)
    };
    const ucp_st_channel_msg_t msg   = {
        .buffer = side->out,
        .length = side->length,
        .cb     = way_done,
        .arg    = side->block
    };

    way_done(side->block,
             ucp_st_msg_send_post(app->ctx,
                                  app->eps[side->neighbour / app->num_blocks],
                                  (uint64_t)app->rank, &header, &msg), 0);
}

/* The receive begins once metadata has come */
static void way_msg_recv(j3_side_t *side)
{
    j3_face_t *face = &side->faces[side->block->iteration % 2];

    if (face->is_here) {
        face->is_here = 0;
        j3_block_done(side->block);
    } else {
        face->is_waited = 1;
    }
}

const j3_way_t j3_metadata = {
    .send     = way_msg_send,
    .recv     = way_msg_recv,
    .progress = way_progress
};

/* Of a side: where its requests are, a receive and a send */
static MPI_Request *way_staged(const j3_side_t *side)
{
    const j3_block_t *block = side->block;

    return &block->app->staged[2 * ((block - block->app->blocks) * J3_SIDES +
                                    way_side_number(side))];
}

/* Tag: the block that sends, of its rank, and from which side */
static int way_staged_tag(const j3_side_t *side, int block, int number)
{
    return (block % side->block->app->num_blocks) * J3_SIDES + number;
}

static void way_staged_send(j3_side_t *side)
{
    const int tag = way_staged_tag(side, side->block->index,
                                   way_side_number(side));

    memcpy(side->stage[1], side->out, side->length);
    bench_check(MPI_Isend(side->stage[1], (int)side->length, MPI_BYTE,
                          side->neighbour / side->block->app->num_blocks, tag,
                          MPI_COMM_WORLD, &way_staged(side)[1]), "MPI_Isend");
}

static void way_staged_recv(j3_side_t *side)
{
    const int tag = way_staged_tag(side, side->neighbour,
                                   way_side_number(side) ^ 1);

    bench_check(MPI_Irecv(side->stage[0], (int)side->length, MPI_BYTE,
                          side->neighbour / side->block->app->num_blocks, tag,
                          MPI_COMM_WORLD, &way_staged(side)[0]), "MPI_Irecv");
}

static unsigned way_staged_progress(j3_app_t *app)
{
    int count = 0;
    j3_side_t *side;
    int i, index;

    bench_check(MPI_Testsome(2 * app->num_blocks * J3_SIDES, app->staged,
                             &count, app->finished, MPI_STATUSES_IGNORE),
                "MPI_Testsome");
    for (i = 0; i < count; ++i) { /* MPI_UNDEFINED is below 0 */
        index = app->finished[i];
        side  = &app->blocks[index / 2 / J3_SIDES].sides[index / 2 % J3_SIDES];
        if (index % 2 == 0) {
            memcpy(side->faces[side->block->iteration % J3_SETS].in,
                   side->stage[0], side->length);
        }
        j3_block_done(side->block);
    }
    return (count > 0) ? (unsigned)count : 0;
}

const j3_way_t j3_staging = {
    .send     = way_staged_send,
    .recv     = way_staged_recv,
    .progress = way_staged_progress
};

static void way_face_received(void *arg, ucs_status_t status, size_t length)
{
    j3_face_t *face = arg;

    (void)length;
    j3_must(status, "a face that metadata tells of");
    if (face->is_waited) {
        face->is_waited = 0;
        j3_block_done(face->block);
    } else {
        face->is_here = 1;
    }
}

/* A neighbour is one iteration ahead at most, as it needs this block's face for
 * the next one: the memory for its face is free. */
static void way_post(void *arg, const ucp_st_msg_meta_t *meta,
                     const void *header, size_t header_length)
{
    j3_app_t *app     = arg;
    j3_header_t place = {0};
    ucp_st_channel_msg_t msg;
    ucs_status_t status;
    j3_face_t *face;

    memcpy(&place, header, header_length);
    face   = &app->blocks[place.block - app->first_block]
                      .sides[place.side]
                      .faces[place.parity];
    msg    = (ucp_st_channel_msg_t){
        .buffer = face->in,
        .length = meta->length,
        .cb     = way_face_received,
        .arg    = face
    };
    status = ucp_st_msg_recv(app->ctx, meta, &msg, NULL, NULL);
    if (status != UCS_INPROGRESS) {
        way_face_received(face, status, meta->length);
    }
}

/* Every rank's address, of one length */
static char *way_gather_addresses(j3_app_t *app, size_t *length_p)
{
    unsigned long length, mine;
    ucp_address_t *address;
    size_t size;
    char *all;

    j3_must(ucp_worker_get_address(app->worker, &address, &size),
            "ucp_worker_get_address");
    mine = size;
    bench_check(MPI_Allreduce(&mine, &length, 1, MPI_UNSIGNED_LONG, MPI_MAX,
                              MPI_COMM_WORLD), "MPI_Allreduce");
    all = bench_alloc(length * app->num_ranks);
    memcpy(all + length * app->rank, address, size);
    ucp_worker_release_address(app->worker, address);
    bench_check(MPI_Allgather(MPI_IN_PLACE, 0, MPI_CHAR, all, (int)length,
                              MPI_CHAR, MPI_COMM_WORLD), "MPI_Allgather");
    *length_p = length;
    return all;
}

static void way_open_ucp(j3_app_t *app)
{
    const ucp_params_t params               = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG
    };
    const ucp_worker_params_t worker_params = {.field_mask = 0};
    ucp_ep_params_t ep_params               = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
    };
    size_t length;
    char *all;
    int i;

    j3_must(ucp_init(&params, NULL, &app->context), "ucp_init");
    j3_must(ucp_worker_create(app->context, &worker_params, &app->worker),
            "ucp_worker_create");
    all      = way_gather_addresses(app, &length);
    app->eps = bench_alloc(app->num_ranks * sizeof(*app->eps));
    for (i = 0; i < app->num_ranks; ++i) {
        ep_params.address = (const ucp_address_t*)(all + length * i);
        j3_must(ucp_ep_create(app->worker, &ep_params, &app->eps[i]),
                "ucp_ep_create");
    }
    free(all);
}

/* The lower block of a channel names it, and has end 1 */
static void way_open_channel(j3_side_t *side)
{
    j3_app_t *app                        = side->block->app;
    int number                           = way_side_number(side);
    int first                            = (number % 2) ? side->block->index :
                                                          side->neighbour;
    const ucp_st_channel_params_t params = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_EP |
                      UCP_ST_CHANNEL_PARAM_FIELD_ID |
                      UCP_ST_CHANNEL_PARAM_FIELD_END,
        .ep         = app->eps[side->neighbour / app->num_blocks],
        .id         = (uint64_t)first * J3_DIMS + number / 2,
        .end        = (unsigned)number % 2
    };

    j3_must(ucp_st_channel_create(app->ctx, &params, &side->channel),
            "ucp_st_channel_create");
}

void j3_ways_open(j3_app_t *app)
{
    ucp_st_channel_ctx_params_t params = {
        .field_mask = UCP_ST_CHANNEL_CTX_PARAM_FIELD_UCP_WORKER
    };
    const int num_staged = 2 * app->num_blocks * J3_SIDES;
    int i;

    app->staged   = bench_alloc(num_staged * sizeof(*app->staged));
    app->finished = bench_alloc(num_staged * sizeof(*app->finished));
    for (i = 0; i < num_staged; ++i) {
        app->staged[i] = MPI_REQUEST_NULL;
    }
    way_open_ucp(app);
    params.ucp_worker = app->worker;
    j3_must(ucp_st_channel_ctx_create(&params, &app->ctx),
            "ucp_st_channel_ctx_create");
    for (i = 0; i < app->num_blocks * J3_SIDES; ++i) {
        if (app->blocks[i / J3_SIDES].sides[i % J3_SIDES].neighbour >= 0) {
            way_open_channel(&app->blocks[i / J3_SIDES].sides[i % J3_SIDES]);
        }
    }
    j3_must(ucp_st_msg_set_post(app->ctx, way_post, app),
            "ucp_st_msg_set_post");
}

void j3_ways_close(j3_app_t *app)
{
    int i;

    for (i = 0; i < app->num_blocks * J3_SIDES; ++i) {
        j3_must(ucp_st_channel_destroy(app->blocks[i / J3_SIDES]
                                               .sides[i % J3_SIDES].channel),
                "ucp_st_channel_destroy");
    }
    j3_must(ucp_st_channel_ctx_destroy(app->ctx), "ucp_st_channel_ctx_destroy");
    ucp_worker_destroy(app->worker); /* With its endpoints */
    ucp_cleanup(app->context);
    free(app->eps);
    free(app->finished);
    free(app->staged);
}
