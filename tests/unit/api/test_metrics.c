/* Metrics with a real core and a store in memory: events go in, what is released is counted, and
 * the page is read back as text. The clock is the test's. */
#include "api/metrics.h"

#include "api/cluster.h"
#include "api/door.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/view.h"
#include "lib/unit.h"
#include "store/memory.h"
#include "store/pipeline.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EU = 2, USE = 0, CHAT = 1, FIRST_SERVER = 10 };

struct world {
    struct metrics *metrics;
    struct store *store;
    struct pipeline *pipeline;
    struct core_config config;
    int64_t now_us;
    int64_t delay_us; /* of each commit */
    struct store_batch submitted;
    bool is_submitted;
    struct buf page;
};

static const int64_t wall_start_ms = 1700000000000;

static int64_t wall_ms(const struct world *w)
{
    return wall_start_ms + w->now_us / 1000;
}

static void submit(void *user, const struct store_batch *batch)
{
    struct world *w = user;
    metrics_submitted(w->metrics, batch, w->now_us);
    w->submitted = *batch;
    w->is_submitted = true;
}

static void release(void *user, const struct effect *effects, size_t n)
{
    struct world *w = user;
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == EFFECT_NOTE)
            metrics_note(w->metrics, &effects[i], w->now_us, wall_ms(w));
    }
}

static int setup(void **state)
{
    static const uint8_t secret[CORE_SECRET_SIZE] = {1};
    struct world *w = calloc(1, sizeof(*w));
    struct pipeline_world world = {.submit = submit, .release = release, .user = w};
    w->now_us = 1000000;
    w->store = store_open_memory();
    core_config_default(&w->config);
    w->config.any_token = true;
    w->metrics = metrics_new(wall_start_ms);
    assert_int_equal(pipeline_new(w->store, &w->config, secret, &world, wall_ms(w),
                                  w->now_us / 1000, &w->pipeline),
                     0);
    metrics_watch(w->metrics,
                  &(struct metrics_sources){.pipeline = w->pipeline, .store = w->store});
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    pipeline_free(w->pipeline);
    metrics_free(w->metrics);
    store_close(w->store);
    buf_done(&w->page);
    free(w);
    return 0;
}

static void commit(struct world *w)
{
    while (w->is_submitted) {
        w->is_submitted = false;
        w->now_us += w->delay_us;
        int result = store_commit(w->store, &w->submitted);
        metrics_committed(w->metrics, result, w->delay_us, w->now_us);
        pipeline_committed(w->pipeline, result, w->now_us / 1000, wall_ms(w));
    }
}

static void step(struct world *w, struct event *e)
{
    e->at_us = w->now_us;
    pipeline_event(w->pipeline, e, w->now_us / 1000, wall_ms(w));
    pipeline_flush(w->pipeline, w->now_us / 1000, wall_ms(w));
    commit(w);
}

/* Time passes in ticks, as it does on the loop. */
static void pass(struct world *w, int64_t ms)
{
    for (int64_t i = 0; i < ms; i += 250) {
        w->now_us += 250 * 1000;
        step(w, &(struct event){.kind = EVENT_TICK});
        metrics_tick(w->metrics, wall_ms(w));
    }
}

static void chat_up(struct world *w)
{
    static const uint8_t regions[] = {EU, USE};
    struct event e = {.kind = EVENT_CHAT_HELLO, .conn = CHAT};
    e.chat_hello = (struct chat_mgr_handshake){
        .service_token = STR("any"), .chat_server_id = STR("chat"), .regions = {2, regions, 2}};
    step(w, &e);
}

static conn_id say_hello(struct world *w, int i)
{
    conn_id conn = (conn_id)(FIRST_SERVER + i);
    struct event e = {.kind = EVENT_SERVER_HELLO, .conn = conn};
    e.server_hello = (struct chat_sv_handshake){.server_token = STR("any"),
                                                .ip = STR("10.0.0.1"),
                                                .port = 2000 + i,
                                                .region = EU,
                                                .max_concurrent_matches = 4};
    step(w, &e);
    return conn;
}

/* A server of region EU with four slots; its connection. */
static conn_id server_up(struct world *w, int i)
{
    conn_id conn = say_hello(w, i);
    struct view_peer peer;
    assert_true(view_peer(pipeline_core(w->pipeline), conn, &peer));
    struct event beat = {.kind = EVENT_HEARTBEAT, .conn = conn};
    beat.heartbeat = (struct chat_sv_heartbeat){
        .server_id = (int32_t)peer.server, .cpu_percent = 50, .memory_percent = 25};
    step(w, &beat);
    struct event list = {.kind = EVENT_MATCH_LIST, .conn = conn};
    list.match_list.server_id = (int32_t)peer.server;
    step(w, &list);
    return conn;
}

static void ask(struct world *w, int32_t lobby, int8_t region)
{
    struct event e = {.kind = EVENT_ALLOCATE, .conn = CHAT};
    e.allocate = (struct chat_mgr_server_allocation_request){
        .lobby = lobby, .game_type = 1, .region = region, .player_count = 10};
    step(w, &e);
}

static void ack(struct world *w, conn_id server, int32_t lobby, bool success)
{
    struct event e = {.kind = EVENT_ALLOCATE_ACK, .conn = server};
    e.allocate_ack = (struct chat_sv_allocate_match_ack){.success = success, .lobby = lobby};
    step(w, &e);
}

static void cancel(struct world *w, int32_t lobby)
{
    struct event e = {.kind = EVENT_CANCEL, .conn = CHAT};
    e.cancel.lobby = lobby;
    step(w, &e);
}

