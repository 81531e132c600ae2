/* Allocations: being, states, and what their senders are told. What place a player gets is seek.c's
 * business. */
#include "core/allocation.h"

#include "core/state.h"
#include "wire/names.h"
#include "wire/put.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A stored one holds its error as a number: that is part of the format. */
_Static_assert(ERR_TICKET_CANCELLED == -27 && ERR_PLAYER_REQUIRED == -61 &&
                   ERR_NAME_CONFLICT == -68,
               "append to errors.def, or raise ROW_FORMAT");

struct allocation *allocation_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_allocation, id);
}

static uint64_t text_key(struct str text)
{
    return str_hash(0, text);
}

struct str allocation_owner(const struct row_allocation *row)
{
    return row->bus & BUS_OWN ? str_of(row->player) : STR("");
}

static uint64_t name_key(struct str owner, struct str name)
{
    return str_hash(owner.len > 0 ? text_key(owner) : 0, name);
}

static uint64_t key_of_row(const struct row_allocation *row)
{
    return name_key(allocation_owner(row), str_of(row->name));
}

struct allocation *allocation_named(const struct core *core, struct str owner, struct str name)
{
    struct chain_link *n = chain_first(&core->allocations_by_name, name_key(owner, name));
    for (; n; n = n->next) {
        struct allocation *a = container_of(n, struct allocation, by_name);
        if (str_eq(str_of(a->row.name), name) && str_eq(allocation_owner(&a->row), owner))
            return a;
    }
    return NULL;
}

/* fleet 0: of any. */
static struct allocation *waits_with(const struct core *core, int32_t fleet, struct str account,
                                     bool queued)
{
    struct chain_link *n = chain_first(&core->allocations_by_player, text_key(account));
    for (; n; n = n->next) {
        struct allocation *a = container_of(n, struct allocation_member, by_player)->of;
        if ((fleet == 0 || a->row.fleet == fleet) && names_have(a->row.party, account) &&
            (!queued || a->row.state == ALLOCATION_QUEUED))
            return a;
    }
    return NULL;
}

struct allocation *allocation_of_player(const struct core *core, int32_t fleet, struct str account)
{
    return waits_with(core, fleet, account, false);
}

const struct allocation *allocation_of_ticket(const struct core *core, int64_t id)
{
    const struct room_ticket *ticket = room_ticket_find(core, id);
    if (!ticket || list_empty(&ticket->allocations))
        return NULL;
    return container_of(list_first(&ticket->allocations), struct allocation, on_ticket);
}

int32_t allocation_players(const struct allocation *a)
{
    return names_count(a->row.party);
}

bool allocation_may_be_in(const struct allocation *a, int8_t region)
{
    return region_is_open_to(a->fleet, a->row.region, a->regions, region);
}

uint64_t allocation_regions(const struct allocation *a)
{
    if (a->regions)
        return a->regions->mask;
    if (a->fleet->config && a->fleet->config->other_regions)
        return UINT64_MAX;
    return a->row.region >= 0 ? UINT64_C(1) << a->row.region : 0;
}

bool allocation_is_open(const struct allocation *a)
{
    return a->row.state == ALLOCATION_OPEN || a->row.state == ALLOCATION_QUEUED;
}

/* ── members ───────────────────────────────────────────────────────────────────────────────── */

static void add_members(struct core *core, struct allocation *a)
{
    size_t n = (size_t)allocation_players(a);
    struct str rest = a->row.party;
    struct str name;
    a->members = n > 1 ? xcalloc(n, sizeof(*a->members)) : &a->himself;
    for (size_t i = 0; i < n && names_next(&rest, &name); i++) {
        a->members[i].of = a;
        chain_add(&core->allocations_by_player, text_key(name), &a->members[i].by_player);
    }
}

void allocation_free_members(struct allocation *a)
{
    if (a->members != &a->himself)
        free(a->members);
    a->members = NULL;
}

static void remove_members(struct core *core, struct allocation *a)
{
    struct str rest = a->row.party;
    struct str name;
    for (size_t i = 0; names_next(&rest, &name); i++)
        chain_remove(&core->allocations_by_player, text_key(name), &a->members[i].by_player);
    allocation_free_members(a);
}

