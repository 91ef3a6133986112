/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st_device.h - messages that kernels of the application start and wait
 * for.
 *
 * The host matches an operation as always, whose buffer is in memory of a GPU.
 * Either its counterpart's is, too, and lane direct moves it by kernels
 * ("kernel" is its protocol, ucp_st_op_query() says); or lane trig moves it,
 * and the GPU reaches the trigger pages of the NIC. The host gets a handle, and
 * tells how many uses kernels will start and wait for. The counterpart's uses
 * may be started by kernels, or enqueued.
 *
 *     host                                 kernel
 *     ucp_st_match(op)
 *     ucp_st_op_device(op, &handle)
 *     ucp_st_op_post_ahead(op, queue, 100)
 *     launch, with the handle  --------->  threads write the buffer
 *                                          ucp_st_device_start(handle, BLOCK)
 *                                          threads do something else
 *                                          ucp_st_device_wait(handle, BLOCK)
 *     synchronise with the stream
 *     ucp_st_op_test(op): UCS_OK
 *
 * This text is for the host, and for nvcc, for clang with CUDA or HIP (hipcc),
 * and for hipRTC, which have the functions at its end. It includes nothing of
 * the system.
 */
#ifndef UCP_ST_DEVICE_H_
#define UCP_ST_DEVICE_H_

#include <ucs_gstream_pair_device.h>

/** An operation for kernels: two numbers, to be copied as one likes. All 0: no
 *  operation. */
typedef struct ucp_st_device_op {
    unsigned long long place; /**< For the library, */
    unsigned long long key;   /**< as this */
} ucp_st_device_op_t;


/** What calls on the device return. */
typedef enum {
    UCP_ST_DEVICE_OK         = 0,
    UCP_ST_DEVICE_INPROGRESS = 1, /**< The use is not complete */
    UCP_ST_DEVICE_NO_USE     = 2, /**< The host has posted no use that could be
                                       started now, or nothing was started */
    UCP_ST_DEVICE_BUSY       = 3, /**< The use before was not waited for */
    UCP_ST_DEVICE_GONE       = 4, /**< The handle is of no operation: it was
                                       never set, or the operation was freed */
    UCP_ST_DEVICE_FAILED     = 5, /**< The operation has failed, or was freed
                                       just now; the host knows why */
    UCP_ST_DEVICE_INVALID    = 6, /**< A length that is more than was matched,
                                       or is given to a receive */
    UCP_ST_DEVICE_WHOLE      = 7  /**< A length that is less, on lane trig: a
                                       NIC sends the whole message */
} ucp_st_device_status_t;


/** The threads that make a call on the device. */
typedef enum {
    UCP_ST_DEVICE_THREAD = 0, /**< One thread, alone */
    UCP_ST_DEVICE_BLOCK  = 1  /**< All threads of a block, with the same
                                   arguments: they copy together, and each gets
                                   the status */
} ucp_st_device_level_t;

#if defined(UCS_GSTREAM_FUNC)

/*
 * Functions for kernels. The calls on an operation follow each other, in the
 * order of the device: those of two threads or blocks by what the kernels do to
 * order them, or by the stream. A kernel is of the device that has the
 * operation's buffer.
 *
 * A wait holds the processor that it runs on. What the other side's start needs
 * must not be behind it: neither in this stream, nor in a block that has no
 * room meanwhile. Threads of one warp that call for several operations at the
 * same time at the level of a thread may wait for each other without end on
 * AMD's devices: there one thread of a warp calls at a time.
 */

/* Zero if a handle's cell, or then its record, is another one's by now */
UCS_GSTREAM_FUNC int ucp_st_device_is_there(ucp_st_device_op_t op)
{
    return (op.place != 0) &&
           (UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, key)) == op.key);
}

UCS_GSTREAM_FUNC int ucp_st_device_is_here(ucp_st_device_op_t op,
                                           unsigned long long record)
{
    UCS_GSTREAM_FENCE(); /* Behind what was loaded of it */
    return UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(record, key)) == op.key;
}

/* Whether a use is complete, by the words of all its parts: of lane direct one,
 * of lane trig one a NIC. A word of 2^62 or more ends all waits. */
UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_look_words(ucp_st_device_op_t op, unsigned long long use)
{
    unsigned long long count = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place,
                                                                 num_words));
    ucp_st_device_status_t status = UCP_ST_DEVICE_OK;
    unsigned long long word, i;

    for (i = 0; i < count; ++i) {
        word = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, words) +
                                sizeof(word) * i);
        word = UCS_GSTREAM_LOAD(word);
        if (word < use) {
            return UCP_ST_DEVICE_INPROGRESS;
        }
        if ((word >> 62) != 0) {
            status = UCP_ST_DEVICE_FAILED;
        }
    }
    return status;
}

/* Whether the host lets kernels start a use, which is the next one. The uses
 * that it has posted are looked up when those that were there are used up.
 * While some are left neither the cell nor the record is given back. */
UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_may_start(ucp_st_device_op_t op,
                        ucs_gstream_device_pair_t *pair,
                        unsigned long long weight)
{
    unsigned long long use    = pair->use;
    unsigned long long record = pair->record;
    unsigned long long posted = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place,
                                                                  posted));
    ucp_st_device_status_t before;
    unsigned long long first, halted;

    /* Else the use before was enqueued, or there was none */
    if ((posted >= use - 1) &&
        (UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, waited)) < use - 1)) {
        return UCP_ST_DEVICE_BUSY;
    }
    if (posted >= use) {
        return UCP_ST_DEVICE_OK;
    }
    posted = UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(record, posted));
    UCS_GSTREAM_FENCE(); /* `first` is of this `posted`, or a later one */
    first  = UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(record, first));
    halted = UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(record, halted));
    if ((weight != 0) && (first > use)) {
        use       = first; /* Streams do not count their starts in the cell */
        pair->use = use;
    }
    before = ucp_st_device_look_words(op, use - 1);
    if (!ucp_st_device_is_here(op, record)) {
        return UCP_ST_DEVICE_GONE;
    }
    if ((posted < use) || (first > use)) {
        return (halted != 0) ? UCP_ST_DEVICE_FAILED : UCP_ST_DEVICE_NO_USE;
    }
    if (before == UCP_ST_DEVICE_INPROGRESS) {
        return UCP_ST_DEVICE_BUSY; /* The one before was enqueued */
    }
    UCS_GSTREAM_STORE(UCS_GSTREAM_CELL(op.place, posted), posted);
    return UCP_ST_DEVICE_OK;
}

/* Fills in the start of the next use, of so many bytes or, if that is the
 * largest number, of all; and begins it if it may be. By one thread. */
UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_begin(ucp_st_device_op_t op, unsigned long long length,
                    ucs_gstream_device_pair_t *pair, unsigned *what,
                    unsigned long long *actual)
{
    ucp_st_device_status_t status;
    unsigned long long weight;

    if (!ucp_st_device_is_there(op)) {
        return UCP_ST_DEVICE_GONE;
    }
    weight        = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, weight));
    pair->is_send = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, is_send));
    pair->cell    = op.place;
    pair->record  = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, record));
    pair->other   = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, other));
    pair->length  = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, max_length));
    pair->use     = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, decision)) / 2 +
                    1;
    if (length != ~0ull) {
        if ((length > pair->length) || !pair->is_send) {
            return UCP_ST_DEVICE_INVALID;
        }
        if ((weight != 0) && (length != pair->length)) {
            return UCP_ST_DEVICE_WHOLE;
        }
        pair->length = length;
    }
    status = ucp_st_device_may_start(op, pair, weight);
    if (status == UCP_ST_DEVICE_OK) {
        *what = (weight != 0) ? ucs_gstream_device_trigger(pair, weight) :
                                ucs_gstream_device_begin(pair, actual);
        UCS_GSTREAM_STORE(UCS_GSTREAM_CELL(op.place, decision),
                          2 * pair->use + (*what & UCS_GSTREAM_DEVICE_COPIES));
        if (*what & UCS_GSTREAM_DEVICE_HALTED) {
            status = UCP_ST_DEVICE_FAILED;
        }
    }
    return status;
}

