/* `muster events`: what changes, as it changes. When the connection is lost it comes back and goes
 * on after the last event it has shown. */
#include "base/clock.h"
#include "cli/remote.h"
#include "cli/screen.h"
#include "cli/show.h"
#include "cli/sse.h"
#include "cli/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SILENCE_S = 45, /* Muster gives a sign of life every 15 */
    RETRY_FIRST_MS = 250,
    RETRY_MAX_MS = 5000,
    RETRY_NODES_MAX_MS = 1000, /* where there are several, one of them leads soon */
    STATUS_OK = 200,
};

static struct {
    bool json;
    int64_t limit;
    const char *from;
} set;

const struct arg events_options[] = {
    {.name = "--json", .kind = ARG_FLAG, .into = &set.json, .help = "the same as -o json"},
    {.name = "--from",
     .kind = ARG_TEXT,
     .into = &set.from,
     .value = "ID",
     .help = "goes on after this event (its id is in --json)"},
    {.name = "--limit",
     .kind = ARG_NUMBER,
     .into = &set.limit,
     .min = 1,
     .max = INT64_MAX,
     .value = "N",
     .help = "ends after N of them (goes on until ctrl-c)"},
    {0},
};

struct follower {
    struct remote *r;
    struct sse sse;
    const char *kinds; /* as asked for; NULL = all, and then load and note are not printed */
    int64_t printed;
    int64_t retry_ms;
};

/* ── a line for people ─────────────────────────────────────────────────────────────────────── */

/* The fields that are worth a place in the line, of every kind of event. */
static const char *const line_fields[] = {
    "text",        "name",    "state",   "status", "lobby",  "regions",     "region",     "server",
    "ticket",      "session", "account", "role",   "fleet",  "ip",          "port",       "action",
    "target",      "who",     "detail",  "error",  "why",    "from",        "to",         "missed",
    "draining_by", "ready",   "gone",    "tries",  "for_ms", "chat_server", "end_reason", "loaded",
    "size",        "moves",   "cause",   "reason", "queue"};

static bool is_worth_it(const struct json *value)
{
    switch (json_kind(value)) {
    case JSON_KIND_NULL:
        return false;
    case JSON_KIND_TEXT:
        return json_get_text(value).len > 0;
    case JSON_KIND_ARRAY:
        return json_length(value) > 0;
    default:
        return true;
    }
}

/* "target" is an object of two, "error" of code and message; both are one thing to people. */
static void put_field(struct buf *out, const char *name, const struct json *value)
{
    const struct json *code = json_member(value, "code");
    const struct json *kind = json_member(value, "kind");
    term_printf(out, "  %s=", name);
    if (kind) {
        show_value(out, kind, SHOW_TEXT, 0);
        term_put(out, ":");
        show_value(out, json_member(value, "id"), SHOW_TEXT, 0);
    } else {
        show_value(out, code ? code : value, SHOW_TEXT, 0);
    }
}

static void put_line(struct follower *f, const struct sse_event *event, const struct json *data)
{
    struct buf *out = &f->r->out;
    char now[WHEN_MAX];
    const struct json *id = json_member(data, "id");
    term_put_styled(out, &f->r->term, STYLE_DIM, str_of(when_clock(clock_wall_ms(), now)));
    term_put(out, "  ");
    term_put_styled(out, &f->r->term, STYLE_HEAD, event->kind);
    if (id) {
        term_put(out, " ");
        show_value(out, id, SHOW_TEXT, 0);
    }
    for (size_t i = 0; i < sizeof(line_fields) / sizeof(line_fields[0]); i++) {
        const struct json *value = json_member(data, line_fields[i]);
        if (value && is_worth_it(value))
            put_field(out, line_fields[i], value);
    }
    term_put(out, "\n");
}

/* {"event":KIND,"id":ID,"data":…}: what one needs to go on from here. */
static void put_json(struct follower *f, const struct sse_event *event, const struct json *data)
{
    struct buf *out = &f->r->out;
    struct json_writer w = {.out = out};
    json_open_object(&w);
    json_key_text(&w, "event", event->kind);
    json_key_text(&w, "id", str_of(f->sse.id));
    json_key(&w, "data");
    show_json(out, data);
    w.comma = true;
    json_close_object(&w);
    term_put(out, "\n");
}

/* Once a second, and said twice: only for those who ask. */
static bool is_noise(const struct follower *f, const struct sse_event *event)
{
    return !f->kinds && (str_eq(event->kind, STR("load")) || str_eq(event->kind, STR("note")));
}

static bool on_event(void *user, const struct sse_event *event)
{
    struct follower *f = user;
    char why[JSON_WHY_MAX];
    if (is_noise(f, event))
        return true;
    struct json *data = json_parse(event->data, why);
    if (!data)
        return true;
    if (set.json || remote_output() == OUTPUT_JSON)
        put_json(f, event, data);
    else
        put_line(f, event, data);
    json_free(data);
    f->printed++;
    return remote_flush(f->r) && (!set.limit || f->printed < set.limit);
}

/* ── the stream ────────────────────────────────────────────────────────────────────────────── */

static bool on_piece(void *user, struct str piece)
{
    struct follower *f = user;
    f->retry_ms = RETRY_FIRST_MS;
    return sse_take(&f->sse, piece, on_event, f);
}

/* True when it is time to stop. */
static bool pause_before_retry(struct follower *f)
{
    int64_t until_ms = clock_monotonic_ms() + f->retry_ms;
    int64_t most_ms = client_has_several(f->r->client) ? RETRY_NODES_MAX_MS : RETRY_MAX_MS;
    f->retry_ms = f->retry_ms * 2 < most_ms ? f->retry_ms * 2 : most_ms;
    return screen_wait(&f->r->stop_fd, 1, until_ms) == 0;
}

/* Whether the first connection failed decides: later ones are tried again until they succeed. */
static int follow(struct follower *f, const char *path)
{
    bool ever = false;
    for (;;) {
        sse_restart(&f->sse);
        enum client_result result =
            client_stream(f->r->client, path, f->sse.id, SILENCE_S, on_piece, f, &f->r->answer);
        if (result == CLIENT_DONE || result == CLIENT_STOPPED)
            return EXIT_DONE;
        bool connected = f->r->answer.status == STATUS_OK;
        ever = ever || connected;
        bool refused = result == CLIENT_REFUSED && !client_is_leaderless(&f->r->answer);
        if (refused || !ever) {
            remote_complain(f->r);
            return result == CLIENT_REFUSED ? EXIT_REFUSED : EXIT_UNREACHABLE;
        }
        if (connected)
            fprintf(stderr, "muster events: the connection is lost; trying again\n");
        if (pause_before_retry(f))
            return EXIT_DONE;
    }
}

int events_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    struct buf path = {0};
    ask_init(&ask, "stream_events", NULL);
    int code = remote_open(&r, argc, argv, &ask, events_options, remote_live_options, true);
    if (code != EXIT_DONE)
        return code;
    struct follower f = {.r = &r, .kinds = ask_text(&ask, "kinds"), .retry_ms = RETRY_FIRST_MS};
    if (set.from)
        (void)str_copy(f.sse.id, sizeof(f.sse.id), str_of(set.from));
    ask_put_path(&ask, &path);
    buf_append(&path, "", 1);
    code = follow(&f, (const char *)path.data);
    buf_done(&path);
    sse_done(&f.sse);
    remote_close(&r);
    return code;
}
