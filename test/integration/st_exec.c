/* SPDX-License-Identifier: BSD-3-Clause */
/* st_exec.c - runs a rank's part of a program. */
#include "st_exec.h"
#include "st_bytes.h"
#include "st_place.h"

#include <stdio.h>
#include <stdlib.h>

#define ST_EXEC_WORK 3000 /* Rounds of a computation */


struct st_exec;

/** A function of a stream. */
typedef struct {
    struct st_exec *exec;
    unsigned       step;
    unsigned       use; /* From 1 */
} st_exec_work_t;

typedef struct {
    ucp_st_op_h op;      /* NULL: of another rank, or freed */
    st_place_t  place;
    unsigned    started; /* By the host */
    ucp_st_req_h req;    /* Of a FIFO: its use, until that is waited for */
} st_exec_op_t;

typedef struct st_exec {
    st_rank_t            *me;
    const st_prog_t      *prog;
    const st_prog_rank_t *part;
    ucp_st_queue_h       queues[ST_PROG_MAX_QUEUES];
    st_exec_op_t         ops[ST_PROG_MAX_OPS];
    ucp_st_exchange_h    exchanges[ST_PROG_MAX_OPS + 1]; /* By number */
    st_exec_work_t       work[ST_PROG_MAX_STEPS];
} st_exec_t;


static int st_exec_is_own(const st_exec_t *exec, int op)
{
    return st_prog_rank_of(exec->prog, op) == exec->me->index;
}

static int st_exec_is_once(const st_exec_t *exec, int op)
{
    return exec->prog->msgs[ST_PROG_MSG(op)].is_once;
}

/* Bytes of an operation's buffer, without its guard */
static size_t st_exec_space(const st_exec_t *exec, int op)
{
    const st_prog_msg_t *msg = &exec->prog->msgs[ST_PROG_MSG(op)];

    return ST_PROG_IS_RECV(op) ? msg->space : msg->length;
}

static uint64_t st_exec_payload(const st_exec_t *exec, int op, unsigned use)
{
    return st_bytes_mix(exec->prog->seed,
                        (uint64_t)ST_PROG_MSG(op) * 1000 + use);
}

/* Say which byte of which use is wrong, and where it was looked at */
static void st_exec_fail(const st_exec_t *exec, unsigned step, unsigned use,
                         size_t at, const char *what)
{
    char text[128];

    st_prog_step_text(exec->prog, exec->me->index, step, text, sizeof(text));
    st_rank_fail(exec->me, "program %lu, %s (use %u): byte %zu %s",
                 exec->prog->seed, text, use, at, what);
}

static void st_exec_check(const st_exec_t *exec, unsigned step, unsigned use)
{
    int op                   = exec->part->steps[step].ops[0];
    const st_prog_msg_t *msg = &exec->prog->msgs[ST_PROG_MSG(op)];
    uint8_t *buffer          = exec->ops[op].place.host;
    size_t at;

    at = st_bytes_check(buffer, msg->length, st_exec_payload(exec, op, use));
    if (at != ST_BYTES_NONE) {
        st_exec_fail(exec, step, use, at, "is wrong");
    }
    at = st_bytes_check_poison(buffer,
                               ST_PROG_IS_RECV(op) ? msg->length :
                                                     st_exec_space(exec, op),
                               st_exec_space(exec, op) + ST_BYTES_GUARD);
    if (at != ST_BYTES_NONE) {
        st_exec_fail(exec, step, use, at, "was written, behind the message");
    }
}

