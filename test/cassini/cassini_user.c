/* SPDX-License-Identifier: BSD-3-Clause */
/* cassini_user.c - writes commands to the emulated Cassini, reads events. */
#include "cassini_user.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define USER_SLOTS 256 /* Of command queues */
#define USER_PART  "ST_CASSINI_PART"
#define USER_READY "ST_CASSINI_READY"
#define USER_OWN   "ST_CASSINI_OWN"


static int user_child_end = -1; /* Of the last child's pipe */


double cassini_limit(void)
{
    unsigned limit = st_cunit_limit();

    return (limit > 0) ? (limit / 2.0) : 1e6; /* before the case's */
}

double cassini_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (1e-9 * (double)ts.tv_nsec);
}

void cassini_require_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
    exit(EXIT_FAILURE);
}

/* Without this nothing of the case can go on */
static void user_require(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s: %d\n", what, result);
        exit(EXIT_FAILURE);
    }
}

static void *user_memory(size_t size)
{
    void *memory = aligned_alloc(4096, size);

    CASSINI_REQUIRE(memory != NULL);
    memset(memory, 0, size);
    return memory;
}

void cassini_user_open_lni(cassini_user_t *user)
{
    cassini_svc_list_t *list = NULL;

    memset(user, 0, sizeof(*user));
    user_require(cxil_open_device(0, &user->dev), "cxil_open_device");
    user_require(cxil_get_svc_list(user->dev, &list), "cxil_get_svc_list");
    CASSINI_REQUIRE(list->count > 0);
    user_require(cxil_alloc_lni(user->dev, &user->lni, list->svcs[0].svc_id),
                 "cxil_alloc_lni");
    cxil_free_svc_list(list);
}

void cassini_user_close_lni(cassini_user_t *user)
{
    CU_ASSERT(cxil_destroy_lni(user->lni) == 0);
    cxil_close_device(user->dev);
}

static cassini_cq_t *user_cq(cassini_user_t *user, unsigned flags,
                             unsigned lcid)
{
    cassini_cq_opts_t opts = {
        .count = USER_SLOTS,
        .flags = flags,
        .lcid  = lcid
    };
    cassini_cq_t *cq       = NULL;

    user_require(cxil_alloc_cmdq(user->lni, NULL, &opts, &cq),
                 "cxil_alloc_cmdq");
    return cq;
}

static void user_open_queues(cassini_user_t *user)
{
    cassini_eq_attr_t attr = {
        .queue  = user->ring,
        .length = CASSINI_USER_RING
    };

    user_require(cxil_alloc_evtq(user->lni, user->ring_md, &attr, NULL, NULL,
                                 &user->eq), "cxil_alloc_evtq");
    user->tx   = user_cq(user, CASSINI_QUEUE_TX, user->cp->lcid);
    user->trig = user_cq(user, CASSINI_QUEUE_TX | CASSINI_QUEUE_TRIG,
                         user->trig_cp->lcid);
    user->tgt  = user_cq(user, 0, 0);
}

void cassini_user_open(cassini_user_t *user, unsigned pid)
{
    cassini_user_open_lni(user);
    user_require(cxil_alloc_trig_cp(user->lni, CASSINI_USER_VNI, 0, 0,
                                    CASSINI_CP_PLAIN, &user->cp),
                 "a communication profile");
    user_require(cxil_alloc_trig_cp(user->lni, CASSINI_USER_VNI, 0, 0,
                                    CASSINI_CP_TRIG, &user->trig_cp),
                 "a communication profile of triggered operations");
    user_require(cxil_alloc_domain(user->lni, CASSINI_USER_VNI, pid,
                                   &user->domain), "cxil_alloc_domain");
    user->ring   = user_memory(CASSINI_USER_RING);
    user->memory = user_memory(CASSINI_USER_MEMORY);
    user_require(cxil_map(user->lni, user->ring, CASSINI_USER_RING,
                          CASSINI_MAP_PIN | CASSINI_MAP_WRITE, NULL,
                          &user->ring_md), "cxil_map");
    user_require(cxil_map(user->lni, user->memory, CASSINI_USER_MEMORY,
                          CASSINI_MAP_PIN | CASSINI_MAP_WRITE |
                          CASSINI_MAP_READ, NULL, &user->md), "cxil_map");
    user_open_queues(user);
    user->pte = cassini_user_pte(user, CASSINI_USER_INDEX, 1, &user->map);
}

