/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_waits.h - what waits for a peer, in words: for the warning that comes once
 * after UCX_ST_WARN_TIME, and for processes that ask this one.
 *
 * Nothing is noted when something begins to wait. A host that progresses the
 * worker, and the service thread, look now and then (ucp_st_waits_look()), and
 * note in the object itself since when they have seen it wait.
 */
#ifndef UCP_ST_WAITS_H_
#define UCP_ST_WAITS_H_

#include <ucp_st.h>

#include <ucs/sys/compiler_def.h>

/** Room for the lines of a warning, bytes. */
#define UCP_ST_WAITS_WARN_SIZE 4096

/** What the looks have seen of an object that may wait. Protected as that. */
typedef struct ucp_st_look {
    double   since;   /* seconds; 0: it was not seen to wait */
    uint64_t number;  /* of its waits, the one that was seen */
    int      is_told; /* it was warned of */
} ucp_st_look_t;

/** Lines about what waits, as they are made. */
typedef struct ucp_st_waits {
    char     *text;
    size_t   size;     /* of the room there, which the text is cut to */
    size_t   length;
    double   now;      /* seconds */
    double   age;      /* only of what waits for so long and was not told of;
                          0: of all */
    unsigned count;    /* that wait */
    unsigned lines;    /* of them, those that are told of */
    unsigned more;     /* and those that there is no line for */
} ucp_st_waits_t;

/** Begin with no line. `size` is at least 1. */
void ucp_st_waits_init(ucp_st_waits_t *waits, char *text, size_t size,
                       double age);

/** An object waits, for this one of its waits: note that. Non-zero if it is to
 *  be told of: the caller writes a line. */
int ucp_st_waits_see(ucp_st_waits_t *waits, ucp_st_look_t *look,
                     uint64_t number);

/** Add to the text. */
void ucp_st_waits_add(ucp_st_waits_t *waits, const char *format, ...)
        UCS_F_PRINTF(2, 3);

/** Begin a line: "rank 1 has waited for 10 s: ". */
void ucp_st_waits_begin(ucp_st_waits_t *waits, const char *who,
                        const ucp_st_look_t *look);

/** ucp_st_waits_begin() for something of a worker, whose name comes first. */
void ucp_st_waits_begin_of(ucp_st_waits_t *waits, ucp_st_worker_h worker,
                           const char *what, const ucp_st_look_t *look);

/** Warn of what was written, a line at a time. */
void ucp_st_waits_warn(const ucp_st_waits_t *waits);

/** Write all that waits in a worker. The lock is held. */
void ucp_st_waits_look(ucp_st_worker_h worker, ucp_st_waits_t *waits);

/** Write the state of a worker, and all that waits there. The lock is held. */
void ucp_st_waits_describe(ucp_st_worker_h worker, ucp_st_waits_t *waits);

#endif
