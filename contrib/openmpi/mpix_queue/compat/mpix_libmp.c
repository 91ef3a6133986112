/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_libmp.c - the calls of compat/mp.h: begin and end, and the queues of
 * streams.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "compat/mpix_libmp.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_upcalls.h"
#include "once/mpix_fifo.h"

#include <ucs_backoff.h>
#include <ucs_gstream.h>
#include <ucs_gstream_memory.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* How long mp_finalize waits for puts that nobody has waited for, and for keys
 * and registrations that are in use, seconds */
#define MPIX_LIBMP_END_TIME 5.0

/* In how many rounds a wait for a word asks once whether the stream is lost */
#define MPIX_LIBMP_ASK 64


mpix_libmp_t mpix_libmp = {
    .handle   = MPI_COMM_NULL,
    .streams  = UCS_LIST_INITIALIZER(&mpix_libmp.streams, &mpix_libmp.streams),
    .pages    = UCS_LIST_INITIALIZER(&mpix_libmp.pages, &mpix_libmp.pages),
    .dropped  = UCS_LIST_INITIALIZER(&mpix_libmp.dropped, &mpix_libmp.dropped),
    .regs     = UCS_LIST_INITIALIZER(&mpix_libmp.regs, &mpix_libmp.regs),
    .windows  = UCS_LIST_INITIALIZER(&mpix_libmp.windows, &mpix_libmp.windows),
    .dqs      = UCS_LIST_INITIALIZER(&mpix_libmp.dqs, &mpix_libmp.dqs)
};


int mpix_libmp_fail(const char *func, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mpix_print_error(func, "%s", text);
    return MP_FAILURE;
}

int mpix_libmp_code(int rc)
{
    if (rc == MPI_SUCCESS) {
        return MP_SUCCESS;
    }
    mpix_print_code(rc);
    return MP_FAILURE;
}

int mpix_libmp_check_init(const char *func)
{
    return (mpix_libmp.handle != MPI_COMM_NULL) ?
                   MP_SUCCESS :
                   mpix_libmp_fail(func, "mp_init was not called, or "
                                         "mp_finalize was");
}

int MPIX_Mp_query_param(mp_param_t param, int *value)
{
    if ((param != MP_PARAM_VERSION) || (value == NULL)) {
        return mpix_libmp_fail("mp_query_param", "parameter %d, to %p",
                               (int)param, (void*)value);
    }
    *value = MP_API_VERSION;
    return MP_SUCCESS;
}

int mpix_libmp_all(const char *func, int rc)
{
    int mine = (rc != MP_SUCCESS);
    int most = 1;

    if ((PMPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX,
                        mpix_libmp.handle) != MPI_SUCCESS) ||
        (mine < most)) {
        return mpix_libmp_fail(func, "another rank has failed");
    }
    return rc;
}

/* Begin and end */

static int mpix_libmp_check_args(const char *func, MPI_Comm handle,
                                 const int *peers, int count, int gpu_id)
{
    int i, size;

    PMPI_Comm_size(handle, &size);
    if ((count < 0) || ((count > 0) && (peers == NULL))) {
        return mpix_libmp_fail(func, "invalid array of %d peers", count);
    }
    if (gpu_id < 0) {
        return mpix_libmp_fail(func, "invalid number %d of a GPU", gpu_id);
    }
    for (i = 0; i < count; ++i) {
        if ((peers[i] < 0) || (peers[i] >= size)) {
            return mpix_libmp_fail(func, "peer %d of %d: there is no rank %d",
                                   i, count, peers[i]);
        }
    }
    return MP_SUCCESS;
}

/* The queue and its stream for what the host posts. */
static int mpix_libmp_make_host(const char *func)
{
    const ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = UCS_GSTREAM_TYPE_HOST
    };
    ucs_gstream_h stream;
    ucs_status_t status;
    int rc;

    status = ucs_gstream_create(&params, &stream);
    if (status != UCS_OK) {
        return mpix_libmp_fail(func, "no stream of the host: %s",
                               ucs_status_string(status));
    }
    rc = mpix_queue_open(func, stream, &mpix_libmp.host);
    if (rc != MPI_SUCCESS) {
        (void)ucs_gstream_destroy(stream);
        return mpix_libmp_code(rc);
    }
    mpix_libmp.host->is_made     = 1;
    mpix_libmp.host->is_internal = 1;
    return MP_SUCCESS;
}

