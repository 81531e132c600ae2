/* `muster matchmaker`: makes matches of players of its own, one after the other, posts them as
 * lobbies, and keeps books of what becomes of them. At the end it says whether all was as it must
 * be: see lobby_ledger.h. */
#include "base/clock.h"
#include "cli/bench.h"
#include "cli/match_crowd.h"
#include "cli/remote.h"
#include "cli/stop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ASK_MS = 500, /* Muster about each open lobby */
    CALL_S = 3,
    QUIET_MS = 700, /* at the end, for what is still under way to the players */
    ACCOUNTS_MAX = 1000,
    FAULTY_PERCENT = 45, /* of the lobbies, with --faults */
    QUIT_MS = 6000,
    WAIT_MAX_MS = 1000, /* players, between two tries of all nodes */
    LAST_ABORTS = 4,
    STATUS_NOT_FOUND = 404,
};

static struct {
    const char *client;
    const char *fleet;
    const char *region;
    int64_t players;
    int64_t team;
    int64_t every_ms;
    int64_t first;
    int64_t seconds;
    int64_t settle_s;
    bool enter;
    bool faults;
    bool stats;
} set = {.client = "127.0.0.1:11031",
         .fleet = "default",
         .region = "AUTO",
         .players = 60,
         .team = 5,
         .every_ms = 800,
         .first = 1001,
         .settle_s = 90};

const struct arg matchmaker_options[] = {
    {.name = "--client",
     .kind = ARG_TEXT,
     .into = &set.client,
     .value = "HOST:PORT",
     .help = "Muster's client port (127.0.0.1:11031); several nodes with commas between them"},
    {.name = "--fleet",
     .kind = ARG_TEXT,
     .into = &set.fleet,
     .value = "NAME",
     .help = "whose servers are asked for (default)"},
    {.name = "--region",
     .kind = ARG_TEXT,
     .into = &set.region,
     .value = "NAME",
     .help = "where (AUTO: any)"},
    {.name = "--players",
     .kind = ARG_NUMBER,
     .into = &set.players,
     .min = 2,
     .max = ACCOUNTS_MAX,
     .value = "N",
     .help = "how many there are (60)"},
    {.name = "--first",
     .kind = ARG_NUMBER,
     .into = &set.first,
     .min = 1,
     .max = INT32_MAX - ACCOUNTS_MAX,
     .value = "N",
     .help = "the first one's account; the others follow (1001)"},
    {.name = "--team",
     .kind = ARG_NUMBER,
     .into = &set.team,
     .min = 1,
     .max = LEDGER_PLAYERS_MAX / 2,
     .value = "N",
     .help = "at most so many players in each of two teams (5)"},
    {.name = "--every",
     .kind = ARG_NUMBER,
     .into = &set.every_ms,
     .min = 1,
     .max = 3600000,
     .value = "MS",
     .help = "a match so often, when enough players are free (800)"},
    {.name = "--for",
     .kind = ARG_SECONDS,
     .into = &set.seconds,
     .min = 1,
     .max = 1000000,
     .value = "TIME",
     .help = "makes no more after that (until ctrl-c)"},
    {.name = "--settle",
     .kind = ARG_SECONDS,
     .into = &set.settle_s,
     .min = 1,
     .max = 3600,
     .value = "TIME",
     .help = "then waits so long at most for those that are loading (90s)"},
    {.name = "--enter",
     .kind = ARG_FLAG,
     .into = &set.enter,
     .help = "players enter their match at its server, a 'muster game-server --door'"},
    {.name = "--faults",
     .kind = ARG_FLAG,
     .into = &set.faults,
     .help = "in some lobbies one player misbehaves"},
    {.name = "--stats",
     .kind = ARG_FLAG,
     .into = &set.stats,
     .help = "every half second a line 'stats {...}' with numbers in JSON"},
    {0},
};

struct matchmaker {
    struct remote *r;
    struct ledger ledger;
    struct match_crowd crowd;
    struct durations starts; /* from creation to start, of those counted already */
    struct pollfd *fds;
    bool unreachable; /* said already */
    int64_t post_due_ms;
    int64_t ask_due_ms;
};

static void say(void *user, const char *line)
{
    struct buf out = {0};
    (void)user;
    term_put_text(&out, str_of(line));
    term_put(&out, "\n");
    (void)term_flush(&out, STDOUT_FILENO);
    buf_done(&out);
}

/* Once for as long as it lasts. */
static void note_reachable(struct matchmaker *m, bool reachable)
{
    char line[512];
    if (!reachable && !m->unreachable) {
        snprintf(line, sizeof(line), "Muster is away: %.400s", m->r->answer.why);
        say(NULL, line);
    }
    if (reachable && m->unreachable)
        say(NULL, "Muster is back");
    m->unreachable = !reachable;
}

