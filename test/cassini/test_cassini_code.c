/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cassini_code.c - the emulated Cassini: return codes, each of a command
 * that asks for it, and what the functions of its library refuse. */
#include "cassini_user.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BITS 0x31


static void open_entry(cassini_user_t *user)
{
    cassini_command_t entry;

    cassini_user_open(user, CASSINI_PID_ANY);
    entry = cassini_entry(user, CASSINI_PRIORITY, user->memory, 256, BITS);
    cassini_append(user, &entry);
}

static void close_entry(cassini_user_t *user)
{
    cassini_unlink(user, CASSINI_PRIORITY, 77);
    cassini_user_close(user);
}

/* A put of 8 bytes into the entry */
static cassini_command_t put(const cassini_user_t *user)
{
    cassini_command_t cmd = cassini_dma(user, CASSINI_OP_PUT,
                                        user->domain->pid, user->memory + 512,
                                        8);

    cmd.dma.match_bits = BITS;
    cmd.dma.no_send    = 1;
    return cmd;
}

/* It ends with a code, and the queue goes on; if no entry was found, the target
 * is told, too */
static void expect(cassini_user_t *user, const cassini_command_t *cmd,
                   unsigned rc)
{
    int is_get = (cmd->dma.op == CASSINI_OP_GET);

    cassini_emit(user->tx, cmd, sizeof(cmd->dma));
    if (rc == CASSINI_RC_ENTRY_NOT_FOUND) {
        cassini_event_rc(user, is_get ? CASSINI_EV_GET : CASSINI_EV_PUT, rc);
    }
    cassini_event_rc(user, is_get ? CASSINI_EV_REPLY : CASSINI_EV_ACK, rc);
    CU_ASSERT(user->event.init.user == cmd->dma.user);
    CU_ASSERT(user->memory[0] == 0);
    CU_ASSERT(cassini_drained(user->tx, 30000));
}

ST_CASE_WITH(no_portal_entry, cassini_user_t, user, open_entry(user),
             close_entry(user))
{
    cassini_command_t cmd = put(user);

    cmd.dma.index = CASSINI_USER_INDEX + 1;
    expect(user, &cmd, CASSINI_RC_PTE_NOT_FOUND);
    cmd        = put(user);
    cmd.dma.ep = cassini_ep(user->domain->pid, CASSINI_USER_INDEX + 32);
    expect(user, &cmd, CASSINI_RC_PTE_NOT_FOUND);
}

/* A process of the number is not there */
ST_CASE_WITH(no_process, cassini_user_t, user, open_entry(user),
             close_entry(user))
{
    cassini_command_t cmd = put(user);

    cmd.dma.ep = cassini_ep((user->domain->pid + 100) % 500,
                            CASSINI_USER_INDEX);
    expect(user, &cmd, CASSINI_RC_PTE_NOT_FOUND);
}

/* Nor is the NIC */
ST_CASE_WITH(no_nic, cassini_user_t, user, open_entry(user), close_entry(user))
{
    cassini_command_t cmd = put(user);

    cmd.dma.nid = user->dev->info.nid + 12345;
    expect(user, &cmd, CASSINI_RC_UNDELIVERABLE);
}

ST_CASE_WITH(no_entry, cassini_user_t, user, open_entry(user),
             close_entry(user))
{
    cassini_command_t cmd = put(user);

    cmd.dma.match_bits = BITS + 1;
    expect(user, &cmd, CASSINI_RC_ENTRY_NOT_FOUND);
    cmd.dma.op = CASSINI_OP_GET;
    expect(user, &cmd, CASSINI_RC_ENTRY_NOT_FOUND);
}

