/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fake.c - a peer that speaks the protocol of st workers by hand.
 */
#define _GNU_SOURCE 1 /* memfd_create(), pipe2() */

#include "st_fake.h"
#include "st_far.h"

#include "ctrl/st_ctrl.h"

#include <CUnit/CUnit.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Calls of progress in which a message arrives */
#define FAKE_ROUNDS 40

/* ... until the target has answered, at most */
#define FAKE_MAX_ROUNDS 1000000

/** What the child tells. */
typedef struct {
    ucp_st_direct_file_t segment;
    ucp_st_direct_file_t notify;
} fake_files_t;

static fake_files_t fake_files;
static uint8_t      *fake_memory;
static int          fake_child_fd = -1;

static int fake_file(int fd, ucp_st_direct_file_t *file)
{
    struct stat st;

    *file = (ucp_st_direct_file_t){.pid = (uint32_t)getpid(),
                                   .fd  = (uint32_t)fd};
    if (fstat(fd, &st) != 0) {
        return 0;
    }
    file->dev = st.st_dev;
    file->ino = st.st_ino;
    return 1;
}

static void fake_child(int socket)
{
    int memory = memfd_create("ucp-st", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    fake_files_t files;
    int fds[2];
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if ((memory >= 0) && (ftruncate(memory, ST_FAKE_MEMORY) == 0) &&
        (fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0) &&
        (pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0) &&
        fake_file(memory, &files.segment) && fake_file(fds[1], &files.notify) &&
        (write(socket, &files, sizeof(files)) == (ssize_t)sizeof(files))) {
        (void)!read(socket, &byte, sizeof(byte)); /* until the parent ends */
    }
    _exit(0);
}

void st_fake_fork(void)
{
    char path[64];
    int fds[2];
    int fd;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
        return;
    }
    if (fork() == 0) {
        close(fds[0]);
        fake_child(fds[1]);
    }
    close(fds[1]);
    fake_child_fd = fds[0]; /* stays open */
    if (read(fds[0], &fake_files, sizeof(fake_files)) !=
        (ssize_t)sizeof(fake_files)) {
        return;
    }
    snprintf(path, sizeof(path), "/proc/%u/fd/%u", fake_files.segment.pid,
             fake_files.segment.fd);
    fd          = open(path, O_RDWR | O_CLOEXEC);
    fake_memory = mmap(NULL, ST_FAKE_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED,
                       fd, 0);
    close(fd);
}

uint8_t *st_fake_memory(void)
{
    return fake_memory;
}

/* What follows a control message is offers */
static void fake_hear_bind(st_fake_t *fake, const uint8_t *data, size_t length)
{
    const ucp_st_ctrl_offer_t *offer;
    size_t offset;

    ++fake->num_binds;
    for (offset = sizeof(ucp_st_ctrl_op_t); offset < length;
         offset += sizeof(*offer) + offer->length) {
        offer = (const ucp_st_ctrl_offer_t*)(data + offset);
        if (offer->lane == UCP_ST_LANE_DIRECT) {
            memcpy(&fake->blob, offer + 1, sizeof(fake->blob));
        }
    }
}

static ucs_status_t fake_am_handler(void *arg, const void *header,
                                    size_t length, void *data,
                                    size_t data_length,
                                    const ucp_am_recv_param_t *param)
{
    st_fake_t *fake      = arg;
    const uint8_t *bytes = header;
    size_t offset;
    const ucp_st_ctrl_hdr_t *hdr;

    for (offset = sizeof(ucp_st_frame_t); offset < length;
         offset += hdr->length) {
        hdr = (const ucp_st_ctrl_hdr_t*)(bytes + offset);
        if (hdr->type == UCP_ST_CTRL_MATCH) {
            memcpy(&fake->match, hdr, sizeof(fake->match));
            ++fake->num_matches;
        } else if (hdr->type == UCP_ST_CTRL_BIND) {
            fake_hear_bind(fake, bytes + offset, hdr->length);
        } else if ((hdr->type == UCP_ST_CTRL_UNMATCH) ||
                   (hdr->type == UCP_ST_CTRL_UNMATCH_ACK)) {
            ++fake->num_unmatches;
        }
    }
    return UCS_OK;
}