/* Copies so many bytes of a handle's operation: the share of a thread */
UCS_GSTREAM_FUNC void ucp_st_device_move(ucp_st_device_op_t op,
                                         unsigned long long length,
                                         unsigned first, unsigned step)
{
    unsigned long long dst_rows = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place,
                                                                    dst_rows));
    unsigned long long src_rows = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place,
                                                                    src_rows));
    ucs_gstream_device_pair_t pair;

    pair.dst       = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, dst));
    pair.src       = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, src));
    pair.dst_width = (unsigned)dst_rows;
    pair.dst_pitch = (unsigned)(dst_rows >> 32);
    pair.src_width = (unsigned)src_rows;
    pair.src_pitch = (unsigned)(src_rows >> 32);
    ucs_gstream_device_move(&pair, length, first, step);
}

/* A start, of so many bytes or, if that is the largest number, of all. What the
 * block's first thread has found goes to the others in one word. */
UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_start_any(ucp_st_device_op_t op, unsigned long long length,
                        ucp_st_device_level_t level)
{
    const int is_block            = (level == UCP_ST_DEVICE_BLOCK);
    const unsigned first          = is_block ? UCS_GSTREAM_RANK() : 0;
    const unsigned step           = is_block ? UCS_GSTREAM_SIZE() : 1;
    unsigned what                 = 0;
    unsigned long long actual     = 0;
    ucp_st_device_status_t status = UCP_ST_DEVICE_OK;
    ucs_gstream_device_pair_t pair;
    unsigned long long found;

    pair.record = 0; /* Compilers do not see that it is set where it is used */
    pair.other  = 0;
    pair.use    = 0;
    if (is_block) {
        UCS_GSTREAM_FENCE(); /* What each has written goes along */
        UCS_GSTREAM_SYNC();
    }
    if (first == 0) {
        status = ucp_st_device_begin(op, length, &pair, &what, &actual);
    }
    found = (actual << 8) | ((unsigned)status << 1) |
            (what & UCS_GSTREAM_DEVICE_COPIES);
    if (is_block) {
        found = ucs_gstream_share(found);
    }
    if (found & UCS_GSTREAM_DEVICE_COPIES) {
        UCS_GSTREAM_FENCE(); /* Behind the other side's `begun` */
        ucp_st_device_move(op, found >> 8, first, step);
        UCS_GSTREAM_FENCE(); /* In front of the words */
    }
    if (is_block) {
        UCS_GSTREAM_SYNC();
    }
    status = (ucp_st_device_status_t)((found >> 1) & 127);
    if ((first == 0) && ((status == UCP_ST_DEVICE_OK) ||
                         (what & UCS_GSTREAM_DEVICE_HALTED))) {
        ucs_gstream_device_end(&pair, what, actual);
    }
    return status;
}

/**
 * Start the next use of an operation: from there on a send's buffer may be
 * read, and a receive's written. On lane direct this call copies the message if
 * the other side has started the use before; on lane trig it triggers the NICs.
 * It never waits for a start.
 *
 * @param [in] op    The handle.
 * @param [in] level A thread, or a block; a constant.
 *
 * @return UCP_ST_DEVICE_OK; UCP_ST_DEVICE_NO_USE; UCP_ST_DEVICE_BUSY;
 *         UCP_ST_DEVICE_GONE; UCP_ST_DEVICE_FAILED. In case of an error nothing
 *         was started.
 */
UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_start(ucp_st_device_op_t op, ucp_st_device_level_t level)
{
    return ucp_st_device_start_any(op, ~0ull, level);
}

/**
 * The same for a send of which only the first bytes are sent, in this use.
 *
 * @param [in] op     The handle of a send.
 * @param [in] length Bytes, up to those that were matched; 0 is legal.
 * @param [in] level  A thread, or a block; a constant.
 *
 * @return As @ref ucp_st_device_start; UCP_ST_DEVICE_INVALID;
 *         UCP_ST_DEVICE_WHOLE.
 */
UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_start_length(ucp_st_device_op_t op, unsigned long long length,
                           ucp_st_device_level_t level)
{
    /* The largest number is no length */
    return ucp_st_device_start_any(op, (length == ~0ull) ? length - 1 : length,
                                   level);
}

