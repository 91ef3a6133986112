/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_intercept.c - what the project's libraries ask of the system.
 *
 * An allocation of theirs has a head in front that says so, because it may be
 * freed by others (and what they free may be others').
 */
#include "st_intercept.h"
#include "st_real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ST_INTERCEPT_MAX_RANGES 8
#define ST_INTERCEPT_MAX_OWN    65536

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ST_INTERCEPT_SANITIZED 1
#else
#define ST_INTERCEPT_SANITIZED 0
#endif

/* With a sanitizer */
#define ST_INTERCEPT_UNUSED __attribute__((unused))

/** Code of a library. */
typedef struct st_intercept_range {
    uintptr_t begin;
    uintptr_t end;
    unsigned  library;
} st_intercept_range_t;

static st_intercept_range_t ranges[ST_INTERCEPT_MAX_RANGES];
static unsigned             num_ranges; /* set before any other thread is */

/* All that follows is atomic */
static unsigned              counting;     /* libraries */
static pthread_t             only_thread;
static int                   is_one_thread;
static st_intercept_counts_t counts;
static int                   fail_number = -1;
static int                   has_failed;
static const void            *failed_caller;
static int                   has_no_pidfd;

/* Addresses of the libraries' live allocations: an open hash */
static uintptr_t  own[ST_INTERCEPT_MAX_OWN];
static const void *own_caller[ST_INTERCEPT_MAX_OWN]; /* for print only */
static uint64_t   own_scenario[ST_INTERCEPT_MAX_OWN];
static uint64_t   num_scenarios;
static int64_t    num_own;

#define ATOMIC_ADD(_word, _value) \
    __atomic_add_fetch(&(_word), _value, __ATOMIC_SEQ_CST)
#define ATOMIC_GET(_word)         __atomic_load_n(&(_word), __ATOMIC_SEQ_CST)
#define ATOMIC_SET(_word, _value) \
    __atomic_store_n(&(_word), _value, __ATOMIC_SEQ_CST)


int st_intercept_is_possible(void)
{
    return !ST_INTERCEPT_SANITIZED;
}

static unsigned library_of(const char *name)
{
    if ((strstr(name, "libucp_st.") != NULL) ||
        (strstr(name, "libucs_ext.") != NULL)) {
        return ST_INTERCEPT_ST;
    }
    return (strstr(name, "libuct_cxitrig.") != NULL) ? ST_INTERCEPT_TRIG : 0;
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *arg)
{
    unsigned library = library_of(info->dlpi_name);
    const ElfW(Phdr) *phdr;
    unsigned i;

    (void)size;
    (void)arg;
    for (i = 0; (i < info->dlpi_phnum) && (library != 0); ++i) {
        phdr = &info->dlpi_phdr[i];
        if ((phdr->p_type == PT_LOAD) && (phdr->p_flags & PF_X) &&
            (num_ranges < ST_INTERCEPT_MAX_RANGES)) {
            ranges[num_ranges].begin   = info->dlpi_addr + phdr->p_vaddr;
            ranges[num_ranges].end     = ranges[num_ranges].begin +
                                         phdr->p_memsz;
            ranges[num_ranges].library = library;
            ++num_ranges;
        }
    }
    return 0;
}

/* Before main(): the libraries are linked to the program */
static void __attribute__((constructor)) find_ranges(void)
{
    dl_iterate_phdr(add_ranges, NULL);
}

unsigned st_intercept_library(const void *address)
{
    unsigned i;

    for (i = 0; i < num_ranges; ++i) {
        if (((uintptr_t)address >= ranges[i].begin) &&
            ((uintptr_t)address < ranges[i].end)) {
            return ranges[i].library;
        }
    }
    return 0;
}

/* Non-zero if a call of this library in this thread is counted */
static int ST_INTERCEPT_UNUSED is_counted(unsigned library)
{
    return (library & ATOMIC_GET(counting)) &&
           (!ATOMIC_GET(is_one_thread) ||
            pthread_equal(pthread_self(), only_thread));
}

void st_intercept_start(unsigned libraries, int this_thread)
{
    memset(&counts, 0, sizeof(counts));
    only_thread = pthread_self();
    ATOMIC_SET(is_one_thread, this_thread);
    ATOMIC_SET(counting, libraries);
}

st_intercept_counts_t st_intercept_stop(void)
{
    ATOMIC_SET(counting, 0);
    return counts;
}

void st_intercept_print_outstanding(void)
{
    unsigned i;

    for (i = 0; i < ST_INTERCEPT_MAX_OWN; ++i) {
        if ((ATOMIC_GET(own[i]) != 0) &&
            (own_scenario[i] == ATOMIC_GET(num_scenarios))) {
            st_intercept_print(own_caller[i]);
        }
    }
}

void st_intercept_print(const void *caller)
{
    Dl_info info;

    if (dladdr(caller, &info) == 0) {
        printf(" ?");
        return;
    }
    printf(" %s+0x%lx", info.dli_fname,
           (unsigned long)((const char*)caller - (const char*)info.dli_fbase));
}

void st_intercept_fail(int number)
{
    ATOMIC_ADD(num_scenarios, 1);
    ATOMIC_SET(has_failed, 0);
    ATOMIC_SET(fail_number, number);
}

int st_intercept_has_failed(void)
{
    return ATOMIC_GET(has_failed);
}

const void *st_intercept_failed_caller(void)
{
    return ATOMIC_GET(failed_caller);
}

void st_intercept_no_pidfd(int is_missing)
{
    ATOMIC_SET(has_no_pidfd, is_missing);
}

int64_t st_intercept_outstanding(void)
{
    return ATOMIC_GET(num_own);
}

#if !ST_INTERCEPT_SANITIZED

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *ptr);

