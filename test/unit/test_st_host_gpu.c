/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_host_gpu.c - lane host where UCX copies memory of GPUs itself: it is
 * given the buffers as they are. Stand-ins for the runtimes, and this file's
 * functions in place of UCX's: Debian's has no transport of GPUs.
 */
#include "st_cunit.h"
#include "st_gpu.h"
#include "st_stream.h"

#include <ucs_gstream_memory.h>

#include <ucp/api/ucp.h>
#include <ucs/sys/math.h>
#include <uct/api/uct.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT  4096
#define EAGER  (66 << 10)
#define LENGTH (1 << 20)
#define USES   3

#define REAL(_name) ((__typeof__(&_name))dlsym(RTLD_NEXT, #_name))


/** What UCX is to copy through, in place of a device's memory. */
static uint8_t through[2][LENGTH];
static uint8_t host_bytes[LENGTH];

/** A receive that UCX has under way: whose callback that is, and where its data
 *  goes. Of the service thread. */
static struct {
    ucp_am_recv_data_nbx_callback_t cb;
    void                            *buffer;
} pending;

/** Calls with memory of a device, and sends that are to be eager. The service
 *  thread counts; read when the streams are done. */
static unsigned num_sends, num_recvs;
static int is_eager;

/** What the component is called. */
static const char *component_name = "self";


/* One of UCX's components is taken for its copies of a GPU's memory */
ucs_status_t uct_component_query(uct_component_h component,
                                 uct_component_attr_t *attr)
{
    ucs_status_t status = REAL(uct_component_query)(component, attr);

    if ((attr->field_mask & UCT_COMPONENT_ATTR_FIELD_NAME) &&
        !strcmp(attr->name, "self")) {
        snprintf(attr->name, sizeof(attr->name), "%s", component_name);
    }
    return status;
}

/* Runs with such a component; the settings are looked at when a pair is matched
 */
static void with_copies(gpu_t *gpu, gpu_body_t body)
{
    const char *tls = gpu->is_hip ? "posix,self,rocm_copy" :
                                    "posix,self,cuda_copy";
    char *before    = st_env_set("UCX_TLS", tls);

    component_name = gpu->is_hip ? "rocm_cpy" : "cuda_cpy";
    body(gpu);
    component_name = "self";
    st_env_restore("UCX_TLS", before);
}

static int is_device(const ucp_request_param_t *param)
{
    return (param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) &&
           (param->memory_type != UCS_MEMORY_TYPE_HOST);
}

/* A use ends before the next one begins: one place is enough */
ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header,
                                 size_t header_length, const void *buffer,
                                 size_t count, const ucp_request_param_t *param)
{
    ucp_request_param_t own = *param;

    if (is_device(param)) {
        ++num_sends;
        (void)ucs_gstream_memory_copy(through[0], buffer, count);
        buffer          = through[0];
        own.memory_type = UCS_MEMORY_TYPE_HOST;
    }
    if (count >= EAGER) { /* UCX's own limit depends on its version */
        own.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        own.flags         = is_eager ? UCP_AM_SEND_FLAG_EAGER :
                                       UCP_AM_SEND_FLAG_RNDV;
    }
    return REAL(ucp_am_send_nbx)(ep, id, header, header_length, buffer, count,
                                 &own);
}

static void received_cb(void *request, ucs_status_t status, size_t length,
                        void *arg)
{
    (void)ucs_gstream_memory_copy(pending.buffer, through[1], length);
    pending.cb(request, status, length, arg);
}

ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data,
                                      void *buffer, size_t count,
                                      const ucp_request_param_t *param)
{
    ucp_request_param_t own = *param;
    ucs_status_ptr_t request;

    if (!is_device(param)) {
        return REAL(ucp_am_recv_data_nbx)(worker, data, buffer, count, param);
    }
    ++num_recvs;
    pending.cb      = param->cb.recv_am;
    pending.buffer  = buffer;
    own.cb.recv_am  = received_cb;
    own.memory_type = UCS_MEMORY_TYPE_HOST;
    request         = REAL(ucp_am_recv_data_nbx)(worker, data, through[1],
                                                 count, &own);
    if (request == NULL) {
        (void)ucs_gstream_memory_copy(buffer, through[1], count);
    }
    return request;
}

