/* Connections. Letters of one connection arrive in order, each way; between connections anything
 * goes. A cut loses what is under way, and the two ends learn of it at different times: that is how
 * a half-open connection comes about. */
#include "sim/world.h"

#include "base/buf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct wire *wire_open(struct world *w, enum wire_kind kind, int actor)
{
    struct wire *wire = xcalloc(1, sizeof(*wire));
    const struct node *n = plane_door(w);
    *wire = (struct wire){
        .id = ++w->next_conn,
        .kind = kind,
        .actor = actor,
        .node = n->index,
        .plane_open = true,
        .peer_open = true,
        .to_plane_ms = w->now_ms,
        .to_peer_ms = w->now_ms,
        .stalled_until_ms = n->peers_cut_until_ms,
    };
    map_put(&w->wires, wire->id, wire);
    static const char *const kinds[] = {"game", "chat", "client"};
    world_trace(w, "wire   %" PRIu64 " of %s %d to node %d", wire->id, kinds[kind], actor,
                n->index);
    if (!n->pipeline) { /* nobody listens, or he is turned away */
        wire->plane_open = false;
        int64_t wakes_ms = !n->down && node_is_stopped(n) ? n->stopped_until_ms - w->now_ms : 0;
        world_after(w, 1 + wakes_ms, HAPPENS_PEER_CLOSED)->conn = wire->id;
    }
    return wire;
}

struct wire *wire_find(const struct world *w, conn_id id)
{
    return map_get(&w->wires, id);
}

static void forget_if_closed(struct world *w, struct wire *wire)
{
    if (wire->plane_open || wire->peer_open)
        return;
    map_remove(&w->wires, wire->id);
    free(wire);
}

struct letter *letter_new(enum event_kind kind, conn_id conn)
{
    struct letter *l = xcalloc(1, sizeof(*l));
    l->to_plane = true;
    l->event.kind = kind;
    l->event.conn = conn;
    return l;
}

struct str letter_text(struct letter *l, const char *text)
{
    (void)str_copy(l->text, sizeof(l->text), str_of(text));
    return str_of(l->text);
}

/* Mostly a millisecond, sometimes a slow moment. */
static int64_t latency_ms(struct world *w)
{
    return random_chance(&w->random, 5) ? random_between(&w->random, 20, 900)
                                        : random_between(&w->random, 0, 3);
}

static int64_t arrival_ms(struct world *w, const struct wire *wire, int64_t last_ms)
{
    int64_t at = w->now_ms + latency_ms(w);
    if (at < wire->stalled_until_ms)
        at = wire->stalled_until_ms;
    return at > last_ms ? at : last_ms;
}

void wire_to_plane(struct world *w, struct letter *l)
{
    struct wire *wire = wire_find(w, l->event.conn);
    if (!wire || !wire->peer_open) {
        free(l);
        return;
    }
    wire->to_plane_ms = arrival_ms(w, wire, wire->to_plane_ms);
    struct happening *h = world_after(w, wire->to_plane_ms - w->now_ms, HAPPENS_LETTER);
    h->letter = l;
    h->conn = wire->id;
}

void wire_to_peer(struct world *w, const struct effect *effect)
{
    struct wire *wire = wire_find(w, effect->conn);
    if (!wire || !wire->plane_open)
        return;
    struct letter *l = xcalloc(1, sizeof(*l));
    l->effect = *effect;
    l->chat = wire->kind == WIRE_CHAT ? wire->actor : -1;
    l->effect.token = letter_text(l, "");
    if (effect->token.len > 0) {
        (void)str_copy(l->text, sizeof(l->text), effect->token);
        l->effect.token = str_of(l->text);
    }
    wire->to_peer_ms = arrival_ms(w, wire, wire->to_peer_ms);
    struct happening *h = world_after(w, wire->to_peer_ms - w->now_ms, HAPPENS_LETTER);
    h->letter = l;
    h->conn = wire->id;
}

