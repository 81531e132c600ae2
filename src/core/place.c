/* Placing. What is asked is judged in an order that players can rely on: what is unknown first,
 * then a repeat of what was asked before, then who asks, then how often, and only then whether
 * there is a place. All players of one request get seats in one room, or none does; a refusal
 * changes nothing, so that whoever fails keeps the seat he has. */
#include "core/place.h"

#include "core/state.h"

#include <stdio.h>

enum { SENTENCE_MAX = CHOICE_WHY_MAX };

/* One request on its way through the checks. */
struct placing {
    conn_id conn;
    const struct place *p;
    struct fleet *fleet;
    char text[SENTENCE_MAX];          /* of a refusal */
    struct placed extra;              /* … and what stands beside it */
    int8_t region;                    /* CREATE, JOIN: the first of … */
    struct region_order where;        /* … those in which there may be a place */
    const struct ticket_regions *own; /* … NULL: they are as its fleet has it */
    bool judged;                      /* whether a room may be made for it: … */
    int make_err;                     /* … 0, or why not */
    struct buf settings;              /* … of that room */
};

static int refuse(struct core *core, const struct placing *g, int err)
{
    struct placed *placed = arena_alloc(&core->out->arena, sizeof(*placed));
    struct str text = text_keep(core, str_of(g->text[0] ? g->text : err_sentence(err)));
    *placed = g->extra;
    if (placed->retry_after_ms == 0 && (err_status(err) == 503 || err_status(err) == 429))
        placed->retry_after_ms = CHOICE_RETRY_MS;
    struct effect *note = note_of_players(core, g->p, note_refused(core, g->conn, err));
    note->text = text;
    note->fleet_id = g->fleet ? (int32_t)g->fleet->row.id : 0;
    struct effect *e = effect_add(core, EFFECT_PLACED, g->conn);
    e->err = err;
    e->text = text;
    e->placed = placed;
    return err;
}

/* ── what is asked for ─────────────────────────────────────────────────────────────────────── */

static int judge_fleet(struct core *core, struct placing *g)
{
    char name[sizeof(((struct fleet_config *)0)->name)];
    if (!str_copy(name, sizeof(name), g->p->fleet))
        return ERR_NO_SUCH_FLEET;
    g->fleet = fleet_find_named(core, name);
    if (!g->fleet || !g->fleet->config)
        return ERR_NO_SUCH_FLEET;
    if (g->fleet->config->provider != PROVIDER_AGENT)
        return ERR_WRONG_PROVIDER;
    return version_judge(g->fleet, g->p->version);
}

static bool is_named_twice(const struct place *p)
{
    for (size_t i = 0; i < p->n_players; i++) {
        for (size_t k = 0; k < i; k++) {
            if (str_eq(p->players[i].account, p->players[k].account))
                return true;
        }
    }
    return false;
}

static int judge_players(struct placing *g)
{
    const struct place *p = g->p;
    if (p->n_players == 0 || p->n_players > PLACE_PLAYERS_MAX)
        return ERR_BAD_ARGUMENT;
    for (size_t i = 0; i < p->n_players; i++) {
        const struct place_player *player = &p->players[i];
        if (player->account.len == 0 || player->account.len > 64 || player->info.len > 4096 ||
            player->sealed.len > 8320)
            return ERR_BAD_ARGUMENT;
    }
    if (!is_named_twice(p))
        return 0;
    (void)snprintf(g->text, sizeof(g->text), "a player is named twice");
    return ERR_BAD_ARGUMENT;
}

/* ── who asks, and how often ───────────────────────────────────────────────────────────────── */

static int judge_bans(struct core *core, struct placing *g)
{
    for (size_t i = 0; i < g->p->n_players; i++) {
        const struct place_player *player = &g->p->players[i];
        const struct ban *ban = ban_check(core, player->account, player->address);
        if (!ban)
            continue;
        struct str text = ban_refuse(core, ban, player->account, &g->extra);
        (void)snprintf(g->text, sizeof(g->text), "%.*s", (int)text.len, text.at);
        return ERR_BANNED;
    }
    return 0;
}

enum rate_kind place_rate(enum place_verb verb)
{
    return verb == PLACE_CREATE ? RATE_CREATE : RATE_JOIN;
}

