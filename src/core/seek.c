/* Seeking a place: first where he is, then where his friends are, then anywhere. A party gets seats
 * in one room or none at all; who stands in line comes before who asks now; and a seat that a
 * player has is only given up in the step that gives him another. */
#include "core/seek.h"

#include "base/plant.h"
#include "core/state.h"
#include "wire/names.h"

#include <stdio.h>
#include <string.h>

enum { SENTENCE_MAX = 320, PARTY_MAX = PLACE_PLAYERS_MAX };

/* What there is for somebody, before anything is done about it. */
struct found {
    enum { FOUND_NOTHING, FOUND_ROOM, FOUND_STARTING, FOUND_HOST, FOUND_LINE } what;
    struct room *room;          /* ROOM, STARTING; LINE: whose, NULL = the fleet's */
    struct room_ticket *ticket; /* STARTING */
    struct host *host;          /* HOST */
    const char *how;            /* ROOM: for the log */
    bool no_friends;            /* they were looked for */
    int err;                    /* NOTHING */
    char why[SENTENCE_MAX];     /* … a sentence */
};

static void finds_nothing(struct found *ret, int err, struct str why)
{
    ret->what = FOUND_NOTHING;
    ret->err = err;
    (void)snprintf(ret->why, sizeof(ret->why), "%.*s", (int)why.len, why.at);
}

static void finds_room(struct found *ret, struct room *room, const char *how)
{
    ret->what = FOUND_ROOM;
    ret->room = room;
    ret->how = how;
}

/* ── who comes, and where he may go ────────────────────────────────────────────────────────── */

static struct room_seat *seat_of(const struct core *core, const struct allocation *a,
                                 struct str account)
{
    return room_seat_of(core, a->row.fleet, account);
}

int32_t seek_needs(const struct core *core, const struct allocation *a, const struct room *room)
{
    int32_t needed = 0;
    struct str rest = a->row.party;
    for (struct str name; names_next(&rest, &name);) {
        const struct room_seat *seat = seat_of(core, a, name);
        needed += !seat || seat->room != room;
    }
    return needed;
}

/* True when he asks for another room than the one he is in. */
static bool wants_away(const struct allocation *a)
{
    return !a->row.rejoin || a->row.move_party;
}

bool seek_fits(const struct core *core, const struct allocation *a, const struct room *room)
{
    const struct room_seat *his = seat_of(core, a, str_of(a->row.player));
    bool anew = (!a->queue || !a->queue->room) && wants_away(a);
    return !(anew && his && his->room == room) &&
           seek_needs(core, a, room) <= room_empty_seats(room);
}

/* The version that players get who name none: the first of the configuration that is on, else the
 * newest that was deployed. */
static struct str version_of(const struct fleet *fleet)
{
    struct str found = {0};
    for (size_t i = 0; fleet->config && i < fleet->config->n_versions; i++) {
        struct str name = str_of(fleet->config->versions[i].name);
        if (version_judge(fleet, name) == 0)
            return name;
    }
    LIST_EACH(&fleet->versions, version, struct version, in_fleet)
    {
        if (version_judge(fleet, str_of(version->row.name)) == 0)
            found = str_of(version->row.name);
    }
    return found;
}

uint64_t seek_version(const struct fleet *fleet)
{
    return str_hash(1, version_of(fleet));
}

bool seek_takes_any(const struct room *room)
{
    return str_eq(str_of(room->version->row.name), version_of(room->fleet));
}

static bool is_there(const struct room *room)
{
    return room->row.state == ROOM_OPEN && !host_is_away(room->host);
}

/* Something came free there in this step and somebody waits for it. Else whoever is in line there
 * fits no place that is free, and nobody is overtaken who could have it. */
static bool is_unserved(const struct room *room)
{
    return link_in_list(&room->to_serve) && !PLANTED(queue_window);
}

/* ── taking seats ──────────────────────────────────────────────────────────────────────────── */

static struct place_player player_of(const struct allocation *a, struct str name)
{
    bool himself = str_eq(name, str_of(a->row.player));
    return (struct place_player){
        .account = name,
        .address = himself ? str_of(a->row.from) : (struct str){0},
        .info = himself ? a->row.info : (struct str){0},
    };
}

/* The party he is in, which stays one when it moves; else the one that comes to be. */
static int64_t party_of(const struct core *core, const struct allocation *a)
{
    const struct room_seat *seat = seat_of(core, a, str_of(a->row.player));
    if (a->row.move_party && seat && seat->row.multi)
        return seat->row.multi;
    return allocation_players(a) > 1 ? a->row.id : 0;
}

/* In a room that is being started: the one that an older request handed over, or NULL. */
static struct room_seat *handed_seat(const struct allocation *a, const struct room *room,
                                     struct str name)
{
    if (room->row.state != ROOM_STARTING)
        return NULL;
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        if (seat->row.ticket == a->row.id && str_eq(str_of(seat->row.account), name))
            return seat;
    }
    return NULL;
}

