/* `muster player-client`: a player's game client without the game. It connects to the client port,
 * tells what it hears, says that it has loaded, or never does, or leaves. */
#include "base/clock.h"
#include "cli/args.h"
#include "cli/chat_player.h"
#include "cli/cli.h"
#include "cli/screen.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "net/nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPEN_MS = 5000,
    OPEN_ONE_OF_MS = 2000, /* … where another node could be tried meanwhile */
    AGAIN_MS = 1000,
    SILENCE_MS = 10 * 1000, /* of one of several nodes */
    LOST_MS = 100,          /* before the next of several; it may be ourselves who are not wanted */
    PATIENT_MS = 30 * 1000, /* without --stay, while the leader of several nodes changes */
    NEVER_MS = -1,
    STATUS_NO_TOKEN = 401,
};

struct settings {
    int64_t account;
    const char *client;
    const char *token;
    const char *http;
    const char *data;
    struct chat_tls_wish tls;
    int64_t load_after_ms;
    int64_t leave_after_ms;
    bool never_load;
    bool stay;
    bool json;
};

struct run {
    struct settings set;
    struct nodes nodes; /* client ports */
    char token[CHAT_PLAYER_TOKEN_MAX];
    struct chat_player player;
    int stop;
    int32_t lobby;       /* the one it loads in; 0 = none */
    int64_t load_due_ms; /* INT64_MAX = not at all; likewise the next */
    int64_t leave_due_ms;
    char error[256];     /* what Muster said before it hung up; "" = nothing */
    bool turned_away;    /* by a standby */
    bool hopes;          /* somebody was there, so it is worth waiting … */
    int64_t patient_ms;  /* … until then */
    int64_t again_in_ms; /* after a connection that was not made, or lost */
    bool over;
    int code;
};

/* ── what it says ──────────────────────────────────────────────────────────────────────────── */

/* One line at once: people and tests read along. The writer's object is open; its text is for
 * --json, the other for people. */
struct line {
    struct buf text;
    struct buf json;
    struct json_writer w;
};

static struct line *line_begin(struct line *l, const struct run *r, const char *event)
{
    *l = (struct line){0};
    l->w.out = &l->json;
    json_open_object(&l->w);
    json_key_text(&l->w, "event", str_of(event));
    json_key_int(&l->w, "account", r->set.account);
    term_printf(&l->text, "player %" PRId64 ": ", r->set.account);
    return l;
}

static void line_end(struct line *l, const struct run *r)
{
    struct buf *out = r->set.json ? &l->json : &l->text;
    json_close_object(&l->w);
    term_put(out, "\n");
    (void)term_flush(out, STDOUT_FILENO);
    buf_done(&l->text);
    buf_done(&l->json);
}

static void say_reason(const struct run *r, const char *event, const char *words, struct str reason)
{
    struct line l;
    line_begin(&l, r, event);
    json_key_text(&l.w, "reason", reason);
    term_put(&l.text, words);
    term_put_text(&l.text, reason);
    line_end(&l, r);
}

static void say(const struct run *r, const char *event, const char *words)
{
    struct line l;
    line_begin(&l, r, event);
    term_put(&l.text, words);
    line_end(&l, r);
}

static void put_team(struct line *l, const char *name, struct chat_list team)
{
    struct cursor c = cursor_of(team.data, team.len);
    json_open_array(&l->w);
    term_printf(&l->text, "; %s:", name);
    for (uint32_t i = 0; i < team.n; i++) {
        struct chat_player_entry e;
        chat_decode_player(&c, &e);
        if (cursor_failed(&c))
            break;
        json_open_object(&l->w);
        json_key_int(&l->w, "account", e.account);
        json_key_text(&l->w, "name", e.name);
        json_key_int(&l->w, "slot", e.slot);
        json_close_object(&l->w);
        term_put(&l->text, i ? ", " : " ");
        term_put_text(&l->text, e.name);
        term_printf(&l->text, "%s(%" PRId32 ")", e.name.len ? " " : "", e.account);
    }
    if (team.n == 0)
        term_put(&l->text, " nobody");
    json_close_array(&l->w);
}

static void say_lobby(const struct run *r, const struct chat_cl_match_lobby_created *m)
{
    struct line l;
    line_begin(&l, r, "lobby");
    json_key_int(&l.w, "lobby", m->lobby);
    json_key_int(&l.w, "type", m->game_type);
    json_key_int(&l.w, "mode", m->game_mode);
    json_key_text(&l.w, "map", m->map);
    term_printf(&l.text, "lobby %" PRId32 ", type %d, mode %d%s", m->lobby, m->game_type,
                m->game_mode, m->map.len ? ", map " : "");
    term_put_text(&l.text, m->map);
    json_key(&l.w, "teams");
    json_open_array(&l.w);
    put_team(&l, "team 1", m->team1);
    put_team(&l, "team 2", m->team2);
    json_close_array(&l.w);
    line_end(&l, r);
}