/* Of a source, and of what an entry is over */
ST_CASE_WITH(no_translation, cassini_user_t, user, open_entry(user),
             close_entry(user))
{
    cassini_command_t cmd   = put(user);
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            user->memory, 8, BITS + 5);

    cmd.dma.local = 0x7000;
    expect(user, &cmd, CASSINI_RC_NO_TRANSLATION);
    entry.tgt.start     = 0x7000;
    entry.tgt.buffer_id = 3;
    cassini_append(user, &entry);
    cmd                = put(user);
    cmd.dma.match_bits = BITS + 5;
    expect(user, &cmd, CASSINI_RC_NO_TRANSLATION);
    cassini_unlink(user, CASSINI_PRIORITY, 3);
}

/* An entry that is for puts or gets alone */
ST_CASE_WITH(not_allowed, cassini_user_t, user, open_entry(user),
             close_entry(user))
{
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            user->memory, 8, BITS + 5);
    cassini_command_t cmd   = put(user);

    entry.tgt.op_put    = 0;
    entry.tgt.buffer_id = 3;
    cassini_append(user, &entry);
    cmd.dma.match_bits = BITS + 5;
    expect(user, &cmd, CASSINI_RC_OP_VIOLATION);
    cassini_unlink(user, CASSINI_PRIORITY, 3);
    entry.tgt.op_put = 1;
    entry.tgt.op_get = 0;
    cassini_append(user, &entry);
    cmd.dma.op = CASSINI_OP_GET;
    expect(user, &cmd, CASSINI_RC_OP_VIOLATION);
    cassini_unlink(user, CASSINI_PRIORITY, 3);
}

/* Beyond an entry that holds together what it is over */
ST_CASE_WITH(no_space, cassini_user_t, user, cassini_user_open(user, 60),
             cassini_user_close(user))
{
    cassini_pte_map_t *map  = NULL;
    cassini_pte_t *pte      = cassini_user_pte(user, 9, 0, &map);
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            user->memory, 64, 0);
    cassini_command_t cmd   = put(user);

    entry.tgt.pte = pte->ptn;
    cassini_append(user, &entry);
    cmd.dma.index     = 9;
    cmd.dma.offset    = 60;
    user->memory[512] = 1;
    expect(user, &cmd, CASSINI_RC_NO_SPACE);
    CU_ASSERT(user->memory[60] == 0);
    CU_ASSERT(user->memory[64] == 0);
    CU_ASSERT(cxil_unmap_pte(map) == 0);
    CU_ASSERT(cxil_destroy_pte(pte) == 0);
}

ST_CASE_WITH(disabled, cassini_user_t, user, open_entry(user),
             close_entry(user))
{
    cassini_command_t cmd       = put(user);
    cassini_pte_status_t status = {0};

    cassini_user_set_state(user, user->pte, CASSINI_PTE_DISABLED);
    expect(user, &cmd, CASSINI_RC_PT_DISABLED);
    CU_ASSERT(cxil_pte_status(user->pte, &status) == 0);
    CU_ASSERT(status.state == CASSINI_PTE_DISABLED);
    CU_ASSERT(status.drops == 1);
    cassini_user_set_state(user, user->pte, CASSINI_PTE_ENABLED);
    user->memory[512] = 7;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    CU_ASSERT(user->memory[0] == 7);
}

/* Software matches: all goes to the request list, each packet behind its
 * headers, and no entry is appended */
ST_CASE_WITH(software, cassini_user_t, user, open_entry(user),
             close_entry(user))
{
    cassini_command_t room  = cassini_entry(user, CASSINI_REQUEST,
                                            user->memory + 1024, 256, 0);
    cassini_command_t entry = cassini_entry(user, CASSINI_PRIORITY,
                                            user->memory, 8, BITS + 1);
    cassini_command_t cmd   = put(user);

    room.tgt.ignore_bits = UINT64_MAX;
    room.tgt.buffer_id   = 2;
    cassini_append(user, &room);
    cassini_user_set_state(user, user->pte, CASSINI_PTE_SOFTWARE);
    user->memory[512] = 6;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.list == CASSINI_REQUEST);
    CU_ASSERT(user->event.tgt.buffer_id == 2);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    CU_ASSERT(user->memory[1024 + CASSINI_WIRE_BYTES] == 6);
    cassini_emit(user->tgt, &entry, sizeof(entry.tgt));
    cassini_event_rc(user, CASSINI_EV_LINK, CASSINI_RC_PTE_SOFTWARE);
    cassini_user_set_state(user, user->pte, CASSINI_PTE_ENABLED);
    cassini_unlink(user, CASSINI_REQUEST, 2);
}

