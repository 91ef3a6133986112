/* SPDX-License-Identifier: BSD-3-Clause */
/* uct_region.c - memory that one side of a pair reaches at the other. */
#include "uct_region.h"
#include "st_cunit.h"

#include <ucs/sys/compiler.h>

#include <stdlib.h>
#include <string.h>


void uct_region_open(uct_region_t *region, uct_pair_t *pair, size_t length)
{
    uct_md_attr_t attr;
    uint8_t packed[64];

    memset(region, 0, sizeof(*region));
    CU_ASSERT_FATAL(posix_memalign((void**)&region->data, 4096, length) == 0);
    memset(region->data, 0, length);
    region->pair   = pair;
    region->length = length;

    CU_ASSERT_FATAL(uct_md_query(pair->b.md, &attr) == UCS_OK);
    CU_ASSERT_FATAL(attr.rkey_packed_size <= sizeof(packed));
    CU_ASSERT_FATAL(uct_md_mem_reg(pair->b.md, region->data, length,
                                   UCT_MD_MEM_ACCESS_ALL, &region->memh) ==
                    UCS_OK);
    CU_ASSERT_FATAL(uct_md_mkey_pack(pair->b.md, region->memh, packed) ==
                    UCS_OK);
    CU_ASSERT_FATAL(uct_rkey_unpack(pair->component, packed, &region->rkey) ==
                    UCS_OK);
}

void uct_region_dereg(uct_region_t *region)
{
    CU_ASSERT(uct_md_mem_dereg(region->pair->b.md, region->memh) == UCS_OK);
    region->memh = NULL;
}

/* The provider's thread may not have returned from the call that sent the last
 * bytes of a get, which AddressSanitizer looks at once more when it does. That
 * thread has when it has sent a message after it. */
static void uct_region_settle(uct_pair_t *pair)
{
    if ((pair->a.iface != NULL) && (pair->b.peer != NULL)) {
        (void)uct_ep_check(pair->b.peer, 0, NULL);
        (void)uct_pair_flush(pair, pair->b.peer);
    }
}

void uct_region_close(uct_region_t *region)
{
    uct_region_settle(region->pair);
    if (region->memh != NULL) {
        uct_region_dereg(region);
    }
    CU_ASSERT(uct_rkey_release(region->pair->component, &region->rkey) ==
              UCS_OK);
    free(region->data);
}

void uct_region_open_pair(uct_region_t *region, uct_pair_t *pair,
                          const char *const *settings, size_t length)
{
    CU_ASSERT_FATAL(uct_pair_create(pair, settings) == 0);
    uct_region_open(region, pair, length);
}

void uct_region_close_pair(uct_region_t *region, uct_pair_t *pair)
{
    uct_region_close(region);
    uct_pair_destroy(pair);
}

static void uct_done_called(uct_completion_t *comp)
{
    uct_done_t *done = ucs_container_of(comp, uct_done_t, comp);

    done->status = comp->status;
    ++done->calls;
}

void uct_done_init(uct_done_t *done, int count)
{
    memset(done, 0, sizeof(*done));
    done->comp.func   = uct_done_called;
    done->comp.count  = count;
    done->comp.status = UCS_OK;
    done->status      = UCS_INPROGRESS;
}

ucs_status_t uct_done_wait(uct_done_t *done, uct_pair_t *pair)
{
    uct_pair_wait(pair, &done->calls, 1);
    return done->status;
}

void uct_region_fill(uint8_t *data, size_t length, unsigned seed)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        data[i] = (uint8_t)(seed + (i * 13) + (i >> 8));
    }
}
