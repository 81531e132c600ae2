#include "cli/list.h"

#include "base/clock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_OF_MANY = 100 }; /* in a table, when nothing else was asked for */
enum { ROWS_PRINTED_AT_ONCE = 10000, CURSOR_MAX = 128, LIMIT_MAX = 1000000000 };

static const struct show_column server_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"REGION", "region", SHOW_TEXT, false},
    {"ADDRESS", "ip", SHOW_TEXT, false},
    {"PORT", "port", SHOW_NUMBER, false},
    {"STATUS", "status", SHOW_STATE, false},
    {"LOAD", "load", SHOW_NUMBER, false},
    {"MAX", "max_sessions", SHOW_NUMBER, false},
    {"CPU", "cpu_percent", SHOW_PERCENT, false},
    {"MEMORY", "memory_percent", SHOW_PERCENT, false},
    {"PASSED OVER", "passed_over", SHOW_TEXT, false},
    {"HEARD", "heard_at", SHOW_AGO, false},
    {"CONNECTED", "connected", SHOW_TEXT, true},
    {"OPEN", "open", SHOW_NUMBER, true},
    {"REPORTED", "reported", SHOW_NUMBER, true},
    {"UNKNOWN", "unknown_matches", SHOW_NUMBER, true},
    {"SCORE", "score", SHOW_NUMBER, true},
    {"ROUND TRIP", "round_trip_us", SHOW_MS, true},
    {"DRAINING BY", "draining_by", SHOW_TEXT, true},
    {"HOST", "host_name", SHOW_TEXT, true},
    {"ROOM", "room", SHOW_NUMBER, true},
    {"REGISTERED", "registered_at", SHOW_AGO, true},
    {0},
};

static const struct show_column session_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"TICKET", "ticket", SHOW_NUMBER, false},
    {"SERVER", "server", SHOW_NUMBER, false},
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"KIND", "kind", SHOW_TEXT, false},
    {"CHAT SERVER", "chat_server", SHOW_TEXT, false},
    {"LOBBY", "lobby", SHOW_NUMBER, false},
    {"STATE", "state", SHOW_STATE, false},
    {"READY", "ready", SHOW_TEXT, false},
    {"PLAYERS", "player_count", SHOW_NUMBER, false},
    {"OPENED", "opened_at", SHOW_AGO, false},
    {"ENDED BY", "end_reason", SHOW_TEXT, false},
    {"SEATED", "seated", SHOW_NUMBER, true},
    {"TYPE", "game_type", SHOW_NUMBER, true},
    {"MODE", "game_mode", SHOW_NUMBER, true},
    {"CREATED", "created_at", SHOW_AGO, true},
    {"DEADLINE", "deadline_at", SHOW_AGO, true},
    {0},
};

static const struct show_column ticket_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"KIND", "kind", SHOW_TEXT, false},
    {"CHAT SERVER", "chat_server", SHOW_TEXT, false},
    {"LOBBY", "lobby", SHOW_NUMBER, false},
    {"ACCOUNT", "account", SHOW_TEXT, false},
    {"REGIONS", "regions", SHOW_TEXT, false},
    {"STATE", "state", SHOW_STATE, false},
    {"SERVER", "server", SHOW_NUMBER, false},
    {"TRIES", "tries", SHOW_NUMBER, false},
    {"OPENED", "opened_at", SHOW_AGO, false},
    {"REFUSED BECAUSE", "error.message", SHOW_TEXT, false},
    {"SESSION", "session", SHOW_NUMBER, true},
    {"TYPE", "game_type", SHOW_NUMBER, true},
    {"MODE", "game_mode", SHOW_NUMBER, true},
    {"PLAYERS", "player_count", SHOW_NUMBER, true},
    {"RATING", "average_rating", SHOW_NUMBER, true},
    {"ANSWERED", "answered_at", SHOW_AGO, true},
    {"DEADLINE", "deadline_at", SHOW_AGO, true},
    {0},
};

static const struct show_column fleet_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"NAME", "name", SHOW_TEXT, false},
    {"PROVIDER", "provider", SHOW_TEXT, false},
    {"CONFIGURED", "configured", SHOW_TEXT, false},
    {"AVAILABLE", "servers.available", SHOW_NUMBER, false},
    {"FULL", "servers.full", SHOW_NUMBER, false},
    {"DRAINING", "servers.draining", SHOW_NUMBER, false},
    {"OFFLINE", "servers.offline", SHOW_NUMBER, false},
    {"USED", "slots.used", SHOW_NUMBER, false},
    {"SLOTS", "slots.total", SHOW_NUMBER, false},
    {"SESSIONS", "sessions", SHOW_NUMBER, false},
    {"ROOMS", "rooms", SHOW_NUMBER, false},
    {"READY REQUIRED", "ready_required", SHOW_TEXT, true},
    {0},
};

