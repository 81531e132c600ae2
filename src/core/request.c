/* Idempotency: the key's scope is (account, operation, key). Only requests that succeeded are kept;
 * one that was refused changed nothing and may be asked again. */
#include "base/plant.h"
#include "core/state.h"

#include <sodium.h>
#include <string.h>

enum { REQUESTS_MAX = 100 * 1000 };

/* Each part with its length before it, so that no two triples read the same. */
static void digest_part(crypto_generichash_state *state, const void *data, size_t len)
{
    uint8_t size[4] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16),
                       (uint8_t)(len >> 24)};
    (void)crypto_generichash_update(state, size, sizeof(size));
    (void)crypto_generichash_update(state, data, len);
}

void request_digest(struct str who, uint8_t verb, struct str key, uint8_t ret[OPERATE_DIGEST])
{
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, NULL, 0, OPERATE_DIGEST);
    digest_part(&state, who.at, who.len);
    digest_part(&state, &verb, 1);
    digest_part(&state, key.at, key.len);
    (void)crypto_generichash_final(&state, ret, OPERATE_DIGEST);
}

static void digest_key(const struct operate *o, uint8_t ret[OPERATE_DIGEST])
{
    request_digest(o->who, (uint8_t)o->verb, o->key, ret);
}

static uint64_t map_key(const uint8_t digest[OPERATE_DIGEST])
{
    uint64_t key = 0;
    memcpy(&key, digest, sizeof(key));
    return key;
}

struct request *request_find(const struct core *core, const struct operate *o)
{
    uint8_t digest[OPERATE_DIGEST];
    if (o->key.len == 0 || PLANTED(key_ignored))
        return NULL;
    digest_key(o, digest);
    struct chain_link *n = chain_first(&core->requests_by_key, map_key(digest));
    for (; n; n = n->next) {
        struct request *request = container_of(n, struct request, by_key);
        if (memcmp(request->row.key, digest, OPERATE_DIGEST) == 0)
            return request;
    }
    return NULL;
}

bool request_is_same(const struct request *request, const struct operate *o)
{
    return memcmp(request->row.arguments, o->arguments, OPERATE_DIGEST) == 0;
}

struct request *request_load_row(struct core *core, const struct row_request *row)
{
    if (row->key_len != OPERATE_DIGEST || row->arguments_len != OPERATE_DIGEST || row->verb < 0 ||
        row->verb >= OPERATE_VERBS)
        return NULL;
    struct request *request = xcalloc(1, sizeof(*request));
    request->object.kind = ROW_request;
    request->row = *row;
    request->deadline.kind = DEADLINE_REQUEST;
    map_put(&core->requests, (uint64_t)row->id, request);
    chain_add(&core->requests_by_key, map_key(row->key), &request->by_key);
    object_enter(core, &request->object);
    deadline_set(core, &request->deadline, DEADLINE_CORE, row->deadline_core_ms);
    return request;
}

void request_deadline(struct core *core, struct request *request)
{
    deadline_clear(core, &request->deadline);
    map_remove(&core->requests, (uint64_t)request->row.id);
    chain_remove(&core->requests_by_key, map_key(request->row.key), &request->by_key);
    object_delete(core, &request->object);
}

void request_keep(struct core *core, const struct operate *o, int64_t object, int32_t generation)
{
    if (o->key.len == 0)
        return;
    struct row_request row = {
        .id = object_new_id(core, ROW_request),
        .verb = (int8_t)o->verb,
        .object = object,
        .generation = generation,
        .asked_wall_ms = core->now.wall_ms,
        .deadline_core_ms = core->now.core_ms + core->config.timeouts.keep_ms,
        .key_len = OPERATE_DIGEST,
        .arguments_len = OPERATE_DIGEST,
    };
    digest_key(o, row.key);
    memcpy(row.arguments, o->arguments, OPERATE_DIGEST);
    object_touch(core, &request_load_row(core, &row)->object);
    while (core->requests.len > REQUESTS_MAX) {
        int64_t oldest = roll_next(&core->rolls[ROW_request], 0);
        request_deadline(core, map_get(&core->requests, (uint64_t)oldest));
    }
}
