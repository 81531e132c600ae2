/* P10: allocations in fleets of provider agones, over HTTP. In the cluster's place is a stand-in
 * (bench_cluster), so what is measured is Muster's own work, and how many writes it makes: one for
 * somebody who comes, two for somebody who moves to a friend. Beside it plain clients patch
 * GameServers of the same stand-in, over as many connections as Muster writes on.
 *
 * Twice: with a stand-in that is held to a rate, as every real one is by its disk, where the
 * question is whether Muster keeps it busy; and with one that is not, where it is what Muster
 * itself can do. */
#include "cli/bench_child.h"
#include "cli/bench_clients.h"
#include "cli/bench_cluster.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    WRITES_AT_ONCE = 32, /* allocations of Muster's; as many patches, too */
    MOVERS = 256,
    SPARE = 256, /* GameServers that wait for somebody */
    READY_WAIT_MS = 10 * 1000,
    STILL_MS = 100, /* without a write: nothing is under way */
    LOOK_MS = 5,
    REQUEST_MAX = BENCH_TOKEN_MAX + 512,
};

static struct {
    int64_t connections;
    int64_t writes_per_s;
    int64_t playing;
    int64_t object_bytes;
} wish = {.connections = 64, .writes_per_s = 2000, .playing = 1000, .object_bytes = 5000};

