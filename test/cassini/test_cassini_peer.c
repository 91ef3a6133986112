/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cassini_peer.c - the emulated Cassini between processes: what one
 * writes to another, the end of one, faults that are asked for, and what is
 * left open. */
#include "cassini_user.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BITS     0x99
#define PEER_PID 100
#define LENGTH   20000

/* Where a peer keeps what its parent is to see: behind its entry */
#define PEER_READY  (LENGTH + 8)
#define PEER_FINISH (LENGTH + 16)


/** A peer's own side. */
typedef struct {
    cassini_user_t    user;
    cassini_user_ct_t ct;
} peer_t;

/* An entry over its memory, which counts */
static void open_peer(peer_t *peer)
{
    cassini_user_t *user = &peer->user;
    cassini_command_t entry;

    cassini_user_open(user, PEER_PID);
    cassini_ct_open(user, &peer->ct);
    *(uint64_t*)(user->memory + PEER_READY) = 1;
    entry                = cassini_entry(user, CASSINI_PRIORITY, user->memory,
                                         CASSINI_USER_MEMORY, BITS);
    entry.tgt.no_success = 1;
    entry.tgt.ct         = peer->ct.ct->ctn;
    entry.tgt.ct_comm    = 1;
    cassini_append(user, &entry);
    cassini_ready();
}

/* Until its parent writes that it is to go on */
static void await_finish(const peer_t *peer)
{
    double end = cassini_now() + cassini_limit();
    volatile uint64_t *finish;

    finish = (volatile uint64_t*)(peer->user.memory + PEER_FINISH);
    while ((__atomic_load_n(finish, __ATOMIC_ACQUIRE) == 0) &&
           (cassini_now() < end)) {
        usleep(100);
    }
}

static void part_peer(void)
{
    peer_t peer;

    open_peer(&peer);
    await_finish(&peer);
    cassini_unlink(&peer.user, CASSINI_PRIORITY, 77);
    cassini_ct_close(&peer.ct);
    cassini_user_close(&peer.user);
}

/* Its first operation is the one at which it vanishes */
static void part_vanishing(void)
{
    cassini_command_t cmd;
    peer_t peer;

    open_peer(&peer);
    await_finish(&peer);
    cmd                = cassini_dma(&peer.user, CASSINI_OP_PUT, PEER_PID,
                                     peer.user.memory, 8);
    cmd.dma.match_bits = BITS;
    cassini_emit(peer.user.tx, &cmd, sizeof(cmd.dma));
    (void)cassini_event_is_there(&peer.user, 30000);
}

/** This process, and the other one. */
typedef struct {
    cassini_user_t user;
    pid_t          pid;
} pair_t;

static cassini_command_t to_peer(pair_t *pair, unsigned op, const void *local,
                                 size_t length, uint64_t offset)
{
    cassini_command_t cmd = cassini_dma(&pair->user, op, PEER_PID, local,
                                        length);

    cmd.dma.match_bits = BITS;
    cmd.dma.offset     = offset;
    cmd.dma.no_send    = 1;
    return cmd;
}

