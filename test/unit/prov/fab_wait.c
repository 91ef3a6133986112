/* SPDX-License-Identifier: BSD-3-Clause */
/* fab_wait.c - what parties tell each other, and what they wait for. */
#include "fab_world.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAB_BATCH         16
#define FAB_LINGER_ROUNDS 50


static void fab_stash(fab_cq_t *cq, const struct fi_cq_tagged_entry *entries,
                      size_t count)
{
    if (cq->head + cq->count + count > cq->size) {
        if (cq->count > 0) {
            memmove(cq->stash, cq->stash + cq->head,
                    cq->count * sizeof(*cq->stash));
        }
        cq->head = 0;
        cq->size = (cq->size + count) * 2;
        cq->stash = realloc(cq->stash, cq->size * sizeof(*cq->stash));
    }
    memcpy(cq->stash + cq->head + cq->count, entries,
           count * sizeof(*entries));
    cq->count += count;
}

/* An error stays in the queue until somebody asks for it: -FI_EAVAIL. Formats
 * other than the tagged one are the business of the cases that ask for them. */
static ssize_t fab_reap_cq(fab_side_t *me, fab_cq_t *cq)
{
    struct fi_cq_tagged_entry entries[FAB_BATCH];
    ssize_t ret;

    if ((me->config->format != FI_CQ_FORMAT_UNSPEC) &&
        (me->config->format != FI_CQ_FORMAT_TAGGED)) {
        return fi_cq_read(cq->cq, NULL, 0);
    }

    do {
        ret = fi_cq_read(cq->cq, entries, FAB_BATCH);
        if (ret > 0) {
            fab_stash(cq, entries, (size_t)ret);
        }
    } while (ret == FAB_BATCH);
    return ret;
}

void fab_progress(fab_side_t *me)
{
    fab_reap_cq(me, &me->tx);
    fab_reap_cq(me, &me->rx);
}

int fab_is_lost(uint64_t since)
{
    unsigned limit = st_cunit_limit();

    return (limit > 0) && (fab_now() - since > limit * 500000000ull);
}

void fab_turn(fab_side_t *me, uint64_t *since)
{
    if (*since == 0) {
        *since = fab_now();
    } else if (fab_is_lost(*since)) {
        FAB_REQUIRE(!"took too long");
    }
    if (__atomic_load_n(&me->world->ended, __ATOMIC_ACQUIRE)) {
        fab_give_up(me);
    }
    fab_progress(me);
    sched_yield();
}

void fab_linger(fab_side_t *me)
{
    unsigned i;

    for (i = 0; i < FAB_LINGER_ROUNDS; ++i) {
        fab_progress(me);
        usleep(100);
    }
}

void fab_put(fab_side_t *me, const void *data, size_t length)
{
    const char *from = data;
    ssize_t ret;

    while (length > 0) {
        ret = send(me->oob, from, length, MSG_NOSIGNAL);
        if (ret <= 0) {
            fab_give_up(me);
        }
        from   += ret;
        length -= (size_t)ret;
    }
}

static void fab_take(fab_side_t *me, void *data, size_t length, int flags)
{
    char *to       = data;
    uint64_t since = 0;
    ssize_t ret;

    while (length > 0) {
        ret = recv(me->oob, to, length, flags);
        if (ret > 0) {
            to     += ret;
            length -= (size_t)ret;
        } else if ((ret < 0) && ((errno == EAGAIN) || (errno == EINTR))) {
            fab_turn(me, &since);
        } else {
            fab_give_up(me);
        }
    }
}

void fab_get(fab_side_t *me, void *data, size_t length)
{
    fab_take(me, data, length, MSG_DONTWAIT);
}

void fab_get_asleep(fab_side_t *me, void *data, size_t length)
{
    fab_take(me, data, length, 0);
}

void fab_swap(fab_side_t *me, const void *mine, void *theirs, size_t length)
{
    fab_put(me, mine, length);
    fab_get(me, theirs, length);
}

void fab_barrier(fab_side_t *me)
{
    char mine = 'b', theirs = 0;

    fab_swap(me, &mine, &theirs, 1);
    FAB_REQUIRE(theirs == 'b');
}

