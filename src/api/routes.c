#include "api/routes.h"

#include "api/routes_file.h"
#include "base/full.h"
#include "base/log.h"
#include "core/view.h"
#include "net/loop.h"
#include "store/pipeline.h"

#include <stdlib.h>
#include <string.h>

/*   IDLE ──a route came or went──▶ READING ──durable──▶ WRITING ──▶ IDLE
 *     ▲                               │ not stored         │ failed
 *     └───────RETRY_MS later──────────┴────────────────────┘        */
enum routes_state { ROUTES_IDLE, ROUTES_READING, ROUTES_WRITING };

enum { RETRY_MS = 1000 };

struct route_set {
    struct route_line *lines;
    size_t n;
};

struct routes {
    struct doors *doors;
    conn_id id;
    char *path;
    bool filters;
    enum routes_state state;
    bool begun;       /* something was written, or tried */
    bool complained;  /* … and failed since the last time it did not */
    int64_t retry_ms; /* not again before this */
    bool orphan;      /* nobody wants it any more but the write under way */
    uint64_t seen;    /* core's generation of what is read or written last */
    struct route_set in_file;
    struct route_set next;
    uv_work_t work;
    int err; /* of the write: an errno */
    struct routes_figures figures;
};

static void set_done(struct route_set *set)
{
    free(set->lines);
    *set = (struct route_set){0};
}

static const struct core *core_of(const struct routes *r)
{
    return pipeline_core(r->doors->pipeline);
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

/* Where Kubernetes runs the servers it also tells the proxies. */
static bool is_told_elsewhere(const struct core *core, const char *fleet)
{
    const struct core_config *config = core_config(core);
    for (size_t i = 0; i < config->n_fleets; i++) {
        if (strcmp(config->fleets[i].name, fleet) == 0)
            return config->fleets[i].provider == PROVIDER_AGONES;
    }
    return false;
}

static void read_routes(struct routes *r)
{
    const struct core *core = core_of(r);
    struct core_counts counts;
    struct view_route v;
    int64_t id = 0;
    core_count(core, &counts);
    size_t cap = counts.room_seats > 0 ? (size_t)counts.room_seats : 0;
    set_done(&r->next);
    r->next.lines = xcalloc(cap + 1, sizeof(*r->next.lines));
    while (r->next.n < cap && (id = core_next(core, ROW_room_seat, id)) != 0) {
        if (view_route(core, id, &v) && !is_told_elsewhere(core, v.fleet))
            route_line_set(&r->next.lines[r->next.n++], v.token, v.address, v.port);
    }
}

void routes_before_flush(struct routes *r)
{
    if (!r || r->state != ROUTES_IDLE || r->doors->monotonic_ms < r->retry_ms)
        return;
    uint64_t now = view_routes_generation(core_of(r));
    if (r->begun && now == r->seen)
        return;
    r->begun = true;
    r->seen = now;
    read_routes(r);
    r->state = ROUTES_READING;
    struct event e = {.kind = EVENT_READ, .conn = r->id};
    pipeline_event(r->doors->pipeline, &e, r->doors->monotonic_ms, r->doors->wall_ms);
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static int put_lines(const struct routes *r, const struct route_line *lines, size_t n)
{
    struct buf text = {0};
    routes_render(&text, r->filters, lines, n);
    int err = routes_put(r->path, &text);
    buf_done(&text);
    return err;
}

/* On a thread of its own: nobody touches these sets meanwhile. */
static void write_file(uv_work_t *work)
{
    struct routes *r = work->data;
    struct route_line *stay = xcalloc(r->next.n + 1, sizeof(*stay));
    routes_sort(r->next.lines, r->next.n);
    size_t n = routes_stay(r->in_file.lines, r->in_file.n, r->next.lines, r->next.n, stay);
    r->err = n < r->next.n ? put_lines(r, stay, n) : 0;
    if (r->err == 0)
        r->err = put_lines(r, r->next.lines, r->next.n);
    free(stay);
}

static void destroy(struct routes *r)
{
    set_done(&r->in_file);
    set_done(&r->next);
    free(r->path);
    free(r);
}

static void log_failure(const struct routes *r)
{
    char quoted[LOG_QUOTE_MAX + 8];
    log_line(LOG_ERROR, "the file of routes cannot be written; it is tried again",
             "file=%s why=\"%s\"", log_quote(quoted, str_of(r->path)), full_reason(r->err));
}

static void try_later(struct routes *r)
{
    r->state = ROUTES_IDLE;
    r->begun = false;
    r->retry_ms = r->doors->monotonic_ms + RETRY_MS;
}

static void on_written(uv_work_t *work, int status)
{
    struct routes *r = work->data;
    (void)status;
    if (r->orphan) {
        destroy(r);
        return;
    }
    if (r->err != 0) {
        r->figures.failed++;
        if (!r->complained)
            log_failure(r);
        r->complained = true;
        try_later(r);
        return;
    }
    r->state = ROUTES_IDLE;
    r->complained = false;
    set_done(&r->in_file);
    r->in_file = r->next;
    r->next = (struct route_set){0};
    r->figures.routes = (int64_t)r->in_file.n;
    r->figures.written++;
}

static void was_read(struct routes *r, int err)
{
    if (err != 0) {
        try_later(r);
        return;
    }
    r->state = ROUTES_WRITING;
    r->work.data = r;
    (void)uv_queue_work(&r->doors->loop->uv, &r->work, write_file, on_written);
}

void routes_release(struct routes *r, const struct effect *effects, size_t n)
{
    for (size_t i = 0; r && i < n; i++) {
        if (effects[i].kind == EFFECT_READ && effects[i].conn == r->id &&
            r->state == ROUTES_READING)
            was_read(r, effects[i].err);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct routes *routes_new(struct doors *doors, const char *path, bool filters)
{
    struct routes *r = xcalloc(1, sizeof(*r));
    r->doors = doors;
    r->id = ++doors->last_id;
    r->path = xstrdup(path);
    r->filters = filters;
    return r;
}

void routes_free(struct routes *r)
{
    if (r && r->state == ROUTES_WRITING)
        r->orphan = true;
    else if (r)
        destroy(r);
}

void routes_figures(const struct routes *r, struct routes_figures *ret)
{
    *ret = r->figures;
}
