/* A simulated player: wants a room, alone or with others, goes there in time, late or never, shows
 * his key once, twice or to the wrong server, and leaves. */
#include "sim/world.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 60 * 1000 };

static void wake_after(struct world *w, struct player *p, int64_t delay_ms)
{
    world_after(w, delay_ms, HAPPENS_PLAYER)->actor = p->index;
}

void player_init(struct world *w, struct player *p, int index)
{
    *p = (struct player){.index = index};
    wake_after(w, p, random_between(&w->random, 2000, 20 * 1000));
}

/* Two of three share an address with another. */
static void name_player(struct parcel *parcel, int at, int index)
{
    (void)snprintf(parcel->accounts[at], sizeof(parcel->accounts[at]), "p%d", index);
    (void)snprintf(parcel->addresses[at], sizeof(parcel->addresses[at]), "198.51.100.%d",
                   1 + index / 2);
    parcel->players[at] = (struct place_player){
        .account = str_of(parcel->accounts[at]),
        .address = str_of(parcel->addresses[at]),
        .info = STR("{}"),
        .sealed = STR(""),
    };
}

static void ask(struct world *w, struct player *p, enum place_verb verb, size_t n)
{
    struct parcel *parcel = parcel_new(EVENT_PLACE, ++w->next_conn);
    struct place *place = &parcel->event.place;
    *place = (struct place){
        .verb = verb,
        .fleet = STR("arena"),
        .version = STR("1"),
        .room = p->room,
        .players = parcel->players,
        .n_players = n,
        .multi = n > 1,
        .settings = STR("{}"),
    };
    if (w->tower && random_chance(&w->fault_random, 25))
        place->fleet = STR("tower");
    if (p->index < w->hostile) {
        (void)snprintf(parcel->text, sizeof(parcel->text), "{\"map\":\"hangs-%d\"}",
                       (int)random_between(&w->fault_random, 0, 3));
        place->settings = str_of(parcel->text);
    }
    place->auto_create = random_chance(&w->random, 70);
    whither_draw(w, &p->whither);
    p->whither.only = random_chance(&w->random, 20);
    p->enters = verb == PLACE_ENTER;
    whither_fill(&p->whither, place);
    for (size_t i = 0; i < n; i++)
        name_player(parcel, (int)i, (p->index + (int)i) % w->n_players);
    p->conn = parcel->event.conn;
    p->asked_ms = w->now_ms;
    parcel_send(w, parcel);
}

void player_wake(struct world *w, struct player *p)
{
    wake_after(w, p, random_between(&w->random, 1000, 40 * 1000));
    if (w->quiet)
        return;
    if (p->conn && w->now_ms - p->asked_ms < PATIENCE_MS)
        return;
    int64_t die = random_between(&w->random, 0, 99);
    size_t party = (size_t)random_between(&w->random, 2, MAX_PARTY);
    if ((size_t)w->n_players < party)
        party = (size_t)w->n_players;
    if (die < 30)
        ask(w, p, PLACE_CREATE, 1);
    else if (die < 75)
        ask(w, p, PLACE_JOIN, 1);
    else if (die < 90 && p->room)
        ask(w, p, PLACE_ENTER, 1);
    else
        ask(w, p, random_chance(&w->random, 50) ? PLACE_JOIN : PLACE_CREATE, party);
}

/* ── going there ───────────────────────────────────────────────────────────────────────────── */

static void show_key(const struct player *p, struct process *process, bool wrong)
{
    struct report *report = process_report(process, AGENT_JOINED);
    report->player = p->index;
    report->wrong = wrong;
    (void)snprintf(report->key, sizeof(report->key), "%s", p->key);
}

/* He may have been sent elsewhere since. */
void player_connect(struct world *w, struct player *p, int64_t seat)
{
    struct process *process = process_find(w, p->server);
    struct process *other = random_chance(&w->random, 10) ? process_some(w) : NULL;
    if (p->seat != seat)
        return;
    if (process && process->state == PROCESS_RUNNING) {
        show_key(p, process, false);
        if (random_chance(&w->random, 12))
            show_key(p, process, false);
    }
    if (other && other != process && other->state == PROCESS_RUNNING)
        show_key(p, other, true);
}

void player_joined(struct world *w, struct player *p)
{
    struct happening *h =
        world_after(w, random_between(&w->random, 1000, 240 * 1000), HAPPENS_PART);
    h->actor = p->index;
    h->life = p->seat;
}

void player_part(struct world *w, struct player *p, int64_t seat)
{
    struct process *process = process_find(w, p->server);
    if (p->seat != seat || !process || process->state != PROCESS_RUNNING)
        return;
    int times = random_chance(&w->random, 12) ? 2 : 1;
    for (int i = 0; i < times; i++) {
        struct report *report = process_report(process, AGENT_LEFT);
        (void)snprintf(report->key, sizeof(report->key), "%s", p->key);
    }
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

void player_given(struct world *w, struct player *p, const struct reply_seat *seat, int64_t server,
                  int64_t room, bool taken)
{
    w->result->seats++;
    p->seat = seat->seat;
    p->server = server;
    p->room = room;
    (void)snprintf(p->key, sizeof(p->key), "%s", seat->key);
    if (taken)
        player_joined(w, p);
    int64_t die = random_between(&w->random, 0, 99);
    if (die >= 85) /* he never comes */
        return;
    struct happening *h =
        world_after(w, random_between(&w->random, 0, die < 70 ? 6000 : 60 * 1000), HAPPENS_CONNECT);
    h->actor = p->index;
    h->life = p->seat;
}

void player_hear(struct world *w, const struct reply *reply)
{
    w->result->answers++;
    for (int i = 0; i < w->n_players; i++) {
        if (w->players[i].conn == reply->conn)
            w->players[i].conn = 0;
    }
    for (int i = 0; i < reply->n_seats && !reply->err; i++) {
        long index =
            reply->seats[i].account[0] == 'p' ? strtol(reply->seats[i].account + 1, NULL, 10) : -1;
        if (index < 0 || index >= w->n_players) {
            world_broken(w, "a seat was given to %s, who never asked", reply->seats[i].account);
            return;
        }
        player_given(w, &w->players[index], &reply->seats[i], reply->server, reply->session, false);
    }
}