/* ── who comes along with his party ────────────────────────────────────────────────────────── */

bool allocation_is_gone(const struct core *core, const struct allocation *a, int i,
                        struct str account)
{
    if (a->row.move_party == 0 || i < a->row.move_party)
        return false;
    const struct room_seat *his = room_seat_of(core, a->row.fleet, str_of(a->row.player));
    const struct room_seat *seat = room_seat_of(core, a->row.fleet, account);
    return !his || !seat || his->row.multi == 0 || seat->row.multi != his->row.multi;
}

/* Those who are left of it, in their order. */
static struct str party_left(const struct core *core, const struct allocation *a, struct buf *names)
{
    struct str rest = a->row.party;
    struct str name;
    for (int i = 0; names_next(&rest, &name); i++) {
        if (!allocation_is_gone(core, a, i, name))
            names_add(names, name);
    }
    return (struct str){(const char *)names->data, names->len};
}

void allocation_drop_gone(struct core *core, struct allocation *a)
{
    struct buf names = {0};
    if (a->row.move_party == 0)
        return;
    struct str left = party_left(core, a, &names);
    if (left.len != a->row.party.len) {
        int32_t players = allocation_players(a);
        remove_members(core, a);
        long_set(&a->row.party, left);
        add_members(core, a);
        object_touch(core, &a->object);
        if (a->queue)
            queue_shrank(core, a, players - allocation_players(a));
    }
    buf_done(&names);
}

void allocations_party_left(struct core *core, const struct room_seat *seat)
{
    struct allocation *a = waits_with(core, seat->row.fleet, str_of(seat->row.account), true);
    if (a && a->row.move_party)
        allocation_drop_gone(core, a);
}

static bool comes_along(const struct allocation *a, struct str account)
{
    struct str rest = a->row.party;
    struct str name;
    for (int i = 0; names_next(&rest, &name); i++) {
        if (str_eq(name, account))
            return a->row.move_party > 0 && i >= a->row.move_party;
    }
    return false;
}

/* ── seats ─────────────────────────────────────────────────────────────────────────────────── */

int64_t allocation_seat(const struct allocation *a, size_t i)
{
    struct cursor c = cursor_of((const uint8_t *)a->row.seats.at, a->row.seats.len);
    if ((i + 1) * 8 > a->row.seats.len)
        return 0;
    int64_t id = 0;
    for (size_t k = 0; k <= i; k++)
        id = cursor_i64(&c);
    return id;
}

void allocation_set_seats(struct core *core, struct allocation *a, const int64_t *seats, size_t n)
{
    struct buf b = {0};
    for (size_t i = 0; i < n; i++)
        put_i64(&b, seats[i]);
    long_set(&a->row.seats, (struct str){(const char *)b.data, b.len});
    buf_done(&b);
    object_touch(core, &a->object);
}

/* Those that it has and nobody is in yet. */
static void release_seats(struct core *core, struct allocation *a)
{
    for (size_t i = 0; i < a->row.seats.len / 8; i++) {
        struct room_seat *seat = room_seat_find(core, allocation_seat(a, i));
        if (seat && seat->row.ticket == a->row.id && !room_seat_is_his(seat))
            room_seat_leave(core, seat, SEAT_END_GIVEN_UP, STR("the allocation came to nothing"));
    }
    a->unrouted = 0;
    long_set(&a->row.seats, (struct str){0});
}

/* ── what is said ──────────────────────────────────────────────────────────────────────────── */

static struct str queue_id(const struct allocation *a, struct arena *memory)
{
    char text[96];
    if (a->queue && a->queue->room)
        (void)snprintf(text, sizeof(text), "room-%" PRId64, a->queue->room->row.id);
    else
        (void)snprintf(text, sizeof(text), "fleet-%s", a->fleet->row.name);
    return arena_str(memory, str_of(text));
}

static struct str route_of(const struct core *core, const struct allocation *a, int64_t seat,
                           struct str account, struct arena *memory)
{
    char token[ROUTE_TOKEN_SIZE];
    route_token(core, a->fleet, seat, account, token);
    return arena_str(memory, str_of(token));
}

