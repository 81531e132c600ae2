/* A simulated chat server. It asks, repeats itself, cancels, loses its connection, and remembers
 * what it was told: an answer once given must be given again, whatever happened in between. */
#include "sim/world.h"

#include "base/err.h"

#include <inttypes.h>
#include <string.h>

enum { ALL_REGIONS = 3, UNDERWAY_MAX_MS = 60 * 1000, HOUR_MS = 3600 * 1000 };

static void wake_after(struct world *w, struct chat *c, int64_t delay_ms)
{
    world_after(w, delay_ms, HAPPENS_CHAT)->actor = c->index;
}

void chat_init(struct world *w, struct chat *c, int index)
{
    memset(c, 0, sizeof(*c));
    c->index = index;
    c->ask_every_ms = random_between(&w->random, 300, 15 * 1000);
    wake_after(w, c, random_between(&w->random, 0, 5000));
}

static void say_hello(struct world *w, struct chat *c)
{
    struct wire *wire = wire_open(w, WIRE_CHAT, c->index);
    c->conn = wire->id;
    c->registered = false;
    struct letter *l = letter_new(EVENT_CHAT_HELLO, c->conn);
    for (uint8_t i = 0; i < ALL_REGIONS; i++)
        l->list[i] = i;
    char name[16] = "chat-?";
    name[5] = (char)('a' + c->index);
    l->event.chat_hello = (struct chat_mgr_handshake){
        .service_token = STR("x"),
        .chat_server_id = letter_text(l, name),
        .regions = {ALL_REGIONS, l->list, ALL_REGIONS},
    };
    wire_to_plane(w, l);
}

static void ask(struct world *w, struct chat *c, struct lobby *lobby)
{
    struct random *r = &w->random;
    struct letter *l = letter_new(EVENT_ALLOCATE, c->conn);
    l->event.allocate = (struct chat_mgr_server_allocation_request){
        .lobby = lobby->id,
        .game_type = 1,
        .region = (int8_t)(random_chance(r, 40) ? REGION_AUTO : random_between(r, 0, 2)),
        .player_count = 4,
        .average_rating = 1500,
    };
    wire_to_plane(w, l);
    if (lobby->state == LOBBY_NEW)
        lobby->state = LOBBY_ASKED;
}

static void cancel(struct world *w, struct chat *c, struct lobby *lobby)
{
    struct letter *l = letter_new(EVENT_CANCEL, c->conn);
    l->event.cancel.lobby = lobby->id;
    wire_to_plane(w, l);
    lobby->unsure = true;
}

static struct lobby *new_lobby(struct world *w, struct chat *c)
{
    if (c->n_lobbies == MAX_LOBBIES)
        return NULL;
    struct lobby *lobby = &c->lobbies[c->n_lobbies++];
    *lobby = (struct lobby){.id = c->n_lobbies}; /* ids of different chat servers overlap */
    (void)w;
    return lobby;
}

/* One of the last few. */
static struct lobby *recent_lobby(struct world *w, struct chat *c)
{
    int64_t first = c->n_lobbies > 20 ? c->n_lobbies - 20 : 0;
    return &c->lobbies[random_between(&w->random, first, c->n_lobbies - 1)];
}

void chat_wake(struct world *w, struct chat *c)
{
    wake_after(w, c, random_between(&w->random, 1, 2 * c->ask_every_ms));
    if (!c->conn) {
        say_hello(w, c);
        return;
    }
    if (!c->registered)
        return;
    wire_to_plane(w, letter_new(EVENT_CHAT_HEARTBEAT, c->conn));
    if (w->quiet)
        return;
    struct lobby *fresh = new_lobby(w, c);
    if (fresh) {
        ask(w, c, fresh);
        struct happening *again =
            world_after(w, random_between(&w->random, 0, 1500), HAPPENS_REPEAT);
        again->actor = c->index;
        again->life = fresh->id;
    }
    if (random_chance(&w->random, 40))
        ask(w, c, recent_lobby(w, c));
    if (random_chance(&w->random, 8))
        cancel(w, c, recent_lobby(w, c));
}

static struct lobby *find_lobby(struct chat *c, int32_t id)
{
    return id >= 1 && id <= c->n_lobbies ? &c->lobbies[id - 1] : NULL;
}

/* A finished ticket is kept for a while (or while it is among the newest); after that its lobby id
 * may be given anew, and nothing can be said about it. An answer can be under way for longer than
 * its match lasts, so the time is counted from before it was heard. */
static bool is_remembered(const struct world *w, const struct lobby *lobby)
{
    bool few_kept = w->config.limits.tickets_kept < MAX_LOBBIES;
    int64_t since_ms = lobby->given_core_ms - UNDERWAY_MAX_MS;
    return !few_kept && world_core_ms(w) - since_ms < w->config.timeouts.keep_ms;
}

