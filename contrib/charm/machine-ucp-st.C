/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine-ucp-st.C - channels and GPU messaging of Charm++'s UCX machine layer,
 * made of ucp_st_channel.h and ucp_st_msg.h.
 *
 * machine.C includes this file; README.md says where. It defines
 * LrtsChannelSend() and LrtsChannelRecv() where machine.C has channels, and
 * LrtsSendDevice() and LrtsRecvDevice() in builds with CUDA and without SMP.
 *
 * All calls on the context come from the thread that progresses the UCP worker.
 * In an SMP build that is the communication thread: the others push what they
 * want to a queue, as they do for messages.
 */
#include <ucp_st_channel.h>
#include <ucp_st_msg.h>

#include <unordered_map>

/*
 * Charm++ does not say which end of a channel sends or receives. An application
 * may add it to the id that it gives CkChannel. Without it the directions of a
 * channel are not told apart: two ends on one PE receive their own data, as
 * they do without this file.
 */
enum {
    UCX_ST_ID_BITS = 28, // Of an id; above them 0, or the end (0 or 1) plus 1
    UCX_ST_NO_NODE = -1
};

struct UcxStChannel {
    ucp_st_channel_h handle;
    int              node; // Of the last send; UCX_ST_NO_NODE before
};

enum UcxStKind { UCX_ST_SEND, UCX_ST_RECV };

struct UcxStOp {
    UcxStKind kind;
    int       node;
    int       id;
    void      *buffer;
    size_t    length;
    uint64_t  number;
    void      *metadata;
};

struct UcxStContext {
    ucp_st_channel_ctx_h                        channels;
    ucp_worker_h                                worker;
    ucp_ep_h                                    *eps; // By node
    std::unordered_map<uint64_t, UcxStChannel> ends; // By id and end
#if CMK_SMP
    PCQueue                                     queue; // Of UcxStOp
#endif
};

static UcxStContext ucxStCtx;

// Call once the worker and its endpoints are there.
static void UcxStInit(ucp_worker_h worker, ucp_ep_h *eps)
{
    ucp_st_channel_ctx_params_t params = {};
    ucs_status_t status;

    params.field_mask = UCP_ST_CHANNEL_CTX_PARAM_FIELD_UCP_WORKER |
                        UCP_ST_CHANNEL_CTX_PARAM_FIELD_LAYOUT;
    params.ucp_worker = worker;
    params.layout     = ucp_st_tag_layout_charm;

    status = ucp_st_channel_ctx_create(&params, &ucxStCtx.channels);
    UCX_CHECK_STATUS(status, "ucp_st_channel_ctx_create");
    ucxStCtx.worker = worker;
    ucxStCtx.eps    = eps;
#if CMK_SMP
    ucxStCtx.queue  = PCQueueCreate();
#endif
}

// Call before the worker is destroyed. Charm++ does not hear of what is still
// under way. If UCP cannot end that now, the context stays for the callbacks
// that come while the worker is destroyed.
static void UcxStExit()
{
    ucs_status_t status;

    for (auto &end : ucxStCtx.ends) {
        ucp_st_channel_destroy(end.second.handle);
    }
    ucxStCtx.ends.clear();

    do {
        status = ucp_st_channel_ctx_destroy(ucxStCtx.channels);
    } while ((status == UCS_ERR_BUSY) && ucp_worker_progress(ucxStCtx.worker));
#if CMK_SMP
    PCQueueDestroy(ucxStCtx.queue);
#endif
}

#ifdef UCX_MSG_TAG_CHANNEL // The branch with channels
// The end of a channel that an operation uses. It is created by the first one.
static ucp_st_channel_h UcxStGetEnd(const UcxStOp *op)
{
    ucp_st_channel_params_t params = {};
    uint64_t id   = op->id & UCS_MASK(UCX_ST_ID_BITS);
    unsigned end  = (unsigned)op->id >> UCX_ST_ID_BITS;
    ucs_status_t status;

    // Without ends: all sends are of end 0, and end 1 receives them
    end = (end != 0) ? (end - 1) : (op->kind == UCX_ST_RECV);

    auto found = ucxStCtx.ends.emplace((id << 1) | (end & 1),
                                       UcxStChannel{NULL, op->node});
    UcxStChannel &channel = found.first->second;

    params.field_mask = UCP_ST_CHANNEL_PARAM_FIELD_ID |
                        UCP_ST_CHANNEL_PARAM_FIELD_END;
    params.id         = id;
    params.end        = end;
    if (op->node != UCX_ST_NO_NODE) {
        params.field_mask |= UCP_ST_CHANNEL_PARAM_FIELD_EP;
        params.ep          = ucxStCtx.eps[op->node];
    }

    if (found.second) {
        status = ucp_st_channel_create(ucxStCtx.channels, &params,
                                       &channel.handle);
        UCX_CHECK_STATUS(status, "ucp_st_channel_create");
    } else if ((op->node != UCX_ST_NO_NODE) && (op->node != channel.node)) {
        status = ucp_st_channel_rebind(channel.handle, &params);
        UCX_CHECK_STATUS(status, "ucp_st_channel_rebind");
        channel.node = op->node;
    }

    return channel.handle;
}

