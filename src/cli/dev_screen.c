#include "cli/dev_screen.h"

#include "base/clock.h"
#include "cli/screen.h"
#include "cli/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    ASK_MS = 1000,
    DRAW_MS = 100, /* at most so often, however many lines come */
    ASK_TIMEOUT_S = 1,
    REFUSALS = 4,
    LINES_AFTERWARDS = 30,
};

void dev_screen_open(struct dev_screen *s, const struct demo *demo)
{
    *s = (struct dev_screen){.demo = demo, .dirty = true};
    term_look(&s->term, STDOUT_FILENO, false);
    screen_open(STDOUT_FILENO);
}

void dev_screen_line(struct dev_screen *s, const char *prefix, const char *line)
{
    char *dst = s->lines[s->n_lines % DEV_SCREEN_LINES];
    snprintf(dst, DEV_SCREEN_LINE_MAX, "%s%s", prefix, line);
    s->n_lines++;
    s->dirty = true;
}

/* The last n lines, oldest first. */
static void put_lines(struct buf *out, const struct dev_screen *s, size_t n)
{
    size_t kept = s->n_lines < DEV_SCREEN_LINES ? s->n_lines : DEV_SCREEN_LINES;
    n = n < kept ? n : kept;
    for (size_t i = s->n_lines - n; i < s->n_lines; i++) {
        term_put_text(out, str_of(s->lines[i % DEV_SCREEN_LINES]));
        term_put(out, "\n");
    }
}

void dev_screen_close(struct dev_screen *s, bool lines)
{
    struct buf out = {0};
    screen_close();
    if (lines)
        put_lines(&out, s, LINES_AFTERWARDS);
    (void)term_flush(&out, STDOUT_FILENO);
    buf_done(&out);
    client_close(s->client);
    client_answer_done(&s->status);
}

/* ── asking ────────────────────────────────────────────────────────────────────────────────── */

static void connect_client(struct dev_screen *s)
{
    char url[DEMO_ADDRESS_MAX + 16];
    snprintf(url, sizeof(url), "http://%s", s->demo->http);
    const struct client_settings settings = {
        .url = url, .data = s->demo->data, .stop_fd = s->demo->children.stop_fd};
    s->client = client_open(&settings, s->status.why);
    s->asked = true;
}

static void ask(struct dev_screen *s)
{
    if (!s->client && s->demo->http[0])
        connect_client(s);
    if (s->client)
        (void)client_call(s->client, HTTP_GET, "/v1/status", NULL, ASK_TIMEOUT_S, &s->status);
    s->dirty = true;
}

/* ── drawing ───────────────────────────────────────────────────────────────────────────────── */

/* The address is short; the link behind it is not, since it logs in. */
static void put_title(struct buf *out, const struct dev_screen *s)
{
    char url[DEMO_ADDRESS_MAX + 16];
    term_begin(out, &s->term, STYLE_HEAD);
    term_printf(out, "muster dev");
    term_end(out, &s->term, STYLE_HEAD);
    term_put(out, "  ");
    snprintf(url, sizeof(url), "http://%s", s->demo->http[0] ? s->demo->http : "...");
    term_put_link(out, &s->term, s->demo->console, str_of(url));
    term_put(out, s->demo->console[0] ? " (the console: click it)" : "");
    term_put(out, s->ending ? "  stopping\n\n" : "  ctrl-c stops everything\n\n");
}

static void put_status(struct buf *out, const struct dev_screen *s)
{
    if (s->status.json) {
        status_put(out, &s->term, s->status.json, false, REFUSALS, clock_wall_ms());
    } else {
        term_put_text(out, str_of(s->asked && s->status.why[0] ? s->status.why : "starting ..."));
        term_put(out, "\n");
    }
}

static void put_ms(struct buf *out, const struct json *stats, const char *name, const char *key)
{
    term_printf(out, "%s %.1f s", name, json_get_number(json_member(stats, key)) / 1000);
}