static void match_ended(struct world *w, conn_id server, int32_t lobby)
{
    struct view_peer peer;
    assert_true(view_peer(pipeline_core(w->pipeline), server, &peer));
    struct event e = {.kind = EVENT_MATCH_ENDED, .conn = server};
    e.match_ended = (struct chat_sv_match_ended){.server_id = (int32_t)peer.server, .lobby = lobby};
    step(w, &e);
}

static const char *page_of(struct world *w)
{
    buf_clear(&w->page);
    metrics_render(w->metrics, &w->page);
    buf_append(&w->page, "", 1);
    return (const char *)w->page.data;
}

/* The value of that sample, as text; "" when there is none. */
static const char *sample(struct world *w, const char *name)
{
    static char value[64];
    size_t len = strlen(name);
    value[0] = '\0';
    for (const char *line = page_of(w); line; line = strchr(line, '\n')) {
        line += line[0] == '\n';
        if (strncmp(line, name, len) == 0 && line[len] == ' ')
            snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + len + 1, "\n"),
                     line + len + 1);
    }
    return value;
}

#define assert_sample(w_, name_, value_) assert_string_equal(sample(w_, name_), value_)
#define EU_ "{fleet=\"default\",region=\"EU\""

/* ── the page ──────────────────────────────────────────────────────────────────────────────── */

static void every_metric_is_introduced_once(void **state)
{
    static const char *const lines[] = {
#define M(id, type, name, labels, help, seed) "\n# TYPE " name " " #type "\n",
#include "api/metrics.def"
#undef M
    };
    struct world *w = *state;
    const char *page = page_of(w);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const char *found = strstr(page, lines[i]);
        if (!found)
            fail_msg("missing:%s", lines[i]);
        assert_null(strstr(found + 1, lines[i]));
    }
}

/* Prometheus' own reader, with its lints. */
static void check_with_promtool(struct world *w)
{
    char path[] = "/tmp/muster-metrics-XXXXXX";
    char command[128];
    page_of(w);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, w->page.data, w->page.len - 1), w->page.len - 1);
    close(fd);
    snprintf(command, sizeof(command), "promtool check metrics <%s >&2", path);
    int result = system(command);
    unlink(path);
    assert_int_equal(result, 0);
}

static void promtool_finds_nothing_to_say(void **state)
{
    struct world *w = *state;
    check_with_promtool(w); /* of a Muster to which nothing has happened */
    chat_up(w);
    conn_id server = server_up(w, 0);
    ask(w, 1, EU);
    ack(w, server, 1, true);
    ask(w, 2, REGION_AUTO);
    ask(w, 3, USE);
    ask(w, 0, EU);
    cancel(w, 2);
    match_ended(w, server, 1);
    pass(w, 1000);
    metrics_http(w->metrics, "servers.list", 200, 100);
    metrics_http(w->metrics, NULL, 404, 100);
    metrics_turn(w->metrics, 100, w->now_us);
    check_with_promtool(w);
}

/* ── allocations ───────────────────────────────────────────────────────────────────────────── */

static void an_allocation_is_counted_and_measured(void **state)
{
    struct world *w = *state;
    chat_up(w);
    conn_id server = server_up(w, 0);
    w->delay_us = 300;
    ask(w, 1, EU);
    assert_sample(w, "muster_allocation_requests_total" EU_ "}", "1");
    assert_sample(w, "muster_allocations_total" EU_ ",result=\"done\",reason=\"ok\"}", "0");
    assert_sample(w, "muster_tickets_open", "1");
    w->now_us += 1000; /* the server thinks */
    ack(w, server, 1, true);
    assert_sample(w, "muster_allocations_total" EU_ ",result=\"done\",reason=\"ok\"}", "1");
    assert_sample(w, "muster_tickets_open", "0");
#define DURATION "muster_allocation_duration_seconds"
    assert_sample(w, DURATION "_count" EU_ ",result=\"done\"}", "1");
    assert_sample(w, DURATION "_sum" EU_ ",result=\"done\"}", "0.0016");
    assert_sample(w, DURATION "_bucket" EU_ ",result=\"done\",le=\"0.001\"}", "0");
    assert_sample(w, DURATION "_bucket" EU_ ",result=\"done\",le=\"0.0025\"}", "1");
    assert_sample(w, DURATION "_bucket" EU_ ",result=\"done\",le=\"+Inf\"}", "1");
    assert_sample(w, "muster_allocation_ack_duration_seconds_sum" EU_ "}", "0.0016");
    assert_sample(w, "muster_allocation_chosen_load_ratio_sum" EU_ "}", "0.25");
    assert_sample(w, "muster_sessions_open" EU_ "}", "1");
    assert_sample(w, "muster_slots_used" EU_ "}", "1");
    assert_sample(w, "muster_slots_max" EU_ "}", "4");
}

static void a_repeated_request_is_one(void **state)
{
    struct world *w = *state;
    chat_up(w);
    conn_id server = server_up(w, 0);
    ask(w, 1, EU);
    ask(w, 1, EU);
    ack(w, server, 1, true);
    ask(w, 1, EU);
    assert_sample(w, "muster_allocation_requests_total" EU_ "}", "1");
    assert_sample(w, "muster_allocations_total" EU_ ",result=\"done\",reason=\"ok\"}", "1");
    assert_sample(w, DURATION "_count" EU_ ",result=\"done\"}", "1");
}