static void say_loading(const struct run *r, int32_t lobby, int32_t account, bool loaded)
{
    struct line l;
    bool own = account == r->set.account;
    line_begin(&l, r, own ? "loaded" : "loading");
    json_key_int(&l.w, "lobby", lobby);
    json_key_int(&l.w, "player", account);
    json_key_bool(&l.w, "loaded", loaded);
    if (own)
        term_put(&l.text, "has loaded");
    else
        term_printf(&l.text, "player %" PRId32 " %s", account,
                    loaded ? "has loaded" : "is loading again");
    line_end(&l, r);
}

static void say_start(const struct run *r, const struct chat_cl_match_start *m)
{
    struct line l;
    line_begin(&l, r, "start");
    json_key_int(&l.w, "lobby", m->lobby);
    json_key_text(&l.w, "host", m->ip);
    json_key_int(&l.w, "port", m->port);
    json_key_text(&l.w, "match_token", m->match_token);
    term_printf(&l.text, "match %" PRId32 " starts at ", m->lobby);
    term_put_text(&l.text, m->ip);
    term_printf(&l.text, ":%" PRId32 ", token ", m->port);
    term_put_text(&l.text, m->match_token);
    line_end(&l, r);
}

static void say_aborted(const struct run *r, const struct chat_cl_match_aborted *m)
{
    struct line l;
    line_begin(&l, r, "aborted");
    json_key_int(&l.w, "lobby", m->lobby);
    json_key_text(&l.w, "reason", m->reason);
    json_key_bool(&l.w, "requeued", m->requeued);
    term_printf(&l.text, "match %" PRId32 " aborted: ", m->lobby);
    term_put_text(&l.text, m->reason);
    term_put(&l.text, m->requeued ? "; queued again" : "; not queued");
    line_end(&l, r);
}

/* ── what it does ──────────────────────────────────────────────────────────────────────────── */

static void end(struct run *r, int code)
{
    r->over = true;
    r->code = code;
}

static void lobby_is_over(struct run *r, int code)
{
    r->lobby = 0;
    r->load_due_ms = INT64_MAX;
    r->leave_due_ms = INT64_MAX;
    if (!r->set.stay)
        end(r, code);
}

static void enter_lobby(struct run *r, int32_t lobby)
{
    int64_t now_ms = clock_monotonic_ms();
    r->lobby = lobby;
    r->load_due_ms = r->set.never_load ? INT64_MAX : now_ms + r->set.load_after_ms;
    r->leave_due_ms =
        r->set.leave_after_ms == NEVER_MS ? INT64_MAX : now_ms + r->set.leave_after_ms;
}

static void on_welcome(struct run *r, const struct chat_cl_connect_response *m)
{
    struct str leader;
    if (m->ok) {
        nodes_succeed(&r->nodes);
        r->hopes = true;
        r->patient_ms = INT64_MAX;
        say(r, "connected", "connected");
        return;
    }
    if (nodes_is_standby(m->error, &leader)) {
        r->turned_away = r->hopes = true;
        r->again_in_ms =
            nodes_follow_sentence(&r->nodes, m->error) ? 0 : nodes_fail(&r->nodes, true);
        say_reason(r, "standby", "", m->error);
        return;
    }
    say_reason(r, "refused", "Muster refuses: ", m->error);
    end(r, EXIT_REFUSED);
}

static void hear(struct run *r, const struct chat_message *m)
{
    switch (m->kind) {
    case CHAT_CL_CONNECT_RESPONSE:
        on_welcome(r, &m->cl_connect_response);
        break;
    case CHAT_CL_MATCH_LOBBY_CREATED:
        say_lobby(r, &m->cl_match_lobby_created);
        enter_lobby(r, m->cl_match_lobby_created.lobby);
        break;
    case CHAT_CL_PLAYER_LOADING_STATUS:
        say_loading(r, m->cl_player_loading_status.lobby, m->cl_player_loading_status.account,
                    m->cl_player_loading_status.loaded);
        break;
    case CHAT_CL_MATCH_START:
        say_start(r, &m->cl_match_start);
        lobby_is_over(r, EXIT_DONE);
        break;
    case CHAT_CL_MATCH_ABORTED:
        say_aborted(r, &m->cl_match_aborted);
        lobby_is_over(r, EXIT_REFUSED);
        break;
    case CHAT_ERROR:
        (void)str_copy(r->error, sizeof(r->error), m->error.message);
        break;
    default:
        break;
    }
}

