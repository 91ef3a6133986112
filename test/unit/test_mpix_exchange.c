/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpix_exchange.c - the messages by which processes of libmpix_queue tell
 * each other their addresses, as bad peers write them: by hand, and drawn at
 * random (fuzz_util.h). The readers alone are in the program; UCP, MPI and the
 * rest of the library are the program's own functions, which hand them one
 * message, and take the answer.
 */
#include "fuzz_util.h"
#include "st_cunit.h"

#include "binding/mpix_binding.h"
#include "binding/mpix_capture.h"
#include "binding/mpix_comm.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_leave.h"
#include "binding/mpix_peer.h"

#include <ucs_backoff.h>

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS 100 /* bytes */
#define REPLY   50
#define ROOM    512
#define CONTEXT 7
#define SENDER  1   /* rank, of the communicator and of MPI_COMM_WORLD */
#define OWN     2

/** A message of the peer that valid ones are made of. */
typedef struct {
    mpix_proto_address_t header;
    uint8_t              bytes[ADDRESS + REPLY];
} UCS_S_PACKED frame_t;

/** The one that is there. */
static struct {
    uint8_t  data[ROOM];
    size_t   length; /**< As MPI or UCP tells it */
    size_t   stored; /**< Of that, at `data` */
    uint64_t tag;    /**< What its sender says of rank and context */
    int      is_there;
    int      is_short; /**< It has more than there was room for */
} msg;

/** What the library did with it. */
static struct {
    unsigned             warnings;
    unsigned             answers;
    mpix_proto_address_t answer;
    uint64_t             tag; /**< Of the answer */
    uint64_t             key; /**< Tags of the library's messages */
    uint64_t             mask;
} told;

static const mpix_binding_t *binding;
static int is_late; /* MPI and UCP receive some time after they were asked */
static const mpix_exchange_msg_t *late;
static ucp_tag_recv_nbx_callback_t late_cb;

mpix_global_t mpix_global = {
    .lock       = PTHREAD_MUTEX_INITIALIZER,
    .world_rank = OWN
};

/* Bytes that the library was given, or reads, are in the message, behind its
 * header */
static void check_bytes(const void *bytes, size_t offset, size_t length)
{
    size_t at  = sizeof(mpix_proto_address_t) + offset;
    size_t end = at + length;

    CU_ASSERT_TRUE(length > 0);
    CU_ASSERT_TRUE_FATAL(!msg.is_short && (end <= msg.length));
    if (end <= msg.stored) {
        CU_ASSERT_EQUAL(memcmp(bytes, &msg.data[at], length), 0);
    }
}

/* The library's */

const mpix_binding_t *mpix_binding(void)
{
    return binding;
}

void mpix_warn(const char *fmt, ...)
{
    (void)fmt;
    ++told.warnings;
}

int mpix_fail(const char *func, int code, const char *fmt, ...)
{
    (void)func;
    (void)fmt;
    return code;
}

int mpix_comm_foreign_error(const char *func)
{
    (void)func;
    return MPI_ERR_COMM;
}

void mpix_global_set_pml_worker(ucp_worker_h worker)
{
    mpix_global.pml_worker = worker;
}

unsigned mpix_peer_progress(void)
{
    return binding->progress();
}

double mpix_now(void)
{
    return 0;
}

void ucs_backoff(unsigned *spins)
{
    ++*spins;
}

ucs_status_t mpix_capture_check(MPI_Comm self, MPI_Comm other,
                                ucp_worker_h *worker_p)
{
    (void)self;
    (void)other;
    (void)worker_p;
    return UCS_ERR_NO_ELEM;
}

ucs_status_t mpix_capture_peer(MPI_Comm comm, int rank, ucp_ep_h *ep_p,
                               uint64_t *context_p)
{
    (void)comm;
    (void)rank;
    (void)ep_p;
    (void)context_p;
    return UCS_ERR_NO_ELEM;
}

