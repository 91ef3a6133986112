/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_comm.c - what this library keeps about a communicator.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_comm.h"
#include "mpix_binding.h"
#include "mpix_error.h"
#include "mpix_global.h"
#include "mpix_peer.h"
#include "mpix_upcalls.h"

#include <pthread.h>
#include <stdlib.h>

/* In the id of a duplicate */
#define MPIX_COMM_ID_DUP (1ull << 62)

/* What MPI_TAG_UB is at least */
#define MPIX_COMM_LEAST_TAG_UB 32767

/* Held while the object of a communicator is looked for or made, by one thread
 * at a time. Not the lock, which MPI's callbacks take. */
static pthread_mutex_t mpix_comm_find_lock = PTHREAD_MUTEX_INITIALIZER;

/* Written once, under the lock above. */
static int mpix_comm_keyval = MPI_KEYVAL_INVALID;

/* Objects without a reference that were dropped without the lock. Atomic. */
static mpix_comm_t *mpix_comm_dropped;

/* This thread makes a communicator that is no duplicate. */
static __thread int mpix_comm_is_making
        __attribute__((tls_model("initial-exec")));


void mpix_comm_forked(void)
{
    pthread_mutex_init(&mpix_comm_find_lock, NULL);
}

/* The application frees the communicator, which still works at this moment. */
static int mpix_comm_deleted(MPI_Comm handle, int keyval, void *value,
                             void *extra)
{
    mpix_comm_t *comm = value;

    mpix_lock();
    mpix_upcalls.comm_freed(comm);
    comm->handle = MPI_COMM_NULL;
    mpix_comm_put(comm);
    mpix_unlock();
    return MPI_SUCCESS;
}

static mpix_comm_t *mpix_comm_create(uint64_t id)
{
    mpix_comm_t *comm = malloc(sizeof(*comm));

    if (comm == NULL) {
        return NULL;
    }

    comm->handle  = MPI_COMM_NULL;
    comm->rank    = -1;
    comm->id      = id;
    comm->dups    = 0;
    comm->refs    = 1;
    comm->colls   = 0;
    comm->is_only = 0;
    comm->asserts = 0;
    comm->epoch   = 0;
    comm->in_node = -1;
    ucs_list_head_init(&comm->peers);
    return comm;
}

/* The id of a duplicate: all processes make them in the same order. Ids that
 * are agreed on have no such bit, and none has that of collectives. */
static uint64_t mpix_comm_derive_id(uint64_t id, uint64_t count)
{
    uint64_t word = (id * 0x9e3779b97f4a7c15ull) + count;

    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
    word = word ^ (word >> 31);
    return (word & ~MPIX_COMM_SCOPE_COLL) | MPIX_COMM_ID_DUP;
}

/* The application duplicates a communicator. */
static int mpix_comm_copied(MPI_Comm handle, int keyval, void *extra,
                            void *value, void *copy_p, int *flag)
{
    mpix_comm_t *comm = value;
    mpix_comm_t *copy;

    *flag = 0;
    if (mpix_comm_is_making || !mpix_binding_needs_ids() ||
        (comm->id == MPIX_COMM_ID_NONE)) {
        return MPI_SUCCESS;
    }

    mpix_lock();
    copy = mpix_comm_create((comm->id == MPIX_COMM_ID_FOREIGN) ?
                                    MPIX_COMM_ID_FOREIGN :
                                    mpix_comm_derive_id(comm->id,
                                                        ++comm->dups));
    mpix_unlock();
    if (copy == NULL) {
        return MPI_ERR_NO_MEM;
    }

    *(mpix_comm_t**)copy_p = copy;
    *flag                  = 1;
    return MPI_SUCCESS;
}

void mpix_comm_set_making(int is_making)
{
    mpix_comm_is_making = is_making;
}

static int mpix_comm_keyval_init(void)
{
    return (mpix_comm_keyval != MPI_KEYVAL_INVALID) ?
                   MPI_SUCCESS :
                   PMPI_Comm_create_keyval(mpix_comm_copied, mpix_comm_deleted,
                                           &mpix_comm_keyval, NULL);
}

