#include "api/conn.h"

#include "api/metrics.h"
#include "api/note.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { REASON_MAX = 160 };

/* What a peer can make us keep before we know who it is. */
static const struct stream_limits young_limits = {.input_max = 4096, .output_cap = 16 * 1024};

static const bool may_move[CONN_STATES][CONN_STATES] = {
    [CONN_NEW] = {[CONN_ASKING] = true, [CONN_CLOSING] = true},
    [CONN_ASKING] = {[CONN_OPEN] = true, [CONN_CLOSING] = true},
    [CONN_OPEN] = {[CONN_LEAVING] = true, [CONN_CLOSING] = true},
    [CONN_LEAVING] = {[CONN_CLOSING] = true},
};

static void move_to(struct conn *c, enum conn_state state)
{
    static const char *const names[CONN_STATES] = {"new", "asking", "open", "leaving", "closing"};
    assert(may_move[c->state][state]);
    c->state = state;
    if (log_enabled(LOG_DEBUG))
        log_line(LOG_DEBUG, "connection", "port=%s conn=%" PRIu64 " state=%s", c->door->port->name,
                 c->id, names[state]);
}

void conn_update_reading(struct conn *c)
{
    bool read = c->state == CONN_NEW || (c->state == CONN_OPEN && !c->door->held);
    if (read && !c->door->doors->stopping)
        stream_resume(c->stream);
    else
        stream_pause(c->stream);
}

static const struct buf *encode(struct conn *c, const struct chat_message *m)
{
    struct buf *frame = &c->door->doors->frame;
    buf_clear(frame);
    chat_encode(frame, m);
    c->door->figures.sent_bytes += (int64_t)frame->len;
    return frame;
}

static void send_message(struct conn *c, const struct chat_message *m)
{
    const struct buf *frame = encode(c, m);
    stream_send(c->stream, frame->data, frame->len);
}

/* A yes that changes nothing for whoever hears it. When much is going on, it can wait for the next
 * message to the same peer. */
static bool can_wait(const struct conn *c, const struct effect *e)
{
    return c->door->doors->crowded && e->kind == EFFECT_MATCH_ENDED && e->err == 0;
}

/* The connection is over for us. Core is told at the end of the turn, since this may be called from
 * within a release of effects. */
static void leave(struct conn *c)
{
    struct doors *d = c->door->doors;
    move_to(c, CONN_CLOSING);
    map_remove(&d->conns, c->id);
    list_remove(&c->timed);
    list_remove(&c->leaving);
    if (c->owes_gone)
        list_append(&d->gone, &c->gone);
}

/* Says the last word and hangs up when it has been written. */
static void hang_up(struct conn *c, struct str text)
{
    send_message(c, &(struct chat_message){.kind = CHAT_ERROR, .error = {.message = text}});
    leave(c);
    stream_finish(c->stream);
}

void conn_hang_up(struct conn *c)
{
    hang_up(c, str_of(c->last_words));
}

/* What the peer asked before its mistake is in the open batch or in the one being committed, so it
 * has been answered when two more commits have ended, or when nothing waits any more. */
static void hang_up_when_answered(struct conn *c, const char *text)
{
    c->last_words = xstrdup(text);
    c->commits_left = 2;
    move_to(c, CONN_LEAVING);
    conn_update_reading(c);
    list_append(&c->door->doors->leaving, &c->leaving);
}

static void protocol_error(struct conn *c, const char *command, size_t offset, const char *reason)
{
    char peer[ADDRESS_MAX];
    char text[REASON_MAX + sizeof("Protocol error: ")];
    log_line(LOG_WARN, "protocol error",
             "port=%s peer=%s conn=%" PRIu64 " command=%s offset=%zu reason=\"%s\"",
             c->door->port->name, stream_peer(c->stream, peer), c->id, command, offset, reason);
    snprintf(text, sizeof(text), "%s: %s", err_sentence(ERR_PROTOCOL), reason);
    c->door->figures.protocol_errors++;
    if (c->state == CONN_OPEN)
        hang_up_when_answered(c, text);
    else
        hang_up(c, str_of(text));
}

