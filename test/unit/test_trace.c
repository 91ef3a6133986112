/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_trace.c - the trace's rings and file (UCX_ST_TRACE).
 *
 * A process opens its trace once: every case is a child of this one, which
 * reads the file that the child leaves.
 */
#include "gstream_util.h"
#include "st_cunit.h"
#include "trace_ring.h"

#include <ucs_trace.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUM_SPANS   20
#define NUM_THREADS 4
#define NUM_EVENTS 1000

/* Of children that found something wrong, by line */
#define CHECK(_condition) \
    do { \
        if (!(_condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #_condition); \
            _exit(1); \
        } \
    } while (0)


static char dir[] = "/tmp/test_trace.XXXXXX";
static char path[sizeof(dir) + 32];
static char *text; /* Of the file, once it was read */

static _Atomic unsigned num_allocs; /* Calls of calloc() */
static _Atomic int      no_memory;  /* They fail */

static const ucs_trace_kind_t number_kind = {
    .name     = "number",
    .category = "test",
    .type     = UCS_TRACE_SPAN,
    .values   = {{"value", UCS_TRACE_VALUE_NUMBER}}
};

void *__real_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    atomic_fetch_add(&num_allocs, 1);
    return atomic_load(&no_memory) ? NULL : __real_calloc(count, size);
}

static unsigned count_text(const char *what)
{
    unsigned count = 0;
    const char *found;

    for (found = strstr(text, what); found != NULL;
         found = strstr(found + 1, what)) {
        ++count;
    }
    return count;
}

/* A number of the file's head; -1 if it is not there */
static long head_number(const char *name)
{
    char key[64];
    char *found;

    snprintf(key, sizeof(key), "\"%s\":", name);
    found = strstr(text, key);
    return (found == NULL) ? -1 : atol(found + strlen(key));
}

static void read_file(const char *name)
{
    FILE *file = fopen(name, "r");
    size_t length;

    CU_ASSERT_FATAL(file != NULL);
    CU_ASSERT_FATAL(fseek(file, 0, SEEK_END) == 0);
    length = ftell(file);
    rewind(file);
    text = realloc(text, length + 1);
    CU_ASSERT_FATAL(text != NULL);
    CU_ASSERT_EQUAL(fread(text, 1, length, file), length);
    text[length] = '\0';
    fclose(file);
    unlink(name);
}

/* Runs a child with a trace in `file`, if one is given, of rings of `size`; the
 * status that it ends with */
static int run_child(const char *file, const char *size, void (*func)(void))
{
    int status = -1;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        if (file != NULL) {
            setenv("UCX_ST_TRACE", file, 1);
        }
        setenv("UCX_ST_TRACE_SIZE", size, 1);
        func();
        exit(0);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    return status;
}

static void record_number(uint64_t number)
{
    ucs_trace_record(&number_kind, ucs_trace_time(), 0, &number);
}

static void child_wraps(void)
{
    uint64_t i;

    CHECK(ucs_trace_open() == UCS_OK);
    CHECK(ucs_trace_is_on());
    for (i = 0; i < NUM_EVENTS; ++i) {
        record_number(i);
    }
}

/* The newest events stay, the others are counted */
ST_CASE(wraps)
{
    char value[64];
    unsigned kept, i;

    CU_ASSERT_EQUAL(run_child(path, "4k", child_wraps), 0);
    read_file(path);
    kept = count_text("\"name\":\"number\"");
    CU_ASSERT(kept > 10);
    CU_ASSERT_EQUAL(kept, (4096 - sizeof(trace_ring_t)) /
                          sizeof(trace_event_t));
    CU_ASSERT_EQUAL(head_number("recorded"), NUM_EVENTS);
    CU_ASSERT_EQUAL(head_number("dropped"), NUM_EVENTS - kept);
    for (i = NUM_EVENTS - kept; i < NUM_EVENTS; ++i) {
        snprintf(value, sizeof(value), "{\"value\":%u}", i);
        CU_ASSERT_EQUAL(count_text(value), 1);
    }
}

