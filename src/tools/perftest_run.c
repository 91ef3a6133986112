/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_run.c - runs: channels, buffers, payload, time. */
#include "perftest_test.h"
#include "perftest_side.h"

#include <stdlib.h>
#include <time.h>


uint64_t perftest_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ((uint64_t)ts.tv_sec * 1000000000ull) + (uint64_t)ts.tv_nsec;
}

unsigned perftest_run_num_channels(const perftest_side_t *side,
                                   const perftest_test_t *test)
{
    unsigned streams = (unsigned)side->options->streams;

    return (test->pattern == PERFTEST_PATTERN_BIBW) ? 2 * streams : streams;
}

static perftest_role_t perftest_channel_role(const perftest_run_t *run,
                                             unsigned index)
{
    int is_server = run->side->is_server;
    int backwards = index >= run->side->options->streams;

    if (run->test->pattern == PERFTEST_PATTERN_LAT) {
        return is_server ? PERFTEST_ROLE_PONG : PERFTEST_ROLE_PING;
    }
    if (run->test->rma == PERFTEST_RMA_GET) {
        return is_server ? PERFTEST_ROLE_SENDER : PERFTEST_ROLE_RECEIVER;
    }
    return (is_server == backwards) ? PERFTEST_ROLE_SENDER :
                                      PERFTEST_ROLE_RECEIVER;
}

/* Ready sends need to know that their receive was started again: the window has
 * two halves, each acknowledged on its own. */
static void perftest_channel_window(perftest_channel_t *channel)
{
    const perftest_test_t *test = channel->run->test;
    unsigned window = (unsigned)channel->run->side->options->window;

    channel->slots = window;
    channel->group = 0;
    if ((test->pattern == PERFTEST_PATTERN_LAT) ||
        (test->pattern == PERFTEST_PATTERN_ONE)) {
        channel->slots = 1;
    } else if (test->mode == UCP_ST_MODE_READY) {
        channel->group = (window > 1) ? window / 2 : 1;
        channel->slots = (window > 1) ? 2 * channel->group : 1;
    }
}

static int perftest_channel_init(perftest_channel_t *channel)
{
    const perftest_options_t *options = channel->run->side->options;
    size_t size                       = channel->run->size;
    perftest_memory_t memory          = PERFTEST_MEMORY_HOST;

    if (options->is_device) {
        memory = PERFTEST_MEMORY_DEVICE;
    } else if (channel->run->test->rma != PERFTEST_RMA_NONE) {
        memory = PERFTEST_MEMORY_SHARED;
    }
    perftest_channel_window(channel);
    if (channel->role != PERFTEST_ROLE_RECEIVER) {
        channel->send = perftest_buffers_create(channel->slots, size,
                                                memory, options->stream);
    }
    if (channel->role != PERFTEST_ROLE_SENDER) {
        channel->recv = perftest_buffers_create(channel->slots, size,
                                                memory, options->stream);
    }
    return (((channel->send != NULL) ||
             (channel->role == PERFTEST_ROLE_RECEIVER)) &&
            ((channel->recv != NULL) ||
             (channel->role == PERFTEST_ROLE_SENDER))) ? 0 : -1;
}

static void perftest_run_free(perftest_run_t *run)
{
    perftest_channel_t *channel;
    unsigned i;

    for (i = 0; (run->channels != NULL) && (i < run->num_channels); ++i) {
        channel = &run->channels[i];
        perftest_buffers_destroy(channel->send, channel->slots);
        perftest_buffers_destroy(channel->recv, channel->slots);
    }
    free(run->channels);
    free(run);
}

static int perftest_run_init(perftest_run_t *run)
{
    perftest_channel_t *channel;
    unsigned i;

    run->channels = calloc(run->num_channels, sizeof(*run->channels));
    for (i = 0; (run->channels != NULL) && (i < run->num_channels); ++i) {
        channel        = &run->channels[i];
        channel->run   = run;
        channel->index = i;
        channel->role  = perftest_channel_role(run, i);
        if (perftest_channel_init(channel) != 0) {
            return -1;
        }
    }
    return (run->channels != NULL) ? 0 : -1;
}

perftest_ret_t perftest_run_create(perftest_side_t *side,
                                   const perftest_test_t *test, size_t size,
                                   perftest_run_t **run_p)
{
    perftest_run_t *run = calloc(1, sizeof(*run));
    perftest_ret_t ret;

    if (run == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "no memory for %s", test->name);
    }
    run->side         = side;
    run->test         = test;
    run->size         = size;
    run->num_channels = perftest_run_num_channels(side, test);
    if (perftest_run_init(run) != 0) {
        ret = perftest_fail(PERFTEST_REFUSED, "no memory for %s with messages "
                            "of %zu bytes", test->name, size);
        goto err_free;
    }
    ret = test->engine->create(run);
    if (ret != PERFTEST_OK) {
        goto err_destroy;
    }
    *run_p = run;
    return PERFTEST_OK;

err_destroy:
    (void)test->engine->destroy(run);
err_free:
    perftest_run_free(run);
    return ret;
}

perftest_ret_t perftest_run_destroy(perftest_run_t *run)
{
    perftest_ret_t ret = run->test->engine->destroy(run);

    perftest_run_free(run);
    return ret;
}

/* Different for each message of a run: the seed of its payload */
static uint64_t perftest_run_seed(const perftest_channel_t *channel,
                                  unsigned slot, int from_server)
{
    return (((((channel->run->seed * 2) + (uint64_t)from_server) *
              (2 * PERFTEST_MAX_STREAMS)) + channel->index) *
            PERFTEST_MAX_WINDOW) + slot;
}

