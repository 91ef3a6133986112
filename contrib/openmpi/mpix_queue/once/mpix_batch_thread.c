/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_batch_thread.c - the thread that calls MPI for messages on streams.
 *
 * It sleeps while no message is begun. While some are, it looks after them
 * again and again, with pauses that get longer while nothing happens: MPI has
 * nothing to sleep on. A stream that begins more wakes it at once.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "mpix_batch.h"
#include "mpix_queue.h"
#include "request/mpix_match.h"

#include <ucs_backoff.h>
#include <ucs_thread.h>
#include <ucs_trace.h>

#include <ucs/sys/math.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Looks without a pause, then looks behind which other threads get the
 * processor, then sleeps of so many nanoseconds, doubled each time: longer
 * than in ucs_backoff(), as streams wake the thread */
#define MPIX_BATCH_POLLS     16
#define MPIX_BATCH_YIELDS    64
#define MPIX_BATCH_SLEEP_MIN 50000l
#define MPIX_BATCH_SLEEP_MAX 1000000l

/* Looks at receives that are to end, in MPI_Finalize: some seconds at most */
#define MPIX_BATCH_END_SPINS 20000

/* Rounds between two looks for messages that wait: some tenths of a second
 * where nothing happens */
#define MPIX_BATCH_LOOKS 256


/* What the thread has begun, in arrays of the same order. Its own.
 *
 * OpenMPI raises an error of MPI_Testsome through the communicator of the first
 * request of the array whose last use has failed, even if it is inactive now.
 * The array's first one is such, on a communicator of this library that returns
 * errors: what fails here is raised by the application's own call. */
typedef struct mpix_active {
    MPI_Request *inners;   /* One more: the first one */
    mpix_msg_t  **messages;
    int         *indices;  /* For MPI_Testsome */
    MPI_Status  *statuses; /* The same */
    int         count;
    int         max;       /* There is room for so many */
} mpix_active_t;


static struct {
    pthread_mutex_t lock;  /* Protects all but the last two. Streams take it,
                              for a few instructions */
    pthread_cond_t  cond;
    int             is_running;
    int             is_stopping;
    pthread_t       thread;
    ucs_list_link_t begun; /* mpix_msg_t, oldest first */
    MPI_Comm        comm;  /* Of failed requests; made before the thread */
    uint64_t        count; /* Messages that were begun; atomic, as is the next
                              one */
    uint64_t        colls; /* Of these, collectives */
} mpix_thread = {
    .lock  = PTHREAD_MUTEX_INITIALIZER,
    .comm  = MPI_COMM_NULL,
    .begun = UCS_LIST_INITIALIZER(&mpix_thread.begun, &mpix_thread.begun)
};


void mpix_batch_thread_forked(void)
{
    pthread_mutex_init(&mpix_thread.lock, NULL);
}

static void *mpix_active_grow(void **array_p, size_t size)
{
    void *array = realloc(*array_p, size);

    if (array != NULL) {
        *array_p = array;
    }
    return array;
}

/* Makes room for one more. */
static int mpix_active_reserve(mpix_active_t *active)
{
    const int max = ucs_max(2 * active->max, 64);

    if (active->count < active->max) {
        return 1;
    }
    if (!mpix_active_grow((void**)&active->inners,
                          (max + 1) * sizeof(*active->inners)) ||
        !mpix_active_grow((void**)&active->messages,
                          max * sizeof(*active->messages)) ||
        !mpix_active_grow((void**)&active->indices,
                          max * sizeof(*active->indices)) ||
        !mpix_active_grow((void**)&active->statuses,
                          max * sizeof(*active->statuses))) {
        return 0;
    }
    if (active->max == 0) {
        active->inners[0] = MPI_REQUEST_NULL;
    }
    active->max = max;
    return 1;
}

/* Makes the array's first request, if OpenMPI has freed it: a receive that was
 * too short. MPICH would raise that one's error on MPI_COMM_WORLD. */
