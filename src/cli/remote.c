#include "cli/remote.h"

#include "base/clock.h"
#include "cli/screen.h"
#include "cli/stop.h"
#include "cli/when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WATCH_MS = 1000, STATUS_NO_TOKEN = 401, SPILL_BYTES = 256 * 1024, BECOME_S = 3600 };

static const char *const output_words[] = {"table", "wide", "json", NULL};

/* One verb runs per process. */
static struct {
    const char *url;
    const char *token;
    const char *data;
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    const char *output;
    bool no_color;
    bool watch;
} set = {.output = "table"};

const struct arg remote_options[] = {
    {.name = "--url",
     .kind = ARG_TEXT,
     .into = &set.url,
     .value = "URL[,...]",
     .help = "Muster's HTTP port (MUSTER_URL, or " CLIENT_URL ")"},
    {.name = "--token",
     .kind = ARG_TEXT,
     .into = &set.token,
     .value = "TOKEN",
     .help = "access token (MUSTER_TOKEN, or admin.token of the data folder)"},
    {.name = "--data",
     .kind = ARG_TEXT,
     .into = &set.data,
     .value = "DIR",
     .help = "that folder (./data or " CLIENT_SERVICE_DATA ", of a local Muster)"},
    {.name = "--tls-ca",
     .kind = ARG_TEXT,
     .into = &set.tls_ca,
     .value = "FILE",
     .help = "who signed the certificate of an https URL"},
    {.name = "--tls-cert",
     .kind = ARG_TEXT,
     .into = &set.tls_cert,
     .value = "FILE",
     .help = "our own certificate, where Muster wants to see one ..."},
    {.name = "--tls-key",
     .kind = ARG_TEXT,
     .into = &set.tls_key,
     .value = "FILE",
     .help = "... and its key"},
    {.name = "--no-color",
     .kind = ARG_FLAG,
     .into = &set.no_color,
     .help = "no colours on a terminal either (NO_COLOR)"},
    {0},
};

#define OUTPUT_ROW                                                                                 \
    {                                                                                              \
        .name = "--output", .kind = ARG_CHOICE, .into = &set.output, .words = output_words,        \
        .letter = 'o', .value = "FORMAT", .help = "how to print"                                   \
    }

const struct arg remote_output_options[] = {OUTPUT_ROW, {0}};

const struct arg remote_list_options[] = {
    OUTPUT_ROW,
    {.name = "--watch",
     .kind = ARG_FLAG,
     .into = &set.watch,
     .letter = 'w',
     .help = "again every second, until ctrl-c"},
    {0},
};

const struct arg remote_live_options[] = {
    OUTPUT_ROW,
    {.name = "--watch",
     .kind = ARG_FLAG,
     .into = &set.watch,
     .letter = 'w',
     .help = "again and again, until ctrl-c: as without it"},
    {0},
};

enum output remote_output(void)
{
    for (int i = 0; output_words[i]; i++) {
        if (strcmp(set.output, output_words[i]) == 0)
            return (enum output)i;
    }
    return OUTPUT_TABLE;
}

static bool parse(int argc, char **argv, struct ask *a, const struct arg *own,
                  const struct arg *shared)
{
    static const struct arg none[] = {{0}};
    const struct arg *const tables[] = {a ? a->table : none, own ? own : none,
                                        shared ? shared : none, remote_options, NULL};
    return args_parse_all(argc, argv, tables) && (!a || ask_check(a, argv[0]));
}

static struct client_settings settings_of(const struct remote *r, const char *token)
{
    return (struct client_settings){.url = set.url,
                                    .token = token,
                                    .data = set.data,
                                    .tls_ca = set.tls_ca,
                                    .tls_cert = set.tls_cert,
                                    .tls_key = set.tls_key,
                                    .stop_fd = r->stop_fd};
}

/* Sets r->host to the number of the host of that name; "" when there is none. */
static int look_up(struct remote *r, const char *name)
{
    struct ask look;
    char cursor[sizeof(r->host)] = "";
    ask_init(&look, "list_hosts", NULL);
    ask_set(&look, "name", name);
    do { /* a page may be empty and lead on */
        ask_set(&look, "cursor", *cursor ? cursor : NULL);
        int code = remote_ask(r, &look);
        if (code != EXIT_DONE)
            return code;
        const struct json *found = json_item(json_member(r->answer.json, "items"), 0);
        (void)str_copy(r->host, sizeof(r->host), json_get_text(json_member(found, "id")));
        (void)str_copy(cursor, sizeof(cursor), json_get_text(json_member(r->answer.json, "next")));
    } while (!r->host[0] && cursor[0]);
    return EXIT_DONE;
}

