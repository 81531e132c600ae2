/* Buses over a real core and a store in memory, with a broker that is written here: what is
 * acknowledged, published and buried, and when. Commits end when a test says so. */
#include "api/bus.h"

#include "base/err.h"
#include "base/log.h"
#include "core/view.h"
#include "lib/loop.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 64, PUBLISHED = 64 };

/* A broker that remembers what it was told; messages are known by their numbers. */
struct fake {
    struct bus bus;
    bool connected;
    bool held;
    bool confirms; /* at once: within publish */
    int acknowledged[MESSAGES];
    int buried[MESSAGES];
    char why[200];
    struct {
        int64_t allocation;
        int8_t state;
        bool news;
        char name[160];
        char status[16];
        char body[512];
    } published[PUBLISHED];
    int n_published;
};

struct world {
    struct loop loop;
    struct doors doors;
    struct store *store;
    struct pipeline *pipeline;
    struct core_config config;
    struct buses *buses;
    struct fake *fake;
    struct fake *other; /* NULL: there is none */
    struct store_batch submitted;
    bool is_submitted;
    bool loses; /* the next commits fail */
};

static struct fake *fake_of(const struct bus *b)
{
    return container_of(b, struct fake, bus);
}

static void fake_start(struct bus *b)
{
    fake_of(b)->connected = true;
}

static void fake_publish(struct bus *b, const struct bus_result *r)
{
    struct fake *f = fake_of(b);
    assert_true(f->n_published < PUBLISHED);
    int i = f->n_published++;
    f->published[i].allocation = r->allocation;
    f->published[i].state = r->state;
    f->published[i].news = r->news;
    snprintf(f->published[i].name, sizeof(f->published[i].name), "%.*s", (int)r->name.len,
             r->name.at);
    snprintf(f->published[i].status, sizeof(f->published[i].status), "%s", r->status);
    snprintf(f->published[i].body, sizeof(f->published[i].body), "%.*s", (int)r->body.len,
             r->body.at);
    if (f->confirms)
        bus_published(b, r->allocation, r->state);
}

static void fake_acknowledge(struct bus *b, bus_message m)
{
    fake_of(b)->acknowledged[m]++;
}

static void fake_bury(struct bus *b, bus_message m, struct str body, const char *why)
{
    (void)body;
    fake_of(b)->buried[m]++;
    snprintf(fake_of(b)->why, sizeof(fake_of(b)->why), "%s", why);
}

static void fake_hold(struct bus *b, bool on)
{
    fake_of(b)->held = on;
}

static void fake_figures(const struct bus *b, struct bus_figures *ret)
{
    *ret = (struct bus_figures){.connected = fake_of(b)->connected};
}

static void fake_free(struct bus *b)
{
    free(fake_of(b));
}

static const struct bus_ops fake_ops = {
    .name = "fake",
    .kind = BUS_NATS,
    .start = fake_start,
    .publish = fake_publish,
    .acknowledge = fake_acknowledge,
    .bury = fake_bury,
    .hold = fake_hold,
    .figures = fake_figures,
    .free = fake_free,
};

/* ── the world ─────────────────────────────────────────────────────────────────────────────── */

static void submit(void *user, const struct store_batch *batch)
{
    struct world *w = user;
    w->submitted = *batch;
    w->is_submitted = true;
}

static void release(void *user, const struct effect *effects, size_t n)
{
    struct world *w = user;
    doors_release(&w->doors, effects, n);
    buses_release(w->buses, effects, n);
}

static void no_hook(void *user)
{
    (void)user;
}

/* One turn of the loop, and all commits it leads to. */
static void turn(struct world *w)
{
    do {
        buses_before_flush(w->buses);
        pipeline_flush(w->pipeline, w->doors.monotonic_ms, w->doors.wall_ms);
        if (w->is_submitted) {
            w->is_submitted = false;
            int result = w->loses ? ERR_IO : store_commit(w->store, &w->submitted);
            pipeline_committed(w->pipeline, result, w->doors.monotonic_ms, w->doors.wall_ms);
        }
    } while (w->is_submitted);
}