static void fab_show_error(fab_side_t *me, fab_cq_t *cq)
{
    struct fi_cq_err_entry err = {0};
    char text[128];

    if (fi_cq_readerr(cq->cq, &err, 0) == 1) {
        snprintf(text, sizeof(text), "error entry: %s, flags %#llx",
                 fi_strerror(err.err), (unsigned long long)err.flags);
        fab_require_at(0, "fab_wait.c", __LINE__, text);
    }
    FAB_REQUIRE(!"-FI_EAVAIL without an error entry");
    (void)me;
}

struct fi_cq_tagged_entry fab_entry(fab_side_t *me, fab_cq_t *cq)
{
    uint64_t since = 0;

    while ((cq->count == 0) && (fab_reap_cq(me, cq) != -FI_EAVAIL)) {
        if (cq->count == 0) {
            fab_turn(me, &since);
        }
    }
    if (cq->count == 0) {
        fab_show_error(me, cq);
    }
    --cq->count;
    return cq->stash[cq->head++];
}

void fab_entries(fab_side_t *me, fab_cq_t *cq, unsigned count)
{
    for (; count > 0; --count) {
        fab_entry(me, cq);
    }
}

struct fi_cq_err_entry fab_error(fab_side_t *me, fab_cq_t *cq)
{
    struct fi_cq_err_entry err = {0};
    uint64_t since             = 0;

    while (fab_reap_cq(me, cq) != -FI_EAVAIL) {
        FAB_REQUIRE(cq->count == 0);
        fab_turn(me, &since);
    }
    FAB_REQUIRE(fi_cq_readerr(cq->cq, &err, 0) == 1);
    return err;
}

int fab_is_empty(fab_side_t *me, fab_cq_t *cq)
{
    fab_linger(me);
    return (cq->count == 0) && (fab_reap_cq(me, cq) == -FI_EAGAIN);
}

static int fab_failed(fab_side_t *me, fab_cq_t *cq)
{
    return fab_reap_cq(me, cq) == -FI_EAVAIL;
}

void fab_count(fab_side_t *me, struct fid_cntr *cntr, uint64_t value)
{
    uint64_t since = 0;

    while (fi_cntr_read(cntr) < value) {
        FAB_REQUIRE(fi_cntr_readerr(cntr) == 0);
        if (fab_failed(me, &me->tx)) {
            fab_show_error(me, &me->tx);
        }
        fab_turn(me, &since);
    }
}

void fab_count_errors(fab_side_t *me, struct fid_cntr *cntr, uint64_t value)
{
    FAB_UNTIL(me, fi_cntr_readerr(cntr) >= value);
}

void fab_reads(fab_side_t *me, struct fid_cntr *cntr, uint64_t value)
{
    FAB_UNTIL(me, fi_cntr_read(cntr) == value);
}

void fab_reads_errors(fab_side_t *me, struct fid_cntr *cntr, uint64_t value)
{
    FAB_UNTIL(me, fi_cntr_readerr(cntr) == value);
}

void fab_word(fab_side_t *me, const void *word, uint64_t value)
{
    FAB_UNTIL(me, fab_load(word) >= value);
}

uint8_t *fab_alloc(size_t length)
{
    uint8_t *data = malloc(length);

    FAB_REQUIRE(data != NULL);
    return data;
}

/* A byte tells its place and what it belongs to; neighbouring seeds differ at
 * every byte */
static uint8_t fab_byte(uint64_t seed, size_t i)
{
    return (uint8_t)((i * 7) + ((i >> 8) * 13) + ((i >> 16) * 29) +
                     (seed * 101) + (seed >> 8));
}

void fab_fill(void *buffer, size_t length, uint64_t seed)
{
    uint8_t *bytes = buffer;
    size_t i;

    for (i = 0; i < length; ++i) {
        bytes[i] = fab_byte(seed, i);
    }
}

size_t fab_differs(const void *buffer, size_t length, uint64_t seed)
{
    const uint8_t *bytes = buffer;
    size_t i;

    for (i = 0; (i < length) && (bytes[i] == fab_byte(seed, i)); ++i);
    return i;
}
