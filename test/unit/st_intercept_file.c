/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_intercept_file.c - memory and pipes of libucp_st.
 */
#include "st_intercept_file.h"
#include "st_intercept.h"
#include "st_real.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Atomic */
static int        fail_number = -1;
static const char *failed;
static int        kernel = ST_INTERCEPT_KERNEL_OURS;
static uint64_t   allocated;

/* MFD_NOEXEC_SEAL, which is younger than some C libraries */
#define NOEXEC_SEAL 8u

void st_intercept_file_init(char **argv)
{
    const char *events = getenv("UCX_MEM_EVENTS");

    if ((events == NULL) || strcmp(events, "n")) {
        setenv("UCX_MEM_EVENTS", "n", 1);
        execv("/proc/self/exe", argv);
    }
}

void st_intercept_file_fail(int number)
{
    __atomic_store_n(&failed, NULL, __ATOMIC_SEQ_CST);
    __atomic_store_n(&fail_number, number, __ATOMIC_SEQ_CST);
}

void st_intercept_file_kernel(st_intercept_kernel_t value)
{
    __atomic_store_n(&allocated, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&kernel, (int)value, __ATOMIC_SEQ_CST);
}

uint64_t st_intercept_file_allocated(void)
{
    return __atomic_load_n(&allocated, __ATOMIC_SEQ_CST);
}

const char *st_intercept_file_failed(void)
{
    return __atomic_load_n(&failed, __ATOMIC_SEQ_CST);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/* Non-zero, and errno set, if a call from this address is to fail */
static int fails(const void *caller, const char *name, int error)
{
    if ((st_intercept_library(caller) != ST_INTERCEPT_ST) ||
        (__atomic_load_n(&fail_number, __ATOMIC_SEQ_CST) < 0) ||
        (__atomic_add_fetch(&fail_number, -1, __ATOMIC_SEQ_CST) != -1)) {
        return 0;
    }
    __atomic_store_n(&failed, name, __ATOMIC_SEQ_CST);
    errno = error;
    return 1;
}

#define FAILS(_name, _error) \
    fails(__builtin_return_address(0), _name, _error)

static int kernel_is(st_intercept_kernel_t value)
{
    return __atomic_load_n(&kernel, __ATOMIC_SEQ_CST) == (int)value;
}

int memfd_create(const char *name, unsigned flags)
{
    int has_flag = (flags & NOEXEC_SEAL) != 0;

    if ((kernel_is(ST_INTERCEPT_KERNEL_NOEXEC) && !has_flag) ||
        (kernel_is(ST_INTERCEPT_KERNEL_OLD) && has_flag)) {
        errno = has_flag ? EINVAL : EACCES;
        return -1;
    }
    return FAILS("memfd_create", EMFILE) ? -1 :
           ST_REAL(memfd_create)(name, flags);
}

int ftruncate(int fd, off_t length)
{
    return FAILS("ftruncate", ENOSPC) ? -1 : ST_REAL(ftruncate)(fd, length);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    int ret = FAILS("fallocate", ENOSPC) ?
              -1 : ST_REAL(fallocate)(fd, mode, offset, length);

    if (ret == 0) {
        __atomic_fetch_add(&allocated, (uint64_t)length, __ATOMIC_SEQ_CST);
    }
    return ret;
}

int fchmod(int fd, mode_t mode)
{
    return FAILS("fchmod", EPERM) ? -1 : ST_REAL(fchmod)(fd, mode);
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    void *arg;

    va_start(args, command);
    arg = va_arg(args, void*);
    va_end(args);
    return FAILS("fcntl", EINVAL) ? -1 : ST_REAL(fcntl)(fd, command, arg);
}

void *mmap(void *address, size_t length, int prot, int flags, int fd,
           off_t offset)
{
    return FAILS("mmap", ENOMEM) ? MAP_FAILED :
           (void*)syscall(SYS_mmap, address, length, prot, flags, fd, offset);
}

int pipe2(int fds[2], int flags)
{
    return FAILS("pipe2", EMFILE) ? -1 : ST_REAL(pipe2)(fds, flags);
}

/* A file that says what vm.overcommit_memory is */
static int open_strict(void)
{
    int fd = ST_REAL(memfd_create)("strict", MFD_CLOEXEC);

    if (fd >= 0) {
        (void)!pwrite(fd, "2\n", 2, 0);
    }
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    if (kernel_is(ST_INTERCEPT_KERNEL_STRICT) &&
        !strcmp(path, "/proc/sys/vm/overcommit_memory")) {
        return open_strict();
    }

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
    return FAILS("open", EMFILE) ? -1 :
           (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t readlink(const char *path, char *buffer, size_t length)
{
    return FAILS("readlink", EACCES) ? -1 :
           ST_REAL(readlink)(path, buffer, length);
}

int fstat(int fd, struct stat *st)
{
    return FAILS("fstat", ENOMEM) ? -1 : ST_REAL(fstat)(fd, st);
}

int stat(const char *path, struct stat *st)
{
    return FAILS("stat", EACCES) ? -1 : ST_REAL(stat)(path, st);
}

#endif
