/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat.h - differences between the UCX versions that the transport supports.
 *
 * UCX's transport interface changes with every minor version. All conditional
 * code outside this header tests UCT_CXI_TRIG_UCX_GE(), or a macro of this
 * header that does. Each version from 1.13 to 1.23 (master of August 2026) has
 * been run, as docs/versions.md tells.
 */
#ifndef UCT_CXI_TRIG_COMPAT_H_
#define UCT_CXI_TRIG_COMPAT_H_

#include <uct/api/uct.h>
#include <uct/api/version.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>
#include <ucs/datastruct/mpool.h>

#include <rdma/fi_domain.h>

/** True when compiled for UCX major.minor or later. */
#define UCT_CXI_TRIG_UCX_GE(_major, _minor) \
    (UCT_API >= UCT_VERSION(_major, _minor))

/** The version that it is compiled for, and is used with no other one; UCT_API
 *  of a version is UCT_VERSION(major, minor). */
#define UCT_CXI_TRIG_BUILT_MAJOR ((unsigned)(UCT_API >> UCT_MAJOR_BIT))
#define UCT_CXI_TRIG_BUILT_MINOR \
    ((unsigned)((UCT_API >> UCT_MINOR_BIT) & UCS_MASK(UCT_MAJOR_BIT - \
                                                      UCT_MINOR_BIT)))


/* 1.14: an MD is queried into the extended structure */
#if UCT_CXI_TRIG_UCX_GE(1, 14)
typedef uct_md_attr_v2_t uct_cxi_trig_md_attr_t;
#define UCT_CXI_TRIG_MD_ATTR(_attr, _field) ((_attr)->_field)
#else
typedef uct_md_attr_t uct_cxi_trig_md_attr_t;
#define UCT_CXI_TRIG_MD_ATTR(_attr, _field) ((_attr)->cap._field)
#endif

/* 1.14: registration flags moved into a structure */
#if UCT_CXI_TRIG_UCX_GE(1, 14)
typedef const uct_md_mem_reg_params_t *uct_cxi_trig_reg_params_t;
#define UCT_CXI_TRIG_REG_FLAGS(_params) \
    UCT_MD_MEM_REG_FIELD_VALUE(_params, flags, FIELD_FLAGS, 0)
#else
typedef unsigned uct_cxi_trig_reg_params_t;
#define UCT_CXI_TRIG_REG_FLAGS(_params) (_params)
#endif

/* 1.14: memory of GPUs may come with a file descriptor (dmabuf), which
 * libfabric takes from 1.20 on */
#if UCT_CXI_TRIG_UCX_GE(1, 14) && defined(FI_MR_DMABUF)
#define UCT_CXI_TRIG_HAS_DMABUF 1
#define UCT_CXI_TRIG_MD_FLAG_DMABUF UCT_MD_FLAG_REG_DMABUF
#else
#define UCT_CXI_TRIG_HAS_DMABUF 0
#define UCT_CXI_TRIG_MD_FLAG_DMABUF 0
#endif

/* 1.18: invalidation for puts and gets, and for atomics, is told apart */
#if UCT_CXI_TRIG_UCX_GE(1, 18)
#define UCT_CXI_TRIG_MD_FLAG_REVOKES \
    (UCT_MD_FLAG_INVALIDATE | UCT_MD_FLAG_INVALIDATE_RMA | \
     UCT_MD_FLAG_INVALIDATE_AMO)
#else
#define UCT_CXI_TRIG_MD_FLAG_REVOKES UCT_MD_FLAG_INVALIDATE
#endif

/* 1.22: what is asked of memory is told in an extended structure */
#if UCT_CXI_TRIG_UCX_GE(1, 22)
typedef uct_md_mem_attr_v2_t uct_cxi_trig_mem_attr_t;
#define UCT_CXI_TRIG_MEM_ATTR(_field) UCT_MD_MEM_ATTR_V2_FIELD_##_field
#else
typedef uct_md_mem_attr_t uct_cxi_trig_mem_attr_t;
#define UCT_CXI_TRIG_MEM_ATTR(_field) UCT_MD_MEM_ATTR_FIELD_##_field
#endif

/* 1.14: UCP has a cache of registrations, for the memory types that an MD
 * names; before, each MD has its own */
#define UCT_CXI_TRIG_MD_HAS_CACHE (!UCT_CXI_TRIG_UCX_GE(1, 14))

/* 1.15: what an MD says of socket addresses is not asked for any more, and has
 * no place in its operations sooner or later */
#define UCT_CXI_TRIG_MD_HAS_SOCKADDR (!UCT_CXI_TRIG_UCX_GE(1, 15))

/* 1.16: the range is given again when a key is packed */
#if UCT_CXI_TRIG_UCX_GE(1, 16)
#define UCT_CXI_TRIG_MKEY_PACK_ARGS \
    uct_md_h md, uct_mem_h memh, void *address, size_t length, \
    const uct_md_mkey_pack_params_t *params, void *buffer