/* A queue whose failures are told; a target queue without flags */
static cassini_cq_t *open_queue(cassini_user_t *user, unsigned flags)
{
    cassini_cq_opts_t opts = {
        .count = 64,
        .flags = flags,
        .lcid  = (flags & CASSINI_QUEUE_TX) ? user->cp->lcid : 0
    };
    cassini_cq_t *cq       = NULL;

    CU_ASSERT_FATAL(cxil_alloc_cmdq(user->lni, user->eq, &opts, &cq) == 0);
    return cq;
}

/* The command in a slot has failed: the queue stands still there, its owner is
 * told */
static void expect_failure(cassini_user_t *user, const cassini_cq_t *cq,
                           const cassini_command_t *cmd, unsigned rc)
{
    const volatile cassini_cq_status_t *status = (const void*)cq->slots;
    const cassini_ev_fail_t *fail              = &user->event.fail;

    cassini_event_rc(user, CASSINI_EV_COMMAND_FAILURE, rc);
    CU_ASSERT(fail->cmd_type == cmd->head.type);
    CU_ASSERT(fail->cmd_op == cmd->head.op);
    CU_ASSERT(fail->is_tgt == (cq->index >= CASSINI_NUM_TXQS));
    CU_ASSERT(fail->cq == cq->index % CASSINI_NUM_TXQS);
    CU_ASSERT(fail->where == CASSINI_FIRST_SLOT);
    CU_ASSERT(status->rc == rc);
    CU_ASSERT(status->read == CASSINI_FIRST_SLOT);
}

/* A command that is wrong, with a good one behind it that is not executed */
static void expect_wrong(cassini_user_t *user, unsigned flags,
                         const cassini_command_t *cmd, size_t length,
                         unsigned rc)
{
    cassini_command_t noop = cassini_command(CASSINI_CQ, CASSINI_CQ_NOOP);
    cassini_cq_t *cq       = open_queue(user, flags);
    unsigned count         = 0;

    cassini_emit(cq, cmd, length);
    expect_failure(user, cq, cmd, rc);
    cassini_emit(cq, &noop, sizeof(noop.cq));
    /* A step of the NIC */
    CU_ASSERT(cxil_cmdq_ack_counter(cq, &count) == 0);
    CU_ASSERT(!cassini_drained(cq, 0));
    CU_ASSERT(!cassini_event_is_there(user, 0));
    CU_ASSERT(cxil_destroy_cmdq(cq) == 0);
}

/* Operations that there are not, of each type of command */
ST_CASE_WITH(illegal_op, cassini_user_t, user, cassini_user_open(user, 61),
             cassini_user_close(user))
{
    static const unsigned types[] = {CASSINI_DMA, CASSINI_IDC, CASSINI_CT,
                                     CASSINI_CQ};
    cassini_command_t cmd;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(types); ++i) {
        cmd = cassini_command(types[i], 15);
        expect_wrong(user, CASSINI_QUEUE_TX, &cmd, 32, CASSINI_RC_ILLEGAL_OP);
    }
    cmd         = cassini_command(CASSINI_CQ, 15);
    cmd.tgt.pte = user->pte->ptn;
    expect_wrong(user, 0, &cmd, sizeof(cmd.tgt), CASSINI_RC_ILLEGAL_OP);
}

static void expect_invalid(cassini_user_t *user, unsigned flags,
                           const cassini_command_t *cmd, size_t length)
{
    expect_wrong(user, flags, cmd, length, CASSINI_RC_CMD_INVALID_ARG);
}

