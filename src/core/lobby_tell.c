/* What players are told. A card is made once for all who hear it in a step. */
#include "core/lobby_tell.h"

#include "core/client.h"
#include "core/state.h"

#include <string.h>

/* ── cards ─────────────────────────────────────────────────────────────────────────────────── */

static struct chat_list keep_team(struct core *core, const struct lobby *lobby, int8_t team)
{
    struct buf out = {0};
    struct chat_list list = {0};
    for (int i = 0; i < lobby->n_players; i++) {
        const struct lobby_player *p = &lobby->players[i];
        if (p->team != team)
            continue;
        struct chat_player_entry entry = {p->account, str_of(p->name), p->slot};
        chat_encode_player(&out, &entry);
        list.n++;
    }
    struct str kept = text_keep(core, (struct str){(const char *)out.data, out.len});
    list.data = (const uint8_t *)kept.at;
    list.len = out.len;
    buf_done(&out);
    return list;
}

static const struct lobby_card *card_of(struct core *core, const struct lobby *lobby)
{
    struct lobby_card *card = arena_alloc(&core->out->arena, sizeof(*card));
    *card = (struct lobby_card){
        .game_type = lobby->row.game_type,
        .game_mode = lobby->row.game_mode,
        .map = text_keep(core, str_of(lobby->row.map)),
        .teams = {keep_team(core, lobby, 0), keep_team(core, lobby, 1)},
    };
    return card;
}

static struct effect *news(struct core *core, enum effect_kind kind, const struct lobby *lobby,
                           conn_id conn)
{
    struct effect *e = effect_add(core, kind, conn);
    e->lobby = lobby_number(lobby->row.id);
    return e;
}

/* ── one player, on one connection ─────────────────────────────────────────────────────────── */

static void loading_of(struct core *core, struct lobby *lobby, const struct lobby_player *whose,
                       conn_id conn)
{
    struct effect *e = news(core, EFFECT_LOADING, lobby, conn);
    e->account = whose->account;
    e->on = *lobby_flags_of(lobby, whose) & LOBBY_LOADED;
}

/* With who has loaded, he himself too: so he knows whether his word was heard. */
static void created(struct core *core, struct lobby *lobby, conn_id conn)
{
    const struct lobby_card *card = card_of(core, lobby);
    news(core, EFFECT_LOBBY_CREATED, lobby, conn)->card = card;
    for (int i = 0; i < lobby->n_players; i++) {
        const struct lobby_player *player = &lobby->players[i];
        if (*lobby_flags_of(lobby, player) & LOBBY_LOADED)
            loading_of(core, lobby, player, conn);
    }
}

/* What everybody hears of a start; false when there is nothing to say, for its match is over. */
struct start {
    struct str ip;
    int32_t port;
    struct str token;
    const struct lobby_card *card;
};

static bool start_of(struct core *core, const struct lobby *lobby, struct start *ret)
{
    char token[TOKEN_SIZE];
    const struct session *session = session_find(core, lobby->row.session);
    if (!session || !session_is_live(session))
        return false;
    *ret = (struct start){
        .ip = text_keep(core, str_of(session->server->row.ip)),
        .port = session->server->row.port,
        .token = text_keep(core, token_of(core, &session->row, token)),
        .card = card_of(core, lobby),
    };
    return true;
}

static void started(struct core *core, const struct lobby *lobby, const struct start *start,
                    conn_id conn)
{
    struct effect *e = news(core, EFFECT_MATCH_START, lobby, conn);
    e->ip = start->ip;
    e->port = start->port;
    e->token = start->token;
    e->card = start->card;
}

/* Queued again is only who never played. */
static bool queued_again(const struct lobby *lobby)
{
    return lobby->row.requeue && lobby->row.state == LOBBY_ABORTED;
}

static void over(struct core *core, struct lobby *lobby, struct lobby_player *player, conn_id conn)
{
    struct str text = text_keep(core, str_of(lobby->row.reason));
    struct effect *e = news(core, EFFECT_MATCH_ABORTED, lobby, conn);
    e->text = text;
    e->on = queued_again(lobby);
    player->sent = true;
    lobby->sent_batch = core->seq + 1;
    if (!link_in_list(&lobby->in_sent))
        list_append(&core->lobbies_sent, &lobby->in_sent);
}

