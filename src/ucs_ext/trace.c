/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - what the threads of a process do: settings, the file, and the
 * recording of events.
 *
 * At exit other threads still run, and go on recording: the rings can be read
 * meanwhile (trace_ring.h).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "trace_ring.h"
#include "trace_write.h"
#include "gstream_fork.h"
#include "gstream_futex.h"

#include <ucs_ext_config.h>

#include <ucs/debug/log_def.h>
#include <ucs/sys/string.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define TRACE_SIZE_MIN 4096ul
#define TRACE_SIZE_MAX (1ul << 30)

/* How long an exit waits for a thread that writes the file, seconds */
#define TRACE_EXIT_TIME 5


/* Settings, constant once read. */
typedef struct trace_config {
    char   *file;
    size_t size;
} trace_config_t;


/* What the process records to; constant once the switch is on, but for `lock`,
 * which is held while the file is written, and `lost`, which is atomic. */
static struct {
    pthread_once_t   once;
    pthread_mutex_t  lock;
    ucs_status_t     status; /* Of opening */
    int              fd;
    size_t           size; /* Of a ring, bytes */
    char             path[PATH_MAX];
    _Atomic uint64_t lost; /* Events for which there was no memory */
} trace_state = {
    .once = PTHREAD_ONCE_INIT,
    .lock = PTHREAD_MUTEX_INITIALIZER
};

/* The calling thread's; made for its first event. */
static __thread trace_ring_t *trace_ring_mine;

int ucs_trace_switch;


static ucs_config_field_t trace_config_table[] = {
    {"TRACE", "",
     "File to which the process writes what its threads and streams have\n"
     "done, in Chrome's trace format (JSON). In the name %p is the process id\n"
     "and %h the host's name: each process needs a file of its own. Empty:\n"
     "nothing is recorded.",
     ucs_offsetof(trace_config_t, file), UCS_CONFIG_TYPE_STRING},

    {"TRACE_SIZE", "8m",
     "Memory for the events of each thread, 4k to 1g. An event takes some 90\n"
     "bytes. When the memory is full, new events replace the oldest ones; the\n"
     "replaced ones are counted.",
     ucs_offsetof(trace_config_t, size), UCS_CONFIG_TYPE_MEMUNITS},

    {.name = NULL}
};
UCS_EXT_CONFIG_REGISTER_TABLE(trace_config_table, "Trace", "ST_",
                              trace_config_t)


/* Spans that have a name alone: calls of the library, and what applications
 * record */
static const ucs_trace_kind_t trace_kind_name = {
    .category = "host",
    .type     = UCS_TRACE_SPAN,
    .values   = {{"name", UCS_TRACE_VALUE_TEXT}}
};


static ucs_status_t trace_config_read(trace_config_t *config)
{
    return ucs_ext_config_fill(config, UCS_CONFIG_GET_TABLE(trace_config_table),
                               0);
}

/* The switch is on, with all that was written before: pairs with the release
 * store in trace_open_config() */
static int trace_is_open(void)
{
    return __atomic_load_n(&ucs_trace_switch, __ATOMIC_ACQUIRE);
}

