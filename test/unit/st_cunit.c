/* SPDX-License-Identifier: BSD-3-Clause */
/* st_cunit.c - main function of a CUnit test program. */
#include "st_cunit.h"

#include <CUnit/TestDB.h>
#include <CUnit/TestRun.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ST_CUNIT_EXIT_SKIP       77
#define ST_CUNIT_DEFAULT_TIMEOUT 120

/* Idle threads are found asleep so often in a row, and go to sleep so often in
 * 50 ms at most, all together */
#define ST_CUNIT_IDLE_LOOKS  10
#define ST_CUNIT_IDLE_SLEEPS 20


/* State of one run. Main thread only, but for 'current', which the signal
 * handler reads. */
typedef struct {
    const char *suite_name;
    CU_pSuite  suite;
    unsigned   passed;
    unsigned   failed;
    unsigned   skipped;
} st_cunit_run_t;


static const char *volatile st_cunit_current;
static const char *st_cunit_skip_reason;
static st_cunit_case_t *st_cunit_cases;


void st_cunit_add(st_cunit_case_t *tcase)
{
    st_cunit_case_t **next = &st_cunit_cases;

    while ((*next != NULL) && ((*next)->line < tcase->line)) {
        next = &(*next)->next;
    }
    tcase->next = *next;
    *next       = tcase;
}

void st_cunit_skip(const char *reason)
{
    st_cunit_skip_reason = reason;
}

static void st_cunit_write(const char *text)
{
    ssize_t ret = write(STDERR_FILENO, text, strlen(text));

    (void)ret;
}

static void st_cunit_on_alarm(int signo)
{
    (void)signo;
    st_cunit_write("FAIL ");
    st_cunit_write(st_cunit_current);
    st_cunit_write(": time limit\n");
    _exit(EXIT_FAILURE);
}

unsigned st_cunit_limit(void)
{
    const char *value = getenv("ST_CUNIT_TIMEOUT");

    return (value == NULL) ? ST_CUNIT_DEFAULT_TIMEOUT :
                             (unsigned)strtoul(value, NULL, 10);
}

static void st_cunit_print_failures(void)
{
    CU_pFailureRecord record;

    for (record = CU_get_failure_list(); record != NULL;
         record = record->pNext) {
        fprintf(stdout, "  %s:%u: %s\n",
                (record->strFileName != NULL) ? record->strFileName : "?",
                record->uiLineNumber,
                (record->strCondition != NULL) ? record->strCondition : "?");
    }
}

static void st_cunit_report(st_cunit_run_t *run, const char *name)
{
    /* CU_run_test() clears the list of failures first */
    if (CU_get_number_of_failure_records() > 0) {
        ++run->failed;
        fprintf(stdout, "FAIL %s.%s\n", run->suite_name, name);
        st_cunit_print_failures();
    } else if (st_cunit_skip_reason != NULL) {
        ++run->skipped;
        fprintf(stdout, "SKIP %s.%s: %s\n", run->suite_name, name,
                st_cunit_skip_reason);
    } else {
        ++run->passed;
        fprintf(stdout, "PASS %s.%s\n", run->suite_name, name);
    }
    fflush(stdout);
}

static void st_cunit_run_case(st_cunit_run_t *run, const st_cunit_case_t *tcase)
{
    CU_pTest test = CU_add_test(run->suite, tcase->name, tcase->func);

    st_cunit_current     = tcase->name;
    st_cunit_skip_reason = NULL;
    if (test == NULL) {
        ++run->failed;
        fprintf(stdout, "FAIL %s.%s: %s\n", run->suite_name, tcase->name,
                CU_get_error_msg());
        return;
    }

    alarm(st_cunit_limit());
    CU_run_test(run->suite, test);
    alarm(0);
    st_cunit_report(run, tcase->name);
}

/* The case of that name, or all. */
static void st_cunit_run_cases(st_cunit_run_t *run, const char *name)
{
    const st_cunit_case_t *tcase;
    int found = (name == NULL);

    for (tcase = st_cunit_cases; tcase != NULL; tcase = tcase->next) {
        if ((name == NULL) || (strcmp(tcase->name, name) == 0)) {
            st_cunit_run_case(run, tcase);
            found = 1;
        }
    }
    if (!found) {
        ++run->failed;
        fprintf(stdout, "FAIL %s.%s: no such case\n", run->suite_name, name);
    }
}

static int st_cunit_list(void)
{
    const st_cunit_case_t *tcase;

    for (tcase = st_cunit_cases; tcase != NULL; tcase = tcase->next) {
        puts(tcase->name);
    }
    return EXIT_SUCCESS;
}

static int st_cunit_select(st_cunit_run_t *run, int argc, char **argv)
{
    int i;

    if (argc == 1) {
        st_cunit_run_cases(run, NULL);
        return 0;
    }

    for (i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--case") != 0) {
            break;
        }
        st_cunit_run_cases(run, argv[i + 1]);
    }

    if (i < argc) {
        fprintf(stderr, "usage: %s [--list | --case NAME ...]\n", argv[0]);
        return -1;
    }
    return 0;
}

/* The last line that is printed tells the result, or why nothing ran. */
static int st_cunit_result(const st_cunit_run_t *run)
{
    fprintf(stdout, "%s: %u passed, %u failed, %u skipped\n", run->suite_name,
            run->passed, run->failed, run->skipped);
    if (run->failed > 0) {
        return EXIT_FAILURE;
    }
    if ((run->passed == 0) && (st_cunit_skip_reason != NULL)) {
        fprintf(stdout, "%s: %s\n", run->suite_name, st_cunit_skip_reason);
        return ST_CUNIT_EXIT_SKIP;
    }
    return EXIT_SUCCESS;
}