static ucs_status_t fake_rma_am_handler(void *arg, const void *header,
                                        size_t length, void *data,
                                        size_t data_length,
                                        const ucp_am_recv_param_t *param)
{
    st_fake_t *fake = arg;

    if (length == sizeof(fake->request)) {
        memcpy(&fake->request, header, sizeof(fake->request));
        ++fake->num_requests;
    }
    return UCS_OK;
}

static ucs_status_t fake_nothing_am_handler(void *arg, const void *header,
                                            size_t length, void *data,
                                            size_t data_length,
                                            const ucp_am_recv_param_t *param)
{
    return UCS_OK;
}

static void fake_listen(st_fake_t *fake, unsigned id, ucp_am_recv_callback_t cb)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id         = id,
        .flags      = UCP_AM_FLAG_WHOLE_MSG,
        .cb         = cb,
        .arg        = fake
    };

    CU_ASSERT_EQUAL(ucp_worker_set_am_recv_handler(fake->worker, &param),
                    UCS_OK);
}

/* The target's segment, mapped once more */
static void fake_map_target(st_fake_t *fake,
                            const ucp_st_direct_address_t *address)
{
    struct stat st;
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/self/fd/%u", address->segment.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    CU_ASSERT_FATAL((fd >= 0) && (fstat(fd, &st) == 0));
    fake->shared_length = (size_t)st.st_size;
    fake->shared        = mmap(NULL, fake->shared_length,
                               PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CU_ASSERT_FATAL(fake->shared != MAP_FAILED);
    close(fd);
}

/* A lane's part of an address; NULL if there is none */
static const ucp_st_address_lane_t *
fake_find_lane(const ucp_st_address_hdr_t *address, uint8_t lane)
{
    const uint8_t *p = (const uint8_t*)(address + 1) + address->ucp_length;
    const ucp_st_address_lane_t *head;
    unsigned i;

    for (i = 0; i < address->num_lanes; ++i) {
        head = (const ucp_st_address_lane_t*)p;
        if (head->lane == lane) {
            return head;
        }
        p += sizeof(*head) + head->length;
    }
    return NULL;
}

/* Make an endpoint to the target. One that it has closed has UCP drop what asks
 * for an answer over it. */
static void fake_connect(st_fake_t *fake)
{
    ucp_request_param_t close_param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE
    };
    ucp_ep_params_t params          = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .err_mode   = UCP_ERR_HANDLING_MODE_PEER /* as the target has it */
    };
    ucp_st_address_hdr_t *hdr       = NULL;
    const ucp_st_address_lane_t *lane;
    ucs_status_ptr_t request;
    size_t length;

    if (fake->ep != NULL) {
        request = ucp_ep_close_nbx(fake->ep, &close_param);
        while (UCS_PTR_IS_PTR(request) &&
               (ucp_request_check_status(request) == UCS_INPROGRESS)) {
            ucp_worker_progress(fake->worker);
        }
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
    }
    CU_ASSERT_EQUAL_FATAL(ucp_st_worker_get_address(fake->target->worker,
                                                    (void**)&hdr, &length),
                          UCS_OK);
    lane           = fake_find_lane(hdr, UCP_ST_PROTO_SERVICE);
    params.address = (const void*)(lane + 1);
    CU_ASSERT_EQUAL(ucp_ep_create(fake->worker, &params, &fake->ep), UCS_OK);
    ucp_st_worker_release_address(fake->target->worker, hdr);
}

static void fake_meet(st_fake_t *fake)
{
    ucp_st_address_hdr_t *hdr = NULL;
    const ucp_st_address_lane_t *lane;
    size_t length;

    CU_ASSERT_EQUAL_FATAL(ucp_st_worker_get_address(fake->target->worker,
                                                    (void**)&hdr, &length),
                          UCS_OK);
    fake->target_uuid = hdr->uuid;
    fake->place       = hdr->place;
    fake->place.pid   = fake_files.segment.pid;
    fake->place.start = 0;
    lane              = fake_find_lane(hdr, UCP_ST_LANE_DIRECT);
    if (lane != NULL) {
        fake_map_target(fake, (const ucp_st_direct_address_t*)(lane + 1));
    }
    ucp_st_worker_release_address(fake->target->worker, hdr);
}

