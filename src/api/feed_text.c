#include "api/feed_text.h"

#include "api/note.h"
#include "api/resource.h"
#include "api/resource_allocation.h"
#include "api/resource_lobby.h"
#include "api/resource_room.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

/* ── places ────────────────────────────────────────────────────────────────────────────────── */

static bool read_number(const char **at, int digits_max, int64_t *ret)
{
    int64_t value = 0;
    int digits = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        if (++digits > digits_max)
            return false;
        value = value * 10 + (**at - '0');
    }
    *ret = value;
    return digits > 0;
}

bool feed_place_parse(const char *text, struct feed_place *ret)
{
    int64_t seq = 0;
    int64_t index = 0;
    if (!read_number(&text, 18, &seq))
        return false;
    if (*text == '\0') {
        *ret = (struct feed_place){seq + 1, 0};
        return true;
    }
    if (*text++ != '.' || !read_number(&text, 9, &index) || *text != '\0')
        return false;
    *ret = (struct feed_place){seq, (int32_t)index + 1};
    return true;
}

enum { PLACE_MAX = 40 };

/* Every event has one, so not with printf. */
static char *print_number(char *at, int64_t n)
{
    char digits[24];
    int len = 0;
    do
        digits[len++] = (char)('0' + n % 10);
    while (n /= 10);
    while (len > 0)
        *at++ = digits[--len];
    return at;
}

static const char *print_place(char dst[PLACE_MAX], struct feed_place place)
{
    char *at = print_number(dst, place.index > 0 ? place.seq : place.seq - 1);
    if (place.index > 0) {
        *at++ = '.';
        at = print_number(at, place.index - 1);
    }
    *at = '\0';
    return dst;
}

/* ── events ────────────────────────────────────────────────────────────────────────────────── */

