/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_ahead.c - the trig lane: uses that kernels of the application start
 * and wait for (ucp_st_device.h).
 *
 * The host posts the deferred work of a use, as for any start, and tells the
 * kernel by a record in its memory that the use may be started. A start is a
 * store of the kernel to the trigger page of each NIC, as a stream's is; a wait
 * looks at the words that streams wait for. Thresholds compare, so a start may
 * come before its work is posted, where there was no entry for it.
 *
 * What keeps a late kernel from a counter or a word that is another
 * operation's by then:
 *
 *     kernel's start                       host, when the operation ends
 *     store `begun`                        store `halted`
 *     fence                                fence
 *     load `halted`: not 0, do nothing     load `begun`, `ended`: the counters
 *     store to the trigger pages           stay while `ended` is less
 *     fence; store `ended`
 *
 * One of the two sees the other's store. After an error a start that did not
 * see `halted` has no effect, either: the counters are set back, as for streams
 * (ucp_st_trig_trigger_halt()). A wait ends by the words, which are 2^62 then.
 * A kernel that has started a use, or may come to one, looks at record, cell
 * and words: these stay for ever unless kernels have waited for all that was
 * posted (`waited`, which is stored last). No kernel copies data out of an
 * inbox: such receives are refused.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig.h"
#include "core/st_ahead.h"
#include "core/st_log.h"
#include "core/st_stage.h"
#include "core/st_worker.h"

#include <ucs_gstream_memory.h>

#include <pthread.h>
#include <string.h>

_Static_assert(UCP_ST_TRIG_MAX_RAILS <= UCS_GSTREAM_PARTS_MAX,
               "a part for each rail");

/* A free record, which is none of an operation: its key is 0 */
typedef struct ucp_st_trig_record {
    ucs_gstream_pair_record_t record;
    struct ucp_st_trig_record *next;
} ucp_st_trig_record_t;

/* Records are used for nothing else, ever: what has a record's address may load
 * its key at any time. Of all workers. */
static struct {
    pthread_mutex_t      lock;
    ucp_st_trig_record_t *free;
} ucp_st_trig_records = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};

/* All 0; NULL without memory */
static ucs_gstream_pair_record_t *ucp_st_trig_record_get(void)
{
    ucp_st_trig_record_t *record;

    (void)pthread_mutex_lock(&ucp_st_trig_records.lock);
    record = ucp_st_trig_records.free;
    if (record != NULL) {
        ucp_st_trig_records.free = record->next;
    }
    (void)pthread_mutex_unlock(&ucp_st_trig_records.lock);
    if (record == NULL) {
        record = ucs_gstream_memory_get(sizeof(*record));
    }
    if (record == NULL) {
        return NULL;
    }
    memset(record, 0, sizeof(*record));
    return &record->record;
}

/* Behind the key nothing of the operation is another one's: a kernel that loads
 * a word, fences, and finds the key, has loaded the operation's */
static void ucp_st_trig_record_put(ucs_gstream_pair_record_t *record)
{
    ucp_st_trig_record_t *free_record =
            ucs_container_of(record, ucp_st_trig_record_t, record);

    __atomic_store_n(&record->key, 0, __ATOMIC_SEQ_CST);
    (void)pthread_mutex_lock(&ucp_st_trig_records.lock);
    free_record->next        = ucp_st_trig_records.free;
    ucp_st_trig_records.free = free_record;
    (void)pthread_mutex_unlock(&ucp_st_trig_records.lock);
}

int ucp_st_trig_ahead_is_starting(const ucp_st_op_t *op)
{
    const ucs_gstream_pair_record_t *record = ucp_st_trig_op(op)->record;

    return (record != NULL) &&
           (__atomic_load_n(&record->ended, __ATOMIC_ACQUIRE) <
            __atomic_load_n(&record->begun, __ATOMIC_ACQUIRE)) &&
           ((op->queue == NULL) ||
            !__atomic_load_n(&op->queue->is_lost, __ATOMIC_ACQUIRE));
}

/* Each millisecond, by the service thread: a start is over soon */
static void ucp_st_trig_ahead_look(ucp_st_trig_late_t *late)
{
    ucp_st_trig_op_t *trig = ucs_container_of(late, ucp_st_trig_op_t, starting);

    if (ucp_st_trig_ahead_is_starting(trig->op)) {
        ucp_st_trig_refused(trig->op->worker);
    } else {
        ucp_st_trig_late_del(late);
        ucp_st_op_reap(trig->op);
    }
}

void ucp_st_trig_ahead_halt(ucp_st_trig_op_t *trig)
{
    if (trig->record == NULL) {
        return;
    }
    __atomic_store_n(&trig->record->halted, 1, __ATOMIC_RELAXED);
    __sync_synchronize(); /* pairs with the kernel's, behind `begun` */
    if (ucp_st_trig_ahead_is_starting(trig->op)) {
        ucp_st_trig_late_add(trig->op->worker, &trig->starting);
        ucp_st_trig_refused(trig->op->worker);
    }
}

void ucp_st_trig_leave_queue(ucp_st_op_t *op, ucp_st_queue_h queue)
{
    const ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    if ((trig != NULL) && (trig->record != NULL) && (op->queue == queue) &&
        __atomic_load_n(&queue->is_lost, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&trig->record->ended, UINT64_MAX, __ATOMIC_RELEASE);
    }
}

