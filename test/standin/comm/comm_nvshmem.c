/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm_nvshmem.c - a stand-in for NVSHMEM: memory that all processes have
 * opened, puts with a signal by a copy and a store of the stream, and waits.
 */
#include "comm.h"
#include "standin_cuda.h"

#include <stdlib.h>
#include <string.h>

#define COMM_MAX_ALLOCS 16
#define COMM_SIGNAL_SET 9
#define COMM_CMP_GE     5

#define COMM_ADDRESS(_pointer) ((uint64_t)(uintptr_t)(_pointer))


/* Memory of a rank, as this process addresses it */
typedef struct {
    uint64_t at[COMM_MAX_RANKS];
    size_t   size;
} comm_memory_t;

/* The process's. Main thread only. */
static comm_t comm_self;
static comm_memory_t comm_memory[COMM_MAX_ALLOCS];


/* A call that cannot be right ends the process */
static void comm_check(int is_right)
{
    if (!is_right) {
        abort();
    }
}

/* An ID and attributes begin with a version, as programs set it */
STANDIN_API int nvshmemx_get_uniqueid(void *id)
{
    comm_check(*(int*)id == (1 << 16) + 128);
    return comm_make((char*)id + sizeof(int));
}

STANDIN_API int nvshmemx_set_attr_uniqueid_args(int rank, int ranks,
                                                const void *id, void *attr)
{
    char *bytes = (char*)attr + sizeof(void*);

    comm_check(*(int*)attr == (1 << 16) + 144);
    ((int*)bytes)[0] = rank;
    ((int*)bytes)[1] = ranks;
    memcpy(bytes + 2 * sizeof(int), (const char*)id + sizeof(int),
           COMM_ID_SIZE);
    return 0;
}

STANDIN_API int nvshmemx_hostlib_init_attr(unsigned flags, void *attr)
{
    const char *bytes = (const char*)attr + sizeof(void*);

    comm_check(flags == 1u << 3);
    return comm_join(&comm_self, bytes + 2 * sizeof(int),
                     ((const int*)bytes)[0], ((const int*)bytes)[1]);
}

STANDIN_API void nvshmemx_hostlib_finalize(void)
{
    comm_leave(&comm_self);
}

STANDIN_API void *nvshmem_malloc(size_t size)
{
    standin_handle_t *handles = comm_self.job->handles;
    comm_memory_t *memory     = comm_memory;
    uint64_t own;
    int rank;

    while (memory->size != 0) {
        comm_check(++memory < comm_memory + COMM_MAX_ALLOCS);
    }
    comm_check((cuMemAlloc_v2(&own, size) == 0) &&
               (cuIpcGetMemHandle(&handles[comm_self.rank], own) == 0));
    comm_barrier(&comm_self);
    for (rank = 0; rank < comm_self.ranks; ++rank) {
        memory->at[rank] = own;
        comm_check((rank == comm_self.rank) ||
                   (cuIpcOpenMemHandle_v2(&memory->at[rank], handles[rank],
                                          1) == 0));
    }
    memory->size = size;
    comm_barrier(&comm_self);
    return (void*)(uintptr_t)own;
}

/* Where a peer has what is at an own address */
static uint64_t comm_there(const void *address, size_t size, int peer)
{
    const comm_memory_t *memory;
    uint64_t offset;
    int i;

    for (i = 0; i < COMM_MAX_ALLOCS; ++i) {
        memory = &comm_memory[i];
        offset = COMM_ADDRESS(address) - memory->at[comm_self.rank];
        if ((offset < memory->size) && (size <= memory->size - offset)) {
            return memory->at[peer] + offset;
        }
    }
    abort();
}

STANDIN_API void nvshmem_free(void *address)
{
    comm_memory_t *memory = comm_memory;
    int rank;

    while (memory->at[comm_self.rank] != COMM_ADDRESS(address)) {
        comm_check(++memory < comm_memory + COMM_MAX_ALLOCS);
    }
    comm_barrier(&comm_self);
    for (rank = 0; rank < comm_self.ranks; ++rank) {
        comm_check((rank == comm_self.rank) ||
                   (cuIpcCloseMemHandle(memory->at[rank]) == 0));
    }
    comm_barrier(&comm_self);
    comm_check(cuMemFree_v2(COMM_ADDRESS(address)) == 0);
    memset(memory, 0, sizeof(*memory));
}

STANDIN_API void nvshmemx_putmem_signal_on_stream(void *dst, const void *src,
                                                  size_t size, uint64_t *signal,
                                                  uint64_t value, int op,
                                                  int peer, void *stream)
{
    comm_check((op == COMM_SIGNAL_SET) &&
               (cuMemcpyAsync(comm_there(dst, size, peer), COMM_ADDRESS(src),
                              size, stream) == 0) &&
               (cuStreamWriteValue64_v2(stream,
                                        comm_there(signal, sizeof(value), peer),
                                        value, 0) == 0));
}

STANDIN_API void nvshmemx_signal_wait_until_on_stream(uint64_t *signal, int cmp,
                                                      uint64_t value,
                                                      void *stream)
{
    comm_check((cmp == COMM_CMP_GE) &&
               (cuStreamWaitValue64_v2(stream, COMM_ADDRESS(signal), value,
                                       0) == 0));
}
