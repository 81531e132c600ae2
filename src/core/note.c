/* Notes: what core decided, and whom it is about. */
#include "core/state.h"
#include "wire/names.h"

struct effect *note_add(struct core *core, enum note note)
{
    struct effect *e = batch_effect(core->out, EFFECT_NOTE, 0);
    e->note = note;
    e->region_code = -1;
    return e;
}

/* Says whose request it was, when that is known. */
struct effect *note_refused(struct core *core, conn_id conn, int err)
{
    const struct peer *peer = peer_find(core, conn);
    const struct chat_server *chat = peer ? peer->chat : NULL;
    const struct server *server = peer && !peer->challenging ? peer->server : NULL;
    struct str name = chat ? text_keep(core, str_of(chat->row.name)) : (struct str){0};
    struct effect *note = note_add(core, NOTE_REFUSED);
    note->conn = conn;
    note->err = err;
    note->chat = name;
    if (chat)
        note->fleet_id = chat->row.fleet;
    if (server) {
        note->server_id = (int32_t)server->row.id;
        note->fleet_id = server->row.fleet;
        note->region_code = server->row.region;
    }
    return note;
}

static bool is_account(struct str s)
{
    return s.len > 0 && s.len <= 64;
}

static struct str keep_list(struct core *core, struct buf *list)
{
    struct str kept = text_keep(core, (struct str){(const char *)list->data, list->len});
    buf_done(list);
    return kept;
}

struct effect *note_of_players(struct core *core, const struct place *p, struct effect *note)
{
    struct buf others = {0};
    size_t n = p->n_players < PLACE_PLAYERS_MAX ? p->n_players : PLACE_PLAYERS_MAX;
    if (n > 0 && is_account(p->players[0].account))
        note->player = text_keep(core, p->players[0].account);
    for (size_t i = 1; i < n; i++) {
        if (is_account(p->players[i].account))
            names_add(&others, p->players[i].account);
    }
    note->party = keep_list(core, &others);
    return note;
}

struct effect *note_of_seekers(struct core *core, const struct seek *s, struct effect *note)
{
    struct buf others = {0};
    if (is_account(s->player))
        note->player = text_keep(core, s->player);
    for (size_t i = 0; i < s->n_party && i < PLACE_PLAYERS_MAX; i++) {
        if (is_account(s->party[i]))
            names_add(&others, s->party[i]);
    }
    note->party = keep_list(core, &others);
    return note;
}
