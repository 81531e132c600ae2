/* A roster as it is stored: for each player i32 account, i8 team, i8 slot, i8 group, then his name
 * with a NUL. */
#include "core/lobby_roster.h"

#include "core/state.h"
#include "wire/put.h"

#include <string.h>

static struct lobby_roster *enter(struct core *core, const struct row_lobby_roster *row)
{
    struct lobby_roster *roster = xcalloc(1, sizeof(*roster));
    roster->object.kind = ROW_lobby_roster;
    roster->row = *row;
    row_own(ROW_lobby_roster, &roster->row);
    object_enter(core, &roster->object);
    return roster;
}

struct lobby_roster *lobby_roster_new(struct core *core, int64_t id,
                                      const struct lobby_wanted *wanted)
{
    struct buf b = {0};
    for (size_t i = 0; i < wanted->n_players; i++) {
        const struct lobby_entry *p = &wanted->players[i];
        put_i32(&b, p->account);
        put_i8(&b, p->team);
        put_i8(&b, p->slot);
        put_i8(&b, p->group);
        buf_append(&b, p->name.at, p->name.len);
        put_i8(&b, 0);
    }
    struct row_lobby_roster row = {.id = id, .players = {(const char *)b.data, b.len}};
    struct lobby_roster *roster = enter(core, &row);
    object_touch(core, &roster->object);
    buf_done(&b);
    return roster;
}

int lobby_roster_load_row(struct core *core, const struct row_lobby_roster *row)
{
    struct lobby *lobby = lobby_find(core, row->id);
    if (!lobby || lobby->roster)
        return ERR_FORMAT;
    lobby->roster = enter(core, row);
    lobby->roster->object.stored = true;
    return 0;
}

int lobby_roster_read(const struct row_lobby_roster *row, struct lobby_player *ret, size_t cap)
{
    struct cursor c = cursor_of(row->players.at, row->players.len);
    size_t n = 0;
    for (; c.at < c.end && n < cap; n++) {
        ret[n].account = cursor_i32(&c);
        ret[n].team = cursor_i8(&c);
        ret[n].slot = cursor_i8(&c);
        ret[n].group = cursor_i8(&c);
        ret[n].name = cursor_str(&c).at;
        if (cursor_failed(&c) || ret[n].team < 0 || ret[n].team > 1)
            return ERR_FORMAT;
    }
    return c.at == c.end ? (int)n : ERR_FORMAT;
}
