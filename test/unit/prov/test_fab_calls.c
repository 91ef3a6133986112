/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_calls.c - calls that programs make seldom: event queues, options,
 * addresses as text, counters that can be polled, and what is refused. */
#include "fab.h"

#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>

#include <poll.h>
#include <string.h>

#define ONLY_CXIEMU "sockets has more calls, and fewer refusals"


/* Connections, scalable endpoints, sets: of none of them is there one */
FAB_CASE(refused, .sockets = ONLY_CXIEMU)
{
    struct fid_ep *ep          = me->ep;
    size_t size                = sizeof(me->mine.name);
    struct fi_poll_attr poll   = {0};
    struct fi_wait_attr wait   = {.wait_obj = FI_WAIT_UNSPEC};
    struct fid_pep pep         = {.cm = ep->cm};
    struct fid_ep *other       = NULL;
    struct fid_pep *pep_opened = NULL;
    struct fid_poll *pollset   = NULL;
    struct fid_wait *waitset   = NULL;
    struct fid_domain *domain  = NULL;
    void *ops                  = NULL;
    char peer[FAB_NAME_MAX];

    FAB_EQUAL(fi_setname(&ep->fid, me->mine.name, size), -FI_ENOSYS);
    FAB_EQUAL(fi_getpeer(ep, peer, &size), -FI_ENOSYS);
    FAB_EQUAL(fi_connect(ep, me->theirs.name, NULL, 0), -FI_ENOSYS);
    FAB_EQUAL(fi_listen(&pep), -FI_ENOSYS);
    FAB_EQUAL(fi_accept(ep, NULL, 0), -FI_ENOSYS);
    FAB_EQUAL(fi_reject(&pep, NULL, NULL, 0), -FI_ENOSYS);
    FAB_EQUAL(fi_shutdown(ep, 0), -FI_ENOSYS);
    FAB_EQUAL(fi_tx_context(ep, 0, NULL, &other, NULL), -FI_ENOSYS);
    FAB_EQUAL(fi_rx_context(ep, 0, NULL, &other, NULL), -FI_ENOSYS);
    FAB_EQUAL(fi_av_insertsym(me->av, "a", 1, "b", 1, NULL, 0, NULL),
              -FI_ENOSYS);
    FAB_EQUAL(fi_passive_ep(me->fabric, me->info, &pep_opened, NULL),
              -FI_ENOSYS);
    /* By the tables: later versions of libfabric deprecate the functions */
    FAB_EQUAL(me->domain->ops->poll_open(me->domain, &poll, &pollset),
              -FI_ENOSYS);
    if (fab_waits_as_cxi() || (fab_subject() == FAB_FAST)) {
        FAB_EQUAL(me->fabric->ops->wait_open(me->fabric, &wait, &waitset),
                  -FI_ENOSYS);
    }
    FAB_EQUAL(fi_domain2(me->fabric, me->info, &domain, 1, NULL), -FI_ENOSYS);
    FAB_EQUAL(fi_endpoint2(me->domain, me->info, &other, 1, NULL), -FI_ENOSYS);
    FAB_EQUAL(ep->ops->rx_size_left(ep), -FI_ENOSYS);
    FAB_EQUAL(ep->ops->tx_size_left(ep), -FI_ENOSYS);
    FAB_EQUAL(me->av->fid.ops->bind(&me->av->fid, NULL, 0), -FI_ENOSYS);
    FAB_EQUAL(fi_control(&me->av->fid, FI_GETWAIT, &ops), -FI_ENOSYS);
    FAB_EQUAL(fi_open_ops(&ep->fid, "none", 0, &ops, NULL), -FI_ENOSYS);
}

FAB_CASE(no_collectives, .sockets = ONLY_CXIEMU,
         .cxi = "cxi has collectives, which nothing here uses")
{
    struct fi_av_set_attr set = {0};
    struct fid_av_set *av_set = NULL;
    struct fid_mc *mc         = NULL;

    FAB_EQUAL(fi_join(me->ep, me->theirs.name, 0, &mc, NULL), -FI_ENOSYS);
    FAB_EQUAL(fi_av_set(me->av, &set, &av_set, NULL), -FI_ENOSYS);
    FAB_EQUAL(me->domain->ops->query_collective(me->domain, FI_BARRIER, NULL,
                                                0),
              -FI_ENOSYS);
}

