/* A message's way:
 *
 *   pulled ─▶ bus_received … publish ─▶ waiting ─▶ sent ─ the stream has it ─▶ bus_published
 *                                          ▲         │                            │
 *                                          └─────────┘ no word, or a new broker   ▼
 *                                                                            acknowledged
 *
 * JetStream is spoken to as messages, not by libnats' calls for it, which wait for the answer: a
 * pull, a publication and a question are requests whose answers come to our inbox. What is not
 * answered is sent again; the id of a result lets the broker drop the second one. */
#include "api/nats.h"

#include "api/nats_link.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TICK_MS = 250,
    ANSWER_MS = 3000,      /* the broker's time to answer a question, or to store a message */
    SETUP_AGAIN_MS = 1000, /* stream or consumer could not be had */
    LAG_MS = 5000,         /* how often we ask how much waits */
    BATCH = 512,           /* messages of one pull */
    PULL_MS = 5000,        /* how long the broker keeps one */
    WINDOW = 4096,         /* publications without an answer */
    ACK_PENDING = 2 * BUS_UNDER_WAY_MAX,
    MAX_DELIVER = 10,
    ACK_WAIT_MS = 30 * 1000,
    KEEP_HOURS = 24, /* a stream that we make forgets what is older */
    REPLY_MAX = 512,
    NS_PER_MS = 1000000,
};

/*   AWAY ──connected──▶ SETUP ──stream and consumer are there──▶ RUNNING
 *    ▲                   ▲ └─── refused, no answer: again ┘         │
 *    │                   └───── the consumer is gone ───────────────┤
 *    └───────────────────────── the connection is lost ─────────────┘ */
enum nats_state { AWAY, SETUP, RUNNING };

/* The question under way. */
enum asking { NOTHING, STREAM_INFO, STREAM_CREATE, CONSUMER_INFO, CONSUMER_CREATE, LAG };

/* A message of the broker's that is not acknowledged. */
struct held {
    struct link in_held; /* the next to be kept ours is first */
    int64_t due_ms;
    char reply[];
};

/* What the broker shall have. */
struct letter {
    struct link in_list; /* waiting, or sent: the oldest first */
    uint64_t number;
    int64_t sent_ms;
    int64_t allocation;
    int8_t state;
    struct held *buried; /* it is a dead letter, and this is then acknowledged */
    struct str id;       /* these three in `text` */
    struct str why;
    struct str body;
    char text[];
};

struct nats {
    struct bus bus;
    struct doors *doors;
    struct nats_link *link;
    uv_timer_t tick;
    enum nats_state state;
    bool on_hold;
    bool complained; /* of this absence */

    char requests[NATS_SUBJECT_MAX];
    char results[NATS_SUBJECT_MAX];
    char dead[NATS_SUBJECT_MAX];
    char stream[NATS_SUBJECT_MAX];
    char durable[NATS_SUBJECT_MAX];
    int max_deliver;
    int64_t ack_wait_ms;

    enum asking asking;
    uint64_t question; /* its number; an answer to another one is too late */
    int64_t asked_ms;
    int64_t again_ms; /* SETUP: when it is tried again; RUNNING: when the lag is asked for */

    int wanted; /* messages that we have pulled and not got */
    int64_t pulled_ms;
    struct list held;

    struct list waiting;
    struct list sent;
    size_t n_letters;
    size_t n_sent;
    struct map letters; /* number -> struct letter, of those sent */
    uint64_t last_number;

    struct bus_figures figures;
    struct buf scratch;
};

static struct nats *nats_of(const struct bus *b)
{
    return container_of(b, struct nats, bus);
}

static int64_t now_ms(const struct nats *n)
{
    return (int64_t)uv_now(&n->doors->loop->uv);
}

static struct str scratch_text(const struct nats *n)
{
    return (struct str){(const char *)n->scratch.data, n->scratch.len};
}

/* ── questions ─────────────────────────────────────────────────────────────────────────────── */

static void ask(struct nats *n, enum asking what, const char *verb, const char *consumer,
                struct str body)
{
    char subject[3 * NATS_SUBJECT_MAX];
    char reply[2 * NATS_SUBJECT_MAX];
    n->asking = what;
    n->asked_ms = now_ms(n);
    snprintf(subject, sizeof(subject), "$JS.API.%s.%s%s%s", verb, n->stream, *consumer ? "." : "",
             consumer);
    snprintf(reply, sizeof(reply), "%s.api.%" PRIu64, nats_link_inbox(n->link), ++n->question);
    nats_link_send(n->link,
                   &(struct nats_sent){.subject = subject, .reply = str_of(reply), .body = body});
}