static struct room_seat *take_seat(struct core *core, const struct allocation *a, struct room *room,
                                   struct str name, int64_t party)
{
    struct place_player player = player_of(a, name);
    struct room_seat *handed = handed_seat(a, room, name);
    if (handed) {
        handed->row.multi = party;
        object_touch(core, &handed->object);
        return handed;
    }
    struct room_seat *seat = seat_of(core, a, name);
    bool here = seat && seat->room == room;
    if (here && party) {
        seat->row.multi = party;
        object_touch(core, &seat->object);
    }
    if (here && seat->row.state == ROOM_SEAT_RESERVED)
        room_seat_again(core, seat, a->row.id, &player);
    else if (here && str_eq(name, str_of(a->row.player)))
        room_seat_shown(core, seat, 0); /* he comes back, and has nothing else to show */
    if (here)
        return seat;
    /* A cluster's proxy still sends him there; it is given up when he can come here. */
    bool later = room->fleet->config && room->fleet->config->provider == PROVIDER_AGONES;
    if (seat && !later && room->row.state == ROOM_OPEN)
        room_seat_kick(core, seat, STR("moved to another room"));
    return room_seat_new(core, room, a->row.id, &player, party);
}

static void take_seats(struct core *core, struct allocation *a, struct room *room)
{
    int64_t seats[PARTY_MAX];
    int64_t party = party_of(core, a);
    size_t n = 0;
    struct str rest = a->row.party;
    a->unrouted = 0;
    for (struct str name; n < PARTY_MAX && names_next(&rest, &name);) {
        const struct room_seat *seat = take_seat(core, a, room, name, party);
        a->unrouted += seat->row.state == ROOM_SEAT_ROUTING;
        seats[n++] = seat->row.id;
    }
    a->row.room = room->row.id;
    allocation_set_seats(core, a, seats, n);
    allocation_set_party(core, a, party);
}

/* Another player has the token that he would get, be it one who comes along. */
static bool has_no_token(const struct core *core, const struct allocation *a, struct str account)
{
    struct str rest = a->row.party;
    if (route_taken(core, a->fleet, account))
        return true;
    for (struct str name; names_next(&rest, &name);) {
        if (!str_eq(name, account) && route_is_same(a->fleet, name, account))
            return true;
    }
    return false;
}

/* True when somebody may not come. */
static bool is_hindered(struct core *core, const struct allocation *a, struct found *ret)
{
    struct str rest = a->row.party;
    for (struct str name; names_next(&rest, &name);) {
        struct place_player player = player_of(a, name);
        const struct ban *ban = ban_check(core, name, player.address);
        if (ban) {
            finds_nothing(ret, ERR_BANNED, ban_until(core, ban, name, str_of(a->row.player)));
            return true;
        }
        if (has_no_token(core, a, name)) {
            finds_nothing(ret, ERR_TOKEN_TAKEN, str_of(err_sentence(ERR_TOKEN_TAKEN)));
            return true;
        }
    }
    return false;
}

static void give_up(struct core *core, struct allocation *a, const struct found *found)
{
    if (found->err == ERR_TOKEN_TAKEN)
        note_add(core, NOTE_TOKEN_COLLISION)->fleet_id = a->row.fleet;
    allocation_fail(core, a, found->err, str_of(found->why));
}

/* False when somebody may not come: it has failed then. */
static bool may_come(struct core *core, struct allocation *a)
{
    struct found found = {0};
    bool hindered = is_hindered(core, a, &found);
    if (hindered)
        give_up(core, a, &found);
    return !hindered;
}

static void enter(struct core *core, struct allocation *a, struct room *room, const char *how)
{
    a->how = how;
    take_seats(core, a, room);
    if (a->unrouted == 0)
        allocation_done(core, a, room);
}

void allocation_enter(struct core *core, struct allocation *a, struct room *room, const char *how)
{
    allocation_reopen(core, a);
    if (may_come(core, a))
        enter(core, a, room, how);
}

/* ── where he is ───────────────────────────────────────────────────────────────────────────── */

static bool asks_for_others(const struct allocation *a)
{
    return a->row.friends.len > 0 || a->row.move_party || allocation_players(a) > 1;
}

static bool stays(const struct core *core, const struct allocation *a, struct found *ret)
{
    struct room_seat *seat = seat_of(core, a, str_of(a->row.player));
    if (!seat || asks_for_others(a) || room_is_over(seat->room))
        return false;
    if (!a->row.rejoin && seat->row.state != ROOM_SEAT_RESERVED)
        return false;
    finds_room(ret, seat->room, "rejoin");
    return true;
}

