/* A spawn is one POST. What its answer says is the end of it, unless there is none: then it may
 * have come about or not, and it is asked again only when a list that began afterwards does not
 * show it. So one that core wants again, after a restart perhaps, begins with the list, too. */
#include "api/agones_own.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONTENTION_MAX = 6,
    CONTENTION_FIRST_MS = 50,
    CONTENTION_MOST_MS = 800,
    UNANSWERED_MS = 500, /* the watch's time to show what became of it, before it is listed */
    UNANSWERED_MOST_MS = 8000,
    WITHIN_LEAST_MS = 1000,
};

static char *copy(struct str s)
{
    char *text = xmalloc(s.len + 1);
    memcpy(text, s.len ? s.at : "", s.len);
    text[s.len] = '\0';
    return text;
}

void allocating_free(struct allocating *spawn)
{
    if (spawn->call) {
        http_call_drop(spawn->call);
        spawn->agones->n_posts--;
    }
    map_remove(&spawn->agones->spawns, (uint64_t)spawn->server);
    list_remove(&spawn->in_list);
    LIST_EACH(&spawn->changes, c, struct route_change, in_list)
    {
        list_remove(&c->in_list);
        route_failed(spawn->agones, c, ERR_NOT_FOUND, "the GameServer is gone");
    }
    route_cleared(spawn, false);
    free(spawn->ticket);
    free(spawn->tokens);
    free(spawn);
}

/* Its answer, if it is still to come, says nothing that is not known: but a request that is cut off
 * costs its connection, so it is awaited. */
void allocating_over(struct allocating *spawn)
{
    spawn->settled = true;
    if (!spawn->call)
        allocating_free(spawn);
}

static void tell_failed(struct allocating *spawn, bool timed_out, const char *why)
{
    struct news *n = news_add(spawn->agones, NEWS_FAILED, spawn->fleet, spawn->server);
    n->timed_out = timed_out;
    snprintf(n->text, sizeof(n->text), "%s", why);
}

static void fail(struct allocating *spawn, bool timed_out, const char *why)
{
    tell_failed(spawn, timed_out, why);
    spawn->settled = true;
    route_cleared(spawn, true);
    allocating_free(spawn);
}

static void no_capacity(struct allocating *spawn)
{
    char why[128];
    snprintf(why, sizeof(why), "no capacity in fleet '%s'", spawn->fleet->config.fleet);
    fail(spawn, false, why);
}

/* ── the request ───────────────────────────────────────────────────────────────────────────── */

static int64_t count_tokens(const char *tokens)
{
    struct str rest = str_of(tokens), one;
    int64_t n = 0;
    while (tokens_next(&rest, &one))
        n++;
    return n;
}

static void write_available(struct json_writer *w, const char *what, const char *name, int64_t n)
{
    if (!*name)
        return;
    json_key(w, what);
    json_open_object(w);
    json_key(w, name);
    json_open_object(w);
    json_key_int(w, "minAvailable", n);
    json_close_object(w);
    json_close_object(w);
}

static void write_selector(struct json_writer *w, const struct allocating *spawn)
{
    const struct agones_fleet *f = &spawn->fleet->config;
    int64_t n = count_tokens(spawn->tokens);
    json_key(w, "selectors");
    json_open_array(w);
    json_open_object(w);
    json_key(w, "matchLabels");
    json_open_object(w);
    json_key_text(w, "agones.dev/fleet", str_of(f->name));
    json_close_object(w);
    write_available(w, "lists", f->list, n);
    write_available(w, "counters", f->counter, n);
    json_close_object(w);
    json_close_array(w);
}

static void write_marks(struct json_writer *w, const struct allocating *spawn)
{
    json_key(w, "metadata");
    json_open_object(w);
    json_key(w, "annotations");
    json_open_object(w);
    if (spawn->tokens[0])
        json_key_text(w, AGONES_TOKENS, str_of(spawn->tokens));
    json_key_text(w, AGONES_TICKET, str_of(spawn->ticket));
    json_key_id(w, AGONES_SERVER, spawn->server);
    json_key_id(w, AGONES_SESSION, spawn->session);
    json_key_text(w, AGONES_INSTANCE, str_of(spawn->agones->instance));
    json_close_object(w);
    json_close_object(w);
}

