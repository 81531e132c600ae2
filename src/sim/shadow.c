/* I7: nothing leaves before what it rests on is stored. The shadow is what the disk holds, kept by
 * the simulator itself from the bytes that were committed; each answer and command that leaves is
 * held against it. */
#include "sim/world.h"

#include "base/buf.h"
#include "core/row.h"

#include <stdlib.h>

void shadow_stored(struct world *w, const struct store_batch *batch)
{
    struct cursor c = cursor_of(batch->changes, batch->len);
    struct change change;
    while (change_decode(&c, &change)) {
        if (change.kind != ROW_session)
            continue;
        if (change.gone) {
            free(map_remove(&w->shadow, (uint64_t)change.id));
            continue;
        }
        struct row_session *row = map_get(&w->shadow, (uint64_t)change.id);
        if (!row) {
            row = xmalloc(sizeof(*row));
            map_put(&w->shadow, (uint64_t)change.id, row);
        }
        *row = change.session;
    }
}

static bool is_stored(const struct world *w, int32_t server_id, int32_t lobby, bool opened)
{
    size_t at = 0;
    const struct row_session *row = NULL;
    while ((row = map_next(&w->shadow, &at))) {
        if (row->server == server_id && row->lobby == lobby && (!opened || row->opened_core_ms > 0))
            return true;
    }
    return false;
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
    void *row = NULL;
    while ((row = map_next(&w->shadow, &at)))
        free(row);
    map_done(&w->shadow);
}