static const struct show_column region_columns[] = {
    {"CODE", "code", SHOW_NUMBER, false},
    {"NAME", "name", SHOW_TEXT, false},
    {"AVAILABLE", "servers.available", SHOW_NUMBER, false},
    {"FULL", "servers.full", SHOW_NUMBER, false},
    {"DRAINING", "servers.draining", SHOW_NUMBER, false},
    {"OFFLINE", "servers.offline", SHOW_NUMBER, false},
    {"USED", "slots.used", SHOW_NUMBER, false},
    {"SLOTS", "slots.total", SHOW_NUMBER, false},
    {"SESSIONS", "sessions", SHOW_NUMBER, false},
    {"LOAD", "load_mean", SHOW_NUMBER, false},
    {"SPREAD", "load_spread", SHOW_NUMBER, true},
    {"LATITUDE", "latitude", SHOW_NUMBER, true},
    {"LONGITUDE", "longitude", SHOW_NUMBER, true},
    {0},
};

static const struct show_column audit_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"AT", "at", SHOW_TEXT, false},
    {"WHO", "who", SHOW_TEXT, false},
    {"FROM", "address", SHOW_TEXT, false},
    {"ACTION", "action", SHOW_TEXT, false},
    {"TARGET", "target.kind", SHOW_TEXT, false},
    {"NUMBER", "target.id", SHOW_NUMBER, false},
    {"DETAIL", "detail", SHOW_TEXT, false},
    {0},
};

static const struct show_column token_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"NAME", "name", SHOW_TEXT, false},
    {"ROLE", "role", SHOW_TEXT, false},
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"REGIONS", "regions", SHOW_TEXT, false},
    {"CONNECTIONS", "connections", SHOW_NUMBER, false},
    {"CREATED", "created_at", SHOW_AGO, false},
    {"EXPIRES", "expires_at", SHOW_AGO, false},
    {"REVOKED", "revoked_at", SHOW_AGO, false},
    {"GENERATION", "generation", SHOW_NUMBER, true},
    {"PREVIOUS UNTIL", "previous_until", SHOW_AGO, true},
    {0},
};

static const struct show_column host_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"NAME", "name", SHOW_TEXT, false},
    {"REGION", "region", SHOW_TEXT, false},
    {"ADDRESS", "address", SHOW_TEXT, false},
    {"ROOMS", "rooms", SHOW_NUMBER, false},
    {"SLOTS", "slots", SHOW_NUMBER, false},
    {"LOAD", "load_percent", SHOW_PERCENT, false},
    {"CPU", "cpu_percent", SHOW_PERCENT, false},
    {"MEMORY", "memory_percent", SHOW_PERCENT, false},
    {"PASSED OVER", "passed_over", SHOW_STATE, false},
    {"HEARD", "heard_at", SHOW_AGO, false},
    {"ENABLED", "enabled", SHOW_TEXT, true},
    {"SERVERS", "servers", SHOW_NUMBER, true},
    {"STRANGERS", "strangers", SHOW_NUMBER, true},
    {"DEPLOYMENTS", "deployments", SHOW_NUMBER, true},
    {"AGENT", "url", SHOW_TEXT, true},
    {"REGISTERED", "registered_at", SHOW_AGO, true},
    {0},
};

static const struct show_column room_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"VERSION", "version", SHOW_TEXT, false},
    {"REGION", "region", SHOW_TEXT, false},
    {"STATE", "state", SHOW_STATE, false},
    {"PLAYERS", "taken", SHOW_NUMBER, false},
    {"COMING", "reserved", SHOW_NUMBER, false},
    {"MAX", "max_players", SHOW_NUMBER, false},
    {"HOST", "host_name", SHOW_TEXT, false},
    {"ADDRESS", "address", SHOW_TEXT, false},
    {"PORTS", "ports", SHOW_TEXT, false},
    {"OPENED", "opened_at", SHOW_AGO, false},
    {"ENDED BY", "end_reason", SHOW_TEXT, false},
    {"SERVER", "server", SHOW_NUMBER, true},
    {"TICKET", "ticket", SHOW_NUMBER, true},
    {"HOST AWAY", "host_away", SHOW_TEXT, true},
    {"DEADLINE", "deadline_at", SHOW_AGO, true},
    {"SETTINGS", "settings", SHOW_TEXT, true},
    {0},
};

