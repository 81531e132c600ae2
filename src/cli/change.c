/* `muster drain`, `undrain`, `end`, `terminate`, `stdin`, `host enable`, `kick`, `version enable`:
 * what changes servers, matches, hosts, seats and versions.
 * Draining waits until the server holds no match any more and shows what is left. */
#include "base/clock.h"
#include "cli/remote.h"
#include "cli/screen.h"
#include "cli/show.h"
#include "cli/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 500, AWAY_S = 30, STATUS_UNAVAILABLE = 503, TIMEOUT_MAX_S = 30 * 24 * 3600 };

static struct {
    bool no_wait;
    int64_t timeout_s;
} set;

const struct arg drain_options[] = {
    {.name = "--no-wait",
     .kind = ARG_FLAG,
     .into = &set.no_wait,
     .help = "return at once; the server drains by itself"},
    {.name = "--timeout",
     .kind = ARG_SECONDS,
     .into = &set.timeout_s,
     .min = 1,
     .max = TIMEOUT_MAX_S,
     .value = "TIME",
     .help = "wait at most that many seconds (until it is empty)"},
    {0},
};

static int64_t sessions_left(const struct remote *r)
{
    return json_get_int(json_member(r->answer.json, "sessions"));
}

/* Prints the answer as JSON when that is wanted. */
static bool print_json(struct remote *r)
{
    if (remote_output() != OUTPUT_JSON)
        return false;
    show_json(&r->out, r->answer.json);
    term_put(&r->out, "\n");
    (void)remote_flush(r);
    return true;
}

/* ── draining ──────────────────────────────────────────────────────────────────────────────── */

struct drain {
    struct remote *r;
    const char *server;
    struct ask look;
    int64_t began_ms;
    int64_t shown; /* sessions last printed; -1 = none yet */
    bool progress; /* a line that is written over */
};

/* "server 3 is draining: 2 matches left, 41 s" */
static void show_left(struct drain *d, int64_t left)
{
    struct remote *r = d->r;
    char lasted[WHEN_MAX];
    if (remote_output() == OUTPUT_JSON || (!d->progress && left == d->shown))
        return;
    if (d->progress)
        term_put(&r->out, "\r\033[K");
    term_printf(&r->out, "server %s is draining: %" PRId64 " match%s left", d->server, left,
                left == 1 ? "" : "es");
    if (d->progress)
        term_printf(&r->out, ", %s",
                    when_lasted((clock_monotonic_ms() - d->began_ms) / 1000, lasted));
    else
        term_put(&r->out, "\n");
    d->shown = left;
    (void)remote_flush(r);
}

static void end_progress(struct drain *d)
{
    if (d->progress)
        term_put(&d->r->out, "\r\033[K");
}

static int drained(struct drain *d)
{
    end_progress(d);
    if (!print_json(d->r))
        term_printf(&d->r->out, "server %s is drained: it holds no match\n", d->server);
    (void)remote_flush(d->r);
    return EXIT_DONE;
}

static int given_up(struct drain *d, int64_t left, const char *why)
{
    end_progress(d);
    (void)remote_flush(d->r);
    fprintf(stderr,
            "muster drain: %s with %" PRId64 " match%s left; server %s goes on draining, "
            "'muster undrain %s' takes that back\n",
            why, left, left == 1 ? "" : "es", d->server, d->server);
    return EXIT_REFUSED;
}

/* Not there, or there and about to stop. */
static bool is_away(const struct remote *r, int code)
{
    return code == EXIT_UNREACHABLE || r->answer.status == STATUS_UNAVAILABLE;
}

static void say_away(struct drain *d)
{
    end_progress(d);
    (void)remote_flush(d->r);
    fprintf(stderr, "muster drain: Muster at %s does not answer; asking again for %d s\n",
            client_url(d->r->client), AWAY_S);
}

static int stayed_away(struct drain *d)
{
    fprintf(stderr,
            "muster drain: Muster at %s still does not answer; the drain of server %s is stored "
            "and goes on when it runs, 'muster undrain %s' takes that back\n",
            client_url(d->r->client), d->server, d->server);
    return EXIT_UNREACHABLE;
}

/* True when it is time to stop. */
static bool pause_until(struct drain *d, int64_t until_ms, int64_t limit_ms)
{
    return screen_wait(&d->r->stop_fd, 1, until_ms < limit_ms ? until_ms : limit_ms) == 0;
}

/* Muster may be started anew while we wait, so when it is away it is asked again for a while.
 * EXIT_UNREACHABLE when it stays away, which is not said yet; other failures are. */
static int look(struct drain *d, int64_t limit_ms)
{
    int64_t now_ms = clock_monotonic_ms();
    int64_t until_ms = now_ms + AWAY_S * 1000;
    bool said = false;
    int code = remote_ask(d->r, &d->look);
    for (; is_away(d->r, code); code = remote_ask(d->r, &d->look)) {
        if (!said)
            say_away(d);
        said = true;
        now_ms = clock_monotonic_ms();
        if (now_ms >= until_ms || now_ms >= limit_ms)
            return EXIT_UNREACHABLE;
        if (pause_until(d, now_ms + LOOK_MS, limit_ms))
            return EXIT_STOPPED;
    }
    if (code != EXIT_DONE && code != EXIT_STOPPED)
        remote_complain(d->r);
    return code;
}

