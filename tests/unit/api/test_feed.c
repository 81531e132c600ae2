#include "api/feed.h"

#include "api/feed_text.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "lib/unit.h"
#include "store/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── a world: the real pipeline on a store in memory, and a feed behind it ─────────────────── */

struct world {
    struct store *store;
    struct core_config config;
    struct pipeline *pipeline;
    struct feed *feed;
    bool submitted;
    struct store_batch batch;
    int64_t now_ms;
    char token[256]; /* the last that was given to anybody */
};

enum { SERVER = 1, CHAT = 2, FEED_CONN = 99, OPERATOR = 50, CLIENT = 60 };

static const uint8_t secret[CORE_SECRET_SIZE] = "secret";
static const int64_t wall_start_ms = 1700000000000;

static int64_t wall(const struct world *w)
{
    return wall_start_ms + w->now_ms;
}

static void on_submit(void *user, const struct store_batch *batch)
{
    struct world *w = user;
    w->submitted = true;
    w->batch = *batch;
}

static void on_durable(void *user, const struct store_batch *batch)
{
    feed_durable(((struct world *)user)->feed, batch);
}

static void on_release(void *user, const struct effect *effects, size_t n)
{
    struct world *w = user;
    for (size_t i = 0; i < n; i++) {
        if (effects[i].token.len > 0)
            assert_true(str_copy(w->token, sizeof(w->token), effects[i].token));
    }
    feed_release(w->feed, effects, n, wall(w));
}

static void start(struct world *w, size_t bytes_max)
{
    struct pipeline_world around = {
        .submit = on_submit, .durable = on_durable, .release = on_release, .user = w};
    assert_int_equal(
        pipeline_new(w->store, &w->config, secret, &around, wall(w), w->now_ms, &w->pipeline), 0);
    w->feed = feed_new(w->pipeline, FEED_CONN, bytes_max);
    assert_int_equal(feed_fill(w->feed, w->store, FEED_BYTES), 0);
    feed_turn(w->feed, w->now_ms);
}

static void stop(struct world *w)
{
    feed_free(w->feed);
    pipeline_free(w->pipeline);
    w->submitted = false;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    log_set_level(LOG_ERROR);
    w->store = store_open_memory();
    core_config_default(&w->config);
    w->config.any_token = true;
    w->now_ms = 1000;
    start(w, FEED_BYTES);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    stop(w);
    store_close(w->store);
    free(w);
    return 0;
}

static void commit(struct world *w, int mode)
{
    assert_true(w->submitted);
    w->submitted = false;
    store_memory_fail(w->store, mode);
    int result = store_commit(w->store, &w->batch);
    store_memory_fail(w->store, STORE_MEMORY_WORKS);
    pipeline_committed(w->pipeline, result, w->now_ms, wall(w));
}

static void flush(struct world *w)
{
    pipeline_flush(w->pipeline, w->now_ms, wall(w));
}

static void settle(struct world *w)
{
    flush(w);
    while (w->submitted)
        commit(w, STORE_MEMORY_WORKS);
    feed_turn(w->feed, w->now_ms);
}

static void event(struct world *w, const struct event *e)
{
    pipeline_event(w->pipeline, e, w->now_ms, wall(w));
}

static void pass(struct world *w, int64_t ms)
{
    struct event tick = {.kind = EVENT_TICK};
    for (int64_t end_ms = w->now_ms + ms; w->now_ms < end_ms;) {
        w->now_ms += 100;
        event(w, &tick);
        feed_tick(w->feed, w->now_ms, wall(w));
        flush(w);
        feed_turn(w->feed, w->now_ms);
    }
}

static void server_hello(struct world *w, conn_id conn, int32_t port)
{
    struct event e = {.kind = EVENT_SERVER_HELLO, .conn = conn};
    e.server_hello = (struct chat_sv_handshake){STR("x"), STR("10.0.0.1"), port, 2, 4};
    event(w, &e);
}

static void peers_up(struct world *w)
{
    static const uint8_t region = 2;
    struct event e = {.kind = EVENT_CHAT_HELLO, .conn = CHAT};
    e.chat_hello = (struct chat_mgr_handshake){STR("x"), STR("chat-1"), {1, &region, 1}};
    event(w, &e);
    server_hello(w, SERVER, 2000);
    settle(w);
}

static void ask(struct world *w, int32_t lobby)
{
    struct event e = {.kind = EVENT_ALLOCATE, .conn = CHAT};
    e.allocate =
        (struct chat_mgr_server_allocation_request){.lobby = lobby, .region = 2, .player_count = 2};
    event(w, &e);
}

static void ack(struct world *w, int32_t lobby)
{
    struct event e = {.kind = EVENT_ALLOCATE_ACK, .conn = SERVER};
    e.allocate_ack = (struct chat_sv_allocate_match_ack){true, lobby};
    event(w, &e);
}

/* Two batches: asked, and answered. */
static void open_match(struct world *w, int32_t lobby)
{
    ask(w, lobby);
    settle(w);
    ack(w, lobby);
    settle(w);
}

static void end_match(struct world *w, int32_t lobby)
{
    struct event e = {.kind = EVENT_MATCH_ENDED, .conn = SERVER};
    e.match_ended = (struct chat_sv_match_ended){.server_id = 1, .lobby = lobby};
    event(w, &e);
    settle(w);
}

/* ── a reader, and what he was given ───────────────────────────────────────────────────────── */

enum { SAID_MAX = 4096 };

struct said {
    char id[48]; /* "" = none */
    char type[16];
    char data[1400];
};

struct reader {
    struct feed_reader *feed;
    int wakes;
    struct buf text; /* all of it */
    struct said *said;
    int n;
    char last_id[48];
};

static void on_wake(void *user)
{
    ((struct reader *)user)->wakes++;
}

