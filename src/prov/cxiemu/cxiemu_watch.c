/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_watch.c - links that are looked at without being told. */
#include "cxiemu_watch.h"


void cxiemu_watch_next(cxiemu_link_t *link)
{
    cxiemu_nic_t *nic     = link->nic;
    cxiemu_watch_t *watch = link->watch;

    if (watch == NULL) {
        if (!nic->may_watch || (nic->num_watches == CXIEMU_WATCHED_MAX)) {
            return;
        }
        watch                           = &nic->watches[nic->num_watches++];
        watch->link                     = link;
        link->watch                     = watch;
        nic->standing[link->port / 64] |= 1ull << (link->port % 64);
        nic->standing_words            |= 1ull << (link->port / 64);
    }
    watch->seq = cxiemu_link_next_seq(link, &watch->next);
}

void cxiemu_watch_remove(cxiemu_link_t *link)
{
    cxiemu_nic_t *nic     = link->nic;
    cxiemu_watch_t *watch = link->watch;
    uint32_t word         = link->port / 64;

    if (watch == NULL) {
        return;
    }
    link->watch          = NULL;
    nic->standing[word] &= ~(1ull << (link->port % 64));
    if (nic->standing[word] == 0) {
        nic->standing_words &= ~(1ull << word);
    }
    if (watch != &nic->watches[--nic->num_watches]) {
        *watch             = nic->watches[nic->num_watches];
        watch->link->watch = watch;
    }
}

void cxiemu_watch_end(cxiemu_nic_t *nic)
{
    while (nic->num_watches > 0) {
        cxiemu_watch_remove(nic->watches[nic->num_watches - 1].link);
    }
}

unsigned cxiemu_watch_take(cxiemu_nic_t *nic, unsigned budget)
{
    uint32_t ended = __atomic_load_n(&nic->shm->ended, __ATOMIC_SEQ_CST);
    unsigned count = 0;
    unsigned i;

    if (ended != nic->ended) {
        nic->ended = ended;
        cxiemu_watch_end(nic);
    }
    /* From behind, as a link that is lost goes, and the last takes its place */
    for (i = nic->num_watches; i > 0; --i) {
        if ((i <= nic->num_watches) &&
            cxiemu_watch_is_met(&nic->watches[i - 1])) {
            count += cxiemu_link_drain(nic, nic->watches[i - 1].link->port,
                                       budget);
        }
    }
    return count;
}

int cxiemu_watch_has_news(const cxiemu_nic_t *nic)
{
    unsigned word, i;
    uint64_t words;

    for (i = 0; i < nic->num_watches; ++i) {
        if (cxiemu_watch_is_met(&nic->watches[i])) {
            return 1;
        }
    }
    if (__atomic_load_n(&nic->shm->ended, __ATOMIC_SEQ_CST) != nic->ended) {
        return 1;
    }
    words = __atomic_load_n(&nic->shm->summary, __ATOMIC_SEQ_CST);
    if (words & ~nic->standing_words) {
        return 1;
    }
    for (; words != 0; words &= words - 1) {
        word = (unsigned)__builtin_ctzll(words);
        if (__atomic_load_n(&nic->shm->ready[word], __ATOMIC_SEQ_CST) &
            ~nic->standing[word]) {
            return 1;
        }
    }
    return 0;
}