static void failures_have_reasons(void **state)
{
    struct world *w = *state;
    chat_up(w);
    server_up(w, 0); /* so that the region is known: EU; it never acknowledges */
    ask(w, 1, USE);
    assert_sample(w, "muster_allocation_requests_total{fleet=\"default\",region=\"USE\"}", "1");
    assert_sample(w,
                  "muster_allocations_total{fleet=\"default\",region=\"USE\",result=\"failed\","
                  "reason=\"no_servers\"}",
                  "1");
    ask(w, 2, EU);
    pass(w, 5000);
    assert_sample(
        w, "muster_allocations_total" EU_ ",result=\"failed\",reason=\"allocation_timeout\"}", "1");
    assert_sample(w, DURATION "_count" EU_ ",result=\"failed\"}", "1");
    assert_sample(w, "muster_server_backoffs_total" EU_ "}", "1");
    struct minute_figures recent;
    minute_read(&metrics_recent(w->metrics)->allocations, w->now_us, &recent);
    assert_int_equal(recent.failed, 2);
}

static void the_minute_knows_commits_and_the_one_under_way(void **state)
{
    struct world *w = *state;
    struct minute_figures before, commits;
    minute_read(&metrics_recent(w->metrics)->commits, w->now_us, &before);
    metrics_submitted(w->metrics, &(struct store_batch){.seq = 1}, w->now_us);
    assert_int_equal(metrics_commit_under_way_us(w->metrics, w->now_us + 3000), 3000);
    metrics_committed(w->metrics, 0, 5000, w->now_us + 5000);
    assert_int_equal(metrics_commit_under_way_us(w->metrics, w->now_us + 6000), 0);
    metrics_committed(w->metrics, ERR_IO, 5000, w->now_us + 6000);
    minute_read(&metrics_recent(w->metrics)->commits, w->now_us + 6000, &commits);
    assert_int_equal(commits.done, before.done + 1);
    assert_int_equal(commits.failed, before.failed + 1);
    assert_true(commits.p99_us >= 5000);
}

static void the_minute_knows_joins_and_why_they_failed(void **state)
{
    struct world *w = *state;
    struct minute_figures joins;
    int64_t reasons[ERR_ORDER_END];
    metrics_placed(w->metrics, &(struct effect){.err = 0}, w->now_us);
    metrics_placed(w->metrics, &(struct effect){.err = 0}, w->now_us);
    metrics_placed(w->metrics, &(struct effect){.err = ERR_NO_HOST}, w->now_us);
    minute_read(&metrics_recent(w->metrics)->joins, w->now_us, &joins);
    recent_reasons(metrics_recent(w->metrics), w->now_us, reasons);
    assert_int_equal(joins.done, 2);
    assert_int_equal(joins.failed, 1);
    assert_int_equal(reasons[ERR_ORDER_NO_HOST], 1);
}

/* Who waited in line waited for others; who took his request back was not refused. */
static void players_places_count_in_the_minute(void **state)
{
    struct world *w = *state;
    struct minute_figures places;
    struct effect done = {.kind = EFFECT_NOTE, .note = NOTE_ALLOCATION_DONE, .region_code = -1};
    struct effect failed = {.kind = EFFECT_NOTE, .note = NOTE_ALLOCATION_FAILED, .region_code = -1};
    done.asked_us = w->now_us - 1000;
    metrics_note(w->metrics, &done, w->now_us, 0);
    done.wall_ms = 40000;
    done.asked_us = w->now_us - 40000000;
    metrics_note(w->metrics, &done, w->now_us, 0);
    failed.err = ERR_NO_CAPACITY;
    metrics_note(w->metrics, &failed, w->now_us, 0);
    failed.err = ERR_TICKET_CANCELLED;
    metrics_note(w->metrics, &failed, w->now_us, 0);
    minute_read(&metrics_recent(w->metrics)->allocations, w->now_us, &places);
    assert_int_equal(places.done, 2);
    assert_int_equal(places.failed, 1);
    assert_true(places.p99_us >= 1000 && places.p99_us < 2000);
}

static void retries_have_reasons(void **state)
{
    struct world *w = *state;
    chat_up(w);
    conn_id first = server_up(w, 0);
    server_up(w, 1);
    server_up(w, 2);
    ask(w, 1, EU);
    ack(w, first, 1, false);
    pass(w, 5000);
    assert_sample(w, "muster_allocation_retries_total" EU_ ",reason=\"refused\"}", "1");
    assert_sample(w, "muster_allocation_retries_total" EU_ ",reason=\"timed_out\"}", "1");
    assert_sample(w, "muster_allocation_retries_total" EU_ ",reason=\"dropped\"}", "0");
    assert_sample(w, "muster_allocation_requests_total" EU_ "}", "1");
}

static void only_a_cancel_without_an_answer_is_an_allocation(void **state)
{
    struct world *w = *state;
    chat_up(w);
    conn_id server = server_up(w, 0);
    ask(w, 1, EU);
    cancel(w, 1);
#define CANCELLED                                                                                  \
    "muster_allocations_total" EU_ ",result=\"cancelled\",reason=\"ticket_cancelled\"}"
    assert_sample(w, CANCELLED, "1");
    ask(w, 2, EU);
    ack(w, server, 2, true);
    cancel(w, 2);
    assert_sample(w, CANCELLED, "1");
    assert_sample(w, DURATION "_count" EU_ ",result=\"cancelled\"}", "1");
}

static void a_request_for_any_region_is_of_several(void **state)
{
    struct world *w = *state;
    chat_up(w);
    conn_id server = server_up(w, 0);
    ask(w, 1, REGION_AUTO);
    ack(w, server, 1, true);
    assert_sample(w, "muster_allocation_requests_total{fleet=\"default\",region=\"several\"}", "1");
    assert_sample(w, "muster_allocations_total" EU_ ",result=\"done\",reason=\"ok\"}", "1");
}