static void mpix_active_make_first(mpix_active_t *active)
{
#ifdef OPEN_MPI
    static char in[1], out[2];
    MPI_Request *first = &active->inners[0];
    int is_done        = 0;
    int rc             = MPI_SUCCESS;
    MPI_Status status;

    if ((*first != MPI_REQUEST_NULL) ||
        (PMPI_Recv_init(in, sizeof(in), MPI_BYTE, 0, 0, mpix_thread.comm,
                        first) != MPI_SUCCESS)) {
        return;
    }

    PMPI_Start(first);
    PMPI_Send(out, sizeof(out), MPI_BYTE, 0, 0, mpix_thread.comm);
    while (!is_done && (rc == MPI_SUCCESS)) {
        rc = PMPI_Testall(1, first, &is_done, &status);
    }
#endif
}

/* MPI_Testsome of so many of the begun messages, beginning with one. The
 * indices and codes are those of the messages. Returns an MPI code, which was
 * raised to nobody. */
static int mpix_active_testsome(mpix_active_t *active, int *count_p)
{
    int rc, i;

    mpix_active_make_first(active);
    *count_p = 0;
    rc       = PMPI_Testsome(active->count + 1, active->inners, count_p,
                             active->indices, active->statuses);
    for (i = 0; i < *count_p; ++i) {
        --active->indices[i];
    }
    return rc;
}

/* Ends a message that MPI has not begun, or does not end. */
static void mpix_active_pass(mpix_msg_t *msg, int code)
{
    MPI_Status status;

    memset(&status, 0, sizeof(status));
    status.MPI_SOURCE = MPI_PROC_NULL;
    status.MPI_TAG    = MPI_ANY_TAG;
    mpix_batch_end(msg, code, &status);
}

/* Gives a message to MPI. Returns MPI's code. */
static int mpix_msg_begin(mpix_msg_t *msg)
{
    int rc = MPI_SUCCESS;

    if (msg->coll != NULL) {
        return mpix_once_coll_begin(msg);
    }
    if (!msg->is_recv) {
        rc = mpix_batch_copy(msg, NULL);
    }
    return (rc == MPI_SUCCESS) ? PMPI_Start(&msg->inner) : rc;
}

/* MPI has completed a message, without an error. */
static int mpix_msg_finish(mpix_msg_t *msg, const MPI_Status *status)
{
    return (msg->coll != NULL) ? mpix_once_coll_end(msg) :
           msg->is_recv        ? mpix_batch_copy(msg, status) :
                                 MPI_SUCCESS;
}

/* MPI has a message: count it, and record in the trace why it is MPI's. */
static void mpix_active_note_begun(const mpix_msg_t *msg)
{
    static const ucs_trace_kind_t kind = {
        "give to MPI", "nic", UCS_TRACE_INSTANT, UCS_TRACE_FLOW_NONE,
        {{"call", UCS_TRACE_VALUE_TEXT}, {"by", UCS_TRACE_VALUE_TEXT},
         {"rank", UCS_TRACE_VALUE_NUMBER}, {"tag", UCS_TRACE_VALUE_NUMBER},
         {"elements", UCS_TRACE_VALUE_NUMBER}}
    };
    const char *by                        = (msg->coll != NULL) ?
            "MPI, thread: a collective" :
            "MPI, thread: the communicator is not for queues only";
    uint64_t values[UCS_TRACE_MAX_VALUES] = {
        (uintptr_t)msg->func, (uintptr_t)by, (uint64_t)msg->rank,
        (uint64_t)msg->tag, (uint64_t)msg->count
    };

    __atomic_add_fetch(&mpix_thread.count, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&mpix_thread.colls, msg->coll != NULL, __ATOMIC_RELAXED);
    if (ucs_trace_is_on()) {
        ucs_trace_record(&kind, 0, 0, values);
    }
}

/* MPICH's MPI_Testsome passes over what is started to MPI_PROC_NULL. */
static void mpix_active_begin(mpix_active_t *active, mpix_msg_t *msg)
{
    int rc = MPI_ERR_NO_MEM;

    if (msg->is_null) {
        mpix_active_note_begun(msg);
        mpix_active_pass(msg, MPI_SUCCESS);
        return;
    }

    if (mpix_active_reserve(active)) {
        rc = mpix_msg_begin(msg);
    }
    if (rc != MPI_SUCCESS) {
        mpix_active_pass(msg, rc);
        return;
    }

    active->messages[active->count] = msg;
    active->inners[++active->count] = msg->inner;
    mpix_active_note_begun(msg);
}

