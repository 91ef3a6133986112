/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_gstream_pair_device.h
 * Two streams of devices of which the second one to start copies
 * (ucs_gstream_pair.h in the sources): what kernels look at, and what they do.
 * For the library's kernels and, by ucp_st_device.h, for those of applications,
 * which call nothing here themselves. It includes nothing of the system: hipRTC
 * compiles this text, too.
 */
#ifndef UCS_GSTREAM_PAIR_DEVICE_H_
#define UCS_GSTREAM_PAIR_DEVICE_H_

#include "ucs_gstream_device.h"

/** Most NICs that move a message. */
#define UCS_GSTREAM_PARTS_MAX 4


/** What each side of a pair has in memory of its device. Kernels alone look at
 *  it; all is 0 at first. */
typedef struct ucs_gstream_device_cell {
    unsigned long long tickets;  /**< Blocks of the start that runs */
    unsigned long long decision; /**< Twice the last use that was started; 1
                                      more: this side copies */
    unsigned long long out;      /**< Blocks that are done */
    unsigned long long length;   /**< Of the use that this side copies */
    /* Of starts by kernels of applications */
    unsigned long long waited;   /**< Uses that they have waited for */
    unsigned long long posted;   /**< The record's, when last looked at */
    /* Written once, by the host */
    unsigned long long key;      /**< Of the handle; 0: there is none */
    unsigned long long is_send;  /**< This and what follows: as in */
    unsigned long long record;   /**< ucs_gstream_device_pair_t */
    unsigned long long other;    /**< The same */
    unsigned long long dst;      /**< The same */
    unsigned long long src;      /**< The same */
    unsigned long long max_length; /**< The same */
    unsigned long long dst_rows; /**< The width, and 2^32 times the pitch */
    unsigned long long src_rows; /**< The same */
    /* What waits look at, and what starts store to where a NIC moves the data
     */
    unsigned long long num_words; /**< 1, or as many as there are NICs */
    unsigned long long weight;   /**< What a start adds to the counters of the
                                      NICs; 0: kernels copy */
    unsigned long long words[UCS_GSTREAM_PARTS_MAX]; /**< Uses that are complete
                                      */
    unsigned long long pages[UCS_GSTREAM_PARTS_MAX]; /**< Trigger pages; 0: a
                                      start adds nothing */
    unsigned long long reserved[7]; /**< To a power of 2 */
} ucs_gstream_device_cell_t;

/** ... and in memory of the host. */
typedef struct ucs_gstream_device_record {
    unsigned long long word;   /**< Uses that are complete; streams wait */
    unsigned long long begun;  /**< Uses that the stream has begun to start */
    unsigned long long ended;  /**< ... and whose starts have ended */
    unsigned long long halted; /**< Not 0: starts have no effect */
    unsigned long long decided; /**< The send's: twice the use that it has
                                     looked at; 1 more: it copies */
    unsigned long long opened; /**< The hosts' */
    unsigned long long length; /**< The send's: of the use that it has begun;
                                    the receive's: of the last complete one */
    unsigned long long key;    /**< Of the handle; 0: there is none. A record is
                                    given back before its cell is cleared */
    /* The other side does not look at what follows: kernels of applications */
    unsigned long long first;  /**< ... may start the uses from this one */
    unsigned long long posted; /**< ... to this one, */
    unsigned long long waited; /**< ... and have waited for this one */
    unsigned long long reserved[5]; /**< The rest of a cache line */
} ucs_gstream_device_record_t;

/** The start of a use of one side; addresses are the device's. */
typedef struct ucs_gstream_device_pair {
    unsigned long long cell;        /**< Of this side */
    unsigned long long record;      /**< The same */
    unsigned long long other;       /**< The other side's record */
    unsigned long long dst;         /**< The receive's buffer */
    unsigned long long src;         /**< The send's */
    unsigned long long length;      /**< Bytes; a receive's: at most */
    unsigned long long use : 63;    /**< From 1 */
    unsigned long long is_send : 1; /**< This side is the send's */
    unsigned dst_width;             /**< Bytes of a row, and from one to the
                                         next; 0: it has none */
    unsigned dst_pitch;             /**< The same */
    unsigned src_width;             /**< The same */
    unsigned src_pitch;             /**< The same */
} ucs_gstream_device_pair_t;

#if defined(UCS_GSTREAM_FUNC)

#define UCS_GSTREAM_CELL(_cell, _field) \
    ((_cell) + __builtin_offsetof(ucs_gstream_device_cell_t, _field))
