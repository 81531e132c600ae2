/* `muster queue`, `queue remove`, `party` and `allocate-player`: places for players, who stands in
 * line for one, and who came together. */
#include "base/clock.h"
#include "cli/list.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { PRIORITY_MAX = 100, STATUS_QUEUED = 202, NAME_LEN_MAX = 128, NAME_BYTES = 8 };

static const struct show_column queue_columns[] = {
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"ROOM", "room", SHOW_NUMBER, false},
    {"WAITING", "entries", SHOW_NUMBER, false},
    {"PLAYERS", "players", SHOW_NUMBER, false},
    {"HELD", "held", SHOW_NUMBER, false},
    {"FREED/MIN", "freed_per_min", SHOW_NUMBER, false},
    {0},
};

static const struct show_column entry_columns[] = {
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"ROOM", "room", SHOW_NUMBER, false},
    {"POSITION", "position", SHOW_NUMBER, false},
    {"PLAYER", "player", SHOW_TEXT, false},
    {"PLAYERS", "players", SHOW_NUMBER, false},
    {"PRIORITY", "priority", SHOW_NUMBER, false},
    {"SINCE", "queued_at", SHOW_AGO, false},
    {"STILL ABOUT", "eta_ms", SHOW_LASTS, false},
    {"UNTIL", "deadline_at", SHOW_AGO, false},
    {"TICKET", "ticket_id", SHOW_TEXT, false},
    {0},
};

/* ── who stands in line ────────────────────────────────────────────────────────────────────── */

static int draw_waiting(struct remote *r, const struct ask *lines)
{
    struct ask entries;
    size_t n = 0;
    ask_init(&entries, "list_allocations", NULL);
    ask_set(&entries, "state", "queued");
    ask_set(&entries, "fleet", ask_text(lines, "fleet"));
    return list_draw(r, &entries, entry_columns, &(struct list_choice){.sorted_by = 3}, &n);
}

static int draw_queues(struct remote *r, void *user)
{
    const struct list_choice all = {0};
    size_t n = 0;
    bool json = remote_output() == OUTPUT_JSON;
    term_put(&r->out, json ? "{\"lines\":" : "");
    int code = list_draw(r, user, queue_columns, &all, &n);
    if (code != EXIT_DONE)
        return code;
    if (n == 0 && !json) {
        buf_clear(&r->out);
        term_put(&r->out, "Nobody stands in line.\n");
        return EXIT_DONE;
    }
    term_put(&r->out, json ? ",\"waiting\":" : "\n");
    code = draw_waiting(r, user);
    term_put(&r->out, json ? "}\n" : "");
    return code;
}

int queue_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "list_queues", NULL);
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_show(&r, draw_queues, &ask);
    remote_close(&r);
    return code;
}

static void put_json(struct remote *r)
{
    show_json(&r->out, r->answer.json);
    term_put(&r->out, "\n");
}

int queue_remove_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "dequeue_player", "PLAYER");
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_output_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_ask(&r, &ask);
    if (code == EXIT_DONE && remote_output() == OUTPUT_JSON) {
        put_json(&r);
    } else if (code == EXIT_DONE) {
        term_put_text(&r.out, str_of(ask_text(&ask, "player")));
        term_put(&r.out, " stands in line no more: allocation ");
        term_put_text(&r.out, json_get_text(json_member(r.answer.json, "ticket_id")));
        term_put(&r.out, " was cancelled\n");
    }
    (void)remote_flush(&r);
    remote_close(&r);
    return code;
}

/* ── who came together ─────────────────────────────────────────────────────────────────────── */

static int draw_party(struct remote *r, void *user)
{
    struct table t;
    bool wide = remote_output() == OUTPUT_WIDE;
    const struct show_column *columns = list_columns("seats");
    int code = remote_ask(r, user);
    if (code != EXIT_DONE)
        return code;
    if (remote_output() == OUTPUT_JSON) {
        put_json(r);
        return EXIT_DONE;
    }
    const struct json *seats = json_member(r->answer.json, "seats");
    table_init(&t);
    show_columns(&t, columns, wide);
    for (size_t i = 0; i < json_length(seats); i++)
        show_row(&t, columns, wide, json_item(seats, i), clock_wall_ms());
    table_print(&t, &r->term, &r->out);
    table_done(&t);
    return EXIT_DONE;
}

