/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_util.c - what the stream tests share. */
#include "gstream_util.h"

#include <ucs/config/global_opts.h>

#include <CUnit/CUnit.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OBSERVE_MSEC 400

/* A sleeping wait looks at its word after 1, 2, 4, ..., 32 ms, and then every
 * 50 ms; a few more for what the kernel adds. */
#define RECHECK_NSEC  50000000ull
#define RECHECK_EXTRA 10

/* What a thread has done so far. */
typedef struct {
    uint64_t sleeps; /* Voluntary context switches */
    uint64_t time;   /* Monotonic time of this reading, ns */
} usage_t;

ucs_gstream_h gstream_util_create(void)
{
    return gstream_util_create_on(NULL, 0);
}

ucs_gstream_group_h gstream_util_group(unsigned num_threads)
{
    ucs_gstream_group_params_t params = {
        .field_mask  = UCS_GSTREAM_GROUP_PARAM_FIELD_NUM_THREADS,
        .num_threads = num_threads
    };
    ucs_gstream_group_h group = NULL;

    CU_ASSERT_EQUAL_FATAL(ucs_gstream_group_create(&params, &group), UCS_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(group);
    return group;
}

ucs_gstream_h gstream_util_create_on(ucs_gstream_group_h group, int priority)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                      UCS_GSTREAM_PARAM_FIELD_PRIORITY,
        .type       = UCS_GSTREAM_TYPE_HOST,
        .group      = group,
        .priority   = priority
    };
    ucs_gstream_h stream = NULL;

    if (group != NULL) {
        params.field_mask |= UCS_GSTREAM_PARAM_FIELD_GROUP;
    }
    CU_ASSERT_EQUAL_FATAL(ucs_gstream_create(&params, &stream), UCS_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    return stream;
}

ucs_gstream_type_t gstream_util_type(int is_hip)
{
    return is_hip ? UCS_GSTREAM_TYPE_HIP : UCS_GSTREAM_TYPE_CUDA;
}

static ucs_gstream_h create_gpu(int is_hip, uint64_t fields, void *native)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE | fields,
        .type       = gstream_util_type(is_hip),
        .native     = native
    };
    ucs_gstream_h stream = NULL;

    CU_ASSERT_EQUAL_FATAL(ucs_gstream_create(&params, &stream), UCS_OK);
    return stream;
}

ucs_gstream_h gstream_util_create_gpu(int is_hip)
{
    return create_gpu(is_hip, 0, NULL);
}

ucs_gstream_h gstream_util_create_native(int is_hip, void *native)
{
    return create_gpu(is_hip, UCS_GSTREAM_PARAM_FIELD_NATIVE, native);
}

void gstream_util_group_finish(ucs_gstream_group_h group)
{
    CU_ASSERT_EQUAL(ucs_gstream_group_destroy(group), UCS_OK);
}

void gstream_util_sleepy(int enable)
{
    if (enable) {
        setenv("UCX_GSTREAM_SPIN", "0", 1);
        setenv("UCX_GSTREAM_YIELD_TIME", "0", 1);
    } else {
        unsetenv("UCX_GSTREAM_SPIN");
        unsetenv("UCX_GSTREAM_YIELD_TIME");
    }
}

void gstream_util_finish(ucs_gstream_h stream)
{
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_OK);
}

void gstream_util_run(void (*body)(ucs_gstream_h stream))
{
    ucs_gstream_h stream = gstream_util_create();

    body(stream);
    gstream_util_finish(stream);
}

void gstream_util_refused(const ucs_gstream_params_t *params,
                          ucs_status_t status)
{
    ucs_gstream_h stream = (ucs_gstream_h)&stream;

    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_create(params, &stream), status);
    gstream_util_quiet(0);
    CU_ASSERT_PTR_EQUAL(stream, (ucs_gstream_h)&stream);
}

ucs_gstream_cmd_t gstream_util_cmd_func(ucs_gstream_func_t func, void *arg)
{
    return (ucs_gstream_cmd_t){
        .type   = UCS_GSTREAM_CMD_FUNC,
        .u.func = {func, arg}
    };
}

ucs_gstream_cmd_t gstream_util_cmd_word(ucs_gstream_cmd_type_t type,
                                        volatile uint64_t *address,
                                        uint64_t value)
{
    return (ucs_gstream_cmd_t){
        .type   = type,
        .u.word = {address, value}
    };
}

void gstream_util_func(ucs_gstream_h stream, ucs_gstream_func_t func, void *arg)
{
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_func(stream, func, arg), UCS_OK);
}

void gstream_util_wait(ucs_gstream_h stream, volatile uint64_t *word,
                       uint64_t value)
{
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(stream, word, value), UCS_OK);
}

void gstream_util_write(ucs_gstream_h stream, volatile uint64_t *word,
                        uint64_t value)
{
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_write64(stream, word, value), UCS_OK);
}