static int try_open(struct world *w, struct reader *r, const char *kinds, const char *last_id)
{
    struct feed_ask wish = {.last_id = last_id, .wake = on_wake, .user = r};
    struct str word;
    *r = (struct reader){0};
    assert_true(feed_kinds_parse(kinds, &wish.kinds, &word));
    return feed_open(w->feed, &wish, &r->feed);
}

static void reader_open(struct world *w, struct reader *r, const char *kinds, const char *last_id)
{
    assert_int_equal(try_open(w, r, kinds, last_id), 0);
    r->said = calloc(SAID_MAX, sizeof(*r->said));
    assert_non_null(r->said);
}

static void reader_close(struct reader *r)
{
    feed_close(r->feed);
    r->feed = NULL;
    buf_done(&r->text);
    free(r->said);
    r->said = NULL;
}

static void take_line(struct reader *r, struct said *s, const char *line, size_t len)
{
    static const struct {
        const char *name;
        size_t offset;
        size_t cap;
    } fields[] = {
        {"id: ", offsetof(struct said, id), sizeof(s->id)},
        {"event: ", offsetof(struct said, type), sizeof(s->type)},
        {"data: ", offsetof(struct said, data), sizeof(s->data)},
    };
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(fields[i].name);
        if (len < n || strncmp(line, fields[i].name, n) != 0)
            continue;
        char *dst = (char *)s + fields[i].offset;
        assert_int_equal(dst[0], '\0'); /* each once */
        assert_true(len - n < fields[i].cap);
        memcpy(dst, line + n, len - n);
        return;
    }
    assert_true(line[0] == ':' || strncmp(line, "retry: 1000", len) == 0);
    (void)r;
}

/* Reads text as the standard says: blocks of lines; an id without data moves the place alone. */
static void take(struct reader *r, const char *text, size_t len)
{
    const char *end = text + len;
    struct said s = {0};
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        assert_non_null(line_end); /* whole events only */
        if (line_end != text) {
            take_line(r, &s, text, (size_t)(line_end - text));
            text = line_end + 1;
            continue;
        }
        text = line_end + 1;
        if (s.id[0])
            snprintf(r->last_id, sizeof(r->last_id), "%s", s.id);
        if (s.data[0]) {
            assert_true(r->n < SAID_MAX);
            r->said[r->n++] = s;
        }
        s = (struct said){0};
    }
    assert_int_equal(s.id[0] | s.data[0] | s.type[0], 0);
}

/* One pull. False when there was nothing. */
static bool pull(struct reader *r, size_t max)
{
    struct buf out = {0};
    assert_true(feed_pull(r->feed, &out, max));
    if (out.len > 0)
        take(r, (const char *)out.data, out.len);
    buf_append(&r->text, out.data, out.len);
    bool some = out.len > 0;
    buf_done(&out);
    return some;
}

static void pull_all(struct reader *r)
{
    while (pull(r, 4096))
        ;
}

static const struct said *said(const struct reader *r, const char *type, int nth)
{
    for (int i = 0; i < r->n; i++) {
        if (strcmp(r->said[i].type, type) == 0 && nth-- == 0)
            return &r->said[i];
    }
    return NULL;
}

static bool text_has(const struct reader *r, const char *part)
{
    return r->text.len > 0 && memmem(r->text.data, r->text.len, part, strlen(part)) != NULL;
}

static void assert_data(const struct said *s, const char *key, const char *wanted)
{
    char why[JSON_WHY_MAX];
    char pair[200];
    assert_non_null(s);
    struct json *root = json_parse(str_of(s->data), why);
    if (!root)
        fail_msg("%s: %s", why, s->data);
    json_free(root);
    snprintf(pair, sizeof(pair), "\"%s\":%s", key, wanted);
    if (!strstr(s->data, pair))
        fail_msg("no %s in %s", pair, s->data);
}

/* ── changes ───────────────────────────────────────────────────────────────────────────────── */

static void a_reader_begins_now_and_sees_each_change(void **state)
{
    struct world *w = *state;
    struct reader r;
    peers_up(w);
    reader_open(w, &r, NULL, NULL);
    pull_all(&r);
    assert_int_equal(r.n, 0);
    assert_string_equal(r.last_id, "1"); /* what he would come back with */
    open_match(w, 7);
    pull_all(&r);
    assert_string_equal(said(&r, "ticket", 0)->id, "2.1"); /* 2.0 is a counter, which is hidden */
    assert_data(said(&r, "ticket", 0), "state", "\"open\"");
    assert_data(said(&r, "ticket", 0), "fleet", "\"default\"");
    assert_data(said(&r, "ticket", 0), "chat_server", "\"chat-1\"");
    assert_data(said(&r, "ticket", 0), "regions", "[\"EU\"]");
    assert_data(said(&r, "ticket", 0), "answered_at", "null");
    assert_data(said(&r, "ticket", 1), "state", "\"done\"");
    assert_data(said(&r, "ticket", 1), "server", "\"1\"");
    assert_data(said(&r, "session", 0), "state", "\"opening\"");
    assert_data(said(&r, "session", 1), "state", "\"open\"");
    assert_data(said(&r, "session", 1), "opened_at", "\"2023-11-14T22:13:21.000Z\"");
    assert_null(said(&r, "counter", 0));
    end_match(w, 7);
    pull_all(&r);
    assert_data(said(&r, "session", 2), "end_reason", "\"match_ended\"");
    reader_close(&r);
}