static uint64_t mpix_comm_fixed_id(MPI_Comm handle)
{
    return (handle == MPI_COMM_WORLD) ? MPIX_COMM_ID_WORLD :
           (handle == MPI_COMM_SELF)  ? MPIX_COMM_ID_SELF :
                                        MPIX_COMM_ID_NONE;
}

/* Finds the object, or makes it. With the lock for that. */
static int mpix_comm_find_locked(MPI_Comm handle, mpix_comm_t **comm_p)
{
    mpix_comm_t *comm;
    int rc, found;

    rc = mpix_comm_keyval_init();
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = PMPI_Comm_get_attr(handle, mpix_comm_keyval, comm_p, &found);
    if ((rc != MPI_SUCCESS) || found) {
        return rc;
    }

    comm = mpix_comm_create(mpix_comm_fixed_id(handle));
    if (comm == NULL) {
        return MPI_ERR_NO_MEM;
    }

    rc = PMPI_Comm_set_attr(handle, mpix_comm_keyval, comm);
    if (rc != MPI_SUCCESS) {
        free(comm);
        return rc;
    }
    *comm_p = comm;
    return MPI_SUCCESS;
}

static int mpix_comm_find(MPI_Comm handle, mpix_comm_t **comm_p)
{
    int rc, rank;

    pthread_mutex_lock(&mpix_comm_find_lock);
    rc = mpix_comm_find_locked(handle, comm_p);
    pthread_mutex_unlock(&mpix_comm_find_lock);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    PMPI_Comm_rank(handle, &rank);
    mpix_lock();
    (*comm_p)->handle = handle;
    (*comm_p)->rank   = rank;
    mpix_unlock();
    return MPI_SUCCESS;
}

int mpix_comm_get(MPI_Comm handle, mpix_comm_t **comm_p)
{
    int rc = mpix_comm_find(handle, comm_p);

    if (rc == MPI_SUCCESS) {
        mpix_comm_ref(*comm_p);
    }
    return rc;
}

/* One process of a communicator makes an id for all. */
static uint64_t mpix_comm_new_id(void)
{
    static uint32_t count; /* Atomic */

    return ((uint64_t)(mpix_global_world_rank() + 1) << 32) |
           __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
}

/* Rank 0 makes the id; for an intercommunicator, that of its union. */
static int mpix_comm_share_id(MPI_Comm handle, int is_inter, uint64_t *id_p)
{
    MPI_Comm intra = handle;
    int rc, rank;

    if (is_inter) {
        rc = PMPI_Intercomm_merge(handle, 0, &intra);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
    }

    PMPI_Comm_rank(intra, &rank);
    *id_p = (rank == 0) ? mpix_comm_new_id() : MPIX_COMM_ID_NONE;
    rc    = PMPI_Bcast(id_p, 1, MPI_UINT64_T, 0, intra);
    if (is_inter) {
        PMPI_Comm_free(&intra);
    }
    return rc;
}

/* Whether not all processes of the group are in MPI_COMM_WORLD. */
static int mpix_comm_group_is_foreign(MPI_Group group)
{
    MPI_Group world, rest;
    int size;

    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_difference(group, world, &rest);
    PMPI_Group_size(rest, &size);

    if (rest != MPI_GROUP_EMPTY) {
        PMPI_Group_free(&rest);
    }
    PMPI_Group_free(&world);
    return size > 0;
}

int mpix_comm_is_foreign(MPI_Comm handle)
{
    int is_inter, ret;
    MPI_Group group;

    PMPI_Comm_group(handle, &group);
    ret = mpix_comm_group_is_foreign(group);
    PMPI_Group_free(&group);

    PMPI_Comm_test_inter(handle, &is_inter);
    if (is_inter && !ret) {
        PMPI_Comm_remote_group(handle, &group);
        ret = mpix_comm_group_is_foreign(group);
        PMPI_Group_free(&group);
    }
    return ret;
}

/* As many ranks as there are in one node with this one. */
static int mpix_comm_num_in_node(MPI_Comm handle)
{
    int size = 0;
    MPI_Comm node;
    int rc;

    mpix_comm_set_making(1);
    rc = PMPI_Comm_split_type(handle, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                              &node);
    mpix_comm_set_making(0);
    if (rc == MPI_SUCCESS) {
        PMPI_Comm_size(node, &size);
        PMPI_Comm_free(&node);
    }
    return size;
}