static const struct show_column seat_columns[] = {
    {"ACCOUNT", "account", SHOW_TEXT, false},
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"ROOM", "room", SHOW_NUMBER, false},
    {"SEAT", "id", SHOW_NUMBER, false},
    {"STATE", "state", SHOW_STATE, false},
    {"FROM", "address", SHOW_TEXT, false},
    {"RESERVED", "reserved_at", SHOW_AGO, false},
    {"JOINED", "joined_at", SHOW_AGO, false},
    {"TICKET", "ticket", SHOW_NUMBER, true},
    {"TOGETHER", "multi", SHOW_NUMBER, true},
    {"GIVEN BACK", "deadline_at", SHOW_AGO, true},
    {"INFO", "info", SHOW_TEXT, true},
    {0},
};

static const struct show_column place_columns[] = {
    {"ACCOUNT", "account", SHOW_TEXT, false},
    {"STATE", "state", SHOW_STATE, false},
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"ROOM", "room", SHOW_NUMBER, false},
    {"MATCH", "match", SHOW_NUMBER, false},
    {"SEAT", "seat", SHOW_NUMBER, false},
    {"SINCE", "since", SHOW_AGO, false},
    {"UNTIL", "deadline_at", SHOW_AGO, false},
    {"SERVER", "server", SHOW_NUMBER, true},
    {"FROM", "address", SHOW_TEXT, true},
    {"TICKET", "ticket", SHOW_NUMBER, true},
    {"LOBBY", "lobby", SHOW_NUMBER, true},
    {"TOGETHER", "party", SHOW_NUMBER, true},
    {"POSITION", "position", SHOW_NUMBER, true},
    {0},
};

static const struct show_column change_columns[] = {
    {"AT", "at", SHOW_TEXT, false},          {"WHO", "who", SHOW_TEXT, false},
    {"WHAT", "what", SHOW_TEXT, false},      {"IN WORDS", "sentence", SHOW_TEXT, false},
    {"FLEET", "fleet", SHOW_TEXT, true},     {"HOST", "host", SHOW_NUMBER, true},
    {"SERVER", "server", SHOW_NUMBER, true}, {"TARGET", "target_kind", SHOW_TEXT, true},
    {"NUMBER", "target", SHOW_NUMBER, true}, {0},
};

static const struct show_column ban_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"ACCOUNT", "account", SHOW_TEXT, false},
    {"ADDRESS", "address", SHOW_TEXT, false},
    {"EXPIRES", "expires_at", SHOW_AGO, false},
    {"EXPIRED", "expired", SHOW_TEXT, false},
    {"REASON", "reason", SHOW_TEXT, false},
    {"ISSUED", "issued_at", SHOW_AGO, true},
    {"WHO", "who", SHOW_TEXT, true},
    {0},
};

static const struct show_column version_columns[] = {
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"VERSION", "name", SHOW_TEXT, false},
    {"ENABLED", "enabled", SHOW_TEXT, false},
    {"ROOMS", "rooms", SHOW_NUMBER, false},
    {"DEPLOYMENT", "deployment", SHOW_NUMBER, false},
    {"HOSTS", "hosts", SHOW_NUMBER, false},
    {"READY", "hosts_ready", SHOW_NUMBER, false},
    {"QUARANTINE", "reason", SHOW_TEXT, false},
    {"WANTED", "wanted", SHOW_NUMBER, true},
    {"PREVIOUS", "previous", SHOW_NUMBER, true},
    {0},
};

static const struct show_column deployment_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"VERSION", "version", SHOW_TEXT, false},
    {"CURRENT", "current", SHOW_TEXT, false},
    {"WANTED", "wanted", SHOW_TEXT, false},
    {"HOSTS", "hosts", SHOW_NUMBER, false},
    {"READY", "hosts_ready", SHOW_NUMBER, false},
    {"BYTES", "size", SHOW_NUMBER, false},
    {"CREATED", "created_at", SHOW_AGO, false},
    {"DIGEST", "digest", SHOW_TEXT, true},
    {"WHO", "who", SHOW_TEXT, true},
    {0},
};

static const struct show_column allocation_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"TICKET", "ticket_id", SHOW_TEXT, false},
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"PLAYER", "player", SHOW_TEXT, false},
    {"STATE", "state", SHOW_STATE, false},
    {"ROOM", "room", SHOW_NUMBER, false},
    {"PLAYERS", "players", SHOW_NUMBER, false},
    {"BUS", "bus", SHOW_TEXT, false},
    {"OPENED", "opened_at", SHOW_AGO, false},
    {"REFUSED BECAUSE", "why", SHOW_TEXT, false},
    {"REGION", "region", SHOW_TEXT, true},
    {"PRIORITY", "priority", SHOW_NUMBER, true},
    {"POSITION", "position", SHOW_NUMBER, true},
    {"PARTY", "party", SHOW_NUMBER, true},
    {"OWED", "owed", SHOW_TEXT, true},
    {"ANSWERED", "answered_at", SHOW_AGO, true},
    {0},
};