/* What a function does; by a stream, or by the host */
static void st_exec_function(const st_exec_t *exec, unsigned step, unsigned use)
{
    const st_step_t *s = &exec->part->steps[step];
    int op             = s->ops[0];
    uint8_t *buffer    = exec->ops[op].place.host;
    size_t length      = exec->prog->msgs[ST_PROG_MSG(op)].length;
    size_t at;

    switch (s->type) {
    case ST_STEP_FILL:
    case ST_STEP_HOST_FILL:
        st_bytes_fill(buffer, length, st_exec_payload(exec, op, use));
        break;
    case ST_STEP_SPOIL:
        st_bytes_poison(buffer, length);
        break;
    case ST_STEP_READ:
        st_exec_check(exec, step, use);
        break;
    case ST_STEP_CLEAN:
        at = st_bytes_check_poison(buffer, 0, st_exec_space(exec, op) +
                                              ST_BYTES_GUARD);
        if (at != ST_BYTES_NONE) {
            st_exec_fail(exec, step, use, at, "was written before the start");
        }
        break;
    default:
        st_exec_check(exec, step, use);
        st_bytes_poison(buffer, length);
        break;
    }
}

static void st_exec_compute(void)
{
    volatile uint64_t x = 1;
    unsigned i;

    for (i = 0; i < ST_EXEC_WORK; ++i) {
        x = x * 3 + i;
    }
}

static void st_exec_kernel(void *arg)
{
    const st_exec_work_t *work = arg;

    if (work->exec->part->steps[work->step].type == ST_STEP_WORK) {
        st_exec_compute();
    } else {
        st_exec_function(work->exec, work->step, work->use);
    }
}

/* The use that a function is about */
static unsigned st_exec_use(const st_exec_t *exec, const st_step_t *step)
{
    int is_next = (step->type == ST_STEP_FILL) ||
                  (step->type == ST_STEP_CLEAN) ||
                  (step->type == ST_STEP_HOST_FILL);

    return (step->count == 0) ? 0 :
           exec->ops[step->ops[0]].started + (unsigned)is_next;
}

/* Copies the buffer of a step's operation, if it has one */
static void st_exec_place(const st_exec_t *exec, const st_step_t *step,
                          ucs_status_t (*copy)(const st_place_t *place))
{
    if (step->count > 0) {
        ST_OK(exec->me, copy(&exec->ops[step->ops[0]].place));
    }
}

static void st_exec_launch(st_exec_t *exec, unsigned index)
{
    const st_step_t *step = &exec->part->steps[index];
    st_exec_work_t *work  = &exec->work[index];
    ucs_gstream_h stream  = st_rank_stream(exec->me,
                                           exec->part->stream[step->queue]);

    work->exec = exec;
    work->step = index;
    work->use  = st_exec_use(exec, step);
    if (step->count > 0) {
        ST_OK(exec->me, st_place_load(&exec->ops[step->ops[0]].place, stream));
    }
    ST_OK(exec->me, ucs_gstream_enqueue_func(stream, st_exec_kernel, work));
    if (step->count > 0) {
        ST_OK(exec->me, st_place_store(&exec->ops[step->ops[0]].place, stream));
    }
}

/* Those of a step that are matched; how many */
static unsigned st_exec_get_ops(const st_exec_t *exec, const st_step_t *step,
                                ucp_st_op_h *ops)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < step->count; ++i) {
        if (!st_exec_is_once(exec, step->ops[i])) {
            ops[count++] = exec->ops[step->ops[i]].op;
        }
    }
    return count;
}

/* The next use of one of a FIFO: the number of its message is its tag */
static void st_exec_once_enqueue(st_exec_t *exec, int op, ucp_st_queue_h queue)
{
    const st_prog_msg_t *msg   = &exec->prog->msgs[ST_PROG_MSG(op)];
    int is_recv                = ST_PROG_IS_RECV(op);
    ucp_st_msg_params_t params = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER |
                      UCP_ST_MSG_PARAM_FIELD_TAG | UCP_ST_MSG_PARAM_FIELD_SCOPE,
        .buffer     = st_place_buffer(&exec->ops[op].place),
        .length     = st_exec_space(exec, op),
        .peer       = exec->me->node.peers[msg->rank[!is_recv]],
        .tag        = ST_PROG_MSG(op),
        .scope      = exec->prog->seed
    };

    exec->me->node.has_fifos = 1;
    ST_OK(exec->me, (is_recv ? ucp_st_enqueue_recv : ucp_st_enqueue_send)(
                            queue, &params, &exec->ops[op].req));
}