#define UCS_GSTREAM_RECORD(_record, _field) \
    ((_record) + __builtin_offsetof(ucs_gstream_device_record_t, _field))

/* Copies the units of one type between two addresses that it divides: each
 * thread its share. Four at a time, whose loads overlap. */
#define UCS_GSTREAM_COPY_UNITS(_type, _dst, _src, _count, _first, _step) \
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
            UCS_GSTREAM_PUT(_type, (_dst) + sizeof(_a) * (_i + 2 * (_step)), \
                            _c); \
            UCS_GSTREAM_PUT(_type, (_dst) + sizeof(_a) * (_i + 3 * (_step)), \
                            _d); \
        } \
        for (; _i < (_count); _i += (_step)) { \
            UCS_GSTREAM_PUT(_type, (_dst) + sizeof(_type) * _i, \
                            UCS_GSTREAM_GET(_type, \
                                            (_src) + sizeof(_type) * _i)); \
        } \
    } while (0)

/* Copies the share of a thread, of so many */
UCS_GSTREAM_FUNC void
ucs_gstream_device_copy(unsigned long long dst, unsigned long long src,
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
    UCS_GSTREAM_COPY_UNITS(unsigned char, dst, src, head, first, step);
    dst    += head;
    src    += head;
    length -= head;
    count   = length / unit;
    if (unit == 16) {
        UCS_GSTREAM_COPY_UNITS(ucs_gstream_wide_t, dst, src, count, first,
                               step);
    } else if (unit == 4) {
        UCS_GSTREAM_COPY_UNITS(unsigned, dst, src, count, first, step);
    } else {
        UCS_GSTREAM_COPY_UNITS(unsigned char, dst, src, count, first, step);
    }
    dst    += count * unit;
    src    += count * unit;
    length -= count * unit;
    UCS_GSTREAM_COPY_UNITS(unsigned char, dst, src, length, first, step);
}

/* Where a byte of a message lies in its buffer: in a row, or without rows */
UCS_GSTREAM_FUNC unsigned long long
ucs_gstream_device_place(unsigned long long at, unsigned width, unsigned pitch)
{
    return (width == 0) ? at : (at / width * pitch + at % width);
}

#define UCS_GSTREAM_COPY_ROWS(_type, _pair, _length, _first, _step) \
    do { \
        unsigned long long _at = sizeof(_type) * (_first); \
        \
        for (; _at < (_length); _at += sizeof(_type) * (_step)) { \
            UCS_GSTREAM_PUT(_type, (_pair)->dst + \
                                   ucs_gstream_device_place( \
                                           _at, (_pair)->dst_width, \
                                           (_pair)->dst_pitch), \
                            UCS_GSTREAM_GET(_type, \
                                            (_pair)->src + \
                                            ucs_gstream_device_place( \
                                                    _at, (_pair)->src_width, \
                                                    (_pair)->src_pitch))); \
        } \
    } while (0)

/* The same of rows, in units that divide all of their lengths and places */
UCS_GSTREAM_FUNC void
ucs_gstream_device_copy_rows(const ucs_gstream_device_pair_t *pair,
                             unsigned long long length,
                             unsigned long long first, unsigned long long step)
{
    unsigned long long all = pair->dst | pair->src | length | pair->dst_width |
                             pair->dst_pitch | pair->src_width |
                             pair->src_pitch;

    if (all % 16 == 0) {
        UCS_GSTREAM_COPY_ROWS(ucs_gstream_wide_t, pair, length, first, step);
    } else if (all % 4 == 0) {
        UCS_GSTREAM_COPY_ROWS(unsigned, pair, length, first, step);
    } else {
        UCS_GSTREAM_COPY_ROWS(unsigned char, pair, length, first, step);
    }
}

/* Copies so many bytes of a message: the share of a thread, of so many */
UCS_GSTREAM_FUNC void
ucs_gstream_device_move(const ucs_gstream_device_pair_t *pair,
                        unsigned long long length, unsigned first,
                        unsigned step)
{
    if ((pair->dst_width | pair->src_width) == 0) {
        ucs_gstream_device_copy(pair->dst, pair->src, length, first, step);
    } else {
        ucs_gstream_device_copy_rows(pair, length, first, step);
    }
}

/* What a start has found: this side copies; or the pair is halted */
#define UCS_GSTREAM_DEVICE_COPIES 1
#define UCS_GSTREAM_DEVICE_HALTED 2