/* On fleets of agents the game server asks who it is. */
static struct str key_of(const struct core *core, const struct allocation *a, int64_t seat,
                         struct arena *memory)
{
    char key[SEAT_KEY_SIZE];
    if (!token_mode_has_key(a->fleet, seat))
        return (struct str){0};
    return arena_str(memory, seat_key(core, seat, key));
}

static void fill_success(const struct core *core, const struct allocation *a, struct arena *memory,
                         struct envelope_result *ret)
{
    size_t n = a->row.seats.len / 8;
    struct envelope_member *party = arena_alloc(memory, (n + 1) * sizeof(*party));
    struct str rest = a->row.party;
    struct str name;
    for (size_t i = 0; i < n && names_next(&rest, &name); i++) {
        int64_t seat = allocation_seat(a, i);
        party[i] = (struct envelope_member){
            .player_id = arena_str(memory, name),
            .token = route_of(core, a, seat, name, memory),
            .key = key_of(core, a, seat, memory),
        };
    }
    ret->token = n > 0 ? party[0].token : (struct str){0};
    ret->key = n > 0 ? party[0].key : (struct str){0};
    ret->party = n > 1 ? party + 1 : NULL;
    ret->n_party = n > 1 ? n - 1 : 0;
    ret->party_id = allocation_party(a);
    ret->address = arena_str(memory, str_of(a->row.address));
    ret->n_ports = a->row.ports_len / 2;
    for (int i = 0; i < ret->n_ports; i++)
        ret->ports[i] = (uint16_t)(a->row.ports[2 * i] | a->row.ports[2 * i + 1] << 8);
    ret->session_id = a->row.room;
    ret->expires_wall_ms = a->row.expires_wall_ms;
}

static void fill_result(const struct core *core, const struct allocation *a, struct arena *memory,
                        struct envelope_result *ret)
{
    *ret = (struct envelope_result){.ticket_id = arena_str(memory, str_of(a->row.name))};
    switch ((enum allocation_state)a->row.state) {
    case ALLOCATION_DONE:
        ret->status = ENVELOPE_SUCCESS;
        fill_success(core, a, memory, ret);
        break;
    case ALLOCATION_OPEN:
    case ALLOCATION_QUEUED:
        ret->status = ENVELOPE_QUEUED;
        ret->queue_id = queue_id(a, memory);
        if (a->queue) {
            ret->position = queue_position(a, NULL);
            ret->eta_s = (queue_eta_ms(a) + 999) / 1000;
        }
        break;
    case ALLOCATION_FAILED:
    case ALLOCATION_CANCELLED:
    case ALLOCATION_STATES:
        ret->status = ENVELOPE_FAILURE;
        ret->error = arena_str(memory, a->row.why);
        break;
    }
}

int view_result(struct core *core, int64_t allocation, struct envelope_result *ret)
{
    const struct allocation *a = allocation_find(core, allocation);
    if (!a)
        return ERR_NOT_FOUND;
    arena_reset(&core->view_memory);
    fill_result(core, a, &core->view_memory, ret);
    return 0;
}

void allocation_answer(struct core *core, const struct allocation *a, conn_id conn)
{
    struct envelope_result *result = arena_alloc(&core->out->arena, sizeof(*result));
    fill_result(core, a, &core->out->arena, result);
    struct effect *e = effect_add(core, EFFECT_SOUGHT, conn);
    e->object = a->row.id;
    e->fleet_id = a->row.fleet;
    e->asked_us = a->asked_us;
    e->err = result->status == ENVELOPE_FAILURE ? a->row.error : 0;
    e->result = result;
}

const uint8_t *arguments_keep(struct core *core, const uint8_t arguments[OPERATE_DIGEST])
{
    return memcpy(arena_alloc(&core->out->arena, OPERATE_DIGEST), arguments, OPERATE_DIGEST);
}

