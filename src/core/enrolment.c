/* Enrolment tokens. A stored one is known by its hash; its text is derived from its id and
 * generation, so that the answer to a repeated request is the same and nothing secret is kept.
 *
 *   made ──rotate──▶ next generation (the one before works for a while) ──▶ …
 *     └──────────── revoke, expiry ──▶ lets nobody in; forgotten when room is needed
 */
#include "base/plant.h"
#include "core/state.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_key(const uint8_t hash[CORE_HASH_SIZE])
{
    uint64_t key = 0;
    memcpy(&key, hash, sizeof(key));
    return key;
}

struct enrolment_token *enrolment_get(const struct core *core, int64_t id)
{
    return map_get(&core->enrolments, (uint64_t)id);
}

struct str enrolment_text(const struct core *core, int64_t id, int32_t generation,
                          char dst[ENROLMENT_TOKEN_SIZE])
{
    uint8_t input[8 + 8 + 4] = "enrol";
    uint8_t raw[24];
    char text[sodium_base64_ENCODED_LEN(sizeof(raw), sodium_base64_VARIANT_URLSAFE_NO_PADDING)];
    for (size_t i = 0; i < 8; i++)
        input[8 + i] = (uint8_t)((uint64_t)id >> (8 * i));
    for (size_t i = 0; i < 4; i++)
        input[16 + i] = (uint8_t)((uint32_t)generation >> (8 * i));
    (void)crypto_generichash(raw, sizeof(raw), input, sizeof(input), core->secret,
                             sizeof(core->secret));
    sodium_bin2base64(text, sizeof(text), raw, sizeof(raw),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    int n = snprintf(dst, ENROLMENT_TOKEN_SIZE, "mse_%" PRId64 "_%s", id, text);
    assert(n > 0 && n < ENROLMENT_TOKEN_SIZE);
    return (struct str){dst, (size_t)n};
}

/* ── who may come in ───────────────────────────────────────────────────────────────────────── */

static bool is_valid(const struct core *core, const struct row_enrolment *row)
{
    int64_t now_ms = core->now.wall_ms;
    bool revoked = row->revoked_wall_ms && !PLANTED(revoked_accepted);
    return !revoked && (!row->expires_wall_ms || now_ms < row->expires_wall_ms);
}

static const struct row_enrolment *find_stored(const struct core *core,
                                               const uint8_t hash[CORE_HASH_SIZE])
{
    struct chain_link *n = chain_first(&core->enrolments_by_hash, hash_key(hash));
    for (; n; n = n->next) {
        const struct row_enrolment *row = &container_of(n, struct enrolment_token, by_hash)->row;
        if (sodium_memcmp(row->hash, hash, CORE_HASH_SIZE) == 0)
            return row;
    }
    n = chain_first(&core->enrolments_by_previous, hash_key(hash));
    for (; n; n = n->next) {
        const struct row_enrolment *row =
            &container_of(n, struct enrolment_token, by_previous)->row;
        if (sodium_memcmp(row->previous_hash, hash, CORE_HASH_SIZE) == 0 &&
            core->now.wall_ms < row->previous_until_wall_ms)
            return row;
    }
    return NULL;
}

/* Every entry is looked at, so that the time says nothing about which one came close. */
static const struct enrolment *find_configured(const struct core *core,
                                               const uint8_t hash[CORE_HASH_SIZE],
                                               enum enrolment_role role)
{
    const struct enrolment *found = NULL;
    for (size_t i = 0; i < core->config.n_enrolments; i++) {
        const struct enrolment *e = &core->config.enrolments[i];
        if (sodium_memcmp(e->hash, hash, CORE_HASH_SIZE) == 0 && e->role == role)
            found = e;
    }
    return found;
}

const struct enrolment *enrolment_find(const struct core *core, struct str token,
                                       enum enrolment_role role, struct enrolment *scratch)
{
    uint8_t hash[CORE_HASH_SIZE];
    core_hash_token(token, hash);
    const struct row_enrolment *row = find_stored(core, hash);
    if (row && row->role == (int8_t)role && is_valid(core, row)) {
        *scratch =
            (struct enrolment){.role = role, .regions = (uint64_t)row->regions, .stored = row->id};
        (void)str_copy(scratch->fleet, sizeof(scratch->fleet), str_of(row->fleet));
        return scratch;
    }
    const struct enrolment *configured = find_configured(core, hash, role);
    if (configured || !core->config.any_token)
        return configured;
    *scratch = (struct enrolment){.role = role, .fleet = "default", .regions = UINT64_MAX};
    return scratch;
}

/* ── making, replacing, ending ─────────────────────────────────────────────────────────────── */

static void set_hash(const struct core *core, struct row_enrolment *row)
{
    char text[ENROLMENT_TOKEN_SIZE];
    core_hash_token(enrolment_text(core, row->id, row->generation, text), row->hash);
    row->hash_len = CORE_HASH_SIZE;
}

static void link_hashes(struct core *core, struct enrolment_token *t)
{
    chain_add(&core->enrolments_by_hash, hash_key(t->row.hash), &t->by_hash);
    if (t->row.previous_hash_len)
        chain_add(&core->enrolments_by_previous, hash_key(t->row.previous_hash), &t->by_previous);
}

static void unlink_hashes(struct core *core, struct enrolment_token *t)
{
    chain_remove(&core->enrolments_by_hash, hash_key(t->row.hash), &t->by_hash);
    if (t->row.previous_hash_len)
        chain_remove(&core->enrolments_by_previous, hash_key(t->row.previous_hash),
                     &t->by_previous);
}

struct enrolment_token *enrolment_load_row(struct core *core, const struct row_enrolment *row)
{
    if (row->hash_len != CORE_HASH_SIZE || (row->role != ROLE_SERVER && row->role != ROLE_CHAT))
        return NULL;
    struct enrolment_token *t = xcalloc(1, sizeof(*t));
    t->object.kind = ROW_enrolment;
    t->row = *row;
    map_put(&core->enrolments, (uint64_t)row->id, t);
    link_hashes(core, t);
    object_enter(core, &t->object);
    return t;
}

/* Room for one more: the oldest that lets nobody in any more goes. False when there is none. */
static bool make_room(struct core *core)
{
    if ((int32_t)core->enrolments.len < core->config.limits.enrolments)
        return true;
    for (int64_t id = 0; (id = roll_next(&core->rolls[ROW_enrolment], id));) {
        struct enrolment_token *t = enrolment_get(core, id);
        if (is_valid(core, &t->row) || t->connections > 0)
            continue;
        unlink_hashes(core, t);
        map_remove(&core->enrolments, (uint64_t)id);
        object_delete(core, &t->object);
        return true;
    }
    return false;
}

static uint64_t all_regions(const struct core *core)
{
    uint64_t mask = 0;
    for (int8_t code = 0; code < REGION_CODES; code++) {
        if (region_configured(core, code))
            mask |= (uint64_t)1 << code;
    }
    return mask;
}

static int judge(const struct core *core, const struct operate *o)
{
    uint64_t known = all_regions(core);
    if (o->role != ROLE_SERVER && o->role != ROLE_CHAT)
        return ERR_BAD_ARGUMENT;
    if (o->regions == 0 || o->regions & ~known)
        return ERR_INVALID_REGION;
    if (!fleet_is_configured(core, o->fleet))
        return ERR_NO_SUCH_FLEET;
    bool past = o->expires_wall_ms && o->expires_wall_ms <= core->now.wall_ms;
    return past || o->expires_wall_ms < 0 ? ERR_BAD_ARGUMENT : 0;
}

int enrolment_make(struct core *core, const struct operate *o, struct enrolment_token **ret)
{
    int err = judge(core, o);
    if (err)
        return err;
    struct row_enrolment row = {
        .role = (int8_t)o->role,
        .regions = (int64_t)o->regions,
        .generation = 1,
        .created_wall_ms = core->now.wall_ms,
        .expires_wall_ms = o->expires_wall_ms,
    };
    if (!str_copy(row.name, sizeof(row.name), o->name) ||
        !str_copy(row.fleet, sizeof(row.fleet), o->fleet))
        return ERR_BAD_ARGUMENT;
    if (!make_room(core))
        return ERR_TOO_MANY;
    row.id = object_new_id(core, ROW_enrolment);
    set_hash(core, &row);
    *ret = enrolment_load_row(core, &row);
    object_touch(core, &(*ret)->object);
    return 0;
}

/* Whoever came in with it is sent away: that is what revoking is for. */
static void send_away(struct core *core, int64_t id)
{
    size_t at = 0;
    for (struct peer *peer = NULL; (peer = map_next(&core->peers, &at));) {
        if (peer->enrolment == id)
            effect_close(core, peer->conn, "The enrolment token was revoked");
    }
}

int enrolment_revoke(struct core *core, int64_t id)
{
    struct enrolment_token *t = enrolment_get(core, id);
    if (!t)
        return ERR_NOT_FOUND;
    if (t->row.revoked_wall_ms)
        return ERR_ALREADY_OVER;
    t->row.revoked_wall_ms = core->now.wall_ms > 0 ? core->now.wall_ms : 1;
    object_touch(core, &t->object);
    send_away(core, id);
    return 0;
}

int enrolment_rotate(struct core *core, int64_t id, int64_t grace_ms)
{
    struct enrolment_token *t = enrolment_get(core, id);
    if (!t)
        return ERR_NOT_FOUND;
    if (!is_valid(core, &t->row) || t->row.generation == INT32_MAX)
        return ERR_ALREADY_OVER;
    unlink_hashes(core, t);
    memcpy(t->row.previous_hash, t->row.hash, CORE_HASH_SIZE);
    t->row.previous_hash_len = CORE_HASH_SIZE;
    t->row.previous_until_wall_ms = core->now.wall_ms + (grace_ms > 0 ? grace_ms : 0);
    t->row.generation++;
    set_hash(core, &t->row);
    link_hashes(core, t);
    object_touch(core, &t->object);
    return 0;
}
