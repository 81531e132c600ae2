/* What is written for a view is what the schema says. */
#include "api/resource.h"
#include "api/resource_room.h"

#include "base/err.h"
#include "lib/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct core_config config;

static int set_up(void **state)
{
    (void)state;
    memset(&config, 0, sizeof(config));
    strcpy(config.regions[1].name, "EU");
    strcpy(config.regions[2].name, "USE");
    return 0;
}

/* ── a value against its row ───────────────────────────────────────────────────────────────── */

static void check(const struct json *v, const struct shape *shape);

static void check_word(struct str text, const char *const *words)
{
    for (; *words; words++) {
        if (str_eq(text, str_of(*words)))
            return;
    }
    fail_msg("%.*s is no word of its list", (int)text.len, text.at);
}

static void check_items(const struct json *v, const struct shape_row *row)
{
    assert_int_equal(json_kind(v), JSON_KIND_ARRAY);
    for (size_t i = 0; i < json_length(v); i++) {
        const struct json *item = json_item(v, i);
        if (row->kind == SHAPE_ITEMS)
            check(item, row->shape);
        else
            assert_int_equal(json_kind(item),
                             row->kind == SHAPE_INTS ? JSON_KIND_INT : JSON_KIND_TEXT);
        if (row->kind == SHAPE_WORDS)
            check_word(json_get_text(item), row->words);
    }
}

static void check_row(const struct json *v, const struct shape_row *row)
{
    if (json_kind(v) == JSON_KIND_NULL) {
        if (!row->may_be_null)
            fail_msg("%s is null", row->name);
        return;
    }
    switch (row->kind) {
    case SHAPE_ID:
        assert_true(strspn(json_get_text(v).at, "0123456789") == json_get_text(v).len);
        return;
    case SHAPE_TIME:
    case SHAPE_TEXT:
        assert_int_equal(json_kind(v), JSON_KIND_TEXT);
        return;
    case SHAPE_INT8:
    case SHAPE_INT32:
    case SHAPE_INT64:
        assert_int_equal(json_kind(v), JSON_KIND_INT);
        return;
    case SHAPE_FLOAT:
    case SHAPE_DOUBLE:
        assert_true(json_kind(v) == JSON_KIND_REAL || json_kind(v) == JSON_KIND_INT);
        return;
    case SHAPE_BOOL:
        assert_int_equal(json_kind(v), JSON_KIND_BOOL);
        return;
    case SHAPE_WORD:
        check_word(json_get_text(v), row->words);
        return;
    case SHAPE_OBJECT:
        check(v, row->shape);
        return;
    case SHAPE_TEXTS:
    case SHAPE_WORDS:
    case SHAPE_ITEMS:
    case SHAPE_INTS:
        check_items(v, row);
        return;
    case SHAPE_JSON:
    case SHAPE_MAP:
        assert_int_equal(json_kind(v), JSON_KIND_OBJECT);
        return;
    }
}

static void check(const struct json *v, const struct shape *shape)
{
    const struct shape_row *row = shape->rows;
    void *at = NULL;
    const char *key = NULL;
    const struct json *value = NULL;
    assert_int_equal(json_kind(v), JSON_KIND_OBJECT);
    while (json_next(v, &at, &key, &value)) {
        assert_non_null(row->name);
        assert_string_equal(key, row->name);
        check_row(value, row++);
    }
    assert_null(row->name);
}

static struct json *show(const struct shape *shape, const void *object)
{
    struct buf b = {0};
    struct json_writer w = {.out = &b};
    char why[JSON_WHY_MAX];
    shape_write(&w, shape, object, &config);
    struct json *v = json_parse((struct str){(char *)b.data, b.len}, why);
    if (!v)
        fail_msg("%s: %.*s", why, (int)b.len, (const char *)b.data);
    check(v, shape);
    buf_done(&b);
    return v;
}

static struct json *show_server(const struct view_server *v)
{
    struct server_answer answer = merge_registered(v);
    return show(&server_shape, &answer);
}

static struct json *show_session(const struct view_session *v)
{
    struct session_answer answer = merge_match(v);
    return show(&session_shape, &answer);
}

static struct json *show_ticket(const struct view_ticket *v)
{
    struct ticket_answer answer = merge_asked(v);
    return show(&ticket_shape, &answer);
}

static struct str text(const struct json *object, const char *key)
{
    const struct json *v = json_member(object, key);
    assert_non_null(v);
    return json_get_text(v);
}

static bool is_null(const struct json *object, const char *key)
{
    return json_kind(json_member(object, key)) == JSON_KIND_NULL;
}

/* ── each resource, with as little as there can be and with all there can be ───────────────── */

