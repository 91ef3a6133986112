/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_connect.c - the TCP sockets of client and server. */
#include "perftest_connect.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PERFTEST_CONNECT_MS 10000


static void perftest_set(int fd, int level, int name, int value)
{
    /* None of the options used is needed to work right */
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

/* So that a machine that goes without closing the connection is noticed */
static void perftest_set_all(int fd)
{
    perftest_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    perftest_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    perftest_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
    perftest_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2);
    perftest_set(fd, IPPROTO_TCP, TCP_KEEPCNT, 5);
    perftest_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 20000);
}

/* Addresses of a name; NULL: of this machine, to listen on */
static perftest_ret_t perftest_lookup(const perftest_options_t *options,
                                      const char *host, struct addrinfo **list)
{
    struct addrinfo hints = {
        .ai_family   = options->ipv6 ? AF_INET6 : AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags    = AI_NUMERICSERV | ((host == NULL) ? AI_PASSIVE : 0)
    };
    int ret              = getaddrinfo(host, options->port, &hints, list);

    if (ret != 0) {
        return perftest_fail(PERFTEST_REFUSED, "%s: %s",
                             (host == NULL) ? "this machine" : host,
                             gai_strerror(ret));
    }
    return PERFTEST_OK;
}

/* Returns 0 or what failed, as errno has it */
static int perftest_connect_wait(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    int error             = 0;
    socklen_t length      = sizeof(error);
    int ret;

    do {
        ret = poll(&poll_fd, 1, PERFTEST_CONNECT_MS);
    } while ((ret < 0) && (errno == EINTR));
    if (ret == 0) {
        return ETIMEDOUT;
    }
    return (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) ?
           errno : error;
}

static int perftest_connect_one(const struct addrinfo *address, int *fd_p)
{
    int fd    = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK |
                       SOCK_CLOEXEC, 0);
    int error = 0;

    if (fd < 0) {
        return errno;
    }
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        error = (errno == EINPROGRESS) ? perftest_connect_wait(fd) : errno;
    }
    if (error != 0) {
        close(fd);
        return error;
    }
    *fd_p = fd;
    return 0;
}

perftest_ret_t perftest_connect(const perftest_options_t *options, int *fd_p)
{
    const struct addrinfo *address;
    struct addrinfo *list;
    perftest_ret_t ret;
    int error = 0;

    ret = perftest_lookup(options, options->host, &list);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    for (address = list; address != NULL; address = address->ai_next) {
        error = perftest_connect_one(address, fd_p);
        if (error == 0) {
            break;
        }
    }
    freeaddrinfo(list);
    if (error != 0) {
        return perftest_fail(PERFTEST_REFUSED, "no connection to %s, port %s: "
                             "%s; start the server there first", options->host,
                             options->port, strerror(error));
    }
    perftest_set_all(*fd_p);
    return PERFTEST_OK;
}

/* Returns 0 or what failed, as errno has it */
static int perftest_listen_one(const struct addrinfo *address, int only_ipv6,
                               int *fd_p)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0) {
        return errno;
    }
    perftest_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (address->ai_family == AF_INET6) {
        perftest_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, only_ipv6);
    }
    if ((bind(fd, address->ai_addr, address->ai_addrlen) != 0) ||
        (listen(fd, 1) != 0)) {
        error = errno;
        close(fd);
        return error;
    }
    *fd_p = fd;
    return 0;
}

/* A socket for IPv6 serves both, where the machine has both. A port that is
 * taken there is not tried again on IPv4. */
static perftest_ret_t perftest_listen(const perftest_options_t *options,
                                      int *fd_p)
{
    const int families[] = {AF_INET6, AF_INET};
    const struct addrinfo *address;
    struct addrinfo *list;
    perftest_ret_t ret;
    int error = EAFNOSUPPORT;
    int i;

    ret = perftest_lookup(options, NULL, &list);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    for (i = 0; i < 2; ++i) {
        for (address = list; address != NULL; address = address->ai_next) {
            if ((address->ai_family == families[i]) && (error != 0) &&
                (error != EADDRINUSE)) {
                error = perftest_listen_one(address, options->ipv6, fd_p);
            }
        }
    }
    freeaddrinfo(list);
    if (error != 0) {
        return perftest_fail(PERFTEST_REFUSED, "cannot listen on port %s: %s",
                             options->port, strerror(error));
    }
    return PERFTEST_OK;
}

static unsigned perftest_port(int fd)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t length                = sizeof(address);

    (void)getsockname(fd, (struct sockaddr*)&address, &length);
    return ntohs((address.ss_family == AF_INET6) ?
                 ((struct sockaddr_in6*)&address)->sin6_port :
                 ((struct sockaddr_in*)&address)->sin_port);
}

perftest_ret_t perftest_accept(const perftest_options_t *options, int *fd_p)
{
    int fd = -1;
    perftest_ret_t ret;
    int error;

    ret = perftest_listen(options, &fd);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    printf("Waiting for a client on port %u\n", perftest_port(fd));
    (void)fflush(stdout);
    do {
        *fd_p = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while ((*fd_p < 0) && ((errno == EINTR) || (errno == ECONNABORTED)));
    error = errno;
    close(fd);
    if (*fd_p < 0) {
        return perftest_fail(PERFTEST_REFUSED, "no client could be accepted: "
                             "%s", strerror(error));
    }
    perftest_set_all(*fd_p);
    return PERFTEST_OK;
}
