/* Lobbies as the disk has them, what players and servers said, and what left about them: each
 * starts once or is aborted once, on the word of all its players and of its server, and everybody
 * hears it. */
#include "sim/world.h"

#include "base/buf.h"
#include "base/err.h"
#include "core/row.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LOADING = 1, STARTED, ENDED, ABORTED };
enum { FLAG_LOADED = 1 };

enum {
    WORDS_SURE = 30, /* who changes his mind more often is cut off sometime */
    READY_MAX = 16,
    HEARD_MAX = 16, /* lobbies that a player is told of when he comes: the newest */
    LATE_SLACK_MS = 3 * 1000,
    LATE_MS = 100 * 1000, /* the disk's time, once it is late, and that of a stopped plane */
    OWED_MS = 200 * 1000, /* the same for news of its end */
    OVER_MS = 240 * 1000, /* … and for its server to hear so and be known to have done it */
    FORGET_SURE_MS = 200 * 1000,
    ADMIT_MS = 10 * 1000,
    PROMPT_MS = 1000, /* much less than a server's time to acknowledge */
    AWAKE_MS = 10 * 1000,
    KNOWN_MS = 30 * 1000,
};

struct shadow_player {
    int32_t account;
    bool ever_loaded; /* he said so, on a connection of his own */
    bool loaded;      /* … the last time */
    int words;
    int64_t said_ms;
    int64_t reign;   /* in which that was heard */
    conn_id created; /* the connections on which he was told last */
    conn_id started;
    conn_id aborted;
    bool told_end;
};

struct shadow_lobby {
    struct row_lobby row;
    bool gone; /* with the newest batch */
    struct shadow_player players[MAX_ROSTER];
    int n_players;
    uint64_t ready[READY_MAX]; /* digests of the tokens with which servers said READY */
    int n_ready;
    uint32_t acked;   /* bit per game that took it */
    uint32_t asked;   /* … that was asked */
    struct {          /* the first of them */
        conn_id conn; /* 0 = none, or others were asked since */
        int64_t asked_ms;
        bool took_it; /* at once, and that was heard */
    } server;
    bool start_noted;
    bool abort_noted;
    bool start_left;
    bool abort_left;
    char token[TEXT_MAX]; /* as players were told */
    int32_t port;
    int64_t started_ms; /* when that was stored; 0 = not */
    int64_t over_ms;    /* … */
    int64_t late_ms;    /* since when it should be over; 0 = no */
};

static struct shadow_lobby *find(const struct world *w, int64_t number)
{
    return map_get(&w->shadow_lobbies, (uint64_t)number);
}

static struct shadow_player *player_of(struct shadow_lobby *s, int32_t account)
{
    for (int i = 0; i < s->n_players; i++) {
        if (s->players[i].account == account)
            return &s->players[i];
    }
    return NULL;
}

static bool is_over(const struct shadow_lobby *s)
{
    return s->row.state == ENDED || s->row.state == ABORTED;
}

/* Its players are owed the news of that. */
static bool ended_badly(const struct shadow_lobby *s)
{
    return s->row.state == ABORTED || (s->row.state == ENDED && s->row.cause);
}

/* Where few are kept it may have ended, been told and been forgotten within one batch: nobody saw
 * how. Where they are not, take_lobby has said so. */
static bool ended_unseen(const struct shadow_lobby *s)
{
    return s->gone && !is_over(s);
}

static uint64_t digest_of(struct str s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (uint8_t)s.at[i]) * 0x100000001b3u;
    return h;
}

/* Whoever is on that connection; NULL when it is none of a player. */
static const struct client *client_on(const struct world *w, conn_id conn)
{
    const struct wire *wire = wire_find(w, conn);
    return wire && wire->kind == WIRE_CLIENT ? &w->clients[wire->actor] : NULL;
}

/* ── what was said ─────────────────────────────────────────────────────────────────────────── */

