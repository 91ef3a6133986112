/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_cunit.h - main function of a CUnit test program.
 *
 * A program has a table of named cases and hands it to st_cunit_main():
 *
 *     static const st_cunit_case_t cases[] = {
 *         {"fifo_order", test_fifo_order},
 *         {"idle_sleeps", test_idle_sleeps}
 *     };
 *
 *     int main(int argc, char **argv)
 *     {
 *         return st_cunit_main("gstream", cases, ST_CUNIT_COUNT(cases), argc,
 *                              argv);
 *     }
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
typedef struct {
    const char *name;
    void       (*func)(void);
} st_cunit_case_t;


/**
 * Run the cases that the command line asks for.
 *
 * Each case must end within ST_CUNIT_TIMEOUT seconds (environment; default 120,
 * 0 for no limit), or the program stops with a failure that names the case.
 *
 * @param [in] suite  Name of the suite.
 * @param [in] cases  Table of cases.
 * @param [in] count  Entries of the table.
 * @param [in] argc   As main() has it.
 * @param [in] argv   As main() has it.
 *
 * @return Exit status: 0 all passed, 1 something failed or no such case, 77
 *         every case that ran was skipped.
 */
int st_cunit_main(const char *suite, const st_cunit_case_t *cases, size_t count,
                  int argc, char **argv);


/**
 * Report the running case as skipped; the case then returns by itself. A failed
 * assertion of the same case still counts.
 *
 * @param [in] reason Why; must outlive the case (a string constant).
 */
void st_cunit_skip(const char *reason);

#endif