static void every_kind_is_shown_in_the_words_of_the_api(void **state)
{
    struct world *w = *state;
    struct reader r;
    reader_open(w, &r, NULL, "0");
    peers_up(w);
    open_match(w, 7);
    struct event e = {.kind = EVENT_VALIDATE, .conn = SERVER};
    e.validate = (struct chat_sv_validate_token){
        .lobby = 7, .account = 4711, .match_token = str_of(w->token)};
    event(w, &e);
    settle(w);
    pull_all(&r);
    assert_string_equal(said(&r, "fleet", 0)->data, "{\"id\":\"1\",\"name\":\"default\"}");
    assert_string_equal(said(&r, "chat_server", 0)->data,
                        "{\"id\":\"1\",\"fleet\":\"default\",\"name\":\"chat-1\"}");
    assert_string_equal(said(&r, "server", 0)->data,
                        "{\"id\":\"1\",\"fleet\":\"default\",\"ip\":\"10.0.0.1\",\"port\":2000,"
                        "\"region\":\"EU\",\"draining_by\":[],\"max_sessions\":4,"
                        "\"registered_at\":\"2023-11-14T22:13:21.000Z\"}");
    assert_string_equal(said(&r, "seat", 0)->data,
                        "{\"id\":\"1\",\"session\":\"1\",\"fleet\":\"default\",\"account\":4711,"
                        "\"state\":\"taken\"}");
    reader_close(&r);
}

static void operate(struct world *w, enum operate_verb verb, int64_t target)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = OPERATOR};
    e.operate = (struct operate){.verb = verb,
                                 .target = target,
                                 .who = STR("alice"),
                                 .address = STR("192.0.2.1"),
                                 .key = STR("key-of-alice"),
                                 .name = STR("new servers"),
                                 .role = ROLE_SERVER,
                                 .fleet = STR("default"),
                                 .regions = 1 << 2};
    e.operate.arguments[0] = (uint8_t)verb;
    e.operate.key = verb == OPERATE_ENROL ? e.operate.key : (struct str){0};
    event(w, &e);
    settle(w);
}

static void create_lobby(struct world *w)
{
    static const struct lobby_entry players[] = {
        {{"ann", 3}, 7, 0, 0, 0}, {{"bob", 3}, 8, 1, 0, 0}, {{"cem", 3}, 9, 1, 1, 1}};
    const struct lobby_wanted wanted = {.game_type = 1,
                                        .region = 2,
                                        .map = STR("caldavar"),
                                        .requeue = true,
                                        .players = players,
                                        .n_players = 3};
    struct event e = {.kind = EVENT_OPERATE, .conn = OPERATOR};
    e.operate =
        (struct operate){.verb = OPERATE_CREATE_LOBBY, .fleet = STR("default"), .lobby = &wanted};
    event(w, &e);
    settle(w);
}

/* A matchmaker need not ask for anything more. */
static void a_lobby_that_is_aborted_says_all_of_its_groups(void **state)
{
    struct world *w = *state;
    struct reader r;
    peers_up(w);
    reader_open(w, &r, "lobby,note", NULL);
    create_lobby(w);
    pull_all(&r);
    assert_data(said(&r, "lobby", 0), "id", "\"1073741824\"");
    assert_data(said(&r, "lobby", 0), "state", "\"loading\"");
    assert_data(said(&r, "lobby", 0), "groups",
                "[{\"group\":1,\"players\":[7,8],\"queue\":\"in_lobby\"},"
                "{\"group\":2,\"players\":[9],\"queue\":\"in_lobby\"}]");
    assert_data(said(&r, "note", 0), "text", "\"lobby created\",\"lobby\":1073741824");
    assert_data(said(&r, "note", 0), "players", "3");
    operate(w, OPERATE_ABORT_LOBBY, 1 << 30);
    pull_all(&r);
    assert_data(said(&r, "lobby", 1), "state", "\"aborted\"");
    assert_data(said(&r, "lobby", 1), "cause", "\"operator\"");
    assert_data(said(&r, "lobby", 1), "groups",
                "[{\"group\":1,\"players\":[7,8],\"queue\":\"queued\"},"
                "{\"group\":2,\"players\":[9],\"queue\":\"queued\"}]");
    assert_true(text_has(&r, "\"text\":\"lobby aborted\""));
    for (int i = 0; i < 2; i++) { /* he is told, and that he was is kept but nobody's business */
        struct event e = {.kind = EVENT_CLIENT_HELLO, .conn = CLIENT + (conn_id)i};
        e.client_hello.account = 7 + i;
        event(w, &e);
        settle(w);
        settle(w);
    }
    struct view_lobby v;
    assert_true(view_lobby(pipeline_core(w->pipeline), 1 << 30, &v));
    assert_int_equal(v.untold, 1);
    pull_all(&r);
    assert_null(said(&r, "lobby", 2));
    assert_true(text_has(&r, "\"cause\":\"operator\",\"requeued\":true"));
    assert_false(text_has(&r, "\"connected\"")); /* lives in memory alone */
    assert_false(text_has(&r, "MATCH_"));
    reader_close(&r);
}

static void no_credential_is_shown(void **state)
{
    struct world *w = *state;
    struct reader r;
    peers_up(w);
    reader_open(w, &r, NULL, "0");
    operate(w, OPERATE_ENROL, 0);
    assert_true(strlen(w->token) > 20);
    pull_all(&r);
    assert_data(said(&r, "token", 0), "role", "\"server\"");
    assert_data(said(&r, "token", 0), "regions", "[\"EU\"]");
    assert_data(said(&r, "audit", 0), "who", "\"alice\"");
    assert_data(said(&r, "audit", 0), "target", "{\"kind\":\"token\",\"id\":\"1\"}");
    assert_false(text_has(&r, w->token));
    assert_false(text_has(&r, "hash"));
    assert_false(text_has(&r, "key-of-alice")); /* a request is kept, but shown to nobody */
    open_match(w, 7);
    assert_true(strncmp(w->token, "MATCH_", 6) == 0);
    pull_all(&r);
    assert_false(text_has(&r, w->token));
    assert_false(text_has(&r, "token_unix_s"));
    reader_close(&r);
}