/* Starts those of a step that are of FIFOs, or waits for their uses */
static void st_exec_once(st_exec_t *exec, const st_step_t *step)
{
    ucp_st_queue_h queue = exec->queues[step->queue];
    int is_start         = (step->type == ST_STEP_START);
    size_t count         = 0;
    ucp_st_req_h reqs[ST_PROG_MAX_BATCH];
    unsigned i;

    for (i = 0; i < step->count; ++i) {
        if (st_exec_is_once(exec, step->ops[i])) {
            if (is_start) {
                st_exec_once_enqueue(exec, step->ops[i], queue);
            }
            reqs[count++] = exec->ops[step->ops[i]].req;
        }
    }
    if (count == 0) {
        return;
    }
    ST_OK(exec->me, is_start ? ucp_st_enqueue_batch_start(queue) :
                               ucp_st_enqueue_req_waitall(queue, reqs, count));
    for (i = 0; !is_start && (i < count); ++i) {
        ST_OK(exec->me, ucp_st_req_free(reqs[i]));
    }
}

static void st_exec_enqueue(st_exec_t *exec, const st_step_t *step)
{
    ucp_st_queue_h queue = exec->queues[step->queue];
    int is_start         = (step->type == ST_STEP_START);
    int exchange         = exec->prog->exchange[step->ops[0]];
    ucp_st_op_h ops[ST_PROG_MAX_BATCH];
    unsigned count       = st_exec_get_ops(exec, step, ops);
    unsigned i;

    st_exec_once(exec, step);
    if (exchange != 0) {
        ST_OK(exec->me, (is_start ? ucp_st_enqueue_exchange_start :
                                    ucp_st_enqueue_exchange_wait)(
                                queue, exec->exchanges[exchange]));
    } else if (count > 1) {
        ST_OK(exec->me, (is_start ? ucp_st_enqueue_startall :
                                    ucp_st_enqueue_waitall)(queue, ops,
                                                            count));
    } else if (count > 0) {
        ST_OK(exec->me, (is_start ? ucp_st_enqueue_start :
                                    ucp_st_enqueue_wait)(queue, ops[0]));
    }
    for (i = 0; i < step->count; ++i) {
        exec->ops[step->ops[i]].started += (unsigned)is_start;
    }
}

static void st_exec_query(st_exec_t *exec, const st_step_t *step)
{
    ucs_status_t status;

    do {
        status = ucp_st_queue_query(exec->queues[step->queue], NULL);
        if (status == UCS_INPROGRESS) {
            st_rank_pause(exec->me);
        }
    } while (status == UCS_INPROGRESS);
    ST_OK(exec->me, status);
}

/* Matching goes on meanwhile: others may need it */
static void st_exec_sync(st_exec_t *exec, int number)
{
    ucs_gstream_h stream = st_rank_stream(exec->me, number);
    ucs_status_t status;

    while ((status = ucs_gstream_synchronize_timeout(stream, 1e-3)) ==
           UCS_INPROGRESS) {
        (void)ucp_st_worker_progress(exec->me->node.worker);
    }
    ST_OK(exec->me, status);
}

/* Wait for an operation that was given to match; its outcome */
static ucs_status_t st_exec_matched(st_exec_t *exec, int op)
{
    ucs_status_t status;

    while ((status = ucp_st_match_test(exec->ops[op].op)) == UCS_INPROGRESS) {
        st_rank_pause(exec->me);
    }
    return status;
}

static void st_exec_check_end(st_exec_t *exec, int op)
{
    const st_prog_msg_t *msg = &exec->prog->msgs[ST_PROG_MSG(op)];
    ucp_st_op_attr_t attr;

    if (exec->ops[op].op == NULL) {
        return;
    }
    ST_OK(exec->me, ucp_st_op_query(exec->ops[op].op, &attr));
    ST_OK(exec->me, attr.status);
    ST_CHECK(exec->me, attr.started == msg->uses);
    ST_CHECK(exec->me, attr.completed == msg->uses);
    ST_CHECK(exec->me, attr.length == msg->length);
}