/* Whether this side copies, and how many bytes. It does if it sees that the
 * other one has begun the use, too: one of the two sees that at least, by the
 * fences between their stores and loads. If both see it the send copies. The
 * send stores which it was to `decided`, and the receive waits for that: the
 * send's kernel has begun, and nothing keeps it. What the send says before
 * `begun` of the use's length the receive reads behind that; it holds until the
 * use is complete.
 *
 * The fence behind `begun` also pairs with that of a host that has stored
 * `halted`: the host sees that this start has begun, or the start sees that it
 * is to do nothing. The fence in front puts what the stream did before in front
 * of `begun`. */
UCS_GSTREAM_FUNC unsigned
ucs_gstream_device_begin(const ucs_gstream_device_pair_t *pair,
                         unsigned long long *length)
{
    unsigned long long decided;
    unsigned is_second;

    *length = pair->length;
    if (pair->is_send) {
        UCS_GSTREAM_STORE(UCS_GSTREAM_RECORD(pair->record, length),
                          pair->length);
    }
    UCS_GSTREAM_FENCE();
    UCS_GSTREAM_STORE(UCS_GSTREAM_RECORD(pair->record, begun), pair->use);
    UCS_GSTREAM_FENCE();
    is_second = (UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(pair->other, begun)) >=
                 pair->use);
    if (UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(pair->record, halted)) != 0) {
        return UCS_GSTREAM_DEVICE_HALTED;
    }
    if (pair->is_send) {
        UCS_GSTREAM_STORE(UCS_GSTREAM_RECORD(pair->record, decided),
                          2 * pair->use + is_second);
        return is_second;
    }
    if (!is_second) {
        return 0;
    }
    UCS_GSTREAM_FENCE(); /* Behind the send's `begun` */
    *length = UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(pair->other, length));
    if (*length > pair->length) {
        *length = pair->length; /* A peer that is wrong */
    }
    /* More than that is said of a later use: this one is complete */
    while ((decided = UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(pair->other,
                                                          decided))) <
           2 * pair->use) {
        if (UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(pair->record, halted)) != 0) {
            return UCS_GSTREAM_DEVICE_HALTED;
        }
        UCS_GSTREAM_PAUSE();
    }
    return decided == 2 * pair->use;
}

/* Begins a start of what NICs move: 0, or UCS_GSTREAM_DEVICE_HALTED, and no NIC
 * is told. The first fence puts what was written before in front of the stores
 * to the trigger pages. The second one pairs with the host's behind `halted`:
 * the host sees that this start has begun, and gives no counter back before it
 * has ended; or the start sees that it is to do nothing. */
UCS_GSTREAM_FUNC unsigned
ucs_gstream_device_trigger(const ucs_gstream_device_pair_t *pair,
                        unsigned long long weight)
{
    unsigned long long parts = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(pair->cell,
                                                                 num_words));
    unsigned long long page, i;

    UCS_GSTREAM_FENCE();
    UCS_GSTREAM_STORE(UCS_GSTREAM_RECORD(pair->record, begun), pair->use);
    UCS_GSTREAM_FENCE();
    if (UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(pair->record, halted)) != 0) {
        return UCS_GSTREAM_DEVICE_HALTED;
    }
    for (i = 0; i < parts; ++i) {
        page = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(pair->cell, pages) +
                                sizeof(page) * i);
        if (page != 0) {
            UCS_GSTREAM_STORE(page, weight);
        }
    }
    return 0;
}

/* Ends a start; `what` says whether this side has copied so many bytes. By one
 * thread, behind the fences of all that have. */
UCS_GSTREAM_FUNC void
ucs_gstream_device_end(const ucs_gstream_device_pair_t *pair, unsigned what,
                       unsigned long long length)
{
    unsigned copies = what & UCS_GSTREAM_DEVICE_COPIES;

    if (copies) { /* The send's has it, but clang would put `pair` into local
                     memory to choose between them */
        UCS_GSTREAM_STORE(UCS_GSTREAM_RECORD(pair->record, length), length);
        UCS_GSTREAM_STORE(UCS_GSTREAM_RECORD(pair->other, length), length);
    }
    UCS_GSTREAM_FENCE(); /* Behind all that has copied */
    if (copies) {
        UCS_GSTREAM_STORE(UCS_GSTREAM_RECORD(pair->record, word), pair->use);
        UCS_GSTREAM_STORE(UCS_GSTREAM_RECORD(pair->other, word), pair->use);
        UCS_GSTREAM_FENCE(); /* In front of `ended` */
    }
    UCS_GSTREAM_STORE(UCS_GSTREAM_RECORD(pair->record, ended), pair->use);
}

#endif

#endif
