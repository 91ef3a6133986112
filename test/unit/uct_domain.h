/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uct_domain.h - a memory domain alone, for tests.
 */
#ifndef UCT_DOMAIN_H_
#define UCT_DOMAIN_H_

#include "uct_errors.h"
#include "uct_pair.h"

/** Room for a packed key. */
#define UCT_DOMAIN_KEY_MAX 64


/** A memory domain. */
typedef struct {
    uct_component_h component;
    uct_md_h        md;
    uct_md_attr_t   attr;
} uct_domain_t;


/** Open one with a setting, or none (NULL). */
ucs_status_t uct_domain_try(uct_domain_t *domain, const char *device,
                            const char *name, const char *value);

/** Open that of the tests' device. */
ucs_status_t uct_domain_try_default(uct_domain_t *domain);

/** Open it without a cache of registrations. */
ucs_status_t uct_domain_try_uncached(uct_domain_t *domain);

/** Open it, or fail the running case. */
void uct_domain_open(uct_domain_t *domain);

/** Close it. */
void uct_domain_close(uct_domain_t *domain);

/** A case on "domain". */
#define UCT_DOMAIN_CASE(_name) \
    ST_CASE_WITH(_name, uct_domain_t, domain, uct_domain_open(domain), \
                 uct_domain_close(domain))

/** Register memory. */
ucs_status_t uct_domain_reg(uct_domain_t *domain, void *address, size_t length,
                            uct_mem_h *memh_p);

/** Register, pack the key, and give the registration back. */
void uct_domain_key(uct_domain_t *domain, void *address, size_t length,
                    uint8_t *key);

/** Fresh pages; the caller unmaps them. */
void *uct_map_pages(size_t length);

#endif
