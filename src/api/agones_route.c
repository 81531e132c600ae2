/* Tokens on their way to GameServers and from them. A proxy sends to every endpoint that has a
 * token. So a token that is somewhere else is first taken from there, and only then added; when
 * that fails it is put back. */
#include "api/agones_own.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUTE_MS = 10 * 1000 }; /* then an addition has failed */

static struct route_change *change_new(const struct agones *a, struct str token, bool on)
{
    struct route_change *c = xcalloc(1, sizeof(*c));
    c->on = on;
    c->give_up_ms = a->now_ms + ROUTE_MS;
    (void)str_copy(c->token, sizeof(c->token), token);
    return c;
}

static void change_free(struct route_change *c)
{
    free(c->back);
    free(c);
}

static void tell_routed(struct agones *a, const struct route_change *c, int err, const char *why)
{
    if (c->seat == 0)
        return;
    struct news *n = news_add(a, NEWS_ROUTED, NULL, c->server);
    n->seat = c->seat;
    n->err = err;
    snprintf(n->text, sizeof(n->text), "%s", why);
}

static struct gameserver *holder(struct agones *a, struct str token, const struct gameserver *but);
static struct route_change *last_about(struct gameserver *g, struct str token);
static struct allocating *spawn_with(struct agones *a, struct str token,
                                     const struct allocating *but);
static void add(struct agones *a, struct gameserver *g, struct route_change *c);
static void dispatch(struct agones *a, struct route_change *c);

/* What is to be put back, if it comes to that, where the token was. */
static void remember(struct route_change *c, const struct gameserver *g)
{
    c->back = xstrdup(g->name);
    c->back_fleet = g->fleet;
}

/* … when the spawn comes to nothing. */
static void remember_for(struct allocating *spawn, struct str token, const struct gameserver *from)
{
    struct route_change *back = change_new(spawn->agones, token, true);
    remember(back, from);
    list_append(&spawn->taken, &back->in_list);
}

/* It was taken from somewhere for this, which came to nothing. Whoever has it by now keeps it, and
 * so does whoever is being given a server of his own with it: its request may be under way. */
static void put_back(struct agones *a, const struct route_change *c)
{
    struct str token = str_of(c->token);
    struct gameserver *from = gameserver_named(c->back_fleet, str_of(c->back));
    if (!from || !from->playing || from->shutdown)
        return;
    struct allocating *spawn = spawn_with(a, token, NULL);
    if (spawn) {
        remember_for(spawn, token, from);
        return;
    }
    struct gameserver *other = holder(a, token, from);
    const struct route_change *last = other ? last_about(other, token) : NULL;
    if (other && (!last || last->on))
        return;
    struct route_change *back = change_new(a, token, true);
    back->server = from->server;
    add(a, from, back);
}

void route_failed(struct agones *a, struct route_change *c, int err, const char *why)
{
    struct route_change *then = c->then;
    c->then = NULL;
    tell_routed(a, c, err, why);
    if (c->on && c->back)
        put_back(a, c);
    change_free(c);
    if (then)
        route_failed(a, then, err, why);
}

void route_done(struct agones *a, struct route_change *c)
{
    struct route_change *then = c->then;
    struct allocating *spawn = c->spawn ? map_get(&a->spawns, (uint64_t)c->spawn) : NULL;
    if (spawn)
        spawn->waits--;
    c->then = NULL;
    tell_routed(a, c, 0, "");
    change_free(c);
    if (then) /* others may have waited, too, and come first: then it waits for them */
        dispatch(a, then);
}

void gameserver_change(struct gameserver *g, struct route_change *c)
{
    list_append(&g->changes, &c->in_list);
    gameserver_make_busy(g);
}

void gameserver_take_changes(struct gameserver *g, struct list *changes)
{
    if (list_empty(changes))
        return;
    list_move_all(&g->changes, changes);
    gameserver_make_busy(g);
}

/* A GameServer that is gone has no token any more: what waited for one to be taken from there can
 * go on. */
void gameserver_drop_changes(struct gameserver *g, int err, const char *why)
{
    struct agones *a = g->fleet->agones;
    struct list dropped;
    list_init(&dropped);
    list_move_all(&dropped, &g->flying);
    list_move_all(&dropped, &g->changes);
    LIST_EACH(&dropped, c, struct route_change, in_list)
    {
        list_remove(&c->in_list);
        if (c->on)
            route_failed(a, c, err, why);
        else
            route_done(a, c);
    }
}

/* Additions whose time is over have failed; whether they are there nobody knows, so they are taken
 * out. And nobody waits longer for a removal. */
