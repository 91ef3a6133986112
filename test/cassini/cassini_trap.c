/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_trap.c - pages whose stores are noticed; memory that may be gone.
 *
 * Counters: nobody may touch their pages. A store faults; the handler adds it
 * to two words of the counter by compare-and-swap and goes on behind the
 * instruction. A word: bit 63 says that it was reset, the rest is the sum of
 * what was added since. So a reset and the additions around it keep their
 * order.
 *
 * Write pointers: while the engine sleeps their pages may only be read. The
 * first store faults; the handler makes it through another mapping of the page,
 * and wakes the engine.
 *
 * Memory of the user that the NIC copies may be gone: a fault there ends the
 * copy.
 */
#include "cassini_parts.h"
#include "cxi/cxiemu_decode.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define CASSINI_PAGE       4096ul
#define CASSINI_TRAP_RESET (1ull << 63)

typedef struct cassini_trap_words {
    uint64_t success; /**< Atomic */
    uint64_t failure; /**< Atomic */
} cassini_trap_words_t;

static struct {
    uint8_t              *counters; /**< CASSINI_NUM_CTS pages */
    uint8_t              *queues; /**< CASSINI_QUEUES pages */
    uint8_t              *stores; /**< The same pages, always writable */
    int                  watched; /**< Atomic: queues' pages are read-only */
    cassini_trap_words_t words[CASSINI_NUM_CTS];
    struct sigaction     previous;
} cassini_trap;

/* Where a copy of this thread goes on after a fault. The handler reads it, and
 * that must not allocate. */
static __thread sigjmp_buf *cassini_trap_guard
        __attribute__((tls_model("initial-exec")));

static const int cassini_trap_regs[CXIEMU_DECODE_REGS] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15
};