/* What is due by the clock. */
static void act(struct run *r)
{
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms >= r->leave_due_ms) {
        say(r, "left", "leaves");
        end(r, EXIT_DONE);
    } else if (now_ms >= r->load_due_ms) {
        r->load_due_ms = INT64_MAX;
        if (chat_player_load(&r->player, r->lobby, true))
            say_loading(r, r->lobby, r->player.account, true);
    }
}

/* Muster hung up. Who comes back because he was replaced would replace in turn, for ever. */
static void on_lost(struct run *r)
{
    if (r->turned_away)
        return;
    bool told = r->error[0] != '\0';
    bool replaced = strcmp(r->error, "Replaced by a new connection") == 0;
    const char *why = told ? r->error : r->player.link.error;
    say_reason(r, told ? "closed" : "lost",
               told ? "Muster hung up: " : "connection lost: ", str_of(why));
    bool goes_on = r->set.stay || nodes_are_several(&r->nodes);
    if (!goes_on || replaced)
        end(r, replaced ? EXIT_REFUSED : EXIT_UNREACHABLE);
    r->error[0] = '\0';
    int64_t wait_ms = nodes_fail(&r->nodes, false); /* the others first */
    r->again_in_ms = !nodes_are_several(&r->nodes) ? AGAIN_MS : wait_ms > 0 ? wait_ms : LOST_MS;
    if (r->patient_ms == INT64_MAX)
        r->patient_ms = clock_monotonic_ms() + PATIENT_MS;
}

static void converse(struct run *r)
{
    while (!r->over) {
        struct chat_message m;
        int64_t due_ms = r->load_due_ms < r->leave_due_ms ? r->load_due_ms : r->leave_due_ms;
        switch (chat_link_next(&r->player.link, r->stop, due_ms, &m)) {
        case LINK_MESSAGE:
            hear(r, &m);
            break;
        case LINK_TIMEOUT:
            act(r);
            break;
        case LINK_STOPPED:
            end(r, EXIT_DONE);
            break;
        case LINK_BROKEN:
            on_lost(r);
            return;
        }
    }
}

/* Nobody there. Another node is tried at once; after all of them it is waited where somebody was
 * there before, or is to be waited for whatever comes. */
static void on_unreachable(struct run *r, const char *address, const char *why)
{
    r->again_in_ms = nodes_fail(&r->nodes, false);
    if (r->set.stay || r->hopes)
        say_reason(r, "unreachable", "cannot reach Muster: ", str_of(why));
    if (r->again_in_ms == 0)
        return;
    if (r->set.stay)
        r->again_in_ms = nodes_are_several(&r->nodes) ? r->again_in_ms : AGAIN_MS;
    if (r->set.stay || (r->hopes && clock_monotonic_ms() < r->patient_ms))
        return;
    fprintf(stderr,
            r->player.link.reached ? "muster player-client: %s: %s\n"
                                   : "muster player-client: cannot reach Muster at %s: %s; "
                                     "is 'muster serve' running?\n",
            address, why);
    end(r, EXIT_UNREACHABLE);
}

/* True when he may go on without --stay although nobody leads. */
static bool is_patient(const struct run *r)
{
    return r->set.stay || !r->turned_away || clock_monotonic_ms() < r->patient_ms;
}

static void connect_once(struct run *r)
{
    char address[NODES_TEXT_MAX];
    int open_ms = nodes_are_several(&r->nodes) ? OPEN_ONE_OF_MS : OPEN_MS;
    memcpy(address, r->nodes.now, sizeof(address));
    const char *why = chat_player_open(&r->player, (int32_t)r->set.account, r->token, address,
                                       &r->set.tls, open_ms);
    r->load_due_ms = INT64_MAX; /* Muster tells it again which lobby it is in */
    r->leave_due_ms = INT64_MAX;
    r->turned_away = false;
    if (why) {
        on_unreachable(r, address, why);
        return;
    }
    if (nodes_are_several(&r->nodes))
        chat_link_watch(&r->player.link, SILENCE_MS);
    converse(r);
    chat_player_close(&r->player);
    if (!is_patient(r))
        end(r, EXIT_REFUSED); /* it was said that nobody leads */
}

static int run(struct run *r)
{
    r->stop = stop_open();
    r->patient_ms = clock_monotonic_ms() + PATIENT_MS;
    connect_once(r);
    while (!r->over) {
        if (screen_wait(&r->stop, 1, clock_monotonic_ms() + r->again_in_ms) == 0)
            end(r, EXIT_DONE);
        else
            connect_once(r);
    }
    close(r->stop);
    return r->code;
}

/* ── the verb ──────────────────────────────────────────────────────────────────────────────── */

static struct settings set = {
    .client = "127.0.0.1:11031", .load_after_ms = 1000, .leave_after_ms = NEVER_MS};

