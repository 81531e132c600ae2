/* GET /metrics. The table at the end says for each metric how its samples are had; everything else
 * here is the few ways there are. */
#include "api/scrape_parts.h"

#include "api/bus.h"
#include "api/door.h"
#include "api/exposition.h"
#include "api/feed.h"
#include "api/process.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/http.h"
#include "net/tls.h"
#include "store/pipeline.h"

#include <stdio.h>
#include <stdlib.h>

static const struct labels no_labels;

static const char *const uptime_names[UPTIMES] = {
    "under_1m", "1m_to_10m", "10m_to_1h", "1h_to_6h", "6h_to_1d", "1d_to_7d", "over_7d",
};

/* ── places ────────────────────────────────────────────────────────────────────────────────── */

void scrape_name_fleet(const struct scrape *s, int32_t id, struct labels *labels)
{
    struct view_fleet fleet;
    char number[16];
    snprintf(number, sizeof(number), "%d", id);
    if (id == 0)
        labels_add(labels, "fleet", "none");
    else if (s->core && view_fleet(s->core, id, &fleet))
        labels_add(labels, "fleet", fleet.name);
    else
        labels_add(labels, "fleet", number);
}

/* By its name of today: a name belongs to one code at a time, so no two series read the same. */
static void name_region(const struct scrape *s, struct spot *p)
{
    char number[16];
    int8_t code = p->series->region;
    const char *name = s->core && code >= 0 ? core_config(s->core)->regions[code].name : "";
    snprintf(number, sizeof(number), "region_%d", code);
    if (code < 0)
        name = p->series->fleet_id == 0 ? "none" : "several";
    labels_add(&p->labels, "region", name[0] ? name : number);
}

/* Fleets with servers are shown from their first server on, not from their first allocation. */
static void find_series(struct scrape *s)
{
    struct view_group group;
    int64_t fleet = 0;
    while (s->core && (fleet = core_next(s->core, ROW_fleet, fleet)) != 0) {
        for (int8_t code = 0; code < REGION_CODES; code++) {
            if (view_group(s->core, fleet, code, &group))
                (void)series_of(s->m, (int32_t)fleet, code);
        }
    }
}

static void find_places(struct scrape *s)
{
    find_series(s);
    s->n_places = s->m->n_series;
    s->places = xcalloc(s->n_places, sizeof(struct spot));
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        p->series = s->m->series[i];
        scrape_name_fleet(s, p->series->fleet_id, &p->labels);
        name_region(s, p);
        p->has_servers =
            s->core && view_group(s->core, p->series->fleet_id, p->series->region, &p->group);
    }
}

/* What cannot have come from one fleet and region is shown where it is not 0. */
bool scrape_is_shown(const struct spot *p, uint64_t value)
{
    return value > 0 || p->series->region >= 0;
}

/* ── counted by series ─────────────────────────────────────────────────────────────────────── */

void scrape_counter_of(struct scrape *s, const char *name, const struct how *how,
                       scrape_is_asked *is_asked)
{
    for (size_t i = 0; i < s->n_places; i++) {
        const struct spot *p = &s->places[i];
        uint64_t value = *(const uint64_t *)scrape_member(p->series, how);
        if (value > 0 || is_asked(p))
            exposition_sample(s->out, name, &p->labels, (int64_t)value);
    }
}

void scrape_histogram_of(struct scrape *s, const char *name, const struct how *how,
                         scrape_is_asked *is_asked)
{
    for (size_t i = 0; i < s->n_places; i++) {
        const struct spot *p = &s->places[i];
        if (is_asked(p))
            exposition_histogram(s->out, name, &p->labels, scrape_member(p->series, how),
                                 how->scale);
    }
}

static void write_counter(struct scrape *s, const char *name, const struct how *how)
{
    for (size_t i = 0; i < s->n_places; i++) {
        const struct spot *p = &s->places[i];
        uint64_t value = *(const uint64_t *)scrape_member(p->series, how);
        if (scrape_is_shown(p, value))
            exposition_sample(s->out, name, &p->labels, (int64_t)value);
    }
}

/* Of notes that know no fleet. */
static void write_sum(struct scrape *s, const char *name, const struct how *how)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n_places; i++)
        sum += *(const uint64_t *)scrape_member(s->places[i].series, how);
    exposition_sample(s->out, name, &no_labels, (int64_t)sum);
}

static void write_place_histogram(struct scrape *s, const char *name, const struct how *how)
{
    for (size_t i = 0; i < s->n_places; i++) {
        const struct spot *p = &s->places[i];
        const struct histogram *h = scrape_member(p->series, how);
        if (scrape_is_shown(p, histogram_count(h)))
            exposition_histogram(s->out, name, &p->labels, h, how->scale);
    }
}

/* One sample with one more label. */
void scrape_labelled(struct scrape *s, const char *name, struct spot *p, const char *key,
                     const char *word, int64_t value)
{
    size_t len = p->labels.len;
    labels_add(&p->labels, key, word);
    exposition_sample(s->out, name, &p->labels, value);
    p->labels.len = len;
}

