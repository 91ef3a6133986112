/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uct_md.c - memory of UCT's memory domain: registration, keys, cache. */
#include "st_cunit.h"
#include "uct_domain.h"
#include "uct_region.h"
#include "uct_short.h"

#include <uct/api/v2/uct_v2.h>
#include <uct/api/version.h>

#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


/* Where UCX cannot watch memory, there is no cache */
static int domain_open_cached(uct_domain_t *domain)
{
    ucs_status_t status;

    uct_errors_begin();
    status = uct_domain_try(domain, uct_pair_device(), "RCACHE", "y");
    if (status != UCS_OK) {
        CU_ASSERT((uct_errors_end() > 0) || (status == UCS_ERR_NO_ELEM));
        st_cunit_skip("no cache of registrations here: UCX cannot tell that "
                      "memory is unmapped, or caches itself");
        return 0;
    }
    CU_ASSERT(uct_errors_end() == 0);
    return 1;
}


UCT_DOMAIN_CASE(query)
{
    CU_ASSERT(domain->attr.cap.flags & UCT_MD_FLAG_REG);
    CU_ASSERT(domain->attr.cap.flags & UCT_MD_FLAG_NEED_RKEY);
    CU_ASSERT(domain->attr.cap.flags & UCT_MD_FLAG_ADVISE);
    CU_ASSERT(!(domain->attr.cap.flags & UCT_MD_FLAG_ALLOC));
    CU_ASSERT(domain->attr.cap.reg_mem_types == UCS_BIT(UCS_MEMORY_TYPE_HOST));
    CU_ASSERT(domain->attr.cap.max_reg > 0);
}

/* Connections by socket addresses are not the transport's business */
ST_CASE(sockaddr)
{
#if UCT_API < UCT_VERSION(1, 15)
    struct sockaddr_in in   = {.sin_family = AF_INET};
    ucs_sock_addr_t address = {(struct sockaddr*)&in, sizeof(in)};
    uct_domain_t domain;

    uct_domain_open(&domain);
    CU_ASSERT(!uct_md_is_sockaddr_accessible(domain.md, &address,
                                             UCT_SOCKADDR_ACC_LOCAL));
    CU_ASSERT(!uct_md_is_sockaddr_accessible(domain.md, &address,
                                             UCT_SOCKADDR_ACC_REMOTE));
    uct_domain_close(&domain);
#else
    st_cunit_skip("this version of UCX asks no memory domain");
#endif
}

ST_CASE(wrong_device)
{
    uct_domain_t domain;

    uct_errors_begin();
    CU_ASSERT(uct_domain_try(&domain, "nosuch0", NULL, NULL) ==
              UCS_ERR_NO_DEVICE);
    CU_ASSERT(uct_errors_end() == 1);
}

/* Small, and the same however often it is packed */
UCT_DOMAIN_CASE(key)
{
    static uint8_t buffer[1000];
    uint8_t key[UCT_DOMAIN_KEY_MAX] = {0}, again[UCT_DOMAIN_KEY_MAX] = {0};
    uct_trig_rkey_t rkey;
    uct_mem_h memh;

    CU_ASSERT(domain->attr.rkey_packed_size == UCT_TRIG_RKEY_PACKED_LEN);
    CU_ASSERT(domain->attr.rkey_packed_size <= 32);
    CU_ASSERT_FATAL(uct_domain_reg(domain, buffer, sizeof(buffer), &memh) ==
                    UCS_OK);
    CU_ASSERT(uct_md_mkey_pack(domain->md, memh, key) == UCS_OK);
    CU_ASSERT(uct_md_mkey_pack(domain->md, memh, again) == UCS_OK);
    CU_ASSERT(memcmp(key, again, sizeof(key)) == 0);
    CU_ASSERT(key[domain->attr.rkey_packed_size] == 0);
    CU_ASSERT_FATAL(uct_trig_rkey_unpack(key, UCT_TRIG_RKEY_PACKED_LEN,
                                         &rkey) == UCS_OK);
    CU_ASSERT(rkey.address <= (uintptr_t)buffer);
    CU_ASSERT(rkey.address + rkey.length >=
              (uintptr_t)buffer + sizeof(buffer));
    CU_ASSERT(uct_md_mem_dereg(domain->md, memh) == UCS_OK);
}

