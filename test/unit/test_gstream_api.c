/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_api.c - checks of arguments and life cycle of streams. */
#include "gstream_util.h"
#include "st_cunit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A batch with one bad command is refused as a whole */

static void test_refused(ucs_gstream_h stream, const ucs_gstream_cmd_t *bad)
{
    uint64_t runs = 0;
    ucs_gstream_cmd_t cmds[3];
    ucs_status_t status;

    cmds[0] = gstream_util_cmd_func(gstream_util_count, &runs);
    cmds[1] = gstream_util_cmd_func(gstream_util_count, &runs);
    cmds[2] = *bad;
    status  = ucs_gstream_enqueue(stream, cmds, 3);
    CU_ASSERT_EQUAL(status, UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(runs, 0);
}

GSTREAM_CASE(bad_commands)
{
    uint64_t words[2] = {0};
    volatile uint64_t *misaligned =
            (volatile uint64_t*)((uintptr_t)&words[0] + 4);
    const ucs_gstream_rect_t near = {7, 8, 8, 2};
    const ucs_gstream_rect_t far  = {8, 1ull << 31, 8, 2};
    const ucs_gstream_rect_t none = {8, 8, 8, 1};
    ucs_gstream_cmd_t bad[] = {
        gstream_util_cmd_func(NULL, NULL),
        gstream_util_cmd_word(UCS_GSTREAM_CMD_WRITE64, NULL, 1),
        gstream_util_cmd_word(UCS_GSTREAM_CMD_WAIT64, NULL, 1),
        gstream_util_cmd_word(UCS_GSTREAM_CMD_WRITE64, misaligned, 1),
        gstream_util_cmd_word(UCS_GSTREAM_CMD_WAIT64, misaligned, 1),
        {.type = UCS_GSTREAM_CMD_COPY, .u.copy = {NULL, words, 1}},
        {.type = UCS_GSTREAM_CMD_COPY, .u.copy = {words, NULL, 1}},
        {.type = UCS_GSTREAM_CMD_COPY2D, .u.copy2d = {words, words, NULL}},
        {.type = UCS_GSTREAM_CMD_COPY2D, .u.copy2d = {words, words, &near}},
        {.type = UCS_GSTREAM_CMD_COPY2D, .u.copy2d = {words, words, &far}},
        {.type = UCS_GSTREAM_CMD_COPY2D, .u.copy2d = {words, NULL, &none}},
        {.type = (ucs_gstream_cmd_type_t)77}
    };
    size_t i;

    gstream_util_quiet(1);
    for (i = 0; i < ST_CUNIT_COUNT(bad); ++i) {
        test_refused(stream, &bad[i]);
    }
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(words[0], 0);
    CU_ASSERT_EQUAL(words[1], 0);
}

/* What describes rows is copied with the command, and may change */
GSTREAM_CASE(rows)
{
    char from[60], to[60], expected[60];
    ucs_gstream_rect_t rect = {.dst_pitch = 12, .src_pitch = 7, .width = 5};
    size_t i;

    memset(to, 0, sizeof(to));
    memset(expected, 0, sizeof(expected));
    for (i = 0; i < sizeof(from); ++i) {
        from[i] = (char)(i + 1);
    }
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy2d(stream, NULL, from, &rect),
                    UCS_OK);
    for (rect.height = 1; rect.height <= 5; ++rect.height) {
        CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy2d(stream, to, from, &rect),
                        UCS_OK);
        memcpy(&expected[12 * (rect.height - 1)],
               &from[7 * (rect.height - 1)], 5);
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(memcmp(to, expected, sizeof(to)), 0);
}

GSTREAM_CASE(bad_arguments)
{
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, NULL, 1),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(NULL, NULL, 0), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_query(NULL), UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, NULL, 0), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
    ucs_gstream_wake(NULL);
}


/* Creation and handles */

ST_CASE(create)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE
    };
    ucs_gstream_h stream;

    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_create(&params, NULL), UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
    gstream_util_refused(NULL, UCS_ERR_INVALID_PARAM);
    params.type = UCS_GSTREAM_TYPE_LAST;
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    params.type = (ucs_gstream_type_t)-1;
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    params.type = UCS_GSTREAM_TYPE_HIP;
    gstream_util_refused(&params, UCS_ERR_UNSUPPORTED);
    params.type = UCS_GSTREAM_TYPE_CUDA;
    gstream_util_refused(&params, UCS_ERR_UNSUPPORTED);

    params.field_mask = 0; /* the type is not looked at */
    CU_ASSERT_EQUAL_FATAL(ucs_gstream_create(&params, &stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_type(stream), UCS_GSTREAM_TYPE_HOST);
    gstream_util_finish(stream);
}