static const char *const result_names[RESULTS] = {"done", "failed", "cancelled"};

static void write_durations(struct scrape *s, const char *name, const struct how *how)
{
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int r = 0; r < RESULTS; r++) {
            const struct histogram *h = &p->series->durations[r];
            size_t len = p->labels.len;
            labels_add(&p->labels, "result", result_names[r]);
            if (scrape_is_shown(p, histogram_count(h)))
                exposition_histogram(s->out, name, &p->labels, h, how->scale);
            p->labels.len = len;
        }
    }
}

static void write_result(struct scrape *s, const char *name, struct spot *p, enum result result,
                         int err, uint64_t value)
{
    size_t len = p->labels.len;
    labels_add(&p->labels, "result", result_names[result]);
    scrape_labelled(s, name, p, "reason", err_code(err), (int64_t)value);
    p->labels.len = len;
}

/* The usual reasons are there from the start, so that the first failure is seen as an increase. */
static bool is_usual_failure(int order)
{
    return order == ERR_ORDER_NO_SERVERS || order == ERR_ORDER_ALLOCATION_TIMEOUT;
}

static void write_allocations(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        const struct series *series = p->series;
        if (scrape_is_shown(p, series->results[RESULT_DONE]))
            write_result(s, name, p, RESULT_DONE, 0, series->results[RESULT_DONE]);
        for (int e = 0; e < ERR_ORDER_END; e++) {
            if (series->failed[e] > 0 || (is_usual_failure(e) && scrape_is_shown(p, 0)))
                write_result(s, name, p, RESULT_FAILED, -e, series->failed[e]);
        }
        if (scrape_is_shown(p, series->results[RESULT_CANCELLED]))
            write_result(s, name, p, RESULT_CANCELLED, ERR_TICKET_CANCELLED,
                         series->results[RESULT_CANCELLED]);
    }
}

static void write_retries(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int r = 0; r < RETRIES; r++) {
            uint64_t value = p->series->retries[r];
            if (value > 0 || (r != RETRY_OTHER && scrape_is_shown(p, 0)))
                scrape_labelled(s, name, p, "reason", retry_names[r], (int64_t)value);
        }
    }
}

static void write_refusals(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        for (int e = 0; e < ERR_ORDER_END; e++) {
            uint64_t value = s->places[i].series->refused[e];
            if (value > 0)
                scrape_labelled(s, name, &s->places[i], "reason", err_code(-e), (int64_t)value);
        }
    }
}

static void write_ended(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int8_t r = END_NONE + 1; r < END_REASONS; r++) {
            uint64_t value = p->series->ended[r];
            if (scrape_is_shown(p, value))
                scrape_labelled(s, name, p, "reason", end_reason_name(r), (int64_t)value);
        }
    }
}

/* ── as it is now ──────────────────────────────────────────────────────────────────────────── */

static void write_servers(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int status = 0; p->has_servers && status < 4; status++)
            scrape_labelled(s, name, p, "status", server_status_name((enum server_status)status),
                            p->group.servers[status]);
    }
}

static void write_passed_over(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int r = PASSED_NOT + 1; p->has_servers && r < PASSED_REASONS; r++)
            scrape_labelled(s, name, p, "reason", passed_over_name((enum passed_over)r),
                            p->group.passed[r]);
    }
}

static void write_group_int(struct scrape *s, const char *name, const struct how *how)
{
    for (size_t i = 0; i < s->n_places; i++) {
        const struct spot *p = &s->places[i];
        if (p->has_servers)
            exposition_sample(s->out, name, &p->labels,
                              *(const int64_t *)scrape_member(&p->group, how));
    }
}

static void write_sessions(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        const struct spot *p = &s->places[i];
        if (p->has_servers)
            exposition_sample(s->out, name, &p->labels, p->group.sessions_open);
    }
}

/* A mean over nobody is no figure. */
static void write_mean(struct scrape *s, const char *name, const struct how *how, double scale)
{
    for (size_t i = 0; i < s->n_places; i++) {
        const struct spot *p = &s->places[i];
        if (p->has_servers && p->group.connected > 0)
            exposition_real(s->out, name, &p->labels,
                            *(const double *)scrape_member(&p->group, how) * scale);
    }
}

static void write_group_ratio(struct scrape *s, const char *name, const struct how *how)
{
    write_mean(s, name, how, 1);
}

static void write_group_percent(struct scrape *s, const char *name, const struct how *how)
{
    write_mean(s, name, how, 0.01);
}

static void write_uptimes(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int u = 0; p->has_servers && u < UPTIMES; u++)
            scrape_labelled(s, name, p, "uptime", uptime_names[u], p->series->uptimes.counts[u]);
    }
}

static void write_uptime_mean(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        const struct spot *p = &s->places[i];
        const struct uptimes *u = &p->series->uptimes;
        if (p->has_servers && u->servers > 0)
            exposition_decimal(s->out, name, &p->labels, u->sum_ms / u->servers, 1000);
    }
}

