/* A simulated matchmaker: posts accepted matches, under a key or not, again when the answer got
 * lost, and sometimes gives one up. The same key must name the same lobby. */
#include "sim/world.h"

#include "base/err.h"
#include "core/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Well below the shortest time for which a request is kept in any world. */
enum { REPEAT_MS = 60 * 1000 };

static void post(struct world *w, struct post *p)
{
    char key[24];
    struct lobby_entry entries[MAX_ROSTER];
    for (int i = 0; i < p->n_players; i++) {
        entries[i] = (struct lobby_entry){
            .account = p->players[i],
            .name = STR("somebody"),
            .team = (int8_t)(i % 2),
            .slot = (int8_t)(i / 2),
            .group = (int8_t)(i / 3),
        };
    }
    struct lobby_wanted wanted = {
        .game_type = 1,
        .region = p->region,
        .average_rating = 1500,
        .map = STR("map"),
        .requeue = p->requeue,
        .players = entries,
        .n_players = (size_t)p->n_players,
    };
    (void)snprintf(key, sizeof(key), "match %d", p->number);
    struct event event = {.kind = EVENT_OPERATE, .conn = ++w->next_conn};
    event.operate = (struct operate){
        .verb = OPERATE_CREATE_LOBBY,
        .who = STR("matchmaker"),
        .fleet = STR("default"),
        .key = p->keyed ? str_of(key) : STR(""),
        .arguments = {(uint8_t)p->number},
        .lobby = &wanted,
    };
    p->conn = event.conn;
    node_event(w->leader, &event);
}

static void choose_players(struct world *w, struct post *p)
{
    int most = w->n_clients < MAX_ROSTER ? w->n_clients : MAX_ROSTER;
    int wanted = (int)random_between(&w->random, 1, most);
    int from = (int)random_between(&w->random, 0, w->n_clients - 1);
    int step = random_chance(&w->random, 50) ? 1 : w->n_clients - 1; /* each is prime to n */
    for (; p->n_players < wanted; p->n_players++)
        p->players[p->n_players] = 1 + (from + p->n_players * step) % w->n_clients;
}

/* Mostly one with a server. */
static int8_t some_region(struct world *w)
{
    int8_t any = (int8_t)random_between(&w->random, 0, 2);
    int64_t i = random_between(&w->random, 0, w->n_games - 1);
    return random_chance(&w->random, 80) ? w->games[i].region : any;
}

static void new_post(struct world *w)
{
    struct matchmaker *m = &w->matchmaker;
    struct post *p = &m->posts[m->n_posts % MAX_POSTS];
    *p = (struct post){.number = m->n_posts++};
    p->keyed = random_chance(&w->random, 70);
    p->requeue = random_chance(&w->random, 50);
    p->region = REGION_AUTO;
    if (m->one_region)
        p->region = w->games[0].region;
    else if (random_chance(&w->random, 40))
        p->region = some_region(w);
    p->asked_core_ms = world_core_ms(w);
    choose_players(w, p);
    post(w, p);
}

static struct post *some_post(struct world *w)
{
    struct matchmaker *m = &w->matchmaker;
    int n = m->n_posts < MAX_POSTS ? m->n_posts : MAX_POSTS;
    int64_t back = random_between(&w->random, 1, n < 4 ? n : 4);
    return &m->posts[(m->n_posts - back) % MAX_POSTS];
}

static void repeat(struct world *w)
{
    struct post *p = some_post(w);
    if (p->keyed && !p->conn && world_core_ms(w) - p->asked_core_ms <= REPEAT_MS)
        post(w, p);
}

static void give_up(struct world *w)
{
    const struct post *p = some_post(w);
    struct event event = {.kind = EVENT_OPERATE, .conn = ++w->next_conn};
    event.operate = (struct operate){
        .verb = OPERATE_ABORT_LOBBY,
        .target = p->told,
        .who = STR("matchmaker"),
        .reason = random_chance(&w->random, 50) ? STR("They do not like each other") : STR(""),
    };
    if (p->told)
        node_event(w->leader, &event);
}

/* What is shown of it is one story. */
static void look(struct world *w)
{
    struct view_lobby view;
    const struct post *p = some_post(w);
    if (!p->told || !view_lobby(plane_core(w), p->told, &view))
        return;
    bool aborted = strcmp(view.state, "aborted") == 0;
    const char *queue = aborted && p->requeue                ? "queued"
                        : strcmp(view.state, "loading") == 0 ? "in_lobby"
                        : strcmp(view.state, "started") == 0 ? "in_match"
                                                             : "not_queued";
    bool whole = view.players == p->n_players && view.requeue == p->requeue;
    bool told = !aborted || (view.cause[0] && view.reason[0]);
    if (strcmp(view.queue, queue) != 0 || !whole || !told)
        world_broken(w, "lobby %" PRId64 " is %s and its groups are %s (%d players, %s)", view.id,
                     view.state, view.queue, view.players, view.cause);
}

void matchmaker_wake(struct world *w)
{
    struct matchmaker *m = &w->matchmaker;
    world_after(w, random_between(&w->random, 200, 2 * m->every_ms), HAPPENS_MATCHMAKER);
    if (!plane_awake(w))
        return;
    bool repeats = random_chance(&w->random, 40);
    bool aborts = random_chance(&w->random, m->abort_percent);
    if (!w->quiet)
        new_post(w);
    if (w->broken || m->n_posts == 0)
        return;
    if (repeats)
        repeat(w);
    if (aborts && !w->broken)
        give_up(w);
    if (!w->broken)
        look(w);
}

void matchmaker_hear(struct world *w, const struct effect *e)
{
    struct matchmaker *m = &w->matchmaker;
    struct post *p = NULL;
    for (int i = 0; i < MAX_POSTS; i++) {
        if (m->posts[i].conn && m->posts[i].conn == e->conn)
            p = &m->posts[i];
    }
    if (e->kind != EFFECT_OPERATED || !p)
        return;
    p->conn = 0;
    if (e->err == 0 && p->told == 0) {
        p->told = e->object;
        if (!shadow_has_lobby(w, e->object))
            world_broken(w, "I7: lobby %" PRId64 " is answered before it is stored", e->object);
    }
    if (p->told && e->err != ERR_INTERNAL && e->object != p->told)
        world_broken(w, "I4: match %d has two answers: lobby %" PRId64 " and %" PRId64 " (%s)",
                     p->number, p->told, e->object, err_code(e->err));
}

void matchmaker_plane_died(struct world *w)
{
    for (int i = 0; i < MAX_POSTS; i++)
        w->matchmaker.posts[i].conn = 0;
}
