/* A fleet as the API server shows it: listed once, page by page, then watched from the list's
 * version on. A watch ends by itself after a while and goes on where it was; one whose version is
 * too old, or that says something we do not understand, is followed by a new list. While neither
 * works core hears no heartbeat: what plays is then unknown, not over. */
#include "api/agones_own.h"

#include "base/log.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGE = 100,    /* GameServers: some 10 kB each */
    WATCH_S = 240, /* … and up to a minute more, so that those of a start do not end together */
    WATCH_JITTER_S = 60,
    WATCH_LATE_MS = 30 * 1000, /* then it is cut: nobody is there */
    HEAD_MS = 10 * 1000,       /* until a watch must have been accepted */
    GOOD_MS = 2000,            /* a watch that lasted so long works */
    AGAIN_FIRST_MS = 250,
    AGAIN_MOST_MS = 30 * 1000,
};

void cluster_fleet_init(struct cluster_fleet *f, struct agones *a, size_t index,
                        const struct agones_fleet *config)
{
    f->agones = a;
    f->index = index;
    f->config = *config;
    f->list_next = true;
    snprintf(f->host, sizeof(f->host), "agones/%s", config->fleet);
    snprintf(f->url, sizeof(f->url), "agones:%s", config->fleet);
    snprintf(f->why, sizeof(f->why), "its GameServers are not listed yet");
    list_init(&f->servers);
    list_init(&f->playing_ones);
}

/* Its calls have ended with the clients. */
void cluster_fleet_done(struct cluster_fleet *f)
{
    gameservers_free(f);
    watch_lines_done(&f->lines);
    buf_done(&f->version);
    buf_done(&f->more);
}

bool cluster_fleet_is_current(const struct cluster_fleet *f)
{
    return f->synced && f->failures == 0;
}

/* ── going on ──────────────────────────────────────────────────────────────────────────────── */

static void wait_for(struct cluster_fleet *f, int64_t ms, bool list)
{
    f->phase = FLEET_WAITING;
    f->call = NULL;
    f->list_next = list;
    f->due_ms = f->agones->now_ms + ms;
}

static void failed(struct cluster_fleet *f, const char *why, bool list)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (f->failures == 0)
        log_line(LOG_WARN, "the GameServers of a fleet are out of sight", "fleet=%s why=%s",
                 f->config.fleet, log_quote(quoted, str_of(why)));
    snprintf(f->why, sizeof(f->why), "%s", why);
    wait_for(f, agones_pause_ms(f->agones, f->failures, AGAIN_FIRST_MS, AGAIN_MOST_MS), list);
    f->failures += f->failures < 30;
}

static void works(struct cluster_fleet *f)
{
    if (f->good)
        return;
    f->good = true;
    f->failures = 0;
    f->changed = true;
    log_line(LOG_DEBUG, "the GameServers of a fleet are watched", "fleet=%s", f->config.fleet);
}

static void append_escaped(char url[AGONES_URL_MAX], size_t *len, struct str s)
{
    for (size_t i = 0; i < s.len && *len + 4 < AGONES_URL_MAX; i++) {
        unsigned char c = (unsigned char)s.at[i];
        bool plain = isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
        *len += (size_t)snprintf(url + *len, AGONES_URL_MAX - *len, plain ? "%c" : "%%%02X", c);
    }
}

static size_t begin_url(const struct cluster_fleet *f, char url[AGONES_URL_MAX])
{
    return (size_t)snprintf(url, AGONES_URL_MAX,
                            "%s/apis/agones.dev/v1/namespaces/%s/gameservers?"
                            "labelSelector=agones.dev%%2Ffleet%%3D%s",
                            f->agones->identity.url, f->config.namespace, f->config.name);
}

static struct str text_of(const struct buf *b)
{
    return (struct str){(const char *)b->data, b->len};
}

static void keep(struct buf *b, struct str text)
{
    buf_clear(b);
    buf_append(b, text.at, text.len);
}

/* ── the list ──────────────────────────────────────────────────────────────────────────────── */

static void ask_page(struct cluster_fleet *f);

static void take_items(struct cluster_fleet *f, const struct json *items)
{
    for (size_t i = 0; i < json_length(items); i++) {
        struct gameserver_object o;
        if (gameserver_read(json_item(items, i), f->config.port, &o))
            (void)gameserver_seen(f, &o, SEEN_IN_LIST);
        else
            f->agones->figures.bad_lines++;
    }
}

static void take_page(struct cluster_fleet *f, const struct gameserver_page *page)
{
    take_items(f, page->items);
    keep(&f->version, page->version);
    keep(&f->more, page->more);
    if (page->more.len > 0) {
        ask_page(f);
        return;
    }
    gameservers_sweep(f);
    f->listed = f->listing;
    f->synced = true;
    f->changed = true;
    wait_for(f, 0, false);
}

static void on_page(void *user, const struct http_reply *reply)
{
    struct cluster_fleet *f = user;
    char why[AGONES_WHY_MAX];
    struct gameserver_page page;
    if (reply->status != 200) {
        if (reply->status == 401)
            identity_refresh(f->agones, true);
        failed(f, reply->status ? agones_refusal(reply->status, reply->body, why) : reply->why,
               true);
        return;
    }
    struct json *root = gameserver_parse(reply->body, why);
    if (root && gameserver_page_read(root, &page))
        take_page(f, &page);
    else
        failed(f, "the list of GameServers is none", true);
    json_free(root);
}

