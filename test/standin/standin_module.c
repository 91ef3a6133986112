/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_module.c - modules, and the kernels in them, which run on threads.
 *
 * CUDA's driver takes PTX text for the device (STANDIN_ARCH) or an older one,
 * HIP a bundle of code objects of which one is for it, or what hipRTC has made.
 * A module is looked into: it has the kernels that it names, with arguments of
 * the size that it says. A kernel is its source, built for the host
 * (standin_device.h): those of src/ucs_ext/gstream_kernels.cu are in this
 * library, others in shared objects that STANDIN_KERNELS names.
 *
 * Each thread of a block is a thread here. A block begins when the device has
 * room for one more (STANDIN_SMS), and keeps that until it ends.
 */
#include "standin.h"
#include "standin_device.h"
#include "standin_rtc.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STANDIN_BUNDLE "__CLANG_OFFLOAD_BUNDLE__"
#define STANDIN_TARGET "hipv4-amdgcn-amd-amdhsa--"
#define STANDIN_KD     8 /* The arguments' size in a kernel's descriptor */


/* A block that runs */
typedef struct {
    const standin_cmd_t *cmd;
    unsigned            number;
    pthread_barrier_t   barrier;
    unsigned long long  shared; /* Between two barriers */
    unsigned            running; /* Threads; under the lock */
} standin_block_t;

typedef struct {
    standin_block_t *block;
    unsigned        number;
    pthread_t       thread;
    unsigned        round; /* Of looks at words */
} standin_thread_t;

static __thread standin_thread_t *standin_self;


/* What the sources of kernels use */

static unsigned standin_thread(void)
{
    return standin_self->number;
}

static unsigned standin_block(void)
{
    return standin_self->block->number;
}

static unsigned standin_threads(void)
{
    return standin_self->block->cmd->kernel.threads;
}

/* A thread that waits for others has no turn meanwhile */
static void standin_sync(void)
{
    pthread_mutex_lock(&standin_lock);
    standin_turn_put();
    pthread_mutex_unlock(&standin_lock);
    pthread_barrier_wait(&standin_self->block->barrier);
    pthread_mutex_lock(&standin_lock);
    standin_turn_get();
    pthread_mutex_unlock(&standin_lock);
}

static unsigned long long standin_share(unsigned long long value)
{
    if (standin_self->number == 0) {
        standin_self->block->shared = value;
    }
    standin_sync();
    value = standin_self->block->shared;
    standin_sync();
    return value;
}

static void standin_kernel_pause(void)
{
    pthread_mutex_lock(&standin_lock);
    standin_pause(standin_self->round++);
    pthread_mutex_unlock(&standin_lock);
}

/* The range of so many aligned bytes, used; NULL, and the device is lost, if
 * there is none. Of a stream that is over nothing is done any more. */
static standin_range_t *standin_kernel_use(uint64_t address, size_t size)
{
    standin_stream_t *stream = standin_self->block->cmd->stream;
    standin_range_t *range;

    if (standin_is_over(stream)) {
        return NULL;
    }
    range = (address % size) ? NULL : standin_use(address, size, 1);
    if ((range != NULL) && (range->kind == STANDIN_DEVICE) &&
        (range->device != stream->device) &&
        !(standin_devices[stream->device].peers & (1u << range->device))) {
        standin_unuse(range);
        range = NULL;
    }
    if (range == NULL) {
        standin_devices[stream->device].error = STANDIN_ERR_ADDRESS;
        standin_stream_wake();
    }
    return range;
}

/* The largest value where a kernel is to end */
static unsigned long long standin_kernel_load(unsigned long long address)
{
    unsigned long long value = UINT64_MAX;
    standin_range_t *range;

    pthread_mutex_lock(&standin_lock);
    range = standin_kernel_use(address, sizeof(value));
    if (range != NULL) {
        value = standin_load(standin_mem_inner(range, address), sizeof(value));
        standin_unuse(range);
    }
    pthread_mutex_unlock(&standin_lock);
    return value;
}

/* The memory may be one whose faults are handled, so the lock is not held */
static void standin_kernel_store(unsigned long long address,
                                 unsigned long long value)
{
    standin_range_t *range;
    char *inner;

    pthread_mutex_lock(&standin_lock);
    range = standin_kernel_use(address, sizeof(value));
    if (range != NULL) {
        inner = standin_mem_inner(range, address);
        pthread_mutex_unlock(&standin_lock);
        standin_store(inner, value, sizeof(value));
        pthread_mutex_lock(&standin_lock);
        standin_unuse(range);
    }
    pthread_mutex_unlock(&standin_lock);
}

