/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_growth.c - what one process costs that talks to many: to connect to each
 * peer, to match and use an operation with each, to leave them, and the memory
 * that they take.
 *
 * One process, the hub, has a worker, and some further ones have all the peers,
 * each of them a worker. No MPI. The hub's time of the processors is told
 * beside the time that passed, as the peers share the processors with it.
 */
#include <st_number.h>
#include <st_report.h>

#include <ucp_st.h>

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GROWTH_MAX_PEERS   10000
#define GROWTH_MAX_GROUPS  64
#define GROWTH_MAX_ADDRESS 4096
#define GROWTH_LENGTH      64 /* Of a message, bytes */

/* What the hub does, in turn */
enum {
    GROWTH_CONNECT,
    GROWTH_MATCH,
    GROWTH_USE,
    GROWTH_FREE,
    GROWTH_LEAVE,
    GROWTH_LAST
};

static const char *const growth_names[] = {"connect", "match", "use", "free",
                                           "leave"};

/** What a step took. */
typedef struct growth_step {
    double wall_us;
    double cpu_us;
} growth_step_t;

/** What was measured with so many peers. */
typedef struct growth_row {
    size_t        peers;
    growth_step_t step[GROWTH_LAST];
    double        memory; /**< Resident, of the hub, bytes */
} growth_row_t;

typedef struct growth_address {
    size_t  length;
    uint8_t data[GROWTH_MAX_ADDRESS];
} growth_address_t;

/** Memory that all processes have. */
typedef struct growth_page {
    pthread_barrier_t barrier;
    growth_row_t      row;
    growth_address_t  hub;
    growth_address_t  peers[];
} growth_page_t;

typedef struct growth {
    growth_page_t *page;
    size_t        max_peers;
    size_t        groups;
    size_t        rounds;
    growth_row_t  rows[16];
    int           num_rows;
} growth_t;

/** One worker with its operations: the hub has one with each peer. */
typedef struct growth_side {
    ucp_st_worker_h worker;
    ucs_gstream_h   stream;
    ucp_st_queue_h  queue;
    size_t          count;
    ucp_st_peer_h   *peers;
    ucp_st_op_h     *ops;
    uint8_t         (*buffers)[GROWTH_LENGTH];
} growth_side_t;


static void growth_must(const char *what, ucs_status_t status)
{
    if (status != UCS_OK) {
        fprintf(stderr, "st_growth: %s: %s\n", what, ucs_status_string(status));
        exit(EXIT_FAILURE);
    }
}

static void *growth_alloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL) {
        growth_must("calloc", UCS_ERR_NO_MEMORY);
    }
    return memory;
}

static double growth_clock(clockid_t id)
{
    struct timespec now;

    (void)clock_gettime(id, &now);
    return (now.tv_sec * 1e6) + (now.tv_nsec / 1e3);
}

