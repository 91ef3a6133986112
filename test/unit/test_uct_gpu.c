/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_gpu.c - memory of GPUs: told from the host's, registered, refused.
 *
 * No GPU is needed: stand-ins for the runtimes (gpu_standin.c) call some of the
 * host's memory a GPU's, and the calls of libfabric are looked at on their way
 * to a provider that is given plain memory (fab_intercept.h).
 */
#include "fab_intercept.h"
#include "st_cunit.h"
#include "uct_errors.h"
#include "uct_region.h"

#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>
#include <uct/api/version.h>

#include <rdma/fi_domain.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENGTH 16384
#define DEVICE 3

#define CUDA UCS_BIT(UCS_MEMORY_TYPE_CUDA)
#define ROCM UCS_BIT(UCS_MEMORY_TYPE_ROCM)
#define HOST UCS_BIT(UCS_MEMORY_TYPE_HOST)

/* The middle of it is called a GPU's */
static uint8_t memory[3 * LENGTH] __attribute__((aligned(4096)));

static uint8_t *const gpu_memory = memory + LENGTH;

/* A runtime */
typedef struct {
    const char        *file;
    ucs_memory_type_t type;
    int               iface;
    int               device; /* libfabric is told */
} runtime_t;

static const runtime_t runtimes[] = {
    {GPU_STANDIN_DIR "/gpu_standin_cuda.so", UCS_MEMORY_TYPE_CUDA,
     FI_HMEM_CUDA, DEVICE},
    {GPU_STANDIN_DIR "/gpu_standin_rocm.so", UCS_MEMORY_TYPE_ROCM,
     FI_HMEM_ROCR, 0}
};

static unsigned loaded;

/* Loads a runtime, as a program does that uses the GPU, and has it call memory
 * its own */
static void label(unsigned number, size_t length, int is_managed)
{
    void *library = dlopen(runtimes[number].file, RTLD_NOW | RTLD_LOCAL);
    void (*func)(const void*, size_t, int, int);

    CU_ASSERT_FATAL(library != NULL);
    *(void**)&func = dlsym(library, "gpu_standin_label");
    CU_ASSERT_FATAL(func != NULL);
    func(gpu_memory, length, DEVICE, is_managed);
    loaded |= 1u << number;
}

/* Nothing is called a GPU's any more */
static void unlabel(void)
{
    unsigned i;

    for (i = 0; i < ST_CUNIT_COUNT(runtimes); ++i) {
        label(i, 0, 0);
    }
}

static ucs_status_t domain_try(uct_md_h *md_p, const char *gpu_memory_setting,
                               const char *cache)
{
    uct_component_h component = uct_pair_find_component();
    uct_md_config_t *config;
    ucs_status_t status;

    CU_ASSERT_FATAL(component != NULL);
    CU_ASSERT_FATAL(uct_md_config_read(component, NULL, NULL, &config) ==
                    UCS_OK);
    (void)uct_pair_set(config, "RCACHE", cache);
    CU_ASSERT_FATAL(uct_pair_set(config, "GPU_MEMORY",
                                      gpu_memory_setting) == UCS_OK);
    status = uct_md_open(component, uct_pair_device(), config, md_p);
    uct_config_release(config);
    return status;
}

static uct_md_h domain_open_cache(const char *gpu_memory_setting,
                                  const char *cache, uct_md_attr_t *attr)
{
    uct_md_h md = NULL;
    uct_mem_h memh;

    CU_ASSERT_FATAL(domain_try(&md, gpu_memory_setting, cache) == UCS_OK);
    CU_ASSERT_FATAL(uct_md_query(md, attr) == UCS_OK);
    /* The first region opens what all need */
    CU_ASSERT_FATAL(uct_md_mem_reg(md, memory, 1, UCT_MD_MEM_ACCESS_ALL,
                                   &memh) == UCS_OK);
    CU_ASSERT(uct_md_mem_dereg(md, memh) == UCS_OK);
    /* What is copied is copied by the processor */
    CU_ASSERT(attr->cap.access_mem_types == HOST);
    return md;
}

/* Calls the body for each runtime, which says that the memory is its own, and
 * that a processor reaches it, too, or not; with a provider that takes it, or
 * not. */