static void ask_page(struct cluster_fleet *f)
{
    char url[AGONES_URL_MAX];
    size_t n = begin_url(f, url);
    n += (size_t)snprintf(url + n, sizeof(url) - n, "&limit=%d", PAGE);
    if (f->more.len > 0) {
        n += (size_t)snprintf(url + n, sizeof(url) - n, "&continue=");
        append_escaped(url, &n, text_of(&f->more));
    }
    struct http_client_request request = {.url = url, .answer_max = AGONES_ANSWER_MAX};
    f->call = http_client_send(f->agones->client, &request, on_page, f);
    if (!f->call)
        failed(f, "libcurl cannot be used", true);
}

static void begin_list(struct cluster_fleet *f)
{
    f->phase = FLEET_LISTING;
    f->listing++;
    f->agones->figures.lists++;
    buf_clear(&f->more);
    ask_page(f);
}

void cluster_fleet_list(struct cluster_fleet *f, uint64_t number)
{
    if (f->listing >= number || (f->phase == FLEET_WAITING && f->list_next))
        return;
    if (f->call)
        http_call_drop(f->call);
    wait_for(f, 0, true);
}

/* ── the watch ─────────────────────────────────────────────────────────────────────────────── */

static void take_event(struct cluster_fleet *f, const struct watch_event *e)
{
    struct gameserver *g;
    switch (e->kind) {
    case WATCH_CHANGED:
        (void)gameserver_seen(f, &e->object, SEEN_IN_WATCH);
        break;
    case WATCH_DELETED:
        g = gameserver_named(f, e->object.name);
        if (g)
            gameserver_gone(g);
        break;
    case WATCH_BOOKMARK:
    case WATCH_ERROR:
        break;
    }
}

static bool on_line(void *user, struct str line)
{
    struct cluster_fleet *f = user;
    char why[JSON_WHY_MAX];
    struct watch_event e;
    struct json *root = gameserver_parse(line, why);
    bool good = root && watch_event_read(root, f->config.port, &e);
    f->agones->figures.events++;
    f->agones->figures.bad_lines += !good;
    if (good && e.kind != WATCH_ERROR) {
        take_event(f, &e);
        keep(&f->version, e.object.version);
        works(f);
    } else {
        f->too_old = true;
        struct str said = good ? e.why : STR("the watch cannot be understood");
        snprintf(f->why, sizeof(f->why), "%.*s", (int)(said.len < 200 ? said.len : 200), said.at);
    }
    json_free(root);
    return !f->too_old;
}

static bool on_piece(void *user, struct str piece)
{
    struct cluster_fleet *f = user;
    if (watch_lines_take(&f->lines, piece, on_line, f))
        return true;
    if (!f->too_old) {
        f->too_old = true;
        f->agones->figures.bad_lines++;
        snprintf(f->why, sizeof(f->why), "a line of the watch is too long");
    }
    return false;
}

/* One that was accepted and ends is at the end of its time, or of its server's: it goes on. One
 * that ends at once, again and again, does not work. */
static void on_watch_done(void *user, const struct http_reply *reply)
{
    struct cluster_fleet *f = user;
    char why[AGONES_WHY_MAX];
    if (f->too_old) {
        snprintf(why, sizeof(why), "%s", f->why);
        failed(f, why, true);
    } else if (reply->status == 200 && f->good) {
        wait_for(f, 0, false);
    } else if (reply->status == 0 || reply->status == 200) {
        failed(f, reply->status ? "the watch ended at once" : reply->why, false);
    } else {
        if (reply->status == 401)
            identity_refresh(f->agones, true);
        failed(f, agones_refusal(reply->status, reply->body, why), reply->status == 410);
    }
}

static void begin_watch(struct cluster_fleet *f)
{
    char url[AGONES_URL_MAX];
    int64_t seconds = WATCH_S + agones_pause_ms(f->agones, 0, WATCH_JITTER_S, WATCH_JITTER_S);
    size_t n = begin_url(f, url);
    n += (size_t)snprintf(
        url + n, sizeof(url) - n,
        "&watch=1&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=", (int)seconds);
    append_escaped(url, &n, text_of(&f->version));
    f->phase = FLEET_WATCHING;
    f->began_ms = f->agones->now_ms;
    f->good = f->too_old = false;
    f->agones->figures.watches++;
    buf_clear(&f->lines.rest);
    f->call = http_client_follow(f->agones->watching, url, on_piece, on_watch_done, f);
    if (!f->call)
        failed(f, "libcurl cannot be used", false);
}

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

static void cut(struct cluster_fleet *f)
{
    http_call_drop(f->call);
    failed(f, "the API server says nothing", false);
}

void cluster_fleet_run(struct cluster_fleet *f)
{
    int64_t now_ms = f->agones->now_ms;
    if (f->phase == FLEET_WAITING && now_ms >= f->due_ms) {
        if (f->list_next)
            begin_list(f);
        else
            begin_watch(f);
    }
    if (f->phase != FLEET_WATCHING)
        return;
    int64_t lasted_ms = now_ms - f->began_ms;
    bool accepted = http_call_status(f->call) == 200;
    if (accepted && lasted_ms >= GOOD_MS)
        works(f);
    if ((!accepted && lasted_ms > HEAD_MS) ||
        lasted_ms > (WATCH_S + WATCH_JITTER_S) * 1000 + WATCH_LATE_MS)
        cut(f);
}
