/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_av.c - address vectors. */
#include "fab.h"

#include <string.h>


static void talk(fab_side_t *me, fi_addr_t to)
{
    uint64_t out = fab_tint(me->index, 1), in = 0;

    FAB_MUST(me, fi_trecv(me->ep, &in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
    fab_barrier(me);
    FAB_MUST(me, fi_tsend(me->ep, &out, 8, NULL, to, 1, NULL));
    fab_entry(me, &me->rx);
    fab_entry(me, &me->tx);
    FAB_EQUAL(in, fab_tint(!me->index, 1));
    fab_barrier(me);
}

static void lookup(fab_side_t *me)
{
    char name[FAB_NAME_MAX];
    size_t length = sizeof(name);

    FAB_EQUAL(fi_av_lookup(me->av, me->peer, name, &length), 0);
    FAB_EQUAL(length, me->theirs.name_length);
    FAB_CHECK(!memcmp(name, me->theirs.name, length));
    length = sizeof(name);
    FAB_EQUAL(fi_av_lookup(me->av, me->self, name, &length), 0);
    FAB_CHECK(!memcmp(name, me->mine.name, length));
    talk(me, me->peer);
}

/* The length that it needs is told when there is too little room */
FAB_CASE(short_buffer)
{
    char name[FAB_NAME_MAX];
    size_t length = 1;

    memset(name, 0xa5, sizeof(name));
    FAB_EQUAL(fi_getname(&me->ep->fid, name, &length), -FI_ETOOSMALL);
    FAB_EQUAL(length, me->mine.name_length);
    length = 2;
    fi_av_lookup(me->av, me->peer, name, &length);
    FAB_EQUAL(length, me->theirs.name_length);
    FAB_EQUAL((uint8_t)name[2], 0xa5);
}

/* Text of an address; different ones differ */
FAB_CASE(as_text)
{
    char mine[256], theirs[256];
    size_t length = sizeof(mine);

    FAB_CHECK(fi_av_straddr(me->av, me->mine.name, mine, &length) == mine);
    FAB_EQUAL(strlen(mine) + 1, length);
    length = sizeof(theirs);
    fi_av_straddr(me->av, me->theirs.name, theirs, &length);
    FAB_CHECK(strcmp(mine, theirs) != 0);
    memset(mine, 0x7e, sizeof(mine));
    length = 4;
    fi_av_straddr(me->av, me->mine.name, mine, &length);
    FAB_EQUAL(mine[4], 0x7e);
}

static void remove_and_insert(fab_side_t *me)
{
    unsigned i;

    for (i = 0; i < 20; ++i) {
        talk(me, me->peer);
        FAB_EQUAL(fi_av_remove(me->av, &me->peer, 1, 0), 0);
        me->peer = FI_ADDR_NOTAVAIL;
        FAB_EQUAL(fi_av_insert(me->av, me->theirs.name, 1, &me->peer, 0, NULL),
                  1);
    }
    talk(me, me->peer);
}

/* Many addresses at once, more than the vector was made for */
FAB_CASE(many)
{
    enum { COUNT = 200 };
    char names[COUNT * FAB_NAME_MAX];
    fi_addr_t addrs[COUNT];
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        memcpy(names + (i * me->theirs.name_length),
               (i % 2) ? me->theirs.name : me->mine.name,
               me->theirs.name_length);
    }
    FAB_EQUAL(fi_av_insert(me->av, names, COUNT, addrs, 0, NULL), COUNT);
    talk(me, addrs[COUNT - 1]);
    talk(me, addrs[1]);
    FAB_EQUAL(fi_av_remove(me->av, addrs, COUNT, 0), 0);
    talk(me, me->peer);
}

static const fab_config_t map = {.av_type = FI_AV_MAP};

FAB_CASE(with_map, .config = &map)
{
    lookup(me);
    remove_and_insert(me);
}

/* Table: numbers count up from 0, in the order of insertion */
FAB_CASE(table_numbers)
{
    struct fid_ep *ep = fab_endpoint(me);
    size_t length     = FAB_NAME_MAX;
    char name[FAB_NAME_MAX];
    fi_addr_t addr;

    FAB_EQUAL(me->self, 0);
    FAB_EQUAL(me->peer, 1);
    FAB_EQUAL(fi_getname(&ep->fid, name, &length), 0);
    FAB_EQUAL(fi_av_insert(me->av, name, 1, &addr, 0, NULL), 1);
    FAB_EQUAL(addr, 2);
    FAB_EQUAL(fi_close(&ep->fid), 0);
    talk(me, 1);
}

/* An address has one number, until it was removed as often as inserted */
FAB_CASE(same_again, .sockets = "sockets gives an address many numbers")
{
    fi_addr_t addr = FI_ADDR_NOTAVAIL;

    FAB_EQUAL(fi_av_insert(me->av, me->theirs.name, 1, &addr, 0, NULL), 1);
    FAB_EQUAL(addr, me->peer);
    FAB_EQUAL(fi_av_remove(me->av, &addr, 1, 0), 0);
    talk(me, me->peer);
    FAB_EQUAL(fi_av_remove(me->av, &me->peer, 1, 0), 0);
    fab_barrier(me);
}

/* A number that the vector has not given, or no more */
FAB_CASE(not_inserted, .cxi = "cxi crashes: it looks where no entry is",
         .sockets = "sockets finds an address that was removed")
{
    uint64_t word   = 1;
    size_t length   = FAB_NAME_MAX;
    fi_addr_t other = me->peer;
    char name[FAB_NAME_MAX];

    FAB_EQUAL(fi_av_remove(me->av, &other, 1, 0), 0);
    FAB_CHECK(fi_av_lookup(me->av, other, name, &length) < 0);

    FAB_CHECK(fi_tsend(me->ep, &word, 8, NULL, 4711, 1, NULL) < 0);
    FAB_CHECK(fi_write(me->ep, &word, 8, NULL, FI_ADDR_NOTAVAIL, 0, 0,
                       NULL) < 0);
}

/* What is no address */
FAB_CASE(unknown)
{
    char nonsense[FAB_NAME_MAX];
    uint64_t word  = 1;
    fi_addr_t addr = 0;
    ssize_t ret;

    memset(nonsense, 0x33, sizeof(nonsense));
    if (fi_av_insert(me->av, nonsense, 1, &addr, 0, NULL) == 1) {
        ret = FAB_POST(me, fi_tsend(me->ep, &word, 8, NULL, addr, 1, NULL));
        if (ret == 0) {
            fab_error(me, &me->tx);
        }
    } else {
        FAB_EQUAL(addr, FI_ADDR_NOTAVAIL);
    }
    fab_barrier(me);
    talk(me, me->peer);
}

FAB_CASE_CALL(lookup, lookup(me))
FAB_CASE_CALL(remove_and_insert, remove_and_insert(me))

FAB_SUITE("fab_av")