void cassini_user_close(cassini_user_t *user)
{
    CU_ASSERT(cxil_unmap_pte(user->map) == 0);
    CU_ASSERT(cxil_destroy_pte(user->pte) == 0);
    CU_ASSERT(cxil_destroy_cmdq(user->tgt) == 0);
    CU_ASSERT(cxil_destroy_cmdq(user->trig) == 0);
    CU_ASSERT(cxil_destroy_cmdq(user->tx) == 0);
    CU_ASSERT(cxil_destroy_evtq(user->eq) == 0);
    CU_ASSERT(cxil_unmap(user->md) == 0);
    CU_ASSERT(cxil_unmap(user->ring_md) == 0);
    CU_ASSERT(cxil_destroy_domain(user->domain) == 0);
    CU_ASSERT(cxil_destroy_cp(user->trig_cp) == 0);
    CU_ASSERT(cxil_destroy_cp(user->cp) == 0);
    cassini_user_close_lni(user);
    free(user->memory);
    free(user->ring);
}

cassini_pte_t *cassini_user_pte(cassini_user_t *user, unsigned index,
                                int is_matching, cassini_pte_map_t **map_p)
{
    cassini_pte_opts_t opts = {
        .matching = (is_matching != 0)
    };

    return cassini_user_pte_opts(user, index, opts, map_p);
}

cassini_pte_t *cassini_user_pte_opts(cassini_user_t *user, unsigned index,
                                     cassini_pte_opts_t opts,
                                     cassini_pte_map_t **map_p)
{
    cassini_pte_t *pte = NULL;

    user_require(cxil_alloc_pte(user->lni, user->eq, &opts, &pte),
                 "cxil_alloc_pte");
    user_require(cxil_map_pte(pte, user->domain, index, false, map_p),
                 "cxil_map_pte");
    cassini_user_set_state(user, pte, CASSINI_PTE_ENABLED);
    return pte;
}

void cassini_user_set_state(cassini_user_t *user, cassini_pte_t *pte,
                            unsigned state)
{
    cassini_command_t cmd       = cassini_command(CASSINI_CQ,
                                                  CASSINI_TGT_SETSTATE);
    cassini_pte_status_t status = {0};
    cassini_state_bits_t bits;

    /* What it has missed has to be known to enable it again */
    CU_ASSERT(cxil_pte_status(pte, &status) == 0);
    cmd.setstate.state = state;
    cmd.setstate.pte   = pte->ptn;
    cmd.setstate.drops = status.drops;
    cassini_emit(user->tgt, &cmd, sizeof(cmd.setstate));
    cassini_event_rc(user, CASSINI_EV_STATE_CHANGE, CASSINI_RC_OK);
    bits.bits = user->event.tgt.initiator;
    CU_ASSERT(bits.f.state == state);
    CU_ASSERT(!bits.f.by_nic);
    CU_ASSERT(user->event.tgt.pte == pte->ptn);
}

cassini_command_t cassini_command(unsigned type, unsigned op)
{
    cassini_command_t cmd;

    memset(&cmd, 0, sizeof(cmd));
    cmd.head.type = type;
    cmd.head.op   = op;
    return cmd;
}