static void each_runtime(void (*body)(const runtime_t *runtime), int is_managed,
                         int is_taken)
{
    unsigned i;

    for (i = 0; i < ST_CUNIT_COUNT(runtimes); ++i) {
        unlabel();
        label(i, LENGTH, is_managed);
        fab_intercept_gpu_memory(is_taken, 0);
        body(&runtimes[i]);
    }
    fab_intercept_gpu_memory(0, 0);
    unlabel();
}

static uct_md_h domain_open(const char *gpu_memory_setting, uct_md_attr_t *attr)
{
    return domain_open_cache(gpu_memory_setting, "n", attr);
}

/* Registers, looks at what was asked of libfabric, and undoes it */
static void check_registered(uct_md_h md, uint8_t *address, int iface,
                             int device, int is_device_only)
{
    int64_t open = fab_intercept_open();
    fab_region_t region;
    uct_mem_h memh;

    CU_ASSERT_FATAL(uct_md_mem_reg(md, address, 100, UCT_MD_MEM_ACCESS_ALL,
                                   &memh) == UCS_OK);
    region = fab_intercept_region();
    CU_ASSERT(region.address == address);
    CU_ASSERT(region.length == 100);
    CU_ASSERT(region.iface == iface);
    CU_ASSERT(region.device == device);
    CU_ASSERT(((region.flags & FI_HMEM_DEVICE_ONLY) != 0) == is_device_only);
    CU_ASSERT(uct_md_mem_dereg(md, memh) == UCS_OK);
    CU_ASSERT(fab_intercept_open() == open);
}

static void check_refused(uct_md_h md, uint8_t *address, size_t length,
                          ucs_status_t status, const char *word)
{
    int64_t open = fab_intercept_open();
    uct_mem_h memh;

    uct_errors_begin();
    CU_ASSERT(uct_md_mem_reg(md, address, length, UCT_MD_MEM_ACCESS_ALL,
                             &memh) == status);
    CU_ASSERT(uct_errors_end() == 1);
    CU_ASSERT(strstr(uct_errors_last(), word) != NULL);
    uct_errors_begin();
    CU_ASSERT(uct_md_mem_reg(md, address, length, UCT_MD_MEM_ACCESS_ALL |
                             UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh) == status);
    CU_ASSERT(uct_errors_end() == 0);
    CU_ASSERT(fab_intercept_open() == open);
}


/* Nothing is loaded for the sake of asking */
ST_CASE_IF(not_loaded, loaded == 0, "an earlier case has loaded the runtimes")
{
    ucs_memory_type_t type;
    uct_md_attr_t attr;
    uct_md_h md;

    fab_intercept_gpu_memory(1, 1);
    md = domain_open("try", &attr);
    CU_ASSERT(attr.cap.reg_mem_types == HOST);
    CU_ASSERT(attr.cap.detect_mem_types == 0);
    CU_ASSERT(!(attr.cap.flags & UCT_MD_FLAG_NEED_MEMH));
    CU_ASSERT(uct_md_detect_memory_type(md, gpu_memory, 1, &type) ==
              UCS_ERR_UNSUPPORTED);
    check_registered(md, gpu_memory, FI_HMEM_SYSTEM, 0, 0);
    uct_md_close(md);
    CU_ASSERT(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) == NULL);
    CU_ASSERT(dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_NOLOAD) == NULL);

    /* A program that says so beforehand may load them later */
    md = domain_open("y", &attr);
    CU_ASSERT(attr.cap.reg_mem_types == (HOST | CUDA | ROCM));
    CU_ASSERT(attr.cap.detect_mem_types == (CUDA | ROCM));
    label(0, LENGTH, 0);
    check_registered(md, gpu_memory, FI_HMEM_CUDA, DEVICE, 1);
    uct_md_close(md);
    fab_intercept_gpu_memory(0, 0);
    unlabel();
}