/* As large a value as a load's where a kernel is to end */
static unsigned long long standin_kernel_add(unsigned long long address,
                                             unsigned long long value)
{
    unsigned long long old = UINT64_MAX;
    standin_range_t *range;

    pthread_mutex_lock(&standin_lock);
    range = standin_kernel_use(address, sizeof(value));
    if (range != NULL) {
        old = __atomic_fetch_add(
                (uint64_t*)standin_mem_inner(range, address), value,
                __ATOMIC_SEQ_CST);
        standin_unuse(range);
    }
    pthread_mutex_unlock(&standin_lock);
    return old;
}

/* Data, at its inner address, while the range is used and without the lock */
static void standin_kernel_copy(unsigned long long address, size_t size,
                                void *to, const void *from)
{
    standin_range_t *range;
    char *inner;

    pthread_mutex_lock(&standin_lock);
    range = standin_kernel_use(address, size);
    if (range != NULL) {
        inner = standin_mem_inner(range, address);
        pthread_mutex_unlock(&standin_lock);
        memcpy((to != NULL) ? to : inner, (from != NULL) ? from : inner, size);
        pthread_mutex_lock(&standin_lock);
        standin_unuse(range);
    }
    pthread_mutex_unlock(&standin_lock);
}

static void standin_kernel_get(void *to, unsigned long long address,
                               size_t size)
{
    memset(to, 0, size);
    standin_kernel_copy(address, size, to, NULL);
}

static void standin_kernel_put(unsigned long long address, const void *from,
                               size_t size)
{
    standin_kernel_copy(address, size, NULL, from);
}

static const standin_calls_t standin_kernel_calls = {
    .thread  = standin_thread,
    .block   = standin_block,
    .threads = standin_threads,
    .load    = standin_kernel_load,
    .store   = standin_kernel_store,
    .add     = standin_kernel_add,
    .get     = standin_kernel_get,
    .put     = standin_kernel_put,
    .sync    = standin_sync,
    .share   = standin_share,
    .pause   = standin_kernel_pause
};


/* Kernels that are there: the library's own first */

#define STANDIN_MAX_OBJECTS 8

static const standin_kernel_t *standin_tables[STANDIN_MAX_OBJECTS + 1];

static void standin_object_open(const char *name, unsigned *count)
{
    void *object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    void *table  = (object != NULL) ? dlsym(object, "standin_kernels") : NULL;

    if ((table == NULL) || (*count > STANDIN_MAX_OBJECTS)) {
        fprintf(stderr, "stand-in %s: STANDIN_KERNELS: %s\n",
                standin_kind.name, (table == NULL) ? dlerror() : "too many");
        abort();
    }
    standin_tables[(*count)++] = table;
}

static void standin_objects_open(void)
{
    const char *value = getenv("STANDIN_KERNELS");
    char *names       = (value != NULL) ? strdup(value) : NULL;
    unsigned count    = 0;
    char *rest        = names;
    char *name;

    standin_tables[count++] = standin_kernels;
    while ((name = strsep(&rest, ":")) != NULL) {
        if (*name != '\0') {
            standin_object_open(name, &count);
        }
    }
    free(names);
}

static const standin_kernel_t *standin_kernel_find(const char *name)
{
    const standin_kernel_t *kernel;
    unsigned i;

    for (i = 0; (i <= STANDIN_MAX_OBJECTS) && (standin_tables[i] != NULL);
         ++i) {
        for (kernel = standin_tables[i]; kernel->name != NULL; ++kernel) {
            if (strcmp(kernel->name, name) == 0) {
                return kernel;
            }
        }
    }
    return NULL;
}


/* Blocks and threads */

static void *standin_thread_main(void *arg)
{
    standin_thread_t *self = arg;
    standin_block_t *block = self->block;

    standin_self = self;
    pthread_mutex_lock(&standin_lock);
    standin_turn_get();
    pthread_mutex_unlock(&standin_lock);
    block->cmd->kernel.device->kernel->run(&standin_kernel_calls,
                                           block->cmd->data);
    pthread_mutex_lock(&standin_lock);
    standin_turn_put();
    if (--block->running == 0) {
        standin_sm_put(block->cmd->stream);
    }
    pthread_mutex_unlock(&standin_lock);
    return NULL;
}