static void pass(struct world *w, int64_t ms)
{
    w->doors.monotonic_us += ms * 1000;
    w->doors.monotonic_ms += ms;
    w->doors.wall_ms += ms;
}

static void add_fleet(struct core_config *config)
{
    struct fleet_config *f = &config->fleets[config->n_fleets++];
    *f = config->fleets[0];
    snprintf(f->name, sizeof(f->name), "arena");
    f->provider = PROVIDER_AGENT;
    f->max_players = 4;
    f->queue_when_full = true;
    f->queue_ms = 120000;
    f->n_versions = 1;
    snprintf(f->versions[0].name, sizeof(f->versions[0].name), "1.0");
}

static int setup(void **state)
{
    static const uint8_t secret[CORE_SECRET_SIZE] = {1};
    struct world *w = calloc(1, sizeof(*w));
    struct loop_hooks hooks = {.turn = no_hook, .tick = no_hook, .user = w};
    struct loop_limits limits = {.streams = 10, .streams_per_address = 10};
    struct pipeline_world world = {.submit = submit, .release = release, .user = w};
    log_set_level(LOG_ERROR);
    w->store = store_open_memory();
    core_config_default(&w->config);
    add_fleet(&w->config);
    loop_init(&w->loop, &hooks, &limits);
    doors_init(&w->doors, &w->loop);
    w->buses = buses_new(&w->doors, NULL);
    assert_int_equal(pipeline_new(w->store, &w->config, secret, &world, w->doors.wall_ms,
                                  w->doors.monotonic_ms, &w->pipeline),
                     0);
    w->doors.pipeline = w->pipeline;
    w->fake = calloc(1, sizeof(*w->fake));
    w->fake->bus.ops = &fake_ops;
    buses_add(w->buses, &w->fake->bus);
    doors_event(&w->doors, &(struct event){.kind = EVENT_TICK}); /* fleets come to be */
    turn(w);
    *state = w;
    return 0;
}

static const struct bus_ops other_ops = {
    .name = "other",
    .kind = BUS_PUBSUB,
    .start = fake_start,
    .publish = fake_publish,
    .acknowledge = fake_acknowledge,
    .bury = fake_bury,
    .hold = fake_hold,
    .figures = fake_figures,
    .free = fake_free,
};

static void add_other(struct world *w)
{
    w->other = calloc(1, sizeof(*w->other));
    w->other->bus.ops = &other_ops;
    buses_add(w->buses, &w->other->bus);
}

static int teardown(void **state)
{
    struct world *w = *state;
    buses_free(w->buses);
    doors_stop(&w->doors);
    loop_done(&w->loop);
    doors_done(&w->doors);
    pipeline_free(w->pipeline);
    store_close(w->store);
    free(w);
    return 0;
}

static void receive(struct world *w, bus_message m, const char *body)
{
    bus_received(&w->fake->bus, m, str_of(body), false);
}

static void confirm(struct world *w, int i)
{
    bus_published(&w->fake->bus, w->fake->published[i].allocation, w->fake->published[i].state);
    turn(w);
}

static struct core_counts counts(struct world *w)
{
    struct core_counts c;
    core_count(pipeline_core(w->pipeline), &c);
    return c;
}

/* Nobody runs a server, so whoever asks stands in line. */
#define ASKS(ticket, player)                                                                       \
    "{\"ticketId\":\"" ticket "\",\"fleet\":\"arena\",\"playerId\":\"" player "\"}"

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

static void a_request_is_acknowledged_when_its_result_is_published(void **state)
{
    struct world *w = *state;
    receive(w, 1, ASKS("t", "ann"));
    assert_int_equal(w->fake->n_published, 0); /* nothing before it is durable */
    turn(w);
    assert_int_equal(w->fake->n_published, 1);
    assert_string_equal(w->fake->published[0].name, "t");
    assert_string_equal(w->fake->published[0].status, "Queued");
    assert_true(w->fake->published[0].allocation > 0);
    assert_int_equal(w->fake->acknowledged[1], 0);
    assert_int_equal(counts(w).allocations_owed, 1);
    confirm(w, 0);
    assert_int_equal(w->fake->acknowledged[1], 1);
    assert_int_equal(counts(w).allocations_owed, 0);
}

