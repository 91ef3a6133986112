/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_param.c - settings, from a table. */
#include "base/cxiemu_param.h"
#include "base/cxiemu_log.h"

#include <rdma/fi_errno.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CXIEMU_PARAM_VNI 10

typedef struct cxiemu_param_row cxiemu_param_row_t;

/** Reads a value's text; whether it makes sense. */
typedef int (*cxiemu_param_read_t)(const cxiemu_param_row_t *row,
                                   const char *text, cxiemu_param_t *param);

struct cxiemu_param_row {
    const char          *name;   /**< Behind FI_CXIEMU_ */
    const char          *preset; /**< Used if it is not set */
    cxiemu_param_read_t read;
    size_t              offset;  /**< In cxiemu_param_t */
    size_t              min;
    size_t              max;
    const char          *help;
};

/* What a full queue of commands refuses in strict mode, one in so many */
#define CXIEMU_PARAM_AGAIN 64

static cxiemu_param_t cxiemu_param_values = {.dir = -1};
static int            cxiemu_param_status;
static pthread_once_t cxiemu_param_once   = PTHREAD_ONCE_INIT;


static int cxiemu_param_read_mode(const cxiemu_param_row_t *row,
                                  const char *text, cxiemu_param_t *param)
{
    param->strict = !strcmp(text, "strict");
    return param->strict || !strcmp(text, "fast");
}

static int cxiemu_param_read_seed(const cxiemu_param_row_t *row,
                                  const char *text, cxiemu_param_t *param)
{
    struct timespec ts;
    char *end;

    if (text[0] == '\0') {
        /* None was chosen: the clock will do where there is no randomness */
        if (getrandom(&param->seed, sizeof(param->seed), GRND_NONBLOCK) !=
            sizeof(param->seed)) {
            clock_gettime(CLOCK_MONOTONIC, &ts);
            param->seed = ((uint64_t)ts.tv_sec << 32) ^ (uint64_t)ts.tv_nsec;
        }
        return 1;
    }
    errno       = 0;
    param->seed = strtoull(text, &end, 0);
    return (errno == 0) && (*end == '\0');
}

static int cxiemu_param_read_order(const cxiemu_param_row_t *row,
                                   const char *text, cxiemu_param_t *param)
{
    static const char *names[] = {
        [CXIEMU_ORDER_RELAXED] = "relaxed",
        [CXIEMU_ORDER_DEFAULT] = "default",
        [CXIEMU_ORDER_STRICT]  = "strict"
    };
    int i;

    for (i = CXIEMU_ORDER_RELAXED; i <= CXIEMU_ORDER_STRICT; ++i) {
        if (!strcmp(text, names[i])) {
            param->order = (cxiemu_order_t)i;
            return 1;
        }
    }
    return 0;
}

static int cxiemu_param_read_name(const cxiemu_param_row_t *row,
                                  const char *text, cxiemu_param_t *param)
{
    int length = snprintf(param->service, sizeof(param->service), "%s", text);

    return length < (int)sizeof(param->service);
}