/* Any place will do: then the one he has, when those who come along find theirs there. */
static bool stays_with_others(const struct core *core, const struct allocation *a,
                              struct found *ret)
{
    const struct room_seat *seat = seat_of(core, a, str_of(a->row.player));
    if (!seat || wants_away(a) || room_is_over(seat->room))
        return false;
    int32_t needs = seek_needs(core, a, seat->room);
    bool fits =
        needs <= room_free_seats(seat->room) && is_there(seat->room) && !is_unserved(seat->room);
    if (needs == 0 || fits)
        finds_room(ret, seat->room, "rejoin");
    return needs == 0 || fits;
}

/* ── where his friends are ─────────────────────────────────────────────────────────────────── */

struct friendly {
    struct room *room;
    int32_t friends;
};

struct friends {
    struct friendly rooms[SEEK_FRIENDS_MAX];
    size_t n;
    bool unavailable; /* some are somewhere that cannot be entered now */
};

static void count_friend(struct friends *f, struct room *room)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->rooms[i].room == room) {
            f->rooms[i].friends++;
            return;
        }
    }
    if (f->n < SEEK_FRIENDS_MAX)
        f->rooms[f->n++] = (struct friendly){room, 1};
}

static void find_friends(const struct core *core, const struct allocation *a, struct friends *f)
{
    struct str rest = a->row.friends;
    for (struct str name; names_next(&rest, &name);) {
        const struct room_seat *seat = seat_of(core, a, name);
        if (seat && is_there(seat->room))
            count_friend(f, seat->room);
        else if (seat || room_seat_is_coming(core, a->row.fleet, name))
            f->unavailable = true;
    }
}

static bool is_better(const struct friendly *x, const struct friendly *y)
{
    int32_t free_x = room_free_seats(x->room);
    int32_t free_y = room_free_seats(y->room);
    if (x->friends != y->friends)
        return x->friends > y->friends;
    return free_x != free_y ? free_x > free_y : x->room->row.id < y->room->row.id;
}

/* The best of them, and the best that has a place now; either may be NULL. */
static struct room *choose_friends(const struct core *core, const struct allocation *a,
                                   const struct friends *f, struct room **ret_free)
{
    const struct friendly *best = NULL;
    const struct friendly *free = NULL;
    for (size_t i = 0; i < f->n; i++) {
        const struct friendly *x = &f->rooms[i];
        int32_t needs = seek_needs(core, a, x->room);
        bool fits = needs == 0 || (needs <= room_free_seats(x->room) && !is_unserved(x->room));
        if (needs > x->room->row.max_players)
            continue; /* never */
        if (!best || is_better(x, best))
            best = x;
        if (fits && (!free || is_better(x, free)))
            free = x;
    }
    *ret_free = free ? free->room : NULL;
    return best ? best->room : NULL;
}

/* Whoever waits already only changes his place. */
static bool waits_already(const struct core *core, const struct allocation *a)
{
    struct str rest = a->row.party;
    for (struct str name; names_next(&rest, &name);) {
        const struct allocation *older = allocation_of_player(core, a->row.fleet, name);
        if (older && older->row.state == ALLOCATION_QUEUED)
            return true;
    }
    return false;
}

static void find_line(const struct core *core, const struct allocation *a, struct room *room,
                      struct found *ret)
{
    bool many = core->allocations_in[ALLOCATION_QUEUED] >= core->config.limits.queued;
    ret->what = FOUND_LINE;
    ret->room = room;
    if (many && !waits_already(core, a))
        finds_nothing(ret, ERR_TOO_MANY, STR("too many players wait in line"));
}

/* True when that settles it. */
static bool join_friends(const struct core *core, const struct allocation *a, struct found *ret)
{
    struct friends f = {0};
    struct room *free = NULL;
    if (a->row.friends.len == 0)
        return false;
    find_friends(core, a, &f);
    struct room *best = choose_friends(core, a, &f, &free);
    if (free) {
        finds_room(ret, free, "friend");
        return true;
    }
    if (best) {
        find_line(core, a, best, ret);
        return true;
    }
    ret->no_friends = true;
    if (a->row.any_room)
        return false;
    int err = f.unavailable || f.n > 0 ? ERR_FRIEND_UNAVAILABLE : ERR_FRIENDS_NOT_FOUND;
    finds_nothing(ret, err, str_of(err_sentence(err)));
    return true;
}

/* ── anywhere ──────────────────────────────────────────────────────────────────────────────── */

static bool suits(const struct core *core, const struct allocation *a, const struct room *room)
{
    return is_there(room) && !is_unserved(room) && seek_fits(core, a, room) &&
           seek_needs(core, a, room) <= room_free_seats(room);
}

/* The fullest that fits, or the emptiest when the fleet spreads its players. */
static struct room *find_on_shelf(const struct core *core, const struct allocation *a,
                                  const struct shelf *shelf)
{
    int32_t least = allocation_players(a);
    size_t first = shelf_first(shelf, least);
    for (size_t k = first; k < shelf->n; k++) {
        size_t i = a->fleet->config->spread ? shelf->n - 1 - (k - first) : k;
        struct room *room = shelf->rooms[i];
        if (suits(core, a, room))
            return room;
    }
    return NULL;
}

