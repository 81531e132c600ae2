/* A simulated player at the client port: connects, loads sooner, later or never, changes his mind,
 * drops out and comes back in time or too late, connects a second time, speaks for another. What he
 * is told on one connection must make sense by itself. */
#include "sim/world.h"

#include <inttypes.h>

enum { FLIPS_MANY = 40, SHORT_MS = 20 * 1000, AWAY_MS = 8 * 1000, AWAY_LONG_MS = 70 * 1000 };

static int32_t account_of(const struct client *c)
{
    return c->index + 1;
}

static void wake_after(struct world *w, const struct client *c, int64_t delay_ms)
{
    world_after(w, delay_ms, HAPPENS_CLIENT)->actor = c->index;
}

/* Where READY is not waited for some never say it. */
static void be_ready_for_lobbies(struct world *w, struct game *g)
{
    struct random *r = &w->random;
    g->max += (int32_t)random_between(r, 2, 8);
    g->says_ready = random_chance(r, w->config.fleets[0].ready_lobbies ? 95 : 50);
    if (random_chance(r, 70))
        g->refuse_percent = g->silent_percent = 0;
}

/* Soon after they took a lobby. Where they stay away for long there are few of them, and players
 * are patient and slow, so that some lobbies are held for the one they have until their time is
 * over. */
static void let_servers_drop(struct world *w)
{
    struct random *r = &w->random;
    bool for_long = random_chance(r, 60);
    w->matchmaker.one_region = for_long;
    for (int i = 0; i < w->n_clients && for_long; i++) {
        w->clients[i].away_percent = w->clients[i].never_percent = 0;
        w->clients[i].slow_percent = 60;
    }
    for (int i = 0; i < w->n_games; i++) {
        struct game *g = &w->games[i];
        g->drop_percent = (int)random_between(r, for_long ? 40 : 5, for_long ? 90 : 30);
        g->away_max_ms = for_long ? AWAY_LONG_MS : AWAY_MS;
        if (for_long)
            g->match_max_ms = SHORT_MS; /* so that they have slots when they are back */
        if (for_long && g->region == w->games[0].region && i > 0 && random_chance(r, 70))
            g->region = (int8_t)((g->region + 1) % 3);
    }
}

/* In most of these worlds there are servers left for lobbies: chat servers ask less often, more
 * servers have slots and say READY, and in half of them they drop out soon after. */
static void leave_servers(struct world *w)
{
    struct random *r = &w->random;
    int wanted = (int)random_between(r, 1, MAX_GAMES - 2);
    for (; w->n_games < wanted; w->n_games++)
        game_init(w, &w->games[w->n_games], w->n_games);
    for (int i = 0; i < w->n_games; i++)
        be_ready_for_lobbies(w, &w->games[i]);
    if (random_chance(r, 75))
        let_servers_drop(w);
    for (int i = 0; i < w->n_chats; i++)
        w->chats[i].ask_every_ms *= random_between(r, 1, 8);
}

void clients_init(struct world *w)
{
    struct random *r = &w->random;
    w->n_clients = (int)random_between(r, 3, MAX_CLIENTS);
    bool calm = random_chance(r, 40);
    for (int i = 0; i < w->n_clients; i++) {
        struct client *c = &w->clients[i];
        *c = (struct client){.index = i};
        c->away_percent = calm ? 0 : (int)random_between(r, 0, 12);
        c->slow_percent = 20;
        c->never_percent = calm ? 0 : (int)random_between(r, 0, 15);
        wake_after(w, c, random_between(r, 0, 8000));
    }
    w->config.fleets[0].ready_lobbies = random_chance(r, 60);
    if (random_chance(r, 85))
        leave_servers(w);
    w->matchmaker.every_ms = random_between(r, 1000, 15 * 1000);
    w->matchmaker.abort_percent = (int)random_between(r, 0, 8);
    world_after(w, random_between(r, 2000, 20 * 1000), HAPPENS_MATCHMAKER);
}

static void connect_now(struct world *w, struct client *c)
{
    struct wire *wire = wire_open(w, WIRE_CLIENT, c->index);
    c->conn = wire->id;
    c->greeted = false;
    c->lobby = 0;
    struct letter *l = letter_new(EVENT_CLIENT_HELLO, c->conn);
    l->event.client_hello.account = account_of(c);
    wire_to_plane(w, l);
}

