/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uct_md_bad.c - memory and keys that the memory domain refuses. */
#include "st_cunit.h"
#include "uct_domain.h"
#include "uct_trig_stats.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


/* Every byte of a key is protected, its version first of all; and its length,
 * where that is known */
UCT_DOMAIN_CASE(refused_keys)
{
    static uint8_t buffer[64];
    unsigned refused = 0;
    uct_rkey_bundle_t bundle;
    uint8_t key[UCT_DOMAIN_KEY_MAX];
    uct_trig_rkey_t rkey;
    size_t i;

    uct_domain_key(domain, buffer, sizeof(buffer), key);
    uct_errors_begin();
    for (i = 0; i < domain->attr.rkey_packed_size; ++i) {
        key[i] ^= 0x41;
        CU_ASSERT(uct_rkey_unpack(domain->component, key, &bundle) ==
                  UCS_ERR_INVALID_PARAM);
        key[i] ^= 0x41;
        CU_ASSERT(uct_trig_rkey_unpack(key, i, &rkey) ==
                  UCS_ERR_INVALID_PARAM);
        refused += 2;
    }
    CU_ASSERT(uct_errors_end() == refused);
    CU_ASSERT(uct_rkey_unpack(domain->component, key, &bundle) == UCS_OK);
    CU_ASSERT(uct_rkey_release(domain->component, &bundle) == UCS_OK);
}

/* Memory that is not there, wholly or in part; said once, or not at all */
static void check_unmapped(ucs_status_t (*open)(uct_domain_t*))
{
    size_t page = sysconf(_SC_PAGESIZE);
    uint8_t *pages = uct_map_pages(3 * page);
    uct_mem_h memh;
    uct_domain_t domain;
    unsigned i;

    CU_ASSERT_FATAL(open(&domain) == UCS_OK);
    CU_ASSERT_FATAL(munmap(pages + page, page) == 0);
    for (i = 0; i < 3; ++i) {
        uct_errors_begin();
        CU_ASSERT(uct_domain_reg(&domain, pages + (page / 2) + (i * page / 2),
                                 page, &memh) == UCS_ERR_INVALID_ADDR);
        CU_ASSERT(uct_errors_end() == 1);
        uct_errors_begin();
        CU_ASSERT(uct_md_mem_reg(domain.md,
                                 pages + (page / 2) + (i * page / 2), page,
                                 UCT_MD_MEM_ACCESS_ALL |
                                 UCT_MD_MEM_FLAG_HIDE_ERRORS,
                                 &memh) == UCS_ERR_INVALID_ADDR);
        CU_ASSERT(uct_errors_end() == 0);
    }
    /* What is beside it is as good as ever */
    CU_ASSERT_FATAL(uct_domain_reg(&domain, pages, page, &memh) == UCS_OK);
    CU_ASSERT(uct_md_mem_dereg(domain.md, memh) == UCS_OK);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, pages + (2 * page), page, &memh) ==
                    UCS_OK);
    CU_ASSERT(uct_md_mem_dereg(domain.md, memh) == UCS_OK);
    uct_domain_close(&domain);
    CU_ASSERT(munmap(pages, 3 * page) == 0);
}

ST_CASE_CALL(unmapped, check_unmapped(uct_domain_try_default))
ST_CASE_CALL(unmapped_uncached, check_unmapped(uct_domain_try_uncached))

/* Some versions of UCX refuse NULL themselves, others leave it to the domain */
static int is_refusal(const void *address, ucs_status_t status,
                      ucs_status_t expected)
{
    return (status == expected) ||
           ((address == NULL) && (status == UCS_ERR_INVALID_ADDR));
}

/* No range at all, or one that no machine has: said once, or not at all; UCX
 * itself refuses an empty one */