void gstream_util_launch(ucs_gstream_h stream, ucs_gstream_func_t func,
                         const void *args, size_t size)
{
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_launch(stream, func, args, size),
                    UCS_OK);
}

void gstream_util_count(void *arg)
{
    ++*(uint64_t*)arg;
}

pid_t gstream_util_tid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

static void gstream_util_identify(void *arg)
{
    gstream_util_t *util = arg;

    util->tid = gstream_util_tid();
}

void gstream_util_open(gstream_util_t *util)
{
    gstream_util_open_on(util, NULL);
}

void gstream_util_open_on(gstream_util_t *util, ucs_gstream_group_h group)
{
    util->stream = gstream_util_create_on(group, 0);
    CU_ASSERT_EQUAL_FATAL(ucs_gstream_enqueue_func(util->stream,
                                                   gstream_util_identify, util),
                          UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucs_gstream_synchronize(util->stream), UCS_OK);
}

/* Finds "name:" in a thread's status and scans what follows. */
static int gstream_util_status(pid_t tid, const char *name, const char *format,
                               void *value)
{
    size_t length = strlen(name);
    char path[64], line[256];
    int found = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
    file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }

    while (!found && (fgets(line, sizeof(line), file) != NULL)) {
        found = (strncmp(line, name, length) == 0) &&
                (sscanf(line + length, format, value) == 1);
    }
    fclose(file);
    return found;
}

void gstream_util_until_asleep(pid_t tid)
{
    char state = 0;

    while (state != 'S') {
        CU_ASSERT_FATAL(gstream_util_status(tid, "State:", " %c", &state));
        gstream_util_pass_time(1);
    }
}

uint64_t gstream_util_clock(clockid_t clock)
{
    struct timespec ts = {0};

    CU_ASSERT_EQUAL(clock_gettime(clock, &ts), 0);
    return (ts.tv_sec * 1000000000ull) + ts.tv_nsec;
}

static void gstream_util_usage(const gstream_util_t *util, usage_t *usage)
{
    CU_ASSERT(gstream_util_status(util->tid, "voluntary_ctxt_switches:",
                                  "%lu", &usage->sleeps));
    usage->time = gstream_util_clock(CLOCK_MONOTONIC);
}

void gstream_util_check_sleep(const gstream_util_t *util, int is_waiting)
{
    uint64_t allowed = 1;
    usage_t before, after;

    gstream_util_until_asleep(util->tid);
    gstream_util_usage(util, &before);
    gstream_util_pass_time(OBSERVE_MSEC);
    gstream_util_usage(util, &after);
    if (is_waiting) {
        allowed = ((after.time - before.time) / RECHECK_NSEC) + RECHECK_EXTRA;
    }
    CU_ASSERT((after.sleeps - before.sleeps) <= allowed);
    gstream_util_until_asleep(util->tid); /* it does not poll */
}

static void *gstream_util_waiter_main(void *arg)
{
    gstream_util_waiter_t *waiter = arg;

    __atomic_store_n(&waiter->tid, gstream_util_tid(), __ATOMIC_RELEASE);
    waiter->status = (waiter->event == NULL) ?
                     ucs_gstream_synchronize(waiter->stream) :
                     ucs_gstream_event_synchronize(waiter->event);
    return NULL;
}

void gstream_util_waiter_start(gstream_util_waiter_t *waiter)
{
    pid_t tid = 0;

    waiter->tid    = 0;
    waiter->status = UCS_ERR_LAST;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&waiter->thread, NULL,
                                         gstream_util_waiter_main, waiter),
                          0);
    while (tid == 0) {
        gstream_util_pass_time(1);
        tid = __atomic_load_n(&waiter->tid, __ATOMIC_ACQUIRE);
    }
    gstream_util_until_asleep(tid);
}

void gstream_util_waiter_join(gstream_util_waiter_t *waiter)
{
    pthread_join(waiter->thread, NULL);
    CU_ASSERT_EQUAL(waiter->status, UCS_OK);
}

void gstream_util_pass_time(unsigned msec)
{
    struct timespec ts = {
        .tv_sec  = msec / 1000,
        .tv_nsec = (msec % 1000) * 1000000l
    };

    nanosleep(&ts, NULL);
}

void gstream_util_store(volatile uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

void gstream_util_let_go(volatile uint64_t *word, uint64_t value)
{
    gstream_util_store(word, value);
    ucs_gstream_wake(word);
}

uint64_t gstream_util_load(const volatile uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void gstream_util_quiet(int quiet)
{
    static ucs_log_level_t saved;

    if (quiet) {
        saved = ucs_global_opts.log_component.log_level;
        ucs_global_opts.log_component.log_level = UCS_LOG_LEVEL_FATAL;
    } else {
        ucs_global_opts.log_component.log_level = saved;
    }
}
