/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_waits.c - what waits for a peer, in words.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_waits.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A warning has at most so many lines, and names at most so many operations of
 * a peer */
#define UCP_ST_WAITS_MAX_LINES 10
#define UCP_ST_WAITS_MAX_OTHERS 4

/* Of an operation's waits, the number of the match; uses follow */
#define UCP_ST_WAITS_MATCH 0

/** How an operation waits. */
typedef enum {
    UCP_ST_WAITS_NOT,    /**< It does not */
    UCP_ST_WAITS_BEGUN,  /**< It is under way; nobody waits for it yet */
    UCP_ST_WAITS_STREAM, /**< Its stream waits for it */
    UCP_ST_WAITS_KERNEL, /**< A kernel of the application has begun it */
    UCP_ST_WAITS_HOST,   /**< The host asks for it */
    UCP_ST_WAITS_MATCHING
} ucp_st_waits_how_t;

void ucp_st_waits_init(ucp_st_waits_t *waits, char *text, size_t size,
                       double age)
{
    memset(waits, 0, sizeof(*waits));
    waits->text = text;
    waits->size = size;
    waits->now  = ucp_st_worker_now();
    waits->age  = age;
    text[0]     = '\0';
}

int ucp_st_waits_see(ucp_st_waits_t *waits, ucp_st_look_t *look,
                     uint64_t number)
{
    int is_new = (look->since == 0) || (look->number != number);

    ++waits->count;
    if (is_new) {
        look->since   = waits->now;
        look->number  = number;
        look->is_told = 0;
    }
    if (waits->age > 0) {
        if (look->is_told || ((waits->now - look->since) < waits->age)) {
            return 0;
        }
        look->is_told = 1;
    }
    if ((waits->age > 0) && (waits->lines >= UCP_ST_WAITS_MAX_LINES)) {
        ++waits->more;
        return 0;
    }
    ++waits->lines;
    return 1;
}

void ucp_st_waits_add(ucp_st_waits_t *waits, const char *format, ...)
{
    size_t room = waits->size - waits->length;
    va_list ap;
    int ret;

    va_start(ap, format);
    ret = vsnprintf(waits->text + waits->length, room, format, ap);
    va_end(ap);
    if (ret > 0) {
        waits->length += ucs_min((size_t)ret, room - 1);
    }
}

void ucp_st_waits_begin(ucp_st_waits_t *waits, const char *who,
                        const ucp_st_look_t *look)
{
    double time = waits->now - look->since;

    ucp_st_waits_add(waits, "%s%s has waited for %.*f s: ",
                     (waits->length > 0) ? "\n" : "", who,
                     (time < 10) ? 1 : 0, time);
}

/* "rank 3", or "worker 0" */
static const char *ucp_st_waits_name(ucp_st_worker_h worker, char *name)
{
    if (worker->name[0] != '\0') {
        return worker->name;
    }
    snprintf(name, UCP_ST_NAME_MAX, "worker %u", worker->number);
    return name;
}

void ucp_st_waits_begin_of(ucp_st_waits_t *waits, ucp_st_worker_h worker,
                           const char *what, const ucp_st_look_t *look)
{
    char name[UCP_ST_NAME_MAX];
    char who[2 * UCP_ST_NAME_MAX];

    snprintf(who, sizeof(who), "%s: %s", ucp_st_waits_name(worker, name), what);
    ucp_st_waits_begin(waits, who, look);
}

void ucp_st_waits_warn(const ucp_st_waits_t *waits)
{
    char *line, *next;

    for (line = waits->text; (line != NULL) && (*line != '\0'); line = next) {
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        ucs_warn("%s", line);
    }
    if (waits->more > 0) {
        ucs_warn("%u more wait as long (\"ucx_st_info -p PID\" tells all)",
                 waits->more);
    }
}

static const char *ucp_st_waits_dir(unsigned dir)
{
    return (dir == UCP_ST_DIR_SEND) ? "send" : "receive";
}