static void check_detected(uct_md_h md, const runtime_t *runtime)
{
    uct_md_mem_attr_t attr = {
        .field_mask = UCT_MD_MEM_ATTR_FIELD_MEM_TYPE |
                      UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS |
                      UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH |
                      UCT_MD_MEM_ATTR_FIELD_SYS_DEV
    };
    ucs_memory_type_t type;

    CU_ASSERT(uct_md_detect_memory_type(md, gpu_memory + 5, 7, &type) ==
              UCS_OK);
    CU_ASSERT(type == runtime->type);
    CU_ASSERT(uct_md_detect_memory_type(md, gpu_memory - 1, 1, &type) ==
              UCS_ERR_INVALID_ADDR);
    CU_ASSERT(uct_md_detect_memory_type(md, NULL, 1, &type) ==
              UCS_ERR_INVALID_ADDR);
    CU_ASSERT(uct_md_mem_query(md, gpu_memory + 5, 7, &attr) == UCS_OK);
    CU_ASSERT(attr.mem_type == runtime->type);
    CU_ASSERT(attr.base_address == gpu_memory);
    CU_ASSERT(attr.alloc_length == LENGTH);
    CU_ASSERT(attr.sys_dev == UCS_SYS_DEVICE_ID_UNKNOWN);
    CU_ASSERT(uct_md_mem_query(md, memory, 7, &attr) == UCS_ERR_INVALID_ADDR);
}

static void run_registered(const runtime_t *runtime)
{
    uct_md_attr_t attr;
    uct_md_h md = domain_open("try", &attr);

    CU_ASSERT(attr.cap.reg_mem_types == (HOST | CUDA | ROCM));
    CU_ASSERT(attr.cap.detect_mem_types == (CUDA | ROCM));
    CU_ASSERT(!(attr.cap.flags & UCT_MD_FLAG_NEED_MEMH));
    check_detected(md, runtime);
    check_registered(md, gpu_memory + 8, runtime->iface, runtime->device, 1);
    check_registered(md, memory, FI_HMEM_SYSTEM, 0, 0);
    check_refused(md, gpu_memory + 1, LENGTH, UCS_ERR_INVALID_ADDR, "smaller");
    uct_md_close(md);
}

ST_CASE_CALL(registered, each_runtime(run_registered, 0, 1))

/* UCX without a module for a GPU does not notice that its memory is freed: what
 * comes to lie there is registered anew */
static void run_not_kept(const runtime_t *runtime)
{
    uct_md_attr_t attr;
    uct_md_h md = domain_open_cache("try", "try", &attr);

    CU_ASSERT(attr.cap.detect_mem_types == (CUDA | ROCM));
    /* Nothing of it is open when it was given back */
    check_registered(md, gpu_memory, runtime->iface, runtime->device, 1);
    check_registered(md, gpu_memory, runtime->iface, runtime->device, 1);
    uct_md_close(md);
}

ST_CASE_CALL(not_kept, each_runtime(run_not_kept, 0, 1))

/* A processor reaches both: UCX may copy them, and is not told of them. What
 * belongs to a processor is registered as such */
static void run_managed(const runtime_t *runtime)
{
    int is_cuda = (runtime->type == UCS_MEMORY_TYPE_CUDA);
    ucs_memory_type_t type;
    uct_md_attr_t attr;
    uct_md_h md = domain_open("try", &attr);

    CU_ASSERT(uct_md_detect_memory_type(md, gpu_memory, 1, &type) ==
              UCS_ERR_INVALID_ADDR);
    check_registered(md, gpu_memory, is_cuda ? FI_HMEM_CUDA : FI_HMEM_SYSTEM,
                     is_cuda ? DEVICE : 0, 0);
    uct_md_close(md);
}

ST_CASE_CALL(managed, each_runtime(run_managed, 1, 1))

/* Non-zero with a reason if the provider takes memory of GPUs */
static int is_taken(void)
{
    if (!st_env_has_provider("cxi")) {
        return 0;
    }
    st_cunit_skip("cxi can register the memory of GPUs");
    return 1;
}

/* The provider does not take it: that is said, and nothing else suffers */
static void run_refused(const runtime_t *runtime)
{
    uct_md_attr_t attr;
    uct_md_h md = domain_open("try", &attr);

    CU_ASSERT(attr.cap.reg_mem_types == HOST);
    CU_ASSERT(attr.cap.detect_mem_types == 0);
    check_registered(md, memory, FI_HMEM_SYSTEM, 0, 0);
    check_refused(md, gpu_memory, 100, UCS_ERR_UNSUPPORTED, "FI_HMEM");
    check_registered(md, memory, FI_HMEM_SYSTEM, 0, 0);
    uct_md_close(md);

    /* It is not told from the host's */
    md = domain_open("n", &attr);
    CU_ASSERT(attr.cap.reg_mem_types == HOST);
    check_registered(md, gpu_memory, FI_HMEM_SYSTEM, 0, 0);
    uct_md_close(md);

    uct_errors_begin();
    CU_ASSERT(domain_try(&md, "y", "n") != UCS_OK);
    CU_ASSERT(uct_errors_end() > 0);
}

