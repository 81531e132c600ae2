/* `muster top`: how Muster is, live. On a terminal a screen that follows its size and the keys;
 * elsewhere, or with --plain, a block of lines each time. A Muster that goes away is waited for. */
#include "base/clock.h"
#include "cli/remote.h"
#include "cli/screen.h"
#include "cli/show.h"
#include "cli/top_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ASK_TIMEOUT_S = 2,
    TICK_MS = 1000,   /* ages are seconds */
    HOSTS_SHARE = 10, /* of the time at most one tenth goes into reading the hosts */
    HOSTS_PAGE = 1000,
    PAGES_MAX = 100,
    REGION_MAX = 64,
    KEYS_MAX = 64,
    EVERY_MAX_S = 3600,
    STATUS_NOT_FOUND = 404,
};

static struct {
    bool once;
    bool plain;
    int64_t every_s;
} set = {.every_s = 1};

const struct arg top_options[] = {
    {.name = "--every",
     .kind = ARG_SECONDS,
     .into = &set.every_s,
     .min = 1,
     .max = EVERY_MAX_S,
     .value = "TIME",
     .help = "how often Muster is asked, in seconds (1)"},
    {.name = "--once", .kind = ARG_FLAG, .into = &set.once, .help = "lines, once"},
    {.name = "--plain",
     .kind = ARG_FLAG,
     .into = &set.plain,
     .help = "lines on a terminal too, a block each time"},
    {0},
};

struct top {
    struct remote r;
    struct json *status; /* of the last whole answer; NULL = none yet */
    struct json *health;
    struct json *pages[PAGES_MAX]; /* of hosts */
    size_t n_pages;
    const struct json **hosts; /* borrowed from the pages */
    size_t n_hosts;
    int64_t next_hosts_ms;

    bool away;
    char why[CLIENT_WHY_MAX];
    int64_t away_since_ms;
    int64_t heard_ms; /* when the status was answered */

    bool paused;
    bool help;
    bool all_regions;
    char region[REGION_MAX];
    enum top_sort sort;
};

/* ── asking ────────────────────────────────────────────────────────────────────────────────── */

static void forget_hosts(struct top *t)
{
    for (size_t i = 0; i < t->n_pages; i++)
        json_free(t->pages[i]);
    free(t->hosts);
    t->hosts = NULL;
    t->n_pages = t->n_hosts = 0;
}

static void index_hosts(struct top *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_pages; i++)
        n += json_length(json_member(t->pages[i], "items"));
    t->hosts = xcalloc(n + 1, sizeof(*t->hosts));
    for (size_t i = 0; i < t->n_pages; i++) {
        const struct json *items = json_member(t->pages[i], "items");
        for (size_t k = 0; k < json_length(items); k++)
            t->hosts[t->n_hosts++] = json_item(items, k);
    }
}

static int ask(struct top *t, const struct ask *question)
{
    return remote_ask_by(&t->r, t->r.client, question, ASK_TIMEOUT_S);
}

/* Page after page; what was there stays until all of them have come. */
static int ask_hosts(struct top *t)
{
    struct json *pages[PAGES_MAX];
    char cursor[128] = "";
    size_t n = 0;
    int code = EXIT_DONE;
    int64_t began_ms = clock_monotonic_ms();
    do {
        struct ask question;
        ask_init(&question, "list_hosts", NULL);
        ask_set_number(&question, "limit", HOSTS_PAGE);
        ask_set(&question, "cursor", *cursor ? cursor : NULL);
        code = ask(t, &question);
        if (code != EXIT_DONE)
            break;
        pages[n++] = json_keep(t->r.answer.json);
        (void)str_copy(cursor, sizeof(cursor),
                       json_get_text(json_member(t->r.answer.json, "next")));
    } while (*cursor && n < PAGES_MAX);
    if (code == EXIT_DONE) {
        forget_hosts(t);
        memcpy(t->pages, pages, n * sizeof(pages[0]));
        t->n_pages = n;
        index_hosts(t);
        n = 0;
    }
    while (n > 0)
        json_free(pages[--n]);
    t->next_hosts_ms = clock_monotonic_ms() + (clock_monotonic_ms() - began_ms) * (HOSTS_SHARE - 1);
    return code;
}