/* A profile, a counter, a portal entry that is not there; a list that takes no
 * entries */
ST_CASE_WITH(invalid_number, cassini_user_t, user, cassini_user_open(user, 61),
             cassini_user_close(user))
{
    cassini_command_t cmd = cassini_command(CASSINI_CQ, CASSINI_CQ_LCID);

    cmd.cq.lcid = CASSINI_NUM_LCIDS - 1;
    expect_invalid(user, CASSINI_QUEUE_TX, &cmd, sizeof(cmd.cq));
    cmd            = cassini_command(CASSINI_CT, CASSINI_CT_TRIG_INC);
    cmd.ct.trig_ct = CASSINI_NUM_CTS - 1;
    expect_invalid(user, CASSINI_QUEUE_TX, &cmd, sizeof(cmd.ct));
    cmd         = cassini_entry(user, CASSINI_PRIORITY, user->memory, 8, BITS);
    cmd.tgt.pte = CASSINI_NUM_PTES - 1;
    expect_invalid(user, 0, &cmd, sizeof(cmd.tgt));
    cmd = cassini_entry(user, CASSINI_UNEXPECTED, user->memory, 8, BITS);
    expect_invalid(user, 0, &cmd, sizeof(cmd.tgt));
    cmd.tgt.op = CASSINI_TGT_UNLINK;
    expect_invalid(user, 0, &cmd, sizeof(cmd.tgt));
}

/* Commands of another size than their operation has, or than they say */
ST_CASE_WITH(invalid_size, cassini_user_t, user, cassini_user_open(user, 61),
             cassini_user_close(user))
{
    cassini_command_t cmd = cassini_command(CASSINI_CT, CASSINI_CT_TRIG_DMA);

    expect_invalid(user, CASSINI_QUEUE_TX, &cmd, 64);
    cmd = cassini_command(CASSINI_CT, CASSINI_CT_TRIG_INC);
    expect_invalid(user, CASSINI_QUEUE_TX, &cmd, 128);
    cmd        = put(user);
    cmd.dma.op = CASSINI_OP_RDZV_PUT;
    expect_invalid(user, CASSINI_QUEUE_TX, &cmd, 32);
    cmd            = cassini_command(CASSINI_IDC, CASSINI_OP_FETCH_ATOMIC);
    cmd.amo.length = 32;
    expect_invalid(user, CASSINI_QUEUE_TX, &cmd, 32);
    cmd            = cassini_command(CASSINI_IDC, CASSINI_OP_PUT);
    cmd.idc.length = sizeof(cmd.idc) - 1;
    expect_invalid(user, CASSINI_QUEUE_TX, &cmd, 32);
    cmd.idc.length = 33;
    expect_invalid(user, CASSINI_QUEUE_TX, &cmd, 32);
}

/* A command of 64 bytes in the second half of a slot, where the provider puts
 * commands that do nothing */
ST_CASE_WITH(misaligned, cassini_user_t, user, cassini_user_open(user, 61),
             cassini_user_close(user))
{
    cassini_cq_t *cq       = open_queue(user, CASSINI_QUEUE_TX);
    uint8_t *first         = cq->slots + (CASSINI_FIRST_SLOT * CASSINI_SLOT);
    cassini_command_t noop = cassini_command(CASSINI_IDC, CASSINI_OP_NOOP);
    cassini_command_t cmd  = put(user);

    noop.head.size = CASSINI_32B;
    cmd.head.size  = CASSINI_64B;
    memcpy(first, &noop, 32);
    memcpy(first + 32, &cmd, sizeof(cmd.dma));
    cq->write32 += 4;
    __atomic_store_n(cq->write, cq->write32 / 2, __ATOMIC_RELEASE);
    expect_failure(user, cq, &cmd, CASSINI_RC_CMD_ALIGN);
    CU_ASSERT(((const volatile cassini_cq_status_t*)cq->slots)->fail_32);
    CU_ASSERT(cxil_destroy_cmdq(cq) == 0);
}

