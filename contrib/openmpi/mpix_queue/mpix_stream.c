/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_stream.c - host streams for MPI programs.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "mpix_error.h"

#include <ucs_gstream.h>


/* Converts what a stream call returned, and raises it. */
static int mpix_stream_return(const char *func, ucs_status_t status)
{
    int code;

    switch (status) {
    case UCS_OK:
        return MPI_SUCCESS;
    case UCS_ERR_INVALID_PARAM:
        code = MPI_ERR_ARG;
        break;
    case UCS_ERR_BUSY:
        code = MPI_ERR_PENDING;
        break;
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
        code = MPI_ERR_NO_MEM;
        break;
    default:
        code = MPI_ERR_OTHER;
        break;
    }

    mpix_fail(func, code, "%s", ucs_status_string(status));
    return mpix_raise(MPI_COMM_NULL, code);
}

static int mpix_stream_invalid(const char *func, void *stream)
{
    mpix_fail(func, MPI_ERR_ARG, "%p is no stream of MPIX_Host_stream_create",
              stream);
    return mpix_raise(MPI_COMM_NULL, MPI_ERR_ARG);
}

int MPIX_Host_stream_create(void **stream)
{
    const ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = UCS_GSTREAM_TYPE_HOST
    };
    ucs_gstream_h gstream;
    ucs_status_t status;

    if (stream == NULL) {
        return mpix_stream_return("MPIX_Host_stream_create",
                                  UCS_ERR_INVALID_PARAM);
    }

    status = ucs_gstream_create(&params, &gstream);
    if (status == UCS_OK) {
        *stream = gstream;
    }
    return mpix_stream_return("MPIX_Host_stream_create", status);
}

int MPIX_Host_stream_free(void **stream)
{
    ucs_status_t status;

    if ((stream == NULL) || !ucs_gstream_is_valid(*stream)) {
        return mpix_stream_invalid("MPIX_Host_stream_free",
                                   (stream == NULL) ? NULL : *stream);
    }

    status = ucs_gstream_destroy(*stream);
    if (status == UCS_OK) {
        *stream = NULL;
    }
    return mpix_stream_return("MPIX_Host_stream_free", status);
}

int MPIX_Host_stream_launch(void *stream, MPIX_Host_func func, void *arg)
{
    if (!ucs_gstream_is_valid(stream)) {
        return mpix_stream_invalid("MPIX_Host_stream_launch", stream);
    }

    return mpix_stream_return("MPIX_Host_stream_launch",
                              ucs_gstream_enqueue_func(stream, func, arg));
}

int MPIX_Host_stream_synchronize(void *stream)
{
    if (!ucs_gstream_is_valid(stream)) {
        return mpix_stream_invalid("MPIX_Host_stream_synchronize", stream);
    }

    return mpix_stream_return("MPIX_Host_stream_synchronize",
                              ucs_gstream_synchronize(stream));
}
