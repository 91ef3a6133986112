/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patterns_run.c - carries out the steps of a plan.
 *
 * Variant mpi is driven by the host: it posts receives, synchronises with the
 * stream and sends; receives are double-buffered, as the stream may still
 * unpack the last ones. A sum is MPI_Iallreduce.
 *
 * st enqueues everything: messages of an exchange are a coupled exchange of
 * MPIX. st-ready starts receives a use ahead, into two sets of requests and
 * buffers.
 * For each exchange by itself holds the proof in faces_st.c: a rank receives
 * from each to which it sends.
 */
#include "patterns.h"



static int pt_is_mpi(const pt_plan_t *plan)
{
    return plan->variant == BENCH_VARIANT_MPI;
}

static int pt_is_ready(const pt_plan_t *plan)
{
    return plan->variant == BENCH_VARIANT_READY;
}

static void pt_room(int count, int most)
{
    if (count >= most) {
        bench_check(MPI_ERR_COUNT, "a plan of so many steps");
    }
}

void pt_add(pt_plan_t *plan, pt_what_t what, void *arg)
{
    pt_room(plan->num_steps, PT_MAX_STEPS);
    plan->steps[plan->num_steps++] = (pt_step_t){.what = what, .arg = arg};
}

void pt_add_kernel(pt_plan_t *plan, MPIX_Host_func kernel, void *arg)
{
    pt_add(plan, PT_KERNEL, arg);
    plan->steps[plan->num_steps - 1].kernel = kernel;
}

pt_exchange_t *pt_add_exchange(pt_plan_t *plan, int num)
{
    pt_exchange_t *exchange = &plan->exchanges[plan->num_exchanges];
    int set;

    pt_room(plan->num_exchanges, PT_MAX_EXCHANGES);
    exchange->number   = plan->num_exchanges++;
    exchange->num      = num;
    exchange->num_sets = 1;
    exchange->messages = bench_alloc(num * sizeof(*exchange->messages));
    for (set = 0; set < PT_SETS; ++set) {
        exchange->requests[set] = bench_alloc(2 * num * sizeof(MPI_Request));
    }
    return exchange;
}

pt_sum_t *pt_add_sum(pt_plan_t *plan, const pt_sum_t *sum)
{
    pt_room(plan->num_sums, PT_MAX_SUMS);
    plan->sums[plan->num_sums] = *sum;
    return &plan->sums[plan->num_sums++];
}

void pt_set_message(pt_exchange_t *exchange, int i, int peer, size_t length)
{
    pt_message_t *message = &exchange->messages[i];
    int set;

    message->peer   = peer;
    message->length = length;
    message->out    = bench_alloc(length);
    for (set = 0; set < PT_SETS; ++set) {
        message->in[set] = bench_alloc(length);
    }
}

void pt_set_sides(pt_exchange_t *exchange, int first,
                  const pt_options_t *opts, int dim, size_t length)
{
    int i;

    for (i = 0; i < 2; ++i) {
        pt_set_message(exchange, first + i,
                       bench_box_neighbour(opts->grid, opts->rank, 2 * dim + i,
                                           1), length);
        exchange->messages[first + i].tag      = first + i;
        exchange->messages[first + i].back_tag = first + !i;
    }
}

static int pt_tag(const pt_exchange_t *exchange, int set, int tag)
{
    return (exchange->number * PT_SETS + set) * PT_TAGS + tag;
}

static void pt_init_set(const pt_plan_t *plan, pt_exchange_t *exchange, int set)
{
    const bench_send_init_t send_init = pt_is_ready(plan) ? MPI_Rsend_init :
                                                            MPI_Send_init;
    MPI_Request *requests             = exchange->requests[set];
    const pt_message_t *message;
    int i;

    for (i = 0; i < exchange->num; ++i) {
        message = &exchange->messages[i];
        bench_check(MPI_Recv_init(message->in[set], (int)message->length,
                                  MPI_BYTE, message->peer,
                                  pt_tag(exchange, set, message->back_tag),
                                  plan->comm, &requests[i]),
                    "MPI_Recv_init");
        bench_check(send_init(message->out, (int)message->length, MPI_BYTE,
                              message->peer,
                              pt_tag(exchange, set, message->tag),
                              plan->comm, &requests[exchange->num + i]),
                    "send init");
    }
    if (pt_is_ready(plan)) {
        bench_exchange_init(exchange->num, requests, &exchange->all[set]);
        bench_exchange_init(exchange->num, &requests[exchange->num],
                            &exchange->sends[set]);
    } else {
        bench_exchange_init(2 * exchange->num, requests, &exchange->all[set]);
    }
}