static void what_is_gone_is_said_to_be(void **state)
{
    struct world *w = *state;
    struct reader r;
    w->config.timeouts.keep_ms = 1000;
    stop(w);
    start(w, FEED_BYTES);
    peers_up(w);
    reader_open(w, &r, "ticket", NULL);
    open_match(w, 7);
    end_match(w, 7);
    pull_all(&r);
    r.n = 0;
    for (int i = 0; i < 20; i++) {
        pass(w, 100);
        settle(w);
    }
    pull_all(&r);
    assert_int_equal(r.n, 1);
    assert_string_equal(r.said[0].data, "{\"id\":\"1\",\"gone\":true}");
    reader_close(&r);
}

/* ── coming back ───────────────────────────────────────────────────────────────────────────── */

static void play(struct world *w, int32_t from, int32_t to)
{
    for (int32_t lobby = from; lobby < to; lobby++) {
        ask(w, lobby);
        ask(w, lobby + 1000);
        settle(w);
        ack(w, lobby);
        ack(w, lobby + 1000);
        settle(w);
        end_match(w, lobby);
        end_match(w, lobby + 1000);
    }
}

/* From every id he may have stopped at, the rest is the same as if he had not. */
static void check_every_return(struct world *w, const struct reader *whole)
{
    for (int i = 0; i < whole->n; i++) {
        struct reader r;
        reader_open(w, &r, "fleet,chat_server,server,session,seat,ticket,token,audit",
                    whole->said[i].id);
        pull_all(&r);
        assert_int_equal(r.n, whole->n - i - 1);
        assert_memory_equal(r.said, whole->said + i + 1, (size_t)r.n * sizeof(*r.said));
        reader_close(&r);
    }
}

static void a_reader_who_returns_goes_on_where_he_was(void **state)
{
    struct world *w = *state;
    struct reader whole;
    reader_open(w, &whole, NULL, "0");
    peers_up(w);
    play(w, 1, 6);
    pull_all(&whole);
    int n = 0;
    for (int i = 0; i < whole.n; i++) { /* notes have no id, and no place to return to */
        if (whole.said[i].id[0])
            whole.said[n++] = whole.said[i];
    }
    whole.n = n;
    assert_true(whole.n > 40);
    check_every_return(w, &whole);

    feed_close(whole.feed);
    whole.feed = NULL;
    stop(w);
    w->now_ms += 5000;
    start(w, FEED_BYTES);
    check_every_return(w, &whole); /* word for word, also after a restart */
    reader_close(&whole);
}

static void what_is_no_id_is_refused(void **state)
{
    struct world *w = *state;
    static const char *const bad[] = {"x",
                                      ".",
                                      "1.",
                                      ".1",
                                      "1.1.1",
                                      "-1",
                                      "1.x",
                                      " 1.1",
                                      "1.1 ",
                                      "+1",
                                      "9999999999999999999",
                                      "1e3",
                                      "0x1",
                                      "1,1",
                                      "1.1\n",
                                      "\xff"};
    struct reader r;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(try_open(w, &r, NULL, bad[i]), ERR_BAD_ARGUMENT);
    struct feed_figures figures;
    feed_figures(w->feed, &figures);
    assert_int_equal(figures.readers, 0);
    reader_open(w, &r, NULL, ""); /* as if there were none */
    reader_close(&r);
}

static void an_id_from_the_future_is_a_gap(void **state)
{
    struct world *w = *state;
    static const char *const ids[] = {"2.0", "2", "3", "999999999999999999.999999999"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        struct reader r;
        if (i == 0)
            peers_up(w);
        reader_open(w, &r, NULL, ids[i]);
        pull_all(&r);
        assert_int_equal(r.n, 1);
        assert_string_equal(r.said[0].type, "gap");
        assert_data(&r.said[0], "why", "\"ahead\"");
        assert_data(&r.said[0], "to", "\"1\"");
        assert_string_equal(r.last_id, "1");
        reader_close(&r);
    }
    struct reader r;
    reader_open(w, &r, NULL, "1"); /* the newest, whole */
    pull_all(&r);
    assert_int_equal(r.n, 0);
    server_hello(w, 3, 2001);
    settle(w);
    pull_all(&r);
    assert_string_equal(said(&r, "server", 0)->id, "2.1");
    reader_close(&r);
}

static void an_id_that_is_no_longer_held_is_a_gap(void **state)
{
    struct world *w = *state;
    struct feed_figures figures;
    struct reader r;
    stop(w);
    start(w, 4000);
    peers_up(w);
    for (int32_t lobby = 1; lobby < 40; lobby++) {
        open_match(w, lobby);
        feed_figures(w->feed, &figures);
        assert_true(figures.bytes <= 4000);
        end_match(w, lobby);
    }
    feed_figures(w->feed, &figures);
    assert_true(figures.first_seq > 5);
    reader_open(w, &r, NULL, "3.2");
    pull_all(&r);
    char to[64];
    snprintf(to, sizeof(to), "\"%" PRId64 "\"", figures.first_seq - 1);
    assert_string_equal(r.said[0].type, "gap");
    assert_data(&r.said[0], "from", "\"3.2\"");
    assert_data(&r.said[0], "to", to);
    assert_data(&r.said[0], "why", "\"forgotten\"");
    assert_int_equal(atoll(r.said[1].id), figures.first_seq); /* and on from the oldest */
    for (int i = 1; i < r.n; i++)
        assert_string_not_equal(r.said[i].type, "gap");

    /* The gap moved his id: he is not told again. */
    struct reader again;
    reader_open(w, &again, NULL, r.said[0].id);
    pull_all(&again);
    assert_string_equal(again.said[0].id, r.said[1].id);
    reader_close(&again);
    reader_close(&r);
    feed_figures(w->feed, &figures);
    assert_int_equal(figures.gaps, 1);
}