/* Puts the number of a host where its name was given. */
static int find_host(struct remote *r, struct ask *a)
{
    const char *name = ask_text(a, "id");
    int code = look_up(r, name);
    if (code == EXIT_DONE && !r->host[0]) {
        (void)snprintf(r->answer.why, sizeof(r->answer.why),
                       "There is no host '%s'; 'muster hosts' lists them.", name);
        remote_complain(r);
        code = EXIT_REFUSED;
    }
    if (code == EXIT_DONE)
        ask_set(a, "id", r->host);
    else
        remote_close(r);
    return code;
}

int remote_open(struct remote *r, int argc, char **argv, struct ask *a, const struct arg *own,
                const struct arg *shared, bool stoppable)
{
    char why[CLIENT_WHY_MAX];
    *r = (struct remote){.verb = argv[0], .stop_fd = -1};
    if (!parse(argc, argv, a, own, shared))
        return EXIT_USAGE;
    term_look(&r->term, STDOUT_FILENO, set.no_color);
    if (stoppable || set.watch)
        r->stop_fd = stop_open();
    const struct client_settings settings = settings_of(r, set.token);
    r->client = client_open(&settings, why);
    if (!r->client) {
        (void)args_refuse(r->verb, "%s", why);
        remote_close(r);
        return EXIT_USAGE;
    }
    return a && ask_names_host(a) ? find_host(r, a) : EXIT_DONE;
}

void remote_close(struct remote *r)
{
    client_close(r->client);
    client_answer_done(&r->answer);
    buf_done(&r->out);
    if (r->stop_fd >= 0)
        close(r->stop_fd);
}

void remote_complain(const struct remote *r)
{
    struct buf line = {0};
    term_printf(&line, "muster %s: ", r->verb);
    term_put_text(&line, str_of(r->answer.why));
    if (r->answer.status == STATUS_NO_TOKEN)
        term_printf(&line, " %s", client_token_hint(r->client));
    term_put(&line, "\n");
    (void)term_flush(&line, STDERR_FILENO);
    buf_done(&line);
}

static int outcome(struct remote *r, enum client_result result)
{
    if (result == CLIENT_STOPPED)
        return EXIT_STOPPED;
    if (result != CLIENT_DONE && !r->quiet)
        remote_complain(r);
    return result == CLIENT_DONE      ? EXIT_DONE
           : result == CLIENT_REFUSED ? EXIT_REFUSED
                                      : EXIT_UNREACHABLE;
}

/* A question that waits for something is given that time too. */
static int timeout_of(const struct ask *a)
{
    int64_t wait_s = ask_has(a, "wait") ? ask_number(a, "wait") : 0;
    return CLIENT_TIMEOUT_S + (int)wait_s;
}

/* A repeat writes the line once more, or makes the next leader step down, too. */
static bool is_done_again(const struct operation *o)
{
    return strcmp(o->name, "server_stdin") == 0 || strcmp(o->name, "step_down") == 0;
}

int remote_ask_by(struct remote *r, struct client *client, const struct ask *a, int timeout_s)
{
    struct buf path = {0};
    struct buf body = {0};
    bool changes = operation_changes(a->operation);
    ask_put_path(a, &path);
    buf_append(&path, "", 1);
    if (changes)
        ask_put_body(a, &body);
    enum client_result result = (is_done_again(a->operation) ? client_call_once : client_call)(
        client, a->operation->method, (const char *)path.data, changes ? &body : NULL, timeout_s,
        &r->answer);
    buf_done(&path);
    buf_done(&body);
    return outcome(r, result);
}

int remote_ask(struct remote *r, const struct ask *a)
{
    return remote_ask_by(r, r->client, a, timeout_of(a));
}

int remote_call(struct remote *r, enum http_method method, const char *path, const struct buf *body,
                int timeout_s)
{
    return outcome(r, client_call(r->client, method, path, body, timeout_s, &r->answer));
}

