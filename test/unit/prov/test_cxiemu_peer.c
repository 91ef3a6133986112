/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cxiemu_peer.c - processes of which the system keeps one from the other,
 * or gives less than usual.
 */
#include "cxiemu_side.h"
#include "st_cunit.h"
#include "st_real.h"
#include "base/cxiemu_map.h"
#include "nic/cxiemu_proto.h"
#include "run/cxiemu_wait.h"
#include "base/cxiemu_addr.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Goes by cross-memory attach, where that is possible */
#define LENGTH (1ul << 20)

/* Of this process: whether it may attach to others, and how often it has */
static int      may_attach = 1;
static unsigned num_attached;

/* How often all processes of the user were allowed to trace this one */
static unsigned num_allowed;

ssize_t process_vm_readv(pid_t pid, const struct iovec *here,
                         unsigned long num_here, const struct iovec *there,
                         unsigned long num_there, unsigned long flags)
{
    if (pid != getpid()) {
        if (!may_attach) {
            errno = EPERM;
            return -1;
        }
        num_attached += (there->iov_len >= LENGTH / 16);
    }
    return ST_REAL(process_vm_readv)(pid, here, num_here, there, num_there,
                                     flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *here,
                          unsigned long num_here, const struct iovec *there,
                          unsigned long num_there, unsigned long flags)
{
    if ((pid != getpid()) && !may_attach) {
        errno = EPERM;
        return -1;
    }
    num_attached += (there->iov_len >= LENGTH / 16);
    return ST_REAL(process_vm_writev)(pid, here, num_here, there, num_there,
                                      flags);
}

int prctl(int option, ...)
{
    unsigned long arg[4];
    va_list args;
    int i;

    va_start(args, option);
    for (i = 0; i < 4; ++i) {
        arg[i] = va_arg(args, unsigned long);
    }
    va_end(args);
    num_allowed += (option == PR_SET_PTRACER);
    return ST_REAL(prctl)(option, arg[0], arg[1], arg[2], arg[3]);
}

/* Kernels that this one is not */
typedef enum {
    KERNEL_OURS,
    KERNEL_OLD,    /* Before MFD_NOEXEC_SEAL */
    KERNEL_NOEXEC, /* vm.memfd_noexec=2 */
    KERNEL_STRICT  /* vm.overcommit_memory=2 */
} kernel_t;

static kernel_t kernel;
static uint64_t num_allocated; /* Bytes, by fallocate() */

/* Younger than some C libraries */
#define NOEXEC_SEAL 8u

int memfd_create(const char *name, unsigned flags)
{
    int has_flag = (flags & NOEXEC_SEAL) != 0;

    if ((kernel == KERNEL_OLD) && has_flag) {
        errno = EINVAL;
        return -1;
    }
    if ((kernel == KERNEL_NOEXEC) && !has_flag) {
        errno = EACCES;
        return -1;
    }
    return ST_REAL(memfd_create)(name, flags);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;
    int fd;

    if ((kernel == KERNEL_STRICT) &&
        !strcmp(path, "/proc/sys/vm/overcommit_memory")) {
        fd = ST_REAL(memfd_create)("strict", MFD_CLOEXEC);
        return ((fd >= 0) && (pwrite(fd, "2\n", 2, 0) == 2)) ? fd : -1;
    }
    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
    return ST_REAL(open)(path, flags, mode);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    num_allocated += (uint64_t)length;
    return ST_REAL(fallocate)(fd, mode, offset, length);
}


static void fill(uint8_t *memory, unsigned tint)
{
    size_t i;

    for (i = 0; i < LENGTH; ++i) {
        memory[i] = (uint8_t)((i * 7) + (i >> 9) + tint);
    }
}

static int is_filled(const uint8_t *memory, unsigned tint)
{
    uint8_t *wanted = malloc(LENGTH);
    int result;

    CXIEMU_MUST(wanted != NULL);
    fill(wanted, tint);
    result = !memcmp(memory, wanted, LENGTH);
    free(wanted);
    return result;
}

/* What is under way gets on meanwhile, by the domains' threads */
static void meet(int socket)
{
    char byte = 0;

    cxiemu_role_swap(socket, &byte, &byte, sizeof(byte));
}

/* In memory when it completes */
static ssize_t put(cxiemu_side_t *side, void *data)
{
    struct iovec iov       = {.iov_base = data, .iov_len = LENGTH};
    struct fi_rma_iov riov = {.len = LENGTH, .key = CXIEMU_SIDE_KEY};
    struct fi_msg_rma msg  = {
        .msg_iov       = &iov,
        .iov_count     = 1,
        .addr          = side->peer,
        .rma_iov       = &riov,
        .rma_iov_count = 1
    };

    return fi_writemsg(side->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

/* Long payload by all ways, which both roles go: a write, a read, a message */
static void exchange(int socket, cxiemu_side_t *side)
{
    uint8_t *data = malloc(2 * LENGTH);

    CXIEMU_MUST(data != NULL);
    fill(data, 1);
    meet(socket);
    CXIEMU_MUST(put(side, data) == 0);
    CXIEMU_MUST(cxiemu_side_wait(side) == 0);
    memset(data, 0, LENGTH);
    CXIEMU_MUST(fi_read(side->ep, data, LENGTH, NULL, side->peer, 0,
                        CXIEMU_SIDE_KEY, NULL) == 0);
    CXIEMU_MUST(cxiemu_side_wait(side) == 0);
    CXIEMU_MUST(is_filled(data, 1));
    meet(socket);
    CXIEMU_MUST(is_filled(side->memory, 1));

    fill(data, 2);
    CXIEMU_MUST(fi_recv(side->ep, data + LENGTH, LENGTH, NULL,
                        FI_ADDR_UNSPEC, NULL) == 0);
    CXIEMU_MUST(fi_send(side->ep, data, LENGTH, NULL, side->peer, NULL) == 0);
    CXIEMU_MUST(cxiemu_side_wait(side) == 0);
    CXIEMU_MUST(cxiemu_side_wait(side) == 0);
    CXIEMU_MUST(is_filled(data + LENGTH, 2));
    meet(socket);
    free(data);
}

/* The roles that may attach to the other one: bit 0, the first, bit 1, the
 * second */
static void attach_role(int socket, unsigned allowed, unsigned self)
{
    cxiemu_side_t side;

    may_attach = (allowed >> self) & 1;
    cxiemu_role_connect(socket, &side, LENGTH);
    exchange(socket, &side);
    exchange(socket, &side);
    CXIEMU_MUST((num_attached > 0) == may_attach);
    CXIEMU_MUST(num_allowed == 0);
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

static void attach_first(int socket, const void *arg)
{
    attach_role(socket, *(const unsigned*)arg, 0);
}

static void attach_second(int socket, const void *arg)
{
    attach_role(socket, *(const unsigned*)arg, 1);
}

/* As Yama has it with ptrace_scope=1: parents may attach to their children and
 * not the other way round, and brothers not at all */
ST_CASE(attach)
{
    unsigned allowed;

    for (allowed = 0; allowed < 4; ++allowed) {
        CU_ASSERT(cxiemu_role_run(attach_first, attach_second, &allowed) == 0);
    }
}

static void allow_role(int socket, const void *arg)
{
    cxiemu_side_t side;

    CXIEMU_MUST(setenv("FI_CXIEMU_PTRACER", "yes", 1) == 0);
    cxiemu_role_connect(socket, &side, LENGTH);
    CXIEMU_MUST(num_allowed == 1);
    exchange(socket, &side);
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

/* Only where it is asked for are all processes allowed to trace this one */
ST_CASE(allow)
{
    CU_ASSERT(cxiemu_role_run(allow_role, allow_role, NULL) == 0);
}

/* Files may not be as long as those that both sides need */
static void limit_role(int socket, const void *arg)
{
    struct rlimit limit = {.rlim_cur = *(const rlim_t*)arg,
                           .rlim_max = RLIM_INFINITY};
    cxiemu_side_t side;

    CXIEMU_MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CXIEMU_MUST(cxiemu_side_open(&side, LENGTH) == -EFBIG);
}

ST_CASE(file_limit)
{
    rlim_t limit;

    for (limit = 4096; limit < sizeof(cxiemu_link_shm_t); limit *= 4) {
        CU_ASSERT(cxiemu_role_run(limit_role, limit_role, &limit) == 0);
    }
}

static void kernel_role(int socket, const void *arg)
{
    cxiemu_side_t side;

    kernel = *(const kernel_t*)arg;
    cxiemu_role_connect(socket, &side, LENGTH);
    exchange(socket, &side);
    /* What may not be there when it is touched is asked for before */
    CXIEMU_MUST((num_allocated >= sizeof(cxiemu_nic_shm_t) +
                                          sizeof(cxiemu_link_shm_t)) ==
                (kernel == KERNEL_STRICT));
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

ST_CASE(kernels)
{
    kernel_t which;

    for (which = KERNEL_OURS; which <= KERNEL_STRICT; ++which) {
        CU_ASSERT(cxiemu_role_run(kernel_role, kernel_role, &which) == 0);
    }
}

/* Shared mappings of the card, and those of them that core files leave out */
static void count_maps(unsigned *maps, unsigned *left_out)
{
    FILE *file  = fopen("/proc/self/smaps", "r");
    int is_ours = 0;
    char line[512];

    CXIEMU_MUST(file != NULL);
    *maps     = 0;
    *left_out = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strstr(line, "/memfd:cxiemu") != NULL) {
            is_ours = 1;
            ++*maps;
        } else if (!strncmp(line, "VmFlags:", 8)) {
            *left_out += is_ours && (strstr(line, " dd") != NULL);
            is_ours    = 0;
        }
    }
    fclose(file);
}

static void core_role(int socket, const void *arg)
{
    unsigned maps, left_out;
    cxiemu_side_t side;

    cxiemu_role_connect(socket, &side, LENGTH);
    exchange(socket, &side);
    count_maps(&maps, &left_out);
    /* Both NICs, and the links both ways */
    CXIEMU_MUST(maps >= 4);
    CXIEMU_MUST(left_out == maps);
    meet(socket); /* The first close takes a link away */
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

ST_CASE(core_files)
{
    CU_ASSERT(cxiemu_role_run(core_role, core_role, NULL) == 0);
}

/* A filter of system calls that is older than pidfd_open() refuses it */
static void filter_role(int socket, const void *arg)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    };
    struct sock_fprog program = {
        .len    = sizeof(code) / sizeof(code[0]),
        .filter = code
    };
    cxiemu_side_t side;

    CXIEMU_MUST(prctl(PR_SET_NO_NEW_PRIVS, 1ul, 0ul, 0ul, 0ul) == 0);
    if (prctl(PR_SET_SECCOMP, (unsigned long)SECCOMP_MODE_FILTER, &program,
              0ul, 0ul) != 0) {
        cxiemu_role_skip();
    }
    cxiemu_role_connect(socket, &side, LENGTH);
    exchange(socket, &side);
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

ST_CASE(no_pidfd)
{
    int failures = cxiemu_role_run(filter_role, filter_role, NULL);

    if (failures < 0) {
        st_cunit_skip("the kernel has no filters of system calls");
    }
    CU_ASSERT(failures <= 0);
}

/* A fault in a thread of the card is one like any other's: with a signal that
 * is blocked the kernel ends the process, and no handler is called */
static void signals_role(int socket, const void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    unsigned num_threads      = 0;
    DIR *dir;
    unsigned long long blocked;
    struct dirent *entry;
    cxiemu_side_t side;
    char path[300], line[256];
    unsigned i;
    FILE *file;

    cxiemu_role_connect(socket, &side, LENGTH);
    exchange(socket, &side); /* No thread is just beginning */
    dir = opendir("/proc/self/task");
    CXIEMU_MUST(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "/proc/self/task/%s/status",
                 entry->d_name);
        file = (entry->d_name[0] == '.') ? NULL : fopen(path, "r");
        while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
            if (sscanf(line, "SigBlk: %llx", &blocked) == 1) {
                ++num_threads;
                for (i = 0; i < sizeof(faults) / sizeof(faults[0]); ++i) {
                    CXIEMU_MUST(!((blocked >> (faults[i] - 1)) & 1));
                }
            }
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(dir);
    CXIEMU_MUST(num_threads >= 2);
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

ST_CASE(signals)
{
#if defined(__SANITIZE_THREAD__)
    st_cunit_skip("the sanitizer's own thread blocks every signal");
    return;
#endif
    CU_ASSERT(cxiemu_role_run(signals_role, signals_role, NULL) == 0);
}

/* A port that a process has taken, and no link: the process was killed */
static void leaver_role(int socket, const void *arg)
{
    cxiemu_side_t side;

    cxiemu_role_connect(socket, &side, LENGTH);
    exchange(socket, &side);
    meet(socket);
    _exit(0);
}

static void stayer_role(int socket, const void *arg)
{
    pid_t child = fork();
    cxiemu_side_t side;
    uint64_t *owner;
    int status;

    if (child == 0) {
        _exit(0);
    }
    CXIEMU_MUST(waitpid(child, &status, 0) == child);
    cxiemu_role_connect(socket, &side, LENGTH);
    exchange(socket, &side);
    owner = &side.nic->shm->ports[50].owner;
    __atomic_store_n(owner, cxiemu_port_owner(4711, (uint32_t)child),
                     __ATOMIC_RELEASE);
    meet(socket);
    while (__atomic_load_n(owner, __ATOMIC_ACQUIRE) != 0) {
        sched_yield();
    }
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

ST_CASE(ports)
{
    CU_ASSERT(cxiemu_role_run(leaver_role, stayer_role, NULL) == 0);
}

static void space_plain(int socket, const void *arg)
{
    cxiemu_side_t side;

    cxiemu_role_connect(socket, &side, LENGTH);
    CXIEMU_MUST(fi_send(side.ep, side.memory, 8, NULL, side.peer, NULL) == 0);
    CXIEMU_MUST(cxiemu_side_wait(&side) == FI_EHOSTUNREACH);
    meet(socket);
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

/* In a namespace of its own; of PIDs, that is a child */
static void space_apart(int socket, const void *arg)
{
    int flag = *(const int*)arg;
    pid_t pid;
    int status;

    if (unshare(flag) != 0) {
        cxiemu_role_skip();
    }
    if (flag != CLONE_NEWPID) {
        space_plain(socket, arg);
        return;
    }
    pid = fork();
    if (pid == 0) {
        space_plain(socket, arg);
        _exit(0);
    }
    CXIEMU_MUST(waitpid(pid, &status, 0) == pid);
    CXIEMU_MUST(WIFEXITED(status) && (WEXITSTATUS(status) == 0));
}

/* Processes whose files cannot be opened are known by their addresses: nothing
 * is tried, and nobody waits */
static void check_apart(int flag)
{
    int failures = cxiemu_role_run(space_plain, space_apart, &flag);

    if (failures < 0) {
        st_cunit_skip("no namespaces for this user");
    }
    CU_ASSERT(failures <= 0);
}

ST_CASE_CALL(other_users, check_apart(CLONE_NEWUSER))
ST_CASE_CALL(other_pids, check_apart(CLONE_NEWPID))

static void space_other(int socket, const void *arg)
{
    cxiemu_side_t side;

    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) != 0) {
        cxiemu_role_skip();
    }
    cxiemu_role_connect(socket, &side, LENGTH);
    exchange(socket, &side);
    CXIEMU_MUST(cxiemu_side_close(&side) == 0);
}

/* The others are no hindrance */
ST_CASE(other_mounts)
{
    int failures = cxiemu_role_run(space_other, space_other, NULL);

    if (failures < 0) {
        st_cunit_skip("no namespaces for this user");
    }
    CU_ASSERT(failures <= 0);
}

#define FORGED_PORT  60u
#define FORGED_NONCE 4711u

/* A link's memory in a process that nobody has mapped yet */
static uint32_t find_link(uint32_t pid)
{
    char path[64], text[64];
    uint32_t fd;
    ssize_t length;

    for (fd = 0; fd < 1024; ++fd) {
        snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, fd);
        length = readlink(path, text, sizeof(text) - 1);
        if (length > 0) {
            text[length] = '\0';
            if (strstr(text, "cxiemu-link") != NULL) {
                return fd;
            }
        }
    }
    CXIEMU_MUST(!"no link");
    return 0;
}

/* Makes a link of the other process to this one look like one of that process
 * to itself, whose records may name any of its memory */
static void forger_role(int socket, const void *arg)
{
    cxiemu_nic_shm_t *nic;
    cxiemu_link_shm_t *link;
    cxiemu_addr_t victim;
    cxiemu_map_t *maps[2];
    cxiemu_side_t side;
    cxiemu_rec_t *rec;
    uint32_t fd;

    cxiemu_role_connect(socket, &side, LENGTH);
    CXIEMU_MUST(fi_av_lookup(side.av, side.peer, &victim,
                             &(size_t){sizeof(victim)}) == 0);
    cxiemu_thread_stop(side.nic); /* It maps nothing */
    meet(socket);
    meet(socket);
    fd = find_link(victim.pid);
    CXIEMU_MUST(cxiemu_map_open(victim.pid, victim.fd, sizeof(*nic),
                                &maps[0]) == 0);
    CXIEMU_MUST(cxiemu_map_open(victim.pid, fd, sizeof(*link), &maps[1]) == 0);
    nic      = maps[0]->address;
    link     = maps[1]->address;
    link->id = (cxiemu_link_id_t){
        .magic     = CXIEMU_LINK_MAGIC,
        .version   = CXIEMU_PROTO_VERSION,
        .nonce     = FORGED_NONCE,
        .initiator = victim.nonce,
        .target    = victim.nonce,
        .pid       = victim.pid,
        .nic_fd    = victim.fd
    };
    rec      = (cxiemu_rec_t*)link->cells;
    *rec     = (cxiemu_rec_t){
        .seq    = 1,
        .type   = CXIEMU_REC_PULL,
        .cells  = 1,
        .tag    = CXIEMU_SIDE_KEY,
        .length = 4096,
        .source = 4096 /* Nothing is there */
    };
    nic->ports[FORGED_PORT].owner = cxiemu_port_owner(victim.nonce,
                                                      victim.pid);
    nic->ports[FORGED_PORT].fd    = fd;
    __atomic_store_n(&nic->ports[FORGED_PORT].link, FORGED_NONCE,
                     __ATOMIC_RELEASE);
    cxiemu_nic_notify(nic, FORGED_PORT);
    meet(socket);
}

static void victim_role(int socket, const void *arg)
{
    cxiemu_port_t *port;
    cxiemu_side_t side;

    cxiemu_role_connect(socket, &side, LENGTH);
    port = &side.nic->shm->ports[FORGED_PORT];
    meet(socket);
    CXIEMU_MUST(fi_send(side.ep, side.memory, 8, NULL, side.peer, NULL) == 0);
    meet(socket);
    while (__atomic_load_n(&port->refused, __ATOMIC_ACQUIRE) != FORGED_NONCE) {
        sched_yield();
    }
    meet(socket);
    _exit(0);
}

ST_CASE(forged)
{
    CU_ASSERT(cxiemu_role_run(forger_role, victim_role, NULL) == 0);
}

ST_SUITE("cxiemu_peer")
