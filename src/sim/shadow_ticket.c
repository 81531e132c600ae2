/* Servers and refused tickets as the disk has them. Held against it: after a start nobody hears "No
 * servers available" while one that could have taken his match has not come back yet and still has
 * its time for that. */
#include "sim/world.h"

#include "base/buf.h"
#include "base/err.h"
#include "core/row.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    TICKET_OPEN = 1, /* as the disk has it */
    TICKET_FAILED = 3,
    SLACK_MS = 2000,
};

struct shadow_server {
    struct row_server row;
    bool fresh; /* written with the newest batch: how it was before is not known */
};

/* One that failed with the newest batch, and nobody had been asked for it. */
struct shadow_refusal {
    struct row_ticket row;
};

static void free_all(struct map *map)
{
    size_t at = 0;
    for (void *kept = NULL; (kept = map_next(map, &at));)
        free(kept);
    map_done(map);
}

static void take_server(struct world *w, const struct change *change)
{
    if (change->gone) {
        free(map_remove(&w->shadow_servers, (uint64_t)change->id));
        return;
    }
    struct shadow_server *s = map_get(&w->shadow_servers, (uint64_t)change->id);
    if (!s) {
        s = xcalloc(1, sizeof(*s));
        map_put(&w->shadow_servers, (uint64_t)change->id, s);
    }
    *s = (struct shadow_server){change->server, true};
}

static void take_ticket(struct world *w, const struct change *change)
{
    const struct row_ticket *row = &change->ticket;
    if (change->gone)
        return;
    w->result->waited += row->state == TICKET_OPEN && row->session == 0;
    bool unasked = row->tries_len > 0 && row->tries[0] == 0;
    if (row->state != TICKET_FAILED || row->error != ERR_NO_SERVERS || !unasked)
        return;
    struct shadow_refusal *refusal = xcalloc(1, sizeof(*refusal));
    refusal->row = *row;
    free(map_put(&w->shadow_refusals, (uint64_t)change->id, refusal));
}

void shadow_tickets_stored(struct world *w, const struct store_batch *batch)
{
    struct cursor c = cursor_of(batch->changes, batch->len);
    struct change change;
    size_t at = 0;
    free_all(&w->shadow_refusals);
    for (struct shadow_server *s = NULL; (s = map_next(&w->shadow_servers, &at));)
        s->fresh = false;
    while (change_decode(&c, &change)) {
        if (change.kind == ROW_server)
            take_server(w, &change);
        else if (change.kind == ROW_ticket)
            take_ticket(w, &change);
    }
}

/* It was not heard since this leader began, it has its time to come back, and room for more. */
static bool is_expected(const struct world *w, const struct game *g, const struct row_ticket *row)
{
    const struct shadow_server *s = map_get(&w->shadow_servers, (uint64_t)g->server_id);
    if (!s || s->fresh || s->row.draining || s->row.fleet != row->fleet ||
        !((uint64_t)row->regions >> s->row.region & 1) || g->wired_ms >= w->leader->led_ms)
        return false;
    int64_t led_ms = (w->now_ms - w->leader->led_ms) * w->leader->clock_permille / 1000;
    return led_ms < w->config.timeouts.heartbeat_ms - SLACK_MS &&
           shadow_held_by(w, g->server_id) < s->row.max_sessions;
}

void shadow_tickets_judge(struct world *w, const struct effect *e)
{
    const struct shadow_refusal *refusal =
        e->note == NOTE_TICKET_FAILED ? map_get(&w->shadow_refusals, (uint64_t)e->ticket) : NULL;
    if (!refusal)
        return;
    const struct row_ticket *row = &refusal->row;
    int64_t lived_ms = row->deadline_core_ms - w->config.timeouts.keep_ms - row->opened_core_ms;
    for (int i = 0; i < w->n_games && lived_ms < w->config.timeouts.ticket_ms; i++) {
        if (is_expected(w, &w->games[i], row))
            world_broken(w, "ticket %" PRId64 " is refused while game %d is expected back", row->id,
                         i);
    }
}

void shadow_tickets_set_back(struct world *w)
{
    shadow_tickets_done(w); /* what is not known judges nobody */
}

void shadow_tickets_done(struct world *w)
{
    free_all(&w->shadow_servers);
    free_all(&w->shadow_refusals);
}
