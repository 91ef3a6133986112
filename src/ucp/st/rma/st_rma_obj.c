/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_obj.c - objects of operations that are used again, what operations
 * hold, and functions of lanes that do nothing.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma.h"

#include <stdlib.h>
#include <string.h>

void *ucp_st_rma_obj_get(ucs_list_link_t *unused, size_t size)
{
    void *obj;

    if (ucs_list_is_empty(unused)) {
        return calloc(1, size);
    }
    obj = unused->next;
    ucs_list_del(unused->next);
    return memset(obj, 0, size);
}

void ucp_st_rma_objs_free(ucs_list_link_t *unused)
{
    ucs_list_link_t *obj;

    while (!ucs_list_is_empty(unused)) {
        obj = unused->next;
        ucs_list_del(obj);
        free(obj);
    }
}

void ucp_st_rma_drop(const ucp_st_rma_t *rma)
{
    if (rma->length > 0) {
        ucp_st_rma_release(&rma->mem->refs);
        ucp_st_rma_release(&rma->rkey->refs);
    }
    if (rma->signal != NULL) {
        ucp_st_rma_release(&rma->signal->refs);
    }
}

ucs_status_t ucp_st_rma_prepare_none(ucp_st_queue_h queue, unsigned way)
{
    return UCS_OK;
}

void ucp_st_rma_release_none(ucp_st_rkey_t *rkey)
{
}
