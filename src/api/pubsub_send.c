/* What leaves: results and dead letters to their topics, ids of messages that are done with. Each
 * waits in a queue of which one batch is under way, so results leave in their order, and whatever
 * gathers meanwhile is the next batch. A batch that failed goes back to the front, as it was. */
#include "api/pubsub_parts.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXTEND_BY_S = 60,
    EXTEND_AGAIN_MS = 30 * 1000,
    EXTEND_END_MS = 600 * 1000, /* then it may come again: a repeat does no harm */
    ACKS_MAX = 20 * 1000,       /* ids that wait; the oldest are forgotten, and come again */
};

/* ── queues ────────────────────────────────────────────────────────────────────────────────── */

void pubsub_queue_init(struct pubsub_queue *q)
{
    list_init(&q->waiting);
    list_init(&q->sent);
}

static void item_free(struct pubsub_queue *q, struct pubsub_item *item)
{
    list_remove(&item->in_list);
    buf_done(&item->json);
    free(item);
    q->n--;
}

static struct pubsub_item *first(const struct list *list)
{
    struct link *n = list_first(list);
    return n ? container_of(n, struct pubsub_item, in_list) : NULL;
}

static void free_all(struct pubsub_queue *q, struct list *list)
{
    struct pubsub_item *item;
    while ((item = first(list)))
        item_free(q, item);
}

void pubsub_queue_done(struct pubsub_queue *q)
{
    free_all(q, &q->waiting);
    free_all(q, &q->sent);
}

static struct pubsub_item *add(struct pubsub_queue *q)
{
    struct pubsub_item *item = xcalloc(1, sizeof(*item));
    list_append(&q->waiting, &item->in_list);
    q->n++;
    return item;
}

static void put_back(struct pubsub_queue *q)
{
    list_move_all(&q->sent, &q->waiting);
    list_move_all(&q->waiting, &q->sent);
}

/* Moves a batch to `sent` and writes {"key":[…]}. */
static void take_batch(struct pubsub_queue *q, const char *key, size_t n_max, size_t bytes_max,
                       struct json_writer *w)
{
    struct pubsub_item *item;
    json_open_object(w);
    json_key(w, key);
    json_open_array(w);
    for (size_t n = 0; n < n_max && (item = first(&q->waiting)); n++) {
        if (n > 0 && w->out->len + item->json.len > bytes_max)
            break;
        json_raw(w, (struct str){(const char *)item->json.data, item->json.len});
        list_remove(&item->in_list);
        list_append(&q->sent, &item->in_list);
    }
    json_close_array(w);
}

/* ── publishing ────────────────────────────────────────────────────────────────────────────── */

static void put_data(struct json_writer *w, struct str body)
{
    size_t len = sodium_base64_ENCODED_LEN(body.len, sodium_base64_VARIANT_ORIGINAL);
    char *text = xmalloc(len);
    sodium_bin2base64(text, len, (const unsigned char *)body.at, body.len,
                      sodium_base64_VARIANT_ORIGINAL);
    json_key_text(w, "data", (struct str){text, len - 1});
    free(text);
}

void pubsub_publish(struct bus *b, const struct bus_result *r)
{
    struct pubsub *p = container_of(b, struct pubsub, bus);
    struct pubsub_item *item = add(&p->results);
    struct json_writer w = {.out = &item->json};
    item->allocation = r->allocation;
    item->state = r->state;
    item->news = r->news;
    json_open_object(&w);
    put_data(&w, r->body);
    json_key(&w, "attributes");
    json_open_object(&w);
    json_key_text(&w, "type", STR("allocation-result"));
    json_key_text(&w, "ticketId", r->name);
    json_key_text(&w, "status", str_of(r->status));
    json_close_object(&w);
    json_close_object(&w);
    pubsub_wake(p);
}

static void on_published(void *user, const struct http_reply *reply)
{
    struct pubsub *p = user;
    struct pubsub_item *item;
    if (!pubsub_ended(p, STREAM_PUBLISH, reply)) {
        put_back(&p->results);
        return;
    }
    while ((item = first(&p->results.sent))) {
        int64_t allocation = item->allocation;
        int8_t state = item->state;
        bool news = item->news;
        item_free(&p->results, item);
        p->figures.published++;
        if (!news)
            bus_published(&p->bus, allocation, state);
    }
}

/* ── dead letters ──────────────────────────────────────────────────────────────────────────── */

/* It has been logged by the bus, so it is not lost without a trace. */
static void give_up(struct pubsub *p, struct pubsub_item *item, const char *why)
{
    log_line(LOG_ERROR, "a dead letter could not be kept and is forgotten", "topic=%s why=\"%s\"",
             p->dead_topic, why);
    bus_message message = item->message;
    item_free(&p->dead, item);
    pubsub_acknowledge(&p->bus, message);
}

void pubsub_bury(struct bus *b, bus_message id, struct str body, const char *why)
{
    struct pubsub *p = container_of(b, struct pubsub, bus);
    if (!*p->dead_topic) {
        pubsub_acknowledge(b, id);
        return;
    }
    if (p->dead.n >= PUBSUB_DEAD_MAX && first(&p->dead.waiting))
        give_up(p, first(&p->dead.waiting), "too many wait for their topic");
    struct pubsub_item *item = add(&p->dead);
    struct json_writer w = {.out = &item->json};
    item->message = id;
    json_open_object(&w);
    put_data(&w, body);
    json_key(&w, "attributes");
    json_open_object(&w);
    json_key_text(&w, "why", str_of(why));
    json_key_text(&w, "subscription", str_of(*p->subscription ? p->subscription : "push"));
    json_close_object(&w);
    json_close_object(&w);
    pubsub_wake(p);
}