static void cassini_trap_add(uint64_t *word, uint64_t value)
{
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    uint64_t sum;

    /* Release: the engine sees what this thread wrote before */
    do {
        sum = (old & CASSINI_TRAP_RESET) |
              ((old + value) & ~CASSINI_TRAP_RESET);
    } while (!__atomic_compare_exchange_n(word, &old, sum, 1, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}

static void cassini_trap_count(cassini_trap_words_t *words, size_t offset,
                               uint64_t value)
{
    switch (offset) {
    case CASSINI_CT_ADD:
        cassini_trap_add(&words->success, value & CASSINI_SUCCESS_MASK);
        break;
    case CASSINI_CT_ADD_FAILURE:
        cassini_trap_add(&words->failure, value & CASSINI_FAILURE_MAX);
        break;
    case CASSINI_CT_RESET:
        __atomic_store_n(&words->success, CASSINI_TRAP_RESET, __ATOMIC_RELEASE);
        break;
    case CASSINI_CT_RESET_FAILURE:
        __atomic_store_n(&words->failure, CASSINI_TRAP_RESET, __ATOMIC_RELEASE);
        break;
    default:
        break; /* Not a register: a store to nowhere */
    }
}

/* Whether the fault was a store that can be decoded; steps over it. */
static int cassini_trap_step(ucontext_t *context, cxiemu_decode_t *decode)
{
    greg_t *gregs = context->uc_mcontext.gregs;
    uint64_t regs[CXIEMU_DECODE_REGS];
    greg_t *reg;
    int i;

    for (i = 0; i < CXIEMU_DECODE_REGS; ++i) {
        regs[i] = (uint64_t)gregs[cassini_trap_regs[i]];
    }
    if (!cxiemu_decode_store((const uint8_t*)gregs[REG_RIP], regs, decode)) {
        return 0;
    }
    gregs[REG_RIP] += (greg_t)decode->length;
    if (decode->result >= 0) {
        /* What was there before reads as 0 */
        reg  = &gregs[cassini_trap_regs[decode->result]];
        *reg = (decode->size == 2) ? (*reg & ~0xffffll) : 0;
    }
    return 1;
}

/* A store to a write pointer. */
static void cassini_trap_pass(uintptr_t offset, ucontext_t *context)
{
    cxiemu_decode_t decode;

    if (cassini_trap_step(context, &decode) && (decode.size == 8)) {
        __atomic_store_n((uint64_t*)(cassini_trap.stores + offset),
                         decode.value, __ATOMIC_RELEASE);
        cassini_nic_wake();
        sched_yield(); /* The engine should be as quick as hardware */
        return;
    }
    /* Another kind of store: it happens again */
    mprotect(cassini_trap.queues, CASSINI_QUEUES * CASSINI_PAGE,
             PROT_READ | PROT_WRITE);
    __atomic_store_n(&cassini_trap.watched, 0, __ATOMIC_SEQ_CST);
    cassini_nic_wake();
}

static int cassini_trap_handle(const siginfo_t *info, ucontext_t *context)
{
    uintptr_t counter = (uintptr_t)info->si_addr -
                        (uintptr_t)cassini_trap.counters;
    uintptr_t queue   = (uintptr_t)info->si_addr -
                        (uintptr_t)cassini_trap.queues;
    cxiemu_decode_t decode;

    if (counter < CASSINI_NUM_CTS * CASSINI_PAGE) {
        if (!cassini_trap_step(context, &decode)) {
            return 0;
        }
        cassini_trap_count(&cassini_trap.words[counter / CASSINI_PAGE],
                           counter % CASSINI_PAGE, decode.value);
        cassini_nic_wake();
        return 1;
    }
    if (queue < CASSINI_QUEUES * CASSINI_PAGE) {
        cassini_trap_pass(queue, context);
        return 1;
    }
    return 0;
}

static void cassini_trap_handler(int sig, siginfo_t *info, void *context)
{
    const struct sigaction *previous = &cassini_trap.previous;
    int saved                        = errno;

    if (cassini_trap_guard != NULL) {
        siglongjmp(*cassini_trap_guard, 1);
    }
    if (cassini_trap_handle(info, context)) {
        errno = saved;
        return;
    }
    /* Not a page of the NIC */
    cassini_trace("fault of another kind: address %p, instruction %p",
                  info->si_addr,
                  (void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP]);
    if (previous->sa_flags & SA_SIGINFO) {
        previous->sa_sigaction(sig, info, context);
    } else if ((previous->sa_handler != SIG_DFL) &&
               (previous->sa_handler != SIG_IGN)) {
        previous->sa_handler(sig);
    } else {
        /* Happens again, and takes its course */
        sigaction(sig, previous, NULL);
    }
    errno = saved;
}

/* Map the pages of write pointers twice; a child again, to the same places. */
static int cassini_trap_map_queues(void)
{
    size_t length = CASSINI_QUEUES * CASSINI_PAGE;
    int fd        = memfd_create("cassini", MFD_CLOEXEC);
    int flags     = MAP_SHARED | ((cassini_trap.stores == NULL) ? 0 :
                                                                  MAP_FIXED);
    int ret       = 0;

    if ((fd < 0) || (ftruncate(fd, (off_t)length) != 0)) {
        return -errno;
    }
    cassini_trap.stores = mmap(cassini_trap.stores, length,
                               PROT_READ | PROT_WRITE, flags, fd, 0);
    cassini_trap.queues = mmap(cassini_trap.queues, length,
                               PROT_READ | PROT_WRITE, flags, fd, 0);
    if ((cassini_trap.stores == MAP_FAILED) ||
        (cassini_trap.queues == MAP_FAILED)) {
        ret = -errno;
    }
    close(fd);
    return ret;
}

int cassini_trap_start(void)
{
    struct sigaction action = {.sa_sigaction = cassini_trap_handler,
                               .sa_flags     = SA_SIGINFO | SA_ONSTACK |
                                           SA_RESTART | SA_NODEFER};
    uint8_t *pages;
    int ret;

    if (cassini_trap.counters != NULL) {
        return 0;
    }
    pages = mmap(NULL, CASSINI_NUM_CTS * CASSINI_PAGE, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        return -errno;
    }
    cassini_trap.counters = pages;
    ret                   = cassini_trap_map_queues();
    if (ret != 0) {
        return ret;
    }
    sigemptyset(&action.sa_mask);
    return (sigaction(SIGSEGV, &action, &cassini_trap.previous) == 0) ? 0 :
                                                                       -errno;
}

void cassini_trap_forget(void)
{
    if ((cassini_trap.stores != NULL) && (cassini_trap_map_queues() != 0)) {
        cassini_say("no queues' pages in a child: %s", strerror(errno));
    }
    memset(cassini_trap.words, 0, sizeof(cassini_trap.words));
    cassini_trap.watched = 0;
}

uint64_t *cassini_trap_counter(unsigned ctn)
{
    cassini_trap.words[ctn].success = 0;
    cassini_trap.words[ctn].failure = 0;
    return (uint64_t*)(cassini_trap.counters + ctn * CASSINI_PAGE);
}

int cassini_trap_has(unsigned ctn)
{
    const cassini_trap_words_t *words = &cassini_trap.words[ctn];

    return (__atomic_load_n(&words->success, __ATOMIC_RELAXED) |
            __atomic_load_n(&words->failure, __ATOMIC_RELAXED)) != 0;
}

int cassini_trap_take(unsigned ctn, cassini_trapped_t *trapped)
{
    cassini_trap_words_t *words = &cassini_trap.words[ctn];
    uint64_t success, failure;

    if (!cassini_trap_has(ctn)) {
        return 0;
    }
    /* Acquire: pairs with the release of the handler */
    success = __atomic_exchange_n(&words->success, 0, __ATOMIC_ACQUIRE);
    failure = __atomic_exchange_n(&words->failure, 0, __ATOMIC_ACQUIRE);
    trapped->reset         = !!(success & CASSINI_TRAP_RESET);
    trapped->reset_failure = !!(failure & CASSINI_TRAP_RESET);
    trapped->success       = success & ~CASSINI_TRAP_RESET;
    trapped->failure       = failure & ~CASSINI_TRAP_RESET;
    return 1;
}

uint64_t *cassini_trap_queue(int page)
{
    uint64_t *word = (uint64_t*)(cassini_trap.stores + page * CASSINI_PAGE);

    /* Not by the pages that may be watched: an engine that sleeps has to notice
     * the next store */
    __atomic_store_n(word, CASSINI_FIRST_SLOT, __ATOMIC_RELEASE);
    return (uint64_t*)(cassini_trap.queues + page * CASSINI_PAGE);
}

void cassini_trap_watch(int on)
{
    if (__atomic_exchange_n(&cassini_trap.watched, on,
                            __ATOMIC_SEQ_CST) == on) {
        return;
    }
    mprotect(cassini_trap.queues, CASSINI_QUEUES * CASSINI_PAGE,
             on ? PROT_READ : (PROT_READ | PROT_WRITE));
}

static void cassini_trap_copy_unguarded(void *to, const void *from,
                                        size_t length)
{
    if (((uintptr_t)to % 8 == 0) && (length == 8)) {
        uint64_t value;

        memcpy(&value, from, 8);
        __atomic_store_n((uint64_t*)to, value, __ATOMIC_RELEASE);
    } else if (((uintptr_t)to % 4 == 0) && (length == 4)) {
        uint32_t value;

        memcpy(&value, from, 4);
        __atomic_store_n((uint32_t*)to, value, __ATOMIC_RELEASE);
    } else {
        memcpy(to, from, length);
    }
}

int cassini_trap_copy(void *to, const void *from, size_t length)
{
    sigjmp_buf guard;
    int ret = 0;

    if (length == 0) {
        return 0;
    }
    if (sigsetjmp(guard, 0) == 0) { /* The handler changes no mask */
        cassini_trap_guard = &guard;
        __asm__ volatile("" ::: "memory");
        cassini_trap_copy_unguarded(to, from, length);
        __asm__ volatile("" ::: "memory");
    } else {
        ret = -1;
    }
    cassini_trap_guard = NULL;
    return ret;
}
