/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chare.c - a toy runtime with message-driven objects ("chares") on channels.
 *
 * 16 chares on up to 4 PEs (processes) set the values of a grid to the average
 * of their four neighbours, 64 times (Jacobi). No chare waits: the callback of
 * the last operation makes it ready for its next step. One moves at times:
 *     old PE                     its neighbours             new PE
 *     quiesce its ends           (their sends are put off)
 *     pack and destroy them
 *     send the chare to all PEs  rebind theirs              unpack the ends
 * Try it: contrib/ucx-st-run mpirun -n 4 build/examples/chare
 */
#include <ucp_st_channel.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHARES = 16, ROWS = 6, WIDTH = 64, STEPS = 64, MOVER = 5,
       MOVE_EVERY = 16, MOVES = (STEPS - 1) / MOVE_EVERY, PES = 4,
       ADDRESS = 4096, PACKED = 4096,
       LENGTH = WIDTH * sizeof(double) /* Of a row */ };
#define MOVE_TAG   (15ull << 60) /* Of a type that channels do not use */
#define MUST(call) must(call, #call)

typedef struct {
    int              id, step;
    double           cells[ROWS + 2][WIDTH]; /* Between the neighbours' rows */
    ucp_st_channel_h ends[2]; /* Up and down; NULL: no neighbour, or not here */
    int              pending, leaves; /* Operations under way; what for */
} chare_t;

typedef struct { /* A chare that moves, and its ends */
    int     to;
    chare_t chare;
    size_t  lengths[2];
    char    ends[2][PACKED];
} move_t;

static struct { /* This PE */
    int rank, size, num_here, num_moves, num_wrong, added, taken;
    ucp_context_h        context;
    ucp_worker_h         worker;
    ucp_ep_h             eps[PES];
    ucp_st_channel_ctx_h ctx;
    chare_t              chares[CHARES], *ready[CHARES];
    double               grid[CHARES * ROWS + 2][WIDTH]; /* Serial */
} pe;