static void regions(void **state)
{
    (void)state;
    struct view_region v = {.code = 1, .name = "EU"};
    struct json *j = show(&region_shape, &v);
    assert_true(is_null(j, "latitude") && is_null(j, "longitude"));
    json_free(j);
    v.located = true;
    v.latitude = 50.1;
    v.group.servers[SERVER_DRAINING] = 3;
    v.group.slots_total = 9;
    j = show(&region_shape, &v);
    assert_true(json_get_number(json_member(j, "latitude")) > 50);
    assert_int_equal(json_get_int(json_member(json_member(j, "servers"), "draining")), 3);
    assert_int_equal(json_get_int(json_member(json_member(j, "slots"), "total")), 9);
    json_free(j);
}

static void fleets(void **state)
{
    (void)state;
    struct fleet_answer v = {
        .view = {.id = 4, .name = "default"}, .provider = "chat", .max_players = SHAPE_NO_INT32};
    struct json *j = show(&fleet_shape, &v);
    assert_true(is_null(j, "game") && is_null(j, "max_players"));
    assert_true(str_eq(text(j, "id"), STR("4")));
    assert_true(str_eq(text(j, "provider"), STR("chat")));
    json_free(j);
    v.provider = "agent";
    v.game = "arena";
    v.max_players = 8;
    j = show(&fleet_shape, &v);
    assert_true(str_eq(text(j, "game"), STR("arena")));
    assert_int_equal(json_get_int(json_member(j, "max_players")), 8);
    json_free(j);
}

static void servers(void **state)
{
    (void)state;
    struct view_server v = {
        .id = 7, .fleet = "f", .ip = "::1", .region_name = "EU", .registered_wall_ms = 1};
    struct json *j = show_server(&v);
    assert_true(is_null(j, "passed_over") && is_null(j, "round_trip_us"));
    assert_true(is_null(j, "heard_at") && is_null(j, "connected_at"));
    assert_int_equal(json_length(json_member(j, "draining_by")), 0);
    json_free(j);
    v.status = SERVER_DRAINING;
    v.draining_by_server = v.draining_by_operator = true;
    v.round_trip_us = 5;
    v.heard_wall_ms = v.connected_wall_ms = 1700000000123;
    for (int r = PASSED_OFFLINE; r < PASSED_REASONS; r++) {
        v.passed_over = (enum passed_over)r;
        v.score = r;
        j = show_server(&v);
        assert_true(str_eq(text(j, "passed_over"), str_of(passed_over_name(v.passed_over))));
        json_free(j);
    }
    j = show_server(&v);
    assert_int_equal(json_length(json_member(j, "draining_by")), 2);
    assert_true(str_eq(text(j, "heard_at"), STR("2023-11-14T22:13:20.123Z")));
    json_free(j);
    for (int s = 0; s < 4; s++) {
        v.status = (enum server_status)s;
        json_free(show_server(&v));
    }
}

static void sessions(void **state)
{
    (void)state;
    struct view_session v = {.id = 1,
                             .ticket = 2,
                             .server = 3,
                             .fleet = "f",
                             .chat_server = "c",
                             .created_wall_ms = 1,
                             .end_reason = ""};
    for (int8_t s = 1; s <= 5; s++) { /* as core has them */
        v.state = session_state_name(s);
        json_free(show_session(&v));
    }
    for (int8_t r = 0; strcmp(end_reason_name(r), "?") != 0; r++) {
        v.end_reason = end_reason_name(r);
        struct json *j = show_session(&v);
        assert_int_equal(is_null(j, "end_reason"), r == 0);
        json_free(j);
    }
}

static void tickets(void **state)
{
    (void)state;
    struct view_ticket v = {
        .id = 1, .fleet = "f", .chat_server = "c", .opened_wall_ms = 1, .regions = UINT64_MAX};
    for (int8_t s = 1; s <= 5; s++) {
        v.state = ticket_state_name(s);
        struct json *j = show_ticket(&v);
        assert_true(is_null(j, "error") && is_null(j, "session") && is_null(j, "server"));
        assert_int_equal(json_length(json_member(j, "regions")), 2);
        json_free(j);
    }
    v.err = ERR_NO_SERVERS;
    struct json *j = show_ticket(&v);
    assert_true(str_eq(text(json_member(j, "error"), "code"), STR("no_servers")));
    json_free(j);
}

static void whys(void **state)
{
    (void)state;
    static const char *const outcomes[] = {"pending", "acknowledged", "refused", "timed_out",
                                           "dropped", "not_ready",    "given_up"};
    struct view_ticket asked = {.id = 1,
                                .fleet = "f",
                                .chat_server = "c",
                                .state = "open",
                                .opened_wall_ms = 1,
                                .n_tries = 1,
                                .passed = {[PASSED_FULL] = 6}};
    struct why_answer v = {.ticket = merge_asked(&asked), .sentence = "So it is."};
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        v.ticket.view.tries[0] = (struct view_try){.server = 3, .outcome = outcomes[i]};
        struct json *j = show(&why_shape, &v);
        assert_int_equal(json_length(json_member(j, "tries")), 1);
        assert_int_equal(json_get_int(json_member(json_member(j, "passed_over"), "full")), 6);
        json_free(j);
    }
}