static void write_count(struct scrape *s, const char *name, const struct how *how)
{
    if (s->core)
        exposition_sample(s->out, name, &no_labels,
                          *(const int32_t *)scrape_member(&s->counts, how));
}

static void write_spoofed(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    if (s->core)
        exposition_sample(s->out, name, &no_labels, core_spoofed(s->core));
}

/* ── store ─────────────────────────────────────────────────────────────────────────────────── */

static void write_histogram(struct scrape *s, const char *name, const struct how *how)
{
    exposition_histogram(s->out, name, &no_labels, scrape_member(s->m, how), how->scale);
}

static void write_own_counter(struct scrape *s, const char *name, const struct how *how)
{
    exposition_sample(s->out, name, &no_labels, *(const int64_t *)scrape_member(s->m, how));
}

static void write_own_ms(struct scrape *s, const char *name, const struct how *how)
{
    exposition_decimal(s->out, name, &no_labels, *(const int64_t *)scrape_member(s->m, how), 1000);
}

static void write_read_only(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    if (s->m->sources.pipeline)
        exposition_sample(s->out, name, &no_labels,
                          pipeline_state(s->m->sources.pipeline) == PIPELINE_READ_ONLY);
}

static void write_commit_age(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    if (s->m->committed_us > 0)
        exposition_decimal(s->out, name, &no_labels, s->now_us - s->m->committed_us, 1000000);
}

static void write_backlog(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    if (s->m->sources.pipeline)
        exposition_sample(s->out, name, &no_labels,
                          (int64_t)pipeline_backlog(s->m->sources.pipeline));
}

static void write_fold_lag(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    int64_t lag = s->store.last_seq - s->store.folded_seq;
    if (s->has_store)
        exposition_sample(s->out, name, &no_labels, lag > 0 ? lag : 0);
}

static void write_fold_lag_seconds(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    if (s->has_store)
        exposition_decimal(s->out, name, &no_labels, s->store.fold_lag_ms, 1000);
}

static void write_store(struct scrape *s, const char *name, const struct how *how)
{
    if (s->has_store)
        exposition_sample(s->out, name, &no_labels,
                          *(const int64_t *)scrape_member(&s->store, how));
}

/* ── connections and HTTP ──────────────────────────────────────────────────────────────────── */

static void write_port(struct scrape *s, const char *name, const char *port, int64_t value)
{
    struct labels l = {.len = 0};
    labels_add(&l, "port", port);
    exposition_sample(s->out, name, &l, value);
}

static void write_doors(struct scrape *s, const char *name, const struct how *how)
{
    const struct doors *d = s->m->sources.doors;
    for (size_t i = 0; d && i < d->n; i++)
        write_port(s, name, d->all[i].port->name,
                   *(const int64_t *)scrape_member(&d->all[i].figures, how));
}

static void write_http(struct scrape *s, const char *name, size_t offset)
{
    struct http_figures figures;
    if (!s->m->sources.http)
        return;
    http_server_figures(s->m->sources.http, &figures);
    write_port(s, name, "http", *(const int64_t *)((const char *)&figures + offset));
}

static void write_connections(struct scrape *s, const char *name, const struct how *how)
{
    write_doors(s, name, how);
    write_http(s, name, offsetof(struct http_figures, connections));
}

static void write_feed(struct scrape *s, const char *name, const struct how *how)
{
    struct feed_figures figures;
    if (!s->m->sources.feed)
        return;
    feed_figures(s->m->sources.feed, &figures);
    exposition_sample(s->out, name, &no_labels, *(const int64_t *)scrape_member(&figures, how));
}

static void write_refused(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    const struct doors *d = s->m->sources.doors;
    for (size_t i = 0; d && i < d->n; i++) {
        if (d->all[i].listener)
            write_port(s, name, d->all[i].port->name, listener_refused(d->all[i].listener));
    }
    write_http(s, name, offsetof(struct http_figures, refused));
}

static void write_held(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    const struct doors *d = s->m->sources.doors;
    for (size_t i = 0; d && i < d->n; i++)
        write_port(s, name, d->all[i].port->name, d->all[i].held);
}

static void write_tls_expires(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    const struct metrics_sources *sources = &s->m->sources;
    if (sources->http_tls)
        write_port(s, name, "http", tls_expires_s(sources->http_tls));
    if (sources->server_tls)
        write_port(s, name, "server", tls_expires_s(sources->server_tls));
    if (sources->manager_tls)
        write_port(s, name, "manager", tls_expires_s(sources->manager_tls));
    if (sources->client_tls)
        write_port(s, name, "client", tls_expires_s(sources->client_tls));
}

