/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_next.h - what lies behind the functions of MPI that this library has.
 *
 * It has each of them as MPI_X and as PMPI_X. A tool that stands in front of it
 * calls PMPI_X, one behind it is called by MPI_X:
 *
 *   program --> [tool's MPI_X --> PMPI_X] --> this MPI_X --> MPI's MPI_X
 *   program --> this MPI_X --> [tool's MPI_X --> PMPI_X --> this MPI_X] --> MPI
 *
 * In the second case it is passed twice: what it does about a call may be done
 * twice. All sources are compiled with this header: what they call PMPI_X is
 * MPI's own.
 */
#ifndef MPIX_NEXT_H_
#define MPIX_NEXT_H_

#include <mpi.h>


/* Name, parameters, arguments. */
#define MPIX_NEXT_LIST_OTHER(_x) \
    _x(Init, \
       (int *argc, char ***argv), \
       (argc, argv)) \
    _x(Init_thread, \
       (int *argc, char ***argv, int required, int *provided), \
       (argc, argv, required, provided)) \
    _x(Finalize, \
       (void), \
       ()) \
    _x(Send_init, \
       (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, \
        MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, dest, tag, comm, request)) \
    _x(Rsend_init, \
       (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, \
        MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, dest, tag, comm, request)) \
    _x(Ssend_init, \
       (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, \
        MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, dest, tag, comm, request)) \
    _x(Bsend_init, \
       (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, \
        MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, dest, tag, comm, request)) \
    _x(Recv_init, \
       (void *buf, int count, MPI_Datatype datatype, int source, int tag, \
        MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, source, tag, comm, request)) \
    _x(Start, \
       (MPI_Request *request), \
       (request)) \
    _x(Startall, \
       (int count, MPI_Request requests[]), \
       (count, requests)) \
    _x(Request_free, \
       (MPI_Request *request), \
       (request)) \
    _x(Comm_set_info, \
       (MPI_Comm comm, MPI_Info info), \
       (comm, info)) \
    _x(Comm_dup_with_info, \
       (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm), \
       (comm, info, newcomm)) \
    _x(Alloc_mem, \
       (MPI_Aint size, MPI_Info info, void *baseptr), \
       (size, info, baseptr)) \
    _x(Free_mem, \
       (void *base), \
       (base))

/* MPI 4's forms for large counts. */
#if MPI_VERSION >= 4
#  define MPIX_NEXT_LIST_LARGE(_x) \
    _x(Send_init_c, \
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, \
        int tag, MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, dest, tag, comm, request)) \
    _x(Rsend_init_c, \
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, \
        int tag, MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, dest, tag, comm, request)) \
    _x(Ssend_init_c, \
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, \
        int tag, MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, dest, tag, comm, request)) \
    _x(Bsend_init_c, \
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, \
        int tag, MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, dest, tag, comm, request)) \
    _x(Recv_init_c, \
       (void *buf, MPI_Count count, MPI_Datatype datatype, int source, \
        int tag, MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, source, tag, comm, request))
#else
#  define MPIX_NEXT_LIST_LARGE(_x)
#endif

/* Those that end uses. */
#define MPIX_NEXT_LIST_WAIT(_x) \
    _x(Wait, \
       (MPI_Request *request, MPI_Status *status), \
       (request, status)) \
    _x(Test, \
       (MPI_Request *request, int *flag, MPI_Status *status), \
       (request, flag, status)) \
    _x(Waitall, \
       (int count, MPI_Request requests[], MPI_Status *statuses), \
       (count, requests, statuses)) \
    _x(Testall, \
       (int count, MPI_Request requests[], int *flag, \
        MPI_Status *statuses), \
       (count, requests, flag, statuses)) \
    _x(Waitany, \
       (int count, MPI_Request requests[], int *index, MPI_Status *status), \
       (count, requests, index, status)) \
    _x(Testany, \
       (int count, MPI_Request requests[], int *index, int *flag, \
        MPI_Status *status), \
       (count, requests, index, flag, status)) \
    _x(Waitsome, \
       (int incount, MPI_Request requests[], int *outcount, int indices[], \
        MPI_Status *statuses), \
       (incount, requests, outcount, indices, statuses)) \
    _x(Testsome, \
       (int incount, MPI_Request requests[], int *outcount, int indices[], \
        MPI_Status *statuses), \
       (incount, requests, outcount, indices, statuses)) \
    _x(Request_get_status, \
       (MPI_Request request, int *flag, MPI_Status *status), \
       (request, flag, status)) \
    _x(Cancel, \
       (MPI_Request *request), \
       (request))

