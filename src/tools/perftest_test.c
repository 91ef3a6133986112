/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_test.c - the tests there are. */
#include "perftest_test.h"

#include <string.h>


const perftest_test_t perftest_tests[PERFTEST_NUM_TESTS] = {
    {"st_lat", "tag_lat", &perftest_st_engine, PERFTEST_PATTERN_LAT,
     UCP_ST_MODE_STANDARD, "standard sends, half a round trip"},
    {"st_rlat", "tag_lat", &perftest_st_engine, PERFTEST_PATTERN_LAT,
     UCP_ST_MODE_READY, "ready sends, half a round trip"},
    {"st_bw", "tag_bw", &perftest_st_engine, PERFTEST_PATTERN_BW,
     UCP_ST_MODE_STANDARD, "standard sends, a window of them"},
    {"st_rbw", "tag_bw", &perftest_st_engine, PERFTEST_PATTERN_BW,
     UCP_ST_MODE_READY, "ready sends, a window of them"},
    {"st_bibw", "tag_bibw", &perftest_st_engine, PERFTEST_PATTERN_BIBW,
     UCP_ST_MODE_STANDARD, "standard sends, windows in both directions"},
    {"tag_lat", NULL, &perftest_tag_engine, PERFTEST_PATTERN_LAT,
     UCP_ST_MODE_STANDARD, "UCP tag messages, half a round trip"},
    {"tag_bw", NULL, &perftest_tag_engine, PERFTEST_PATTERN_BW,
     UCP_ST_MODE_STANDARD, "UCP tag messages, a window of them"},
    {"tag_bibw", NULL, &perftest_tag_engine, PERFTEST_PATTERN_BIBW,
     UCP_ST_MODE_STANDARD, "UCP tag messages, windows in both directions"}
};

int perftest_test_find(const char *name, size_t length)
{
    int i;

    for (i = 0; i < PERFTEST_NUM_TESTS; ++i) {
        if ((strlen(perftest_tests[i].name) == length) &&
            (strncmp(perftest_tests[i].name, name, length) == 0)) {
            return i;
        }
    }
    return -1;
}

int perftest_test_is_st(const perftest_test_t *test)
{
    return test->engine == &perftest_st_engine;
}
