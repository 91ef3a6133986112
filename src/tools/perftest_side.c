/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_side.c - UCP worker, st worker, streams and queues of a side. */
#include "perftest_side.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Rounds without work before a host yields, and before it sleeps, so long. What
 * is measured shall find the host awake: later than ucs_backoff() does so */
#define PERFTEST_IDLE_SPINS    200
#define PERFTEST_IDLE_YIELDS   2000
#define PERFTEST_IDLE_SLEEP_NS 50000


void perftest_idle(unsigned idle)
{
    const struct timespec time = {.tv_nsec = PERFTEST_IDLE_SLEEP_NS};

    if (idle < PERFTEST_IDLE_SPINS) {
        return;
    }
    if (idle < PERFTEST_IDLE_YIELDS) {
        (void)sched_yield();
    } else {
        (void)nanosleep(&time, NULL);
    }
}

void perftest_side_progress(void *arg)
{
    perftest_side_t *side = arg;

    while (((side->st != NULL) ? ucp_st_worker_progress(side->st) :
                                 ucp_worker_progress(side->worker)) != 0) {
        /* all there is */
    }
}

static int perftest_is_gone(const perftest_side_t *side, ucs_status_t status)
{
    return (status == UCS_ERR_ENDPOINT_TIMEOUT) ||
           (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_CANCELED) ||
           (perftest_watch_gone(&side->watch) >= 0);
}

perftest_ret_t perftest_side_fail(const perftest_side_t *side,
                                  ucs_status_t status, perftest_ret_t otherwise,
                                  const char *format, ...)
{
    double gone = perftest_watch_gone(&side->watch);
    char what[256], when[64] = "";
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(what, sizeof(what), format, ap);
    va_end(ap);
    if (!perftest_is_gone(side, status)) {
        return perftest_fail(otherwise, "failed: %s (operation: %s)",
                             ucs_status_string(status), what);
    }
    if (gone >= 0) {
        (void)snprintf(when, sizeof(when), "; %.2f s after its end", gone);
    }
    return perftest_fail(PERFTEST_PEER, "peer failed: %s (operation: %s%s)",
                         ucs_status_string(status), what, when);
}

/* Channels of the st test that has most of them, each of which needs a stream;
 * 0 if there is none */
static unsigned perftest_side_num_channels(const perftest_side_t *side)
{
    const perftest_options_t *options = side->options;
    unsigned result                   = 0;
    const perftest_test_t *test;
    unsigned count;
    size_t i;

    for (i = 0; i < options->num_tests; ++i) {
        test   = &perftest_tests[options->tests[i]];
        count  = perftest_run_num_channels(side, test);
        result = (perftest_test_is_st(test) && (count > result)) ? count :
                                                                   result;
    }
    return result;
}

static perftest_ret_t perftest_side_ucp_init(perftest_side_t *side)
{
    ucp_params_t params               = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_AM
    };
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    ucp_config_t *config;
    ucs_status_t status;

    status = ucp_config_read(NULL, NULL, &config);
    if (status == UCS_OK) {
        status = ucp_init(&params, config, &side->context);
        ucp_config_release(config);
    }
    if (status != UCS_OK) {
        return perftest_fail(PERFTEST_REFUSED, "no UCP context: %s",
                             ucs_status_string(status));
    }
    status = ucp_worker_create(side->context, &worker_params, &side->worker);
    if (status != UCS_OK) {
        ucp_cleanup(side->context);
        return perftest_fail(PERFTEST_REFUSED, "no UCP worker: %s",
                             ucs_status_string(status));
    }
    return PERFTEST_OK;
}

static perftest_ret_t perftest_stream_init(perftest_side_t *side,
                                           perftest_stream_t *stream)
{
    ucs_gstream_params_t params        = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = side->options->stream
    };
    ucp_st_queue_params_t queue_params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };
    ucs_status_t status;

    status = ucs_gstream_create(&params, &stream->stream);
    if (status != UCS_OK) {
        goto err;
    }
    queue_params.stream = stream->stream;
    status              = ucp_st_queue_create(side->st, &queue_params,
                                              &stream->queue);
    if (status != UCS_OK) {
        goto err_stream;
    }
    (void)sem_init(&stream->pace, 0, 0);
    return PERFTEST_OK;

err_stream:
    (void)ucs_gstream_destroy(stream->stream);