static void tokens(void **state)
{
    (void)state;
    struct token_answer v = {.view = {.id = 1,
                                      .name = "",
                                      .role = ROLE_SERVER,
                                      .fleet = "f",
                                      .regions = 1u << 2,
                                      .created_wall_ms = 1},
                             .text = "mse_1"};
    struct json *j = show(&token_shape, &v);
    assert_null(json_member(j, "token"));
    assert_true(str_eq(json_get_text(json_item(json_member(j, "regions"), 0)), STR("USE")));
    json_free(j);
    v.view.role = ROLE_CHAT;
    v.view.expires_wall_ms = v.view.revoked_wall_ms = v.view.previous_until_wall_ms = 5;
    j = show(&made_token_shape, &v);
    assert_true(str_eq(text(j, "role"), STR("chat")));
    assert_true(str_eq(text(j, "token"), STR("mse_1")));
    json_free(j);
    const struct str scopes[] = {STR("game"), STR("profile_write")};
    struct access_answer a = {.account = "x",
                              .scopes = scopes,
                              .n_scopes = 2,
                              .issued_wall_ms = 1,
                              .expires_wall_ms = 2,
                              .text = "jwt"};
    j = show(&access_token_shape, &a);
    assert_int_equal(json_length(json_member(j, "scopes")), 2);
    json_free(j);
}

static void audits(void **state)
{
    (void)state;
    struct view_audit v = {.id = 1,
                           .wall_ms = 1,
                           .who = "a\"b",
                           .address = "::1",
                           .action = "configure",
                           .target_kind = "",
                           .detail = ""};
    struct json *j = show(&audit_shape, &v);
    assert_true(is_null(j, "target"));
    assert_true(str_eq(text(j, "who"), STR("a\"b")));
    json_free(j);
    v.target_kind = "server";
    v.target = 7;
    j = show(&audit_shape, &v);
    assert_true(str_eq(text(json_member(j, "target"), "id"), STR("7")));
    json_free(j);
}

static void statuses(void **state)
{
    (void)state;
    static struct status_answer v;
    static struct checkup found;
    checkup(&(struct checkup_facts){.read_only = true}, &found);
    v = (struct status_answer){
        .version = "1",
        .started_wall_ms = 1,
        .health = {.found = &found,
                   .status = checkup_status(&found),
                   .sentence = found.sentence,
                   .wall_ms = 1},
        .store = "writable",
        .config_digest = "",
        .allocations = {.p50_ms = NAN, .p95_ms = NAN, .p99_ms = NAN},
    };
    struct json *j = show(&status_shape, &v);
    assert_true(is_null(json_member(j, "allocations"), "p50_ms"));
    assert_true(is_null(json_member(j, "storage"), "disk_free_bytes"));
    const struct json *findings = json_member(json_member(j, "health"), "findings");
    assert_true(
        str_eq(json_get_text(json_member(json_item(findings, 0), "severity")), STR("critical")));
    json_free(j);
    v.n_regions = 1;
    v.regions[0] = (struct view_region){.code = 1, .name = "EU"};
    v.n_refusals = 2;
    v.refusals[0] = (struct metrics_refusal){.wall_ms = 1, .err = ERR_NO_SERVERS};
    v.refusals[1] = (struct metrics_refusal){.wall_ms = 1,
                                             .err = ERR_INVALID_LOBBY,
                                             .lobby = 4,
                                             .ticket = 5,
                                             .chat = "c",
                                             .region = "EU"};
    v.allocations.p50_ms = 1.5;
    j = show(&status_shape, &v);
    const struct json *refusals = json_member(j, "refusals");
    assert_true(is_null(json_item(refusals, 0), "ticket"));
    assert_true(is_null(json_item(refusals, 0), "lobby"));
    assert_true(is_null(json_item(refusals, 0), "chat_server"));
    assert_int_equal(json_get_int(json_member(json_item(refusals, 1), "lobby")), 4);
    json_free(j);
    json_free(show(&health_shape, &(struct health_answer){"ok"}));
    const struct ports_answer ports = {"127.0.0.1:1", "[::1]:2", "127.0.0.1:3", "127.0.0.1:4"};
    j = show(&ready_shape, &(struct ready_answer){"writable", "x", ports});
    assert_string_equal(json_get_text(json_member(json_member(j, "ports"), "server")).at,
                        "[::1]:2");
    json_free(j);
}

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

