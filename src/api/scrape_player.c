/* Metrics of places for players, and of the brokers, clusters and proxies that take part. */
#include "api/scrape_parts.h"

#include "api/agones.h"
#include "api/bus.h"
#include "api/history.h"
#include "api/routes.h"

#include <stdlib.h>

/* ── places ────────────────────────────────────────────────────────────────────────────────── */

/* A fleet of which nobody has asked for a place is not shown with noughts. */
static bool is_asked(const struct spot *p)
{
    return p->series->notes[NOTE_ALLOCATION_OPENED] > 0;
}

void scrape_player_counter(struct scrape *s, const char *name, const struct how *how)
{
    scrape_counter_of(s, name, how, is_asked);
}

void scrape_player_histogram(struct scrape *s, const char *name, const struct how *how)
{
    scrape_histogram_of(s, name, how, is_asked);
}

static void write_result(struct scrape *s, const char *name, struct spot *p, const char *result,
                         const char *reason, uint64_t value)
{
    size_t len = p->labels.len;
    labels_add(&p->labels, "result", result);
    scrape_labelled(s, name, p, "reason", reason, (int64_t)value);
    p->labels.len = len;
}

void scrape_player_allocations(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        const struct player_figures *f = &p->series->players;
        for (int k = 0; k < HOWS; k++) {
            if (f->done[k] > 0 || (k != HOW_OTHER && is_asked(p)))
                write_result(s, name, p, "done", how_names[k], f->done[k]);
        }
        for (int e = 0; e < ERR_ORDER_END; e++) {
            if (f->failed[e] > 0)
                write_result(s, name, p, "failed", err_code(-e), f->failed[e]);
        }
    }
}

void scrape_friend_joins(struct scrape *s, const char *name, const struct how *how)
{
    static const char *const words[FRIEND_JOINS] = {"joined", "queued", "not_found", "unavailable"};
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int k = 0; k < FRIEND_JOINS; k++) {
            uint64_t value = p->series->players.friends[k];
            if (value > 0 || is_asked(p))
                scrape_labelled(s, name, p, "result", words[k], (int64_t)value);
        }
    }
}

/* ── by fleet: the region is not known, or there are several ───────────────────────────────── */

struct fleet_count {
    int64_t fleet;
    bool asked; /* somebody has asked for a place in it */
    int64_t n;
};

struct fleet_counts {
    struct fleet_count *all;
    size_t n;
};

static void count(struct fleet_counts *c, int64_t fleet, int64_t value, bool asked)
{
    size_t i = 0;
    while (i < c->n && c->all[i].fleet != fleet)
        i++;
    if (i == c->n) {
        c->all = xrealloc(c->all, ++c->n * sizeof(*c->all));
        c->all[i] = (struct fleet_count){.fleet = fleet};
    }
    c->all[i].n += value;
    c->all[i].asked |= asked;
}

static void write_counts(struct scrape *s, const char *name, struct fleet_counts *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct labels labels = {0};
        scrape_name_fleet(s, (int32_t)c->all[i].fleet, &labels);
        if (c->all[i].asked || c->all[i].n > 0)
            exposition_sample(s->out, name, &labels, c->all[i].n);
    }
    free(c->all);
}

void scrape_token_collisions(struct scrape *s, const char *name, const struct how *how)
{
    struct fleet_counts c = {0};
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        const struct spot *p = &s->places[i];
        count(&c, p->series->fleet_id, (int64_t)p->series->notes[NOTE_TOKEN_COLLISION],
              is_asked(p));
    }
    write_counts(s, name, &c);
}

void scrape_queue_length(struct scrape *s, const char *name, const struct how *how)
{
    struct fleet_counts c = {0};
    struct view_queue_place at = {0};
    struct view_queue q;
    (void)how;
    for (size_t i = 0; i < s->n_places; i++)
        count(&c, s->places[i].series->fleet_id, 0, is_asked(&s->places[i]));
    while (s->counts.allocations_queued > 0 && view_next_queue(s->core, &at, &q))
        count(&c, q.fleet_id, q.entries, true);
    write_counts(s, name, &c);
}

void scrape_queue_waits(struct scrape *s, const char *name, const struct how *how)
{
    static const char *const words[QUEUE_ENDS] = {"served", "abandoned"};
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int k = 0; is_asked(p) && k < QUEUE_ENDS; k++) {
            size_t len = p->labels.len;
            labels_add(&p->labels, "result", words[k]);
            exposition_histogram(s->out, name, &p->labels, &p->series->players.waits[k],
                                 how->scale);
            p->labels.len = len;
        }
    }
}

void scrape_queue_abandoned(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int e = 0; e < ERR_ORDER_END; e++) {
            uint64_t value = p->series->players.abandoned[e];
            if (value > 0)
                scrape_labelled(s, name, p, "reason", err_code(-e), (int64_t)value);
        }
    }
}