/* An older Muster has no such path. */
static int ask_health(struct top *t)
{
    int code = remote_call(&t->r, HTTP_GET, "/v1/health", NULL, ASK_TIMEOUT_S);
    if (code == EXIT_REFUSED && t->r.answer.status == STATUS_NOT_FOUND)
        return EXIT_DONE;
    if (code == EXIT_DONE) {
        json_free(t->health);
        t->health = json_keep(t->r.answer.json);
    }
    return code;
}

static int ask_status(struct top *t)
{
    struct ask question;
    ask_init(&question, "get_status", NULL);
    int code = ask(t, &question);
    if (code != EXIT_DONE)
        return code;
    json_free(t->status);
    t->status = json_keep(t->r.answer.json);
    t->heard_ms = clock_monotonic_ms();
    return EXIT_DONE;
}

static int ask_all(struct top *t)
{
    int64_t now_ms = clock_monotonic_ms();
    int code = ask_status(t);
    if (code == EXIT_DONE)
        code = ask_health(t);
    if (code == EXIT_DONE && now_ms >= t->next_hosts_ms)
        code = ask_hosts(t);
    if (code == EXIT_STOPPED)
        return code;
    if (code != EXIT_DONE) {
        if (!t->away)
            t->away_since_ms = now_ms;
        (void)str_copy(t->why, sizeof(t->why), str_of(t->r.answer.why));
    }
    t->away = code != EXIT_DONE;
    return code;
}

/* ── showing ───────────────────────────────────────────────────────────────────────────────── */

static struct top_view view_of(const struct top *t)
{
    int64_t now_ms = clock_monotonic_ms();
    return (struct top_view){.url = client_url(t->r.client),
                             .now_ms = clock_wall_ms(),
                             .status = t->status,
                             .health = t->health,
                             .hosts = t->hosts,
                             .n_hosts = t->n_hosts,
                             .why = t->away ? t->why : NULL,
                             .away_ms = now_ms - t->away_since_ms,
                             .age_ms = now_ms - t->heard_ms,
                             .paused = t->paused,
                             .help = t->help,
                             .all_regions = t->all_regions || remote_output() == OUTPUT_WIDE,
                             .region = t->region,
                             .sort = t->sort};
}

static void draw(struct top *t)
{
    struct buf frame = {0};
    const struct top_view v = view_of(t);
    bool colours = t->r.term.colours;
    term_look(&t->r.term, STDOUT_FILENO, !colours);
    top_view_put(&frame, &t->r.term, &v, t->r.term.rows > 0 ? (size_t)t->r.term.rows : 1);
    screen_draw((struct str){(const char *)frame.data, frame.len});
    buf_done(&frame);
}

/* As -o json has it everywhere: nothing in it commands a terminal. */
static void put_value(struct json_writer *w, const struct json *value)
{
    struct buf text = {0};
    if (value)
        show_json(&text, value);
    else
        term_put(&text, "null");
    json_raw(w, (struct str){(const char *)text.data, text.len});
    buf_done(&text);
}

/* One object in a line: what was asked for, by the names of the API. */
static void put_json(struct top *t)
{
    struct buf *out = &t->r.out;
    struct json_writer w = {.out = out};
    json_open_object(&w);
    json_key(&w, "health");
    put_value(&w, t->health);
    json_key(&w, "status");
    put_value(&w, t->status);
    json_key(&w, "hosts");
    json_open_array(&w);
    for (size_t i = 0; i < t->n_hosts; i++)
        put_value(&w, t->hosts[i]);
    json_close_array(&w);
    json_close_object(&w);
    term_put(out, "\n");
}

static void put_lines(struct top *t)
{
    const struct top_view v = view_of(t);
    if (remote_output() == OUTPUT_JSON)
        put_json(t);
    else
        top_view_put(&t->r.out, &t->r.term, &v, 0);
}

/* ── keys ──────────────────────────────────────────────────────────────────────────────────── */

