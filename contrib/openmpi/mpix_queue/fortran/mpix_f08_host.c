/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_f08_host.c - the module's calls on host streams, groups and events.
 */
#include "mpix_f08.h"

void mpix_f08_host_stream_create(void **stream, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_stream_create(stream));
}

void mpix_f08_host_stream_create_bound(int count, const unsigned *cpus,
                                       void **stream, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_stream_create_bound(count, cpus, stream));
}

void mpix_f08_host_stream_create_on(const MPIX_Host_group *group, int priority,
                                    void **stream, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_stream_create_on(*group, priority,
                                                       stream));
}

void mpix_f08_host_stream_free(void **stream, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_stream_free(stream));
}

void mpix_f08_host_stream_launch(void *stream, MPIX_Host_func func, void *arg,
                                 MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_stream_launch(stream, func, arg));
}

void mpix_f08_host_stream_launch_copy(void *stream, MPIX_Host_func func,
                                      const void *args, size_t size,
                                      MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_stream_launch_copy(stream, func, args,
                                                         size));
}

void mpix_f08_host_stream_synchronize(void *stream, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_stream_synchronize(stream));
}

void mpix_f08_host_group_create(int threads, int count, const unsigned *cpus,
                                MPIX_Host_group *group, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_group_create(threads, count, cpus,
                                                   group));
}

void mpix_f08_host_group_free(MPIX_Host_group *group, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_group_free(group));
}

void mpix_f08_host_priority_range(int *least, int *greatest, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_priority_range(least, greatest));
}

void mpix_f08_host_event_create(MPIX_Host_event *event, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_event_create(event));
}

void mpix_f08_host_event_free(MPIX_Host_event *event, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_event_free(event));
}

void mpix_f08_host_event_record(void *stream, const MPIX_Host_event *event,
                                MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_event_record(stream, *event));
}

void mpix_f08_host_event_wait(void *stream, const MPIX_Host_event *event,
                              MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_event_wait(stream, *event));
}

void mpix_f08_host_event_query(const MPIX_Host_event *event, int *flag,
                               MPI_Fint *ierror)
{
    *flag = 0;
    mpix_f08_return(ierror, MPIX_Host_event_query(*event, flag));
}

void mpix_f08_host_event_synchronize(const MPIX_Host_event *event,
                                     MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_event_synchronize(*event));
}

void mpix_f08_host_event_elapsed(const MPIX_Host_event *start,
                                 const MPIX_Host_event *end, double *seconds,
                                 MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Host_event_elapsed(*start, *end, seconds));
}