static void hear_loading(struct world *w, const struct event *event)
{
    const struct client *c = client_on(w, event->conn);
    struct shadow_lobby *s = find(w, event->loading.lobby);
    struct shadow_player *p = c && s ? player_of(s, c->index + 1) : NULL;
    if (!p || event->loading.account != p->account)
        return;
    p->ever_loaded = p->ever_loaded || event->loading.loaded;
    p->loaded = event->loading.loaded;
    p->words += c->conn == event->conn ? 1 : WORDS_SURE; /* an older one may not be listened to */
    p->said_ms = w->now_ms;
    p->reign = w->reign;
}

/* Who is stopped hears it too late. */
static void hear_taken(const struct world *w, struct shadow_lobby *s, conn_id conn)
{
    bool prompt = w->now_ms - s->server.asked_ms <= PROMPT_MS;
    if (conn == s->server.conn && prompt && w->now_ms - w->leader->stopped_until_ms > AWAKE_MS)
        s->server.took_it = true;
}

static void hear_server(struct world *w, const struct event *event, int32_t lobby)
{
    const struct wire *wire = wire_find(w, event->conn);
    struct shadow_lobby *s = find(w, lobby);
    if (!s || !wire)
        return;
    if (event->kind == EVENT_READY && s->n_ready < READY_MAX)
        s->ready[s->n_ready++] = digest_of(event->ready.match_token);
    if (event->kind == EVENT_READY || event->allocate_ack.success)
        s->acked |= 1u << wire->actor;
    if (event->kind == EVENT_ALLOCATE_ACK && event->allocate_ack.success)
        hear_taken(w, s, event->conn);
}

void shadow_lobbies_event(struct world *w, const struct event *event)
{
    if (w->n_clients == 0)
        return;
    if (event->kind == EVENT_LOADING)
        hear_loading(w, event);
    else if (event->kind == EVENT_READY)
        hear_server(w, event, event->ready.lobby);
    else if (event->kind == EVENT_ALLOCATE_ACK)
        hear_server(w, event, event->allocate_ack.lobby);
}

/* ── what is stored ────────────────────────────────────────────────────────────────────────── */

static void drop_gone(struct world *w)
{
    size_t at = 0;
    for (struct shadow_lobby *s = NULL; (s = map_next(&w->shadow_lobbies, &at));) {
        if (!s->gone)
            continue;
        map_remove(&w->shadow_lobbies, (uint64_t)s->row.id);
        free(s);
        at = 0; /* the table has moved */
    }
}

static bool hardly_kept(const struct world *w)
{
    return w->config.timeouts.keep_ms < FORGET_SURE_MS ||
           w->config.limits.tickets_kept < MAX_LOBBIES;
}

/* All said that they have loaded, and nobody took it back in time: before the batch, on this
 * plane, and not while what it did was lost. */
static void judge_words(struct world *w, struct shadow_lobby *s)
{
    for (int i = 0; i < s->n_players; i++) {
        const struct shadow_player *p = &s->players[i];
        bool in_time = p->said_ms < w->submitted_before_ms && p->said_ms > w->commit_failed_ms;
        bool sure = p->words < WORDS_SURE && p->reign == w->reign && in_time;
        bool stored = i < s->row.flags_len && s->row.flags[i] & FLAG_LOADED;
        if (!stored || !p->ever_loaded || (!p->loaded && sure))
            world_broken(w, "L1: lobby %" PRId64 " started and player %d has not loaded", s->row.id,
                         p->account);
    }
}

/* Who leads can speak to him; one that leads no more may not have said so yet. */
static bool is_reached(const struct world *w, const struct client *c)
{
    const struct wire *wire = wire_find(w, c->conn);
    return c->greeted && wire && w->leader && wire->node == w->leader->index;
}