static void add(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

static void add_id(struct buf *out, struct feed_place place)
{
    char id[PLACE_MAX];
    add(out, "id: ");
    add(out, print_place(id, place));
    add(out, "\n");
}

static struct json_writer begin_data(struct buf *out, const char *type)
{
    add(out, "event: ");
    add(out, type);
    add(out, "\ndata: ");
    return (struct json_writer){.out = out};
}

/* JSON is one line, so it is one line of data. */
static void end_data(struct buf *out)
{
    add(out, "\n\n");
}

void feed_text_id(struct buf *out, struct feed_place place)
{
    add_id(out, place);
    add(out, "\n");
}

void feed_text_gap(struct buf *out, struct feed_place from, struct feed_place to, const char *why)
{
    char id[PLACE_MAX];
    add_id(out, to);
    struct json_writer w = begin_data(out, "gap");
    json_open_object(&w);
    json_key_text(&w, "from", str_of(print_place(id, from)));
    json_key_text(&w, "to", str_of(print_place(id, to)));
    json_key_text(&w, "why", str_of(why));
    json_close_object(&w);
    end_data(out);
}

/* ── changes ───────────────────────────────────────────────────────────────────────────────── */

struct chat_server_event {
    int64_t id;
    const char *fleet;
    const char *name;
};

static const struct shape chat_server_shape = {
    .name = "ChatServer",
    .help = "Somebody who asks for matches.",
    .rows =
        (const struct shape_row[]){
            {.name = "id", .kind = SHAPE_ID, .offset = offsetof(struct chat_server_event, id)},
            {.name = "fleet",
             .kind = SHAPE_TEXT,
             .offset = offsetof(struct chat_server_event, fleet)},
            {.name = "name",
             .kind = SHAPE_TEXT,
             .offset = offsetof(struct chat_server_event, name)},
            {0},
        },
};

struct seat_event {
    int64_t id;
    int64_t session;
    const char *fleet;
    int32_t account;
    const char *state;
};

static const char *const seat_state_words[] = {"taken", "left", NULL};

static const struct shape seat_shape = {
    .name = "Seat",
    .help = "One player's place in a session.",
    .rows =
        (const struct shape_row[]){
            {.name = "id", .kind = SHAPE_ID, .offset = offsetof(struct seat_event, id)},
            {.name = "session", .kind = SHAPE_ID, .offset = offsetof(struct seat_event, session)},
            {.name = "fleet", .kind = SHAPE_TEXT, .offset = offsetof(struct seat_event, fleet)},
            {.name = "account",
             .kind = SHAPE_INT32,
             .offset = offsetof(struct seat_event, account)},
            {.name = "state",
             .kind = SHAPE_WORD,
             .words = seat_state_words,
             .offset = offsetof(struct seat_event, state)},
            {0},
        },
};

enum { EVENT_ROWS_MAX = 28 };

/* What an event shows of a kind of row: of its shape those keys that its row holds. A key that is
 * not named here is not shown, so that one that was added for the API and lives in memory alone
 * does not slip in as a zero. */
static struct {
    const char *type; /* NULL: changes of this kind are shown to nobody */
    const struct shape *whole;
    const char *keys; /* NULL: all */
    struct shape shape;
    struct shape_row rows[EVENT_ROWS_MAX + 1];
} events[ROW_KINDS] = {
    [ROW_fleet] = {.type = "fleet", .whole = &fleet_shape, .keys = "id name"},
    [ROW_chat_server] = {.type = "chat_server", .whole = &chat_server_shape, .keys = NULL},
    [ROW_server] = {.type = "server",
                    .whole = &server_shape,
                    .keys = "id fleet ip port region draining_by max_sessions registered_at"},
    [ROW_session] = {.type = "session",
                     .whole = &session_shape,
                     .keys =
                         "id ticket server fleet chat_server lobby state ready game_type game_mode "
                         "player_count created_at opened_at deadline_at end_reason"},
    [ROW_seat] = {.type = "seat", .whole = &seat_shape, .keys = NULL},
    [ROW_ticket] = {.type = "ticket",
                    .whole = &ticket_shape,
                    .keys =
                        "id fleet chat_server lobby regions state error session server game_type "
                        "game_mode player_count average_rating opened_at answered_at deadline_at "
                        "tries"},
    [ROW_enrolment] = {.type = "token",
                       .whole = &token_shape,
                       .keys =
                           "id name role fleet regions generation created_at expires_at revoked_at "
                           "previous_until"},
    [ROW_audit] = {.type = "audit",
                   .whole = &audit_shape,
                   .keys = "id at who address action target detail"},
    [ROW_host] = {.type = "host",
                  .whole = &host_shape,
                  .keys = "id name address url region slots enabled registered_at"},
    [ROW_deployment] = {.type = "deployment",
                        .whole = &deployment_shape,
                        .keys = "id fleet version digest size created_at who"},
    [ROW_version] = {.type = "version",
                     .whole = &version_shape,
                     .keys = "id fleet name enabled quarantined reason deployment previous wanted"},
    [ROW_ban] = {.type = "ban",
                 .whole = &ban_shape,
                 .keys = "id account address reason issued_at expires_at who"},
    [ROW_room_ticket] = {.type = "room_ticket",
                         .whole = &ticket_shape,
                         .keys = "id fleet verb version account regions state error session "
                                 "player_count opened_at answered_at deadline_at"},
    [ROW_room] = {.type = "room",
                  .whole = &room_shape,
                  .keys = "id ticket server fleet version deployment host region state end_reason "
                          "max_players ports created_at opened_at deadline_at"},
    [ROW_room_seat] = {.type = "room_seat",
                       .whole = &room_seat_shape,
                       .keys = "id room ticket fleet account address state multi reserved_at "
                               "joined_at deadline_at"},
    [ROW_allocation] = {.type = "allocation",
                        .whole = &allocation_shape,
                        .keys =
                            "id ticket_id fleet player bus state error why owed priority region "
                            "room players opened_at queued_at answered_at deadline_at"},
    [ROW_lobby] = {.type = "lobby",
                   .whole = &lobby_whole_shape,
                   .keys = "id fleet region type mode map rating state cause reason error requeue "
                           "queue size loaded moves ticket session server created_at "
                           "started_at over_at deadline_at groups"},
};

bool feed_shows(enum row_kind kind)
{
    return events[kind].type != NULL;
}

/* That it is over is owed to all of them in the batch that has it, and told after that. */
bool feed_shows_change(const struct core *core, const struct change *change)
{
    struct view_lobby v;
    if (change->kind != ROW_lobby || change->gone)
        return true;
    view_row_lobby(core, &change->lobby, (struct instant){0}, &v);
    return v.live || v.reason[0] == '\0' || v.untold == v.players;
}

static feed_kinds kind_of(struct str word)
{
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        if (events[kind].type && str_eq(word, str_of(events[kind].type)))
            return FEED_BIT(kind);
    }
    if (str_eq(word, STR("note")))
        return FEED_BIT(FEED_NOTE);
    return str_eq(word, STR("load")) ? FEED_BIT(FEED_LOAD) : 0;
}

