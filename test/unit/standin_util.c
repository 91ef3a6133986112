/* SPDX-License-Identifier: BSD-3-Clause */
/* standin_util.c - one interface to both stand-ins of GPU runtimes. */
#include "standin_util.h"

#include "st_cunit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RT_ADDRESS(_pointer) ((uint64_t)(uintptr_t)(_pointer))
#define RT_POINTER(_address) ((void*)(uintptr_t)(_address))


/* Threads open a runtime, and retain contexts, at the same time */
static pthread_mutex_t rt_lock = PTHREAD_MUTEX_INITIALIZER;

static void rt_load(rt_t *rt, int is_hip)
{
    void *file = dlopen(is_hip ? STANDIN_DIR "/libamdhip64.so.5" :
                                 STANDIN_DIR "/libcuda.so.1",
                        RTLD_NOW | RTLD_LOCAL);

    if (file == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    rt->is_hip = is_hip;
#define RT_CU_LOAD(_func)      *(void**)&rt->cu._func = dlsym(file, #_func);
#define RT_HIP_LOAD(_func)     *(void**)&rt->hip._func = dlsym(file, #_func);
#define RT_CONTROL_LOAD(_func) *(void**)&rt->control._func = \
    dlsym(file, #_func);
    if (is_hip) {
        RT_HIP_FUNCS(RT_HIP_LOAD)
    } else {
        RT_CUDA_FUNCS(RT_CU_LOAD)
    }
    RT_CONTROL_FUNCS(RT_CONTROL_LOAD)
}

const rt_t *rt_open(int is_hip)
{
    static rt_t runtimes[2];
    static int is_loaded[2];

    pthread_mutex_lock(&rt_lock);
    if (!is_loaded[is_hip]) {
        rt_load(&runtimes[is_hip], is_hip);
        is_loaded[is_hip] = 1;
    }
    pthread_mutex_unlock(&rt_lock);
    return &runtimes[is_hip];
}

int rt_init(const rt_t *rt)
{
    return rt->is_hip ? rt->hip.hipInit(0) : rt->cu.cuInit(0);
}

const rt_t *rt_start(int is_hip)
{
    const rt_t *rt = rt_open(is_hip);

    CU_ASSERT_EQUAL_FATAL(rt_init(rt), RT_OK);
    CU_ASSERT_EQUAL_FATAL(rt_set_device(rt, 0), RT_OK);
    return rt;
}

int rt_device_count(const rt_t *rt, int *count)
{
    return rt->is_hip ? rt->hip.hipGetDeviceCount(count) :
                        rt->cu.cuDeviceGetCount(count);
}

/* A primary context that was retained stays */
int rt_set_device(const rt_t *rt, int device)
{
    static void *ctxs[16];
    int err = RT_OK;

    if (rt->is_hip) {
        return rt->hip.hipSetDevice(device);
    }
    pthread_mutex_lock(&rt_lock);
    if (ctxs[device] == NULL) {
        err = rt->cu.cuDevicePrimaryCtxRetain(&ctxs[device], device);
    }
    pthread_mutex_unlock(&rt_lock);
    return (err != RT_OK) ? err : rt->cu.cuCtxSetCurrent(ctxs[device]);
}

void *rt_stream(const rt_t *rt)
{
    void *stream = NULL;

    CU_ASSERT_EQUAL_FATAL(rt_stream_create(rt, 1, 0, &stream), RT_OK);
    return stream;
}

int rt_stream_create(const rt_t *rt, unsigned flags, int priority,
                     void **stream)
{
    return rt->is_hip ?
           rt->hip.hipStreamCreateWithPriority(stream, flags, priority) :
           rt->cu.cuStreamCreateWithPriority(stream, flags, priority);
}

int rt_stream_destroy(const rt_t *rt, void *stream)
{
    return rt->is_hip ? rt->hip.hipStreamDestroy(stream) :
                        rt->cu.cuStreamDestroy_v2(stream);
}

int rt_stream_priority(const rt_t *rt, void *stream, int *priority)
{
    return rt->is_hip ? rt->hip.hipStreamGetPriority(stream, priority) :
                        rt->cu.cuStreamGetPriority(stream, priority);
}

int rt_query(const rt_t *rt, void *stream)
{
    return rt->is_hip ? rt->hip.hipStreamQuery(stream) :
                        rt->cu.cuStreamQuery(stream);
}

int rt_sync(const rt_t *rt, void *stream)
{
    return rt->is_hip ? rt->hip.hipStreamSynchronize(stream) :
                        rt->cu.cuStreamSynchronize(stream);
}

int rt_sync_all(const rt_t *rt)
{
    return rt->is_hip ? rt->hip.hipDeviceSynchronize() :
                        rt->cu.cuCtxSynchronize();
}

int rt_write(const rt_t *rt, void *stream, void *address, uint64_t value)
{
    return rt->is_hip ?
           rt->hip.hipStreamWriteValue64(stream, address, value, 0) :
           rt->cu.cuStreamWriteValue64_v2(stream, RT_ADDRESS(address), value,
                                          0);
}

int rt_wait(const rt_t *rt, void *stream, void *address, uint64_t value,
            unsigned flags)
{
    return rt->is_hip ?
           rt->hip.hipStreamWaitValue64(stream, address, value, flags,
                                        UINT64_MAX) :
           rt->cu.cuStreamWaitValue64_v2(stream, RT_ADDRESS(address), value,
                                         flags);
}

int rt_write32(const rt_t *rt, void *stream, void *address, uint32_t value)
{
    return rt->is_hip ?
           rt->hip.hipStreamWriteValue32(stream, address, value, 0) :
           rt->cu.cuStreamWriteValue32_v2(stream, RT_ADDRESS(address), value,
                                          0);
}

int rt_wait32(const rt_t *rt, void *stream, void *address, uint32_t value,
              unsigned flags)
{
    return rt->is_hip ?
           rt->hip.hipStreamWaitValue32(stream, address, value, flags,
                                        UINT32_MAX) :
           rt->cu.cuStreamWaitValue32_v2(stream, RT_ADDRESS(address), value,
                                         flags);
}

/* The operations of both have one layout */
int rt_batch(const rt_t *rt, void *stream, unsigned count,
             standin_cuda_op_t *ops)
{
    standin_hip_op_t hip[32];

    if (rt->is_hip) {
        memcpy(hip, ops, count * sizeof(*ops));
        return rt->hip.hipStreamBatchMemOp(stream, count, hip, 0);
    }
    return rt->cu.cuStreamBatchMemOp_v2(stream, count, ops, 0);
}

int rt_copy(const rt_t *rt, void *stream, void *dst, const void *src,
            size_t size)
{
    return rt->is_hip ? rt->hip.hipMemcpyAsync(dst, src, size, 4, stream) :
                        rt->cu.cuMemcpyAsync(RT_ADDRESS(dst), RT_ADDRESS(src),
                                             size, stream);
}

int rt_copy_now(const rt_t *rt, void *dst, const void *src, size_t size)
{
    return rt->is_hip ?
           rt->hip.hipMemcpy(dst, src, size, 4) :
           rt->cu.cuMemcpy(RT_ADDRESS(dst), RT_ADDRESS(src), size);
}

int rt_copy_rows(const rt_t *rt, void *stream, void *dst, const void *src,
                 const rt_rows_t *rows)
{
    standin_cuda_copy_t copy = {
        .src_type   = 4,
        .src_device = RT_ADDRESS(src),
        .src_pitch  = rows->spitch,
        .dst_type   = 4,
        .dst_device = RT_ADDRESS(dst),
        .dst_pitch  = rows->dpitch,
        .width      = rows->width,
        .height     = rows->height
    };

    return rt->is_hip ?
           rt->hip.hipMemcpy2DAsync(dst, rows->dpitch, src, rows->spitch,
                                    rows->width, rows->height, 4, stream) :
           rt->cu.cuMemcpy2DAsync_v2(&copy, stream);
}

int rt_fill(const rt_t *rt, void *stream, void *dst, int value, size_t size)
{
    return rt->is_hip ? rt->hip.hipMemsetAsync(dst, value, size, stream) :
                        rt->cu.cuMemsetD8Async(RT_ADDRESS(dst),
                                               (unsigned char)value, size,
                                               stream);
}

int rt_kernel(const rt_t *rt, void *stream, void (*func)(void *args),
              void *args, size_t size)
{
    void *end     = RT_POINTER(rt->is_hip ? 3 : 0);
    void *extra[] = {RT_POINTER(1), args, RT_POINTER(2), &size, end};

    return rt->is_hip ?
           rt->hip.hipModuleLaunchKernel(func, 1, 1, 1, 1, 1, 1, 0, stream,
                                         NULL, extra) :
           rt->cu.cuLaunchKernel(func, 1, 1, 1, 1, 1, 1, 0, stream, NULL,
                                 extra);
}

/* Of an older HIP: functions that are under way, more than there ever are */
static struct {
    void (*func)(void *arg);
    void *arg;
} rt_callbacks[4096];

static void rt_callback(void *stream, int status, void *arg)
{
    size_t place = (size_t)arg;

    (void)stream;
    if (status == RT_OK) {
        rt_callbacks[place].func(rt_callbacks[place].arg);
    }
}

int rt_host(const rt_t *rt, void *stream, void (*func)(void *arg), void *arg)
{
    static _Atomic size_t count;
    size_t place;

    if (!rt->is_hip) {
        return rt->cu.cuLaunchHostFunc(stream, func, arg);
    }
    if (rt->hip.hipLaunchHostFunc != NULL) {
        return rt->hip.hipLaunchHostFunc(stream, func, arg);
    }
    place = atomic_fetch_add(&count, 1) % ST_CUNIT_COUNT(rt_callbacks);
    rt_callbacks[place].func = func;
    rt_callbacks[place].arg  = arg;
    return rt->hip.hipStreamAddCallback(stream,
                                        (func != NULL) ? rt_callback : NULL,
                                        (void*)place, 0);
}

int rt_alloc(const rt_t *rt, void **address, size_t size)
{
    uint64_t dev = 0;
    int err;

    if (rt->is_hip) {
        return rt->hip.hipMalloc(address, size);
    }
    err      = rt->cu.cuMemAlloc_v2(&dev, size);
    *address = RT_POINTER(dev);
    return err;
}

int rt_free(const rt_t *rt, void *address)
{
    return rt->is_hip ? rt->hip.hipFree(address) :
                        rt->cu.cuMemFree_v2(RT_ADDRESS(address));
}

void *rt_host_alloc(const rt_t *rt, size_t size)
{
    void *address = NULL;

    CU_ASSERT_EQUAL_FATAL(rt->is_hip ?
                          rt->hip.hipHostMalloc(&address, size, 0) :
                          rt->cu.cuMemHostAlloc(&address, size, 0), RT_OK);
    memset(address, 0, size);
    return address;
}

int rt_host_free(const rt_t *rt, void *address)
{
    return rt->is_hip ? rt->hip.hipHostFree(address) :
                        rt->cu.cuMemFreeHost(address);
}

int rt_register(const rt_t *rt, void *address, size_t size, unsigned flags)
{
    return rt->is_hip ? rt->hip.hipHostRegister(address, size, flags) :
                        rt->cu.cuMemHostRegister_v2(address, size, flags);
}

int rt_unregister(const rt_t *rt, void *address)
{
    return rt->is_hip ? rt->hip.hipHostUnregister(address) :
                        rt->cu.cuMemHostUnregister(address);
}

int rt_device_pointer(const rt_t *rt, void *host, void **dev)
{
    uint64_t address = 0;
    int err;

    if (rt->is_hip) {
        return rt->hip.hipHostGetDevicePointer(dev, host, 0);
    }
    err  = rt->cu.cuMemHostGetDevicePointer_v2(&address, host, 0);
    *dev = RT_POINTER(address);
    return err;
}

static int rt_info_hip(const rt_t *rt, const void *address, rt_info_t *info)
{
    standin_hip_pointer_t attributes = {0};
    int version                      = 0;
    int err = rt->hip.hipPointerGetAttributes(&attributes, address);

    if (err != RT_OK) {
        return err;
    }
    CU_ASSERT_EQUAL(rt->hip.hipRuntimeGetVersion(&version), RT_OK);
    info->is_device = attributes.type - (version >= 60000000);
    info->device    = attributes.device;
    info->dev       = attributes.device_pointer;
    return rt->hip.hipMemGetAddressRange(&info->start, &info->size,
                                         (void*)(uintptr_t)address);
}

int rt_info(const rt_t *rt, const void *address, rt_info_t *info)
{
    static const int asked[] = {2, 9, 3, 11, 12};
    unsigned type            = 0;
    uint64_t dev             = 0;
    uint64_t start           = 0;
    void *values[]           = {&type, &info->device, &dev, &start,
                                &info->size};
    int err;

    if (rt->is_hip) {
        return rt_info_hip(rt, address, info);
    }
    err             = rt->cu.cuPointerGetAttributes(5, asked, values,
                                                    RT_ADDRESS(address));
    info->is_device = (type == 2);
    info->dev       = RT_POINTER(dev);
    info->start     = RT_POINTER(start);
    return ((err == RT_OK) && (type == 0)) ? RT_INVALID : err;
}

int rt_export(const rt_t *rt, void *address, size_t size, int *fd)
{
    return rt->is_hip ?
           rt->hip.hipMemGetHandleForAddressRange(fd, address, size, 1, 0) :
           rt->cu.cuMemGetHandleForAddressRange(fd, RT_ADDRESS(address), size,
                                                1, 0);
}

int rt_event_create(const rt_t *rt, void **event)
{
    return rt->is_hip ? rt->hip.hipEventCreateWithFlags(event, 0) :
                        rt->cu.cuEventCreate(event, 0);
}

int rt_event_destroy(const rt_t *rt, void *event)
{
    return rt->is_hip ? rt->hip.hipEventDestroy(event) :
                        rt->cu.cuEventDestroy_v2(event);
}

int rt_event_record(const rt_t *rt, void *event, void *stream)
{
    return rt->is_hip ? rt->hip.hipEventRecord(event, stream) :
                        rt->cu.cuEventRecord(event, stream);
}

int rt_event_query(const rt_t *rt, void *event)
{
    return rt->is_hip ? rt->hip.hipEventQuery(event) :
                        rt->cu.cuEventQuery(event);
}

int rt_event_sync(const rt_t *rt, void *event)
{
    return rt->is_hip ? rt->hip.hipEventSynchronize(event) :
                        rt->cu.cuEventSynchronize(event);
}

int rt_event_time(const rt_t *rt, void *start, void *end, float *ms)
{
    return rt->is_hip ? rt->hip.hipEventElapsedTime(ms, start, end) :
                        rt->cu.cuEventElapsedTime(ms, start, end);
}

int rt_wait_event(const rt_t *rt, void *stream, void *event)
{
    return rt->is_hip ? rt->hip.hipStreamWaitEvent(stream, event, 0) :
                        rt->cu.cuStreamWaitEvent(stream, event, 0);
}

int rt_capture_begin(const rt_t *rt, void *stream)
{
    return rt->is_hip ? rt->hip.hipStreamBeginCapture(stream, 0) :
                        rt->cu.cuStreamBeginCapture_v2(stream, 0);
}

int rt_capture_end(const rt_t *rt, void *stream, size_t *nodes)
{
    void *graph = NULL;
    int err     = rt->is_hip ? rt->hip.hipStreamEndCapture(stream, &graph) :
                               rt->cu.cuStreamEndCapture(stream, &graph);

    if (err != RT_OK) {
        CU_ASSERT_PTR_NULL(graph);
        return err;
    }
    if (rt->is_hip) {
        CU_ASSERT_EQUAL(rt->hip.hipGraphGetNodes(graph, NULL, nodes), RT_OK);
        return rt->hip.hipGraphDestroy(graph);
    }
    CU_ASSERT_EQUAL(rt->cu.cuGraphGetNodes(graph, NULL, nodes), RT_OK);
    return rt->cu.cuGraphDestroy(graph);
}

int rt_is_capturing(const rt_t *rt, void *stream)
{
    int status = -1;

    CU_ASSERT_EQUAL(rt->is_hip ?
                    rt->hip.hipStreamIsCapturing(stream, &status) :
                    rt->cu.cuStreamIsCapturing(stream, &status), RT_OK);
    return status;
}

int rt_ipc_get(const rt_t *rt, void *address, rt_ipc_t *handle)
{
    return rt->is_hip ?
           rt->hip.hipIpcGetMemHandle(&handle->hip, address) :
           rt->cu.cuIpcGetMemHandle(&handle->cu, RT_ADDRESS(address));
}

int rt_ipc_open(const rt_t *rt, const rt_ipc_t *handle, void **address)
{
    uint64_t dev = 0;
    int version  = 0;
    int err;

    if (rt->is_hip) {
        (void)rt->hip.hipRuntimeGetVersion(&version);
        return rt->hip.hipIpcOpenMemHandle(address, handle->hip,
                                           version >= 60000000);
    }
    err      = rt->cu.cuIpcOpenMemHandle_v2(&dev, handle->cu, 1);
    *address = RT_POINTER(dev);
    return err;
}

int rt_ipc_close(const rt_t *rt, void *address)
{
    return rt->is_hip ? rt->hip.hipIpcCloseMemHandle(address) :
                        rt->cu.cuIpcCloseMemHandle(RT_ADDRESS(address));
}

int rt_peer_can(const rt_t *rt, int device, int peer)
{
    int can = -1;

    CU_ASSERT_EQUAL(rt->is_hip ?
                    rt->hip.hipDeviceCanAccessPeer(&can, device, peer) :
                    rt->cu.cuDeviceCanAccessPeer(&can, device, peer), RT_OK);
    return can;
}

int rt_peer_enable(const rt_t *rt, int peer)
{
    void *ctx = NULL;
    int err;

    if (rt->is_hip) {
        return rt->hip.hipDeviceEnablePeerAccess(peer, 0);
    }
    CU_ASSERT_EQUAL(rt->cu.cuDevicePrimaryCtxRetain(&ctx, peer), RT_OK);
    err = rt->cu.cuCtxEnablePeerAccess(ctx, 0);
    CU_ASSERT_EQUAL(rt->cu.cuDevicePrimaryCtxRelease_v2(peer), RT_OK);
    return err;
}

standin_counts_t rt_counts(const rt_t *rt)
{
    standin_counts_t counts;

    rt->control.standin_counts(&counts);
    return counts;
}

static void rt_exec(const char *tcase, const char *settings)
{
    char *argv[] = {(char*)"test_standin", (char*)"--case", (char*)tcase,
                    NULL};
    char *all    = strdup(settings);
    char *word, *rest;

    for (word = strtok_r(all, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        putenv(word);
    }
    setenv("RT_CHILD", "1", 1);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* One line a case is for the parent */
    execv("/proc/self/exe", argv);
    _exit(EXIT_FAILURE);
}

int rt_is_child(const char *tcase, const char *settings)
{
    int status = -1;
    pid_t child;

    if (getenv("RT_CHILD") != NULL) {
        return 1;
    }
    fflush(stdout);
    child = fork();
    if (child == 0) {
        rt_exec(tcase, settings);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 77)) {
        st_cunit_skip("the process that has the settings says why");
    } else {
        CU_ASSERT_EQUAL(status, 0);
    }
    return 0;
}
