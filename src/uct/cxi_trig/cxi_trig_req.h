/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_req.h - what every libfabric operation carries as its context.
 */
#ifndef UCT_CXI_TRIG_REQ_H_
#define UCT_CXI_TRIG_REQ_H_

#include <ucs/datastruct/list.h>
#include <ucs/type/status.h>

#include <rdma/fi_trigger.h>

#include <stddef.h>

struct uct_cxi_trig_iface;
struct uct_cxi_trig_req;


/**
 * Called from progress when the operation is over; owns the request then.
 * @a length is that of a received message.
 */
typedef void (*uct_cxi_trig_req_func_t)(struct uct_cxi_trig_iface *iface,
                                        struct uct_cxi_trig_req *req,
                                        size_t length, ucs_status_t status);


/**
 * Head of the descriptor of every operation. The provider reports the address
 * of @a work.context, which must stay first: libfabric demands it of deferred
 * work. The provider's between posting and completion.
 */
typedef struct uct_cxi_trig_req {
    struct fi_deferred_work work;
    uct_cxi_trig_req_func_t complete;
} uct_cxi_trig_req_t;

_Static_assert(offsetof(uct_cxi_trig_req_t, work.context) == 0,
               "the completion queue's context must be the request");


/**
 * A completion that waits for progress, in the context of the request, which is
 * no longer the provider's.
 */
typedef struct uct_cxi_trig_late {
    ucs_list_link_t list; /**< On the interface's */
    size_t          length;
    ucs_status_t    status;
} uct_cxi_trig_late_t;

_Static_assert(sizeof(uct_cxi_trig_late_t) <= sizeof(struct fi_context2),
               "a late completion must fit into its request's context");

#endif