void allocation_tell(struct core *core, const struct allocation *a, int8_t buses, bool news)
{
    struct envelope_result *result = arena_alloc(&core->out->arena, sizeof(*result));
    fill_result(core, a, &core->out->arena, result);
    const uint8_t *arguments = arguments_keep(core, a->row.arguments);
    for (int8_t bus = 1; bus <= BUSES_ALL; bus = (int8_t)(bus << 1)) {
        if (!(buses & bus))
            continue;
        struct effect *e = effect_add(core, EFFECT_RESULT, 0);
        e->object = a->row.id;
        e->event = a->row.state;
        e->verb = bus;
        e->on = news;
        e->result = result;
        e->arguments = arguments;
    }
}

static struct effect *allocation_note(struct core *core, const struct allocation *a, enum note kind)
{
    struct str player = text_keep(core, str_of(a->row.player));
    struct str name = text_keep(core, str_of(a->row.name));
    struct str party = text_keep(core, a->row.party);
    struct effect *note = note_add(core, kind);
    note->object = a->row.id;
    note->fleet_id = a->row.fleet;
    note->region_code = a->row.region;
    note->session = a->row.room;
    note->ticket = a->row.ticket;
    note->chat = player;
    note->text = name;
    note->party = party;
    note->asked_us = a->asked_us;
    return note;
}

bool allocation_wait(struct allocation *a, conn_id conn)
{
    if (a->n_askers == ALLOCATION_ASKERS)
        return false;
    a->askers[a->n_askers++] = conn;
    return true;
}

/* ── moves ─────────────────────────────────────────────────────────────────────────────────── */

static const uint8_t allowed_moves[ALLOCATION_STATES] = {
    [0] = 1 << ALLOCATION_OPEN,
    [ALLOCATION_OPEN] = 1 << ALLOCATION_QUEUED | 1 << ALLOCATION_DONE | 1 << ALLOCATION_FAILED |
                        1 << ALLOCATION_CANCELLED,
    [ALLOCATION_QUEUED] = 1 << ALLOCATION_OPEN | 1 << ALLOCATION_FAILED | 1 << ALLOCATION_CANCELLED,
};

static void set_deadline(struct core *core, struct allocation *a, int64_t at_ms)
{
    a->row.deadline_core_ms = at_ms;
    deadline_set(core, &a->deadline, DEADLINE_CORE, at_ms);
}

static void set_owed(struct core *core, struct allocation *a, int8_t buses)
{
    if (a->row.owed == buses)
        return;
    core->n_allocations_owed += (buses != 0) - (a->row.owed != 0);
    a->row.owed = buses;
    if (buses == 0)
        list_remove(&a->in_owed);
    else if (!link_in_list(&a->in_owed))
        list_append(&core->allocations_owed, &a->in_owed);
    object_touch(core, &a->object);
}

void allocation_ask_by(struct core *core, struct allocation *a, int8_t bus)
{
    bool open = a->row.state == ALLOCATION_OPEN;
    if (!(a->row.bus & bus)) {
        a->row.bus = (int8_t)(a->row.bus | bus);
        object_touch(core, &a->object);
        if (!open)
            set_owed(core, a, (int8_t)(a->row.owed | bus));
    }
    if (!open)
        allocation_tell(core, a, bus, false);
}

static void finished(struct core *core, struct allocation *a)
{
    list_append(&core->allocations_finished, &a->in_finished);
    core->n_allocations_finished++;
}

static void leave_ticket(struct core *core, struct allocation *a)
{
    struct room_ticket *ticket = room_ticket_find(core, a->row.ticket);
    list_remove(&a->on_ticket);
    if (ticket && list_empty(&ticket->allocations))
        list_remove(&ticket->in_allocating);
}

/* Who is served in the step in which he came has not waited. */
static void leave_line(struct core *core, struct allocation *a)
{
    queue_remove(core, a);
    if (link_in_list(&a->in_lined) && a->newly)
        a->row.queued_core_ms = 0;
    list_remove(&a->in_lined);
}

