/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_handle.c - handles of objects, of which a program may give us any value.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_handle.h"
#include "mpix_error.h"
#include "mpix_global.h"

#include <stdlib.h>


/* What mpix_handle_create() makes. */
typedef struct mpix_handle {
    ucs_list_link_t list;
    void            *object; /* Constant */
} mpix_handle_t;


int mpix_handle_is_valid(ucs_list_link_t *table, const void *handle)
{
    const ucs_list_link_t *link;

    mpix_lock();
    link = table->next;
    while ((link != table) && (link != handle)) {
        link = link->next;
    }
    mpix_unlock();
    return link != table;
}

void *mpix_handle_create(ucs_list_link_t *table, void *object)
{
    mpix_handle_t *handle = malloc(sizeof(*handle));

    if (handle == NULL) {
        return NULL;
    }

    handle->object = object;
    mpix_lock();
    ucs_list_add_tail(table, &handle->list);
    mpix_unlock();
    return handle;
}

void mpix_handle_destroy(void *handle)
{
    mpix_lock();
    ucs_list_del(handle);
    mpix_unlock();
    free(handle);
}

void *mpix_handle_object(ucs_list_link_t *table, void *handle)
{
    return mpix_handle_is_valid(table, handle) ?
                   ((mpix_handle_t*)handle)->object :
                   NULL;
}

int mpix_handle_refuse(const char *func, const void *handle, const char *what)
{
    mpix_fail(func, MPI_ERR_ARG, "%p is no %s", handle, what);
    return mpix_raise(MPI_COMM_NULL, MPI_ERR_ARG);
}