err:
    return perftest_fail(PERFTEST_REFUSED, "no stream with a queue: %s",
                         ucs_status_string(status));
}

static perftest_ret_t perftest_streams_destroy(perftest_side_t *side)
{
    perftest_ret_t ret = PERFTEST_OK;
    perftest_stream_t *stream;
    ucs_status_t status;

    while (side->num_streams > 0) {
        stream = &side->streams[--side->num_streams];
        status = ucp_st_queue_destroy(stream->queue);
        if (status == UCS_OK) {
            status = ucs_gstream_destroy(stream->stream);
        }
        if (status != UCS_OK) {
            ret = perftest_fail(PERFTEST_BROKEN, "stream %u or its queue "
                                "cannot be destroyed: %s", side->num_streams,
                                ucs_status_string(status));
            continue;
        }
        (void)sem_destroy(&stream->pace);
    }
    free(side->streams);
    return ret;
}

static perftest_ret_t perftest_streams_create(perftest_side_t *side)
{
    unsigned count = perftest_side_num_channels(side);
    perftest_ret_t ret;

    side->num_streams = 0;
    side->streams     = calloc(count, sizeof(*side->streams));
    if (side->streams == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "no memory for streams");
    }
    while (side->num_streams < count) {
        ret = perftest_stream_init(side, &side->streams[side->num_streams]);
        if (ret != PERFTEST_OK) {
            (void)perftest_streams_destroy(side);
            return ret;
        }
        ++side->num_streams;
    }
    return PERFTEST_OK;
}

static perftest_ret_t perftest_side_st_init(perftest_side_t *side)
{
    ucp_st_worker_params_t params = {
        .field_mask = UCP_ST_WORKER_PARAM_FIELD_UCP_WORKER,
        .ucp_worker = side->worker
    };
    perftest_ret_t ret;
    ucs_status_t status;

    if (perftest_side_num_channels(side) == 0) {
        return PERFTEST_OK;
    }
    status = ucp_st_worker_create(&params, &side->st);
    if (status != UCS_OK) {
        return perftest_fail(PERFTEST_REFUSED, "no st worker: %s",
                             ucs_status_string(status));
    }
    ret = perftest_streams_create(side);
    if (ret != PERFTEST_OK) {
        (void)ucp_st_worker_destroy(side->st);
        side->st = NULL;
    }
    return ret;
}

static perftest_ret_t perftest_side_st_cleanup(perftest_side_t *side)
{
    perftest_ret_t ret;
    ucs_status_t status;

    if (side->st == NULL) {
        return PERFTEST_OK;
    }
    if (side->peer != NULL) {
        ucp_st_peer_destroy(side->peer);
    }
    ret    = perftest_streams_destroy(side);
    status = ucp_st_worker_destroy(side->st);
    if (status != UCS_OK) {
        ret = perftest_fail(PERFTEST_BROKEN, "the st worker cannot be "
                            "destroyed: %s", ucs_status_string(status));
    }
    side->st = NULL;
    return ret;
}

/* Sends both addresses in one message */
static perftest_ret_t perftest_side_send_address(perftest_side_t *side)
{
    void *st_address = NULL;
    size_t st_length = 0;
    perftest_msg_address_t *msg;
    ucp_address_t *address;
    perftest_ret_t ret;
    ucs_status_t status;
    size_t length;

    status = ucp_worker_get_address(side->worker, &address, &length);
    if (status != UCS_OK) {
        goto err;
    }
    if (side->st != NULL) {
        status = ucp_st_worker_get_address(side->st, &st_address, &st_length);
        if (status != UCS_OK) {
            goto err_address;
        }
    }
    msg = malloc(sizeof(*msg) + length + st_length);
    if (msg == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_st_address;
    }
    msg->ucp_length = htonl((uint32_t)length);
    msg->st_length  = htonl((uint32_t)st_length);
    memcpy(msg + 1, address, length);
    if (st_length > 0) {
        memcpy((char*)(msg + 1) + length, st_address, st_length);
    }
    ret = perftest_oob_send(&side->oob, PERFTEST_MSG_ADDRESS, msg,
                            sizeof(*msg) + length + st_length);
    free(msg);
    if (side->st != NULL) {
        ucp_st_worker_release_address(side->st, st_address);
    }
    ucp_worker_release_address(side->worker, address);
    return ret;

err_st_address:
    if (side->st != NULL) {
        ucp_st_worker_release_address(side->st, st_address);
    }
err_address:
    ucp_worker_release_address(side->worker, address);
err:
    return perftest_fail(PERFTEST_REFUSED, "no address: %s",
                         ucs_status_string(status));
}