void gameserver_drop_late(struct gameserver *g, const char *why)
{
    struct agones *a = g->fleet->agones;
    LIST_EACH(&g->changes, c, struct route_change, in_list)
    {
        struct route_change *then = c->then;
        if (then && a->now_ms >= then->give_up_ms) {
            c->then = NULL;
            route_failed(a, then, ERR_IO, why);
        }
        if (!c->on || a->now_ms < c->give_up_ms)
            continue;
        struct route_change *off = change_new(a, str_of(c->token), false);
        list_insert_before(&c->in_list, &off->in_list);
        list_remove(&c->in_list);
        route_failed(a, c, ERR_IO, why);
    }
}

/* Refused for what we are or sent, not for how things are. */
void gameserver_drop_additions(struct gameserver *g, int err, const char *why)
{
    LIST_EACH(&g->changes, c, struct route_change, in_list)
    {
        if (!c->on)
            continue;
        list_remove(&c->in_list);
        route_failed(g->fleet->agones, c, err, why);
    }
}

/* ── what core wants ───────────────────────────────────────────────────────────────────────── */

/* What is said last about that token there; NULL = nothing waits. */
static struct route_change *last_about(struct gameserver *g, struct str token)
{
    struct list *lists[] = {&g->flying, &g->changes};
    struct route_change *last = NULL;
    for (size_t i = 0; i < 2; i++) {
        LIST_EACH(lists[i], c, struct route_change, in_list)
        {
            if (str_eq(str_of(c->token), token))
                last = c;
        }
    }
    return last;
}

/* Where that token is, or will be, but for one; NULL = nowhere. Where it is being taken from it may
 * still be, whatever was last seen there. */
static struct gameserver *holder(struct agones *a, struct str token, const struct gameserver *but)
{
    LIST_EACH(&a->busy, g, struct gameserver, in_busy)
    {
        if (g != but && last_about(g, token))
            return g;
    }
    return gameserver_with_token(a, token, but);
}

/* A removal of that token that waits there already, or a new one. */
static struct route_change *removal_at(struct gameserver *g, struct str token)
{
    struct route_change *c = last_about(g, token);
    if (c && !c->on && !c->then && !c->spawn)
        return c;
    c = change_new(g->fleet->agones, token, false);
    gameserver_change(g, c);
    return c;
}

static void add(struct agones *a, struct gameserver *g, struct route_change *c)
{
    struct str token = str_of(c->token);
    struct gameserver *elsewhere = holder(a, token, g);
    if (!elsewhere) {
        gameserver_change(g, c);
        return;
    }
    struct route_change *removal = removal_at(elsewhere, token);
    removal->then = c;
    if (!removal->asked && !c->back)
        remember(c, elsewhere);
}

static void take_for(struct allocating *spawn, struct str token, struct gameserver *from)
{
    struct route_change *removal = removal_at(from, token);
    removal->spawn = spawn->server;
    spawn->waits++;
    if (!removal->asked)
        remember_for(spawn, token, from);
}

void route_clear(struct allocating *spawn)
{
    struct str rest = str_of(spawn->tokens), token;
    spawn->cleared = true;
    while (tokens_next(&rest, &token)) {
        struct gameserver *from = holder(spawn->agones, token, NULL);
        if (from)
            take_for(spawn, token, from);
    }
}

void route_cleared(struct allocating *spawn, bool undo)
{
    LIST_EACH(&spawn->taken, c, struct route_change, in_list)
    {
        list_remove(&c->in_list);
        if (undo && c->back)
            put_back(spawn->agones, c);
        change_free(c);
    }
}

/* An addition of that token there that still waits for its removal elsewhere is wanted no more. */
static void forget_addition(struct agones *a, struct gameserver *there, int64_t server,
                            struct str token)
{
    struct list *lists[] = {&there->flying, &there->changes};
    for (size_t i = 0; i < 2; i++) {
        LIST_EACH(lists[i], c, struct route_change, in_list)
        {
            struct route_change *then = c->then;
            if (!then || then->server != server || !str_eq(str_of(then->token), token))
                continue;
            c->then = NULL;
            route_failed(a, then, ERR_ALREADY_OVER, "it is wanted no more");
        }
    }
}

/* … or for a spawn to say where it is. */
static void forget_held(struct agones *a, int64_t server, struct str token)
{
    LIST_EACH(&a->held, c, struct route_change, in_list)
    {
        if (!c->on || c->server != server || !str_eq(str_of(c->token), token))
            continue;
        list_remove(&c->in_list);
        route_failed(a, c, ERR_ALREADY_OVER, "it is wanted no more");
    }
}