static void each_of_two_buses_has_its_own_message_of_a_request(void **state)
{
    struct world *w = *state;
    add_other(w);
    receive(w, 1, ASKS("t", "ann"));
    bus_received(&w->other->bus, 2, str_of(ASKS("t", "ann")), false);
    turn(w);
    assert_int_equal(w->fake->n_published, 1);
    assert_int_equal(w->other->n_published, 1);
    assert_string_equal(w->fake->published[0].body, w->other->published[0].body);
    confirm(w, 0);
    assert_int_equal(w->fake->acknowledged[1], 1);
    assert_int_equal(w->other->acknowledged[2], 0);
    assert_int_equal(counts(w).allocations_owed, 1);
    bus_published(&w->other->bus, w->other->published[0].allocation, w->other->published[0].state);
    turn(w);
    assert_int_equal(w->other->acknowledged[2], 1);
    assert_int_equal(counts(w).allocations_owed, 0);
}

static void a_repeat_gives_the_same_bytes_and_both_are_acknowledged(void **state)
{
    struct world *w = *state;
    receive(w, 1, ASKS("t", "ann"));
    turn(w);
    receive(w, 2, "{\"playerId\":\"ann\", \"fleet\":\"arena\", \"ticketId\":\"t\"}");
    turn(w);
    assert_int_equal(w->fake->n_published, 2);
    assert_string_equal(w->fake->published[0].body, w->fake->published[1].body);
    assert_int_equal(counts(w).allocations_queued, 1);
    confirm(w, 0);
    assert_int_equal(w->fake->acknowledged[1], 1);
    assert_int_equal(w->fake->acknowledged[2], 1);
    confirm(w, 1); /* of what is over: nothing is acknowledged twice */
    assert_int_equal(w->fake->acknowledged[1], 1);
    assert_int_equal(w->fake->acknowledged[2], 1);
}

static void many_of_one_name_are_not_all_kept(void **state)
{
    struct world *w = *state;
    for (bus_message m = 0; m < 20; m++)
        receive(w, m, ASKS("t", "ann"));
    turn(w);
    int before = 0;
    for (int m = 0; m < 20; m++)
        before += w->fake->acknowledged[m];
    assert_true(before > 0 && before < 20); /* some stand for the others */
    confirm(w, 0);
    for (int m = 0; m < 20; m++)
        assert_int_equal(w->fake->acknowledged[m], 1);
}

/* The broker drops what has the name and the status of an allocation's result, so whatever is none
 * must not pass for one. */
static void a_conflict_is_a_refusal_of_its_own_message_only(void **state)
{
    struct world *w = *state;
    receive(w, 1, ASKS("t", "ann"));
    receive(w, 2, ASKS("t", "bob"));
    receive(w, 3, ASKS("t", "cid"));
    turn(w);
    assert_int_equal(w->fake->n_published, 3);
    int queued = 0;
    while (strcmp(w->fake->published[queued].status, "Queued") != 0)
        assert_true(++queued < 3);
    int bobs = queued == 0 ? 1 : 0;
    int cids = 3 - queued - bobs;
    assert_true(w->fake->published[queued].allocation > 0);
    assert_string_equal(w->fake->published[bobs].status, "Failure");
    assert_true(w->fake->published[bobs].allocation < 0);
    assert_true(w->fake->published[cids].allocation < 0);
    confirm(w, bobs);
    assert_int_equal(w->fake->acknowledged[1], 0);
    assert_int_equal(w->fake->acknowledged[2], 1);
    assert_int_equal(w->fake->acknowledged[3], 0);
    assert_int_equal(counts(w).allocations_owed, 1);
    confirm(w, queued);
    assert_int_equal(w->fake->acknowledged[1], 1);
    assert_int_equal(w->fake->acknowledged[3], 0);
    confirm(w, cids);
    assert_int_equal(w->fake->acknowledged[3], 1);
    assert_int_equal(counts(w).allocations_owed, 0);
}