/* False when it is time to go. */
static bool press(struct top *t, char key)
{
    const struct top_view v = view_of(t);
    switch (key) {
    case 'q':
    case 'Q':
    case '\x03':
    case '\x04':
        return false;
    case 'p':
    case ' ':
        t->paused = !t->paused;
        break;
    case 'h':
    case '?':
        t->help = !t->help;
        break;
    case 'a':
        t->all_regions = !t->all_regions;
        break;
    case 's':
        t->sort = (t->sort + 1) % TOP_SORTS;
        break;
    case 'r':
        (void)str_copy(t->region, sizeof(t->region), top_view_next_region(&v));
        break;
    default:
        break;
    }
    return true;
}

/* Bytes of the sequence that an arrow or another such key sends, which means nothing here: an
 * escape, a bracket, digits and the like up to a letter. */
static size_t sequence_len(const char *at, size_t n)
{
    size_t i = 1;
    if (at[0] != '\033')
        return 0;
    if (i < n && (at[i] == '[' || at[i] == 'O'))
        i++;
    while (i < n && (at[i] < '@' || at[i] > '~'))
        i++;
    return i < n ? i + 1 : n;
}

/* False when it is time to go; *keys is -1 from when nobody types any more. */
static bool read_keys(struct top *t, int *keys)
{
    char typed[KEYS_MAX];
    ssize_t n = read(*keys, typed, sizeof(typed));
    if (n <= 0) {
        *keys = -1;
        return true;
    }
    for (size_t i = 0; i < (size_t)n;) {
        size_t skipped = sequence_len(typed + i, (size_t)n - i);
        if (skipped == 0 && !press(t, typed[i]))
            return false;
        i += skipped ? skipped : 1;
    }
    return true;
}

/* ── the loop ──────────────────────────────────────────────────────────────────────────────── */

static int run_screen(struct top *t)
{
    int fds[] = {t->r.stop_fd, isatty(STDIN_FILENO) ? STDIN_FILENO : -1};
    int64_t every_ms = set.every_s * 1000;
    int64_t ask_ms = clock_monotonic_ms() + every_ms;
    screen_open(STDOUT_FILENO);
    for (;;) {
        draw(t);
        int64_t now_ms = clock_monotonic_ms();
        int64_t tick_ms = now_ms + TICK_MS;
        int readable = screen_wait(fds, 2, ask_ms < tick_ms && !t->paused ? ask_ms : tick_ms);
        if (readable == 0 || (readable == 1 && !read_keys(t, &fds[1])))
            break;
        if (readable == 1 || t->paused || clock_monotonic_ms() < ask_ms)
            continue;
        if (ask_all(t) == EXIT_STOPPED)
            break;
        ask_ms = clock_monotonic_ms() + every_ms;
    }
    screen_close();
    return EXIT_DONE;
}

/* Blocks with a blank line between them; while Muster is away standard error says so, once. */
static int run_lines(struct top *t)
{
    int64_t next_ms = clock_monotonic_ms();
    bool was_away = false;
    for (;;) {
        if (!t->away)
            put_lines(t);
        else if (!was_away)
            remote_complain(&t->r);
        was_away = t->away;
        if (!remote_flush(&t->r) || set.once)
            return EXIT_DONE;
        next_ms += set.every_s * 1000;
        if (screen_wait(&t->r.stop_fd, 1, next_ms) == 0 || ask_all(t) == EXIT_STOPPED)
            return EXIT_DONE;
        if (!t->away && remote_output() != OUTPUT_JSON)
            term_put(&t->r.out, "\n");
    }
}

int top_run(int argc, char **argv)
{
    struct top t = {0};
    int code = remote_open(&t.r, argc, argv, NULL, top_options, remote_live_options, true);
    if (code != EXIT_DONE)
        return code;
    t.r.quiet = true;
    code = ask_all(&t);
    bool lines = set.once || set.plain || !t.r.term.draws || remote_output() == OUTPUT_JSON;
    if (code == EXIT_STOPPED)
        code = EXIT_DONE;
    else if (code != EXIT_DONE)
        remote_complain(&t.r); /* a wrong URL or token: nothing to wait for */
    else
        code = lines ? run_lines(&t) : run_screen(&t);
    forget_hosts(&t);
    json_free(t.status);
    json_free(t.health);
    remote_close(&t.r);
    return code;
}