void conn_too_late(struct conn *c)
{
    bool secured = stream_established(c->stream);
    protocol_error(c, "-", 0, secured ? "no handshake within 5 s" : "no TLS handshake within 5 s");
}

void conn_ping(struct conn *c)
{
    send_message(c, &(struct chat_message){.kind = CHAT_PING});
    if (c->ping_us == 0)
        c->ping_us = clock_monotonic_us();
}

/* The port must have been read: what waits in the kernel may be the answer. */
static bool is_silent(struct conn *c)
{
    bool read = c->state == CONN_OPEN && !c->door->held;
    if (!read)
        c->unanswered = 0;
    return c->door->port->must_pong && c->unanswered >= DOOR_PINGS_MAX;
}

void conn_ping_or_end(struct conn *c)
{
    if (!is_silent(c)) {
        conn_ping(c);
        c->unanswered++;
        return;
    }
    char peer[ADDRESS_MAX];
    log_line(LOG_INFO, "peer does not answer", "port=%s peer=%s conn=%" PRIu64 " pings=%d",
             c->door->port->name, stream_peer(c->stream, peer), c->id, c->unanswered);
    c->door->figures.silent++;
    hang_up(c, STR("Silent for too long"));
}

void conn_tell_gone(struct conn *c)
{
    list_remove(&c->gone);
    if (!c->owes_gone)
        return;
    c->owes_gone = false;
    doors_event(c->door->doors, &(struct event){.kind = EVENT_GONE, .conn = c->id});
}

/* 0 when no PING was under way. */
static int64_t end_ping(struct conn *c)
{
    if (c->ping_us == 0)
        return 0;
    int64_t us = c->door->doors->monotonic_us - c->ping_us;
    c->ping_us = 0;
    return us > 0 ? us : 1;
}

static void on_pong(struct conn *c)
{
    struct doors *d = c->door->doors;
    int64_t us = end_ping(c);
    if (us > 0)
        c->rtt_us = (int32_t)us;
    if (us > 0 && d->metrics)
        metrics_round_trip(d->metrics, c->id, us);
    if (c->owes_gone)
        doors_event(d,
                    &(struct event){.kind = EVENT_PONG, .conn = c->id, .pong.round_trip_us = us});
}

/* From here core knows the connection; the order of these steps is for an answer that comes at
 * once. */
static void ask(struct conn *c)
{
    struct doors *d = c->door->doors;
    move_to(c, CONN_ASKING);
    conn_update_reading(c);
    c->owes_gone = true;
    list_remove(&c->timed);
    c->due_ms = d->monotonic_ms + DOOR_PING_MS;
    list_append(&c->door->pinged, &c->timed);
}

/* The last message to a peer that is not let in. */
static void turn_away(struct conn *c, const struct chat_message *m)
{
    send_message(c, m);
    leave(c);
    stream_finish(c->stream);
}

/* Core has not heard of it and will not; the peer, the log and the figures hear what they would if
 * core had refused it. */
static void refuse(struct conn *c, int err, const char *why)
{
    struct doors *d = c->door->doors;
    char peer[ADDRESS_MAX];
    struct chat_message m;
    struct effect answer = {.kind = c->door->port->greeting, .conn = c->id, .err = err};
    struct effect note = {.kind = EFFECT_NOTE,
                          .note = NOTE_REFUSED,
                          .conn = c->id,
                          .err = err,
                          .region_code = -1,
                          .text = str_of(why)};
    note_log(&note, stream_peer(c->stream, peer));
    if (d->metrics)
        metrics_note(d->metrics, &note, d->monotonic_us, d->wall_ms);
    c->door->port->message(&answer, &m);
    turn_away(c, &m);
}

/* Nobody looked at who it is: neither log nor figures have it as a refusal. */
static void send_on(struct conn *c)
{
    struct doors *d = c->door->doors;
    char sentence[DOOR_SENTENCE_MAX];
    struct chat_message m;
    d->send_on(d->send_on_user, c->door->port, sentence);
    struct effect answer = {.kind = c->door->port->greeting,
                            .conn = c->id,
                            .err = ERR_NOT_THE_LEADER,
                            .wall_ms = d->wall_ms,
                            .text = str_of(sentence)};
    c->door->port->message(&answer, &m);
    turn_away(c, &m);
}

