/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_death.c - a peer's process that is killed is told from a key that is
 * none, by operations of every kind; and what is done with keys of memory that
 * it has closed leaves it alone.
 *
 * The victim is this program, started anew: it opens a pair of its own, gives
 * address and keys of one side, and makes progress until it is killed.
 */
#include "st_cunit.h"
#include "trig_util.h"
#include "uct_region.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VICTIM "ST_DEATH_VICTIM"
#define LENGTH 4096
#define AM_ID  4

/* Far more than the provider's queues for what targets are told hold */
#define CLOSED_PUTS  2000
#define CLOSED_BATCH 50

extern char **environ;

/* How an operation is started */
typedef enum {
    OP_PUT_SHORT,
    OP_PUT_ZCOPY,
    OP_GET_BCOPY,
    OP_GET_ZCOPY,
    OP_ADD,
    OP_FADD,
    OP_MESSAGE,
    OP_DEFERRED_PUT,
    OP_DEFERRED_GET,
    OP_DEFERRED_ADD,
    OP_LAST
} op_kind_t;

/* What the victim tells */
typedef struct {
    uint8_t  dev_addr[64];
    uint8_t  iface_addr[128];
    uint8_t  key[UCT_TRIG_RKEY_PACKED_LEN];      /* of UCT */
    uint8_t  trig_key[UCT_TRIG_RKEY_PACKED_LEN]; /* of the extension */
    uint8_t  closed_key[UCT_TRIG_RKEY_PACKED_LEN]; /* As above, taken back */
    uint8_t  closed_trig_key[UCT_TRIG_RKEY_PACKED_LEN];
    uint64_t address;
} victim_t;

typedef struct {
    uct_pair_t        pair;
    victim_t          victim;
    pid_t             pid;
    uct_ep_h          ep;   /* To the victim */
    uct_rkey_bundle_t rkey;
    uct_trig_rkey_t   trig_rkey;
    uct_trig_cntr_h   cntr;
    uct_done_t        done;
    uint64_t          word, result;
    volatile uint64_t num_done; /* Of deferred operations */
    ucs_status_t      status;
} scene_t;

static uint8_t memory[LENGTH] __attribute__((aligned(4096)));


static void read_all(int fd, void *data, size_t length)
{
    uint8_t *bytes = data;
    ssize_t count;

    while (length > 0) {
        count = read(fd, bytes, length);
        CU_ASSERT_FATAL(count > 0);
        bytes  += count;
        length -= count;
    }
}

/* Opens its memory, once more for keys that it takes back; 0, or -1 */
static int victim_open(uct_pair_t *pair, victim_t *victim)
{
    uct_mem_h memh, closed_memh;
    uct_trig_mem_h mem, closed;

    if ((uct_md_mem_reg(pair->b.md, memory, LENGTH, UCT_MD_MEM_ACCESS_ALL,
                        &memh) != UCS_OK) ||
        (uct_md_mem_reg(pair->b.md, memory, LENGTH, UCT_MD_MEM_ACCESS_ALL,
                        &closed_memh) != UCS_OK) ||
        (uct_md_mkey_pack(pair->b.md, memh, victim->key) != UCS_OK) ||
        (uct_md_mkey_pack(pair->b.md, closed_memh, victim->closed_key) !=
         UCS_OK) ||
        (uct_trig_mem_reg(pair->b.iface, memory, LENGTH, NULL, &mem) !=
         UCS_OK) ||
        (uct_trig_mem_reg(pair->b.iface, memory, LENGTH, NULL, &closed) !=
         UCS_OK)) {
        return -1;
    }
    uct_trig_mem_pack(mem, victim->trig_key);
    uct_trig_mem_pack(closed, victim->closed_trig_key);
    return ((uct_trig_mem_dereg(closed) == UCS_OK) &&
            (uct_md_mem_dereg(pair->b.md, closed_memh) == UCS_OK)) ? 0 : -1;
}

/* Never returns; ends with the process that has started it */
static int victim_main(int fd)
{
    victim_t victim = {.address = (uintptr_t)memory};
    uct_pair_t pair;

    if ((uct_pair_create(&pair, NULL) != 0) ||
        (victim_open(&pair, &victim) != 0)) {
        return EXIT_FAILURE;
    }
    memcpy(victim.dev_addr, pair.b.dev_addr, pair.b.attr.device_addr_len);
    memcpy(victim.iface_addr, pair.b.iface_addr, pair.b.attr.iface_addr_len);
    if (write(fd, &victim, sizeof(victim)) != sizeof(victim)) {
        return EXIT_FAILURE;
    }
    while (getppid() != 1) {
        uct_pair_progress(&pair);
        usleep(100);
    }
    return EXIT_SUCCESS;
}

