#include "api/history.h"

#include "api/note.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "core/view.h"
#include "wire/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MINUTE_MS = 60 * 1000,
    TEXT_MAX = 240,     /* bytes of a sentence that somebody said */
    RESERVE_MB = 64,    /* of the disk, which are the store's */
    REFUSED_WAYS = 4,   /* places in which one may stand */
    PLAYERS_MAX = 100,  /* of one line */
    TICK_MS = 5 * 1000, /* between two looks at who was refused */
};

/* Somebody who is refused for the same reason again and again within a minute. */
struct refused {
    int64_t began_ms; /* wall; 0 = nobody */
    int32_t err;
    int32_t n; /* refusals in all */
    char player[65];
    char fleet[64];
};

struct history {
    struct recorder *recorder;
    char *folder;
    struct buf line;
    int64_t looked_ms;
    struct refused refused[HISTORY_REFUSED_MAX];
};

/* ── words ─────────────────────────────────────────────────────────────────────────────────── */

static const char *const seat_steps[SEAT_ENDS] = {
    [SEAT_END_LEFT] = "left",     [SEAT_END_EXPIRED] = "expired",   [SEAT_END_MOVED] = "moved",
    [SEAT_END_KICKED] = "kicked", [SEAT_END_BANNED] = "kicked",     [SEAT_END_ROOM] = "ended",
    [SEAT_END_FAILED] = "failed", [SEAT_END_GIVEN_UP] = "released",
};

/* What a note is to the player it is about; NULL = nothing. */
static const char *step_of(const struct effect *e)
{
    static const char *const steps[NOTES] = {
        [NOTE_TICKET_OPENED] = "asked",
        [NOTE_TICKET_FAILED] = "refused",
        [NOTE_ALLOCATION_OPENED] = "asked",
        [NOTE_ALLOCATION_QUEUED] = "queued",
        [NOTE_ALLOCATION_DONE] = "placed",
        [NOTE_ALLOCATION_FAILED] = "refused",
        [NOTE_REFUSED] = "refused",
        [NOTE_SEAT_RESERVED] = "reserved",
        [NOTE_SEAT_TAKEN] = "joined",
        [NOTE_PLAYER_ENTERED] = "joined",
        [NOTE_LOBBY_CREATED] = "lobby_created",
        [NOTE_LOBBY_MOVED] = "lobby_moved",
        [NOTE_LOBBY_STARTED] = "lobby_started",
        [NOTE_LOBBY_ABORTED] = "lobby_aborted",
        [NOTE_LOBBY_LOST] = "lobby_lost",
        [NOTE_LOBBY_BACK] = "lobby_back",
        [NOTE_LOBBY_ENDED] = "lobby_ended",
        [NOTE_CLIENT_REPLACED] = "reconnected",
    };
    bool gone = e->note == NOTE_SEAT_LEFT || e->note == NOTE_PLAYER_LEFT;
    if (gone)
        return seat_steps[e->reason >= 0 && e->reason < SEAT_ENDS ? e->reason : SEAT_END_LEFT];
    if (e->note == NOTE_TICKET_OPENED && e->player.len == 0)
        return NULL; /* of a match: it has no players yet; or of an allocation, which has its own */
    if (e->note == NOTE_ALLOCATION_FAILED &&
        (e->err == ERR_TICKET_CANCELLED || e->err == ERR_SUPERSEDED))
        return "cancelled";
    return e->note < NOTES ? steps[e->note] : NULL;
}

static const char *step_of_operator(int8_t verb)
{
    switch (verb) {
    case OPERATE_BAN:
        return "banned";
    case OPERATE_UPDATE_BAN:
        return "ban_changed";
    case OPERATE_LIFT_BAN:
        return "unbanned";
    case OPERATE_DEQUEUE:
        return "dequeued";
    default:
        return NULL;
    }
}

/* What a note is to the installation; NULL = nothing. */
static const char *change_of(const struct effect *e)
{
    static const char *const changes[NOTES] = {
        [NOTE_SERVER_REGISTERED] = "server_came",
        [NOTE_SERVER_OFFLINE] = "server_offline",
        [NOTE_SERVER_FORGOTTEN] = "server_forgotten",
        [NOTE_CHAT_REGISTERED] = "chat_server_came",
        [NOTE_CHAT_GONE] = "chat_server_gone",
        [NOTE_HOST_REGISTERED] = "host_came",
        [NOTE_HOST_SILENT] = "host_silent",
        [NOTE_HOST_BACK] = "host_back",
        [NOTE_HOST_LOST] = "host_lost",
        [NOTE_HOST_FORGOTTEN] = "host_forgotten",
        [NOTE_VERSION_QUARANTINED] = "version_quarantined",
        [NOTE_VERSION_SWITCHED] = "version_switched",
        [NOTE_STOPPED] = "paused",
    };
    if (e->note == NOTE_SERVER_RETURNED)
        return e->on ? "server_back" : NULL;
    if (e->note == NOTE_OPERATED)
        return e->verb == OPERATE_CONFIGURE ? "configured" : "operated";
    return e->note < NOTES ? changes[e->note] : NULL;
}

