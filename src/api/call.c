#include "api/call.h"

#include "api/agents.h"
#include "api/feed.h"
#include "api/history.h"
#include "api/login.h"
#include "base/clock.h"
#include "base/err.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SPARE_USED_MAX = 32 * 1024, /* an arena that was used more is not kept: it may have grown */
    BODY_ROOM = 512,            /* most answers fit */
};

static const char json_type[] = "application/json";

/* Calls that are over are used again, with the memory of their arguments, which is warm: taking
 * both anew would be the dearest part of a small request. */
static struct call *take(struct rest *r)
{
    if (r->n_spares == 0)
        return xcalloc(1, sizeof(struct call));
    struct call *c = r->spares[--r->n_spares];
    memset(c, 0, offsetof(struct call, arguments)); /* these see call_is */
    return c;
}

static void give(struct rest *r, struct call *c)
{
    if (c->arguments.arena.used > SPARE_USED_MAX || r->n_spares == REST_SPARES) {
        arguments_done(&c->arguments);
        free(c);
        return;
    }
    arena_reset(&c->arguments.arena);
    r->spares[r->n_spares++] = c;
}

void calls_done(struct rest *r)
{
    while (r->n_spares > 0) {
        struct call *c = r->spares[--r->n_spares];
        arguments_done(&c->arguments);
        free(c);
    }
}

struct call *call_new(struct rest *r, struct http_request *http)
{
    struct call *c = take(r);
    c->id = ++r->doors->last_id;
    c->rest = r;
    c->http = http;
    c->began_us = clock_monotonic_us();
    c->status = 200;
    c->file = -1;
    list_init(&c->login);
    map_put(&r->calls, c->id, c);
    http_set_data(http, c);
    return c;
}

void call_is(struct call *c, const struct operation *operation)
{
    c->operation = operation;
    arguments_again(&c->arguments, operation);
}

/* Out of every list: nobody will find it any more. */
static void leave(struct call *c)
{
    struct rest *r = c->rest;
    list_remove(&c->in_list);
    if (c->state == CALL_PATIENT)
        chain_remove(&r->waiting, (uint64_t)c->ticket, &c->by_ticket);
}

static void enter(struct call *c, enum call_state state, struct list *list)
{
    leave(c);
    c->state = state;
    if (list)
        list_append(list, &c->in_list);
}

/* The answer is on its way, whatever others still say. */
static void forget_others(struct call *c)
{
    agent_call_drop(c->agent);
    c->agent = NULL;
    lookup_drop(c->lookup);
    c->lookup = NULL;
    login_forget(&c->login);
}

