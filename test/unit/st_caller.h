/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_caller.h - what a thread of a case checks. Assertions are the main
 * thread's: the first line that fails is kept in the thread's structure, as
 * `line`, which is 0 until then.
 */
#ifndef ST_CALLER_H_
#define ST_CALLER_H_

#define CHECK(_caller, _condition) \
    do { \
        if (!(_condition) && ((_caller)->line == 0)) { \
            (_caller)->line = __LINE__; \
        } \
    } while (0)

#define CHECK_OK(_caller, _call) CHECK(_caller, (_call) == UCS_OK)

#endif
