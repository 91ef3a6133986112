/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_stream.c - host streams for MPI programs.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_stream.h"
#include "binding/mpix_error.h"
#include "binding/mpix_handle.h"
#include "mpix_group.h"
#include "mpix_host_stream.h"
#include "mpix_queue_free.h"

#include <ucs_gstream.h>

_Static_assert(MPIX_HOST_ARGS_MAX == UCS_GSTREAM_ARGS_MAX, "arguments");


int mpix_stream_return(const char *func, ucs_status_t status)
{
    int code;

    switch (status) {
    case UCS_OK:
        return MPI_SUCCESS;
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_NO_ELEM: /* An event that was never recorded */
        code = MPI_ERR_ARG;
        break;
    case UCS_ERR_BUSY:
    case UCS_INPROGRESS:
        code = MPI_ERR_PENDING;
        break;
    default:
        code = mpix_status_code(status);
        break;
    }

    return mpix_raise(MPI_COMM_NULL, mpix_fail(func, code, "%s",
                                               ucs_status_string(status)));
}

int mpix_stream_refuse(const char *func, const void *stream)
{
    return mpix_handle_refuse(func, stream,
                              "stream of MPIX_Host_stream_create");
}

static int mpix_stream_create(const char *func,
                              const ucs_gstream_params_t *params, void **stream)
{
    ucs_gstream_h gstream;
    ucs_status_t status;

    if (stream == NULL) {
        return mpix_stream_return(func, UCS_ERR_INVALID_PARAM);
    }

    status = ucs_gstream_create(params, &gstream);
    if (status == UCS_OK) {
        *stream = gstream;
    }
    return mpix_stream_return(func, status);
}

int MPIX_Host_stream_create(void **stream)
{
    const ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = UCS_GSTREAM_TYPE_HOST
    };

    return mpix_stream_create("MPIX_Host_stream_create", &params, stream);
}

int MPIX_Host_stream_create_bound(int count, const unsigned cpus[],
                                  void **stream)
{
    static const char func[]          = "MPIX_Host_stream_create_bound";
    const ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                      UCS_GSTREAM_PARAM_FIELD_CPUS,
        .type       = UCS_GSTREAM_TYPE_HOST,
        .cpus       = {cpus, (size_t)count}
    };

    if (count < 0) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_ARG,
                                    "%d processors, must be 1 at least",
                                    count));
    }
    return mpix_stream_create(func, &params, stream);
}

int MPIX_Host_stream_create_on(MPIX_Host_group group, int priority,
                               void **stream)
{
    static const char func[]          = "MPIX_Host_stream_create_on";
    const ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                      UCS_GSTREAM_PARAM_FIELD_GROUP |
                      UCS_GSTREAM_PARAM_FIELD_PRIORITY,
        .type       = UCS_GSTREAM_TYPE_HOST,
        .group      = mpix_group_get(group),
        .priority   = priority
    };

    if (params.group == NULL) {
        return mpix_group_refuse(func, group);
    }
    return mpix_stream_create(func, &params, stream);
}

int MPIX_Host_stream_free(void **stream)
{
    static const char func[] = "MPIX_Host_stream_free";
    static const char left[] = "has work left: call "
                               "MPIX_Host_stream_synchronize first";
    const char *busy         = "has a queue: free that first";
    ucs_status_t status;

    if ((stream == NULL) || !ucs_gstream_is_valid(*stream)) {
        return mpix_stream_refuse(func, (stream == NULL) ? NULL : *stream);
    }

    status = mpix_queues_take_stream(*stream);
    if (status == UCS_OK) {
        status = ucs_gstream_destroy(*stream);
        busy   = left;
    } else if (status == UCS_ERR_NO_PROGRESS) {
        status = UCS_ERR_BUSY;
        busy   = left;
    } else if (status != UCS_ERR_BUSY) {
        status = UCS_OK; /* The queue that is under way takes it along */
    }
    if (status == UCS_ERR_BUSY) {
        return mpix_raise(MPI_COMM_NULL, mpix_fail(func, MPI_ERR_PENDING,
                                                   "%p %s", *stream, busy));
    }
    if (status == UCS_OK) {
        *stream = NULL;
    }
    return mpix_stream_return(func, status);
}

int MPIX_Host_stream_launch(void *stream, MPIX_Host_func func, void *arg)
{
    if (!ucs_gstream_is_valid(stream)) {
        return mpix_stream_refuse("MPIX_Host_stream_launch", stream);
    }

    return mpix_stream_return("MPIX_Host_stream_launch",
                              ucs_gstream_enqueue_func(stream, func, arg));
}

int MPIX_Host_stream_launch_copy(void *stream, MPIX_Host_func func,
                                 const void *args, size_t size)
{
    if (!ucs_gstream_is_valid(stream)) {
        return mpix_stream_refuse("MPIX_Host_stream_launch_copy", stream);
    }

    return mpix_stream_return("MPIX_Host_stream_launch_copy",
                              ucs_gstream_enqueue_launch(stream, func, args,
                                                         size));
}

int MPIX_Host_stream_synchronize(void *stream)
{
    if (!ucs_gstream_is_valid(stream)) {
        return mpix_stream_refuse("MPIX_Host_stream_synchronize", stream);
    }

    return mpix_stream_return("MPIX_Host_stream_synchronize",
                              ucs_gstream_synchronize(stream));
}