/* Processes take what is in there for their peers' */
static int cxiemu_param_read_dir(const cxiemu_param_row_t *row,
                                 const char *text, cxiemu_param_t *param)
{
    struct stat st;

    param->dir = -1;
    if (text[0] == '\0') {
        return 1;
    }
    param->dir = open(text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (param->dir < 0) {
        return 0;
    }
    if ((fstat(param->dir, &st) != 0) || (st.st_uid != geteuid()) ||
        (st.st_mode & (S_IRWXG | S_IRWXO))) {
        close(param->dir);
        param->dir = -1;
        return 0;
    }
    return 1;
}

static int cxiemu_param_read_bool(const cxiemu_param_row_t *row,
                                  const char *text, cxiemu_param_t *param)
{
    static const char *names[2][4] = {{"0", "n", "no", "off"},
                                      {"1", "y", "yes", "on"}};
    int i;

    for (i = 0; i < 8; ++i) {
        if (!strcmp(text, names[i / 4][i % 4])) {
            *(int*)((char*)param + row->offset) = i / 4;
            return 1;
        }
    }
    return 0;
}

static int cxiemu_param_read_size(const cxiemu_param_row_t *row,
                                  const char *text, cxiemu_param_t *param)
{
    static const char units[] = "kmgKMG";
    unsigned long long number;
    size_t unit = 1;
    size_t value;
    const char *at;
    char *end;

    if (!strcmp(text, "inf") && (row->max == SIZE_MAX)) {
        *(size_t*)((char*)param + row->offset) = SIZE_MAX;
        return 1;
    }
    if ((text[0] < '0') || (text[0] > '9')) {
        return 0;
    }
    errno  = 0;
    number = strtoull(text, &end, 0);
    if (*end != '\0') {
        at   = strchr(units, *end++);
        unit = (at == NULL) ? 0 : ((size_t)1 << (10 * ((at - units) % 3 + 1)));
    }
    if ((errno != 0) || (unit == 0) || (*end != '\0') ||
        __builtin_mul_overflow(number, unit, &value) || (value < row->min) ||
        (value > row->max)) {
        return 0;
    }
    *(size_t*)((char*)param + row->offset) = value;
    return 1;
}

#define CXIEMU_PARAM_AT(_field) offsetof(cxiemu_param_t, _field)

static const cxiemu_param_row_t cxiemu_param_rows[] = {
    {"MODE", "fast", cxiemu_param_read_mode, 0, 0, 0,
     "strict: refuse what CXI refuses, deliver late and out of order; or fast"},
    {"SEED", "", cxiemu_param_read_seed, 0, 0, 0,
     "Seed of everything that is random; default: chosen, and logged"},
    {"ORDER", "default", cxiemu_param_read_order, 0, 0, 0,
     "Order of an endpoint's operations to another: relaxed, default (what "
     "msg_order asks for) or strict"},
    {"DWQ_ENTRIES", "504", cxiemu_param_read_size,
     CXIEMU_PARAM_AT(max_entries), 0, 1u << 20,
     "Entries for deferred work of the service"},
    {"CNTRS", "2047", cxiemu_param_read_size, CXIEMU_PARAM_AT(max_cntrs), 0,
     2047, "Counters of the service"},
    {"SERVICE", "", cxiemu_param_read_name, 0, 0, 0,
     "Whose entries and counters these are: own (each process has so many), "
     "or the name of a service that processes share; default: those of a "
     "launcher's job, else of a process group"},
    {"DEVICES", "1", cxiemu_param_read_size, CXIEMU_PARAM_AT(devices), 1,
     CXIEMU_MAX_DEVICES,
     "Devices that are there: cxiemu0 and so on, at most 8"},
    {"TX_SIZE", "1024", cxiemu_param_read_size, CXIEMU_PARAM_AT(tx_size), 1,
     16384, "Operations under way of an endpoint, unless it asks for more"},
    {"DIR", "", cxiemu_param_read_dir, 0, 0, 0,
     "Directory, of this user and mode 0700, in which processes find each "
     "other: needed where they are of several containers; default: in /proc"},
    {"CMA", "yes", cxiemu_param_read_bool, CXIEMU_PARAM_AT(cma), 0, 1,
     "Copy large payload by cross-memory attach, where the kernel allows it"},
    {"CMA_MIN", "256k", cxiemu_param_read_size, CXIEMU_PARAM_AT(cma_min), 4096,
     SIZE_MAX, "Smallest payload that is copied by cross-memory attach, bytes"},
    {"PTRACER", "no", cxiemu_param_read_bool, CXIEMU_PARAM_AT(ptracer), 0, 1,
     "Let all processes of the user attach to this one (prctl "
     "PR_SET_PTRACER), for cross-memory attach where Yama restricts it"},
    {"TRAP", "no", cxiemu_param_read_bool, CXIEMU_PARAM_AT(trap), 0, 1,
     "Protect trigger pages, and carry out each store of the host to them"},
    {"DOORBELL_POLL", "20", cxiemu_param_read_size, CXIEMU_PARAM_AT(poll_us), 1,
     1000000,
     "How often trigger pages are looked at while they are in use, "
     "microseconds"},
    {"LEAKS", "no", cxiemu_param_read_bool, CXIEMU_PARAM_AT(leaks), 0, 1,
     "At exit, tell what is still open, and end with status 3 if anything is"},
    {"DELAY", "0", cxiemu_param_read_size, CXIEMU_PARAM_AT(delay_us), 0,
     10000000, "Fault: delay of each operation, microseconds"},
    {"FAIL", "0", cxiemu_param_read_size, CXIEMU_PARAM_AT(fail_every), 0,
     SIZE_MAX, "Fault: one operation in so many fails, at random; 0: none"},
    {"AGAIN", "inf", cxiemu_param_read_size, CXIEMU_PARAM_AT(again_every), 0,
     SIZE_MAX,
     "Fault: one piece of deferred work in so many is refused with FI_EAGAIN, "
     "at random; 0: none; default: 64 in strict mode"},
    {"VANISH", "0", cxiemu_param_read_size, CXIEMU_PARAM_AT(vanish), 0,
     SIZE_MAX,
     "Fault: a peer vanishes after so many operations to it; 0: never"}
};

#define CXIEMU_PARAM_ROWS \
    (sizeof(cxiemu_param_rows) / sizeof(cxiemu_param_rows[0]))


static int cxiemu_param_read_row(const cxiemu_param_row_t *row,
                                 cxiemu_param_t *param)
{
    const char *text;
    char name[64];

    row->read(row, row->preset, param);
    snprintf(name, sizeof(name), "FI_CXIEMU_%s", row->name);
    text = getenv(name);
    if ((text != NULL) && (text[0] != '\0') && !row->read(row, text, param)) {
        cxiemu_warn(CORE, "%s=%s makes no sense: %s\n", name, text, row->help);
        return -FI_EINVAL;
    }
    return 0;
}

/* The job's network, as launchers tell CXI; its default without one */
static unsigned cxiemu_param_vni(void)
{
    const char *text = getenv("SLINGSHOT_VNIS");

    return (text == NULL) ? CXIEMU_PARAM_VNI : (uint16_t)atoi(text);
}

static void cxiemu_param_read_all(void)
{
    cxiemu_param_t *param = &cxiemu_param_values;
    size_t i;

    for (i = 0; i < CXIEMU_PARAM_ROWS; ++i) {
        if (cxiemu_param_read_row(&cxiemu_param_rows[i], param) != 0) {
            cxiemu_param_status = -FI_EINVAL;
        }
    }
    if (param->again_every == SIZE_MAX) {
        param->again_every = param->strict ? CXIEMU_PARAM_AGAIN : 0;
    }
    param->vni = cxiemu_param_vni();
    /* Not only for strict mode: the fault knobs draw from it, too */
    cxiemu_info(CORE, "mode %s, seed %#llx\n",
                param->strict ? "strict" : "fast",
                (unsigned long long)param->seed);
}

int cxiemu_param_init(void)
{
    pthread_once(&cxiemu_param_once, cxiemu_param_read_all);
    return cxiemu_param_status;
}

int cxiemu_param_leaks_now(void)
{
    const cxiemu_param_row_t *row = cxiemu_param_rows;
    cxiemu_param_t param          = {0};

    while (row->offset != CXIEMU_PARAM_AT(leaks)) {
        ++row;
    }
    (void)cxiemu_param_read_row(row, &param);
    return param.leaks;
}

const cxiemu_param_t *cxiemu_param(void)
{
    return &cxiemu_param_values;
}

void cxiemu_param_define(void)
{
    const cxiemu_param_row_t *row;
    char name[32];
    size_t i, j;

    for (i = 0; i < CXIEMU_PARAM_ROWS; ++i) {
        row = &cxiemu_param_rows[i];
        /* libfabric makes upper case of it again */
        for (j = 0; (row->name[j] != '\0') && (j + 1 < sizeof(name)); ++j) {
            name[j] = (char)tolower((unsigned char)row->name[j]);
        }
        name[j] = '\0';
        fi_param_define(&cxiemu_provider, name, FI_PARAM_STRING,
                        "%s (default: %s)", row->help,
                        row->preset[0] ? row->preset : "none");
    }
}