/* Agones counts players where the fleet wants it to: in a list of their tokens, or as a number. */
static void write_counts(struct json_writer *w, const struct allocating *spawn)
{
    const struct agones_fleet *f = &spawn->fleet->config;
    struct str rest = str_of(spawn->tokens), one;
    if (f->list[0]) {
        json_key(w, "lists");
        json_open_object(w);
        json_key(w, f->list);
        json_open_object(w);
        json_key(w, "addValues");
        json_open_array(w);
        while (tokens_next(&rest, &one))
            json_text(w, one);
        json_close_array(w);
        json_close_object(w);
        json_close_object(w);
    }
    if (f->counter[0]) {
        json_key(w, "counters");
        json_open_object(w);
        json_key(w, f->counter);
        json_open_object(w);
        json_key_text(w, "action", STR("Increment"));
        json_key_int(w, "amount", count_tokens(spawn->tokens));
        json_close_object(w);
        json_close_object(w);
    }
}

static struct str write_allocation(const struct allocating *spawn)
{
    struct buf *out = &spawn->agones->body;
    struct json_writer w = {.out = out};
    buf_clear(out);
    json_open_object(&w);
    json_key_text(&w, "apiVersion", STR("allocation.agones.dev/v1"));
    json_key_text(&w, "kind", STR("GameServerAllocation"));
    json_key(&w, "spec");
    json_open_object(&w);
    write_selector(&w, spawn);
    write_marks(&w, spawn);
    write_counts(&w, spawn);
    json_close_object(&w);
    json_close_object(&w);
    return (struct str){(const char *)out->data, out->len};
}

/* ── the answer ────────────────────────────────────────────────────────────────────────────── */

/* Nobody knows whether it came about. */
static void unanswered(struct allocating *spawn, const char *why)
{
    struct agones *a = spawn->agones;
    char quoted[LOG_QUOTE_MAX + 8];
    log_line(LOG_WARN, "an allocation was not answered", "server=%" PRId64 " fleet=%s why=%s",
             spawn->server, spawn->fleet->config.fleet, log_quote(quoted, str_of(why)));
    spawn->needs = spawn->fleet->listing + 1;
    spawn->due_ms =
        a->now_ms + agones_pause_ms(a, spawn->tries++, UNANSWERED_MS, UNANSWERED_MOST_MS);
}

static void again(struct allocating *spawn, int64_t ms)
{
    spawn->due_ms = spawn->agones->now_ms + ms;
}

static void take_answer(struct allocating *spawn, const struct allocated *answer)
{
    struct agones *a = spawn->agones;
    if (answer->state == ALLOCATED_YES)
        gameserver_presume(spawn, answer); /* and ends the spawn */
    else if (answer->state == ALLOCATED_NO)
        no_capacity(spawn);
    else if (++spawn->contended > CONTENTION_MAX)
        fail(spawn, false, "too many allocations of the fleet collide");
    else
        again(spawn,
              agones_pause_ms(a, spawn->contended - 1, CONTENTION_FIRST_MS, CONTENTION_MOST_MS));
}

static void refused(struct allocating *spawn, const struct http_reply *reply)
{
    struct agones *a = spawn->agones;
    char why[AGONES_WHY_MAX];
    int status = reply->status;
    if (status == 0) {
        unanswered(spawn, reply->why);
        return;
    }
    (void)agones_refusal(status, reply->body, why);
    if (status == 401)
        identity_refresh(a, true);
    if (status >= 500)
        unanswered(spawn, why);
    else if (status == 401 || status == 409 || status == 429)
        again(spawn, agones_pause_ms(a, spawn->tries++, CONTENTION_FIRST_MS, UNANSWERED_MOST_MS));
    else
        fail(spawn, false, why);
}

static void on_answer(void *user, const struct http_reply *reply)
{
    struct allocating *spawn = user;
    struct agones *a = spawn->agones;
    char why[JSON_WHY_MAX];
    struct allocated answer;
    spawn->call = NULL;
    a->n_posts--;
    if (spawn->settled) {
        allocating_free(spawn);
        return;
    }
    if (reply->status < 200 || reply->status > 299) {
        refused(spawn, reply);
        return;
    }
    struct json *root = json_parse(reply->body, why);
    if (root && allocated_read(root, spawn->fleet->config.port, &answer))
        take_answer(spawn, &answer);
    else
        unanswered(spawn, "the answer cannot be understood");
    json_free(root);
}