static void move(struct core *core, struct allocation *a, enum allocation_state state)
{
    assert(allowed_moves[a->row.state] & 1 << state);
    if (a->row.state == ALLOCATION_QUEUED)
        leave_line(core, a);
    if (a->row.state)
        core->allocations_in[a->row.state]--;
    core->allocations_in[state]++;
    a->row.state = (int8_t)state;
    object_touch(core, &a->object);
    list_remove(&a->in_lost);
    if (state != ALLOCATION_OPEN)
        leave_ticket(core, a);
    if (state == ALLOCATION_OPEN || state == ALLOCATION_QUEUED)
        return;
    a->row.answered_wall_ms = core->now.wall_ms;
    set_deadline(core, a, core->now.core_ms + core->config.timeouts.keep_ms);
    remove_members(core, a);
    ticket_regions_forget(core, a->regions);
    a->regions = NULL;
    finished(core, a);
}

static void answer_askers(struct core *core, struct allocation *a)
{
    int n = a->n_askers;
    a->n_askers = 0;
    for (int i = 0; i < n; i++)
        allocation_answer(core, a, a->askers[i]);
}

/* To whoever waits here, and to every bus through which it was asked for. */
static void answer_all(struct core *core, struct allocation *a)
{
    answer_askers(core, a);
    int8_t buses = (int8_t)(a->row.bus & BUSES_ALL);
    if (buses == 0)
        return;
    set_owed(core, a, buses);
    allocation_tell(core, a, buses, false);
}

void allocation_done(struct core *core, struct allocation *a, const struct room *room)
{
    const struct fleet_config *config = room_config(room);
    a->row.room = room->row.id;
    (void)str_copy(a->row.address, sizeof(a->row.address), str_of(room_address(room)));
    memcpy(a->row.ports, room->row.ports, sizeof(a->row.ports));
    a->row.ports_len = room->row.ports_len;
    const struct room_seat *seat = room_seat_find(core, allocation_seat(a, 0));
    bool reserved = seat && seat->row.state == ROOM_SEAT_RESERVED;
    a->row.expires_wall_ms = reserved ? core->now.wall_ms + config->reserve_ms : 0;
    move(core, a, ALLOCATION_DONE);
    struct effect *note = allocation_note(core, a, NOTE_ALLOCATION_DONE);
    note->server_id = (int32_t)room->row.server;
    note->region = str_of(a->how ? a->how : "");
    note->wall_ms = a->row.queued_core_ms ? core->now.core_ms - a->row.queued_core_ms : 0;
    answer_all(core, a);
}

static void give_up(struct core *core, struct allocation *a, enum allocation_state state, int err,
                    struct str why)
{
    bool queued = a->row.state == ALLOCATION_QUEUED;
    char text[320];
    (void)snprintf(text, sizeof(text), "%.*s", (int)why.len, why.at);
    a->row.error = err;
    long_set(&a->row.why, str_of(text));
    move(core, a, state);
    release_seats(core, a);
    struct effect *note = allocation_note(core, a, NOTE_ALLOCATION_FAILED);
    note->err = err;
    note->on = queued; /* he gave up waiting, or was made to */
    note->wall_ms = a->row.queued_core_ms ? core->now.core_ms - a->row.queued_core_ms : 0;
    answer_all(core, a);
}

void allocation_fail(struct core *core, struct allocation *a, int err, struct str why)
{
    give_up(core, a, ALLOCATION_FAILED, err, why);
}

void allocation_cancel(struct core *core, struct allocation *a, int err, struct str why)
{
    give_up(core, a, ALLOCATION_CANCELLED, err, why);
}

static void waited_too_long(struct core *core, struct allocation *a, int64_t ms)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "queue timeout after %" PRId64 " s", ms / 1000);
    allocation_fail(core, a, ERR_QUEUE_TIMEOUT, str_of(text));
}