/* The lock is held. The last block's first thread is the caller's. */
void standin_kernel_run(const standin_cmd_t *cmd)
{
    unsigned num_blocks      = cmd->kernel.blocks;
    unsigned num_threads     = cmd->kernel.threads;
    unsigned last            = (num_blocks - 1) * num_threads;
    standin_block_t *blocks  = calloc(num_blocks, sizeof(*blocks));
    standin_thread_t *thread = calloc(num_blocks * num_threads,
                                      sizeof(*thread));
    unsigned i;

    if ((blocks == NULL) || (thread == NULL)) {
        abort();
    }
    for (i = 0; i < num_blocks * num_threads; ++i) {
        if (i % num_threads == 0) {
            standin_sm_get(cmd->stream);
            blocks[i / num_threads].cmd     = cmd;
            blocks[i / num_threads].number  = i / num_threads;
            blocks[i / num_threads].running = num_threads;
            pthread_barrier_init(&blocks[i / num_threads].barrier, NULL,
                                 num_threads);
        }
        thread[i].block  = &blocks[i / num_threads];
        thread[i].number = i % num_threads;
        if ((i != last) && (pthread_create(&thread[i].thread, NULL,
                                           standin_thread_main,
                                           &thread[i]) != 0)) {
            abort();
        }
    }
    pthread_mutex_unlock(&standin_lock);
    standin_thread_main(&thread[last]);
    for (i = 0; i < num_blocks * num_threads; ++i) {
        if (i != last) {
            pthread_join(thread[i].thread, NULL);
        }
    }
    for (i = 0; i < num_blocks; ++i) {
        pthread_barrier_destroy(&blocks[i].barrier);
    }
    free(blocks);
    free(thread);
    pthread_mutex_lock(&standin_lock);
}

/* Modules. Functions are made when they are asked for, and stay. */

struct standin_module {
    standin_module_t *next;
    standin_ctx_t    *ctx;
    const char       *image; /* PTX text; a code object; what hipRTC made */
    standin_func_t   *funcs;
};

static standin_module_t *standin_modules;


/* PTX text begins with these, in lines of their own */
static int standin_ptx_check(const char *text)
{
    const char *next   = text;
    const char *target = strstr(text, "\n.target sm_");
    int sm             = 0;

    while ((strncmp(next, "//", 2) == 0) || (*next == '\n')) {
        next += strcspn(next, "\n") + 1;
    }
    return (strncmp(next, ".version ", 9) == 0) && (target != NULL) &&
           (sscanf(target, "\n.target sm_%d", &sm) == 1) &&
           (sm <= standin_set.sm) &&
           (strstr(next, "\n.address_size 64\n") != NULL) ?
           STANDIN_OK : STANDIN_ERR_PTX;
}

/* The size of the arguments, one of which is a structure; 0: no such kernel */
static size_t standin_ptx_size(const char *text, const char *name)
{
    char begin[128];
    unsigned size = 0;
    const char *entry;

    snprintf(begin, sizeof(begin), ".visible .entry %s(", name);
    entry = strstr(text, begin);
    if ((entry == NULL) ||
        (sscanf(entry + strlen(begin), " .param .align %*u .b8 %*[^[][%u]",
                &size) != 1)) {
        return 0;
    }
    return size;
}

/* A bundle: its magic, a count, and so often where a part is, its size, the
 * length of a name and that name */
static int standin_bundle_find(const char *bundle, const char **image)
{
    const char *next = bundle + strlen(STANDIN_BUNDLE);
    const char *arch = getenv("STANDIN_ARCH");
    char name[128];
    uint64_t count, part[3];

    snprintf(name, sizeof(name), STANDIN_TARGET "%s",
             (arch != NULL) ? arch : "gfx90a");
    memcpy(&count, next, sizeof(count));
    next += sizeof(count);
    for (; count > 0; --count, next += part[2]) {
        memcpy(part, next, sizeof(part));
        next += sizeof(part);
        if ((part[2] == strlen(name)) && !strncmp(next, name, part[2])) {
            *image = bundle + part[0];
            return STANDIN_OK;
        }
    }
    return STANDIN_ERR_NO_BINARY;
}

static const char *standin_rtc_source(const char *image)
{
    size_t length = strlen(STANDIN_RTC_BEGIN);

    return (strncmp(image, STANDIN_RTC_BEGIN, length) == 0) ? image + length :
                                                              NULL;
}

static int standin_hip_check(const char *image, const char **found)
{
    Elf64_Ehdr header;

    *found = image;
    if (standin_rtc_source(image) != NULL) {
        return STANDIN_OK;
    }
    if (strncmp(image, STANDIN_BUNDLE, strlen(STANDIN_BUNDLE)) == 0) {
        STANDIN_TRY(standin_bundle_find(image, found));
    }
    if (strncmp(*found, ELFMAG, SELFMAG) != 0) {
        return STANDIN_ERR_IMAGE;
    }
    memcpy(&header, *found, sizeof(header));
    return (header.e_machine == EM_AMDGPU) ? STANDIN_OK : STANDIN_ERR_IMAGE;
}

/* Where a code object has an address */
static const char *standin_elf_at(const char *elf, const Elf64_Ehdr *header,
                                  uint64_t address)
{
    Elf64_Phdr part;
    unsigned i;

    for (i = 0; i < header->e_phnum; ++i) {
        memcpy(&part, elf + header->e_phoff + i * sizeof(part), sizeof(part));
        if ((part.p_type == PT_LOAD) && (address >= part.p_vaddr) &&
            (address - part.p_vaddr < part.p_filesz)) {
            return elf + part.p_offset + (address - part.p_vaddr);
        }
    }
    return NULL;
}