/* Commands to the queue itself: the initiator's and the target's go on behind
 * one that does nothing */
ST_CASE_WITH(noop, cassini_user_t, user, open_entry(user), close_entry(user))
{
    static const unsigned types[] = {CASSINI_CQ, CASSINI_IDC, CASSINI_DMA,
                                     CASSINI_CT};
    cassini_command_t cmd         = put(user);
    cassini_command_t noop;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(types); ++i) {
        noop = cassini_command(types[i], 0);
        cassini_emit(user->tx, &noop, sizeof(noop.cq));
    }
    noop = cassini_command(CASSINI_CQ, CASSINI_CQ_NOOP);
    cassini_emit(user->tgt, &noop, sizeof(noop.cq));
    CU_ASSERT(cassini_drained(user->tx, 30000));
    CU_ASSERT(cassini_drained(user->tgt, 30000));
    CU_ASSERT(!cassini_event_is_there(user, 0));
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
}

static void emit_lcid(cassini_user_t *user, const cassini_cp_t *cp)
{
    cassini_command_t cmd = cassini_command(CASSINI_CQ, CASSINI_CQ_LCID);

    cmd.cq.lcid = cp->lcid;
    cassini_emit(user->tx, &cmd, sizeof(cmd.cq));
}

/* The commands behind another profile go to its VNI: nobody is there, then a
 * process of this number is, but none of its portal entries */
ST_CASE_WITH(no_vni, cassini_user_t, user, open_entry(user), close_entry(user))
{
    cassini_command_t cmd    = put(user);
    cassini_domain_t *domain = NULL;
    cassini_cp_t *cp         = NULL;

    CU_ASSERT_FATAL(cxil_alloc_cp(user->lni, 1, 0, 0, &cp) == 0);
    emit_lcid(user, cp);
    expect(user, &cmd, CASSINI_RC_VNI_NOT_FOUND);
    CU_ASSERT_FATAL(cxil_alloc_domain(user->lni, 1, user->domain->pid,
                                      &domain) == 0);
    expect(user, &cmd, CASSINI_RC_PTE_NOT_FOUND);
    CU_ASSERT(cxil_destroy_domain(domain) == 0);
    emit_lcid(user, user->cp);
    user->memory[512] = 4;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma));
    cassini_event_rc(user, CASSINI_EV_PUT, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.vni == CASSINI_USER_VNI);
    cassini_event_rc(user, CASSINI_EV_ACK, CASSINI_RC_OK);
    CU_ASSERT(user->memory[0] == 4);
    CU_ASSERT(cxil_destroy_cp(cp) == 0);
}

/* Two processes cannot have one number, nor two portal entries one index */
ST_CASE_WITH(taken, cassini_user_t, user, cassini_user_open(user, 62),
             cassini_user_close(user))
{
    cassini_domain_t *domain = NULL;
    cassini_pte_map_t *map   = NULL;
    cassini_pte_opts_t opts  = {0};
    cassini_pte_t *pte       = NULL;

    CU_ASSERT(cxil_alloc_domain(user->lni, CASSINI_USER_VNI, 62, &domain) ==
              -EEXIST);
    CU_ASSERT(cxil_alloc_pte(user->lni, user->eq, &opts, &pte) == 0);
    CU_ASSERT(cxil_map_pte(pte, user->domain, CASSINI_USER_INDEX, false,
                           &map) == -EEXIST);
    CU_ASSERT(cxil_destroy_pte(pte) == 0);
    CU_ASSERT(cxil_alloc_domain(user->lni, CASSINI_USER_VNI, 63, &domain) ==
              0);
    CU_ASSERT(domain->pid == 63);
    CU_ASSERT(cxil_destroy_domain(domain) == 0);
}