static void a_reader_who_falls_behind_is_told(void **state)
{
    struct world *w = *state;
    struct reader r;
    stop(w);
    start(w, 4000);
    peers_up(w);
    reader_open(w, &r, "ticket", NULL);
    pull_all(&r); /* he has his place */
    char last[64];
    snprintf(last, sizeof(last), "\"%s\"", r.last_id);
    play(w, 2, 30);
    pull_all(&r);
    const struct said *gap = said(&r, "gap", 0);
    assert_data(gap, "from", last);
    assert_data(gap, "why", "\"behind\"");
    assert_int_equal(r.n, 1); /* the oldest would be gone again at once, so he goes on from now */
    open_match(w, 100);
    pull_all(&r);
    assert_int_equal(r.n, 3);
    assert_data(&r.said[1], "lobby", "100");
    assert_string_equal(r.said[1].type, "ticket");
    reader_close(&r);
}

static void the_newest_batch_is_held_however_large(void **state)
{
    struct world *w = *state;
    struct reader r;
    stop(w);
    start(w, 10);
    reader_open(w, &r, NULL, NULL);
    pull_all(&r);
    peers_up(w);
    pull_all(&r);
    assert_non_null(said(&r, "server", 0));
    assert_null(said(&r, "gap", 0));
    reader_close(&r);

    stop(w);
    start(w, 10); /* more than the history gives: there is nothing to return to */
    struct feed_figures figures;
    feed_figures(w->feed, &figures);
    assert_int_equal(figures.batches, 0);
    assert_int_equal(figures.last_seq, 1);
    reader_open(w, &r, NULL, "0.5");
    server_hello(w, 3, 2001);
    settle(w);
    pull_all(&r);
    assert_data(&r.said[0], "why", "\"forgotten\"");
    assert_non_null(said(&r, "server", 0));
    reader_close(&r);
}

/* ── filters ───────────────────────────────────────────────────────────────────────────────── */