/* As the matchmaker counts them. */
static void put_lobbies(struct buf *out, const struct dev_screen *s)
{
    const struct json *stats = s->demo->stats;
    const struct json *aborts = json_member(stats, "aborts");
    if (!stats)
        return;
    term_put(out, "\n");
    term_put_styled(out, &s->term, STYLE_HEAD, STR("Lobbies"));
    term_printf(
        out,
        "  %" PRId64 " loading, %" PRId64 " being played; %" PRId64 " started, %" PRId64 " aborted",
        json_get_int(json_member(stats, "loading")), json_get_int(json_member(stats, "playing")),
        json_get_int(json_member(stats, "started")), json_get_int(json_member(stats, "aborted")));
    put_ms(out, stats, "\n  creation to start p50", "p50_ms");
    put_ms(out, stats, ", p95", "p95_ms");
    put_ms(out, stats, ", p99", "p99_ms");
    term_put(out, "\n");
    for (size_t i = 0; i < json_length(aborts); i++) {
        const struct json *one = json_item(aborts, i);
        term_printf(out, "  %" PRId64 " aborted: ", json_get_int(json_member(one, "lobby")));
        term_put_text(out, json_get_text(json_member(one, "reason")));
        term_put(out, "\n");
    }
}

/* A command that is too long for a line goes on in the next, as a shell understands it: one that
 * is cut would be typed wrong. */
static void put_hint(struct buf *out, const struct dev_screen *s, const char *command)
{
    static const char indent[] = "  ";
    int column = 0;
    while (*command) {
        int n = (int)strcspn(command, " ");
        if (column > 0 && column + n + 3 > s->term.columns) {
            term_printf(out, " \\\n%s", indent);
            column = 0;
        }
        term_put(out, column > 0 ? " " : indent);
        term_put_text(out, (struct str){command, (size_t)n});
        column += n + (column > 0 ? 1 : 2);
        command += n + (command[n] == ' ' ? 1 : 0);
    }
    term_put(out, "\n");
}

static void put_hints(struct buf *out, const struct dev_screen *s)
{
    char text[DEMO_COMMAND_MAX];
    if (!s->demo->registered[1])
        return;
    term_put_styled(out, &s->term, STYLE_HEAD, STR("Try in another terminal"));
    term_put(out, "\n");
    put_hint(out, s, demo_console(s->demo, text));
    put_hint(out, s, demo_allocate(s->demo, text));
    put_hint(out, s, demo_why(s->demo, text));
    put_hint(out, s, demo_drain(s->demo, text));
    if (s->demo->rooms)
        put_hint(out, s, demo_room(s->demo, text));
}

static size_t count_lines(const struct buf *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == '\n' ? 1 : 0;
    return n;
}

/* The lines of the processes get the rows that the rest leaves. */
static void draw(struct dev_screen *s)
{
    struct buf top = {0};
    struct buf bottom = {0};
    term_look(&s->term, STDOUT_FILENO, false);
    put_title(&top, s);
    put_status(&top, s);
    put_lobbies(&top, s);
    term_put(&top, "\n");
    term_put_styled(&top, &s->term, STYLE_HEAD, STR("Events"));
    term_put(&top, "\n");
    term_put(&bottom, "\n");
    put_hints(&bottom, s);
    size_t used = count_lines(&top) + count_lines(&bottom);
    size_t rows = s->term.rows > 0 ? (size_t)s->term.rows : 0;
    put_lines(&top, s, rows > used ? rows - used : 0);
    buf_append(&top, bottom.data, bottom.len);
    screen_draw((struct str){(const char *)top.data, top.len});
    buf_done(&top);
    buf_done(&bottom);
}

int64_t dev_screen_turn(struct dev_screen *s)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!s->ending && now_ms >= s->next_ask_ms) {
        ask(s);
        s->next_ask_ms = now_ms + ASK_MS;
    }
    now_ms = clock_monotonic_ms();
    if (now_ms >= s->next_draw_ms) {
        draw(s);
        s->dirty = false;
        s->next_draw_ms = now_ms + DRAW_MS;
    }
    return s->dirty && s->next_draw_ms < s->next_ask_ms ? s->next_draw_ms : s->next_ask_ms;
}

void dev_screen_end(struct dev_screen *s)
{
    s->ending = true;
    s->next_draw_ms = 0;
    (void)dev_screen_turn(s);
}
