/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_gpu.c - MPI on a GPU's memory, NCCL and NVSHMEM.
 *
 * The last two are opened by their names, and declared here as their
 * documentation has them, so that no package of theirs is needed.
 */
#include "bench_gpu.h"

#include <ucp/api/ucp.h>

#include <mpi.h>
#if defined(OPEN_MPI)
#  include <mpi-ext.h>
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_UCX_SIZE  4096 /* Memory that UCX is asked about */
#define BENCH_NCCL_BYTE 1    /* ncclUint8 */

/* Of NVSHMEM: how it is initialised, numbers of operations, and versions of
 * structures, which tell their sizes */
#define BENCH_NVSHMEM_UNIQUEID   (1u << 3)
#define BENCH_NVSHMEM_SIGNAL_SET 9
#define BENCH_NVSHMEM_CMP_GE     5
#define BENCH_NVSHMEM_VERSION(_size) ((1 << 16) + (_size))
#define BENCH_NVSHMEM_ID_SIZE    128
#define BENCH_NVSHMEM_ATTR_SIZE  144


typedef struct bench_nccl_id {
    char bytes[128];
} bench_nccl_id_t;

/* NCCL's functions, which return 0 for success. Main thread only. */
static struct {
    int        (*get_id)(bench_nccl_id_t *id);
    int        (*init)(void **comm, int ranks, bench_nccl_id_t id, int rank);
    int        (*destroy)(void *comm);
    int        (*begin)(void);
    int        (*end)(void);
    int        (*send)(const void *message, size_t count, int type, int peer,
                       void *comm, void *stream);
    int        (*recv)(void *message, size_t count, int type, int peer,
                       void *comm, void *stream);
    const char *(*text)(int result);
    void       *comm; /* NULL: it is not used */
} bench_nccl;


typedef struct bench_nvshmem_id {
    int  version;
    char bytes[BENCH_NVSHMEM_ID_SIZE - sizeof(int)];
} bench_nvshmem_id_t;

typedef struct bench_nvshmem_attr {
    int version;
    _Alignas(void*) char bytes[256]; /* More than any version has */
} bench_nvshmem_attr_t;

/* NVSHMEM's. Main thread only. */
static struct {
    int  (*get_id)(bench_nvshmem_id_t *id);
    int  (*set_id)(int rank, int ranks, const bench_nvshmem_id_t *id,
                   void *attr);
    int  (*init)(unsigned flags, void *attr);
    void (*finalize)(void);
    void *(*alloc)(size_t size);
    void (*free)(void *memory);
    void (*put)(void *dst, const void *src, size_t size, uint64_t *signal,
                uint64_t value, int op, int peer, void *stream);
    void (*wait)(uint64_t *signal, int cmp, uint64_t value, void *stream);
    int  is_open;
} bench_nvshmem;

/* A function of a library, and where its address goes */
typedef struct bench_gpu_name {
    const char *name;
    void       *func_p;
} bench_gpu_name_t;


/* Opens the first of the libraries that is there. Returns NULL, or why it
 * cannot be used. */
static const char *bench_gpu_find(const char *const *libraries,
                                  const bench_gpu_name_t *names, size_t count)
{
    void *handle = NULL;
    void *func;
    size_t i;

    for (; (*libraries != NULL) && (handle == NULL); ++libraries) {
        handle = dlopen(*libraries, RTLD_LAZY);
    }
    if (handle == NULL) {
        return dlerror();
    }
    for (i = 0; i < count; ++i) {
        func = dlsym(handle, names[i].name);
        if (func == NULL) {
            return dlerror();
        }
        memcpy(names[i].func_p, &func, sizeof(func));
    }
    return NULL;
}

/* Ends the job unless it went well */
static void bench_nccl_check(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "rank %d: %s failed: %s\n", bench_rank(), what,
                bench_nccl.text(result));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

static const char *bench_nccl_find(ucs_gstream_type_t type)
{
    static const char *const libraries[UCS_GSTREAM_TYPE_LAST][2] = {
        [UCS_GSTREAM_TYPE_HIP]  = {"librccl.so.1"},
        [UCS_GSTREAM_TYPE_CUDA] = {"libnccl.so.2"}
    };
    const bench_gpu_name_t names[] = {
        {"ncclGetUniqueId", &bench_nccl.get_id},
        {"ncclCommInitRank", &bench_nccl.init},
        {"ncclCommDestroy", &bench_nccl.destroy},
        {"ncclGroupStart", &bench_nccl.begin},
        {"ncclGroupEnd", &bench_nccl.end},
        {"ncclSend", &bench_nccl.send},
        {"ncclRecv", &bench_nccl.recv},
        {"ncclGetErrorString", &bench_nccl.text}
    };

    return bench_gpu_find(libraries[type], names,
                          sizeof(names) / sizeof(names[0]));
}