/* What fi_av_straddr() writes is what fi_av_insertsvc() reads, and nothing else
 * is. */
FAB_CASE(address_text, .sockets = ONLY_CXIEMU,
         .cxi = "cxi reads a node's and a process's number, not this text")
{
    static const char *const bad[] = {"", "fi_other://1.2.3.4.5", "1.2.3.4.5"};
    char text[FAB_NAME_MAX], more[FAB_NAME_MAX + 8], name[FAB_NAME_MAX];
    size_t length = sizeof(text);
    size_t name_length;
    fi_addr_t addr;
    size_t i;

    FAB_REQUIRE(fi_av_straddr(me->av, me->theirs.name, text, &length) == text);
    FAB_EQUAL(length, strlen(text) + 1);
    FAB_EQUAL(fi_av_insertsvc(me->av, text, NULL, &addr, 0, NULL), 1);
    name_length = sizeof(name);
    FAB_EQUAL(fi_av_lookup(me->av, addr, name, &name_length), 0);
    FAB_EQUAL(name_length, me->theirs.name_length);
    FAB_EQUAL(memcmp(name, me->theirs.name, name_length), 0);
    FAB_EQUAL(fi_av_remove(me->av, &addr, 1, 0), 0);

    FAB_EQUAL(fi_av_insertsvc(me->av, NULL, NULL, &addr, 0, NULL), -FI_EINVAL);
    for (i = 0; i < ST_CUNIT_COUNT(bad); ++i) {
        FAB_EQUAL(fi_av_insertsvc(me->av, bad[i], NULL, &addr, 0, NULL),
                  -FI_EINVAL);
    }
    /* A digit too many in the last number, one too few, and none */
    snprintf(more, sizeof(more), "%s00000", text);
    more[strlen(text)] = 'f';
    FAB_EQUAL(fi_av_insertsvc(me->av, more, NULL, &addr, 0, NULL), -FI_EINVAL);
    more[strlen(text)] = 'g';
    FAB_EQUAL(fi_av_insertsvc(me->av, more, NULL, &addr, 0, NULL), -FI_EINVAL);
    *strrchr(text, '.') = '\0';
    FAB_EQUAL(fi_av_insertsvc(me->av, text, NULL, &addr, 0, NULL), -FI_EINVAL);
}

/* A program may send itself events, and wait for them */
static void events_pass(fab_side_t *me, struct fid_eq *eq)
{
    uint64_t in = 0, out = 17;
    struct fi_eq_err_entry error;
    uint32_t event;

    FAB_EQUAL(fi_eq_read(eq, &event, &in, sizeof(in), 0), -FI_EAGAIN);
    FAB_EQUAL(fi_eq_sread(eq, &event, &in, sizeof(in), 1, 0), -FI_EAGAIN);
    FAB_EQUAL(fi_eq_readerr(eq, &error, 0), -FI_EAGAIN);
    FAB_EQUAL(fi_eq_write(eq, FI_NOTIFY, &out, sizeof(out), 0), sizeof(out));
    FAB_EQUAL(fi_eq_read(eq, &event, &in, sizeof(in), FI_PEEK), sizeof(in));
    FAB_EQUAL(fi_eq_sread(eq, &event, &in, sizeof(in), -1, 0), sizeof(in));
    FAB_EQUAL(event, FI_NOTIFY);
    FAB_EQUAL(in, out);
    FAB_EQUAL(fi_eq_read(eq, &event, &in, sizeof(in), 0), -FI_EAGAIN);
    FAB_CHECK(strlen(fi_eq_strerror(eq, FI_EIO, NULL, NULL, 0)) > 0);
    (void)me;
}

