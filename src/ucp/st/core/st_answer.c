/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_answer.c - the process tells what waits in it.
 *
 * The service thread listens on a socket of the abstract namespace: there is no
 * file to be left behind, or to be replaced by a link. A process that connects
 * is told at once; the connection of another user's is closed.
 * Writing to it never blocks: what the socket does not take is cut.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* accept4(), struct ucred */
#endif

#include "core/st_answer.h"
#include "core/st_config.h"
#include "core/st_log.h"
#include "core/st_waits.h"
#include "core/st_watch.h"

#include <ucs/sys/math.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Longest answer, bytes: a socket takes as much at once */
#define UCP_ST_ANSWER_SIZE 65536

/* When to look again where a process has no descriptor left, milliseconds */
#define UCP_ST_ANSWER_AGAIN_MSEC 100

/* Answers until other clients of the thread have their turn */
#define UCP_ST_ANSWER_MAX 4

struct ucp_st_note {
    ucs_list_link_t list;
    ucp_st_look_t   look;
    const char      *text; /* behind `who` */
    char            who[]; /* both end with zero */
};

/**
 * `open_lock` serialises the begin and the end of it, and is taken before
 * `lock`, which protects the lists and what is in them. A worker's lock is
 * taken behind that.
 */
static struct {
    pthread_mutex_t         open_lock;
    unsigned                refs;  /* workers and notes */
    int                     fd;    /* or -1; read-only while it is open, as is
                                      the next one */
    double                  age;   /* of what it warns of, s */
    ucp_st_service_client_t service;
    pthread_mutex_t         lock;
    ucs_list_link_t         workers;
    ucs_list_link_t         notes;
} ucp_st_answer = {
    .open_lock = PTHREAD_MUTEX_INITIALIZER,
    .lock      = PTHREAD_MUTEX_INITIALIZER,
    .workers   = UCS_LIST_INITIALIZER(&ucp_st_answer.workers,
                                      &ucp_st_answer.workers),
    .notes     = UCS_LIST_INITIALIZER(&ucp_st_answer.notes,
                                      &ucp_st_answer.notes)
};

/* The lock is held */
static void ucp_st_answer_look_notes(ucp_st_waits_t *waits)
{
    ucp_st_note_h note;

    ucs_list_for_each(note, &ucp_st_answer.notes, list) {
        if (ucp_st_waits_see(waits, &note->look, 0)) {
            ucp_st_waits_begin(waits, note->who, &note->look);
            ucp_st_waits_add(waits, "%s", note->text);
        }
    }
}

/* Milliseconds until the next note is old enough; -1: never. The lock is
 * held. */
static int ucp_st_answer_next(double now)
{
    double next = INFINITY;
    ucp_st_note_h note;

    ucs_list_for_each(note, &ucp_st_answer.notes, list) {
        if (!note->look.is_told) {
            next = ucs_min(next, note->look.since + ucp_st_answer.age - now);
        }
    }
    return (next == INFINITY) ? -1 :
                                1 + (int)ucs_min(ucs_max(next, 0) * 1e3, 1e6);
}

/* Warn of notes that are old enough; when to call again, milliseconds */
static int ucp_st_answer_warn(void)
{
    char text[UCP_ST_WAITS_WARN_SIZE];
    ucp_st_waits_t waits;
    int next;

    ucp_st_waits_init(&waits, text, sizeof(text), ucp_st_answer.age);
    (void)pthread_mutex_lock(&ucp_st_answer.lock);
    ucp_st_answer_look_notes(&waits);
    next = ucp_st_answer_next(waits.now);
    (void)pthread_mutex_unlock(&ucp_st_answer.lock);
    ucp_st_waits_warn(&waits);
    return next;
}

