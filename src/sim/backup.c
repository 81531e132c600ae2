/* Backups. In some worlds one is taken now and then, and after a crash the plane may start from it:
 * everybody else remembers what was said since. What then must hold is what no restore excuses: no
 * credential is given to two, no server is started twice or given a match too many, nothing is said
 * before it is stored, and what core holds is sound. What was promised in the lost time is broken
 * (docs/decisions/0040-restore.md). */
#include "sim/world.h"

#include "base/err.h"
#include "store/memory.h"

#include <inttypes.h>
#include <string.h>

enum { CLOCK_MS = 5 * 60 * 1000 };

static int feed(void *user, const struct change *change)
{
    return core_load(user, change);
}

/* Takes one, or has the plane die and come back from the one there is. */
void backup_fault(struct world *w)
{
    if (!w->backs_up || !w->leader)
        return;
    if (!w->backup || random_chance(&w->random, 40)) {
        store_close(w->backup);
        w->backup = store_memory_copy(w->store);
        return;
    }
    w->restores = true;
    node_crash(w->leader);
}

/* Where the old folder is not there, only the clock says how far numbers must go ahead: then
 * whoever restores looks that it was not set back since the backup, or since he did it last. */
static bool clock_is_right(const struct world *w, int64_t backup_wall_ms)
{
    int64_t now_ms = world_wall_ms(w);
    return now_ms >= backup_wall_ms && now_ms >= w->restored_wall_ms + CLOCK_MS;
}

static const uint8_t nobody[CORE_SECRET_SIZE] = {0};

/* A core with the rows of a store, as they are. */
static struct core *core_with(const struct world *w, struct store *store, struct store_tip *ret)
{
    struct core *core = core_new(&w->config, nobody);
    if (store_load(store, feed, core, ret) == 0)
        return core;
    core_free(core);
    return NULL;
}

static void go_back(struct world *w, const struct batch *batch, int64_t epoch)
{
    struct store_batch row = {.seq = batch->seq,
                              .epoch = epoch,
                              .core_ms = batch->core_ms,
                              .wall_ms = batch->wall_ms,
                              .changes = batch->changes.data,
                              .len = batch->changes.len};
    store_memory_set_back(w->store, w->backup, &row);
    w->restored_wall_ms = world_wall_ms(w);
    w->set_back_ms = w->now_ms;
    w->result->restores++;
    shadow_set_back(w);
    shadow_tickets_set_back(w);
    shadow_rooms_set_back(w);
}

/* As `muster restore` does it: over the folder that was served last, or on another machine. */
void backup_restore(struct world *w)
{
    struct store_tip tip = {0};
    struct store_tip last = {0};
    bool asked = w->restores;
    bool elsewhere = asked && random_chance(&w->random, 50);
    w->restores = false;
    if (!asked || store_tip(w->backup, &tip) != 0 || (elsewhere && !clock_is_right(w, tip.wall_ms)))
        return;
    struct batch batch = {0};
    int64_t epoch = 0;
    struct core *core = core_with(w, w->backup, &tip);
    struct core *before = elsewhere ? NULL : core_with(w, w->store, &last);
    struct core_back how = {.seq = tip.seq,
                            .then = {tip.core_ms, tip.wall_ms},
                            .wall_ms = world_wall_ms(w),
                            .who = STR("sim"),
                            .before = before,
                            .before_seq = last.seq};
    int err = core ? core_restore(core, &how, &batch, &epoch) : ERR_FORMAT;
    core_free(core);
    core_free(before);
    if (err) {
        world_wrong(w, "a backup cannot be restored: %s", err_code(err));
    } else {
        go_back(w, &batch, epoch);
        world_trace(w, "restored to batch %" PRId64 ", goes on at %" PRId64, tip.seq, batch.seq);
    }
    batch_done(&batch);
}

/* FNV-1a; never 0. */
static uint64_t hash_of(struct str s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (uint8_t)s.at[i]) * 0x100000001b3u;
    return h | 1;
}

static void give(struct world *w, const char *what, struct str credential, struct str to)
{
    uint64_t key = hash_of(credential);
    void *whom = (void *)(uintptr_t)hash_of(to); /* a number; maps hold pointers */
    void *before = map_get(&w->given, key);
    if (before && before != whom)
        world_wrong(w, "%s %.*s was given before, and not for %.*s", what, (int)credential.len,
                    credential.at, (int)to.len, to.at);
    if (!before)
        map_put(&w->given, key, whom);
}

/* MATCH_{lobby}_{guid}_{seconds}: the guid is what nobody can guess. */
static void judge_match(struct world *w, struct str token)
{
    const char *guid = memchr(token.at + 6, '_', token.len - 6);
    const char *end = memrchr(token.at, '_', token.len);
    give(w, "match token", (struct str){guid, (size_t)(end - guid)}, token);
}

void backup_judge(struct world *w, const struct effect *e)
{
    if (!w->backs_up)
        return;
    if (e->kind == EFFECT_ALLOCATE && e->token.len > 6)
        judge_match(w, e->token);
    if (e->kind != EFFECT_PLACED || e->err || !e->placed)
        return;
    for (size_t i = 0; i < e->placed->n_seats; i++)
        give(w, "key", e->placed->seats[i].key, e->placed->seats[i].account);
}

void backup_done(struct world *w)
{
    store_close(w->backup);
    map_done(&w->given);
}