static void without_the_time_of_asking_it_is_only_counted(void **state)
{
    struct world *w = *state;
    struct effect e = {.kind = EFFECT_NOTE, .note = NOTE_TICKET_DONE, .fleet_id = 1, .lobby = 1};
    e.region_code = EU;
    metrics_note(w->metrics, &e, w->now_us, 0);
    struct minute_figures recent;
    minute_read(&metrics_recent(w->metrics)->allocations, w->now_us, &recent);
    assert_int_equal(recent.done, 1);
    assert_int_equal(recent.p99_us, 0);
    assert_sample(w, DURATION "_count{fleet=\"1\",region=\"EU\",result=\"done\"}", "0");
}

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

static void room_note(struct world *w, enum note note, enum end_reason reason, int err)
{
    struct effect e = {.kind = EFFECT_NOTE, .note = note, .fleet_id = 1, .err = err};
    e.region_code = EU;
    e.reason = (int8_t)reason;
    e.asked_us = w->now_us > 2000000 ? w->now_us - 2000000 : 1;
    if (note == NOTE_SEAT_LEFT)
        e.text = STR("the reservation ran out");
    metrics_note(w->metrics, &e, w->now_us, 0);
}

#define ROOM_ "{fleet=\"1\",region=\"EU\""

static void spawns_and_seats_are_counted(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 3; i++)
        room_note(w, NOTE_ROOM_SPAWNING, END_NONE, 0);
    room_note(w, NOTE_ROOM_OPEN, END_NONE, 0);
    room_note(w, NOTE_ROOM_ENDED, END_SPAWN_TIMEOUT, 0);
    room_note(w, NOTE_ROOM_ENDED, END_EMPTY, 0);
    room_note(w, NOTE_SEAT_RESERVED, END_NONE, 0);
    room_note(w, NOTE_SEAT_LEFT, END_NONE, 0);
    assert_sample(w, "muster_spawns_total" ROOM_ "}", "3");
    assert_sample(w, "muster_spawn_results_total" ROOM_ ",result=\"open\"}", "1");
    assert_sample(w, "muster_spawn_results_total" ROOM_ ",result=\"timed_out\"}", "1");
    assert_sample(w, "muster_spawn_results_total" ROOM_ ",result=\"failed\"}", "0");
    assert_sample(w, "muster_rooms_ended_total" ROOM_ ",reason=\"empty\"}", "1");
    assert_sample(w, "muster_room_seats_expired_total" ROOM_ "}", "1");
    assert_sample(w, "muster_spawn_duration_seconds_count" ROOM_ "}", "1");
}

static void tickets_for_rooms_are_no_allocations(void **state)
{
    struct world *w = *state;
    struct minute_figures recent;
    struct metrics_refusal refusals[RECENT_REFUSALS];
    room_note(w, NOTE_TICKET_OPENED, END_NONE, 0);
    room_note(w, NOTE_TICKET_DONE, END_NONE, 0);
    room_note(w, NOTE_TICKET_FAILED, END_NONE, ERR_NO_HOST);
    minute_read(&metrics_recent(w->metrics)->allocations, w->now_us, &recent);
    assert_int_equal(recent.done + recent.failed, 0);
    assert_int_equal(metrics_refusals(w->metrics, refusals), 1);
    assert_sample(w, "muster_joins_total" ROOM_ ",result=\"done\",reason=\"ok\"}", "1");
    assert_sample(w, "muster_joins_total" ROOM_ ",result=\"failed\",reason=\"no_host\"}", "1");
    assert_sample(w, "muster_allocation_requests_total" ROOM_ "}", "0");
}

static void player_note(struct world *w, enum note note, const char *how, int err, bool waited)
{
    struct effect e = {.kind = EFFECT_NOTE, .note = note, .fleet_id = 1, .err = err};
    e.region_code = EU;
    e.region = str_of(how);
    e.asked_us = w->now_us > 2000000 ? w->now_us - 2000000 : 1;
    e.on = waited;
    e.wall_ms = waited ? 1500 : 0;
    e.session = note == NOTE_ALLOCATION_QUEUED ? 7 : 0;
    if (note == NOTE_SEAT_LEFT)
        e.text = str_of(how);
    metrics_note(w->metrics, &e, w->now_us, 0);
}