bool feed_kinds_parse(const char *text, feed_kinds *ret, struct str *ret_word)
{
    if (!text || !text[0]) {
        *ret = FEED_BIT(FEED_KINDS) - 1;
        return true;
    }
    feed_kinds kinds = 0;
    for (const char *at = text;; at++) {
        struct str word = {at, strcspn(at, ",")};
        feed_kinds kind = kind_of(word);
        if (kind == 0) {
            *ret_word = word;
            return false;
        }
        kinds |= kind;
        at += word.len;
        if (*at == '\0')
            break;
    }
    *ret = kinds;
    return true;
}

feed_kinds feed_kinds_of_administrators(void)
{
    return FEED_BIT(ROW_enrolment) | FEED_BIT(ROW_audit);
}

static bool is_among(const char *keys, const char *key)
{
    size_t len = strlen(key);
    for (const char *at = keys; (at = strstr(at, key)); at += len) {
        bool starts = at == keys || at[-1] == ' ';
        if (starts && (at[len] == ' ' || at[len] == '\0'))
            return true;
    }
    return false;
}

static const struct shape *event_shape(enum row_kind kind)
{
    if (!events[kind].keys)
        return events[kind].whole;
    if (events[kind].shape.rows)
        return &events[kind].shape;
    size_t n = 0;
    for (const struct shape_row *row = events[kind].whole->rows; row->name; row++) {
        if (!is_among(events[kind].keys, row->name))
            continue;
        if (n == EVENT_ROWS_MAX)
            abort();
        events[kind].rows[n++] = *row;
    }
    events[kind].shape = *events[kind].whole;
    events[kind].shape.rows = events[kind].rows;
    return &events[kind].shape;
}

struct lobby_event {
    struct lobby_answer answer;
    struct view_lobby_player players[LOBBY_PLAYERS_MAX];
};

/* The object that the kind's shape is of. */
union shown {
    struct fleet_answer fleet;
    struct chat_server_event chat_server;
    struct server_answer server;
    struct session_answer session;
    struct seat_event seat;
    struct ticket_answer ticket;
    struct token_answer token;
    struct view_audit audit;
    struct view_host host;
    struct view_deployment deployment;
    struct view_version version;
    struct view_ban ban;
    struct view_room room;
    struct view_room_seat room_seat;
    struct view_allocation allocation;
    struct lobby_event lobby;
};

static void show_server(const struct core *core, const struct row_server *row, struct instant then,
                        struct server_answer *ret)
{
    struct view_server view;
    view_row_server(core, row, then, &view);
    *ret = merge_registered(&view);
}

static void show_session(const struct core *core, const struct row_session *row,
                         struct instant then, struct session_answer *ret)
{
    struct view_session view;
    view_row_session(core, row, then, &view);
    *ret = merge_match(&view);
}

static void show_ticket(const struct core *core, const struct row_ticket *row, struct instant then,
                        struct ticket_answer *ret)
{
    struct view_ticket view;
    view_row_ticket(core, row, then, &view);
    *ret = merge_asked(&view);
}