static perftest_ret_t perftest_side_ep_create(perftest_side_t *side,
                                              const ucp_address_t *address)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = address
    };
    ucs_status_t status    = ucp_ep_create(side->worker, &params, &side->ep);

    if (status != UCS_OK) {
        side->ep = NULL;
        return perftest_fail(PERFTEST_REFUSED, "no UCP endpoint to the %s: %s",
                             side->oob.peer, ucs_status_string(status));
    }
    return PERFTEST_OK;
}

static perftest_ret_t perftest_side_use_address(perftest_side_t *side,
                                                const void *data, size_t length)
{
    const perftest_msg_address_t *msg = data;
    const char *address               = (const char*)(msg + 1);
    size_t ucp_length, st_length;
    perftest_ret_t ret;
    ucs_status_t status;

    ucp_length = (length < sizeof(*msg)) ? 0 : ntohl(msg->ucp_length);
    st_length  = (length < sizeof(*msg)) ? 0 : ntohl(msg->st_length);
    if ((ucp_length == 0) || ((st_length > 0) != (side->st != NULL)) ||
        (length != sizeof(*msg) + ucp_length + st_length)) {
        return perftest_fail(PERFTEST_REFUSED, "the %s's address is none",
                             side->oob.peer);
    }
    ret = perftest_side_ep_create(side, (const ucp_address_t*)address);
    if ((ret != PERFTEST_OK) || (side->st == NULL)) {
        return ret;
    }
    status = ucp_st_peer_create(side->st, address + ucp_length, st_length,
                                &side->peer);
    if (status != UCS_OK) {
        side->peer = NULL;
        return perftest_side_fail(side, status, PERFTEST_REFUSED,
                                  "connecting ucp_st to the %s",
                                  side->oob.peer);
    }
    return PERFTEST_OK;
}

static perftest_ret_t perftest_side_connect(perftest_side_t *side)
{
    uint64_t elapsed_ns = 0;
    uint64_t errors     = 0;
    perftest_ret_t ret;
    size_t length;
    void *data;

    ret = perftest_side_send_address(side);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    side->oob.progress = perftest_side_progress;
    side->oob.arg      = side;
    ret = perftest_oob_recv(&side->oob, PERFTEST_MSG_ADDRESS, &data, &length);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    ret = perftest_side_use_address(side, data, length);
    free(data);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    /* Neither begins, and may end, while the other one still connects */
    return perftest_oob_step(&side->oob, &elapsed_ns, &errors);
}

/* Without requests left, nothing of this waits for the other side */
static void perftest_side_ep_close(perftest_side_t *side)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    unsigned idle             = 0;
    ucs_status_ptr_t request;

    if ((side->ep == NULL) || (perftest_watch_gone(&side->watch) >= 0)) {
        return;
    }
    request = ucp_ep_close_nbx(side->ep, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        return;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        idle = (ucp_worker_progress(side->worker) != 0) ? 0 : idle + 1;
        perftest_idle(idle);
    }
    ucp_request_free(request);
}

perftest_ret_t perftest_side_create(perftest_side_t *side)
{
    perftest_ret_t ret;

    ret = perftest_side_ucp_init(side);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    ret = perftest_side_st_init(side);
    if (ret != PERFTEST_OK) {
        goto err_ucp;
    }
    ret = perftest_side_connect(side);
    if (ret != PERFTEST_OK) {
        goto err_st;
    }
    return PERFTEST_OK;

err_st:
    side->oob.progress = NULL;
    (void)perftest_side_st_cleanup(side);
err_ucp:
    ucp_worker_destroy(side->worker);
    ucp_cleanup(side->context);
    return ret;
}

perftest_ret_t perftest_side_destroy(perftest_side_t *side)
{
    perftest_ret_t ret;

    perftest_watch_set(&side->watch, "closing");
    side->oob.progress = NULL;
    ret                = perftest_side_st_cleanup(side);
    if (side->is_broken) {
        /* UCP never gives back what an endpoint without error handling waits
         * for; the end of the process does */
        return ret;
    }
    perftest_side_ep_close(side);
    ucp_worker_destroy(side->worker);
    ucp_cleanup(side->context);
    return ret;
}
