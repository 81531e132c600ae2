/* `muster room create`, `muster room join`: a seat in a room, asked for as a player would. With an
 * administrator's token a token for the player is made first. */
#include "base/clock.h"
#include "cli/room_path.h"
#include "cli/show.h"
#include "cli/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    ANSWER_S = 3600, /* Muster ends the request before; ctrl-c does too */
    LOOK_MS = 500,
};

#define ACCOUNT "cli"

static struct {
    const char *what;
    const char *version;
    const char *account;
    bool watch;
} set;

#define ROOM_OPTIONS                                                                               \
    {.name = "--version",                                                                          \
     .kind = ARG_TEXT,                                                                             \
     .into = &set.version,                                                                         \
     .value = "TEXT",                                                                              \
     .help = "the version of the game (the newest that is enabled)"},                              \
        {.name = "--account",                                                                      \
         .kind = ARG_TEXT,                                                                         \
         .into = &set.account,                                                                     \
         .value = "TEXT",                                                                          \
         .help = "who plays: a token for him is made (" ACCOUNT ", with the token of the data "    \
                 "folder; else whose --token is)"},                                                \
    {                                                                                              \
        .name = "--watch", .kind = ARG_FLAG, .into = &set.watch, .letter = 'w',                    \
        .help = "say what is waited for meanwhile"                                                 \
    }

const struct arg room_create_options[] = {
    {.name = "FLEET", .kind = ARG_WORD, .into = &set.what},
    ROOM_OPTIONS,
    {0},
};

const struct arg room_join_options[] = {
    {.name = "FLEET", .kind = ARG_WORD, .into = &set.what},
    ROOM_OPTIONS,
    {0},
};

/* What is asked for. */
struct wish {
    struct remote *r;
    struct ask *ask;
    struct room_path path;

    /* Saying what is waited for. */
    int64_t began_ms;
    int64_t next_look_ms;
    struct buf said; /* the line before */
    bool progress;   /* the line is written over */
};

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* ── who asks ──────────────────────────────────────────────────────────────────────────────── */

/* A token for the player, when we may make one and are not he; *ret stays NULL otherwise. */
static int open_player(struct wish *w, struct client **ret)
{
    if (!set.account && !client_is_local_admin(w->r->client))
        return EXIT_DONE;
    return remote_become(w->r, set.account ? set.account : ACCOUNT, "game", ret);
}

/* ── waiting ───────────────────────────────────────────────────────────────────────────────── */

/* "room 12 is starting on host-1 in EU"; what we may not see is not said. */
static void describe(struct wish *w, struct buf *line)
{
    struct remote look = {.verb = w->r->verb, .client = w->r->client, .quiet = true};
    struct ask ask;
    ask_init(&ask, "list_rooms", NULL);
    if (w->path.fleet[0])
        ask_set(&ask, "fleet", w->path.fleet);
    ask_set(&ask, "state", "starting");
    ask_set(&ask, "order", "newest");
    ask_set_number(&ask, "limit", 1);
    int code = remote_ask(&look, &ask);
    const struct json *rooms = json_member(look.answer.json, "items");
    if (code == EXIT_DONE && json_length(rooms) > 0) {
        const struct json *room = json_item(rooms, 0);
        term_put(line, "room ");
        term_put_text(line, json_get_text(json_member(room, "id")));
        term_put(line, " is starting on ");
        term_put_text(line, json_get_text(json_member(room, "host_name")));
        term_put(line, " in ");
        term_put_text(line, json_get_text(json_member(room, "region")));
    } else {
        term_put(line, "waiting for a seat");
    }
    client_answer_done(&look.answer);
}

static bool same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* Called by the client while it waits. */
static void on_wait(void *user)
{
    struct wish *w = user;
    struct buf line = {0};
    char lasted[WHEN_MAX];
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms < w->next_look_ms)
        return;
    w->next_look_ms = now_ms + LOOK_MS;
    describe(w, &line);
    if (w->progress || !same(&line, &w->said)) {
        struct buf out = {0};
        term_put(&out, w->progress ? "\r\033[K" : "");
        buf_append(&out, line.data, line.len);
        if (w->progress)
            term_printf(&out, ", %s", when_lasted((now_ms - w->began_ms) / 1000, lasted));
        else
            term_put(&out, "\n");
        (void)term_flush(&out, STDERR_FILENO);
        buf_done(&out);
    }
    buf_done(&w->said);
    w->said = line;
}