/* Begins all messages of some starts. */
static void mpix_active_begin_all(mpix_active_t *active,
                                  ucs_list_link_t *messages)
{
    mpix_msg_t *msg;

    while (!ucs_list_is_empty(messages)) {
        msg = ucs_list_extract_head(messages, mpix_msg_t, list);
        if (msg->waited > 0) {
            mpix_batch_settle(msg->batch, msg->waited);
        }
        mpix_active_begin(active, msg);
    }
    mpix_batch_trim(MPIX_QUEUE_MAX_DROPPED);
}

/* Takes the messages out that were ended: the others stay in their order. */
static void mpix_active_compact(mpix_active_t *active)
{
    int i, count = 0;

    for (i = 0; i < active->count; ++i) {
        if (active->messages[i] != NULL) {
            active->messages[count] = active->messages[i];
            active->inners[++count] = active->inners[i + 1];
        }
    }
    active->count = count;
}

/* MPI's request is left to it, with the memory of a collective. */
static void mpix_active_abandon(mpix_msg_t *msg, int code)
{
    msg->inner = MPI_REQUEST_NULL;
    if (msg->coll != NULL) {
        mpix_msg_ref(msg);
    }
    mpix_active_pass(msg, code);
}

/* MPI has raised an error with which nothing can be said of its requests: they
 * are left to it, and the messages fail. Returns how many. */
static int mpix_active_give_up(mpix_active_t *active, int code)
{
    const int count = active->count;
    int i;

    for (i = 0; i < count; ++i) {
        mpix_active_abandon(active->messages[i], code);
    }
    active->count = 0;
    return count;
}

/* Ends the messages that MPI has completed; returns how many. */
static int mpix_active_test(mpix_active_t *active)
{
    int rc, i, index, code, class, count;
    mpix_msg_t *msg;

    rc    = mpix_active_testsome(active, &count);
    class = rc;
    PMPI_Error_class(rc, &class);
    if ((rc != MPI_SUCCESS) && (class != MPI_ERR_IN_STATUS)) {
        return mpix_active_give_up(active, rc);
    }

    for (i = 0; i < count; ++i) {
        index = active->indices[i];
        code  = (rc == MPI_SUCCESS) ? MPI_SUCCESS :
                                      active->statuses[i].MPI_ERROR;
        msg   = active->messages[index];

        if (code == MPI_SUCCESS) {
            code = mpix_msg_finish(msg, &active->statuses[i]);
        }
        active->messages[index] = NULL;
        msg->inner              = active->inners[index + 1]; /* OpenMPI frees
                                                                one that
                                                                failed */
        mpix_batch_end(msg, code, &active->statuses[i]);
    }
    if (count > 0) {
        mpix_active_compact(active);
    }
    return count;
}

static void mpix_active_note(mpix_msg_t *msg, double now)
{
    char peer[MPIX_MSG_PEER_MAX] = "";
    char text[MPIX_MSG_PEER_MAX + 32];

    if (msg->coll == NULL) {
        mpix_msg_peer_str(msg, peer, sizeof(peer));
    }
    snprintf(text, sizeof(text), "%s of %d elements %s",
             (msg->coll != NULL) ? "collective" :
             msg->is_recv        ? "receive" : "send", msg->count, peer);
    mpix_waits_note(&msg->waits, now, msg->func, text);
}

/* Notes the messages that have waited for a moment. */
static void mpix_active_look(const mpix_active_t *active)
{
    const double now = mpix_now();
    int i;

    for (i = 0; i < active->count; ++i) {
        if (mpix_waits_is_due(&active->messages[i]->waits, now)) {
            mpix_active_note(active->messages[i], now);
        }
    }
}

/* MPI goes: receives that have not matched are cancelled, sends are left to
 * it. */