static void ask_stream(struct nats *n)
{
    n->state = SETUP;
    ask(n, STREAM_INFO, "STREAM.INFO", "", STR(""));
}

static void make_stream(struct nats *n)
{
    const char *const subjects[] = {n->requests, n->results, n->dead};
    bool seen[3] = {false, strcmp(n->results, n->requests) == 0,
                    strcmp(n->dead, n->requests) == 0 || strcmp(n->dead, n->results) == 0};
    struct json_writer w = {.out = &n->scratch};
    buf_clear(&n->scratch);
    json_open_object(&w);
    json_key_text(&w, "name", str_of(n->stream));
    json_key(&w, "subjects");
    json_open_array(&w);
    for (size_t i = 0; i < 3; i++) {
        if (!seen[i])
            json_text(&w, str_of(subjects[i]));
    }
    json_close_array(&w);
    json_key_text(&w, "retention", STR("limits"));
    json_key_text(&w, "storage", STR("file"));
    json_key_text(&w, "discard", STR("old"));
    json_key_int(&w, "num_replicas", 1);
    json_key_int(&w, "max_consumers", -1);
    json_key_int(&w, "max_msgs", -1);
    json_key_int(&w, "max_bytes", -1);
    json_key_int(&w, "max_age", (int64_t)KEEP_HOURS * 3600 * 1000 * NS_PER_MS);
    json_close_object(&w);
    ask(n, STREAM_CREATE, "STREAM.CREATE", "", scratch_text(n));
}

/* It redelivers for ever: what came too often we bury ourselves, so that it is kept. */
static void make_consumer(struct nats *n)
{
    struct json_writer w = {.out = &n->scratch};
    buf_clear(&n->scratch);
    json_open_object(&w);
    json_key_text(&w, "stream_name", str_of(n->stream));
    json_key(&w, "config");
    json_open_object(&w);
    json_key_text(&w, "durable_name", str_of(n->durable));
    json_key_text(&w, "deliver_policy", STR("all"));
    json_key_text(&w, "ack_policy", STR("explicit"));
    json_key_text(&w, "replay_policy", STR("instant"));
    json_key_text(&w, "filter_subject", str_of(n->requests));
    json_key_int(&w, "ack_wait", n->ack_wait_ms * NS_PER_MS);
    json_key_int(&w, "max_deliver", -1);
    json_key_int(&w, "max_ack_pending", ACK_PENDING);
    json_close_object(&w);
    json_close_object(&w);
    ask(n, CONSUMER_CREATE, "CONSUMER.DURABLE.CREATE", n->durable, scratch_text(n));
}

static void ask_consumer(struct nats *n, enum asking what)
{
    ask(n, what, "CONSUMER.INFO", n->durable, STR(""));
}

/* ── pulling ───────────────────────────────────────────────────────────────────────────────── */

static void pull(struct nats *n)
{
    char subject[3 * NATS_SUBJECT_MAX];
    char reply[2 * NATS_SUBJECT_MAX];
    char body[64];
    if (n->state != RUNNING || n->on_hold || n->wanted > BATCH / 2)
        return;
    snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s", n->stream, n->durable);
    snprintf(reply, sizeof(reply), "%s.pull", nats_link_inbox(n->link));
    snprintf(body, sizeof(body), "{\"batch\":%d,\"expires\":%" PRId64 "}", BATCH,
             (int64_t)PULL_MS * NS_PER_MS);
    nats_link_send(n->link, &(struct nats_sent){
                                .subject = subject, .reply = str_of(reply), .body = str_of(body)});
    n->wanted += BATCH;
    n->pulled_ms = now_ms(n);
}

static void pull_over(struct nats *n, const struct nats_heard *m)
{
    int missing = m->missing >= 0 ? m->missing : BATCH;
    n->wanted = missing < n->wanted ? n->wanted - missing : 0;
    if (m->status == 503 || m->status == 409) {
        n->state = SETUP; /* the consumer is gone, perhaps with its stream, or it has enough */
        n->asking = NOTHING;
        n->again_ms = now_ms(n) + SETUP_AGAIN_MS;
    }
    pull(n);
}

/* ── letters ───────────────────────────────────────────────────────────────────────────────── */

