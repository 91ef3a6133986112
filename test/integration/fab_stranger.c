/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_stranger.c - a process of another user can neither read nor write what a
 * domain of cxiemu shares, though it knows the address and the key. Needs root,
 * to become somebody else; skipped (77) otherwise. Before that: a process may
 * end with everything open.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define KEY    7

#define CHECK(_cond) \
    ((_cond) ? (void)0 : fail(#_cond, __LINE__))

static void fail(const char *what, int line)
{
    fprintf(stderr, "line %d: not true: %s\n", line, what);
    exit(1);
}

typedef struct {
    struct fi_info    *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av     *av;
    struct fid_cq     *cq;
    struct fid_ep     *ep;
} side_t;

static void side_find(side_t *side)
{
    struct fi_info *hints = fi_allocinfo();

    CHECK(hints != NULL);
    hints->caps                   = FI_MSG | FI_RMA;
    hints->domain_attr->mr_mode   = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
    hints->fabric_attr->prov_name = strdup("cxiemu");
    CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &side->info) ==
          0);
    fi_freeinfo(hints);
}

static void side_open(side_t *side)
{
    struct fi_cq_attr cq_attr = {
        .format   = FI_CQ_FORMAT_CONTEXT,
        .wait_obj = FI_WAIT_UNSPEC
    };
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

    CHECK(fi_fabric(side->info->fabric_attr, &side->fabric, NULL) == 0);
    CHECK(fi_domain(side->fabric, side->info, &side->domain, NULL) == 0);
    CHECK(fi_cq_open(side->domain, &cq_attr, &side->cq, NULL) == 0);
    CHECK(fi_av_open(side->domain, &av_attr, &side->av, NULL) == 0);
    CHECK(fi_endpoint(side->domain, side->info, &side->ep, NULL) == 0);
    CHECK(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
    CHECK(fi_ep_bind(side->ep, &side->av->fid, 0) == 0);
    CHECK(fi_enable(side->ep) == 0);
}

static void side_close(side_t *side)
{
    CHECK(fi_close(&side->ep->fid) == 0);
    CHECK(fi_close(&side->av->fid) == 0);
    CHECK(fi_close(&side->cq->fid) == 0);
    CHECK(fi_close(&side->domain->fid) == 0);
    CHECK(fi_close(&side->fabric->fid) == 0);
    fi_freeinfo(side->info);
}

/* Posts a write; 0, or the error that came back one way or the other */
static int side_write(side_t *side, fi_addr_t to, uint64_t value)
{
    struct iovec local           = {&value, sizeof(value)};
    struct fi_rma_iov remote     = {.len = sizeof(value), .key = KEY};
    struct fi_msg_rma msg        = {
        .msg_iov       = &local,
        .iov_count     = 1,
        .addr          = to,
        .rma_iov       = &remote,
        .rma_iov_count = 1
    };
    struct fi_cq_err_entry error = {0};
    struct fi_cq_entry entry;
    ssize_t ret;

    ret = fi_writemsg(side->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
    if (ret != 0) {
        return (int)-ret;
    }
    ret = fi_cq_sread(side->cq, &entry, 1, NULL, -1);
    if (ret == 1) {
        return 0;
    }
    CHECK(ret == -FI_EAVAIL);
    CHECK(fi_cq_readerr(side->cq, &error, 0) == 1);
    return error.err;
}

/* Whether the memory files of a process can be opened; how many there are */
static void check_files(pid_t pid, int expect_open)
{
    char path[64], target[256];
    struct dirent *entry;
    int found = 0;
    ssize_t length;
    DIR *dir;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    if (dir == NULL) {
        CHECK(!expect_open && (errno == EACCES));
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", (int)pid,
                 entry->d_name);
        length = readlink(path, target, sizeof(target) - 1);
        if (length > 0) {
            target[length] = '\0';
            if (strstr(target, "memfd:") == NULL) {
                continue;
            }
        }
        fd     = open(path, O_RDWR);
        found += (fd >= 0);
        if (fd >= 0) {
            close(fd);
        }
    }
    closedir(dir);
    CHECK(expect_open ? (found > 0) : (found == 0));
}

/* Exit status: that of the stranger's checks */
static void stranger(side_t *side, int fd)
{
    char name[64];
    fi_addr_t to;
    int err;

    CHECK(setgid(NOBODY) == 0);
    CHECK(setuid(NOBODY) == 0);
    CHECK(read(fd, name, sizeof(name)) == sizeof(name));
    check_files(getppid(), 0);
    side_open(side);
    if (fi_av_insert(side->av, name, 1, &to, 0, NULL) == 1) {
        err = side_write(side, to, UINT64_MAX);
        printf("the stranger's write: %s\n", fi_strerror(err));
        CHECK((err == FI_EACCES) || (err == FI_EIO));
    }
    side_close(side);
    exit(0);
}

/* libfabric unloads the module when the process exits; the domain's thread is
 * still there */
static void check_exit(side_t *side)
{
    int i, status;
    pid_t pid;

    for (i = 0; i < 30; ++i) {
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            side_open(side);
            exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0));
    }
}

int main(void)
{
    char name[64]   = {0};
    size_t length   = sizeof(name);
    uint64_t memory = 0;
    struct fid_mr *mr;
    fi_addr_t self;
    int fds[2], status;
    side_t side;
    pid_t pid;

    /* The module is loaded by root, the stranger might not be let in there; but
     * nothing is open yet that a child would inherit */
    side_find(&side);
    check_exit(&side);
    if (geteuid() != 0) {
        printf("skipped: only root can become another user\n");
        return 77;
    }
    CHECK(pipe(fds) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        stranger(&side, fds[0]);
    }

    side_open(&side);
    CHECK(fi_mr_reg(side.domain, &memory, sizeof(memory), FI_REMOTE_WRITE, 0,
                    KEY, 0, &mr, NULL) == 0);
    CHECK(fi_mr_bind(mr, &side.ep->fid, 0) == 0);
    CHECK(fi_mr_enable(mr) == 0);
    CHECK(fi_getname(&side.ep->fid, name, &length) == 0);
    check_files(getpid(), 1);
    CHECK(write(fds[1], name, sizeof(name)) == sizeof(name));

    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0));
    CHECK(memory == 0);

    /* The same write by the owner */
    CHECK(fi_av_insert(side.av, name, 1, &self, 0, NULL) == 1);
    CHECK(side_write(&side, self, 5) == 0);
    CHECK(memory == 5);
    CHECK(fi_close(&mr->fid) == 0);
    side_close(&side);
    return 0;
}