/* It waited for somebody who was there all the time: he must have known. */
static void judge_known(struct world *w, const struct shadow_lobby *s)
{
    for (int i = 0; i < s->n_players && s->row.cause == LOBBY_CAUSE_LOADING; i++) {
        const struct shadow_player *p = &s->players[i];
        const struct client *c = &w->clients[p->account - 1];
        bool there = is_reached(w, c) && w->now_ms - c->greeted_ms > KNOWN_MS;
        if (there && p->created != c->conn)
            world_broken(w, "I7: client %d was never told of lobby %" PRId64 ", which waited",
                         c->index, s->row.id);
    }
}

static void judge_move(struct world *w, struct shadow_lobby *s, int8_t before)
{
    int8_t after = s->row.state;
    bool allowed = before == 0 || before == LOADING || after == before ||
                   (before == STARTED && after == ENDED);
    if (!allowed)
        world_broken(w, "L1: lobby %" PRId64 " was in state %d and is in %d", s->row.id, before,
                     after);
    bool started = after == STARTED || after == ENDED;
    if (started && s->started_ms == 0) {
        s->started_ms = w->now_ms;
        judge_words(w, s);
    }
    if (!is_over(s) || s->over_ms)
        return;
    s->over_ms = w->now_ms;
    judge_known(w, s);
}

/* A lobby and its roster come in the same batch, in any order. */
static struct shadow_lobby *keep(struct world *w, int64_t id)
{
    struct shadow_lobby *s = find(w, id);
    if (!s) {
        s = xcalloc(1, sizeof(*s));
        s->row.id = id;
        (void)map_put(&w->shadow_lobbies, (uint64_t)id, s);
    }
    return s;
}

static void take_lobby(struct world *w, const struct change *change)
{
    struct shadow_lobby *s = find(w, change->id);
    if (change->gone) {
        if (s && !is_over(s) && !hardly_kept(w))
            world_broken(w, "L1: lobby %" PRId64 " is forgotten in state %d", s->row.id,
                         s->row.state);
        if (s)
            s->gone = true;
        return;
    }
    keep(w, change->id)->row = change->lobby;
}

static void take_roster(struct world *w, const struct change *change)
{
    if (change->gone)
        return;
    struct shadow_lobby *s = keep(w, change->id);
    struct cursor c = cursor_of(change->lobby_roster.players.at, change->lobby_roster.players.len);
    while (c.at < c.end && s->n_players < MAX_ROSTER) {
        s->players[s->n_players++] = (struct shadow_player){.account = cursor_i32(&c)};
        for (int i = 0; i < 3; i++) /* team, slot, group */
            (void)cursor_i8(&c);
        (void)cursor_str(&c);
    }
    if (cursor_failed(&c) || c.at != c.end)
        world_broken(w, "the roster of lobby %" PRId64 " cannot be read", s->row.id);
}

/* It starts or is aborted when both its times are over. */
static void judge_late(struct world *w, struct shadow_lobby *s, int64_t core_ms)
{
    const struct core_timeouts *t = &w->config.timeouts;
    int64_t most_ms = t->loading_ms + t->ticket_ms + LATE_SLACK_MS;
    if (s->row.state != LOADING || core_ms - s->row.opened_core_ms <= most_ms)
        return;
    if (s->late_ms == 0)
        s->late_ms = w->now_ms;
    else if (w->now_ms - s->late_ms > LATE_MS)
        world_broken(w, "I6: lobby %" PRId64 " loads for %" PRId64 " ms", s->row.id,
                     core_ms - s->row.opened_core_ms);
}

static void judge_all(struct world *w, int64_t core_ms)
{
    int64_t loads_in[MAX_CLIENTS + 1] = {0};
    size_t at = 0;
    for (struct shadow_lobby *s = NULL; (s = map_next(&w->shadow_lobbies, &at));) {
        judge_late(w, s, core_ms);
        for (int i = 0; i < s->n_players && s->row.state == LOADING && !s->gone; i++) {
            int64_t *in = &loads_in[s->players[i].account];
            if (*in)
                world_broken(w, "L3: player %d loads in lobbies %" PRId64 " and %" PRId64,
                             s->players[i].account, *in, s->row.id);
            *in = s->row.id;
        }
    }
}