static void hosts(void **state)
{
    (void)state;
    struct view_host v = {.id = 3,
                          .name = "host-1",
                          .address = "203.0.113.7",
                          .url = "http://203.0.113.7:9510",
                          .region_name = "EU",
                          .registered_wall_ms = 1};
    struct json *j = show(&host_shape, &v);
    assert_true(is_null(j, "passed_over") && is_null(j, "heard_at"));
    assert_true(json_get_bool(json_member(j, "enabled")));
    json_free(j);
    for (int r = HOST_PASSED_SILENT; r < HOST_PASSED_REASONS; r++) {
        v.passed_over = (enum host_passed_over)r;
        json_free(show(&host_shape, &v));
    }
}

static struct view_room some_room(void)
{
    return (struct view_room){.id = 34,
                              .server = 12,
                              .fleet = "arena",
                              .version = "1.0",
                              .host = 3,
                              .host_name = "host-1",
                              .address = "203.0.113.7",
                              .region_name = "EU",
                              .state = "open",
                              .end_reason = "",
                              .max_players = 8,
                              .taken = 1,
                              .ports = {38000, 38001},
                              .n_ports = 2,
                              .settings = STR("{\"map\":\"goodone\"}"),
                              .created_wall_ms = 1,
                              .opened_wall_ms = 2};
}

static void rooms(void **state)
{
    (void)state;
    struct view_room v = some_room();
    struct json *j = show(&room_shape, &v);
    assert_int_equal(json_length(json_member(j, "ports")), 2);
    assert_true(str_eq(text(json_member(j, "settings"), "map"), STR("goodone")));
    json_free(j);
    static const enum end_reason reasons[] = {END_TOO_LONG, END_BY_OPERATOR,   END_SPAWN_FAILED,
                                              END_EXITED,   END_SPAWN_TIMEOUT, END_EMPTY,
                                              END_GIVEN_UP, END_HOST_LOST,     END_HUNG};
    v.state = "ended";
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        v.end_reason = end_reason_name((int8_t)reasons[i]);
        json_free(show(&room_shape, &v));
    }
}

static void rooms_with_seats(void **state)
{
    (void)state;
    struct view_room_seat seat = {.id = 77,
                                  .room = 34,
                                  .fleet = "arena",
                                  .account = "7",
                                  .address = "",
                                  .state = "taken",
                                  .reserved_wall_ms = 1,
                                  .sealed = STR("what nobody may see")};
    struct room_answer v = {.room = some_room(), .seats = &seat, .n_seats = 1};
    struct json *j = show(&room_whole_shape, &v);
    assert_true(is_null(j, "exit"));
    assert_null(json_member(json_item(json_member(j, "seats"), 0), "sealed"));
    json_free(j);
    v.room.state = "ended";
    v.room.exit_signal = 11;
    v.room.tail = STR("boom");
    j = show(&room_whole_shape, &v);
    const struct json *end = json_member(j, "exit");
    assert_true(is_null(end, "code"));
    assert_int_equal(json_get_int(json_member(end, "signal")), 11);
    assert_true(str_eq(text(end, "tail"), STR("boom")));
    json_free(j);
}

static void versions_deployments_bans(void **state)
{
    (void)state;
    static const uint8_t digest[32] = {0xab, 0x01};
    struct json *j =
        show(&version_shape, &(struct view_version){.fleet = "arena", .name = "1.0", .reason = ""});
    assert_true(is_null(j, "id") && is_null(j, "reason"));
    json_free(j);
    j = show(&deployment_shape, &(struct view_deployment){.id = 1,
                                                          .fleet = "arena",
                                                          .version = "1.0",
                                                          .digest = digest,
                                                          .created_wall_ms = 1,
                                                          .who = "x"});
    assert_int_equal(text(j, "digest").len, 64);
    assert_true(str_eq((struct str){text(j, "digest").at, 6}, STR("ab0100")));
    json_free(j);
    j = show(&ban_shape, &(struct view_ban){.id = 1,
                                            .account = "7",
                                            .address = "",
                                            .reason = "cheats",
                                            .expires_wall_ms = 2,
                                            .issued_wall_ms = 1,
                                            .who = "x"});
    assert_true(is_null(j, "address"));
    json_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions),
        cmocka_unit_test(fleets),
        cmocka_unit_test(servers),
        cmocka_unit_test(sessions),
        cmocka_unit_test(tickets),
        cmocka_unit_test(whys),
        cmocka_unit_test(tokens),
        cmocka_unit_test(audits),
        cmocka_unit_test(statuses),
        cmocka_unit_test(hosts),
        cmocka_unit_test(rooms),
        cmocka_unit_test(rooms_with_seats),
        cmocka_unit_test(versions_deployments_bans),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
