/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_mpich.c - the calls of compat/mpich_stream.h: streams, and communicators
 * that have them.
 *
 * The streams of a communicator hang on it as an attribute, which duplicates of
 * it share.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "compat/mpich_stream.h"
#include "compat/mpix_mpich.h"
#include "binding/mpix_error.h"
#include "binding/mpix_handle.h"
#include "mpix_queue.h"
#include "once/mpix_batch.h"
#include "once/mpix_fifo.h"
#include "request/mpix_queues.h"

#include <ucs_gstream.h>
#include <ucs/sys/compiler_def.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Behind the handle of a stream. Constant but for what is noted. */
typedef struct mpix_mpich_object {
    unsigned   refs;   /* The handle's and those of communicators; atomic */
    void       *handle;
    MPIX_Queue queue;  /* NULL: no call is enqueued on it */
} mpix_mpich_object_t;

/* The streams of a communicator, and of its duplicates. Constant but for what
 * is noted. */
typedef struct mpix_mpich_comm {
    unsigned            refs;      /* Of communicators; atomic */
    int                 is_single; /* Calls are enqueued on its stream */
    int                 count;
    mpix_mpich_object_t *objects[]; /* A reference each, or NULL */
} mpix_mpich_comm_t;


/* Live streams: handles of objects. */
static UCS_LIST_HEAD(mpix_mpich_streams);

static int mpix_mpich_keyval = MPI_KEYVAL_INVALID;


int MPIX_Mpich_info_set_hex(MPI_Info info, const char *key, const void *value,
                            int value_size)
{
    static const char func[] = "MPIX_Info_set_hex";
    char text[MPI_MAX_INFO_VAL];
    int i;

    if ((value == NULL) || (value_size < 0) ||
        (value_size > (int)((sizeof(text) - 1) / 2))) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_ARG,
                                    "a value of %d bytes at %p", value_size,
                                    value));
    }

    text[0] = '\0';
    for (i = 0; i < value_size; ++i) {
        snprintf(&text[2 * i], 3, "%02x", ((const unsigned char*)value)[i]);
    }
    return PMPI_Info_set(info, key, text);
}

/* Streams */

static int mpix_mpich_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *digit          = strchr(digits, (c >= 'A') && (c <= 'F') ?
                                                        (c - 'A' + 'a') :
                                                        c);

    return (c == '\0') || (digit == NULL) ? -1 : (int)(digit - digits);
}

/* Reads a pointer. Returns 0 if the text is none. */
static int mpix_mpich_read_hex(const char *text, void **value_p)
{
    unsigned char bytes[sizeof(*value_p)];
    int high, low;
    size_t i;

    if (strlen(text) != (2 * sizeof(bytes))) {
        return 0;
    }
    for (i = 0; i < sizeof(bytes); ++i) {
        high = mpix_mpich_digit(text[2 * i]);
        low  = mpix_mpich_digit(text[(2 * i) + 1]);
        if ((high < 0) || (low < 0)) {
            return 0;
        }
        bytes[i] = (unsigned char)((high << 4) | low);
    }
    memcpy(value_p, bytes, sizeof(bytes));
    return 1;
}

/* The kind of stream of a "type". Returns 0 if there is no such one. */
static int mpix_mpich_find_type(const char *name, ucs_gstream_type_t *type_p)
{
    static const struct {
        const char         *name;
        ucs_gstream_type_t type;
    } types[] = {
        {"cudaStream_t", UCS_GSTREAM_TYPE_CUDA},
        {"hipStream_t", UCS_GSTREAM_TYPE_HIP},
        {"MPIX_Host_stream", UCS_GSTREAM_TYPE_HOST}
    };
    unsigned i;

    for (i = 0; i < ucs_static_array_size(types); ++i) {
        if (!strcmp(name, types[i].name)) {
            *type_p = types[i].type;
            return 1;
        }
    }
    return 0;
}

static int mpix_mpich_get_info(MPI_Info info, const char *key,
                               char value[MPI_MAX_INFO_VAL + 1])
{
    int found = 0;

    if (info != MPI_INFO_NULL) {
        PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    }
    return found;
}

