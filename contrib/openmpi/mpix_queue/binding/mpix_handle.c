/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_handle.c - handles of objects, of which a program may give us any value.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_handle.h"
#include "mpix_error.h"

#include <mpi.h>

#include <pthread.h>
#include <stdlib.h>


/* What mpix_handle_create() makes. */
typedef struct mpix_handle {
    ucs_list_link_t list;
    void            *object; /* Constant */
} mpix_handle_t;


/* Protects tables of handles: those of host streams need not keep to MPI's rule
 * for threads. */
static pthread_mutex_t mpix_handle_lock = PTHREAD_MUTEX_INITIALIZER;


void mpix_handle_forked(void)
{
    pthread_mutex_init(&mpix_handle_lock, NULL);
}

int mpix_handle_is_valid(const ucs_list_link_t *table, const void *handle)
{
    const ucs_list_link_t *link = table->next;

    while ((link != table) && (link != handle)) {
        link = link->next;
    }
    return link != table;
}

void *mpix_handle_create(ucs_list_link_t *table, void *object)
{
    mpix_handle_t *handle = malloc(sizeof(*handle));

    if (handle == NULL) {
        return NULL;
    }

    handle->object = object;
    pthread_mutex_lock(&mpix_handle_lock);
    ucs_list_add_tail(table, &handle->list);
    pthread_mutex_unlock(&mpix_handle_lock);
    return handle;
}

void mpix_handle_destroy(void *handle)
{
    pthread_mutex_lock(&mpix_handle_lock);
    ucs_list_del(handle);
    pthread_mutex_unlock(&mpix_handle_lock);
    free(handle);
}

void *mpix_handle_object(const ucs_list_link_t *table, void *handle)
{
    int is_valid;

    pthread_mutex_lock(&mpix_handle_lock);
    is_valid = mpix_handle_is_valid(table, handle);
    pthread_mutex_unlock(&mpix_handle_lock);
    return is_valid ? ((mpix_handle_t*)handle)->object : NULL;
}

int mpix_handle_refuse(const char *func, const void *handle, const char *what)
{
    return mpix_raise(MPI_COMM_NULL, mpix_fail(func, MPI_ERR_ARG,
                                               "%p is no %s", handle, what));
}