const struct arg bench_agones_options[] = {
    {.name = "--connections",
     .kind = ARG_NUMBER,
     .into = &wish.connections,
     .min = 1,
     .max = 100,
     .value = "N",
     .help = "HTTP clients (64)"},
    {.name = "--writes-per-s",
     .kind = ARG_NUMBER,
     .into = &wish.writes_per_s,
     .min = 1,
     .max = 1000000,
     .value = "N",
     .help = "what the stand-in is held to, the first time (2000)"},
    {.name = "--playing",
     .kind = ARG_NUMBER,
     .into = &wish.playing,
     .min = 1,
     .max = 3500,
     .value = "N",
     .help = "games at once; then the oldest ends (1000)"},
    {.name = "--object-bytes",
     .kind = ARG_NUMBER,
     .into = &wish.object_bytes,
     .min = 1,
     .max = 50000,
     .value = "N",
     .help = "of a GameServer's JSON, about (5000)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_SECONDS,
    BENCH_ARG_LOG_LEVEL,
    BENCH_ARG_DATA_ROOT,
    BENCH_ARG_JSON,
    {0},
};

/* Rooms of friends have three seats and are opened by two: so no two fit into one that is there,
 * and there is a seat in each for somebody who comes later. */
static const char config_format[] = "default_region: EU\n"
                                    "kubernetes: {url: 'http://%s'}\n"
                                    "fleets:\n"
                                    "  - name: default\n"
                                    "  - {name: solo, provider: agones, max_players: 1}\n"
                                    "  - {name: friends, provider: agones, max_players: 3}\n";

/* What was found with the stand-in held to one rate. */
struct found {
    struct bench_found raw, come, move;
    struct figure ratio, move_ratio, writes, move_writes;
};

struct work {
    struct bench *bench;
    struct served served;
    struct cluster cluster;
    char token[BENCH_TOKEN_MAX];
    int64_t came, moved, patched; /* requests so far */
};

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static void put(struct buf *out, const struct work *w, const char *body)
{
    char *at = (char *)buf_extend(out, REQUEST_MAX);
    int n = snprintf(at, REQUEST_MAX,
                     "POST /v1/allocations HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     w->token, strlen(body), body);
    out->len -= REQUEST_MAX - (size_t)n;
}

static void next_comer(void *user, struct buf *out)
{
    struct work *w = user;
    char body[256];
    int64_t i = w->came++;
    snprintf(body, sizeof(body),
             "{\"ticketId\":\"come-%" PRId64 "\",\"fleet\":\"solo\",\"playerId\":\"solo-%" PRId64
             "\"}",
             i, i);
    put(out, w, body);
}

/* Each goes to and fro between two rooms, in which friends of his stay. */
static void next_mover(void *user, struct buf *out)
{
    struct work *w = user;
    char body[256];
    int64_t n = w->moved++;
    int64_t room = n % MOVERS * 2 + (n / MOVERS + 1) % 2;
    snprintf(body, sizeof(body),
             "{\"ticketId\":\"move-%" PRId64
             "\",\"fleet\":\"friends\",\"playerId\":\"guest-%" PRId64
             "\",\"joinOnIds\":[\"owner-%" PRId64 "\"]}",
             n, n % MOVERS * 2, room);
    put(out, w, body);
}

static void next_patch(void *user, struct buf *out)
{
    struct work *w = user;
    char body[128];
    int64_t i = w->patched++;
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"annotations\":{\"quilkin.dev/tokens\":\"%024" PRId64 "\"}}}", i);
    char *at = (char *)buf_extend(out, REQUEST_MAX);
    int n = snprintf(at, REQUEST_MAX,
                     "PATCH /apis/agones.dev/v1/namespaces/default/gameservers/raw-%" PRId64
                     "-0 HTTP/1.1\r\nHost: bench\r\nContent-Type: application/merge-patch+json\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     i % SPARE, strlen(body), body);
    out->len -= REQUEST_MAX - (size_t)n;
}

/* ── before it begins ──────────────────────────────────────────────────────────────────────── */

static void look_later(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
}

/* Both fleets are listed and watched, and core knows them. */
static bool is_ready(const struct work *w)
{
    static const char ready[] = "GET /readyz HTTP/1.1\r\nHost: bench\r\n\r\n";
    char request[REQUEST_MAX];
    struct buf hosts = {0};
    int n = snprintf(request, sizeof(request),
                     "GET /v1/hosts HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n",
                     w->token);
    bool ok = bench_ask_once(w->served.http, (struct str){ready, sizeof(ready) - 1}, NULL) == 200 &&
              bench_ask_once(w->served.http, (struct str){request, (size_t)n}, &hosts) == 200 &&
              strstr((const char *)hosts.data, "agones/solo") &&
              strstr((const char *)hosts.data, "agones/friends");
    buf_done(&hosts);
    return ok;
}

static bool await_ready(struct work *w)
{
    for (int waited_ms = 0; waited_ms < READY_WAIT_MS; waited_ms += LOOK_MS) {
        if (is_ready(w))
            return true;
        look_later();
    }
    return bench_fail(w->bench, "Muster does not see the cluster");
}

static bool open_room(struct work *w, int room)
{
    char body[256];
    struct buf request = {0}, answer = {0};
    snprintf(body, sizeof(body),
             "{\"ticketId\":\"room-%d\",\"fleet\":\"friends\",\"playerId\":\"owner-%d\","
             "\"partyIds\":[\"guest-%d\"]}",
             room, room, room);
    put(&request, w, body);
    int status = bench_ask_once(w->served.http,
                                (struct str){(const char *)request.data, request.len}, &answer);
    bool ok = (status == 200 && strstr((const char *)answer.data, "\"Success\"")) ||
              bench_fail(w->bench, "a room was answered with %d: %.200s", status,
                         (const char *)answer.data);
    buf_done(&request);
    buf_done(&answer);
    return ok;
}

static bool start(struct work *w)
{
    char data[BENCH_PATH_MAX], config[512];
    struct cluster_plan plan = {.servers = {[CLUSTER_SOLO] = (int)wish.playing + SPARE,
                                            [CLUSTER_FRIENDS] = 2 * MOVERS,
                                            [CLUSTER_RAW] = SPARE},
                                .playing = (int)wish.playing,
                                .object_bytes = (int)wish.object_bytes};
    if (!cluster_start(&w->cluster, w->bench, &plan))
        return false;
    bench_path(w->bench, "agones", data);
    snprintf(config, sizeof(config), config_format, w->cluster.address);
    bool ok =
        served_start(&w->served, w->bench, &(struct served_plan){.data = data, .config = config}) &&
        bench_read_token(w->bench, data, w->token) && await_ready(w);
    for (int i = 0; ok && i < 2 * MOVERS; i++)
        ok = open_room(w, i);
    return ok;
}

/* ── measuring ─────────────────────────────────────────────────────────────────────────────── */

static int64_t writes(const struct work *w)
{
    return w->cluster.shared->posts + w->cluster.shared->patches + w->cluster.shared->other_calls;
}

/* A token is taken from where a player was after he has his answer. */
static void await_still(const struct work *w)
{
    int64_t before = writes(w);
    for (int still_ms = 0; still_ms < STILL_MS; still_ms += LOOK_MS) {
        look_later();
        still_ms = writes(w) == before ? still_ms : 0;
        before = writes(w);
    }
}

/* Requests of one kind, and the writes that each came to. */
static bool run(struct work *w, bench_next_request *next, const int64_t *asked,
                struct bench_found *ret, struct figure *ret_writes)
{
    int64_t from = writes(w);
    int64_t asked_from = *asked;
    if (!bench_clients_run(w->bench, &w->served, (int)wish.connections, next, w, ret))
        return false;
    await_still(w);
    figure_add(ret_writes, (double)(writes(w) - from) / (double)(*asked - asked_from));
    return true;
}

static bool run_raw(struct work *w, struct bench_found *ret)
{
    struct served as_if = {.pid = w->cluster.pid};
    snprintf(as_if.http, sizeof(as_if.http), "%s", w->cluster.address);
    return bench_clients_run(w->bench, &as_if, WRITES_AT_ONCE, next_patch, w, ret);
}

/* Whoever came has a GameServer; those who wait in line were answered, too. */
static bool check(const struct work *w)
{
    int64_t given = w->cluster.shared->allocated;
    int64_t wanted = w->came + 2 * (int64_t)MOVERS;
    return given == wanted ||
           bench_fail(w->bench, "%" PRId64 " GameServers were given for %" PRId64 " allocations",
                      given, wanted);
}

static bool measure(struct work *w, int64_t writes_per_s, struct found *f)
{
    w->cluster.shared->writes_per_s = writes_per_s;
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        if (!run_raw(w, &f->raw) || !run(w, next_comer, &w->came, &f->come, &f->writes) ||
            !run(w, next_mover, &w->moved, &f->move, &f->move_writes) || !check(w))
            return false;
        figure_add(&f->ratio, f->come.rate.values[i] / f->raw.rate.values[i]);
        figure_add(&f->move_ratio,
                   f->move.rate.values[i] * f->move_writes.values[i] / f->raw.rate.values[i]);
    }
    return true;
}

/* ── telling ───────────────────────────────────────────────────────────────────────────────── */

static void tell_fields(struct bench *b, const struct work *w, const struct found *held,
                        const struct found *freely)
{
    bench_figure(b, "allocations_per_s", &held->come.rate, 0);
    bench_figure(b, "raw_patch_per_s", &held->raw.rate, 0);
    bench_figure(b, "ratio", &held->ratio, 3);
    bench_figure(b, "writes_per_allocation", &held->writes, 3);
    bench_figure(b, "moves_per_s", &held->move.rate, 0);
    bench_figure(b, "writes_per_move", &held->move_writes, 3);
    bench_figure(b, "move_writes_ratio", &held->move_ratio, 3);
    bench_figure(b, "p50_us", &held->come.p50, 0);
    bench_figure(b, "p99_us", &held->come.p99, 0);
    bench_figure(b, "cpu_us_per_allocation", &held->come.cpu, 1);
    bench_figure(b, "cpu_us_per_move", &held->move.cpu, 1);
    bench_figure(b, "unheld_allocations_per_s", &freely->come.rate, 0);
    bench_figure(b, "unheld_raw_patch_per_s", &freely->raw.rate, 0);
    bench_figure(b, "unheld_ratio", &freely->ratio, 3);
    bench_figure(b, "unheld_writes_per_allocation", &freely->writes, 3);
    bench_figure(b, "unheld_moves_per_s", &freely->move.rate, 0);
    bench_figure(b, "unheld_writes_per_move", &freely->move_writes, 3);
    bench_figure(b, "unheld_p50_us", &freely->come.p50, 0);
    bench_figure(b, "unheld_p99_us", &freely->come.p99, 0);
    bench_figure(b, "unheld_cpu_us_per_allocation", &freely->come.cpu, 1);
    bench_figure(b, "unheld_cpu_us_per_move", &freely->move.cpu, 1);
    bench_number(b, "conflicts", (double)w->cluster.shared->conflicts, 0);
    bench_number(b, "connections", (double)wish.connections, 0);
    bench_number(b, "writes_per_s", (double)wish.writes_per_s, 0);
    bench_number(b, "object_bytes", (double)wish.object_bytes, 0);
    bench_number(b, "n", held->come.n + freely->come.n, 0);
    bench_number(b, "n_moves", held->move.n + freely->move.n, 0);
}

static void tell_row(struct bench_row *row, const struct bench_found *found,
                     const struct bench_found *raw, const struct figure *ratio,
                     const struct figure *per)
{
    char plain[BENCH_PRINT_MAX];
    row->n = found->n;
    snprintf(row->yardstick, sizeof(row->yardstick), "raw PATCH %s/s (writes %.2f ×); writes: %.3f",
             bench_print(plain, figure_median(&raw->rate), 0), figure_median(ratio),
             figure_median(per));
    snprintf(row->cpu, sizeof(row->cpu), "%.0f µs", figure_median(&found->cpu));
}

static void tell_rows(struct bench *b, const struct found *held, const struct found *freely)
{
    struct bench_row *row;
    row = bench_row(b, "P10", "Agones: allocations, stand-in API server held to 2,000 writes/s",
                    &held->come.rate, "/s", 0);
    tell_row(row, &held->come, &held->raw, &held->ratio, &held->writes);
    row->wanted = "≥ 0.9 × raw PATCH, one write";
    row->reach = figure_most(&held->writes) > 1 ? 0.01 : figure_median(&held->ratio) / 0.9;
    row = bench_row(b, "", "Agones: moves to friends, same", &held->move.rate, "/s", 0);
    tell_row(row, &held->move, &held->raw, &held->move_ratio, &held->move_writes);
    row->wanted = "two writes";
    row->reach = 2 / figure_most(&held->move_writes);
    row = bench_row(b, "", "Agones: allocations, stand-in as fast as it can", &freely->come.rate,
                    "/s", 0);
    tell_row(row, &freely->come, &freely->raw, &freely->ratio, &freely->writes);
    row->wanted = "";
    row = bench_row(b, "", "Agones: moves to friends, same", &freely->move.rate, "/s", 0);
    tell_row(row, &freely->move, &freely->raw, &freely->move_ratio, &freely->move_writes);
    row->wanted = "";
}

bool bench_agones(struct bench *b)
{
    static struct found held, freely; /* large */
    struct work w = {.bench = b};
    held = freely = (struct found){0};
    bool ok = start(&w) && measure(&w, wish.writes_per_s, &held) && measure(&w, 0, &freely);
    served_end(&w.served, SIGKILL);
    bench_remove(b, "agones");
    if (ok) {
        tell_fields(b, &w, &held, &freely);
        tell_rows(b, &held, &freely);
    }
    cluster_end(&w.cluster);
    return ok;
}

int bench_agones_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_agones_options, bench_agones);
}
