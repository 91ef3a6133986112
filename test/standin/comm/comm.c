/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.c - processes of the stand-ins for NCCL and NVSHMEM. */
#include "comm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


static comm_job_t *comm_map(int fd)
{
    void *job = mmap(NULL, sizeof(comm_job_t), PROT_READ | PROT_WRITE,
                     MAP_SHARED, fd, 0);

    return (job == MAP_FAILED) ? NULL : job;
}

int comm_make(char *id)
{
    pthread_mutexattr_t lock;
    pthread_condattr_t cond;
    comm_job_t *job = NULL;
    int fd;

    strcpy(id, "/tmp/standin_comm_XXXXXX");
    fd = mkstemp(id);
    if ((fd >= 0) && (ftruncate(fd, sizeof(*job)) == 0)) {
        job = comm_map(fd);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (job == NULL) {
        return -1;
    }
    pthread_mutexattr_init(&lock);
    pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&job->lock, &lock);
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&job->cond, &cond);
    return munmap(job, sizeof(*job));
}

int comm_join(comm_t *comm, const char *id, int rank, int ranks)
{
    int fd = open(id, O_RDWR | O_CLOEXEC);

    comm->job   = (fd >= 0) ? comm_map(fd) : NULL;
    comm->rank  = rank;
    comm->ranks = ranks;
    if (fd >= 0) {
        (void)close(fd);
    }
    if ((comm->job == NULL) || (ranks > COMM_MAX_RANKS)) {
        return -1;
    }
    comm_barrier(comm);
    if (rank == 0) {
        (void)unlink(id);
    }
    return 0;
}

void comm_barrier(const comm_t *comm)
{
    comm_job_t *job = comm->job;
    unsigned round;

    pthread_mutex_lock(&job->lock);
    round = job->round;
    if (++job->arrived == (unsigned)comm->ranks) {
        job->arrived = 0;
        ++job->round;
        pthread_cond_broadcast(&job->cond);
    }
    while (job->round == round) {
        pthread_cond_wait(&job->cond, &job->lock);
    }
    pthread_mutex_unlock(&job->lock);
}

void comm_leave(comm_t *comm)
{
    comm_barrier(comm);
    (void)munmap(comm->job, sizeof(*comm->job));
}
