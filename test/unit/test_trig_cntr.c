/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trig_cntr.c - several counters at once, and words that follow one. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig_util.h"

/* More than are given to an emulated NIC at a time */
#define MANY 80


static uint64_t max_count(const trig_t *trig)
{
    uct_trig_iface_attr_t attr;

    CU_ASSERT_FATAL(uct_trig_iface_query(trig->pair.a.iface, &attr) == UCS_OK);
    return attr.max_count;
}

/* Counters of two interfaces in turns; what they trigger is carried out */
static void test_add_all(void)
{
    uct_trig_cntr_h cntrs[MANY];
    uint64_t values[MANY];
    ucs_status_t status;
    trig_t trig;
    unsigned i;

    CU_ASSERT_FATAL(trig_create(&trig, NULL) == 0);
    for (i = 0; i < TRIG_SLOTS; ++i) {
        trig_put(&trig, i, 1 + i, NULL);
    }
    for (i = 0; i < MANY; ++i) {
        cntrs[i]  = (i < MANY - 2) ? trig.trigger : trig.b_words;
        values[i] = 1;
    }
    cntrs[1] = trig.b_words;
    values[MANY - 1] = 5;
    status           = UCS_ERR_LAST;
    CU_ASSERT(uct_trig_cntr_add_all(cntrs, values, MANY, &status) == MANY);
    CU_ASSERT(status == UCS_OK);
    uct_pair_wait(&trig.pair, &trig.done, TRIG_SLOTS);
    for (i = 0; i < TRIG_SLOTS; ++i) {
        CU_ASSERT(trig_arrived(&trig, i));
    }
    CU_ASSERT(trig_count(&trig, trig.trigger) == MANY - 3);
    CU_ASSERT(trig_count(&trig, trig.b_words) == 1 + 1 + 5);

    CU_ASSERT(uct_trig_cntr_add_all(cntrs, values, 0, &status) == 0);
    CU_ASSERT(status == UCS_OK);
    trig_destroy(&trig);
}

/* One that would pass the limit is named; those behind it are left alone, and
 * can be added to by another call */
static void test_add_all_exceeds(void)
{
    uct_trig_cntr_h cntrs[3];
    uint64_t values[3] = {1, 0, 1};
    ucs_status_t status;
    trig_t trig;

    CU_ASSERT_FATAL(trig_create(&trig, NULL) == 0);
    cntrs[0]  = trig.trigger;
    cntrs[1]  = trig.words;
    cntrs[2]  = trig.b_words;
    values[1] = max_count(&trig) + 1;
    CU_ASSERT(uct_trig_cntr_add_all(cntrs, values, 3, &status) == 1);
    CU_ASSERT(status == UCS_ERR_EXCEEDS_LIMIT);
    CU_ASSERT(trig_count(&trig, trig.trigger) == 1);
    CU_ASSERT(trig_count(&trig, trig.words) == 0);
    CU_ASSERT(trig_count(&trig, trig.b_words) == 0);
    CU_ASSERT(uct_trig_cntr_add_all(&cntrs[2], &values[2], 1, &status) == 1);
    CU_ASSERT(status == UCS_OK);
    CU_ASSERT(trig_count(&trig, trig.b_words) == 1);
    trig_destroy(&trig);
}

static void check_not_offered(trig_t *trig)
{
    volatile uint64_t word = 77;

    CU_ASSERT(uct_trig_cntr_mirror(trig->trigger, &word) ==
              UCS_ERR_UNSUPPORTED);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    CU_ASSERT(word == 77);
}

/* Writes that land, their completions, and additions; whoever sees the count
 * sees the data */
static void check_follows(trig_t *trig)
{
    volatile uint64_t landed = 77, completed = 77, other = 77;
    unsigned i;

    CU_ASSERT(uct_trig_cntr_add(trig->completion, 3) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_mirror(trig->b_writes, &landed) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_mirror(trig->completion, &completed) == UCS_OK);
    CU_ASSERT(landed == 0);
    CU_ASSERT(completed == 3);
    for (i = 0; i < TRIG_SLOTS / 2; ++i) {
        trig_put(trig, i, 1 + i, NULL);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &landed, 1 + i);
        CU_ASSERT(trig_arrived(trig, i));
        uct_pair_wait(&trig->pair, &completed, 4 + i);
    }
    uct_pair_wait(&trig->pair, &trig->done, TRIG_SLOTS / 2);
    CU_ASSERT(landed == TRIG_SLOTS / 2);

    CU_ASSERT(uct_trig_cntr_mirror(trig->b_writes, NULL) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_mirror(trig->completion, &other) == UCS_OK);
    CU_ASSERT(other == 3 + (TRIG_SLOTS / 2));
    trig_put(trig, 0, 1, NULL);
    uct_pair_wait(&trig->pair, &other, 4 + (TRIG_SLOTS / 2));
    uct_pair_wait(&trig->pair, &trig->done, 1 + (TRIG_SLOTS / 2));
    CU_ASSERT(landed == TRIG_SLOTS / 2);
    CU_ASSERT(completed == 3 + (TRIG_SLOTS / 2));
    CU_ASSERT(trig_count(trig, trig->b_writes) == 1 + (TRIG_SLOTS / 2));
    CU_ASSERT(uct_trig_cntr_mirror(trig->completion, NULL) == UCS_OK);
}

static void test_mirror(void)
{
    uct_trig_iface_attr_t attr;
    trig_t trig;

    CU_ASSERT_FATAL(trig_create(&trig, NULL) == 0);
    CU_ASSERT_FATAL(uct_trig_iface_query(trig.pair.a.iface, &attr) == UCS_OK);
    if (attr.flags & UCT_TRIG_IFACE_FLAG_EMULATED) {
        check_follows(&trig);
    } else {
        check_not_offered(&trig);
    }
    trig_destroy(&trig);
}

int main(int argc, char **argv)
{
    static const st_cunit_case_t cases[] = {
        {"add_all", test_add_all},
        {"add_all_exceeds", test_add_all_exceeds},
        {"mirror", test_mirror}
    };

    return st_cunit_main("trig_cntr", cases, ST_CUNIT_COUNT(cases), argc, argv);
}