/* Uses between two places; `is_near[i]` has it that one is on the host */
static void run_pair(gpu_t *gpu, size_t length, const int is_near[2])
{
    uint8_t *places[2];
    ucp_st_op_h op[2];
    uint64_t k;
    int i;

    num_sends = num_recvs = 0;
    for (i = 0; i < 2; ++i) {
        places[i] = is_near[i] ? malloc(length) : gpu_alloc(gpu, length);
    }
    op[ST_A] = st_send(&gpu->side[ST_A], places[ST_A], length, 0);
    op[ST_B] = st_recv(&gpu->side[ST_B], places[ST_B], length, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    for (k = 0; k < USES; ++k) {
        st_fill(host_bytes, length, k);
        CU_ASSERT_EQUAL(ucs_gstream_memory_copy(places[ST_A], host_bytes,
                                                length), UCS_OK);
        for (i = 0; i < 2; ++i) {
            st_use(&gpu->side[i], op[i]);
        }
        st_pair_sync(&gpu->pair);
        memset(host_bytes, 0, length);
        CU_ASSERT_EQUAL(ucs_gstream_memory_copy(host_bytes, places[ST_B],
                                                length), UCS_OK);
        CU_ASSERT_TRUE(st_check(host_bytes, length, k));
    }
    st_free2(op[ST_A], op[ST_B]);
    for (i = 0; i < 2; ++i) {
        if (is_near[i]) {
            free(places[i]);
        } else {
            gpu_free(gpu, places[i]);
        }
    }
}

/* Each side leaves its own buffer to UCX, whatever the other one has */
static void long_body(gpu_t *gpu)
{
    static const int cases[][2] = {{0, 0}, {0, 1}, {1, 0}};
    unsigned i;

    for (i = 0; i < ucs_static_array_size(cases); ++i) {
        run_pair(gpu, LENGTH, cases[i]);
        CU_ASSERT_EQUAL(num_sends, cases[i][0] ? 0 : USES);
        CU_ASSERT_EQUAL(num_recvs, cases[i][1] ? 0 : USES);
    }
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_A]).staged, 0);
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_B]).staged, 0);
}

static void run_long(gpu_t *gpu)
{
    with_copies(gpu, long_body);
}

GPU_CASES(long, "host", run_long)

/* What UCP has received in the host's memory is copied to the device */
static void eager_body(gpu_t *gpu)
{
    static const int both[2] = {0, 0};

    is_eager = 1;
    run_pair(gpu, EAGER, both);
    is_eager = 0;
    CU_ASSERT_EQUAL(num_sends, USES);
    CU_ASSERT_EQUAL(num_recvs, 0);
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_B]).staged, 0);
}

static void run_eager(gpu_t *gpu)
{
    with_copies(gpu, eager_body);
}

GPU_CASES(eager, "host", run_eager)

/* One message of this length is staged on each side */
static void check_staged(gpu_t *gpu, size_t length)
{
    static const int both[2] = {0, 0};

    run_pair(gpu, length, both);
    CU_ASSERT_EQUAL(num_sends + num_recvs, 0);
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_A]).staged, 1);
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_B]).staged, 1);
}

static void short_body(gpu_t *gpu)
{
    check_staged(gpu, SHORT);
}

static void run_short(gpu_t *gpu)
{
    with_copies(gpu, short_body);
}

GPU_CASES(short, "host", run_short)

/* UCX has no such component, as Debian's has none */
static void none_body(gpu_t *gpu)
{
    check_staged(gpu, LENGTH);
}

ST_CASE_CALL(none, gpu_run(0, "host", none_body))

/* The component is there, and UCX_TLS leaves it out */
static void run_not_allowed(gpu_t *gpu)
{
    component_name = "cuda_cpy";
    none_body(gpu);
    component_name = "self";
}

ST_CASE_CALL(not_allowed, gpu_run(0, "host", run_not_allowed))

static void off_body(gpu_t *gpu)
{
    with_copies(gpu, none_body);
}

static void run_off(void)
{
    char *before = st_env_set("UCX_ST_HOST_GPU_MIN", "inf");

    gpu_run(1, "host", off_body);
    st_env_restore("UCX_ST_HOST_GPU_MIN", before);
}

ST_CASE_CALL(off, run_off())

ST_SUITE("st_host_gpu")