int party_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "get_party", "PARTY");
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_show(&r, draw_party, &ask);
    remote_close(&r);
    return code;
}

/* ── a place for a player ──────────────────────────────────────────────────────────────────── */

static struct {
    const char *fleet;
    const char *player;
    const char *friends;
    const char *party;
    const char *region;
    const char *ticket;
    int64_t priority;
    bool fallback;
    bool move_party;
    bool no_rejoin;
    bool wait;
} set;

const struct arg allocate_player_options[] = {
    {.name = "--fleet", .kind = ARG_TEXT, .into = &set.fleet, .value = "FLEET", .help = "where"},
    {.name = "--player", .kind = ARG_TEXT, .into = &set.player, .value = "PLAYER", .help = "who"},
    {.name = "--friends",
     .kind = ARG_TEXT,
     .into = &set.friends,
     .value = "A,B",
     .help = "where these players are, with commas between them"},
    {.name = "--fallback",
     .kind = ARG_FLAG,
     .into = &set.fallback,
     .help = "any place will do when they are nowhere"},
    {.name = "--party",
     .kind = ARG_TEXT,
     .into = &set.party,
     .value = "A,B",
     .help = "who comes along: all of them or nobody"},
    {.name = "--move-party",
     .kind = ARG_FLAG,
     .into = &set.move_party,
     .help = "those he came with before come along"},
    {.name = "--priority",
     .kind = ARG_NUMBER,
     .into = &set.priority,
     .min = 0,
     .max = PRIORITY_MAX,
     .value = "N",
     .help = "each step is worth a minute of waiting in line (0)"},
    {.name = "--region",
     .kind = ARG_TEXT,
     .into = &set.region,
     .value = "REGION",
     .help = "the region; else it is chosen"},
    {.name = "--no-rejoin",
     .kind = ARG_FLAG,
     .into = &set.no_rejoin,
     .help = "who has a seat already gets another"},
    {.name = "--ticket",
     .kind = ARG_TEXT,
     .into = &set.ticket,
     .value = "NAME",
     .help = "what the request is called: the same name again gets the same answer (a random one)"},
    {.name = "--wait",
     .kind = ARG_FLAG,
     .into = &set.wait,
     .help = "stand in line until there is a place; ctrl-c leaves him there"},
    {0},
};

static void put_texts(struct json_writer *w, const char *key, const char *text)
{
    if (!text)
        return;
    json_key(w, key);
    json_open_array(w);
    while (*text) {
        size_t n = strcspn(text, ",");
        json_text(w, (struct str){text, n});
        text += n + (text[n] == ',' ? 1 : 0);
    }
    json_close_array(w);
}

static void put_flag(struct json_writer *w, const char *key, bool on, bool value)
{
    if (on)
        json_key_bool(w, key, value);
}

static void put_request(struct buf *out, const char *name)
{
    struct json_writer w = {.out = out};
    json_open_object(&w);
    json_key_text(&w, "envelopeVersion", STR("1.0"));
    json_key_text(&w, "type", STR("allocation-request"));
    json_key_text(&w, "ticketId", str_of(name));
    json_key_text(&w, "fleet", str_of(set.fleet));
    json_key_text(&w, "playerId", str_of(set.player));
    put_texts(&w, "joinOnIds", set.friends);
    put_flag(&w, "canJoinNotFound", set.fallback, true);
    put_texts(&w, "partyIds", set.party);
    put_flag(&w, "moveParty", set.move_party, true);
    put_flag(&w, "rejoin", set.no_rejoin, false);
    if (set.region)
        json_key_text(&w, "region", str_of(set.region));
    if (set.priority > 0)
        json_key_int(&w, "priority", set.priority);
    json_close_object(&w);
}