FAB_CASE(events, .sockets = ONLY_CXIEMU)
{
    struct fi_eq_attr attr = {.flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC};
    struct fid_eq *eq      = NULL;
    uint64_t in            = 0;
    enum fi_wait_obj obj;
    struct fid *fids[1];
    uint32_t event;
    int fd;

    FAB_EQUAL(fi_eq_open(me->fabric, &attr, &eq, NULL), 0);
    FAB_REQUIRE(eq != NULL);
    fids[0] = &eq->fid;
    FAB_EQUAL(fi_control(&eq->fid, FI_GETWAITOBJ, &obj), 0);
    FAB_EQUAL(obj, fab_waits_as_cxi() ? FI_WAIT_YIELD : FI_WAIT_FD);
    events_pass(me, eq);
    if (fab_waits_as_cxi()) {
        FAB_EQUAL(fi_control(&eq->fid, FI_GETWAIT, &fd), -FI_ENOSYS);
        FAB_EQUAL(fi_trywait(me->fabric, fids, 1), -FI_ENOSYS);
    }
    FAB_EQUAL(fi_close(&eq->fid), 0);

    attr.wait_obj = FI_WAIT_NONE;
    FAB_EQUAL(fi_eq_open(me->fabric, &attr, &eq, NULL), 0);
    FAB_EQUAL(fi_eq_sread(eq, &event, &in, sizeof(in), 1, 0), -FI_ENOSYS);
    FAB_EQUAL(fi_close(&eq->fid), 0);
}

/* A program may sleep until they come; CXI has no descriptor for it */
FAB_CASE(event_fd, .sockets = ONLY_CXIEMU)
{
    struct fi_eq_attr attr = {.flags = FI_WRITE, .wait_obj = FI_WAIT_FD};
    uint64_t in = 0, out = 17;
    struct fid_eq *eq      = NULL;
    struct fid *fids[1];
    struct pollfd fd;
    uint32_t event;

    if (fab_waits_as_cxi()) {
        FAB_EQUAL(fi_eq_open(me->fabric, &attr, &eq, NULL), -FI_ENOSYS);
        return;
    }

    FAB_EQUAL(fi_eq_open(me->fabric, &attr, &eq, NULL), 0);
    fids[0] = &eq->fid;
    FAB_EQUAL(fi_control(&eq->fid, FI_GETWAIT, &fd.fd), 0);
    FAB_EQUAL(fi_trywait(me->fabric, fids, 1), 0);
    FAB_EQUAL(fi_eq_write(eq, FI_NOTIFY, &out, sizeof(out), 0), sizeof(out));
    fd.events = POLLIN;
    FAB_EQUAL(poll(&fd, 1, -1), 1);
    FAB_EQUAL(fi_trywait(me->fabric, fids, 1), -FI_EAGAIN);
    FAB_EQUAL(fi_eq_read(eq, &event, &in, sizeof(in), 0), sizeof(in));
    FAB_EQUAL(poll(&fd, 1, 0), 0);
    FAB_EQUAL(fi_close(&eq->fid), 0);
}

FAB_CASE(event_misuse, .sockets = ONLY_CXIEMU,
         .cxi = "cxi looks at less, and crashes for NULL")
{
    struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE, .flags = FI_WRITE};
    uint64_t in = 0, out = 17;
    struct fid_eq *eq      = NULL;
    uint32_t event;
    int fd;

    FAB_EQUAL(fi_eq_open(me->fabric, &attr, &eq, NULL), 0);
    FAB_EQUAL(fi_control(&eq->fid, FI_GETWAIT, NULL), -FI_EINVAL);
    FAB_EQUAL(fi_control(&eq->fid, FI_GETWAIT, &fd), -FI_ENODATA);
    FAB_EQUAL(fi_eq_write(eq, FI_NOTIFY, &out, sizeof(out), 0), sizeof(out));
    FAB_EQUAL(fi_eq_read(eq, &event, &in, 1, 0), -FI_ETOOSMALL);
    FAB_EQUAL(fi_ep_bind(me->ep, &eq->fid, 0), -FI_EOPBADSTATE);
    FAB_EQUAL(fi_close(&eq->fid), 0);

    attr.flags = 0;
    FAB_EQUAL(fi_eq_open(me->fabric, &attr, &eq, NULL), 0);
    FAB_EQUAL(fi_eq_write(eq, FI_NOTIFY, &out, sizeof(out), 0), -FI_EINVAL);
    FAB_EQUAL(fi_close(&eq->fid), 0);
}