/* ── lines ─────────────────────────────────────────────────────────────────────────────────── */

static struct json_writer begin(struct history *h)
{
    buf_clear(&h->line);
    return (struct json_writer){.out = &h->line};
}

static void put(struct history *h, int64_t wall_ms)
{
    recorder_add(h->recorder, wall_ms, (struct str){(const char *)h->line.data, h->line.len});
}

static void key_id(struct json_writer *w, const char *key, int64_t id)
{
    if (id != 0)
        json_key_int(w, key, id);
}

static void key_text(struct json_writer *w, const char *key, struct str text)
{
    if (text.len > 0)
        json_key_text(w, key, text);
}

/* Cut where a character ends. */
static struct str cut(struct str s)
{
    size_t n = s.len < TEXT_MAX ? s.len : TEXT_MAX;
    while (n > 0 && n < s.len && ((unsigned char)s.at[n] & 0xC0) == 0x80)
        n--;
    return (struct str){s.at, n};
}

static bool is_lobby(enum note note)
{
    return note >= NOTE_LOBBY_CREATED && note <= NOTE_LOBBY_ENDED;
}

/* Seats and allocations have their player where others have a chat server. */
static struct str player_of(const struct effect *e)
{
    if (e->player.len > 0)
        return e->player;
    enum note_object object = note_object(e->note);
    bool his = object == NOTE_OF_SEAT || object == NOTE_OF_ALLOCATION;
    return his ? e->chat : (struct str){0};
}

static void put_number(struct json_writer *w, int32_t account)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%" PRId32, account);
    json_text(w, (struct str){text, (size_t)n});
}

static void write_players(struct json_writer *w, const struct effect *e)
{
    struct str player = player_of(e);
    if (is_lobby(e->note) && e->accounts) {
        json_key(w, "players");
        json_open_array(w);
        for (int32_t i = 0; i < e->load && i < PLAYERS_MAX; i++)
            put_number(w, e->accounts[i]);
        json_close_array(w);
    } else if (player.len > 0) {
        json_key_text(w, "player", player);
    } else if (e->account != 0) {
        json_key(w, "player");
        put_number(w, e->account);
    }
    struct str rest = e->party;
    struct str name;
    bool open = false;
    for (int i = 0; i < PLAYERS_MAX && names_next(&rest, &name); i++) {
        if (str_eq(name, player))
            continue;
        if (!open) {
            json_key(w, "players");
            json_open_array(w);
        }
        open = true;
        json_text(w, name);
    }
    if (open)
        json_close_array(w);
}

/* A room, or a match of a chat server. */
static void write_session(struct json_writer *w, const struct effect *e)
{
    bool match = is_lobby(e->note) || e->note == NOTE_PLAYER_ENTERED ||
                 e->note == NOTE_PLAYER_LEFT || e->lobby != 0;
    key_id(w, match ? "match" : "room", e->session);
    key_id(w, "server", e->server_id);
    key_id(w, "lobby", e->lobby);
}

static bool is_of_seat(const struct effect *e)
{
    return note_object(e->note) == NOTE_OF_SEAT || e->note == NOTE_REFUSED;
}

/* What is behind a step: the error, or why a seat or a lobby is over. */
static const char *reason_of(const struct effect *e)
{
    if (e->err != 0)
        return err_code(e->err);
    if (e->note == NOTE_SEAT_LEFT && e->load != END_NONE)
        return end_reason_name((int8_t)e->load);
    if (e->note == NOTE_LOBBY_ABORTED)
        return lobby_cause_name(e->reason);
    if (e->note == NOTE_LOBBY_ENDED)
        return end_reason_name(e->reason);
    bool gone = e->note == NOTE_SEAT_LEFT || e->note == NOTE_PLAYER_LEFT;
    return gone && e->reason == SEAT_END_BANNED ? "banned" : "";
}

