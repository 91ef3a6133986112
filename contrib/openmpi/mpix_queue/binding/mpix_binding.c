/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_binding.c - chooses how processes find each other.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_binding.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

#define MPIX_BINDING_ENV "MPIX_QUEUE_BINDING"

/* In the order of preference */
static const mpix_binding_t *const mpix_bindings[] = {
    &mpix_binding_ucx,
    &mpix_binding_mpi
};

static const mpix_binding_t *mpix_binding_chosen; /* Atomic */
static const char *mpix_binding_why = "none was chosen yet";


const mpix_binding_t *mpix_binding(void)
{
    return __atomic_load_n(&mpix_binding_chosen, __ATOMIC_ACQUIRE);
}

const char *mpix_binding_reason(void)
{
    return mpix_binding_why;
}

/* Tries one. What the one before lacked is the reason for this one. */
static ucs_status_t mpix_binding_try(const mpix_binding_t *binding,
                                     int is_collective, const char *reason,
                                     const char **cause_p)
{
    ucs_status_t status;

    if (binding->is_collective && !is_collective) {
        *cause_p = "MPI_Init did not come through libmpix_queue: link "
                   "-lmpix_queue before the MPI library or, where it is loaded "
                   "later, let all processes call "
                   "MPIX_Queue_attach(MPI_COMM_WORLD) first";
        return UCS_ERR_NO_ELEM;
    }

    status = binding->open(cause_p);
    if (status == UCS_OK) {
        mpix_binding_why = reason;
        __atomic_store_n(&mpix_binding_chosen, binding, __ATOMIC_RELEASE);
    }
    return status;
}

static ucs_status_t mpix_binding_choose_any(int is_collective,
                                            const char **cause_p)
{
    ucs_status_t status = UCS_ERR_UNSUPPORTED;
    const char *reason  = "MPI runs over pml/ucx";
    unsigned i;

    for (i = 0; (i < ucs_static_array_size(mpix_bindings)) &&
                (status != UCS_OK); ++i) {
        status = mpix_binding_try(mpix_bindings[i], is_collective, reason,
                                  cause_p);
        reason = *cause_p;
    }
    return status;
}

/* What MPIX_QUEUE_BINDING says. */
static ucs_status_t mpix_binding_choose_set(int is_collective,
                                            const char **cause_p)
{
    const char *name = getenv(MPIX_BINDING_ENV);
    unsigned i;

    if ((name == NULL) || (*name == '\0') || !strcmp(name, "auto")) {
        return mpix_binding_choose_any(is_collective, cause_p);
    }

    for (i = 0; i < ucs_static_array_size(mpix_bindings); ++i) {
        if (!strcmp(name, mpix_bindings[i]->name)) {
            return mpix_binding_try(mpix_bindings[i], is_collective,
                                    MPIX_BINDING_ENV " says so", cause_p);
        }
    }

    *cause_p = MPIX_BINDING_ENV " is none of ucx, mpi and auto";
    return UCS_ERR_INVALID_PARAM;
}

ucs_status_t mpix_binding_choose(int is_collective, const char **cause_p)
{
    static ucs_status_t status = UCS_INPROGRESS;

    if (mpix_binding() != NULL) {
        return UCS_OK;
    }

    /* What all processes have tried together, one alone does not try again */
    if (is_collective || (status == UCS_INPROGRESS) ||
        (status == UCS_ERR_NO_ELEM)) {
        status = mpix_binding_choose_set(is_collective, &mpix_binding_why);
    }
    *cause_p = mpix_binding_why;
    return status;
}