static bool is_refused_for_good(const struct http_reply *reply)
{
    return reply->status == 400 || reply->status == 413;
}

static void on_buried(void *user, const struct http_reply *reply)
{
    struct pubsub *p = user;
    struct pubsub_item *item;
    if (!pubsub_ended(p, STREAM_BURY, reply)) {
        bool alone = first(&p->dead.sent)->in_list.next == &p->dead.sent.head;
        put_back(&p->dead);
        p->dead_batch = is_refused_for_good(reply) ? 1 : p->dead_batch;
        if (alone && is_refused_for_good(reply)) {
            give_up(p, first(&p->dead.waiting), "Pub/Sub refused it");
            p->streams[STREAM_BURY].backoff = (struct backoff){0}; /* of the next it is not known */
        }
        return;
    }
    p->dead_batch = PUBSUB_BATCH_MAX;
    while ((item = first(&p->dead.sent))) {
        bus_message message = item->message;
        item_free(&p->dead, item);
        pubsub_acknowledge(&p->bus, message);
    }
}

/* ── acknowledging ─────────────────────────────────────────────────────────────────────────── */

void pubsub_acknowledge(struct bus *b, bus_message id)
{
    struct pubsub *p = container_of(b, struct pubsub, bus);
    struct pubsub_message *m = map_get(&p->messages, id);
    if (!m)
        return;
    conn_id call = m->call;
    if (m->ack_id) {
        struct pubsub_item *item = add(&p->acks);
        struct json_writer w = {.out = &item->json};
        json_text(&w, str_of(m->ack_id));
        if (p->acks.n > ACKS_MAX && first(&p->acks.waiting))
            item_free(&p->acks, first(&p->acks.waiting));
    }
    pubsub_message_free(p, m);
    if (call)
        pubsub_push_done(p, call);
    pubsub_wake(p);
}

static void on_acknowledged(void *user, const struct http_reply *reply)
{
    struct pubsub *p = user;
    if (!pubsub_ended(p, STREAM_ACK, reply) && reply->status != 400)
        put_back(&p->acks);
    else
        free_all(&p->acks, &p->acks.sent); /* one that was refused comes again */
}

/* ── deadlines ─────────────────────────────────────────────────────────────────────────────── */

/* One that fails is not repeated: there is the next, and after that the message comes again. */
static void on_extended(void *user, const struct http_reply *reply)
{
    struct pubsub *p = user;
    (void)pubsub_ended(p, STREAM_EXTEND, reply);
}

/* Writes the ids of those that are due in that list, and moves them to the end of `extended`. */
static size_t take_due(struct pubsub *p, struct list *list, struct json_writer *w, size_t n)
{
    int64_t now_ms = clock_monotonic_ms();
    struct link *l;
    while (n < PUBSUB_BATCH_MAX && w->out->len < PUBSUB_ACK_BYTES && (l = list_first(list))) {
        struct pubsub_message *m = container_of(l, struct pubsub_message, in_age);
        if (m->due_ms > now_ms)
            break;
        if (now_ms - m->came_ms > EXTEND_END_MS) {
            pubsub_message_free(p, m);
            continue;
        }
        json_text(w, str_of(m->ack_id));
        m->due_ms = now_ms + EXTEND_AGAIN_MS;
        list_remove(l);
        list_append(&p->extended, l);
        n++;
    }
    return n;
}

void pubsub_extend(struct pubsub *p)
{
    struct buf body = {0};
    struct json_writer w = {.out = &body};
    if (p->streams[STREAM_EXTEND].under_way > 0 || !pubsub_may(p, STREAM_EXTEND))
        return;
    json_open_object(&w);
    json_key_int(&w, "ackDeadlineSeconds", EXTEND_BY_S);
    json_key(&w, "ackIds");
    json_open_array(&w);
    size_t n = take_due(p, &p->extended, &w, 0);
    n = take_due(p, &p->fresh, &w, n);
    json_close_array(&w);
    json_close_object(&w);
    if (n > 0)
        (void)pubsub_ask(p, STREAM_EXTEND, &body, on_extended, p);
    buf_done(&body);
}

/* ── sending ───────────────────────────────────────────────────────────────────────────────── */

static void send_batch(struct pubsub *p, enum pubsub_kind kind, struct pubsub_queue *q,
                       const char *key, size_t n_max, size_t bytes_max, http_done *done)
{
    struct buf body = {0};
    struct json_writer w = {.out = &body};
    if (p->streams[kind].under_way > 0 || list_empty(&q->waiting) || !pubsub_may(p, kind))
        return;
    take_batch(q, key, n_max, bytes_max, &w);
    json_close_object(&w);
    if (!pubsub_ask(p, kind, &body, done, p))
        put_back(q);
    buf_done(&body);
}

void pubsub_send(struct pubsub *p)
{
    send_batch(p, STREAM_PUBLISH, &p->results, "messages", PUBSUB_BATCH_MAX, PUBSUB_BATCH_BYTES,
               on_published);
    send_batch(p, STREAM_BURY, &p->dead, "messages", p->dead_batch, PUBSUB_BATCH_BYTES, on_buried);
    send_batch(p, STREAM_ACK, &p->acks, "ackIds", PUBSUB_BATCH_MAX, PUBSUB_ACK_BYTES,
               on_acknowledged);
}