static void end_held(struct nats *n, struct held *h, bool acknowledge)
{
    if (acknowledge && n->state != AWAY)
        nats_link_send(n->link, &(struct nats_sent){.subject = h->reply, .body = STR("+ACK")});
    list_remove(&h->in_held);
    free(h);
}

static void end_letter(struct nats *n, struct letter *l)
{
    if (map_get(&n->letters, l->number) == l) {
        (void)map_remove(&n->letters, l->number);
        n->n_sent--;
    }
    list_remove(&l->in_list);
    n->n_letters--;
    free(l);
}

static void send_letter(struct nats *n, struct letter *l)
{
    char reply[2 * NATS_SUBJECT_MAX];
    snprintf(reply, sizeof(reply), "%s.ok.%" PRIu64, nats_link_inbox(n->link), l->number);
    nats_link_send(n->link, &(struct nats_sent){.subject = l->buried ? n->dead : n->results,
                                                .reply = str_of(reply),
                                                .body = l->body,
                                                .id = l->id,
                                                .why = l->why});
    l->sent_ms = now_ms(n);
    list_remove(&l->in_list);
    list_append(&n->sent, &l->in_list);
}

static void send_more(struct nats *n)
{
    LIST_EACH(&n->waiting, l, struct letter, in_list)
    {
        if (n->state != RUNNING || n->n_sent >= WINDOW)
            return;
        send_letter(n, l);
        n->n_sent++;
        (void)map_put(&n->letters, l->number, l);
    }
}

static struct str put_text(char **at, struct str s)
{
    struct str copy = {*at, s.len};
    if (s.len > 0)
        memcpy(*at, s.at, s.len);
    *at += s.len;
    return copy;
}

static struct letter *add_letter(struct nats *n, struct str id, struct str why, struct str body)
{
    struct letter *l = xmalloc(sizeof(*l) + id.len + why.len + body.len);
    char *at = l->text;
    *l = (struct letter){.number = ++n->last_number};
    l->id = put_text(&at, id);
    l->why = put_text(&at, why);
    l->body = put_text(&at, body);
    list_append(&n->waiting, &l->in_list);
    n->n_letters++;
    return l;
}

static void letter_stored(struct nats *n, struct letter *l)
{
    struct held *buried = l->buried;
    int64_t allocation = l->allocation;
    int8_t state = l->state;
    end_letter(n, l);
    if (buried) {
        end_held(n, buried, true);
    } else {
        n->figures.published++;
        bus_published(&n->bus, allocation, state);
    }
    send_more(n);
}

static void complain(struct nats *n, const char *what, struct str why)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (!n->complained)
        log_line(LOG_WARN, what, "stream=%s consumer=%s why=%s", n->stream, n->durable,
                 log_quote(quoted, why));
    n->complained = true;
}

/* What an answer says went wrong: 0, or an HTTP-like code. */
static int error_of(const struct json *answer, struct str *ret_why)
{
    const struct json *error = answer ? json_member(answer, "error") : NULL;
    const struct json *code = error ? json_member(error, "code") : NULL;
    const struct json *text = error ? json_member(error, "description") : NULL;
    *ret_why = text ? json_get_text(text) : STR("");
    if (!answer)
        return 500;
    return code ? (int)json_get_int(code) : error ? 500 : 0;
}

/* One that was not stored stays among the sent, and is sent again when its time is up. */
static void letter_answered(struct nats *n, uint64_t number, const struct nats_heard *m)
{
    struct letter *l = map_get(&n->letters, number);
    if (!l)
        return;
    if (m->status == 0 && !memmem(m->body.at, m->body.len, "\"error\"", 7)) {
        letter_stored(n, l);
        return;
    }
    char fault[JSON_WHY_MAX];
    struct str why = STR("no stream has that subject");
    struct json *answer = m->status == 0 ? json_parse(m->body, fault) : NULL;
    if (m->status == 0 && error_of(answer, &why) == 0)
        letter_stored(n, l); /* of a stream with such a name */
    else
        complain(n, "NATS does not store a message; it is sent again", why);
    json_free(answer);
}

/* ── the broker is there, or is not ────────────────────────────────────────────────────────── */

static void run(struct nats *n, const struct json *consumer)
{
    const struct json *config = json_member(consumer, "config");
    const struct json *wait = config ? json_member(config, "ack_wait") : NULL;
    if (wait && json_get_int(wait) > 0)
        n->ack_wait_ms = json_get_int(wait) / NS_PER_MS;
    log_line(LOG_INFO, "NATS is there", "stream=%s consumer=%s results_waiting=%zu", n->stream,
             n->durable, n->n_letters);
    n->state = RUNNING;
    n->complained = false;
    n->again_ms = 0;
    n->wanted = 0;
    pull(n);
    send_more(n);
}