/* What is of an exchange is freed with it */
static void st_exec_free(st_exec_t *exec, int op)
{
    if ((exec->prog->exchange[op] == 0) && !st_exec_is_once(exec, op)) {
        ST_OK(exec->me, ucp_st_op_free(exec->ops[op].op));
    }
    exec->ops[op].op = NULL;
}

/* A step of the host itself */
static void st_exec_host(st_exec_t *exec, unsigned index)
{
    const st_step_t *step = &exec->part->steps[index];

    switch (step->type) {
    case ST_STEP_MATCH:
        ST_OK(exec->me, ucp_st_imatchall(&exec->ops[step->ops[0]].op, 1));
        break;
    case ST_STEP_MATCHED:
        ST_OK(exec->me, st_exec_matched(exec, step->ops[0]));
        break;
    case ST_STEP_HOST_FILL:
    case ST_STEP_HOST_CHECK:
        st_exec_place(exec, step, st_place_empty);
        st_exec_function(exec, index, st_exec_use(exec, step));
        st_exec_place(exec, step, st_place_fill);
        break;
    case ST_STEP_HOST_WORK:
        st_exec_compute();
        break;
    case ST_STEP_HOST_WAIT:
        ST_OK(exec->me, ucp_st_queue_wait(exec->queues[step->queue], NULL));
        break;
    case ST_STEP_HOST_QUERY:
        st_exec_query(exec, step);
        break;
    case ST_STEP_HOST_SYNC:
        st_exec_sync(exec, exec->part->stream[step->queue]);
        break;
    case ST_STEP_FREE:
        st_exec_check_end(exec, step->ops[0]);
        st_exec_free(exec, step->ops[0]);
        break;
    default:
        (void)ucp_st_worker_progress(exec->me->node.worker);
        break;
    }
}

static void st_exec_step(st_exec_t *exec, unsigned index)
{
    const st_step_t *step = &exec->part->steps[index];
    char text[128];

    st_prog_step_text(exec->prog, exec->me->index, index, text, sizeof(text));
    st_rank_at(exec->me, "program %lu, %s", exec->prog->seed, text);
    if ((step->type == ST_STEP_START) || (step->type == ST_STEP_WAIT)) {
        st_exec_enqueue(exec, step);
    } else if (st_step_is_command(step)) {
        st_exec_launch(exec, index);
    } else {
        st_exec_host(exec, index);
    }
}

static void st_exec_op_init(st_exec_t *exec, int op)
{
    const st_prog_msg_t *msg  = &exec->prog->msgs[ST_PROG_MSG(op)];
    const st_node_t *node     = &exec->me->node;
    size_t space              = st_exec_space(exec, op);
    int is_recv               = ST_PROG_IS_RECV(op);
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG |
                      UCP_ST_OP_PARAM_FIELD_SCOPE | UCP_ST_OP_PARAM_FIELD_MODE,
        .length     = space,
        .peer       = node->peers[msg->rank[!is_recv]],
        .tag        = msg->tag,
        .scope      = msg->scope,
        .mode       = msg->is_ready ? UCP_ST_MODE_READY : UCP_ST_MODE_STANDARD
    };

    ST_OK(exec->me, st_place_get(&exec->ops[op].place, space +
                                                       ST_BYTES_GUARD));
    st_bytes_poison(exec->ops[op].place.host, exec->ops[op].place.length);
    ST_OK(exec->me, st_place_fill(&exec->ops[op].place));
    params.buffer = st_place_buffer(&exec->ops[op].place);
    if (msg->is_once) {
        return; /* Each use is made when it is started */
    }
    ST_OK(exec->me, (is_recv ? ucp_st_recv_init : ucp_st_send_init)(
                            node->worker, &params, &exec->ops[op].op));
}

