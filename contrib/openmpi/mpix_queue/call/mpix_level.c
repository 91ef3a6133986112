/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_level.c - the level of threads that MPI is asked for.
 *
 * A thread of the library calls MPI for messages that are used once. What the
 * program is linked with tells whether it has such: the dynamic linker's tables
 * of the program and of its libraries name the functions that they call.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE 1 /* dl_iterate_phdr() */
#endif
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_level.h"
#include "once/mpix_fifo.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>


/* What an object's dynamic section tells. */
typedef struct mpix_level_object {
    const ElfW(Sym)  *symbols;
    const char       *names;
    const ElfW(Rela) *relas[2]; /* Of data, and of functions */
    size_t           sizes[2];  /* In bytes */
    size_t           num_moved; /* First ones, of no symbol */
} mpix_level_object_t;


static int mpix_level_is_once(const char *name)
{
    static const char *const begins[] = {
        "MPIX_Enqueue_send_", "MPIX_Enqueue_recv_", "mpix_f08_enqueue_send_",
        "mpix_f08_enqueue_recv_", "MPIX_Mpich_"
    };
    unsigned i;

    for (i = 0; i < ucs_static_array_size(begins); ++i) {
        if (!strncmp(name, begins[i], strlen(begins[i]))) {
            return 1;
        }
    }
    return 0;
}

/* Not all C libraries add the object's base to what its section has. */
static const void *mpix_level_address(const struct dl_phdr_info *info,
                                      const ElfW(Dyn) *dyn)
{
    return (const void*)((dyn->d_un.d_ptr < info->dlpi_addr) ?
                                 (dyn->d_un.d_ptr + info->dlpi_addr) :
                                 dyn->d_un.d_ptr);
}

static void mpix_level_read(const struct dl_phdr_info *info,
                            const ElfW(Dyn) *dyn, mpix_level_object_t *object)
{
    for (; dyn->d_tag != DT_NULL; ++dyn) {
        switch (dyn->d_tag) {
        case DT_SYMTAB:
            object->symbols = mpix_level_address(info, dyn);
            break;
        case DT_STRTAB:
            object->names = mpix_level_address(info, dyn);
            break;
        case DT_RELA:
            object->relas[0] = mpix_level_address(info, dyn);
            break;
        case DT_RELASZ:
            object->sizes[0] = dyn->d_un.d_val;
            break;
        case DT_RELACOUNT:
            object->num_moved = dyn->d_un.d_val;
            break;
        case DT_JMPREL:
            object->relas[1] = mpix_level_address(info, dyn);
            break;
        case DT_PLTRELSZ:
            object->sizes[1] = dyn->d_un.d_val;
            break;
        default:
            break;
        }
    }
}

/* Whether an object calls functions of messages that are used once, which are
 * another one's. */
static int mpix_level_object_uses(const mpix_level_object_t *object)
{
    const ElfW(Sym) *symbol;
    size_t i, j;

    for (i = 0; i < 2; ++i) {
        for (j = (i == 0) ? object->num_moved : 0;
             j < (object->sizes[i] / sizeof(ElfW(Rela))); ++j) {
            symbol = &object->symbols[ELF64_R_SYM(object->relas[i][j].r_info)];
            if ((symbol->st_shndx == SHN_UNDEF) && (symbol->st_name != 0) &&
                mpix_level_is_once(object->names + symbol->st_name)) {
                return 1;
            }
        }
    }
    return 0;
}

/* For dl_iterate_phdr(), which ends with what this returns unless it is 0. */
static int mpix_level_look(struct dl_phdr_info *info, size_t size, void *arg)
{
    mpix_level_object_t object = {.symbols = NULL};
    int i;

    for (i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            mpix_level_read(info,
                            (const void*)(info->dlpi_addr +
                                          info->dlpi_phdr[i].p_vaddr),
                            &object);
        }
    }
    return (object.symbols != NULL) && (object.names != NULL) &&
           mpix_level_object_uses(&object);
}

/* What the environment says: 1, 0, or -1 for nothing. */
static int mpix_level_setting(void)
{
    const char *value = getenv("MPIX_QUEUE_THREAD_MULTIPLE");

    return ((value == NULL) || (*value == '\0')) ? -1 :
           (strchr("yY1", *value) != NULL);
}

int mpix_level_required(int required)
{
    const int setting = mpix_level_setting();

    if ((setting == 1) ||
        ((setting == -1) && !mpix_only_is_forced() &&
         (dl_iterate_phdr(mpix_level_look, NULL) != 0))) {
        return MPI_THREAD_MULTIPLE;
    }
    return ucs_max(required, MPI_THREAD_FUNNELED);
}