/* The peer's part, and the operation at which it vanishes: none, or a number */
static void open_pair_with(pair_t *pair, const char *part, const char *vanish)
{
    volatile uint64_t *word;
    cassini_command_t cmd;

    cassini_user_open(&pair->user, CASSINI_PID_ANY);
    if (vanish != NULL) {
        setenv("CASSINI_VANISH", vanish, 1); /* The NIC here has read its own */
    }
    pair->pid = cassini_child(part, NULL);
    unsetenv("CASSINI_VANISH");
    cassini_child_await();
    word = (volatile uint64_t*)(pair->user.memory + 40000);
    cmd  = to_peer(pair, CASSINI_OP_GET, (const void*)word, 8, PEER_READY);
    cassini_emit(pair->user.tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(&pair->user, CASSINI_EV_REPLY, CASSINI_RC_OK);
    CU_ASSERT(*word == 1);
}

static void open_pair(pair_t *pair)
{
    open_pair_with(pair, "peer", NULL);
}

/* Tell the peer to go on with its end */
static void write_finish(pair_t *pair)
{
    cassini_command_t cmd;

    memset(pair->user.memory + 40000, 1, 8);
    cmd = to_peer(pair, CASSINI_OP_PUT, pair->user.memory + 40000, 8,
                  PEER_FINISH);
    cassini_emit(pair->user.tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(&pair->user, CASSINI_EV_ACK, CASSINI_RC_OK);
}

/* All its threads stand still */
static void stop_peer(const pair_t *pair)
{
    int status = 0;

    CU_ASSERT(kill(pair->pid, SIGSTOP) == 0);
    CU_ASSERT(waitpid(pair->pid, &status, WUNTRACED) == pair->pid);
    CU_ASSERT(WIFSTOPPED(status));
}

static void close_pair(pair_t *pair)
{
    write_finish(pair);
    CU_ASSERT(cassini_child_wait(pair->pid) == 0);
    cassini_user_close(&pair->user);
}

ST_CASE_WITH(put_get, pair_t, pair, open_pair(pair), close_pair(pair))
{
    uint8_t *memory = pair->user.memory;
    cassini_command_t cmd;
    size_t i;

    for (i = 0; i < LENGTH; ++i) {
        memory[i] = (uint8_t)(i * 13 + 5);
    }
    cmd = to_peer(pair, CASSINI_OP_PUT, memory, LENGTH, 0);
    cassini_emit(pair->user.tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(&pair->user, CASSINI_EV_ACK, CASSINI_RC_OK);
    CU_ASSERT(pair->user.event.init.length == LENGTH);
    cmd = to_peer(pair, CASSINI_OP_GET, memory + 32768, LENGTH, 0);
    cassini_emit(pair->user.tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(&pair->user, CASSINI_EV_REPLY, CASSINI_RC_OK);
    CU_ASSERT(memcmp(memory, memory + 32768, LENGTH) == 0);
}

/* Additions of both sides to one word: none is lost */
static void part_adder(void)
{
    cassini_user_t user;
    cassini_command_t cmd;
    int i;

    cassini_user_open(&user, CASSINI_PID_ANY);
    cmd                = cassini_dma(&user, CASSINI_OP_ATOMIC, PEER_PID,
                                     user.memory, 8);
    user.memory[0]     = 1;
    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    cmd.dma_amo.amo_op = CASSINI_AMO_SUM;
    cmd.dma_amo.amo_type = CASSINI_UINT64;
    for (i = 0; i < 2000; ++i) {
        cassini_emit(user.tx, &cmd, sizeof(cmd.dma_amo));
        cassini_event_rc(&user, CASSINI_EV_ACK, CASSINI_RC_OK);
    }
    cassini_user_close(&user);
}

ST_CASE_WITH(atomics, pair_t, pair, open_pair(pair), close_pair(pair))
{
    cassini_command_t cmd;
    pid_t adders[3];
    uint64_t sum = 0;
    int i;

    for (i = 0; i < 3; ++i) {
        adders[i] = cassini_child("adder", NULL);
    }
    for (i = 0; i < 3; ++i) {
        CU_ASSERT(cassini_child_wait(adders[i]) == 0);
    }
    cmd = to_peer(pair, CASSINI_OP_GET, pair->user.memory, 8, 0);
    cassini_emit(pair->user.tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(&pair->user, CASSINI_EV_REPLY, CASSINI_RC_OK);
    memcpy(&sum, pair->user.memory, sizeof(sum));
    CU_ASSERT(sum == 6000);
}

/* A put that waits for a count goes to the other process, too, and counts here
 * once it is there */
ST_CASE_WITH(triggered, pair_t, pair, open_pair(pair), close_pair(pair))
{
    cassini_command_t cmd = cassini_command(CASSINI_CT, CASSINI_CT_TRIG_DMA);
    cassini_command_t dma = to_peer(pair, CASSINI_OP_PUT, pair->user.memory,
                                    64, 128);
    cassini_user_ct_t a, b;

    cassini_ct_open(&pair->user, &a);
    cassini_ct_open(&pair->user, &b);
    memset(pair->user.memory, 0x3c, 64);
    dma.dma.size       = CASSINI_64B;
    dma.dma.no_success = 1;
    dma.dma.ct         = b.ct->ctn;
    dma.dma.ct_ack     = 1;
    cmd.ct.trig_ct     = a.ct->ctn;
    cmd.ct.threshold   = 1;
    memcpy((uint8_t*)&cmd + sizeof(cmd.ct), &dma.dma, sizeof(dma.dma));
    cassini_emit(pair->user.trig, &cmd, sizeof(cmd.ct) + sizeof(dma.dma));
    CU_ASSERT(cassini_drained(pair->user.trig, 30000));
    *(volatile uint64_t*)a.ct->page = 1;
    cassini_ct_expect(&pair->user, &b, 1, 0);
    dma    = to_peer(pair, CASSINI_OP_GET, pair->user.memory + 4096, 64, 128);
    cassini_emit(pair->user.tx, &dma, sizeof(dma.dma));
    cassini_event_rc(&pair->user, CASSINI_EV_REPLY, CASSINI_RC_OK);
    CU_ASSERT(pair->user.memory[4096 + 63] == 0x3c);
    cassini_ct_close(&a);
    cassini_ct_close(&b);
}

/* What goes to a process until it is known as dead; then its code */
static unsigned put_until_error(pair_t *pair)
{
    cassini_command_t cmd = to_peer(pair, CASSINI_OP_PUT, pair->user.memory,
                                    64, 0);
    double end            = cassini_now() + cassini_limit();

    do {
        cassini_emit(pair->user.tx, &cmd, sizeof(cmd.dma));
        (void)cassini_event(&pair->user, CASSINI_EV_ACK);
    } while ((cassini_event_code(&pair->user.event) == CASSINI_RC_OK) &&
             (cassini_now() < end));
    return cassini_event_code(&pair->user.event);
}

/* A process that is killed: what goes to it finds no portal entry, also what
 * waited for a count. Its number can be had again. */
ST_CASE(killed)
{
    cassini_domain_t *domain = NULL;
    pair_t pair;

    open_pair(&pair);
    CU_ASSERT(kill(pair.pid, SIGKILL) == 0);
    CU_ASSERT(cassini_child_wait(pair.pid) == 256 + SIGKILL);
    CU_ASSERT(put_until_error(&pair) == CASSINI_RC_PTE_NOT_FOUND);
    CU_ASSERT(cxil_alloc_domain(pair.user.lni, CASSINI_USER_VNI, PEER_PID,
                                &domain) == 0);
    CU_ASSERT(cxil_destroy_domain(domain) == 0);
    cassini_user_close(&pair.user);
}

/* A process that vanishes at an operation of its own: what it has answered is
 * done, what goes to it later finds no portal entry */
ST_CASE(vanished)
{
    pair_t pair;

    open_pair_with(&pair, "vanishing", "1");
    write_finish(&pair);
    CU_ASSERT(cassini_child_wait(pair.pid) == 256 + SIGKILL);
    CU_ASSERT(put_until_error(&pair) == CASSINI_RC_PTE_NOT_FOUND);
    cassini_user_close(&pair.user);
}

/* Stop the peer, and start a get from it, which then has no answer */
static void get_from_stopped(pair_t *pair)
{
    cassini_command_t cmd = to_peer(pair, CASSINI_OP_GET, pair->user.memory,
                                    64, 0);

    stop_peer(pair);
    cassini_emit(pair->user.tx, &cmd, sizeof(cmd.dma));
}

/* An operation without an answer, whose target dies, ends with the code that is
 * set */
static void part_gone(void)
{
    pair_t pair;

    open_pair(&pair);
    get_from_stopped(&pair);
    CU_ASSERT(cassini_drained(pair.user.tx, 30000));
    CU_ASSERT(kill(pair.pid, SIGKILL) == 0);
    CU_ASSERT(cassini_child_wait(pair.pid) == 256 + SIGKILL);
    cassini_event_rc(&pair.user, CASSINI_EV_REPLY, CASSINI_RC_NO_TARGET_MST);
    CU_ASSERT(pair.user.event.init.tgt_error);
    cassini_user_close(&pair.user);
}

ST_CASE(gone)
{
    CU_ASSERT(cassini_child_wait(cassini_child("gone", "CASSINI_GONE=20")) ==
              0);
}

/* A process that is stopped is slow, not dead: what goes to it is done once it
 * goes on */
ST_CASE(stopped)
{
    pair_t pair;

    open_pair(&pair);
    get_from_stopped(&pair);
    (void)cassini_event_is_there(&pair.user, 200);
    CU_ASSERT(kill(pair.pid, SIGCONT) == 0);
    cassini_event_rc(&pair.user, CASSINI_EV_REPLY, CASSINI_RC_OK);
    close_pair(&pair);
}

/* Nor does it cost much to wait for it, though the NIC looks if it lives */
ST_CASE_WITH(idle, pair_t, pair, open_pair(pair), close_pair(pair))
{
    get_from_stopped(pair);
    st_cunit_expect_idle(NULL);
    CU_ASSERT(!cassini_event_is_there(&pair->user, 0));
    CU_ASSERT(kill(pair->pid, SIGCONT) == 0);
    cassini_event_rc(&pair->user, CASSINI_EV_REPLY, CASSINI_RC_OK);
}

/* Behind a fence nothing begins before all ahead of it has an answer */
ST_CASE_WITH(fence, pair_t, pair, open_pair(pair), close_pair(pair))
{
    cassini_user_t *user    = &pair->user;
    cassini_command_t fence = cassini_command(CASSINI_CQ, CASSINI_CQ_FENCE);
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            user->memory, 64, BITS);
    cassini_command_t get   = to_peer(pair, CASSINI_OP_GET, user->memory + 64,
                                      64, 0);
    cassini_command_t put   = cassini_dma(user, CASSINI_OP_PUT,
                                          user->domain->pid,
                                          user->memory + 128, 8);

    cassini_append(user, &entry);
    put.dma.match_bits = BITS;
    put.dma.no_send    = 1;
    stop_peer(pair);
    cassini_emit(user->tx, &get, sizeof(get.dma));
    cassini_emit(user->tx, &fence, sizeof(fence.cq));
    cassini_emit(user->tx, &put, sizeof(put.dma));
    CU_ASSERT(!cassini_event_is_there(user, 200));
    CU_ASSERT(!cassini_drained(user->tx, 0));
    CU_ASSERT(kill(pair->pid, SIGCONT) == 0);
    cassini_event_rc(user, CASSINI_EV_REPLY, CASSINI_RC_OK);
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    cassini_unlink(user, CASSINI_PRIORITY, 77);
}

/* Open a user with an entry over its memory, for a put to itself */
static cassini_command_t open_self(cassini_user_t *user)
{
    cassini_command_t entry, cmd;

    cassini_user_open(user, CASSINI_PID_ANY);
    entry                = cassini_entry(user, CASSINI_PRIORITY, user->memory,
                                         4096, BITS);
    entry.tgt.no_success = 1;
    cassini_append(user, &entry);
    cmd                = cassini_dma(user, CASSINI_OP_PUT, user->domain->pid,
                                     user->memory + 8192, 8);
    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    return cmd;
}

/* An operation of a process ends with the code that is asked for, and does
 * nothing */
static void part_injected(void)
{
    cassini_user_t user;
    cassini_command_t cmd = open_self(&user);
    unsigned code, at, i;

    CASSINI_REQUIRE(sscanf(getenv("CASSINI_INJECT"), "%u@%u", &code, &at) ==
                    2);
    for (i = 1; i <= 5; ++i) {
        user.memory[8192] = (uint8_t)i;
        cassini_emit(user.tx, &cmd, sizeof(cmd.dma));
        cassini_event_rc(&user, CASSINI_EV_ACK, (i == at) ? code :
                         CASSINI_RC_OK);
        CU_ASSERT(user.memory[0] == ((i == at) ? i - 1 : i));
    }
    cassini_user_close(&user);
}

/* Of the link, and of the memory of a NIC, which it has no other reason for */
ST_CASE(injected)
{
    char setting[64];

    snprintf(setting, sizeof(setting), "CASSINI_INJECT=%d@3",
             CASSINI_RC_UNDELIVERABLE);
    CU_ASSERT(cassini_child_wait(cassini_child("injected", setting)) == 0);
    snprintf(setting, sizeof(setting), "CASSINI_INJECT=%d@1",
             CASSINI_RC_UNCORRECTABLE);
    CU_ASSERT(cassini_child_wait(cassini_child("injected", setting)) == 0);
}

/* Behind the third operation the link is down */
static void part_down(void)
{
    cassini_user_t user;
    cassini_command_t cmd = open_self(&user);
    int i;

    for (i = 1; i <= 5; ++i) {
        cassini_emit(user.tx, &cmd, sizeof(cmd.dma));
        (void)cassini_event(&user, CASSINI_EV_ACK);
        CU_ASSERT((cassini_event_code(&user.event) == CASSINI_RC_OK) ==
                  (i <= 3));
    }
    cassini_user_close(&user);
}

ST_CASE(link_down)
{
    CU_ASSERT(cassini_child_wait(cassini_child("down", "CASSINI_DOWN=3")) == 0);
}

/* A service that is none, of somebody else, or off */
static void part_no_service(void)
{
    cassini_svc_list_t *list = NULL;
    cassini_lni_t *lni       = NULL;
    cassini_dev_t *dev       = NULL;
    unsigned i;

    CU_ASSERT_FATAL(cxil_open_device(0, &dev) == 0);
    CU_ASSERT_FATAL(cxil_get_svc_list(dev, &list) == 0);
    for (i = 0; i < list->count; ++i) {
        CU_ASSERT(cxil_alloc_lni(dev, &lni, list->svcs[i].svc_id) < 0);
    }
    cxil_free_svc_list(list);
    cxil_close_device(dev);
}

ST_CASE(no_service)
{
    static const char *const settings[] = {
        "CASSINI_SERVICE=none",
        "CASSINI_SERVICE=denied",
        "CASSINI_SERVICE=off"
    };
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(settings); ++i) {
        CU_ASSERT(cassini_child_wait(cassini_child("no_service",
                                                   settings[i])) == 0);
    }
}

/* What is left open: a counter that something waits for, and a mapping */
static void part_leaks(void)
{
    cassini_command_t cmd = cassini_command(CASSINI_CT, CASSINI_CT_TRIG_INC);
    static cassini_user_ct_t ct; /* So that only the NIC misses them */
    static cassini_user_t user;

    cassini_user_open(&user, CASSINI_PID_ANY);
    cassini_ct_open(&user, &ct);
    cmd.ct.trig_ct   = ct.ct->ctn;
    cmd.ct.ct        = ct.ct->ctn;
    cmd.ct.threshold = 5;
    cassini_emit(user.trig, &cmd, sizeof(cmd.ct));
    CU_ASSERT(cassini_drained(user.trig, 30000));
}

static void part_no_leaks(void)
{
    cassini_user_ct_t ct;
    cassini_user_t user;

    cassini_user_open(&user, CASSINI_PID_ANY);
    cassini_ct_open(&user, &ct);
    cassini_ct_close(&ct);
    cassini_user_close(&user);
}

/* What a child wrote of what it left open */
static void leaks_of(const char *part, char *text, size_t size)
{
    char name[]  = "/tmp/cassini-leaks-XXXXXX";
    int fd       = mkstemp(name);
    char setting[64];
    ssize_t length;

    CU_ASSERT_FATAL(fd >= 0);
    snprintf(setting, sizeof(setting), "CASSINI_LEAKS=%s", name);
    CU_ASSERT(cassini_child_wait(cassini_child(part, setting)) == 0);
    length       = pread(fd, text, size - 1, 0);
    text[(length > 0) ? length : 0] = '\0';
    (void)close(fd);
    (void)unlink(name);
}

ST_CASE(leaks)
{
    char text[4096];

    leaks_of("no_leaks", text, sizeof(text));
    CU_ASSERT(text[0] == '\0');
    leaks_of("leaks", text, sizeof(text));
    printf("%s", text);
    CU_ASSERT(text[0] != '\0');
}

static const cassini_part_t parts[] = {
    {"peer", part_peer},
    {"adder", part_adder},
    {"vanishing", part_vanishing},
    {"gone", part_gone},
    {"injected", part_injected},
    {"down", part_down},
    {"no_service", part_no_service},
    {"leaks", part_leaks},
    {"no_leaks", part_no_leaks},
    {NULL, NULL}
};

CASSINI_SUITE("cassini_peer", parts)
