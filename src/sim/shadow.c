/* I7: nothing leaves before what it rests on is stored. The shadow is what the disk holds, kept by
 * the simulator itself from the bytes that were committed; each answer and command that leaves is
 * held against it. */
#include "sim/world.h"

#include "base/buf.h"
#include "core/row.h"

#include <stdlib.h>

/* A session may open, end and be forgotten all in the batch its answer leaves with, so what is gone
 * stays here for one batch more, and may have been anything. */
struct shadow {
    struct row_session row;
    bool gone;
    bool ended; /* with the newest batch */
};

static void drop_gone(struct world *w)
{
    size_t at = 0;
    struct shadow *s = NULL;
    while ((s = map_next(&w->shadow, &at))) {
        s->ended = false;
        if (!s->gone)
            continue;
        map_remove(&w->shadow, (uint64_t)s->row.id);
        free(s);
        at = 0; /* the table has moved */
    }
}

static int take(void *user, const struct change *change)
{
    struct world *w = user;
    struct shadow *s = map_get(&w->shadow, (uint64_t)change->id);
    if (change->kind != ROW_session || (!s && change->gone))
        return 0;
    if (!s) {
        s = xcalloc(1, sizeof(*s));
        map_put(&w->shadow, (uint64_t)change->id, s);
    }
    s->ended = !change->gone && change->session.state != s->row.state;
    s->gone = change->gone;
    if (!change->gone)
        s->row = change->session;
    return 0;
}

void shadow_stored(struct world *w, const struct store_batch *batch)
{
    struct cursor c = cursor_of(batch->changes, batch->len);
    struct change change;
    drop_gone(w);
    while (change_decode(&c, &change))
        (void)take(w, &change);
}

static bool is_stored(const struct world *w, int32_t server_id, int32_t lobby, bool opened)
{
    size_t at = 0;
    const struct shadow *s = NULL;
    while ((s = map_next(&w->shadow, &at))) {
        const struct row_session *row = &s->row;
        bool fits = !opened || row->opened_core_ms > 0 || s->gone;
        if (row->server == server_id && row->lobby == lobby && fits)
            return true;
    }
    return false;
}

bool shadow_has_session(const struct world *w, int64_t id, bool opened)
{
    const struct shadow *s = map_get(&w->shadow, (uint64_t)id);
    return s && (!opened || s->row.opened_core_ms > 0 || s->gone);
}

int32_t shadow_held_by(const struct world *w, int32_t server_id)
{
    enum { ENDED = 5 };
    int32_t n = 0;
    size_t at = 0;
    for (const struct shadow *s = NULL; (s = map_next(&w->shadow, &at));)
        n += s->row.server == server_id && (s->gone || s->ended || s->row.state != ENDED);
    return n;
}

void shadow_judge(struct world *w, const struct effect *e)
{
    struct wire *wire = wire_find(w, e->conn);
    if (!wire || e->err)
        return;
    if (e->kind == EFFECT_ALLOCATED && !is_stored(w, e->server_id, e->lobby, true))
        world_wrong(w, "I7: lobby %d is answered with server %d before that is stored", e->lobby,
                    e->server_id);
    bool registered = wire->kind == WIRE_GAME && w->games[wire->actor].registered;
    int32_t server_id = registered ? w->games[wire->actor].server_id : 0;
    if (e->kind == EFFECT_ALLOCATE && registered && !is_stored(w, server_id, e->lobby, false))
        world_wrong(w, "I7: server %d is given lobby %d before that is stored", server_id,
                    e->lobby);
}

/* A backup was restored: what its store holds is what is stored. */
void shadow_set_back(struct world *w)
{
    struct store_tip tip;
    shadow_done(w);
    if (store_load(w->store, take, w, &tip) != 0)
        world_wrong(w, "I5: a restored folder cannot be read");
    drop_gone(w);
}

void shadow_done(struct world *w)
{
    size_t at = 0;
    void *s = NULL;
    while ((s = map_next(&w->shadow, &at)))
        free(s);
    map_done(&w->shadow);
}
