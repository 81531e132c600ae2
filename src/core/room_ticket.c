/* Tickets of rooms: what was asked, which hosts were tried, and what was answered. */
#include "core/room_ticket.h"

#include "core/place.h"
#include "core/state.h"
#include "wire/put.h"

#include <string.h>

/* A stored ticket holds its error as a number: that is part of the format. */
_Static_assert(ERR_SPAWN_FAILED == -53 && ERR_SPAWN_TIMEOUT == -54,
               "append to errors.def, or raise ROW_FORMAT");

struct room_ticket *room_ticket_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_room_ticket, id);
}

const char *room_try_outcome_name(int outcome)
{
    static const char *const names[ROOM_TRY_OUTCOMES] = {
        [ROOM_TRY_PENDING] = "pending",   [ROOM_TRY_OPENED] = "opened",
        [ROOM_TRY_FAILED] = "failed",     [ROOM_TRY_TIMED_OUT] = "timed_out",
        [ROOM_TRY_GIVEN_UP] = "given_up",
    };
    return outcome >= 0 && outcome < ROOM_TRY_OUTCOMES ? names[outcome] : "?";
}

/* ── the tries, as they are kept for `why` ─────────────────────────────────────────────────── */

_Static_assert(1 + VIEW_HOST_TRIES * (8 + 8 + 1 + 4) <=
                   sizeof(((struct room_ticket *)0)->row.tries),
               "they fit");

void room_ticket_keep_tries(struct room_ticket *ticket)
{
    struct buf b = {.data = ticket->row.tries, .cap = sizeof(ticket->row.tries)};
    put_u8(&b, (uint8_t)ticket->n_tries);
    for (int i = 0; i < ticket->n_tries; i++) {
        const struct room_try *t = &ticket->tries[i];
        put_i64(&b, t->host);
        put_i64(&b, t->room);
        put_i8(&b, t->outcome);
        put_f32(&b, t->load_percent);
    }
    assert(b.data == ticket->row.tries); /* it fits, so the buffer never had to grow */
    ticket->row.tries_len = (uint16_t)b.len;
}

static int restore_tries(struct room_ticket *ticket)
{
    struct cursor c = cursor_of(ticket->row.tries, ticket->row.tries_len);
    if (ticket->row.tries_len == 0)
        return 0;
    int n = cursor_i8(&c);
    if (n < 0 || n > VIEW_HOST_TRIES)
        return ERR_FORMAT;
    for (int i = 0; i < n; i++) {
        struct room_try *t = &ticket->tries[i];
        t->host = cursor_i64(&c);
        t->room = cursor_i64(&c);
        t->outcome = cursor_i8(&c);
        t->load_percent = cursor_f32(&c, 0, 1e9F);
    }
    ticket->n_tries = n;
    cursor_end(&c);
    return cursor_failed(&c) ? ERR_FORMAT : 0;
}

static void add_try(struct room_ticket *ticket, const struct room *room)
{
    ticket->tries[ticket->n_tries++] = (struct room_try){
        .host = room->row.host,
        .room = room->row.id,
        .outcome = ROOM_TRY_PENDING,
        .load_percent = host_load_percent(room->host),
    };
}

static void set_outcome(struct room_ticket *ticket, enum room_try_outcome outcome)
{
    if (ticket->n_tries > 0)
        ticket->tries[ticket->n_tries - 1].outcome = (int8_t)outcome;
}

/* ── keys ──────────────────────────────────────────────────────────────────────────────────── */

static uint64_t map_key(const uint8_t digest[OPERATE_DIGEST])
{
    uint64_t key = 0;
    memcpy(&key, digest, sizeof(key));
    return key;
}

static void digest_key(const struct place *p, uint8_t ret[OPERATE_DIGEST])
{
    uint8_t verb = (uint8_t)p->verb;
    request_digest(p->players[0].account, verb, p->key, ret);
}

struct room_ticket *room_ticket_of_key(const struct core *core, const struct place *p)
{
    uint8_t digest[OPERATE_DIGEST];
    if (p->key.len == 0)
        return NULL;
    digest_key(p, digest);
    struct chain_link *n = chain_first(&core->room_tickets_by_key, map_key(digest));
    for (; n; n = n->next) {
        struct room_ticket *ticket = container_of(n, struct room_ticket, by_key);
        if (memcmp(ticket->row.key, digest, OPERATE_DIGEST) == 0)
            return ticket;
    }
    return NULL;
}