static void write_http_requests(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->m->n_operations; i++) {
        const struct http_operation *o = s->m->operations[i];
        for (size_t j = 0; j < o->n_statuses; j++) {
            struct labels l = {.len = 0};
            char number[16];
            snprintf(number, sizeof(number), "%d", o->statuses[j].status);
            labels_add(&l, "operation", o->name);
            labels_add(&l, "status", o->statuses[j].status ? number : "other");
            exposition_sample(s->out, name, &l, (int64_t)o->statuses[j].n);
        }
    }
}

static void write_http_durations(struct scrape *s, const char *name, const struct how *how)
{
    for (size_t i = 0; i < s->m->n_operations; i++) {
        const struct http_operation *o = s->m->operations[i];
        struct labels l = {.len = 0};
        labels_add(&l, "operation", o->name);
        exposition_histogram(s->out, name, &l, &o->durations, how->scale);
    }
}

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

/* Only fleets that have rooms, or had. */
static bool has_rooms(const struct spot *p)
{
    return p->series->region >= 0 && p->series->notes[NOTE_ROOM_SPAWNING] > 0;
}

static bool shows_rooms(const struct spot *p)
{
    const struct room_figures *f = &p->series->rooms;
    return has_rooms(p) || f->rooms[LOOK_STARTING] + f->rooms[LOOK_OPEN] + f->rooms[LOOK_ENDING];
}

static void write_room_counter(struct scrape *s, const char *name, const struct how *how)
{
    for (size_t i = 0; i < s->n_places; i++) {
        const struct spot *p = &s->places[i];
        if (shows_rooms(p))
            exposition_sample(s->out, name, &p->labels,
                              *(const int64_t *)scrape_member(p->series, how));
    }
}

static void write_rooms(struct scrape *s, const char *name, const struct how *how)
{
    static const char *const words[LOOK_STATES] = {"starting", "open", "ending"};
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int k = 0; shows_rooms(p) && k < LOOK_STATES; k++)
            scrape_labelled(s, name, p, "state", words[k], p->series->rooms.rooms[k]);
    }
}

static void write_seats(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        if (!shows_rooms(p))
            continue;
        scrape_labelled(s, name, p, "state", "reserved", p->series->rooms.reserved);
        scrape_labelled(s, name, p, "state", "taken", p->series->rooms.taken);
    }
}

static void write_spawned(struct scrape *s, const char *name, const struct how *how)
{
    static const char *const words[SPAWNED_ENDS] = {"open", "failed", "timed_out", "given_up"};
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int k = 0; shows_rooms(p) && k < SPAWNED_ENDS; k++)
            scrape_labelled(s, name, p, "result", words[k], (int64_t)p->series->spawned[k]);
    }
}

static void write_room_histogram(struct scrape *s, const char *name, const struct how *how)
{
    scrape_histogram_of(s, name, how, shows_rooms);
}

static void write_rooms_ended(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        for (int8_t r = END_NONE + 1; r < END_REASONS; r++) {
            uint64_t value = p->series->rooms_ended[r];
            if (value > 0)
                scrape_labelled(s, name, p, "reason", end_reason_name(r), (int64_t)value);
        }
    }
}

static void write_joins(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        const struct series *series = p->series;
        if (series->joins[RESULT_DONE] > 0 || shows_rooms(p))
            write_result(s, name, p, RESULT_DONE, 0, series->joins[RESULT_DONE]);
        for (int e = 0; e < ERR_ORDER_END; e++) {
            if (series->joins_failed[e] > 0)
                write_result(s, name, p, RESULT_FAILED, -e, series->joins_failed[e]);
        }
    }
}

static void write_placements(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (int e = 0; e < ERR_ORDER_END; e++) {
        struct labels l = {.len = 0};
        labels_add(&l, "reason", err_code(-e));
        if (e == 0 || s->m->placed[e] > 0)
            exposition_sample(s->out, name, &l, (int64_t)s->m->placed[e]);
    }
}

static void write_hosts_in(struct scrape *s, const char *name, const char *region,
                           const int32_t counts[HOST_PASSED_REASONS])
{
    for (int r = 0; r < HOST_PASSED_REASONS; r++) {
        struct labels l = {.len = 0};
        labels_add(&l, "region", region);
        labels_add(&l, "status",
                   r == HOST_PASSED_NOT ? "healthy"
                                        : host_passed_over_name((enum host_passed_over)r));
        exposition_sample(s->out, name, &l, counts[r]);
    }
}

static void write_hosts(struct scrape *s, const char *name, const struct how *how)
{
    int32_t counts[REGION_CODES][HOST_PASSED_REASONS] = {{0}};
    bool has[REGION_CODES] = {false};
    struct view_host host;
    int64_t id = 0;
    (void)how;
    while (s->core && (id = core_next(s->core, ROW_host, id)) != 0) {
        if (!view_host(s->core, id, &host) || host.region < 0 || host.region >= REGION_CODES)
            continue;
        counts[host.region][host.passed_over]++;
        has[host.region] = true;
    }
    for (int code = 0; code < REGION_CODES; code++) {
        if (has[code])
            write_hosts_in(s, name, core_config(s->core)->regions[code].name, counts[code]);
    }
}

