/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_service.c - what the processes of a service share of the device.
 */
#include "base/cxiemu_service.h"
#include "cxiemu.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_param.h"

#include <ucs_fork.h>
#include <ucs_ledger.h>

#include <rdma/fi_errno.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CXIEMU_SERVICE_LABEL "st-service"

_Static_assert(CXIEMU_SERVICE_LAST <= UCS_LEDGER_NUMBERS,
               "a number for each resource");

/** The part of this process: of all its domains. */
static struct {
    pthread_mutex_t lock; /**< For opening and closing */
    unsigned        refs;
    int             is_left; /**< The part was that of the parent */
    ucs_ledger_t    ledger;
} cxiemu_service = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


const char *cxiemu_service_name(void)
{
    static char name[96];
    const char *job = cxiemu_param()->service;

    if (!strcmp(job, "own")) {
        return "";
    }
    if (job[0] == '\0') {
        /* A launcher's job; else what a shell, or a test, takes for one */
        job = getenv("PMIX_NAMESPACE");
    }
    if (job == NULL) {
        snprintf(name, sizeof(name), "group-%d", (int)getpgrp());
    } else {
        snprintf(name, sizeof(name), "%s", job);
    }
    return name;
}

static void cxiemu_service_join(ucs_ledger_t *ledger)
{
    const char *name = cxiemu_service_name();
    int ret;

    if (name[0] != '\0') {
        ret = ucs_ledger_open(ledger, CXIEMU_SERVICE_LABEL, name);
        if (ret == 0) {
            return;
        }
        cxiemu_warn(DOMAIN, "no part in service %s: /dev/shm%s: %s\n", name,
                    ledger->name, strerror(ret));
    }
    ucs_ledger_open_alone(ledger);
}

void cxiemu_service_fork_begin(void)
{
    ucs_fork_lock(&cxiemu_service.lock);
}

/* A child takes part with its first domain: few children have any */
void cxiemu_service_fork_end(int is_child)
{
    if (is_child && !ucs_fork_has(&cxiemu_service.lock)) {
        cxiemu_service.refs = 0;
    } else if (is_child && (cxiemu_service.refs > 0)) {
        ucs_ledger_forked(&cxiemu_service.ledger);
        cxiemu_service.is_left = 1;
    }
    ucs_fork_unlock(&cxiemu_service.lock, is_child);
}

void cxiemu_service_open(void)
{
    pthread_mutex_lock(&cxiemu_service.lock);
    if ((cxiemu_service.refs++ == 0) || cxiemu_service.is_left) {
        cxiemu_service.is_left = 0;
        cxiemu_service_join(&cxiemu_service.ledger);
    }
    pthread_mutex_unlock(&cxiemu_service.lock);
}

void cxiemu_service_close(void)
{
    pthread_mutex_lock(&cxiemu_service.lock);
    if (--cxiemu_service.refs == 0) {
        ucs_ledger_close(&cxiemu_service.ledger);
    }
    pthread_mutex_unlock(&cxiemu_service.lock);
}

int cxiemu_service_take(cxiemu_resource_t resource, size_t count, size_t max)
{
    return ucs_ledger_take(&cxiemu_service.ledger, resource, (uint32_t)count,
                           max) ? 0 : -FI_ENOSPC;
}

void cxiemu_service_give(cxiemu_resource_t resource, size_t count)
{
    ucs_ledger_give(&cxiemu_service.ledger, resource, (uint32_t)count);
}

size_t cxiemu_service_own(cxiemu_resource_t resource)
{
    return ucs_ledger_own(&cxiemu_service.ledger, resource);
}