bool room_ticket_is_same(const struct room_ticket *ticket, const struct place *p)
{
    return memcmp(ticket->row.arguments, p->arguments, OPERATE_DIGEST) == 0;
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static void show_seat(struct core *core, const struct room_seat *seat, struct placed_seat *ret)
{
    char key[SEAT_KEY_SIZE];
    ret->seat = seat->row.id;
    ret->account = text_keep(core, str_of(seat->row.account));
    ret->key = text_keep(core, seat_key(core, seat->row.id, key));
}

/* The seats of the ticket that are still there: all of them, unless somebody asks again later. One
 * who came alone is found by his name, for a room can hold thousands. */
static void show_seats(struct core *core, const struct room_ticket *ticket, const struct room *room,
                       struct placed *placed)
{
    size_t most = (size_t)ticket->row.players;
    struct placed_seat *seats = arena_alloc(&core->out->arena, most * sizeof(*seats));
    placed->seats = seats;
    if (most == 1) {
        struct str account = str_of(ticket->row.account);
        const struct room_seat *his = room_seat_of(core, ticket->row.fleet, account);
        if (his && his->room == room)
            show_seat(core, his, &seats[placed->n_seats++]);
        return;
    }
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        if (seat->row.ticket == ticket->row.id && placed->n_seats < most)
            show_seat(core, seat, &seats[placed->n_seats++]);
    }
}

static struct placed *new_placed(struct core *core)
{
    struct placed *placed = arena_alloc(&core->out->arena, sizeof(*placed));
    *placed = (struct placed){0};
    return placed;
}

static struct effect *answer_with(struct core *core, const struct room_ticket *ticket, conn_id conn,
                                  const struct placed *placed)
{
    struct effect *e = effect_add(core, EFFECT_PLACED, conn);
    e->ticket = ticket->row.id;
    e->fleet_id = ticket->row.fleet;
    e->asked_us = ticket->asked_us;
    e->placed = placed;
    return e;
}

/* The ban that holds for whoever asked. */
static const struct ban *ban_of_ticket(const struct core *core, const struct room_ticket *ticket)
{
    return ban_of(core, str_of(ticket->row.account), (struct str){0});
}

/* Regions in which its room may be started: those that it may have, and all who wait for it. */
static void regions_for_all(const struct core *core, const struct room_ticket *ticket,
                            const struct fleet *fleet, struct region_order *ret)
{
    regions_in_order(core, fleet, ticket->row.region, ticket->regions, ret);
    LIST_EACH(&ticket->allocations, a, struct allocation, on_ticket)
    {
        int n = 0;
        for (int i = 0; i < ret->n; i++) {
            if (allocation_may_be_in(a, ret->codes[i]))
                ret->codes[n++] = ret->codes[i];
        }
        ret->elsewhere = ret->elsewhere && n == ret->n;
        ret->n = n;
    }
}

/* Until a host could take what failed. */
static int64_t retry_ms(const struct core *core, const struct room_ticket *ticket)
{
    struct no_host none;
    const struct fleet *fleet = fleet_find(core, ticket->row.fleet);
    if (!fleet || !fleet->config)
        return CHOICE_RETRY_MS;
    struct region_order where;
    regions_for_all(core, ticket, fleet, &where);
    struct choice choice = {
        .fleet = fleet,
        .version = version_find(core, ticket->row.version),
        .where = &where,
    };
    return choose_host(core, &choice, &none) ? 1000 : none.retry_ms;
}

static void answer_failed(struct core *core, const struct room_ticket *ticket, conn_id conn)
{
    const struct room *room = room_find(core, ticket->row.room);
    struct placed *placed = new_placed(core);
    const struct ban *ban = ticket->row.error == ERR_BANNED ? ban_of_ticket(core, ticket) : NULL;
    if (ticket->row.error == ERR_SPAWN_FAILED)
        placed->retry_after_ms = retry_ms(core, ticket);
    if (room)
        placed->tail = text_keep(core, room_tail(&room->row));
    if (ban)
        (void)ban_refuse(core, ban, str_of(ticket->row.account), placed);
    struct str why = text_keep(core, ticket->row.why);
    struct effect *e = answer_with(core, ticket, conn, placed);
    e->err = ticket->row.error;
    e->text = why;
}

