/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fab_gone.c - peers that are killed, stopped or closed, and what is left
 * behind. Party 1 is the victim.
 */
#include "fab_work.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKETS_IS_SILENT "sockets does not tell of a peer that is gone"

/** The card's return codes: no portal entry; no answer. */
#define PTLTE_NOT_FOUND 26
#define UNDELIVERABLE   2

/** Guaranteed: two seconds; more is granted to a loaded machine. */
#define GONE_NS 20000000000ull

/** Bytes of a message that is announced, and sent when it is asked for: more
 *  than is sent at once, less than is copied from the sender's memory. */
#define ANNOUNCED 100000

/** Long enough to see that something does not happen. */
#define AWHILE_NS 50000000ull

/** On cxi a message above 18 KiB is fetched by its receiver. */
#define CXI_WAITS_FOR_EVER "cxi: a sender waits for a fetch that never comes"

#define STOPPED_WITH_ITS_NIC \
    "the NIC below cxi is emulated: that of a stopped process takes nothing"


static void kill_peer(fab_side_t *me)
{
    FAB_REQUIRE(kill((pid_t)me->theirs.pid, SIGKILL) == 0);
}

/* The victim makes progress until it is killed */
static void suffer(fab_side_t *me)
{
    for (;;) {
        fab_progress(me);
        usleep(200);
    }
}

/* As CXI has it where the machine is there and the process is not, or where
 * nothing gets through */
static void check_gone(const struct fi_cq_err_entry *err)
{
    int is_cut = (getenv("FI_CXIEMU_VANISH") != NULL);

    FAB_EQUAL(err->err, is_cut ? FI_EHOSTUNREACH : FI_EIO);
    FAB_EQUAL(err->prov_errno, is_cut ? UNDELIVERABLE : PTLTE_NOT_FOUND);
}

static void expect_gone(fab_side_t *me, fab_cq_t *cq)
{
    struct fi_cq_err_entry err = fab_error(me, cq);

    check_gone(&err);
}

/* Every operation that is owed ends, well or not; how many did not */
static unsigned settle(fab_side_t *me, unsigned owed)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry err;
    uint64_t start  = fab_now();
    unsigned errors = 0;
    ssize_t ret;

    while (owed > 0) {
        ret = fi_cq_read(me->tx.cq, &entry, 1);
        if (ret == -FI_EAVAIL) {
            FAB_REQUIRE(fi_cq_readerr(me->tx.cq, &err, 0) == 1);
            check_gone(&err);
            ++errors;
        }
        if (ret != -FI_EAGAIN) {
            --owed;
            continue;
        }
        if (fab_now() - start > GONE_NS) {
            printf("  %u operations never ended\n", owed);
            FAB_REQUIRE(!"an operation to a killed peer ends");
        }
        usleep(100);
    }
    return errors;
}

/* A later operation fails, at once or by an entry */
static void stays_gone(fab_side_t *me)
{
    uint64_t word = 1;
    ssize_t ret;

    ret = fi_tsend(me->ep, &word, 8, NULL, me->peer, 1, NULL);
    FAB_EQUAL(ret, 0);
    FAB_EQUAL(settle(me, 1), 1);
    /* The endpoint itself is well */
    FAB_MUST(me, fi_write(me->ep, &word, 8, NULL, me->self, me->mine.base,
                          me->mine.key, NULL));
    fab_entry(me, &me->tx);
}

/* Opens a domain of its own for a copy of a party. */
static void open_again(fab_side_t *other, const fab_config_t *config)
{
    other->config = config;
    other->mr     = NULL;
    other->window = NULL;
    memset(&other->tx, 0, sizeof(other->tx));
    memset(&other->rx, 0, sizeof(other->rx));
    fab_open(other);
}

static const fab_config_t large = {.window = 4 * FAB_MIB};