/* Words of 32 bytes that are free: one slot always stays so */
static unsigned emit_free(const cassini_cq_t *cq)
{
    const volatile cassini_cq_status_t *status = (const void*)cq->slots;
    unsigned read                              = 2 * status->read;
    unsigned first                             = 2 * CASSINI_FIRST_SLOT;
    unsigned space                             = cq->size32 - first;

    return (read + space - (unsigned)cq->write32 - 2) % space;
}

static void emit_wait_free(const cassini_cq_t *cq, unsigned count)
{
    double end = cassini_now() + cassini_limit();

    while (emit_free(cq) < count) {
        CASSINI_REQUIRE(cassini_now() < end);
        (void)sched_yield();
    }
}

/* So many words of 32 bytes behind what was written */
static void emit_advance(cassini_cq_t *cq, unsigned count)
{
    cq->write32 += count;
    if (cq->write32 >= cq->size32) {
        cq->write32 = 2ul * CASSINI_FIRST_SLOT;
    }
}

/* Up to a multiple of so many words: with commands that do nothing, for a queue
 * of triggered operations of its kind and of 64 bytes */
static void emit_align(cassini_cq_t *cq, unsigned count, int is_ct)
{
    cassini_command_t noop = cassini_command(CASSINI_CT, CASSINI_CT_NOOP);
    unsigned step          = is_ct ? 2 : 1;

    noop.head.size = CASSINI_64B;
    while ((cq->write32 % count) != 0) {
        emit_wait_free(cq, step);
        memset(cq->slots + (32 * cq->write32), 0, 32);
        if (is_ct) {
            memcpy(cq->slots + (32 * cq->write32), &noop, sizeof(noop.head));
        }
        emit_advance(cq, step);
    }
}

void cassini_emit(cassini_cq_t *cq, const cassini_command_t *cmd, size_t length)
{
    int is_ct             = (cmd->head.type == CASSINI_CT);
    unsigned size         = is_ct ? CASSINI_64B : CASSINI_32B;
    cassini_command_t own = *cmd;
    unsigned count;

    /* Commands to the queue itself and to the target side have a slot */
    if ((cmd->head.type == CASSINI_CQ) ||
        ((cmd->head.type == CASSINI_DMA) && (length > 32)) ||
        ((cmd->head.type == CASSINI_IDC) &&
         (cmd->head.op == CASSINI_OP_SMALL_MSG))) {
        size = CASSINI_64B;
    }
    while ((32u << size) < length) {
        ++size;
    }
    count         = 1u << size;
    own.head.size = size;
    emit_align(cq, count, is_ct);
    emit_wait_free(cq, count);
    memcpy(cq->slots + (32 * cq->write32), &own, 32ul * count);
    emit_advance(cq, count);
    emit_align(cq, 2, is_ct);
    cq->told32 = cq->write32;
    __atomic_store_n(cq->write, cq->write32 / 2, __ATOMIC_RELEASE);
}

int cassini_drained(const cassini_cq_t *cq, unsigned ms)
{
    const volatile cassini_cq_status_t *status = (const void*)cq->slots;
    double end                                 = cassini_now() + (1e-3 * ms);

    while ((2ul * status->read) != cq->write32) {
        if (cassini_now() > end) {
            return 0;
        }
        (void)sched_yield();
    }
    return 1;
}

/* Bytes of an event; 0: there is none, or it has not arrived as a whole */
static unsigned event_bytes(const uint8_t *slot)
{
    const volatile uint8_t *bytes = slot;
    unsigned size                 = bytes[14] & 3;
    unsigned length               = 8u << size;

    return ((size != 0) && ((bytes[length - 1] & 0x3f) != 0)) ? length : 0;
}

static unsigned event_type(const uint8_t *slot)
{
    return (slot[14] >> 2) & 0x1f;
}

static void event_next(cassini_eq_t *eq, unsigned length)
{
    eq->read += length;
    if (eq->read >= eq->bytes) {
        eq->read = CASSINI_SLOT;
    }
}

