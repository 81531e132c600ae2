/* `muster status`. */
#include "cli/status.h"

#include "base/clock.h"
#include "cli/list.h"
#include "cli/when.h"

#include <inttypes.h>
#include <string.h>

enum { REFUSALS_SHOWN = 5, REFUSALS_WIDE = 20, DIGEST_SHOWN = 12 };

static int64_t number(const struct json *object, const char *path)
{
    return json_get_int(show_at(object, path));
}

static void put_label(struct buf *out, const struct term *term, const char *label)
{
    term_put_styled(out, term, STYLE_DIM, str_of(label));
}

/* A count with its word; the word is coloured when there is any. */
static void put_count(struct buf *out, const struct term *term, const struct json *servers,
                      const char *word, const char *after)
{
    int64_t n = number(servers, word);
    term_printf(out, "%" PRId64 " ", n);
    term_put_styled(out, term, n > 0 ? show_style(str_of(word)) : STYLE_PLAIN, str_of(word));
    term_put(out, after);
}

static enum style severity_style(struct str severity)
{
    if (str_eq(severity, STR("critical")))
        return STYLE_BAD;
    return str_eq(severity, STR("warning")) ? STYLE_WARN : STYLE_DIM;
}

/* What is wrong, what to do about it, and the command that helps. */
static void put_finding(struct buf *out, const struct term *term, const struct json *finding)
{
    struct str severity = json_get_text(json_member(finding, "severity"));
    term_put_styled(out, term, severity_style(severity), severity);
    term_put(out, ": ");
    term_put_text(out, json_get_text(json_member(finding, "sentence")));
    term_put(out, "\n  ");
    term_put_text(out, json_get_text(json_member(finding, "advice")));
    term_put(out, "  ");
    term_put_styled(out, term, STYLE_DIM, json_get_text(json_member(finding, "command")));
    term_put(out, "\n");
}

/* The sentence is that of the first finding; where there is none it stands alone. */
static void put_health(struct buf *out, const struct term *term, const struct json *status,
                       bool wide)
{
    const struct json *health = json_member(status, "health");
    const struct json *findings = json_member(health, "findings");
    const struct json *hints = json_member(health, "hints");
    size_t n = json_length(findings);
    if (!health)
        return;
    for (size_t i = 0; i < n; i++)
        put_finding(out, term, json_item(findings, i));
    if (n == 0) {
        term_put_styled(out, term, STYLE_GOOD, json_get_text(json_member(health, "sentence")));
        term_put(out, "\n");
    }
    for (size_t i = 0; (n == 0 || wide) && i < json_length(hints); i++)
        put_finding(out, term, json_item(hints, i));
    term_put(out, "\n");
}

static void put_process(struct buf *out, const struct term *term, const struct json *status)
{
    char lasted[WHEN_MAX];
    struct str store = json_get_text(json_member(status, "store"));
    struct str digest = json_get_text(json_member(status, "config_digest"));
    term_put_styled(out, term, STYLE_HEAD, STR("Muster "));
    term_put_styled(out, term, STYLE_HEAD, json_get_text(json_member(status, "version")));
    term_printf(out, ", up %s, store ", when_lasted(number(status, "uptime_s"), lasted));
    term_put_styled(out, term, show_style(store), store);
    term_put(out, ", configuration ");
    digest.len = digest.len < DIGEST_SHOWN ? digest.len : DIGEST_SHOWN;
    term_put_text(out, digest);
    term_put(out, "\n");
}

static void put_servers(struct buf *out, const struct term *term, const struct json *status)
{
    const struct json *servers = json_member(status, "servers");
    put_label(out, term, "servers    ");
    put_count(out, term, servers, "available", ", ");
    put_count(out, term, servers, "full", ", ");
    put_count(out, term, servers, "draining", ", ");
    put_count(out, term, servers, "offline", "; ");
    term_printf(out, "%" PRId64 " of %" PRId64 " slots used\n", number(status, "slots.used"),
                number(status, "slots.total"));
}