/* The exchanges of this rank */
static void st_exec_join(st_exec_t *exec)
{
    const st_prog_t *prog = exec->prog;
    ucp_st_op_h ops[ST_PROG_MAX_OPS];
    size_t count;
    int i, op;

    for (i = 1; i <= ST_PROG_MAX_OPS; ++i) {
        count = 0;
        for (op = 0; op < 2 * prog->num_msgs; ++op) {
            if ((prog->exchange[op] == i) && st_exec_is_own(exec, op)) {
                ops[count++] = exec->ops[op].op;
            }
        }
        if (count > 0) {
            ST_OK(exec->me, ucp_st_exchange_create(exec->me->node.worker, ops,
                                                   count,
                                                   prog->is_coupled[i] ?
                                                   UCP_ST_EXCHANGE_FLAG_COUPLED
                                                   : 0, &exec->exchanges[i]));
        }
    }
}

static st_exec_t *st_exec_create(st_rank_t *me, const st_prog_t *prog)
{
    st_exec_t *exec = calloc(1, sizeof(*exec));
    int i;

    ST_CHECK(me, exec != NULL);
    exec->me   = me;
    exec->prog = prog;
    exec->part = &prog->ranks[me->index];
    st_rank_at(me, "making operations of program %lu", prog->seed);
    for (i = 0; i < exec->part->num_queues; ++i) {
        exec->queues[i] = st_rank_queue(me, &me->node, exec->part->stream[i]);
    }
    for (i = 0; i < 2 * prog->num_msgs; ++i) {
        if (st_exec_is_own(exec, i)) {
            st_exec_op_init(exec, i);
        }
    }
    st_exec_join(exec);
    me->program = exec;
    return exec;
}

/* The outcome of those that were given to match in one call */
static unsigned st_exec_count_laneless(st_exec_t *exec,
                                       const ucs_status_t *statuses,
                                       unsigned count)
{
    unsigned laneless = 0;
    unsigned i;

    for (i = 0; i < count; ++i) {
        if (statuses[i] == UCS_ERR_NO_RESOURCE) {
            ++laneless;
        } else {
            ST_OK(exec->me, statuses[i]);
        }
    }
    return laneless;
}

/* Match all that is not matched by steps; how many found no lane */
static unsigned st_exec_match(st_exec_t *exec)
{
    const st_prog_rank_t *part = exec->part;
    ucp_st_op_h ops[ST_PROG_MAX_OPS];
    ucs_status_t statuses[ST_PROG_MAX_OPS] = {UCS_OK};
    uint8_t matched[ST_PROG_MAX_OPS];
    unsigned count = 0;
    unsigned i, part_size;

    st_rank_at(exec->me, "matching of program %lu", exec->prog->seed);
    for (i = 0; i < part->num_match; ++i) {
        if (exec->ops[part->match[i]].op != NULL) {
            matched[count] = part->match[i];
            ops[count++]   = exec->ops[part->match[i]].op;
        }
    }
    if (part->match_part == 0) {
        (void)ucp_st_matchall(ops, count, statuses);
        return st_exec_count_laneless(exec, statuses, count);
    }
    for (i = 0; i < count; i += part_size) {
        part_size = count - i;
        part_size = (part_size > part->match_part) ? part->match_part :
                                                     part_size;
        ST_OK(exec->me, ucp_st_imatchall(ops + i, part_size));
    }
    for (i = 0; i < count; ++i) {
        statuses[i] = st_exec_matched(exec, matched[i]);
    }
    return st_exec_count_laneless(exec, statuses, count);
}

/* Zero if not all ranks of the group have all lanes that they need */
static int st_exec_match_together(st_exec_t *exec, st_exec_shared_t *shared)
{
    unsigned laneless = st_exec_match(exec);

    if (shared == NULL) {
        if (laneless > 0) {
            st_rank_fail(exec->me, "%u operations found no lane", laneless);
        }
        return 1;
    }
    __atomic_add_fetch(&shared->no_lane, laneless, __ATOMIC_ACQ_REL);
    st_rank_barrier(exec->me);
    return __atomic_load_n(&shared->no_lane, __ATOMIC_ACQUIRE) == 0;
}

