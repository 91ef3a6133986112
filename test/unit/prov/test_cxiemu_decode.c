/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cxiemu_decode.c - the decoder of the trap mode, judged by the assembler.
 *
 * Instructions are assembled into tables that say how long each is. They are
 * decoded at the end of a page that nothing follows: to read on ends the
 * program. DECODE_SEED in the environment repeats the random bytes of a run.
 */
#include "st_cunit.h"

#if defined(__x86_64__)

#include "cxi/cxiemu_decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* What one entry of the tables is: its length, and the instruction */
#define CODE(_text) ".byte 2f - 1f\n1: " _text "\n2:\n"

/* The end of a table */
#define CODE_END ".byte 0\n"

#define PREFIX(_byte) ".byte " _byte "\n"

enum {
    RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15
};


/* Every byte of every register is another one, and the sign is set. */
#define BYTE(_reg, _i) ((uint64_t)(0x80 + (8 * (_reg)) + (_i)) << (8 * (_i)))
#define LOW16(_reg)    (BYTE(_reg, 0) | BYTE(_reg, 1))
#define LOW32(_reg)    (LOW16(_reg) | BYTE(_reg, 2) | BYTE(_reg, 3))
#define WHOLE(_reg) \
    (LOW32(_reg) | BYTE(_reg, 4) | BYTE(_reg, 5) | BYTE(_reg, 6) | \
     BYTE(_reg, 7))
#define HIGH8(_reg) (BYTE(_reg, 1) >> 8)