void call_free(struct call *c)
{
    leave(c);
    forget_others(c);
    map_remove(&c->rest->calls, c->id);
    for (size_t i = 0; i < c->n_numbers; i++)
        map_remove(&c->rest->calls, c->first_number + i);
    feed_close(c->reader);
    deploy_drop(c->upload);
    backup_drop(c->backup);
    if (c->file >= 0)
        close(c->file);
    buf_done(&c->body);
    give(c->rest, c);
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

const struct argument *call_argument(const struct call *c, const char *name)
{
    return arguments_get(&c->arguments, name);
}

const struct core *call_core(const struct call *c)
{
    return pipeline_core(c->rest->doors->pipeline);
}

/* ── rendering ─────────────────────────────────────────────────────────────────────────────── */

struct json_writer call_writer(struct call *c)
{
    if (!c->body.data)
        (void)buf_grow(&c->body, BODY_ROOM);
    buf_clear(&c->body);
    return (struct json_writer){.out = &c->body};
}

void call_render(struct call *c, const struct shape *shape, const void *object)
{
    struct json_writer w = call_writer(c);
    bool has_core = c->rest->doors->pipeline != NULL; /* a standby has none */
    shape_write(&w, shape, object, has_core ? core_config(call_core(c)) : NULL);
}

/* A refusal that may be none when it is asked again. */
static bool is_for_now(const struct call *c)
{
    return c->status == 429 || c->status == 503;
}

void call_retry(struct call *c, struct json_writer *w, int64_t ms)
{
    c->retry_s = ms > 1000 ? (ms + 999) / 1000 : 1;
    if (is_for_now(c))
        json_key_int(w, "retry_after", c->retry_s);
}

static void render_error(struct call *c, int err, const char *argument, const char *message)
{
    struct json_writer w = call_writer(c);
    c->status = err_status(err);
    json_open_object(&w);
    json_key(&w, "error");
    json_open_object(&w);
    json_key_text(&w, "code", str_of(err_code(err)));
    json_key_text(&w, "message", str_of(message));
    if (argument)
        json_key_text(&w, "argument", str_of(argument));
    call_retry(c, &w, 0);
    json_close_object(&w);
    json_close_object(&w);
}

/* An argument that the operation has: others are what the client wrote. */
static bool has_argument(const struct operation *o, const char *name)
{
    for (const struct field *f = o->fields; name && f->name; f++) {
        if (strcmp(f->name, name) == 0)
            return true;
    }
    return false;
}

void call_remember_refusal(const struct call *c, int err, const char *argument)
{
    const uint32_t places = ACCESS_GAME | ACCESS_ALLOCATE;
    const struct operation *o = c->operation;
    if (c->state == CALL_NEW && o && (o->scope & places) && operation_changes(o) &&
        c->who.account[0])
        history_refused(c->rest->lookups.history, c->rest->doors->wall_ms, c->who.account, err,
                        has_argument(o, argument) ? argument : NULL);
}

void call_refuse(struct call *c, int err, const char *argument, const char *format, ...)
{
    char message[ARGUMENTS_WHY_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    render_error(c, err, argument, message);
    call_remember_refusal(c, err, argument);
}

void call_refuse_argument(struct call *c)
{
    render_error(c, ERR_BAD_ARGUMENT, c->arguments.wrong, c->arguments.why);
    call_remember_refusal(c, ERR_BAD_ARGUMENT, c->arguments.wrong);
}

void call_head(struct call *c, const char *name, struct str value)
{
    for (size_t i = 0; i < c->n_head; i++) {
        if (strcmp(c->head[i].name, name) == 0)
            return;
    }
    assert(c->n_head < CALL_HEAD_MAX);
    c->head[c->n_head++] = (struct http_field){name, arena_str(&c->arguments.arena, value).at};
}

/* ── ends ──────────────────────────────────────────────────────────────────────────────────── */

/* What a client that does not read sentences goes by. */
static const struct http_field *head_of(struct call *c)
{
    if (c->status == 401)
        call_head(c, "WWW-Authenticate", STR("Bearer"));
    if (c->status == 405)
        call_head(c, "Allow", str_of(c->allow));
    if (is_for_now(c)) {
        char seconds[24];
        snprintf(seconds, sizeof(seconds), "%" PRId64, c->retry_s);
        call_head(c, "Retry-After", str_of(seconds));
    }
    return c->head;
}

static void count(const struct call *c)
{
    metrics_http(c->rest->metrics, c->operation ? c->operation->name : NULL, c->status,
                 clock_monotonic_us() - c->began_us);
}

void call_answer_as(struct call *c, const char *content_type)
{
    enter(c, CALL_OVER, NULL);
    forget_others(c);
    count(c);
    http_answer(c->http, c->status, content_type, &c->body, head_of(c));
}

void call_answer(struct call *c)
{
    call_answer_as(c, c->content_type && c->status == 200 ? c->content_type : json_type);
}

void call_answer_shared(struct call *c, struct str body)
{
    enter(c, CALL_OVER, NULL);
    count(c);
    http_answer_shared(c->http, c->status, json_type, body, NULL);
}

void call_stream(struct call *c, const char *content_type, http_pull *pull)
{
    enter(c, CALL_STREAMING, NULL);
    count(c);
    http_stream(c->http, content_type, pull, NULL);
}

/* Straight to the pipeline: what was asked for before the doors were closed is still answered. */
static void step(struct call *c, const struct event *e)
{
    struct doors *d = c->rest->doors;
    doors_read_clocks(d);
    c->due_ms = d->monotonic_ms + REST_STORE_MS;
    pipeline_event(d->pipeline, e, d->monotonic_ms, d->wall_ms);
}

void call_read(struct call *c)
{
    enter(c, CALL_STORING, &c->rest->storing);
    http_hold(c->http, c->body.len);
    step(c, &(struct event){.kind = EVENT_READ, .conn = c->id, .at_us = c->began_us});
}

void call_was_read(struct call *c, int err)
{
    if (c->state != CALL_STORING)
        return;
    if (err != 0)
        call_refuse(c, err, NULL, "What was seen could not be stored. Ask again.");
    call_answer(c);
}

void call_operate(struct call *c, struct operate *o, void (*resume)(struct call *c))
{
    const char *key = http_header(c->http, "Idempotency-Key");
    enter(c, CALL_STORING, &c->rest->storing);
    c->resume = resume;
    o->who = str_of(c->who.account);
    o->address = str_of(c->address);
    o->key = str_of(key ? key : "");
    _Static_assert((int)ARGUMENTS_DIGEST == (int)OPERATE_DIGEST, "one digest");
    arguments_digest(&c->arguments, o->arguments);
    step(c, &(struct event){
                .kind = EVENT_OPERATE, .conn = c->id, .at_us = c->began_us, .operate = *o});
}

static void refuse_operated(struct call *c, const struct effect *e)
{
    if (e->err == ERR_NOT_FOUND)
        call_refuse(c, e->err, NULL, "There is no %s %lld.", c->noun, (long long)e->object);
    else if (e->err == ERR_ALREADY_OVER)
        call_refuse(c, e->err, NULL, "The %s %lld is over already.", c->noun, (long long)e->object);
    else if (e->text.len > 0)
        call_refuse(c, e->err, NULL, "%.*s", (int)e->text.len, e->text.at);
    else if (e->err == ERR_INTERNAL)
        call_refuse(c, e->err, NULL, "It cannot be stored now, so nothing was changed.");
    else
        call_refuse(c, e->err, NULL, "%s.", err_sentence(e->err));
}

void call_was_operated(struct call *c, const struct effect *e)
{
    if (c->state != CALL_STORING)
        return;
    if (e->err != 0) {
        refuse_operated(c, e);
        call_answer(c);
        return;
    }
    c->object = e->object;
    c->asked_wall_ms = e->wall_ms;
    c->token = arena_str(&c->arguments.arena, e->token);
    /* Not from within release: what it shows is to be stepped. */
    enter(c, CALL_RESUMING, &c->rest->resuming);
}

conn_id call_numbers(struct call *c, size_t n)
{
    struct rest *r = c->rest;
    assert(c->n_numbers == 0);
    c->first_number = r->doors->last_id + 1;
    c->n_numbers = n;
    r->doors->last_id += n;
    for (size_t i = 0; i < n; i++)
        map_put(&r->calls, c->first_number + i, c);
    return c->first_number;
}

void call_step(struct call *c, struct event *e, int64_t wait_ms, call_hear *hear)
{
    if (c->state != CALL_ASKING)
        enter(c, CALL_ASKING, &c->rest->asking);
    c->hear = hear;
    c->late = NULL;
    if (e->conn == 0)
        e->conn = c->id;
    e->at_us = c->began_us;
    step(c, e);
    c->due_ms = c->rest->doors->monotonic_ms + wait_ms;
}

void call_await(struct call *c, int64_t wait_ms, void (*late)(struct call *c))
{
    enter(c, CALL_ASKING, &c->rest->asking);
    c->hear = NULL;
    c->late = late;
    c->due_ms = c->rest->doors->monotonic_ms + wait_ms;
}

void call_was_answered(struct call *c, const struct effect *e)
{
    if (c->state == CALL_ASKING && c->hear)
        c->hear(c, e);
}

void call_wait(struct call *c, int64_t ticket, int64_t wait_ms, void (*resume)(struct call *c))
{
    enter(c, CALL_PATIENT, &c->rest->patient);
    c->resume = resume;
    c->ticket = ticket;
    c->due_ms = c->rest->doors->monotonic_ms + wait_ms;
    chain_add(&c->rest->waiting, (uint64_t)ticket, &c->by_ticket);
}

void call_wake(struct call *c)
{
    assert(c->state == CALL_PATIENT);
    enter(c, CALL_RESUMING, &c->rest->resuming);
}

void call_give_up(struct call *c)
{
    if (c->state == CALL_ASKING)
        call_refuse(c, ERR_BUSY, NULL, "No answer came in time. What was asked for may happen.");
    else
        call_refuse(c, ERR_BUSY, NULL,
                    "The store has not answered in %d s. What was asked for may still happen.",
                    REST_STORE_MS / 1000);
    call_answer(c);
}

void call_is_late(struct call *c)
{
    if (c->late)
        c->late(c);
    else
        call_give_up(c);
}
