/* Simulated services that seek places for players: alone, where their friends are, with a party.
 * Some ask over HTTP and ask again until they know; others leave it to a broker. They repeat
 * themselves, change their minds, and sometimes use a name for something else. Of each request
 * everything that was ever said is compared. */
#include "sim/world.h"

#include "base/buf.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUSH_MS = 300,
    PATIENCE_MS = 15 * 1000,    /* then an answer was lost */
    REPEAT_MS = 60 * 1000,      /* well below the shortest time for which one is kept */
    GIVE_UP_MS = 6 * 60 * 1000, /* he forgets it */
};

static void wake_after(struct world *w, const struct seeker *s, int64_t delay_ms, bool once)
{
    struct happening *h = world_after(w, delay_ms, HAPPENS_SEEKER);
    h->actor = s->index;
    h->life = once;
}

/* Rooms are small, so lines form. */
static void configure_arena(struct world *w)
{
    struct random *r = &w->random;
    struct fleet_config *arena = &w->config.fleets[w->n_fleets - 1];
    arena->queue_when_full = random_chance(r, 80);
    arena->queue_ms = random_between(r, 20, 120) * 1000;
    arena->spread = random_chance(r, 30);
    arena->taken_at_once = random_chance(r, 25);
    arena->token = random_chance(r, 20) ? TOKEN_PLAYER_ID : TOKEN_OPAQUE;
}

/* Many do not fit, and wait until seats are held for them. */
static void come_in_parties(struct world *w)
{
    struct random *r = &w->random;
    struct fleet_config *arena = &w->config.fleets[1];
    w->in_parties = true;
    arena->queue_when_full = true;
    arena->queue_ms = random_between(r, 60, 180) * 1000;
    arena->max_players = (int32_t)random_between(r, 3, 5);
}

void seekers_init(struct world *w)
{
    configure_arena(w);
    if (random_chance(&w->random, 60))
        cluster_init(w);
    w->n_seekers = (int)random_between(&w->random, 2, MAX_SEEKERS);
    for (int i = 0; i < w->n_seekers; i++) {
        struct seeker *s = &w->seekers[i];
        *s = (struct seeker){.index = i};
        s->bus = random_chance(&w->random, 60) ? BUS_NATS : BUS_HTTP;
        wake_after(w, s, random_between(&w->random, 5 * 1000, 30 * 1000), false);
    }
    world_after(w, 1000, HAPPENS_BROKER);
    if (random_chance(&w->random, 30))
        come_in_parties(w);
}

void seeker_name(int player, char dst[NAME_SIZE])
{
    (void)snprintf(dst, NAME_SIZE, player < MAX_PLAYERS ? "p%d" : "long-named-player-%d", player);
}