int mpix_comm_is_in_node(MPI_Comm handle)
{
    mpix_comm_t *comm;
    int size, in_node;

    if (mpix_comm_find(handle, &comm) != MPI_SUCCESS) {
        return 0;
    }

    in_node = comm->in_node;
    if (in_node < 0) {
        PMPI_Comm_size(handle, &size);
        in_node = (mpix_comm_num_in_node(handle) == size);
        mpix_lock();
        comm->in_node = in_node;
        mpix_unlock();
    }
    return in_node;
}

int mpix_comm_foreign_error(const char *func)
{
    return mpix_fail(func, MPI_ERR_UNSUPPORTED_OPERATION,
                     "the communicator has processes that are not in this "
                     "one's MPI_COMM_WORLD, as those of MPI_Comm_spawn, which "
                     "needs the binding ucx");
}

int mpix_comm_agree(MPI_Comm handle)
{
    mpix_comm_t *comm;
    int rc, is_inter;
    uint64_t id;

    if (!mpix_binding_needs_ids() || (handle == MPI_COMM_NULL)) {
        return MPI_SUCCESS;
    }

    rc = mpix_comm_find(handle, &comm);
    if ((rc != MPI_SUCCESS) || (comm->id != MPIX_COMM_ID_NONE)) {
        return rc;
    }

    if (mpix_comm_is_foreign(handle)) {
        id = MPIX_COMM_ID_FOREIGN;
    } else {
        PMPI_Comm_test_inter(handle, &is_inter);
        rc = mpix_comm_share_id(handle, is_inter, &id);
    }
    if (rc == MPI_SUCCESS) {
        mpix_lock();
        comm->id = id;
        mpix_unlock();
    }
    return rc;
}

static void mpix_comm_destroy(mpix_comm_t *comm)
{
    mpix_peer_t *peer, *tmp;

    ucs_list_for_each_safe(peer, tmp, &comm->peers, list) {
        mpix_peer_destroy(peer);
    }
    free(comm);
}

/* Needs the lock. */
static void mpix_comm_reap(void)
{
    mpix_comm_t *comm = __atomic_exchange_n(&mpix_comm_dropped, NULL,
                                            __ATOMIC_ACQUIRE);
    mpix_comm_t *next;

    for (; comm != NULL; comm = next) {
        next = comm->next;
        mpix_comm_destroy(comm);
    }
}

void mpix_comm_put(mpix_comm_t *comm)
{
    mpix_comm_reap();
    if (__atomic_sub_fetch(&comm->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        mpix_comm_destroy(comm);
    }
}

void mpix_comm_drop(mpix_comm_t *comm)
{
    if (__atomic_sub_fetch(&comm->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }

    comm->next = __atomic_load_n(&mpix_comm_dropped, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&mpix_comm_dropped, &comm->next, comm,
                                        0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}

void mpix_comm_ref(mpix_comm_t *comm)
{
    __atomic_add_fetch(&comm->refs, 1, __ATOMIC_RELAXED);
}

MPI_Comm mpix_comm_handle(const mpix_comm_t *comm)
{
    MPI_Comm handle = MPI_COMM_NULL;

    if (comm != NULL) {
        mpix_lock();
        handle = comm->handle;
        mpix_unlock();
    }
    return handle;
}

int mpix_comm_num_peers(MPI_Comm comm)
{
    int is_inter, size;

    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter) {
        PMPI_Comm_remote_size(comm, &size);
    } else {
        PMPI_Comm_size(comm, &size);
    }
    return size;
}

int mpix_comm_tag_ub(void)
{
    int *value, found;

    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    return found ? *value : MPIX_COMM_LEAST_TAG_UB;
}

int mpix_comm_world_rank(MPI_Comm comm, int rank)
{
    int world_rank = MPI_UNDEFINED;
    MPI_Group group, world;
    int is_inter;

    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter) {
        PMPI_Comm_remote_group(comm, &group);
    } else {
        PMPI_Comm_group(comm, &group);
    }
    PMPI_Comm_group(MPI_COMM_WORLD, &world);

    PMPI_Group_translate_ranks(group, 1, &rank, world, &world_rank);

    PMPI_Group_free(&world);
    PMPI_Group_free(&group);
    return (world_rank == MPI_UNDEFINED) ? -1 : world_rank;
}