static void must(ucs_status_t status, const char *what)
{
    if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

/* Only chares that move are waited for: all other PEs go on meanwhile. */
static void pe_wait(void *request)
{
    while (UCS_PTR_IS_PTR(request) &&
           (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        ucp_worker_progress(pe.worker);
    }
    MUST(UCS_PTR_IS_PTR(request) ? ucp_request_check_status(request) :
                                   UCS_PTR_STATUS(request));
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

/* Where a chare begins. All but MOVER stay there. */
static int chare_home(int id)
{
    return id * pe.size / CHARES;
}

/* The neighbours are id - 1 and id + 1. The upper one names the channel. */
static ucp_st_channel_params_t chare_end(int id, int side)
{
    return (ucp_st_channel_params_t){
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_EP |
                      UCP_ST_CHANNEL_PARAM_FIELD_ID |
                      UCP_ST_CHANNEL_PARAM_FIELD_END,
        .ep  = pe.eps[chare_home(side ? id + 1 : id - 1)],
        .id  = side ? id : id - 1,
        .end = side
    };
}

static void jacobi(int rows, double cells[rows + 2][WIDTH])
{
    double old[rows + 2][WIDTH];

    memcpy(old, cells, sizeof(old));
    for (int i = 1; i <= rows; ++i) {
        for (int j = 1; j < WIDTH - 1; ++j) {
            cells[i][j] = 0.25 * (old[i - 1][j] + old[i + 1][j] +
                                  old[i][j - 1] + old[i][j + 1]);
        }
    }
}

/* Callback of all operations; gets what the call returned first, too. */
static void chare_done(void *arg, ucs_status_t status, size_t length)
{
    chare_t *chare = arg;

    MUST(status);
    if ((status != UCS_INPROGRESS) && (--chare->pending == 0)) {
        pe.ready[pe.added++ % CHARES] = chare;
    }
}

/* Become quiet, or exchange rows. */
static void chare_begin(chare_t *chare, int leaves)
{
    chare->leaves  = leaves;
    chare->pending = 1; /* This function */
    for (int side = 0; side < 2; ++side) {
        ucp_st_channel_h end = chare->ends[side];

        if (leaves) {
            ++chare->pending;
            MUST(ucp_st_channel_quiesce(end, chare_done, chare));
        } else if (end != NULL) {
            chare->pending += 2;
            chare_done(chare, ucp_st_channel_recv(end, &(ucp_st_channel_msg_t){
                    chare->cells[side ? ROWS + 1 : 0], LENGTH, chare_done,
                    chare}, NULL), 0);
            chare_done(chare, ucp_st_channel_send(end, &(ucp_st_channel_msg_t){
                    chare->cells[side ? ROWS : 1], LENGTH, chare_done,
                    chare}), 0);
        }
    }
    chare_done(chare, UCS_OK, 0);
}

static void chare_step(chare_t *chare)
{
    jacobi(ROWS, chare->cells);
    if (++chare->step < STEPS) {
        chare_begin(chare, (chare->id == MOVER) &&
                           (chare->step % MOVE_EVERY == 0));
    } else {
        --pe.num_here;
        pe.num_wrong += memcmp(chare->cells[1], pe.grid[chare->id * ROWS + 1],
                               ROWS * sizeof(pe.grid[0])) != 0;
    }
}

/* A chare goes to this PE, or some other one: neighbours here are told. */
static void chare_move(const move_t *move)
{
    int id         = move->chare.id, is_here = (move->to == pe.rank);
    chare_t *chare = &pe.chares[id];

    ++pe.num_moves;
    pe.num_here += is_here;
    *chare       = move->chare; /* Without ends */
    for (int side = 0; side < 2; ++side) {
        ucp_st_channel_params_t end = chare_end(id, side);

        if (is_here) {
            MUST(ucp_st_channel_unpack(pe.ctx, &end, move->ends[side],
                                       move->lengths[side],
                                       &chare->ends[side]));
        }
        if (end.ep == pe.eps[pe.rank]) {
            end.ep = pe.eps[move->to];
            MUST(ucp_st_channel_rebind(chare[side ? 1 : -1].ends[!side], &end));
        }
    }
    if (is_here) {
        chare_begin(chare, 0);
    }
}

/* All ends are quiet. What neighbours have sent ahead is in the packed ends. */
static void chare_leave(chare_t *chare)
{
    move_t move = {.to = (pe.rank + 1) % pe.size, .chare = *chare,
                   .lengths = {PACKED, PACKED}};

    --pe.num_here;
    for (int side = 0; side < 2; ++side) {
        MUST(ucp_st_channel_pack(chare->ends[side], move.ends[side],
                                 &move.lengths[side]));
        MUST(ucp_st_channel_destroy(chare->ends[side]));
        move.chare.ends[side] = NULL;
    }
    for (int i = 1; i < pe.size; ++i) {
        pe_wait(ucp_tag_send_nbx(pe.eps[(pe.rank + i) % pe.size], &move,
                                 sizeof(move), MOVE_TAG,
                                 &(ucp_request_param_t){0}));
    }
    chare_move(&move);
}

static void chare_create(chare_t *chare, int id)
{
    ++pe.num_here;
    chare->id = id;
    memcpy(chare->cells, pe.grid[id * ROWS], sizeof(chare->cells));
    for (int side = (id == 0); side < 2 - (id == CHARES - 1); ++side) {
        ucp_st_channel_params_t end = chare_end(id, side);
        MUST(ucp_st_channel_create(pe.ctx, &end, &chare->ends[side]));
    }
    chare_begin(chare, 0);
}

static void pe_open(void)
{
    static char all[PES][ADDRESS];
    ucp_address_t *address;
    size_t length;

    MUST(ucp_init(&(ucp_params_t){UCP_PARAM_FIELD_FEATURES, UCP_FEATURE_TAG},
                  NULL, &pe.context));
    MUST(ucp_worker_create(pe.context, &(ucp_worker_params_t){0}, &pe.worker));
    MUST(ucp_worker_get_address(pe.worker, &address, &length));
    memcpy(all[pe.rank], address, (length < ADDRESS) ? length : ADDRESS);
    ucp_worker_release_address(pe.worker, address);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_CHAR, all, ADDRESS, MPI_CHAR,
                  MPI_COMM_WORLD);
    for (int i = 0; i < pe.size; ++i) {
        MUST(ucp_ep_create(pe.worker, &(ucp_ep_params_t){
                UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, (ucp_address_t*)all[i]},
                &pe.eps[i]));
    }
    MUST(ucp_st_channel_ctx_create(&(ucp_st_channel_ctx_params_t){
            UCP_ST_CHANNEL_CTX_PARAM_FIELD_UCP_WORKER, pe.worker}, &pe.ctx));
}

/* The scheduler, until the chares of this PE end and no one can come. */
static void pe_run(void)
{
    ucp_tag_recv_info_t info;
    MPI_Request met;
    move_t move;

    while ((pe.num_here > 0) || (pe.num_moves < MOVES)) {
        unsigned did              = ucp_worker_progress(pe.worker) +
                                    ucp_st_channel_progress(pe.ctx);
        ucp_tag_message_h message = ucp_tag_probe_nb(pe.worker, MOVE_TAG,
                                                     UINT64_MAX, 1, &info);

        if (message != NULL) {
            pe_wait(ucp_tag_msg_recv_nbx(pe.worker, &move, sizeof(move),
                                         message, &(ucp_request_param_t){0}));
            chare_move(&move);
        } else if (pe.taken != pe.added) {
            chare_t *chare = pe.ready[pe.taken++ % CHARES];
            (chare->leaves ? chare_leave : chare_step)(chare);
        } else if (did == 0) {
            sched_yield();
        }
    }
    /* Others may need this PE's UCP until they have all messages */
    MPI_Ibarrier(MPI_COMM_WORLD, &met);
    for (int is_met = 0; !is_met; MPI_Test(&met, &is_met, MPI_STATUS_IGNORE)) {
        ucp_worker_progress(pe.worker);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &pe.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &pe.size);
    if (pe.size > PES) {
        fprintf(stderr, "chare: at most %d processes\n", PES);
        return MPI_Finalize(), EXIT_FAILURE;
    }
    pe_open();
    for (int i = 0; i < (CHARES * ROWS + 2) * WIDTH; ++i) {
        pe.grid[i / WIDTH][i % WIDTH] = i * 17 % 101;
    }
    for (int id = 0; id < CHARES; ++id) {
        if (chare_home(id) == pe.rank) {
            chare_create(&pe.chares[id], id);
        }
    }
    for (int step = 0; step < STEPS; ++step) {
        jacobi(CHARES * ROWS, pe.grid);
    }
    pe_run();
    for (int i = 0; i < 2 * CHARES; ++i) {
        MUST(ucp_st_channel_destroy(pe.chares[i / 2].ends[i % 2]));
    }
    MUST(ucp_st_channel_ctx_destroy(pe.ctx));
    ucp_worker_destroy(pe.worker); /* With its endpoints */
    ucp_cleanup(pe.context);
    printf("PE %d of %d: its chares end %s; one moved %d times\n", pe.rank,
           pe.size, pe.num_wrong ? "WRONG" : "as computed serially", MOVES);
    MPI_Finalize();
    return pe.num_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