static void peer_hears(struct world *w, const struct wire *wire, const struct effect *effect)
{
    switch (wire->kind) {
    case WIRE_GAME:
        game_hear(w, &w->games[wire->actor], effect);
        break;
    case WIRE_CHAT:
        chat_hear(w, &w->chats[wire->actor], effect);
        break;
    case WIRE_CLIENT:
        client_hear(w, &w->clients[wire->actor], effect);
        break;
    }
}

void wire_arrive(struct world *w, struct letter *l)
{
    conn_id id = l->to_plane ? l->event.conn : l->effect.conn;
    struct wire *wire = wire_find(w, id);
    if (l->to_plane) {
        struct node *n = wire ? &w->nodes[wire->node] : NULL;
        if (n && wire->plane_open && n->pipeline)
            node_event(n, &l->event);
    } else if (wire && wire->peer_open) {
        peer_hears(w, wire, &l->effect);
    } else if (l->chat >= 0) {
        chat_missed(&w->chats[l->chat], &l->effect);
    }
}

static void tell(struct world *w, conn_id id, enum happening_kind kind, int64_t delay_ms)
{
    world_after(w, delay_ms, kind)->conn = id;
}

/* Letters find no wire with the right end open any more, because a cut gives the wire a stall that
 * outlasts the news of its end. */
void wire_cut(struct world *w, struct wire *wire, int64_t plane_learns_ms, int64_t peer_learns_ms)
{
    int64_t last = plane_learns_ms > peer_learns_ms ? plane_learns_ms : peer_learns_ms;
    wire->stalled_until_ms = w->now_ms + last + 1000;
    tell(w, wire->id, HAPPENS_PLANE_CLOSED, plane_learns_ms);
    tell(w, wire->id, HAPPENS_PEER_CLOSED, peer_learns_ms);
    w->result->cuts++;
}

void wire_plane_learns(struct world *w, conn_id id)
{
    struct wire *wire = wire_find(w, id);
    if (!wire || !wire->plane_open)
        return;
    wire->plane_open = false;
    struct event gone = {.kind = EVENT_GONE, .conn = id};
    struct node *n = &w->nodes[wire->node];
    if (n->pipeline)
        node_event(n, &gone);
    wire = wire_find(w, id);
    if (wire)
        forget_if_closed(w, wire);
}

void wire_peer_learns(struct world *w, conn_id id)
{
    struct wire *wire = wire_find(w, id);
    if (!wire || !wire->peer_open)
        return;
    wire->peer_open = false;
    if (wire->kind == WIRE_GAME)
        game_disconnected(w, &w->games[wire->actor]);
    else if (wire->kind == WIRE_CHAT)
        chat_disconnected(w, &w->chats[wire->actor]);
    else
        client_disconnected(w, &w->clients[wire->actor], id);
    forget_if_closed(w, wire);
}

/* The door closes its end and tells core so, as the real one does. */
void wire_closed_by_plane(struct world *w, conn_id id)
{
    tell(w, id, HAPPENS_PLANE_CLOSED, 0);
    tell(w, id, HAPPENS_PEER_CLOSED, latency_ms(w));
}

void wire_closed_by_peer(struct world *w, conn_id id)
{
    struct wire *wire = wire_find(w, id);
    if (!wire)
        return;
    wire->peer_open = false;
    tell(w, id, HAPPENS_PLANE_CLOSED, arrival_ms(w, wire, wire->to_plane_ms) - w->now_ms);
    forget_if_closed(w, wire);
}

void wires_node_died(struct world *w, const struct node *n)
{
    size_t at = 0;
    struct wire *wire = NULL;
    while ((wire = map_next(&w->wires, &at))) {
        if (wire->node != n->index)
            continue;
        wire->plane_open = false;
        if (wire->peer_open)
            tell(w, wire->id, HAPPENS_PEER_CLOSED, latency_ms(w));
    }
}