/* Writes of all ways, when the target is killed at a random moment */
static void writes(fab_side_t *me)
{
    static const size_t sizes[] = {8, 1000, 30000, 200000, FAB_MIB};
    uint64_t state              = fab_seed();
    uint8_t *data               = calloc(1, FAB_MIB);
    unsigned i, posted          = 0;
    uint64_t end;

    if (me->index == 1) {
        suffer(me);
    }
    end = fab_now() + (fab_random(&state) % 3000000);
    for (i = 0; fab_now() < end; ++i) {
        posted += fi_write(me->ep, data, sizes[i % 5], NULL, me->peer,
                           me->theirs.base, me->theirs.key, NULL) == 0;
        if (posted >= 500) {
            settle(me, posted);
            posted = 0;
        }
    }
    kill_peer(me);
    for (i = 0; i < 50; ++i) {
        posted += fi_write(me->ep, data, sizes[i % 5], NULL, me->peer,
                           me->theirs.base, me->theirs.key, NULL) == 0;
    }
    settle(me, posted);
    stays_gone(me);
    free(data);
}

FAB_CASE_CALL(writes, writes(me), .config = &large,
              .sockets = SOCKETS_IS_SILENT, .victim = 1)
FAB_CASE_CALL(writes_again, writes(me), .config = &large,
              .sockets = SOCKETS_IS_SILENT, .victim = 1)

FAB_CASE(reads, .config = &large, .sockets = SOCKETS_IS_SILENT, .victim = 1)
{
    uint8_t *data = calloc(4, FAB_MIB);
    unsigned i, posted = 0;

    if (me->index == 1) {
        suffer(me);
    }
    for (i = 0; i < 20; ++i) {
        posted += fi_read(me->ep, data, 4 * FAB_MIB, NULL, me->peer,
                          me->theirs.base, me->theirs.key, NULL) == 0;
    }
    kill_peer(me);
    settle(me, posted);
    stays_gone(me);
    free(data);
}

/* Messages that nobody asked for, large ones among them */
FAB_CASE(sends, .sockets = SOCKETS_IS_SILENT, .cxi = CXI_WAITS_FOR_EVER,
         .victim = 1)
{
    uint8_t *data = calloc(1, FAB_MIB);
    struct fi_context context;
    uint64_t word = 0;
    unsigned i;

    if (me->index == 1) {
        suffer(me);
    }
    FAB_MUST(me, fi_trecv(me->ep, &word, 8, NULL, me->peer, 9, 0, &context));
    for (i = 0; i < 8; ++i) {
        FAB_MUST(me, fi_tsend(me->ep, data, FAB_MIB, NULL, me->peer, i, NULL));
    }
    kill_peer(me);
    FAB_EQUAL(settle(me, 8), 8);
    stays_gone(me);
    /* The receive can still be taken back */
    FAB_EQUAL(fi_cancel(&me->ep->fid, &context), 0);
    FAB_EQUAL(fab_error(me, &me->rx).err, FI_ECANCELED);
    free(data);
}

/* Deferred work that fires when its target is dead counts as a failure, and
 * the chain behind it stands still */
FAB_CASE(deferred, .sockets = SOCKETS_IS_SILENT, .victim = 1)
{
    fab_work_t *works = fab_works(me, 2);
    struct fid_cntr *trigger, *done, *words;
    uint64_t word     = 1;

    if (me->index == 1) {
        suffer(me);
    }
    trigger = fab_cntr(me);
    done    = fab_cntr(me);
    words   = fab_cntr(me);
    fab_work_write(me, &works[0], &word, 8, fab_there(me, 0));
    FAB_EQUAL(fab_queue(me, &works[0], fab_at(trigger, 1, done)), 0);
    fab_work_add(me, &works[1], 1, fab_here(me, 0));
    FAB_EQUAL(fab_queue(me, &works[1], fab_at(done, 1, words)), 0);
    kill_peer(me);
    usleep(10000);
    FAB_EQUAL(fi_cntr_add(trigger, 1), 0);
    fab_count_errors(me, done, 1);
    fab_linger(me);
    FAB_EQUAL(fi_cntr_read(words), 0);
    FAB_EQUAL(fi_control(&me->domain->fid, FI_FLUSH_WORK, NULL), 0);
    fab_error(me, &me->tx);
    fab_cntr_close(trigger);
    fab_cntr_close(done);
    fab_cntr_close(words);
    free(works);
}

/* A waiter that sleeps learns of it, too */
static const fab_config_t sleeping = {
    .window = 4 * FAB_MIB,
    .wait   = FI_WAIT_UNSPEC
};

