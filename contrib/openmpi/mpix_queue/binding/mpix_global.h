/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_global.h - what a process has once: the lock, the st worker, a clock.
 */
#ifndef MPIX_GLOBAL_H_
#define MPIX_GLOBAL_H_

#include <mpi.h>
#include <ucp_st.h>

#include <pthread.h>
#include <stdint.h>


/*
 *  NONE --- first use ---> READY --- MPI_Finalize ---> CLOSED
 *    |                                                   ^
 *    +------------------- MPI_Finalize -------------------+
 *
 * The st worker lives a little longer than READY.
 */
typedef enum {
    MPIX_STATE_NONE,
    MPIX_STATE_READY,
    MPIX_STATE_CLOSED
} mpix_state_t;


/* All but the lock, the rank, is_serial and cancels is written by the first
 * mpix_global_init(), and not valid after MPI_Finalize. The state and the st
 * worker are written last, under the lock: a thread that has seen READY may
 * read the rest. */
typedef struct mpix_global {
    /* Protects all tables of this library. Never held while a command is
     * enqueued, the host waits, a peer is connected, or the st worker made or
     * destroyed. */
    pthread_mutex_t lock;
    int             is_serial;      /* Set by MPI_Init: the application makes
                                       one call of MPI at a time, and no thread
                                       of this library's own takes the lock;
                                       is_locked is in its place */
    int             is_locked;
    mpix_state_t    state;
    int             world_rank;     /* -1 until known; atomic */
    ucp_worker_h    pml_worker;     /* pml/ucx's; NULL if not known, or gone;
                                       atomic */
    ucp_address_t   *pml_address;   /* Of pml_worker; NULL without */
    size_t          pml_address_length;
    MPI_Comm        self;           /* Own duplicate of MPI_COMM_SELF */
    MPI_Comm        probed;         /* One that nobody else has, for probes */
    ucp_st_worker_h st_worker;      /* NULL if there is none */
    uint64_t        cancels;        /* Calls of mpix_match_cancel(): whoever
                                       remembers an operation of before looks
                                       it up again; needs the lock */
    void            *address;       /* Of st_worker */
    size_t          address_length;
} mpix_global_t;

extern mpix_global_t mpix_global;


/* Non-zero between the ends of MPI_Init and of MPI_Finalize's first step. */
int mpix_mpi_is_active(void);

/* Have MPI_Finalize tell this library, once. Returns 0 if that cannot be. */
int mpix_global_attach_finalize(void);

/* MPI_Finalize was called, and has not begun. With MPICH tell it now: it has no
 * locks any more when it deletes attributes of MPI_COMM_SELF. */
void mpix_global_begin_finalize(void);

/* The state. Takes the lock. */
mpix_state_t mpix_global_get_state(void);

/* Set by the binding that knows it. */
void mpix_global_set_pml_worker(ucp_worker_h worker);

/* In a child that was forked, where no other thread is: the locks are free. */
void mpix_global_forked(void);

/* The own rank in MPI_COMM_WORLD; -1 if it is not known. */
static inline int mpix_global_world_rank(void)
{
    return __atomic_load_n(&mpix_global.world_rank, __ATOMIC_RELAXED);
}

/* Whether a worker is pml/ucx's. Any thread asks, without the lock: the answer
 * is about the pointer alone. */
static inline int mpix_global_is_pml_worker(ucp_worker_h worker)
{
    return worker == __atomic_load_n(&mpix_global.pml_worker, __ATOMIC_RELAXED);
}

static inline void mpix_lock(void)
{
    if (mpix_global.is_serial) {
        mpix_global.is_locked = 1;
    } else {
        pthread_mutex_lock(&mpix_global.lock);
    }
}

/* Non-zero if that could be done at once. The thread that has the lock may ask,
 * and does not get it again. */
static inline int mpix_trylock(void)
{
    if (!mpix_global.is_serial) {
        return pthread_mutex_trylock(&mpix_global.lock) == 0;
    }
    if (mpix_global.is_locked) {
        return 0;
    }
    mpix_global.is_locked = 1;
    return 1;
}

static inline void mpix_unlock(void)
{
    if (mpix_global.is_serial) {
        mpix_global.is_locked = 0;
    } else {
        pthread_mutex_unlock(&mpix_global.lock);
    }
}

/* Seconds since some time */
double mpix_now(void);

/* Whether the environment says yes: a value that begins with y or 1. */
int mpix_env_is_yes(const char *name);

#endif
