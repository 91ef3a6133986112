/* SPDX-License-Identifier: BSD-3-Clause */
/* uct_domain.c - a memory domain alone. */
#include "uct_domain.h"
#include "st_cunit.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define UCT_MAP_GAP (1ul << 30) /* bytes */


/* Opens it with one setting, or none */
ucs_status_t uct_domain_try(uct_domain_t *domain, const char *device,
                            const char *name, const char *value)
{
    uct_md_config_t *config;
    ucs_status_t status;

    domain->md        = NULL;
    domain->component = uct_pair_find_component();
    CU_ASSERT_FATAL(domain->component != NULL);
    CU_ASSERT_FATAL(uct_md_config_read(domain->component, NULL, NULL,
                                       &config) == UCS_OK);
    status = (name == NULL) ? UCS_OK : uct_pair_set(config, name, value);
    if (status == UCS_OK) {
        status = uct_md_open(domain->component, device, config, &domain->md);
    }
    uct_config_release(config);
    if (status == UCS_OK) {
        CU_ASSERT_FATAL(uct_md_query(domain->md, &domain->attr) == UCS_OK);
        CU_ASSERT_FATAL(domain->attr.rkey_packed_size <= UCT_DOMAIN_KEY_MAX);
    }
    return status;
}

ucs_status_t uct_domain_try_default(uct_domain_t *domain)
{
    return uct_domain_try(domain, uct_pair_device(), NULL, NULL);
}

/* UCX itself caches where there is no such setting */
ucs_status_t uct_domain_try_uncached(uct_domain_t *domain)
{
    ucs_status_t status = uct_domain_try(domain, uct_pair_device(), "RCACHE",
                                         "n");

    return (status == UCS_ERR_NO_ELEM) ? uct_domain_try_default(domain) :
                                         status;
}

void uct_domain_open(uct_domain_t *domain)
{
    CU_ASSERT_FATAL(uct_domain_try_default(domain) == UCS_OK);
}

void uct_domain_close(uct_domain_t *domain)
{
    uct_md_close(domain->md);
}

ucs_status_t uct_domain_reg(uct_domain_t *domain, void *address, size_t length,
                            uct_mem_h *memh_p)
{
    return uct_md_mem_reg(domain->md, address, length, UCT_MD_MEM_ACCESS_ALL,
                          memh_p);
}

/* Registers, packs the key and gives the registration back */
void uct_domain_key(uct_domain_t *domain, void *address, size_t length,
                    uint8_t *key)
{
    uct_mem_h memh;

    memset(key, 0, UCT_DOMAIN_KEY_MAX);
    CU_ASSERT_FATAL(uct_domain_reg(domain, address, length, &memh) == UCS_OK);
    CU_ASSERT_FATAL(uct_md_mkey_pack(domain->md, memh, key) == UCS_OK);
    CU_ASSERT(uct_md_mem_dereg(domain->md, memh) == UCS_OK);
}

static uint8_t *map_pages(void *hint, size_t length)
{
    void *address = mmap(hint, length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_FATAL(address != MAP_FAILED);
    return address;
}

/* The kernel fills gaps from above: what a case unmaps here is not taken again
 * by the next one that wants memory */
void *uct_map_pages(size_t length)
{
    uint8_t *lowest = map_pages(NULL, length);

    CU_ASSERT_FATAL(munmap(lowest, length) == 0);
    return map_pages(lowest - UCT_MAP_GAP, length);
}