void shadow_lobbies_stored(struct world *w, const struct store_batch *batch)
{
    struct cursor c = cursor_of(batch->changes, batch->len);
    struct change change;
    if (w->n_clients == 0)
        return;
    drop_gone(w);
    while (change_decode(&c, &change)) {
        const struct shadow_lobby *s = find(w, change.id);
        int8_t before = s ? s->row.state : 0;
        if (change.kind == ROW_lobby_roster)
            take_roster(w, &change);
        if (change.kind != ROW_lobby)
            continue;
        take_lobby(w, &change);
        if (!change.gone)
            judge_move(w, find(w, change.id), before);
    }
    judge_all(w, batch->core_ms);
}

/* ── what leaves ───────────────────────────────────────────────────────────────────────────── */

static void count(struct world *w, const struct effect *e)
{
    struct shadow_lobby *s = find(w, e->object);
    bool started = e->note == NOTE_LOBBY_STARTED;
    bool aborted = e->note == NOTE_LOBBY_ABORTED;
    w->result->lobbies += e->note == NOTE_LOBBY_CREATED;
    w->result->started += started;
    w->result->moved += e->note == NOTE_LOBBY_MOVED;
    if (aborted)
        w->result->aborted[e->reason]++;
    if (!s || !(started || aborted))
        return;
    if (s->start_noted || s->abort_noted)
        world_broken(w, "L1: lobby %" PRId64 " is %s after it was %s", s->row.id,
                     started ? "started" : "aborted", s->start_noted ? "started" : "aborted");
    s->start_noted = s->start_noted || started;
    s->abort_noted = s->abort_noted || aborted;
}

/* Its server took it, and is ready where that is asked for. */
static bool server_agreed(const struct world *w, const struct shadow_lobby *s,
                          const struct effect *e)
{
    for (int i = 0; i < s->n_ready; i++) {
        if (s->ready[i] == digest_of(e->token))
            return true;
    }
    bool acked = false;
    for (int i = 0; i < w->n_games; i++)
        acked = acked || (w->games[i].port == e->port && s->acked & 1u << i);
    const struct fleet_config *fleet = &w->config.fleets[0];
    return (acked && !fleet->ready_lobbies && !fleet->ready_required) || s->n_ready == READY_MAX;
}

static void judge_start(struct world *w, struct shadow_lobby *s, struct shadow_player *p,
                        const struct effect *e)
{
    bool first = !s->start_left;
    if (s->started_ms == 0 && !ended_unseen(s))
        world_broken(w, "I7: player %d is sent into lobby %d, which has not started", p->account,
                     e->lobby);
    if (s->row.state == ABORTED || s->abort_left)
        world_broken(w, "L1: player %d is sent into lobby %d after its end was told", p->account,
                     e->lobby);
    if (p->started == e->conn)
        world_broken(w, "L1: player %d is sent into lobby %d twice", p->account, e->lobby);
    if (first && !server_agreed(w, s, e))
        world_broken(w, "L1: lobby %d starts without the word of its server", e->lobby);
    if (!first && (s->port != e->port || !str_eq(str_of(s->token), e->token)))
        world_broken(w, "L1: lobby %d starts on two servers", e->lobby);
    s->start_left = true;
    s->port = e->port;
    (void)str_copy(s->token, sizeof(s->token), e->token);
    p->started = e->conn;
}

static void judge_aborted(struct world *w, struct shadow_lobby *s, struct shadow_player *p,
                          const struct effect *e, bool leaves)
{
    if (!ended_badly(s) && !ended_unseen(s))
        world_broken(w, "I7: player %d is told that lobby %d is over, which is not stored",
                     p->account, e->lobby);
    if (e->on != (s->row.requeue && s->row.state == ABORTED) && !ended_unseen(s))
        world_broken(w, "player %d of lobby %d is told that he is queued: %d", p->account, e->lobby,
                     e->on);
    if (p->aborted == e->conn)
        world_broken(w, "player %d is told twice that lobby %d is over", p->account, e->lobby);
    s->abort_left = true;
    p->aborted = e->conn;
    p->told_end = p->told_end || leaves;
}

