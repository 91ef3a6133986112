/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_kernels.cu - the library's kernels for GPUs, in plain C that is C++,
 * too, without headers of the system; ucs_gstream_device.h has what a target
 * names in its own way, ucs_gstream_pair_device.h what kernels of applications
 * do, too.
 *
 * clang makes PTX text of it (gstream_kernels.ptx, contrib/check-kernels.sh),
 * and code objects for AMD's devices (gstream_images.sh). hipRTC compiles it at
 * run time, and test/standin runs it on threads of the host. A kernel uses no
 * memory of a thread's own, and no printf().
 */
#include "gstream_kernels.h"

/* Each thread waits for its share of the words, so that their loads, which
 * cross the bus, overlap; the first one then stores, the last word behind the
 * others. */
UCS_GSTREAM_FUNC void gstream_waits(const gstream_kernel_head_t *head,
                                    const gstream_kernel_op_t *ops)
{
    unsigned i;

    for (i = UCS_GSTREAM_THREAD(); i < head->num_waits;
         i += head->num_threads) {
        while (UCS_GSTREAM_LOAD(ops[i].address) < ops[i].value) {
            UCS_GSTREAM_PAUSE();
        }
    }
    UCS_GSTREAM_FENCE();
    UCS_GSTREAM_SYNC();
    if (UCS_GSTREAM_THREAD() == 0) {
        UCS_GSTREAM_FENCE(); /* The stores come behind all threads' waits */
        for (i = 0; i < head->num_stores; ++i) {
            if ((i > 0) && (i == (head->num_stores - 1))) {
                UCS_GSTREAM_FENCE();
            }
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

/* Starts a use: the block that is first decides, and the last one to be done
 * ends it. No block waits for one that has not begun to run, here or on the
 * other side. */
UCS_GSTREAM_FUNC void gstream_pair(const ucs_gstream_device_pair_t *pair,
                                   const gstream_kernel_pair_head_t *head,
                                   unsigned block)
{
    unsigned long long length = 0;
    unsigned long long decision;
    unsigned what;

    if ((UCS_GSTREAM_THREAD() == 0) &&
        (UCS_GSTREAM_ADD(UCS_GSTREAM_CELL(pair->cell, tickets), 1) == 0)) {
        what = ucs_gstream_device_begin(pair, &length) &
               UCS_GSTREAM_DEVICE_COPIES;
        if (what) {
            UCS_GSTREAM_STORE(UCS_GSTREAM_CELL(pair->cell, length), length);
            UCS_GSTREAM_FENCE(); /* In front of `decision` */
        }
        UCS_GSTREAM_STORE(UCS_GSTREAM_CELL(pair->cell, decision),
                          2 * pair->use + what);
    }
    while ((decision = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(pair->cell,
                                                         decision))) <
           2 * pair->use) {
        UCS_GSTREAM_PAUSE();
    }
    what = decision % 2;
    if (what) {
        UCS_GSTREAM_FENCE(); /* Behind the other side's `begun` */
        length = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(pair->cell, length));
        ucs_gstream_device_move(pair, length,
                                block * head->num_threads +
                                        UCS_GSTREAM_THREAD(),
                                head->num_blocks * head->num_threads);
        UCS_GSTREAM_FENCE(); /* In front of the words */
    }
    UCS_GSTREAM_SYNC();
    if (UCS_GSTREAM_THREAD() != 0) {
        return;
    }
    UCS_GSTREAM_FENCE(); /* Behind the block's other threads */
    if (UCS_GSTREAM_ADD(UCS_GSTREAM_CELL(pair->cell, out), 1) !=
        head->num_blocks - 1) {
        return;
    }
    UCS_GSTREAM_STORE(UCS_GSTREAM_CELL(pair->cell, tickets), 0);
    UCS_GSTREAM_STORE(UCS_GSTREAM_CELL(pair->cell, out), 0);
    ucs_gstream_device_end(pair, what, length);
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

/* The signal comes behind what all threads have copied. If the last look at
 * `failed` finds 0, so did all others, as it never becomes 0 again: then
 * everything was copied. The moves of a cell are one stream's, and run one after
 * the other. */
UCS_GSTREAM_KERNEL ucs_gstream_move(gstream_kernel_move_t args)
{
    if (UCS_GSTREAM_LOAD(args.failed) == 0) {
        ucs_gstream_device_copy(args.dst, args.src, args.length,
                                UCS_GSTREAM_BLOCK() * args.head.num_threads +
                                        UCS_GSTREAM_THREAD(),
                                args.head.num_blocks * args.head.num_threads);
    }
    UCS_GSTREAM_FENCE(); /* In front of the signal */
    UCS_GSTREAM_SYNC();
    if (UCS_GSTREAM_THREAD() != 0) {
        return;
    }
    UCS_GSTREAM_FENCE(); /* Behind the block's other threads */
    if (args.head.num_blocks > 1) {
        if (UCS_GSTREAM_ADD(UCS_GSTREAM_CELL(args.cell, out), 1) !=
            args.head.num_blocks - 1) {
            return;
        }
        UCS_GSTREAM_STORE(UCS_GSTREAM_CELL(args.cell, out), 0);
        UCS_GSTREAM_FENCE(); /* Behind the other blocks */
    }
    if ((args.signal != 0) && (UCS_GSTREAM_LOAD(args.failed) == 0)) {
        UCS_GSTREAM_STORE(args.signal, args.value);
    }
}
