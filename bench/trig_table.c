/* SPDX-License-Identifier: BSD-3-Clause */
/* trig_table.c - rows that are measured in turns, and two processes. */
#include "trig_table.h"

#include <st_report.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>


int trig_pair_start(trig_pair_t *pair, const char *bench)
{
    trig_rank_t *me = &pair->me;

    memset(pair, 0, sizeof(*pair));
    me->page = mmap(NULL, sizeof(trig_page_t), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    me->user = malloc(TRIG_MAX_SIZE);
    if ((me->page == MAP_FAILED) || (me->user == NULL)) {
        perror(bench);
        return -1;
    }
    memset(me->user, 1, TRIG_MAX_SIZE);
    memset(me->page, 0, sizeof(trig_page_t));
    pair->child = fork();
    if (pair->child < 0) {
        perror(bench);
        return -1;
    }
    if (pair->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        me->rank = 1;
    }
    me->page->pid[me->rank]      = getpid();
    me->page->user[me->rank]     = (uintptr_t)me->user;
    me->page->verified[me->rank] = 1;
    return 0;
}

int trig_pair_end(trig_pair_t *pair, int status)
{
    int child = 0;

    free(pair->me.user);
    if (pair->me.rank == 0) {
        waitpid(pair->child, &child, 0);
    }
    return (child == 0) ? status : EXIT_FAILURE;
}

int trig_table_add(trig_table_t *table, const trig_row_t *row)
{
    trig_row_t *new = &table->rows[table->count];

    *new             = *row;
    new->num_samples = 0;
    return table->count++;
}

void trig_table_run(trig_table_t *table)
{
    trig_row_t *row;
    int trial, i;
    double us;

    /* The first trial warms up */
    for (trial = -1; trial < (int)table->trials; ++trial) {
        for (i = 0; i < table->count; ++i) {
            row = &table->rows[i];
            us  = row->run(row->arg, row);
            if ((trial >= 0) && (us >= 0)) {
                row->samples[row->num_samples++] = us;
            }
        }
    }
}

int trig_page_is_verified(const trig_page_t *page)
{
    return page->verified[0] && page->verified[1];
}

/* What the report says of a row, 0 if there is nothing to say */
static int trig_table_get(const trig_table_t *table, int index,
                          const trig_page_t *page, st_report_row_t *out)
{
    const trig_row_t *row  = &table->rows[index];
    const trig_row_t *base = (row->baseline < 0) ? NULL :
                             &table->rows[row->baseline];
    double samples[TRIG_TABLE_MAX_TRIALS];
    st_report_stats_t stats;

    if (row->num_samples == 0) {
        return 0;
    }
    memset(out, 0, sizeof(*out));
    out->size     = row->step.size;
    out->variant  = row->variant;
    out->setup_us = -1;
    out->verified = trig_page_is_verified(page);
    memcpy(samples, row->samples, sizeof(samples));
    st_report_stats_get(samples, row->num_samples, &out->time);
    if ((base != NULL) && (base->num_samples > 0)) {
        memcpy(samples, base->samples, sizeof(samples));
        st_report_stats_get(samples, base->num_samples, &stats);
        out->ratio = out->time.median / stats.median;
    }
    return 1;
}

void trig_table_print(const trig_table_t *table, const trig_page_t *page)
{
    st_report_row_t row;
    int i;

    printf("provider %s, %ld cores, load %.2f, %zu trials\n", table->provider,
           st_report_cores(), st_report_load(), table->trials);
    printf("%9s %-18s %10s %10s %10s %7s\n", "bytes", "variant", "median us",
           "min us", "max us", "ratio");
    for (i = 0; i < table->count; ++i) {
        if (!trig_table_get(table, i, page, &row)) {
            continue;
        }
        printf("%9zu %-18s %10.3f %10.3f %10.3f", row.size, row.variant,
               row.time.median, row.time.min, row.time.max);
        if (row.ratio > 0) {
            printf(" %7.3f", row.ratio);
        }
        printf("\n");
    }
}

int trig_table_json(const trig_table_t *table, const trig_page_t *page,
                    const char *more, const char *json)
{
    FILE *file        = st_report_open(json);
    const char *comma = "";
    st_report_row_t row;
    int i;

    if (file == NULL) {
        return -1;
    }
    fprintf(file, "{\"bench\":\"%s\",\"provider\":\"%s\","
            "\"stream\":\"host\",\"ranks\":2,"
            "\"cores\":%ld,\"load\":%.2f,\"trials\":%zu,%s\"rows\":[",
            table->bench, table->provider, st_report_cores(), st_report_load(),
            table->trials, more);
    for (i = 0; i < table->count; ++i) {
        if (trig_table_get(table, i, page, &row)) {
            fputs(comma, file);
            st_report_json_row(file, &row);
            comma = ",";
        }
    }
    fputs("\n]}\n", file);
    return st_report_close(file, json);
}