static void start_victim(scene_t *scene)
{
    char *const argv[] = {(char*)"/proc/self/exe", NULL};
    char number[16];
    int fds[2];

    CU_ASSERT_FATAL(pipe(fds) == 0);
    snprintf(number, sizeof(number), "%d", fds[1]);
    CU_ASSERT_FATAL(setenv(VICTIM, number, 1) == 0);
    CU_ASSERT_FATAL(posix_spawn(&scene->pid, argv[0], NULL, NULL, argv,
                                environ) == 0);
    CU_ASSERT_FATAL(unsetenv(VICTIM) == 0);
    close(fds[1]);
    read_all(fds[0], &scene->victim, sizeof(scene->victim));
    close(fds[0]);
}

static void kill_victim(scene_t *scene)
{
    CU_ASSERT(kill(scene->pid, SIGKILL) == 0);
    CU_ASSERT(waitpid(scene->pid, NULL, 0) == scene->pid);
    scene->pid = 0;
}

static void connect_victim(scene_t *scene)
{
    CU_ASSERT_FATAL(uct_pair_connect(
                            scene->pair.a.iface,
                            (uct_device_addr_t*)scene->victim.dev_addr,
                            (uct_iface_addr_t*)scene->victim.iface_addr,
                            &scene->ep) == UCS_OK);
}

static void open_scene(scene_t *scene)
{
    memset(scene, 0, sizeof(*scene));
    start_victim(scene);
    CU_ASSERT_FATAL(uct_pair_create(&scene->pair, NULL) == 0);
    connect_victim(scene);
    CU_ASSERT_FATAL(uct_rkey_unpack(scene->pair.component, scene->victim.key,
                                    &scene->rkey) == UCS_OK);
    CU_ASSERT_FATAL(uct_trig_rkey_unpack(scene->victim.trig_key,
                                         UCT_TRIG_RKEY_PACKED_LEN,
                                         &scene->trig_rkey) == UCS_OK);
    CU_ASSERT_FATAL(uct_trig_cntr_create(scene->pair.a.iface, &scene->cntr) ==
                    UCS_OK);
}

static void close_scene(scene_t *scene)
{
    uct_ep_destroy(scene->ep);
    CU_ASSERT(uct_trig_cntr_destroy(scene->cntr) == UCS_OK);
    CU_ASSERT(uct_rkey_release(scene->pair.component, &scene->rkey) == UCS_OK);
    uct_pair_destroy(&scene->pair);
    if (scene->pid != 0) {
        kill_victim(scene);
    }
}

static void unpack(void *arg, const void *data, size_t length)
{
}

static void deferred_done(void *arg, ucs_status_t status)
{
    scene_t *scene = arg;

    scene->status = status;
    ++scene->num_done;
}

static uint64_t find_trigger(const scene_t *scene)
{
    uint64_t value;

    CU_ASSERT(uct_trig_cntr_read(scene->cntr, &value) == UCS_OK);
    return value;
}

static ucs_status_t start_deferred(scene_t *scene, op_kind_t kind)
{
    uct_trig_deferred_t deferred = {
        .trigger   = scene->cntr,
        .threshold = find_trigger(scene), /* At once */
        .done      = deferred_done,
        .arg       = scene
    };
    uct_trig_put_t put           = {
        .buffer      = &scene->word,
        .length      = 8,
        .remote_addr = scene->victim.address,
        .rkey        = scene->trig_rkey
    };
    uct_trig_get_t get           = {
        .buffer      = &scene->result,
        .length      = 8,
        .remote_addr = scene->victim.address,
        .rkey        = scene->trig_rkey
    };
    uct_trig_atomic_t atomic     = {
        .value       = 1,
        .remote_addr = scene->victim.address,
        .rkey        = scene->trig_rkey
    };

    return TRIG_POST(
            (kind == OP_DEFERRED_PUT) ?
            uct_trig_ep_put(scene->ep, &put, &deferred) :
            (kind == OP_DEFERRED_GET) ?
            uct_trig_ep_get(scene->ep, &get, &deferred) :
            uct_trig_ep_atomic_add64(scene->ep, &atomic, &deferred));
}

