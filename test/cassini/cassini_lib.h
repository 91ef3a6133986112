/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_lib.h - libcxi's binary interface, as far as libfabric's provider
 * uses it: structures and functions. 64-bit systems.
 *
 * Functions return 0 or a negative errno unless said otherwise. What a
 * function makes, another one with destroy, free, close or unmap in its name
 * ends. Sources: the interface as published with HPE's library; the names of
 * functions are those of the library, all else is declared in this project's
 * words.
 */
#ifndef CASSINI_LIB_H_
#define CASSINI_LIB_H_

#include "cassini_hw.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/** Kinds of what a service counts. */
enum {
    CASSINI_RSRC_PTE,
    CASSINI_RSRC_TXQ,
    CASSINI_RSRC_TGQ,
    CASSINI_RSRC_EQ,
    CASSINI_RSRC_CT,
    CASSINI_RSRC_LE,
    CASSINI_RSRC_TLE,
    CASSINI_RSRC_AC,
    CASSINI_RSRC_LAST
};

/** Flags of a command queue. */
enum {
    CASSINI_QUEUE_TX   = 1 << 1,
    CASSINI_QUEUE_TRIG = 1 << 3 /**< Triggered operations only */
};

/** Flags of a mapping. */
enum {
    CASSINI_MAP_PIN   = 1 << 0,
    CASSINI_MAP_ATS   = 1 << 1,
    CASSINI_MAP_WRITE = 1 << 2,
    CASSINI_MAP_READ  = 1 << 3
};

/** Communication profiles: for triggered operations, for others, for both. */
enum {
    CASSINI_CP_TRIG,
    CASSINI_CP_PLAIN,
    CASSINI_CP_ANY
};

enum {
    CASSINI_PLATFORM_ASIC = 0,
    CASSINI_PLATFORM_SIM  = 1, /**< No low-latency window */
    CASSINI_VERSION_1_1   = 0x12,
    CASSINI_TC_LAST       = 5, /**< Traffic classes */
    CASSINI_SVC_DEFAULT   = 1,
    CASSINI_SVC_VNIS      = 4,
    CASSINI_SVC_MEMBERS   = 2,
    CASSINI_MEMBER_ALL    = 0, /**< Member types of a service */
    CASSINI_MEMBER_UID    = 1,
    CASSINI_MEMBER_GID    = 2
};

typedef struct cassini_info {
    uint32_t dev_id;
    uint32_t nid;
    uint32_t pid_bits;
    uint32_t pid_count;
    uint32_t pid_granule;
    uint32_t min_free_shift;
    uint32_t rdzv_get_idx; /**< Portal index of a rendezvous' gets */
    char     device_name[14];
    char     driver_name[9];
    uint32_t vendor_id;
    uint32_t device_id;
    uint32_t device_rev;
    uint32_t device_proto;
    uint32_t device_platform;
    uint16_t num_ptes;
    uint16_t num_txqs;
    uint16_t num_tgqs;
    uint16_t num_eqs;
    uint16_t num_cts;
    uint16_t num_acs;
    uint16_t num_tles;
    uint16_t num_les;
    uint16_t pci_domain;
    uint8_t  pci_bus;
    uint8_t  pci_device;
    uint8_t  pci_function;
    size_t   link_mtu;
    size_t   link_speed;
    uint8_t  link_state;
    int32_t  uc_nic;
    uint32_t pct_eq; /**< Event queue of the retry handler; 0: none runs */
    uint32_t version;
    char     fru[16];
    bool     is_vf;
    uint32_t system_type;
} cassini_info_t;

typedef struct cassini_dev {
    cassini_info_t info;
} cassini_dev_t;

typedef struct cassini_dev_list {
    uint32_t       count;
    cassini_info_t info[];
} cassini_dev_list_t;

typedef struct cassini_limits {
    uint16_t max;
    uint16_t reserved;
} cassini_limits_t;

