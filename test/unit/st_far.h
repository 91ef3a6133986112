/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_far.h - another process, which runs the same program as this one and has
 * st workers of its own.
 */
#ifndef ST_FAR_H_
#define ST_FAR_H_

#include "st_cunit.h"

#include <ucp_st.h>

#include <sys/types.h>

/** Longest address of a worker, bytes. */
#define ST_FAR_ADDRESS 4096

/** One of the two processes, as the other one sees it. */
typedef struct {
    int   fd;  /* to it: a socket that keeps messages apart */
    pid_t pid; /* -1 where it is the first one */
} st_far_t;

/** Start the program once more, with the present environment, to do `task`.
 *  It is killed when this process ends. Asserts. */
void st_far_start(st_far_t *far, const char *task);

/** Stop it; all its threads have stopped when this returns. Asserts. */
void st_far_stop(st_far_t *far);

/** Kill it, wait until it has ended, and close what leads to it. Asserts. */
void st_far_kill(st_far_t *far);

/** Wait until it has ended; asserts that all was well there. */
void st_far_end(st_far_t *far);

/** Non-zero if that is how its death is told. */
int st_far_is_death(ucs_status_t status);

/** What this process was started to do, and the one that started it; NULL in
 *  the first process. */
const char *st_far_task(st_far_t *far);

/** main() of a suite whose second processes run a function. */
#define ST_FAR_SUITE(_name, _other) \
    int main(int argc, char **argv) \
    { \
        st_far_t far; \
        \
        return (st_far_task(&far) != NULL) ? \
               st_cunit_alone(_name "_other", _other, argc, argv) : \
               st_cunit_main(_name, argc, argv); \
    }

/** Tell the other process, if it is there, the address of a worker; what
 *  ucp_st_worker_get_address() returns. */
ucs_status_t st_far_tell(const st_far_t *far, ucp_st_worker_h worker);

/** What the other process has told, of ST_FAR_ADDRESS bytes at most; its
 *  length, 0 if it parts, or is gone. */
size_t st_far_hear(const st_far_t *far, void *address);

/** Tell the other process the address of a worker, and make a peer of what it
 *  tells. UCS_ERR_CANCELED if it parts, or is gone; what
 *  ucp_st_worker_get_address() and ucp_st_peer_create() return. */
ucs_status_t st_far_connect(const st_far_t *far, ucp_st_worker_h worker,
                            ucp_st_peer_h *peer_p);

/** Wait until the other process is here, too; 0 if it parts, or is gone. */
int st_far_meet(const st_far_t *far);

/** Have the other process's st_far_hear() and st_far_meet() return 0 up to its
 *  st_far_rejoin(). */
void st_far_part(const st_far_t *far);

/** Wait until the other process has parted, too. */
void st_far_rejoin(const st_far_t *far);

#endif
