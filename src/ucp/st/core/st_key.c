/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_key.c - what waits for a counterpart, by tag and scope.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_key.h"
#include "core/st_op.h"
#include "core/st_peer.h"

#include <stdlib.h>

ucp_st_key_t *ucp_st_key_get(ucp_st_peer_t *peer, uint64_t tag, uint64_t scope,
                             int add)
{
    ucp_st_key_id_t id = {.tag = tag, .scope = scope};
    ucp_st_key_t *key;
    khiter_t iter;
    int ret;

    iter = kh_get(ucp_st_keys, &peer->keys, id);
    if (iter != kh_end(&peer->keys)) {
        return kh_value(&peer->keys, iter);
    }
    key = add ? calloc(1, sizeof(*key)) : NULL;
    if (key == NULL) {
        return NULL;
    }
    iter = kh_put(ucp_st_keys, &peer->keys, id, &ret);
    if (ret < 0) {
        free(key);
        return NULL;
    }
    key->id = id;
    for (ret = 0; ret < 2; ++ret) {
        ucs_list_head_init(&key->local[ret]);
        ucs_list_head_init(&key->remote[ret]);
    }
    kh_value(&peer->keys, iter) = key;
    return key;
}

void ucp_st_key_put(ucp_st_peer_t *peer, ucp_st_key_t *key)
{
    int dir;

    for (dir = 0; dir < 2; ++dir) {
        if (!ucs_list_is_empty(&key->local[dir]) ||
            !ucs_list_is_empty(&key->remote[dir])) {
            return;
        }
    }
    kh_del(ucp_st_keys, &peer->keys, kh_get(ucp_st_keys, &peer->keys, key->id));
    free(key);
}

void ucp_st_key_forget(ucp_st_op_t *op)
{
    ucp_st_key_t *key = op->key;

    if (key == NULL) {
        return;
    }
    op->key              = NULL;
    key->count[op->dir] -= !op->freed;
    ucs_list_del(&op->key_list);
    ucp_st_key_put(op->peer, key);
}

void ucp_st_key_drop_remote(ucp_st_peer_t *peer, ucp_st_key_t *key,
                            ucp_st_remote_op_t *remote)
{
    ucs_list_del(&remote->list);
    ucp_st_key_put(peer, key);
    free(remote);
}

void ucp_st_keys_cleanup(ucp_st_peer_t *peer)
{
    ucp_st_remote_op_t *remote, *tmp;
    ucp_st_key_t *key;
    int dir;

    kh_foreach_value(&peer->keys, key, {
        for (dir = 0; dir < 2; ++dir) {
            ucs_list_for_each_safe(remote, tmp, &key->remote[dir], list) {
                free(remote);
            }
        }
        free(key);
    });
    kh_destroy_inplace(ucp_st_keys, &peer->keys);
}