static void forget_back_in(struct list *changes, const struct gameserver *g, struct str token)
{
    LIST_EACH(changes, c, struct route_change, in_list)
    {
        struct route_change *both[] = {c, c->then};
        for (size_t i = 0; i < 2; i++) {
            struct route_change *one = both[i];
            if (!one || !one->back || one->back_fleet != g->fleet ||
                strcmp(one->back, g->name) != 0 || !str_eq(str_of(one->token), token))
                continue;
            free(one->back);
            one->back = NULL;
        }
    }
}

/* Core wants it there no more: it is not put back there either. */
static void forget_back(struct agones *a, const struct gameserver *g, struct str token)
{
    LIST_EACH(&a->busy, there, struct gameserver, in_busy)
    {
        forget_back_in(&there->flying, g, token);
        forget_back_in(&there->changes, g, token);
    }
    LIST_EACH(&a->allocating, spawn, struct allocating, in_list)
    {
        forget_back_in(&spawn->taken, g, token);
    }
    forget_back_in(&a->held, g, token);
}

static void take_out(struct agones *a, struct gameserver *g, struct route_change *c)
{
    LIST_EACH(&a->busy, there, struct gameserver, in_busy)
    {
        forget_addition(a, there, c->server, str_of(c->token));
    }
    forget_held(a, c->server, str_of(c->token));
    forget_back(a, g, str_of(c->token));
    gameserver_change(g, c);
}

/* Somebody is being given a server of his own with it: where that will be nobody knows yet. */
static struct allocating *spawn_with(struct agones *a, struct str token,
                                     const struct allocating *but)
{
    LIST_EACH(&a->allocating, spawn, struct allocating, in_list)
    {
        if (spawn != but && spawn->cleared && !spawn->settled &&
            tokens_have(str_of(spawn->tokens), token))
            return spawn;
    }
    return NULL;
}

bool route_may_clear(struct allocating *spawn)
{
    struct str rest = str_of(spawn->tokens), token;
    while (tokens_next(&rest, &token)) {
        if (spawn_with(spawn->agones, token, spawn))
            return false;
    }
    return true;
}

static bool all_synced(const struct agones *a)
{
    for (size_t i = 0; i < a->n_fleets; i++) {
        if (!a->fleets[i].synced)
            return false;
    }
    return true;
}

/* Takes it over, and to where it belongs. */
static void dispatch(struct agones *a, struct route_change *c)
{
    struct gameserver *g = map_get(&a->by_server, (uint64_t)c->server);
    struct allocating *spawn = map_get(&a->spawns, (uint64_t)c->server);
    bool starts = !g && spawn && !spawn->doomed;
    bool unsure = c->on && spawn_with(a, str_of(c->token), spawn); /* where the token is */
    bool unseen = !g && !starts && !all_synced(a);
    bool wait = (g && unsure) || unseen;
    if (wait && a->now_ms < c->give_up_ms)
        list_append(&a->held, &c->in_list);
    else if (g && unsure)
        route_failed(a, c, ERR_IO, "nobody knows where the token is");
    else if (g && c->on)
        add(a, g, c);
    else if (g)
        take_out(a, g, c);
    else if (starts)
        list_append(&spawn->changes, &c->in_list);
    else
        route_failed(a, c, ERR_NOT_FOUND, "the GameServer is gone");
}

bool route_is_quiet(struct agones *a, struct str token)
{
    LIST_EACH(&a->busy, g, struct gameserver, in_busy)
    {
        if (last_about(g, token))
            return false;
    }
    LIST_EACH(&a->held, c, struct route_change, in_list)
    {
        if (str_eq(str_of(c->token), token))
            return false;
    }
    return !spawn_with(a, token, NULL);
}

void route_mend(struct gameserver *g, struct str token, bool on)
{
    struct route_change *c = change_new(g->fleet->agones, token, on);
    c->server = g->server;
    dispatch(g->fleet->agones, c);
}

void route(struct agones *a, const struct effect *e)
{
    struct route_change *c = change_new(a, e->token, e->on);
    c->asked = true;
    c->server = e->object;
    c->seat = e->on ? e->ticket : 0;
    dispatch(a, c);
}

void route_run(struct agones *a)
{
    struct list held;
    list_init(&held);
    list_move_all(&held, &a->held);
    LIST_EACH(&held, c, struct route_change, in_list)
    {
        list_remove(&c->in_list);
        dispatch(a, c);
    }
}