static void check_bad_ranges(ucs_status_t (*open)(uct_domain_t*))
{
    static uint8_t buffer[4096];
    const struct {
        void         *address;
        size_t       length;
        ucs_status_t status;
    } ranges[] = {
        {NULL, 4096, UCS_ERR_INVALID_PARAM},
        {buffer, 0, UCS_ERR_INVALID_PARAM},
        {buffer, SIZE_MAX, UCS_ERR_INVALID_ADDR},
        {buffer, SIZE_MAX - (uintptr_t)buffer, UCS_ERR_INVALID_ADDR},
        {buffer, SIZE_MAX - (uintptr_t)buffer + 1, UCS_ERR_INVALID_ADDR},
        {buffer, (size_t)1 << 46, UCS_ERR_INVALID_ADDR},
        {(void*)4096, 4096, UCS_ERR_INVALID_ADDR},
        {(void*)(UINTPTR_MAX - 4095), 4096, UCS_ERR_INVALID_ADDR},
        {(void*)(UINTPTR_MAX - 4095), 4095, UCS_ERR_INVALID_ADDR}
    };
    uct_trig_md_stats_t before, after;
    ucs_status_t status;
    uct_mem_h memh;
    uct_domain_t domain;
    unsigned i;

    CU_ASSERT_FATAL(open(&domain) == UCS_OK);
    CU_ASSERT(uct_trig_md_stats(domain.md, &before) == UCS_OK);
    for (i = 0; i < ST_CUNIT_COUNT(ranges); ++i) {
        uct_errors_begin();
        status = uct_domain_reg(&domain, ranges[i].address, ranges[i].length,
                                &memh);
        CU_ASSERT(is_refusal(ranges[i].address, status, ranges[i].status));
        CU_ASSERT(uct_errors_end() == 1);
        uct_errors_begin();
        status = uct_md_mem_reg(domain.md, ranges[i].address, ranges[i].length,
                                UCT_MD_MEM_ACCESS_ALL |
                                UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh);
        CU_ASSERT(is_refusal(ranges[i].address, status, ranges[i].status));
        CU_ASSERT(uct_errors_end() == 0);
    }
    CU_ASSERT(uct_trig_md_stats(domain.md, &after) == UCS_OK);
    CU_ASSERT(after.registered.count == before.registered.count);

    /* The domain is as good as ever */
    CU_ASSERT_FATAL(uct_domain_reg(&domain, buffer, sizeof(buffer), &memh) ==
                    UCS_OK);
    CU_ASSERT(uct_md_mem_dereg(domain.md, memh) == UCS_OK);
    uct_domain_close(&domain);
}

ST_CASE_CALL(bad_ranges, check_bad_ranges(uct_domain_try_default))
ST_CASE_CALL(bad_ranges_uncached, check_bad_ranges(uct_domain_try_uncached))

/* A hint, which changes nothing of what may be done then: the memory is
 * reached, whether or not its pages were there */
UCT_PAIR_CASE(nonblock)
{
    size_t length  = 16 * sysconf(_SC_PAGESIZE);
    uint8_t *pages = uct_map_pages(length);
    uint64_t value = 0x0123456789abcdefull;
    uct_rkey_bundle_t rkey;
    uint8_t key[UCT_DOMAIN_KEY_MAX];
    uct_mem_h memh;

    CU_ASSERT_FATAL(uct_md_mem_reg(pair->b.md, pages, length,
                                   UCT_MD_MEM_ACCESS_ALL |
                                   UCT_MD_MEM_FLAG_NONBLOCK, &memh) == UCS_OK);
    CU_ASSERT_FATAL(uct_md_mkey_pack(pair->b.md, memh, key) == UCS_OK);
    CU_ASSERT_FATAL(uct_rkey_unpack(pair->component, key, &rkey) == UCS_OK);
    CU_ASSERT(uct_ep_put_short(pair->a.peer, &value, sizeof(value),
                               (uintptr_t)pages + length - sizeof(value),
                               rkey.rkey) == UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    CU_ASSERT(memcmp(pages + length - sizeof(value), &value,
                     sizeof(value)) == 0);
    CU_ASSERT(uct_rkey_release(pair->component, &rkey) == UCS_OK);
    CU_ASSERT(uct_md_mem_dereg(pair->b.md, memh) == UCS_OK);

    /* It guarantees nothing of memory that is not there */
    CU_ASSERT(munmap(pages, length) == 0);
    uct_errors_begin();
    CU_ASSERT(uct_md_mem_reg(pair->b.md, pages, length,
                             UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_NONBLOCK,
                             &memh) == UCS_ERR_INVALID_ADDR);
    CU_ASSERT(uct_errors_end() == 1);
}

ST_SUITE("uct_md_bad")
