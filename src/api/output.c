/* What spawned servers print and are told: asked of the agent that holds them. */
#include "api/agents.h"
#include "api/browse.h"
#include "api/resource_room.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    AGENT_MS = 6000,          /* a little more than agents.c gives it */
    QUIET_MS = 2000,          /* a follower of a silent server is told that all is well */
    UNREAD_MAX = 1024 * 1024, /* lines that a follower has not taken */
    DETAIL_MAX = 120,         /* of a line, for the audit */
};

static const char text_type[] = OUTPUT_CONTENT_TYPE;

/* ── whom to ask ───────────────────────────────────────────────────────────────────────────── */

/* The room of a spawned server; false with the refusal. */
static bool find_room(struct call *c, struct view_room *ret)
{
    struct view_server registered;
    int64_t id = call_argument(c, "id")->number;
    int64_t room = view_room_of_server(call_core(c), id);
    if (room != 0 && view_room(call_core(c), room, ret))
        return true;
    if (view_server(call_core(c), id, &registered))
        call_refuse(c, ERR_WRONG_PROVIDER, "id",
                    "Server %" PRId64 " registered by itself, so no agent holds it.", id);
    else
        call_refuse(c, ERR_NOT_FOUND, "id", "There is no server %" PRId64 ".", id);
    return false;
}

/* The agent's URL; NULL with the refusal. */
static const char *find_agent(struct call *c, const struct view_room *room)
{
    struct view_host host;
    if (view_host(call_core(c), room->host, &host))
        return host.url;
    call_refuse(c, ERR_HOST_AWAY, NULL, "The host of server %" PRId64 " is not known any more.",
                room->server);
    return NULL;
}

/* An agent refused, or was not there. */
static void refuse_for_agent(struct call *c, const struct http_reply *reply)
{
    char why[AGENTS_WHY_MAX];
    agents_why(reply, why);
    if (reply->status == 404)
        call_refuse(c, ERR_NOT_FOUND, "id", "The agent does not hold this server: %s", why);
    else
        call_refuse(c, ERR_HOST_AWAY, NULL, "The agent cannot be asked: %s.", why);
}

static void refuse_busy(struct call *c)
{
    call_refuse(c, ERR_BUSY, NULL, "Too many requests to agents are under way.");
    call_answer(c);
}

/* ── logs ──────────────────────────────────────────────────────────────────────────────────── */

/* What Muster itself kept of a server that is gone. */
static void answer_tail(struct call *c, const struct view_room *room)
{
    buf_clear(&c->body);
    buf_append(&c->body, room->tail.at, room->tail.len);
    if (room->tail.len > 0 && room->tail.at[room->tail.len - 1] != '\n')
        buf_append(&c->body, "\n", 1);
    c->content_type = text_type;
    call_read(c);
}

static bool is_ended(const struct view_room *room)
{
    return strcmp(room->state, "ended") == 0;
}

static void on_logs(void *user, const struct http_reply *reply)
{
    struct call *c = user;
    struct view_room room;
    c->agent = NULL;
    if (reply->status == 200) {
        buf_clear(&c->body);
        buf_append(&c->body, reply->body.at, reply->body.len);
        call_answer_as(c, text_type);
    } else if (find_room(c, &room) && is_ended(&room)) {
        answer_tail(c, &room);
    } else {
        refuse_for_agent(c, reply);
        call_answer(c);
    }
}

static bool pull_logs(void *user, struct http_request *http, struct buf *out, size_t max)
{
    struct call *c = http_data(http);
    size_t n = c->body.len < max ? c->body.len : max;
    (void)user;
    buf_append(out, c->body.data, n);
    buf_consume(&c->body, n);
    return c->body.len > 0 || n > 0 || !c->over;
}

static void begin_stream(struct call *c)
{
    call_stream(c, text_type, pull_logs);
}