/* Stores: text, size, value, register for the result. */
#define STORES(_) \
    _("movq %rdx, (%rdi)", 8, WHOLE(RDX), -1) \
    _("movl %edx, (%rdi)", 4, LOW32(RDX), -1) \
    _("movw %dx, (%rdi)", 2, LOW16(RDX), -1) \
    _("movb %dl, (%rdi)", 1, BYTE(RDX, 0), -1) \
    _("movb %ah, (%rdi)", 1, HIGH8(RAX), -1) \
    _("movb %ch, (%rdi)", 1, HIGH8(RCX), -1) \
    _("movb %dh, 64(%rdi)", 1, HIGH8(RDX), -1) \
    _("movb %bh, (%rdi, %rcx)", 1, HIGH8(RBX), -1) \
    _("movq %rdx, 0x40(%rip)", 8, WHOLE(RDX), -1) \
    _("movl %r9d, 0x12345678(%rip)", 4, LOW32(R9), -1) \
    _("movq %rdx, 0x1000", 8, WHOLE(RDX), -1) \
    _("movq %rdx, 4096(, %rcx, 8)", 8, WHOLE(RDX), -1) \
    _("movq %rdx, 4096(, %r13, 8)", 8, WHOLE(RDX), -1) \
    _("movq %r12, 0x12345678(%r13, %r14, 2)", 8, WHOLE(R12), -1) \
    _("movq $1, (%rdi)", 8, 1, -1) \
    _("movq $-1, (%rdi)", 8, UINT64_MAX, -1) \
    _("movq $0x7fffffff, (%rdi)", 8, 0x7fffffff, -1) \
    _("movq $-0x80000000, 192(%rsp)", 8, 0xffffffff80000000, -1) \
    _("movq $0x12345678, 0x40(%rip)", 8, 0x12345678, -1) \
    _("movq $0x12345678, 4096(%r12, %r13, 8)", 8, 0x12345678, -1) \
    _("movl $0x12345678, (%rdi)", 4, 0x12345678, -1) \
    _("movl $-1, 64(%rdi)", 4, 0xffffffff, -1) \
    _("movw $0x1234, (%rdi)", 2, 0x1234, -1) \
    _("movw $-2, 64(%r13)", 2, 0xfffe, -1) \
    _("movb $0x5a, (%rdi)", 1, 0x5a, -1) \
    _("movb $-3, 192(%rdi, %rcx, 4)", 1, 0xfd, -1) \
    _("movnti %rdx, (%rdi)", 8, WHOLE(RDX), -1) \
    _("movnti %edx, (%rdi)", 4, LOW32(RDX), -1) \
    _("movnti %r9, 192(%r12, %rcx, 4)", 8, WHOLE(R9), -1) \
    _("movnti %r15d, 0x40(%rip)", 4, LOW32(R15), -1) \
    _("xchgq %rdx, (%rdi)", 8, WHOLE(RDX), RDX) \
    _("xchgl %edx, (%rdi)", 4, LOW32(RDX), RDX) \
    _("xchgw %dx, (%rdi)", 2, LOW16(RDX), RDX) \
    _("xchgq %r9, 64(%r10)", 8, WHOLE(R9), R9) \
    _("lock xchgq %rax, 0x40(%rip)", 8, WHOLE(RAX), RAX) \
    _("addq %rdx, (%rdi)", 8, WHOLE(RDX), -1) \
    _("lock addq %rdx, (%rdi)", 8, WHOLE(RDX), -1) \
    _("lock addl %r9d, 64(%rdi)", 4, LOW32(R9), -1) \
    _("lock addw %dx, (%rdi)", 2, LOW16(RDX), -1) \
    _("lock addq $1, (%rdi)", 8, 1, -1) \
    _("lock addq $-1, 64(%r13)", 8, UINT64_MAX, -1) \
    _("lock addl $-1, (%rdi)", 4, 0xffffffff, -1) \
    _("lock addw $-1, (%rdi)", 2, 0xffff, -1) \
    _("lock addq $0x12345678, 0x40(%rip)", 8, 0x12345678, -1) \
    _("lock addq $-0x12345678, (%rdi)", 8, 0xffffffffedcba988, -1) \
    _("addl $0x12345678, (%rdi)", 4, 0x12345678, -1) \
    _("lock addw $0x1234, (%rdi)", 2, 0x1234, -1) \
    _("lock incq (%rdi)", 8, 1, -1) \
    _("incl 64(%rdi)", 4, 1, -1) \
    _("incw 4096(%r12)", 2, 1, -1) \
    _("lock xaddq %rdx, (%rdi)", 8, WHOLE(RDX), RDX) \
    _("lock xaddl %r9d, 64(%rdi)", 4, LOW32(R9), R9) \
    _("lock xaddw %dx, (%rdi)", 2, LOW16(RDX), RDX) \
    _("xaddq %rax, 0x12345678(%r12, %r13, 8)", 8, WHOLE(RAX), RAX) \
    /* Longer than need be, as assemblers do for the sake of alignment */ \
    _(PREFIX("0x2e, 0x2e, 0x2e, 0x2e, 0x2e") "movq %rdx, 64(%rdi)", 8, \
      WHOLE(RDX), -1) \
    _(PREFIX("0x3e, 0x26, 0x36") "lock addw $0x1234, (%rdi)", 2, 0x1234, -1) \
    _(PREFIX("0x66") "movq %rdx, (%rdi)", 8, WHOLE(RDX), -1) \
    _(PREFIX("0x40") "movl %edx, (%rdi)", 4, LOW32(RDX), -1) \
    _(PREFIX("0x48, 0x89, 0x57, 0"), 8, WHOLE(RDX), -1) \
    _(PREFIX("0x48, 0x89, 0x97, 0, 0, 0, 0"), 8, WHOLE(RDX), -1) \
    _(PREFIX("0x48, 0x89, 0x54, 0x27, 0"), 8, WHOLE(RDX), -1) \
    /* 15 bytes, as long as an instruction gets */ \
    _(PREFIX("0x2e, 0x2e") "lock addq $0x12345678, 0x12345678(%r12, %r13, 8)", \
      8, 0x12345678, -1) \
    _(PREFIX("0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e") \
      "movb $1, 0x12345678(%r12, %r13, 8)", 1, 1, -1)