/* Finds out what stream an info object names; *is_named_p is 0 if it names
 * none. Returns an MPI code that is not raised. */
static int mpix_mpich_read(const char *func, MPI_Info info, void **native_p,
                           int *is_named_p)
{
    char type[MPI_MAX_INFO_VAL + 1], value[MPI_MAX_INFO_VAL + 1];
    ucs_gstream_type_t wanted, found;

    *is_named_p = mpix_mpich_get_info(info, "type", type);
    if (!*is_named_p) {
        return MPI_SUCCESS;
    }
    if (!mpix_mpich_find_type(type, &wanted)) {
        return mpix_fail(func, MPI_ERR_INFO_VALUE,
                         "type \"%s\": the types are cudaStream_t, hipStream_t "
                         "and MPIX_Host_stream", type);
    }
    if (!mpix_mpich_get_info(info, "value", value)) {
        return mpix_fail(func, MPI_ERR_INFO_VALUE,
                         "type \"%s\", and no value (MPIX_Info_set_hex)", type);
    }
    if (!mpix_mpich_read_hex(value, native_p)) {
        return mpix_fail(func, MPI_ERR_INFO_VALUE,
                         "value \"%s\": a pointer has %zu hexadecimal digits",
                         value, 2 * sizeof(*native_p));
    }
    if ((ucs_gstream_detect(*native_p, &found) != UCS_OK) ||
        (found != wanted)) {
        return mpix_fail(func, MPI_ERR_INFO_VALUE, "%p is no %s", *native_p,
                         type);
    }
    return MPI_SUCCESS;
}

static void mpix_mpich_put(mpix_mpich_object_t *object)
{
    if ((object == NULL) ||
        (__atomic_sub_fetch(&object->refs, 1, __ATOMIC_ACQ_REL) > 0)) {
        return;
    }

    if (object->queue != NULL) {
        (void)MPIX_Free_queue(object->queue);
    }
    free(object);
}

int MPIX_Mpich_stream_create(MPI_Info info, MPIX_Mpich_stream *stream)
{
    static const char func[] = "MPIX_Stream_create";
    mpix_mpich_object_t *object;
    void *native = NULL;
    int rc, is_named;

    rc = mpix_check_comm(func, MPI_COMM_WORLD);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (stream == NULL) {
        return mpix_raise(MPI_COMM_NULL, mpix_fail(func, MPI_ERR_ARG,
                                                   "the stream is NULL"));
    }

    rc = mpix_mpich_read(func, info, &native, &is_named);
    if (rc != MPI_SUCCESS) {
        return mpix_raise(MPI_COMM_NULL, rc);
    }

    object = calloc(1, sizeof(*object));
    if (object != NULL) {
        object->handle = mpix_handle_create(&mpix_mpich_streams, object);
    }
    if ((object == NULL) || (object->handle == NULL)) {
        free(object);
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_NO_MEM, "no memory"));
    }

    rc = is_named ? MPIX_Create_queue_stream(native, &object->queue) :
                    MPI_SUCCESS;
    if (rc != MPI_SUCCESS) {
        mpix_handle_destroy(object->handle);
        free(object);
        return rc;
    }

    object->refs = 1;
    *stream      = object->handle;
    return MPI_SUCCESS;
}

/* The object of a handle, NULL for MPIX_STREAM_NULL. Raises that it is none,
 * and returns the code. */
static int mpix_mpich_find(const char *func, MPIX_Mpich_stream stream,
                           mpix_mpich_object_t **object_p)
{
    *object_p = (stream == MPIX_STREAM_NULL) ?
                        NULL :
                        mpix_handle_object(&mpix_mpich_streams, stream);
    return ((stream == MPIX_STREAM_NULL) || (*object_p != NULL)) ?
                   MPI_SUCCESS :
                   mpix_handle_refuse(func, stream, "stream of "
                                      "MPIX_Stream_create");
}