static void kinds_are_words(void **state)
{
    (void)state;
    feed_kinds kinds = 0;
    struct str word = {0};
    static const char *const good[] = {"ticket", "ticket,server", "load,note,audit,token",
                                       "seat,session,fleet,chat_server", "ticket,ticket"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        kinds = 0;
        assert_true(feed_kinds_parse(good[i], &kinds, &word));
        assert_true(kinds != 0);
    }
    static const char *const bad[][2] = {{"tickets", "tickets"}, {"ticket,", ""},
                                         {",ticket", ""},        {"ticket, server", " server"},
                                         {"counter", "counter"}, {"request", "request"},
                                         {"gap", "gap"},         {"Ticket", "Ticket"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(feed_kinds_parse(bad[i][0], &kinds, &word));
        assert_true(str_eq(word, str_of(bad[i][1])));
    }
    /* Every word that is offered is one. */
    char words[] = FEED_KINDS_WORDS;
    int n = 0;
    for (char *w = strtok(words, ", "); w; w = strtok(NULL, ", "), n++)
        assert_true(feed_kinds_parse(w, &kinds, &word));
    assert_int_equal(n, 19);
    assert_true(feed_kinds_parse(NULL, &kinds, &word));
    feed_kinds guarded = 0;
    assert_true(feed_kinds_parse("token,audit", &guarded, &word));
    assert_int_equal(feed_kinds_of_administrators(), guarded);
    assert_int_equal(kinds & guarded, guarded);
}

static void a_filter_hides_the_rest_and_moves_the_id_over_it(void **state)
{
    struct world *w = *state;
    struct reader r;
    peers_up(w);
    reader_open(w, &r, "audit", NULL);
    pull_all(&r);
    assert_string_equal(r.last_id, "1");
    play(w, 1, 4);
    pull_all(&r);
    assert_int_equal(r.n, 0);
    assert_string_equal(r.last_id, "1"); /* no write for what he does not want … */
    pass(w, FEED_COMMENT_MS);
    settle(w);
    pull_all(&r);
    struct feed_figures figures;
    feed_figures(w->feed, &figures);
    assert_true(figures.last_seq > 10);
    assert_int_equal(atoll(r.last_id),
                     figures.last_seq); /* … until it is time for a sign of life */
    assert_int_equal(r.n, 0);
    operate(w, OPERATE_DRAIN, 1);
    pull_all(&r);
    assert_int_equal(r.n, 1);
    assert_string_equal(r.said[0].type, "audit");
    reader_close(&r);
}

/* The loop must not be held up by one who wants next to nothing of very much. */
static void a_filter_over_much_goes_in_steps(void **state)
{
    struct world *w = *state;
    struct buf changes = {0};
    for (int64_t i = 1; i <= 10000; i++)
        change_encode_gone(&changes, ROW_seat, i);
    struct store_batch batch = {.seq = 1, .changes = changes.data, .len = changes.len};
    struct reader r;
    reader_open(w, &r, "audit", NULL);
    pull_all(&r);
    feed_durable(w->feed, &batch);
    assert_true(pull(&r, 4096));
    assert_string_equal(r.last_id, "1.4095");
    assert_true(pull(&r, 4096));
    assert_string_equal(r.last_id, "1.8191");
    assert_false(pull(&r, 4096));
    assert_int_equal(r.n, 0);
    buf_done(&changes);
    reader_close(&r);
}

/* ── sizes and times ───────────────────────────────────────────────────────────────────────── */

static void small_pulls_give_the_same(void **state)
{
    struct world *w = *state;
    struct reader whole;
    struct reader r;
    reader_open(w, &whole, NULL, "0");
    reader_open(w, &r, NULL, "0");
    peers_up(w);
    play(w, 1, 5);
    pull_all(&whole);
    int pulls = 0;
    while (pull(&r, 1)) {
        assert_true(r.n <= ++pulls);
        assert_true(pulls < 1000);
    }
    assert_int_equal(r.text.len, whole.text.len);
    assert_memory_equal(r.text.data, whole.text.data, whole.text.len);
    reader_close(&r);
    reader_close(&whole);
}

static void a_pull_is_about_as_large_as_asked(void **state)
{
    struct world *w = *state;
    struct reader r;
    reader_open(w, &r, NULL, "0");
    peers_up(w);
    play(w, 1, 20);
    size_t before = 0;
    do {
        before = r.text.len;
        pull(&r, 2000);
        assert_true(r.text.len - before < 2000 + 1000);
    } while (r.text.len > before);
    assert_true(r.text.len > 20000);
    reader_close(&r);
}

static void a_sleeping_reader_is_woken_but_not_for_every_batch(void **state)
{
    struct world *w = *state;
    struct reader r;
    peers_up(w);
    reader_open(w, &r, NULL, NULL);
    settle(w);
    assert_int_equal(r.wakes, 0); /* nothing was asked of him yet */
    pull_all(&r);
    w->now_ms += FEED_WAKE_MS;
    ask(w, 1);
    settle(w);
    assert_int_equal(r.wakes, 1);
    settle(w);
    assert_int_equal(r.wakes, 1); /* he has not come yet */
    pull_all(&r);
    ack(w, 1);
    settle(w);
    assert_int_equal(r.wakes, 1); /* a moment ago */
    w->now_ms += FEED_WAKE_MS;
    feed_turn(w->feed, w->now_ms);
    assert_int_equal(r.wakes, 2);
    pull_all(&r);
    w->now_ms += 1000;
    feed_turn(w->feed, w->now_ms);
    assert_int_equal(r.wakes, 2); /* nothing new */
    reader_close(&r);
}

static void a_silent_stream_shows_a_sign_of_life(void **state)
{
    struct world *w = *state;
    struct reader r;
    reader_open(w, &r, "ticket", NULL);
    pull_all(&r);
    buf_clear(&r.text);
    pass(w, FEED_COMMENT_MS - 100);
    assert_int_equal(r.wakes, 0);
    pass(w, 100);
    assert_int_equal(r.wakes, 1);
    pull_all(&r);
    assert_int_equal(r.text.len, 3);
    assert_memory_equal(r.text.data, ":\n\n", 3);
    pass(w, FEED_COMMENT_MS);
    assert_int_equal(r.wakes, 2);
    reader_close(&r);
}

/* Pulls as long as there is something; only counts it. */
static size_t drink(struct reader *r)
{
    struct buf out = {0};
    size_t sum = 0;
    do {
        buf_clear(&out);
        assert_true(feed_pull(r->feed, &out, 4096));
        sum += out.len;
    } while (out.len > 0);
    buf_done(&out);
    return sum;
}

/* The thread that places matches writes for readers too, so they have their share and no more. */
static void readers_share_what_a_tick_allows(void **state)
{
    struct world *w = *state;
    struct buf changes = {0};
    struct reader one;
    struct reader two;
    for (int64_t i = 1; i <= 100000; i++)
        change_encode_gone(&changes, ROW_seat, i);
    struct store_batch batch = {.seq = 1, .changes = changes.data, .len = changes.len};
    reader_open(w, &one, "seat", NULL);
    feed_durable(w->feed, &batch);
    feed_turn(w->feed, w->now_ms);
    assert_in_range(drink(&one), FEED_TICK_BYTES, FEED_TICK_BYTES + 200);
    assert_int_equal(drink(&one), 0);
    w->now_ms += 100;
    feed_tick(w->feed, w->now_ms, wall(w));
    feed_turn(w->feed, w->now_ms);
    assert_int_equal(one.wakes, 1);
    assert_in_range(drink(&one), FEED_TICK_BYTES, FEED_TICK_BYTES + 200);

    reader_open(w, &two, "seat", "0");
    w->now_ms += 100;
    feed_tick(w->feed, w->now_ms, wall(w));
    assert_in_range(drink(&two), FEED_TICK_BYTES / 2, FEED_TICK_BYTES / 2 + 200);
    assert_in_range(drink(&one), FEED_TICK_BYTES / 4, FEED_TICK_BYTES / 2 + 200);
    buf_done(&changes);
    reader_close(&one);
    reader_close(&two);
}

static void there_are_only_so_many_readers(void **state)
{
    struct world *w = *state;
    static struct reader readers[FEED_READERS_MAX + 1];
    for (int i = 0; i < FEED_READERS_MAX; i++)
        assert_int_equal(try_open(w, &readers[i], NULL, NULL), 0);
    struct reader *more = &readers[FEED_READERS_MAX];
    assert_int_equal(try_open(w, more, NULL, NULL), ERR_BUSY);
    feed_close(readers[7].feed);
    assert_int_equal(try_open(w, &readers[7], NULL, NULL), 0);
    for (int i = 0; i < FEED_READERS_MAX; i++)
        feed_close(readers[i].feed);
}

static void a_stopped_feed_ends_every_stream(void **state)
{
    struct world *w = *state;
    struct reader r;
    struct buf out = {0};
    peers_up(w);
    reader_open(w, &r, NULL, NULL);
    pull_all(&r);
    feed_stop(w->feed);
    assert_int_equal(r.wakes, 1);
    assert_false(feed_pull(r.feed, &out, 4096));
    assert_int_equal(out.len, 0);
    struct reader late;
    assert_int_equal(try_open(w, &late, NULL, NULL), ERR_BUSY);
    reader_close(&r);
}

/* ── notes and the load ────────────────────────────────────────────────────────────────────── */

static void notes_come_after_what_they_speak_of(void **state)
{
    struct world *w = *state;
    struct reader r;
    peers_up(w);
    reader_open(w, &r, "ticket,note", NULL);
    open_match(w, 7);
    pull_all(&r);
    static const char *const order[] = {"ticket", "note", "ticket", "note"};
    assert_int_equal(r.n, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(r.said[i].type, order[i]);
    assert_data(&r.said[3], "text", "\"ticket done\"");
    assert_data(&r.said[3], "ticket", "\"1\"");
    assert_data(&r.said[3], "lobby", "7");
    assert_string_equal(r.said[3].id, ""); /* so it never moves Last-Event-ID */
    reader_close(&r);
}

static void notes_of_operators_come_with_the_audit(void **state)
{
    struct world *w = *state;
    struct reader plain;
    struct reader admin;
    peers_up(w);
    reader_open(w, &plain, "note", NULL);
    reader_open(w, &admin, "note,audit", NULL);
    operate(w, OPERATE_DRAIN, 1);
    pull_all(&plain);
    pull_all(&admin);
    assert_false(text_has(&plain, "alice"));
    assert_true(text_has(&admin, "\"who\":\"alice\""));
    reader_close(&plain);
    reader_close(&admin);
}

static void a_slow_reader_is_told_how_many_notes_he_missed(void **state)
{
    struct world *w = *state;
    struct reader r;
    peers_up(w);
    reader_open(w, &r, "note", NULL);
    for (int i = 0; i < 700; i++) {
        ask(w, -1); /* refused, and noted */
        settle(w);
    }
    pull_all(&r);
    assert_int_equal(r.n, 513);
    assert_data(&r.said[0], "missed", "188");
    assert_data(&r.said[1], "error", "\"invalid_lobby\"");
    reader_close(&r);
}

static void the_load_is_shown_each_second_to_those_who_want_it(void **state)
{
    struct world *w = *state;
    struct reader r;
    struct reader other;
    peers_up(w);
    open_match(w, 7);
    reader_open(w, &r, "load", NULL);
    reader_open(w, &other, "ticket", NULL);
    pass(w, 3000);
    pull_all(&r);
    pull_all(&other);
    assert_int_equal(r.n, 1); /* only the newest */
    assert_int_equal(other.n, 0);
    assert_data(&r.said[0], "tickets_open", "0");
    assert_data(&r.said[0], "cut", "false");
    assert_non_null(strstr(r.said[0].data,
                           "\"groups\":[{\"fleet\":\"default\",\"region\":\"EU\",\"servers\":{"
                           "\"available\":1,\"full\":0,\"draining\":0,\"offline\":0},"
                           "\"slots\":{\"used\":1,\"total\":4},\"sessions\":1,"
                           "\"load_mean\":0.2500,"));
    assert_string_equal(r.said[0].id, "");
    pass(w, 1000);
    pull_all(&r);
    assert_int_equal(r.n, 2);
    reader_close(&r);
    reader_close(&other);
}

static void the_load_comes_after_the_changes_it_shows(void **state)
{
    struct world *w = *state;
    struct reader r;
    peers_up(w);
    reader_open(w, &r, "load,ticket", NULL);
    pull_all(&r);
    open_match(w, 7);
    open_match(w, 8);
    pass(w, 1000);
    while (pull(&r, 1))
        ;
    static const char *const order[] = {"ticket", "ticket", "ticket", "ticket", "load"};
    assert_int_equal(r.n, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(r.said[i].type, order[i]);
    reader_close(&r);
}

static void the_load_shows_nothing_that_is_not_durable(void **state)
{
    struct world *w = *state;
    struct reader r;
    peers_up(w);
    reader_open(w, &r, "load", NULL);
    pull_all(&r);
    ask(w, 7);
    flush(w); /* its commit takes long */
    pass(w, 2500);
    pull_all(&r);
    assert_int_equal(r.n, 0);
    commit(w, STORE_MEMORY_WORKS);
    settle(w);
    pull_all(&r);
    assert_int_equal(r.n, 1);
    assert_data(&r.said[0], "tickets_open", "1");

    ask(w, 8);
    flush(w);
    pass(w, 1000); /* looked at, with a ticket that will be lost */
    commit(w, STORE_MEMORY_FAILS);
    pull_all(&r);
    assert_int_equal(r.n, 1);
    pass(w, 1000);
    commit(w, STORE_MEMORY_WORKS);
    pass(w, 1000);
    settle(w);
    pull_all(&r);
    assert_int_equal(r.n, 2);
    assert_data(&r.said[1], "tickets_open", "1");
    reader_close(&r);
}

/* ── commits that fail ─────────────────────────────────────────────────────────────────────── */

static void what_is_lost_is_never_shown(void **state)
{
    struct world *w = *state;
    struct reader r;
    peers_up(w);
    reader_open(w, &r, "ticket", NULL);
    ask(w, 7);
    flush(w);
    pull_all(&r);
    assert_int_equal(r.n, 0); /* under way */
    commit(w, STORE_MEMORY_FAILS);
    pull_all(&r);
    assert_int_equal(r.n, 0);
    pass(w, 1000);
    commit(w, STORE_MEMORY_UNKNOWN); /* the probe, which is stored after all */
    ask(w, 8);
    flush(w);
    commit(w, STORE_MEMORY_UNKNOWN);
    settle(w);
    pull_all(&r);
    assert_int_equal(r.n, 1);
    assert_data(&r.said[0], "lobby", "8");
    assert_string_equal(r.said[0].id, "3.1"); /* 2 is the probe */
    reader_close(&r);
}

static void a_damaged_batch_is_a_gap(void **state)
{
    struct world *w = *state;
    struct reader r;
    struct buf changes = {0};
    log_set_level(LOG_ERROR);
    change_encode_gone(&changes, ROW_seat, 5);
    buf_append(&changes, "\x05\x00\xff", 3);
    struct store_batch damaged = {.seq = 1, .changes = changes.data, .len = changes.len};
    struct store_batch next = {.seq = 2, .changes = changes.data, .len = changes.len - 3};
    reader_open(w, &r, NULL, NULL);
    feed_durable(w->feed, &damaged);
    feed_durable(w->feed, &next);
    pull_all(&r);
    assert_int_equal(r.n, 3);
    assert_string_equal(r.said[0].id, "1.0");
    assert_data(&r.said[1], "why", "\"damaged\"");
    assert_data(&r.said[1], "from", "\"1.0\"");
    assert_data(&r.said[1], "to", "\"1\"");
    assert_string_equal(r.said[2].id, "2.0");
    buf_done(&changes);
    reader_close(&r);
}

/* ── many readers at random ────────────────────────────────────────────────────────────────── */

enum { CROWD = 24, BATCHES = 400 };

struct change_id {
    char id[48];
    enum row_kind kind;
};

static struct change_id written[BATCHES * 8];
static int n_written;

static void write_batch(struct world *w, struct dice *dice, int64_t seq)
{
    static const enum row_kind kinds[] = {ROW_counter, ROW_server, ROW_ticket, ROW_session,
                                          ROW_seat,    ROW_audit,  ROW_request};
    struct buf changes = {0};
    int n = (int)dice_below(dice, 8);
    for (int i = 0; i < n; i++) {
        enum row_kind kind = kinds[dice_below(dice, 7)];
        change_encode_gone(&changes, kind, (int64_t)dice_below(dice, 1000) + 1);
        if (kind == ROW_counter || kind == ROW_request)
            continue;
        struct change_id *c = &written[n_written++];
        c->kind = kind;
        snprintf(c->id, sizeof(c->id), "%" PRId64 ".%d", seq, i);
    }
    struct store_batch batch = {.seq = seq, .changes = changes.data, .len = changes.len};
    feed_durable(w->feed, &batch);
    buf_done(&changes);
}

static const char *const tastes[] = {"server,session,seat,ticket,audit", "ticket", "server,seat",
                                     "audit", "fleet"};

/* What he has is what was written, in order, without a gap or a repeat, as far as he wants it. */
static void check_taste(const struct reader *r, int taste)
{
    feed_kinds kinds = 0;
    struct str word;
    assert_true(feed_kinds_parse(tastes[taste], &kinds, &word));
    int at = 0;
    for (int i = 0; i < r->n; i++, at++) {
        while (at < n_written && !(kinds & FEED_BIT(written[at].kind)))
            at++;
        assert_true(at < n_written);
        assert_string_equal(r->said[i].id, written[at].id);
    }
    while (at < n_written && !(kinds & FEED_BIT(written[at].kind)))
        at++;
    assert_int_equal(at, n_written);
}

static void a_crowd_of_readers_sees_each_change_once(void **state)
{
    struct world *w = *state;
    struct dice dice = {4711};
    static struct reader crowd[CROWD];
    n_written = 0;
    for (int i = 0; i < CROWD; i++)
        reader_open(w, &crowd[i], tastes[i % 5], "0");
    for (int64_t seq = 1; seq <= BATCHES; seq++) {
        write_batch(w, &dice, seq);
        feed_tick(w->feed, w->now_ms += 10, wall(w));
        struct reader *r = &crowd[dice_below(&dice, CROWD)];
        for (uint64_t pulls = dice_below(&dice, 4); pulls > 0; pulls--)
            pull(r, dice_below(&dice, 600));
        if (dice_below(&dice, 3) > 0 || !r->last_id[0])
            continue;
        /* He loses his connection and comes back. */
        feed_close(r->feed);
        struct feed_ask wish = {.last_id = r->last_id, .wake = on_wake, .user = r};
        struct str word;
        assert_true(feed_kinds_parse(tastes[(r - crowd) % 5], &wish.kinds, &word));
        assert_int_equal(feed_open(w->feed, &wish, &r->feed), 0);
    }
    assert_true(n_written > 800);
    for (int i = 0; i < CROWD; i++) {
        for (int ticks = 0; ticks < 8; ticks++) { /* each has his share */
            pull_all(&crowd[i]);
            feed_tick(w->feed, w->now_ms += 10, wall(w));
        }
        check_taste(&crowd[i], i % 5);
        reader_close(&crowd[i]);
    }
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_reader_begins_now_and_sees_each_change),
        WORLD_TEST(every_kind_is_shown_in_the_words_of_the_api),
        WORLD_TEST(a_lobby_that_is_aborted_says_all_of_its_groups),
        WORLD_TEST(no_credential_is_shown),
        WORLD_TEST(what_is_gone_is_said_to_be),
        WORLD_TEST(a_reader_who_returns_goes_on_where_he_was),
        WORLD_TEST(what_is_no_id_is_refused),
        WORLD_TEST(an_id_from_the_future_is_a_gap),
        WORLD_TEST(an_id_that_is_no_longer_held_is_a_gap),
        WORLD_TEST(a_reader_who_falls_behind_is_told),
        WORLD_TEST(the_newest_batch_is_held_however_large),
        WORLD_TEST(kinds_are_words),
        WORLD_TEST(a_filter_hides_the_rest_and_moves_the_id_over_it),
        WORLD_TEST(a_filter_over_much_goes_in_steps),
        WORLD_TEST(small_pulls_give_the_same),
        WORLD_TEST(a_pull_is_about_as_large_as_asked),
        WORLD_TEST(a_sleeping_reader_is_woken_but_not_for_every_batch),
        WORLD_TEST(a_silent_stream_shows_a_sign_of_life),
        WORLD_TEST(readers_share_what_a_tick_allows),
        WORLD_TEST(there_are_only_so_many_readers),
        WORLD_TEST(a_stopped_feed_ends_every_stream),
        WORLD_TEST(notes_come_after_what_they_speak_of),
        WORLD_TEST(notes_of_operators_come_with_the_audit),
        WORLD_TEST(a_slow_reader_is_told_how_many_notes_he_missed),
        WORLD_TEST(the_load_is_shown_each_second_to_those_who_want_it),
        WORLD_TEST(the_load_comes_after_the_changes_it_shows),
        WORLD_TEST(the_load_shows_nothing_that_is_not_durable),
        WORLD_TEST(what_is_lost_is_never_shown),
        WORLD_TEST(a_damaged_batch_is_a_gap),
        WORLD_TEST(a_crowd_of_readers_sees_each_change_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