/* Of a kernel's descriptor, which is the symbol NAME.kd */
static size_t standin_elf_size(const char *elf, const char *name)
{
    uint32_t size = 0;
    Elf64_Shdr section, strings;
    Elf64_Ehdr header;
    Elf64_Sym symbol;
    char wanted[128];
    const char *kd;
    uint64_t i, j;

    memcpy(&header, elf, sizeof(header));
    snprintf(wanted, sizeof(wanted), "%s.kd", name);
    for (i = 0; i < header.e_shnum; ++i) {
        memcpy(&section, elf + header.e_shoff + i * sizeof(section),
               sizeof(section));
        if (section.sh_type != SHT_DYNSYM) {
            continue;
        }
        memcpy(&strings, elf + header.e_shoff +
                         section.sh_link * sizeof(strings), sizeof(strings));
        for (j = 0; j < section.sh_size / sizeof(symbol); ++j) {
            memcpy(&symbol, elf + section.sh_offset + j * sizeof(symbol),
                   sizeof(symbol));
            if (strcmp(elf + strings.sh_offset + symbol.st_name, wanted) == 0) {
                kd = standin_elf_at(elf, &header, symbol.st_value);
                memcpy(&size, kd + STANDIN_KD, sizeof(size));
            }
        }
    }
    return size;
}

/* What the module says of a kernel's arguments; 0: it has no such kernel */
static size_t standin_module_size(const char *image,
                                  const standin_kernel_t *kernel)
{
    const char *source;

    if (!standin_kind.is_hip) {
        return standin_ptx_size(image, kernel->name);
    }
    source = standin_rtc_source(image);
    if (source == NULL) {
        return standin_elf_size(image, kernel->name);
    }
    return (strstr(source, kernel->name) != NULL) ? kernel->size : 0;
}

int standin_module_load(void **handle, const void *image)
{
    const char *found = image;
    standin_module_t *module;
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    err = standin_capture_check();
    if ((err == STANDIN_OK) && !standin_set.modules) {
        err = STANDIN_ERR_NO_MEMORY;
    }
    if (err == STANDIN_OK) {
        err = standin_kind.is_hip ? standin_hip_check(image, &found) :
                                    standin_ptx_check(image);
    }
    module = (err == STANDIN_OK) ? calloc(1, sizeof(*module)) : NULL;
    if (module != NULL) {
        module->ctx     = ctx;
        /* HIP does not copy what it is given */
        module->image   = standin_kind.is_hip ? found : strdup(image);
        module->next    = standin_modules;
        standin_modules = module;
        *handle         = module;
        ++standin_count.modules;
    }
    return standin_leave(err);
}

/* The lock is held */
static int standin_func_get(standin_module_t *module, const char *name,
                            standin_func_t **func_p)
{
    const standin_kernel_t *kernel = standin_kernel_find(name);
    standin_func_t *func           = module->funcs;
    size_t size;

    while ((func != NULL) && (func->kernel != kernel)) {
        func = func->next;
    }
    if (func == NULL) {
        size = (kernel != NULL) ? standin_module_size(module->image, kernel) :
                                  0;
        if (size == 0) {
            return STANDIN_ERR_NOT_FOUND;
        }
        func = calloc(1, sizeof(*func));
        if (func == NULL) {
            return STANDIN_ERR_NO_MEMORY;
        }
        func->next    = module->funcs;
        func->kernel  = kernel;
        func->ctx     = module->ctx;
        func->size    = size;
        module->funcs = func;
    }
    *func_p = func;
    return STANDIN_OK;
}

int standin_module_function(void **handle, void *of, const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    standin_func_t *func       = NULL;
    standin_module_t *module;
    standin_ctx_t *ctx;
    int err;

    pthread_once(&once, standin_objects_open);
    STANDIN_TRY(standin_enter_ctx(&ctx));
    for (module = standin_modules; (module != NULL) && (module != of);
         module = module->next) {
    }
    err = (module != NULL) ? standin_func_get(module, name, &func) :
                             STANDIN_ERR_HANDLE;
    if (err == STANDIN_OK) {
        *handle = func;
    }
    return standin_leave(err);
}

const standin_func_t *standin_module_find(const void *handle)
{
    const standin_module_t *module;
    const standin_func_t *func;

    for (module = standin_modules; module != NULL; module = module->next) {
        for (func = module->funcs; func != NULL; func = func->next) {
            if (func == handle) {
                return func;
            }
        }
    }
    return NULL;
}