FAB_CASE(sleeper, .config = &sleeping, .sockets = SOCKETS_IS_SILENT,
         .cxi = CXI_WAITS_FOR_EVER, .victim = 1)
{
    uint8_t *data = calloc(1, FAB_MIB);
    struct fi_cq_tagged_entry entry;
    char byte     = 'x';

    if (me->index == 1) {
        fab_put(me, &byte, 1);
        suffer(me);
    }
    fab_get(me, &byte, 1);
    FAB_MUST(me, fi_tsend(me->ep, data, FAB_MIB, NULL, me->peer, 1, NULL));
    kill_peer(me);
    FAB_EQUAL(fi_cq_sread(me->tx.cq, &entry, 1, NULL, 30000), -FI_EAVAIL);
    expect_gone(me, &me->tx);
    free(data);
}

/* Whether all threads of a process are stopped: the last of them may run for a
 * while after the signal */
static int is_stopped(uint64_t pid)
{
    int stopped = 1;
    char path[320], line[256], *name_end;
    struct dirent *task;
    FILE *file;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%lu/task", (unsigned long)pid);
    dir = opendir(path);
    while ((dir != NULL) && ((task = readdir(dir)) != NULL)) {
        snprintf(path, sizeof(path), "/proc/%lu/task/%s/stat",
                 (unsigned long)pid, task->d_name);
        file = (task->d_name[0] == '.') ? NULL : fopen(path, "r");
        if (file == NULL) {
            continue;
        }
        if (fgets(line, sizeof(line), file) != NULL) {
            name_end = strrchr(line, ')');
            stopped &= (name_end != NULL) && (name_end[1] == ' ') &&
                       (name_end[2] == 'T');
        }
        fclose(file);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return stopped && (dir != NULL);
}

static void stop_peer(fab_side_t *me)
{
    uint64_t start = fab_now();

    FAB_REQUIRE(kill((pid_t)me->theirs.pid, SIGSTOP) == 0);
    while (!is_stopped(me->theirs.pid)) {
        FAB_REQUIRE(!fab_is_lost(start));
        usleep(100);
    }
}

/* A stopped peer costs time, and nothing else */
FAB_CASE(stopped, .config = &large, .parties = FAB_PROCESSES,
         .sockets = SOCKETS_IS_SILENT)
{
    enum { COUNT = 20 };
    uint8_t *data = malloc(FAB_MIB);
    unsigned i, posted = 0, own = 0;

    if (me->index == 1) {
        fab_count(me, me->landed, COUNT);
        FAB_EQUAL(fab_differs(me->window, FAB_MIB, 77), FAB_MIB);
        return;
    }
    fab_fill(data, FAB_MIB, 77);
    stop_peer(me);
    for (i = 0; i < COUNT; ++i) {
        posted += fi_write(me->ep, data, FAB_MIB, NULL, me->peer,
                           me->theirs.base, me->theirs.key, data) == 0;
    }
    FAB_EQUAL(posted, COUNT);
    /* Meanwhile others are served */
    for (i = 0; i < 100; ++i) {
        FAB_MUST(me, fi_write(me->ep, data, 1000, NULL, me->self,
                              me->mine.base, me->mine.key, me));
        while (fab_entry(me, &me->tx).op_context != me) {
            FAB_CHECK(!"a stopped process has carried something out");
        }
        ++own;
    }
    FAB_EQUAL(own, 100);
    FAB_REQUIRE(kill((pid_t)me->theirs.pid, SIGCONT) == 0);
    fab_entries(me, &me->tx, COUNT);
    free(data);
}

/* The victim announces a message, whose data the receiver asks for */
static void announce(fab_side_t *me, uint8_t *data)
{
    FAB_MUST(me, fi_tsend(me->ep, data, ANNOUNCED, NULL, me->peer, 5, NULL));
    if (fab_subject() == FAB_CXI) {
        usleep(100000); /* An emulated NIC may be a thread, stopped with us */
    }
    fab_put(me, data, 1);
}

/* A message of a peer that is stopped was announced, and taken by a receive */
static void take_announced(fab_side_t *me, uint8_t *data)
{
    uint8_t byte;

    fab_get(me, &byte, 1);
    stop_peer(me);
    FAB_MUST(me, fi_trecv(me->ep, data, ANNOUNCED, NULL, me->peer, 5, 0, NULL));
    FAB_CHECK(fab_is_empty(me, &me->rx));
}

/* A receive that was matched ends if the sender does before its data came */
FAB_CASE(receives, .sockets = SOCKETS_IS_SILENT, .victim = 1)
{
    static uint8_t data[ANNOUNCED];

    if (me->index == 1) {
        announce(me, data);
        suffer(me);
    }
    take_announced(me, data);
    kill_peer(me);
    expect_gone(me, &me->rx);
    stays_gone(me);
}

/* Closing with operations under way to a peer that is stopped */
FAB_CASE(close_while_stopped, .config = &large, .sockets = SOCKETS_IS_SILENT,
         .victim = 1)
{
    static uint8_t data[4 * FAB_MIB];
    static uint8_t announced[ANNOUNCED];
    unsigned i;

    if (me->index == 1) {
        announce(me, announced);
        suffer(me);
    }
    take_announced(me, announced);
    for (i = 0; i < 20; ++i) {
        FAB_MUST(me, fi_write(me->ep, data, FAB_MIB, NULL, me->peer,
                              me->theirs.base, me->theirs.key, NULL));
        FAB_MUST(me, fi_tsend(me->ep, data, FAB_MIB, NULL, me->peer, 1, NULL));
    }
    /* fab_close() comes next, with the peer as it is */
}

/* A message that is over for its sender, which closes then, comes to a peer
 * that is slow: that one was stopped before it knew of the sender */
FAB_CASE(slow_to_attach, .parties = FAB_PROCESSES,
         .sockets = SOCKETS_IS_SILENT)
{
    static const fab_config_t none = {.no_window = 1};
    fab_side_t other               = *me;
    uint64_t word                  = 0x5afe;
    uint64_t start;
    struct fi_cq_tagged_entry entry;
    fi_addr_t addr;
    ssize_t ret;

    if (me->index == 1) {
        FAB_MUST(me, fi_trecv(me->ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC,
                              3, 0, NULL));
        fab_barrier(me);
        fab_entry(me, &me->rx);
        FAB_EQUAL(word, 0x5afe);
        return;
    }
    fab_barrier(me);
    stop_peer(me);
    open_again(&other, &none);
    FAB_EQUAL(fi_av_insert(other.av, me->theirs.name, 1, &addr, 0, NULL), 1);
    FAB_MUST(&other, fi_tsend(other.ep, &word, sizeof(word), NULL, addr, 3,
                              NULL));
    start = fab_now();
    do {
        ret = fi_cq_read(other.tx.cq, &entry, 1);
        usleep(1000);
    } while ((ret == -FI_EAGAIN) && (fab_now() - start < AWHILE_NS));
    if (ret == -FI_EAGAIN) { /* It waits for the peer */
        FAB_REQUIRE(kill((pid_t)me->theirs.pid, SIGCONT) == 0);
        fab_entry(&other, &other.tx);
    } else {
        FAB_EQUAL(ret, 1);
    }
    fab_close(&other);
    FAB_REQUIRE(kill((pid_t)me->theirs.pid, SIGCONT) == 0);
}

/* Stops this process, then continues the peer and tells it so. */
static void change_places(fab_side_t *me)
{
    uint8_t byte = 0;
    pid_t self   = getpid();
    pid_t pid    = fork();

    if (pid == 0) {
        while (!is_stopped((uint64_t)self)) {
            usleep(100);
        }
        kill((pid_t)me->theirs.pid, SIGCONT);
        fab_put(me, &byte, 1);
        _exit(0);
    }
    FAB_REQUIRE(pid > 0);
    raise(SIGSTOP);
    FAB_EQUAL(waitpid(pid, NULL, 0), pid);
}

/* An endpoint closes between its wish for a message's data and the data: that
 * message fails, and no operation that comes after it */
FAB_CASE(closed_while_taking, .parties = FAB_PROCESSES,
         .sockets = SOCKETS_IS_SILENT, .cxi = CXI_WAITS_FOR_EVER)
{
    enum { LENGTH = 20000 }; /* Announced, and then sent in one piece */
    static uint8_t data[LENGTH];
    struct fid_ep *ep;
    char name[FAB_NAME_MAX];
    size_t length = sizeof(name);
    fi_addr_t addr;
    uint8_t byte;
    uint64_t start;

    if (me->index == 0) {
        ep = fab_endpoint(me);
        FAB_EQUAL(fi_getname(&ep->fid, name, &length), 0);
        fab_put(me, name, sizeof(name));
        fab_get(me, &byte, 1);
        stop_peer(me);
        FAB_MUST(me, fi_trecv(ep, data, LENGTH, NULL, FI_ADDR_UNSPEC, 5, 0,
                              NULL));
        fab_linger(me);
        FAB_EQUAL(fi_close(&ep->fid), 0);
        change_places(me);
        fab_barrier(me);
        return;
    }
    fab_get(me, name, sizeof(name));
    FAB_EQUAL(fi_av_insert(me->av, name, 1, &addr, 0, NULL), 1);
    FAB_MUST(me, fi_tsend(me->ep, data, LENGTH, NULL, addr, 5, NULL));
    fab_put(me, data, 1);
    fab_get_asleep(me, &byte, 1);
    /* The peer is stopped, and may have answered before */
    start = fab_now();
    while (fab_is_empty(me, &me->tx) && (fab_now() - start < AWHILE_NS)) {
    }
    if (fab_is_empty(me, &me->tx)) {
        kill((pid_t)me->theirs.pid, SIGCONT);
    }
    expect_gone(me, &me->tx);
    FAB_MUST(me, fi_write(me->ep, data, 8, NULL, me->peer, me->theirs.base,
                          me->theirs.key, NULL));
    kill((pid_t)me->theirs.pid, SIGCONT);
    fab_entry(me, &me->tx);
    fab_barrier(me);
}

/* What a target was given, and what it answered, before it closed in good
 * order counts, however slow the one that asked for it is: writes, and as many
 * atomics and messages, and large writes */
static void close_first(fab_side_t *me, unsigned writes, unsigned others,
                        unsigned larges)
{
    static uint8_t data[30000];
    fab_side_t other = *me;
    uint64_t one     = 1;
    fi_addr_t addr;
    unsigned i;
    uint8_t byte;

    if (me->index == 0) {
        open_again(&other, &large);
        fab_put(me, &other.mine, sizeof(other.mine));
        fab_get_asleep(me, &byte, 1);
        fab_close(&other); /* Now there is nobody any more */
        FAB_REQUIRE(kill((pid_t)me->theirs.pid, SIGCONT) == 0);
        fab_barrier(me);
        return;
    }
    fab_get(me, &other.mine, sizeof(other.mine));
    FAB_EQUAL(fi_av_insert(me->av, other.mine.name, 1, &addr, 0, NULL), 1);
    FAB_MUST(me, fi_write(me->ep, data, 8, NULL, addr, other.mine.base,
                          other.mine.key, NULL));
    fab_entry(me, &me->tx);
    stop_peer(me);
    for (i = 0; i < writes; ++i) {
        FAB_MUST(me, fi_write(me->ep, data, 8, NULL, addr, other.mine.base + 64,
                              other.mine.key, NULL));
    }
    for (i = 0; i < others; ++i) {
        FAB_MUST(me, fi_atomic(me->ep, &one, 1, NULL, addr, other.mine.base,
                               other.mine.key, FI_UINT64, FI_SUM, NULL));
        FAB_MUST(me, fi_tsend(me->ep, data, 8, NULL, addr, i, NULL));
    }
    for (i = 0; i < larges; ++i) {
        FAB_MUST(me, fi_write(me->ep, data, sizeof(data), NULL, addr,
                              other.mine.base + 64, other.mine.key, NULL));
    }
    change_places(me);
    fab_entries(me, &me->tx, writes + 2 * others + larges);
    fab_barrier(me);
}

FAB_CASE_CALL(closed_first, close_first(me, 200, 200, 10),
              .parties = FAB_PROCESSES, .sockets = SOCKETS_IS_SILENT,
              .cxi = STOPPED_WITH_ITS_NIC)

/* As many as there may be, each of which stays behind the others */
static const fab_config_t ordered = {
    .msg_order = FI_ORDER_WAW | FI_ORDER_RMA_WAW,
    .tx_size   = 2048
};

FAB_CASE_CALL(closed_first_ordered, close_first(me, 1000, 0, 0),
              .config = &ordered, .parties = FAB_PROCESSES,
              .sockets = SOCKETS_IS_SILENT,
              .cxi = STOPPED_WITH_ITS_NIC)

/* A peer that leaves in good order leaves error entries, too */
FAB_CASE(closed, .sockets = SOCKETS_IS_SILENT, .cxi = CXI_WAITS_FOR_EVER)
{
    uint8_t *data = calloc(1, FAB_MIB);
    struct fid_ep *ep;
    char name[FAB_NAME_MAX];
    size_t length = sizeof(name);
    fi_addr_t addr;

    if (me->index == 1) {
        ep = fab_endpoint(me);
        FAB_EQUAL(fi_getname(&ep->fid, name, &length), 0);
        fab_put(me, name, sizeof(name));
        fab_barrier(me);
        FAB_EQUAL(fi_close(&ep->fid), 0);
        fab_barrier(me);
        free(data);
        return;
    }
    fab_get(me, name, sizeof(name));
    FAB_EQUAL(fi_av_insert(me->av, name, 1, &addr, 0, NULL), 1);
    FAB_MUST(me, fi_tsend(me->ep, data, FAB_MIB, NULL, addr, 1, NULL));
    FAB_CHECK(fab_is_empty(me, &me->tx));
    fab_barrier(me);
    fab_barrier(me);
    fab_error(me, &me->tx);
    /* One that fits into the target's own buffers may be complete before the
     * target looks where it goes; one that must be delivered cannot */
    FAB_MUST(me, fi_tsend(me->ep, data, FAB_MIB, NULL, addr, 1, NULL));
    fab_error(me, &me->tx);
    free(data);
}

/* What had come before an endpoint was closed was taken: a NIC does that by
 * itself, and so does one whose thread had no processor yet */
FAB_CASE(closed_late, .sockets = SOCKETS_IS_SILENT,
         .cxi = "cxi aborts senders to an endpoint that is being closed")
{
    uint64_t word = 1;
    size_t length;
    char name[FAB_NAME_MAX];
    struct fid_ep *ep;
    fi_addr_t addr;
    int i;

    for (i = 0; i < 100; ++i) {
        ep     = fab_endpoint(me);
        length = sizeof(name);
        FAB_EQUAL(fi_getname(&ep->fid, name, &length), 0);
        FAB_EQUAL(fi_av_insert(me->av, name, 1, &addr, 0, NULL), 1);
        FAB_MUST(me, fi_tsend(me->ep, &word, sizeof(word), NULL, addr, 1,
                              NULL));
        FAB_EQUAL(fi_close(&ep->fid), 0);
        fab_entry(me, &me->tx);
        FAB_EQUAL(fi_av_remove(me->av, &addr, 1, 0), 0);
    }
}

/* The same of regions */
FAB_CASE(deregistered_late, .sockets = SOCKETS_IS_SILENT,
         .cxi = "cxi does not keep order of an operation and its region's end")
{
    static uint64_t words[2];
    uint64_t *word = &words[me->index], one = 1;
    struct fid_mr *mr;
    int i;

    *word = 0;
    for (i = 0; i < 100; ++i) {
        mr = fab_register(me, word, sizeof(*word), 1000, NULL);
        FAB_MUST(me, fi_atomic(me->ep, &one, 1, NULL, me->self,
                               fab_base(me, word), fi_mr_key(mr), FI_UINT64,
                               FI_SUM, NULL));
        FAB_EQUAL(fi_close(&mr->fid), 0);
        fab_entry(me, &me->tx);
    }
    FAB_EQUAL(fab_load(word), 100);
}

/* FI_CXIEMU_FAIL: some operations fail, and none is lost */
FAB_CASE(injected_failures, .sockets = SOCKETS_IS_SILENT,
         .env = "FI_CXIEMU_FAIL")
{
    enum { COUNT = 600 };
    uint64_t word = 1, since = 0;
    unsigned i, failed = 0, good = 0;
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry err;
    ssize_t ret;

    for (i = 0; i < COUNT; ++i) {
        FAB_EQUAL(fi_write(me->ep, &word, 8, NULL, me->peer, me->theirs.base,
                           me->theirs.key, NULL), 0);
        do {
            ret = fi_cq_read(me->tx.cq, &entry, 1);
            FAB_REQUIRE((since == 0) || (fab_now() - since < GONE_NS));
        } while (ret == -FI_EAGAIN);
        since = fab_now();
        if (ret == 1) {
            ++good;
        } else {
            FAB_EQUAL(ret, -FI_EAVAIL);
            FAB_EQUAL(fi_cq_readerr(me->tx.cq, &err, 0), 1);
            FAB_CHECK(err.err != 0);
            ++failed;
        }
    }
    FAB_EQUAL(good + failed, COUNT);
    FAB_CHECK((failed > 0) && (good > 0));
    fab_barrier(me);
}

/* FI_CXIEMU_VANISH: from some moment on nothing gets through any more */
FAB_CASE(injected_loss, .sockets = SOCKETS_IS_SILENT, .env = "FI_CXIEMU_VANISH")
{
    enum { COUNT = 2000 };
    uint64_t word = 1;
    unsigned i, accepted = 0, failed = 0;

    for (i = 0; (i < COUNT) && (failed == 0); ++i) {
        if (FAB_POST(me, fi_write(me->ep, &word, 8, NULL, me->peer,
                                  me->theirs.base, me->theirs.key, NULL)) !=
            0) {
            ++failed;
            break;
        }
        ++accepted;
        failed += settle(me, 1);
    }
    FAB_CHECK(accepted > 0);
    FAB_CHECK(failed > 0);
    stays_gone(me);
    fab_barrier(me);
}

/* Descriptors, threads and files of this process and of the system */
static unsigned count_dir(const char *path, const char *part)
{
    char name[512], target[256];
    struct dirent *entry;
    unsigned count = 0;
    DIR *dir       = opendir(path);
    ssize_t length;

    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        length = readlink(name, target, sizeof(target) - 1);
        target[(length > 0) ? length : 0] = '\0';
        count += (strstr(entry->d_name, part) != NULL) ||
                 (strstr(target, part) != NULL);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

FAB_CASE(nothing_left, .parties = FAB_PROCESSES, .sockets = SOCKETS_IS_SILENT)
{
    static const fab_config_t none = {.no_window = 1};
    fab_side_t other = *me;

    FAB_EQUAL(count_dir("/dev/shm", "cxiemu"), 0);
    FAB_EQUAL(count_dir("/tmp", "cxiemu"), 0);
    if (me->index == 0) {
        unsigned fds = count_dir("/proc/self/fd", "");
        unsigned threads = count_dir("/proc/self/task", "");
        unsigned i;

        for (i = 0; i < 5; ++i) {
            open_again(&other, &none);
            fab_close(&other);
        }
        FAB_EQUAL(count_dir("/proc/self/fd", ""), fds);
        FAB_EQUAL(count_dir("/proc/self/task", ""), threads);
    }
}

/* What is shared is for this user alone */
FAB_CASE(private_memory, .parties = FAB_PROCESSES, .sockets = SOCKETS_IS_SILENT)
{
    char name[64], target[256];
    struct dirent *entry;
    struct stat st;
    DIR *dir = opendir("/proc/self/fd");
    ssize_t length;

    FAB_REQUIRE(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        snprintf(name, sizeof(name), "/proc/self/fd/%.20s", entry->d_name);
        length = readlink(name, target, sizeof(target) - 1);
        target[(length > 0) ? length : 0] = '\0';
        if ((strstr(target, "memfd:") == NULL) || (stat(name, &st) != 0)) {
            continue;
        }
        FAB_EQUAL(st.st_mode & 07777, 0600);
        FAB_EQUAL(st.st_uid, geteuid());
    }
    closedir(dir);
    (void)me;
}

FAB_SUITE("fab_gone")