/* The length of the next event behind those that fill up slots; 0: none */
static unsigned event_peek(cassini_eq_t *eq)
{
    unsigned length;

    for (;;) {
        length = event_bytes(eq->events + eq->read);
        if ((length == 0) ||
            (event_type(eq->events + eq->read) != CASSINI_EV_NULL)) {
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            return length;
        }
        event_next(eq, length);
    }
}

/* Clear what was read, and let the NIC have it */
static void event_ack(cassini_eq_t *eq)
{
    cassini_eq_ack_t ack = eq->ack;
    uint64_t word;

    if (eq->read_before <= eq->read) {
        memset(eq->events + eq->read_before, 0, eq->read - eq->read_before);
    } else {
        memset(eq->events + eq->read_before, 0, eq->bytes - eq->read_before);
        memset(eq->events + CASSINI_SLOT, 0, eq->read - CASSINI_SLOT);
    }
    eq->read_before = eq->read;
    ack.read        = eq->read / CASSINI_SLOT;
    eq->ack         = ack;
    memcpy(&word, &ack, sizeof(word));
    __atomic_store_n(eq->ack_p, word, __ATOMIC_RELEASE);
}

int cassini_event_is_there(const cassini_user_t *user, unsigned ms)
{
    double end = cassini_now() + (1e-3 * ms);

    while (event_peek(user->eq) == 0) {
        if (cassini_now() > end) {
            return 0;
        }
        (void)sched_yield();
    }
    return 1;
}

unsigned cassini_event_code(const cassini_event_t *event)
{
    unsigned length = 8u << (event->bytes[14] & 3);

    return event->bytes[length - 1] & 0x3f;
}

const cassini_event_t *cassini_event(cassini_user_t *user, unsigned type)
{
    unsigned limit = (unsigned)(1e3 * cassini_limit());
    unsigned length;

    memset(&user->event, 0, sizeof(user->event));
    if (!cassini_event_is_there(user, limit)) {
        printf("no event, type %u is awaited\n", type);
        CU_FAIL_FATAL("no event");
    }
    length = event_peek(user->eq);
    memcpy(&user->event, user->eq->events + user->eq->read, length);
    event_next(user->eq, length);
    event_ack(user->eq);
    if (event_type(user->event.bytes) != type) {
        printf("event of type %u with code %u, type %u is awaited\n",
               event_type(user->event.bytes), cassini_event_code(&user->event),
               type);
        CU_FAIL_FATAL("another event");
    }
    return &user->event;
}

const cassini_event_t *cassini_event_rc(cassini_user_t *user, unsigned type,
                                        unsigned rc)
{
    unsigned code;

    (void)cassini_event(user, type);
    code = cassini_event_code(&user->event);
    if (code != rc) {
        printf("event %u has code %u, %u is awaited\n", type, code, rc);
        CU_FAIL("another code");
    }
    return &user->event;
}

void cassini_refused(cassini_user_t *user, unsigned tgt_type,
                     unsigned init_type, unsigned rc)
{
    cassini_event_rc(user, tgt_type, rc);
    cassini_event_rc(user, init_type, rc);
    CU_ASSERT(user->event.init.tgt_error);
}

unsigned cassini_ep(unsigned pid, unsigned index)
{
    return ((index >> CASSINI_INDEX_BITS) << CASSINI_PID_BITS) | pid;
}

cassini_command_t cassini_dma(const cassini_user_t *user, unsigned op,
                              unsigned pid, const void *local, size_t length)
{
    cassini_command_t cmd = cassini_command(CASSINI_DMA, op);

    cmd.dma.index     = CASSINI_USER_INDEX;
    cmd.dma.lac       = user->md->lac;
    cmd.dma.ep        = cassini_ep(pid, CASSINI_USER_INDEX);
    cmd.dma.nid       = user->dev->info.nid;
    cmd.dma.local     = (uintptr_t)local - user->md->va + user->md->iova;
    cmd.dma.length    = length;
    cmd.dma.eq        = user->eq->eqn;
    cmd.dma.initiator = user->domain->pid;
    cmd.dma.user      = 0x1234567890;
    return cmd;
}