static void keep_answer(const void *buffer, size_t length)
{
    CU_ASSERT_EQUAL_FATAL(length, sizeof(told.answer));
    memcpy(&told.answer, buffer, length);
    ++told.answers;
}

static ucs_status_ptr_t real_send(ucp_ep_h ep, const void *buffer,
                                  size_t length, ucp_tag_t tag,
                                  const ucp_request_param_t *param)
{
    (void)ep;
    (void)param;
    keep_answer(buffer, length);
    told.tag = tag;
    return NULL;
}

mpix_real_t mpix_real = {
    .tag_send_nbx = real_send
};

/* The st worker's; all that it is given is the message's */

ucs_status_t ucp_st_peer_create(ucp_st_worker_h worker, const void *address,
                                size_t length, ucp_st_peer_h *peer_p)
{
    (void)worker;
    (void)peer_p;
    check_bytes(address, 0, length);
    return UCS_ERR_INVALID_ADDR;
}

void ucp_st_peer_destroy(ucp_st_peer_h peer)
{
    (void)peer;
}

ucs_status_t ucp_st_worker_leave(ucp_st_worker_h worker)
{
    (void)worker;
    return UCS_OK;
}

unsigned ucp_st_worker_progress(ucp_st_worker_h worker)
{
    (void)worker;
    return 0;
}

/* UCP's and MPI's */

/* Receives so many bytes; of those that only the length has, the last one */
static void receive(void *buffer, size_t count)
{
    uint8_t *bytes = buffer;

    msg.is_there = 0;
    msg.is_short = (count < msg.length);
    if (count > 0) {
        bytes[count - 1] = 0;
    }
    memcpy(bytes, msg.data, (count < msg.stored) ? count : msg.stored);
}

ucp_tag_message_h ucp_tag_probe_nb(ucp_worker_h worker, ucp_tag_t tag,
                                   ucp_tag_t tag_mask, int remove,
                                   ucp_tag_recv_info_t *info)
{
    (void)worker;
    (void)remove;
    told.key         = tag;
    told.mask        = tag_mask;
    info->length     = msg.length;
    info->sender_tag = (msg.tag & ~tag_mask) | tag;
    return msg.is_there ? (ucp_tag_message_h)&msg : NULL;
}

ucs_status_ptr_t
ucp_tag_msg_recv_nbx(ucp_worker_h worker, void *buffer, size_t count,
                     ucp_tag_message_h message,
                     const ucp_request_param_t *param)
{
    (void)worker;
    (void)message;
    receive(buffer, count);
    if (is_late) {
        late    = param->user_data;
        late_cb = param->cb.recv;
        return &msg;
    }
    return UCS_STATUS_PTR(msg.is_short ? UCS_ERR_MESSAGE_TRUNCATED : UCS_OK);
}

void ucp_request_free(void *request)
{
    CU_ASSERT_PTR_EQUAL(request, &msg);
}

/* UCP finds the end of an address itself */
ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params,
                           ucp_ep_h *ep_p)
{
    mpix_proto_address_t header;

    (void)worker;
    memcpy(&header, msg.data, sizeof(header));
    check_bytes(params->address, header.length, header.reply_length);
    *ep_p = NULL;
    return UCS_OK;
}

int PMPI_Improbe(int source, int tag, MPI_Comm comm, int *flag,
                 MPI_Message *message, MPI_Status *status)
{
    (void)source;
    (void)tag;
    (void)comm;
    *flag              = msg.is_there;
    msg.is_there       = 0;
    *message           = MPI_MESSAGE_NULL;
    status->MPI_SOURCE = SENDER;
    return MPI_SUCCESS;
}

int PMPI_Get_count(const MPI_Status *status, MPI_Datatype datatype, int *count)
{
    (void)status;
    (void)datatype;
    *count = (msg.length > INT_MAX) ? MPI_UNDEFINED : (int)msg.length;
    return MPI_SUCCESS;
}