static void write_step(struct history *h, const struct core *core, const struct effect *e,
                       const char *step, int64_t wall_ms)
{
    struct json_writer w = begin(h);
    bool allocation = note_object(e->note) == NOTE_OF_ALLOCATION;
    json_key_text(&w, "step", str_of(step));
    write_players(&w, e);
    key_text(&w, "fleet", str_of(e->fleet_id ? view_fleet_name(core, e->fleet_id) : ""));
    write_session(&w, e);
    key_id(&w, "ticket", allocation ? e->object : e->ticket);
    if (is_of_seat(e))
        key_id(&w, "seat", e->object);
    if (e->note == NOTE_ALLOCATION_QUEUED)
        key_id(&w, "position", e->load);
    key_text(&w, "reason", str_of(reason_of(e)));
    if (e->note == NOTE_ALLOCATION_DONE)
        key_text(&w, "how", e->region);
    else if (!allocation) /* of these it is what their sender calls them */
        key_text(&w, "text", cut(e->text));
    put(h, wall_ms);
}

/* ── refusals ──────────────────────────────────────────────────────────────────────────────── */

/* So many more than were written. */
static void write_counted(struct history *h, struct refused *r, int64_t wall_ms)
{
    if (r->began_ms != 0 && r->n > HISTORY_REFUSALS_WHOLE) {
        struct json_writer w = begin(h);
        json_key_text(&w, "step", STR("refused"));
        key_text(&w, "player", str_of(r->player));
        key_text(&w, "fleet", str_of(r->fleet));
        key_text(&w, "reason", str_of(err_code(r->err)));
        json_key_int(&w, "count", r->n - HISTORY_REFUSALS_WHOLE);
        put(h, wall_ms);
    }
    r->began_ms = 0;
}

static bool is_same(const struct refused *r, struct str player, int32_t err)
{
    return r->began_ms != 0 && r->err == err && str_eq(str_of(r->player), player);
}

/* His place, or that of whoever was refused longest ago in those he may have. */
static struct refused *place_of(struct history *h, struct str player, int32_t err, int64_t wall_ms)
{
    size_t first = (size_t)(str_hash((uint64_t)(uint32_t)err, player) % HISTORY_REFUSED_MAX);
    struct refused *oldest = &h->refused[first];
    for (size_t i = 0; i < REFUSED_WAYS; i++) {
        struct refused *r = &h->refused[(first + i) % HISTORY_REFUSED_MAX];
        if (is_same(r, player, err))
            return r;
        if (r->began_ms < oldest->began_ms)
            oldest = r;
    }
    write_counted(h, oldest, wall_ms);
    return oldest;
}

/* True when it is to be written in full. */
static bool count_refused(struct history *h, struct str player, int err, const char *fleet,
                          int64_t wall_ms)
{
    struct refused *r = place_of(h, player, err, wall_ms);
    if (r->began_ms != 0 && wall_ms - r->began_ms >= MINUTE_MS)
        write_counted(h, r, wall_ms);
    if (r->began_ms == 0) {
        *r = (struct refused){.began_ms = wall_ms, .err = err};
        (void)str_copy(r->player, sizeof(r->player), player);
        (void)str_copy(r->fleet, sizeof(r->fleet), str_of(fleet));
    }
    return ++r->n <= HISTORY_REFUSALS_WHOLE;
}

static bool count_refusal(struct history *h, const struct core *core, const struct effect *e,
                          int64_t wall_ms)
{
    char number[16] = "";
    struct str player = player_of(e);
    if (player.len == 0 && e->account != 0) {
        (void)snprintf(number, sizeof(number), "%" PRId32, e->account);
        player = str_of(number);
    }
    const char *fleet = e->fleet_id ? view_fleet_name(core, e->fleet_id) : "";
    return count_refused(h, player, e->err, fleet, wall_ms);
}

void history_refused(struct history *h, int64_t wall_ms, const char *account, int err,
                     const char *argument)
{
    char why[96] = "";
    if (!h || !count_refused(h, str_of(account), err, "", wall_ms))
        return;
    if (argument && err == ERR_BAD_ARGUMENT)
        (void)snprintf(why, sizeof(why), "the argument %s is wrong", argument);
    struct json_writer w = begin(h);
    json_key_text(&w, "step", STR("refused"));
    json_key_text(&w, "player", str_of(account));
    json_key_text(&w, "reason", str_of(err_code(err)));
    key_text(&w, "text", str_of(why));
    put(h, wall_ms);
}

void history_tick(struct history *h, int64_t wall_ms)
{
    if (!h || (wall_ms >= h->looked_ms && wall_ms - h->looked_ms < TICK_MS))
        return;
    h->looked_ms = wall_ms;
    for (size_t i = 0; i < HISTORY_REFUSED_MAX; i++) {
        struct refused *r = &h->refused[i];
        bool over = wall_ms - r->began_ms >= MINUTE_MS || wall_ms < r->began_ms;
        if (r->began_ms != 0 && over)
            write_counted(h, r, wall_ms);
    }
}