/* Looks whether the last use that was started is complete, or waits until it
 * is. The host may free the operation, and give its record to another one, once
 * it sees `waited` there, not before. By one thread. */
UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_look(ucp_st_device_op_t op, int is_wait)
{
    ucp_st_device_status_t status;
    unsigned long long use, record;

    if (!ucp_st_device_is_there(op)) {
        return UCP_ST_DEVICE_GONE;
    }
    use = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, decision)) / 2;
    if ((use == 0) || (use > UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place,
                                                               posted)))) {
        return UCP_ST_DEVICE_NO_USE;
    }
    record = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, record));
    if (UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, waited)) >= use) {
        status = ucp_st_device_look_words(op, use);
        return ucp_st_device_is_here(op, record) ? status : UCP_ST_DEVICE_GONE;
    }
    while ((status = ucp_st_device_look_words(op, use)) ==
           UCP_ST_DEVICE_INPROGRESS) {
        if (!is_wait) {
            return UCP_ST_DEVICE_INPROGRESS;
        }
        UCS_GSTREAM_PAUSE();
    }
    UCS_GSTREAM_STORE(UCS_GSTREAM_CELL(op.place, waited), use);
    UCS_GSTREAM_FENCE(); /* Behind the words, and in front of the record's */
    UCS_GSTREAM_STORE(UCS_GSTREAM_RECORD(record, waited), use);
    return status;
}

UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_look_level(ucp_st_device_op_t op, ucp_st_device_level_t level,
                         int is_wait)
{
    ucp_st_device_status_t status = UCP_ST_DEVICE_OK;

    if (level != UCP_ST_DEVICE_BLOCK) {
        return ucp_st_device_look(op, is_wait);
    }
    if (UCS_GSTREAM_RANK() == 0) {
        status = ucp_st_device_look(op, is_wait);
    }
    status = (ucp_st_device_status_t)ucs_gstream_share(status);
    UCS_GSTREAM_FENCE(); /* In front of what each reads */
    return status;
}

/**
 * Tell whether the last use that a kernel has started is complete: a send's
 * buffer may be written again, and a receive's message is there.
 *
 * @param [in] op    The handle.
 * @param [in] level A thread, or a block; a constant.
 *
 * @return UCP_ST_DEVICE_OK, which is as good as a wait;
 *         UCP_ST_DEVICE_INPROGRESS; UCP_ST_DEVICE_NO_USE if no kernel has
 *         started the last use; UCP_ST_DEVICE_GONE; UCP_ST_DEVICE_FAILED.
 */
UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_test(ucp_st_device_op_t op, ucp_st_device_level_t level)
{
    return ucp_st_device_look_level(op, level, 0);
}

/**
 * Wait for that. A wait ends, too, if the operation or its peer fails.
 *
 * @param [in] op    The handle.
 * @param [in] level A thread, or a block; a constant.
 *
 * @return As @ref ucp_st_device_test, but UCP_ST_DEVICE_INPROGRESS.
 */
UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_wait(ucp_st_device_op_t op, ucp_st_device_level_t level)
{
    return ucp_st_device_look_level(op, level, 1);
}

/**
 * Tell how long the message of an operation's last use is: of a receive behind
 * its wait, which a kernel or the stream has made; of a send behind its start.
 * Each thread may call.
 *
 * @param [in]  op     The handle.
 * @param [out] length Bytes; set on success only.
 *
 * @return UCP_ST_DEVICE_OK; UCP_ST_DEVICE_GONE.
 */
UCS_GSTREAM_FUNC ucp_st_device_status_t
ucp_st_device_length(ucp_st_device_op_t op, unsigned long long *length)
{
    unsigned long long value, record;

    if (!ucp_st_device_is_there(op)) {
        return UCP_ST_DEVICE_GONE;
    }
    record = UCS_GSTREAM_LOAD(UCS_GSTREAM_CELL(op.place, record));
    value  = UCS_GSTREAM_LOAD(UCS_GSTREAM_RECORD(record, length));
    if (!ucp_st_device_is_here(op, record)) {
        return UCP_ST_DEVICE_GONE;
    }
    *length = value;
    return UCP_ST_DEVICE_OK;
}

#endif

#endif