/* ── all of them ───────────────────────────────────────────────────────────────────────────── */

void lobby_tell_created(struct core *core, struct lobby *lobby)
{
    const struct lobby_card *card = NULL;
    for (int i = 0; i < lobby->n_players; i++) {
        conn_id conn = client_conn(core, lobby->players[i].account);
        if (!conn)
            continue;
        if (!card)
            card = card_of(core, lobby);
        news(core, EFFECT_LOBBY_CREATED, lobby, conn)->card = card;
    }
}

void lobby_tell_loading(struct core *core, struct lobby *lobby, const struct lobby_player *player)
{
    for (int i = 0; i < lobby->n_players; i++) {
        const struct lobby_player *other = &lobby->players[i];
        conn_id conn = other == player ? 0 : client_conn(core, other->account);
        if (conn)
            loading_of(core, lobby, player, conn);
    }
}

void lobby_tell_started(struct core *core, struct lobby *lobby)
{
    struct start start;
    if (!start_of(core, lobby, &start))
        return;
    for (int i = 0; i < lobby->n_players; i++) {
        conn_id conn = client_conn(core, lobby->players[i].account);
        if (conn)
            started(core, lobby, &start, conn);
    }
}

void lobby_tell_over(struct core *core, struct lobby *lobby)
{
    for (int i = 0; i < lobby->n_players; i++) {
        struct lobby_player *player = &lobby->players[i];
        conn_id conn = client_conn(core, player->account);
        *lobby_flags_of(lobby, player) |= LOBBY_OWED;
        if (conn)
            over(core, lobby, player, conn);
    }
}

/* ── whoever comes, and goes ───────────────────────────────────────────────────────────────── */

static struct lobby_player *first_of(const struct core *core, int32_t account)
{
    struct chain_link *n = chain_first(&core->lobby_players, (uint32_t)account);
    return n ? container_of(n, struct lobby_player, by_account) : NULL;
}

static struct lobby_player *next_of(const struct lobby_player *player)
{
    struct chain_link *n = player->by_account.next;
    return n ? container_of(n, struct lobby_player, by_account) : NULL;
}

int lobbies_heard_by(const struct core *core, int32_t account)
{
    int n = 0;
    for (const struct lobby_player *p = first_of(core, account); p; p = next_of(p))
        n++;
    return n;
}

/* What is long ago nobody wants to hear, and whoever is matched while he is away for days must not
 * cost more each time. What he may still go to is the last that he is not told of. */
static bool is_dropped_before(const struct lobby_player *a, const struct lobby_player *b)
{
    bool live = lobby_is_live(a->lobby);
    if (live != lobby_is_live(b->lobby))
        return !live;
    return a->lobby->row.id < b->lobby->row.id;
}

/* He is owed it no more: else it would be told when the others are, or after the next start. */
static void drop_oldest(struct core *core, int32_t account)
{
    struct lobby_player *oldest = first_of(core, account);
    for (struct lobby_player *p = oldest; p; p = next_of(p)) {
        if (is_dropped_before(p, oldest))
            oldest = p;
    }
    *lobby_flags_of(oldest->lobby, oldest) &= (uint8_t)~LOBBY_OWED;
    object_touch(core, &oldest->lobby->object);
    lobby_unlist_player(core, oldest);
}

void lobby_list_player(struct core *core, struct lobby_player *player)
{
    if (player->listed)
        return;
    chain_add(&core->lobby_players, (uint32_t)player->account, &player->by_account);
    player->listed = true;
    if (lobbies_heard_by(core, player->account) > LOBBY_HEARD_MAX)
        drop_oldest(core, player->account);
}

void lobby_unlist_player(struct core *core, struct lobby_player *player)
{
    if (player->listed)
        chain_remove(&core->lobby_players, (uint32_t)player->account, &player->by_account);
    player->listed = false;
}