/* What this process needs; all processes have told where they are. */
static int mpix_libmp_connect(const char *func, const int *peers, int count)
{
    int i, rc;

    mpix_libmp.peers = calloc(mpix_libmp.size, sizeof(*mpix_libmp.peers));
    if ((mpix_libmp.peers == NULL) ||
        (mpix_comm_get(mpix_libmp.handle, &mpix_libmp.comm) != MPI_SUCCESS)) {
        return mpix_libmp_fail(func, "no memory");
    }
    for (i = 0; i < count; ++i) {
        rc = mpix_only_peer(func, mpix_libmp.comm, peers[i],
                            &mpix_libmp.peers[peers[i]].peer,
                            &mpix_libmp.scope);
        if (rc != MPI_SUCCESS) {
            return mpix_libmp_code(rc);
        }
    }
    return mpix_libmp_make_host(func);
}

/* No request names the queue any more. */
static void mpix_libmp_put_queue(mpix_stream_queue_t *entry)
{
    mpix_lock();
    entry->queue->goes_with_stream = 1;
    mpix_unlock();
    mpix_stream_queue_put(entry);
}

/* Frees what mp_init has made. Collective. */
static void mpix_libmp_close(void)
{
    mpix_libmp_stream_t *stream;
    mpix_libmp_page_t *page;

    while (!ucs_list_is_empty(&mpix_libmp.streams)) {
        stream = ucs_list_extract_head(&mpix_libmp.streams,
                                       mpix_libmp_stream_t, list);
        mpix_libmp_put_queue(stream->entry);
        free(stream);
    }
    while (!ucs_list_is_empty(&mpix_libmp.pages)) {
        page = ucs_list_extract_head(&mpix_libmp.pages, mpix_libmp_page_t,
                                     list);
        (void)ucs_gstream_memory_remove(page->start);
        free(page);
    }
    if (mpix_libmp.host != NULL) {
        mpix_queue_shut(mpix_libmp.host);
        mpix_libmp.host = NULL;
    }
    if (mpix_libmp.comm != NULL) {
        mpix_comm_drop(mpix_libmp.comm);
        mpix_libmp.comm = NULL;
    }
    free(mpix_libmp.peers);
    mpix_libmp.peers = NULL;
    kh_destroy_inplace(mpix_libmp, &mpix_libmp.requests);
    kh_init_inplace(mpix_libmp, &mpix_libmp.requests);
    mpix_libmp.end = 0;
    MPI_Comm_free(&mpix_libmp.handle); /* Set to MPI_COMM_NULL */
}

int MPIX_Mp_init(MPI_Comm comm, int *peers, int count, int flags, int gpu_id)
{
    static const char func[] = "mp_init";
    int rc;

    if (!mpix_mpi_is_active()) {
        return mpix_libmp_fail(func, "MPI is not initialised, or finalised "
                                     "already");
    }
    if (mpix_libmp.handle != MPI_COMM_NULL) {
        return mpix_libmp_fail(func, "called twice, without mp_finalize");
    }
    if ((comm == MPI_COMM_NULL) ||
        (MPI_Comm_dup(comm, &mpix_libmp.handle) != MPI_SUCCESS)) {
        return mpix_libmp_fail(func, "the communicator cannot be duplicated");
    }

    PMPI_Comm_set_errhandler(mpix_libmp.handle, MPI_ERRORS_RETURN);
    PMPI_Comm_size(mpix_libmp.handle, &mpix_libmp.size);
    rc = mpix_libmp_all(func, mpix_libmp_check_args(func, mpix_libmp.handle,
                                                    peers, count, gpu_id));
    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_code(mpix_only_set(func, mpix_libmp.handle));
    }
    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_all(func, mpix_libmp_connect(func, peers, count));
    }
    if (rc != MP_SUCCESS) {
        mpix_libmp_close();
    }
    return rc;
}

/* Whether nothing uses a request any more. One that is not is cancelled, if it
 * can be. */
static int mpix_libmp_request_stop(struct mp_request *req)
{
    ucs_status_t status = UCS_OK;

    if (req->state != MPIX_LIBMP_POSTED) {
        return 1;
    }
    if (req->st_req != NULL) {
        status = ucp_st_req_test(req->st_req, NULL);
        if (status == UCS_INPROGRESS) {
            (void)ucp_st_req_cancel(req->st_req);
        }
    }
    return (status != UCS_INPROGRESS) && !mpix_libmp_is_busy(req);
}

/* Frees one; whether it was not over. */
static int mpix_libmp_request_end(struct mp_request *req)
{
    int is_busy = !mpix_libmp_request_stop(req);

    mpix_libmp_request_free(req, is_busy);
    return is_busy;
}

