/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_node.c - the processes of the job that the node has.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_node.h"

#include <ucs/sys/math.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>


/* Their names for it, from the innermost launcher to the outermost: mpirun in a
 * job of Slurm starts other processes than Slurm has tasks. */
static const char *uct_cxi_trig_node_names[] = {
    "OMPI_COMM_WORLD_LOCAL_SIZE", /* OpenMPI's mpirun */
    "MPI_LOCALNRANKS",            /* MPICH, Intel MPI */
    "MV2_COMM_WORLD_LOCAL_SIZE",  /* MVAPICH */
    "PMI_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",            /* HPE's */
    "SLURM_STEP_TASKS_PER_NODE",  /* A list, see below */
    "SLURM_NTASKS_PER_NODE"
};

/* The same for a process's number among them; the last one counts all nodes */
static const char *uct_cxi_trig_node_ranks[] = {
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "SLURM_LOCALID",
    "PMIX_RANK"
};


/* The largest number of a text such as Slurm's "128(x2),64". What is in
 * brackets says on how many nodes. */
static unsigned uct_cxi_trig_node_largest(const char *text)
{
    unsigned long largest = 0;
    char *end;

    while (*text != '\0') {
        largest = ucs_max(largest, strtoul(text, &end, 10));
        text    = strchr(end, ',');
        if (text == NULL) {
            break;
        }
        ++text;
    }
    return (largest > INT_MAX) ? 0 : (unsigned)largest;
}

unsigned uct_cxi_trig_node_processes(void)
{
    unsigned count = 0;
    const char *text;
    size_t i;

    for (i = 0; (count == 0) &&
                (i < ucs_static_array_size(uct_cxi_trig_node_names)); ++i) {
        text = getenv(uct_cxi_trig_node_names[i]);
        if (text != NULL) {
            count = uct_cxi_trig_node_largest(text);
        }
    }
    return count;
}

int uct_cxi_trig_node_is_first(void)
{
    const char *text;
    size_t i;

    for (i = 0; i < ucs_static_array_size(uct_cxi_trig_node_ranks); ++i) {
        text = getenv(uct_cxi_trig_node_ranks[i]);
        if (text != NULL) {
            return !strcmp(text, "0");
        }
    }
    return 1;
}