void room_ticket_answer(struct core *core, const struct room_ticket *ticket, conn_id conn)
{
    if (ticket->row.state == ROOM_TICKET_FAILED) {
        answer_failed(core, ticket, conn);
        return;
    }
    const struct room *room = room_find(core, ticket->row.room);
    struct placed *placed = new_placed(core);
    if (room && room->host)
        show_seats(core, ticket, room, placed);
    if (placed->n_seats == 0) {
        struct effect *e = answer_with(core, ticket, conn, placed);
        e->err = ERR_ALREADY_OVER;
        e->text = STR("the seat that was given is gone");
        return;
    }
    placed->address = text_keep(core, str_of(room_address(room)));
    placed->settings = text_keep(core, room->row.settings);
    placed->n_ports = room->row.ports_len / 2;
    for (int i = 0; i < placed->n_ports; i++)
        placed->ports[i] = (uint16_t)(room->row.ports[2 * i] | room->row.ports[2 * i + 1] << 8);
    struct effect *e = answer_with(core, ticket, conn, placed);
    e->session = room->row.id;
    e->server_id = (int32_t)room->row.server;
}

bool room_ticket_wait(struct room_ticket *ticket, conn_id conn)
{
    if (ticket->n_askers == ROOM_TICKET_ASKERS)
        return false;
    ticket->askers[ticket->n_askers++] = conn;
    return true;
}

static void answer_askers(struct core *core, struct room_ticket *ticket)
{
    int n = ticket->n_askers;
    ticket->n_askers = 0;
    for (int i = 0; i < n; i++)
        room_ticket_answer(core, ticket, ticket->askers[i]);
}

/* ── moves ─────────────────────────────────────────────────────────────────────────────────── */

static const uint8_t allowed_moves[ROOM_TICKET_STATES] = {
    [0] = 1 << ROOM_TICKET_OPEN,
    [ROOM_TICKET_OPEN] = 1 << ROOM_TICKET_DONE | 1 << ROOM_TICKET_FAILED,
};

static void set_deadline(struct core *core, struct room_ticket *ticket, int64_t in_ms)
{
    bool open = ticket->row.state == ROOM_TICKET_OPEN;
    enum deadline_clock clock = open ? DEADLINE_AWAKE : DEADLINE_CORE;
    ticket->row.deadline_core_ms = core->now.core_ms + in_ms;
    deadline_clear(core, &ticket->deadline);
    deadline_set(core, &ticket->deadline, clock, deadline_now(core, clock) + in_ms);
}

static void finished(struct core *core, struct room_ticket *ticket)
{
    list_append(&core->room_tickets_finished, &ticket->in_finished);
    core->n_room_tickets_finished++;
}

static void move(struct core *core, struct room_ticket *ticket, enum room_ticket_state state)
{
    assert(allowed_moves[ticket->row.state] & 1 << state);
    core->room_tickets_open +=
        (state == ROOM_TICKET_OPEN) - (ticket->row.state == ROOM_TICKET_OPEN);
    ticket->row.state = (int8_t)state;
    object_touch(core, &ticket->object);
    if (state == ROOM_TICKET_OPEN) {
        set_deadline(core, ticket, core->config.timeouts.place_ms);
        return;
    }
    ticket->row.answered_wall_ms = core->now.wall_ms;
    set_deadline(core, ticket, core->config.timeouts.keep_ms);
    finished(core, ticket);
}

static struct effect *ticket_note(struct core *core, const struct room_ticket *ticket,
                                  enum note kind)
{
    struct effect *note = note_add(core, kind);
    note->ticket = ticket->row.id;
    note->session = ticket->row.room;
    note->fleet_id = ticket->row.fleet;
    note->region_code = ticket->row.region;
    note->asked_us = ticket->asked_us;
    return note;
}

void room_ticket_done(struct core *core, struct room_ticket *ticket)
{
    set_outcome(ticket, ROOM_TRY_OPENED);
    move(core, ticket, ROOM_TICKET_DONE);
    (void)ticket_note(core, ticket, NOTE_TICKET_DONE);
    answer_askers(core, ticket);
    allocations_ticket_over(core, ticket);
}

/* As much of a sentence that came from outside as is kept, cut where a character ends. */
static struct str sentence(struct str s)
{
    enum { WHY_MAX = 1024 };
    if (s.len <= WHY_MAX)
        return s;
    size_t len = WHY_MAX;
    while (len > 0 && ((unsigned char)s.at[len] & 0xC0) == 0x80)
        len--;
    return (struct str){s.at, len};
}

static void fail(struct core *core, struct room_ticket *ticket, int err, struct str why)
{
    ticket->row.error = err;
    long_set(&ticket->row.why, sentence(why));
    move(core, ticket, ROOM_TICKET_FAILED);
    struct effect *note = ticket_note(core, ticket, NOTE_TICKET_FAILED);
    note->err = err;
    note->text = text_keep(core, ticket->row.why);
    if (list_empty(&ticket->allocations)) /* else their notes say it */
        note->player = text_keep(core, str_of(ticket->row.account));
    answer_askers(core, ticket);
    allocations_ticket_over(core, ticket);
}