void MPIX_Mp_finalize(void)
{
    unsigned spins = 0;
    unsigned count = 0;
    struct mp_request *req;

    if ((mpix_libmp.handle == MPI_COMM_NULL) || !mpix_mpi_is_active()) {
        return;
    }

    (void)PMPI_Barrier(mpix_libmp.handle); /* Others may still get and put */
    mpix_libmp.end = mpix_now() + MPIX_LIBMP_END_TIME;
    while (mpix_libmp_reap(), !ucs_list_is_empty(&mpix_libmp.dropped) &&
                                      (mpix_now() < mpix_libmp.end)) {
        ucs_backoff(&spins);
    }
    mpix_libmp_dqs_cleanup();
    kh_foreach_key(&mpix_libmp.requests, req, {
        count += mpix_libmp_request_end(req);
    })
    while (!ucs_list_is_empty(&mpix_libmp.dropped)) {
        count += mpix_libmp_request_end(ucs_list_head(&mpix_libmp.dropped,
                                                      struct mp_request, list));
    }
    if (count > 0) {
        mpix_warn("mp_finalize: %u requests are not over: nobody has waited "
                  "for them", count);
    }
    mpix_libmp_windows_cleanup();
    mpix_libmp_close();
}

/* Queues */

int mpix_libmp_get_queue(const char *func, cudaStream_t handle,
                         struct mpix_queue **queue_p)
{
    mpix_libmp_stream_t *stream;
    int rc;

    rc = mpix_libmp_check_init(func);
    if (rc != MP_SUCCESS) {
        return rc;
    }
    mpix_libmp_reap();
    ucs_list_for_each(stream, &mpix_libmp.streams, list) {
        if (mpix_stream_queue_is(stream->entry, (void*)handle)) {
            *queue_p = stream->entry->queue;
            return MP_SUCCESS;
        }
    }

    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return mpix_libmp_fail(func, "no memory");
    }
    rc = mpix_libmp_code(mpix_stream_queue_get(func, (void*)handle,
                                               &stream->entry));
    if (rc != MP_SUCCESS) {
        free(stream);
        return rc;
    }
    mpix_lock();
    stream->entry->queue->goes_with_stream = 0; /* Requests name it */
    mpix_unlock();
    ucs_list_add_tail(&mpix_libmp.streams, &stream->list);
    *queue_p = stream->entry->queue;
    return MP_SUCCESS;
}

/* Has devices reach the page of a word that they do not reach, until
 * mp_finalize, as LibMP does. */
static void mpix_libmp_reach(const struct mpix_queue *queue,
                             const volatile uint32_t *word)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    mpix_libmp_page_t *page;

    if (ucs_gstream_reaches(queue->stream, (const volatile uint64_t*)word)) {
        return;
    }
    page = calloc(1, sizeof(*page));
    if (page == NULL) {
        return; /* The stream refuses the word */
    }
    page->start = (void*)((uintptr_t)word - ((uintptr_t)word % size));
    if (ucs_gstream_memory_add(page->start, size, UCS_GSTREAM_MEMORY_HOST) ==
        UCS_OK) {
        ucs_list_add_tail(&mpix_libmp.pages, &page->list);
    } else {
        free(page);
    }
}

int mpix_libmp_command(const char *func, const struct mpix_queue *queue,
                       const ucs_gstream_cmd_t *cmds, size_t count)
{
    ucs_status_t status;
    size_t i;

    for (i = 0; i < count; ++i) {
        if ((cmds[i].type == UCS_GSTREAM_CMD_WAIT32) ||
            (cmds[i].type == UCS_GSTREAM_CMD_WRITE32)) {
            mpix_libmp_reach(queue, cmds[i].u.word32.address);
        }
    }
    status = ucs_gstream_enqueue(queue->stream, cmds, count);
    return (status == UCS_OK) ?
                   MP_SUCCESS :
                   mpix_libmp_fail(func, "the stream does not take the "
                                         "command: %s",
                                   ucs_status_string(status));
}

ucs_status_t mpix_libmp_cause(const struct mpix_queue *queue,
                              ucs_status_t status)
{
    ucs_status_t failed = ucp_st_queue_query(queue->st_queue, NULL);

    return ((failed == UCS_OK) || (failed == UCS_INPROGRESS)) ? status : failed;
}

ucs_status_t mpix_libmp_wait_word(const struct mpix_queue *queue,
                                  const volatile uint64_t *word)
{
    unsigned spins = 0;

    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) {
        ucp_st_worker_progress(mpix_global.st_worker);
        ucs_backoff(&spins);
        /* A queue in error lets its stream go on, unless that is lost. The
         * runtime of a device is asked now and then. */
        if (((spins % MPIX_LIBMP_ASK) == 0) &&
            (ucs_gstream_query(queue->stream) == UCS_ERR_IO_ERROR) &&
            !__atomic_load_n(word, __ATOMIC_ACQUIRE)) {
            return UCS_ERR_IO_ERROR;
        }
    }
    return UCS_OK;
}