/* Where one of them is already, fewer places are needed than there are of them. */
static struct room *find_with_party(const struct core *core, const struct allocation *a)
{
    struct str rest = a->row.party;
    for (struct str name; names_next(&rest, &name);) {
        const struct room_seat *seat = seat_of(core, a, name);
        if (seat && seek_takes_any(seat->room) && suits(core, a, seat->room))
            return seat->room;
    }
    return NULL;
}

static struct room *find_any(const struct core *core, const struct allocation *a)
{
    const struct version *version = version_row_of(a->fleet, version_of(a->fleet));
    int8_t regions[REGION_CODES];
    int n = version ? regions_by_distance(core, 0, a->row.region, regions) : 0;
    for (int i = 0; i < n; i++) {
        struct room *room = find_on_shelf(core, a, &version->shelves[regions[i]]);
        if (room)
            return room;
    }
    return find_with_party(core, a);
}

struct room *seek_emptiest(const struct core *core, const struct fleet *fleet)
{
    (void)core;
    const struct version *version = version_row_of(fleet, version_of(fleet));
    struct room *best = NULL;
    for (int code = 0; version && code < REGION_CODES; code++) {
        const struct shelf *shelf = &version->shelves[code];
        size_t k = shelf->n;
        while (k > 0 && !is_there(shelf->rooms[k - 1]))
            k--;
        if (k > 0 && (!best || room_free_seats(shelf->rooms[k - 1]) > room_free_seats(best)))
            best = shelf->rooms[k - 1];
    }
    return best;
}

/* How many seats are to come free there before it has its place; INT32_MAX = never. */
static int32_t misses(const struct core *core, const struct allocation *a, const struct room *room)
{
    const struct room_seat *his = seat_of(core, a, str_of(a->row.player));
    int32_t needs = seek_needs(core, a, room);
    bool own = his && his->room == room && wants_away(a);
    if (own || !is_there(room) || !seek_takes_any(room) || needs > room->row.max_players)
        return INT32_MAX;
    return needs - (room->held_by == a->queue ? room_empty_seats(room) : room_free_seats(room));
}

struct best {
    struct room *room;
    int32_t misses;
};

static void consider(const struct core *core, const struct allocation *a, struct room *room,
                     struct best *best)
{
    int32_t n = misses(core, a, room);
    if (n < best->misses)
        *best = (struct best){room, n};
}

/* Who has fewer free seats misses more; only where one of them sits it may be otherwise. */
static void consider_shelf(const struct core *core, const struct allocation *a,
                           const struct shelf *shelf, struct best *best)
{
    size_t k = shelf->n;
    while (k > 0 && misses(core, a, shelf->rooms[k - 1]) == INT32_MAX)
        k--;
    if (k > 0)
        consider(core, a, shelf->rooms[k - 1], best);
}

struct room *seek_best_to_hold(const struct core *core, const struct allocation *a)
{
    const struct version *version = version_row_of(a->fleet, version_of(a->fleet));
    struct best best = {NULL, INT32_MAX};
    struct str rest = a->row.party;
    if (a->queue->held_in)
        consider(core, a, a->queue->held_in, &best);
    for (struct str name; names_next(&rest, &name);) {
        const struct room_seat *seat = seat_of(core, a, name);
        if (seat)
            consider(core, a, seat->room, &best);
    }
    for (int i = 0; version && i < REGION_CODES; i++) /* his own region first */
        consider_shelf(core, a, &version->shelves[(a->row.region + i) & (REGION_CODES - 1)], &best);
    return best.room;
}

/* ── a new room ────────────────────────────────────────────────────────────────────────────── */

bool seek_may_start(const struct core *core, const struct fleet *fleet, int32_t players)
{
    (void)core;
    bool cluster = fleet->config->provider == PROVIDER_AGONES;
    int32_t seats = 0;
    LIST_EACH(&fleet->allocating, ticket, struct room_ticket, in_allocating)
    {
        seats += fleet->config->max_players;
    }
    return cluster ? seats == 0 : seats < players;
}

/* A room that is being started for others and has places left. */
static bool join_starting(const struct core *core, const struct allocation *a, struct found *ret)
{
    LIST_EACH(&a->fleet->allocating, ticket, struct room_ticket, in_allocating)
    {
        struct room *room = room_find(core, ticket->row.room);
        if (!room || room->row.state != ROOM_STARTING ||
            room_empty_seats(room) < allocation_players(a))
            continue;
        ret->what = FOUND_STARTING;
        ret->room = room;
        ret->ticket = ticket;
        return true;
    }
    return false;
}