/* ── agents ────────────────────────────────────────────────────────────────────────────────── */

static void write_agent_calls(struct scrape *s, const char *name, const struct how *how)
{
    static const char *const results[AGENT_CALL_RESULTS] = {"done", "refused", "unanswered"};
    (void)how;
    for (size_t i = 0; i < s->m->n_agent_calls; i++) {
        for (int r = 0; r < AGENT_CALL_RESULTS; r++) {
            struct labels l = {.len = 0};
            labels_add(&l, "call", s->m->agent_calls[i].what);
            labels_add(&l, "result", results[r]);
            exposition_sample(s->out, name, &l, (int64_t)s->m->agent_calls[i].results[r]);
        }
    }
}

static void write_agent_durations(struct scrape *s, const char *name, const struct how *how)
{
    for (size_t i = 0; i < s->m->n_agent_calls; i++) {
        struct labels l = {.len = 0};
        labels_add(&l, "call", s->m->agent_calls[i].what);
        exposition_histogram(s->out, name, &l, &s->m->agent_calls[i].durations, how->scale);
    }
}

/* ── process ───────────────────────────────────────────────────────────────────────────────── */

static void write_longest(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    int64_t slot = s->now_us / LONGEST_SLOT_US;
    int64_t us = 0;
    for (int i = 0; i < LONGEST_SLOTS; i++) {
        const struct longest *l = &s->m->longest[i];
        if (l->slot > slot - LONGEST_SLOTS && l->us > us)
            us = l->us;
    }
    exposition_decimal(s->out, name, &no_labels, us, 1000000);
}

static void write_log_dropped(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    exposition_sample(s->out, name, &no_labels, (int64_t)log_dropped());
}

static void write_build_info(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    struct labels l = {.len = 0};
    labels_add(&l, "version", MUSTER_VERSION);
    exposition_sample(s->out, name, &l, 1);
}

static void write_cpu(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    if (s->process.cpu_us >= 0)
        exposition_decimal(s->out, name, &no_labels, s->process.cpu_us, 1000000);
}

static void write_process(struct scrape *s, const char *name, const struct how *how)
{
    int64_t value = *(const int64_t *)scrape_member(&s->process, how);
    if (value >= 0)
        exposition_sample(s->out, name, &no_labels, value);
}

/* ── the table ─────────────────────────────────────────────────────────────────────────────── */

#define SERIES(member_)                                                                            \
    {                                                                                              \
        write_counter, offsetof(struct series, member_), NULL                                      \
    }
#define ROOM_COUNTER(member_)                                                                      \
    {                                                                                              \
        write_room_counter, offsetof(struct series, member_), NULL                                 \
    }
#define PLACED(member_)                                                                            \
    {                                                                                              \
        scrape_player_counter, offsetof(struct series, member_), NULL                              \
    }
#define LOBBY(member_)                                                                             \
    {                                                                                              \
        scrape_lobby_counter, offsetof(struct series, member_), NULL                               \
    }
#define LOBBY_HISTOGRAM(member_)                                                                   \
    {                                                                                              \
        scrape_lobby_histogram, offsetof(struct series, lobbies.member_), &histogram_waits         \
    }
#define BROKER(member_)                                                                            \
    {                                                                                              \
        scrape_broker, offsetof(struct bus_figures, member_), NULL                                 \
    }
#define SUM(note_)                                                                                 \
    {                                                                                              \
        write_sum, offsetof(struct series, notes[note_]), NULL                                     \
    }
#define PLACE_HISTOGRAM(member_, scale_)                                                           \
    {                                                                                              \
        write_place_histogram, offsetof(struct series, member_), &(scale_)                         \
    }
#define GROUP(write_, member_)                                                                     \
    {                                                                                              \
        write_, offsetof(struct view_group, member_), NULL                                         \
    }
#define COUNT(member_)                                                                             \
    {                                                                                              \
        write_count, offsetof(struct core_counts, member_), NULL                                   \
    }
#define OWN(write_, member_, scale_)                                                               \
    {                                                                                              \
        write_, offsetof(struct metrics, member_), scale_                                          \
    }
#define STORE(member_)                                                                             \
    {                                                                                              \
        write_store, offsetof(struct store_figures, member_), NULL                                 \
    }
#define DOORS(write_, member_)                                                                     \
    {                                                                                              \
        write_, offsetof(struct door_figures, member_), NULL                                       \
    }
#define PROCESS(member_)                                                                           \
    {                                                                                              \
        write_process, offsetof(struct process_figures, member_), NULL                             \
    }
#define FEED(member_)                                                                              \
    {                                                                                              \
        write_feed, offsetof(struct feed_figures, member_), NULL                                   \
    }
#define CELL(member_)                                                                              \
    {                                                                                              \
        scrape_cell, offsetof(struct cell_figures, member_), NULL                                  \
    }
#define PLAIN(write_)                                                                              \
    {                                                                                              \
        write_, 0, NULL                                                                            \
    }