/* An allocation by one of the libraries; non-zero if it is to fail */
static int begin_allocation(unsigned library, const void *caller)
{
    if (library == 0) {
        return 0;
    }
    if (is_counted(library)) {
        ATOMIC_ADD(counts.allocations, 1);
    }
    if ((ATOMIC_GET(fail_number) >= 0) && (ATOMIC_ADD(fail_number, -1) == -1)) {
        ATOMIC_SET(failed_caller, caller);
        ATOMIC_SET(has_failed, 1);
        return 1;
    }
    return 0;
}

static unsigned slot_of(uintptr_t address)
{
    return (unsigned)((address * 0x9e3779b97f4a7c15ul) >> 48) %
           ST_INTERCEPT_MAX_OWN;
}

static void *end_allocation(unsigned library, void *ptr, const void *caller)
{
    uintptr_t empty;
    unsigned i, slot;

    if ((library == 0) || (ptr == NULL)) {
        return ptr;
    }
    for (i = 0, slot = slot_of((uintptr_t)ptr); i < ST_INTERCEPT_MAX_OWN; ++i) {
        empty = 0;
        if (__atomic_compare_exchange_n(&own[(slot + i) % ST_INTERCEPT_MAX_OWN],
                                        &empty, (uintptr_t)ptr, 0,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            slot               = (slot + i) % ST_INTERCEPT_MAX_OWN;
            own_caller[slot]   = caller;
            own_scenario[slot] = ATOMIC_GET(num_scenarios);
            ATOMIC_ADD(num_own, 1);
            break;
        }
    }
    return ptr;
}

/* Anybody frees: a chain of used slots may have gaps, so look a little on */
static void forget(unsigned library, void *ptr)
{
    uintptr_t expected;
    unsigned i, slot;

    if (ptr == NULL) {
        return;
    }
    if (is_counted(library)) {
        ATOMIC_ADD(counts.frees, 1);
    }
    for (i = 0, slot = slot_of((uintptr_t)ptr); i < 64; ++i) {
        expected = (uintptr_t)ptr;
        if (__atomic_compare_exchange_n(&own[(slot + i) % ST_INTERCEPT_MAX_OWN],
                                        &expected, 0, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
            ATOMIC_ADD(num_own, -1);
            return;
        }
    }
}

void *malloc(size_t size)
{
    const void *caller = __builtin_return_address(0);
    unsigned library   = st_intercept_library(caller);

    if (begin_allocation(library, caller)) {
        return NULL;
    }
    return end_allocation(library, __libc_malloc(size), caller);
}

void *calloc(size_t count, size_t size)
{
    const void *caller = __builtin_return_address(0);
    unsigned library   = st_intercept_library(caller);

    if (begin_allocation(library, caller)) {
        return NULL;
    }
    return end_allocation(library, __libc_calloc(count, size), caller);
}

void *realloc(void *ptr, size_t size)
{
    const void *caller = __builtin_return_address(0);
    unsigned library   = st_intercept_library(caller);
    void *result;

    if (begin_allocation(library, caller)) {
        return NULL;
    }
    result = __libc_realloc(ptr, size);
    if ((result != NULL) && (result != ptr)) {
        forget(0, ptr);
        return end_allocation(library, result, caller);
    }
    return result;
}

void *aligned_alloc(size_t align, size_t size)
{
    const void *caller = __builtin_return_address(0);
    unsigned library   = st_intercept_library(caller);

    if (begin_allocation(library, caller)) {
        return NULL;
    }
    return end_allocation(library, __libc_memalign(align, size), caller);
}

int posix_memalign(void **ptr, size_t align, size_t size)
{
    const void *caller = __builtin_return_address(0);
    unsigned library   = st_intercept_library(caller);

    if (begin_allocation(library, caller)) {
        return 12; /* ENOMEM */
    }
    *ptr = end_allocation(library, __libc_memalign(align, size), caller);
    return (*ptr == NULL) ? 12 : 0;
}

void free(void *ptr)
{
    forget(st_intercept_library(__builtin_return_address(0)), ptr);
    __libc_free(ptr);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (is_counted(st_intercept_library(__builtin_return_address(0)))) {
        ATOMIC_ADD(counts.mutex_locks, 1);
    }
    return ST_REAL(pthread_mutex_lock)(mutex);
}

static void count_system_call(const void *caller)
{
    if (is_counted(st_intercept_library(caller))) {
        ATOMIC_ADD(counts.system_calls, 1);
    }
}

ssize_t write(int fd, const void *buffer, size_t length)
{
    count_system_call(__builtin_return_address(0));
    return ST_REAL(write)(fd, buffer, length);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    count_system_call(__builtin_return_address(0));
    return ST_REAL(poll)(fds, count, timeout);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
          const sigset_t *signals)
{
    count_system_call(__builtin_return_address(0));
    return ST_REAL(ppoll)(fds, count, timeout, signals);
}

long syscall(long number, ...)
{
    long arg[6];
    va_list args;
    int i;

    count_system_call(__builtin_return_address(0));
    if ((number == SYS_pidfd_open) && ATOMIC_GET(has_no_pidfd)) {
        errno = ENOSYS;
        return -1;
    }
    va_start(args, number);
    for (i = 0; i < 6; ++i) {
        arg[i] = va_arg(args, long);
    }
    va_end(args);
    return ST_REAL(syscall)(number, arg[0], arg[1], arg[2], arg[3], arg[4],
                            arg[5]);
}

#endif