/* What is not a store, or not one of those: it may never be taken for one. */
#define OTHERS \
    /* Bytes, but for a plain store */ \
    CODE("xchgb %dl, (%rdi)") CODE("lock addb %dl, (%rdi)") \
    CODE("lock addb $1, (%rdi)") CODE("lock incb (%rdi)") \
    CODE("lock xaddb %dl, (%rdi)") \
    /* Other arithmetic: most differ in three bits from what is taken */ \
    CODE("subq %rdx, (%rdi)") CODE("lock subq $1, (%rdi)") \
    CODE("lock decq (%rdi)") CODE("orq $1, (%rdi)") CODE("adcq $1, (%rdi)") \
    CODE("sbbq $1, (%rdi)") CODE("andq $1, (%rdi)") CODE("xorq $1, (%rdi)") \
    CODE("cmpq $1, (%rdi)") CODE("orq $0x12345678, (%rdi)") \
    CODE("subl $0x12345678, (%rdi)") CODE("andq %rdx, (%rdi)") \
    CODE("orq %rdx, (%rdi)") CODE("xorq %rdx, (%rdi)") \
    CODE("adcq %rdx, (%rdi)") CODE("sbbq %rdx, (%rdi)") \
    CODE("notq (%rdi)") CODE("negq (%rdi)") CODE("shlq (%rdi)") \
    CODE("btsq $1, (%rdi)") CODE("lock btsq %rdx, (%rdi)") \
    CODE("shldq $1, %rdx, (%rdi)") CODE("sete (%rdi)") \
    CODE("lock cmpxchgq %rdx, (%rdi)") CODE("lock cmpxchg8b (%rdi)") \
    CODE("lock cmpxchg16b (%rdi)") \
    /* No memory, or memory that is read */ \
    CODE("movq %rdx, %rdi") CODE("movq $1, %rdi") CODE("movb %dl, %dil") \
    CODE("xchgq %rdx, %rdi") CODE("addq %rdx, %rdi") CODE("addq $1, %rdi") \
    CODE("incq %rdi") CODE("xaddq %rdx, %rdi") CODE("movq (%rdi), %rdx") \
    CODE("addq (%rdi), %rdx") CODE("cmpq %rdx, (%rdi)") \
    CODE("testq %rdx, (%rdi)") CODE("nop") CODE("ret") CODE("syscall") \
    CODE("prefetchw (%rdi)") CODE("clflush (%rdi)") \
    /* Where the address or the value is elsewhere */ \
    CODE("pushq (%rdi)") CODE("popq (%rdi)") CODE("pushq %rdx") \
    CODE("call *(%rdi)") CODE("jmp *(%rdi)") CODE("call 1b") \
    CODE("stosb") CODE("stosq") CODE("rep stosq") CODE("movsq") \
    CODE("rep movsb") CODE("movabsq %rax, 0x1122334455667788") \
    CODE("movw %ds, (%rdi)") CODE("movq %rdx, %fs:(%rdi)") \
    CODE("lock addq $1, %gs:64") CODE("movq %rdx, (%edi)") \
    CODE("movbe %rdx, (%rdi)") CODE("movdiri %rdx, (%rdi)") \
    CODE("movdir64b (%rdi), %rdx") CODE("xsave (%rdi)") \
    CODE("fxsave (%rdi)") CODE("stmxcsr (%rdi)") CODE("fstpl (%rdi)") \
    CODE("fistpll (%rdi)") \
    /* Vectors */ \
    CODE("movq %mm0, (%rdi)") CODE("movntq %mm0, (%rdi)") \
    CODE("movq %xmm0, (%rdi)") CODE("movd %xmm0, (%rdi)") \
    CODE("movss %xmm0, (%rdi)") CODE("movsd %xmm0, (%rdi)") \
    CODE("movlps %xmm0, (%rdi)") CODE("movhps %xmm9, (%r9)") \
    CODE("movups %xmm0, (%rdi)") CODE("movaps %xmm0, 64(%rdi)") \
    CODE("movdqa %xmm0, (%rdi)") CODE("movdqu %xmm9, (%r9)") \
    CODE("movntps %xmm0, (%rdi)") CODE("movntdq %xmm0, (%rdi)") \
    CODE("pextrq $0, %xmm0, (%rdi)") CODE("maskmovdqu %xmm0, %xmm1") \
    CODE("vmovq %xmm0, (%rdi)") CODE("vmovsd %xmm0, (%rdi)") \
    CODE("vmovups %ymm0, (%rdi)") CODE("vmovdqa %ymm9, (%r9)") \
    CODE("vmovdqu %ymm0, (%rdi, %rcx)") CODE("vmovntdq %ymm0, (%rdi)") \
    CODE("vpmaskmovq %ymm0, %ymm1, (%rdi)") \
    CODE("vmovdqu64 %zmm0, (%rdi)") CODE("vmovdqa32 %xmm20, (%rdi)") \
    /* Transactions */ \
    CODE("xabort $1") CODE(PREFIX("0xc7, 0xf8, 0, 0, 0, 0")) \
    CODE(PREFIX("0xf3") "movq %rdx, (%rdi)") \
    CODE(PREFIX("0xf2") "lock addq %rdx, (%rdi)") \
    /* A REX prefix before others has no meaning */ \
    CODE(PREFIX("0x48, 0x2e") "movl %edx, (%rdi)") \
    CODE(PREFIX("0x48, 0x66, 0x89, 0x17")) \
    /* More prefixes than anybody makes */ \
    CODE(PREFIX("0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e") \
         "movq %rdx, (%rdi)") \
    /* No instruction is longer than 15 bytes */ \
    CODE(PREFIX("0x2e, 0x2e, 0x2e") \
         "lock addq $0x12345678, 0x12345678(%r12, %r13, 8)") \
    CODE(PREFIX("0x2e, 0x2e, 0x2e, 0x2e, 0x2e") \
         "lock addq $0x12345678, 0x12345678(%r12, %r13, 8)")

