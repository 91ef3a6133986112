/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_decode.h - the store that an x86-64 instruction makes.
 */
#ifndef CXIEMU_DECODE_H_
#define CXIEMU_DECODE_H_

#include <stddef.h>
#include <stdint.h>

/** General registers by their number in instructions: rax, rcx, rdx, rbx, rsp,
 *  rbp, rsi, rdi, r8 to r15. */
#define CXIEMU_DECODE_REGS 16

/** Longest instruction that processors carry out, bytes. */
#define CXIEMU_DECODE_MAX 15

typedef struct cxiemu_decode {
    size_t   length;  /**< Of the instruction, bytes */
    size_t   size;    /**< Of the store, bytes: 1, 2, 4, 8 */
    uint64_t value;   /**< What is stored, or added */
    int      result;  /**< Register that gets what was there before, or -1 */
} cxiemu_decode_t;

/**
 * Decode the instruction at @a code: a store of a register or of an immediate,
 * an exchange, or an addition to memory. Nothing behind it is read, nor more
 * than CXIEMU_DECODE_MAX bytes. Async-signal-safe. 0 if it is none of these.
 */
int cxiemu_decode_store(const uint8_t *code,
                        const uint64_t regs[CXIEMU_DECODE_REGS],
                        cxiemu_decode_t *decode);

#endif