/* Those that make communicators. */
#define MPIX_NEXT_LIST_COMM_3(_x) \
    _x(Comm_create, \
       (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm), \
       (comm, group, newcomm)) \
    _x(Comm_create_group, \
       (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm), \
       (comm, group, tag, newcomm)) \
    _x(Comm_split, \
       (MPI_Comm comm, int color, int key, MPI_Comm *newcomm), \
       (comm, color, key, newcomm)) \
    _x(Comm_split_type, \
       (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *newcomm), \
       (comm, type, key, info, newcomm)) \
    _x(Cart_create, \
       (MPI_Comm comm, int ndims, const int dims[], const int periods[], \
        int reorder, MPI_Comm *newcomm), \
       (comm, ndims, dims, periods, reorder, newcomm)) \
    _x(Cart_sub, \
       (MPI_Comm comm, const int remain[], MPI_Comm *newcomm), \
       (comm, remain, newcomm)) \
    _x(Graph_create, \
       (MPI_Comm comm, int nnodes, const int index[], const int edges[], \
        int reorder, MPI_Comm *newcomm), \
       (comm, nnodes, index, edges, reorder, newcomm)) \
    _x(Dist_graph_create, \
       (MPI_Comm comm, int n, const int nodes[], const int degrees[], \
        const int targets[], const int weights[], MPI_Info info, int reorder, \
        MPI_Comm *newcomm), \
       (comm, n, nodes, degrees, targets, weights, info, reorder, newcomm)) \
    _x(Dist_graph_create_adjacent, \
       (MPI_Comm comm, int indegree, const int sources[], \
        const int sourceweights[], int outdegree, const int destinations[], \
        const int destweights[], MPI_Info info, int reorder, \
        MPI_Comm *newcomm), \
       (comm, indegree, sources, sourceweights, outdegree, destinations, \
        destweights, info, reorder, newcomm)) \
    _x(Intercomm_create, \
       (MPI_Comm comm, int leader, MPI_Comm peer_comm, int remote_leader, \
        int tag, MPI_Comm *newcomm), \
       (comm, leader, peer_comm, remote_leader, tag, newcomm)) \
    _x(Intercomm_merge, \
       (MPI_Comm comm, int high, MPI_Comm *newcomm), \
       (comm, high, newcomm))

#if MPI_VERSION >= 4
#  define MPIX_NEXT_LIST_COMM_4(_x) \
    _x(Comm_create_from_group, \
       (MPI_Group group, const char *stringtag, MPI_Info info, \
        MPI_Errhandler errhandler, MPI_Comm *newcomm), \
       (group, stringtag, info, errhandler, newcomm)) \
    _x(Intercomm_create_from_groups, \
       (MPI_Group group, int leader, MPI_Group remote_group, \
        int remote_leader, const char *stringtag, MPI_Info info, \
        MPI_Errhandler errhandler, MPI_Comm *newcomm), \
       (group, leader, remote_group, remote_leader, stringtag, info, \
        errhandler, newcomm))
#else
#  define MPIX_NEXT_LIST_COMM_4(_x)
#endif

#define MPIX_NEXT_LIST_COMM(_x) \
    MPIX_NEXT_LIST_COMM_3(_x) \
    MPIX_NEXT_LIST_COMM_4(_x)

#define MPIX_NEXT_LIST(_x) \
    MPIX_NEXT_LIST_OTHER(_x) \
    MPIX_NEXT_LIST_LARGE(_x) \
    MPIX_NEXT_LIST_WAIT(_x) \
    MPIX_NEXT_LIST_COMM(_x)

