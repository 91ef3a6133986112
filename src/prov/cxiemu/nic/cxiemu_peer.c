/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_peer.c - other NICs and the processes they belong to. */
#include "nic/cxiemu_peer.h"
#include "base/cxiemu_process.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>


int cxiemu_peer_is_dead(const cxiemu_peer_t *peer)
{
    struct pollfd fd = {.fd = peer->pidfd, .events = POLLIN};

    if (peer->pidfd >= 0) {
        return poll(&fd, 1, 0) > 0;
    }
    /* This process, one of a directory, or a kernel without descriptors */
    return cxiemu_process_is_gone(peer->pid);
}

/* Opens what tells when the process ends. */
static int cxiemu_peer_watch(cxiemu_peer_t *peer)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    int err;

    peer->pidfd = -1;
    if (!cxiemu_process_is_pid() || (peer->pid == (uint32_t)getpid())) {
        return 0;
    }
    peer->pidfd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
    if (peer->pidfd < 0) {
        /* Whatever the kernel, or a filter of system calls, has against it: the
         * process is asked for by its number then */
        return (errno == ESRCH) ? -FI_EHOSTUNREACH : 0;
    }
    if (epoll_ctl(peer->nic->epoll, EPOLL_CTL_ADD, peer->pidfd, &event)) {
        err = -errno;
        close(peer->pidfd);
        return err;
    }
    return 0;
}

static void cxiemu_peer_unwatch(cxiemu_peer_t *peer)
{
    if (peer->pidfd >= 0) {
        epoll_ctl(peer->nic->epoll, EPOLL_CTL_DEL, peer->pidfd, NULL);
        close(peer->pidfd);
    }
}

static struct cxiemu_peer_bucket *cxiemu_peer_bucket(cxiemu_nic_t *nic,
                                                     uint64_t nonce)
{
    return &nic->peers_by_nonce[nonce % CXIEMU_PEER_BUCKETS];
}

static int cxiemu_peer_create(cxiemu_nic_t *nic, const cxiemu_addr_t *addr,
                              cxiemu_peer_t **peer_p)
{
    cxiemu_nic_shm_t *shm;
    cxiemu_peer_t *peer;
    int ret;

    peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        return -FI_ENOMEM;
    }
    peer->nic   = nic;
    peer->nonce = addr->nonce;
    peer->pid   = addr->pid;
    ret         = cxiemu_peer_watch(peer);
    if (ret != 0) {
        goto err_free;
    }
    /* Map the NIC's memory and make sure that it is the one that was meant, and
     * has endpoints in our network: on one card CXI finds no entry of it, too.
     * The process was opened before: if it is still there after, its number has
     * not been given to another one. */
    ret = cxiemu_map_open(peer->pid, addr->fd, sizeof(*shm), &peer->map);
    if (ret != 0) {
        goto err_unwatch;
    }
    shm = peer->map->address;
    if ((shm->magic != CXIEMU_NIC_MAGIC) ||
        (shm->version != CXIEMU_PROTO_VERSION) ||
        (shm->nonce != peer->nonce) || (shm->pid != peer->pid) ||
        (shm->vni != cxiemu_param()->vni) ||
        __atomic_load_n(&shm->closed, __ATOMIC_ACQUIRE) ||
        cxiemu_peer_is_dead(peer)) {
        ret = -FI_EHOSTUNREACH;
        goto err_map;
    }
    peer->shm        = shm;
    peer->may_attach = nic->may_attach && cxiemu_map_may_attach(peer->pid);
    TAILQ_INSERT_TAIL(&nic->peers, peer, list);
    LIST_INSERT_HEAD(cxiemu_peer_bucket(nic, peer->nonce), peer, bucket);
    *peer_p = peer;
    return 0;

err_map:
    cxiemu_map_put(peer->map);
err_unwatch:
    cxiemu_peer_unwatch(peer);
err_free:
    free(peer);
    return ret;
}

cxiemu_peer_t *cxiemu_peer_find(cxiemu_nic_t *nic, uint64_t nonce)
{
    cxiemu_peer_t *peer;

    LIST_FOREACH(peer, cxiemu_peer_bucket(nic, nonce), bucket) {
        if (peer->nonce == nonce) {
            break;
        }
    }
    return peer;
}

int cxiemu_peer_get(cxiemu_nic_t *nic, const cxiemu_addr_t *addr,
                    cxiemu_peer_t **peer_p)
{
    cxiemu_peer_t *peer = cxiemu_peer_find(nic, addr->nonce);
    int ret;

    if (peer == NULL) {
        ret = cxiemu_peer_create(nic, addr, &peer);
        if (ret != 0) {
            return ret;
        }
    }
    ++peer->refs;
    *peer_p = peer;
    return 0;
}

void cxiemu_peer_put(cxiemu_peer_t *peer)
{
    if (--peer->refs == 0) {
        TAILQ_REMOVE(&peer->nic->peers, peer, list);
        LIST_REMOVE(peer, bucket);
        cxiemu_peer_unwatch(peer);
        cxiemu_map_put(peer->map);
        free(peer);
    }
}