static int64_t sum(const struct json *object)
{
    int64_t n = 0;
    void *at = NULL;
    const char *key;
    const struct json *value;
    while (json_next(object, &at, &key, &value))
        n += json_get_int(value);
    return n;
}

static bool has_rooms(const struct json *status)
{
    const struct json *hosts = json_member(status, "hosts");
    const struct json *rooms = json_member(status, "rooms");
    return hosts && rooms && sum(hosts) + sum(rooms) > 0;
}

/* "3 open, 1 starting; 12 players, 2 coming; 1 of 2 hosts healthy, 1 silent" */
static void put_rooms(struct buf *out, const struct term *term, const struct json *status)
{
    const struct json *rooms = json_member(status, "rooms");
    const struct json *hosts = json_member(status, "hosts");
    void *at = NULL;
    const char *reason;
    const struct json *n;
    put_label(out, term, "rooms      ");
    put_count(out, term, rooms, "open", ", ");
    put_count(out, term, rooms, "starting", ", ");
    put_count(out, term, rooms, "ending", "; ");
    int64_t players = number(rooms, "taken");
    term_printf(
        out, "%" PRId64 " player%s, %" PRId64 " coming; %" PRId64 " of %" PRId64 " host%s healthy",
        players, players == 1 ? "" : "s", number(rooms, "reserved"), number(hosts, "healthy"),
        sum(hosts), sum(hosts) == 1 ? "" : "s");
    while (json_next(hosts, &at, &reason, &n)) {
        if (json_get_int(n) > 0 && strcmp(reason, "healthy") != 0) {
            term_printf(out, ", %" PRId64 " ", json_get_int(n));
            term_put_styled(out, term, STYLE_BAD, str_of(reason));
        }
    }
    term_put(out, "\n");
}

/* "3 requests of 5 players, the oldest for 12s"; nothing when nobody waits. */
static void put_line(struct buf *out, const struct term *term, const struct json *status)
{
    const struct json *queues = json_member(status, "queues");
    int64_t entries = number(queues, "entries");
    int64_t players = number(queues, "players");
    char lasted[WHEN_MAX];
    if (entries == 0)
        return;
    put_label(out, term, "in line    ");
    term_printf(out, "%" PRId64 " request%s", entries, entries == 1 ? "" : "s");
    if (players != entries)
        term_printf(out, " of %" PRId64 " players", players);
    term_printf(out, ", %s for %s\n", entries == 1 ? "waiting" : "the oldest waiting",
                when_lasted(number(queues, "oldest_ms") / 1000, lasted));
}

/* "2 loading, 5 started; 40 players connected; 120 started and 3 aborted since the start"; nothing
 * when nobody ever asked for one. */
static void put_lobbies(struct buf *out, const struct term *term, const struct json *status)
{
    const struct json *lobbies = json_member(status, "lobbies");
    int64_t clients = number(lobbies, "clients");
    if (!lobbies || sum(lobbies) == 0)
        return;
    put_label(out, term, "lobbies    ");
    put_count(out, term, lobbies, "loading", ", ");
    put_count(out, term, lobbies, "started", "; ");
    term_printf(out,
                "%" PRId64 " player%s connected; %" PRId64 " started and %" PRId64
                " aborted since the start\n",
                clients, clients == 1 ? "" : "s", number(lobbies, "ever_started"),
                number(lobbies, "ever_aborted"));
}