static int some_player(struct world *w, bool pods)
{
    int64_t i = random_between(&w->random, 0, w->n_players - 1 + (pods ? LONG_NAMED : 0));
    return i < w->n_players ? (int)i : MAX_PLAYERS + (int)i - w->n_players;
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

struct ask *ask_numbered(struct world *w, int64_t number)
{
    struct ask *ask = &w->asks[number % MAX_ASKS];
    return number > 0 && ask->number == number ? ask : NULL;
}

/* "ask 17" */
struct ask *ask_named(struct world *w, struct str name)
{
    char text[NAME_SIZE];
    if (!str_copy(text, sizeof(text), name) || strncmp(text, "ask ", 4) != 0)
        return NULL;
    return ask_numbered(w, strtoll(text + 4, NULL, 10));
}

static void choose_others(struct world *w, struct ask *ask)
{
    struct random *r = &w->random;
    if (random_chance(r, w->in_parties ? 20 : 45)) {
        ask->n_friends = (int)random_between(r, 1, ASK_OTHERS);
        for (int i = 0; i < ask->n_friends; i++)
            ask->friends[i] = some_player(w, ask->pods);
    }
    if (random_chance(r, w->in_parties ? 50 : 20)) {
        ask->n_party = (int)random_between(r, 1, ASK_OTHERS);
        for (int i = 0; i < ask->n_party; i++)
            ask->party[i] = some_player(w, ask->pods);
    }
}

/* Nothing will ever be said of it that is worth comparing. */
static bool is_settled(const struct world *w, const struct ask *ask)
{
    bool never = ask->allocation == 0 && w->now_ms - ask->asked_ms > GIVE_UP_MS &&
                 (ask->doors == 0 || ask->heard_final);
    return ask->forgotten || never || (ask->over && !ask->owed && !ask->unacked);
}

/* NULL when the one that had its place is not settled yet. */
static struct ask *ask_new(struct world *w, enum seek_bus bus)
{
    struct random *r = &w->random;
    struct ask *ask = &w->asks[(w->n_asks + 1) % MAX_ASKS];
    if (ask->number && !is_settled(w, ask))
        return NULL;
    *ask = (struct ask){.number = ++w->n_asks, .bus = bus};
    ask->pods = w->pods && random_chance(r, 50);
    ask->player = some_player(w, ask->pods);
    choose_others(w, ask);
    ask->any_room = random_chance(r, 60);
    ask->rejoin = random_chance(r, 60);
    ask->move_party = random_chance(r, 15);
    ask->priority = random_chance(r, 20) ? (int32_t)random_between(r, 1, 3) : 0;
    whither_draw(w, &ask->whither);
    ask->whither.alone = true;
    ask->asked_ms = w->now_ms;
    ask->asked_core_ms = world_core_ms(w);
    return ask;
}

static struct str name_in(struct parcel *parcel, int at, int player)
{
    seeker_name(player, parcel->names[at]);
    return str_of(parcel->names[at]);
}

void ask_send(struct world *w, struct ask *ask, enum seek_bus bus, conn_id conn, bool disputed)
{
    struct parcel *parcel = parcel_new(EVENT_SEEK, conn);
    struct seek *s = &parcel->event.seek;
    (void)snprintf(parcel->text, sizeof(parcel->text), "ask %" PRId64, ask->number);
    *s = (struct seek){
        .name = str_of(parcel->text),
        .bus = bus,
        .player = name_in(parcel, 0, ask->player),
        .info = STR("{}"),
        .from = STR(""),
        .friends = parcel->friends,
        .n_friends = (size_t)ask->n_friends,
        .party = parcel->party,
        .n_party = (size_t)ask->n_party,
        .any_room = ask->any_room,
        .rejoin = ask->rejoin,
        .move_party = ask->move_party,
        .priority = ask->priority,
        .where = {.fleet = ask->pods ? STR("pods") : STR("arena")},
        .arguments = {disputed},
    };
    whither_fill(&ask->whither, &s->where);
    for (int i = 0; i < ask->n_friends; i++)
        parcel->friends[i] = name_in(parcel, 1 + i, ask->friends[i]);
    for (int i = 0; i < ask->n_party; i++)
        parcel->party[i] = name_in(parcel, 1 + ASK_OTHERS + i, ask->party[i]);
    parcel_send(w, parcel);
}

static void say_http(struct world *w, struct ask *ask)
{
    ask->conn = ++w->next_conn;
    ask->sent_ms = w->now_ms;
    ask_send(w, ask, BUS_HTTP, ask->conn, false);
    if (random_chance(&w->random, 5)) /* twice at once, by two who know nothing of each other */
        ask_send(w, ask, BUS_HTTP, ++w->next_conn, false);
}

static void say_disputed(struct world *w, struct ask *ask)
{
    ask->disputed = ++w->next_conn;
    ask_send(w, ask, BUS_HTTP, ask->disputed, true);
}

static void say_cancel(struct world *w, const struct ask *ask)
{
    struct parcel *parcel = parcel_new(EVENT_UNSEEK, ++w->next_conn);
    (void)snprintf(parcel->text, sizeof(parcel->text), "ask %" PRId64, ask->number);
    parcel->event.unseek.name = str_of(parcel->text);
    parcel_send(w, parcel);
}

/* ── a service's day ───────────────────────────────────────────────────────────────────────── */

static bool may_repeat(const struct world *w, const struct ask *ask)
{
    return !ask->over || world_core_ms(w) - ask->asked_core_ms < REPEAT_MS;
}

/* Through any bus, whichever it came by before. */
static void say_elsewhere(struct world *w, struct ask *ask)
{
    broker_ask(w, ask, random_chance(&w->random, 50) ? BUS_NATS : BUS_PUBSUB);
}

/* True when he is done with it. */
static bool go_on(struct world *w, struct seeker *s, struct ask *ask)
{
    bool waits = ask->conn && w->now_ms - ask->sent_ms < PATIENCE_MS;
    int64_t die = random_between(&w->random, 0, 99);
    if (!w->quiet && ask->heard_queued && !ask->heard_final && die < 12)
        say_cancel(w, ask);
    if (!w->quiet && s->bus == BUS_HTTP && die >= 97 && !ask->over && ask->allocation)
        say_disputed(w, ask);
    if (s->bus == BUS_HTTP && !waits && !ask->heard_final && may_repeat(w, ask))
        say_http(w, ask);
    else if (ask->heard_final && !w->quiet && die < 30 && may_repeat(w, ask))
        s->bus == BUS_HTTP ? say_http(w, ask) : broker_ask(w, ask, s->bus);
    if (!w->quiet && die >= 85 && die < 97 && may_repeat(w, ask))
        say_elsewhere(w, ask);
    return ask->heard_final || w->now_ms - ask->asked_ms > GIVE_UP_MS;
}

void seekers_rush(struct world *w)
{
    if (w->n_seekers == 0 || w->quiet || !random_chance(&w->random, 40))
        return;
    int64_t index = random_between(&w->random, 0, w->n_seekers - 1);
    wake_after(w, &w->seekers[index], random_between(&w->random, 3, RUSH_MS), true);
}

void seeker_wake(struct world *w, struct seeker *s, bool once)
{
    struct ask *ask = ask_numbered(w, s->ask);
    if (!once)
        wake_after(w, s, random_between(&w->random, 1000, 16 * 1000), false);
    if (ask && !go_on(w, s, ask))
        return;
    s->ask = 0;
    ask = w->quiet ? NULL : ask_new(w, s->bus);
    if (!ask)
        return;
    s->ask = ask->number;
    if (s->bus == BUS_HTTP)
        say_http(w, ask);
    else
        broker_ask(w, ask, s->bus);
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static void hear_seat(struct world *w, const struct ask *ask, const struct reply *reply,
                      const struct reply_seat *seat)
{
    const struct row_room *room = map_get(&w->shadow_rooms, (uint64_t)reply->session);
    char account[NAME_SIZE];
    seeker_name(ask->player, account);
    const char *name = seat->account[0] ? seat->account : account;
    int index = (int)strtol(name + 1, NULL, 10);
    if (ask->pods) {
        const char *digits = strrchr(name, '-');
        struct happening *h =
            world_after(w, random_between(&w->random, 1000, 150 * 1000), HAPPENS_LEAVE);
        h->actor = digits ? (int)strtol(digits + 1, NULL, 10) : index;
    } else if (room && index < w->n_players) {
        player_given(w, &w->players[index], seat, room->server, reply->session,
                     w->config.fleets[1].taken_at_once);
    }
}

void ask_heard(struct world *w, struct ask *ask, const struct reply *reply)
{
    bool first = !ask->heard_final;
    if (reply->status == ENVELOPE_QUEUED) {
        ask->heard_queued = true;
        return;
    }
    ask->heard_final = true;
    for (int i = 0; first && reply->status == ENVELOPE_SUCCESS && i < reply->n_seats; i++)
        hear_seat(w, ask, reply, &reply->seats[i]);
}

/* What was refused for the moment is asked again. */
void seeker_hear(struct world *w, const struct reply *reply)
{
    struct ask *ask = reply->status >= 0 ? ask_named(w, str_of(reply->text)) : NULL;
    for (int i = 0; i < MAX_ASKS; i++) {
        if (w->asks[i].conn == reply->conn)
            w->asks[i].conn = 0;
    }
    if (ask && reply->object)
        ask_heard(w, ask, reply);
}

void seekers_plane_died(struct world *w)
{
    for (int i = 0; i < MAX_ASKS; i++)
        w->asks[i].conn = w->asks[i].disputed = 0;
}

/* ── what left ─────────────────────────────────────────────────────────────────────────────── */

static uint64_t digest_of(const struct envelope_result *r)
{
    struct buf b = {0};
    envelope_write(&b, r);
    uint64_t digest = str_hash(0, (struct str){(const char *)b.data, b.len});
    buf_done(&b);
    return digest;
}

static void judge_final(struct world *w, struct ask *ask, const struct effect *e)
{
    uint64_t digest = digest_of(e->result);
    bool stored = ask->over && ask->allocation == e->object;
    /* Where few are kept, one may be answered and forgotten within a batch: it is never stored. */
    if (!stored && w->config.limits.tickets_kept < MAX_ASKS)
        return;
    if (!stored)
        world_broken(w, "I7: ask %" PRId64 " is answered before that is stored", ask->number);
    if (ask->told_final && digest != ask->final_digest)
        world_broken(w, "I4: ask %" PRId64 " has two answers", ask->number);
    bool first = !ask->told_final;
    ask->told_final = true;
    ask->final_digest = digest;
    world_mix(w, digest);
    if (first && ask->pods && e->result->status == ENVELOPE_SUCCESS)
        cluster_judge_success(w, ask, e);
}

/* A refusal of the moment has no allocation, and is no answer. */
void asks_judge(struct world *w, const struct effect *e)
{
    struct ask *ask = e->result ? ask_named(w, e->result->ticket_id) : NULL;
    if (!ask || ask->forgotten)
        return;
    if (e->conn && e->conn == ask->disputed) {
        ask->disputed = 0;
        if (!e->err && ask->allocation)
            world_broken(w, "I4: ask %" PRId64 " took other arguments", ask->number);
        return;
    }
    if (!e->object)
        return;
    if (e->kind == EFFECT_RESULT && !(ask->doors & e->verb))
        world_broken(w, "ask %" PRId64 " is told to a bus that has not asked", ask->number);
    if (e->result->status != ENVELOPE_QUEUED)
        judge_final(w, ask, e);
    else if (ask->told_final)
        world_broken(w, "ask %" PRId64 " was answered and waits again", ask->number);
}

void asks_check(struct world *w)
{
    for (int i = 0; i < MAX_ASKS && !w->broken; i++) {
        const struct ask *ask = &w->asks[i];
        if (!ask->number || ask->forgotten || ask->doors == 0)
            continue;
        if (!ask->heard_final)
            world_broken(w, "ask %" PRId64 " was never answered", ask->number);
        else if (ask->allocation && ask->published != ask->doors)
            world_broken(w, "ask %" PRId64 " was asked through buses %d and answered through %d",
                         ask->number, ask->doors, ask->published);
        else if (ask->owed)
            world_broken(w, "ask %" PRId64 " was answered, and is owed for ever", ask->number);
    }
}