/* Resident memory of this process, bytes */
static double growth_resident(void)
{
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file != NULL) {
        if (fscanf(file, "%lu %lu", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(file);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void growth_meet(growth_page_t *page)
{
    (void)pthread_barrier_wait(&page->barrier);
}

static void growth_step_begin(growth_page_t *page, growth_step_t *step)
{
    growth_meet(page);
    step->wall_us = growth_clock(CLOCK_MONOTONIC);
    step->cpu_us  = growth_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static void growth_step_end(growth_step_t *step)
{
    step->wall_us = growth_clock(CLOCK_MONOTONIC) - step->wall_us;
    step->cpu_us  = growth_clock(CLOCK_PROCESS_CPUTIME_ID) - step->cpu_us;
}

static void growth_open(growth_side_t *side, size_t count,
                        growth_address_t *address)
{
    ucp_st_worker_params_t worker_params = {.field_mask = 0};
    ucs_gstream_params_t stream_params   = {.field_mask = 0};
    ucp_st_queue_params_t queue_params   = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };
    void *data;

    side->count   = count;
    side->peers   = growth_alloc(count, sizeof(*side->peers));
    side->ops     = growth_alloc(count, sizeof(*side->ops));
    side->buffers = growth_alloc(count, sizeof(*side->buffers));
    growth_must("ucp_st_worker_create",
                ucp_st_worker_create(&worker_params, &side->worker));
    growth_must("ucs_gstream_create",
                ucs_gstream_create(&stream_params, &side->stream));
    queue_params.stream = side->stream;
    growth_must("ucp_st_queue_create",
                ucp_st_queue_create(side->worker, &queue_params, &side->queue));
    growth_must("ucp_st_worker_get_address",
                ucp_st_worker_get_address(side->worker, &data,
                                          &address->length));
    if (address->length > sizeof(address->data)) {
        growth_must("an address of so many bytes", UCS_ERR_BUFFER_TOO_SMALL);
    }
    memcpy(address->data, data, address->length);
    ucp_st_worker_release_address(side->worker, data);
}

static void growth_connect(growth_side_t *side, const growth_address_t *address)
{
    size_t i;

    for (i = 0; i < side->count; ++i) {
        growth_must("ucp_st_peer_create",
                    ucp_st_peer_create(side->worker, address[i].data,
                                       address[i].length, &side->peers[i]));
    }
}

static void growth_match(growth_side_t *side, int is_hub)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG,
        .length     = GROWTH_LENGTH,
        .tag        = 1
    };
    size_t i;

    for (i = 0; i < side->count; ++i) {
        params.buffer = side->buffers[i];
        params.peer   = side->peers[i];
        growth_must("ucp_st_send_init or ucp_st_recv_init",
                    (is_hub ? ucp_st_recv_init : ucp_st_send_init)(
                            side->worker, &params, &side->ops[i]));
    }
    growth_must("ucp_st_matchall",
                ucp_st_matchall(side->ops, side->count, NULL));
}

/* All sides of a process start before one is waited for */
static void growth_use(growth_side_t *sides, size_t count, size_t rounds)
{
    growth_side_t *side;

    for (; rounds > 0; --rounds) {
        for (side = sides; side < (sides + count); ++side) {
            growth_must("ucp_st_enqueue_startall",
                        ucp_st_enqueue_startall(side->queue, side->ops,
                                                side->count));
            growth_must("ucp_st_enqueue_waitall",
                        ucp_st_enqueue_waitall(side->queue, side->ops,
                                               side->count));
        }
        for (side = sides; side < (sides + count); ++side) {
            growth_must("ucp_st_queue_wait",
                        ucp_st_queue_wait(side->queue, NULL));
        }
    }
}

static void growth_free(growth_side_t *side)
{
    size_t i;

    for (i = 0; i < side->count; ++i) {
        growth_must("ucp_st_op_free", ucp_st_op_free(side->ops[i]));
    }
}

static void growth_close(growth_side_t *side)
{
    size_t i;

    growth_must("ucp_st_queue_destroy", ucp_st_queue_destroy(side->queue));
    for (i = 0; i < side->count; ++i) {
        ucp_st_peer_destroy(side->peers[i]);
    }
    growth_must("ucp_st_worker_destroy", ucp_st_worker_destroy(side->worker));
    growth_must("ucs_gstream_destroy", ucs_gstream_destroy(side->stream));
    free(side->buffers);
    free(side->ops);
    free(side->peers);
}

static void growth_hub(const growth_t *bench)
{
    growth_page_t *page = bench->page;
    growth_row_t *row   = &page->row;
    growth_side_t side;

    growth_open(&side, row->peers, &page->hub);
    growth_meet(page);
    row->memory = growth_resident();
    growth_step_begin(page, &row->step[GROWTH_CONNECT]);
    growth_connect(&side, page->peers);
    growth_step_end(&row->step[GROWTH_CONNECT]);
    growth_step_begin(page, &row->step[GROWTH_MATCH]);
    growth_match(&side, 1);
    growth_step_end(&row->step[GROWTH_MATCH]);
    growth_step_begin(page, &row->step[GROWTH_USE]);
    growth_use(&side, 1, bench->rounds);
    growth_step_end(&row->step[GROWTH_USE]);
    row->memory = growth_resident() - row->memory;
    growth_step_begin(page, &row->step[GROWTH_FREE]);
    growth_free(&side);
    growth_step_end(&row->step[GROWTH_FREE]);
    growth_step_begin(page, &row->step[GROWTH_LEAVE]);
    growth_close(&side);
    growth_step_end(&row->step[GROWTH_LEAVE]);
}

/* A process with the peers from `first` on, in the same steps */
static void growth_group(const growth_t *bench, size_t first, size_t count)
{
    growth_page_t *page  = bench->page;
    growth_side_t *sides = growth_alloc(count, sizeof(*sides));
    size_t i;

    for (i = 0; i < count; ++i) {
        growth_open(&sides[i], 1, &page->peers[first + i]);
    }
    growth_meet(page);
    growth_meet(page);
    for (i = 0; i < count; ++i) {
        growth_connect(&sides[i], &page->hub);
    }
    growth_meet(page);
    for (i = 0; i < count; ++i) {
        growth_match(&sides[i], 0);
    }
    growth_meet(page);
    growth_use(sides, count, bench->rounds);
    growth_meet(page);
    for (i = 0; i < count; ++i) {
        growth_free(&sides[i]);
    }
    growth_meet(page);
    for (i = 0; i < count; ++i) {
        growth_close(&sides[i]);
    }
    free(sides);
}

/* One row: processes of its own, so that each begins alike */
static void growth_run(growth_t *bench, size_t peers)
{
    size_t groups = (bench->groups < peers) ? bench->groups : peers;
    size_t first  = 0;
    pthread_barrierattr_t attr;
    int status;
    size_t i;

    memset(&bench->page->row, 0, sizeof(bench->page->row));
    bench->page->row.peers = peers;
    (void)pthread_barrierattr_init(&attr);
    (void)pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    (void)pthread_barrier_init(&bench->page->barrier, &attr,
                               (unsigned)groups + 1);
    for (i = 0; i <= groups; ++i) {
        size_t next = (i == 0) ? 0 : ((i * peers) / groups);
        pid_t pid   = fork();

        if (pid < 0) {
            perror("st_growth: fork");
            exit(EXIT_FAILURE); /* Those that were made go with this one */
        }
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (i == 0) {
                growth_hub(bench);
            } else {
                growth_group(bench, first, next - first);
            }
            exit(EXIT_SUCCESS);
        }
        first = next;
    }
    for (i = 0; i <= groups; ++i) {
        if ((wait(&status) < 0) || (status != 0)) {
            exit(EXIT_FAILURE); /* The others may wait for it */
        }
    }
    (void)pthread_barrier_destroy(&bench->page->barrier);
    bench->rows[bench->num_rows++] = bench->page->row;
}

