/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_kernels.cu - the library's kernels for GPUs, in plain C that is C++,
 * too, without headers of the system; ucs_gstream_device.h has what a target
 * names in its own way.
 *
 * clang makes PTX text of it (gstream_kernels.ptx, contrib/check-kernels.sh),
 * and code objects for AMD's devices (gstream_images.sh). hipRTC compiles it at
 * run time, and test/standin runs it on threads of the host. A kernel uses no
 * memory of a thread's own, and no printf().
 */
#include "gstream_kernels.h"
#include "api/ucs_gstream_device.h"

/* Each thread waits for its share of the words, so that their loads, which
 * cross the bus, overlap; the first one then stores. */
UCS_GSTREAM_FUNC void gstream_waits(const gstream_kernel_head_t *head,
                                const gstream_kernel_op_t *ops)
{
    unsigned i;

    for (i = UCS_GSTREAM_THREAD(); i < head->num_waits; i += head->num_threads) {
        while (UCS_GSTREAM_LOAD(ops[i].address) < ops[i].value) {
            UCS_GSTREAM_PAUSE();
        }
    }
    UCS_GSTREAM_FENCE();
    UCS_GSTREAM_SYNC();
    if (UCS_GSTREAM_THREAD() == 0) {
        UCS_GSTREAM_FENCE(); /* The stores come behind all threads' waits */
        for (i = 0; i < head->num_stores; ++i) {
            UCS_GSTREAM_STORE(ops[head->num_waits + i].address,
                          ops[head->num_waits + i].value);
        }
    }
}

UCS_GSTREAM_KERNEL ucs_gstream_waits_few(gstream_kernel_few_t args)
{
    gstream_waits(&args.head, args.ops);
}

UCS_GSTREAM_KERNEL ucs_gstream_waits_many(gstream_kernel_many_t args)
{
    gstream_waits(&args.head, args.ops);
}

/* Copies the units of one type between two addresses that it divides: each
 * thread its share. Four at a time, whose loads overlap. */
#define GSTREAM_COPY_UNITS(_type, _dst, _src, _count, _first, _step) \
    do { \
        unsigned long long _i = _first; \
        \
        for (; _i + 3 * (_step) < (_count); _i += 4 * (_step)) { \
            _type _a = UCS_GSTREAM_GET(_type, (_src) + sizeof(_a) * _i); \
            _type _b = UCS_GSTREAM_GET(_type, (_src) + sizeof(_a) * \
                                          (_i + (_step))); \
            _type _c = UCS_GSTREAM_GET(_type, (_src) + sizeof(_a) * \
                                          (_i + 2 * (_step))); \
            _type _d = UCS_GSTREAM_GET(_type, (_src) + sizeof(_a) * \
                                          (_i + 3 * (_step))); \
            UCS_GSTREAM_PUT(_type, (_dst) + sizeof(_a) * _i, _a); \
            UCS_GSTREAM_PUT(_type, (_dst) + sizeof(_a) * (_i + (_step)), _b); \
            UCS_GSTREAM_PUT(_type, (_dst) + sizeof(_a) * (_i + 2 * (_step)), _c); \
            UCS_GSTREAM_PUT(_type, (_dst) + sizeof(_a) * (_i + 3 * (_step)), _d); \
        } \
        for (; _i < (_count); _i += (_step)) { \
            UCS_GSTREAM_PUT(_type, (_dst) + sizeof(_type) * _i, \
                        UCS_GSTREAM_GET(_type, (_src) + sizeof(_type) * _i)); \
        } \
    } while (0)