static bool is_admitted(struct conn *c, const struct chat_message *hello)
{
    const struct port *port = c->door->port;
    struct doors *d = c->door->doors;
    char why[ACCESS_WHY_MAX] = "";
    if (d->send_on) {
        send_on(c);
        return false;
    }
    int err = port->judge ? port->judge(d->access, hello, d->wall_ms, why) : 0;
    if (err != 0)
        refuse(c, err, why);
    return err == 0;
}

static void on_message(struct conn *c, const struct port_row *row, const struct chat_message *m)
{
    struct event e;
    if (m->kind == c->door->port->hello && !is_admitted(c, m))
        return;
    port_event(row, c->id, m, &e);
    if (m->kind == c->door->port->hello)
        ask(c);
    doors_event(c->door->doors, &e);
}

static const struct port_row *find_row(const struct door *door, uint16_t code)
{
    for (size_t i = 0; i < door->port->n_rows; i++) {
        if (door->codes[i] == code)
            return &door->port->rows[i];
    }
    return NULL;
}

static enum chat_kind find_kind(const struct port_row *row, uint16_t code)
{
    if (row)
        return row->message;
    if (code == chat_code(CHAT_PING))
        return CHAT_PING;
    return code == chat_code(CHAT_PONG) ? CHAT_PONG : CHAT_KINDS;
}

static void unknown_command(struct conn *c, const char *command)
{
    if (c->said_unknown)
        return;
    c->said_unknown = true;
    char peer[ADDRESS_MAX];
    log_line(LOG_WARN, "unknown command; further ones are not logged",
             "port=%s peer=%s conn=%" PRIu64 " command=%s", c->door->port->name,
             stream_peer(c->stream, peer), c->id, command);
}

/* NULL, or why this frame may not come now. */
static const char *untimely(const struct conn *c, enum chat_kind kind)
{
    if (kind == CHAT_PING || kind == CHAT_PONG)
        return NULL;
    bool hello = kind == c->door->port->hello;
    if (c->state == CONN_NEW)
        return hello ? NULL : "came before the handshake";
    return hello ? "is a second handshake" : NULL;
}

static void on_frame(struct conn *c, const struct frame *f)
{
    const struct port_row *row = find_row(c->door, f->code);
    enum chat_kind kind = find_kind(row, f->code);
    char number[16], reason[REASON_MAX];
    const char *name = number;
    if (kind != CHAT_KINDS)
        name = chat_name(kind);
    else
        snprintf(number, sizeof(number), "0x%04X", f->code);

    const char *why = untimely(c, kind);
    if (why) {
        snprintf(reason, sizeof(reason), "%s %s", name, why);
        protocol_error(c, name, 0, reason);
        return;
    }
    if (kind == CHAT_KINDS) {
        unknown_command(c, name);
        return;
    }
    struct cursor payload = cursor_of(f->payload, f->payload_len);
    struct chat_message m;
    chat_decode(&payload, kind, &m);
    if (cursor_failed(&payload)) {
        snprintf(reason, sizeof(reason), "%s: %s at byte %zu", name, payload.error,
                 payload.error_offset);
        protocol_error(c, name, payload.error_offset, reason);
    } else if (kind == CHAT_PING) {
        send_message(c, &(struct chat_message){.kind = CHAT_PONG});
    } else if (kind == CHAT_PONG) {
        on_pong(c);
    } else {
        on_message(c, row, &m);
    }
}

static void bad_frame(struct conn *c, enum frame_result r, const uint8_t *data, size_t len)
{
    char command[16] = "-";
    if (len >= FRAME_HEADER)
        snprintf(command, sizeof(command), "0x%04X", data[2] | data[3] << 8);
    protocol_error(c, command, 0, frame_error(r));
}

static bool takes_input(const struct conn *c)
{
    return c->state == CONN_NEW || c->state == CONN_OPEN;
}