typedef struct cassini_svc {
    uint8_t          restricted_members : 1, restricted_vnis : 1,
        restricted_tcs : 1, limited : 1, enabled : 1, is_system : 1,
        cntr_pool : 2;
    uint8_t          num_vnis;
    uint16_t         vnis[CASSINI_SVC_VNIS];
    bool             tcs[CASSINI_TC_LAST];
    struct {
        uint32_t     id;
        uint32_t     type;
    } members[CASSINI_SVC_MEMBERS];
    cassini_limits_t limits[CASSINI_RSRC_LAST];
    uint32_t         svc_id;
} cassini_svc_t;

typedef struct cassini_svc_list {
    uint32_t      count;
    cassini_svc_t svcs[];
} cassini_svc_list_t;

typedef struct cassini_svc_use {
    uint32_t svc_id;
    uint32_t tle_pool;
    uint16_t in_use[CASSINI_RSRC_LAST];
} cassini_svc_use_t;

typedef struct cassini_svc_fail {
    uint16_t available[CASSINI_RSRC_LAST];
    bool     no_pools[3];
} cassini_svc_fail_t;

typedef struct cassini_lni {
    uint32_t id;
} cassini_lni_t;

typedef struct cassini_cp {
    uint32_t vni;
    uint32_t tc;
    uint32_t tc_type;
    uint32_t lcid;
} cassini_cp_t;

typedef struct cassini_domain {
    uint32_t vni;
    uint32_t pid;
} cassini_domain_t;

typedef struct cassini_cq_opts {
    uint32_t count; /**< Slots of 64 bytes */
    uint32_t policy;
    uint32_t stat_pool;
    uint32_t flags;
    uint32_t lcid;
    uint32_t credits;
} cassini_cq_opts_t;

/** Command queue. The library sets it up, the provider writes to it. */
typedef struct cassini_cq {
    uint32_t size; /**< Slots of 64 bytes */
    uint64_t *write;
    uint8_t  *windows[3]; /**< Low-latency */
    uint8_t  *slots; /**< Status first */
    uint64_t read32;
    uint32_t index; /**< Target queues from CASSINI_NUM_TXQS on */
    uint32_t size32;
    uint64_t write32;
    uint64_t told32;
} cassini_cq_t;

typedef struct cassini_eq_attr {
    void     *queue;
    size_t   length;
    uint64_t flags;
    uint32_t fill_base; /**< Status is written at these levels, % */
    uint32_t fill_delta;
    uint32_t fill_count;
    uint32_t combine_ns;
    uint32_t cpu;
    uint32_t reserved; /**< Slots that messages received cannot use */
} cassini_eq_attr_t;

/** Event queue. The library sets it up, the provider reads it. */
typedef struct cassini_eq {
    uint32_t         bytes;
    cassini_eq_ack_t ack;
    uint64_t         *ack_p;
    uint64_t         last_sec;
    uint64_t         last_ns;
    uint32_t         read; /**< Bytes */
    uint32_t         read_before;
    uint32_t         eqn;
    void             *context;
    uint8_t          *events;
} cassini_eq_t;

typedef struct cassini_ct {
    uint64_t *page; /**< CASSINI_CT_ADD and others */
    uint32_t ctn;
    void     *back;
} cassini_ct_t;

typedef struct cassini_md {
    uint64_t iova;
    uint64_t va;
    size_t   length;
    uint8_t  lac;
    int32_t  page_shift;
    int32_t  huge_shift;
    uint32_t id;
} cassini_md_t;

typedef struct cassini_md_hints {
    int32_t  page_shift;
    int32_t  huge_shift;
    int32_t  mode;
    bool     mode_valid;
    int32_t  dmabuf_fd;
    uint64_t dmabuf_offset;
    bool     dmabuf_valid;
} cassini_md_hints_t;

typedef struct cassini_pte_opts {
    uint64_t match_event : 1, clear_offset : 1, flow_control : 1,
        long_event : 1, lossless : 1, restricted_lm : 1, logical : 1,
        matching : 1, space_check : 1, align_lm : 1, software : 1,
        ethernet : 1, fp_signals : 4, match_vni : 1, : 47;
} cassini_pte_opts_t;

typedef struct cassini_pte {
    uint32_t ptn;
} cassini_pte_t;

