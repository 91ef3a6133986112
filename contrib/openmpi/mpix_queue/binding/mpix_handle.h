/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_handle.h - handles of objects, of which a program may give us any value.
 *
 * A table is a list whose entries begin with their links. Those of entries that
 * are made here are protected by a lock of their own.
 */
#ifndef MPIX_HANDLE_H_
#define MPIX_HANDLE_H_

#include <ucs/datastruct/list.h>


/* Tell whether a handle, of any value, is an entry of a table that does not
 * change meanwhile. */
int mpix_handle_is_valid(const ucs_list_link_t *table, const void *handle);

/* Put a handle of an object that is not NULL into a table; NULL if there is no
 * memory. */
void *mpix_handle_create(ucs_list_link_t *table, void *object);

/* Take a handle out of its table and free it. */
void mpix_handle_destroy(void *handle);

/* The object of a handle, of any value; NULL if it is not in the table. */
void *mpix_handle_object(const ucs_list_link_t *table, void *handle);

/* Raise that a handle is no 'what'; returns the code. */
int mpix_handle_refuse(const char *func, const void *handle, const char *what);

/* In a child that was forked. */
void mpix_handle_forked(void);

#endif
