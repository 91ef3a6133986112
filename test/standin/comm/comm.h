/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - what the stand-ins for NCCL and NVSHMEM share: processes that find
 * each other by an ID, on the stand-in for CUDA's driver.
 */
#ifndef COMM_H_
#define COMM_H_

#include "standin_control.h"

#include <pthread.h>

#define COMM_MAX_RANKS 8
#define COMM_ID_SIZE   64    /* Bytes of an ID that are used: a file's name */
#define COMM_NUM_SLOTS 64    /* Messages on their way between two ranks */
#define COMM_SLOT_SIZE 4096

/** Messages from one rank to another: words that streams store and wait for. */
typedef struct {
    uint64_t sent;
    uint64_t received;
    char     slots[COMM_NUM_SLOTS][COMM_SLOT_SIZE];
} comm_pipe_t;

/** What the processes share. */
typedef struct {
    pthread_mutex_t  lock;
    pthread_cond_t   cond;
    unsigned         arrived; /* At the barrier */
    unsigned         round;
    standin_handle_t handles[COMM_MAX_RANKS];
    comm_pipe_t      pipes[COMM_MAX_RANKS][COMM_MAX_RANKS];
} comm_job_t;

/** A process of it. */
typedef struct {
    comm_job_t *job;
    int        rank;
    int        ranks;
} comm_t;

/** Makes the file of a job, and its ID. Returns 0, or -1. */
int comm_make(char *id);

/** Joins it; the last one removes the file. Returns 0, or -1. */
int comm_join(comm_t *comm, const char *id, int rank, int ranks);

/** Waits for all processes. */
void comm_barrier(const comm_t *comm);

void comm_leave(comm_t *comm);

#endif
