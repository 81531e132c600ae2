/* GameServers as they were last seen. Three tell: lists, the watch, and answers to what we write.
 * They overtake each other, so what is older than what is known is passed over, as far as versions
 * can be compared; and what only an answer to an allocation says stays until the watch has caught
 * up with it, or a list that began after it shows otherwise. */
#include "api/agones_own.h"

#include "base/err.h"
#include "base/log.h"
#include "core/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t name_key(const struct cluster_fleet *f, struct str name)
{
    return str_hash(f->index + 1, name);
}

struct gameserver *gameserver_named(struct cluster_fleet *f, struct str name)
{
    struct chain_link *n = chain_first(&f->agones->by_name, name_key(f, name));
    for (; n; n = n->next) {
        struct gameserver *g = container_of(n, struct gameserver, by_name);
        if (g->fleet == f && str_eq(str_of(g->name), name))
            return g;
    }
    return NULL;
}

static struct gameserver *enter(struct cluster_fleet *f, struct str name)
{
    struct agones *a = f->agones;
    struct gameserver *g = xcalloc(1, sizeof(*g));
    g->fleet = f;
    g->name = strndup(name.at, name.len);
    g->tokens = strdup("");
    if (!g->name || !g->tokens)
        abort(); /* out of memory, as in xcalloc */
    list_init(&g->changes);
    list_init(&g->flying);
    list_append(&f->servers, &g->in_fleet);
    chain_add(&a->by_name, name_key(f, name), &g->by_name);
    a->n_kept++;
    return g;
}

/* ── tokens ────────────────────────────────────────────────────────────────────────────────── */

static void forget_tokens(struct gameserver *g)
{
    for (size_t i = 0; i < g->n_places; i++)
        chain_remove(&g->fleet->agones->by_token, str_hash(0, g->places[i].token),
                     &g->places[i].by_token);
    free(g->places);
    g->places = NULL;
    g->n_places = 0;
}

static void set_tokens(struct gameserver *g, struct str tokens)
{
    struct str one;
    size_t n = 0;
    if (str_eq(str_of(g->tokens), tokens))
        return;
    forget_tokens(g);
    free(g->tokens);
    g->tokens = xmalloc(tokens.len + 1);
    memcpy(g->tokens, tokens.len > 0 ? tokens.at : "", tokens.len);
    g->tokens[tokens.len] = '\0';
    for (struct str rest = str_of(g->tokens); tokens_next(&rest, &one);)
        n++;
    g->places = xcalloc(n + 1, sizeof(*g->places));
    for (struct str rest = str_of(g->tokens); tokens_next(&rest, &one);) {
        struct token_place *p = &g->places[g->n_places++];
        p->server = g;
        p->token = one;
        chain_add(&g->fleet->agones->by_token, str_hash(0, one), &p->by_token);
    }
}

struct gameserver *gameserver_with_token(struct agones *a, struct str token,
                                         const struct gameserver *but)
{
    struct chain_link *n = chain_first(&a->by_token, str_hash(0, token));
    for (; n; n = n->next) {
        struct token_place *p = container_of(n, struct token_place, by_token);
        if (p->server != but && p->server->state != GAMESERVER_OVER && str_eq(p->token, token))
            return p->server;
    }
    return NULL;
}

/* ── what plays there ──────────────────────────────────────────────────────────────────────── */

static void play(struct gameserver *g, int64_t server, int64_t session)
{
    struct agones *a = g->fleet->agones;
    g->playing = true;
    g->server = server;
    g->session = session;
    g->fleet->playing++;
    g->odd = 0;
    list_append(&g->fleet->playing_ones, &g->in_playing);
    g->fleet->changed = true;
    map_put(&a->by_server, (uint64_t)server, g);
}