/* A counter that a program sleeps on; Cassini has none */
FAB_CASE(counter_fd, .sockets = ONLY_CXIEMU)
{
    struct fi_cntr_attr attr = {
        .events   = FI_CNTR_EVENTS_COMP,
        .wait_obj = FI_WAIT_FD
    };
    uint64_t flags = 1;
    struct fid_cntr *cntr;
    struct fid *fids[1];
    enum fi_wait_obj obj;
    struct pollfd fd;

    if (fab_is_strict()) {
        FAB_EQUAL(fi_cntr_open(me->domain, &attr, &cntr, NULL), -FI_ENOSYS);
        return;
    }
    FAB_EQUAL(fi_cntr_open(me->domain, &attr, &cntr, NULL), 0);
    fids[0] = &cntr->fid;
    FAB_EQUAL(fi_control(&cntr->fid, FI_GETWAIT, &fd.fd), 0);
    FAB_EQUAL(fi_control(&cntr->fid, FI_GETWAITOBJ, &obj), 0);
    FAB_EQUAL(obj, FI_WAIT_FD);
    FAB_EQUAL(fi_control(&cntr->fid, FI_SETOPSFLAG, &flags), 0);
    flags = 0;
    FAB_EQUAL(fi_control(&cntr->fid, FI_GETOPSFLAG, &flags), 0);
    FAB_EQUAL(flags, 1);
    FAB_EQUAL(fi_control(&cntr->fid, FI_ENABLE, &flags), -FI_EINVAL);

    FAB_EQUAL(fi_cntr_read(cntr), 0);
    FAB_EQUAL(fi_trywait(me->fabric, fids, 1), 0);
    FAB_EQUAL(fi_cntr_add(cntr, 1), 0);
    fd.events = POLLIN;
    FAB_EQUAL(poll(&fd, 1, -1), 1);
    FAB_EQUAL(fi_trywait(me->fabric, fids, 1), -FI_EAGAIN);
    fab_count(me, cntr, 1);
    fab_cntr_close(cntr);
}