static void what_is_wrong_under_the_name_of_another_is_too(void **state)
{
    struct world *w = *state;
    receive(w, 1, ASKS("t", "ann"));
    turn(w);
    receive(w, 2, "{\"ticketId\":\"t\",\"fleet\":\"arena\"}");
    receive(w, 3,
            "{\"ticketId\":\"t\",\"fleet\":\"arena\",\"playerId\":\"ann\","
            "\"region\":\"Atlantis\"}");
    turn(w);
    assert_int_equal(w->fake->n_published, 3);
    for (int i = 1; i < 3; i++) {
        assert_string_equal(w->fake->published[i].status, "Failure");
        assert_true(w->fake->published[i].allocation < 0);
    }
    confirm(w, 1);
    assert_int_equal(w->fake->acknowledged[1], 0);
    assert_int_equal(w->fake->acknowledged[2], 1);
    assert_int_equal(w->fake->acknowledged[3], 0);
    confirm(w, 0);
    confirm(w, 2);
    assert_int_equal(w->fake->acknowledged[1], 1);
    assert_int_equal(w->fake->acknowledged[3], 1);
}

static void what_is_wrong_waits_for_the_broker_too(void **state)
{
    struct world *w = *state;
    receive(w, 1, "{\"ticketId\":\"t\",\"fleet\":\"arena\"}");
    receive(w, 2, "{\"ticketId\":\"u\",\"fleet\":\"arena\"}");
    assert_int_equal(w->fake->n_published, 2);
    assert_string_equal(w->fake->published[0].status, "Failure");
    assert_non_null(strstr(w->fake->published[0].body, "playerID is required for allocation"));
    assert_true(w->fake->published[0].allocation < 0);
    assert_int_equal(w->fake->acknowledged[1], 0);
    confirm(w, 0);
    assert_int_equal(w->fake->acknowledged[1], 1);
    assert_int_equal(w->fake->acknowledged[2], 0);
    assert_int_equal(w->fake->bus.wrong, 2);
    assert_int_equal(counts(w).allocations_queued, 0);
}

static void what_core_refuses_is_acknowledged_too(void **state)
{
    struct world *w = *state;
    receive(w, 1, "{\"ticketId\":\"t\",\"fleet\":\"nope\",\"playerId\":\"ann\"}");
    turn(w);
    assert_int_equal(w->fake->n_published, 1);
    assert_non_null(strstr(w->fake->published[0].body, "fleet 'nope' not found"));
    confirm(w, 0);
    assert_int_equal(w->fake->acknowledged[1], 1);
}

static void foreign_is_acknowledged_and_unreadable_is_buried(void **state)
{
    struct world *w = *state;
    receive(w, 1, "{\"type\":\"allocation-result\",\"ticketId\":\"t\"}");
    assert_int_equal(w->fake->acknowledged[1], 1);
    log_set_level(LOG_ERROR);
    receive(w, 2, "{");
    assert_int_equal(w->fake->buried[2], 1);
    assert_int_equal(w->fake->acknowledged[2], 0); /* the bus does that */
    char *giant = malloc(BUS_BODY_MAX + 2);
    memset(giant, ' ', BUS_BODY_MAX + 1);
    giant[BUS_BODY_MAX + 1] = '\0';
    receive(w, 3, giant);
    assert_int_equal(w->fake->buried[3], 1);
    free(giant);
    turn(w);
    assert_int_equal(w->fake->n_published, 0);
    assert_int_equal(w->fake->bus.foreign, 1);
    assert_int_equal(w->fake->bus.unreadable, 2);
}

static void a_broker_that_confirms_at_once_is_fine(void **state)
{
    struct world *w = *state;
    w->fake->confirms = true;
    receive(w, 1, ASKS("t", "ann"));
    receive(w, 2, "{\"ticketId\":\"u\"}");
    turn(w);
    turn(w);
    assert_int_equal(w->fake->acknowledged[1], 1);
    assert_int_equal(w->fake->acknowledged[2], 1);
    assert_int_equal(counts(w).allocations_owed, 0);
}