const struct arg player_client_options[] = {
    {.name = "--account",
     .kind = ARG_NUMBER,
     .into = &set.account,
     .min = 1,
     .max = INT32_MAX,
     .value = "N",
     .help = "who it is"},
    {.name = "--client",
     .kind = ARG_TEXT,
     .into = &set.client,
     .value = "HOST:PORT",
     .help = "Muster's client port (127.0.0.1:11031); several nodes with commas between them"},
    {.name = "--load-after",
     .kind = ARG_NUMBER,
     .into = &set.load_after_ms,
     .min = 0,
     .max = 3600000,
     .value = "MS",
     .help = "between hearing of a lobby and having loaded (1000)"},
    {.name = "--never-load",
     .kind = ARG_FLAG,
     .into = &set.never_load,
     .help = "it never says that it has loaded"},
    {.name = "--leave-after",
     .kind = ARG_NUMBER,
     .into = &set.leave_after_ms,
     .min = 0,
     .max = 3600000,
     .value = "MS",
     .help = "leaves so long after it heard of a lobby"},
    {.name = "--stay",
     .kind = ARG_FLAG,
     .into = &set.stay,
     .help = "goes on after a start, an abort or a lost connection, until ctrl-c"},
    {.name = "--json", .kind = ARG_FLAG, .into = &set.json, .help = "an object of JSON per line"},
    {.name = "Access token", .kind = ARG_TITLE},
    {.name = "--token",
     .kind = ARG_TEXT,
     .into = &set.token,
     .value = "T",
     .help = "the player's; better in the environment variable MUSTER_PLAYER_TOKEN: others see "
             "options in ps. Without one, Muster is asked for one:"},
    {.name = "--http",
     .kind = ARG_TEXT,
     .into = &set.http,
     .value = "URL",
     .help = "there (MUSTER_URL, or " CLIENT_URL "), with the token in MUSTER_TOKEN or in the data "
             "folder, which must be an administrator's"},
    {.name = "--data",
     .kind = ARG_TEXT,
     .into = &set.data,
     .value = "DIR",
     .help = "that folder (./data or " CLIENT_SERVICE_DATA ", of a local Muster)"},
    CHAT_TLS_ARGS(&set.tls),
    {0},
};

static bool parse(int argc, char **argv, const struct settings *s, struct nodes *nodes)
{
    char why[NODES_WHY_MAX];
    if (!args_parse(argc, argv, player_client_options) || !chat_tls_check(argv[0], &s->tls))
        return false;
    if (s->account == 0)
        return args_refuse(argv[0], "--account is missing");
    nodes->wait_max_ms = AGAIN_MS;
    if (nodes_read_addresses(nodes, s->client, why) != 0)
        return args_refuse(argv[0], "--client takes %s", why);
    return true;
}

static int ask_for_token(struct run *r)
{
    char why[CLIENT_WHY_MAX];
    const struct client_settings settings = {.url = r->set.http,
                                             .data = r->set.data,
                                             .tls_ca = r->set.tls.ca,
                                             .url_option = "--http",
                                             .token_option = "MUSTER_TOKEN",
                                             .stop_fd = -1};
    struct client *client = client_open(&settings, why);
    struct client_answer answer = {0};
    if (!client) {
        (void)args_refuse("player-client", "%s", why);
        return EXIT_USAGE;
    }
    enum client_result result =
        chat_player_token(client, (int32_t)r->set.account, r->token, &answer);
    bool nameless = answer.status == STATUS_NO_TOKEN;
    if (result != CLIENT_DONE)
        fprintf(stderr, "muster player-client: no access token: %s%s%s\n", answer.why,
                nameless ? " " : "", nameless ? client_token_hint(client) : "");
    client_answer_done(&answer);
    client_close(client);
    return result == CLIENT_DONE      ? EXIT_DONE
           : result == CLIENT_REFUSED ? EXIT_REFUSED
                                      : EXIT_UNREACHABLE;
}

static int get_token(struct run *r)
{
    if (!r->set.token)
        r->set.token = getenv("MUSTER_PLAYER_TOKEN");
    if (!r->set.token)
        return ask_for_token(r);
    if (str_copy(r->token, sizeof(r->token), str_of(r->set.token)))
        return EXIT_DONE;
    (void)args_refuse("player-client", "that token is too long to be one");
    return EXIT_USAGE;
}

int player_client_run(int argc, char **argv)
{
    static struct run r = {.player.link.fd = -1};
    if (!parse(argc, argv, &set, &r.nodes))
        return EXIT_USAGE;
    r.set = set;
    int code = get_token(&r);
    if (code == EXIT_DONE)
        code = run(&r);
    explicit_bzero(r.token, sizeof(r.token));
    return code;
}