static void places_for_players_are_counted(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 5; i++)
        player_note(w, NOTE_ALLOCATION_OPENED, "", 0, false);
    player_note(w, NOTE_ALLOCATION_DONE, "friend", 0, false);
    player_note(w, NOTE_ALLOCATION_QUEUED, "", 0, false);
    player_note(w, NOTE_ALLOCATION_DONE, "queue", 0, true);
    player_note(w, NOTE_ALLOCATION_FAILED, "", ERR_FRIEND_UNAVAILABLE, false);
    player_note(w, NOTE_ALLOCATION_FAILED, "", ERR_QUEUE_TIMEOUT, true);
    player_note(w, NOTE_ALLOCATION_UNKNOWN_FRIENDS, "", 0, false);
    player_note(w, NOTE_TOKEN_COLLISION, "", 0, false);
    player_note(w, NOTE_SEAT_LEFT, "moved to another room", 0, false);
    player_note(w, NOTE_SEAT_LEFT, "the player left", 0, false);
    assert_sample(w, "muster_player_allocation_requests_total" ROOM_ "}", "5");
    assert_sample(w, "muster_player_allocations_total" ROOM_ ",result=\"done\",reason=\"friend\"}",
                  "1");
    assert_sample(w, "muster_player_allocations_total" ROOM_ ",result=\"done\",reason=\"room\"}",
                  "0");
    assert_sample(
        w, "muster_player_allocations_total" ROOM_ ",result=\"failed\",reason=\"queue_timeout\"}",
        "1");
    assert_sample(w, "muster_friend_joins_total" ROOM_ ",result=\"joined\"}", "1");
    assert_sample(w, "muster_friend_joins_total" ROOM_ ",result=\"queued\"}", "1");
    assert_sample(w, "muster_friend_joins_total" ROOM_ ",result=\"not_found\"}", "1");
    assert_sample(w, "muster_friend_joins_total" ROOM_ ",result=\"unavailable\"}", "1");
    assert_sample(w, "muster_token_moves_total" ROOM_ "}", "1");
    assert_sample(w, "muster_token_collisions_total{fleet=\"1\"}", "1");
    assert_sample(w, "muster_queue_length{fleet=\"1\"}", "0");
    assert_sample(w, "muster_queue_wait_seconds_count" ROOM_ ",result=\"served\"}", "1");
    assert_sample(w, "muster_queue_wait_seconds_sum" ROOM_ ",result=\"abandoned\"}", "1.5");
    assert_sample(w, "muster_queue_abandoned_total" ROOM_ ",reason=\"queue_timeout\"}", "1");
    assert_sample(w, "muster_player_allocation_duration_seconds_count" ROOM_ "}", "2");
}

static void lobby_note(struct world *w, enum note note, enum lobby_cause cause, int err)
{
    struct effect e = {.kind = EFFECT_NOTE, .note = note, .fleet_id = 1, .err = err, .load = 10};
    e.region_code = note == NOTE_LOBBY_STARTED ? EU : -1;
    e.reason = (int8_t)cause;
    e.since_us = 1000000;
    e.asked_us = 500000;
    metrics_note(w->metrics, &e, 1500000, 0);
}

/* Asked for in any region, started in one. */
static void lobbies_start_or_are_aborted_for_a_reason(void **state)
{
    struct world *w = *state;
    struct metrics_lobbies ever;
    assert_null(strstr(page_of(w), "\nmuster_lobbies_total{")); /* no noughts */
    for (int i = 0; i < 5; i++)
        lobby_note(w, NOTE_LOBBY_CREATED, LOBBY_CAUSE_NONE, 0);
    lobby_note(w, NOTE_LOBBY_MOVED, LOBBY_CAUSE_NONE, 0);
    lobby_note(w, NOTE_LOBBY_STARTED, LOBBY_CAUSE_NONE, 0);
    lobby_note(w, NOTE_LOBBY_ABORTED, LOBBY_CAUSE_ALLOCATION, ERR_NO_SERVERS);
    lobby_note(w, NOTE_LOBBY_ABORTED, LOBBY_CAUSE_LOADING, 0);
    lobby_note(w, NOTE_LOBBY_ABORTED, LOBBY_CAUSE_DISCONNECTED, 0);
    assert_sample(w, "muster_lobbies_created_total{fleet=\"1\",region=\"several\"}", "5");
    assert_sample(w, "muster_lobbies_total" ROOM_ ",result=\"started\",reason=\"ok\"}", "1");
#define ABORTED_ "muster_lobbies_total{fleet=\"1\",region=\"several\",result=\"aborted\",reason="
    assert_sample(w, ABORTED_ "\"no_servers\"}", "1");
    assert_sample(w, ABORTED_ "\"loading\"}", "1");
    assert_sample(w, ABORTED_ "\"disconnected\"}", "1");
    assert_sample(w, ABORTED_ "\"operator\"}", "0");
    assert_sample(w, "muster_lobby_start_duration_seconds_sum" ROOM_ "}", "0.5");
    assert_sample(w, "muster_lobby_duration_seconds_sum" ROOM_ "}", "1");
    assert_sample(w, "muster_lobby_players_total" ROOM_ ",result=\"started\"}", "10");
    assert_sample(w, "muster_lobby_moves_total{fleet=\"1\",region=\"several\"}", "1");
    assert_sample(w, "muster_lobbies{state=\"loading\"}", "0");
    assert_sample(w, "muster_clients", "0");
    metrics_lobbies(w->metrics, &ever);
    assert_int_equal(ever.started, 1);
    assert_int_equal(ever.aborted, 3);
    check_with_promtool(w);
    struct effect slow = {
        .kind = EFFECT_NOTE, .note = NOTE_LOBBY_STARTED, .fleet_id = 1, .region_code = EU};
    slow.since_us = slow.asked_us = 1; /* their time is 60 s */
    metrics_note(w->metrics, &slow, 55000001, 0);
#define STARTS_ "muster_lobby_start_duration_seconds_bucket{fleet=\"1\",region=\"EU\",le="
    assert_sample(w, STARTS_ "\"45\"}", "1");
    assert_sample(w, STARTS_ "\"60\"}", "2");
}

static void what_agents_are_asked_is_counted(void **state)
{
    struct world *w = *state;
    metrics_agent_call(w->metrics, "spawn", 202, 1000);
    metrics_agent_call(w->metrics, "spawn", 409, 1000);
    metrics_agent_call(w->metrics, "spawn", 0, 1000);
    metrics_agent_events(w->metrics, 7);
    metrics_placed(w->metrics, &(struct effect){.err = ERR_BANNED}, w->now_us);
    assert_sample(w, "muster_agent_calls_total{call=\"spawn\",result=\"done\"}", "1");
    assert_sample(w, "muster_agent_calls_total{call=\"spawn\",result=\"refused\"}", "1");
    assert_sample(w, "muster_agent_calls_total{call=\"spawn\",result=\"unanswered\"}", "1");
    assert_sample(w, "muster_agent_call_duration_seconds_count{call=\"spawn\"}", "3");
    assert_sample(w, "muster_agent_event_batch_sum", "7");
    assert_sample(w, "muster_placements_total{reason=\"banned\"}", "1");
    assert_sample(w, "muster_placements_total{reason=\"ok\"}", "0");
}