/* ── changes ───────────────────────────────────────────────────────────────────────────────── */

static int64_t target_of(const struct effect *e)
{
    if (e->object != 0)
        return e->object;
    if (e->server_id != 0)
        return e->server_id;
    return e->session != 0 ? e->session : e->lobby;
}

static void write_operated(struct json_writer *w, const struct effect *e)
{
    const char *step = step_of_operator(e->verb);
    if (step && e->player.len > 0) {
        json_key_text(w, "step", str_of(step));
        json_key_text(w, "player", e->player);
    }
    json_key_text(w, "who", e->chat);
    json_key_text(w, "action", e->text);
    key_text(w, "target_kind", str_of(audit_target_kind(e->verb)));
    key_id(w, "target", target_of(e));
    if (e->verb != OPERATE_STDIN) /* what somebody types may be a secret */
        key_text(w, "text", cut(e->detail));
}

static void write_change(struct history *h, const struct core *core, const struct effect *e,
                         const char *change, int64_t wall_ms, const char *digest)
{
    struct json_writer w = begin(h);
    const char *object = note_object_key(e->note);
    json_key_text(&w, "change", str_of(change));
    if (e->note == NOTE_OPERATED && e->verb == OPERATE_CONFIGURE) {
        json_key_text(&w, "digest", str_of(digest));
        json_key_text(&w, "who", e->chat);
    } else if (e->note == NOTE_OPERATED) {
        write_operated(&w, e);
    } else {
        if (object)
            key_id(&w, object, e->object);
        key_text(&w, "name", e->chat);
        key_id(&w, "server", e->server_id);
        key_text(&w, "fleet", str_of(e->fleet_id ? view_fleet_name(core, e->fleet_id) : ""));
        key_text(&w, "region", e->region);
        key_text(&w, "text", cut(e->text));
        if (e->note == NOTE_STOPPED)
            json_key_int(&w, "for_ms", e->wall_ms);
    }
    put(h, wall_ms);
}

void history_started(struct history *h, int64_t wall_ms, const char *digest)
{
    if (!h)
        return;
    struct json_writer w = begin(h);
    json_key_text(&w, "change", STR("started"));
    json_key_text(&w, "version", STR(MUSTER_VERSION));
    json_key_text(&w, "digest", str_of(digest));
    put(h, wall_ms);
    history_turn(h);
}

/* ── what was released ─────────────────────────────────────────────────────────────────────── */

static void keep(struct history *h, const struct core *core, const struct effect *e,
                 int64_t wall_ms, const char *digest)
{
    const char *change = change_of(e);
    if (change) {
        write_change(h, core, e, change, wall_ms, digest);
        return;
    }
    const char *step = step_of(e);
    if (!step)
        return;
    bool refused = strcmp(step, "refused") == 0;
    if (!refused || count_refusal(h, core, e, wall_ms))
        write_step(h, core, e, step, wall_ms);
}

void history_release(struct history *h, const struct core *core, const struct effect *effects,
                     size_t n, int64_t wall_ms, const char *digest)
{
    for (size_t i = 0; h && i < n; i++) {
        if (effects[i].kind == EFFECT_NOTE)
            keep(h, core, &effects[i], wall_ms, digest);
    }
}

void history_turn(struct history *h)
{
    if (h)
        recorder_turn(h->recorder);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct history *history_new(const struct history_config *config)
{
    const int64_t megabyte = 1024 * 1024;
    if (config->max_mb == 0 || config->days == 0 || !config->folder)
        return NULL;
    struct history *h = xcalloc(1, sizeof(*h));
    struct recorder_limits limits = {
        .bytes_max = config->max_mb * megabyte,
        .age_max_ms = config->days * 86400 * 1000,
        .reserve_bytes = RESERVE_MB * megabyte,
        .retry_ms = 1000,
    };
    h->folder = xstrdup(config->folder);
    h->recorder = recorder_start(config->folder, &limits);
    return h;
}

void history_free(struct history *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < HISTORY_REFUSED_MAX; i++)
        write_counted(h, &h->refused[i], clock_wall_ms());
    recorder_stop(h->recorder);
    buf_done(&h->line);
    free(h->folder);
    free(h);
}

bool history_figures(const struct history *h, struct recorder_figures *ret)
{
    if (h)
        recorder_figures(h->recorder, ret);
    return h != NULL;
}

struct recorder *history_recorder(const struct history *h)
{
    return h ? h->recorder : NULL;
}

const char *history_folder(const struct history *h)
{
    return h ? h->folder : NULL;
}