/* As the layer above calls it, or bytes, peer and tag */
static void ucp_st_waits_add_op(ucp_st_waits_t *waits, const ucp_st_op_t *op)
{
    if (op->name != NULL) {
        ucp_st_waits_add(waits, "%s", op->name);
        return;
    }
    ucp_st_waits_add(waits, "%s of %zu bytes %s peer 0x%lx, tag %lu",
                     ucp_st_waits_dir(op->dir), op->length,
                     (op->dir == UCP_ST_DIR_SEND) ? "to" : "from",
                     op->peer->uuid, op->tag);
    if (op->scope != 0) {
        ucp_st_waits_add(waits, ", scope 0x%lx", op->scope);
    }
}

/* One announcement of a peer that has found no counterpart here; `count` are
 * named already */
static void ucp_st_waits_add_remote(ucp_st_waits_t *waits,
                                    const ucp_st_op_t *op,
                                    const ucp_st_ctrl_match_t *msg,
                                    unsigned count)
{
    if (count >= UCP_ST_WAITS_MAX_OTHERS) {
        return;
    }
    ucp_st_waits_add(waits, "%s %s of %lu bytes, tag %lu%s",
                     (count == 0) ? "; the peer has announced: a" : ", a",
                     ucp_st_waits_dir(msg->dir), msg->length, msg->tag,
                     (msg->scope == op->scope) ? "" :
                     " of another communicator");
    if ((msg->tag == op->tag) && (msg->scope == op->scope) &&
        (msg->dir == op->dir)) {
        ucp_st_waits_add(waits, " (the same direction: each side waits for "
                         "the other's counterpart; match both in one call)");
    }
}

/* What a peer has announced that has found no counterpart here */
static void ucp_st_waits_add_remotes(ucp_st_waits_t *waits,
                                     const ucp_st_op_t *op)
{
    unsigned count = 0;
    ucp_st_remote_op_t *remote;
    ucp_st_key_t *key;
    unsigned dir;

    if (op->key == NULL) {
        ucp_st_waits_add(waits, "; the peer has announced its counterpart, and "
                         "has not answered yet");
        return;
    }
    kh_foreach_value(&op->peer->keys, key, {
        for (dir = 0; dir < 2; ++dir) {
            ucs_list_for_each(remote, &key->remote[dir], list) {
                ucp_st_waits_add_remote(waits, op, &remote->msg, count++);
            }
        }
    });
    if (count == 0) {
        ucp_st_waits_add(waits, "; the peer has announced nothing: it has not "
                         "come to this match, or waits in an earlier one");
    } else if (count > UCP_ST_WAITS_MAX_OTHERS) {
        ucp_st_waits_add(waits, ", and %u more",
                         count - UCP_ST_WAITS_MAX_OTHERS);
    }
}

/* What the lane knows of the peer's half of a use */
static void ucp_st_waits_add_peer(ucp_st_waits_t *waits, const ucp_st_op_t *op,
                                  uint64_t use)
{
    uint64_t uses = op->lane->op.peer_uses(op, use);

    if (uses == UCP_ST_USES_UNKNOWN) {
        ucp_st_waits_add(waits, "; lane %s does not know whether the peer has "
                         "started it", op->lane->name);
    } else {
        ucp_st_waits_add(waits, "; the peer has %sstarted it",
                         (uses < use) ? "not " : "");
    }
}

/* How an operation waits, and in which use: the first that is not complete. A
 * stream waits for its last use if what the stream has not run of the queue
 * begins with the operation's wait. `last_seq` and `waited` are of the thread
 * that calls for the queue: one of the two may be a moment older than the
 * other, which the next look sets right. Of a use with more behind it this side
 * knows no place in the queue: once it is begun, or where the lane cannot tell
 * that, the stream is taken to be on the way to its wait. */
