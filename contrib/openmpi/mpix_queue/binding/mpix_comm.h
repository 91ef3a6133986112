/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_comm.h - what this library keeps about a communicator.
 *
 * It hangs on the communicator as an attribute, which tells when the
 * application frees the communicator: its requests outlive it.
 */
#ifndef MPIX_COMM_H_
#define MPIX_COMM_H_

#include <mpi.h>

#include <ucs/datastruct/list.h>

#include <stdint.h>


/* Ids of communicators: the same at all their processes, and no other one's
 * that a process of them is in. Only where the binding needs them. */
enum {
    MPIX_COMM_ID_NONE,    /* Made past this library */
    MPIX_COMM_ID_WORLD,
    MPIX_COMM_ID_SELF,
    MPIX_COMM_ID_FOREIGN  /* A process is of another MPI_COMM_WORLD */
};


/* Scope of the messages of collectives, with the context's bits beside it: no
 * id has it. */
#define MPIX_COMM_SCOPE_COLL (1ull << 63)


/* Protected by the lock. */
typedef struct mpix_comm {
    MPI_Comm        handle; /* MPI_COMM_NULL once the application freed it, and
                               for a duplicate that nobody asked for yet */
    int             rank;   /* Own */
    uint64_t        id;
    uint64_t        dups;   /* Duplicates made so far, at all its processes */
    unsigned        refs;   /* The attribute's and the requests'; atomic */
    struct mpix_comm *next; /* In the list of those without */
    ucs_list_link_t peers;  /* mpix_peer_t, each once */
    unsigned        colls;  /* Persistent collectives that were made */
    int             is_only; /* Its messages are of queues only */
    unsigned        asserts; /* Of its info: bits of mpix_assert.c */
    uint64_t        epoch;  /* Of such messages, the same at all its processes;
                               0: none */
    int             in_node; /* All its processes are in one; -1: unknown */
} mpix_comm_t;


/* Get the object of a communicator, made at the first call, with one more
 * reference. Returns an MPI code. Takes the lock. */
int mpix_comm_get(MPI_Comm handle, mpix_comm_t **comm_p);

/* This thread makes a communicator that is no duplicate, or does so no longer:
 * OpenMPI 5.0 copies attributes in MPI_Comm_create_group, too, which not all
 * processes call that count duplicates. */
void mpix_comm_set_making(int is_making);

/* Agree on the id of a new communicator, if the binding needs one and there is
 * none yet. Collective over it, unless processes of another MPI_COMM_WORLD are
 * in there: those may not use this library. Returns an MPI code. Takes the
 * lock. */
int mpix_comm_agree(MPI_Comm handle);

/* Tell whether processes of another MPI_COMM_WORLD are in there. */
int mpix_comm_is_foreign(MPI_Comm handle);

/* The error for that, where the binding does not have it. */
int mpix_comm_foreign_error(const char *func);

/* Tell whether all processes of an intracommunicator share memory. Collective
 * over it. Takes the lock. */
int mpix_comm_is_in_node(MPI_Comm handle);

/* Return a reference. To be called with the lock held. */
void mpix_comm_put(mpix_comm_t *comm);

/* The same without the lock, as in a function that MPI calls. */
void mpix_comm_drop(mpix_comm_t *comm);

/* One more reference, where there is one. Any thread. */
void mpix_comm_ref(mpix_comm_t *comm);

/* The handle; MPI_COMM_NULL for NULL, or once the application has freed it.
 * Takes the lock. */
MPI_Comm mpix_comm_handle(const mpix_comm_t *comm);

/* How many ranks messages may have: those of the remote group, for an
 * intercommunicator. */
int mpix_comm_num_peers(MPI_Comm comm);

/* The largest tag. */
int mpix_comm_tag_ub(void);

/* Rank in MPI_COMM_WORLD of a rank of a communicator (of its remote group, for
 * an intercommunicator); -1 if it is not in there. */
int mpix_comm_world_rank(MPI_Comm comm, int rank);

/* In a child that was forked. */
void mpix_comm_forked(void);

#endif
