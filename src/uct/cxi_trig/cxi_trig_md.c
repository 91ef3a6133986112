/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_md.c - component and memory domain.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_md.h"
#include "cxi_trig_cache.h"
#include "cxi_trig_cntr_pool.h"
#include "cxi_trig_device.h"
#include "cxi_trig_gpu.h"
#include "cxi_trig_memh.h"
#include "cxi_trig_proto.h"
#include "cxi_trig_target.h"

#include <ucs/config/global_opts.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>

#include <rdma/fi_errno.h>

#include <limits.h>
#include <string.h>


/* Seconds to register memory that is in no cache */
#define UCT_CXI_TRIG_MD_REG_COST 5e-6


static ucs_config_field_t uct_cxi_trig_md_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_cxi_trig_md_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_md_config_table)},

    {"PROVIDER", "auto",
     "libfabric provider: a name, or auto. auto is cxi on a machine with\n"
     "Cassini cards, else cxiemu, the emulated card, if that was built, with\n"
     "a warning. The provider must have deferred work; no other one is used\n"
     "instead.",
     ucs_offsetof(uct_cxi_trig_md_config_t, want.name),
     UCS_CONFIG_TYPE_STRING},

    {"ORDERING", "default",
     "What the provider keeps in order between two endpoints:\n"
     " - relaxed : messages, nothing else\n"
     " - default : messages, and what it keeps in order anyway; Slingshot\n"
     "             NICs keep no more than with relaxed\n"
     " - strict  : messages, puts, gets and atomics, each kind by itself\n"
     "With a provider that cannot do that the transport is off.",
     ucs_offsetof(uct_cxi_trig_md_config_t, want.ordering),
     UCS_CONFIG_TYPE_ENUM(uct_cxi_trig_prov_orderings)},

    {"TRAFFIC_CLASS", "default",
     "Traffic class of all that is sent; default: the provider's. With a\n"
     "provider that has not got the class the transport is off. Slingshot\n"
     "NICs have all but network_ctrl, as far as the job's service allows.",
     ucs_offsetof(uct_cxi_trig_md_config_t, want.traffic_class),
     UCS_CONFIG_TYPE_ENUM(uct_cxi_trig_prov_traffic_classes)},

    {"GPU_MEMORY", "try",
     "Register memory of GPUs (CUDA, ROCm): y, n or try.\n"
     " - try : if the provider can (FI_HMEM), and the program has loaded a\n"
     "         GPU's runtime before it makes its UCX context\n"
     " - n   : memory of GPUs is taken for the host's",
     ucs_offsetof(uct_cxi_trig_md_config_t, want.gpu_memory),
     UCS_CONFIG_TYPE_TERNARY},

    {"STATS", "n",
     "Write the counts of interfaces and memory domains to the standard error\n"
     "output when they are closed.",
     ucs_offsetof(uct_cxi_trig_md_config_t, stats), UCS_CONFIG_TYPE_BOOL},

#if UCT_CXI_TRIG_MD_HAS_CACHE
    {"RCACHE", "try",
     "Keep registrations of memory for the next use: y, n, or try: if UCX can\n"
     "notice that memory is unmapped.",
     ucs_offsetof(uct_cxi_trig_md_config_t, rcache_enable),
     UCS_CONFIG_TYPE_TERNARY},

    {"", "", NULL, ucs_offsetof(uct_cxi_trig_md_config_t, rcache),
     UCS_CONFIG_TYPE_TABLE(uct_md_config_rcache_table)},
#endif

    {NULL}
};


/* A provider is not asked for memory that the program cannot have. */
static ucs_status_t
uct_cxi_trig_md_find_prov(const uct_cxi_trig_md_config_t *config,
                          const uct_cxi_trig_prov_t **prov_p,
                          struct fi_info **info_p)
{
    uct_cxi_trig_prov_want_t want = config->want;

    if ((want.gpu_memory == UCS_TRY) && (uct_cxi_trig_gpu_loaded() == 0)) {
        want.gpu_memory = UCS_NO;
    }
    return uct_cxi_trig_prov_find(&want, prov_p, info_p);
}