/* ── servers and matches ───────────────────────────────────────────────────────────────────── */

static void servers_are_shown_by_status(void **state)
{
    struct world *w = *state;
    chat_up(w);
    conn_id first = server_up(w, 0);
    server_up(w, 1);
    ask(w, 1, EU);
    ack(w, first, 1, true);
    assert_sample(w, "muster_servers" EU_ ",status=\"available\"}", "2");
    assert_sample(w, "muster_servers" EU_ ",status=\"offline\"}", "0");
    assert_sample(w, "muster_server_load_mean_ratio" EU_ "}", "0.125");
    assert_sample(w, "muster_server_load_spread_ratio" EU_ "}", "0.125");
    assert_sample(w, "muster_server_cpu_mean_ratio" EU_ "}", "0.5");
    assert_sample(w, "muster_server_memory_mean_ratio" EU_ "}", "0.25");
    assert_sample(w, "muster_server_registrations_total" EU_ "}", "2");
    assert_sample(w, "muster_chat_servers", "1");
}

static void a_silent_server_is_a_timeout(void **state)
{
    struct world *w = *state;
    chat_up(w);
    conn_id server = server_up(w, 0);
    ask(w, 1, EU);
    ack(w, server, 1, true);
    step(w, &(struct event){.kind = EVENT_GONE, .conn = server});
    assert_sample(w, "muster_server_drops_total" EU_ "}", "1");
    assert_sample(w, "muster_servers_passed_over" EU_ ",reason=\"away\"}", "1");
    pass(w, 30000);
    assert_sample(w, "muster_server_timeouts_total" EU_ "}", "1");
    assert_sample(w, "muster_servers" EU_ ",status=\"offline\"}", "1");
    assert_sample(w, "muster_matches_lost_total" EU_ "}", "1");
    assert_sample(w, "muster_server_cpu_mean_ratio" EU_ "}", ""); /* of nobody */
    pass(w, 600000);
    assert_sample(w, "muster_matches_ended_total" EU_ ",reason=\"server_lost\"}", "1");
}

static void round_trips_are_of_servers_only(void **state)
{
    struct world *w = *state;
    chat_up(w);
    conn_id server = server_up(w, 0);
    metrics_round_trip(w->metrics, server, 250);
    metrics_round_trip(w->metrics, CHAT, 250);
    metrics_round_trip(w->metrics, 4711, 250); /* nobody */
    assert_sample(w, "muster_server_round_trip_seconds_count" EU_ "}", "1");
    assert_sample(w, "muster_server_round_trip_seconds_bucket" EU_ ",le=\"0.00025\"}", "1");
    assert_sample(w, "muster_server_round_trip_seconds_bucket" EU_ ",le=\"0.0001\"}", "0");
}

static void refusals_are_counted_and_the_last_are_told(void **state)
{
    struct world *w = *state;
    chat_up(w);
    conn_id server = server_up(w, 0);
    ask(w, 0, EU);
    ask(w, -1, EU);
    match_ended(w, server, 77);
    ask(w, 5, USE);
    assert_sample(
        w, "muster_refusals_total{fleet=\"default\",region=\"several\",reason=\"invalid_lobby\"}",
        "2");
    assert_sample(w, "muster_refusals_total" EU_ ",reason=\"match_not_found\"}", "1");

    struct metrics_refusal last[RECENT_REFUSALS];
    assert_int_equal(metrics_refusals(w->metrics, last), 4);
    assert_int_equal(last[0].err, ERR_NO_SERVERS);
    assert_int_equal(last[0].lobby, 5);
    assert_true(last[0].ticket > 0);
    assert_string_equal(last[0].chat, "chat");
    assert_string_equal(last[0].region, "USE");
    assert_int_equal(last[0].wall_ms, wall_ms(w));
    assert_int_equal(last[1].err, ERR_MATCH_NOT_FOUND);
    assert_string_equal(last[1].region, "EU");
    assert_true(last[1].server > 0);
    assert_int_equal(last[3].lobby, 0);
}

static void matches_end_for_reasons(void **state)
{
    struct world *w = *state;
    chat_up(w);
    conn_id server = server_up(w, 0);
    ask(w, 1, EU);
    ack(w, server, 1, true);
    match_ended(w, server, 1);
    assert_sample(w, "muster_matches_ended_total" EU_ ",reason=\"match_ended\"}", "1");
    assert_sample(w, "muster_matches_ended_total" EU_ ",reason=\"server_lost\"}", "0");
}

/* ── uptimes ───────────────────────────────────────────────────────────────────────────────── */

static void uptimes_are_found_a_few_at_a_time(void **state)
{
    enum { SERVERS = 100 };
    struct world *w = *state;
    for (int i = 0; i < SERVERS; i++)
        server_up(w, i);
    int ticks = 0;
    while (strcmp(sample(w, "muster_servers_by_uptime" EU_ ",uptime=\"under_1m\"}"), "0") == 0) {
        metrics_tick(w->metrics, wall_ms(w));
        ticks++;
        assert_true(ticks < 100);
    }
    assert_true(ticks > 1); /* not all at once */
    assert_sample(w, "muster_servers_by_uptime" EU_ ",uptime=\"under_1m\"}", "100");
    w->now_us += 7200 * (int64_t)1000000;
    for (int i = 0; i < 2 * ticks; i++)
        metrics_tick(w->metrics, wall_ms(w));
    assert_sample(w, "muster_servers_by_uptime" EU_ ",uptime=\"under_1m\"}", "0");
    assert_sample(w, "muster_servers_by_uptime" EU_ ",uptime=\"1h_to_6h\"}", "100");
    assert_sample(w, "muster_server_uptime_mean_seconds" EU_ "}", "7200");
}