/* One after the other: 8, 4, 2, 1 byte of each register */
#define EACH_REG \
    ".irp r, rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, " \
    "r13, r14, r15\n" CODE("movq %\\r, 64(%rdi)") ".endr\n" \
    ".irp r, eax, ecx, edx, ebx, esp, ebp, esi, edi, r8d, r9d, r10d, r11d, " \
    "r12d, r13d, r14d, r15d\n" CODE("movl %\\r, 64(%rdi)") ".endr\n" \
    ".irp r, ax, cx, dx, bx, sp, bp, si, di, r8w, r9w, r10w, r11w, r12w, " \
    "r13w, r14w, r15w\n" CODE("movw %\\r, 64(%rdi)") ".endr\n" \
    ".irp r, al, cl, dl, bl, spl, bpl, sil, dil, r8b, r9b, r10b, r11b, r12b, " \
    "r13b, r14b, r15b\n" CODE("movb %\\r, 64(%rdi)") ".endr\n"

/* Every register as base, and all but rsp as index */
#define EACH_BASE \
    ".irp r, rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, " \
    "r13, r14, r15\n" CODE("movq %r9, (%\\r)") CODE("movq %r9, -64(%\\r)") \
    CODE("movq %r9, 192(%\\r)") CODE("movq %r9, (%\\r, %rcx, 2)") \
    CODE("movq %r9, 64(%\\r, %r12, 4)") CODE("movq %r9, -192(%\\r, %rax)") \
    ".endr\n" \
    ".irp r, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, " \
    "r14, r15\n" CODE("movq %r9, (%rdi, %\\r, 8)") \
    CODE("movq %r9, 4096(, %\\r, 8)") CODE("movq %r9, 64(%r13, %\\r)") ".endr\n"

#define STORE_CODE(_text, _size, _value, _result) CODE(_text)

__asm__(".pushsection .rodata\n"
        "decode_stores:\n"    STORES(STORE_CODE) CODE_END
        "decode_each_reg:\n"  EACH_REG CODE_END
        "decode_each_base:\n" EACH_BASE CODE_END
        "decode_others:\n"    OTHERS CODE_END
        ".popsection\n");

#define TABLE(_name) \
    extern const uint8_t _name[] __attribute__((visibility("hidden")))

TABLE(decode_stores);
TABLE(decode_each_reg);
TABLE(decode_each_base);
TABLE(decode_others);


typedef struct {
    const char *text;
    size_t     size;
    uint64_t   value;
    int        result;
} store_t;

#define STORE_ROW(_text, _size, _value, _result) \
    {_text, _size, _value, _result},

static const store_t stores[] = {STORES(STORE_ROW)};

static uint64_t regs[CXIEMU_DECODE_REGS];
static uint8_t  *page_end;


static void set_up(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *base;
    int i;

    if (page_end != NULL) {
        return;
    }

    base = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(base != MAP_FAILED);
    CU_ASSERT_FATAL(mprotect(base + page, page, PROT_NONE) == 0);
    page_end = base + page;
    for (i = 0; i < CXIEMU_DECODE_REGS; ++i) {
        regs[i] = WHOLE(i);
    }
}

/* Decodes where nothing can be read behind the code. */
static int decode(const uint8_t *code, size_t length, cxiemu_decode_t *found)
{
    uint8_t *at = page_end - length;

    memcpy(at, code, length);
    return cxiemu_decode_store(at, regs, found);
}

static void show(const char *text, const uint8_t *code, size_t length)
{
    size_t i;

    printf("  %s:", text);
    for (i = 0; i < length; ++i) {
        printf(" %02x", code[i]);
    }
    printf("\n");
}

/* Whether the entry at @a code is decoded into what it is. */
static int is_store(const uint8_t *code, const store_t *store)
{
    cxiemu_decode_t found = {0};
    size_t length         = *code++;
    int ok                = decode(code, length, &found);

    if (ok && (found.length == length) && (found.size == store->size) &&
        (found.value == store->value) && (found.result == store->result)) {
        return 1;
    }
    show(store->text, code, length);
    printf("  %s: length %zu, size %zu, value %#llx, result %d\n",
           ok ? "taken" : "refused", found.length, found.size,
           (unsigned long long)found.value, found.result);
    return 0;
}

ST_CASE(stores)
{
    const uint8_t *code = decode_stores;
    size_t i;

    set_up();
    for (i = 0; i < ST_CUNIT_COUNT(stores); ++i) {
        CU_ASSERT(is_store(code, &stores[i]));
        code += 1 + *code;
    }
    CU_ASSERT(*code == 0);
}