static void hear_success(struct world *w, struct chat *c, struct lobby *lobby,
                         const struct effect *e)
{
    w->result->successes++;
    bool same = lobby->server_id == e->server_id && str_eq(str_of(lobby->token), e->token);
    bool sure = !lobby->unsure && is_remembered(w, lobby);
    if (lobby->state == LOBBY_GIVEN && sure && !same)
        world_broken(w, "I4/I5: chat %d lobby %d was answered %d %s, now %d %.*s", c->index,
                     lobby->id, lobby->server_id, lobby->token, e->server_id, (int)e->token.len,
                     e->token.at);
    if (lobby->ended && sure)
        world_broken(w, "I4: chat %d lobby %d was over and is given again", c->index, lobby->id);
    if (!same) {
        lobby->ended = lobby->lost = false;
        lobby->given_core_ms = world_core_ms(w);
    }
    lobby->state = LOBBY_GIVEN;
    lobby->server_id = e->server_id;
    (void)str_copy(lobby->token, sizeof(lobby->token), e->token);
}

static void hear_refusal(struct world *w, struct chat *c, struct lobby *lobby,
                         const struct effect *e)
{
    if (e->err == ERR_INTERNAL || e->err == ERR_TOO_MANY)
        return; /* says nothing about the lobby */
    bool sure = !lobby->unsure && is_remembered(w, lobby);
    if (lobby->state == LOBBY_GIVEN && sure && e->err != ERR_INVALID_LOBBY)
        world_broken(w, "I4/I5: chat %d lobby %d was given, now refused: %s", c->index, lobby->id,
                     err_code(e->err));
    if (e->err == ERR_INVALID_LOBBY)
        lobby->ended = true;
    else if (lobby->state != LOBBY_GIVEN || !sure)
        lobby->state = LOBBY_REFUSED;
}

void chat_repeat(struct world *w, struct chat *c, int64_t lobby)
{
    if (c->registered)
        ask(w, c, &c->lobbies[lobby - 1]);
}

static void hear_answer(struct world *w, struct chat *c, const struct effect *e)
{
    struct lobby *lobby = find_lobby(c, e->lobby);
    w->result->answers++;
    if (!lobby)
        world_broken(w, "chat %d was answered for lobby %d, which it never asked for", c->index,
                     e->lobby);
    else if (e->err == 0)
        hear_success(w, c, lobby, e);
    else
        hear_refusal(w, c, lobby, e);
}

static void hear_event(struct lobby *lobby, enum match_event event)
{
    if (event == MATCH_ENDED)
        lobby->ended = lobby->state == LOBBY_GIVEN || lobby->ended;
    lobby->lost = event == MATCH_LOST || (lobby->lost && event == MATCH_READY);
}

/* Whatever was lost when the faults ended has come back or was given up since. That can be told
 * only where nothing is forgotten in between. */
void chat_check_beliefs(struct world *w, const struct chat *c)
{
    bool forgetful = w->config.timeouts.keep_ms < w->now_ms + HOUR_MS ||
                     w->config.limits.tickets_kept < MAX_LOBBIES;
    for (int i = 0; i < c->n_lobbies && c->registered && !forgetful; i++) {
        const struct lobby *lobby = &c->lobbies[i];
        if (lobby->lost && lobby->state == LOBBY_GIVEN && !lobby->unsure && !lobby->ended)
            world_broken(w, "I7: chat %d was never told how lobby %d went on after it was lost",
                         c->index, lobby->id);
    }
}

void chat_hear(struct world *w, struct chat *c, const struct effect *e)
{
    if (e->conn != c->conn)
        return;
    struct lobby *lobby = find_lobby(c, e->lobby);
    switch (e->kind) {
    case EFFECT_CHAT_HELLO:
        if (e->err)
            return;
        c->registered = true;
        for (int i = 0; i < 10 && c->n_lobbies > 0; i++)
            ask(w, c, recent_lobby(w, c)); /* what was I told before? */
        break;
    case EFFECT_ALLOCATED:
        hear_answer(w, c, e);
        break;
    case EFFECT_CANCELLED:
        /* From here on the lobby may be given anew, and answers under way may be of either life. */
        if (lobby && e->err == 0)
            lobby->state = LOBBY_CANCELLED;
        break;
    case EFFECT_MATCH_EVENT:
        if (lobby)
            hear_event(lobby, (enum match_event)e->event);
        break;
    case EFFECT_PING:
        wire_to_plane(w, letter_new(EVENT_PONG, c->conn));
        break;
    default:
        break;
    }
}

void chat_missed(struct chat *c, const struct effect *effect)
{
    struct lobby *lobby = effect->kind == EFFECT_MATCH_EVENT ? find_lobby(c, effect->lobby) : NULL;
    if (lobby)
        lobby->lost = false;
}

void chat_disconnected(struct world *w, struct chat *c)
{
    (void)w;
    c->conn = 0;
    c->registered = false;
}