static void judge_news(struct world *w, const struct effect *e)
{
    const struct client *c = client_on(w, e->conn);
    struct shadow_lobby *s = find(w, e->lobby);
    struct shadow_player *p = c && s ? player_of(s, c->index + 1) : NULL;
    if (!c)
        return;
    if (!p)
        world_broken(w, "client %d is told of lobby %d, which is none of his", c->index, e->lobby);
    else if (e->kind == EFFECT_MATCH_START)
        judge_start(w, s, p, e);
    else if (e->kind == EFFECT_MATCH_ABORTED)
        judge_aborted(w, s, p, e, wire_find(w, e->conn)->plane_open);
    else if (p->started != e->conn && p->aborted != e->conn)
        p->created = e->conn;
    else
        world_broken(w, "client %d is told of lobby %d after he was told how it went on", c->index,
                     e->lobby);
}

static void note_asked(struct world *w, const struct effect *e)
{
    const struct wire *wire = wire_find(w, e->conn);
    struct shadow_lobby *s = find(w, e->lobby);
    if (!s || !wire)
        return;
    bool prompt = s->asked == 0 && w->now_ms - w->disk_slow_until_ms > AWAKE_MS;
    s->asked |= 1u << wire->actor;
    s->server.conn = prompt ? e->conn : 0;
    s->server.asked_ms = w->now_ms;
    s->server.took_it = false;
}

/* A lobby whose fleet does not wait for READY has its server when that took it: on the same
 * connection it is not taken away again as long as the lobby needs it; but what it said while
 * nothing could be stored is lost. */
static void judge_cancel(struct world *w, const struct effect *e)
{
    const struct fleet_config *fleet = &w->config.fleets[0];
    const struct shadow_lobby *s = find(w, e->lobby);
    if (!s || fleet->ready_lobbies || fleet->ready_required || s->server.conn != e->conn)
        return;
    bool needed = s->row.state == LOADING ||
                  (s->row.state == ABORTED && s->row.cause == LOBBY_CAUSE_ALLOCATION);
    if (s->server.took_it && needed && w->commit_failed_ms < s->server.asked_ms)
        world_broken(w, "L1: lobby %d gives up a server that took it", e->lobby);
}

/* A server asked whether he may enter. */
static void judge_entry(struct world *w, const struct effect *e)
{
    struct shadow_lobby *s = find(w, e->lobby);
    bool member = s && player_of(s, e->account);
    if (e->err == 0 && (!member || s->started_ms == 0))
        world_broken(w, "player %d is let into the match of lobby %d, of which he is no part",
                     e->account, e->lobby);
    bool plays = member && s->row.state == STARTED && w->now_ms - s->started_ms > ADMIT_MS;
    if (plays && e->err == ERR_NOT_PART_OF_MATCH && !w->was_banned[e->account])
        world_broken(w, "player %d is kept out of the match of lobby %d", e->account, e->lobby);
    int64_t since_ms = plays ? world_core_ms(w) - s->row.started_core_ms : 0;
    if (plays && e->err == ERR_MATCH_TOKEN_EXPIRED && w->submitted_reign == w->reign &&
        since_ms < w->config.timeouts.token_ms - ADMIT_MS)
        world_broken(w, "player %d is late for lobby %d after %" PRId64 " ms", e->account, e->lobby,
                     since_ms);
}

void shadow_lobbies_judge(struct world *w, const struct effect *e)
{
    if (w->n_clients == 0)
        return;
    switch (e->kind) {
    case EFFECT_NOTE:
        count(w, e);
        break;
    case EFFECT_LOBBY_CREATED:
    case EFFECT_LOADING:
    case EFFECT_MATCH_START:
    case EFFECT_MATCH_ABORTED:
        judge_news(w, e);
        break;
    case EFFECT_ALLOCATE:
        note_asked(w, e);
        break;
    case EFFECT_CANCEL:
        judge_cancel(w, e);
        break;
    case EFFECT_VALIDATE:
        if (e->lobby >= OWN_LOBBIES)
            judge_entry(w, e);
        break;
    default:
        break;
    }
}

