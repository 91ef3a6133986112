/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_oob.c - messages of the TCP connection of client and server. */
#include "ucx_st_config.h"

#include "perftest_oob.h"
#include "perftest_connect.h"
#include "perftest_test.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Seconds in which both sides have to agree once they are connected */
#define PERFTEST_OOB_LIMIT 10

/* Progress is made at least so often while the connection is waited for */
#define PERFTEST_OOB_SLICE_MS 10

/* What each message is waited for as */
static const char *const perftest_oob_names[PERFTEST_MSG_LAST] = {
    [PERFTEST_MSG_HELLO]   = "greeting",
    [PERFTEST_MSG_ACCEPT]  = "answer",
    [PERFTEST_MSG_REFUSE]  = "refusal",
    [PERFTEST_MSG_ADDRESS] = "address",
    [PERFTEST_MSG_STEP]    = "next step",
    [PERFTEST_MSG_COUNTS]  = "counts",
    [PERFTEST_MSG_KEYS]    = "keys"
};


/* What the end of the connection means: before both have agreed the other side
 * may be any program. */
static perftest_ret_t perftest_oob_lost(const perftest_oob_t *oob,
                                        perftest_msg_type_t type, int error)
{
    const char *text = (error == 0) ? "Connection closed" : strerror(error);

    if (oob->deadline != 0) {
        return perftest_fail(PERFTEST_REFUSED, "the %s ended the connection "
                             "before it said what it is (%s): is it "
                             "ucx_st_perftest?", oob->peer, text);
    }
    return perftest_fail(PERFTEST_PEER, "peer failed: %s (operation: waiting "
                         "for the %s's %s)", text, oob->peer,
                         perftest_oob_names[type]);
}

/* Milliseconds that one poll may take; -1: any time, 0: there is none left */
static int perftest_oob_slice(const perftest_oob_t *oob, int rounds)
{
    uint64_t now = perftest_now();

    if (oob->progress != NULL) {
        return (rounds < PERFTEST_OOB_SLICE_MS) ? rounds :
                                                  PERFTEST_OOB_SLICE_MS;
    }
    if (oob->deadline == 0) {
        return -1;
    }
    return (now < oob->deadline) ? 1 + (int)((oob->deadline - now) / 1000000) :
                                   0;
}

/* Waits for 'events'. Returns 0, or ETIMEDOUT. Progress is made after the
 * agreement only, without a deadline. */
static int perftest_oob_wait(perftest_oob_t *oob, short events)
{
    struct pollfd fd = {.fd = oob->fd, .events = events};
    int rounds       = 0;
    int slice;

    do {
        if (oob->progress != NULL) {
            oob->progress(oob->arg);
        }
        slice = perftest_oob_slice(oob, ++rounds);
        if (poll(&fd, 1, slice) > 0) {
            return 0;
        }
    } while (slice != 0);
    return ETIMEDOUT;
}