static const struct show_column lobby_columns[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"FLEET", "fleet", SHOW_TEXT, false},
    {"REGION", "region", SHOW_TEXT, false},
    {"STATE", "state", SHOW_STATE, false},
    {"PLAYERS", "size", SHOW_NUMBER, false},
    {"LOADED", "loaded", SHOW_NUMBER, false},
    {"CONNECTED", "connected", SHOW_NUMBER, false},
    {"SERVER", "server", SHOW_NUMBER, false},
    {"CREATED", "created_at", SHOW_AGO, false},
    {"QUEUE", "queue", SHOW_TEXT, false},
    {"BECAUSE", "reason", SHOW_TEXT, false},
    {"CAUSE", "cause", SHOW_TEXT, true},
    {"TYPE", "type", SHOW_NUMBER, true},
    {"MODE", "mode", SHOW_NUMBER, true},
    {"MAP", "map", SHOW_TEXT, true},
    {"RATING", "rating", SHOW_NUMBER, true},
    {"MOVES", "moves", SHOW_NUMBER, true},
    {"TICKET", "ticket", SHOW_NUMBER, true},
    {"SESSION", "session", SHOW_NUMBER, true},
    {"STARTED", "started_at", SHOW_AGO, true},
    {"OVER", "over_at", SHOW_AGO, true},
    {"DEADLINE", "deadline_at", SHOW_AGO, true},
    {0},
};

static const struct show_column route_columns[] = {
    {"TOKEN", "token", SHOW_TEXT, false},   {"ADDRESS", "address", SHOW_TEXT, false},
    {"PORT", "port", SHOW_NUMBER, false},   {"FLEET", "fleet", SHOW_TEXT, false},
    {"PLAYER", "player", SHOW_TEXT, false}, {"ROOM", "room", SHOW_NUMBER, false},
    {"SEAT", "seat", SHOW_NUMBER, true},    {0},
};

static const struct list {
    const char *verb;
    const char *operation;
    const struct show_column *columns;
    bool endless; /* a million may be kept, of which the newest are meant */
} lists[] = {
    {"servers", "list_servers", server_columns, false},
    {"sessions", "list_sessions", session_columns, true},
    {"tickets", "list_tickets", ticket_columns, true},
    {"fleets", "list_fleets", fleet_columns, false},
    {"regions", "list_regions", region_columns, false},
    {"audit", "list_audit", audit_columns, true},
    {"token list", "list_tokens", token_columns, false},
    {"hosts", "list_hosts", host_columns, false},
    {"rooms", "list_rooms", room_columns, true},
    {"players", "list_players", place_columns, false},
    {"seats", "list_seats", seat_columns, false},
    {"changes", "list_changes", change_columns, true},
    {"ban list", "list_bans", ban_columns, true},
    {"versions", "list_versions", version_columns, false},
    {"deployments", "list_deployments", deployment_columns, true},
    {"allocations", "list_allocations", allocation_columns, true},
    {"lobbies", "list_lobbies", lobby_columns, true},
    {"routes", "list_routes", route_columns, false},
};

static const struct list *find(const char *verb)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (strcmp(lists[i].verb, verb) == 0)
            return &lists[i];
    }
    return NULL;
}

const struct show_column *list_columns(const char *verb)
{
    const struct list *list = find(verb);
    return list ? list->columns : NULL;
}

/* ── pages ─────────────────────────────────────────────────────────────────────────────────── */

/* The items of one page, as they are wanted. */
struct printer {
    struct remote *r;
    const struct show_column *columns;
    struct table table;
    enum output output;
    const struct list_choice *choice;
    size_t n;
    bool more; /* there are some that were not wanted */
};

static void print_item(struct printer *p, const struct json *item, int64_t now_ms)
{
    if (p->output != OUTPUT_JSON) {
        show_row(&p->table, p->columns, p->output == OUTPUT_WIDE, item, now_ms);
        return;
    }
    term_put(&p->r->out, p->n == 0 ? "[\n" : ",\n");
    show_json(&p->r->out, item);
}

static bool is_enough(const struct printer *p)
{
    return p->choice->limit && p->n >= (size_t)p->choice->limit;
}

