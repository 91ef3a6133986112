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

#define RT_POINTER(_address) ((void*)(uintptr_t)(_address))


/* Threads open a runtime, and retain contexts, at the same time */
static pthread_mutex_t rt_lock = PTHREAD_MUTEX_INITIALIZER;

static void rt_load(rt_t *rt, int is_hip)
{
    const char *dir = getenv(is_hip ? "ST_HIP_DIR" : "ST_CUDA_DIR");
    char path[512];
    void *file;

    dir = (dir != NULL) ? dir : STANDIN_DIR;
    snprintf(path, sizeof(path), "%s%s%s", dir, (*dir == '\0') ? "" : "/",
             is_hip ? "libamdhip64.so" : "libcuda.so.1");
    file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
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

const rt_t *rt_start(int is_hip)
{
    const rt_t *rt = rt_open(is_hip);

    CU_ASSERT_EQUAL_FATAL(rt_init(rt), RT_OK);
    CU_ASSERT_EQUAL_FATAL(rt_set_device(rt, 0), RT_OK);
    return rt;
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

int rt_copy_rows(const rt_t *rt, void *stream, void *dst, const void *src,
                 const rt_rows_t *rows)
{
    standin_cuda_copy_t copy = {
        .src_type   = 4,
        .src_device = RT_U64(src),
        .src_pitch  = rows->spitch,
        .dst_type   = 4,
        .dst_device = RT_U64(dst),
        .dst_pitch  = rows->dpitch,
        .width      = rows->width,
        .height     = rows->height
    };

    return rt->is_hip ?
           rt->hip.hipMemcpy2DAsync(dst, rows->dpitch, src, rows->spitch,
                                    rows->width, rows->height, 4, stream) :
           rt->cu.cuMemcpy2DAsync_v2(&copy, stream);
}

int rt_kernel(const rt_t *rt, void *stream, void (*func)(void *args),
              void *args, size_t size)
{
    const rt_launch_t launch = {func, 1, args, size};

    return rt_kernel_block(rt, stream, &launch);
}

int rt_kernel_block(const rt_t *rt, void *stream, const rt_launch_t *launch)
{
    void *end     = RT_POINTER(rt->is_hip ? 3 : 0);
    size_t size   = launch->size;
    void *extra[] = {RT_POINTER(1), launch->args, RT_POINTER(2), &size, end};

    return rt->is_hip ?
           rt->hip.hipModuleLaunchKernel(launch->func, 1, 1, 1, launch->threads,
                                         1, 1, 0, stream, NULL, extra) :
           rt->cu.cuLaunchKernel(launch->func, 1, 1, 1, launch->threads, 1, 1,
                                 0, stream, NULL, extra);
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

void *rt_host_alloc(const rt_t *rt, size_t size)
{
    void *address = NULL;

    CU_ASSERT_EQUAL_FATAL(rt->is_hip ?
                          rt->hip.hipHostMalloc(&address, size, 0) :
                          rt->cu.cuMemHostAlloc(&address, size, 0), RT_OK);
    memset(address, 0, size);
    return address;
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
                                                    RT_U64(address));
    info->is_device = (type == 2);
    info->dev       = RT_POINTER(dev);
    info->start     = RT_POINTER(start);
    return ((err == RT_OK) && (type == 0)) ? RT_INVALID : err;
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

int rt_ipc_open(const rt_t *rt, const standin_handle_t *handle, void **address)
{
    uint64_t dev = 0;
    int version  = 0;
    int err;

    if (rt->is_hip) {
        (void)rt->hip.hipRuntimeGetVersion(&version);
        return rt->hip.hipIpcOpenMemHandle(address, *handle,
                                           version >= 60000000);
    }
    err      = rt->cu.cuIpcOpenMemHandle_v2(&dev, *handle, 1);
    *address = RT_POINTER(dev);
    return err;
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

int rt_is_real(const rt_t *rt)
{
    return (rt->control.standin_counts == NULL) ||
           ((rt->control.standin_is_real != NULL) &&
            rt->control.standin_is_real());
}

standin_counts_t rt_counts(const rt_t *rt)
{
    standin_counts_t counts = {0};

    if (rt->control.standin_counts != NULL) {
        rt->control.standin_counts(&counts);
    }
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
