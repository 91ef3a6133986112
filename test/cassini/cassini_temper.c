/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_temper.c - settings, and what is drawn at random.
 */
#include "cassini_parts.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

cassini_settings_t cassini_settings;

static struct {
    uint64_t       state;
    uint64_t       ops; /**< Of this process so far */
    cassini_work_t *late;
    unsigned       count;
    unsigned       fresh; /**< Requests since something was carried out last */
    uint64_t       since; /**< When the last of them came, ns */
} cassini_temper;


static uint64_t cassini_temper_number(const char *name, uint64_t value)
{
    const char *text = getenv(name);

    return ((text == NULL) || (*text == '\0')) ? value :
                                                 strtoull(text, NULL, 0);
}

static const char *cassini_temper_text(const char *name, const char *value)
{
    const char *text = getenv(name);

    return ((text == NULL) || (*text == '\0')) ? value : text;
}

void cassini_temper_read(void)
{
    cassini_settings_t *settings = &cassini_settings;
    const char *inject           = getenv("CASSINI_INJECT");
    unsigned long long at;

    settings->name      = cassini_temper_text("CASSINI_NIC", "default");
    settings->seed      = cassini_temper_number("CASSINI_SEED", 0);
    settings->tles      = cassini_temper_number("CASSINI_TLES", 512);
    settings->cts       = cassini_temper_number("CASSINI_CTS", 2047);
    settings->les       = cassini_temper_number("CASSINI_LES", 4 * 15726);
    settings->eq_slots  = cassini_temper_number("CASSINI_EQ_SLOTS", 0);
    settings->exact     = cassini_temper_number("CASSINI_EXACT_QUEUES", 0);
    settings->down_at   = cassini_temper_number("CASSINI_DOWN", 0);
    settings->vanish_at = cassini_temper_number("CASSINI_VANISH", 0);
    settings->gone_rc   = cassini_temper_number("CASSINI_GONE",
                                                CASSINI_RC_PTE_NOT_FOUND);
    settings->service   = cassini_temper_text("CASSINI_SERVICE", "open");
    settings->file      = cassini_temper_text("CASSINI_FILE", NULL);
    settings->vni       = cassini_temper_number("CASSINI_VNI", 10);
    settings->rdzv_get  = cassini_temper_number("CASSINI_RDZV_GET", 1);
    settings->leaks     = cassini_temper_text("CASSINI_LEAKS", NULL);
    settings->verbose   = cassini_temper_number("CASSINI_VERBOSE", 0);
    if ((inject != NULL) &&
        (sscanf(inject, "%u@%llu", &settings->inject_rc, &at) == 2)) {
        settings->inject_at = at;
    }
    /* Each process draws differently, and the same in each run: by its place */
    cassini_temper.state = settings->seed;
}

void cassini_temper_tell(void)
{
    static int told;

    if ((cassini_settings.seed != 0) && !told) {
        told = 1;
        (void)dprintf(STDERR_FILENO, "cassini: seed %llu\n",
                      (unsigned long long)cassini_settings.seed);
    }
}

unsigned cassini_temper_draw(unsigned bound)
{
    uint64_t z;

    if ((cassini_settings.seed == 0) || (bound == 0)) {
        return 0;
    }
    /* Source: splitmix64, Steele et al. 2014 */
    z = (cassini_temper.state += 0x9e3779b97f4a7c15ull + cassini_dir_self * 2);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (unsigned)((z ^ (z >> 31)) % bound);
}

int cassini_temper_next_op(void)
{
    uint64_t op = ++cassini_temper.ops;

    if (op == cassini_settings.vanish_at) {
        kill(getpid(), SIGKILL);
    }
    if ((cassini_settings.inject_at != 0) &&
        (op == cassini_settings.inject_at)) {
        cassini_say("operation %llu ends with return code %u",
                    (unsigned long long)op, cassini_settings.inject_rc);
        return (int)cassini_settings.inject_rc;
    }
    if ((cassini_settings.down_at != 0) && (op > cassini_settings.down_at)) {
        return CASSINI_RC_UNDELIVERABLE;
    }
    return CASSINI_RC_OK;
}

static uint64_t cassini_temper_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

int cassini_temper_put_off(const cassini_work_t *work)
{
    const cassini_packet_t *packet = work->packet;
    cassini_work_t **place;
    cassini_work_t *late;
    size_t size;

    if (cassini_settings.seed == 0) {
        return 0;
    }
    ++cassini_temper.fresh;
    cassini_temper.since = cassini_temper_now();
    /* Relaxed order at the end too, or an operation without any order */
    if (!(work->le.end_relaxed || packet->request.restricted ||
          (packet->request.kind == CASSINI_EV_GET)) ||
        work->le.manage_local || work->le.use_once ||
        (cassini_temper_draw(4) != 0)) {
        return 0;
    }
    late = malloc(sizeof(*late));
    size = sizeof(*packet) + packet->data;
    if (late == NULL) {
        return 0;
    }
    *late        = *work;
    late->packet = malloc(size);
    if (late->packet == NULL) {
        free(late);
        return 0;
    }
    memcpy(late->packet, packet, size);
    late->next = NULL;
    for (place = &cassini_temper.late; *place != NULL;
         place = &(*place)->next) {
    }
    *place = late;
    ++cassini_temper.count;
    return 1;
}

/* Whether it is time for something that was put off. Draws once a request, not
 * once a turn of the engine, so that the same requests have the same order.
 * When no more requests come, all is due after a while. */
static int cassini_temper_is_due(void)
{
    while (cassini_temper.fresh > 0) {
        --cassini_temper.fresh;
        if (cassini_temper_draw(8) == 0) {
            return 1;
        }
    }
    return cassini_temper_now() - cassini_temper.since > CASSINI_LATE_NS;
}

unsigned cassini_temper_progress(int all)
{
    unsigned done = 0;
    cassini_work_t **place;
    cassini_work_t *late;
    unsigned skip;

    while ((cassini_temper.late != NULL) &&
           (all || cassini_temper_is_due())) {
        skip = cassini_temper_draw(cassini_temper.count);
        for (place = &cassini_temper.late; skip > 0; --skip) {
            place = &(*place)->next;
        }
        late   = *place;
        *place = late->next;
        --cassini_temper.count;
        cassini_tgt_carry_out(late);
        free(late->packet);
        free(late);
        ++done;
    }
    if (cassini_temper.late == NULL) {
        cassini_temper.fresh = 0;
    }
    return done;
}

int cassini_temper_has(void)
{
    return cassini_temper.late != NULL;
}

void cassini_temper_forget(void)
{
    memset(&cassini_temper, 0, sizeof(cassini_temper));
}

static void cassini_print(const char *format, va_list args)
{
    char text[400];
    int used;

    used  = snprintf(text, sizeof(text), "cassini[%d]: ", (int)getpid());
    used += vsnprintf(text + used, sizeof(text) - used - 1, format, args);
    if (used > (int)sizeof(text) - 2) {
        used = (int)sizeof(text) - 2;
    }
    text[used++] = '\n';
    if (write(STDERR_FILENO, text, used) < 0) {
        return;
    }
}

void cassini_trace(const char *format, ...)
{
    va_list args;

    if (cassini_settings.verbose >= 2) {
        va_start(args, format);
        cassini_print(format, args);
        va_end(args);
    }
}

void cassini_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cassini_print(format, args);
    va_end(args);
}
