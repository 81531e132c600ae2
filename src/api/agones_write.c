/* What is written to a GameServer: one request at a time, each against the version we know.
 * Whatever comes meanwhile goes along with the next one. A conflict, or no answer, means: read it
 * again, and write what is still to be written, so that nobody's token is lost and none is there
 * twice. */
#include "api/agones_own.h"

#include "base/err.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_FIRST_MS = 10, CONFLICT_MOST_MS = 100, AGAIN_MOST_MS = 2000 };

void gameserver_make_busy(struct gameserver *g)
{
    if (!link_in_list(&g->in_busy))
        list_append(&g->fleet->agones->busy, &g->in_busy);
}

void gameserver_end(struct gameserver *g)
{
    g->shutdown = true;
    gameserver_make_busy(g);
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static void back_from_flight(struct gameserver *g)
{
    list_move_all(&g->flying, &g->changes);
    list_move_all(&g->changes, &g->flying);
}

static void try_again(struct gameserver *g, int64_t most_ms)
{
    struct agones *a = g->fleet->agones;
    g->stale = true;
    g->due_ms = a->now_ms;
    if (g->tries++ > 0) /* the first conflict is most likely also the last */
        g->due_ms += agones_pause_ms(a, g->tries - 2, AGAIN_FIRST_MS, most_ms);
}

static void log_refusal(const struct gameserver *g, const char *what, int status, const char *why)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (g->tries == 0)
        log_line(LOG_WARN, "the API server refuses to change a GameServer",
                 "name=%s what=%s status=%d why=%s", g->name, what, status,
                 log_quote(quoted, str_of(why)));
}

/* It is tried again, unless the GameServer is gone: then it is freed. */
static void settle_refusal(struct gameserver *g, const char *what, const struct http_reply *reply)
{
    struct agones *a = g->fleet->agones;
    char why[AGONES_WHY_MAX];
    int status = reply->status;
    back_from_flight(g);
    if (status == 404) {
        gameserver_gone(g);
        return;
    }
    if (status == 409) {
        a->figures.conflicts++;
        snprintf(why, sizeof(why), "the GameServer changes too fast");
    } else {
        snprintf(why, sizeof(why), "%s", reply->why);
        if (status)
            (void)agones_refusal(status, reply->body, why);
        log_refusal(g, what, status, why);
    }
    if (status == 401)
        identity_refresh(a, true);
    bool ours = status >= 400 && status < 500 && status != 409 && status != 401 && status != 429;
    if (ours)
        gameserver_drop_additions(g, ERR_FORBIDDEN, why);
    else
        gameserver_drop_late(g, why);
    try_again(g, status == 409 ? CONFLICT_MOST_MS : AGAIN_MOST_MS);
}

/* False when what came is no such GameServer. */
static bool take_object(struct gameserver *g, struct str body)
{
    char why[JSON_WHY_MAX];
    struct gameserver_object o;
    struct json *root = gameserver_parse(body, why);
    bool good =
        root && gameserver_read(root, g->fleet->config.port, &o) && str_eq(o.name, str_of(g->name));
    if (good) {
        /* An answer is the truth when it is given; what is newer comes by the watch. */
        (void)gameserver_seen(g->fleet, &o, SEEN_IN_ANSWER);
        g->stale = false;
    }
    json_free(root);
    return good;
}

static void landed(struct gameserver *g)
{
    struct agones *a = g->fleet->agones;
    struct list done;
    list_init(&done);
    list_move_all(&done, &g->flying);
    LIST_EACH(&done, c, struct route_change, in_list)
    {
        list_remove(&c->in_list);
        route_done(a, c);
    }
}

static void end_call(struct gameserver *g)
{
    g->call = NULL;
    g->fleet->agones->n_writes--;
}

static void on_read(void *user, const struct http_reply *reply)
{
    struct gameserver *g = user;
    end_call(g);
    if (reply->status != 200) {
        settle_refusal(g, "read", reply);
        return;
    }
    if (!take_object(g, reply->body))
        try_again(g, AGAIN_MOST_MS);
}

static void on_patched(void *user, const struct http_reply *reply)
{
    struct gameserver *g = user;
    end_call(g);
    if (reply->status != 200) {
        settle_refusal(g, "patch", reply);
        return;
    }
    g->tries = 0;
    if (take_object(g, reply->body))
        landed(g);
    else
        try_again(g, AGAIN_MOST_MS);
}