/* "nats connected, 3 requests to fetch; pubsub away; 12 results owed"; nothing without brokers. */
static void put_brokers(struct buf *out, const struct term *term, const struct json *status)
{
    const struct json *brokers = json_member(status, "brokers");
    int64_t owed = number(status, "results_owed");
    if (json_length(brokers) == 0)
        return;
    put_label(out, term, "brokers    ");
    for (size_t i = 0; i < json_length(brokers); i++) {
        const struct json *b = json_item(brokers, i);
        bool connected = json_get_bool(json_member(b, "connected"));
        const struct json *lag = json_member(b, "lag");
        term_put_text(out, json_get_text(json_member(b, "name")));
        term_put(out, " ");
        term_put_styled(out, term, connected ? STYLE_GOOD : STYLE_BAD,
                        connected ? STR("connected") : STR("away"));
        if (connected && lag && json_kind(lag) != JSON_KIND_NULL)
            term_printf(out, ", %" PRId64 " requests to fetch", json_get_int(lag));
        term_put(out, "; ");
    }
    term_printf(out, "%" PRId64 " result%s owed\n", owed, owed == 1 ? "" : "s");
}

static void put_requests(struct buf *out, const struct term *term, const struct json *status)
{
    int64_t chat_servers = number(status, "chat_servers");
    put_label(out, term, "sessions   ");
    term_printf(out,
                "%" PRId64 " open; %" PRId64 " requests open, %" PRId64 " kept; %" PRId64
                " chat server%s\n",
                number(status, "sessions"), number(status, "tickets_open"),
                number(status, "tickets_kept"), chat_servers, chat_servers == 1 ? "" : "s");
}

/* "p95 2.3 ms"; "-" when there was nothing. */
static void put_quantile(struct buf *out, const struct json *object, const char *key,
                         const char *name)
{
    const struct json *value = json_member(object, key);
    term_printf(out, "%s %s ", strcmp(name, "p50") == 0 ? ";" : ",", name);
    if (value && json_kind(value) != JSON_KIND_NULL)
        term_printf(out, "%.1f ms", json_get_number(value));
    else
        term_put(out, "-");
}

static void put_allocations(struct buf *out, const struct term *term, const struct json *status)
{
    const struct json *a = json_member(status, "allocations");
    int64_t failed = number(a, "failed");
    put_label(out, term, "last 60 s  ");
    term_printf(out, "%.1f allocations/s, %" PRId64 " done, ",
                json_get_number(json_member(a, "per_s")), number(a, "done"));
    term_begin(out, term, failed ? STYLE_BAD : STYLE_PLAIN);
    term_printf(out, "%" PRId64 " failed", failed);
    term_end(out, term, failed ? STYLE_BAD : STYLE_PLAIN);
    put_quantile(out, a, "p50_ms", "p50");
    put_quantile(out, a, "p95_ms", "p95");
    put_quantile(out, a, "p99_ms", "p99");
    term_put(out, "\n");
}

/* "12 seats given, 1 request refused" in rooms; nothing when nobody asked. */
static void put_joins(struct buf *out, const struct term *term, const struct json *status)
{
    const struct json *joins = json_member(status, "joins");
    int64_t done = number(joins, "done");
    int64_t failed = number(joins, "failed");
    if (done + failed == 0)
        return;
    put_label(out, term, "           ");
    term_printf(out, "%" PRId64 " join%s done, ", done, done == 1 ? "" : "s");
    term_begin(out, term, failed ? STYLE_BAD : STYLE_PLAIN);
    term_printf(out, "%" PRId64 " failed", failed);
    term_end(out, term, failed ? STYLE_BAD : STYLE_PLAIN);
    term_put(out, "\n");
}

/* "p50 0.4 ms, p99 1.2 ms; 0 batches waiting, 3 to fold; 12.3 GiB free" */
static void put_storage(struct buf *out, const struct term *term, const struct json *status)
{
    const struct json *storage = json_member(status, "storage");
    const struct json *free_bytes = json_member(storage, "disk_free_bytes");
    if (!storage)
        return;
    put_label(out, term, "store      ");
    int64_t commits = number(storage, "commits");
    term_printf(out, "%" PRId64 " commit%s in 60 s", commits, commits == 1 ? "" : "s");
    put_quantile(out, storage, "commit_p50_ms", "p50");
    put_quantile(out, storage, "commit_p99_ms", "p99");
    term_printf(out, "; %" PRId64 " waiting, %" PRId64 " to fold",
                number(storage, "batches_waiting"), number(storage, "fold_lag"));
    if (free_bytes && json_kind(free_bytes) != JSON_KIND_NULL)
        term_printf(out, "; %.1f GiB of disk free", (double)json_get_int(free_bytes) / (1 << 30));
    term_put(out, "\n");
}

