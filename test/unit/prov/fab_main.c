/* SPDX-License-Identifier: BSD-3-Clause */
/* fab_main.c - main function of the suites, and the subject. */
#include "fab_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


static const char *const fab_subjects[] = {
    [FAB_STRICT]  = "strict",
    [FAB_FAST]    = "fast",
    [FAB_SOCKETS] = "sockets",
    [FAB_CXI]     = "cxi"
};

static fab_subject_t fab_the_subject;
static uint64_t      fab_the_seed;

fab_subject_t fab_subject(void)
{
    return fab_the_subject;
}

const char *fab_provider(void)
{
    switch (fab_the_subject) {
    case FAB_SOCKETS:
        return "sockets";
    case FAB_CXI:
        return "cxi";
    default:
        return "cxiemu";
    }
}

uint64_t fab_seed(void)
{
    return fab_the_seed;
}

uint64_t fab_random(uint64_t *state)
{
    uint64_t x;

    /* splitmix64 */
    x = (*state += 0x9e3779b97f4a7c15ull);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

uint64_t fab_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ((uint64_t)ts.tv_sec * 1000000000ull) + (uint64_t)ts.tv_nsec;
}

static int fab_find_subject(const char *program)
{
    const char *name = strrchr(program, '.');
    size_t i;

    if (getenv("FAB_SUBJECT") != NULL) {
        name = getenv("FAB_SUBJECT");
    } else if ((name == NULL) || (strchr(name, '/') != NULL)) {
        name = "strict";
    } else {
        ++name;
    }
    for (i = 0; i < ST_CUNIT_COUNT(fab_subjects); ++i) {
        if (!strcmp(name, fab_subjects[i])) {
            fab_the_subject = (fab_subject_t)i;
            return 0;
        }
    }

    fprintf(stderr, "%s: unknown subject \"%s\"\n", program, name);
    return -1;
}

static void fab_find_seed(void)
{
    const char *value = getenv("FAB_SEED");
    char text[32];

    fab_the_seed = (value != NULL) ? strtoull(value, NULL, 0) :
                                     (fab_now() ^ (uint64_t)getpid()) >> 8;
    snprintf(text, sizeof(text), "%" PRIu64, fab_the_seed);
    setenv("FI_CXIEMU_SEED", text, 0);
    printf("FAB_SEED=%s\n", text);
}

/* libfabric reads the environment when it is first called */
static void fab_set_environment(void)
{
    setenv("FI_PROVIDER_PATH", FAB_MODULE_DIR, 0);
    setenv("FI_PROVIDER", fab_provider(), 1);
    if (fab_the_subject == FAB_CXI) {
        /* libfabric's own choice: what was registered stays mapped for a
         * while */
        setenv("FI_MR_CACHE_MONITOR", "memhooks", 1);
        /* test/cassini: queues as short as the card's */
        setenv("CASSINI_EXACT_QUEUES", "1", 1);
    }
    setenv("FI_CXIEMU_MODE", fab_subjects[fab_the_subject], 1);
}

int fab_main(const char *suite, int argc, char **argv)
{
    char name[64];

    if (fab_find_subject(argv[0]) != 0) {
        return EXIT_FAILURE;
    }

    setvbuf(stdout, NULL, _IOLBF, 0);
    fab_set_environment();
    fab_find_seed();
    snprintf(name, sizeof(name), "%s.%s", suite,
             fab_subjects[fab_the_subject]);
    return st_cunit_main(name, argc, argv);
}
