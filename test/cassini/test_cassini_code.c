/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cassini_code.c - the emulated Cassini: return codes, each of a command
 * that asks for it, and what the functions of its library refuse. */
#include "cassini_user.h"

#include <errno.h>
#include <string.h>

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

/* A command that is none: the queue's owner is told, where it has asked */
ST_CASE_WITH(no_command, cassini_user_t, user, cassini_user_open(user, 61),
             cassini_user_close(user))
{
    cassini_cq_opts_t opts = {
        .count = 64,
        .flags = CASSINI_QUEUE_TX,
        .lcid  = user->cp->lcid
    };
    cassini_command_t cmd  = cassini_command(CASSINI_DMA, 15);
    cassini_cq_t *cq       = NULL;
    const volatile cassini_cq_status_t *status;

    CU_ASSERT_FATAL(cxil_alloc_cmdq(user->lni, user->eq, &opts, &cq) == 0);
    status = (const void*)cq->slots;
    cassini_emit(cq, &cmd, sizeof(cmd.dma));
    (void)cassini_event(user, CASSINI_EV_COMMAND_FAILURE);
    CU_ASSERT(cassini_event_code(&user->event) != CASSINI_RC_OK);
    CU_ASSERT(user->event.fail.cmd_type == CASSINI_DMA);
    CU_ASSERT(user->event.fail.cmd_op == 15);
    CU_ASSERT(!user->event.fail.is_tgt);
    CU_ASSERT(user->event.fail.cq == cq->index);
    CU_ASSERT(status->rc == cassini_event_code(&user->event));
    CU_ASSERT(cxil_destroy_cmdq(cq) == 0);
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