typedef struct cassini_pte_status {
    uint32_t drops;
    uint8_t  state;
    uint16_t les_reserved;
    uint16_t les_allocated;
    uint16_t les_max;
    uint64_t *offsets; /**< Of unexpected messages: filled as far as count */
    uint16_t count; /**< In: space; out: unexpected messages */
} cassini_pte_status_t;

typedef struct cassini_pte_map cassini_pte_map_t;
typedef struct cassini_wait cassini_wait_t;

CASSINI_SIZE(cassini_info_t, 152);
CASSINI_SIZE(cassini_svc_t, 68);
CASSINI_SIZE(cassini_svc_use_t, 24);
CASSINI_SIZE(cassini_svc_fail_t, 20);
CASSINI_SIZE(cassini_cp_t, 16);
CASSINI_SIZE(cassini_cq_opts_t, 24);
CASSINI_SIZE(cassini_cq_t, 80);
CASSINI_SIZE(cassini_eq_attr_t, 48);
CASSINI_SIZE(cassini_eq_t, 72);
CASSINI_SIZE(cassini_ct_t, 24);
CASSINI_SIZE(cassini_md_t, 40);
CASSINI_SIZE(cassini_md_hints_t, 40);
CASSINI_SIZE(cassini_pte_opts_t, 8);
CASSINI_SIZE(cassini_pte_status_t, 32);

#define CASSINI_API __attribute__((visibility("default")))

/* Devices */
CASSINI_API int cxil_get_device_list(cassini_dev_list_t **list_p);
CASSINI_API void cxil_free_device_list(cassini_dev_list_t *list);
CASSINI_API int cxil_open_device(uint32_t dev_id, cassini_dev_t **dev_p);
CASSINI_API void cxil_close_device(cassini_dev_t *dev);
CASSINI_API int cxil_get_amo_remap_to_pcie_fadd(cassini_dev_t *dev, int *op_p);
CASSINI_API int cxil_read_cntr(cassini_dev_t *dev, unsigned cntr,
                               uint64_t *value_p, struct timespec *time_p);
CASSINI_API bool cxil_is_copy_on_fork(void);
CASSINI_API int cxil_map_csr(cassini_dev_t *dev);
CASSINI_API int cxil_read_csr(cassini_dev_t *dev, unsigned csr, void *value,
                              size_t length);
CASSINI_API int cxil_write_csr(cassini_dev_t *dev, unsigned csr,
                               const void *value, size_t length);

/* Services */
CASSINI_API int cxil_get_svc(cassini_dev_t *dev, unsigned svc_id,
                             cassini_svc_t *svc);
CASSINI_API int cxil_get_svc_list(cassini_dev_t *dev,
                                  cassini_svc_list_t **list_p);
CASSINI_API void cxil_free_svc_list(cassini_svc_list_t *list);
CASSINI_API int cxil_get_svc_rsrc_use(cassini_dev_t *dev, unsigned svc_id,
                                      cassini_svc_use_t *use);
/** The new service's number, or a negative errno. */
CASSINI_API int cxil_alloc_svc(cassini_dev_t *dev, const cassini_svc_t *svc,
                               cassini_svc_fail_t *fail);
CASSINI_API int cxil_destroy_svc(cassini_dev_t *dev, unsigned svc_id);
CASSINI_API int cxil_update_svc(cassini_dev_t *dev, const cassini_svc_t *svc,
                                cassini_svc_fail_t *fail);
CASSINI_API int cxil_svc_enable(cassini_dev_t *dev, unsigned svc_id, bool on);
CASSINI_API int cxil_svc_set_exclusive_cp(cassini_dev_t *dev, unsigned svc_id,
                                          bool on);
CASSINI_API int cxil_svc_set_vni_range(cassini_dev_t *dev, unsigned svc_id,
                                       uint16_t first, uint16_t last);
CASSINI_API int cxil_svc_get_vni_range(cassini_dev_t *dev, unsigned svc_id,
                                       uint16_t *first_p, uint16_t *last_p);
CASSINI_API int cxil_svc_get_netns(cassini_dev_t *dev, unsigned svc_id,
                                   unsigned *netns_p);

