/* SPDX-License-Identifier: BSD-3-Clause */
/* jacobi3d_ways.c - faces by channels, and by UCP with metadata first. */
#include "jacobi3d.h"

#include <stdlib.h>
#include <string.h>

/* Types of tags, in the highest 4 bits, that channels do not use; a tag of data
 * has the sender and a number behind */
#define WAY_TAG_META (2ull << 60)
#define WAY_TAG_DATA (3ull << 60)


void j3_must(ucs_status_t status, const char *what)
{
    if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        fprintf(stderr, "rank %d: %s: %s\n", bench_rank(), what,
                ucs_status_string(status));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

static void way_end_request(void *request)
{
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

/* All operations of blocks; status is also that which calls return */
static void way_channel_done(void *arg, ucs_status_t status, size_t length)
{
    (void)length;
    j3_must(status, "a face by a channel");
    if (status != UCS_INPROGRESS) {
        j3_block_done(arg);
    }
}

static void way_channel_send(j3_side_t *side)
{
    const ucp_st_channel_msg_t msg = {
        .buffer = side->out,
        .length = side->length,
        .cb     = way_channel_done,
        .arg    = side->block
    };

    way_channel_done(side->block, ucp_st_channel_send(side->channel, &msg), 0);
}

static void way_channel_recv(j3_side_t *side)
{
    const ucp_st_channel_msg_t msg = {
        .buffer = side->faces[side->block->iteration % 2].in,
        .length = side->length,
        .cb     = way_channel_done,
        .arg    = side->block
    };

    way_channel_done(side->block,
                     ucp_st_channel_recv(side->channel, &msg, NULL), 0);
}

const j3_way_t j3_channel = {
    .send = way_channel_send,
    .recv = way_channel_recv
};

static int way_side_number(const j3_side_t *side)
{
    return (int)(side - side->block->sides);
}

static void way_meta_sent(void *request, ucs_status_t status, void *user_data)
{
    j3_must(status, "metadata");
    free(user_data);
    way_end_request(request);
}

static void way_data_sent(void *request, ucs_status_t status, void *user_data)
{
    j3_must(status, "a face that metadata tells of");
    way_end_request(request);
    j3_block_done(user_data);
}

static void way_tag_send(ucp_ep_h ep, const void *buffer, size_t length,
                         uint64_t tag, const ucp_request_param_t *param)
{
    void *request = ucp_tag_send_nbx(ep, buffer, length, tag, param);

    if (!UCS_PTR_IS_PTR(request)) {
        param->cb.send(NULL, UCS_PTR_STATUS(request), param->user_data);
    }
}

static void way_meta_send(j3_side_t *side)
{
    j3_app_t *app             = side->block->app;
    ucp_ep_h ep               = app->eps[side->neighbour / app->num_blocks];
    j3_meta_t *meta           = bench_alloc(sizeof(*meta));
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = way_meta_sent,
        .user_data    = meta
    };
    uint64_t tag              = WAY_TAG_DATA | ((uint64_t)app->rank << 40) |
                                app->num_sends++;

    meta->tag    = tag;
    meta->length = side->length;
    meta->block  = (uint32_t)side->neighbour;
    meta->side   = (uint16_t)(way_side_number(side) ^ 1);
    meta->parity = (uint16_t)(side->block->iteration % 2);
    way_tag_send(ep, meta, sizeof(*meta), WAY_TAG_META, &param);
    param.cb.send   = way_data_sent;
    param.user_data = side->block;
    way_tag_send(ep, side->out, side->length, tag, &param);
}

/* The receive begins once metadata has come */
static void way_meta_recv(j3_side_t *side)
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
    .send = way_meta_send,
    .recv = way_meta_recv
};

static void way_data_received(void *request, ucs_status_t status,
                              const ucp_tag_recv_info_t *info, void *user_data)
{
    j3_face_t *face = user_data;

    (void)info;
    j3_must(status, "a face that metadata tells of");
    way_end_request(request);
    if (face->is_waited) {
        face->is_waited = 0;
        j3_block_done(face->block);
    } else {
        face->is_here = 1;
    }
}

/* A neighbour is one iteration ahead at most, as it needs this block's face for
 * the next one: the memory for its face is free. */
static void way_data_recv(j3_app_t *app, const j3_meta_t *meta)
{
    j3_block_t *block = &app->blocks[meta->block - app->first_block];
    j3_face_t *face   = &block->sides[meta->side].faces[meta->parity];
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv      = way_data_received,
        .user_data    = face
    };
    void *request = ucp_tag_recv_nbx(app->worker, face->in, meta->length,
                                     meta->tag, UINT64_MAX, &param);

    if (!UCS_PTR_IS_PTR(request)) {
        way_data_received(NULL, UCS_PTR_STATUS(request), NULL, face);
    }
}

static void way_meta_post(j3_meta_op_t *op);

static void way_meta_received(void *request, ucs_status_t status,
                              const ucp_tag_recv_info_t *info, void *user_data)
{
    j3_meta_op_t *op = user_data;

    (void)info;
    op->request = NULL;
    ucp_request_free(request);
    if (status != UCS_ERR_CANCELED) {
        j3_must(status, "a receive of metadata");
        way_data_recv(op->app, &op->meta);
        way_meta_post(op);
    }
}

/* Posts a receive of metadata, again for each that is there already */
static void way_meta_post(j3_meta_op_t *op)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv      = way_meta_received,
        .user_data    = op
    };

    while ((op->request = ucp_tag_recv_nbx(op->app->worker, &op->meta,
                                           sizeof(op->meta), WAY_TAG_META,
                                           UINT64_MAX, &param)) == NULL) {
        way_data_recv(op->app, &op->meta);
    }
    j3_must(UCS_PTR_STATUS(op->request), "ucp_tag_recv_nbx");
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
    int i;

    way_open_ucp(app);
    params.ucp_worker = app->worker;
    j3_must(ucp_st_channel_ctx_create(&params, &app->ctx),
            "ucp_st_channel_ctx_create");
    for (i = 0; i < app->num_blocks * J3_SIDES; ++i) {
        if (app->blocks[i / J3_SIDES].sides[i % J3_SIDES].neighbour >= 0) {
            way_open_channel(&app->blocks[i / J3_SIDES].sides[i % J3_SIDES]);
        }
    }
    for (i = 0; i < J3_METAS; ++i) {
        app->metas[i].app = app;
        way_meta_post(&app->metas[i]);
    }
}

void j3_ways_close(j3_app_t *app)
{
    int i;

    for (i = 0; i < J3_METAS; ++i) {
        ucp_request_cancel(app->worker, app->metas[i].request);
    }
    for (i = 0; i < J3_METAS; ++i) {
        while (app->metas[i].request != NULL) {
            ucp_worker_progress(app->worker);
        }
    }
    for (i = 0; i < app->num_blocks * J3_SIDES; ++i) {
        j3_must(ucp_st_channel_destroy(app->blocks[i / J3_SIDES]
                                               .sides[i % J3_SIDES].channel),
                "ucp_st_channel_destroy");
    }
    j3_must(ucp_st_channel_ctx_destroy(app->ctx), "ucp_st_channel_ctx_destroy");
    ucp_worker_destroy(app->worker); /* With its endpoints */
    ucp_cleanup(app->context);
    free(app->eps);
}
