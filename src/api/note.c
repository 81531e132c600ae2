#include "api/note.h"

#include "base/err.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

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
    case NOTE_STOPPED:
        return LOG_WARN;
    default:
        return LOG_INFO;
    }
}

struct line {
    char text[512];
    size_t len;
};

static void add(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A pair that does not fit is left out whole. */
static void add(struct line *l, const char *format, ...)
{
    size_t gap = l->len > 0 ? 1 : 0;
    size_t room = sizeof(l->text) - l->len;
    if (room <= gap)
        return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->text + l->len + gap, room - gap, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= room - gap) {
        l->text[l->len] = '\0';
        return;
    }
    if (gap)
        l->text[l->len] = ' ';
    l->len += gap + (size_t)n;
}

static void add_number(struct line *l, const char *key, int64_t value)
{
    if (value != 0)
        add(l, "%s=%" PRId64, key, value);
}

static void add_text(struct line *l, const char *key, struct str value)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (value.len > 0)
        add(l, "%s=%s", key, log_quote(quoted, value));
}

void note_log(const struct effect *e, const char *peer)
{
    enum log_level level = level_of(e->note);
    if (!log_enabled(level))
        return;
    struct line l = {.text = ""};
    add_number(&l, "server", e->server_id);
    add_number(&l, "ticket", e->ticket);
    add_number(&l, "session", e->session);
    add_number(&l, "lobby", e->lobby);
    add_number(&l, "account", e->account);
    add_text(&l, "chat", e->chat);
    add_number(&l, "conn", (int64_t)e->conn);
    if (peer)
        add(&l, "peer=%s", peer);
    add_text(&l, "ip", e->ip);
    add_number(&l, "port", e->port);
    add_text(&l, "region", e->region);
    if (e->err != 0)
        add(&l, "error=%s", err_code(e->err));
    add_text(&l, "text", e->text);
    if (e->note == NOTE_STOPPED)
        add_number(&l, "stopped_ms", e->wall_ms);
    if (e->note == NOTE_SERVER_BACKOFF)
        add_number(&l, "for_ms", e->wall_ms);
    log_line(level, note_text(e->note), "%s", l.text);
}