static bool on_piece(void *user, struct str piece)
{
    struct call *c = user;
    if (c->state == CALL_ASKING)
        begin_stream(c);
    if (c->body.len + piece.len > UNREAD_MAX)
        return false;
    buf_append(&c->body, piece.at, piece.len);
    http_wake(c->http);
    return true;
}

static void on_followed(void *user, const struct http_reply *reply)
{
    struct call *c = user;
    if (c->state != CALL_STREAMING) {
        on_logs(c, reply);
        return;
    }
    c->agent = NULL;
    c->over = true;
    http_wake(c->http);
}

void handle_logs(struct call *c)
{
    char path[96];
    struct view_room room;
    bool follow = call_argument(c, "follow")->number != 0;
    if (!find_room(c, &room)) {
        call_read(c);
        return;
    }
    const char *url = find_agent(c, &room);
    if (!url && is_ended(&room)) {
        c->status = 200;
        answer_tail(c, &room);
        return;
    }
    if (!url) {
        call_read(c);
        return;
    }
    snprintf(path, sizeof(path), "/servers/%" PRId64 "/logs?lines=%" PRId64 "%s", room.server,
             call_argument(c, "lines")->number, follow ? "&follow=1" : "");
    c->agent =
        agents_ask(c->rest->agents, &(struct agent_request){.what = "logs",
                                                            .method = HTTP_GET,
                                                            .host = room.host,
                                                            .url = url,
                                                            .path = path,
                                                            .each = follow ? on_piece : NULL,
                                                            .done = follow ? on_followed : on_logs,
                                                            .user = c});
    if (c->agent)
        call_await(c, follow ? QUIET_MS : AGENT_MS, follow ? begin_stream : NULL);
    else
        refuse_busy(c);
}

/* ── input ─────────────────────────────────────────────────────────────────────────────────── */

static void on_written(void *user, const struct http_reply *reply)
{
    struct call *c = user;
    c->agent = NULL;
    if (reply->status == 200)
        call_render(c, &written_shape, &(struct written_answer){call_argument(c, "id")->number});
    else
        refuse_for_agent(c, reply);
    call_answer(c);
}

static void write_line(struct call *c)
{
    char path[64];
    struct view_room room;
    struct buf body = {0};
    const char *url = find_room(c, &room) ? find_agent(c, &room) : NULL;
    if (!url) {
        call_read(c);
        return;
    }
    struct json_writer w = {.out = &body};
    json_open_object(&w);
    json_key_text(&w, "line", call_argument(c, "line")->text);
    json_close_object(&w);
    snprintf(path, sizeof(path), "/servers/%" PRId64 "/stdin", room.server);
    c->agent = agents_ask(c->rest->agents,
                          &(struct agent_request){.what = "stdin",
                                                  .method = HTTP_POST,
                                                  .host = room.host,
                                                  .url = url,
                                                  .path = path,
                                                  .body = {(const char *)body.data, body.len},
                                                  .done = on_written,
                                                  .user = c});
    buf_done(&body);
    if (c->agent)
        call_await(c, AGENT_MS, NULL);
    else
        refuse_busy(c);
}

/* Cut where a character ends. */
static struct str cut(struct str line)
{
    size_t len = line.len < DETAIL_MAX ? line.len : DETAIL_MAX;
    while (len > 0 && len < line.len && ((uint8_t)line.at[len] & 0xC0) == 0x80)
        len--;
    return (struct str){line.at, len};
}

/* First the audit, then the line: nobody writes what is not on record. */
void handle_stdin(struct call *c)
{
    struct view_room room;
    int64_t id = call_argument(c, "id")->number;
    if (!find_room(c, &room)) {
        call_read(c);
        return;
    }
    if (is_ended(&room)) {
        call_refuse(c, ERR_ALREADY_OVER, "id", "The server %" PRId64 " is over already.", id);
        call_read(c);
        return;
    }
    struct operate o = {
        .verb = OPERATE_STDIN, .target = id, .detail = cut(call_argument(c, "line")->text)};
    c->noun = "server";
    call_operate(c, &o, write_line);
}