static void choose_name(char ret[NAME_LEN_MAX + 1])
{
    uint8_t random[NAME_BYTES];
    char hex[2 * NAME_BYTES + 1];
    randombytes_buf(random, sizeof(random));
    (void)sodium_bin2hex(hex, sizeof(hex), random, sizeof(random));
    (void)snprintf(ret, NAME_LEN_MAX + 1, "%s%s", set.ticket ? set.ticket : "cli-",
                   set.ticket ? "" : hex);
}

static void put_member(struct remote *r, const struct json *of, const char *before, const char *key)
{
    const struct json *value = show_at(of, key);
    if (!value)
        return;
    term_put(&r->out, before);
    show_value(&r->out, value, SHOW_TEXT, clock_wall_ms());
}

/* Those who came along have tokens and keys of their own. */
static void put_others(struct remote *r, const struct json *party)
{
    for (size_t i = 0; i < json_length(party); i++) {
        put_member(r, json_item(party, i), "\n", "playerId");
        put_member(r, json_item(party, i), ": token ", "token");
        put_member(r, json_item(party, i), ", key ", "key");
    }
}

/* "ann: room 3 at 10.0.0.1:7777, token …, key …, party 8" */
static void put_result(struct remote *r, const char *name)
{
    const struct json *result = r->answer.json;
    if (remote_output() == OUTPUT_JSON) {
        put_json(r);
        return;
    }
    term_put_text(&r->out, str_of(set.player));
    if (r->answer.status == STATUS_QUEUED) {
        put_member(r, result, " stands in line at position ", "queuePosition");
        put_member(r, result, " of ", "queueId");
        term_put(&r->out, ", as allocation ");
        term_put_text(&r->out, str_of(name));
    } else {
        put_member(r, result, ": room ", "sessionId");
        put_member(r, result, " at ", "address");
        put_member(r, result, ":", "port");
        put_member(r, result, ", token ", "token");
        put_member(r, result, ", key ", "key");
        put_member(r, result, ", party ", "partyId");
        put_others(r, json_member(result, "party"));
    }
    term_put(&r->out, "\n");
}

static int ask_once(struct remote *r, const struct buf *body, int wait_s)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/v1/allocations?wait=%d", wait_s);
    return remote_call(r, HTTP_POST, path, body, 2 * CLIENT_TIMEOUT_S + wait_s);
}

static bool stands_in_line(const struct remote *r, int code)
{
    return code == EXIT_DONE && r->answer.status == STATUS_QUEUED;
}

/* The name makes a repeat harmless, so waiting is asking again. Whoever waits is told for what; the
 * answer alone goes to standard output. */
static int ask_for_place(struct remote *r, const char *name)
{
    struct buf body = {0};
    put_request(&body, name);
    int code = ask_once(r, &body, 0);
    if (set.wait && stands_in_line(r, code) && remote_output() != OUTPUT_JSON) {
        put_result(r, name);
        (void)fwrite(r->out.data, 1, r->out.len, stderr);
        buf_clear(&r->out);
    }
    while (set.wait && stands_in_line(r, code))
        code = ask_once(r, &body, CLIENT_TIMEOUT_S);
    buf_done(&body);
    if (code == EXIT_DONE)
        put_result(r, name);
    (void)remote_flush(r);
    return code;
}

int allocate_player_run(int argc, char **argv)
{
    struct remote r;
    char name[NAME_LEN_MAX + 1];
    int code =
        remote_open(&r, argc, argv, NULL, allocate_player_options, remote_output_options, false);
    if (code != EXIT_DONE)
        return code;
    choose_name(name);
    if (!set.fleet || !set.player) {
        (void)args_refuse(argv[0], "%s is needed", set.fleet ? "--player" : "--fleet");
        code = EXIT_USAGE;
    } else if (set.ticket && (!*set.ticket || strlen(set.ticket) > NAME_LEN_MAX)) {
        (void)args_refuse(argv[0], "--ticket takes 1 to %d bytes, not %zu", NAME_LEN_MAX,
                          strlen(set.ticket));
        code = EXIT_USAGE;
    } else {
        code = ask_for_place(&r, name);
    }
    remote_close(&r);
    return code;
}
