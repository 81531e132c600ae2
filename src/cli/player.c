/* `muster player` and `muster refusals`: what is known of one player, and who is refused. */
#include "base/clock.h"
#include "base/date.h"
#include "cli/list.h"
#include "cli/when.h"

#include <inttypes.h>
#include <string.h>

enum {
    ENTRIES = 50,              /* of a journey, unless more are wanted */
    AROUND_MS = 5 * 60 * 1000, /* --at: this long before and after it */
};

static struct {
    const char *account;
    const char *since;
    const char *at;
    int64_t limit;
} set = {.limit = ENTRIES};

const struct arg player_options[] = {
    {.name = "ACCOUNT", .kind = ARG_WORD, .into = &set.account},
    {.name = "--since",
     .kind = ARG_TEXT,
     .into = &set.since,
     .value = "TIME",
     .help = "what happened from then on: a time ago such as 2h, or a date as "
             "2026-11-16T03:12:00Z (all that is kept)"},
    {.name = "--at",
     .kind = ARG_TEXT,
     .into = &set.at,
     .value = "TIME",
     .help = "what happened in the five minutes before and after it: 03:12 (UTC, the last one), "
             "or a date"},
    {.name = "--limit",
     .kind = ARG_NUMBER,
     .into = &set.limit,
     .min = 1,
     .max = 1000,
     .value = "N",
     .help = "at most N of what happened (50)"},
    {0},
};

static const struct show_column journey_columns[] = {
    {"AT", "at", SHOW_TEXT, false},          {"STEP", "step", SHOW_STATE, false},
    {"HE", "sentence", SHOW_TEXT, false},    {"FLEET", "fleet", SHOW_TEXT, true},
    {"ROOM", "room", SHOW_NUMBER, true},     {"MATCH", "match", SHOW_NUMBER, true},
    {"LOBBY", "lobby", SHOW_NUMBER, true},   {"SERVER", "server", SHOW_NUMBER, true},
    {"TICKET", "ticket", SHOW_NUMBER, true}, {"SEAT", "seat", SHOW_NUMBER, true},
    {"REASON", "reason", SHOW_TEXT, true},   {0},
};

static const struct show_column reason_columns[] = {
    {"COUNT", "count", SHOW_NUMBER, false},
    {"PLAYERS", "players", SHOW_NUMBER, false},
    {"REASON", "reason", SHOW_TEXT, false},
    {"IN WORDS", "sentence", SHOW_TEXT, false},
    {0},
};

static const struct show_column repeated_columns[] = {
    {"ACCOUNT", "account", SHOW_TEXT, false}, {"COUNT", "count", SHOW_NUMBER, false},
    {"REASON", "reason", SHOW_TEXT, false},   {"FIRST", "first_at", SHOW_AGO, false},
    {"LAST", "last_at", SHOW_AGO, false},     {0},
};

/* ── parts ─────────────────────────────────────────────────────────────────────────────────── */

static void put_table(struct remote *r, const struct show_column *columns, const struct json *items)
{
    struct table t;
    bool wide = remote_output() == OUTPUT_WIDE;
    table_init(&t);
    show_columns(&t, columns, wide);
    for (size_t i = 0; i < json_length(items); i++)
        show_row(&t, columns, wide, json_item(items, i), clock_wall_ms());
    table_print(&t, &r->term, &r->out);
    table_done(&t);
}

/* A list with its name, or what is said when it is empty. */
static void put_part(struct remote *r, const char *title, const struct show_column *columns,
                     const struct json *items, const char *none)
{
    if (json_length(items) == 0) {
        term_put(&r->out, none);
        return;
    }
    term_put_styled(&r->out, &r->term, STYLE_HEAD, str_of(title));
    term_put(&r->out, "\n");
    put_table(r, columns, items);
}

/* ── player ────────────────────────────────────────────────────────────────────────────────── */

static void put_known(struct remote *r)
{
    const struct json *v = r->answer.json;
    const struct json *waiting = json_member(v, "waiting");
    put_part(r, "Where he is", list_columns("players"), json_member(v, "places"),
             json_length(waiting) > 0 ? "" : "He is nowhere.\n");
    if (json_length(waiting) > 0)
        put_part(r, "What he waits for", list_columns("players"), waiting, "");
    term_put(&r->out, "\n");
    put_part(r, "Bans", list_columns("ban list"), json_member(v, "bans"), "He was never banned.\n");
    term_put(&r->out, "\n");
}