int MPIX_Mpich_stream_free(MPIX_Mpich_stream *stream)
{
    static const char func[] = "MPIX_Stream_free";
    mpix_mpich_object_t *object;
    int rc;

    if ((stream == NULL) || (*stream == MPIX_STREAM_NULL)) {
        return mpix_handle_refuse(func, NULL, "stream of MPIX_Stream_create");
    }

    rc = mpix_mpich_find(func, *stream, &object);
    if (rc == MPI_SUCCESS) {
        object->handle = NULL;
        mpix_handle_destroy(*stream);
        mpix_mpich_put(object);
        *stream = MPIX_STREAM_NULL;
    }
    return rc;
}

int MPIX_Mpich_stream_progress(MPIX_Mpich_stream stream)
{
    mpix_mpich_object_t *object;
    int rc, flag;

    rc = mpix_mpich_find("MPIX_Stream_progress", stream, &object);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    mpix_fifo_look();
    return PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag,
                       MPI_STATUS_IGNORE);
}

int MPIX_Mpich_start_progress_thread(MPIX_Mpich_stream stream)
{
    mpix_mpich_object_t *object;

    return mpix_mpich_find("MPIX_Start_progress_thread", stream, &object);
}

int MPIX_Mpich_stop_progress_thread(MPIX_Mpich_stream stream)
{
    mpix_mpich_object_t *object;

    return mpix_mpich_find("MPIX_Stop_progress_thread", stream, &object);
}

/* Communicators */

static void mpix_mpich_comm_put(mpix_mpich_comm_t *comm)
{
    int i;

    if (__atomic_sub_fetch(&comm->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (i = 0; i < comm->count; ++i) {
        mpix_mpich_put(comm->objects[i]);
    }
    free(comm);
}

static int mpix_mpich_copied(MPI_Comm handle, int keyval, void *extra,
                             void *value, void *copy_p, int *flag)
{
    mpix_mpich_comm_t *comm = value;

    __atomic_add_fetch(&comm->refs, 1, __ATOMIC_RELAXED);
    *(mpix_mpich_comm_t**)copy_p = comm;
    *flag                        = 1;
    return MPI_SUCCESS;
}

static int mpix_mpich_deleted(MPI_Comm handle, int keyval, void *value,
                              void *extra)
{
    mpix_mpich_comm_put(value);
    return MPI_SUCCESS;
}

static mpix_mpich_comm_t *mpix_mpich_comm_get(MPI_Comm handle)
{
    mpix_mpich_comm_t *comm = NULL;
    int found               = 0;

    if (mpix_mpich_keyval != MPI_KEYVAL_INVALID) {
        PMPI_Comm_get_attr(handle, mpix_mpich_keyval, &comm, &found);
    }
    return found ? comm : NULL;
}

/* Local. Errors are raised. */
static int mpix_mpich_comm_alloc(const char *func, int count,
                                 const MPIX_Mpich_stream *streams,
                                 mpix_mpich_comm_t **comm_p)
{
    mpix_mpich_comm_t *comm;
    int i, rc;

    comm = calloc(1, sizeof(*comm) + (count * sizeof(comm->objects[0])));
    if (comm == NULL) {
        return mpix_raise(MPI_COMM_NULL, mpix_fail(func, MPI_ERR_NO_MEM,
                                                   "no memory"));
    }

    comm->refs = 1;
    for (i = 0; i < count; ++i) {
        rc = mpix_mpich_find(func, streams[i], &comm->objects[i]);
        if (rc != MPI_SUCCESS) {
            mpix_mpich_comm_put(comm);
            return rc;
        }
        if (comm->objects[i] != NULL) {
            __atomic_add_fetch(&comm->objects[i]->refs, 1, __ATOMIC_RELAXED);
        }
        comm->count = i + 1;
    }
    *comm_p = comm;
    return MPI_SUCCESS;
}

/* Creates a communicator. MPI raises its own errors. */
static int mpix_mpich_comm_make(MPI_Comm parent, mpix_mpich_comm_t *comm,
                                MPI_Comm *newcomm)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    MPI_Comm handle;
    int rc = MPI_SUCCESS;

    pthread_mutex_lock(&lock); /* Of the key */
    if (mpix_mpich_keyval == MPI_KEYVAL_INVALID) {
        rc = PMPI_Comm_create_keyval(mpix_mpich_copied, mpix_mpich_deleted,
                                     &mpix_mpich_keyval, NULL);
    }
    pthread_mutex_unlock(&lock);
    rc = (rc == MPI_SUCCESS) ? MPI_Comm_dup(parent, &handle) : rc;
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    rc = PMPI_Comm_set_attr(handle, mpix_mpich_keyval, comm);
    if (rc != MPI_SUCCESS) {
        MPI_Comm_free(&handle);
        return rc;
    }
    *newcomm = handle;
    return MPI_SUCCESS;
}

static int mpix_mpich_comm_create(const char *func, MPI_Comm parent, int count,
                                  const MPIX_Mpich_stream *streams,
                                  int is_single, MPI_Comm *newcomm)
{
    mpix_mpich_comm_t *comm = NULL;
    int rc                  = mpix_check_comm(func, parent);

    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (newcomm == NULL) {
        return mpix_raise(parent, mpix_fail(func, MPI_ERR_ARG, "the new "
                                            "communicator is NULL"));
    }

    rc = mpix_mpich_comm_alloc(func, count, streams, &comm);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    comm->is_single = is_single;
    rc              = mpix_mpich_comm_make(parent, comm, newcomm);
    if (rc != MPI_SUCCESS) {
        mpix_mpich_comm_put(comm);
    }
    return rc;
}

int MPIX_Mpich_stream_comm_create(MPI_Comm comm, MPIX_Mpich_stream stream,
                                  MPI_Comm *newcomm)
{
    return mpix_mpich_comm_create("MPIX_Stream_comm_create", comm, 1, &stream,
                                  1, newcomm);
}

int MPIX_Mpich_stream_comm_create_multi(MPI_Comm comm, int count,
                                        MPIX_Mpich_stream array_of_streams[],
                                        MPI_Comm *newcomm)
{
    static const char func[]       = "MPIX_Stream_comm_create_multiplex";
    static MPIX_Mpich_stream none[] = {MPIX_STREAM_NULL};

    if ((count < 0) || ((count > 0) && (array_of_streams == NULL))) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, (count < 0) ? MPI_ERR_COUNT :
                                                        MPI_ERR_ARG,
                                    "invalid array of %d streams", count));
    }
    return mpix_mpich_comm_create(func, comm, (count == 0) ? 1 : count,
                                  (count == 0) ? none : array_of_streams, 0,
                                  newcomm);
}