int PMPI_Imrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message,
                MPI_Request *request)
{
    (void)type;
    (void)message;
    (void)request;
    /* OpenMPI 4.1 dies of a failure */
    CU_ASSERT_EQUAL_FATAL((size_t)count, msg.length);
    receive(buf, (size_t)count);
    return MPI_SUCCESS;
}

int PMPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest,
               int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)datatype;
    (void)tag;
    (void)comm;
    (void)request;
    CU_ASSERT_EQUAL(dest, SENDER);
    keep_answer(buf, (size_t)count);
    return MPI_SUCCESS;
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    (void)request;
    (void)status;
    *flag   = !is_late;
    is_late = 0;
    return MPI_SUCCESS;
}

/* The cases */

/* Make what a peer that is right sends; its length */
static size_t make(frame_t *frame)
{
    static const frame_t right = {
        .header = {
            .magic       = MPIX_PROTO_MAGIC,
            .version     = MPIX_PROTO_VERSION,
            .context     = CONTEXT,
            .world_rank  = SENDER,
            .source_rank = SENDER,
            .dest_rank   = OWN,
            .length      = ADDRESS
        }
    };
    size_t i;

    *frame = right;
    for (i = 0; i < sizeof(frame->bytes); ++i) {
        frame->bytes[i] = (uint8_t)i;
    }
    frame->header.reply_length = (binding == &mpix_binding_ucx) ? REPLY : 0;
    return sizeof(frame->header) + ADDRESS + frame->header.reply_length;
}

/* A message is there, and the library takes it out */
static void arrive(const void *data, size_t stored, size_t length)
{
    memset(&told, 0, sizeof(told));
    memcpy(msg.data, data, stored);
    msg.stored   = stored;
    msg.length   = length;
    msg.is_there = 1;
    mpix_lock();
    (void)binding->progress();
    (void)binding->progress();
    mpix_unlock();
    if (late != NULL) {
        late_cb(&msg, msg.is_short ? UCS_ERR_MESSAGE_TRUNCATED : UCS_OK, NULL,
                (void*)late);
        late    = NULL;
        is_late = 0;
    }
    CU_ASSERT_FALSE(msg.is_there);
}

/* What the peer behind a rank waits for: an address, which lies in the message,
 * or an error. UCS_INPROGRESS: it waits on. */
static ucs_status_t take(int rank, int world_rank)
{
    const void *address;
    mpix_exchange_in_t *in;
    ucs_status_t status;
    size_t length;

    mpix_lock();
    in = mpix_exchange_take(rank, CONTEXT, world_rank);
    mpix_unlock();
    if (in == NULL) {
        return UCS_INPROGRESS;
    }
    status = mpix_exchange_in_address(in, &address, &length);
    if (status == UCS_OK) {
        check_bytes(address, 0, length);
    } else {
        CU_ASSERT_TRUE(UCS_STATUS_IS_ERR(status));
    }
    mpix_exchange_in_free(in);
    return status;
}

static ucs_status_t arrive_and_take(const void *data, size_t length)
{
    arrive(data, length, length);
    return take(SENDER, SENDER);
}

/* The same in MPI_Finalize: answers, which only the library's kind of messages
 * are. The second call sends what the first one has queued. */
static unsigned leave(void)
{
    mpix_lock();
    mpix_leave_progress();
    mpix_leave_progress();
    mpix_unlock();
    if (told.answers > 0) {
        CU_ASSERT_EQUAL(told.answers, 1);
        CU_ASSERT_EQUAL(told.answer.magic, MPIX_PROTO_MAGIC);
        CU_ASSERT_EQUAL(told.answer.version, MPIX_PROTO_VERSION);
        CU_ASSERT_EQUAL(told.answer.length, 0);
        CU_ASSERT_EQUAL(told.answer.reply_length, 0);
        CU_ASSERT_EQUAL(told.tag & told.mask, told.key);
    }
    return told.answers;
}