static void set_waiting(struct nats *n, const struct json *consumer)
{
    const struct json *pending = json_member(consumer, "num_pending");
    n->figures.waiting = pending ? json_get_int(pending) : -1;
}

static void setup_failed(struct nats *n, struct str why)
{
    complain(n, "NATS cannot be used yet", why);
    n->asking = NOTHING;
    n->again_ms = now_ms(n) + SETUP_AGAIN_MS;
}

static void answered(struct nats *n, enum asking what, const struct json *answer)
{
    struct str why;
    int code = error_of(answer, &why);
    bool missing = code == 404;
    if (code != 0 && !missing) {
        if (what != LAG)
            setup_failed(n, why);
        return;
    }
    switch (what) {
    case STREAM_INFO:
        if (missing)
            make_stream(n);
        else
            ask_consumer(n, CONSUMER_INFO);
        break;
    case STREAM_CREATE:
        ask_consumer(n, CONSUMER_INFO);
        break;
    case CONSUMER_INFO:
    case CONSUMER_CREATE:
        if (missing) {
            make_consumer(n);
        } else {
            set_waiting(n, answer);
            run(n, answer);
        }
        break;
    case LAG:
        if (missing)
            ask_stream(n);
        else
            set_waiting(n, answer);
        break;
    case NOTHING:
        break;
    }
}

static void question_answered(struct nats *n, uint64_t number, const struct nats_heard *m)
{
    char why[JSON_WHY_MAX];
    enum asking what = n->asking;
    if (number != n->question || what == NOTHING)
        return;
    n->asking = NOTHING;
    if (m->status != 0) {
        setup_failed(n, STR("JetStream does not answer; is nats-server started with -js?"));
        n->state = SETUP;
        return;
    }
    struct json *answer = json_parse(m->body, why);
    answered(n, what, answer);
    json_free(answer);
}

static void on_up(void *user)
{
    struct nats *n = user;
    n->complained = false;
    ask_stream(n);
}

static void on_down(void *user, const char *why)
{
    struct nats *n = user;
    char quoted[LOG_QUOTE_MAX + 8];
    if (n->state != AWAY || !n->complained)
        log_line(LOG_WARN, "NATS is away; we try on", "why=%s", log_quote(quoted, str_of(why)));
    n->complained = true;
    n->state = AWAY;
    n->asking = NOTHING;
    LIST_EACH(&n->sent, l, struct letter, in_list)
    {
        (void)map_remove(&n->letters, l->number);
    }
    n->n_sent = 0;
    list_move_all(&n->sent, &n->waiting); /* the sent ones first, as they came */
    list_move_all(&n->waiting, &n->sent);
}

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

/* The broker's address for the acknowledgement tells about the message:
 *   $JS.ACK.<stream>.<consumer>.<delivered>.<seq>.<seq>.<time>.<waiting>
 * with two more parts before the stream in newer ones, and perhaps one at the end. */
struct origin {
    int64_t delivered;
    int64_t sequence;
    int64_t waiting;
};

static struct origin origin_of(const char *reply)
{
    enum { OLD_PARTS = 9, NEW_SHIFT = 2, PARTS_MAX = 16, DELIVERED = 4 };
    const char *parts[PARTS_MAX];
    size_t n = 0;
    for (const char *at = reply; at && n < PARTS_MAX; n++) {
        parts[n] = at;
        at = strchr(at, '.');
        at = at ? at + 1 : NULL;
    }
    if (n < OLD_PARTS)
        return (struct origin){.delivered = 1, .waiting = -1};
    size_t i = DELIVERED + (n > OLD_PARTS ? NEW_SHIFT : 0);
    return (struct origin){.delivered = strtoll(parts[i], NULL, 10),
                           .sequence = strtoll(parts[i + 1], NULL, 10),
                           .waiting = strtoll(parts[i + 4], NULL, 10)};
}

static void bury(struct nats *n, struct held *h, struct str body, const char *why)
{
    char id[2 * NATS_SUBJECT_MAX];
    snprintf(id, sizeof(id), "dead:%s:%" PRId64, n->stream, origin_of(h->reply).sequence);
    add_letter(n, str_of(id), str_of(why), body)->buried = h;
    send_more(n);
}