static void hang_up(struct world *w, struct client *c)
{
    conn_id conn = c->conn;
    c->conn = 0;
    c->greeted = false;
    c->lobby = 0;
    wire_closed_by_peer(w, conn);
}

static void say(struct world *w, const struct client *c, int32_t account, bool loaded)
{
    struct letter *l = letter_new(EVENT_LOADING, c->conn);
    l->event.loading = (struct chat_cl_player_loading_status){c->loading, account, loaded};
    wire_to_plane(w, l);
}

static void load_after(struct world *w, const struct client *c, int64_t delay_ms)
{
    struct happening *h = world_after(w, delay_ms, HAPPENS_LOADS);
    h->actor = c->index;
    h->life = c->loading;
}

void client_loads(struct world *w, struct client *c, int32_t lobby)
{
    if (!c->greeted || c->lobby != lobby || c->loading != lobby)
        return; /* he is away, or it is over: if it is not, he hears of it again */
    if (c->loaded && c->flips == 0)
        return;
    c->loaded = !c->loaded;
    say(w, c, account_of(c), c->loaded);
    if (c->flips == 0)
        return;
    c->flips--;
    load_after(w, c, random_between(&w->random, 0, c->flips > FLIPS_MANY / 2 ? 300 : 6000));
}

static void speak_for_another(struct world *w, const struct client *c)
{
    int32_t account = (int32_t)random_between(&w->random, 1, w->n_clients);
    bool loaded = random_chance(&w->random, 80);
    if (account != account_of(c))
        say(w, c, account, loaded);
}

void client_wake(struct world *w, struct client *c)
{
    struct random *r = &w->random;
    wake_after(w, c, random_between(r, 1000, 20 * 1000));
    if (!c->conn) {
        connect_now(w, c);
        return;
    }
    if (!c->greeted)
        return;
    shadow_lobbies_owed(w, c);
    if (w->quiet)
        return;
    if (random_chance(r, c->away_percent))
        hang_up(w, c);
    else if (random_chance(r, 3))
        connect_now(w, c); /* the older one is closed by the control plane */
    else if (c->lobby && random_chance(r, 30))
        speak_for_another(w, c);
}

/* ── what he hears ─────────────────────────────────────────────────────────────────────────── */

static void hear_created(struct world *w, struct client *c, const struct effect *e)
{
    struct random *r = &w->random;
    if (c->lobby && c->lobby != e->lobby)
        world_broken(w, "I7: client %d was never told how lobby %d went on, and is in %d now",
                     c->index, c->lobby, e->lobby);
    bool again = c->loading == e->lobby;
    c->lobby = c->loading = e->lobby;
    if (again && c->loaded) {
        say(w, c, account_of(c), true);
        return;
    }
    c->loaded = false;
    c->flips = 0;
    if (random_chance(r, c->never_percent))
        return;
    if (random_chance(r, 8))
        c->flips = random_chance(r, 20) ? FLIPS_MANY : 2 * (int)random_between(r, 1, 3);
    load_after(w, c,
               random_between(r, 0, random_chance(r, c->slow_percent) ? 55 * 1000 : 8 * 1000));
}

static void hear_outcome(struct client *c, const struct effect *e)
{
    if (c->lobby == e->lobby)
        c->lobby = 0;
}

void client_hear(struct world *w, struct client *c, const struct effect *e)
{
    if (e->conn != c->conn)
        return;
    switch (e->kind) {
    case EFFECT_CLIENT_HELLO:
        c->greeted = e->err == 0;
        c->greeted_ms = w->now_ms;
        break;
    case EFFECT_LOBBY_CREATED:
        hear_created(w, c, e);
        break;
    case EFFECT_MATCH_START:
    case EFFECT_MATCH_ABORTED:
        hear_outcome(c, e);
        break;
    default:
        break;
    }
}

void client_disconnected(struct world *w, struct client *c, conn_id conn)
{
    if (c->conn != conn)
        return;
    c->conn = 0;
    c->greeted = false;
    c->lobby = 0;
    (void)w;
}