static bool has_servers(const struct json *region)
{
    const struct json *servers = json_member(region, "servers");
    return number(servers, "available") + number(servers, "full") + number(servers, "draining") +
               number(servers, "offline") >
           0;
}

static void put_regions(struct buf *out, const struct term *term, const struct json *status,
                        bool wide, int64_t now_ms)
{
    struct table t;
    const struct json *regions = json_member(status, "regions");
    const struct show_column *columns = list_columns("regions");
    table_init(&t);
    show_columns(&t, columns, wide);
    for (size_t i = 0; i < json_length(regions); i++) {
        const struct json *region = json_item(regions, i);
        if (wide || has_servers(region))
            show_row(&t, columns, wide, region, now_ms);
    }
    if (table_rows(&t) > 0 || !has_rooms(status))
        term_put(out, "\n");
    if (table_rows(&t) > 0)
        table_print(&t, term, out);
    else if (!has_rooms(status))
        term_put(out, "No game server has registered yet.\n");
    table_done(&t);
}

static const struct show_column refusal_columns[] = {
    {"WHEN", "at", SHOW_AGO, false},
    {"REFUSED BECAUSE", "message", SHOW_TEXT, false},
    {"LOBBY", "lobby", SHOW_NUMBER, false},
    {"TICKET", "ticket", SHOW_NUMBER, false},
    {"CHAT SERVER", "chat_server", SHOW_TEXT, false},
    {"REGION", "region", SHOW_TEXT, false},
    {0},
};

static void put_refusals(struct buf *out, const struct term *term, const struct json *refusals,
                         size_t max, int64_t now_ms)
{
    struct table t;
    table_init(&t);
    show_columns(&t, refusal_columns, false);
    for (size_t i = 0; i < json_length(refusals) && i < max; i++)
        show_row(&t, refusal_columns, false, json_item(refusals, i), now_ms);
    if (table_rows(&t) > 0) {
        term_put(out, "\n");
        table_print(&t, term, out);
    }
    table_done(&t);
}

void status_put(struct buf *out, const struct term *term, const struct json *status, bool wide,
                size_t refusals, int64_t now_ms)
{
    put_health(out, term, status, wide);
    put_process(out, term, status);
    put_servers(out, term, status);
    if (has_rooms(status))
        put_rooms(out, term, status);
    put_line(out, term, status);
    put_lobbies(out, term, status);
    put_brokers(out, term, status);
    put_requests(out, term, status);
    put_allocations(out, term, status);
    put_joins(out, term, status);
    put_storage(out, term, status);
    put_regions(out, term, status, wide, now_ms);
    put_refusals(out, term, json_member(status, "refusals"), refusals, now_ms);
}

static int draw(struct remote *r, void *user)
{
    int code = remote_ask(r, user);
    bool wide = remote_output() == OUTPUT_WIDE;
    if (code != EXIT_DONE)
        return code;
    if (remote_output() == OUTPUT_JSON) {
        show_json(&r->out, r->answer.json);
        term_put(&r->out, "\n");
    } else {
        status_put(&r->out, &r->term, r->answer.json, wide, wide ? REFUSALS_WIDE : REFUSALS_SHOWN,
                   clock_wall_ms());
    }
    return EXIT_DONE;
}

int status_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "get_status", NULL);
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_show(&r, draw, &ask);
    remote_close(&r);
    return code;
}
