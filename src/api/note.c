#include "api/note.h"

#include "base/err.h"
#include "base/log.h"
#include "core/view.h"

/* What somebody should look at is a warning; the rest is the course of things. */
static enum log_level level_of(enum note note)
{
    switch (note) {
    case NOTE_SERVER_OFFLINE:
    case NOTE_SERVER_BACKOFF:
    case NOTE_SERVER_SHORTFALL:
    case NOTE_SERVER_UNKNOWN_MATCH:
    case NOTE_MATCH_LOST:
    case NOTE_CANCEL_GIVEN_UP:
    case NOTE_HOST_SILENT:
    case NOTE_HOST_LOST:
    case NOTE_HOST_BACKOFF:
    case NOTE_HOST_STRANGER:
    case NOTE_VERSION_BACKOFF:
    case NOTE_VERSION_QUARANTINED:
    case NOTE_ALLOCATION_UNSAID:
    case NOTE_TOKEN_COLLISION:
    case NOTE_STOPPED:
        return LOG_WARN;
    case NOTE_PLAYER_ENTERED: /* ten for each match; the history has them */
    case NOTE_PLAYER_LEFT:
        return LOG_DEBUG;
    default:
        return LOG_INFO;
    }
}

static void add_number(struct log_entry *l, const char *key, int64_t value)
{
    if (value != 0)
        log_int(l, key, value);
}

static void add_text(struct log_entry *l, const char *key, struct str value)
{
    if (value.len > 0)
        log_text(l, key, value);
}

enum note_object note_object(enum note note)
{
    switch (note) {
    case NOTE_OPERATED:
        return NOTE_OF_TOKEN;
    case NOTE_HOST_REGISTERED:
    case NOTE_HOST_SILENT:
    case NOTE_HOST_BACK:
    case NOTE_HOST_LOST:
    case NOTE_HOST_BACKOFF:
    case NOTE_HOST_STRANGER:
    case NOTE_HOST_FORGOTTEN:
    case NOTE_VERSION_BACKOFF:
    case NOTE_ROOM_SPAWNING:
    case NOTE_ROOM_OPEN:
    case NOTE_ROOM_ENDED:
        return NOTE_OF_HOST;
    case NOTE_SEAT_RESERVED:
    case NOTE_SEAT_TAKEN:
    case NOTE_SEAT_LEFT:
    case NOTE_PLAYER_ENTERED:
    case NOTE_PLAYER_LEFT:
        return NOTE_OF_SEAT;
    case NOTE_VERSION_QUARANTINED:
    case NOTE_VERSION_SWITCHED:
        return NOTE_OF_VERSION;
    case NOTE_ALLOCATION_OPENED:
    case NOTE_ALLOCATION_QUEUED:
    case NOTE_ALLOCATION_DONE:
    case NOTE_ALLOCATION_FAILED:
    case NOTE_ALLOCATION_UNSAID:
    case NOTE_ALLOCATION_UNKNOWN_FRIENDS:
    case NOTE_TOKEN_COLLISION:
        return NOTE_OF_ALLOCATION;
    default:
        return NOTE_OF_NOTHING;
    }
}

const char *note_object_key(enum note note)
{
    static const char *const keys[] = {
        [NOTE_OF_NOTHING] = NULL,      [NOTE_OF_TOKEN] = "token",
        [NOTE_OF_HOST] = "host",       [NOTE_OF_SEAT] = "seat",
        [NOTE_OF_VERSION] = "version", [NOTE_OF_ALLOCATION] = "allocation",
    };
    return keys[note_object(note)];
}

const char *note_name_key(enum note note)
{
    static const char *const keys[] = {
        [NOTE_OF_NOTHING] = "chat", [NOTE_OF_TOKEN] = "who",    [NOTE_OF_HOST] = "name",
        [NOTE_OF_SEAT] = "player",  [NOTE_OF_VERSION] = "name", [NOTE_OF_ALLOCATION] = "player",
    };
    return keys[note_object(note)];
}

bool note_counts_players(enum note note)
{
    return note == NOTE_LOBBY_CREATED || note == NOTE_LOBBY_STARTED;
}

bool note_lasts(enum note note)
{
    return note == NOTE_STOPPED || note == NOTE_SERVER_BACKOFF || note == NOTE_HOST_BACKOFF ||
           note == NOTE_VERSION_BACKOFF;
}

/* Their text is what its sender calls it, and their region how it was placed. */
static void log_allocation(const struct effect *e, enum log_level level)
{
    struct log_entry l;
    log_begin(&l, level, note_text(e->note));
    add_number(&l, "allocation", e->object);
    add_text(&l, "player", e->chat);
    add_text(&l, "ticket_id", e->text);
    add_number(&l, "session", e->session);
    add_number(&l, "server", e->server_id);
    add_text(&l, "how", e->region);
    add_number(&l, "position", e->load);
    if (e->err != 0)
        log_word(&l, "error", err_code(e->err));
    log_end(&l);
}

void note_log(const struct effect *e, const char *peer)
{
    enum log_level level = level_of(e->note);
    if (!log_enabled(level))
        return;
    if (note_object(e->note) == NOTE_OF_ALLOCATION) {
        log_allocation(e, level);
        return;
    }
    struct log_entry l;
    log_begin(&l, level, note_text(e->note));
    add_number(&l, "server", e->server_id);
    add_number(&l, "ticket", e->ticket);
    add_number(&l, "session", e->session);
    add_number(&l, "lobby", e->lobby);
    add_number(&l, "account", e->account);
    bool operated = e->note == NOTE_OPERATED;
    if (note_object_key(e->note))
        add_number(&l, note_object_key(e->note), e->object);
    add_text(&l, note_name_key(e->note), e->chat);
    add_text(&l, "player", e->player);
    add_number(&l, "conn", (int64_t)e->conn);
    if (peer)
        log_word(&l, "peer", peer);
    add_text(&l, operated ? "from" : "ip", e->ip);
    add_number(&l, "port", e->port);
    add_text(&l, "region", e->region);
    if (e->err != 0)
        log_word(&l, "error", err_code(e->err));
    add_text(&l, operated ? "action" : "text", e->text);
    if (e->note == NOTE_ROOM_ENDED || e->note == NOTE_LOBBY_ENDED)
        log_word(&l, "reason", end_reason_name(e->reason));
    if (e->note == NOTE_LOBBY_ABORTED) {
        log_word(&l, "cause", lobby_cause_name(e->reason));
        log_word(&l, "requeued", e->on ? "true" : "false");
    }
    if (note_counts_players(e->note))
        add_number(&l, "players", e->load);
    if (note_lasts(e->note))
        add_number(&l, e->note == NOTE_STOPPED ? "stopped_ms" : "for_ms", e->wall_ms);
    log_end(&l);
}