static void show_room_ticket(const struct core *core, const struct row_room_ticket *row,
                             struct instant then, struct ticket_answer *ret)
{
    struct view_room_ticket view;
    view_row_room_ticket(core, row, then, &view);
    *ret = merge_room_asked(core, &view);
}

static void show_deployment(const struct core *core, const struct row_deployment *row,
                            struct view_deployment *ret)
{
    *ret = (struct view_deployment){
        .id = row->id,
        .fleet = view_fleet_name(core, row->fleet),
        .version = row->version,
        .digest = row->digest,
        .size = row->size,
        .created_wall_ms = row->created_wall_ms,
        .who = row->who,
    };
}

static void show_version(const struct core *core, const struct row_version *row,
                         struct view_version *ret)
{
    *ret = (struct view_version){
        .id = row->id,
        .fleet = view_fleet_name(core, row->fleet),
        .name = row->name,
        .enabled = !row->disabled,
        .quarantined = row->quarantined != 0,
        .reason = row->reason,
        .deployment = row->deployment,
        .previous = row->previous,
        .wanted = row->wanted,
    };
}

static void show_ban(const struct row_ban *row, struct view_ban *ret)
{
    *ret = (struct view_ban){
        .id = row->id,
        .account = row->account,
        .address = row->address,
        .reason = row->reason,
        .expires_wall_ms = row->expires_wall_ms,
        .issued_wall_ms = row->issued_wall_ms,
        .who = row->who,
    };
}

/* Who is in it stands in another row, which is there as long as the lobby is remembered. */
static void show_lobby(const struct core *core, const struct row_lobby *row, struct instant then,
                       struct lobby_event *ret)
{
    struct lobby_answer *v = &ret->answer;
    *v = (struct lobby_answer){.players = ret->players};
    view_row_lobby(core, row, then, &v->view);
    while (v->n_players < LOBBY_PLAYERS_MAX &&
           view_lobby_player(core, row->id, v->n_players, &ret->players[v->n_players]))
        v->n_players++;
}

static void show(const struct core *core, const struct change *c, struct instant then,
                 union shown *ret)
{
    switch (c->kind) {
    case ROW_fleet:
        ret->fleet = (struct fleet_answer){.view = {.id = c->id, .name = c->fleet.name}};
        break;
    case ROW_chat_server:
        ret->chat_server = (struct chat_server_event){
            c->id, view_fleet_name(core, c->chat_server.fleet), c->chat_server.name};
        break;
    case ROW_server:
        show_server(core, &c->server, then, &ret->server);
        break;
    case ROW_session:
        show_session(core, &c->session, then, &ret->session);
        break;
    case ROW_seat:
        ret->seat =
            (struct seat_event){c->id, c->seat.session, view_fleet_name(core, c->seat.fleet),
                                c->seat.account, seat_state_name(c->seat.state)};
        break;
    case ROW_ticket:
        show_ticket(core, &c->ticket, then, &ret->ticket);
        break;
    case ROW_enrolment:
        view_row_token(&c->enrolment, &ret->token.view);
        break;
    case ROW_audit:
        view_row_audit(&c->audit, &ret->audit);
        break;
    case ROW_host:
        view_row_host(core, &c->host, &ret->host);
        break;
    case ROW_deployment:
        show_deployment(core, &c->deployment, &ret->deployment);
        break;
    case ROW_version:
        show_version(core, &c->version, &ret->version);
        break;
    case ROW_ban:
        show_ban(&c->ban, &ret->ban);
        break;
    case ROW_room_ticket:
        show_room_ticket(core, &c->room_ticket, then, &ret->ticket);
        break;
    case ROW_room:
        view_row_room(core, &c->room, then, &ret->room);
        break;
    case ROW_room_seat:
        view_row_room_seat(core, &c->room_seat, then, &ret->room_seat);
        break;
    case ROW_allocation:
        view_row_allocation(core, &c->allocation, then, &ret->allocation);
        break;
    case ROW_lobby:
        show_lobby(core, &c->lobby, then, &ret->lobby);
        break;
    case ROW_counter:
    case ROW_request:
    case ROW_room_detail:
    case ROW_token_mode:
    case ROW_allocation_detail:
    case ROW_lobby_roster:
    case ROW_restore:
    case ROW_ticket_regions:
    case ROW_KINDS:
        abort();
    }
}

