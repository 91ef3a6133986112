/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_trap.c - doorbells whose stores are events.
 *
 * The pages of all counters lie in one range that may only be read. A store
 * faults; the handler adds it to two words of the page's slot by
 * compare-and-swap, and goes on behind the instruction. It takes no lock, and
 * touches nothing that is ever freed.
 *
 * A word of a slot: bit 63 says that it was reset, the rest is the sum of what
 * was added since. So a reset and the additions around it keep their order.
 */
#include "cxi/cxiemu_trap.h"
#include "cxi/cxiemu_decode.h"
#include "base/cxiemu_log.h"

#include <ucs_fork.h>

#include <rdma/fi_errno.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define CXIEMU_TRAP_RESET (1ull << 63)

typedef struct cxiemu_trap_slot {
    uint64_t     success; /**< Atomic */
    uint64_t     failure; /**< Atomic */
    cxiemu_nic_t *nic;    /**< Atomic; NULL: the slot is free */
} cxiemu_trap_slot_t;

/* Made once, kept for ever; written with the lock, base last (release). */
static struct {
    pthread_mutex_t    lock;
    uint8_t            *base; /**< Atomic */
    size_t             page;
    size_t             count; /**< Slots */
    cxiemu_trap_slot_t *slots;
    struct sigaction   previous;
} cxiemu_trap = {.lock = PTHREAD_MUTEX_INITIALIZER};


void cxiemu_trap_fork_begin(void)
{
    ucs_fork_lock(&cxiemu_trap.lock);
}

/* Slots are whole whatever a thread was about to do */
void cxiemu_trap_fork_end(int is_child)
{
    ucs_fork_unlock(&cxiemu_trap.lock, is_child);
}

#if defined(__x86_64__)

static const int cxiemu_trap_regs[CXIEMU_DECODE_REGS] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15
};