static void use(const mpix_binding_t *used)
{
    static const uint8_t own[1] = {0};

    binding                    = used;
    msg.tag                    = ((uint64_t)SENDER << MPIX_TAG_RANK_SHIFT) |
                                 CONTEXT;
    mpix_global.address        = (void*)own;
    mpix_global.address_length = sizeof(own);
    mpix_global.st_worker      = (ucp_st_worker_h)&msg; /* not looked at */
}

/* Valid messages, on both sides */
static void check_right(void)
{
    frame_t frame;
    size_t length = make(&frame);

    CU_ASSERT_EQUAL(arrive_and_take(&frame, length), UCS_OK);
    arrive(&frame, length, length);
    CU_ASSERT_EQUAL(leave(), 1);
    CU_ASSERT_EQUAL(told.answer.context, CONTEXT);
    CU_ASSERT_EQUAL(told.answer.source_rank, OWN);
    CU_ASSERT_EQUAL(told.answer.dest_rank, SENDER);
    frame.header.length = frame.header.reply_length = 0;
    CU_ASSERT_EQUAL(arrive_and_take(&frame, sizeof(frame.header)),
                    UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(told.warnings, 0);
}

static void check_lengths(void)
{
    static const uint32_t numbers[] = {
        0, 1, ADDRESS - 1, ADDRESS + 1, INT32_MAX, 0x80000000u,
        UINT32_MAX - ADDRESS, UINT32_MAX
    };
    uint8_t longer[sizeof(frame_t) + 8] = {0};
    frame_t frame, changed;
    size_t i, length                    = make(&frame);

    for (i = 0; i < length; ++i) {
        CU_ASSERT_EQUAL(arrive_and_take(&frame, i), UCS_ERR_INVALID_ADDR);
    }
    memcpy(longer, &frame, length);
    for (i = length + 1; i <= (length + 8); ++i) {
        CU_ASSERT_EQUAL(arrive_and_take(longer, i), UCS_ERR_INVALID_ADDR);
    }
    for (i = 0; i < ST_CUNIT_COUNT(numbers); ++i) {
        changed               = frame;
        changed.header.length = numbers[i];
        CU_ASSERT_EQUAL(arrive_and_take(&changed, length),
                        UCS_ERR_INVALID_ADDR);
        changed.header.length        = ADDRESS;
        changed.header.reply_length += 1 + numbers[i];
        if (changed.header.reply_length != frame.header.reply_length) {
            CU_ASSERT_EQUAL(arrive_and_take(&changed, length),
                            UCS_ERR_INVALID_ADDR);
        }
        arrive(&changed, length, length);
        (void)leave();
    }
}

/* What the sender says that no memory has: its request fails */
static void check_long(void)
{
    static const uint64_t lengths[] = {
        (64ul << 20), INT32_MAX, UINT32_MAX, 1ull << 40, INT64_MAX,
        UINT64_MAX - 64, UINT64_MAX - 8, UINT64_MAX
    };
    frame_t frame;
    size_t i, length = make(&frame);

    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        is_late = (i & 1);
        arrive(&frame, length, lengths[i]);
        CU_ASSERT_EQUAL(take(SENDER, SENDER), UCS_ERR_INVALID_ADDR);
        arrive(&frame, length, lengths[i]);
        CU_ASSERT_EQUAL(leave(), 0);
    }
}

/* Of another version nothing but the version is known: where its sender's rank
 * is, above all */
