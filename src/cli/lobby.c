/* `muster lobby`, `lobby create` and `lobby abort`: one lobby as somebody who looks after it wants
 * to see it (what it waits for, who is missing, why it is over), and what he can do. */
#include "base/clock.h"
#include "base/date.h"
#include "cli/list.h"
#include "cli/when.h"

#include <inttypes.h>
#include <string.h>

static const struct show_column player_columns[] = {
    {"TEAM", "team", SHOW_NUMBER, false},         {"SLOT", "slot", SHOW_NUMBER, false},
    {"ACCOUNT", "account", SHOW_NUMBER, false},   {"NAME", "name", SHOW_TEXT, false},
    {"GROUP", "group", SHOW_NUMBER, false},       {"LOADED", "loaded", SHOW_TEXT, false},
    {"CONNECTED", "connected", SHOW_TEXT, false}, {0},
};

static int64_t number(const struct json *object, const char *key)
{
    return json_get_int(json_member(object, key));
}

static struct str text(const struct json *object, const char *key)
{
    return json_get_text(json_member(object, key));
}

/* ── what it waits for ─────────────────────────────────────────────────────────────────────── */

static void put_when(struct remote *r, const struct json *lobby, const char *key)
{
    char when[WHEN_MAX];
    int64_t wall_ms = 0;
    if (date_parse(text(lobby, key), &wall_ms))
        term_put(&r->out, when_ago(wall_ms, clock_wall_ms(), when));
    else
        term_put(&r->out, "-");
}

/* How many of those who have not loaded are not connected either. */
static int64_t count_away(const struct json *lobby)
{
    const struct json *players = json_member(lobby, "players");
    int64_t n = 0;
    for (size_t i = 0; i < json_length(players); i++) {
        const struct json *p = json_item(players, i);
        n +=
            !json_get_bool(json_member(p, "loaded")) && !json_get_bool(json_member(p, "connected"));
    }
    return n;
}

/* "It waits for a server and for 2 of 4 players to load, 1 of whom is not connected." */
static void put_loading(struct remote *r, const struct json *lobby)
{
    int64_t missing = number(lobby, "size") - number(lobby, "loaded");
    int64_t away = count_away(lobby);
    bool allocated = json_get_bool(json_member(lobby, "allocated"));
    term_put(&r->out, "It waits for ");
    if (!allocated)
        term_put(&r->out, "a server");
    if (!allocated && missing > 0)
        term_put(&r->out, " and for ");
    if (missing > 0)
        term_printf(&r->out, "%" PRId64 " of %" PRId64 " player%s to load", missing,
                    number(lobby, "size"), number(lobby, "size") == 1 ? "" : "s");
    if (away > 0)
        term_printf(&r->out, ", %" PRId64 " of whom %s not connected", away,
                    away == 1 ? "is" : "are");
    term_put(&r->out, allocated && missing == 0 ? "nothing any more: it starts.\n" : ".\n");
    term_put(&r->out, "Unless it starts it is aborted ");
    put_when(r, lobby, "deadline_at");
    term_put(&r->out, ".\n");
}

static void put_started(struct remote *r, const struct json *lobby)
{
    term_put(&r->out, "It started ");
    put_when(r, lobby, "started_at");
    term_put(&r->out, " on server ");
    term_put_text(&r->out, text(lobby, "server"));
    term_put(&r->out, ", as session ");
    term_put_text(&r->out, text(lobby, "session"));
    term_put(&r->out,
             json_get_bool(json_member(lobby, "allocated")) ? ".\n" : "; its server is away.\n");
}

/* "It was aborted 3 m ago: Loading timeout. Its groups are to be queued again." */
static void put_over(struct remote *r, const struct json *lobby)
{
    bool aborted = str_eq(text(lobby, "state"), STR("aborted"));
    int64_t untold = number(lobby, "untold");
    term_put(&r->out, aborted ? "It was aborted " : "Its match ended ");
    put_when(r, lobby, "over_at");
    if (text(lobby, "reason").len > 0) {
        term_put(&r->out, ": ");
        term_put_text(&r->out, text(lobby, "reason"));
    }
    term_put(&r->out, ".\n");
    if (aborted)
        term_put(&r->out, str_eq(text(lobby, "queue"), STR("queued"))
                              ? "Its groups are to be queued again.\n"
                              : "Its groups are not queued again.\n");
    if (untold > 0)
        term_printf(&r->out, "%" PRId64 " player%s not heard of it yet.\n", untold,
                    untold == 1 ? " has" : "s have");
}

static void put_sentence(struct remote *r, const struct json *lobby)
{
    struct str state = text(lobby, "state");
    term_put(&r->out, "lobby ");
    term_put_text(&r->out, text(lobby, "id"));
    term_put(&r->out, " is ");
    term_put_styled(&r->out, &r->term, show_style(state), state);
    term_put(&r->out, "\n");
    if (str_eq(state, STR("loading")))
        put_loading(r, lobby);
    else if (str_eq(state, STR("started")))
        put_started(r, lobby);
    else
        put_over(r, lobby);
}

/* ── the verbs ─────────────────────────────────────────────────────────────────────────────── */

static void put_players(struct remote *r, const struct json *lobby)
{
    struct table t;
    const struct json *players = json_member(lobby, "players");
    table_init(&t);
    show_columns(&t, player_columns, false);
    for (size_t i = 0; i < json_length(players); i++)
        show_row(&t, player_columns, false, json_item(players, i), clock_wall_ms());
    table_print(&t, &r->term, &r->out);
    table_done(&t);
}

static bool put_json(struct remote *r)
{
    if (remote_output() != OUTPUT_JSON)
        return false;
    show_json(&r->out, r->answer.json);
    term_put(&r->out, "\n");
    return true;
}

static int draw(struct remote *r, void *user)
{
    static const char *const apart[] = {"players", "groups", "id", "state", "reason", NULL};
    int code = remote_ask(r, user);
    if (code != EXIT_DONE || put_json(r))
        return code;
    put_sentence(r, r->answer.json);
    term_put(&r->out, "\n");
    put_players(r, r->answer.json);
    term_put(&r->out, "\n");
    show_object_without(&r->out, &r->term, r->answer.json, apart, clock_wall_ms());
    return EXIT_DONE;
}

int lobby_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "get_lobby", "LOBBY");
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_show(&r, draw, &ask);
    remote_close(&r);
    return code;
}

/* word: what the number in the path is; NULL = there is none. */
static int change(int argc, char **argv, const char *operation, const char *word)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, operation, word);
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_output_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_ask(&r, &ask);
    if (code == EXIT_DONE && !put_json(&r))
        put_sentence(&r, r.answer.json);
    (void)remote_flush(&r);
    remote_close(&r);
    return code;
}

int lobby_create_run(int argc, char **argv)
{
    return change(argc, argv, "create_lobby", NULL);
}

int lobby_abort_run(int argc, char **argv)
{
    return change(argc, argv, "abort_lobby", "LOBBY");
}