cassini_command_t cassini_entry(const cassini_user_t *user, unsigned list,
                                void *start, size_t length, uint64_t bits)
{
    cassini_command_t cmd = cassini_command(CASSINI_CQ, CASSINI_TGT_APPEND);

    cmd.tgt.list       = list;
    cmd.tgt.pte        = user->pte->ptn;
    cmd.tgt.op_get     = 1;
    cmd.tgt.op_put     = 1;
    cmd.tgt.buffer_id  = 77;
    cmd.tgt.lac        = user->md->lac;
    cmd.tgt.start      = (uintptr_t)start - user->md->va + user->md->iova;
    cmd.tgt.length     = length;
    cmd.tgt.match_id   = CASSINI_MATCH_ANY;
    cmd.tgt.match_bits = bits;
    return cmd;
}

void cassini_append(cassini_user_t *user, const cassini_command_t *cmd)
{
    cassini_emit(user->tgt, cmd, sizeof(cmd->tgt));
    cassini_event_rc(user, CASSINI_EV_LINK, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.buffer_id == cmd->tgt.buffer_id);
}

void cassini_unlink(cassini_user_t *user, unsigned list, unsigned buffer_id)
{
    cassini_command_t cmd = cassini_command(CASSINI_CQ, CASSINI_TGT_UNLINK);

    cmd.tgt.list      = list;
    cmd.tgt.pte       = user->pte->ptn;
    cmd.tgt.buffer_id = buffer_id;
    cassini_emit(user->tgt, &cmd, sizeof(cmd.tgt));
    cassini_event_rc(user, CASSINI_EV_UNLINK, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.buffer_id == buffer_id);
}

cassini_command_t cassini_cstate(const cassini_user_t *user, uint64_t context)
{
    cassini_command_t cmd = cassini_command(CASSINI_IDC, CASSINI_OP_CSTATE);

    cmd.cstate.length    = sizeof(cmd.cstate);
    cmd.cstate.write_lac = user->md->lac;
    cmd.cstate.initiator = user->domain->pid;
    cmd.cstate.index     = CASSINI_USER_INDEX;
    cmd.cstate.user      = context;
    cmd.cstate.eq        = user->eq->eqn;
    return cmd;
}

void cassini_ct_open(cassini_user_t *user, cassini_user_ct_t *ct)
{
    ct->back = user_memory(4096);
    ct->ct   = NULL;
    user_require(cxil_alloc_ct(user->lni, (void*)ct->back, &ct->ct),
                 "cxil_alloc_ct");
    CU_ASSERT(ct->ct->ctn > 0);
}

void cassini_ct_close(cassini_user_ct_t *ct)
{
    CU_ASSERT(cxil_destroy_ct(ct->ct) == 0);
    free((void*)ct->back);
}

/* The NIC writes it back, with the bit that says so */
cassini_ct_back_t cassini_ct_read(cassini_user_t *user, cassini_user_ct_t *ct)
{
    cassini_command_t cmd = cassini_command(CASSINI_CT, CASSINI_CT_GET);
    double end            = cassini_now() + cassini_limit();
    cassini_ct_back_t back;
    uint64_t word;

    __atomic_store_n(ct->back, 0, __ATOMIC_RELEASE);
    cmd.ct.ct = ct->ct->ctn;
    cassini_emit(user->trig, &cmd, sizeof(cmd.ct));
    do {
        CASSINI_REQUIRE(cassini_now() < end);
        word = __atomic_load_n(ct->back, __ATOMIC_ACQUIRE);
        memcpy(&back, &word, sizeof(back));
    } while (!back.valid);
    return back;
}