/* UCX gives no settings here: read them from the environment. */
static ucs_status_t uct_cxi_trig_md_list(struct fi_info **info_p)
{
    const uct_cxi_trig_prov_t *prov;
    uct_md_config_t *config;
    ucs_status_t status;

    status = uct_md_config_read(&uct_cxi_trig_component, NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_cxi_trig_md_find_prov(
            ucs_derived_of(config, uct_cxi_trig_md_config_t), &prov, info_p);
    uct_config_release(config);
    return status;
}

static int uct_cxi_trig_md_name_fits(const struct fi_info *info)
{
    if (strlen(info->domain_attr->name) < UCT_MD_NAME_MAX) {
        return 1;
    }
    ucs_diag("device %s is left out: its name is too long",
             info->domain_attr->name);
    return 0;
}

static ucs_status_t
uct_cxi_trig_md_query_resources(uct_component_t *component,
                                uct_md_resource_desc_t **resources_p,
                                unsigned *num_resources_p)
{
    unsigned num_resources = 0;
    struct fi_info *list, *info;
    uct_md_resource_desc_t *resources;

    *resources_p     = NULL;
    *num_resources_p = 0;
    if (uct_cxi_trig_md_list(&list) != UCS_OK) {
        return UCS_OK; /* No resources; the cause was logged */
    }

    for (info = list; info != NULL; info = info->next) {
        num_resources += uct_cxi_trig_md_name_fits(info);
    }

    resources = ucs_calloc(num_resources, sizeof(*resources),
                           "cxi_trig_md_resources");
    if (resources == NULL) {
        fi_freeinfo(list);
        return (num_resources == 0) ? UCS_OK : UCS_ERR_NO_MEMORY;
    }

    *resources_p = resources;
    for (info = list; info != NULL; info = info->next) {
        if (uct_cxi_trig_md_name_fits(info)) {
            ucs_snprintf_zero((resources++)->md_name, UCT_MD_NAME_MAX, "%s",
                              info->domain_attr->name);
        }
    }
    *num_resources_p = num_resources;
    fi_freeinfo(list);
    return UCS_OK;
}

/* No UCT_MD_FLAG_ALLOC: the card has no memory of its own and reaches all of
 * the host's alike; what UCX allocates itself, from huge pages first, is as
 * good. */
static uint64_t uct_cxi_trig_md_flags(const uct_cxi_trig_md_t *md)
{
    return UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_ADVISE |
           (md->revokes ? UCT_CXI_TRIG_MD_FLAG_REVOKES : 0) |
           (md->needs_desc ? UCT_MD_FLAG_NEED_MEMH : 0) |
           (uct_cxi_trig_prov_has_gpu_memory(md->info) ?
            UCT_CXI_TRIG_MD_FLAG_DMABUF : 0);
}

static ucs_status_t uct_cxi_trig_md_query(uct_md_h uct_md,
                                          uct_cxi_trig_md_attr_t *attr)
{
    const uct_cxi_trig_md_t *md = ucs_derived_of(uct_md, uct_cxi_trig_md_t);

#if UCT_CXI_TRIG_UCX_GE(1, 17)
    uct_md_base_md_query(attr);
#endif
#if UCT_CXI_TRIG_UCX_GE(1, 14)
    attr->cache_mem_types = md->cache_types;
#endif
#if UCT_CXI_TRIG_UCX_GE(1, 15)
    /* Where pages need not be there, registration does not wait for them */
    attr->reg_nonblock_mem_types =
            (md->info->domain_attr->mr_mode & FI_MR_ALLOCATED) ?
            0 : UCS_BIT(UCS_MEMORY_TYPE_HOST);
#endif
    UCT_CXI_TRIG_MD_ATTR(attr, flags)            = uct_cxi_trig_md_flags(md);
    UCT_CXI_TRIG_MD_ATTR(attr, reg_mem_types)    = md->reg_types;
    /* What is copied is copied by the processor */
    UCT_CXI_TRIG_MD_ATTR(attr, access_mem_types) =
            UCS_BIT(UCS_MEMORY_TYPE_HOST);
    UCT_CXI_TRIG_MD_ATTR(attr, alloc_mem_types)  = 0;
    UCT_CXI_TRIG_MD_ATTR(attr, detect_mem_types) = md->detect_types;
    UCT_CXI_TRIG_MD_ATTR(attr, max_alloc)        = 0;
    UCT_CXI_TRIG_MD_ATTR(attr, max_reg)          = ULONG_MAX;
    attr->rkey_packed_size = UCT_TRIG_RKEY_PACKED_LEN;
    attr->reg_cost         = md->reg_cost;
    memset(&attr->local_cpus, 0xff, sizeof(attr->local_cpus));
    return UCS_OK;
}

static ucs_status_t uct_cxi_trig_rkey_unpack_op(UCT_CXI_TRIG_RKEY_UNPACK_ARGS)
{
    uct_trig_rkey_t *rkey;
    ucs_status_t status;

    rkey = ucs_malloc(sizeof(*rkey), "cxi_trig_rkey");
    if (rkey == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_trig_rkey_unpack(buffer, UCT_TRIG_RKEY_PACKED_LEN, rkey);
    if (status != UCS_OK) {
        ucs_free(rkey);
        return status;
    }

    *rkey_p   = (uintptr_t)rkey;
    *handle_p = NULL;
    return UCS_OK;
}

static ucs_status_t uct_cxi_trig_rkey_release(uct_component_t *component,
                                              uct_rkey_t rkey, void *handle)
{
    ucs_free((void*)(uintptr_t)rkey);
    return UCS_OK;
}

static ucs_status_t uct_cxi_trig_rkey_ptr(uct_component_t *component,
                                          uct_rkey_t rkey, void *handle,
                                          uint64_t address, void **pointer_p)
{
    return UCS_ERR_UNSUPPORTED;
}

/* UCS_ERR_INVALID_ADDR: not of a GPU, as UCX's own domains have it. CUDA's
 * managed memory is left out: a processor reaches it, and UCX without modules
 * of its own for GPUs can do nothing with what it thinks is not the host's. */
static ucs_status_t
uct_cxi_trig_md_find_gpu(uct_md_h uct_md, const void *address,
                         uct_cxi_trig_gpu_mem_t *gpu)
{
    const uct_cxi_trig_md_t *md = ucs_derived_of(uct_md, uct_cxi_trig_md_t);

    if (md->detect_types == 0) {
        return UCS_ERR_UNSUPPORTED;
    }
    return (uct_cxi_trig_gpu_find(address, gpu) &&
            (md->detect_types & UCS_BIT(gpu->type))) ?
           UCS_OK : UCS_ERR_INVALID_ADDR;
}

static ucs_status_t
uct_cxi_trig_md_detect_memory_type(uct_md_h md, const void *address,
                                   size_t length,
                                   ucs_memory_type_t *mem_type_p)
{
    uct_cxi_trig_gpu_mem_t gpu;
    ucs_status_t status;

    status = uct_cxi_trig_md_find_gpu(md, address, &gpu);
    if (status == UCS_OK) {
        *mem_type_p = gpu.type;
    }
    return status;
}

/* The range itself where that of the allocation is not known */
static ucs_status_t uct_cxi_trig_md_mem_query(uct_md_h md, const void *address,
                                              size_t length,
                                              uct_cxi_trig_mem_attr_t *attr)
{
    uct_cxi_trig_gpu_mem_t gpu;
    ucs_status_t status;

    status = uct_cxi_trig_md_find_gpu(md, address, &gpu);
    if (status != UCS_OK) {
        return status;
    }

    if (attr->field_mask & UCT_CXI_TRIG_MEM_ATTR(MEM_TYPE)) {
        attr->mem_type = gpu.type;
    }
    if (attr->field_mask & UCT_CXI_TRIG_MEM_ATTR(SYS_DEV)) {
        attr->sys_dev = UCS_SYS_DEVICE_ID_UNKNOWN;
    }
    if (attr->field_mask & UCT_CXI_TRIG_MEM_ATTR(BASE_ADDRESS)) {
        attr->base_address = (gpu.length > 0) ? (void*)gpu.start :
                                                (void*)address;
    }
    if (attr->field_mask & UCT_CXI_TRIG_MEM_ATTR(ALLOC_LENGTH)) {
        attr->alloc_length = (gpu.length > 0) ? gpu.length : length;
    }
    return UCS_OK;
}

static ucs_status_t uct_cxi_trig_cm_open(uct_component_t *component,
                                         uct_worker_h worker,
                                         const uct_cm_config_t *config,
                                         uct_cm_h *cm_p)
{
    return UCS_ERR_UNSUPPORTED;
}

static void uct_cxi_trig_md_close_domain(uct_cxi_trig_md_t *md)
{
    int ret = fi_close(&md->domain->fid);

    if (ret != 0) {
        ucs_warn("cannot close domain %s: %s", md->info->domain_attr->name,
                 fi_strerror(-ret));
    } else {
        fi_close(&md->fabric->fid);
    }
}

void uct_cxi_trig_md_count_iface(uct_cxi_trig_md_t *md, int change)
{
    pthread_mutex_lock(&md->ifaces.mutex);
    md->ifaces.count += change;
    pthread_mutex_unlock(&md->ifaces.mutex);
}

static void uct_cxi_trig_md_close(uct_md_h uct_md)
{
    uct_cxi_trig_md_t *md = ucs_derived_of(uct_md, uct_cxi_trig_md_t);

    uct_cxi_trig_cache_destroy(md);
    uct_cxi_trig_stats_tell_md(md);
    uct_cxi_trig_target_close(md);
    uct_cxi_trig_cntr_pool_cleanup(md);
    pthread_mutex_destroy(&md->ifaces.mutex);
    uct_cxi_trig_md_close_domain(md);
    fi_freeinfo(md->info);
    ucs_free(md);
}

#if UCT_CXI_TRIG_MD_HAS_SOCKADDR
static int
uct_cxi_trig_md_is_sockaddr_accessible(uct_md_h md,
                                       const ucs_sock_addr_t *sockaddr,
                                       uct_sockaddr_accessibility_t mode)
{
    return 0;
}
#endif

uct_md_ops_t uct_cxi_trig_md_ops = {
    .close                  = uct_cxi_trig_md_close,
    .query                  = uct_cxi_trig_md_query,
    .mem_advise             = uct_cxi_trig_memh_advise,
    .mem_reg                = uct_cxi_trig_memh_reg,
    .mem_dereg              = uct_cxi_trig_memh_dereg,
    .mem_query              = uct_cxi_trig_md_mem_query,
    .mkey_pack              = uct_cxi_trig_memh_pack,
#if UCT_CXI_TRIG_MD_HAS_SOCKADDR
    .is_sockaddr_accessible = uct_cxi_trig_md_is_sockaddr_accessible,
#endif
    .detect_memory_type     = uct_cxi_trig_md_detect_memory_type
};

/* The device's entry of the list, alone; the others are freed. */
static struct fi_info *uct_cxi_trig_md_pick(struct fi_info *list,
                                            const char *name)
{
    struct fi_info *info, *picked = NULL;

    for (info = list; info != NULL; info = info->next) {
        if (!strcmp(info->domain_attr->name, name)) {
            picked = fi_dupinfo(info);
            break;
        }
    }
    fi_freeinfo(list);
    return picked;
}

static ucs_status_t uct_cxi_trig_md_open_domain(uct_cxi_trig_md_t *md)
{
    int ret;

    ret = md->prov->ops->fabric(md->info->fabric_attr, &md->fabric, NULL);
    if (ret != 0) {
        goto err;
    }

    ret = fi_domain(md->fabric, md->info, &md->domain, NULL);
    if (ret != 0) {
        goto err_close_fabric;
    }
    return UCS_OK;

err_close_fabric:
    fi_close(&md->fabric->fid);
err:
    return uct_cxi_trig_device_open_failed(md->prov, md->info, "domain", ret);
}

/* A service is known by its number, which the provider has of the launcher or,
 * without one, of the NIC; that of the emulated card by its name. Entries that
 * the provider does not count by service are a process's own. */
void uct_cxi_trig_md_credit_params(const uct_cxi_trig_md_t *md,
                                   uct_cxi_trig_credit_params_t *params)
{
    const uct_cxi_trig_cassini_nic_t *nic = uct_cxi_trig_md_nic(md);
    size_t depth                          = uct_cxi_trig_md_depth(md);
    const char *name                      = (md->prov->ops->service == NULL) ?
                                            NULL : md->prov->ops->service();

    params->max       = (depth == SIZE_MAX) ? md->prov->max_entries : depth;
    params->is_shared = (depth != SIZE_MAX) &&
                        ((name == NULL) || (name[0] != '\0'));
    ucs_snprintf_zero(params->key, sizeof(params->key), "%s %s %u %s",
                      md->info->fabric_attr->prov_name,
                      md->prov->local ? "" : md->info->domain_attr->name,
                      (nic == NULL) ? 0 : nic->service,
                      (name == NULL) ? "" : name);
}

/* Memory of GPUs that UCX knows by itself: it has a module for it. */
static uint64_t uct_cxi_trig_md_types_of_ucx(void)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME
    };
    uint64_t types            = 0;
    uct_component_h *components;
    unsigned count, i;

    if (uct_query_components(&components, &count) != UCS_OK) {
        return 0;
    }
    for (i = 0; i < count; ++i) {
        if (uct_component_query(components[i], &attr) != UCS_OK) {
            continue;
        }
        if (!strncmp(attr.name, "cuda_", 5)) {
            types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
        } else if (!strncmp(attr.name, "rocm_", 5)) {
            types |= UCS_BIT(UCS_MEMORY_TYPE_ROCM);
        }
    }
    uct_release_component_list(components);
    return types;
}

