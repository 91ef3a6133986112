/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_growth.c - what one process costs that talks to many: to connect to each
 * peer, to match and use an operation with each, to leave them, and the memory
 * that they take.
 *
 * One process, the hub, has a worker, and some further ones have all the peers,
 * each of them a worker. No MPI. The time that the hub's host thread and its
 * service thread take of the processors is told beside the time that passed, as
 * the peers share the processors with it.
 */
#include <st_number.h>
#include <st_report.h>

#include <ucp_st.h>

#include <dirent.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GROWTH_MAX_PEERS   10000
#define GROWTH_MAX_GROUPS  64
#define GROWTH_MAX_PAIRS   1000
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

/** What a step took of the hub. */
typedef struct growth_step {
    double wall_us;
    double all_us;     /**< All threads, of the processors */
    double host_us;    /**< The thread that calls the library */
    double service_us; /**< The library's service thread */
    double sleeps;     /**< How often the host thread slept */
    double memory;     /**< Resident, by which it grew, bytes */
} growth_step_t;

/** What was measured with so many peers. */
typedef struct growth_row {
    size_t        peers;
    growth_step_t step[GROWTH_LAST];
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
    size_t        pairs;
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
    size_t          num_ops;
    ucp_st_peer_h   *peers;
    ucp_st_op_h     *ops;     /* Of a peer, one after the other */
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

/* The first number or word of a file of a thread of this process */
static int growth_task(const char *task, const char *name, const char *format,
                       void *value)
{
    char path[64 + sizeof(((struct dirent*)NULL)->d_name)];
    FILE *file;
    int found;

    snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task, name);
    file  = fopen(path, "r");
    found = (file != NULL) && (fscanf(file, format, value) == 1);
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* What the library's service thread has taken of the processors */
static double growth_service(void)
{
    unsigned long long ns = 0;
    DIR *tasks            = opendir("/proc/self/task");
    struct dirent *task;
    char name[16];

    while ((tasks != NULL) && ((task = readdir(tasks)) != NULL)) {
        if (growth_task(task->d_name, "comm", "%15s", name) &&
            !strcmp(name, "ucp-st") &&
            growth_task(task->d_name, "schedstat", "%llu", &ns)) {
            break;
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return (double)ns / 1e3;
}

static growth_step_t growth_now(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_THREAD, &usage);
    return (growth_step_t){
        .sleeps     = (double)usage.ru_nvcsw,
        .memory     = growth_resident(),
        .service_us = growth_service(),
        .host_us    = growth_clock(CLOCK_THREAD_CPUTIME_ID),
        .all_us     = growth_clock(CLOCK_PROCESS_CPUTIME_ID),
        .wall_us    = growth_clock(CLOCK_MONOTONIC)
    };
}

static void growth_step_begin(growth_page_t *page, growth_step_t *step)
{
    growth_meet(page);
    *step = growth_now();
}

static void growth_step_end(growth_step_t *step)
{
    growth_step_t end = growth_now();

    step->wall_us    = end.wall_us - step->wall_us;
    step->all_us     = end.all_us - step->all_us;
    step->host_us    = end.host_us - step->host_us;
    step->service_us = end.service_us - step->service_us;
    step->sleeps     = end.sleeps - step->sleeps;
    step->memory     = end.memory - step->memory;
}

static void growth_worker(ucp_st_worker_h *worker_p)
{
    ucp_st_worker_params_t params = {.field_mask = 0};

    growth_must("ucp_st_worker_create",
                ucp_st_worker_create(&params, worker_p));
}

static void growth_open(growth_side_t *side, size_t count, size_t pairs,
                        growth_address_t *address)
{
    ucs_gstream_params_t stream_params = {.field_mask = 0};
    ucp_st_queue_params_t queue_params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };
    void *data;

    side->count   = count;
    side->num_ops = count * pairs;
    side->peers   = growth_alloc(count, sizeof(*side->peers));
    side->ops     = growth_alloc(side->num_ops, sizeof(*side->ops));
    side->buffers = growth_alloc(side->num_ops, sizeof(*side->buffers));
    growth_worker(&side->worker);
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
        .length     = GROWTH_LENGTH
    };
    size_t pairs = side->num_ops / side->count;
    size_t i;

    for (i = 0; i < side->num_ops; ++i) {
        params.buffer = side->buffers[i];
        params.peer   = side->peers[i / pairs];
        params.tag    = i % pairs;
        growth_must("ucp_st_send_init or ucp_st_recv_init",
                    (is_hub ? ucp_st_recv_init : ucp_st_send_init)(
                            side->worker, &params, &side->ops[i]));
    }
    growth_must("ucp_st_matchall",
                ucp_st_matchall(side->ops, side->num_ops, NULL));
}