static int ask_for_seat(struct wish *w, struct client *player)
{
    struct term errors;
    struct client *client = player ? player : w->r->client;
    term_look(&errors, STDERR_FILENO, true);
    w->progress = errors.is_terminal;
    w->began_ms = clock_monotonic_ms();
    w->next_look_ms = w->began_ms + LOOK_MS;
    /* Two clients: one of them may look while the other waits. */
    if (set.watch && player)
        client_on_wait(client, on_wait, w);
    int code = remote_ask_by(w->r, client, w->ask, ANSWER_S);
    if (w->said.len > 0 && w->progress)
        (void)!write(STDERR_FILENO, "\r\033[K", 4);
    buf_done(&w->said);
    return code;
}

/* ── the answer ────────────────────────────────────────────────────────────────────────────── */

static void put_line(struct remote *r, const char *name, const char *path)
{
    term_begin(&r->out, &r->term, STYLE_DIM);
    term_printf(&r->out, "%-8s", name);
    term_end(&r->out, &r->term, STYLE_DIM);
    term_put(&r->out, "  ");
    show_value(&r->out, show_at(r->answer.json, path), SHOW_TEXT, 0);
    term_put(&r->out, "\n");
}

static void print_seat(struct remote *r)
{
    if (remote_output() == OUTPUT_JSON) {
        show_json(&r->out, r->answer.json);
        term_put(&r->out, "\n");
        (void)remote_flush(r);
        return;
    }
    bool several = json_length(show_at(r->answer.json, "location.ports")) > 1;
    put_line(r, "room", "id");
    put_line(r, "seat", "slot");
    put_line(r, "host", "location.host");
    put_line(r, several ? "ports" : "port", "location.ports");
    put_line(r, "key", "key");
    put_line(r, "settings", "settings");
    (void)remote_flush(r);
    fprintf(stderr, "The seat is given back unless the key is used soon.\n");
}

static int play(struct wish *w)
{
    struct client *player = NULL;
    int code = open_player(w, &player);
    if (code == EXIT_DONE)
        code = ask_for_seat(w, player);
    if (code == EXIT_DONE)
        print_seat(w->r);
    client_close(player);
    return code == EXIT_STOPPED ? EXIT_REFUSED : code;
}

/* ── the verbs ─────────────────────────────────────────────────────────────────────────────── */

static int open_room_verb(struct remote *r, int argc, char **argv, struct ask *ask,
                          const struct arg *options)
{
    int code = remote_open(r, argc, argv, ask, options, remote_output_options, true);
    if (code == EXIT_DONE && !set.what) {
        (void)args_refuse(argv[0], "needs a FLEET");
        remote_close(r);
        return EXIT_USAGE;
    }
    return code;
}

static int ask_in_fleet(struct wish *w)
{
    int code = room_path_find(w->r, set.what, set.version, &w->path);
    if (code != EXIT_DONE)
        return code;
    room_path_set(&w->path, w->ask);
    return play(w);
}

int room_create_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "create", NULL);
    int code = open_room_verb(&r, argc, argv, &ask, room_create_options);
    if (code != EXIT_DONE)
        return code;
    code = ask_in_fleet(&(struct wish){.r = &r, .ask = &ask});
    remote_close(&r);
    return code;
}

/* What is given beside a room's number would not be looked at. */
static bool check_enter(const struct ask *join)
{
    static const char *const of_choice[] = {"settings",       "create_settings", "auto_create",
                                            "my_region_only", "region",          "latencies"};
    for (size_t i = 0; i < sizeof(of_choice) / sizeof(of_choice[0]); i++) {
        if (ask_text(join, of_choice[i]))
            return args_refuse("room join",
                               "%s is for a room that is chosen, and %s is one already",
                               of_choice[i], set.what);
    }
    return true;
}

static int enter(struct remote *r, const struct ask *join)
{
    struct ask ask;
    struct wish w = {.r = r, .ask = &ask};
    if (!check_enter(join))
        return EXIT_USAGE;
    int code = room_path_of_room(r, set.what, &w.path);
    if (code != EXIT_DONE)
        return code;
    ask_init(&ask, "enter", NULL);
    ask_set(&ask, "game", w.path.game);
    ask_set(&ask, "room", set.what);
    ask_set(&ask, "info", ask_text(join, "info"));
    return play(&w);
}

int room_join_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "join", NULL);
    int code = open_room_verb(&r, argc, argv, &ask, room_join_options);
    if (code != EXIT_DONE)
        return code;
    code =
        is_number(set.what) ? enter(&r, &ask) : ask_in_fleet(&(struct wish){.r = &r, .ask = &ask});
    remote_close(&r);
    return code;
}