/* Without a module of its own, UCX thinks that its list of what GPUs have
 * allocated is complete when it is empty. */
static void uct_cxi_trig_md_warn_of_cache(ucs_ternary_auto_value_t asked)
{
    if (ucs_global_opts.enable_memtype_cache == UCS_NO) {
        return;
    }
    ucs_log((asked == UCS_YES) ? UCS_LOG_LEVEL_WARN : UCS_LOG_LEVEL_DIAG,
            "this UCX has no module for GPUs: UCP takes their memory for the "
            "host's, unless UCX_MEMTYPE_CACHE=n has it ask cxi_trig");
}

static void uct_cxi_trig_md_init_types(uct_cxi_trig_md_t *md,
                                       ucs_ternary_auto_value_t asked)
{
    md->sees_gpus   = (asked != UCS_NO);
    md->reg_types   = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    md->cache_types = md->reg_types;
    if (!md->sees_gpus || !uct_cxi_trig_prov_has_gpu_memory(md->info)) {
        return;
    }

    md->needs_desc   = (md->info->domain_attr->mr_mode & FI_MR_HMEM) != 0;
    md->reg_types   |= (asked == UCS_YES) ?
                       (UCS_BIT(UCS_MEMORY_TYPE_CUDA) |
                        UCS_BIT(UCS_MEMORY_TYPE_ROCM)) :
                       uct_cxi_trig_gpu_loaded();
    md->detect_types = md->reg_types & ~UCS_BIT(UCS_MEMORY_TYPE_HOST) &
                       ~uct_cxi_trig_md_types_of_ucx();
    /* What UCX has no module for, it does not notice to be freed: memory that
     * has the same address afterwards would be taken for the old one */
    md->cache_types  = md->reg_types & ~md->detect_types;
    if (md->detect_types != 0) {
        uct_cxi_trig_md_warn_of_cache(asked);
    }
}