#else
#define UCT_CXI_TRIG_MKEY_PACK_ARGS \
    uct_md_h md, uct_mem_h memh, const uct_md_mkey_pack_params_t *params, \
    void *buffer
#endif

/* 1.19: parameters were added to unpacking */
#if UCT_CXI_TRIG_UCX_GE(1, 19)
#define UCT_CXI_TRIG_RKEY_UNPACK_ARGS \
    uct_component_t *component, const void *buffer, \
    const uct_rkey_unpack_params_t *params, uct_rkey_t *rkey_p, void **handle_p
#else
#define UCT_CXI_TRIG_RKEY_UNPACK_ARGS \
    uct_component_t *component, const void *buffer, uct_rkey_t *rkey_p, \
    void **handle_p
#endif

/* 1.21: invalidation has parameters instead of flags */
#if UCT_CXI_TRIG_UCX_GE(1, 21)
#define UCT_CXI_TRIG_INVALIDATE_ARGS \
    uct_ep_h ep, const uct_ep_invalidate_params_t *params
#else
#define UCT_CXI_TRIG_INVALIDATE_ARGS uct_ep_h ep, unsigned flags
#endif

/* 1.22: a completion may be given to the keepalive check */
#if UCT_CXI_TRIG_UCX_GE(1, 22)
#define UCT_CXI_TRIG_KEEPALIVE_CHECK(_flags, _comp) \
    UCT_EP_KEEPALIVE_CHECK_PARAM(_flags)
#else
#define UCT_CXI_TRIG_KEEPALIVE_CHECK(_flags, _comp) \
    UCT_EP_KEEPALIVE_CHECK_PARAM(_flags, _comp)
#endif

/* 1.20 has the query of further attributes, 1.21 has not, 1.22 has it again */
#define UCT_CXI_TRIG_HAS_QUERY_V2 \
    (UCT_CXI_TRIG_UCX_GE(1, 22) || \
     (UCT_CXI_TRIG_UCX_GE(1, 20) && !UCT_CXI_TRIG_UCX_GE(1, 21)))

/* 1.16: reachability may be asked for within a device alone */
#if UCT_CXI_TRIG_UCX_GE(1, 16)
#define uct_cxi_trig_scope_is_reachable(_iface, _params) \
    uct_iface_scope_is_reachable(_iface, _params)
#else
#define uct_cxi_trig_scope_is_reachable(_iface, _params) 1
#endif

/* 1.18: UCX asks why a peer cannot be reached */
#if UCT_CXI_TRIG_UCX_GE(1, 18)
#define uct_cxi_trig_tell_unreachable(_params, _fault) \
    uct_iface_fill_info_str_buf(_params, "%s", _fault)
#else
#define uct_cxi_trig_tell_unreachable(_params, _fault)
#endif

/* 1.18: a hint for the copy was added */
#if UCT_CXI_TRIG_UCX_GE(1, 18)
#define uct_cxi_trig_am_fill(_buffer, _header, _payload, _length) \
    uct_am_short_fill_data(_buffer, _header, _payload, _length, \
                           UCS_ARCH_MEMCPY_NT_NONE)
#else
#define uct_cxi_trig_am_fill(_buffer, _header, _payload, _length) \
    uct_am_short_fill_data(_buffer, _header, _payload, _length)
#endif

/** What a memory pool is made from. */
typedef struct uct_cxi_trig_pool_params {
    size_t          elem_size;
    size_t          align_offset; /**< Place in an element to be aligned */
    size_t          alignment;
    unsigned        chunk;        /**< Elements that are allocated together */
    unsigned        max_elems;
    ucs_mpool_ops_t *ops;
    const char      *name;
} uct_cxi_trig_pool_params_t;

/** Make a memory pool. 1.14: UCX takes its parameters in a structure. */
static inline ucs_status_t
uct_cxi_trig_pool_init(ucs_mpool_t *mp,
                       const uct_cxi_trig_pool_params_t *params)
{
#if UCT_CXI_TRIG_UCX_GE(1, 14)
    ucs_mpool_params_t mp_params;

    ucs_mpool_params_reset(&mp_params);
    mp_params.elem_size       = params->elem_size;
    mp_params.align_offset    = params->align_offset;
    mp_params.alignment       = params->alignment;
    mp_params.elems_per_chunk = params->chunk;
    mp_params.max_elems       = params->max_elems;
    mp_params.ops             = params->ops;
    mp_params.name            = params->name;
    return ucs_mpool_init(&mp_params, mp);
#else
    return ucs_mpool_init(mp, 0, params->elem_size, params->align_offset,
                          params->alignment, params->chunk, params->max_elems,
                          params->ops, params->name);
#endif
}

/* 1.18: a flag tells that other machines can be reached */
#if UCT_CXI_TRIG_UCX_GE(1, 18)
#define UCT_CXI_TRIG_FLAG_INTER_NODE UCT_IFACE_FLAG_INTER_NODE
#else
#define UCT_CXI_TRIG_FLAG_INTER_NODE 0
#endif

#endif