static ucp_st_waits_how_t ucp_st_waits_of_op(const ucp_st_op_t *op,
                                             uint64_t *use_p)
{
    uint64_t last_seq, waited, passed;

    *use_p = ucp_st_op_uses_done(op) + 1;

    if (!ucp_st_peer_is_real(op->peer)) {
        return UCP_ST_WAITS_NOT;
    }
    if (ucp_st_op_is_matching(op)) {
        return UCP_ST_WAITS_MATCHING;
    }
    if ((op->state != UCP_ST_OP_MATCHED) || (op->lane == NULL) ||
        (op->queue == NULL) || (op->started < *use_p)) {
        return UCP_ST_WAITS_NOT;
    }
    if ((*use_p < op->started) || (op->ahead == op->started)) {
        return (op->lane->op.begun(op) < *use_p) ? UCP_ST_WAITS_NOT :
               (op->ahead == op->started)        ? UCP_ST_WAITS_KERNEL :
                                                   UCP_ST_WAITS_STREAM;
    }
    passed = ucp_st_queue_passed(op->queue);
    if (passed < op->start_seq) {
        return UCP_ST_WAITS_NOT; /* the stream has not come to the start */
    }
    last_seq = __atomic_load_n(&op->last_seq, __ATOMIC_RELAXED);
    waited   = __atomic_load_n(&op->waited, __ATOMIC_RELAXED);
    if ((waited == op->started) && ((passed + 1) == last_seq)) {
        return UCP_ST_WAITS_STREAM;
    }
    return (op->asked == op->started) ? UCP_ST_WAITS_HOST : UCP_ST_WAITS_BEGUN;
}

static void ucp_st_waits_look_op(ucp_st_op_t *op, ucp_st_waits_t *waits)
{
    static const char *const names[] = {
        [UCP_ST_WAITS_BEGUN]    = "a start",
        [UCP_ST_WAITS_STREAM]   = "a queue",
        [UCP_ST_WAITS_KERNEL]   = "a kernel",
        [UCP_ST_WAITS_HOST]     = "the host",
        [UCP_ST_WAITS_MATCHING] = "matching"
    };
    uint64_t use;
    ucp_st_waits_how_t how           = ucp_st_waits_of_op(op, &use);
    uint64_t number                  = UCP_ST_WAITS_MATCH;

    if ((how == UCP_ST_WAITS_NOT) ||
        ((how == UCP_ST_WAITS_BEGUN) && (waits->age > 0))) {
        return;
    }
    if (how != UCP_ST_WAITS_MATCHING) { /* A wait is no older than its begin */
        number = (2 * use) + (how != UCP_ST_WAITS_BEGUN);
    }
    if (!ucp_st_waits_see(waits, &op->look, number)) {
        return;
    }
    ucp_st_waits_begin_of(waits, op->worker, names[how], &op->look);
    ucp_st_waits_add_op(waits, op);
    if (how == UCP_ST_WAITS_MATCHING) {
        ucp_st_waits_add_remotes(waits, op);
        return;
    }
    ucp_st_waits_add(waits, ", use %lu, on lane %s", use, op->lane->name);
    ucp_st_waits_add_peer(waits, op, use);
}

void ucp_st_waits_look(ucp_st_worker_h worker, ucp_st_waits_t *waits)
{
    const ucp_st_component_t *component;
    ucp_st_op_t *op;

    ucs_list_for_each(op, &worker->ops, list) {
        ucp_st_waits_look_op(op, waits);
    }
    ucp_st_for_each_component(component) {
        component->worker.waits(worker, waits);
    }
}

void ucp_st_waits_describe(ucp_st_worker_h worker, ucp_st_waits_t *waits)
{
    char buffer[UCP_ST_NAME_MAX];
    const char *name = ucp_st_waits_name(worker, buffer);
    ucp_st_queue_h queue;
    unsigned i;

    ucp_st_waits_add(waits, "%s%s: lanes", (waits->length > 0) ? "\n" : "",
                     name);
    for (i = 0; i < worker->num_lanes; ++i) {
        ucp_st_waits_add(waits, " %s", worker->lanes[i]->name);
    }
    ucp_st_waits_add(waits, "; peers %lu, operations %lu, queues %lu",
                     ucs_list_length(&worker->peers),
                     ucs_list_length(&worker->ops),
                     ucs_list_length(&worker->queues));
    ucs_list_for_each(queue, &worker->queues, list) {
        if (ucp_st_queue_status(queue) != UCS_OK) {
            ucp_st_waits_add(waits, "\n%s: queue %p is in error: %s", name,
                             queue,
                             ucs_status_string(ucp_st_queue_status(queue)));
        }
    }
    ucp_st_waits_look(worker, waits);
}