/* A page may hold more than is wanted. */
static void print_page(struct printer *p, const struct json *items)
{
    int64_t now_ms = clock_wall_ms();
    for (size_t i = 0; i < json_length(items); i++) {
        const struct json *item = json_item(items, i);
        if (is_enough(p))
            return;
        if (p->choice->keep && !p->choice->keep(item))
            continue;
        print_item(p, item, now_ms);
        p->n++;
    }
    if (table_rows(&p->table) >= ROWS_PRINTED_AT_ONCE && !p->choice->sorted_by)
        table_print(&p->table, &p->r->term, &p->r->out);
    remote_spill(p->r);
}

static void print_end(struct printer *p)
{
    for (int i = p->choice->sorted_by; i > 0 && p->output != OUTPUT_JSON; i--)
        table_sort(&p->table, (size_t)i - 1);
    if (p->output == OUTPUT_JSON)
        term_put(&p->r->out, p->n == 0 ? "[]\n" : "\n]\n");
    else
        table_print(&p->table, &p->r->term, &p->r->out);
}

static int64_t page_max(const struct operation *o)
{
    for (const struct field *f = o->fields; f->name; f++) {
        if (strcmp(f->name, "limit") == 0)
            return f->max;
    }
    return 0;
}

static void ask_page(struct ask *a, const struct printer *p, const char *cursor)
{
    int64_t max = page_max(a->operation);
    int64_t left = p->choice->limit - (int64_t)p->n;
    if (max > 0)
        ask_set_number(a, "limit", p->choice->limit && left < max ? left : max);
    if (ask_has(a, "cursor"))
        ask_set(a, "cursor", *cursor ? cursor : NULL);
}

static int print_pages(struct printer *p, struct ask *a)
{
    char cursor[CURSOR_MAX] = "";
    do {
        ask_page(a, p, cursor);
        int code = remote_ask(p->r, a);
        if (code != EXIT_DONE)
            return code;
        print_page(p, json_member(p->r->answer.json, "items"));
        (void)str_copy(cursor, sizeof(cursor),
                       json_get_text(json_member(p->r->answer.json, "next")));
    } while (*cursor && ask_has(a, "cursor") && !is_enough(p));
    p->more = *cursor != '\0';
    return EXIT_DONE;
}

int list_draw(struct remote *r, struct ask *a, const struct show_column *columns,
              const struct list_choice *choice, size_t *ret_n)
{
    struct printer p = {.r = r, .columns = columns, .output = remote_output(), .choice = choice};
    table_init(&p.table);
    show_columns(&p.table, columns, p.output == OUTPUT_WIDE);
    int code = print_pages(&p, a);
    if (code == EXIT_DONE)
        print_end(&p);
    if (code == EXIT_DONE && p.more && choice->says_more)
        term_put(&r->out, "More are kept; --limit N shows more of them.\n");
    table_done(&p.table);
    *ret_n = p.n;
    return code;
}

/* ── the verbs ─────────────────────────────────────────────────────────────────────────────── */

static struct list_choice chosen;

const struct arg list_options[] = {
    {.name = "--limit",
     .kind = ARG_NUMBER,
     .into = &chosen.limit,
     .min = 1,
     .max = LIMIT_MAX,
     .value = "N",
     .help =
         "at most N of them (all; of matches, requests and the audit the newest 100 in a table)"},
    {0},
};

struct drawing {
    struct ask ask;
    const struct show_column *columns;
};

static int draw(struct remote *r, void *user)
{
    struct drawing *d = user;
    size_t n;
    return list_draw(r, &d->ask, d->columns, &chosen, &n);
}

static void choose_newest(const struct list *list, struct ask *a)
{
    if (list->endless && ask_has(a, "order") && !ask_text(a, "order"))
        ask_set(a, "order", "newest");
    chosen.says_more = list->endless && !chosen.limit && remote_output() != OUTPUT_JSON;
    if (chosen.says_more)
        chosen.limit = SHOWN_OF_MANY;
}

int list_run(int argc, char **argv)
{
    struct remote r;
    struct drawing d;
    const struct list *list = find(argv[0]);
    assert(list);
    d.columns = list->columns;
    ask_init(&d.ask, list->operation, NULL);
    if (strcmp(list->verb, "versions") == 0)
        ask_add_word(&d.ask, "fleet", "FLEET");
    int code = remote_open(&r, argc, argv, &d.ask, list_options, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    choose_newest(list, &d.ask);
    code = remote_show(&r, draw, &d);
    remote_close(&r);
    return code;
}
