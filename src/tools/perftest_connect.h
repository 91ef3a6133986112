/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_connect.h - the TCP sockets of client and server, IPv4 and IPv6. */
#ifndef PERFTEST_CONNECT_H_
#define PERFTEST_CONNECT_H_

#include "perftest_log.h"
#include "perftest_options.h"

/* Connects to the server that the options name, within 10 seconds. */
perftest_ret_t perftest_connect(const perftest_options_t *options, int *fd_p);

/* Waits for one client, without a limit, and prints the port before. */
perftest_ret_t perftest_accept(const perftest_options_t *options, int *fd_p);

#endif