static void tell_inited(const struct gameserver *g)
{
    struct news *n = news_add(g->fleet->agones, NEWS_INITED, g->fleet, g->server);
    snprintf(n->name, sizeof(n->name), "%s", g->name);
    snprintf(n->address, sizeof(n->address), "%s", g->address);
    memcpy(n->ports, g->ports, sizeof(n->ports));
    n->n_ports = g->n_ports;
}

static void unplay(struct gameserver *g)
{
    map_remove(&g->fleet->agones->by_server, (uint64_t)g->server);
    g->playing = false;
    g->fleet->playing--;
    list_remove(&g->in_playing);
    g->fleet->changed = true;
}

static void stop(struct gameserver *g, struct str said)
{
    struct news *n = news_add(g->fleet->agones, NEWS_EXITED, g->fleet, g->server);
    snprintf(n->text, sizeof(n->text), "The GameServer %.100s is %.*s", g->name,
             (int)(said.len < 64 ? said.len : 64), said.at);
    unplay(g);
    g->shutdown = false; /* whoever plays there next is somebody else */
    gameserver_drop_changes(g, ERR_NOT_FOUND, "the GameServer is gone");
}

/* The room that core has on it is reached there. */
static bool is_where_core_has_it(const struct gameserver *g)
{
    struct view_room room;
    return view_room(pipeline_core(g->fleet->agones->doors->pipeline), g->session, &room) &&
           room.opened_wall_ms != 0 && room.n_ports > 0 && g->n_ports > 0 &&
           room.ports[0] == g->ports[0] && strcmp(room.address, g->address) == 0;
}

/* An answer that was lost and came about all the same, after we had asked again: two GameServers
 * for one server. One is enough. */
static bool is_second(struct gameserver *g, int64_t server, int64_t session)
{
    struct gameserver *first = map_get(&g->fleet->agones->by_server, (uint64_t)server);
    if (!first || first == g)
        return false;
    g->session = session;
    if (first->fleet == g->fleet && is_where_core_has_it(g) && !is_where_core_has_it(first)) {
        unplay(first);
        gameserver_end(first);
        return false;
    }
    gameserver_end(g);
    return true;
}

static void start(struct gameserver *g, int64_t server, int64_t session)
{
    struct agones *a = g->fleet->agones;
    struct allocating *spawn = map_get(&a->spawns, (uint64_t)server);
    if (is_second(g, server, session))
        return;
    play(g, server, session);
    if (spawn && spawn->doomed)
        gameserver_end(g);
    else
        tell_inited(g);
    if (spawn) {
        gameserver_take_changes(g, &spawn->changes);
        allocating_over(spawn);
    }
}

/* ── what is seen ──────────────────────────────────────────────────────────────────────────── */

static void set_version(struct gameserver *g, struct str version)
{
    free(g->version);
    g->version = xmalloc(version.len + 1);
    memcpy(g->version, version.at, version.len);
    g->version[version.len] = '\0';
    g->stale = false;
}

static void set_place(struct gameserver *g, struct str address, const uint16_t *ports, int n)
{
    if (address.len > 0)
        (void)str_copy(g->address, sizeof(g->address), address);
    if (n > 0) {
        memcpy(g->ports, ports, sizeof(g->ports));
        g->n_ports = n;
    }
}

/* Whether it says more than we know. A list that began after what we know was learnt is the truth,
 * even when its versions are lower (a cluster may be restored). Else what is older is passed over,
 * and so is what has not heard of our allocation yet, be it that an earlier one of ours plays there
 * still; but an answer of the GameServer's own has. */
static bool is_news(const struct gameserver *g, const struct gameserver_object *o, bool plays,
                    enum seen_in where)
{
    if (where == SEEN_IN_LIST && g->seen < g->fleet->listing)
        return true;
    if (g->version && version_is_older(o->version, str_of(g->version)))
        return false;
    bool heard = plays && o->server == g->server;
    return !g->presumed || heard || o->state == GAMESERVER_OVER || where == SEEN_IN_ANSWER;
}