void st_fake_init(st_fake_t *fake, st_side_t *target)
{
    ucp_params_t params               = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_AM
    };
    ucp_worker_params_t worker_params = {.field_mask = 0};

    ucp_config_t *config;
    unsigned id;

    CU_ASSERT_PTR_NOT_NULL_FATAL(fake_memory);
    memset(fake, 0, sizeof(*fake));
    fake->target = target;
    /* As the target has it */
    CU_ASSERT_EQUAL_FATAL(ucp_config_read(NULL, NULL, &config), UCS_OK);
    CU_ASSERT_EQUAL(ucp_config_modify(config, "MM_ERROR_HANDLING", "y"),
                    UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_init(&params, config, &fake->context), UCS_OK);
    ucp_config_release(config);
    CU_ASSERT_EQUAL_FATAL(ucp_worker_create(fake->context, &worker_params,
                                            &fake->worker), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_worker_get_address(fake->worker, &fake->address,
                                                 &fake->address_length),
                          UCS_OK);
    for (id = 0; id < UCP_ST_NET_AM_LAST; ++id) {
        fake_listen(fake, id, (id == UCP_ST_NET_AM_CTRL) ? fake_am_handler :
                              (id == UCP_ST_NET_AM_RMA) ?
                                      fake_rma_am_handler :
                                      fake_nothing_am_handler);
    }
    fake_meet(fake);
    fake_connect(fake);
    fake->uuid = 0xfa4e0000ul;
    st_fake_renew(fake);
}

void st_fake_cleanup(st_fake_t *fake)
{
    ucp_worker_release_address(fake->worker, fake->address);
    ucp_worker_destroy(fake->worker);
    ucp_cleanup(fake->context);
    if (fake->shared != NULL) {
        munmap(fake->shared, fake->shared_length);
    }
}

void st_fake_renew(st_fake_t *fake)
{
    ucp_st_direct_segment_t *segment = (ucp_st_direct_segment_t*)fake_memory;

    memset(fake_memory, 0, ST_FAKE_MEMORY);
    fake->is_new = 1;
    ++fake->uuid;
    fake->seq            = 0;
    fake->num_matches    = 0;
    fake->num_binds      = 0;
    fake->num_unmatches  = 0;
    fake->num_requests   = 0;
    segment->magic       = UCP_ST_DIRECT_MAGIC;
    segment->uuid        = fake->uuid;
}

static uint8_t *fake_add_lane(uint8_t *place, uint8_t lane, const void *data,
                              size_t length)
{
    ucp_st_address_lane_t head = {.lane = lane, .length = (uint16_t)length};

    memcpy(place, &head, sizeof(head));
    if (length > 0) {
        memcpy(place + sizeof(head), data, length);
    }
    return place + sizeof(head) + length;
}

/* The trig lane's part of a worker that there is */
static uint8_t *fake_add_trig(uint8_t *place, const st_side_t *like)
{
    ucp_st_address_hdr_t *hdr = NULL;
    const ucp_st_address_lane_t *lane;
    size_t length;

    CU_ASSERT_EQUAL_FATAL(ucp_st_worker_get_address(like->worker, (void**)&hdr,
                                                    &length), UCS_OK);
    lane = fake_find_lane(hdr, UCP_ST_LANE_TRIG);
    CU_ASSERT_PTR_NOT_NULL_FATAL(lane);
    place = fake_add_lane(place, UCP_ST_LANE_TRIG, lane + 1, lane->length);
    ucp_st_worker_release_address(like->worker, hdr);
    return place;
}

size_t st_fake_address(const st_fake_t *fake, ucp_st_lane_t lane,
                       const st_side_t *like, void *data)
{
    ucp_st_direct_address_t direct = {.segment = fake_files.segment,
                                      .notify  = fake_files.notify};
    ucp_st_address_hdr_t hdr       = {
        .magic      = UCP_ST_ADDRESS_MAGIC,
        .version    = UCP_ST_PROTO_VERSION,
        .ucp_length = (uint16_t)fake->address_length,
        .num_lanes  = 2,
        .uuid       = fake->uuid,
        .place      = fake->place
    };
    uint8_t *place                 = data;

    memcpy(place, &hdr, sizeof(hdr));
    memcpy(place + sizeof(hdr), fake->address, fake->address_length);
    place += sizeof(hdr) + fake->address_length;
    place  = fake_add_lane(place, UCP_ST_PROTO_SERVICE, fake->address,
                           fake->address_length);
    switch (lane) {
    case UCP_ST_LANE_DIRECT:
        place = fake_add_lane(place, lane, &direct, sizeof(direct));
        break;
    case UCP_ST_LANE_TRIG:
        place = fake_add_trig(place, like);
        break;
    default:
        place = fake_add_lane(place, lane, NULL, 0);
        break;
    }
    CU_ASSERT_FATAL((place - (uint8_t*)data) <= ST_FAR_ADDRESS);
    return (size_t)(place - (uint8_t*)data);
}