static void begin(struct gameserver *g, enum http_method method, struct str body, http_done *done)
{
    struct agones *a = g->fleet->agones;
    char url[AGONES_URL_MAX];
    snprintf(url, sizeof(url), "%s/apis/agones.dev/v1/namespaces/%s/gameservers/%s",
             a->identity.url, g->fleet->config.namespace, g->name);
    struct http_client_request request = {.method = method,
                                          .url = url,
                                          .body = body,
                                          .content_type = "application/merge-patch+json",
                                          .answer_max = AGONES_ANSWER_MAX};
    g->call = http_client_send(a->client, &request, done, g);
    if (!g->call) {
        back_from_flight(g);
        try_again(g, AGAIN_MOST_MS);
        return;
    }
    a->n_writes++;
    a->figures.patches += method == HTTP_PATCH;
    a->figures.reads += method == HTTP_GET;
}

/* ── patches ───────────────────────────────────────────────────────────────────────────────── */

static struct json_writer begin_patch(const struct gameserver *g)
{
    struct buf *out = &g->fleet->agones->body;
    struct json_writer w = {.out = out};
    buf_clear(out);
    json_open_object(&w);
    json_key(&w, "metadata");
    json_open_object(&w);
    json_key_text(&w, "resourceVersion", str_of(g->version));
    return w;
}

static void send_patch(struct gameserver *g, struct json_writer *w)
{
    json_close_object(w);
    begin(g, HTTP_PATCH, (struct str){(const char *)w->out->data, w->out->len}, on_patched);
}

static void write_shutdown(struct gameserver *g)
{
    struct json_writer w = begin_patch(g);
    json_close_object(&w);
    json_key(&w, "status");
    json_open_object(&w);
    json_key_text(&w, "state", STR("Shutdown"));
    json_close_object(&w);
    send_patch(g, &w);
}

static void write_tokens(struct gameserver *g, struct str tokens)
{
    struct json_writer w = begin_patch(g);
    json_key(&w, "annotations");
    json_open_object(&w);
    json_key(&w, AGONES_TOKENS);
    if (tokens.len > 0)
        json_text(&w, tokens);
    else
        json_none(&w);
    json_close_object(&w);
    json_close_object(&w);
    send_patch(g, &w);
}

/* It went back to those that wait, with our marks: were it allocated by somebody else, it would be
 * taken for ours. */
static void write_wipe(struct gameserver *g)
{
    static const char *const marks[] = {AGONES_TOKENS, AGONES_TICKET, AGONES_SERVER, AGONES_SESSION,
                                        AGONES_INSTANCE};
    struct json_writer w = begin_patch(g);
    json_key(&w, "annotations");
    json_open_object(&w);
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        json_key(&w, marks[i]);
        json_none(&w);
    }
    json_close_object(&w);
    json_close_object(&w);
    send_patch(g, &w);
}

/* All that waits, in order, over what is there. */
static void run_changes(struct gameserver *g)
{
    struct buf tokens = {0};
    buf_append(&tokens, g->tokens, strlen(g->tokens));
    LIST_EACH(&g->changes, c, struct route_change, in_list)
    {
        tokens_change(&tokens, str_of(c->token), c->on);
    }
    struct str after = {(const char *)tokens.data, tokens.len};
    list_move_all(&g->flying, &g->changes);
    if (str_eq(after, str_of(g->tokens)))
        landed(g);
    else
        write_tokens(g, after);
    buf_done(&tokens);
}

void gameserver_run(struct gameserver *g)
{
    struct agones *a = g->fleet->agones;
    bool tokens = !list_empty(&g->changes) && !g->shutdown;
    if (g->call)
        return;
    if (g->shutdown) /* what is to be taken from there is gone when it is over */
        gameserver_drop_additions(g, ERR_ALREADY_OVER, "the GameServer is being shut down");
    if (!tokens && !g->shutdown && !g->wipe) {
        list_remove(&g->in_busy);
        g->tries = 0;
        return;
    }
    if (a->now_ms < g->due_ms || a->n_writes >= AGONES_WRITES_AT_ONCE)
        return;
    if (!g->version || g->stale)
        begin(g, HTTP_GET, (struct str){0}, on_read);
    else if (g->shutdown)
        write_shutdown(g);
    else if (tokens)
        run_changes(g);
    else
        write_wipe(g);
}

/* ── its end ───────────────────────────────────────────────────────────────────────────────── */

void terminate(struct agones *a, struct cluster_fleet *f, int64_t server)
{
    struct gameserver *g = map_get(&a->by_server, (uint64_t)server);
    struct allocating *spawn = map_get(&a->spawns, (uint64_t)server);
    if (g)
        gameserver_end(g);
    else if (spawn)
        spawn->doomed = true;
    if (g || spawn || !cluster_fleet_is_current(f))
        (void)news_add(a, NEWS_HEARD, f, server);
    else
        snprintf(news_add(a, NEWS_EXITED, f, server)->text, AGONES_WHY_MAX,
                 "There is no GameServer of it");
}