/* ── store, HTTP, loop ─────────────────────────────────────────────────────────────────────── */

static void commits_are_measured(void **state)
{
    struct world *w = *state;
    assert_sample(w, "muster_store_last_commit_age_seconds", "");
    w->delay_us = 400;
    chat_up(w);
    server_up(w, 0);
    assert_string_not_equal(sample(w, "muster_store_last_commit_age_seconds"), "");
    assert_string_not_equal(sample(w, "muster_store_commit_duration_seconds_count"), "0");
    assert_sample(w, "muster_store_commit_duration_seconds_bucket{le=\"0.00025\"}", "0");
    assert_string_not_equal(sample(w, "muster_store_batch_changes_sum"), "0");
    assert_string_not_equal(sample(w, "muster_store_batch_bytes_sum"), "0");
    assert_string_not_equal(sample(w, "muster_store_batch_effects_sum"), "0");
    assert_sample(w, "muster_store_commits_failed_total", "0");
    assert_sample(w, "muster_store_read_only", "0");
}

static void a_broken_store_shows(void **state)
{
    struct world *w = *state;
    chat_up(w);
    store_memory_fail(w->store, STORE_MEMORY_FAILS);
    say_hello(w, 0);
    assert_sample(w, "muster_store_commits_failed_total", "1");
    assert_sample(w, "muster_store_read_only", "1");
    store_memory_fail(w->store, STORE_MEMORY_WORKS);
    pass(w, 2000);
    assert_sample(w, "muster_store_read_only", "0");
}

static void http_is_counted_by_operation_and_status(void **state)
{
    struct world *w = *state;
    static const char name[] = "servers.list";
    char same_name[] = "servers.list"; /* at another address */
    metrics_http(w->metrics, name, 200, 100);
    metrics_http(w->metrics, same_name, 200, 100);
    metrics_http(w->metrics, name, 503, 900);
    metrics_http(w->metrics, NULL, 404, 5);
    assert_sample(w, "muster_http_requests_total{operation=\"servers.list\",status=\"200\"}", "2");
    assert_sample(w, "muster_http_requests_total{operation=\"servers.list\",status=\"503\"}", "1");
    assert_sample(w, "muster_http_requests_total{operation=\"unknown\",status=\"404\"}", "1");
    assert_sample(w, "muster_http_request_duration_seconds_count{operation=\"servers.list\"}", "3");
    assert_sample(w, "muster_http_request_duration_seconds_sum{operation=\"servers.list\"}",
                  "0.0011");
}

static void operations_and_statuses_are_bounded(void **state)
{
    enum { NAMES = 3 * METRICS_OPERATIONS_MAX };
    static char names[NAMES][16];
    struct world *w = *state;
    for (int i = 0; i < NAMES; i++) {
        snprintf(names[i], sizeof(names[i]), "op.%d", i);
        metrics_http(w->metrics, names[i], 200, 1);
    }
    for (int status = 100; status < 600; status++)
        metrics_http(w->metrics, names[0], status, 1);
    char rest[16];
    snprintf(rest, sizeof(rest), "%d", NAMES - (METRICS_OPERATIONS_MAX - 1));
    assert_sample(w, "muster_http_requests_total{operation=\"other\",status=\"200\"}", rest);
    snprintf(rest, sizeof(rest), "%d", 500 - (METRICS_STATUSES_MAX - 1));
    assert_sample(w, "muster_http_requests_total{operation=\"op.0\",status=\"other\"}", rest);
    assert_sample(w, "muster_http_requests_total{operation=\"op.0\",status=\"200\"}", "2");
    check_with_promtool(w);
}

static void the_longest_turn_is_that_of_the_last_minute(void **state)
{
    struct world *w = *state;
    int64_t now_us = clock_monotonic_us();
    metrics_turn(w->metrics, 70000, now_us - 61 * (int64_t)1000000);
    metrics_turn(w->metrics, 2500, now_us);
    metrics_turn(w->metrics, 50, now_us);
    assert_sample(w, "muster_loop_longest_turn_seconds", "0.0025");
    assert_sample(w, "muster_loop_turn_duration_seconds_count", "3");
}

static void doors_show_their_figures(void **state)
{
    struct world *w = *state;
    static const struct port port = {.name = "server"};
    struct doors doors = {.n = 1};
    doors.all[0].port = &port;
    doors.all[0].held = true;
    doors.all[0].figures = (struct door_figures){.connections = 3, .accepted = 5, .cut = 1};
    metrics_watch(w->metrics, &(struct metrics_sources){.doors = &doors});
    assert_sample(w, "muster_connections{port=\"server\"}", "3");
    assert_sample(w, "muster_connections_accepted_total{port=\"server\"}", "5");
    assert_sample(w, "muster_connections_cut_total{port=\"server\"}", "1");
    assert_sample(w, "muster_protocol_errors_total{port=\"server\"}", "0");
    assert_sample(w, "muster_port_held{port=\"server\"}", "1");
    check_with_promtool(w);
}