static struct client *open_with(const struct remote *r, struct str token)
{
    char why[CLIENT_WHY_MAX];
    char *copy = xstrdup(token.at);
    const struct client_settings settings = settings_of(r, copy);
    struct client *c = client_open(&settings, why);
    if (!c)
        (void)args_refuse(r->verb, "%s", why);
    explicit_bzero(copy, strlen(copy));
    free(copy);
    return c;
}

int remote_become(struct remote *r, const char *account, const char *scopes, struct client **ret)
{
    struct ask issue;
    ask_init(&issue, "issue_access_token", NULL);
    ask_set(&issue, "account", account);
    ask_set(&issue, "scopes", scopes);
    ask_set_number(&issue, "expires_in_s", BECOME_S);
    int code = remote_ask(r, &issue);
    if (code == EXIT_DONE)
        *ret = open_with(r, json_get_text(json_member(r->answer.json, "token")));
    return code == EXIT_DONE && !*ret ? EXIT_REFUSED : code;
}

bool remote_flush(struct remote *r)
{
    return term_flush(&r->out, STDOUT_FILENO);
}

void remote_spill(struct remote *r)
{
    if (!set.watch && r->out.len > SPILL_BYTES)
        (void)remote_flush(r);
}

/* ── showing ───────────────────────────────────────────────────────────────────────────────── */

/* What is watched, when, and what is wrong now. */
static void put_title(struct remote *r, struct buf *frame, int code)
{
    char now[WHEN_MAX];
    term_begin(frame, &r->term, STYLE_DIM);
    term_printf(frame, "muster %s  %s  %s UTC  ctrl-c ends", r->verb, client_url(r->client),
                when_clock(clock_wall_ms(), now));
    term_end(frame, &r->term, STYLE_DIM);
    term_put(frame, "\n");
    if (code != EXIT_DONE)
        term_put_styled(frame, &r->term, STYLE_BAD, str_of(r->answer.why));
    term_put(frame, "\n");
}

/* True when it is time to stop. */
static bool pause_until(struct remote *r, int64_t deadline_ms)
{
    return screen_wait(&r->stop_fd, 1, deadline_ms) == 0;
}

static int watch_screen(struct remote *r, int (*draw)(struct remote *r, void *user), void *user)
{
    struct buf frame = {0};
    struct buf last = {0};
    int code = draw(r, user);
    if (code != EXIT_DONE)
        return code == EXIT_STOPPED ? EXIT_DONE : code;
    r->quiet = true;
    screen_open(STDOUT_FILENO);
    int64_t next_ms = clock_monotonic_ms();
    bool stop = false;
    while (!stop && code != EXIT_STOPPED) {
        if (code == EXIT_DONE) {
            buf_clear(&last);
            buf_append(&last, r->out.data, r->out.len);
        }
        buf_clear(&frame);
        put_title(r, &frame, code);
        buf_append(&frame, last.data, last.len);
        screen_draw((struct str){(const char *)frame.data, frame.len});
        next_ms += WATCH_MS;
        stop = pause_until(r, next_ms);
        buf_clear(&r->out);
        if (!stop)
            code = draw(r, user);
    }
    screen_close();
    buf_done(&frame);
    buf_done(&last);
    return EXIT_DONE;
}

/* Blocks with a blank line between them; where one is missing, standard error says why, once. */
static int watch_blocks(struct remote *r, int (*draw)(struct remote *r, void *user), void *user)
{
    int64_t next_ms = clock_monotonic_ms();
    int code = draw(r, user);
    if (code != EXIT_DONE)
        return code == EXIT_STOPPED ? EXIT_DONE : code;
    r->quiet = true;
    while (remote_flush(r)) {
        int last = code;
        next_ms += WATCH_MS;
        if (pause_until(r, next_ms))
            break;
        if (remote_output() != OUTPUT_JSON)
            term_put(&r->out, "\n");
        code = draw(r, user);
        if (code == EXIT_STOPPED)
            break;
        if (code != EXIT_DONE)
            buf_clear(&r->out);
        if (code != EXIT_DONE && code != last)
            remote_complain(r);
    }
    return EXIT_DONE;
}

int remote_show(struct remote *r, int (*draw)(struct remote *r, void *user), void *user)
{
    if (set.watch && r->term.draws)
        return watch_screen(r, draw, user);
    if (set.watch)
        return watch_blocks(r, draw, user);
    int code = draw(r, user);
    (void)remote_flush(r);
    return code;
}