static void put_journey(struct remote *r)
{
    const struct json *v = r->answer.json;
    struct str since = json_get_text(json_member(v, "complete_since"));
    put_part(r, "What happened to him", journey_columns, json_member(v, "entries"),
             "Nothing is kept of what happened to him then.\n");
    if (json_get_bool(json_member(v, "more")))
        term_printf(&r->out, "More is kept from before %.*s; --limit N shows more of it.\n",
                    (int)since.len, since.at);
}

/* Which time of his journey is asked for. */
static bool choose_time(struct ask *a, char from[DATE_SIZE], char to[DATE_SIZE])
{
    int64_t at_ms = 0;
    if (set.at && set.since)
        return args_refuse("player", "takes --at or --since, not both");
    if (set.at && !when_last(str_of(set.at), clock_wall_ms(), &at_ms))
        return args_refuse("player",
                           "--at takes a time of the day as 03:12 in UTC, or a date as "
                           "2026-11-16T03:12:00Z, not '%s'",
                           set.at);
    if (set.at) {
        ask_set(a, "from", date_print(at_ms - AROUND_MS, from));
        ask_set(a, "to", date_print(at_ms + AROUND_MS, to));
    } else if (set.since) {
        ask_set(a, "from", set.since);
    }
    return true;
}

/* Where nothing is kept, that is said, and the rest is shown. */
static int draw_journey(struct remote *r, struct ask *a, bool json)
{
    r->quiet = true;
    int code = remote_ask(r, a);
    r->quiet = false;
    bool off = code == EXIT_REFUSED && r->answer.status == 409;
    if (code != EXIT_DONE && !off) {
        remote_complain(r);
        return code;
    }
    if (json && off)
        term_put(&r->out, "null");
    else if (json)
        show_json(&r->out, r->answer.json);
    else if (off)
        term_put(&r->out, "No history is kept, so nobody can say what happened to him.\n");
    else
        put_journey(r);
    return EXIT_DONE;
}

static int draw_player(struct remote *r, void *user)
{
    struct ask *journey = user;
    struct ask known;
    bool json = remote_output() == OUTPUT_JSON;
    ask_init(&known, "get_player", NULL);
    ask_set(&known, "account", set.account);
    int code = remote_ask(r, &known);
    if (code != EXIT_DONE)
        return code;
    if (json) {
        term_put(&r->out, "{\"player\":");
        show_json(&r->out, r->answer.json);
        term_put(&r->out, ",\"journey\":");
    } else {
        put_known(r);
    }
    code = draw_journey(r, journey, json);
    term_put(&r->out, json ? "}\n" : "");
    if (code != EXIT_DONE)
        buf_clear(&r->out); /* half of it would look like all */
    return code;
}

int player_run(int argc, char **argv)
{
    struct remote r;
    struct ask journey;
    char from[DATE_SIZE];
    char to[DATE_SIZE];
    int code = remote_open(&r, argc, argv, NULL, player_options, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    ask_init(&journey, "get_journey", NULL);
    bool fine = set.account || args_refuse(argv[0], "needs an ACCOUNT");
    if (fine && choose_time(&journey, from, to)) {
        ask_set(&journey, "account", set.account);
        ask_set_number(&journey, "limit", set.limit);
        code = remote_show(&r, draw_player, &journey);
    } else {
        code = EXIT_USAGE;
    }
    remote_close(&r);
    return code;
}

/* ── refusals ──────────────────────────────────────────────────────────────────────────────── */

static int draw_refusals(struct remote *r, void *user)
{
    int code = remote_ask(r, user);
    if (code != EXIT_DONE)
        return code;
    const struct json *v = r->answer.json;
    if (remote_output() == OUTPUT_JSON) {
        show_json(&r->out, v);
        term_put(&r->out, "\n");
        return EXIT_DONE;
    }
    struct str since = json_get_text(json_member(v, "since"));
    int64_t total = json_get_int(json_member(v, "total"));
    if (total == 0) {
        term_printf(&r->out, "Nobody was refused since %.*s.\n", (int)since.len, since.at);
        return EXIT_DONE;
    }
    term_printf(&r->out, "%" PRId64 " refused since %.*s.\n\n", total, (int)since.len, since.at);
    put_table(r, reason_columns, json_member(v, "by_reason"));
    term_put(&r->out, "\n");
    put_part(r, "Again and again", repeated_columns, json_member(v, "repeated"),
             "Nobody was refused three times for the same reason.\n");
    return EXIT_DONE;
}

int refusals_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "get_refusals", NULL);
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_show(&r, draw_refusals, &ask);
    remote_close(&r);
    return code;
}