/* All that waits in the process: of each worker what `look` writes */
static void ucp_st_answer_look(ucp_st_waits_t *waits,
                               void (*look)(ucp_st_worker_h worker,
                                            ucp_st_waits_t *waits))
{
    ucp_st_watch_t *watch;
    ucp_st_worker_h worker;

    (void)pthread_mutex_lock(&ucp_st_answer.lock);
    ucs_list_for_each(watch, &ucp_st_answer.workers, answering) {
        worker = watch->service.arg;
        ucp_st_worker_lock(worker);
        look(worker, waits);
        ucp_st_worker_unlock(worker);
    }
    ucp_st_answer_look_notes(waits);
    (void)pthread_mutex_unlock(&ucp_st_answer.lock);
}

/* To another process */
static void ucp_st_answer_describe(ucp_st_waits_t *waits)
{
    ucp_st_waits_add(waits, "process %d (%s)", (int)getpid(),
                     program_invocation_short_name);
    ucp_st_answer_look(waits, ucp_st_waits_describe);
    ucp_st_waits_add(waits, (waits->count == 0) ? "\nnothing waits\n" : "\n");
}

unsigned ucp_st_waits_get(char *text, size_t size)
{
    ucp_st_waits_t waits;

    if (ucp_st_check_call((text != NULL) && (size > 0)) != UCS_OK) {
        return 0;
    }
    ucp_st_waits_init(&waits, text, size, 0);
    ucp_st_answer_look(&waits, ucp_st_waits_look);
    return waits.count;
}

static int ucp_st_answer_is_allowed(int fd)
{
    socklen_t length  = sizeof(struct ucred);
    struct ucred cred = {.uid = (uid_t)-1};

    return (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) == 0) &&
           ((cred.uid == geteuid()) || (cred.uid == 0));
}