/* Nothing is dropped that there is room for */
ST_CASE(fits)
{
    CU_ASSERT_EQUAL(run_child(path, "1m", child_wraps), 0);
    read_file(path);
    CU_ASSERT_EQUAL(count_text("\"name\":\"number\""), NUM_EVENTS);
    CU_ASSERT_EQUAL(head_number("dropped"), 0);
}

static const ucs_trace_kind_t async_kind = {
    .name     = "async",
    .category = "test",
    .type     = UCS_TRACE_ASYNC,
    .values   = {{"value", UCS_TRACE_VALUE_NUMBER}}
};

static const ucs_trace_kind_t instant_kind = {
    .name     = "instant",
    .category = "test",
    .type     = UCS_TRACE_INSTANT,
    .values   = {{"value", UCS_TRACE_VALUE_HEX}}
};

static void child_kinds(void)
{
    const uint64_t values[] = {17, 0x2a};

    CHECK(ucs_trace_open() == UCS_OK);
    ucs_trace_record(&async_kind, ucs_trace_time(), 0x5c, &values[0]);
    ucs_trace_record(&instant_kind, 0, 0, &values[1]);
}

/* An asynchronous span has a begin and an end of one number, a moment has
 * neither */
ST_CASE(kinds)
{
    CU_ASSERT_EQUAL(run_child(path, "4k", child_kinds), 0);
    read_file(path);
    CU_ASSERT_EQUAL(count_text("{\"ph\":\"b\""), 1);
    CU_ASSERT_EQUAL(count_text("{\"ph\":\"e\""), 1);
    CU_ASSERT_EQUAL(count_text("\"name\":\"async\""), 2);
    CU_ASSERT_EQUAL(count_text("\"id2\":{\"local\":\"0x5c\"}"), 2);
    CU_ASSERT_EQUAL(count_text("{\"value\":17}"), 1);
    CU_ASSERT_EQUAL(count_text("{\"ph\":\"i\""), 1);
    CU_ASSERT_EQUAL(count_text("\"name\":\"instant\""), 1);
    CU_ASSERT_EQUAL(count_text("{\"value\":\"0x2a\"}"), 1);
    CU_ASSERT_EQUAL(head_number("recorded"), 2);
}

static void *thread_main(void *arg)
{
    uint64_t i;

    (void)arg;
    for (i = 0; i < NUM_EVENTS; ++i) {
        record_number(i);
    }
    return NULL;
}

/* The file is written again and again while threads record, in rings that the
 * writing is slower than */