static void message_came(struct nats *n, const struct nats_heard *m)
{
    if (m->reply.len == 0 || m->reply.len >= REPLY_MAX)
        return; /* not from a stream: nobody could acknowledge it */
    struct held *h = xmalloc(sizeof(*h) + m->reply.len + 1);
    *h = (struct held){.due_ms = now_ms(n) + n->ack_wait_ms / 3};
    memcpy(h->reply, m->reply.at, m->reply.len);
    h->reply[m->reply.len] = '\0';
    list_append(&n->held, &h->in_held);
    struct origin o = origin_of(h->reply);
    n->wanted -= n->wanted > 0;
    n->figures.received++;
    n->figures.redelivered += o.delivered > 1;
    n->figures.waiting = o.waiting;
    if (o.delivered > n->max_deliver) {
        char why[64];
        snprintf(why, sizeof(why), "it came %" PRId64 " times", o.delivered);
        log_line(LOG_WARN, "a message came too often; it is a dead letter now",
                 "bus=nats sequence=%" PRId64 " times=%" PRId64, o.sequence, o.delivered);
        n->bus.unreadable++;
        bury(n, h, m->body, why);
    } else {
        bus_received(&n->bus, (bus_message)(uintptr_t)h, m->body, o.delivered > 1);
    }
    pull(n);
}

static bool begins(struct str s, const char *with, struct str *ret_rest)
{
    size_t len = strlen(with);
    if (s.len < len || memcmp(s.at, with, len) != 0)
        return false;
    *ret_rest = (struct str){s.at + len, s.len - len};
    return true;
}

static void on_heard(void *user, const struct nats_heard *m)
{
    struct nats *n = user;
    struct str rest;
    if (!begins(m->subject, nats_link_inbox(n->link), &rest))
        message_came(n, m);
    else if (begins(rest, ".ok.", &rest))
        letter_answered(n, strtoull(rest.at, NULL, 10), m);
    else if (begins(rest, ".api.", &rest))
        question_answered(n, strtoull(rest.at, NULL, 10), m);
    else if (m->status != 0 && n->state == RUNNING)
        pull_over(n, m);
}

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

static void keep_ours(struct nats *n, int64_t now)
{
    LIST_EACH(&n->held, h, struct held, in_held)
    {
        if (h->due_ms > now)
            return;
        nats_link_send(n->link, &(struct nats_sent){.subject = h->reply, .body = STR("+WPI")});
        h->due_ms = now + n->ack_wait_ms / 3;
        list_remove(&h->in_held);
        list_append(&n->held, &h->in_held);
    }
}

static void send_again(struct nats *n, int64_t now)
{
    LIST_EACH(&n->sent, l, struct letter, in_list)
    {
        if (l->sent_ms + ANSWER_MS > now)
            return;
        send_letter(n, l);
    }
}

static void on_tick(uv_timer_t *handle)
{
    struct nats *n = handle->data;
    int64_t now = now_ms(n);
    if (n->state == AWAY)
        return;
    keep_ours(n, now);
    bool overdue = n->asking != NOTHING && n->asked_ms + ANSWER_MS <= now;
    if (n->state == SETUP && (overdue || (n->asking == NOTHING && n->again_ms <= now)))
        ask_stream(n);
    if (n->state != RUNNING)
        return;
    send_again(n, now);
    if (n->pulled_ms + PULL_MS + ANSWER_MS <= now)
        n->wanted = 0; /* the broker has forgotten us */
    pull(n);
    if (n->again_ms <= now) {
        ask_consumer(n, LAG);
        n->again_ms = now + LAG_MS;
    }
}

/* ── as a bus ──────────────────────────────────────────────────────────────────────────────── */

static void nats_start(struct bus *b)
{
    struct nats *n = nats_of(b);
    nats_link_start(n->link);
    uv_timer_start(&n->tick, on_tick, TICK_MS, TICK_MS);
}

/* "ticketId:status". What may not stand in a head, or not in front, is escaped as in a URL: two
 * names must not become one, or the broker would drop a result. */
static struct str write_id(struct nats *n, const struct bus_result *r)
{
    char escape[4];
    buf_clear(&n->scratch);
    for (size_t i = 0; i < r->name.len; i++) {
        unsigned char c = (unsigned char)r->name.at[i];
        if (c > ' ' || (c == ' ' && i > 0)) {
            buf_append(&n->scratch, &c, 1);
        } else {
            snprintf(escape, sizeof(escape), "%%%02X", c);
            buf_append(&n->scratch, escape, 3);
        }
    }
    buf_append(&n->scratch, ":", 1);
    buf_append(&n->scratch, r->status, strlen(r->status));
    return scratch_text(n);
}