void ucp_st_trig_ahead_release(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    ucp_st_trig_tally_t *tally;
    unsigned i;

    if (trig->record == NULL) {
        return;
    }
    ucp_st_trig_late_del(&trig->starting);
    if (!ucp_st_ahead_is_open(trig->record, op->ahead)) {
        ucp_st_trig_record_put(trig->record);
        return;
    }
    op->cell = NULL; /* it stays, as do the record and the words */
    for (i = 0; i < trig->num_parts; ++i) {
        tally = &trig->parts[i].done->tally;
        __atomic_store_n(tally->word, UCP_ST_RELEASE, __ATOMIC_RELEASE);
        ucp_st_trig_piece_keep(&tally->piece);
    }
}

/* What a kernel cannot do here, and what helps; NULL: it can */
static const char *ucp_st_trig_ahead_why_not(const ucp_st_op_t *op)
{
    const ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    if (!ucp_st_stage_is_device(&op->memory) || op->memory.is_managed) {
        return "its buffer is not in a device";
    }
    if (op->data != op->buffer) {
        return "its buffer is moved by way of the host's memory "
               "(UCX_LOG_LEVEL=diag says why)";
    }
    if (ucp_st_trig_has_inbox(op)) {
        return "its data is sent ahead to memory of the host, out of which the "
               "queue's wait copies it: UCX_ST_EAGER_MAX=0, and ready sends, "
               "do without";
    }
    for (i = 0; i < trig->num_parts; ++i) {
        if ((trig->parts[i].start != NULL) &&
            (trig->parts[i].start->trigger.doorbell == NULL)) {
            return "the provider's counters have no trigger pages";
        }
    }
    return (op->dir == UCP_ST_DIR_RECV) ?
           ucs_gstream_memory_kernel_fault(&op->memory) : NULL;
}

/* Gets what takes long. The lock is not held, but the operation is the
 * caller's. */
static ucs_status_t
ucp_st_trig_ahead_describe(ucp_st_op_t *op, ucs_gstream_pair_record_t *record,
                           uint64_t *key)
{
    const ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    ucs_gstream_nics_t nics      = {
        .is_send   = (op->dir == UCP_ST_DIR_SEND),
        .num_parts = trig->num_parts,
        .record    = record,
        .length    = op->msg_length,
        .weight    = 1
    };
    const ucp_st_trig_part_t *part;
    ucs_status_t status;
    unsigned i;

    if (op->cell == NULL) {
        status = ucs_gstream_pair_prepare(op->memory.type, op->memory.device);
        if (status != UCS_OK) {
            return status;
        }
        op->cell = ucs_gstream_cell_get(op->memory.type, op->memory.device);
    }
    if (op->cell == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    nics.cell = ucs_gstream_cell_address(op->cell);
    for (i = 0; i < trig->num_parts; ++i) {
        part          = &trig->parts[i];
        nics.words[i] = part->done->tally.word;
        if (part->start != NULL) {
            nics.pages[i] = part->start->trigger.doorbell;
            nics.weight   = part->start->trigger.weight;
        }
    }
    return ucs_gstream_nics_describe(op->memory.type, op->memory.device, &nics,
                                     key);
}

static ucs_status_t ucp_st_trig_ahead_refuse(const ucp_st_op_t *op,
                                             const char *why)
{
    ucs_log(op->worker->refuse_level, "operation %p is on lane 'trig', and "
            "kernels do not start it: %s", op, why);
    return UCS_ERR_UNSUPPORTED;
}

static ucs_status_t ucp_st_trig_ahead_device(ucp_st_op_t *op,
                                             ucp_st_device_op_t *device)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    const char *why        = ucp_st_trig_ahead_why_not(op);
    ucs_gstream_pair_record_t *record;
    ucs_status_t status;
    uint64_t key;

    if (why != NULL) {
        return ucp_st_trig_ahead_refuse(op, why);
    }
    if (trig->record == NULL) {
        record = ucp_st_trig_record_get();
        if (record == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        ucp_st_worker_unlock(op->worker);
        status = ucp_st_trig_ahead_describe(op, record, &key);
        ucp_st_worker_lock(op->worker);
        if (status != UCS_OK) {
            ucp_st_trig_record_put(record);
            return (status == UCS_ERR_UNREACHABLE) ?
                   ucp_st_trig_ahead_refuse(op, "the device does not reach the "
                                            "card's trigger pages") :
                   (status == UCS_ERR_UNSUPPORTED) ?
                   ucp_st_trig_ahead_refuse(op, "the library has no kernels "
                                            "for the device") : status;
        }
        trig->record        = record;
        trig->device_key    = key;
        trig->starting.post = ucp_st_trig_ahead_look;
        if (op->state != UCP_ST_OP_MATCHED) { /* it has failed meanwhile */
            ucp_st_trig_ahead_halt(trig);
        }
    }
    device->place = ucs_gstream_cell_address(op->cell);
    device->key   = trig->device_key;
    return UCS_OK;
}

static ucs_gstream_pair_record_t *
ucp_st_trig_ahead_record(const ucp_st_op_t *op)
{
    return ucp_st_trig_op(op)->record;
}

/* What finds no entry is posted later */
static ucs_status_t ucp_st_trig_ahead_post(ucp_st_op_t *op,
                                           ucp_st_queue_h queue, uint64_t uses)
{
    return ucp_st_trig_post(op, op->started + uses);
}

const ucp_st_lane_ahead_ops_t ucp_st_trig_ahead = {
    .device  = ucp_st_trig_ahead_device,
    .record  = ucp_st_trig_ahead_record,
    .post    = ucp_st_trig_ahead_post
};
