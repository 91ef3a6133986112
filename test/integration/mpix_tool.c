/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_tool.c - a profiling tool: has functions of MPI, and calls those behind
 * it by the names that MPI has for tools. Prints what it has seen since it was
 * told of MPI_Init, of which it knows one form.
 */
#include <mpi.h>

#include <stdio.h>

static int is_init;
static int makes;


int MPI_Init(int *argc, char ***argv)
{
    is_init = 1;
    return PMPI_Init(argc, argv);
}

int MPI_Send_init(const void *buf, int count, MPI_Datatype datatype, int dest,
                  int tag, MPI_Comm comm, MPI_Request *request)
{
    makes += is_init;
    return PMPI_Send_init(buf, count, datatype, dest, tag, comm, request);
}

int MPI_Recv_init(void *buf, int count, MPI_Datatype datatype, int source,
                  int tag, MPI_Comm comm, MPI_Request *request)
{
    makes += is_init;
    return PMPI_Recv_init(buf, count, datatype, source, tag, comm, request);
}

int MPI_Request_free(MPI_Request *request)
{
    return PMPI_Request_free(request);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
    return PMPI_Comm_split(comm, color, key, newcomm);
}

int MPI_Finalize(void)
{
    printf("tool: %d persistent requests\n", makes);
    fflush(stdout);
    return PMPI_Finalize();
}
