/* What there is for somebody who seeks a place: first where he is, then where his friends are, then
 * anywhere. Nothing is changed here. */
#include "core/seek_found.h"

#include "base/plant.h"
#include "core/state.h"
#include "wire/names.h"

#include <stdio.h>
#include <string.h>

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

/* True when its region is one of those it may have; or when one of those who come sits there. */
static bool is_within_reach(const struct allocation *a, const struct room *room, int32_t needs)
{
    return allocation_may_be_in(a, room->row.region) || needs < allocation_players(a);
}

bool seek_fits(const struct core *core, const struct allocation *a, const struct room *room)
{
    const struct room_seat *his = seat_of(core, a, str_of(a->row.player));
    bool any = !a->queue || !a->queue->room;
    int32_t needs = seek_needs(core, a, room);
    return !(any && wants_away(a) && his && his->room == room) &&
           (!any || is_within_reach(a, room, needs)) && needs <= room_empty_seats(room);
}

/* The version that players get who name none: the first of the configuration that is on, else the
 * newest that was deployed. */
struct str seek_version_name(const struct fleet *fleet)
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
    return str_hash(1, seek_version_name(fleet));
}

bool seek_takes_any(const struct room *room)
{
    return str_eq(str_of(room->version->row.name), seek_version_name(room->fleet));
}

bool seek_is_there(const struct room *room)
{
    return room->row.state == ROOM_OPEN && !host_is_away(room->host);
}

/* Something came free there in this step and somebody waits for it. Else whoever is in line there
 * fits no place that is free, and nobody is overtaken who could have it. */
static bool is_unserved(const struct room *room)
{
    return link_in_list(&room->to_serve) && !PLANTED(queue_window);
}

/* ── who may come ──────────────────────────────────────────────────────────────────────────── */

struct place_player seek_player(const struct allocation *a, struct str name)
{
    bool himself = str_eq(name, str_of(a->row.player));
    return (struct place_player){
        .account = name,
        .address = himself ? str_of(a->row.from) : (struct str){0},
        .info = himself ? a->row.info : (struct str){0},
    };
}