/* NULL if no rank has a reason why it cannot; else the own one, or `others` */
static const char *bench_gpu_agree(const char *reason, const char *others,
                                   MPI_Comm comm)
{
    return (bench_sum(reason != NULL, comm) == 0) ? NULL :
           (reason != NULL)                       ? reason :
                                                    others;
}

/* Gives rank 0's identifier to all, with the result of making it */
static int bench_gpu_share(void *id, size_t size, int result, MPI_Comm comm)
{
    bench_check(MPI_Bcast(&result, 1, MPI_INT, 0, comm), "MPI_Bcast");
    bench_check(MPI_Bcast(id, (int)size, MPI_BYTE, 0, comm), "MPI_Bcast");
    return result;
}

/* NCCL refuses two ranks on one GPU */
static const char *bench_nccl_open(const bench_stream_t *stream, MPI_Comm comm)
{
    const char *reason = bench_gpu_agree(bench_nccl_find(stream->type),
                                         "another rank has no library", comm);
    bench_nccl_id_t id;
    int rank, ranks, result;

    if (reason != NULL) {
        return reason;
    }
    bench_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    bench_check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    memset(&id, 0, sizeof(id));
    result = (rank == 0) ? bench_nccl.get_id(&id) : 0;
    result = bench_gpu_share(&id, sizeof(id), result, comm);
    if (result == 0) {
        result = bench_nccl.init(&bench_nccl.comm, ranks, id, rank);
    }
    reason = bench_gpu_agree((result != 0) ? bench_nccl.text(result) : NULL,
                             "another rank's ncclCommInitRank failed", comm);
    if (reason != NULL) {
        bench_nccl.comm = NULL;
    }
    return reason;
}

void bench_nccl_begin(void)
{
    bench_nccl_check(bench_nccl.begin(), "ncclGroupStart");
}

void bench_nccl_send(const bench_stream_t *stream, const void *message,
                     size_t size, int peer)
{
    bench_nccl_check(bench_nccl.send(message, size, BENCH_NCCL_BYTE, peer,
                                     bench_nccl.comm, stream->kernels.native),
                     "ncclSend");
}

void bench_nccl_recv(const bench_stream_t *stream, void *message, size_t size,
                     int peer)
{
    bench_nccl_check(bench_nccl.recv(message, size, BENCH_NCCL_BYTE, peer,
                                     bench_nccl.comm, stream->kernels.native),
                     "ncclRecv");
}

void bench_nccl_end(void)
{
    bench_nccl_check(bench_nccl.end(), "ncclGroupEnd");
}

static const char *bench_nvshmem_find(ucs_gstream_type_t type)
{
    static const char *const libraries[] = {
        "libnvshmem_host.so.3", "libnvshmem_host.so", NULL
    };
    const bench_gpu_name_t names[] = {
        {"nvshmemx_get_uniqueid", &bench_nvshmem.get_id},
        {"nvshmemx_set_attr_uniqueid_args", &bench_nvshmem.set_id},
        {"nvshmemx_hostlib_init_attr", &bench_nvshmem.init},
        {"nvshmemx_hostlib_finalize", &bench_nvshmem.finalize},
        {"nvshmem_malloc", &bench_nvshmem.alloc},
        {"nvshmem_free", &bench_nvshmem.free},
        {"nvshmemx_putmem_signal_on_stream", &bench_nvshmem.put},
        {"nvshmemx_signal_wait_until_on_stream", &bench_nvshmem.wait}
    };

    return (type != UCS_GSTREAM_TYPE_CUDA) ?
                   "it is for CUDA" :
                   bench_gpu_find(libraries, names,
                                  sizeof(names) / sizeof(names[0]));
}

