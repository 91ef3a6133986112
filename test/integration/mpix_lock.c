/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_lock.c - what the library does not do while it holds its lock: calls
 * that may take seconds, and loops that go on as long as messages come. The
 * program's own functions stand in front of those that it looks at.
 */
#include "mpix_test.h"

#include <ucp_st.h>
#include <ucp/api/ucp.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TAG_USED   1
#define TAG_ALONE  2
#define LOOK_TIME  20   /* seconds, that another thread may wait for the lock */
#define MAX_PROBES 64   /* that one call makes */
#define MESSAGES   1000

#define REAL(_name) ((__typeof__(&_name))dlsym(RTLD_NEXT, #_name))


static struct {
    unsigned creates;  /* of peers; atomic, as all of these */
    unsigned destroys; /* of the worker */
    unsigned locked;   /* looks that found the lock taken */
    unsigned messages; /* that are still to come */
    unsigned probes;   /* since matching was progressed last */
    unsigned longest;  /* most of them */
} seen;

/* In place of UCP's */
static char message;

static unsigned add(unsigned *word, unsigned value)
{
    return __atomic_add_fetch(word, value, __ATOMIC_RELAXED);
}

static unsigned get(const unsigned *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void set(unsigned *word, unsigned value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* A call that takes the lock, and does not use MPI */
static void *take_lock(void *arg)
{
    MPIX_Queue_stats stats;

    MPIX_Queue_get_stats(&stats);
    return NULL;
}

/* Whether another thread gets the lock while this one does not return */
static void look(void)
{
    struct timespec end;
    pthread_t thread;

    if (pthread_create(&thread, NULL, take_lock, NULL) != 0) {
        return;
    }
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LOOK_TIME;
    if (pthread_timedjoin_np(thread, NULL, &end) != 0) {
        pthread_detach(thread);
        add(&seen.locked, 1);
    }
}

ucs_status_t ucp_st_peer_create(ucp_st_worker_h worker, const void *address,
                                size_t length, ucp_st_peer_h *peer_p)
{
    add(&seen.creates, 1);
    look();
    return REAL(ucp_st_peer_create)(worker, address, length, peer_p);
}

ucs_status_t ucp_st_worker_destroy(ucp_st_worker_h worker)
{
    add(&seen.destroys, 1);
    look();
    return REAL(ucp_st_worker_destroy)(worker);
}

unsigned ucp_st_worker_progress(ucp_st_worker_h worker)
{
    set(&seen.probes, 0);
    return REAL(ucp_st_worker_progress)(worker);
}

/* MPI takes no message out in this way */
ucp_tag_message_h ucp_tag_probe_nb(ucp_worker_h worker, ucp_tag_t tag,
                                   ucp_tag_t tag_mask, int remove,
                                   ucp_tag_recv_info_t *info)
{
    unsigned probes;

    if (!remove || (get(&seen.messages) == 0)) {
        return REAL(ucp_tag_probe_nb)(worker, tag, tag_mask, remove, info);
    }
    add(&seen.messages, -1);
    probes = add(&seen.probes, 1);
    if (probes > get(&seen.longest)) {
        set(&seen.longest, probes);
    }
    info->sender_tag = 0; /* Nobody waits for this one */
    info->length     = 0;
    return (ucp_tag_message_h)&message;
}

ucs_status_ptr_t ucp_tag_msg_recv_nbx(ucp_worker_h worker, void *buffer,
                                      size_t count, ucp_tag_message_h handle,
                                      const ucp_request_param_t *param)
{
    if (handle == (ucp_tag_message_h)&message) {
        return NULL;
    }
    return REAL(ucp_tag_msg_recv_nbx)(worker, buffer, count, handle, param);
}

/* Peers are made: both neighbours, and the process itself */
static void check_creates(void)
{
    mpix_test_msg_t send[2], recv[2];

    mpix_test_send_init(&send[0], 10, mpix_test.right, TAG_USED, 0);
    mpix_test_recv_init(&recv[0], 10, mpix_test.left, TAG_USED, 0);
    mpix_test_send_init(&send[1], 10, mpix_test.rank, TAG_USED, 1);
    mpix_test_recv_init(&recv[1], 10, mpix_test.rank, TAG_USED, 1);
    mpix_test_match(send, 2, recv, 2);
    MPIX_CHECK(get(&seen.creates) >= 2, "%u peers", get(&seen.creates));
    MPIX_CHECK(get(&seen.locked) == 0, "peers were made with the lock");
    mpix_test_use_up(send, recv, 2, 3);
}

/* More messages than a call takes, where they come by UCP */
static void check_probes(void)
{
    MPIX_Queue_info info;
    mpix_test_msg_t msg;
    int flag;

    MPIX_OK(MPIX_Queue_get_info(&info));
    if (strcmp(info.binding, "ucx")) {
        return;
    }
    mpix_test_recv_init(&msg, 10, mpix_test.left, TAG_ALONE, 0);
    MPIX_OK(MPIX_Imatch(&msg.request));
    set(&seen.messages, MESSAGES);
    while (get(&seen.messages) > 0) {
        MPIX_OK(MPIX_Is_matched(&msg.request, &flag, MPI_STATUS_IGNORE));
    }
    MPIX_CHECK(get(&seen.longest) <= MAX_PROBES, "%u probes at once",
               get(&seen.longest));
    mpix_test_msg_free(&msg);
}

/* All but the last rank wait for that one, which answers in MPI_Finalize */
static void check_leaver(MPI_Comm comm)
{
    const int ranks[2] = {mpix_test.size - 1, mpix_test.size - 1};
    mpix_test_msg_t msg;

    if (mpix_test.rank == ranks[0]) {
        return;
    }
    mpix_test_recv_init_comm(&msg, 10, ranks, TAG_ALONE, comm);
    MPIX_IS(MPI_ERR_OTHER, MPIX_Match(&msg.request, MPI_STATUS_IGNORE));
    mpix_test_msg_free(&msg);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    int level;

    mpix_test_init_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) {
        if (mpix_test.rank == 0) {
            printf("skipped: MPI has no MPI_THREAD_MULTIPLE here\n");
        }
        (void)mpix_test_end("mpix_lock");
        return 77;
    }

    check_creates();
    check_probes();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPIX_OK(MPIX_Queue_free(&mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_free(&mpix_test.stream));
    check_leaver(comm);
    MPI_Finalize();

    MPIX_CHECK(get(&seen.destroys) == 1, "%u workers", get(&seen.destroys));
    MPIX_CHECK(get(&seen.locked) == 0, "%u calls with the lock held",
               get(&seen.locked));
    printf("mpix_lock: rank %d, %d checks failed\n", mpix_test.rank,
           mpix_test.failed);
    return (mpix_test.failed == 0) ? 0 : 1;
}
