/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_rma.c - one-sided tests: the client puts or gets and has its stream
 * wait until that is complete at the target, while the server looks on; or both
 * put with signals, which their streams wait for, in turns.
 */
#include "perftest_rma.h"
#include "perftest_st.h"

#include <stdlib.h>
#include <string.h>


/* One more key in a message of keys */
typedef struct perftest_rma_keys {
    char   *data;
    size_t length;
} perftest_rma_keys_t;


static ucs_status_t perftest_rma_reg(const perftest_st_flow_t *flow,
                                     const perftest_buffer_t *buffer,
                                     ucp_st_mem_h *memh_p)
{
    if (buffer == NULL) {
        return UCS_OK;
    }
    return ucp_st_mem_reg(flow->channel->run->side->st, buffer->data,
                          (buffer->size > 0) ? buffer->size : 1, memh_p);
}

static ucs_status_t perftest_rma_word_create(perftest_rma_t *rma)
{
    void *word = NULL;

    rma->is_mappable = (ucp_st_mem_alloc(sizeof(*rma->word), &word) == UCS_OK);
    if (!rma->is_mappable) {
        word = malloc(sizeof(*rma->word));
    }
    rma->word = word;
    if (word == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    *rma->word = 0;
    return UCS_OK;
}

ucs_status_t perftest_rma_create(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    int is_get                  = (channel->run->test->rma == PERFTEST_RMA_GET);
    perftest_rma_t *rma         = &flow->rma;
    ucs_status_t status;

    status = perftest_rma_reg(flow, is_get ? channel->recv : channel->send,
                              &rma->local);
    if (status == UCS_OK) {
        status = perftest_rma_reg(flow, is_get ? channel->send : channel->recv,
                                  &rma->shared);
    }
    if (status == UCS_OK) {
        status = perftest_rma_word_create(rma);
    }
    return (status != UCS_OK) ? status :
           ucp_st_mem_reg(channel->run->side->st, rma->word, sizeof(*rma->word),
                          &rma->signal);
}

/* The key of memory that there may be, behind its length */
static ucs_status_t perftest_rma_pack(ucp_st_mem_h memh,
                                      perftest_rma_keys_t *keys)
{
    ucs_status_t status = UCS_OK;
    void *key           = NULL;
    size_t length       = 0;
    char *data;

    if (memh != NULL) {
        status = ucp_st_rkey_pack(memh, &key, &length);
    }
    if (status != UCS_OK) {
        return status;
    }
    data = realloc(keys->data, keys->length + sizeof(length) + length);
    if (data != NULL) {
        memcpy(data + keys->length, &length, sizeof(length));
        if (length > 0) {
            memcpy(data + keys->length + sizeof(length), key, length);
        }
        keys->data    = data;
        keys->length += sizeof(length) + length;
    }
    ucp_st_rkey_buffer_release(key);
    return (data == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

/* The next key; none is legal */
static ucs_status_t perftest_rma_unpack(const perftest_run_t *run,
                                        perftest_rma_keys_t *keys,
                                        ucp_st_rkey_h *rkey_p)
{
    ucs_status_t status = UCS_OK;
    size_t length       = 0;

    if (keys->length < sizeof(length)) {
        return UCS_ERR_INVALID_ADDR;
    }
    memcpy(&length, keys->data, sizeof(length));
    keys->data   += sizeof(length);
    keys->length -= sizeof(length);
    if (length > keys->length) {
        return UCS_ERR_INVALID_ADDR;
    }
    if (length > 0) {
        status = ucp_st_rkey_unpack(run->side->peer, keys->data, length,
                                    rkey_p);
    }
    keys->data   += length;
    keys->length -= length;
    return status;
}

static ucs_status_t perftest_rma_pack_all(perftest_run_t *run,
                                          perftest_rma_keys_t *keys)
{
    ucs_status_t status = UCS_OK;
    perftest_rma_t *rma;
    unsigned i;

    for (i = 0; (i < run->num_channels) && (status == UCS_OK); ++i) {
        rma    = &perftest_st_flow(&run->channels[i])->rma;
        status = perftest_rma_pack(rma->shared, keys);
        if (status == UCS_OK) {
            status = perftest_rma_pack(rma->signal, keys);
        }
    }
    return status;
}

static ucs_status_t perftest_rma_unpack_all(perftest_run_t *run,
                                            perftest_rma_keys_t keys)
{
    ucs_status_t status = UCS_OK;
    perftest_rma_t *rma;
    unsigned i;

    for (i = 0; (i < run->num_channels) && (status == UCS_OK); ++i) {
        rma    = &perftest_st_flow(&run->channels[i])->rma;
        status = perftest_rma_unpack(run, &keys, &rma->far_shared);
        if (status == UCS_OK) {
            status = perftest_rma_unpack(run, &keys, &rma->far_signal);
        }
    }
    return status;
}

perftest_ret_t perftest_rma_connect(perftest_run_t *run)
{
    perftest_oob_t *oob        = &run->side->oob;
    perftest_rma_keys_t mine   = {.data = NULL};
    perftest_rma_keys_t theirs = {.data = NULL};
    ucs_status_t status        = perftest_rma_pack_all(run, &mine);
    perftest_ret_t ret         = PERFTEST_OK;
    void *data                 = NULL;

    if (status == UCS_OK) {
        ret = perftest_oob_send(oob, PERFTEST_MSG_KEYS, mine.data, mine.length);
        if (ret == PERFTEST_OK) {
            ret = perftest_oob_recv(oob, PERFTEST_MSG_KEYS, &data,
                                    &theirs.length);
        }
        theirs.data = data;
        if (ret == PERFTEST_OK) {
            status = perftest_rma_unpack_all(run, theirs);
        }
    }
    free(data);
    free(mine.data);
    return (status == UCS_OK) ? ret :
           perftest_side_fail(run->side, status, PERFTEST_REFUSED,
                              "keys of %s, %zu bytes", run->test->name,
                              run->size);
}

static void perftest_rma_key_destroy(ucp_st_rkey_h *rkey, ucs_status_t *result)
{
    ucs_status_t status = (*rkey == NULL) ? UCS_OK : ucp_st_rkey_destroy(*rkey);

    if (status == UCS_OK) {
        *rkey = NULL;
    } else {
        *result = status;
    }
}

/* On lane host the answer to the peer's last get may be under way for a moment
 * more; it is not waited for once the peer is gone */
static void perftest_rma_dereg(perftest_side_t *side, ucp_st_mem_h *memh,
                               ucs_status_t *result)
{
    ucs_status_t status = UCS_OK;

    if (*memh == NULL) {
        return;
    }
    while (((status = ucp_st_mem_dereg(*memh)) == UCS_ERR_BUSY) &&
           (perftest_watch_gone(&side->watch) < 0)) {
        perftest_side_progress(side);
    }
    if (status == UCS_OK) {
        *memh = NULL;
    } else {
        *result = status;
    }
}

ucs_status_t perftest_rma_destroy(perftest_st_flow_t *flow)
{
    perftest_side_t *side = flow->channel->run->side;
    perftest_rma_t *rma   = &flow->rma;
    ucs_status_t status   = UCS_OK;

    perftest_rma_key_destroy(&rma->far_shared, &status);
    perftest_rma_key_destroy(&rma->far_signal, &status);
    perftest_rma_dereg(side, &rma->local, &status);
    perftest_rma_dereg(side, &rma->shared, &status);
    perftest_rma_dereg(side, &rma->signal, &status);
    if ((status != UCS_OK) || (rma->word == NULL)) {
        return status;
    }
    if (rma->is_mappable) {
        (void)ucp_st_mem_free(rma->word);
    } else {
        free(rma->word);
    }
    rma->word = NULL;
    return UCS_OK;
}

static ucp_st_rma_params_t perftest_rma_params(const perftest_st_flow_t *flow)
{
    ucp_st_rma_params_t params = {
        .field_mask = UCP_ST_RMA_PARAM_FIELD_MEMH |
                      UCP_ST_RMA_PARAM_FIELD_LENGTH |
                      UCP_ST_RMA_PARAM_FIELD_RKEY,
        .memh       = flow->rma.local,
        .length     = flow->channel->run->size,
        .rkey       = flow->rma.far_shared
    };

    return params;
}

static ucs_status_t perftest_rma_put_signal(perftest_st_flow_t *flow,
                                            uint64_t value)
{
    ucp_st_rma_params_t params    = perftest_rma_params(flow);
    ucp_st_signal_params_t signal = {
        .field_mask = UCP_ST_SIGNAL_PARAM_FIELD_RKEY |
                      UCP_ST_SIGNAL_PARAM_FIELD_VALUE,
        .rkey       = flow->rma.far_signal,
        .value      = value
    };

    return ucp_st_enqueue_put_signal(flow->stream->queue, &params, &signal);
}

static ucs_status_t perftest_rma_wait_signal(perftest_st_flow_t *flow,
                                             uint64_t value)
{
    ucp_st_wait_signal_params_t params = {
        .field_mask = UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_VALUE |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_FLAGS,
        .memh       = flow->rma.signal,
        .value      = value,
        .peer       = flow->channel->run->side->peer,
        .flags      = UCP_ST_WAIT_SIGNAL_FLAG_OVERWRITE
    };

    return ucp_st_enqueue_wait_signal(flow->stream->queue, &params);
}

/* A ping-pong; the last round ends with a quiet, so that the memory is free */
static ucs_status_t perftest_rma_turn(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    int is_ping                 = (channel->role == PERFTEST_ROLE_PING);
    uint64_t value              = ++flow->rma.count;
    ucs_status_t status;

    status = is_ping ? perftest_rma_put_signal(flow, value) :
                       perftest_rma_wait_signal(flow, value);
    if (status == UCS_OK) {
        status = is_ping ? perftest_rma_wait_signal(flow, value) :
                           perftest_rma_put_signal(flow, value);
    }
    if ((status != UCS_OK) || (channel->next + 1 < channel->run->total)) {
        return status;
    }
    return ucp_st_enqueue_quiet(flow->stream->queue);
}

ucs_status_t perftest_rma_step(perftest_st_flow_t *flow)
{
    ucp_st_queue_h queue       = flow->stream->queue;
    ucp_st_rma_params_t params = perftest_rma_params(flow);
    perftest_rma_kind_t kind   = flow->channel->run->test->rma;
    ucs_status_t status;

    if (kind == PERFTEST_RMA_SIGNAL) {
        return perftest_rma_turn(flow);
    }
    if (flow->channel->run->side->is_server) {
        return UCS_OK;
    }
    status = (kind == PERFTEST_RMA_PUT) ? ucp_st_enqueue_put(queue, &params) :
                                          ucp_st_enqueue_get(queue, &params);
    return (status == UCS_OK) ? ucp_st_enqueue_quiet(queue) : status;
}

const char *perftest_rma_lane(const perftest_st_flow_t *flow)
{
    ucp_st_rkey_attr_t attr;

    if ((flow->rma.far_shared == NULL) ||
        (ucp_st_rkey_query(flow->rma.far_shared, &attr) != UCS_OK)) {
        return "none";
    }
    return perftest_st_lane_name(attr.lane);
}