void feed_text_change(struct buf *out, const struct core *core, const struct change *change,
                      struct feed_place after, struct instant then)
{
    add_id(out, after);
    struct json_writer w = begin_data(out, events[change->kind].type);
    if (change->gone) {
        json_open_object(&w);
        json_key_id(&w, "id", change->id);
        json_key_bool(&w, "gone", true);
        json_close_object(&w);
    } else {
        union shown shown;
        show(core, change, then, &shown);
        shape_write(&w, event_shape(change->kind), &shown, core_config(core));
    }
    end_data(out);
}

/* ── notes ─────────────────────────────────────────────────────────────────────────────────── */

/* What does not fit is cut, and not within a character. */
static void copy_cut(char *dst, size_t cap, struct str s)
{
    size_t n = s.len < cap ? s.len : cap - 1;
    while (n > 0 && n < s.len && ((uint8_t)s.at[n] & 0xC0) == 0x80)
        n--;
    if (n > 0)
        memcpy(dst, s.at, n);
    dst[n] = '\0';
}

void feed_note_keep(struct feed_note *ret, const struct effect *e, int64_t seq, int64_t wall_ms)
{
    *ret = (struct feed_note){
        .seq = seq,
        .wall_ms = wall_ms,
        .note = e->note,
        .err = e->err,
        .lobby = e->lobby,
        .server = e->server_id,
        .account = e->account,
        .port = e->port,
        .ticket = e->ticket,
        .session = e->session,
        .object = e->note == NOTE_OPERATED ? 0 : e->object,
        .reason = e->reason,
        .requeued = e->on,
        .players = note_counts_players(e->note) ? e->load : 0,
        .for_ms = note_lasts(e->note) ? e->wall_ms : 0,
    };
    copy_cut(ret->ip, sizeof(ret->ip), e->ip);
    copy_cut(ret->chat_server, sizeof(ret->chat_server), e->chat);
    copy_cut(ret->region, sizeof(ret->region), e->region);
    copy_cut(ret->player, sizeof(ret->player), e->player);
    copy_cut(ret->text, sizeof(ret->text), e->text);
}

feed_kinds feed_note_needs(const struct feed_note *note)
{
    bool audit = note->note == NOTE_OPERATED || note->note == NOTE_CONFIGURED;
    return FEED_BIT(FEED_NOTE) | (audit ? FEED_BIT(ROW_audit) : 0);
}

static void key_text_unless_empty(struct json_writer *w, const char *key, const char *text)
{
    if (text[0])
        json_key_text(w, key, str_of(text));
}

static void key_int_unless_zero(struct json_writer *w, const char *key, int64_t value)
{
    if (value != 0)
        json_key_int(w, key, value);
}

static void key_id_unless_zero(struct json_writer *w, const char *key, int64_t id)
{
    if (id != 0)
        json_key_id(w, key, id);
}