static ucs_status_t uct_cxi_trig_md_open(uct_component_t *component,
                                         const char *md_name,
                                         const uct_md_config_t *uct_config,
                                         uct_md_h *md_p)
{
    const uct_cxi_trig_md_config_t *config =
            ucs_derived_of(uct_config, uct_cxi_trig_md_config_t);
    struct fi_info *list;
    uct_cxi_trig_md_t *md;
    ucs_status_t status;

    md = ucs_calloc(1, sizeof(*md), "cxi_trig_md");
    if (md == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_cxi_trig_md_find_prov(config, &md->prov, &list);
    if (status != UCS_OK) {
        goto err_free;
    }

    md->info = uct_cxi_trig_md_pick(list, md_name);
    if (md->info == NULL) {
        ucs_error("libfabric provider %s has no device %s", config->want.name,
                  md_name);
        status = UCS_ERR_NO_DEVICE;
        goto err_free;
    }

    status = uct_cxi_trig_md_open_domain(md);
    if (status != UCS_OK) {
        goto err_free_info;
    }

    md->super.ops       = &uct_cxi_trig_md_ops;
    md->super.component = &uct_cxi_trig_component;
    md->revokes         = md->prov->revokes &&
                          !(md->info->domain_attr->mr_mode & FI_MR_PROV_KEY);
    md->is_unasked      = uct_cxi_trig_prov_is_unasked(md->prov,
                                                       config->want.name);
    md->loopback        = uct_cxi_trig_prov_is_local(md->prov, md->info);
    md->reg_cost        = ucs_linear_func_make(UCT_CXI_TRIG_MD_REG_COST, 0);

    uct_cxi_trig_cntr_pool_init(md);
    pthread_mutex_init(&md->ifaces.mutex, NULL);
    md->ifaces.count    = 0;
    md->tells_stats     = config->stats;
    uct_cxi_trig_md_init_types(md, config->want.gpu_memory);

    status = uct_cxi_trig_cache_create(md, config);
    if (status != UCS_OK) {
        goto err_close_domain;
    }

    *md_p = &md->super;
    return UCS_OK;

err_close_domain:
    pthread_mutex_destroy(&md->ifaces.mutex);
    uct_cxi_trig_cntr_pool_cleanup(md);
    uct_cxi_trig_md_close_domain(md);
err_free_info:
    fi_freeinfo(md->info);
err_free:
    ucs_free(md);
    return status;
}

static void uct_cxi_trig_md_vfs_init(uct_md_h uct_md)
{
    uct_cxi_trig_md_t *md = ucs_derived_of(uct_md, uct_cxi_trig_md_t);

    uct_cxi_trig_cache_vfs_init(md);
    uct_cxi_trig_stats_vfs_md(md);
}

uct_component_t uct_cxi_trig_component = {
    .query_md_resources = uct_cxi_trig_md_query_resources,
    .md_open            = uct_cxi_trig_md_open,
    .cm_open            = uct_cxi_trig_cm_open,
    .rkey_unpack        = uct_cxi_trig_rkey_unpack_op,
    .rkey_ptr           = uct_cxi_trig_rkey_ptr,
    .rkey_release       = uct_cxi_trig_rkey_release,
#if UCT_CXI_TRIG_UCX_GE(1, 16)
    .rkey_compare       = uct_base_rkey_compare,
#endif
    .name               = UCT_CXI_TRIG_NAME,
    .md_config          = {
        .name   = "cxi_trig memory domain",
        .prefix = UCT_CXI_TRIG_PREFIX,
        .table  = uct_cxi_trig_md_config_table,
        .size   = sizeof(uct_cxi_trig_md_config_t),
    },
    .cm_config          = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list            = UCT_COMPONENT_TL_LIST_INITIALIZER(
                                  &uct_cxi_trig_component),
    .flags              = 0,
    .md_vfs_init        = uct_cxi_trig_md_vfs_init
};