static void pt_init_sum(const pt_plan_t *plan, pt_sum_t *sum)
{
    bench_check(MPIX_Allreduce_init(sum->part, sum->sum, sum->count, sum->type,
                                    MPI_SUM, plan->comm, MPI_INFO_NULL,
                                    &sum->request), "MPIX_Allreduce_init");
}

void pt_init(pt_plan_t *plan)
{
    MPI_Request all[2 * PT_SETS * PT_MAX_EXCHANGES + PT_MAX_SUMS];
    int num_sets = pt_is_ready(plan) ? PT_SETS : 1;
    int count    = 0;
    pt_exchange_t *exchange;
    int i, set;

    for (i = 0; i < plan->num_exchanges; ++i) {
        exchange           = &plan->exchanges[i];
        exchange->num_sets = pt_is_mpi(plan) ? PT_SETS : (unsigned)num_sets;
        for (set = 0; set < PT_SETS; ++set) {
            exchange->all[set]   = MPI_REQUEST_NULL;
            exchange->sends[set] = MPI_REQUEST_NULL;
        }
    }
    if (pt_is_mpi(plan)) {
        return;
    }
    bench_check(MPIX_Queue_init(MPIX_QUEUE_HOST, plan->stream, &plan->queue),
                "MPIX_Queue_init");
    for (i = 0; i < plan->num_exchanges; ++i) {
        exchange = &plan->exchanges[i];
        for (set = 0; (set < num_sets) && (exchange->num > 0); ++set) {
            pt_init_set(plan, exchange, set);
            all[count++] = exchange->all[set];
            all[count++] = exchange->sends[set];
        }
    }
    for (i = 0; i < plan->num_sums; ++i) {
        pt_init_sum(plan, &plan->sums[i]);
        all[count++] = plan->sums[i].request;
    }
    bench_matchall(count, all);
}

void pt_cleanup(pt_plan_t *plan)
{
    pt_exchange_t *exchange;
    int i, set;

    if (pt_is_mpi(plan)) {
        return;
    }
    for (i = 0; i < plan->num_exchanges; ++i) {
        exchange = &plan->exchanges[i];
        bench_freeall(PT_SETS, exchange->all);
        bench_freeall(PT_SETS, exchange->sends);
        for (set = 0; (set < (int)exchange->num_sets) && (exchange->num > 0);
             ++set) {
            bench_freeall(2 * exchange->num, exchange->requests[set]);
        }
    }
    for (i = 0; i < plan->num_sums; ++i) {
        bench_freeall(1, &plan->sums[i].request);
    }
    bench_check(MPIX_Queue_free(&plan->queue), "MPIX_Queue_free");
}

static void pt_synchronize(pt_plan_t *plan)
{
    bench_check(MPIX_Host_stream_synchronize(plan->stream),
                "MPIX_Host_stream_synchronize");
}

void pt_prepare(pt_plan_t *plan, int count)
{
    pt_exchange_t *exchange;
    int i, k;

    for (i = 0; i < plan->num_exchanges; ++i) {
        exchange          = &plan->exchanges[i];
        exchange->taken   = 0;
        exchange->started = 0;
        exchange->total   = 0;
        for (k = 0; k < plan->num_steps; ++k) {
            exchange->total += (unsigned)count *
                               ((plan->steps[k].what == PT_EXCHANGE) &&
                                (plan->steps[k].arg == exchange));
        }
        if (pt_is_ready(plan) && (exchange->num > 0)) {
            bench_startall(plan->queue, 1, &exchange->all[0]);
        }
    }
    pt_synchronize(plan);
}