static void check_version(void)
{
    frame_t frame;
    size_t length = make(&frame);

    frame.header.version    = MPIX_PROTO_VERSION + 1;
    frame.header.world_rank = SENDER + 1;
    CU_ASSERT_EQUAL(arrive_and_take(&frame, length), UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(arrive_and_take(&frame, 2 * sizeof(uint32_t)),
                    UCS_ERR_UNSUPPORTED);
    frame.header.version = MPIX_PROTO_VERSION;
    frame.header.magic   = ~MPIX_PROTO_MAGIC;
    CU_ASSERT_EQUAL(arrive_and_take(&frame, length), UCS_ERR_INVALID_ADDR);
}

/* Ranks that are none: nobody is answered by what is no message of the
 * library's */
static void check_ranks(void)
{
    static const int32_t ranks[] = {-1, INT32_MIN, INT32_MAX,
                                    (int32_t)MPIX_TAG_FIELD_MASK + 1};
    frame_t frame;
    size_t i, length             = make(&frame);

    for (i = 0; i < ST_CUNIT_COUNT(ranks); ++i) {
        (void)make(&frame);
        frame.header.dest_rank = ranks[i];
        arrive(&frame, length, length);
        CU_ASSERT_EQUAL(leave(),
                        (binding == &mpix_binding_mpi) && (ranks[i] >= 0));
        (void)make(&frame);
        frame.header.context = (uint64_t)ranks[i];
        arrive(&frame, length, length);
        CU_ASSERT_EQUAL(leave(), (binding == &mpix_binding_mpi));
        (void)make(&frame);
        frame.header.source_rank = -1 - (int32_t)i;
        CU_ASSERT_EQUAL(arrive_and_take(&frame, length), UCS_ERR_INVALID_ADDR);
    }
}

/* A message without what an answer needs has none, and there is one line of
 * it */
static void check_no_reply(void)
{
    frame_t frame;
    size_t length;

    (void)make(&frame);
    frame.header.reply_length = 0;
    length                    = sizeof(frame.header) + ADDRESS;
    CU_ASSERT_EQUAL(arrive_and_take(&frame, length), UCS_OK);
    arrive(&frame, length, length);
    CU_ASSERT_EQUAL(leave(), (binding == &mpix_binding_mpi));
    CU_ASSERT_EQUAL(told.warnings, (binding == &mpix_binding_ucx));
}

static void check_bad(const mpix_binding_t *used)
{
    use(used);
    check_right();
    check_lengths();
    check_long();
    check_version();
    check_ranks();
    check_no_reply();
    check_right();
}

ST_CASE_CALL(bad_ucx, check_bad(&mpix_binding_ucx))
ST_CASE_CALL(bad_mpi, check_bad(&mpix_binding_mpi))

/* Whatever comes, a message is taken, or dropped, and the next one is right */
static void check_random(const mpix_binding_t *used)
{
    uint8_t data[ROOM];
    fuzz_input_t input = {.data = data, .room = sizeof(data)};
    unsigned addresses = 0, answers = 0;
    frame_t frame;
    size_t length;
    fuzz_t fuzz;

    use(used);
    length = make(&frame);
    fuzz_begin(&fuzz, 10000);
    while (fuzz_next(&fuzz)) {
        fuzz_set(&input, &frame, length);
        if (fuzz_random(&fuzz, 4) == 0) {
            fuzz_splice(&fuzz, &input, &frame, length);
        }
        fuzz_mutate(&fuzz, &input);
        msg.tag = fuzz_random(&fuzz, 4) ? msg.tag : fuzz_number(&fuzz);
        is_late = (int)fuzz_random(&fuzz, 2);
        arrive(data, input.length,
               fuzz_random(&fuzz, 64) ? input.length :
                                        (fuzz_number(&fuzz) | ROOM));
        if (fuzz_random(&fuzz, 2)) {
            addresses += (take(SENDER, fuzz_random(&fuzz, 2) ? SENDER : -1) ==
                          UCS_OK);
        }
        answers += leave();
        use(used);
        check_right();
    }
    printf("%u addresses, %u answers\n", addresses, answers);
}

ST_CASE_CALL(random_ucx, check_random(&mpix_binding_ucx))
ST_CASE_CALL(random_mpi, check_random(&mpix_binding_mpi))

ST_SUITE("mpix_exchange")