/* ── making matches ────────────────────────────────────────────────────────────────────────── */

static void put_team(struct json_writer *w, struct match_player *const *players, int n)
{
    json_open_array(w);
    for (int i = 0; i < n; i++) {
        char name[24];
        snprintf(name, sizeof(name), "player-%" PRId32, players[i]->account);
        json_open_object(w);
        json_key_int(w, "account", players[i]->account);
        json_key_text(w, "name", str_of(name));
        json_key_int(w, "slot", i);
        json_close_object(w);
    }
    json_close_array(w);
}

/* Each team came together. */
static void put_group(struct json_writer *w, struct match_player *const *players, int n)
{
    json_open_array(w);
    for (int i = 0; i < n; i++)
        json_int(w, players[i]->account);
    json_close_array(w);
}

static void put_match(struct buf *out, struct match_player *const *players, int team, bool requeue)
{
    struct json_writer w = {.out = out};
    json_open_object(&w);
    json_key_text(&w, "fleet", str_of(set.fleet));
    json_key_text(&w, "region", str_of(set.region));
    json_key_int(&w, "type", 1);
    json_key_int(&w, "mode", 0);
    json_key_text(&w, "map", STR("caldera"));
    json_key_int(&w, "rating", 1500);
    json_key_bool(&w, "requeue", requeue);
    json_key(&w, "teams");
    json_open_array(&w);
    put_team(&w, players, team);
    put_team(&w, players + team, team);
    json_close_array(&w);
    json_key(&w, "groups");
    json_open_array(&w);
    put_group(&w, players, team);
    put_group(&w, players + team, team);
    json_close_array(&w);
    json_close_object(&w);
}

static int32_t id_of(const struct json *lobby)
{
    struct str text = json_get_text(json_member(lobby, "id"));
    char digits[24];
    return str_copy(digits, sizeof(digits), text) ? (int32_t)strtol(digits, NULL, 10) : 0;
}

/* One of them misbehaves, in some lobbies. */
static enum match_script script_for(struct matchmaker *m)
{
    if (!set.faults || match_crowd_roll(&m->crowd, 100) >= FAULTY_PERCENT)
        return SCRIPT_NONE;
    return (enum match_script)(1 + match_crowd_roll(&m->crowd, MATCH_SCRIPTS - 1));
}

static void enter_books(struct matchmaker *m, int32_t id, bool requeue,
                        struct match_player *const *players, int n)
{
    char line[128];
    struct ledger_lobby *b = ledger_add(&m->ledger, id, requeue, clock_monotonic_ms());
    enum match_script script = script_for(m);
    int64_t guilty = match_crowd_roll(&m->crowd, n);
    for (int i = 0; i < n; i++) {
        ledger_add_player(b, players[i]->account, players[i]->since_ms);
        match_crowd_seat(&m->crowd, players[i], id, i == guilty ? script : SCRIPT_NONE);
    }
    snprintf(line, sizeof(line), "lobby %" PRId32 " created, %d players", id, n);
    say(NULL, line);
}

static void make_match(struct matchmaker *m)
{
    struct match_player *players[LEDGER_PLAYERS_MAX];
    struct buf body = {0};
    int team = 1 + (int)match_crowd_roll(&m->crowd, set.team);
    bool requeue = match_crowd_roll(&m->crowd, 2) == 0;
    if (!match_crowd_pick(&m->crowd, 2 * team, players))
        return;
    put_match(&body, players, team, requeue);
    int code = remote_call(m->r, HTTP_POST, "/v1/lobbies", &body, CALL_S);
    buf_done(&body);
    note_reachable(m, code != EXIT_UNREACHABLE);
    if (code == EXIT_DONE)
        enter_books(m, id_of(m->r->answer.json), requeue, players, 2 * team);
    else if (code == EXIT_REFUSED)
        say(NULL, m->r->answer.why);
}

/* ── asking ────────────────────────────────────────────────────────────────────────────────── */

static void note_change(struct matchmaker *m, const struct ledger_lobby *b, enum ledger_state was)
{
    char line[256];
    if (b->state == LEDGER_ENDED && was != LEDGER_ENDED) {
        snprintf(line, sizeof(line), "lobby %" PRId32 " ended%s%s", b->id, b->cause[0] ? ": " : "",
                 b->cause[0] ? b->reason : "");
        say(NULL, line);
    }
    if (!b->open)
        match_crowd_release(&m->crowd, b->id);
}