/* With the lock, by the process that opened the file */
static ucs_status_t trace_write_file(void)
{
    FILE *file = NULL;
    int is_bad = 1;
    int fd;

    fd = dup(trace_state.fd);
    if ((fd >= 0) && (lseek(fd, 0, SEEK_SET) == 0) && (ftruncate(fd, 0) == 0)) {
        file = fdopen(fd, "w");
    }
    if (file != NULL) {
        trace_write(file, atomic_load(&trace_state.lost));
        is_bad  = ferror(file);
        is_bad |= (fclose(file) != 0);
    } else if (fd >= 0) {
        close(fd);
    }
    if (is_bad) {
        ucs_error("UCX_ST_TRACE: %s could not be written: %m",
                  trace_state.path);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

/* The file is the parent's, and its lock lasts until both have closed it */
void gstream_trace_forked(void)
{
    pthread_mutex_init(&trace_state.lock, NULL);
    if (trace_is_open()) {
        __atomic_store_n(&ucs_trace_switch, 0, __ATOMIC_RELAXED);
        close(trace_state.fd);
    }
}

ucs_status_t ucs_trace_flush(void)
{
    ucs_status_t status;

    if (!trace_is_open()) {
        return UCS_OK;
    }
    pthread_mutex_lock(&trace_state.lock);
    status = trace_write_file();
    pthread_mutex_unlock(&trace_state.lock);
    return status;
}

static void trace_at_exit(void)
{
    struct timespec limit;

    if (!trace_is_open()) {
        return; /* a forked child's parent has the file */
    }
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += TRACE_EXIT_TIME;
    if (pthread_mutex_timedlock(&trace_state.lock, &limit) != 0) {
        ucs_error("UCX_ST_TRACE: %s may lack the last events: another thread "
                  "is still writing it", trace_state.path);
        return;
    }
    (void)trace_write_file();
    pthread_mutex_unlock(&trace_state.lock);
}

/* A link could lead to a file that is not to be lost, and a pipe waits for a
 * reader */
static int trace_open_regular(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
                        O_NONBLOCK | O_NOCTTY, 0666);
    struct stat st;

    if (((fd < 0) && ((errno == ELOOP) || (errno == ENXIO))) ||
        ((fd >= 0) && ((fstat(fd, &st) != 0) || !S_ISREG(st.st_mode)))) {
        ucs_error("UCX_ST_TRACE: cannot write %s: it is a symbolic link, or no "
                  "regular file", path);
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    if (fd < 0) {
        ucs_error("UCX_ST_TRACE: cannot write %s: %m", path);
    }
    return fd;
}

/* The lock tells of another process with the same name for its file; it is
 * there as long as the process */
static ucs_status_t trace_open_file(const char *name)
{
    int fd;

    ucs_fill_filename_template(name, trace_state.path,
                               sizeof(trace_state.path));
    fd = trace_open_regular(trace_state.path);
    if (fd < 0) {
        return UCS_ERR_IO_ERROR;
    }
    if ((flock(fd, LOCK_EX | LOCK_NB) != 0) && (errno == EWOULDBLOCK)) {
        ucs_error("UCX_ST_TRACE: another process writes %s; %%p in the name "
                  "gives each its own", trace_state.path);
        close(fd);
        return UCS_ERR_IO_ERROR;
    }
    if (ftruncate(fd, 0) != 0) {
        ucs_error("UCX_ST_TRACE: cannot write %s: %m", trace_state.path);
        close(fd);
        return UCS_ERR_IO_ERROR;
    }
    trace_state.fd = fd;
    return UCS_OK;
}

static ucs_status_t trace_open_config(const trace_config_t *config)
{
    ucs_status_t status;

    if (config->file[0] == '\0') {
        return UCS_OK;
    }
    if ((config->size < TRACE_SIZE_MIN) || (config->size > TRACE_SIZE_MAX)) {
        ucs_error("UCX_ST_TRACE_SIZE must be 4k to 1g");
        return UCS_ERR_INVALID_PARAM;
    }
    trace_state.size = config->size;
    status           = trace_open_file(config->file);
    if (status != UCS_OK) {
        return status;
    }
    if (atexit(trace_at_exit) != 0) {
        ucs_error("UCX_ST_TRACE: atexit() failed: %s would stay empty",
                  trace_state.path);
        close(trace_state.fd);
        return UCS_ERR_NO_RESOURCE;
    }
    __atomic_store_n(&ucs_trace_switch, 1, __ATOMIC_RELEASE);
    return UCS_OK;
}

static void trace_open_once(void)
{
    trace_config_t config;

    trace_state.status = trace_config_read(&config);
    if (trace_state.status == UCS_OK) {
        trace_state.status = trace_open_config(&config);
        ucs_config_parser_release_opts(&config, trace_config_table);
    }
}

ucs_status_t ucs_trace_open(void)
{
    pthread_once(&trace_state.once, trace_open_once);
    return trace_state.status;
}

uint64_t ucs_trace_time(void)
{
    return gstream_time();
}

/* NULL without memory: the event is lost, and counted */
static trace_ring_t *trace_ring_get(void)
{
    if (ucs_unlikely(trace_ring_mine == NULL) && trace_is_open()) {
        trace_ring_mine = trace_ring_create(trace_state.size);
    }
    return trace_ring_mine;
}

void ucs_trace_record(const ucs_trace_kind_t *kind, uint64_t begin, uint64_t id,
                      const uint64_t *values)
{
    trace_event_t event = {
        .kind  = kind,
        .begin = begin,
        .end   = ucs_trace_time(),
        .id    = id
    };
    trace_ring_t *ring  = trace_ring_get();
    unsigned i;

    if (ucs_unlikely(ring == NULL)) {
        atomic_fetch_add(&trace_state.lost, 1);
        return;
    }
    if (event.end == begin) {
        ++event.end; /* an arrow begins or ends inside of the span */
    }
    for (i = 0; (i < UCS_TRACE_MAX_VALUES) && (kind->values[i].name != NULL);
         ++i) {
        event.values[i] = values[i];
    }
    trace_ring_add(ring, &event);
}

void ucs_trace_record_name(const char *name, uint64_t begin)
{
    uint64_t value = (uintptr_t)name;

    ucs_trace_record(&trace_kind_name, begin, 0, &value);
}

void ucs_trace_push(void)
{
    trace_ring_t *ring = trace_ring_get();

    if (ring != NULL) {
        if (ring->open.depth < TRACE_RING_MAX_DEPTH) {
            ring->open.begins[ring->open.depth] = ucs_trace_time();
        }
        ++ring->open.depth;
    }
}

void ucs_trace_pop(const ucs_trace_kind_t *kind, uint64_t id,
                   const uint64_t *values)
{
    trace_ring_t *ring = trace_ring_mine;

    if ((ring == NULL) || (ring->open.depth == 0)) {
        atomic_fetch_add(&trace_state.lost, 1); /* it was not begun */
        return;
    }
    if (--ring->open.depth < TRACE_RING_MAX_DEPTH) {
        ucs_trace_record(kind, ring->open.begins[ring->open.depth], id,
                         values);
    }
}

void trace_spans_swap(trace_spans_t *spans)
{
    trace_ring_t *ring = trace_ring_get();
    trace_spans_t mine;

    if (ring != NULL) {
        mine       = ring->open;
        ring->open = *spans;
        *spans     = mine;
    }
}

unsigned ucs_trace_depth(void)
{
    return (trace_ring_mine == NULL) ? 0 : trace_ring_mine->open.depth;
}