/* Copies the share of a thread, of so many */
UCS_GSTREAM_FUNC void gstream_copy(unsigned long long dst, unsigned long long src,
                               unsigned long long length, unsigned first,
                               unsigned step)
{
    unsigned long long unit = ((dst ^ src) % 16 == 0) ? 16 :
                              ((dst ^ src) % 4 == 0)  ? 4 : 1;
    unsigned long long head = (unit - dst % unit) % unit;
    unsigned long long count;

    if (head > length) {
        head = length;
    }
    GSTREAM_COPY_UNITS(unsigned char, dst, src, head, first, step);
    dst    += head;
    src    += head;
    length -= head;
    count   = length / unit;
    if (unit == 16) {
        GSTREAM_COPY_UNITS(ucs_gstream_wide_t, dst, src, count, first, step);
    } else if (unit == 4) {
        GSTREAM_COPY_UNITS(unsigned, dst, src, count, first, step);
    } else {
        GSTREAM_COPY_UNITS(unsigned char, dst, src, count, first, step);
    }
    dst    += count * unit;
    src    += count * unit;
    length -= count * unit;
    GSTREAM_COPY_UNITS(unsigned char, dst, src, length, first, step);
}

/* Where a byte of a message lies in its buffer: in a row, or without rows */
UCS_GSTREAM_FUNC unsigned long long gstream_place(unsigned long long at,
                                              unsigned width, unsigned pitch)
{
    return (width == 0) ? at : (at / width * pitch + at % width);
}

#define GSTREAM_COPY_ROWS(_type, _pair, _first, _step) \
    do { \
        unsigned long long _at = sizeof(_type) * (_first); \
        \
        for (; _at < (_pair)->length; _at += sizeof(_type) * (_step)) { \
            UCS_GSTREAM_PUT(_type, (_pair)->dst + \
                               gstream_place(_at, (_pair)->dst_width, \
                                             (_pair)->dst_pitch), \
                        UCS_GSTREAM_GET(_type, (_pair)->src + \
                                           gstream_place(_at, \
                                                         (_pair)->src_width, \
                                                         (_pair)->src_pitch))); \
        } \
    } while (0)

/* The same of rows, in units that divide all of their lengths and places */
UCS_GSTREAM_FUNC void gstream_copy_rows(const gstream_kernel_pair_t *pair,
                                    unsigned long long first,
                                    unsigned long long step)
{
    unsigned long long all = pair->dst | pair->src | pair->length |
                             pair->dst_width | pair->dst_pitch |
                             pair->src_width | pair->src_pitch;

    if (all % 16 == 0) {
        GSTREAM_COPY_ROWS(ucs_gstream_wide_t, pair, first, step);
    } else if (all % 4 == 0) {
        GSTREAM_COPY_ROWS(unsigned, pair, first, step);
    } else {
        GSTREAM_COPY_ROWS(unsigned char, pair, first, step);
    }
}

/* Copies a message: the share of a thread, of so many */
UCS_GSTREAM_FUNC void gstream_pair_copy(const gstream_kernel_pair_t *pair,
                                    unsigned first, unsigned step)
{
    if ((pair->dst_width | pair->src_width) == 0) {
        gstream_copy(pair->dst, pair->src, pair->length, first, step);
    } else {
        gstream_copy_rows(pair, first, step);
    }
}

#define GSTREAM_CELL(_pair, _field) \
    ((_pair)->cell + __builtin_offsetof(gstream_kernel_cell_t, _field))
#define GSTREAM_RECORD(_record, _field) \
    ((_record) + __builtin_offsetof(gstream_kernel_record_t, _field))

/* Whether this side copies. It does if it sees that the other one has begun the
 * use, too: one of the two sees that at least, by the fences between their
 * stores and loads. If both see it the send copies. The send stores which it
 * was to `decided`, and the receive waits for that: the send's kernel has
 * begun, and nothing keeps it.
 *
 * The fence behind `begun` also pairs with that of a host that has stored
 * `halted`: the host sees that this start has begun, or the start sees that it
 * is to do nothing. The fence in front puts what the stream did before in front
 * of `begun`. */