/* True when the seat is that of an older request of somebody who comes. */
static bool gives_way(const struct core *core, const struct allocation *a,
                      const struct room_seat *seat)
{
    struct str rest = a->row.party;
    for (struct str name; names_next(&rest, &name);) {
        const struct allocation *older = allocation_of_player(core, a->row.fleet, name);
        if (older && older->row.id == seat->row.ticket)
            return true;
    }
    return false;
}

/* Who has a seat there already only keeps it. Others get what is empty and what the older request
 * gives up, after those in line; and not in a cluster, which was told who comes. */
static bool fits_starting(const struct core *core, const struct allocation *a,
                          const struct room *room)
{
    int32_t freed = 0;
    int32_t kept = 0;
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        bool his = gives_way(core, a, seat);
        freed += his;
        kept += his && names_have(a->row.party, str_of(seat->row.account));
    }
    bool more = !queue_waits(a->fleet->queue) && a->fleet->config->provider != PROVIDER_AGONES;
    int32_t players = allocation_players(a);
    return kept == players || (more && players <= room_empty_seats(room) + freed);
}

/* The room that is being started for an older request of one of them. */
static bool take_over_starting(const struct core *core, const struct allocation *a,
                               struct found *ret)
{
    struct str rest = a->row.party;
    for (struct str name; names_next(&rest, &name);) {
        const struct allocation *older = allocation_of_player(core, a->row.fleet, name);
        bool starting = older && older != a && link_in_list(&older->on_ticket);
        struct room_ticket *ticket = starting ? room_ticket_find(core, older->row.ticket) : NULL;
        struct room *room = ticket ? room_find(core, ticket->row.room) : NULL;
        if (!room || room->row.state != ROOM_STARTING || !fits_starting(core, a, room))
            continue;
        ret->what = FOUND_STARTING;
        ret->room = room;
        ret->ticket = ticket;
        return true;
    }
    return false;
}

/* So that the room is never empty: nobody would wait for it then, and it would end. */
static void hand_over(struct core *core, const struct allocation *a, struct room *room)
{
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        struct place_player player = player_of(a, str_of(seat->row.account));
        if (names_have(a->row.party, player.account) && gives_way(core, a, seat))
            room_seat_again(core, seat, a->row.id, &player);
    }
}

static void wait_for_room(struct core *core, struct allocation *a, const struct found *found)
{
    a->how = "spawn";
    take_seats(core, a, found->room);
    allocation_on_ticket(a, found->ticket);
}

static void start_on(struct core *core, struct allocation *a, struct host *host)
{
    struct place_player players[PARTY_MAX];
    struct place p = {.verb = PLACE_JOIN, .players = players};
    struct str rest = a->row.party;
    for (struct str name; p.n_players < PARTY_MAX && names_next(&rest, &name);)
        players[p.n_players++] = player_of(a, name);
    struct version *version = version_use(core, a->fleet, version_of(a->fleet));
    struct room_ticket *ticket = room_ticket_new(core, 0, &p, version, a->row.region);
    struct room *room = room_ticket_spawn(core, ticket, version, host, STR("{}"));
    a->how = "spawn";
    allocation_on_ticket(a, ticket);
    take_seats(core, a, room);
    room_tell(core, room);
}

static struct host *host_for(const struct core *core, const struct allocation *a)
{
    struct no_host none;
    bool elsewhere = a->fleet->config->other_regions;
    if (rooms_are_many(core) || allocation_players(a) > a->fleet->config->max_players)
        return NULL;
    if (version_of(a->fleet).len == 0)
        return NULL; /* all were switched off since he came to the line */
    return choose_host(core, a->fleet, a->row.region, elsewhere, NULL, 0, &none);
}

bool seek_start(struct core *core, struct allocation *a)
{
    struct host *host = host_for(core, a);
    if (!host)
        return false;
    allocation_reopen(core, a);
    if (may_come(core, a))
        start_on(core, a, host);
    return true;
}

static void no_capacity(const struct core *core, const struct allocation *a, struct found *ret)
{
    char text[SENTENCE_MAX];
    const struct fleet_config *config = a->fleet->config;
    bool never = allocation_players(a) > config->max_players;
    if (config->queue_when_full && !never) {
        find_line(core, a, NULL, ret);
        return;
    }
    (void)snprintf(text, sizeof(text), "no capacity in fleet '%s'", a->fleet->row.name);
    finds_nothing(ret, ERR_NO_CAPACITY, str_of(text));
}

/* Those in line for any place of the fleet fit nowhere that is free now; but a room that can be
 * started is theirs first. */