static void mpix_active_end(mpix_active_t *active)
{
    unsigned spins = 0;
    MPI_Status status;
    int i;

    if (active->count > 0) {
        mpix_warn("%d messages of MPIX_Enqueue_send and MPIX_Enqueue_recv are "
                  "not complete at MPI_Finalize", active->count);
    }

    memset(&status, 0, sizeof(status));
    for (i = active->count - 1; i >= 0; --i) {
        if (active->messages[i]->coll != NULL) {
            mpix_active_abandon(active->messages[i], MPI_ERR_OTHER);
            active->messages[i] = NULL;
        } else if (!active->messages[i]->is_recv) {
            mpix_batch_end(active->messages[i], MPI_SUCCESS, &status);
            active->messages[i] = NULL;
        } else {
            PMPI_Cancel(&active->inners[i + 1]);
        }
    }
    mpix_active_compact(active);
    while ((active->count > 0) && (spins < MPIX_BATCH_END_SPINS)) {
        if (mpix_active_test(active) == 0) {
            ucs_backoff(&spins);
        }
    }
    mpix_active_give_up(active, MPI_ERR_OTHER);
    mpix_batch_trim(0);
    if ((active->max > 0) && (active->inners[0] != MPI_REQUEST_NULL)) {
        PMPI_Request_free(&active->inners[0]);
    }
    free(active->inners);
    free(active->messages);
    free(active->indices);
    free(active->statuses);
}

/* Nothing happened in so many looks: pauses, unless a stream begins something
 * meanwhile. Called, and returns, with the lock. */
static void mpix_thread_pause(unsigned idle)
{
    struct timespec end;
    long sleep;

    if (idle <= MPIX_BATCH_POLLS) {
        return;
    }
    if (idle <= (MPIX_BATCH_POLLS + MPIX_BATCH_YIELDS)) {
        pthread_mutex_unlock(&mpix_thread.lock);
        sched_yield();
        pthread_mutex_lock(&mpix_thread.lock);
        return;
    }

    idle -= MPIX_BATCH_POLLS + MPIX_BATCH_YIELDS;
    sleep = ucs_min(MPIX_BATCH_SLEEP_MIN << ucs_min(idle, 10u),
                    MPIX_BATCH_SLEEP_MAX);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += sleep;
    end.tv_sec  += end.tv_nsec / 1000000000l;
    end.tv_nsec %= 1000000000l;
    pthread_cond_timedwait(&mpix_thread.cond, &mpix_thread.lock, &end);
}

/* Waits until there is something to begin or to look after. Returns 0 if there
 * never will be. */
static int mpix_thread_wait(int num_active, unsigned idle,
                            ucs_list_link_t *messages)
{
    int is_stopping;

    pthread_mutex_lock(&mpix_thread.lock);
    while (ucs_list_is_empty(&mpix_thread.begun) && (num_active == 0) &&
           !mpix_thread.is_stopping) {
        pthread_cond_wait(&mpix_thread.cond, &mpix_thread.lock);
    }
    if (ucs_list_is_empty(&mpix_thread.begun) && !mpix_thread.is_stopping) {
        mpix_thread_pause(idle);
    }
    ucs_list_splice_tail(messages, &mpix_thread.begun);
    ucs_list_head_init(&mpix_thread.begun);
    is_stopping = mpix_thread.is_stopping;
    pthread_mutex_unlock(&mpix_thread.lock);
    return !is_stopping;
}

static void *mpix_thread_run(void *arg)
{
    mpix_active_t active = {.count = 0};
    unsigned idle        = 0;
    unsigned rounds      = 0;
    ucs_list_link_t messages;
    int is_going;

    ucs_list_head_init(&messages);
    do {
        is_going = mpix_thread_wait(active.count, idle, &messages);
        ++idle;
        if (!ucs_list_is_empty(&messages)) {
            mpix_active_begin_all(&active, &messages);
            idle = 0;
        }
        if ((active.count > 0) && (mpix_active_test(&active) > 0)) {
            idle = 0;
        }
        if ((++rounds % MPIX_BATCH_LOOKS) == 0) {
            mpix_active_look(&active);
        }
    } while (is_going);

    mpix_active_end(&active);
    return arg;
}

/* The communicator of requests that have failed: local. Needs the lock. */
static int mpix_thread_make_comm(void)
{
    if ((mpix_thread.comm == MPI_COMM_NULL) &&
        (PMPI_Comm_dup(MPI_COMM_SELF, &mpix_thread.comm) != MPI_SUCCESS)) {
        return ENOMEM;
    }
    PMPI_Comm_set_errhandler(mpix_thread.comm, MPI_ERRORS_RETURN);
    return 0;
}