/* A program that ends without giving its memory back is told so, and ends */
ST_CASE(leaked)
{
    size_t length = 4 * sysconf(_SC_PAGESIZE);
    uct_mem_h memh, again, other;
    uct_domain_t domain;
    uint8_t *pages;

    if (!domain_open_cached(&domain)) {
        return;
    }
    pages = uct_map_pages(2 * length);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, pages, length, &memh) == UCS_OK);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, pages, 100, &again) == UCS_OK);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, pages + length, length, &other) ==
                    UCS_OK);
    CU_ASSERT(memh == again);
    uct_errors_begin_text(UCS_LOG_LEVEL_WARN, "not given back");
    uct_domain_close(&domain);
    CU_ASSERT(uct_errors_end() == 1);
    CU_ASSERT_FATAL(munmap(pages, 2 * length) == 0);
}

/* One registration serves all, until the memory goes */
ST_CASE(cache)
{
    size_t length = 4 * sysconf(_SC_PAGESIZE);
    uint8_t key[UCT_DOMAIN_KEY_MAX], again[UCT_DOMAIN_KEY_MAX];
    uct_mem_h memh, other;
    uct_domain_t domain;
    uint8_t *pages;

    if (!domain_open_cached(&domain)) {
        return;
    }
    pages = uct_map_pages(length);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, pages, length, &memh) == UCS_OK);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, pages + 100, 1000, &other) ==
                    UCS_OK);
    CU_ASSERT(memh == other);
    CU_ASSERT(uct_md_mem_dereg(domain.md, memh) == UCS_OK);
    CU_ASSERT(uct_md_mem_dereg(domain.md, other) == UCS_OK);
    uct_domain_key(&domain, pages, length, key);
    uct_domain_key(&domain, pages, length, again);
    CU_ASSERT(memcmp(key, again, sizeof(key)) == 0);

    CU_ASSERT_FATAL(munmap(pages, length) == 0);
    uct_errors_begin();
    CU_ASSERT(uct_domain_reg(&domain, pages, length, &memh) ==
              UCS_ERR_INVALID_ADDR);
    CU_ASSERT(uct_errors_end() == 1);
    CU_ASSERT_FATAL(mmap(pages, length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                    (void*)pages);
    uct_domain_key(&domain, pages, length, again);
    CU_ASSERT(memcmp(key, again, sizeof(key)) != 0);
    uct_domain_close(&domain);
    CU_ASSERT(munmap(pages, length) == 0);
}

ST_CASE(uncached)
{
    static uint8_t buffer[4096];
    uct_mem_h memh, other;
    uct_domain_t domain;

    CU_ASSERT_FATAL(uct_domain_try_uncached(&domain) == UCS_OK);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, buffer, sizeof(buffer), &memh) ==
                    UCS_OK);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, buffer, sizeof(buffer), &other) ==
                    UCS_OK);
    CU_ASSERT(memh != other);
    CU_ASSERT(uct_md_mem_dereg(domain.md, memh) == UCS_OK);
    CU_ASSERT(uct_md_mem_dereg(domain.md, other) == UCS_OK);
    uct_domain_close(&domain);
}

ST_CASE(refused_cache_setting)
{
    ucs_status_t status;
    uct_domain_t domain;

    uct_errors_begin();
    status = uct_domain_try(&domain, uct_pair_device(), "RCACHE", "perhaps");
    CU_ASSERT(status != UCS_OK);
    CU_ASSERT((uct_errors_end() > 0) || (status == UCS_ERR_NO_ELEM));
}