ST_CASE(refused)
{
    if (!is_taken()) {
        each_runtime(run_refused, 0, 0);
    }
}

/* The error names the setting; UCX is given no device */
ST_CASE(must)
{
    if (is_taken()) {
        return;
    }
    /* It is said once, until something else was asked for */
    (void)uct_pair_count_devices();
    CU_ASSERT_FATAL(setenv("UCX_CXI_TRIG_GPU_MEMORY", "y", 1) == 0);
    uct_errors_begin();
    CU_ASSERT(uct_pair_count_devices() == 0);
    CU_ASSERT(uct_errors_end() == 1);
    CU_ASSERT(strstr(uct_errors_last(), "UCX_CXI_TRIG_GPU_MEMORY=y") != NULL);
    CU_ASSERT_FATAL(unsetenv("UCX_CXI_TRIG_GPU_MEMORY") == 0);
    CU_ASSERT(uct_pair_count_devices() > 0);
}

/* Puts and gets of it come through; the provider is told whose it is where it
 * wants to know */
static void check_moved(int wants_desc)
{
    uct_iov_t iov = {
        .buffer = gpu_memory,
        .length = 1000,
        .stride = 0,
        .count  = 1
    };
    fab_region_t local;
    uct_region_t region;
    uct_md_attr_t attr;
    uct_done_t done;
    uct_mem_h memh;
    uct_pair_t pair;

    label(0, LENGTH, 0);
    fab_intercept_gpu_memory(1, wants_desc);
    CU_ASSERT_FATAL(uct_pair_create(&pair, NULL) == 0);
    CU_ASSERT_FATAL(uct_md_query(pair.a.md, &attr) == UCS_OK);
    CU_ASSERT(((attr.cap.flags & UCT_MD_FLAG_NEED_MEMH) != 0) == wants_desc);
    uct_region_open(&region, &pair, LENGTH);
    CU_ASSERT_FATAL(uct_md_mem_reg(pair.a.md, gpu_memory, LENGTH,
                                   UCT_MD_MEM_ACCESS_ALL, &memh) == UCS_OK);
    local    = fab_intercept_region();
    iov.memh = memh;

    uct_region_fill(gpu_memory, 1000, 1);
    uct_done_init(&done, 1);
    CU_ASSERT_FATAL(uct_ep_put_zcopy(pair.a.peer, &iov, 1,
                                     uct_region_at(&region, 0),
                                     region.rkey.rkey, &done.comp) ==
                    UCS_INPROGRESS);
    CU_ASSERT(fab_intercept_write_desc() == (wants_desc ? local.desc : NULL));
    CU_ASSERT(uct_done_wait(&done, &pair) == UCS_OK);
    CU_ASSERT(memcmp(region.data, gpu_memory, 1000) == 0);

    uct_region_fill(region.data, 1000, 2);
    uct_done_init(&done, 1);
    CU_ASSERT_FATAL(uct_ep_get_zcopy(pair.a.peer, &iov, 1,
                                     uct_region_at(&region, 0),
                                     region.rkey.rkey, &done.comp) ==
                    UCS_INPROGRESS);
    CU_ASSERT(uct_done_wait(&done, &pair) == UCS_OK);
    CU_ASSERT(memcmp(region.data, gpu_memory, 1000) == 0);

    /* The payload of a short one is the host's */
    CU_ASSERT(uct_ep_put_short(pair.a.peer, memory, 8,
                               uct_region_at(&region, 0), region.rkey.rkey) ==
              UCS_OK);
    CU_ASSERT(fab_intercept_write_desc() == NULL);
    CU_ASSERT(uct_pair_flush(&pair, pair.a.peer) == UCS_OK);

    CU_ASSERT(uct_md_mem_dereg(pair.a.md, memh) == UCS_OK);
    uct_region_close(&region);
    uct_pair_destroy(&pair);
    fab_intercept_gpu_memory(0, 0);
    unlabel();
}

