/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_promise.c - peers that have said that they will poll. */
#include "cxiemu_promise.h"
#include "cxiemu_wait.h"


void cxiemu_promise_note(cxiemu_link_t *link, uint64_t until)
{
    cxiemu_nic_t *nic = link->nic;

    if (link->promised == 0) {
        TAILQ_INSERT_TAIL(&nic->promises, link, promises);
    }
    link->promised = until;
    if (until < nic->promised) {
        nic->promised = until;
    }
}

void cxiemu_promise_forget(cxiemu_link_t *link)
{
    if (link->promised != 0) {
        link->promised = 0;
        TAILQ_REMOVE(&link->nic->promises, link, promises);
    }
}

/* The promise is over. A peer that rests now has looked behind that. */
static void cxiemu_promise_end(cxiemu_link_t *link)
{
    uint64_t until = __atomic_load_n(&link->nic_shm->polls_until,
                                     __ATOMIC_SEQ_CST);

    if (until == link->promised) {
        cxiemu_kick(link->nic_shm, CXIEMU_KICK_THREAD, 1);
    }
    cxiemu_promise_forget(link);
}

void cxiemu_promise_check(cxiemu_nic_t *nic, uint64_t now)
{
    cxiemu_link_t *link, *next;

    if (now <= nic->promised) {
        return;
    }
    nic->promised = CXIEMU_FOREVER;
    for (link = TAILQ_FIRST(&nic->promises); link != NULL; link = next) {
        next = TAILQ_NEXT(link, promises);
        if (now > link->promised) {
            cxiemu_promise_end(link);
        } else if (link->promised < nic->promised) {
            nic->promised = link->promised;
        }
    }
}

uint64_t cxiemu_promise_left(const cxiemu_nic_t *nic, uint64_t now)
{
    if (TAILQ_EMPTY(&nic->promises)) {
        return CXIEMU_FOREVER;
    }
    return (nic->promised < now) ? 0 : (nic->promised - now + 1);
}