static void UcxStDone(void *metadata, ucs_status_t status, size_t)
{
    if (status != UCS_ERR_CANCELED) { // By UcxStExit()
        UCX_CHECK_STATUS(status, "a channel's operation");
        CmiChannelHandler(metadata);
    }
}

static void UcxStStart(const UcxStOp *op)
{
    const ucp_st_channel_msg_t msg = {op->buffer, op->length, UcxStDone,
                                      op->metadata};
    ucp_st_channel_h end           = UcxStGetEnd(op);
    ucs_status_t status;

    if (op->kind == UCX_ST_SEND) {
        status = ucp_st_channel_send_at(end, op->number, &msg);
    } else {
        status = ucp_st_channel_recv_at(end, op->number, &msg, NULL);
    }

    if (status != UCS_INPROGRESS) {
        UcxStDone(op->metadata, status, op->length);
    }
}

static void UcxStPost(const UcxStOp &op)
{
#if CMK_SMP
    PCQueuePush(ucxStCtx.queue, (char*)new UcxStOp(op));
#else
    UcxStStart(&op);
#endif
}

#endif // UCX_MSG_TAG_CHANNEL

// Call in the loop that progresses the worker. Returns 1 if something was done.
static int UcxStAdvance()
{
#if CMK_SMP && defined(UCX_MSG_TAG_CHANNEL)
    UcxStOp *op = (UcxStOp*)PCQueuePop(ucxStCtx.queue);

    if (op != NULL) {
        UcxStStart(op);
        delete op;
        return 1;
    }
#endif
    return 0;
}

#ifdef UCX_MSG_TAG_CHANNEL
// CkChannel counts in an int, whose 32 bits are the number.
void LrtsChannelSend(int dest_pe, int id, const void *&ptr, size_t size,
                     void *metadata, uint64_t tag)
{
    UcxStPost({UCX_ST_SEND, CmiNodeOf(dest_pe), id, (void*)ptr, size,
               (uint32_t)tag, metadata});
}

void LrtsChannelRecv(int id, const void *&ptr, size_t size, void *metadata,
                     uint64_t tag)
{
    UcxStPost({UCX_ST_RECV, UCX_ST_NO_NODE, id, (void*)ptr, size,
               (uint32_t)tag, metadata});
}
#endif // UCX_MSG_TAG_CHANNEL

/*
 * In an SMP build these two stay machine.C's: there the sending thread has to
 * know the tag at once, and the library makes it in the communication thread.
 */
#if CMK_CUDA && !CMK_SMP

#ifdef UCX_MSG_TAG_CHANNEL
typedef CommType UcxStDeviceType;
#else
typedef DeviceRecvType UcxStDeviceType;
#endif

struct UcxStDevice {
    DeviceRdmaOp    *op;
    UcxStDeviceType type;
};

// The callback of a send: Charm++ does not ask when it is over.
static void UcxStDeviceSent(void*, ucs_status_t status, size_t)
{
    if (status != UCS_ERR_CANCELED) { // By UcxStExit()
        UCX_CHECK_STATUS(status, "ucp_st_msg_send");
    }
}

static void UcxStDeviceReceived(void *arg, ucs_status_t status, size_t)
{
    const UcxStDevice device = *(UcxStDevice*)arg;

    delete (UcxStDevice*)arg;
    if (status == UCS_ERR_CANCELED) { // By UcxStExit()
        return;
    }

    UCX_CHECK_STATUS(status, "ucp_st_msg_recv");
#ifdef UCX_MSG_TAG_CHANNEL
    UcxDeviceRecvHandler(device.op, device.type);
#else
    UcxInvokeRecvHandler(device.op, device.type);
#endif
}

// Charm++ takes the tag to the receiver, which calls LrtsRecvDevice() with it.
void LrtsSendDevice(int dest_pe, const void *&ptr, size_t size, uint64_t &tag)
{
    const ucp_st_channel_msg_t msg = {(void*)ptr, size, UcxStDeviceSent, NULL};
    ucp_st_msg_meta_t meta;
    ucs_status_t status;

    status = ucp_st_msg_send(ucxStCtx.channels,
                             ucxStCtx.eps[CmiNodeOf(dest_pe)], CmiMyPe(), &msg,
                             &meta);
    UCX_CHECK_STATUS(status, "ucp_st_msg_send");
    tag = meta.tag;
}

void LrtsRecvDevice(DeviceRdmaOp *op, UcxStDeviceType type)
{
    UcxStDevice *device            = new UcxStDevice{op, type};
    const ucp_st_msg_meta_t meta   = {op->tag, op->size};
    const ucp_st_channel_msg_t msg = {(void*)op->dest_ptr, op->size,
                                      UcxStDeviceReceived, device};
    ucs_status_t status;

    status = ucp_st_msg_recv(ucxStCtx.channels, &meta, &msg, NULL, NULL);
    if (status != UCS_INPROGRESS) {
        UcxStDeviceReceived(device, status, op->size);
    }
}
#endif // CMK_CUDA && !CMK_SMP