static void find_anywhere(const struct core *core, const struct allocation *a, struct found *ret)
{
    if (stays_with_others(core, a, ret))
        return;
    if (version_of(a->fleet).len == 0) {
        finds_nothing(ret, ERR_NO_VERSION, str_of(err_sentence(ERR_NO_VERSION)));
        return;
    }
    struct room *room = find_any(core, a);
    bool others = queue_waits(a->fleet->queue);
    bool cluster = a->fleet->config->provider == PROVIDER_AGONES;
    if (!room &&
        (take_over_starting(core, a, ret) || (!others && !cluster && join_starting(core, a, ret))))
        return;
    if (room)
        finds_room(ret, room, "room");
    else if (!others && (ret->host = host_for(core, a)))
        ret->what = FOUND_HOST;
    else
        no_capacity(core, a, ret);
}

/* None of the cluster's servers was free. What came free elsewhere meanwhile is his, or somebody's
 * who is before him in line. Who was tried from the line goes back to it, for nobody who came since
 * may push him out. */
static void wait_for_cluster(struct core *core, struct allocation *a)
{
    struct found found = {.what = FOUND_LINE};
    allocation_drop_gone(core, a); /* less may do than when he asked */
    struct room *room = find_any(core, a);
    if (!room && a->row.queued_core_ms == 0)
        find_line(core, a, NULL, &found);
    if (found.what == FOUND_NOTHING) {
        give_up(core, a, &found);
        return;
    }
    allocation_queue(core, a, NULL);
    if (room)
        queue_room_changed(core, room);
}

void allocations_ticket_over(struct core *core, struct room_ticket *ticket)
{
    bool done = ticket->row.state == ROOM_TICKET_DONE;
    const struct room *room = room_find(core, ticket->row.room);
    list_remove(&ticket->in_allocating);
    while (!list_empty(&ticket->allocations)) {
        struct allocation *a =
            container_of(list_first(&ticket->allocations), struct allocation, on_ticket);
        list_remove(&a->on_ticket);
        bool cluster = a->fleet->config && a->fleet->config->provider == PROVIDER_AGONES;
        bool failed =
            ticket->row.error == ERR_SPAWN_FAILED || ticket->row.error == ERR_SPAWN_TIMEOUT;
        if (done && room)
            allocation_done(core, a, room);
        else if (cluster && failed && a->fleet->config->queue_when_full)
            wait_for_cluster(core, a);
        else
            allocation_fail(core, a, ticket->row.error ? ticket->row.error : ERR_SPAWN_FAILED,
                            ticket->row.why);
    }
}

/* Changes nothing. Only who goes anywhere needs a version that is on: the rooms of one that is
 * switched off play on, with whoever belongs there. */
static void find_place(struct core *core, const struct allocation *a, struct found *ret)
{
    *ret = (struct found){0};
    if (!a->fleet->config)
        finds_nothing(ret, ERR_NO_VERSION, str_of(err_sentence(ERR_NO_VERSION)));
    else if (!is_hindered(core, a, ret) && !stays(core, a, ret) && !join_friends(core, a, ret))
        find_anywhere(core, a, ret);
}

static void take_place(struct core *core, struct allocation *a, const struct found *found)
{
    if (found->no_friends)
        note_add(core, NOTE_ALLOCATION_UNKNOWN_FRIENDS)->fleet_id = a->row.fleet;
    switch (found->what) {
    case FOUND_NOTHING:
        give_up(core, a, found);
        break;
    case FOUND_ROOM:
        enter(core, a, found->room, found->how);
        break;
    case FOUND_STARTING:
        wait_for_room(core, a, found);
        break;
    case FOUND_HOST:
        start_on(core, a, found->host);
        break;
    case FOUND_LINE:
        allocation_queue(core, a, found->room);
        break;
    }
}