/* What he waited for meanwhile, a room that came to nothing, counts. */
void allocation_queue(struct core *core, struct allocation *a, struct room *room)
{
    allocation_drop_gone(core, a);
    int64_t queue_ms = a->fleet->config->queue_ms;
    if (core->now.core_ms - a->row.opened_core_ms >= queue_ms) {
        waited_too_long(core, a, queue_ms);
        return;
    }
    a->newly = a->row.queued_core_ms == 0;
    if (a->newly)
        a->row.queued_core_ms = core->now.core_ms;
    a->row.room = room ? room->row.id : 0;
    a->row.ticket = 0;
    set_deadline(core, a, a->row.opened_core_ms + queue_ms);
    move(core, a, ALLOCATION_QUEUED);
    queue_add(core, queue_of(a->fleet, room), a);
    if (a->newly)
        a->told_core_ms = core->now.core_ms; /* when this step is over, not before */
    list_append(&core->allocations_lined, &a->in_lined);
}

static void say_queued(struct core *core, struct allocation *a)
{
    if (!a->newly) {
        answer_askers(core, a); /* who came meanwhile; the others were told */
        return;
    }
    a->told_position = queue_position(a, NULL);
    a->told_room = a->row.room;
    allocation_note(core, a, NOTE_ALLOCATION_QUEUED)->load = a->told_position;
    answer_all(core, a);
}

void allocations_say_queued(struct core *core)
{
    LIST_EACH(&core->allocations_lined, a, struct allocation, in_lined)
    {
        list_remove(&a->in_lined);
        say_queued(core, a);
    }
}

void allocation_reopen(struct core *core, struct allocation *a)
{
    move(core, a, ALLOCATION_OPEN);
    set_deadline(core, a, core->now.core_ms + core->config.timeouts.place_ms);
}

/* ── what others say ───────────────────────────────────────────────────────────────────────── */

void allocation_published(struct core *core, const struct published *p)
{
    struct allocation *a = allocation_find(core, p->allocation);
    if (a && a->row.state == p->state)
        set_owed(core, a, (int8_t)(a->row.owed & ~(int8_t)p->bus));
}

/* Every proxy lets them in: now they are there, all at once. */
static void arrive(struct core *core, struct allocation *a)
{
    const struct room *room = NULL;
    for (size_t i = 0; i < a->row.seats.len / 8; i++) {
        struct room_seat *seat = room_seat_find(core, allocation_seat(a, i));
        if (seat && seat->row.state == ROOM_SEAT_ROUTING)
            room_seat_routed(core, seat);
        room = seat ? seat->room : room;
    }
    assert(room); /* one of them was the last that was waited for */
    allocation_done(core, a, room);
}

static void not_routed(struct core *core, struct allocation *a)
{
    char text[128];
    int err = a->row.friends.len > 0 ? ERR_FRIEND_UNAVAILABLE : ERR_NO_CAPACITY;
    (void)snprintf(text, sizeof(text), "no capacity in fleet '%s'", a->fleet->row.name);
    allocation_fail(core, a, err, str_of(err == ERR_NO_CAPACITY ? text : err_sentence(err)));
}

/* All or nobody: the first token that cannot be routed ends it. */
void allocation_routed(struct core *core, const struct routed *r)
{
    struct room_seat *seat = room_seat_find(core, r->seat);
    if (!seat || seat->row.state != ROOM_SEAT_ROUTING)
        return;
    struct allocation *a = allocation_find(core, seat->row.ticket);
    if (!a || a->row.state != ALLOCATION_OPEN) {
        room_seat_leave(core, seat, SEAT_END_GIVEN_UP, STR("nobody waits for it any more"));
        return;
    }
    if (r->err) {
        not_routed(core, a);
        return;
    }
    if (seat->routed)
        return; /* it was said twice */
    seat->routed = true;
    a->unrouted--;
    if (a->unrouted == 0)
        arrive(core, a);
}

void allocations_of_placed_end(struct core *core, int32_t fleet, struct str account)
{
    struct allocation *a = waits_with(core, fleet, account, true);
    if (a && comes_along(a, account))
        allocation_drop_gone(core, a);
    else if (a)
        allocation_fail(core, a, ERR_ALREADY_OVER, STR("the player was placed elsewhere"));
}

void allocations_of_banned_end(struct core *core, const struct ban *ban)
{
    struct str account = str_of(ban->row.account);
    for (struct allocation *a = NULL; (a = waits_with(core, 0, account, false));)
        allocation_fail(core, a, ERR_BANNED, ban_until(core, ban, account, str_of(a->row.player)));
}