/* Interfaces, profiles, domains */
CASSINI_API int cxil_alloc_lni(cassini_dev_t *dev, cassini_lni_t **lni_p,
                               unsigned svc_id);
CASSINI_API int cxil_destroy_lni(cassini_lni_t *lni);
CASSINI_API int cxil_alloc_cp(cassini_lni_t *lni, unsigned vni, unsigned tc,
                              unsigned tc_type, cassini_cp_t **cp_p);
CASSINI_API int cxil_alloc_trig_cp(cassini_lni_t *lni, unsigned vni,
                                   unsigned tc, unsigned tc_type,
                                   unsigned kind, cassini_cp_t **cp_p);
CASSINI_API int cxil_modify_cp(cassini_lni_t *lni, cassini_cp_t *cp,
                               unsigned vni);
CASSINI_API int cxil_destroy_cp(cassini_cp_t *cp);
CASSINI_API int cxil_alloc_domain(cassini_lni_t *lni, unsigned vni,
                                  unsigned pid, cassini_domain_t **domain_p);
CASSINI_API int cxil_destroy_domain(cassini_domain_t *domain);

/* Command queues, event queues, counters */
CASSINI_API int cxil_alloc_cmdq(cassini_lni_t *lni, cassini_eq_t *eq,
                                const cassini_cq_opts_t *opts,
                                cassini_cq_t **cq_p);
CASSINI_API int cxil_destroy_cmdq(cassini_cq_t *cq);
CASSINI_API int cxil_cmdq_ack_counter(cassini_cq_t *cq, unsigned *count_p);
CASSINI_API int cxil_alloc_evtq(cassini_lni_t *lni, const cassini_md_t *md,
                                const cassini_eq_attr_t *attr,
                                cassini_wait_t *event_wait,
                                cassini_wait_t *status_wait,
                                cassini_eq_t **eq_p);
CASSINI_API int cxil_destroy_evtq(cassini_eq_t *eq);
/** Slots that messages cannot use, after the change, or a negative errno. */
CASSINI_API int cxil_evtq_adjust_reserved_fc(cassini_eq_t *eq, int change);
CASSINI_API int cxil_alloc_wait_obj(cassini_lni_t *lni,
                                    cassini_wait_t **wait_p);
CASSINI_API int cxil_destroy_wait_obj(cassini_wait_t *wait);
CASSINI_API int cxil_get_wait_obj_fd(cassini_wait_t *wait);
CASSINI_API void cxil_clear_wait_obj(cassini_wait_t *wait);
CASSINI_API int cxil_alloc_ct(cassini_lni_t *lni, void *back,
                              cassini_ct_t **ct_p);
CASSINI_API int cxil_ct_wb_update(cassini_ct_t *ct, void *back);
CASSINI_API int cxil_destroy_ct(cassini_ct_t *ct);

/* Memory, portal entries */
CASSINI_API int cxil_map(cassini_lni_t *lni, void *va, size_t length,
                         uint32_t flags, cassini_md_hints_t *hints,
                         cassini_md_t **md_p);
CASSINI_API int cxil_unmap(cassini_md_t *md);
CASSINI_API int cxil_alloc_pte(cassini_lni_t *lni, cassini_eq_t *eq,
                               cassini_pte_opts_t *opts,
                               cassini_pte_t **pte_p);
CASSINI_API int cxil_destroy_pte(cassini_pte_t *pte);
CASSINI_API int cxil_map_pte(cassini_pte_t *pte, cassini_domain_t *domain,
                             unsigned index, bool multicast,
                             cassini_pte_map_t **map_p);
CASSINI_API int cxil_unmap_pte(cassini_pte_map_t *map);
CASSINI_API int cxil_invalidate_pte_le(cassini_pte_t *pte, unsigned buffer_id,
                                       unsigned list);
CASSINI_API int cxil_pte_status(cassini_pte_t *pte,
                                cassini_pte_status_t *status);
CASSINI_API int cxil_pte_transition_sm(cassini_pte_t *pte, unsigned drops);

#endif
