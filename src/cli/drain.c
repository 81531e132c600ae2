/* `muster drain SERVER` and `muster host disable HOST`: nothing new goes there, what is there goes
 * on to its end, and whoever waits is shown how much is left. */
#include "base/clock.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/screen.h"
#include "cli/show.h"
#include "cli/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LOOK_MS = 500,
    AWAY_S = 30,
    STATUS_UNAVAILABLE = 503,
    TIMEOUT_MAX_S = 30 * 24 * 3600,
    PLAYERS_PAGE = 1000,
    TRIES = 3,
};

static struct {
    bool no_wait;
    bool wait;
    int64_t timeout_s;
} set;

#define TIMEOUT_ROW                                                                                \
    {                                                                                              \
        .name = "--timeout", .kind = ARG_SECONDS, .into = &set.timeout_s, .min = 1,                \
        .max = TIMEOUT_MAX_S, .value = "TIME",                                                     \
        .help = "wait at most that many seconds (until it is empty)"                               \
    }

const struct arg drain_options[] = {
    {.name = "--no-wait",
     .kind = ARG_FLAG,
     .into = &set.no_wait,
     .help = "return at once; the server drains by itself"},
    TIMEOUT_ROW,
    {0},
};

const struct arg host_disable_options[] = {
    {.name = "--wait",
     .kind = ARG_FLAG,
     .into = &set.wait,
     .help = "until no room is there any more, and show how many are left"},
    TIMEOUT_ROW,
    {0},
};

/* What can be emptied. */
struct drainable {
    const char *noun;
    const char *look;    /* the operation that shows it */
    const char *key;     /* of the answer: how many are left … */
    const char *one;     /* … of what */
    const char *several; /* the same */
    const char *list;    /* the operation that lists them … */
    const char *filter;  /* … of that noun */
    const char *players; /* of one of them */
    const char *doing;
    const char *done;
    const char *goes_on; /* when nobody waits any more */
    const char *wish;    /* what is stored */
    const char *undo;    /* the verb that takes it back */
};

static const struct drainable a_server = {.noun = "server",
                                          .look = "get_server",
                                          .key = "sessions",
                                          .one = "match",
                                          .several = "matches",
                                          .list = "list_sessions",
                                          .filter = "server",
                                          .players = "player_count",
                                          .doing = "is draining",
                                          .done = "is drained: it holds no match",
                                          .goes_on = "goes on draining",
                                          .wish = "the drain of",
                                          .undo = "undrain"};

static const struct drainable a_host = {.noun = "host",
                                        .look = "get_host",
                                        .key = "rooms",
                                        .one = "room",
                                        .several = "rooms",
                                        .list = "list_rooms",
                                        .filter = "host",
                                        .players = "taken",
                                        .doing = "gets nothing new",
                                        .done = "is empty: no room is there",
                                        .goes_on = "stays disabled",
                                        .wish = "the disabling of",
                                        .undo = "host enable"};

struct drain {
    struct remote *r;
    const struct drainable *what;
    const char *id;
    struct ask look;
    int64_t began_ms;
    int64_t left; /* matches or rooms */
    int64_t players;
    struct progress progress;
};

static void put_answer(struct remote *r)
{
    show_json(&r->out, r->answer.json);
    term_put(&r->out, "\n");
    (void)remote_flush(r);
}

/* ── what is left ──────────────────────────────────────────────────────────────────────────── */

static void take_left(struct drain *d)
{
    d->left = json_get_int(json_member(d->r->answer.json, d->what->key));
}

static bool is_over(const struct json *item)
{
    struct str state = json_get_text(json_member(item, "state"));
    return str_eq(state, STR("ended")) || str_eq(state, STR("cancelling"));
}