/* Invalidates a registration, with one count of two; 0 after a skip */
static int invalidate(uct_domain_t *domain, uct_mem_h memh, uct_done_t *done)
{
    uct_md_mem_dereg_params_t params = {
        .field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                      UCT_MD_MEM_DEREG_FIELD_FLAGS |
                      UCT_MD_MEM_DEREG_FIELD_COMPLETION,
        .memh       = memh,
        .flags      = UCT_MD_MEM_DEREG_FLAG_INVALIDATE,
        .comp       = &done->comp
    };
    ucs_status_t status;

    uct_done_init(done, 2);
    status = uct_md_mem_dereg_v2(domain->md, &params);
    if (domain->attr.cap.flags & UCT_MD_FLAG_INVALIDATE) {
        CU_ASSERT_FATAL(status == UCS_OK);
        return 1;
    }
    CU_ASSERT(status == UCS_ERR_UNSUPPORTED);
    CU_ASSERT(uct_md_mem_dereg(domain->md, memh) == UCS_OK);
    st_cunit_skip("this provider lets a write go on that has begun when its "
                  "region is closed");
    return 0;
}

static void check_invalidate(ucs_status_t (*open)(uct_domain_t*))
{
    static uint8_t buffer[8192];
    uct_done_t done;
    uint8_t key[UCT_DOMAIN_KEY_MAX] = {0}, next[UCT_DOMAIN_KEY_MAX];
    uct_mem_h memh;
    uct_domain_t domain;

    CU_ASSERT_FATAL(open(&domain) == UCS_OK);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, buffer, sizeof(buffer), &memh) ==
                    UCS_OK);
    CU_ASSERT_FATAL(uct_md_mkey_pack(domain.md, memh, key) == UCS_OK);
    if (invalidate(&domain, memh, &done)) {
        CU_ASSERT(done.comp.count == 1);
        CU_ASSERT(done.comp.status == UCS_OK);
        /* Its key is never used again */
        uct_domain_key(&domain, buffer, sizeof(buffer), next);
        CU_ASSERT(memcmp(key, next, sizeof(key)) != 0);
    }
    uct_domain_close(&domain);
}

ST_CASE_CALL(invalidate, check_invalidate(uct_domain_try_default))
ST_CASE_CALL(invalidate_uncached, check_invalidate(uct_domain_try_uncached))

/* Others that have the same registration keep it; the completion waits for
 * them, and nobody gets it any more */
ST_CASE(invalidate_shared)
{
    static uint8_t buffer[8192];
    uct_done_t done;
    uct_mem_h first, second, third;
    uct_domain_t domain;

    if (!domain_open_cached(&domain)) {
        return;
    }
    CU_ASSERT_FATAL(uct_domain_reg(&domain, buffer, sizeof(buffer), &first) ==
                    UCS_OK);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, buffer, sizeof(buffer), &second) ==
                    UCS_OK);
    CU_ASSERT(first == second);
    if (invalidate(&domain, first, &done)) {
        CU_ASSERT(done.comp.count == 2);
        CU_ASSERT_FATAL(uct_domain_reg(&domain, buffer, sizeof(buffer),
                                       &third) == UCS_OK);
        CU_ASSERT(third != second);
        CU_ASSERT(uct_md_mem_dereg(domain.md, second) == UCS_OK);
        CU_ASSERT(done.comp.count == 1);
        CU_ASSERT(uct_md_mem_dereg(domain.md, third) == UCS_OK);
    } else {
        CU_ASSERT(uct_md_mem_dereg(domain.md, second) == UCS_OK);
    }
    uct_domain_close(&domain);
}

/* A put with the key of what was invalidated fails, and changes nothing */
UCT_PAIR_CASE(invalidated_is_refused)
{
    static uint8_t buffer[64];
    uct_done_t done;
    uint64_t value        = UINT64_MAX;
    uint8_t key[UCT_DOMAIN_KEY_MAX];
    uct_rkey_bundle_t rkey;
    uct_mem_h memh;
    uct_domain_t domain;

    domain.md = pair->b.md;
    CU_ASSERT_FATAL(uct_md_query(domain.md, &domain.attr) == UCS_OK);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, buffer, sizeof(buffer), &memh) ==
                    UCS_OK);
    CU_ASSERT_FATAL(uct_md_mkey_pack(domain.md, memh, key) == UCS_OK);
    CU_ASSERT_FATAL(uct_rkey_unpack(pair->component, key, &rkey) == UCS_OK);
    if (invalidate(&domain, memh, &done)) {
        CU_ASSERT(done.comp.count == 1);
        CU_ASSERT(uct_ep_put_short(pair->a.peer, &value, sizeof(value),
                                   (uintptr_t)buffer, rkey.rkey) == UCS_OK);
        CU_ASSERT(uct_pair_flush(pair, pair->a.peer) != UCS_OK);
        CU_ASSERT(buffer[0] == 0);
    }
    CU_ASSERT(uct_rkey_release(pair->component, &rkey) == UCS_OK);
}

