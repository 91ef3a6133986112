/* SPDX-License-Identifier: BSD-3-Clause */
/* st_prog.c - programs as data, and as text. */
#include "st_prog.h"

#include <stdio.h>


/** How a step is shown. */
typedef struct {
    const char *name;
    int        has_queue;
} st_step_name_t;

static const st_step_name_t st_step_names[ST_STEP_LAST] = {
    [ST_STEP_MATCH]      = {"match", 0},
    [ST_STEP_MATCHED]    = {"until matched", 0},
    [ST_STEP_START]      = {"start", 1},
    [ST_STEP_WAIT]       = {"wait", 1},
    [ST_STEP_FILL]       = {"fill", 1},
    [ST_STEP_READ]       = {"read", 1},
    [ST_STEP_SPOIL]      = {"spoil", 1},
    [ST_STEP_CLEAN]      = {"is clean", 1},
    [ST_STEP_CHECK]      = {"check", 1},
    [ST_STEP_WORK]       = {"work", 1},
    [ST_STEP_HOST_FILL]  = {"host fill", 0},
    [ST_STEP_HOST_CHECK] = {"host check", 0},
    [ST_STEP_HOST_WORK]  = {"host work", 0},
    [ST_STEP_HOST_WAIT]  = {"host wait", 1},
    [ST_STEP_HOST_QUERY] = {"host query", 1},
    [ST_STEP_HOST_SYNC]  = {"host sync", 1},
    [ST_STEP_PROGRESS]   = {"progress", 0},
    [ST_STEP_FREE]       = {"free", 0}
};

int st_prog_rank_of(const st_prog_t *prog, int op)
{
    return prog->msgs[ST_PROG_MSG(op)].rank[ST_PROG_IS_RECV(op)];
}

int st_prog_waits_for(const st_prog_t *prog, int send, int other)
{
    int exchange = prog->exchange[send];

    return (exchange != 0) && prog->is_coupled[exchange] &&
           (prog->exchange[other] == exchange) && !ST_PROG_IS_RECV(other) &&
           !prog->msgs[ST_PROG_MSG(send)].is_ready &&
           !prog->msgs[ST_PROG_MSG(other)].is_ready;
}

st_step_t *st_prog_add(st_prog_t *prog, int rank, st_step_type_t type,
                       int queue)
{
    st_prog_rank_t *part = &prog->ranks[rank];
    st_step_t *step      = &part->steps[part->num_steps];

    if (part->num_steps == ST_PROG_MAX_STEPS) {
        return NULL;
    }
    ++part->num_steps;
    step->type  = (uint8_t)type;
    step->queue = (uint8_t)queue;
    step->count = 0;
    return step;
}

int st_prog_add_op(st_prog_t *prog, int rank, st_step_type_t type, int queue,
                   int op)
{
    st_step_t *step = st_prog_add(prog, rank, type, queue);

    if (step == NULL) {
        return 0;
    }
    if (op >= 0) {
        step->ops[step->count++] = (uint8_t)op;
    }
    return 1;
}

int st_step_is_command(const st_step_t *step)
{
    return (step->type >= ST_STEP_START) && (step->type <= ST_STEP_WORK);
}

void st_prog_step_text(const st_prog_t *prog, int rank, unsigned step,
                       char *text, size_t size)
{
    const st_step_t *s         = &prog->ranks[rank].steps[step];
    const st_step_name_t *name = &st_step_names[s->type];
    size_t length;
    unsigned i;

    length = (size_t)snprintf(text, size, "step %u: ", step);
    if (name->has_queue) {
        length += (size_t)snprintf(text + length, size - length, "Q%u.%u ",
                                   s->queue,
                                   prog->ranks[rank].stream[s->queue]);
    }
    length += (size_t)snprintf(text + length, size - length, "%s", name->name);
    for (i = 0; (i < s->count) && (length < size); ++i) {
        length += (size_t)snprintf(text + length, size - length, " %c%u",
                                   ST_PROG_IS_RECV(s->ops[i]) ? 'r' : 's',
                                   ST_PROG_MSG(s->ops[i]));
    }
}

static void st_prog_print_rank(const st_prog_t *prog, int rank)
{
    const st_prog_rank_t *part = &prog->ranks[rank];
    char text[128];
    unsigned i;

    printf("rank %d: %u streams, %u queues; match%s", rank, part->num_streams,
           part->num_queues, (part->match_part == 0) ? "all" : "");
    for (i = 0; i < part->num_match; ++i) {
        if ((i > 0) && (part->match_part > 0) &&
            ((i % part->match_part) == 0)) {
            printf(",");
        }
        printf(" %c%u", ST_PROG_IS_RECV(part->match[i]) ? 'r' : 's',
               ST_PROG_MSG(part->match[i]));
    }
    printf("\n");
    for (i = 0; i < part->num_steps; ++i) {
        st_prog_step_text(prog, rank, i, text, sizeof(text));
        printf("    %s\n", text);
    }
}

static void st_prog_print_exchanges(const st_prog_t *prog)
{
    int exchange, op, is_there;

    for (exchange = 1; exchange <= ST_PROG_MAX_OPS; ++exchange) {
        is_there = 0;
        for (op = 0; op < 2 * prog->num_msgs; ++op) {
            if (prog->exchange[op] == exchange) {
                if (!is_there) {
                    printf("%s of rank %d:", prog->is_coupled[exchange] ?
                           "coupled exchange" : "exchange",
                           st_prog_rank_of(prog, op));
                }
                is_there = 1;
                printf(" %c%d", ST_PROG_IS_RECV(op) ? 'r' : 's',
                       ST_PROG_MSG(op));
            }
        }
        if (is_there) {
            printf("\n");
        }
    }
}

void st_prog_print(const st_prog_t *prog)
{
    const st_prog_msg_t *msg;
    int i;

    printf("program %lu: %u ranks, %u messages; Q1.0 is queue 1, on stream 0; "
           "s2 is the send of message 2, r2 its receive\n", prog->seed,
           prog->num_ranks, prog->num_msgs);
    for (i = 0; i < prog->num_msgs; ++i) {
        msg = &prog->msgs[i];
        printf("message %d: %u -> %u, tag %u, scope %u, %u bytes for %u, %u "
               "uses%s%s\n", i, msg->rank[0], msg->rank[1], msg->tag,
               msg->scope, msg->length, msg->space, msg->uses,
               msg->is_ready ? ", ready" : "", msg->is_late ? ", late" :
               msg->is_once ? ", of a FIFO" : "");
    }
    st_prog_print_exchanges(prog);
    for (i = 0; i < prog->num_ranks; ++i) {
        st_prog_print_rank(prog, i);
    }
}