/* Returns 0, an errno value, or -1 at the connection's end */
static int perftest_oob_read(perftest_oob_t *oob, void *data, size_t length)
{
    uint8_t *p = data;
    ssize_t ret;
    int error;

    while (length > 0) {
        ret = recv(oob->fd, p, length, 0);
        if (ret > 0) {
            p      += ret;
            length -= ret;
            continue;
        }
        if (ret == 0) {
            return -1;
        }
        if ((errno != EAGAIN) && (errno != EINTR)) {
            return errno;
        }
        error = perftest_oob_wait(oob, POLLIN);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

static perftest_ret_t perftest_oob_get(perftest_oob_t *oob,
                                       perftest_msg_type_t type, void *data,
                                       size_t length)
{
    int error = perftest_oob_read(oob, data, length);

    if (error == 0) {
        return PERFTEST_OK;
    }
    if (error == ETIMEDOUT) {
        return perftest_fail(PERFTEST_REFUSED, "the %s's %s did not come "
                             "within %d s: is it ucx_st_perftest?", oob->peer,
                             perftest_oob_names[type], PERFTEST_OOB_LIMIT);
    }
    return perftest_oob_lost(oob, type, (error < 0) ? 0 : error);
}

perftest_ret_t perftest_oob_send(perftest_oob_t *oob, perftest_msg_type_t type,
                                 const void *data, size_t length)
{
    perftest_msg_hdr_t hdr = {
        .magic  = htonl(PERFTEST_PROTO_MAGIC),
        .type   = htonl(type),
        .length = htonl((uint32_t)length)
    };
    uint8_t *buffer        = malloc(sizeof(hdr) + length);
    size_t done            = 0;
    int error              = 0;
    ssize_t ret;

    if (buffer == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "no memory for a message");
    }
    memcpy(buffer, &hdr, sizeof(hdr));
    memcpy(buffer + sizeof(hdr), data, length);
    while ((done < sizeof(hdr) + length) && (error == 0)) {
        ret = send(oob->fd, buffer + done, sizeof(hdr) + length - done,
                   MSG_NOSIGNAL);
        if (ret >= 0) {
            done += ret;
        } else if (errno == EAGAIN) {
            error = perftest_oob_wait(oob, POLLOUT);
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    free(buffer);
    return (error == 0) ? PERFTEST_OK : perftest_oob_lost(oob, type, error);
}

/* Text of the network is printed */
static void perftest_oob_clean(char *text)
{
    for (; *text != '\0'; ++text) {
        if (!isprint((unsigned char)*text) && (*text != '\n')) {
            *text = '?';
        }
    }
}

static perftest_ret_t perftest_oob_check(const perftest_oob_t *oob,
                                         perftest_msg_hdr_t *hdr)
{
    hdr->magic  = ntohl(hdr->magic);
    hdr->type   = ntohl(hdr->type);
    hdr->length = ntohl(hdr->length);
    if ((hdr->magic != PERFTEST_PROTO_MAGIC) ||
        (hdr->type >= PERFTEST_MSG_LAST) ||
        (hdr->length > PERFTEST_PROTO_MAX)) {
        return perftest_fail(PERFTEST_REFUSED, "the %s is no ucx_st_perftest: "
                             "it sends something else", oob->peer);
    }
    return PERFTEST_OK;
}

perftest_ret_t perftest_oob_recv(perftest_oob_t *oob, perftest_msg_type_t type,
                                 void **data_p, size_t *length_p)
{
    perftest_msg_hdr_t hdr;
    perftest_ret_t ret;
    char *data;

    ret = perftest_oob_get(oob, type, &hdr, sizeof(hdr));
    if (ret != PERFTEST_OK) {
        return ret;
    }
    ret = perftest_oob_check(oob, &hdr);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    data = calloc(1, (size_t)hdr.length + 1);
    if (data == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "no memory for a message");
    }
    ret = perftest_oob_get(oob, type, data, hdr.length);
    if ((ret == PERFTEST_OK) && (hdr.type == PERFTEST_MSG_REFUSE)) {
        perftest_oob_clean(data);
        oob->refused = 1;
        ret          = perftest_fail(PERFTEST_REFUSED, "the %s says: %s",
                                     oob->peer, data);
    } else if ((ret == PERFTEST_OK) && (hdr.type != type)) {
        ret = perftest_fail(PERFTEST_BROKEN, "the %s sends its %s in place of "
                            "its %s", oob->peer, perftest_oob_names[hdr.type],
                            perftest_oob_names[type]);
    }
    if (ret != PERFTEST_OK) {
        free(data);
        return ret;
    }
    *data_p   = data;
    *length_p = hdr.length;
    return PERFTEST_OK;
}

perftest_ret_t perftest_oob_step(perftest_oob_t *oob, uint64_t *elapsed_ns,
                                 uint64_t *errors)
{
    perftest_msg_step_t step = {
        .number     = htonl(++oob->steps),
        .zero       = 0,
        .elapsed_ns = htobe64(*elapsed_ns),
        .errors     = htobe64(*errors)
    };
    const perftest_msg_step_t *theirs;
    perftest_ret_t ret;
    uint64_t elapsed;
    size_t length;
    void *data;

    ret = perftest_oob_send(oob, PERFTEST_MSG_STEP, &step, sizeof(step));
    if (ret != PERFTEST_OK) {
        return ret;
    }
    ret = perftest_oob_recv(oob, PERFTEST_MSG_STEP, &data, &length);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    theirs = data;
    if ((length != sizeof(*theirs)) || (theirs->number != step.number)) {
        ret = perftest_fail(PERFTEST_BROKEN, "the %s is at another step than "
                            "this side", oob->peer);
    } else {
        elapsed     = be64toh(theirs->elapsed_ns);
        *elapsed_ns = (elapsed > *elapsed_ns) ? elapsed : *elapsed_ns;
        *errors    += be64toh(theirs->errors);
    }
    free(data);
    return ret;
}

void perftest_oob_refuse(perftest_oob_t *oob, const char *text)
{
    perftest_msg_hdr_t hdr = {
        .magic  = htonl(PERFTEST_PROTO_MAGIC),
        .type   = htonl(PERFTEST_MSG_REFUSE),
        .length = htonl((uint32_t)strlen(text))
    };
    struct iovec iov[]     = {
        {.iov_base = &hdr, .iov_len = sizeof(hdr)},
        {.iov_base = (void*)text, .iov_len = strlen(text)}
    };
    struct msghdr msg      = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t ret;

    if (oob->refused) {
        return;
    }
    oob->refused = 1;
    /* The other side may be gone, and nothing waits for it here */
    ret = sendmsg(oob->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)ret;
}

static void perftest_oob_hello(perftest_msg_hello_t *hello)
{
    memset(hello, 0, sizeof(*hello));
    hello->proto = htonl(PERFTEST_PROTO_VERSION);
    strncpy(hello->version, PACKAGE_VERSION, sizeof(hello->version) - 1);
}

/* At the client */
static perftest_ret_t perftest_oob_greet(perftest_oob_t *oob,
                                         const perftest_options_t *options)
{
    size_t size = 0, length;
    char *text  = NULL;
    FILE *file  = open_memstream(&text, &size);
    perftest_msg_hello_t hello;
    perftest_ret_t ret;
    void *answer;

    if (file == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "no memory for a message");
    }
    perftest_oob_hello(&hello);
    (void)fwrite(&hello, sizeof(hello), 1, file);
    perftest_options_print(options, file);
    (void)fclose(file);
    ret = perftest_oob_send(oob, PERFTEST_MSG_HELLO, text, size);
    free(text);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    ret = perftest_oob_recv(oob, PERFTEST_MSG_ACCEPT, &answer, &length);
    if (ret == PERFTEST_OK) {
        free(answer);
    }
    return ret;
}

/* At the server: 'hello' is what the client has sent */
static perftest_ret_t perftest_oob_agree(perftest_options_t *options,
                                         void *data, size_t length)
{
    perftest_msg_hello_t *hello = data;

    if (length < sizeof(*hello)) {
        return perftest_fail(PERFTEST_REFUSED, "the client's greeting of %zu "
                             "bytes is too short", length);
    }
    hello->version[sizeof(hello->version) - 1] = '\0';
    perftest_oob_clean(hello->version);
    if ((ntohl(hello->proto) != PERFTEST_PROTO_VERSION) ||
        (strcmp(hello->version, PACKAGE_VERSION) != 0)) {
        return perftest_fail(PERFTEST_REFUSED, "versions differ: the client is "
                             "ucx_st_perftest %s (protocol %u), the server %s "
                             "(protocol %u)", hello->version,
                             ntohl(hello->proto), PACKAGE_VERSION,
                             PERFTEST_PROTO_VERSION);
    }
    perftest_oob_clean((char*)(hello + 1));
    return perftest_options_merge(options, (char*)(hello + 1));
}

static perftest_ret_t perftest_oob_serve(perftest_oob_t *oob,
                                         perftest_options_t *options)
{
    perftest_msg_hello_t hello;
    perftest_ret_t ret;
    size_t length;
    void *data;

    ret = perftest_oob_recv(oob, PERFTEST_MSG_HELLO, &data, &length);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    ret = perftest_oob_agree(options, data, length);
    free(data);
    if (ret != PERFTEST_OK) {
        perftest_oob_refuse(oob, perftest_last_failure());
        return ret;
    }
    perftest_oob_hello(&hello);
    return perftest_oob_send(oob, PERFTEST_MSG_ACCEPT, &hello, sizeof(hello));
}

perftest_ret_t perftest_oob_create(perftest_oob_t *oob,
                                   perftest_options_t *options)
{
    int is_server = (options->host == NULL);
    perftest_ret_t ret;

    memset(oob, 0, sizeof(*oob));
    oob->fd       = -1;
    oob->peer     = is_server ? "client" : "server";
    ret           = is_server ? perftest_accept(options, &oob->fd) :
                                perftest_connect(options, &oob->fd);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    oob->deadline = perftest_now() + (PERFTEST_OOB_LIMIT * 1000000000ull);
    ret = is_server ? perftest_oob_serve(oob, options) :
                      perftest_oob_greet(oob, options);
    if (ret != PERFTEST_OK) {
        perftest_oob_destroy(oob);
        return ret;
    }
    oob->deadline = 0;
    return PERFTEST_OK;
}

void perftest_oob_destroy(perftest_oob_t *oob)
{
    close(oob->fd);
    oob->fd = -1;
}