static void ucp_st_answer_one(int fd)
{
    char *text = malloc(UCP_ST_ANSWER_SIZE);
    ucp_st_waits_t waits;

    if (text == NULL) {
        return;
    }
    if (ucp_st_answer_is_allowed(fd)) {
        ucp_st_waits_init(&waits, text, UCP_ST_ANSWER_SIZE, 0);
        ucp_st_answer_describe(&waits);
        (void)!send(fd, text, waits.length, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    free(text);
}

/* In the service thread */
static int ucp_st_answer_serve(void *arg)
{
    int is_full = 0;
    unsigned i;
    int fd, next;

    ucp_st_answer.service.num_fds = (ucp_st_answer.fd >= 0);
    for (i = 0; (i < UCP_ST_ANSWER_MAX) && (ucp_st_answer.fd >= 0); ++i) {
        fd = accept4(ucp_st_answer.fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            is_full = (errno != EAGAIN);
            break;
        }
        ucp_st_answer_one(fd);
        close(fd);
    }
    next = ucp_st_answer_warn();
    if (is_full) {
        /* No descriptor is free: the one that asks waits in the queue */
        ucp_st_answer.service.num_fds = 0;
        next = (next < 0) ? UCP_ST_ANSWER_AGAIN_MSEC :
                            ucs_min(next, UCP_ST_ANSWER_AGAIN_MSEC);
    }
    return next;
}

/* The socket, or -1: the process cannot be asked */
static int ucp_st_answer_listen(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int length;

    length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                      UCP_ST_SOCKET_NAME, (int)getpid());
    if ((fd >= 0) &&
        ((bind(fd, (const struct sockaddr*)&address,
               offsetof(struct sockaddr_un, sun_path) + 1 + length) != 0) ||
         (listen(fd, UCP_ST_ANSWER_MAX) != 0))) {
        ucs_diag("this process cannot be asked what it waits for: socket "
                 "@%s: %m", address.sun_path + 1);
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The first one opens the socket and has the service thread serve it. A child
 * of the process is refused from now on: the thread is not there. */
static ucs_status_t ucp_st_answer_open(void)
{
    ucs_status_t status = ucp_st_fork_enter();
    ucp_st_config_t config;

    if (status != UCS_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&ucp_st_answer.open_lock);
    if (ucp_st_answer.refs == 0) {
        status = ucp_st_config_read(&config);
        if (status != UCS_OK) {
            goto out;
        }
        ucp_st_answer.age = (config.warn_time > 0) ? config.warn_time :
                                                     INFINITY;
        ucp_st_config_release(&config);
        ucp_st_answer.fd              = ucp_st_answer_listen();
        ucp_st_answer.service.serve   = ucp_st_answer_serve;
        ucp_st_answer.service.fds[0]  = ucp_st_answer.fd;
        ucp_st_answer.service.num_fds = (ucp_st_answer.fd >= 0);
        status = ucp_st_service_add(&ucp_st_answer.service);
        if ((status != UCS_OK) && (ucp_st_answer.fd >= 0)) {
            close(ucp_st_answer.fd);
        }
    }
    ucp_st_answer.refs += (status == UCS_OK);

out:
    (void)pthread_mutex_unlock(&ucp_st_answer.open_lock);
    if (status != UCS_OK) {
        ucp_st_fork_leave();
    }
    return status;
}

static void ucp_st_answer_close(void)
{
    (void)pthread_mutex_lock(&ucp_st_answer.open_lock);
    if (--ucp_st_answer.refs == 0) {
        ucp_st_service_remove(&ucp_st_answer.service);
        if (ucp_st_answer.fd >= 0) {
            close(ucp_st_answer.fd);
        }
    }
    (void)pthread_mutex_unlock(&ucp_st_answer.open_lock);
    ucp_st_fork_leave();
}

ucs_status_t ucp_st_answer_add(ucp_st_worker_h worker)
{
    ucs_status_t status = ucp_st_answer_open();

    if (status == UCS_OK) {
        (void)pthread_mutex_lock(&ucp_st_answer.lock);
        ucs_list_add_tail(&ucp_st_answer.workers,
                          &ucp_st_watch(worker)->answering);
        (void)pthread_mutex_unlock(&ucp_st_answer.lock);
    }
    return status;
}

void ucp_st_answer_remove(ucp_st_worker_h worker)
{
    (void)pthread_mutex_lock(&ucp_st_answer.lock);
    ucs_list_del(&ucp_st_watch(worker)->answering);
    (void)pthread_mutex_unlock(&ucp_st_answer.lock);
    ucp_st_answer_close();
}

ucs_status_t ucp_st_note_begin(const char *who, const char *text, double waited,
                               ucp_st_note_h *note_p)
{
    ucs_status_t status = ucp_st_check_call((who != NULL) && (text != NULL) &&
                                            (note_p != NULL));
    size_t who_size, text_size;
    ucp_st_note_h note;
    char *copy;

    if (status != UCS_OK) {
        return status;
    }
    who_size  = strlen(who) + 1;
    text_size = strlen(text) + 1;
    note      = calloc(1, sizeof(*note) + who_size + text_size);
    if (note == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_st_answer_open();
    if (status != UCS_OK) {
        free(note);
        return status;
    }
    copy             = memcpy(note->who, who, who_size);
    note->text       = memcpy(copy + who_size, text, text_size);
    note->look.since = ucp_st_worker_now() - waited;
    (void)pthread_mutex_lock(&ucp_st_answer.lock);
    ucs_list_add_tail(&ucp_st_answer.notes, &note->list);
    (void)pthread_mutex_unlock(&ucp_st_answer.lock);
    ucp_st_service_wake(&ucp_st_answer.service);
    *note_p = note;
    return UCS_OK;
}

void ucp_st_note_end(ucp_st_note_h note)
{
    if ((note == NULL) || ucp_st_fork_is_child) {
        return;
    }
    (void)pthread_mutex_lock(&ucp_st_answer.lock);
    ucs_list_del(&note->list);
    (void)pthread_mutex_unlock(&ucp_st_answer.lock);
    ucp_st_answer_close();
    free(note);
}