static void perftest_channel_fill(perftest_channel_t *channel)
{
    const perftest_side_t *side = channel->run->side;
    perftest_buffer_t *buffer;
    unsigned i;

    for (i = 0; i < channel->slots; ++i) {
        if (channel->send != NULL) {
            buffer = &channel->send[i];
            perftest_buffer_fill(buffer, perftest_run_seed(channel, i,
                                                           side->is_server));
            if (side->options->spoil && (buffer->size > 0)) {
                perftest_buffer_spoil(buffer);
            }
        }
        if (channel->recv != NULL) {
            perftest_buffer_clear(&channel->recv[i],
                                  perftest_run_seed(channel, i,
                                                    !side->is_server));
        }
    }
}

/* New data to send, and nothing right in the receive buffers */
static void perftest_run_fill(perftest_run_t *run)
{
    unsigned i;

    ++run->seed;
    for (i = 0; i < run->num_channels; ++i) {
        perftest_channel_fill(&run->channels[i]);
    }
}

/* Once in a run */
static void perftest_run_complain(const perftest_channel_t *channel,
                                  unsigned slot, const perftest_wrong_t *wrong)
{
    perftest_run_t *run = channel->run;

    if (run->is_wrong) {
        return;
    }
    run->is_wrong = 1;
    (void)perftest_fail(PERFTEST_DATA, "data error: %s, %zu bytes, channel %u, "
                        "message %u of its window: byte %zu%s is 0x%02x "
                        "instead of 0x%02x", run->test->name, run->size,
                        channel->index, slot, wrong->at,
                        (wrong->at >= run->size) ? ", behind the message," : "",
                        wrong->found, wrong->expected);
}

/* Messages of a repetition that was shorter than the window left some slots
 * as they were */
static unsigned perftest_channel_used(const perftest_channel_t *channel)
{
    size_t total = channel->run->total;

    return (total < channel->slots) ? (unsigned)total : channel->slots;
}

/* Compares what came; says what is wrong. Returns the number of messages. */
static uint64_t perftest_run_verify(const perftest_run_t *run)
{
    uint64_t errors = 0;
    const perftest_channel_t *channel;
    perftest_wrong_t wrong = {0};
    unsigned i, slot;

    for (i = 0; i < run->num_channels; ++i) {
        channel = &run->channels[i];
        if (channel->recv == NULL) {
            continue;
        }
        for (slot = 0; slot < perftest_channel_used(channel); ++slot) {
            if (perftest_buffer_check(&channel->recv[slot],
                                      perftest_run_seed(channel, slot,
                                                        !run->side->is_server),
                                      &wrong) == 0) {
                continue;
            }
            ++errors;
            perftest_run_complain(channel, slot, &wrong);
        }
    }
    return errors;
}

/* Nanoseconds from the first begin to the last end of its channels */
static uint64_t perftest_run_elapsed(const perftest_run_t *run)
{
    uint64_t begin = UINT64_MAX, end = 0;
    const uint64_t *stamps;
    unsigned i;

    for (i = 0; i < run->num_channels; ++i) {
        stamps = run->channels[i].stamps;
        if (stamps[1] != 0) {
            begin = (stamps[0] < begin) ? stamps[0] : begin;
            end   = (stamps[1] > end) ? stamps[1] : end;
        }
    }
    return (end == 0) ? 0 : end - begin;
}

static void perftest_run_reset(perftest_run_t *run, size_t warmup, size_t count)
{
    perftest_channel_t *channel;
    unsigned i;

    run->warmup = warmup;
    run->total  = warmup + count;
    for (i = 0; i < run->num_channels; ++i) {
        channel            = &run->channels[i];
        channel->next      = 0;
        channel->part      = 0;
        channel->stamps[0] = 0;
        channel->stamps[1] = 0;
    }
}

perftest_ret_t perftest_run_repeat(perftest_run_t *run, size_t warmup,
                                   size_t count, uint64_t *elapsed_ns,
                                   uint64_t *errors)
{
    perftest_side_t *side = run->side;
    uint64_t wrong        = 0;
    perftest_ret_t ret;

    perftest_run_reset(run, warmup, count);
    if (side->options->check) {
        perftest_run_fill(run);
    }
    ret = run->test->engine->prepare(run);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    *elapsed_ns = 0;
    ret         = perftest_oob_step(&side->oob, elapsed_ns, &wrong);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    perftest_watch_set(&side->watch, run->test->name);
    ret = run->test->engine->run(run);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    *elapsed_ns = perftest_run_elapsed(run);
    if (run->test->pattern == PERFTEST_PATTERN_ONE) {
        /* The side that looks on does not know when the other one is done */
        ret = perftest_oob_step(&side->oob, elapsed_ns, &wrong);
        if (ret != PERFTEST_OK) {
            return ret;
        }
    }
    if (side->options->check) {
        wrong = perftest_run_verify(run);
    }
    ret      = perftest_oob_step(&side->oob, elapsed_ns, &wrong);
    *errors += wrong;
    return ret;
}

size_t perftest_run_memory(const perftest_side_t *side,
                           const perftest_test_t *test, size_t size)
{
    unsigned channels = perftest_run_num_channels(side, test);
    size_t slots      = ((test->pattern == PERFTEST_PATTERN_LAT) ||
                         (test->pattern == PERFTEST_PATTERN_ONE)) ? 2 :
                        side->options->window;

    return channels * slots * perftest_buffer_memory(size);
}

size_t perftest_channel_part_end(const perftest_channel_t *channel)
{
    const perftest_run_t *run = channel->run;

    return (channel->next < run->warmup) ? run->warmup : run->total;
}