ST_CASE_CALL(moved, check_moved(0))
ST_CASE_CALL(moved_with_desc, check_moved(1))

/* Regions of the trigger extension are those that streams of a GPU use */
ST_CASE(deferred)
{
    uct_trig_iface_attr_t attr;
    uct_trig_mem_h mem;
    uct_pair_t pair;
    int is_taken;

    /* The provider cxi takes it as it is */
    for (is_taken = !strcmp(uct_pair_device(), "cxi0"); is_taken < 2;
         ++is_taken) {
        label(1, LENGTH, 0);
        fab_intercept_gpu_memory(is_taken, is_taken);
        CU_ASSERT_FATAL(uct_pair_create(&pair, NULL) == 0);
        CU_ASSERT(uct_trig_iface_query(pair.a.iface, &attr) == UCS_OK);
        CU_ASSERT(((attr.flags & UCT_TRIG_IFACE_FLAG_LOCAL_MEM) != 0) ==
                  is_taken);
        uct_errors_begin();
        CU_ASSERT(uct_trig_mem_reg(pair.a.iface, gpu_memory, 64, NULL, &mem) ==
                  (is_taken ? UCS_OK : UCS_ERR_UNSUPPORTED));
        CU_ASSERT(uct_errors_end() == !is_taken);
        if (is_taken) {
            CU_ASSERT(fab_intercept_region().iface == FI_HMEM_ROCR);
            CU_ASSERT(uct_trig_mem_dereg(mem) == UCS_OK);
        }
        uct_pair_destroy(&pair);
        unlabel();
    }
    fab_intercept_gpu_memory(0, 0);
}

/* What UCP thinks that GPU's memory is */
static ucs_memory_type_t type_for_ucp(ucs_ternary_auto_value_t memtype_cache)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_RMA
    };
    ucp_mem_map_params_t map = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = gpu_memory,
        .length     = 100
    };
    ucp_mem_attr_t attr = {
        .field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE
    };
    ucs_ternary_auto_value_t saved = ucs_global_opts.enable_memtype_cache;
    ucp_config_t *config;
    ucp_context_h context;
    ucp_mem_h memh;

    ucs_global_opts.enable_memtype_cache = memtype_cache;
    CU_ASSERT_FATAL(ucp_config_read(NULL, NULL, &config) == UCS_OK);
    CU_ASSERT_FATAL(ucp_config_modify(config, "TLS", "cxi_trig") == UCS_OK);
    CU_ASSERT_FATAL(ucp_init(&params, config, &context) == UCS_OK);
    ucp_config_release(config);
    CU_ASSERT_FATAL(ucp_mem_map(context, &map, &memh) == UCS_OK);
    CU_ASSERT(ucp_mem_query(memh, &attr) == UCS_OK);
    CU_ASSERT(ucp_mem_unmap(context, memh) == UCS_OK);
    ucp_cleanup(context);
    ucs_global_opts.enable_memtype_cache = saved;
    return attr.mem_type;
}

/* UCP asks the transport, if it does not trust its own list of what GPUs have
 * allocated, which is empty without a module of UCX for them */
static void run_ucp(const runtime_t *runtime)
{
    CU_ASSERT(type_for_ucp(UCS_NO) == runtime->type);
    CU_ASSERT(fab_intercept_region().iface == runtime->iface);
    CU_ASSERT(type_for_ucp(UCS_TRY) == UCS_MEMORY_TYPE_HOST);
}

ST_CASE_CALL(ucp, each_runtime(run_ucp, 0, 1))

int main(int argc, char **argv)
{
#if UCT_API > UCT_VERSION(1, 13)
    /* A module of UCX's own may bring the real runtimes along; UCX has read its
     * settings by now */
    if (getenv("UCX_MODULES") == NULL) {
        (void)setenv("UCX_MODULES", "^rocm,cuda", 1);
        execv("/proc/self/exe", argv);
        perror("/proc/self/exe");
        return EXIT_FAILURE;
    }
#endif
    return st_cunit_main("uct_gpu", argc, argv);
}
