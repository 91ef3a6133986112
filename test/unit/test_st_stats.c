/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_stats.c - what a worker writes of its counts when it goes
 * (UCX_ST_STATS).
 */
#include "st_cunit.h"
#include "st_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN 64

static uint8_t sent[LEN], received[LEN];

/** The standard error output, while it goes to a file. */
typedef struct {
    FILE *file;
    int  before;
    char text[8192];
} capture_t;

static int capture_start(capture_t *capture)
{
    capture->file   = tmpfile();
    capture->before = dup(STDERR_FILENO);
    if ((capture->file == NULL) || (capture->before < 0)) {
        CU_FAIL("tmpfile() or dup()");
        return 0;
    }
    fflush(stderr);
    CU_ASSERT(dup2(fileno(capture->file), STDERR_FILENO) >= 0);
    return 1;
}

static void capture_stop(capture_t *capture)
{
    size_t length;

    fflush(stderr);
    CU_ASSERT(dup2(capture->before, STDERR_FILENO) >= 0);
    close(capture->before);
    rewind(capture->file);
    length = fread(capture->text, 1, sizeof(capture->text) - 1, capture->file);
    capture->text[length] = '\0';
    fclose(capture->file);
    fputs(capture->text, stderr);
}

static unsigned count_text(const char *text, const char *what)
{
    unsigned count = 0;

    for (text = strstr(text, what); text != NULL;
         text = strstr(text + 1, what)) {
        ++count;
    }
    return count;
}

static void use_pair(st_pair_t *pair)
{
    ucp_st_op_h send, recv;

    send = st_send(&pair->side[ST_A], sent, LEN, 1);
    recv = st_recv(&pair->side[ST_B], received, LEN, 1);
    st_match_ok(send, recv);
    st_start(&pair->side[ST_B], recv);
    st_use(&pair->side[ST_A], send);
    st_wait(&pair->side[ST_B], recv);
    st_pair_sync(pair);
    st_free2(send, recv);
}

/* Two workers of the process `pid` are in the text, with two starts in all */
static void check_two(const char *text, pid_t pid, const char *when)
{
    char name[128];

    (void)snprintf(name, sizeof(name), ":%d (%s), worker ", (int)pid,
                   program_invocation_short_name);
    CU_ASSERT_EQUAL(count_text(text, name), 2);
    (void)snprintf(name, sizeof(name), ", at %s\n", when);
    CU_ASSERT_EQUAL(count_text(text, name), 2);
    CU_ASSERT_EQUAL(count_text(text, "\nstarts 1\nwaits 1\nmatches 1\n"), 2);
    /* On lane direct a call of the host may move what a stream has started */
    CU_ASSERT_EQUAL(count_text(text,
                               (st_lane() == UCP_ST_LANE_HOST)   ?
                               "\nhost_starts 1\n" :
                               (st_lane() == UCP_ST_LANE_DIRECT) ?
                               "\ndirect_starts 1\n" :
                               "\ntrig_starts 1\n"), 2);
    CU_ASSERT_EQUAL(count_text(text, "\nsummary: 1 starts: lane "), 2);
    CU_ASSERT_EQUAL(count_text(text, " first choice; 0 errors\n"), 2);
    CU_ASSERT_EQUAL(count_text(text, "\nerrors 0\n"), 2);
    /* The blocks are whole, one behind the other */
    CU_ASSERT_EQUAL(count_text(text, "\n---\n"), 2);
    CU_ASSERT_EQUAL(count_text(text, "ucp_st counts"), 2);
}

static int is_left_open;

/* Asked by AddressSanitizer, where it is built in, before it looks for leaks */
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
    return is_left_open;
}

/* In a child, whose workers stay open: UCX keeps some of their memory where
 * AddressSanitizer does not find it */
static void leave_open(void)
{
    st_pair_t pair;

    is_left_open = 1;
    (void)st_env_set("UCX_ST_STATS", "y");
    (void)st_env_set("FI_CXIEMU_LEAKS", "n"); /* that is the point */
    (void)st_env_set("CASSINI_LEAKS", NULL);
    if (!st_pair_init(&pair)) {
        _exit(1);
    }
    use_pair(&pair);
    exit(0);
}

/* The process ends with both workers open. First of all cases: where none has
 * made a worker, a child may. */
ST_CASE(exit)
{
    int status = -1;
    capture_t capture;
    pid_t child;

    if (!capture_start(&capture)) {
        return;
    }
    child = fork();
    if (child == 0) {
        leave_open();
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    capture_stop(&capture);
    CU_ASSERT_EQUAL(status, 0);
    check_two(capture.text, child, "exit");
}

static void destroy_pair(const char *setting, capture_t *capture)
{
    char *before = st_env_set("UCX_ST_STATS", setting);
    st_pair_t pair;

    st_pair_init(&pair);
    use_pair(&pair);
    if (capture_start(capture)) {
        st_pair_cleanup(&pair);
        capture_stop(capture);
    }
    st_env_restore("UCX_ST_STATS", before);
}

ST_CASE(destroy)
{
    capture_t capture;

    destroy_pair("y", &capture);
    check_two(capture.text, getpid(), "its end");
}

/* Nothing is said unless it is asked for */
ST_CASE(default)
{
    capture_t capture;

    destroy_pair(NULL, &capture);
    CU_ASSERT_EQUAL(count_text(capture.text, "ucp_st counts"), 0);
    destroy_pair("n", &capture);
    CU_ASSERT_EQUAL(count_text(capture.text, "ucp_st counts"), 0);
}

ST_SUITE("st_stats")
