/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_chain.c - a chain on libfabric's CXI interface, with nothing of ours:
 *
 *   store to the trigger's register -> deferred write to the peer
 *     -> its completion counter -> deferred atomic on a word of one's own
 *
 * One process writes to another one. The provider's name is the only argument:
 * "cxi" on a Slingshot network, "cxiemu" (the default) elsewhere, with
 * FI_PROVIDER_PATH naming the folder of libcxiemu-fi.so.
 */
#include <stdbool.h> /* fi_cxi_ext.h uses it */

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_cxi_ext.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 100
#define LENGTH 4096

struct node {
    struct fi_info    *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av     *av;
    struct fid_cq     *cq;
    struct fid_ep     *ep;
    struct fid_cntr   *writes, *reads; /* CXI's atomics want them bound */
    struct fid_cntr   *trigger, *done, *words;
    struct fid_mr     *mr;
    fi_addr_t         self, peer;
    /* Registered: the word, then what is sent and what comes */
    struct {
        uint64_t word;
        uint8_t  out[LENGTH];
        uint8_t  in[LENGTH];
    } memory;
};

struct card {
    char   name[64];
    size_t length;
};


static void check(int ret, const char *what)
{
    if (ret != 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror(abs(ret)));
        exit(EXIT_FAILURE);
    }
}

/* The card may have no room for a command just now */
static int queue_work(struct node *node, struct fi_deferred_work *work)
{
    int ret;

    do {
        ret = fi_control(&node->domain->fid, FI_QUEUE_WORK, work);
    } while (ret == -FI_EAGAIN);
    return ret;
}

static struct fid_cntr *open_counter(struct node *node)
{
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    struct fid_cntr *cntr;

    check(fi_cntr_open(node->domain, &attr, &cntr, NULL), "fi_cntr_open");
    return cntr;
}

static void open_domain(struct node *node, const char *provider)
{
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 1024};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_info *hints     = fi_allocinfo();

    hints->fabric_attr->prov_name = strdup(provider);
    hints->ep_attr->type          = FI_EP_RDM;
    hints->caps                   = FI_RMA | FI_ATOMIC | FI_TRIGGER;
    hints->domain_attr->mr_mode   = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
    check(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &node->info),
          "fi_getinfo");
    fi_freeinfo(hints);
    check(fi_fabric(node->info->fabric_attr, &node->fabric, NULL),
          "fi_fabric");
    check(fi_domain(node->fabric, node->info, &node->domain, NULL),
          "fi_domain");
    check(fi_cq_open(node->domain, &cq_attr, &node->cq, NULL), "fi_cq_open");
    check(fi_av_open(node->domain, &av_attr, &node->av, NULL), "fi_av_open");
}