static ucs_status_t start(scene_t *scene, op_kind_t kind)
{
    uct_iov_t iov   = {.buffer = &scene->word, .length = 8, .count = 1};
    uint64_t remote = scene->victim.address;
    uct_rkey_t rkey = scene->rkey.rkey;
    uct_ep_h ep     = scene->ep;

    uct_done_init(&scene->done, 1);
    switch (kind) {
    case OP_PUT_SHORT:
        return uct_ep_put_short(ep, &scene->word, 8, remote, rkey);
    case OP_PUT_ZCOPY:
        return uct_ep_put_zcopy(ep, &iov, 1, remote, rkey, &scene->done.comp);
    case OP_GET_BCOPY:
        return uct_ep_get_bcopy(ep, unpack, NULL, 8, remote, rkey,
                                &scene->done.comp);
    case OP_GET_ZCOPY:
        return uct_ep_get_zcopy(ep, &iov, 1, remote, rkey, &scene->done.comp);
    case OP_ADD:
        return uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, remote, rkey);
    case OP_FADD:
        return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &scene->result,
                                     remote, rkey, &scene->done.comp);
    case OP_MESSAGE:
        return uct_ep_am_short(ep, AM_ID, 0, NULL, 0);
    default:
        return start_deferred(scene, kind);
    }
}

static int is_deferred(op_kind_t kind)
{
    return kind >= OP_DEFERRED_PUT;
}

static int has_completion(op_kind_t kind)
{
    return (kind == OP_PUT_ZCOPY) || (kind == OP_GET_BCOPY) ||
           (kind == OP_GET_ZCOPY) || (kind == OP_FADD);
}

/* One that works, so that the card has been there */
static void check_alive(scene_t *scene, op_kind_t kind)
{
    ucs_status_t status = start(scene, kind);

    CU_ASSERT_FATAL((status == UCS_OK) || (status == UCS_INPROGRESS));
    if (is_deferred(kind)) {
        uct_pair_wait(&scene->pair, &scene->num_done, 1);
        CU_ASSERT(scene->status == UCS_OK);
        scene->num_done = 0;
    } else if (has_completion(kind)) {
        CU_ASSERT(uct_done_wait(&scene->done, &scene->pair) == UCS_OK);
    } else {
        CU_ASSERT(uct_pair_flush(&scene->pair, scene->ep) == UCS_OK);
    }
    CU_ASSERT(scene->pair.a.errors == 0);
}

/* The process is gone: its endpoint fails with a loss of the peer */
static void check_death(scene_t *scene, op_kind_t kind)
{
    ucs_status_t status;

    check_alive(scene, kind);
    kill_victim(scene);
    status = start(scene, kind);
    CU_ASSERT((status == UCS_OK) || (status == UCS_INPROGRESS) ||
              (status == UCS_ERR_ENDPOINT_TIMEOUT));
    while (scene->pair.a.errors == 0) {
        uct_pair_progress(&scene->pair);
        if (kind == OP_MESSAGE) {
            /* A fast emulated card is through with the first before it has
             * looked at the peer */
            (void)start(scene, kind);
        }
    }
    CU_ASSERT(scene->pair.a.error == UCS_ERR_ENDPOINT_TIMEOUT);
    if (is_deferred(kind)) {
        uct_pair_wait(&scene->pair, &scene->num_done, 1);
        CU_ASSERT(scene->status == UCS_ERR_ENDPOINT_TIMEOUT);
    } else if (has_completion(kind)) {
        CU_ASSERT(uct_done_wait(&scene->done, &scene->pair) ==
                  UCS_ERR_ENDPOINT_TIMEOUT);
    }
    CU_ASSERT(start(scene, OP_PUT_SHORT) == UCS_ERR_ENDPOINT_TIMEOUT);
}

/* A key that is none is the operation's fault. A deferred one is told so, and
 * its endpoint lives: owners take keys back from operations that are armed */
static void check_key(scene_t *scene, op_kind_t kind)
{
    ucs_status_t status;

    check_alive(scene, kind);
    ((uct_trig_rkey_t*)(uintptr_t)scene->rkey.rkey)->key += 12345;
    scene->trig_rkey.key                                 += 12345;
    status = start(scene, kind);
    CU_ASSERT_FATAL((status == UCS_OK) || (status == UCS_INPROGRESS));
    if (is_deferred(kind)) {
        uct_pair_wait(&scene->pair, &scene->num_done, 1);
        CU_ASSERT(scene->status == UCS_ERR_IO_ERROR);
        uct_pair_progress(&scene->pair);
        CU_ASSERT(scene->pair.a.errors == 0);
        return;
    }
    while (scene->pair.a.errors == 0) {
        uct_pair_progress(&scene->pair);
    }
    CU_ASSERT(scene->pair.a.error == UCS_ERR_CONNECTION_RESET); /* UCX's word */
    CU_ASSERT(!has_completion(kind) ||
              (uct_done_wait(&scene->done, &scene->pair) == UCS_ERR_IO_ERROR));
}