/* The first bytes of a TLS handshake would pass for the begin of a long frame, and both sides would
 * wait for each other. No frame that may come first has these. */
static bool is_tls(const uint8_t *data, size_t len)
{
    return len >= 3 && data[0] == 22 && data[1] == 3 && data[2] >= 1 && data[2] <= 4;
}

static size_t on_input(void *user, const uint8_t *data, size_t len)
{
    struct conn *c = user;
    struct door *door = c->door;
    size_t used = 0;
    doors_read_clocks(door->doors);
    c->unanswered = 0;
    if (c->state == CONN_NEW && is_tls(data, len)) {
        protocol_error(c, "-", 0, "the peer speaks TLS, and this port does not");
        return len;
    }
    while (takes_input(c)) {
        struct frame f;
        size_t limit = c->state == CONN_NEW ? door->port->hello_max : FRAME_MAX;
        enum frame_result r = frame_next(data + used, len - used, limit, &f);
        if (r == FRAME_PARTIAL)
            break;
        if (r == FRAME_OK)
            on_frame(c, &f);
        else
            bad_frame(c, r, data + used, len - used);
        used += r == FRAME_OK ? f.total : 0;
    }
    door->figures.received_bytes += (int64_t)used;
    doors_hold_if_full(door);
    return c->state >= CONN_LEAVING ? len : used;
}

static void on_closed(void *user, const char *why)
{
    struct conn *c = user;
    struct doors *d = c->door->doors;
    char peer[ADDRESS_MAX];
    const char *tls_error = stream_tls_error(c->stream);
    if (tls_error)
        log_line(LOG_WARN, "TLS failed", "port=%s peer=%s conn=%" PRIu64 " reason=\"%s\"",
                 c->door->port->name, stream_peer(c->stream, peer), c->id, tls_error);
    if (log_enabled(LOG_DEBUG)) {
        log_line(LOG_DEBUG, "disconnected",
                 "port=%s peer=%s conn=%" PRIu64 " reason=\"%s\" rtt_us=%" PRId32,
                 c->door->port->name, stream_peer(c->stream, peer), c->id, why, c->rtt_us);
    }
    c->door->figures.connections--;
    if (why == stream_not_reading)
        c->door->figures.cut++;
    if (c->state != CONN_CLOSING)
        leave(c);
    doors_read_clocks(d);
    conn_tell_gone(c);
    list_remove(&c->in_door);
    free(c->last_words);
    free(c);
}

void conn_open(struct door *door, struct stream *stream)
{
    static const struct stream_ops ops = {.input = on_input, .closed = on_closed};
    struct doors *d = door->doors;
    struct conn *c = xcalloc(1, sizeof(*c));
    *c = (struct conn){.id = ++d->last_id, .door = door, .stream = stream, .rtt_us = -1};
    doors_read_clocks(d);
    c->due_ms = d->monotonic_ms + DOOR_HELLO_MS;
    door->figures.accepted++;
    door->figures.connections++;
    list_append(&door->conns, &c->in_door);
    list_append(&door->young, &c->timed);
    map_put(&d->conns, c->id, c);
    stream_start(stream, &ops, c, &young_limits);
}

static void greet(struct conn *c, const struct effect *e, const struct chat_message *answer)
{
    if (e->err != 0) {
        turn_away(c, answer);
        return;
    }
    send_message(c, answer);
    move_to(c, CONN_OPEN);
    stream_set_limits(c->stream,
                      &(struct stream_limits){LOOP_READ_SIZE, c->door->port->output_cap});
    conn_update_reading(c);
}

void conn_effect(struct conn *c, const struct effect *e)
{
    if (e->kind == EFFECT_PING) {
        conn_ping(c);
        return;
    }
    if (e->kind == EFFECT_CLOSE) {
        hang_up(c, e->text);
        return;
    }
    struct chat_message m;
    c->door->port->message(e, &m);
    if (can_wait(c, e)) {
        const struct buf *frame = encode(c, &m);
        stream_send_along(c->stream, frame->data, frame->len);
        return;
    }
    if (e->kind == c->door->port->greeting)
        greet(c, e, &m);
    else
        send_message(c, &m);
}