void room_ticket_deserted(struct core *core, struct room_ticket *ticket)
{
    struct placed unused;
    if (!ticket || ticket->row.state != ROOM_TICKET_OPEN)
        return;
    const struct ban *ban = ban_of_ticket(core, ticket);
    set_outcome(ticket, ROOM_TRY_GIVEN_UP);
    if (ban)
        fail(core, ticket, ERR_BANNED, ban_refuse(core, ban, str_of(ticket->row.account), &unused));
    else
        fail(core, ticket, ERR_ALREADY_OVER, STR("the seat was taken away meanwhile"));
}

void room_ticket_opened(struct core *core, const struct room *room)
{
    struct room_ticket *ticket = room_ticket_find(core, room->row.ticket);
    if (ticket && ticket->row.state == ROOM_TICKET_OPEN)
        room_ticket_done(core, ticket);
}

void room_ticket_give_up(struct core *core, struct room_ticket *ticket, struct str why)
{
    if (!ticket || ticket->row.state != ROOM_TICKET_OPEN)
        return;
    set_outcome(ticket, ROOM_TRY_GIVEN_UP);
    fail(core, ticket, ERR_SPAWN_FAILED, why);
}

struct room *room_ticket_spawn(struct core *core, struct room_ticket *ticket,
                               struct version *version, struct host *host, struct str settings)
{
    struct room *room = room_new(core, ticket, version, host, settings);
    add_try(ticket, room);
    ticket->row.room = room->row.id;
    object_touch(core, &ticket->object);
    return room;
}

/* Once, on another host, when it failed so soon that the player can wait for a second one, or when
 * the first never knew of it. */
static struct host *another_host(const struct core *core, const struct room_ticket *ticket,
                                 const struct room *room)
{
    struct no_host none;
    struct region_order where;
    int64_t tried[VIEW_HOST_TRIES] = {0};
    int64_t age_ms = core->now.core_ms - room->row.created_core_ms;
    if (!room->fleet->config || ticket->n_tries >= VIEW_HOST_TRIES ||
        (room->confirmed && age_ms > core->config.timeouts.spawn_retry_ms) ||
        version_judge(room->fleet, str_of(room->version->row.name)))
        return NULL;
    for (int i = 0; i < ticket->n_tries; i++)
        tried[i] = ticket->tries[i].host;
    regions_for_all(core, ticket, room->fleet, &where);
    struct choice choice = {
        .fleet = room->fleet,
        .version = room->version,
        .where = &where,
        .except = tried,
        .n_except = ticket->n_tries,
    };
    return choose_host(core, &choice, &none);
}

static bool failure_may_have_run(const struct room_failure *failure)
{
    return failure->fault == FAULT_OF_GAME || failure->fault == FAULT_UNKNOWN ||
           (failure->fault == FAULT_OF_NOBODY && !failure->no_login);
}

/* No process of the game ran for them, so their requests count as if they had not asked. */
static void ticket_give_back_rates(struct core *core, const struct room_ticket *ticket,
                                   const struct room *room)
{
    LIST_EACH(&ticket->allocations, a, const struct allocation, on_ticket)
    {
        allocation_give_back_rate(core, a);
    }
    if (!ticket->rated)
        return;
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        if (seat->row.ticket == ticket->row.id)
            rates_give_back(&core->rates, place_rate((enum place_verb)ticket->row.verb),
                            str_of(seat->row.account), core->now.core_ms);
    }
}

void room_ticket_next(struct core *core, struct room_ticket *ticket, struct room *failed,
                      const struct room_failure *failure)
{
    bool late = failure->timed_out;
    ticket->ran |= failure_may_have_run(failure);
    set_outcome(ticket, late ? ROOM_TRY_TIMED_OUT : ROOM_TRY_FAILED);
    /* Without a token for its server no other host would be asked either. */
    struct host *host = late || failure->no_login ? NULL : another_host(core, ticket, failed);
    if (!host) {
        if (!ticket->ran)
            ticket_give_back_rates(core, ticket, failed);
        fail(core, ticket, late ? ERR_SPAWN_TIMEOUT : ERR_SPAWN_FAILED, failure->text);
        return;
    }
    struct room *room =
        room_ticket_spawn(core, ticket, failed->version, host, failed->row.settings);
    room_seats_hand_on(core, failed, room);
    room_tell(core, room);
    struct effect *note = ticket_note(core, ticket, NOTE_TICKET_RETRY);
    note->text = STR("failed");
}