static void child_threads(void)
{
    pthread_t threads[NUM_THREADS];
    int i;

    CHECK(ucs_trace_open() == UCS_OK);
    for (i = 0; i < NUM_THREADS; ++i) {
        CHECK(pthread_create(&threads[i], NULL, thread_main, NULL) == 0);
    }
    for (i = 0; i < 10; ++i) {
        CHECK(ucs_trace_flush() == UCS_OK);
    }
    for (i = 0; i < NUM_THREADS; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

ST_CASE(threads)
{
    CU_ASSERT_EQUAL(run_child(path, "8k", child_threads), 0);
    read_file(path);
    CU_ASSERT_EQUAL(count_text("\"thread_name\""), NUM_THREADS);
    CU_ASSERT_EQUAL(head_number("recorded"), NUM_THREADS * NUM_EVENTS);
    CU_ASSERT_EQUAL(head_number("dropped"),
                    (NUM_THREADS * NUM_EVENTS) -
                    (long)count_text("\"name\":\"number\""));
    CU_ASSERT_EQUAL(count_text("{\"value\":999}"), NUM_THREADS);
}

static void *endless_main(void *arg)
{
    (void)arg;
    for (;;) {
        record_number(1);
    }
    return NULL;
}

static void child_exits(void)
{
    pthread_t thread;

    CHECK(ucs_trace_open() == UCS_OK);
    CHECK(pthread_create(&thread, NULL, endless_main, NULL) == 0);
    record_number(0);
}

/* A thread records while the process exits */
ST_CASE(exits)
{
    CU_ASSERT_EQUAL(run_child(path, "64k", child_exits), 0);
    read_file(path);
    CU_ASSERT_EQUAL(count_text("{\"value\":0}"), 1);
    CU_ASSERT(head_number("recorded") >= 1);
}

static void kernel(void *arg)
{
    (void)arg;
}

static void push_func(void *arg)
{
    (void)arg;
    if (ucs_trace_is_on()) {
        ucs_trace_push();
    }
}

static void pop_func(void *arg)
{
    const uint64_t value = 77;

    (void)arg;
    ucs_trace_pop(&number_kind, 0, &value);
}

/* Commands of each type; the wait for the first word ends at once, that for
 * the second one when the stream sleeps */
static void run_stream(void)
{
    uint64_t words[2] = {1, 0};
    char bytes[2]     = {0};
    gstream_util_t util;

    gstream_util_open(&util);
    ucs_gstream_enqueue_func(util.stream, kernel, NULL);
    ucs_gstream_enqueue_wait64(util.stream, &words[0], 1);
    ucs_gstream_enqueue_copy(util.stream, &bytes[0], &bytes[1], 1);
    ucs_gstream_enqueue_func(util.stream, push_func, NULL);
    ucs_gstream_enqueue_func(util.stream, kernel, NULL);
    ucs_gstream_enqueue_func(util.stream, pop_func, NULL);
    ucs_gstream_synchronize(util.stream);
    ucs_gstream_enqueue_wait64(util.stream, &words[1], 1);
    gstream_util_until_asleep(util.tid);
    gstream_util_let_go(&words[1], 1);
    ucs_gstream_synchronize(util.stream);
    gstream_util_finish(util.stream);
}

static void child_stream(void)
{
    uint64_t begin;

    run_stream();
    CHECK(ucs_trace_is_on());
    begin = ucs_trace_begin();
    CHECK(begin != 0);
    ucs_trace_end("a \"name\"", begin);
}

ST_CASE(stream)
{
    unsigned kernels;

    CU_ASSERT_EQUAL(run_child(path, "1m", child_stream), 0);
    read_file(path);
    CU_ASSERT_EQUAL(count_text("{\"name\":\"st-host-0\"}"), 1);
    /* Those of gstream_util_open(), and one of two: the other runs within a
     * span of the library's */
    kernels = count_text("\"cat\":\"kernel\"");
    CU_ASSERT_EQUAL(kernels, 2);
    CU_ASSERT_EQUAL(count_text("{\"value\":77}"), 1);
    CU_ASSERT(count_text("\"name\":\"at once\",\"cat\":\"word\"") >= 1);
    CU_ASSERT_EQUAL(count_text("\"name\":\"slept\",\"cat\":\"word\""), 1);
    CU_ASSERT_EQUAL(count_text("\"name\":\"copy\""), 1);
    CU_ASSERT(count_text("\"name\":\"ucs_gstream_synchronize\"") >= 2);
    CU_ASSERT_EQUAL(count_text("\"name\":\"a \\\"name\\\"\""), 1);
}

/* Neither memory nor time is taken where nothing is recorded */
static void store_func(void *arg)
{
    gstream_util_store(arg, 1);
}

/* The span of one stream of a group is open while another one has its threads:
 * two of them, so that it may end in another thread than it began in */
static void child_group(void)
{
    ucs_gstream_group_h group = gstream_util_group(2);
    ucs_gstream_h waits       = gstream_util_create_on(group, 0);
    ucs_gstream_h runs        = gstream_util_create_on(group, 0);
    uint64_t words[NUM_SPANS] = {0};
    unsigned i;

    for (i = 0; i < NUM_SPANS; ++i) {
        CHECK(ucs_gstream_enqueue_func(waits, push_func, NULL) == UCS_OK);
        CHECK(ucs_gstream_enqueue_wait64(waits, &words[i], 1) == UCS_OK);
        CHECK(ucs_gstream_enqueue_func(waits, pop_func, NULL) == UCS_OK);
        CHECK(ucs_gstream_enqueue_func(runs, kernel, NULL) == UCS_OK);
        CHECK(ucs_gstream_synchronize(runs) == UCS_OK);
        CHECK(ucs_gstream_enqueue_func(runs, store_func, &words[i]) == UCS_OK);
        CHECK(ucs_gstream_synchronize(waits) == UCS_OK);
    }
    gstream_util_finish(waits);
    gstream_util_finish(runs);
    gstream_util_group_finish(group);
}

ST_CASE(group)
{
    CU_ASSERT_EQUAL(run_child(path, "1m", child_group), 0);
    read_file(path);
    CU_ASSERT_EQUAL(count_text("\"cat\":\"kernel\""), 2 * NUM_SPANS);
    CU_ASSERT_EQUAL(count_text("{\"value\":77}"), NUM_SPANS);
    CU_ASSERT_EQUAL(head_number("dropped"), 0);
}

static void child_off(void)
{
    run_stream();
    CHECK(!ucs_trace_is_on());
    CHECK(ucs_trace_begin() == 0);
    ucs_trace_end("nothing", ucs_trace_begin());
    CHECK(ucs_trace_flush() == UCS_OK);
    CHECK(trace_ring_first() == NULL);
    CHECK(atomic_load(&num_allocs) == 0);
}

ST_CASE(off)
{
    CU_ASSERT_EQUAL(run_child(NULL, "1m", child_off), 0);
    CU_ASSERT_EQUAL(run_child("", "1m", child_off), 0);
}

/* Memory for the first event of a thread, and no more */
static void child_memory(void)
{
    unsigned i;

    CHECK(ucs_trace_open() == UCS_OK);
    CHECK(atomic_load(&num_allocs) == 0);
    for (i = 0; i < NUM_EVENTS; ++i) {
        record_number(i);
        CHECK(atomic_load(&num_allocs) == 1);
    }
}

ST_CASE(memory)
{
    CU_ASSERT_EQUAL(run_child(path, "4k", child_memory), 0);
    read_file(path);
}

/* What there is no memory for is counted */
static void child_lost(void)
{
    CHECK(ucs_trace_open() == UCS_OK);
    atomic_store(&no_memory, 1);
    record_number(1);
    record_number(2);
    push_func(NULL);
    pop_func(NULL);
    atomic_store(&no_memory, 0);
    record_number(3);
}

ST_CASE(lost)
{
    CU_ASSERT_EQUAL(run_child(path, "1m", child_lost), 0);
    read_file(path);
    CU_ASSERT_EQUAL(count_text("\"name\":\"number\""), 1);
    CU_ASSERT_EQUAL(head_number("recorded"), 4);
    CU_ASSERT_EQUAL(head_number("dropped"), 3);
}

static void child_refused(void)
{
    ucs_gstream_params_t params = {.field_mask = 0};
    ucs_gstream_h stream;

    CHECK(ucs_gstream_create(&params, &stream) != UCS_OK);
    CHECK(!ucs_trace_is_on());
    /* Again, without a second try */
    CHECK(ucs_gstream_create(&params, &stream) != UCS_OK);
}

ST_CASE(refused)
{
    CU_ASSERT_EQUAL(run_child("/nonexistent/trace", "1m", child_refused), 0);
    CU_ASSERT_EQUAL(run_child(dir, "1m", child_refused), 0);
    CU_ASSERT_EQUAL(run_child(path, "4000", child_refused), 0);
    CU_ASSERT_EQUAL(run_child(path, "2g", child_refused), 0);
    CU_ASSERT_EQUAL(run_child(path, "inf", child_refused), 0);
    CU_ASSERT_EQUAL(run_child(path, "some", child_refused), 0);
}

/* What the name leads to is not written to, nor is anything waited for */
ST_CASE(not_regular)
{
    char link[sizeof(path) + 8], fifo[sizeof(path) + 8];
    FILE *file = fopen(path, "w");

    snprintf(link, sizeof(link), "%s.link", path);
    snprintf(fifo, sizeof(fifo), "%s.fifo", path);
    CU_ASSERT_FATAL((file != NULL) && (fputs("precious", file) >= 0) &&
                    (fclose(file) == 0));
    CU_ASSERT_FATAL((symlink(path, link) == 0) && (mkfifo(fifo, 0600) == 0));
    CU_ASSERT_EQUAL(run_child(link, "1m", child_refused), 0);
    CU_ASSERT_EQUAL(run_child(fifo, "1m", child_refused), 0);
    CU_ASSERT_EQUAL(run_child("/dev/null", "1m", child_refused), 0);
    read_file(path);
    CU_ASSERT_STRING_EQUAL(text, "precious");
    CU_ASSERT_EQUAL(unlink(link), 0);
    CU_ASSERT_EQUAL(unlink(fifo), 0);
}

/* The file is another process's, which is told so; once that one is gone it is
 * free */
static void child_shared(void)
{
    int status = -1;
    pid_t first, second;
    int fds[2];
    char byte;

    CHECK(pipe(fds) == 0);
    first = fork();
    if (first == 0) {
        CHECK(ucs_trace_open() == UCS_OK);
        CHECK(write(fds[1], "", 1) == 1);
        for (;;) {
            pause();
        }
    }
    CHECK(read(fds[0], &byte, 1) == 1);
    second = fork();
    if (second == 0) {
        CHECK(ucs_trace_open() == UCS_ERR_IO_ERROR);
        _exit(0);
    }
    CHECK((waitpid(second, &status, 0) == second) && (status == 0));
    CHECK(kill(first, SIGKILL) == 0);
    CHECK(waitpid(first, &status, 0) == first);
    CHECK(ucs_trace_open() == UCS_OK);
}

ST_CASE(shared)
{
    CU_ASSERT_EQUAL(run_child(path, "1m", child_shared), 0);
    read_file(path);
}

/* A file that cannot be written later is told by its writer */
static void child_full(void)
{
    struct rlimit limit = {.rlim_cur = 100, .rlim_max = 100};

    CHECK(ucs_trace_open() == UCS_OK);
    record_number(1);
    CHECK(ucs_trace_flush() == UCS_OK);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(ucs_trace_flush() == UCS_ERR_IO_ERROR);
    _exit(0);
}

ST_CASE(full)
{
    CU_ASSERT_EQUAL(run_child(path, "1m", child_full), 0);
    read_file(path);
}

/* A forked process has the parent's events, and does not write them */
static void child_forks(void)
{
    int status = -1;
    pid_t child;

    CHECK(ucs_trace_open() == UCS_OK);
    record_number(1);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        record_number(2);
        CHECK(ucs_trace_flush() == UCS_OK);
        exit(0);
    }
    CHECK((waitpid(child, &status, 0) == child) && (status == 0));
    CHECK(access(path, F_OK) != 0); /* Its name has %p */
}

ST_CASE(forks)
{
    char pattern[sizeof(path) + 8];
    char host[64] = "";
    int status    = -1;
    char name[sizeof(path) + 96];
    pid_t child;

    (void)gethostname(host, sizeof(host) - 1);
    snprintf(pattern, sizeof(pattern), "%s.%%h.%%p", path);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        setenv("UCX_ST_TRACE", pattern, 1);
        child_forks();
        exit(0);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    snprintf(name, sizeof(name), "%s.%s.%d", path, host, (int)child);
    read_file(name);
    CU_ASSERT_EQUAL(count_text("{\"value\":1}"), 1);
    CU_ASSERT_EQUAL(count_text("{\"value\":2}"), 0);
}

int main(int argc, char **argv)
{
    int ret;

    unsetenv("UCX_ST_TRACE");
    if (mkdtemp(dir) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    snprintf(path, sizeof(path), "%s/trace", dir);
    ret = st_cunit_main("trace", argc, argv);
    unlink(path);
    rmdir(dir);
    free(text);
    return ret;
}