/* ── in the end ────────────────────────────────────────────────────────────────────────────── */

/* He was away while as many others came and went as he is told of. */
static bool is_left_out(struct world *w, const struct client *c, const struct shadow_lobby *s)
{
    size_t at = 0;
    int newer = 0;
    for (struct shadow_lobby *other = NULL; (other = map_next(&w->shadow_lobbies, &at));)
        newer += other->row.id > s->row.id && player_of(other, c->index + 1) != NULL;
    return newer >= HEARD_MAX;
}

static void judge_owed(struct world *w, const struct client *c, int64_t within_ms)
{
    size_t at = 0;
    for (struct shadow_lobby *s = NULL; (s = map_next(&w->shadow_lobbies, &at));) {
        const struct shadow_player *p = player_of(s, c->index + 1);
        int64_t since_ms = s->over_ms > c->greeted_ms ? s->over_ms : c->greeted_ms;
        if (p && !s->gone && ended_badly(s) && !p->told_end && w->now_ms - since_ms > within_ms &&
            !is_left_out(w, c, s))
            world_broken(w, "I7: client %d is never told that lobby %" PRId64 " is over", c->index,
                         s->row.id);
    }
}

/* He is in a match that has started, and has not been in a newer lobby since: on each connection he
 * is told where it is. */
static void judge_sent(struct world *w, const struct client *c, int64_t within_ms)
{
    struct shadow_lobby *newest = NULL;
    size_t at = 0;
    for (struct shadow_lobby *s = NULL; (s = map_next(&w->shadow_lobbies, &at));) {
        if (player_of(s, c->index + 1) && (!newest || s->row.id > newest->row.id))
            newest = s;
    }
    bool forgetful = hardly_kept(w) || w->config.timeouts.keep_ms < w->now_ms;
    if (!newest || newest->row.state != STARTED || forgetful)
        return; /* there may have been a newer one */
    int64_t since_ms = newest->started_ms > c->greeted_ms ? newest->started_ms : c->greeted_ms;
    bool told = player_of(newest, c->index + 1)->started == c->conn;
    if (!told && w->now_ms - since_ms > within_ms)
        world_broken(w, "I7: client %d is never told that lobby %" PRId64 " has started", c->index,
                     newest->row.id);
}

void shadow_lobbies_owed(struct world *w, const struct client *c)
{
    judge_owed(w, c, OWED_MS);
    judge_sent(w, c, OWED_MS);
}

bool shadow_has_lobby(const struct world *w, int64_t id)
{
    return find(w, id) || hardly_kept(w);
}

bool shadow_lobby_is_over(const struct world *w, int32_t number)
{
    const struct shadow_lobby *s = find(w, number);
    return s && is_over(s) && w->now_ms - s->over_ms > OVER_MS;
}

void shadow_lobbies_check(struct world *w)
{
    size_t at = 0;
    for (const struct shadow_lobby *s = NULL; (s = map_next(&w->shadow_lobbies, &at));) {
        if (s->row.state == LOADING && !s->gone)
            world_broken(w, "I6: lobby %" PRId64 " loads for ever", s->row.id);
    }
    for (int i = 0; i < w->n_clients; i++) {
        const struct client *c = &w->clients[i];
        if (c->greeted && c->lobby)
            world_broken(w, "I7: client %d was never told how lobby %d went on", c->index,
                         c->lobby);
        if (!c->greeted)
            continue;
        judge_owed(w, c, LATE_MS);
        judge_sent(w, c, LATE_MS);
    }
}

void shadow_lobbies_done(struct world *w)
{
    size_t at = 0;
    for (void *s = NULL; (s = map_next(&w->shadow_lobbies, &at));)
        free(s);
    map_done(&w->shadow_lobbies);
}