static void pt_exchange_mpi(pt_plan_t *plan, pt_exchange_t *exchange, int set)
{
    MPI_Request *requests = exchange->requests[0];
    const pt_message_t *message;
    size_t length;
    int i;

    for (i = 0; i < exchange->num; ++i) {
        message = &exchange->messages[i];
        bench_check(MPI_Irecv(message->in[set], (int)message->length, MPI_BYTE,
                              message->peer,
                              pt_tag(exchange, 0, message->back_tag),
                              plan->comm, &requests[i]), "MPI_Irecv");
    }
    pt_synchronize(plan);
    for (i = 0; i < exchange->num; ++i) {
        message = &exchange->messages[i];
        length  = exchange->varies ? *(const uint64_t*)message->out :
                                     message->length;
        bench_check(MPI_Isend(message->out, (int)length, MPI_BYTE,
                              message->peer, pt_tag(exchange, 0, message->tag),
                              plan->comm, &requests[exchange->num + i]),
                    "MPI_Isend");
    }
    bench_check(MPI_Waitall(2 * exchange->num, requests, MPI_STATUSES_IGNORE),
                "MPI_Waitall");
}

static void pt_exchange_st(pt_plan_t *plan, pt_exchange_t *exchange, int set)
{
    MPI_Request *next = &exchange->all[exchange->started % exchange->num_sets];

    if (pt_is_ready(plan)) {
        if (exchange->started < exchange->total) {
            bench_startall(plan->queue, 1, next);
        }
        bench_startall(plan->queue, 1, &exchange->sends[set]);
        bench_waitall(plan->queue, 1, &exchange->sends[set]);
    } else {
        bench_startall(plan->queue, 1, &exchange->all[set]);
    }
    bench_waitall(plan->queue, 1, &exchange->all[set]);
    plan->messages += exchange->num;
}

static void pt_exchange(pt_plan_t *plan, pt_exchange_t *exchange)
{
    const int set = (int)(exchange->started++ % exchange->num_sets);

    if (pt_is_mpi(plan)) {
        pt_exchange_mpi(plan, exchange, set);
    } else if (exchange->num > 0) {
        pt_exchange_st(plan, exchange, set);
    }
}

static void pt_sum_start(pt_plan_t *plan, pt_sum_t *sum)
{
    if (pt_is_mpi(plan)) {
        pt_synchronize(plan);
        bench_check(MPI_Iallreduce(sum->part, sum->sum, sum->count, sum->type,
                                   MPI_SUM, plan->comm, &sum->request),
                    "MPI_Iallreduce");
    } else {
        bench_startall(plan->queue, 1, &sum->request);
    }
}

static void pt_sum_wait(pt_plan_t *plan, pt_sum_t *sum)
{
    if (pt_is_mpi(plan)) {
        bench_check(MPI_Wait(&sum->request, MPI_STATUS_IGNORE), "MPI_Wait");
    } else {
        bench_waitall(plan->queue, 1, &sum->request);
    }
}

/* Returns the index of the next one. */
static int pt_step(pt_plan_t *plan, int i)
{
    const pt_step_t *step = &plan->steps[i];

    switch (step->what) {
    case PT_KERNEL:
        bench_check(MPIX_Host_stream_launch(plan->stream, step->kernel,
                                            step->arg),
                    "MPIX_Host_stream_launch");
        break;
    case PT_EXCHANGE:
        pt_exchange(plan, step->arg);
        break;
    case PT_SUM_START:
        pt_sum_start(plan, step->arg);
        break;
    case PT_SUM_WAIT:
        pt_sum_wait(plan, step->arg);
        break;
    case PT_AGAIN:
        pt_synchronize(plan);
        return (*(const uint64_t*)step->arg != 0) ? 1 : (i + 1);
    }
    return i + 1;
}

void pt_run(pt_plan_t *plan, int count)
{
    int iter, i;

    for (iter = 0; iter < count; ++iter) {
        for (i = 0; i < plan->num_steps;) {
            i = pt_step(plan, i);
        }
    }
    if (!pt_is_mpi(plan)) {
        bench_check(MPIX_Queue_wait(plan->queue), "MPIX_Queue_wait");
    }
    pt_synchronize(plan);
}