static void cxiemu_trap_word_add(uint64_t *word, uint64_t value)
{
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    uint64_t sum;

    /* Release: the thread that takes it sees what this one wrote before */
    do {
        sum = (old & CXIEMU_TRAP_RESET) |
              ((old + value) & ~CXIEMU_TRAP_RESET);
    } while (!__atomic_compare_exchange_n(word, &old, sum, 1, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}

static void cxiemu_trap_count(cxiemu_trap_slot_t *slot, size_t offset,
                              uint64_t value)
{
    switch (offset) {
    case CXIEMU_DOORBELL_ADD * 8:
        cxiemu_trap_word_add(&slot->success, value);
        break;
    case CXIEMU_DOORBELL_ADD_FAILURE * 8:
        cxiemu_trap_word_add(&slot->failure, value);
        break;
    case CXIEMU_DOORBELL_RESET * 8:
        __atomic_store_n(&slot->success, CXIEMU_TRAP_RESET, __ATOMIC_RELEASE);
        break;
    case CXIEMU_DOORBELL_RESET_FAILURE * 8:
        __atomic_store_n(&slot->failure, CXIEMU_TRAP_RESET, __ATOMIC_RELEASE);
        break;
    default:
        break; /* Not a register: a store to nowhere */
    }
}

/* Whether the fault was a store to a page that is in use. */
static int cxiemu_trap_handle(const siginfo_t *info, ucontext_t *context)
{
    const uint8_t *base = __atomic_load_n(&cxiemu_trap.base, __ATOMIC_ACQUIRE);
    uintptr_t offset    = (uintptr_t)info->si_addr - (uintptr_t)base;
    greg_t *gregs       = context->uc_mcontext.gregs;
    greg_t *reg;
    uint64_t regs[CXIEMU_DECODE_REGS];
    cxiemu_trap_slot_t *slot;
    cxiemu_decode_t decode;
    cxiemu_nic_t *nic;
    int i;

    if ((base == NULL) || (offset / cxiemu_trap.page >= cxiemu_trap.count)) {
        return 0;
    }
    slot = &cxiemu_trap.slots[offset / cxiemu_trap.page];
    if (__atomic_load_n(&slot->nic, __ATOMIC_ACQUIRE) == NULL) {
        return 0;
    }
    for (i = 0; i < CXIEMU_DECODE_REGS; ++i) {
        regs[i] = (uint64_t)gregs[cxiemu_trap_regs[i]];
    }
    if (!cxiemu_decode_store((const uint8_t*)gregs[REG_RIP], regs, &decode)) {
        return 0;
    }

    cxiemu_trap_count(slot, offset % cxiemu_trap.page, decode.value);
    gregs[REG_RIP] += (greg_t)decode.length;
    if (decode.result >= 0) {
        /* What was there before reads as 0 */
        reg  = &gregs[cxiemu_trap_regs[decode.result]];
        *reg = (decode.size == 2) ? (*reg & ~0xffffll) : 0;
    }
    nic = __atomic_load_n(&slot->nic, __ATOMIC_ACQUIRE);
    if (nic != NULL) {
        cxiemu_nic_wake_thread(nic);
    }
    return 1;
}

static void cxiemu_trap_handler(int sig, siginfo_t *info, void *context)
{
    const struct sigaction *previous = &cxiemu_trap.previous;
    int saved                        = errno;

    if (cxiemu_trap_handle(info, context)) {
        errno = saved;
        return;
    }
    /* Another fault than a store to a trigger page */
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

static int cxiemu_trap_install(void)
{
    struct sigaction action = {.sa_sigaction = cxiemu_trap_handler,
                               .sa_flags     = SA_SIGINFO | SA_ONSTACK |
                                           SA_RESTART};

    sigemptyset(&action.sa_mask);
    return (sigaction(SIGSEGV, &action, &cxiemu_trap.previous) == 0) ? 0 :
                                                                      -errno;
}

#else

static int cxiemu_trap_install(void)
{
    cxiemu_warn(CNTR, "FI_CXIEMU_TRAP needs an x86-64 processor\n");
    return -FI_ENOSYS;
}

#endif


static int cxiemu_trap_make(void)
{
    size_t page  = (size_t)sysconf(_SC_PAGESIZE);
    size_t count = cxiemu_param()->max_cntrs;
    cxiemu_trap_slot_t *slots;
    uint8_t *base;
    int ret;

    slots = calloc(count, sizeof(*slots));
    if (slots == NULL) {
        return -FI_ENOMEM;
    }
    base = mmap(NULL, count * page, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        ret = -errno;
        goto err_free;
    }
    ret = cxiemu_trap_install();
    if (ret != 0) {
        goto err_unmap;
    }

    cxiemu_trap.page  = page;
    cxiemu_trap.count = count;
    cxiemu_trap.slots = slots;
    __atomic_store_n(&cxiemu_trap.base, base, __ATOMIC_RELEASE);
    return 0;

err_unmap:
    munmap(base, count * page);
err_free:
    free(slots);
    return ret;
}

int cxiemu_trap_add(cxiemu_nic_t *nic, int *slot_p, void **address_p)
{
    cxiemu_trap_slot_t *slot;
    int ret = 0;
    size_t i;

    pthread_mutex_lock(&cxiemu_trap.lock);
    if (cxiemu_trap.base == NULL) {
        ret = cxiemu_trap_make();
    }
    for (i = 0; (ret == 0) && (i < cxiemu_trap.count); ++i) {
        slot = &cxiemu_trap.slots[i];
        if (slot->nic == NULL) {
            slot->success = 0;
            slot->failure = 0;
            __atomic_store_n(&slot->nic, nic, __ATOMIC_RELEASE);
            *slot_p    = (int)i;
            *address_p = cxiemu_trap.base + i * cxiemu_trap.page;
            break;
        }
    }
    if ((ret == 0) && (i == cxiemu_trap.count)) {
        ret = -FI_ENOSPC;
    }
    pthread_mutex_unlock(&cxiemu_trap.lock);
    return ret;
}

void cxiemu_trap_remove(int slot)
{
    pthread_mutex_lock(&cxiemu_trap.lock);
    __atomic_store_n(&cxiemu_trap.slots[slot].nic, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&cxiemu_trap.lock);
}

int cxiemu_trap_has(int slot)
{
    const cxiemu_trap_slot_t *words = &cxiemu_trap.slots[slot];

    return (__atomic_load_n(&words->success, __ATOMIC_RELAXED) |
            __atomic_load_n(&words->failure, __ATOMIC_RELAXED)) != 0;
}

void cxiemu_trap_take(int slot, cxiemu_trap_taken_t *taken)
{
    cxiemu_trap_slot_t *words = &cxiemu_trap.slots[slot];
    uint64_t success, failure;

    /* Acquire: pairs with the release of the handler */
    success = __atomic_exchange_n(&words->success, 0, __ATOMIC_ACQUIRE);
    failure = __atomic_exchange_n(&words->failure, 0, __ATOMIC_ACQUIRE);
    taken->reset         = !!(success & CXIEMU_TRAP_RESET);
    taken->reset_failure = !!(failure & CXIEMU_TRAP_RESET);
    taken->success       = success & ~CXIEMU_TRAP_RESET;
    taken->failure       = failure & ~CXIEMU_TRAP_RESET;
}
