/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_kernels.cu - the kernels of st_pingpong, st_faces and st_life for GPUs:
 * plain C that is C++, too, made into PTX text and code as the library's
 * (gstream_kernels.cu). They give bit by bit what the functions of the host
 * give: sums in the same order, and no multiply-add in one step
 * (-ffp-contract=off).
 */
#include "bench_kernels.h"
#include "ucs_gstream_device.h"

/* hipRTC is given no option */
#if defined(__clang__)
#pragma clang fp contract(off)
#endif

#define BENCH_AT(_base, _type, _index) \
    ((_base) + sizeof(_type) * (unsigned long long)(_index))
#define BENCH_GET(_type, _base, _index) \
    UCS_GSTREAM_GET(_type, BENCH_AT(_base, _type, _index))
#define BENCH_PUT(_type, _base, _index, _value) \
    UCS_GSTREAM_PUT(_type, BENCH_AT(_base, _type, _index), _value)

typedef unsigned long long bench_word_t;

/* This thread among all */
UCS_GSTREAM_FUNC unsigned bench_self(const bench_kernel_head_t *head)
{
    return UCS_GSTREAM_BLOCK() * head->num_threads + UCS_GSTREAM_THREAD();
}


/* st_pingpong: words of 8 bytes, then single bytes. The first word is the
 * stamp, or of a shorter message its first bytes. */

UCS_GSTREAM_FUNC unsigned bench_pp_byte(const bench_kernel_pp_t *args,
                                        bench_word_t i)
{
    if (args->size < sizeof(bench_word_t)) {
        return (unsigned)(args->stamp >> (8 * i)) & 0xff;
    }
    return (unsigned)(i * 13 + (i >> 8) * 7 + args->first) & 0xff;
}

UCS_GSTREAM_FUNC bench_word_t bench_pp_word(const bench_kernel_pp_t *args,
                                            bench_word_t i)
{
    bench_word_t word = 0;
    unsigned byte;

    for (byte = 0; byte < sizeof(word); ++byte) {
        word |= (bench_word_t)bench_pp_byte(args, sizeof(word) * i + byte) <<
                (8 * byte);
    }
    return word;
}

UCS_GSTREAM_KERNEL bench_pp_pack(bench_kernel_pp_t args)
{
    bench_word_t self  = bench_self(&args.head);
    bench_word_t words = args.size / sizeof(bench_word_t);
    bench_word_t i;

    for (i = self; i < words; i += args.head.num_all) {
        BENCH_PUT(bench_word_t, args.to, i,
                  (i == 0)  ? args.stamp :
                  args.full ? bench_pp_word(&args, i) :
                              BENCH_GET(bench_word_t, args.from, i));
    }
    for (i = sizeof(bench_word_t) * words + self; i < args.size;
         i += args.head.num_all) {
        BENCH_PUT(unsigned char, args.to, i,
                  (unsigned char)((args.full || (words == 0)) ?
                                  bench_pp_byte(&args, i) :
                                  BENCH_GET(unsigned char, args.from, i)));
    }
}

UCS_GSTREAM_KERNEL bench_pp_unpack(bench_kernel_pp_t args)
{
    bench_word_t self  = bench_self(&args.head);
    bench_word_t words = args.size / sizeof(bench_word_t);
    bench_word_t found = (self == 0);
    bench_word_t i, word;
    unsigned char byte;

    for (i = self; i < words; i += args.head.num_all) {
        word = BENCH_GET(bench_word_t, args.from, i);
        if ((i == 0) ? (word != args.stamp) :
                       (args.full && (word != bench_pp_word(&args, i)))) {
            found |= BENCH_KERNEL_WRONG;
        }
        BENCH_PUT(bench_word_t, args.to, i, word);
    }
    for (i = sizeof(bench_word_t) * words + self; i < args.size;
         i += args.head.num_all) {
        byte = BENCH_GET(unsigned char, args.from, i);
        if ((args.full || (words == 0)) && (byte != bench_pp_byte(&args, i))) {
            found |= BENCH_KERNEL_WRONG;
        }
        BENCH_PUT(unsigned char, args.to, i, byte);
    }
    if (found != 0) {
        UCS_GSTREAM_ADD(args.result, found);
    }
}


/* Takes a time. The stand-ins have no clock: theirs counts how often it is
 * looked at. */

#if defined(__HIP__) || defined(__AMDGCN__)
#define BENCH_CLOCK() __builtin_readcyclecounter()
#elif defined(__CUDA__) && defined(__clang__)
#define BENCH_CLOCK() ((bench_word_t)__nvvm_read_ptx_sreg_clock64())
#elif defined(__CUDACC__)
#define BENCH_CLOCK() ((bench_word_t)clock64())
#else
#define BENCH_CLOCK() (++looks)
#endif

UCS_GSTREAM_KERNEL bench_spin(bench_kernel_spin_t args)
{
    bench_word_t looks = 0;
    bench_word_t start = BENCH_CLOCK();

    (void)looks;
    while (BENCH_CLOCK() - start < args.cycles) {
        UCS_GSTREAM_PAUSE();
    }
}


/* st_faces: a thread makes each of its values by itself, of what no other one
 * writes in the same kernel. Sums begin with 0 and nodes are ascending, as the
 * functions of the host have it. */

UCS_GSTREAM_FUNC double bench_faces_update(const bench_kernel_faces_t *args,
                                           unsigned node)
{
    double value  = BENCH_GET(double, args->value, node);
    double source = BENCH_GET(double, args->source, node);

    return value * 0.0625 + (source + args->drift);
}