ST_CASE(handles)
{
    ucs_gstream_h first  = gstream_util_create();
    ucs_gstream_h second = gstream_util_create();
    uint64_t garbage[64];

    memset(garbage, 0x5a, sizeof(garbage));
    CU_ASSERT(ucs_gstream_is_valid(first));
    CU_ASSERT(ucs_gstream_is_valid(second));
    CU_ASSERT_FALSE(ucs_gstream_is_valid(NULL));
    CU_ASSERT_FALSE(ucs_gstream_is_valid((ucs_gstream_h)garbage));
    CU_ASSERT_FALSE(ucs_gstream_is_valid((ucs_gstream_h)(uintptr_t)1));

    CU_ASSERT_EQUAL(ucs_gstream_destroy(first), UCS_OK);
    CU_ASSERT_FALSE(ucs_gstream_is_valid(first));
    CU_ASSERT(ucs_gstream_is_valid(second));
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(first), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_destroy((ucs_gstream_h)garbage),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(NULL), UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
    gstream_util_finish(second);
}

ST_CASE(settings)
{
    ucs_gstream_params_t params = {0};
    ucs_gstream_h stream;

    setenv("UCX_GSTREAM_SPIN", "many", 1);
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    setenv("UCX_GSTREAM_SPIN", "7", 1);
    CU_ASSERT_EQUAL_FATAL(ucs_gstream_create(&params, &stream), UCS_OK);
    unsetenv("UCX_GSTREAM_SPIN");
    gstream_util_finish(stream);
}


/* A command may not wait for its own stream */

typedef struct {
    ucs_gstream_h stream;
    ucs_status_t  statuses[4];
} test_own_t;

static void test_own_try(void *arg)
{
    test_own_t *own = arg;

    own->statuses[0] = ucs_gstream_synchronize(own->stream);
    own->statuses[1] = ucs_gstream_synchronize_timeout(own->stream, 1);
    own->statuses[2] = ucs_gstream_destroy(own->stream);
    own->statuses[3] = ucs_gstream_query(own->stream);
}

/* A type is queried as it is created */
ST_CASE(types)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE
    };
    ucs_gstream_type_attr_t attr;
    ucs_status_t status;
    int type;

    for (type = 0; type < UCS_GSTREAM_TYPE_LAST; ++type) {
        params.type = (ucs_gstream_type_t)type;
        status      = ucs_gstream_query_type(params.type, &attr);
        CU_ASSERT(attr.name[0] != '\0');
        CU_ASSERT_EQUAL(status == UCS_OK, attr.reason[0] == '\0');
        if (status != UCS_OK) {
            gstream_util_refused(&params, status);
        }
    }
    CU_ASSERT_EQUAL(ucs_gstream_query_type(UCS_GSTREAM_TYPE_HOST, &attr),
                    UCS_OK);
    CU_ASSERT_STRING_EQUAL(attr.name, "host");
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_query_type(UCS_GSTREAM_TYPE_LAST, &attr),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_query_type(UCS_GSTREAM_TYPE_HOST, NULL),
                    UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
}

ST_CASE(own_command)
{
    test_own_t own = {
        .stream = gstream_util_create()
    };

    gstream_util_quiet(1);
    gstream_util_func(own.stream, test_own_try, &own);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(own.stream), UCS_OK);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(own.statuses[0], UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(own.statuses[1], UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(own.statuses[2], UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(own.statuses[3], UCS_INPROGRESS);
    CU_ASSERT(ucs_gstream_is_valid(own.stream));
    gstream_util_finish(own.stream);
}

ST_CASE(destroy_pending)
{
    ucs_gstream_h stream   = gstream_util_create();
    volatile uint64_t word = 0;
    uint64_t runs          = 0;

    gstream_util_wait(stream, &word, 1);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_ERR_BUSY);
    CU_ASSERT(ucs_gstream_is_valid(stream));

    /* It had no effect */
    gstream_util_func(stream, gstream_util_count, &runs);
    gstream_util_let_go(&word, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(runs, 1);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_OK);
    CU_ASSERT_FALSE(ucs_gstream_is_valid(stream));
}

/* Nor is one that somebody uses, and each use counts */
ST_CASE(destroy_used)
{
    ucs_gstream_h stream = gstream_util_create();

    CU_ASSERT_EQUAL(ucs_gstream_get(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_get(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_get(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_ERR_BUSY);
    ucs_gstream_put(stream);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_ERR_BUSY);
    CU_ASSERT(ucs_gstream_is_valid(stream));
    ucs_gstream_put(stream);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_get(stream), UCS_ERR_INVALID_PARAM);
}


/* Timeouts of synchronize */

GSTREAM_CASE(timeout)
{
    static const double timeouts[] = {0, -1, -INFINITY, NAN, 1e-9, 0.01};
    volatile uint64_t gate         = 0;
    size_t i;

    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 0), UCS_OK);
    gstream_util_wait(stream, &gate, 1);
    for (i = 0; i < ST_CUNIT_COUNT(timeouts); ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, timeouts[i]),
                        UCS_INPROGRESS);
    }

    gstream_util_store(&gate, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 1e300), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, INFINITY), UCS_OK);
}

ST_SUITE("gstream_api")