/* Uses keys that were taken back; the scene gets its good ones back */
static void use_closed(scene_t *scene)
{
    uct_rkey_bundle_t rkey    = scene->rkey;
    uct_trig_rkey_t trig_rkey = scene->trig_rkey;
    unsigned failures         = 0;
    unsigned i;

    CU_ASSERT_FATAL(uct_rkey_unpack(scene->pair.component,
                                    scene->victim.closed_key, &scene->rkey) ==
                    UCS_OK);
    CU_ASSERT_FATAL(uct_trig_rkey_unpack(scene->victim.closed_trig_key,
                                         UCT_TRIG_RKEY_PACKED_LEN,
                                         &scene->trig_rkey) == UCS_OK);
    for (i = 0; i < CLOSED_PUTS; ++i) { /* Leave their endpoint alone */
        scene->status = UCS_OK;
        CU_ASSERT_FATAL(start(scene, OP_DEFERRED_PUT) == UCS_OK);
        uct_pair_wait(&scene->pair, &scene->num_done, i + 1);
        CU_ASSERT(scene->status == UCS_ERR_IO_ERROR);
    }
    CU_ASSERT(scene->pair.a.errors == 0);
    for (i = 0; i < CLOSED_PUTS; ++i) { /* Fail it */
        CU_ASSERT(start(scene, OP_PUT_SHORT) == UCS_OK);
        if (((i + 1) % CLOSED_BATCH) != 0) {
            continue;
        }
        for (++failures; scene->pair.a.errors < failures;) {
            uct_pair_progress(&scene->pair);
        }
        uct_ep_destroy(scene->ep);
        connect_victim(scene);
    }
    CU_ASSERT(uct_rkey_release(scene->pair.component, &scene->rkey) == UCS_OK);
    scene->rkey          = rkey;
    scene->trig_rkey     = trig_rkey;
    scene->num_done      = 0;
    scene->pair.a.errors = 0;
}

/* Cassini tells a target of each operation that found no region, in a queue
 * whose overflow ends the process: one that makes progress lives */
static void check_closed(scene_t *scene, op_kind_t kind)
{
    check_alive(scene, kind);
    use_closed(scene);
    CU_ASSERT(waitpid(scene->pid, NULL, WNOHANG) == 0);
    check_alive(scene, kind);
    check_alive(scene, OP_PUT_ZCOPY);
    CU_ASSERT(waitpid(scene->pid, NULL, WNOHANG) == 0);
}

static void run(void (*check)(scene_t *scene, op_kind_t kind), op_kind_t kind)
{
    static scene_t scene;

    if (strncmp(uct_pair_device(), "cxi", 3) != 0) {
        st_cunit_skip("sockets does not tell of all peers that are gone, and "
                      "has one error for them and for wrong keys");
        return;
    }

    open_scene(&scene);
    check(&scene, kind);
    close_scene(&scene);
}

ST_CASE_CALL(death_put_short, run(check_death, OP_PUT_SHORT))
ST_CASE_CALL(death_put_zcopy, run(check_death, OP_PUT_ZCOPY))
ST_CASE_CALL(death_get_bcopy, run(check_death, OP_GET_BCOPY))
ST_CASE_CALL(death_get_zcopy, run(check_death, OP_GET_ZCOPY))
ST_CASE_CALL(death_add, run(check_death, OP_ADD))
ST_CASE_CALL(death_fadd, run(check_death, OP_FADD))
ST_CASE_CALL(death_message, run(check_death, OP_MESSAGE))
ST_CASE_CALL(death_deferred_put, run(check_death, OP_DEFERRED_PUT))
ST_CASE_CALL(death_deferred_get, run(check_death, OP_DEFERRED_GET))
ST_CASE_CALL(death_deferred_add, run(check_death, OP_DEFERRED_ADD))

ST_CASE_CALL(key_put_short, run(check_key, OP_PUT_SHORT))
ST_CASE_CALL(key_put_zcopy, run(check_key, OP_PUT_ZCOPY))
ST_CASE_CALL(key_get_bcopy, run(check_key, OP_GET_BCOPY))
ST_CASE_CALL(key_get_zcopy, run(check_key, OP_GET_ZCOPY))
ST_CASE_CALL(key_add, run(check_key, OP_ADD))
ST_CASE_CALL(key_fadd, run(check_key, OP_FADD))
ST_CASE_CALL(key_deferred_put, run(check_key, OP_DEFERRED_PUT))
ST_CASE_CALL(key_deferred_get, run(check_key, OP_DEFERRED_GET))
ST_CASE_CALL(key_deferred_add, run(check_key, OP_DEFERRED_ADD))

ST_CASE_CALL(keys_closed, run(check_closed, OP_DEFERRED_PUT))

int main(int argc, char **argv)
{
    const char *fd = getenv(VICTIM);

    return (fd != NULL) ? victim_main(atoi(fd)) :
                          st_cunit_main("uct_death", argc, argv);
}