static const char *bench_nvshmem_open(const bench_stream_t *stream,
                                      MPI_Comm comm)
{
    const char *reason        = bench_gpu_agree(
            bench_nvshmem_find(stream->type), "another rank has no library",
            comm);
    bench_nvshmem_id_t id     = {
        .version = BENCH_NVSHMEM_VERSION(BENCH_NVSHMEM_ID_SIZE)
    };
    bench_nvshmem_attr_t attr = {
        .version = BENCH_NVSHMEM_VERSION(BENCH_NVSHMEM_ATTR_SIZE)
    };
    int rank, ranks, result;

    if (reason != NULL) {
        return reason;
    }
    bench_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    bench_check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    result = (rank == 0) ? bench_nvshmem.get_id(&id) : 0;
    result = bench_gpu_share(&id, sizeof(id), result, comm);
    if (result == 0) {
        result = bench_nvshmem.set_id(rank, ranks, &id, &attr);
    }
    if (result == 0) {
        result = bench_nvshmem.init(BENCH_NVSHMEM_UNIQUEID, &attr);
    }
    reason = bench_gpu_agree((result != 0) ? "it does not initialise" : NULL,
                             "another rank does not initialise it", comm);
    bench_nvshmem.is_open = (reason == NULL);
    return reason;
}

void bench_nvshmem_area_init(const bench_stream_t *stream, bench_area_t *area,
                             size_t size)
{
    bench_area_init(stream, area, size, 0);
    area->message = bench_nvshmem.alloc(size);
    if (area->message == NULL) {
        bench_check(MPI_ERR_NO_MEM, "nvshmem_malloc");
    }
    bench_area_store(stream, area);
    bench_stream_synchronize(stream);
}

void bench_nvshmem_area_cleanup(const bench_stream_t *stream,
                                bench_area_t *area)
{
    bench_nvshmem.free(area->message);
    area->message = area->host;
    bench_area_cleanup(stream, area);
}

void bench_nvshmem_put(const bench_stream_t *stream,
                       const bench_nvshmem_put_t *put)
{
    bench_nvshmem.put(put->dst, put->src, put->size, put->signal, put->value,
                      BENCH_NVSHMEM_SIGNAL_SET, put->peer,
                      stream->kernels.native);
}

void bench_nvshmem_wait(const bench_stream_t *stream, uint64_t *signal,
                        uint64_t value)
{
    bench_nvshmem.wait(signal, BENCH_NVSHMEM_CMP_GE, value,
                       stream->kernels.native);
}

void bench_nvshmem_halo_init(const bench_stream_t *stream,
                             bench_nvshmem_halo_t *halo, bench_area_t *out,
                             bench_area_t in[BENCH_NVSHMEM_SETS], int num_dirs)
{
    int set;

    halo->out       = out;
    halo->in        = in;
    halo->others[0] = *out;
    halo->num_dirs  = num_dirs;
    halo->count     = 0;
    bench_nvshmem_area_init(stream, out, halo->others[0].size);
    for (set = 0; set < BENCH_NVSHMEM_SETS; ++set) {
        halo->others[1 + set] = in[set];
        bench_nvshmem_area_init(stream, &in[set], halo->others[1 + set].size);
    }
    bench_nvshmem_area_init(stream, &halo->signals,
                            num_dirs * sizeof(uint64_t));
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

void bench_nvshmem_halo_cleanup(const bench_stream_t *stream,
                                bench_nvshmem_halo_t *halo)
{
    int set;

    bench_nvshmem_area_cleanup(stream, &halo->signals);
    for (set = 0; set < BENCH_NVSHMEM_SETS; ++set) {
        bench_nvshmem_area_cleanup(stream, &halo->in[set]);
        halo->in[set] = halo->others[1 + set];
    }
    bench_nvshmem_area_cleanup(stream, halo->out);
    *halo->out = halo->others[0];
}

void bench_nvshmem_halo_wait(const bench_stream_t *stream,
                             const bench_nvshmem_halo_t *halo)
{
    int dir;

    for (dir = 0; dir < halo->num_dirs; ++dir) {
        bench_nvshmem_wait(stream, bench_nvshmem_signal(halo, dir),
                           halo->count);
    }
}

/* Whether OpenMPI says so itself */
static int bench_mpi_is_aware(ucs_gstream_type_t type)
{
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    if (type == UCS_GSTREAM_TYPE_CUDA) {
        return MPIX_Query_cuda_support();
    }
#endif
    (void)type;
    return 0;
}

/* Whether OpenMPI sends by UCX: its variables are those of what it has chosen.
 * OpenMPI 4 takes the level of threads for MPI's, too. */
static int bench_mpi_is_ucx(void)
{
    int found = 0;
    int level, index;

    bench_check(MPI_Query_thread(&level), "MPI_Query_thread");
    if (MPI_T_init_thread(level, &level) == MPI_SUCCESS) {
        found = (MPI_T_cvar_get_index("pml_ucx_priority", &index) ==
                 MPI_SUCCESS);
        (void)MPI_T_finalize();
    }
    return found;
}

/* What UCX takes memory for */
static ucs_memory_type_t bench_ucx_detect(ucp_context_h context, void *memory,
                                          size_t size)
{
    const ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = memory,
        .length     = size
    };
    ucp_mem_attr_t attr               = {
        .field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE,
        .mem_type   = UCS_MEMORY_TYPE_HOST
    };
    ucp_mem_h mapped;

    if (ucp_mem_map(context, &params, &mapped) == UCS_OK) {
        (void)ucp_mem_query(mapped, &attr);
        (void)ucp_mem_unmap(context, mapped);
    }
    return attr.mem_type;
}

