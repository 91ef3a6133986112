/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_addr.c - addresses of endpoints, and their text:
 *
 *     cxiemu://HOST.PID.FD.NONCE.EP      all but the prefix in hexadecimal
 */
#include "base/cxiemu_addr.h"
#include "base/cxiemu_param.h"
#include "cxiemu.h"

#include <rdma/fi_errno.h>

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CXIEMU_ADDR_PREFIX "cxiemu://"
#define CXIEMU_ADDR_FIELDS 5

#define CXIEMU_FNV_BASIS 0x811c9dc5u
#define CXIEMU_FNV_PRIME 0x01000193u

static uint32_t       cxiemu_addr_digest;
static pthread_once_t cxiemu_addr_once = PTHREAD_ONCE_INIT;


/* FNV-1a: nothing here has to resist an attacker, descriptors do. */
static uint32_t cxiemu_addr_hash(uint32_t hash, const char *bytes, size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        hash = (hash ^ (uint8_t)bytes[i]) * CXIEMU_FNV_PRIME;
    }
    return hash;
}

/* Two processes of one digest mean the same process by a number, and may open
 * its files: same boot of the same machine, and same namespaces of process
 * numbers and of users, or one directory (cxiemu_process.h). */
static void cxiemu_addr_make_digest(void)
{
    static const char *const spaces[] = {"/proc/self/ns/pid",
                                         "/proc/self/ns/user"};
    uint32_t hash                     = CXIEMU_FNV_BASIS;
    int dir                           = cxiemu_param()->dir;
    struct stat st                    = {0};
    char text[128];
    ssize_t count;
    size_t i;
    int fd;

    fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        count = read(fd, text, sizeof(text));
        close(fd);
        hash = cxiemu_addr_hash(hash, text, (count > 0) ? (size_t)count : 0);
    }
    if (dir >= 0) {
        (void)fstat(dir, &st);
        count = snprintf(text, sizeof(text), "%ju.%ju", (uintmax_t)st.st_dev,
                         (uintmax_t)st.st_ino);
        hash  = cxiemu_addr_hash(hash, text, (size_t)count);
    }
    for (i = 0; (dir < 0) && (i < sizeof(spaces) / sizeof(spaces[0])); ++i) {
        count = readlink(spaces[i], text, sizeof(text));
        hash  = cxiemu_addr_hash(hash, text, (count > 0) ? (size_t)count : 0);
    }
    cxiemu_addr_digest = hash;
}

uint32_t cxiemu_addr_host(void)
{
    pthread_once(&cxiemu_addr_once, cxiemu_addr_make_digest);
    return cxiemu_addr_digest;
}

uint32_t cxiemu_space(void)
{
    return cxiemu_addr_host();
}

int cxiemu_addr_print(const cxiemu_addr_t *addr, char *buffer, size_t size)
{
    return snprintf(buffer, size,
                    CXIEMU_ADDR_PREFIX "%" PRIx32 ".%" PRIx32 ".%" PRIx32
                                       ".%" PRIx64 ".%" PRIx32,
                    addr->host, addr->pid, addr->fd, addr->nonce,
                    (uint32_t)addr->ep);
}

/* Reads a number in lower case, at most @a max; NULL for anything else. */
static const char *
cxiemu_addr_number(const char *text, uint64_t max, uint64_t *value_p)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t value             = 0;
    const char *start          = text;
    const char *digit;

    for (; (*text != '\0') && ((digit = strchr(digits, *text)) != NULL);
         ++text) {
        if (value > ((max - (uint64_t)(digit - digits)) >> 4)) {
            return NULL;
        }
        value = (value << 4) | (uint64_t)(digit - digits);
    }
    *value_p = value;
    return (text == start) ? NULL : text;
}

int cxiemu_addr_parse(const char *text, cxiemu_addr_t *addr)
{
    static const uint64_t max[CXIEMU_ADDR_FIELDS] = {UINT32_MAX, UINT32_MAX,
                                                     UINT32_MAX, UINT64_MAX,
                                                     UINT16_MAX};
    size_t prefix = strlen(CXIEMU_ADDR_PREFIX);
    uint64_t values[CXIEMU_ADDR_FIELDS];
    int i;

    if (strncmp(text, CXIEMU_ADDR_PREFIX, prefix)) {
        return -FI_EINVAL;
    }
    text += prefix;
    for (i = 0; i < CXIEMU_ADDR_FIELDS; ++i) {
        text = cxiemu_addr_number(text, max[i], &values[i]);
        if ((text == NULL) ||
            (*text != ((i == CXIEMU_ADDR_FIELDS - 1) ? '\0' : '.'))) {
            return -FI_EINVAL;
        }
        ++text;
    }
    *addr = (cxiemu_addr_t){.version = CXIEMU_ADDR_VERSION,
                            .ep      = (uint16_t)values[4],
                            .host    = (uint32_t)values[0],
                            .pid     = (uint32_t)values[1],
                            .fd      = (uint32_t)values[2],
                            .nonce   = values[3]};
    return 0;
}