static void st_exec_count(const st_exec_t *exec, st_exec_counts_t *counts)
{
    const st_prog_msg_t *msg;
    ucp_st_op_attr_t attr;
    int i;

    for (i = 0; i < 2 * exec->prog->num_msgs; ++i) {
        msg = &exec->prog->msgs[ST_PROG_MSG(i)];
        if (!st_exec_is_own(exec, i) ||
            ((exec->ops[i].op == NULL) && !msg->is_once)) {
            continue;
        }
        if (!msg->is_once) {
            ST_OK(exec->me, ucp_st_op_query(exec->ops[i].op, &attr));
            counts->host += (attr.lane != UCP_ST_LANE_TRIG);
        }
        if (ST_PROG_IS_RECV(i)) {
            counts->uses  += msg->uses;
            counts->bytes += (uint64_t)msg->uses * msg->length;
        }
    }
}

static void st_exec_run_steps(st_exec_t *exec)
{
    unsigned i;

    for (i = 0; i < exec->part->num_steps; ++i) {
        st_exec_step(exec, i);
    }
    st_rank_at(exec->me, "the end of program %lu", exec->prog->seed);
    for (i = 0; i < exec->part->num_queues; ++i) {
        ST_OK(exec->me, ucp_st_queue_wait(exec->queues[i], NULL));
    }
    for (i = 0; i < exec->part->num_streams; ++i) {
        st_exec_sync(exec, (int)i);
    }
}

static void st_exec_destroy(st_exec_t *exec, int was_run)
{
    int i;

    exec->me->program = NULL;
    for (i = 0; i < 2 * exec->prog->num_msgs; ++i) {
        if (exec->ops[i].op != NULL) {
            if (was_run) {
                st_exec_check_end(exec, i);
            }
            st_exec_free(exec, i);
        }
    }
    for (i = 1; i <= ST_PROG_MAX_OPS; ++i) {
        if (exec->exchanges[i] != NULL) {
            ST_OK(exec->me, ucp_st_exchange_free(exec->exchanges[i]));
        }
    }
    for (i = 0; i < exec->part->num_queues; ++i) {
        ST_OK(exec->me, ucp_st_queue_destroy(exec->queues[i]));
    }
    for (i = 0; i < 2 * exec->prog->num_msgs; ++i) {
        st_place_put(&exec->ops[i].place);
    }
    free(exec);
}

int st_exec_run(st_rank_t *me, const st_prog_t *prog, st_exec_shared_t *shared,
                st_exec_counts_t *counts)
{
    st_exec_t *exec = st_exec_create(me, prog);
    int was_run     = st_exec_match_together(exec, shared);

    if (was_run) {
        st_exec_run_steps(exec);
        st_exec_count(exec, counts);
    }
    st_exec_destroy(exec, was_run);
    return was_run;
}

void st_exec_report(st_rank_t *me)
{
    const st_exec_t *exec = me->program;
    ucp_st_op_attr_t attr;
    int i;

    if (exec == NULL) {
        return;
    }
    for (i = 0; i < 2 * exec->prog->num_msgs; ++i) {
        if ((exec->ops[i].op != NULL) &&
            (ucp_st_op_query(exec->ops[i].op, &attr) == UCS_OK) &&
            ((attr.started > attr.completed) || (attr.status != UCS_OK))) {
            printf("  rank %d: %c%d: %lu of %lu started uses are complete, on "
                   "lane %d: %s\n", me->index, ST_PROG_IS_RECV(i) ? 'r' : 's',
                   ST_PROG_MSG(i), attr.completed, attr.started, attr.lane,
                   ucs_status_string(attr.status));
        }
    }
}