/* All sides of a process start before one is waited for */
static void growth_use(growth_side_t *sides, size_t count, size_t rounds)
{
    growth_side_t *side;

    for (; rounds > 0; --rounds) {
        for (side = sides; side < (sides + count); ++side) {
            growth_must("ucp_st_enqueue_startall",
                        ucp_st_enqueue_startall(side->queue, side->ops,
                                                side->num_ops));
            growth_must("ucp_st_enqueue_waitall",
                        ucp_st_enqueue_waitall(side->queue, side->ops,
                                               side->num_ops));
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

    for (i = 0; i < side->num_ops; ++i) {
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
    ucp_st_worker_h other;
    growth_side_t side;

    /* As long as a worker is left the service thread is, and its time */
    growth_worker(&other);
    growth_open(&side, row->peers, bench->pairs, &page->hub);
    growth_meet(page);
    growth_step_begin(page, &row->step[GROWTH_CONNECT]);
    growth_connect(&side, page->peers);
    growth_step_end(&row->step[GROWTH_CONNECT]);
    growth_step_begin(page, &row->step[GROWTH_MATCH]);
    growth_match(&side, 1);
    growth_step_end(&row->step[GROWTH_MATCH]);
    growth_step_begin(page, &row->step[GROWTH_USE]);
    growth_use(&side, 1, bench->rounds);
    growth_step_end(&row->step[GROWTH_USE]);
    growth_step_begin(page, &row->step[GROWTH_FREE]);
    growth_free(&side);
    growth_step_end(&row->step[GROWTH_FREE]);
    growth_step_begin(page, &row->step[GROWTH_LEAVE]);
    growth_close(&side);
    growth_step_end(&row->step[GROWTH_LEAVE]);
    growth_must("ucp_st_worker_destroy", ucp_st_worker_destroy(other));
}

/* A process with the peers from `first` on, in the same steps */
static void growth_group(const growth_t *bench, size_t first, size_t count)
{
    growth_page_t *page  = bench->page;
    growth_side_t *sides = growth_alloc(count, sizeof(*sides));
    size_t i;

    for (i = 0; i < count; ++i) {
        growth_open(&sides[i], 1, bench->pairs, &page->peers[first + i]);
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

static void growth_print_row(const growth_t *bench, const growth_row_t *row)
{
    const growth_step_t *step;
    double per;
    int i;

    for (i = 0; i < GROWTH_LAST; ++i) {
        step = &row->step[i];
        per  = (double)row->peers;
        if ((i != GROWTH_CONNECT) && (i != GROWTH_LEAVE)) {
            per *= (double)bench->pairs;
        }
        printf("%6zu  %-7s  %8.1f", row->peers, growth_names[i],
               step->memory / 1024 / per);
        if (i == GROWTH_USE) {
            per *= (double)bench->rounds;
        }
        printf("  %8.1f %8.1f %8.1f %8.1f  %8.2f\n", step->host_us / per,
               step->service_us / per, step->all_us / per, step->wall_us / per,
               step->sleeps / per);
    }
}

static void growth_print(const growth_t *bench)
{
    int i;

    printf("%ld cores, load %.2f, %zu processes have the peers, %zu pairs "
           "each\nper peer, or pair (match, a use, free); microseconds of the "
           "hub's processors, and that passed; sleeps of the host\n%6s  %-7s  "
           "%8s  %8s %8s %8s %8s  %8s\n", st_report_cores(),
           st_report_load(), bench->groups, bench->pairs, "peers", "step",
           "KiB more", "host", "service", "all", "passed", "sleeps");
    for (i = 0; i < bench->num_rows; ++i) {
        growth_print_row(bench, &bench->rows[i]);
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
            "  --pairs N    operations with each peer, 1 to %d (1)\n"
            "  --rounds N   uses of each operation (10)\n"
            "  --help       print this and stop\n", GROWTH_MAX_PEERS,
            GROWTH_MAX_GROUPS, GROWTH_MAX_PAIRS);
}

static int growth_parse(growth_t *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"peers", required_argument, NULL, 'p'},
        {"groups", required_argument, NULL, 'g'},
        {"pairs", required_argument, NULL, 'n'},
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
        case 'n':
            ret = st_number_option("pairs", 1, GROWTH_MAX_PAIRS, &bench->pairs);
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
        .pairs     = 1,
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