static double growth_per_use(const growth_t *bench, int step)
{
    return (step == GROWTH_USE) ? (double)bench->rounds : 1;
}

static void growth_print(const growth_t *bench)
{
    const growth_row_t *row;
    int i, k;

    printf("%ld cores, load %.2f, %zu processes have the peers; per peer, "
           "microseconds: of the hub's processors (passed)\n",
           st_report_cores(), st_report_load(), bench->groups);
    printf("%6s", "peers");
    for (k = 0; k < GROWTH_LAST; ++k) {
        printf("  %16s", growth_names[k]);
    }
    printf("  %10s\n", "memory KiB");
    for (i = 0; i < bench->num_rows; ++i) {
        row = &bench->rows[i];
        printf("%6zu", row->peers);
        for (k = 0; k < GROWTH_LAST; ++k) {
            double per = (double)row->peers * growth_per_use(bench, k);

            printf("  %7.1f %8.1f", row->step[k].cpu_us / per,
                   row->step[k].wall_us / per);
        }
        printf("  %10.1f\n", row->memory / 1024 / (double)row->peers);
    }
}

static void growth_usage(FILE *file)
{
    fprintf(file,
            "Usage: st_growth [options]\n"
            "What a process costs that talks to many peers; no MPI. Lanes and "
            "transports are\nchosen as always: UCX_ST_LANES, UCX_TLS.\n\n"
            "  --peers N    most peers, 1 to %d (1000); fewer come before\n"
            "  --groups N   processes that have them, 1 to %d (8)\n"
            "  --rounds N   uses of each operation (10)\n"
            "  --help       print this and stop\n", GROWTH_MAX_PEERS,
            GROWTH_MAX_GROUPS);
}

static int growth_parse(growth_t *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"peers", required_argument, NULL, 'p'},
        {"groups", required_argument, NULL, 'g'},
        {"rounds", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}
    };
    int ret = 0;
    int opt;

    while ((ret == 0) &&
           ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1)) {
        switch (opt) {
        case 'p':
            ret = st_number_option("peers", 1, GROWTH_MAX_PEERS,
                                   &bench->max_peers);
            break;
        case 'g':
            ret = st_number_option("groups", 1, GROWTH_MAX_GROUPS,
                                   &bench->groups);
            break;
        case 'r':
            ret = st_number_option("rounds", 1, 1000000, &bench->rounds);
            break;
        case 'h':
            growth_usage(stdout);
            exit(EXIT_SUCCESS);
        default:
            growth_usage(stderr);
            return -1;
        }
    }
    if ((ret == 0) && (optind < argc)) {
        fprintf(stderr, "st_growth: '%s' is no option\n", argv[optind]);
        return -1;
    }
    return ret;
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1, 3, 10, 30, 100, 300, 1000, 3000};
    growth_t bench              = {
        .max_peers = 1000,
        .groups    = 8,
        .rounds    = 10
    };
    size_t i;

    if (growth_parse(&bench, argc, argv) != 0) {
        return 2;
    }
    bench.page = mmap(NULL, sizeof(*bench.page) +
                            (bench.max_peers * sizeof(growth_address_t)),
                      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                      0);
    if (bench.page == MAP_FAILED) {
        perror("st_growth: mmap");
        return EXIT_FAILURE;
    }
    for (i = 0; (i < sizeof(sizes) / sizeof(*sizes)) &&
                (sizes[i] < bench.max_peers); ++i) {
        growth_run(&bench, sizes[i]);
    }
    growth_run(&bench, bench.max_peers);
    growth_print(&bench);
    return EXIT_SUCCESS;
}