/* Like its line in the log, only what it has. */
void feed_text_note(struct buf *out, const struct feed_note *n)
{
    struct json_writer w = begin_data(out, "note");
    json_open_object(&w);
    json_key_time(&w, "at", n->wall_ms);
    json_key_text(&w, "text", str_of(note_text(n->note)));
    key_text_unless_empty(&w, "detail", n->text);
    if (n->err)
        json_key_text(&w, "error", str_of(err_code(n->err)));
    key_id_unless_zero(&w, "ticket", n->ticket);
    key_id_unless_zero(&w, "session", n->session);
    key_id_unless_zero(&w, "server", n->server);
    key_int_unless_zero(&w, "lobby", n->lobby);
    key_int_unless_zero(&w, "account", n->account);
    if (note_object_key(n->note))
        key_id_unless_zero(&w, note_object_key(n->note), n->object);
    key_text_unless_empty(&w, note_object_key(n->note) ? note_name_key(n->note) : "chat_server",
                          n->chat_server);
    key_text_unless_empty(&w, "player", n->player);
    if (n->note == NOTE_ROOM_ENDED || n->note == NOTE_LOBBY_ENDED)
        json_key_text(&w, "reason", str_of(end_reason_name(n->reason)));
    if (n->note == NOTE_LOBBY_ABORTED) {
        json_key_text(&w, "cause", str_of(lobby_cause_name(n->reason)));
        json_key_bool(&w, "requeued", n->requeued);
    }
    key_int_unless_zero(&w, "players", n->players);
    /* Of an allocation it is how it was placed; see note.c. */
    bool allocation = note_object(n->note) == NOTE_OF_ALLOCATION;
    key_text_unless_empty(&w, allocation ? "how" : "region", n->region);
    key_text_unless_empty(&w, "ip", n->ip);
    key_int_unless_zero(&w, "port", n->port);
    key_int_unless_zero(&w, "for_ms", n->for_ms);
    json_close_object(&w);
    end_data(out);
}

void feed_text_missed(struct buf *out, int64_t missed)
{
    struct json_writer w = begin_data(out, "note");
    json_open_object(&w);
    json_key_text(&w, "text", STR("notes not shown"));
    json_key_int(&w, "missed", missed);
    json_close_object(&w);
    end_data(out);
}

/* ── load ──────────────────────────────────────────────────────────────────────────────────── */

static void write_group(struct json_writer *w, const char *fleet, const char *region,
                        const struct view_group *g)
{
    json_open_object(w);
    json_key_text(w, "fleet", str_of(fleet));
    json_key_text(w, "region", str_of(region));
    json_key(w, "servers");
    json_open_object(w);
    for (int i = 0; i < 4; i++)
        json_key_int(w, server_status_name((enum server_status)i), g->servers[i]);
    json_close_object(w);
    json_key(w, "slots");
    json_open_object(w);
    json_key_int(w, "used", g->slots_used);
    json_key_int(w, "total", g->slots_total);
    json_close_object(w);
    json_key_int(w, "sessions", g->sessions_open);
    json_key_number(w, "load_mean", g->load_mean, 4);
    json_key_number(w, "load_spread", g->load_spread, 4);
    json_key_number(w, "cpu_percent", g->cpu_percent, 1);
    json_key_number(w, "memory_percent", g->memory_percent, 1);
    json_close_object(w);
}

/* False when there was no room for all. */
static bool write_groups(struct json_writer *w, const struct core *core)
{
    const struct core_config *config = core_config(core);
    size_t start = w->out->len;
    for (int64_t id = core_next(core, ROW_fleet, 0); id; id = core_next(core, ROW_fleet, id)) {
        for (int8_t code = 0; code < REGION_CODES; code++) {
            struct view_group group;
            if (!view_group(core, id, code, &group))
                continue;
            if (w->out->len - start > FEED_LOAD_MAX)
                return false;
            write_group(w, view_fleet_name(core, id), config->regions[code].name, &group);
        }
    }
    return true;
}

void feed_text_load(struct buf *out, const struct core *core, int64_t wall_ms)
{
    struct core_counts counts;
    core_count(core, &counts);
    struct json_writer w = begin_data(out, "load");
    json_open_object(&w);
    json_key_time(&w, "at", wall_ms);
    json_key_int(&w, "tickets_open", counts.tickets_open);
    json_key_int(&w, "chat_servers", counts.chat_servers);
    json_key_int(&w, "sessions", counts.sessions_open);
    json_key(&w, "groups");
    json_open_array(&w);
    bool whole = write_groups(&w, core);
    json_close_array(&w);
    json_key_bool(&w, "cut", !whole);
    json_close_object(&w);
    end_data(out);
}