FAB_CASE(options, .sockets = ONLY_CXIEMU)
{
    struct fi_atomic_attr atomic;
    size_t value = 100, length = sizeof(value);
    uint64_t flags;

    FAB_EQUAL(fi_setopt(&me->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                        &value, sizeof(value)), 0);
    value = 0;
    FAB_EQUAL(fi_getopt(&me->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                        &value, &length), 0);
    FAB_EQUAL(value, 100);
    length = 1;
    FAB_EQUAL(fi_getopt(&me->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                        &value, &length), -FI_ETOOSMALL);
    FAB_EQUAL(fi_getopt(&me->ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE,
                        &value, &length), -FI_ENOPROTOOPT);

    flags = FI_TRANSMIT | FI_COMPLETION;
    FAB_EQUAL(fi_control(&me->ep->fid, FI_SETOPSFLAG, &flags), 0);
    flags = FI_TRANSMIT;
    FAB_EQUAL(fi_control(&me->ep->fid, FI_GETOPSFLAG, &flags), 0);
    FAB_EQUAL(flags, FI_COMPLETION | FI_TRANSMIT_COMPLETE);
    flags = FI_TRANSMIT | FI_RECV;
    FAB_EQUAL(fi_control(&me->ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);

    FAB_EQUAL(fi_query_atomic(me->domain, FI_UINT64, FI_SUM, &atomic, 0), 0);
    FAB_EQUAL(atomic.size, sizeof(uint64_t));
    FAB_CHECK(atomic.count > 0);
    FAB_EQUAL(fi_query_atomic(me->domain, FI_UINT64, FI_SUM, &atomic,
                              FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC),
              -FI_EINVAL);
    FAB_EQUAL(fi_query_atomic(me->domain, FI_UINT64, FI_SUM, &atomic,
                              FI_TAGGED), 0);
}

static const fab_config_t selective = {.selective = 1};

/* An alias is the endpoint, but for its default flags, and keeps it open */
FAB_CASE(alias, .config = &selective, .sockets = ONLY_CXIEMU)
{
    struct fid_ep *ep     = fab_endpoint(me), *alias = NULL, *second = NULL;
    uint64_t word         = 7, flags = FI_TRANSMIT, in = 0;
    struct iovec iov      = {.iov_base = &in, .iov_len = sizeof(in)};
    struct fi_msg message = {
        .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC
    };
    char name[2][FAB_NAME_MAX];
    size_t length[2] = {FAB_NAME_MAX, FAB_NAME_MAX};
    fi_addr_t addr;

    FAB_EQUAL(fi_ep_alias(ep, &alias, FI_COMPLETION), -FI_EINVAL);
    FAB_EQUAL(fi_ep_alias(ep, &alias, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
    FAB_REQUIRE(fi_ep_alias(ep, &alias, FI_TRANSMIT | FI_COMPLETION) == 0);
    FAB_REQUIRE(fi_ep_alias(alias, &second, FI_RECV) == 0);
    FAB_EQUAL(fi_control(&second->fid, FI_GETOPSFLAG, &flags), 0);
    FAB_EQUAL(flags, FI_COMPLETION | FI_TRANSMIT_COMPLETE);
    FAB_EQUAL(fi_getname(&ep->fid, name[0], &length[0]), 0);
    FAB_EQUAL(fi_getname(&alias->fid, name[1], &length[1]), 0);
    FAB_EQUAL(length[0], length[1]);
    FAB_EQUAL(memcmp(name[0], name[1], length[0]), 0);
    FAB_EQUAL(fi_av_insert(me->av, name[0], 1, &addr, 0, NULL), 1);

    FAB_MUST(me, fi_recvmsg(ep, &message, FI_COMPLETION));
    FAB_MUST(me, fi_recvmsg(second, &message, FI_COMPLETION));
    FAB_MUST(me, fi_send(ep, &word, sizeof(word), NULL, addr, NULL));
    fab_entry(me, &me->rx);
    FAB_CHECK(fab_is_empty(me, &me->tx));
    FAB_MUST(me, fi_send(alias, &word, sizeof(word), NULL, addr, &word));
    FAB_CHECK(fab_entry(me, &me->tx).op_context == &word);
    fab_entry(me, &me->rx);
    FAB_EQUAL(in, word);

    FAB_EQUAL(fi_close(&ep->fid), -FI_EBUSY);
    FAB_EQUAL(fi_close(&alias->fid), 0);
    FAB_EQUAL(fi_close(&ep->fid), -FI_EBUSY);
    FAB_EQUAL(fi_close(&second->fid), 0);
    FAB_EQUAL(fi_close(&ep->fid), 0);
}

/* Data beside payload that the sender may change at once */
FAB_CASE(inject_data, .sockets = ONLY_CXIEMU)
{
    uint64_t out = fab_tint(me->index, 1), in = 0;
    struct fi_cq_tagged_entry entry;

    FAB_MUST(me, fi_recv(me->ep, &in, 8, NULL, FI_ADDR_UNSPEC, NULL));
    FAB_MUST(me, fi_trecv(me->ep, &in, 8, NULL, FI_ADDR_UNSPEC, 3, 0, NULL));
    fab_barrier(me);
    FAB_MUST(me, fi_injectdata(me->ep, &out, 8, 77, me->peer));
    entry = fab_entry(me, &me->rx);
    FAB_CHECK(entry.flags & FI_REMOTE_CQ_DATA);
    FAB_EQUAL(entry.data, 77);
    FAB_MUST(me, fi_tinjectdata(me->ep, &out, 8, 78, me->peer, 3));
    entry = fab_entry(me, &me->rx);
    FAB_CHECK(entry.flags & FI_REMOTE_CQ_DATA);
    FAB_EQUAL(entry.data, 78);
    FAB_EQUAL(in, fab_tint(!me->index, 1));

    if (fab_is_strict()) { /* CXI has none: see test_fab_cxi */
        FAB_EQUAL(fi_inject_writedata(me->ep, &out, 8, 79, me->peer,
                                      me->theirs.base, me->theirs.key),
                  -FI_ENOSYS);
        return;
    }
    FAB_MUST(me, fi_inject_writedata(me->ep, &out, 8, 79, me->peer,
                                     me->theirs.base, me->theirs.key));
    entry = fab_entry(me, &me->rx);
    FAB_CHECK(entry.flags & FI_REMOTE_CQ_DATA);
    FAB_EQUAL(entry.data, 79);
    FAB_EQUAL(fab_load(me->window), fab_tint(!me->index, 1));
}

FAB_SUITE("fab_calls")