/* UCX's memory hooks call intercepted functions from threads that are past the
 * end of the thread sanitizer's own state, and crash there. UCX reads the
 * setting in its constructor, so it must be there from the start. */
static void st_cunit_without_hooks(char **argv)
{
#if defined(__SANITIZE_THREAD__)
    if (getenv("UCX_MEM_MMAP_HOOK_MODE") == NULL) {
        setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
        execv("/proc/self/exe", argv);
        perror("execv");
    }
#else
    (void)argv;
#endif
}

int st_cunit_alone(const char *suite, void (*func)(void), int argc, char **argv)
{
    static st_cunit_case_t alone = {
        .name = "other"
    };

    alone.func     = func;
    st_cunit_cases = &alone;
    return st_cunit_main(suite, argc, argv);
}

char *st_env_set(const char *name, const char *value)
{
    const char *old = getenv(name);
    char *before    = (old == NULL) ? NULL : strdup(old);

    if (value == NULL) {
        unsetenv(name);
    } else {
        setenv(name, value, 1);
    }
    return before;
}

void st_env_restore(const char *name, char *before)
{
    free(st_env_set(name, before));
    free(before);
}

void st_cunit_fork(int (*func)(const void *arg), const void *arg)
{
    int status = -1;
    int ret;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        CU_get_current_test()->pJumpBuf = NULL; /* To the parent's cases */
        ret                             = func(arg);
        st_cunit_print_failures();
        fflush(stdout);
        _exit((ret != 0) ? ret : (CU_get_number_of_failure_records() != 0));
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
}

int st_env_has_provider(const char *provider)
{
    const char *value = getenv("UCX_CXI_TRIG_PROVIDER");

    return (value != NULL) && !strcmp(value, provider);
}

int st_cunit_main(const char *suite, int argc, char **argv)
{
    st_cunit_run_t run = {
        .suite_name = suite
    };
    int ret            = EXIT_FAILURE;

    if ((argc == 2) && (strcmp(argv[1], "--list") == 0)) {
        return st_cunit_list();
    }

    if (CU_initialize_registry() != CUE_SUCCESS) {
        fprintf(stderr, "%s: %s\n", suite, CU_get_error_msg());
        return EXIT_FAILURE;
    }

    st_cunit_without_hooks(argv);
    setenv("FI_CXIEMU_LEAKS", "y", 0); /* of whoever opens an emulated NIC */
    /* Hardware queues of GPUs: streams of tests wait for each other */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("GPU_MAX_HW_QUEUES", "32", 0);
    signal(SIGALRM, st_cunit_on_alarm);
    run.suite = CU_add_suite(suite, NULL, NULL);
    if (run.suite == NULL) {
        fprintf(stderr, "%s: %s\n", suite, CU_get_error_msg());
    } else if (st_cunit_select(&run, argc, argv) == 0) {
        ret = st_cunit_result(&run);
    }

    CU_cleanup_registry();
    return ret;
}

/* What the kernel tells of a thread of this process */
typedef struct st_cunit_thread {
    char          name[16];
    char          state;
    unsigned long sleeps; /* How often it has gone to sleep */
} st_cunit_thread_t;

/* 0 if it has ended */
static int st_cunit_read_thread(const char *tid, st_cunit_thread_t *thread)
{
    char path[280], line[256];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
    file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    memset(thread, 0, sizeof(*thread));
    while (fgets(line, sizeof(line), file) != NULL) {
        (void)sscanf(line, "Name: %15s", thread->name);
        (void)sscanf(line, "State: %c", &thread->state);
        (void)sscanf(line, "voluntary_ctxt_switches: %lu", &thread->sleeps);
    }
    fclose(file);
    return 1;
}

/* How often threads of a name, or all but the calling one if it is NULL, have
 * gone to sleep, and how many do not sleep now. */
static unsigned long st_cunit_count_sleeps(const char *name, unsigned *awake_p)
{
    DIR *dir            = opendir("/proc/self/task");
    unsigned long total = 0;
    st_cunit_thread_t thread;
    struct dirent *entry;

    *awake_p = 0;
    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        if ((entry->d_name[0] != '.') &&
            st_cunit_read_thread(entry->d_name, &thread) &&
            ((name != NULL) ? !strcmp(thread.name, name) :
                              (atol(entry->d_name) != syscall(SYS_gettid)))) {
            total    += thread.sleeps;
            *awake_p += (thread.state == 'R');
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return total;
}

unsigned long st_cunit_sleeps(const char *thread_name)
{
    unsigned awake;

    return st_cunit_count_sleeps(thread_name, &awake);
}

void st_cunit_expect_idle(const char *thread_name)
{
    unsigned num_asleep = 0;
    unsigned long sleeps;
    unsigned awake, i;

    while (num_asleep < ST_CUNIT_IDLE_LOOKS) {
        (void)st_cunit_count_sleeps(thread_name, &awake);
        num_asleep = (awake == 0) ? (num_asleep + 1) : 0;
        (void)usleep(1000);
    }
    sleeps = st_cunit_count_sleeps(thread_name, &awake);
    for (i = 1; i <= 20; ++i) {
        (void)usleep(50000);
        num_asleep = (unsigned)(st_cunit_count_sleeps(thread_name, &awake) -
                                sleeps);
        if (num_asleep > i * ST_CUNIT_IDLE_SLEEPS) {
            break;
        }
    }
    CU_ASSERT(num_asleep <= (i * ST_CUNIT_IDLE_SLEEPS));
}