/* Needs the lock */
static int mpix_thread_start(void)
{
    pthread_condattr_t attr;
    int ret;

    ret = mpix_thread_make_comm();
    if (ret != 0) {
        return ret;
    }

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&mpix_thread.cond, &attr);
    pthread_condattr_destroy(&attr);

    ret = ucs_thread_create(&mpix_thread.thread, NULL, mpix_thread_run, NULL);
    if (ret == 0) {
        mpix_thread.is_running = 1;
    }
    return ret;
}

int mpix_batch_thread_get(const char *func)
{
    int ret = 0;
    int level;

    PMPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "MPI was initialised without MPI_THREAD_MULTIPLE, "
                         "which a thread of the library needs: call "
                         "MPI_Init_thread with it, or set "
                         "OMPI_MPI_THREAD_LEVEL=3 (OpenMPI) or "
                         "MPIX_QUEUE_THREAD_MULTIPLE=y");
    }

    if (!mpix_global_attach_finalize()) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "cannot attach to MPI_COMM_SELF");
    }

    mpix_error_init(); /* For mpix_msg_cancel() */
    pthread_mutex_lock(&mpix_thread.lock);
    if (mpix_thread.is_stopping) {
        ret = ECANCELED;
    } else if (!mpix_thread.is_running) {
        ret = mpix_thread_start();
    }
    pthread_mutex_unlock(&mpix_thread.lock);

    if (ret != 0) {
        return mpix_fail(func, MPI_ERR_OTHER, "no thread for messages: %s",
                         (ret == ECANCELED) ? "MPI is being finalised" :
                                              strerror(ret));
    }
    return MPI_SUCCESS;
}

void mpix_batch_thread_begin(void *arg)
{
    mpix_msg_t *msg     = arg;
    mpix_batch_t *batch = msg->batch; /* Its queue stays until this has passed
                                       */
    ucs_list_link_t messages;
    int is_running;

    ucs_list_add_tail(&msg->list, &messages); /* The head */

    pthread_mutex_lock(&mpix_thread.lock);
    is_running = mpix_thread.is_running;
    if (is_running) {
        ucs_list_splice_tail(&mpix_thread.begun, &messages);
        pthread_cond_signal(&mpix_thread.cond);
    }
    pthread_mutex_unlock(&mpix_thread.lock);

    if (!is_running) { /* MPI is finalised: what there is of it is gone */
        ucs_list_for_each(msg, &messages, list) {
            mpix_msg_pass(msg);
            mpix_batch_release(batch, 1);
        }
    }
    __atomic_store_n(batch->passed, *batch->passed + 1, __ATOMIC_RELEASE);
}

void mpix_batch_thread_stop(void)
{
    int is_running;

    pthread_mutex_lock(&mpix_thread.lock);
    is_running              = mpix_thread.is_running;
    mpix_thread.is_running  = 0;
    mpix_thread.is_stopping = 1;
    if (is_running) {
        pthread_cond_signal(&mpix_thread.cond);
    }
    pthread_mutex_unlock(&mpix_thread.lock);

    if (is_running) {
        pthread_join(mpix_thread.thread, NULL);
        PMPI_Comm_free(&mpix_thread.comm);
    }
    if (mpix_env_is_yes("UCX_ST_STATS")) {
        mpix_batch_print_stats(stderr);
    }
}

void mpix_batch_print_stats(FILE *stream)
{
    uint64_t colls = __atomic_load_n(&mpix_thread.colls, __ATOMIC_RELAXED);
    uint64_t count = mpix_batch_begun();

    if (count > 0) {
        fprintf(stream, "summary: %lu messages used once by MPI, which a "
                "thread called: %lu as their communicators are not for queues "
                "only, %lu collectives\nthread_msgs %lu\nthread_colls %lu\n",
                count, count - colls, colls, count, colls);
    }
}

uint64_t mpix_batch_begun(void)
{
    return __atomic_load_n(&mpix_thread.count, __ATOMIC_RELAXED);
}