static const struct how hows[METRICS] = {
    [METRIC_ALLOCATION_REQUESTS] = SERIES(requests),
    [METRIC_ALLOCATIONS] = PLAIN(write_allocations),
    [METRIC_ALLOCATION_RETRIES] = PLAIN(write_retries),
    [METRIC_ALLOCATION_DURATION] = {write_durations, 0, &histogram_durations},
    [METRIC_ALLOCATION_ACK] = PLACE_HISTOGRAM(acks, histogram_durations),
    [METRIC_ALLOCATION_READY] = PLACE_HISTOGRAM(readies, histogram_durations),
    [METRIC_CHOSEN_LOAD] = PLACE_HISTOGRAM(chosen_load, histogram_ratios),
    [METRIC_TICKETS_OPEN] = COUNT(tickets_open),
    [METRIC_TICKETS_KEPT] = COUNT(tickets_kept),

    [METRIC_LOBBIES] = PLAIN(scrape_lobbies),
    [METRIC_LOBBIES_CREATED] = LOBBY(notes[NOTE_LOBBY_CREATED]),
    [METRIC_LOBBIES_TOTAL] = PLAIN(scrape_lobby_results),
    [METRIC_LOBBY_START] = LOBBY_HISTOGRAM(starts),
    [METRIC_LOBBY_WHOLE] = LOBBY_HISTOGRAM(wholes),
    [METRIC_LOBBY_PLAYERS] = PLAIN(scrape_lobby_players),
    [METRIC_LOBBY_MOVES] = LOBBY(notes[NOTE_LOBBY_MOVED]),
    [METRIC_LOBBIES_LOST] = LOBBY(notes[NOTE_LOBBY_LOST]),
    [METRIC_LOBBIES_BACK] = LOBBY(notes[NOTE_LOBBY_BACK]),
    [METRIC_LOBBIES_ENDED] = LOBBY(notes[NOTE_LOBBY_ENDED]),
    [METRIC_CLIENTS] = COUNT(clients),
    [METRIC_CLIENTS_REPLACED] = SUM(NOTE_CLIENT_REPLACED),

    [METRIC_SERVERS] = PLAIN(write_servers),
    [METRIC_SERVERS_PASSED_OVER] = PLAIN(write_passed_over),
    [METRIC_SLOTS_USED] = GROUP(write_group_int, slots_used),
    [METRIC_SLOTS_MAX] = GROUP(write_group_int, slots_total),
    [METRIC_SESSIONS_OPEN] = PLAIN(write_sessions),
    [METRIC_LOAD_MEAN] = GROUP(write_group_ratio, load_mean),
    [METRIC_LOAD_SPREAD] = GROUP(write_group_ratio, load_spread),
    [METRIC_CPU_MEAN] = GROUP(write_group_percent, cpu_percent),
    [METRIC_MEMORY_MEAN] = GROUP(write_group_percent, memory_percent),
    [METRIC_SERVERS_BY_UPTIME] = PLAIN(write_uptimes),
    [METRIC_UPTIME_MEAN] = PLAIN(write_uptime_mean),
    [METRIC_ROUND_TRIP] = PLACE_HISTOGRAM(round_trip, histogram_durations),
    [METRIC_SERVER_REGISTRATIONS] = SERIES(notes[NOTE_SERVER_REGISTERED]),
    [METRIC_SERVER_RETURNS] = SERIES(notes[NOTE_SERVER_RETURNED]),
    [METRIC_SERVER_DROPS] = SERIES(notes[NOTE_SERVER_DROPPED]),
    [METRIC_SERVER_TIMEOUTS] = SERIES(notes[NOTE_SERVER_OFFLINE]),
    [METRIC_SERVER_FORGOTTEN] = SERIES(notes[NOTE_SERVER_FORGOTTEN]),
    [METRIC_SERVER_BACKOFFS] = SERIES(notes[NOTE_SERVER_BACKOFF]),
    [METRIC_SERVER_DRAINS] = SERIES(notes[NOTE_SERVER_DRAINING]),
    [METRIC_SERVER_SHORTFALLS] = SERIES(notes[NOTE_SERVER_SHORTFALL]),
    [METRIC_SERVER_UNKNOWN_MATCHES] = SERIES(notes[NOTE_SERVER_UNKNOWN_MATCH]),
    [METRIC_LATE_ACKS] = SERIES(notes[NOTE_LATE_ACK]),
    [METRIC_CANCELS_GIVEN_UP] = SERIES(notes[NOTE_CANCEL_GIVEN_UP]),

    [METRIC_MATCHES_LOST] = SERIES(notes[NOTE_MATCH_LOST]),
    [METRIC_MATCHES_BACK] = SERIES(notes[NOTE_MATCH_BACK]),
    [METRIC_MATCHES_ENDED] = PLAIN(write_ended),

    [METRIC_CHAT_SERVERS] = COUNT(chat_servers),
    [METRIC_CHAT_REGISTRATIONS] = SUM(NOTE_CHAT_REGISTERED),
    [METRIC_CHAT_DEPARTURES] = SUM(NOTE_CHAT_GONE),
    [METRIC_REFUSALS] = PLAIN(write_refusals),
    [METRIC_SPOOFED_FRAMES] = PLAIN(write_spoofed),
    [METRIC_OPERATIONS] = SUM(NOTE_OPERATED),
    [METRIC_CONFIG_RELOADS] = SUM(NOTE_CONFIGURED),
    [METRIC_STOPS] = SUM(NOTE_STOPPED),
    [METRIC_STOPPED_SECONDS] = OWN(write_own_ms, stopped_ms, NULL),

    [METRIC_HOSTS] = PLAIN(write_hosts),
    [METRIC_ROOMS] = PLAIN(write_rooms),
    [METRIC_SEATS] = PLAIN(write_seats),
    [METRIC_BANS] = COUNT(bans),
    [METRIC_PLACEMENTS] = PLAIN(write_placements),
    [METRIC_JOINS] = PLAIN(write_joins),
    [METRIC_JOIN_DURATION] = {write_room_histogram, offsetof(struct series, join_durations),
                              &histogram_durations},
    [METRIC_SPAWNS] = ROOM_COUNTER(notes[NOTE_ROOM_SPAWNING]),
    [METRIC_SPAWN_RESULTS] = PLAIN(write_spawned),
    [METRIC_SPAWN_DURATION] = {write_room_histogram, offsetof(struct series, spawns),
                               &histogram_durations},
    [METRIC_SEATS_RESERVED] = ROOM_COUNTER(notes[NOTE_SEAT_RESERVED]),
    [METRIC_SEATS_TAKEN] = ROOM_COUNTER(notes[NOTE_SEAT_TAKEN]),
    [METRIC_SEATS_LEFT] = ROOM_COUNTER(notes[NOTE_SEAT_LEFT]),
    [METRIC_SEATS_EXPIRED] = ROOM_COUNTER(expired),
    [METRIC_ROOMS_ENDED] = PLAIN(write_rooms_ended),
    [METRIC_HOST_SILENCES] = SUM(NOTE_HOST_SILENT),
    [METRIC_HOST_BACKOFFS] = SUM(NOTE_HOST_BACKOFF),
    [METRIC_VERSIONS_QUARANTINED] = SUM(NOTE_VERSION_QUARANTINED),
    [METRIC_VERSION_BACKOFFS] = SUM(NOTE_VERSION_BACKOFF),

    [METRIC_AGENT_CALLS] = PLAIN(write_agent_calls),
    [METRIC_AGENT_CALL_DURATION] = {write_agent_durations, 0, &histogram_durations},
    [METRIC_AGENT_EVENT_BATCH] = OWN(write_histogram, event_batches, &histogram_counts),

    [METRIC_PLAYER_REQUESTS] = PLACED(notes[NOTE_ALLOCATION_OPENED]),
    [METRIC_PLAYER_ALLOCATIONS] = PLAIN(scrape_player_allocations),
    [METRIC_PLAYER_DURATION] = {scrape_player_histogram, offsetof(struct series, players.durations),
                                &histogram_durations},
    [METRIC_FRIEND_JOINS] = PLAIN(scrape_friend_joins),
    [METRIC_TOKEN_MOVES] = PLACED(players.moves),
    [METRIC_TOKEN_COLLISIONS] = PLAIN(scrape_token_collisions),
    [METRIC_QUEUE_LENGTH] = PLAIN(scrape_queue_length),
    [METRIC_QUEUE_WAIT] = {scrape_queue_waits, 0, &histogram_waits},
    [METRIC_QUEUE_ABANDONED] = PLAIN(scrape_queue_abandoned),
    [METRIC_RESULTS_OWED] = COUNT(allocations_owed),

    [METRIC_BROKER_CONNECTED] = PLAIN(scrape_broker_connected),
    [METRIC_BROKER_RECEIVED] = BROKER(received),
    [METRIC_BROKER_REDELIVERED] = BROKER(redelivered),
    [METRIC_BROKER_PASSED_OVER] = PLAIN(scrape_broker_passed_over),
    [METRIC_BROKER_PUBLISHED] = BROKER(published),
    [METRIC_BROKER_UNSENT] = BROKER(unsent),
    [METRIC_BROKER_LAG] = BROKER(waiting),
    [METRIC_BROKER_RECONNECTS] = BROKER(reconnected),
    [METRIC_CLUSTER_WRITES] = PLAIN(scrape_cluster_writes),
    [METRIC_CLUSTER_READS] = PLAIN(scrape_cluster_reads),
    [METRIC_CLUSTER_SERVERS] = PLAIN(scrape_cluster_servers),
    [METRIC_ROUTES] = PLAIN(scrape_routes),
    [METRIC_ROUTE_WRITES] = PLAIN(scrape_route_writes),
    [METRIC_CELL_LEADER] = CELL(leads),
    [METRIC_CELL_READY] = CELL(ready),
    [METRIC_CELL_EPOCH] = CELL(epoch),
    [METRIC_CELL_BATCH] = CELL(seq),
    [METRIC_CELL_BEHIND] = CELL(behind),
    [METRIC_CELL_LEASE] = PLAIN(scrape_cell_lease),
    [METRIC_CELL_NODES] = PLAIN(scrape_cell_nodes),
    [METRIC_CELL_STANDBYS_READY] = CELL(standbys_ready),
    [METRIC_HISTORY_LINES] = PLAIN(scrape_history_lines),
    [METRIC_HISTORY_BYTES] = PLAIN(scrape_history_bytes),
    [METRIC_HISTORY_FAILING] = PLAIN(scrape_history_failing),

    [METRIC_COMMIT_DURATION] = OWN(write_histogram, commits, &histogram_durations),
    [METRIC_BATCH_BYTES] = OWN(write_histogram, batch_bytes, &histogram_bytes),
    [METRIC_BATCH_CHANGES] = OWN(write_histogram, batch_changes, &histogram_counts),
    [METRIC_BATCH_EFFECTS] = OWN(write_histogram, batch_effects, &histogram_counts),
    [METRIC_COMMITS_FAILED] = OWN(write_own_counter, commits_failed, NULL),
    [METRIC_READ_ONLY] = PLAIN(write_read_only),
    [METRIC_COMMIT_AGE] = PLAIN(write_commit_age),
    [METRIC_BACKLOG] = PLAIN(write_backlog),
    [METRIC_FOLD_LAG_BATCHES] = PLAIN(write_fold_lag),
    [METRIC_FOLD_LAG_SECONDS] = PLAIN(write_fold_lag_seconds),
    [METRIC_JOURNAL_BATCHES] = STORE(journal_rows),
    [METRIC_JOURNAL_BYTES] = STORE(journal_bytes),
    [METRIC_STATE_BYTES] = STORE(state_bytes),
    [METRIC_DISK_BYTES] = STORE(disk_bytes),
    [METRIC_DISK_FREE_BYTES] = STORE(disk_free_bytes),

    [METRIC_CONNECTIONS] = DOORS(write_connections, connections),
    [METRIC_ACCEPTED] = DOORS(write_doors, accepted),
    [METRIC_REFUSED] = PLAIN(write_refused),
    [METRIC_CUT] = DOORS(write_doors, cut),
    [METRIC_SILENT] = DOORS(write_doors, silent),
    [METRIC_PROTOCOL_ERRORS] = DOORS(write_doors, protocol_errors),
    [METRIC_RECEIVED_BYTES] = DOORS(write_doors, received_bytes),
    [METRIC_SENT_BYTES] = DOORS(write_doors, sent_bytes),
    [METRIC_HELD] = PLAIN(write_held),
    [METRIC_HTTP_REQUESTS] = PLAIN(write_http_requests),
    [METRIC_HTTP_DURATION] = {write_http_durations, 0, &histogram_durations},
    [METRIC_TLS_EXPIRES] = PLAIN(write_tls_expires),

    [METRIC_FEED_READERS] = FEED(readers),
    [METRIC_FEED_GAPS] = FEED(gaps),
    [METRIC_FEED_BYTES_HELD] = FEED(bytes),

    [METRIC_LOOP_TURN] = OWN(write_histogram, turns, &histogram_durations),
    [METRIC_LOOP_LONGEST] = PLAIN(write_longest),
    [METRIC_LOG_DROPPED] = PLAIN(write_log_dropped),
    [METRIC_BUILD_INFO] = PLAIN(write_build_info),
    [METRIC_PROCESS_CPU] = PLAIN(write_cpu),
    [METRIC_PROCESS_RESIDENT] = PROCESS(resident_bytes),
    [METRIC_PROCESS_VIRTUAL] = PROCESS(virtual_bytes),
    [METRIC_PROCESS_FDS] = PROCESS(open_fds),
    [METRIC_PROCESS_MAX_FDS] = PROCESS(max_fds),
    [METRIC_PROCESS_START] = OWN(write_own_ms, started_wall_ms, NULL),
};

static const struct {
    const char *name;
    const char *type;
    const char *help;
} families[METRICS] = {
#define M(id, type, name, labels, help, seed) {name, #type, help},
#include "api/metrics.def"
#undef M
};

void metrics_render(struct metrics *m, struct buf *out)
{
    struct scrape s = {.m = m, .out = out, .core = metrics_core(m), .now_us = clock_monotonic_us()};
    find_places(&s);
    process_read(&m->descriptors, &s.process);
    if (s.core)
        core_count(s.core, &s.counts);
    s.has_store = m->sources.store && store_figures(m->sources.store, &s.store);
    scrape_look_at_cell(&s);
    for (int i = 0; i < METRICS; i++) {
        exposition_family(out, families[i].name, families[i].type, families[i].help);
        hows[i].write(&s, families[i].name, &hows[i]);
    }
    free(s.places);
}
