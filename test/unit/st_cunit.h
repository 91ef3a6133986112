/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_cunit.h - main function of a CUnit test program.
 *
 * A suite is a file of cases and ends with its name:
 *
 *     ST_CASE(fifo_order)
 *     {
 *         CU_ASSERT(...);
 *     }
 *
 *     ST_CASE_CALL(idle_sleeps, check_idle(NULL))
 *
 *     ST_SUITE("gstream")
 *
 * Command line: nothing runs all cases, --list prints their names, --case NAME
 * (may be repeated) runs these. A line is printed for each: "PASS suite.name",
 * "FAIL suite.name" with the failed assertions, or "SKIP suite.name: reason".
 *
 * CUnit's assertions may be used by the main thread only.
 */
#ifndef ST_CUNIT_H_
#define ST_CUNIT_H_

#include <CUnit/CUnit.h>

#include <stddef.h>

#define ST_CUNIT_COUNT(_table) (sizeof(_table) / sizeof((_table)[0]))


/** One test case. */
typedef struct st_cunit_case {
    const char           *name;
    void                 (*func)(void);
    int                  line; /**< Of the source: cases run in its order */
    struct st_cunit_case *next;
} st_cunit_case_t;


/** Seconds after which a case hangs: ST_CUNIT_TIMEOUT; 0 for no limit. */
unsigned st_cunit_limit(void);

/** Add a case to those of the program, before main(). */
void st_cunit_add(st_cunit_case_t *tcase);

/** A case: the head of its function. */
#define ST_CASE(_name) \
    static void st_case_##_name(void); \
    __attribute__((constructor)) static void st_case_add_##_name(void) \
    { \
        static st_cunit_case_t tcase = {#_name, st_case_##_name, __LINE__, \
                                        NULL}; \
        st_cunit_add(&tcase); \
    } \
    static void st_case_##_name(void)

/** A case that is skipped for a reason where a condition does not hold. */
#define ST_CASE_IF(_name, _condition, _reason) \
    static void st_case_if_##_name(void); \
    ST_CASE(_name) \
    { \
        if (_condition) { \
            st_case_if_##_name(); \
        } else { \
            st_cunit_skip(_reason); \
        } \
    } \
    static void st_case_if_##_name(void)

/** A case that is one call. */
#define ST_CASE_CALL(_name, _call) \
    ST_CASE(_name) \
    { \
        _call; \
    }

/** A case with an object of type @a _type, @a _var, between what makes it and
 *  what undoes that. */
#define ST_CASE_WITH(_name, _type, _var, _open, _close) \
    static void st_case_with_##_name(_type *_var); \
    ST_CASE(_name) \
    { \
        _type st_object; \
        _type *_var = &st_object; \
        _open; \
        st_case_with_##_name(_var); \
        _close; \
    } \
    static void st_case_with_##_name(_type *_var)

/** main() of a suite that has nothing to prepare. */
#define ST_SUITE(_name) \
    int main(int argc, char **argv) \
    { \
        return st_cunit_main(_name, argc, argv); \
    }


/**
 * Run the cases that the command line asks for.
 *
 * Each case must end within ST_CUNIT_TIMEOUT seconds (environment; default 120,
 * 0 for no limit), or the program stops with a failure that names the case.
 *
 * @param [in] suite  Name of the suite.
 * @param [in] argc   As main() has it.
 * @param [in] argv   As main() has it.
 *
 * @return Exit status: 0 all passed, 1 something failed or no such case, 77
 *         every case that ran was skipped.
 */
int st_cunit_main(const char *suite, int argc, char **argv);

/** The same for one function, in place of the cases: the part that a suite's
 *  second process plays. */
int st_cunit_alone(const char *suite, void (*func)(void), int argc,
                   char **argv);


/**
 * Report the running case as skipped; the case then returns by itself. A failed
 * assertion of the same case still counts.
 *
 * @param [in] reason Why; must outlive the case (a string constant).
 */
void st_cunit_skip(const char *reason);


/** Whether the environment names this provider (UCX_CXI_TRIG_PROVIDER). */
int st_env_has_provider(const char *provider);

/** Call a function in a child that is forked; asserts that it returns 0, and
 *  that no assertion fails there. */
void st_cunit_fork(int (*func)(const void *arg), const void *arg);

/** Set a variable of the environment, or remove it if `value` is NULL; its
 *  value before, for st_env_restore(). */
char *st_env_set(const char *name, const char *value);

/** Set it to what st_env_set() returned, which is gone afterwards. */
void st_env_restore(const char *name, char *before);

/**
 * Expect that this process' threads of a name, or all but the calling one if it
 * is NULL, do not work: waits until they are found asleep again and again, for
 * which a thread that polls has no end, then fails the case if they wake up too
 * often.
 */
void st_cunit_expect_idle(const char *thread_name);

/** How often this process' threads of a name have gone to sleep so far. */
unsigned long st_cunit_sleeps(const char *thread_name);

#endif
