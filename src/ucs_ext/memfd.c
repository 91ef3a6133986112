/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memfd.c - files of memory, within the limits of process and system.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* memfd_create(), fallocate() */
#endif

#include "ucs_memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of Linux 6.3 */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif


size_t ucs_memfd_max(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct rlimit limit;

    if ((getrlimit(RLIMIT_FSIZE, &limit) != 0) ||
        (limit.rlim_cur >= (SIZE_MAX / 2))) {
        return SIZE_MAX / 2;
    }
    return (limit.rlim_cur / page) * page;
}

/* Where vm.memfd_noexec is 2 there are only files that cannot be executed;
 * older kernels do not know the flag */
static int ucs_memfd_open(const char *label)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd               = memfd_create(label, flags | MFD_NOEXEC_SEAL);

    return ((fd < 0) && (errno == EINVAL)) ? memfd_create(label, flags) : fd;
}

int ucs_memfd_create(const char *label, size_t length)
{
    int fd, err;

    if (length > ucs_memfd_max()) {
        return -EFBIG;
    }
    fd = ucs_memfd_open(label);
    if (fd < 0) {
        return -errno;
    }
    /* Files of memory begin with all rights for all: other users must not get
     * in through /proc even where they may look there */
    if ((fchmod(fd, S_IRUSR | S_IWUSR) != 0) ||
        (ftruncate(fd, (off_t)length) != 0) ||
        (fcntl(fd, F_ADD_SEALS,
               F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

int ucs_memfd_is_strict(void)
{
    char mode = '0';
    int fd    = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!read(fd, &mode, sizeof(mode));
        close(fd);
    }
    return mode == '2';
}

int ucs_memfd_take(int fd, size_t offset, size_t length)
{
    int ret;

    do {
        ret = fallocate(fd, 0, (off_t)offset, (off_t)length);
    } while ((ret != 0) && (errno == EINTR));
    return (ret == 0) ? 0 : -errno;
}