int MPIX_Mpich_comm_get_stream(MPI_Comm comm, int idx,
                               MPIX_Mpich_stream *stream)
{
    static const char func[] = "MPIX_Comm_get_stream";
    const mpix_mpich_comm_t *object;
    int rc = mpix_check_comm(func, comm);

    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (stream == NULL) {
        return mpix_raise(comm, mpix_fail(func, MPI_ERR_ARG,
                                          "the stream is NULL"));
    }

    object  = mpix_mpich_comm_get(comm);
    *stream = ((object != NULL) && (idx >= 0) && (idx < object->count) &&
               (object->objects[idx] != NULL)) ?
                      object->objects[idx]->handle :
                      MPIX_STREAM_NULL;
    return MPI_SUCCESS;
}

int mpix_mpich_get_queue(const char *func, MPI_Comm comm,
                         struct mpix_queue **queue_p)
{
    const mpix_mpich_comm_t *object;
    MPI_Comm failed = MPI_COMM_NULL;
    int rc          = mpix_check_comm(func, comm);

    if (rc != MPI_SUCCESS) {
        return rc;
    }

    object = mpix_mpich_comm_get(comm);
    if ((object == NULL) || !object->is_single ||
        (object->objects[0] == NULL) || (object->objects[0]->queue == NULL)) {
        return mpix_raise(comm,
                          mpix_fail(func, MPI_ERR_COMM, "the communicator has "
                                    "no stream of cudaStream_t, hipStream_t or "
                                    "MPIX_Host_stream "
                                    "(MPIX_Stream_comm_create)"));
    }

    *queue_p = object->objects[0]->queue;
    mpix_fifo_look_failed(*queue_p);
    rc       = ((*queue_p)->batch == NULL) ?
                       MPI_SUCCESS :
                       mpix_batch_check(func, (*queue_p)->batch, &failed);
    return (rc == MPI_SUCCESS) ? rc : mpix_raise(failed, rc);
}