/* ... and whether UCX, with the same settings, has transports for memory of a
 * GPU, and knows it: one of a NIC that reaches it does not do alone */
static int bench_ucx_has_memory(const bench_stream_t *stream)
{
    const ucs_memory_type_t memory = (stream->type == UCS_GSTREAM_TYPE_HIP) ?
                                             UCS_MEMORY_TYPE_ROCM :
                                             UCS_MEMORY_TYPE_CUDA;
    const ucp_params_t params      = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG
    };
    ucp_context_attr_t attr        = {
        .field_mask = UCP_ATTR_FIELD_MEMORY_TYPES
    };
    ucp_context_h context;
    bench_area_t area;
    int found;

    if (ucp_init(&params, NULL, &context) != UCS_OK) {
        return 0;
    }
    bench_area_init(stream, &area, BENCH_UCX_SIZE, 1);
    found = (ucp_context_query(context, &attr) == UCS_OK) &&
            ((attr.memory_types & (1ull << memory)) != 0) &&
            (bench_ucx_detect(context, area.message, area.size) == memory);
    bench_area_cleanup(stream, &area);
    ucp_cleanup(context);
    return found;
}

static const char *bench_mpi_device_open(const bench_stream_t *stream,
                                         MPI_Comm comm)
{
    const char *reason = NULL;

    if (stream->kind != BENCH_MEMORY_DEVICE) {
        return NULL;
    }
    if (!bench_mpi_is_aware(stream->type)) {
        reason = !bench_mpi_is_ucx() ?
                         "MPI does not say that it takes such memory" :
                 !bench_ucx_has_memory(stream) ?
                         "MPI sends by UCX, which has no transport for such "
                         "memory" :
                         NULL;
    }
    return bench_gpu_agree(reason, "another rank has none", comm);
}

void bench_gpu_open(bench_stream_t *stream, bench_options_t *options,
                    MPI_Comm comm)
{
    static const struct {
        unsigned   variant;
        const char *name;
        const char *(*open)(const bench_stream_t *stream, MPI_Comm comm);
    } table[] = {
        {BENCH_VARIANT_MPI_DEVICE, "mpi-device", bench_mpi_device_open},
        /* Gives the messages' memory to MPI_Irecv */
        {BENCH_VARIANT_PAPER, "st-paper", bench_mpi_device_open},
        {BENCH_VARIANT_NCCL, "nccl", bench_nccl_open},
        {BENCH_VARIANT_NVSHMEM, "nvshmem", bench_nvshmem_open}
    };
    const char *reason;
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        if (!(options->variants & table[i].variant)) {
            continue;
        }
        reason = table[i].open(stream, comm);
        if (reason != NULL) {
            options->variants &= ~table[i].variant;
            if (bench_rank() == 0) {
                printf("%s is left out: %s\n", table[i].name, reason);
                fflush(stdout);
            }
        }
    }
}

void bench_gpu_close(void)
{
    if (bench_nccl.comm != NULL) {
        bench_nccl_check(bench_nccl.destroy(bench_nccl.comm),
                         "ncclCommDestroy");
        bench_nccl.comm = NULL;
    }
    if (bench_nvshmem.is_open) {
        bench_nvshmem.finalize();
        bench_nvshmem.is_open = 0;
    }
}