UCS_GSTREAM_KERNEL bench_faces_pack(bench_kernel_faces_t args)
{
    unsigned self = bench_self(&args.head);
    unsigned i, j, place, end;
    double sum;

    for (i = self; i < args.num_values; i += args.head.num_all) {
        BENCH_PUT(double, args.updated, i, bench_faces_update(&args, i));
    }
    for (i = self; i < args.num_out; i += args.head.num_all) {
        place = BENCH_GET(unsigned, args.out_place, i);
        end   = BENCH_GET(unsigned, args.first, place + 1);
        sum   = 0;
        for (j = BENCH_GET(unsigned, args.first, place); j < end; ++j) {
            sum += bench_faces_update(&args,
                                      BENCH_GET(unsigned, args.nodes, j));
        }
        BENCH_PUT(double, args.message, BENCH_GET(unsigned, args.out_at, i),
                  sum);
    }
}

UCS_GSTREAM_KERNEL bench_faces_interior(bench_kernel_faces_t args)
{
    unsigned i, j, end;
    double sum;

    for (i = bench_self(&args.head); i < args.num_places;
         i += args.head.num_all) {
        end = BENCH_GET(unsigned, args.first, i + 1);
        sum = 0;
        for (j = BENCH_GET(unsigned, args.first, i); j < end; ++j) {
            sum += BENCH_GET(double, args.updated,
                             BENCH_GET(unsigned, args.nodes, j));
        }
        BENCH_PUT(double, args.sum, i, sum);
    }
}

UCS_GSTREAM_KERNEL bench_faces_unpack(bench_kernel_faces_t args)
{
    unsigned i, j, end;
    double sum;

    for (i = bench_self(&args.head); i < args.num_places;
         i += args.head.num_all) {
        sum = BENCH_GET(double, args.sum, i);
        end = BENCH_GET(unsigned, args.in_first, i + 1);
        for (j = BENCH_GET(unsigned, args.in_first, i); j < end; ++j) {
            sum += BENCH_GET(double, args.message,
                             BENCH_GET(unsigned, args.in_at, j));
        }
        end = BENCH_GET(unsigned, args.first, i + 1);
        for (j = BENCH_GET(unsigned, args.first, i); j < end; ++j) {
            BENCH_PUT(double, args.value, BENCH_GET(unsigned, args.nodes, j),
                      sum);
        }
    }
}


/* st_life: cells of neighbours are read where their messages are */

/* Where a cell of a row or column lies: 0 in front of it, 1 in it, 2 behind */
UCS_GSTREAM_FUNC unsigned bench_life_side(unsigned at, unsigned size)
{
    return (at == 0) ? 0 : (at <= size) ? 1 : 2;
}

UCS_GSTREAM_FUNC unsigned bench_life_cell(const bench_kernel_life_t *args,
                                          unsigned x, unsigned y)
{
    unsigned side_x = bench_life_side(x, args->width);
    unsigned side_y = bench_life_side(y, args->height);
    unsigned dir    = side_x + 3 * side_y;

    if (dir == 4) {
        return BENCH_GET(unsigned char, args->cells,
                         (bench_word_t)y * (args->width + 2) + x);
    }
    return BENCH_GET(unsigned char,
                     args->message +
                             args->stride * ((dir < 4) ? dir : dir - 1),
                     (side_x == 1) ? x - 1 : (side_y == 1) ? y - 1 : 0);
}

UCS_GSTREAM_KERNEL bench_life_pack(bench_kernel_life_t args)
{
    unsigned self = bench_self(&args.head);
    unsigned dir, side_x, side_y, i, x, y, length;

    for (dir = 0; dir < 8; ++dir) {
        side_x = (dir < 4) ? dir % 3 : (dir + 1) % 3;
        side_y = (dir < 4) ? dir / 3 : (dir + 1) / 3;
        length = (side_x == 1) ? args.width : (side_y == 1) ? args.height : 1;
        for (i = self; i < length; i += args.head.num_all) {
            x = (side_x == 0) ? 1 : (side_x == 1) ? i + 1 : args.width;
            y = (side_y == 0) ? 1 : (side_y == 1) ? i + 1 : args.height;
            BENCH_PUT(unsigned char, args.message + args.stride * dir, i,
                      BENCH_GET(unsigned char, args.cells,
                                (bench_word_t)y * (args.width + 2) + x));
        }
    }
}

UCS_GSTREAM_KERNEL bench_life_step(bench_kernel_life_t args)
{
    bench_word_t count = (bench_word_t)args.width * args.height;
    bench_word_t i;
    unsigned x, y, self, sum;

    for (i = bench_self(&args.head); i < count; i += args.head.num_all) {
        x    = (unsigned)(i % args.width) + 1;
        y    = (unsigned)(i / args.width) + 1;
        self = bench_life_cell(&args, x, y);
        sum  = bench_life_cell(&args, x - 1, y - 1) +
               bench_life_cell(&args, x, y - 1) +
               bench_life_cell(&args, x + 1, y - 1) +
               bench_life_cell(&args, x - 1, y) +
               bench_life_cell(&args, x + 1, y) +
               bench_life_cell(&args, x - 1, y + 1) +
               bench_life_cell(&args, x, y + 1) +
               bench_life_cell(&args, x + 1, y + 1);
        BENCH_PUT(unsigned char, args.next,
                  (bench_word_t)y * (args.width + 2) + x,
                  (unsigned char)((sum == 3) || (self && (sum == 2))));
    }
}