int operate_dequeue(struct core *core, const struct operate *o, int64_t *ret_object)
{
    int err = ERR_NOT_FOUND;
    for (struct allocation *a = NULL; (a = waits_with(core, 0, o->account, true)); err = 0) {
        *ret_object = a->row.id;
        allocation_cancel(core, a, ERR_TICKET_CANCELLED, STR("an operator took him out of line"));
    }
    return err;
}

/* ── seats that went before anybody was in them ────────────────────────────────────────────── */

void allocation_lost_seat(struct core *core, const struct room_seat *seat)
{
    struct allocation *a = allocation_find(core, seat->row.ticket);
    if (a && a->row.state == ALLOCATION_OPEN && !link_in_list(&a->in_lost))
        list_append(&core->allocations_lost, &a->in_lost);
}

void allocations_seek_again(struct core *core)
{
    while (!list_empty(&core->allocations_lost)) {
        struct allocation *a =
            container_of(list_first(&core->allocations_lost), struct allocation, in_lost);
        const struct room *room = room_find(core, a->row.room);
        bool over = !link_in_list(&a->on_ticket) && (!room || room_is_over(room));
        list_remove(&a->in_lost);
        if (over) {
            release_seats(core, a);
            seek_place(core, a);
        } else {
            allocation_fail(core, a, ERR_ALREADY_OVER, STR("the seat was taken away meanwhile"));
        }
    }
}

/* ── being, loading ────────────────────────────────────────────────────────────────────────── */

static struct allocation *enter(struct core *core, const struct row_allocation *row,
                                struct fleet *fleet)
{
    struct allocation *a = object_alloc(core, ROW_allocation);
    a->row = *row;
    row_own(ROW_allocation, &a->row);
    a->fleet = fleet;
    a->deadline.kind = DEADLINE_ALLOCATION;
    chain_add(&core->allocations_by_name, key_of_row(row), &a->by_name);
    object_enter(core, &a->object);
    return a;
}

struct allocation *allocation_new(struct core *core, conn_id conn, const struct row_allocation *row,
                                  struct fleet *fleet, const struct ticket_regions *regions)
{
    struct allocation *a = enter(core, row, fleet);
    a->regions = ticket_regions_keep(core, row->id, regions);
    add_members(core, a);
    a->asked_us = core->at_us;
    if (conn)
        (void)allocation_wait(a, conn);
    move(core, a, ALLOCATION_OPEN);
    set_deadline(core, a, core->now.core_ms + core->config.timeouts.place_ms);
    (void)allocation_note(core, a, NOTE_ALLOCATION_OPENED);
    return a;
}

static void forget(struct core *core, struct allocation *a)
{
    deadline_clear(core, &a->deadline);
    list_remove(&a->in_finished);
    core->n_allocations_finished--;
    core->allocations_in[a->row.state]--;
    chain_remove(&core->allocations_by_name, key_of_row(&a->row), &a->by_name);
    allocation_detail_forget(core, a);
    object_delete(core, &a->object);
}

/* One whose result no bus has taken is the last to know of it. */
void allocations_forget_oldest(struct core *core)
{
    while (core->n_allocations_finished > core->config.limits.tickets_kept) {
        struct allocation *a =
            container_of(list_first(&core->allocations_finished), struct allocation, in_finished);
        set_owed(core, a, 0);
        forget(core, a);
    }
}

void allocation_deadline(struct core *core, struct allocation *a)
{
    if (a->row.state == ALLOCATION_OPEN) {
        allocation_fail(core, a, ERR_ALLOCATION_TIMEOUT, STR("no server came to be in time"));
    } else if (a->row.state == ALLOCATION_QUEUED) {
        waited_too_long(core, a, a->row.deadline_core_ms - a->row.opened_core_ms);
    } else if (a->row.owed & core->config.buses) {
        set_deadline(core, a, core->now.core_ms + core->config.timeouts.keep_ms);
        object_touch(core, &a->object);
    } else {
        if (a->row.owed)
            (void)allocation_note(core, a, NOTE_ALLOCATION_UNSAID);
        set_owed(core, a, 0); /* no bus that is owed it is there any more */
        forget(core, a);
    }
}

