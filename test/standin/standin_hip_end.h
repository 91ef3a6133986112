/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_hip_end.h - how calls of HIP end, which the files of its stand-in
 * share.
 */
#ifndef STANDIN_HIP_END_H_
#define STANDIN_HIP_END_H_

/* A call's result, which is the thread's last one: from HIP 7 on if it is an
 * error. */
int standin_hip_end(int err);

/* A call of HIP that is one of what is common. */
#define HIP(_name, _params, _result) \
    int _name _params \
    { \
        return standin_hip_end(_result); \
    }

#endif