ucp_st_peer_h st_fake_peer(st_fake_t *fake, ucp_st_lane_t lane,
                           const st_side_t *like)
{
    static uint8_t address[ST_FAR_ADDRESS];
    ucp_st_peer_h peer = NULL;
    size_t length      = st_fake_address(fake, lane, like, address);

    CU_ASSERT_EQUAL_FATAL(ucp_st_peer_create(fake->target->worker, address,
                                             length, &peer), UCS_OK);
    return peer;
}

void st_fake_frame(st_fake_msg_t *frame)
{
    frame->length      = sizeof(ucp_st_frame_t);
    frame->data_length = 0;
    memset(frame->data, 0, frame->length);
}

void st_fake_add(st_fake_msg_t *frame, uint8_t type, const void *msg,
                 size_t length)
{
    uint8_t *place        = &frame->data[frame->length];
    ucp_st_ctrl_hdr_t hdr = {.type = type, .length = (uint16_t)length};

    memcpy(place, msg, length);
    memcpy(place, &hdr, sizeof(hdr));
    frame->length += length;
}

void st_fake_fix(st_fake_t *fake, st_fake_msg_t *frame)
{
    ucp_st_frame_t head = {
        .version = UCP_ST_PROTO_VERSION,
        .length  = (uint16_t)frame->length,
        .seq     = fake->seq++,
        .src     = fake->uuid,
        .dst     = fake->target_uuid
    };

    if (frame->length >= sizeof(head)) {
        memcpy(frame->data, &head, sizeof(head));
    }
}

void st_fake_answer(const st_fake_t *fake, ucp_st_lane_t lane,
                    ucp_st_ctrl_match_t *match)
{
    *match          = fake->match;
    match->op_id    = 77;
    match->dir      = !fake->match.dir;
    match->mode     = UCP_ST_MODE_STANDARD;
    match->lanes[0] = (uint8_t)lane;
    match->lanes[1] = 0;
}

void st_fake_blob(size_t length, ucp_st_direct_blob_t *blob)
{
    *blob = (ucp_st_direct_blob_t){
        .pair        = ST_FAKE_PAIR,
        .piece       = (length <= UCP_ST_DIRECT_INLINE) ? UCP_ST_DIRECT_INLINE :
                                                          (16ul << 10),
        .is_mappable = 1,
        .offset      = ST_FAKE_BUFFER,
        .attach_min  = UINT64_MAX,
        .file        = fake_files.segment
    };
}

/* Have the target's service thread look. Non-zero when it has since a round,
 * and has found nothing more. */
static int fake_is_settled(const st_fake_t *fake, uint64_t round)
{
    ucp_st_worker_h worker = fake->target->worker;
    int is_settled         = 0;

    ucp_st_worker_lock(worker);
    if (!ucp_st_net(worker)->is_awake) {
        is_settled = (ucp_st_net(worker)->round > (round + 1));
        ucp_st_net_wake(worker);
    }
    ucp_st_worker_unlock(worker);
    return is_settled;
}

void st_fake_progress(st_fake_t *fake)
{
    ucp_st_worker_h worker = fake->target->worker;
    int i                  = 0;
    uint64_t round;

    ucp_st_worker_lock(worker);
    round = ucp_st_net(worker)->round;
    ucp_st_worker_unlock(worker);
    do {
        ucp_worker_progress(fake->worker);
        ucp_st_worker_progress(worker);
        (void)sched_yield();
    } while ((++i < FAKE_ROUNDS) || !fake_is_settled(fake, round));
}