static void open_endpoint(struct node *node)
{
    node->writes  = open_counter(node);
    node->reads   = open_counter(node);
    node->trigger = open_counter(node);
    node->done    = open_counter(node);
    node->words   = open_counter(node);
    check(fi_endpoint(node->domain, node->info, &node->ep, NULL),
          "fi_endpoint");
    check(fi_ep_bind(node->ep, &node->cq->fid, FI_TRANSMIT | FI_RECV),
          "fi_ep_bind");
    check(fi_ep_bind(node->ep, &node->av->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(node->ep, &node->writes->fid, FI_WRITE), "fi_ep_bind");
    check(fi_ep_bind(node->ep, &node->reads->fid, FI_READ), "fi_ep_bind");
    check(fi_enable(node->ep), "fi_enable");
    check(fi_mr_reg(node->domain, &node->memory, sizeof(node->memory),
                    FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                    1, 0, &node->mr, NULL), "fi_mr_reg");
    check(fi_mr_bind(node->mr, &node->ep->fid, 0), "fi_mr_bind");
    check(fi_mr_enable(node->mr), "fi_mr_enable");
}

static void meet(struct node *node, int sock)
{
    struct card mine = {.length = sizeof(mine.name)}, theirs;

    check(fi_getname(&node->ep->fid, mine.name, &mine.length), "fi_getname");
    if ((write(sock, &mine, sizeof(mine)) != sizeof(mine)) ||
        (read(sock, &theirs, sizeof(theirs)) != sizeof(theirs))) {
        check(FI_EIO, "exchange of addresses");
    }
    check(fi_av_insert(node->av, mine.name, 1, &node->self, 0, NULL) - 1,
          "fi_av_insert");
    check(fi_av_insert(node->av, theirs.name, 1, &node->peer, 0, NULL) - 1,
          "fi_av_insert");
}

/* When the trigger has k: out -> the peer's in; then done has k */
static void queue_write(struct node *node, uint64_t k)
{
    struct iovec iov              = {
        .iov_base = node->memory.out,
        .iov_len  = LENGTH
    };
    struct fi_rma_iov rma_iov     = {
        .addr = offsetof(__typeof__(node->memory), in),
        .len  = LENGTH,
        .key  = fi_mr_key(node->mr)
    };
    static struct fi_deferred_work work[ROUNDS + 1];
    struct fi_op_rma rma          = {
        .ep  = node->ep,
        .msg = {
            .msg_iov       = &iov,
            .iov_count     = 1,
            .addr          = node->peer,
            .rma_iov       = &rma_iov,
            .rma_iov_count = 1,
            .context       = &work[k].context
        },
        .flags = FI_DELIVERY_COMPLETE
    };

    work[k].op_type         = FI_OP_WRITE;
    work[k].op.rma          = &rma;
    work[k].triggering_cntr = node->trigger;
    work[k].threshold       = k;
    work[k].completion_cntr = node->done;
    check(queue_work(node, &work[k]), "write");
}

/* When done has k: the word is one more */
static void queue_word(struct node *node, uint64_t k)
{
    static struct fi_deferred_work work[ROUNDS + 1];
    static uint64_t one         = 1; /* read when it fires */
    struct fi_ioc ioc           = {.addr = &one, .count = 1};
    struct fi_rma_ioc rma_ioc   = {
        .addr  = offsetof(__typeof__(node->memory), word),
        .count = 1,
        .key   = fi_mr_key(node->mr)
    };
    struct fi_op_atomic atomic  = {
        .ep  = node->ep,
        .msg = {
            .msg_iov       = &ioc,
            .iov_count     = 1,
            .addr          = node->self,
            .rma_iov       = &rma_ioc,
            .rma_iov_count = 1,
            .datatype      = FI_UINT64,
            .op            = FI_SUM,
            .context       = &work[k].context
        }
    };

    work[k].op_type         = FI_OP_ATOMIC;
    work[k].op.atomic       = &atomic;
    work[k].triggering_cntr = node->done;
    work[k].threshold       = k;
    work[k].completion_cntr = node->words;
    check(queue_work(node, &work[k]), "atomic");
}

static void reap(struct node *node)
{
    struct fi_cq_tagged_entry entries[16];
    ssize_t ret = fi_cq_read(node->cq, entries, 16);

    check(((ret < 0) && (ret != -FI_EAGAIN)) ? (int)ret : 0, "fi_cq_read");
}

static void initiate(struct node *node)
{
    struct fi_cxi_cntr_ops *ops;
    void *address;
    size_t length;
    uint64_t k;

    check(fi_open_ops(&node->trigger->fid, FI_CXI_COUNTER_OPS, 0,
                      (void**)&ops, NULL), "fi_open_ops");
    check(ops->get_mmio_addr(&node->trigger->fid, &address, &length),
          "get_mmio_addr");
    for (k = 1; k <= ROUNDS; ++k) {
        queue_write(node, k);
        queue_word(node, k);
    }
    for (k = 1; k <= ROUNDS; ++k) {
        memset(node->memory.out, (int)k, LENGTH);
        __atomic_store_n((uint64_t*)address, 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(&node->memory.word, __ATOMIC_ACQUIRE) < k) {
            reap(node);
        }
    }
}

static void close_all(struct node *node)
{
    struct fid *fids[] = {
        &node->mr->fid, &node->ep->fid, &node->writes->fid, &node->reads->fid,
        &node->trigger->fid, &node->done->fid, &node->words->fid,
        &node->cq->fid, &node->av->fid, &node->domain->fid, &node->fabric->fid
    };
    size_t i;

    for (i = 0; i < sizeof(fids) / sizeof(fids[0]); ++i) {
        check(fi_close(fids[i]), "fi_close");
    }
    fi_freeinfo(node->info);
}

int main(int argc, char **argv)
{
    static struct node node;
    int pair[2], rank, status = 0;
    char byte = 0;
    pid_t child;

    check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    child = fork();
    rank  = (child == 0);
    close(pair[!rank]);
    open_domain(&node, (argc > 1) ? argv[1] : "cxiemu");
    open_endpoint(&node);
    meet(&node, pair[rank]);
    if (rank == 0) {
        initiate(&node);
        check(write(pair[0], &byte, 1) != 1, "write");
        waitpid(child, &status, 0);
        printf("%d chains %s\n", ROUNDS, (status == 0) ? "done" : "went wrong");
    } else {
        /* Asleep until all is there: the NIC needs no help */
        check(read(pair[1], &byte, 1) != 1, "read");
        status = (node.memory.in[0] != ROUNDS) ||
                 (node.memory.in[LENGTH - 1] != ROUNDS);
    }
    close_all(&node);
    return (status == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
