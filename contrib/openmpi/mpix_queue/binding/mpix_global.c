/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_global.c - what a process has once: the lock, the st worker, a clock.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_global.h"
#include "mpix_upcalls.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

mpix_global_t mpix_global = {
    .lock       = PTHREAD_MUTEX_INITIALIZER,
    .state      = MPIX_STATE_NONE,
    .world_rank = -1,
    .self       = MPI_COMM_NULL,
    .probed     = MPI_COMM_NULL
};

/* An attribute of MPI_COMM_SELF, which MPI_Finalize deletes first */
static struct {
    pthread_mutex_t lock;
    int             is_attached;
    int             keyval;
} mpix_finalize = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


void mpix_global_forked(void)
{
    pthread_mutex_init(&mpix_global.lock, NULL);
}

int mpix_mpi_is_active(void)
{
    int initialized, finalized;

    PMPI_Initialized(&initialized);
    PMPI_Finalized(&finalized);
    return initialized && !finalized;
}

mpix_state_t mpix_global_get_state(void)
{
    mpix_state_t state;

    mpix_lock();
    state = mpix_global.state;
    mpix_unlock();
    return state;
}

void mpix_global_set_pml_worker(ucp_worker_h worker)
{
    __atomic_store_n(&mpix_global.pml_worker, worker, __ATOMIC_RELAXED);
}

int mpix_global_attach_finalize(void)
{
    int ret;

    pthread_mutex_lock(&mpix_finalize.lock);
    if (!mpix_finalize.is_attached) {
        mpix_finalize.is_attached =
                (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN,
                                         mpix_upcalls.finalized,
                                         &mpix_finalize.keyval,
                                         NULL) == MPI_SUCCESS) &&
                (PMPI_Comm_set_attr(MPI_COMM_SELF, mpix_finalize.keyval,
                                    NULL) == MPI_SUCCESS);
    }
    ret = mpix_finalize.is_attached;
    pthread_mutex_unlock(&mpix_finalize.lock);
    return ret;
}

void mpix_global_begin_finalize(void)
{
#ifdef MPICH_VERSION
    if (mpix_finalize.is_attached) {
        PMPI_Comm_delete_attr(MPI_COMM_SELF, mpix_finalize.keyval);
    }
#endif
}

int mpix_env_is_yes(const char *name)
{
    const char *value = getenv(name);

    return (value != NULL) && (*value != '\0') &&
           (strchr("yY1", *value) != NULL);
}

double mpix_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}
