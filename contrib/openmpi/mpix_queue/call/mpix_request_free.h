/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_request_free.h - how persistent requests go.
 */
#ifndef MPIX_REQUEST_FREE_H_
#define MPIX_REQUEST_FREE_H_

#include "request/mpix_request.h"

/* MPI has given another request the handle of this one, which is in the table
 * no longer: end it. Needs the lock, which it may give up meanwhile. */
void mpix_request_lost(mpix_req_t *req);

#endif