/* Another VNI: the service has one */
ST_CASE_WITH(other_vni, cassini_user_t, user, cassini_user_open(user, 64),
             cassini_user_close(user))
{
    cassini_cp_t *cp = NULL;

    CU_ASSERT(cxil_alloc_cp(user->lni, CASSINI_USER_VNI + 1, 0, 0, &cp) < 0);
    CU_ASSERT(cp == NULL);
}

/* Pages are pinned: they have to be there, with the rights that are asked for.
 * The memory of a device, which a stand-in keeps from the host, has none. */
ST_CASE_WITH(not_pinned, cassini_user_t, user, cassini_user_open_lni(user),
             cassini_user_close_lni(user))
{
    size_t size      = (size_t)sysconf(_SC_PAGESIZE);
    cassini_md_t *md = NULL;
    void *page       = mmap(NULL, size, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_FATAL(page != MAP_FAILED);
    CU_ASSERT(cxil_map(user->lni, page, size, CASSINI_MAP_PIN |
                       CASSINI_MAP_READ, NULL, &md) == -EINVAL);
    CU_ASSERT_FATAL(mprotect(page, size, PROT_READ) == 0);
    CU_ASSERT(cxil_map(user->lni, page, size, CASSINI_MAP_PIN |
                       CASSINI_MAP_READ | CASSINI_MAP_WRITE, NULL, &md) ==
              -EINVAL);
    CU_ASSERT_FATAL(cxil_map(user->lni, page, size, CASSINI_MAP_PIN |
                             CASSINI_MAP_READ, NULL, &md) == 0);
    CU_ASSERT(cxil_unmap(md) == 0);
    CU_ASSERT_FATAL(munmap(page, size) == 0);
    CU_ASSERT(cxil_map(user->lni, page, size, CASSINI_MAP_PIN |
                       CASSINI_MAP_READ, NULL, &md) == -EINVAL);
}

/* What the service says of itself */
ST_CASE_WITH(service, cassini_user_t, user, cassini_user_open_lni(user),
             cassini_user_close_lni(user))
{
    cassini_svc_list_t *list = NULL;
    cassini_svc_use_t use    = {0};
    cassini_svc_t svc;

    CU_ASSERT_FATAL(cxil_get_svc_list(user->dev, &list) == 0);
    CU_ASSERT_FATAL(list->count >= 1);
    CU_ASSERT(cxil_get_svc(user->dev, list->svcs[0].svc_id, &svc) == 0);
    CU_ASSERT(svc.enabled);
    CU_ASSERT(svc.restricted_vnis);
    CU_ASSERT(svc.vnis[0] == CASSINI_USER_VNI);
    CU_ASSERT(svc.limits[CASSINI_RSRC_TLE].max == 512);
    CU_ASSERT(cxil_get_svc_rsrc_use(user->dev, svc.svc_id, &use) == 0);
    CU_ASSERT(use.in_use[CASSINI_RSRC_TLE] == 0);
    cxil_free_svc_list(list);
}

/* What the device says of itself */
ST_CASE_WITH(device, cassini_user_t, user, cassini_user_open_lni(user),
             cassini_user_close_lni(user))
{
    cassini_dev_list_t *list = NULL;

    CU_ASSERT_FATAL(cxil_get_device_list(&list) == 0);
    CU_ASSERT(list->count >= 1);
    CU_ASSERT(!strcmp(list->info[0].device_name, "cxi0"));
    CU_ASSERT(list->info[0].pid_bits == CASSINI_PID_BITS);
    CU_ASSERT(list->info[0].min_free_shift == 0);
    CU_ASSERT(list->info[0].link_state == 1);
    CU_ASSERT(list->info[0].nid == user->dev->info.nid);
    cxil_free_device_list(list);
}

static const cassini_part_t parts[] = {{NULL, NULL}};

CASSINI_SUITE("cassini_code", parts)