/* It was a flag as long as there was one bus to each. */
static int8_t owed_in(const struct row_allocation *row)
{
    return (row->owed & ~row->bus) != 0 ? row->bus : row->owed;
}

int allocation_load_row(struct core *core, const struct row_allocation *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    if (!fleet || row->state <= 0 || row->state >= ALLOCATION_STATES || row->region < -1 ||
        row->region >= REGION_CODES || (row->bus & ~BUSES_ALL && row->bus != BUS_OWN) ||
        row->seats.len % 8 != 0 || names_count(row->party) < 1 || names_count(row->friends) < 0 ||
        allocation_named(core, allocation_owner(row), str_of(row->name)))
        return ERR_FORMAT;
    struct allocation *a = enter(core, row, fleet);
    a->object.stored = true;
    core->allocations_in[row->state]++;
    deadline_set(core, &a->deadline, DEADLINE_CORE, row->deadline_core_ms);
    if (allocation_is_open(a))
        add_members(core, a);
    else
        finished(core, a);
    a->row.owed = owed_in(row);
    if (a->row.owed) {
        core->n_allocations_owed++;
        list_append(&core->allocations_owed, &a->in_owed);
    }
    return 0;
}

/* Called when rooms, tickets and seats are there. */
void allocation_loaded(struct core *core, struct allocation *a)
{
    if (a->row.state == ALLOCATION_QUEUED) {
        queue_add(core, queue_of(a->fleet, room_find(core, a->row.room)), a);
        return;
    }
    if (a->row.state != ALLOCATION_OPEN)
        return;
    struct room_ticket *ticket = room_ticket_find(core, a->row.ticket);
    if (ticket && ticket->row.state == ROOM_TICKET_OPEN)
        allocation_on_ticket(a, ticket);
    for (size_t i = 0; i < a->row.seats.len / 8; i++) {
        const struct room_seat *seat = room_seat_find(core, allocation_seat(a, i));
        a->unrouted += seat && seat->row.state == ROOM_SEAT_ROUTING;
    }
    if (link_in_list(&a->on_ticket) || a->unrouted > 0)
        return;
    /* The room that was started for it is no more (restore_begun.c): it has its time for another.
     */
    list_append(&core->allocations_lost, &a->in_lost);
    deadline_set(core, &a->deadline, DEADLINE_CORE,
                 core->now.core_ms + core->config.timeouts.place_ms);
}

void allocation_on_ticket(struct allocation *a, struct room_ticket *ticket)
{
    a->row.ticket = ticket->row.id;
    list_append(&ticket->allocations, &a->on_ticket);
    if (!link_in_list(&ticket->in_allocating))
        list_append(&a->fleet->allocating, &ticket->in_allocating);
}

void allocations_take_over(struct core *fresh, const struct core *old)
{
    size_t at = 0;
    for (struct allocation *a = NULL; (a = object_next(old, ROW_allocation, &at));) {
        struct allocation *same = allocation_find(fresh, a->row.id);
        bool open = same && same->row.state == ALLOCATION_OPEN;
        for (int i = 0; i < a->n_askers; i++) {
            if (open)
                (void)allocation_wait(same, a->askers[i]);
            else
                effect_add(fresh, EFFECT_SOUGHT, a->askers[i])->err = ERR_INTERNAL;
        }
    }
}

void allocations_owe_again(struct core *core)
{
    core->owe_again = true;
}

static void say_again(struct core *core)
{
    LIST_EACH(&core->allocations_owed, owed, struct allocation, in_owed)
    {
        allocation_tell(core, owed, owed->row.owed, false);
    }
    size_t at = 0;
    for (struct room_seat *seat = NULL; (seat = object_next(core, ROW_room_seat, &at));) {
        if (seat->row.state == ROOM_SEAT_ROUTING && !seat->routed)
            route_tell(core, seat, true);
    }
    core->owe_again = false;
}

void allocations_settle(struct core *core)
{
    if (core->owe_again)
        say_again(core);
    queues_try_hosts(core);
}
