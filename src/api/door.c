#include "api/door.h"

#include "api/conn.h"
#include "api/metrics.h"
#include "api/note.h"
#include "base/clock.h"
#include "base/log.h"

#include <assert.h>

enum { READINGS_MAX = 10, SAME_US = 1000 };

void doors_init(struct doors *d, struct loop *loop)
{
    *d = (struct doors){.loop = loop};
    list_init(&d->gone);
    list_init(&d->leaving);
    doors_read_clocks(d);
    d->ticked_ms = d->monotonic_ms;
}

void doors_done(struct doors *d)
{
    assert(d->conns.len == 0);
    map_done(&d->conns);
    buf_done(&d->frame);
}

/* Times that are shown are core's plus the distance between the two clocks, and a match must not
 * have begun a millisecond earlier each time somebody looks. The distance seems larger by as much
 * as this process was made to wait between the two readings. A difference beyond that is a clock
 * that was set, and is believed at once: a token that has expired must not be accepted because the
 * machine is busy. Microseconds, because what is cut to milliseconds before it is compared can seem
 * to differ by two of them more. */
int64_t doors_distance(int64_t known_us, int64_t read_us, int64_t waited_us)
{
    bool same = known_us >= read_us - waited_us - SAME_US && known_us <= read_us + SAME_US;
    return same ? known_us : read_us;
}

/* A new distance that was read slowly is too large, so it is read again. */
void doors_read_clocks(struct doors *d)
{
    int64_t known_us = d->apart_us;
    int64_t waited_us = 0;
    int i = 0;
    do {
        d->monotonic_us = clock_monotonic_us();
        int64_t read_us = clock_wall_us() - d->monotonic_us;
        waited_us = clock_monotonic_us() - d->monotonic_us;
        d->apart_us = doors_distance(known_us, read_us, waited_us);
    } while (d->apart_us != known_us && waited_us >= SAME_US && ++i < READINGS_MAX);
    d->monotonic_ms = d->monotonic_us / 1000;
    d->wall_ms = d->monotonic_ms + d->apart_us / 1000;
}

void doors_event(struct doors *d, struct event *e)
{
    e->at_us = d->monotonic_us;
    if (!d->stopping)
        pipeline_event(d->pipeline, e, d->monotonic_ms, d->wall_ms);
}

static void on_accepted(void *user, struct stream *stream)
{
    conn_open(user, stream);
}

int doors_open(struct doors *d, const struct port *port, const struct listener_place *place,
               const char **ret_why)
{
    assert(d->n < DOORS_MAX && port->n_rows <= PORT_ROWS_MAX);
    struct door *door = &d->all[d->n];
    *door = (struct door){.doors = d, .port = port};
    list_init(&door->conns);
    list_init(&door->young);
    list_init(&door->pinged);
    for (size_t i = 0; i < port->n_rows; i++)
        door->codes[i] = chat_code(port->rows[i].message);
    int err = listener_start(d->loop, place, on_accepted, door, &door->listener, ret_why);
    if (err == 0)
        d->n++;
    return err;
}

void doors_release(struct doors *d, const struct effect *effects, size_t n)
{
    d->crowded = n >= DOOR_CROWD;
    for (size_t i = 0; i < n; i++) {
        struct conn *c = effects[i].conn ? map_get(&d->conns, effects[i].conn) : NULL;
        if (effects[i].kind == EFFECT_NOTE) {
            char peer[ADDRESS_MAX];
            note_log(&effects[i], c ? stream_peer(c->stream, peer) : NULL);
            if (d->metrics)
                metrics_note(d->metrics, &effects[i], d->monotonic_us, d->wall_ms);
        } else if (c) {
            conn_effect(c, &effects[i]);
        }
    }
}

/* The connection that waits longest, when its time has come. */
static struct conn *first_due(const struct list *l, int64_t now_ms)
{
    struct link *n = list_first(l);
    struct conn *c = n ? container_of(n, struct conn, timed) : NULL;
    return c && c->due_ms <= now_ms ? c : NULL;
}

static void tick_door(struct door *door)
{
    int64_t now_ms = door->doors->monotonic_ms;
    struct conn *c;
    while ((c = first_due(&door->young, now_ms)))
        conn_too_late(c);
    while ((c = first_due(&door->pinged, now_ms))) {
        c->due_ms = now_ms + DOOR_PING_MS;
        list_remove(&c->timed);
        list_append(&door->pinged, &c->timed);
        conn_ping_or_end(c);
    }
}

/* A handshake or a PONG that came while this process was stopped has not been read yet. */
static void forgive(struct door *door, int64_t gap_ms)
{
    LIST_EACH(&door->pinged, c, struct conn, timed)
    {
        c->unanswered = 0;
    }
    LIST_EACH(&door->young, c, struct conn, timed)
    {
        c->due_ms += gap_ms;
    }
}

void doors_tick(struct doors *d)
{
    doors_read_clocks(d);
    int64_t gap_ms = d->monotonic_ms - d->ticked_ms;
    d->ticked_ms = d->monotonic_ms;
    for (size_t i = 0; i < d->n; i++) {
        if (gap_ms > DOOR_GAP_MS)
            forgive(&d->all[i], gap_ms);
        tick_door(&d->all[i]);
    }
}

void doors_before_flush(struct doors *d)
{
    LIST_EACH(&d->gone, c, struct conn, gone)
    {
        conn_tell_gone(c);
    }
}

void doors_committed(struct doors *d)
{
    LIST_EACH(&d->leaving, c, struct conn, leaving)
    {
        if (--c->commits_left <= 0)
            conn_hang_up(c);
    }
}

static void update_reading(struct door *door)
{
    LIST_EACH(&door->conns, c, struct conn, in_door)
    {
        conn_update_reading(c);
    }
}

void doors_hold_if_full(struct door *door)
{
    if (!door->doors->pipeline || door->held ||
        pipeline_backlog(door->doors->pipeline) <= door->port->backlog_max)
        return;
    door->held = true;
    log_line(LOG_WARN, "port waits for the store", "port=%s", door->port->name);
    update_reading(door);
}

static void resume_held(struct doors *d)
{
    for (size_t i = 0; i < d->n; i++) {
        struct door *door = &d->all[i];
        if (!door->held || pipeline_backlog(d->pipeline) > door->port->backlog_max / 2)
            continue;
        door->held = false;
        log_line(LOG_INFO, "port is read again", "port=%s", door->port->name);
        update_reading(door);
    }
}

void doors_after_flush(struct doors *d)
{
    if (!pipeline_busy(d->pipeline)) {
        LIST_EACH(&d->leaving, c, struct conn, leaving)
        {
            conn_hang_up(c);
        }
    }
    if (!d->stopping)
        resume_held(d);
}

void doors_stop(struct doors *d)
{
    d->stopping = true;
    for (size_t i = 0; i < d->n; i++) {
        listener_stop(d->all[i].listener);
        d->all[i].listener = NULL;
        update_reading(&d->all[i]);
    }
}

size_t doors_unsent(const struct doors *d)
{
    size_t sum = 0;
    for (size_t i = 0; i < d->n; i++) {
        LIST_EACH(&d->all[i].conns, c, struct conn, in_door)
        {
            sum += stream_unsent(c->stream);
        }
    }
    return sum;
}

void doors_close(struct doors *d)
{
    for (size_t i = 0; i < d->n; i++) {
        LIST_EACH(&d->all[i].conns, c, struct conn, in_door)
        {
            stream_close(c->stream, "we stop");
        }
    }
}