static ucs_status_t fake_send_once(st_fake_t *fake, unsigned id,
                                   const st_fake_msg_t *msg, unsigned flags)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags        = UCP_AM_SEND_FLAG_EAGER |
                                                 flags};
    ucs_status_ptr_t request;
    ucs_status_t status;

    request = ucp_am_send_nbx(fake->ep, id, msg->data, msg->length,
                              fake_memory, msg->data_length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        st_fake_progress(fake);
    }
    ucp_request_free(request);
    return status;
}

void st_fake_send_am(st_fake_t *fake, unsigned id, const st_fake_msg_t *msg)
{
    unsigned reply = (id == UCP_ST_NET_AM_RMA) ? UCP_AM_SEND_FLAG_REPLY : 0;

    if (fake->is_new && (reply != 0)) {
        fake_connect(fake);
        fake->is_new = 0;
    }
    /* The target may have closed its endpoint for an earlier fault, and UCX
     * with it what both had opened as one connection */
    if (fake_send_once(fake, id, msg, reply) != UCS_OK) {
        fake_connect(fake);
        CU_ASSERT_EQUAL(fake_send_once(fake, id, msg, reply), UCS_OK);
    }
    st_fake_progress(fake);
}

void st_fake_send(st_fake_t *fake, const st_fake_msg_t *frame)
{
    st_fake_send_am(fake, UCP_ST_NET_AM_CTRL, frame);
}

/* What the target has announced is here */
static void fake_await_match(st_fake_t *fake, ucp_st_op_h op)
{
    int i;

    CU_ASSERT_EQUAL(ucp_st_imatchall(&op, 1), UCS_OK);
    for (i = 0; (fake->num_matches == 0) && (i < FAKE_MAX_ROUNDS); ++i) {
        st_fake_progress(fake);
    }
    CU_ASSERT_EQUAL_FATAL(fake->num_matches, 1);
}

void st_fake_bind(st_fake_t *fake, ucp_st_op_h op, const st_fake_offer_t *offer,
                  st_fake_msg_t *frame)
{
    struct {
        ucp_st_ctrl_op_t    msg;
        ucp_st_ctrl_offer_t offer;
        uint8_t             data[UCP_ST_PROTO_MAX_BLOB];
    } __attribute__((packed)) bind = {.msg = {.src_op_id = 77}};
    ucp_st_ctrl_match_t match;

    fake_await_match(fake, op);
    st_fake_answer(fake, offer->lane, &match);
    bind.msg.op_id    = fake->match.op_id;
    bind.offer.lane   = (uint8_t)offer->lane;
    bind.offer.length = (uint16_t)offer->length;
    if (offer->length > 0) {
        memcpy(bind.data, offer->data, offer->length);
    }
    st_fake_frame(frame);
    st_fake_add(frame, UCP_ST_CTRL_MATCH, &match, sizeof(match));
    st_fake_add(frame, UCP_ST_CTRL_BIND, &bind,
                offsetof(__typeof__(bind), data) + offer->length);
}

ucs_status_t st_fake_match(st_fake_t *fake, ucp_st_op_h op,
                           const st_fake_offer_t *offer)
{
    st_fake_msg_t frame;
    ucs_status_t status;

    st_fake_bind(fake, op, offer, &frame);
    st_fake_fix(fake, &frame);
    st_fake_send(fake, &frame);
    do {
        st_fake_progress(fake);
        status = ucp_st_match_test(op);
    } while (status == UCS_INPROGRESS);
    return status;
}

void st_fake_unmatch(st_fake_t *fake, int32_t status)
{
    ucp_st_ctrl_op_t msg = {
        .op_id     = fake->match.op_id,
        .src_op_id = 77,
        .status    = status
    };
    unsigned before     = fake->num_unmatches;
    st_fake_msg_t frame;
    int i;

    st_fake_frame(&frame);
    st_fake_add(&frame, UCP_ST_CTRL_UNMATCH, &msg, sizeof(msg));
    st_fake_fix(fake, &frame);
    st_fake_send(fake, &frame);
    for (i = 0; (fake->num_unmatches == before) && (i < FAKE_ROUNDS); ++i) {
        st_fake_progress(fake);
    }
}

void st_fake_end(st_fake_t *fake)
{
    st_fake_msg_t frame;

    st_fake_frame(&frame);
    frame.data[frame.length++] = 0xff; /* no head of a message */
    st_fake_fix(fake, &frame);
    st_fake_send(fake, &frame);
}