/* The first answer is that of the drain itself. */
static int wait_until_empty(struct drain *d)
{
    int64_t limit_ms = set.timeout_s ? d->began_ms + set.timeout_s * 1000 : INT64_MAX;
    int64_t next_ms = d->began_ms;
    d->r->quiet = true;
    for (;;) {
        int64_t left = sessions_left(d->r);
        if (left == 0)
            return drained(d);
        if (clock_monotonic_ms() >= limit_ms)
            return given_up(d, left, "stopped waiting");
        show_left(d, left);
        next_ms += LOOK_MS;
        int code = pause_until(d, next_ms, limit_ms) ? EXIT_STOPPED : look(d, limit_ms);
        if (code == EXIT_STOPPED)
            return given_up(d, left, "interrupted");
        if (code != EXIT_DONE)
            return code == EXIT_UNREACHABLE ? stayed_away(d) : code;
    }
}

static int drain(struct remote *r, const struct ask *ask)
{
    int code = remote_ask(r, ask);
    if (code != EXIT_DONE)
        return code == EXIT_STOPPED ? EXIT_REFUSED : code;
    struct drain d = {.r = r,
                      .server = ask_text(ask, "id"),
                      .began_ms = clock_monotonic_ms(),
                      .shown = -1,
                      .progress = r->term.is_terminal && remote_output() != OUTPUT_JSON};
    if (set.no_wait) {
        if (!print_json(r)) {
            term_printf(&r->out, "server %s drains: %" PRId64 " match%s left\n", d.server,
                        sessions_left(r), sessions_left(r) == 1 ? "" : "es");
            (void)remote_flush(r);
        }
        return EXIT_DONE;
    }
    ask_init(&d.look, "get_server", "SERVER");
    ask_set(&d.look, "id", d.server);
    return wait_until_empty(&d);
}

int drain_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "drain_server", "SERVER");
    int code = remote_open(&r, argc, argv, &ask, drain_options, remote_output_options, true);
    if (code != EXIT_DONE)
        return code;
    code = drain(&r, &ask);
    remote_close(&r);
    return code;
}

/* ── undraining, ending ────────────────────────────────────────────────────────────────────── */

static void say_undrained(struct remote *r, const char *server)
{
    struct str status = json_get_text(json_member(r->answer.json, "status"));
    term_printf(&r->out, "server %s is ", server);
    term_put_styled(&r->out, &r->term, show_style(status), status);
    term_put(&r->out, "\n");
}

static void say_ended(struct remote *r, const char *session)
{
    const struct json *v = r->answer.json;
    term_printf(&r->out, "session %s is ", session);
    struct str state = json_get_text(json_member(v, "state"));
    term_put_styled(&r->out, &r->term, show_style(state), state);
    term_printf(&r->out, " (lobby %" PRId64 ")\n", json_get_int(json_member(v, "lobby")));
}

static void say_terminated(struct remote *r, const char *server)
{
    struct str status = json_get_text(json_member(r->answer.json, "status"));
    term_printf(&r->out, "server %s is told to end; it is ", server);
    term_put_styled(&r->out, &r->term, show_style(status), status);
    term_put(&r->out, " now\n");
}

static void say_written(struct remote *r, const char *server)
{
    term_printf(&r->out, "server %s has been given the line\n", server);
}

static void say_host(struct remote *r, const char *host)
{
    bool enabled = json_get_bool(json_member(r->answer.json, "enabled"));
    struct str name = json_get_text(json_member(r->answer.json, "name"));
    term_printf(&r->out, "host %s (%.*s) %s\n", host, (int)name.len, name.at,
                enabled ? "may be given game servers" : "is given no more game servers");
}

static void say_kicked(struct remote *r, const char *seat)
{
    term_printf(&r->out, "seat %s is free, and its player is thrown out\n", seat);
}

static void say_version(struct remote *r, const char *version)
{
    bool enabled = json_get_bool(json_member(r->answer.json, "enabled"));
    struct str fleet = json_get_text(json_member(r->answer.json, "fleet"));
    term_printf(&r->out, "version %s of %.*s %s\n", version, (int)fleet.len, fleet.at,
                enabled ? "can be joined" : "cannot be joined any more");
}

/* word: what the number in the path is; NULL = it is about a version of a fleet. */
static int change(int argc, char **argv, const char *operation, const char *word,
                  void (*say)(struct remote *r, const char *id))
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, operation, word);
    if (!word) {
        ask_add_word(&ask, "fleet", "FLEET");
        ask_add_word(&ask, "version", "VERSION");
    }
    if (ask_has(&ask, "line"))
        ask_add_word(&ask, "line", "LINE");
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_output_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_ask(&r, &ask);
    if (code == EXIT_DONE && !print_json(&r)) {
        say(&r, ask_text(&ask, word ? "id" : "version"));
        (void)remote_flush(&r);
    }
    remote_close(&r);
    return code;
}

int undrain_run(int argc, char **argv)
{
    return change(argc, argv, "undrain_server", "SERVER", say_undrained);
}

int end_run(int argc, char **argv)
{
    return change(argc, argv, "end_session", "SESSION", say_ended);
}

int terminate_run(int argc, char **argv)
{
    return change(argc, argv, "terminate_server", "SERVER", say_terminated);
}

int stdin_run(int argc, char **argv)
{
    return change(argc, argv, "server_stdin", "SERVER", say_written);
}

int host_enable_run(int argc, char **argv)
{
    return change(argc, argv, "enable_host", "HOST", say_host);
}

int host_disable_run(int argc, char **argv)
{
    return change(argc, argv, "disable_host", "HOST", say_host);
}

int kick_run(int argc, char **argv)
{
    return change(argc, argv, "kick_seat", "SEAT", say_kicked);
}

int version_enable_run(int argc, char **argv)
{
    return change(argc, argv, "enable_version", NULL, say_version);
}

int version_disable_run(int argc, char **argv)
{
    return change(argc, argv, "disable_version", NULL, say_version);
}