/* False when Muster cannot be asked now. One that was over may have been forgotten. */
static bool ask_about(struct matchmaker *m, struct ledger_lobby *b)
{
    char path[64];
    enum ledger_state was = b->state;
    snprintf(path, sizeof(path), "/v1/lobbies/%" PRId32, b->id);
    int code = remote_call(m->r, HTTP_GET, path, NULL, CALL_S);
    note_reachable(m, code != EXIT_UNREACHABLE);
    bool gone = code == EXIT_REFUSED && m->r->answer.status == STATUS_NOT_FOUND;
    if (code != EXIT_DONE && !gone)
        return false;
    if (gone && !b->open)
        return true;
    const struct json *j = m->r->answer.json;
    const struct ledger_news news = {.known = !gone,
                                     .state = json_get_text(json_member(j, "state")),
                                     .cause = json_get_text(json_member(j, "cause")),
                                     .reason = json_get_text(json_member(j, "reason")),
                                     .queue = json_get_text(json_member(j, "queue")),
                                     .requeue = json_get_bool(json_member(j, "requeue"))};
    ledger_said(&m->ledger, b, &news);
    note_change(m, b, was);
    return true;
}

static bool ask_about_open(struct matchmaker *m)
{
    for (size_t i = 0; i < m->ledger.n; i++) {
        if (m->ledger.lobbies[i]->open && !ask_about(m, m->ledger.lobbies[i]))
            return false;
    }
    return true;
}

/* ── numbers ───────────────────────────────────────────────────────────────────────────────── */

static void count_starts(const struct ledger *l, struct durations *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; i < l->n; i++) {
        const struct ledger_lobby *b = l->lobbies[i];
        if (b->started_ms)
            durations_add(ret, (b->started_ms - b->created_ms) * 1000000);
    }
}

static void put_last_aborts(struct json_writer *w, const struct ledger *l)
{
    int n = 0;
    json_key(w, "aborts");
    json_open_array(w);
    for (size_t i = l->n; i-- > 0 && n < LAST_ABORTS;) {
        const struct ledger_lobby *b = l->lobbies[i];
        if (b->state != LEDGER_ABORTED)
            continue;
        json_open_object(w);
        json_key_int(w, "lobby", b->id);
        json_key_text(w, "reason", str_of(b->reason));
        json_close_object(w);
        n++;
    }
    json_close_array(w);
}

static void put_stats(struct matchmaker *m)
{
    struct buf out = {0};
    struct json_writer w = {.out = &out};
    const struct ledger *l = &m->ledger;
    size_t playing = ledger_count(l, LEDGER_STARTED);
    count_starts(l, &m->starts);
    term_put(&out, "stats ");
    json_open_object(&w);
    json_key_int(&w, "loading", (int64_t)ledger_count(l, LEDGER_LOADING));
    json_key_int(&w, "playing", (int64_t)playing);
    json_key_int(&w, "started", (int64_t)(playing + ledger_count(l, LEDGER_ENDED)));
    json_key_int(&w, "aborted", (int64_t)ledger_count(l, LEDGER_ABORTED));
    json_key_int(&w, "entered", (int64_t)m->crowd.entered);
    json_key_number(&w, "p50_ms", durations_us(&m->starts, 0.5) / 1000, 0);
    json_key_number(&w, "p95_ms", durations_us(&m->starts, 0.95) / 1000, 0);
    json_key_number(&w, "p99_ms", durations_us(&m->starts, 0.99) / 1000, 0);
    put_last_aborts(&w, l);
    json_close_object(&w);
    term_put(&out, "\n");
    (void)term_flush(&out, STDOUT_FILENO);
    buf_done(&out);
}

static int summarize(struct matchmaker *m)
{
    struct buf out = {0};
    count_starts(&m->ledger, &m->starts);
    size_t wrong = ledger_put_summary(&out, &m->ledger);
    term_printf(&out, "  creation to start: p50 %.0f ms, p95 %.0f ms, p99 %.0f ms\n",
                durations_us(&m->starts, 0.5) / 1000, durations_us(&m->starts, 0.95) / 1000,
                durations_us(&m->starts, 0.99) / 1000);
    if (set.enter)
        term_printf(&out,
                    "  players let into their matches: %" PRIu64 ", not let in: %" PRIu64 "\n",
                    m->crowd.entered, m->crowd.refused);
    (void)term_flush(&out, STDOUT_FILENO);
    buf_done(&out);
    return wrong ? EXIT_REFUSED : EXIT_DONE;
}

/* ── running ───────────────────────────────────────────────────────────────────────────────── */

