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
};

static void drop_gone(struct world *w)
{
    size_t at = 0;
    struct shadow *s = NULL;
    while ((s = map_next(&w->shadow, &at))) {
        if (!s->gone)
            continue;
        map_remove(&w->shadow, (uint64_t)s->row.id);
        free(s);
        at = 0; /* the table has moved */
    }
}

void shadow_stored(struct world *w, const struct store_batch *batch)
{
    struct cursor c = cursor_of(batch->changes, batch->len);
    struct change change;
    drop_gone(w);
    while (change_decode(&c, &change)) {
        if (change.kind != ROW_session)
            continue;
        struct shadow *s = map_get(&w->shadow, (uint64_t)change.id);
        if (!s && change.gone)
            continue;
        if (!s) {
            s = xcalloc(1, sizeof(*s));
            map_put(&w->shadow, (uint64_t)change.id, s);
        }
        s->gone = change.gone;
        if (!change.gone)
            s->row = change.session;
    }
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

void shadow_judge(struct world *w, const struct effect *e)
{
    struct wire *wire = wire_find(w, e->conn);
    if (!wire || e->err)
        return;
    if (e->kind == EFFECT_ALLOCATED && !is_stored(w, e->server_id, e->lobby, true))
        world_broken(w, "I7: lobby %d is answered with server %d before that is stored", e->lobby,
                     e->server_id);
    bool registered = wire->game && w->games[wire->actor].registered;
    int32_t server_id = registered ? w->games[wire->actor].server_id : 0;
    if (e->kind == EFFECT_ALLOCATE && registered && !is_stored(w, server_id, e->lobby, false))
        world_broken(w, "I7: server %d is given lobby %d before that is stored", server_id,
                     e->lobby);
}

void shadow_done(struct world *w)
{
    size_t at = 0;
    void *s = NULL;
    while ((s = map_next(&w->shadow, &at)))
        free(s);
    map_done(&w->shadow);
}