static void forget(struct core *core, struct room_ticket *ticket)
{
    deadline_clear(core, &ticket->deadline);
    list_remove(&ticket->in_finished);
    core->n_room_tickets_finished--;
    if (ticket->row.key_len)
        chain_remove(&core->room_tickets_by_key, map_key(ticket->row.key), &ticket->by_key);
    ticket_regions_forget(core, ticket->regions);
    object_delete(core, &ticket->object);
}

void room_tickets_forget_oldest(struct core *core)
{
    while (core->n_room_tickets_finished > core->config.limits.tickets_kept)
        forget(core, container_of(list_first(&core->room_tickets_finished), struct room_ticket,
                                  in_finished));
}

void room_ticket_deadline(struct core *core, struct room_ticket *ticket)
{
    if (ticket->row.state != ROOM_TICKET_OPEN) {
        forget(core, ticket);
        return;
    }
    struct room *room = room_find(core, ticket->row.room);
    set_outcome(ticket, ROOM_TRY_GIVEN_UP);
    fail(core, ticket, ERR_SPAWN_TIMEOUT, str_of(err_sentence(ERR_SPAWN_TIMEOUT)));
    if (room && room->row.state == ROOM_STARTING)
        room_stop(core, room, END_GIVEN_UP);
}

/* ── being, loading ────────────────────────────────────────────────────────────────────────── */

static struct room_ticket *enter(struct core *core, const struct row_room_ticket *row)
{
    struct room_ticket *ticket = object_alloc(core, ROW_room_ticket);
    ticket->row = *row;
    row_own(ROW_room_ticket, &ticket->row);
    ticket->deadline.kind = DEADLINE_ROOM_TICKET;
    list_init(&ticket->allocations);
    if (row->key_len == OPERATE_DIGEST)
        chain_add(&core->room_tickets_by_key, map_key(row->key), &ticket->by_key);
    object_enter(core, &ticket->object);
    return ticket;
}

struct room_ticket *room_ticket_new(struct core *core, conn_id conn, const struct place *p,
                                    const struct version *version, int8_t region,
                                    const struct ticket_regions *regions)
{
    struct row_room_ticket row = {
        .id = object_new_id(core, ROW_ticket),
        .verb = (int8_t)p->verb,
        .fleet = version->row.fleet,
        .version = version->row.id,
        .players = (int32_t)p->n_players,
        .region = region,
        .opened_core_ms = core->now.core_ms,
        .key_len = p->key.len > 0 ? OPERATE_DIGEST : 0,
        .arguments_len = OPERATE_DIGEST,
    };
    (void)str_copy(row.account, sizeof(row.account), p->players[0].account);
    memcpy(row.arguments, p->arguments, OPERATE_DIGEST);
    if (row.key_len)
        digest_key(p, row.key);
    struct room_ticket *ticket = enter(core, &row);
    ticket->rated = conn != 0;
    ticket->regions = ticket_regions_keep(core, row.id, regions);
    ticket->asked_us = core->at_us;
    if (conn)
        (void)room_ticket_wait(ticket, conn);
    move(core, ticket, ROOM_TICKET_OPEN);
    struct effect *note = ticket_note(core, ticket, NOTE_TICKET_OPENED);
    if (conn) /* else it is for allocations, whose notes say it */
        (void)note_of_players(core, p, note);
    return ticket;
}

int room_ticket_load_row(struct core *core, const struct row_room_ticket *row)
{
    if (!fleet_find(core, row->fleet) || row->state <= 0 || row->state >= ROOM_TICKET_STATES ||
        row->region < -1 || row->region >= REGION_CODES ||
        (row->key_len != 0 && row->key_len != OPERATE_DIGEST))
        return ERR_FORMAT;
    struct room_ticket *ticket = enter(core, row);
    ticket->object.stored = true;
    if (row->state == ROOM_TICKET_OPEN) {
        set_deadline(core, ticket, core->config.timeouts.place_ms); /* we were not there */
        core->room_tickets_open++;
    } else {
        set_deadline(core, ticket, row->deadline_core_ms - core->now.core_ms);
        finished(core, ticket);
    }
    return restore_tries(ticket);
}

void room_tickets_take_over(struct core *fresh, const struct core *old)
{
    size_t at = 0;
    for (struct room_ticket *ticket = NULL; (ticket = object_next(old, ROW_room_ticket, &at));) {
        struct room_ticket *same = room_ticket_find(fresh, ticket->row.id);
        bool open = same && same->row.state == ROOM_TICKET_OPEN;
        for (int i = 0; i < ticket->n_askers; i++) {
            if (open)
                (void)room_ticket_wait(same, ticket->askers[i]);
            else
                effect_add(fresh, EFFECT_PLACED, ticket->askers[i])->err = ERR_INTERNAL;
        }
    }
}