struct lobby_player *lobby_player_loading(const struct core *core, int32_t account)
{
    struct lobby_player *p = first_of(core, account);
    while (p && p->lobby->row.state != LOBBY_LOADING)
        p = next_of(p);
    return p;
}

/* Of several lobbies only the newest is the one he should be in. */
static struct lobby_player *newest_live(const struct core *core, int32_t account)
{
    struct lobby_player *newest = NULL;
    for (struct lobby_player *p = first_of(core, account); p; p = next_of(p)) {
        bool newer = !newest || p->lobby->row.id > newest->lobby->row.id;
        if (lobby_is_live(p->lobby) && newer)
            newest = p;
    }
    return newest;
}

/* The oldest of his lobbies after that one that owes him the word of its end. */
static struct lobby_player *next_owed(const struct core *core, int32_t account, int64_t after)
{
    struct lobby_player *next = NULL;
    for (struct lobby_player *p = first_of(core, account); p; p = next_of(p)) {
        bool owed = *lobby_flags_of(p->lobby, p) & LOBBY_OWED && p->lobby->row.id > after;
        if (owed && (!next || p->lobby->row.id < next->lobby->row.id))
            next = p;
    }
    return next;
}

void lobbies_tell_client(struct core *core, int32_t account, conn_id conn)
{
    struct start start;
    int64_t at = 0;
    for (struct lobby_player *p = NULL; (p = next_owed(core, account, at));) {
        at = p->lobby->row.id;
        over(core, p->lobby, p, conn);
    }
    struct lobby_player *p = newest_live(core, account);
    if (p && p->lobby->row.state == LOBBY_LOADING)
        created(core, p->lobby, conn);
    else if (p && start_of(core, p->lobby, &start))
        started(core, p->lobby, &start, conn);
}

void lobbies_unsent(struct core *core, int32_t account)
{
    for (struct lobby_player *p = first_of(core, account); p; p = next_of(p))
        p->sent = false;
}

void lobbies_told_leave(struct core *core)
{
    LIST_EACH(&core->lobbies_sent, lobby, struct lobby, in_sent)
    {
        lobby->sent_batch = core->seq;
    }
}

void lobbies_told_left(struct core *core)
{
    LIST_EACH(&core->lobbies_sent, lobby, struct lobby, in_sent)
    {
        if (lobby->sent_batch > core->left_seq)
            continue;
        list_remove(&lobby->in_sent);
        for (int i = 0; i < lobby->n_players; i++) {
            struct lobby_player *player = &lobby->players[i];
            if (!player->sent)
                continue;
            player->sent = false;
            *lobby_flags_of(lobby, player) &= (uint8_t)~LOBBY_OWED;
            lobby_unlist_player(core, player);
            object_touch(core, &lobby->object);
        }
    }
}

void lobby_tell_again(struct core *fresh, const struct effect *lost)
{
    struct lobby *lobby = lobby_of_number(fresh, lost->lobby);
    const struct peer *peer = peer_find(fresh, lost->conn);
    struct lobby_player *player =
        lobby && peer && peer->role == PEER_CLIENT ? lobby_player_of(lobby, peer->account) : NULL;
    struct start start;
    if (!player)
        return;
    if (lost->kind == EFFECT_LOBBY_CREATED && lobby->row.state == LOBBY_LOADING) {
        created(fresh, lobby, lost->conn);
    } else if (lost->kind == EFFECT_LOADING && lobby->row.state == LOBBY_LOADING) {
        const struct lobby_player *whose = lobby_player_of(lobby, lost->account);
        if (whose)
            loading_of(fresh, lobby, whose, lost->conn);
    } else if (lost->kind == EFFECT_MATCH_START && lobby->row.state == LOBBY_STARTED) {
        if (start_of(fresh, lobby, &start))
            started(fresh, lobby, &start, lost->conn);
    } else if (lost->kind == EFFECT_MATCH_ABORTED && *lobby_flags_of(lobby, player) & LOBBY_OWED) {
        over(fresh, lobby, player, lost->conn);
    }
}