static void post(struct allocating *spawn)
{
    struct agones *a = spawn->agones;
    char url[AGONES_URL_MAX];
    snprintf(url, sizeof(url),
             "%s/apis/allocation.agones.dev/v1/namespaces/%s/gameserverallocations",
             a->identity.url, spawn->fleet->config.namespace);
    struct http_client_request request = {
        .method = HTTP_POST, .url = url, .body = write_allocation(spawn), .once = true};
    spawn->call = http_client_send(a->client, &request, on_answer, spawn);
    if (!spawn->call) {
        again(spawn, UNANSWERED_MS);
        return;
    }
    a->n_posts++;
    a->figures.allocations++;
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

void allocate(struct agones *a, struct cluster_fleet *f, const struct spawn *s)
{
    struct news *n;
    if (map_get(&a->by_server, (uint64_t)s->server) || map_get(&a->spawns, (uint64_t)s->server))
        return; /* said again */
    bool full =
        a->spawns.len >= AGONES_SPAWNS_MAX || f->playing + a->spawns.len >= CLUSTER_SERVERS_MAX;
    if (full) {
        n = news_add(a, NEWS_FAILED, f, s->server);
        snprintf(n->text, sizeof(n->text), "no capacity in fleet '%s'", f->config.fleet);
        return;
    }
    struct allocating *spawn = xcalloc(1, sizeof(*spawn));
    int64_t within_ms = s->within_ms > WITHIN_LEAST_MS ? s->within_ms : WITHIN_LEAST_MS;
    spawn->agones = a;
    spawn->fleet = f;
    spawn->server = s->server;
    spawn->session = s->session;
    spawn->ticket = copy(s->ticket);
    spawn->tokens = copy(s->tokens);
    spawn->give_up_ms = a->now_ms + within_ms;
    list_init(&spawn->changes);
    list_init(&spawn->taken);
    list_append(&a->allocating, &spawn->in_list);
    map_put(&a->spawns, (uint64_t)spawn->server, spawn);
}

static void give_up(struct allocating *spawn)
{
    struct news *n = news_add(spawn->agones, NEWS_EXITED, spawn->fleet, spawn->server);
    snprintf(n->text, sizeof(n->text), "It was given up before it was allocated");
    spawn->settled = true;
    route_cleared(spawn, true);
    allocating_free(spawn);
}

/* One that may have come about is not forgotten before a list has shown what it is: its tokens are
 * there, and it must be ended. */
static void too_late(struct allocating *spawn, bool unknown)
{
    static const char why[] = "the cluster did not allocate a server in time";
    if (!unknown) {
        fail(spawn, true, why);
        return;
    }
    tell_failed(spawn, true, why);
    spawn->doomed = true;
}

/* Its tokens may be in several places as far as we know, and each removal is found on its own: so
 * it is looked for them until they are nowhere. */
static void ask(struct allocating *spawn)
{
    if (spawn->waits > 0 || spawn->agones->n_posts >= AGONES_POSTS_AT_ONCE)
        return;
    if (!spawn->cleared && !route_may_clear(spawn))
        return;
    route_clear(spawn);
    if (spawn->waits == 0)
        post(spawn);
}

static void run(struct allocating *spawn)
{
    struct agones *a = spawn->agones;
    struct cluster_fleet *f = spawn->fleet;
    bool unknown = spawn->needs > f->listed;
    if (spawn->call)
        return;
    if (spawn->doomed && !unknown)
        give_up(spawn);
    else if (a->now_ms >= spawn->give_up_ms && !spawn->doomed)
        too_late(spawn, unknown);
    else if (a->now_ms < spawn->due_ms || !f->synced)
        return;
    else if (unknown)
        cluster_fleet_list(f, spawn->needs);
    else
        ask(spawn);
}

void allocating_run(struct agones *a)
{
    LIST_EACH(&a->allocating, spawn, struct allocating, in_list)
    {
        run(spawn);
    }
}