/* Another player has the token that he would get, be it one who comes along. */
static bool has_no_token(struct core *core, const struct allocation *a, struct str account)
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
bool seek_is_hindered(struct core *core, const struct allocation *a, struct found *ret)
{
    struct str rest = a->row.party;
    for (struct str name; names_next(&rest, &name);) {
        struct place_player player = seek_player(a, name);
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

/* ── where he is ───────────────────────────────────────────────────────────────────────────── */

bool seek_asks_for_others(const struct allocation *a)
{
    return a->row.friends.len > 0 || a->row.move_party || allocation_players(a) > 1;
}

static bool stays(const struct core *core, const struct allocation *a, struct found *ret)
{
    struct room_seat *seat = seat_of(core, a, str_of(a->row.player));
    if (!seat || seek_asks_for_others(a) || room_is_over(seat->room))
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
    bool fits = needs <= room_free_seats(seat->room) && seek_is_there(seat->room) &&
                !is_unserved(seat->room);
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
        if (seat && seek_is_there(seat->room))
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

void seek_find_line(const struct core *core, const struct allocation *a, struct room *room,
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
        seek_find_line(core, a, best, ret);
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
    return seek_is_there(room) && !is_unserved(room) && seek_fits(core, a, room) &&
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

/* Where one of them is already, fewer places are needed than there are of them. In that region, or
 * in any (-1). */
static struct room *find_with_party(const struct core *core, const struct allocation *a,
                                    int8_t region)
{
    struct str rest = a->row.party;
    for (struct str name; names_next(&rest, &name);) {
        const struct room_seat *seat = seat_of(core, a, name);
        if (seat && (region < 0 || seat->room->row.region == region) &&
            seek_takes_any(seat->room) && suits(core, a, seat->room))
            return seat->room;
    }
    return NULL;
}

static struct room *find_in_region(const struct core *core, const struct allocation *a,
                                   const struct version *version, int8_t region)
{
    struct room *room = version ? find_on_shelf(core, a, &version->shelves[region]) : NULL;
    return room ? room : find_with_party(core, a, region);
}

static void allocation_order(const struct core *core, const struct allocation *a,
                             struct region_order *ret)
{
    regions_in_order(core, a->fleet, a->row.region, a->regions, ret);
}

struct room *seek_find_any(const struct core *core, const struct allocation *a)
{
    const struct version *version = version_row_of(a->fleet, seek_version_name(a->fleet));
    struct region_order where;
    allocation_order(core, a, &where);
    for (int i = 0; i < where.n; i++) {
        struct room *room = find_in_region(core, a, version, where.codes[i]);
        if (room)
            return room;
    }
    return find_with_party(core, a, -1);
}

struct room *seek_unserved_nearer(const struct core *core, const struct allocation *a,
                                  const struct room *than)
{
    struct region_order where;
    struct room *best = NULL;
    int8_t from = than->row.region;
    if (from == a->row.region || list_empty(&core->to_serve))
        return NULL;
    allocation_order(core, a, &where);
    int limit = 0;
    while (limit < where.n && where.codes[limit] != from)
        limit++;
    LIST_EACH(&core->to_serve, room, struct room, to_serve)
    {
        int at = 0;
        while (at < limit && where.codes[at] != room->row.region)
            at++;
        if (at == limit || room->fleet != than->fleet || !seek_is_there(room) ||
            !seek_takes_any(room) || !seek_fits(core, a, room))
            continue;
        best = room;
        limit = at;
    }
    return best;
}

struct room *seek_emptiest(const struct fleet *fleet, uint64_t regions)
{
    const struct version *version = version_row_of(fleet, seek_version_name(fleet));
    struct room *best = NULL;
    for (int8_t code = 0; version && code < REGION_CODES; code++) {
        const struct shelf *shelf = &version->shelves[code];
        if (!is_bit(regions, code))
            continue;
        size_t k = shelf->n;
        while (k > 0 && !seek_is_there(shelf->rooms[k - 1]))
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
    if (own || !seek_is_there(room) || !seek_takes_any(room) || needs > room->row.max_players ||
        !is_within_reach(a, room, needs))
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
    const struct version *version = version_row_of(a->fleet, seek_version_name(a->fleet));
    struct best best = {NULL, INT32_MAX};
    struct str rest = a->row.party;
    if (a->queue->held_in)
        consider(core, a, a->queue->held_in, &best);
    for (struct str name; names_next(&rest, &name);) {
        const struct room_seat *seat = seat_of(core, a, name);
        if (seat)
            consider(core, a, seat->room, &best);
    }
    for (int i = 0; version && i < REGION_CODES; i++) { /* the own region first */
        int8_t code = (int8_t)((a->row.region + i) & (REGION_CODES - 1));
        if (allocation_may_be_in(a, code))
            consider_shelf(core, a, &version->shelves[code], &best);
    }
    return best.room;
}

/* ── a new room ────────────────────────────────────────────────────────────────────────────── */

uint64_t seek_busy(const struct core *core, const struct fleet *fleet)
{
    bool cluster = fleet->config->provider == PROVIDER_AGONES;
    int64_t seats[REGION_CODES] = {0};
    uint64_t busy = 0;
    LIST_EACH(&fleet->allocating, ticket, struct room_ticket, in_allocating)
    {
        const struct room *room = room_find(core, ticket->row.room);
        if (room)
            seats[room->row.region] += fleet->config->max_players;
    }
    for (int8_t code = 0; code < REGION_CODES; code++) {
        int64_t enough = cluster ? 1 : queue_wants(fleet, code);
        if (seats[code] > 0 && seats[code] >= enough)
            busy |= UINT64_C(1) << code;
    }
    return busy;
}

/* A room that is being started for others in that region and has places left. */
static bool join_starting(const struct core *core, const struct allocation *a, int8_t region,
                          struct found *ret)
{
    LIST_EACH(&a->fleet->allocating, ticket, struct room_ticket, in_allocating)
    {
        struct room *room = room_find(core, ticket->row.room);
        if (!room || room->row.region != region || room->row.state != ROOM_STARTING ||
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
bool seek_gives_way(const struct core *core, const struct allocation *a,
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
        bool his = seek_gives_way(core, a, seat);
        freed += his;
        kept += his && names_have(a->row.party, str_of(seat->row.account));
    }
    bool more = !queue_waits(a->fleet->queue) && a->fleet->config->provider != PROVIDER_AGONES;
    int32_t players = allocation_players(a);
    return kept == players || (more && players <= room_empty_seats(room) + freed);
}

/* The room that is being started in that region for an older request of one of them. */
static bool take_over_starting(const struct core *core, const struct allocation *a, int8_t region,
                               struct found *ret)
{
    struct str rest = a->row.party;
    for (struct str name; names_next(&rest, &name);) {
        const struct allocation *older = allocation_of_player(core, a->row.fleet, name);
        bool starting = older && older != a && link_in_list(&older->on_ticket);
        struct room_ticket *ticket = starting ? room_ticket_find(core, older->row.ticket) : NULL;
        struct room *room = ticket ? room_find(core, ticket->row.room) : NULL;
        if (!room || room->row.region != region || room->row.state != ROOM_STARTING ||
            !fits_starting(core, a, room))
            continue;
        ret->what = FOUND_STARTING;
        ret->room = room;
        ret->ticket = ticket;
        return true;
    }
    return false;
}

static bool may_start(const struct core *core, const struct allocation *a)
{
    return !rooms_are_many(core) && allocation_players(a) <= a->fleet->config->max_players &&
           seek_version_name(a->fleet).len > 0; /* none may be on any more */
}

static struct host *host_in_region(const struct core *core, const struct allocation *a,
                                   int8_t region)
{
    struct no_host none;
    const struct region_order here = {.codes = {region}, .n = 1};
    struct choice choice = {
        .fleet = a->fleet,
        .version = version_row_of(a->fleet, seek_version_name(a->fleet)),
        .where = &here,
    };
    return choose_host(core, &choice, &none);
}

struct host *seek_host_for(const struct core *core, const struct allocation *a, uint64_t busy,
                           uint64_t *without)
{
    struct region_order where;
    if ((allocation_regions(a) & ~(busy | *without)) == 0 || !may_start(core, a))
        return NULL;
    allocation_order(core, a, &where);
    for (int i = 0; i < where.n && !is_bit(busy, where.codes[i]); i++) {
        if (is_bit(*without, where.codes[i]))
            continue;
        struct host *host = host_in_region(core, a, where.codes[i]);
        if (host)
            return host;
        *without |= UINT64_C(1) << where.codes[i];
    }
    return NULL;
}

static void no_capacity(const struct core *core, const struct allocation *a, struct found *ret)
{
    char text[FOUND_SENTENCE_MAX];
    const struct fleet_config *config = a->fleet->config;
    bool never = allocation_players(a) > config->max_players;
    if (config->queue_when_full && !never) {
        seek_find_line(core, a, NULL, ret);
        return;
    }
    (void)snprintf(text, sizeof(text), "no capacity in fleet '%s'", a->fleet->row.name);
    finds_nothing(ret, ERR_NO_CAPACITY, str_of(text));
}

/* Those in line for any place of the fleet fit nowhere that is free now; but a room that can be
 * started in a region of theirs is theirs first. */
static bool find_near(const struct core *core, const struct allocation *a,
                      const struct version *version, int8_t region, struct found *ret)
{
    bool others = queue_wants(a->fleet, region) > 0;
    bool cluster = a->fleet->config->provider == PROVIDER_AGONES;
    struct room *room = find_in_region(core, a, version, region);
    if (room)
        finds_room(ret, room, "room");
    if (room || take_over_starting(core, a, region, ret) ||
        (!others && !cluster && join_starting(core, a, region, ret)))
        return true;
    ret->host = !others && may_start(core, a) ? host_in_region(core, a, region) : NULL;
    if (ret->host)
        ret->what = FOUND_HOST;
    return ret->host != NULL;
}

/* Region by region: a host that is near comes before a room that is far. */
static void find_anywhere(const struct core *core, const struct allocation *a, struct found *ret)
{
    struct str name = seek_version_name(a->fleet);
    struct region_order where;
    if (stays_with_others(core, a, ret))
        return;
    if (name.len == 0) {
        finds_nothing(ret, ERR_NO_VERSION, str_of(err_sentence(ERR_NO_VERSION)));
        return;
    }
    const struct version *version = version_row_of(a->fleet, name);
    allocation_order(core, a, &where);
    struct room *room = PLANTED(far_room_first) ? seek_find_any(core, a) : NULL;
    for (int i = 0; i < where.n && !room; i++) {
        if (find_near(core, a, version, where.codes[i], ret))
            return;
    }
    if (!room)
        room = find_with_party(core, a, -1);
    if (room)
        finds_room(ret, room, "room");
    else
        no_capacity(core, a, ret);
}

/* Changes nothing. Only who goes anywhere needs a version that is on: the rooms of one that is
 * switched off play on, with whoever belongs there. */
void seek_find(struct core *core, const struct allocation *a, struct found *ret)
{
    *ret = (struct found){0};
    if (!a->fleet->config)
        finds_nothing(ret, ERR_NO_VERSION, str_of(err_sentence(ERR_NO_VERSION)));
    else if (!seek_is_hindered(core, a, ret) && !stays(core, a, ret) && !join_friends(core, a, ret))
        find_anywhere(core, a, ret);
}