static void look(void *user, struct cell_view *ret)
{
    (void)user;
    *ret = (struct cell_view){
        .cell = "eu", .epoch = 7, .seq = 100, .left_ms = 1234, .leader = {.id = 1}};
    ret->nodes[ret->n_nodes++] = (struct cell_seen_node){.node = {.id = 1}};
    ret->nodes[ret->n_nodes++] = (struct cell_seen_node){.node = {.id = 2}, .ready = true};
    ret->nodes[ret->n_nodes++] = (struct cell_seen_node){.node = {.id = 3}, .heard_ms = 9000};
}

static void follow(void *user, struct follower_view *ret)
{
    (void)user;
    *ret = (struct follower_view){.seq = 97, .head_seq = 100};
}

static bool is_ready(void *user, char why[CLUSTER_WHY_MAX])
{
    why[0] = '\0';
    return *(bool *)user;
}

static void a_standby_shows_how_far_it_is(void **state)
{
    struct world *w = *state;
    bool ready = true;
    const struct cluster_standby standby = {look, follow, is_ready, &ready};
    assert_null(strstr(page_of(w), "\nmuster_cell_leader{")); /* there is no cell */
    metrics_watch(w->metrics, &(struct metrics_sources){.standby = &standby});
    assert_sample(w, "muster_cell_leader{cell=\"eu\"}", "0");
    assert_sample(w, "muster_cell_ready{cell=\"eu\"}", "1");
    assert_sample(w, "muster_cell_epoch{cell=\"eu\"}", "7");
    assert_sample(w, "muster_cell_batch{cell=\"eu\"}", "97");
    assert_sample(w, "muster_cell_behind_batches{cell=\"eu\"}", "3");
    assert_sample(w, "muster_cell_lease_seconds{cell=\"eu\"}", "1.234");
    assert_sample(w, "muster_cell_nodes{cell=\"eu\",state=\"leader\"}", "1");
    assert_sample(w, "muster_cell_nodes{cell=\"eu\",state=\"standby\"}", "1");
    assert_sample(w, "muster_cell_nodes{cell=\"eu\",state=\"away\"}", "1");
    assert_sample(w, "muster_cell_standbys_ready{cell=\"eu\"}", "1");
    ready = false;
    assert_sample(w, "muster_cell_ready{cell=\"eu\"}", "0");
    check_with_promtool(w);
}

static void the_process_shows_itself(void **state)
{
    struct world *w = *state;
    assert_true(atof(sample(w, "process_cpu_seconds_total")) >= 0);
    assert_true(atof(sample(w, "process_resident_memory_bytes")) > 100000);
    assert_true(atof(sample(w, "process_virtual_memory_bytes")) > 100000);
    assert_true(atof(sample(w, "process_max_fds")) > 3);
    assert_sample(w, "process_start_time_seconds", "1700000000");
    int before = atoi(sample(w, "process_open_fds"));
    int fd = dup(0);
    assert_int_equal(atoi(sample(w, "process_open_fds")), before + 1);
    close(fd);
    assert_sample(w, "muster_build_info{version=\"" MUSTER_VERSION "\"}", "1");
}

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

static void series_are_bounded(void **state)
{
    struct world *w = *state;
    metrics_watch(w->metrics, &(struct metrics_sources){.pipeline = NULL});
    for (int32_t fleet = 1; fleet <= CORE_MAX_FLEETS + 2; fleet++) {
        for (int8_t region = -1; region < REGION_CODES; region++) {
            struct effect e = {.note = NOTE_TICKET_OPENED, .fleet_id = fleet, .lobby = 1};
            e.region_code = region;
            metrics_note(w->metrics, &e, 0, 0);
        }
    }
    char two_fleets[16];
    snprintf(two_fleets, sizeof(two_fleets), "%d", 2 * (REGION_CODES + 1));
    assert_sample(w, "muster_allocation_requests_total{fleet=\"none\",region=\"none\"}",
                  two_fleets);
    assert_sample(w, "muster_allocation_requests_total{fleet=\"256\",region=\"region_63\"}", "1");
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_metric_is_introduced_once),
        TEST(promtool_finds_nothing_to_say),
        TEST(an_allocation_is_counted_and_measured),
        TEST(a_repeated_request_is_one),
        TEST(failures_have_reasons),
        TEST(the_minute_knows_commits_and_the_one_under_way),
        TEST(the_minute_knows_joins_and_why_they_failed),
        TEST(players_places_count_in_the_minute),
        TEST(retries_have_reasons),
        TEST(only_a_cancel_without_an_answer_is_an_allocation),
        TEST(a_request_for_any_region_is_of_several),
        TEST(without_the_time_of_asking_it_is_only_counted),
        TEST(spawns_and_seats_are_counted),
        TEST(tickets_for_rooms_are_no_allocations),
        TEST(places_for_players_are_counted),
        TEST(lobbies_start_or_are_aborted_for_a_reason),
        TEST(what_agents_are_asked_is_counted),
        TEST(servers_are_shown_by_status),
        TEST(a_silent_server_is_a_timeout),
        TEST(round_trips_are_of_servers_only),
        TEST(refusals_are_counted_and_the_last_are_told),
        TEST(matches_end_for_reasons),
        TEST(uptimes_are_found_a_few_at_a_time),
        TEST(commits_are_measured),
        TEST(a_broken_store_shows),
        TEST(http_is_counted_by_operation_and_status),
        TEST(operations_and_statuses_are_bounded),
        TEST(the_longest_turn_is_that_of_the_last_minute),
        TEST(doors_show_their_figures),
        TEST(a_standby_shows_how_far_it_is),
        TEST(the_process_shows_itself),
        TEST(series_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