#define MPIX_NEXT_MEMBER(_name, _params, _args) int (*_name) _params;

typedef struct mpix_next {
    MPIX_NEXT_LIST(MPIX_NEXT_MEMBER)
} mpix_next_t;


/* MPI_X behind this library, a tool's maybe, and MPI's PMPI_X. Written before
 * main(). */
extern mpix_next_t mpix_next_mpi;
extern mpix_next_t mpix_next_pmpi;

/* Greater than 0 while the thread is in a PMPI_X of this library. */
extern __thread int mpix_next_depth
        __attribute__((tls_model("initial-exec")));

/* What this library's MPI_X has to call. */
#define MPIX_NEXT(_name) \
    ((mpix_next_depth > 0) ? mpix_next_pmpi._name : mpix_next_mpi._name)

#define PMPI_Init mpix_next_pmpi.Init
#define PMPI_Init_thread mpix_next_pmpi.Init_thread
#define PMPI_Finalize mpix_next_pmpi.Finalize
#define PMPI_Send_init mpix_next_pmpi.Send_init
#define PMPI_Rsend_init mpix_next_pmpi.Rsend_init
#define PMPI_Ssend_init mpix_next_pmpi.Ssend_init
#define PMPI_Bsend_init mpix_next_pmpi.Bsend_init
#define PMPI_Recv_init mpix_next_pmpi.Recv_init
#define PMPI_Send_init_c mpix_next_pmpi.Send_init_c
#define PMPI_Rsend_init_c mpix_next_pmpi.Rsend_init_c
#define PMPI_Ssend_init_c mpix_next_pmpi.Ssend_init_c
#define PMPI_Bsend_init_c mpix_next_pmpi.Bsend_init_c
#define PMPI_Recv_init_c mpix_next_pmpi.Recv_init_c
#define PMPI_Start mpix_next_pmpi.Start
#define PMPI_Startall mpix_next_pmpi.Startall
#define PMPI_Request_free mpix_next_pmpi.Request_free
#define PMPI_Wait mpix_next_pmpi.Wait
#define PMPI_Test mpix_next_pmpi.Test
#define PMPI_Waitall mpix_next_pmpi.Waitall
#define PMPI_Testall mpix_next_pmpi.Testall
#define PMPI_Waitany mpix_next_pmpi.Waitany
#define PMPI_Testany mpix_next_pmpi.Testany
#define PMPI_Waitsome mpix_next_pmpi.Waitsome
#define PMPI_Testsome mpix_next_pmpi.Testsome
#define PMPI_Request_get_status mpix_next_pmpi.Request_get_status
#define PMPI_Cancel mpix_next_pmpi.Cancel
#define PMPI_Alloc_mem mpix_next_pmpi.Alloc_mem
#define PMPI_Free_mem mpix_next_pmpi.Free_mem
#define PMPI_Comm_create mpix_next_pmpi.Comm_create
#define PMPI_Comm_create_group mpix_next_pmpi.Comm_create_group
#define PMPI_Comm_split mpix_next_pmpi.Comm_split
#define PMPI_Comm_split_type mpix_next_pmpi.Comm_split_type
#define PMPI_Cart_create mpix_next_pmpi.Cart_create
#define PMPI_Cart_sub mpix_next_pmpi.Cart_sub
#define PMPI_Graph_create mpix_next_pmpi.Graph_create
#define PMPI_Dist_graph_create mpix_next_pmpi.Dist_graph_create
#define PMPI_Dist_graph_create_adjacent \
    mpix_next_pmpi.Dist_graph_create_adjacent
#define PMPI_Intercomm_create mpix_next_pmpi.Intercomm_create
#define PMPI_Intercomm_merge mpix_next_pmpi.Intercomm_merge
#define PMPI_Comm_create_from_group mpix_next_pmpi.Comm_create_from_group
#define PMPI_Intercomm_create_from_groups \
    mpix_next_pmpi.Intercomm_create_from_groups

#endif