/* Players of what is left; of very much only those of the newest. */
static int count_players(struct drain *d, int64_t *ret_listed)
{
    struct ask ask;
    ask_init(&ask, d->what->list, NULL);
    ask_set(&ask, d->what->filter, d->id);
    ask_set(&ask, "order", "newest");
    ask_set_number(&ask, "limit", PLAYERS_PAGE);
    int code = remote_ask(d->r, &ask);
    if (code != EXIT_DONE)
        return code;
    const struct json *items = json_member(d->r->answer.json, "items");
    d->players = *ret_listed = 0;
    for (size_t i = 0; i < json_length(items); i++) {
        const struct json *item = json_item(items, i);
        if (is_over(item))
            continue;
        d->players += json_get_int(json_member(item, d->what->players));
        ++*ret_listed;
    }
    return EXIT_DONE;
}

/* "2 matches left (20 players)" */
static const char *print_left(const struct drain *d, char dst[PROGRESS_MAX])
{
    int n = snprintf(dst, PROGRESS_MAX, "%" PRId64 " %s left", d->left,
                     d->left == 1 ? d->what->one : d->what->several);
    if (d->left > 0 && d->players > 0)
        snprintf(dst + n, PROGRESS_MAX - (size_t)n, " (%" PRId64 " player%s)", d->players,
                 d->players == 1 ? "" : "s");
    return dst;
}

/* "server 3 is draining: 2 matches left (20 players), 41 s" */
static void show_left(struct drain *d)
{
    char left[PROGRESS_MAX];
    char text[PROGRESS_MAX];
    char lasted[WHEN_MAX];
    char more[WHEN_MAX + 2];
    if (remote_output() == OUTPUT_JSON)
        return;
    snprintf(text, sizeof(text), "%s %.20s %s: %.100s", d->what->noun, d->id, d->what->doing,
             print_left(d, left));
    snprintf(more, sizeof(more), ", %s",
             when_lasted((clock_monotonic_ms() - d->began_ms) / 1000, lasted));
    progress_show(&d->progress, text, more);
}

/* ── the end of waiting ────────────────────────────────────────────────────────────────────── */

static int emptied(struct drain *d)
{
    progress_wipe(&d->progress);
    if (remote_output() == OUTPUT_JSON)
        put_answer(d->r);
    else
        term_printf(&d->r->out, "%s %s %s\n", d->what->noun, d->id, d->what->done);
    (void)remote_flush(d->r);
    return EXIT_DONE;
}

static int given_up(struct drain *d, const char *why)
{
    char left[PROGRESS_MAX];
    progress_wipe(&d->progress);
    fprintf(stderr, "muster %s: %s with %s; %s %s %s, 'muster %s %s' takes that back\n", d->r->verb,
            why, print_left(d, left), d->what->noun, d->id, d->what->goes_on, d->what->undo, d->id);
    return EXIT_REFUSED;
}

static void say_away(struct drain *d)
{
    progress_wipe(&d->progress);
    fprintf(stderr, "muster %s: Muster at %s does not answer; asking again for %d s\n", d->r->verb,
            client_url(d->r->client), AWAY_S);
}

static int stayed_away(struct drain *d)
{
    fprintf(stderr,
            "muster %s: Muster at %s still does not answer; %s %s %s is stored and goes on when it "
            "runs, 'muster %s %s' takes that back\n",
            d->r->verb, client_url(d->r->client), d->what->wish, d->what->noun, d->id,
            d->what->undo, d->id);
    return EXIT_UNREACHABLE;
}

/* ── waiting ───────────────────────────────────────────────────────────────────────────────── */

/* Not there, or there and about to stop. */
static bool is_away(const struct remote *r, int code)
{
    return code == EXIT_UNREACHABLE || r->answer.status == STATUS_UNAVAILABLE;
}

/* True when it is time to stop. */
static bool pause_until(struct drain *d, int64_t until_ms, int64_t limit_ms)
{
    return screen_wait(&d->r->stop_fd, 1, until_ms < limit_ms ? until_ms : limit_ms) == 0;
}

/* Players first, so that the answer that is kept is that about the server or the host. Something
 * may end between the two, and then they are asked again, so that the numbers are of one moment. */
