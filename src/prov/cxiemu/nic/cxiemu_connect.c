/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_connect.c - the beginnings and ends of links. */
#include "nic/cxiemu_peer.h"
#include "base/cxiemu_error.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_process.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Records and acknowledgements of a link; its slots are used by few */
#define CXIEMU_LINK_RINGS_SIZE offsetof(cxiemu_link_shm_t, slots)


/* Takes a port of a NIC, this one's or a peer's: its number, or -1. */
static int cxiemu_port_take(cxiemu_nic_shm_t *shm, uint64_t owner)
{
    uint64_t free_port;
    int i;

    for (i = 0; i < CXIEMU_PORTS; ++i) {
        free_port = 0;
        if ((__atomic_load_n(&shm->ports[i].owner, __ATOMIC_RELAXED) == 0) &&
            __atomic_compare_exchange_n(&shm->ports[i].owner, &free_port, owner,
                                        0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            return i;
        }
    }
    return -1;
}

/* Gives a port of this NIC back. */
static void cxiemu_port_give(cxiemu_nic_t *nic, uint32_t port)
{
    cxiemu_port_t *entry = &nic->shm->ports[port];

    nic->ports[port] = NULL;
    __atomic_store_n(&entry->link, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->owner, 0, __ATOMIC_RELEASE);
}

static cxiemu_link_t *cxiemu_link_new(cxiemu_nic_t *nic, cxiemu_peer_t *peer,
                                      int is_tx)
{
    cxiemu_link_t *link;

    link = calloc(1, sizeof(*link));
    if (link == NULL) {
        return NULL;
    }
    link->nic          = nic;
    link->state        = CXIEMU_LINK_UP;
    link->is_tx        = is_tx;
    link->other        = peer;
    link->peer         = peer->nonce;
    link->pid          = peer->pid;
    link->same_process = (peer->pid == cxiemu_process_self());
    link->may_attach   = peer->may_attach;
    link->nic_shm      = peer->shm;
    link->tail_limit   = CXIEMU_CELLS;
    link->ack_limit    = CXIEMU_ACKS;
    link->free_slots   = (1u << CXIEMU_SLOTS) - 1;
    TAILQ_INIT(&link->pending);
    TAILQ_INIT(&link->waiting);
    return link;
}

/* Enters a link whose ports are known. */
static void cxiemu_link_enter(cxiemu_link_t *link)
{
    link->nic->ports[link->port] = link;
    TAILQ_INSERT_TAIL(&link->nic->links, link, list);
    if (link->is_tx) {
        link->other->tx = link;
    }
    if (link->nic->links_seen == 0) {
        /* From now on, the thread looks after the peers */
        link->nic->links_seen = 1;
        cxiemu_nic_wake_thread(link->nic);
    }
}

/* Makes the memory of a link that this NIC initiates, takes the ports at both
 * ends and tells the target of the link. */
static int cxiemu_link_announce(cxiemu_link_t *link)
{
    cxiemu_nic_t *nic = link->nic;
    uint64_t owner    = cxiemu_port_owner(nic->nonce, cxiemu_process_self());
    cxiemu_port_t *entry;
    int ret, here, there;

    ret = cxiemu_map_create("link", sizeof(*link->shm), &link->map);
    if (ret != 0) {
        return ret;
    }
    /* The rings' pages are made now, here and in cxiemu_port_map(), and their
     * lines brought into the cache: the first thousand messages would have to
     * wait for them */
    link->shm     = link->map->address;
    memset(link->shm, 0, CXIEMU_LINK_RINGS_SIZE);
    link->shm->id = (cxiemu_link_id_t){
        .magic     = CXIEMU_LINK_MAGIC,
        .version   = CXIEMU_PROTO_VERSION,
        .nonce     = cxiemu_nic_nonce(),
        .initiator = nic->nonce,
        .target    = link->peer,
        .pid       = cxiemu_port_pid(owner),
        .nic_fd    = (uint32_t)nic->map->fd
    };
    link->map->target = link->peer;

    here = cxiemu_port_take(nic->shm, owner);
    if (here < 0) {
        return -FI_ENOSPC;
    }
    link->port         = (uint32_t)here;
    link->shm->id.port = link->port;
    there           = cxiemu_port_take(link->nic_shm, owner);
    if (there < 0) {
        cxiemu_port_give(nic, link->port);
        return -FI_ENOSPC;
    }
    link->peer_port = (uint32_t)there;
    entry           = &link->nic_shm->ports[there];
    __atomic_store_n(&entry->fd, (uint32_t)link->map->fd, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->link, link->shm->id.nonce, __ATOMIC_RELEASE);
    cxiemu_link_enter(link);
    /* The target maps the memory before there is need of it */
    cxiemu_nic_notify(link->nic_shm, link->peer_port);
    return 0;
}

static int cxiemu_link_connect(cxiemu_nic_t *nic, const cxiemu_addr_t *addr,
                               cxiemu_link_t **link_p)
{
    cxiemu_peer_t *peer;
    cxiemu_link_t *link;
    int ret;

    ret = cxiemu_peer_get(nic, addr, &peer);
    if (ret != 0) {
        return ret;
    }
    link = cxiemu_link_new(nic, peer, 1);
    if (link == NULL) {
        cxiemu_peer_put(peer);
        return -FI_ENOMEM;
    }
    ret = cxiemu_link_announce(link);
    if (ret != 0) {
        cxiemu_link_free(link);
        return ret;
    }
    cxiemu_info(EP_CTRL, "connected to process %u%s\n", link->pid,
                link->same_process ? ", the same" : "");
    *link_p = link;
    return 0;
}

int cxiemu_link_get(cxiemu_nic_t *nic, const cxiemu_addr_t *addr,
                    cxiemu_link_t **link_p)
{
    cxiemu_peer_t *peer;
    cxiemu_link_t *link;
    int ret;

    if ((addr->version != CXIEMU_ADDR_VERSION) ||
        (addr->host != cxiemu_addr_host()) || (addr->nonce == 0)) {
        return -CXIEMU_ERROR_WAY;
    }
    peer = cxiemu_peer_find(nic, addr->nonce);
    link = (peer == NULL) ? NULL : peer->tx;
    if (link == NULL) {
        ret = cxiemu_link_connect(nic, addr, &link);
        if (ret != 0) {
            cxiemu_info(EP_CTRL, "no way to process %u: %d\n", addr->pid, ret);
            return ret;
        }
    }
    ++link->refs;
    *link_p = link;
    return 0;
}

/* A peer that is made to vanish has gone with its machine. */
int cxiemu_link_error(const cxiemu_link_t *link)
{
    size_t vanish = cxiemu_param()->vanish;

    return ((vanish != 0) && (link->sent > vanish)) ? CXIEMU_ERROR_WAY :
                                                      FI_EHOSTUNREACH;
}

void cxiemu_link_put(cxiemu_link_t *link)
{
    --link->refs;
    /* One that is up is kept: the next user of the address would only have to
     * connect again */
    if ((link->refs == 0) && (link->state == CXIEMU_LINK_LOST)) {
        TAILQ_INSERT_TAIL(&link->nic->lost, link, list);
    }
}


/* Whether an initiator says of a link what its port does. Records of this
 * process may name any of its memory, so that the link must be one that it has
 * made for this NIC: what peers can write does not tell. */
static int cxiemu_port_is_sound(const cxiemu_nic_t *nic,
                                const cxiemu_port_t *port,
                                const cxiemu_link_id_t *id,
                                const cxiemu_map_t *map)
{
    return (id->magic == CXIEMU_LINK_MAGIC) &&
           (id->version == CXIEMU_PROTO_VERSION) &&
           (id->nonce == port->link) && (id->target == nic->nonce) &&
           (cxiemu_port_owner(id->initiator, id->pid) == port->owner) &&
           (id->port < CXIEMU_PORTS) &&
           ((id->pid != cxiemu_process_self()) || (map->target == nic->nonce));
}

/* Maps what a port announces, and says what it is: 0, -FI_EAGAIN if it
 * announces nothing yet, -FI_EINVAL, or the errors of cxiemu_link_get(). */
static int cxiemu_port_map(cxiemu_nic_t *nic, const cxiemu_port_t *entry,
                           cxiemu_link_id_t *id, cxiemu_map_t **map_p)
{
    cxiemu_port_t port = {
        .link  = __atomic_load_n(&entry->link, __ATOMIC_ACQUIRE),
        .owner = __atomic_load_n(&entry->owner, __ATOMIC_RELAXED),
        .fd    = __atomic_load_n(&entry->fd, __ATOMIC_RELAXED)
    };
    int ret;

    if (port.link == 0) {
        return -FI_EAGAIN;
    }
    ret = cxiemu_map_open(cxiemu_port_pid(port.owner), port.fd,
                          sizeof(cxiemu_link_shm_t), map_p);
    if (ret != 0) {
        return ret;
    }
    cxiemu_copy_out(id, (*map_p)->address, sizeof(*id));
    if (!cxiemu_port_is_sound(nic, &port, id, *map_p)) {
        cxiemu_map_put(*map_p);
        return -FI_EINVAL;
    }
#ifdef MADV_POPULATE_WRITE /* Older kernels: the first lap is slower */
    (void)madvise((*map_p)->address, CXIEMU_LINK_RINGS_SIZE,
                  MADV_POPULATE_WRITE);
#endif
    return 0;
}

static int cxiemu_link_admit(cxiemu_nic_t *nic, uint32_t port,
                             cxiemu_link_t **link_p)
{
    cxiemu_addr_t addr = {0};
    cxiemu_link_id_t id;
    cxiemu_peer_t *peer;
    cxiemu_link_t *link;
    cxiemu_map_t *map;
    int ret;

    ret = cxiemu_port_map(nic, &nic->shm->ports[port], &id, &map);
    if (ret != 0) {
        return ret;
    }
    addr.nonce = id.initiator;
    addr.pid   = id.pid;
    addr.fd    = id.nic_fd;
    ret        = cxiemu_peer_get(nic, &addr, &peer);
    if (ret != 0) {
        goto err_map;
    }
    link = cxiemu_link_new(nic, peer, 0);
    if (link == NULL) {
        ret = -FI_ENOMEM;
        goto err_peer;
    }
    link->map       = map;
    link->shm       = map->address;
    link->port      = port;
    link->peer_port = id.port;
    cxiemu_link_enter(link);
    __atomic_store_n(&link->shm->attached,
                     link->may_attach ? CXIEMU_ATTACHED_COPIES :
                                        CXIEMU_ATTACHED_MAPS,
                     __ATOMIC_RELEASE);
    *link_p = link;
    return 0;

err_peer:
    cxiemu_peer_put(peer);
err_map:
    cxiemu_map_put(map);
    return ret;
}

cxiemu_link_t *cxiemu_link_accept(cxiemu_nic_t *nic, uint32_t port)
{
    cxiemu_port_t *entry = &nic->shm->ports[port];
    cxiemu_link_t *link;
    int ret;

    if (__atomic_load_n(&entry->owner, __ATOMIC_ACQUIRE) == 0) {
        return NULL; /* A late notification, of a link that has ended */
    }
    ret = cxiemu_link_admit(nic, port, &link);
    if (ret == 0) {
        return link;
    }
    if (ret == -FI_EHOSTUNREACH) {
        cxiemu_port_give(nic, port);
    } else if (ret != -FI_EAGAIN) {
        /* The initiator finds this when it looks after its peers. The port
         * stays its own until then: a later one must not find the mark. */
        cxiemu_warn(EP_CTRL, "cannot connect to process %u: %s\n",
                    cxiemu_port_pid(entry->owner), fi_strerror(-ret));
        __atomic_store_n(&entry->refused,
                         __atomic_load_n(&entry->link, __ATOMIC_RELAXED),
                         __ATOMIC_RELEASE);
    }
    return NULL;
}


/* Ports of processes that ended between taking one and being connected. */
void cxiemu_port_sweep(cxiemu_nic_t *nic)
{
    unsigned free_ports = 0;
    uint64_t owner;
    uint32_t i;

    /* The lowest is taken first: far behind the last one none is in use */
    for (i = 0; (i < CXIEMU_PORTS) && (free_ports < 64); ++i) {
        owner = __atomic_load_n(&nic->shm->ports[i].owner, __ATOMIC_ACQUIRE);
        if (owner == 0) {
            ++free_ports;
        } else if ((nic->ports[i] == NULL) &&
                   cxiemu_process_is_gone(cxiemu_port_pid(owner))) {
            cxiemu_port_give(nic, i);
        }
    }
}

int cxiemu_link_is_closed(const cxiemu_link_t *link)
{
    return __atomic_load_n(&link->nic_shm->closed, __ATOMIC_ACQUIRE) ||
           (!link->is_tx &&
            __atomic_load_n(&link->shm->closed, __ATOMIC_ACQUIRE));
}

/* Takes a link out of all lists and tells the other side. */
static void cxiemu_link_leave(cxiemu_link_t *link)
{
    cxiemu_nic_t *nic = link->nic;

    if (link->dirty) {
        link->dirty = 0;
        TAILQ_REMOVE(&nic->dirty, link, unflushed);
    }
    if (link->is_stalled) {
        link->is_stalled = 0;
        TAILQ_REMOVE(&nic->stalled, link, stalled);
    }
    TAILQ_REMOVE(&nic->links, link, list);
    link->state = CXIEMU_LINK_LOST;
    if (link->is_tx) {
        link->other->tx = NULL;
        __atomic_store_n(&link->shm->closed, 1, __ATOMIC_RELEASE);
    }
    cxiemu_nic_notify(link->nic_shm, link->peer_port);
    cxiemu_port_give(nic, link->port);
}

void cxiemu_link_lose(cxiemu_link_t *link)
{
    cxiemu_nic_t *nic = link->nic;

    if (link->state != CXIEMU_LINK_UP) {
        return;
    }
    nic->events->ending(link);
    cxiemu_link_leave(link);
    nic->events->lost(link);
    cxiemu_nic_wake_waiters(nic);
    /* The caller may still look at it: it is freed at the end of progress */
    if (link->refs == 0) {
        TAILQ_INSERT_TAIL(&nic->lost, link, list);
    }
}

void cxiemu_link_free(cxiemu_link_t *link)
{
    cxiemu_map_put(link->map);
    cxiemu_peer_put(link->other);
    free(link);
}

void cxiemu_link_reap(cxiemu_nic_t *nic)
{
    cxiemu_link_t *link;

    while ((link = TAILQ_FIRST(&nic->lost)) != NULL) {
        TAILQ_REMOVE(&nic->lost, link, list);
        cxiemu_link_free(link);
    }
}

int cxiemu_link_any_unattached(cxiemu_nic_t *nic)
{
    cxiemu_link_t *link;

    TAILQ_FOREACH(link, &nic->links, list) {
        if (link->is_tx && (link->state == CXIEMU_LINK_UP) &&
            (link->tail != 0) && (link->peer != link->nic->nonce) &&
            !cxiemu_link_is_attached(link) &&
            !cxiemu_peer_is_dead(link->other)) {
            return 1;
        }
    }
    return 0;
}

void cxiemu_link_close_all(cxiemu_nic_t *nic)
{
    cxiemu_link_t *link;

    while ((link = TAILQ_FIRST(&nic->links)) != NULL) {
        link->refs = 0; /* Vectors are closed */
        cxiemu_link_flush(link);
        cxiemu_link_lose(link);
    }
    cxiemu_link_reap(nic);
}
