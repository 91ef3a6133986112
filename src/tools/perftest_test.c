/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_test.c - the tests there are. */
#include "perftest_test.h"

#include <string.h>


const perftest_test_t perftest_tests[PERFTEST_NUM_TESTS] = {
    {"st_lat", "tag_lat", &perftest_st_engine, PERFTEST_PATTERN_LAT,
     UCP_ST_MODE_STANDARD, PERFTEST_RMA_NONE,
     "standard sends, half a round trip"},
    {"st_rlat", "tag_lat", &perftest_st_engine, PERFTEST_PATTERN_LAT,
     UCP_ST_MODE_READY, PERFTEST_RMA_NONE,
     "ready sends, half a round trip"},
    {"st_bw", "tag_bw", &perftest_st_engine, PERFTEST_PATTERN_BW,
     UCP_ST_MODE_STANDARD, PERFTEST_RMA_NONE,
     "standard sends, a window of them"},
    {"st_rbw", "tag_bw", &perftest_st_engine, PERFTEST_PATTERN_BW,
     UCP_ST_MODE_READY, PERFTEST_RMA_NONE,
     "ready sends, a window of them"},
    {"st_bibw", "tag_bibw", &perftest_st_engine, PERFTEST_PATTERN_BIBW,
     UCP_ST_MODE_STANDARD, PERFTEST_RMA_NONE,
     "standard sends, windows in both directions"},
    {"st_put_lat", "tag_lat", &perftest_st_engine, PERFTEST_PATTERN_ONE,
     UCP_ST_MODE_STANDARD, PERFTEST_RMA_PUT,
     "puts, each complete at the server"},
    {"st_get_lat", "tag_lat", &perftest_st_engine, PERFTEST_PATTERN_ONE,
     UCP_ST_MODE_STANDARD, PERFTEST_RMA_GET, "gets, each complete"},
    {"st_signal_lat", "tag_lat", &perftest_st_engine, PERFTEST_PATTERN_LAT,
     UCP_ST_MODE_STANDARD, PERFTEST_RMA_SIGNAL,
     "puts with signals, half a round trip"},
    {"tag_lat", NULL, &perftest_tag_engine, PERFTEST_PATTERN_LAT,
     UCP_ST_MODE_STANDARD, PERFTEST_RMA_NONE,
     "UCP tag messages, half a round trip"},
    {"tag_bw", NULL, &perftest_tag_engine, PERFTEST_PATTERN_BW,
     UCP_ST_MODE_STANDARD, PERFTEST_RMA_NONE,
     "UCP tag messages, a window of them"},
    {"tag_bibw", NULL, &perftest_tag_engine, PERFTEST_PATTERN_BIBW,
     UCP_ST_MODE_STANDARD, PERFTEST_RMA_NONE,
     "UCP tag messages, windows in both directions"}
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
