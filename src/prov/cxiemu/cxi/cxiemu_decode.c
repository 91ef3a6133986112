/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_decode.c - the store that an x86-64 instruction makes.
 *
 * Source: Intel's and AMD's manuals of the architecture, instruction format.
 */
#include "cxi/cxiemu_decode.h"

/* More than assemblers make, for the sake of alignment. With so many only an
 * immediate can reach beyond CXIEMU_DECODE_MAX bytes. */
#define CXIEMU_DECODE_MAX_PREFIXES 6

enum {
    CXIEMU_REX_B = 1,
    CXIEMU_REX_R = 4,
    CXIEMU_REX_W = 8
};

typedef struct cxiemu_insn {
    const uint8_t  *next;
    const uint8_t  *limit; /**< No instruction goes on here */
    const uint64_t *regs;
    uint8_t        rex;
    int            short_operand; /**< Prefix 66: 16 bits */
    uint8_t        modrm;
} cxiemu_insn_t;


static uint64_t cxiemu_insn_mask(size_t size)
{
    return (size == 8) ? UINT64_MAX : ((1ull << (8 * size)) - 1);
}

static void cxiemu_insn_prefixes(cxiemu_insn_t *insn)
{
    int i;

    for (i = 0; i < CXIEMU_DECODE_MAX_PREFIXES; ++i) {
        switch (*insn->next) {
        case 0x66:
            insn->short_operand = 1;
            break;
        case 0xf0: /* lock */
        case 0x2e: /* segments without meaning */
        case 0x36:
        case 0x3e:
        case 0x26:
            break;
        default:
            i = CXIEMU_DECODE_MAX_PREFIXES;
            continue;
        }
        ++insn->next;
    }
    if ((*insn->next & 0xf0) == 0x40) {
        insn->rex = *insn->next++;
    }
}

/* Step over the operand in memory; 0 if it is a register. */
static int cxiemu_insn_modrm(cxiemu_insn_t *insn)
{
    uint8_t modrm = *insn->next++;
    uint8_t mod   = modrm >> 6;
    uint8_t rm    = modrm & 7;
    uint8_t base  = rm;

    insn->modrm = modrm;
    if (mod == 3) {
        return 0;
    }
    if (rm == 4) {
        base = *insn->next++ & 7;
    }
    if (mod == 1) {
        insn->next += 1;
    } else if ((mod == 2) || (base == 5)) {
        insn->next += 4; /* Also relative to the instruction, and no base */
    }
    return 1;
}

static int cxiemu_insn_reg(const cxiemu_insn_t *insn)
{
    return ((insn->modrm >> 3) & 7) | ((insn->rex & CXIEMU_REX_R) ? 8 : 0);
}

static uint64_t cxiemu_insn_reg_value(const cxiemu_insn_t *insn, size_t size)
{
    int reg = cxiemu_insn_reg(insn);

    /* Without a REX prefix, 4 to 7 are ah, ch, dh, bh */
    if ((size == 1) && (insn->rex == 0) && (reg >= 4)) {
        return (insn->regs[reg - 4] >> 8) & 0xff;
    }
    return insn->regs[reg] & cxiemu_insn_mask(size);
}

static size_t cxiemu_insn_size(const cxiemu_insn_t *insn)
{
    if (insn->rex & CXIEMU_REX_W) {
        return 8;
    }
    return insn->short_operand ? 2 : 4;
}

/* Opcodes of two bytes: movnti and xadd. */
static int cxiemu_insn_decode_0f(cxiemu_insn_t *insn, cxiemu_decode_t *decode)
{
    uint8_t opcode = *insn->next++;

    decode->size = (opcode == 0xc0) ? 1 : cxiemu_insn_size(insn);
    if (((opcode != 0xc3) && (opcode != 0xc1) && (opcode != 0xc0)) ||
        !cxiemu_insn_modrm(insn)) {
        return 0;
    }

    decode->value = cxiemu_insn_reg_value(insn, decode->size);
    if (opcode != 0xc3) {
        decode->result = cxiemu_insn_reg(insn);
    }
    return decode->size > 1; /* xadd of a byte is nobody's doorbell */
}

static int cxiemu_insn_decode(cxiemu_insn_t *insn, cxiemu_decode_t *decode)
{
    uint8_t opcode = *insn->next++;
    size_t size    = cxiemu_insn_size(insn);
    uint64_t value = 0;
    size_t bytes, i;

    switch (opcode) {
    case 0x0f:
        return cxiemu_insn_decode_0f(insn, decode);
    case 0x88: /* mov of a register */
        size = 1;
        /* fall through */
    case 0x89:
    case 0x01: /* add */
    case 0x87: /* xchg */
        if (!cxiemu_insn_modrm(insn)) {
            return 0;
        }
        decode->value  = cxiemu_insn_reg_value(insn, size);
        decode->result = (opcode == 0x87) ? cxiemu_insn_reg(insn) : -1;
        break;
    case 0xc6: /* mov of an immediate */
        size = 1;
        /* fall through */
    case 0xc7:
    case 0x81: /* add */
    case 0x83:
        bytes = ((size == 1) || (opcode == 0x83)) ? 1 : (size < 4) ? size : 4;
        if (!cxiemu_insn_modrm(insn) || (insn->modrm & 0x38) ||
            (insn->next + bytes > insn->limit)) {
            return 0;
        }
        /* It is extended with its sign */
        for (i = 0; i < bytes; ++i) {
            value |= (uint64_t)*insn->next++ << (8 * i);
        }
        if (value >> (8 * bytes - 1)) {
            value |= ~cxiemu_insn_mask(bytes);
        }
        decode->value = value & cxiemu_insn_mask(size);
        break;
    case 0xff: /* inc */
        if (!cxiemu_insn_modrm(insn) || (insn->modrm & 0x38)) {
            return 0;
        }
        decode->value = 1;
        break;
    default:
        return 0;
    }
    decode->size = size;
    return 1;
}

int cxiemu_decode_store(const uint8_t *code,
                        const uint64_t regs[CXIEMU_DECODE_REGS],
                        cxiemu_decode_t *decode)
{
    cxiemu_insn_t insn = {.next  = code,
                          .limit = code + CXIEMU_DECODE_MAX,
                          .regs  = regs};

    decode->result = -1;
    cxiemu_insn_prefixes(&insn);
    if (!cxiemu_insn_decode(&insn, decode)) {
        return 0;
    }
    decode->length = (size_t)(insn.next - code);
    return 1;
}