void cassini_ct_expect(cassini_user_t *user, cassini_user_ct_t *ct,
                       uint64_t success, unsigned failure)
{
    double end = cassini_now() + cassini_limit();
    cassini_ct_back_t back;

    do {
        back = cassini_ct_read(user, ct);
        if ((back.success == success) && (back.failure == failure)) {
            return;
        }
    } while (cassini_now() < end); /* A reset may not have been seen, either */
    printf("counter of %lu successes, %u failures; %lu, %u are awaited\n",
           (unsigned long)back.success, (unsigned)back.failure,
           (unsigned long)success, failure);
    CU_FAIL("another count");
}

/* Another NIC than the parent's, and than that of another run */
static void user_name_nic(const char *part)
{
    char name[64];

    snprintf(name, sizeof(name), "test-%d-%s", (int)getpid(), part);
    setenv("CASSINI_NIC", name, 1);
    setenv(USER_OWN, "1", 1);
}

/* What NICs share is left behind by the last process */
static void user_unlink_nic(void)
{
    char name[128];

    snprintf(name, sizeof(name), "/cassini.%u.%s", (unsigned)geteuid(),
             getenv("CASSINI_NIC"));
    (void)shm_unlink(name);
}

/* Lines of NAME=VALUE */
static void child_settings(const char *settings)
{
    char *copy = strdup(settings);
    char *line = strtok(copy, "\n");

    for (; line != NULL; line = strtok(NULL, "\n")) {
        (void)putenv(line);
    }
}

pid_t cassini_child(const char *name, const char *settings)
{
    char *const argv[] = {"cassini", NULL};
    char end[16];
    int fds[2];
    pid_t pid;

    (void)fflush(NULL);
    CASSINI_REQUIRE(pipe(fds) == 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(fds[0]);
        snprintf(end, sizeof(end), "%d", fds[1]);
        setenv(USER_READY, end, 1);
        setenv(USER_PART, name, 1);
        if (settings != NULL) {
            user_name_nic(name);
            child_settings(settings);
        }
        execv("/proc/self/exe", argv);
        _exit(EXIT_FAILURE);
    }
    CASSINI_REQUIRE(pid > 0);
    (void)close(fds[1]);
    if (user_child_end >= 0) {
        (void)close(user_child_end);
    }
    user_child_end = fds[0];
    return pid;
}

void cassini_ready(void)
{
    int end = atoi(getenv(USER_READY));

    CASSINI_REQUIRE(write(end, "1", 1) == 1);
    (void)close(end);
}

/* Its death ends this as well */
void cassini_child_await(void)
{
    char byte = 0;

    CU_ASSERT(read(user_child_end, &byte, 1) == 1);
}

int cassini_child_wait(pid_t pid)
{
    int status = 0;

    CASSINI_REQUIRE(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* As a case, so that what it calls may check */
static int user_part(const cassini_part_t *parts, const char *name, char **argv)
{
    for (; parts->name != NULL; ++parts) {
        if (!strcmp(parts->name, name)) {
            return st_cunit_alone(name, parts->func, 1, argv);
        }
    }
    fprintf(stderr, "there is no part \"%s\"\n", name);
    return EXIT_FAILURE;
}

/* The library may read its settings when it is loaded */
static void user_own_nic(char **argv)
{
    if (getenv("CASSINI_NIC") == NULL) {
        user_name_nic("all");
        execv("/proc/self/exe", argv);
    }
}

int cassini_main(const char *suite, const cassini_part_t *parts, int argc,
                 char **argv)
{
    const char *part = getenv(USER_PART);
    int is_own, result;

#if defined(__SANITIZE_THREAD__)
    printf("%s: the NIC's traps do not go with the thread sanitizer\n", suite);
    return 77;
#endif
    user_own_nic(argv);
    is_own = (getenv(USER_OWN) != NULL);
    unsetenv(USER_OWN); /* Not of the children */
    result = (part != NULL) ? user_part(parts, part, argv) :
                              st_cunit_main(suite, argc, argv);
    if (is_own) {
        user_unlink_nic();
    }
    return result;
}