static void nats_publish(struct bus *b, const struct bus_result *r)
{
    struct nats *n = nats_of(b);
    if (r->news && n->state != RUNNING)
        return;
    /* What never became an allocation can be asked again under the same name and fail otherwise:
     * with an id the broker would drop that. */
    bool once = !r->news && r->allocation > 0;
    struct letter *l = add_letter(n, once ? write_id(n, r) : STR(""), STR(""), r->body);
    l->allocation = r->allocation;
    l->state = r->state;
    send_more(n);
}

static void nats_acknowledge(struct bus *b, bus_message m)
{
    end_held(nats_of(b), (struct held *)(uintptr_t)m, true);
}

static void nats_bury(struct bus *b, bus_message m, struct str body, const char *why)
{
    bury(nats_of(b), (struct held *)(uintptr_t)m, body, why);
}

static void nats_hold(struct bus *b, bool on)
{
    struct nats *n = nats_of(b);
    n->on_hold = on;
    pull(n);
}

static void nats_figures(const struct bus *b, struct bus_figures *ret)
{
    const struct nats *n = nats_of(b);
    *ret = n->figures;
    ret->connected = n->state == RUNNING;
    ret->unsent = (int64_t)n->n_letters;
    ret->reconnected = nats_link_reconnected(n->link);
}

static void free_nats(uv_handle_t *handle)
{
    free(handle->data);
}

static void nats_free(struct bus *b)
{
    struct nats *n = nats_of(b);
    nats_link_free(n->link);
    list_move_all(&n->waiting, &n->sent);
    LIST_EACH(&n->waiting, l, struct letter, in_list)
    {
        end_letter(n, l);
    }
    LIST_EACH(&n->held, h, struct held, in_held)
    {
        end_held(n, h, false);
    }
    map_done(&n->letters);
    buf_done(&n->scratch);
    uv_close((uv_handle_t *)&n->tick, free_nats);
}

static const struct bus_ops ops = {
    .name = "nats",
    .kind = BUS_NATS,
    .start = nats_start,
    .publish = nats_publish,
    .acknowledge = nats_acknowledge,
    .bury = nats_bury,
    .hold = nats_hold,
    .figures = nats_figures,
    .free = nats_free,
};

/* Subjects may have dots, names may not. */
static bool take_text(char dst[NATS_SUBJECT_MAX], const char *given, const char *otherwise,
                      const char *forbidden)
{
    struct str text = str_of(given && *given ? given : otherwise);
    return str_copy(dst, NATS_SUBJECT_MAX, text) && !strpbrk(dst, forbidden);
}

struct bus *nats_new(struct doors *doors, const struct nats_config *config, char why[NATS_WHY_MAX])
{
    struct nats *n = xcalloc(1, sizeof(*n));
    n->bus.ops = &ops;
    n->doors = doors;
    n->max_deliver = config->max_deliver > 0 ? config->max_deliver : MAX_DELIVER;
    n->ack_wait_ms = config->ack_wait_ms > 0 ? config->ack_wait_ms : ACK_WAIT_MS;
    n->figures.waiting = -1;
    list_init(&n->held);
    list_init(&n->waiting);
    list_init(&n->sent);
    struct nats_hooks hooks = {.heard = on_heard, .up = on_up, .down = on_down, .user = n};
    bool fine =
        take_text(n->requests, config->request_subject, "muster.allocation.request", " \t") &&
        take_text(n->results, config->result_subject, "muster.allocation.result", " \t*>") &&
        take_text(n->dead, config->dead_subject, "muster.allocation.dead", " \t*>") &&
        take_text(n->stream, config->stream, "MUSTER", " \t.*>") &&
        take_text(n->durable, config->durable, "muster", " \t.*>");
    if (!fine)
        snprintf(why, NATS_WHY_MAX, "Cannot use NATS: a subject or a name is no such");
    n->link = fine ? nats_link_new(doors->loop, config, &hooks, why) : NULL;
    if (!n->link) {
        free(n);
        return NULL;
    }
    uv_timer_init(&doors->loop->uv, &n->tick);
    n->tick.data = n;
    return &n->bus;
}
