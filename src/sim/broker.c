/* Simulated brokers between services and the control plane. Each keeps a request until a result of
 * it was published there, and says it again when that takes long; some requests and results come
 * twice. They are away at times: what the control plane would publish then waits in its memory, and
 * is lost when that is. */
#include "sim/world.h"

#include <stdlib.h>

enum {
    WAKE_MS = 2000,
    ACK_MS = 15 * 1000, /* for a result, then the request is said again */
};

static bool is_away(const struct world *w)
{
    return w->now_ms < w->broker_away_until_ms;
}

static void deliver(struct world *w, struct ask *ask, enum seek_bus bus)
{
    w->result->redelivered += ask->said_ms != 0;
    ask->said_ms = w->now_ms;
    ask_send(w, ask, bus, 0, false);
}

void broker_ask(struct world *w, struct ask *ask, enum seek_bus bus)
{
    ask->unacked = (int8_t)(ask->unacked | (int8_t)bus);
    ask->doors = (int8_t)(ask->doors | (int8_t)bus);
    if (is_away(w))
        return;
    deliver(w, ask, bus);
    if (random_chance(&w->random, 5))
        deliver(w, ask, bus);
}

void broker_wake(struct world *w)
{
    world_after(w, WAKE_MS, HAPPENS_BROKER);
    for (int i = 0; i < MAX_ASKS && !is_away(w); i++) {
        struct ask *ask = &w->asks[i];
        bool late = ask->said_ms == 0 || w->now_ms - ask->said_ms > ACK_MS;
        if (late && (ask->unacked & BUS_NATS))
            deliver(w, ask, BUS_NATS);
        if (late && (ask->unacked & BUS_PUBSUB))
            deliver(w, ask, BUS_PUBSUB);
    }
}

void broker_fault(struct world *w)
{
    bool long_one = random_chance(&w->random, 20);
    w->broker_away_until_ms =
        w->now_ms + random_between(&w->random, 500, long_one ? 200 * 1000 : 30 * 1000);
}

void broker_result(struct world *w, const struct effect *e)
{
    bool slow = random_chance(&w->random, 5);
    struct happening *h = reply_later(w, e, random_between(&w->random, 0, slow ? 2000 : 10));
    h->kind = HAPPENS_RESULT;
    h->node = w->leader->index;
    h->life = w->reign;
}

static void say_published(struct world *w, const struct reply *reply)
{
    struct parcel *parcel = parcel_new(EVENT_PUBLISHED, 0);
    parcel->event.published = (struct published){
        .allocation = reply->object, .state = reply->state, .bus = (enum seek_bus)reply->bus};
    parcel_send(w, parcel);
}

/* Who published it may be gone meanwhile: then nobody will. */
void broker_publish(struct world *w, struct happening *h)
{
    struct reply *reply = h->reply;
    struct ask *ask = ask_named(w, str_of(reply->text));
    if (h->life != w->reign || !w->leader || node_is_fenced(w->leader))
        return;
    if (is_away(w)) {
        struct happening *later =
            world_after(w, w->broker_away_until_ms - w->now_ms, HAPPENS_RESULT);
        later->reply = reply;
        later->node = h->node;
        later->life = h->life;
        h->reply = NULL;
        return;
    }
    w->result->results++;
    if (ask)
        ask_heard(w, ask, reply);
    if (ask && !reply->on && !random_chance(&w->random, 5)) /* else the broker does not know */
        ask->unacked = (int8_t)(ask->unacked & ~reply->bus);
    if (ask && reply->object && reply->status != ENVELOPE_QUEUED)
        ask->published = (int8_t)(ask->published | reply->bus);
    if (!reply->on && reply->object)
        say_published(w, reply);
}