void seek_place(struct core *core, struct allocation *a)
{
    struct found found;
    allocation_drop_gone(core, a);
    struct room_seat *old =
        PLANTED(old_seat_first) ? seat_of(core, a, str_of(a->row.player)) : NULL;
    if (old && asks_for_others(a))
        room_seat_kick(core, old, STR("moved to another room"));
    find_place(core, a, &found);
    take_place(core, a, &found);
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static bool by_bus(const struct seek *s)
{
    return s->bus == BUS_NATS || s->bus == BUS_PUBSUB;
}

/* A name that a player gives is his own: else he could take one that a service will use. */
static struct allocation *asked_before(const struct core *core, const struct seek *s)
{
    return allocation_named(core, s->bus == BUS_OWN ? s->player : STR(""), s->name);
}

static void refuse(struct core *core, conn_id conn, const struct seek *s, int err,
                   const char *sentence)
{
    struct envelope_result *result = arena_alloc(&core->out->arena, sizeof(*result));
    struct str text = text_keep(core, str_of(sentence ? sentence : err_sentence(err)));
    *result = (struct envelope_result){
        .ticket_id = text_keep(core, s->name), .status = ENVELOPE_FAILURE, .error = text};
    note_refused(core, conn, err)->text = text;
    struct effect *e = effect_add(core, by_bus(s) ? EFFECT_RESULT : EFFECT_SOUGHT, conn);
    e->err = err;
    e->verb = (int8_t)s->bus;
    e->text = text;
    e->result = result;
    e->arguments = arguments_keep(core, s->arguments);
}

static bool is_id(struct str id)
{
    return id.len > 0 && id.len <= 64;
}

static int judge(const struct seek *s)
{
    if (s->name.len == 0 || s->name.len > SEEK_NAME_MAX || s->info.len > 4096 ||
        s->n_friends > SEEK_FRIENDS_MAX || s->n_party >= PARTY_MAX || s->priority < 0 ||
        s->priority > SEEK_PRIORITY_MAX)
        return ERR_BAD_ARGUMENT;
    if (!is_id(s->player))
        return ERR_PLAYER_REQUIRED;
    for (size_t i = 0; i < s->n_friends; i++) {
        if (!is_id(s->friends[i]))
            return ERR_BAD_ARGUMENT;
    }
    for (size_t i = 0; i < s->n_party; i++) {
        if (!is_id(s->party[i]))
            return ERR_BAD_ARGUMENT;
    }
    return 0;
}

static struct fleet *judge_fleet(struct core *core, const struct seek *s, int *ret_err,
                                 char why[SENTENCE_MAX])
{
    char name[sizeof(((struct fleet_config *)0)->name)];
    struct fleet *fleet =
        str_copy(name, sizeof(name), s->where.fleet) ? fleet_find_named(core, name) : NULL;
    if (!fleet || !fleet->config) {
        (void)snprintf(why, SENTENCE_MAX, "fleet '%.*s' not found", (int)s->where.fleet.len,
                       s->where.fleet.at);
        *ret_err = ERR_NO_SUCH_FLEET;
        return NULL;
    }
    bool chat = fleet->config->provider == PROVIDER_CHAT;
    if (chat)
        (void)snprintf(why, SENTENCE_MAX,
                       "fleet '%s' takes matches of chat servers, not single players",
                       fleet->row.name);
    *ret_err = chat ? ERR_WRONG_PROVIDER : 0;
    return fleet;
}

/* Each once, oneself excluded. */
static void keep_names(struct buf *list, const struct str *names, size_t n, struct str himself)
{
    for (size_t i = 0; i < n; i++) {
        struct str so_far = {(const char *)list->data, list->len};
        if (!str_eq(names[i], himself) && !names_have(so_far, names[i]))
            names_add(list, names[i]);
    }
}

/* Those who came with him and are still there. */
static void add_party(const struct core *core, struct buf *party, const struct fleet *fleet,
                      struct str player)
{
    const struct room_seat *his = room_seat_of(core, (int32_t)fleet->row.id, player);
    if (!his || !his->row.multi)
        return;
    LIST_EACH(&his->room->seats, seat, struct room_seat, in_room)
    {
        struct str name = str_of(seat->row.account);
        struct str so_far = {(const char *)party->data, party->len};
        if (seat->row.multi == his->row.multi && !names_have(so_far, name))
            names_add(party, name);
    }
}

/* He first, then those who come in any case, then those who come along with his party; and how many
 * the first two are. */
static struct str list_party(const struct core *core, const struct seek *s,
                             const struct fleet *fleet, struct buf *party, int *ret_named)
{
    names_add(party, s->player);
    keep_names(party, s->party, s->n_party, s->player);
    *ret_named = names_count((struct str){(const char *)party->data, party->len});
    if (s->move_party)
        add_party(core, party, fleet, s->player);
    return (struct str){(const char *)party->data, party->len};
}

static bool waits_with_older(const struct core *core, const struct fleet *fleet, struct str party)
{
    for (struct str name; names_next(&party, &name);) {
        if (allocation_of_player(core, (int32_t)fleet->row.id, name))
            return true;
    }
    return false;
}

/* Nobody waits twice in a fleet. */
static void supersede(struct core *core, const struct fleet *fleet, struct str party)
{
    for (struct str name; names_next(&party, &name);) {
        struct allocation *before = allocation_of_player(core, (int32_t)fleet->row.id, name);
        if (before)
            allocation_cancel(core, before, ERR_SUPERSEDED, str_of(err_sentence(ERR_SUPERSEDED)));
    }
}

/* A newer request takes the place of an older one only when something comes of it: what fails
 * leaves everybody where he was. So what there is for it with the older one in place is what it
 * gets; only when that is no place yet, it looks once more, after those in line, at what the older
 * one gave up. */
static void take_its_place(struct core *core, conn_id conn, const struct row_allocation *row,
                           struct fleet *fleet)
{
    struct found found;
    const struct allocation draft = {.row = *row, .fleet = fleet};
    find_place(core, &draft, &found);
    bool again = found.what == FOUND_LINE || found.what == FOUND_HOST;
    if (found.what == FOUND_STARTING)
        hand_over(core, &draft, found.room);
    if (found.what != FOUND_NOTHING)
        supersede(core, fleet, row->party);
    if (again)
        queues_serve(core);
    struct allocation *a = allocation_new(core, conn, row, fleet);
    if (again)
        seek_place(core, a);
    else
        take_place(core, a, &found);
}

static void open_request(struct core *core, conn_id conn, const struct row_allocation *row,
                         struct fleet *fleet)
{
    if (waits_with_older(core, fleet, row->party))
        take_its_place(core, conn, row, fleet);
    else
        seek_place(core, allocation_new(core, conn, row, fleet));
}

static void take_request(struct core *core, conn_id conn, const struct seek *s, struct fleet *fleet,
                         struct str party, int named, int8_t region)
{
    struct buf friends = {0};
    keep_names(&friends, s->friends, s->n_friends, s->player);
    struct row_allocation row = {
        .id = object_new_id(core, ROW_ticket),
        .fleet = (int32_t)fleet->row.id,
        .bus = (int8_t)s->bus,
        .priority = s->priority,
        .region = region,
        .any_room = s->any_room,
        .rejoin = s->rejoin,
        .move_party = s->move_party ? (int8_t)named : 0,
        .opened_core_ms = core->now.core_ms,
        .arguments_len = OPERATE_DIGEST,
        .friends = {(const char *)friends.data, friends.len},
        .party = party,
        .info = s->info,
    };
    memcpy(row.arguments, s->arguments, OPERATE_DIGEST);
    (void)str_copy(row.name, sizeof(row.name), s->name);
    (void)str_copy(row.player, sizeof(row.player), s->player);
    (void)str_copy(row.from, sizeof(row.from), s->from);
    open_request(core, conn, &row, fleet);
    buf_done(&friends);
}

static void take_again(struct core *core, const struct allocation *a)
{
    struct room *room = room_find(core, a->row.room);
    struct place_player player = player_of(a, str_of(a->row.player));
    if (a->row.state == ALLOCATION_DONE && room && is_there(room) && room_free_seats(room) > 0)
        (void)room_seat_new(core, room, a->row.id, &player, 0);
}

/* True when the request was asked before: it has its answer, or will have it. */
static bool answer_again(struct core *core, conn_id conn, const struct seek *s)
{
    struct allocation *a = asked_before(core, s);
    if (!a)
        return false;
    if (PLANTED(redelivery_takes_twice))
        take_again(core, a);
    if (memcmp(a->row.arguments, s->arguments, OPERATE_DIGEST) != 0)
        refuse(core, conn, s, ERR_NAME_CONFLICT, NULL);
    else if (by_bus(s))
        allocation_ask_by(core, a, (int8_t)s->bus); /* who asked first may have come otherwise */
    else if (a->row.state != ALLOCATION_OPEN)
        allocation_answer(core, a, conn);
    else if (!allocation_wait(a, conn))
        refuse(core, conn, s, ERR_BUSY, NULL);
    return true;
}

bool seek_is_settled(const struct core *core, const struct seek *s)
{
    const struct allocation *a = asked_before(core, s);
    bool known = !by_bus(s) || (a && (a->row.bus & (int8_t)s->bus)); /* where it is told, too */
    return a && a->row.state != ALLOCATION_OPEN && known;
}

void seek(struct core *core, conn_id conn, const struct seek *s)
{
    char why[SENTENCE_MAX] = "";
    int err = judge(s);
    if (!err && answer_again(core, conn, s))
        return;
    struct fleet *fleet = err ? NULL : judge_fleet(core, s, &err, why);
    int8_t region = err ? 0 : region_choose(core, fleet->config->regions, &s->where);
    if (!err && region < 0)
        err = ERR_REGION_NOT_SUPPORTED;
    if (!err && core->allocations_in[ALLOCATION_OPEN] >= core->config.limits.tickets_open)
        err = ERR_TOO_MANY;
    struct buf names = {0};
    int named = 0;
    struct str party = err ? (struct str){0} : list_party(core, s, fleet, &names, &named);
    if (!err && names_count(party) > PARTY_MAX)
        err = ERR_BAD_ARGUMENT;
    if (err)
        refuse(core, conn, s, err, why[0] ? why : NULL);
    else
        take_request(core, conn, s, fleet, party, named, region);
    buf_done(&names);
}

void unseek(struct core *core, conn_id conn, struct str owner, struct str name)
{
    struct allocation *a = allocation_named(core, owner, name);
    if (a && allocation_is_open(a)) {
        allocation_cancel(core, a, ERR_TICKET_CANCELLED, STR("the request was cancelled"));
        allocation_answer(core, a, conn);
        return;
    }
    struct seek s = {.name = name};
    refuse(core, conn, &s, a ? ERR_ALREADY_OVER : ERR_NOT_FOUND, NULL);
}