/* ── who else takes part ───────────────────────────────────────────────────────────────────── */

static void write_one(struct scrape *s, const char *name, const char *key, const char *word,
                      int64_t value)
{
    struct labels labels = {0};
    labels_add(&labels, key, word);
    exposition_sample(s->out, name, &labels, value);
}

static const struct bus *bus_at(const struct scrape *s, size_t i)
{
    const struct buses *all = s->m->sources.buses;
    return all ? buses_at(all, i) : NULL;
}

void scrape_broker_connected(struct scrape *s, const char *name, const struct how *how)
{
    const struct bus *b = NULL;
    (void)how;
    for (size_t i = 0; (b = bus_at(s, i)); i++) {
        struct bus_figures f = {0};
        b->ops->figures(b, &f);
        write_one(s, name, "bus", b->ops->name, f.connected);
    }
}

/* Below 0: it is not known. */
void scrape_broker(struct scrape *s, const char *name, const struct how *how)
{
    const struct bus *b = NULL;
    for (size_t i = 0; (b = bus_at(s, i)); i++) {
        struct bus_figures f = {0};
        b->ops->figures(b, &f);
        int64_t value = *(const int64_t *)scrape_member(&f, how);
        if (value >= 0)
            write_one(s, name, "bus", b->ops->name, value);
    }
}

static void write_passed_over(struct scrape *s, const char *name, const struct bus *b,
                              const char *reason, int64_t value)
{
    struct labels labels = {0};
    labels_add(&labels, "bus", b->ops->name);
    labels_add(&labels, "reason", reason);
    exposition_sample(s->out, name, &labels, value);
}

void scrape_broker_passed_over(struct scrape *s, const char *name, const struct how *how)
{
    const struct bus *b = NULL;
    (void)how;
    for (size_t i = 0; (b = bus_at(s, i)); i++) {
        write_passed_over(s, name, b, "foreign", b->foreign);
        write_passed_over(s, name, b, "wrong", b->wrong);
        write_passed_over(s, name, b, "unreadable", b->unreadable);
    }
}

void scrape_cluster_writes(struct scrape *s, const char *name, const struct how *how)
{
    struct agones_figures f;
    (void)how;
    if (!s->m->sources.agones)
        return;
    agones_count(s->m->sources.agones, &f);
    write_one(s, name, "kind", "allocate", f.allocations);
    write_one(s, name, "kind", "patch", f.patches);
    write_one(s, name, "kind", "conflict", f.conflicts);
}

void scrape_cluster_reads(struct scrape *s, const char *name, const struct how *how)
{
    struct agones_figures f;
    (void)how;
    if (!s->m->sources.agones)
        return;
    agones_count(s->m->sources.agones, &f);
    write_one(s, name, "kind", "list", f.lists);
    write_one(s, name, "kind", "watch", f.watches);
    write_one(s, name, "kind", "get", f.reads);
}

void scrape_cluster_servers(struct scrape *s, const char *name, const struct how *how)
{
    struct agones_figures f;
    (void)how;
    if (!s->m->sources.agones)
        return;
    agones_count(s->m->sources.agones, &f);
    write_one(s, name, "state", "all", f.gameservers);
    write_one(s, name, "state", "playing", f.playing);
    write_one(s, name, "state", "unwanted", f.unwanted);
}

void scrape_routes(struct scrape *s, const char *name, const struct how *how)
{
    struct routes_figures f;
    struct labels none = {0};
    (void)how;
    if (!s->m->sources.routes)
        return;
    routes_figures(s->m->sources.routes, &f);
    exposition_sample(s->out, name, &none, f.routes);
}

void scrape_route_writes(struct scrape *s, const char *name, const struct how *how)
{
    struct routes_figures f;
    (void)how;
    if (!s->m->sources.routes)
        return;
    routes_figures(s->m->sources.routes, &f);
    write_one(s, name, "result", "done", f.written);
    write_one(s, name, "result", "failed", f.failed);
}

void scrape_history_lines(struct scrape *s, const char *name, const struct how *how)
{
    struct recorder_figures f;
    (void)how;
    if (!history_figures(s->m->sources.history, &f))
        return;
    write_one(s, name, "result", "written", f.written);
    write_one(s, name, "result", "lost", f.lost);
}

void scrape_history_bytes(struct scrape *s, const char *name, const struct how *how)
{
    struct recorder_figures f;
    struct labels none = {0};
    (void)how;
    if (history_figures(s->m->sources.history, &f))
        exposition_sample(s->out, name, &none, f.bytes);
}

void scrape_history_failing(struct scrape *s, const char *name, const struct how *how)
{
    struct recorder_figures f;
    struct labels none = {0};
    (void)how;
    if (history_figures(s->m->sources.history, &f))
        exposition_sample(s->out, name, &none, f.failing);
}
