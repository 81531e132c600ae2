/* POST /v1/pubsub/push: a message that Google brings. The call waits until its message is
 * acknowledged; when that takes longer than Google waits, it is brought again. */
#include "api/call.h"
#include "api/door.h"
#include "api/pubsub_parts.h"
#include "api/shape.h"
#include "base/err.h"
#include "base/json.h"

#include <string.h>
#include <strings.h>

enum { PUSH_MS = 60 * 1000 };

const struct shape pubsub_message_shape = {
    .name = "PubsubMessage",
    .help = "A message of Google Pub/Sub.",
    .rows =
        (const struct shape_row[]){
            {.name = "data",
             .kind = SHAPE_TEXT,
             .help = "a request for an allocation, as POST /v1/allocations takes it, in base64"},
            {.name = "messageId", .kind = SHAPE_TEXT, .may_be_absent = true},
            {.name = "attributes", .kind = SHAPE_JSON, .may_be_absent = true},
            {0},
        },
};

const struct shape pubsub_push_shape = {
    .name = "PubsubPush",
    .help = "What Google Pub/Sub pushes.",
    .rows =
        (const struct shape_row[]){
            {.name = "message", .kind = SHAPE_OBJECT, .shape = &pubsub_message_shape},
            {.name = "subscription", .kind = SHAPE_TEXT, .may_be_absent = true},
            {.name = "deliveryAttempt",
             .kind = SHAPE_INT32,
             .may_be_absent = true,
             .help = "how often it was brought, where the subscription counts that"},
            {0},
        },
};

static const char bearer[] = "Bearer ";

static struct str bearer_of(const struct http_request *r)
{
    const char *header = http_header(r, "Authorization");
    bool fits = header && strncasecmp(header, bearer, strlen(bearer)) == 0;
    return fits ? str_of(header + strlen(bearer)) : (struct str){0};
}

static enum google_verdict check(struct pubsub *p, struct str token, char *why)
{
    doors_read_clocks(p->doors);
    return google_keys_check(p->keys, token, p->audience, p->account, p->doors->wall_ms, why);
}

bool pubsub_may_push(struct bus *b, const struct http_request *r)
{
    char why[GOOGLE_KEYS_WHY_MAX];
    struct pubsub *p = b ? container_of(b, struct pubsub, bus) : NULL;
    struct str token = bearer_of(r);
    return p && p->keys && token.len > 0 && check(p, token, why) == GOOGLE_GOOD;
}

/* 0, or an error with the refusal rendered. */
static int check_token(struct pubsub *p, struct call *c)
{
    char why[GOOGLE_KEYS_WHY_MAX];
    struct str token = bearer_of(c->http);
    int err = ERR_NO_ACCESS_TOKEN;
    if (token.len == 0) {
        call_refuse(c, err, NULL,
                    "Google's token is needed: turn on authentication for the push subscription.");
        return err;
    }
    enum google_verdict verdict = check(p, token, why);
    if (verdict == GOOGLE_GOOD)
        return 0;
    err = verdict == GOOGLE_LATER ? ERR_BUSY : ERR_BAD_ACCESS_TOKEN;
    call_refuse(c, err, NULL, "The token is not taken: %s.", why);
    return err;
}

static int bad(struct call *c, const char *sentence)
{
    call_refuse(c, ERR_BAD_ARGUMENT, NULL, "%s", sentence);
    return ERR_BAD_ARGUMENT;
}

/* What Google wraps around a message: {"message": {"data": …}, "subscription": …}. */
static int read_push(struct call *c, struct buf *ret_body, bool *ret_again)
{
    char why[JSON_WHY_MAX];
    struct json *root = json_parse(http_body(c->http), why);
    int err = 0;
    const struct json *message = NULL, *data = NULL, *attempt = NULL;
    if (root && json_kind(root) == JSON_KIND_OBJECT) {
        message = json_member(root, "message");
        attempt = json_member(root, "deliveryAttempt");
    }
    bool has = message && json_kind(message) == JSON_KIND_OBJECT;
    if (has)
        data = json_member(message, "data");
    if (!has || (data && json_kind(data) != JSON_KIND_TEXT))
        err = bad(c, "The body is no push of Pub/Sub: {\"message\": {\"data\": BASE64}}.");
    else if (data && !pubsub_decode(json_get_text(data), ret_body))
        err = bad(c, "The data of the message is no base64.");
    *ret_again = attempt && json_get_int(attempt) > 1;
    json_free(root);
    return err;
}

static int check_room(const struct pubsub *p, struct call *c)
{
    if (!p->held && p->messages.len < PUBSUB_OUTSTANDING_MAX)
        return 0;
    call_refuse(c, ERR_BUSY, NULL, "Too much waits here, or nothing can be stored.");
    return ERR_BUSY;
}

void pubsub_push(struct bus *b, struct call *c)
{
    struct pubsub *p = b ? container_of(b, struct pubsub, bus) : NULL;
    struct buf body = {0};
    bool again = false;
    if (!p || !p->keys) {
        call_refuse(c, ERR_NOT_FOUND, NULL, "Nobody may push here: it is not configured.");
        call_answer(c);
        return;
    }
    int err = check_token(p, c);
    if (err == 0)
        err = check_room(p, c);
    if (err == 0)
        err = read_push(c, &body, &again);
    if (err != 0) {
        call_answer(c);
    } else {
        struct pubsub_message *m = pubsub_message_new(p, NULL, c->id);
        p->rest = c->rest;
        p->figures.received++;
        p->figures.redelivered += again;
        call_await(c, PUSH_MS, NULL);
        bus_received(b, m->id, (struct str){(const char *)body.data, body.len}, again);
    }
    buf_done(&body);
}

void pubsub_push_done(struct pubsub *p, conn_id call)
{
    struct call *c = map_get(&p->rest->calls, call);
    if (!c || c->state != CALL_ASKING)
        return; /* Google did not wait, or we did not; it brings the message again */
    c->status = 204;
    buf_clear(&c->body);
    call_answer(c);
}

void handle_pubsub_push(struct call *c)
{
    pubsub_push(c->rest->pubsub, c);
}