ST_CASE(each_register)
{
    static const size_t sizes[] = {8, 4, 2, 1};
    const uint8_t *code         = decode_each_reg;
    store_t store               = {.text = "register", .result = -1};
    size_t i;
    int reg;

    set_up();
    for (i = 0; i < ST_CUNIT_COUNT(sizes); ++i) {
        store.size = sizes[i];
        for (reg = RAX; reg <= R15; ++reg) {
            store.value = WHOLE(reg) & (UINT64_MAX >> (64 - (8 * sizes[i])));
            CU_ASSERT(is_store(code, &store));
            code += 1 + *code;
        }
    }
    CU_ASSERT(*code == 0);
}

ST_CASE(each_base)
{
    const store_t store = {"base or index", 8, WHOLE(R9), -1};
    const uint8_t *code = decode_each_base;
    unsigned count      = 0;

    set_up();
    for (; *code != 0; code += 1 + *code) {
        CU_ASSERT(is_store(code, &store));
        ++count;
    }
    CU_ASSERT(count == (16 * 6) + (15 * 3));
}

ST_CASE(others)
{
    const uint8_t *code = decode_others;
    cxiemu_decode_t found;
    unsigned number = 0;
    int taken;

    set_up();
    for (; *code != 0; code += 1 + *code) {
        ++number;
        taken = decode(code + 1, *code, &found);
        CU_ASSERT(!taken);
        if (taken) {
            printf("  entry %u\n", number);
            show("taken", code + 1, *code);
        }
    }
    CU_ASSERT(number > 0);
}


/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static uint8_t pick(uint64_t *state, const uint8_t *from, size_t count)
{
    return from[next_random(state) % count];
}

/* Random bytes; half of them begin as stores do. */
static void make_code(uint64_t *state, uint8_t code[CXIEMU_DECODE_MAX])
{
    static const uint8_t prefixes[] = {0x66, 0xf0, 0x2e, 0x36, 0x3e, 0x26};
    static const uint8_t opcodes[]  = {0x88, 0x89, 0x01, 0x87, 0xc6, 0xc7,
                                       0x81, 0x83, 0xff, 0x0f};
    static const uint8_t seconds[]  = {0xc0, 0xc1, 0xc3};
    uint64_t choice                 = next_random(state);
    size_t count                    = choice % 8;
    size_t i;

    for (i = 0; i < CXIEMU_DECODE_MAX; ++i) {
        code[i] = (uint8_t)next_random(state);
    }
    if (choice & 0x100) {
        return;
    }
    for (i = 0; i < count; ++i) {
        code[i] = pick(state, prefixes, sizeof(prefixes));
    }
    if (choice & 0x200) {
        code[i++] = 0x40 | (code[CXIEMU_DECODE_MAX - 1] & 0xf);
    }
    code[i] = pick(state, opcodes, sizeof(opcodes));
    if (code[i++] == 0x0f) {
        code[i++] = pick(state, seconds, sizeof(seconds));
    }
    if (choice & 0x400) {
        code[i] &= 0xc7; /* What all immediates need */
    }
}

/* What is taken has sense, and all of it is within its length. */
static int is_sound(const uint8_t code[CXIEMU_DECODE_MAX])
{
    cxiemu_decode_t found, again;

    if (!decode(code, CXIEMU_DECODE_MAX, &found)) {
        return 1;
    }
    if ((found.length < 2) || (found.length > CXIEMU_DECODE_MAX) ||
        (found.size == 0) || (found.size > 8) ||
        (found.size & (found.size - 1)) || (found.result < -1) ||
        (found.result >= CXIEMU_DECODE_REGS) ||
        (found.value & ~(UINT64_MAX >> (64 - (8 * found.size))))) {
        return 0;
    }
    return decode(code, found.length, &again) &&
           (again.length == found.length) && (again.size == found.size) &&
           (again.value == found.value) && (again.result == found.result);
}

ST_CASE(random_bytes)
{
    const char *text = getenv("DECODE_SEED");
    uint64_t seed    = (text != NULL) ? strtoull(text, NULL, 0) :
                                        (uint64_t)time(NULL);
    uint64_t state   = seed;
    uint8_t code[CXIEMU_DECODE_MAX];
    unsigned i, bad = 0;

    set_up();
    printf("DECODE_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (i = 0; (i < 1000000) && (bad < 10); ++i) {
        make_code(&state, code);
        if (!is_sound(code)) {
            show("not sound", code, sizeof(code));
            ++bad;
        }
    }
    CU_ASSERT(bad == 0);
}

#else

ST_CASE_CALL(nothing, st_cunit_skip("trap mode is for x86-64, and so is its "
                                    "decoder"))

#endif

ST_SUITE("cxiemu_decode")