/* Lets players act and hear until the deadline at most; true when we are asked to stop. */
static bool turn(struct matchmaker *m, int64_t deadline_ms)
{
    int n = MATCH_FDS * m->crowd.n;
    int64_t due_ms = match_crowd_act(&m->crowd);
    int64_t left_ms = (due_ms < deadline_ms ? due_ms : deadline_ms) - clock_monotonic_ms();
    left_ms = left_ms < 0 ? 0 : left_ms < 1000 ? left_ms : 1000;
    match_crowd_fds(&m->crowd, m->fds);
    m->fds[n] = (struct pollfd){.fd = m->r->stop_fd, .events = POLLIN};
    if (poll(m->fds, (nfds_t)n + 1, (int)left_ms) > 0)
        match_crowd_heard(&m->crowd, m->fds);
    else
        m->fds[n].revents = 0;
    return m->fds[n].revents != 0;
}

static void ask_when_due(struct matchmaker *m)
{
    if (clock_monotonic_ms() < m->ask_due_ms)
        return;
    (void)ask_about_open(m);
    if (set.stats)
        put_stats(m);
    m->ask_due_ms = clock_monotonic_ms() + ASK_MS;
}

static void make_matches(struct matchmaker *m)
{
    int64_t end_ms = set.seconds ? clock_monotonic_ms() + set.seconds * 1000 : INT64_MAX;
    m->post_due_ms = clock_monotonic_ms();
    for (;;) {
        int64_t now_ms = clock_monotonic_ms();
        if (now_ms >= end_ms)
            return;
        if (now_ms >= m->post_due_ms) {
            make_match(m);
            m->post_due_ms = now_ms + set.every_ms;
        }
        ask_when_due(m);
        int64_t due_ms = m->post_due_ms < m->ask_due_ms ? m->post_due_ms : m->ask_due_ms;
        if (turn(m, due_ms < end_ms ? due_ms : end_ms))
            return;
    }
}

/* Everybody comes back and hears what he is owed; then Muster is asked about every lobby. */
static void settle(struct matchmaker *m)
{
    int64_t end_ms = clock_monotonic_ms() + set.settle_s * 1000;
    say(NULL, "no more matches; waiting for those that are loading");
    match_crowd_gather(&m->crowd);
    do {
        stop_heard(m->r->stop_fd); /* whoever asks twice waits for the same thing */
        ask_when_due(m);
        (void)turn(m, m->ask_due_ms);
    } while (clock_monotonic_ms() < end_ms &&
             (ledger_count(&m->ledger, LEDGER_LOADING) > 0 || !match_crowd_is_there(&m->crowd)));
    (void)ask_about_open(m); /* what it says of them their players have read in a moment */
    int64_t quiet_ms = clock_monotonic_ms() + QUIET_MS;
    while (clock_monotonic_ms() < quiet_ms)
        (void)turn(m, quiet_ms);
    for (size_t i = 0; i < m->ledger.n; i++)
        (void)ask_about(m, m->ledger.lobbies[i]);
}

/* ── the verb ──────────────────────────────────────────────────────────────────────────────── */

static int gather(struct matchmaker *m)
{
    char token[CHAT_PLAYER_TOKEN_MAX];
    for (int64_t i = 0; i < set.players; i++) {
        int32_t account = (int32_t)(set.first + i);
        enum client_result result = chat_player_token(m->r->client, account, token, &m->r->answer);
        if (result == CLIENT_STOPPED)
            return EXIT_STOPPED;
        if (result != CLIENT_DONE) {
            remote_complain(m->r);
            return result == CLIENT_REFUSED ? EXIT_REFUSED : EXIT_UNREACHABLE;
        }
        match_crowd_add(&m->crowd, account, token);
    }
    m->fds = xcalloc((size_t)(MATCH_FDS * m->crowd.n) + 1, sizeof(*m->fds));
    return EXIT_DONE;
}

int matchmaker_run(int argc, char **argv)
{
    static struct matchmaker m; /* large */
    struct remote r;
    char why[NODES_WHY_MAX];
    int code = remote_open(&r, argc, argv, NULL, matchmaker_options, NULL, true);
    if (code != EXIT_DONE)
        return code;
    r.quiet = true;
    m = (struct matchmaker){.r = &r,
                            .crowd = {.nodes.wait_max_ms = WAIT_MAX_MS,
                                      .enter = set.enter,
                                      .ledger = &m.ledger,
                                      .luck = (uint64_t)clock_wall_ms(),
                                      .quit_ms = QUIT_MS,
                                      .say = say}};
    if (nodes_read_addresses(&m.crowd.nodes, set.client, why) != 0) {
        (void)args_refuse(argv[0], "--client takes %s", why);
        remote_close(&r);
        return EXIT_USAGE;
    }
    code = gather(&m);
    if (code == EXIT_DONE) {
        make_matches(&m);
        settle(&m);
        code = summarize(&m);
    }
    match_crowd_done(&m.crowd);
    ledger_done(&m.ledger);
    free(m.fds);
    remote_close(&r);
    return code == EXIT_STOPPED ? EXIT_DONE : code;
}