/* ── trouble ───────────────────────────────────────────────────────────────────────────────── */

static void a_request_whose_commit_failed_is_asked_again(void **state)
{
    struct world *w = *state;
    w->loses = true;
    receive(w, 1, ASKS("t", "ann"));
    turn(w);
    assert_int_equal(w->fake->n_published, 0);
    turn(w);
    assert_true(w->fake->held); /* nothing can be stored */
    receive(w, 2, ASKS("u", "bob"));
    pass(w, BUS_AGAIN_MS + 1);
    turn(w);
    assert_int_equal(w->fake->n_published, 0);
    w->loses = false;
    pass(w, 2000);
    doors_event(&w->doors, &(struct event){.kind = EVENT_TICK});
    turn(w);
    pass(w, BUS_AGAIN_MS + 1);
    turn(w);
    turn(w);
    assert_false(w->fake->held);
    assert_int_equal(w->fake->n_published, 2);
    confirm(w, 0);
    confirm(w, 1);
    assert_int_equal(w->fake->acknowledged[1], 1);
    assert_int_equal(w->fake->acknowledged[2], 1);
    assert_int_equal(counts(w).allocations_queued, 2);
}

static void too_many_under_way_hold_the_broker(void **state)
{
    struct world *w = *state;
    char body[128];
    for (int i = 0; i < BUS_UNDER_WAY_MAX; i++) {
        assert_false(w->fake->held);
        snprintf(body, sizeof(body), "{\"ticketId\":\"%d\",\"fleet\":\"arena\"}", i);
        w->fake->n_published = 0;
        receive(w, 7, body); /* wrong: published, and not confirmed */
    }
    assert_true(w->fake->held);
    for (int64_t i = 1; i <= BUS_UNDER_WAY_MAX / 2; i++)
        bus_published(&w->fake->bus, -i, 0);
    turn(w);
    assert_false(w->fake->held);
}

static void positions_are_not_kept_for_a_broker_that_is_away(void **state)
{
    struct world *w = *state;
    struct envelope_result result = {.ticket_id = STR("t"), .status = ENVELOPE_QUEUED};
    struct effect e = {
        .kind = EFFECT_RESULT, .object = 5, .verb = BUS_NATS, .on = true, .result = &result};
    w->fake->connected = false;
    buses_release(w->buses, &e, 1);
    assert_int_equal(w->fake->n_published, 0);
    e.on = false;
    buses_release(w->buses, &e, 1);
    assert_int_equal(w->fake->n_published, 1); /* what is owed is */
    w->fake->connected = true;
    e.on = true;
    buses_release(w->buses, &e, 1);
    assert_int_equal(w->fake->n_published, 2);
    assert_true(w->fake->published[1].news);
}

static void readiness_says_who_is_away(void **state)
{
    struct world *w = *state;
    const char *why = NULL;
    assert_true(buses_are_ready(w->buses, &why));
    w->fake->connected = false;
    assert_false(buses_are_ready(w->buses, &why));
    assert_string_equal(why, "NATS is away");
    assert_true(buses_are_ready(NULL, &why));
    assert_ptr_equal(buses_at(w->buses, 0), &w->fake->bus);
    assert_null(buses_at(w->buses, 1));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_acknowledged_when_its_result_is_published),
        TEST(a_repeat_gives_the_same_bytes_and_both_are_acknowledged),
        TEST(each_of_two_buses_has_its_own_message_of_a_request),
        TEST(many_of_one_name_are_not_all_kept),
        TEST(a_conflict_is_a_refusal_of_its_own_message_only),
        TEST(what_is_wrong_under_the_name_of_another_is_too),
        TEST(what_is_wrong_waits_for_the_broker_too),
        TEST(what_core_refuses_is_acknowledged_too),
        TEST(foreign_is_acknowledged_and_unreadable_is_buried),
        TEST(a_broker_that_confirms_at_once_is_fine),
        TEST(a_request_whose_commit_failed_is_asked_again),
        TEST(too_many_under_way_hold_the_broker),
        TEST(positions_are_not_kept_for_a_broker_that_is_away),
        TEST(readiness_says_who_is_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