static int judge_rates(struct core *core, struct placing *g)
{
    for (size_t i = 0; i < g->p->n_players; i++) {
        struct str account = g->p->players[i].account;
        int64_t wait_ms = core_rate_wait_ms(core, place_rate(g->p->verb), account);
        if (wait_ms <= 0)
            continue;
        g->extra.refused = text_keep(core, account);
        g->extra.retry_after_ms = wait_ms;
        rate_print(wait_ms, g->text, sizeof(g->text));
        return ERR_RATE_LIMITED;
    }
    return 0;
}

static void place_count_rates(struct core *core, const struct place *p)
{
    for (size_t i = 0; i < p->n_players; i++)
        core_rate_count(core, place_rate(p->verb), p->players[i].account);
}

static void place_give_back_rates(struct core *core, const struct place *p)
{
    for (size_t i = 0; i < p->n_players; i++)
        rates_give_back(&core->rates, place_rate(p->verb), p->players[i].account,
                        core->now.core_ms);
}

/* Two players whom a proxy cannot tell apart. */
static int judge_tokens(struct core *core, const struct placing *g, const struct fleet *fleet)
{
    const struct place *p = g->p;
    for (size_t i = 0; i < p->n_players; i++) {
        bool taken = route_taken(core, fleet, p->players[i].account) != NULL;
        for (size_t k = 0; k < i; k++)
            taken |= route_is_same(fleet, p->players[i].account, p->players[k].account);
        if (!taken)
            continue;
        note_add(core, NOTE_TOKEN_COLLISION)->fleet_id = (int32_t)fleet->row.id;
        return ERR_TOKEN_TAKEN;
    }
    return 0;
}

/* ── taking seats in a room that is open ───────────────────────────────────────────────────── */

static struct room_seat *seat_here(const struct core *core, const struct room *room,
                                   struct str account)
{
    struct room_seat *seat = room_seat_of(core, room->row.fleet, account);
    return seat && seat->room == room ? seat : NULL;
}

/* Whoever sits there already needs no other place. */
static bool has_places(const struct core *core, const struct room *room, const struct place *p)
{
    int32_t needed = (int32_t)p->n_players;
    for (size_t i = 0; i < p->n_players; i++)
        needed -= seat_here(core, room, p->players[i].account) != NULL;
    return room_free_seats(room) >= needed;
}

/* A reservation is renewed. Somebody who had joined comes again from elsewhere: he gets a new key,
 * and whoever uses the old one is sent away. */
static void take_seat(struct core *core, struct room *room, const struct room_ticket *ticket,
                      const struct place_player *player, bool multi)
{
    struct room_seat *seat = seat_here(core, room, player->account);
    if (seat && seat->row.state == ROOM_SEAT_RESERVED) {
        room_seat_again(core, seat, ticket->row.id, player);
        return;
    }
    struct room_seat *old = room_seat_of(core, room->row.fleet, player->account);
    if (old)
        room_seat_kick(core, old, SEAT_END_MOVED, STR("moved to another seat"));
    (void)room_seat_new(core, room, ticket->row.id, player, multi ? ticket->row.id : 0);
}

static void enter_room(struct core *core, const struct placing *g, struct room *room, int8_t region)
{
    struct room_ticket *ticket = room_ticket_new(core, g->conn, g->p, room->version, region, NULL);
    ticket->row.room = room->row.id;
    for (size_t i = 0; i < g->p->n_players; i++)
        take_seat(core, room, ticket, &g->p->players[i], g->p->multi);
    room_ticket_done(core, ticket);
}

/* ── a new room ────────────────────────────────────────────────────────────────────────────── */

/* More than a new room would hold. That is no matter of waiting, so nobody is told to try again. */
static int judge_size(struct placing *g)
{
    int32_t most = g->fleet->config->max_players;
    if ((int32_t)g->p->n_players <= most)
        return 0;
    (void)snprintf(g->text, sizeof(g->text), "a room of %.64s holds at most %d players, not %zu",
                   g->fleet->row.name, most, g->p->n_players);
    return ERR_BAD_ARGUMENT;
}

/* Whether a room may be made for it, wherever: judged once, and only when somebody wants to know.
 */