ST_CASE(advise)
{
    size_t page   = sysconf(_SC_PAGESIZE);
    uint8_t *pages = uct_map_pages(4 * page);
    uct_mem_h memh;
    uct_domain_t domain;

    CU_ASSERT_FATAL(uct_domain_try_uncached(&domain) == UCS_OK);
    CU_ASSERT_FATAL(uct_domain_reg(&domain, pages, 4 * page, &memh) == UCS_OK);
    pages[page] = 7;
    CU_ASSERT(uct_md_mem_advise(domain.md, memh, pages, 4 * page,
                                UCT_MADV_WILLNEED) == UCS_OK);
    CU_ASSERT(uct_md_mem_advise(domain.md, memh, pages + 7, page,
                                UCT_MADV_WILLNEED) == UCS_OK);
    CU_ASSERT(uct_md_mem_advise(domain.md, memh, pages, page,
                                UCT_MADV_NORMAL) == UCS_OK);
    CU_ASSERT(pages[page] == 7);

    uct_errors_begin();
    CU_ASSERT(uct_md_mem_advise(domain.md, memh, pages, (4 * page) + 1,
                                UCT_MADV_WILLNEED) == UCS_ERR_INVALID_PARAM);
    CU_ASSERT(uct_md_mem_advise(domain.md, memh, pages - 1, 2,
                                UCT_MADV_WILLNEED) == UCS_ERR_INVALID_PARAM);
    CU_ASSERT(uct_md_mem_advise(domain.md, memh, pages, page, 77) ==
              UCS_ERR_INVALID_PARAM);
    CU_ASSERT(uct_errors_end() == 3);
    CU_ASSERT(uct_md_mem_dereg(domain.md, memh) == UCS_OK);
    uct_domain_close(&domain);
    CU_ASSERT(munmap(pages, 4 * page) == 0);
}

/* All that allocates; the first failure ends it */
static ucs_status_t live(ucs_status_t (*open)(uct_domain_t*))
{
    static uint8_t buffer[4096];
    uct_rkey_bundle_t rkey;
    uint8_t key[UCT_DOMAIN_KEY_MAX];
    ucs_status_t status;
    uct_domain_t domain;
    uct_mem_h memh;

    status = open(&domain);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_domain_reg(&domain, buffer, sizeof(buffer), &memh);
    if (status == UCS_OK) {
        CU_ASSERT(uct_md_mkey_pack(domain.md, memh, key) == UCS_OK);
        status = uct_rkey_unpack(domain.component, key, &rkey);
        if (status == UCS_OK) {
            CU_ASSERT(uct_rkey_release(domain.component, &rkey) == UCS_OK);
        }
        CU_ASSERT(uct_md_mem_dereg(domain.md, memh) == UCS_OK);
    }
    uct_domain_close(&domain);
    return status;
}

/* Each of them fails once, and the call says so; the address sanitizer looks
 * for what is left over */
static void check_no_memory(ucs_status_t (*open)(uct_domain_t*))
{
    ucs_status_t status;
    int number;

    for (number = 0; number < 100; ++number) {
        uct_short_left = number;
        status           = live(open);
        if (uct_short_left >= 0) {
            break;
        }
        CU_ASSERT(status == UCS_ERR_NO_MEMORY);
    }
    uct_short_left = -1;
    CU_ASSERT(status == UCS_OK);
    /* The domain and the key; the cache has the regions from elsewhere */
    CU_ASSERT(number >= 2);
}

ST_CASE_CALL(no_memory, check_no_memory(uct_domain_try_default))
ST_CASE_CALL(no_memory_uncached, check_no_memory(uct_domain_try_uncached))

ST_SUITE("uct_md")
