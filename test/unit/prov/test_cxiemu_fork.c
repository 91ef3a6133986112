/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cxiemu_fork.c - the emulated NIC in a child that was forked while other
 * threads of its parent had locks.
 */
#include "st_cunit.h"
#include "fork_util.h"
#include "fabric/cxiemu_fabric.h"
#include "base/cxiemu_map.h"
#include "base/cxiemu_process.h"
#include "base/cxiemu_service.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LENGTH 65536ul


static void use_maps(void)
{
    cxiemu_map_t *map;

    if (cxiemu_map_create("test", LENGTH, &map) == 0) {
        cxiemu_map_put(map);
    }
}

static void use_service(void)
{
    cxiemu_service_open();
    cxiemu_service_close();
}

/* A file of its own, that another user of the table finds, and a part in the
 * service */
static int child_own(void)
{
    cxiemu_map_t *map, *again;

    if (cxiemu_map_create("test", LENGTH, &map) != 0) {
        return __LINE__;
    }
    if ((cxiemu_map_open(cxiemu_process_self(), (uint32_t)map->fd, LENGTH,
                         &again) != 0) || (again != map)) {
        return __LINE__;
    }
    cxiemu_map_put(again);
    cxiemu_map_put(map);
    cxiemu_service_open();
    if (cxiemu_service_take(CXIEMU_SERVICE_CNTRS, 3, 100) != 0) {
        return __LINE__;
    }
    if (cxiemu_service_own(CXIEMU_SERVICE_CNTRS) != 3) {
        return __LINE__;
    }
    cxiemu_service_give(CXIEMU_SERVICE_CNTRS, 3);
    cxiemu_service_close();
    return 0;
}

ST_CASE(locks)
{
    static void (*const users[])(void) = {use_maps, use_service};

    fork_among(users, ST_CUNIT_COUNT(users), child_own);
}

/* What the parent has of the service is not the child's, and stays */
ST_CASE(service)
{
    cxiemu_service_open();
    CU_ASSERT_EQUAL(cxiemu_service_take(CXIEMU_SERVICE_CNTRS, 5, 8), 0);
    (void)fork_one(child_own);
    CU_ASSERT_EQUAL(cxiemu_service_own(CXIEMU_SERVICE_CNTRS), 5);
    CU_ASSERT_NOT_EQUAL(cxiemu_service_take(CXIEMU_SERVICE_CNTRS, 4, 8), 0);
    cxiemu_service_give(CXIEMU_SERVICE_CNTRS, 5);
    cxiemu_service_close();
}

int main(int argc, char **argv)
{
    char name[32];

    snprintf(name, sizeof(name), "test-fork-%d", (int)getpid());
    (void)setenv("FI_CXIEMU_MODE", "strict", 1);
    (void)setenv("FI_CXIEMU_SERVICE", name, 1);
    if (cxiemu_init() != 0) {
        return 1;
    }
    return st_cunit_main("cxiemu_fork", argc, argv);
}