static int judge_making(const struct core *core, struct placing *g)
{
    char why[SETTINGS_WHY_MAX];
    if (g->judged)
        return g->make_err;
    g->judged = true;
    g->make_err = judge_size(g);
    if (!g->make_err)
        g->make_err = rooms_are_many(core) ? ERR_TOO_MANY : 0;
    if (!g->make_err && (g->make_err = settings_take(g->p->settings, &g->settings, why)))
        (void)snprintf(g->text, sizeof(g->text), "%s", why);
    return g->make_err;
}

static void placing_make_room(struct core *core, const struct placing *g, struct host *host)
{
    struct version *version = version_use(core, g->fleet, g->p->version);
    struct room_ticket *ticket = room_ticket_new(core, g->conn, g->p, version, g->region, g->own);
    struct room *room = room_ticket_spawn(core, ticket, version, host,
                                          (struct str){(char *)g->settings.data, g->settings.len});
    for (size_t i = 0; i < g->p->n_players; i++)
        (void)room_seat_new(core, room, ticket->row.id, &g->p->players[i],
                            g->p->multi ? ticket->row.id : 0);
    room_tell(core, room);
}

static struct host *place_host(const struct core *core, const struct placing *g,
                               const struct region_order *where, struct no_host *none)
{
    struct choice choice = {
        .fleet = g->fleet,
        .version = version_row_of(g->fleet, g->p->version),
        .where = where,
    };
    return choose_host(core, &choice, none);
}

static int create_room(struct core *core, struct placing *g)
{
    struct no_host none;
    int err = judge_making(core, g);
    if (err)
        return err;
    struct host *host = place_host(core, g, &g->where, &none);
    if (host) {
        placing_make_room(core, g, host);
        return 0;
    }
    (void)snprintf(g->text, sizeof(g->text), "%s", none.why);
    g->extra.retry_after_ms = none.retry_ms;
    return ERR_NO_HOST;
}

/* ── a room that is there ──────────────────────────────────────────────────────────────────── */

/* How many free seats a room must have at least. Who sits somewhere may stay there, so then full
 * rooms are looked at too. */
static int32_t least_free(const struct core *core, const struct placing *g)
{
    for (size_t i = 0; i < g->p->n_players; i++) {
        if (room_seat_of(core, (int32_t)g->fleet->row.id, g->p->players[i].account))
            return 0;
    }
    return (int32_t)g->p->n_players;
}

/* The fullest room of that region that suits. */
static struct room *find_room(const struct core *core, const struct placing *g,
                              const struct version *version, int8_t region)
{
    int32_t least = least_free(core, g);
    const struct shelf *shelf = &version->shelves[region];
    for (size_t k = shelf_first(shelf, least); k < shelf->n; k++) {
        struct room *room = shelf->rooms[k];
        if (!host_is_away(room->host) && room_suits(room, g->p->filter) &&
            has_places(core, room, g->p))
            return room;
    }
    return NULL;
}

/* Why there is none; only said, so it may look at every room. */
static void explain(const struct core *core, struct placing *g)
{
    const struct version *version = version_row_of(g->fleet, g->p->version);
    char text[REGIONS_TEXT_MAX];
    int32_t seen = 0;
    int32_t full = 0;
    regions_print(core, &g->where, text);
    const char *in = g->where.elsewhere ? "" : " in ";
    const char *where = g->where.elsewhere ? "" : text;
    for (int i = 0; version && i < g->where.n; i++) {
        const struct shelf *shelf = &version->shelves[g->where.codes[i]];
        for (size_t k = 0; k < shelf->n; k++) {
            const struct room *room = shelf->rooms[k];
            seen++;
            full += !host_is_away(room->host) && room_suits(room, g->p->filter);
        }
    }
    if (full > 0)
        (void)snprintf(g->text, sizeof(g->text), "every room%s%s that suits is full (%d)", in,
                       where, full);
    else if (seen > 0)
        (void)snprintf(g->text, sizeof(g->text), "none of %d open rooms%s%s suits", seen, in,
                       where);
    else
        (void)snprintf(g->text, sizeof(g->text), "there is no open room of %.64s %.*s%s%s",
                       g->fleet->row.name, (int)g->p->version.len, g->p->version.at, in, where);
}