UCS_GSTREAM_FUNC unsigned gstream_pair_begin(const gstream_kernel_pair_t *pair)
{
    unsigned long long decided;
    unsigned is_second;

    UCS_GSTREAM_FENCE();
    UCS_GSTREAM_STORE(GSTREAM_RECORD(pair->record, begun), pair->use);
    UCS_GSTREAM_FENCE();
    is_second = (UCS_GSTREAM_LOAD(GSTREAM_RECORD(pair->other, begun)) >=
                 pair->use);
    if (UCS_GSTREAM_LOAD(GSTREAM_RECORD(pair->record, halted)) != 0) {
        return 0;
    }
    if (pair->is_send) {
        UCS_GSTREAM_STORE(GSTREAM_RECORD(pair->record, decided),
                      2 * pair->use + is_second);
        return is_second;
    }
    if (!is_second) {
        return 0;
    }
    /* More than that is said of a later use: this one is complete */
    while ((decided = UCS_GSTREAM_LOAD(GSTREAM_RECORD(pair->other, decided))) <
           2 * pair->use) {
        if (UCS_GSTREAM_LOAD(GSTREAM_RECORD(pair->record, halted)) != 0) {
            return 0;
        }
        UCS_GSTREAM_PAUSE();
    }
    return decided == 2 * pair->use;
}

/* Starts a use: the block that is first decides, and the last one to be done
 * ends it. No block waits for one that has not begun to run, here or on the
 * other side. */
UCS_GSTREAM_FUNC void gstream_pair(const gstream_kernel_pair_t *pair,
                               const gstream_kernel_pair_head_t *head,
                               unsigned block)
{
    unsigned long long decision;

    if ((UCS_GSTREAM_THREAD() == 0) &&
        (UCS_GSTREAM_ADD(GSTREAM_CELL(pair, tickets), 1) == 0)) {
        UCS_GSTREAM_STORE(GSTREAM_CELL(pair, decision),
                      2 * pair->use + gstream_pair_begin(pair));
    }
    while ((decision = UCS_GSTREAM_LOAD(GSTREAM_CELL(pair, decision))) <
           2 * pair->use) {
        UCS_GSTREAM_PAUSE();
    }
    if (decision % 2 != 0) {
        UCS_GSTREAM_FENCE(); /* Behind the other side's `begun` */
        gstream_pair_copy(pair, block * head->num_threads + UCS_GSTREAM_THREAD(),
                          head->num_blocks * head->num_threads);
        UCS_GSTREAM_FENCE(); /* In front of the words */
    }
    UCS_GSTREAM_SYNC();
    if (UCS_GSTREAM_THREAD() != 0) {
        return;
    }
    UCS_GSTREAM_FENCE(); /* Behind the block's other threads */
    if (UCS_GSTREAM_ADD(GSTREAM_CELL(pair, out), 1) != head->num_blocks - 1) {
        return;
    }
    UCS_GSTREAM_FENCE(); /* Behind the other blocks */
    UCS_GSTREAM_STORE(GSTREAM_CELL(pair, tickets), 0);
    UCS_GSTREAM_STORE(GSTREAM_CELL(pair, out), 0);
    if (decision % 2 != 0) {
        UCS_GSTREAM_STORE(GSTREAM_RECORD(pair->record, word), pair->use);
        UCS_GSTREAM_STORE(GSTREAM_RECORD(pair->other, word), pair->use);
        UCS_GSTREAM_FENCE(); /* In front of `ended` */
    }
    UCS_GSTREAM_STORE(GSTREAM_RECORD(pair->record, ended), pair->use);
}

UCS_GSTREAM_KERNEL ucs_gstream_pairs_few(gstream_kernel_pairs_few_t args)
{
    gstream_pair(&args.pairs[UCS_GSTREAM_BLOCK() / args.head.num_blocks],
                 &args.head, UCS_GSTREAM_BLOCK() % args.head.num_blocks);
}

UCS_GSTREAM_KERNEL ucs_gstream_pairs_many(gstream_kernel_pairs_many_t args)
{
    gstream_pair(&args.pairs[UCS_GSTREAM_BLOCK() / args.head.num_blocks],
                 &args.head, UCS_GSTREAM_BLOCK() % args.head.num_blocks);
}