static void take(struct gameserver *g, const struct gameserver_object *o, bool ours)
{
    bool plays = ours && o->state == GAMESERVER_ALLOCATED;
    set_version(g, o->version);
    set_tokens(g, o->tokens);
    set_place(g, o->address, o->ports, o->n_ports);
    g->state = o->state;
    g->presumed = false;
    if (g->playing && (!plays || o->server != g->server))
        stop(g, o->said);
    if (plays && !g->playing)
        start(g, o->server, o->session);
    if (g->state == GAMESERVER_OVER)
        gameserver_drop_changes(g, ERR_NOT_FOUND, "the GameServer is gone");
    g->shutdown &= plays;
    g->wipe = ours && g->state == GAMESERVER_OTHER;
    if (g->wipe)
        gameserver_make_busy(g);
}

struct gameserver *gameserver_seen(struct cluster_fleet *f, const struct gameserver_object *o,
                                   enum seen_in where)
{
    struct gameserver *g = gameserver_named(f, o->name);
    bool ours = o->server != 0 && str_eq(o->instance, str_of(f->agones->instance));
    if (!g && !ours && f->agones->n_kept >= AGONES_KEPT_MAX)
        return NULL;
    g = g ? g : enter(f, o->name);
    bool news = is_news(g, o, ours && o->state == GAMESERVER_ALLOCATED, where);
    g->seen = f->listing;
    if (news)
        take(g, o, ours);
    return g;
}

static void cut_call(struct gameserver *g)
{
    if (!g->call)
        return;
    http_call_drop(g->call);
    g->call = NULL;
    g->fleet->agones->n_writes--;
}

void gameserver_presume(const struct allocating *spawn, const struct allocated *answer)
{
    struct cluster_fleet *f = spawn->fleet;
    struct gameserver *g = gameserver_named(f, answer->name);
    if (g && g->playing && g->server == spawn->server)
        return; /* the watch was faster */
    g = g ? g : enter(f, answer->name);
    if (g->playing)
        stop(g, STR("allocated anew"));
    free(g->version);
    g->version = NULL;
    g->seen = f->listing;
    g->presumed = true;
    g->wipe = g->shutdown = false;
    g->state = GAMESERVER_ALLOCATED;
    g->server = spawn->server;
    set_tokens(g, str_of(spawn->tokens));
    cut_call(g); /* its answer may be of before */
    gameserver_drop_changes(g, ERR_NOT_FOUND, "the GameServer is another's now");
    set_place(g, answer->address, answer->ports, answer->n_ports);
    start(g, spawn->server, spawn->session);
}

/* ── their end ─────────────────────────────────────────────────────────────────────────────── */

static void leave(struct gameserver *g)
{
    struct agones *a = g->fleet->agones;
    cut_call(g);
    forget_tokens(g);
    list_remove(&g->in_busy);
    list_remove(&g->in_fleet);
    chain_remove(&a->by_name, name_key(g->fleet, str_of(g->name)), &g->by_name);
    a->n_kept--;
    free(g->name);
    free(g->version);
    free(g->tokens);
    free(g);
}

void gameserver_gone(struct gameserver *g)
{
    g->state = GAMESERVER_OVER;
    if (g->playing)
        stop(g, STR("deleted"));
    gameserver_drop_changes(g, ERR_NOT_FOUND, "the GameServer is gone");
    leave(g);
}

void gameservers_sweep(struct cluster_fleet *f)
{
    LIST_EACH(&f->servers, g, struct gameserver, in_fleet)
    {
        if (g->seen < f->listing)
            gameserver_gone(g);
    }
}

/* Nobody is told. */
void gameservers_free(struct cluster_fleet *f)
{
    LIST_EACH(&f->servers, g, struct gameserver, in_fleet)
    {
        if (g->playing)
            unplay(g);
        gameserver_drop_changes(g, ERR_NOT_FOUND, "");
        g->call = NULL; /* its client has ended */
        leave(g);
    }
}