/* Region by region: a host that is near comes before a room that is far. */
static bool join_region(struct core *core, struct placing *g, const struct version *version,
                        int8_t region)
{
    struct no_host none;
    const struct region_order here = {.codes = {region}, .n = 1};
    struct room *room = version ? find_room(core, g, version, region) : NULL;
    if (room) {
        enter_room(core, g, room, g->region);
        return true;
    }
    if (!g->p->auto_create || judge_making(core, g))
        return false;
    struct host *host = place_host(core, g, &here, &none);
    if (host)
        placing_make_room(core, g, host);
    return host != NULL;
}

static int join(struct core *core, struct placing *g)
{
    const struct version *version = version_row_of(g->fleet, g->p->version);
    for (int i = 0; i < g->where.n; i++) {
        if (join_region(core, g, version, g->where.codes[i]))
            return 0;
    }
    if (g->p->auto_create)
        return create_room(core, g); /* which says why not */
    int err = judge_size(g);         /* a room from before may be larger, so only now */
    if (err)
        return err;
    explain(core, g);
    return ERR_NO_PLACE;
}

static int enter(struct core *core, struct placing *g)
{
    struct room *room = room_find(core, g->p->room);
    if (!room || room_is_over(room))
        return ERR_NO_ROOM;
    if (room->fleet->config && room->fleet->config->provider != PROVIDER_AGENT)
        return ERR_WRONG_PROVIDER; /* its proxy lets nobody in who did not seek a place */
    if (room->row.state == ROOM_STARTING)
        return ERR_ROOM_STARTING;
    if (host_is_away(room->host))
        return ERR_HOST_AWAY;
    if (!has_places(core, room, g->p)) {
        (void)snprintf(g->text, sizeof(g->text), "the room is full (%d players)",
                       room->row.max_players);
        return ERR_NO_PLACE;
    }
    int err = judge_tokens(core, g, room->fleet);
    if (!err)
        enter_room(core, g, room, room->row.region);
    return err;
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

/* True when the request was asked before: it has its answer, or will have it. */
static bool answer_again(struct core *core, const struct placing *g)
{
    struct room_ticket *ticket = room_ticket_of_key(core, g->p);
    if (!ticket)
        return false;
    if (!room_ticket_is_same(ticket, g->p))
        refuse(core, g, ERR_KEY_CONFLICT);
    else if (ticket->row.state != ROOM_TICKET_OPEN)
        room_ticket_answer(core, ticket, g->conn);
    else if (!room_ticket_wait(ticket, g->conn))
        refuse(core, g, ERR_BUSY);
    return true;
}

bool place_is_settled(const struct core *core, const struct place *p)
{
    const struct room_ticket *ticket = p->n_players > 0 ? room_ticket_of_key(core, p) : NULL;
    return ticket && ticket->row.state != ROOM_TICKET_OPEN;
}

static int find_place(struct core *core, struct placing *g)
{
    struct ticket_regions own;
    if (g->p->verb == PLACE_ENTER)
        return enter(core, g);
    uint64_t allowed = g->fleet->config->regions;
    int err = judge_tokens(core, g, g->fleet);
    if (err)
        return err;
    g->region = region_choose(core, allowed, g->p);
    if (g->region < 0)
        return ERR_REGION_NOT_SUPPORTED;
    g->own = ticket_regions_read(core, allowed, g->p, g->region, false, &own) ? &own : NULL;
    regions_in_order(core, g->fleet, g->region, g->own, &g->where);
    err = g->p->verb == PLACE_CREATE ? create_room(core, g) : join(core, g);
    buf_done(&g->settings);
    return err;
}

void place(struct core *core, conn_id conn, const struct place *p)
{
    struct placing g = {.conn = conn, .p = p};
    int err = judge_players(&g);
    if (!err && p->verb != PLACE_ENTER)
        err = judge_fleet(core, &g);
    if (!err && answer_again(core, &g))
        return;
    if (!err)
        err = judge_bans(core, &g);
    if (!err)
        err = judge_rates(core, &g);
    if (!err) {
        place_count_rates(core, p);
        err = find_place(core, &g);
        if (err == ERR_NO_HOST) /* nothing was started for it */
            place_give_back_rates(core, p);
    }
    if (err)
        (void)refuse(core, &g, err);
}