static int ask_left(struct drain *d)
{
    int code = EXIT_DONE;
    int64_t listed = -1;
    for (int i = 0; i < TRIES && code == EXIT_DONE && listed != d->left; i++) {
        code = count_players(d, &listed);
        if (code == EXIT_DONE)
            code = remote_ask(d->r, &d->look);
        if (code == EXIT_DONE)
            take_left(d);
    }
    return code;
}

/* Muster may be started anew while we wait, so when it is away it is asked again for a while.
 * EXIT_UNREACHABLE when it stays away, which is not said yet; other failures are. */
static int look(struct drain *d, int64_t limit_ms)
{
    int64_t now_ms = clock_monotonic_ms();
    int64_t until_ms = now_ms + AWAY_S * 1000;
    bool said = false;
    int code = ask_left(d);
    for (; is_away(d->r, code); code = ask_left(d)) {
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

static int wait_until_empty(struct drain *d)
{
    int64_t limit_ms = set.timeout_s ? d->began_ms + set.timeout_s * 1000 : INT64_MAX;
    int64_t next_ms = d->began_ms;
    d->r->quiet = true;
    for (;;) {
        int code = d->left > 0 ? look(d, limit_ms) : EXIT_DONE;
        if (code == EXIT_DONE && d->left == 0)
            return emptied(d);
        if (code == EXIT_STOPPED)
            return given_up(d, "interrupted");
        if (code != EXIT_DONE)
            return code == EXIT_UNREACHABLE ? stayed_away(d) : code;
        if (clock_monotonic_ms() >= limit_ms)
            return given_up(d, "stopped waiting");
        show_left(d);
        next_ms += LOOK_MS;
        if (pause_until(d, next_ms, limit_ms))
            return given_up(d, "interrupted");
    }
}

/* The first answer is that of the wish itself. */
static void start(struct drain *d, struct remote *r, const struct drainable *what,
                  const struct ask *ask)
{
    *d = (struct drain){
        .r = r, .what = what, .id = ask_text(ask, "id"), .began_ms = clock_monotonic_ms()};
    progress_init(&d->progress, STDOUT_FILENO);
    take_left(d);
    ask_init(&d->look, what->look, "ID");
    ask_set(&d->look, "id", d->id);
}

/* ── the verbs ─────────────────────────────────────────────────────────────────────────────── */

static void say_drains(struct drain *d)
{
    char left[PROGRESS_MAX];
    term_printf(&d->r->out, "server %s drains: %s\n", d->id, print_left(d, left));
}

static void say_disabled(struct drain *d)
{
    term_printf(&d->r->out, "host %s (", d->id);
    term_put_text(&d->r->out, json_get_text(json_member(d->r->answer.json, "name")));
    term_put(&d->r->out, ") is given no more game servers\n");
}

static int empty(int argc, char **argv, const char *operation, const struct drainable *what,
                 const struct arg *options)
{
    struct remote r;
    struct ask ask;
    struct drain d;
    bool is_host = what == &a_host;
    ask_init(&ask, operation, is_host ? "HOST" : "SERVER");
    int code = remote_open(&r, argc, argv, &ask, options, remote_output_options, true);
    if (code != EXIT_DONE)
        return code;
    code = remote_ask(&r, &ask);
    bool waits = is_host ? set.wait || set.timeout_s : !set.no_wait;
    if (code == EXIT_DONE) {
        start(&d, &r, what, &ask);
        if (waits)
            code = wait_until_empty(&d);
        else if (remote_output() == OUTPUT_JSON)
            put_answer(&r);
        else if (is_host)
            say_disabled(&d);
        else
            say_drains(&d);
        (void)remote_flush(&r);
    }
    remote_close(&r);
    return code == EXIT_STOPPED ? EXIT_REFUSED : code;
}

int drain_run(int argc, char **argv)
{
    return empty(argc, argv, "drain_server", &a_server, drain_options);
}

int host_disable_run(int argc, char **argv)
{
    return empty(argc, argv, "disable_host", &a_host, host_disable_options);
}
